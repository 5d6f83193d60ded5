/* clang-format off */
/* Block distributions on an R × C × D grid of ranks: 1D (C = D = 1), 1.5D (C = 1), 2D (D = 1), 3D.
 * CAGNET's algorithms (section 4) are one algorithm here. P(r, c, l) is the rank in row r, column c
 * and depth l. Its group P(r, :, l) has row tiles of H and Z; the rank has their columns c.
 *
 *     1  for k = own row tiles, then the row tiles of depth l, round from the own ones:
 *     2      BROADCAST(H(k, c) to P(:, c, l))
 *     3      T(i) = T(i) + A(i, k)·H(k, c)        for all row tiles i of r
 *     4  REDUCE-SCATTER(T(i) over P(r, c, :))     to the group that has Z(i)
 *     5  Z(i) = close(T(i))
 *
 * While H(k + 1) travels, line 3 works on H(k) (MG-GCN, 4.3). A reducer (graphs/reducer.h) defines
 * +, · and close. CAGNET's 1.5D keeps all of H at each depth and ends in an all-reduce. Here no
 * rank keeps rows of another group, and the same number of words travels.
 *
 * Tiles travel in stages, and memory bounds the stages on their way (core/message.h). Each rank
 * asks the ranks after it in turn, so that never all ranks ask the same rank. The terms of an own
 * T(i) come in the order k = i, i + 1, …, T - 1, 0, …, i - 1. The terms of another group's T(i)
 * begin at this group's first k. A hub's row is cut into pieces. With D = 1, order and pieces
 * follow from the tiles and their entries alone: sums are bitwise the same on any number of ranks.
 *
 * With --sum-order own-first, the terms of an own T(i) begin at this group's first k, too. Rows
 * meet all own tiles while other ranks' tiles travel, and no own tile is left for the end. Then the
 * order also follows from the cut: sums are bitwise the same in every run on as many ranks. */
/* clang-format on */
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/message.h"
#include "graphs/collective.h"
#include "graphs/columns.h"
#include "graphs/distribution.h"
#include "graphs/partials.h"
#include "graphs/stages.h"

/* A row of the result and its progress. */
struct row {
    struct sl_state *state;
    int start; /* column tile with which the row starts */
    int next;  /* next step */
};

/* The walk on this rank. */
struct walk {
    struct sl_runtime *rt;
    const struct sl_distribution *d;
    const struct sl_reduction *reduction;
    const struct sl_sparse_matrix *a;
    int matrices; /* moved matrices */
    struct sl_grid grid;
    int r, c, l;            /* this rank's row, column and depth */
    struct sl_tile_run own; /* row tiles of this rank's group */
    int others, count; /* rows of other groups that this rank combines; all rows that it combines */
    struct row *row;
    struct sl_states rows;
    struct sl_tile **met[SL_MOVED]; /* room for the tiles of a meeting */
    struct sl_tile **asked;         /* room for the tiles of a stage */
    int *from;                      /* room for the senders of these tiles */
    struct sl_ring ring;
};

/* ---- Rows ---- */

/* Return the column tile that a row meets in step `step`; return the step in which it meets a
 * column tile. */
static int column(const struct walk *w, const struct row *row, int step)
{
    return (row->start + step) % w->a->tile_cols;
}

static int step_before(const struct walk *w, const struct row *row, int column)
{
    return column > row->start ? column - row->start : column + w->a->tile_cols - row->start;
}

static struct sl_tile *moved_tile(const struct walk *w, int m, int k)
{
    return sl_matrix_tile(w->reduction->moved[m], k, w->c);
}

/* Return whether row tile i is needed and H(k) is not 0 (graphs/reach.h). */
static bool is_wanted(const struct walk *w, int i, int k)
{
    return !sl_matrix_tile(w->reduction->out[0], i, w->c)->idle && !moved_tile(w, 0, k)->idle;
}

/* ε: return whether tile (i, k) has entries and meets H(k) at this depth, the depth of the group
 * that has H(k). */
static bool is_met(const struct walk *w, int i, int k)
{
    const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(w->a, i, k);
    return tile->shape.nnz && sl_grid_depth_of(&w->grid, tile->tile.owner) == w->l &&
           is_wanted(w, i, k);
}

static struct sl_tile *vertices_of(const struct walk *w, int tile)
{
    return w->reduction->vertices ? &w->reduction->vertices[tile] : NULL;
}

static void meet(struct walk *w, struct row *row, struct sl_sparse_tile *tile, int k)
{
    struct sl_meeting meeting = {
        .a = tile, .count = tile->span, .vertices = vertices_of(w, k), .first = w->d->row_cut[k]};
    for (int m = 0; m < w->matrices; m++) {
        for (int t = 0; t < tile->span; t++)
            w->met[m][t] = moved_tile(w, m, k + t);
        meeting.moved[m] = w->met[m];
    }
    w->reduction->reducer->meet(row->state, &meeting);
}

/* Meet the tiles before step `to`, in tasks of their own. */
static void advance(struct walk *w, struct row *row, int to)
{
    for (; row->next < to; row->next++) {
        const int k = column(w, row, row->next);
        if (is_met(w, row->state->i, k))
            meet(w, row, sl_sparse_matrix_tile(w->a, row->state->i, k), k);
    }
    w->reduction->reducer->submit(row->state);
}

/* ---- Stages ---- */

/* Row tiles [from, to) of one rank, worked on at a time. If the own run is a stage, it comes twice.
 * The first time, each row meets the run's tiles from the row's start on; the second time
 * (`before`), the tiles before the start. If rows start at the first own tile, the own run comes
 * once. */
struct run {
    int rank, from, to;
    bool before;
};

static struct run stage_run(const struct sl_runtime *rt, const struct sl_distribution *d, int s)
{
    const struct sl_stage_run run = sl_stages_run(rt, d, s);
    return (struct run){run.rank, run.from, run.to, false};
}

/* Return whether tiles of the adjacency travel: the own run is a stage for them, too. */
static bool adjacency_travels(const struct walk *w)
{
    return w->d->drops_adjacency && w->grid.columns > 1;
}

/* Return how often the own run is a stage, where tiles of the adjacency travel. */
static int own_stages(const struct sl_distribution *d)
{
    return d->own_first ? 1 : 2;
}

static int count_runs(const struct walk *w)
{
    return sl_stages_count(w->rt, w->d) + (adjacency_travels(w) ? own_stages(w->d) : 0);
}

static struct run run_at(const struct walk *w, int s)
{
    const int first = adjacency_travels(w); /* first stage of another rank */
    if (first <= s && s < first + sl_stages_count(w->rt, w->d))
        return stage_run(w->rt, w->d, s - first);
    return (struct run){w->rt->rank, w->own.from, w->own.to, s > 0};
}

/* Return whether rank `rank`, of this depth, has a row that meets H(k). */
static bool has_row(const struct walk *w, int rank, int k)
{
    const struct sl_tile_run rows = sl_grid_panel(w->d, rank);
    for (int i = rows.from; i < rows.to; i++)
        if (sl_sparse_matrix_tile(w->a, i, k)->shape.nnz && is_wanted(w, i, k))
            return true;
    return false;
}

/* Add other ranks' tiles of the adjacency that meet the run. */
static void add_adjacency(const struct walk *w, const struct run *run, struct sl_stage *stage)
{
    for (int r = 0; r < w->count; r++)
        for (int k = run->from; k < run->to; k++) {
            struct sl_sparse_tile *tile = sl_sparse_matrix_tile(w->a, w->row[r].state->i, k);
            const bool before = run->rank == w->rt->rank && k < w->row[r].start;
            if (!tile->shape.nnz || tile->tile.owner == w->rt->rank || before != run->before)
                continue;
            w->from[stage->count] = tile->tile.owner;
            stage->tiles[stage->count++] = &tile->tile;
            stage->adjacency++;
        }
}

/* The context of `needs`: H(k) in a walk. */
struct way {
    const struct walk *walk;
    int k;
};

static bool needs(const void *way, int rank)
{
    const struct way *on = way;
    return has_row(on->walk, rank, on->k);
}

/* Return the position that hands H(k), of rank `owner`, to position `position`. */
static int parent_of(const struct walk *w, int owner, int position, int k)
{
    return sl_ring_parent(&w->ring, owner, position, needs, &(struct way){w, k});
}

/* Return the stage of a run: the run's tiles that this rank needs. */
static struct sl_stage stage_of(const struct walk *w, const struct run *run)
{
    struct sl_stage stage = {.tiles = w->asked, .from = w->from};
    const int position = sl_ring_position(&w->ring, run->rank, w->rt->rank);
    for (int k = run->from; position > 0 && k < run->to; k++)
        if (has_row(w, w->rt->rank, k)) {
            const int parent = parent_of(w, run->rank, position, k);
            for (int m = 0; m < w->matrices; m++) {
                w->from[stage.count] = sl_ring_rank(&w->ring, run->rank, parent);
                stage.tiles[stage.count++] = moved_tile(w, m, k);
            }
        }
    if (adjacency_travels(w))
        add_adjacency(w, run, &stage);
    return stage;
}

/* Send tiles of a run to the ranks whose parent this rank is (graphs/ring.h), in the order in
 * which they ask. This rank owns the tiles, or has asked for them. */
static void send_run(const struct walk *w, const struct run *run)
{
    const int own = sl_ring_position(&w->ring, run->rank, w->rt->rank);
    for (int position = own + 1; position <= sl_ring_last(&w->ring, own); position++) {
        const int rank = sl_ring_rank(&w->ring, run->rank, position);
        for (int k = run->from; k < run->to; k++)
            if (has_row(w, rank, k) && parent_of(w, run->rank, position, k) == own)
                for (int m = 0; m < w->matrices; m++)
                    sl_stage_send(w->rt, moved_tile(w, m, k), rank);
    }
}

static void ask(struct walk *w, int s)
{
    if (s >= count_runs(w))
        return;
    const struct run run = run_at(w, s);
    const struct sl_stage stage = stage_of(w, &run);
    sl_stage_ask(w->rt, &stage, w->count, w->rows.held);
    if (run.rank != w->rt->rank)
        send_run(w, &run);
}

/* Send own tiles of the adjacency to the rest of the group. */
static void send_adjacency(const struct walk *w)
{
    for (int r = 0; r < w->count; r++)
        for (int k = 0; k < w->a->tile_cols; k++) {
            struct sl_sparse_tile *tile = sl_sparse_matrix_tile(w->a, w->row[r].state->i, k);
            for (int hop = 1; hop < w->grid.columns; hop++)
                if (tile->shape.nnz && tile->tile.owner == w->rt->rank)
                    sl_stage_send(w->rt, &tile->tile,
                                  sl_columns_rank(w->rt, w->d, sl_columns_after(w->rt, w->d, hop)));
        }
}

/* Let all rows meet the tiles up to column tile `to`. */
static void work_up_to(struct walk *w, int to)
{
    for (int r = 0; r < w->count; r++)
        advance(w, &w->row[r], step_before(w, &w->row[r], to));
}

static void work_on_stage(struct walk *w, int s)
{
    const struct run run = run_at(w, s);
    const struct sl_stage stage = stage_of(w, &run);
    if (run.from < run.to && !run.before)
        work_up_to(w, run.to);
    for (int r = 0; run.before && r < w->count; r++)
        advance(w, &w->row[r], w->a->tile_cols);
    sl_stage_drop(w->rt, &stage);
}

static void walk_round(struct walk *w)
{
    const int runs = count_runs(w), ahead = w->rt->stages - 1;
    for (int s = 0; s < ahead; s++)
        ask(w, s);
    send_run(w, &(struct run){w->rt->rank, w->own.from, w->own.to, false});
    if (adjacency_travels(w))
        send_adjacency(w);
    else if (runs > 0 && w->own.from < w->own.to)
        work_up_to(w, w->own.to);
    for (int s = 0; s < runs; s++) {
        ask(w, s + ahead);
        work_on_stage(w, s);
    }
    for (int r = 0; r < w->count; r++) {
        advance(w, &w->row[r], w->a->tile_cols);
        w->reduction->reducer->complete(w->row[r].state);
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

/* Return the most bytes of `rt->stages` consecutive stages. The first stages of the next
 * aggregation follow the last stages of this aggregation. A stage of partial sums has one row tile
 * of this rank. */
static int64_t block_received_bytes(const struct sl_runtime *rt, const struct sl_distribution *d,
                                    const struct sl_passage *now, const struct sl_passage *before)
{
    (void)before; /* nothing is packed */
    const int64_t row =
        sl_leading((now->row + 3) / 4, SL_FLOAT32) * 4; /* row bytes in float32, the wider type */
    const struct sl_tile_run own = sl_grid_group(d, rt->rank);
    const int stages = sl_stages_count(rt, d);
    int64_t most = 0;
    for (int first = 0; first < stages; first++) {
        int64_t bytes = 0;
        for (int s = first; s < first + rt->stages; s++)
            bytes += now->matrices * stage_bytes(rt, d, s % stages, row);
        most = larger(most, bytes);
    }
    const int sums = (own.to - own.from) * (d->grid.depth - 1) +
                     1; /* stages of sums in a walk, and one of the next */
    const int ahead = sums < rt->stages ? sums : rt->stages;
    for (int i = own.from; d->grid.depth > 1 && i < own.to; i++)
        most =
            larger(most, ahead * sl_distribution_taken(d, (struct sl_tile_run){i, i + 1},
                                                       sl_leading(now->state / 4, SL_FLOAT32) * 4));
    if (now->operands >
        0) /* other depths' operands stay during the walk, as many rows as the own rows */
        most += (d->grid.depth - 1) *
                sl_distribution_taken(d, own, sl_leading(now->operands / 4, SL_FLOAT32) * 4);
    return most;
}

static int block_visits(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    const int turns = (sl_stages_count(rt, d) + own_stages(d)) / rt->stages;
    return turns > 1 ? turns : 1;
}

/* ---- Sums over layers ---- */

/* Return whether depth `layer` has part of the sum of row i. */
static bool contributes(const struct walk *w, int i, int layer)
{
    for (int k = 0; k < w->a->tile_cols; k++) {
        const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(w->a, i, k);
        if (tile->shape.nnz && sl_grid_depth_of(&w->grid, tile->tile.owner) == layer &&
            is_wanted(w, i, k))
            return true;
    }
    return false;
}

/* Find the partial sums that depth `layer` has of row i, a tile for each output. */
static void find_partials(const struct walk *w, int i, int layer, struct sl_tile **tile)
{
    const struct sl_reduction *r = w->reduction;
    for (int o = 0; o < r->reducer->outputs; o++) {
        const struct sl_matrix *parts =
            sl_partials_of(w->d, r->reducer, r->moved[0]->type, o, r->out[0]->col_cut);
        tile[o] = sl_matrix_tile(parts, i * w->grid.depth + layer, w->c);
    }
}

static void send_partials(struct walk *w)
{
    for (int r = 0; r < w->others; r++) {
        const struct sl_state *state = w->row[r].state;
        for (int o = 0; o < w->reduction->reducer->outputs; o++)
            sl_stage_send(w->rt, state->out[o], sl_distribution_dense_owner(w->d, state->i, w->c));
    }
}

/* Merge the partial sums of another depth into the own rows, a stage for each row. */
static void merge_partials(struct walk *w, int layer)
{
    for (int r = w->others; r < w->count; r++) {
        struct sl_state *state = w->row[r].state;
        if (!contributes(w, state->i, layer))
            continue;
        struct sl_tile *part[SL_OUTPUTS];
        find_partials(w, state->i, layer, part);
        const struct sl_stage stage = {
            .count = w->reduction->reducer->outputs, .tiles = part, .sums = true};
        sl_stage_ask(w->rt, &stage, 1, &state->held);
        w->reduction->reducer->merge(state, part, NULL);
        sl_stage_drop(w->rt, &stage);
    }
}

/* Reduce-scatter over the depths: each rank merges the partial sums of its group's rows in a fixed
 * order. */
static void merge_depths(struct walk *w)
{
    send_partials(w);
    for (int hop = 1; hop < w->grid.depth; hop++)
        merge_partials(w, (w->l + hop) % w->grid.depth);
}

static void close_rows(struct walk *w)
{
    for (int r = w->others; r < w->count; r++)
        w->reduction->reducer->close(w->row[r].state);
}

/* ---- Row operands ---- */

/* Send the row operands of each row tile from its owner to the depths that have part of the row. */
static void send_row_operands(struct walk *w)
{
    const int64_t before = w->rt->traffic.bytes_received;
    for (int r = 0; r < w->count; r++) {
        const struct sl_state *state = w->row[r].state;
        const int owner = sl_distribution_dense_owner(w->d, state->i, w->c);
        for (int l = 0; l < w->grid.depth; l++) {
            const int to = sl_grid_rank(&w->grid, w->r, w->c, l);
            for (int m = 0; m < w->reduction->reducer->row_operands; m++)
                if (to != owner && contributes(w, state->i, l))
                    sl_tile_send(w->rt, state->row[m], owner, to);
        }
    }
    w->rt->traffic.rows_received += w->rt->traffic.bytes_received - before;
}

static void drop_row_operands(struct walk *w)
{
    for (int r = 0; r < w->others; r++)
        for (int m = 0; m < w->reduction->reducer->row_operands; m++)
            sl_tile_drop(w->rt, w->row[r].state->row[m]);
}

/* ---- The walk ---- */

/* Return the ring: ranks with the same column and depth need one another's tiles. A rank drops a
 * stage when rt->stages - 1 later stages have been asked for. Until then the rank can hand its
 * tiles on. */
static struct sl_ring ring_of(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    const int stride = d->grid.columns * d->grid.depth;
    return (struct sl_ring){
        .form = d->broadcast,
        .first = rt->rank % stride,
        .stride = stride,
        .count = d->grid.rows,
        .reach = (rt->stages - 1) / sl_stages_of_rank(rt, d),
    };
}

static void add_row(struct walk *w, int start, struct sl_state state)
{
    struct row row = {.start = start};
    for (int m = 0; m < w->reduction->reducer->row_operands; m++)
        state.row[m] = sl_matrix_tile(w->reduction->row[m], state.i, w->c);
    for (int step = 0; step < w->a->tile_cols; step++)
        state.terms += is_met(w, state.i, column(w, &row, step));
    state.j = w->c;
    state.pieces = w->a->heavy[state.i];
    state.vertices = vertices_of(w, state.i);
    state.first = w->d->row_cut[state.i];
    row.state = sl_states_add(&w->rows, &state);
    w->row[w->count++] = row;
}

/* Return the column tile with which sums for other groups begin, and with own-first all sums: the
 * first own column tile. */
static int first_own(const struct walk *w)
{
    return w->own.from % w->a->tile_cols;
}

/* Add a row of another group, if this rank has terms for it. */
static void add_partial_row(struct walk *w, int i)
{
    struct sl_state state = {.i = i, .part = true, .apart = true};
    if (!contributes(w, i, w->l))
        return;
    find_partials(w, i, w->l, state.out);
    add_row(w, first_own(w), state);
}

static void add_own_row(struct walk *w, int i, bool apart)
{
    struct sl_state state = {.i = i, .apart = apart};
    if (sl_matrix_tile(w->reduction->out[0], i, w->c)->idle)
        return;
    for (int o = 0; o < w->reduction->reducer->outputs; o++)
        state.out[o] = sl_matrix_tile(w->reduction->out[o], i, w->c);
    for (int l = 0; l < w->grid.depth; l++)
        state.apart = state.apart || (l != w->l && contributes(w, i, l));
    add_row(w, w->d->own_first ? first_own(w) : i, state);
}

/* Add rows of other groups first. Start with the depth that merges this rank's partial sums first.
 */
static void add_rows(struct walk *w, bool apart)
{
    for (int hop = w->grid.depth - 1; hop > 0; hop--) {
        const struct sl_tile_run group =
            sl_grid_group(w->d, sl_grid_rank(&w->grid, w->r, w->c, (w->l + hop) % w->grid.depth));
        for (int i = group.from; i < group.to; i++)
            add_partial_row(w, i);
    }
    w->others = w->count;
    for (int i = w->own.from; i < w->own.to; i++)
        add_own_row(w, i, apart);
}

static void open_walk(struct walk *w)
{
    const size_t rows = (size_t)w->a->tile_rows, cols = (size_t)w->a->tile_cols;
    const size_t most = (rows + (size_t)w->matrices) * cols; /* most tiles of a stage */
    w->row = malloc(rows * sizeof *w->row);
    w->met[0] = malloc((size_t)w->matrices * cols * sizeof *w->met[0]);
    w->asked = malloc(most * sizeof *w->asked);
    w->from = malloc(most * sizeof *w->from);
    if (!w->row || !w->met[0] || !w->asked || !w->from)
        sl_fatal("no memory for the lists of %d tiles", w->a->tile_rows);
    for (int m = 1; m < w->matrices; m++)
        w->met[m] = w->met[m - 1] + cols;
    if (w->grid.depth > 1 &&
        sl_partials_plan(w->rt, w->d, w->reduction->reducer, w->reduction->moved[0]->type,
                         w->reduction->out[0]->col_cut))
        sl_fatal("%s", sl_error_message());
    sl_states_open(&w->rows, w->rt, w->reduction, w->d->temporaries, w->a->tile_rows);
}

static void close_walk(struct walk *w)
{
    sl_states_free(&w->rows);
    free(w->row);
    free(w->met[0]);
    free(w->asked);
    free(w->from);
}

void sl_block_walk(struct sl_runtime *rt, const struct sl_distribution *d,
                   const struct sl_reduction *reduction, sl_merge_function *merge_clones,
                   const void *context)
{
    struct walk w = {
        .rt = rt,
        .d = d,
        .reduction = reduction,
        .a = reduction->a,
        .matrices = reduction->reducer->moved,
        .grid = d->grid,
        .r = sl_grid_row(&d->grid, rt->rank),
        .c = sl_grid_column(&d->grid, rt->rank),
        .l = sl_grid_depth_of(&d->grid, rt->rank),
        .own = sl_grid_group(d, rt->rank),
        .ring = ring_of(rt, d),
    };
    open_walk(&w);
    add_rows(&w, merge_clones != NULL);
    send_row_operands(&w);
    walk_round(&w); /* lines 1 to 3 */
    drop_row_operands(&w);
    merge_depths(&w); /* line 4 */
    if (merge_clones)
        merge_clones(context, &w.rows);
    close_rows(&w); /* line 5 */
    close_walk(&w);
}

static void block_walk(struct sl_runtime *rt, const struct sl_distribution *d,
                       const struct sl_walk_step *step, const struct sl_reduction *reduction)
{
    (void)step;
    sl_block_walk(rt, d, reduction, NULL, NULL);
}

static void block_describe(const struct sl_distribution *d, char text[32])
{
    const char *name = sl_grid_name(&d->grid, text);
    if (name != text)
        snprintf(text, 32, "%s", name);
}

int sl_block_create_adjacency(struct sl_runtime *rt, struct sl_distribution *d,
                              const struct sl_adjacency_source *s, struct sl_sparse_matrix *matrix)
{
    const struct sl_cuts cuts = {
        s->tile_rows, s->tile_cols, s->row_cut, s->col_cut, sl_distribution_sparse_owner, d};
    const struct sl_sparse_rows rows = {s->has_values, s->row, s->context, false, s->all, s->edges};
    return sl_sparse_matrix_create(rt, matrix, &cuts, sl_distribution_span, s->block_cols, &rows);
}

const struct sl_distribution_kind sl_distribution_block = {
    .name = "block",
    .describe = block_describe,
    .exact = sl_distribution_is_exact,
    .share = sl_distribution_share_all,
    .whole_owner = sl_grid_whole_owner,
    .dense_owner = sl_grid_dense_owner,
    .sparse_owner = sl_grid_sparse_owner,
    .span = sl_grid_span,
    .walk = block_walk,
    .received_bytes = block_received_bytes,
    .keeps = sl_grid_keeps,
    .visits = block_visits,
    .count = sl_block_count,
    .create_adjacency = sl_block_create_adjacency,
    .create = sl_distribution_create_nothing,
    .destroy = sl_distribution_destroy_nothing,
};
