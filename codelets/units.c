/* Blocks of parameters, by lists of rows and columns. */
#include "codelets/units.h"

#include <string.h>

#include "codelets/codelet.h"

/* Columns are listed in runs that stay in the first cache, together with a row. */
enum { RUN = 1024 };

struct run {
    int64_t first; /* column of the block that list[0] is */
    int count;
    int32_t list[RUN]; /* columns of the whole */
};

static bool is_in(const struct sl_units *units, int64_t unit, int part)
{
    return !units->part || units->part[unit] == part;
}

/* The units among the next RUN ones from `from` on. Return where the run after it begins. */
static int64_t list_run(const struct sl_unit_block *block, int64_t from, int64_t cols, struct run *run)
{
    const int64_t to = from + RUN < cols ? from + RUN : cols;
    run->first += run->count;
    run->count = 0;
    for (int64_t c = from; c < to; c++)
        if (is_in(&block->out, c, block->part))
            run->list[run->count++] = (int32_t)c;
    return to;
}

/* Of a row of the whole: its unit, or -1 for a row that belongs to no unit of the input. */
static int64_t unit_of(const struct sl_unit_block *block, int64_t row)
{
    return row < block->weights * block->in.width ? row % block->in.width : -1;
}

static bool has_row(const struct sl_unit_block *block, int64_t unit)
{
    return unit < 0 || is_in(&block->in, unit, block->part);
}

void sl_kernel_take(const struct sl_unit_block *block, const struct sl_parameters *whole,
                    const struct sl_parameters *part)
{
    struct run run = {0};
    for (int64_t from = 0; from < whole->cols;) {
        from = list_run(block, from, whole->cols, &run);
        float *to = part->data + run.first;
        for (int64_t r = 0; r < whole->rows; r++) {
            const float *row = whole->data + r * whole->ld;
            if (!has_row(block, unit_of(block, r)))
                continue;
            for (int k = 0; k < run.count; k++)
                to[k] = row[run.list[k]];
            to += part->ld;
        }
    }
}

/* Whether all sub-models have the row's entries. */
static bool is_shared(const struct sl_unit_block *block, int64_t unit)
{
    return !block->out.part && (unit < 0 || !block->in.part);
}

void sl_kernel_put(const struct sl_unit_block *block, int before, const struct sl_parameters *part,
                   const struct sl_parameters *whole)
{
    struct run run = {0};
    for (int64_t from = 0; from < whole->cols;) {
        from = list_run(block, from, whole->cols, &run);
        const float *value = part->data + run.first;
        for (int64_t r = 0; r < whole->rows; r++) {
            const int64_t unit = unit_of(block, r);
            float *row = whole->data + r * whole->ld;
            if (!has_row(block, unit))
                continue;
            if (before > 0 && is_shared(block, unit))
                for (int k = 0; k < run.count; k++)
                    row[run.list[k]] += (value[k] - row[run.list[k]]) / (float)(before + 1);
            else
                for (int k = 0; k < run.count; k++)
                    row[run.list[k]] = value[k];
            value += part->ld;
        }
    }
}

/* Rounds in which the column's sub-model had the row's unit, too. */
static int64_t rounds_together(const struct sl_unit_block *block, const struct sl_rounds_past *past,
                               int64_t unit, int32_t column)
{
    int64_t count = 0;
    if (unit < 0 || !block->in.part || !block->out.part)
        return past->round;
    for (int64_t t = 0; t < past->round; t++)
        count += block->in.part[t * past->stride + unit] == block->out.part[t * past->stride + column];
    return count;
}

static struct sl_unit_block block_of_round(const struct sl_unit_block *block,
                                      const struct sl_rounds_past *past)
{
    struct sl_unit_block of = *block;
    if (of.in.part)
        of.in.part += past->round * past->stride;
    if (of.out.part)
        of.out.part += past->round * past->stride;
    return of;
}

void sl_kernel_count_steps(const struct sl_unit_block *block, const struct sl_rounds_past *past,
                           const struct sl_parameters *counts)
{
    const struct sl_unit_block now = block_of_round(block, past);
    const int64_t rows = block->weights * block->in.width;
    struct run run = {0};
    for (int64_t from = 0; from < block->out.width;) {
        from = list_run(&now, from, block->out.width, &run);
        float *to = counts->data + run.first;
        float *const end = counts->data + counts->rows * counts->ld;
        for (int64_t r = 0; to < end; r++) {
            const int64_t unit = r < rows ? unit_of(block, r) : -1;
            if (!has_row(&now, unit))
                continue;
            for (int k = 0; k < run.count; k++)
                to[k] = (float)(past->steps * rounds_together(block, past, unit, run.list[k]));
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

static bool has_ended(void *end, const struct units_argument *arg)
{
    const double epoch = *(const double *)sl_raw_buffer(end);
    return epoch > 0.0 && arg->epoch > (int)epoch;
}

/* take
 *   argument  struct units_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    the whole
 *             2 RW   the block */
static void take_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters whole = parameters_of(buffers[1]), part = parameters_of(buffers[2]);
    if (has_ended(buffers[0], arg))
        return;
    for (int64_t r = 0; arg->zero && r < part.rows; r++)
        memset(part.data + r * part.ld, 0, (size_t)part.cols * sizeof(float));
    if (!arg->zero)
        sl_kernel_take(&arg->block, &whole, &part);
}

/* put
 *   argument  struct units_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    the block
 *             2 RW   the whole */
static void put_cpu(void *buffers[], void *argument)
{
    const struct units_argument *arg = argument;
    const struct sl_parameters part = parameters_of(buffers[1]), whole = parameters_of(buffers[2]);
    if (!has_ended(buffers[0], arg))
        sl_kernel_put(&arg->block, arg->before, &part, &whole);
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

SL_HOST_CODELET(take, 0x6B8E23, 3, STARPU_R, STARPU_R, STARPU_RW);
SL_HOST_CODELET(put, 0x556B2F, 3, STARPU_R, STARPU_R, STARPU_RW);
SL_HOST_CODELET(count_steps, 0x9ACD32, 1, STARPU_W);

void sl_submit_take(struct sl_runtime *rt, const struct sl_unit_block *block,
                    const struct sl_units_moment *moment, bool zero, struct sl_tile *whole,
                    struct sl_tile *part)
{
    const struct units_argument arg = {.block = *block, .epoch = moment->epoch, .zero = zero};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &take_codelet,
                           .count = 3,
                           .tiles = {moment->end, whole, part},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)part->rows * (double)part->cols,
                       });
}

void sl_submit_put(struct sl_runtime *rt, const struct sl_unit_block *block,
                   const struct sl_units_moment *moment, int before, struct sl_tile *part,
                   struct sl_tile *whole)
{
    const struct units_argument arg = {.block = *block, .epoch = moment->epoch, .before = before};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &put_codelet,
                           .count = 3,
                           .tiles = {moment->end, part, whole},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)part->rows * (double)part->cols,
                       });
}

void sl_submit_count_steps(struct sl_runtime *rt, const struct sl_unit_block *block,
                           const struct sl_rounds_past *past, struct sl_tile *counts)
{
    const struct units_argument arg = {.block = *block, .past = *past};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &count_steps_codelet,
                           .count = 1,
                           .tiles = {counts},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)counts->rows * (double)counts->cols,
                       });
}
