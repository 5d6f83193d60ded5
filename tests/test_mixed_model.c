/* A model whose layers are of different kinds: loss and gradients against a dense reference in
 * double, which knows of each layer its kind alone.
 *
 *   gcn    Z = L·S·R·H·W + b
 *   sage   Z = H·V + L·S·H·N + b
 *   H of the next layer = relu(Z), loss = mean cross-entropy of the training vertices
 *
 * S = A + I. With --norm sym, L = R = D^-1/2; with --norm row, L = D^-1 and R = I. Expected
 * gradients are central differences of the reference. */
#include "codelets/optimizer.h"
#include "core/error.h"
#include "graphs/forward.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

enum { LAYERS = 4, VERTICES = 41, MOST_WIDTH = 23, MOST = 2 * MOST_WIDTH * MOST_WIDTH };

static const double STEP = 1e-5, KINK = 5e-5, TOLERANCE = 2e-5;

static const struct sl_fixture fixture = {SL_FIXTURE("mixed", VERTICES, 11, 5, 4),
                                          .directed = true,
                                          .weighted = true,
                                          .isolated = 2,
                                          .form = SL_FEATURES_DENSE,
                                          .seed = 91};

static const struct mixed {
    const char *kind[LAYERS];
    int64_t width[LAYERS + 1];
    const char *words;
} mixed[] = {
    {{"gcn", "sage", "gcn", "sage"}, {11, 9, 9, 9, 5}, "--norm sym --product-order gemm"},
    {{"gcn", "sage", "gcn", "sage"}, {11, 9, 9, 9, 5}, "--norm sym --product-order spmm"},
    {{"gcn", "gcn", "sage", "gcn"}, {11, 7, 23, 3, 5}, "--norm sym"},
    {{"sage", "gcn", "sage", "sage"}, {11, 9, 9, 9, 5}, "--norm row --product-order spmm"},
    {{"gcn", "sage", "sage", "gcn"}, {11, 9, 9, 9, 5}, "--norm sym --product-order spmm"},
    {{"sage", "sage", "gcn", "gcn"}, {11, 23, 7, 9, 5}, "--norm row --product-order gemm"},
    {{"sage", "gcn", "gcn", "sage"}, {11, 5, 5, 5, 5}, "--norm row --tiles 1"},
    {{"gcn", "sage", "gcn", "sage"},
     {11, 7, 9, 6, 5},
     "--norm sym --product-order gemm --precision bf16"},
};

/* How much more loss and gradients may differ where activations have 8 bits. */
static double slack_of(const struct mixed *m)
{
    return strstr(m->words, "bf16") ? 2000.0 : 1.0;
}

/* ---- The reference ---- */

struct reference {
    const struct mixed *model;
    double s[VERTICES][VERTICES], left[VERTICES], right[VERTICES];
    double x[VERTICES * MOST_WIDTH];
    int32_t label[VERTICES];
    bool train[VERTICES];
    double theta[LAYERS][MOST]; /* weights, then the bias, as the program has them */
    double kink;                /* the least |pre-activation| of hidden layers, in the last pass */
};

static bool is_sage(const struct mixed *m, int l)
{
    return strcmp(m->kind[l], "sage") == 0;
}

static int64_t rows_of(const struct mixed *m, int l)
{
    return (is_sage(m, l) ? 2 : 1) * m->width[l] + 1;
}

/* z (n, out) += x (n, in) · w (in, out) */
static void multiply(const double *x, const double *w, int64_t in, int64_t out, double *z)
{
    for (int64_t v = 0; v < VERTICES; v++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t j = 0; j < out; j++)
                z[v * out + j] += x[v * in + i] * w[i * out + j];
}

/* z = L·S·R·h, R only for a GCN's layer */
static void aggregate(const struct reference *ref, bool scaled, const double *h, int64_t width,
                      double *z)
{
    for (int64_t v = 0; v < VERTICES; v++)
        for (int64_t j = 0; j < width; j++) {
            double sum = 0.0;
            for (int64_t u = 0; u < VERTICES; u++)
                sum += ref->s[v][u] * (scaled ? ref->right[u] : 1.0) * h[u * width + j];
            z[v * width + j] = ref->left[v] * sum;
        }
}

static double loss_of(struct reference *ref)
{
    static double h[VERTICES * MOST_WIDTH], z[VERTICES * MOST_WIDTH], y[VERTICES * MOST_WIDTH];
    const struct mixed *m = ref->model;
    memcpy(h, ref->x, sizeof h);
    ref->kink = INFINITY;
    for (int l = 0; l < LAYERS; l++) {
        const int64_t in = m->width[l], out = m->width[l + 1];
        const double *w = ref->theta[l], *bias = w + (rows_of(m, l) - 1) * out;
        for (int64_t k = 0; k < VERTICES * out; k++)
            z[k] = bias[k % out];
        aggregate(ref, !is_sage(m, l), h, in, y);
        if (is_sage(m, l))
            multiply(h, w, in, out, z);
        multiply(y, is_sage(m, l) ? w + in * out : w, in, out, z);
        for (int64_t k = 0; k < VERTICES * out; k++) {
            if (l + 1 < LAYERS)
                ref->kink = fmin(ref->kink, fabs(z[k]));
            h[k] = l + 1 < LAYERS ? fmax(z[k], 0.0) : z[k];
        }
    }
    const int64_t classes = m->width[LAYERS];
    double loss = 0.0, count = 0.0;
    for (int64_t v = 0; v < VERTICES; v++)
        if (ref->train[v] && ref->label[v] >= 0) {
            double sum = 0.0;
            for (int64_t c = 0; c < classes; c++)
                sum += exp(h[v * classes + c]);
            loss += log(sum) - h[v * classes + ref->label[v]];
            count++;
        }
    return loss / count;
}

static void open_reference(struct reference *ref, const struct mixed *m,
                           const struct sl_dataset *data)
{
    memset(ref, 0, sizeof *ref);
    ref->model = m;
    struct sl_reference *plain =
        sl_fixture_reference(data, 1, NULL, SL_REFERENCE_SYM); /* its arrays alone */
    const bool row = strstr(m->words, "--norm row");
    for (int64_t v = 0; v < VERTICES; v++) {
        double degree = 1.0;
        for (int64_t u = 0; u < VERTICES; u++) {
            ref->s[v][u] = plain->a[v * VERTICES + u] + (u == v);
            degree += plain->a[v * VERTICES + u];
        }
        ref->left[v] = row ? 1.0 / degree : 1.0 / sqrt(degree);
        ref->right[v] = row ? 1.0 : 1.0 / sqrt(degree);
        ref->label[v] = plain->labels[v];
        ref->train[v] = plain->train[v];
    }
    memcpy(ref->x, plain->x, (size_t)(VERTICES * m->width[0]) * sizeof *ref->x);
    sl_reference_destroy(plain);
}

/* ---- The program ---- */

static void set_layer(struct reference *ref, struct sl_model *model, int l, uint64_t seed)
{
    struct sl_tile *tile = &model->layer[l].parameters;
    float *w = sl_tile_acquire(&sl_running, tile, true);
    assert_int_equal(tile->rows, rows_of(ref->model, l));
    for (int64_t i = 0; i < tile->rows * tile->cols; i++) {
        w[i] = (float)(1.2 * sl_rng_uniform(seed, (uint32_t)l, (uint32_t)i) - 0.6);
        ref->theta[l][i] = (double)w[i];
    }
    sl_tile_release(tile);
}

static int create_model(struct sl_model *model, const struct mixed *m)
{
    int code = sl_model_open(model, &sl_running,
                             &(struct sl_model_options){.layers = LAYERS, .states = 1, .seed = 1});
    for (int l = 0; !code && l < LAYERS; l++)
        code = sl_model_add(
            model, &(struct sl_layer_shape){.kind = is_sage(m, l) ? &sl_layer_sage : &sl_layer_gcn,
                                            .reducer = &sl_reduce_sum,
                                            .in = m->width[l],
                                            .out = m->width[l + 1],
                                            .bias = true,
                                            .activation = l == LAYERS - 1 ? SL_ACTIVATION_NONE
                                                                          : SL_ACTIVATION_RELU});
    return code;
}

static void check_layer(struct reference *ref, struct sl_network *net, int l)
{
    struct sl_layer *layer = &net->layer[l];
    struct sl_tile *tile = layer->back.gradient.rows ? &layer->back.gradient
                                                     : sl_matrix_tile(&layer->back.gradients, 0, 0);
    const float *got = sl_tile_acquire(&sl_running, tile, false);
    double largest = 0.0, off = 0.0;
    for (int64_t i = 0; i < tile->rows * tile->cols; i++) {
        double *w = &ref->theta[l][i];
        const double at = *w;
        *w = at + STEP;
        const double above = loss_of(ref);
        *w = at - STEP;
        const double below = loss_of(ref);
        *w = at;
        const double expected = (above - below) / (2.0 * STEP);
        const int64_t r = i / tile->cols, j = i % tile->cols;
        largest = fmax(largest, fabs(expected));
        off = fmax(off, fabs(expected - (double)got[r * tile->ld + j]));
    }
    sl_tile_release(tile);
    if (!(off <= slack_of(ref->model) * TOLERANCE * largest && largest > 1e-4))
        fail_msg("%s: gradient of layer %d (%s) is off by %.3g of %.3g", ref->model->words, l,
                 ref->model->kind[l], off, largest);
}

static void check(const struct mixed *m, const struct sl_dataset *data)
{
    static struct reference ref;
    static const struct sl_optimizer_step still = {.method = SL_SGD};
    struct sl_opened run;
    struct sl_model model;
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line,
             "--model gcn --hidden 9 --tiles 3 --no-cache-aggregate "
             "--dropout 0 --normalize-features none %s",
             m->words);
    open_reference(&ref, m, data);
    sl_opened_open(&run, data, sl_run_parse(line));
    assert_int_equal(create_model(&model, m), 0);
    struct sl_network net = {.rt = &sl_running, .graph = &run.trainer.whole.graph, .model = &model};
    assert_int_equal(sl_network_create(&net, sl_config_product_order(&run.config), NULL), 0);
    double loss = 0.0;
    for (uint64_t seed = 1; seed < 100 && !(ref.kink > KINK); seed++) {
        for (int l = 0; l < LAYERS; l++)
            set_layer(&ref, &model, l, seed);
        loss = loss_of(&ref);
    }
    assert_true(ref.kink > KINK);
    sl_model_spread(&model);
    net.step.epoch = net.step.update = 1;
    sl_network_train(&net, &still);
    const double got = sl_network_train_loss(&net);
    if (!(fabs(got - loss) <= slack_of(m) * 2e-6 * fmax(loss, 1.0)))
        fail_msg("%s: the loss is %.9g, expected %.9g", m->words, got, loss);
    for (int l = 0; l < LAYERS; l++)
        check_layer(&ref, &net, l);
    sl_network_destroy(&net);
    sl_model_destroy(&model);
    sl_opened_close(&run);
}

SL_TEST(test_gradients)
{
    struct sl_dataset data = sl_fixture_open(&fixture);
    for (size_t m = 0; m < sizeof mixed / sizeof *mixed; m++)
        check(&mixed[m], &data);
    sl_fixture_close(&data);
}

/* A built-in layer without steps, and a program's own layer or reducer, have a sentence each. */
static void test_layers_without_steps(void **unused)
{
    static const struct sl_own_layer own;
    static const struct sl_own_reducer own_reducer;
    const struct sl_reducer reducer = {.own = &own_reducer};
    const struct sl_layer_kind new = {.name = "new"}, owned = {.name = "owned", .own = &own};
    struct sl_layer_shape shape[] = {{.kind = &new}, {.kind = &owned}, {.kind = &new}};
    (void)unused;
    shape[2].reducer = &reducer;
    for (int l = 0; l < 3; l++) {
        struct sl_program program = {.count = 0};
        const struct sl_layer_list list = {.layer = &shape[l], .count = 1};
        assert_int_equal(sl_forward_layers(&program, SL_STEP_NORM_SYM, 0, &list), SL_ERR_USAGE);
        assert_non_null(strstr(sl_error_message(), l ? "has a function of the program"
                                                     : "new, has no forward program yet"));
        sl_program_free(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_layers_without_steps)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
