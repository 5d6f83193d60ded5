/* The steps after a sum, as a pass of their own: where the sum came out of a dense product. */
#include "codelets/epilogue.h"

#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/dropout_rows.h"

/* Each step is a loop of its own over a row, which is in the first-level cache then. */
SL_INLINE void shift_row(const struct sl_epilogue *e, int64_t r, int64_t cols, bool has_bias,
                         bool relu, bool has_mask, float *z)
{
    const float *bias = e->bias, *mask = has_mask ? e->mask + r * e->ldm : NULL;
    for (int64_t j = 0; j < cols; j++) {
        float x = z[j];
        if (has_bias)
            x += bias[j];
        if (relu)
            x = x < 0.0f ? 0.0f : x; /* NaN < 0 is false: it stays */
        if (has_mask)
            x = mask[j] > 0.0f ? x : 0.0f;
        z[j] = x;
    }
}

SL_INLINE void epilogue_row(const struct sl_epilogue *e, int64_t r, int64_t cols, float *z)
{
    if (e->before || e->scale != 1.0f) { /* apart from the bias, so that it is rounded */
        const float factor = e->before ? e->scale * e->before[r] : e->scale;
        for (int64_t j = 0; j < cols; j++)
            z[j] *= factor;
    }
    if (e->bias && e->relu)
        shift_row(e, r, cols, true, true, false, z);
    else if (e->bias)
        shift_row(e, r, cols, true, false, false, z);
    else if (e->relu)
        shift_row(e, r, cols, false, true, false, z);
    if (e->mask)
        shift_row(e, r, cols, false, false, true, z);
}

/* Rows [from, to) of Z and of the operands of `e`. */
SL_INLINE void sl_epilogue_rows_body(const struct sl_epilogue *e, int64_t from, int64_t to,
                                     int64_t cols, float *z, int64_t ldz)
{
    for (int64_t r = from; r < to; r++)
        epilogue_row(e, r, cols, z + r * ldz);
    if (e->drop.threshold)
        dropout_rows(to - from, cols, &e->drop, e->vertex + from, 0,
                     e->after ? e->after + from : NULL, z + from * ldz, ldz, z + from * ldz, ldz);
    else if (e->after)
        for (int64_t r = from; r < to; r++)
            for (int64_t j = 0; j < cols; j++)
                z[r * ldz + j] *= e->after[r];
}

SL_DISPATCH(, sl_epilogue_rows,
            (const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols, float *z,
             int64_t ldz),
            (e, from, to, cols, z, ldz))

void sl_kernel_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *e, float *z,
                        int64_t ldz)
{
    sl_epilogue_rows(e, 0, rows, cols, z, ldz);
}

int sl_epilogue_pack(const struct sl_epilogue_tiles *from, struct epilogue_argument *to,
                     struct sl_tile **tiles)
{
    int count = 0;
    *to = (struct epilogue_argument){.before = SL_ROW_NONE, .after = SL_ROW_NONE, .scale = 1.0f};
    if (!from)
        return 0;
    to->before = from->before;
    to->after = from->after;
    to->scale = from->scale;
    to->drop = from->drop;
    to->bias_row = from->bias_row;
    to->relu = from->relu;
    to->present = true;
    if (from->facts && (from->before >= 0 || from->after >= 0 || from->drop.threshold)) {
        to->has_facts = true;
        tiles[count++] = from->facts;
    }
    if (from->parameters) {
        to->has_bias = true;
        tiles[count++] = from->parameters;
    }
    if (from->mask) {
        to->has_mask = true;
        tiles[count++] = from->mask;
    }
    return count;
}

int sl_epilogue_buffers(const struct epilogue_argument *arg, void **buffers, struct sl_epilogue *e)
{
    int used = 0;
    *e = (struct sl_epilogue){.scale = arg->scale, .relu = arg->relu, .drop = arg->drop};
    if (arg->has_facts) {
        e->before = sl_row_fact(buffers[used], arg->before);
        e->after = sl_row_fact(buffers[used], arg->after);
        e->vertex = sl_vertices(buffers[used]);
        used++;
    }
    if (arg->has_bias) {
        const struct sl_dense parameters = sl_dense_buffer(buffers[used++]);
        e->bias = parameters.data + arg->bias_row * parameters.ld;
    }
    if (arg->has_mask) {
        const struct sl_dense mask = sl_dense_buffer(buffers[used++]);
        e->mask = mask.data;
        e->ldm = mask.ld;
    }
    return used;
}

/* epilogue
 *   argument  struct epilogue_argument
 *   buffers   …     R    what it needs of: rows' facts, parameters with the bias, mask
 *             last  RW   Z (rows, cols) */
static void epilogue_cpu(void *buffers[], void *argument)
{
    struct sl_epilogue e;
    const int used = sl_epilogue_buffers(argument, buffers, &e);
    const struct sl_dense z = sl_dense_buffer(buffers[used]);
    sl_kernel_epilogue(z.rows, z.cols, &e, z.data, z.ld);
}

SL_CODELET_ANY(epilogue, 0x9ACD32);

void sl_submit_epilogue(struct sl_runtime *rt, const struct sl_epilogue_tiles *epilogue,
                        struct sl_tile *z)
{
    struct epilogue_argument arg;
    struct sl_task task = {
        .codelet = &epilogue_codelet,
        .output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .work = (double)z->rows * (double)z->cols,
    };
    task.count = sl_epilogue_pack(epilogue, &arg, task.tiles);
    task.tiles[task.count++] = z;
    sl_task_submit(rt, &task);
}
