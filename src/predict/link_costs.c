#include "predict/link_costs.h"

#include <math.h>
#include <stdlib.h>

#include "assembly/link_tiles.h"
#include "core/error.h"
#include "graphs/counts.h"
#include "graphs/loss.h"

struct counting {
    const struct sl_network *net;
    const struct sl_distribution *d;
    const struct sl_tile_counts *counts;
    bool loops;
    double links; /* training links */
    int64_t most; /* rows of the largest row tile */
    struct sl_link_costs *costs;
};

/* Return the bytes of a row of embeddings in memory. */
static double embedding_bytes(const struct sl_network *net)
{
    return (double)sl_leading(net->layer[net->layers - 1].out, SL_FLOAT32) * 4.0;
}

static double rows_of(const struct counting *c, int i)
{
    return (double)(c->d->row_cut[i + 1] - c->d->row_cut[i]);
}

static double share_of(const struct counting *c, int i)
{
    return rows_of(c, i) / fmax((double)c->d->row_cut[c->d->tiles], 1.0);
}

/* Return the training links from row tile i to row tile k. Tiles of the adjacency say how many,
 * unless rows are clones, or entries count for other rows' owners. */
static double links_between(const struct counting *c, int i, int k)
{
    const int64_t tiles = c->d->tiles, *nnz = c->counts->nnz;
    const bool symmetric = c->counts->symmetric;
    if (c->d->kind->clones || c->counts->back)
        return c->links * share_of(c, i) * share_of(c, k);
    const double entries = (double)(symmetric ? nnz[i * tiles + k] : nnz[k * tiles + i]) -
                           (c->loops && i == k ? rows_of(c, i) : 0.0);
    return fmax(entries, 0.0) / (symmetric ? 2.0 : 1.0);
}

static void count_all(struct counting *c)
{
    const double n = (double)c->d->row_cut[c->d->tiles];
    for (int l = 0; l < c->net->layers; l++)
        c->loops = c->loops || c->net->layer[l].kind->loops;
    for (int i = 0; i < c->d->tiles; i++)
        c->most = (int64_t)rows_of(c, i) > c->most ? (int64_t)rows_of(c, i) : c->most;
    c->links = fmax((double)c->counts->entries - (c->loops ? n : 0.0), 0.0) /
               (c->counts->symmetric ? 2.0 : 1.0);
}

/* Count the elements of the blocks of row tile i, which a header begins for each other tile. */
static void add_blocks(const struct counting *c, const int *owner, int i, double links)
{
    const struct sl_planned_links *planned = &c->net->graph->planned_links;
    const double size = sizeof(struct sl_scored_link),
                 measured = (double)planned->measured * links / fmax(c->links, 1.0);
    for (int k = 0; k < c->d->tiles; k++) {
        const double drawn =
            (double)sl_links_room(links * (double)planned->negatives, share_of(c, k));
        const double training = size * (1.0 + links_between(c, i, k) + drawn),
                     others = size * (1.0 + measured * share_of(c, k));
        c->costs[owner[i]].own += training + others;
        if (owner[i] != owner[k])
            c->costs[owner[k]].training += training;
        if (owner[i] != 0)
            c->costs[0].measured += others;
    }
}

/* Count row tile i: lists of links, scratch, the gradient of embeddings, and blocks. */
static void add_tile(const struct counting *c, const int *owner, int i)
{
    enum { LINK = 4, PAIRWISE = 8, ROW = 12, ROOM = 4 }; /* bytes; a row has a start and a number */
    const bool pairwise = c->net->graph->objective.loss->link_loss == SL_LINK_PAIRWISE;
    struct sl_link_costs *own = &c->costs[owner[i]];
    double links = 0.0;
    for (int k = 0; k < c->d->tiles; k++)
        links += links_between(c, i, k);
    own->tiles++;
    own->pairs += links * (1.0 + (double)c->net->graph->planned_links.negatives);
    own->own += links * (LINK + (pairwise ? PAIRWISE : 0)) +
                rows_of(c, i) * (ROW + embedding_bytes(c->net)) + (double)(c->most + 1) * ROOM;
    for (int r = 0; r < c->d->ranks; r++)
        c->costs[r].rows += r == owner[i] ? 0.0 : rows_of(c, i);
    add_blocks(c, owner, i, links);
}

int sl_link_costs_count(const struct sl_network *net, const struct sl_distribution *d,
                        const struct sl_tile_counts *counts, struct sl_link_costs *costs)
{
    enum { SCORES = 8 }; /* bytes of a measured pair on rank 0 */
    struct counting c = {.net = net, .d = d, .counts = counts, .costs = costs};
    const struct sl_planned_links *planned = &net->graph->planned_links;
    int *owner = calloc((size_t)d->tiles + 1, sizeof *owner);
    if (!owner)
        return sl_error(SL_ERR_SYSTEM, "no memory for the links of %d row tiles", d->tiles);
    count_all(&c);
    for (int r = 0; r < d->ranks; r++)
        costs[r] = (struct sl_link_costs){.own = 4.0 * (double)planned->numbered};
    costs[0].own += (double)planned->measured * SCORES;
    for (int i = 0; i < d->tiles; i++)
        owner[i] = sl_distribution_whole_owner(d, i, 0);
    for (int i = 0; i < d->tiles; i++)
        add_tile(&c, owner, i);
    free(owner);
    return 0;
}

/* Training and evaluation take turns. */
static double received_of(const struct sl_network *net, const struct sl_link_costs *costs)
{
    return costs->rows * embedding_bytes(net) + fmax(costs->training, costs->measured);
}

void sl_link_costs_plan(const struct sl_network *net, const struct sl_link_costs *costs, int ranks,
                        struct sl_plan *memory)
{
    const struct sl_link_costs *most = costs;
    for (int r = 1; r < ranks; r++)
        if (costs[r].own + received_of(net, &costs[r]) > most->own + received_of(net, most))
            most = &costs[r];
    memory->bytes[SL_PLAN_ROWS] += llround(most->own);
    memory->bytes[SL_PLAN_RECEIVED] += llround(received_of(net, most));
}
