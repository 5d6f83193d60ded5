/* The minimum vertex cover of a bipartite graph. */
#ifndef SL_GRAPHS_BIPARTITE_H
#define SL_GRAPHS_BIPARTITE_H

#include <stdbool.h>
#include <stdint.h>

/* A bipartite graph of rows and columns, as the pattern of a sparse matrix. Entries of a row come
 * in any order. Duplicates are allowed. */
struct sl_bipartite {
    int64_t rows, cols;     /* at most 2^31 - 1 each */
    const int64_t *indptr;  // (rows + 1)
    const int32_t *columns; // (indptr[rows]), 0 … cols - 1
};

/* Find the cover of least weight: each entry's row or column is in the cover. If several covers
 * have the least weight, take the one with the most rows: it contains every row of every such
 * cover. So the cover depends on the graph alone, not on the order of entries. Return 0 or
 * SL_ERR_SYSTEM. Two million entries take 0.1 to 2 seconds, longest on grid graphs. Near-equal
 * weights over a thousand may take a minute; divide them before.
 *
 *     row_weight, col_weight   of each row and of each column; at least 1
 *     row                      (rows), whether the cover contains a row
 *     col                      (cols), whether the cover contains a column
 *     weight                   of the cover
 */
int sl_bipartite_cover(const struct sl_bipartite *graph, int row_weight, int col_weight, bool *row,
                       bool *col, int64_t *weight);

#endif
