/* Normalised rows that are cut into parts. How kernels are judged: tests/kernels.h. The naive
 * results are formulas in double of whole rows. bfloat16 operands are judged by the numbers that
 * they have. */
#include "codelets/accumulate.h"
#include "codelets/norm_parts.h"
#include "tests/kernels.h"
#include "tests/unit.h"

static const double EPSILON = 1e-5;

/* Rows as layers have them; far from 0; each part far from the others; all alike. */
enum numbers { USUAL, FAR, APART, CONSTANT, NUMBERS };

enum { PARTS = 3 };

struct part {
    int64_t cols;
    struct sl_guarded h, g, weight, bias;
    struct sl_narrowed half_h, half_g; /* where `halves` */
    struct sl_norm norm;
    struct sl_rows from; /* G */
};

struct problem {
    int64_t rows, whole;
    bool halves;
    struct part part[PARTS];
    struct sl_guarded moments, products; /* of whole rows */
};

/* Moments and sums of a row, in double. */
struct exact {
    double mean, variance, inverse, first, second;
    double lost;        /* what a mean may lose, of its terms' sizes */
    double size, apart; /* means of |h| and of |h - mean| */
    double first_size, second_size;
};

static double h_of(const struct part *p, int64_t r, int64_t j)
{
    return (double)*sl_element(&p->h, r, j);
}

static double wg_of(const struct part *p, int64_t r, int64_t j)
{
    return (double)p->weight.at[j] * (double)*sl_element(&p->g, r, j);
}

/* The largest error of X of an element. */
static double x_bound(const struct exact *e, double off)
{
    return 4.0 * e->lost * (fabs(off) + e->apart + e->lost * e->size) * e->inverse;
}

static struct exact exact_of(const struct problem *p, int64_t r)
{
    struct exact e = {.lost = ((double)p->whole / 8.0 + 64.0) * SL_UNIT};
    const double n = (double)p->whole;
    for (int pass = 0; pass < 3; pass++) {
        e.inverse = 1.0 / sqrt(e.variance + EPSILON);
        for (int c = 0; c < PARTS; c++)
            for (int64_t j = 0; j < p->part[c].cols; j++) {
                const double h = h_of(&p->part[c], r, j), off = h - e.mean,
                             wg = wg_of(&p->part[c], r, j);
                if (pass == 0) {
                    e.size += fabs(h) / n;
                } else if (pass == 1) {
                    e.variance += off * off / n;
                    e.apart += fabs(off) / n;
                } else {
                    e.first += wg;
                    e.second += wg * off * e.inverse;
                    e.first_size += fabs(wg);
                    e.second_size += fabs(wg) * (fabs(off) * e.inverse + x_bound(&e, off));
                }
            }
        for (int c = 0; pass == 0 && c < PARTS; c++)
            for (int64_t j = 0; j < p->part[c].cols; j++)
                e.mean += h_of(&p->part[c], r, j) / n;
    }
    return e;
}

/* ---- Problems ---- */

static float number(enum numbers what, int64_t r, int c)
{
    if (what == CONSTANT)
        return 1000.1f + (float)r;
    return sl_random_value(SL_REALS) + (what == FAR     ? 1000.0f
                                        : what == APART ? 100.0f * (float)c
                                                        : 0.0f);
}

static void make_part(struct problem *p, int c, int64_t cols, enum sl_layout layout,
                      enum numbers what)
{
    struct part *to = &p->part[c];
    *to = (struct part){
        .cols = cols,
        .h = sl_guarded_empty(p->rows, cols, layout, NAN),
        .g = sl_guarded_random(p->rows, cols, sl_other_layout(layout), NAN, SL_REALS),
        .weight = sl_guarded_random(1, cols, SL_EDGE, NAN, SL_REALS),
        .bias = sl_guarded_random(1, cols, SL_EDGE, NAN, SL_REALS),
    };
    for (int64_t i = 0; i < p->rows * cols; i++)
        *sl_element(&to->h, i / cols, i % cols) = number(what, i / cols, c);
    if (p->halves) {
        to->half_h = sl_narrowed_of(&to->h, sl_some_spare());
        to->half_g = sl_narrowed_of(&to->g, sl_some_spare());
    }
    to->from = p->halves ? to->half_g.rows : sl_rows_of(&to->g);
    to->norm = (struct sl_norm){.rows = p->rows,
                                .cols = cols,
                                .epsilon = (float)EPSILON,
                                .h = p->halves ? to->half_h.rows : sl_rows_of(&to->h),
                                .whole = p->whole,
                                .weight = to->weight.at,
                                .bias = to->bias.at};
}

static struct problem make(int64_t rows, const int64_t *cols, enum sl_layout layout, bool halves,
                           enum numbers what)
{
    struct problem p = {.rows = rows, .whole = cols[0] + cols[1] + cols[2], .halves = halves};
    for (int c = 0; c < PARTS; c++)
        make_part(&p, c, cols[c], layout, what);
    p.moments = sl_guarded_empty(SL_NORM_MOMENTS, rows, layout, SL_CANARY);
    p.products = sl_guarded_empty(SL_NORM_PRODUCTS, rows, layout, SL_CANARY);
    for (int c = 0; c < PARTS; c++) {
        p.part[c].norm.moments = p.moments.at;
        p.part[c].norm.ldm = p.moments.ld;
    }
    return p;
}

static void discard(struct problem *p)
{
    for (int c = 0; c < PARTS; c++) {
        struct part *part = &p->part[c];
        struct sl_guarded *const all[] = {&part->h, &part->g, &part->weight, &part->bias};
        for (size_t i = 0; i < SL_COUNT(all); i++)
            sl_guarded_free(all[i]);
        if (p->halves) {
            sl_guarded_free(&part->half_h.words);
            sl_guarded_free(&part->half_g.words);
        }
    }
    sl_guarded_free(&p->moments);
    sl_guarded_free(&p->products);
}

/* ---- Checks ---- */

static void check_moments(struct problem *p, enum sl_layout layout)
{
    int64_t columns = 0;
    for (int c = 0; c < PARTS; c++) {
        const struct part *part = &p->part[c];
        struct sl_guarded own =
            c ? sl_guarded_empty(SL_NORM_MOMENTS, p->rows, sl_other_layout(layout), SL_CANARY)
              : p->moments;
        sl_kernel_norm_moments(p->rows, part->cols, &part->norm.h, own.at, own.ld);
        sl_expect_padding_kept("norm moments", &own);
        if (c) {
            sl_kernel_norm_merge(p->rows, (double)columns, (double)part->cols, own.at, own.ld,
                                 p->moments.at, p->moments.ld);
            sl_guarded_free(&own);
        }
        columns += part->cols;
    }
    sl_expect_padding_kept("norm merge", &p->moments);
    for (int64_t r = 0; r < p->rows; r++) {
        const struct exact e = exact_of(p, r);
        const double mean = (double)*sl_element(&p->moments, 0, r) +
                            (double)*sl_element(&p->moments, 1, r),
                     variance = (double)*sl_element(&p->moments, 2, r);
        assert_true(fabs(mean - e.mean) <= 4.0 * e.lost * (e.apart + e.lost * e.size));
        assert_true(fabs(variance - e.variance) <=
                    8.0 * e.lost * (e.variance + e.lost * e.lost * e.size * e.size));
    }
}

static void check_forward(struct problem *p, enum sl_layout layout)
{
    for (int c = 0; c < PARTS; c++) {
        const struct part *part = &p->part[c];
        double *want = sl_doubles(p->rows * part->cols), *bound = sl_doubles(p->rows * part->cols);
        struct sl_guarded z =
            sl_guarded_empty(p->rows, part->cols, sl_other_layout(layout), SL_CANARY);
        const struct sl_rows to = sl_rows_of(&z);
        for (int64_t r = 0; r < p->rows; r++) {
            const struct exact e = exact_of(p, r);
            for (int64_t j = 0; j < part->cols; j++) {
                const double off = h_of(part, r, j) - e.mean, w = (double)part->weight.at[j],
                             b = (double)part->bias.at[j];
                want[r * part->cols + j] = w * off * e.inverse + b;
                bound[r * part->cols + j] = fabs(w) * x_bound(&e, off) +
                                            2.0 * SL_UNIT * (fabs(w * off * e.inverse) + fabs(b));
            }
        }
        sl_kernel_norm(&part->norm, NULL, &to);
        sl_expect_vectors("norm of a part", &z, want, bound);
        free(want);
        free(bound);
        sl_guarded_free(&z);
    }
}

static void check_products(struct problem *p, enum sl_layout layout)
{
    double *want = sl_doubles(SL_NORM_PRODUCTS * p->rows),
           *bound = sl_doubles(SL_NORM_PRODUCTS * p->rows);
    for (int c = 0; c < PARTS; c++) {
        const struct part *part = &p->part[c];
        struct sl_guarded own =
            c ? sl_guarded_empty(SL_NORM_PRODUCTS, p->rows, sl_other_layout(layout), SL_CANARY)
              : p->products;
        sl_kernel_norm_products(&part->norm, &part->from, own.at, own.ld);
        sl_expect_padding_kept("norm products", &own);
        if (c) {
            sl_kernel_accumulate(SL_NORM_PRODUCTS, p->rows, own.at, own.ld, p->products.at,
                                 p->products.ld);
            sl_guarded_free(&own);
        }
    }
    for (int64_t r = 0; r < p->rows; r++) {
        const struct exact e = exact_of(p, r);
        want[r] = e.first;
        want[p->rows + r] = e.second;
        bound[r] = e.lost * e.first_size;
        bound[p->rows + r] = 8.0 * e.lost * e.second_size;
        for (int c = 0; c < PARTS; c++)
            for (int64_t j = 0; j < p->part[c].cols; j++)
                bound[p->rows + r] +=
                    fabs(wg_of(&p->part[c], r, j)) * x_bound(&e, h_of(&p->part[c], r, j) - e.mean);
    }
    sl_expect("norm products", &p->products, want, bound);
    free(want);
    free(bound);
}

static void check_back(struct problem *p, enum sl_layout layout)
{
    for (int c = 0; c < PARTS; c++) {
        const struct part *part = &p->part[c];
        const int64_t cols = part->cols;
        const double n = (double)p->whole;
        double *want = sl_doubles(p->rows * cols), *bound = sl_doubles(p->rows * cols);
        struct sl_guarded y = sl_guarded_empty(p->rows, cols, layout, SL_CANARY),
                          after = sl_guarded_random(1, p->rows, SL_EDGE, NAN, SL_REALS);
        for (int64_t r = 0; r < p->rows; r++) {
            const struct exact e = exact_of(p, r);
            const double by = (double)after.at[r];
            for (int64_t j = 0; j < cols; j++) {
                const double off = h_of(part, r, j) - e.mean, x = off * e.inverse,
                             wg = wg_of(part, r, j), lost = x_bound(&e, off);
                want[r * cols + j] = by * e.inverse * (wg - e.first / n - x * e.second / n);
                bound[r * cols + j] =
                    fabs(by) * e.inverse * 8.0 * e.lost *
                        (fabs(wg) + e.first_size / n + fabs(x) * e.second_size / n) +
                    fabs(by) * e.inverse * lost * (e.second_size + e.first_size) / n +
                    4.0 * e.lost * fabs(want[r * cols + j]);
            }
        }
        sl_kernel_norm_back(&(struct sl_norm_back){.norm = &part->norm,
                                                   .g = part->from,
                                                   .d = p->products.at,
                                                   .ld = p->products.ld,
                                                   .count = 1.0,
                                                   .after = after.at,
                                                   .y = sl_rows_of(&y)});
        sl_expect_vectors("norm back of a part", &y, want, bound);
        free(want);
        free(bound);
        sl_guarded_free(&y);
        sl_guarded_free(&after);
    }
}

/* ---- Shapes ---- */

SL_TEST(test_shapes)
{
    static const int64_t rows[] = {0, 1, 5, 131},
                         cols[][PARTS] = {{1, 1, 1},   {4, 4, 5},    {16, 16, 7},
                                          {32, 1, 17}, {100, 5, 96}, {3, 5000, 40}};
    for (int level = 0; sl_next_level(&level);) {
        sl_random_seed(7);
        for (size_t i = 0; i < SL_COUNT(rows) * SL_COUNT(cols) * SL_LAYOUTS; i++)
            for (int how = 0; how < 2 * NUMBERS; how++) {
                const enum sl_layout layout = (enum sl_layout)(i % SL_LAYOUTS);
                const int64_t *cut = cols[i / SL_LAYOUTS % SL_COUNT(cols)];
                if (cut[1] > 1000 && sl_random_below(4))
                    continue;
                struct problem p = make(rows[i / SL_LAYOUTS / SL_COUNT(cols)], cut, layout, how % 2,
                                        (enum numbers)(how / 2));
                check_moments(&p, layout);
                check_forward(&p, layout);
                check_products(&p, layout);
                check_back(&p, layout);
                discard(&p);
            }
    }
}

/* Rows that are all alike are 0 without the bias, and variances are not below 0. */
SL_TEST(test_constant_rows)
{
    float h[3] = {0.1f, 0.1f, 0.1f}, x[3], y[3], z[3] = {NAN, NAN, NAN};
    const float weight[3] = {1.0f, 1.0f, 1.0f}, bias[3] = {0.0f};
    const struct sl_rows row = sl_float_rows(h, 3), to = sl_float_rows(z, 3);
    sl_kernel_norm_moments(1, 3, &row, y, 1);
    sl_kernel_norm_moments(1, 2, &row, x, 1);
    sl_kernel_norm_merge(1, 3.0, 2.0, x, 1, y, 1);
    sl_kernel_norm(&(struct sl_norm){.rows = 1,
                                     .cols = 3,
                                     .epsilon = 1e-5f,
                                     .h = row,
                                     .moments = y,
                                     .ldm = 1,
                                     .whole = 5,
                                     .weight = weight,
                                     .bias = bias},
                   NULL, &to);
    for (int j = 0; j < 3; j++)
        assert_true(fabsf(z[j]) <= 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_constant_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
