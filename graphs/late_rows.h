/* Late rows: rows between the training steps of a vertex-cut with a delay. This rank has received
 * them, and they wait for the next step of their bin. With late rows and the number of steps, a run
 * goes on as if it had not ended.
 *
 *   rows of an aggregation:   bin 0: rows for roots, message by message, then rows for leaves;
 *                             bin 1: …
 *
 * Bins that had no step yet have zeros. */
#ifndef SL_GRAPHS_LATE_ROWS_H
#define SL_GRAPHS_LATE_ROWS_H

#include "graphs/vertex_cut.h"

/* Count the rows of this rank in each aggregation; 0 without a delay. */
int64_t sl_late_rows(const struct sl_vertex_cut *cut);

/* Copy the late rows of aggregation `number` to out (rows, width). Wait for their messages: all
 * ranks have submitted `steps` steps. */
void sl_late_rows_keep(struct sl_runtime *rt, struct sl_vertex_cut *cut, int64_t steps, int number,
                       int64_t width, float *out);

/* Copy the late rows in `in`, not NULL, back before the first step. All ranks call it for the same
 * aggregations in the same order, also where they have no rows. */
void sl_late_rows_restore(struct sl_runtime *rt, struct sl_vertex_cut *cut, int64_t steps,
                          int number, int64_t width, const float *in);

#endif
