#include "core/spread.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"

struct entry {
    int32_t row, col;
    float value;
};

static int tile_at(const int64_t *cut, int tile, int64_t at)
{
    while (at >= cut[tile + 1])
        tile++;
    return tile;
}

/* Put every entry of a row at the next place of its rank, next (ranks); with `entries` NULL only
 * count the places. In a row, columns ascend, and so do their tiles. */
static void pack_row(const struct sl_spread_source *s, int64_t r, int tile, int64_t *next,
                     struct entry *entries)
{
    const int64_t *cut = s->transposed ? s->row_cut : s->col_cut;
    int64_t count;
    const int32_t *columns;
    const float *values;
    int across = 0, rank = -1;
    s->row(s->context, r, &count, &columns, &values);
    for (int64_t e = 0; e < count; e++) {
        const int before = across;
        across = tile_at(cut, across, columns[e]);
        if (rank < 0 || across != before)
            rank = s->transposed ? s->owner(s->owner_context, across, tile)
                                 : s->owner(s->owner_context, tile, across);
        if (entries)
            entries[next[rank]] =
                (struct entry){s->transposed ? columns[e] : (int32_t)r,
                               s->transposed ? (int32_t)r : columns[e], values ? values[e] : 1.0f};
        next[rank]++;
    }
}

static void pack(const struct sl_spread_source *s, int64_t *next, struct entry *entries)
{
    int tile = 0;
    for (int64_t r = s->first; r < s->end; r++) {
        tile = tile_at(s->transposed ? s->col_cut : s->row_cut, tile, r);
        pack_row(s, r, tile, next, entries);
    }
}

static int no_memory(int64_t entries)
{
    return sl_error(SL_ERR_SYSTEM, "no memory to spread %lld entries of a sparse matrix",
                    (long long)entries);
}

static int exchange(struct sl_runtime *rt, const struct sl_spread_source *s,
                    struct entry **received, int64_t *count)
{
    const size_t ranks = (size_t)rt->ranks;
    int64_t *first = calloc(ranks + 1, sizeof *first), *next = calloc(ranks, sizeof *next);
    struct entry *entries = NULL;
    int code = sl_runtime_agree(rt, first && next ? 0 : no_memory(0));
    if (!code) {
        pack(s, first + 1, NULL);
        for (size_t r = 0; r < ranks; r++)
            first[r + 1] += first[r];
        memcpy(next, first, ranks * sizeof *next);
        entries = malloc((size_t)first[ranks] * sizeof *entries + 1);
        code = sl_runtime_agree(rt, entries ? 0 : no_memory(first[ranks]));
    }
    if (!code) {
        pack(s, next, entries);
        code = sl_runtime_exchange(rt, entries, first, sizeof *entries, (void **)received, count);
    }
    free(first);
    free(next);
    free(entries);
    return code;
}

/* Set the range of rows from the first tile row in which this rank owns a tile to the last. */
static void find_rows(const struct sl_runtime *rt, const struct sl_spread_source *s,
                      struct sl_spread *out)
{
    int from = s->tile_rows, to = 0;
    for (int i = 0; i < s->tile_rows; i++)
        for (int k = 0; k < s->tile_cols; k++)
            if (s->owner(s->owner_context, i, k) == rt->rank) {
                from = i < from ? i : from;
                to = i + 1;
            }
    out->first = from < to ? s->row_cut[from] : 0;
    out->rows = from < to ? s->row_cut[to] - out->first : 0;
}

/* Build the rows: append each entry to its row. Entries of a row come by ascending column, as ranks
 * have their rows. */
static int build(const struct entry *entries, int64_t count, struct sl_spread *out)
{
    out->indptr = calloc((size_t)out->rows + 2, sizeof *out->indptr);
    out->columns = malloc((size_t)count * sizeof *out->columns + 1);
    out->values = malloc((size_t)count * sizeof *out->values + 1);
    if (!out->indptr || !out->columns || !out->values)
        return no_memory(count);
    int64_t *end = out->indptr + 1; /* end of each row so far, at first the end of the row before */
    for (int64_t e = 0; e < count; e++)
        end[entries[e].row - out->first + 1]++;
    for (int64_t k = 1; k <= out->rows; k++)
        end[k] += end[k - 1];
    for (int64_t e = 0; e < count; e++) {
        const int64_t at = end[entries[e].row - out->first]++;
        out->columns[at] = entries[e].col;
        out->values[at] = entries[e].value;
    }
    return 0;
}

/* ---- The transpose on one rank ---- */

/* Rows of the transpose come in ranges of so many: a range's part of `indptr` stays in a cache. */
enum { RANGE_BITS = 14 };

struct ranges {
    int64_t count;
    int64_t *first;        // (count + 1): place of each range's first entry
    struct entry *entries; // (first[count])
    struct sl_spread *out;
};

/* Append every entry to its range, at next (count); with `entries` NULL only count. */
static void append(const struct sl_spread_source *s, int64_t *next, struct entry *entries)
{
    for (int64_t r = s->first; r < s->end; r++) {
        int64_t count;
        const int32_t *columns;
        const float *values;
        s->row(s->context, r, &count, &columns, &values);
        for (int64_t e = 0; e < count; e++) {
            const int64_t at = next[columns[e] >> RANGE_BITS]++;
            if (entries)
                entries[at] = (struct entry){columns[e], (int32_t)r, values ? values[e] : 1.0f};
        }
    }
}

/* Build the rows of a range. Its entries come by ascending column. */
static void build_range(void *context, int64_t i)
{
    const struct ranges *ranges = context;
    const struct sl_spread *out = ranges->out;
    const struct entry *entry = ranges->entries;
    const int64_t begin = i << RANGE_BITS, after = (i + 1) << RANGE_BITS,
                  end = after < out->rows ? after : out->rows;
    int64_t next[1 << RANGE_BITS] = {0};
    for (int64_t e = ranges->first[i]; e < ranges->first[i + 1]; e++)
        next[entry[e].row - begin]++;
    int64_t sum = ranges->first[i];
    for (int64_t k = begin; k < end; k++) {
        const int64_t count = next[k - begin];
        next[k - begin] = sum;
        sum += count;
        out->indptr[k + 1] = sum;
    }
    for (int64_t e = ranges->first[i]; e < ranges->first[i + 1]; e++) {
        const int64_t at = next[entry[e].row - begin]++;
        out->columns[at] = entry[e].col;
        out->values[at] = entry[e].value;
    }
}

static int transpose(const struct sl_spread_source *s, struct sl_spread *out)
{
    struct ranges ranges = {.count = (out->rows >> RANGE_BITS) + 1, .out = out};
    const size_t most = (size_t)ranges.count + 1;
    int64_t *next = calloc(most, sizeof *next);
    ranges.first = calloc(most, sizeof *ranges.first);
    int code = next && ranges.first ? 0 : no_memory(0);
    if (!code) {
        append(s, ranges.first + 1, NULL);
        for (int64_t i = 0; i < ranges.count; i++)
            ranges.first[i + 1] += ranges.first[i];
        memcpy(next, ranges.first, most * sizeof *next);
        const size_t count = (size_t)ranges.first[ranges.count];
        ranges.entries = malloc(count * sizeof *ranges.entries + 1);
        out->indptr = calloc((size_t)out->rows + 1, sizeof *out->indptr);
        out->columns = malloc(count * sizeof *out->columns + 1);
        out->values = malloc(count * sizeof *out->values + 1);
        if (!ranges.entries || !out->indptr || !out->columns || !out->values)
            code = no_memory((int64_t)count);
    }
    if (!code) {
        append(s, next, ranges.entries);
        sl_parallel_for(sl_parallel_threads(0), ranges.count, build_range, &ranges);
    }
    free(next);
    free(ranges.first);
    free(ranges.entries);
    return code;
}

int sl_spread_create(struct sl_runtime *rt, const struct sl_spread_source *source,
                     struct sl_spread *spread)
{
    struct entry *entries = NULL;
    int64_t count = 0;
    *spread = (struct sl_spread){.rows = source->row_cut[source->tile_rows]};
    if (rt->ranks == 1 && source->transposed)
        return transpose(source, spread);
    find_rows(rt, source, spread);
    int code = exchange(rt, source, &entries, &count);
    if (!code)
        code = sl_runtime_agree(rt, build(entries, count, spread));
    free(entries);
    return code;
}

void sl_spread_row(const void *spread, int64_t r, int64_t *count, const int32_t **columns,
                   const float **values)
{
    const struct sl_spread *s = spread;
    const int64_t first = s->indptr[r - s->first];
    *count = s->indptr[r - s->first + 1] - first;
    *columns = s->columns + first;
    *values = s->values + first;
}

void sl_spread_free(struct sl_spread *spread)
{
    free(spread->indptr);
    free(spread->columns);
    free(spread->values);
    *spread = (struct sl_spread){0};
}
