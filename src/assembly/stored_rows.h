/* Rows of dense features that stay in the dataset's files. Tasks read them when they are needed. */
#ifndef SL_ASSEMBLY_STORED_ROWS_H
#define SL_ASSEMBLY_STORED_ROWS_H

#include "core/tile.h"
#include "data/source.h"

struct sl_stored_rows {
    struct sl_npy features;    // (any rows, width): the source owns the memory
    struct sl_moments moments; // (width)
    int64_t first, rows;       /* this rank's rows of the matrix; 0 rows: none, or not stored */
    int64_t width;
    int32_t *row;   // (rows): row of `features`
    double *factor; // (rows): factor of the row
};

/* Allocate the lists of rows and factors. Return 0 or SL_ERR_SYSTEM; call sl_stored_rows_free in
 * either case. */
int sl_stored_rows_create(struct sl_stored_rows *stored, const struct sl_source *source,
                          int64_t first, int64_t rows, int64_t width);
void sl_stored_rows_free(struct sl_stored_rows *stored);

/* Return the bytes of the lists of rows and factors. */
int64_t sl_stored_rows_bytes(const struct sl_stored_rows *stored);

/* Submit the reading of this rank's rows of X (n, width), a task for each tile. The tasks use
 * `stored` until they are done. */
void sl_stored_rows_load(struct sl_runtime *rt, const struct sl_stored_rows *stored,
                         const struct sl_matrix *x);

#endif
