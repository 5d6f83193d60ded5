/* Errors of predicted numbers, column by column, for MAE and R². */
#ifndef SL_CODELETS_VALUE_ERRORS_H
#define SL_CODELETS_VALUE_ERRORS_H

#include "codelets/operation.h"
#include "codelets/target.h"
#include "core/split.h"

/* Numbers of a column in a split: how many values are known; their mean; the sum of their squares
 * about the mean; the sums of absolute and of squared errors. */
enum {
    SL_KNOWN_VALUES,
    SL_MEAN_VALUE,
    SL_VALUE_SPREAD,
    SL_ABSOLUTE_ERRORS,
    SL_SQUARED_ERRORS,
    SL_VALUE_ERRORS
};

/* Numbers of a column in a table (columns, SL_TABLE_ERRORS): SL_VALUE_ERRORS for each split. */
enum { SL_TABLE_ERRORS = SL_SPLITS * SL_VALUE_ERRORS };

struct sl_value_errors {
    int64_t rows, columns;
    const int32_t *target; // (rows, sl_target_width) of SL_TARGET_VALUES
    const float *z;        // (rows, columns)
    int64_t ldz;
};

/* Set table (columns, SL_TABLE_ERRORS) over rows with a label, and values that are known. */
void sl_kernel_value_errors(const struct sl_value_errors *e, double *table);
void sl_cuda_value_errors(const struct sl_value_errors *e, double *table,
                          struct sl_cuda_queue queue);

/* Join the table `from` of other rows to the table `to`: counts and sums of errors add up; means
 * and spreads join by the formulas of Chan, Golub and LeVeque (1979). */
void sl_kernel_join_errors(int64_t columns, const double *from, double *to);
void sl_cuda_join_errors(int64_t columns, const double *from, double *to,
                         struct sl_cuda_queue queue);

/* Submit table (columns, SL_TABLE_ERRORS) of double of this tile's rows. */
void sl_submit_value_errors(struct sl_runtime *rt, struct sl_tile *target, struct sl_tile *z,
                            struct sl_tile *table);

/* Submit the join of table `from` to table `to`. */
void sl_submit_join_errors(struct sl_runtime *rt, struct sl_tile *from, struct sl_tile *to);

#endif
