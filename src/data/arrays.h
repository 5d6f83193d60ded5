/* From stored .npy arrays to the parts of a dataset: what the directory layout and .npz archives
 * share. */
#ifndef SL_DATA_ARRAYS_H
#define SL_DATA_ARRAYS_H

#include "data/dataset.h"
#include "data/npy.h"

/* A CSR matrix, checked and put in order; in place where the stored types fit. `cols` < 0: as many
 * as its largest index needs. `data` NULL: all 1. Merged duplicates are added to *merged. */
int sl_arrays_csr(const struct sl_npy *indptr, const struct sl_npy *indices,
                  const struct sl_npy *data, int64_t cols, struct sl_block **blocks,
                  struct sl_csr *out, int64_t *merged);

/* Dense features (n, f). */
int sl_arrays_features(const struct sl_npy *features, struct sl_dataset *out);

/* Labels: (n) classes, or (n, c) 0/1 for multi-label. */
int sl_arrays_labels(const struct sl_npy *labels, struct sl_dataset *out);

/* Vertex numbers of one split. */
int sl_arrays_split(const struct sl_npy *ids, struct sl_dataset *out, struct sl_index_set *split);

#endif
