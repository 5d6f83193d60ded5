/* Makes the network's input: X or Â·X, sparse or dense. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/aggregate.h"
#include "assembly/making.h"
#include "codelets/bfloat16.h"
#include "codelets/epilogue.h"
#include "core/error.h"
#include "core/temporary.h"
#include "data/columns.h"
#include "data/projection.h"
#include "data/select.h"
#include "graphs/columns.h"

/* A reader of rows of diag(right)·X as sparse rows, whatever X's form. */
struct features {
    const struct sl_making *making;
    enum sl_row_norm norm;
    const double *right; // (rows); NULL: all 1
    int32_t *columns;    // (widest row)
    float *values;
};

static void feature_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                        const float **values)
{
    const struct features *x = context;
    const struct sl_dataset *data = &x->making->part.data;
    const struct sl_csr *csr = &data->features_csr;
    const int64_t k = sl_making_local(x->making, r);
    const float *dense = sl_part_dense(&x->making->part, r);
    int64_t n = 0;
    if (data->feature_form == SL_FEATURES_IDENTITY) {
        x->columns[0] = (int32_t)sl_making_vertex(x->making, k);
        x->values[0] = 1.0f;
        n = 1;
    } else if (data->feature_form == SL_FEATURES_CSR) {
        n = csr->indptr[k + 1] - csr->indptr[k];
        for (int64_t e = 0; e < n; e++) {
            x->columns[e] = csr->indices[csr->indptr[k] + e];
            x->values[e] = csr->values ? csr->values[csr->indptr[k] + e] : 1.0f;
        }
    } else {
        n = data->features;
        for (int64_t e = 0; e < n; e++) {
            x->columns[e] = (int32_t)e;
            x->values[e] = sl_columns_value(&x->making->source.change.moments, e, dense[e]);
        }
    }
    const double factor =
        1.0 / sl_row_norm_of(x->norm, n, x->values) * (x->right ? x->right[k] : 1.0);
    if (factor != 1.0)
        for (int64_t e = 0; e < n; e++)
            x->values[e] = (float)((double)x->values[e] * factor);
    *count = n;
    *columns = x->columns;
    *values = x->values;
}

static void spread_row(enum sl_type type, int64_t count, const int32_t *columns,
                       const float *values, void *row)
{
    for (int64_t e = 0; e < count; e++)
        if (type == SL_BFLOAT16)
            ((uint16_t *)row)[columns[e]] = sl_narrow(values[e]);
        else
            ((float *)row)[columns[e]] = values[e];
}

/* Fill this rank's whole dense rows from a reader of rows. */
static void fill_rows(const struct sl_matrix *matrix, sl_row_function *row, const void *context)
{
    for (int i = 0; i < matrix->tile_rows; i++) {
        const struct sl_tile *tile = sl_matrix_tile(matrix, i, 0);
        const size_t row_bytes = (size_t)tile->ld * tile->element_size;
        for (int64_t r = 0; tile->memory && r < tile->rows; r++) {
            int64_t count;
            const int32_t *columns;
            const float *values;
            row(context, matrix->row_cut[i] + r, &count, &columns, &values);
            spread_row(matrix->type, count, columns, values,
                       (char *)tile->memory + (size_t)r * row_bytes);
        }
    }
}

/* Make a matrix of dense tiles from a reader of rows. */
static int create_dense_input(struct sl_operands *o, struct sl_runtime *rt, enum sl_type type,
                              int64_t width, sl_row_function *row, const void *context,
                              struct sl_input *input)
{
    const struct sl_distribution *d = o->distribution;
    struct sl_matrix whole;
    int code = sl_runtime_agree(rt, sl_distribution_create_whole(rt, d, &whole, type, width));
    if (code)
        return code;
    sl_runtime_touch(whole.slab, whole.slab_bytes);
    fill_rows(&whole, row, context);
    if (d->grid.columns == 1) {
        input->dense = whole;
        return 0;
    }
    code = sl_runtime_agree(rt, sl_distribution_create_rows(rt, d, &input->dense, type, width));
    if (!code && !rt->plans)
        sl_columns_cut(rt, d, &whole, &input->dense,
                       sl_temporary_tags(rt, (int64_t)d->tiles * d->grid.columns));
    sl_matrix_destroy(&whole); /* waits for its readers */
    return code;
}

bool sl_making_can_store(const struct sl_making *m)
{
    const struct sl_distribution *d = m->o->distribution;
    return m->assembly->loads && d->grid.columns == 1 && !d->kind->clones && m->o->row_orders == 1;
}

/* Set the factors of rows that stay in the files to the same values as feature_row. */
static void list_stored(const struct sl_making *m, const struct features *x,
                        struct sl_stored_rows *stored)
{
    const int64_t width = stored->width;
    for (int64_t k = 0; k < stored->rows; k++) {
        const int64_t r = stored->first + k;
        stored->row[k] = (int32_t)sl_source_feature_row(&m->source, r);
        stored->factor[k] = 1.0 / sl_row_norm_of(x->norm, width, sl_part_dense(&m->part, r)) *
                            (x->right ? x->right[sl_making_local(m, r)] : 1.0);
    }
}

static int create_stored_input(struct sl_making *m, int64_t width, const struct features *x)
{
    struct sl_operands *o = m->o;
    const int64_t *own = &m->bounds[m->rt->rank];
    int code = sl_stored_rows_create(&o->stored, &m->source, own[0], own[1] - own[0], width);
    if (!code)
        list_stored(m, x, &o->stored);
    return code ? code
                : sl_distribution_describe_rows(m->rt, o->distribution, &o->input.dense, o->type,
                                                width);
}

/* Return the form of sparse features. If features are full enough, blocks have as many columns as
 * the first-level cache holds rows of weights; rows of weights may be read in slices. Tiles of full
 * features store their transposes for gradients, in blocks of as many rows. A product with the
 * transpose takes less than half the time of a scatter. Features that are aggregated first have
 * more entries than are counted here. GPUs have no such cache. */
static struct sl_sparse_form feature_form(const struct sl_making *m, int64_t width)
{
    enum { CACHE_BYTES = 32 * 1024, SLICE_BYTES = 256, LEAST_ENTRIES = 16 };
    const struct sl_dataset *data = &m->part.data;
    const int64_t rows = data->adjacency.rows,
                  heads = m->assembly->model.heads > 0 ? m->assembly->model.heads : 1,
                  bytes = 4 * sl_padded(m->assembly->model.hidden * heads),
                  cols = CACHE_BYTES / (bytes < SLICE_BYTES ? bytes : SLICE_BYTES);
    int64_t sums[] = {rows,
                      data->feature_form == SL_FEATURES_CSR ? data->features_csr.indptr[rows] : 0};
    sl_runtime_sum(m->readers, sums, 2);
    const bool full =
        m->rt->all_gpus == 0 && cols < width &&
        (double)sums[1] * (double)cols >= (double)LEAST_ENTRIES * (double)sums[0] * (double)width;
    return (struct sl_sparse_form){
        .block_cols = full ? cols : width,
        .has_values = true,
        .mirrored = full && m->assembly->keeps_features && !m->assembly->forward_only,
    };
}

static int create_sparse_input(struct sl_making *m, int64_t width, sl_row_function *row,
                               const void *context, struct sl_input *input)
{
    struct sl_operands *o = m->o;
    const struct sl_partition *p = o->partition;
    const struct sl_sparse_form form = feature_form(m, width);
    int64_t *cut = sl_grid_cut(&o->distribution->grid, width);
    int code = sl_runtime_agree(m->rt, cut ? 0 : SL_ERR_SYSTEM);
    input->sparse = true;
    if (!code)
        code = sl_making_sparse(m, &input->csr,
                                &(struct sl_spread_source){
                                    .first = m->part.first,
                                    .end = m->part.first + m->part.data.adjacency.rows,
                                    .row = row,
                                    .context = context,
                                    .tile_rows = p->tiles,
                                    .tile_cols = o->distribution->grid.columns,
                                    .row_cut = p->row_cut,
                                    .col_cut = cut,
                                    .owner = sl_distribution_dense_owner,
                                    .owner_context = o->distribution,
                                },
                                &form, NULL, NULL);
    free(cut);
    return code;
}

/* Pack this rank's rows of sparse features, to be sent. */
static int pack_features(const struct sl_making *m, const struct features *features,
                         struct sl_block **blocks, struct sl_feature_rows *out)
{
    const struct sl_dataset *data = &m->part.data;
    const int64_t rows = data->adjacency.rows;
    const int64_t nnz =
        data->feature_form == SL_FEATURES_CSR ? data->features_csr.indptr[rows] : rows;
    *out = (struct sl_feature_rows){
        .rows = rows,
        .indptr = sl_block_array(blocks, rows + 1, sizeof *out->indptr),
        .columns = sl_block_array(blocks, nnz, sizeof *out->columns),
        .values = sl_block_array(blocks, nnz, sizeof *out->values),
        .right = m->right,
    };
    if (!out->indptr || !out->columns || !out->values)
        return SL_ERR_SYSTEM;
    out->indptr[0] = 0;
    for (int64_t k = 0; k < rows; k++) {
        int64_t count;
        const int32_t *columns;
        const float *values;
        feature_row(features, m->part.first + k, &count, &columns, &values);
        memcpy(out->columns + out->indptr[k], columns, (size_t)count * sizeof *columns);
        memcpy(out->values + out->indptr[k], values, (size_t)count * sizeof *values);
        out->indptr[k + 1] = out->indptr[k] + count;
    }
    return 0;
}

double sl_operands_aggregated_entries(double n, double nnz, double width, double entries)
{
    return n * width * (1.0 - pow(1.0 - entries / (n * width), nnz / n));
}

bool sl_operands_stay_sparse(int64_t entries, int64_t rows, int64_t width)
{
    return 2 * entries <= rows * width;
}

/* Make the input from rows of Â·X on the host. It is sparse, unless dense takes less memory or X is
 * dense. */
static int create_aggregated_rows(struct sl_making *m, int64_t width, sl_row_function *row,
                                  const void *context)
{
    struct sl_operands *o = m->o;
    const int64_t rows = o->partition->row_cut[o->partition->tiles];
    if (m->source.feature_form != SL_FEATURES_DENSE) {
        const int code = create_sparse_input(m, width, row, context, &o->input);
        if (code || sl_operands_stay_sparse(o->input.csr.nnz, rows, width))
            return code;
        sl_sparse_matrix_destroy(&o->input.csr);
        o->input.sparse = false;
    }
    return create_dense_input(o, m->rt, o->type, width, row, context, &o->input);
}

/* Open the rows of Â·X for sparse features that are spread over the ranks of `rt`. */
static int open_aggregate(struct sl_runtime *rt, const struct sl_making *m,
                          const struct features *features, const int64_t *bounds, int64_t width,
                          struct sl_block **blocks, struct sl_feature_rows *own,
                          struct sl_aggregate *aggregate)
{
    const int code = sl_runtime_agree(rt, pack_features(m, features, blocks, own));
    return code ? code
                : sl_aggregate_open(
                      rt, aggregate,
                      &(struct sl_aggregate_factors){.adjacency = &m->part.data.adjacency,
                                                     .first = m->part.first,
                                                     .loops = m->assembly->loops,
                                                     .left = m->left,
                                                     .own = own,
                                                     .bounds = bounds,
                                                     .width = width});
}

static int create_aggregated_sparse(struct sl_making *m, const struct features *features,
                                    int64_t width)
{
    struct sl_block *blocks = NULL;
    struct sl_feature_rows own;
    struct sl_aggregate aggregate = {0};
    int code = open_aggregate(m->rt, m, features, m->bounds, width, &blocks, &own, &aggregate);
    if (!code)
        code = create_aggregated_rows(m, width, sl_aggregate_row, &aggregate);
    sl_aggregate_close(&aggregate);
    sl_block_free_all(&blocks);
    return code;
}

/* A function that submits tasks that make `out` from x. */
typedef void submit_function(struct sl_operands *o, struct sl_runtime *rt,
                             const struct sl_matrix *x, struct sl_matrix *out);

static int derive_dense(struct sl_operands *o, struct sl_runtime *rt, const struct sl_matrix *x,
                        enum sl_type type, int row_order, submit_function *submit,
                        struct sl_matrix *out)
{
    int code = sl_distribution_create_rows(rt, &o->distribution[row_order], out, type, x->cols);
    code = sl_runtime_agree(rt, code);
    if (!code && !rt->plans)
        submit(o, rt, x, out);
    return code;
}

static void submit_aggregation(struct sl_operands *o, struct sl_runtime *rt,
                               const struct sl_matrix *x, struct sl_matrix *out)
{
    const struct sl_distribution *d = &o->distribution[out->row_order];
    struct sl_row_epilogue left = {.common = SL_EPILOGUE_NONE, .scales = o->scales[out->row_order]};
    left.common.before = SL_ROW_LEFT;
    const struct sl_walk_step step = {.number = -1};
    d->kind->walk(rt, d, &step,
                  &(struct sl_reduction){.reducer = &sl_reduce_sum,
                                         .a = &o->adjacency[out->row_order],
                                         .moved = {x},
                                         .out = {out},
                                         .epilogue = &left});
}

static void submit_conversion(struct sl_operands *o, struct sl_runtime *rt,
                              const struct sl_matrix *x, struct sl_matrix *out)
{
    (void)o;
    for (int t = 0; t < out->tile_rows * out->tile_cols; t++)
        sl_submit_epilogue(rt, NULL, &x->tiles[t], &out->tiles[t]);
}

/* Convert float32 features to the type that training reads. */
static int convert_dense(struct sl_operands *o, struct sl_runtime *rt, struct sl_matrix *x)
{
    struct sl_matrix wide = *x;
    if (o->type == SL_FLOAT32)
        return 0;
    *x = (struct sl_matrix){0};
    const int code = derive_dense(o, rt, &wide, o->type, wide.row_order, submit_conversion, x);
    sl_matrix_destroy(&wide); /* sl_matrix_destroy waits for the tasks that read `wide` */
    return code;
}

/* Make Â·X of dense features in float32, by the tasks of an epoch. Free X unless `keep`. */
static int aggregate_dense(struct sl_operands *o, struct sl_runtime *rt, bool keep)
{
    const int order = o->input.row_order = sl_row_order_after(o->row_orders, 0);
    struct sl_matrix *x = &o->own.dense;
    *x = o->input.dense;
    o->input.dense = (struct sl_matrix){0};
    int code = derive_dense(o, rt, x, SL_FLOAT32, order, submit_aggregation, &o->input.dense);
    if (!code && !rt->plans)
        sl_runtime_wait(rt);
    code = sl_runtime_agree(rt, code); /* from here on, no rank packs messages */
    if (!keep)
        sl_matrix_destroy(x);
    sl_partials_free(&o->partials[order]);
    if (!code && keep)
        code = convert_dense(o, rt, x);
    return code ? code : convert_dense(o, rt, &o->input.dense);
}

/* ---- Â·X from the graph that the dataset was selected from ---- */

/* Rows of this rank and their neighbours in the wider graph, as a dataset of this rank alone. */
struct wider {
    struct sl_selection selection;
    struct sl_making making; /* the making of the selection */
    struct features features;
    int64_t first;   /* first of this rank's rows */
    int32_t *number; // (this rank's rows): row in the selection
    struct sl_block *blocks;
    struct sl_feature_rows rows;   /* sparse features, which `aggregate` reads */
    struct sl_aggregate aggregate; /* with dense features: only its rows of Â */
    double *sum;                   // (width): with dense features
};

/* Return the row of the selection that is `row` of the wider graph. The first rows of the selection
 * are this rank's, by their places in that graph. */
static int32_t find_number(const struct sl_selection *selection, const struct sl_source *from,
                           int64_t row)
{
    int64_t low = 0, high = selection->source.selection.inner - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (sl_source_place(from, selection->row[middle]) < sl_source_place(from, row))
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

static int select_wider(const struct sl_making *m, struct wider *w)
{
    const struct sl_source *from = m->source.selection.aggregated_from;
    const int64_t rows = m->part.data.adjacency.rows;
    int64_t *inner = sl_block_array(&w->blocks, rows, sizeof *inner);
    w->number = sl_block_array(&w->blocks, rows, sizeof *w->number);
    w->first = m->part.first;
    if (!inner || !w->number)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < rows; k++)
        inner[k] =
            m->source.selection
                .aggregated_row[sl_source_vertex(&m->source, m->row ? m->row[k] : w->first + k)];
    const int code =
        sl_select(from, inner, rows, &(struct sl_selection_options){.hops = 1}, &w->selection);
    for (int64_t k = 0; !code && k < rows; k++)
        w->number[k] = find_number(&w->selection, from, inner[k]);
    return code;
}

/* Make a row of Â·X of dense features. Terms are added in double, by ascending column of Â. */
static void sum_dense(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                      const float **values)
{
    const struct wider *w = context;
    const int64_t width = w->making.part.data.features;
    int64_t neighbours;
    const int32_t *neighbour;
    const float *weight;
    memset(w->sum, 0, (size_t)width * sizeof *w->sum);
    sl_adjacency_row(&w->aggregate.rows, w->number[r - w->first], &neighbours, &neighbour, &weight);
    for (int64_t k = 0; k < neighbours; k++) {
        const float *x = w->making.part.data.features_dense + neighbour[k] * width;
        for (int64_t e = 0; e < width; e++)
            w->sum[e] += (double)weight[k] *
                         (double)sl_columns_value(&w->making.source.change.moments, e, x[e]);
    }
    for (int64_t e = 0; e < width; e++)
        w->features.values[e] = (float)w->sum[e];
    *count = width;
    *columns = w->features.columns;
    *values = w->features.values;
}

static void sum_sparse(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                       const float **values)
{
    const struct wider *w = context;
    sl_aggregate_row(&w->aggregate, w->number[r - w->first], count, columns, values);
}

/* Open the rows of Â for dense features. Norms of feature rows become factors of columns.
 * `features` lends its columns and values. */
static int open_dense(struct wider *w, int64_t width)
{
    const struct sl_making *m = &w->making;
    struct sl_adjacency_rows *rows = &w->aggregate.rows;
    w->sum = sl_block_array(&w->blocks, width, sizeof *w->sum);
    if (!w->sum)
        return SL_ERR_SYSTEM;
    for (int64_t e = 0; e < width; e++)
        w->features.columns[e] = (int32_t)e;
    for (int64_t k = 0; k < m->part.data.adjacency.rows; k++)
        m->right[k] /=
            sl_row_norm_of(m->assembly->row_norm, width, m->part.data.features_dense + k * width);
    const int code =
        sl_adjacency_rows_open(rows, &m->part.data.adjacency, m->part.first, m->assembly->loops);
    rows->left = m->left;
    rows->right = m->right;
    return code;
}

static int open_wider(const struct sl_making *m, const struct features *x, int64_t width,
                      struct wider *w)
{
    const bool dense = m->part.data.feature_form == SL_FEATURES_DENSE;
    struct sl_runtime alone = {.ranks = 1};
    *w = (struct wider){.making = {.assembly = m->assembly}, .features = *x};
    w->features.making = &w->making;
    if (m->part.data.adjacency.rows == 0 || (dense && m->rt->plans))
        return 0;
    int code = select_wider(m, w);
    const int64_t rows = w->selection.source.vertices, bounds[] = {0, rows};
    w->making.source = w->selection.source;
    if (!code)
        code = sl_source_read(&alone, &w->making.source, 0, rows, &w->making.part);
    if (!code)
        code = sl_making_diagonals(&w->making);
    m->o->bytes_read += w->making.part.bytes_read;
    if (!code && dense)
        code = open_dense(w, width);
    else if (!code)
        code = open_aggregate(&alone, &w->making, &w->features, bounds, width, &w->blocks, &w->rows,
                              &w->aggregate);
    return code;
}

static void close_wider(struct wider *w)
{
    sl_aggregate_close(&w->aggregate);
    sl_making_close(&w->making);
    sl_selection_free(&w->selection);
    sl_block_free_all(&w->blocks);
}

/* Make the input Â·X from the wider graph, since the dataset may lack neighbours of its rows. */
static int read_aggregated(struct sl_making *m, const struct features *x, int64_t width)
{
    struct sl_operands *o = m->o;
    const bool dense = m->part.data.feature_form == SL_FEATURES_DENSE;
    struct wider w;
    int code = sl_runtime_agree(m->rt, open_wider(m, x, width, &w));
    o->read_aggregated = true;
    if (!code)
        code = dense ? create_dense_input(o, m->rt, o->type, width, sum_dense, &w, &o->input)
                     : create_aggregated_rows(m, width, sum_sparse, &w);
    close_wider(&w);
    return code;
}

/* ---- All of it ---- */

bool sl_operands_can_aggregate(bool whole, const struct sl_distribution *d)
{
    return !d->kind->clones || (whole && d->kind->share(d, false) > 0.0);
}

int sl_making_input(struct sl_making *m, bool aggregate)
{
    struct sl_operands *o = m->o;
    const int64_t width = m->part.data.features;
    const bool dense = m->source.feature_form == SL_FEATURES_DENSE;
    const bool keep = m->assembly->own_weight;
    struct features x = {.making = m, .norm = m->assembly->row_norm};
    aggregate =
        aggregate && sl_operands_can_aggregate(dense || m->source.selection.aggregated_from != NULL,
                                               o->distribution);
    x.columns = malloc((size_t)width * sizeof *x.columns);
    x.values = malloc((size_t)width * sizeof *x.values);
    int code = sl_runtime_agree(
        m->rt,
        x.columns && x.values ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a row of the features"));
    o->input.width = width;
    o->input.aggregated = aggregate;
    if (!code && aggregate && (!dense || m->source.selection.aggregated_from)) {
        code = m->source.selection.aggregated_from ? read_aggregated(m, &x, width)
                                                   : create_aggregated_sparse(m, &x, width);
        x.right = m->right;
        if (!code && keep)
            code = dense ? create_dense_input(o, m->rt, o->type, width, feature_row, &x, &o->own)
                         : create_sparse_input(m, width, feature_row, &x, &o->own);
    } else if (!code) {
        x.right = m->assembly->alone_first ? NULL : m->right;
        if (!dense)
            code = create_sparse_input(m, width, feature_row, &x, &o->input);
        else if (!aggregate && sl_making_can_store(m))
            code = create_stored_input(m, width, &x);
        else
            code = create_dense_input(o, m->rt, aggregate ? SL_FLOAT32 : o->type, width,
                                      feature_row, &x, &o->input);
        code = sl_runtime_agree(m->rt, code);
        if (!code && aggregate)
            code = aggregate_dense(o, m->rt, keep);
    }
    free(x.columns);
    free(x.values);
    return code;
}
