/* Layers that a program brings: gradients of the example against central differences, by itself and
 * in a network; LayerNorm, brought by a program, against the library's; refusals. Linked with the
 * shared library alone. tests/library.sh runs the example on 1 and 2 ranks, and tests/every_cut.c
 * has such a layer on every distribution. */
#include "tests/own_run.h"

int own_layer_example(int argc, char **argv);
#define main own_layer_example
#include "examples/own_layer.c"
#undef main

/* All numbers that the gate of the example has, in one array. */
enum { ROWS = 6, WIDE = 4, IN = ROWS * WIDE, MATRIX = WIDE * WIDE, ALL = IN + MATRIX + WIDE };

/* Σ c · y, in double. */
static double weighted_output(const float *all, const float *c)
{
    float y[IN] = {0};
    double sum = 0.0;
    const float *const parameters[] = {all + IN, all + IN + MATRIX};
    forward(
        NULL,
        &(struct starling_layer_rows){
            .rows = ROWS, .columns = WIDE, .input = all, .parameters = parameters, .output = y});
    for (int k = 0; k < IN; k++)
        sum += (double)(c[k] * y[k]);
    return sum;
}

SL_TEST(test_gradient_of_layer)
{
    static const float step = 1e-2f;
    float all[ALL], gradient[ALL] = {0}, c[IN];
    float *const of_parameters[] = {gradient + IN, gradient + IN + MATRIX};
    const float *const parameters[] = {all + IN, all + IN + MATRIX};
    for (int k = 0; k < ALL; k++)
        all[k] = 2.0f * drawn(k, 31) - 1.0f;
    for (int k = 0; k < IN; k++)
        c[k] = drawn(k, 32) - 0.3f;
    backward(NULL, &(struct starling_layer_rows){.rows = ROWS,
                                                 .columns = WIDE,
                                                 .input = all,
                                                 .parameters = parameters,
                                                 .output_gradient = c,
                                                 .input_gradient = gradient,
                                                 .parameter_gradients = of_parameters});
    for (int k = 0; k < ALL; k++) {
        const float before = all[k];
        all[k] = before + step;
        const double up = weighted_output(all, c);
        all[k] = before - step;
        const double difference = (up - weighted_output(all, c)) / (2.0 * (double)step);
        all[k] = before;
        if (!(fabs(difference - (double)gradient[k]) <= 3e-4))
            fail_msg("number %d: %g, not %g", k, (double)gradient[k], difference);
    }
}

/* The library's LayerNorm. */
static void norm_forward(void *context, const struct starling_layer_rows *rows)
{
    const int64_t n = rows->columns;
    (void)context;
    for (int64_t r = 0; r < rows->rows; r++) {
        const float *x = rows->input + r * n;
        double mean = 0.0, square = 0.0;
        for (int64_t j = 0; j < n; j++)
            mean += (double)x[j] / (double)n;
        for (int64_t j = 0; j < n; j++)
            square += ((double)x[j] - mean) * ((double)x[j] - mean) / (double)n;
        for (int64_t j = 0; j < n; j++)
            rows->output[r * n + j] =
                (float)(((double)x[j] - mean) / sqrt(square + 1e-5)) * rows->parameters[0][j] +
                rows->parameters[1][j];
    }
}

static void norm_backward(void *context, const struct starling_layer_rows *rows)
{
    const int64_t n = rows->columns;
    (void)context;
    for (int64_t r = 0; r < rows->rows; r++) {
        const float *x = rows->input + r * n, *g = rows->output_gradient + r * n;
        double mean = 0.0, square = 0.0, sum = 0.0, product = 0.0;
        for (int64_t j = 0; j < n; j++)
            mean += (double)x[j] / (double)n;
        for (int64_t j = 0; j < n; j++)
            square += ((double)x[j] - mean) * ((double)x[j] - mean) / (double)n;
        const double scale = 1.0 / sqrt(square + 1e-5);
        for (int64_t j = 0; j < n; j++) {
            const double own = ((double)x[j] - mean) * scale, w = (double)rows->parameters[0][j];
            sum += w * (double)g[j] / (double)n;
            product += w * (double)g[j] * own / (double)n;
            rows->parameter_gradients[0][j] += (float)((double)g[j] * own);
            rows->parameter_gradients[1][j] += g[j];
        }
        for (int64_t j = 0; j < n; j++)
            rows->input_gradient[r * n + j] =
                (float)(scale * ((double)(rows->parameters[0][j] * g[j]) - sum -
                                 ((double)x[j] - mean) * scale * product));
    }
}

SL_TEST(test_norm)
{
    static const struct starling_layer norm = {.vectors = {"weight", "bias"},
                                               .start = {1.0f, 0.0f},
                                               .forward = norm_forward,
                                               .backward = norm_backward};
    static const char *const own[] = {"model", "resgcn", "layers",     "2",    "hidden", "10",
                                      "tiles", "3",      "block-norm", "norm", NULL},
                             *const row[] = {"model", "resgcn", "layers",     "2",   "hidden", "10",
                                             "tiles", "3",      "block-norm", "row", NULL};
    struct trained a, b;
    starling_graph *graph = make_graph(STARLING_CLASSES);
    assert_int_equal(starling_layer_register("norm", &norm), 0);
    train(graph, own, &a);
    train(graph, row, &b);
    expect_same(&a, &b);
    starling_graph_free(graph);
}

/* The gate, with something added to one of its parameters in each layer. */
struct nudge {
    int parameter;
    int64_t entry;
    float by;
};

static void nudged_forward(void *context, const struct starling_layer_rows *rows)
{
    const struct nudge *nudge = context;
    const int64_t n = rows->columns;
    float *copy = malloc((size_t)(n * n + n) * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, rows->parameters[W], (size_t)(n * n) * sizeof *copy);
    memcpy(copy + n * n, rows->parameters[B], (size_t)n * sizeof *copy);
    copy[(nudge->parameter == B ? n * n : 0) + nudge->entry] += nudge->by;
    const float *const parameters[] = {copy, copy + n * n};
    struct starling_layer_rows with = *rows;
    with.parameters = parameters;
    forward(NULL, &with);
    free(copy);
}

/* The sum over the layers of one weight; or the loss of the first epoch. */
static double train_nudged(starling_graph *graph, struct nudge nudge, const char *rate, bool loss)
{
    const struct starling_layer layer = {.matrices = {"gate"},
                                         .vectors = {"bias"},
                                         .start = {0.25f},
                                         .forward = nudged_forward,
                                         .backward = backward,
                                         .context = &nudge};
    const char *const words[][2] = {
        {"model", "resgcn"}, {"block-norm", "nudged"}, {"layers", "2"},      {"hidden", "5"},
        {"epochs", "1"},     {"tiles", "3"},           {"optimizer", "sgd"}, {"momentum", "0"},
        {"dropout", "0"},    {"weight-decay", "0"},    {"eval-every", "-1"}, {"lr", rate}};
    static const char *const names[] = {"layer.1.gate", "layer.3.gate", "layer.5.gate",
                                        "layer.1.bias", "layer.3.bias", "layer.5.bias"};
    double sum = 0.0;
    starling_options *options;
    starling_model *model;
    assert_int_equal(starling_layer_register("nudged", &layer), 0);
    assert_int_equal(starling_options_create(&options), 0);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        assert_int_equal(starling_options_set(options, words[w][0], words[w][1]), 0);
    if (starling_train(graph, options, NULL, NULL, &model))
        fail_msg("%s", starling_error());
    for (int l = 0; l < 3; l++) {
        const float *weight =
            starling_model_find(model, names[3 * (nudge.parameter == B) + l], NULL, NULL);
        assert_non_null(weight);
        sum += (double)weight[nudge.entry];
    }
    if (loss)
        sum = starling_model_result(model)->loss;
    starling_model_free(model);
    starling_options_free(options);
    return sum;
}

/* Through the whole network: a step of plain descent against differences of its loss. */
SL_TEST(test_gradient_in_network)
{
    static const float step = 2e-3f;
    double largest = 0.0;
    starling_graph *graph = make_graph(STARLING_CLASSES);
    for (int k = 0; k < 6; k++) {
        struct nudge nudge = {k % 2 ? B : W, k % 2 ? k - 1 : 4 * k + 1, 0.0f};
        const double gradient =
            (train_nudged(graph, nudge, "0", false) - train_nudged(graph, nudge, "0.25", false)) /
            0.25;
        nudge.by = step;
        const double up = train_nudged(graph, nudge, "0", true);
        nudge.by = -step;
        const double difference =
            (up - train_nudged(graph, nudge, "0", true)) / (2.0 * (double)step);
        if (!(fabs(difference - gradient) <= 5e-5))
            fail_msg("parameter %d, entry %d: %g, not %g", nudge.parameter, (int)nudge.entry,
                     gradient, difference);
        largest = fmax(largest, fabs(gradient));
    }
    assert_true(largest > 5e-3);
    starling_graph_free(graph);
}

SL_TEST(test_layer_refusals)
{
    static const char *const absent[] = {"model", "resgcn", "block-norm", "absent", NULL},
                             *const cut[] = {"model",     "resgcn", "block-norm", "fine",
                                             "submodels", "2",      NULL};
    const struct starling_layer
        fine = {.vectors = {"a"}, .forward = forward, .backward = backward},
        bare = {.forward = forward, .backward = backward}, half = {.forward = forward},
        twins = {.matrices = {"a", "a"}, .forward = forward, .backward = backward},
        spaced = {.vectors = {"a b"}, .forward = forward, .backward = backward},
        many = {.matrices = {"a", "b", "c"}, .forward = forward, .backward = backward};
    struct trained trained;
    starling_graph *graph = make_graph(STARLING_CLASSES);
    refuse(starling_layer_register("half", &half), "NULL");
    refuse(starling_layer_register("none", NULL), "NULL");
    refuse(starling_layer_register("bare", &bare), "has no parameters");
    refuse(starling_layer_register("batch", &fine), "taken");
    refuse(starling_layer_register("twins", &twins), "two parameters are \"a\"");
    refuse(starling_layer_register("spaced", &spaced), "\"a b\"");
    refuse(starling_layer_register("many", &many), "too many parameters");
    refuse(try_training(graph, absent, &trained), "--block-norm: expected one of: row batch");
    assert_int_equal(starling_layer_register("fine", &fine), 0);
    refuse(try_training(graph, cut, &trained), "--submodels 2: --block-norm fine");
    starling_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_layer),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_gradient_in_network),
        cmocka_unit_test(test_layer_refusals),
    };
    const int failed = cmocka_run_group_tests(tests, make_arrays, NULL);
    starling_finish();
    return failed;
}
