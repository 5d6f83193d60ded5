#include "data/clustering.h"

#include <math.h>
#include <stdbool.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "data/block.h"
#include "data/order/order.h"

enum {
    SAMPLES = 2048
}; /* pairs of neighbours drawn for each degree: a standard error of 0.011 at most */

struct counting {
    const struct sl_csr *graph;
    const struct sl_clustering *clustering;
    uint64_t key;
};

static bool is_edge(const struct sl_csr *graph, int32_t u, int32_t v)
{
    const int64_t *indptr = graph->indptr;
    if (indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v])
        return is_edge(graph, v, u);
    int64_t low = indptr[u], high = indptr[u + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (graph->indices[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low < indptr[u + 1] && graph->indices[low] == v;
}

static int64_t count_all(const struct sl_csr *graph, int32_t v)
{
    int64_t joined = 0;
    for (int64_t i = graph->indptr[v]; i < graph->indptr[v + 1]; i++)
        for (int64_t j = graph->indptr[v]; j < i; j++)
            joined += is_edge(graph, graph->indices[i], graph->indices[j]);
    return joined;
}

/* Return a number of 0 … count - 1 from 32 random bits. */
static int64_t choose(uint32_t bits, int64_t count)
{
    return (int64_t)((uint64_t)bits * (uint64_t)count >> 32);
}

/* Draw a vertex of `vertices`, all of one degree, and a pair of its neighbours; return whether the
 * pair is joined. */
static bool sample(const struct counting *c, const int32_t *vertices, int64_t count, int64_t degree,
                   uint32_t number)
{
    uint32_t x, y, z, unused;
    sl_rng_block(c->key, (uint32_t)degree, 2 * number, &x, &y);
    sl_rng_block(c->key, (uint32_t)degree, 2 * number + 1, &z, &unused);
    const int32_t *row = c->graph->indices + c->graph->indptr[vertices[choose(x, count)]];
    const int64_t i = choose(y, degree), j = choose(z, degree - 1);
    return is_edge(c->graph, row[i], row[j + (j >= i)]);
}

static void measure_degree(void *context, int64_t degree)
{
    const struct counting *c = context;
    const int64_t first = c->clustering->first[degree];
    const int64_t count = c->clustering->first[degree + 1] - first;
    const int32_t *vertices = c->clustering->vertices + first;
    const double pairs = (double)count * (double)degree * (double)(degree - 1) / 2.0;
    int64_t joined = 0;
    if (pairs <= SAMPLES)
        for (int64_t k = 0; k < count; k++)
            joined += count_all(c->graph, vertices[k]);
    else
        for (uint32_t number = 0; number < SAMPLES; number++)
            joined += sample(c, vertices, count, degree, number);
    const double looked_at = pairs <= SAMPLES ? pairs : SAMPLES;
    c->clustering->coefficient[degree] = looked_at > 0.0 ? (double)joined / looked_at : 0.0;
}

static int64_t degree_of(const struct sl_csr *graph, int32_t v)
{
    return graph->indptr[v + 1] - graph->indptr[v];
}

static int sort_vertices(const struct sl_csr *graph, struct sl_clustering *out)
{
    const int64_t n = graph->rows;
    out->vertices = sl_block_array(&out->memory, n, sizeof *out->vertices);
    if (!out->vertices || sl_order_by_degree(graph, false, out->vertices))
        return SL_ERR_SYSTEM;
    out->max_degree = degree_of(graph, out->vertices[n - 1]);
    out->first = sl_block_array(&out->memory, out->max_degree + 2, sizeof *out->first);
    out->coefficient = sl_block_array(&out->memory, out->max_degree + 1, sizeof *out->coefficient);
    if (!out->first || !out->coefficient)
        return SL_ERR_SYSTEM;
    int64_t at = 0;
    for (int64_t degree = 0; degree <= out->max_degree + 1; degree++) {
        while (at < n && degree_of(graph, out->vertices[at]) < degree)
            at++;
        out->first[degree] = at;
    }
    return SL_OK;
}

int sl_clustering_compute(const struct sl_csr *graph, uint64_t key, int threads,
                          struct sl_clustering *out)
{
    *out = (struct sl_clustering){0};
    if (sort_vertices(graph, out)) {
        sl_clustering_free(out);
        return SL_ERR_SYSTEM;
    }
    struct counting counting = {graph, out, key};
    sl_parallel_for(threads, out->max_degree + 1, measure_degree, &counting);
    return SL_OK;
}

double sl_clustering_mean(const struct sl_clustering *clustering)
{
    double sum = 0.0, vertices = 0.0;
    for (int64_t degree = 2; degree <= clustering->max_degree; degree++) {
        const int64_t count = clustering->first[degree + 1] - clustering->first[degree];
        sum += (double)count * clustering->coefficient[degree];
        vertices += (double)count;
    }
    return vertices > 0.0 ? sum / vertices : NAN;
}

void sl_clustering_free(struct sl_clustering *clustering)
{
    sl_block_free_all(&clustering->memory);
    *clustering = (struct sl_clustering){0};
}
