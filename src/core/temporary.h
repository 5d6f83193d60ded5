/* Tiles for one use inside a task graph. */
#ifndef SL_CORE_TEMPORARY_H
#define SL_CORE_TEMPORARY_H

#include "core/runtime.h"
#include "core/tile.h"

/* A tile of float32 that stays on this rank: the runtime allocates it where it is first written,
 * which must come before it is read. */
void sl_temporary_open(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols);

/* The same on rank `owner`, which sends it to another one: both open it, with one of `count` tags
 * that all ranks have taken together. */
int64_t sl_temporary_tags(struct sl_runtime *rt, int64_t count);
void sl_temporary_open_shared(struct sl_tile *tile, int64_t rows, int64_t cols, size_t element_size,
                              int owner, int64_t tag);

/* Lets the runtime free what is in it after the tasks and messages that were submitted on it; the
 * next one writes it first. Waits for nothing. */
void sl_temporary_empty(struct sl_tile *tile);

/* Lets the runtime free it after the tasks that were submitted on it; waits for nothing. */
void sl_temporary_close(struct sl_tile *tile);

#endif
