/* The largest or least of what neighbours send, two results merged, and the gradient; the largest
 * of several matrices, and its gradients. How kernels are judged: tests/kernels.h.
 *
 * A neighbour sends the result of one float operation, so the largest value and its vertex are
 * exact. The exact gradient is the central difference of Σ G·Z in double. */
#include "codelets/bfloat16.h"
#include "codelets/jump_max.h"
#include "codelets/max.h"
#include "tests/kernels.h"
#include "tests/unit.h"

enum { FIRST = 1000, MOST = 64 }; /* vertex of column 0; rows and columns */

struct problem {
    int64_t rows, cols, width;
    float sign; /* -1: the least */
    struct sl_guarded_sparse a;
    float *weight;       // (rows, cols): NaN where there is no entry
    struct sl_guarded h; // (cols, width)
};

static struct problem make_problem(int64_t rows, int64_t cols, int64_t width, bool weighted,
                                   enum sl_layout layout, enum sl_kind kind)
{
    struct problem p = {.rows = rows, .cols = cols, .width = width, .sign = 1.0f};
    int64_t count;
    p.a = sl_guarded_sparse_random(rows, cols, 5, rows / 2, weighted, kind);
    p.h = sl_guarded_random(cols, width, layout, NAN, kind);
    p.weight = malloc((size_t)(rows * cols + 1) * sizeof *p.weight);
    assert_non_null(p.weight);
    for (int64_t k = 0; k < rows * cols; k++)
        p.weight[k] = NAN;
    struct sl_entry *entries = sl_sparse_entries(&p.a.view, &count);
    for (int64_t e = 0; e < count; e++)
        p.weight[entries[e].row * cols + entries[e].col] = entries[e].value;
    free(entries);
    return p;
}

static void free_problem(struct problem *p)
{
    sl_guarded_sparse_free(&p->a);
    sl_guarded_free(&p->h);
    free(p->weight);
}

static const char *name_of(const struct problem *p)
{
    static char name[96];
    snprintf(name, sizeof name, "%s, %s, %lldx%lldx%lld, %s", p->sign > 0 ? "max" : "min",
             p->a.view.value ? "weighted" : "unweighted", (long long)p->rows, (long long)p->cols,
             (long long)p->width, sl_level_name());
    return name;
}

/* ---- Exact ---- */

/* Return the message from column c to row r in column j of H, made larger by `more`. */
static double sent_by(const struct problem *p, int64_t r, int64_t c, int64_t j, double more)
{
    return (double)p->weight[r * p->cols + c] * ((double)*sl_element(&p->h, c, j) + more);
}

static bool is_better(const struct problem *p, double m, double z)
{
    return isnan(m) || isnan(z) ? isnan(m) && !isnan(z) : p->sign > 0 ? m > z : m < z;
}

static double exact(const struct problem *p, int64_t r, int64_t j, int32_t *vertex)
{
    double z = 0.0;
    *vertex = -1;
    for (int64_t c = 0; c < p->cols; c++) {
        if (isnan(p->weight[r * p->cols + c]))
            continue;
        const double m = (double)(float)sent_by(p, r, c, j, 0.0);
        if (*vertex < 0 || is_better(p, m, z)) {
            z = m;
            *vertex = (int32_t)(FIRST + c);
        }
    }
    return z;
}

/* ---- Results ---- */

struct result {
    struct sl_guarded z, argmax;
};

static int32_t *vertex_at(const struct result *result, int64_t r, int64_t j)
{
    return (int32_t *)(void *)result->argmax.at + r * result->argmax.ld + j;
}

static struct result make_result(const struct problem *p, enum sl_layout layout)
{
    return (struct result){sl_guarded_empty(p->rows, p->width, layout, SL_CANARY),
                           sl_guarded_empty(p->rows, p->width, sl_other_layout(layout), SL_CANARY)};
}

static void free_result(struct result *result)
{
    sl_guarded_free(&result->z);
    sl_guarded_free(&result->argmax);
}

/* From row r on. */
static struct sl_argmax argmax_of(const struct problem *p, const struct result *result, int64_t r)
{
    return (struct sl_argmax){vertex_at(result, r, 0), result->argmax.ld, p->sign};
}

static void expect_exact(const struct problem *p, const struct result *result, const char *what)
{
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t j = 0; j < p->width; j++) {
            int32_t vertex;
            const double want = exact(p, r, j, &vertex),
                         got = (double)*sl_element(&result->z, r, j);
            if (*vertex_at(result, r, j) != vertex || !(got == want || (isnan(got) && isnan(want))))
                fail_msg("%s%s: (%d, %d) is %g from %d, expected %g from %d", name_of(p), what,
                         (int)r, (int)j, got, *vertex_at(result, r, j), want, vertex);
        }
    sl_expect_padding_kept(name_of(p), &result->z);
    sl_expect_padding_kept(name_of(p), &result->argmax);
}

/* Reduce columns [first, last) of A; their vertices are in a list, or one after the other. */
static void take(const struct problem *p, int64_t first, int64_t last, int64_t block_cols,
                 bool wide, bool listed, bool accumulate, struct result *result)
{
    struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, first, last, block_cols, wide);
    const struct sl_rows h = sl_float_rows(p->h.at + first * p->h.ld, p->h.ld),
                         to = sl_float_rows(result->z.at, result->z.ld);
    int32_t number[MOST];
    for (int64_t c = first; c < last; c++)
        number[c - first] = (int32_t)(FIRST + c);
    const struct sl_numbering list = {-1, number}, run = {(int32_t)(FIRST + first), NULL};
    const struct sl_argmax argmax = argmax_of(p, result, 0);
    sl_kernel_max(&a.view, p->width, &h, accumulate, &to, listed ? &list : &run, &argmax);
    sl_guarded_sparse_free(&a);
}

/* ---- Forward ---- */

/* Column parts from the last to the first: the order does not matter. */
static void check_parts(const struct problem *p, int parts, int64_t block_cols, bool wide,
                        enum sl_layout layout)
{
    struct result result = make_result(p, layout);
    for (int i = parts - 1; i >= 0; i--)
        take(p, p->cols * i / parts, p->cols * (i + 1) / parts, block_cols, wide, i % 2,
             i < parts - 1, &result);
    expect_exact(p, &result, "");
    free_result(&result);
}

static void check_forward(const struct problem *p)
{
    check_parts(p, 1, 0, false, p->h.layout);
    check_parts(p, 1, 7, true, SL_TIGHT);
    check_parts(p, 3, 0, true, SL_LOOSE);
    check_parts(p, 4, 5, false, SL_PADDED);
}

/* ---- Merged ---- */

/* Two halves of the columns are the whole, whichever comes first; rows of a list come in another
 * order. */
static void check_merge(const struct problem *p)
{
    const int64_t half = p->cols / 2;
    for (int option = 0; option < 4; option++) {
        const bool second = option & 1, listed = option & 2;
        struct result to = make_result(p, p->h.layout), other = make_result(p, SL_LOOSE),
                      moved = make_result(p, SL_LOOSE);
        uint32_t index[MOST]; /* the row that row r of `moved` belongs to */
        take(p, second ? half : 0, second ? p->cols : half, 0, false, false, false, &to);
        take(p, second ? 0 : half, second ? half : p->cols, 0, false, false, false, &other);
        for (int64_t r = 0; r < p->rows; r++) {
            index[r] = (uint32_t)(listed ? (r + p->rows / 2) % p->rows : r);
            for (int64_t j = 0; j < p->width; j++) {
                *sl_element(&moved.z, r, j) = *sl_element(&other.z, index[r], j);
                *vertex_at(&moved, r, j) = *vertex_at(&other, index[r], j);
            }
        }
        const struct sl_rows x = sl_float_rows(moved.z.at, moved.z.ld),
                             z = sl_float_rows(to.z.at, to.z.ld);
        const struct sl_argmax from = argmax_of(p, &moved, 0), argmax = argmax_of(p, &to, 0);
        sl_kernel_max_merge(p->rows, p->width, listed ? index : NULL, &x, &from, &z, &argmax);
        expect_exact(p, &to, ", merged");
        free_result(&to);
        free_result(&other);
        free_result(&moved);
    }
}

/* ---- All of them ---- */

static void each_problem(int64_t rows, int64_t cols, int64_t width, enum sl_layout layout,
                         enum sl_kind kind, void (*check)(const struct problem *p))
{
    for (int option = 0; option < 4; option++) {
        struct problem p = make_problem(rows, cols, width, option & 1, layout, kind);
        p.sign = option & 2 ? -1.0f : 1.0f;
        for (int level = 0; sl_next_level(&level);)
            check(&p);
        free_problem(&p);
    }
}

static void each_size(void (*check)(const struct problem *p))
{
    static const int64_t widths[] = {1, 7, 16, 33, 64, 65, 130};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (int kind = 0; kind < 2; kind++) /* integers have equal ones to choose from */
            each_problem(23, 37, widths[w], (enum sl_layout)(w % SL_LAYOUTS), (enum sl_kind)kind,
                         check);
    each_problem(1, 1, 3, SL_EDGE, SL_REALS, check);
    each_problem(0, 9, 3, SL_TIGHT, SL_REALS, check);
    each_problem(2, 4, 17, SL_TIGHT, SL_INTEGERS, check);
}

SL_TEST(test_forward)
{
    each_size(check_forward);
}

SL_TEST(test_merge)
{
    each_size(check_merge);
}

/* A row with a NaN reaches its neighbours, wherever it is among them, and nobody else. */
static void check_nan(const struct problem *p)
{
    struct problem bad = *p;
    bad.h = sl_guarded_copy(&p->h, SL_TIGHT, NAN);
    for (int64_t c = 3; c < p->cols; c += 5)
        *sl_element(&bad.h, c, 2) = NAN;
    check_forward(&bad);
    check_merge(&bad);
    sl_guarded_free(&bad.h);
}

SL_TEST(test_nan)
{
    each_problem(19, 31, 5, SL_TIGHT, SL_REALS, check_nan);
}

/* ---- Gradients ---- */

static const double STEP = 1e-5, TOLERANCE = 2e-5;

/* Σ G·Z over the column j, where H(c, j) is `more` larger. */
static double value_of(const struct problem *p, const struct sl_guarded *g, int64_t c, int64_t j,
                       double more)
{
    double sum = 0.0;
    for (int64_t r = 0; r < p->rows; r++) {
        double z = 0.0;
        bool any = false;
        for (int64_t u = 0; u < p->cols; u++) {
            if (isnan(p->weight[r * p->cols + u]))
                continue;
            const double m = sent_by(p, r, u, j, u == c ? more : 0.0);
            z = !any || is_better(p, m, z) ? m : z;
            any = true;
        }
        sum += (double)*sl_element(g, r, j) * z;
    }
    return sum;
}

/* The transpose in two parts, whose vertices are a list or not. */
static void check_gradient_in(const struct problem *p, const struct sl_guarded *g,
                              const struct result *result, int64_t block_cols)
{
    struct sl_guarded_sparse whole = sl_guarded_sparse_transpose(&p->a.view, 0);
    struct sl_guarded dh = sl_guarded_empty(p->cols, p->width, SL_LOOSE, SL_CANARY);
    int32_t number[MOST];
    for (int64_t c = 0; c < p->cols; c++)
        number[c] = (int32_t)(FIRST + c);
    for (int part = 0; part < 2; part++) {
        const int64_t first = part ? p->rows / 2 : 0, last = part ? p->rows : p->rows / 2;
        struct sl_guarded_sparse at =
            sl_guarded_sparse_cut(&whole.view, first, last, block_cols, part);
        const struct sl_numbering rows = {part ? -1 : FIRST, part ? number : NULL};
        const struct sl_rows from = sl_float_rows(g->at + first * g->ld, g->ld),
                             to = sl_float_rows(dh.at, dh.ld);
        const struct sl_argmax argmax = argmax_of(p, result, first);
        sl_kernel_max_back(&at.view, p->width, &from, &rows, &argmax, part, &to);
        sl_guarded_sparse_free(&at);
    }
    for (int64_t c = 0; c < p->cols; c++)
        for (int64_t j = 0; j < p->width; j++) {
            const double got = (double)*sl_element(&dh, c, j),
                         want = (value_of(p, g, c, j, STEP) - value_of(p, g, c, j, -STEP)) /
                                (2.0 * STEP);
            if (!(fabs(got - want) <= TOLERANCE * fmax(1.0, fabs(want))))
                fail_msg("%s: the gradient of (%d, %d) is %.9g, expected %.9g", name_of(p), (int)c,
                         (int)j, got, want);
        }
    sl_expect_padding_kept(name_of(p), &dh);
    sl_guarded_free(&dh);
    sl_guarded_sparse_free(&whole);
}

static void check_gradient(const struct problem *p)
{
    struct sl_guarded g = sl_guarded_random(p->rows, p->width, SL_PADDED, NAN, SL_REALS);
    struct result result = make_result(p, SL_TIGHT);
    take(p, 0, p->cols, 0, false, false, false, &result);
    check_gradient_in(p, &g, &result, 0);
    check_gradient_in(p, &g, &result, 4);
    free_result(&result);
    sl_guarded_free(&g);
}

SL_TEST(test_gradient)
{
    each_problem(7, 11, 3, SL_TIGHT, SL_REALS, check_gradient);
    each_problem(4, 3, 67, SL_LOOSE, SL_REALS, check_gradient);
    each_problem(5, 1, 2, SL_EDGE, SL_REALS, check_gradient);
}

/* ---- The largest of several matrices ---- */

enum { MATRICES = 3 };

/* Integers have many equal values, of which the first counts. NaN wins over all numbers. */
static void check_jump_max(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const bool half = sl_random_below(2), scaled = sl_random_below(2);
    struct sl_guarded factor = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS),
                      m = sl_guarded_empty(rows, cols, sl_other_layout(layout), SL_CANARY),
                      d = sl_guarded_random(rows, cols, layout, SL_CANARY, SL_REALS),
                      g = sl_guarded_random(rows, cols, layout, NAN, SL_REALS);
    struct sl_narrowed narrow_m = {.cols = 0}, narrow_g = {.cols = 0};
    const int64_t ldc = cols + 3;
    int32_t *argmax = malloc((size_t)(rows * ldc + 1) * sizeof *argmax);
    double *largest = sl_doubles(rows * cols), *want = sl_doubles(rows * cols);
    int *from = calloc((size_t)(rows * cols) + 1, sizeof *from);
    assert_true(argmax && from);
    for (int64_t k = 0; k < rows * ldc; k++)
        argmax[k] = -7;
    if (half) {
        narrow_m = sl_narrowed_empty(rows, cols, sl_some_spare());
        narrow_g = sl_narrowed_of(&g, sl_some_spare());
    }
    const struct sl_rows to = half ? narrow_m.rows : sl_rows_of(&m),
                         gradient = half ? narrow_g.rows : sl_rows_of(&g);
    for (int i = 0; i < MATRICES; i++) {
        struct sl_guarded x = sl_guarded_random(rows, cols, layout, NAN, SL_INTEGERS);
        struct sl_narrowed narrow = {.cols = 0};
        for (int64_t k = 0; i == 1 && k < rows * cols; k += 7)
            *sl_element(&x, k / cols, k % cols) = NAN;
        if (half)
            narrow = sl_narrowed_of(&x, sl_some_spare());
        for (int64_t k = 0; k < rows * cols; k++) {
            float value = *sl_element(&x, k / cols, k % cols);
            value = scaled ? factor.at[k / cols] * value : value;
            value = half ? sl_widen(sl_narrow(value)) : value;
            if (i == 0 || (double)value > largest[k] || isnan(value)) {
                largest[k] = (double)value;
                from[k] = i;
            }
        }
        const struct sl_rows meets = half ? narrow.rows : sl_rows_of(&x);
        sl_kernel_jump_max(rows, cols, i, scaled ? factor.at : NULL, &meets, &to, argmax, ldc);
        if (half)
            sl_guarded_free(&narrow.words);
        sl_guarded_free(&x);
    }
    for (int64_t k = 0; k < rows * cols; k++) {
        const int64_t r = k / cols, j = k % cols;
        const float got = half ? sl_widen(*sl_narrowed_at(&narrow_m, r, j)) : *sl_element(&m, r, j);
        if (!(isnan(got) && isnan(largest[k])) && (double)got != largest[k])
            fail_msg("the largest of (%d, %d) is %.9g, expected %.9g (%s)", (int)r, (int)j,
                     (double)got, largest[k], sl_level_name());
        assert_int_equal(argmax[r * ldc + j], from[k]);
    }
    for (int64_t k = 0; k < rows * ldc; k++)
        assert_true(k % ldc < cols || argmax[k] == -7);
    for (int number = 0; number < MATRICES; number++) {
        const bool accumulate = number != 1;
        for (int64_t k = 0; k < rows * cols; k++)
            want[k] = (accumulate ? (double)*sl_element(&d, k / cols, k % cols) : 0.0) +
                      (from[k] == number ? (double)*sl_element(&g, k / cols, k % cols) : 0.0);
        sl_kernel_jump_max_back(rows, cols, number, &gradient, argmax, ldc, accumulate, d.at, d.ld);
        for (int64_t k = 0; k < rows * cols; k++)
            want[k] = (double)(float)want[k];
        sl_expect("gradient of one of several matrices", &d, want, NULL);
    }
    if (half) {
        sl_guarded_free(&narrow_m.words);
        sl_guarded_free(&narrow_g.words);
    }
    free(argmax);
    free(from);
    free(largest);
    free(want);
    sl_guarded_free(&factor);
    sl_guarded_free(&m);
    sl_guarded_free(&d);
    sl_guarded_free(&g);
}

SL_TEST(test_jump_max)
{
    sl_each_shape_and_level(check_jump_max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),  cmocka_unit_test(test_merge),
        cmocka_unit_test(test_nan),      cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_jump_max),
    };
    sl_random_seed(9);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
