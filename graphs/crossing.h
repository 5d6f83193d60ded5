/* Crossings: entries of S whose rows are of one rank and whose columns are of another rank. A
 * minimum vertex cover says which of the two ranks serves each entry (graphs/cover.h). */
#ifndef SL_GRAPHS_CROSSING_H
#define SL_GRAPHS_CROSSING_H

#include "core/sparse.h"

struct sl_crossing {
    int32_t row, col;
    float value;
};

/* The crossings of rows first … end - 1: rank by rank of the column, then by row, then by column.
 */
struct sl_crossings {
    int ranks;
    int64_t first, end;
    int64_t *rank_first;       // (ranks + 1)
    struct sl_crossing *entry; // (rank_first[ranks])
};

/* List the crossings of rows first … end - 1, but those in `by_row` (rows of the graph; NULL:
 * none). Rank r has the rows bounds[r] … bounds[r + 1] - 1. Columns of a row ascend. Return 0 or
 * SL_ERR_SYSTEM; sl_crossings_free in either case. */
int sl_crossings_list(struct sl_crossings *crossings, int ranks, const int64_t *bounds,
                      int64_t first, int64_t end, sl_row_function *row, const void *context,
                      const bool *by_row);
void sl_crossings_free(struct sl_crossings *crossings);

/* Weights of a row of H and of a result: bytes that travel, or numbers in proportion; at least 1.
 */
struct sl_cover_weights {
    int row, result;
};

/* Find the minimum cover of crossings (count) of two ranks, which come row by row. Set by_row (rows
 * of the graph) for their columns: whether the row of H travels. Set place (rows of the graph) for
 * their columns to numbers from 0. Return 0 or SL_ERR_SYSTEM. */
int sl_crossings_cover(const struct sl_crossing *entry, int64_t count,
                       struct sl_cover_weights weights, int32_t *place, bool *by_row);

/* Find the covers for all ranks of the columns, in parallel on all cores. Set place and by_row, and
 * return, as sl_crossings_cover does. */
int sl_crossings_cover_all(const struct sl_crossings *crossings, struct sl_cover_weights weights,
                           int32_t *place, bool *by_row);

#endif
