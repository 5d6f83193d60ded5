/* clang-format off */
/* The largest of neighbours on a grid of one layer, and its gradient: rank (r, c) computes
 *
 *   forward    for k:  (Z(i, c), FROM(i, c)) = the larger of them and those of A(i, k)·H(k, c)
 *   backward   for k:  DH(i, c) = DH(i, c) + those of Aᵀ(i, k)·G(k, c) that FROM(k, c) says to come from i
 *
 * for its row tiles i in the order k = i, i+1, …, T-1, 0, …, i-1: its own column tiles first, then those of one rank
 * (r', c) after the other, which travel as stages, and its own before i. Vertices are rows of the graph, so that of
 * equal ones the least row is taken and the cut does not matter. */
/* clang-format on */
#include <stdlib.h>

#include "core/error.h"
#include "core/message.h"
#include "graphs/distribution.h"
#include "graphs/stages.h"

struct product {
    struct sl_largest largest;
    const struct sl_distribution *d;
    struct sl_tile **asked; // (2 · column tiles)
};

/* Whether a rank has a row that meets column tile k. */
static bool needs(const struct product *p, int rank, int k)
{
    const struct sl_tile_run rows = sl_grid_group(p->d, rank);
    for (int i = rows.from; i < rows.to; i++)
        if (sl_sparse_matrix_tile(p->largest.choice.a, i, k)->shape.nnz)
            return true;
    return false;
}

static struct sl_tile *moved_tile(const struct product *p, int m, int k)
{
    return sl_matrix_tile(p->largest.moved[m], k, p->largest.j);
}

static struct sl_stage stage_of(struct product *p, int s)
{
    const struct sl_stage_run run = sl_stages_run(p->largest.rt, p->d, s);
    struct sl_stage stage = {.tiles = p->asked};
    for (int k = run.from; k < run.to; k++)
        for (int m = 0; m < p->largest.matrices && needs(p, p->largest.rt->rank, k); m++)
            stage.tiles[stage.count++] = moved_tile(p, m, k);
    return stage;
}

static void ask(struct product *p, int s)
{
    if (s >= sl_stages_count(p->largest.rt, p->d))
        return;
    const struct sl_stage stage = stage_of(p, s);
    sl_stage_ask(p->largest.rt, &stage, p->largest.own.to - p->largest.own.from, p->largest.sums);
}

/* In the order in which the others come to ask. */
static void send_all(const struct product *p)
{
    const struct sl_grid *grid = &p->d->grid;
    for (int hop = grid->rows - 1; hop > 0; hop--) {
        const int rank = (p->largest.rt->rank + hop * grid->columns) % p->d->ranks;
        for (int k = p->largest.own.from; k < p->largest.own.to; k++)
            for (int m = 0; m < p->largest.matrices && needs(p, rank, k); m++)
                sl_stage_send(p->largest.rt, moved_tile(p, m, k), rank);
    }
}

/* Column tiles [from, to) of row i. */
static void work_on(struct product *p, int i, int from, int to)
{
    for (int k = from; k < to; k++) {
        struct sl_tile *met[2] = {moved_tile(p, 0, k)};
        if (p->largest.matrices > 1)
            met[1] = moved_tile(p, 1, k);
        sl_largest_meet(&p->largest, i, k, met, NULL,
                        p->d->row_cut[p->largest.choice.back ? i : k]);
    }
}

void sl_block_largest(struct sl_runtime *rt, const struct sl_distribution *d,
                      const struct sl_choice *choice)
{
    const struct sl_tile_run own = sl_grid_group(d, rt->rank);
    const int ahead = rt->stages - 1;
    struct product p = {.d = d};
    sl_largest_open(rt, choice, own, sl_grid_column(&d->grid, rt->rank), &p.largest);
    p.asked = calloc(2 * (size_t)choice->a->tile_cols + 1, sizeof(struct sl_tile *));
    if (!p.asked)
        sl_fatal("no memory for the lists of %d tiles", choice->a->tile_cols);
    for (int s = 0; s < ahead; s++)
        ask(&p, s);
    send_all(&p);
    for (int i = own.from; i < own.to; i++)
        work_on(&p, i, i, own.to);
    for (int s = 0; s < sl_stages_count(rt, d); s++) {
        const struct sl_stage_run run = sl_stages_run(rt, d, s);
        ask(&p, s + ahead);
        const struct sl_stage stage = stage_of(&p, s);
        for (int i = own.from; i < own.to; i++)
            work_on(&p, i, run.from, run.to);
        sl_stage_drop(rt, &stage);
    }
    for (int i = own.from; i < own.to; i++)
        work_on(&p, i, own.from, i);
    sl_largest_close(&p.largest);
    free(p.asked);
}
