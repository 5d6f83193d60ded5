#include "predict/cover_counts.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/crossing.h"

static int no_memory(const struct sl_partition *p)
{
    return sl_error(SL_ERR_SYSTEM, "no memory to count the covers of %lld rows",
                    (long long)p->row_cut[p->tiles]);
}

/* ---- Counts ---- */

/* Messages are counted apart where those of rows are. */
static int create_cover(struct sl_halo *halo, int ranks)
{
    const size_t messages = (size_t)ranks * (size_t)ranks * (size_t)halo->numbers;
    struct sl_cover *cover = halo->cover = calloc(1, sizeof *cover);
    const int code = cover ? sl_cover_allocate(cover, ranks) : SL_ERR_SYSTEM;
    if (!code && halo->rows) {
        cover->rows = calloc(messages, sizeof *cover->rows);
        cover->entries = calloc(messages, sizeof *cover->entries);
    }
    return !code && (!halo->rows || (cover->rows && cover->entries))
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %d ranks", ranks);
}

int sl_cover_counts_create(struct sl_cover_counts *c, const struct sl_runtime *rt,
                           const struct sl_partition *p, int64_t row_bytes,
                           const struct sl_assembly *assembly)
{
    const size_t rows = (size_t)p->row_cut[p->tiles] + 1, tiles = (size_t)p->tiles;
    *c = (struct sl_cover_counts){.assembly = assembly};
    c->tiles.tiles = p->tiles;
    int code = sl_halo_counts_create(&c->rows, rt, p, row_bytes);
    for (int t = 0; !code && t < 2; t++)
        code = create_cover(&c->rows.halo[t], p->ranks);
    if (code)
        return code;
    c->tiles.nnz = calloc(tiles * tiles, sizeof *c->tiles.nnz);
    c->tiles.back = calloc(tiles * tiles, sizeof *c->tiles.back);
    c->bounds = calloc((size_t)p->ranks + 1, sizeof *c->bounds);
    c->place = malloc(rows * sizeof *c->place);
    c->by_row = calloc(rows, sizeof *c->by_row);
    c->row_message = calloc((size_t)c->rows.numbers, sizeof *c->row_message);
    c->result_message = calloc((size_t)c->rows.numbers, sizeof *c->result_message);
    if (!c->tiles.nnz || !c->tiles.back || !c->bounds || !c->place || !c->by_row ||
        !c->row_message || !c->result_message)
        return no_memory(p);
    for (int r = 0; r <= p->ranks; r++)
        c->bounds[r] = p->row_cut[p->rank_cut[r]];
    return 0;
}

void sl_cover_counts_destroy(struct sl_cover_counts *c)
{
    sl_halo_counts_destroy(&c->rows);
    sl_tile_counts_destroy(&c->tiles);
    free(c->bounds);
    free(c->place);
    free(c->by_row);
    free(c->row_message);
    free(c->result_message);
    *c = (struct sl_cover_counts){0};
}

/* ---- A pair of ranks ---- */

/* Rows of rank `to` meet columns of rank `from`. */
struct pair {
    bool transposed;
    int to, from;
    int64_t count;
    const struct sl_crossing *entry; // (count), row by row
};

/* The first crossing of a column. sl_crossings_cover has numbered the columns; a counted column has
 * no number any more. */
static void count_row(struct sl_cover_counts *c, const struct pair *pair, int32_t col)
{
    const int message = c->rows.message[c->tile[col]];
    bool *met = &c->row_message[message % c->rows.numbers];
    if (c->place[col] < 0)
        return;
    sl_halo_counts_message(&c->rows, pair->transposed, 1, message, pair->to, !*met);
    c->place[col] = -1;
    *met = true;
}

/* The place of the message from the rank that makes the result of a row. */
static int64_t message_of(const struct sl_cover_counts *c, const struct pair *pair, int32_t row)
{
    return (int64_t)pair->from * c->rows.partition->ranks * c->rows.numbers +
           c->rows.message[c->tile[row]];
}

static void count_result(struct sl_cover_counts *c, const struct pair *pair, int32_t row)
{
    struct sl_cover *cover = c->rows.halo[pair->transposed].cover;
    bool *met = &c->result_message[c->rows.message[c->tile[row]] % c->rows.numbers];
    if (cover->rows)
        cover->rows[message_of(c, pair, row)]++;
    cover->received[pair->to]++;
    cover->sent[pair->from]++;
    cover->bytes[pair->from] += sl_counts_piece_bytes(1) - sl_counts_piece_bytes(0);
    if (*met)
        return;
    cover->messages[pair->to]++;
    cover->made[pair->from]++;
    cover->tiles[pair->from]++;
    cover->bytes[pair->from] += sl_counts_piece_bytes(0);
    *met = true;
}

/* An entry is the sender's. */
static void move_entry(struct sl_cover_counts *c, const struct pair *pair,
                       const struct sl_crossing *x)
{
    struct sl_cover *cover = c->rows.halo[pair->transposed].cover;
    const int64_t *row_cut = c->rows.partition->row_cut;
    const int32_t tile = c->tile[x->col];
    int64_t *nnz = pair->transposed ? c->tiles.back : c->tiles.nnz;
    nnz[(int64_t)c->tile[x->row] * c->tiles.tiles + tile]--;
    cover->nnz[pair->from]++;
    if (cover->entries)
        cover->entries[message_of(c, pair, x->row)]++;
    cover->bytes[pair->from] +=
        sl_counts_entry_bytes(row_cut[tile + 1] - row_cut[tile], c->tiles.numbers);
}

static void count_pair(struct sl_cover_counts *c, const struct pair *pair)
{
    int32_t row = -1;
    memset(c->row_message, 0, (size_t)c->rows.numbers * sizeof *c->row_message);
    memset(c->result_message, 0, (size_t)c->rows.numbers * sizeof *c->result_message);
    for (int64_t k = 0; k < pair->count; k++) {
        const struct sl_crossing *x = &pair->entry[k];
        if (c->by_row[x->col]) {
            count_row(c, pair, x->col);
            continue;
        }
        if (x->row != row)
            count_result(c, pair, x->row);
        row = x->row;
        move_entry(c, pair, x);
    }
}

/* ---- All pairs of a rank ---- */

static int compare(const void *a, const void *b)
{
    const struct sl_crossing *x = a, *y = b;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row)
                            : (x->col > y->col) - (x->col < y->col);
}

/* Count the entries of the transpose: rank `from` has their rows. */
static int count_transposed(struct sl_cover_counts *c, int to, int from, int64_t count,
                            struct sl_crossing *entry)
{
    for (int64_t k = 0; k < count; k++)
        entry[k] = (struct sl_crossing){entry[k].col, entry[k].row, entry[k].value};
    qsort(entry, (size_t)count, sizeof *entry, compare);
    const int code = sl_crossings_cover(entry, count, sl_operands_weights(c->assembly, false, true),
                                        c->place, c->by_row);
    if (!code)
        count_pair(c, &(struct pair){true, from, to, count, entry});
    return code;
}

static int count_rank(struct sl_cover_counts *c, const struct sl_adjacency_rows *rows, int rank)
{
    struct sl_crossings list;
    int code = sl_crossings_list(&list, c->rows.partition->ranks, c->bounds, c->bounds[rank],
                                 c->bounds[rank + 1], sl_adjacency_row, rows, NULL);
    if (!code)
        code = sl_crossings_cover_all(&list,
                                      sl_operands_weights(c->assembly, c->tiles.symmetric, false),
                                      c->place, c->by_row);
    for (int q = 0; !code && q < list.ranks; q++) {
        struct sl_crossing *entry = list.entry + list.rank_first[q];
        const int64_t count = list.rank_first[q + 1] - list.rank_first[q];
        count_pair(c, &(struct pair){false, rank, q, count, entry});
        if (!c->tiles.symmetric)
            code = count_transposed(c, rank, q, count, entry);
    }
    sl_crossings_free(&list);
    return code;
}

int sl_cover_counts_add(struct sl_cover_counts *c, const struct sl_adjacency_rows *rows,
                        const int32_t *tile, bool symmetric, int64_t numbers, int from, int to)
{
    int code = 0;
    c->tile = tile;
    c->tiles.symmetric = symmetric;
    c->tiles.numbers = numbers;
    for (int r = from; !code && r < to; r++)
        code = count_rank(c, rows, r);
    c->tile = NULL;
    return code;
}

/* ---- All ranks ---- */

static void sum_cover(struct sl_runtime *rt, struct sl_cover *cover, int ranks, int numbers)
{
    const int64_t messages = (int64_t)ranks * ranks * numbers;
    int64_t *const counts[] = {cover->received, cover->sent,  cover->messages, cover->made,
                               cover->nnz,      cover->tiles, cover->bytes};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        sl_runtime_sum(rt, counts[k], ranks);
    if (cover->rows) {
        sl_runtime_sum(rt, cover->rows, messages);
        sl_runtime_sum(rt, cover->entries, messages);
    }
}

void sl_cover_counts_sum(struct sl_runtime *rt, struct sl_cover_counts *c,
                         const struct sl_tile_counts *all)
{
    const int64_t tiles = c->tiles.tiles;
    c->tiles.symmetric = all->symmetric;
    c->tiles.numbers = all->numbers;
    c->tiles.entries = all->entries;
    sl_halo_counts_sum(rt, &c->rows);
    sl_runtime_sum(rt, c->tiles.nnz, tiles * tiles);
    sl_runtime_sum(rt, c->tiles.back, tiles * tiles);
    for (int64_t i = 0; i < tiles; i++)
        for (int64_t k = 0; k < tiles; k++) {
            c->tiles.nnz[i * tiles + k] += all->nnz[i * tiles + k];
            c->tiles.back[i * tiles + k] += all->nnz[k * tiles + i];
        }
    for (int t = 0; t < (c->tiles.symmetric ? 1 : 2); t++)
        sum_cover(rt, c->rows.halo[t].cover, c->rows.partition->ranks, c->rows.numbers);
    if (c->tiles.symmetric)
        sl_halo_destroy(&c->rows.halo[1]);
}
