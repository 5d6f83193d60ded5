/* METIS' k-way partition as an order. */
#include <string.h>

#include "core/error.h"
#include "data/block.h"
#include "data/order/order.h"
#include "data/partition/vertex_parts.h"

/* Vertices per part: rows of 64 floats in half of an L2 cache of 1 MiB. This is not this machine's
 * cache, so that all ranks and all machines get the same order. */
enum { PART_VERTICES = 2048 };

/* Sort vertices by part, with a counting sort that keeps the order within a part. */
static int sort_by_part(int64_t n, int parts, const int32_t *part, int32_t *vertices)
{
    struct sl_block *scratch = NULL;
    int64_t *place = sl_block_array(&scratch, (int64_t)parts + 1, sizeof *place);
    if (!place)
        return SL_ERR_SYSTEM;
    memset(place, 0, ((size_t)parts + 1) * sizeof *place);
    for (int64_t v = 0; v < n; v++)
        place[part[v] + 1]++;
    for (int p = 0; p < parts; p++)
        place[p + 1] += place[p];
    for (int64_t v = 0; v < n; v++)
        vertices[place[part[v]]++] = (int32_t)v;
    sl_block_free_all(&scratch);
    return SL_OK;
}

int sl_order_metis(const struct sl_csr *graph, uint64_t seed, int32_t *vertices)
{
    struct sl_block *scratch = NULL;
    const int64_t n = graph->rows;
    const int parts = (int)((n + PART_VERTICES - 1) / PART_VERTICES);
    int32_t *part = sl_block_array(&scratch, n, sizeof *part);
    int rc = part ? SL_OK : SL_ERR_SYSTEM;
    if (!rc)
        rc = sl_vertex_parts_metis(graph, SL_VERTICES_EQUAL, parts, seed, part);
    if (!rc)
        rc = sort_by_part(n, parts, part, vertices);
    sl_block_free_all(&scratch);
    return rc;
}
