/* Two networks on two graphs train one model in turn. The parameters have the same bits as after
 * runs of one epoch each, with a checkpoint between a run on one dataset and on the other. */
#include <unistd.h>

#include "codelets/optimizer.h"
#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

enum { EPOCHS = 7 };

static const struct sl_fixture fixtures[2] = {
    {SL_FIXTURE("one", 83, 19, 5, 4), .isolated = 3, .form = SL_FEATURES_CSR, .seed = 71},
    {SL_FIXTURE("other", 131, 19, 5, 7), .directed = true, .weighted = true,
     .form = SL_FEATURES_DENSE, .seed = 72},
};

/* The order of products is given: by cost, it might be another one on each graph. */
static const char *const models[] = {
    "--model gcn --product-order gemm",
    "--model sage --aggregator mean --product-order gemm --layers 3",
    "--model sage --aggregator max --optimizer sgd --lr 0.05",
};

static void line_of(const char *model, int epochs, char line[SL_MOST_LINE])
{
    snprintf(line, SL_MOST_LINE,
             "%s --hidden 9 --dropout 0.4 --lr 0.02 --weight-decay 1e-3 --patience 0 --tiles 3 "
             "--seed 5 --epochs %d",
             model, epochs);
}

/* ---- Hand over ---- */

static struct sl_run hand_over(const struct sl_dataset *data, const char *model)
{
    const char *path = sl_running_path("handed");
    struct sl_run run = {0};
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        char line[SL_MOST_LINE];
        line_of(model, epoch, line);
        if (epoch > 1)
            sl_run_free(&run);
        run = sl_run_train(&data[epoch % 2], line,
                           &(struct sl_around){.save = path, .resume = epoch > 1 ? path : NULL});
        assert_int_equal(run.first, epoch);
    }
    unlink(path);
    return run;
}

/* ---- Shared ---- */

static struct sl_optimizer_step step_of(const struct sl_config *config, int epoch)
{
    const float beta1 = 0.9f, beta2 = 0.999f;
    return (struct sl_optimizer_step){
        .method = config->training.optimizer,
        .rate = (float)config->training.lr,
        .momentum = (float)config->training.momentum,
        .beta1 = beta1,
        .beta2 = beta2,
        .epsilon = 1e-8f,
        .correction1 = (float)(1.0 - pow((double)beta1, (double)epoch)),
        .correction2 = (float)(1.0 - pow((double)beta2, (double)epoch)),
    };
}

static void compare(struct sl_model *model, const struct sl_run *expected, const char *what)
{
    int64_t at = 0;
    for (int l = 0; l < model->layers; l++) {
        struct sl_tile *tile = &model->layer[l].parameters;
        const int64_t count = tile->rows * tile->cols;
        const float *got = sl_tile_acquire(&sl_running, tile, false);
        assert_true(at + count <= expected->count);
        if (memcmp(got, expected->parameters + at, (size_t)count * sizeof *got) != 0)
            fail_msg("%s: other parameters of layer %d", what, l);
        sl_tile_release(tile);
        at += count;
    }
    assert_int_equal(at, expected->count);
}

/* The second graph gets a network of its own on the model of the first one's trainer. */
static void train_shared(const struct sl_dataset *data, const char *words,
                         const struct sl_run *expected)
{
    struct sl_source source[2];
    struct sl_trainer trainer[2];
    char line[SL_MOST_LINE];
    line_of(words, EPOCHS, line);
    struct sl_config config = sl_run_parse(line);
    for (int g = 0; g < 2; g++) {
        assert_int_equal(sl_source_of(&data[g], &source[g]), 0);
        assert_int_equal(sl_trainer_create(&trainer[g], &sl_running, &source[g], &config, NULL), 0);
    }
    struct sl_model *model = &trainer[0].model;
    struct sl_network second = {.rt = &sl_running,
                                .graph = &trainer[1].whole.graph,
                                .model = model,
                                .rates = &trainer[1].core};
    assert_int_equal(sl_network_create(&second, sl_config_product_order(&config), NULL), 0);
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        struct sl_network *net = epoch % 2 ? &second : &trainer[0].whole.network;
        const struct sl_optimizer_step step = step_of(&config, epoch);
        net->step.epoch = net->step.update = (uint32_t)epoch;
        sl_network_train(net, &step); /* the next one is submitted while it runs */
    }
    compare(model, expected, words);
    sl_network_destroy(&second);
    for (int g = 0; g < 2; g++) {
        sl_trainer_destroy(&trainer[g]);
        sl_source_close(&source[g]);
    }
    sl_options_free(sl_config_options, &config);
}

SL_TEST(test_two_graphs)
{
    struct sl_dataset data[2] = {sl_fixture_open(&fixtures[0]), sl_fixture_open(&fixtures[1])};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct sl_run expected = hand_over(data, models[m]);
        train_shared(data, models[m], &expected);
        sl_run_free(&expected);
    }
    for (int g = 0; g < 2; g++)
        sl_fixture_close(&data[g]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_graphs)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
