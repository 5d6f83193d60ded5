/* Rabbit Order. Vertices come in order of rising degree. Each joins, as a child, the neighbouring
 * community with the largest gain of modularity, if there is a gain. A community's edges are summed
 * up only at its turn, from its own row and its children's sums. So each edge is looked at only a
 * few times.
 *
 * Arai et al. let threads join communities as they come, so that the order depends on their timing.
 * Here they choose in batches, and the order does not depend on the threads:
 *
 *     for each batch, of a size that depends on the graph alone:
 *         in parallel, for each v: sum up v's edges, choose the community that v should join
 *         one after the other, for each v: join it, unless others have joined v or the gain is gone
 *         whoever has not joined comes again in the next batch */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "data/block.h"
#include "data/order/forest.h"
#include "data/order/order.h"

/* More batches make choices more sequential; fewer batches make threads wait less. */
enum { BATCHES = 256, LEAST_BATCH = 64, MOST_BATCH = 1 << 16 };

/* Vertices that a thread takes at a time. */
enum { CHUNK = 16 };

/* Edges to a community; `to` is one of its members, whose root is the community. */
struct bundle {
    int32_t to;
    float edges;
};

/* A thread's sums: a hash table of communities, by linear probing. */
struct sums {
    struct bundle *slot; // (capacity): a free slot has `to` -1
    uint32_t *used;      // (capacity / 2): used slots, in the order of first use
    int64_t capacity;    /* a power of two; 0: no table yet */
    int32_t count;
};

/* A vertex of the batch and its choice. */
struct turn {
    int32_t vertex, target; /* target -1: the vertex joins none */
    int32_t newest;         /* newest child of the vertex when it chose */
    float edges;            /* edges to the target */
};

struct rabbit {
    const struct sl_csr *graph;
    struct sl_block *scratch;
    int32_t *parent;          // (n): community that a vertex joined; a root is its own parent
    int32_t *child, *sibling; // (n): newest child; next older sibling; -1: none
    double *degree;           // (n): sum of the degrees of the community's vertices
    struct bundle **bundles;  // (n): bundles of a community when it chose; owned
    int32_t *bundle_count;    // (n)
    struct turn *batch;       // (batch_size)
    int64_t batch_size, count;
    int threads;
    struct sums *sums;    // (threads)
    _Atomic int64_t next; /* next turn of the batch that no thread has taken */
    atomic_bool failed;
};

static int open_rabbit(struct rabbit *r, const struct sl_csr *graph, int threads)
{
    const int64_t n = graph->rows, size = n / BATCHES;
    *r = (struct rabbit){.graph = graph, .threads = threads};
    r->batch_size = size < LEAST_BATCH ? LEAST_BATCH : size > MOST_BATCH ? MOST_BATCH : size;
    r->parent = sl_block_array(&r->scratch, n, sizeof *r->parent);
    r->child = sl_block_array(&r->scratch, n, sizeof *r->child);
    r->sibling = sl_block_array(&r->scratch, n, sizeof *r->sibling);
    r->degree = sl_block_array(&r->scratch, n, sizeof *r->degree);
    r->bundles = sl_block_array(&r->scratch, n, sizeof *r->bundles);
    r->bundle_count = sl_block_array(&r->scratch, n, sizeof *r->bundle_count);
    r->batch = sl_block_array(&r->scratch, r->batch_size, sizeof *r->batch);
    r->sums = sl_block_array(&r->scratch, threads, sizeof *r->sums);
    if (!r->parent || !r->child || !r->sibling || !r->degree || !r->bundles || !r->bundle_count ||
        !r->batch || !r->sums) {
        sl_block_free_all(&r->scratch);
        return SL_ERR_SYSTEM;
    }
    memset(r->sums, 0, (size_t)threads * sizeof *r->sums);
    for (int32_t v = 0; v < n; v++) {
        r->parent[v] = v;
        r->child[v] = r->sibling[v] = -1;
        r->degree[v] = (double)(graph->indptr[v + 1] - graph->indptr[v]);
        r->bundles[v] = NULL;
    }
    return SL_OK;
}

static void close_rabbit(struct rabbit *r)
{
    for (int64_t v = 0; v < r->graph->rows; v++)
        free(r->bundles[v]);
    for (int t = 0; t < r->threads; t++) {
        free(r->sums[t].slot);
        free(r->sums[t].used);
    }
    sl_block_free_all(&r->scratch);
}

/* ---- A thread's sums ---- */

/* Empty the table and make room for `most` communities. */
static bool reserve(struct sums *sums, int64_t most)
{
    int64_t capacity = 256;
    while (capacity < 2 * most)
        capacity *= 2;
    if (capacity <= sums->capacity)
        return true;
    free(sums->slot);
    free(sums->used);
    sums->slot = malloc((size_t)capacity * sizeof *sums->slot);
    sums->used = malloc((size_t)capacity / 2 * sizeof *sums->used);
    sums->capacity = sums->slot && sums->used ? capacity : 0;
    for (int64_t k = 0; k < sums->capacity; k++)
        sums->slot[k].to = -1;
    return sums->capacity > 0;
}

static void add(struct sums *sums, int32_t root, float edges)
{
    const uint32_t mask = (uint32_t)(sums->capacity - 1);
    uint32_t at = (uint32_t)root * 0x9E3779B1u;
    at = (at ^ at >> 15) & mask;
    while (sums->slot[at].to != root && sums->slot[at].to >= 0)
        at = (at + 1) & mask;
    if (sums->slot[at].to < 0) {
        sums->slot[at] = (struct bundle){root, 0.0f};
        sums->used[sums->count++] = at;
    }
    sums->slot[at].edges += edges;
}

static void clear(struct sums *sums)
{
    for (int32_t k = 0; k < sums->count; k++)
        sums->slot[sums->used[k]].to = -1;
    sums->count = 0;
}

/* ---- Choices ---- */

/* Entries between the prefetch of a parent and its use: the parents' array is larger than a cache.
 */
enum { AHEAD = 16 };

static void add_row(struct rabbit *r, struct sums *sums, int32_t v)
{
    const int32_t *indices = r->graph->indices;
    const int64_t end = r->graph->indptr[v + 1];
    for (int64_t k = r->graph->indptr[v]; k < end; k++) {
        if (k + AHEAD < end)
            __builtin_prefetch(&r->parent[indices[k + AHEAD]]);
        const int32_t root = sl_forest_root(r->parent, indices[k]);
        if (root != v)
            add(sums, root, 1.0f);
    }
}

/* Add the bundles of community c to v's sums, and free them. */
static void add_bundles(struct rabbit *r, struct sums *sums, int32_t v, int32_t c)
{
    const struct bundle *bundles = r->bundles[c];
    for (int32_t k = 0; k < r->bundle_count[c]; k++) {
        if (k + AHEAD < r->bundle_count[c])
            __builtin_prefetch(&r->parent[bundles[k + AHEAD].to]);
        const int32_t root = sl_forest_root(r->parent, bundles[k].to);
        if (root != v)
            add(sums, root, bundles[k].edges);
    }
    free(r->bundles[c]);
    r->bundles[c] = NULL;
}

/* Sum up the edges of community v to others. Its oldest children have no bundles any more: v's
 * bundles already contain their edges. Return false without memory. */
static bool gather(struct rabbit *r, struct sums *sums, int32_t v)
{
    int64_t most =
        r->bundles[v] ? r->bundle_count[v] : r->graph->indptr[v + 1] - r->graph->indptr[v];
    for (int32_t c = r->child[v]; c >= 0 && r->bundles[c]; c = r->sibling[c])
        most += r->bundle_count[c];
    if (!reserve(sums, most < r->graph->rows ? most : r->graph->rows))
        return false;
    if (r->bundles[v])
        add_bundles(r, sums, v, v);
    else
        add_row(r, sums, v);
    for (int32_t c = r->child[v]; c >= 0 && r->bundles[c]; c = r->sibling[c])
        add_bundles(r, sums, v, c);
    return true;
}

/* Return the gain of modularity from joining u and v, times total / 2 (Newman and Girvan 2004). */
static double gain(const struct rabbit *r, int32_t u, int32_t v, float edges)
{
    return (double)edges - r->degree[u] * r->degree[v] / (double)r->graph->indptr[r->graph->rows];
}

/* Choose the neighbour that the turn's vertex should join, or -1. */
static void choose(const struct rabbit *r, const struct sums *sums, struct turn *turn)
{
    double most = 0.0;
    turn->target = -1;
    for (int32_t k = 0; k < sums->count; k++) {
        const struct bundle *to = &sums->slot[sums->used[k]];
        const double here = gain(r, to->to, turn->vertex, to->edges);
        if (here > most) {
            most = here;
            turn->target = to->to;
            turn->edges = to->edges;
        }
    }
}

/* Keep the sums as v's bundles. Return false without memory. */
static bool keep(struct rabbit *r, const struct sums *sums, int32_t v)
{
    struct bundle *bundles = malloc((size_t)sums->count * sizeof *bundles);
    if (!bundles)
        return false;
    for (int32_t k = 0; k < sums->count; k++)
        bundles[k] = sums->slot[sums->used[k]];
    r->bundles[v] = bundles;
    r->bundle_count[v] = sums->count;
    return true;
}

static void take_turns(void *context, int64_t thread)
{
    struct rabbit *r = context;
    struct sums *sums = &r->sums[thread];
    for (int64_t t; (t = atomic_fetch_add(&r->next, CHUNK)) < r->count;)
        for (int64_t end = t + CHUNK < r->count ? t + CHUNK : r->count; t < end; t++) {
            struct turn *turn = &r->batch[t];
            turn->newest = r->child[turn->vertex];
            bool room = gather(r, sums, turn->vertex);
            choose(r, sums, turn);
            if (turn->target >= 0)
                room = room && keep(r, sums, turn->vertex);
            if (!room)
                atomic_store(&r->failed, true);
            clear(sums);
        }
}

/* ---- Joins ---- */

/* Let a vertex join its target. Return false if it must choose again. */
static bool join(struct rabbit *r, const struct turn *turn)
{
    const int32_t v = turn->vertex;
    if (turn->target < 0)
        return true;
    if (r->child[v] != turn->newest)
        return false;
    const int32_t root = sl_forest_root(r->parent, turn->target);
    if (!(gain(r, root, v, turn->edges) > 0.0))
        return false;
    r->parent[v] = root;
    r->degree[root] += r->degree[v];
    r->sibling[v] = r->child[root];
    r->child[root] = v;
    return true;
}

/* Let the batch join. Vertices that do not join come first in the next batch. The first vertex of a
 * batch always joins, as nothing has changed since it chose. */
static void join_all(struct rabbit *r)
{
    int64_t kept = 0;
    for (int64_t t = 0; t < r->count; t++)
        if (!join(r, &r->batch[t]))
            r->batch[kept++].vertex = r->batch[t].vertex;
    r->count = kept;
}

static int form_communities(struct rabbit *r, const int32_t *turns)
{
    const int64_t n = r->graph->rows;
    for (int64_t t = 0; t < n || r->count > 0;) {
        while (t < n && r->count < r->batch_size)
            r->batch[r->count++].vertex = turns[t++];
        const int64_t chunks = (r->count + CHUNK - 1) / CHUNK;
        const int64_t threads = chunks < r->threads ? chunks : r->threads;
        atomic_store(&r->next, 0);
        sl_parallel_for((int)threads, threads, take_turns, r);
        if (atomic_load(&r->failed))
            return sl_error(SL_ERR_SYSTEM, "out of memory for the order of %lld vertices",
                            (long long)n);
        join_all(r);
    }
    return SL_OK;
}

/* ---- The order ---- */

/* Append the tree of `root` from place `at` on, a vertex before its children and the oldest child
 * first. `stack` has room for n. Return the place after the tree. */
static int64_t append_tree(const struct rabbit *r, int32_t root, int32_t *stack, int32_t *vertices,
                           int64_t at)
{
    int64_t depth = 0;
    stack[depth++] = root;
    while (depth > 0) {
        const int32_t v = stack[--depth];
        vertices[at++] = v;
        for (int32_t c = r->child[v]; c >= 0; c = r->sibling[c])
            stack[depth++] = c;
    }
    return at;
}

int sl_order_rabbit_by(int threads, const struct sl_csr *graph, int32_t *vertices)
{
    const int64_t n = graph->rows;
    struct rabbit r;
    int rc = open_rabbit(&r, graph, threads);
    if (rc)
        return rc;
    int32_t *turns = sl_block_array(&r.scratch, n, sizeof *turns);
    int32_t *stack = sl_block_array(&r.scratch, n, sizeof *stack);
    rc = turns && stack ? sl_order_by_degree(graph, false, turns) : SL_ERR_SYSTEM;
    if (!rc)
        rc = form_communities(&r, turns);
    int64_t at = 0;
    for (int64_t t = 0; t < n && !rc; t++)
        if (r.parent[turns[t]] == turns[t])
            at = append_tree(&r, turns[t], stack, vertices, at);
    close_rabbit(&r);
    return rc;
}

int sl_order_rabbit(const struct sl_csr *graph, uint64_t seed, int32_t *vertices)
{
    (void)seed;
    return sl_order_rabbit_by(sl_parallel_threads(0), graph, vertices);
}
