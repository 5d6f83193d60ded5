/* What folders of the Open Graph Benchmark share, whether their arrays are text or binary. */
#ifndef SL_DATA_FORMATS_OGB_H
#define SL_DATA_FORMATS_OGB_H

#include "data/dataset.h"
#include "data/formats/edge_rows.h"

/* Return whether to put the reverse of each edge as well: on request, or where a dataset of this
 * name has one line for both directions. OGB's list of datasets says so; no file does. */
bool sl_ogb_goes_both_ways(const struct sl_read_options *options, const char *name);

/* Says that edges go one way, unless half of them go to a vertex of a higher number (`upward`). */
void sl_ogb_note_one_way(const char *path, const struct sl_edge_rows *rows, int64_t edges,
                         int64_t upward);

/* SL_ERR_DATA where a large number of vertices has neither labels nor features nor enough edges: a
 * wrong number would cost the memory. `path` has the number. */
int sl_ogb_check_size(const char *path, const struct sl_dataset *out, int64_t edges);

/* The lists of the first folder in PATH/split; none where there is no such folder. SL_ERR_DATA,
 * SL_ERR_SYSTEM. */
int sl_ogb_read_splits(const char *path, struct sl_dataset *out);

#endif
