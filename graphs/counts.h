/* What a walk moves and meets, before there is a task of it: counted from the entries of the tiles,
 * by the rules by which the walk of each distribution works (block_counts.c, halo.c,
 * vertex_cut.c). */
#ifndef SL_GRAPHS_COUNTS_H
#define SL_GRAPHS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* Entries of the tiles of a graph. */
struct sl_tile_counts {
    int tiles;
    int64_t *nnz;    // (tiles, tiles): of S = A + I, or A
    int64_t *back;   // likewise, of its transpose; NULL: follows from `nnz`
    int64_t entries; /* of S */
    bool symmetric;  /* S is its transpose */
    bool has_values;
};

/* Rows that come to a rank, and the messages that they come in. Late ones are the mean over the
 * steps of a round. */
struct sl_flow {
    double rows, messages;
};

/* A walk on one rank. */
struct sl_walk_counts {
    struct sl_flow moved;                /* of each moved matrix */
    struct sl_flow merged, replaced;     /* of each output's states: merged, or taken instead */
    double packed;                       /* rows of states, or of what is moved, that are copied
                                            into messages, and out of them */
    double table;                        /* rows that the own ones may meet */
    int64_t nnz, tiles, row_tiles;       /* of sparse tiles that meet here; rows with such */
    int64_t own_bytes, own_tiles, bytes; /* of the sparse tiles that the rank owns; of those that
                                            meet here */
};

#endif
