/* Vertex v draws its larger neighbours, in ascending order; its smaller ones are a transposition of
 * these draws (block_rows.c). Hence no sort:
 *
 *     in parallel, for each block of places, communities being one after the other:
 *         for v in the block: near[v] = draws beyond v in its community
 *     in parallel, for each block of vertices:
 *         for v in the block: above[v] = union of near[v] and draws beyond v among all vertices
 *     mirror the rows above[v]
 *
 * The draws of v are a Poisson process on a line on which every vertex covers a stretch as long as
 * its weight: exponential gaps, of mean 1 / (weight of v). A vertex that is hit, once or more, is a
 * neighbour; a vertex of weight x is missed with probability exp(-x x_v). */
#include "data/generate/draw_graph.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/rng.h"
#include "data/block_rows.h"

/* Vertices in a row, which cover stretches of a line as long as their weights. */
struct line {
    int64_t count;
    const double *end;   // (count): end of each stretch
    const int32_t *hint; // (count): stretch at the start of each of equal parts of the line
    double parts;        /* parts of the line per unit of length */
};

struct drawing {
    const struct sl_draw_graph *graph;
    struct sl_block *lines;
    /* Members of community c, ascending: places first[c] … first[c + 1] - 1. */
    int64_t *first;          // (communities + 1)
    int32_t *member, *place; // (vertices): vertex of each place; place of each vertex
    double *inside_end;      // (vertices), by place: end of its stretch, from 0 in each community
    int32_t *inside_hint;    // (vertices), by place
    double *anywhere_end;    // (vertices)
    int32_t *anywhere_hint;  // (vertices)
    struct sl_block_rows above; /* larger neighbours of each vertex */
    struct sl_ids *near;        // (blocks): draws inside, place by place
    int64_t *near_end;          // (vertices), by place: end of its draws in the block's list
    atomic_bool failed;
};

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

/* List the members of each community, ascending, by a counting sort: vertices come in any order of
 * communities. */
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
    /* Each start is at the end of its community now, where the next one starts. */
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

enum { GAPS = 16 }; /* gaps at a time: two vectors of eight */

/* Return -log(u) for u = (the upper 24 bits of `bits`, plus 1) / 2^24, to 2^-18; vector code. */
static inline float minus_log(uint32_t bits)
{
    const float u = (float)(int32_t)((bits >> 8) + 1);
    int32_t word;
    memcpy(&word, &u, sizeof word);
    const float exponent = (float)((word >> 23) - 127 - 24);
    word = (word & 0x7FFFFF) | 0x3F800000;
    float m; /* mantissa in [1, 2) */
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

/* Draw GAPS hits of a process that stands at `at`, up to the end of the line: for each hit its
 * position and a stretch not beyond it. Separate loops let two of them be vector code, and no read
 * waits for the one before. Return the number of hits. */
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

/* List the places beyond `from` that the process of this place hits, ascending. Return their
 * number. */
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
            hit += line->end[hit] <= position[i]; /* true so often that a branch would cost more */
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

/* Unite two ascending lists. Return the length of the result. */
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

/* Draw inside communities, place by place: the line of a community stays in the cache. */
static void draw_near(void *context, int64_t block)
{
    struct drawing *d = context;
    struct sl_ids *list = &d->near[block];
    const int64_t begin = sl_block_rows_begin(&d->above, block),
                  end = sl_block_rows_begin(&d->above, block + 1);
    int64_t community = d->graph->community[d->member[begin]];
    for (int64_t at = begin; at < end; at++) {
        while (at == d->first[community + 1])
            community++;
        const int64_t first = d->first[community];
        const struct line line = line_inside(d, community);
        if (!sl_ids_reserve(list, line.count)) {
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

/* Draw the larger neighbours of v and append them to `list`; `far` is scratch for all vertices. */
static bool draw_row(const struct drawing *d, int64_t v, struct sl_ids *list, int32_t *far)
{
    const int64_t at = d->place[v], block = at >> d->above.bits;
    const int64_t start = at == sl_block_rows_begin(&d->above, block) ? 0 : d->near_end[at - 1];
    const int64_t near_count = d->near_end[at] - start;
    const struct line line = line_anywhere(d);
    const int64_t far_count = draw(&line, v, d->graph->anywhere_key, (uint32_t)v, far);
    if (!sl_ids_reserve(list, near_count + far_count))
        return false;
    const int64_t count =
        unite(d->near[block].ids + start, near_count, far, far_count, list->ids + list->count);
    d->above.length[v] = (int32_t)count;
    list->count += count;
    return true;
}

static void draw_above(void *context, int64_t block)
{
    struct drawing *d = context;
    struct sl_ids *list = &d->above.blocks[block];
    /* Allocate room for every vertex; the machine gives only the pages that are written to. */
    int32_t *far = malloc((size_t)(d->graph->vertices + 1) * sizeof *far);
    bool fine = far;
    for (int64_t v = sl_block_rows_begin(&d->above, block);
         v < sl_block_rows_begin(&d->above, block + 1) && fine; v++)
        fine = draw_row(d, v, list, far);
    free(far);
    if (!fine)
        atomic_store(&d->failed, true);
}

/* --- All of it --- */

static int prepare(struct drawing *d)
{
    const int64_t n = d->graph->vertices;
    if (sl_block_rows_create(n, &d->above))
        return SL_ERR_SYSTEM;
    d->first = sl_block_array(&d->lines, d->graph->communities + 1, sizeof *d->first);
    d->member = sl_block_array(&d->lines, n, sizeof *d->member);
    d->place = sl_block_array(&d->lines, n, sizeof *d->place);
    d->inside_end = sl_block_array(&d->lines, n, sizeof *d->inside_end);
    d->inside_hint = sl_block_array(&d->lines, n, sizeof *d->inside_hint);
    d->anywhere_end = sl_block_array(&d->lines, n, sizeof *d->anywhere_end);
    d->anywhere_hint = sl_block_array(&d->lines, n, sizeof *d->anywhere_hint);
    d->near_end = sl_block_array(&d->lines, n, sizeof *d->near_end);
    d->near = sl_block_array(&d->lines, d->above.block_count, sizeof *d->near);
    if (d->near)
        memset(d->near, 0, (size_t)d->above.block_count * sizeof *d->near);
    return d->first && d->member && d->place && d->inside_end && d->inside_hint &&
                   d->anywhere_end && d->anywhere_hint && d->near_end && d->near
               ? SL_OK
               : SL_ERR_SYSTEM;
}

/* Run one phase on all blocks. */
static int for_blocks(struct drawing *d, void (*phase)(void *context, int64_t block))
{
    sl_parallel_for(d->graph->threads, d->above.block_count, phase, d);
    return atomic_load(&d->failed) ? sl_error(SL_ERR_SYSTEM, "out of memory for the edges of a "
                                                             "random graph")
                                   : SL_OK;
}

static int draw_rows(struct drawing *d)
{
    sl_progress_phase("edges within communities");
    measure_lines(d);
    const int rc = for_blocks(d, draw_near);
    sl_progress_phase("edges between communities");
    return rc ? rc : for_blocks(d, draw_above);
}

int sl_graph_draw(const struct sl_draw_graph *graph, struct sl_block **blocks, struct sl_csr *out)
{
    struct drawing d = {.graph = graph};
    int rc = prepare(&d);
    if (!rc)
        rc = draw_rows(&d);
    for (int64_t block = 0; d.near && block < d.above.block_count; block++)
        sl_ids_free(&d.near[block]);
    sl_block_free_all(&d.lines);
    if (!rc)
        rc = sl_block_rows_assemble(&d.above, true, graph->threads, blocks, out);
    sl_block_rows_destroy(&d.above);
    return rc;
}
