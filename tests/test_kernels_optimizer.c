/* One optimizer step at a time against double precision. How it is judged: tests/kernels.h. */
#include "codelets/clip.h"
#include "codelets/init.h"
#include "codelets/instructions.h"
#include "codelets/optimizer.h"
#include "tests/kernels.h"
#include "tests/unit.h"

struct state_of_one {
    double w, m, v;
};

/* Step number t of the state before it, in double, and by how much float may be off: a few
 * roundings of each term, and of the corrections where a parameter has a t of its own. */
static void naive_optimizer(const struct sl_optimizer_step *s, double t, double g,
                            struct state_of_one *x, struct state_of_one *bound)
{
    const double rate = (double)s->rate, decay = (double)s->decay;
    const double beta1 = (double)s->beta1, beta2 = (double)s->beta2;
    const double momentum = (double)s->momentum;
    const double correction1 = 1.0 - pow(beta1, t), correction2 = 1.0 - pow(beta2, t);
    struct state_of_one old = *x;
    if (s->method == SL_SGD) {
        x->m = momentum * old.m + g + decay * old.w;
        x->w = old.w - rate * x->m;
        bound->m = 4.0 * SL_UNIT * (fabs(momentum * old.m) + fabs(g) + fabs(decay * old.w));
        bound->v = 0.0;
        bound->w = 4.0 * SL_UNIT * (fabs(old.w) + fabs(rate * x->m)) + rate * bound->m;
        return;
    }
    if (s->method == SL_ADAM)
        g += decay * old.w;
    else
        old.w -= rate * decay * old.w;
    const double g_bound =
        s->method == SL_ADAM ? 4.0 * SL_UNIT * (fabs(g) + 2.0 * fabs(decay * old.w)) : 0.0;
    x->m = beta1 * old.m + (1.0 - beta1) * g;
    x->v = beta2 * old.v + (1.0 - beta2) * g * g;
    const double root = sqrt(x->v / correction2) + (double)s->epsilon;
    const double move = rate * x->m / correction1 / root;
    x->w = old.w - move;
    bound->m =
        4.0 * SL_UNIT * (fabs(beta1 * old.m) + fabs((1.0 - beta1) * g)) + (1.0 - beta1) * g_bound;
    bound->v = 6.0 * SL_UNIT * x->v + 2.0 * (1.0 - beta2) * fabs(g) * g_bound;
    /* root follows v with half its relative error; where v is tiny epsilon dominates it. */
    const double relative =
        (s->local ? 17.0 : 12.0) * SL_UNIT + (x->v > 0.0 ? bound->v / x->v : 0.0);
    bound->w =
        4.0 * SL_UNIT * fabs(old.w) + fabs(move) * relative + rate * bound->m / correction1 / root;
}

enum { STEPS = 12, MOST_STEPS = 100000 };

/* Return a number from 0 to MOST_STEPS: numbers of one digit are as frequent as numbers of five. */
static float some_count(void)
{
    const double most = log(MOST_STEPS + 1.0);
    return (float)floor(expm1(most * (double)sl_random_below(1000001) / 1e6));
}

/* Each step is judged from the float state before it. Counted: each parameter has had another
 * number of steps before the first one. */
static void check_optimizer(struct sl_optimizer_step step, bool counted, int64_t count,
                            enum sl_layout layout)
{
    struct sl_guarded w = sl_guarded_random(1, count, layout, SL_CANARY, SL_REALS),
                      g = sl_guarded_empty(1, count, sl_other_layout(layout), NAN);
    struct sl_guarded m = sl_guarded_empty(1, count, SL_LOOSE, SL_CANARY),
                      v = sl_guarded_empty(1, count, SL_EDGE, SL_CANARY),
                      counts = sl_guarded_empty(1, count, SL_EDGE, NAN);
    double *want = sl_doubles(3 * count), *bound = sl_doubles(3 * count);
    const double beta1 = (double)step.beta1, beta2 = (double)step.beta2;
    sl_kernel_fill(1, count, 0.0f, m.at, m.ld);
    sl_kernel_fill(1, count, 0.0f, v.at, v.ld);
    for (int64_t i = 0; i < count; i++)
        counts.at[i] = counted ? some_count() : 0.0f;
    for (int t = 1; t <= STEPS; t++) {
        step.correction1 = counted ? NAN : (float)(1.0 - pow(beta1, t));
        step.correction2 = counted ? NAN : (float)(1.0 - pow(beta2, t));
        step.local = counted ? t : 0;
        for (int64_t i = 0; i < count; i++) {
            g.at[i] = sl_random_below(5) ? 0.01f * sl_random_value(SL_REALS)
                                         : 0.0f; /* features that never occur: 0 */
            struct state_of_one x = {(double)w.at[i], (double)m.at[i], (double)v.at[i]}, b;
            naive_optimizer(&step, (double)counts.at[i] + t, (double)g.at[i], &x, &b);
            want[i] = x.w, want[count + i] = x.m, want[2 * count + i] = x.v;
            bound[i] = b.w, bound[count + i] = b.m, bound[2 * count + i] = b.v;
        }
        const bool two = sl_optimizer_states(step.method) > 1;
        sl_kernel_optimizer(&step, count, counted ? counts.at : NULL, g.at, w.at, m.at,
                            two ? v.at : NULL);
        sl_expect("optimizer, w", &w, want, bound);
        sl_expect("optimizer, m", &m, want + count, bound + count);
        if (two)
            sl_expect("optimizer, v", &v, want + 2 * count, bound + 2 * count);
    }
    free(want);
    free(bound);
    sl_guarded_free(&w);
    sl_guarded_free(&g);
    sl_guarded_free(&m);
    sl_guarded_free(&v);
    sl_guarded_free(&counts);
}

static void check_optimizer_everywhere(const struct sl_optimizer_step *step)
{
    static const int64_t counts[] = {0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 602, 4999};
    sl_random_seed(4);
    for (int level = 0; sl_next_level(&level);)
        for (size_t i = 0; i < SL_COUNT(counts); i++)
            for (int layout = 0; layout < SL_LAYOUTS; layout++)
                for (int counted = 0; counted < 2; counted++)
                    check_optimizer(*step, counted, counts[i], (enum sl_layout)layout);
}

SL_TEST(test_adam)
{
    const struct sl_optimizer_step plain = {
        .method = SL_ADAM, .rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    struct sl_optimizer_step decayed = plain;
    decayed.decay = 5e-4f;
    check_optimizer_everywhere(&plain);
    check_optimizer_everywhere(&decayed);
}

SL_TEST(test_adamw)
{
    const struct sl_optimizer_step step = {.method = SL_ADAMW,
                                           .rate = 0.01f,
                                           .decay = 0.1f,
                                           .beta1 = 0.9f,
                                           .beta2 = 0.999f,
                                           .epsilon = 1e-8f};
    check_optimizer_everywhere(&step);
}

SL_TEST(test_sgd)
{
    struct sl_optimizer_step step = {
        .method = SL_SGD, .rate = 0.1f, .decay = 5e-3f, .momentum = 0.9f};
    check_optimizer_everywhere(&step);
    step.momentum = step.decay = 0.0f;
    check_optimizer_everywhere(&step);
}

/* The corrections of step t, for all t up to a million: they are as good in float as it needs. */
SL_TEST(test_corrections)
{
    static const double betas[] = {0.9, 0.999, 0.5, 0.99, 0.9999};
    for (size_t b = 0; b < SL_COUNT(betas); b++) {
        const float beta = (float)betas[b];
        for (int local = 1; local <= 30; local += 29) {
            const struct sl_optimizer_step step = {
                .method = SL_ADAM, .rate = 1.0f, .beta1 = beta, .beta2 = beta, .local = local};
            const struct sl_adam common = sl_adam_open(&step);
            for (int t = local; t <= 1000000; t++) {
                const struct sl_adam adam = sl_adam_counted(&common, (float)(t - local));
                const double correction = -expm1(t * log((double)beta));
                if (!(fabs((double)adam.rate * correction - 1.0) < 5e-7 &&
                      fabs((double)adam.unbias * correction - 1.0) < 5e-7))
                    fail_msg("beta %g, step %d: 1 / %.9g and %.9g, expected 1 / %.9g", betas[b], t,
                             1.0 / (double)adam.rate, (double)adam.unbias, correction);
            }
        }
    }
}

/* Parameters with equal numbers of steps make the same step as without counts. */
SL_TEST(test_equal_counts)
{
    enum { COUNT = 997 };
    static const int64_t before[] = {0, 1, 2, 9, 63, 1000, 99999};
    static float counts[COUNT], g[COUNT], w[2][COUNT], m[2][COUNT], v[2][COUNT];
    sl_random_seed(5);
    for (int level = 0; sl_next_level(&level);)
        for (size_t k = 0; k < SL_COUNT(before) * 2; k++) {
            const int64_t t = before[k / 2] + 3;
            struct sl_optimizer_step step = {.method = k % 2 ? SL_ADAM : SL_ADAMW,
                                             .rate = 0.01f,
                                             .decay = 0.1f,
                                             .beta1 = 0.9f,
                                             .beta2 = 0.999f,
                                             .epsilon = 1e-8f,
                                             .correction1 = (float)(1.0 - pow(0.9f, (double)t)),
                                             .correction2 = (float)(1.0 - pow(0.999f, (double)t)),
                                             .local = 3};
            for (int i = 0; i < COUNT; i++) {
                counts[i] = (float)before[k / 2];
                g[i] = sl_random_value(SL_REALS);
                w[0][i] = w[1][i] = 0.0f; /* what they are afterwards is the update */
                m[0][i] = m[1][i] = sl_random_value(SL_REALS);
                v[0][i] = v[1][i] = fabsf(sl_random_value(SL_REALS));
            }
            sl_kernel_optimizer(&step, COUNT, NULL, g, w[0], m[0], v[0]);
            sl_kernel_optimizer(&step, COUNT, counts, g, w[1], m[1], v[1]);
            assert_memory_equal(m[0], m[1], sizeof m[0]);
            assert_memory_equal(v[0], v[1], sizeof v[0]);
            for (int i = 0; i < COUNT; i++)
                assert_true(fabsf(w[0][i] - w[1][i]) <= 1e-6f * fabsf(w[0][i]) && w[0][i] != 0.0f);
        }
}

/* SGD does not look at counts. */
SL_TEST(test_sgd_counts)
{
    enum { COUNT = 997 };
    static float counts[COUNT], g[COUNT], w[2][COUNT], m[2][COUNT];
    const struct sl_optimizer_step step = {
        .method = SL_SGD, .rate = 0.1f, .decay = 5e-3f, .momentum = 0.9f, .local = 2};
    sl_random_seed(6);
    for (int level = 0; sl_next_level(&level);) {
        for (int i = 0; i < COUNT; i++) {
            counts[i] = i % 2 ? NAN : (float)i;
            g[i] = sl_random_value(SL_REALS);
            w[0][i] = w[1][i] = sl_random_value(SL_REALS);
            m[0][i] = m[1][i] = sl_random_value(SL_REALS);
        }
        assert_int_equal(sl_kernel_optimizer(&step, COUNT, NULL, g, w[0], m[0], NULL), 0);
        assert_int_equal(sl_kernel_optimizer(&step, COUNT, counts, g, w[1], m[1], NULL), 0);
        assert_memory_equal(w[0], w[1], sizeof w[0]);
        assert_memory_equal(m[0], m[1], sizeof m[0]);
    }
}

/* A weight whose gradient is always 0 stays, not even NaN for epsilon 0/0: v = 0 divides by
 * epsilon. */
SL_TEST(test_adam_without_gradient)
{
    struct sl_optimizer_step step = {.method = SL_ADAM,
                                     .rate = 0.1f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .correction1 = 0.1f,
                                     .correction2 = 0.001f};
    float g[9] = {0}, w[9], m[9] = {0}, v[9] = {0};
    for (int i = 0; i < 9; i++)
        w[i] = (float)i - 4.0f;
    sl_kernel_optimizer(&step, 9, NULL, g, w, m, v);
    for (int i = 0; i < 9; i++)
        assert_true(w[i] == (float)i - 4.0f && m[i] == 0.0f && v[i] == 0.0f);
}

/* One number that is not finite is found wherever it is, and told apart. */
SL_TEST(test_not_finite)
{
    enum { COUNT = 5000 };
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const int64_t places[] = {0, 1, 15, 2047, 2048, 4095, 4096, 4999};
    static float zero[COUNT], g[COUNT], w[COUNT], m[COUNT], v[COUNT];
    struct sl_optimizer_step step = {.method = SL_ADAM,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .correction1 = 0.1f,
                                     .correction2 = 0.001f};
    assert_int_equal(sl_kernel_optimizer(&step, COUNT, NULL, zero, w, m, v), 0);
    for (size_t b = 0; b < SL_COUNT(bad) * SL_COUNT(places); b++) {
        const int64_t i = places[b / SL_COUNT(bad)];
        const float value = bad[b % SL_COUNT(bad)];
        float *const state_of[] = {w, m, v};
        for (int s = 0; s < 3; s++) {
            state_of[s][i] = value;
            assert_int_equal(sl_kernel_optimizer(&step, COUNT, NULL, zero, w, m, v), SL_BAD_UPDATE);
            w[i] = m[i] = v[i] = 0.0f;
        }
        g[i] = value;
        assert_int_equal(sl_kernel_optimizer(&step, COUNT, NULL, g, w, m, v),
                         SL_BAD_GRADIENT | SL_BAD_UPDATE);
        g[i] = w[i] = m[i] = v[i] = 0.0f;
    }
    g[7] = 3e38f; /* finite itself; its square is not */
    assert_int_equal(sl_kernel_optimizer(&step, COUNT, NULL, g, w, m, v), SL_BAD_UPDATE);
    step.method = SL_SGD;
    w[7] = m[7] = 0.0f;
    assert_int_equal(sl_kernel_optimizer(&step, COUNT, NULL, g, w, m, NULL), 0);
}

/* Every element moves, and what is not finite is found and told apart. */
SL_TEST(test_average)
{
    static const int64_t counts[] = {0, 1, 7, 16, 17, 33, 602};
    sl_random_seed(7);
    for (int level = 0; sl_next_level(&level);)
        for (size_t i = 0; i < SL_COUNT(counts) * SL_LAYOUTS; i++) {
            const int64_t count = counts[i / SL_LAYOUTS];
            const enum sl_layout layout = (enum sl_layout)(i % SL_LAYOUTS);
            struct sl_guarded w = sl_guarded_random(1, count, layout, SL_CANARY, SL_REALS),
                              g = sl_guarded_random(1, count, SL_EDGE, NAN, SL_REALS);
            double *want = sl_doubles(count), *bound = sl_doubles(count);
            for (int64_t j = 0; j < count; j++) {
                want[j] = 0.9 * (double)w.at[j] + 0.1 * (double)g.at[j];
                bound[j] = 4.0 * SL_UNIT * (fabs((double)w.at[j]) + fabs((double)g.at[j]));
            }
            assert_int_equal(sl_kernel_average(0.1f, count, g.at, w.at), 0);
            sl_expect("average", &w, want, bound);
            if (count) {
                w.at[count / 2] = NAN;
                assert_int_equal(sl_kernel_average(0.1f, count, g.at, w.at), SL_BAD_UPDATE);
                g.at[count - 1] = INFINITY;
                assert_int_equal(sl_kernel_average(0.1f, count, g.at, w.at),
                                 SL_BAD_GRADIENT | SL_BAD_UPDATE);
            }
            free(want);
            free(bound);
            sl_guarded_free(&w);
            sl_guarded_free(&g);
        }
}

/* The sum is as good as a plain one and has the same bits on every instruction set; the limit is
 * kept, and a shorter gradient stays as it is. */
SL_TEST(test_clip)
{
    static const int64_t shapes[][2] = {{0, 5},  {1, 1},   {3, 7},  {5, 8},
                                        {4, 16}, {33, 41}, {1, 999}};
    sl_random_seed(6);
    for (size_t i = 0; i < SL_COUNT(shapes) * SL_LAYOUTS; i++) {
        const int64_t *shape = shapes[i / SL_LAYOUTS];
        struct sl_guarded x =
            sl_guarded_random(shape[0], shape[1], (enum sl_layout)(i % SL_LAYOUTS), NAN, SL_REALS);
        double plain = 0.0;
        for (int64_t r = 0; r < shape[0]; r++)
            for (int64_t j = 0; j < shape[1]; j++)
                plain += (double)x.at[r * x.ld + j] * (double)x.at[r * x.ld + j];
        const enum sl_instructions best = sl_instructions_get();
        const double sum = sl_kernel_square_sum(shape[0], shape[1], x.at, x.ld);
        for (int level = 0; level <= (int)best; level++) {
            sl_instructions_set((enum sl_instructions)level);
            assert_true(sl_kernel_square_sum(shape[0], shape[1], x.at, x.ld) == sum);
        }
        sl_instructions_set(best);
        assert_true(fabs(sum - plain) <= 1e-14 * plain);
        for (int times = 1; times <= 2; times++) {
            sl_kernel_clip(shape[0], shape[1], times * sqrt(sum), sum, x.at, x.ld);
            assert_true(sl_kernel_square_sum(shape[0], shape[1], x.at, x.ld) == sum);
        }
        sl_kernel_clip(shape[0], shape[1], 0.5 * sqrt(sum), sum, x.at, x.ld);
        const double after = sl_kernel_square_sum(shape[0], shape[1], x.at, x.ld);
        assert_true(fabs(after - 0.25 * sum) <= 1e-6 * sum);
        sl_guarded_free(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adam),         cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_sgd),          cmocka_unit_test(test_adam_without_gradient),
        cmocka_unit_test(test_not_finite),   cmocka_unit_test(test_average),
        cmocka_unit_test(test_clip),         cmocka_unit_test(test_corrections),
        cmocka_unit_test(test_equal_counts), cmocka_unit_test(test_sgd_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
