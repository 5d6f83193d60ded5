#include "data/partition/parallel_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/partition/scotch.h"
#include "data/partition/vertex_parts.h"

/* The rows of this rank in the symmetric pattern of the graph, without loops. */
struct share {
    int64_t first;
    struct sl_scotch_rows rows;
};

/* Return the first row of the files that a rank reads; its rows end before first_of(rank + 1). */
static int64_t first_of(const struct sl_runtime *rt, int64_t n, int rank)
{
    return n * rank / rt->ranks;
}

static int rank_of(const struct sl_runtime *rt, int64_t n, int64_t row)
{
    int rank = (int)(row * rt->ranks / n);
    while (row < first_of(rt, n, rank))
        rank--;
    while (row >= first_of(rt, n, rank + 1))
        rank++;
    return rank;
}

struct edge {
    int32_t row, column;
};

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row)
                            : (x->column > y->column) - (x->column < y->column);
}

static int no_memory(int64_t count)
{
    return sl_error(SL_ERR_SYSTEM, "no memory to partition %lld entries", (long long)count);
}

/* Turn the entries of this rank's rows: edge k is (column, row). Sort them by the rank of the
 * column, and set from (ranks + 1) to the first edge for each rank. */
static struct edge *turn_edges(const struct sl_runtime *rt, const struct sl_part *part, int64_t n,
                               int64_t *from)
{
    const struct sl_csr *a = &part->data.adjacency;
    struct edge *turned = malloc((size_t)(a->indptr[a->rows] + 1) * sizeof *turned);
    int64_t *next = calloc((size_t)rt->ranks + 2, sizeof *next);
    if (!turned || !next) {
        free(turned);
        free(next);
        return NULL;
    }
    for (int64_t e = 0; e < a->indptr[a->rows]; e++)
        next[rank_of(rt, n, a->indices[e]) + 1]++;
    for (int r = 0; r < rt->ranks; r++)
        next[r + 1] += next[r];
    memcpy(from, next, (size_t)(rt->ranks + 1) * sizeof *from);
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++)
            turned[next[rank_of(rt, n, a->indices[e])]++] =
                (struct edge){a->indices[e], (int32_t)(part->first + r)};
    free(next);
    return turned;
}

/* List all entries of this rank's rows, sorted. In directed graphs, add the turned entries of other
 * ranks. */
static int list_edges(struct sl_runtime *rt, const struct sl_part *part, int64_t n,
                      struct edge **edges, int64_t *count)
{
    const struct sl_csr *a = &part->data.adjacency;
    const int64_t own = a->indptr[a->rows];
    int64_t *from = calloc((size_t)rt->ranks + 1, sizeof *from), come = 0;
    struct edge *turned = NULL;
    void *received = NULL;
    const bool directed = !part->data.symmetric;
    int code = from ? 0 : no_memory(own);
    if (!code && directed && !(turned = turn_edges(rt, part, n, from)))
        code = no_memory(own);
    code = sl_runtime_agree(rt, code);
    if (!code && directed)
        code = sl_runtime_exchange(rt, turned, from, sizeof *turned, &received, &come);
    free(turned);
    free(from);
    struct edge *all = code ? NULL : malloc((size_t)(own + come + 1) * sizeof *all);
    if (!code && !all)
        code = no_memory(own + come);
    for (int64_t r = 0; all && r < a->rows; r++)
        for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++)
            all[e] = (struct edge){(int32_t)(part->first + r), a->indices[e]};
    if (all && come)
        memcpy(all + own, received, (size_t)come * sizeof *all);
    if (all)
        qsort(all, (size_t)(own + come), sizeof *all, compare_edges);
    free(received);
    *edges = all;
    *count = own + come;
    return sl_runtime_agree(rt, code);
}

static int fill_share(const struct edge *edge, int64_t count, struct share *share)
{
    share->rows.start = calloc((size_t)share->rows.count + 1, sizeof *share->rows.start);
    share->rows.weight = malloc((size_t)(share->rows.count + 1) * sizeof *share->rows.weight);
    share->rows.column = malloc((size_t)(count + 1) * sizeof *share->rows.column);
    if (!share->rows.start || !share->rows.weight || !share->rows.column)
        return no_memory(count);
    int64_t kept = 0, k = 0;
    for (int64_t r = 0; r < share->rows.count; r++) {
        for (; k < count && edge[k].row == share->first + r; k++) {
            const bool again = k > 0 && compare_edges(&edge[k - 1], &edge[k]) == 0;
            if (!again && edge[k].column != edge[k].row)
                share->rows.column[kept++] = edge[k].column;
        }
        share->rows.start[r + 1] = kept;
        share->rows.weight[r] = share->rows.start[r + 1] - share->rows.start[r] + SL_VERTEX_WORK;
    }
    return 0;
}

static int read_share(struct sl_runtime *rt, const struct sl_source *source, struct share *share)
{
    const struct sl_source stored = sl_source_as_stored(source);
    struct sl_part part = {0};
    struct edge *edges = NULL;
    int64_t count = 0;
    const int64_t n = source->vertices;
    share->first = first_of(rt, n, rt->rank);
    share->rows.count = first_of(rt, n, rt->rank + 1) - share->first;
    int code = sl_source_read_adjacency(rt, &stored, share->first, share->rows.count, &part);
    if (!code)
        code = list_edges(rt, &part, n, &edges, &count);
    sl_part_close(&part);
    if (!code)
        code = sl_runtime_agree(rt, fill_share(edges, count, share));
    free(edges);
    return code;
}

int sl_parallel_parts(struct sl_runtime *rt, const struct sl_source *source, int parts,
                      uint64_t seed, int32_t *part)
{
    struct share share = {0};
    const int64_t n = source->vertices;
    int code = read_share(rt, source, &share);
    if (!code)
        code = sl_scotch_partition(rt, &share.rows, parts, seed, part + share.first);
    for (int r = 0; !code && r < rt->ranks; r++)
        sl_runtime_broadcast(rt, r, part + first_of(rt, n, r),
                             (first_of(rt, n, r + 1) - first_of(rt, n, r)) * (int64_t)sizeof *part);
    free(share.rows.start);
    free(share.rows.weight);
    free(share.rows.column);
    return code;
}
