/* Building, checking and mending CSR matrices. */
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

/* Appends an entry; the caller has checked that both are in [0, 2^31). Fails only for want of
 * memory. */
int sl_triples_add(struct sl_triples *triples, int64_t row, int64_t col, float weight);
void sl_triples_free(struct sl_triples *triples);

/* The CSR matrix of the triples, in new blocks: rows sorted, duplicates merged (weights summed in
 * the order of the list) and their number added to *merged. */
int sl_csr_build(const struct sl_triples *triples, int64_t rows, int64_t cols,
                 struct sl_block **blocks, struct sl_csr *out, int64_t *merged);

/* SL_ERR_DATA unless indptr starts at 0, never falls and ends at `nnz`, and all columns are in
 * range. All other functions here rely on it. The names are for the message. */
int sl_csr_check(const struct sl_csr *csr, int64_t nnz, const char *indptr_name,
                 const char *indices_name);

/* Whether all columns are in range, and whether all values are finite; where not, *row and *entry
 * are the first that is not. */
bool sl_csr_columns_fit(const struct sl_csr *csr, int64_t *row, int64_t *entry);
bool sl_csr_values_finite(const struct sl_csr *csr, int64_t *row, int64_t *entry);

/* Copies the entries to indices and values (NULL: none), which may be csr's own, with each row in
 * order of columns; duplicates stay as they come. On all cores. */
int sl_csr_sort(const struct sl_csr *csr, int32_t *indices, float *values);

/* Sorts rows and merges duplicates in place, in arrays that the caller may write. SL_ERR_SYSTEM. */
int sl_csr_mend(struct sl_csr *csr, int64_t *merged);

/* Sorts rows and merges duplicates, into new blocks; a matrix that is in order already is left in
 * place. */
int sl_csr_normalize(struct sl_csr *csr, struct sl_block **blocks, int64_t *merged);

/* The transpose, in new blocks; rows come out sorted. */
int sl_csr_transpose(const struct sl_csr *csr, struct sl_block **blocks, struct sl_csr *out);

/* The union of a square matrix in order and its transpose, in new blocks; where both have an entry,
 * the larger. */
int sl_csr_symmetrize(struct sl_csr *csr, struct sl_block **blocks);

/* sl_csr_symmetrize with another rule where both have an entry: the larger, the sum or the mean of
 * the two. Loops stay as they are. *both: how many pairs of entries there are; *different: how many
 * pairs have two values. */
int sl_csr_symmetrize_by(struct sl_csr *csr, enum sl_symmetrize way, struct sl_block **blocks,
                         int64_t *both, int64_t *different);

/* The symmetric pattern of a square matrix in order: without values, and the union with its
 * transpose unless `symmetric`. Borrows the arrays of `csr`, or has new ones in blocks. */
int sl_csr_pattern(const struct sl_csr *csr, bool symmetric, struct sl_block **blocks,
                   struct sl_csr *out);

/* Entries on the diagonal of a matrix in order. */
int64_t sl_csr_diagonal_count(const struct sl_csr *csr);

#endif
