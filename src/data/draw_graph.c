/* Vertex v draws its larger neighbours, in ascending order; its smaller ones are a transposition of
 * these draws, which comes out in ascending order too. Hence no sort:
 *
 *     in parallel, for each block of places, communities being one after the other:
 *         for v in the block: near[v] = draws beyond v in its community
 *     in parallel, for each block of vertices:
 *         for v in the block: above[v] = union of near[v] and draws beyond v among all vertices
 *     in parallel, for each block: (u, v) goes to the box of u's block, for each u in above[v]
 *     in parallel, for each block:
 *         count the pairs of its box by u, and put each v in its place of row u
 *         append above[u] to row u
 *
 * The draws of v are a Poisson process on a line on which every vertex covers a stretch as long as
 * its weight: exponential gaps, of mean 1 / (weight of v). A vertex that is hit, once or more, is a
 * neighbour; a vertex of weight x is missed with probability exp(-x x_v). */
#include "data/draw_graph.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/rng.h"

/* Blocks are dealt to threads, and pairs scattered to as many boxes: more than threads, and few
 * enough that the cache holds the open end of each; but rows of a block are told by 16 bits. */
enum { MANY_BLOCKS = 512, LEAST_BLOCK_BITS = 6, MOST_BLOCK_BITS = 16 };

/* Vertices in a row, each covering a stretch of its weight. */
struct line {
    int64_t count;
    const double *end;   // (count) where each stretch ends
    const int32_t *hint; // (count) the stretch in which equal parts of the line start
    double parts;        /* per unit of length */
};

struct list {
    int32_t *ids;
    int64_t count, capacity;
};

struct drawing {
    const struct sl_draw_graph *graph;
    struct sl_block *lines, *scratch;
    /* Members of community c, ascending: places first[c] … first[c + 1] - 1. */
    int64_t *first;          // (communities + 1)
    int32_t *member, *place; // (vertices): of each place, and back
    double *inside_end;      // (vertices), by place, from 0 in each community
    int32_t *inside_hint;    // (vertices), by place
    double *anywhere_end;    // (vertices)
    int32_t *anywhere_hint;  // (vertices)
    int bits;                /* a block is the vertices that agree but for so many bits */
    int64_t block_count;
    struct list *near;    // (block_count): draws inside, place by place
    int64_t *near_end;    // (vertices), by place: where they end in the block's list
    struct list *above;   // (block_count): larger neighbours, vertex by vertex
    int32_t *above_count; // (vertices)
    int64_t *position;    // (block_count from, block_count to): pairs, then where they go
    int64_t *entry_start; // (block_count + 1): rows of each block
    int64_t *box_end;     // (block_count): where its pairs end, which start with the rows
    uint16_t *box_row;    // (entries): row of each pair, within its block
    int64_t *indptr;
    int32_t *indices; // (entries): the columns of pairs first
    atomic_bool failed;
};

static int64_t block_begin(const struct drawing *d, int64_t block)
{
    const int64_t begin = block << d->bits;
    return begin < d->graph->vertices ? begin : d->graph->vertices;
}

/* --- Lines --- */

static struct line line_inside(const struct drawing *d, int64_t community)
{
    const int64_t first = d->first[community], count = d->first[community + 1] - first;
    const double *end = d->inside_end + first;
    const double length = count > 0 ? end[count - 1] : 0.0;
    return (struct line){count, end, d->inside_hint + first,
                         length > 0.0 ? (double)count / length : 0.0};
}

static struct line line_anywhere(const struct drawing *d)
{
    const int64_t count = d->graph->vertices;
    const double length = d->anywhere_end[count - 1];
    return (struct line){count, d->anywhere_end, d->anywhere_hint,
                         length > 0.0 ? (double)count / length : 0.0};
}

static void fill_hints(const struct line *line, int32_t *hint)
{
    const double length = line->count > 0 ? line->end[line->count - 1] : 0.0;
    int64_t at = 0;
    for (int64_t k = 0; k < line->count; k++) {
        const double start = length * (double)k / (double)line->count;
        while (at + 1 < line->count && line->end[at] <= start)
            at++;
        hint[k] = (int32_t)at;
    }
}

/* Ids come in any order of communities; a counting sort lists the members of each, ascending. */
static void list_members(struct drawing *d)
{
    const struct sl_draw_graph *g = d->graph;
    memset(d->first, 0, (size_t)(g->communities + 1) * sizeof *d->first);
    for (int64_t v = 0; v < g->vertices; v++)
        d->first[g->community[v] + 1]++;
    for (int64_t c = 0; c < g->communities; c++)
        d->first[c + 1] += d->first[c];
    for (int64_t v = 0; v < g->vertices; v++) {
        const int64_t at = d->first[g->community[v]]++;
        d->member[at] = (int32_t)v;
        d->place[v] = (int32_t)at;
    }
    /* Each start has moved to the end, where the next one starts. */
    memmove(d->first + 1, d->first, (size_t)g->communities * sizeof *d->first);
    d->first[0] = 0;
}

static void measure_community(void *context, int64_t c)
{
    struct drawing *d = context;
    double end = 0.0;
    for (int64_t at = d->first[c]; at < d->first[c + 1]; at++)
        d->inside_end[at] = end += (double)d->graph->inside[d->member[at]];
    const struct line line = line_inside(d, c);
    fill_hints(&line, d->inside_hint + d->first[c]);
}

static void measure_lines(struct drawing *d)
{
    const struct sl_draw_graph *g = d->graph;
    list_members(d);
    sl_parallel_for(g->threads, g->communities, measure_community, d);
    double end = 0.0;
    for (int64_t v = 0; v < g->vertices; v++)
        d->anywhere_end[v] = end += (double)g->anywhere[v];
    const struct line line = line_anywhere(d);
    fill_hints(&line, d->anywhere_hint);
}

/* --- Draws --- */

enum { GAPS = 16 }; /* at a time: two vectors of eight */

/* -log(u) for u = (the upper 24 bits of `bits`, plus 1) / 2^24, to 2^-18; vector code. */
static inline float minus_log(uint32_t bits)
{
    const float u = (float)(int32_t)((bits >> 8) + 1);
    int32_t word;
    memcpy(&word, &u, sizeof word);
    const float exponent = (float)((word >> 23) - 127 - 24);
    word = (word & 0x7FFFFF) | 0x3F800000;
    float m; /* in [1, 2) */
    memcpy(&m, &word, sizeof m);
    const float x = m - 1.0f;
    const float log2m =
        x * (1.4425348f +
             x * (-0.7180336f +
                  x * (0.4571581f + x * (-0.2773417f + x * (0.1214730f + x * -0.0257923f)))));
    const float y = -0.69314718f * (exponent + log2m);
    return y > 0.0f ? y : 0.0f;
}

static void draw_gaps(uint64_t key, uint32_t row, uint32_t batch, float *gaps)
{
    for (uint32_t i = 0; i < GAPS / 2; i++) {
        uint32_t x, y;
        sl_rng_block(key, row, batch * (GAPS / 2) + i, &x, &y);
        gaps[i] = minus_log(x);
        gaps[i + GAPS / 2] = minus_log(y);
    }
}

/* A batch of a process that stands at `at`, up to the end of the line: for each hit, where it is
 * and a stretch not beyond it. The loops are apart so that two are vector code and no read waits
 * for the one before. Returns the number of hits. */
static inline int draw_batch(const struct line *line, double at, double mean, const float *gaps,
                             double *position, int32_t *stretch)
{
    const double length = line->end[line->count - 1], last = (double)(line->count - 1);
    int hits = 0;
    for (int i = 0; i < GAPS; i++)
        position[i] = at += (double)gaps[i] * mean;
    for (int i = 0; i < GAPS; i++) {
        const double part = position[i] * line->parts;
        stretch[i] = (int32_t)(part < last ? part : last);
        hits += position[i] < length;
    }
    for (int i = 0; i < GAPS; i++)
        stretch[i] = line->hint[stretch[i]];
    return hits;
}

/* The places beyond `from` that the process of that place hits, ascending. Returns how many. */
static int64_t draw(const struct line *line, int64_t from, uint64_t key, uint32_t row, int32_t *out)
{
    double at = line->end[from];
    const double weight = at - (from > 0 ? line->end[from - 1] : 0.0);
    int64_t count = 0, last = from;
    if (!(weight > 0.0) || !(at < line->end[line->count - 1]))
        return 0;
    const double mean = 1.0 / weight;
    for (uint32_t batch = 0, hits = GAPS; hits == GAPS; batch++) {
        float gaps[GAPS];
        double position[GAPS];
        int32_t stretch[GAPS];
        draw_gaps(key, row, batch, gaps);
        hits = (uint32_t)draw_batch(line, at, mean, gaps, position, stretch);
        at = position[GAPS - 1];
        for (uint32_t i = 0; i < hits; i++) {
            int64_t hit = stretch[i];
            hit += line->end[hit] <= position[i]; /* often enough to be no branch */
            while (line->end[hit] <= position[i])
                hit++;
            out[count] = (int32_t)hit;
            count += hit != last;
            last = hit;
        }
    }
    return count;
}

/* --- Rows of larger neighbours --- */

static bool make_room(struct list *list, int64_t more)
{
    if (list->ids && list->count + more <= list->capacity)
        return true;
    const int64_t capacity = list->count + more + list->capacity / 2 + 1024;
    int32_t *ids = realloc(list->ids, (size_t)capacity * sizeof *ids);
    if (!ids)
        return false;
    list->ids = ids;
    list->capacity = capacity;
    return true;
}

/* The union of two ascending lists. Returns how long it is. */
static int64_t unite(const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count,
                     int32_t *out)
{
    int64_t i = 0, j = 0, count = 0;
    while (i < a_count && j < b_count) {
        const int32_t x = a[i], y = b[j];
        out[count++] = x < y ? x : y;
        i += x <= y;
        j += y <= x;
    }
    memcpy(out + count, a + i, (size_t)(a_count - i) * sizeof *out);
    count += a_count - i;
    memcpy(out + count, b + j, (size_t)(b_count - j) * sizeof *out);
    return count + b_count - j;
}

/* Draws inside communities, place by place: the line of a community stays in the cache. */
static void draw_near(void *context, int64_t block)
{
    struct drawing *d = context;
    struct list *list = &d->near[block];
    const int64_t begin = block_begin(d, block), end = block_begin(d, block + 1);
    int64_t community = d->graph->community[d->member[begin]];
    for (int64_t at = begin; at < end; at++) {
        while (at == d->first[community + 1])
            community++;
        const int64_t first = d->first[community];
        const struct line line = line_inside(d, community);
        if (!make_room(list, line.count)) {
            atomic_store(&d->failed, true);
            return;
        }
        int32_t *ids = list->ids + list->count;
        const int64_t count =
            draw(&line, at - first, d->graph->inside_key, (uint32_t)d->member[at], ids);
        for (int64_t k = 0; k < count; k++)
            ids[k] = d->member[first + ids[k]];
        d->near_end[at] = list->count += count;
    }
}

/* Draws the larger neighbours of v to the end of `list`; `far` is scratch for all vertices. */
static bool draw_row(const struct drawing *d, int64_t v, struct list *list, int32_t *far)
{
    const int64_t at = d->place[v], block = at >> d->bits;
    const int64_t start = at == block_begin(d, block) ? 0 : d->near_end[at - 1];
    const int64_t near_count = d->near_end[at] - start;
    const struct line line = line_anywhere(d);
    const int64_t far_count = draw(&line, v, d->graph->anywhere_key, (uint32_t)v, far);
    if (!make_room(list, near_count + far_count))
        return false;
    const int64_t count =
        unite(d->near[block].ids + start, near_count, far, far_count, list->ids + list->count);
    d->above_count[v] = (int32_t)count;
    list->count += count;
    return true;
}

static void draw_above(void *context, int64_t block)
{
    struct drawing *d = context;
    struct list *list = &d->above[block];
    /* Room for every vertex, of which the machine gives what is written to. */
    int32_t *far = malloc((size_t)(d->graph->vertices + 1) * sizeof *far);
    bool fine = far;
    for (int64_t v = block_begin(d, block); v < block_begin(d, block + 1) && fine; v++)
        fine = draw_row(d, v, list, far);
    free(far);
    if (!fine)
        atomic_store(&d->failed, true);
    int64_t *pairs = d->position + block * d->block_count;
    memset(pairs, 0, (size_t)d->block_count * sizeof *pairs);
    for (int64_t k = 0; k < list->count; k++)
        pairs[list->ids[k] >> d->bits]++;
}

/* --- The transposition --- */

/* From numbers of pairs to places. The columns of a box lie where the rows of its block will be,
 * filled in the order of the blocks they come from. */
static void place_boxes(struct drawing *d)
{
    int64_t entries = 0;
    for (int64_t to = 0; to < d->block_count; to++) {
        int64_t at = d->entry_start[to] = entries;
        for (int64_t from = 0; from < d->block_count; from++) {
            const int64_t count = d->position[from * d->block_count + to];
            d->position[from * d->block_count + to] = at;
            at += count;
        }
        d->box_end[to] = at;
        entries = at + d->above[to].count;
    }
    d->entry_start[d->block_count] = entries;
}

static void scatter_block(void *context, int64_t block)
{
    struct drawing *d = context;
    int64_t *position = d->position + block * d->block_count;
    const int32_t *id = d->above[block].ids, row_mask = (1 << d->bits) - 1;
    for (int64_t v = block_begin(d, block); v < block_begin(d, block + 1); v++)
        for (int32_t k = 0; k < d->above_count[v]; k++, id++) {
            const int64_t at = position[*id >> d->bits]++;
            d->box_row[at] = (uint16_t)(*id & row_mask);
            d->indices[at] = (int32_t)v;
        }
}

/* Puts the rows of a block, of which `next` is scratch and `column` a copy of the box's columns, in
 * their places: smaller neighbours, then larger ones. */
static void place_rows(struct drawing *d, int64_t block, int64_t *next, const int32_t *column)
{
    const int64_t begin = block_begin(d, block), rows = block_begin(d, block + 1) - begin;
    const int64_t start = d->entry_start[block], pairs = d->box_end[block] - start;
    const uint16_t *row = d->box_row + start;
    for (int64_t k = 0; k < pairs; k++)
        next[row[k]]++;
    int64_t at = start;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t count = next[i] + d->above_count[begin + i];
        d->indptr[begin + i] = next[i] = at;
        at += count;
    }
    for (int64_t k = 0; k < pairs; k++)
        d->indices[next[row[k]]++] = column[k];
    const int32_t *id = d->above[block].ids;
    for (int64_t i = 0; i < rows; i++) {
        const int32_t count = d->above_count[begin + i];
        memcpy(d->indices + next[i], id, (size_t)count * sizeof *id);
        id += count;
    }
}

static void finish_block(void *context, int64_t block)
{
    struct drawing *d = context;
    const size_t rows = (size_t)(block_begin(d, block + 1) - block_begin(d, block));
    const size_t bytes = (size_t)(d->box_end[block] - d->entry_start[block]) * sizeof *d->indices;
    int64_t *next = calloc(rows, sizeof *next);
    int32_t *column = malloc(bytes + 1);
    if (next && column) {
        memcpy(column, d->indices + d->entry_start[block], bytes);
        place_rows(d, block, next, column);
    } else {
        atomic_store(&d->failed, true);
    }
    free(next);
    free(column);
    free(d->above[block].ids);
    d->above[block].ids = NULL;
}

/* --- All of it --- */

static struct list *make_lists(struct drawing *d)
{
    struct list *lists = sl_block_array(&d->scratch, d->block_count, sizeof *lists);
    if (lists)
        memset(lists, 0, (size_t)d->block_count * sizeof *lists);
    return lists;
}

static void free_lists(const struct drawing *d, struct list *lists)
{
    for (int64_t block = 0; lists && block < d->block_count; block++) {
        free(lists[block].ids);
        lists[block].ids = NULL;
    }
}

static int prepare(struct drawing *d)
{
    const int64_t n = d->graph->vertices;
    d->bits = LEAST_BLOCK_BITS;
    while (d->bits < MOST_BLOCK_BITS && (n - 1) >> d->bits >= MANY_BLOCKS)
        d->bits++;
    d->block_count = ((n - 1) >> d->bits) + 1;
    d->first = sl_block_array(&d->lines, d->graph->communities + 1, sizeof *d->first);
    d->member = sl_block_array(&d->lines, n, sizeof *d->member);
    d->place = sl_block_array(&d->lines, n, sizeof *d->place);
    d->inside_end = sl_block_array(&d->lines, n, sizeof *d->inside_end);
    d->inside_hint = sl_block_array(&d->lines, n, sizeof *d->inside_hint);
    d->anywhere_end = sl_block_array(&d->lines, n, sizeof *d->anywhere_end);
    d->anywhere_hint = sl_block_array(&d->lines, n, sizeof *d->anywhere_hint);
    d->above_count = sl_block_array(&d->scratch, n, sizeof *d->above_count);
    d->position = sl_block_array(&d->scratch, d->block_count * d->block_count, sizeof *d->position);
    d->box_end = sl_block_array(&d->scratch, d->block_count, sizeof *d->box_end);
    d->entry_start = sl_block_array(&d->scratch, d->block_count + 1, sizeof *d->entry_start);
    d->near = make_lists(d);
    d->near_end = sl_block_array(&d->lines, n, sizeof *d->near_end);
    d->above = make_lists(d);
    return d->near && d->near_end && d->first && d->member && d->place && d->inside_end &&
                   d->inside_hint && d->anywhere_end && d->anywhere_hint && d->above_count &&
                   d->position && d->box_end && d->entry_start && d->above
               ? SL_OK
               : SL_ERR_SYSTEM;
}

/* Runs one phase on all blocks. */
static int for_blocks(struct drawing *d, void (*phase)(void *context, int64_t block))
{
    sl_parallel_for(d->graph->threads, d->block_count, phase, d);
    return atomic_load(&d->failed) ? sl_error(SL_ERR_SYSTEM, "out of memory for the edges of a "
                                                             "random graph")
                                   : SL_OK;
}

static int transpose(struct drawing *d, struct sl_block **blocks)
{
    place_boxes(d);
    const int64_t n = d->graph->vertices, entries = d->entry_start[d->block_count];
    d->box_row = sl_block_array(&d->scratch, entries, sizeof *d->box_row);
    d->indptr = sl_block_array(blocks, n + 1, sizeof *d->indptr);
    d->indices = sl_block_array(blocks, entries, sizeof *d->indices);
    if (!d->box_row || !d->indptr || !d->indices)
        return SL_ERR_SYSTEM;
    const int rc = for_blocks(d, scatter_block);
    if (rc)
        return rc;
    d->indptr[n] = entries;
    return for_blocks(d, finish_block);
}

int sl_graph_draw(const struct sl_draw_graph *graph, struct sl_block **blocks, struct sl_csr *out)
{
    struct drawing d = {.graph = graph};
    int rc = prepare(&d);
    if (!rc) {
        measure_lines(&d);
        rc = for_blocks(&d, draw_near);
    }
    if (!rc)
        rc = for_blocks(&d, draw_above);
    free_lists(&d, d.near);
    sl_block_free_all(&d.lines);
    if (!rc)
        rc = transpose(&d, blocks);
    if (!rc)
        *out = (struct sl_csr){graph->vertices, graph->vertices, d.indptr, d.indices, NULL};
    free_lists(&d, d.above);
    sl_block_free_all(&d.scratch);
    return rc;
}
