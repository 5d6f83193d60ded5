/* Find the rows that a rank receives from other ranks, and number its columns of the adjacency. */
#include <stdlib.h>

#include "core/error.h"
#include "graphs/distribution.h"
#include "graphs/halo.h"

/* ---- What travels ---- */

/* Return how many hops tiles may have; 1 where hops are not known. */
static int count_hops(const struct sl_distribution *d)
{
    int most = 0;
    for (int t = 0; d->hop && t < d->tiles; t++)
        most = d->hop[t] > most ? d->hop[t] : most;
    return most + 1;
}

/* Return the first tile of a rank that is at least `hop` hops away. */
static int find_hop(const struct sl_distribution *d, int rank, int hop)
{
    int t = hop > 0 && !d->hop ? d->rank_cut[rank + 1] : d->rank_cut[rank];
    while (d->hop && t < d->rank_cut[rank + 1] && d->hop[t] < hop)
        t++;
    return t;
}

int sl_halo_numbers(const struct sl_runtime *rt, const struct sl_distribution *d, int64_t row_bytes)
{
    static const int64_t MOST_BYTES =
        1 << 30; /* runs end where tiles end, so messages stay under 2 GiB */
    int64_t most = 0;
    for (int r = 0; r < d->ranks; r++) {
        const int64_t rows = d->row_cut[d->rank_cut[r + 1]] - d->row_cut[d->rank_cut[r]];
        most = rows > most ? rows : most;
    }
    const int others = d->ranks > 1 ? d->ranks - 1 : 1;
    const int64_t for_stages = rt->stages > 1 ? (SL_HALO_STAGES + others - 1) / others : 1;
    const int64_t for_bytes = (most * row_bytes / MOST_BYTES + 1) * count_hops(d);
    return (int)(for_stages > for_bytes ? for_stages : for_bytes);
}

struct sl_tile_run sl_halo_run(const struct sl_distribution *d, int numbers, int rank, int number)
{
    const int hops = count_hops(d), hop = number * hops / numbers;
    const int first = (hop * numbers + hops - 1) /
                      hops, /* first message of the hop; first message of the next hop */
        next = ((hop + 1) * numbers + hops - 1) / hops;
    const int from = find_hop(d, rank, hop);
    const int64_t count = find_hop(d, rank, hop + 1) - from;
    return (struct sl_tile_run){from + (int)(count * (number - first) / (next - first)),
                                from + (int)(count * (number + 1 - first) / (next - first))};
}

int sl_halo_allocate(struct sl_halo *halo, int ranks)
{
    *halo = (struct sl_halo){
        .received = calloc((size_t)ranks, sizeof(int64_t)),
        .sent = calloc((size_t)ranks, sizeof(int64_t)),
        .messages = calloc((size_t)ranks, sizeof(int64_t)),
    };
    return halo->received && halo->sent && halo->messages
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %d ranks", ranks);
}

void sl_halo_destroy(struct sl_halo *halo)
{
    for (int p = 0; halo->listed && p < halo->exchange.receives; p++)
        sl_tile_destroy(&halo->listed[p]);
    free(halo->listed);
    sl_exchange_destroy(&halo->exchange);
    if (halo->cover)
        sl_cover_destroy(halo->cover);
    free(halo->cover);
    free(halo->received);
    free(halo->sent);
    free(halo->messages);
    free(halo->rows);
    *halo = (struct sl_halo){0};
}

/* ---- Which rows ---- */

/* A row that rank `rank` needs. */
struct need {
    int32_t rank, row;
};

struct making {
    struct sl_runtime *rt;
    const struct sl_distribution *d;
    sl_row_function *row;
    const void *context;
    const bool *by_row; // (rows of the graph): other ranks' rows to receive; NULL: all
    int numbers;
    int64_t first, end;  /* rows of this rank */
    int32_t *place;      // (rows of the graph): column number on this rank; 0: not needed
    int64_t *col_cut;    // (tiles + 1)
    int32_t *columns;    // (longest row)
    float *values;       // (longest row)
    int64_t *run_first;  // (ranks · numbers + 1): first need of each received message
    int64_t *rank_first; // (ranks + 1): first need of each rank
    struct need *needs;  // (run_first[ranks · numbers])
};

static int no_memory(const struct making *m)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for the halo of %lld rows",
                    (long long)(m->end - m->first));
}

static bool is_here(const struct making *m, int64_t column)
{
    return !m->by_row || m->by_row[column] || (m->first <= column && column < m->end);
}

static int mark(struct making *m)
{
    const int64_t rows = m->d->row_cut[m->d->tiles], runs = (int64_t)m->d->ranks * m->numbers;
    int64_t longest = 0, count;
    const int32_t *columns;
    const float *values;
    m->place = calloc((size_t)rows + 1, sizeof *m->place);
    m->col_cut = malloc((size_t)(m->d->tiles + 1) * sizeof *m->col_cut);
    m->run_first = malloc((size_t)(runs + 1) * sizeof *m->run_first);
    m->rank_first = malloc((size_t)(m->d->ranks + 1) * sizeof *m->rank_first);
    if (!m->place || !m->col_cut || !m->run_first || !m->rank_first)
        return no_memory(m);
    for (int64_t r = m->first; r < m->end; r++) {
        m->row(m->context, r, &count, &columns, &values);
        for (int64_t e = 0; e < count; e++)
            m->place[columns[e]] = is_here(m, columns[e]);
        longest = count > longest ? count : longest;
    }
    m->columns = malloc((size_t)(longest + 1) * sizeof *m->columns);
    m->values = malloc((size_t)(longest + 1) * sizeof *m->values);
    return m->columns && m->values ? 0 : no_memory(m);
}

/* Number the columns of a message from `next` on. Return the next free number. */
static int64_t number_run(struct making *m, int rank, int number, int64_t next)
{
    const struct sl_tile_run run = sl_halo_run(m->d, m->numbers, rank, number);
    const int64_t own = m->end - m->first, start = next;
    for (int64_t c = m->d->row_cut[run.from]; c < m->d->row_cut[run.to]; c++)
        if (m->place[c]) {
            const int64_t before = next - (rank > m->rt->rank ? own : 0);
            m->needs[before] = (struct need){m->rt->rank, (int32_t)c};
            m->place[c] = (int32_t)next++;
        }
    for (int k = run.from; k < run.to; k++)
        m->col_cut[k] = k == run.from ? start : next;
    return next;
}

/* Number all own columns, needed or not, because H has them. Return the next free number. */
static int64_t number_own(struct making *m, int64_t next)
{
    const int from = m->d->rank_cut[m->rt->rank], to = m->d->rank_cut[m->rt->rank + 1];
    for (int k = from; k < to; k++)
        m->col_cut[k] = next + m->d->row_cut[k] - m->first;
    for (int64_t c = m->first; c < m->end; c++)
        m->place[c] = (int32_t)next++;
    return next;
}

static int number_columns(struct making *m)
{
    const int64_t rows = m->d->row_cut[m->d->tiles];
    int64_t needed = 0, next = 0;
    for (int64_t c = 0; c < rows; c++)
        needed += (c < m->first || c >= m->end) && m->place[c];
    m->needs = malloc((size_t)(needed + 1) * sizeof *m->needs);
    if (!m->needs)
        return no_memory(m);
    for (int r = 0, run = 0; r < m->d->ranks; r++) {
        const int64_t before = r > m->rt->rank ? next - (m->end - m->first) : next;
        m->rank_first[r] = before;
        for (int s = 0; s < m->numbers; s++) {
            m->run_first[run++] = r > m->rt->rank ? next - (m->end - m->first) : next;
            if (r != m->rt->rank)
                next = number_run(m, r, s, next);
        }
        if (r == m->rt->rank)
            next = number_own(m, next);
    }
    m->col_cut[m->d->tiles] = next;
    m->rank_first[m->d->ranks] = m->run_first[(int64_t)m->d->ranks * m->numbers] = needed;
    return 0;
}

/* ---- Lists ---- */

int sl_halo_list(const struct sl_distribution *d, int rank, const struct sl_halo_messages *m,
                 struct sl_exchange_list *list)
{
    int count = 0;
    for (int hop = 1; hop < d->ranks; hop++)
        for (int s = 0; s < m->numbers; s++) {
            const int peer = (rank + (m->forward ? hop : d->ranks - hop)) % d->ranks;
            const int64_t *first = m->first + peer * m->numbers + s;
            const struct sl_tile_run tiles = sl_halo_run(d, m->numbers, m->rows ? rank : peer, s);
            const int64_t *rows = m->rows ? m->rows + first[0] : NULL;
            list[count++] =
                (struct sl_exchange_list){peer, s, tiles.from, tiles.to, rows, first[1] - first[0]};
        }
    return count;
}

/* Find the rows (count) that other ranks need, and the first row (ranks · numbers + 1) of each
 * message. */
static void cut_needs(const struct making *m, const struct need *came, int64_t *rows,
                      int64_t *first, int64_t count)
{
    int64_t k = 0;
    for (int r = 0; r < m->d->ranks; r++)
        for (int s = 0; s < m->numbers; s++) {
            const int to = sl_halo_run(m->d, m->numbers, m->rt->rank, s).to;
            for (; k < count && came[k].rank == r && came[k].row < m->d->row_cut[to]; k++)
                rows[k] = came[k].row;
            first[r * m->numbers + s + 1] = k;
        }
}

/* Make the exchange from the received needs: rows that rank 0, rank 1, … need, each in ascending
 * order. Ranks that ask early are sent to first. */
static int create_exchange(const struct making *m, const struct need *came, int64_t count,
                           struct sl_halo *halo)
{
    const size_t lists = (size_t)m->d->ranks * (size_t)m->numbers;
    int64_t *rows = malloc((size_t)(count + 1) * sizeof *rows);
    int64_t *first = calloc(lists + 1, sizeof *first);
    struct sl_exchange_list *send = malloc(lists * sizeof *send),
                            *receive = malloc(lists * sizeof *receive);
    int code = rows && first && send && receive ? 0 : no_memory(m);
    if (!code) {
        const struct sl_halo_messages sent = {m->numbers, false, first, rows},
                                      received = {m->numbers, true, m->run_first, NULL};
        cut_needs(m, came, rows, first, count);
        code = sl_exchange_create(&halo->exchange, m->rt, m->numbers, m->d->row_cut,
                                  sl_halo_list(m->d, m->rt->rank, &sent, send), send,
                                  sl_halo_list(m->d, m->rt->rank, &received, receive), receive);
    }
    free(rows);
    free(first);
    free(send);
    free(receive);
    return code;
}

/* Tell all ranks the rows of each message, where layers need the messages of some hops alone. */
static int count_messages(const struct making *m, struct sl_halo *halo)
{
    enum { MOST = 1 << 22 }; /* with more messages, each is small */
    const int64_t ranks = m->d->ranks, all = ranks * m->numbers * ranks;
    const struct sl_exchange *x = &halo->exchange;
    if (!m->d->hop || all > MOST)
        return 0;
    halo->numbers = m->numbers;
    halo->rows = calloc((size_t)all, sizeof *halo->rows);
    const int code = sl_runtime_agree(m->rt, halo->rows ? 0 : no_memory(m));
    for (int p = 0; !code && p < x->receives; p++)
        halo->rows[((int64_t)x->receive[p].peer * m->numbers + x->receive[p].number) * ranks +
                   m->rt->rank] = x->receive[p].rows;
    if (!code)
        sl_runtime_sum(m->rt, halo->rows, all);
    return code;
}

static int exchange_needs(struct making *m, struct sl_halo *halo)
{
    struct need *came = NULL;
    int64_t count = 0;
    int code = sl_runtime_exchange(m->rt, m->needs, m->rank_first, sizeof *m->needs, (void **)&came,
                                   &count);
    if (!code)
        code = sl_runtime_agree(m->rt, create_exchange(m, came, count, halo));
    free(came);
    if (code)
        return code;
    sl_runtime_gather(m->rt, sl_exchange_rows_received(&halo->exchange), halo->received);
    sl_runtime_gather(m->rt, sl_exchange_rows_sent(&halo->exchange), halo->sent);
    sl_runtime_gather(m->rt, halo->exchange.receives, halo->messages);
    return count_messages(m, halo);
}

/* List the graph's row numbers for each received message. */
static int list_numbers(const struct making *m, struct sl_halo *halo)
{
    const struct sl_exchange *x = &halo->exchange;
    halo->listed = calloc((size_t)x->receives + 1, sizeof *halo->listed);
    if (!halo->listed)
        return no_memory(m);
    for (int p = 0; p < x->receives; p++) {
        const int64_t count = x->receive[p].rows;
        const struct need *need =
            m->needs + m->run_first[x->receive[p].peer * m->numbers + x->receive[p].number];
        if (sl_tile_create_own(&halo->listed[p], 1, count, sizeof(int32_t), m->rt->rank))
            return no_memory(m);
        for (int64_t k = 0; k < count; k++)
            ((int32_t *)halo->listed[p].memory)[k] = need[k].row;
    }
    return 0;
}

/* ---- The matrix ---- */

/* Read a row, with this rank's column numbers, in the row's order. */
static void halo_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                     const float **values)
{
    const struct making *m = context;
    const int32_t *global;
    const float *all;
    int64_t entries, kept = 0;
    m->row(m->context, r, &entries, &global, &all);
    for (int64_t e = 0; e < entries; e++)
        if (is_here(m, global[e])) {
            m->columns[kept] = m->place[global[e]];
            if (all)
                m->values[kept] = all[e];
            kept++;
        }
    *count = kept;
    *columns = m->columns;
    *values = all ? m->values : NULL;
}

int sl_halo_create(struct sl_runtime *rt, const struct sl_distribution *d,
                   const struct sl_adjacency_source *source, const bool *by_row,
                   struct sl_halo *halo, struct sl_sparse_matrix *matrix)
{
    struct making m = {
        .rt = rt,
        .d = d,
        .row = source->row,
        .context = source->context,
        .by_row = by_row,
        .numbers = sl_halo_numbers(rt, d, source->row_bytes),
        .first = d->row_cut[d->rank_cut[rt->rank]],
        .end = d->row_cut[d->rank_cut[rt->rank + 1]],
    };
    int code = sl_halo_allocate(halo, d->ranks);
    halo->matrix = matrix;
    if (!code)
        code = mark(&m);
    if (!code)
        code = number_columns(&m);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = exchange_needs(&m, halo);
    if (!code && source->numbered)
        code = sl_runtime_agree(rt, list_numbers(&m, halo));
    if (!code)
        code = sl_sparse_matrix_create(rt, matrix,
                                       &(struct sl_cuts){d->tiles, d->tiles, d->row_cut, m.col_cut,
                                                         sl_distribution_sparse_owner, d},
                                       sl_distribution_span, source->block_cols,
                                       &(struct sl_sparse_rows){source->has_values, halo_row, &m,
                                                                false, false, source->edges});
    free(m.place);
    free(m.col_cut);
    free(m.columns);
    free(m.values);
    free(m.run_first);
    free(m.rank_first);
    free(m.needs);
    return code;
}
