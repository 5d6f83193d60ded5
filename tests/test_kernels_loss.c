/* Softmax cross-entropy, its gradient and accuracy counts. How they are judged: tests/kernels.h. */
#include "bench/loops.h"
#include "codelets/softmax.h"
#include "core/split.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* ---- e^x ---- */

enum { AT_ONCE = 16 }; /* floats: whole vectors at each level */

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every STEP-th float from -0 to -88. */
SL_TEST(test_exponential)
{
    enum { STEP = 1009 };
    const double least = 0x1p-126;
    for (int level = 0; sl_next_level(&level);)
        for (uint32_t bits = 0x80000000; bits < 0xC2B00000; bits += AT_ONCE * STEP) {
            float x[AT_ONCE], y[AT_ONCE];
            for (uint32_t l = 0; l < AT_ONCE; l++)
                x[l] = float_of(bits + l * STEP);
            memcpy(y, x, sizeof y);
            sl_loop_exponentials(AT_ONCE, y);
            for (int l = 0; l < AT_ONCE; l++) {
                const double want = exp((double)x[l]);
                const double unit = ldexp(1.0, ilogb(want) - 23); /* in the last place */
                if (!(fabs((double)y[l] - want) <= (want < least ? least : 1.1 * unit)))
                    fail_msg("e^%.9g (%s) is %.9g, not %.9g", (double)x[l], sl_level_name(),
                             (double)y[l], want);
            }
        }
}

SL_TEST(test_exponential_extremes)
{
    enum { CASES = 8 };
    const float x[AT_ONCE] = {0.0f,   -0.0f,     NAN,   -NAN, float_of(0x7F800001),
                              -3e38f, -INFINITY, -89.0f};
    const float want[CASES] = {1.0f, 1.0f, NAN, NAN, NAN, 0.0f, 0.0f, 0.0f};
    float y[AT_ONCE];
    for (int level = 0; sl_next_level(&level);) {
        memcpy(y, x, sizeof y);
        sl_loop_exponentials(AT_ONCE, y);
        for (int l = 0; l < CASES; l++)
            assert_true(isnan(want[l]) ? isnan(y[l]) : y[l] == want[l]);
    }
}

/* ---- Softmax cross-entropy ---- */

struct row_loss {
    double loss, bound, largest, sum;
    int64_t best;
};

/* The bound of one row's loss: exp and its argument are float, and the sum may be float. Each term
 * of the sum has a relative error of a few u; |x| e^-|x| < 1/2 keeps the argument's rounding
 * harmless. The sum adds `classes` u. Adding the largest logit back costs u of the logits' size. */
static struct row_loss naive_row_loss(const struct sl_guarded *z, int64_t r, int32_t label)
{
    struct row_loss row = {.largest = (double)*sl_element(z, r, 0)};
    double size = 0.0;
    for (int64_t j = 0; j < z->cols; j++) {
        const double value = (double)*sl_element(z, r, j);
        if (value > row.largest) {
            row.largest = value;
            row.best = j;
        }
        size = fmax(size, fabs(value));
    }
    for (int64_t j = 0; j < z->cols; j++)
        row.sum += exp((double)*sl_element(z, r, j) - row.largest);
    row.loss = label < 0 ? 0.0 : log(row.sum) + row.largest - (double)*sl_element(z, r, label);
    row.bound = ((double)z->cols + 8.0 + 4.0 * size) * SL_UNIT;
    return row;
}

static bool counts_for_training(const int32_t *target, int64_t r)
{
    return target[2 * r] >= 0 && target[2 * r + 1] == SL_SPLIT_TRAIN;
}

/* The gradient, and whatever the loss and the count of right answers are. */
static void run_gradient(const struct sl_guarded *z, float scale, const float *factor,
                         const int32_t *target, struct sl_guarded *g)
{
    double loss, correct;
    sl_kernel_softmax_loss(
        &(struct sl_softmax){z->rows, z->cols, scale, factor, target, z->at, z->ld, g->at, g->ld},
        &loss, &correct);
}

static void check_losses(const struct sl_guarded *z, const int32_t *target)
{
    double want_loss[4] = {0}, bound[4] = {0}, want_correct[4] = {0};
    for (int64_t r = 0; r < z->rows; r++) {
        const int32_t label = target[2 * r], split = target[2 * r + 1];
        if (label < 0)
            continue;
        const struct row_loss row = naive_row_loss(z, r, label);
        want_loss[split] += row.loss;
        bound[split] += row.bound;
        want_correct[split] += row.best == label;
    }
    double loss = NAN, correct = NAN, losses[4] = {NAN, NAN, NAN, NAN},
           corrects[4] = {NAN, NAN, NAN, NAN};
    struct sl_guarded g = sl_guarded_empty(z->rows, z->cols, SL_TIGHT, SL_CANARY);
    sl_kernel_softmax_loss(
        &(struct sl_softmax){z->rows, z->cols, 1.0f, NULL, target, z->at, z->ld, g.at, g.ld}, &loss,
        &correct);
    struct sl_guarded both = sl_guarded_copy(z, z->layout, SL_CANARY);
    double loss_of_both, correct_of_both;
    sl_kernel_softmax_loss(&(struct sl_softmax){z->rows, z->cols, 1.0f, NULL, target, both.at,
                                                both.ld, both.at, both.ld},
                           &loss_of_both, &correct_of_both);
    sl_expect_same_bits("a gradient in the place of the logits", &g, &both);
    sl_expect_padding_kept("a gradient in the place of the logits", &both);
    assert_true(loss == loss_of_both && correct == correct_of_both);
    sl_guarded_free(&both);
    sl_guarded_free(&g);
    sl_kernel_accuracy(z->rows, z->cols, target, z->at, z->ld, corrects, losses);
    assert_true(fabs(loss - want_loss[SL_SPLIT_TRAIN]) <= bound[SL_SPLIT_TRAIN]);
    assert_true(correct == want_correct[SL_SPLIT_TRAIN]);
    for (int s = 0; s < 4; s++) {
        assert_true(fabs(losses[s] - want_loss[s]) <= bound[s]);
        assert_true(corrects[s] == want_correct[s]);
    }
}

/* A probability has the relative error of one term and of the sum, and at most 1 in size; the
 * label's is then subtracted from 1. A row's factor times the scale is rounded once more. */
static void check_loss_gradient(const struct sl_guarded *z, const int32_t *target,
                                enum sl_layout layout, const float *factor)
{
    const float scale = 1.0f / 140.0f;
    struct sl_guarded g = sl_guarded_empty(z->rows, z->cols, layout, SL_CANARY);
    double *want = sl_doubles(z->rows * z->cols), *bound = sl_doubles(z->rows * z->cols);
    for (int64_t r = 0; r < z->rows; r++) {
        if (!counts_for_training(target, r))
            continue;
        const struct row_loss row = naive_row_loss(z, r, target[2 * r]);
        const double times = (double)scale * (factor ? (double)factor[r] : 1.0);
        for (int64_t j = 0; j < z->cols; j++) {
            const double p = exp((double)*sl_element(z, r, j) - row.largest) / row.sum,
                         one = j == target[2 * r];
            want[r * z->cols + j] = (p - one) * times;
            bound[r * z->cols + j] =
                fabs(times) * SL_UNIT * (p * ((double)z->cols + 9.0) + 3.0 + 5.0 * one);
        }
    }
    run_gradient(z, scale, factor, target, &g);
    sl_expect("softmax loss's gradient", &g, want, bound);
    free(want);
    free(bound);
    sl_guarded_free(&g);
}

static void check_softmax(int64_t rows, int64_t classes, enum sl_layout layout)
{
    for (int kind = 0; kind < 2; kind++) { /* integer logits: many ties for the largest */
        struct sl_guarded z = sl_guarded_random(rows, classes, layout, NAN, (enum sl_kind)kind);
        int32_t *target = sl_random_targets(rows, classes);
        check_losses(&z, target);
        struct sl_guarded factor = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS);
        check_loss_gradient(&z, target, sl_other_layout(layout), NULL);
        check_loss_gradient(&z, target, sl_other_layout(layout), factor.at);
        sl_guarded_free(&factor);
        free(target);
        sl_guarded_free(&z);
    }
}

SL_TEST(test_softmax)
{
    sl_each_shape_and_level(check_softmax);
}

SL_TEST(test_softmax_large_logits)
{
    sl_random_seed(9);
    for (int trial = 0; trial < 20; trial++) {
        struct sl_guarded z = sl_guarded_empty(40, 41, SL_LOOSE, NAN);
        int32_t *target = sl_random_targets(40, 41);
        for (int64_t r = 0; r < 40; r++)
            for (int64_t j = 0; j < 41; j++)
                *sl_element(&z, r, j) = sl_random_below(3) ? sl_random_value(SL_REALS)
                                                           : (sl_random_bits() & 1 ? 1e4f : -1e4f);
        for (int64_t j = 0; j < 41; j++) {
            *sl_element(&z, 0, j) = 1e4f;
            *sl_element(&z, 1, j) = -1e4f;
        }
        target[0] = target[2] = 40;
        target[1] = target[3] = SL_SPLIT_TRAIN;
        check_losses(&z, target);
        check_loss_gradient(&z, target, SL_EDGE, NULL);
        free(target);
        sl_guarded_free(&z);
    }
}

SL_TEST(test_first_largest_wins)
{
    static const float logits[][4] = {
        {1, 3, 3, 3}, {5, 5, 5, 5}, {-2, -3, -2, -9}, {0, 1, 2, 2}, {-1, -1, -1, 0}};
    static const int32_t first[] = {1, 0, 0, 2, 3};
    for (size_t i = 0; i < SL_COUNT(first); i++)
        for (int32_t label = 0; label < 4; label++) {
            const int32_t target[2] = {label, SL_SPLIT_TRAIN};
            double loss, correct, corrects[4], losses[4];
            float g[4];
            sl_kernel_softmax_loss(
                &(struct sl_softmax){1, 4, 1.0f, NULL, target, logits[i], 4, g, 4}, &loss,
                &correct);
            sl_kernel_accuracy(1, 4, target, logits[i], 4, corrects, losses);
            assert_true(correct == (label == first[i]));
            assert_true(corrects[SL_SPLIT_TRAIN] == correct);
        }
}

/* A vertex without a label adds nothing, whatever its split and its logits. */
SL_TEST(test_no_label_is_ignored)
{
    const float z[] = {NAN, 1, 2, 1e4f, -1e4f, 0, 3, 1, 2};
    const int32_t target[] = {-1, SL_SPLIT_TRAIN, -1, SL_SPLIT_TEST, 0, SL_SPLIT_TRAIN};
    double loss, correct, corrects[4], losses[4];
    float g[9];
    const double want = log(exp(3.0) + exp(1.0) + exp(2.0)) - 3.0;
    sl_kernel_softmax_loss(&(struct sl_softmax){3, 3, 1.0f, NULL, target, z, 3, g, 3}, &loss,
                           &correct);
    sl_kernel_accuracy(3, 3, target, z, 3, corrects, losses);
    assert_true(fabs(loss - want) < 32.0 * SL_UNIT &&
                fabs(losses[SL_SPLIT_TRAIN] - want) < 32.0 * SL_UNIT);
    assert_true(correct == 1.0 && corrects[SL_SPLIT_TRAIN] == 1.0);
    assert_true(losses[SL_SPLIT_TEST] == 0.0 && corrects[SL_SPLIT_TEST] == 0.0);
    for (int j = 0; j < 6; j++)
        assert_true(g[j] == 0.0f);
}

/* A diverged run must look diverged. */
SL_TEST(test_softmax_nan)
{
    for (int at = 0; at < 3; at++) {
        float z[] = {1, 2, 3}, g[3];
        const int32_t target[] = {1, SL_SPLIT_TRAIN};
        double loss, correct, corrects[4], losses[4];
        z[at] = NAN;
        sl_kernel_softmax_loss(&(struct sl_softmax){1, 3, 1.0f, NULL, target, z, 3, g, 3}, &loss,
                               &correct);
        sl_kernel_accuracy(1, 3, target, z, 3, corrects, losses);
        assert_true(isnan(loss) && isnan(losses[SL_SPLIT_TRAIN]));
        for (int j = 0; j < 3; j++)
            assert_true(isnan(g[j]));
    }
}

/* Logits that are not finite, or far apart: what the formulas give in double, NaN and infinity
 * included. */

enum { MOST_CLASSES = 41 };

static void extreme_row(int64_t classes, const float *z, int32_t label, double *loss,
                        double *gradient, bool *right)
{
    int64_t best = 0;
    double sum = 0.0;
    for (int64_t j = 1; j < classes; j++)
        if (z[j] > z[best])
            best = j;
    const double largest = (double)z[best];
    for (int64_t j = 0; j < classes; j++)
        sum += exp((double)z[j] - largest);
    for (int64_t j = 0; j < classes; j++)
        gradient[j] = exp((double)z[j] - largest) / sum - (j == label);
    *loss = log(sum) + (largest - (double)z[label]);
    *right = best == label && !isnan(z[best]);
}

static bool same_number(double got, double want, double bound)
{
    return got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= bound;
}

/* A value at every place of a row of others, and everywhere. */
static void check_extremes(int64_t classes, float value, float others)
{
    for (int64_t at = 0; at <= classes; at++)
        for (int32_t label = 0; label < classes; label++) {
            float z[MOST_CLASSES], g[MOST_CLASSES];
            double want[MOST_CLASSES], want_loss, loss, correct, losses[4], corrects[4];
            const int32_t target[2] = {label, SL_SPLIT_TRAIN};
            bool right;
            for (int64_t j = 0; j < classes; j++)
                z[j] = j == at || at == classes ? value : others + (float)(j % 3);
            extreme_row(classes, z, label, &want_loss, want, &right);
            sl_kernel_softmax_loss(
                &(struct sl_softmax){1, classes, 1.0f, NULL, target, z, classes, g, classes}, &loss,
                &correct);
            sl_kernel_accuracy(1, classes, target, z, classes, corrects, losses);
            const double bound =
                ((double)classes + 8.0) * SL_UNIT + (isfinite(loss) ? SL_UNIT * fabs(loss) : 0.0);
            assert_true(same_number(loss, want_loss, bound));
            assert_true(same_number(losses[SL_SPLIT_TRAIN], want_loss, bound));
            assert_true(correct == right && corrects[SL_SPLIT_TRAIN] == right);
            for (int64_t j = 0; j < classes; j++)
                assert_true(same_number((double)g[j], want[j], ((double)classes + 8.0) * SL_UNIT));
        }
}

SL_TEST(test_softmax_extremes)
{
    static const int64_t classes[] = {1, 2, 7, 8, 9, 16, 17, MOST_CLASSES};
    static const float values[] = {NAN, -NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 100.0f, -100.0f};
    static const float others[] = {0.0f, INFINITY, -INFINITY, 3e38f, -3e38f};
    for (int level = 0; sl_next_level(&level);)
        for (size_t c = 0; c < SL_COUNT(classes); c++)
            for (size_t v = 0; v < SL_COUNT(values); v++)
                for (size_t o = 0; o < SL_COUNT(others); o++)
                    check_extremes(classes[c], values[v], others[o]);
}

/* The loss of more rows than one logarithm is taken of: each has log(classes). */
SL_TEST(test_softmax_many_rows)
{
    enum { ROWS = 20000, CLASSES = 41 };
    struct sl_guarded z = sl_guarded_empty(ROWS, CLASSES, SL_TIGHT, NAN);
    int32_t *target = sl_random_targets(ROWS, CLASSES);
    double correct[4], loss[4], total = 0.0, want = 0.0;
    for (int64_t r = 0; r < ROWS; r++) {
        want += target[2 * r] >= 0 ? log((double)CLASSES) : 0.0;
        for (int64_t j = 0; j < CLASSES; j++)
            *sl_element(&z, r, j) = 3.0f;
    }
    sl_kernel_accuracy(ROWS, CLASSES, target, z.at, z.ld, correct, loss);
    for (int s = 0; s < 4; s++)
        total += loss[s];
    assert_true(fabs(total - want) <= 1e-9 * want);
    free(target);
    sl_guarded_free(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_exponential_extremes),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_large_logits),
        cmocka_unit_test(test_first_largest_wins),
        cmocka_unit_test(test_no_label_is_ignored),
        cmocka_unit_test(test_softmax_nan),
        cmocka_unit_test(test_softmax_extremes),
        cmocka_unit_test(test_softmax_many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
