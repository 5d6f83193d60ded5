/* Rows of a matrix as threads draw them, a block of rows each, and the CSR matrix that they become.
 */
#ifndef SL_DATA_BLOCK_ROWS_H
#define SL_DATA_BLOCK_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/block.h"
#include "data/dataset.h"

/* A growing list. */
struct sl_ids {
    int32_t *ids;
    int64_t count, capacity;
};

/* Makes room for `more` at the end; false: out of memory. */
bool sl_ids_reserve(struct sl_ids *list, int64_t more);
void sl_ids_free(struct sl_ids *list);

struct sl_block_rows {
    int64_t rows; /* 1 … 2^31 - 1; the columns are as many */
    int bits;     /* a block is the rows that agree but for so many bits, at most 16 */
    int64_t block_count;
    struct sl_ids *blocks; // (block_count): columns, ascending in each row, row by row
    int32_t *length;       // (rows)
    struct sl_block *memory;
};

/* Cuts `rows` rows, which are all empty and of unknown length, into blocks. */
int sl_block_rows_create(int64_t rows, struct sl_block_rows *out);
void sl_block_rows_destroy(struct sl_block_rows *rows);

/* The first row of a block; for block_count, the number of rows. */
int64_t sl_block_rows_begin(const struct sl_block_rows *rows, int64_t block);

/* These rows as a CSR matrix in new blocks; with `mirror`, together with their transpose: all
 * entries (u, v) must then have u < v. O(entries), without a sort; the same for any number of
 * threads. The rows are used up. SL_ERR_SYSTEM: out of memory. */
int sl_block_rows_assemble(struct sl_block_rows *rows, bool mirror, int threads,
                           struct sl_block **blocks, struct sl_csr *out);

#endif
