/* Random numbers, and the kernels that draw them: initial weights and dropout. How they are judged:
 * tests/kernels.h. */
#include "codelets/dropout.h"
#include "codelets/expand.h"
#include "codelets/features.h"
#include "codelets/init.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* ---- Random numbers and dropout ---- */

/* The known answers of Random123 (file kat_vectors, threefry2x32, 13 rounds). */
SL_TEST(test_rng_known_answers)
{
    static const uint32_t known[][6] = {
        /* counter, counter, key, key, result, result */
        {0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x9d1c5ec6, 0x8bd50731},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xfd36d048, 0x2d17272c},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xba3e4725, 0xf27d669e},
    };
    for (size_t i = 0; i < SL_COUNT(known); i++) {
        const uint64_t key = (uint64_t)known[i][3] << 32 | known[i][2];
        uint32_t x, y;
        sl_rng_block(key, known[i][0], known[i][1], &x, &y);
        assert_int_equal(x, known[i][4]);
        assert_int_equal(y, known[i][5]);
        assert_true(sl_rng_bits(key, known[i][0], known[i][1]) == ((uint64_t)y << 32 | x));
    }
}

/* The words of a key all matter, in their own place. */
SL_TEST(test_rng_keys_differ)
{
    uint64_t keys[3 * 3 * 3 * 3];
    size_t count = 0;
    for (uint64_t seed = 0; seed < 3; seed++)
        for (uint32_t purpose = 1; purpose < 4; purpose++)
            for (uint32_t epoch = 0; epoch < 3; epoch++)
                for (uint32_t layer = 0; layer < 3; layer++) {
                    keys[count] = sl_rng_key(seed, purpose, epoch, layer);
                    for (size_t i = 0; i < count; i++)
                        assert_true(keys[i] != keys[count]);
                    count++;
                }
}

SL_TEST(test_rng_uniform)
{
    enum { COUNT_U = 1000000 };
    double sum = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < COUNT_U; i++) {
        const double u = sl_rng_uniform(5, i / 1000, i % 1000);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        squares += u * u;
    }
    /* u has variance 1/12, u² has 4/45. */
    assert_true(fabs(sum / COUNT_U - 0.5) < 4.0 * sqrt(1.0 / 12.0 / COUNT_U));
    assert_true(fabs(squares / COUNT_U - 1.0 / 3.0) < 4.0 * sqrt(4.0 / 45.0 / COUNT_U));
}

SL_TEST(test_dropout_make)
{
    const struct sl_dropout none = sl_dropout_make(0.0, 1), half = sl_dropout_make(0.5, 1);
    const struct sl_dropout all = sl_dropout_make(1.0, 1);
    assert_int_equal(none.threshold, 0);
    assert_true(none.scale == 1.0f && half.scale == 2.0f);
    assert_int_equal(half.threshold, 32768);
    for (uint32_t v = 0; v < 100; v++)
        for (uint32_t c = 0; c < 9; c++) {
            assert_true(sl_dropout_factor(&none, v, c) == 1.0f);
            assert_true(sl_dropout_factor(&all, v, c) == 0.0f);
        }
}

/* Check a million elements. The share of kept elements is within 4 standard deviations of 1 - p.
 * The mean factor is within 4 standard deviations of 1. Neighbours along a row, along a column and
 * between epochs are kept together as often as independent elements. */
static void check_dropout_statistics(double p)
{
    enum { ROWS = 1000, COLS = 1000 };
    const struct sl_dropout drop = sl_dropout_make(p, sl_rng_key(1, SL_RNG_DROPOUT, 0, 0));
    const struct sl_dropout next = sl_dropout_make(p, sl_rng_key(1, SL_RNG_DROPOUT, 1, 0));
    const double keep = 1.0 - drop.threshold / 65536.0;
    double kept = 0.0, mean = 0.0, right = 0.0, below = 0.0, later = 0.0;
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t j = 0; j < COLS; j++) {
            const double factor = (double)sl_dropout_factor(&drop, r, j);
            kept += factor > 0.0;
            mean += factor;
            right += factor > 0.0 && sl_dropout_factor(&drop, r, j + 1) > 0.0f;
            below += factor > 0.0 && sl_dropout_factor(&drop, r + 1, j) > 0.0f;
            later += factor > 0.0 && sl_dropout_factor(&next, r, j) > 0.0f;
        }
    const double n = (double)ROWS * COLS, sigma = sqrt(keep * (1.0 - keep) / n);
    /* Pairs overlap: up to three times the variance of as many independent ones. */
    const double pair = 4.0 * sqrt(3.0 * keep * keep * (1.0 - keep * keep) / n);
    assert_true(fabs(kept / n - keep) <= 4.0 * sigma);
    assert_true(fabs(keep - (1.0 - p)) <= 0x1p-17);
    assert_true(fabs(mean / n - 1.0) <= 4.0 * sigma / keep);
    assert_true(fabs((double)drop.scale * keep - 1.0) <= 2.0 * SL_UNIT);
    assert_true(fabs(right / n - keep * keep) <= pair);
    assert_true(fabs(below / n - keep * keep) <= pair);
    assert_true(fabs(later / n - keep * keep) <= pair);
}

SL_TEST(test_dropout_statistics)
{
    check_dropout_statistics(0.1);
    check_dropout_statistics(0.5);
    check_dropout_statistics(0.9);
}

/* On every instruction set; vertices in no order. */
static void check_dropout_at(int64_t rows, int64_t cols, enum sl_layout layout, double p,
                             uint32_t column0)
{
    const struct sl_dropout drop = sl_dropout_make(p, sl_rng_key(3, SL_RNG_DROPOUT, 8, 1));
    struct sl_guarded x = sl_guarded_random(rows, cols, layout, SL_CANARY, SL_REALS),
                      vertices = sl_guarded_vertices(rows);
    const uint32_t *vertex = sl_vertices_of(&vertices);
    double *want = sl_doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) {
            const float factor = sl_dropout_factor(&drop, vertex[r], column0 + (uint32_t)j);
            want[r * cols + j] = (double)(float)((double)*sl_element(&x, r, j) * (double)factor);
        }
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded y = sl_guarded_empty(rows, cols, sl_other_layout(layout), SL_CANARY),
                          z = sl_guarded_copy(&x, layout, SL_CANARY);
        const struct sl_rows from = sl_rows_of(&x), to = sl_rows_of(&y), both = sl_rows_of(&z);
        sl_kernel_dropout(rows, cols, &drop, vertex, column0, &from, &to);
        sl_expect_vectors("dropout", &y, want, NULL);
        sl_kernel_dropout(rows, cols, &drop, vertex, column0, &both, &both);
        sl_expect_vectors("dropout in place", &z, want, NULL);
        sl_guarded_free(&y);
        sl_guarded_free(&z);
    }
    sl_expect_padding_kept("dropout", &x);
    free(want);
    sl_guarded_free(&x);
    sl_guarded_free(&vertices);
}

static void check_dropout(int64_t rows, int64_t cols, enum sl_layout layout)
{
    static const uint32_t columns[] = {0, 1, 2, 3, 4, 1021};
    for (size_t c = 0; c < SL_COUNT(columns); c++)
        check_dropout_at(rows, cols, layout, 0.3, columns[c]);
    check_dropout_at(rows, cols, layout, 0.0, 34);
    check_dropout_at(rows, cols, layout, 1.0, 34);
    check_dropout_at(rows, cols, layout, 0.3, 3999999998u); /* column numbers are 32 bits */
    check_dropout_at(rows, cols, layout, 0.5, 3999999998u);
}

/* One bit decides on an element, and 64 columns have one draw. */
static void check_half(int64_t rows, int64_t cols, enum sl_layout layout)
{
    static const uint32_t columns[] = {0, 1, 15, 16, 17, 40, 63, 64, 1021};
    for (size_t c = 0; c < SL_COUNT(columns); c++)
        check_dropout_at(rows, cols, layout, 0.5, columns[c]);
}

/* Rows of several runs of draws, which begin inside a draw. */
SL_TEST(test_dropout_wide)
{
    static const int64_t widths[] = {1020, 4093, 4100, 6030, 8218};
    static const uint32_t columns[] = {0, 4, 8, 12, 20, 1021};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (size_t c = 0; c < SL_COUNT(columns); c++) {
            check_dropout_at(2, widths[w], (enum sl_layout)(c % SL_LAYOUTS), 0.5, columns[c]);
            check_dropout_at(2, widths[w], (enum sl_layout)(w % SL_LAYOUTS), 0.3, columns[c]);
        }
}

SL_TEST(test_dropout)
{
    sl_each_shape(check_dropout);
    sl_each_shape(check_half);
    for (uint32_t column0 = 0; column0 < 40; column0 += 37) { /* rows of several runs */
        check_dropout_at(3, 4500, SL_TIGHT, 0.3, column0);
        check_dropout_at(3, 9000, SL_TIGHT, 0.5, column0);
    }
}

/* The same mask whether the features are dense or sparse: the product with the identity is the
 * matrix itself, and so is that of the transpose; and so are the expanded features. */
static void check_same_masks(const struct sl_sparse *x, const struct sl_dropout *drop)
{
    const int64_t rows = x->rows, cols = x->cols;
    struct sl_guarded vertices = sl_guarded_vertices(rows),
                      dense = sl_guarded_empty(rows, cols, SL_TIGHT, SL_CANARY),
                      product = sl_guarded_empty(rows, cols, SL_TIGHT, SL_CANARY),
                      transposed = sl_guarded_empty(cols, rows, SL_TIGHT, SL_CANARY),
                      identity = sl_guarded_empty(rows + cols, rows + cols, SL_TIGHT, NAN);
    const uint32_t *vertex = sl_vertices_of(&vertices);
    sl_kernel_fill(identity.rows, identity.cols, 0.0f, identity.at, identity.ld);
    for (int64_t j = 0; j < identity.rows; j++)
        *sl_element(&identity, j, j) = 1.0f;
    const struct sl_rows all = sl_rows_of(&dense), out = sl_rows_of(&product);
    sl_kernel_expand(x, NULL, NULL, &all);
    sl_kernel_dropout(rows, cols, drop, vertex, 0, &all, &all);
    struct sl_features features = {.x = x,
                                   .drop = drop,
                                   .vertex = vertex,
                                   .width = cols,
                                   .h = sl_rows_of(&identity),
                                   .z = out};
    sl_kernel_features(&features);
    features.transposed = true;
    features.width = rows;
    features.z = sl_rows_of(&transposed);
    sl_kernel_features(&features);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) {
            assert_true(*sl_element(&dense, r, j) == *sl_element(&product, r, j));
            assert_true(*sl_element(&dense, r, j) == *sl_element(&transposed, j, r));
        }
    sl_kernel_expand(x, drop, vertex, &out);
    for (int64_t i = 0; i < rows * cols; i++)
        assert_true(dense.at[i] == product.at[i]);
    sl_guarded_free(&vertices);
    sl_guarded_free(&dense);
    sl_guarded_free(&identity);
    sl_guarded_free(&product);
    sl_guarded_free(&transposed);
}

SL_TEST(test_dropout_same_dense_and_sparse)
{
    enum { ROWS = 37, COLS = 53 };
    struct sl_guarded_sparse all =
        sl_guarded_sparse_random(ROWS, COLS, COLS, 3, true, SL_REALS); /* full but for empty rows */
    for (int64_t block_cols = 0; block_cols <= 14; block_cols += 7)
        for (int level = 0; sl_next_level(&level);) {
            struct sl_guarded_sparse x =
                sl_guarded_sparse_cut(&all.view, 0, COLS, block_cols, level % 2);
            const struct sl_dropout drop = sl_some_dropout(0.4), half = sl_some_dropout(0.5);
            check_same_masks(&x.view, &drop);
            check_same_masks(&x.view, &half);
            sl_guarded_sparse_free(&x);
        }
    sl_guarded_sparse_free(&all);
}

/* A dropout of everything leaves zeros. */
SL_TEST(test_dropout_of_all)
{
    const struct sl_dropout everything = sl_some_dropout(1.0);
    struct sl_guarded_sparse x = sl_guarded_sparse_random(37, 53, 9, 3, true, SL_REALS);
    struct sl_guarded vertices = sl_guarded_vertices(37),
                      h = sl_guarded_random(53, 21, SL_TIGHT, NAN, SL_REALS),
                      z = sl_guarded_empty(37, 21, SL_TIGHT, SL_CANARY);
    double *zeros = sl_doubles(37 * 21);
    sl_kernel_features(&(struct sl_features){.x = &x.view,
                                             .drop = &everything,
                                             .vertex = sl_vertices_of(&vertices),
                                             .width = 21,
                                             .h = sl_rows_of(&h),
                                             .z = sl_rows_of(&z)});
    sl_expect_vectors("features, all dropped", &z, zeros, NULL);
    free(zeros);
    sl_guarded_sparse_free(&x);
    sl_guarded_free(&vertices);
    sl_guarded_free(&h);
    sl_guarded_free(&z);
}

/* ---- Initialisation ---- */

static void check_glorot(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const float limit = 0.37f;
    const uint64_t key = sl_rng_key(11, SL_RNG_INIT, 0, 2);
    const uint32_t row0 = 17, column0 = 5;
    struct sl_guarded w = sl_guarded_empty(rows, cols, layout, SL_CANARY);
    double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) {
            const double u = sl_rng_uniform(key, row0 + (uint32_t)r, column0 + (uint32_t)j);
            want[r * cols + j] = (double)limit * (2.0 * u - 1.0);
            bound[r * cols + j] =
                4.0 * SL_UNIT * (double)limit; /* u, 2u - 1 and the product, each rounded */
        }
    sl_kernel_glorot(rows, cols, limit, key, row0, column0, w.at, w.ld);
    sl_expect("glorot", &w, want, bound);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            assert_true(fabsf(*sl_element(&w, r, j)) <= limit);
    free(want);
    free(bound);
    sl_guarded_free(&w);
}

SL_TEST(test_glorot)
{
    sl_each_shape_and_level(check_glorot);
}

/* A tile holds the same numbers as its part of the whole. */
SL_TEST(test_glorot_tiles)
{
    struct sl_guarded whole = sl_guarded_empty(40, 50, SL_TIGHT, SL_CANARY),
                      tile = sl_guarded_empty(13, 21, SL_LOOSE, SL_CANARY);
    sl_kernel_glorot(40, 50, 0.5f, 99, 0, 0, whole.at, whole.ld);
    sl_kernel_glorot(13, 21, 0.5f, 99, 9, 23, tile.at, tile.ld);
    for (int64_t r = 0; r < 13; r++)
        for (int64_t j = 0; j < 21; j++)
            assert_true(sl_same_bits(*sl_element(&tile, r, j), *sl_element(&whole, 9 + r, 23 + j)));
    sl_guarded_free(&whole);
    sl_guarded_free(&tile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rng_known_answers),
        cmocka_unit_test(test_rng_keys_differ),
        cmocka_unit_test(test_rng_uniform),
        cmocka_unit_test(test_dropout_make),
        cmocka_unit_test(test_dropout_statistics),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_dropout_same_dense_and_sparse),
        cmocka_unit_test(test_dropout_wide),
        cmocka_unit_test(test_dropout_of_all),
        cmocka_unit_test(test_glorot),
        cmocka_unit_test(test_glorot_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
