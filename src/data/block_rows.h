/* Rows of a matrix in blocks that threads fill, and the CSR matrix made of the blocks. */
#ifndef SL_DATA_BLOCK_ROWS_H
#define SL_DATA_BLOCK_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/block.h"
#include "data/dataset.h"

/* A growing list of column numbers. */
struct sl_ids {
    int32_t *ids;
    int64_t count, capacity;
};

/* Make room for `more` items at the end; return false without memory. */
bool sl_ids_reserve(struct sl_ids *list, int64_t more);
void sl_ids_free(struct sl_ids *list);

struct sl_block_rows {
    int64_t rows; /* 1 … 2^31 - 1; the matrix is square */
    int bits;     /* a block has 2^bits rows, which differ only in these low bits; at most 16 */
    int64_t block_count;
    struct sl_ids *blocks; // (block_count): columns, ascending in each row, row by row
    int32_t *length;       // (rows)
    struct sl_block *memory;
};

/* Cut `rows` empty rows of unknown length into blocks. Return 0 or SL_ERR_SYSTEM. */
int sl_block_rows_create(int64_t rows, struct sl_block_rows *out);
void sl_block_rows_destroy(struct sl_block_rows *rows);

/* Return the first row of a block; for block_count, the number of rows. */
int64_t sl_block_rows_begin(const struct sl_block_rows *rows, int64_t block);

/* Make a CSR matrix of the rows in new blocks, and use up the rows. With `mirror`, add their
 * transpose: all entries (u, v) must then have u < v. O(entries), without a sort; the result does
 * not depend on the threads. SL_ERR_SYSTEM: out of memory. */
int sl_block_rows_assemble(struct sl_block_rows *rows, bool mirror, int threads,
                           struct sl_block **blocks, struct sl_csr *out);

#endif
