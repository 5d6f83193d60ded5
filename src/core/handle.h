/* Data handles of StarPU: one for each tile that a rank uses. */
#ifndef SL_CORE_HANDLE_H
#define SL_CORE_HANDLE_H

#include "core/runtime.h"
#include "core/tile.h"

/* The handle of a tile on this rank, made at first use: over the owner's memory, or without any, so
 * that StarPU allocates where the tile is needed. Wherever it is, its rows are `ld` apart. */
void *sl_tile_handle(const struct sl_runtime *rt, struct sl_tile *tile);

/* Give the handles that follow an interface of their own, or that of StarPU's matrices. Messages of
 * StarPU's matrices have StarPU's types. Return the interface's number. Call this before the first
 * handle; without a call, the interface is that of StarPU's matrices. */
int sl_handles_set_interface(bool own);

/* Rows of a tile, and bytes of a row and from row to row, the same in all memories. */
struct sl_handle_rows {
    int64_t rows, bytes, apart;
};

struct sl_handle_rows sl_handle_rows(void *handle);

/* Wait for the tasks and messages on a handle of a tile. The owner's memory then holds the last
 * value. The next tile that needs a handle takes this one: batches that are made anew register
 * none.
 */
void sl_handle_forget(void *handle);

/* Unregister a handle of a tile after the tasks on it. Memory of an owner has its last value. */
void sl_handle_unregister(void *handle);

/* Unregister all handles. Part of sl_runtime_stop: tiles have none any more, but those of functions
 * that sl_fatal has left. */
void sl_handles_free(void);

/* Return how many handles of tiles this process has registered. Those of temporary tiles count for
 * each use, unless they serve again (core/temporary.h). */
int64_t sl_handles_registered(void);

#endif
