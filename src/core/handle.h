/* Data handles of StarPU: one for each tile that a rank uses. */
#ifndef SL_CORE_HANDLE_H
#define SL_CORE_HANDLE_H

#include "core/runtime.h"
#include "core/tile.h"

/* The handle of a tile on this rank, made at first use: over the owner's memory, or without any, so
 * that StarPU allocates where the tile is needed. Wherever it is, its rows are `ld` apart. */
void *sl_tile_handle(const struct sl_runtime *rt, struct sl_tile *tile);

#endif
