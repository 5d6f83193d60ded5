/* Functions for folders of the Open Graph Benchmark, with text or binary arrays. */
#ifndef SL_DATA_FORMATS_OGB_H
#define SL_DATA_FORMATS_OGB_H

#include "data/dataset.h"
#include "data/formats/edge_rows.h"

/* Return whether each edge also gets its reverse: on request, unless edges have features, or where
 * the dataset of this name stores one line for both directions. OGB's list of datasets says so; no
 * file does. */
bool sl_ogb_goes_both_ways(const struct sl_read_options *options, const char *name, bool features);

/* Say in a note that edges go one way, unless half of them (`upward`) go to a vertex of a higher
 * number. */
void sl_ogb_note_one_way(const char *path, const struct sl_edge_rows *rows, int64_t edges,
                         int64_t upward);

/* Return SL_ERR_DATA where a large number of vertices has neither labels nor features nor enough
 * edges: a wrong number would use up the memory. `path` is the file with the number. */
int sl_ogb_check_size(const char *path, const struct sl_dataset *out, int64_t edges);

/* Read the lists of the first folder in PATH/split; leave the splits empty without such a folder.
 * SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_ogb_read_splits(const char *path, struct sl_dataset *out);

#endif
