/* Turn stored .npy arrays into pieces of a dataset, for the directory layout and .npz archives. */
#ifndef SL_DATA_ARRAYS_H
#define SL_DATA_ARRAYS_H

#include "data/dataset.h"
#include "data/formats/npy.h"

/* Return SL_ERR_DATA unless the arrays have the shapes of a CSR matrix; `data` NULL: all values
 * are 1. */
int sl_arrays_check_csr(const struct sl_npy *indptr, const struct sl_npy *indices,
                        const struct sl_npy *data);

/* Return SL_ERR_DATA unless an array has `dims` dimensions and a row per vertex. */
int sl_arrays_check_rows(const struct sl_npy *npy, int dims, int64_t vertices);

/* Check labels: (n), (n, 1) or (n, c), else SL_ERR_DATA. Labels (n, 1) become (n). Labels
 * (n, c) need *classes = c; if *classes was 0, set *classes to c. */
int sl_arrays_check_labels(struct sl_npy *labels, int64_t vertices, int64_t *classes);

/* Make a checked CSR matrix with sorted rows; borrow the arrays where their types and order fit.
 * Add the number of merged duplicates to *merged. */
int sl_arrays_csr(const struct sl_npy *indptr, const struct sl_npy *indices,
                  const struct sl_npy *data, int64_t cols, struct sl_block **blocks,
                  struct sl_csr *out, int64_t *merged);

/* Set the dense features (n, f) of *out. */
int sl_arrays_features(const struct sl_npy *features, struct sl_dataset *out);

/* Set labels of *out: (n) classes or their names, (n, c) of 0/1, or numbers (sl_labels_settle). */
int sl_arrays_labels(struct sl_npy *labels, struct sl_dataset *out);

#endif
