/* Copies of a sparse tile into a dense one. */
#include "codelets/expand.h"
#include "codelets/bfloat16.h"
#include "codelets/codelet.h"
#include "codelets/kept.h"

static void zero_row(const struct sl_rows *z, int64_t r, int64_t cols)
{
    memset(sl_rows_at(z, r, 0).data, 0, (size_t)cols * sl_type_size(z->type));
}

/* Write entries [from, to) of row r into its dense row. */
static void spread(const struct sl_rows *z, int64_t r, uint32_t from, uint32_t to,
                   const uint32_t *col, const float *value)
{
    const struct sl_rows row = sl_rows_at(z, r, 0);
    if (z->type == SL_BFLOAT16)
        for (uint32_t e = from; e < to; e++)
            ((uint16_t *)row.data)[col[e]] = sl_narrow(value[e]);
    else
        for (uint32_t e = from; e < to; e++)
            ((float *)row.data)[col[e]] = value[e];
}

static void expand_dropped(const struct sl_sparse *x, const struct sl_dropout *drop,
                           const uint32_t *vertex, const struct sl_rows *z)
{
    for (int64_t b = 0; b < x->blocks; b++) {
        struct sl_kept batch;
        struct sl_kept_walk walk = sl_kept_walk(x, b, drop, vertex, 0, x->rows);
        const struct sl_rows block = sl_rows_at(z, 0, b * x->block_cols);
        while (sl_kept_next(&walk, &batch))
            for (int64_t i = 0; i < batch.rows; i++) {
                const int64_t r = batch.row + i;
                if (b == 0 && !batch.continued)
                    zero_row(z, r, x->cols);
                spread(&block, r, batch.row_ptr[i], batch.row_ptr[i + 1], batch.col, batch.value);
            }
    }
}

static void expand_all(const struct sl_sparse *x, const struct sl_rows *z)
{
    for (int64_t b = 0; b < x->blocks; b++)
        for (int64_t r = 0; r < x->rows; r++) {
            const uint32_t *range = x->row_ptr + b * x->rows + r;
            if (b == 0)
                zero_row(z, r, x->cols);
            for (uint32_t e = range[0]; e < range[1]; e++) {
                const int64_t c = b * x->block_cols + sl_sparse_col(x, e);
                const float v = x->value ? x->value[e] : 1.0f;
                if (z->type == SL_BFLOAT16)
                    ((uint16_t *)z->data)[r * z->ld + c] = sl_narrow(v);
                else
                    ((float *)z->data)[r * z->ld + c] = v;
            }
        }
}

void sl_kernel_expand(const struct sl_sparse *x, const struct sl_dropout *drop,
                      const uint32_t *vertex, const struct sl_rows *z)
{
    if (drop && drop->threshold)
        expand_dropped(x, drop, vertex, z);
    else
        expand_all(x, z);
}

/* expand
 *   argument  struct expand_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    X, sparse tile (rows, cols)
 *             2 W    Z (rows, cols) */
static void expand_cpu(void *buffers[], void *argument)
{
    const struct expand_argument *arg = argument;
    const struct sl_rows z = sl_rows_buffer(buffers[2]);
    const struct sl_sparse x = sl_sparse_view(sl_raw_buffer(buffers[1]), &arg->shape);
    sl_kernel_expand(&x, &arg->drop, sl_vertices(buffers[0]), &z);
}

SL_CODELET(expand, 0x66CDAA, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_expand(struct sl_runtime *rt, struct sl_sparse_tile *x,
                      const struct sl_dropout *drop, struct sl_tile *scales, struct sl_tile *z)
{
    const struct expand_argument arg = {
        .shape = x->shape,
        .drop = drop ? *drop : (struct sl_dropout){.threshold = 0},
    };
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &expand_codelet,
                           .count = 3,
                           .tiles = {scales, &x->tile, z},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)z->rows * (double)z->cols,
                           .kind = arg.drop.threshold > 0,
                       });
}
