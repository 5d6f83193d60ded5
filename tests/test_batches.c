/* With weights held, gradients of batches add up to the gradient of the whole graph. Every vertex
 * is inner in one batch of an epoch. The order of clusters, and dropout of each step, follow from
 * the seed. */
#include "codelets/record.h"
#include "core/error.h"
#include "core/handle.h"
#include "tests/batch_run.h"

static const double TOLERANCE = 1e-5; /* of the largest number of a layer's gradient */

static double loss_of(struct sl_network *net)
{
    struct sl_tile *total = sl_network_total(net);
    const double *metrics = sl_tile_acquire(&sl_running, total, false);
    const double loss = metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN];
    sl_tile_release(total);
    return loss;
}

/* ---- Gradients ---- */

enum { MOST_LAYERS = 32, MOST_STEPS = 16 };

/* Submit copies of the gradients: the next step takes their memory. */
static struct sl_tile *copy_gradients(const struct sl_network *net)
{
    struct sl_tile *copy = calloc(MOST_LAYERS, sizeof *copy);
    assert_true(net->layers <= MOST_LAYERS);
    for (int l = 0; l < net->layers; l++) {
        struct sl_tile *tile = net->layer[l].back.summed;
        if (!tile)
            continue;
        assert_int_equal(
            sl_tile_create(&sl_running, &copy[l], tile->rows, tile->cols, sizeof(float), 0), 0);
        sl_submit_copy(&sl_running, tile, &copy[l]);
    }
    return copy;
}

static void free_gradients(struct sl_tile *copy)
{
    for (int l = 0; l < MOST_LAYERS; l++)
        sl_tile_destroy(&copy[l]);
    free(copy);
}

/* sum[l] += share · the gradient of layer l, which gradient[l] holds; without rows: there is none.
 */
static void add_gradients(struct sl_tile *gradient, double share, double *sum[MOST_LAYERS])
{
    for (int l = 0; l < MOST_LAYERS; l++) {
        struct sl_tile *tile = &gradient[l];
        if (!tile->rows)
            continue;
        const float *g = sl_tile_acquire(&sl_running, tile, false);
        if (!sum[l])
            sum[l] = calloc((size_t)(tile->rows * tile->cols) + 1, sizeof *sum[l]);
        for (int64_t r = 0; r < tile->rows; r++)
            for (int64_t c = 0; c < tile->cols; c++)
                sum[l][r * tile->cols + c] += share * (double)g[r * tile->ld + c];
        sl_tile_release(tile);
    }
}

static void compare_gradients(const struct sl_network *net, double *const seen[MOST_LAYERS],
                              double *const wanted[MOST_LAYERS], const char *what)
{
    for (int l = 0; l < net->layers; l++) {
        double largest = 0.0, worst = 0.0;
        if (!wanted[l])
            continue;
        const struct sl_tile *tile = net->layer[l].back.summed;
        for (int64_t i = 0; i < tile->rows * tile->cols; i++) {
            largest = fmax(largest, fabs(wanted[l][i]));
            worst = fmax(worst, fabs(seen[l][i] - wanted[l][i]));
        }
        if (!(largest > 0.0 && worst <= TOLERANCE * largest))
            fail_msg("%s, layer %d: off by %.3g of %.3g", what, l + 1, worst, largest);
    }
}

/* All steps are submitted before one is read: batches that share memory wait for each other. */
static void add_steps(struct sl_opened *run, double *sum[MOST_LAYERS])
{
    struct sl_network *net[MOST_STEPS];
    struct sl_tile *copy[MOST_STEPS];
    const int steps = run->trainer.batches.steps;
    const double all = (double)run->trainer.whole.graph.train_count;
    int64_t counted = 0;
    assert_true(steps <= MOST_STEPS);
    for (int s = 0; s < steps; s++) {
        net[s] = step(run, 1, s, 1);
        copy[s] = net[s] ? copy_gradients(net[s]) : NULL;
    }
    for (int s = 0; s < steps; s++)
        if (net[s]) {
            add_gradients(copy[s], (double)net[s]->graph->train_count / all, sum);
            counted += net[s]->graph->train_count;
            free_gradients(copy[s]);
        }
    assert_int_equal(counted, run->trainer.whole.graph.train_count);
}

/* A network that evaluates keeps a matrix until its last reader has read it; a network that trains
 * keeps all. */
static void compare_evaluations(struct sl_opened *full, struct sl_opened *run, const char *what)
{
    struct sl_network *net[] = {&full->trainer.whole.network, &run->trainer.whole.network};
    double loss[2];
    assert_true(!net[0]->evaluates && net[1]->evaluates);
    for (int k = 0; k < 2; k++) {
        sl_network_evaluate(net[k]);
        loss[k] = loss_of(net[k]);
    }
    if (!(fabs(loss[1] - loss[0]) <= TOLERANCE * loss[0]))
        fail_msg("%s: an evaluation has the loss %.9g, expected %.9g", what, loss[1], loss[0]);
}

static void check_gradients(const struct sl_dataset *data, const char *model, const char *batches)
{
    struct sl_opened full, run;
    double *wanted[MOST_LAYERS] = {NULL}, *seen[MOST_LAYERS] = {NULL};
    char what[SL_MOST_LINE];
    snprintf(what, sizeof what, "%s, %s --batches %s", data->name, model, batches);
    open_run(&full, data, model, "full");
    open_run(&run, data, model, batches);
    struct sl_network *net = step(&full, 1, 0, 1);
    struct sl_tile *copy = copy_gradients(net);
    add_gradients(copy, 1.0, wanted);
    free_gradients(copy);
    add_steps(&run, seen);
    compare_gradients(net, seen, wanted, what);
    compare_evaluations(&full, &run, what);
    for (int l = 0; l < MOST_LAYERS; l++) {
        free(wanted[l]);
        free(seen[l]);
    }
    sl_opened_close(&run);
    sl_opened_close(&full);
}

SL_TEST(test_gradients_add_up)
{
    static const char *const models[] = {
        "--model gcn --layers 3 --dropout 0",
        "--model gcn --layers 2 --dropout 0 --no-cache-aggregate --normalize-features l1",
        "--model sage --aggregator mean --layers 3 --dropout 0",
        "--model sage --aggregator max --layers 3 --dropout 0",
        "--model gat --heads 2 --hidden 4 --layers 2 --dropout 0 --attention-dropout 0",
        "--model resgcn --layers 3 --block-norm row --dropout 0",
        "--model resgcn --layers 2 --block-aggregator mean --dropout 0",
        "--model jknet --layers 3 --dropout 0",
        "--model gcn --layers 3 --jump max --dropout 0",
    };
    for (int f = 0; f < FIXTURES; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
            check_gradients(&data, models[m], "co:4");
            check_gradients(&data, models[m], "co:7");
        }
        sl_fixture_close(&data);
    }
}

/* Needed rows: the step has the training vertices and no row that they do not depend on. Copies of
 * the fixtures have the first three training vertices alone. */
SL_TEST(test_needed_rows)
{
    static const char *const models[] = {
        "--model gcn --layers 2 --dropout 0",
        "--model gcn --layers 3 --dropout 0 --product-order spmm",
        "--model sage --aggregator mean --layers 2 --dropout 0",
        "--model sage --aggregator min --layers 2 --dropout 0",
        "--model gat --heads 2 --hidden 4 --layers 2 --dropout 0 --attention-dropout 0",
        "--model resgcn --layers 2 --block-norm row --dropout 0",
    };
    for (int f = 0; f < FIXTURES; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        const int64_t count = data.train.count;
        data.train.count = count < 3 ? count : 3;
        for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
            struct sl_opened run;
            check_gradients(&data, models[m], "full --rows needed");
            check_gradients(&data, models[m], "full --rows needed --tiles 5");
            open_run(&run, &data, models[m], "full --rows needed");
            const struct sl_batch *batch = &run.trainer.batches.batch[0];
            assert_int_equal(batch->inner, data.train.count);
            assert_true(batch->entries < run.trainer.whole.operands.entries);
            sl_opened_close(&run);
        }
        data.train.count = count;
        sl_fixture_close(&data);
    }
}

/* ---- Vertices ---- */

/* count[v] += 1 for each inner vertex v. Return a sum that tells sets of vertices apart. */
static double count_inner(struct sl_network *net, int *count)
{
    const struct sl_graph *graph = net->graph;
    double sum = 0.0;
    for (int t = 0; t < graph->distribution->tiles; t++) {
        struct sl_tile *scales = &graph->scales[0][t];
        const int64_t rows = graph->distribution->row_cut[t + 1] - graph->distribution->row_cut[t];
        const float *scale = sl_tile_acquire(&sl_running, scales, false);
        for (int64_t r = 0; r < rows; r++) {
            const uint32_t v = ((const uint32_t *)scale)[SL_ROW_VERTEX * rows + r];
            const bool root = scale[SL_ROW_ROOT * rows + r] > 0.0f;
            count[v] += root;
            sum += root ? sqrt((double)v + 1.0) : 0.0;
        }
        sl_tile_release(scales);
    }
    return sum;
}

/* Each labelled training vertex is in the batches' counts once, and each vertex is inner once,
 * unless its batch has no training vertex and is left out. */
static void check_epoch(struct sl_opened *run, int64_t epoch, double *sets)
{
    struct sl_batches *b = &run->trainer.batches;
    const int64_t n = run->source.vertices;
    int *count = calloc((size_t)n + 1, sizeof *count);
    int64_t train = 0, left_out = 0;
    for (int s = 0; s < b->steps; s++) {
        struct sl_network *net = step(run, epoch, s, 1);
        sets[s] = net ? count_inner(net, count) : 0.0;
        train += net ? net->graph->train_count : 0;
        for (int k = 0; !net && k < b->count; k++)
            left_out += b->batch[k].pass.graph.train_count == 0 ? b->batch[k].inner : 0;
    }
    assert_int_equal(train, run->trainer.whole.graph.train_count);
    for (int64_t v = 0; v < n; v++) {
        assert_true(count[v] <= 1);
        left_out -= count[v] == 0;
    }
    assert_true(left_out >= 0);
    free(count);
}

SL_TEST(test_each_vertex_once)
{
    static const char *const batches[] = {"co:1",           "co:4",           "co:6 --max-hop 1",
                                          "clusters:6,2",   "clusters:7,3",   "clusters:5,1",
                                          "clusters:12,12", "clusters:12,11", "co:5 --max-hop 0"};
    double sets[MOST_STEPS];
    for (int f = 0; f < FIXTURES; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
            struct sl_opened run;
            open_run(&run, &data, "--dropout 0", batches[k]);
            for (int64_t epoch = 1; epoch <= 3; epoch++)
                check_epoch(&run, epoch, sets);
            sl_opened_close(&run);
        }
        sl_fixture_close(&data);
    }
}

/* The sets of three epochs. */
static void list_sets(const struct sl_dataset *data, const char *model, const char *batches,
                      double sets[3][MOST_STEPS])
{
    struct sl_opened run;
    open_run(&run, data, model, batches);
    for (int64_t epoch = 1; epoch <= 3; epoch++)
        check_epoch(&run, epoch, sets[epoch - 1]);
    sl_opened_close(&run);
}

SL_TEST(test_order_of_sets)
{
    static const char *const batches[] = {"clusters:12,3", "clusters:10,1", "co:8"};
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
        double one[3][MOST_STEPS] = {{0}}, again[3][MOST_STEPS] = {{0}},
               other[3][MOST_STEPS] = {{0}};
        list_sets(&data, "--seed 3", batches[k], one);
        list_sets(&data, "--seed 3", batches[k], again);
        list_sets(&data, "--seed 4", batches[k], other);
        assert_memory_equal(one, again, sizeof one);
        assert_memory_not_equal(one, other, sizeof one);
        assert_memory_not_equal(one[0], one[1], sizeof one[0]);
        assert_memory_not_equal(one[1], one[2], sizeof one[0]);
    }
    sl_fixture_close(&data);
}

/* ---- Dropout ---- */

/* Updates of one epoch drop other numbers, an update always the same ones. */
SL_TEST(test_dropout_of_updates)
{
    static const char *const models[] = {
        "--dropout 0.5", "--model gat --heads 2 --hidden 4 --dropout 0 --attention-dropout 0.5"};
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    for (int m = 0; m < 2; m++) {
        struct sl_opened run;
        open_run(&run, &data, models[m], "co:2");
        const double first = loss_of(step(&run, 1, 0, 1)), second = loss_of(step(&run, 1, 0, 2)),
                     again = loss_of(step(&run, 1, 0, 1));
        assert_true(first == again);
        assert_true(first != second);
        sl_opened_close(&run);
    }
    sl_fixture_close(&data);
}

/* ---- Updates ---- */

static struct sl_optimizer_step adam_step(const struct sl_config *config, int update)
{
    const float beta1 = 0.9f, beta2 = 0.999f;
    return (struct sl_optimizer_step){
        .method = config->training.optimizer,
        .rate = (float)config->training.lr,
        .beta1 = beta1,
        .beta2 = beta2,
        .epsilon = 1e-8f,
        .correction1 = (float)(1.0 - pow((double)beta1, (double)update)),
        .correction2 = (float)(1.0 - pow((double)beta2, (double)update)),
    };
}

/* Updates are counted over all epochs, for Adam and for dropout. */
static void check_updates(const struct sl_dataset *data, const char *batches)
{
    enum { EPOCHS = 3 };
    char line[SL_MOST_LINE];
    struct sl_opened run;
    int update = 0;
    int64_t at = 0;
    snprintf(line, sizeof line, "--hidden 8 --tiles 3 --dropout 0.3 --epochs %d --batches %s",
             EPOCHS, batches);
    struct sl_run wanted = sl_run_train(data, line, &(struct sl_around){0});
    open_run(&run, data, "--dropout 0.3", batches);
    for (int epoch = 1; epoch <= EPOCHS; epoch++)
        for (int s = 0; s < run.trainer.batches.steps; s++) {
            struct sl_network *net = sl_batches_network(&run.trainer.batches, epoch, s, 0);
            const struct sl_optimizer_step step = adam_step(&run.config, ++update);
            net->step.epoch = (uint32_t)epoch;
            net->step.update = (uint32_t)update;
            sl_network_train(net, &step);
        }
    for (int l = 0; l < run.trainer.model.layers; l++) {
        struct sl_tile *tile = &run.trainer.model.layer[l].parameters;
        const int64_t count = tile->rows * tile->cols;
        const float *seen = sl_tile_acquire(&sl_running, tile, false);
        assert_memory_equal(seen, wanted.parameters + at, (size_t)count * sizeof *seen);
        sl_tile_release(tile);
        at += count;
    }
    sl_opened_close(&run);
    sl_run_free(&wanted);
}

SL_TEST(test_updates_are_counted)
{
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    check_updates(&data, "co:3");
    check_updates(&data, "clusters:6,2");
    sl_fixture_close(&data);
}

/* The loss of an epoch is the mean over the training vertices of all its steps. */
SL_TEST(test_loss_of_an_epoch)
{
    static const char *const batches[] = {"co:4", "co:7"};
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    struct sl_run full = sl_run_train(&data, "--epochs 2 --dropout 0 --optimizer sgd --lr 1e-12",
                                      &(struct sl_around){0});
    for (int k = 0; k < 2; k++) {
        char line[SL_MOST_LINE];
        snprintf(line, sizeof line,
                 "--epochs 2 --dropout 0 --optimizer sgd --lr 1e-12 --batches %s", batches[k]);
        struct sl_run run = sl_run_train(&data, line, &(struct sl_around){0});
        sl_run_close(&run, &full, 1e-6, batches[k]);
        sl_run_free(&run);
    }
    sl_run_free(&full);
    sl_fixture_close(&data);
}

/* ---- Handles and tags ---- */

/* The tiles of a batch take the handles and tags of the batches before: a thousand steps register
 * no handle and take no tag after the first steps. */
static void check_steps(const struct sl_dataset *data, const char *options, const char *batches)
{
    enum { FIRST = 7 };
    /* Several ranks make batches slowly where cores are few, and so do GPUs in software. */
    const bool fast = sl_running.ranks == 1 && sl_running_device() == SL_DEVICE_AUTO;
    const int64_t epochs = FIRST + (fast ? 334 : 20); /* of 3 steps each */
    struct sl_opened run;
    int64_t tags = 0, handles = 0;
    open_run(&run, data, options, batches);
    assert_int_equal(run.trainer.batches.steps, 3);
    for (int64_t epoch = 1; epoch <= epochs; epoch++) {
        for (int s = 0; s < run.trainer.batches.steps; s++)
            step(&run, epoch, s, 1);
        sl_batches_leave(&run.trainer.batches);
        tags = epoch == FIRST ? sl_running.next_tag : tags;
        handles = epoch == FIRST ? sl_handles_registered() : handles;
    }
    if (sl_running.next_tag != tags || sl_handles_registered() != handles)
        fail_msg("%s, --batches %s: %d tags and %d handles more", options, batches,
                 (int)(sl_running.next_tag - tags), (int)(sl_handles_registered() - handles));
    sl_opened_close(&run);
}

/* Sums of bfloat16 have temporary tiles on one rank, and so have products where columns are cut. */
SL_TEST(test_handles_and_tags_are_reused)
{
    const bool alone = sl_running.ranks == 1;
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    char columns[64];
    snprintf(columns, sizeof columns, "--dropout 0 --grid 1x%dx1", sl_running.ranks);
    check_steps(&data, "--dropout 0 --distribution halo", "clusters:6,2");
    check_steps(&data, alone ? "--dropout 0 --precision bf16" : columns, "clusters:6,2");
    if (alone)
        check_steps(&data, "--dropout 0 --distribution halo", "co:3 --max-hop 1 --resample 1");
    sl_fixture_close(&data);
}

/* Evaluations between steps take no tag of a batch. */
SL_TEST(test_tags_are_given_back)
{
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    struct sl_report report;
    struct sl_outcome outcome;
    struct sl_opened run;
    open_run(&run, &data, "--epochs 2", "clusters:6,2");
    assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
    assert_int_equal(sl_trainer_run(&run.trainer, &report, &outcome), 0);
    assert_int_equal(sl_report_close(&report), 0);
    sl_outcome_free(&outcome);
    assert_null(run.trainer.batches.in_use);
    sl_opened_close(&run);
    sl_fixture_close(&data);
}

static bool stores_transposes(const struct sl_sparse_matrix *features)
{
    bool stores = false;
    for (int t = 0; t < features->tile_rows * features->tile_cols; t++)
        stores |= features->tiles[t].shape.mirrored;
    return stores;
}

/* A directed graph with full sparse features. Training reads the transposes of adjacency and
 * features; evaluations of the validation vertices have none. */
SL_TEST(test_validation_has_no_transpose)
{
    static const struct sl_fixture full = {
        SL_FIXTURE("directed, full sparse features", 200, 300, 4, 3), .directed = true,
        .form = SL_FEATURES_CSR, .seed = 84};
    struct sl_dataset data = sl_fixture_open(&full);
    struct sl_opened run;
    data.val.count = 2; /* few enough for a graph of their own */
    sl_opened_open(&run, &data,
                   sl_run_parse("--hidden 64 --input-dropout 0 --no-cache-aggregate --feature-form "
                                "csr --rows needed"));
    struct sl_batches *b = &run.trainer.batches;
    const struct sl_network *train = sl_batches_network(b, 1, 0, 0),
                            *validation = sl_batches_validation(b);
    assert_non_null(train);
    assert_non_null(validation);
    assert_true(train->graph->input.sparse && validation->graph->input.sparse);
    assert_ptr_not_equal(train->graph->adjacency_transposed, train->graph->adjacency);
    assert_ptr_equal(validation->graph->adjacency_transposed, validation->graph->adjacency);
    assert_true(stores_transposes(&train->graph->input.csr));
    assert_false(stores_transposes(&validation->graph->input.csr));
    sl_batches_leave(b);
    sl_opened_close(&run);
    sl_fixture_close(&data);
}

/* On several ranks and on GPUs, the program runs one test: tests/batches.sh, tests/gpu.sh. */
int main(void)
{
    const struct CMUnitTest shared[] = {cmocka_unit_test(test_handles_and_tags_are_reused)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_add_up),
        cmocka_unit_test(test_needed_rows),
        cmocka_unit_test(test_each_vertex_once),
        cmocka_unit_test(test_order_of_sets),
        cmocka_unit_test(test_dropout_of_updates),
        cmocka_unit_test(test_updates_are_counted),
        cmocka_unit_test(test_loss_of_an_epoch),
        cmocka_unit_test(test_handles_and_tags_are_reused),
        cmocka_unit_test(test_tags_are_given_back),
        cmocka_unit_test(test_validation_has_no_transpose),
    };
    return sl_runtime_launched() || sl_running_device() != SL_DEVICE_AUTO
               ? cmocka_run_group_tests(shared, sl_running_start, sl_running_stop)
               : cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
