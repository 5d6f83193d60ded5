/* What happens to the rows of a result once their sums are complete. */
#ifndef SL_CODELETS_EPILOGUE_H
#define SL_CODELETS_EPILOGUE_H

#include "codelets/kernels.h"

/* Rows [from, to) of Z, of SUM and of the operands of `epilogue`. Of bfloat16, SUM has no mask. */
void sl_epilogue_rows(const struct sl_epilogue *epilogue, int64_t from, int64_t to, int64_t cols,
                      const struct sl_rows *sum, const struct sl_rows *z);

/* Return the epilogue for the submatrix that begins at element (r, j). NULL gives an epilogue that
 * does nothing. */
struct sl_epilogue sl_epilogue_at(const struct sl_epilogue *epilogue, int64_t r, int64_t j);

#endif
