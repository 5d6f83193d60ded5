/* Kernels with bfloat16 operands. Other tests compare the kernels with float32 operands with sums
 * in double. Here both kinds of kernels get the same operands, which are bfloat16 numbers. Results
 * must be the same to the bit, after results that are to be bfloat16 are rounded. Exact arithmetic
 * in double defines rounding. */
#include "codelets/bfloat16.h"
#include "codelets/bias.h"
#include "codelets/dropout.h"
#include "codelets/epilogue.h"
#include "codelets/expand.h"
#include "codelets/features.h"
#include "codelets/gemm.h"
#include "codelets/max.h"
#include "codelets/pack_rows.h"
#include "codelets/spmm.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* ---- Rounding ---- */

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The bfloat16 number next to a finite x, of two that are as near the even one. */
static uint16_t nearest(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t below = bits & 0xFFFF0000, above = below + 0x10000;
    /* The one after the largest number would be 2^128. */
    const double low = fabs((double)float_of(below)), high = (above & 0x7F800000) == 0x7F800000
                                                                 ? 0x1p128
                                                                 : fabs((double)float_of(above));
    const double to_low = fabs((double)x) - low, to_high = high - fabs((double)x);
    const bool up = to_high < to_low || (to_high == to_low && (above >> 16) % 2 == 0);
    return (uint16_t)((up ? above : below) >> 16);
}

static void expect_rounding(float x)
{
    if (sl_narrow(x) != nearest(x))
        fail_msg("%a is rounded to %a, not to %a", (double)x, (double)sl_widen(sl_narrow(x)),
                 (double)sl_widen(nearest(x)));
}

SL_TEST(test_rounding)
{
    sl_random_seed(7);
    for (uint32_t upper = 0; upper < 0x10000; upper++) {
        static const uint32_t lower[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
        for (size_t l = 0; l < SL_COUNT(lower); l++)
            if ((upper & 0x7F80) != 0x7F80)
                expect_rounding(float_of(upper << 16 | lower[l]));
        if (!isnan(float_of(upper << 16)))
            assert_int_equal(sl_narrow(sl_widen((uint16_t)upper)), upper);
    }
    for (int trial = 0; trial < 1000000; trial++) {
        const float x = float_of((uint32_t)sl_random_bits());
        if (isfinite(x))
            expect_rounding(x);
    }
    assert_true(isnan(sl_widen(sl_narrow(float_of(0x7F800001)))));
    assert_true(isnan(sl_widen(sl_narrow(float_of(0xFFFFFFFF)))));
    assert_true(isinf(sl_widen(sl_narrow(INFINITY))) && sl_widen(sl_narrow(-INFINITY)) < 0.0f);
}

/* Vectors of any numbers, with subnormal ones, zeros and NaN among them, as kernels round them. */
SL_TEST(test_rounding_of_vectors)
{
    enum { COLS = 67 };
    static const uint32_t special[] = {0,          0x80000000, 1,          0x80000001, 0x7FFF,
                                       0x8000,     0x8001,     0x007FFFFF, 0x807F8000, 0x00800000,
                                       0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345};
    float from[COLS];
    uint16_t to[COLS];
    const struct sl_epilogue identity = SL_EPILOGUE_IDENTITY;
    const struct sl_rows x = sl_float_rows(from, COLS), y = sl_rows_of_type(to, COLS, SL_BFLOAT16);
    sl_random_seed(8);
    for (int trial = 0; trial < 2000; trial++) {
        const int64_t ordinary = sl_random_below(5);
        for (int j = 0; j < COLS; j++)
            from[j] = float_of(sl_random_below(4) < ordinary
                                   ? (uint32_t)sl_random_bits()
                                   : special[sl_random_below(SL_COUNT(special))]);
        for (int level = 0; sl_next_level(&level);) {
            sl_kernel_epilogue(1, COLS, &identity, &x, &y);
            for (int j = 0; j < COLS; j++) {
                const uint16_t want = sl_narrow(from[j]); /* no step: a zero keeps its sign */
                if (to[j] != want)
                    fail_msg("%s: element %d, %a, is rounded to %a, not to %a", sl_level_name(), j,
                             (double)from[j], (double)sl_widen(to[j]), (double)sl_widen(want));
            }
        }
    }
}

/* ---- Operands ---- */

/* `got` is `want`, rounded; frees both. */
static void take_rounded(const char *operation, struct sl_narrowed *got, struct sl_guarded *want)
{
    for (int64_t r = 0; r < want->rows; r++)
        for (int64_t j = 0; j < want->cols; j++)
            if (*sl_narrowed_at(got, r, j) != sl_narrow(*sl_element(want, r, j)))
                fail_msg("%s (%s): element (%lld, %lld) of %lld x %lld is %.9g, not %.9g",
                         operation, sl_level_name(), (long long)r, (long long)j,
                         (long long)want->rows, (long long)want->cols,
                         (double)sl_widen(*sl_narrowed_at(got, r, j)),
                         (double)*sl_element(want, r, j));
    sl_guarded_free(&got->words);
    sl_guarded_free(want);
}

/* ---- Sparse products ---- */

enum { PARTS = 3 };

struct product {
    struct sl_guarded_sparse all, a[PARTS];
    struct sl_sparse view[PARTS];
    struct sl_guarded h;
    struct sl_narrowed narrow_h;
    struct sl_rows rows[PARTS], narrow_rows[PARTS];
    int parts;
};

static struct product make_product(int64_t rows, int64_t width, int parts, int64_t block_cols,
                                   bool values)
{
    const int64_t cols = 41;
    struct product p = {
        .all = sl_guarded_sparse_random(rows, cols, 6, rows / 2, values, SL_REALS),
        .h = sl_guarded_random(cols, width, SL_PADDED, NAN, SL_REALS),
        .parts = parts,
    };
    p.narrow_h = sl_narrowed_of(&p.h, sl_some_spare());
    for (int i = 0; i < parts; i++) {
        const int64_t first = cols * i / parts;
        p.a[i] =
            sl_guarded_sparse_cut(&p.all.view, first, cols * (i + 1) / parts, block_cols, i % 2);
        p.view[i] = p.a[i].view;
        p.rows[i] = sl_float_rows(sl_element(&p.h, first, 0), p.h.ld);
        p.narrow_rows[i] = sl_rows_at(&p.narrow_h.rows, first, 0);
    }
    return p;
}

static void free_product(struct product *p)
{
    for (int i = 0; i < p->parts; i++)
        sl_guarded_sparse_free(&p->a[i]);
    sl_guarded_sparse_free(&p->all);
    sl_guarded_free(&p->h);
    sl_guarded_free(&p->narrow_h.words);
}

/* The epilogue with its mask in bfloat16. */
static struct sl_epilogue narrow_epilogue(struct sl_guarded_epilogue *e, struct sl_narrowed *mask)
{
    struct sl_epilogue view = e->view;
    *mask = sl_narrowed_of(&e->mask, sl_some_spare());
    if (view.mask.data)
        view.mask = mask->rows;
    return view;
}

/* H alone, or both, in bfloat16; all at once or part by part. */
static void check_spmm(int64_t rows, int64_t width, bool both, bool separately, int parts,
                       int64_t block_cols)
{
    const int steps = sl_some_steps();
    const bool accumulate = sl_random_below(2);
    struct product p = make_product(rows, width, parts, block_cols, sl_random_below(2));
    struct sl_guarded_epilogue e = sl_guarded_epilogue_random(steps, rows, width, SL_PADDED);
    struct sl_narrowed mask;
    const struct sl_epilogue narrow = narrow_epilogue(&e, &mask);
    struct sl_guarded start = sl_guarded_random(rows, width, SL_PADDED, SL_CANARY, SL_REALS);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded want = sl_guarded_copy(&start, SL_PADDED, SL_CANARY),
                          sum = sl_guarded_copy(&start, SL_PADDED, SL_CANARY);
        const struct sl_rows to = sl_rows_of(&want), sums = sl_rows_of(&sum);
        sl_kernel_spmm(parts, p.view, p.rows, width, accumulate, &e.view, NULL, &to);
        struct sl_narrowed got = sl_narrowed_empty(rows, width, sl_some_spare());
        for (int i = 0; separately && i < parts - 1; i++)
            sl_kernel_spmm(1, &p.view[i], &p.narrow_rows[i], width, accumulate || i > 0, NULL, NULL,
                           &sums);
        const int first = separately ? parts - 1 : 0;
        sl_kernel_spmm(parts - first, p.view + first, p.narrow_rows + first, width,
                       accumulate || first > 0, &narrow, &sums, both ? &got.rows : &sums);
        if (both) {
            take_rounded("spmm of bfloat16", &got, &want);
        } else {
            sl_expect_same_bits("spmm of bfloat16 to float", &want, &sum);
            sl_guarded_free(&want);
            sl_guarded_free(&got.words);
        }
        sl_guarded_free(&sum);
    }
    sl_guarded_free(&start);
    sl_guarded_free(&mask.words);
    sl_guarded_epilogue_free(&e);
    free_product(&p);
}

SL_TEST(test_spmm)
{
    static const int64_t widths[] = {1, 7, 16, 17, 31, 32, 41, 48, 64, 80, 96, 100, 128, 144, 256};
    static const int64_t blocks[] = {0, 7, 16};
    sl_random_seed(11);
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (size_t b = 0; b < SL_COUNT(blocks); b++)
            for (int option = 0; option < 8; option++)
                check_spmm(option & 4 ? 23 : 1, widths[w], option & 1, option & 2,
                           1 + (int)sl_random_below(PARTS), blocks[b]);
}

/* Sums in pieces of columns, and one that asks ahead. */
SL_TEST(test_spmm_wide)
{
    sl_random_seed(12);
    check_spmm(9, 4096, true, false, 2, 0);
    check_spmm(9, 4097, true, true, 2, 7);
    check_spmm(5, 9000, true, false, 1, 0);
}

/* A matrix without sums needs no memory for sums. */
SL_TEST(test_spmm_without_sums)
{
    sl_random_seed(13);
    struct product p = make_product(23, 48, 1, 0, true);
    struct sl_guarded want = sl_guarded_empty(23, 48, SL_PADDED, SL_CANARY);
    struct sl_narrowed got = sl_narrowed_empty(23, 48, 16);
    const struct sl_rows to = sl_rows_of(&want);
    sl_kernel_spmm(1, p.view, p.rows, 48, false, NULL, NULL, &to);
    sl_kernel_spmm(1, p.view, p.narrow_rows, 48, false, NULL, NULL, &got.rows);
    take_rounded("spmm of bfloat16 without sums", &got, &want);
    free_product(&p);
}

/* ---- Row by row ---- */

static void check_epilogue(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const int steps = sl_some_steps();
    struct sl_guarded_epilogue e = sl_guarded_epilogue_random(steps, rows, cols, layout);
    struct sl_narrowed mask;
    const struct sl_epilogue narrow = narrow_epilogue(&e, &mask);
    struct sl_guarded sum = sl_guarded_random(rows, cols, layout, NAN, SL_REALS);
    const struct sl_rows from = sl_rows_of(&sum);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded want = sl_guarded_empty(rows, cols, layout, SL_CANARY);
        struct sl_narrowed got = sl_narrowed_empty(rows, cols, sl_some_spare());
        const struct sl_rows to = sl_rows_of(&want);
        sl_kernel_epilogue(rows, cols, &e.view, &from, &to);
        sl_kernel_epilogue(rows, cols, &narrow, &from, &got.rows);
        take_rounded("epilogue to bfloat16", &got, &want);
    }
    sl_guarded_free(&sum);
    sl_guarded_free(&mask.words);
    sl_guarded_epilogue_free(&e);
}

SL_TEST(test_epilogue)
{
    for (int trial = 0; trial < 3; trial++)
        sl_each_shape(check_epilogue);
}

static void check_dropout(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const struct sl_dropout drop = sl_some_dropout(0.3);
    const uint32_t column0 = layout == SL_LOOSE ? 3 : 0;
    struct sl_guarded vertex = sl_guarded_vertices(rows),
                      x = sl_guarded_random(rows, cols, layout, NAN, SL_REALS);
    struct sl_narrowed narrow_x = sl_narrowed_of(&x, sl_some_spare());
    const struct sl_rows from = sl_rows_of(&x);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded want = sl_guarded_empty(rows, cols, layout, SL_CANARY);
        struct sl_narrowed got = sl_narrowed_empty(rows, cols, sl_some_spare());
        const struct sl_rows to = sl_rows_of(&want);
        sl_kernel_dropout(rows, cols, &drop, sl_vertices_of(&vertex), column0, &from, &to);
        sl_kernel_dropout(rows, cols, &drop, sl_vertices_of(&vertex), column0, &narrow_x.rows,
                          &got.rows);
        take_rounded("dropout of bfloat16", &got, &want);
    }
    sl_guarded_free(&vertex);
    sl_guarded_free(&x);
    sl_guarded_free(&narrow_x.words);
}

SL_TEST(test_dropout)
{
    sl_each_shape(check_dropout);
}

SL_TEST(test_expand)
{
    const struct sl_dropout drop = sl_some_dropout(0.3);
    sl_random_seed(14);
    for (int trial = 0; trial < 40; trial++) {
        const int64_t rows = 1 + sl_random_below(40), cols = 1 + sl_random_below(90);
        struct sl_guarded_sparse x =
            sl_guarded_sparse_random(rows, cols, 6, rows / 2, trial % 2, SL_REALS);
        struct sl_guarded vertex = sl_guarded_vertices(rows),
                          want = sl_guarded_empty(rows, cols, SL_LOOSE, SL_CANARY);
        struct sl_narrowed got = sl_narrowed_empty(rows, cols, sl_some_spare());
        const struct sl_rows to = sl_rows_of(&want);
        sl_kernel_expand(&x.view, &drop, sl_vertices_of(&vertex), &to);
        sl_kernel_expand(&x.view, &drop, sl_vertices_of(&vertex), &got.rows);
        take_rounded("expand to bfloat16", &got, &want);
        sl_guarded_free(&vertex);
        sl_guarded_sparse_free(&x);
    }
}

/* ---- Dense products ---- */

/* Small whole numbers, whose sums are exact in any order. */
static void check_gemm(int64_t m, int64_t n, int64_t k, int option)
{
    if (!sl_takes(m * n * k))
        return;
    const bool ta = option & 1, tb = option & 2, narrow_a = option & 4, accumulate = option & 8,
               narrow_c = !ta && !accumulate && (option & 16);
    struct sl_guarded a = sl_guarded_random(ta ? k : m, ta ? m : k, SL_LOOSE, NAN, SL_INTEGERS),
                      b = sl_guarded_random(tb ? n : k, tb ? k : n, SL_PADDED, NAN, SL_INTEGERS),
                      want = sl_guarded_random(m, n, SL_LOOSE, SL_CANARY, SL_INTEGERS),
                      sum = sl_guarded_copy(&want, SL_PADDED, SL_CANARY);
    struct sl_narrowed half_a = sl_narrowed_of(&a, sl_some_spare()),
                       got = sl_narrowed_empty(m, n, sl_some_spare());
    struct sl_gemm gemm = {.transpose_a = ta,
                           .transpose_b = tb,
                           .accumulate = accumulate,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = sl_rows_of(&a),
                           .b = sl_rows_of(&b),
                           .c = sl_rows_of(&want)};
    sl_kernel_gemm(&gemm);
    if (narrow_a)
        gemm.a = half_a.rows;
    gemm.c = narrow_c ? got.rows : sl_rows_of(&sum);
    sl_kernel_gemm(&gemm);
    if (narrow_c) {
        take_rounded("gemm of bfloat16", &got, &want);
    } else {
        sl_expect_same_bits("gemm of bfloat16 to float", &want, &sum);
        sl_expect_padding_kept("gemm of bfloat16 to float", &sum);
        sl_guarded_free(&want);
        sl_guarded_free(&got.words);
    }
    sl_guarded_free(&sum);
    sl_guarded_free(&a);
    sl_guarded_free(&b);
    sl_guarded_free(&half_a.words);
}

/* Some that take several pieces of rows, of columns and of the inner dimension. */
SL_TEST(test_gemm)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},     {7, 5, 0},     {0, 5, 7},       {5, 17, 41},   {700, 41, 97},
        {40, 2049, 9}, {33, 5, 2500}, {9, 2100, 2050}, {2050, 3, 70}, {129, 64, 602}};
    sl_random_seed(15);
    for (size_t s = 0; s < SL_COUNT(shapes); s++)
        for (int option = 0; option < 32; option++)
            check_gemm(shapes[s][0], shapes[s][1], shapes[s][2], option);
}

/* ---- The largest of neighbours ---- */

/* Products are rounded before they are compared. Of products that are then equal, the first vertex
 * wins, although its columns come last. */
static void check_largest(int64_t rows, int64_t width, bool weighted, enum sl_kind kind)
{
    enum { COLS = 29, CUT = 11 };
    struct sl_guarded_sparse all =
        sl_guarded_sparse_random(rows, COLS, 6, rows / 2, weighted, kind);
    struct sl_guarded h = sl_guarded_random(COLS, width, SL_TIGHT, NAN, kind),
                      want = sl_guarded_empty(rows, width, SL_TIGHT, 0.0f);
    struct sl_narrowed half_h = sl_narrowed_of(&h, sl_some_spare()),
                       half_z = sl_narrowed_empty(rows, width, sl_some_spare());
    int32_t *arg = calloc((size_t)(rows * width) + 1, sizeof *arg),
            *from = calloc((size_t)(rows * width) + 1, sizeof *from);
    int64_t count;
    struct sl_entry *entries = sl_sparse_entries(&all.view, &count);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++) {
            int32_t best = -1;
            float z = 0.0f;
            for (int64_t c = 0; c < COLS; c++)
                for (int64_t e = 0; e < count; e++) {
                    const float m = sl_widen(sl_narrow(entries[e].value * *sl_element(&h, c, j)));
                    if (entries[e].row == r && entries[e].col == c && (best < 0 || m > z)) {
                        z = m;
                        best = (int32_t)c;
                    }
                }
            *sl_element(&want, r, j) = z;
            from[r * width + j] = best;
        }
    for (int part = 1; part >= 0; part--) {
        const int64_t first = part ? CUT : 0;
        struct sl_guarded_sparse a =
            sl_guarded_sparse_cut(&all.view, first, part ? COLS : CUT, 0, false);
        const struct sl_rows x = sl_rows_at(&half_h.rows, first, 0);
        const struct sl_numbering columns = {(int32_t)first, NULL};
        const struct sl_argmax argmax = {arg, width, 1.0f};
        sl_kernel_max(&a.view, width, &x, !part, &half_z.rows, &columns, &argmax);
        sl_guarded_sparse_free(&a);
    }
    for (int64_t k = 0; k < rows * width; k++)
        assert_int_equal(arg[k], from[k]);
    take_rounded("largest", &half_z, &want);
    free(arg);
    free(from);
    free(entries);
    sl_guarded_sparse_free(&all);
    sl_guarded_free(&h);
    sl_guarded_free(&half_h.words);
}

SL_TEST(test_largest)
{
    static const int64_t widths[] = {1, 7, 64, 71};
    sl_random_seed(17);
    for (int level = 0; sl_next_level(&level);)
        for (size_t w = 0; w < SL_COUNT(widths); w++)
            for (int option = 0; option < 4; option++)
                check_largest(13, widths[w], option & 1, option & 2 ? SL_REALS : SL_INTEGERS);
}

/* ---- Rows that travel ---- */

static void check_pack_rows(int64_t rows, int64_t cols, enum sl_layout layout)
{
    (void)layout;
    uint32_t *index = sl_row_numbers(rows, 33, false);
    struct sl_guarded x = sl_guarded_random(33, cols, SL_TIGHT, NAN, SL_REALS),
                      want = sl_guarded_empty(rows, cols, SL_TIGHT, NAN);
    struct sl_narrowed half_x = sl_narrowed_of(&x, sl_some_spare()),
                       half_y = sl_narrowed_empty(rows, cols, sl_some_spare());
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            *sl_element(&want, r, j) = *sl_element(&x, index[r], j);
    sl_kernel_pack_rows(rows, cols, index, &half_x.rows, &half_y.rows);
    take_rounded("pack rows", &half_y, &want);
    free(index);
    sl_guarded_free(&x);
    sl_guarded_free(&half_x.words);
}

static void check_unpack_rows(int64_t rows, int64_t cols, enum sl_layout layout)
{
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        uint32_t *index = sl_row_numbers(rows, rows + 4, true);
        struct sl_guarded x = sl_guarded_random(rows, cols, SL_TIGHT, NAN, SL_REALS),
                          y = sl_guarded_random(rows + 4, cols, SL_TIGHT, NAN, SL_REALS);
        struct sl_narrowed half_x = sl_narrowed_of(&x, sl_some_spare()),
                           half_y = sl_narrowed_of(&y, sl_some_spare());
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < cols; j++)
                *sl_element(&y, index[r], j) =
                    *sl_element(&x, r, j) + (accumulate ? *sl_element(&y, index[r], j) : 0.0f);
        sl_kernel_unpack_rows(rows, cols, index, accumulate, &half_x.rows, &half_y.rows);
        take_rounded("unpack rows", &half_y, &y);
        free(index);
        sl_guarded_free(&x);
        sl_guarded_free(&half_x.words);
    }
    (void)layout;
}

/* ---- Sparse features ---- */

/* X·H into bfloat16, and Xᵀ·H of bfloat16, of `rows` rows; more rows than fit into a piece where
 * rows are wide. */
static void check_features(int64_t rows, int64_t cols, enum sl_layout layout)
{
    enum { INNER = 23 };
    const struct sl_dropout some = sl_some_dropout(0.3);
    struct sl_guarded_sparse x = sl_guarded_sparse_random(rows, INNER, 6, rows / 2, true, SL_REALS);
    struct sl_guarded vertex = sl_guarded_vertices(rows);
    for (int option = 0; option < 4; option++) {
        const bool transposed = option & 1;
        struct sl_guarded h = sl_guarded_random(transposed ? rows : INNER, cols, layout, NAN,
                                                SL_REALS),
                          z = sl_guarded_empty(transposed ? INNER : rows, cols, SL_TIGHT, NAN),
                          same = sl_guarded_empty(INNER, cols, SL_TIGHT, NAN);
        struct sl_narrowed half_h = sl_narrowed_of(&h, sl_some_spare()),
                           half_z = sl_narrowed_empty(rows, cols, sl_some_spare());
        struct sl_features f = {.transposed = transposed,
                                .x = &x.view,
                                .drop = option & 2 ? &some : NULL,
                                .vertex = sl_vertices_of(&vertex),
                                .width = cols,
                                .h = sl_rows_of(&h),
                                .z = sl_rows_of(&z)};
        sl_kernel_features(&f);
        if (transposed) {
            f.h = half_h.rows;
            f.z = sl_rows_of(&same);
            sl_kernel_features(&f);
            for (int64_t r = 0; r < INNER; r++)
                for (int64_t j = 0; j < cols; j++)
                    assert_true(*sl_element(&z, r, j) == *sl_element(&same, r, j));
            sl_guarded_free(&half_z.words);
            sl_guarded_free(&z);
        } else {
            f.z = half_z.rows;
            sl_kernel_features(&f);
            take_rounded("features", &half_z, &z);
        }
        sl_guarded_free(&half_h.words);
        sl_guarded_free(&h);
        sl_guarded_free(&same);
    }
    sl_guarded_sparse_free(&x);
    sl_guarded_free(&vertex);
}

SL_TEST(test_features)
{
    sl_random_seed(17);
    for (int level = 0; sl_next_level(&level);) {
        sl_each_shape(check_features);
        check_features(300, 602, SL_TIGHT);
        check_features(40, 4099, SL_TIGHT);
    }
}

/* ---- Gradients of a bias ---- */

static void check_bias_gradient(int64_t rows, int64_t cols, enum sl_layout layout)
{
    struct sl_guarded g = sl_guarded_random(rows, cols, layout, NAN, SL_REALS),
                      wide = sl_guarded_empty(1, cols, SL_TIGHT, NAN),
                      half = sl_guarded_empty(1, cols, SL_TIGHT, NAN);
    struct sl_narrowed half_g = sl_narrowed_of(&g, sl_some_spare());
    const struct sl_rows all = sl_rows_of(&g);
    sl_kernel_bias_gradient(rows, cols, NULL, &all, wide.at);
    sl_kernel_bias_gradient(rows, cols, NULL, &half_g.rows, half.at);
    for (int64_t j = 0; j < cols; j++)
        assert_true(wide.at[j] == half.at[j]);
    sl_guarded_free(&half_g.words);
    sl_guarded_free(&g);
    sl_guarded_free(&wide);
    sl_guarded_free(&half);
}

SL_TEST(test_bias_gradient)
{
    sl_random_seed(18);
    for (int level = 0; sl_next_level(&level);)
        sl_each_shape(check_bias_gradient);
}

SL_TEST(test_pack_rows)
{
    sl_random_seed(16);
    sl_each_shape(check_pack_rows);
    sl_each_shape(check_unpack_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_rounding_of_vectors),
        cmocka_unit_test(test_spmm),
        cmocka_unit_test(test_spmm_wide),
        cmocka_unit_test(test_spmm_without_sums),
        cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_pack_rows),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_bias_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
