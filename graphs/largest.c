/* clang-format off */
/*   forward    for k:  (Z(i), FROM(i)) = the larger of them and those of A(i, k)·H(k)
 *   backward   for k:  DH(i) = DH(i) + those of Aᵀ(i, k)·G(k) that FROM(k) says to come from i
 *
 * For row i in the order k = i, i+1, …, T-1, 0, …, i-1: a rank works on its own column tiles, those of one rank
 * after the other, which travel as stages, and its own before i (graphs/block.c). Of equal ones the least row is taken, so that the cut does not matter. */
/* clang-format on */
#include "graphs/largest.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/message.h"

struct product {
    struct sl_runtime *rt;
    const struct sl_distribution *d;
    const struct sl_sparse_matrix *a;
    const struct sl_matrix *moved[2]; /* H; going back G and FROM */
    int matrices;
    struct sl_tile_run own;
    void (*work)(struct product *p, int i, int k);
    struct sl_matrix *from, *z;
    bool *started;          // (own rows)
    struct sl_tile **asked; // (2 · column tiles)
    struct sl_tile **sums;  // (own rows)
};

static int rank_after(const struct product *p, int hop)
{
    return (p->rt->rank + hop) % p->rt->ranks;
}

/* Whether a rank has a row that meets column tile k. */
static bool needs(const struct product *p, int rank, int k)
{
    const struct sl_tile_run rows = sl_grid_group(p->d, rank);
    for (int i = rows.from; i < rows.to; i++)
        if (sl_sparse_matrix_tile(p->a, i, k)->shape.nnz)
            return true;
    return false;
}

static struct sl_stage stage_of(struct product *p, int hop)
{
    const struct sl_tile_run run = sl_grid_group(p->d, rank_after(p, hop));
    struct sl_stage stage = {.tiles = p->asked};
    for (int k = run.from; k < run.to; k++)
        for (int m = 0; m < p->matrices && needs(p, p->rt->rank, k); m++)
            stage.tiles[stage.count++] = sl_matrix_tile(p->moved[m], k, 0);
    return stage;
}

static void ask(struct product *p, int hop)
{
    if (hop >= p->rt->ranks)
        return;
    const struct sl_stage stage = stage_of(p, hop);
    sl_stage_ask(p->rt, &stage, p->own.to - p->own.from, p->sums);
}

/* In the order in which the others come to ask. */
static void send_all(const struct product *p)
{
    for (int hop = p->rt->ranks - 1; hop > 0; hop--)
        for (int k = p->own.from; k < p->own.to; k++)
            for (int m = 0; m < p->matrices && needs(p, rank_after(p, hop), k); m++)
                sl_stage_send(p->rt, sl_matrix_tile(p->moved[m], k, 0), rank_after(p, hop));
}

/* Column tiles [from, to) of row i. */
static void work_on(struct product *p, int i, int from, int to)
{
    for (int k = from; k < to; k++)
        if (sl_sparse_matrix_tile(p->a, i, k)->shape.nnz) {
            p->work(p, i, k);
            p->started[i - p->own.from] = true;
        }
}

static void run(struct product *p)
{
    const size_t rows = (size_t)(p->own.to - p->own.from) + 1;
    const int ahead = p->rt->stages - 1;
    p->started = calloc(rows, sizeof *p->started);
    p->sums = calloc(rows, sizeof(struct sl_tile *));
    p->asked = calloc(2 * (size_t)p->a->tile_cols + 1, sizeof(struct sl_tile *));
    if (!p->started || !p->sums || !p->asked)
        sl_fatal("no memory for the lists of %d tiles", p->a->tile_cols);
    for (int i = p->own.from; i < p->own.to; i++)
        p->sums[i - p->own.from] = sl_matrix_tile(p->z, i, 0);
    for (int hop = 1; hop <= ahead; hop++)
        ask(p, hop);
    send_all(p);
    for (int i = p->own.from; i < p->own.to; i++)
        work_on(p, i, i, p->own.to);
    for (int hop = 1; hop < p->rt->ranks; hop++) {
        ask(p, hop + ahead);
        const struct sl_stage stage = stage_of(p, hop);
        const struct sl_tile_run group = sl_grid_group(p->d, rank_after(p, hop));
        for (int i = p->own.from; i < p->own.to; i++)
            work_on(p, i, group.from, group.to);
        sl_stage_drop(p->rt, &stage);
    }
    for (int i = p->own.from; i < p->own.to; i++) {
        work_on(p, i, p->own.from, i);
        if (!p->started[i - p->own.from])
            sl_submit_fill(p->rt, 0.0f, sl_matrix_tile(p->z, i, 0));
    }
    free(p->started);
    free(p->sums);
    free(p->asked);
}

static void take_largest(struct product *p, int i, int k)
{
    sl_submit_largest(p->rt, &(struct sl_largest_tiles){
                                 .a = sl_sparse_matrix_tile(p->a, i, k),
                                 .h = sl_matrix_tile(p->moved[0], k, 0),
                                 .arg = sl_matrix_tile(p->from, i, 0),
                                 .z = sl_matrix_tile(p->z, i, 0),
                                 .accumulate = p->started[i - p->own.from],
                                 .first = p->d->row_cut[k],
                             });
}

static void give_back(struct product *p, int i, int k)
{
    sl_submit_largest_back(p->rt, &(struct sl_largest_tiles){
                                      .a = sl_sparse_matrix_tile(p->a, i, k),
                                      .h = sl_matrix_tile(p->moved[0], k, 0),
                                      .arg = sl_matrix_tile(p->moved[1], k, 0),
                                      .z = sl_matrix_tile(p->z, i, 0),
                                      .accumulate = p->started[i - p->own.from],
                                      .first = p->d->row_cut[i],
                                  });
}

void sl_network_largest(struct sl_network *net, const struct sl_matrix *h, struct sl_matrix *from,
                        struct sl_matrix *z)
{
    run(&(struct product){
        .rt = net->rt,
        .d = net->distribution,
        .a = net->adjacency,
        .moved = {h},
        .matrices = 1,
        .own = sl_grid_group(net->distribution, net->rt->rank),
        .work = take_largest,
        .from = from,
        .z = z,
    });
}

void sl_network_largest_back(struct sl_network *net, const struct sl_matrix *g,
                             const struct sl_matrix *from, struct sl_matrix *dh)
{
    run(&(struct product){
        .rt = net->rt,
        .d = net->distribution,
        .a = net->adjacency_transposed,
        .moved = {g, from},
        .matrices = 2,
        .own = sl_grid_group(net->distribution, net->rt->rank),
        .work = give_back,
        .z = dh,
    });
}
