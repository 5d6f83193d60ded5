#include "data/statistics.h"
#include "data/labels.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "data/block.h"
#include "data/clustering.h"
#include "data/csr.h"
#include "data/order/forest.h"

int64_t sl_dataset_edge_count(const struct sl_dataset *data)
{
    const int64_t entries = data->adjacency.indptr[data->vertices];
    return data->symmetric ? (entries + sl_csr_diagonal_count(&data->adjacency)) / 2 : entries;
}

/* Return the smallest degree that at least `share` of the vertices do not exceed. */
static int64_t percentile(const int64_t *histogram, int64_t vertices, double share)
{
    const int64_t rank = (int64_t)ceil(share * (double)vertices);
    int64_t degree = 0;
    for (int64_t seen = histogram[0]; seen < rank; seen += histogram[degree])
        degree++;
    return degree;
}

static int measure_degrees(const struct sl_csr *a, struct sl_graph_statistics *out)
{
    struct sl_block *scratch = NULL;
    int64_t max = 0;
    for (int64_t v = 0; v < a->rows; v++) {
        const int64_t degree = a->indptr[v + 1] - a->indptr[v];
        max = degree > max ? degree : max;
    }
    int64_t *histogram = sl_block_array(&scratch, max + 1, sizeof *histogram);
    if (!histogram)
        return SL_ERR_SYSTEM;
    for (int64_t d = 0; d <= max; d++)
        histogram[d] = 0;
    for (int64_t v = 0; v < a->rows; v++)
        histogram[a->indptr[v + 1] - a->indptr[v]]++;
    out->isolated = histogram[0];
    while (histogram[out->degree_min] == 0)
        out->degree_min++;
    out->degree_median = percentile(histogram, a->rows, 0.5);
    out->degree_p90 = percentile(histogram, a->rows, 0.9);
    out->degree_p99 = percentile(histogram, a->rows, 0.99);
    out->degree_max = max;
    out->degree_mean = (double)a->indptr[a->rows] / (double)a->rows;
    sl_block_free_all(&scratch);
    return SL_OK;
}

/* Measure components by union-find; join the smaller tree below the larger. */
static int measure_components(const struct sl_csr *a, struct sl_graph_statistics *out)
{
    struct sl_block *scratch = NULL;
    int32_t *parent = sl_block_array(&scratch, a->rows, sizeof *parent);
    int32_t *size = sl_block_array(&scratch, a->rows, sizeof *size);
    if (!parent || !size) {
        sl_block_free_all(&scratch);
        return SL_ERR_SYSTEM;
    }
    for (int32_t v = 0; v < a->rows; v++) {
        parent[v] = v;
        size[v] = 1;
    }
    out->components = a->rows;
    for (int32_t v = 0; v < a->rows; v++)
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++) {
            const int32_t x = sl_forest_root(parent, v), y = sl_forest_root(parent, a->indices[k]);
            if (x == y)
                continue;
            const int32_t root = size[x] < size[y] ? y : x, child = root == x ? y : x;
            parent[child] = root;
            size[root] += size[child];
            out->components--;
        }
    for (int32_t v = 0; v < a->rows; v++)
        if (parent[v] == v && size[v] > out->largest_component)
            out->largest_component = size[v];
    sl_block_free_all(&scratch);
    return SL_OK;
}

static int measure_classes(const struct sl_dataset *data, struct sl_graph_statistics *out)
{
    out->classes = data->classes;
    if (data->classes == 0)
        return SL_OK;
    out->class_sizes = calloc((size_t)data->classes, sizeof *out->class_sizes);
    if (!out->class_sizes)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory for class sizes", data->path);
    for (int64_t v = 0; v < data->vertices; v++) {
        const float *several = data->multilabels ? data->multilabels + v * data->classes : NULL;
        if (data->labels && data->labels[v] >= 0) {
            out->class_sizes[data->labels[v]]++;
            out->labelled++;
        }
        for (int64_t c = 0; several && c < data->classes; c++)
            out->class_sizes[c] += several[c] == 1.0f;
        out->labelled += several && sl_labels_known(several, data->classes);
    }
    return SL_OK;
}

static double measure_homophily(const struct sl_csr *a, const int32_t *labels)
{
    int64_t same = 0, both = 0;
    for (int64_t v = 0; labels && v < a->rows; v++)
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++) {
            const int32_t u = a->indices[k];
            if (u == v || labels[u] < 0 || labels[v] < 0)
                continue;
            both++;
            same += labels[u] == labels[v];
        }
    return both > 0 ? (double)same / (double)both : NAN;
}

static int measure_clustering(const struct sl_dataset *data, struct sl_graph_statistics *out)
{
    struct sl_clustering clustering;
    out->clustering = NAN;
    if (!data->symmetric || out->self_loops > 0)
        return SL_OK;
    const uint64_t any_key = sl_rng_key(0, SL_RNG_GENERATE, 0, 0);
    const int rc =
        sl_clustering_compute(&data->adjacency, any_key, sl_parallel_threads(0), &clustering);
    if (rc)
        return rc;
    out->clustering = sl_clustering_mean(&clustering);
    sl_clustering_free(&clustering);
    return SL_OK;
}

int sl_graph_statistics_compute(const struct sl_dataset *data, struct sl_graph_statistics *out)
{
    const struct sl_csr *a = &data->adjacency;
    *out = (struct sl_graph_statistics){
        .vertices = data->vertices,
        .entries = a->indptr[a->rows],
        .edges = sl_dataset_edge_count(data),
        .self_loops = sl_csr_diagonal_count(a),
        .edge_homophily = measure_homophily(a, data->labels),
    };
    out->density = (double)out->entries / ((double)data->vertices * (double)data->vertices);
    int rc = measure_degrees(a, out);
    if (!rc)
        rc = measure_components(a, out);
    if (!rc)
        rc = measure_classes(data, out);
    if (!rc)
        rc = measure_clustering(data, out);
    if (rc)
        sl_graph_statistics_free(out);
    return rc;
}

void sl_graph_statistics_free(struct sl_graph_statistics *statistics)
{
    free(statistics->class_sizes);
    *statistics = (struct sl_graph_statistics){0};
}
