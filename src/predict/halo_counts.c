#include "predict/halo_counts.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "graphs/distribution.h"

static void locate(struct sl_halo_counts *c, const struct sl_distribution *d)
{
    for (int r = 0; r < d->ranks; r++)
        for (int s = 0; s < c->numbers; s++) {
            const struct sl_tile_run run = sl_halo_run(d, c->numbers, r, s);
            for (int i = run.from; i < run.to; i++) {
                c->rank[i] = r;
                c->message[i] = r * c->numbers + s;
            }
        }
}

/* The rows of each message, unless these are so many that each is small. */
static bool allocate_rows(struct sl_halo *halo, int ranks, int numbers)
{
    const int64_t MOST = 1 << 22, all = (int64_t)ranks * numbers * ranks;
    halo->numbers = numbers;
    if (all > MOST)
        return true;
    halo->rows = calloc((size_t)all, sizeof *halo->rows);
    return halo->rows != NULL;
}

int sl_halo_counts_create(struct sl_halo_counts *c, const struct sl_runtime *rt,
                          const struct sl_partition *p, int64_t row_bytes)
{
    const struct sl_distribution d = {
        .ranks = p->ranks,
        .tiles = p->tiles,
        .rank_cut = p->rank_cut,
        .row_cut = p->row_cut,
        .hop = p->hop,
    };
    const size_t ranks = (size_t)p->ranks;
    *c = (struct sl_halo_counts){.partition = p, .numbers = sl_halo_numbers(rt, &d, row_bytes)};
    c->rank = calloc((size_t)p->tiles, sizeof *c->rank);
    c->message = calloc((size_t)p->tiles, sizeof *c->message);
    c->reader = calloc((size_t)p->row_cut[p->tiles] + 1, sizeof *c->reader);
    c->met = calloc(ranks * (size_t)c->numbers, sizeof *c->met);
    c->row = calloc(ranks, sizeof *c->row);
    c->back = calloc(ranks, sizeof *c->back);
    const int codes[] = {sl_halo_allocate(&c->halo[0], p->ranks),
                         sl_halo_allocate(&c->halo[1], p->ranks)};
    if (!c->rank || !c->message || !c->reader || !c->met || !c->row || !c->back || codes[0] ||
        codes[1] || !allocate_rows(&c->halo[0], p->ranks, c->numbers) ||
        !allocate_rows(&c->halo[1], p->ranks, c->numbers))
        return sl_error(SL_ERR_SYSTEM, "no memory to count the rows that travel");
    locate(c, &d);
    return 0;
}

void sl_halo_counts_destroy(struct sl_halo_counts *c)
{
    sl_halo_destroy(&c->halo[0]);
    sl_halo_destroy(&c->halo[1]);
    free(c->rank);
    free(c->message);
    free(c->reader);
    free(c->met);
    free(c->row);
    free(c->back);
    *c = (struct sl_halo_counts){0};
}

void sl_halo_counts_message(struct sl_halo_counts *c, bool transposed, int64_t rows, int message,
                            int to, bool new_message)
{
    struct sl_halo *halo = &c->halo[transposed];
    halo->sent[message / c->numbers] += rows;
    halo->received[to] += rows;
    halo->messages[to] += new_message;
    if (halo->rows)
        halo->rows[(int64_t)message * c->partition->ranks + to] += rows;
}

void sl_halo_counts_add(struct sl_halo_counts *c, const int32_t *tile, int at, int64_t r,
                        int64_t count, const int32_t *columns)
{
    const int rank = c->rank[at];
    for (int64_t e = 0; e < count; e++) {
        const int i = tile[columns[e]], other = c->rank[i];
        if (other == rank)
            continue;
        if (c->reader[columns[e]] != rank + 1) { /* rank needs row columns[e] of H */
            sl_halo_counts_message(c, false, 1, c->message[i], rank,
                                   c->met[c->message[i]] != rank + 1);
            c->reader[columns[e]] = c->met[c->message[i]] = rank + 1;
        }
        if (c->row[other] != r + 1) { /* the other one needs row r of G */
            sl_halo_counts_message(c, true, 1, c->message[at], other,
                                   c->back[other] != c->message[at] + 1);
            c->row[other] = r + 1;
            c->back[other] = c->message[at] + 1;
        }
    }
}

void sl_halo_counts_sum(struct sl_runtime *rt, struct sl_halo_counts *c)
{
    for (int t = 0; t < 2; t++) {
        sl_runtime_sum(rt, c->halo[t].received, c->partition->ranks);
        sl_runtime_sum(rt, c->halo[t].sent, c->partition->ranks);
        sl_runtime_sum(rt, c->halo[t].messages, c->partition->ranks);
        if (c->halo[t].rows)
            sl_runtime_sum(rt, c->halo[t].rows,
                           (int64_t)c->partition->ranks * c->numbers * c->partition->ranks);
    }
}

/* Estimate the rows that `entries` random entries meet, among equally likely rows. */
static void expect(struct sl_halo_counts *c, int to, int k, double entries)
{
    const double rows = (double)(c->partition->row_cut[k + 1] - c->partition->row_cut[k]);
    const int64_t touched = llround(rows * (1.0 - exp(-entries / rows)));
    const bool new_message = touched && (k == 0 || c->message[k] != c->message[k - 1]);
    sl_halo_counts_message(c, false, touched, c->message[k], to, new_message);
}

void sl_halo_counts_expect(struct sl_halo_counts *c, const int64_t *nnz)
{
    const struct sl_partition *p = c->partition;
    sl_halo_destroy(&c->halo[1]); /* a symmetric graph has one */
    for (int r = 0; r < p->ranks; r++)
        for (int k = 0; k < p->tiles; k++) {
            double entries = 0.0;
            for (int i = p->rank_cut[r]; i < p->rank_cut[r + 1]; i++)
                entries += (double)nnz[(int64_t)i * p->tiles + k];
            if (c->rank[k] != r)
                expect(c, r, k, entries);
        }
}
