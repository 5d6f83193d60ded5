#include "data/formats/vertex_map.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "data/block.h"
#include "data/formats/edges.h"
#include "data/formats/text.h"

int sl_vertex_map_add(struct sl_vertex_map *map, const char *name, int64_t line)
{
    const int64_t row = map->ids.count;
    int64_t number;
    if (*name == '\0')
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": the vertex has no id", map->path, line);
    const int64_t vertex = sl_string_ids_get(&map->ids, name);
    if (vertex < 0)
        return (int)vertex;
    if (vertex != row)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": vertex '%.40s' is there twice",
                        map->path, line, name);
    map->renamed = map->renamed || !sl_text_to_int64(name, &number) || number != row;
    if (row == INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": expected fewer than 2^31 vertices",
                        map->path, line);
    return SL_OK;
}

int64_t sl_vertex_map_find(const struct sl_vertex_map *map, const char *name)
{
    int64_t number;
    if (map->renamed)
        return sl_string_ids_find(&map->ids, name);
    return sl_text_to_int64(name, &number) && number >= 0 && number < map->ids.count ? number : -1;
}

int64_t sl_vertex_map_get(const struct sl_vertex_map *map, const char *name, const char *path,
                          int64_t line)
{
    const int64_t vertex = sl_vertex_map_find(map, name);
    if (vertex >= 0)
        return vertex;
    return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": '%.40s' is no vertex, expected one of %s",
                    path, line, name, map->path);
}

int sl_vertex_map_keep(const struct sl_vertex_map *map, struct sl_dataset *out)
{
    out->vertices = map->ids.count;
    if (!map->renamed)
        return SL_OK;
    int64_t *ids = sl_block_array(&out->blocks, out->vertices, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    const char *name = map->ids.text;
    for (int64_t v = 0; v < out->vertices; v++, name += strlen(name) + 1)
        if (!sl_text_to_int64(name, &ids[v]))
            return sl_edges_keep_names(map->path, &map->ids, out);
    out->vertex_ids = sl_npy_view("vertex_ids", SL_NPY_INT64, 1, out->vertices, 0, ids);
    return SL_OK;
}
