/* Normalisation of rows or columns: sums of columns to statistics, and the tasks. */
#include "codelets/norm.h"

#include "codelets/accumulate.h"
#include "codelets/codelet.h"
#include "codelets/init.h"

void sl_kernel_norm_statistics(int64_t cols, double count, const double *sums, int64_t ld,
                               float *statistics, int64_t lds)
{
    for (int64_t j = 0; j < cols; j++) {
        const double mean = sums[j] / count, variance = sums[ld + j] / count - mean * mean;
        statistics[j] = (float)mean;
        statistics[lds + j] = (float)(variance < 0.0 ? 0.0 : variance);
    }
}

void sl_kernel_norm_averages(int64_t cols, double count, const float *statistics, int64_t lds,
                             float *averages, int64_t lda)
{
    const double unbiased = count > 1.0 ? count / (count - 1.0) : 1.0;
    for (int64_t j = 0; j < cols; j++) {
        averages[j] = statistics[j];
        averages[lda + j] = (float)((double)statistics[lds + j] * unbiased);
    }
}

/* ---- Tasks ---- */

int sl_norm_pack(const struct sl_norm_tiles *from, struct sl_tile *g, struct sl_tile *d,
                 const struct sl_tile *z, struct norm_argument *to, struct sl_tile **tiles)
{
    int count = 0;
    to->epsilon = from->epsilon;
    to->running = from->running;
    to->statistics = from->statistics && !from->running;
    to->moments = from->moments;
    to->column = from->column;
    to->whole = from->parameters->cols;
    to->d = d;
    to->g = g;
    to->z_is_h = z == from->h;
    to->z_is_g = z == g;
    tiles[count++] = from->parameters;
    if (to->scales)
        tiles[count++] = from->scales;
    if (to->statistics)
        tiles[count++] = from->statistics;
    if (to->moments)
        tiles[count++] = from->moments;
    if (d)
        tiles[count++] = d;
    if (!to->z_is_h)
        tiles[count++] = from->h;
    if (g && !to->z_is_g)
        tiles[count++] = g;
    return count;
}

void sl_norm_buffers(const struct norm_argument *arg, void **buffers, struct norm_operands *to)
{
    int used = sl_epilogue_buffers(&arg->epilogue, buffers, &to->epilogue);
    const struct sl_dense parameters = sl_dense_buffer(buffers[used++]);
    struct sl_norm *norm = &to->norm;
    *norm = (struct sl_norm){.epsilon = arg->epsilon,
                             .whole = arg->whole,
                             .weight = parameters.data + arg->column,
                             .bias = parameters.data + parameters.ld + arg->column};
    to->after = to->d = NULL;
    if (arg->scales) {
        norm->root = sl_row_scale(buffers[used], SL_ROW_ROOT);
        to->after = sl_row_scale(buffers[used++], arg->after);
    }
    if (arg->running) {
        norm->mean = parameters.data + 2 * parameters.ld + arg->column;
        norm->variance = norm->mean + parameters.ld;
    } else if (arg->statistics) {
        const struct sl_dense statistics = sl_dense_buffer(buffers[used++]);
        norm->mean = statistics.data + arg->column;
        norm->variance = norm->mean + statistics.ld;
    }
    if (arg->moments) {
        const struct sl_dense moments = sl_dense_buffer(buffers[used++]);
        norm->moments = moments.data;
        norm->ldm = moments.ld;
    }
    if (arg->d) {
        const struct sl_dense d = sl_dense_buffer(buffers[used++]);
        to->d = d.data + (arg->moments ? 0 : arg->column);
        to->ldd = d.ld;
    }
    void *const h = buffers[used], *const g = buffers[used + !arg->z_is_h];
    used += !arg->z_is_h + (arg->g && !arg->z_is_g);
    to->gradient = NULL;
    if (arg->gradient) {
        const struct sl_dense gradient = sl_dense_buffer(buffers[used++]);
        to->gradient = gradient.data;
        to->ldg = gradient.ld;
    }
    void *const z = buffers[used];
    norm->h = sl_rows_buffer(arg->z_is_h ? z : h);
    norm->rows = STARPU_MATRIX_GET_NY(arg->z_is_h ? z : h);
    norm->cols = STARPU_MATRIX_GET_NX(arg->z_is_h ? z : h);
    to->g = sl_rows_buffer(arg->z_is_g ? z : g);
    to->z = sl_rows_buffer(z);
    to->z_rows = STARPU_MATRIX_GET_NY(z);
}

/* norm
 *   argument  struct norm_argument
 *   buffers   …       R    row scales and factors, as far as the epilogue needs them
 *             …       R    parameters (2 or 4, width)
 *             …       R    statistics (2, width) or moments (3, rows), if there are
 *             before  R    H (rows, cols), unless it is Z
 *             last    W    Z (rows, cols), or RW */
static void norm_cpu(void *buffers[], void *argument)
{
    struct norm_operands o;
    sl_norm_buffers(argument, buffers, &o);
    sl_kernel_norm(&o.norm, &o.epilogue, &o.z);
}

/* norm_sums
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    H (rows, cols)
 *             2 W    sums (2, cols) of double */
static void norm_sums_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_rows h = sl_rows_buffer(buffers[1]);
    sl_kernel_norm_sums(STARPU_MATRIX_GET_NY(buffers[1]), STARPU_MATRIX_GET_NX(buffers[1]),
                        sl_row_scale(buffers[0], SL_ROW_ROOT), &h, sl_raw_buffer(buffers[2]),
                        STARPU_MATRIX_GET_LD(buffers[2]));
}

/* norm_statistics
 *   argument  struct norm_statistics_argument
 *   buffers   0 R      sums (2, cols) of double
 *             1 W/RW   statistics (2, width), of which `cols` columns are written */
static void norm_statistics_cpu(void *buffers[], void *argument)
{
    const struct norm_statistics_argument *arg = argument;
    const struct sl_dense statistics = sl_dense_buffer(buffers[1]);
    sl_kernel_norm_statistics(STARPU_MATRIX_GET_NX(buffers[0]), arg->count,
                              sl_raw_buffer(buffers[0]), STARPU_MATRIX_GET_LD(buffers[0]),
                              statistics.data + arg->column, statistics.ld);
}

/* norm_averages
 *   argument  double, the count
 *   buffers   0 R    statistics (2, cols)
 *             1 RW   gradient (4, cols), of which two rows are written */
static void norm_averages_cpu(void *buffers[], void *argument)
{
    const struct sl_dense statistics = sl_dense_buffer(buffers[0]),
                          gradient = sl_dense_buffer(buffers[1]);
    sl_kernel_norm_averages(statistics.cols, *(const double *)argument, statistics.data,
                            statistics.ld, gradient.data + 2 * gradient.ld, gradient.ld);
}

/* norm_gradient
 *   argument  struct norm_argument
 *   buffers   …       R    parameters (2 or 4, width)
 *             …       R    statistics (2, width) or moments (3, rows), if there are
 *             …       R    H (rows, cols)
 *             before  R    G (rows, cols)
 *             last    W    gradient (2 or 4, cols) */
static void norm_gradient_cpu(void *buffers[], void *argument)
{
    struct norm_operands o;
    sl_norm_buffers(argument, buffers, &o);
    float *const d = o.z.data;
    sl_kernel_norm_gradient(&o.norm, &o.g, d, o.z.ld);
    sl_kernel_fill(o.z_rows - 2, o.norm.cols, 0.0f, d + 2 * o.z.ld, o.z.ld);
}

/* norm_back
 *   argument  struct norm_argument
 *   buffers   …       R    parameters (2 or 4, width)
 *             …       R    row scales (SL_ROW_SCALES, rows), if there are
 *             …       R    statistics (2, width) or moments (3, rows), if there are
 *             …       R    D (2 or 4, width), or products (2, rows), if there is
 *             …       R    H (rows, cols), unless it is Y
 *             …       R    G (rows, cols), unless it is Y
 *             before  W    gradient (2, cols), if there is
 *             last    W    Y (rows, cols), or RW */
static void norm_back_cpu(void *buffers[], void *argument)
{
    struct norm_operands o;
    sl_norm_buffers(argument, buffers, &o);
    const struct sl_norm_back back = sl_norm_back_of(argument, &o);
    sl_kernel_norm_back(&back);
}

SL_CODELET_ANY(norm, 0x9370DB);
SL_CODELET_ANY(norm_gradient, 0xBA55D3);
SL_CODELET_ANY(norm_back, 0x9932CC);
SL_CODELET(norm_sums, 0x8A2BE2, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET_ANY(norm_statistics, 0x9400D3);
SL_CODELET(norm_averages, 0x8B008B, 2, STARPU_R, STARPU_RW);

static bool of_columns(const struct sl_norm_tiles *tiles)
{
    return tiles->running || tiles->statistics;
}

/* Return the kind of task for performance models: 0 for rows, 1 for columns, 2 for rows with given
 * moments. Kind 3 is norm_back of rows with the gradient of the parameters. */
static uint32_t kind_of(const struct sl_norm_tiles *tiles)
{
    return tiles->moments ? 2 : of_columns(tiles);
}

void sl_submit_norm(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                    const struct sl_epilogue_tiles *epilogue, struct sl_tile *z)
{
    struct norm_argument arg = {.after = SL_ROW_NONE};
    struct sl_task task = {
        .codelet = &norm_codelet,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)z->rows * (double)z->cols,
    };
    task.count = sl_epilogue_pack(epilogue, z, &arg.epilogue, task.tiles);
    task.count += sl_norm_pack(tiles, NULL, NULL, z, &arg, task.tiles + task.count);
    task.tiles[task.count++] = z;
    task.kind = sl_epilogue_kind(&arg.epilogue) | kind_of(tiles) << SL_EPILOGUE_KINDS;
    task.output = arg.z_is_h ? SL_TASK_UPDATES : SL_TASK_WRITES;
    sl_task_submit(rt, &task);
}

void sl_submit_norm_sums(struct sl_runtime *rt, struct sl_tile *scales, struct sl_tile *h,
                         struct sl_tile *sums)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &norm_sums_codelet,
                           .count = 3,
                           .tiles = {scales, h, sums},
                           .urgency = SL_TASK_SOON,
                           .work = (double)h->rows * (double)h->cols,
                       });
}

void sl_submit_norm_sums_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_submit_metrics_add(rt, x, y);
}

void sl_submit_norm_statistics(struct sl_runtime *rt, int64_t count, struct sl_tile *sums,
                               int64_t column, struct sl_tile *statistics)
{
    const struct norm_statistics_argument arg = {(double)count, column};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &norm_statistics_codelet,
                           .count = 2,
                           .output = column ? SL_TASK_UPDATES : SL_TASK_WRITES,
                           .tiles = {sums, statistics},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_SOON,
                           .work = (double)sums->cols,
                       });
}

void sl_submit_norm_averages(struct sl_runtime *rt, int64_t count, struct sl_tile *statistics,
                             struct sl_tile *gradient)
{
    const double rows = (double)count;
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &norm_averages_codelet,
                           .count = 2,
                           .tiles = {statistics, gradient},
                           .argument = &rows,
                           .argument_size = sizeof rows,
                           .urgency = SL_TASK_LATER,
                           .work = (double)gradient->cols,
                       });
}

/* Submit the gradient. For a norm of columns it is urgent: the gradient of H waits for it. */
void sl_submit_norm_gradient(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                             struct sl_tile *g, struct sl_tile *gradient)
{
    struct norm_argument arg = {.after = SL_ROW_NONE};
    struct sl_task task = {
        .codelet = &norm_gradient_codelet,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = of_columns(tiles) ? SL_TASK_SOON : SL_TASK_LATER,
        .work = (double)g->rows * (double)g->cols,
        .kind = kind_of(tiles),
        .output = SL_TASK_WRITES,
    };
    task.count = sl_norm_pack(tiles, g, NULL, gradient, &arg, task.tiles);
    task.tiles[task.count++] = gradient;
    sl_task_submit(rt, &task);
}

void sl_submit_norm_back(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                         struct sl_tile *g, struct sl_tile *d, int64_t count,
                         enum sl_row_scale after, struct sl_tile *y)
{
    struct norm_argument arg = {
        .scales = (d && !tiles->moments) || after != SL_ROW_NONE,
        .after = after,
        .count = (double)count,
        .gradient = tiles->gradient,
    };
    struct sl_task task = {
        .codelet = &norm_back_codelet,
        .argument = &arg,
        .argument_size = sizeof arg,
        .work = (double)y->rows * (double)y->cols,
        .kind = tiles->gradient ? 3 : kind_of(tiles),
    };
    task.count = sl_norm_pack(tiles, g, d, y, &arg, task.tiles);
    if (tiles->gradient) {
        task.tiles[task.count++] = tiles->gradient;
        task.before_output = SL_TASK_WRITES;
    }
    task.tiles[task.count++] = y;
    task.output = arg.z_is_h || arg.z_is_g ? SL_TASK_UPDATES : SL_TASK_WRITES;
    sl_task_submit(rt, &task);
}
