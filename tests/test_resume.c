/* Training runs that end early, and that go on. */
#include <unistd.h>

#include "checkpoint/resume.h"
#include "core/error.h"
#include "core/log.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

/* ---- Early stopping ---- */

/* The epoch with the most right answers, the first of equals, and the epoch in which `patience` of
 * them have passed since. */
static void expect_stop(const struct sl_run *whole, int64_t patience, int64_t *best, int64_t *stop)
{
    *best = 1;
    for (*stop = 1; *stop <= whole->epochs; ++*stop) {
        if (whole->val_correct[*stop] > whole->val_correct[*best])
            *best = *stop;
        if (*stop - *best >= patience)
            return;
    }
    *stop = whole->epochs;
}

static void check_patience(const struct sl_dataset *data, int seed, int patience, bool *stopped)
{
    char line[SL_MOST_LINE];
    int64_t best, stop;
    const int length = snprintf(line, sizeof line,
                                "--lr 0.05 --seed %d --tiles 2 --eval-every 1 --epochs 40", seed);
    struct sl_run whole = sl_run_train(data, line, &(struct sl_around){0});
    expect_stop(&whole, patience, &best, &stop);
    const char *path = sl_running_path("stopped");
    snprintf(line + length, sizeof line - (size_t)length, " --patience %d --checkpoint %s",
             patience, path);
    struct sl_run patient = sl_run_train(data, line, &(struct sl_around){0});
    assert_int_equal(patient.epochs, stop);
    assert_int_equal(patient.outcome.best_epoch, best);
    /* The last epoch is saved, though more epochs were submitted. */
    line[length] = 0;
    if (stop < 40) {
        struct sl_run rest = sl_run_train(data, line, &(struct sl_around){.resume = path});
        assert_int_equal(rest.first, stop + 1);
        sl_run_same(&whole, &rest, stop + 1, line);
        sl_run_free(&rest);
    }
    assert_int_equal(unlink(path), 0);
    snprintf(line + length, sizeof line - (size_t)length, " --epochs %d", (int)best);
    struct sl_run until_best = sl_run_train(data, line, &(struct sl_around){0});
    sl_run_same_parameters(&patient, &until_best, line);
    assert_true(patient.outcome.val_accuracy == until_best.outcome.val_accuracy);
    assert_true(patient.outcome.test_accuracy == until_best.outcome.test_accuracy);
    stopped[stop < 40] = true;
    sl_run_free(&whole);
    sl_run_free(&patient);
    sl_run_free(&until_best);
}

SL_TEST(test_patience)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    bool stopped[2] = {false, false};
    for (int seed = 1; seed <= 6; seed++) {
        check_patience(&data, seed, 1, stopped);
        check_patience(&data, seed, 4, stopped);
        check_patience(&data, seed, 25, stopped);
    }
    assert_true(stopped[0] && stopped[1]); /* the seeds show both */
    sl_fixture_close(&data);
}

/* A request to stop ends the run with the epoch under way, and with its parameters. */
SL_TEST(test_stop_request)
{
    const volatile sig_atomic_t requested = 1;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    struct sl_run stopped =
        sl_run_train(&data, "--epochs 5000", &(struct sl_around){.stop = &requested});
    assert_true(stopped.outcome.stopped);
    assert_int_equal(stopped.epochs, 1);
    struct sl_run same = sl_run_train(&data, "--epochs 1", &(struct sl_around){0});
    assert_false(same.outcome.stopped);
    sl_run_same_parameters(&stopped, &same, "stopped on request");
    struct sl_run patient =
        sl_run_train(&data, "--epochs 5000 --patience 10", &(struct sl_around){.stop = &requested});
    assert_int_equal(patient.epochs, 1);
    assert_int_equal(patient.outcome.best_epoch, 1);
    sl_run_same_parameters(&patient, &same, "stopped on request, with patience");
    sl_run_free(&patient);
    sl_run_free(&stopped);
    sl_run_free(&same);
    sl_fixture_close(&data);
}

/* ---- Resuming ---- */

static void check_resume(const char *fixture, const char *options)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    const char *path = sl_running_path("half");
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line, "--epochs 20 %s", options);
    struct sl_run whole = sl_run_train(&data, line, &(struct sl_around){0});
    snprintf(line, sizeof line, "--epochs 10 %s", options);
    struct sl_run half = sl_run_train(&data, line, &(struct sl_around){.save = path});
    snprintf(line, sizeof line, "--epochs 20 %s", options);
    struct sl_run rest = sl_run_train(&data, line, &(struct sl_around){.resume = path});
    assert_int_equal(rest.first, 11);
    sl_run_same(&whole, &rest, 11, options);
    sl_run_free(&whole);
    sl_run_free(&half);
    sl_run_free(&rest);
    assert_int_equal(unlink(path), 0);
    sl_fixture_close(&data);
}

SL_TEST(test_resume)
{
    check_resume("undirected", "--tiles 3 --eval-every 10");
    check_resume("directed-weighted", "--optimizer sgd --lr 0.1 --eval-every 10");
    check_resume("identity", "--optimizer adamw --weight-decay 0.1 --layers 3 --eval-every 10");
    check_resume("directed", "--schedule step --step-epochs 6 --lr 0.1 --eval-every 10");
    check_resume("undirected", "--metric roc-auc --class-weights balanced --eval-every 2");
    check_resume("directed", "--loss sigmoid --label-smoothing 0.1 --decision top --eval-every 2");
}

/* A run with patience keeps the parameters of the best epoch by its metric. */
SL_TEST(test_patience_by_metric)
{
    static const char *const metrics[] = {"loss", "roc-auc", "macro-f1", "average-precision"};
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    int between = 0;
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++)
        for (int seed = 1; seed <= 3; seed++) {
            char line[SL_MOST_LINE];
            const int length =
                snprintf(line, sizeof line, "--lr 0.05 --seed %d --metric %s", seed, metrics[m]);
            snprintf(line + length, sizeof line - (size_t)length,
                     " --epochs 25 --eval-every 1 --patience 20");
            struct sl_run patient = sl_run_train(&data, line, &(struct sl_around){0});
            const int64_t best = patient.outcome.best_epoch;
            assert_true(best > 0);
            between += best > 1 && best < 25;
            snprintf(line + length, sizeof line - (size_t)length, " --epochs %d", (int)best);
            struct sl_run until_best = sl_run_train(&data, line, &(struct sl_around){0});
            sl_run_same_parameters(&patient, &until_best, line);
            assert_true(patient.outcome.score.of[SL_SPLIT_VAL] ==
                        until_best.outcome.score.of[SL_SPLIT_VAL]);
            sl_run_free(&patient);
            sl_run_free(&until_best);
        }
    assert_true(between > 3);
    sl_fixture_close(&data);
}

/* Train 6 epochs with `options`, and go on for one with `others`. Return the best epoch afterwards.
 */
static int64_t resumed_best(const char *options, const char *others, int64_t *before)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    const char *path = sl_running_path("measure");
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line, "--epochs 6 --lr 0.05 --patience 20 --eval-every 1 %s", options);
    struct sl_run half = sl_run_train(&data, line, &(struct sl_around){.save = path});
    snprintf(line, sizeof line, "--epochs 7 --lr 1e-9 --patience 20 --eval-every 1 %s", others);
    struct sl_run rest = sl_run_train(&data, line, &(struct sl_around){.resume = path});
    const int64_t after = rest.outcome.best_epoch;
    *before = half.outcome.best_epoch;
    sl_run_free(&half);
    sl_run_free(&rest);
    assert_int_equal(unlink(path), 0);
    sl_fixture_close(&data);
    return after;
}

/* The best epoch stays the best one if the measure is the same. Of another measure, the first
 * epoch after is the best one so far. */
SL_TEST(test_resume_measure)
{
    static const char *const measures[] = {"",
                                           "--metric loss",
                                           "--metric macro-f1",
                                           "--metric roc-auc",
                                           "--loss sigmoid --decision top",
                                           "--loss sigmoid --metric loss"};
    int kept = 0;
    for (size_t a = 0; a < sizeof measures / sizeof *measures; a++)
        for (size_t b = 0; b < sizeof measures / sizeof *measures; b++) {
            int64_t before;
            const int64_t after = resumed_best(measures[a], measures[b], &before);
            assert_true(before > 0);
            if (a != b)
                assert_int_equal(after, 7);
            else
                assert_true(after == before || after == 7);
            kept += a == b && after == before;
        }
    assert_true(kept > 1);
}

/* A run with patience that ended at epoch 10 goes on as if it had not ended, with its best
 * parameters so far. A checkpoint has the parameters of the last epoch beside the best parameters.
 */
SL_TEST(test_resume_patience)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    for (int seed = 1; seed <= 5; seed++) {
        char line[SL_MOST_LINE], options[SL_MOST_LINE / 4];
        snprintf(options, sizeof options, "--patience 30 --lr 0.05 --seed %d", seed);
        snprintf(line, sizeof line, "--epochs 19 %s", options);
        struct sl_run whole = sl_run_train(&data, line, &(struct sl_around){0});
        snprintf(line, sizeof line, "--epochs 10 %s --checkpoint %s", options,
                 sl_running_path("tenth"));
        struct sl_run half = sl_run_train(&data, line, &(struct sl_around){0});
        snprintf(line, sizeof line, "--epochs 19 %s", options);
        struct sl_run rest =
            sl_run_train(&data, line, &(struct sl_around){.resume = sl_running_path("tenth")});
        assert_int_equal(rest.first, 11);
        sl_run_same(&whole, &rest, 11, line);
        sl_run_free(&whole);
        sl_run_free(&half);
        sl_run_free(&rest);
    }
    assert_int_equal(unlink(sl_running_path("tenth")), 0);
    sl_fixture_close(&data);
}

/* A checkpoint on the way that cannot be written is reported, and the training goes on. */
SL_TEST(test_checkpoint_on_the_way_fails)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line,
             "--epochs 20 --eval-every 5 --checkpoint %s/none/x --checkpoint-every 5",
             sl_running_dir);
    sl_log_enable(false);
    setenv("TMPDIR", sl_running_dir, 1);
    struct sl_run run = sl_run_train(&data, line, &(struct sl_around){.fails = true});
    /* The last one is elsewhere. */
    const char *saved = strstr(sl_error_message(), "; the model is in ");
    struct sl_checkpoint checkpoint;
    assert_non_null(saved);
    assert_int_equal(sl_checkpoint_read(strrchr(saved, ' ') + 1, &checkpoint), 0);
    assert_int_equal(json_integer_value(json_object_get(checkpoint.description, "epoch")), 20);
    sl_checkpoint_free(&checkpoint);
    unsetenv("TMPDIR");
    struct sl_run good = sl_run_train(&data, "--epochs 20 --eval-every 5", &(struct sl_around){0});
    sl_run_same(&run, &good, 1, "without its checkpoints");
    sl_run_free(&run);
    sl_run_free(&good);
    sl_fixture_close(&data);
}

/* ---- Options that a checkpoint brings back ---- */

/* How the run before was started, how this one is, and what it has then; NULL: none. */
static const struct {
    const char *before, *now;
    int ranks;
    const char *distribution, *grid, *partition, *delay, *order;
    int64_t tiles;
} brought_back[] = {
    {"--tiles 7 --order rabbit", "", 1, "auto", NULL, NULL, "cd-0", "rabbit", 7},
    {"--tiles 7 --order rabbit", "--tiles 0 --order none", 1, "auto", NULL, NULL, "cd-0", "none",
     0},
    {"", "", 4, "1d", NULL, NULL, "cd-0", "auto", 0}, /* as one rank is */
    {"", "--distribution auto", 4, "auto", NULL, NULL, "cd-0", "auto", 0},
    {"--distribution 2d", "", 4, "2d", NULL, NULL, "cd-0", "auto", 0},
    {"--distribution 2d", "", 3, "auto", NULL, NULL, "cd-0", "auto", 0},
    {"--grid 2x1x2", "", 4, "auto", "2x1x2", NULL, "cd-0", "auto", 0},
    {"--grid 2x1x2", "", 2, "auto", NULL, NULL, "cd-0", "auto", 0},
    {"--grid 2x1x2", "--grid 4x1x1", 4, "auto", "4x1x1", NULL, "cd-0", "auto", 0},
    {"--grid 2x1x2", "--distribution halo", 4, "halo", NULL, NULL, "cd-0", "auto", 0},
    {"--distribution vertex-cut --partition libra --delay cd-5", "", 3, "vertex-cut", NULL, "libra",
     "cd-5", "auto", 0},
    {"--distribution vertex-cut --partition libra --delay cd-5", "", 4, "vertex-cut", NULL, "libra",
     "cd-5", "auto", 0},
    {"--distribution vertex-cut --partition libra --delay cd-5", "--delay cd-2", 3, "vertex-cut",
     NULL, "libra", "cd-2", "auto", 0},
    {"--distribution vertex-cut --partition libra --delay cd-5", "--distribution vertex-cut", 3,
     "vertex-cut", NULL, "libra", "cd-5", "auto", 0},
    {"--distribution vertex-cut --partition libra --delay cd-5", "--distribution halo", 3, "halo",
     NULL, NULL, "cd-0", "auto", 0},
    {"--distribution vertex-cut --partition libra --delay cd-5", "--grid 3x1x1", 3, "auto", "3x1x1",
     NULL, "cd-0", "auto", 0},
    {"--order rabbit", "--distribution vertex-cut", 3, "vertex-cut", NULL, NULL, "cd-0", "auto", 0},
    {"--order double", "--distribution halo", 3, "halo", NULL, NULL, "cd-0", "auto", 0},
    {"--order double", "--distribution 2d", 4, "2d", NULL, NULL, "cd-0", "double", 0},
};

/* The options of a line, as a checkpoint has them; a new reference. */
static json_t *options_of(const char *line)
{
    struct sl_config config = sl_run_parse(line);
    json_t *options = sl_options_to_json(sl_config_options, &config);
    sl_options_free(sl_config_options, &config);
    return options;
}

/* Takes the reference. */
static void write_options(json_t *options, const char *path)
{
    struct sl_checkpoint checkpoint = {.description = json_pack("{s:o}", "configuration", options)};
    assert_int_equal(sl_checkpoint_write(&checkpoint, path), 0);
    sl_checkpoint_free(&checkpoint);
}

static void write_configuration(const char *line, const char *without, const char *path)
{
    json_t *options = options_of(line);
    if (without)
        assert_int_equal(json_object_del(options, without), 0);
    write_options(options, path);
}

/* Train as starling train does. */
static struct sl_config resume_with(const char *line, const char *path, int ranks)
{
    char copy[SL_MOST_LINE], *words[16], *rest = copy;
    bool given[SL_MOST_OPTIONS];
    int count = 0, positionals;
    struct sl_config config = {0};
    struct sl_checkpoint checkpoint;
    snprintf(copy, sizeof copy, "%s --resume %s", line, path);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    if (sl_config_defaults(&config) ||
        sl_options_parse(sl_config_options, &config, count, words, &positionals, given) ||
        sl_resume_read(&config, given, ranks, &checkpoint) || sl_config_check(&config))
        fail_msg("%s: %s", line, sl_error_message());
    sl_checkpoint_free(&checkpoint);
    return config;
}

static void expect_text(const char *what, const char *got, const char *wanted, size_t row)
{
    if ((got == NULL) != (wanted == NULL) || (got && strcmp(got, wanted) != 0))
        fail_msg("row %zu: %s is %s, expected %s", row, what, got ? got : "none",
                 wanted ? wanted : "none");
}

SL_TEST(test_brought_back)
{
    const char *path = sl_running_path("configured");
    sl_log_enable(false);
    for (size_t k = 0; k < sizeof brought_back / sizeof *brought_back; k++) {
        write_configuration(brought_back[k].before, NULL, path);
        struct sl_config config = resume_with(brought_back[k].now, path, brought_back[k].ranks);
        expect_text("distribution", sl_config_word(&config, "distribution").text,
                    brought_back[k].distribution, k);
        expect_text("grid", sl_config_text(&config, "grid").text,
                    brought_back[k].grid ? brought_back[k].grid : "", k);
        expect_text("partition", config.ranks.partition, brought_back[k].partition, k);
        expect_text("delay", sl_config_text(&config, "delay").text, brought_back[k].delay, k);
        expect_text("order", sl_config_word(&config, "order").text, brought_back[k].order, k);
        assert_int_equal(config.machine.tiles, brought_back[k].tiles);
        sl_options_free(sl_config_options, &config);
    }
    assert_int_equal(unlink(path), 0);
}

/* An older program had no such option: the default, and all others as they were. */
SL_TEST(test_option_not_saved)
{
    const char *path = sl_running_path("older"), *newer[] = {"loss", "aggregator", "precision"};
    sl_log_enable(false);
    for (size_t k = 0; k < sizeof newer / sizeof *newer; k++) {
        write_configuration("--model sage --aggregator max --hidden 11 --precision bf16", newer[k],
                            path);
        struct sl_config config = resume_with("", path, 1);
        assert_null(config.training.loss);
        expect_text("aggregator", config.network.aggregator->name, k == 1 ? "mean" : "max", k);
        expect_text("precision", sl_config_word(&config, "precision").text,
                    k == 2 ? "fp32" : "bf16", k);
        assert_int_equal(config.network.hidden, 11);
        sl_options_free(sl_config_options, &config);
    }
    assert_int_equal(unlink(path), 0);
}

/* A delayed run of a program without the option had unscaled sums; any other run starts with the
 * default. */
SL_TEST(test_partial_sums_not_saved)
{
    static const struct {
        const char *before, *now, *wanted;
    } rows[] = {
        {"--distribution vertex-cut --delay 0c", "", "unscaled"},
        {"--distribution vertex-cut --delay cd-3", "", "unscaled"},
        {"--distribution vertex-cut --delay cd-3", "--partial-sums scaled", "scaled"},
        {"--distribution vertex-cut --delay cd-3", "--distribution 1d", "scaled"},
        {"--distribution vertex-cut", "", "scaled"},
        {"--distribution vertex-cut", "--delay cd-3", "scaled"},
        {"", "--distribution vertex-cut --delay cd-3", "scaled"},
        {"", "", "scaled"},
    };
    const char *path = sl_running_path("older");
    sl_log_enable(false);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        write_configuration(rows[k].before, "partial-sums", path);
        struct sl_config config = resume_with(rows[k].now, path, 3);
        expect_text("partial-sums", sl_config_word(&config, "partial-sums").text, rows[k].wanted,
                    k);
        sl_options_free(sl_config_options, &config);
    }
    assert_int_equal(unlink(path), 0);
}

/* Unscaled sums had another name in checkpoints of older programs. Sums of units keep that name. */
SL_TEST(test_partial_sums_renamed)
{
    const char *path = sl_running_path("renamed");
    json_t *options = options_of("--distribution vertex-cut --delay cd-3");
    json_object_set_new(options, "partial-sums", json_string("published"));
    write_options(options, path);
    struct sl_config config = resume_with("", path, 3);
    expect_text("partial-sums", sl_config_word(&config, "partial-sums").text, "unscaled", 0);
    expect_text("unit-sums", sl_config_word(&config, "unit-sums").text, "published", 0);
    sl_options_free(sl_config_options, &config);
    assert_int_equal(unlink(path), 0);
}

/* Tiles that were found by cost, and the order of products, are those of the run before. */
SL_TEST(test_found_by_cost)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    const char *path = sl_running_path("found");
    struct sl_run run =
        sl_run_train(&data, "--epochs 3 --product-order spmm", &(struct sl_around){.save = path});
    struct sl_checkpoint checkpoint;
    assert_int_equal(sl_checkpoint_read(path, &checkpoint), 0);
    const json_t *configuration = json_object_get(checkpoint.description, "configuration");
    assert_true(json_integer_value(json_object_get(configuration, "tiles")) > 0);
    const json_t *orders = json_object_get(checkpoint.description, "product_orders");
    assert_int_equal(json_array_size(orders), 2);
    assert_string_equal(json_string_value(json_array_get(orders, 1)), "spmm");
    sl_checkpoint_free(&checkpoint);
    /* Go on as if "auto" had taken SpMM first. */
    struct sl_run spmm = sl_run_train(&data, "--epochs 6 --product-order spmm",
                                      &(struct sl_around){.resume = path}),
                  found = sl_run_train(&data, "--epochs 6", &(struct sl_around){.resume = path}),
                  gemm = sl_run_train(&data, "--epochs 6 --product-order gemm",
                                      &(struct sl_around){.resume = path});
    sl_run_same(&spmm, &found, 4, "the order of products of the checkpoint");
    assert_true(memcmp(gemm.parameters, spmm.parameters,
                       (size_t)gemm.count * sizeof *gemm.parameters) != 0);
    sl_run_free(&run);
    sl_run_free(&spmm);
    sl_run_free(&found);
    sl_run_free(&gemm);
    assert_int_equal(unlink(path), 0);
    sl_fixture_close(&data);
}

/* ---- Numbers that are not finite ---- */

static void assert_finite(const char *path, int64_t before)
{
    struct sl_checkpoint checkpoint;
    assert_int_equal(sl_checkpoint_read(path, &checkpoint), 0);
    assert_true(json_integer_value(json_object_get(checkpoint.description, "epoch")) < before);
    for (int t = 0; t < checkpoint.count; t++) {
        const struct sl_tensor *tensor = &checkpoint.tensors[t];
        for (int64_t i = 0; i < tensor->rows * tensor->cols; i++)
            assert_true(isfinite(tensor->data[i]));
    }
    sl_checkpoint_free(&checkpoint);
}

/* The run ends with the epoch, says where it broke down, and leaves the checkpoint before it. */
SL_TEST(test_breakdown)
{
    static const char *const lines[] = {
        "--checkpoint-every 1 --eval-every 10",
        "--checkpoint-every 1 --layers 3 --precision bf16 --eval-every 1",
        "--checkpoint-every 1 --patience 50 --clip-norm 1 --weight-decay 1",
        "--checkpoint-every 1 --tiles 3 --layers 1 --weight-decay 1e6",
    };
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    const char *path = sl_running_path("before");
    int saved = 0;
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        char line[SL_MOST_LINE];
        snprintf(line, sizeof line, "--epochs 90 --optimizer sgd --lr 1e6 --checkpoint %s %s", path,
                 lines[l]);
        struct sl_run run = sl_run_train(&data, line, &(struct sl_around){.fails = true});
        assert_true(run.epochs < 90);
        assert_true(run.outcome.broken);
        assert_in_range(run.outcome.broken_layer, 1, 3);
        print_message("%s: %s\n", line, sl_error_message());
        char wanted[64];
        snprintf(wanted, sizeof wanted, "epoch %d: layer %d: the ", (int)run.epochs,
                 run.outcome.broken_layer);
        assert_memory_equal(sl_error_message(), wanted, strlen(wanted));
        assert_non_null(strstr(sl_error_message(), "--lr than 1e+06, or --clip-norm"));
        if (access(path, F_OK) == 0) {
            assert_finite(path, run.epochs);
            assert_non_null(strstr(sl_error_message(), "holds epoch "));
            assert_int_equal(unlink(path), 0);
            saved++;
        } else {
            assert_non_null(strstr(sl_error_message(), "was not written"));
        }
        sl_run_free(&run);
    }
    assert_true(saved > 1);
    sl_fixture_close(&data);
}

/* The first layer whose output is not finite is the one that is told. */
SL_TEST(test_breakdown_layer)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    const char *path = sl_running_path("large");
    for (int layer = 0; layer < 3; layer++) {
        struct sl_checkpoint checkpoint;
        struct sl_run run =
            sl_run_train(&data, "--layers 3 --epochs 2", &(struct sl_around){.save = path});
        sl_run_free(&run);
        assert_int_equal(sl_checkpoint_read(path, &checkpoint), 0);
        char name[32];
        snprintf(name, sizeof name, "layer.%d.weight", layer);
        const struct sl_tensor *tensor = sl_checkpoint_find(&checkpoint, name);
        for (int64_t i = 0; i < tensor->rows * tensor->cols; i++)
            tensor->data[i] = 3e38f;
        assert_int_equal(sl_checkpoint_write(&checkpoint, path), 0);
        run = sl_run_train(&data, "--layers 3 --epochs 9",
                           &(struct sl_around){.resume = path, .fails = true});
        print_message("%s\n", sl_error_message());
        assert_int_equal(run.epochs, 3);
        assert_int_equal(run.outcome.broken, SL_BROKEN_OUTPUT);
        assert_int_equal(run.outcome.broken_layer, layer + 1);
        sl_run_free(&run);
        sl_checkpoint_free(&checkpoint);
        assert_int_equal(unlink(path), 0);
    }
    sl_fixture_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_stop_request),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_patience),
        cmocka_unit_test(test_resume_measure),
        cmocka_unit_test(test_patience_by_metric),
        cmocka_unit_test(test_checkpoint_on_the_way_fails),
        cmocka_unit_test(test_brought_back),
        cmocka_unit_test(test_option_not_saved),
        cmocka_unit_test(test_partial_sums_not_saved),
        cmocka_unit_test(test_partial_sums_renamed),
        cmocka_unit_test(test_found_by_cost),
        cmocka_unit_test(test_breakdown),
        cmocka_unit_test(test_breakdown_layer),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
