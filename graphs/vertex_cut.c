#include "graphs/vertex_cut.h"

#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "graphs/distribution.h"

/* ---- Lists ---- */

/* The lists of the copies in `bin`, or, if it is -1, of all, one for each peer. */
struct lists {
    struct sl_exchange_list *list; // (ranks)
    int64_t *rows;
    int count;
};

static int list_copies(const struct sl_runtime *rt, const int *rank_cut, int64_t copies,
                       const struct sl_copy *copy, int bin, struct lists *out)
{
    *out = (struct lists){.list = calloc((size_t)rt->ranks, sizeof *out->list),
                          .rows = malloc((size_t)(copies + 1) * sizeof *out->rows)};
    if (!out->list || !out->rows)
        return sl_error(SL_ERR_SYSTEM, "no memory for a list of %lld copies", (long long)copies);
    int64_t listed = 0;
    for (int64_t k = 0; k < copies; k++) {
        if (bin >= 0 && copy[k].bin != bin)
            continue;
        if (!out->count || out->list[out->count - 1].peer != copy[k].peer)
            out->list[out->count++] = (struct sl_exchange_list){
                .peer = copy[k].peer,
                .from = rank_cut[rt->rank],
                .to = rank_cut[rt->rank + 1],
                .rows = out->rows + listed,
            };
        out->list[out->count - 1].count++;
        out->rows[listed++] = copy[k].row;
    }
    return 0;
}

static void free_lists(struct lists *lists)
{
    free(lists->list);
    free(lists->rows);
}

struct copies {
    const int64_t *row_cut;
    const int *rank_cut;
    int64_t leaves, roots;
    const struct sl_copy *leaf, *root;
};

static int create_split(const struct sl_runtime *rt, const struct copies *c, int bin,
                        struct sl_cut_exchange *split)
{
    struct lists leaf = {0}, root = {0};
    int code = list_copies(rt, c->rank_cut, c->leaves, c->leaf, bin, &leaf);
    if (!code)
        code = list_copies(rt, c->rank_cut, c->roots, c->root, bin, &root);
    if (!code)
        code = sl_exchange_create(&split->up, rt, 1, c->row_cut, leaf.count, leaf.list, root.count,
                                  root.list);
    if (!code)
        code = sl_exchange_create(&split->down, rt, 1, c->row_cut, root.count, root.list,
                                  leaf.count, leaf.list);
    free_lists(&leaf);
    free_lists(&root);
    return code;
}

int sl_vertex_cut_create(struct sl_vertex_cut *cut, const struct sl_runtime *rt, int delay,
                         const int64_t *row_cut, const int *rank_cut, int64_t leaves,
                         const struct sl_copy *leaf, int64_t roots, const struct sl_copy *root)
{
    const struct copies copies = {row_cut, rank_cut, leaves, roots, leaf, root};
    *cut = (struct sl_vertex_cut){.delay = delay};
    int code = create_split(rt, &copies, -1, &cut->all);
    if (!code && delay > 0) {
        cut->bin = calloc((size_t)delay, sizeof *cut->bin);
        if (!cut->bin)
            code = sl_error(SL_ERR_SYSTEM, "no memory for %d bins of vertices", delay);
    }
    for (int b = 0; !code && b < delay; b++)
        code = create_split(rt, &copies, b, &cut->bin[b]);
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
    *cut = (struct sl_vertex_cut){0};
}

/* ---- E, exact ---- */

/* What comes, peer by peer. */
static void receive(struct sl_runtime *rt, struct sl_exchange *exchange, bool accumulate,
                    const struct sl_matrix *p)
{
    for (int part = 0; part < exchange->receives; part++) {
        struct sl_tile *tile;
        struct sl_stage stage = sl_exchange_stage(rt, exchange, p, 0, part, part + 1, &tile);
        stage.sums = accumulate;
        sl_stage_ask(rt, &stage, 0, NULL);
        sl_exchange_unpack(rt, exchange, part, tile, accumulate, p, 0);
        sl_stage_drop(rt, &stage);
    }
}

static void exchange_exactly(struct sl_runtime *rt, struct sl_cut_exchange *split,
                             const struct sl_matrix *p)
{
    sl_exchange_send(rt, &split->up, p, 0);
    receive(rt, &split->up, true, p);
    sl_exchange_send(rt, &split->down, p, 0);
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

static int64_t rows_of(const struct sl_cut_exchange *split)
{
    return sl_exchange_rows_received(&split->up) + sl_exchange_rows_received(&split->down);
}

/* What comes, and is packed elsewhere. With a delay, messages of each aggregation stay. */
static int64_t cut_received_bytes(const struct sl_runtime *rt, const struct sl_distribution *d,
                                  int64_t row)
{
    (void)rt;
    const int64_t all = rows_of(&d->cut->all);
    const double places = d->cut->delay > 0 ? 1.0 + d->cut->aggregations : 1.0;
    return (int64_t)(places * (double)all) * row;
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
