/* Tiles for one use inside a task graph. */
#ifndef SL_CORE_TEMPORARY_H
#define SL_CORE_TEMPORARY_H

#include "core/runtime.h"
#include "core/tile.h"

/* A tile of float32 that stays on this rank: the runtime allocates it where it is first written,
 * which must come before it is read. */
void sl_temporary_open(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols);

/* Lets the runtime free it after the tasks that were submitted on it; waits for nothing. */
void sl_temporary_close(struct sl_tile *tile);

#endif
