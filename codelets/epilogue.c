#include "codelets/epilogue.h"

#include "codelets/codelet.h"

void sl_kernel_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *e,
                        const struct sl_rows *sum, const struct sl_rows *z)
{
    sl_epilogue_rows(e, 0, rows, cols, sum, z);
}

struct sl_epilogue sl_epilogue_at(const struct sl_epilogue *epilogue, int64_t r, int64_t j)
{
    if (!epilogue)
        return SL_EPILOGUE_IDENTITY;
    struct sl_epilogue e = *epilogue;
    e.before = e.before ? e.before + r : NULL;
    e.factor = e.factor ? e.factor + r : NULL;
    e.bias = e.bias ? e.bias + j : NULL;
    e.mask = sl_rows_at(&e.mask, r, j);
    e.mask_scale = e.mask_scale ? e.mask_scale + r : NULL;
    e.vertex = e.vertex ? e.vertex + r : NULL;
    e.column0 += (uint32_t)j;
    e.after = e.after ? e.after + r : NULL;
    return e;
}

int sl_epilogue_pack(const struct sl_epilogue_tiles *from, const struct sl_tile *z,
                     struct epilogue_argument *to, struct sl_tile **tiles)
{
    int count = 0;
    *to = (struct epilogue_argument){
        .before = SL_ROW_NONE, .after = SL_ROW_NONE, .mask_scale = SL_ROW_NONE, .scale = 1.0f};
    if (!from)
        return 0;
    to->before = from->before;
    to->after = from->after;
    to->mask_scale = from->mask_scale;
    to->scale = from->scale;
    to->drop = from->drop;
    to->bias_row = from->bias_row;
    to->bias_col = from->bias_col;
    to->relu = from->relu;
    to->elu = from->elu;
    to->elu_back = from->elu_back;
    to->present = true;
    if (from->scales &&
        (from->before >= 0 || from->after >= 0 || from->mask_scale >= 0 || from->drop.threshold)) {
        to->has_scales = true;
        tiles[count++] = from->scales;
    }
    if (from->factor) {
        to->has_factor = true;
        tiles[count++] = from->factor;
    }
    if (from->parameters) {
        to->has_bias = true;
        tiles[count++] = from->parameters;
    }
    to->masked_by_z = from->mask && from->mask == z;
    if (from->mask && !to->masked_by_z) {
        to->has_mask = true;
        tiles[count++] = from->mask;
    }
    return count;
}

int sl_epilogue_buffers(const struct epilogue_argument *arg, void **buffers, struct sl_epilogue *e)
{
    int used = 0;
    *e = (struct sl_epilogue){.scale = arg->scale,
                              .relu = arg->relu,
                              .elu = arg->elu,
                              .elu_back = arg->elu_back,
                              .drop = arg->drop};
    if (arg->has_scales) {
        e->before = sl_row_scale(buffers[used], arg->before);
        e->after = sl_row_scale(buffers[used], arg->after);
        e->mask_scale = sl_row_scale(buffers[used], arg->mask_scale);
        e->vertex = sl_vertices(buffers[used]);
        used++;
    }
    if (arg->has_factor)
        e->factor = sl_dense_buffer(buffers[used++]).data;
    if (arg->has_bias) {
        const struct sl_dense parameters = sl_dense_buffer(buffers[used++]);
        e->bias = parameters.data + arg->bias_row * parameters.ld + arg->bias_col;
    }
    if (arg->has_mask)
        e->mask = sl_rows_buffer(buffers[used++]);
    return used;
}

/* The bits: there is an epilogue, it reads a mask, it draws random numbers. */
uint32_t sl_epilogue_kind(const struct epilogue_argument *arg)
{
    return (uint32_t)arg->present | (uint32_t)(arg->has_mask || arg->masked_by_z) << 1 |
           (uint32_t)(arg->present && arg->drop.threshold > 0) << 2;
}

/* epilogue
 *   argument  struct epilogue_argument
 *   buffers   …       R    row scales, factors, parameters with the bias, mask, as far as needed
 *             before  R    SUM (rows, cols), unless it is Z
 *             last    W    Z (rows, cols), or RW */
static void epilogue_cpu(void *buffers[], void *argument)
{
    const struct epilogue_argument *arg = argument;
    struct sl_epilogue e;
    const int used = sl_epilogue_buffers(arg, buffers, &e);
    const struct sl_rows sum = sl_rows_buffer(buffers[used]),
                         z = sl_rows_buffer(buffers[used + arg->apart]);
    if (arg->masked_by_z)
        e.mask = z;
    sl_kernel_epilogue(STARPU_MATRIX_GET_NY(buffers[used]), STARPU_MATRIX_GET_NX(buffers[used]), &e,
                       &sum, &z);
}

SL_CODELET_ANY(epilogue, 0x9ACD32);

void sl_submit_epilogue(struct sl_runtime *rt, const struct sl_epilogue_tiles *epilogue,
                        struct sl_tile *sum, struct sl_tile *z)
{
    struct epilogue_argument arg;
    sl_expect_one_shape("epilogue", sum, z);
    struct sl_task task = {
        .codelet = &epilogue_codelet,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)z->rows * (double)z->cols,
    };
    task.count = sl_epilogue_pack(epilogue, z, &arg, task.tiles);
    arg.apart = sum != z;
    if (arg.apart)
        task.tiles[task.count++] = sum;
    task.tiles[task.count++] = z;
    task.kind = sl_epilogue_kind(&arg);
    task.output = arg.apart && !arg.masked_by_z ? SL_TASK_WRITES : SL_TASK_UPDATES;
    sl_task_submit(rt, &task);
}
