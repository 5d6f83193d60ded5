/* Tiles for one use inside a task graph. */
#ifndef SL_CORE_TEMPORARY_H
#define SL_CORE_TEMPORARY_H

#include "core/runtime.h"
#include "core/tile.h"

/* Open a tile of float32 that stays on this rank. The runtime allocates the tile where it is first
 * written; write the tile before any task reads it. */
void sl_temporary_open(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols);

/* Open a tile of rank `owner`, which sends the tile to another rank. Both ranks open it with the
 * same `tag`. All ranks together take `count` tags beforehand; sl_temporary_tags returns the first
 * tag. */
int64_t sl_temporary_tags(struct sl_runtime *rt, int64_t count);
void sl_temporary_open_shared(struct sl_tile *tile, int64_t rows, int64_t cols, size_t element_size,
                              int owner, int64_t tag);

/* Let the runtime free the contents after the submitted tasks and messages on the tile. The next
 * task writes the tile first. Wait for nothing. */
void sl_temporary_empty(struct sl_tile *tile);

/* Let the runtime free the tile after the submitted tasks on it. Wait for nothing. */
void sl_temporary_close(struct sl_tile *tile);

/* Handles of closed temporary tiles, for later tiles of the same shape: repeated aggregations and
 * products register no handles. A handle rests for SL_TEMPORARY_REST turns, since tasks on its next
 * tile wait for tasks on its last one. The order of the calls alone decides which handle a tile
 * gets. Zeroed: there are none. */
enum { SL_TEMPORARY_REST = 4, SL_TEMPORARY_LISTS = 64 };

struct sl_temporaries {
    int64_t turn;
    /* Lists of resting handles, by shape. */
    struct sl_resting *first[SL_TEMPORARY_LISTS], *last[SL_TEMPORARY_LISTS];
};

/* Begin a turn, before an aggregation or a product. With NULL, this function and the next do
 * nothing, and sl_temporaries_close closes the tile. */
void sl_temporaries_turn(struct sl_temporaries *temporaries);

/* Give an opened tile that no task has used a handle that has rested, if there is one. */
void sl_temporaries_serve(struct sl_temporaries *temporaries, struct sl_tile *tile);

/* Close the tile and let its handle rest. */
void sl_temporaries_close(struct sl_temporaries *temporaries, struct sl_tile *tile);

/* Wait for the tasks on all handles. The handles serve other tiles then (core/handle.h). */
void sl_temporaries_free(struct sl_temporaries *temporaries);

#endif
