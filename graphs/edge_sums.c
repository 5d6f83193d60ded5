#include "graphs/edge_sums.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
#include "codelets/init.h"
#include "core/error.h"
#include "graphs/product.h"

int sl_edge_sums_create(struct sl_network *net, struct sl_edge_sums *sums, int64_t rows,
                        int64_t cols)
{
    const int count = net->graph->distribution->tiles;
    *sums = (struct sl_edge_sums){.count = count,
                                  .tile = calloc((size_t)count + 1, sizeof *sums->tile),
                                  .met = calloc((size_t)count + 1, sizeof *sums->met)};
    if (!sums->tile || !sums->met)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    int code = 0;
    for (int i = 0; !code && i < count; i++)
        code = sl_tile_create(net->rt, &sums->tile[i], rows, cols, sizeof(float), net->rt->rank);
    return code;
}

void sl_edge_sums_destroy(struct sl_edge_sums *sums)
{
    for (int i = 0; sums->tile && i < sums->count; i++)
        sl_tile_destroy(&sums->tile[i]);
    free(sums->tile);
    free(sums->met);
    *sums = (struct sl_edge_sums){0};
}

void sl_edge_sums_begin(struct sl_edge_sums *sums)
{
    memset(sums->met, 0, (size_t)sums->count * sizeof *sums->met);
}

/* Partial sums for other ranks have numbers of their own, which may exceed those of row tiles. */
struct sl_tile *sl_edge_sums_at(struct sl_edge_sums *sums, int i, bool *accumulate)
{
    const int at = i % sums->count;
    *accumulate = sums->met[at];
    sums->met[at] = true;
    return &sums->tile[at];
}

static void complete(struct sl_network *net, struct sl_edge_sums *sums, int i)
{
    if (!sums->met[i])
        sl_submit_fill(net->rt, 0.0f, &sums->tile[i]);
    sums->met[i] = true;
}

void sl_edge_sums_end(struct sl_network *net, const struct sl_layer *layer,
                      struct sl_edge_sums *sums)
{
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    int first = own.from;
    while (first + 1 < own.to && sl_product_further(net, layer, first)->idle)
        first++;
    for (int i = own.from; i < own.to; i++)
        complete(net, sums, i);
    for (int i = 0; i < sums->count; i++) {
        const bool stays = i >= own.from && i < own.to && !sl_product_further(net, layer, i)->idle;
        if (sums->met[i] && !stays && i != first)
            sl_submit_accumulate(net->rt, &sums->tile[i], &sums->tile[first]);
    }
}
