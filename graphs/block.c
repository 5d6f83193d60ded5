/* Block distributions: Â and H are cut into tiles, and owner functions say where each lives.
 *
 *   for i:     Z(i) = epilogue(Σ Â(i, k)·H(k)), in the order k = i, i+1, …, T-1, 0, …, i-1
 *
 * A rank works in stages: its own H(k) from k = i on, then those of one rank after the other, round
 * from itself, then its own before i. While it works on one stage, the tiles of the next one travel
 * (MG-GCN, section 4.3); there is memory for so many stages only (core/message.h). Each stage needs
 * another rank, so that none is asked by everyone at once. The last stage is worked on when nothing
 * is left to travel: where ranks are few, the tiles of each are several stages.
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
    const struct sl_distribution *d;
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

/* Row tiles [from, to) of one rank. */
struct run {
    int rank, from, to;
};

static struct run run_of(const struct sl_distribution *d, int rank)
{
    struct run run = {.rank = rank};
    while (run.from < d->tiles && sl_distribution_dense_owner(d, run.from, 0) != rank)
        run.from++;
    run.to = run.from;
    while (run.to < d->tiles && sl_distribution_dense_owner(d, run.to, 0) == rank)
        run.to++;
    return run;
}

/* Stages that the tiles of a rank are: two, or more where ranks are few. */
static int pieces_of(const struct sl_runtime *rt)
{
    enum { LEAST_STAGES = 8, LEAST_PIECES = 2 };
    const int others = rt->ranks - 1;
    const int pieces = others > 0 ? (LEAST_STAGES + others - 1) / others : 1;
    return rt->stages == 1 ? 1 : pieces > LEAST_PIECES ? pieces : LEAST_PIECES;
}

static int count_stages(const struct sl_runtime *rt)
{
    return (rt->ranks - 1) * pieces_of(rt);
}

/* What travels in stage s, round from the next rank. */
static struct run stage_run(const struct sl_runtime *rt, const struct sl_distribution *d, int s)
{
    const int pieces = pieces_of(rt), piece = s % pieces;
    struct run run = run_of(d, (rt->rank + 1 + s / pieces) % rt->ranks);
    const int count = run.to - run.from;
    run.to = run.from + count * (piece + 1) / pieces;
    run.from += count * piece / pieces;
    return run;
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

/* The tiles of the run that this rank needs. */
static struct sl_stage stage_of(const struct product *p, const struct run *run)
{
    struct sl_stage stage = {.from = run->rank, .tiles = p->asked};
    for (int k = run->from; k < run->to; k++)
        if (needs(p->a, p->rt->rank, k))
            stage.tiles[stage.count++] = sl_matrix_tile(p->h, k, 0);
    return stage;
}

static void ask(struct product *p, int s)
{
    if (s >= count_stages(p->rt))
        return;
    const struct run run = stage_run(p->rt, p->d, s);
    const struct sl_stage stage = stage_of(p, &run);
    sl_stage_ask(p->rt, &stage, p->count, p->sums);
}

/* This rank's tiles to the others, in the order in which those come to ask. */
static void send_all(const struct product *p)
{
    const int ranks = p->rt->ranks;
    const struct run own = run_of(p->d, p->rt->rank);
    for (int hop = 1; hop < ranks; hop++) {
        const int rank = (p->rt->rank + ranks - hop) % ranks;
        for (int k = own.from; k < own.to; k++)
            if (needs(p->a, rank, k))
                sl_stage_send(p->rt, sl_matrix_tile(p->h, k, 0), rank);
    }
}

/* Adds the terms up to the end of the run. */
static void work_on(struct product *p, const struct run *run)
{
    for (int r = 0; run->from < run->to && r < p->count; r++)
        advance(p, &p->row[r], step_before(p, p->row[r].i, run->to));
}

static void work_on_stage(struct product *p, int s)
{
    const struct run run = stage_run(p->rt, p->d, s);
    const struct sl_stage stage = stage_of(p, &run);
    work_on(p, &run);
    sl_stage_drop(p->rt, &stage);
}

static void multiply(struct product *p)
{
    const int stages = count_stages(p->rt), ahead = p->rt->stages - 1;
    for (int s = 0; s < ahead; s++)
        ask(p, s);
    if (stages > 0) {
        const struct run own = run_of(p->d, p->rt->rank);
        send_all(p);
        work_on(p, &own);
    }
    for (int s = 0; s < stages; s++) {
        ask(p, s + ahead);
        work_on_stage(p, s);
    }
    for (int r = 0; r < p->count; r++) {
        advance(p, &p->row[r], p->a->tile_cols);
        finish(p, &p->row[r]);
    }
}

/* Of the others' rows, those of as many of the largest stages as there is memory for. */
static int64_t block_received_rows(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    int64_t most = 0;
    for (int s = 0; s < count_stages(rt); s++) {
        const struct run run = stage_run(rt, d, s);
        const int64_t rows = d->row_cut[run.to] - d->row_cut[run.from];
        most = rows > most ? rows : most;
    }
    return rt->stages * most;
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
    struct product p = {.rt = rt, .d = d, .a = a, .h = h};
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
    .received_rows = block_received_rows,
};
