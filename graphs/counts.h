/* Counts of a walk before any of its tasks exists: rows and messages that travel, tiles that meet.
 * They follow from the entries of the tiles and the rules of each distribution (block_counts.c,
 * halo.c, vertex_cut.c). */
#ifndef SL_GRAPHS_COUNTS_H
#define SL_GRAPHS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* Entries of the tiles of a graph. */
struct sl_tile_counts {
    int tiles;
    int64_t *nnz;    // (tiles, tiles): entries of S = A + I, or A
    int64_t *back;   // (tiles, tiles): entries of its transpose; NULL: follows from `nnz`
    int64_t entries; /* entries of S */
    bool symmetric;  /* S is its transpose */
    int64_t numbers; /* float32 numbers of an entry: its value, or its features */
};

/* Return the bytes that a piece of `rows` rows adds to packed tiles (core/sparse.h), and the bytes
 * of an entry, which has so many numbers, of a tile of `cols` columns. */
static inline int64_t sl_counts_piece_bytes(int64_t rows)
{
    return (rows + 1) * (int64_t)sizeof(uint32_t) + 64;
}

static inline int64_t sl_counts_entry_bytes(int64_t cols, int64_t numbers)
{
    enum { NARROW = 65536 };
    return (cols <= NARROW ? 2 : 4) + 4 * numbers;
}

/* A walk to count: with S or its transpose. Rows of the moved matrices over `from` hops away from
 * the inner vertices are 0, and rows of the result over `to` hops away are not needed
 * (graphs/reach.h).
 */
struct sl_counted_walk {
    bool transposed;
    int from, to;
};

/* Rows that a rank receives, and their messages, where all rows of a walk travel (`share` of
 * graphs/distribution.h). */
struct sl_flow {
    double rows, messages;
};

/* Entries of sparse tiles that meet on a rank: before rows of other ranks arrive, and after. */
struct sl_met {
    int64_t early, late;
};

/* Counts of a walk on one rank. */
struct sl_walk_counts {
    struct sl_flow moved;            /* received rows of each moved matrix */
    struct sl_flow merged, replaced; /* received states of each output: merged, or replacing rows */
    struct sl_flow made; /* rows whose states this rank makes for other ranks, which first send
                            their row operands */
    double packed;       /* rows of states, or of moved matrices, that are copied
                            into messages, and out of messages */
    double table;        /* rows that own rows may meet */
    struct sl_met own, others; /* entries of own rows; entries of rows whose sums this rank makes
                                  for other ranks, before its own rows */
    int64_t tiles, row_tiles;  /* sparse tiles that meet here; row tiles in which some meet */
    int64_t own_last; /* entries in own.early of tiles (i, k), k < i: sums in the order of tiles
                         meet them after other ranks' tiles, if any */
    int64_t own_bytes, own_tiles, bytes; /* bytes and number of the sparse tiles that the rank owns;
                                            bytes of the sparse tiles that meet here */
};

static inline int64_t sl_counts_nnz(const struct sl_walk_counts *c)
{
    return c->own.early + c->own.late + c->others.early + c->others.late;
}

#endif
