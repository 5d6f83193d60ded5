/* The gradient of every parameter, as one training step leaves it, against central differences in
 * double of the reference network (tests/reference.h).
 *
 * The tests vary:
 *
 *     fixture         every fixture with a vertex: directed or not, weights, self-loops, features
 *                     dense, CSR or none
 *     layers          1, 2 and 3
 *     product order   GEMM first, SpMM first
 *     model           both normalisations of a GCN, all aggregators of GraphSAGE
 *     biases          with and without
 *     dropout         none (Â·X kept, and made anew); on every layer; on all layers but the first
 *                     (so that Â·X is kept beside dropout)
 *     tiles           1 and 3
 *
 * How it is judged. The difference's own error is 1e-10 (step 1e-5, test_reference.c). The program
 * sums at most a few hundred terms in float through at most six products. Each sum is off by about
 * √terms · 2^-24 of its largest terms: some 1e-6 of the layer's largest gradient. A gradient may
 * differ by TOLERANCE of the largest one of its layer; the largest difference seen is printed. A
 * wrong mask, transpose or scale changes gradients by whole tenths. Weights are taken for which no
 * pre-activation is within KINK of relu's kink.
 *
 * This bound says nothing of gradients that are small beside the largest one. So each gradient is
 * also compared with backpropagation in double, which test_reference.c compares with differences. A
 * gradient may be off by ENTRY of the sum of its own terms' sizes: some roundings of float,
 * whatever other gradients are. If a feature is a millionth of the others, its gradient must be
 * right to a hundredth.
 *
 * The learning rate is 0, so a step does not change the weights. Dropout masks are of epoch 7, so a
 * mask that ignores the epoch fails.
 *
 * To test a new kind of layer: give the reference that kind, which `each_network` loops over. */
#include <float.h>

#include "codelets/optimizer.h"
#include "core/error.h"
#include "core/rng.h"
#include "tests/fixtures.h"
#include "tests/reference.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/sample.h"
#include "tests/unit.h"
#include "train/trainer.h"

static const double STEP = 1e-5, KINK = 5e-5, TOLERANCE = 1e-5, ENTRY = 1e-6;
enum { EPOCH = 7, MOST_LAYERS = 3 };

static double worst;       /* difference seen, relative to the layer's largest gradient */
static double worst_entry; /* likewise, relative to the gradient's own terms */
static int64_t programs, compared;
static int64_t small, noticed; /* gradients below TOLERANCE; those of which 1 % more is too much */

/* The right gradients: central differences; backpropagation, and the size of its terms. */
struct expected {
    double *difference, *gradient, *terms; // (parameters)
};

/* ---- What is varied ---- */

enum dropout { DROPOUT_NONE, DROPOUT_ALL, DROPOUT_HIDDEN, DROPOUTS };

/* A model in the options that the reference knows. */
struct model {
    const struct sl_dataset *data;
    int layers;
    enum sl_reference_norm norm;
    bool bias;
    enum dropout dropout;
    uint64_t seed;
    enum sl_reference_loss loss;
    double smoothing;
    bool balanced;
};

/* Options that must not change gradients. */
struct variant {
    const char *order;
    bool cache; /* asked for; in vain where the input is dropped out */
    int tiles;
};

/* GraphSAGE's. */
static const char *const aggregators[SL_REFERENCE_NORMS] = {
    [SL_REFERENCE_GCN] = "gcn", [SL_REFERENCE_MEAN] = "mean", [SL_REFERENCE_SUM] = "sum",
    [SL_REFERENCE_MAX] = "max", [SL_REFERENCE_MIN] = "min",
};

static double dropout_of(const struct model *model, int layer)
{
    const bool dropped =
        model->dropout == DROPOUT_ALL || (model->dropout == DROPOUT_HIDDEN && layer > 0);
    return dropped ? 0.4 : 0.0;
}

static int64_t hidden_of(const struct model *model)
{
    return model->layers == 2 ? 17 : 5;
}

static void fail_model(const struct model *model, const struct variant *variant, const char *what)
{
    fail_msg("%s, %d layers, norm %d, bias %d, dropout kind %d, order %s, cache %d, %d tiles: %s",
             model->data->name, model->layers, (int)model->norm, model->bias, (int)model->dropout,
             variant->order, variant->cache, variant->tiles, what);
}

/* ---- The reference ---- */

/* The smallest |pre-activation|. Without biases, vertices that nothing reaches (no features, all
 * dropped) have pre-activations that are 0 whatever the weights: no kink is ever crossed there. */
static double kink_distance(const struct sl_reference *net, bool bias)
{
    double distance = sl_reference_lead(net);
    for (int l = 0; l + 1 < net->layers; l++) {
        struct sl_reference part = *net;
        part.layers = l + 1;
        part.classes = net->widths[l + 1];
        double *z = calloc((size_t)(net->n * part.classes), sizeof *z);
        sl_reference_forward(&part, z);
        for (int64_t i = 0; i < net->n * part.classes; i++)
            if (bias || z[i] != 0.0)
                distance = fmin(distance, fabs(z[i]));
        free(z);
    }
    return distance;
}

/* Glorot weights and biases of a like size, all of them floats. */
static void set_parameters(struct sl_reference *net, const struct model *model)
{
    sl_reference_initialize(net, model->seed);
    for (int l = 0; model->bias && l < net->layers; l++) {
        double *b = sl_reference_bias(net, net->theta, l);
        for (int64_t j = 0; j < net->widths[l + 1]; j++)
            b[j] = (double)(float)(sl_rng_uniform(model->seed, (uint32_t)l, (uint32_t)j) - 0.5);
    }
    sl_reference_set_epoch(net, model->seed, EPOCH);
}

static struct sl_reference *make_reference(struct model *model)
{
    const int64_t hidden[] = {hidden_of(model), hidden_of(model)};
    struct sl_reference *net =
        sl_fixture_reference(model->data, model->layers, hidden, model->norm);
    for (int l = 0; l < model->layers; l++)
        net->dropout[l] = dropout_of(model, l);
    net->loss = model->loss;
    net->smoothing = model->smoothing;
    net->balanced = model->balanced;
    model->seed = 1;
    set_parameters(net, model);
    while (kink_distance(net, model->bias) < KINK && model->seed < 1000) {
        model->seed++;
        set_parameters(net, model);
    }
    assert_true(kink_distance(net, model->bias) >= KINK);
    return net;
}

/* ---- The program ---- */

static void set_option(struct sl_config *config, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_option(struct sl_config *config, const char *name, const char *format, ...)
{
    char value[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    if (sl_options_set(sl_config_options, config, name, value))
        fail_msg("--%s %s: %s", name, value, sl_error_message());
}

static struct sl_config make_config(const struct model *model, const struct variant *variant)
{
    struct sl_config config = {0};
    assert_int_equal(sl_config_defaults(&config), 0);
    static const char *const losses[] = {[SL_REFERENCE_SOFTMAX] = "cross-entropy",
                                         [SL_REFERENCE_SIGMOID] = "sigmoid",
                                         [SL_REFERENCE_SQUARE] = "mse"};
    set_option(&config, "loss", "%s", losses[model->loss]);
    set_option(&config, "label-smoothing", "%g", model->smoothing);
    set_option(&config, "class-weights", "%s", model->balanced ? "balanced" : "none");
    set_option(&config, "layers", "%d", model->layers);
    set_option(&config, "hidden", "%d", (int)hidden_of(model));
    set_option(&config, "norm", model->norm == SL_REFERENCE_ROW ? "row" : "sym");
    set_option(&config, "model", aggregators[model->norm] ? "sage" : "gcn");
    if (aggregators[model->norm])
        set_option(&config, "aggregator", "%s", aggregators[model->norm]);
    set_option(&config, "bias", model->bias ? "yes" : "no");
    set_option(&config, "dropout", "%g", dropout_of(model, 1));
    set_option(&config, "input-dropout", "%g", dropout_of(model, 0));
    set_option(&config, "product-order", "%s", variant->order);
    set_option(&config, "cache-aggregate", variant->cache ? "yes" : "no");
    set_option(&config, "tiles", "%d", variant->tiles);
    set_option(&config, "seed", "%d", (int)model->seed);
    return config;
}

/* The program starts from the reference's weights, after a look at its own: they differ by the
 * rounding of the limit at most. Its biases start as 0. */
static void set_layer(const struct sl_reference *net, struct sl_layer *layer)
{
    const int l = layer->index;
    const double *w = sl_reference_weight(net, net->theta, l);
    const double *b = sl_reference_bias(net, net->theta, l);
    assert_int_equal(layer->in, net->widths[l]);
    assert_int_equal(layer->out, net->widths[l + 1]);
    float *own = sl_tile_acquire(&sl_running, &layer->model->parameters, true);
    const int64_t weights = sl_layer_bias_row(layer) * layer->out;
    assert_int_equal(layer->kind->weights.count, sl_reference_weights(net));
    for (int64_t i = 0; i < weights; i++) {
        assert_true(fabs((double)own[i] - w[i]) <= 1e-6 * fabs(w[i]) + 1e-7);
        own[i] = (float)w[i];
    }
    for (int64_t j = 0; layer->bias && j < layer->out; j++) {
        assert_true(own[weights + j] == 0.0f);
        own[weights + j] = (float)b[j];
    }
    sl_tile_release(&layer->model->parameters);
}

static void check_weights_kept(const struct sl_reference *net, struct sl_layer *layer)
{
    const double *w = sl_reference_weight(net, net->theta, layer->index);
    const float *own = sl_tile_acquire(&sl_running, &layer->model->parameters, false);
    for (int64_t i = 0; i < layer->model->parameters.rows * layer->out; i++)
        assert_true((double)own[i] == w[i]);
    sl_tile_release(&layer->model->parameters);
}

/* One layer's, from its first parameter on. */
static struct expected of_layer(const struct sl_reference *net, const struct expected *all, int l)
{
    return (struct expected){sl_reference_weight(net, all->difference, l),
                             sl_reference_weight(net, all->gradient, l),
                             sl_reference_weight(net, all->terms, l)};
}

static bool is_right(double seen, const struct expected *expected, int64_t i, double largest)
{
    const double off = fabs(seen - expected->difference[i]),
                 own = fabs(seen - expected->gradient[i]);
    return off <= TOLERANCE * largest + 1e-9 && own <= ENTRY * expected->terms[i] + (double)FLT_MIN;
}

/* The differences of a right gradient show what this test can find. */
static void take_note(double seen, const struct expected *expected, int64_t i, double largest)
{
    const double wanted = expected->gradient[i], terms = expected->terms[i];
    if (largest > 1e-6)
        worst = fmax(worst, fabs(seen - expected->difference[i]) / largest);
    if (terms > 1e-30)
        worst_entry = fmax(worst_entry, fabs(seen - wanted) / terms);
    if (fabs(wanted) < TOLERANCE * largest && wanted != 0.0) {
        small++;
        noticed += !is_right(1.01 * seen, expected, i, largest);
    }
    compared++;
}

static void check_layer(const struct model *model, const struct variant *variant,
                        const struct sl_reference *net, const struct expected *all,
                        struct sl_layer *layer)
{
    const struct expected expected = of_layer(net, all, layer->index);
    struct sl_tile *tile = layer->back.gradient.rows ? &layer->back.gradient
                                                     : sl_matrix_tile(&layer->back.gradients, 0, 0);
    const float *got = sl_tile_acquire(&sl_running, tile, false);
    double largest = 0.0;
    for (int64_t i = 0; i < tile->rows * layer->out; i++)
        largest = fmax(largest, fabs(expected.difference[i]));
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t j = 0; j < layer->out; j++) {
            const int64_t i = r * layer->out + j;
            const double seen = (double)got[r * tile->ld + j];
            char text[192];
            snprintf(text, sizeof text,
                     "d loss / d W%d(%d, %d) is %.9g, expected %.9g, with terms of %.3g",
                     layer->index, (int)r, (int)j, seen, expected.gradient[i], expected.terms[i]);
            if (!is_right(seen, &expected, i, largest))
                fail_model(model, variant, text);
            take_note(seen, &expected, i, largest);
        }
    sl_tile_release(tile);
}

static void check_loss(const struct model *model, const struct variant *variant, double wanted,
                       struct sl_network *net)
{
    const double loss = sl_network_train_loss(net);
    char text[64];
    snprintf(text, sizeof text, "the loss is %.9g, expected %.9g", loss, wanted);
    if (!(fabs(loss - wanted) <= 2e-6 * fmax(wanted, 1.0)))
        fail_model(model, variant, text);
}

static void check_program(const struct model *model, const struct variant *variant,
                          const struct sl_reference *net, const struct expected *expected)
{
    static const struct sl_optimizer_step still = {.method = SL_SGD};
    struct sl_opened run;
    sl_opened_open(&run, model->data, make_config(model, variant));
    struct sl_network *program = &run.trainer.whole.network;
    for (int l = 0; l < model->layers; l++)
        set_layer(net, &program->layer[l]);
    sl_model_spread(&run.trainer.model);
    program->step.epoch = program->step.update = EPOCH;
    sl_network_train(program, &still);
    check_loss(model, variant, sl_reference_loss(net), program);
    for (int l = 0; l < model->layers; l++) {
        check_layer(model, variant, net, expected, &program->layer[l]);
        check_weights_kept(net, &program->layer[l]);
    }
    sl_opened_close(&run);
    programs++;
}

/* ---- All of it ---- */

static void each_variant(const struct model *model, const struct sl_reference *net,
                         const struct expected *expected)
{
    static const char *const orders[] = {"gemm", "spmm", "auto"};
    const bool can_cache = dropout_of(model, 0) == 0.0;
    for (int order = 0; order < 3; order++)
        for (int cache = !can_cache; cache <= 1; cache++)
            for (int tiles = 1; tiles <= 3; tiles += 2)
                check_program(model, &(struct variant){orders[order], cache, tiles}, net, expected);
}

static void check_model(struct model *model)
{
    struct sl_reference *net = make_reference(model);
    struct expected expected;
    double **const lists[] = {&expected.difference, &expected.gradient, &expected.terms};
    for (int k = 0; k < 3; k++)
        *lists[k] = calloc((size_t)net->parameters, sizeof(double));
    for (int64_t p = 0; p < net->parameters; p++)
        expected.difference[p] = sl_reference_difference(net, p, STEP);
    sl_reference_gradient(net, expected.gradient);
    sl_reference_terms(net, expected.terms);
    each_variant(model, net, &expected);
    for (int k = 0; k < 3; k++)
        free(*lists[k]);
    sl_reference_destroy(net);
}

static void print_notes(int layers)
{
    printf("%d layers: %lld networks, %lld gradients, largest difference %.1e, of its own terms "
           "%.1e; %lld small ones, of which 1 %% is noticed in %lld\n",
           layers, (long long)programs, (long long)compared, worst, worst_entry, (long long)small,
           (long long)noticed);
    programs = compared = small = noticed = 0;
    worst = worst_entry = 0.0;
}

/* One network of five; with SL_EVERY=all in the environment (make check-every), all. */
static bool is_wanted(void)
{
    static int number;
    const char *every = getenv("SL_EVERY");
    const int place = number++;
    return (every && strcmp(every, "all") == 0) || (place % 5 == 0 && sl_in_sample(place / 5));
}

static void each_network(int layers)
{
    for (int i = 0; i < sl_fixture_count; i++) {
        if (sl_fixtures[i].vertices == 0)
            continue;
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[i]);
        for (int norm = 0; norm < SL_REFERENCE_NORMS; norm++)
            for (int bias = 0; bias < 2; bias++)
                for (int dropout = 0; dropout < DROPOUTS; dropout++) {
                    if ((layers == 1 && dropout == DROPOUT_HIDDEN) || !is_wanted())
                        continue;
                    check_model(&(struct model){&data, layers, (enum sl_reference_norm)norm, bias,
                                                (enum dropout)dropout, 0, SL_REFERENCE_SOFTMAX, 0.0,
                                                false});
                }
        sl_fixture_close(&data);
    }
    print_notes(layers);
}

SL_TEST(test_one_layer)
{
    each_network(1);
}

SL_TEST(test_two_layers)
{
    each_network(2);
}

SL_TEST(test_three_layers)
{
    each_network(3);
}

/* No training vertex has class 1. */
static void drop_class(struct sl_dataset *data)
{
    int32_t *labels = (int32_t *)data->labels;
    for (int64_t k = 0; k < data->train.count; k++)
        if (labels[data->train.ids[k]] == 1)
            labels[data->train.ids[k]] = 0;
}

/* Every loss, with class weights and label smoothing where it has them. */
SL_TEST(test_losses)
{
    static const char *const fixtures[] = {"undirected", "directed"};
    static const struct {
        enum sl_reference_loss loss;
        double smoothing;
        bool balanced;
    } losses[] = {
        {SL_REFERENCE_SOFTMAX, 0.0, true},  {SL_REFERENCE_SOFTMAX, 0.1, false},
        {SL_REFERENCE_SOFTMAX, 0.25, true}, {SL_REFERENCE_SIGMOID, 0.0, false},
        {SL_REFERENCE_SIGMOID, 0.2, false}, {SL_REFERENCE_SIGMOID, 0.1, true},
        {SL_REFERENCE_SQUARE, 0.0, false},
    };
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixtures[f]));
        if (f > 0)
            drop_class(&data);
        for (size_t l = 0; l < sizeof losses / sizeof *losses; l++)
            for (int norm = 0; norm < SL_REFERENCE_NORMS; norm += 3)
                check_model(&(struct model){.data = &data,
                                            .layers = 2,
                                            .norm = (enum sl_reference_norm)norm,
                                            .bias = true,
                                            .loss = losses[l].loss,
                                            .smoothing = losses[l].smoothing,
                                            .balanced = losses[l].balanced});
        sl_fixture_close(&data);
    }
    print_notes(2);
}

/* A feature a millionth as large as the others, and so its weights' gradients. */
SL_TEST(test_small_gradients)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    float *x = (float *)data.features_dense;
    for (int64_t v = 0; v < data.vertices; v++)
        x[v * data.features] *= 0x1p-20f;
    for (int norm = 0; norm < SL_REFERENCE_NORMS; norm++)
        for (int dropout = 0; dropout < DROPOUTS; dropout++)
            check_model(&(struct model){&data, 2, (enum sl_reference_norm)norm, true,
                                        (enum dropout)dropout, 0, SL_REFERENCE_SOFTMAX, 0.0,
                                        false});
    const int64_t found = small, changed = noticed;
    print_notes(2);
    sl_fixture_close(&data);
    assert_true(found > 1000 && 10 * changed > 9 * found); /* of the others, terms cancel */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),       cmocka_unit_test(test_small_gradients),
        cmocka_unit_test(test_one_layer),    cmocka_unit_test(test_two_layers),
        cmocka_unit_test(test_three_layers),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
