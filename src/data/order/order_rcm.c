/* Reverse Cuthill-McKee: breadth-first search, neighbours by rising degree, the whole sequence
 * reversed. Edges then join successive levels of the search. */
#include <stdlib.h>

#include "core/error.h"
#include "data/block.h"
#include "data/order/order.h"

/* Most searches for a better start: each lengthens the longest path found, and a few are enough. */
enum { MOST_SEARCHES = 8 };

struct search {
    const struct sl_csr *graph;
    int32_t *queue; // (n): vertices as they are found; finished components come first
    bool *seen;     // (n)
    uint64_t *keys; // (longest row): degree and number of the last neighbours found
};

/* Levels of a search, as places in the queue. */
struct levels {
    int64_t last, end; /* the last level is queue[last … end-1] */
    int64_t height;    /* levels after the first */
};

static int64_t degree_of(const struct search *s, int32_t v)
{
    return s->graph->indptr[v + 1] - s->graph->indptr[v];
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Append the neighbours of v that no search has seen. Return the queue's new end. */
static int64_t append_neighbours(struct search *s, int32_t v, int64_t end, bool by_degree)
{
    const int64_t first = end;
    for (int64_t k = s->graph->indptr[v]; k < s->graph->indptr[v + 1]; k++) {
        const int32_t u = s->graph->indices[k];
        if (s->seen[u])
            continue;
        s->seen[u] = true;
        s->keys[end - first] = (uint64_t)degree_of(s, u) << 32 | (uint32_t)u;
        s->queue[end++] = u;
    }
    if (by_degree && end - first > 1) {
        qsort(s->keys, (size_t)(end - first), sizeof *s->keys, compare_keys);
        for (int64_t at = first; at < end; at++)
            s->queue[at] = (int32_t)(s->keys[at - first] & UINT32_MAX);
    }
    return end;
}

static struct levels search(struct search *s, int64_t first, int32_t start, bool by_degree)
{
    struct levels found = {.last = first, .end = first + 1};
    int64_t level_end = first + 1;
    s->queue[first] = start;
    s->seen[start] = true;
    for (int64_t at = first; at < found.end; at++) {
        if (at == level_end) {
            found.height++;
            found.last = at;
            level_end = found.end;
        }
        found.end = append_neighbours(s, s->queue[at], found.end, by_degree);
    }
    return found;
}

/* Return an end of one of the longest shortest paths, or a vertex close to one: the vertex of least
 * degree in the last level, as long as searches get deeper. */
static int32_t find_start(struct search *s, int64_t first, int32_t start)
{
    int64_t height = -1;
    for (int searches = 0; searches < MOST_SEARCHES; searches++) {
        const struct levels found = search(s, first, start, false);
        for (int64_t at = first; at < found.end; at++)
            s->seen[s->queue[at]] = false;
        if (found.height <= height)
            break;
        height = found.height;
        start = s->queue[found.last];
        for (int64_t at = found.last; at < found.end; at++)
            if (degree_of(s, s->queue[at]) < degree_of(s, start))
                start = s->queue[at];
    }
    return start;
}

static void walk(struct search *s, int32_t n)
{
    int64_t end = 0;
    for (int32_t v = 0; v < n; v++)
        s->seen[v] = false;
    for (int32_t v = 0; v < n; v++)
        if (!s->seen[v])
            end = search(s, end, find_start(s, end, v), true).end;
}

static void reverse(int32_t *items, int64_t count)
{
    for (int64_t a = 0, b = count - 1; a < b; a++, b--) {
        const int32_t item = items[a];
        items[a] = items[b];
        items[b] = item;
    }
}

int sl_order_rcm(const struct sl_csr *graph, uint64_t seed, int32_t *vertices)
{
    (void)seed;
    struct sl_block *scratch = NULL;
    const int32_t n = (int32_t)graph->rows;
    struct search s = {.graph = graph, .queue = vertices};
    int64_t longest = 0;
    for (int32_t v = 0; v < n; v++)
        longest = degree_of(&s, v) > longest ? degree_of(&s, v) : longest;
    s.seen = sl_block_array(&scratch, n, sizeof *s.seen);
    s.keys = sl_block_array(&scratch, longest, sizeof *s.keys);
    const bool ready = s.seen && s.keys;
    if (ready) {
        walk(&s, n);
        reverse(vertices, n);
    }
    sl_block_free_all(&scratch);
    return ready ? SL_OK : SL_ERR_SYSTEM;
}
