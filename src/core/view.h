/* Views: a runtime on some of the ranks. Each has rank numbers, collectives, tags, a window of
 * stages and traffic of its own, over the same workers, handles and memory. Messages of tiles stay
 * on one communicator: StarPU serves it with one thread. */
#ifndef SL_CORE_VIEW_H
#define SL_CORE_VIEW_H

#include "core/runtime.h"
#include "core/tile.h"

/* Tags of a view. */
static const int64_t SL_VIEW_TAGS = (int64_t)1 << 40;

/* Makes the view that all ranks of `parent` with the same colour (at least 0) are in, in the order
 * of their ranks there. Views nest: `parent` may be one. Messages of one view never match those of
 * another. Collective in the parent, which stems from sl_runtime_start. sl_view_free, before the
 * parent is stopped or freed; SL_ERR_SYSTEM. */
int sl_view_split(struct sl_runtime *parent, int colour, struct sl_runtime *view);

/* Collective in the view. Waits for all tasks of this process, those of other views too: no view's
 * other ranks may wait for this one meanwhile. */
void sl_view_free(struct sl_runtime *view);

/* Let `alias`, a tile of another view whose owner is this process, be `tile`, which this process
 * owns in `view`: both have one handle. Before either is destroyed, clear the handle of `alias`.
 * Rows of both are as far apart: messages depend on it on both sides. */
void sl_view_lend(const struct sl_runtime *view, struct sl_tile *tile, struct sl_tile *alias);

/* Return a view as rank `rank` of ranks that are not there would have it, for predictions: tiles
 * have sizes and no memory, and nothing runs. `stages`: see core/message.h. */
struct sl_runtime sl_view_planned(int rank, int ranks, int stages);

#endif
