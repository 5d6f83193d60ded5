/* Block distributions: Â and H are cut into tiles, and owner functions say where each lives.
 *
 *   for k:     H(k) travels to the ranks that own a nonempty Â(i, k)
 *   for i:     Z(i) = Σ Â(i, k)·H(k), in the order k = i, i+1, …, T-1, 0, …, i-1
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
            if (sl_sparse_matrix_tile(a, i, k)->nnz)
                needs[sl_matrix_tile(z, i, 0)->owner] = true;
        sl_broadcast(rt, sl_matrix_tile(h, k, 0), needs);
    }
    free(needs);
}

static void block_aggregate(struct sl_runtime *rt, const struct sl_distribution *d,
                            const struct sl_sparse_matrix *a, const struct sl_matrix *h,
                            const struct sl_matrix *z)
{
    (void)d;
    spread(rt, a, h, z);
    for (int i = 0; i < a->tile_rows; i++) {
        struct sl_tile *out = sl_matrix_tile(z, i, 0);
        if (out->owner != rt->rank)
            continue;
        bool started = false;
        for (int step = 0; step < a->tile_cols; step++) {
            const int k = (i + step) % a->tile_cols;
            struct sl_sparse_tile *tile = sl_sparse_matrix_tile(a, i, k);
            if (tile->nnz == 0)
                continue;
            sl_submit_spmm(rt, false, tile, NULL, sl_matrix_tile(h, k, 0), started, out);
            started = true;
        }
        if (!started)
            sl_submit_fill(rt, 0.0f, out);
    }
    for (int k = 0; k < h->tile_rows; k++)
        sl_tile_drop(rt, sl_matrix_tile(h, k, 0));
}

/* 1D: rank r owns the r-th of P equal runs of row tiles. */
static int row_owner(const struct sl_distribution *d, int i, int j)
{
    (void)j;
    return (int)((int64_t)i * d->ranks / d->tiles);
}

const struct sl_distribution_kind sl_distribution_1d = {
    .name = "1d",
    .summary = "rows of the adjacency and of every dense matrix are cut among the ranks",
    .dense_owner = row_owner,
    .sparse_owner = row_owner,
    .aggregate = block_aggregate,
};
