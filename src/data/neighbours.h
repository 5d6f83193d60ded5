/* The neighbours of one vertex of a source, read from the files by one thread. */
#ifndef SL_DATA_NEIGHBOURS_H
#define SL_DATA_NEIGHBOURS_H

#include "data/source.h"
#include "data/vertex_set.h"

struct sl_ticket {
    uint64_t number;
    int64_t original;
    int32_t vertex;
};

/* The neighbours of a vertex, and room that the next read uses again. All zero at first; end with
 * sl_neighbours_free. */
struct sl_neighbours {
    int64_t count;
    const int32_t *vertex; // (count): rows of the files, ascending, each once
    const float *weight;   // (count); NULL: all are 1
    int64_t first;         /* the entry of the files that the first neighbour is */
    int32_t *own_vertex;   // (room): copies that are not in the files as they are
    float *own_weight;     // (room); NULL: no weights
    int64_t room, tickets;
    struct sl_ticket *ticket; // (tickets): the smallest random numbers of a draw
};

/* Read the neighbours of row v of the files, as sl_source_read leaves them: in order, duplicates
 * merged. SL_ERR_DATA names file and position; a row with edge features must be in order. Until a
 * draw, neighbour k is entry first + k of the files. SL_ERR_SYSTEM. */
int sl_neighbours_read(const struct sl_source *source, int64_t v, struct sl_neighbours *out);

/* How to draw neighbours. */
struct sl_neighbour_draw {
    int64_t fanout;
    uint64_t key;
    const struct sl_vertex_set *inner; /* inner vertices, by rows of the order */
};

/* Keep at most `fanout` outer neighbours of row v: those with the smallest numbers sl_rng_bits(key,
 * v, neighbour), both by sl_source_number. They come in any order, without weights. Inner
 * neighbours stay only where all neighbours stay. SL_ERR_SYSTEM. */
int sl_neighbours_draw(const struct sl_source *source, int64_t v,
                       const struct sl_neighbour_draw *draw, struct sl_neighbours *neighbours);

void sl_neighbours_free(struct sl_neighbours *neighbours);

#endif
