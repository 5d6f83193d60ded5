/* Whole training runs: against the reference network in double, and against each other.
 *
 * How a loss curve is judged. Losses and logits are sums in float, off by about 1e-7 of themselves
 * in the first epoch. Adam divides a gradient by its own size, so that the rounding of a gradient
 * becomes a like share of a step: differences of 1e-6 of a weight's way are added in each epoch,
 * and fed back through the loss. After 30 epochs they were at most 5e-7 of a loss. A pre-activation
 * that passes relu's kink on one side only adds as much once. CURVE leaves room for another BLAS; a
 * wrong decay, correction, rate or mask changes a loss by more than 1e-3 within a few epochs.
 * Constants that the program keeps in float (0.9, 0.999) are the same floats here.
 *
 * Two runs that should be one and the same are compared bit by bit.
 *
 * To test another option's effect on training: add a line to `curves`, and what it means to
 * `reference_losses`. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codelets/vector.h"
#include "core/error.h"
#include "core/log.h"
#include "data/generate_community.h"
#include "tests/fixtures.h"
#include "tests/reference.h"
#include "tests/running.h"
#include "train/trainer.h"

static const double CURVE = 2e-5, TILES = 1e-4, FORMS = 1e-5;

/* ---- Runs ---- */

enum { MOST_WORDS = 64, MOST_LINE = 512 };

/* What is left of a run. */
struct run {
    int64_t first, epochs; /* first and last epoch of this run */
    double *losses;        // (epochs + 1): of epoch e at [e], 0 before `first`
    double *val_correct;   // (epochs + 1): 0 where not evaluated
    int64_t count;         /* of parameters */
    float *parameters;     // (count): all layers'
    int64_t rows, classes;
    float *logits; // (rows, classes): of the last evaluation
    struct sl_outcome outcome;
};

static void run_free(struct run *run)
{
    free(run->losses);
    free(run->val_correct);
    free(run->parameters);
    free(run->logits);
    *run = (struct run){0};
}

/* The configuration of a command line. */
static struct sl_config parse(const char *line)
{
    char copy[MOST_LINE], *words[MOST_WORDS], *rest = copy;
    int count = 0, positionals;
    struct sl_config config = {0};
    assert_true(snprintf(copy, sizeof copy, "%s", line) < MOST_LINE);
    for (char *word; count < MOST_WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    if (sl_options_defaults(sl_config_options, &config) ||
        sl_options_parse(sl_config_options, &config, count, words, &positionals, NULL) ||
        sl_config_check(&config))
        fail_msg("%s: %s", line, sl_error_message());
    assert_int_equal(positionals, 0);
    return config;
}

static void copy_rows(struct sl_tile *tile, float *to)
{
    const float *from = sl_tile_acquire(&sl_running, tile, false);
    for (int64_t r = 0; r < tile->rows; r++)
        memcpy(to + r * tile->cols, from + r * tile->ld, (size_t)tile->cols * sizeof *to);
    sl_tile_release(tile);
}

static void keep_parameters(struct run *run, struct sl_network *net)
{
    for (int l = 0; l < net->layers; l++)
        run->count += net->layer[l].parameters.rows * net->layer[l].out;
    float *to = run->parameters = calloc((size_t)run->count, sizeof *to);
    for (int l = 0; l < net->layers; l++) {
        copy_rows(&net->layer[l].parameters, to);
        to += net->layer[l].parameters.rows * net->layer[l].out;
    }
}

static void keep_logits(struct run *run, struct sl_network *net)
{
    struct sl_matrix *output = &net->layer[net->layers - 1].output;
    run->rows = output->rows;
    run->classes = output->cols;
    run->logits = calloc((size_t)(run->rows * run->classes), sizeof *run->logits);
    for (int i = 0; i < output->tile_rows; i++)
        copy_rows(sl_matrix_tile(output, i, 0), run->logits + output->row_cut[i] * run->classes);
}

static void keep_records(struct run *run, const struct sl_trainer *trainer)
{
    run->first = trainer->first_epoch;
    run->epochs = run->outcome.epochs;
    run->losses = calloc((size_t)run->epochs + 1, sizeof *run->losses);
    run->val_correct = calloc((size_t)run->epochs + 1, sizeof *run->val_correct);
    for (int64_t e = run->first; e <= run->epochs; e++) {
        const struct sl_record *record = &trainer->records[e];
        assert_true(record->trained);
        run->losses[e] = record->train_loss / (double)trainer->network.train_count;
        run->val_correct[e] = record->correct[SL_SPLIT_VAL];
    }
}

/* How a run is started and ended beyond its configuration; all zero is the usual. */
struct around {
    const char *resume, *save;         /* checkpoints */
    const volatile sig_atomic_t *stop; /* the stop flag */
    bool fails;                        /* the run must return an error */
};

static struct run train(const struct sl_dataset *data, const char *line,
                        const struct around *around)
{
    struct sl_config config = parse(line);
    struct sl_checkpoint checkpoint = {0};
    struct sl_source source;
    struct sl_trainer trainer;
    struct sl_report report;
    struct run run = {0};
    assert_int_equal(sl_source_of(data, &source), 0);
    if (strcmp(config.order, "double") == 0)
        assert_int_equal(sl_source_order_double(&sl_running, &source, 1), 0);
    if (around->resume && sl_checkpoint_read(around->resume, &checkpoint))
        fail_msg("%s", sl_error_message());
    if (sl_trainer_create(&trainer, &sl_running, &source, &config,
                          around->resume ? &checkpoint : NULL))
        fail_msg("%s: %s", line, sl_error_message());
    trainer.stop_requested = around->stop;
    assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
    const int code = sl_trainer_run(&trainer, &report, &run.outcome);
    assert_int_equal(code != 0, around->fails);
    if (around->save && sl_trainer_save(&trainer, around->save))
        fail_msg("%s", sl_error_message());
    keep_records(&run, &trainer);
    keep_parameters(&run, &trainer.network);
    keep_logits(&run, &trainer.network);
    sl_trainer_destroy(&trainer);
    assert_int_equal(sl_report_close(&report), 0);
    sl_source_close(&source);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    return run;
}

static struct run train_fixture(const char *fixture, const char *line)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    struct run run = train(&data, line, &(struct around){0});
    sl_fixture_close(&data);
    return run;
}

/* ---- Comparisons ---- */

static void assert_same_parameters(const struct run *a, const struct run *b, const char *what)
{
    assert_int_equal(a->count, b->count);
    if (memcmp(a->parameters, b->parameters, (size_t)a->count * sizeof *a->parameters) != 0)
        fail_msg("%s: the parameters are not the same bits", what);
}

/* From epoch `first` on. */
static void assert_same_run(const struct run *a, const struct run *b, int64_t first,
                            const char *what)
{
    assert_int_equal(a->epochs, b->epochs);
    for (int64_t e = first; e <= a->epochs; e++)
        if (memcmp(&a->losses[e], &b->losses[e], sizeof *a->losses) != 0)
            fail_msg("%s: the loss of epoch %d is %.17g, and %.17g", what, (int)e, a->losses[e],
                     b->losses[e]);
    assert_same_parameters(a, b, what);
    assert_int_equal(a->outcome.best_epoch, b->outcome.best_epoch);
}

/* The largest relative difference of two curves. */
static double curve_difference(const double *a, const double *b, int64_t epochs)
{
    double largest = 0.0;
    for (int64_t e = 1; e <= epochs; e++)
        largest = fmax(largest, fabs(a[e] - b[e]) / fabs(b[e]));
    return largest;
}

static void assert_close_runs(const struct run *a, const struct run *b, double tolerance,
                              const char *what)
{
    assert_int_equal(a->epochs, b->epochs);
    const double difference = curve_difference(a->losses, b->losses, a->epochs);
    if (!(difference <= tolerance))
        fail_msg("%s: the losses differ by %.2e", what, difference);
}

/* ---- Curves against the reference ---- */

static void normalize_rows(struct sl_reference *net)
{
    for (int64_t v = 0; v < net->n; v++) {
        double norm = 0.0;
        for (int64_t j = 0; j < net->features; j++)
            norm += fabs(net->x[v * net->features + j]);
        for (int64_t j = 0; j < net->features && norm > 0.0; j++)
            net->x[v * net->features + j] /= norm;
    }
}

static enum sl_reference_norm reference_norm(const struct sl_config *config)
{
    if (strcmp(config->model, "gcn") == 0)
        return strcmp(config->norm, "row") == 0 ? SL_REFERENCE_ROW : SL_REFERENCE_SYM;
    return strcmp(config->aggregator, "gcn") == 0    ? SL_REFERENCE_GCN
           : strcmp(config->aggregator, "mean") == 0 ? SL_REFERENCE_MEAN
           : strcmp(config->aggregator, "max") == 0  ? SL_REFERENCE_MAX
                                                     : SL_REFERENCE_SUM;
}

static struct sl_reference *make_reference(const struct sl_dataset *data,
                                           const struct sl_config *config)
{
    int64_t hidden[8];
    for (int l = 0; l < 8; l++)
        hidden[l] = config->hidden;
    struct sl_reference *net =
        sl_fixture_reference(data, (int)config->layers, hidden, reference_norm(config));
    if (config->normalize_features)
        normalize_rows(net);
    return net;
}

static double rate_of(const struct sl_config *config, int epoch)
{
    double rate = config->lr;
    if (strcmp(config->schedule, "cosine") == 0)
        rate *= 0.5 + 0.5 * cos(3.14159265358979323846 * (epoch - 1) / (double)config->epochs);
    if (strcmp(config->schedule, "step") == 0)
        for (int64_t e = config->step_epochs; e < epoch; e += config->step_epochs)
            rate *= config->step_factor;
    return rate;
}

static struct sl_reference_optimizer make_optimizer(const struct sl_config *config)
{
    const bool sgd = strcmp(config->optimizer, "sgd") == 0;
    return (struct sl_reference_optimizer){
        .method = sgd                                       ? SL_REFERENCE_SGD
                  : strcmp(config->optimizer, "adamw") == 0 ? SL_REFERENCE_ADAMW
                                                            : SL_REFERENCE_ADAM,
        .decay = (double)(float)config->weight_decay,
        .decay_layers = config->weight_decay_all ? (int)config->layers : 1,
        .decay_bias = true,
        .beta1 = sgd ? (double)(float)config->momentum : (double)0.9f,
        .beta2 = (double)0.999f,
        .epsilon = 1e-8,
    };
}

/* The reference has biases always: held at 0 where there are none. */
static void clear_biases(struct sl_reference *net)
{
    for (int l = 0; l < net->layers; l++)
        memset(sl_reference_bias(net, net->theta, l), 0,
               (size_t)net->widths[l + 1] * sizeof *net->theta);
}

/* losses (epochs + 1): of epoch e at [e]. */
static void reference_losses(struct sl_reference *net, const struct sl_config *config,
                             double *losses)
{
    const uint64_t seed = (uint64_t)config->seed;
    struct sl_reference_optimizer optimizer = make_optimizer(config);
    for (int l = 0; l < net->layers; l++)
        net->dropout[l] =
            l == 0 && config->input_dropout >= 0.0 ? config->input_dropout : config->dropout;
    sl_reference_initialize(net, seed);
    for (int epoch = 1; epoch <= config->epochs; epoch++) {
        sl_reference_set_epoch(net, seed, (uint32_t)epoch);
        optimizer.rate = rate_of(config, epoch);
        losses[epoch] = sl_reference_step(net, &optimizer);
        if (!config->bias)
            clear_biases(net);
    }
    sl_reference_optimizer_clear(&optimizer);
}

/* Decays and rates are large, so that each of them shows in the losses. */
static const struct curve {
    const char *fixture, *line;
} curves[] = {
    {"undirected", ""},
    {"undirected", "--dropout 0 --weight-decay 0"},
    {"undirected", "--weight-decay 0.05 --lr 0.05"},
    {"undirected", "--weight-decay 0.05 --lr 0.05 --weight-decay-all"},
    {"undirected", "--optimizer adamw --weight-decay 0.5 --lr 0.05"},
    {"directed-weighted", "--optimizer adamw --weight-decay 0.5 --lr 0.05 --weight-decay-all"},
    {"directed-weighted", "--optimizer sgd --lr 0.2 --weight-decay 0.05"},
    {"directed-weighted", "--optimizer sgd --lr 0.2 --weight-decay 0.05 --weight-decay-all"},
    {"directed", "--optimizer sgd --lr 0.5 --momentum 0 --dropout 0.2 --norm row"},
    {"directed", "--layers 3 --hidden 7 --dropout 0.3 --product-order gemm"},
    {"directed-weighted-self-loops", "--layers 3 --hidden 7 --dropout 0.3 --product-order spmm"},
    {"directed-weighted-self-loops", "--input-dropout 0 --dropout 0.6 --seed 5"},
    {"undirected-weighted", "--normalize-features --layers 1"},
    {"undirected-weighted", "--normalize-features --input-dropout 0"},
    {"undirected-weighted", "--input-dropout 0.7 --dropout 0 --norm row"},
    {"self-loops", "--normalize-features --schedule step --step-epochs 7 --step-factor 0.3"},
    {"self-loops", "--schedule cosine --lr 0.1 --weight-decay 0.02"},
    {"dense-graph", "--optimizer sgd --schedule step --step-epochs 10 --lr 0.3"},
    {"isolated", "--no-bias --weight-decay-all --weight-decay 0.02 --seed 123456789012"},
    {"identity", "--hidden 5 --layers 2"},
    {"identity", "--no-cache-aggregate --dropout 0"},
    {"unlabelled-train", "--lr 0.05"},
    {"directed-weighted", "--model sage --weight-decay 0.05 --weight-decay-all"},
    {"isolated", "--model sage --aggregator sum --lr 0.003 --dropout 0"},
    {"self-loops", "--model sage --aggregator gcn --lr 0.05"},
    {"directed-weighted", "--model sage --aggregator max --dropout 0.2"},
    {"no-edges", "--layers 2 --lr 0.05"},
    {"one-vertex", "--dropout 0 --lr 0.02 --optimizer sgd"},
};

/* A vertex that is added to its neighbours is in their order. */
static bool can_double(const struct curve *curve)
{
    return !strstr(curve->line, "sage") || strstr(curve->line, "--aggregator gcn");
}

static double check_curve(const struct curve *curve, int tiles, const char *order)
{
    char line[MOST_LINE];
    snprintf(line, sizeof line, "--epochs 30 --tiles %d --order %s %s", tiles, order, curve->line);
    struct sl_config config = parse(line);
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(curve->fixture));
    struct sl_reference *net = make_reference(&data, &config);
    double *losses = calloc((size_t)config.epochs + 1, sizeof *losses);
    reference_losses(net, &config, losses);
    struct run run = train(&data, line, &(struct around){0});
    const double difference = curve_difference(run.losses, losses, 30);
    if (!(difference <= CURVE))
        fail_msg("%s %s: the losses differ by %.2e from the reference's", curve->fixture, line,
                 difference);
    assert_true(run.outcome.loss == run.losses[30]);
    run_free(&run);
    free(losses);
    sl_reference_destroy(net);
    sl_fixture_close(&data);
    sl_options_free(sl_config_options, &config);
    return difference;
}

static void test_curves(void **state)
{
    (void)state;
    double worst = 0.0;
    for (size_t c = 0; c < sizeof curves / sizeof *curves; c++)
        for (int tiles = 1; tiles <= 4; tiles += 3) {
            worst = fmax(worst, check_curve(&curves[c], tiles, "none"));
            if (can_double(&curves[c]))
                worst = fmax(worst, check_curve(&curves[c], tiles, "double"));
        }
    printf("largest relative difference of a loss: %.1e\n", worst);
}

/* ---- Predictions ---- */

static void set_parameters(struct sl_reference *net, const struct run *run, bool bias)
{
    const float *from = run->parameters;
    for (int l = 0; l < net->layers; l++) {
        double *to = sl_reference_weight(net, net->theta, l);
        const int64_t weights = sl_reference_weights(net) * net->widths[l];
        const int64_t count = (weights + (bias ? 1 : 0)) * net->widths[l + 1];
        for (int64_t i = 0; i < count; i++)
            to[i] = (double)*from++;
    }
    assert_int_equal(from - run->parameters, run->count);
}

/* An accuracy may be off by the vertices whose two largest logits rounding could swap. */
static void check_accuracy(const struct sl_reference *net, const double *logits,
                           const struct sl_index_set *set, double got)
{
    int64_t labelled = 0, undecided = 0;
    bool *mask = calloc((size_t)net->n, sizeof *mask);
    sl_fixture_mask(set, net->n, mask);
    for (int64_t v = 0; v < net->n; v++) {
        double first = -INFINITY, second = -INFINITY;
        for (int64_t j = 0; j < net->classes; j++) {
            const double z = logits[v * net->classes + j];
            second = z > first ? first : fmax(second, z);
            first = fmax(first, z);
        }
        labelled += mask[v] && net->labels[v] >= 0;
        undecided += mask[v] && net->labels[v] >= 0 && first - second < 1e-4;
    }
    if (labelled == 0)
        assert_true(isnan(got));
    else
        assert_true(fabs(got - sl_reference_accuracy(net, logits, mask)) * (double)labelled <=
                    (double)undecided + 1e-9);
    free(mask);
}

/* What the trained parameters predict, without dropout. */
static void check_predictions(const char *fixture, const char *line)
{
    struct sl_config config = parse(line);
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    struct sl_reference *net = make_reference(&data, &config);
    struct run run = train(&data, line, &(struct around){0});
    double *logits = calloc((size_t)(net->n * net->classes), sizeof *logits);
    set_parameters(net, &run, config.bias);
    sl_reference_forward(net, logits);
    for (int64_t i = 0; i < net->n * net->classes; i++)
        if (!(fabs((double)run.logits[i] - logits[i]) <= 2e-5 * fmax(1.0, fabs(logits[i]))))
            fail_msg("%s %s: logit %d is %.9g, expected %.9g", fixture, line, (int)i,
                     (double)run.logits[i], logits[i]);
    check_accuracy(net, logits, &data.train, run.outcome.train_accuracy);
    check_accuracy(net, logits, &data.val, run.outcome.val_accuracy);
    check_accuracy(net, logits, &data.test, run.outcome.test_accuracy);
    free(logits);
    run_free(&run);
    sl_reference_destroy(net);
    sl_fixture_close(&data);
    sl_options_free(sl_config_options, &config);
}

static void test_predictions(void **state)
{
    (void)state;
    for (int i = 0; i < sl_fixture_count; i++) {
        if (sl_fixtures[i].vertices == 0)
            continue;
        check_predictions(sl_fixtures[i].name, "--epochs 20 --lr 0.05 --tiles 3");
        check_predictions(sl_fixtures[i].name,
                          "--epochs 20 --dropout 0.2 --input-dropout 0 --layers 3 --norm row");
        check_predictions(sl_fixtures[i].name, "--epochs 9 --no-bias --eval-every 4 --tiles 2");
        check_predictions(sl_fixtures[i].name, "--epochs 20 --model sage --dropout 0.2 --tiles 3");
        check_predictions(sl_fixtures[i].name,
                          "--epochs 9 --model sage --aggregator gcn --no-bias --dropout 0");
    }
}

/* ---- Equal runs ---- */

static void restart(const char *scheduler, int workers)
{
    sl_runtime_stop(&sl_running);
    if (sl_runtime_start(&sl_running, &(struct sl_runtime_options){scheduler, workers, true}))
        fail_msg("%s", sl_error_message());
    assert_string_equal(sl_running.scheduler, scheduler);
}

/* A graph with enough work for tasks to overtake each other. */
static struct sl_dataset community(void)
{
    const struct sl_community_options options = {
        .vertices = 1500,
        .classes = 5,
        .degree = 12,
        .features = 24,
        .seed = 4,
        .homophily = 0.6,
        .feature_noise = 2,
    };
    struct sl_dataset data;
    if (sl_generate_community(&options, &data))
        fail_msg("%s", sl_error_message());
    return data;
}

/* Who computes what, and when, must not change a bit. The second configuration chooses its own
 * tiles, which must not follow from the workers. */
static const char *const lines[] = {
    "--epochs 20 --tiles 6 --layers 3 --hidden 9 --patience 15",
    "--epochs 4 --hidden 64",
};
enum { LINES = 2 };

static void check_again(const struct sl_dataset *data, const struct run *first, const char *what)
{
    for (int l = 0; l < LINES; l++) {
        struct run again = train(data, lines[l], &(struct around){0});
        assert_same_run(&first[l], &again, 1, what);
        run_free(&again);
    }
}

static void test_schedulers(void **state)
{
    (void)state;
    static const char *const schedulers[] = {"eager", "lws", "prio", "dmda"};
    struct sl_dataset data = community();
    struct run first[LINES];
    for (int l = 0; l < LINES; l++)
        first[l] = train(&data, lines[l], &(struct around){0});
    for (int s = 0; s < 4; s++)
        for (int workers = 1; workers <= 2; workers++) {
            char what[64];
            snprintf(what, sizeof what, "%s, %d workers", schedulers[s], workers);
            restart(schedulers[s], workers);
            check_again(&data, first, what);
        }
    restart("lws", 2);
    for (int r = 0; r < 3; r++)
        check_again(&data, first, "the same run again");
    for (int l = 0; l < LINES; l++)
        run_free(&first[l]);
    sl_dataset_close(&data);
}

/* Another cut adds up in another order. */
static void test_tiles(void **state)
{
    (void)state;
    struct sl_dataset data = community();
    struct run first = train(&data, "--epochs 30 --tiles 1", &(struct around){0});
    static const int tiles[] = {0, 2, 5, 13};
    for (int t = 0; t < 4; t++) {
        char line[64];
        snprintf(line, sizeof line, "--epochs 30 --tiles %d", tiles[t]);
        struct run other = train(&data, line, &(struct around){0});
        assert_close_runs(&other, &first, TILES, line);
        run_free(&other);
    }
    run_free(&first);
    sl_dataset_close(&data);
}

static void test_tile_per_vertex(void **state)
{
    (void)state;
    struct run one = train_fixture("directed-weighted", "--epochs 30 --tiles 1");
    struct run all = train_fixture("directed-weighted", "--epochs 30 --tiles 53");
    struct run more = train_fixture("directed-weighted", "--epochs 30 --tiles 1000");
    assert_close_runs(&all, &one, TILES, "a tile per vertex");
    assert_same_run(&all, &more, 1, "more tiles than vertices");
    run_free(&one);
    run_free(&all);
    run_free(&more);
}

/* What a run with one more option on its line is like. */
static struct run train_with(const struct sl_dataset *data, const char *line, const char *option)
{
    char whole[MOST_LINE];
    assert_true(snprintf(whole, sizeof whole, "%s %s", line, option) < MOST_LINE);
    return train(data, whole, &(struct around){0});
}

/* Blocks of columns are summed in the order of the columns: not a bit changes. */
static void check_blocks(const struct sl_dataset *data, const char *line)
{
    static const char *const blocks[] = {"--block-columns 1", "--block-columns 3",
                                         "--block-columns 100", "--block-columns 1000000"};
    struct run usual = train_with(data, line, "");
    for (int b = 0; b < 4; b++) {
        struct run other = train_with(data, line, blocks[b]);
        assert_same_run(&usual, &other, 1, blocks[b]);
        run_free(&other);
    }
    run_free(&usual);
}

static void test_blocks(void **state)
{
    (void)state;
    static const char *const fixtures[] = {"directed-weighted", "undirected", "isolated"};
    for (int f = 0; f < 3; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixtures[f]));
        check_blocks(&data, "--epochs 20 --tiles 1");
        check_blocks(&data, "--epochs 20 --tiles 5 --layers 3 --hidden 7");
        check_blocks(&data, "--epochs 10 --tiles 3 --no-cache-aggregate --product-order spmm");
        sl_fixture_close(&data);
    }
    struct sl_dataset data = community();
    check_blocks(&data, "--epochs 5 --tiles 7");
    check_blocks(&data, "--epochs 5 --hidden 100");
    check_blocks(&data, "--epochs 5 --tiles 40"); /* more than one task per row tile */
    sl_dataset_close(&data);
}

/* Sums in pieces end as the same bfloat16 numbers as sums at once. */
static void test_blocks_bfloat16(void **state)
{
    (void)state;
    static const char *const fixtures[] = {"directed-weighted", "identity"};
    for (int f = 0; f < 2; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixtures[f]));
        check_blocks(&data, "--precision bf16 --epochs 20 --tiles 1");
        check_blocks(&data, "--precision bf16 --epochs 20 --tiles 19 --layers 3 --hidden 7");
        check_blocks(&data, "--precision bf16 --epochs 10 --tiles 3 --product-order spmm "
                            "--no-cache-aggregate");
        sl_fixture_close(&data);
    }
    struct sl_dataset data = community();
    check_blocks(&data, "--precision bf16 --epochs 5 --tiles 7");
    check_blocks(&data, "--precision bf16 --epochs 5 --input-dropout 0 --layers 3");
    sl_dataset_close(&data);
}

/* An element is rounded to 8 bits in each layer, so that it is off by up to 2^-9 of itself: losses
 * stay together within a few times that, but are not the same. */
static void check_bfloat16(const struct sl_dataset *data, const char *line)
{
    struct run single = train_with(data, line, ""),
               half = train_with(data, line, "--precision bf16");
    assert_close_runs(&half, &single, 0.02, line);
    assert_true(half.losses[half.epochs] != single.losses[single.epochs]);
    run_free(&single);
    run_free(&half);
}

static void test_bfloat16(void **state)
{
    (void)state;
    static const char *const fixtures[] = {"directed-weighted", "undirected", "isolated",
                                           "identity"};
    for (int f = 0; f < 4; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixtures[f]));
        check_bfloat16(&data, "--epochs 20 --tiles 3");
        check_bfloat16(&data, "--epochs 20 --layers 1 --product-order gemm");
        check_bfloat16(&data, "--epochs 20 --layers 1 --product-order spmm --no-cache-aggregate");
        check_bfloat16(&data, "--epochs 20 --layers 4 --hidden 21 --norm row");
        check_bfloat16(&data, "--epochs 20 --no-cache-aggregate --product-order spmm --layers 3");
        check_bfloat16(&data, "--epochs 20 --product-order gemm --layers 3 --input-dropout 0");
        sl_fixture_close(&data);
    }
    struct sl_dataset data = community();
    check_bfloat16(&data, "--epochs 20");
    check_bfloat16(&data, "--epochs 20 --input-dropout 0 --hidden 40");
    check_bfloat16(&data, "--epochs 20 --layers 1");
    sl_dataset_close(&data);
}

/* Each instruction set rounds in its own way, and the best one is what is used without asking. */
static void check_instructions(const struct sl_dataset *data, const char *line)
{
    struct run best = train_with(data, line, "");
    for (int level = SL_INSTRUCTIONS_BASE; level <= (int)sl_instructions_best(); level++) {
        char option[32];
        snprintf(option, sizeof option, "--instructions %s", sl_instructions_names[level]);
        struct run other = train_with(data, line, option);
        assert_int_equal(sl_instructions_get(), level);
        assert_close_runs(&other, &best, FORMS, option);
        if (level == (int)sl_instructions_best())
            assert_same_run(&best, &other, 1, option);
        run_free(&other);
    }
    run_free(&best);
}

static void test_instructions(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    check_instructions(&data, "--epochs 20 --tiles 3 --layers 3 --hidden 21");
    sl_fixture_close(&data);
    data = sl_fixture_open(sl_fixture_find("undirected-weighted"));
    check_instructions(&data, "--epochs 20 --norm row --input-dropout 0 --block-columns 9");
    sl_fixture_close(&data);
    data = community();
    check_instructions(&data, "--epochs 10 --hidden 64");
    sl_dataset_close(&data);
}

/* The same features, stored dense and CSR: the same masks, sums in another order. */
static void check_forms(const char *fixture, const char *line)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture)), dense = data;
    const int64_t count = data.vertices * data.features;
    double *wide = calloc((size_t)count, sizeof *wide);
    float *features = calloc((size_t)count, sizeof *features);
    sl_fixture_dense_features(&data, wide);
    for (int64_t i = 0; i < count; i++)
        features[i] = (float)wide[i];
    dense.feature_form = SL_FEATURES_DENSE;
    dense.features_dense = features;
    struct run a = train(&data, line, &(struct around){0});
    struct run b = train(&dense, line, &(struct around){0});
    assert_close_runs(&a, &b, FORMS, fixture);
    run_free(&a);
    run_free(&b);
    free(wide);
    free(features);
    sl_fixture_close(&data);
}

static void test_feature_forms(void **state)
{
    (void)state;
    static const char *const fixtures[] = {"undirected-weighted", "directed",
                                           "directed-weighted-self-loops", "identity"};
    for (int f = 0; f < 4; f++) {
        check_forms(fixtures[f], "--epochs 20 --tiles 3");
        check_forms(fixtures[f], "--epochs 20 --input-dropout 0 --normalize-features");
        check_forms(fixtures[f], "--epochs 20 --dropout 0 --no-cache-aggregate --tiles 2");
    }
}

/* ---- Early stopping ---- */

/* The epoch with the most right answers, the first of equals, and the epoch in which `patience` of
 * them have passed since. */
static void expect_stop(const struct run *whole, int64_t patience, int64_t *best, int64_t *stop)
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
    char line[MOST_LINE];
    int64_t best, stop;
    const int length = snprintf(line, sizeof line,
                                "--lr 0.05 --seed %d --tiles 2 --eval-every 1 --epochs 40", seed);
    struct run whole = train(data, line, &(struct around){0});
    expect_stop(&whole, patience, &best, &stop);
    const char *path = sl_running_path("stopped");
    snprintf(line + length, sizeof line - (size_t)length, " --patience %d --checkpoint %s",
             patience, path);
    struct run patient = train(data, line, &(struct around){0});
    assert_int_equal(patient.epochs, stop);
    assert_int_equal(patient.outcome.best_epoch, best);
    /* What is saved is the last epoch, though more of them were submitted. */
    line[length] = 0;
    if (stop < 40) {
        struct run rest = train(data, line, &(struct around){.resume = path});
        assert_int_equal(rest.first, stop + 1);
        assert_same_run(&whole, &rest, stop + 1, line);
        run_free(&rest);
    }
    assert_int_equal(unlink(path), 0);
    snprintf(line + length, sizeof line - (size_t)length, " --epochs %d", (int)best);
    struct run until_best = train(data, line, &(struct around){0});
    assert_same_parameters(&patient, &until_best, line);
    assert_true(patient.outcome.val_accuracy == until_best.outcome.val_accuracy);
    assert_true(patient.outcome.test_accuracy == until_best.outcome.test_accuracy);
    stopped[stop < 40] = true;
    run_free(&whole);
    run_free(&patient);
    run_free(&until_best);
}

static void test_patience(void **state)
{
    (void)state;
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
static void test_stop_request(void **state)
{
    (void)state;
    const volatile sig_atomic_t requested = 1;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    struct run stopped = train(&data, "--epochs 5000", &(struct around){.stop = &requested});
    assert_true(stopped.outcome.stopped);
    assert_int_equal(stopped.epochs, 1);
    struct run same = train(&data, "--epochs 1", &(struct around){0});
    assert_false(same.outcome.stopped);
    assert_same_parameters(&stopped, &same, "stopped on request");
    struct run patient =
        train(&data, "--epochs 5000 --patience 10", &(struct around){.stop = &requested});
    assert_int_equal(patient.epochs, 1);
    assert_int_equal(patient.outcome.best_epoch, 1);
    assert_same_parameters(&patient, &same, "stopped on request, with patience");
    run_free(&patient);
    run_free(&stopped);
    run_free(&same);
    sl_fixture_close(&data);
}

/* ---- Resuming ---- */

static void check_resume(const char *fixture, const char *options)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    const char *path = sl_running_path("half");
    char line[MOST_LINE];
    snprintf(line, sizeof line, "--epochs 20 %s", options);
    struct run whole = train(&data, line, &(struct around){0});
    snprintf(line, sizeof line, "--epochs 10 %s", options);
    struct run half = train(&data, line, &(struct around){.save = path});
    snprintf(line, sizeof line, "--epochs 20 %s", options);
    struct run rest = train(&data, line, &(struct around){.resume = path});
    assert_int_equal(rest.first, 11);
    assert_same_run(&whole, &rest, 11, options);
    run_free(&whole);
    run_free(&half);
    run_free(&rest);
    assert_int_equal(unlink(path), 0);
    sl_fixture_close(&data);
}

static void test_resume(void **state)
{
    (void)state;
    check_resume("undirected", "--tiles 3 --eval-every 100");
    check_resume("directed-weighted", "--optimizer sgd --lr 0.1 --eval-every 100");
    check_resume("identity", "--optimizer adamw --weight-decay 0.1 --layers 3 --eval-every 100");
    check_resume("directed", "--schedule step --step-epochs 6 --lr 0.1 --eval-every 100");
}

/* A run with patience that ended at epoch 10 goes on as if it had not, with its best parameters so
 * far: what is saved is the last epoch, beside the best one. */
static void test_resume_patience(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    for (int seed = 1; seed <= 5; seed++) {
        char line[MOST_LINE], options[MOST_LINE / 4];
        snprintf(options, sizeof options, "--patience 30 --lr 0.05 --seed %d", seed);
        snprintf(line, sizeof line, "--epochs 19 %s", options);
        struct run whole = train(&data, line, &(struct around){0});
        snprintf(line, sizeof line, "--epochs 10 %s --checkpoint %s", options,
                 sl_running_path("tenth"));
        struct run half = train(&data, line, &(struct around){0});
        snprintf(line, sizeof line, "--epochs 19 %s", options);
        struct run rest = train(&data, line, &(struct around){.resume = sl_running_path("tenth")});
        assert_int_equal(rest.first, 11);
        assert_same_run(&whole, &rest, 11, line);
        run_free(&whole);
        run_free(&half);
        run_free(&rest);
    }
    assert_int_equal(unlink(sl_running_path("tenth")), 0);
    sl_fixture_close(&data);
}

/* A checkpoint on the way that cannot be written is reported, and the training goes on. */
static void test_checkpoint_on_the_way_fails(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    char line[MOST_LINE];
    snprintf(line, sizeof line, "--epochs 20 --checkpoint %s/none/x --checkpoint-every 5",
             sl_running_dir);
    sl_log_enable(false);
    struct run run = train(&data, line, &(struct around){.fails = true});
    struct run good = train(&data, "--epochs 20", &(struct around){0});
    assert_same_run(&run, &good, 1, "without its checkpoints");
    run_free(&run);
    run_free(&good);
    sl_fixture_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_schedulers),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_tile_per_vertex),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_blocks_bfloat16),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_feature_forms),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_stop_request),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_patience),
        cmocka_unit_test(test_checkpoint_on_the_way_fails),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
