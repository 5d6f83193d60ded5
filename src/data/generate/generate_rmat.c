/* Draw edges: an edge falls into a quarter of the adjacency matrix, into a quarter of that quarter,
 * and so on down to one entry:
 *
 *     in parallel, for each chunk of edges: draw them, and group them by blocks of rows
 *     in parallel, for each block of rows:
 *         gather its edges from all chunks, sort them, and drop duplicates
 *     assemble the rows; for a symmetric graph these are larger neighbours only, and mirrored */
#include "data/generate/generate_rmat.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/rng.h"
#include "data/block_rows.h"
#include "data/generate/draw_vertices.h"

/* Sub-streams of SL_RNG_GENERATE, so that no choice depends on another. */
enum stream { EDGES = 40, PERMUTATION };

enum {
    CHUNK = 1 << 16, /* edges of a chunk: their entries fit a cache while they are grouped */
    LANES = 16,      /* edges at a time: two vectors of eight words */
    LEVELS = 4,      /* levels of quarters per 64 random bits */
    DIGIT = 11       /* bits of a radix sort's pass */
};

struct drawing {
    const struct sl_rmat_options *options;
    int threads;
    int64_t vertices, edges, chunks;
    uint64_t edge_key, permutation_key;
    uint32_t a, ab, abc; /* upper ends of the first three quarters, in 2^-16 */
    struct sl_block_rows rows;
    struct sl_block *scratch;
    uint64_t *entries; // (edges): row << scale | column, chunk after chunk
    uint32_t *end;     // (chunks, blocks): end of each block's entries in the chunk
    atomic_bool failed;
};

static int check_options(const struct sl_rmat_options *o)
{
    if (o->scale < 1 || o->scale > 30)
        return sl_error(SL_ERR_USAGE, "scale is %" PRId64 ", expected 1 to 30: 2^scale vertices",
                        o->scale);
    if (!(o->edge_factor >= 0.0 && o->edge_factor <= 1e6))
        return sl_error(SL_ERR_USAGE, "edge factor is %g, expected 0 to 10^6", o->edge_factor);
    if (!(o->a >= 0.0 && o->b >= 0.0 && o->c >= 0.0 && o->a + o->b + o->c <= 1.0 + 1e-9))
        return sl_error(SL_ERR_USAGE,
                        "a, b and c are %g, %g and %g, expected probabilities that sum up to 1 at "
                        "most",
                        o->a, o->b, o->c);
    return sl_draw_check_vertices(o->features, o->classes);
}

/* --- Edges, by chunks --- */

/* Go down one level; `quarter` has random numbers of 16 bits. The loops are vector code. */
static inline void descend(const struct drawing *d, const uint32_t *quarter, uint32_t *row,
                           uint32_t *column)
{
    for (int i = 0; i < LANES; i++) {
        const uint32_t lower = quarter[i] >= d->ab;
        const uint32_t right = (quarter[i] >= d->a) - lower + (quarter[i] >= d->abc);
        row[i] = row[i] * 2 + lower;
        column[i] = column[i] * 2 + right;
    }
}

static void draw_batch(const struct drawing *d, int64_t first, uint32_t *row, uint32_t *column)
{
    const uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32) * 8;
    memset(row, 0, LANES * sizeof *row);
    memset(column, 0, LANES * sizeof *column);
    for (uint32_t level = 0; level < d->options->scale; level += LEVELS) {
        uint32_t x[LANES], y[LANES], quarter[LANES];
        for (uint32_t i = 0; i < LANES; i++)
            sl_rng_block(d->edge_key, low + i, high + level / LEVELS, &x[i], &y[i]);
        for (uint32_t l = 0; l < LEVELS && level + l < d->options->scale; l++) {
            for (int i = 0; i < LANES; i++)
                quarter[i] = (l < 2 ? x[i] : y[i]) >> 16 * (l % 2) & 0xFFFF;
            descend(d, quarter, row, column);
        }
    }
}

static uint64_t make_entry(const struct drawing *d, uint32_t row, uint32_t column)
{
    if (d->options->permute) {
        row = sl_rng_permute(d->permutation_key, (uint32_t)d->vertices, row);
        column = sl_rng_permute(d->permutation_key, (uint32_t)d->vertices, column);
    }
    if (d->options->symmetric && row > column) {
        const uint32_t larger = row;
        row = column;
        column = larger;
    }
    return (uint64_t)row << d->options->scale | column;
}

/* Draw the entries of edges first … end - 1, without loops. Return their number. */
static int64_t draw_edges(const struct drawing *d, int64_t first, int64_t end, uint64_t *entries)
{
    int64_t count = 0;
    for (; first < end; first += LANES) {
        uint32_t row[LANES], column[LANES];
        draw_batch(d, first, row, column);
        for (int64_t i = 0; i < LANES && first + i < end; i++) {
            entries[count] = make_entry(d, row[i], column[i]);
            count += row[i] != column[i];
        }
    }
    return count;
}

/* Return the block of rows that an entry is in. */
static int64_t block_of(const struct drawing *d, uint64_t entry)
{
    return (int64_t)(entry >> d->options->scale >> d->rows.bits);
}

/* Group entries by block, with a counting sort. `next` (blocks) is zero at first; it becomes the
 * ends of the blocks' entries. */
static void group_entries(const struct drawing *d, const uint64_t *entries, int64_t count,
                          uint32_t *next, uint64_t *grouped)
{
    uint32_t at = 0;
    for (int64_t k = 0; k < count; k++)
        next[block_of(d, entries[k])]++;
    for (int64_t block = 0; block < d->rows.block_count; block++) {
        const uint32_t entries_of_block = next[block];
        next[block] = at;
        at += entries_of_block;
    }
    for (int64_t k = 0; k < count; k++)
        grouped[next[block_of(d, entries[k])]++] = entries[k];
}

static void draw_chunk(void *context, int64_t chunk)
{
    struct drawing *d = context;
    const int64_t first = chunk * CHUNK, end = first + CHUNK;
    uint32_t *next = d->end + chunk * d->rows.block_count;
    uint64_t *entries = malloc(CHUNK * sizeof *entries);
    if (!entries) {
        atomic_store(&d->failed, true);
        return;
    }
    const int64_t count = draw_edges(d, first, end < d->edges ? end : d->edges, entries);
    memset(next, 0, (size_t)d->rows.block_count * sizeof *next);
    group_entries(d, entries, count, next, d->entries + first);
    free(entries);
}

/* --- Rows, by blocks --- */

/* Set *begin to a chunk's entries in a block; return their number. */
static int64_t find_entries(const struct drawing *d, int64_t chunk, int64_t block,
                            const uint64_t **begin)
{
    const uint32_t *end = d->end + chunk * d->rows.block_count;
    const uint32_t first = block > 0 ? end[block - 1] : 0;
    *begin = d->entries + chunk * CHUNK + first;
    return end[block] - first;
}

static int64_t count_entries(const struct drawing *d, int64_t block)
{
    const uint64_t *begin;
    int64_t count = 0;
    for (int64_t chunk = 0; chunk < d->chunks; chunk++)
        count += find_entries(d, chunk, block, &begin);
    return count;
}

static void gather_entries(const struct drawing *d, int64_t block, uint64_t *out)
{
    for (int64_t chunk = 0; chunk < d->chunks; chunk++) {
        const uint64_t *begin;
        const int64_t count = find_entries(d, chunk, block, &begin);
        memcpy(out, begin, (size_t)count * sizeof *out);
        out += count;
    }
}

/* Sort by the lowest `bits` bits, with a radix sort. Return the array with the result: `entries` or
 * `other`. */
static uint64_t *sort_entries(uint64_t *entries, uint64_t *other, int64_t count, int bits)
{
    for (int shift = 0; shift < bits; shift += DIGIT) {
        int64_t next[(1 << DIGIT) + 1] = {0};
        const uint64_t mask = (1 << DIGIT) - 1;
        for (int64_t k = 0; k < count; k++)
            next[(entries[k] >> shift & mask) + 1]++;
        for (uint64_t digit = 0; digit < mask; digit++)
            next[digit + 1] += next[digit];
        for (int64_t k = 0; k < count; k++)
            other[next[entries[k] >> shift & mask]++] = entries[k];
        uint64_t *sorted = other;
        other = entries;
        entries = sorted;
    }
    return entries;
}

/* Make the rows of a block from its sorted entries; return false without memory. */
static bool make_rows(struct drawing *d, int64_t block, const uint64_t *entries, int64_t count)
{
    struct sl_ids *list = &d->rows.blocks[block];
    const int64_t begin = sl_block_rows_begin(&d->rows, block);
    const int64_t end = sl_block_rows_begin(&d->rows, block + 1);
    const uint64_t column = (UINT64_C(1) << d->options->scale) - 1;
    memset(d->rows.length + begin, 0, (size_t)(end - begin) * sizeof *d->rows.length);
    if (!sl_ids_reserve(list, count))
        return false;
    for (int64_t k = 0; k < count; k++) {
        if (k > 0 && entries[k] == entries[k - 1])
            continue;
        list->ids[list->count++] = (int32_t)(entries[k] & column);
        d->rows.length[entries[k] >> d->options->scale]++;
    }
    return true;
}

static void draw_block(void *context, int64_t block)
{
    struct drawing *d = context;
    const int64_t count = count_entries(d, block);
    uint64_t *entries = malloc(2 * (size_t)count * sizeof *entries + 1);
    bool fine = entries;
    if (fine) {
        gather_entries(d, block, entries);
        const int bits = d->rows.bits + (int)d->options->scale;
        fine = make_rows(d, block, sort_entries(entries, entries + count, count, bits), count);
    }
    free(entries);
    if (!fine)
        atomic_store(&d->failed, true);
}

/* --- All of it --- */

static int prepare(const struct sl_rmat_options *o, struct drawing *d)
{
    d->options = o;
    d->threads = sl_parallel_threads(o->threads);
    d->vertices = INT64_C(1) << o->scale;
    d->edges = llround(o->edge_factor * (double)d->vertices);
    d->chunks = (d->edges + CHUNK - 1) / CHUNK;
    d->edge_key = sl_rng_key(o->seed, SL_RNG_GENERATE, 0, EDGES);
    d->permutation_key = sl_rng_key(o->seed, SL_RNG_GENERATE, 0, PERMUTATION);
    d->a = (uint32_t)lround(o->a * 0x1p16);
    d->ab = (uint32_t)lround((o->a + o->b) * 0x1p16);
    d->abc = (uint32_t)lround((o->a + o->b + o->c) * 0x1p16);
    if (sl_block_rows_create(d->vertices, &d->rows))
        return SL_ERR_SYSTEM;
    d->entries = sl_block_array(&d->scratch, d->edges, sizeof *d->entries);
    d->end = sl_block_array(&d->scratch, d->chunks * d->rows.block_count, sizeof *d->end);
    return d->entries && d->end ? SL_OK : SL_ERR_SYSTEM;
}

static int draw_rows(struct drawing *d)
{
    sl_progress_phase("edges");
    sl_parallel_for(d->threads, d->chunks, draw_chunk, d);
    sl_progress_phase("rows");
    if (!atomic_load(&d->failed))
        sl_parallel_for(d->threads, d->rows.block_count, draw_block, d);
    return atomic_load(&d->failed)
               ? sl_error(SL_ERR_SYSTEM, "out of memory for the edges of a random graph")
               : SL_OK;
}

static int draw_graph(const struct sl_rmat_options *o, struct sl_dataset *out)
{
    struct drawing d = {0};
    int rc = prepare(o, &d);
    if (!rc)
        rc = draw_rows(&d);
    sl_block_free_all(&d.scratch);
    if (!rc)
        rc =
            sl_block_rows_assemble(&d.rows, o->symmetric, d.threads, &out->blocks, &out->adjacency);
    sl_block_rows_destroy(&d.rows);
    out->vertices = d.vertices;
    out->symmetric = o->symmetric;
    return rc;
}

int sl_generate_rmat(const struct sl_rmat_options *options, struct sl_dataset *out)
{
    *out = (struct sl_dataset){0};
    int rc = check_options(options);
    if (!rc)
        rc = sl_dataset_name(out, "rmat %" PRId64, options->scale);
    if (!rc)
        rc = draw_graph(options, out);
    if (!rc)
        rc = sl_draw_random_vertices(
            &(struct sl_draw_vertices){options->features, options->classes, options->seed,
                                       sl_parallel_threads(options->threads)},
            out);
    if (rc)
        sl_dataset_close(out);
    return rc;
}
