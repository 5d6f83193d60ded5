/* Rows of S = A + I, or A, or of Â = diag(left)·S·diag(right), one at a time, from a rank's rows of
 * A. */
#ifndef SL_ASSEMBLY_ADJACENCY_ROWS_H
#define SL_ASSEMBLY_ADJACENCY_ROWS_H

#include "data/dataset.h"

struct sl_adjacency_rows {
    const struct sl_csr *source; /* of A */
    int64_t first;               /* the row of the graph that its row 0 is */
    int64_t from, to;            /* columns before and from here on are left out */
    bool loops;                  /* I is added */
    const double *left;          // (source->rows): rows of Â; NULL: of S
    const double *right;         // (to - from)
    const int32_t *diagonal;     // (source->rows): the columns of I; NULL: the rows' own numbers
    int32_t *columns;            // (longest row + 1), of the row read last
    float *values;
};

/* Rows of S with all their columns. SL_ERR_SYSTEM; sl_adjacency_rows_close in either case. */
int sl_adjacency_rows_open(struct sl_adjacency_rows *rows, const struct sl_csr *source,
                           int64_t first, bool loops);
void sl_adjacency_rows_close(struct sl_adjacency_rows *rows);

/* Row r of the graph, which is a row of this rank: a sl_row_function. An entry that A + I has
 * twice, as a vertex with a self-loop has in a graph without weights, comes twice. */
void sl_adjacency_row(const void *rows, int64_t r, int64_t *count, const int32_t **columns,
                      const float **values);

#endif
