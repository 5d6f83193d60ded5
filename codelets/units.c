/* Blocks of parameters, by lists of rows and columns. */
#include "codelets/units.h"

#include <math.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/metrics.h"

/* Most columns of a run. Columns are listed run by run, and each run goes over all rows: a mapped
 * file is read from its beginning to its end. */
enum { RUN = 1 << 15 };

struct run {
    int64_t first; /* column of the block for list[0] */
    int count;
    int32_t list[RUN]; /* listed columns of the whole */
};

static bool is_in(const struct sl_units *units, int64_t unit, int part)
{
    return !units->part || units->part[unit] == part;
}

/* List the block's units among the next RUN columns from `from` on. Return the first column of the
 * next run. */
static int64_t list_run(const struct sl_unit_block *block, int64_t from, int64_t cols,
                        struct run *run)
{
    const int64_t to = from + RUN < cols ? from + RUN : cols;
    run->first += run->count;
    run->count = 0;
    for (int64_t c = from; c < to; c++)
        if (is_in(&block->out, c, block->part))
            run->list[run->count++] = (int32_t)c;
    return to;
}

/* Return the unit of a row of the layer; -1 for a row that belongs to no unit of the input. */
static int64_t unit_of(const struct sl_unit_block *block, int64_t row)
{
    return row < block->weights * block->in.width ? row % block->in.width : -1;
}

static bool has_row(const struct sl_unit_block *block, int64_t unit)
{
    return unit < 0 || is_in(&block->in, unit, block->part);
}

int64_t sl_unit_block_shared(const struct sl_unit_block *block, int64_t rows)
{
    const int64_t others = block->first + rows - block->weights * block->in.width;
    if (block->out.part)
        return 0;
    return !block->in.part || others > rows ? rows : others > 0 ? others : 0;
}

int64_t sl_unit_block_rows(const struct sl_unit_block *block, int64_t rows)
{
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++)
        count += block->all_rows || has_row(block, unit_of(block, block->first + r));
    return count;
}

/* Move a run of a row between the listed columns of the whole and columns side by side in a block.
 */
typedef void move_function(const struct run *run, float factor, float *listed, float *dense);

static void take_run(const struct run *run, float factor, float *listed, float *dense)
{
    for (int k = 0; k < run->count; k++)
        dense[k] = factor * listed[run->list[k]];
}

static void put_run(const struct run *run, float factor, float *listed, float *dense)
{
    for (int k = 0; k < run->count; k++)
        listed[run->list[k]] = dense[k] / factor;
}

/* Move rows between the whole and the block: all rows before the shared ones. */
static void move(const struct sl_unit_block *block, const struct sl_parameters *whole,
                 const struct sl_parameters *part, move_function *move_one)
{
    const int64_t rows = whole->rows - sl_unit_block_shared(block, whole->rows);
    const float factor = ldexpf(1.0f, block->shift);
    struct run run = {0};
    for (int64_t from = 0; rows > 0 && from < whole->cols;) {
        from = list_run(block, from, whole->cols, &run);
        float *dense = part->data + run.first;
        for (int64_t r = 0; r < rows; r++) {
            const int64_t unit = unit_of(block, block->first + r);
            const bool has = has_row(block, unit);
            if (has)
                move_one(&run, unit < 0 ? 1.0f : factor, whole->data + r * whole->ld, dense);
            dense += has || block->all_rows ? part->ld : 0;
        }
    }
}

static float *last_rows(const struct sl_parameters *of, int64_t rows)
{
    return of->data + (of->rows - rows) * of->ld;
}

static void copy_rows(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                      int64_t ldy)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + r * ldy, x + r * ldx, (size_t)cols * sizeof *y);
}

void sl_kernel_clear_others(const struct sl_unit_block *block, const struct sl_parameters *part)
{
    for (int64_t r = 0; r < part->rows; r++)
        if (!has_row(block, unit_of(block, block->first + r)))
            memset(part->data + r * part->ld, 0, (size_t)part->cols * sizeof *part->data);
}

static void take_entries(const struct sl_unit_block *block, const struct sl_parameters *whole,
                         const struct sl_parameters *part)
{
    move(block, whole, part, take_run);
    if (block->all_rows)
        sl_kernel_clear_others(block, part);
}

void sl_kernel_take(const struct sl_unit_block *block, const struct sl_parameters *whole,
                    const struct sl_parameters *kept, const struct sl_parameters *part)
{
    take_entries(block, whole, part);
    copy_rows(kept->rows, kept->cols, kept->data, kept->ld, last_rows(part, kept->rows), part->ld);
}

int64_t sl_unit_block_apart(const struct sl_unit_block *block, int64_t rows)
{
    const int64_t others = block->first + rows - block->weights * block->in.width;
    if (!block->in.part)
        return sl_unit_block_shared(block, rows);
    return others > rows ? rows : others > 0 ? others : 0;
}

void sl_kernel_take_block(const struct sl_unit_block *block, bool first,
                          const struct sl_parameters *whole, const struct sl_parameters *part)
{
    const int64_t shared = sl_unit_block_shared(block, whole->rows),
                  rows = sl_unit_block_apart(block, whole->rows);
    take_entries(block, whole, part);
    if (first)
        copy_rows(shared, whole->cols, last_rows(whole, shared), whole->ld, last_rows(part, shared),
                  part->ld);
    for (int64_t r = 0; !first && r < rows; r++)
        memset(last_rows(part, rows) + r * part->ld, 0, (size_t)part->cols * sizeof *part->data);
}

void sl_kernel_put(const struct sl_unit_block *block, const struct sl_parameters *part,
                   const struct sl_parameters *kept, const struct sl_parameters *whole)
{
    move(block, whole, part, put_run);
    copy_rows(kept->rows, kept->cols, last_rows(part, kept->rows), part->ld, kept->data, kept->ld);
}

void sl_kernel_merge(int before, const struct sl_parameters *kept,
                     const struct sl_parameters *whole)
{
    float *to = last_rows(whole, kept->rows);
    for (int64_t r = 0; r < kept->rows; r++)
        for (int64_t c = 0; c < kept->cols; c++) {
            const float value = kept->data[r * kept->ld + c];
            float *mean = to + r * whole->ld + c;
            *mean = before ? *mean + (value - *mean) / (float)(before + 1) : value;
        }
}

/* Return how many bytes of two lists are equal. A byte counts up to UINT8_MAX of them, so that the
 * compiler compares many at a time. */
static int64_t count_same(int64_t count, const uint8_t *a, const uint8_t *b)
{
    int64_t all = 0;
    for (int64_t from = 0; from < count; from += UINT8_MAX) {
        const int64_t to = from + UINT8_MAX < count ? from + UINT8_MAX : count;
        uint8_t same = 0;
        for (int64_t i = from; i < to; i++)
            same = (uint8_t)(same + (a[i] == b[i]));
        all += same;
    }
    return all;
}

/* Return the number of rounds in which one sub-model had the units of both row and column. */
static int64_t rounds_together(const struct sl_rounds_past *past, int64_t unit, int32_t column)
{
    if (unit < 0 || !past->in || !past->out)
        return past->round;
    return count_same(past->round, past->in + unit * past->stride,
                      past->out + column * past->stride);
}

void sl_kernel_count_steps(const struct sl_unit_block *block, const struct sl_rounds_past *past,
                           const struct sl_parameters *counts)
{
    struct run run = {0};
    for (int64_t from = 0; from < block->out.width;) {
        from = list_run(block, from, block->out.width, &run);
        float *to = counts->data + run.first;
        float *const end = counts->data + counts->rows * counts->ld;
        for (int64_t r = 0; to < end; r++) {
            const int64_t unit = unit_of(block, r);
            if (!has_row(block, unit) && !block->all_rows)
                continue;
            for (int k = 0; k < run.count; k++)
                to[k] = (float)(past->steps * rounds_together(past, unit, run.list[k]));
            to += counts->ld;
        }
    }
}

/* ---- Tasks ---- */

static struct sl_parameters parameters_of(void *buffer)
{
    const struct sl_dense dense = sl_dense_buffer(buffer);
    return (struct sl_parameters){dense.data, dense.rows, dense.cols, dense.ld};
}

static const struct sl_parameters NOTHING = {0};

static void fill_zero(const struct sl_parameters *of)
{
    for (int64_t r = 0; r < of->rows; r++)
        memset(of->data + r * of->ld, 0, (size_t)of->cols * sizeof *of->data);
}

static bool has_ended(void *end, const struct units_argument *arg)
{
    const double epoch = *(const double *)sl_raw_buffer(end);
    return epoch > 0.0 && arg->epoch > (int)epoch;
}

static struct sl_parameters rows_at(void *buffer, int64_t at, int64_t rows)
{
    const struct sl_parameters all = parameters_of(buffer);
    return (struct sl_parameters){all.data + at * all.ld, rows, all.cols, all.ld};
}

/* take
 *   argument  struct units_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    the whole
 *               R    kept rows, if there are any
 *             last   RW the block, among other rows; or W */
static void take_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters whole = parameters_of(buffers[1]),
                               part = rows_at(buffers[2 + arg->kept], arg->at, arg->rows),
                               kept = arg->kept ? parameters_of(buffers[2]) : NOTHING;
    if (has_ended(buffers[0], arg))
        return;
    if (arg->zero)
        fill_zero(&part);
    else if (arg->whole)
        sl_kernel_take_block(&arg->block, arg->shared, &whole, &part);
    else
        sl_kernel_take(&arg->block, &whole, &kept, &part);
}

/* put
 *   argument  struct units_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    the block, among other rows
 *               RW   kept rows, if there are any
 *             last   RW the whole */
static void put_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters part = rows_at(buffers[1], arg->at, arg->rows),
                               whole = parameters_of(buffers[2 + arg->kept]),
                               kept = arg->kept ? parameters_of(buffers[2]) : NOTHING;
    if (!has_ended(buffers[0], arg))
        sl_kernel_put(&arg->block, &part, &kept, &whole);
}

/* rows_in
 *   argument  struct units_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    X (rows, cols)
 *             2 RW   Y (more rows, cols) */
static void rows_in_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters x = parameters_of(buffers[1]),
                               y = rows_at(buffers[2], arg->at, x.rows);
    if (!has_ended(buffers[0], arg))
        copy_rows(x.rows, x.cols, x.data, x.ld, y.data, y.ld);
}

/* rows_out
 *   argument  struct units_argument
 *   buffers   0 R    X (more rows, cols)
 *             1 W    Y (rows, cols) */
static void rows_out_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters y = parameters_of(buffers[1]),
                               x = rows_at(buffers[0], arg->at, y.rows);
    copy_rows(y.rows, y.cols, x.data, x.ld, y.data, y.ld);
}

/* clear_others
 *   argument  struct units_argument
 *   buffers   0 RW   a matrix like the block */
static void clear_others_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters part = parameters_of(buffers[0]);
    sl_kernel_clear_others(&arg->block, &part);
}

/* merge
 *   argument  struct units_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    kept rows
 *             2 RW   the whole */
static void merge_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters kept = parameters_of(buffers[1]), whole = parameters_of(buffers[2]);
    if (!has_ended(buffers[0], arg))
        sl_kernel_merge(arg->before, &kept, &whole);
}

/* share
 *   argument  struct units_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    the whole
 *             2 RW   kept rows */
static void share_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters whole = parameters_of(buffers[1]), kept = parameters_of(buffers[2]);
    if (has_ended(buffers[0], arg))
        return;
    if (arg->zero)
        fill_zero(&kept);
    else
        copy_rows(kept.rows, kept.cols, last_rows(&whole, kept.rows), whole.ld, kept.data, kept.ld);
}

/* metrics_copy
 *   buffers   0 R    X (rows, cols) of double, without gaps
 *             1 W    Y (rows, cols) of double */
static void metrics_copy_cpu(void *buffers[], void *argument)
{
    (void)argument;
    memcpy(sl_raw_buffer(buffers[1]), sl_raw_buffer(buffers[0]),
           (size_t)STARPU_MATRIX_GET_NX(buffers[1]) * STARPU_MATRIX_GET_NY(buffers[1]) *
               sizeof(double));
}

/* count_steps
 *   argument  struct units_argument
 *   buffers   0 W    the counts of the block */
static void count_steps_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters counts = parameters_of(buffers[0]);
    sl_kernel_count_steps(&arg->block, &arg->past, &counts);
}

/* metrics_join
 *   buffers   0 R    X (1, SL_METRICS) of double
 *             1 RW   Y (1, SL_METRICS) of double */
static void metrics_join_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const double *x = sl_raw_buffer(buffers[0]);
    double *y = sl_raw_buffer(buffers[1]);
    for (int i = 0; i < SL_METRICS; i++)
        if (i != SL_METRIC_BAD_GRADIENT && i != SL_METRIC_BAD_UPDATE)
            y[i] += x[i];
        else if (x[i] > 0.0 && (y[i] == 0.0 || x[i] < y[i]))
            y[i] = x[i];
}

SL_CODELET_ANY(take, 0x6B8E23);
SL_CODELET_ANY(put, 0x556B2F);
SL_CODELET(rows_in, 0x8FBC8F, 3, STARPU_R, STARPU_R, STARPU_RW);
SL_CODELET(rows_out, 0x8FBC8F, 2, STARPU_R, STARPU_W);
SL_CODELET(clear_others, 0x6B8E23, 1, STARPU_RW);
SL_CODELET(merge, 0x808000, 3, STARPU_R, STARPU_R, STARPU_RW);
SL_CODELET(share, 0xBDB76B, 3, STARPU_R, STARPU_R, STARPU_RW);
SL_CODELET(count_steps, 0x9ACD32, 1, STARPU_W);
SL_CODELET(metrics_copy, 0x5F9EA0, 2, STARPU_R, STARPU_W);
SL_CODELET(metrics_join, 0x5F9EA0, 2, STARPU_R, STARPU_RW);

/* Return whether a GPU's workspace has room for the parts of all units, and for lists of the tiles'
 * rows and columns. */
static bool has_room(const struct units_argument *arg, const struct sl_task *task)
{
    const int64_t units = arg->block.in.width + arg->block.out.width;
    int64_t most = 0;
    for (int t = 0; t < task->count; t++) {
        const struct sl_tile *tile = task->tiles[t];
        most = tile->rows + tile->cols > most ? tile->rows + tile->cols : most;
    }
    return units + most * (int64_t)sizeof(int32_t) + 1024 <= SL_UNITS_HISTORY;
}

static void submit(struct sl_runtime *rt, struct starpu_codelet *codelet, struct units_argument arg,
                   struct sl_task task)
{
    const struct sl_tile *output = task.tiles[task.count - 1];
    task.on_cores = !has_room(&arg, &task);
    task.codelet = codelet;
    task.argument = &arg;
    task.argument_size = sizeof arg;
    task.work = (double)output->rows * (double)output->cols;
    sl_task_submit(rt, &task);
}

static struct units_argument argument_of(const struct sl_unit_take *take)
{
    return (struct units_argument){.block = take->block,
                                   .epoch = take->step.epoch,
                                   .at = take->at,
                                   .rows = take->rows,
                                   .zero = take->zero,
                                   .kept = take->kept && take->kept->rows > 0,
                                   .whole = !take->kept,
                                   .shared = take->shared};
}

/* Submit a take. A tile that the take fills in any case need not have been written before. */
void sl_submit_take(struct sl_runtime *rt, const struct sl_unit_take *take, struct sl_tile *whole,
                    struct sl_tile *part)
{
    const struct units_argument argument = argument_of(take);
    const bool fills = take->step.epoch == 0 && take->rows == part->rows;
    struct sl_task task = {.output = fills ? SL_TASK_WRITES : SL_TASK_UPDATES,
                           .tiles = {take->step.end, whole},
                           .count = 2};
    if (argument.kept)
        task.tiles[task.count++] = take->kept;
    task.tiles[task.count++] = part;
    submit(rt, &take_codelet, argument, task);
}

void sl_submit_put(struct sl_runtime *rt, const struct sl_unit_take *take, struct sl_tile *part,
                   struct sl_tile *whole)
{
    const struct units_argument argument = argument_of(take);
    struct sl_task task = {.output = SL_TASK_UPDATES, .tiles = {take->step.end, part}, .count = 2};
    if (argument.kept) {
        task.before_output = SL_TASK_UPDATES;
        task.tiles[task.count++] = take->kept;
    }
    task.tiles[task.count++] = whole;
    submit(rt, &put_codelet, argument, task);
}

void sl_submit_rows_in(struct sl_runtime *rt, const struct sl_units_step *step, int64_t at,
                       struct sl_tile *rows, struct sl_tile *tile)
{
    submit(rt, &rows_in_codelet, (struct units_argument){.epoch = step->epoch, .at = at},
           (struct sl_task){.tiles = {step->end, rows, tile}, .count = 3});
}

void sl_submit_rows_out(struct sl_runtime *rt, int64_t at, struct sl_tile *tile,
                        struct sl_tile *rows)
{
    submit(rt, &rows_out_codelet, (struct units_argument){.at = at},
           (struct sl_task){.tiles = {tile, rows}, .count = 2});
}

void sl_submit_clear_others(struct sl_runtime *rt, const struct sl_unit_block *block,
                            struct sl_tile *part)
{
    submit(rt, &clear_others_codelet, (struct units_argument){.block = *block},
           (struct sl_task){.tiles = {part}, .count = 1});
}

void sl_submit_merge(struct sl_runtime *rt, const struct sl_units_step *step, int before,
                     struct sl_tile *kept, struct sl_tile *whole)
{
    if (kept->rows)
        submit(rt, &merge_codelet, (struct units_argument){.epoch = step->epoch, .before = before},
               (struct sl_task){.tiles = {step->end, kept, whole}, .count = 3});
}

void sl_submit_share(struct sl_runtime *rt, const struct sl_units_step *step, bool zero,
                     struct sl_tile *whole, struct sl_tile *kept)
{
    if (kept->rows)
        submit(rt, &share_codelet, (struct units_argument){.epoch = step->epoch, .zero = zero},
               (struct sl_task){.tiles = {step->end, whole, kept}, .count = 3});
}

void sl_submit_metrics_copy(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_task_submit(
        rt, &(struct sl_task){.codelet = &metrics_copy_codelet, .count = 2, .tiles = {x, y}});
}

void sl_submit_count_steps(struct sl_runtime *rt, const struct sl_unit_block *block,
                           const struct sl_rounds_past *past, struct sl_tile *counts)
{
    submit(rt, &count_steps_codelet, (struct units_argument){.block = *block, .past = *past},
           (struct sl_task){.tiles = {counts}, .count = 1});
}

void sl_submit_metrics_join(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_task_submit(
        rt, &(struct sl_task){.codelet = &metrics_join_codelet, .count = 2, .tiles = {x, y}});
}
