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

#endif
