/* Block distributions: Â and H are cut into tiles, and owner functions say where each lives.
 *
 *   for i:     Z(i) = epilogue(Σ Â(i, k)·H(k)), in the order k = i, i+1, …, T-1, 0, …, i-1
 *
 * A rank works in stages: its own H(k) from k = i on, then those of one rank after the other, round
 * from itself, then its own before i. While it works on one stage, the tiles of the next one travel
 * (MG-GCN, section 4.3); there is memory for so many stages only (core/message.h). Each stage needs
 * another rank, so that none is asked by everyone at once.
 *
 * A heavy row, that of a hub, is cut into pieces whose sums are added in that order. Order and
 * pieces depend on the tiles and their entries alone, so that the sums are bitwise the same on any
 * number of ranks. */
#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "core/message.h"
#include "core/temporary.h"
#include "graphs/distribution.h"

/* One row of the result on its way. Its sums are in `sum`, or, where that is NULL, in Z. */
struct row {
    int i;
    int next, last; /* steps of the sum: the one that comes, the last one with entries (-1: none) */
    bool heavy;
    bool started;         /* there is something in the sums */
    bool piece_started;   /* there is something in the piece's */
    int64_t entries;      /* of the piece so far */
    struct sl_tile piece; /* of a heavy row, from the second one on; open: has rows */
    const struct sl_epilogue_tiles *epilogue;
    struct sl_epilogue_tiles own_epilogue;
    struct sl_tile *sum, *z;
};

/* Z = A·H on this rank. */
struct product {
    struct sl_runtime *rt;
    const struct sl_sparse_matrix *a;
    const struct sl_matrix *h;
    int count; /* of rows that this rank has */
    struct row *row;
    struct sl_sparse_tile
        *part[SL_SPMM_PARTS]; /* the tiles of the task that is being put together */
    int parts, met;
    struct sl_tile **meets; /* `met` dense tiles; room for all */
    struct sl_tile **sums;  // (count)
    struct sl_tile **asked; /* room for the tiles of a stage */
};

/* ---- Rows ---- */

/* Column tile number `step` in the sum of row i, and the other way round. */
static int column(const struct product *p, int i, int step)
{
    return (i + step) % p->a->tile_cols;
}

static int step_before(const struct product *p, int i, int column)
{
    return column > i ? column - i : column + p->a->tile_cols - i;
}

static struct sl_tile *sums_of(const struct row *row)
{
    return row->sum ? row->sum : row->z;
}

/* One task of the tiles that were put together. */
static void submit_parts(struct product *p, struct row *row, bool last)
{
    struct sl_tile *const to = row->piece.rows ? &row->piece : sums_of(row);
    const bool finishes = last && !row->heavy;
    if (p->parts == 0)
        return;
    sl_submit_spmm(p->rt, &(struct sl_spmm_tiles){
                              .parts = p->parts,
                              .a = p->part,
                              .h = p->meets,
                              .accumulate = row->piece_started,
                              .epilogue = finishes ? row->epilogue : NULL,
                              .sum = finishes ? row->sum : NULL,
                              .z = finishes ? row->z : to,
                          });
    row->piece_started = row->started = true;
    p->parts = p->met = 0;
}

/* The sum of the piece is complete: what follows is another piece. */
static void end_piece(struct product *p, struct row *row)
{
    submit_parts(p, row, false);
    if (row->piece.rows) {
        sl_submit_accumulate(p->rt, &row->piece, sums_of(row));
        sl_temporary_close(&row->piece);
    }
    sl_temporary_open(p->rt, &row->piece, row->z->rows, row->z->cols);
    row->piece_started = false;
    row->entries = 0;
}

/* Adds the terms up to before step `to`, in tasks of their own. */
static void advance(struct product *p, struct row *row, int to)
{
    for (; row->next < to; row->next++) {
        const int k = column(p, row->i, row->next);
        struct sl_sparse_tile *tile = sl_sparse_matrix_tile(p->a, row->i, k);
        if (tile->shape.nnz == 0)
            continue;
        if (row->heavy && row->entries >= p->a->piece)
            end_piece(p, row);
        else if (p->parts == SL_SPMM_PARTS)
            submit_parts(p, row, false);
        p->part[p->parts++] = tile;
        for (int s = 0; s < tile->span; s++)
            p->meets[p->met++] = sl_matrix_tile(p->h, k + s, 0);
        row->entries += tile->shape.nnz;
    }
    submit_parts(p, row, row->next > row->last);
}

/* What is left to do when all terms are there. */
static void finish(struct product *p, struct row *row)
{
    if (row->piece.rows) {
        sl_submit_accumulate(p->rt, &row->piece, sums_of(row));
        sl_temporary_close(&row->piece);
    }
    if (!row->started)
        sl_submit_fill(p->rt, 0.0f, sums_of(row));
    if ((row->heavy || !row->started) && (row->epilogue || row->sum))
        sl_submit_epilogue(p->rt, row->epilogue, sums_of(row), row->z);
}

/* ---- Stages ---- */

/* The run of tiles of H that a rank has: [*from, *to). */
static void run_of(const struct sl_matrix *h, int rank, int *from, int *to)
{
    *from = 0;
    while (*from < h->tile_rows && sl_matrix_tile(h, *from, 0)->owner != rank)
        ++*from;
    *to = *from;
    while (*to < h->tile_rows && sl_matrix_tile(h, *to, 0)->owner == rank)
        ++*to;
}

/* Whether rank `rank` has a row that meets H(k). */
static bool needs(const struct sl_sparse_matrix *a, int rank, int k)
{
    for (int i = 0; i < a->tile_rows; i++) {
        const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(a, i, k);
        if (tile->shape.nnz && tile->tile.owner == rank)
            return true;
    }
    return false;
}

/* The tiles that come `hop` ranks after this one. */
static struct sl_stage stage_of(const struct product *p, int hop)
{
    const int rank = (p->rt->rank + hop) % p->rt->ranks;
    struct sl_stage stage = {.from = rank, .tiles = p->asked};
    int from, to;
    run_of(p->h, rank, &from, &to);
    for (int k = from; k < to; k++)
        if (needs(p->a, p->rt->rank, k))
            stage.tiles[stage.count++] = sl_matrix_tile(p->h, k, 0);
    return stage;
}

static void ask(struct product *p, int hop)
{
    const struct sl_stage stage = stage_of(p, hop);
    if (hop < p->rt->ranks)
        sl_stage_ask(p->rt, &stage, p->count, p->sums);
}

/* This rank's tiles to the others, in the order in which those come to ask. */
static void send_all(const struct product *p)
{
    const int ranks = p->rt->ranks;
    int from, to;
    run_of(p->h, p->rt->rank, &from, &to);
    for (int hop = 1; hop < ranks; hop++) {
        const int rank = (p->rt->rank + ranks - hop) % ranks;
        for (int k = from; k < to; k++)
            if (needs(p->a, rank, k))
                sl_stage_send(p->rt, sl_matrix_tile(p->h, k, 0), rank);
    }
}

static void work_on_stage(struct product *p, int hop)
{
    const struct sl_stage stage = stage_of(p, hop);
    int from, to;
    run_of(p->h, stage.from, &from, &to);
    for (int r = 0; from < to && r < p->count; r++)
        advance(p, &p->row[r], step_before(p, p->row[r].i, to));
    sl_stage_drop(p->rt, &stage);
}

static void multiply(struct product *p)
{
    const int ranks = p->rt->ranks, ahead = p->rt->stages > 1;
    int from, to;
    run_of(p->h, p->rt->rank, &from, &to);
    if (ahead)
        ask(p, 1);
    if (ranks > 1)
        send_all(p);
    for (int r = 0; ranks > 1 && r < p->count; r++)
        advance(p, &p->row[r], step_before(p, p->row[r].i, to));
    for (int hop = 1; hop < ranks; hop++) {
        ask(p, hop + ahead);
        work_on_stage(p, hop);
    }
    for (int r = 0; r < p->count; r++) {
        advance(p, &p->row[r], p->a->tile_cols);
        finish(p, &p->row[r]);
    }
}

/* ---- The product ---- */

static void add_row(struct product *p, int i, const struct sl_row_epilogue *epilogue,
                    const struct sl_matrix *sum, struct sl_tile *z)
{
    struct row *row = &p->row[p->count];
    *row = (struct row){.i = i, .last = -1, .heavy = p->a->heavy[i], .z = z};
    row->sum = sum ? sl_matrix_tile(sum, i, 0) : NULL;
    if (epilogue) {
        row->own_epilogue = sl_row_epilogue_at(epilogue, i);
        row->epilogue = &row->own_epilogue;
    }
    for (int step = 0; step < p->a->tile_cols; step++)
        if (sl_sparse_matrix_tile(p->a, i, column(p, i, step))->shape.nnz)
            row->last = step;
    p->sums[p->count++] = sums_of(row);
}

static void block_aggregate(struct sl_runtime *rt, const struct sl_distribution *d,
                            const struct sl_sparse_matrix *a, const struct sl_matrix *h,
                            const struct sl_row_epilogue *epilogue, const struct sl_matrix *sum,
                            const struct sl_matrix *z)
{
    (void)d;
    struct product p = {.rt = rt, .a = a, .h = h};
    p.row = malloc((size_t)a->tile_rows * sizeof *p.row);
    p.sums = malloc((size_t)a->tile_rows * sizeof *p.sums);
    p.meets = malloc((size_t)a->tile_cols * sizeof *p.meets);
    p.asked = malloc((size_t)a->tile_cols * sizeof *p.asked);
    if (!p.row || !p.sums || !p.meets || !p.asked)
        sl_fatal("no memory for the lists of %d tiles", a->tile_rows);
    for (int i = 0; i < a->tile_rows; i++)
        if (sl_matrix_tile(z, i, 0)->owner == rt->rank)
            add_row(&p, i, epilogue, sum, sl_matrix_tile(z, i, 0));
    multiply(&p);
    free(p.row);
    free(p.sums);
    free(p.meets);
    free(p.asked);
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
