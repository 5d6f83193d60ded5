/* Products with sparse features, and these as a dense matrix. How they are judged: tests/kernels.h.
 */
#include "codelets/expand.h"
#include "codelets/features.h"
#include "codelets/kept.h"
#include "tests/exact.h"
#include "tests/unit.h"

/* ---- Sparse features ---- */

struct features {
    bool transposed, accumulate;
    const struct sl_dropout *drop; /* or NULL */
};

static void run_features(const struct features *f, const struct sl_sparse *x,
                         const uint32_t *vertex, const struct sl_guarded *h, struct sl_guarded *z)
{
    sl_kernel_features(&(struct sl_features){.transposed = f->transposed,
                                             .accumulate = f->accumulate,
                                             .x = x,
                                             .drop = f->drop,
                                             .vertex = vertex,
                                             .width = z->cols,
                                             .h = sl_rows_of(h),
                                             .z = sl_rows_of(z)});
}

static void check_features(const struct features *f, const struct sl_sparse *x, int64_t width,
                           enum sl_layout layout, enum sl_kind kind)
{
    char name[96];
    snprintf(name, sizeof name, "features%s%s%s%s, blocks of %lld", f->transposed ? "'" : "",
             f->accumulate ? ", accumulate" : "", x->value ? ", values" : "",
             f->drop ? ", dropout" : "", (long long)x->block_cols);
    const int64_t rows = f->transposed ? x->cols : x->rows, inner = x->rows + x->cols - rows;
    struct sl_guarded h = sl_guarded_random(inner, width, layout, NAN, kind),
                      vertex = sl_guarded_vertices(x->rows),
                      z = sl_exact_result(rows, width, f->accumulate, sl_other_layout(layout),
                                          kind);
    struct sl_exact exact = sl_exact_start(&z, f->accumulate);
    sl_exact_add(&exact, x, f->drop, sl_vertices_of(&vertex), f->transposed, &h);
    sl_exact_finish(&exact);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded got = sl_guarded_copy(&z, z.layout, SL_CANARY);
        run_features(f, x, sl_vertices_of(&vertex), &h, &got);
        (f->transposed ? sl_expect : sl_expect_vectors)(name, &got, exact.want,
                                                        kind == SL_INTEGERS ? NULL : exact.bound);
        sl_guarded_free(&got);
    }
    sl_exact_free(&exact);
    sl_guarded_free(&h);
    sl_guarded_free(&vertex);
    sl_guarded_free(&z);
}

/* The stored transpose gives the bits of the scatter; with dropout it is not read. */
SL_TEST(test_features_mirror)
{
    static const int64_t widths[] = {1, 7, 16, 41, 64, 130};
    const struct sl_dropout half = sl_some_dropout(0.5);
    for (int option = 0; option < 6 * 2 * 2 * 2; option++) {
        const int64_t width = widths[option % 6];
        const bool values = option / 6 & 1, accumulate = option / 12 & 1, drops = option / 24 & 1;
        struct sl_guarded_sparse whole = sl_guarded_sparse_random(150, 90, 30, 4, values, SL_REALS),
                                 back =
                                     sl_guarded_sparse_transpose(&whole.view, option % 4 ? 40 : 0),
                                 cut = sl_guarded_sparse_cut(&whole.view, 0, 90,
                                                             option & 1 ? 32 : 0, option & 2);
        struct sl_sparse mirrored = cut.view;
        mirrored.mirror.block_rows = back.view.block_cols;
        mirrored.mirror.blocks = back.view.blocks;
        mirrored.mirror.narrow = back.view.narrow;
        mirrored.mirror.row_ptr = back.view.row_ptr;
        mirrored.mirror.col = back.view.col;
        mirrored.mirror.value = back.view.value;
        struct sl_guarded h = sl_guarded_random(150, width, SL_PADDED, NAN, SL_REALS),
                          vertex = sl_guarded_vertices(150),
                          z = sl_guarded_random(90, width, SL_PADDED, SL_CANARY, SL_REALS);
        const struct features f = {true, accumulate, drops ? &half : NULL};
        for (int level = 0; sl_next_level(&level);) {
            struct sl_guarded one = sl_guarded_copy(&z, z.layout, SL_CANARY),
                              two = sl_guarded_copy(&z, z.layout, SL_CANARY);
            run_features(&f, &cut.view, sl_vertices_of(&vertex), &h, &one);
            run_features(&f, &mirrored, sl_vertices_of(&vertex), &h, &two);
            sl_expect_same_bits("features', mirrored", &one, &two);
            sl_guarded_free(&one);
            sl_guarded_free(&two);
        }
        sl_guarded_free(&h);
        sl_guarded_free(&vertex);
        sl_guarded_free(&z);
        sl_guarded_sparse_free(&cut);
        sl_guarded_sparse_free(&back);
        sl_guarded_sparse_free(&whole);
    }
}

/* Dropped out by half, exactly in integers; by nothing, and not at all. */
static void check_features_options(const struct sl_sparse *x, bool transposed, int64_t width,
                                   enum sl_layout layout, enum sl_kind kind)
{
    const struct sl_dropout half = sl_some_dropout(0.5), none = sl_some_dropout(0.0);
    const struct sl_dropout *drops[] = {NULL, &half, &none};
    const struct sl_guarded_sparse cut = sl_guarded_sparse_cut(
        x, 0, x->cols, sl_block_sizes[sl_random_below(SL_COUNT(sl_block_sizes))],
        sl_random_below(2));
    for (size_t d = 0; d < SL_COUNT(drops); d++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            check_features(&(struct features){transposed, accumulate, drops[d]}, &cut.view, width,
                           layout, kind);
    sl_guarded_sparse_free((struct sl_guarded_sparse *)&cut);
}

static void check_features_shape(int64_t rows, int64_t width, enum sl_layout layout)
{
    const enum sl_kind kind = layout == SL_TIGHT ? SL_REALS : SL_INTEGERS;
    for (int option = 0; option < 8; option++) {
        const bool transposed = option & 1, has_values = option & 2;
        const int64_t other = option & 4 ? 90 : transposed ? 0 : 1;
        if (width > 128 && option & 4 && has_values)
            continue;
        struct sl_guarded_sparse x =
            sl_guarded_sparse_random(transposed ? other : rows, transposed ? rows : other, 6,
                                     (transposed ? other : rows) / 2, has_values, kind);
        check_features_options(&x.view, transposed, width, layout, kind);
        sl_guarded_sparse_free(&x);
    }
}

SL_TEST(test_features)
{
    sl_each_shape(check_features_shape);
}

SL_TEST(test_features_hub)
{
    static const int64_t hubs[] = {0, 350, 699}, widths[] = {1, 41, 128};
    for (size_t i = 0; i < SL_COUNT(hubs); i++)
        for (size_t j = 0; j < SL_COUNT(widths); j++)
            for (int transposed = 0; transposed < 2; transposed++) {
                const enum sl_kind kind = j == 0 ? SL_REALS : SL_INTEGERS;
                struct sl_guarded_sparse x =
                    sl_guarded_sparse_random(700, 1700, 2, hubs[i], true, kind);
                check_features_options(&x.view, transposed, widths[j], SL_LOOSE, kind);
                sl_guarded_sparse_free(&x);
            }
}

/* Hub lengths around powers of two: off-by-one errors where a long row is cut into pieces. */
SL_TEST(test_features_row_lengths)
{
    for (int64_t batch = 64; batch <= 1024; batch *= 2)
        for (int64_t length = batch - 1; length <= batch + 1; length++)
            for (int transposed = 0; transposed < 2; transposed++) {
                struct sl_guarded_sparse x =
                    sl_guarded_sparse_random(3, length, 0, 1, true, SL_INTEGERS);
                check_features_options(&x.view, transposed, 9, SL_EDGE, SL_INTEGERS);
                sl_guarded_sparse_free(&x);
            }
}

SL_TEST(test_features_full_batches)
{
    for (int64_t rows = 255; rows <= 1025; rows += 1 + 255 * (rows % 2 == 0)) {
        struct sl_guarded_sparse one = sl_guarded_sparse_random(rows, 1, 1, -1, false, SL_INTEGERS);
        check_features_options(&one.view, false, 8, SL_PADDED, SL_INTEGERS);
        check_features_options(&one.view, true, 8, SL_PADDED, SL_INTEGERS);
        sl_guarded_sparse_free(&one);
    }
}

SL_TEST(test_features_no_entries)
{
    static const int64_t sizes[][2] = {{0, 5}, {5, 1}, {700, 9}};
    for (size_t i = 0; i < SL_COUNT(sizes); i++) {
        struct sl_guarded_sparse x =
            sl_guarded_sparse_random(sizes[i][0], sizes[i][1], 0, -1, true, SL_INTEGERS);
        check_features_options(&x.view, false, 17, SL_TIGHT, SL_INTEGERS);
        check_features_options(&x.view, true, 17, SL_TIGHT, SL_INTEGERS);
        sl_guarded_sparse_free(&x);
    }
}

static void check_features_nan(bool transposed, int64_t block_cols)
{
    enum { ROWS = 23, COLS = 19, WIDTH = 21, BAD_ROW = 4, BAD_COLUMN = 20 };
    struct sl_guarded_sparse all = sl_guarded_sparse_random(ROWS, COLS, 5, 2, true, SL_INTEGERS),
                             x = sl_guarded_sparse_cut(&all.view, 0, COLS, block_cols, false);
    struct sl_guarded h =
        sl_guarded_random(transposed ? ROWS : COLS, WIDTH, SL_LOOSE, NAN, SL_INTEGERS);
    bool reached[ROWS + COLS] = {false};
    int64_t count;
    struct sl_entry *entries = sl_sparse_entries(&all.view, &count);
    *sl_element(&h, BAD_ROW, BAD_COLUMN) = NAN;
    for (int64_t e = 0; e < count; e++)
        if ((transposed ? entries[e].row : entries[e].col) == BAD_ROW)
            reached[transposed ? entries[e].col : entries[e].row] = true;
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded z =
            sl_guarded_empty(transposed ? COLS : ROWS, WIDTH, SL_PADDED, SL_CANARY);
        run_features(&(struct features){.transposed = transposed}, &x.view, NULL, &h, &z);
        for (int64_t r = 0; r < z.rows; r++)
            for (int64_t j = 0; j < WIDTH; j++)
                assert_int_equal(isnan(*sl_element(&z, r, j)) != 0, reached[r] && j == BAD_COLUMN);
        sl_expect_vectors_only("features of NaN", &z);
        sl_guarded_free(&z);
    }
    free(entries);
    sl_guarded_free(&h);
    sl_guarded_sparse_free(&x);
    sl_guarded_sparse_free(&all);
}

SL_TEST(test_features_nan)
{
    for (size_t b = 0; b < SL_COUNT(sl_block_sizes); b++)
        for (int transposed = 0; transposed < 2; transposed++)
            check_features_nan(transposed, sl_block_sizes[b]);
}

/* Another ld of the operands, and other blocks. */
static void check_features_bits(const struct features *f, int64_t width)
{
    const int64_t rows = f->transposed ? 67 : 61, inner = f->transposed ? 61 : 67;
    struct sl_guarded_sparse x = sl_guarded_sparse_random(61, 67, 9, 5, true, SL_REALS);
    struct sl_guarded h = sl_guarded_random(inner, width, SL_TIGHT, NAN, SL_REALS),
                      z = sl_exact_result(rows, width, true, SL_TIGHT, SL_REALS),
                      vertex = sl_guarded_vertices(61);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded first = sl_guarded_copy(&z, SL_TIGHT, SL_CANARY);
        run_features(f, &x.view, sl_vertices_of(&vertex), &h, &first);
        for (int l = 0; l < SL_LAYOUTS; l++) {
            struct sl_guarded_sparse cut =
                sl_guarded_sparse_cut(&x.view, 0, 67, sl_block_sizes[l], l == SL_LOOSE);
            struct sl_guarded moved = sl_guarded_copy(&h, (enum sl_layout)l, NAN),
                              z2 = sl_guarded_copy(&z, (enum sl_layout)l, SL_CANARY);
            run_features(f, &cut.view, sl_vertices_of(&vertex), &moved, &z2);
            sl_take_same_bits("features", &first, &z2);
            sl_guarded_free(&moved);
            sl_guarded_sparse_free(&cut);
        }
        sl_guarded_free(&first);
    }
    sl_guarded_free(&h);
    sl_guarded_free(&z);
    sl_guarded_free(&vertex);
    sl_guarded_sparse_free(&x);
}

SL_TEST(test_features_same_bits)
{
    const struct sl_dropout drop = sl_some_dropout(0.3);
    for (size_t i = 0; i < SL_COUNT(sl_widths); i++)
        for (int option = 0; option < 8; option++)
            check_features_bits(
                &(struct features){option & 1, option & 2, option & 4 ? &drop : NULL},
                sl_widths[i]);
}

/* ---- What dropout keeps ---- */

/* Batches hold the kept entries of a block, one after the other, and no others. */
static void check_kept_block(const struct sl_sparse *x, int64_t block,
                             const struct sl_dropout *drop, const uint32_t *vertex)
{
    struct sl_kept batch;
    struct sl_kept_walk walk = sl_kept_walk(x, block, drop, vertex, 0, x->rows);
    const uint32_t *row_ptr = x->row_ptr + block * x->rows;
    uint32_t e = row_ptr[0];
    int64_t row = 0;
    while (sl_kept_next(&walk, &batch)) {
        assert_int_equal(batch.row, batch.continued ? row - 1 : row);
        assert_in_range(batch.rows, 1, SL_KEPT_ENTRIES);
        uint32_t k = 0;
        for (int64_t i = 0; i < batch.rows; i++) {
            const int64_t r = batch.row + i;
            assert_int_equal(batch.row_ptr[i], k);
            /* A piece of a long row ends with its entries. */
            for (uint32_t taken = 0; e < row_ptr[r + 1] && taken < SL_KEPT_ENTRIES; e++, taken++) {
                const uint32_t c = sl_sparse_col(x, e);
                const float value = x->value ? x->value[e] : 1.0f,
                            factor = sl_dropout_factor(drop, vertex[r],
                                                       c + (uint32_t)(block * x->block_cols));
                if (factor == 0.0f)
                    continue;
                assert_int_equal(batch.col[k], c);
                assert_true(sl_same_bits(batch.value[k++], value * factor));
            }
        }
        assert_int_equal(batch.row_ptr[batch.rows], k);
        assert_int_equal(batch.count, k);
        row = batch.row + batch.rows;
    }
    assert_int_equal(row, x->rows);
    assert_int_equal(e, row_ptr[x->rows]);
}

static void check_kept(const struct sl_sparse *all, double p)
{
    static const int64_t blocks[] = {0, 1, 100, 700};
    static const uint32_t firsts[] = {0, 1, 63, 64, 1000};
    struct sl_guarded vertex = sl_guarded_vertices(all->rows);
    for (size_t b = 0; b < SL_COUNT(blocks); b++)
        for (size_t f = 0; f < SL_COUNT(firsts); f++) {
            struct sl_dropout drop = sl_some_dropout(p);
            drop.column0 = firsts[f];
            struct sl_guarded_sparse x = sl_guarded_sparse_cut(all, 0, all->cols, blocks[b], f & 1);
            for (int level = 0; sl_next_level(&level);)
                for (int64_t block = 0; block < x.view.blocks; block++)
                    check_kept_block(&x.view, block, &drop, sl_vertices_of(&vertex));
            sl_guarded_sparse_free(&x);
        }
    sl_guarded_free(&vertex);
}

/* Few entries in a row, and so many that its draws serve several; a row of many batches. */
SL_TEST(test_kept)
{
    static const struct {
        int64_t rows, cols, degree, hub;
    } shapes[] = {{40, 1500, 400, 7}, {900, 60, 3, -1}, {5, 1025, 0, 2}, {70, 300, 250, 0}};
    static const double ps[] = {0.5, 0.3, 0.9};
    for (size_t s = 0; s < SL_COUNT(shapes); s++)
        for (size_t p = 0; p < SL_COUNT(ps); p++) {
            struct sl_guarded_sparse x = sl_guarded_sparse_random(
                shapes[s].rows, shapes[s].cols, shapes[s].degree, shapes[s].hub, s & 1, SL_REALS);
            check_kept(&x.view, ps[p]);
            sl_guarded_sparse_free(&x);
        }
}

/* ---- A as a dense matrix ---- */

/* A value and its dropout are one rounding: exact. */
static void check_expanded(const struct sl_sparse *x, const struct sl_dropout *drop,
                           enum sl_layout layout)
{
    char name[64];
    snprintf(name, sizeof name, "expand%s%s, blocks of %lld", x->value ? ", values" : "",
             drop ? ", dropout" : "", (long long)x->block_cols);
    struct sl_guarded z = sl_guarded_empty(x->rows, x->cols, layout, SL_CANARY),
                      vertex = sl_guarded_vertices(x->rows);
    double *want = sl_doubles(x->rows * x->cols);
    int64_t count;
    struct sl_entry *entries = sl_sparse_entries(x, &count);
    for (int64_t e = 0; e < count; e++) {
        const int64_t r = entries[e].row, c = entries[e].col;
        double value = (double)entries[e].value;
        if (drop)
            value *= (double)sl_dropout_factor(drop, sl_vertices_of(&vertex)[r], (uint32_t)c);
        want[r * x->cols + c] = (double)(float)value;
    }
    const struct sl_rows out = sl_rows_of(&z);
    sl_kernel_expand(x, drop, drop ? sl_vertices_of(&vertex) : NULL, &out);
    sl_expect(name, &z, want, NULL);
    free(entries);
    free(want);
    sl_guarded_free(&z);
    sl_guarded_free(&vertex);
}

/* Without a full row, and with one. */
static void check_expand(int64_t rows, int64_t cols, enum sl_layout layout)
{
    const struct sl_dropout some = sl_some_dropout(0.3), none = sl_some_dropout(0.0);
    for (int option = 0; option < 8; option++) {
        struct sl_guarded_sparse all = sl_guarded_sparse_random(
            rows, cols, 6, option & 1 ? rows / 2 : -1, option & 2, SL_REALS);
        struct sl_guarded_sparse x = sl_guarded_sparse_cut(
            &all.view, 0, cols, sl_block_sizes[sl_random_below(SL_COUNT(sl_block_sizes))],
            option & 4);
        check_expanded(&x.view, NULL, layout);
        check_expanded(&x.view, &some, layout);
        check_expanded(&x.view, &none, layout);
        sl_guarded_sparse_free(&x);
        sl_guarded_sparse_free(&all);
    }
}

SL_TEST(test_expand)
{
    sl_each_shape_and_level(check_expand);
}

SL_TEST(test_expand_no_entries)
{
    const struct sl_dropout some = sl_some_dropout(0.3);
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {700, 9}};
    for (size_t i = 0; i < SL_COUNT(sizes); i++)
        for (int layout = 0; layout < SL_LAYOUTS; layout++) {
            struct sl_guarded_sparse x =
                sl_guarded_sparse_random(sizes[i][0], sizes[i][1], 0, -1, true, SL_REALS);
            check_expanded(&x.view, NULL, (enum sl_layout)layout);
            check_expanded(&x.view, &some, (enum sl_layout)layout);
            sl_guarded_sparse_free(&x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_features_mirror),
        cmocka_unit_test(test_features_hub),
        cmocka_unit_test(test_features_row_lengths),
        cmocka_unit_test(test_features_full_batches),
        cmocka_unit_test(test_features_no_entries),
        cmocka_unit_test(test_features_nan),
        cmocka_unit_test(test_features_same_bits),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_expand_no_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
