/* Kernels on sparse tiles: products with dense matrices, and the tile itself as a dense one. How
 * they are judged: tests/kernels.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codelets/kernels.h"
#include "tests/kernels.h"

/* ---- Products ---- */

/* Entry e of row r as the kernels must see it. */
static double sparse_entry(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                           int64_t r, uint32_t e)
{
    double value = a->value ? (double)a->value[e] : 1.0;
    if (drop)
        value *= (double)sl_dropout_factor(&drop->drop, drop->row0 + (uint32_t)r,
                                           drop->col0 + a->col[e]);
    return value;
}

/* want = [Z +] op(A)·H; bound = n u Σ|terms| with n the number of terms and the roundings of value
 * and sum. */
static void naive_spmm(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                       bool transposed, const struct sl_guarded *h, bool accumulate,
                       const struct sl_guarded *z, double *want, double *bound)
{
    const int64_t width = z->cols;
    double *terms = sl_doubles(z->rows);
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t j = 0; j < width; j++) {
            want[r * width + j] = accumulate ? (double)*sl_element(z, r, j) : 0.0;
            bound[r * width + j] = fabs(want[r * width + j]);
        }
    for (int64_t r = 0; r < a->rows; r++)
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++) {
            const int64_t to = transposed ? a->col[e] : r, from = transposed ? r : a->col[e];
            const double value = sparse_entry(a, drop, r, e);
            for (int64_t j = 0; j < width; j++) {
                const double term = value * (double)*sl_element(h, from, j);
                want[to * width + j] += term;
                bound[to * width + j] += fabs(term);
            }
            terms[to]++;
        }
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t j = 0; j < width; j++)
            bound[r * width + j] *= (terms[r] + 4.0) * SL_UNIT;
    free(terms);
}

static void run_spmm(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                     bool transposed, const struct sl_guarded *h, bool accumulate,
                     struct sl_guarded *z)
{
    (transposed ? sl_kernel_spmm_transposed : sl_kernel_spmm)(a, drop, z->cols, h->at, h->ld,
                                                              accumulate, z->at, z->ld);
}

static void check_product(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                          bool transposed, int64_t width, bool accumulate, enum sl_layout layout,
                          enum sl_kind kind)
{
    char name[64];
    snprintf(name, sizeof name, "spmm%s%s%s%s", transposed ? ", transposed" : "",
             accumulate ? ", accumulate" : "", a->value ? ", values" : "", drop ? ", dropout" : "");
    const int64_t rows = transposed ? a->cols : a->rows, inner = transposed ? a->rows : a->cols;
    struct sl_guarded h = sl_guarded_random(inner, width, layout, NAN, kind);
    struct sl_guarded z =
        accumulate ? sl_guarded_random(rows, width, sl_other_layout(layout), SL_CANARY, kind)
                   : sl_guarded_empty(rows, width, sl_other_layout(layout), SL_CANARY);
    double *want = sl_doubles(rows * width), *bound = sl_doubles(rows * width);
    naive_spmm(a, drop, transposed, &h, accumulate, &z, want, bound);
    run_spmm(a, drop, transposed, &h, accumulate, &z);
    sl_expect(name, &z, want, kind == SL_INTEGERS ? NULL : bound);
    free(want);
    free(bound);
    sl_guarded_free(&h);
    sl_guarded_free(&z);
}

static void check_spmm_options(const struct sl_sparse *a, bool transposed, int64_t width,
                               enum sl_layout layout, enum sl_kind kind)
{
    const struct sl_sparse_dropout half = sl_some_dropout(0.5), none = sl_some_dropout(0.0);
    const struct sl_sparse_dropout *drops[] = {NULL, &half, &none};
    for (size_t d = 0; d < SL_COUNT(drops); d++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            check_product(a, drops[d], transposed, width, accumulate, layout, kind);
}

static void check_spmm(int64_t rows, int64_t width, enum sl_layout layout)
{
    const enum sl_kind kind = layout == SL_TIGHT ? SL_REALS : SL_INTEGERS;
    for (int64_t cols = 1; cols <= 90; cols += 89)
        for (int has_values = 0; has_values < 2; has_values++) {
            struct sl_guarded_sparse a =
                sl_guarded_sparse_random(rows, cols, 6, rows / 2, has_values, kind);
            check_spmm_options(&a.view, false, width, layout, kind);
            sl_guarded_sparse_free(&a);
        }
}

static void check_spmm_transposed(int64_t rows, int64_t width, enum sl_layout layout)
{
    const enum sl_kind kind = layout == SL_TIGHT ? SL_REALS : SL_INTEGERS;
    for (int64_t inner = 0; inner <= 77; inner += 77)
        for (int has_values = 0; has_values < 2; has_values++) {
            struct sl_guarded_sparse a =
                sl_guarded_sparse_random(inner, rows, 4, inner / 2, has_values, kind);
            check_spmm_options(&a.view, true, width, layout, kind);
            sl_guarded_sparse_free(&a);
        }
}

static void test_spmm(void **state)
{
    (void)state;
    sl_each_shape(check_spmm);
}

static void test_spmm_transposed(void **state)
{
    (void)state;
    sl_each_shape(check_spmm_transposed);
}

/* Rows of more entries than any batch a kernel works in, first, between and last, and hundreds of
 * short rows, on operands larger than a cache. */
static void test_spmm_hub(void **state)
{
    (void)state;
    static const int64_t hubs[] = {0, 350, 699};
    static const int64_t some_widths[] = {1, 41, 128};
    for (size_t i = 0; i < SL_COUNT(hubs); i++)
        for (size_t j = 0; j < SL_COUNT(some_widths); j++)
            for (int transposed = 0; transposed < 2; transposed++) {
                const enum sl_kind kind = j == 0 ? SL_REALS : SL_INTEGERS;
                struct sl_guarded_sparse a =
                    sl_guarded_sparse_random(700, 1700, 2, hubs[i], true, kind);
                check_spmm_options(&a.view, transposed, some_widths[j], SL_LOOSE, kind);
                sl_guarded_sparse_free(&a);
            }
}

/* Hub lengths around powers of two: off-by-one errors where a long row is cut into pieces. */
static void test_spmm_row_lengths(void **state)
{
    (void)state;
    for (int64_t batch = 64; batch <= 1024; batch *= 2)
        for (int64_t length = batch - 1; length <= batch + 1; length++)
            for (int transposed = 0; transposed < 2; transposed++) {
                struct sl_guarded_sparse a =
                    sl_guarded_sparse_random(3, length, 0, 1, true, SL_INTEGERS);
                check_spmm_options(&a.view, transposed, 9, SL_EDGE, SL_INTEGERS);
                sl_guarded_sparse_free(&a);
            }
}

static void test_spmm_one_row_full_batches(void **state)
{
    (void)state;
    for (int64_t rows = 255; rows <= 1025; rows += 1 + 255 * (rows % 2 == 0)) {
        struct sl_guarded_sparse one = sl_guarded_sparse_random(rows, 1, 1, -1, false, SL_INTEGERS);
        check_spmm_options(&one.view, false, 8, SL_PADDED, SL_INTEGERS);
        check_spmm_options(&one.view, true, 8, SL_PADDED, SL_INTEGERS);
        sl_guarded_sparse_free(&one);
    }
}

static void test_spmm_no_entries(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {700, 9}};
    for (size_t i = 0; i < SL_COUNT(sizes); i++) {
        struct sl_guarded_sparse a =
            sl_guarded_sparse_random(sizes[i][0], sizes[i][1], 0, -1, true, SL_INTEGERS);
        check_spmm_options(&a.view, false, 17, SL_TIGHT, SL_INTEGERS);
        check_spmm_options(&a.view, true, 17, SL_TIGHT, SL_INTEGERS);
        sl_guarded_sparse_free(&a);
    }
}

/* NaN reaches exactly the results that it is a term of, even times zero. */
static void test_spmm_nan(void **state)
{
    (void)state;
    enum { ROWS = 23, COLS = 19, WIDTH = 21, BAD_ROW = 4, BAD_COLUMN = 20 };
    struct sl_guarded_sparse a = sl_guarded_sparse_random(ROWS, COLS, 5, 2, true, SL_INTEGERS);
    for (int transposed = 0; transposed < 2; transposed++) {
        struct sl_guarded h =
            sl_guarded_random(transposed ? ROWS : COLS, WIDTH, SL_LOOSE, NAN, SL_INTEGERS);
        struct sl_guarded z =
            sl_guarded_empty(transposed ? COLS : ROWS, WIDTH, SL_PADDED, SL_CANARY);
        bool reached[ROWS + COLS] = {false};
        *sl_element(&h, BAD_ROW, BAD_COLUMN) = NAN;
        for (int64_t r = 0; r < ROWS; r++)
            for (uint32_t e = a.view.row_ptr[r]; e < a.view.row_ptr[r + 1]; e++)
                if ((transposed ? r : a.view.col[e]) == BAD_ROW)
                    reached[transposed ? a.view.col[e] : r] = true;
        run_spmm(&a.view, NULL, transposed, &h, false, &z);
        for (int64_t r = 0; r < z.rows; r++)
            for (int64_t j = 0; j < WIDTH; j++)
                assert_int_equal(isnan(*sl_element(&z, r, j)) != 0, reached[r] && j == BAD_COLUMN);
        sl_expect_padding_kept("spmm of NaN", &z);
        sl_guarded_free(&h);
        sl_guarded_free(&z);
    }
    sl_guarded_sparse_free(&a);
}

/* Ranks and devices may keep a tile with another ld: that must not change a bit of the result. */
static void test_spmm_same_in_all_layouts(void **state)
{
    (void)state;
    const struct sl_sparse_dropout drop = sl_some_dropout(0.3);
    for (size_t i = 0; i < SL_COUNT(sl_widths); i++)
        for (int transposed = 0; transposed < 2; transposed++)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                struct sl_guarded_sparse a = sl_guarded_sparse_random(61, 67, 9, 5, true, SL_REALS);
                struct sl_guarded h =
                    sl_guarded_random(transposed ? 61 : 67, sl_widths[i], SL_TIGHT, NAN, SL_REALS);
                struct sl_guarded z = sl_guarded_random(transposed ? 67 : 61, sl_widths[i],
                                                        SL_TIGHT, SL_CANARY, SL_REALS);
                struct sl_guarded zs[SL_LAYOUTS];
                for (int l = 0; l < SL_LAYOUTS; l++)
                    zs[l] = sl_guarded_copy(&z, (enum sl_layout)l, SL_CANARY);
                for (int l = 0; l < SL_LAYOUTS; l++) {
                    struct sl_guarded moved = sl_guarded_copy(&h, (enum sl_layout)l, NAN);
                    run_spmm(&a.view, &drop, transposed, &moved, accumulate, &zs[l]);
                    sl_expect_same_bits(transposed ? "spmm transposed" : "spmm", &zs[0], &zs[l]);
                    sl_guarded_free(&moved);
                }
                for (int l = 0; l < SL_LAYOUTS; l++)
                    sl_guarded_free(&zs[l]);
                sl_guarded_free(&h);
                sl_guarded_free(&z);
                sl_guarded_sparse_free(&a);
            }
}

/* ---- A as a dense matrix ---- */

/* A value and its dropout are one rounding: exact. */
static void check_expanded(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                           enum sl_layout layout)
{
    char name[64];
    snprintf(name, sizeof name, "expand%s%s", a->value ? ", values" : "", drop ? ", dropout" : "");
    struct sl_guarded z = sl_guarded_empty(a->rows, a->cols, layout, SL_CANARY);
    double *want = sl_doubles(a->rows * a->cols);
    for (int64_t r = 0; r < a->rows; r++)
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++)
            want[r * a->cols + a->col[e]] = (double)(float)sparse_entry(a, drop, r, e);
    sl_kernel_expand(a, drop, z.at, z.ld);
    sl_expect(name, &z, want, NULL);
    free(want);
    sl_guarded_free(&z);
}

/* Without a full row, and with one. */
static void check_expand(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const struct sl_sparse_dropout some = sl_some_dropout(0.3), none = sl_some_dropout(0.0);
    for (int option = 0; option < 4; option++) {
        struct sl_guarded_sparse a = sl_guarded_sparse_random(
            rows, cols, 6, option & 1 ? rows / 2 : -1, option & 2, SL_REALS);
        check_expanded(&a.view, NULL, layout);
        check_expanded(&a.view, &some, layout);
        check_expanded(&a.view, &none, layout);
        sl_guarded_sparse_free(&a);
    }
}

static void test_expand(void **state)
{
    (void)state;
    sl_each_shape(check_expand);
}

static void test_expand_no_entries(void **state)
{
    (void)state;
    const struct sl_sparse_dropout some = sl_some_dropout(0.3);
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {700, 9}};
    for (size_t i = 0; i < SL_COUNT(sizes); i++)
        for (int layout = 0; layout < SL_LAYOUTS; layout++) {
            struct sl_guarded_sparse a =
                sl_guarded_sparse_random(sizes[i][0], sizes[i][1], 0, -1, true, SL_REALS);
            check_expanded(&a.view, NULL, (enum sl_layout)layout);
            check_expanded(&a.view, &some, (enum sl_layout)layout);
            sl_guarded_sparse_free(&a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spmm),
        cmocka_unit_test(test_spmm_transposed),
        cmocka_unit_test(test_spmm_hub),
        cmocka_unit_test(test_spmm_row_lengths),
        cmocka_unit_test(test_spmm_one_row_full_batches),
        cmocka_unit_test(test_spmm_no_entries),
        cmocka_unit_test(test_spmm_nan),
        cmocka_unit_test(test_spmm_same_in_all_layouts),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_expand_no_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
