/* A small graph, and trainings of it by the installed library: what tests/test_own_*.c share. */
#ifndef SL_TESTS_OWN_RUN_H
#define SL_TESTS_OWN_RUN_H

#include <stdbool.h>

#include <starling.h>

#include "tests/unit.h"

enum { N = 60, COLUMNS = 3, FEATURES = 7, EPOCHS = 12 };

/* ---- A graph ---- */

static int64_t indptr[N + 1];
static int32_t indices[4 * N], classes[N];
static float features[N * FEATURES], labels[N * COLUMNS], numbers[N * COLUMNS];
static uint8_t split[2][N];

/* 0 … 1 */
static inline float drawn(int a, int b)
{
    const uint32_t mixed = ((uint32_t)a * 73856093u ^ (uint32_t)b * 19349663u) * 2654435761u;
    return (float)(mixed >> 8) * 0x1p-24f;
}

static inline int make_arrays(void **state)
{
    (void)state;
    for (int v = 0; v < N; v++) {
        const int to[] = {(v + 1) % N, (v + N - 1) % N, (v * 7 + 3) % N, (v + N / 2) % N};
        indptr[v + 1] = indptr[v] + 4;
        for (int k = 0; k < 4; k++)
            indices[v * 4 + k] = to[k];
        classes[v] = v % 11 == 4 ? -1 : (v * 5 + v / 7) % COLUMNS;
        for (int j = 0; j < FEATURES; j++)
            features[v * FEATURES + j] =
                6.0f * drawn(v, j) - 2.0f + (j == classes[v] ? 2.0f : 0.0f);
        for (int j = 0; j < COLUMNS; j++) {
            numbers[v * COLUMNS + j] = v % 9 == j ? NAN : 3.0f * drawn(v, 100 + j) - 1.0f;
            labels[v * COLUMNS + j] = v % 9 == j ? NAN : (float)(drawn(v, 200 + j) > 0.5f);
        }
        split[0][v] = v % 3 != 1;
        split[1][v] = v % 3 == 1;
    }
    return 0;
}

static inline starling_graph *make_graph(enum starling_labels kind)
{
    starling_graph *graph;
    assert_int_equal(starling_graph_create(N, indptr[N], indptr, indices, &graph), 0);
    assert_int_equal(starling_graph_set_features(graph, FEATURES, features), 0);
    assert_int_equal(kind == STARLING_CLASSES ? starling_graph_set_classes(graph, COLUMNS, classes)
                     : kind == STARLING_LABELS
                         ? starling_graph_set_labels(graph, COLUMNS, labels)
                         : starling_graph_set_numbers(graph, COLUMNS, numbers),
                     0);
    assert_int_equal(starling_graph_set_mask(graph, STARLING_TRAIN, split[0]), 0);
    assert_int_equal(starling_graph_set_mask(graph, STARLING_VAL, split[1]), 0);
    return graph;
}

/* The part of a training that is the same in every way of training: losses, and the result. */
struct trained {
    double loss[EPOCHS];
    struct starling_result result;
};

static inline int take_loss(void *context, const struct starling_epoch *e)
{
    ((struct trained *)context)->loss[e->epoch - 1] = e->loss;
    return 0;
}

/* `words`: names and values, up to NULL. */
static inline int try_training(starling_graph *graph, const char *const *words, struct trained *out)
{
    starling_options *options;
    starling_model *model;
    int code = starling_options_create(&options);
    if (!code)
        code = starling_options_set(options, "epochs", "12");
    if (!code)
        code = starling_options_set(options, "dropout", "0");
    for (; !code && *words; words += 2)
        code = starling_options_set(options, words[0], words[1]);
    if (!code)
        code = starling_train(graph, options, take_loss, out, &model);
    if (!code) {
        out->result = *starling_model_result(model);
        starling_model_free(model);
    }
    starling_options_free(options);
    return code;
}

static inline void train(starling_graph *graph, const char *const *words, struct trained *out)
{
    if (try_training(graph, words, out))
        fail_msg("%s", starling_error());
}

static inline void expect_same(const struct trained *own, const struct trained *builtin)
{
    for (int e = 0; e < EPOCHS; e++)
        if (!(fabs(own->loss[e] - builtin->loss[e]) <= 2e-5 * fabs(builtin->loss[e])))
            fail_msg("epoch %d: %.9g, not %.9g", e + 1, own->loss[e], builtin->loss[e]);
    assert_true(builtin->loss[EPOCHS - 1] < 0.999 * builtin->loss[0]);
    if (!isnan(builtin->result.val_accuracy))
        assert_true(own->result.val_accuracy == builtin->result.val_accuracy);
    assert_true(isnan(own->result.val_accuracy) == isnan(builtin->result.val_accuracy));
    assert_true(fabs(own->result.val_score - builtin->result.val_score) <= 2e-5);
}

static inline void refuse(int code, const char *words)
{
    assert_int_equal(code, STARLING_ERR_USAGE);
    if (!strstr(starling_error(), words))
        fail_msg("\"%s\" lacks \"%s\"", starling_error(), words);
}

#endif
