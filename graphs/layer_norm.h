/* Normalisation of an evaluation, a block of columns at a time. */
#ifndef SL_GRAPHS_LAYER_NORM_H
#define SL_GRAPHS_LAYER_NORM_H

#include "graphs/network.h"

/* Moments of rows, from blocks of their columns. */
struct sl_norm_blocks {
    int tiles;
    struct sl_tile *moments; // (T) tiles (SL_NORM_MOMENTS, rows) on this rank, of all blocks so far
    struct sl_tile *block;   // (T): moments of one block
    struct sl_tile *parts;   // (T, C): moments of each rank's columns
    int64_t cols;            /* columns so far; the caller sets 0 before the first block */
};

/* Make the moments for rows of the network's graph. Return 0 or SL_ERR_SYSTEM;
 * sl_norm_blocks_destroy in either case. */
int sl_norm_blocks_create(struct sl_network *net, struct sl_norm_blocks *b);
void sl_norm_blocks_destroy(struct sl_norm_blocks *b);

/* Return the bytes of the moments on this rank, with parts that the group sends. */
int64_t sl_norm_blocks_bytes(const struct sl_network *net, const struct sl_norm_blocks *b);

/* Submit the moments of the next block H (n, cols). */
void sl_norm_blocks_add(struct sl_network *net, struct sl_norm_blocks *b,
                        const struct sl_matrix *h);

/* Submit a block Z (n, cols) = epilogue(the norm of H), with the block's columns of the norm's
 * parameters. `b` NULL: columns are normalised, by running averages. */
void sl_norm_block(struct sl_network *net, const struct sl_norm_blocks *b,
                   struct sl_tile *parameters, const struct sl_epilogue_tiles *epilogue,
                   const struct sl_matrix *h, const struct sl_matrix *z);

#endif
