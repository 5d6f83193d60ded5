/* Reducers that a program brings: the gradient of the example against central differences; merged
 * states against states that met all neighbours; sum and maximum, brought by a program, against the
 * library's; refusals. Linked with the shared library alone. tests/library.sh runs the example on 1
 * and 2 ranks, and tests/every_cut.c and tests/every_grid.c have such a reducer on every
 * distribution. */
#include "tests/own_run.h"

int own_reducer_example(int argc, char **argv);
#define main own_reducer_example
#include "examples/own_reducer.c"
#undef main

enum { NEIGHBOURS = 5, WIDE = 4 };

/* Some neighbours of a vertex, combined and finished. */
static void reduce(float h[NEIGHBOURS][WIDE], const float *weight, float *first, float *second)
{
    for (int j = 0; j < WIDE; j++)
        first[j] = -INFINITY, second[j] = 0.0f;
    for (int k = 0; k < NEIGHBOURS; k++)
        combine(NULL, WIDE, weight[k], h[k], first, second);
    finish(NULL, WIDE, first, second);
}

static void set_neighbours(float h[NEIGHBOURS][WIDE], float *weight)
{
    for (int k = 0; k < NEIGHBOURS; k++) {
        weight[k] = 0.5f + drawn(k, 41);
        for (int j = 0; j < WIDE; j++)
            h[k][j] = 4.0f * drawn(k, 50 + j) - 2.0f;
    }
}

SL_TEST(test_gradient)
{
    static const float step = 1e-2f;
    float h[NEIGHBOURS][WIDE], weight[NEIGHBOURS], first[WIDE], second[WIDE], up[WIDE], down[WIDE];
    const float ones[WIDE] = {1.0f, 1.0f, 1.0f, 1.0f};
    set_neighbours(h, weight);
    reduce(h, weight, first, second);
    for (int k = 0; k < NEIGHBOURS; k++) {
        float gradient[WIDE] = {0}, none[WIDE];
        differentiate(NULL, WIDE, weight[k], h[k], ones, second, gradient);
        for (int j = 0; j < WIDE; j++) {
            const float before = h[k][j];
            h[k][j] = before + step;
            reduce(h, weight, up, none);
            h[k][j] = before - step;
            reduce(h, weight, down, none);
            h[k][j] = before;
            const double difference = (double)(up[j] - down[j]) / (2.0 * (double)step);
            if (!(fabs(difference - (double)gradient[j]) <= 2e-4))
                fail_msg("neighbour %d, element %d: %g, not %g", k, j, (double)gradient[j],
                         difference);
        }
    }
}

SL_TEST(test_merge)
{
    float h[NEIGHBOURS][WIDE], weight[NEIGHBOURS], all[WIDE], kept[WIDE], a[3][WIDE], b[3][WIDE];
    set_neighbours(h, weight);
    reduce(h, weight, all, kept);
    for (int s = 0; s < 3; s++) /* the last one meets nobody */
        for (int j = 0; j < WIDE; j++)
            a[s][j] = -INFINITY, b[s][j] = 0.0f;
    for (int k = 0; k < NEIGHBOURS; k++)
        combine(NULL, WIDE, weight[k], h[k], a[k % 2], b[k % 2]);
    merge(NULL, WIDE, a[2], b[2], a[0], b[0]);
    merge(NULL, WIDE, a[0], b[0], a[2], b[2]);
    merge(NULL, WIDE, a[1], b[1], a[2], b[2]);
    finish(NULL, WIDE, a[2], b[2]);
    for (int j = 0; j < WIDE; j++)
        if (!(fabsf(a[2][j] - all[j]) <= 1e-6f))
            fail_msg("element %d: %g, not %g", j, (double)a[2][j], (double)all[j]);
}

/* ---- The library's ---- */

static void sum_combine(void *context, int64_t n, float weight, const float *neighbour,
                        float *first, float *second)
{
    (void)context;
    (void)second;
    for (int64_t j = 0; j < n; j++)
        first[j] += weight * neighbour[j];
}

static void sum_merge(void *context, int64_t n, const float *other_first, const float *other_second,
                      float *first, float *second)
{
    (void)other_second;
    sum_combine(context, n, 1.0f, other_first, first, second);
}

static void sum_finish(void *context, int64_t n, float *first, float *second)
{
    (void)context;
    (void)n;
    (void)first;
    (void)second;
}

static void sum_differentiate(void *context, int64_t n, float weight, const float *neighbour,
                              const float *gradient, const float *second, float *neighbour_gradient)
{
    (void)neighbour;
    sum_combine(context, n, weight, gradient, neighbour_gradient, (float *)second);
}

static void max_combine(void *context, int64_t n, float weight, const float *neighbour,
                        float *first, float *second)
{
    (void)context;
    (void)second;
    for (int64_t j = 0; j < n; j++)
        first[j] = fmaxf(first[j], weight * neighbour[j]);
}

static void max_merge(void *context, int64_t n, const float *other_first, const float *other_second,
                      float *first, float *second)
{
    (void)other_second;
    max_combine(context, n, 1.0f, other_first, first, second);
}

static void max_finish(void *context, int64_t n, float *first, float *second)
{
    (void)context;
    for (int64_t j = 0; j < n; j++) {
        second[j] = first[j];
        first[j] = isinf(first[j]) ? 0.0f : first[j];
    }
}

/* Equal values are zeros of relu, whose gradient nobody asks for. */
static void max_differentiate(void *context, int64_t n, float weight, const float *neighbour,
                              const float *gradient, const float *second, float *neighbour_gradient)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        if (weight * neighbour[j] == second[j])
            neighbour_gradient[j] += weight * gradient[j];
}

SL_TEST(test_sum_and_max)
{
    static const struct starling_reducer sum = {.combine = sum_combine,
                                                .merge = sum_merge,
                                                .finish = sum_finish,
                                                .differentiate = sum_differentiate},
                                         max = {.start = {-INFINITY, 0.0f},
                                                .combine = max_combine,
                                                .merge = max_merge,
                                                .finish = max_finish,
                                                .differentiate = max_differentiate};
    static const char *const names[2][2] = {{"own-sum", "sum"}, {"own-max", "max"}};
    static float weights[4 * N];
    starling_graph *graph = make_graph(STARLING_CLASSES);
    for (int e = 0; e < 4 * N; e++)
        weights[e] = 0.25f + drawn(e, 61);
    assert_int_equal(starling_graph_set_weights(graph, weights), 0);
    assert_int_equal(starling_reducer_register("own-sum", &sum), 0);
    assert_int_equal(starling_reducer_register("own-max", &max), 0);
    for (int k = 0; k < 2; k++)
        for (int tiles = 0; tiles < 2; tiles++) {
            struct trained of[2];
            for (int which = 0; which < 2; which++) {
                const char *const words[] = {
                    "model",           "sage",       "layers",        "3", "lr", "0.003", "tiles",
                    tiles ? "3" : "1", "aggregator", names[k][which], NULL};
                train(graph, words, &of[which]);
            }
            expect_same(&of[0], &of[1]);
        }
    starling_graph_free(graph);
}

SL_TEST(test_refusals)
{
    static const struct starling_reducer fine = {.combine = sum_combine,
                                                 .merge = sum_merge,
                                                 .finish = sum_finish,
                                                 .differentiate = sum_differentiate},
                                         half = {.combine = sum_combine};
    static const char *const absent[] = {"model", "sage", "aggregator", "absent", NULL},
                             *const narrow[] = {"model",     "sage", "aggregator", "fine",
                                                "precision", "bf16", NULL},
                             *const late[] = {"model", "sage",         "aggregator",
                                              "fine",  "distribution", "vertex-cut",
                                              "delay", "cd-2",         NULL};
    struct trained trained;
    starling_graph *graph = make_graph(STARLING_CLASSES);
    refuse(starling_reducer_register("half", &half), "NULL");
    refuse(starling_reducer_register("none", NULL), "NULL");
    refuse(starling_reducer_register("mean", &fine), "taken");
    refuse(try_training(graph, absent, &trained), "--aggregator: expected one of: gcn mean sum");
    assert_int_equal(starling_reducer_register("fine", &fine), 0);
    refuse(try_training(graph, narrow, &trained), "--precision bf16: --aggregator fine");
    refuse(try_training(graph, late, &trained), "--delay cd-2: --aggregator fine");
    starling_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_sum_and_max),
        cmocka_unit_test(test_refusals),
    };
    const int failed = cmocka_run_group_tests(tests, make_arrays, NULL);
    starling_finish();
    return failed;
}
