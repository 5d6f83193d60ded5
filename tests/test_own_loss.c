/* Losses that a program brings: the gradient of the example against central differences; the
 * library's own losses, brought by a program, against the library's; refusals. Linked with the
 * shared library alone. tests/library.sh runs the example on 1 and 2 ranks, and tests/every_loss.c
 * has such a loss on every distribution. */
#include "tests/own_run.h"

int own_loss_example(int argc, char **argv);
#define main own_loss_example
#include "examples/own_loss.c"
#undef main

/* The gradient of each row against differences of its loss in float logits. */
SL_TEST(test_gradient_of_example)
{
    enum { ROWS = 20, WIDTH = 5 };
    static const float step = 1e-2f;
    float z[ROWS * WIDTH], gradient[ROWS * WIDTH], none[ROWS * WIDTH];
    int32_t class[ROWS];
    double loss[ROWS], up[ROWS], down[ROWS], focus = 2.0;
    struct starling_loss_rows rows = {
        .rows = ROWS, .columns = WIDTH, .logits = z, .classes = class, .loss = loss};
    for (int k = 0; k < ROWS * WIDTH; k++)
        z[k] = 4.0f * drawn(k, 17) - 2.0f;
    for (int r = 0; r < ROWS; r++)
        class[r] = r % WIDTH;
    rows.gradient = gradient;
    focal_loss(&focus, &rows);
    rows.gradient = none;
    for (int j = 0; j < WIDTH; j++) {
        for (int side = 1; side >= -1; side -= 2) {
            rows.loss = side > 0 ? up : down;
            for (int r = 0; r < ROWS; r++)
                z[r * WIDTH + j] += (float)side * step;
            focal_loss(&focus, &rows);
            for (int r = 0; r < ROWS; r++)
                z[r * WIDTH + j] -= (float)side * step;
        }
        for (int r = 0; r < ROWS; r++) {
            const double difference = (up[r] - down[r]) / (2.0 * (double)step);
            if (!(fabs(difference - (double)gradient[r * WIDTH + j]) <= 2e-4))
                fail_msg("row %d, column %d: %g, not %g", r, j, (double)gradient[r * WIDTH + j],
                         difference);
        }
    }
}

/* The focal loss without focus, which is --loss cross-entropy. */
SL_TEST(test_classes)
{
    static const char *const own[] = {"loss", "plain", "tiles", "3", NULL};
    static const char *const builtin[] = {"tiles", "3", NULL};
    static double none;
    struct trained a, b;
    starling_graph *graph = make_graph(STARLING_CLASSES);
    assert_int_equal(starling_loss_register("plain", STARLING_CLASSES, focal_loss, &none), 0);
    train(graph, own, &a);
    train(graph, builtin, &b);
    expect_same(&a, &b);
    assert_string_equal(a.result.metric, "accuracy");
    starling_graph_free(graph);
}

/* The loss of --loss sigmoid, with column means. */
static void entropy(void *context, const struct starling_loss_rows *rows)
{
    (void)context;
    assert_null(rows->classes);
    for (int64_t k = 0; k < rows->rows * rows->columns; k++) {
        const double z = (double)rows->logits[k], y = (double)rows->labels[k];
        if (isnan(y))
            continue;
        rows->loss[k / rows->columns] += (log1p(exp(z)) - y * z) / (double)rows->columns;
        if (rows->gradient)
            rows->gradient[k] = (float)((1.0 / (1.0 + exp(-z)) - y) / (double)rows->columns);
    }
}

/* The loss of --loss mse. */
static void squares(void *context, const struct starling_loss_rows *rows)
{
    (void)context;
    for (int64_t k = 0; k < rows->rows * rows->columns; k++) {
        const double apart = (double)rows->logits[k] - (double)rows->labels[k];
        if (isnan(apart))
            continue;
        rows->loss[k / rows->columns] += apart * apart / (double)rows->columns;
        if (rows->gradient)
            rows->gradient[k] = (float)(2.0 * apart / (double)rows->columns);
    }
}

SL_TEST(test_labels_and_numbers)
{
    static const char *const own[] = {"loss", "entropy", NULL}, *const none[] = {NULL},
                             *const of_numbers[] = {"loss", "squares", NULL},
                             *const sigmoid[] = {"loss", "sigmoid", NULL};
    struct trained a, b;
    starling_graph *several = make_graph(STARLING_LABELS),
                   *regression = make_graph(STARLING_NUMBERS), *one = make_graph(STARLING_CLASSES);
    assert_int_equal(starling_loss_register("entropy", STARLING_LABELS, entropy, NULL), 0);
    assert_int_equal(starling_loss_register("squares", STARLING_NUMBERS, squares, NULL), 0);
    train(several, own, &a);
    train(several, none, &b);
    expect_same(&a, &b);
    train(one, own, &a);
    train(one, sigmoid, &b);
    expect_same(&a, &b);
    train(regression, of_numbers, &a);
    train(regression, none, &b);
    expect_same(&a, &b);
    refuse(try_training(regression, own, &a), "--loss entropy: graph has numbers to predict");
    starling_graph_free(several);
    starling_graph_free(regression);
    starling_graph_free(one);
}

/* Rows are those of the vertices that they name, in any order of vertices. */
static void look_at_vertices(void *context, const struct starling_loss_rows *rows)
{
    int *const wrong = context;
    for (int64_t r = 0; r < rows->rows; r++)
        *wrong += rows->vertex[r] < 0 || rows->vertex[r] >= N ||
                  classes[rows->vertex[r]] != rows->classes[r] ||
                  (rows->gradient && !split[0][rows->vertex[r]]);
}

SL_TEST(test_vertices)
{
    static const char *const words[] = {"loss", "look", "order", "rcm", "workers", "1", NULL};
    int wrong = 0;
    struct trained trained;
    starling_graph *graph = make_graph(STARLING_CLASSES);
    assert_int_equal(starling_loss_register("look", STARLING_CLASSES, look_at_vertices, &wrong), 0);
    train(graph, words, &trained);
    assert_int_equal(wrong, 0);
    assert_true(trained.loss[0] == 0.0);
    starling_graph_free(graph);
}

static void not_finite(void *context, const struct starling_loss_rows *rows)
{
    (void)context;
    rows->loss[0] = NAN;
}

SL_TEST(test_loss_refusals)
{
    static const char *const absent[] = {"loss", "absent", NULL},
                             *const weights[] = {"loss", "bad", "class-weights", "balanced", NULL},
                             *const smooth[] = {"loss", "bad", "label-smoothing", "0.1", NULL},
                             *const bad[] = {"loss", "bad", NULL};
    struct trained trained;
    starling_graph *graph = make_graph(STARLING_CLASSES);
    char name[8] = "many-a";
    refuse(starling_loss_register("Focal", STARLING_CLASSES, entropy, NULL), "a-z");
    refuse(starling_loss_register(NULL, STARLING_CLASSES, entropy, NULL), "a-z");
    refuse(starling_loss_register("a-name-of-more-than-31-characters", STARLING_CLASSES, entropy,
                                  NULL),
           "1 to 31");
    refuse(starling_loss_register("mse", STARLING_CLASSES, entropy, NULL), "taken");
    refuse(starling_loss_register("none", STARLING_CLASSES, NULL, NULL), "NULL");
    refuse(starling_loss_register("none", (enum starling_labels)7, entropy, NULL), "labels 7");
    assert_int_equal(starling_loss_register("bad", STARLING_CLASSES, not_finite, NULL), 0);
    refuse(try_training(graph, absent, &trained), "--loss: expected one of: auto cross-entropy");
    refuse(try_training(graph, weights, &trained), "--loss bad has no weights");
    refuse(try_training(graph, smooth, &trained), "--loss bad has no smooth labels");
    assert_int_equal(try_training(graph, bad, &trained), STARLING_ERR_DATA);
    if (!strstr(starling_error(), "finite numbers of --loss bad"))
        fail_msg("%s", starling_error());
    while (!starling_loss_register(name, STARLING_CLASSES, entropy, NULL) && name[5] < 'z')
        name[5]++;
    assert_non_null(strstr(starling_error(), "too many"));
    assert_int_equal(starling_loss_register("bad", STARLING_CLASSES, entropy, NULL), 0);
    starling_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_example), cmocka_unit_test(test_classes),
        cmocka_unit_test(test_labels_and_numbers),  cmocka_unit_test(test_vertices),
        cmocka_unit_test(test_loss_refusals),
    };
    const int failed = cmocka_run_group_tests(tests, make_arrays, NULL);
    starling_finish();
    return failed;
}
