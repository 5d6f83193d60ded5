#include "graphs/vertex_cut.h"

#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "core/memory.h"
#include "graphs/distribution.h"

/* ---- Lists ---- */

/* Several messages from one rank to another, of which the first ones travel while the sums of the
 * others' rows are made; none much smaller than a tile of a small graph. */
enum { MOST_MESSAGES = 4, LEAST_ROWS = 512 };

int sl_vertex_cut_messages(const struct sl_vertex_cut *cut, int ranks, int64_t rows, bool bin)
{
    static const int64_t MOST_BYTES = 1 << 30; /* MPI counts are int */
    const int64_t most = bin         ? 1
                         : ranks > 2 ? MOST_MESSAGES / 2
                                     : MOST_MESSAGES,
                  full = (rows + LEAST_ROWS - 1) / LEAST_ROWS, wanted = full < most ? full : most,
                  fit = MOST_BYTES / cut->row_bytes, rows_of_one = fit > 0 ? fit : 1,
                  needed = (rows + rows_of_one - 1) / rows_of_one;
    return (int)(wanted > needed ? wanted : needed);
}

/* The lists of the copies in `bin`, or, if it is -1, of all: the first one for each peer, then the
 * second ones, … */
struct lists {
    struct sl_exchange_list *list; // (count)
    int64_t *rows;
    int count, most; /* all, and of one peer */
};

struct copies {
    const struct sl_vertex_cut *cut;
    int ranks, first; /* the first row tile here */
    const int64_t *row_cut;
    int64_t leaves, roots;
    const struct sl_copy *leaf, *root;
};

/* The copies of one peer, in the same order on both sides. */
struct run {
    int peer;
    const int64_t *rows; // (count)
    int64_t count;
};

static int list_runs(int64_t copies, const struct sl_copy *copy, int bin, int64_t *rows,
                     struct run *run)
{
    int runs = 0;
    for (int64_t k = 0; k < copies; k++) {
        if (bin >= 0 && copy[k].bin != bin)
            continue;
        if (!runs || run[runs - 1].peer != copy[k].peer)
            run[runs++] = (struct run){.peer = copy[k].peer, .rows = rows};
        run[runs - 1].count++;
        *rows++ = copy[k].row;
    }
    return runs;
}

static int tile_of(const int64_t *row_cut, int first, int64_t row)
{
    while (row >= row_cut[first + 1])
        first++;
    return first;
}

/* Message `number` of `count`. */
static struct sl_exchange_list cut_run(const struct run *run, int number, int count,
                                       const int64_t *row_cut, int first)
{
    const int64_t from = run->count * number / count, to = run->count * (number + 1) / count;
    return (struct sl_exchange_list){
        .peer = run->peer,
        .number = number,
        .from = tile_of(row_cut, first, run->rows[from]),
        .to = tile_of(row_cut, first, run->rows[to - 1]) + 1,
        .rows = run->rows + from,
        .count = to - from,
    };
}

/* The most messages to one peer, and those to all of them. */
static int count_messages(const struct copies *c, int runs, const struct run *run, int bin,
                          int *most)
{
    int all = 0;
    *most = 0;
    for (int r = 0; r < runs; r++) {
        const int count = sl_vertex_cut_messages(c->cut, c->ranks, run[r].count, bin >= 0);
        *most = count > *most ? count : *most;
        all += count;
    }
    return all;
}

static int list_copies(const struct copies *c, int64_t copies, const struct sl_copy *copy, int bin,
                       struct lists *out)
{
    struct run *run = calloc((size_t)c->ranks, sizeof *run);
    int runs = 0, most = 0;
    *out = (struct lists){.rows = malloc((size_t)(copies + 1) * sizeof *out->rows)};
    if (run && out->rows) {
        runs = list_runs(copies, copy, bin, out->rows, run);
        const int all = count_messages(c, runs, run, bin, &most);
        out->list = calloc((size_t)all + 1, sizeof *out->list);
    }
    for (int number = 0; out->list && number < most; number++)
        for (int r = 0; r < runs; r++) {
            const int count = sl_vertex_cut_messages(c->cut, c->ranks, run[r].count, bin >= 0);
            if (number < count)
                out->list[out->count++] = cut_run(&run[r], number, count, c->row_cut, c->first);
        }
    free(run);
    out->most = most;
    return out->list
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for a list of %lld copies", (long long)copies);
}

static void free_lists(struct lists *lists)
{
    free(lists->list);
    free(lists->rows);
}

/* Tags follow from the most messages between two ranks, of all ranks. */
static int create_split(struct sl_runtime *rt, const struct copies *c, int bin,
                        struct sl_cut_exchange *split)
{
    struct lists leaf = {0}, root = {0};
    int code = list_copies(c, c->leaves, c->leaf, bin, &leaf);
    if (!code)
        code = list_copies(c, c->roots, c->root, bin, &root);
    const int numbers = (int)-sl_runtime_least(rt, leaf.most > root.most ? -leaf.most : -root.most);
    if (!code)
        code = sl_exchange_create(&split->up, rt, numbers, c->row_cut, leaf.count, leaf.list,
                                  root.count, root.list);
    if (!code)
        code = sl_exchange_create(&split->down, rt, numbers, c->row_cut, root.count, root.list,
                                  leaf.count, leaf.list);
    free_lists(&leaf);
    free_lists(&root);
    return code;
}

int sl_vertex_cut_allocate(struct sl_vertex_cut *cut, int delay, int ranks, int64_t row_bytes)
{
    int64_t **counts[] = {&cut->up, &cut->down, &cut->up_messages, &cut->down_messages};
    bool room = true;
    *cut = (struct sl_vertex_cut){.delay = delay, .row_bytes = row_bytes};
    for (int c = 0; c < 4; c++) {
        *counts[c] = calloc((size_t)ranks, sizeof **counts[c]);
        room = room && *counts[c];
    }
    return room ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %d ranks", ranks);
}

double sl_vertex_cut_share(const struct sl_vertex_cut *cut)
{
    return cut->delay == SL_DELAY_EXACT ? 1.0 : cut->delay > 0 ? 1.0 / cut->delay : 0.0;
}

static void share_counts(struct sl_runtime *rt, struct sl_vertex_cut *cut)
{
    int64_t up = cut->delay > 0 ? 0 : cut->all.up.receives,
            down = cut->delay > 0 ? 0 : cut->all.down.receives;
    for (int b = 0; b < cut->delay; b++) {
        up += cut->bin[b].up.receives;
        down += cut->bin[b].down.receives;
    }
    sl_runtime_gather(rt, sl_exchange_rows_received(&cut->all.up), cut->up);
    sl_runtime_gather(rt, sl_exchange_rows_received(&cut->all.down), cut->down);
    sl_runtime_gather(rt, up, cut->up_messages);
    sl_runtime_gather(rt, down, cut->down_messages);
}

int sl_vertex_cut_create(struct sl_vertex_cut *cut, struct sl_runtime *rt,
                         const struct sl_copies_cut *made)
{
    const struct copies copies = {
        .cut = cut,
        .ranks = rt->ranks,
        .first = made->rank_cut[rt->rank],
        .row_cut = made->row_cut,
        .leaves = made->leaves,
        .roots = made->roots,
        .leaf = made->leaf,
        .root = made->root,
    };
    const int delay = made->delay;
    int code = sl_vertex_cut_allocate(cut, delay, rt->ranks, made->row_bytes);
    cut->fingerprint = made->fingerprint;
    if (!code && delay > 0) {
        cut->bin = calloc((size_t)delay, sizeof *cut->bin);
        if (!cut->bin)
            code = sl_error(SL_ERR_SYSTEM, "no memory for %d bins of vertices", delay);
    }
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = sl_runtime_agree(rt, create_split(rt, &copies, -1, &cut->all));
    for (int b = 0; !code && b < delay; b++)
        code = sl_runtime_agree(rt, create_split(rt, &copies, b, &cut->bin[b]));
    if (!code)
        share_counts(rt, cut);
    return code;
}

static void destroy_split(struct sl_cut_exchange *split)
{
    sl_exchange_destroy(&split->up);
    sl_exchange_destroy(&split->down);
}

void sl_vertex_cut_destroy(struct sl_vertex_cut *cut)
{
    destroy_split(&cut->all);
    for (int b = 0; cut->bin && b < cut->delay; b++)
        destroy_split(&cut->bin[b]);
    free(cut->bin);
    free(cut->up);
    free(cut->down);
    free(cut->up_messages);
    free(cut->down_messages);
    *cut = (struct sl_vertex_cut){0};
}

/* ---- E, exact ---- */

/* What comes, peer by peer. */
static void receive(struct sl_runtime *rt, struct sl_exchange *exchange, bool accumulate,
                    const struct sl_matrix *p)
{
    for (int part = 0; part < exchange->receives; part++) {
        struct sl_tile *tile;
        struct sl_stage stage = sl_exchange_stage(rt, exchange, p, 0, 0, part, part + 1, &tile);
        stage.sums = accumulate;
        sl_stage_ask(rt, &stage, 0, NULL);
        sl_exchange_unpack(rt, exchange, part, tile, accumulate, p, 0);
        sl_stage_drop(rt, &stage);
    }
}

static void exchange_exactly(struct sl_runtime *rt, struct sl_cut_exchange *split,
                             const struct sl_matrix *p)
{
    sl_exchange_send(rt, &split->up, p, 0, 0);
    receive(rt, &split->up, true, p);
    sl_exchange_send(rt, &split->down, p, 0, 0);
    receive(rt, &split->down, false, p);
}

/* ---- E, delayed ---- */

static void unpack_arrived(struct sl_runtime *rt, struct sl_exchange *exchange, int place,
                           bool accumulate, const struct sl_matrix *p)
{
    for (int part = 0; part < exchange->receives; part++)
        sl_exchange_unpack(rt, exchange, part, sl_exchange_arrived(rt, exchange, p, 0, place, part),
                           accumulate, p, 0);
}

/* What arrived is taken out of its place before the next message goes there. Rows that are sent up
 * are none that something is added to, and rows that are sent down none that are replaced. */
static void exchange_delayed(struct sl_runtime *rt, struct sl_vertex_cut *cut,
                             const struct sl_moment *moment, const struct sl_matrix *p)
{
    const int place = moment->number;
    struct sl_cut_exchange *bin = &cut->bin[moment->step % cut->delay];
    if (moment->step >= cut->delay)
        unpack_arrived(rt, &bin->up, place, true, p);
    sl_exchange_post(rt, &bin->up, p, 0, place);
    if (moment->step >= 2 * cut->delay)
        unpack_arrived(rt, &bin->down, place, false, p);
    if (moment->step >= cut->delay)
        sl_exchange_post(rt, &bin->down, p, 0, place);
}

/* P = E(P). */
static void exchange(struct sl_runtime *rt, struct sl_vertex_cut *cut,
                     const struct sl_moment *moment, const struct sl_matrix *p)
{
    if (moment->number < 0 || cut->delay == SL_DELAY_EXACT)
        exchange_exactly(rt, &cut->all, p);
    else if (cut->delay > 0)
        exchange_delayed(rt, cut, moment, p);
}

/* ---- The products ---- */

static void go_back(struct sl_runtime *rt, const struct sl_distribution *d,
                    const struct sl_moment *moment, const struct sl_sparse_matrix *a,
                    const struct sl_matrix *g, const struct sl_row_epilogue *epilogue,
                    const struct sl_matrix *z)
{
    const struct sl_matrix *totals = sl_partials_totals(d, g->cols);
    for (int i = 0; i < g->tile_rows; i++)
        sl_submit_epilogue(rt, NULL, sl_matrix_tile(g, i, 0), sl_matrix_tile(totals, i, 0));
    exchange(rt, d->cut, moment, totals);
    sl_distribution_block.aggregate(rt, d, moment, a, totals, epilogue, NULL, z);
}

static void go_forward(struct sl_runtime *rt, const struct sl_distribution *d,
                       const struct sl_moment *moment, const struct sl_sparse_matrix *a,
                       const struct sl_matrix *h, const struct sl_row_epilogue *epilogue,
                       const struct sl_matrix *sum, const struct sl_matrix *z)
{
    const struct sl_matrix *p = sum ? sum : z;
    sl_distribution_block.aggregate(rt, d, moment, a, h, NULL, NULL, p);
    exchange(rt, d->cut, moment, p);
    for (int i = 0; (epilogue || sum) && i < z->tile_rows; i++) {
        const struct sl_epilogue_tiles own =
            epilogue ? sl_row_epilogue_at(epilogue, i, z, 0) : SL_EPILOGUE_NONE;
        sl_submit_epilogue(rt, epilogue ? &own : NULL, sl_matrix_tile(p, i, 0),
                           sl_matrix_tile(z, i, 0));
    }
}

static void cut_aggregate(struct sl_runtime *rt, const struct sl_distribution *d,
                          const struct sl_moment *moment, const struct sl_sparse_matrix *a,
                          const struct sl_matrix *h, const struct sl_row_epilogue *epilogue,
                          const struct sl_matrix *sum, const struct sl_matrix *z)
{
    if (rt->ranks == 1)
        sl_distribution_block.aggregate(rt, d, moment, a, h, epilogue, sum, z);
    else if (moment->back)
        go_back(rt, d, moment, a, h, epilogue, z);
    else
        go_forward(rt, d, moment, a, h, epilogue, sum, z);
}

/* ---- Memory ---- */

/* Rows in messages of equal size. */
struct messages {
    int64_t rows, count;
};

static int64_t taken(const struct messages *m, int64_t row)
{
    return m->count > 0 ? m->count * (int64_t)sl_memory_taken((size_t)(m->rows / m->count * row))
                        : 0;
}

/* All but as many as there are stages. */
static int64_t beyond(const struct messages *m, int stages, int64_t bytes)
{
    return m->count > stages ? bytes - bytes * stages / m->count : 0;
}

/* Messages that come are asked for ahead, as many as there are stages, and so those that go are
 * soon on their way: while rows go up, those of the aggregation before still go down, and while
 * they go down, those up that were not asked for ahead. With a delay, messages of each aggregation
 * stay, beside those of an exact one. */
static int64_t cut_received_bytes(const struct sl_runtime *rt, const struct sl_distribution *d,
                                  const struct sl_passage *now, const struct sl_passage *before)
{
    const struct sl_vertex_cut *cut = d->cut;
    const int bins = cut->delay > 0 ? cut->delay : 1;
    const struct messages up = {cut->up[rt->rank], (cut->up_messages[rt->rank] + bins - 1) / bins},
                          down = {cut->down[rt->rank],
                                  (cut->down_messages[rt->rank] + bins - 1) / bins},
                          both = {up.rows + down.rows, up.count + down.count};
    const int64_t goes_down = taken(&up, now->row), goes_up = taken(&down, now->row); /* again */
    const int64_t all = goes_down + goes_up;
    const int64_t when_up = goes_up + taken(&up, before->row),
                  when_down = goes_down + beyond(&down, rt->stages, goes_up);
    const bool late = cut->delay > 0 && before->row > 0;
    return (when_up > when_down ? when_up : when_down) + all - beyond(&both, rt->stages, all) +
           (late ? (int64_t)(cut->aggregations * (double)all) : 0);
}

static int cut_visits(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    (void)rt;
    (void)d;
    return 1;
}

const struct sl_distribution_kind sl_distribution_vertex_cut = {
    .whole_owner = sl_grid_whole_owner,
    .dense_owner = sl_grid_dense_owner,
    .sparse_owner = sl_grid_sparse_owner,
    .span = sl_grid_span,
    .aggregate = cut_aggregate,
    .received_bytes = cut_received_bytes,
    .keeps = sl_grid_keeps,
    .visits = cut_visits,
};
