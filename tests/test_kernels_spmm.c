/* Sums of products of sparse tiles and dense matrices, and what follows them. How they are judged:
 * tests/kernels.h. */
#include "codelets/dropout.h"
#include "codelets/epilogue.h"
#include "codelets/spmm.h"
#include "tests/exact.h"
#include "tests/unit.h"

/* ---- Sums of products ---- */

enum { MOST_PARTS = 5 };

/* How A is stored, and what else is asked for. */
struct form {
    int parts;
    int64_t block_cols; /* 0: one block */
    bool wide, values, accumulate;
    int steps; /* of the epilogue; 0: none */
};

/* Columns of one large matrix, so that every cut of it is the same product. */
struct product {
    struct sl_guarded_sparse all, a[MOST_PARTS];
    struct sl_sparse views[MOST_PARTS];
    struct sl_guarded h;
    struct sl_rows rows[MOST_PARTS];
    struct sl_guarded_epilogue epilogue;
};

static int64_t cut_at(int64_t cols, int part, int parts)
{
    return part == parts ? cols : cols * part / parts + (part > 0 && cols > parts * 4);
}

static void cut_parts(struct product *p, const struct form *form)
{
    for (int i = 0; i < form->parts; i++) {
        const int64_t first = cut_at(p->all.view.cols, i, form->parts),
                      last = cut_at(p->all.view.cols, i + 1, form->parts);
        p->a[i] = sl_guarded_sparse_cut(&p->all.view, first, last, form->block_cols, form->wide);
        p->views[i] = p->a[i].view;
        p->rows[i] = sl_float_rows(p->h.at + first * p->h.ld, p->h.ld);
    }
}

static void free_parts(struct product *p, const struct form *form)
{
    for (int i = 0; i < form->parts; i++)
        sl_guarded_sparse_free(&p->a[i]);
}

static struct product make_product(const struct form *form, int64_t rows, int64_t cols,
                                   int64_t degree, int64_t hub, int64_t width,
                                   enum sl_layout layout, enum sl_kind kind)
{
    struct product p = {
        .all = sl_guarded_sparse_random(rows, cols, degree, hub, form->values, kind),
        .h = sl_guarded_random(cols, width, layout, NAN, kind),
        .epilogue = sl_guarded_epilogue_random(form->steps, rows, width, layout),
    };
    cut_parts(&p, form);
    return p;
}

static void free_product(struct product *p, const struct form *form)
{
    free_parts(p, form);
    sl_guarded_sparse_free(&p->all);
    sl_guarded_free(&p->h);
    sl_guarded_epilogue_free(&p->epilogue);
}

static void run_spmm(const struct product *p, const struct form *form, struct sl_guarded *z)
{
    const struct sl_rows out = sl_rows_of(z);
    sl_kernel_spmm(form->parts, p->views, p->rows, z->cols, form->accumulate,
                   form->steps ? &p->epilogue.view : NULL, NULL, &out);
}

/* On every instruction set. */
static void check_spmm(const struct form *form, int64_t rows, int64_t cols, int64_t degree,
                       int64_t hub, int64_t width, enum sl_layout layout, enum sl_kind kind)
{
    char name[128];
    snprintf(name, sizeof name, "spmm of %d parts, blocks of %lld%s%s%s, epilogue %d", form->parts,
             (long long)form->block_cols, form->wide ? ", wide" : "",
             form->values ? ", values" : "", form->accumulate ? ", accumulate" : "", form->steps);
    struct product p = make_product(form, rows, cols, degree, hub, width, layout, kind);
    struct sl_guarded z =
        sl_exact_result(rows, width, form->accumulate, sl_other_layout(layout), kind);
    struct sl_exact exact = sl_exact_start(&z, form->accumulate);
    sl_exact_add(&exact, &p.all.view, NULL, NULL, false, &p.h);
    sl_exact_finish(&exact);
    const bool equal = kind == SL_INTEGERS && !form->steps;
    if (form->steps)
        sl_naive_epilogue(&p.epilogue.view, rows, width, exact.want, exact.bound);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded got = sl_guarded_copy(&z, z.layout, SL_CANARY);
        run_spmm(&p, form, &got);
        sl_expect_vectors(name, &got, exact.want, equal ? NULL : exact.bound);
        sl_guarded_free(&got);
    }
    sl_exact_free(&exact);
    sl_guarded_free(&z);
    free_product(&p, form);
}

static const int part_counts[] = {1, 2, MOST_PARTS};

/* Drawn rather than looped over, but for the few shapes of test_spmm_forms. */
static struct form random_form(int64_t cols)
{
    struct form form = {
        .parts = part_counts[sl_random_below(cols < MOST_PARTS ? 1 : 3)],
        .block_cols = sl_block_sizes[sl_random_below(SL_COUNT(sl_block_sizes))],
        .wide = sl_random_below(2),
        .values = sl_random_below(2),
        .accumulate = sl_random_below(2),
    };
    if (sl_random_below(2))
        form.steps = (int)sl_random_below(SL_STEPS_ALL + 1);
    return form;
}

static void check_spmm_shape(int64_t rows, int64_t width, enum sl_layout layout)
{
    const enum sl_kind kind = layout == SL_TIGHT ? SL_REALS : SL_INTEGERS;
    for (int trial = 0; trial < 6; trial++) {
        const int64_t cols = trial == 0 ? 1 : 90;
        const struct form form = random_form(cols);
        check_spmm(&form, rows, cols, 6, rows / 2, width, layout, kind);
    }
}

SL_TEST(test_spmm)
{
    sl_each_shape(check_spmm_shape);
}

/* Every form; every step of the epilogue alone, and all of them. */
SL_TEST(test_spmm_forms)
{
    static const int64_t widths[] = {16, 41, 64, 144};
    static const int steps[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, SL_STEPS_ALL};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (size_t s = 0; s < SL_COUNT(steps); s++)
            for (size_t b = 0; b < SL_COUNT(sl_block_sizes); b++)
                for (size_t p = 0; p < SL_COUNT(part_counts); p++)
                    for (int option = 0; option < 8; option++) {
                        const struct form form = {part_counts[p], sl_block_sizes[b], option & 1,
                                                  option & 2,     option & 4,        steps[s]};
                        check_spmm(&form, 23, 37, 5, 11, widths[w],
                                   (enum sl_layout)sl_random_below(SL_LAYOUTS), SL_REALS);
                    }
}

/* Rows of more entries than any batch a kernel works in, first, between and last, and hundreds of
 * short rows, on operands larger than a cache. */
SL_TEST(test_spmm_hub)
{
    static const int64_t hubs[] = {0, 350, 699}, widths[] = {1, 41, 128};
    for (size_t i = 0; i < SL_COUNT(hubs); i++)
        for (size_t j = 0; j < SL_COUNT(widths); j++)
            for (int trial = 0; trial < 4; trial++) {
                const struct form form = random_form(1700);
                check_spmm(&form, 700, 1700, 2, hubs[i], widths[j], SL_LOOSE,
                           j == 0 ? SL_REALS : SL_INTEGERS);
            }
}

/* Rows of many entries, whose columns come in slices, and a last slice that is short. */
SL_TEST(test_spmm_slices)
{
    static const int64_t widths[] = {127, 128, 130, 144, 199, 256, 300};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (int layout = 0; layout < SL_LAYOUTS; layout++)
            for (int trial = 0; trial < 4; trial++) {
                struct form form = random_form(90);
                form.steps = trial & 1 ? SL_STEPS_ALL : 0;
                check_spmm(&form, 29, 90, 40, 7, widths[w], (enum sl_layout)layout, SL_REALS);
            }
}

/* So many that rows are asked for ahead, with columns of 16 bits, of 32, and of both. */
SL_TEST(test_spmm_many_columns)
{
    static const struct {
        int64_t cols, block_cols;
    } cuts[] = {{9000, 0}, {70000, 0}, {70000, 65536}, {70000, 65537}};
    static const int64_t widths[] = {1, 17, 48, 64, 128};
    for (size_t c = 0; c < SL_COUNT(cuts); c++)
        for (size_t w = 0; w < SL_COUNT(widths); w++)
            for (int values = 0; values < 2; values++) {
                const struct form form = {.parts = 1,
                                          .block_cols = cuts[c].block_cols,
                                          .values = values,
                                          .accumulate = w % 3 == 0,
                                          .steps = w == 2 ? SL_STEPS_ALL : 0};
                check_spmm(&form, 9, cuts[c].cols, 40, 4, widths[w], SL_PADDED, SL_INTEGERS);
            }
}

/* Around a cut into blocks and parts nothing is lost, even where they have no entry at all. */
SL_TEST(test_spmm_no_entries)
{
    static const int64_t sizes[][2] = {{0, 9}, {9, 9}, {700, 9}, {5, 1}};
    for (size_t i = 0; i < SL_COUNT(sizes); i++)
        for (int trial = 0; trial < 40; trial++) {
            const struct form form = random_form(sizes[i][1]);
            check_spmm(&form, sizes[i][0], sizes[i][1], 0, trial % 2 ? -1 : sizes[i][0] / 2, 17,
                       SL_TIGHT, SL_INTEGERS);
        }
}

/* NaN reaches exactly the results that it is a term of, even times zero, and none that the mask
 * stops. */
static void check_spmm_nan(const struct form *form)
{
    enum { ROWS = 23, COLS = 19, WIDTH = 21, BAD_ROW = 4, BAD_COLUMN = 20 };
    struct product p = make_product(form, ROWS, COLS, 5, 2, WIDTH, SL_LOOSE, SL_INTEGERS);
    bool reached[ROWS] = {false};
    int64_t count;
    struct sl_entry *entries = sl_sparse_entries(&p.all.view, &count);
    *sl_element(&p.h, BAD_ROW, BAD_COLUMN) = NAN;
    for (int64_t e = 0; e < count; e++)
        if (entries[e].col == BAD_ROW)
            reached[entries[e].row] = true;
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded z =
            sl_exact_result(ROWS, WIDTH, form->accumulate, SL_PADDED, SL_INTEGERS);
        run_spmm(&p, form, &z);
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t j = 0; j < WIDTH; j++) {
                const bool passes =
                    !(form->steps & SL_STEP_MASK) || *sl_element(&p.epilogue.mask, r, j) > 0.0f;
                assert_int_equal(isnan(*sl_element(&z, r, j)) != 0,
                                 reached[r] && j == BAD_COLUMN && passes);
            }
        sl_expect_vectors_only("spmm of NaN", &z);
        sl_guarded_free(&z);
    }
    free(entries);
    free_product(&p, form);
}

SL_TEST(test_spmm_nan)
{
    for (int trial = 0; trial < 200; trial++) {
        const struct form form = random_form(19);
        check_spmm_nan(&form);
    }
}

/* ---- The same bits ---- */

/* Ranks and devices may keep a tile with another ld: that must not change a bit of the result. */
SL_TEST(test_spmm_same_in_all_layouts)
{
    for (size_t i = 0; i < SL_COUNT(sl_widths); i++)
        for (int trial = 0; trial < 8; trial++) {
            const struct form form = random_form(67);
            struct product p = make_product(&form, 61, 67, 9, 5, sl_widths[i], SL_TIGHT, SL_REALS);
            struct sl_guarded z = sl_exact_result(61, sl_widths[i], true, SL_TIGHT, SL_REALS);
            for (int level = 0; sl_next_level(&level);) {
                struct sl_guarded first = sl_guarded_copy(&z, SL_TIGHT, SL_CANARY);
                run_spmm(&p, &form, &first);
                for (int l = 0; l < SL_LAYOUTS * SL_LAYOUTS; l++) {
                    struct product moved = p;
                    moved.h = sl_guarded_copy(&p.h, (enum sl_layout)(l / SL_LAYOUTS), NAN);
                    for (int part = 0; part < form.parts; part++)
                        moved.rows[part] =
                            sl_float_rows(moved.h.at + ((float *)p.rows[part].data - p.h.at) /
                                                           p.h.ld * moved.h.ld,
                                          moved.h.ld);
                    struct sl_guarded z2 =
                        sl_guarded_copy(&z, (enum sl_layout)(l % SL_LAYOUTS), SL_CANARY);
                    run_spmm(&moved, &form, &z2);
                    sl_take_same_bits("spmm in another layout", &first, &z2);
                    sl_guarded_free(&moved.h);
                }
                sl_guarded_free(&first);
            }
            sl_guarded_free(&z);
            free_product(&p, &form);
        }
}

/* Part by part: only the last call has the epilogue. */
static void run_separately(const struct product *p, const struct form *form, struct sl_guarded *z)
{
    const struct sl_rows out = sl_rows_of(z);
    for (int i = 0; i < form->parts; i++)
        sl_kernel_spmm(1, &p->views[i], &p->rows[i], z->cols, form->accumulate || i > 0,
                       form->steps && i == form->parts - 1 ? &p->epilogue.view : NULL, NULL, &out);
}

/* However the columns are cut into blocks, parts and calls. */
static void check_grouping(struct product *p, struct form form, const struct sl_guarded *z)
{
    struct sl_guarded whole = sl_guarded_copy(z, SL_LOOSE, SL_CANARY);
    const struct sl_rows h = sl_rows_of(&p->h), out = sl_rows_of(&whole);
    sl_kernel_spmm(1, &p->all.view, &h, z->cols, form.accumulate,
                   form.steps ? &p->epilogue.view : NULL, NULL, &out);
    free_parts(p, &form);
    for (size_t option = 0; option < SL_COUNT(sl_block_sizes) * SL_COUNT(part_counts) * 2;
         option++) {
        form.parts = part_counts[option / 2 % SL_COUNT(part_counts)];
        form.block_cols = sl_block_sizes[option / 2 / SL_COUNT(part_counts)];
        form.wide = option % 2;
        cut_parts(p, &form);
        struct sl_guarded at_once = sl_guarded_copy(z, SL_LOOSE, SL_CANARY),
                          separately = sl_guarded_copy(z, SL_LOOSE, SL_CANARY);
        run_spmm(p, &form, &at_once);
        run_separately(p, &form, &separately);
        sl_take_same_bits("spmm at once", &whole, &at_once);
        sl_take_same_bits("spmm part by part", &whole, &separately);
        free_parts(p, &form);
    }
    sl_guarded_free(&whole);
}

SL_TEST(test_spmm_same_in_all_groups)
{
    for (size_t w = 0; w < SL_COUNT(sl_widths); w++)
        for (int option = 0; option < 8; option++)
            for (int level = 0; sl_next_level(&level);) {
                const struct form form = {.parts = 1,
                                          .values = option & 1,
                                          .accumulate = option & 2,
                                          .steps = option & 4 ? SL_STEPS_ALL : 0};
                struct product p =
                    make_product(&form, 29, 83, 9, 5, sl_widths[w], SL_LOOSE, SL_REALS);
                struct sl_guarded z =
                    sl_exact_result(29, sl_widths[w], form.accumulate, SL_PADDED, SL_REALS);
                check_grouping(&p, form, &z);
                sl_guarded_free(&z);
                sl_guarded_free(&p.h);
                sl_guarded_sparse_free(&p.all);
                sl_guarded_epilogue_free(&p.epilogue);
            }
}

static void scale_rows(float scale, const float *factor, struct sl_guarded *z)
{
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t j = 0; j < z->cols; j++)
            *sl_element(z, r, j) *= scale * (factor ? factor[r] : 1.0f);
}

/* The steps of an epilogue, one after the other. */
static void run_steps(const struct sl_epilogue *e, struct sl_guarded *z)
{
    scale_rows(e->scale, e->before, z);
    scale_rows(1.0f, e->factor, z);
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t j = 0; j < z->cols; j++) {
            float *at = sl_element(z, r, j);
            const float *mask = e->mask.data;
            *at += e->bias ? e->bias[j] : 0.0f;
            *at = e->relu && *at < 0.0f ? 0.0f : *at;
            *at = mask && !(mask[r * e->mask.ld + j] > 0.0f) ? 0.0f : *at;
        }
    const struct sl_rows rows = sl_rows_of(z);
    if (e->drop.threshold)
        sl_kernel_dropout(z->rows, z->cols, &e->drop, e->vertex, 0, &rows, &rows);
    scale_rows(1.0f, e->after, z);
}

/* The result of the epilogue of a sum, within rounding. */
static void check_steps(const struct sl_epilogue *e, const struct sl_guarded *sum,
                        const struct sl_guarded *fused, const struct sl_guarded *steps)
{
    double *want = sl_doubles(sum->rows * sum->cols), *bound = sl_doubles(sum->rows * sum->cols);
    for (int64_t r = 0; r < sum->rows; r++)
        for (int64_t j = 0; j < sum->cols; j++)
            want[r * sum->cols + j] = (double)*sl_element(sum, r, j);
    sl_naive_epilogue(e, sum->rows, sum->cols, want, bound);
    sl_expect_vectors("spmm and epilogue as one", fused, want, bound);
    sl_expect_vectors("spmm, then step by step", steps, want, bound);
    free(want);
    free(bound);
}

/* A sum with its epilogue, the sum and then all steps, and the sum and then step by step. */
static void check_fused(struct form form, int64_t rows, int64_t width, enum sl_layout layout)
{
    struct product p = make_product(&form, rows, 37, 5, rows / 2, width, layout, SL_REALS);
    struct sl_guarded z = sl_exact_result(rows, width, form.accumulate, layout, SL_REALS);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded fused = sl_guarded_copy(&z, layout, SL_CANARY),
                          two = sl_guarded_copy(&z, layout, SL_CANARY);
        run_spmm(&p, &form, &fused);
        struct form sum = form;
        sum.steps = 0;
        run_spmm(&p, &sum, &two);
        struct sl_guarded steps = sl_guarded_copy(&two, sl_other_layout(layout), SL_CANARY);
        run_steps(&p.epilogue.view, &steps);
        check_steps(&p.epilogue.view, &two, &fused, &steps);
        const struct sl_rows all = sl_rows_of(&two);
        sl_kernel_epilogue(rows, width, &p.epilogue.view, &all, &all);
        sl_take_same_bits("spmm, then its epilogue", &fused, &two);
        sl_guarded_free(&steps);
        sl_guarded_free(&fused);
    }
    sl_guarded_free(&z);
    free_product(&p, &form);
}

static void check_fused_shape(int64_t rows, int64_t width, enum sl_layout layout)
{
    struct form form = random_form(37);
    form.steps = SL_STEPS_ALL;
    check_fused(form, rows, width, layout);
    form = random_form(37);
    form.steps = 1 + (int)sl_random_below(SL_STEPS_ALL);
    check_fused(form, rows, width, layout);
}

SL_TEST(test_spmm_fused)
{
    sl_each_shape(check_fused_shape);
    for (int steps = 1; steps <= SL_STEPS_ALL; steps++) {
        struct form form = random_form(37);
        form.steps = steps;
        check_fused(form, 23, 41, SL_LOOSE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spmm),
        cmocka_unit_test(test_spmm_forms),
        cmocka_unit_test(test_spmm_hub),
        cmocka_unit_test(test_spmm_slices),
        cmocka_unit_test(test_spmm_many_columns),
        cmocka_unit_test(test_spmm_no_entries),
        cmocka_unit_test(test_spmm_nan),
        cmocka_unit_test(test_spmm_same_in_all_layouts),
        cmocka_unit_test(test_spmm_same_in_all_groups),
        cmocka_unit_test(test_spmm_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
