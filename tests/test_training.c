/* Whole training runs against the reference network in double (test_equal_runs: against each
 * other).
 *
 * How a loss curve is judged. Losses and logits are sums in float, off by about 1e-7 of themselves
 * in the first epoch. Adam divides a gradient by its own size. So the rounding of a gradient
 * becomes the same share of a step. Each epoch adds differences of 1e-6 of a weight's way, and the
 * loss feeds them back. After 30 epochs they were at most 5e-7 of a loss. A pre-activation that
 * passes relu's kink on one side only adds as much once. CURVE leaves room for another BLAS; a
 * wrong decay, correction, rate or mask changes a loss by more than 1e-3 within a few epochs.
 * Constants that the program keeps in float (0.9, 0.999) are the same floats here.
 *
 * To test another option's effect on training: add a line to `curves`, and what it means to
 * `reference_losses`. */
#include "tests/fixtures.h"
#include "tests/reference.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

static const double CURVE = 2e-5;
static const double NARROW = 0.02; /* bfloat16, whose roundings are 0.004 of what is rounded */

/* ---- Curves against the reference ---- */

static void normalize_rows(struct sl_reference *net, double power)
{
    for (int64_t v = 0; v < net->n; v++) {
        double norm = 0.0;
        for (int64_t j = 0; j < net->features; j++)
            norm += pow(fabs(net->x[v * net->features + j]), power);
        norm = pow(norm, 1.0 / power);
        for (int64_t j = 0; j < net->features && norm > 0.0; j++)
            net->x[v * net->features + j] /= norm;
    }
}

static enum sl_reference_norm reference_norm(const struct sl_config *config)
{
    if (config->network.model == &sl_model_gcn)
        return config->network.norm == SL_NORM_ROW ? SL_REFERENCE_ROW : SL_REFERENCE_SYM;
    return strcmp(config->network.aggregator->name, "gcn") == 0    ? SL_REFERENCE_GCN
           : strcmp(config->network.aggregator->name, "mean") == 0 ? SL_REFERENCE_MEAN
           : strcmp(config->network.aggregator->name, "max") == 0  ? SL_REFERENCE_MAX
           : strcmp(config->network.aggregator->name, "min") == 0  ? SL_REFERENCE_MIN
                                                                   : SL_REFERENCE_SUM;
}

static struct sl_reference *make_reference(const struct sl_dataset *data,
                                           const struct sl_config *config)
{
    int64_t hidden[8];
    for (int l = 0; l < 8; l++)
        hidden[l] = config->network.hidden;
    struct sl_reference *net =
        sl_fixture_reference(data, (int)config->network.layers, hidden, reference_norm(config));
    if (config->features.normalize_features == SL_FEATURE_NORM_L1)
        normalize_rows(net, 1.0);
    if (config->features.normalize_features == SL_FEATURE_NORM_L2)
        normalize_rows(net, 2.0);
    return net;
}

static double rate_of(const struct sl_config *config, int epoch)
{
    double rate = config->training.lr;
    if (config->training.schedule == SL_SCHEDULE_COSINE)
        rate *=
            0.5 + 0.5 * cos(3.14159265358979323846 * (epoch - 1) / (double)config->training.epochs);
    if (config->training.schedule == SL_SCHEDULE_STEP)
        for (int64_t e = config->training.step_epochs; e < epoch; e += config->training.step_epochs)
            rate *= config->training.step_factor;
    return rate;
}

static struct sl_reference_optimizer make_optimizer(const struct sl_config *config)
{
    const bool sgd = config->training.optimizer == SL_SGD;
    return (struct sl_reference_optimizer){
        .method = sgd                                      ? SL_REFERENCE_SGD
                  : config->training.optimizer == SL_ADAMW ? SL_REFERENCE_ADAMW
                                                           : SL_REFERENCE_ADAM,
        .decay = (double)(float)config->training.weight_decay,
        .decay_layers = config->training.weight_decay_all ? (int)config->network.layers : 1,
        .decay_bias = true,
        .beta1 = sgd ? (double)(float)config->training.momentum : (double)0.9f,
        .beta2 = (double)0.999f,
        .epsilon = 1e-8,
        .clip_norm = config->training.clip_norm,
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
    const uint64_t seed = (uint64_t)config->training.seed;
    struct sl_reference_optimizer optimizer = make_optimizer(config);
    for (int l = 0; l < net->layers; l++)
        net->dropout[l] = l == 0 && config->training.input_dropout >= 0.0
                              ? config->training.input_dropout
                              : config->training.dropout;
    sl_reference_initialize(net, seed);
    for (int epoch = 1; epoch <= config->training.epochs; epoch++) {
        sl_reference_set_epoch(net, seed, (uint32_t)epoch);
        optimizer.rate = rate_of(config, epoch);
        losses[epoch] = sl_reference_step(net, &optimizer);
        if (!config->network.bias)
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
    {"undirected", "--optimizer sgd --lr 0.2 --weight-decay 0.05 --clip-norm 0.02"},
    {"directed-weighted", "--layers 3 --hidden 7 --optimizer sgd --lr 0.2 --clip-norm 0.1"},
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
    {"undirected-weighted", "--normalize-features l2 --layers 1"},
    {"undirected-weighted", "--normalize-features l1 --input-dropout 0"},
    {"undirected-weighted", "--input-dropout 0.7 --dropout 0 --norm row"},
    {"self-loops", "--normalize-features l1 --schedule step --step-epochs 7 --step-factor 0.3"},
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
    {"directed-weighted", "--model sage --aggregator min --dropout 0.2 --lr 0.02"},
    {"directed-weighted", "--model sage --aggregator max --dropout 0.2 --precision bf16"},
    {"directed-weighted", "--layers 3 --hidden 7 --dropout 0.2 --precision bf16"},
    {"no-edges", "--layers 2 --lr 0.05"},
    {"one-vertex", "--dropout 0 --lr 0.02 --optimizer sgd"},
};

static bool is_narrow(const struct curve *curve)
{
    return strstr(curve->line, "bf16") != NULL;
}

/* A vertex that is added to its neighbours is in their order. */
static bool can_double(const struct curve *curve)
{
    return !strstr(curve->line, "sage") || strstr(curve->line, "--aggregator gcn");
}

static double check_curve(const struct curve *curve, int tiles, const char *order)
{
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line, "--epochs 30 --tiles %d --order %s %s", tiles, order, curve->line);
    struct sl_config config = sl_run_parse(line);
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(curve->fixture));
    struct sl_reference *net = make_reference(&data, &config);
    double *losses = calloc((size_t)config.training.epochs + 1, sizeof *losses);
    reference_losses(net, &config, losses);
    struct sl_run run = sl_run_train(&data, line, &(struct sl_around){0});
    const double difference = sl_run_difference(run.losses, losses, 30);
    if (!(difference <= (is_narrow(curve) ? NARROW : CURVE)))
        fail_msg("%s %s: the losses differ by %.2e from the reference's", curve->fixture, line,
                 difference);
    assert_true(run.outcome.loss == run.losses[30]);
    sl_run_free(&run);
    free(losses);
    sl_reference_destroy(net);
    sl_fixture_close(&data);
    sl_options_free(sl_config_options, &config);
    return difference;
}

SL_TEST(test_curves)
{
    double worst = 0.0, narrow = 0.0;
    for (size_t c = 0; c < sizeof curves / sizeof *curves; c++)
        for (int tiles = 1; tiles <= 4; tiles += 3) {
            const double once = check_curve(&curves[c], tiles, "none"),
                         twice = can_double(&curves[c]) ? check_curve(&curves[c], tiles, "double")
                                                        : 0.0;
            double *most = is_narrow(&curves[c]) ? &narrow : &worst;
            *most = fmax(*most, fmax(once, twice));
        }
    printf("largest relative difference of a loss: %.1e, and %.1e with bfloat16\n", worst, narrow);
}

/* ---- Predictions ---- */

static void set_parameters(struct sl_reference *net, const struct sl_run *run, bool bias)
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

/* Return the predictions of the trained parameters, without dropout. */
static void check_predictions(const char *fixture, const char *line)
{
    struct sl_config config = sl_run_parse(line);
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    struct sl_reference *net = make_reference(&data, &config);
    struct sl_run run = sl_run_train(&data, line, &(struct sl_around){0});
    double *logits = calloc((size_t)(net->n * net->classes), sizeof *logits);
    set_parameters(net, &run, config.network.bias);
    sl_reference_forward(net, logits);
    for (int64_t i = 0; i < net->n * net->classes; i++)
        if (!(fabs((double)run.logits[i] - logits[i]) <= 2e-5 * fmax(1.0, fabs(logits[i]))))
            fail_msg("%s %s: logit %d is %.9g, expected %.9g", fixture, line, (int)i,
                     (double)run.logits[i], logits[i]);
    check_accuracy(net, logits, &data.train, run.outcome.train_accuracy);
    check_accuracy(net, logits, &data.val, run.outcome.val_accuracy);
    check_accuracy(net, logits, &data.test, run.outcome.test_accuracy);
    free(logits);
    sl_run_free(&run);
    sl_reference_destroy(net);
    sl_fixture_close(&data);
    sl_options_free(sl_config_options, &config);
}

SL_TEST(test_predictions)
{
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_predictions),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
