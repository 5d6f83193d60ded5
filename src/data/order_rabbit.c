/* Rabbit Order. Vertices in order of rising degree: each joins, as a child, the neighbouring
 * community with which modularity gains most, if it gains at all. A community's edges are summed up
 * only when its turn comes, from its own row and its children's sums, so that each edge is looked
 * at a few times in all. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/block.h"
#include "data/forest.h"
#include "data/order.h"

/* Edges to a community; `to` is one of its members, found by its root. */
struct bundle {
    int32_t to;
    float edges;
};

struct rabbit {
    const struct sl_csr *graph;
    struct sl_block *scratch;
    int32_t *parent;          // (n): the community joined, itself for a root; paths get shorter
    int32_t *child, *sibling; // (n): the newest child, the next older one; -1: none
    double *degree;           // (n): sum over the community's vertices
    struct bundle **bundles;  // (n): what a community had when it joined another; owned
    int32_t *bundle_count;    // (n)
    float *edges;             // (n): of the community at hand, by root; 0 else
    int32_t *neighbours;      // (n): roots with edges
};

static int open_rabbit(struct rabbit *r, const struct sl_csr *graph)
{
    const int64_t n = graph->rows;
    *r = (struct rabbit){.graph = graph};
    r->parent = sl_block_array(&r->scratch, n, sizeof *r->parent);
    r->child = sl_block_array(&r->scratch, n, sizeof *r->child);
    r->sibling = sl_block_array(&r->scratch, n, sizeof *r->sibling);
    r->degree = sl_block_array(&r->scratch, n, sizeof *r->degree);
    r->bundles = sl_block_array(&r->scratch, n, sizeof *r->bundles);
    r->bundle_count = sl_block_array(&r->scratch, n, sizeof *r->bundle_count);
    r->edges = sl_block_array(&r->scratch, n, sizeof *r->edges);
    r->neighbours = sl_block_array(&r->scratch, n, sizeof *r->neighbours);
    if (!r->parent || !r->child || !r->sibling || !r->degree || !r->bundles || !r->bundle_count ||
        !r->edges || !r->neighbours) {
        sl_block_free_all(&r->scratch);
        return SL_ERR_SYSTEM;
    }
    for (int32_t v = 0; v < n; v++) {
        r->parent[v] = v;
        r->child[v] = r->sibling[v] = -1;
        r->degree[v] = (double)(graph->indptr[v + 1] - graph->indptr[v]);
        r->bundles[v] = NULL;
        r->edges[v] = 0.0f;
    }
    return SL_OK;
}

static void close_rabbit(struct rabbit *r)
{
    for (int64_t v = 0; v < r->graph->rows; v++)
        free(r->bundles[v]);
    sl_block_free_all(&r->scratch);
}

/* Adds edges of community v to `to`'s; returns the new number of neighbours. */
static int32_t add_edges(struct rabbit *r, int32_t v, int32_t to, float edges, int32_t count)
{
    const int32_t root = sl_forest_root(r->parent, to);
    if (root == v)
        return count;
    if (r->edges[root] == 0.0f)
        r->neighbours[count++] = root;
    r->edges[root] += edges;
    return count;
}

/* The edges of community v to others, by root in `edges` and `neighbours`; its children's bundles
 * are used up. Returns how many neighbours there are. */
static int32_t gather(struct rabbit *r, int32_t v)
{
    int32_t count = 0;
    for (int64_t k = r->graph->indptr[v]; k < r->graph->indptr[v + 1]; k++)
        count = add_edges(r, v, r->graph->indices[k], 1.0f, count);
    for (int32_t c = r->child[v]; c >= 0; c = r->sibling[c]) {
        for (int32_t k = 0; k < r->bundle_count[c]; k++)
            count = add_edges(r, v, r->bundles[c][k].to, r->bundles[c][k].edges, count);
        free(r->bundles[c]);
        r->bundles[c] = NULL;
    }
    return count;
}

/* The neighbour that v should join, or -1. Joining u changes the modularity by 2 / total times
 * edges(u, v) - degree(u) degree(v) / total (Newman and Girvan 2004). */
static int32_t choose(const struct rabbit *r, int32_t v, int32_t count)
{
    const double total = (double)r->graph->indptr[r->graph->rows];
    double most = 0.0;
    int32_t best = -1;
    for (int32_t k = 0; k < count; k++) {
        const int32_t u = r->neighbours[k];
        const double gain = (double)r->edges[u] - r->degree[u] * r->degree[v] / total;
        if (gain > most) {
            most = gain;
            best = u;
        }
    }
    return best;
}

static int join(struct rabbit *r, int32_t v, int32_t target, int32_t count)
{
    struct bundle *bundles = malloc((size_t)count * sizeof *bundles);
    if (!bundles)
        return sl_error(SL_ERR_SYSTEM, "out of memory for the order of %lld vertices",
                        (long long)r->graph->rows);
    int32_t kept = 0;
    for (int32_t k = 0; k < count; k++)
        if (r->neighbours[k] != target)
            bundles[kept++] = (struct bundle){r->neighbours[k], r->edges[r->neighbours[k]]};
    r->bundles[v] = bundles;
    r->bundle_count[v] = kept;
    r->parent[v] = target;
    r->degree[target] += r->degree[v];
    r->sibling[v] = r->child[target];
    r->child[target] = v;
    return SL_OK;
}

static int visit(struct rabbit *r, int32_t v)
{
    const int32_t count = gather(r, v);
    const int32_t target = choose(r, v, count);
    const int rc = target < 0 ? SL_OK : join(r, v, target, count);
    for (int32_t k = 0; k < count; k++)
        r->edges[r->neighbours[k]] = 0.0f;
    return rc;
}

/* Appends the tree of `root` from place `at` on, a vertex before its children and the oldest child
 * first. `stack` has room for n. */
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

int sl_order_rabbit(const struct sl_csr *graph, uint64_t seed, int32_t *vertices)
{
    (void)seed;
    const int64_t n = graph->rows;
    struct rabbit r;
    int rc = open_rabbit(&r, graph);
    if (rc)
        return rc;
    int32_t *turns = sl_block_array(&r.scratch, n, sizeof *turns);
    rc = turns ? sl_order_by_degree(graph, false, turns) : SL_ERR_SYSTEM;
    for (int64_t t = 0; t < n && !rc; t++)
        rc = visit(&r, turns[t]);
    int64_t at = 0;
    for (int64_t t = 0; t < n && !rc; t++)
        if (r.parent[turns[t]] == turns[t])
            at = append_tree(&r, turns[t], r.neighbours, vertices, at);
    close_rabbit(&r);
    return rc;
}
