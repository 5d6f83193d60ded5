/* Block distributions: Â and H are cut into tiles, and owner functions say where each lives.
 *
 *   for k:     H(k) travels to the ranks that own a nonempty Â(i, k)
 *   for i:     Z(i) = epilogue(Σ Â(i, k)·H(k)), in the order k = i, i+1, …, T-1, 0, …, i-1
 *
 * Each sum begins with the rank's own tile, which needs no message, and no tile is asked for by
 * everyone at once. The order depends on i alone, so the sums are bitwise the same on any number of
 * ranks. */
#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "graphs/collective.h"
#include "graphs/distribution.h"

static void spread(struct sl_runtime *rt, const struct sl_sparse_matrix *a,
                   const struct sl_matrix *h, const struct sl_matrix *z)
{
    if (rt->ranks == 1)
        return;
    bool *needs = malloc((size_t)rt->ranks * sizeof *needs);
    if (!needs)
        sl_fatal("no memory for the receivers among %d ranks", rt->ranks);
    for (int k = 0; k < a->tile_cols; k++) {
        for (int r = 0; r < rt->ranks; r++)
            needs[r] = false;
        for (int i = 0; i < a->tile_rows; i++)
            if (sl_sparse_matrix_tile(a, i, k)->shape.nnz)
                needs[sl_matrix_tile(z, i, 0)->owner] = true;
        sl_broadcast(rt, sl_matrix_tile(h, k, 0), needs);
    }
    free(needs);
}

/* The tiles of one task. */
struct group {
    int parts, rows;
    struct sl_sparse_tile *a[SL_SPMM_PARTS];
    struct sl_tile **h; /* `rows` of them; room for all */
    bool accumulate;
};

static void submit_group(struct sl_runtime *rt, struct group *group,
                         const struct sl_epilogue_tiles *epilogue, struct sl_tile *z)
{
    if (group->parts)
        sl_submit_spmm(rt, group->parts, group->a, group->h, group->accumulate, epilogue, z);
    group->accumulate = group->accumulate || group->parts;
    group->parts = group->rows = 0;
}

/* Z(i): a task has the tiles that meet the rows of one rank, so that it need not wait for
 * another's. */
static void aggregate_row(struct sl_runtime *rt, const struct sl_sparse_matrix *a,
                          const struct sl_matrix *h, const struct sl_epilogue_tiles *epilogue,
                          int i, struct group *group, struct sl_tile *z)
{
    group->accumulate = false;
    for (int step = 0; step < a->tile_cols; step++) {
        const int k = (i + step) % a->tile_cols;
        struct sl_sparse_tile *tile = sl_sparse_matrix_tile(a, i, k);
        if (tile->shape.nnz == 0)
            continue;
        if (group->parts == SL_SPMM_PARTS ||
            (group->parts && group->h[0]->owner != sl_matrix_tile(h, k, 0)->owner))
            submit_group(rt, group, NULL, z);
        group->a[group->parts++] = tile;
        for (int s = 0; s < tile->span; s++)
            group->h[group->rows++] = sl_matrix_tile(h, k + s, 0);
    }
    if (group->parts) {
        submit_group(rt, group, epilogue, z);
        return;
    }
    sl_submit_fill(rt, 0.0f, z);
    if (epilogue)
        sl_submit_epilogue(rt, epilogue, z);
}

static void block_aggregate(struct sl_runtime *rt, const struct sl_distribution *d,
                            const struct sl_sparse_matrix *a, const struct sl_matrix *h,
                            const struct sl_row_epilogue *epilogue, const struct sl_matrix *z)
{
    (void)d;
    struct group group = {.h = malloc((size_t)a->tile_cols * sizeof *group.h)};
    if (!group.h)
        sl_fatal("no memory for a list of %d tiles", a->tile_cols);
    spread(rt, a, h, z);
    for (int i = 0; i < a->tile_rows; i++) {
        struct sl_tile *out = sl_matrix_tile(z, i, 0);
        if (out->owner != rt->rank)
            continue;
        struct sl_epilogue_tiles tiles;
        if (epilogue)
            tiles = sl_row_epilogue_at(epilogue, i);
        aggregate_row(rt, a, h, epilogue ? &tiles : NULL, i, &group, out);
    }
    free(group.h);
    for (int k = 0; k < h->tile_rows; k++)
        sl_tile_drop(rt, sl_matrix_tile(h, k, 0));
}

/* 1D: rank r owns the r-th run of row tiles. Runs of equal length are found at once. */
static int row_owner(const struct sl_distribution *d, int i, int j)
{
    (void)j;
    int rank = (int)((int64_t)i * d->ranks / d->tiles);
    while (i < d->rank_cut[rank])
        rank--;
    while (i >= d->rank_cut[rank + 1])
        rank++;
    return rank;
}

/* On the rank that has row i, its own dense tiles from i on are one, and those before i: sums begin
 * at i, and whether tiles are one does not change them. */
static int row_span(const struct sl_distribution *d, int i, int k)
{
    const int owner = row_owner(d, i, 0);
    if (row_owner(d, k, 0) != owner)
        return k;
    if (k >= i)
        return i;
    return d->rank_cut[owner];
}

const struct sl_distribution_kind sl_distribution_1d = {
    .name = "1d",
    .summary = "rows of the adjacency and of every dense matrix are cut among the ranks",
    .dense_owner = row_owner,
    .sparse_owner = row_owner,
    .span = row_span,
    .aggregate = block_aggregate,
};
