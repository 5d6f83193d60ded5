#include "data/partition/edge_parts.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/progress.h"
#include "core/rng.h"
#include "data/block.h"
#include "data/partition/vertex_parts.h"

enum {
    BLOCK_EDGES = 1 << 25, /* edges in memory, and in random order, at a time */
    AHEAD = 16,            /* edges from prefetch to use */
};

struct cutting {
    const struct sl_csr *graph;
    bool symmetric;
    int parts, words;           /* 64-bit words of a set of parts */
    uint64_t *held;             // (rows, words): the parts that have a clone of the vertex
    uint64_t *open;             // (words): the parts with room
    int64_t *load;              // (parts): entries of each part
    int64_t capacity;           /* entries that close a part */
    uint32_t *degree;           // (rows): edges of each vertex
    int64_t most;               /* largest load */
    double lambda;              /* HDRF's weight of even loads */
    const int32_t *vertex_part; // (rows): the edge-cut that edges follow
    int (*choose)(const struct cutting *c, int32_t v, int32_t u);
};

static uint64_t *held_by(const struct cutting *c, int32_t v)
{
    return c->held + (int64_t)v * c->words;
}

/* ---- Which part takes an edge ---- */

enum among { BOTH, EITHER, ALL };

static inline uint64_t candidates(enum among among, uint64_t a, uint64_t b)
{
    return among == BOTH ? a & b : among == EITHER ? a | b : ~UINT64_C(0);
}

/* Return the least loaded part with room, or -1. */
static inline int least_loaded(const struct cutting *c, enum among among, int32_t v, int32_t u)
{
    const uint64_t *a = held_by(c, v), *b = held_by(c, u);
    int64_t least = INT64_MAX;
    int best = -1;
    for (int w = 0; w < c->words; w++)
        for (uint64_t set = candidates(among, a[w], b[w]) & c->open[w]; set; set &= set - 1) {
            const int p = 64 * w + __builtin_ctzll(set);
            if (c->load[p] < least) {
                least = c->load[p];
                best = p;
            }
        }
    return best;
}

static int choose_libra(const struct cutting *c, int32_t v, int32_t u)
{
    int p = least_loaded(c, BOTH, v, u);
    if (p < 0)
        p = least_loaded(c, EITHER, v, u);
    return p < 0 ? least_loaded(c, ALL, v, u) : p;
}

static bool has(const uint64_t *set, int p)
{
    return set[p / 64] >> (p % 64) & 1;
}

static int choose_hdrf(const struct cutting *c, int32_t v, int32_t u)
{
    const uint64_t *a = held_by(c, v), *b = held_by(c, u);
    const double both = (double)c->degree[v] + (double)c->degree[u];
    const double gain_v = 2.0 - c->degree[v] / both, gain_u = 2.0 - c->degree[u] / both;
    int64_t least = INT64_MAX;
    for (int p = 0; p < c->parts; p++)
        least = c->load[p] < least ? c->load[p] : least;
    const double even = c->lambda / (1.0 + (double)(c->most - least));
    double best = -1.0;
    int chosen = 0;
    for (int p = 0; p < c->parts; p++) {
        const double score = (has(a, p) ? gain_v : 0.0) + (has(b, p) ? gain_u : 0.0) +
                             even * (double)(c->most - c->load[p]);
        if (score > best && has(c->open, p)) {
            best = score;
            chosen = p;
        }
    }
    return chosen;
}

static int choose_followed(const struct cutting *c, int32_t v, int32_t u)
{
    const int a = c->vertex_part[v], b = c->vertex_part[u];
    const bool u_in_a = has(held_by(c, u), a), v_in_b = has(held_by(c, v), b);
    if (a == b || u_in_a != v_in_b)
        return a == b || u_in_a ? a : b;
    return c->load[a] <= c->load[b] ? a : b;
}

static int assign(struct cutting *c, int32_t v, int32_t u)
{
    const int p = c->choose(c, v, u);
    const uint64_t bit = UINT64_C(1) << (p % 64);
    held_by(c, v)[p / 64] |= bit;
    held_by(c, u)[p / 64] |= bit;
    c->load[p] += c->symmetric && v != u ? 2 : 1;
    c->most = c->load[p] > c->most ? c->load[p] : c->most;
    if (c->load[p] >= c->capacity)
        c->open[p / 64] &= ~bit;
    return p;
}

/* ---- Edges in random order ---- */

static bool is_edge(const struct cutting *c, int64_t v, int64_t k)
{
    return !c->symmetric || c->graph->indices[k] >= v;
}

static void prefetch(const struct cutting *c, uint64_t edge)
{
    __builtin_prefetch(held_by(c, (int32_t)(edge >> 32)), 1);
    __builtin_prefetch(held_by(c, (int32_t)edge), 1);
}

/* Edges between two reports of progress. */
enum { TOLD = 1 << 16 };

/* Assign the edges of a block in random order. edge[i] (count) is row << 32 | column, and becomes
 * its part. */
static void assign_block(struct cutting *c, uint64_t key, uint64_t *edge, int64_t count)
{
    uint32_t place[2 * AHEAD];
    for (int64_t i = -2 * AHEAD; i < count; i++) {
        const int64_t far = i + 2 * AHEAD, near = i + AHEAD;
        if (i >= 0) {
            uint64_t *e = &edge[place[i % (2 * AHEAD)]];
            *e = (uint64_t)assign(c, (int32_t)(*e >> 32), (int32_t)*e);
        }
        if (i >= 0 && i % TOLD == TOLD - 1)
            sl_progress_add(TOLD);
        if (far < count) {
            place[far % (2 * AHEAD)] = sl_rng_permute(key, (uint32_t)count, (uint32_t)far);
            __builtin_prefetch(&edge[place[far % (2 * AHEAD)]], 1);
        }
        if (near >= 0 && near < count)
            prefetch(c, edge[place[near % (2 * AHEAD)]]);
    }
}

/* Return the end of the rows from `first` on whose entries fit a block, or of one row. */
static int64_t block_end(const struct sl_csr *graph, int64_t first)
{
    int64_t end = first + 1;
    while (end < graph->rows && graph->indptr[end + 1] - graph->indptr[first] <= BLOCK_EDGES)
        end++;
    return end;
}

static int64_t largest_block(const struct sl_csr *graph)
{
    int64_t most = 0;
    for (int64_t first = 0, end; first < graph->rows; first = end) {
        end = block_end(graph, first);
        const int64_t entries = graph->indptr[end] - graph->indptr[first];
        most = entries > most ? entries : most;
    }
    return most;
}

static void assign_rows(struct cutting *c, uint64_t key, int64_t first, int64_t end, uint64_t *edge,
                        int32_t *part)
{
    const struct sl_csr *graph = c->graph;
    int64_t count = 0;
    for (int64_t v = first; v < end; v++)
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++)
            if (is_edge(c, v, k))
                edge[count++] = (uint64_t)v << 32 | (uint32_t)graph->indices[k];
    assign_block(c, key, edge, count);
    count = 0;
    for (int64_t v = first; v < end; v++)
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++)
            if (is_edge(c, v, k))
                part[k] = (int32_t)edge[count++];
}

/* Set part[k] below the diagonal from part[k] above it. The rows v of column u come in order, as
 * the columns v of row u do. */
static void mirror(const struct sl_csr *graph, int64_t *next, int32_t *part)
{
    memcpy(next, graph->indptr, (size_t)graph->rows * sizeof *next);
    for (int64_t v = 0; v < graph->rows; v++)
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++)
            if (graph->indices[k] > v)
                part[next[graph->indices[k]]++] = part[k];
}

/* ---- Partitions ---- */

/* Count the edges at every vertex; in a directed graph a loop counts twice. */
static void count_degrees(const struct sl_csr *graph, bool symmetric, uint32_t *degree)
{
    memset(degree, 0, (size_t)graph->rows * sizeof *degree);
    for (int64_t v = 0; v < graph->rows; v++) {
        degree[v] += (uint32_t)(graph->indptr[v + 1] - graph->indptr[v]);
        for (int64_t k = graph->indptr[v]; !symmetric && k < graph->indptr[v + 1]; k++)
            degree[graph->indices[k]]++;
    }
}

static int prepare(struct cutting *c, struct sl_block **scratch)
{
    const int64_t n = c->graph->rows, nnz = c->graph->indptr[n];
    const int64_t mean = (nnz + c->parts - 1) / c->parts, most = nnz / c->parts * 103 / 100;
    c->words = (c->parts + 63) / 64;
    c->capacity = mean + 1 > most ? mean + 1 : most;
    c->held = sl_block_array(scratch, n * c->words, sizeof *c->held);
    c->open = sl_block_array(scratch, c->words, sizeof *c->open);
    c->load = sl_block_array(scratch, c->parts, sizeof *c->load);
    c->degree = sl_block_array(scratch, n, sizeof *c->degree);
    if (!c->held || !c->open || !c->load || !c->degree)
        return SL_ERR_SYSTEM;
    memset(c->held, 0, (size_t)(n * c->words) * sizeof *c->held);
    memset(c->load, 0, (size_t)c->parts * sizeof *c->load);
    for (int w = 0; w < c->words; w++)
        c->open[w] = ~UINT64_C(0);
    if (c->parts % 64)
        c->open[c->words - 1] = (UINT64_C(1) << (c->parts % 64)) - 1;
    count_degrees(c->graph, c->symmetric, c->degree);
    return SL_OK;
}

static int cut(struct cutting *c, uint64_t seed, int32_t *part)
{
    struct sl_block *scratch = NULL;
    const struct sl_csr *graph = c->graph;
    uint64_t *edge = sl_block_array(&scratch, largest_block(graph), sizeof *edge);
    int64_t *next = sl_block_array(&scratch, c->symmetric ? graph->rows : 0, sizeof *next);
    const int rc = edge && next ? prepare(c, &scratch) : SL_ERR_SYSTEM;
    uint32_t block = 0;
    sl_progress_count(c->symmetric ? (graph->indptr[graph->rows] + 1) / 2
                                   : graph->indptr[graph->rows]);
    for (int64_t first = 0, end; !rc && first < graph->rows; first = end, block++) {
        end = block_end(graph, first);
        assign_rows(c, sl_rng_key(seed, SL_RNG_PARTS, block, 1), first, end, edge, part);
    }
    if (!rc && c->symmetric)
        mirror(graph, next, part);
    sl_block_free_all(&scratch);
    return rc;
}

int sl_edge_parts_libra(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed,
                        int32_t *part)
{
    struct cutting c = {
        .graph = graph, .symmetric = symmetric, .parts = parts, .choose = choose_libra};
    return cut(&c, seed, part);
}

int sl_edge_parts_hdrf(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed,
                       double lambda, int32_t *part)
{
    struct cutting c = {.graph = graph,
                        .symmetric = symmetric,
                        .parts = parts,
                        .lambda = lambda,
                        .choose = choose_hdrf};
    return cut(&c, seed, part);
}

int sl_edge_parts_follow(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed,
                         const int32_t *vertex_part, int32_t *part)
{
    struct cutting c = {.graph = graph,
                        .symmetric = symmetric,
                        .parts = parts,
                        .vertex_part = vertex_part,
                        .choose = choose_followed};
    return cut(&c, seed, part);
}

/* ---- The report ---- */

static void count_entries(struct cutting *c, const int32_t *part)
{
    const struct sl_csr *graph = c->graph;
    for (int64_t v = 0; v < graph->rows; v++)
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++) {
            const uint64_t bit = UINT64_C(1) << (part[k] % 64);
            held_by(c, (int32_t)v)[part[k] / 64] |= bit;
            held_by(c, graph->indices[k])[part[k] / 64] |= bit;
            c->load[part[k]]++;
        }
}

/* Return the number of clones of vertex v, and count each in its part's clones. */
static int64_t count_clones(const struct cutting *c, int32_t v, int64_t *clones)
{
    int64_t count = 0;
    for (int w = 0; w < c->words; w++)
        for (uint64_t set = held_by(c, v)[w]; set; set &= set - 1, count++)
            clones[64 * w + __builtin_ctzll(set)]++;
    return count;
}

int sl_edge_parts_report(const struct sl_csr *graph, bool symmetric, int parts, const int32_t *part,
                         struct sl_edge_parts_report *out)
{
    struct sl_block *scratch = NULL;
    struct cutting c = {.graph = graph, .symmetric = symmetric, .parts = parts};
    int64_t *clones = sl_block_array(&scratch, parts, sizeof *clones), all = 0, split = 0;
    const double n = (double)graph->rows, elsewhere = 1.0 - 1.0 / parts;
    double random = 0.0;
    const int rc = clones ? prepare(&c, &scratch) : SL_ERR_SYSTEM;
    if (!rc) {
        memset(clones, 0, (size_t)parts * sizeof *clones);
        count_entries(&c, part);
    }
    for (int64_t v = 0; !rc && v < graph->rows; v++) {
        const int64_t count = count_clones(&c, (int32_t)v, clones);
        all += count > 0 ? count : 1;
        split += count > 1;
        random += count > 0 ? parts * (1.0 - pow(elsewhere, c.degree[v])) : 1.0;
    }
    if (!rc)
        *out = (struct sl_edge_parts_report){
            .replication = n > 0.0 ? (double)all / n : 1.0,
            .random = n > 0.0 ? random / n : 1.0,
            .split = n > 0.0 ? (double)split / n : 0.0,
            .edge_balance = sl_parts_balance(c.load, parts),
            .vertex_balance = sl_parts_balance(clones, parts),
        };
    sl_block_free_all(&scratch);
    return rc;
}
