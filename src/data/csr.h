/* Build, check and mend CSR matrices. */
#ifndef SL_DATA_CSR_H
#define SL_DATA_CSR_H

#include <stdbool.h>
#include <stdint.h>

#include "data/block.h"
#include "data/dataset.h"

/* A growing list of entries (row, column, weight), in any order. */
struct sl_triples {
    int32_t *rows, *cols; // (count)
    float *weights;       // (count), when weighted; else NULL
    bool weighted;        /* set before the first entry */
    int64_t count, capacity;
};

/* Append an entry; the caller has checked that row and column are in [0, 2^31). SL_ERR_SYSTEM. */
int sl_triples_add(struct sl_triples *triples, int64_t row, int64_t col, float weight);
void sl_triples_free(struct sl_triples *triples);

/* Make the CSR matrix of the triples, in new blocks: sort rows and merge duplicates (weights are
 * summed in the order of the list). Add the number of merged duplicates to *merged. */
int sl_csr_build(const struct sl_triples *triples, int64_t rows, int64_t cols,
                 struct sl_block **blocks, struct sl_csr *out, int64_t *merged);

/* Return SL_ERR_DATA unless indptr starts at 0, never falls and ends at `nnz`, and all columns are
 * in range. All other functions here rely on it. Errors use the two names. */
int sl_csr_check(const struct sl_csr *csr, int64_t nnz, const char *indptr_name,
                 const char *indices_name);

/* Return whether all columns are in range, and whether all values are finite; where not, set *row
 * and *entry to the first wrong entry. */
bool sl_csr_columns_fit(const struct sl_csr *csr, int64_t *row, int64_t *entry);
bool sl_csr_values_finite(const struct sl_csr *csr, int64_t *row, int64_t *entry);

/* Copy the entries, sorted by column in each row, to indices and values (NULL: no values), which
 * may be csr's own arrays. Duplicates keep their order. All cores work. */
int sl_csr_sort(const struct sl_csr *csr, int32_t *indices, float *values);

/* Sort the entries as sl_csr_sort does, and rows of edge features with them (NULL: none). The
 * arrays are csr's own. */
int sl_csr_sort_edges(const struct sl_csr *csr, int32_t *indices, float *values, int32_t *edges);

/* Return whether the columns of some row do not ascend. Set *row and *entry to the first entry
 * whose column is not above the column before. */
bool sl_csr_find_disorder(const struct sl_csr *csr, int64_t *row, int64_t *entry);

/* Sort rows and merge duplicates in place, in arrays that the caller may write. SL_ERR_SYSTEM. */
int sl_csr_mend(struct sl_csr *csr, int64_t *merged);

/* Sort rows and merge duplicates, into new blocks; leave a matrix with sorted rows in place. */
int sl_csr_normalize(struct sl_csr *csr, struct sl_block **blocks, int64_t *merged);

/* Make the transpose, with sorted rows, in new blocks. */
int sl_csr_transpose(const struct sl_csr *csr, struct sl_block **blocks, struct sl_csr *out);

/* Replace a square matrix with sorted rows by its union with its transpose, in new blocks; of two
 * values, the larger counts. */
int sl_csr_symmetrize(struct sl_csr *csr, struct sl_block **blocks);

/* Replace a square matrix with sorted rows by its union with its transpose; of two values take the
 * larger, the sum or the mean. Loops stay as they are. Set *both to the number of pairs with
 * entries both ways, and *different to the number of pairs with two different values. */
int sl_csr_symmetrize_by(struct sl_csr *csr, enum sl_symmetrize way, struct sl_block **blocks,
                         int64_t *both, int64_t *different);

/* Make the symmetric pattern, without values, of a square matrix with sorted rows: its union with
 * its transpose unless `symmetric`. Borrow the arrays of `csr`, or make new arrays in blocks. */
int sl_csr_pattern(const struct sl_csr *csr, bool symmetric, struct sl_block **blocks,
                   struct sl_csr *out);

/* Return the number of entries on the diagonal of a matrix with sorted rows. */
int64_t sl_csr_diagonal_count(const struct sl_csr *csr);

#endif
