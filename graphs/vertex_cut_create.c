/* The lists and messages of a vertex-cut's clones, and the factors of their partial sums. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/vertex_cut.h"

/* ---- Lists ---- */

/* Most messages from one rank to another, and least rows of a message. The first messages travel
 * while rows of the other messages are still summed. No message is much smaller than a tile of a
 * small graph. */
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

/* The lists of the clones in `bin`, or of all clones if `bin` is -1. The first list of each run
 * comes first, then the second list of each run, … */
struct lists {
    struct sl_exchange_list *list; // (count)
    int64_t *rows;
    int count, most; /* lists in all; most lists of one run */
};

struct clones {
    const struct sl_vertex_cut *cut;
    int ranks, first; /* ranks; first row tile of this rank */
    const int64_t *row_cut;
    int64_t leaves, roots;
    const struct sl_clone *leaf, *root;
};

/* The clones of one peer and hop, in the same order on both sides. */
struct run {
    int peer, hop;       /* number `hop` among the hops that are told apart */
    const int64_t *rows; // (count)
    int64_t count;
};

int sl_vertex_cut_find_hop(const struct sl_vertex_cut *cut, int hop)
{
    int number = 0;
    while (number + 1 < cut->hops && cut->hop[number + 1].hop <= hop)
        number++;
    return number;
}

static int list_runs(const struct sl_vertex_cut *cut, int64_t clones, const struct sl_clone *clone,
                     int bin, int64_t *rows, struct run *run)
{
    int runs = 0;
    for (int64_t k = 0; k < clones; k++) {
        const int hop = sl_vertex_cut_find_hop(cut, clone[k].hop);
        if (bin >= 0 && clone[k].bin != bin)
            continue;
        if (!runs || run[runs - 1].peer != clone[k].peer || run[runs - 1].hop != hop)
            run[runs++] = (struct run){.peer = clone[k].peer, .hop = hop, .rows = rows};
        run[runs - 1].count++;
        *rows++ = clone[k].row;
    }
    return runs;
}

static int tile_of(const int64_t *row_cut, int first, int64_t row)
{
    while (row >= row_cut[first + 1])
        first++;
    return first;
}

/* Return message `number` of a run's `count` messages. Its number in the exchange tells its hop. */
static struct sl_exchange_list cut_run(const struct run *run, int number, int count, int hops,
                                       const int64_t *row_cut, int first)
{
    const int64_t from = run->count * number / count, to = run->count * (number + 1) / count;
    return (struct sl_exchange_list){
        .peer = run->peer,
        .number = number * hops + run->hop,
        .from = tile_of(row_cut, first, run->rows[from]),
        .to = tile_of(row_cut, first, run->rows[to - 1]) + 1,
        .rows = run->rows + from,
        .count = to - from,
    };
}

/* Return the number of messages to all peers. Set `most` to the most messages of one run. */
static int count_messages(const struct clones *c, int runs, const struct run *run, int bin,
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

static int list_clones(const struct clones *c, int64_t clones, const struct sl_clone *clone,
                       int bin, struct lists *out)
{
    struct run *run = calloc((size_t)(c->ranks * c->cut->hops), sizeof *run);
    int runs = 0, most = 0;
    *out = (struct lists){.rows = malloc((size_t)(clones + 1) * sizeof *out->rows)};
    if (run && out->rows) {
        runs = list_runs(c->cut, clones, clone, bin, out->rows, run);
        const int all = count_messages(c, runs, run, bin, &most);
        out->list = calloc((size_t)all + 1, sizeof *out->list);
    }
    for (int number = 0; out->list && number < most; number++)
        for (int r = 0; r < runs; r++) {
            const int count = sl_vertex_cut_messages(c->cut, c->ranks, run[r].count, bin >= 0);
            if (number < count)
                out->list[out->count++] =
                    cut_run(&run[r], number, count, c->cut->hops, c->row_cut, c->first);
        }
    free(run);
    out->most = most;
    return out->list
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for a list of %lld clones", (long long)clones);
}

static void free_lists(struct lists *lists)
{
    free(lists->list);
    free(lists->rows);
}

/* Make the exchanges of a bin. Tags follow from the most messages between any two ranks. */
static int create_split(struct sl_runtime *rt, const struct clones *c, int bin,
                        struct sl_cut_exchange *split)
{
    struct lists leaf = {0}, root = {0};
    int code = list_clones(c, c->leaves, c->leaf, bin, &leaf);
    if (!code)
        code = list_clones(c, c->roots, c->root, bin, &root);
    const int most = (int)-sl_runtime_least(rt, leaf.most > root.most ? -leaf.most : -root.most),
              numbers = most * c->cut->hops;
    if (!code)
        code = sl_exchange_create(&split->to_root, rt, numbers, c->row_cut, leaf.count, leaf.list,
                                  root.count, root.list);
    if (!code)
        code = sl_exchange_create(&split->to_leaves, rt, numbers, c->row_cut, root.count, root.list,
                                  leaf.count, leaf.list);
    free_lists(&leaf);
    free_lists(&root);
    return code;
}

/* List the hops of tiles, each once. The first tile has hop 0. */
static int list_hops(struct sl_vertex_cut *cut, int tiles, const int *hop)
{
    cut->hop = calloc((size_t)tiles + 1, sizeof *cut->hop);
    cut->hops = 1;
    if (!cut->hop)
        return sl_error(SL_ERR_SYSTEM, "no memory for the hops of %d tiles", tiles);
    for (int t = 0; hop && t < tiles; t++) {
        int at = sl_vertex_cut_find_hop(cut, hop[t]);
        if (cut->hop[at++].hop == hop[t])
            continue;
        memmove(cut->hop + at + 1, cut->hop + at, (size_t)(cut->hops++ - at) * sizeof *cut->hop);
        cut->hop[at] = (struct sl_cut_hop){hop[t], t};
    }
    return 0;
}

int sl_vertex_cut_allocate(struct sl_vertex_cut *cut, int delay, bool scaled, int ranks,
                           int64_t row_bytes, int tiles, const int *hop)
{
    *cut = (struct sl_vertex_cut){.delay = delay, .scaled = scaled, .row_bytes = row_bytes};
    const int code = list_hops(cut, tiles, hop);
    const size_t count = (size_t)ranks * (size_t)cut->hops;
    cut->to_root = calloc(count, sizeof *cut->to_root);
    cut->to_leaves = calloc(count, sizeof *cut->to_leaves);
    return code ? code
           : cut->to_root && cut->to_leaves
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %d ranks", ranks);
}

/* Add this rank's received rows and messages, by hop. */
static void count_received(const struct sl_exchange *x, int hops, struct sl_cut_flow *flow)
{
    for (int p = 0; p < x->receives; p++) {
        flow[x->receive[p].number % hops].rows += x->receive[p].rows;
        flow[x->receive[p].number % hops].messages++;
    }
}

static void share_counts(struct sl_runtime *rt, struct sl_vertex_cut *cut)
{
    const int bins = cut->delay > 0 ? cut->delay : 1, first = rt->rank * cut->hops;
    for (int b = 0; b < bins; b++) {
        const struct sl_cut_exchange *split = cut->delay > 0 ? &cut->bin[b] : &cut->all;
        count_received(&split->to_root, cut->hops, &cut->to_root[first]);
        count_received(&split->to_leaves, cut->hops, &cut->to_leaves[first]);
    }
    sl_runtime_sum(rt, &cut->to_root->rows, 2 * (int64_t)rt->ranks * cut->hops);
    sl_runtime_sum(rt, &cut->to_leaves->rows, 2 * (int64_t)rt->ranks * cut->hops);
}

/* ---- Factors of partial sums ---- */

static int create_column(const struct sl_runtime *rt, int64_t rows, struct sl_tile *column)
{
    return sl_tile_create_own(column, rows, 1, sizeof(float), rt->rank);
}

static int64_t most_rows(const struct sl_exchange *x, int64_t most)
{
    for (int p = 0; p < x->receives; p++)
        most = x->receive[p].rows > most ? x->receive[p].rows : most;
    return most;
}

/* Make the factors, after the bins' exchanges. */
static int create_factors(struct sl_vertex_cut *cut, struct sl_runtime *rt,
                          const struct sl_clone_lists *made)
{
    const int first = made->rank_cut[rt->rank], tiles = made->rank_cut[rt->rank + 1] - first;
    const int64_t *row_cut = made->row_cut + first;
    int64_t most = 0;
    int code = 0;
    cut->factor = calloc((size_t)tiles + 1, sizeof *cut->factor);
    cut->step_factor = calloc((size_t)tiles + 1, sizeof *cut->step_factor);
    if (!cut->factor || !cut->step_factor)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d small tiles", tiles);
    cut->own_tiles = tiles;
    for (int t = 0; !code && t < tiles; t++) {
        const int64_t rows = row_cut[t + 1] - row_cut[t];
        code = create_column(rt, rows, &cut->factor[t]);
        if (!code)
            memcpy(cut->factor[t].memory, made->factor + row_cut[t] - row_cut[0],
                   (size_t)rows * sizeof(float));
        if (!code && cut->delay > 0)
            code = create_column(rt, rows, &cut->step_factor[t]);
    }
    for (int b = 0; b < cut->delay; b++)
        most = most_rows(&cut->bin[b].to_leaves, most_rows(&cut->bin[b].to_root, most));
    if (!code)
        code = create_column(rt, most, &cut->ones);
    for (int64_t r = 0; !code && r < most; r++)
        ((float *)cut->ones.memory)[r] = 1.0f;
    return code;
}

static void destroy_factors(struct sl_vertex_cut *cut)
{
    for (int t = 0; t < cut->own_tiles; t++) {
        sl_tile_destroy(&cut->factor[t]);
        sl_tile_destroy(&cut->step_factor[t]);
    }
    sl_tile_destroy(&cut->ones);
    free(cut->factor);
    free(cut->step_factor);
}

int sl_vertex_cut_create(struct sl_vertex_cut *cut, struct sl_runtime *rt,
                         const struct sl_clone_lists *made)
{
    const struct clones clones = {
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
    int code = sl_vertex_cut_allocate(cut, delay, made->factor, rt->ranks, made->row_bytes,
                                      made->tiles, made->hop);
    cut->fingerprint = made->fingerprint;
    if (!code && delay > 0) {
        cut->bin = calloc((size_t)delay, sizeof *cut->bin);
        if (!cut->bin)
            code = sl_error(SL_ERR_SYSTEM, "no memory for %d bins of vertices", delay);
    }
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = sl_runtime_agree(rt, create_split(rt, &clones, -1, &cut->all));
    for (int b = 0; !code && b < delay; b++)
        code = sl_runtime_agree(rt, create_split(rt, &clones, b, &cut->bin[b]));
    if (!code && made->factor)
        code = sl_runtime_agree(rt, create_factors(cut, rt, made));
    if (!code)
        share_counts(rt, cut);
    return code;
}

static void destroy_split(struct sl_cut_exchange *split)
{
    sl_exchange_destroy(&split->to_root);
    sl_exchange_destroy(&split->to_leaves);
}

void sl_vertex_cut_destroy(struct sl_vertex_cut *cut)
{
    destroy_split(&cut->all);
    for (int b = 0; cut->bin && b < cut->delay; b++)
        destroy_split(&cut->bin[b]);
    free(cut->bin);
    free(cut->hop);
    destroy_factors(cut);
    free(cut->to_root);
    free(cut->to_leaves);
    *cut = (struct sl_vertex_cut){0};
}
