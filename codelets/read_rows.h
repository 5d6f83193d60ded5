/* Rows that are read into tiles, for instance from a mapped file. */
#ifndef SL_CODELETS_READ_ROWS_H
#define SL_CODELETS_READ_ROWS_H

#include "codelets/operation.h"

/* Write rows first … first + rows - 1 of the source `context`, `cols` columns each, to `out`.
 * Several workers may call it at a time. */
typedef void sl_read_rows_function(const void *context, int64_t first, int64_t rows, int64_t cols,
                                   const struct sl_rows *out);

/* Submit Y (rows, cols), of any type = the source's rows from `first` on. The caller keeps
 * `context` until the task is done. */
void sl_submit_read_rows(struct sl_runtime *rt, sl_read_rows_function *read, const void *context,
                         int64_t first, struct sl_tile *y);

#endif
