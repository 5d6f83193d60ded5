/* Data handles of StarPU: one for each tile that a rank uses. */
#ifndef SL_CORE_HANDLE_H
#define SL_CORE_HANDLE_H

#include "core/runtime.h"
#include "core/tile.h"

/* Return the handle of a tile on this rank; make it at first use. The handle uses the owner's
 * memory; elsewhere StarPU allocates where the tile is needed. Rows are `ld` elements apart in
 * every memory. */
void *sl_tile_handle(const struct sl_runtime *rt, struct sl_tile *tile);

/* Choose the interface of handles that are made from now on: our own, or StarPU's matrices.
 * Messages of StarPU's matrices have StarPU's types. Return the interface's number. Call this
 * before the first handle; by default, handles have StarPU's interface. */
int sl_handles_set_interface(bool own);

/* The rows of a tile, the bytes of a row, and the bytes from row to row, equal in all memories. */
struct sl_handle_rows {
    int64_t rows, bytes, apart;
};

struct sl_handle_rows sl_handle_rows(void *handle);

/* Wait for the tasks and messages on a tile's handle. The owner's memory then holds the last value.
 * The next tile that needs a handle takes this one: batches that are made anew register no handles.
 */
void sl_handle_forget(void *handle);

/* Unregister a tile's handle after the tasks on it. The owner's memory then holds the last value.
 */
void sl_handle_unregister(void *handle);

/* Unregister all handles at the end of sl_runtime_stop. Only tiles of functions that sl_fatal has
 * left still have handles then. */
void sl_handles_free(void);

/* Return how many tile handles this process has registered. Each use of a temporary tile counts,
 * unless its handle serves again (core/temporary.h). */
int64_t sl_handles_registered(void);

#endif
