/* Features of the entries of an adjacency, which have the order of the entries. */
#ifndef SL_DATA_EDGE_FEATURES_H
#define SL_DATA_EDGE_FEATURES_H

#include "core/sparse.h"
#include "data/dataset.h"
#include "data/source.h"

/* Return 0 if the array can be the edge features of `entries` entries, else SL_ERR_DATA. */
int sl_edge_features_check(const struct sl_npy *stored, int64_t entries);

/* Set *out (nnz, features) to the features of the matrix's entries, which csr->edges names. They
 * stay in place where order and type fit, unless the caller wants a copy. SL_ERR_DATA,
 * SL_ERR_SYSTEM. */
int sl_edge_features_take(const struct sl_npy *stored, const struct sl_csr *csr, bool copies,
                          struct sl_block **blocks, const float **out);

/* Set *out to the transpose; its `edges` are the numbers of the entries in `csr`. SL_ERR_SYSTEM. */
int sl_edge_features_number_transpose(const struct sl_csr *csr, struct sl_block **blocks,
                                      struct sl_csr *out);

/* Give the features of the entries of `before` the order of its transpose. SL_ERR_SYSTEM. */
int sl_edge_features_transpose(struct sl_dataset *data, const struct sl_csr *before);

/* Give the entries of data->adjacency, the union of `before` and its transpose, their features: of
 * an entry that goes both ways the larger, the sum or the mean of each feature. Loops stay as they
 * are. SL_ERR_SYSTEM. */
int sl_edge_features_unite(struct sl_dataset *data, const struct sl_csr *before,
                           enum sl_symmetrize way);

/* Sort the entries of a matrix whose arrays may be written, and merge duplicates: weights and
 * features are summed. Entries of different relations are no duplicates. edge[e] is the row of
 * `from` (any, features) that entry e has. Set data->edge to the features of the entries that are
 * left; add the number of merged duplicates to *merged. SL_ERR_SYSTEM. */
int sl_edge_features_mend(struct sl_dataset *data, struct sl_csr *csr, int32_t *edge,
                          const float *from, int64_t *merged);

/* Return the bytes that features of so many edges, and of their entries, take while they are read.
 */
static inline int64_t sl_edge_features_bytes(int64_t edges, int64_t features, bool both)
{
    const int64_t entries = both ? 2 * edges : edges;
    return features > 0 ? 4 * (edges + entries) * features + 4 * entries : 0;
}

/* ---- Tiles ---- */

/* An entry of I has this number, with the number of its vertex: its row of the files. */
#define SL_EDGE_LOOP 0x80000000u

/* A sl_edge_function; `context` is a struct sl_source. Write what the source reads of an entry. An
 * entry of I has the mean of the features of its vertex's other entries, without loops. */
void sl_edge_features_read(const void *context, uint32_t number, float *features);

#endif
