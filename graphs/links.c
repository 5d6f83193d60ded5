/* clang-format off */
/* Links in a step of training. Block (i, k) is on the owner of row tile i, Z(k) on the owner of k.
 *
 *   for row tiles i: block(i, 0) … block(i, T-1) = links of i, and negatives drawn for this step
 *   for row tiles k: Z(k) → all ranks
 *   for blocks (i, k): scores(i, k) = decoder(Z(i), Z(k))
 *   for row tiles i: loss → metrics(i);  scores become gradients
 *   for s = 0 … T-1, for blocks (i, k) with k = i + s mod T:
 *       G(i) += gradient by sources;  block(i, k) → owner of k;  G(k) += gradient by targets
 *   for row tiles i: Z(i) = factor · G(i)
 *
 * The tiles of a step s are all others, so that their tasks run beside each other. The order of the
 * terms of a row depends on the tiles alone, not on who owns them. */
/* clang-format on */
#include "graphs/links.h"

#include <stdlib.h>

#include "codelets/epilogue.h"
#include "core/error.h"
#include "core/message.h"
#include "graphs/collective.h"

enum { STREAM = 1 }; /* of SL_RNG_LINKS: negatives of training */

/* Return the parameters of the decoder, on this rank; NULL: it has none. */
static struct sl_tile *parameters_of(struct sl_network *net)
{
    return net->graph->links->decoder == SL_DECODER_DOT
               ? NULL
               : &net->layer[net->layers - 1].model->parameters;
}

static struct sl_link_tiles tiles_of(struct sl_network *net, const struct sl_matrix *z,
                                     struct sl_tile *blocks, int i, int k)
{
    const struct sl_links *links = net->graph->links;
    return (struct sl_link_tiles){.decoder = links->decoder,
                                  .x = sl_matrix_tile(z, i, 0),
                                  .y = sl_matrix_tile(z, k, 0),
                                  .block = &blocks[i * links->tiles + k],
                                  .w = parameters_of(net)};
}

static void share_rows(struct sl_network *net, const struct sl_matrix *z)
{
    for (int k = 0; k < z->tile_rows; k++)
        sl_broadcast(net->rt, sl_matrix_tile(z, k, 0), 0, net->rt->ranks);
}

static void drop_rows(struct sl_network *net, const struct sl_matrix *z)
{
    for (int k = 0; k < z->tile_rows; k++)
        sl_tile_drop(net->rt, sl_matrix_tile(z, k, 0));
}

static void score(struct sl_network *net, const struct sl_matrix *z, struct sl_tile *blocks)
{
    const int tiles = net->graph->links->tiles;
    for (int i = 0; i < tiles; i++)
        for (int k = 0; k < tiles; k++)
            if (blocks[i * tiles + k].rows > 1) {
                const struct sl_link_tiles block = tiles_of(net, z, blocks, i, k);
                sl_submit_link_scores(net->rt, &block);
            }
}

static void draw_links(struct sl_network *net)
{
    const struct sl_links *links = net->graph->links;
    struct sl_link_draw draw = links->draw;
    draw.key = sl_rng_key(links->seed, SL_RNG_LINKS, net->step.update, STREAM);
    for (int i = 0; i < links->tiles; i++)
        if (links->work[i].owner == net->rt->rank)
            sl_submit_link_lists(net->rt, &links->list[i], &draw, &links->work[i],
                                 &links->block[i * links->tiles]);
}

/* Submit the gradients by the rows and the parameters of a block. */
static void go_back(struct sl_network *net, const struct sl_matrix *z, int i, int k)
{
    const struct sl_links *links = net->graph->links;
    const struct sl_link_tiles block = tiles_of(net, z, links->block, i, k);
    const bool first = i == k;
    sl_submit_link_back(net->rt, &block, SL_LINK_SOURCE, first,
                        sl_matrix_tile(&links->gradient, i, 0));
    if (links->parameters)
        sl_submit_link_parameters(net->rt, &block, first, &links->parameters[i]);
    const int to = sl_matrix_tile(&links->gradient, k, 0)->owner;
    sl_tile_send(net->rt, block.block, block.block->owner, to);
    sl_submit_link_back(net->rt, &block, SL_LINK_TARGET, false,
                        sl_matrix_tile(&links->gradient, k, 0));
    sl_tile_drop(net->rt, block.block);
}

void sl_links_train(struct sl_network *net, const struct sl_matrix *z, enum sl_row_scale factor)
{
    const struct sl_links *links = net->graph->links;
    const enum sl_link_loss loss = net->graph->objective.loss->link_loss;
    const int tiles = links->tiles;
    draw_links(net);
    share_rows(net, z);
    score(net, z, links->block);
    for (int i = 0; i < tiles; i++)
        sl_submit_link_loss(net->rt, loss, links->count, links->negatives,
                            links->pairs ? &links->pairs[i] : NULL, &net->metrics[i], tiles,
                            &links->block[i * tiles]);
    for (int s = 0; s < tiles; s++)
        for (int i = 0; i < tiles; i++)
            if (s == 0 || links->block[i * tiles + (i + s) % tiles].rows > 1)
                go_back(net, z, i, (i + s) % tiles);
    drop_rows(net, z);
    for (int i = 0; i < tiles; i++) {
        struct sl_epilogue_tiles scale = SL_EPILOGUE_NONE;
        scale.scales = &net->graph->scales[z->row_order][i];
        scale.after = factor;
        sl_submit_epilogue(net->rt, &scale, sl_matrix_tile(&links->gradient, i, 0),
                           sl_matrix_tile(z, i, 0));
    }
}

void sl_links_measure(struct sl_network *net, const struct sl_matrix *z)
{
    struct sl_links *links = net->graph->links;
    const int blocks = links->tiles * links->tiles;
    struct sl_tile **list = calloc((size_t)blocks + 1, sizeof *list);
    int count = 0;
    if (!list)
        sl_fatal("no memory to submit the metric of %d blocks of links", blocks);
    share_rows(net, z);
    score(net, z, links->measured);
    drop_rows(net, z);
    for (int b = 0; b < blocks; b++)
        if (links->measured[b].rows > 1)
            list[count++] = &links->measured[b];
    for (int b = 0; b < count; b++)
        sl_tile_send(net->rt, list[b], list[b]->owner, 0);
    sl_submit_link_metric(net->rt, &net->graph->objective.metric->links,
                          net->graph->objective.loss->link_loss, &links->lists, count, list,
                          &links->scores, sl_network_total(net));
    for (int b = 0; b < count; b++)
        sl_tile_drop(net->rt, list[b]);
    free(list);
}

static int64_t own_bytes(const struct sl_network *net, const struct sl_tile *tiles, int count)
{
    int64_t bytes = 0;
    for (int t = 0; tiles && t < count; t++)
        bytes += tiles[t].owner == net->rt->rank ? sl_tile_bytes(&tiles[t]) : 0;
    return bytes;
}

int64_t sl_links_bytes(const struct sl_network *net)
{
    const struct sl_links *links = net->graph->links;
    const int64_t sizes[] = {sizeof *links->list->start, sizeof *links->list->target,
                             sizeof *links->list->source};
    int64_t bytes = 0;
    for (int i = 0; i < links->tiles; i++)
        if (links->list[i].rows > 0)
            bytes += links->list[i].rows * (sizes[0] + sizes[2]) +
                     links->list[i].start[links->list[i].rows] * sizes[1];
    bytes += links->row ? net->graph->vertices * (int64_t)sizeof *links->row : 0;
    bytes += own_bytes(net, links->block, links->tiles * links->tiles) +
             own_bytes(net, links->measured, links->tiles * links->tiles) +
             own_bytes(net, links->work, links->tiles) +
             own_bytes(net, links->pairs, links->tiles) +
             own_bytes(net, links->parameters, links->tiles) + own_bytes(net, &links->scores, 1);
    return bytes + (int64_t)sl_matrix_own_bytes(net->rt, &links->gradient);
}

/* All rows of other ranks, and one block at a time of each row tile. */
int64_t sl_links_received_bytes(const struct sl_network *net)
{
    const struct sl_links *links = net->graph->links;
    int64_t bytes = 0;
    for (int i = 0; i < links->tiles; i++) {
        const struct sl_tile *g = sl_matrix_tile(&links->gradient, i, 0);
        bytes += g->owner != net->rt->rank ? sl_tile_bytes(g) : 0;
        for (int k = 0; g->owner != net->rt->rank && k < links->tiles; k++)
            if (sl_matrix_tile(&links->gradient, k, 0)->owner == net->rt->rank)
                bytes += sl_tile_bytes(&links->block[i * links->tiles + k]);
    }
    return bytes;
}

static void destroy_tiles(struct sl_tile *tiles, int count)
{
    for (int t = 0; tiles && t < count; t++)
        sl_tile_destroy(&tiles[t]);
    free(tiles);
}

void sl_links_destroy(struct sl_links *links)
{
    const int tiles = links->tiles;
    destroy_tiles(links->block, tiles * tiles);
    destroy_tiles(links->measured, tiles * tiles);
    destroy_tiles(links->work, tiles);
    destroy_tiles(links->pairs, tiles);
    destroy_tiles(links->parameters, tiles);
    sl_tile_destroy(&links->scores);
    sl_matrix_destroy(&links->gradient);
    for (int i = 0; links->list && i < tiles; i++) {
        free((void *)links->list[i].start);
        free((void *)links->list[i].target);
        free((void *)links->list[i].source);
    }
    free(links->list);
    free(links->row);
    *links = (struct sl_links){.tiles = 0};
}
