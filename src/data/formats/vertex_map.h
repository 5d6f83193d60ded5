/* Find vertices by their names: the rows of a table, in its order. */
#ifndef SL_DATA_FORMATS_VERTEX_MAP_H
#define SL_DATA_FORMATS_VERTEX_MAP_H

#include <stdbool.h>

#include "data/dataset.h"
#include "data/formats/string_ids.h"

struct sl_vertex_map {
    struct sl_string_ids ids;
    bool renamed;     /* the name of some vertex is not its row number */
    bool no_rows;     /* no array or table has the vertices: their number is said, or unknown */
    const char *path; /* path of the table, for messages */
};

/* Add the next row. SL_ERR_DATA, about PATH and `line`: the row has no name, or the name of another
 * row. */
int sl_vertex_map_add(struct sl_vertex_map *map, const char *name, int64_t line);

/* Return the vertex with this name, or -1. */
int64_t sl_vertex_map_find(const struct sl_vertex_map *map, const char *name);

/* Return the vertex with this name, or SL_ERR_DATA about a line of another file. */
int64_t sl_vertex_map_get(const struct sl_vertex_map *map, const char *name, const char *path,
                          int64_t line);

/* Set the number of vertices, and vertex_ids where names differ from row numbers. SL_ERR_SYSTEM. */
int sl_vertex_map_keep(const struct sl_vertex_map *map, struct sl_dataset *out);

/* Read an edge list whose vertices have the map's names (edge_list.c). */
int sl_edge_list_read(const char *path, const struct sl_read_options *options,
                      const struct sl_vertex_map *map, struct sl_dataset *out);

#endif
