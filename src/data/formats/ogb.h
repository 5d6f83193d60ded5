/* Functions for folders of the Open Graph Benchmark, with text or binary arrays. */
#ifndef SL_DATA_FORMATS_OGB_H
#define SL_DATA_FORMATS_OGB_H

#include "data/dataset.h"
#include "data/formats/edge_rows.h"
#include "data/formats/text.h"

/* A folder that is read into *out. */
struct sl_ogb_folder {
    const char *path;
    const struct sl_read_options *options;
    struct sl_dataset *out;
    int64_t edges; /* edges that the folder announces */
};

/* Return the path FOLDER/NAME or FOLDER/NAME.gz, on the dataset's blocks; NULL: out of memory. */
const char *sl_ogb_file(const struct sl_ogb_folder *folder, const char *name);

/* Return whether PATH/NAME or PATH/NAME.gz is there. */
bool sl_ogb_has(const char *path, const char *name);

/* Read a file with one number: a folder has one graph. SL_ERR_DATA names file and line. */
int sl_ogb_read_count(const struct sl_ogb_folder *folder, const char *name, int64_t least,
                      int64_t most, int64_t *count);

/* Return the first folder in split/ by its name, on the dataset's blocks; NULL: there is none. */
const char *sl_ogb_scheme(const struct sl_ogb_folder *folder);

/* The vertices of a file's edges: sources are vertices `source` … of the graph, and so on. */
struct sl_ogb_ends {
    int64_t source, target, sources, targets;
};

/* Count every edge of a file, or put it. Set *edges to how many there are, and *upward to how many
 * go to a vertex of a higher number. SL_ERR_DATA names file and line. */
int sl_ogb_pass_edges(struct sl_text *text, const struct sl_ogb_ends *ends,
                      struct sl_edge_rows *rows, bool put, int64_t *edges, int64_t *upward);

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
