/* Views: a runtime on some of the ranks. Each has rank numbers, collectives, tags, a window of
 * stages and traffic of its own, over the same workers, handles and memory. Messages of tiles stay
 * on one communicator: StarPU serves it with one thread. */
#ifndef SL_CORE_VIEW_H
#define SL_CORE_VIEW_H

#include "core/runtime.h"
#include "core/tile.h"

/* Number of tags of a view. */
static const int64_t SL_VIEW_TAGS = (int64_t)1 << 40;

/* Make the view of all ranks of `parent` with this colour (at least 0), in the order of their ranks
 * in `parent`. Views nest. Messages of one view never match messages of another view. Collective in
 * the parent, which stems from sl_runtime_start. Call sl_view_free before the parent is stopped or
 * freed. Return 0 or SL_ERR_SYSTEM. */
int sl_view_split(struct sl_runtime *parent, int colour, struct sl_runtime *view);

/* Free a view. Wait for all tasks of this process, also of other views: no other rank of any view
 * may wait for this rank meanwhile. Collective in the view. */
void sl_view_free(struct sl_runtime *view);

/* Make `alias`, a tile of another view that this process owns, share the handle of `tile`, which
 * this process owns in `view`. Before either is destroyed, clear the handle of `alias`. Both tiles
 * have equal `ld`: messages depend on it at both ends. */
void sl_view_lend(const struct sl_runtime *view, struct sl_tile *tile, struct sl_tile *alias);

/* Return the view of rank `rank` among `ranks` imagined ranks, for predictions: tiles have sizes
 * and no memory, and nothing runs. `stages`: see core/message.h. */
struct sl_runtime sl_view_planned(int rank, int ranks, int stages);

#endif
