/* The bytes that the edges imply for cuts of every_cut.c, by plain loops. */
#include "tests/every_cut.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/pair.h"
#include "core/error.h"

int sl_cut_ranks(const struct checking *k)
{
    return k->every->rt->ranks;
}

/* Calls `visit` with every entry (row, column) of the adjacency, in order. */
void sl_cut_each_entry(const struct checking *k, void *context,
                       void (*visit)(void *context, int64_t entry, int64_t row, int64_t col))
{
    const struct sl_csr *a = &k->data->adjacency;
    for (int64_t v = 0; v < a->rows; v++)
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            visit(context, e, v, a->indices[e]);
}

void *sl_cut_array(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    if (!memory)
        sl_fatal("no memory for %lld elements", (long long)count);
    return memory;
}

/* Blocks whose outputs are made a second time: the output of every `recompute`-th block stays, and
 * so does the last one of the others that share a place. */
static int blocks_again(const struct test_case *c)
{
    int again = 0;
    for (int block = 1; c->recompute && block + c->recompute <= c->blocks; block++)
        again += block % c->recompute != 0;
    return again;
}

/* Numbers of a row that are aggregated in a step, forward or back. */
static int64_t width(const struct checking *k, bool back)
{
    const int64_t inner = (LAYERS - 1) * SL_EVERY_HIDDEN;
    switch (k->c->order) {
    case BLOCKS:
        return (k->c->blocks + (back ? 0 : blocks_again(k->c))) * SL_EVERY_HIDDEN;
    case HOPS:
        return k->c->blocks * k->data->classes;
    case GEMM:
        return inner + k->data->classes;
    case EDGES:
        return k->data->features + inner;
    case ENDS:
        return inner + (back ? k->data->classes : k->data->features);
    case SPMM:
        return back ? inner : k->data->features + inner;
    default:
        return inner - SL_EVERY_HIDDEN + k->data->classes;
    }
}

/* Columns that a step of attention moves, over all layers. Forward, rows are [P | t | s], and
 * states are [Z | m | l | Z' | q]. Back, rows are [G | r] and [s | L] with a vertex. Pair
 * attention has rows [K | V] with a vertex, which move once more going back, and states [Z | m |
 * l]. Its targets are [T | L] in place of [s | L]. Features of edges add numbers of each head to
 * targets of transformers. */
struct attention_words {
    int64_t row, state, gradient, scores;
};

static struct attention_words attention_words(const struct checking *k)
{
    struct attention_words words = {0};
    for (int l = 0; l < LAYERS; l++) {
        const bool last = l == LAYERS - 1 && !k->c->classifier;
        const int64_t heads = last ? k->c->out_heads : k->c->heads,
                      all = heads * (last ? k->data->classes : k->c->hidden);
        if (k->c->sources) {
            const int64_t room = heads * sl_pair_room(k->c->hidden),
                          edges = k->c->sources == 2 ? heads * k->data->edge_features : 0;
            words.row += k->c->sources * room + 1;
            words.state += room + 2 * heads + edges;
            words.gradient += room + heads + edges;
            words.scores += room + heads + 1 + edges;
            continue;
        }
        words.row += all + 2 * heads;
        words.state += 2 * all + 3 * heads;
        words.gradient += all + heads;
        words.scores += 2 * heads + 1;
    }
    return words;
}

/* Rows of others that rank `rank` needs, forward and back. */
struct needs {
    const int32_t *part;
    int rank;
    bool *seen[2]; // (n)
    int64_t rows[2];
};

static void need(struct needs *n, bool back, int64_t own, int64_t other)
{
    if (n->part[own] == n->rank && n->part[other] != n->rank && !n->seen[back][other]) {
        n->seen[back][other] = true;
        n->rows[back]++;
    }
}

static void need_entry(void *needs, int64_t entry, int64_t row, int64_t col)
{
    (void)entry;
    need(needs, false, row, col);
    need(needs, true, col, row);
}

int64_t sl_cut_halo_bytes(const struct checking *k, const int32_t *part)
{
    struct needs needs = {.part = part, .rank = k->every->rt->rank};
    for (int back = 0; back < 2; back++)
        needs.seen[back] = sl_cut_array(k->data->vertices, sizeof(bool));
    sl_cut_each_entry(k, &needs, need_entry);
    for (int back = 0; back < 2; back++)
        free(needs.seen[back]);
    const int back_too = k->c->largest ? 2 : 1;
    const struct attention_words words = attention_words(k);
    if (k->c->heads)
        return 4 * (needs.rows[0] * (k->c->sources ? 2 : 1) * words.row +
                    needs.rows[1] * (words.gradient + words.scores));
    return 4 * (needs.rows[0] * width(k, false) + back_too * needs.rows[1] * width(k, true));
}

/* Entries between ranks: of S, and of its transpose. */
struct crossings {
    const int32_t *part;
    int64_t n;
    int copies;     /* of a column, which may match as often */
    bool *entry[2]; // (n, n)
    int64_t *match; // (n, copies): the rows of a column; -1: none
    bool *seen;     // (n, copies)
};

static void cross(void *crossings, int64_t entry, int64_t row, int64_t col)
{
    struct crossings *c = crossings;
    (void)entry;
    c->entry[0][row * c->n + col] = c->entry[1][col * c->n + row] = c->part[row] != c->part[col];
}

/* Kuhn's algorithm: one more copy of a row in the matching with columns of rank `rank`. */
static bool augment(struct crossings *c, bool back, int rank, int64_t row)
{
    for (int64_t copy = 0; copy < c->n * c->copies; copy++) {
        const int64_t col = copy / c->copies;
        if (!c->entry[back][row * c->n + col] || c->part[col] != rank || c->seen[copy])
            continue;
        c->seen[copy] = true;
        if (c->match[copy] < 0 || augment(c, back, rank, c->match[copy])) {
            c->match[copy] = row;
            return true;
        }
    }
    return false;
}

/* The weight of the minimum covers of this rank's rows with all other ranks. A result weighs
 * row_copies, a row of H col_copies. The maximum matchings of all copies have as many (König). */
static int64_t cover_weight(const struct checking *k, const int32_t *part, bool back,
                            int row_copies, int col_copies)
{
    const int64_t n = k->data->vertices, cells = n * col_copies;
    struct crossings c = {.part = part, .n = n, .copies = col_copies};
    int64_t weight = 0;
    c.entry[0] = sl_cut_array(n * n, sizeof(bool));
    c.entry[1] = sl_cut_array(n * n, sizeof(bool));
    c.match = sl_cut_array(cells, sizeof *c.match);
    c.seen = sl_cut_array(cells, sizeof *c.seen);
    sl_cut_each_entry(k, &c, cross);
    for (int64_t m = 0; m < cells; m++)
        c.match[m] = -1;
    for (int rank = 0; rank < sl_cut_ranks(k); rank++)
        for (int64_t v = 0; v < n * row_copies; v++) {
            memset(c.seen, 0, (size_t)cells * sizeof *c.seen);
            if (part[v % n] == k->every->rt->rank)
                weight += augment(&c, back, rank, v % n);
        }
    free(c.entry[0]);
    free(c.entry[1]);
    free(c.match);
    free(c.seen);
    return weight;
}

/* Forward a maximum has two matrices of results, back two of rows. */
int64_t sl_cut_cover_bytes(const struct checking *k, const int32_t *part)
{
    const int most = k->c->largest ? 2 : 1;
    return 4 * (cover_weight(k, part, false, most, 1) * width(k, false) +
                cover_weight(k, part, true, 1, most) * width(k, true));
}

/* One cover for both directions: with a maximum, rows and results weigh the same. Return how many
 * rows and results the bytes were. */
int64_t sl_cut_served(const struct checking *k, const struct sl_traffic *traffic)
{
    const int64_t of_row = 4 * (width(k, false) + 2 * width(k, true)),
                  of_result = 4 * (2 * width(k, false) + width(k, true));
    if (traffic->rows_received % of_row || traffic->sums_received % of_result)
        return -1;
    return traffic->rows_received / of_row + traffic->sums_received / of_result;
}

int64_t sl_cut_cover_rows(const struct checking *k, const int32_t *part)
{
    return cover_weight(k, part, false, 1, 1);
}

/* ---- Covers of attention ---- */

enum { ROW_WEIGHT = 4 };

/* What a result weighs beside a row of H: their words in a hidden layer, where a result brings the
 * operands of its row along. A symmetric graph has one cover for both directions. */
static int result_weight(const struct checking *k, bool forward, bool back)
{
    const int64_t heads = k->c->heads, all = heads * k->c->hidden, projected = all + 2 * heads,
                  scores = 2 * heads + 1;
    const int64_t row = (forward ? projected : 0) + (back ? all + heads + scores : 0),
                  result =
                      (forward ? 2 * all + 3 * heads + scores : 0) + (back ? 2 * projected : 0);
    return (int)((2 * ROW_WEIGHT * result + row) / (2 * row));
}

/* Words of all ranks, and the weights of their covers, forward and back. */
struct attention_traffic {
    int64_t rows, sums, weight[2];
    int result[2];
};

/* Some rows and results of each direction have these weights, and these words. */
static bool has_cover(const struct attention_traffic *t, const struct attention_words *w)
{
    for (int64_t rows = 0; ROW_WEIGHT * rows <= t->weight[0]; rows++) {
        const int64_t rest = t->weight[0] - ROW_WEIGHT * rows, results = rest / t->result[0],
                      sums = t->sums - results * w->state, results_back = sums / w->row,
                      rest_back = t->weight[1] - results_back * t->result[1],
                      rows_back = rest_back / ROW_WEIGHT;
        if (rest % t->result[0] == 0 && sums >= 0 && sums % w->row == 0 && rest_back >= 0 &&
            rest_back % ROW_WEIGHT == 0 &&
            t->rows == rows * w->row + results * w->scores + rows_back * (w->gradient + w->scores) +
                           results_back * w->row)
            return true;
    }
    return false;
}

/* The same, where one cover serves both directions. */
static bool has_common_cover(const struct attention_traffic *t, const struct attention_words *w)
{
    const int64_t of_result = w->state + w->row, results = t->sums / of_result,
                  rest = t->weight[0] - results * t->result[0], rows = rest / ROW_WEIGHT;
    return t->sums % of_result == 0 && rest >= 0 && rest % ROW_WEIGHT == 0 &&
           t->rows == rows * (w->row + w->gradient + w->scores) + results * (w->scores + w->row);
}

bool sl_cut_covers_attention(const struct checking *k, const int32_t *part,
                             const struct sl_traffic *traffic)
{
    const bool common = k->data->symmetric;
    const struct attention_words words = attention_words(k);
    const int result[2] = {result_weight(k, true, common), result_weight(k, false, true)};
    int64_t all[4] = {traffic->rows_received, traffic->sums_received};
    for (int back = 0; back < 2; back++)
        all[2 + back] = cover_weight(k, part, back, result[back], ROW_WEIGHT);
    sl_runtime_sum(k->every->rt, all, 4);
    const struct attention_traffic t = {
        all[0] / 4, all[1] / 4, {all[2], all[3]}, {result[0], result[1]}};
    return common ? has_common_cover(&t, &words) : has_cover(&t, &words);
}

/* ---- Vertex-cuts ---- */

struct holders {
    const int32_t *part;
    int ranks;
    bool *has; // (n, ranks)
};

/* A loop is where the root is. */
static void hold_entry(void *holders, int64_t entry, int64_t row, int64_t col)
{
    const struct holders *h = holders;
    if (row != col)
        h->has[row * h->ranks + h->part[entry]] = h->has[col * h->ranks + h->part[entry]] = true;
}

/* Of all ranks: each clone but one of a vertex sends its row and gets the sum. */
int64_t sl_cut_clone_bytes(const struct checking *k, const int32_t *part)
{
    const int64_t n = k->data->vertices;
    const int ranks = sl_cut_ranks(k);
    struct holders holders = {part, ranks, sl_cut_array(n * ranks, sizeof(bool))};
    int64_t leaves = 0;
    sl_cut_each_entry(k, &holders, hold_entry);
    for (int64_t v = 0; v < n; v++) {
        int clones = 0;
        for (int p = 0; p < ranks; p++)
            clones += holders.has[v * ranks + p];
        leaves += clones > 1 ? clones - 1 : 0;
    }
    free(holders.has);
    const int states = k->c->largest ? 2 : 1;
    const bool outputs = k->c->order == ENDS; /* forward, what clones sum is as wide as outputs */
    const struct attention_words words = attention_words(k);
    if (k->c->heads)
        return 2 * 4 * leaves * (words.state + words.gradient);
    return 2 * 4 * leaves * (states * width(k, outputs) + width(k, true));
}
