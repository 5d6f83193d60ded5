/* clang-format off */
/* Clones of vertices (graphs/vertex_cut.h) by DistGNN's algorithm 4. Numbers are the algorithm's
 * lines. In step e of a delay r:
 *
 *     8   P = S·H on the own edges         9   bin = e % r
 *     10  gather leaves of the bin         11  async_send to their roots
 *     12  if e >= r:                       13  receive the leaves of step e - r
 *     14      add leaves to roots          15  gather roots       16  async_send to their leaves
 *     18  if e >= 2r:                      19  receive the roots of step e - r
 *     20      leaves = roots
 *
 * In each direction, a message is read before the next message is posted in its place. Not in the
 * paper: rows that neither line 14 nor line 20 completes are multiplied by their factor, and scaled
 * gradients are not exchanged. */
/* clang-format on */
#include "graphs/vertex_cut.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/epilogue.h"
#include "codelets/pack_rows.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/tile.h"
#include "graphs/distribution.h"

/* ---- Factors of partial sums ---- */

/* Set the factor 1 for rows that messages of this exchange complete. */
static void set_met(struct sl_runtime *rt, struct sl_vertex_cut *cut, struct sl_exchange *exchange,
                    int first)
{
    for (int p = 0; p < exchange->receives; p++) {
        struct sl_exchange_part *part = &exchange->receive[p];
        for (int t = 0; t < part->to - part->from; t++)
            if (part->first[t + 1] > part->first[t])
                sl_submit_unpack_rows(
                    rt, &(struct sl_unpack_tiles){.index = &part->index,
                                                  .x = &cut->ones,
                                                  .first = part->first[t],
                                                  .rows = part->first[t + 1] - part->first[t],
                                                  .y = &cut->step_factor[part->from + t - first]});
    }
}

/* Return the factors of this rank's row tiles, from `first` on, in a training step; NULL: all
 * are 1. The first aggregation of a step makes them. */
static struct sl_tile *factors_at(struct sl_runtime *rt, struct sl_vertex_cut *cut,
                                  const struct sl_walk_step *step, int first)
{
    if (!cut->factor || step->number < 0 || step->exact)
        return NULL;
    if (cut->delay <= 0 || step->before < cut->delay)
        return cut->factor;
    struct sl_cut_exchange *bin = &cut->bin[step->before % cut->delay];
    for (int t = 0; step->number == 0 && t < cut->own_tiles; t++)
        sl_submit_epilogue(rt, NULL, &cut->factor[t], &cut->step_factor[t]);
    if (step->number == 0)
        set_met(rt, cut, &bin->to_root, first);
    if (step->number == 0 && step->before >= 2 * cut->delay)
        set_met(rt, cut, &bin->to_leaves, first);
    return cut->step_factor;
}

/* ---- E ---- */

/* Matrices, cut alike, whose rows clones exchange together. */
struct shared {
    struct sl_runtime *rt;
    const struct sl_matrix *rows; /* matrix whose idle tiles no layer needs */
    int count;
    const struct sl_matrix *p[SL_OUTPUTS];
    struct sl_states *states; /* states that merge; NULL: matrices add up */
};

/* Merge a leaf's rows, in `arrived` (count), into the root's rows. */
static void merge_part(const struct shared *shared, struct sl_exchange *exchange, int part,
                       struct sl_tile *const *arrived)
{
    if (shared->states)
        sl_states_merge(shared->states, &exchange->receive[part], arrived);
    else
        sl_exchange_unpack(shared->rt, exchange, part, arrived[0], true, shared->p[0], 0);
}

/* Replace leaves by the root's rows. */
static void copy_part(const struct shared *shared, struct sl_exchange *exchange, int part,
                      struct sl_tile *const *arrived)
{
    for (int m = 0; m < shared->count; m++)
        sl_exchange_unpack(shared->rt, exchange, part, arrived[m], false, shared->p[m], 0);
}

typedef void take_function(const struct shared *shared, struct sl_exchange *exchange, int part,
                           struct sl_tile *const *arrived);

/* ---- E, exact ---- */

/* Return whether a layer needs the rows of message `number`, which are of one hop. */
static bool is_needed(const struct shared *shared, const struct sl_vertex_cut *cut, int number)
{
    return !sl_matrix_tile(shared->rows, cut->hop[number % cut->hops].tile, 0)->idle;
}

/* Receive messages, peer by peer. */
static void receive(const struct shared *shared, const struct sl_vertex_cut *cut,
                    struct sl_exchange *exchange, bool sums, take_function *take)
{
    struct sl_tile *tile[SL_OUTPUTS];
    for (int part = 0; part < exchange->receives; part++) {
        struct sl_stage stage = {.tiles = tile, .sums = sums};
        if (!is_needed(shared, cut, exchange->receive[part].number))
            continue;
        for (int m = 0; m < shared->count; m++)
            stage.count += sl_exchange_stage(shared->rt, exchange, shared->p[m], 0, m, part,
                                             part + 1, &tile[m])
                               .count;
        sl_stage_ask(shared->rt, &stage, 0, NULL);
        take(shared, exchange, part, tile);
        sl_stage_drop(shared->rt, &stage);
    }
}

/* Send messages. All ranks make the buffers, even without messages to send. */
static void send(const struct shared *shared, const struct sl_vertex_cut *cut,
                 struct sl_exchange *exchange)
{
    for (int m = 0; m < shared->count; m++) {
        sl_exchange_outgoing(shared->rt, exchange, shared->p[m], 0, m);
        for (int part = 0; part < exchange->sends; part++)
            if (is_needed(shared, cut, exchange->send[part].number))
                sl_exchange_send_part(shared->rt, exchange, shared->p[m], 0, m, part);
    }
}

static void exchange_exactly(const struct shared *shared, struct sl_vertex_cut *cut)
{
    send(shared, cut, &cut->all.to_root);
    receive(shared, cut, &cut->all.to_root, true, merge_part);
    send(shared, cut, &cut->all.to_leaves);
    receive(shared, cut, &cut->all.to_leaves, false, copy_part);
}

/* ---- E, delayed ---- */

/* Take the late rows out of their buffers. Each aggregation of a step has its own place. Only sums
 * may be late, so there is one matrix. */
static void take_arrived(const struct shared *shared, struct sl_exchange *exchange, int place,
                         take_function *take)
{
    for (int part = 0; part < exchange->receives; part++) {
        struct sl_tile *tile =
            sl_exchange_arrived(shared->rt, exchange, shared->p[0], 0, place, part);
        take(shared, exchange, part, &tile);
    }
}

/* Exchange the step's bin late. No rows merge into rows that leaves send, and none replace rows
 * that roots send. So the order of the two directions does not matter. */
static void exchange_delayed(const struct shared *shared, struct sl_vertex_cut *cut,
                             const struct sl_walk_step *step)
{
    struct sl_cut_exchange *bin = &cut->bin[step->before % cut->delay]; /* line 9 */
    const int place = step->number;
    if (step->before >= cut->delay) /* lines 12 to 14 */
        take_arrived(shared, &bin->to_root, place, merge_part);
    sl_exchange_post(shared->rt, &bin->to_root, shared->p[0], 0, place); /* lines 10, 11 */
    if (step->before >= 2 * cut->delay)                                  /* lines 18 to 20 */
        take_arrived(shared, &bin->to_leaves, place, copy_part);
    if (step->before >= cut->delay) /* lines 15, 16 */
        sl_exchange_post(shared->rt, &bin->to_leaves, shared->p[0], 0, place);
}

/* Submit P = E(P). */
static void exchange(const struct shared *shared, struct sl_vertex_cut *cut,
                     const struct sl_walk_step *step)
{
    if (step->number < 0 || step->exact || cut->delay == SL_DELAY_EXACT)
        exchange_exactly(shared, cut);
    else if (cut->delay > 0)
        exchange_delayed(shared, cut, step);
}

/* ---- The walk ---- */

struct clones_at {
    struct sl_vertex_cut *cut;
    const struct sl_walk_step *step;
    int first; /* first row tile of this rank */
};

/* Exchange clones' states, which so far combine the own edges alone, and set the factors of rows.
 */
static void merge_clones(const void *context, struct sl_states *states)
{
    const struct clones_at *at = context;
    const struct sl_reduction *r = states->reduction;
    struct shared shared = {
        .rt = states->rt, .rows = r->out[0], .count = r->reducer->outputs, .states = states};
    for (int o = 0; o < shared.count; o++)
        shared.p[o] = sl_reduction_state(r, o);
    exchange(&shared, at->cut, at->step);
    struct sl_tile *factor = factors_at(states->rt, at->cut, at->step, at->first);
    for (int i = 0; factor && i < states->count; i++)
        states->state[i].factor = &factor[i];
}

/* Submit Y = diag(factor)·X on the row tiles `run`; `factor` NULL: Y = X. Tiles that are idle in X
 * become idle in Y. */
static void scale_rows(struct sl_runtime *rt, struct sl_tile_run run, struct sl_tile *factor,
                       const struct sl_matrix *x, const struct sl_matrix *y)
{
    struct sl_epilogue_tiles scale = SL_EPILOGUE_NONE;
    for (int i = 0; i < y->tile_rows; i++)
        sl_matrix_tile(y, i, 0)->idle = sl_matrix_tile(x, i, 0)->idle;
    for (int i = run.from; i < run.to; i++) {
        scale.factor = factor ? &factor[i - run.from] : NULL;
        sl_submit_epilogue(rt, factor ? &scale : NULL, sl_matrix_tile(x, i, 0),
                           sl_matrix_tile(y, i, 0));
    }
}

/* Return the share of rows that travel: 1, 1 / r or 0. Scaled gradients do not meet late. */
static double cut_share(const struct sl_distribution *d, bool transposed)
{
    const struct sl_vertex_cut *cut = d->own;
    if (cut->delay == SL_DELAY_EXACT)
        return 1.0;
    return cut->delay > 0 && !(transposed && cut->scaled) ? 1.0 / cut->delay : 0.0;
}

/* Walk back: add up the gradients of clones, whatever the reducer. Other moved matrices are already
 * equal in all clones. */
static void go_back(struct sl_runtime *rt, const struct sl_distribution *d,
                    const struct sl_walk_step *step, const struct sl_reduction *reduction)
{
    const struct sl_matrix *g = reduction->moved[0];
    const struct sl_matrix *totals = sl_partials_totals(d, g->cols);
    struct sl_reduction of_totals = *reduction;
    of_totals.moved[0] = totals;
    const struct sl_tile_run own = sl_grid_group(d, rt->rank);
    struct sl_vertex_cut *cut = d->own;
    scale_rows(rt, own, step->exact ? NULL : cut->factor, g, totals);
    if (step->exact || cut_share(d, true) > 0.0)
        exchange(&(struct shared){.rt = rt, .rows = totals, .count = 1, .p = {totals}}, cut, step);
    sl_block_walk(rt, d, &of_totals, NULL, NULL);
}

/* Walk once more: gradients are the last operands of rows. The walk back has added them up. */
static void go_again(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_reduction *reduction)
{
    struct sl_reduction of_totals = *reduction;
    const int last = reduction->reducer->row_operands - 1;
    of_totals.row[last] = sl_partials_totals(d, reduction->row[last]->cols);
    sl_block_walk(rt, d, &of_totals, NULL, NULL);
}

static void cut_walk(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_walk_step *step, const struct sl_reduction *reduction)
{
    if (rt->ranks == 1)
        sl_block_walk(rt, d, reduction, NULL, NULL);
    else if (step->way == SL_WALK_BACK)
        go_back(rt, d, step, reduction);
    else if (step->way == SL_WALK_AGAIN)
        go_again(rt, d, reduction);
    else
        sl_block_walk(rt, d, reduction, merge_clones,
                      &(struct clones_at){d->own, step, sl_grid_group(d, rt->rank).from});
}

/* ---- Memory ---- */

/* Return the rows and messages that a rank receives in one direction, for vertices at most `hops`
 * hops away. */
static struct sl_cut_flow flow_within(const struct sl_vertex_cut *cut,
                                      const struct sl_cut_flow *flow, int rank, int hops)
{
    struct sl_cut_flow all = {0};
    for (int h = 0; h < cut->hops && cut->hop[h].hop <= hops; h++) {
        all.rows += flow[rank * cut->hops + h].rows;
        all.messages += flow[rank * cut->hops + h].messages;
    }
    return all;
}

/* Return the rows of all bins that a rank receives in one direction, and the messages of one bin.
 */
static struct sl_cut_flow flow_of_bin(const struct sl_vertex_cut *cut,
                                      const struct sl_cut_flow *flow, int rank)
{
    const int bins = cut->delay > 0 ? cut->delay : 1;
    const struct sl_cut_flow all = flow_within(cut, flow, rank, INT_MAX);
    return (struct sl_cut_flow){all.rows, (all.messages + bins - 1) / bins};
}

/* Return the bytes that `m->messages` messages of equal size take. */
static int64_t taken(const struct sl_cut_flow *m, int64_t row)
{
    return m->messages > 0
               ? m->messages * (int64_t)sl_memory_taken((size_t)(m->rows / m->messages * row))
               : 0;
}

/* Return the bytes of all messages but as many as there are stages. */
static int64_t beyond(const struct sl_cut_flow *m, int stages, int64_t bytes)
{
    return m->messages > stages ? bytes - bytes * stages / m->messages : 0;
}

/* Return the peak bytes of messages. A rank asks for as many messages ahead as there are stages.
 * While leaves send to roots, messages of the previous aggregation to leaves may still be there.
 * While roots send to leaves, messages to roots that nobody asked for ahead are there. With a
 * delay, each aggregation whose rows travel keeps its messages, beside those of an exact exchange.
 */
static int64_t cut_received_bytes(const struct sl_runtime *rt, const struct sl_distribution *d,
                                  const struct sl_passage *now, const struct sl_passage *before)
{
    const struct sl_vertex_cut *cut = d->own;
    const struct sl_cut_flow to_root = flow_of_bin(cut, cut->to_root, rt->rank),
                             to_leaves = flow_of_bin(cut, cut->to_leaves, rt->rank),
                             both = {to_root.rows + to_leaves.rows,
                                     to_root.messages + to_leaves.messages};
    const int64_t goes_to_leaves = taken(&to_root, now->state),
                  goes_to_root =
                      taken(&to_leaves,
                            now->state); /* rows that a rank receives go back in equal number */
    const int64_t all = goes_to_leaves + goes_to_root;
    const int64_t when_to_root = goes_to_root + taken(&to_root, before->state),
                  when_to_leaves = goes_to_leaves + beyond(&to_leaves, rt->stages, goes_to_root);
    const bool late = cut->delay > 0 && before->row > 0;
    return (when_to_root > when_to_leaves ? when_to_root : when_to_leaves) + all -
           beyond(&both, rt->stages, all) + (late ? (int64_t)(now->aggregations * (double)all) : 0);
}

/* ---- Counts ---- */

/* Count a walk. All tiles of a rank are its own. States travel to root and to leaves, after all own
 * entries or, going back, before them. Either way they are rows of a layer's output, the fewer of
 * the walk's two. Late states replace older ones, and nothing waits for them. */
static int cut_count(const struct sl_distribution *d, const struct sl_tile_counts *counts,
                     const struct sl_counted_walk *walk, struct sl_walk_counts *rank)
{
    const struct sl_vertex_cut *cut = d->own;
    const int hops = walk->from < walk->to ? walk->from : walk->to;
    const int code = sl_block_count(d, counts, walk, rank);
    for (int r = 0; !code && r < d->ranks; r++) {
        const struct sl_tile_run own = sl_grid_group(d, r);
        rank[r].table = (double)(d->row_cut[own.to] - d->row_cut[own.from]);
        rank[r].own_last = 0;
        if (d->ranks == 1)
            continue;
        if (cut->delay == SL_DELAY_EXACT)
            rank[r].others = rank[r].own, rank[r].own = (struct sl_met){0};
        const struct sl_cut_flow to_root = flow_within(cut, cut->to_root, r, hops),
                                 to_leaves = flow_within(cut, cut->to_leaves, r, hops);
        struct sl_flow *sums = cut->delay == SL_DELAY_EXACT ? &rank[r].merged : &rank[r].replaced;
        sums->rows += (double)to_root.rows;
        sums->messages += (double)to_root.messages;
        rank[r].replaced.rows += (double)to_leaves.rows;
        rank[r].replaced.messages += (double)to_leaves.messages;
        rank[r].packed = 2.0 * (double)(to_root.rows + to_leaves.rows);
    }
    return code;
}

/* ---- The kind ---- */

struct sl_vertex_cut *sl_vertex_cut_of(const struct sl_distribution *d)
{
    return d->kind == &sl_distribution_vertex_cut ? d->own : NULL;
}

static bool cut_is_exact(const struct sl_distribution *d)
{
    return ((const struct sl_vertex_cut *)d->own)->delay == SL_DELAY_EXACT;
}

static void cut_describe(const struct sl_distribution *d, char text[32])
{
    const struct sl_vertex_cut *cut = d->own;
    if (cut->delay > 0)
        snprintf(text, 32, "vertex-cut cd-%d", cut->delay);
    else
        snprintf(text, 32, cut->delay == SL_DELAY_EXACT ? "vertex-cut" : "vertex-cut 0c");
}

static int cut_create(struct sl_distribution *d)
{
    d->own = calloc(1, sizeof(struct sl_vertex_cut));
    return d->own ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a vertex-cut");
}

static void cut_destroy(struct sl_distribution *d)
{
    if (d->own)
        sl_vertex_cut_destroy(d->own);
    free(d->own);
    d->own = NULL;
}

const struct sl_distribution_kind sl_distribution_vertex_cut = {
    .name = "vertex-cut",
    .clones = true,
    .describe = cut_describe,
    .exact = cut_is_exact,
    .share = cut_share,
    .whole_owner = sl_grid_whole_owner,
    .dense_owner = sl_grid_dense_owner,
    .sparse_owner = sl_grid_sparse_owner,
    .span = sl_grid_span,
    .walk = cut_walk,
    .received_bytes = cut_received_bytes,
    .keeps = sl_grid_keeps,
    .count = cut_count,
    .create_adjacency = sl_block_create_adjacency,
    .create = cut_create,
    .destroy = cut_destroy,
};
