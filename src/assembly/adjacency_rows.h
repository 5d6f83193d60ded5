/* Reads rows of S = A + I or A, or of Â = diag(left)·S·diag(right), one at a time, from a rank's
 * rows of A. */
#ifndef SL_ASSEMBLY_ADJACENCY_ROWS_H
#define SL_ASSEMBLY_ADJACENCY_ROWS_H

#include "data/dataset.h"

struct sl_adjacency_rows {
    const struct sl_csr *source; /* this rank's rows of A */
    int64_t first;               /* the row of the graph that source row 0 is */
    int64_t from, to;            /* only columns from … to - 1 are read */
    bool loops;                  /* add I */
    const double *left;          // (source->rows): read rows of Â; NULL: rows of S
    const double *right;         // (to - from): scales of the columns read
    const int32_t *diagonal; // (source->rows): column of I in each row; NULL: the row's own number
    const int32_t *vertex;   // (source->rows): rows of the files, where entries of I have features
    int32_t *columns;        // (longest row + 1): the row read last
    float *values;
};

/* Open the rows of S, with all columns. Return 0 or SL_ERR_SYSTEM; call sl_adjacency_rows_close in
 * either case. */
int sl_adjacency_rows_open(struct sl_adjacency_rows *rows, const struct sl_csr *source,
                           int64_t first, bool loops);
void sl_adjacency_rows_close(struct sl_adjacency_rows *rows);

/* Read row r of the graph, which must be one of this rank's: a sl_row_function. A column comes
 * twice if A + I has it twice: a stored self-loop in a graph without weights. Where entries have
 * features, values are the numbers of entries (sl_edge_features_read), as bits. */
void sl_adjacency_row(const void *rows, int64_t r, int64_t *count, const int32_t **columns,
                      const float **values);

#endif
