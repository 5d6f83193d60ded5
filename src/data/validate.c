/* Check the rules for every dataset, whatever its format: each rank checks its own rows, and all
 * ranks together the rest. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

#include "core/error.h"
#include "core/parallel.h"
#include "data/csr.h"
#include "data/edge_features.h"
#include "data/fingerprint.h"
#include "data/part.h"

/* Return the row of the files that row k of the part is. */
static int64_t row_of(const struct sl_source *source, const struct sl_part *part, int64_t k)
{
    return sl_source_vertex(source, part->first + k);
}

/* ---- Numbers ---- */

static int refuse_value(const struct sl_npy *npy, int64_t row, int64_t col, float value)
{
    return sl_error(SL_ERR_DATA,
                    "%s: row %" PRId64 ", column %" PRId64 " is %f, expected a finite number",
                    npy->name, row, col, (double)value);
}

int sl_part_check_weights(const struct sl_source *source, const struct sl_part *part)
{
    const struct sl_csr *a = &part->data.adjacency;
    int64_t k, e;
    if (sl_csr_values_finite(a, &k, &e))
        return SL_OK;
    const int64_t row = row_of(source, part, k), column = sl_source_vertex(source, a->indices[e]);
    return sl_error(SL_ERR_DATA,
                    "%s: row %" PRId64 ", column %" PRId64 " is %f (the edge %" PRId64
                    " -> %" PRId64 "), expected a finite number",
                    source->adjacency.values.name, row, column, (double)a->values[e], column, row);
}

int sl_part_check_edges(const struct sl_source *source, const struct sl_part *part)
{
    const struct sl_csr *a = &part->data.adjacency;
    const int64_t width = a->edges ? source->edge_features.shape[1] : 0;
    float feature[SL_EDGE_FEATURES + 1];
    for (int64_t e = 0; a->edges && e < a->indptr[a->rows]; e++) {
        const int64_t row = a->edges[e];
        int rc = sl_npy_copy(&source->edge_features, SL_NPY_FLOAT32, row * width, width, feature);
        for (int64_t f = 0; !rc && f < width; f++)
            if (!isfinite(feature[f]))
                rc = refuse_value(&source->edge_features, row, f, feature[f]);
        if (rc)
            return rc;
    }
    return SL_OK;
}

struct numbers {
    const float *item;
    atomic_bool infinite;
};

/* Look for numbers that are not finite: x - x is not 0 for them. */
static void find_infinite(void *context, int64_t begin, int64_t end)
{
    struct numbers *numbers = context;
    bool infinite = false;
    for (int64_t i = begin; i < end; i++)
        infinite |= !(numbers->item[i] - numbers->item[i] == 0.0f);
    if (infinite)
        atomic_store(&numbers->infinite, true);
}

int sl_part_check_features(const struct sl_source *source, const struct sl_part *part)
{
    const struct sl_csr *csr = &part->data.features_csr;
    const int64_t width = source->features;
    int64_t k, e;
    if (part->data.feature_form == SL_FEATURES_CSR && !sl_csr_values_finite(csr, &k, &e))
        return refuse_value(&source->features_csr.values,
                            sl_source_feature_row(source, part->first + k), csr->indices[e],
                            csr->values[e]);
    const float *x = part->data.features_dense;
    struct numbers numbers = {.item = x};
    const int64_t count = x ? part->dense_rows * width : 0;
    sl_parallel_for_ranges(sl_parallel_threads(0), count, find_infinite, &numbers);
    for (int64_t i = 0; atomic_load(&numbers.infinite) && i < count; i++)
        if (!isfinite(x[i]))
            return refuse_value(&source->features_dense,
                                sl_source_feature_row(source, part->dense_first + i / width),
                                i % width, x[i]);
    return SL_OK;
}

static int check_labels(const struct sl_source *source, const struct sl_part *part)
{
    const struct sl_dataset *data = &part->data;
    const int64_t rows = data->adjacency.rows;
    for (int64_t k = 0; data->labels && k < rows; k++)
        if (data->labels[k] < -1 || data->labels[k] >= data->classes)
            return sl_error(SL_ERR_DATA,
                            "%s: label %" PRId32 " of vertex %" PRId64
                            " is no class; expected -1 (none) or 0 to %" PRId64,
                            source->targets.labels.name, data->labels[k], row_of(source, part, k),
                            data->classes - 1);
    for (int64_t i = 0; data->multilabels && i < rows * data->classes; i++) {
        const float label = data->multilabels[i];
        const bool right =
            data->meaning.regression ? isfinite(label) : label == 0.0f || label == 1.0f;
        if (!right && !isnan(label))
            return sl_error(SL_ERR_DATA,
                            "%s: row %" PRId64 ", column %" PRId64 " is %g, expected %s",
                            source->targets.labels.name, row_of(source, part, i / data->classes),
                            i % data->classes, (double)label,
                            data->meaning.regression ? "a finite number" : "0 or 1");
    }
    return SL_OK;
}

int sl_part_check_vertices(const struct sl_source *source, const struct sl_part *part)
{
    const int rc = sl_part_check_features(source, part);
    return rc ? rc : check_labels(source, part);
}

/* ---- Symmetry ---- */

/* Entries (u, v) and (v, u), u <= v, with u in the first range and v in the second. */
struct pairs {
    const struct sl_part *part;
    int64_t range[2][2];
};

struct mirror {
    const struct pairs *pairs;
    const struct sl_npy *edges;  /* edge features that count, too; NULL: none */
    int64_t count;               /* how many of them */
    _Atomic uint64_t difference; /* wraps around: any order of adding gives an equal sum */
};

/* Return the difference of the fingerprints that the first `count` edge features give an entry and
 * its mirror image. */
static uint64_t edge_difference(const struct sl_npy *edges, int64_t count, int64_t row, int32_t r,
                                int32_t c)
{
    const int64_t width = edges->shape[1];
    uint64_t forth = 0, back = 0;
    for (int64_t f = 0; f < count; f++) {
        const float value = (float)sl_npy_get(edges, row * width + f);
        forth = sl_fingerprint_mix(forth) ^ sl_fingerprint(r, c, value);
        back = sl_fingerprint_mix(back) ^ sl_fingerprint(c, r, value);
    }
    return sl_fingerprint_mix(forth) - sl_fingerprint_mix(back);
}

static void add_asymmetry(void *context, int64_t begin, int64_t end)
{
    struct mirror *mirror = context;
    const struct pairs *pairs = mirror->pairs;
    const struct sl_csr *a = &pairs->part->data.adjacency;
    uint64_t difference = 0;
    for (int64_t k = begin; k < end; k++)
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++) {
            const int32_t r = (int32_t)(pairs->part->first + k), c = a->indices[e];
            const int32_t u = r < c ? r : c, v = r < c ? c : r;
            const float value = a->values ? a->values[e] : 1.0f;
            if (u >= pairs->range[0][0] && u < pairs->range[0][1] && v >= pairs->range[1][0] &&
                v < pairs->range[1][1])
                difference += mirror->edges
                                  ? edge_difference(mirror->edges, mirror->count, a->edges[e], r, c)
                                  : sl_fingerprint(r, c, value) - sl_fingerprint(c, r, value);
        }
    atomic_fetch_add(&mirror->difference, difference);
}

static uint64_t find_asymmetry_of(const struct pairs *pairs, const struct sl_npy *edges,
                                  int64_t count)
{
    struct mirror mirror = {.pairs = pairs, .edges = edges, .count = count};
    sl_parallel_for_ranges(sl_parallel_threads(0), pairs->part->data.adjacency.rows, add_asymmetry,
                           &mirror);
    return atomic_load(&mirror.difference);
}

/* Return the sum of fingerprints of the entries in this rank's rows, minus those of their mirror
 * images. */
static uint64_t find_asymmetry(const void *context)
{
    return find_asymmetry_of(context, NULL, 0);
}

/* Return whether some rank has the entry. Collective. */
static bool has_entry(struct sl_runtime *rt, const struct sl_part *part, int64_t row, int64_t col)
{
    const struct sl_csr *a = &part->data.adjacency;
    const int64_t k = row - part->first;
    int64_t found = 0;
    if (k >= 0 && k < a->rows)
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
            found += a->indices[e] == col;
    sl_runtime_sum(rt, &found, 1);
    return found > 0;
}

/* Return an error that names an entry without a mirror image. */
static int refuse_direction(struct sl_runtime *rt, const struct sl_source *source,
                            struct pairs *pairs)
{
    sl_fingerprint_narrow(rt, pairs->range[0], find_asymmetry, pairs);
    sl_fingerprint_narrow(rt, pairs->range[1], find_asymmetry, pairs);
    const int64_t u = pairs->range[0][0], v = pairs->range[1][0];
    const bool forth = has_entry(rt, pairs->part, u, v);
    return sl_error(SL_ERR_DATA,
                    "%s: vertex %" PRId64 " has the neighbour %" PRId64
                    " (counted from 0), but not the other way round with equal weight; expected "
                    "both, since the graph is said to be undirected",
                    source->path, sl_source_vertex(source, forth ? u : v),
                    sl_source_vertex(source, forth ? v : u));
}

static bool are_one(const struct sl_csr *a)
{
    bool one = true;
    for (int64_t e = 0; a->values && one && e < a->indptr[a->rows]; e++)
        one = a->values[e] == 1.0f;
    return one;
}

int sl_part_settle_adjacency(struct sl_runtime *rt, const struct sl_source *source,
                             struct sl_part *part)
{
    struct sl_csr *a = &part->data.adjacency;
    const int64_t n = source->vertices;
    struct pairs all = {part, {{0, n}, {0, n}}};
    int64_t sums[] = {!are_one(a), a->indptr[a->rows]};
    sl_runtime_sum(rt, sums, 2);
    if (sums[0] == 0)
        a->values = NULL;
    part->entries = sums[1];
    const bool symmetric = source->symmetric || sl_fingerprint_agree(rt, find_asymmetry(&all));
    if (!symmetric && source->undirected)
        return sl_runtime_agree(rt, refuse_direction(rt, source, &all));
    /* a factor of relations belongs to an entry's row, and its mirror image has another */
    part->data.symmetric =
        symmetric && source->reads_edges != SL_READS_RELATIONS &&
        (!source->reads_edges ||
         sl_fingerprint_agree(
             rt, find_asymmetry_of(&all, &source->edge_features, sl_source_edge_numbers(source))));
    return SL_OK;
}

/* ---- Original numbers ---- */

struct originals {
    const struct sl_part *part;
    int64_t range[2]; /* range of vertices */
};

/* Return the sum of fingerprints of the original numbers in this rank's rows, minus those of the
 * rows' own numbers. */
static uint64_t find_repetition(const void *context)
{
    const struct originals *numbers = context;
    const struct sl_part *part = numbers->part;
    uint64_t difference = 0;
    for (int64_t k = 0; k < part->data.adjacency.rows; k++) {
        const int64_t v = part->data.original[k], r = part->first + k;
        if (v >= numbers->range[0] && v < numbers->range[1])
            difference += sl_fingerprint_mix((uint64_t)v);
        if (r >= numbers->range[0] && r < numbers->range[1])
            difference -= sl_fingerprint_mix((uint64_t)r);
    }
    return difference;
}

static int check_range(const struct sl_source *source, const struct sl_part *part)
{
    const int64_t n = source->selection.whole ? source->selection.whole : source->vertices;
    for (int64_t k = 0; k < part->data.adjacency.rows; k++)
        if (part->data.original[k] < 0 || part->data.original[k] >= n)
            return sl_error(SL_ERR_DATA,
                            "%s: item %" PRId64 " is vertex %" PRId64 ", expected 0 to %" PRId64,
                            source->order.original.name, row_of(source, part, k),
                            part->data.original[k], n - 1);
    return SL_OK;
}

int sl_part_check_original(struct sl_runtime *rt, const struct sl_source *source,
                           const struct sl_part *part)
{
    if (!source->order.original.data)
        return SL_OK;
    struct originals all = {part, {0, source->vertices}};
    const int rc = sl_runtime_agree(rt, check_range(source, part));
    if (rc || source->selection.whole || sl_fingerprint_agree(rt, find_repetition(&all)))
        return rc;
    sl_fingerprint_narrow(rt, all.range, find_repetition, &all);
    int64_t times = 0;
    for (int64_t k = 0; k < part->data.adjacency.rows; k++)
        times += part->data.original[k] == all.range[0];
    sl_runtime_sum(rt, &times, 1);
    return sl_runtime_agree(rt, sl_error(SL_ERR_DATA,
                                         "%s: vertex %" PRId64 " is there %" PRId64
                                         " times, expected every vertex once",
                                         source->order.original.name, all.range[0], times));
}
