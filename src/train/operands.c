#include "train/operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "core/error.h"
#include "core/spread.h"
#include "core/temporary.h"
#include "data/csr.h"
#include "graphs/columns.h"
#include "train/adjacency_rows.h"
#include "train/aggregate.h"
#include "train/copies.h"
#include "train/edge_shares.h"

/* What the steps of making the tiles share: this rank's part of the dataset, and whose rows are
 * where. */
struct making {
    struct sl_operands *o;
    struct sl_runtime *rt;
    const struct sl_config *config;
    int row_order; /* of the rows under way, with what follows from it: */
    struct sl_source source;
    struct sl_part part;
    int64_t *bounds;      // (ranks + 1): rank r has the rows bounds[r] … bounds[r + 1] - 1
    double *left, *right; // (rows): the diagonals of Â
    int32_t *diagonal;    // (rows): of a vertex-cut: the columns of I, -1 for none; else NULL
};

static const struct sl_partition *partition_of(const struct making *m)
{
    return &m->o->partition[m->row_order];
}

static const struct sl_distribution *distribution_of(const struct making *m)
{
    return &m->o->distribution[m->row_order];
}

/* That of the columns of the adjacency. */
static int other_order(const struct making *m)
{
    return sl_row_order_after(m->o->row_orders, m->row_order);
}

/* The part's own number of row r of the graph. */
static int64_t local(const struct making *m, int64_t r)
{
    return r - m->part.first;
}

/* The vertex of the dataset that row k of the part is, whatever its order. */
static int64_t vertex_of(const struct making *m, int64_t k)
{
    return m->part.data.original ? m->part.data.original[k] : m->part.first + k;
}

/* ---- The adjacency ---- */

/* What divides row k of S: its sum, or the number of its entries. */
static double row_divisor(const struct making *m, enum sl_norm norm, int64_t k)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const int64_t count = a->indptr[k + 1] - a->indptr[k] + sl_config_loops(m->config);
    double degree = sl_config_loops(m->config);
    if (norm == SL_NORM_NONE)
        return 1.0;
    if (norm == SL_NORM_COUNT) /* nothing is divided by 1 where there is nothing */
        return count ? (double)count : 1.0;
    for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
        degree += a->values ? (double)a->values[e] : 1.0;
    return degree;
}

/* The diagonals of Â: D^-1/2 on both sides, or D^-1 on the left. */
static int create_diagonals(struct making *m)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const enum sl_norm norm = sl_config_norm(m->config);
    m->left = malloc((size_t)(a->rows + 1) * sizeof *m->left);
    m->right = malloc((size_t)(a->rows + 1) * sizeof *m->right);
    if (!m->left || !m->right)
        return sl_error(SL_ERR_SYSTEM, "no memory for the degrees of %lld vertices",
                        (long long)a->rows);
    for (int64_t k = 0; k < a->rows; k++) {
        const double degree = row_divisor(m, norm, k);
        if (!(degree > 0.0))
            return sl_error(
                SL_ERR_DATA,
                "%s: the edge weights of vertex %lld and its self-loop sum to %g, which cannot "
                "normalise the adjacency (expected a positive sum)",
                m->part.data.path, (long long)vertex_of(m, k), degree);
        m->left[k] = norm == SL_NORM_SYM ? 1.0 / sqrt(degree) : 1.0 / degree;
        m->right[k] = norm == SL_NORM_SYM ? m->left[k] : 1.0;
    }
    return 0;
}

static int create_facts(struct making *m)
{
    const struct sl_partition *p = partition_of(m);
    struct sl_tile *facts = m->o->facts[m->row_order] = calloc((size_t)p->tiles, sizeof *facts);
    if (!facts)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d small tiles", p->tiles);
    for (int i = 0; i < p->tiles; i++) {
        const int64_t rows = p->row_cut[i + 1] - p->row_cut[i];
        if (sl_tile_create(m->rt, &facts[i], SL_ROW_FACTS, rows, sizeof(float),
                           sl_distribution_whole_owner(distribution_of(m), i, 0)))
            return SL_ERR_SYSTEM;
        float *fact = facts[i].memory;
        for (int64_t r = 0; fact && r < rows; r++) {
            const int64_t k = local(m, p->row_cut[i] + r);
            const double left = m->left[k], right = m->right[k];
            ((uint32_t *)fact)[SL_ROW_VERTEX * rows + r] = (uint32_t)vertex_of(m, k);
            fact[SL_ROW_LEFT * rows + r] = (float)left;
            fact[SL_ROW_RIGHT * rows + r] = (float)right;
            fact[SL_ROW_BOTH * rows + r] = (float)(left * right);
            fact[SL_ROW_INVERSE_LEFT * rows + r] = (float)(1.0 / left);
            fact[SL_ROW_INVERSE_RIGHT * rows + r] = (float)(1.0 / right);
        }
    }
    return 0;
}

/* A sparse matrix whose rows `row` reads, this rank's own, out of which the tiles of other ranks
 * may be; with `halo` the adjacency or its transpose. */
static int create_sparse(struct making *m, struct sl_sparse_matrix *matrix,
                         const struct sl_spread_source *source, int64_t block_cols, bool has_values,
                         sl_span_function *span, struct sl_halo *halo)
{
    const struct sl_distribution *d = distribution_of(m);
    const bool own = !source->transposed && d->grid.columns * d->grid.layers == 1;
    struct sl_spread spread = {0};
    int code = own ? 0 : sl_spread_create(m->rt, source, &spread);
    sl_row_function *row = own ? source->row : sl_spread_row;
    const void *context = own ? source->context : &spread;
    if (!code && halo)
        code = sl_halo_create(m->rt, d, sl_operands_row_bytes(&m->source, m->config), block_cols,
                              has_values, row, context, halo, matrix);
    else if (!code)
        code = sl_sparse_matrix_create(m->rt, matrix, source->tile_rows, source->row_cut,
                                       source->tile_cols, source->col_cut, block_cols, has_values,
                                       row, context, source->owner, span, source->owner_context);
    sl_spread_free(&spread);
    return code;
}

/* A with its columns in the second order, and the columns of I. */
static int turn_columns(const struct making *m, struct sl_block **blocks, struct sl_csr *a,
                        const int32_t **diagonal)
{
    const struct sl_source *source = &m->source;
    const int64_t nnz = a->indptr[a->rows];
    int32_t *columns = sl_block_array(blocks, nnz, sizeof *columns);
    int32_t *own = sl_block_array(blocks, a->rows, sizeof *own);
    if (!columns || !own)
        return SL_ERR_SYSTEM;
    for (int64_t e = 0; e < nnz; e++)
        columns[e] = source->second_place[source->vertex[a->indices[e]]];
    for (int64_t k = 0; k < a->rows; k++)
        own[k] = source->second_place[source->vertex[m->part.first + k]];
    int64_t merged = 0; /* a permutation puts no two entries into one place */
    a->indices = columns;
    *diagonal = own;
    return sl_csr_normalize(a, blocks, &merged);
}

/* The tiles of S, with rows in this order, or of its transpose, with columns in this order,
 * from this rank's rows of A. */
static int create_adjacency(struct making *m, const struct sl_csr *a, const int32_t *diagonal,
                            bool transposed)
{
    struct sl_operands *o = m->o;
    const int rows_in = transposed ? other_order(m) : m->row_order;
    const int columns_in = transposed ? m->row_order : other_order(m);
    const struct sl_partition *p = partition_of(m);
    struct sl_adjacency_rows rows;
    int code = sl_runtime_agree(
        m->rt, sl_adjacency_rows_open(&rows, a, m->part.first, sl_config_loops(m->config)));
    rows.diagonal = diagonal;
    const struct sl_spread_source source = {
        .first = m->part.first,
        .end = m->part.first + a->rows,
        .row = sl_adjacency_row,
        .context = &rows,
        .transposed = transposed,
        .tile_rows = p->tiles,
        .tile_cols = p->tiles,
        .row_cut = o->partition[rows_in].row_cut,
        .col_cut = o->partition[columns_in].row_cut,
        .owner = sl_distribution_sparse_owner,
        .owner_context = &o->distribution[rows_in],
    };
    if (!code)
        code = create_sparse(m, transposed ? &o->transposed[rows_in] : &o->adjacency[rows_in],
                             &source, p->block_cols, a->values != NULL,
                             sl_config_chooses(m->config) ? NULL : sl_distribution_span,
                             o->distribution->halo ? &o->halo[transposed] : NULL);
    sl_adjacency_rows_close(&rows);
    return code;
}

static int create_adjacencies(struct making *m)
{
    struct sl_csr a = m->part.data.adjacency;
    struct sl_block *blocks = NULL;
    const int32_t *diagonal = m->diagonal;
    int code = 0;
    if (m->source.second_place)
        code = sl_runtime_agree(m->rt, turn_columns(m, &blocks, &a, &diagonal));
    if (!code)
        code = create_adjacency(m, &a, diagonal, false);
    if (!code && !m->part.data.symmetric)
        code = create_adjacency(m, &a, diagonal, true);
    sl_block_free_all(&blocks);
    return code;
}

/* ---- Features ---- */

/* Rows of diag(right)·X as sparse rows, whatever its form. */
struct features {
    const struct making *making;
    const double *right; // (rows), or NULL: all 1
    int32_t *columns;    // (widest row)
    float *values;
};

static void feature_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                        const float **values)
{
    const struct features *x = context;
    const struct sl_dataset *data = &x->making->part.data;
    const struct sl_csr *csr = &data->features_csr;
    const int64_t k = local(x->making, r);
    int64_t n = 0;
    double norm = 0.0;
    if (data->feature_form == SL_FEATURES_IDENTITY) {
        x->columns[0] = (int32_t)vertex_of(x->making, k);
        x->values[0] = 1.0f;
        n = 1;
        norm = 1.0;
    } else if (data->feature_form == SL_FEATURES_CSR) {
        n = csr->indptr[k + 1] - csr->indptr[k];
        for (int64_t e = 0; e < n; e++) {
            x->columns[e] = csr->indices[csr->indptr[k] + e];
            x->values[e] = csr->values ? csr->values[csr->indptr[k] + e] : 1.0f;
            norm += fabs((double)x->values[e]);
        }
    } else {
        n = data->features;
        for (int64_t e = 0; e < n; e++) {
            x->columns[e] = (int32_t)e;
            x->values[e] = data->features_dense[k * n + e];
            norm += fabs((double)x->values[e]);
        }
    }
    const bool normalize = x->making->config->normalize_features;
    const double factor =
        (normalize && norm > 0.0 ? 1.0 / norm : 1.0) * (x->right ? x->right[k] : 1.0);
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

/* This rank's rows of any kind, dense and whole. */
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

/* A matrix of dense tiles from rows of any kind, as the input. */
static int create_dense_input(struct sl_operands *o, struct sl_runtime *rt, enum sl_type type,
                              int64_t width, sl_row_function *row, const void *context)
{
    const struct sl_distribution *d = o->distribution;
    struct sl_matrix whole;
    int code = sl_runtime_agree(rt, sl_distribution_create_whole(rt, d, &whole, type, width));
    if (code)
        return code;
    sl_runtime_touch(rt, whole.slab, whole.slab_bytes);
    fill_rows(&whole, row, context);
    if (d->grid.columns == 1) {
        o->input.dense = whole;
        return 0;
    }
    code = sl_runtime_agree(rt, sl_distribution_create_rows(rt, d, &o->input.dense, type, width));
    if (!code && !rt->plans)
        sl_columns_cut(rt, d, &whole, &o->input.dense,
                       sl_temporary_tags(rt, (int64_t)d->tiles * d->grid.columns));
    sl_matrix_destroy(&whole); /* waits for the tasks and messages that read it */
    return code;
}

static int create_sparse_input(struct making *m, int64_t width, sl_row_function *row,
                               const void *context, struct sl_input *input)
{
    struct sl_operands *o = m->o;
    const struct sl_partition *p = o->partition;
    int64_t *cut = sl_grid_cut(&o->distribution->grid, width);
    int code = sl_runtime_agree(m->rt, cut ? 0 : SL_ERR_SYSTEM);
    input->sparse = true;
    if (!code)
        code = create_sparse(m, &input->csr,
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
                             width, true, NULL, NULL);
    free(cut);
    return code;
}

/* This rank's rows of sparse features, to send. */
static int pack_features(const struct making *m, const struct features *features,
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

/* Â·X of sparse features, made on the host: sparse, or dense where that takes less memory. */
static int create_aggregated_sparse(struct making *m, const struct features *features,
                                    int64_t width)
{
    struct sl_operands *o = m->o;
    struct sl_block *blocks = NULL;
    struct sl_feature_rows own;
    struct sl_aggregate aggregate = {0};
    int code = sl_runtime_agree(m->rt, pack_features(m, features, &blocks, &own));
    if (!code)
        code = sl_aggregate_open(m->rt, &aggregate, &m->part.data.adjacency, m->part.first,
                                 sl_config_loops(m->config), m->left, &own, m->bounds, width);
    if (!code)
        code = create_sparse_input(m, width, sl_aggregate_row, &aggregate, &o->input);
    const int64_t rows = o->partition->row_cut[o->partition->tiles];
    if (!code && 2 * o->input.csr.nnz > rows * width) {
        sl_sparse_matrix_destroy(&o->input.csr);
        o->input.sparse = false;
        code = create_dense_input(o, m->rt, o->type, width, sl_aggregate_row, &aggregate);
    }
    sl_aggregate_close(&aggregate);
    sl_block_free_all(&blocks);
    return code;
}

/* OUT from X. */
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
    struct sl_row_epilogue left = {.common = SL_EPILOGUE_NONE, .facts = o->facts[out->row_order]};
    left.common.before = SL_ROW_LEFT;
    const struct sl_moment moment = {.number = -1};
    d->kind->aggregate(rt, d, &moment, &o->adjacency[out->row_order], x, &left, NULL, out);
}

static void submit_conversion(struct sl_operands *o, struct sl_runtime *rt,
                              const struct sl_matrix *x, struct sl_matrix *out)
{
    (void)o;
    for (int t = 0; t < out->tile_rows * out->tile_cols; t++)
        sl_submit_epilogue(rt, NULL, &x->tiles[t], &out->tiles[t]);
}

/* Of the features' type, for training. */
static int convert_dense(struct sl_operands *o, struct sl_runtime *rt, struct sl_matrix *x)
{
    struct sl_matrix wide = *x;
    if (o->type == SL_FLOAT32)
        return 0;
    *x = (struct sl_matrix){0};
    const int code = derive_dense(o, rt, &wide, o->type, wide.row_order, submit_conversion, x);
    sl_matrix_destroy(&wide); /* waits for the tasks that read it */
    return code;
}

/* Â·X of dense features, by the same tasks as in an epoch, in float32; X goes, unless it is kept.
 */
static int aggregate_dense(struct sl_operands *o, struct sl_runtime *rt, bool keep)
{
    const int order = o->input.row_order = sl_row_order_after(o->row_orders, 0);
    struct sl_matrix *x = &o->own.dense;
    *x = o->input.dense;
    o->input.dense = (struct sl_matrix){0};
    int code = derive_dense(o, rt, x, SL_FLOAT32, order, submit_aggregation, &o->input.dense);
    if (!keep)
        sl_matrix_destroy(x); /* waits for the tasks and messages that read it */
    sl_partials_free(&o->partials[order]);
    if (!code && keep)
        code = convert_dense(o, rt, x);
    return code ? code : convert_dense(o, rt, &o->input.dense);
}

/* Whether Â·X can be made once: of a vertex-cut, of dense features, with all copies. */
static bool can_aggregate(const struct making *m)
{
    const bool dense = m->part.data.feature_form == SL_FEATURES_DENSE;
    return !sl_config_vertex_cut(m->config) ||
           (dense && sl_config_delay(m->config) != SL_DELAY_NEVER);
}

/* In the first order, or, where dense features are aggregated, in the other one. */
static int create_input(struct making *m, bool aggregate)
{
    struct sl_operands *o = m->o;
    const int64_t width = m->part.data.features;
    const bool dense = m->part.data.feature_form == SL_FEATURES_DENSE;
    const bool keep = !sl_config_loops(m->config); /* the vertex has a weight of its own */
    struct features x = {.making = m};
    aggregate = aggregate && can_aggregate(m);
    x.columns = malloc((size_t)width * sizeof *x.columns);
    x.values = malloc((size_t)width * sizeof *x.values);
    int code = sl_runtime_agree(
        m->rt,
        x.columns && x.values ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a row of the features"));
    o->input.width = width;
    o->input.aggregated = aggregate;
    if (!code && aggregate && !dense) {
        code = create_aggregated_sparse(m, &x, width);
        x.right = m->right;
        if (!code && keep)
            code = create_sparse_input(m, width, feature_row, &x, &o->own);
    } else if (!code) {
        x.right = m->right;
        code = dense ? create_dense_input(o, m->rt, aggregate ? SL_FLOAT32 : o->type, width,
                                          feature_row, &x)
                     : create_sparse_input(m, width, feature_row, &x, &o->input);
        code = sl_runtime_agree(m->rt, code);
        if (!code && aggregate)
            code = aggregate_dense(o, m->rt, keep);
    }
    free(x.columns);
    free(x.values);
    return code;
}

/* ---- Targets ---- */

static void mark_split(const struct making *m, const struct sl_index_set *set, enum sl_split split,
                       int32_t *split_of)
{
    for (int64_t k = 0; k < set->count; k++)
        split_of[local(m, set->ids[k])] = split;
}

static int create_target(struct making *m, int i, const int32_t *split_of)
{
    const struct sl_partition *p = partition_of(m);
    const int32_t *labels = m->part.data.labels;
    const int64_t rows = p->row_cut[i + 1] - p->row_cut[i], first = local(m, p->row_cut[i]);
    struct sl_tile *tile = &m->o->target[m->row_order][i];
    const int code = sl_tile_create(m->rt, tile, rows, 2, sizeof(int32_t),
                                    sl_distribution_whole_owner(distribution_of(m), i, 0));
    int32_t *target = tile->memory;
    for (int64_t r = 0; target && r < rows; r++) {
        target[2 * r] = labels ? labels[first + r] : -1;
        target[2 * r + 1] = split_of[first + r];
    }
    return code;
}

static int create_targets(struct making *m)
{
    struct sl_operands *o = m->o;
    const struct sl_dataset *data = &m->part.data;
    const int tiles = partition_of(m)->tiles;
    int32_t *split_of = calloc((size_t)data->adjacency.rows + 1, sizeof *split_of);
    struct sl_tile *target = o->target[m->row_order] = calloc((size_t)tiles, sizeof *target);
    int code = split_of && target
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for the targets of %lld vertices",
                              (long long)data->adjacency.rows);
    if (!code) {
        mark_split(m, &data->train, SL_SPLIT_TRAIN, split_of);
        mark_split(m, &data->val, SL_SPLIT_VAL, split_of);
        mark_split(m, &data->test, SL_SPLIT_TEST, split_of);
    }
    memset(o->split_count, 0, sizeof o->split_count); /* the same in any order */
    for (int64_t k = 0; !code && data->labels && k < data->adjacency.rows; k++)
        o->split_count[split_of[k]] += data->labels[k] >= 0;
    for (int i = 0; !code && i < tiles; i++)
        code = create_target(m, i, split_of);
    free(split_of);
    code = sl_runtime_agree(m->rt, code);
    sl_runtime_sum(m->rt, o->split_count, SL_SPLITS);
    return code;
}

/* ---- All of it ---- */

/* Every matrix has a column for each column of the grid. */
static int check_widths(const struct sl_grid *grid, const struct sl_source *source,
                        const struct sl_config *config)
{
    const struct {
        const char *what;
        int64_t width;
    } widths[] = {{"the features", source->features},
                  {"the classes", source->classes},
                  {"--hidden", config->layers > 1 ? config->hidden : INT64_MAX}};
    const bool cut_rows = grid->columns == 1 && grid->layers == 1 && !sl_config_halo(config);
    if (sl_config_chooses(config) && !cut_rows)
        return sl_error(SL_ERR_USAGE,
                        "%s: --aggregator max takes whole rows, and those of all neighbours "
                        "(expected --distribution 1d)",
                        config->grid ? "--grid" : "--distribution");
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        if (widths[w].width < grid->columns)
            return sl_error(SL_ERR_USAGE,
                            "%s: the grid of ranks is %dx%dx%d, and %s are %lld (expected no fewer "
                            "than the grid's %d columns: --grid RxCxL with a smaller C)",
                            config->grid ? "--grid" : "--distribution", grid->rows, grid->columns,
                            grid->layers, widths[w].what, (long long)widths[w].width,
                            grid->columns);
    return 0;
}

static int create_distribution(struct making *m)
{
    struct sl_operands *o = m->o;
    const struct sl_config *config = m->config;
    const struct sl_partition *p = partition_of(m);
    struct sl_distribution *d = &o->distribution[m->row_order];
    const bool halo = sl_config_halo(config), cut = sl_config_vertex_cut(config);
    *d = (struct sl_distribution){
        .kind = halo  ? &sl_distribution_halo
                : cut ? &sl_distribution_vertex_cut
                      : &sl_distribution_block,
        .cut = cut ? &o->cut : NULL,
        .row_order = m->row_order,
        .partials = &o->partials[m->row_order],
        .halo = halo ? o->halo : NULL,
        .relay = sl_relay_find(config->broadcast),
        .drops_adjacency = !config->cache_adjacency,
        .ranks = m->rt->ranks,
        .tiles = p->tiles,
        .rank_cut = p->rank_cut,
        .row_cut = p->row_cut,
    };
    const int code = sl_grid_choose(config->distribution, config->replication, config->grid,
                                    m->rt->ranks, &d->grid);
    return code ? code : check_widths(&d->grid, &m->source, config);
}

int sl_operands_order(struct sl_runtime *rt, struct sl_source *source,
                      const struct sl_config *config)
{
    if (!sl_config_halo(config) || rt->ranks == 1)
        return 0;
    int32_t *part = malloc((size_t)(source->vertices + 1) * sizeof *part);
    int code = sl_runtime_agree(rt, part ? 0
                                         : sl_error(SL_ERR_SYSTEM,
                                                    "no memory for the parts of %lld vertices",
                                                    (long long)source->vertices));
    if (!code)
        code = sl_source_find_parts(rt, source, rt->ranks, (uint64_t)config->seed,
                                    config->partition, part);
    if (!code)
        code = sl_runtime_agree(rt, sl_source_order_by_parts(source, rt->ranks, part));
    free(part);
    return code;
}

int64_t sl_operands_row_bytes(const struct sl_source *source, const struct sl_config *config)
{
    int64_t widest = source->classes > config->hidden ? source->classes : config->hidden;
    if (source->feature_form == SL_FEATURES_DENSE && source->features > widest)
        widest = source->features;
    return (widest + 15) / 16 * 16 * (int64_t)sizeof(float);
}

struct sl_partition_options sl_operands_cut(const struct sl_runtime *rt,
                                            const struct sl_config *config)
{
    return (struct sl_partition_options){
        .balance = config->balance,
        .tiles = config->tiles,
        .cores = rt->all_cores,
        .workers = rt->workers > 0 ? rt->workers : 1,
        .width = config->hidden,
    };
}

static int cut_graph(struct making *m)
{
    const struct sl_runtime *rt = m->rt;
    struct sl_partition_options options = sl_operands_cut(rt, m->config);
    if (m->row_order > 0)
        options.tiles = m->o->partition->tiles;
    int code = sl_partition_create(m->rt, &m->o->partition[m->row_order], &m->source, &options);
    if (!code)
        code = create_distribution(m);
    return sl_runtime_agree(m->rt, code);
}

static void close_part(struct making *m)
{
    sl_part_close(&m->part);
    free(m->left);
    free(m->right);
    free(m->diagonal);
    m->left = m->right = NULL;
    m->diagonal = NULL;
}

/* ---- Vertex-cuts ---- */

/* The rows that this rank has read become those of its copies. */
static int take_copies(struct making *m, struct sl_copies *copies)
{
    struct sl_operands *o = m->o;
    int code = sl_partition_recut(m->rt, o->partition, copies->bounds, &copies->part);
    if (!code)
        code = create_distribution(m);
    if (!code)
        code = sl_vertex_cut_create(&o->cut, m->rt, sl_config_delay(m->config),
                                    o->partition->row_cut, o->partition->rank_cut, copies->leaves,
                                    copies->leaf, copies->roots, copies->root);
    close_part(m);
    memcpy(m->bounds, copies->bounds, (size_t)(m->rt->ranks + 1) * sizeof *m->bounds);
    m->part = copies->part;
    m->left = copies->left;
    m->right = copies->right;
    m->diagonal = copies->diagonal;
    copies->part = (struct sl_part){0};
    copies->left = copies->right = NULL;
    copies->diagonal = NULL;
    return code;
}

static int cut_vertices(struct making *m)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const uint64_t seed = (uint64_t)m->config->seed;
    int32_t *share = malloc((size_t)(a->indptr[a->rows] + 1) * sizeof *share);
    struct sl_copies copies = {0};
    int code =
        share ? create_diagonals(m) : sl_error(SL_ERR_SYSTEM, "no memory for the parts of edges");
    code = sl_runtime_agree(m->rt, code);
    if (!code)
        code = sl_edge_shares_find(m->rt, &m->source, &m->part, m->config->partition, seed, share);
    if (!code)
        code = sl_copies_create(m->rt,
                                &(struct sl_home){
                                    .part = &m->part,
                                    .bounds = m->bounds,
                                    .left = m->left,
                                    .right = m->right,
                                    .edge_part = share,
                                    .seed = seed,
                                    .delay = sl_config_delay(m->config),
                                },
                                &copies);
    free(share);
    if (!code)
        code = sl_runtime_agree(m->rt, take_copies(m, &copies));
    sl_copies_destroy(&copies);
    return code;
}

static int read_part(struct making *m)
{
    struct sl_operands *o = m->o;
    struct sl_runtime *rt = m->rt;
    struct sl_partition *p = &o->partition[m->row_order];
    for (int r = 0; r <= rt->ranks; r++)
        m->bounds[r] = p->row_cut[p->rank_cut[r]];
    const int64_t first = m->bounds[rt->rank];
    int code = sl_source_read(rt, &m->source, first, m->bounds[rt->rank + 1] - first, &m->part);
    if (code)
        return code;
    o->entries = m->part.entries;
    o->merged_edges = m->part.data.merged_edges;
    o->bytes_read += m->part.bytes_read;
    code = sl_config_vertex_cut(m->config) ? cut_vertices(m) : 0;
    if (code)
        return code;
    sl_partition_measure(rt, p, &m->part);
    p->block_cols =
        m->config->block_columns
            ? m->config->block_columns
            : sl_partition_block_cols(rt, &m->part.data.adjacency, m->config->hidden,
                                      rt->cache_bytes, (rt->all_cores + rt->ranks - 1) / rt->ranks,
                                      ceil((double)p->tiles / rt->all_cores));
    return 0;
}

/* What every rank of a group needs of the rows of all of them. */
static void share_columns(struct making *m)
{
    struct sl_operands *o = m->o;
    const struct sl_distribution *d = distribution_of(m);
    struct sl_sparse_matrix *matrices[] = {&o->adjacency[m->row_order],
                                           &o->transposed[other_order(m)]};
    for (int i = 0; i < d->tiles; i++)
        sl_columns_share(m->rt, d, &o->facts[m->row_order][i]);
    for (int a = 0; a < 2 && !d->drops_adjacency; a++)
        for (int64_t t = 0; matrices[a]->tiles && t < (int64_t)d->tiles * d->tiles; t++)
            if (matrices[a]->tiles[t].shape.nnz)
                sl_columns_share(m->rt, d, &matrices[a]->tiles[t].tile);
}

/* The tiles of what is in this order. */
static int create_tiles(struct making *m)
{
    int code = m->left ? 0 : create_diagonals(m);
    if (!code)
        code = create_facts(m);
    code = sl_runtime_agree(m->rt, code);
    if (!code)
        code = create_adjacencies(m);
    if (!code && !m->rt->plans)
        share_columns(m);
    return code ? code : create_targets(m);
}

static void turn_to(struct making *m, const struct sl_source *source, int row_order)
{
    m->row_order = row_order;
    m->source = sl_source_in_order(source, row_order);
    if (row_order > 0) /* what is aggregated has no features */
        m->source.feature_form = SL_FEATURES_IDENTITY;
}

/* The first order comes last: its features are aggregated with what is in the second one. */
static int make_operands(struct making *m, const struct sl_source *source, bool aggregate)
{
    const int orders = m->o->row_orders;
    int code =
        m->bounds ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the rows of %d ranks", m->rt->ranks);
    code = sl_runtime_agree(m->rt, code);
    for (int order = 0; !code && order < orders; order++) {
        turn_to(m, source, order);
        code = cut_graph(m);
    }
    for (int order = orders - 1; !code && order >= 0; order--) {
        turn_to(m, source, order);
        code = read_part(m);
        if (!code)
            code = create_tiles(m);
        if (!code && order == 0)
            code = sl_runtime_agree(m->rt, create_input(m, aggregate));
        close_part(m);
    }
    return code;
}

int sl_operands_create(struct sl_operands *o, struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_config *config, bool aggregate)
{
    *o = (struct sl_operands){.row_orders = source->second_vertex ? 2 : 1,
                              .type = sl_config_type(config)};
    struct making m = {.o = o, .rt = rt, .config = config};
    m.bounds = malloc((size_t)(rt->ranks + 1) * sizeof *m.bounds);
    const int code = make_operands(&m, source, aggregate);
    free(m.bounds);
    return code;
}

static void destroy_order(struct sl_operands *o, int order)
{
    const int tiles = o->partition[order].tiles;
    sl_sparse_matrix_destroy(&o->adjacency[order]);
    sl_sparse_matrix_destroy(&o->transposed[order]);
    for (int i = 0; o->target[order] && i < tiles; i++)
        sl_tile_destroy(&o->target[order][i]);
    for (int i = 0; o->facts[order] && i < tiles; i++)
        sl_tile_destroy(&o->facts[order][i]);
    free(o->target[order]);
    free(o->facts[order]);
    sl_partials_free(&o->partials[order]);
    sl_partition_destroy(&o->partition[order]);
}

void sl_operands_destroy(struct sl_operands *o)
{
    struct sl_input *inputs[] = {&o->input, &o->own};
    for (int i = 0; i < 2; i++) {
        sl_matrix_destroy(&inputs[i]->dense);
        sl_sparse_matrix_destroy(&inputs[i]->csr);
    }
    for (int t = 0; t < 2; t++)
        sl_halo_destroy(&o->halo[t]);
    sl_vertex_cut_destroy(&o->cut);
    for (int order = 0; order < o->row_orders; order++)
        destroy_order(o, order);
    *o = (struct sl_operands){0};
}
