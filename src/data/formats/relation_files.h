/* Read a graph whose relations have a file of edges each: the folder relations/ of a dataset. */
#ifndef SL_DATA_FORMATS_RELATION_FILES_H
#define SL_DATA_FORMATS_RELATION_FILES_H

#include "data/dataset.h"
#include "data/formats/vertex_map.h"

/* Return whether a dataset has the folder relations/. */
bool sl_relation_files_exist(const char *path);

/* Read the adjacency of the dataset `path` from the files of relations/. Relations have the order
 * of their names. `map`: names of the vertices, which are out->vertices (-1: the largest number of
 * the edges tells); NULL: the files name them. SL_ERR_DATA, SL_ERR_USAGE, SL_ERR_SYSTEM. */
int sl_relation_files_read(const char *path, const struct sl_read_options *options,
                           const struct sl_vertex_map *map, struct sl_dataset *out);

#endif
