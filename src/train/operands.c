#include "train/operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "core/error.h"
#include "data/csr.h"

/* ---- Â = diag(left)·(A + I)·diag(right), row by row ---- */

/* Rows of A + I, or of its transpose, or of Â. An entry that A + I has twice, as a vertex with a
 * self-loop has in a graph without weights, comes twice. */
struct rows {
    const struct sl_csr *source;
    const double *left, *right; // (n): rows of Â; NULL: of A + I
    int32_t *columns;           // (longest row + 1), of the row read last
    float *values;
};

static void add_entry(const struct rows *a, int64_t r, int32_t c, double weight, int64_t *count)
{
    a->columns[*count] = c;
    a->values[(*count)++] = (float)(a->left ? weight * a->left[r] * a->right[c] : weight);
}

static void adjacency_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                          const float **values)
{
    const struct rows *a = context;
    const struct sl_csr *source = a->source;
    bool diagonal = false; /* that of I is in */
    *count = 0;
    for (int64_t e = source->indptr[r]; e < source->indptr[r + 1]; e++) {
        const int32_t c = source->indices[e];
        const double weight = source->values ? (double)source->values[e] : 1.0;
        const bool loop = c == r && source->values;
        if (!diagonal && c >= r && !loop)
            add_entry(a, r, (int32_t)r, 1.0, count);
        diagonal = diagonal || c >= r;
        add_entry(a, r, c, loop ? weight + 1.0 : weight, count);
    }
    if (!diagonal)
        add_entry(a, r, (int32_t)r, 1.0, count);
    *columns = a->columns;
    *values = source->values || a->left ? a->values : NULL;
}

static int open_rows(struct rows *a, const struct sl_csr *source)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < source->rows; r++)
        if (source->indptr[r + 1] - source->indptr[r] > longest)
            longest = source->indptr[r + 1] - source->indptr[r];
    *a = (struct rows){.source = source};
    a->columns = malloc((size_t)(longest + 1) * sizeof *a->columns);
    a->values = malloc((size_t)(longest + 1) * sizeof *a->values);
    return a->columns && a->values
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for a row of the adjacency");
}

static void close_rows(struct rows *a)
{
    free(a->columns);
    free(a->values);
}

/* The diagonals of Â, (n) each: D^-1/2 on both sides, or D^-1 on the left. */
struct diagonals {
    double *left, *right;
};

/* The degrees are those of A + I, weights honoured. */
static int create_diagonals(const struct sl_dataset *data, bool row_norm, struct diagonals *d)
{
    const struct sl_csr *a = &data->adjacency;
    d->left = malloc((size_t)a->rows * sizeof *d->left);
    d->right = malloc((size_t)a->rows * sizeof *d->right);
    if (!d->left || !d->right)
        return sl_error(SL_ERR_SYSTEM, "no memory for the degrees of %lld vertices",
                        (long long)a->rows);
    for (int64_t v = 0; v < a->rows; v++) {
        double degree = 1.0;
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            degree += a->values ? (double)a->values[e] : 1.0;
        if (!(degree > 0.0))
            return sl_error(
                SL_ERR_DATA,
                "%s: the edge weights of vertex %lld and its self-loop sum to %g, which cannot "
                "normalise the adjacency (expected a positive sum)",
                data->path, (long long)v, degree);
        d->left[v] = row_norm ? 1.0 / degree : 1.0 / sqrt(degree);
        d->right[v] = row_norm ? 1.0 : d->left[v];
    }
    return 0;
}

static int create_facts(struct sl_operands *o, struct sl_runtime *rt, const struct sl_dataset *data,
                        const struct diagonals *d)
{
    const struct sl_partition *p = &o->partition;
    o->facts = calloc((size_t)p->tiles, sizeof *o->facts);
    if (!o->facts)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d small tiles", p->tiles);
    for (int i = 0; i < p->tiles; i++) {
        const int64_t rows = p->row_cut[i + 1] - p->row_cut[i];
        if (sl_tile_create(rt, &o->facts[i], SL_ROW_FACTS, rows, sizeof(float),
                           sl_distribution_dense_owner(&o->distribution, i, 0)))
            return SL_ERR_SYSTEM;
        float *fact = o->facts[i].memory;
        for (int64_t r = 0; fact && r < rows; r++) {
            const int64_t v = p->row_cut[i] + r;
            ((uint32_t *)fact)[SL_ROW_VERTEX * rows + r] =
                (uint32_t)(data->original ? data->original[v] : v);
            fact[SL_ROW_LEFT * rows + r] = (float)d->left[v];
            fact[SL_ROW_RIGHT * rows + r] = (float)d->right[v];
            fact[SL_ROW_BOTH * rows + r] = (float)(d->left[v] * d->right[v]);
            fact[SL_ROW_INVERSE_LEFT * rows + r] = (float)(1.0 / d->left[v]);
            fact[SL_ROW_INVERSE_RIGHT * rows + r] = (float)(1.0 / d->right[v]);
        }
    }
    return 0;
}

static int create_adjacency(struct sl_operands *o, struct sl_runtime *rt, const struct rows *rows,
                            struct sl_sparse_matrix *matrix)
{
    const struct sl_partition *p = &o->partition;
    return sl_sparse_matrix_create(rt, matrix, p->tiles, p->row_cut, p->tiles, p->row_cut,
                                   p->block_cols, rows->source->values != NULL, adjacency_row, rows,
                                   sl_distribution_sparse_owner, sl_distribution_span,
                                   &o->distribution);
}

static int create_transposed(struct sl_operands *o, struct sl_runtime *rt,
                             const struct sl_dataset *data)
{
    struct sl_block *blocks = NULL;
    struct sl_csr transposed;
    struct rows rows = {0};
    int code = sl_csr_transpose(&data->adjacency, &blocks, &transposed);
    if (!code)
        code = open_rows(&rows, &transposed);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = create_adjacency(o, rt, &rows, &o->transposed);
    close_rows(&rows);
    sl_block_free_all(&blocks);
    return code;
}

/* ---- Features ---- */

/* Rows of diag(right)·X as sparse rows, whatever its form. */
struct features {
    const struct sl_dataset *data;
    bool normalize;
    const double *right; // (n), or NULL: all 1
    int32_t *columns;    // (widest row)
    float *values;
};

static void feature_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                        const float **values)
{
    const struct features *x = context;
    const struct sl_csr *csr = &x->data->features_csr;
    int64_t n = 0;
    double norm = 0.0;
    if (x->data->feature_form == SL_FEATURES_IDENTITY) {
        x->columns[0] = (int32_t)(x->data->original ? x->data->original[r] : r);
        x->values[0] = 1.0f;
        n = 1;
        norm = 1.0;
    } else if (x->data->feature_form == SL_FEATURES_CSR) {
        n = csr->indptr[r + 1] - csr->indptr[r];
        for (int64_t e = 0; e < n; e++) {
            x->columns[e] = csr->indices[csr->indptr[r] + e];
            x->values[e] = csr->values ? csr->values[csr->indptr[r] + e] : 1.0f;
            norm += fabs((double)x->values[e]);
        }
    } else {
        n = x->data->features;
        for (int64_t e = 0; e < n; e++) {
            x->columns[e] = (int32_t)e;
            x->values[e] = x->data->features_dense[r * n + e];
            norm += fabs((double)x->values[e]);
        }
    }
    const double factor =
        (x->normalize && norm > 0.0 ? 1.0 / norm : 1.0) * (x->right ? x->right[r] : 1.0);
    if (factor != 1.0)
        for (int64_t e = 0; e < n; e++)
            x->values[e] = (float)((double)x->values[e] * factor);
    *count = n;
    *columns = x->columns;
    *values = x->values;
}

/* Rows of Â·X, X sparse: a sum of rows of X in a dense accumulator. */
struct aggregated {
    const struct rows *adjacency;
    const struct features *features;
    double *sum;      // (f)
    bool *present;    // (f), false between rows
    int32_t *columns; // (f)
    float *values;    // (f)
};

static int compare_columns(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void aggregated_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                           const float **values)
{
    const struct aggregated *a = context;
    int64_t neighbours, n = 0;
    const int32_t *neighbour;
    const float *weight;
    adjacency_row(a->adjacency, r, &neighbours, &neighbour, &weight);
    for (int64_t k = 0; k < neighbours; k++) {
        int64_t entries;
        const int32_t *column;
        const float *value;
        feature_row(a->features, neighbour[k], &entries, &column, &value);
        for (int64_t e = 0; e < entries; e++) {
            const int32_t c = column[e];
            if (!a->present[c]) {
                a->present[c] = true;
                a->sum[c] = 0.0;
                a->columns[n++] = c;
            }
            a->sum[c] += (double)weight[k] * (double)value[e];
        }
    }
    qsort(a->columns, (size_t)n, sizeof *a->columns, compare_columns);
    for (int64_t e = 0; e < n; e++) {
        a->values[e] = (float)a->sum[a->columns[e]];
        a->present[a->columns[e]] = false;
    }
    *count = n;
    *columns = a->columns;
    *values = a->values;
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

/* A matrix of dense tiles from rows of any kind. */
static int create_dense_input(struct sl_operands *o, struct sl_runtime *rt, enum sl_type type,
                              int64_t width, sl_row_function *row, const void *context)
{
    o->input_cut[0] = 0;
    o->input_cut[1] = width;
    const struct sl_partition *p = &o->partition;
    if (sl_matrix_create(rt, &o->input.dense, type, p->tiles, p->row_cut, 1, o->input_cut,
                         sl_distribution_dense_owner, &o->distribution))
        return SL_ERR_SYSTEM;
    for (int i = 0; i < p->tiles; i++) {
        const struct sl_tile *tile = sl_matrix_tile(&o->input.dense, i, 0);
        const size_t row_bytes = (size_t)tile->ld * tile->element_size;
        if (!tile->memory)
            continue;
        for (int64_t r = p->row_cut[i]; r < p->row_cut[i + 1]; r++) {
            int64_t count;
            const int32_t *columns;
            const float *values;
            row(context, r, &count, &columns, &values);
            spread_row(type, count, columns, values,
                       (char *)tile->memory + (size_t)(r - p->row_cut[i]) * row_bytes);
        }
    }
    return 0;
}

static int create_sparse_input(struct sl_operands *o, struct sl_runtime *rt, int64_t width,
                               sl_row_function *row, const void *context)
{
    o->input.sparse = true;
    o->input_cut[0] = 0;
    o->input_cut[1] = width;
    const struct sl_partition *p = &o->partition;
    return sl_sparse_matrix_create(rt, &o->input.csr, p->tiles, p->row_cut, 1, o->input_cut, width,
                                   true, row, context, sl_distribution_dense_owner, NULL,
                                   &o->distribution);
}

/* Â·X of sparse features, made on the host: sparse, or dense where that takes less memory. */
static int create_aggregated_sparse(struct sl_operands *o, struct sl_runtime *rt,
                                    const struct rows *adjacency, const struct features *features,
                                    int64_t width)
{
    struct aggregated a = {.adjacency = adjacency, .features = features};
    a.sum = malloc((size_t)width * sizeof *a.sum);
    a.present = calloc((size_t)width, sizeof *a.present);
    a.columns = malloc((size_t)width * sizeof *a.columns);
    a.values = malloc((size_t)width * sizeof *a.values);
    int code = a.sum && a.present && a.columns && a.values
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for a row of the features");
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = create_sparse_input(o, rt, width, aggregated_row, &a);
    const int64_t rows = o->partition.row_cut[o->partition.tiles];
    if (!code && 2 * o->input.csr.nnz > rows * width) {
        sl_sparse_matrix_destroy(&o->input.csr);
        o->input.sparse = false;
        code = create_dense_input(o, rt, o->type, width, aggregated_row, &a);
    }
    free(a.sum);
    free(a.present);
    free(a.columns);
    free(a.values);
    return code;
}

/* A matrix as o->input.dense, which it takes the place of once `submit` has made it from that. */
typedef void submit_function(struct sl_operands *o, struct sl_runtime *rt, struct sl_matrix *out);

static int replace_dense(struct sl_operands *o, struct sl_runtime *rt, enum sl_type type,
                         submit_function *submit)
{
    struct sl_matrix out = {0};
    const struct sl_matrix *x = &o->input.dense;
    int code = sl_matrix_create(rt, &out, type, x->tile_rows, x->row_cut, 1, o->input_cut,
                                sl_distribution_dense_owner, &o->distribution);
    code = sl_runtime_agree(rt, code);
    if (code) {
        sl_matrix_destroy(&out);
        return code;
    }
    if (!rt->plans)
        submit(o, rt, &out);
    sl_matrix_destroy(&o->input.dense); /* waits for the tasks and messages that read it */
    o->input.dense = out;
    return 0;
}

static void submit_aggregation(struct sl_operands *o, struct sl_runtime *rt, struct sl_matrix *out)
{
    struct sl_row_epilogue left = {.common = SL_EPILOGUE_NONE, .facts = o->facts};
    left.common.before = SL_ROW_LEFT;
    o->distribution.kind->aggregate(rt, &o->distribution, &o->adjacency, &o->input.dense, &left,
                                    NULL, out);
}

static void submit_conversion(struct sl_operands *o, struct sl_runtime *rt, struct sl_matrix *out)
{
    for (int i = 0; i < out->tile_rows; i++)
        sl_submit_epilogue(rt, NULL, sl_matrix_tile(&o->input.dense, i, 0),
                           sl_matrix_tile(out, i, 0));
}

/* Â·X of dense features, by the same tasks as in an epoch, in float32. */
static int aggregate_dense(struct sl_operands *o, struct sl_runtime *rt)
{
    int code = replace_dense(o, rt, SL_FLOAT32, submit_aggregation);
    if (!code && o->type != SL_FLOAT32)
        code = replace_dense(o, rt, o->type, submit_conversion);
    return code;
}

static int create_input(struct sl_operands *o, struct sl_runtime *rt, const struct sl_dataset *data,
                        const struct diagonals *d, const struct sl_config *config, bool aggregate)
{
    const int64_t width = data->features;
    const bool dense = data->feature_form == SL_FEATURES_DENSE;
    struct features x = {.data = data, .normalize = config->normalize_features};
    struct rows adjacency;
    int code = open_rows(&adjacency, &data->adjacency);
    adjacency.left = d->left;
    adjacency.right = d->right;
    x.columns = malloc((size_t)width * sizeof *x.columns);
    x.values = malloc((size_t)width * sizeof *x.values);
    if (!code && !(x.columns && x.values))
        code = sl_error(SL_ERR_SYSTEM, "no memory for a row of the features");
    code = sl_runtime_agree(rt, code);
    o->input.width = width;
    o->input.aggregated = aggregate;
    if (!code && aggregate && !dense) {
        code = create_aggregated_sparse(o, rt, &adjacency, &x, width);
    } else if (!code) {
        x.right = d->right;
        code = dense ? create_dense_input(o, rt, aggregate ? SL_FLOAT32 : o->type, width,
                                          feature_row, &x)
                     : create_sparse_input(o, rt, width, feature_row, &x);
        code = sl_runtime_agree(rt, code);
        if (!code && aggregate)
            code = aggregate_dense(o, rt);
    }
    close_rows(&adjacency);
    free(x.columns);
    free(x.values);
    return code;
}

/* ---- Targets ---- */

static void mark_split(const struct sl_index_set *set, enum sl_split split, int32_t *split_of)
{
    for (int64_t k = 0; k < set->count; k++)
        split_of[set->ids[k]] = split;
}

static int create_targets(struct sl_operands *o, struct sl_runtime *rt,
                          const struct sl_dataset *data)
{
    const struct sl_partition *p = &o->partition;
    int32_t *split_of = calloc((size_t)data->vertices, sizeof *split_of);
    o->target = calloc((size_t)p->tiles, sizeof *o->target);
    if (!split_of || !o->target) {
        free(split_of);
        return sl_error(SL_ERR_SYSTEM, "no memory for the targets of %lld vertices",
                        (long long)data->vertices);
    }
    mark_split(&data->train, SL_SPLIT_TRAIN, split_of);
    mark_split(&data->val, SL_SPLIT_VAL, split_of);
    mark_split(&data->test, SL_SPLIT_TEST, split_of);
    for (int64_t v = 0; v < data->vertices; v++)
        o->split_count[split_of[v]] += data->labels && data->labels[v] >= 0;
    int code = 0;
    for (int i = 0; !code && i < p->tiles; i++) {
        const int64_t rows = p->row_cut[i + 1] - p->row_cut[i];
        code = sl_tile_create(rt, &o->target[i], rows, 2, sizeof(int32_t),
                              sl_distribution_dense_owner(&o->distribution, i, 0));
        int32_t *target = o->target[i].memory;
        for (int64_t r = 0; target && r < rows; r++) {
            const int64_t v = p->row_cut[i] + r;
            target[2 * r] = data->labels ? data->labels[v] : -1;
            target[2 * r + 1] = split_of[v];
        }
    }
    free(split_of);
    return code;
}

static int cut_graph(struct sl_operands *o, struct sl_runtime *rt, const struct sl_dataset *data,
                     const struct sl_config *config)
{
    const int code =
        sl_partition_create(&o->partition, data,
                            &(struct sl_partition_options){
                                .tiles = config->tiles,
                                .block_cols = config->block_columns,
                                .ranks = rt->ranks,
                                .cores = rt->all_cores,
                                .cache_bytes = rt->cache_bytes,
                                .cache_sharers = (rt->all_cores + rt->ranks - 1) / rt->ranks,
                                .width = config->hidden,
                            });
    o->distribution = (struct sl_distribution){
        .kind = sl_distribution_find(config->distribution),
        .ranks = rt->ranks,
        .tiles = o->partition.tiles,
        .row_cut = o->partition.row_cut,
    };
    return code;
}

int sl_operands_create(struct sl_operands *o, struct sl_runtime *rt, const struct sl_dataset *data,
                       const struct sl_config *config, bool aggregate)
{
    *o = (struct sl_operands){.type = strcmp(config->precision, "bf16") == 0 ? SL_BFLOAT16
                                                                             : SL_FLOAT32};
    struct diagonals d = {0};
    struct rows rows = {0};
    int code = create_diagonals(data, strcmp(config->norm, "row") == 0, &d);
    if (!code)
        code = open_rows(&rows, &data->adjacency);
    if (!code)
        code = cut_graph(o, rt, data, config);
    if (!code)
        code = create_facts(o, rt, data, &d);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = create_adjacency(o, rt, &rows, &o->adjacency);
    if (!code && !data->symmetric)
        code = create_transposed(o, rt, data);
    if (!code)
        code = create_input(o, rt, data, &d, config, aggregate);
    if (!code)
        code = create_targets(o, rt, data);
    close_rows(&rows);
    free(d.left);
    free(d.right);
    return sl_runtime_agree(rt, code);
}

void sl_operands_destroy(struct sl_operands *o)
{
    sl_sparse_matrix_destroy(&o->adjacency);
    sl_sparse_matrix_destroy(&o->transposed);
    sl_matrix_destroy(&o->input.dense);
    sl_sparse_matrix_destroy(&o->input.csr);
    for (int i = 0; o->target && i < o->partition.tiles; i++)
        sl_tile_destroy(&o->target[i]);
    for (int i = 0; o->facts && i < o->partition.tiles; i++)
        sl_tile_destroy(&o->facts[i]);
    free(o->target);
    free(o->facts);
    sl_partition_destroy(&o->partition);
    *o = (struct sl_operands){0};
}
