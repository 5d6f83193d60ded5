/* Read some rows of a dataset, in place where they are neighbours in a file of the right type. */
#include "data/part.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "data/csr.h"
#include "data/feature_form.h"
#include "data/labels.h"
#include "data/projection.h"
#include "data/relations.h"

/* Data of the steps of reading. */
struct reading {
    const struct sl_source *source;
    struct sl_part *part;
    int64_t first, rows;
};

static void count_bytes(const struct reading *r, const struct sl_npy *npy, int64_t items)
{
    r->part->bytes_read += items * (int64_t)npy->item_bytes;
}

/* Read items of neighbouring rows; `out` as for sl_npy_take. */
static int take(const struct reading *r, const struct sl_npy *npy, enum sl_npy_type type,
                int64_t first, int64_t count, struct sl_block **blocks, void *out)
{
    count_bytes(r, npy, count);
    return sl_npy_take(npy, type, first, count, blocks, out);
}

/* A pass of all cores over rows that the order takes from anywhere. */
struct pass {
    const struct reading *r;
    int (*row)(const struct pass *pass, int64_t k); /* reads row k; returns 0 or an error */
    const struct sl_npy *npy;                       /* array, type and width for read_rows */
    enum sl_npy_type type;
    int64_t width;
    const int32_t *from; // (rows): rows of the array
    char *rows;
    const struct sl_stored_csr *csr; /* matrix and result for gather_csr */
    int64_t *start;                  // (rows): the first entry in the file
    int64_t *indptr;                 // (rows + 1)
    int32_t *indices, *edges;
    float *values;
    atomic_bool failed;
};

static void pass_rows(void *context, int64_t begin, int64_t end)
{
    struct pass *pass = context;
    for (int64_t k = begin; k < end; k++)
        if (pass->row(pass, k))
            atomic_store(&pass->failed, true);
}

/* Run `row` on all rows. Return the error of the first row that has one, as one core alone would
 * find it. */
static int pass_all(struct pass *pass, int (*row)(const struct pass *pass, int64_t k))
{
    int rc = SL_OK;
    pass->row = row;
    sl_parallel_for_ranges(sl_parallel_threads(0), pass->r->rows, pass_rows, pass);
    for (int64_t k = 0; !rc && atomic_load(&pass->failed) && k < pass->r->rows; k++)
        rc = row(pass, k);
    return rc;
}

/* ---- Matrices ---- */

/* Return 0 if row v of the file, with the entries begin … end - 1, can be read, else SL_ERR_DATA.
 */
static int check_extent(const struct sl_stored_csr *csr, int64_t v, int64_t begin, int64_t end)
{
    const struct sl_npy *indptr = &csr->indptr, *indices = &csr->indices;
    if (v == 0 && begin != 0)
        return sl_error(SL_ERR_DATA, "%s: starts at %" PRId64 ", expected 0", indptr->name, begin);
    if (end < begin)
        return sl_error(SL_ERR_DATA,
                        "%s: falls from %" PRId64 " to %" PRId64 " at row %" PRId64
                        ", expected ascending",
                        indptr->name, begin, end, v);
    if (v == indptr->count - 2 && end != indices->count)
        return sl_error(SL_ERR_DATA,
                        "%s: ends at %" PRId64 ", expected %" PRId64 ", the length of %s",
                        indptr->name, end, indices->count, indices->name);
    if (begin < 0 || end > indices->count)
        return sl_error(SL_ERR_DATA,
                        "%s: row %" PRId64 " is %" PRId64 " to %" PRId64
                        ", expected a part of 0 to %" PRId64 ", the length of %s",
                        indptr->name, v, begin, end, indices->count, indices->name);
    return SL_OK;
}

/* Return whether the matrix is the adjacency, whose edge features are read. */
static bool reads_edges(const struct reading *r, const struct sl_stored_csr *csr)
{
    return r->source->reads_edges && csr == &r->source->adjacency;
}

/* Write the rows of edge features that `count` entries from `from` on have. */
static void copy_edges(const struct sl_stored_csr *csr, int64_t from, int64_t count, int32_t *edges)
{
    for (int64_t e = 0; e < count; e++)
        edges[e] = (int32_t)sl_part_edge(csr, from + e);
}

static int take_edges(const struct sl_stored_csr *csr, int64_t begin, int64_t nnz,
                      struct sl_block **blocks, struct sl_csr *out)
{
    int32_t *edges = sl_block_array(blocks, nnz, sizeof *edges);
    if (!edges)
        return SL_ERR_SYSTEM;
    copy_edges(csr, begin, nnz, edges);
    out->edges = edges;
    return SL_OK;
}

/* Take rows that are neighbours in the file. */
static int take_csr(const struct reading *r, const struct sl_stored_csr *csr,
                    struct sl_block **blocks, struct sl_csr *out)
{
    const int64_t *stored;
    int rc = take(r, &csr->indptr, SL_NPY_INT64, r->first, r->rows + 1, blocks, &stored);
    int64_t *indptr = sl_block_array(blocks, r->rows + 1, sizeof *indptr);
    if (!rc && !indptr)
        rc = SL_ERR_SYSTEM;
    for (int64_t k = 0; !rc && k < r->rows; k++)
        rc = check_extent(csr, r->first + k, stored[k], stored[k + 1]);
    if (rc)
        return rc;
    for (int64_t k = 0; k <= r->rows; k++)
        indptr[k] = stored[k] - stored[0];
    out->indptr = indptr;
    const int64_t begin = r->rows ? stored[0] : 0, nnz = indptr[r->rows];
    rc = take(r, &csr->indices, SL_NPY_INT32, begin, nnz, blocks, &out->indices);
    if (!rc && csr->values.data)
        rc = take(r, &csr->values, SL_NPY_FLOAT32, begin, nnz, blocks, &out->values);
    return rc || !reads_edges(r, csr) ? rc : take_edges(csr, begin, nnz, blocks, out);
}

int sl_part_find_row(const struct sl_stored_csr *csr, int64_t v, int64_t extent[2])
{
    const int64_t *stored = sl_npy_find(&csr->indptr, SL_NPY_INT64, v);
    int rc = SL_OK;
    if (stored) {
        extent[0] = stored[0];
        extent[1] = stored[1];
    } else {
        rc = sl_npy_copy(&csr->indptr, SL_NPY_INT64, v, 2, extent);
    }
    if (!rc)
        rc = check_extent(csr, v, extent[0], extent[1]);
    if (!rc && csr->start) {
        extent[1] += csr->start[v] - extent[0];
        extent[0] = csr->start[v];
    }
    return rc;
}

/* Find row k of this rank in the file, and store its length in the result. */
static int find_row(const struct pass *pass, int64_t k)
{
    const int64_t v = sl_source_vertex(pass->r->source, pass->r->first + k);
    int64_t extent[2];
    const int rc = sl_part_find_row(pass->csr, v, extent);
    if (rc)
        return rc;
    pass->start[k] = extent[0];
    pass->indptr[k + 1] = extent[1] - extent[0];
    return SL_OK;
}

static int copy_row(const struct pass *pass, int64_t k)
{
    const struct sl_stored_csr *csr = pass->csr;
    const int64_t to = pass->indptr[k], count = pass->indptr[k + 1] - to, from = pass->start[k];
    const int rc = sl_npy_copy(&csr->indices, SL_NPY_INT32, from, count, pass->indices + to);
    if (pass->edges)
        copy_edges(csr, from, count, pass->edges + to);
    return rc || !pass->values
               ? rc
               : sl_npy_copy(&csr->values, SL_NPY_FLOAT32, from, count, pass->values + to);
}

/* Gather rows that the order takes from anywhere. */
static int gather_csr(const struct reading *r, const struct sl_stored_csr *csr,
                      struct sl_block **blocks, struct sl_csr *out)
{
    struct pass pass = {.r = r, .csr = csr};
    pass.start = sl_block_array(blocks, r->rows, sizeof *pass.start);
    pass.indptr = sl_block_array(blocks, r->rows + 1, sizeof *pass.indptr);
    int rc = pass.start && pass.indptr ? pass_all(&pass, find_row) : (int)SL_ERR_SYSTEM;
    if (rc)
        return rc;
    pass.indptr[0] = 0;
    for (int64_t k = 0; k < r->rows; k++)
        pass.indptr[k + 1] += pass.indptr[k];
    const int64_t nnz = pass.indptr[r->rows];
    pass.indices = sl_block_array(blocks, nnz, sizeof *pass.indices);
    if (csr->values.data)
        pass.values = sl_block_array(blocks, nnz, sizeof *pass.values);
    if (reads_edges(r, csr))
        pass.edges = sl_block_array(blocks, nnz, sizeof *pass.edges);
    if (!pass.indices || (csr->values.data && !pass.values) || (reads_edges(r, csr) && !pass.edges))
        return SL_ERR_SYSTEM;
    rc = pass_all(&pass, copy_row);
    count_bytes(r, &csr->indptr, 2 * r->rows);
    count_bytes(r, &csr->indices, nnz);
    count_bytes(r, &csr->values, nnz);
    out->indptr = pass.indptr;
    out->indices = pass.indices;
    out->values = pass.values;
    out->edges = pass.edges;
    return rc;
}

static int check_columns(const struct reading *r, const struct sl_stored_csr *csr,
                         const struct sl_csr *rows)
{
    int64_t row, entry;
    if (sl_csr_columns_fit(rows, &row, &entry))
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: row %" PRId64 " has column %" PRId32 ", expected 0 to %" PRId64,
                    csr->indices.name, sl_source_vertex(r->source, r->first + row),
                    rows->indices[entry], rows->cols - 1);
}

struct moving {
    int32_t *columns;
    const int32_t *place;
};

static void move_columns(void *context, int64_t begin, int64_t end)
{
    const struct moving *m = context;
    for (int64_t e = begin; e < end; e++)
        m->columns[e] = m->place[m->columns[e]];
}

/* Read rows as they are stored. With `vertices` the columns are vertices: replace them by their
 * places in the order. */
static int read_stored(const struct reading *r, const struct sl_stored_csr *csr, bool vertices,
                       struct sl_block **blocks, struct sl_csr *out)
{
    const int32_t *place = r->source->order.place;
    *out = (struct sl_csr){.rows = r->rows, .cols = csr->cols};
    int rc = place || csr->start ? gather_csr(r, csr, blocks, out) : take_csr(r, csr, blocks, out);
    if (!rc)
        rc = check_columns(r, csr, out);
    if (rc || !place || !vertices)
        return rc;
    /* gathered rows belong to this part alone: their columns may be changed */
    struct moving moving = {(int32_t *)out->indices, place};
    sl_parallel_for_ranges(sl_parallel_threads(0), out->indptr[r->rows], move_columns, &moving);
    return sl_csr_sort_edges(out, moving.columns, (float *)out->values, (int32_t *)out->edges);
}

/* Sort rows with edge features, into new arrays where they are not sorted. SL_ERR_DATA: an entry is
 * there twice. */
static int sort_edges(const struct reading *r, struct sl_block **blocks, struct sl_csr *rows)
{
    int64_t row, entry;
    if (!sl_csr_find_disorder(rows, &row, &entry))
        return SL_OK;
    const int64_t nnz = rows->indptr[rows->rows];
    int32_t *columns = sl_block_array(blocks, nnz, sizeof *columns),
            *edges = sl_block_array(blocks, nnz, sizeof *edges);
    float *values = rows->values ? sl_block_array(blocks, nnz, sizeof *values) : NULL;
    if (!columns || !edges || (rows->values && !values))
        return SL_ERR_SYSTEM;
    memcpy(columns, rows->indices, (size_t)nnz * sizeof *columns);
    memcpy(edges, rows->edges, (size_t)nnz * sizeof *edges);
    if (values)
        memcpy(values, rows->values, (size_t)nnz * sizeof *values);
    *rows = (struct sl_csr){rows->rows, rows->cols, rows->indptr, columns, values, edges};
    const bool several = r->source->relations.count > 0;
    int rc = sl_csr_sort_edges(rows, columns, values, edges);
    if (!rc && several)
        rc = sl_relations_sort(rows, &r->source->edge_features, values, edges, &row, &entry);
    if (rc || (several ? entry < 0 : !sl_csr_find_disorder(rows, &row, &entry)))
        return rc;
    const int64_t v = sl_source_vertex(r->source, r->first + row),
                  u = sl_source_vertex(r->source, columns[entry]);
    return sl_error(SL_ERR_DATA,
                    "%s: row %" PRId64 " has column %" PRId64
                    " twice%s, expected it once, since edges have features",
                    r->source->adjacency.indices.name, v, u, several ? " with one relation" : "");
}

/* Read rows, sort them and merge duplicates. */
static int read_csr(const struct reading *r, const struct sl_stored_csr *csr, bool vertices,
                    struct sl_csr *out, int64_t *merged)
{
    struct sl_block *stored = NULL;
    int rc = read_stored(r, csr, vertices, &stored, out);
    if (!rc && out->edges)
        rc = sort_edges(r, &stored, out);
    const int32_t *as_stored = out->indices;
    if (!rc && !(out->edges && r->source->relations.count > 0)) /* it may have columns twice */
        rc = sl_csr_normalize(out, &r->part->data.blocks, merged);
    if (!rc && out->indices == as_stored)
        sl_block_move(&r->part->data.blocks, &stored);
    sl_block_free_all(&stored);
    return rc;
}

/* ---- Arrays ---- */

static int copy_items(const struct pass *pass, int64_t k)
{
    const int64_t width = pass->width, v = pass->from[k];
    return sl_npy_copy(pass->npy, pass->type, v * width, width,
                       pass->rows + k * width * (int64_t)sl_npy_type_bytes(pass->type));
}

/* Read rows of `width` items: rows `from` (rows) of the array, or, for NULL, neighbouring rows;
 * `out` as for sl_npy_take. */
static int read_rows_from(const struct reading *r, const struct sl_npy *npy, enum sl_npy_type type,
                          int64_t width, const int32_t *from, void *out)
{
    if (!from)
        return take(r, npy, type, r->first * width, r->rows * width, &r->part->data.blocks, out);
    struct pass pass = {.r = r, .npy = npy, .type = type, .width = width, .from = from};
    pass.rows =
        sl_block_array(&r->part->data.blocks, r->rows, (size_t)width * sl_npy_type_bytes(type));
    if (!pass.rows)
        return SL_ERR_SYSTEM;
    memcpy(out, &pass.rows, sizeof pass.rows);
    count_bytes(r, npy, r->rows * width);
    if (npy->fortran_order) /* copies along whole columns */
        return sl_npy_copy_rows(npy, type, from, r->rows, pass.rows);
    return pass_all(&pass, copy_items);
}

static int read_rows(const struct reading *r, const struct sl_npy *npy, enum sl_npy_type type,
                     int64_t width, void *out)
{
    const int32_t *vertex = r->source->order.vertex;
    return read_rows_from(r, npy, type, width, vertex ? vertex + r->first : NULL, out);
}

/* Read dense features; features of a selection are rows of the whole graph's array. */
static int read_dense(const struct reading *r)
{
    const struct sl_source *source = r->source;
    const float **out = &r->part->data.features_dense;
    if (!source->selection.feature_row)
        return read_rows(r, &source->features_dense, SL_NPY_FLOAT32, source->features, out);
    struct sl_block *scratch = NULL;
    int32_t *from = sl_block_array(&scratch, r->rows, sizeof *from);
    for (int64_t k = 0; from && k < r->rows; k++)
        from[k] = (int32_t)sl_source_feature_row(source, r->first + k);
    const int rc = from ? read_rows_from(r, &source->features_dense, SL_NPY_FLOAT32,
                                         source->features, from, out)
                        : (int)SL_ERR_SYSTEM;
    sl_block_free_all(&scratch);
    return rc;
}

/* Read CSR features that are standardised to dense rows: every number of a row may differ from 0.
 */
static int read_expanded(const struct reading *r)
{
    const int64_t width = r->source->features;
    struct sl_csr csr;
    int64_t merged = 0;
    int rc = read_csr(r, &r->source->features_csr, false, &csr, &merged);
    float *x =
        rc ? NULL : sl_block_array(&r->part->data.blocks, r->rows, (size_t)width * sizeof *x);
    if (!x)
        return rc ? rc : (int)SL_ERR_SYSTEM;
    memset(x, 0, (size_t)(r->rows * width) * sizeof *x);
    for (int64_t k = 0; k < r->rows; k++)
        for (int64_t e = csr.indptr[k]; e < csr.indptr[k + 1]; e++)
            x[k * width + csr.indices[e]] = csr.values ? csr.values[e] : 1.0f;
    r->part->data.features_dense = x;
    return SL_OK;
}

static struct reading begin(const struct sl_source *source, int64_t first, int64_t rows,
                            struct sl_part *out);
static int read_features(const struct reading *r);

/* Read the stored rows, and multiply them by the random matrix. */
static int read_projected(const struct reading *r)
{
    const struct sl_source stored = sl_projection_stored(r->source);
    struct sl_part part;
    const struct reading of = begin(&stored, r->part->dense_first, r->part->dense_rows, &part);
    float *x =
        sl_block_array(&r->part->data.blocks, of.rows, (size_t)r->source->features * sizeof *x);
    int rc = x ? read_features(&of) : (int)SL_ERR_SYSTEM;
    if (!rc)
        rc = sl_part_check_features(&stored, &part);
    if (!rc)
        rc = sl_projection_apply(r->source, &part, x);
    r->part->data.features_dense = x;
    r->part->bytes_read += part.bytes_read;
    sl_part_close(&part);
    return rc;
}

static int read_features(const struct reading *r)
{
    const struct sl_source *source = r->source;
    struct sl_dataset *out = &r->part->data;
    int64_t merged = 0;
    if (source->change.projection.columns > 0 && out->feature_form == SL_FEATURES_DENSE)
        return read_projected(r);
    if (sl_features_lie_dense(source)) {
        count_bytes(r, &source->features_dense, r->rows * source->features);
        return sl_features_read_sparse(source, r->first, r->rows, &out->blocks, &out->features_csr);
    }
    if (out->feature_form == SL_FEATURES_CSR)
        return read_csr(r, &source->features_csr, false, &out->features_csr, &merged);
    if (out->feature_form != SL_FEATURES_DENSE)
        return SL_OK;
    struct reading dense = *r;
    dense.first = r->part->dense_first;
    dense.rows = r->part->dense_rows;
    return source->features_dense.data ? read_dense(&dense) : read_expanded(&dense);
}

/* Copy labels that are names, that have NaN for no label, or whose classes have other numbers. */
static int copy_labels(const struct reading *r)
{
    const struct sl_source *source = r->source;
    const struct sl_label_rows rows = {
        source->order.vertex ? source->order.vertex + r->first : NULL, r->first, r->rows};
    int32_t *labels = sl_block_array(&r->part->data.blocks, r->rows, sizeof *labels);
    if (!labels)
        return SL_ERR_SYSTEM;
    r->part->data.labels = labels;
    count_bytes(r, &source->targets.labels, r->rows);
    return sl_labels_copy(&source->targets.labels, &source->targets.label_classes, &rows, labels);
}

static int read_labels(const struct reading *r)
{
    const struct sl_npy *labels = &r->source->targets.labels;
    struct sl_dataset *out = &r->part->data;
    if (!labels->data || out->classes == 0) /* labels that are all -1 mean no labels */
        return SL_OK;
    if (labels->dims == 1 && sl_labels_need_copy(labels, &r->source->targets.label_classes))
        return copy_labels(r);
    return labels->dims == 2 ? read_rows(r, labels, SL_NPY_FLOAT32, out->classes, &out->multilabels)
                             : read_rows(r, labels, SL_NPY_INT32, 1, &out->labels);
}

static int read_original(const struct reading *r)
{
    const struct sl_source *source = r->source;
    if (source->order.original.data)
        return read_rows(r, &source->order.original, SL_NPY_INT64, 1, &r->part->data.original);
    if (!source->order.vertex)
        return SL_OK;
    int64_t *original = sl_block_array(&r->part->data.blocks, r->rows, sizeof *original);
    for (int64_t k = 0; original && k < r->rows; k++)
        original[k] = source->order.vertex[r->first + k];
    r->part->data.original = original;
    return original ? SL_OK : SL_ERR_SYSTEM;
}

/* ---- All of it ---- */

/* Return the form of a part's features: standardised and projected features have no zeros to leave
 * out. */
static enum sl_feature_form form_of_rows(const struct sl_source *source)
{
    const bool full = source->change.moments.mean || source->change.projection.columns > 0;
    return full && source->feature_form == SL_FEATURES_DENSE ? SL_FEATURES_DENSE
                                                             : sl_features_part_form(source);
}

static struct reading begin(const struct sl_source *source, int64_t first, int64_t rows,
                            struct sl_part *out)
{
    *out = (struct sl_part){.first = first, .dense_first = first, .dense_rows = rows};
    out->data = (struct sl_dataset){
        .name = source->name,
        .path = source->path,
        .vertices = source->vertices,
        .features = source->features,
        .classes = source->classes,
        .meaning.class_names = source->targets.class_names,
        .columns.names = source->columns.names,
        .meaning.regression = source->targets.label_kind == SL_LABELS_NUMBERS,
        .feature_form = form_of_rows(source),
        .columns.bag_of_words = source->columns.bag_of_words,
        .merged_edges = source->merged_edges,
        .edge_features = sl_source_edge_numbers(source),
        .relations = source->relations.count,
    };
    return (struct reading){source, out, first, rows};
}

/* Unload mapped pages after copying: rows that an order takes from anywhere share pages with rows
 * of other ranks. Dense rows that are read as CSR, and projected rows, are copies, too. */
static void unload(const struct reading *r)
{
    if (r->source->order.vertex || sl_features_lie_dense(r->source) ||
        r->source->change.projection.columns > 0)
        sl_block_unload(r->source->blocks);
}

static int read_adjacency(struct sl_runtime *rt, const struct reading *r)
{
    struct sl_part *part = r->part;
    int64_t merged = 0;
    sl_progress_phase("edges");
    int rc = read_csr(r, &r->source->adjacency, true, &part->data.adjacency, &merged);
    if (!rc)
        rc = sl_part_check_weights(r->source, part);
    if (!rc)
        rc = sl_part_check_edges(r->source, part);
    if (!rc && part->data.adjacency.edges)
        count_bytes(r, &r->source->edge_features,
                    part->data.adjacency.indptr[r->rows] * part->data.edge_features);
    unload(r);
    rc = sl_runtime_agree(rt, rc);
    if (rc)
        return rc;
    sl_runtime_sum(rt, &merged, 1);
    part->data.merged_edges += merged;
    return sl_part_settle_adjacency(rt, r->source, part);
}

int sl_source_read_adjacency(struct sl_runtime *rt, const struct sl_source *source, int64_t first,
                             int64_t rows, struct sl_part *out)
{
    const struct reading r = begin(source, first, rows, out);
    return read_adjacency(rt, &r);
}

static int read_whole_rows(struct sl_runtime *rt, const struct reading *r)
{
    const struct sl_source *source = r->source;
    struct sl_part *out = r->part;
    int rc = read_adjacency(rt, r);
    if (rc)
        return rc;
    sl_progress_phase("features");
    rc = read_features(r);
    sl_progress_phase("labels");
    if (!rc)
        rc = read_labels(r);
    if (!rc)
        rc = read_original(r);
    if (!rc)
        rc = sl_part_check_vertices(source, out);
    unload(r);
    rc = sl_runtime_agree(rt, rc);
    if (!rc)
        rc = source->splits.split_rule.given ? sl_part_draw_splits(rt, source, out)
                                             : sl_part_read_splits(rt, source, out);
    return rc ? rc : sl_part_check_original(rt, source, out);
}

int sl_source_read(struct sl_runtime *rt, const struct sl_source *source, int64_t first,
                   int64_t rows, struct sl_part *out)
{
    const struct reading r = begin(source, first, rows, out);
    return read_whole_rows(rt, &r);
}

int sl_source_read_all(const struct sl_source *source, int64_t dense_first, int64_t dense_rows,
                       struct sl_part *out)
{
    struct sl_runtime alone = {.ranks = 1};
    const struct reading r = begin(source, 0, source->vertices, out);
    out->dense_first = dense_first;
    out->dense_rows = dense_rows;
    return read_whole_rows(&alone, &r);
}

int sl_part_read_labels(const struct sl_source *source, struct sl_part *out)
{
    const struct sl_source stored = sl_source_as_stored(source);
    const struct reading r = begin(&stored, 0, source->vertices, out);
    out->data.adjacency.rows = source->vertices;
    const int rc = read_labels(&r);
    return rc ? rc : read_original(&r);
}

void sl_part_close(struct sl_part *part)
{
    sl_block_free_all(&part->data.blocks);
    *part = (struct sl_part){0};
}
