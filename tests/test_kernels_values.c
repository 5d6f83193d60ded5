/* Losses on values and weighted softmax cross-entropy: sums and gradients against formulas in
 * double, and gradients against central differences of these. How they are judged:
 * tests/kernels.h. */
#include "codelets/value_loss.h"
#include "codelets/weighted_softmax.h"
#include "core/split.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* ---- Values ---- */

static float value_of(const struct sl_value_loss *v, int64_t r, int64_t j)
{
    float value;
    memcpy(&value, v->target + r * (SL_TARGET_FIRST + v->cols) + SL_TARGET_FIRST + j, sizeof value);
    return value;
}

static double weight_of(const struct sl_value_loss *v, int64_t j, double y)
{
    return v->weights ? (double)v->weights[(y > 0.5 ? v->cols : 0) + j] : 1.0;
}

/* The loss of one entry, as a textbook has it; large logits have their limits. */
static double entry_loss(const struct sl_value_loss *v, int64_t j, double z, double y)
{
    if (v->kind == SL_VALUE_SQUARE)
        return (z - y) * (z - y);
    const double wanted = y * (1.0 - (double)v->smoothing) + 0.5 * (double)v->smoothing;
    const double minus_log_p = z < -700.0 ? -z : log1p(exp(-z)),
                 minus_log_q = z > 700.0 ? z : log1p(exp(z));
    return weight_of(v, j, y) * (wanted * minus_log_p + (1.0 - wanted) * minus_log_q);
}

static double entry_gradient(const struct sl_value_loss *v, int64_t j, double z, double y)
{
    if (v->kind == SL_VALUE_SQUARE)
        return 2.0 * (z - y);
    const double wanted = y * (1.0 - (double)v->smoothing) + 0.5 * (double)v->smoothing;
    return weight_of(v, j, y) * (1.0 / (1.0 + exp(-z)) - wanted);
}

/* A term of a sum, and a gradient, are off by a few roundings of their parts. */
static void check_values_with(const struct sl_value_loss *given, const struct sl_guarded *z)
{
    struct sl_value_loss v = *given, plain = *given;
    struct sl_guarded g = sl_guarded_empty(v.rows, v.cols, SL_LOOSE, SL_CANARY);
    double *want = sl_doubles(v.rows * v.cols), *bound = sl_doubles(v.rows * v.cols);
    double sum[SL_SPLITS] = {0}, right[SL_SPLITS] = {0}, size[SL_SPLITS] = {0}, trained = 0.0,
           trained_size = 0.0;
    plain.weights = NULL;
    plain.smoothing = 0.0f;
    for (int64_t r = 0; r < v.rows; r++) {
        const int32_t *target = v.target + r * (SL_TARGET_FIRST + v.cols);
        const int split = target[SL_TARGET_SPLIT];
        const double times = (double)v.scale * (v.factor ? (double)v.factor[r] : 1.0);
        bool all = true;
        for (int64_t j = 0; j < v.cols && target[SL_TARGET_LABEL] >= 0; j++) {
            const double x = (double)*sl_element(z, r, j), y = (double)value_of(&v, r, j);
            const double weight = isnan(y) ? 0.0 : weight_of(&v, j, y);
            if (isnan(y))
                continue;
            all = all && (x > 0.0) == (y > 0.5);
            sum[split] += entry_loss(&plain, j, x, y) / (double)v.cols;
            size[split] += (1.0 + x * x) / (double)v.cols;
            if (split != SL_SPLIT_TRAIN)
                continue;
            trained += entry_loss(&v, j, x, y) / (double)v.cols;
            trained_size += (1.0 + weight) * (1.0 + x * x) / (double)v.cols;
            want[r * v.cols + j] = entry_gradient(&v, j, x, y) * times / (double)v.cols;
            bound[r * v.cols + j] =
                8.0 * SL_UNIT * (1.0 + weight) * (1.0 + fabs(x)) * fabs(times) / (double)v.cols;
            const double h = 1e-4,
                         difference = (entry_loss(&v, j, x + h, y) - entry_loss(&v, j, x - h, y)) /
                                      (2.0 * h);
            assert_true(fabs(difference - entry_gradient(&v, j, x, y)) <=
                        1e-6 * (1.0 + weight) * (1.0 + fabs(x)));
        }
        right[split] += target[SL_TARGET_LABEL] >= 0 && all && v.kind == SL_VALUE_SIGMOID;
    }
    double loss = NAN, correct = NAN, losses[SL_SPLITS], corrects[SL_SPLITS];
    v.g = g.at;
    v.ldg = g.ld;
    sl_kernel_value_loss(&v, &loss, &correct);
    sl_expect("gradient of values", &g, want, bound);
    assert_true(fabs(loss - trained) <= 8.0 * SL_UNIT * trained_size);
    assert_true(correct == right[SL_SPLIT_TRAIN]);
    sl_kernel_value_count(&v, corrects, losses);
    for (int s = 0; s < SL_SPLITS; s++) {
        assert_true(fabs(losses[s] - sum[s]) <= 8.0 * SL_UNIT * size[s]);
        assert_true(corrects[s] == right[s]);
    }
    struct sl_guarded both = sl_guarded_copy(z, z->layout, SL_CANARY);
    v.z = v.g = both.at;
    v.ldz = v.ldg = both.ld;
    double loss_of_both, correct_of_both;
    sl_kernel_value_loss(&v, &loss_of_both, &correct_of_both);
    sl_expect_same_bits("a gradient in the place of the logits", &g, &both);
    sl_expect_padding_kept("a gradient in the place of the logits", &both);
    assert_true(loss_of_both == loss && correct_of_both == correct);
    sl_guarded_free(&both);
    free(want);
    free(bound);
    sl_guarded_free(&g);
}

static void check_values_of(const struct sl_guarded *z)
{
    int32_t *target = sl_random_values(z->rows, z->cols);
    float *weights = sl_positive(2 * z->cols);
    struct sl_guarded factor = sl_guarded_random(1, z->rows, SL_EDGE, NAN, SL_REALS);
    struct sl_value_loss v = {.rows = z->rows,
                              .cols = z->cols,
                              .scale = 1.0f / 140.0f,
                              .target = target,
                              .z = z->at,
                              .ldz = z->ld};
    check_values_with(&v, z);
    v.factor = factor.at;
    v.smoothing = 0.1f;
    check_values_with(&v, z);
    v.weights = weights;
    check_values_with(&v, z);
    v.smoothing = 0.0f;
    check_values_with(&v, z);
    v.kind = SL_VALUE_SQUARE;
    v.weights = NULL;
    check_values_with(&v, z);
    sl_guarded_free(&factor);
    free(weights);
    free(target);
}

static void check_values(int64_t rows, int64_t cols, enum sl_layout layout)
{
    for (int kind = 0; kind < 2; kind++) {
        struct sl_guarded z = sl_guarded_random(rows, cols, layout, NAN, (enum sl_kind)kind);
        check_values_of(&z);
        sl_guarded_free(&z);
    }
}

SL_TEST(test_values)
{
    sl_each_shape_and_level(check_values);
}

static void set_large(struct sl_guarded *z)
{
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t j = 0; j < z->cols; j++)
            *sl_element(z, r, j) = sl_random_below(3) ? (sl_random_below(2) ? 500.0f : -500.0f)
                                                      : sl_random_value(SL_REALS);
}

/* Nothing overflows, and what is wrong by 500 has a loss of 500. */
SL_TEST(test_large_logits)
{
    struct sl_guarded z = sl_guarded_empty(40, 41, SL_LOOSE, NAN);
    set_large(&z);
    check_values_of(&z);
    sl_guarded_free(&z);
    for (int right = 0; right < 2; right++) {
        const float y = 1.0f, one = right ? 500.0f : -500.0f;
        int32_t target[3] = {0, SL_SPLIT_TRAIN};
        float g;
        double loss, correct;
        memcpy(&target[2], &y, sizeof y);
        sl_kernel_value_loss(&(struct sl_value_loss){.rows = 1,
                                                     .cols = 1,
                                                     .scale = 1.0f,
                                                     .target = target,
                                                     .z = &one,
                                                     .ldz = 1,
                                                     .g = &g,
                                                     .ldg = 1},
                             &loss, &correct);
        assert_true(loss == (right ? 0.0 : 500.0) && correct == right && g == (right ? 0 : -1));
    }
}

/* A diverged run must look diverged. */
SL_TEST(test_not_finite)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int kind = SL_VALUE_SIGMOID; kind <= SL_VALUE_SQUARE; kind++)
        for (size_t b = 0; b < SL_COUNT(bad); b++)
            for (int at = 0; at < 9; at++)
                for (int y = 0; y < 2; y++) {
                    int32_t target[2 + 9] = {0, SL_SPLIT_TRAIN};
                    const float value = (float)y;
                    float z[9] = {1, 2, 3, -1, -2, -3, 0, 4, 5}, g[9];
                    double loss, correct, losses[SL_SPLITS], corrects[SL_SPLITS];
                    for (int j = 0; j < 9; j++)
                        memcpy(&target[2 + j], &value, sizeof value);
                    z[at] = bad[b];
                    const struct sl_value_loss v = {.kind = (enum sl_value_loss_kind)kind,
                                                    .rows = 1,
                                                    .cols = 9,
                                                    .scale = 1.0f,
                                                    .target = target,
                                                    .z = z,
                                                    .ldz = 9,
                                                    .g = g,
                                                    .ldg = 9};
                    sl_kernel_value_loss(&v, &loss, &correct);
                    sl_kernel_value_count(&v, corrects, losses);
                    assert_true(!isfinite(loss) && !isfinite(losses[SL_SPLIT_TRAIN]));
                }
}

/* ---- Weighted softmax ---- */

static double softmax_loss(const struct sl_weighted_softmax *w, const double *z, int32_t label)
{
    const int64_t classes = w->softmax.classes;
    double largest = z[0], sum = 0.0, loss = 0.0;
    for (int64_t j = 1; j < classes; j++)
        largest = fmax(largest, z[j]);
    for (int64_t j = 0; j < classes; j++)
        sum += exp(z[j] - largest);
    for (int64_t j = 0; j < classes; j++) {
        const double t = (double)w->smoothing / (double)classes +
                         (j == label ? 1.0 - (double)w->smoothing : 0.0);
        loss += (w->weights ? (double)w->weights[j] : 1.0) * t * (log(sum) + largest - z[j]);
    }
    return loss;
}

static void check_softmax_with(const struct sl_weighted_softmax *given, const struct sl_guarded *z)
{
    struct sl_weighted_softmax w = *given;
    struct sl_softmax *s = &w.softmax;
    struct sl_guarded g = sl_guarded_empty(s->rows, s->classes, SL_LOOSE, SL_CANARY);
    double *want = sl_doubles(s->rows * s->classes), *bound = sl_doubles(s->rows * s->classes),
           *row = sl_doubles(s->classes), loss, correct, total = 0.0, right = 0.0;
    for (int64_t r = 0; r < s->rows; r++) {
        const int32_t label = s->target[2 * r];
        int64_t best = 0;
        if (label < 0 || s->target[2 * r + 1] != SL_SPLIT_TRAIN)
            continue;
        for (int64_t j = 0; j < s->classes; j++) {
            row[j] = (double)*sl_element(z, r, j);
            best = row[j] > row[best] ? j : best;
        }
        right += best == label;
        total += softmax_loss(&w, row, label);
        for (int64_t j = 0; j < s->classes; j++) {
            const double h = 1e-4, at = row[j],
                         times = (double)s->scale * (s->factor ? (double)s->factor[r] : 1.0);
            row[j] = at + h;
            const double above = softmax_loss(&w, row, label);
            row[j] = at - h;
            want[r * s->classes + j] = times * (above - softmax_loss(&w, row, label)) / (2.0 * h);
            row[j] = at;
            bound[r * s->classes + j] = fabs(times) * 1e-6 * (1.0 + total);
        }
    }
    s->g = g.at;
    s->ldg = g.ld;
    sl_kernel_weighted_softmax(&w, &loss, &correct);
    sl_expect("gradient of weighted softmax", &g, want, bound);
    assert_true(fabs(loss - total) <= 1e-6 * (1.0 + total) && correct == right);
    free(want);
    free(bound);
    free(row);
    sl_guarded_free(&g);
}

static void check_weighted_of(const struct sl_guarded *z)
{
    int32_t *target = sl_random_targets(z->rows, z->cols);
    float *weights = sl_positive(z->cols);
    struct sl_guarded factor = sl_guarded_random(1, z->rows, SL_EDGE, NAN, SL_REALS);
    struct sl_weighted_softmax w = {.softmax = {.rows = z->rows,
                                                .classes = z->cols,
                                                .scale = 1.0f / 140.0f,
                                                .target = target,
                                                .z = z->at,
                                                .ldz = z->ld},
                                    .smoothing = 0.1f};
    check_softmax_with(&w, z);
    w.weights = weights;
    check_softmax_with(&w, z);
    w.softmax.factor = factor.at;
    w.smoothing = 0.0f;
    check_softmax_with(&w, z);
    sl_guarded_free(&factor);
    free(weights);
    free(target);
}

static void check_weighted(int64_t rows, int64_t classes, enum sl_layout layout)
{
    if (!sl_takes(rows * classes * classes)) /* a difference of losses for each element */
        return;
    struct sl_guarded z = sl_guarded_random(rows, classes, layout, NAN, SL_REALS);
    check_weighted_of(&z);
    sl_guarded_free(&z);
}

SL_TEST(test_weighted_softmax)
{
    sl_each_shape(check_weighted);
    struct sl_guarded z = sl_guarded_empty(40, 41, SL_LOOSE, NAN);
    set_large(&z);
    check_weighted_of(&z);
    sl_guarded_free(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_large_logits),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_weighted_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
