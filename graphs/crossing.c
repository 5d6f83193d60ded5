#include "graphs/crossing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/tile.h"
#include "graphs/bipartite.h"

static int no_memory(int64_t items)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %lld adjacency entries between ranks",
                    (long long)items);
}

/* ---- Lists ---- */

/* The first pass counts crossings, the second pass lists them. */
int sl_crossings_list(struct sl_crossings *c, int ranks, const int64_t *bounds, int64_t first,
                      int64_t end, sl_row_function *row, const void *context, const bool *by_row)
{
    int64_t count;
    const int32_t *columns;
    const float *values;
    *c = (struct sl_crossings){.ranks = ranks, .first = first, .end = end};
    c->rank_first = calloc((size_t)ranks + 2, sizeof *c->rank_first);
    if (!c->rank_first)
        return no_memory(ranks);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t r = first; r < end; r++) {
            row(context, r, &count, &columns, &values);
            for (int64_t e = 0; e < count; e++) {
                const int32_t col = columns[e];
                if ((first <= col && col < end) || (by_row && by_row[col]))
                    continue;
                int64_t *next = &c->rank_first[sl_cut_find(ranks, bounds, col) + 2 - pass];
                if (pass == 1)
                    c->entry[*next] =
                        (struct sl_crossing){(int32_t)r, col, values ? values[e] : 1.0f};
                ++*next;
            }
        }
        for (int q = 0; pass == 0 && q < ranks; q++)
            c->rank_first[q + 2] += c->rank_first[q + 1];
        const int64_t all = c->rank_first[ranks + 1];
        if (pass == 0)
            c->entry = malloc((size_t)(all + 1) * sizeof *c->entry);
        if (!c->entry)
            return no_memory(all);
    }
    return 0;
}

void sl_crossings_free(struct sl_crossings *c)
{
    free(c->rank_first);
    free(c->entry);
    *c = (struct sl_crossings){0};
}

/* ---- Covers ---- */

/* The bipartite graph of a pair, transposed: its rows are columns of the matrix. Of covers with the
 * least weight, sl_bipartite_cover takes the most of its rows. So rows of H travel where a result
 * would save nothing. */
struct pair {
    struct sl_bipartite graph;
    int64_t *indptr;  // (columns + 1)
    int32_t *indices; // (crossings): numbers of rows
    int32_t *column;  // (columns): columns of the matrix
    bool *by_row, *by_result;
};

/* Number the columns, and count their crossings in indptr[2 + number]. Return the number of
 * columns. */
static int32_t number_columns(const struct sl_crossing *entry, int64_t count, int32_t *place,
                              struct pair *pair)
{
    int32_t columns = 0;
    for (int64_t k = 0; k < count; k++)
        place[entry[k].col] = -1;
    for (int64_t k = 0; k < count; k++) {
        int32_t *number = &place[entry[k].col];
        if (*number < 0) {
            pair->column[columns] = entry[k].col;
            *number = columns++;
        }
        pair->indptr[*number + 2]++;
    }
    return columns;
}

static int open_pair(const struct sl_crossing *entry, int64_t count, int32_t *place,
                     struct pair *pair)
{
    const size_t room = (size_t)count + 3;
    *pair = (struct pair){
        .indptr = calloc(room, sizeof *pair->indptr),
        .indices = malloc(room * sizeof *pair->indices),
        .column = malloc(room * sizeof *pair->column),
        .by_row = calloc(room, sizeof *pair->by_row),
        .by_result = calloc(room, sizeof *pair->by_result),
    };
    if (!pair->indptr || !pair->indices || !pair->column || !pair->by_row || !pair->by_result)
        return no_memory(count);
    const int32_t columns = number_columns(entry, count, place, pair);
    int32_t row = -1;
    for (int32_t c = 0; c < columns; c++)
        pair->indptr[c + 2] += pair->indptr[c + 1];
    for (int64_t k = 0; k < count; k++) {
        row += k == 0 || entry[k].row != entry[k - 1].row;
        pair->indices[pair->indptr[place[entry[k].col] + 1]++] = row;
    }
    pair->graph = (struct sl_bipartite){columns, row + 1, pair->indptr, pair->indices};
    return 0;
}

static void close_pair(struct pair *pair)
{
    free(pair->indptr);
    free(pair->indices);
    free(pair->column);
    free(pair->by_row);
    free(pair->by_result);
}

int sl_crossings_cover(const struct sl_crossing *entry, int64_t count,
                       struct sl_cover_weights weights, int32_t *place, bool *by_row)
{
    struct pair pair;
    int64_t weight;
    if (count == 0)
        return 0;
    int code = open_pair(entry, count, place, &pair);
    if (!code)
        code = sl_bipartite_cover(&pair.graph, weights.row, weights.result, pair.by_row,
                                  pair.by_result, &weight);
    for (int64_t c = 0; !code && c < pair.graph.rows; c++)
        by_row[pair.column[c]] = pair.by_row[c];
    close_pair(&pair);
    return code;
}

/* Parallel covers. Each column belongs to one rank, so no two threads write one place. */
struct covering {
    const struct sl_crossings *crossings;
    struct sl_cover_weights weights;
    int32_t *place;
    bool *by_row;
    atomic_int code;
};

static void cover_rank(void *context, int64_t q)
{
    struct covering *c = context;
    const int64_t from = c->crossings->rank_first[q];
    const int code =
        sl_crossings_cover(c->crossings->entry + from, c->crossings->rank_first[q + 1] - from,
                           c->weights, c->place, c->by_row);
    if (code)
        c->code = code;
}

int sl_crossings_cover_all(const struct sl_crossings *crossings, struct sl_cover_weights weights,
                           int32_t *place, bool *by_row)
{
    struct covering c = {
        .crossings = crossings, .weights = weights, .place = place, .by_row = by_row};
    sl_parallel_for(sl_parallel_threads(0), crossings->ranks, cover_rank, &c);
    return c.code;
}
