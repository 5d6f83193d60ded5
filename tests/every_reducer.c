/* A reducer with row operands and two outputs on every distribution, in one process each. The walks
 * know nothing of the reducer. It takes the maximum of the neighbours and of the row itself, a row
 * operand, and the argmax. A rank may take the row more than once, and the result is exact anyway.
 * The maximum of the neighbours alone is checked, too. tests/every-reducer.sh runs this program on
 * several numbers of ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/max.h"
#include "codelets/record.h"
#include "core/error.h"
#include "data/partition/parts.h"
#include "tests/fixtures.h"
#include "tests/trained.h"
#include "train/trainer.h"

enum { VERTICES = 67, WIDTH = 19 };

/* ---- The reducer ---- */

static void take_row(struct sl_state *s)
{
    for (int o = 0; o < 2; o++)
        sl_submit_copy(s->states->rt, s->row[o], s->out[o]);
}

static void open_state(struct sl_state *s)
{
    s->held = s->out[0];
}

static void meet(struct sl_state *s, const struct sl_meeting *m)
{
    if (!s->started)
        take_row(s);
    sl_submit_max(s->states->rt, &(struct sl_max_tiles){.a = m->a,
                                                        .h = m->moved[0][0],
                                                        .argmax = s->out[1],
                                                        .z = s->out[0],
                                                        .accumulate = true,
                                                        .vertices = m->vertices,
                                                        .first = m->first});
    s->started = true;
}

static void complete(struct sl_state *s)
{
    if (!s->started)
        take_row(s);
}

static void merge(struct sl_state *s, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows)
{
    sl_reduce_max.merge(s, other, rows);
}

static void nothing(struct sl_state *s)
{
    (void)s;
}

static const struct sl_reducer with_itself = {
    .name = "with itself",
    .numbered = true,
    .moved = 1,
    .row_operands = 2,
    .alone = true,
    .outputs = 2,
    .narrow = true,
    .open = open_state,
    .meet = meet,
    .submit = nothing,
    .complete = complete,
    .merge = merge,
    .close = nothing,
};

/* Every reducer that chooses one neighbour: the largest of sign·value. */
static const struct choosing {
    const struct sl_reducer *reducer;
    float sign;
    bool with_itself;
} choosing[] = {
    {.reducer = &sl_reduce_max, .sign = 1.0f},
    {.reducer = &sl_reduce_min, .sign = -1.0f},
    {.reducer = &with_itself, .sign = 1.0f, .with_itself = true},
};

/* ---- Matrices ---- */

/* One distribution of one dataset. */
struct checking {
    struct sl_runtime *rt;
    const struct sl_dataset *data;
    const struct sl_source *source;
    const struct choosing *choosing;
    struct sl_trainer trainer;
    const char *name;
    int64_t wrong, compared;
    int cases, failures;
    char first[200];          /* the first one that is wrong */
    int32_t number[VERTICES]; /* what results call the vertices */
};

/* Few different numbers: there are equal ones to choose from. */
static float value_of(int64_t v, int64_t j)
{
    return (float)((v * 7919 + j * 104729 + v * j) % 7 - 3) / 2.0f;
}

/* The vertex of row `r` of the tile, and what a result calls it. */
static void find_vertex(struct checking *k, int i, int64_t r, int64_t *vertex, int32_t *number)
{
    struct sl_operands *o = &k->trainer.whole.operands;
    if (o->distribution->kind->clones) {
        struct sl_tile *scales = &o->scales[0][i];
        const uint32_t *vertices =
            (const uint32_t *)sl_tile_acquire(k->rt, scales, false) + SL_ROW_VERTEX * scales->ld;
        *vertex = *number = (int32_t)vertices[r];
        sl_tile_release(scales);
        return;
    }
    const int64_t row = o->distribution->row_cut[i] + r;
    *number = (int32_t)row;
    *vertex = sl_source_vertex(k->source, row);
}

static void number_vertices(struct checking *k)
{
    for (int32_t row = 0; row < VERTICES; row++)
        k->number[k->trainer.whole.operands.distribution->kind->clones
                      ? row
                      : sl_source_vertex(k->source, row)] = row;
}

typedef void cell_function(struct checking *k, int64_t v, int32_t number, int64_t j, void *cell,
                           void *other);

/* Calls `cell` for each element of this rank's tiles of both matrices. */
static void each_cell(struct checking *k, struct sl_matrix *x, struct sl_matrix *y, bool write,
                      cell_function *cell)
{
    for (int i = 0; i < x->tile_rows; i++)
        for (int j = 0; j < x->tile_cols; j++) {
            struct sl_tile *a = sl_matrix_tile(x, i, j), *b = sl_matrix_tile(y, i, j);
            if (a->owner != k->rt->rank)
                continue;
            char *at = sl_tile_acquire(k->rt, a, write), *by = sl_tile_acquire(k->rt, b, write);
            for (int64_t r = 0; r < a->rows; r++) {
                int64_t v;
                int32_t number;
                find_vertex(k, i, r, &v, &number);
                for (int64_t c = 0; c < a->cols; c++)
                    cell(k, v, number, x->col_cut[j] + c, at + 4 * (r * a->ld + c),
                         by + 4 * (r * b->ld + c));
            }
            sl_tile_release(a);
            sl_tile_release(b);
        }
}

static void fill(struct checking *k, int64_t v, int32_t number, int64_t j, void *cell, void *other)
{
    (void)k;
    const float value = value_of(v, j);
    memcpy(cell, &value, sizeof value);
    memcpy(other, &number, sizeof number);
}

/* The message of an entry of row v. */
static float sent_by(const struct checking *k, int64_t e, int64_t j)
{
    const struct sl_csr *a = &k->data->adjacency;
    const float value = value_of(a->indices[e], j);
    return a->values ? a->values[e] * value : value;
}

/* Takes what vertex u sends: of equal ones, the least number. */
static void take(const struct checking *k, float sent, int64_t u, float *best, int32_t *from)
{
    const int32_t number = k->number[u];
    const float sign = k->choosing->sign;
    if (*from < 0 || sign * sent > sign * *best || (sent == *best && number < *from)) {
        *best = sent;
        *from = number;
    }
}

static void compare(struct checking *k, int64_t v, int32_t number, int64_t j, void *cell,
                    void *other)
{
    (void)number;
    const struct sl_csr *a = &k->data->adjacency;
    float got, want = 0.0f;
    int32_t got_from, from = -1;
    memcpy(&got, cell, sizeof got);
    memcpy(&got_from, other, sizeof got_from);
    if (k->choosing->with_itself)
        take(k, value_of(v, j), v, &want, &from);
    for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
        take(k, sent_by(k, e, j), a->indices[e], &want, &from);
    k->compared++;
    if (got == want && got_from == from)
        return;
    if (k->wrong++ == 0)
        snprintf(k->first, sizeof k->first,
                 "vertex %d, column %d is %g from %d, expected %g from %d", (int)v, (int)j,
                 (double)got, got_from, (double)want, from);
}

/* ---- A walk ---- */

static void walk(struct checking *k)
{
    struct sl_operands *o = &k->trainer.whole.operands;
    struct sl_distribution *d = o->distribution;
    struct sl_matrix h, from, z, arg;
    struct sl_matrix *const all[] = {&h, &from, &z, &arg};
    for (int m = 0; m < 4; m++)
        if (sl_distribution_create_rows(k->rt, d, all[m], SL_FLOAT32, WIDTH))
            sl_fatal("%s", sl_error_message());
    if (sl_partials_plan(k->rt, d, k->choosing->reducer, SL_FLOAT32, all[0]->col_cut))
        sl_fatal("%s", sl_error_message());
    each_cell(k, &h, &from, true, fill);
    d->kind->walk(k->rt, d, &(struct sl_walk_step){.number = -1},
                  &(struct sl_reduction){.reducer = k->choosing->reducer,
                                         .a = o->adjacency,
                                         .moved = {&h},
                                         .row = {&h, &from},
                                         .out = {&z, &arg},
                                         .vertices = d->kind->clones ? o->scales[0] : NULL});
    each_cell(k, &z, &arg, false, compare);
    for (int m = 0; m < 4; m++)
        sl_matrix_destroy(all[m]);
}

/* ---- Roots ---- */

/* Each vertex has one row that is its root, and others only where there are clones. */
static void check_roots(struct checking *k, const char *options, int order)
{
    struct sl_operands *o = &k->trainer.whole.operands;
    int64_t roots[VERTICES] = {0}, wrong = 0, found = 0;
    for (int i = 0; i < o->distribution[order].tiles; i++) {
        struct sl_tile *tile = &o->scales[order][i];
        if (tile->owner != k->rt->rank)
            continue;
        const float *scales = sl_tile_acquire(k->rt, tile, false),
                    *root = scales + SL_ROW_ROOT * tile->ld;
        const uint32_t *vertex = (const uint32_t *)(const void *)scales + SL_ROW_VERTEX * tile->ld;
        for (int64_t r = 0; r < tile->cols; r++) {
            wrong += root[r] != 1.0f && (root[r] != 0.0f || !o->distribution->kind->clones);
            roots[vertex[r]] += root[r] == 1.0f;
        }
        sl_tile_release(tile);
    }
    sl_runtime_sum(k->rt, roots, VERTICES);
    sl_runtime_sum(k->rt, &wrong, 1);
    for (int v = 0; v < VERTICES; v++) {
        found += roots[v];
        wrong += roots[v] != 1;
    }
    const bool right = wrong == 0 && found == VERTICES;
    if (k->rt->rank == 0)
        printf("%s  roots, %s, %s: %lld of %d, %lld wrong\n", right ? "ok  " : "FAIL", k->name,
               options, (long long)found, VERTICES, (long long)wrong);
    k->cases++;
    k->failures += !right;
}

static void check(struct checking *k, const char *options)
{
    struct sl_config config = {0};
    char line[200];
    snprintf(line, sizeof line, "--tiles 13 --model sage --aggregator max %s", options);
    sl_test_configure(&config, line);
    k->rt->stages = sl_config_stages(&config);
    if (sl_trainer_create(&k->trainer, k->rt, k->source, &config, NULL))
        sl_fatal("%s: %s", options, sl_error_message());
    number_vertices(k);
    for (int order = 0; order < k->trainer.whole.operands.row_orders; order++)
        check_roots(k, options, order);
    for (size_t r = 0; r < sizeof choosing / sizeof *choosing; r++) {
        k->choosing = &choosing[r];
        k->wrong = k->compared = 0;
        walk(k);
        int64_t sums[] = {k->wrong, k->compared};
        if (k->wrong)
            printf("rank %d: %s\n", k->rt->rank, k->first);
        sl_runtime_sum(k->rt, sums, 2);
        const bool right = sums[0] == 0 && sums[1] >= (int64_t)VERTICES * WIDTH;
        if (k->rt->rank == 0)
            printf("%s  %s, %s, %s: %lld of %lld wrong\n", right ? "ok  " : "FAIL",
                   k->choosing->reducer->name, k->name, options, (long long)sums[0],
                   (long long)sums[1]);
        k->cases++;
        k->failures += !right;
    }
    sl_trainer_destroy(&k->trainer);
    sl_options_free(sl_config_options, &config);
}

/* ---- All distributions ---- */

static struct checking check_all(struct sl_runtime *rt, const struct sl_fixture *fixture)
{
    struct sl_dataset data = sl_fixture_open(fixture);
    struct sl_source source, by_parts;
    int32_t part[VERTICES];
    if (sl_source_of(&data, &source) || sl_source_of(&data, &by_parts))
        sl_fatal("%s", sl_error_message());
    for (int v = 0; v < VERTICES; v++)
        part[v] = v % rt->ranks;
    if (sl_source_order_by_parts(&by_parts, rt->ranks, part))
        sl_fatal("%s", sl_error_message());
    struct checking k = {.rt = rt, .data = &data, .source = &source, .name = fixture->name};
    for (int layers = 1; layers <= rt->ranks; layers++)
        for (int columns = 1; columns <= rt->ranks / layers; columns++) {
            char grid[60];
            if (rt->ranks % (layers * columns))
                continue;
            snprintf(grid, sizeof grid, "--grid %dx%dx%d %s", rt->ranks / layers / columns, columns,
                     layers, layers % 2 ? "--no-overlap" : "--order none");
            check(&k, grid);
        }
    check(&k, "--distribution vertex-cut --partition libra");
    k.source = &by_parts;
    check(&k, "--distribution halo");
    check(&k, "--distribution cover");
    check(&k, "--distribution cover --no-overlap");
    sl_source_close(&by_parts);
    sl_source_close(&source);
    sl_fixture_close(&data);
    return k;
}

int main(void)
{
    static const struct sl_fixture fixtures[] = {
        {SL_FIXTURE("directed, weighted, with self-loops", VERTICES, 23, 17, 5), .directed = true,
         .weighted = true, .self_loops = true, .isolated = 4, .form = SL_FEATURES_DENSE,
         .seed = 41},
        {SL_FIXTURE("undirected", VERTICES, 23, 17, 3), .isolated = 9, .form = SL_FEATURES_DENSE,
         .seed = 42},
    };
    struct sl_runtime rt;
    int cases = 0, failures = 0;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        const struct checking k = check_all(&rt, &fixtures[f]);
        cases += k.cases;
        failures += k.failures;
    }
    if (rt.rank == 0)
        printf("%d cases on %d rank%s, %d failed\n", cases, rt.ranks, rt.ranks == 1 ? "" : "s",
               failures);
    sl_runtime_stop(&rt);
    return failures != 0;
}
