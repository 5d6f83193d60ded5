#include "data/edge_features.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "data/csr.h"
#include "data/part.h"
#include "data/relations.h"

int sl_edge_features_check(const struct sl_npy *stored, int64_t entries)
{
    int rc = sl_npy_expect(stored, 2);
    if (!rc && sl_npy_is_text(stored))
        rc = sl_error(SL_ERR_DATA, "%s: has text, expected numbers", stored->name);
    if (!rc && stored->shape[0] != entries)
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected %" PRId64 " (entries)",
                      stored->name, stored->shape[0], entries);
    if (!rc && (stored->shape[1] < 1 || stored->shape[1] > SL_EDGE_FEATURES))
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns, expected 1 to %d", stored->name,
                      stored->shape[1], SL_EDGE_FEATURES);
    if (!rc && entries > INT32_MAX)
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected fewer than 2^31",
                      stored->name, entries);
    return rc;
}

/* ---- Orders ---- */

static int64_t entries_of(const struct sl_csr *csr)
{
    return csr->indptr[csr->rows];
}

int sl_edge_features_take(const struct sl_npy *stored, const struct sl_csr *csr, bool copies,
                          struct sl_block **blocks, const float **out)
{
    const int64_t nnz = entries_of(csr), width = stored->shape[1];
    int64_t e = 0;
    while (!copies && e < nnz && csr->edges[e] == e)
        e++;
    if (!copies && e == nnz && nnz == stored->shape[0])
        return sl_npy_take(stored, SL_NPY_FLOAT32, 0, nnz * width, blocks, out);
    float *edge = sl_block_array(blocks, nnz, (size_t)width * sizeof *edge);
    if (!edge)
        return SL_ERR_SYSTEM;
    *out = edge;
    return sl_npy_copy_rows(stored, SL_NPY_FLOAT32, csr->edges, nnz, edge);
}

int sl_edge_features_number_transpose(const struct sl_csr *csr, struct sl_block **blocks,
                                      struct sl_csr *out)
{
    const int64_t nnz = entries_of(csr);
    int32_t *number = sl_block_array(blocks, nnz, sizeof *number);
    if (!number)
        return SL_ERR_SYSTEM;
    for (int64_t e = 0; e < nnz; e++)
        number[e] = (int32_t)e;
    /* the transpose moves 32 bits with each entry, whatever they mean */
    const struct sl_csr numbered = {
        csr->rows, csr->cols, csr->indptr, csr->indices, (const float *)number, NULL};
    const int rc = sl_csr_transpose(&numbered, blocks, out);
    out->edges = (const int32_t *)out->values;
    out->values = NULL;
    return rc;
}

int sl_edge_features_transpose(struct sl_dataset *data, const struct sl_csr *before)
{
    struct sl_block *scratch = NULL;
    struct sl_csr turned;
    const struct sl_npy stored = sl_npy_view("edge_features", SL_NPY_FLOAT32, 2, entries_of(before),
                                             data->edge_features, data->edge);
    int rc = sl_edge_features_number_transpose(before, &scratch, &turned);
    if (!rc)
        rc = sl_edge_features_take(&stored, &turned, true, &data->blocks, &data->edge);
    sl_block_free_all(&scratch);
    return rc;
}

static float unite(enum sl_symmetrize way, float x, float y)
{
    return way == SL_SYMMETRIZE_MAX   ? x > y ? x : y
           : way == SL_SYMMETRIZE_SUM ? x + y
                                      : 0.5f * x + 0.5f * y;
}

/* Features of a union: entry (r, c) has row `forth` or row `back` of FROM, or both (-1: none). */
static void unite_entry(const float *from, int64_t width, enum sl_symmetrize way, int64_t forth,
                        int64_t back, float *to)
{
    memcpy(to, from + (forth >= 0 ? forth : back) * width, (size_t)width * sizeof *to);
    for (int64_t f = 0; forth >= 0 && back >= 0 && f < width; f++)
        to[f] = unite(way, to[f], from[back * width + f]);
}

/* Return the entry of the row whose column is `column`, from *next on; -1: there is none. */
static int64_t entry_at(const struct sl_csr *csr, int64_t r, int32_t column, int64_t *next)
{
    while (*next < csr->indptr[r + 1] && csr->indices[*next] < column)
        ++*next;
    return *next < csr->indptr[r + 1] && csr->indices[*next] == column ? *next : -1;
}

int sl_edge_features_unite(struct sl_dataset *data, const struct sl_csr *before,
                           enum sl_symmetrize way)
{
    const struct sl_csr *const all = &data->adjacency;
    const int64_t width = data->edge_features;
    struct sl_block *scratch = NULL;
    struct sl_csr mirror;
    int rc = sl_edge_features_number_transpose(before, &scratch, &mirror);
    float *edge =
        rc ? NULL : sl_block_array(&data->blocks, entries_of(all), (size_t)width * sizeof *edge);
    for (int64_t r = 0; edge && r < all->rows; r++) {
        int64_t forth = before->indptr[r], back = mirror.indptr[r];
        for (int64_t e = all->indptr[r]; e < all->indptr[r + 1]; e++) {
            const int32_t c = all->indices[e];
            const int64_t one = entry_at(before, r, c, &forth),
                          other = c == r ? -1 : entry_at(&mirror, r, c, &back);
            unite_entry(data->edge, width, way, one, other < 0 ? -1 : mirror.edges[other],
                        edge + e * width);
        }
    }
    if (edge)
        data->edge = edge;
    sl_block_free_all(&scratch);
    return rc || edge ? rc : (int)SL_ERR_SYSTEM;
}

/* Sort entries of one column by relation. */
static int sort_relations(const struct sl_dataset *data, const struct sl_csr *csr, float *values,
                          int32_t *edge, const float *from)
{
    const struct sl_npy stored =
        sl_npy_view("edge_features", SL_NPY_FLOAT32, 2, INT32_MAX, data->edge_features, from);
    int64_t row, again;
    return sl_relations_sort(csr, &stored, values, edge, &row, &again);
}

int sl_edge_features_mend(struct sl_dataset *data, struct sl_csr *csr, int32_t *edge,
                          const float *from, int64_t *merged)
{
    const int64_t width = data->edge_features, nnz = entries_of(csr);
    int64_t *const indptr = (int64_t *)csr->indptr, start = 0, kept = 0;
    int32_t *const indices = (int32_t *)csr->indices;
    float *const values = (float *)csr->values;
    const int64_t summed = width - (data->relations > 0); /* relations stay as they are */
    int rc = sl_csr_sort_edges(csr, indices, values, edge);
    if (!rc && data->relations > 0)
        rc = sort_relations(data, csr, values, edge, from);
    float *to = rc ? NULL : sl_block_array(&data->blocks, nnz, (size_t)width * sizeof *to);
    for (int64_t r = 0; to && r < csr->rows; r++) {
        const int64_t end = indptr[r + 1], first = kept;
        for (int64_t e = start; e < end; e++) {
            const float *const own = from + edge[e] * width;
            const bool again = kept > first && indices[kept - 1] == indices[e] &&
                               (summed == width || to[(kept - 1) * width + summed] == own[summed]);
            const int64_t at = again ? kept - 1 : kept++;
            for (int64_t f = 0; f < width; f++)
                to[at * width + f] = own[f] + (again && f < summed ? to[at * width + f] : 0.0f);
            indices[at] = indices[e];
            if (values)
                values[at] = values[e] + (again ? values[at] : 0.0f);
        }
        start = end;
        indptr[r + 1] = kept;
    }
    *merged += to ? nnz - kept : 0;
    data->edge = to;
    return rc || to ? rc : (int)SL_ERR_SYSTEM;
}

/* ---- Tiles ---- */

static void copy_row(const struct sl_source *source, int64_t row, float *features)
{
    /* sl_part_check_edges has read all rows: copying cannot fail */
    (void)sl_npy_copy(&source->edge_features, SL_NPY_FLOAT32, row * source->edge_features.shape[1],
                      sl_source_edge_numbers(source), features);
}

/* Write the mean of the features of the row's entries, without its loop. */
static void read_loop(const struct sl_source *source, int64_t v, float *features)
{
    const struct sl_stored_csr *a = &source->adjacency;
    const int64_t width = sl_source_edge_numbers(source);
    float own[SL_EDGE_FEATURES];
    double sum[SL_EDGE_FEATURES] = {0};
    int64_t extent[2], count = 0;
    if (sl_part_find_row(a, v, extent)) /* checked before */
        return;
    for (int64_t e = extent[0]; e < extent[1]; e++) {
        if (sl_npy_integer(&a->indices, e) == v)
            continue;
        copy_row(source, sl_part_edge(a, e), own);
        count++;
        for (int64_t f = 0; f < width; f++)
            sum[f] += (double)own[f];
    }
    for (int64_t f = 0; f < width; f++)
        features[f] = count ? (float)(sum[f] / (double)count) : 0.0f;
}

void sl_edge_features_read(const void *context, uint32_t number, float *features)
{
    const struct sl_source *const source = context;
    if (source->reads_edges == SL_READS_RELATIONS)
        sl_relations_read(source, number, features);
    else if (number & SL_EDGE_LOOP)
        read_loop(source, number & ~SL_EDGE_LOOP, features);
    else
        copy_row(source, number, features);
}
