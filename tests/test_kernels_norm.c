/* Normalisation and its gradient. How kernels are judged: tests/kernels.h. Naive results are
 * formulas in double precision; naive gradients are compared with central differences as well.
 * bfloat16 operands give the results of the same numbers in float32, rounded once more. */
#include "codelets/bfloat16.h"
#include "codelets/norm.h"
#include "tests/kernels.h"
#include "tests/unit.h"

static const double EPSILON = 1e-5;

/* Rows as layers have them; far from 0; all alike. */
enum numbers { USUAL, FAR, CONSTANT, NUMBERS };

struct problem {
    struct sl_norm norm;
    bool columns, halves;
    struct sl_guarded h, g, weight, bias, mean, variance, root, after;
    struct sl_narrowed half_h, half_g; /* where `halves` */
    double *x, *x_bound;               // (rows, cols)
    double *inverse;                   // (rows) or (cols)
    double count;                      /* rows, each once */
};

/* ---- Naive results ---- */

static double moment(const struct problem *p, int64_t r, int power, double mean)
{
    double sum = 0.0;
    for (int64_t j = 0; j < p->norm.cols; j++)
        sum += pow((double)*sl_element(&p->h, r, j) - mean, power);
    return sum / (double)p->norm.cols;
}

/* The largest error of a sum of a row, relative to the mean size of its terms. */
static double lost(const struct problem *p)
{
    return ((double)p->norm.cols / 8.0 + 64.0) * SL_UNIT;
}

/* The kernel's first mean is off by some units of the numbers' size. It finds how far off. */
static void find_x_of_row(struct problem *p, int64_t r)
{
    const int64_t cols = p->norm.cols;
    const double mean = moment(p, r, 1, 0.0), variance = moment(p, r, 2, mean);
    double size = 0.0, apart = 0.0;
    for (int64_t j = 0; j < cols; j++) {
        size += fabs((double)*sl_element(&p->h, r, j)) / (double)cols;
        apart += fabs((double)*sl_element(&p->h, r, j) - mean) / (double)cols;
    }
    p->inverse[r] = 1.0 / sqrt(variance + (double)p->norm.epsilon);
    for (int64_t j = 0; j < cols; j++) {
        const double off = (double)*sl_element(&p->h, r, j) - mean;
        p->x[r * cols + j] = off * p->inverse[r];
        p->x_bound[r * cols + j] =
            4.0 * lost(p) * (fabs(off) + apart + lost(p) * size) * p->inverse[r];
    }
}

static void find_x(struct problem *p)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    for (int64_t r = 0; r < rows && !p->columns; r++)
        find_x_of_row(p, r);
    for (int64_t j = 0; j < cols && p->columns; j++) {
        p->inverse[j] = 1.0 / sqrt((double)p->variance.at[j] + (double)p->norm.epsilon);
        for (int64_t r = 0; r < rows; r++) {
            const double off = (double)*sl_element(&p->h, r, j) - (double)p->mean.at[j];
            p->x[r * cols + j] = off * p->inverse[j];
            p->x_bound[r * cols + j] = 8.0 * SL_UNIT * fabs(p->x[r * cols + j]);
        }
    }
}

/* ---- Problems ---- */

static float number(enum numbers what, int64_t r, int64_t j, bool columns)
{
    if (what == CONSTANT)
        return 1000.1f + (float)(columns ? j : r);
    return sl_random_value(SL_REALS) + (what == FAR ? 1000.0f : 0.0f);
}

/* The columns' statistics are those of the roots, up to their rounding. */
static void find_statistics(struct problem *p)
{
    for (int64_t j = 0; j < p->norm.cols; j++) {
        double sum = 0.0, square = 0.0;
        for (int64_t r = 0; r < p->norm.rows; r++)
            sum += (double)(p->root.at[r] * *sl_element(&p->h, r, j));
        p->mean.at[j] = (float)(sum / p->count);
        for (int64_t r = 0; r < p->norm.rows; r++)
            square += (double)p->root.at[r] *
                      pow((double)*sl_element(&p->h, r, j) - (double)p->mean.at[j], 2.0);
        p->variance.at[j] = (float)(square / p->count);
    }
}

static struct problem make(int64_t rows, int64_t cols, enum sl_layout layout, bool columns,
                           bool halves, enum numbers what)
{
    struct problem p = {
        .norm = {.rows = rows, .cols = cols, .epsilon = (float)EPSILON},
        .columns = columns,
        .halves = halves,
        .h = sl_guarded_empty(rows, cols, layout, NAN),
        .g = sl_guarded_random(rows, cols, sl_other_layout(layout), NAN, SL_REALS),
        .weight = sl_guarded_random(1, cols, layout, NAN, SL_REALS),
        .bias = sl_guarded_random(1, cols, SL_EDGE, NAN, SL_REALS),
        .mean = sl_guarded_empty(1, cols, SL_EDGE, NAN),
        .variance = sl_guarded_empty(1, cols, layout, NAN),
        .root = sl_guarded_empty(1, rows, SL_EDGE, NAN),
        .after = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS),
        .x = sl_doubles(rows * cols),
        .x_bound = sl_doubles(rows * cols),
        .inverse = sl_doubles(columns ? cols : rows),
    };
    for (int64_t r = 0; r < rows; r++) {
        p.root.at[r] = r == 0 || sl_random_below(3) ? 1.0f : 0.0f;
        p.count += (double)p.root.at[r];
        for (int64_t j = 0; j < cols; j++)
            *sl_element(&p.h, r, j) = number(what, r, j, columns);
    }
    if (halves) {
        p.half_h = sl_narrowed_of(&p.h, sl_some_spare());
        p.half_g = sl_narrowed_of(&p.g, sl_some_spare());
    }
    p.norm.h = sl_rows_of(&p.h);
    p.norm.weight = p.weight.at;
    p.norm.bias = p.bias.at;
    p.count = p.count > 0.0 ? p.count : 1.0;
    if (columns) {
        find_statistics(&p);
        p.norm.mean = p.mean.at;
        p.norm.variance = p.variance.at;
        p.norm.root = p.root.at;
    }
    find_x(&p);
    return p;
}

static void discard(struct problem *p)
{
    struct sl_guarded *const all[] = {&p->h,    &p->g,        &p->weight, &p->bias,
                                      &p->mean, &p->variance, &p->root,   &p->after};
    for (size_t i = 0; i < SL_COUNT(all); i++)
        sl_guarded_free(all[i]);
    if (p->halves) {
        sl_guarded_free(&p->half_h.words);
        sl_guarded_free(&p->half_g.words);
    }
    free(p->x);
    free(p->x_bound);
    free(p->inverse);
}

/* The same as sl_expect_vectors, and one rounding more. */
static void expect_halves(const char *operation, struct sl_narrowed *got, const double *want,
                          const double *bound)
{
    for (int64_t i = 0; i < got->count * got->cols; i++) {
        const double g = (double)sl_widen(*sl_narrowed_at(got, i / got->cols, i % got->cols));
        if (!(fabs(g - want[i]) <= bound[i] + 0x1p-8 * (fabs(want[i]) + bound[i])))
            fail_msg("%s (%s): element (%lld, %lld) of a %lld x %lld matrix is %.9g, not %.9g",
                     operation, sl_level_name(), (long long)(i / got->cols),
                     (long long)(i % got->cols), (long long)got->count, (long long)got->cols, g,
                     want[i]);
    }
    struct sl_guarded *const words = &got->words;
    for (int64_t i = 0; i < words->cols; i++) /* elements are no padding */
        if ((char *)(words->at + i + 1) > (char *)got->rows.data)
            words->at[i] = 0.0f;
    sl_expect_padding_kept(operation, words);
}

/* ---- Forward ---- */

enum {
    STEPS = SL_STEP_SCALE | SL_STEP_BEFORE | SL_STEP_FACTOR | SL_STEP_RELU | SL_STEP_ELU |
            SL_STEP_DROPOUT | SL_STEP_AFTER
};

static void check_norm_of(struct problem *p, enum sl_layout layout)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols);
    const bool plain = sl_random_below(4) == 0;
    struct sl_guarded_epilogue e =
        sl_guarded_epilogue_random(plain ? 0 : sl_some_steps() & STEPS, rows, cols, layout);
    const struct sl_epilogue *epilogue = plain ? NULL : &e.view;
    for (int64_t i = 0; i < rows * cols; i++) {
        const double w = (double)p->weight.at[i % cols], b = (double)p->bias.at[i % cols];
        want[i] = w * p->x[i] + b;
        bound[i] = fabs(w) * p->x_bound[i] + 2.0 * SL_UNIT * (fabs(w * p->x[i]) + fabs(b));
    }
    if (epilogue)
        sl_naive_epilogue(epilogue, rows, cols, want, bound);
    struct sl_guarded z = sl_guarded_empty(rows, cols, sl_other_layout(layout), SL_CANARY);
    const struct sl_rows to = sl_rows_of(&z);
    sl_kernel_norm(&p->norm, epilogue, &to);
    sl_expect_vectors("norm", &z, want, bound);

    struct sl_guarded same = sl_guarded_copy(&p->h, layout, SL_CANARY);
    struct sl_norm in_place = p->norm;
    in_place.h = sl_rows_of(&same);
    sl_kernel_norm(&in_place, epilogue, &in_place.h);
    sl_expect_same_bits("norm in place", &z, &same);
    sl_guarded_free(&same);
    if (p->halves) {
        struct sl_narrowed half = sl_narrowed_empty(rows, cols, sl_some_spare());
        struct sl_guarded again = sl_guarded_empty(rows, cols, layout, SL_CANARY);
        struct sl_norm narrow = p->norm;
        const struct sl_rows wide = sl_rows_of(&again);
        sl_kernel_norm(&narrow, epilogue, &half.rows);
        expect_halves("norm to bfloat16", &half, want, bound);
        narrow.h = p->half_h.rows;
        sl_kernel_norm(&narrow, epilogue, &wide);
        sl_expect_vectors("norm of bfloat16", &again, want, bound);
        sl_kernel_norm(&narrow, epilogue, &p->half_h.rows);
        expect_halves("norm of bfloat16 in place", &p->half_h, want, bound);
        sl_guarded_free(&again);
        sl_guarded_free(&half.words);
    }
    free(want);
    free(bound);
    sl_guarded_free(&z);
    sl_guarded_epilogue_free(&e);
}

/* ---- Statistics ---- */

static void check_sums(const struct problem *p, bool roots)
{
    enum { MORE = 3 };
    const int64_t rows = p->norm.rows, cols = p->norm.cols, ld = cols + MORE;
    double *sums = sl_doubles(2 * ld), *half = sl_doubles(2 * ld);
    for (int64_t i = 0; i < 2 * ld; i++)
        sums[i] = half[i] = (double)SL_CANARY;
    sl_kernel_norm_sums(rows, cols, roots ? p->root.at : NULL, &p->norm.h, sums, ld);
    for (int64_t j = 0; j < cols; j++) {
        double sum = 0.0, square = 0.0, size = 0.0;
        for (int64_t r = 0; r < rows; r++) {
            const double h = (double)*sl_element(&p->h, r, j),
                         root = roots ? (double)p->root.at[r] : 1.0;
            sum += root * h;
            square += root * h * h;
            size += root * fabs(h);
        }
        assert_true(fabs(sums[j] - sum) <= 1e-13 * size);
        assert_true(fabs(sums[ld + j] - square) <= 1e-13 * square);
    }
    for (int64_t i = 0; i < MORE; i++)
        assert_true(sums[cols + i] == (double)SL_CANARY &&
                    sums[ld + cols + i] == (double)SL_CANARY);
    if (p->halves) {
        sl_kernel_norm_sums(rows, cols, roots ? p->root.at : NULL, &p->half_h.rows, half, ld);
        assert_memory_equal(half, sums, (size_t)(2 * ld) * sizeof *sums);
    }
    free(sums);
    free(half);
}

/* The mean and the variance of all rows, also where the mean is 1000 times the deviation. */
static void check_statistics(const struct problem *p)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    double *sums = sl_doubles(2 * cols), *want = sl_doubles(2 * cols),
           *bound = sl_doubles(2 * cols);
    struct sl_guarded statistics = sl_guarded_empty(2, cols, SL_LOOSE, SL_CANARY);
    for (int64_t j = 0; j < cols; j++) {
        double mean = 0.0, variance = 0.0;
        for (int64_t r = 0; r < rows; r++) {
            const double h = (double)*sl_element(&p->h, r, j);
            sums[j] += h;
            sums[cols + j] += h * h;
            mean += h / (double)rows;
        }
        for (int64_t r = 0; r < rows; r++)
            variance += pow((double)*sl_element(&p->h, r, j) - mean, 2.0) / (double)rows;
        want[j] = mean;
        want[cols + j] = variance;
        bound[j] = 2.0 * SL_UNIT * fabs(mean) + 1e-15 * sqrt(sums[cols + j]);
        bound[cols + j] = 2.0 * SL_UNIT * variance + 1e-15 * sums[cols + j];
    }
    sl_kernel_norm_statistics(cols, (double)rows, sums, cols, statistics.at, statistics.ld);
    sl_expect("norm statistics", &statistics, want, bound);
    for (int64_t j = 0; j < cols; j++)
        assert_true(*sl_element(&statistics, 1, j) >= 0.0f);
    free(sums);
    free(want);
    free(bound);
    sl_guarded_free(&statistics);
}

/* ---- Gradients ---- */

static void check_gradient(struct problem *p)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    double *want = sl_doubles(2 * cols), *bound = sl_doubles(2 * cols);
    struct sl_guarded d = sl_guarded_empty(2, cols, SL_LOOSE, SL_CANARY);
    const struct sl_rows g = sl_rows_of(&p->g);
    for (int64_t i = 0; i < rows * cols; i++) {
        const double own = (double)*sl_element(&p->g, i / cols, i % cols),
                     roundings = (double)rows + 4.0;
        want[i % cols] += own * p->x[i];
        want[cols + i % cols] += own;
        bound[i % cols] += fabs(own) * (p->x_bound[i] + roundings * SL_UNIT * fabs(p->x[i]));
        bound[cols + i % cols] += roundings * SL_UNIT * fabs(own);
    }
    sl_kernel_norm_gradient(&p->norm, &g, d.at, d.ld);
    sl_expect("norm gradient", &d, want, bound);
    if (p->halves) {
        struct sl_guarded half = sl_guarded_empty(2, cols, SL_TIGHT, SL_CANARY);
        struct sl_norm narrow = p->norm;
        narrow.h = p->half_h.rows;
        sl_kernel_norm_gradient(&narrow, &p->half_g.rows, half.at, half.ld);
        sl_expect("norm gradient of bfloat16", &half, want, bound);
        sl_guarded_free(&half);
    }
    free(want);
    free(bound);
    sl_guarded_free(&d);
}

/* The gradient of H, with D of double. */
static void naive_back(const struct problem *p, const double *d, bool after, double *want,
                       double *bound)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    for (int64_t r = 0; r < rows; r++) {
        const double by = after ? (double)p->after.at[r] : 1.0, n = (double)cols;
        double first = 0.0, second = 0.0, first_size = 0.0, second_size = 0.0;
        for (int64_t j = 0; j < cols; j++) {
            const double wg = (double)p->weight.at[j] * (double)*sl_element(&p->g, r, j);
            first += wg / n;
            second += wg * p->x[r * cols + j] / n;
            first_size += lost(p) * fabs(wg) / n;
            second_size +=
                fabs(wg) * (lost(p) * fabs(p->x[r * cols + j]) + p->x_bound[r * cols + j]) / n;
        }
        for (int64_t j = 0; j < cols; j++) {
            const int64_t i = r * cols + j;
            const double w = (double)p->weight.at[j], g = (double)*sl_element(&p->g, r, j),
                         inverse = p->inverse[p->columns ? j : r], x = p->x[i],
                         share = (double)p->root.at[r] / p->count;
            if (p->columns) {
                want[i] = by * w * inverse * (g - share * (d[cols + j] + x * d[j]));
                bound[i] = 12.0 * SL_UNIT * fabs(by * w * inverse) *
                           (fabs(g) + share * (fabs(d[cols + j]) + fabs(x * d[j])));
            } else {
                want[i] = by * inverse * (w * g - first - x * second);
                bound[i] = fabs(by) * inverse *
                               (first_size + fabs(x) * second_size + fabs(second) * p->x_bound[i] +
                                4.0 * SL_UNIT * (fabs(w * g) + fabs(first) + fabs(x * second))) +
                           lost(p) * fabs(want[i]);
            }
        }
    }
}

/* Y apart, in the place of H, in that of G; of bfloat16. */
static void check_back(struct problem *p, enum sl_layout layout, bool after)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols),
           *d = sl_doubles(2 * cols);
    struct sl_guarded y = sl_guarded_empty(rows, cols, layout, SL_CANARY),
                      sums = sl_guarded_random(2, cols, SL_LOOSE, NAN, SL_REALS),
                      as_h = sl_guarded_copy(&p->h, layout, SL_CANARY),
                      as_g = sl_guarded_copy(&p->g, layout, SL_CANARY);
    for (int64_t k = 0; k < 2 * cols; k++)
        d[k] = (double)*sl_element(&sums, k / cols, k % cols);
    naive_back(p, d, after, want, bound);
    struct sl_norm norm = p->norm;
    struct sl_norm_back back = {.norm = &norm,
                                .g = sl_rows_of(&p->g),
                                .d = p->columns ? sums.at : NULL,
                                .ld = sums.ld,
                                .count = p->count,
                                .after = after ? p->after.at : NULL,
                                .y = sl_rows_of(&y)};
    sl_kernel_norm_back(&back);
    sl_expect_vectors("norm back", &y, want, bound);
    back.g = back.y = sl_rows_of(&as_g);
    sl_kernel_norm_back(&back);
    sl_expect_same_bits("norm back to G", &y, &as_g);
    back.g = sl_rows_of(&p->g);
    back.y = norm.h = sl_rows_of(&as_h);
    sl_kernel_norm_back(&back);
    sl_expect_same_bits("norm back to H", &y, &as_h);
    if (p->halves) {
        norm.h = back.y = p->half_h.rows;
        back.g = p->half_g.rows;
        sl_kernel_norm_back(&back);
        expect_halves("norm back of bfloat16", &p->half_h, want, bound);
    }
    free(want);
    free(bound);
    free(d);
    sl_guarded_free(&y);
    sl_guarded_free(&sums);
    sl_guarded_free(&as_h);
    sl_guarded_free(&as_g);
}

/* The gradients of weight and bias that come along with Y, in each place of Y, and Y: the bits of
 * kernels of their own. */
static void check_along(struct problem *p, enum sl_layout layout)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    struct sl_guarded want = sl_guarded_empty(2, cols, SL_LOOSE, SL_CANARY),
                      apart = sl_guarded_empty(rows, cols, layout, SL_CANARY);
    struct sl_norm norm = p->norm;
    struct sl_norm_back back = {.norm = &norm, .g = sl_rows_of(&p->g), .y = sl_rows_of(&apart)};
    sl_kernel_norm_gradient(&norm, &back.g, want.at, want.ld);
    sl_kernel_norm_back(&back);
    for (int place = 0; place < 3; place++) {
        struct sl_guarded d = sl_guarded_empty(2, cols, SL_LOOSE, SL_CANARY),
                          y = sl_guarded_empty(rows, cols, layout, SL_CANARY),
                          h = sl_guarded_copy(&p->h, layout, SL_CANARY),
                          g = sl_guarded_copy(&p->g, layout, SL_CANARY);
        struct sl_guarded *const to = place == 0 ? &y : place == 1 ? &h : &g;
        norm.h = sl_rows_of(&h);
        back.g = sl_rows_of(&g);
        back.y = sl_rows_of(to);
        back.gradient = d.at;
        back.ldg = d.ld;
        sl_kernel_norm_back(&back);
        sl_expect_same_bits("norm gradient along", &want, &d);
        sl_expect_same_bits("norm back with the gradient", &apart, to);
        sl_guarded_free(&d);
        sl_guarded_free(&y);
        sl_guarded_free(&h);
        sl_guarded_free(&g);
    }
    sl_guarded_free(&want);
    sl_guarded_free(&apart);
}

/* ---- Shapes ---- */

/* Epilogues and gradients in place of bfloat16 change H. */
static void check_shape(int64_t rows, int64_t cols, enum sl_layout layout)
{
    for (int how = 0; how < 4 * NUMBERS; how++) {
        const bool columns = how % 2, halves = how / 2 % 2;
        if (rows * cols > 10000 && sl_random_below(4))
            continue;
        struct problem p = make(rows, cols, layout, columns, halves, (enum numbers)(how / 4)), q;
        check_sums(&p, columns);
        if (rows)
            check_statistics(&p);
        check_gradient(&p);
        if (!columns)
            check_along(&p, layout);
        q = make(rows, cols, layout, columns, halves, (enum numbers)(how / 4));
        check_back(&q, layout, how % 3);
        check_norm_of(&p, layout);
        discard(&p);
        discard(&q);
    }
}

SL_TEST(test_shapes)
{
    static const int64_t rows[] = {0, 1, 5, 129}, cols[] = {1, 3, 15, 16, 17, 32, 100, 256, 1000};
    for (int level = 0; sl_next_level(&level);) {
        sl_random_seed(1);
        for (size_t i = 0; i < SL_COUNT(rows) * SL_COUNT(cols) * SL_LAYOUTS; i++)
            check_shape(rows[i / SL_LAYOUTS / SL_COUNT(cols)],
                        cols[i / SL_LAYOUTS % SL_COUNT(cols)], (enum sl_layout)(i % SL_LAYOUTS));
        check_shape(600, 3, SL_LOOSE);  /* more rows than a buffer has */
        check_shape(3, 4096, SL_TIGHT); /* and more columns */
        check_shape(3, 9001, SL_LOOSE);
        check_shape(2, 8192 + 16, SL_PADDED);
    }
}

/* Columns whose statistics do not depend on H. */
SL_TEST(test_fixed_statistics)
{
    struct problem p = make(9, 17, SL_LOOSE, true, false, USUAL);
    double *zeros = sl_doubles(2 * 17), *want = sl_doubles(9 * 17), *bound = sl_doubles(9 * 17);
    struct sl_guarded y = sl_guarded_empty(9, 17, SL_TIGHT, SL_CANARY);
    naive_back(&p, zeros, true, want, bound);
    sl_kernel_norm_back(&(struct sl_norm_back){.norm = &p.norm,
                                               .g = sl_rows_of(&p.g),
                                               .count = p.count,
                                               .after = p.after.at,
                                               .y = sl_rows_of(&y)});
    sl_expect("norm back, fixed statistics", &y, want, bound);
    free(zeros);
    free(want);
    free(bound);
    sl_guarded_free(&y);
    discard(&p);
}

/* Constant columns, whose sums round to a variance below 0; one row. */
SL_TEST(test_small_variances)
{
    const double sums[] = {0.3, 30.0, 0.03 - 1e-10, 900.0 * (1.0 - 0x1p-50)};
    float statistics[6] = {0}, averages[6] = {0};
    sl_kernel_norm_statistics(2, 3.0, sums, 2, statistics, 3);
    assert_true(statistics[0] == 0.1f && statistics[1] == 10.0f && statistics[2] == 0.0f);
    assert_true(statistics[3] == 0.0f && statistics[5] == 0.0f);
    sl_kernel_norm_statistics(2, 3.0, (const double[]){3.0, 6.0, 15.0, 18.0}, 2, statistics, 3);
    sl_kernel_norm_averages(2, 3.0, statistics, 3, averages, 3);
    assert_true(averages[0] == 1.0f && averages[1] == 2.0f && averages[2] == 0.0f);
    assert_true(averages[3] == 6.0f && averages[4] == 3.0f && averages[5] == 0.0f);
    sl_kernel_norm_averages(2, 1.0, statistics, 3, averages, 3);
    assert_true(averages[3] == 4.0f && averages[4] == 2.0f);
}

/* ---- Central differences ---- */

/* Σ G·(w·X + b) with the statistics of H: all in double. */
static double loss(struct problem *p, double *h)
{
    const int64_t rows = p->norm.rows, cols = p->norm.cols;
    const int64_t groups = p->columns ? cols : rows, length = p->columns ? rows : cols;
    double sum = 0.0;
    for (int64_t k = 0; k < groups; k++) {
        double mean = 0.0, variance = 0.0, count = 0.0;
        for (int pass = 0; pass < 3; pass++)
            for (int64_t i = 0; i < length; i++) {
                const int64_t r = p->columns ? i : k, j = p->columns ? k : i;
                const double root = p->columns ? (double)p->root.at[r] : 1.0,
                             off = h[r * cols + j] - (pass ? mean / count : 0.0);
                if (pass == 0)
                    mean += root * off, count += root;
                else if (pass == 1)
                    variance += root * off * off;
                else
                    sum += (double)*sl_element(&p->g, r, j) * (double)p->weight.at[j] * off /
                           sqrt(variance / count + (double)p->norm.epsilon);
            }
    }
    return sum;
}

static void check_differences(int64_t rows, int64_t cols, bool columns)
{
    static const double STEP = 1e-5;
    struct problem p = make(rows, cols, SL_LOOSE, columns, false, USUAL);
    const int64_t count = rows * cols;
    double *h = sl_doubles(count), *want = sl_doubles(count), *bound = sl_doubles(count);
    struct sl_guarded y = sl_guarded_empty(rows, cols, SL_TIGHT, SL_CANARY),
                      d = sl_guarded_empty(2, cols, SL_LOOSE, SL_CANARY);
    const struct sl_rows g = sl_rows_of(&p.g);
    for (int64_t i = 0; i < count; i++)
        h[i] = (double)*sl_element(&p.h, i / cols, i % cols);
    for (int64_t i = 0; i < count; i++) {
        const double before = h[i];
        h[i] = before + STEP;
        want[i] = loss(&p, h);
        h[i] = before - STEP;
        want[i] = (want[i] - loss(&p, h)) / (2.0 * STEP);
        h[i] = before;
        bound[i] = 2e-5 * (1.0 + p.inverse[columns ? i % cols : i / cols]);
    }
    sl_kernel_norm_gradient(&p.norm, &g, d.at, d.ld);
    sl_kernel_norm_back(&(struct sl_norm_back){
        .norm = &p.norm, .g = g, .d = d.at, .ld = d.ld, .count = p.count, .y = sl_rows_of(&y)});
    sl_expect("norm back, central differences", &y, want, bound);
    free(h);
    free(want);
    free(bound);
    sl_guarded_free(&y);
    sl_guarded_free(&d);
    discard(&p);
}

SL_TEST(test_differences)
{
    sl_random_seed(2);
    for (int columns = 0; columns < 2; columns++)
        for (int64_t size = 4; size < 20; size += 3) {
            check_differences(size, 23 - size, columns);
            check_differences(1 + 8 * columns, size, columns);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_fixed_statistics),
        cmocka_unit_test(test_small_variances),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
