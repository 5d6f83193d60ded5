#include "data/relations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/csr.h"
#include "data/edge_features.h"
#include "data/part.h"

/* ---- Attach ---- */

/* Set *relations to how many there are, unless it is known. */
static int check_types(const struct sl_npy *types, int64_t entries, int64_t *relations)
{
    const int64_t known = *relations;
    int rc = known <= SL_RELATIONS
                 ? sl_npy_expect(types, 1)
                 : sl_error(SL_ERR_DATA, "%s: has %" PRId64 " relations, expected at most %d",
                            types->name, known, SL_RELATIONS);
    if (!rc && (types->kind == 'f' || sl_npy_is_text(types)))
        rc = sl_error(SL_ERR_DATA, "%s: expected integers, the numbers of relations", types->name);
    if (!rc && types->count != entries)
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " items, expected %" PRId64 " (entries)",
                      types->name, types->count, entries);
    if (!rc && entries > INT32_MAX)
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " items, expected fewer than 2^31",
                      types->name, entries);
    for (int64_t e = 0; !rc && e < entries; e++) {
        const int64_t r = sl_npy_integer(types, e);
        if (r < 0 || r >= SL_RELATIONS || (known > 0 && r >= known))
            rc = sl_error(SL_ERR_DATA,
                          "%s: item %" PRId64 " is relation %" PRId64 ", expected 0 to %" PRId64,
                          types->name, e, r, (known > 0 ? known : SL_RELATIONS) - 1);
        *relations = r >= *relations ? r + 1 : *relations;
    }
    return rc ? rc : *relations > 0 ? SL_OK : sl_error(SL_ERR_DATA, "%s: is empty", types->name);
}

/* Lay features and relations side by side. */
static int join(struct sl_source *source, const struct sl_npy *types)
{
    const struct sl_npy *const features = &source->edge_features;
    const int64_t width = features->shape[1], entries = types->count;
    float *both = sl_block_array(&source->blocks, entries, (size_t)(width + 1) * sizeof *both);
    int rc = both ? SL_OK : (int)SL_ERR_SYSTEM;
    for (int64_t e = 0; !rc && e < entries; e++) {
        rc = sl_npy_copy(features, SL_NPY_FLOAT32, e * width, width, both + e * (width + 1));
        both[e * (width + 1) + width] = (float)sl_npy_integer(types, e);
    }
    if (!rc)
        source->edge_features =
            sl_npy_view(features->name, SL_NPY_FLOAT32, 2, entries, width + 1, both);
    return rc;
}

int sl_relations_attach(struct sl_source *source, const struct sl_npy *types, int64_t relations)
{
    int rc = check_types(types, source->adjacency.indices.count, &relations);
    if (!rc && source->edge_features.data)
        rc = join(source, types);
    else if (!rc) {
        source->edge_features = *types;
        source->edge_features.dims = 2;
        source->edge_features.shape[1] = 1;
    }
    source->relations = (struct sl_source_relations){.count = rc ? 0 : relations};
    return rc;
}

/* ---- Orders ---- */

static int64_t relation_of(const struct sl_npy *stored, int64_t row)
{
    const int64_t width = stored->shape[1];
    float relation = 0.0f;
    /* the array was checked before: copying cannot fail */
    (void)sl_npy_copy(stored, SL_NPY_FLOAT32, row * width + width - 1, 1, &relation);
    return (int64_t)relation;
}

struct edge {
    int64_t relation;
    int32_t number;
    float value;
};

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->relation != y->relation ? (x->relation > y->relation) - (x->relation < y->relation)
                                      : (x->number > y->number) - (x->number < y->number);
}

/* Sort entries first … end - 1, which have one column. Return the first one whose relation is that
 * of the entry before; -1: there is none. */
static int64_t sort_column(const struct sl_npy *stored, int64_t first, int64_t end, float *values,
                           int32_t *edges, struct edge *scratch)
{
    const int64_t count = end - first;
    int64_t again = -1;
    for (int64_t k = 0; k < count; k++)
        scratch[k] = (struct edge){relation_of(stored, edges[first + k]), edges[first + k],
                                   values ? values[first + k] : 1.0f};
    qsort(scratch, (size_t)count, sizeof *scratch, compare_edges);
    for (int64_t k = 0; k < count; k++) {
        edges[first + k] = scratch[k].number;
        if (values)
            values[first + k] = scratch[k].value;
        if (again < 0 && k > 0 && scratch[k].relation == scratch[k - 1].relation)
            again = first + k;
    }
    return again;
}

/* Return how often a column is in a row at most. */
static int64_t most_equal(const struct sl_csr *csr)
{
    int64_t most = 1;
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t e = csr->indptr[r] + 1, count = 1; e < csr->indptr[r + 1]; e++) {
            count = csr->indices[e] == csr->indices[e - 1] ? count + 1 : 1;
            most = count > most ? count : most;
        }
    return most;
}

int sl_relations_sort(const struct sl_csr *csr, const struct sl_npy *stored, float *values,
                      int32_t *edges, int64_t *row, int64_t *again)
{
    struct sl_block *scratch = NULL;
    struct edge *room = sl_block_array(&scratch, most_equal(csr), sizeof *room);
    *again = -1;
    for (int64_t r = 0; room && r < csr->rows; r++)
        for (int64_t e = csr->indptr[r], end; e < csr->indptr[r + 1]; e = end) {
            for (end = e + 1; end < csr->indptr[r + 1] && csr->indices[end] == csr->indices[e];)
                end++;
            const int64_t found =
                end - e > 1 ? sort_column(stored, e, end, values, edges, room) : -1;
            if (found >= 0 && *again < 0) {
                *row = r;
                *again = found;
            }
        }
    sl_block_free_all(&scratch);
    return room ? SL_OK : SL_ERR_SYSTEM;
}

/* ---- Reverse ---- */

/* The rows of a dataset and of its transpose become rows of one matrix. */
struct reversing {
    const struct sl_dataset *data;
    struct sl_csr forth, back; /* `edges` are rows of data->edge */
    int64_t *indptr;
    int32_t *indices;
    float *values, *edge;
};

static void write_entry(const struct reversing *v, int64_t at, const struct sl_csr *from, int64_t e,
                        bool reverse)
{
    const int64_t width = v->data->edge_features;
    float *const edge = v->edge + at * width;
    v->indices[at] = from->indices[e];
    memcpy(edge, v->data->edge + from->edges[e] * width, (size_t)width * sizeof *edge);
    if (v->values)
        v->values[at] = v->forth.values[from->edges[e]];
    if (reverse)
        edge[width - 1] += (float)v->data->relations;
}

/* Write row r: its entries and reverse entries by column. Of one column, those that go forth come
 * first. Loops have no reverse. */
static void write_row(const struct reversing *v, int64_t r)
{
    int64_t at = v->indptr[r], e = v->forth.indptr[r], b = v->back.indptr[r];
    const int64_t end = v->forth.indptr[r + 1], end_back = v->back.indptr[r + 1];
    while (e < end || b < end_back) {
        const bool forth = b == end_back || (e < end && v->forth.indices[e] <= v->back.indices[b]);
        if (!forth && v->back.indices[b] == r)
            b++;
        else if (forth)
            write_entry(v, at++, &v->forth, e++, false);
        else
            write_entry(v, at++, &v->back, b++, true);
    }
    v->indptr[r + 1] = at;
}

int sl_relations_reverse(struct sl_dataset *data)
{
    struct sl_csr *const a = &data->adjacency;
    struct reversing v = {.data = data, .forth = *a};
    struct sl_block *scratch = NULL;
    const int64_t nnz = a->indptr[a->rows];
    if (2 * data->relations > SL_RELATIONS || 2 * nnz > INT32_MAX)
        return sl_error(SL_ERR_DATA,
                        "%s: %" PRId64 " entries of %" PRId64
                        " relations with as many reverse ones (expected at most 2^31 and %d)",
                        data->path, nnz, data->relations, SL_RELATIONS);
    int32_t *number = sl_block_array(&scratch, nnz, sizeof *number);
    for (int64_t e = 0; number && e < nnz; e++)
        number[e] = (int32_t)e;
    v.forth.edges = number;
    int rc = number ? sl_edge_features_number_transpose(a, &scratch, &v.back) : (int)SL_ERR_SYSTEM;
    v.indptr = sl_block_array(&data->blocks, a->rows + 1, sizeof *v.indptr);
    v.indices = sl_block_array(&data->blocks, 2 * nnz, sizeof *v.indices);
    v.edge = sl_block_array(&data->blocks, 2 * nnz, (size_t)data->edge_features * sizeof *v.edge);
    if (a->values)
        v.values = sl_block_array(&data->blocks, 2 * nnz, sizeof *v.values);
    if (!rc && (!v.indptr || !v.indices || !v.edge || (a->values && !v.values)))
        rc = SL_ERR_SYSTEM;
    if (!rc) {
        v.indptr[0] = 0;
        for (int64_t r = 0; r < a->rows; r++)
            write_row(&v, r);
        *a = (struct sl_csr){a->rows, a->cols, v.indptr, v.indices, v.values, NULL};
        data->edge = v.edge;
        data->relations *= 2;
    }
    sl_block_free_all(&scratch);
    return rc;
}

/* ---- Numbers of tiles ---- */

int sl_relations_count(struct sl_source *source)
{
    enum { LONG = 256 };
    struct sl_source_relations *const r = &source->relations;
    const int64_t rows = source->adjacency.indptr.count - 1;
    int64_t extent[2], count = 0, at = 0;
    if (r->indptr.data)
        return SL_OK;
    r->long_row = r->count > LONG ? r->count : LONG;
    for (int64_t v = 0; v < rows; v++) {
        const int rc = sl_part_find_row(&source->adjacency, v, extent);
        if (rc)
            return rc;
        count += extent[1] - extent[0] > r->long_row;
    }
    int64_t *row = sl_block_array(&source->blocks, count, sizeof *row);
    int32_t *counts = sl_block_array(&source->blocks, count, (size_t)r->count * sizeof *counts);
    if (!row || !counts)
        return SL_ERR_SYSTEM;
    memset(counts, 0, (size_t)(count * r->count) * sizeof *counts);
    for (int64_t v = 0; v < rows; v++) {
        (void)sl_part_find_row(&source->adjacency, v, extent); /* checked above */
        if (extent[1] - extent[0] <= r->long_row)
            continue;
        row[at] = v;
        for (int64_t e = extent[0]; e < extent[1]; e++)
            counts[at * r->count + relation_of(&source->edge_features, e)]++;
        at++;
    }
    r->indptr = source->adjacency.indptr;
    r->long_rows = count;
    r->row = row;
    r->counts = counts;
    return SL_OK;
}

int sl_relations_own(struct sl_source *selection)
{
    struct sl_stored_csr *const a = &selection->adjacency;
    const int64_t entries = a->indices.count;
    float *own = sl_block_array(&selection->blocks, entries, sizeof *own);
    if (!own)
        return SL_ERR_SYSTEM;
    for (int64_t e = 0; e < entries; e++)
        own[e] = (float)relation_of(&selection->edge_features, sl_part_edge(a, e));
    selection->edge_features =
        sl_npy_view(selection->edge_features.name, SL_NPY_FLOAT32, 2, entries, 1, own);
    a->edges = (struct sl_npy){0};
    selection->relations = (struct sl_source_relations){.count = selection->relations.count};
    return sl_relations_count(selection);
}

/* Return the place of the last of `count` ascending numbers that is at most `most`: of `row`, or,
 * where it is NULL, of `indptr`. */
static int64_t find_last(const struct sl_npy *indptr, const int64_t *row, int64_t count,
                         int64_t most)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if ((row ? row[middle] : sl_npy_integer(indptr, middle)) <= most)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Define a function that returns how many of `count` items equal `item`. */
#define COUNT_OF(type)                                                       \
    static int64_t count_##type(const void *items, int64_t count, type item) \
    {                                                                        \
        const type *const at = items;                                        \
        int64_t equal = 0;                                                   \
        for (int64_t e = 0; e < count; e++)                                  \
            equal += at[e] == item;                                          \
        return equal;                                                        \
    }
COUNT_OF(uint8_t)
COUNT_OF(int32_t)
COUNT_OF(float)

/* Return how many of the entries first … end - 1 have the relation. */
static int64_t count_relation(const struct sl_npy *stored, int64_t first, int64_t end,
                              int64_t relation)
{
    const bool alone = stored->shape[1] == 1;
    const void *const whole = alone ? sl_npy_find(stored, SL_NPY_INT32, first) : NULL,
                      *const real = alone ? sl_npy_find(stored, SL_NPY_FLOAT32, first) : NULL;
    int64_t count = 0;
    if (alone && stored->kind == 'u' && stored->item_bytes == 1)
        return count_uint8_t(stored->data + first, end - first, (uint8_t)relation);
    if (whole)
        return count_int32_t(whole, end - first, (int32_t)relation);
    if (real)
        return count_float(real, end - first, (float)relation);
    for (int64_t e = first; e < end; e++)
        count += relation_of(stored, e) == relation;
    return count;
}

void sl_relations_read(const struct sl_source *source, uint32_t number, float *features)
{
    const struct sl_source_relations *const r = &source->relations;
    const int64_t relation = relation_of(&source->edge_features, number),
                  v = find_last(&r->indptr, NULL, r->indptr.count - 1, number),
                  first = sl_npy_integer(&r->indptr, v), end = sl_npy_integer(&r->indptr, v + 1);
    const int64_t count =
        end - first > r->long_row
            ? r->counts[find_last(NULL, r->row, r->long_rows, v) * r->count + relation]
            : count_relation(&source->edge_features, first, end, relation);
    features[SL_RELATION] = (float)relation;
    features[SL_RELATION_FACTOR] = 1.0f / (float)count;
}
