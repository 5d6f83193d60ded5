/* Rows that come from outside of all tiles, as from a mapped file. */
#ifndef SL_CODELETS_READ_ROWS_H
#define SL_CODELETS_READ_ROWS_H

#include "codelets/operation.h"

/* Write rows first … first + rows - 1 of what `context` has, `cols` columns each. Workers call it,
 * several at a time. */
typedef void sl_read_rows_function(const void *context, int64_t first, int64_t rows, int64_t cols,
                                   const struct sl_rows *out);

/* Y (rows, cols), of any type = the rows from `first` on. `context` stays the caller's until the
 * task is done. */
void sl_submit_read_rows(struct sl_runtime *rt, sl_read_rows_function *read, const void *context,
                         int64_t first, struct sl_tile *y);

#endif
