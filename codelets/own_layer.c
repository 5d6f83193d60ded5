/* A program's layer: some rows at a time are copied side by side, as float32. */
#include "codelets/own_layer.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "codelets/codelet.h"
#include "core/error.h"

int sl_own_layer_open(struct sl_own_layer_arrays *arrays, int64_t cols, int64_t parameters)
{
    const size_t items = SL_OWN_ROWS * (size_t)cols + 1;
    *arrays = (struct sl_own_layer_arrays){
        .input = malloc(items * sizeof *arrays->input),
        .output = malloc(items * sizeof *arrays->output),
        .gradient = malloc(items * sizeof *arrays->gradient),
        .parameters = calloc((size_t)(parameters * cols) + 1, sizeof *arrays->parameters),
    };
    return arrays->input && arrays->output && arrays->gradient && arrays->parameters ? 0 : -1;
}

void sl_own_layer_free(struct sl_own_layer_arrays *arrays)
{
    free(arrays->input);
    free(arrays->output);
    free(arrays->gradient);
    free(arrays->parameters);
}

/* Copy rows r … r + count - 1 of X side by side, as float32. */
static void take_rows(const struct sl_rows *x, int64_t r, int64_t count, int64_t cols, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        const void *row = sl_rows_at(x, r + i, 0).data;
        if (x->type == SL_FLOAT32)
            memcpy(out + i * cols, row, (size_t)cols * sizeof *out);
        for (int64_t j = 0; x->type == SL_BFLOAT16 && j < cols; j++)
            out[i * cols + j] = sl_widen(((const uint16_t *)row)[j]);
    }
}

/* List the address of each parameter's first element. */
static void list_parameters(const struct sl_own_layer *own, int64_t cols, float *first,
                            float **list)
{
    for (int p = 0; p < own->matrices + own->vectors; p++) {
        list[p] = first;
        first += p < own->matrices ? cols * cols : cols;
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void sl_kernel_own_layer(const struct sl_own_layer *own, int64_t rows, int64_t cols,
                         const float *parameters, const struct sl_rows *h,
                         const struct sl_epilogue *epilogue,
                         const struct sl_own_layer_arrays *arrays, const struct sl_rows *z)
{
    float *list[SL_OWN_MATRICES + SL_OWN_VECTORS];
    const struct sl_rows output = sl_float_rows(arrays->output, cols);
    list_parameters(own, cols, (float *)parameters, list);
    for (int64_t r = 0; r < rows; r += SL_OWN_ROWS) {
        const int64_t count = least(rows - r, SL_OWN_ROWS);
        take_rows(h, r, count, cols, arrays->input);
        memset(arrays->output, 0, (size_t)(count * cols) * sizeof *arrays->output);
        own->forward(own->context, &(struct starling_layer_rows){
                                       .rows = count,
                                       .columns = cols,
                                       .input = arrays->input,
                                       .parameters = (const float *const *)list,
                                       .output = arrays->output,
                                   });
        const struct sl_epilogue here = sl_epilogue_at(epilogue, r, 0);
        const struct sl_rows to = sl_rows_at(z, r, 0);
        sl_kernel_epilogue(count, cols, &here, &output, &to);
    }
}

/* Write Y = after · the gradients of rows r … r + count - 1. */
static void put_rows(const struct sl_own_layer_back *b, int64_t r, int64_t count, const float *from)
{
    for (int64_t i = 0; i < count; i++) {
        const float times = b->after ? b->after[r + i] : 1.0f;
        void *row = sl_rows_at(&b->y, r + i, 0).data;
        for (int64_t j = 0; j < b->cols; j++)
            if (b->y.type == SL_FLOAT32)
                ((float *)row)[j] = times * from[i * b->cols + j];
            else
                ((uint16_t *)row)[j] = sl_narrow(times * from[i * b->cols + j]);
    }
}

void sl_kernel_own_layer_back(const struct sl_own_layer *own, const struct sl_own_layer_back *b,
                              const struct sl_own_layer_arrays *arrays)
{
    float *list[SL_OWN_MATRICES + SL_OWN_VECTORS], *gradients[SL_OWN_MATRICES + SL_OWN_VECTORS];
    const int64_t parameters = own->matrices * b->cols + own->vectors;
    list_parameters(own, b->cols, (float *)b->parameters, list);
    list_parameters(own, b->cols, arrays->parameters, gradients);
    memset(arrays->parameters, 0, (size_t)(parameters * b->cols) * sizeof *arrays->parameters);
    for (int64_t r = 0; r < b->rows; r += SL_OWN_ROWS) {
        const int64_t count = least(b->rows - r, SL_OWN_ROWS);
        take_rows(&b->h, r, count, b->cols, arrays->input);
        take_rows(&b->g, r, count, b->cols, arrays->output);
        memset(arrays->gradient, 0, (size_t)(count * b->cols) * sizeof *arrays->gradient);
        own->backward(own->context, &(struct starling_layer_rows){
                                        .rows = count,
                                        .columns = b->cols,
                                        .input = arrays->input,
                                        .parameters = (const float *const *)list,
                                        .output_gradient = arrays->output,
                                        .input_gradient = arrays->gradient,
                                        .parameter_gradients = gradients,
                                    });
        put_rows(b, r, count, arrays->gradient);
    }
    for (int64_t p = 0; p < parameters; p++)
        memcpy(b->d + p * b->ldd, arrays->parameters + p * b->cols, (size_t)b->cols * sizeof *b->d);
}

/* ---- Tasks ---- */

/* own_layer
 *   argument  struct own_layer_argument
 *   buffers   …   R   what the epilogue needs
 *             -3  R   parameters (matrices · cols + vectors, cols)
 *             -2  R   H (rows, cols)
 *             -1  W   Z (rows, cols) */
static void own_layer_cpu(void *buffers[], void *argument)
{
    const struct own_layer_argument *arg = argument;
    struct sl_epilogue epilogue;
    void **own = buffers + sl_epilogue_buffers(&arg->epilogue, buffers, &epilogue);
    const struct sl_rows h = sl_rows_buffer(own[1]), z = sl_rows_buffer(own[2]);
    const int64_t cols = STARPU_MATRIX_GET_NX(own[2]);
    struct sl_own_layer_arrays arrays;
    if (sl_own_layer_open(&arrays, cols, 0)) {
        sl_own_layer_free(&arrays);
        sl_fatal("no memory for some rows of a layer");
    }
    sl_kernel_own_layer(arg->own, STARPU_MATRIX_GET_NY(own[2]), cols, sl_raw_buffer(own[0]), &h,
                        &epilogue, &arrays, &z);
    sl_own_layer_free(&arrays);
}

/* own_layer_back
 *   argument  struct own_layer_back_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    parameters (matrices · cols + vectors, cols)
 *             2 R    G (rows, cols)
 *             3 W    gradient of the parameters, of this shape
 *             4 RW   H (rows, cols), then its gradient */
static void own_layer_back_cpu(void *buffers[], void *argument)
{
    const struct own_layer_back_argument *arg = argument;
    const struct sl_rows h = sl_rows_buffer(buffers[4]);
    const struct sl_dense d = sl_dense_buffer(buffers[3]);
    struct sl_own_layer_arrays arrays;
    if (sl_own_layer_open(&arrays, d.cols, d.rows)) {
        sl_own_layer_free(&arrays);
        sl_fatal("no memory for some rows of a layer");
    }
    sl_kernel_own_layer_back(arg->own,
                             &(struct sl_own_layer_back){
                                 .rows = STARPU_MATRIX_GET_NY(buffers[4]),
                                 .cols = d.cols,
                                 .parameters = sl_raw_buffer(buffers[1]),
                                 .h = h,
                                 .g = sl_rows_buffer(buffers[2]),
                                 .after = sl_row_scale(buffers[0], arg->after),
                                 .d = d.data,
                                 .ldd = d.ld,
                                 .y = h,
                             },
                             &arrays);
    sl_own_layer_free(&arrays);
}

static double work_of(const struct sl_own_layer *own, const struct sl_tile *rows)
{
    return (double)rows->rows * (double)rows->cols *
           (1.0 + (double)own->matrices * (double)rows->cols);
}

SL_HOST_CODELET(own_layer, 0x9370DB, STARPU_VARIABLE_NBUFFERS, 0);
SL_HOST_CODELET(own_layer_back, 0x8A2BE2, 5, STARPU_R, STARPU_R, STARPU_R, STARPU_W, STARPU_RW);

void sl_submit_own_layer(struct sl_runtime *rt, const struct sl_own_layer *own,
                         struct sl_tile *parameters, struct sl_tile *h,
                         const struct sl_epilogue_tiles *epilogue, struct sl_tile *z)
{
    struct own_layer_argument arg = {.own = own};
    struct sl_task task = {
        .codelet = &own_layer_codelet,
        .output = SL_TASK_WRITES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = work_of(own, z),
        .kind = own->number,
    };
    task.count = sl_epilogue_pack(epilogue, z, &arg.epilogue, task.tiles);
    task.tiles[task.count++] = parameters;
    task.tiles[task.count++] = h;
    task.tiles[task.count++] = z;
    sl_task_submit(rt, &task);
}

void sl_submit_own_layer_back(struct sl_runtime *rt, const struct sl_own_layer *own,
                              struct sl_tile *scales, enum sl_row_scale after,
                              struct sl_tile *parameters, struct sl_tile *g,
                              struct sl_tile *gradient, struct sl_tile *h)
{
    const struct own_layer_back_argument arg = {own, after};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &own_layer_back_codelet,
                           .count = 5,
                           .tiles = {scales, parameters, g, gradient, h},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = 2.0 * work_of(own, h),
                           .kind = own->number,
                       });
}
