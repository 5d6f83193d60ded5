/* Kernels on dense matrices: the product, elementwise and row operations. How they are judged:
 * tests/kernels.h. */
#include <float.h>

#include "codelets/accumulate.h"
#include "codelets/bfloat16.h"
#include "codelets/bias.h"
#include "codelets/epilogue.h"
#include "codelets/gemm.h"
#include "codelets/init.h"
#include "codelets/pack_rows.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* ---- Dense products ---- */

struct gemm_shape {
    bool transpose_a, transpose_b, accumulate;
    int64_t m, n, k;
};

static void naive_gemm(const struct gemm_shape *s, const struct sl_guarded *a,
                       const struct sl_guarded *b, const struct sl_guarded *c, double *want,
                       double *bound)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double sum = s->accumulate ? (double)*sl_element(c, i, j) : 0.0, size = fabs(sum);
            for (int64_t l = 0; l < s->k; l++) {
                const double x =
                    (double)*(s->transpose_a ? sl_element(a, l, i) : sl_element(a, i, l));
                const double y =
                    (double)*(s->transpose_b ? sl_element(b, j, l) : sl_element(b, l, j));
                sum += x * y;
                size += fabs(x * y);
            }
            want[i * s->n + j] = sum;
            bound[i * s->n + j] = ((double)s->k + 4.0) * SL_UNIT * size;
        }
}

static void run_gemm(const struct gemm_shape *s, const struct sl_guarded *a,
                     const struct sl_guarded *b, struct sl_guarded *c)
{
    sl_kernel_gemm(&(struct sl_gemm){.transpose_a = s->transpose_a,
                                     .transpose_b = s->transpose_b,
                                     .accumulate = s->accumulate,
                                     .m = s->m,
                                     .n = s->n,
                                     .k = s->k,
                                     .a = sl_rows_of(a),
                                     .b = sl_rows_of(b),
                                     .c = sl_rows_of(c)});
}

static void check_gemm(const struct gemm_shape *s)
{
    /* Drawn rather than looped over: shapes x transposes x three layouts are too many. */
    const enum sl_kind kind = sl_random_below(2) ? SL_REALS : SL_INTEGERS;
    const enum sl_layout la = (enum sl_layout)sl_random_below(SL_LAYOUTS),
                         lb = (enum sl_layout)sl_random_below(SL_LAYOUTS),
                         lc = (enum sl_layout)sl_random_below(SL_LAYOUTS);
    struct sl_guarded a = sl_guarded_random(s->transpose_a ? s->k : s->m,
                                            s->transpose_a ? s->m : s->k, la, NAN, kind);
    struct sl_guarded b = sl_guarded_random(s->transpose_b ? s->n : s->k,
                                            s->transpose_b ? s->k : s->n, lb, NAN, kind);
    struct sl_guarded c = s->accumulate ? sl_guarded_random(s->m, s->n, lc, SL_CANARY, kind)
                                        : sl_guarded_empty(s->m, s->n, lc, SL_CANARY);
    double *want = sl_doubles(s->m * s->n), *bound = sl_doubles(s->m * s->n);
    char name[64];
    snprintf(name, sizeof name, "gemm%s%s%s, k = %lld", s->transpose_a ? ", A'" : "",
             s->transpose_b ? ", B'" : "", s->accumulate ? ", accumulate" : "", (long long)s->k);
    naive_gemm(s, &a, &b, &c, want, bound);
    run_gemm(s, &a, &b, &c);
    sl_expect(name, &c, want, kind == SL_INTEGERS ? NULL : bound);
    free(want);
    free(bound);
    sl_guarded_free(&a);
    sl_guarded_free(&b);
    sl_guarded_free(&c);
}

SL_TEST(test_gemm)
{
    static const int64_t inner[] = {0, 1, 7, 16, 41, 129, 602};
    sl_random_seed(2);
    for (size_t i = 0; i < SL_COUNT(sl_row_counts); i++)
        for (size_t j = 0; j < SL_COUNT(sl_widths); j++)
            for (size_t l = 0; l < SL_COUNT(inner); l++)
                for (int option = 0; option < 8; option++) {
                    const struct gemm_shape s = {option & 1,       option & 2,   option & 4,
                                                 sl_row_counts[i], sl_widths[j], inner[l]};
                    if (s.m * s.n * s.k <= 1000000)
                        check_gemm(&s);
                }
}

SL_TEST(test_gemm_same_in_all_layouts)
{
    static const int64_t sizes[][3] = {
        {129, 41, 602}, {64, 64, 64}, {5, 7, 100}, {602, 16, 129}, {1, 31, 17}};
    for (size_t i = 0; i < SL_COUNT(sizes); i++)
        for (int option = 0; option < 8; option++) {
            const struct gemm_shape s = {option & 1,  option & 2,  option & 4,
                                         sizes[i][0], sizes[i][1], sizes[i][2]};
            struct sl_guarded a = sl_guarded_random(
                s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, SL_TIGHT, NAN, SL_REALS);
            struct sl_guarded b = sl_guarded_random(
                s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, SL_TIGHT, NAN, SL_REALS);
            struct sl_guarded c = sl_guarded_random(s.m, s.n, SL_TIGHT, SL_CANARY, SL_REALS),
                              first = sl_guarded_copy(&c, SL_TIGHT, SL_CANARY);
            run_gemm(&s, &a, &b, &first);
            for (int l = 1; l < SL_LAYOUTS; l++) {
                struct sl_guarded a2 = sl_guarded_copy(&a, (enum sl_layout)l, NAN),
                                  b2 = sl_guarded_copy(&b, (enum sl_layout)l, NAN);
                struct sl_guarded c2 = sl_guarded_copy(&c, (enum sl_layout)l, SL_CANARY);
                run_gemm(&s, &a2, &b2, &c2);
                sl_expect_same_bits("gemm", &first, &c2);
                sl_guarded_free(&a2);
                sl_guarded_free(&b2);
                sl_guarded_free(&c2);
            }
            sl_guarded_free(&a);
            sl_guarded_free(&b);
            sl_guarded_free(&c);
            sl_guarded_free(&first);
        }
}

/* ---- Elementwise and row operations ---- */

/* Without factors the order is part of the contract: equal, not close. */
static void check_bias_gradient(int64_t rows, int64_t cols, enum sl_layout layout)
{
    struct sl_guarded g = sl_guarded_random(rows, cols, layout, NAN, SL_REALS),
                      factor = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS),
                      db = sl_guarded_empty(1, cols, sl_other_layout(layout), SL_CANARY);
    double *want = sl_doubles(cols), *scaled = sl_doubles(cols), *bound = sl_doubles(cols);
    for (int64_t j = 0; j < cols; j++) {
        float in_order = 0.0f;
        for (int64_t r = 0; r < rows; r++) {
            const double term = (double)factor.at[r] * (double)*sl_element(&g, r, j);
            in_order += *sl_element(&g, r, j);
            scaled[j] += term;
            bound[j] += fabs(term) * ((double)rows + 4.0) * SL_UNIT;
        }
        want[j] = (double)in_order;
    }
    const struct sl_rows from = sl_rows_of(&g);
    for (int level = 0; sl_next_level(&level);) {
        sl_kernel_bias_gradient(rows, cols, NULL, &from, db.at);
        sl_expect("bias gradient", &db, want, NULL);
        sl_kernel_bias_gradient(rows, cols, factor.at, &from, db.at);
        sl_expect("bias gradient with factors", &db, scaled, bound);
    }
    free(want);
    free(scaled);
    free(bound);
    sl_guarded_free(&g);
    sl_guarded_free(&factor);
    sl_guarded_free(&db);
}

/* Every step alone, all of them, and any of them. */
static void check_epilogue(int64_t rows, int64_t cols, enum sl_layout layout)
{
    for (int trial = 0; trial < 14; trial++) {
        const int steps = trial < 8    ? 1 << trial
                          : trial == 8 ? SL_STEPS_ALL
                          : trial < 11 ? SL_STEP_ELU << (trial - 9)
                                       : sl_some_steps();
        struct sl_guarded_epilogue e = sl_guarded_epilogue_random(steps, rows, cols, layout);
        struct sl_guarded z =
            sl_guarded_random(rows, cols, sl_other_layout(layout), SL_CANARY, SL_REALS);
        double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols);
        for (int64_t i = 0; i < rows * cols; i++)
            want[i] = (double)*sl_element(&z, i / cols, i % cols);
        sl_naive_epilogue(&e.view, rows, cols, want, bound);
        for (int level = 0; sl_next_level(&level);) {
            struct sl_guarded got = sl_guarded_copy(&z, z.layout, SL_CANARY);
            const struct sl_rows all = sl_rows_of(&got);
            sl_kernel_epilogue(rows, cols, &e.view, &all, &all);
            sl_expect_vectors("epilogue", &got, want, bound);
            sl_guarded_free(&got);
        }
        free(want);
        free(bound);
        sl_guarded_free(&z);
        sl_guarded_epilogue_free(&e);
    }
}

static void check_accumulate(int64_t rows, int64_t cols, enum sl_layout layout)
{
    struct sl_guarded x = sl_guarded_random(rows, cols, layout, NAN, SL_REALS);
    struct sl_guarded y =
        sl_guarded_random(rows, cols, sl_other_layout(layout), SL_CANARY, SL_REALS);
    double *want = sl_doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] =
                (double)(float)((double)*sl_element(&x, r, j) + (double)*sl_element(&y, r, j));
    sl_kernel_accumulate(rows, cols, x.at, x.ld, y.at, y.ld);
    sl_expect("accumulate", &y, want, NULL);
    free(want);
    sl_guarded_free(&x);
    sl_guarded_free(&y);
}

/* The error of both types: a float rounding for each of three operations, and the rounding to
 * bfloat16. */
static void check_add_scaled(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const float scale = 0.3f;
    const bool half_x = sl_random_below(2), half_y = sl_random_below(2), scaled = layout % 2;
    struct sl_guarded x = sl_guarded_random(rows, cols, layout, NAN, SL_REALS),
                      y = sl_guarded_random(rows, cols, sl_other_layout(layout), SL_CANARY,
                                            SL_REALS),
                      factor = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS);
    struct sl_narrowed narrow_x = {.cols = 0}, narrow_y = {.cols = 0};
    double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols);
    if (half_x)
        narrow_x = sl_narrowed_of(&x, sl_some_spare());
    if (half_y)
        narrow_y = sl_narrowed_of(&y, sl_some_spare());
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t r = i / cols, j = i % cols;
        const double old = (double)*sl_element(&y, r, j),
                     term = (double)scale * (scaled ? (double)factor.at[r] : 1.0) *
                            (double)*sl_element(&x, r, j);
        want[i] = old + term;
        bound[i] =
            3.0 * SL_UNIT * (fabs(old) + fabs(term)) + (half_y ? 0x1p-8 : 0.0) * fabs(want[i]);
    }
    const struct sl_rows from = half_x ? narrow_x.rows : sl_rows_of(&x),
                         to = half_y ? narrow_y.rows : sl_rows_of(&y);
    sl_kernel_add_scaled(rows, cols, scale, scaled ? factor.at : NULL, &from, &to);
    for (int64_t i = 0; half_y && i < rows * cols; i++)
        *sl_element(&y, i / cols, i % cols) =
            sl_widen(*sl_narrowed_at(&narrow_y, i / cols, i % cols));
    sl_expect("add scaled", &y, want, bound);
    for (int64_t i = 0; half_y && i < rows * narrow_y.rows.ld; i++)
        assert_true(i % narrow_y.rows.ld < cols || ((uint16_t *)narrow_y.rows.data)[i] == 0x7FFF);
    if (half_x)
        sl_guarded_free(&narrow_x.words);
    if (half_y)
        sl_guarded_free(&narrow_y.words);
    free(want);
    free(bound);
    sl_guarded_free(&x);
    sl_guarded_free(&y);
    sl_guarded_free(&factor);
}

static void check_fill(int64_t rows, int64_t cols, enum sl_layout layout)
{
    struct sl_guarded w = sl_guarded_empty(rows, cols, layout, SL_CANARY);
    double *want = sl_doubles(rows * cols);
    for (int64_t i = 0; i < rows * cols; i++)
        want[i] = 2.5;
    sl_kernel_fill(rows, cols, 2.5f, w.at, w.ld);
    sl_expect("fill", &w, want, NULL);
    free(want);
    sl_guarded_free(&w);
}

static void check_pack_rows(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const int64_t source_rows = 33;
    uint32_t *index = sl_row_numbers(rows, source_rows, false);
    struct sl_guarded x = sl_guarded_random(source_rows, cols, layout, NAN, SL_REALS);
    struct sl_guarded y = sl_guarded_empty(rows, cols, sl_other_layout(layout), SL_CANARY);
    const struct sl_rows from = sl_rows_of(&x), to = sl_rows_of(&y);
    double *want = sl_doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] = (double)*sl_element(&x, index[r], j);
    sl_kernel_pack_rows(rows, cols, index, &from, &to);
    sl_expect("pack rows", &y, want, NULL);
    free(want);
    free(index);
    sl_guarded_free(&x);
    sl_guarded_free(&y);
}

/* The rows that are not in the list stay as they are. */
static void check_unpack_rows(int64_t rows, int64_t cols, enum sl_layout layout)
{
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        const int64_t target_rows = rows + 4;
        uint32_t *index = sl_row_numbers(rows, target_rows, true);
        struct sl_guarded x = sl_guarded_random(rows, cols, layout, NAN, SL_REALS);
        struct sl_guarded y =
            sl_guarded_random(target_rows, cols, sl_other_layout(layout), SL_CANARY, SL_REALS);
        const struct sl_rows from = sl_rows_of(&x), to = sl_rows_of(&y);
        double *want = sl_doubles(target_rows * cols);
        for (int64_t r = 0; r < target_rows; r++)
            for (int64_t j = 0; j < cols; j++)
                want[r * cols + j] = (double)*sl_element(&y, r, j);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < cols; j++) {
                double *at = &want[index[r] * cols + j];
                *at = (double)(float)((accumulate ? *at : 0.0) + (double)*sl_element(&x, r, j));
            }
        sl_kernel_unpack_rows(rows, cols, index, accumulate, &from, &to);
        sl_expect(accumulate ? "unpack rows, accumulate" : "unpack rows", &y, want, NULL);
        free(want);
        free(index);
        sl_guarded_free(&x);
        sl_guarded_free(&y);
    }
}

SL_TEST(test_bias_gradient)
{
    sl_each_shape(check_bias_gradient);
}

SL_TEST(test_epilogue)
{
    sl_each_shape(check_epilogue);
}

/* NaN goes through every step but the mask; nothing follows from it elsewhere. */
SL_TEST(test_epilogue_nan)
{
    for (int64_t at = 0; at < 41; at++)
        for (int level = 0; sl_next_level(&level);) {
            const int steps = at % 2 ? SL_STEPS_ALL : SL_STEPS_ALL & ~SL_STEP_MASK;
            struct sl_guarded_epilogue e = sl_guarded_epilogue_random(steps, 1, 41, SL_EDGE);
            struct sl_guarded z = sl_guarded_random(1, 41, SL_LOOSE, SL_CANARY, SL_REALS);
            *sl_element(&z, 0, at) = NAN;
            const struct sl_rows all = sl_rows_of(&z);
            sl_kernel_epilogue(1, 41, &e.view, &all, &all);
            for (int64_t j = 0; j < 41; j++)
                assert_int_equal(isnan(*sl_element(&z, 0, j)) != 0,
                                 j == at && (!e.view.mask.data || e.mask.at[j] > 0.0f));
            sl_guarded_free(&z);
            sl_guarded_epilogue_free(&e);
        }
}

/* elu at 0, at the ends and of NaN; there and back, a dropped element has no gradient. */
SL_TEST(test_elu_ends)
{
    enum { COLS = 37 };
    static const struct {
        float x, y, slope;
    } at[] = {{0.0f, FLT_MIN, 1.0f},  {-0.0f, FLT_MIN, 1.0f},   {-1e-30f, FLT_MIN, 1.0f},
              {-200.0f, -1.0f, 0.0f}, {-INFINITY, -1.0f, 0.0f}, {INFINITY, INFINITY, 1.0f},
              {2.5f, 2.5f, 1.0f},     {1e-30f, 1e-30f, 1.0f},   {FLT_MIN, FLT_MIN, 1.0f}};
    const struct sl_epilogue elu = {.scale = 1.0f, .elu = true};
    for (int level = 0; sl_next_level(&level);)
        for (size_t k = 0; k < SL_COUNT(at) * COLS; k++) {
            const int64_t j = (int64_t)(k % COLS);
            struct sl_guarded z = sl_guarded_random(1, COLS, SL_LOOSE, SL_CANARY, SL_REALS),
                              g = sl_guarded_random(1, COLS, SL_EDGE, SL_CANARY, SL_REALS);
            const struct sl_rows y = sl_rows_of(&z), to = sl_rows_of(&g);
            const float before = *sl_element(&g, 0, j);
            *sl_element(&z, 0, j) = at[k / COLS].x;
            *sl_element(&z, 0, (j + 1) % COLS) = NAN;
            sl_kernel_epilogue(1, COLS, &elu, &y, &y);
            assert_true(*sl_element(&z, 0, j) == at[k / COLS].y);
            for (int64_t i = 0; i < COLS; i++)
                assert_int_equal(isnan(*sl_element(&z, 0, i)) != 0, i == (j + 1) % COLS);
            *sl_element(&z, 0, (j + 2) % COLS) = 0.0f;
            *sl_element(&g, 0, (j + 2) % COLS) = NAN; /* stops there */
            const struct sl_epilogue back = {.scale = 1.0f, .mask = y, .elu_back = 1.0f};
            sl_kernel_epilogue(1, COLS, &back, &to, &to);
            assert_true(*sl_element(&g, 0, j) == at[k / COLS].slope * before);
            assert_true(*sl_element(&g, 0, (j + 2) % COLS) == 0.0f);
            sl_expect_vectors_only("elu", &z);
            sl_expect_vectors_only("elu back", &g);
            sl_guarded_free(&z);
            sl_guarded_free(&g);
        }
}

SL_TEST(test_accumulate)
{
    sl_each_shape_and_level(check_accumulate);
}

SL_TEST(test_add_scaled)
{
    sl_each_shape_and_level(check_add_scaled);
}

SL_TEST(test_fill)
{
    sl_each_shape_and_level(check_fill);
}

SL_TEST(test_pack_rows)
{
    sl_each_shape_and_level(check_pack_rows);
}

SL_TEST(test_unpack_rows)
{
    sl_each_shape_and_level(check_unpack_rows);
}

/* Sums that are exact in any order: the epilogue with the product is the product, then the
 * epilogue. So many rows and columns that a product is made in pieces, too. */
static void check_gemm_epilogue(int64_t m, int64_t n, int64_t k, bool transpose_b)
{
    struct sl_guarded a = sl_guarded_random(m, k, SL_LOOSE, NAN, SL_INTEGERS),
                      b = sl_guarded_random(transpose_b ? n : k, transpose_b ? k : n, SL_PADDED,
                                            NAN, SL_INTEGERS);
    struct sl_guarded_epilogue e = sl_guarded_epilogue_random(sl_some_steps(), m, n, SL_PADDED);
    struct sl_gemm gemm = {.transpose_b = transpose_b,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = sl_rows_of(&a),
                           .b = sl_rows_of(&b)};
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded two = sl_guarded_empty(m, n, SL_PADDED, SL_CANARY),
                          one = sl_guarded_empty(m, n, SL_LOOSE, SL_CANARY),
                          own = sl_guarded_copy(&e.mask, SL_PADDED, SL_CANARY);
        gemm.c = sl_rows_of(&two);
        gemm.epilogue = NULL;
        sl_kernel_gemm(&gemm);
        sl_kernel_epilogue(m, n, &e.view, &gemm.c, &gemm.c);
        gemm.c = sl_rows_of(&one);
        gemm.epilogue = &e.view;
        sl_kernel_gemm(&gemm);
        sl_expect_same_bits("gemm with an epilogue", &two, &one);
        sl_expect_vectors_only("gemm with an epilogue", &one);
        if (e.view.mask.data) {
            struct sl_epilogue view = e.view;
            gemm.c = view.mask = sl_rows_of(&own);
            gemm.epilogue = &view;
            sl_kernel_gemm(&gemm);
            sl_expect_same_bits("gemm in the place of its mask", &two, &own);
        }
        sl_guarded_free(&two);
        sl_guarded_free(&one);
        sl_guarded_free(&own);
    }
    sl_guarded_free(&a);
    sl_guarded_free(&b);
    sl_guarded_epilogue_free(&e);
}

SL_TEST(test_gemm_epilogue)
{
    static const int64_t shapes[][3] = {{1, 1, 1},     {7, 5, 0},     {5, 17, 41},
                                        {2500, 41, 9}, {40, 2049, 9}, {129, 64, 602}};
    sl_random_seed(3);
    for (size_t s = 0; s < SL_COUNT(shapes); s++)
        for (int trial = 0; trial < 6; trial++)
            check_gemm_epilogue(shapes[s][0], shapes[s][1], shapes[s][2], trial % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm_epilogue),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_same_in_all_layouts),
        cmocka_unit_test(test_bias_gradient),
        cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_epilogue_nan),
        cmocka_unit_test(test_elu_ends),
        cmocka_unit_test(test_accumulate),
        cmocka_unit_test(test_add_scaled),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_pack_rows),
        cmocka_unit_test(test_unpack_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
