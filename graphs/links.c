/* clang-format off */
/* Links in a step of training. Block (i, r) has links from row tile i to the row tiles of rank r; Z(r) are these tiles.
 *
 *   for row tiles i: block(i, 0) … block(i, P-1) = links of i, and negatives drawn for this step
 *   for row tiles k: Z(k) → all ranks
 *   for blocks (i, r): scores(i, r) = decoder(Z(i), Z(r))
 *   for row tiles i: loss → metrics(i);  scores become gradients;  block(i, r) → r
 *   for blocks (i, r): G(i) += gradient by sources
 *   for row tiles k, for ranks q: G(k) += gradient by targets, of blocks (i, rank of k), i of rank q
 *   for row tiles i: Z(i) = factor · G(i)
 *
 * The order of the terms of a row depends on the row tiles alone, not on their owners: sources, tile by tile, then targets. */
/* clang-format on */
#include "graphs/links.h"

#include <stdlib.h>

#include "codelets/epilogue.h"
#include "core/error.h"
#include "core/message.h"
#include "graphs/collective.h"

/* Return the parameters of the decoder, on this rank; NULL: it has none. */
static struct sl_tile *parameters_of(struct sl_network *net)
{
    return net->graph->links->decoder == SL_DECODER_DOT
               ? NULL
               : &net->layer[net->layers - 1].model->parameters;
}

int sl_links_part(const struct sl_links *links, int k)
{
    int r = 0;
    while (links->part_cut[r + 1] <= k)
        r++;
    return r;
}

/* Return block (i, r). */
static struct sl_link_tiles block_of(struct sl_network *net, const struct sl_matrix *z,
                                     struct sl_tile *blocks, const int64_t *segment, int i, int r)
{
    const struct sl_links *links = net->graph->links;
    const int first = links->part_cut[r];
    return (struct sl_link_tiles){.decoder = links->decoder,
                                  .w = parameters_of(net),
                                  .own = &z->tiles[i],
                                  .count = links->part_cut[r + 1] - first,
                                  .others = &z->tiles[first],
                                  .blocks = &blocks[i * links->parts + r],
                                  .segment = &segment[i * links->tiles + first],
                                  .apart_segments = 1};
}

/* Return the segments of row tile k in the blocks of the row tiles of part q. */
static struct sl_link_tiles targets_of(struct sl_network *net, const struct sl_matrix *z, int k,
                                       int q)
{
    const struct sl_links *links = net->graph->links;
    const int first = links->part_cut[q];
    return (struct sl_link_tiles){.decoder = links->decoder,
                                  .w = parameters_of(net),
                                  .own = &z->tiles[k],
                                  .count = links->part_cut[q + 1] - first,
                                  .others = &z->tiles[first],
                                  .blocks =
                                      &links->block[first * links->parts + sl_links_part(links, k)],
                                  .apart = links->parts,
                                  .segment = &links->segment[first * links->tiles + k],
                                  .apart_segments = links->tiles};
}

static void share_rows(struct sl_network *net, const struct sl_matrix *z)
{
    for (int k = 0; k < z->tile_rows; k++)
        sl_broadcast(net->rt, &z->tiles[k], 0, net->rt->ranks);
}

static void drop_rows(struct sl_network *net, const struct sl_matrix *z)
{
    for (int k = 0; k < z->tile_rows; k++)
        sl_tile_drop(net->rt, &z->tiles[k]);
}

static void score(struct sl_network *net, const struct sl_matrix *z, struct sl_tile *blocks,
                  const int64_t *segment)
{
    const struct sl_links *links = net->graph->links;
    for (int i = 0; i < links->tiles; i++)
        for (int r = 0; r < links->parts; r++) {
            const struct sl_link_tiles block = block_of(net, z, blocks, segment, i, r);
            sl_submit_link_scores(net->rt, &block);
        }
}

static void draw_links(struct sl_network *net)
{
    const struct sl_links *links = net->graph->links;
    struct sl_link_draw draw = links->draw;
    draw.key = sl_rng_key(links->seed, SL_RNG_LINKS, net->step.update, SL_LINKS_DRAWN);
    for (int i = 0; i < links->tiles; i++)
        if (links->work[i].owner == net->rt->rank)
            sl_submit_link_lists(net->rt, &links->list[i], &draw, &links->work[i], links->parts,
                                 &links->block[i * links->parts]);
}

/* Send block (i, r) to the rank of its targets. */
static void send_blocks(struct sl_network *net)
{
    const struct sl_links *links = net->graph->links;
    for (int i = 0; i < links->tiles; i++)
        for (int r = 0; r < links->parts; r++) {
            struct sl_tile *block = &links->block[i * links->parts + r];
            sl_tile_send(net->rt, block, block->owner,
                         links->gradient.tiles[links->part_cut[r]].owner);
        }
}

static void drop_blocks(struct sl_network *net, struct sl_tile *blocks)
{
    for (int b = 0; b < net->graph->links->tiles * net->graph->links->parts; b++)
        sl_tile_drop(net->rt, &blocks[b]);
}

static void go_back(struct sl_network *net, const struct sl_matrix *z)
{
    const struct sl_links *links = net->graph->links;
    for (int i = 0; i < links->tiles; i++)
        for (int r = 0; r < links->parts; r++) {
            const struct sl_link_tiles block = block_of(net, z, links->block, links->segment, i, r);
            sl_submit_link_back(net->rt, &block, SL_LINK_SOURCE, r == 0, &links->gradient.tiles[i]);
            if (links->parameters)
                sl_submit_link_parameters(net->rt, &block, r == 0, &links->parameters[i]);
        }
    for (int k = 0; k < links->tiles; k++)
        for (int q = 0; q < links->parts; q++) {
            const struct sl_link_tiles blocks = targets_of(net, z, k, q);
            sl_submit_link_back(net->rt, &blocks, SL_LINK_TARGET, false, &links->gradient.tiles[k]);
        }
}

void sl_links_train(struct sl_network *net, const struct sl_matrix *z, enum sl_row_scale factor)
{
    const struct sl_links *links = net->graph->links;
    const enum sl_link_loss loss = net->graph->objective.loss->link_loss;
    draw_links(net);
    share_rows(net, z);
    score(net, z, links->block, links->segment);
    for (int i = 0; i < links->tiles; i++)
        sl_submit_link_loss(net->rt, loss, links->count, links->negatives,
                            links->pairs ? &links->pairs[i] : NULL, &net->metrics[i], links->tiles,
                            links->parts, &links->block[i * links->parts]);
    send_blocks(net);
    go_back(net, z);
    drop_blocks(net, links->block);
    drop_rows(net, z);
    for (int i = 0; i < links->tiles; i++) {
        struct sl_epilogue_tiles scale = SL_EPILOGUE_NONE;
        scale.scales = &net->graph->scales[z->row_order][i];
        scale.after = factor;
        sl_submit_epilogue(net->rt, &scale, &links->gradient.tiles[i], &z->tiles[i]);
    }
}

void sl_links_measure(struct sl_network *net, const struct sl_matrix *z)
{
    struct sl_links *links = net->graph->links;
    const int blocks = links->tiles * links->parts;
    struct sl_tile **list = calloc((size_t)blocks + 1, sizeof *list);
    if (!list)
        sl_fatal("no memory to submit the metric of %d blocks of links", blocks);
    share_rows(net, z);
    score(net, z, links->measured, links->measured_segment);
    drop_rows(net, z);
    for (int b = 0; b < blocks; b++) {
        list[b] = &links->measured[b];
        sl_tile_send(net->rt, list[b], list[b]->owner, 0);
    }
    sl_submit_link_metric(net->rt, &net->graph->objective.metric->links,
                          net->graph->objective.loss->link_loss, &links->lists, blocks, list,
                          &links->scores, sl_network_total(net));
    drop_blocks(net, links->measured);
    free(list);
}

int64_t sl_links_tasks(const struct sl_links *links)
{
    enum { OF_BLOCK = 5, OF_TILE = 3 };
    return (int64_t)links->tiles * (OF_BLOCK * links->parts + OF_TILE);
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
    bytes += own_bytes(net, links->block, links->tiles * links->parts) +
             own_bytes(net, links->measured, links->tiles * links->parts) +
             own_bytes(net, links->work, links->tiles) +
             own_bytes(net, links->pairs, links->tiles) +
             own_bytes(net, links->parameters, links->tiles) + own_bytes(net, &links->scores, 1);
    return bytes + (int64_t)sl_matrix_own_bytes(net->rt, &links->gradient);
}

/* All rows of other ranks; their blocks with targets of this rank; on rank 0 all measured blocks.
 */
int64_t sl_links_received_bytes(const struct sl_network *net)
{
    const struct sl_links *links = net->graph->links;
    const int rank = net->rt->rank;
    int64_t rows = 0, training = 0, measured = 0;
    for (int i = 0; i < links->tiles; i++)
        for (int r = 0; links->measured[i * links->parts].owner != rank && r < links->parts; r++) {
            const struct sl_matrix *g = &links->gradient;
            const bool own = g->tiles && g->tiles[links->part_cut[r]].owner == rank;
            rows += g->tiles && r == 0 ? sl_tile_bytes(&g->tiles[i]) : 0;
            training += own ? sl_tile_bytes(&links->block[i * links->parts + r]) : 0;
            measured += rank == 0 ? sl_tile_bytes(&links->measured[i * links->parts + r]) : 0;
        }
    return rows + (training > measured ? training : measured);
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
    destroy_tiles(links->block, tiles * links->parts);
    destroy_tiles(links->measured, tiles * links->parts);
    free(links->part_cut);
    free(links->segment);
    free(links->measured_segment);
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
