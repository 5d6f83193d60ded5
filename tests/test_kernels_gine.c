/* The aggregation of GINE and its gradients. How kernels are judged: tests/kernels.h.
 *
 * X has odd multiples of 2^-7; products f·W and biases are multiples of 2^-6. So every X + f·W + b
 * is exact in float and never near the kink of relu, and sums are exact in any order. G has
 * integers, or reals. Exact gradients are those of the formulas in codelets/gine.h, in double; they
 * are compared with central differences of Σ G·OUT, which is linear between kinks. */
#include "codelets/gine.h"
#include "tests/kernels.h"
#include "tests/unit.h"

struct problem {
    int64_t rows, cols, n, features, count;
    enum sl_layout layout;
    enum sl_kind kind;          /* of G */
    struct sl_guarded_sparse a; // (rows, cols); an entry's value is its number
    float *feature;             // (count, features)
    struct sl_entry *entry;     // (count)
    struct sl_guarded x, edge, g;
};

static float units(float unit, float more)
{
    return unit * (float)(sl_random_below(17) - 8) + more;
}

static struct problem make_problem(int64_t rows, int64_t cols, int64_t n, int64_t features,
                                   enum sl_layout layout, enum sl_kind kind)
{
    struct problem p = {rows, cols, n, features, .layout = layout, .kind = kind};
    p.a = sl_guarded_sparse_random(rows, cols, 5, rows / 2, true, SL_REALS);
    p.x = sl_guarded_random(cols, n, layout, NAN, SL_REALS);
    p.edge = sl_guarded_random(features + 1, n, sl_other_layout(layout), NAN, SL_REALS);
    p.g = sl_guarded_random(rows, n, layout, NAN, kind);
    p.entry = sl_sparse_entries(&p.a.view, &p.count);
    p.feature = calloc((size_t)(p.count * features) + 1, sizeof *p.feature);
    assert_non_null(p.feature);
    for (int64_t e = 0; e < p.count; e++)
        ((float *)p.a.view.value)[e] = (float)e;
    for (int64_t i = 0; i < p.count * features; i++)
        p.feature[i] = units(0x1p-3f, 0.0f);
    for (int64_t i = 0; i < cols * n; i++)
        *sl_element(&p.x, i / n, i % n) = units(0x1p-2f, 0x1p-7f);
    for (int64_t i = 0; i < (features + 1) * n; i++)
        *sl_element(&p.edge, i / n, i % n) = units(0x1p-3f, 0.0f);
    return p;
}

static void free_problem(struct problem *p)
{
    sl_guarded_sparse_free(&p->a);
    sl_guarded_free(&p->x);
    sl_guarded_free(&p->edge);
    sl_guarded_free(&p->g);
    free(p->feature);
    free(p->entry);
}

static const char *name_of(const struct problem *p, const char *what)
{
    static char name[128];
    snprintf(name, sizeof name, "%s, %lldx%lld, %lld columns, %lld features, %s", what,
             (long long)p->rows, (long long)p->cols, (long long)p->n, (long long)p->features,
             sl_level_name());
    return name;
}

/* Features of the entries of `a`, whose values are their numbers in the problem. */
static struct sl_guarded take_features(const struct problem *p, struct sl_sparse *a)
{
    const int64_t count = a->row_ptr[a->blocks * a->rows];
    struct sl_guarded of = sl_guarded_empty(count, p->features, SL_EDGE, NAN);
    for (int64_t e = 0; e < count; e++)
        for (int64_t k = 0; k < p->features; k++)
            *sl_element(&of, e, k) = p->feature[(int64_t)a->value[e] * p->features + k];
    a->value = NULL;
    a->edge = of.at;
    a->edge_features = p->features;
    return of;
}

static struct sl_floats_at floats(const struct sl_guarded *m, int64_t r)
{
    return (struct sl_floats_at){sl_element(m, r, 0), m->ld};
}

/* ---- Exact ---- */

/* X + f·W + b of entry e in column j, where X(c, j) or EDGE(k, j) is `more` larger; -1: none. */
static double argument_of(const struct problem *p, int64_t e, int64_t j, int64_t c, int64_t k,
                          double more)
{
    double sum = (double)*sl_element(&p->x, p->entry[e].col, j) +
                 (double)*sl_element(&p->edge, p->features, j);
    if (p->entry[e].col == c || k == p->features)
        sum += more;
    for (int64_t i = 0; i < p->features; i++)
        sum += (double)p->feature[e * p->features + i] *
               ((double)*sl_element(&p->edge, i, j) + (i == k ? more : 0.0));
    return sum;
}

/* The entries of columns [0, cols). */
static double *exact_out(const struct problem *p)
{
    double *out = sl_doubles(p->rows * p->n);
    for (int64_t e = 0; e < p->count; e++)
        for (int64_t j = 0; j < p->n; j++) {
            const double x = argument_of(p, e, j, -1, -1, 0.0);
            out[p->entry[e].row * p->n + j] += x < 0.0 ? 0.0 : x;
        }
    return out;
}

/* Gradients of X (cols, n), then of EDGE (features + 1, n); SIZE: sums of the terms' sizes. */
static double *exact_back(const struct problem *p, double *size)
{
    double *back = sl_doubles((p->cols + p->features + 1) * p->n), *edge = back + p->cols * p->n;
    for (int64_t e = 0; e < p->count; e++)
        for (int64_t j = 0; j < p->n; j++) {
            if (argument_of(p, e, j, -1, -1, 0.0) <= 0.0)
                continue;
            const double g = (double)*sl_element(&p->g, p->entry[e].row, j);
            for (int64_t k = -1; k <= p->features; k++) {
                const int64_t at = k < 0 ? p->entry[e].col * p->n + j : edge - back + k * p->n + j;
                const double term =
                    k < 0 || k == p->features ? g : g * (double)p->feature[e * p->features + k];
                back[at] += term;
                size[at] += fabs(term);
            }
        }
    return back;
}

/* Σ G·OUT over column j. */
static double value_of(const struct problem *p, int64_t j, int64_t c, int64_t k, double more)
{
    double sum = 0.0;
    for (int64_t e = 0; e < p->count; e++)
        sum += (double)*sl_element(&p->g, p->entry[e].row, j) *
               fmax(argument_of(p, e, j, c, k, more), 0.0);
    return sum;
}

/* Compare some of the gradients with central differences. A step crosses no kink. */
static void check_differences(const struct problem *p, const double *back)
{
    enum { SOME = 12 };
    const double step = 1e-3, tolerance = 1e-7;
    for (int i = 0; i < 2 * SOME && p->n > 0; i++) {
        const int64_t j = sl_random_below(p->n), c = i < SOME ? sl_random_below(p->cols) : -1,
                      k = i < SOME ? -1 : sl_random_below(p->features + 1);
        const double got = back[(c < 0 ? p->cols + k : c) * p->n + j],
                     want =
                         (value_of(p, j, c, k, step) - value_of(p, j, c, k, -step)) / (2.0 * step);
        if (!(fabs(got - want) <= tolerance * fmax(1.0, fabs(want))))
            fail_msg("%s: the gradient of (%lld, %lld) is %.9g, expected %.9g",
                     name_of(p, "differences"), (long long)(c < 0 ? k : c), (long long)j, got,
                     want);
    }
}

/* ---- Forward ---- */

/* Sum `parts` parts of the columns, from the last to the first. */
static void check_parts(const struct problem *p, const double *want, int parts, int64_t block_cols,
                        bool wide, enum sl_layout layout)
{
    struct sl_guarded out = sl_guarded_empty(p->rows, p->n, layout, SL_CANARY);
    for (int i = parts - 1; i >= 0; i--) {
        const int64_t first = p->cols * i / parts, last = p->cols * (i + 1) / parts;
        struct sl_guarded_sparse a =
            sl_guarded_sparse_cut(&p->a.view, first, last, block_cols, wide);
        struct sl_guarded of = take_features(p, &a.view);
        const struct sl_floats_at x = floats(&p->x, first), edge = floats(&p->edge, 0),
                                  to = floats(&out, 0);
        sl_kernel_gine(&a.view, p->n, &x, &edge, i < parts - 1, &to);
        sl_guarded_free(&of);
        sl_guarded_sparse_free(&a);
    }
    sl_expect(name_of(p, "gine"), &out, want, NULL);
    sl_guarded_free(&out);
}

static void check_forward(const struct problem *p)
{
    double *want = exact_out(p);
    check_parts(p, want, 1, 0, false, p->layout);
    check_parts(p, want, 1, 7, true, SL_TIGHT);
    check_parts(p, want, 3, 0, true, SL_LOOSE);
    check_parts(p, want, 2, 5, false, SL_EDGE);
    free(want);
}

/* ---- Backward ---- */

/* Sum `parts` parts of the rows of A. Row r of EDGE_BACK starts with r if `onto`. */
static void check_back_parts(const struct problem *p, const double *want, const double *bound,
                             int parts, int64_t block_cols, bool has_back, bool onto,
                             enum sl_layout layout)
{
    const int64_t edges = (p->features + 1) * p->n;
    struct sl_guarded_sparse whole = sl_guarded_sparse_transpose(&p->a.view, 0);
    struct sl_guarded back = sl_guarded_empty(p->cols, p->n, layout, SL_CANARY),
                      edge_back = sl_guarded_empty(p->features + 1, p->n, sl_other_layout(layout),
                                                   SL_CANARY);
    double *edge_want = sl_doubles(edges);
    for (int64_t i = 0; i < edges; i++) {
        edge_want[i] = want[p->cols * p->n + i] + (onto ? (double)(i / p->n) : 0.0);
        if (onto)
            *sl_element(&edge_back, i / p->n, i % p->n) = (float)(i / p->n);
    }
    for (int i = 0; i < parts; i++) {
        const int64_t first = p->rows * i / parts, last = p->rows * (i + 1) / parts;
        struct sl_guarded_sparse at =
            sl_guarded_sparse_cut(&whole.view, first, last, block_cols, i % 2);
        struct sl_guarded of = take_features(p, &at.view);
        const struct sl_floats_at g = floats(&p->g, first), x = floats(&p->x, 0),
                                  edge = floats(&p->edge, 0), to = floats(&back, 0),
                                  edge_to = floats(&edge_back, 0);
        sl_kernel_gine_back(&at.view, p->n, &g, &x, &edge, i > 0, has_back ? &to : NULL,
                            onto || i > 0, &edge_to);
        sl_guarded_free(&of);
        sl_guarded_sparse_free(&at);
    }
    if (has_back)
        sl_expect(name_of(p, "gine_back"), &back, want, bound);
    sl_expect(name_of(p, "gine_back, EDGE"), &edge_back, edge_want,
              bound ? bound + p->cols * p->n : NULL);
    sl_guarded_free(&back);
    sl_guarded_free(&edge_back);
    sl_guarded_sparse_free(&whole);
    free(edge_want);
}

static void check_back(const struct problem *p)
{
    const int64_t numbers = (p->cols + p->features + 1) * p->n;
    double *size = sl_doubles(numbers), *want = exact_back(p, size);
    check_differences(p, want);
    for (int64_t i = 0; i < numbers; i++)
        size[i] = (size[i] + (double)p->features) * SL_UNIT * (double)(p->count + 2);
    const double *const bound = p->kind == SL_REALS ? size : NULL;
    check_back_parts(p, want, bound, 1, 0, true, false, p->layout);
    check_back_parts(p, want, bound, 1, 7, true, true, SL_TIGHT);
    check_back_parts(p, want, bound, 3, 4, true, false, SL_LOOSE);
    check_back_parts(p, want, bound, 1, 0, false, false, SL_EDGE);
    free(size);
    free(want);
}

/* ---- All of them ---- */

static void each_problem(int64_t rows, int64_t cols, int64_t n, int64_t features,
                         enum sl_layout layout, void (*check)(const struct problem *p))
{
    for (int kind = 0; kind < 2 && sl_takes(rows * cols * n * features); kind++) {
        struct problem p = make_problem(rows, cols, n, features, layout, (enum sl_kind)kind);
        for (int level = 0; sl_next_level(&level);)
            check(&p);
        free_problem(&p);
    }
}

/* Rows without entries, rows that are full, more than a chunk of entries, many features. */
static void each_size(void (*check)(const struct problem *p))
{
    static const int64_t widths[] = {1, 7, 16, 33, 64, 200}, features[] = {1, 3, 8, 17};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (size_t k = 0; k < SL_COUNT(features); k++)
            each_problem(23, 37, widths[w], features[k], (enum sl_layout)((w + k) % SL_LAYOUTS),
                         check);
    each_problem(1, 1, 3, 2, SL_EDGE, check);
    each_problem(0, 9, 3, 2, SL_TIGHT, check);
    each_problem(150, 170, 9, 3, SL_PADDED, check);
    each_problem(700, 3, 17, 2, SL_LOOSE, check);
    each_problem(5, 4, 70, 127, SL_PADDED, check);
    each_problem(5, 4, 70, 128, SL_TIGHT, check);
    each_problem(5, 4, 70, SL_EDGE_FEATURES, SL_PADDED, check);
}

SL_TEST(test_forward)
{
    each_size(check_forward);
}

SL_TEST(test_back)
{
    each_size(check_back);
}

/* A row with a NaN reaches its neighbours, and nobody else. */
static void check_nan(const struct problem *p)
{
    struct sl_guarded bad = sl_guarded_copy(&p->x, SL_TIGHT, NAN),
                      out = sl_guarded_empty(p->rows, p->n, SL_PADDED, SL_CANARY);
    struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, 0, p->cols, 7, false);
    struct sl_guarded of = take_features(p, &a.view);
    bool *reached = calloc((size_t)p->rows + 1, sizeof *reached);
    assert_non_null(reached);
    for (int64_t c = 3; c < p->cols; c += 5)
        *sl_element(&bad, c, 2) = NAN;
    for (int64_t e = 0; e < p->count; e++)
        reached[p->entry[e].row] |= p->entry[e].col % 5 == 3;
    const struct sl_floats_at x = floats(&bad, 0), edge = floats(&p->edge, 0), to = floats(&out, 0);
    sl_kernel_gine(&a.view, p->n, &x, &edge, false, &to);
    for (int64_t i = 0; i < p->rows * p->n; i++)
        assert_int_equal(isnan(*sl_element(&out, i / p->n, i % p->n)),
                         reached[i / p->n] && i % p->n == 2);
    free(reached);
    sl_guarded_free(&of);
    sl_guarded_sparse_free(&a);
    sl_guarded_free(&out);
    sl_guarded_free(&bad);
}

SL_TEST(test_nan)
{
    each_problem(19, 31, 20, 3, SL_PADDED, check_nan);
}

/* A million gradients of one sign: a sum of one after the other would be off by a hundredth. */
SL_TEST(test_long_sum)
{
    enum { ROWS = 1 << 20, DEGREE = 16 };
    uint32_t *row_ptr = calloc(ROWS / DEGREE + 1, sizeof *row_ptr);
    uint16_t *col = calloc(ROWS, sizeof *col);
    float *feature = calloc(ROWS, sizeof *feature), *x = calloc(ROWS / DEGREE, sizeof *x);
    assert_true(row_ptr && col && feature && x);
    for (int64_t r = 0; r < ROWS / DEGREE; r++) {
        row_ptr[r + 1] = (uint32_t)(r + 1) * DEGREE;
        x[r] = 1.0f;
    }
    for (int64_t e = 0; e < ROWS; e++)
        feature[e] = 0.1f;
    const struct sl_sparse at = {.rows = ROWS / DEGREE,
                                 .cols = 1,
                                 .block_cols = 1,
                                 .blocks = 1,
                                 .narrow = true,
                                 .row_ptr = row_ptr,
                                 .col = col,
                                 .edge_features = 1,
                                 .edge = feature};
    for (int level = 0; sl_next_level(&level);) {
        float g = 0.1f, edge[2] = {0}, to[2];
        sl_kernel_gine_back(&at, 1, &(struct sl_floats_at){&g, 1}, &(struct sl_floats_at){x, 1},
                            &(struct sl_floats_at){edge, 1}, false, NULL, false,
                            &(struct sl_floats_at){to, 1});
        assert_true(fabs((double)to[0] / (ROWS * 0.01) - 1.0) < 1e-4);
        assert_true(fabs((double)to[1] / (ROWS * 0.1) - 1.0) < 1e-4);
    }
    free(row_ptr);
    free(col);
    free(feature);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_long_sum),
    };
    sl_random_seed(12);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
