/* The aggregation primitive: every message with every reducer, and its gradients. How kernels are
 * judged: tests/kernels.h.
 *
 * A message is one float operation: the largest and smallest of them are exact, and so is the
 * vertex that they come from. The exact gradients are central differences of Σ G·Z in double, which
 * is linear in H, and quadratic at most in what is divided by. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codelets/kernels.h"
#include "tests/kernels.h"

enum { FIRST = 1000, MOST = 64 }; /* vertex of column 0; columns */

/* A problem with its edges' features by row and column, whatever the order of entries. */
struct problem {
    int64_t rows, cols, width;
    enum sl_message operation;
    enum sl_reduce reducer;
    bool edge_rows;
    struct sl_guarded_sparse a;
    bool *joined;        // (rows, cols)
    float *feature;      // (rows, cols, width), or (rows, cols)
    struct sl_guarded h; // (cols, width)
};

static int64_t feature_width(const struct problem *p)
{
    return p->edge_rows ? p->width : 1;
}

static float *feature_at(const struct problem *p, int64_t r, int64_t c)
{
    return p->feature + (r * p->cols + c) * feature_width(p);
}

static struct problem make_problem(int64_t rows, int64_t cols, int64_t width,
                                   enum sl_message operation, enum sl_reduce reducer,
                                   bool edge_rows, enum sl_layout layout, enum sl_kind kind)
{
    struct problem p = {rows, cols, width, operation, reducer, edge_rows, .joined = NULL};
    int64_t count;
    p.a = sl_guarded_sparse_random(rows, cols, 5, rows / 2, false, kind);
    p.h = sl_guarded_random(cols, width, layout, NAN, kind);
    p.joined = calloc((size_t)(rows * cols) + 1, sizeof *p.joined);
    p.feature = calloc((size_t)(rows * cols * feature_width(&p)) + 1, sizeof *p.feature);
    struct sl_entry *entries = sl_sparse_entries(&p.a.view, &count);
    for (int64_t e = 0; e < count; e++) {
        p.joined[entries[e].row * cols + entries[e].col] = true;
        for (int64_t j = 0; j < feature_width(&p); j++) {
            float *value = feature_at(&p, entries[e].row, entries[e].col) + j;
            do
                *value = sl_random_value(kind);
            while (operation == SL_MESSAGE_DIV && *value == 0.0f);
        }
    }
    free(entries);
    return p;
}

static void free_problem(struct problem *p)
{
    sl_guarded_sparse_free(&p->a);
    sl_guarded_free(&p->h);
    free(p->joined);
    free(p->feature);
}

static const char *name_of(const struct problem *p)
{
    static const char *const operations[] = {"copy", "add", "sub", "mul", "div"};
    static const char *const reducers[] = {"sum", "max", "min"};
    static char name[96];
    snprintf(name, sizeof name, "%s of %s, %s, %lldx%lldx%lld, %s", reducers[p->reducer],
             operations[p->operation], p->edge_rows ? "rows" : "numbers", (long long)p->rows,
             (long long)p->cols, (long long)p->width, sl_level_name());
    return name;
}

/* The edges' features in the order of the entries of a part of A from column `first` on, or of its
 * transpose. */
static struct sl_guarded features_of(const struct problem *p, const struct sl_sparse *part,
                                     int64_t first, bool transposed)
{
    int64_t count;
    struct sl_entry *entries = sl_sparse_entries(part, &count);
    const int64_t width = feature_width(p);
    struct sl_guarded out = sl_guarded_empty(count, width, p->edge_rows ? SL_LOOSE : SL_EDGE, NAN);
    for (int64_t e = 0; e < count; e++) {
        const int64_t r = transposed ? entries[e].col : entries[e].row,
                      c = transposed ? entries[e].row : entries[e].col + first;
        for (int64_t j = 0; j < width; j++)
            *sl_element(&out, e, j) = feature_at(p, r, c)[j];
    }
    free(entries);
    return out;
}

static struct sl_messages messages_of(const struct problem *p, const struct sl_guarded *features)
{
    return (struct sl_messages){p->operation, p->operation == SL_MESSAGE_COPY ? NULL : features->at,
                                p->edge_rows ? features->ld : 0};
}

/* ---- Exact ---- */

static double message(enum sl_message operation, double x, double edge)
{
    switch (operation) {
    case SL_MESSAGE_ADD:
        return x + edge;
    case SL_MESSAGE_SUB:
        return x - edge;
    case SL_MESSAGE_MUL:
        return x * edge;
    case SL_MESSAGE_DIV:
        return x / edge;
    default:
        return x;
    }
}

static bool is_better(enum sl_reduce reducer, double m, double z)
{
    if (isnan(m) || isnan(z))
        return isnan(m) && !isnan(z);
    return reducer == SL_REDUCE_MAX ? m > z : m < z;
}

/* Row r, column j, by ascending column of A: `bound` of a sum, and the vertex of a choice. */
static double aggregate(const struct problem *p, int64_t r, int64_t j, double *bound, int32_t *arg)
{
    double z = 0.0, size = 0.0;
    int64_t terms = 0;
    *arg = -1;
    for (int64_t c = 0; c < p->cols; c++) {
        if (!p->joined[r * p->cols + c])
            continue;
        const double edge = (double)feature_at(p, r, c)[p->edge_rows ? j : 0];
        const double sent = message(p->operation, (double)*sl_element(&p->h, c, j), edge);
        size += fabs(sent);
        if (p->reducer == SL_REDUCE_SUM) {
            z += sent;
        } else if (terms == 0 || is_better(p->reducer, (double)(float)sent, z)) {
            z = (double)(float)sent;
            *arg = (int32_t)(FIRST + c);
        }
        terms++;
    }
    *bound = p->reducer == SL_REDUCE_SUM ? ((double)terms + 4.0) * SL_UNIT * size : 0.0;
    return z;
}

/* ---- Forward ---- */

static int32_t *args_of(const struct sl_guarded *m)
{
    return (int32_t *)(void *)m->at;
}

/* Column parts from the last to the first: the order does not matter but to rounding. */
static void run(const struct problem *p, int parts, int64_t block_cols, bool wide,
                struct sl_guarded *z, struct sl_guarded *arg)
{
    for (int i = parts - 1; i >= 0; i--) {
        const int64_t first = p->cols * i / parts, last = p->cols * (i + 1) / parts;
        struct sl_guarded_sparse a =
            sl_guarded_sparse_cut(&p->a.view, first, last, block_cols, wide);
        struct sl_guarded features = features_of(p, &a.view, first, false);
        const struct sl_messages messages = messages_of(p, &features);
        const struct sl_rows h = sl_float_rows(p->h.at + first * p->h.ld, p->h.ld),
                             to = sl_float_rows(z->at, z->ld);
        int32_t number[MOST];
        for (int64_t c = first; c < last; c++)
            number[c - first] = (int32_t)(FIRST + c);
        const struct sl_numbering listed = {-1, number}, run = {(int32_t)(FIRST + first), NULL};
        sl_kernel_aggregate(p->reducer, &messages, &a.view, p->width, &h, i < parts - 1, &to,
                            i % 2 ? &listed : &run,
                            p->reducer == SL_REDUCE_SUM ? NULL : args_of(arg), arg->ld);
        sl_guarded_free(&features);
        sl_guarded_sparse_free(&a);
    }
}

static void check_forward(const struct problem *p, int parts, int64_t block_cols, bool wide,
                          enum sl_layout layout)
{
    struct sl_guarded z = sl_guarded_empty(p->rows, p->width, layout, SL_CANARY),
                      arg = sl_guarded_empty(p->rows, p->width, sl_other_layout(layout), SL_CANARY);
    double *want = sl_doubles(p->rows * p->width), *bound = sl_doubles(p->rows * p->width);
    run(p, parts, block_cols, wide, &z, &arg);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t j = 0; j < p->width; j++) {
            int32_t from;
            want[r * p->width + j] = aggregate(p, r, j, &bound[r * p->width + j], &from);
            if (p->reducer != SL_REDUCE_SUM && args_of(&arg)[r * arg.ld + j] != from)
                fail_msg("%s: (%d, %d) comes from %d, expected %d", name_of(p), (int)r, (int)j,
                         args_of(&arg)[r * arg.ld + j], from);
        }
    sl_expect(name_of(p), &z, want, bound);
    if (p->reducer != SL_REDUCE_SUM)
        sl_expect_padding_kept(name_of(p), &arg);
    free(want);
    free(bound);
    sl_guarded_free(&z);
    sl_guarded_free(&arg);
}

/* Calls `check` with every operation, reducer and kind of feature. */
static void each_operation(int64_t rows, int64_t cols, int64_t width, enum sl_layout layout,
                           enum sl_kind kind, void (*check)(const struct problem *p))
{
    for (int operation = 0; operation < SL_MESSAGES; operation++)
        for (int reducer = 0; reducer < SL_REDUCERS; reducer++)
            for (int edge_rows = 0; edge_rows <= (operation != SL_MESSAGE_COPY); edge_rows++) {
                struct problem p = make_problem(rows, cols, width, (enum sl_message)operation,
                                                (enum sl_reduce)reducer, edge_rows, layout, kind);
                for (int level = 0; sl_next_level(&level);)
                    check(&p);
                free_problem(&p);
            }
}

static void check_cuts(const struct problem *p)
{
    check_forward(p, 1, 0, false, p->h.layout);
    check_forward(p, 1, 7, true, SL_TIGHT);
    check_forward(p, 3, 0, true, SL_LOOSE);
    check_forward(p, 4, 5, false, SL_PADDED);
}

static void test_forward(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 7, 16, 33, 64, 65, 130};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (int kind = 0; kind < 2; kind++) /* integers have equal ones to choose from */
            each_operation(23, 37, widths[w], (enum sl_layout)(w % SL_LAYOUTS), (enum sl_kind)kind,
                           check_cuts);
}

static void test_small(void **state)
{
    (void)state;
    each_operation(1, 1, 3, SL_EDGE, SL_REALS, check_cuts);
    each_operation(0, 9, 3, SL_TIGHT, SL_REALS, check_cuts);
    each_operation(2, 4, 17, SL_TIGHT, SL_INTEGERS, check_cuts);
}

/* A row with a NaN reaches its neighbours, wherever it is among them, and nobody else. */
static void check_nan(const struct problem *p)
{
    struct problem bad = *p;
    bad.h = sl_guarded_copy(&p->h, SL_TIGHT, NAN);
    for (int64_t c = 3; c < p->cols; c += 5)
        *sl_element(&bad.h, c, 2) = NAN;
    for (int parts = 1; parts <= 3; parts += 2) {
        struct sl_guarded z = sl_guarded_empty(p->rows, p->width, SL_TIGHT, SL_CANARY),
                          arg = sl_guarded_empty(p->rows, p->width, SL_TIGHT, SL_CANARY);
        run(&bad, parts, 0, false, &z, &arg);
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t j = 0; j < p->width; j++) {
                int32_t from;
                double bound;
                const bool nan = isnan(aggregate(&bad, r, j, &bound, &from)) != 0;
                assert_int_equal(isnan(*sl_element(&z, r, j)) != 0, nan);
                if (p->reducer != SL_REDUCE_SUM)
                    assert_int_equal(args_of(&arg)[r * arg.ld + j], from);
            }
        sl_guarded_free(&z);
        sl_guarded_free(&arg);
    }
    sl_guarded_free(&bad.h);
}

static void test_nan(void **state)
{
    (void)state;
    each_operation(19, 31, 5, SL_TIGHT, SL_REALS, check_nan);
}

/* ---- Merged ---- */

/* The state of the columns [first, last) of A, with rows in another order: row r is place[r]. */
struct state {
    struct sl_guarded z, arg;
};

static struct state state_of(const struct problem *p, int64_t first, int64_t last,
                             const uint32_t *place, enum sl_layout layout)
{
    struct state s = {sl_guarded_empty(p->rows, p->width, layout, SL_CANARY),
                      sl_guarded_empty(p->rows, p->width, sl_other_layout(layout), SL_CANARY)};
    struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, first, last, 0, false);
    struct sl_guarded features = features_of(p, &a.view, first, false),
                      z = sl_guarded_empty(p->rows, p->width, SL_TIGHT, SL_CANARY),
                      arg = sl_guarded_empty(p->rows, p->width, SL_TIGHT, SL_CANARY);
    const struct sl_messages messages = messages_of(p, &features);
    const struct sl_rows h = sl_float_rows(p->h.at + first * p->h.ld, p->h.ld),
                         to = sl_float_rows(z.at, z.ld);
    sl_kernel_aggregate(SL_REDUCE_MAX, &messages, &a.view, p->width, &h, false, &to,
                        &(struct sl_numbering){(int32_t)(FIRST + first), NULL}, args_of(&arg),
                        arg.ld);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t j = 0; j < p->width; j++) {
            *sl_element(&s.z, place[r], j) = *sl_element(&z, r, j);
            args_of(&s.arg)[place[r] * s.arg.ld + j] = args_of(&arg)[r * arg.ld + j];
        }
    sl_guarded_free(&features);
    sl_guarded_free(&z);
    sl_guarded_free(&arg);
    sl_guarded_sparse_free(&a);
    return s;
}

/* Two states are one of all columns, whichever comes first; those of a list are in another order.
 */
static void check_merge(const struct problem *p)
{
    uint32_t same[MOST], mixed[MOST];
    for (int64_t r = 0; r < p->rows; r++) {
        same[r] = (uint32_t)r;
        mixed[r] = (uint32_t)((r + p->rows / 2) % p->rows);
    }
    for (int option = 0; p->reducer == SL_REDUCE_MAX && option < 4; option++) {
        const int64_t half = p->cols / 2, first = option & 1 ? half : 0;
        const bool listed = option & 2;
        struct state to = state_of(p, first, first ? p->cols : half, same, p->h.layout),
                     from = state_of(p, half - first, first ? half : p->cols, listed ? mixed : same,
                                     SL_LOOSE);
        /* Row r of `from` belongs to row index[r]. */
        uint32_t index[MOST];
        for (int64_t r = 0; r < p->rows; r++)
            index[listed ? mixed[r] : r] = (uint32_t)r;
        const struct sl_rows x = sl_float_rows(from.z.at, from.z.ld),
                             z = sl_float_rows(to.z.at, to.z.ld);
        sl_kernel_merge_largest(p->rows, p->width, listed ? index : NULL, &x, args_of(&from.arg),
                                from.arg.ld, &z, args_of(&to.arg), to.arg.ld);
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t j = 0; j < p->width; j++) {
                double bound;
                int32_t arg;
                const double want = aggregate(p, r, j, &bound, &arg),
                             got = (double)*sl_element(&to.z, r, j);
                if (args_of(&to.arg)[r * to.arg.ld + j] != arg ||
                    !(got == want || (isnan(got) && isnan(want))))
                    fail_msg("%s, merged: (%d, %d) is %g from %d, expected %g from %d", name_of(p),
                             (int)r, (int)j, got, args_of(&to.arg)[r * to.arg.ld + j], want, arg);
            }
        sl_expect_padding_kept(name_of(p), &to.z);
        sl_expect_padding_kept(name_of(p), &to.arg);
        sl_guarded_free(&to.z);
        sl_guarded_free(&to.arg);
        sl_guarded_free(&from.z);
        sl_guarded_free(&from.arg);
    }
}

static void check_merge_with_nan(const struct problem *p)
{
    struct problem bad = *p;
    bad.h = sl_guarded_copy(&p->h, SL_TIGHT, NAN);
    for (int64_t c = 3; c < p->cols; c += 5)
        *sl_element(&bad.h, c, 0) = NAN;
    check_merge(&bad);
    sl_guarded_free(&bad.h);
}

static void test_merge(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 7, 16, 33, 64, 65, 130};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (int kind = 0; kind < 2; kind++)
            each_operation(23, 37, widths[w], (enum sl_layout)(w % SL_LAYOUTS), (enum sl_kind)kind,
                           check_merge);
    each_operation(1, 1, 3, SL_EDGE, SL_REALS, check_merge);
    each_operation(9, 4, 17, SL_TIGHT, SL_INTEGERS, check_merge);
    each_operation(19, 31, 5, SL_TIGHT, SL_REALS, check_merge_with_nan);
}

/* ---- Gradients ---- */

/* Σ G·Z, Z in double throughout. */
static double value_of(const struct problem *p, const struct sl_guarded *g, int64_t row,
                       int64_t column, double dh, double de, int64_t vertex)
{
    double sum = 0.0;
    for (int64_t r = 0; r < p->rows; r++) {
        if (row >= 0 && r != row)
            continue;
        for (int64_t j = 0; j < p->width; j++) {
            double z = 0.0;
            bool any = false;
            for (int64_t c = 0; c < p->cols; c++) {
                if (!p->joined[r * p->cols + c])
                    continue;
                const double own = c == vertex && (column < 0 || j == column) ? 1.0 : 0.0;
                const double x = (double)*sl_element(&p->h, c, j) + own * dh,
                             e = (double)feature_at(p, r, c)[p->edge_rows ? j : 0] + own * de;
                const double sent = message(p->operation, x, e);
                if (p->reducer == SL_REDUCE_SUM)
                    z += sent;
                else if (!any || is_better(p->reducer, sent, z))
                    z = sent;
                any = true;
            }
            sum += (double)*sl_element(g, r, j) * z;
        }
    }
    return sum;
}

static const double STEP = 1e-5, TOLERANCE = 2e-5; /* quotients by 0.5 to 1.5: up to 100 terms */

static void check_near(const struct problem *p, const char *what, int64_t i, int64_t j, double got,
                       double want)
{
    if (!(fabs(got - want) <= TOLERANCE * fmax(1.0, fabs(want))))
        fail_msg("%s: the gradient of %s (%d, %d) is %.9g, expected %.9g", name_of(p), what, (int)i,
                 (int)j, got, want);
}

static void check_vertices(const struct problem *p, const struct sl_guarded *g,
                           const struct sl_guarded *arg, int64_t block_cols)
{
    struct sl_guarded_sparse at = sl_guarded_sparse_transpose(&p->a.view, block_cols);
    struct sl_guarded features = features_of(p, &at.view, 0, true);
    const struct sl_messages messages = messages_of(p, &features);
    const int32_t *from = p->reducer == SL_REDUCE_SUM ? NULL : args_of(arg);
    int32_t number[MOST];
    for (int64_t c = 0; c < p->cols; c++)
        number[c] = (int32_t)(FIRST + c);
    const struct sl_numbering vertices_run = {FIRST, NULL}, vertices_listed = {-1, number};
    struct sl_guarded dh = sl_guarded_empty(p->cols, p->width, SL_LOOSE, SL_CANARY);
    for (int accumulate = 0; accumulate < 2; accumulate++)
        sl_kernel_aggregate_back(&messages, &at.view, p->width, g->at, g->ld,
                                 accumulate ? &vertices_run : &vertices_listed, from, arg->ld,
                                 accumulate, dh.at, dh.ld);
    for (int64_t c = 0; c < p->cols; c++)
        for (int64_t j = 0; j < p->width; j++) {
            const double above = value_of(p, g, -1, j, STEP, 0.0, c),
                         below = value_of(p, g, -1, j, -STEP, 0.0, c);
            check_near(p, "vertex", c, j, 0.5 * (double)*sl_element(&dh, c, j),
                       (above - below) / (2.0 * STEP));
        }
    sl_expect_padding_kept(name_of(p), &dh);
    sl_guarded_free(&dh);
    sl_guarded_free(&features);
    sl_guarded_sparse_free(&at);
}

static void check_edges(const struct problem *p, const struct sl_guarded *g,
                        const struct sl_guarded *arg, int64_t block_cols)
{
    int64_t count;
    struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, 0, p->cols, block_cols, false);
    struct sl_entry *entries = sl_sparse_entries(&a.view, &count);
    struct sl_guarded features = features_of(p, &a.view, 0, false);
    const struct sl_messages messages = messages_of(p, &features);
    const int32_t *from = p->reducer == SL_REDUCE_SUM ? NULL : args_of(arg);
    struct sl_guarded de =
        sl_guarded_empty(count, feature_width(p), p->edge_rows ? SL_PADDED : SL_EDGE, SL_CANARY);
    sl_kernel_aggregate_edges(&messages, &a.view, p->width, p->h.at, p->h.ld, g->at, g->ld,
                              &(struct sl_numbering){FIRST, NULL}, from, arg->ld, de.at, de.ld);
    for (int64_t e = 0; e < count; e++)
        for (int64_t j = 0; j < feature_width(p); j++) {
            const int64_t column = p->edge_rows ? j : -1;
            const double above = value_of(p, g, entries[e].row, column, 0.0, STEP, entries[e].col),
                         below = value_of(p, g, entries[e].row, column, 0.0, -STEP, entries[e].col);
            check_near(p, "edge", e, j, (double)*sl_element(&de, e, j),
                       (above - below) / (2.0 * STEP));
        }
    sl_expect_padding_kept(name_of(p), &de);
    sl_guarded_free(&de);
    sl_guarded_free(&features);
    free(entries);
    sl_guarded_sparse_free(&a);
}

static void check_gradients(const struct problem *p)
{
    struct sl_guarded g = sl_guarded_random(p->rows, p->width, SL_PADDED, NAN, SL_REALS),
                      z = sl_guarded_empty(p->rows, p->width, SL_TIGHT, SL_CANARY),
                      arg = sl_guarded_empty(p->rows, p->width, SL_LOOSE, SL_CANARY);
    run(p, 2, 0, false, &z, &arg);
    for (int64_t block_cols = 0; block_cols <= 4; block_cols += 4) {
        check_vertices(p, &g, &arg, block_cols);
        if (p->operation != SL_MESSAGE_COPY)
            check_edges(p, &g, &arg, block_cols);
    }
    sl_guarded_free(&g);
    sl_guarded_free(&z);
    sl_guarded_free(&arg);
}

static void test_gradients(void **state)
{
    (void)state;
    each_operation(7, 11, 3, SL_TIGHT, SL_REALS, check_gradients);
    each_operation(4, 3, 67, SL_LOOSE, SL_REALS, check_gradients);
    each_operation(5, 1, 2, SL_EDGE, SL_REALS, check_gradients);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),   cmocka_unit_test(test_small),
        cmocka_unit_test(test_nan),       cmocka_unit_test(test_merge),
        cmocka_unit_test(test_gradients),
    };
    sl_random_seed(9);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
