/* Kernels on sparse tiles: products with dense matrices and what follows them, and the tile itself
 * as a dense one. How they are judged: tests/kernels.h. */
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

/* ---- Exact products ---- */

/* An exact result and how far that of the kernel may be off. */
struct exact {
    int64_t rows, width;
    double *want, *bound; // (rows, width)
    double *terms;        // (rows)
};

static struct exact exact_start(const struct sl_guarded *z, bool accumulate)
{
    const int64_t count = z->rows * z->cols;
    struct exact x = {z->rows, z->cols, sl_doubles(count), sl_doubles(count), sl_doubles(z->rows)};
    for (int64_t r = 0; accumulate && r < z->rows; r++)
        for (int64_t j = 0; j < z->cols; j++) {
            x.want[r * z->cols + j] = (double)*sl_element(z, r, j);
            x.bound[r * z->cols + j] = fabs(x.want[r * z->cols + j]);
        }
    return x;
}

/* Entries as the kernels must see them: dropped out, and transposed. */
static void exact_add(struct exact *x, const struct sl_sparse *a, const struct sl_dropout *drop,
                      const uint32_t *vertex, bool transposed, const struct sl_guarded *h)
{
    int64_t count;
    struct sl_entry *entries = sl_sparse_entries(a, &count);
    for (int64_t e = 0; e < count; e++) {
        const int64_t r = entries[e].row, c = entries[e].col;
        const int64_t to = transposed ? c : r, from = transposed ? r : c;
        double value = (double)entries[e].value;
        if (drop)
            value *= (double)sl_dropout_factor(drop, vertex[r], (uint32_t)c);
        for (int64_t j = 0; j < x->width; j++) {
            const double term = value * (double)*sl_element(h, from, j);
            x->want[to * x->width + j] += term;
            x->bound[to * x->width + j] += fabs(term);
        }
        x->terms[to]++;
    }
    free(entries);
}

/* bound = n u Σ|terms| with n the number of terms and the roundings of value and sum. */
static void exact_finish(struct exact *x)
{
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t j = 0; j < x->width; j++)
            x->bound[r * x->width + j] *= (x->terms[r] + 4.0) * SL_UNIT;
}

static void exact_free(struct exact *x)
{
    free(x->want);
    free(x->bound);
    free(x->terms);
}

static struct sl_guarded result(int64_t rows, int64_t cols, bool accumulate, enum sl_layout layout,
                                enum sl_kind kind)
{
    return accumulate ? sl_guarded_random(rows, cols, layout, SL_CANARY, kind)
                      : sl_guarded_empty(rows, cols, layout, SL_CANARY);
}

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
                   form->steps ? &p->epilogue.view : NULL, NULL, 0, &out);
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
    struct sl_guarded z = result(rows, width, form->accumulate, sl_other_layout(layout), kind);
    struct exact exact = exact_start(&z, form->accumulate);
    exact_add(&exact, &p.all.view, NULL, NULL, false, &p.h);
    exact_finish(&exact);
    const bool equal = kind == SL_INTEGERS && !form->steps;
    if (form->steps)
        sl_naive_epilogue(&p.epilogue.view, rows, width, exact.want, exact.bound);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded got = sl_guarded_copy(&z, z.layout, SL_CANARY);
        run_spmm(&p, form, &got);
        sl_expect_vectors(name, &got, exact.want, equal ? NULL : exact.bound);
        sl_guarded_free(&got);
    }
    exact_free(&exact);
    sl_guarded_free(&z);
    free_product(&p, form);
}

static const int part_counts[] = {1, 2, MOST_PARTS};
static const int64_t block_sizes[] = {0, 1, 7, 16};

/* Drawn rather than looped over, but for the few shapes of test_spmm_forms. */
static struct form random_form(int64_t cols)
{
    struct form form = {
        .parts = part_counts[sl_random_below(cols < MOST_PARTS ? 1 : 3)],
        .block_cols = block_sizes[sl_random_below(SL_COUNT(block_sizes))],
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

static void test_spmm(void **state)
{
    (void)state;
    sl_each_shape(check_spmm_shape);
}

/* Every form; every step of the epilogue alone, and all of them. */
static void test_spmm_forms(void **state)
{
    (void)state;
    static const int64_t widths[] = {16, 41, 64, 144};
    static const int steps[] = {0, 1, 2, 4, 8, 16, 32, 64, SL_STEPS_ALL};
    for (size_t w = 0; w < SL_COUNT(widths); w++)
        for (size_t s = 0; s < SL_COUNT(steps); s++)
            for (size_t b = 0; b < SL_COUNT(block_sizes); b++)
                for (size_t p = 0; p < SL_COUNT(part_counts); p++)
                    for (int option = 0; option < 8; option++) {
                        const struct form form = {part_counts[p], block_sizes[b], option & 1,
                                                  option & 2,     option & 4,     steps[s]};
                        check_spmm(&form, 23, 37, 5, 11, widths[w],
                                   (enum sl_layout)sl_random_below(SL_LAYOUTS), SL_REALS);
                    }
}

/* Rows of more entries than any batch a kernel works in, first, between and last, and hundreds of
 * short rows, on operands larger than a cache. */
static void test_spmm_hub(void **state)
{
    (void)state;
    static const int64_t hubs[] = {0, 350, 699}, widths[] = {1, 41, 128};
    for (size_t i = 0; i < SL_COUNT(hubs); i++)
        for (size_t j = 0; j < SL_COUNT(widths); j++)
            for (int trial = 0; trial < 4; trial++) {
                const struct form form = random_form(1700);
                check_spmm(&form, 700, 1700, 2, hubs[i], widths[j], SL_LOOSE,
                           j == 0 ? SL_REALS : SL_INTEGERS);
            }
}

/* So many that rows are asked for ahead, with columns of 16 bits, of 32, and of both. */
static void test_spmm_many_columns(void **state)
{
    (void)state;
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
static void test_spmm_no_entries(void **state)
{
    (void)state;
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
        struct sl_guarded z = result(ROWS, WIDTH, form->accumulate, SL_PADDED, SL_INTEGERS);
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

static void test_spmm_nan(void **state)
{
    (void)state;
    for (int trial = 0; trial < 200; trial++) {
        const struct form form = random_form(19);
        check_spmm_nan(&form);
    }
}

/* ---- The same bits ---- */

/* `got` must be `want`; frees it. */
static void take_same(const char *operation, struct sl_guarded *want, struct sl_guarded *got)
{
    sl_expect_same_bits(operation, want, got);
    sl_guarded_free(got);
}

/* Ranks and devices may keep a tile with another ld: that must not change a bit of the result. */
static void test_spmm_same_in_all_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < SL_COUNT(sl_widths); i++)
        for (int trial = 0; trial < 8; trial++) {
            const struct form form = random_form(67);
            struct product p = make_product(&form, 61, 67, 9, 5, sl_widths[i], SL_TIGHT, SL_REALS);
            struct sl_guarded z = result(61, sl_widths[i], true, SL_TIGHT, SL_REALS);
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
                    take_same("spmm in another layout", &first, &z2);
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
                       form->steps && i == form->parts - 1 ? &p->epilogue.view : NULL, NULL, 0,
                       &out);
}

/* However the columns are cut into blocks, parts and calls. */
static void check_grouping(struct product *p, struct form form, const struct sl_guarded *z)
{
    struct sl_guarded whole = sl_guarded_copy(z, SL_LOOSE, SL_CANARY);
    const struct sl_rows h = sl_rows_of(&p->h), out = sl_rows_of(&whole);
    sl_kernel_spmm(1, &p->all.view, &h, z->cols, form.accumulate,
                   form.steps ? &p->epilogue.view : NULL, NULL, 0, &out);
    free_parts(p, &form);
    for (size_t option = 0; option < SL_COUNT(block_sizes) * SL_COUNT(part_counts) * 2; option++) {
        form.parts = part_counts[option / 2 % SL_COUNT(part_counts)];
        form.block_cols = block_sizes[option / 2 / SL_COUNT(part_counts)];
        form.wide = option % 2;
        cut_parts(p, &form);
        struct sl_guarded at_once = sl_guarded_copy(z, SL_LOOSE, SL_CANARY),
                          separately = sl_guarded_copy(z, SL_LOOSE, SL_CANARY);
        run_spmm(p, &form, &at_once);
        run_separately(p, &form, &separately);
        take_same("spmm at once", &whole, &at_once);
        take_same("spmm part by part", &whole, &separately);
        free_parts(p, &form);
    }
    sl_guarded_free(&whole);
}

static void test_spmm_same_in_all_groups(void **state)
{
    (void)state;
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
                    result(29, sl_widths[w], form.accumulate, SL_PADDED, SL_REALS);
                check_grouping(&p, form, &z);
                sl_guarded_free(&z);
                sl_guarded_free(&p.h);
                sl_guarded_sparse_free(&p.all);
                sl_guarded_epilogue_free(&p.epilogue);
            }
}

/* The steps of an epilogue by the kernels that do one of them each. */
static void run_steps(const struct sl_epilogue *e, struct sl_guarded *z)
{
    if (e->before || e->scale != 1.0f) {
        float *factor = calloc((size_t)z->rows + 1, sizeof *factor);
        assert_non_null(factor);
        for (int64_t r = 0; r < z->rows; r++)
            factor[r] = e->scale * (e->before ? e->before[r] : 1.0f);
        sl_kernel_scale_rows(z->rows, z->cols, factor, z->at, z->ld, z->at, z->ld);
        free(factor);
    }
    if (e->bias)
        sl_kernel_bias(z->rows, z->cols, e->bias, z->at, z->ld);
    if (e->relu)
        sl_kernel_relu(z->rows, z->cols, z->at, z->ld);
    if (e->mask.data)
        sl_kernel_relu_backward(z->rows, z->cols, 1.0f, e->mask.data, e->mask.ld, z->at, z->ld);
    const struct sl_rows rows = sl_rows_of(z);
    if (e->drop.threshold)
        sl_kernel_dropout(z->rows, z->cols, &e->drop, e->vertex, 0, &rows, &rows);
    if (e->after)
        sl_kernel_scale_rows(z->rows, z->cols, e->after, z->at, z->ld, z->at, z->ld);
}

/* What the epilogue makes of a sum, within rounding. */
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
    struct sl_guarded z = result(rows, width, form.accumulate, layout, SL_REALS);
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
        take_same("spmm, then its epilogue", &fused, &two);
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

static void test_spmm_fused(void **state)
{
    (void)state;
    sl_each_shape(check_fused_shape);
    for (int steps = 1; steps <= SL_STEPS_ALL; steps++) {
        struct form form = random_form(37);
        form.steps = steps;
        check_fused(form, 23, 41, SL_LOOSE);
    }
}

/* ---- Sparse features ---- */

struct features {
    bool transposed, accumulate;
    const struct sl_dropout *drop; /* or NULL */
};

static void run_features(const struct features *f, const struct sl_sparse *x,
                         const uint32_t *vertex, const struct sl_guarded *h, struct sl_guarded *z)
{
    sl_kernel_features(f->transposed, x, f->drop, vertex, z->cols, h->at, h->ld, f->accumulate,
                       z->at, z->ld);
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
                      z = result(rows, width, f->accumulate, sl_other_layout(layout), kind);
    struct exact exact = exact_start(&z, f->accumulate);
    exact_add(&exact, x, f->drop, sl_vertices_of(&vertex), f->transposed, &h);
    exact_finish(&exact);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded got = sl_guarded_copy(&z, z.layout, SL_CANARY);
        run_features(f, x, sl_vertices_of(&vertex), &h, &got);
        (f->transposed ? sl_expect : sl_expect_vectors)(name, &got, exact.want,
                                                        kind == SL_INTEGERS ? NULL : exact.bound);
        sl_guarded_free(&got);
    }
    exact_free(&exact);
    sl_guarded_free(&h);
    sl_guarded_free(&vertex);
    sl_guarded_free(&z);
}

/* Dropped out by half, exactly in integers; by nothing, and not at all. */
static void check_features_options(const struct sl_sparse *x, bool transposed, int64_t width,
                                   enum sl_layout layout, enum sl_kind kind)
{
    const struct sl_dropout half = sl_some_dropout(0.5), none = sl_some_dropout(0.0);
    const struct sl_dropout *drops[] = {NULL, &half, &none};
    const struct sl_guarded_sparse cut = sl_guarded_sparse_cut(
        x, 0, x->cols, block_sizes[sl_random_below(SL_COUNT(block_sizes))], sl_random_below(2));
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

static void test_features(void **state)
{
    (void)state;
    sl_each_shape(check_features_shape);
}

static void test_features_hub(void **state)
{
    (void)state;
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
static void test_features_row_lengths(void **state)
{
    (void)state;
    for (int64_t batch = 64; batch <= 1024; batch *= 2)
        for (int64_t length = batch - 1; length <= batch + 1; length++)
            for (int transposed = 0; transposed < 2; transposed++) {
                struct sl_guarded_sparse x =
                    sl_guarded_sparse_random(3, length, 0, 1, true, SL_INTEGERS);
                check_features_options(&x.view, transposed, 9, SL_EDGE, SL_INTEGERS);
                sl_guarded_sparse_free(&x);
            }
}

static void test_features_full_batches(void **state)
{
    (void)state;
    for (int64_t rows = 255; rows <= 1025; rows += 1 + 255 * (rows % 2 == 0)) {
        struct sl_guarded_sparse one = sl_guarded_sparse_random(rows, 1, 1, -1, false, SL_INTEGERS);
        check_features_options(&one.view, false, 8, SL_PADDED, SL_INTEGERS);
        check_features_options(&one.view, true, 8, SL_PADDED, SL_INTEGERS);
        sl_guarded_sparse_free(&one);
    }
}

static void test_features_no_entries(void **state)
{
    (void)state;
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

static void test_features_nan(void **state)
{
    (void)state;
    for (size_t b = 0; b < SL_COUNT(block_sizes); b++)
        for (int transposed = 0; transposed < 2; transposed++)
            check_features_nan(transposed, block_sizes[b]);
}

/* Another ld of the operands, and other blocks. */
static void check_features_bits(const struct features *f, int64_t width)
{
    const int64_t rows = f->transposed ? 67 : 61, inner = f->transposed ? 61 : 67;
    struct sl_guarded_sparse x = sl_guarded_sparse_random(61, 67, 9, 5, true, SL_REALS);
    struct sl_guarded h = sl_guarded_random(inner, width, SL_TIGHT, NAN, SL_REALS),
                      z = result(rows, width, true, SL_TIGHT, SL_REALS),
                      vertex = sl_guarded_vertices(61);
    for (int level = 0; sl_next_level(&level);) {
        struct sl_guarded first = sl_guarded_copy(&z, SL_TIGHT, SL_CANARY);
        run_features(f, &x.view, sl_vertices_of(&vertex), &h, &first);
        for (int l = 0; l < SL_LAYOUTS; l++) {
            struct sl_guarded_sparse cut =
                sl_guarded_sparse_cut(&x.view, 0, 67, block_sizes[l], l == SL_LOOSE);
            struct sl_guarded moved = sl_guarded_copy(&h, (enum sl_layout)l, NAN),
                              z2 = sl_guarded_copy(&z, (enum sl_layout)l, SL_CANARY);
            run_features(f, &cut.view, sl_vertices_of(&vertex), &moved, &z2);
            take_same("features", &first, &z2);
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

static void test_features_same_bits(void **state)
{
    (void)state;
    const struct sl_dropout drop = sl_some_dropout(0.3);
    for (size_t i = 0; i < SL_COUNT(sl_widths); i++)
        for (int option = 0; option < 8; option++)
            check_features_bits(
                &(struct features){option & 1, option & 2, option & 4 ? &drop : NULL},
                sl_widths[i]);
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
            &all.view, 0, cols, block_sizes[sl_random_below(SL_COUNT(block_sizes))], option & 4);
        check_expanded(&x.view, NULL, layout);
        check_expanded(&x.view, &some, layout);
        check_expanded(&x.view, &none, layout);
        sl_guarded_sparse_free(&x);
        sl_guarded_sparse_free(&all);
    }
}

static void test_expand(void **state)
{
    (void)state;
    sl_each_shape_and_level(check_expand);
}

static void test_expand_no_entries(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_spmm),
        cmocka_unit_test(test_spmm_forms),
        cmocka_unit_test(test_spmm_hub),
        cmocka_unit_test(test_spmm_many_columns),
        cmocka_unit_test(test_spmm_no_entries),
        cmocka_unit_test(test_spmm_nan),
        cmocka_unit_test(test_spmm_same_in_all_layouts),
        cmocka_unit_test(test_spmm_same_in_all_groups),
        cmocka_unit_test(test_spmm_fused),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_features_hub),
        cmocka_unit_test(test_features_row_lengths),
        cmocka_unit_test(test_features_full_batches),
        cmocka_unit_test(test_features_no_entries),
        cmocka_unit_test(test_features_nan),
        cmocka_unit_test(test_features_same_bits),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_expand_no_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
