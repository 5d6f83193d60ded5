/* A CSV table of vertices: a header, then a row per vertex with its id, features, label and split.
 */
#ifndef SL_DATA_FORMATS_NODE_TABLE_H
#define SL_DATA_FORMATS_NODE_TABLE_H

#include "data/formats/vertex_map.h"

/* Read everything but edges; add the ids to `map`. SL_ERR_DATA names file, line and column. */
int sl_node_table_read(const char *path, const struct sl_read_options *options,
                       struct sl_vertex_map *map, struct sl_dataset *out);

/* Return whether a column of this name has the ids of vertices. */
bool sl_node_table_is_id_word(const char *name);

#endif
