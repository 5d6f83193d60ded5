/* Layers whose parameters have a number of optimizer steps each: training takes the numbers, and
 * the memory plan has them. The kernel has a test of its own (test_kernels_optimizer.c). */
#include "codelets/optimizer.h"
#include "predict/plan.h"
#include "tests/fixtures.h"
#include "tests/kernels.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

enum { LAYERS = 3, ROUNDS = 2, STEPS = 3 };

static const struct sl_fixture fixture = {SL_FIXTURE("counts", 67, 13, 5, 5),
                                          .form = SL_FEATURES_DENSE, .seed = 31};

static const int64_t widths[LAYERS + 1] = {13, 9, 7, 5};

/* The middle layer has counts. */
static bool is_counted(int l)
{
    return l == 1;
}

static void create_model(struct sl_model *model, int states, bool counts)
{
    const struct sl_model_options options = {.layers = LAYERS, .states = states, .seed = 1};
    assert_int_equal(sl_model_open(model, &sl_running, &options), 0);
    for (int l = 0; l < LAYERS; l++) {
        const struct sl_layer_shape shape = {.kind = &sl_layer_sage,
                                             .reducer = &sl_reduce_sum,
                                             .in = widths[l],
                                             .out = widths[l + 1],
                                             .bias = true,
                                             .decay = 1e-3f,
                                             .counted = counts && is_counted(l)};
        assert_int_equal(sl_model_add(model, &shape), 0);
    }
    for (int l = 0; l < LAYERS; l++)
        sl_model_init_rows(model, l, 0, &model->layer[l].parameters);
    sl_model_spread(model);
}

/* ---- Copies ---- */

/* A layer's parameters, state and counts, as the kernel takes them. */
struct copy {
    int64_t count;
    float *w, *m, *v, *counts;
};

static float *copy_of(struct sl_tile *tile)
{
    const size_t bytes = (size_t)sl_tile_bytes(tile);
    float *copy = malloc(bytes + 1);
    assert_non_null(copy);
    assert_int_equal(tile->ld, tile->cols);
    memcpy(copy, sl_tile_acquire(&sl_running, tile, false), bytes);
    sl_tile_release(tile);
    return copy;
}

static struct copy copy_layer(struct sl_model_layer *layer, bool two)
{
    struct sl_tile *w = &layer->parameters, *counts = &layer->counts;
    return (struct copy){
        .count = w->rows * w->cols,
        .w = copy_of(w),
        .m = copy_of(&layer->state[0]),
        .v = two ? copy_of(&layer->state[1]) : NULL,
        .counts = counts->rows ? copy_of(counts) : NULL,
    };
}

static void free_copy(struct copy *copy)
{
    free(copy->w);
    free(copy->m);
    free(copy->v);
    free(copy->counts);
}

static void expect_same(struct sl_tile *tile, const float *copy, const char *what, int layer)
{
    const float *got = sl_tile_acquire(&sl_running, tile, false);
    if (copy && memcmp(got, copy, (size_t)sl_tile_bytes(tile)) != 0)
        fail_msg("%s of layer %d: other bits than the kernel's", what, layer + 1);
    sl_tile_release(tile);
}

/* ---- Training ---- */

/* Between rounds each parameter goes to a sub-model with another past. */
static void set_counts(struct sl_tile *tile)
{
    float *counts = sl_tile_acquire(&sl_running, tile, true);
    for (int64_t i = 0; i < tile->rows * tile->cols; i++)
        counts[i] = (float)sl_random_below(sl_random_below(2) ? 5 : 100000);
    sl_tile_release(tile);
}

/* Train a step, and make it of the copies with the same gradient. */
static void check_step(struct sl_network *net, const struct sl_optimizer_step *step)
{
    const bool two = sl_optimizer_states(step->method) > 1;
    struct copy copy[LAYERS];
    for (int l = 0; l < LAYERS; l++)
        copy[l] = copy_layer(&net->model->layer[l], two);
    sl_network_train(net, step);
    for (int l = 0; l < LAYERS; l++) {
        struct sl_model_layer *layer = &net->model->layer[l];
        struct sl_optimizer_step own = *step;
        own.decay = layer->shape.decay;
        float *g = copy_of(net->layer[l].back.summed);
        sl_kernel_optimizer(&own, copy[l].count, copy[l].counts, g, copy[l].w, copy[l].m,
                            copy[l].v);
        expect_same(&layer->parameters, copy[l].w, "parameters", l);
        expect_same(&layer->state[0], copy[l].m, "state", l);
        if (two)
            expect_same(&layer->state[1], copy[l].v, "state", l);
        if (copy[l].counts)
            expect_same(&layer->counts, copy[l].counts, "counts", l);
        free(g);
        free_copy(&copy[l]);
    }
}

static struct sl_optimizer_step step_of(enum sl_optimizer method, int64_t update, int64_t local)
{
    const double beta1 = 0.9, beta2 = 0.999;
    return (struct sl_optimizer_step){
        .method = method,
        .rate = 0.01f,
        .momentum = 0.9f,
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .epsilon = 1e-8f,
        .correction1 = (float)(1.0 - pow(beta1, (double)update)),
        .correction2 = (float)(1.0 - pow(beta2, (double)update)),
        .local = local,
    };
}

struct case_of_training {
    struct sl_dataset data;
    struct sl_opened run; /* its graph is used, its model is not */
};

static void open_case(struct case_of_training *of)
{
    of->data = sl_fixture_open(&fixture);
    sl_opened_open(&of->run, &of->data, sl_run_parse("--model sage --hidden 9 --tiles 2"));
}

static void close_case(struct case_of_training *of)
{
    sl_opened_close(&of->run);
    sl_fixture_close(&of->data);
}

static struct sl_network network_of(struct case_of_training *of, struct sl_model *model)
{
    struct sl_network net = {
        .rt = &sl_running, .graph = &of->run.trainer.whole.graph, .model = model};
    assert_int_equal(sl_network_create(&net, sl_config_product_order(&of->run.config), NULL), 0);
    return net;
}

/* Every parameter of the counted layer has its own number of steps, and the steps of the round. */
SL_TEST(test_training)
{
    static const enum sl_optimizer methods[] = {SL_ADAM, SL_ADAMW, SL_SGD};
    struct case_of_training of;
    open_case(&of);
    sl_random_seed(9);
    for (size_t m = 0; m < SL_COUNT(methods); m++) {
        struct sl_model model;
        create_model(&model, sl_optimizer_states(methods[m]), true);
        struct sl_network net = network_of(&of, &model);
        for (int64_t update = 0; update < ROUNDS * STEPS; update++) {
            if (update % STEPS == 0)
                set_counts(&model.layer[1].counts);
            const struct sl_optimizer_step step =
                step_of(methods[m], update + 1, update % STEPS + 1);
            net.step.epoch = net.step.update = (uint32_t)update + 1;
            check_step(&net, &step);
        }
        sl_network_destroy(&net);
        sl_model_destroy(&model);
    }
    close_case(&of);
}

/* ---- Memory ---- */

/* Counts start from 0, and are planned with the parameters. */
SL_TEST(test_memory)
{
    struct case_of_training of;
    int64_t bytes[2], counts = 0;
    open_case(&of);
    for (int counted = 0; counted < 2; counted++) {
        struct sl_model model;
        struct sl_plan plan = {0};
        create_model(&model, 2, counted);
        for (int l = 0; l < LAYERS; l++) {
            struct sl_tile *tile = &model.layer[l].counts, *w = &model.layer[l].parameters;
            const bool there = counted && is_counted(l);
            assert_int_equal(tile->rows, there ? w->rows : 0);
            assert_int_equal(tile->cols, there ? w->cols : 0);
            for (int64_t i = 0; there && i < tile->rows * tile->cols; i++)
                assert_true(((const float *)tile->memory)[i] == 0.0f);
            counts += sl_tile_bytes(tile);
        }
        struct sl_network net = network_of(&of, &model);
        sl_plan_add_network(&net, &plan);
        bytes[counted] = plan.bytes[SL_PLAN_PARAMETERS];
        sl_network_destroy(&net);
        sl_model_destroy(&model);
    }
    assert_int_equal(counts, 4 * (2 * widths[1] + 1) * widths[2]);
    assert_int_equal(bytes[1] - bytes[0], counts);
    close_case(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_training),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
