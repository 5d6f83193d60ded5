/* Give the rows of a dataset another order. */
#include "core/error.h"
#include "core/progress.h"
#include "data/block.h"
#include "data/order/order.h"
#include "data/source.h"

/* Compute the order on one rank, whose memory has the whole adjacency if the order looks at edges.
 */
static int compute(const struct sl_source *source, const struct sl_order *order, uint64_t seed,
                   int32_t *vertex)
{
    struct sl_runtime alone = {.ranks = 1};
    struct sl_part whole = {.data.adjacency.rows = source->vertices, .data.symmetric = true};
    int rc = SL_OK;
    if (order->needs_edges)
        rc = sl_source_read_adjacency(&alone, source, 0, source->vertices, &whole);
    if (!rc)
        rc = sl_order_compute(order, &whole.data, seed, vertex);
    sl_part_close(&whole);
    sl_block_unload(source->blocks);
    return rc;
}

/* Share the permutation and its inverse with all ranks. */
static int share_order(struct sl_runtime *rt, struct sl_source *source,
                       const struct sl_order *order, uint64_t seed, const int32_t **vertices,
                       const int32_t **places)
{
    const int64_t n = source->vertices;
    int32_t *vertex = sl_block_array(&source->blocks, n, sizeof *vertex);
    int32_t *place = sl_block_array(&source->blocks, n, sizeof *place);
    int rc = sl_runtime_agree(rt, vertex && place ? SL_OK : SL_ERR_SYSTEM);
    if (!rc)
        rc = sl_runtime_agree(rt, rt->rank == 0 ? compute(source, order, seed, vertex) : SL_OK);
    if (rc)
        return rc;
    sl_runtime_broadcast(rt, 0, vertex, n * (int64_t)sizeof *vertex);
    for (int64_t r = 0; r < n; r++)
        place[vertex[r]] = (int32_t)r;
    *vertices = vertex;
    *places = place;
    return SL_OK;
}

int sl_source_order(struct sl_runtime *rt, struct sl_source *source, const char *order,
                    uint64_t seed)
{
    const struct sl_order *found = sl_order_find(order);
    if (!found || !found->compute)
        return sl_runtime_agree(rt, found ? SL_OK : SL_ERR_USAGE);
    source->selection.hop_cut = NULL; /* rows are no longer sorted by hop */
    sl_progress_begin("ordering the vertices, %s", order);
    return sl_progress_end_with(
        share_order(rt, source, found, seed, &source->order.vertex, &source->order.place));
}

int sl_source_order_double(struct sl_runtime *rt, struct sl_source *source, uint64_t seed)
{
    const struct sl_order *random = sl_order_find("random");
    const int rc =
        share_order(rt, source, random, seed, &source->order.vertex, &source->order.place);
    return rc ? rc
              : share_order(rt, source, random, seed + 1, &source->order.second_vertex,
                            &source->order.second_place);
}

struct sl_source sl_source_as_stored(const struct sl_source *source)
{
    struct sl_source stored = *source;
    stored.order.vertex = stored.order.place = NULL;
    return stored;
}

struct sl_source sl_source_in_order(const struct sl_source *source, int order)
{
    struct sl_source turned = *source;
    if (order == 0)
        return turned;
    turned.order.vertex = source->order.second_vertex;
    turned.order.place = source->order.second_place;
    turned.order.second_vertex = source->order.vertex;
    turned.order.second_place = source->order.place;
    return turned;
}
