/* clang-format off */
/* Halo: rows are cut among the ranks as in 1D, best where few edges cross (METIS). Each rank
 * receives only the rows of H that its edges touch. N(r, q) are the rows of rank q for which rows
 * of rank r have entries. Rank r
 *
 *     sends      H(N(p, r), :) to every rank p with such rows, as soon as they are there
 *     computes   Z(i) = S(i, own)·H(own)      for its row tiles i, while rows travel
 *                Z(i) += Σ S(i, N)·H(N)       for each stage of messages, round from the next rank
 *                Z(i) = epilogue(Z(i))        with the last term
 *
 * A message has the needed rows of a run of the sender's row tiles. A rank sends another rank one
 * message, or several where ranks are few or rows have hops. Idle tiles (graphs/reach.h) do not
 * travel. A rank works on its messages in at most SL_HALO_STAGES
 * stages. Columns of S are numbered to meet the buffer of a message as it is. The cut alone decides
 * the order of the sums. So they are bitwise the same in every run on as many ranks, and equal to
 * other numbers of ranks and other distributions up to rounding. */
/* clang-format on */
#include "graphs/halo.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/sparse.h"
#include "graphs/distribution.h"

/* ---- Owners ---- */

/* Return the first joined tile. All own column tiles are joined: own tiles of H are neighbours in
 * memory. */
static int halo_span(const struct sl_distribution *d, int i, int k)
{
    const int rank = sl_grid_whole_owner(d, k);
    return sl_grid_whole_owner(d, i) == rank ? d->rank_cut[rank] : k;
}

static int halo_sparse_owner(const struct sl_distribution *d, int i, int k)
{
    (void)k;
    return sl_grid_whole_owner(d, i);
}

/* Return the halos of the adjacency and of its transpose, which may be the same matrix. */
static struct sl_halo *halos_of(const struct sl_distribution *d)
{
    return d->own;
}

static struct sl_halo *halo_of(const struct sl_distribution *d, const struct sl_sparse_matrix *a)
{
    return halos_of(d)[0].matrix == a ? &halos_of(d)[0] : &halos_of(d)[1];
}

/* ---- The walk ---- */

/* A walk on this rank. */
struct walk {
    struct sl_runtime *rt;
    const struct sl_distribution *d;
    const struct sl_reduction *reduction;
    struct sl_halo *halo;
    struct sl_exchange *exchange;
    struct sl_tile_run own;
    int matrices; /* moved matrices */
    int *part;    // (parts): numbers in the exchange of the messages to receive
    int parts;
    int stages;
    struct sl_states rows;
    struct sl_tile **h[SL_MOVED]; // (own) each: own tiles of the moved matrices
    struct sl_tile **received; // (matrices · receives): the messages of a stage, one matrix after
                               // the other
    struct sl_cover_walk results; /* results of a cover */
    int all_stages;               /* stages of messages and of results */
    struct sl_tile **result;      // (outputs · receives): the results of a stage
};

/* Return whether some layer reads H(k), or the rows of a message whose run of tiles begins with k.
 */
static bool is_read(const struct sl_reduction *reduction, int k)
{
    return !sl_matrix_tile(reduction->moved[0], k, 0)->idle;
}

static void list_parts(struct walk *w)
{
    for (int p = 0; p < w->exchange->receives; p++)
        if (is_read(w->reduction, w->exchange->receive[p].from))
            w->part[w->parts++] = p;
    w->stages = w->rt->stages > 1 && w->parts > SL_HALO_STAGES ? SL_HALO_STAGES : w->parts;
}

/* Send the messages of moved matrix m. All ranks make the buffers, even without messages to send.
 */
static void send_parts(struct walk *w, int m)
{
    const struct sl_matrix *h = w->reduction->moved[m];
    sl_exchange_outgoing(w->rt, w->exchange, h, 0, m);
    for (int p = 0; p < w->exchange->sends; p++)
        if (is_read(w->reduction, w->exchange->send[p].from))
            sl_exchange_send_part(w->rt, w->exchange, h, 0, m, p);
}

/* Return the messages of a stage, as places [from, to) in `part`. */
static struct sl_tile_run stage_run(const struct walk *w, int s)
{
    const int64_t count = w->parts;
    return (struct sl_tile_run){(int)(count * s / w->stages), (int)(count * (s + 1) / w->stages)};
}

static struct sl_stage stage_of(struct walk *w, int s)
{
    const struct sl_tile_run run = stage_run(w, s);
    struct sl_stage stage = {.tiles = w->received};
    for (int m = 0; m < w->matrices; m++)
        for (int k = run.from; k < run.to; k++)
            stage.count += sl_exchange_stage(w->rt, w->exchange, w->reduction->moved[m], 0, m,
                                             w->part[k], w->part[k] + 1, w->received + stage.count)
                               .count;
    return stage;
}

static void ask(struct walk *w, int s)
{
    if (s >= w->all_stages)
        return;
    const struct sl_stage stage =
        s < w->stages ? stage_of(w, s) : sl_cover_stage(&w->results, s - w->stages, w->result);
    sl_stage_ask(w->rt, &stage, w->rows.count, w->rows.held);
}

/* Return whether sparse tile (i, k) has entries, row tile i is needed, and H(k) is not 0
 * (graphs/reach.h).
 */
static bool is_met(const struct walk *w, int i, int k)
{
    return sl_sparse_matrix_tile(w->reduction->a, i, k)->shape.nnz &&
           !sl_matrix_tile(w->reduction->out[0], i, 0)->idle && is_read(w->reduction, k);
}

static void meet(struct walk *w, struct sl_state *row, int k, struct sl_meeting meeting)
{
    meeting.a = sl_sparse_matrix_tile(w->reduction->a, row->i, k);
    if (is_met(w, row->i, k))
        w->reduction->reducer->meet(row, &meeting);
}

static void meet_own(struct walk *w)
{
    for (int r = 0; r < w->rows.count; r++) {
        struct sl_state *row = &w->rows.state[r];
        for (int k = w->own.from; k < w->own.to; k++) {
            struct sl_meeting meeting = {
                .count = sl_sparse_matrix_tile(w->reduction->a, row->i, k)->span,
                .first = w->d->row_cut[k]};
            for (int m = 0; m < w->matrices; m++)
                meeting.moved[m] = w->h[m] + (k - w->own.from);
            meet(w, row, k, meeting);
        }
        w->reduction->reducer->submit(row);
    }
}

static void meet_stage(struct walk *w, int s)
{
    const struct sl_tile_run run = stage_run(w, s);
    const struct sl_stage stage = stage_of(w, s);
    const int parts = run.to - run.from;
    for (int r = 0; r < w->rows.count; r++) {
        struct sl_state *row = &w->rows.state[r];
        for (int part = 0; part < parts; part++) {
            const int p = w->part[run.from + part];
            struct sl_meeting meeting = {.count = 1};
            for (int m = 0; m < w->matrices; m++)
                meeting.moved[m] = w->received + m * parts + part;
            if (w->halo->listed)
                meeting.vertices = &w->halo->listed[p];
            meet(w, row, w->exchange->receive[p].from, meeting);
        }
        w->reduction->reducer->submit(row);
    }
    sl_stage_drop(w->rt, &stage);
}

/* Merge other ranks' results into the own rows, which are complete. */
static void merge_results(struct walk *w)
{
    const int ahead = w->rt->stages - 1;
    for (int s = w->stages; s < w->all_stages; s++) {
        ask(w, s + ahead);
        const struct sl_stage stage = sl_cover_stage(&w->results, s - w->stages, w->result);
        sl_cover_merge(&w->results, s - w->stages, &w->rows, w->result);
        sl_stage_drop(w->rt, &stage);
    }
}

static void walk_round(struct walk *w)
{
    const int ahead = w->rt->stages - 1;
    if (w->halo->cover)
        sl_cover_send(&w->results);
    for (int s = 0; s < ahead; s++)
        ask(w, s);
    for (int m = 0; m < w->matrices; m++)
        send_parts(w, m);
    meet_own(w);
    for (int s = 0; s < w->stages; s++) {
        ask(w, s + ahead);
        meet_stage(w, s);
    }
    for (int r = 0; r < w->rows.count; r++)
        w->reduction->reducer->complete(&w->rows.state[r]);
    merge_results(w);
    for (int r = 0; r < w->rows.count; r++)
        w->reduction->reducer->close(&w->rows.state[r]);
}

static void add_row(struct walk *w, int i)
{
    const struct sl_sparse_matrix *a = w->reduction->a;
    struct sl_state state = {.i = i, .first = w->d->row_cut[i]};
    state.apart = w->halo->cover && sl_cover_merges(w->halo->cover, i);
    for (int m = 0; m < w->reduction->reducer->row_operands; m++)
        state.row[m] = sl_matrix_tile(w->reduction->row[m], i, 0);
    for (int k = 0; k < a->tile_cols; k++)
        state.terms += is_met(w, i, k);
    for (int o = 0; o < w->reduction->reducer->outputs; o++)
        state.out[o] = sl_matrix_tile(w->reduction->out[o], i, 0);
    sl_states_add(&w->rows, &state);
}

static void halo_walk(struct sl_runtime *rt, const struct sl_distribution *d,
                      const struct sl_walk_step *step, const struct sl_reduction *reduction)
{
    (void)step;
    struct sl_halo *halo = halo_of(d, reduction->a);
    struct walk w = {
        .rt = rt,
        .d = d,
        .reduction = reduction,
        .halo = halo,
        .exchange = &halo->exchange,
        .own = sl_grid_group(d, rt->rank),
        .matrices = reduction->reducer->moved,
    };
    const size_t receives = (size_t)halo->exchange.receives;
    const size_t rows = (size_t)(w.own.to - w.own.from) + 1;
    const struct sl_cover *cover = halo->cover;
    const int results = cover ? reduction->reducer->outputs * cover->results.receives : 0;
    w.results = (struct sl_cover_walk){rt, d, halo->cover, reduction, w.h};
    w.result = malloc((size_t)(results + 1) * sizeof *w.result);
    w.received = malloc(((size_t)w.matrices * receives + 1) * sizeof *w.received);
    w.part = malloc((receives + 1) * sizeof *w.part);
    w.h[0] = malloc((size_t)w.matrices * rows * sizeof *w.h[0]);
    if (!w.received || !w.part || !w.h[0] || !w.result)
        sl_fatal("no memory for the lists of %zu tiles", rows);
    list_parts(&w);
    w.all_stages = w.stages + (cover ? sl_cover_stages(rt, cover) : 0);
    for (int m = 0; m < w.matrices; m++) {
        w.h[m] = w.h[0] + (size_t)m * rows;
        for (int k = w.own.from; k < w.own.to; k++)
            w.h[m][k - w.own.from] = sl_matrix_tile(reduction->moved[m], k, 0);
    }
    sl_states_open(&w.rows, rt, reduction, d->temporaries, w.own.to - w.own.from);
    for (int i = w.own.from; i < w.own.to; i++)
        add_row(&w, i);
    walk_round(&w);
    sl_states_free(&w.rows);
    free(w.received);
    free(w.part);
    free(w.result);
    free(w.h[0]);
}

/* ---- Memory ---- */

/* Sizes of the messages that a rank packs, or receives. */
struct messages {
    int64_t row;     /* bytes */
    size_t kept;     /* bytes of a kept block of pages, which also serves smaller messages */
    size_t pages;    /* bytes of the smallest message that takes such a block */
    int64_t all;     /* bytes */
    int64_t largest; /* bytes of the largest message */
};

static void add_message(struct messages *m, int64_t rows)
{
    const size_t bytes = (size_t)(rows * m->row), own = sl_memory_taken(bytes);
    const int64_t taken = (int64_t)(sl_memory_serves(m->kept, bytes) ? m->kept : own);
    if (sl_memory_serves(own, own) && (!m->pages || own < m->pages))
        m->pages = own;
    m->all += taken;
    m->largest = taken > m->largest ? taken : m->largest;
}

static void add_parts(struct messages *m, int count, const struct sl_exchange_part *part)
{
    for (int p = 0; p < count; p++)
        add_message(m, part[p].rows);
}

/* Add `messages` messages of equal size, where no list says their rows. */
static void add_equal(struct messages *m, int64_t messages, int64_t rows)
{
    for (int64_t k = 0; k < messages; k++)
        add_message(m, rows / messages);
}

static void add_packed(struct messages *m, const struct sl_halo *halo, int rank, int ranks)
{
    const int64_t own = (int64_t)halo->numbers * ranks;
    if (halo->exchange.numbers)
        add_parts(m, halo->exchange.sends, halo->exchange.send);
    else if (!halo->rows) /* as many messages as are received */
        add_equal(m, halo->messages[rank], halo->sent[rank]);
    for (int64_t k = rank * own; halo->rows && k < (rank + 1) * own; k++)
        add_message(m, halo->rows[k]);
}

static void add_received(struct messages *m, const struct sl_halo *halo, int rank, int ranks)
{
    if (halo->exchange.numbers)
        add_parts(m, halo->exchange.receives, halo->exchange.receive);
    else if (!halo->rows)
        add_equal(m, halo->messages[rank], halo->received[rank]);
    for (int64_t k = 0; halo->rows && k < (int64_t)halo->numbers * ranks; k++)
        add_message(m, halo->rows[k * ranks + rank]);
}

/* Return the bytes of received and packed rows during one aggregation. With one stage, a message
 * goes before the next one comes. Packed rows of the previous aggregation count where this one has
 * other buffers: other ranks may not have received them yet. */
static int64_t halo_received_bytes(const struct sl_runtime *rt, const struct sl_distribution *d,
                                   const struct sl_passage *now, const struct sl_passage *before)
{
    const struct sl_halo *halos = halos_of(d);
    const bool two = halos[1].received && (halos[1].messages[rt->rank] > 0 || halos[1].cover);
    const struct sl_halo *halo = &halos[two && now->transposed],
                         *last = &halos[two && before->transposed];
    const int64_t row = now->row * now->matrices, last_row = before->row * before->matrices;
    struct messages come, go, gone = {.row = last_row};
    size_t pages = 0;
    for (int pass = 0; pass < 2; pass++) {
        come = (struct messages){.row = row, .kept = pages};
        add_received(&come, halo, rt->rank, d->ranks);
        go = (struct messages){.row = row, .kept = pages, .pages = come.pages};
        add_packed(&go, halo, rt->rank, d->ranks);
        pages = go.pages;
    }
    if (halo != last || row != last_row)
        add_packed(&gone, last, rt->rank, d->ranks);
    const struct sl_cover *cover = halo->cover;
    const int64_t result = now->state + now->operands,
                  last_result = before->state + before->operands;
    int64_t results = cover ? (cover->received[rt->rank] + cover->sent[rt->rank]) * result : 0;
    if (last->cover && (halo != last || result != last_result))
        results += last->cover->sent[rt->rank] * last_result;
    return (rt->stages > 1 ? come.all : come.largest) + go.all + gone.all + results;
}

/* ---- Counts ---- */

/* Return the rows and messages that rank `to` receives, and add their rows to each sender's
 * `packed`. Rows over `from` hops away do not travel. */
static struct sl_flow flow_to(const struct sl_halo *halo, const struct sl_distribution *d, int from,
                              int to, struct sl_walk_counts *rank)
{
    struct sl_flow flow = {0};
    for (int m = 0; m < d->ranks * halo->numbers; m++) {
        const int64_t rows = halo->rows[(int64_t)m * d->ranks + to];
        const struct sl_tile_run run =
            sl_halo_run(d, halo->numbers, m / halo->numbers, m % halo->numbers);
        if (!rows || d->hop[run.from] > from)
            continue;
        flow.rows += (double)rows;
        flow.messages++;
        rank[m / halo->numbers].packed += (double)rows;
    }
    return flow;
}

/* Count a walk as in 1D, with messages in place of whole tiles. */
static int halo_count(const struct sl_distribution *d, const struct sl_tile_counts *counts,
                      const struct sl_counted_walk *walk, struct sl_walk_counts *rank)
{
    const struct sl_halo *halo = &halos_of(d)[walk->transposed];
    const bool apart = d->hop && halo->rows;
    const int code = sl_block_count(d, counts, walk, rank);
    for (int r = 0; !code && r < d->ranks; r++) {
        const int64_t most = rank[r].row_tiles * (1 + halo->messages[r]);
        rank[r].moved =
            apart ? flow_to(halo, d, walk->from, r, rank)
                  : (struct sl_flow){(double)halo->received[r], (double)halo->messages[r]};
        rank[r].tiles = rank[r].tiles < most ? rank[r].tiles : most;
        rank[r].packed += apart ? 0.0 : (double)halo->sent[r];
        rank[r].own_last = 0;
        rank[r].table = (double)(d->row_cut[d->rank_cut[r + 1]] - d->row_cut[d->rank_cut[r]] +
                                 halo->received[r]);
    }
    if (!code && halo->cover)
        sl_cover_count(halo->cover, d, walk, halo->numbers, rank);
    return code;
}

/* ---- The kinds ---- */

static void halo_describe(const struct sl_distribution *d, char text[32])
{
    snprintf(text, 32, "%s", d->kind->name);
}

static int halo_create_adjacency(struct sl_runtime *rt, struct sl_distribution *d,
                                 const struct sl_adjacency_source *source,
                                 struct sl_sparse_matrix *matrix)
{
    return sl_halo_create(rt, d, source, NULL, &halos_of(d)[source->transposed], matrix);
}

static int halo_create(struct sl_distribution *d)
{
    d->own = calloc(2, sizeof(struct sl_halo));
    return d->own ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a halo");
}

static void halo_destroy(struct sl_distribution *d)
{
    for (int t = 0; d->own && t < 2; t++)
        sl_halo_destroy(&halos_of(d)[t]);
    free(d->own);
    d->own = NULL;
}

/* A cover is a halo, but for what travels. */
#define HALO                                                                                  \
    .parts = true, .describe = halo_describe, .exact = sl_distribution_is_exact,              \
    .share = sl_distribution_share_all, .whole_owner = sl_grid_whole_owner,                   \
    .dense_owner = sl_grid_dense_owner, .sparse_owner = halo_sparse_owner, .span = halo_span, \
    .walk = halo_walk, .received_bytes = halo_received_bytes, .keeps = sl_grid_keeps,         \
    .count = halo_count, .create = halo_create, .destroy = halo_destroy

const struct sl_distribution_kind sl_distribution_halo = {
    .name = "halo",
    .create_adjacency = halo_create_adjacency,
    HALO,
};

const struct sl_distribution_kind sl_distribution_cover = {
    .name = "cover",
    .create_adjacency = sl_cover_create_adjacency,
    HALO,
};
