/* Rows of Â·X for sparse X, on the host. X is spread over the ranks like the rows of Â. It is
 * broadcast rank by rank: a rank has its own rows of X and one other rank's.
 *
 *   for each rank p but the last:  X(p) to all;  S = S + Â(:, p)·X(p), kept as sparse rows
 *   X(last) to all;  a row r of the result is S(r) + Â(r, last)·X(last), whenever it is asked for
 *
 * Terms are added in double by ascending column of Â, so that ranks do not change a bit. */
#ifndef SL_ASSEMBLY_AGGREGATE_H
#define SL_ASSEMBLY_AGGREGATE_H

#include "assembly/adjacency_rows.h"
#include "core/runtime.h"

/* Rows of X and their factors diag(right). */
struct sl_feature_rows {
    int64_t rows;
    int64_t *indptr;  // (rows + 1)
    int32_t *columns; // (indptr[rows])
    float *values;    // (indptr[rows])
    double *right;    // (rows)
};

struct sl_aggregate {
    struct sl_adjacency_rows rows; /* rows of Â, in the columns that `piece` has */
    struct sl_feature_rows piece;  /* the rows of X broadcast last */
    bool owns_piece;               /* piece came from another rank */
    int64_t *indptr;               // (own rows + 1): S; NULL: S = 0
    int32_t *columns;              // (indptr[own rows])
    double *sums;                  // (indptr[own rows])
    double *sum;                   // (width): sums of the current row
    bool *present;                 // (width): columns of the current row; false between rows
    int32_t *row_columns;          // (width)
    float *row_values;             // (width)
};

/* The factors of Â·X, on this rank. */
struct sl_aggregate_factors {
    const struct sl_csr *adjacency;    /* this rank's rows of A */
    int64_t first;                     /* the row of the graph that adjacency row 0 is */
    bool loops;                        /* take A + I instead of A */
    const double *left;                // (rows): row scales of Â
    const struct sl_feature_rows *own; /* rows of X and diag(right) */
    const int64_t *bounds; // (ranks + 1): rank r has rows bounds[r] … bounds[r + 1] - 1
    int64_t width;         /* columns of X */
};

/* Open the rows of Â·X. Collective. Factors are borrowed until sl_aggregate_close. Return 0 or
 * SL_ERR_SYSTEM; call sl_aggregate_close in either case. */
int sl_aggregate_open(struct sl_runtime *rt, struct sl_aggregate *aggregate,
                      const struct sl_aggregate_factors *factors);
void sl_aggregate_close(struct sl_aggregate *aggregate);

/* Make row r of Â·X, which must be one of this rank's: a sl_row_function. */
void sl_aggregate_row(const void *aggregate, int64_t r, int64_t *count, const int32_t **columns,
                      const float **values);

#endif
