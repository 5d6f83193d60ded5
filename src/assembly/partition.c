#include "assembly/partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/tile_choice.h"
#include "core/error.h"

/* ---- Blocks of columns ---- */

/* Model of caches. CACHE_SPEED: how much faster a random row comes from the last-level cache than
 * from memory. OWN_SPEED: how much faster from a core's own cache than from the last level.
 * CACHE_PART: the share of a cache for the rows of a block. SLICE_BYTES: bytes of a wide row that
 * products take at a time. */
static const double CACHE_SPEED = 5.0, OWN_SPEED = 2.0, CACHE_PART = 0.8;
enum { WINDOWS = 8, SLICE_BYTES = 256 };

struct sample {
    double miss;   /* share of gathered rows that miss the cache */
    double visits; /* mean number of blocks in which a row of the adjacency has entries */
};

struct cache {
    int64_t bytes;
    int sharers;             /* cores of a rank that share the cache */
    double waves;            /* how many times all rows of the graph pass through the cache */
    double speed;            /* speed of the cache over the level behind it */
    int ranks;               /* ranks whose rows are on this rank */
    const int64_t *rank_cut; // (ranks + 1)
};

/* Sample the rows of all ranks, in WINDOWS windows of each rank's rows. The distinct columns of a
 * window just fill a cache of `capacity` rows. seen (n), zeroed. */
static struct sample take_sample(struct sl_runtime *rt, const struct sl_csr *a,
                                 const struct cache *cache, int64_t capacity, int64_t block_cols,
                                 int32_t *seen)
{
    int64_t distinct = 0, entries = 0, visits = 0, walked = 0;
    for (int32_t window = 1; window <= cache->ranks * WINDOWS; window++) {
        const int64_t *cut = &cache->rank_cut[(window - 1) / WINDOWS];
        int64_t r = cut[0] + (cut[1] - cut[0]) * ((window - 1) % WINDOWS) / WINDOWS, rows = 0;
        for (; r < cut[1] && rows < capacity; r++, walked++) {
            int64_t block = -1;
            for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++) {
                rows += seen[a->indices[e]] != window;
                seen[a->indices[e]] = window;
                entries++;
                visits += a->indices[e] / block_cols != block;
                block = a->indices[e] / block_cols;
            }
        }
        distinct += rows;
    }
    int64_t sums[] = {distinct, entries, visits, walked};
    sl_runtime_sum(rt, sums, 4);
    return (struct sample){.miss = sums[1] > 0 ? (double)sums[0] / (double)sums[1] : 0.0,
                           .visits = sums[3] > 0 ? (double)sums[2] / (double)sums[3] : 0.0};
}

/* clang-format off */
/* DistGNN (section IV-A) blocks the columns of dense graphs; here the cost decides. The cost is the
 * bytes that one aggregation reads and writes behind the cache; a byte from the cache costs 1 / speed:
 *
 *     one block    entries · row · (miss + hit / speed) + n · row
 *     C blocks     entries · row / speed + waves · n · row + (2 V - 1) · n · row + row pointers
 *
 * Each wave of row tiles walks over all blocks. A row has entries in V blocks. */
/* clang-format on */
static int64_t choose_block(struct sl_runtime *rt, const struct sl_csr *rows, double row,
                            const struct cache *cache)
{
    const double n = (double)rows->cols;
    const double cached = CACHE_PART * (double)cache->bytes / row; /* rows in the cache */
    const double blocks = ceil(n / cached);
    if (blocks <= 1.0 || cache->bytes <= 0)
        return rows->cols;
    int32_t *seen = calloc((size_t)rows->cols, sizeof *seen);
    if (!seen) /* ranks must choose alike, so none may go on without memory */
        sl_fatal("no memory for a sample of %lld columns", (long long)rows->cols);
    const int64_t block_cols = (int64_t)ceil(n / blocks);
    const struct sample sample =
        take_sample(rt, rows, cache, (int64_t)cached / cache->sharers + 1, block_cols, seen);
    free(seen);
    int64_t nnz = rows->indptr[rows->rows];
    sl_runtime_sum(rt, &nnz, 1);
    const double entries = (double)nnz + n, miss = sample.miss, speed = cache->speed;
    const double one = entries * row * (miss + (1.0 - miss) / speed) + n * row;
    const double many = entries * row / speed + cache->waves * n * row +
                        (2.0 * sample.visits - 1.0) * n * row + blocks * n * 4.0;
    return many < one ? block_cols : rows->cols;
}

/* If the last level holds all dense rows, blocks fit each core's own cache. A single core then
 * multiplies each tile, so each tile is a wave. */
int64_t sl_partition_block_cols(struct sl_runtime *rt, const struct sl_csr *rows, int64_t width,
                                const struct sl_caches *caches)
{
    const double row = 4.0 * (double)width;
    const int64_t all[] = {0, rows->rows};
    const bool last = row * (double)rows->cols > CACHE_PART * (double)caches->last_bytes;
    const struct cache cache = {
        .bytes = last ? caches->last_bytes : caches->own_bytes,
        .sharers = last ? caches->sharers : 1,
        .waves = last ? ceil((double)caches->tiles / caches->cores) : (double)caches->tiles,
        .speed = last ? CACHE_SPEED : OWN_SPEED,
        .ranks = caches->ranks ? caches->ranks : 1,
        .rank_cut = caches->ranks ? caches->rank_cut : all,
    };
    return choose_block(rt, rows, last ? row : fmin(row, SLICE_BYTES), &cache);
}

/* ---- Cuts ---- */

/* The weights of an equal share of all rows. The weight of a row is its number of entries, plus 1
 * for its diagonal. */
struct weights {
    const struct sl_source *source;
    int64_t first, end; /* rows of this rank's share */
    int64_t *before;    // (end - first + 1): sums of weights; NULL: rows in the file's order
};

/* Runs of rows, each with its own tiles: all rows, or a run for each part of the vertices. */
struct runs {
    int count;
    const int64_t *row; // (count + 1)
    const int *tile;    // (count + 1)
};

/* Return the weight of all rows before row r, which must be in the share or its end. */
static int64_t weight_before(const struct weights *w, int64_t r)
{
    return w->before ? w->before[r - w->first] : r + sl_source_entries_before(w->source, r);
}

/* Sum the weights in the order of the rows. Without an order, the row pointers are the sums
 * already. */
static int sum_in_order(struct sl_runtime *rt, struct weights *w)
{
    const struct sl_source *source = w->source;
    int64_t *totals = calloc((size_t)rt->ranks, sizeof *totals);
    w->before = malloc((size_t)(w->end - w->first + 1) * sizeof *w->before);
    const int code = sl_runtime_agree(
        rt, totals && w->before ? 0
                                : sl_error(SL_ERR_SYSTEM, "no memory for the weights of %lld rows",
                                           (long long)(w->end - w->first)));
    if (!code) {
        int64_t *before = w->before;
        *before = 0;
        for (int64_t r = w->first; r < w->end; r++, before++) {
            const int64_t v = source->order.vertex[r];
            before[1] = before[0] + 1 + sl_source_entries_before(source, v + 1) -
                        sl_source_entries_before(source, v);
        }
        sl_runtime_gather(rt, *before, totals);
        int64_t others = 0;
        for (int r = 0; r < rt->rank; r++)
            others += totals[r];
        for (int64_t r = 0; r <= w->end - w->first; r++)
            w->before[r] += others;
    }
    free(totals);
    return code;
}

/* Return how many rows of the share have their middles in the first `goal` of all weight. */
static int64_t count_below(const struct weights *w, double goal)
{
    int64_t low = w->first, high = w->end;
    while (low < high) {
        const int64_t r = (low + high) / 2;
        const int64_t before = weight_before(w, r), weight = weight_before(w, r + 1) - before;
        if ((double)before + 0.5 * (double)weight <= goal)
            low = r + 1;
        else
            high = r;
    }
    return low - w->first;
}

/* Set before (count + 1) to the weights before rows at[0 … count], on all ranks. Each row is in
 * some rank's share or its end. Collective. */
static void weights_before(struct sl_runtime *rt, const struct weights *w, const int64_t *at,
                           int count, int64_t *before)
{
    for (int k = 0; k <= count; k++) {
        const bool last = w->end == w->source->vertices && at[k] == w->end;
        before[k] = (at[k] >= w->first && at[k] < w->end) || last ? weight_before(w, at[k]) : 0;
    }
    sl_runtime_sum(rt, before, count + 1);
}

/* Cut each run into tiles of equal weight, with at least a row each. */
static int cut_by_nnz(struct sl_runtime *rt, const struct sl_source *source,
                      const struct runs *runs, int64_t *cut)
{
    const int64_t n = source->vertices;
    struct weights w = {
        .source = source, .first = n * rt->rank / rt->ranks, .end = n * (rt->rank + 1) / rt->ranks};
    int64_t *before = malloc((size_t)(runs->count + 1) * sizeof *before);
    int code = sl_runtime_agree(
        rt, before ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d weights", runs->count));
    if (!code && source->order.vertex)
        code = sum_in_order(rt, &w);
    if (!code)
        weights_before(rt, &w, runs->row, runs->count, before);
    for (int k = 0; !code && k < runs->count; k++) {
        const double tiles = (double)(runs->tile[k + 1] - runs->tile[k]);
        for (int t = runs->tile[k]; t < runs->tile[k + 1]; t++)
            cut[t] = count_below(&w, (double)before[k] + (double)(before[k + 1] - before[k]) *
                                                             (double)(t - runs->tile[k]) / tiles);
    }
    free(w.before);
    free(before);
    if (code)
        return code;
    sl_runtime_sum(rt, cut, runs->tile[runs->count]);
    for (int k = 0; k < runs->count; k++)
        for (int t = runs->tile[k]; t < runs->tile[k + 1]; t++) {
            /* Each tile has at least a row, and leaves a row for each later tile. */
            const int64_t most = runs->row[k + 1] - (runs->tile[k + 1] - t);
            const int64_t least = t == runs->tile[k] ? runs->row[k] : cut[t - 1] + 1;
            cut[t] = cut[t] < least || t == runs->tile[k] ? least : cut[t];
            cut[t] = cut[t] > most ? most : cut[t];
        }
    return 0;
}

static int cut_by_rows(struct sl_runtime *rt, const struct sl_source *source,
                       const struct runs *runs, int64_t *cut)
{
    (void)rt;
    (void)source;
    for (int k = 0; k < runs->count; k++) {
        const int64_t tiles = runs->tile[k + 1] - runs->tile[k];
        for (int64_t t = 0; t < tiles; t++)
            cut[runs->tile[k] + t] = runs->row[k] + (runs->row[k + 1] - runs->row[k]) * t / tiles;
    }
    return 0;
}

/* ---- Ranks ---- */

/* Give ranks consecutive tiles, in proportion to their workers. */
static void assign_tiles(struct sl_partition *p)
{
    int64_t all = 0, before = 0;
    for (int r = 0; r < p->ranks; r++)
        all += p->workers[r];
    for (int r = 0; r < p->ranks; r++) {
        p->rank_cut[r] = (int)((before * p->tiles + all - 1) / all);
        before += p->workers[r];
    }
    p->rank_cut[p->ranks] = p->tiles;
}

/* Give each rank the tiles of its part: as many as its workers are worth, but at least one, and at
 * most one a row. */
static void assign_parts(struct sl_partition *p, const int64_t *part_cut)
{
    assign_tiles(p);
    int first = 0;
    for (int r = 0; r < p->ranks; r++) {
        const int64_t rows = part_cut[r + 1] - part_cut[r];
        int64_t tiles = p->rank_cut[r + 1] - p->rank_cut[r];
        tiles = tiles < 1 ? 1 : tiles;
        p->rank_cut[r] = first;
        first += (int)(tiles > rows ? rows : tiles);
    }
    p->rank_cut[p->ranks] = p->tiles = first;
}

static int allocate(struct sl_partition *p)
{
    const size_t most = (size_t)p->tiles + (size_t)p->ranks + 1; /* a part may add a tile */
    p->row_cut = calloc(most, sizeof *p->row_cut);
    p->nnz = calloc(most, sizeof *p->nnz);
    p->rank_cut = malloc((size_t)(p->ranks + 1) * sizeof *p->rank_cut);
    p->workers = malloc((size_t)p->ranks * sizeof *p->workers);
    return p->row_cut && p->nnz && p->rank_cut && p->workers
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for %d cut points", p->tiles);
}

static void count_workers(struct sl_runtime *rt, struct sl_partition *p,
                          const struct sl_partition_options *options)
{
    if (!options->ranks)
        sl_runtime_gather(rt, options->workers, p->workers);
    for (int r = 0; r < options->ranks; r++)
        p->workers[r] = options->rank_workers ? options->rank_workers[r] : 1;
}

static int cut_runs(struct sl_runtime *rt, struct sl_partition *p, const struct sl_source *source,
                    enum sl_balance balance, const struct runs *runs)
{
    p->row_cut[p->tiles] = source->vertices;
    return balance == SL_BALANCE_ROWS ? cut_by_rows(rt, source, runs, p->row_cut)
                                      : cut_by_nnz(rt, source, runs, p->row_cut);
}

static int cut_rows(struct sl_runtime *rt, struct sl_partition *p, const struct sl_source *source,
                    enum sl_balance balance)
{
    const int64_t all_rows[] = {0, source->vertices};
    const int all_tiles[] = {0, p->tiles};
    const struct runs all = {1, all_rows, all_tiles},
                      parts = {p->ranks, source->order.part_cut, p->rank_cut};
    return cut_runs(rt, p, source, balance, source->order.part_cut ? &parts : &all);
}

/* ---- Hops ---- */

/* Return the first row in [from, to) that is more than `hop` hops away, or `to` if there is none.
 * Rows are in the order of their hops. */
static int64_t find_hop_end(const struct sl_source *source, int hop, int64_t from, int64_t to)
{
    while (from < to) {
        const int64_t middle = (from + to) / 2;
        if (sl_source_hop(source, middle) <= hop)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Runs of rows of one hop, or of several small ones. Tiles of a run are in proportion to its rows.
 */
struct hop_runs {
    struct runs runs;
    int64_t *row;
    int *tile;
    double rows; /* rows of a usual tile */
};

static void add_run(struct hop_runs *r, int64_t from, int64_t to)
{
    const int k = r->runs.count++, tiles = (int)((double)(to - from) / r->rows + 0.5);
    r->row[k] = from;
    r->row[k + 1] = to;
    r->tile[k + 1] = r->tile[k] + (tiles > 0 ? tiles : 1);
}

/* Add the runs of rows [from, to), one for each hop. Neighbouring hops with few rows are one run.
 * The last hops join the run before if they have few rows, because a tile would cost more than
 * these rows. */
static void add_part(struct hop_runs *r, const struct sl_source *source, int64_t from, int64_t to)
{
    enum { FEW = 1024 };
    const double few = r->rows / 2.0 < FEW ? r->rows / 2.0 : FEW;
    int64_t first = from;
    while (first < to) {
        int last = sl_source_hop(source, first);
        int64_t end = find_hop_end(source, last, first, to),
                next = find_hop_end(source, ++last, end, to);
        while (end < to && (double)(end - first) < few && (double)(next - end) < few) {
            end = next;
            next = find_hop_end(source, ++last, end, to);
        }
        if ((double)(to - end) < few)
            end = to;
        add_run(r, first, end);
        first = end;
    }
}

static int list_runs(struct sl_partition *p, const struct sl_source *source, struct hop_runs *r)
{
    const int64_t n = source->vertices;
    const int parts = source->order.part_cut ? source->order.parts : 1;
    const size_t most = (size_t)parts * ((size_t)source->selection.hops + 1) + 1;
    r->row = calloc(most, sizeof *r->row);
    r->tile = calloc(most, sizeof *r->tile);
    if (!r->row || !r->tile)
        return sl_error(SL_ERR_SYSTEM, "no memory for %zu runs of rows", most);
    int rank = 0; /* ranks have as many parts each, one rank after another */
    for (int q = 0; q < parts; q++) {
        for (; rank < p->ranks && (int64_t)rank * parts <= (int64_t)q * p->ranks; rank++)
            p->rank_cut[rank] = r->tile[r->runs.count];
        add_part(r, source, source->order.part_cut ? source->order.part_cut[q] : 0,
                 source->order.part_cut ? source->order.part_cut[q + 1] : n);
    }
    p->tiles = r->tile[r->runs.count];
    for (; rank <= p->ranks; rank++)
        p->rank_cut[rank] = p->tiles;
    r->runs.row = r->row;
    r->runs.tile = r->tile;
    free(p->row_cut);
    free(p->nnz);
    p->row_cut = calloc((size_t)p->tiles + 1, sizeof *p->row_cut);
    p->nnz = calloc((size_t)p->tiles + 1, sizeof *p->nnz);
    p->hop = calloc((size_t)p->tiles + 1, sizeof *p->hop);
    return p->row_cut && p->nnz && p->hop
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for %d cut points", p->tiles);
}

/* Cut the rows so that tiles end where hops end. All ranks know the hops of all rows. */
static int cut_hops(struct sl_runtime *rt, struct sl_partition *p, const struct sl_source *source,
                    enum sl_balance balance)
{
    struct hop_runs r = {.rows = (double)source->vertices / (double)p->tiles};
    int code = sl_runtime_agree(rt, list_runs(p, source, &r));
    if (!code)
        code = cut_runs(rt, p, source, balance, &r.runs);
    for (int t = 1; !code && t < p->tiles; t++)
        p->hop[t] = sl_source_hop(source, p->row_cut[t]);
    free(r.row);
    free(r.tile);
    return code;
}

int sl_partition_create(struct sl_runtime *rt, struct sl_partition *p,
                        const struct sl_source *source, const struct sl_partition_options *options)
{
    const int ranks = options->ranks ? options->ranks : rt->ranks;
    int64_t tiles = options->tiles ? options->tiles : sl_tile_choice(rt, source, options, ranks);
    if (tiles > source->vertices)
        tiles = source->vertices;
    *p = (struct sl_partition){.tiles = (int)tiles, .ranks = ranks, .asked = (int)tiles};
    const int code = sl_runtime_agree(rt, allocate(p));
    if (code)
        return code;
    count_workers(rt, p, options);
    if (source->selection.hop_cut && (source->order.part_cut || ranks == 1))
        return cut_hops(rt, p, source, options->balance);
    if (source->order.part_cut)
        assign_parts(p, source->order.part_cut);
    else
        assign_tiles(p);
    return cut_rows(rt, p, source, options->balance);
}

static double tile_imbalance(const struct sl_partition *p)
{
    double all = 0.0, most = 0.0;
    for (int t = 0; t < p->tiles; t++) {
        all += (double)p->nnz[t];
        most = fmax(most, (double)p->nnz[t]);
    }
    return most * p->tiles / all;
}

static double rank_imbalance(const struct sl_partition *p)
{
    double all = 0.0, most = 0.0, workers = 0.0;
    for (int r = 0; r < p->ranks; r++) {
        double own = 0.0;
        for (int t = p->rank_cut[r]; t < p->rank_cut[r + 1]; t++)
            own += (double)p->nnz[t];
        all += own;
        most = fmax(most, own / (double)p->workers[r]);
        workers += (double)p->workers[r];
    }
    return most * workers / all;
}

void sl_partition_measure(struct sl_runtime *rt, struct sl_partition *p, const struct sl_part *part)
{
    const int64_t *adjacency = part->data.adjacency.indptr;
    const int64_t *features = part->data.features_csr.indptr; /* NULL: features are not sparse */
    for (int t = p->rank_cut[rt->rank]; t < p->rank_cut[rt->rank + 1]; t++) {
        const int64_t first = p->row_cut[t] - part->first, end = p->row_cut[t + 1] - part->first;
        p->nnz[t] = end - first + adjacency[end] - adjacency[first];
        if (features)
            p->nnz[t] += features[end] - features[first];
    }
    sl_runtime_sum(rt, p->nnz, p->tiles);
    p->tile_imbalance = tile_imbalance(p);
    p->rank_imbalance = rank_imbalance(p);
}

void sl_partition_destroy(struct sl_partition *p)
{
    free(p->row_cut);
    free(p->rank_cut);
    free(p->nnz);
    free(p->hop);
    free(p->workers);
    *p = (struct sl_partition){0};
}
