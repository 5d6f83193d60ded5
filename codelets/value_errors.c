/* Errors of predicted numbers, for every column and split. */
#include "codelets/value_errors.h"

#include <math.h>
#include <string.h>

#include "codelets/codelet.h"

/* Call `add` for each known value y of the rows, with its prediction z and its numbers. */
static void for_each_value(const struct sl_value_errors *e, double *table,
                           void (*add)(double y, double z, double *numbers))
{
    const int64_t width = sl_target_width(SL_TARGET_VALUES, e->columns);
    for (int64_t r = 0; r < e->rows; r++) {
        const int32_t *target = e->target + r * width;
        double *of_split = table + target[SL_TARGET_SPLIT] * SL_VALUE_ERRORS;
        for (int64_t j = 0; target[SL_TARGET_LABEL] >= 0 && j < e->columns; j++) {
            float y;
            memcpy(&y, &target[SL_TARGET_FIRST + j], sizeof y);
            if (!isnan(y))
                add((double)y, (double)e->z[r * e->ldz + j], of_split + j * SL_TABLE_ERRORS);
        }
    }
}

/* In the first pass, the place of the mean holds the sum. */
static void count_value(double y, double z, double *numbers)
{
    (void)z;
    numbers[SL_KNOWN_VALUES] += 1.0;
    numbers[SL_MEAN_VALUE] += y;
}

static void count_errors(double y, double z, double *numbers)
{
    const double off = y - numbers[SL_MEAN_VALUE], error = z - y;
    numbers[SL_VALUE_SPREAD] += off * off;
    numbers[SL_ABSOLUTE_ERRORS] += fabs(error);
    numbers[SL_SQUARED_ERRORS] += error * error;
}

void sl_kernel_value_errors(const struct sl_value_errors *e, double *table)
{
    memset(table, 0, (size_t)(e->columns * SL_TABLE_ERRORS) * sizeof *table);
    for_each_value(e, table, count_value);
    for (int64_t i = 0; i < e->columns * SL_SPLITS; i++)
        if (table[i * SL_VALUE_ERRORS + SL_KNOWN_VALUES] > 0.0)
            table[i * SL_VALUE_ERRORS + SL_MEAN_VALUE] /=
                table[i * SL_VALUE_ERRORS + SL_KNOWN_VALUES];
    for_each_value(e, table, count_errors);
}

void sl_kernel_join_errors(int64_t columns, const double *from, double *to)
{
    for (int64_t i = 0; i < columns * SL_SPLITS; i++) {
        const double *x = from + i * SL_VALUE_ERRORS;
        double *y = to + i * SL_VALUE_ERRORS;
        const double all = x[SL_KNOWN_VALUES] + y[SL_KNOWN_VALUES],
                     share = all > 0.0 ? x[SL_KNOWN_VALUES] / all : 0.0,
                     apart = x[SL_MEAN_VALUE] - y[SL_MEAN_VALUE];
        y[SL_VALUE_SPREAD] += x[SL_VALUE_SPREAD] + apart * apart * share * y[SL_KNOWN_VALUES];
        y[SL_MEAN_VALUE] += apart * share;
        y[SL_KNOWN_VALUES] = all;
        y[SL_ABSOLUTE_ERRORS] += x[SL_ABSOLUTE_ERRORS];
        y[SL_SQUARED_ERRORS] += x[SL_SQUARED_ERRORS];
    }
}

/* value_errors
 *   buffers   0 R    target (rows, sl_target_width) of int32
 *             1 R    Z (rows, columns)
 *             2 W    table (columns, SL_TABLE_ERRORS) of double */
static void value_errors_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense z = sl_dense_buffer(buffers[1]);
    sl_kernel_value_errors(
        &(struct sl_value_errors){z.rows, z.cols, sl_raw_buffer(buffers[0]), z.data, z.ld},
        sl_raw_buffer(buffers[2]));
}

/* join_errors
 *   buffers   0 R    table (columns, SL_TABLE_ERRORS) of double
 *             1 RW   table (columns, SL_TABLE_ERRORS) of double */
static void join_errors_cpu(void *buffers[], void *argument)
{
    (void)argument;
    sl_kernel_join_errors(STARPU_MATRIX_GET_NY(buffers[1]), sl_raw_buffer(buffers[0]),
                          sl_raw_buffer(buffers[1]));
}

SL_CODELET(value_errors, 0xF4A460, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(join_errors, 0xCD853F, 2, STARPU_R, STARPU_RW);

void sl_submit_value_errors(struct sl_runtime *rt, struct sl_tile *target, struct sl_tile *z,
                            struct sl_tile *table)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &value_errors_codelet,
                           .count = 3,
                           .tiles = {target, z, table},
                           .work = (double)z->rows * (double)z->cols,
                       });
}

void sl_submit_join_errors(struct sl_runtime *rt, struct sl_tile *from, struct sl_tile *to)
{
    sl_task_submit(rt, &(struct sl_task){.codelet = &join_errors_codelet,
                                         .count = 2,
                                         .tiles = {from, to},
                                         .work = (double)to->rows * (double)to->cols});
}
