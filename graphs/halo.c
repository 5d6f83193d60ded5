/* clang-format off */
/* Halo: rows are cut among the ranks as in 1D, at best where few edges cross (METIS), and of the rows of H
 * that other ranks have, a rank gets those that its edges touch, packed. With N(r, q) the rows of q that the
 * rows of r have entries for, rank r
 *
 *   sends      H(N(p, r), :) to every p with such rows, as soon as they are there
 *   computes   Z(i) = S(i, own)·H(own)          for its row tiles i, while rows travel
 *              Z(i) += Σ S(i, N)·H(N)            for each stage of what comes, round from the next rank
 *              Z(i) = epilogue(Z(i))             with the last term
 *
 * What a rank gets of another one is a message, or several where ranks are few, each of a run of that one's row
 * tiles; what it gets of all is at most SL_HALO_STAGES stages. Columns of S are numbered so that those of a message
 * meet its buffer as it is. Sums are in that order, which the cut alone decides: bitwise the same in every run
 * on as many ranks, and equal to other ranks' and distributions' up to rounding. */
/* clang-format on */
#include "graphs/halo.h"

#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/sparse.h"
#include "graphs/distribution.h"

/* ---- Owners ---- */

/* All own columns are one: those of H are neighbours in memory. */
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

static struct sl_halo *halo_of(const struct sl_distribution *d, const struct sl_sparse_matrix *a)
{
    return d->halo[0].matrix == a ? &d->halo[0] : &d->halo[1];
}

/* ---- The product ---- */

struct row {
    int i;
    int left;     /* tiles with entries whose terms are not there yet */
    bool started; /* there is something in the sums */
    struct sl_epilogue_tiles epilogue;
    struct sl_tile *sum, *z; /* the sums are in Z where `sum` is NULL */
};

static struct sl_tile *sums_of(const struct row *row)
{
    return row->sum ? row->sum : row->z;
}

/* Z = A·H on this rank. */
struct product {
    struct sl_runtime *rt;
    const struct sl_sparse_matrix *a;
    const struct sl_matrix *h;
    struct sl_exchange *exchange;
    struct sl_tile_run own;
    bool finishes; /* there is an epilogue */
    int stages;
    struct row *row;           // (own)
    struct sl_tile **sums;     // (own): of the rows
    struct sl_tile **received; // (receives)
    struct sl_sparse_tile *part[SL_SPMM_PARTS];
    int parts, met;
    int64_t bytes;          /* of the tiles of the parts */
    struct sl_tile **meets; // (met), at most the own tiles and one for each part
};

static void submit_parts(struct product *p, struct row *row)
{
    if (p->parts == 0)
        return;
    row->left -= p->parts;
    const bool last = row->left == 0;
    sl_submit_spmm(p->rt, &(struct sl_spmm_tiles){
                              .parts = p->parts,
                              .a = p->part,
                              .h = p->meets,
                              .accumulate = row->started,
                              .epilogue = last && p->finishes ? &row->epilogue : NULL,
                              .sum = last ? row->sum : NULL,
                              .z = last ? row->z : sums_of(row),
                          });
    row->started = true;
    p->parts = p->met = 0;
    p->bytes = 0;
}

/* The terms of sparse tile (i, k), which meets `count` tiles. */
static void add_tile(struct product *p, struct row *row, int k, int count,
                     struct sl_tile *const *meets)
{
    struct sl_sparse_tile *tile = sl_sparse_matrix_tile(p->a, row->i, k);
    if (!tile->shape.nnz)
        return;
    int64_t bytes = sl_tile_bytes(&tile->tile);
    for (int t = 0; t < count; t++)
        bytes += sl_tile_bytes(meets[t]);
    if (p->parts == SL_SPMM_PARTS || !sl_task_holds(p->rt, p->bytes + bytes))
        submit_parts(p, row);
    p->bytes += bytes;
    p->part[p->parts++] = tile;
    for (int t = 0; t < count; t++)
        p->meets[p->met++] = meets[t];
}

static void work_on_own(struct product *p, struct sl_tile *const *h)
{
    for (int i = p->own.from; i < p->own.to; i++) {
        struct row *row = &p->row[i - p->own.from];
        for (int k = p->own.from; k < p->own.to; k++)
            add_tile(p, row, k, sl_sparse_matrix_tile(p->a, i, k)->span, h + (k - p->own.from));
        submit_parts(p, row);
    }
}

static int count_stages(const struct sl_runtime *rt, const struct sl_exchange *x)
{
    return rt->stages > 1 && x->receives > SL_HALO_STAGES ? SL_HALO_STAGES : x->receives;
}

/* The parts of a stage: [from, to). */
static struct sl_tile_run parts_of(const struct sl_exchange *x, int stages, int s)
{
    const int64_t count = x->receives;
    return (struct sl_tile_run){(int)(count * s / stages), (int)(count * (s + 1) / stages)};
}

static struct sl_tile_run stage_run(const struct product *p, int s)
{
    return parts_of(p->exchange, p->stages, s);
}

static struct sl_stage stage_of(struct product *p, int s)
{
    const struct sl_tile_run run = stage_run(p, s);
    return sl_exchange_stage(p->rt, p->exchange, p->h, 0, 0, run.from, run.to,
                             p->received + run.from);
}

static void ask(struct product *p, int s)
{
    if (s >= p->stages)
        return;
    const struct sl_stage stage = stage_of(p, s);
    sl_stage_ask(p->rt, &stage, p->own.to - p->own.from, p->sums);
}

static void work_on_stage(struct product *p, int s)
{
    const struct sl_tile_run run = stage_run(p, s);
    const struct sl_stage stage = stage_of(p, s);
    for (int i = p->own.from; i < p->own.to; i++) {
        struct row *row = &p->row[i - p->own.from];
        for (int m = run.from; m < run.to; m++)
            add_tile(p, row, p->exchange->receive[m].from, 1, &p->received[m]);
        submit_parts(p, row);
    }
    sl_stage_drop(p->rt, &stage);
}

/* Rows without any term. */
static void finish_empty(struct product *p)
{
    for (int i = p->own.from; i < p->own.to; i++) {
        struct row *row = &p->row[i - p->own.from];
        if (row->started)
            continue;
        sl_submit_fill(p->rt, 0.0f, sums_of(row));
        if (p->finishes || row->sum)
            sl_submit_epilogue(p->rt, p->finishes ? &row->epilogue : NULL, sums_of(row), row->z);
    }
}

static void start_row(struct product *p, int i, const struct sl_row_epilogue *epilogue,
                      const struct sl_matrix *sum, const struct sl_matrix *z)
{
    struct row *row = &p->row[i - p->own.from];
    *row = (struct row){
        .i = i, .sum = sum ? sl_matrix_tile(sum, i, 0) : NULL, .z = sl_matrix_tile(z, i, 0)};
    if (epilogue)
        row->epilogue = sl_row_epilogue_at(epilogue, i, z, 0);
    for (int k = 0; k < p->a->tile_cols; k++)
        row->left += sl_sparse_matrix_tile(p->a, i, k)->shape.nnz > 0;
    p->sums[i - p->own.from] = sums_of(row);
}

static void multiply(struct product *p)
{
    const int ahead = p->rt->stages - 1;
    struct sl_tile **own = malloc((size_t)(p->own.to - p->own.from + 1) * sizeof *own);
    if (!own)
        sl_fatal("no memory for a list of %d tiles", p->own.to - p->own.from);
    for (int k = p->own.from; k < p->own.to; k++)
        own[k - p->own.from] = sl_matrix_tile(p->h, k, 0);
    for (int s = 0; s < ahead; s++)
        ask(p, s);
    sl_exchange_send(p->rt, p->exchange, p->h, 0, 0);
    work_on_own(p, own);
    for (int s = 0; s < p->stages; s++) {
        ask(p, s + ahead);
        work_on_stage(p, s);
    }
    finish_empty(p);
    free(own);
}

static void halo_aggregate(struct sl_runtime *rt, const struct sl_distribution *d,
                           const struct sl_moment *moment, const struct sl_sparse_matrix *a,
                           const struct sl_matrix *h, const struct sl_row_epilogue *epilogue,
                           const struct sl_matrix *sum, const struct sl_matrix *z)
{
    (void)moment;
    struct sl_halo *halo = halo_of(d, a);
    struct product p = {
        .rt = rt,
        .a = a,
        .h = h,
        .exchange = &halo->exchange,
        .own = sl_grid_group(d, rt->rank),
        .finishes = epilogue != NULL,
        .stages = count_stages(rt, &halo->exchange),
    };
    const size_t rows = (size_t)(p.own.to - p.own.from) + 1;
    p.row = malloc(rows * sizeof *p.row);
    p.sums = malloc(rows * sizeof *p.sums);
    p.received = malloc((size_t)(halo->exchange.receives + 1) * sizeof *p.received);
    p.meets = malloc((rows + SL_SPMM_PARTS) * sizeof *p.meets);
    if (!p.row || !p.sums || !p.received || !p.meets)
        sl_fatal("no memory for the lists of %zu tiles", rows);
    for (int i = p.own.from; i < p.own.to; i++)
        start_row(&p, i, epilogue, sum, z);
    multiply(&p);
    free(p.row);
    free(p.sums);
    free(p.received);
    free(p.meets);
}

/* ---- The largest ---- */

/* Vertices are rows of the graph: those of what comes are listed. */
struct choice {
    struct sl_largest largest;
    const struct sl_distribution *d;
    struct sl_halo *halo;
    int stages;
    struct sl_tile **received; // (matrices · receives): of each, what the parts of a stage came in
};

static struct sl_stage choice_stage(struct choice *p, int s)
{
    struct sl_exchange *x = &p->halo->exchange;
    const struct sl_tile_run run = parts_of(x, p->stages, s);
    struct sl_stage stage = {.tiles = p->received};
    for (int m = 0; m < p->largest.matrices; m++)
        stage.count += sl_exchange_stage(p->largest.rt, x, p->largest.moved[m], 0, m, run.from,
                                         run.to, p->received + stage.count)
                           .count;
    return stage;
}

static void ask_choice(struct choice *p, int s)
{
    if (s >= p->stages)
        return;
    const struct sl_stage stage = choice_stage(p, s);
    sl_stage_ask(p->largest.rt, &stage, p->largest.own.to - p->largest.own.from, p->largest.sums);
}

static void choose_own(struct choice *p)
{
    const struct sl_tile_run own = p->largest.own;
    for (int i = own.from; i < own.to; i++)
        for (int k = own.from; k < own.to; k++) {
            struct sl_tile *met[2] = {NULL, NULL};
            for (int m = 0; m < p->largest.matrices; m++)
                met[m] = sl_matrix_tile(p->largest.moved[m], k, 0);
            sl_largest_meet(&p->largest, i, k, met, NULL,
                            p->d->row_cut[p->largest.choice.back ? i : k]);
        }
}

static void choose_stage(struct choice *p, int s)
{
    const struct sl_exchange *x = &p->halo->exchange;
    const struct sl_tile_run run = parts_of(x, p->stages, s);
    const struct sl_stage stage = choice_stage(p, s);
    const int parts = run.to - run.from;
    const bool back = p->largest.choice.back;
    for (int i = p->largest.own.from; i < p->largest.own.to; i++)
        for (int part = 0; part < parts; part++) {
            struct sl_tile *met[2] = {p->received[part], back ? p->received[parts + part] : NULL};
            sl_largest_meet(&p->largest, i, x->receive[run.from + part].from, met,
                            back ? NULL : &p->halo->listed[run.from + part], p->d->row_cut[i]);
        }
    sl_stage_drop(p->largest.rt, &stage);
}

static void halo_largest(struct sl_runtime *rt, const struct sl_distribution *d,
                         const struct sl_choice *choice)
{
    struct sl_halo *halo = halo_of(d, choice->a);
    struct choice p = {.d = d, .halo = halo, .stages = count_stages(rt, &halo->exchange)};
    const int ahead = rt->stages - 1;
    sl_largest_open(rt, choice, sl_grid_group(d, rt->rank), 0, &p.largest);
    p.received = malloc((size_t)(2 * halo->exchange.receives + 1) * sizeof *p.received);
    if (!p.received)
        sl_fatal("no memory for the lists of %d messages", halo->exchange.receives);
    for (int s = 0; s < ahead; s++)
        ask_choice(&p, s);
    for (int m = 0; m < p.largest.matrices; m++)
        sl_exchange_send(rt, &halo->exchange, p.largest.moved[m], 0, m);
    choose_own(&p);
    for (int s = 0; s < p.stages; s++) {
        ask_choice(&p, s + ahead);
        choose_stage(&p, s);
    }
    sl_largest_close(&p.largest);
    free(p.received);
}

/* ---- Memory ---- */

/* What a rank packs, or what comes. */
struct messages {
    int64_t row;     /* bytes */
    size_t kept;     /* pages that are kept where messages are large, and serve smaller ones, too */
    size_t pages;    /* the least that a message of its own takes of such */
    int64_t all;     /* bytes */
    int64_t largest; /* message */
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

/* Where there is no list of messages, they are equal. */
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
    else if (!halo->rows) /* as many as come */
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

/* What comes, all of it or, one after the other, the messages, and what is packed until it has
 * gone; and what was packed for the aggregation before, which others may still be at, where this
 * one does not use its buffers. */
static int64_t halo_received_bytes(const struct sl_runtime *rt, const struct sl_distribution *d,
                                   const struct sl_passage *now, const struct sl_passage *before)
{
    const bool two = d->halo[1].received && d->halo[1].messages[rt->rank] > 0;
    const struct sl_halo *halo = &d->halo[two && now->transposed],
                         *last = &d->halo[two && before->transposed];
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
    return (rt->stages > 1 ? come.all : come.largest) + go.all + gone.all;
}

static int halo_visits(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    (void)rt;
    (void)d;
    return 1;
}

const struct sl_distribution_kind sl_distribution_halo = {
    .whole_owner = sl_grid_whole_owner,
    .dense_owner = sl_grid_dense_owner,
    .sparse_owner = halo_sparse_owner,
    .span = halo_span,
    .aggregate = halo_aggregate,
    .largest = halo_largest,
    .received_bytes = halo_received_bytes,
    .keeps = sl_grid_keeps,
    .visits = halo_visits,
};
