/* Block distributions: Â and H are cut into tiles, and owner functions say where each lives.
 *
 *   for k:     H(k) travels to the ranks that own a nonempty Â(i, k)
 *   for i:     Z(i) = epilogue(Σ Â(i, k)·H(k)), in the order k = i, i+1, …, T-1, 0, …, i-1
 *
 * Each sum begins with the rank's own tile, which needs no message, and no tile is asked for by
 * everyone at once. A heavy row, that of a hub, is cut into pieces whose sums are added in that
 * order. Order and pieces depend on the tiles and their entries alone, so that the sums are bitwise
 * the same on any number of ranks. */
#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "core/temporary.h"
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

/* A row of the result: its sums are in `sum`, or, where that is NULL, in Z. */
struct result {
    const struct sl_epilogue_tiles *epilogue;
    struct sl_tile *sum, *z;
};

static struct sl_tile *sums_of(const struct result *result)
{
    return result->sum ? result->sum : result->z;
}

/* From the sums to the result, where no product did it. */
static void finish(struct sl_runtime *rt, const struct result *result)
{
    if (result->epilogue || result->sum)
        sl_submit_epilogue(rt, result->epilogue, sums_of(result), result->z);
}

static void submit_group(struct sl_runtime *rt, struct group *group, const struct result *result,
                         bool last)
{
    if (group->parts)
        sl_submit_spmm(rt, &(struct sl_spmm_tiles){
                               .parts = group->parts,
                               .a = group->a,
                               .h = group->h,
                               .accumulate = group->accumulate,
                               .epilogue = last ? result->epilogue : NULL,
                               .sum = last ? result->sum : NULL,
                               .z = last ? result->z : sums_of(result),
                           });
    group->accumulate = group->accumulate || group->parts;
    group->parts = group->rows = 0;
}

/* Column tile number `step` in the sum of row i. */
static int column(const struct sl_sparse_matrix *a, int i, int step)
{
    return (i + step) % a->tile_cols;
}

/* The terms of row i from step `from` to before `to`. A task has the tiles that meet the rows of
 * one rank, so that it need not wait for another's. */
static void sum_tiles(struct sl_runtime *rt, const struct sl_sparse_matrix *a,
                      const struct sl_matrix *h, int i, int from, int to, struct group *group,
                      const struct result *result)
{
    group->accumulate = false;
    for (int step = from; step < to; step++) {
        const int k = column(a, i, step);
        struct sl_sparse_tile *tile = sl_sparse_matrix_tile(a, i, k);
        if (tile->shape.nnz == 0)
            continue;
        if (group->parts == SL_SPMM_PARTS ||
            (group->parts && group->h[0]->owner != sl_matrix_tile(h, k, 0)->owner))
            submit_group(rt, group, result, false);
        group->a[group->parts++] = tile;
        for (int s = 0; s < tile->span; s++)
            group->h[group->rows++] = sl_matrix_tile(h, k + s, 0);
    }
    if (group->parts) {
        submit_group(rt, group, result, true);
        return;
    }
    sl_submit_fill(rt, 0.0f, sums_of(result));
    finish(rt, result);
}

/* The step after the piece of row i that begins with step `from`. */
static int piece_end(const struct sl_sparse_matrix *a, int i, int from)
{
    int64_t entries = 0;
    int step = from;
    while (step < a->tile_cols && entries < a->piece)
        entries += sl_sparse_matrix_tile(a, i, column(a, i, step++))->shape.nnz;
    return step;
}

/* A heavy row is cut into pieces that several workers have at a time: the first one's sum is where
 * the result's is, and the others' are added to it in order. */
static void sum_pieces(struct sl_runtime *rt, const struct sl_sparse_matrix *a,
                       const struct sl_matrix *h, int i, struct group *group,
                       const struct result *result)
{
    const struct result first = {.z = sums_of(result)};
    int end = piece_end(a, i, 0);
    sum_tiles(rt, a, h, i, 0, end, group, &first);
    for (int from = end; from < a->tile_cols; from = end) {
        struct sl_tile part;
        const struct result piece = {.z = &part};
        end = piece_end(a, i, from);
        sl_temporary_open(rt, &part, first.z->rows, first.z->cols);
        sum_tiles(rt, a, h, i, from, end, group, &piece);
        sl_submit_accumulate(rt, &part, first.z);
        sl_temporary_close(&part);
    }
    finish(rt, result);
}

static void block_aggregate(struct sl_runtime *rt, const struct sl_distribution *d,
                            const struct sl_sparse_matrix *a, const struct sl_matrix *h,
                            const struct sl_row_epilogue *epilogue, const struct sl_matrix *sum,
                            const struct sl_matrix *z)
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
        const struct result result = {epilogue ? &tiles : NULL,
                                      sum ? sl_matrix_tile(sum, i, 0) : NULL, out};
        if (a->heavy[i])
            sum_pieces(rt, a, h, i, &group, &result);
        else
            sum_tiles(rt, a, h, i, 0, a->tile_cols, &group, &result);
    }
    free(group.h);
    for (int k = 0; k < h->tile_rows; k++)
        sl_tile_drop(rt, sl_matrix_tile(h, k, 0));
}

/* 1D: rank r owns the r-th of P equal runs of row tiles. */
static int row_owner(const struct sl_distribution *d, int i, int j)
{
    (void)j;
    return (int)((int64_t)i * d->ranks / d->tiles);
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
    return (int)(((int64_t)owner * d->tiles + d->ranks - 1) / d->ranks); /* the rank's first tile */
}

const struct sl_distribution_kind sl_distribution_1d = {
    .name = "1d",
    .summary = "rows of the adjacency and of every dense matrix are cut among the ranks",
    .dense_owner = row_owner,
    .sparse_owner = row_owner,
    .span = row_span,
    .aggregate = block_aggregate,
};
