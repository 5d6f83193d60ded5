/* Block distributions: Â and H are cut into tiles, and owner functions say where each lives. On an
 * R x C x L grid (graphs/grid.h) rank (r, c, l) has column tile c of H(k) where k is of its group,
 * and adds up, for all row tiles i of r,
 *
 *   for i:     P(i) = Σ Â(i, k)·H(k), k of layer l, in the order k = i, i+1, …, T-1, 0, …, i-1
 *
 * from its group's first k on where i is another group's. Then it sends P(i) to the group (r, l')
 * of i, and adds for its own:
 *
 *              Z(i) = epilogue(P(i) + those of the layers after its own, round)
 *
 * With C = L = 1 that is 1D, with C = 1 1.5D, with L = 1 SUMMA with Z in its place, and Split-3D
 * else (CAGNET, section 4).
 *
 * A rank works in stages: its own H(k), then those of one rank (r', c, l) after the other, round
 * from itself, then its own before i. While it works on one stage, the tiles of the next one travel
 * (MG-GCN, section 4.3); there is memory for so many stages only (core/message.h). Each stage needs
 * another rank, so that none is asked by everyone at once. The last stage is worked on when nothing
 * is left to travel: where ranks are few, the tiles of each are several stages.
 *
 * A heavy row, that of a hub, is cut into pieces whose sums are added in that order. Order and
 * pieces depend on the tiles and their entries and on L alone, so that the sums are bitwise the
 * same on any number of ranks. */
#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "core/message.h"
#include "core/temporary.h"
#include "graphs/collective.h"
#include "graphs/columns.h"
#include "graphs/distribution.h"
#include "graphs/partials.h"
#include "graphs/stages.h"

/* One row of the result on its way. Its sums are in `sum`, or, where that is NULL, in Z, which of
 * another group's row is this layer's part. */
struct row {
    int i;
    int start;      /* the column tile that its sum begins with */
    int next, last; /* steps of the sum: the one that comes, the last one with entries (-1: none) */
    bool heavy;
    bool joined;          /* other layers have part of the sum */
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
    struct sl_grid grid;
    int r, c, l;            /* this rank's place on it */
    struct sl_tile_run own; /* row tiles of its group */
    int others, count;      /* rows that this rank adds up: other groups', and all */
    struct row *row;
    struct sl_sparse_tile
        *part[SL_SPMM_PARTS]; /* the tiles of the task that is being put together */
    int parts, met;
    int64_t bytes;          /* of its tiles */
    struct sl_tile **meets; /* `met` dense tiles; room for all */
    struct sl_tile **sums;  // (count)
    struct sl_tile **asked; /* room for the tiles of a stage */
    int *from;              /* and for the ranks that send them */
    struct sl_relay relay;
};

/* ---- Rows ---- */

/* Column tile number `step` in the sum of a row, and the other way round. */
static int column(const struct product *p, const struct row *row, int step)
{
    return (row->start + step) % p->a->tile_cols;
}

static int step_before(const struct product *p, const struct row *row, int column)
{
    return column > row->start ? column - row->start : column + p->a->tile_cols - row->start;
}

/* ε: whether a tile of Â meets its H on the ranks of this layer: those of the group that has it. */
static bool is_met(const struct product *p, const struct sl_sparse_tile *tile)
{
    return tile->shape.nnz && sl_grid_layer(&p->grid, tile->tile.owner) == p->l;
}

static struct sl_tile *sums_of(const struct row *row)
{
    return row->sum ? row->sum : row->z;
}

/* One task of the tiles that were put together. */
static void submit_parts(struct product *p, struct row *row, bool last)
{
    struct sl_tile *const to = row->piece.rows ? &row->piece : sums_of(row);
    const bool finishes = last && !row->heavy && !row->joined;
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
    p->bytes = 0;
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

/* The tiles of Â and H of a term. */
static int64_t term_bytes(const struct product *p, const struct sl_sparse_tile *tile, int k)
{
    int64_t bytes = sl_tile_bytes(&tile->tile);
    for (int s = 0; s < tile->span; s++)
        bytes += sl_tile_bytes(sl_matrix_tile(p->h, k + s, p->c));
    return bytes;
}

/* Adds the terms up to before step `to`, in tasks of their own. */
static void advance(struct product *p, struct row *row, int to)
{
    for (; row->next < to; row->next++) {
        const int k = column(p, row, row->next);
        struct sl_sparse_tile *tile = sl_sparse_matrix_tile(p->a, row->i, k);
        if (!is_met(p, tile))
            continue;
        if (row->heavy && row->entries >= p->a->piece)
            end_piece(p, row);
        else if (p->parts == SL_SPMM_PARTS ||
                 !sl_task_holds(p->rt, p->bytes + term_bytes(p, tile, k)))
            submit_parts(p, row, false);
        p->bytes += term_bytes(p, tile, k);
        p->part[p->parts++] = tile;
        for (int s = 0; s < tile->span; s++)
            p->meets[p->met++] = sl_matrix_tile(p->h, k + s, p->c);
        row->entries += tile->shape.nnz;
    }
    submit_parts(p, row, row->next > row->last);
}

/* What is left to do when all terms of this rank are there. */
static void finish(struct product *p, struct row *row)
{
    if (row->piece.rows) {
        sl_submit_accumulate(p->rt, &row->piece, sums_of(row));
        sl_temporary_close(&row->piece);
    }
    if (!row->started)
        sl_submit_fill(p->rt, 0.0f, sums_of(row));
}

/* ... and of all layers. */
static void finish_own(struct product *p, struct row *row)
{
    const bool apart = row->heavy || row->joined || !row->started;
    if (apart && (row->epilogue || row->sum))
        sl_submit_epilogue(p->rt, row->epilogue, sums_of(row), row->z);
}

/* ---- Stages ---- */

/* What is worked on at a time: the row tiles [from, to) of one rank; of the own ones, where they
 * are a stage, those from the start of a row on, or those before it. */
struct run {
    int rank, from, to;
    bool before;
};

static struct run stage_run(const struct sl_runtime *rt, const struct sl_distribution *d, int s)
{
    const struct sl_stage_run run = sl_stages_run(rt, d, s);
    return (struct run){run.rank, run.from, run.to, false};
}

/* Whether tiles of the adjacency travel: the own run, first and last, is a stage for them, too. */
static bool adjacency_travels(const struct product *p)
{
    return p->d->drops_adjacency && p->grid.columns > 1;
}

static int count_runs(const struct product *p)
{
    return sl_stages_count(p->rt, p->d) + (adjacency_travels(p) ? 2 : 0);
}

static struct run run_at(const struct product *p, int s)
{
    if (!adjacency_travels(p))
        return stage_run(p->rt, p->d, s);
    if (0 < s && s < count_runs(p) - 1)
        return stage_run(p->rt, p->d, s - 1);
    return (struct run){p->rt->rank, p->own.from, p->own.to, s > 0};
}

/* Whether rank `rank`, of this layer, has a row that meets H(k). */
static bool has_row(const struct product *p, int rank, int k)
{
    const struct sl_tile_run rows = sl_grid_panel(p->d, rank);
    for (int i = rows.from; i < rows.to; i++)
        if (sl_sparse_matrix_tile(p->a, i, k)->shape.nnz)
            return true;
    return false;
}

/* Tiles of the adjacency of other ranks that meet the run. */
static void add_adjacency(const struct product *p, const struct run *run, struct sl_stage *stage)
{
    for (int r = 0; r < p->count; r++)
        for (int k = run->from; k < run->to; k++) {
            struct sl_sparse_tile *tile = sl_sparse_matrix_tile(p->a, p->row[r].i, k);
            const bool before = run->rank == p->rt->rank && k < p->row[r].start;
            if (!tile->shape.nnz || tile->tile.owner == p->rt->rank || before != run->before)
                continue;
            p->from[stage->count] = tile->tile.owner;
            stage->tiles[stage->count++] = &tile->tile;
            stage->adjacency++;
        }
}

/* H(k) on its way to those that need it. */
struct way {
    const struct product *p;
    int k;
};

static bool needs(const void *way, int rank)
{
    const struct way *w = way;
    return has_row(w->p, rank, w->k);
}

/* The position that hands H(k), of rank `owner`, to position `position`, which needs it. */
static int parent_of(const struct product *p, int owner, int position, int k)
{
    return sl_relay_parent(&p->relay, owner, position, needs, &(struct way){p, k});
}

/* The tiles for the run that this rank needs. */
static struct sl_stage stage_of(const struct product *p, const struct run *run)
{
    struct sl_stage stage = {.tiles = p->asked, .from = p->from};
    const int position = sl_relay_position(&p->relay, run->rank, p->rt->rank);
    for (int k = run->from; position > 0 && k < run->to; k++)
        if (has_row(p, p->rt->rank, k)) {
            const int parent = parent_of(p, run->rank, position, k);
            p->from[stage.count] = sl_relay_rank(&p->relay, run->rank, parent);
            stage.tiles[stage.count++] = sl_matrix_tile(p->h, k, p->c);
        }
    if (adjacency_travels(p))
        add_adjacency(p, run, &stage);
    return stage;
}

/* Tiles of a run, which are this rank's or which it has asked for, to those that get them from
 * here, in the order in which they come to ask. */
static void send_run(const struct product *p, const struct run *run)
{
    const int own = sl_relay_position(&p->relay, run->rank, p->rt->rank);
    for (int position = own + 1; position <= sl_relay_last(&p->relay, own); position++) {
        const int rank = sl_relay_rank(&p->relay, run->rank, position);
        for (int k = run->from; k < run->to; k++)
            if (has_row(p, rank, k) && parent_of(p, run->rank, position, k) == own)
                sl_stage_send(p->rt, sl_matrix_tile(p->h, k, p->c), rank);
    }
}

static void ask(struct product *p, int s)
{
    if (s >= count_runs(p))
        return;
    const struct run run = run_at(p, s);
    const struct sl_stage stage = stage_of(p, &run);
    sl_stage_ask(p->rt, &stage, p->count, p->sums);
    if (run.rank != p->rt->rank)
        send_run(p, &run);
}

/* Those of the adjacency to the rest of the group. */
static void send_adjacency(const struct product *p)
{
    for (int r = 0; r < p->count; r++)
        for (int k = 0; k < p->a->tile_cols; k++) {
            struct sl_sparse_tile *tile = sl_sparse_matrix_tile(p->a, p->row[r].i, k);
            for (int hop = 1; hop < p->grid.columns; hop++)
                if (tile->shape.nnz && tile->tile.owner == p->rt->rank)
                    sl_stage_send(p->rt, &tile->tile,
                                  sl_columns_rank(p->rt, p->d, sl_columns_after(p->rt, p->d, hop)));
        }
}

/* Adds the terms up to column tile `to`. */
static void work_up_to(struct product *p, int to)
{
    for (int r = 0; r < p->count; r++)
        advance(p, &p->row[r], step_before(p, &p->row[r], to));
}

static void work_on_stage(struct product *p, int s)
{
    const struct run run = run_at(p, s);
    const struct sl_stage stage = stage_of(p, &run);
    if (run.from < run.to && !run.before)
        work_up_to(p, run.to);
    for (int r = 0; run.before && r < p->count; r++)
        advance(p, &p->row[r], p->a->tile_cols);
    sl_stage_drop(p->rt, &stage);
}

static void multiply(struct product *p)
{
    const int runs = count_runs(p), ahead = p->rt->stages - 1;
    for (int s = 0; s < ahead; s++)
        ask(p, s);
    send_run(p, &(struct run){p->rt->rank, p->own.from, p->own.to, false});
    if (adjacency_travels(p))
        send_adjacency(p);
    else if (runs > 0 && p->own.from < p->own.to)
        work_up_to(p, p->own.to);
    for (int s = 0; s < runs; s++) {
        ask(p, s + ahead);
        work_on_stage(p, s);
    }
    for (int r = 0; r < p->count; r++) {
        advance(p, &p->row[r], p->a->tile_cols);
        finish(p, &p->row[r]);
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t stage_bytes(const struct sl_runtime *rt, const struct sl_distribution *d, int s,
                           int64_t row)
{
    const struct run run = stage_run(rt, d, s);
    return sl_distribution_taken(d, (struct sl_tile_run){run.from, run.to}, row);
}

/* The most that as many stages take as there is memory for, if need be with the first ones of the
 * next product; stages of sums have a row tile of this rank's. */
static int64_t block_received_bytes(const struct sl_runtime *rt, const struct sl_distribution *d,
                                    const struct sl_passage *now, const struct sl_passage *before)
{
    (void)before;                                          /* nothing is packed */
    const int64_t row = sl_padded((now->row + 3) / 4) * 4; /* of float32, the wider type */
    const struct sl_tile_run own = sl_grid_group(d, rt->rank);
    const int stages = sl_stages_count(rt, d);
    int64_t most = 0;
    for (int first = 0; first < stages; first++) {
        int64_t bytes = 0;
        for (int s = first; s < first + rt->stages; s++)
            bytes += now->matrices * stage_bytes(rt, d, s % stages, row);
        most = larger(most, bytes);
    }
    for (int i = own.from; d->grid.layers > 1 && i < own.to; i++)
        most = larger(most,
                      rt->stages * sl_distribution_taken(d, (struct sl_tile_run){i, i + 1}, row));
    return most;
}

static int block_visits(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    const int turns = (sl_stages_count(rt, d) + 2) / rt->stages;
    return turns > 1 ? turns : 1;
}

/* ---- Sums over layers ---- */

/* Whether layer `layer` has part of the sum of row i. */
static bool contributes(const struct product *p, int i, int layer)
{
    for (int k = 0; k < p->a->tile_cols; k++) {
        const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(p->a, i, k);
        if (tile->shape.nnz && sl_grid_layer(&p->grid, tile->tile.owner) == layer)
            return true;
    }
    return false;
}

static struct sl_tile *partial_of(const struct product *p, int i, int layer)
{
    return sl_partials_tile(p->d, p->h->cols, i, layer, p->c);
}

static void send_partials(struct product *p)
{
    for (int r = 0; r < p->others; r++)
        sl_stage_send(p->rt, p->row[r].z, sl_distribution_dense_owner(p->d, p->row[r].i, p->c));
}

/* Adds what another layer has of the own rows: a stage each. */
static void add_partials(struct product *p, int layer)
{
    for (int r = p->others; r < p->count; r++)
        if (contributes(p, p->row[r].i, layer)) {
            struct sl_tile *part = partial_of(p, p->row[r].i, layer), *sum = sums_of(&p->row[r]);
            const struct sl_stage stage = {.count = 1, .tiles = &part, .sums = true};
            sl_add_stage(p->rt, &stage, &sum);
        }
}

/* The reduce-scatter: each rank adds the rows of its group, each in a fixed order. */
static void join_layers(struct product *p)
{
    send_partials(p);
    for (int hop = 1; hop < p->grid.layers; hop++)
        add_partials(p, (p->l + hop) % p->grid.layers);
    for (int r = p->others; r < p->count; r++)
        finish_own(p, &p->row[r]);
}

/* ---- The product ---- */

/* Ranks with the same column of the same layer work on one another's tiles. A stage is dropped
 * when so many more have come; what is handed on must be asked for before. */
static struct sl_relay relay_of(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    const int stride = d->grid.columns * d->grid.layers;
    return (struct sl_relay){
        .form = d->relay,
        .first = rt->rank % stride,
        .stride = stride,
        .count = d->grid.rows,
        .reach = (rt->stages - 1) / sl_stages_of_rank(rt, d),
    };
}

static void start_row(struct product *p, int i, int start)
{
    struct row *row = &p->row[p->count++];
    *row = (struct row){.i = i, .start = start, .last = -1, .heavy = p->a->heavy[i]};
    for (int step = 0; step < p->a->tile_cols; step++)
        if (is_met(p, sl_sparse_matrix_tile(p->a, i, column(p, row, step))))
            row->last = step;
}

/* A row of another group, unless this rank has nothing for it. */
static void add_partial_row(struct product *p, int i)
{
    if (!contributes(p, i, p->l))
        return;
    start_row(p, i, p->own.from % p->a->tile_cols);
    p->row[p->count - 1].z = partial_of(p, i, p->l);
}

static void add_own_row(struct product *p, int i, const struct sl_row_epilogue *epilogue,
                        const struct sl_matrix *sum, const struct sl_matrix *z)
{
    start_row(p, i, i);
    struct row *row = &p->row[p->count - 1];
    row->z = sl_matrix_tile(z, i, p->c);
    row->sum = sum ? sl_matrix_tile(sum, i, p->c) : NULL;
    if (epilogue) {
        row->own_epilogue = sl_row_epilogue_at(epilogue, i, z, p->c);
        row->epilogue = &row->own_epilogue;
    }
    for (int l = 0; l < p->grid.layers; l++)
        row->joined = row->joined || (l != p->l && contributes(p, i, l));
}

/* Each layer's rows first that adds this one's part first. */
static void add_rows(struct product *p, const struct sl_row_epilogue *epilogue,
                     const struct sl_matrix *sum, const struct sl_matrix *z)
{
    for (int hop = p->grid.layers - 1; hop > 0; hop--) {
        const struct sl_tile_run group =
            sl_grid_group(p->d, sl_grid_rank(&p->grid, p->r, p->c, (p->l + hop) % p->grid.layers));
        for (int i = group.from; i < group.to; i++)
            add_partial_row(p, i);
    }
    p->others = p->count;
    for (int i = p->own.from; i < p->own.to; i++)
        add_own_row(p, i, epilogue, sum, z);
    for (int r = 0; r < p->count; r++)
        p->sums[r] = sums_of(&p->row[r]);
}

static void block_aggregate(struct sl_runtime *rt, const struct sl_distribution *d,
                            const struct sl_moment *moment, const struct sl_sparse_matrix *a,
                            const struct sl_matrix *h, const struct sl_row_epilogue *epilogue,
                            const struct sl_matrix *sum, const struct sl_matrix *z)
{
    (void)moment;
    struct product p = {
        .rt = rt,
        .d = d,
        .a = a,
        .h = h,
        .grid = d->grid,
        .r = sl_grid_row(&d->grid, rt->rank),
        .c = sl_grid_column(&d->grid, rt->rank),
        .l = sl_grid_layer(&d->grid, rt->rank),
        .own = sl_grid_group(d, rt->rank),
        .relay = relay_of(rt, d),
    };
    p.row = malloc((size_t)a->tile_rows * sizeof *p.row);
    p.sums = malloc((size_t)a->tile_rows * sizeof *p.sums);
    p.meets = malloc((size_t)a->tile_cols * sizeof *p.meets);
    const size_t most = (size_t)(a->tile_rows + 1) * (size_t)a->tile_cols; /* of a stage */
    p.asked = malloc(most * sizeof *p.asked);
    p.from = malloc(most * sizeof *p.from);
    if (!p.row || !p.sums || !p.meets || !p.asked || !p.from)
        sl_fatal("no memory for the lists of %d tiles", a->tile_rows);
    if (d->grid.layers > 1 && sl_partials_plan(rt, d, h->cols))
        sl_fatal("%s", sl_error_message());
    add_rows(&p, epilogue, sum, z);
    multiply(&p);
    join_layers(&p);
    free(p.row);
    free(p.sums);
    free(p.meets);
    free(p.asked);
    free(p.from);
}

const struct sl_distribution_kind sl_distribution_block = {
    .whole_owner = sl_grid_whole_owner,
    .dense_owner = sl_grid_dense_owner,
    .sparse_owner = sl_grid_sparse_owner,
    .span = sl_grid_span,
    .aggregate = block_aggregate,
    .largest = sl_block_largest,
    .received_bytes = block_received_bytes,
    .keeps = sl_grid_keeps,
    .visits = block_visits,
};
