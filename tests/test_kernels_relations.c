/* The aggregation of relational graph convolutions and its gradients. How kernels are judged:
 * tests/kernels.h.
 *
 * Numbers are integers, with powers of two as factors, so that sums are exact in any order; or
 * reals. Exact results are those of the formulas in codelets/relations.h, in double. Gradients are
 * compared with central differences of Σ G·OUT, which is linear in X and in WEIGHT. A relation
 * that no entry has has a weight of NaN, which must not be used. */
#include "codelets/bases.h"
#include "codelets/relations.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* What a problem is: A (rows, cols) with `degree` entries a row and one full row, or none. */
struct shape {
    int64_t rows, cols, degree, hub, relations, in, out;
};

struct problem {
    struct shape s;
    enum sl_layout layout;
    enum sl_kind kind;
    struct sl_guarded_sparse a; // (rows, cols); an entry's value is its number
    float *feature;             // (count, SL_RELATION_FEATURES)
    int64_t count;
    struct sl_entry *entry; // (count)
    struct sl_guarded x, weight, g;
    double *out, *out_bound;   // (rows, out): exact result
    double *back, *back_bound; // (cols, in), then (relations · in, out): exact gradients
};

/* Return the number of an entry's relation. Of many relations, some have no entry. */
static float some_relation(int64_t relations)
{
    int64_t r = sl_random_below(relations);
    if (relations > 2 && r % 3 == 1)
        r = relations - 1;
    return (float)r;
}

static float some_factor(enum sl_kind kind)
{
    static const float powers[] = {0.5f, 2.0f, -1.0f};
    return kind == SL_INTEGERS ? powers[sl_random_below(SL_COUNT(powers))] : sl_random_value(kind);
}

static int64_t relation_of(const struct problem *p, int64_t e)
{
    return (int64_t)p->feature[e * SL_RELATION_FEATURES + SL_RELATION];
}

static double factor_of(const struct problem *p, int64_t e)
{
    return (double)p->feature[e * SL_RELATION_FEATURES + SL_RELATION_FACTOR];
}

/* ---- Exact ---- */

/* Set OUT, and the sizes of its sums: the terms' sizes and how many roundings meet one. */
static void make_out(struct problem *p)
{
    const int64_t in = p->s.in, out = p->s.out;
    int64_t *degree = calloc((size_t)p->s.rows + 1, sizeof *degree);
    assert_non_null(degree);
    for (int64_t e = 0; e < p->count; e++) {
        const int64_t i = p->entry[e].row;
        degree[i]++;
        for (int64_t k = 0; k < in; k++) {
            const double x = factor_of(p, e) * (double)*sl_element(&p->x, p->entry[e].col, k);
            const float *w = sl_element(&p->weight, relation_of(p, e) * in + k, 0);
            for (int64_t j = 0; j < out; j++) {
                p->out[i * out + j] += x * (double)w[j];
                p->out_bound[i * out + j] += fabs(x * (double)w[j]);
            }
        }
    }
    for (int64_t i = 0; i < p->s.rows * out; i++)
        p->out_bound[i] *= SL_UNIT * (double)(2 * degree[i / out] + in + 2);
    free(degree);
}

/* Set the gradients of X and WEIGHT, and how far they may be off. */
static void make_back(struct problem *p)
{
    const int64_t in = p->s.in, out = p->s.out, all = p->s.cols * in;
    const int64_t weights = p->s.relations * in * out;
    for (int64_t e = 0; e < p->count; e++) {
        const int64_t c = p->entry[e].col, r = relation_of(p, e) * in;
        for (int64_t k = 0; k < in; k++)
            for (int64_t j = 0; j < out; j++) {
                const double z = factor_of(p, e) * (double)*sl_element(&p->g, p->entry[e].row, j),
                             x = z * (double)*sl_element(&p->weight, r + k, j),
                             w = z * (double)*sl_element(&p->x, c, k);
                p->back[c * in + k] += x;
                p->back_bound[c * in + k] += fabs(x);
                p->back[all + (r + k) * out + j] += w;
                p->back_bound[all + (r + k) * out + j] += fabs(w);
            }
    }
    for (int64_t i = 0; i < all + weights; i++)
        p->back_bound[i] *= SL_UNIT * (double)(2 * p->count + out + 2);
}

/* Return Σ G·OUT, where X(c, k), or WEIGHT(r, j) if c < 0, is `more` larger. */
static double value_of(const struct problem *p, int64_t c, int64_t k, int64_t r, int64_t j,
                       double more)
{
    double sum = 0.0;
    for (int64_t e = 0; e < p->count; e++)
        for (int64_t a = 0; a < p->s.in; a++) {
            const int64_t row = relation_of(p, e) * p->s.in + a, col = p->entry[e].col;
            const double x = (double)*sl_element(&p->x, col, a) + (col == c && a == k ? more : 0.0);
            for (int64_t b = 0; b < p->s.out; b++)
                sum += (double)*sl_element(&p->g, p->entry[e].row, b) * factor_of(p, e) * x *
                       ((double)*sl_element(&p->weight, row, b) +
                        (c < 0 && row == r && b == j ? more : 0.0));
        }
    return sum;
}

/* Compare some of the exact gradients with central differences. */
static void check_differences(const struct problem *p)
{
    enum { SOME = 4 };
    const struct shape *s = &p->s;
    for (int i = 0; i < 2 * SOME && p->count > 0; i++) {
        const int64_t e = sl_random_below(p->count), k = sl_random_below(s->in),
                      j = sl_random_below(s->out), r = relation_of(p, e) * s->in + k,
                      c = i < SOME ? p->entry[e].col : -1;
        const double got = p->back[c < 0 ? (s->cols * s->in + r * s->out + j) : c * s->in + k],
                     above = value_of(p, c, k, r, j, 0.5), below = value_of(p, c, k, r, j, -0.5),
                     want = above - below;
        if (!(fabs(got - want) <= 1e-11 * (fabs(above) + fabs(below) + 1.0)))
            fail_msg("the gradient of %s (%lld, %lld) is %.9g, expected %.9g",
                     c < 0 ? "WEIGHT" : "X", (long long)(c < 0 ? r : c), (long long)(c < 0 ? j : k),
                     got, want);
    }
}

/* ---- Problems ---- */

static struct problem make_problem(const struct shape *s, enum sl_layout layout, enum sl_kind kind)
{
    const int64_t numbers = s->cols * s->in + s->relations * s->in * s->out;
    struct problem p = {.s = *s, .layout = layout, .kind = kind};
    p.a = sl_guarded_sparse_random(s->rows, s->cols, s->degree, s->hub, true, SL_REALS);
    p.x = sl_guarded_random(s->cols, s->in, layout, NAN, kind);
    p.weight = sl_guarded_empty(s->relations * s->in, s->out, sl_other_layout(layout), NAN);
    p.g = sl_guarded_random(s->rows, s->out, sl_other_layout(sl_other_layout(layout)), NAN, kind);
    p.entry = sl_sparse_entries(&p.a.view, &p.count);
    p.feature = calloc((size_t)(p.count * SL_RELATION_FEATURES) + 1, sizeof *p.feature);
    p.out = sl_doubles(s->rows * s->out);
    p.out_bound = sl_doubles(s->rows * s->out);
    p.back = sl_doubles(numbers);
    p.back_bound = sl_doubles(numbers);
    assert_non_null(p.feature);
    for (int64_t e = 0; e < p.count; e++) {
        ((float *)p.a.view.value)[e] = (float)e;
        p.feature[e * SL_RELATION_FEATURES + SL_RELATION] = some_relation(s->relations);
        p.feature[e * SL_RELATION_FEATURES + SL_RELATION_FACTOR] = some_factor(kind);
        float *w = sl_element(&p.weight, relation_of(&p, e) * s->in, 0);
        const bool has_weight = !isnan(w[0]);
        for (int64_t i = 0; !has_weight && i < s->in * s->out; i++)
            w[i / s->out * p.weight.ld + i % s->out] = sl_random_value(kind);
    }
    make_out(&p);
    make_back(&p);
    if (p.count * s->in * s->out < 300000)
        check_differences(&p);
    return p;
}

static void free_problem(struct problem *p)
{
    sl_guarded_sparse_free(&p->a);
    sl_guarded_free(&p->x);
    sl_guarded_free(&p->weight);
    sl_guarded_free(&p->g);
    free(p->feature);
    free(p->entry);
    free(p->out);
    free(p->out_bound);
    free(p->back);
    free(p->back_bound);
}

static const char *name_of(const struct problem *p, const char *what)
{
    static char name[160];
    snprintf(name, sizeof name, "%s, %lldx%lld, %lld relations, %lld to %lld columns, %s", what,
             (long long)p->s.rows, (long long)p->s.cols, (long long)p->s.relations,
             (long long)p->s.in, (long long)p->s.out, sl_level_name());
    return name;
}

/* Give the entries of `a` their features. Their values are their numbers in the problem. */
static struct sl_guarded take_features(const struct problem *p, struct sl_sparse *a)
{
    const int64_t count = a->row_ptr[a->blocks * a->rows];
    struct sl_guarded of = sl_guarded_empty(count, SL_RELATION_FEATURES, SL_EDGE, NAN);
    for (int64_t e = 0; e < count; e++)
        for (int64_t k = 0; k < SL_RELATION_FEATURES; k++)
            *sl_element(&of, e, k) = p->feature[(int64_t)a->value[e] * SL_RELATION_FEATURES + k];
    a->value = NULL;
    a->edge = of.at;
    a->edge_features = SL_RELATION_FEATURES;
    return of;
}

static struct sl_floats_at floats(const struct sl_guarded *m, int64_t r)
{
    return (struct sl_floats_at){sl_element(m, r, 0), m->ld};
}

static struct sl_relations relations_of(const struct problem *p)
{
    return (struct sl_relations){p->s.relations, p->s.in, p->s.out, floats(&p->weight, 0), false};
}

/* Make a result that is to be written, or added to small integers. */
static struct sl_guarded make_result(int64_t rows, int64_t cols, enum sl_layout layout, bool onto,
                                     const double *want, double *sum)
{
    struct sl_guarded m = sl_guarded_empty(rows, cols, layout, SL_CANARY);
    for (int64_t i = 0; i < rows * cols; i++) {
        const double more = onto ? (double)(i % 7) : 0.0;
        sum[i] = want[i] + more;
        if (onto)
            *sl_element(&m, i / cols, i % cols) = (float)more;
    }
    return m;
}

/* Compare with exact results. What was there before may add a rounding for each addition. */
static void expect(const struct problem *p, const char *what, const struct sl_guarded *got,
                   const double *want, const double *bound, bool onto)
{
    const int64_t numbers = got->rows * got->cols;
    double *some = sl_doubles(numbers);
    for (int64_t i = 0; i < numbers; i++)
        some[i] = bound[i] + (onto ? 7.0 * SL_UNIT * (double)(p->count + 1) : 0.0);
    sl_expect(name_of(p, what), got, want, p->kind == SL_REALS ? some : NULL);
    free(some);
}

/* ---- Forward ---- */

/* Sum `parts` parts of the columns, from the last to the first. */
static void check_parts(const struct problem *p, int parts, int64_t block_cols, bool wide,
                        bool onto, enum sl_layout layout)
{
    double *want = sl_doubles(p->s.rows * p->s.out);
    struct sl_guarded out = make_result(p->s.rows, p->s.out, layout, onto, p->out, want);
    const struct sl_relations relations = relations_of(p);
    for (int i = parts - 1; i >= 0; i--) {
        const int64_t first = p->s.cols * i / parts, last = p->s.cols * (i + 1) / parts;
        struct sl_guarded_sparse a =
            sl_guarded_sparse_cut(&p->a.view, first, last, block_cols, wide);
        struct sl_guarded of = take_features(p, &a.view);
        const struct sl_floats_at x = floats(&p->x, first), to = floats(&out, 0);
        sl_kernel_relations(&a.view, &relations, &x, onto || i < parts - 1, &to);
        sl_guarded_free(&of);
        sl_guarded_sparse_free(&a);
    }
    expect(p, "relations", &out, want, p->out_bound, onto);
    sl_guarded_free(&out);
    free(want);
}

static void check_forward(const struct problem *p)
{
    check_parts(p, 1, 0, false, false, p->layout);
    check_parts(p, 1, p->s.cols / 3 + 1, true, true, sl_other_layout(p->layout));
    check_parts(p, 3, p->s.cols / 7 + 1, false, false, SL_EDGE);
}

/* ---- Backward ---- */

/* Add `parts` parts of the rows of A. */
static void check_back_parts(const struct problem *p, int parts, int64_t block_cols, bool has_back,
                             bool onto, bool weight_onto, enum sl_layout layout)
{
    const struct shape *s = &p->s;
    const int64_t weight_rows = s->relations * s->in, all = s->cols * s->in;
    double *want = sl_doubles(all + weight_rows * s->out), *weight_want = want + all;
    struct sl_guarded_sparse whole = sl_guarded_sparse_transpose(&p->a.view, 0);
    struct sl_guarded back = make_result(s->cols, s->in, layout, onto, p->back, want),
                      weight_back = make_result(weight_rows, s->out, sl_other_layout(layout),
                                                weight_onto, p->back + all, weight_want);
    const struct sl_relations relations = relations_of(p);
    const struct sl_floats_at to = floats(&back, 0);
    for (int i = 0; i < parts; i++) {
        const int64_t first = s->rows * i / parts, last = s->rows * (i + 1) / parts;
        struct sl_guarded_sparse at =
            sl_guarded_sparse_cut(&whole.view, first, last, block_cols, i % 2);
        struct sl_guarded of = take_features(p, &at.view);
        sl_kernel_relations_back(
            &at.view, &relations,
            &(struct sl_relations_back){.g = floats(&p->g, first),
                                        .x = floats(&p->x, 0),
                                        .back = has_back ? &to : NULL,
                                        .accumulate = onto || i > 0,
                                        .weight_accumulate = weight_onto || i > 0,
                                        .weight_back = floats(&weight_back, 0)});
        sl_guarded_free(&of);
        sl_guarded_sparse_free(&at);
    }
    if (has_back)
        expect(p, "relations_back", &back, want, p->back_bound, onto);
    expect(p, "relations_back, WEIGHT", &weight_back, weight_want, p->back_bound + all,
           weight_onto);
    sl_guarded_free(&back);
    sl_guarded_free(&weight_back);
    sl_guarded_sparse_free(&whole);
    free(want);
}

static void check_back(const struct problem *p)
{
    check_back_parts(p, 1, 0, true, false, false, p->layout);
    check_back_parts(p, 1, p->s.rows / 3 + 1, true, true, false, sl_other_layout(p->layout));
    check_back_parts(p, 3, p->s.rows / 7 + 1, true, false, true, SL_EDGE);
    check_back_parts(p, 1, 0, false, true, true, SL_LOOSE);
}

/* ---- All of them ---- */

static void each_level(const struct shape *s, enum sl_layout layout,
                       void (*check)(const struct problem *p))
{
    const int64_t terms = (s->rows * s->degree + s->cols) * s->in * s->out;
    for (int kind = 0; kind < 2 && sl_takes(terms); kind++) {
        struct problem p = make_problem(s, layout, (enum sl_kind)kind);
        for (int level = 0; sl_next_level(&level);)
            check(&p);
        free_problem(&p);
    }
}

static void each_width(void (*check)(const struct problem *p))
{
    static const int64_t widths[] = {1, 3, 17, 64, 65}, relations[] = {1, 2, 7, 300};
    for (size_t i = 0; i < SL_COUNT(widths); i++)
        for (size_t j = 0; j < SL_COUNT(widths); j++)
            for (size_t k = 0; k < SL_COUNT(relations); k++)
                if ((i + j + k) % 2 == 0)
                    each_level(&(struct shape){23, 37, 5, 11, relations[k], widths[i], widths[j]},
                               (enum sl_layout)((i + k) % SL_LAYOUTS), check);
}

/* No rows, one entry, no entries; most relations; chunks of the fewest rows. */
static void each_size(void (*check)(const struct problem *p))
{
    static const struct shape shapes[] = {
        {0, 9, 3, -1, 2, 3, 4},
        {1, 1, 1, 0, 1, 1, 1},
        {13, 9, 0, -1, 3, 5, 4},
        {150, 170, 5, 75, 4, 9, 2},
        {9, 7, 3, 4, SL_RELATIONS, 1, 2},
        {50, 60, 2, -1, 2, SL_RELATIONS_COLUMNS, 1},
        {50, 60, 2, -1, 2, 1, SL_RELATIONS_COLUMNS},
    };
    each_width(check);
    for (size_t i = 0; i < SL_COUNT(shapes); i++)
        each_level(&shapes[i], (enum sl_layout)(i % SL_LAYOUTS), check);
}

SL_TEST(test_forward)
{
    each_size(check_forward);
    each_level(&(struct shape){3, 40000, 3000, 1, 2, 3, 5}, SL_TIGHT, check_forward); /* hub */
    each_level(&(struct shape){2, 17000, 0, 0, 300, 1, 1}, SL_EDGE, check_forward);
    each_level(&(struct shape){3500, 5, 2, 1500, 1, 3, 2}, SL_LOOSE, check_forward); /* rows */
    each_level(&(struct shape){3500, 20, 8, 1500, 7, 65, 7}, SL_PADDED, check_forward);
}

SL_TEST(test_back)
{
    each_size(check_back);
    each_level(&(struct shape){40000, 2, 2, -1, 2, 5, 3}, SL_TIGHT, check_back);
    each_level(&(struct shape){5, 3500, 1500, 2, 1, 3, 2}, SL_LOOSE, check_back); /* full */
    each_level(&(struct shape){9, 3500, 1500, 5, 7, 7, 65}, SL_PADDED, check_back);
}

/* A row with a NaN reaches its neighbours, and nobody else. */
static void check_nan(const struct problem *p)
{
    struct sl_guarded bad = sl_guarded_copy(&p->x, SL_TIGHT, NAN),
                      out = sl_guarded_empty(p->s.rows, p->s.out, SL_PADDED, SL_CANARY);
    struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, 0, p->s.cols, 7, false);
    struct sl_guarded of = take_features(p, &a.view);
    bool *reached = calloc((size_t)p->s.rows + 1, sizeof *reached);
    assert_non_null(reached);
    for (int64_t c = 3; c < p->s.cols; c += 5)
        *sl_element(&bad, c, 2) = NAN;
    for (int64_t e = 0; e < p->count; e++)
        reached[p->entry[e].row] |= p->entry[e].col % 5 == 3;
    const struct sl_relations relations = relations_of(p);
    const struct sl_floats_at x = floats(&bad, 0), to = floats(&out, 0);
    sl_kernel_relations(&a.view, &relations, &x, false, &to);
    for (int64_t i = 0; i < p->s.rows * p->s.out; i++)
        assert_int_equal(isnan(*sl_element(&out, i / p->s.out, i % p->s.out)),
                         reached[i / p->s.out]);
    free(reached);
    sl_guarded_free(&of);
    sl_guarded_sparse_free(&a);
    sl_guarded_free(&out);
    sl_guarded_free(&bad);
}

SL_TEST(test_nan)
{
    each_level(&(struct shape){19, 31, 2, -1, 5, 6, 8}, SL_PADDED, check_nan);
}

/* A matrix without blocks has no entries: results are cleared, or stay. */
SL_TEST(test_no_blocks)
{
    static const uint32_t row_ptr[1];
    const struct sl_sparse none = {.rows = 3, .row_ptr = row_ptr};
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        const float left = accumulate ? 5.0f : 0.0f;
        float w[2] = {1.0f, 1.0f}, x[3] = {1.0f, 1.0f, 1.0f}, to[3] = {5.0f, 5.0f, 5.0f},
              w_back[2] = {5.0f, 5.0f};
        const struct sl_floats_at out = {to, 1};
        const struct sl_relations relations = {2, 1, 1, {w, 1}, false};
        sl_kernel_relations(&none, &relations, &(struct sl_floats_at){NULL, 1}, accumulate, &out);
        for (int i = 0; i < 3; i++)
            assert_true(to[i] == left);
        to[0] = to[1] = to[2] = 5.0f;
        sl_kernel_relations_back(&none, &relations,
                                 &(struct sl_relations_back){.g = {NULL, 1},
                                                             .x = {x, 1},
                                                             .back = &out,
                                                             .accumulate = accumulate,
                                                             .weight_accumulate = accumulate,
                                                             .weight_back = {w_back, 1}});
        for (int i = 0; i < 3; i++)
            assert_true(to[i] == left);
        assert_true(w_back[0] == left && w_back[1] == left);
    }
}

/* ---- Bases ---- */

static double value_at(const struct sl_guarded *m, int64_t r, int64_t j)
{
    return (double)*sl_element(m, r, j);
}

/* Numbers are integers, so that sums are exact. */
static void check_bases(const struct sl_bases *b, enum sl_layout layout)
{
    const int64_t rows = b->bases * b->in, all = rows + b->relations, of = b->relations * b->in;
    struct sl_guarded parameters = sl_guarded_random(all, b->out, layout, NAN, SL_INTEGERS),
                      gradient =
                          sl_guarded_random(of, b->out, sl_other_layout(layout), NAN, SL_INTEGERS),
                      weight = sl_guarded_empty(of, b->out, layout, NAN),
                      back = sl_guarded_empty(all, b->out, sl_other_layout(layout), NAN);
    double *want = sl_doubles(of * b->out), *want_back = sl_doubles(all * b->out);
    for (int64_t k = 0; k < of * b->out * b->bases; k++) {
        const int64_t v = k % b->bases, j = k / b->bases % b->out, row = k / b->bases / b->out,
                      r = row / b->in, base = v * b->in + row % b->in;
        want[row * b->out + j] +=
            value_at(&parameters, rows + r, v) * value_at(&parameters, base, j);
        want_back[base * b->out + j] +=
            value_at(&parameters, rows + r, v) * value_at(&gradient, row, j);
        want_back[(rows + r) * b->out + v] +=
            value_at(&parameters, base, j) * value_at(&gradient, row, j);
    }
    const struct sl_floats_at p = floats(&parameters, 0), w = floats(&weight, 0),
                              g = floats(&gradient, 0), to = floats(&back, 0);
    sl_kernel_bases(b, &p, &w);
    sl_expect("bases", &weight, want, NULL);
    sl_kernel_bases_back(b, &p, &g, &to);
    sl_expect("bases_back", &back, want_back, NULL);
    free(want);
    free(want_back);
    sl_guarded_free(&parameters);
    sl_guarded_free(&gradient);
    sl_guarded_free(&weight);
    sl_guarded_free(&back);
}

SL_TEST(test_bases)
{
    static const struct sl_bases sizes[] = {{1, 1, 1, 1},  {3, 2, 5, 2},     {7, 3, 17, 8},
                                            {2, 5, 3, 33}, {90, 30, 20, 31}, {4, 4, 65, 64}};
    for (size_t s = 0; s < SL_COUNT(sizes); s++) {
        check_bases(&sizes[s], SL_TIGHT);
        check_bases(&sizes[s], SL_PADDED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),   cmocka_unit_test(test_back),  cmocka_unit_test(test_nan),
        cmocka_unit_test(test_no_blocks), cmocka_unit_test(test_bases),
    };
    sl_random_seed(15);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
