#include "assembly/aggregate.h"

#include <stdlib.h>

#include "core/error.h"

/* ---- One row ---- */

static void add_term(const struct sl_aggregate *a, int32_t column, double term, int64_t *count)
{
    if (!a->present[column]) {
        a->present[column] = true;
        a->sum[column] = 0.0;
        a->row_columns[(*count)++] = column;
    }
    a->sum[column] += term;
}

static int compare_columns(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Add S(r) and Â(r, p)·X(p), p being the current piece, into `sum`. Set row_columns to the columns
 * of the result. Return their number. */
static int64_t sum_row(const struct sl_aggregate *a, int64_t r)
{
    const struct sl_feature_rows *x = &a->piece;
    const int64_t row = r - a->rows.first;
    int64_t count = 0, neighbours;
    const int32_t *neighbour;
    const float *weight;
    for (int64_t e = a->indptr ? a->indptr[row] : 0; a->indptr && e < a->indptr[row + 1]; e++)
        add_term(a, a->columns[e], a->sums[e], &count);
    sl_adjacency_row(&a->rows, r, &neighbours, &neighbour, &weight);
    for (int64_t k = 0; k < neighbours; k++) {
        const int64_t from = neighbour[k] - a->rows.from;
        for (int64_t e = x->indptr[from]; e < x->indptr[from + 1]; e++)
            add_term(a, x->columns[e], (double)weight[k] * (double)x->values[e], &count);
    }
    qsort(a->row_columns, (size_t)count, sizeof *a->row_columns, compare_columns);
    for (int64_t e = 0; e < count; e++)
        a->present[a->row_columns[e]] = false;
    return count;
}

void sl_aggregate_row(const void *aggregate, int64_t r, int64_t *count, const int32_t **columns,
                      const float **values)
{
    const struct sl_aggregate *a = aggregate;
    *count = sum_row(a, r);
    for (int64_t e = 0; e < *count; e++)
        a->row_values[e] = (float)a->sum[a->row_columns[e]];
    *columns = a->row_columns;
    *values = a->row_values;
}

/* ---- S ---- */

static int no_memory(void)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for the aggregated features");
}

/* Make room for `count` entries, and keep the entries so far. */
static bool grow(int32_t **columns, double **sums, int64_t *capacity, int64_t count)
{
    if (count <= *capacity)
        return true;
    *capacity = 2 * count;
    int32_t *more_columns = reallocarray(*columns, (size_t)*capacity, sizeof **columns);
    if (more_columns)
        *columns = more_columns;
    double *more_sums = reallocarray(*sums, (size_t)*capacity, sizeof **sums);
    if (more_sums)
        *sums = more_sums;
    return more_columns && more_sums;
}

static void replace(struct sl_aggregate *a, int64_t *indptr, int32_t *columns, double *sums)
{
    free(a->indptr);
    free(a->columns);
    free(a->sums);
    a->indptr = indptr;
    a->columns = columns;
    a->sums = sums;
}

/* Set S = S + Â(:, p)·X(p), p being the current piece. */
static int add_piece(struct sl_aggregate *a)
{
    const int64_t rows = a->rows.source->rows;
    int64_t *indptr = calloc((size_t)rows + 1, sizeof *indptr), capacity = 0;
    int32_t *columns = NULL;
    double *sums = NULL;
    bool room = indptr != NULL;
    for (int64_t row = 0; room && row < rows; row++) {
        const int64_t count = sum_row(a, a->rows.first + row), at = indptr[row];
        room = grow(&columns, &sums, &capacity, at + count);
        for (int64_t e = 0; room && e < count; e++) {
            columns[at + e] = a->row_columns[e];
            sums[at + e] = a->sum[a->row_columns[e]];
        }
        indptr[row + 1] = at + count;
    }
    replace(a, indptr, columns, sums);
    return room ? 0 : no_memory();
}

/* ---- Pieces of X ---- */

static void drop_piece(struct sl_aggregate *a)
{
    if (a->owns_piece) {
        free(a->piece.indptr);
        free(a->piece.columns);
        free(a->piece.values);
        free(a->piece.right);
    }
    a->owns_piece = false;
    a->piece = (struct sl_feature_rows){0};
}

/* Make X(p) the current piece on all ranks. Collective. */
static int take_piece(struct sl_runtime *rt, struct sl_aggregate *a, int p,
                      const struct sl_feature_rows *own, const int64_t *bounds)
{
    struct sl_feature_rows *x = &a->piece;
    const int64_t rows = bounds[p + 1] - bounds[p];
    int64_t nnz = own->indptr[own->rows];
    sl_runtime_broadcast(rt, p, &nnz, sizeof nnz);
    drop_piece(a);
    *x = *own;
    if (p != rt->rank) {
        a->owns_piece = true;
        *x = (struct sl_feature_rows){
            .rows = rows,
            .indptr = malloc((size_t)(rows + 1) * sizeof *x->indptr),
            .columns = malloc((size_t)(nnz + 1) * sizeof *x->columns),
            .values = malloc((size_t)(nnz + 1) * sizeof *x->values),
            .right = malloc((size_t)(rows + 1) * sizeof *x->right),
        };
    }
    const bool room = x->indptr && x->columns && x->values && x->right;
    const int code = sl_runtime_agree(rt, room ? 0 : no_memory());
    if (code)
        return code;
    sl_runtime_broadcast(rt, p, x->indptr, (rows + 1) * (int64_t)sizeof *x->indptr);
    sl_runtime_broadcast(rt, p, x->columns, nnz * (int64_t)sizeof *x->columns);
    sl_runtime_broadcast(rt, p, x->values, nnz * (int64_t)sizeof *x->values);
    sl_runtime_broadcast(rt, p, x->right, rows * (int64_t)sizeof *x->right);
    a->rows.from = bounds[p];
    a->rows.to = bounds[p + 1];
    a->rows.right = x->right;
    return 0;
}

/* ---- All of it ---- */

int sl_aggregate_open(struct sl_runtime *rt, struct sl_aggregate *a,
                      const struct sl_aggregate_factors *f)
{
    const int64_t width = f->width;
    *a = (struct sl_aggregate){0};
    int code = sl_adjacency_rows_open(&a->rows, f->adjacency, f->first, f->loops);
    a->rows.left = f->left;
    a->sum = malloc((size_t)width * sizeof *a->sum);
    a->present = calloc((size_t)width, sizeof *a->present);
    a->row_columns = malloc((size_t)width * sizeof *a->row_columns);
    a->row_values = malloc((size_t)width * sizeof *a->row_values);
    if (!code && !(a->sum && a->present && a->row_columns && a->row_values))
        code = sl_error(SL_ERR_SYSTEM, "no memory for a row of the features");
    code = sl_runtime_agree(rt, code);
    for (int p = 0; !code && p < rt->ranks; p++) {
        code = take_piece(rt, a, p, f->own, f->bounds);
        if (!code && p < rt->ranks - 1)
            code = sl_runtime_agree(rt, add_piece(a));
    }
    return code;
}

void sl_aggregate_close(struct sl_aggregate *a)
{
    drop_piece(a);
    replace(a, NULL, NULL, NULL);
    sl_adjacency_rows_close(&a->rows);
    free(a->sum);
    free(a->present);
    free(a->row_columns);
    free(a->row_values);
}
