/* Graph attention networks: loss and gradients against a dense reference in double, written from
 * the paper (Velickovic et al., sections 2.1 and 2.2), with a tensor of coefficients for each
 * layer. Layers of GraphSAGE, with the sum of the neighbours, may be between.
 *
 *   gat    P = H·W     e_ij = LeakyReLU(a_dst·P_i + a_src·P_j)     w = A + I
 *          alpha_ij = w_ij exp(e_ij) / Σ_k w_ik exp(e_ik)     Z_i = Σ_j alpha_ij μ_ij P_j
 *          H of the next layer = elu(heads side by side + b); the last layer: the mean of heads + b
 *   sage   Z = H·V + S·H·N + b, S = A + I     H of the next layer = relu(Z)
 *   norm   of the rows of Z of gat: (Z - mean) / sqrt(variance + 1e-5) · w + b   H = elu of this
 *
 * Dropout, on the inputs of layers and on alpha, is drawn as the program does. Expected gradients
 * are central differences of the reference, for weights with which no LeakyReLU and no relu is near
 * its kink. */
#include "codelets/optimizer.h"
#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

enum { VERTICES = 37, LAYERS = 3, MOST_WIDTH = 24, MOST = 2 * MOST_WIDTH * MOST_WIDTH, EPOCH = 4 };

static const double STEP = 1e-5, KINK = 5e-5, TOLERANCE = 2e-5;

static const struct sl_fixture fixtures[] = {
    {SL_FIXTURE("directed, weighted", VERTICES, 11, 5, 4), .directed = true, .weighted = true,
     .self_loops = true, .isolated = 3, .form = SL_FEATURES_DENSE, .seed = 71},
    {SL_FIXTURE("undirected, sparse features", VERTICES, 11, 5, 5), .isolated = 2,
     .form = SL_FEATURES_CSR, .seed = 72},
};

struct network {
    int layers;
    const char *kind[LAYERS];
    int64_t width[LAYERS + 1]; /* features, outputs */
    int heads[LAYERS];
    bool bias;
    double dropout, attention_dropout;
    const char *words;
};

static const struct network networks[] = {
    {1, {"gat"}, {11, 5}, {1}, true, 0.0, 0.0, "--tiles 3"},
    {1, {"gat"}, {11, 5}, {2}, true, 0.3, 0.4, "--tiles 3"},
    {2, {"gat", "gat"}, {11, 21, 5}, {3, 1}, true, 0.0, 0.0, "--tiles 3"},
    {2, {"gat", "gat"}, {11, 21, 5}, {3, 2}, true, 0.0, 0.4, "--tiles 1"},
    {2, {"gat", "gat"}, {11, 6, 5}, {1, 2}, false, 0.4, 0.5, "--tiles 4 --no-overlap"},
    {2, {"gat", "gat"}, {11, 12, 5}, {6, 3}, true, 0.5, 0.5, "--tiles 3"},
    {3, {"gat", "gat", "gat"}, {11, 9, 9, 5}, {3, 3, 1}, true, 0.0, 0.3, "--tiles 3"},
    {3, {"gat", "gat", "gat"}, {11, 6, 6, 5}, {1, 1, 2}, true, 0.3, 0.0, "--tiles 5"},
    {3, {"sage", "gat", "gat"}, {11, 7, 6, 5}, {0, 3, 2}, true, 0.3, 0.4, "--tiles 3"},
    {3, {"gat", "sage", "gat"}, {11, 9, 7, 5}, {3, 0, 2}, true, 0.4, 0.3, "--tiles 3"},
    {3, {"gat", "norm", "gat"}, {11, 12, 12, 5}, {3, 0, 2}, true, 0.3, 0.3, "--tiles 3"},
    {3, {"gat", "norm", "sage"}, {11, 8, 8, 5}, {2, 0, 0}, false, 0.0, 0.0, "--tiles 2"},
    {2, {"residual", "linear"}, {11, 12, 5}, {3, 0}, true, 0.3, 0.4, "--tiles 3"},
    {3, {"residual", "residual", "linear"}, {11, 6, 8, 5}, {1, 2, 0}, false, 0.4, 0.3, "--tiles 4"},
    {3, {"residual", "gat", "linear"}, {11, 8, 9, 5}, {2, 3, 0}, true, 0.0, 0.0, "--tiles 1"},
    {3, {"gat", "identity", "linear"}, {11, 9, 9, 5}, {3, 3, 0}, true, 0.3, 0.3, "--tiles 3"},
    {3, {"gat", "identity", "norm"}, {11, 6, 6, 6}, {2, 2, 0}, false, 0.4, 0.0, "--tiles 2"},
    {3, {"gat", "gat", "jump"}, {11, 8, 8, 5}, {2, 4, 0}, true, 0.3, 0.3, "--tiles 3"},
    {3, {"residual", "identity", "jump"}, {11, 6, 6, 5}, {3, 2, 0}, true, 0.4, 0.3, "--tiles 4"},
    {3, {"gat", "residual", "jump"}, {11, 6, 6, 5}, {3, 2, 0}, false, 0.0, 0.0, "--tiles 1"},
    {3, {"residual", "norm", "gat"}, {11, 9, 9, 5}, {3, 0, 2}, true, 0.3, 0.3, "--tiles 3"},
    {3,
     {"gat", "sage", "sage"},
     {11, 8, 7, 5},
     {2, 0, 0},
     true,
     0.3,
     0.3,
     "--tiles 3 --product-order spmm"},
    {3,
     {"gat", "gat", "sage"},
     {11, 8, 9, 5},
     {2, 3, 0},
     false,
     0.3,
     0.3,
     "--tiles 3 --product-order gemm"},
};

/* ---- The reference ---- */

struct reference {
    const struct network *net;
    uint64_t seed;
    double w[VERTICES][VERTICES]; /* A + I */
    double x[VERTICES * MOST_WIDTH];
    int32_t label[VERTICES];
    bool train[VERTICES];
    double theta[LAYERS][MOST]; /* as the program has them */
    double kink;                /* the least distance from one in the last pass */
};

/* Attention, to which H·V is added. */
static bool is_residual(const struct network *net, int l)
{
    return strcmp(net->kind[l], "residual") == 0;
}

/* Attention, to which H is added. */
static bool is_identity(const struct network *net, int l)
{
    return strcmp(net->kind[l], "identity") == 0;
}

static bool is_gat(const struct network *net, int l)
{
    return strcmp(net->kind[l], "gat") == 0 || is_residual(net, l) || is_identity(net, l);
}

/* A product of all outputs before it, side by side. */
static bool is_jump(const struct network *net, int l)
{
    return strcmp(net->kind[l], "jump") == 0;
}

static bool is_linear(const struct network *net, int l)
{
    return strcmp(net->kind[l], "linear") == 0;
}

static bool is_norm(const struct network *net, int l)
{
    return l < net->layers && strcmp(net->kind[l], "norm") == 0;
}

static bool is_mean(const struct network *net, int l)
{
    return is_gat(net, l) && l + 1 == net->layers;
}

/* Columns of the parameters. */
static int64_t cols_of(const struct network *net, int l)
{
    return (is_mean(net, l) ? net->heads[l] : 1) * net->width[l + 1];
}

/* Weights, vectors of attention, and the bias. */
static int64_t rows_of(const struct network *net, int l)
{
    if (is_norm(net, l))
        return 2;
    const int64_t weights = is_residual(net, l) || strcmp(net->kind[l], "sage") == 0 ? 2
                            : is_jump(net, l)                                        ? l
                                                                                     : 1;
    return weights * net->width[l] + (is_gat(net, l) ? 2 : 0) + net->bias;
}

/* Z (n, out) += X (n, in) · W (in, out) */
static void multiply(const double *x, const double *w, int64_t in, int64_t out, double *z)
{
    for (int64_t v = 0; v < VERTICES; v++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t j = 0; j < out; j++)
                z[v * out + j] += x[v * in + i] * w[i * out + j];
}

static void drop_input(const struct reference *ref, int l, double *h)
{
    const int64_t in = ref->net->width[l];
    const struct sl_dropout drop = sl_dropout_make(
        ref->net->dropout, sl_rng_key(ref->seed, SL_RNG_DROPOUT, EPOCH, (uint32_t)l));
    for (int64_t k = 0; !is_norm(ref->net, l) && drop.threshold && k < VERTICES * in; k++)
        h[k] *= (double)sl_dropout_factor(&drop, (uint32_t)(k / in), (uint32_t)(k % in));
}

/* μ_ij of a head: 16 of the 64 bits that four heads share. */
static double attention_mask(const struct reference *ref, int l, int64_t i, int64_t j, int64_t head)
{
    if (ref->net->attention_dropout == 0.0)
        return 1.0;
    const struct sl_dropout drop = sl_dropout_make(
        ref->net->attention_dropout, sl_rng_key(ref->seed, SL_RNG_ATTENTION, EPOCH, (uint32_t)l));
    const uint64_t key = drop.key + (uint64_t)(head / 4) * UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t bits = sl_rng_bits(key, (uint32_t)i, (uint32_t)j) >> 16 * (head % 4) & 0xFFFF;
    return bits >= drop.threshold ? (double)drop.scale : 0.0;
}

static double dot(const double *x, const double *y, int64_t count)
{
    double sum = 0.0;
    for (int64_t j = 0; j < count; j++)
        sum += x[j] * y[j];
    return sum;
}

/* Row i of a head: alpha of all vertices. */
static void attend(struct reference *ref, int64_t i, double s, const double *t, double *alpha)
{
    double e[VERTICES], most = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < VERTICES; j++) {
        const double x = s + t[j];
        if (ref->w[i][j] == 0.0)
            continue;
        if (x != 0.0) /* of vertices without input x is 0, whatever the weights */
            ref->kink = fmin(ref->kink, fabs(x));
        e[j] = x > 0.0 ? x : (double)0.2f * x;
        most = fmax(most, e[j]);
    }
    for (int64_t j = 0; j < VERTICES; j++) {
        alpha[j] = ref->w[i][j] == 0.0 ? 0.0 : ref->w[i][j] * exp(e[j] - most);
        sum += alpha[j];
    }
    for (int64_t j = 0; j < VERTICES; j++)
        alpha[j] /= sum;
}

static void gat_layer(struct reference *ref, int l, const double *h, double *z)
{
    static double p[VERTICES * MOST_WIDTH * 4];
    const struct network *net = ref->net;
    const int64_t in = net->width[l], out = net->width[l + 1], cols = cols_of(net, l),
                  width = cols / net->heads[l];
    const double *w = ref->theta[l] + (is_residual(net, l) ? in * cols : 0),
                 *source = w + in * cols, *target = source + cols;
    const double share = is_mean(net, l) ? 1.0 / net->heads[l] : 1.0;
    memset(p, 0, sizeof p);
    if (is_residual(net, l))
        multiply(h, ref->theta[l], in, cols, z);
    for (int64_t k = 0; is_identity(net, l) && k < VERTICES * in; k++)
        z[k] += h[k];
    multiply(h, w, in, cols, p);
    for (int head = 0; head < net->heads[l]; head++) {
        const int64_t first = head * width;
        double t[VERTICES], alpha[VERTICES];
        for (int64_t j = 0; j < VERTICES; j++)
            t[j] = dot(source + first, p + j * cols + first, width);
        for (int64_t i = 0; i < VERTICES; i++) {
            attend(ref, i, dot(target + first, p + i * cols + first, width), t, alpha);
            for (int64_t j = 0; j < VERTICES; j++)
                for (int64_t k = 0; alpha[j] != 0.0 && k < width; k++)
                    z[i * out + (is_mean(net, l) ? 0 : first) + k] +=
                        share * alpha[j] * attention_mask(ref, l, i, j, head) *
                        p[j * cols + first + k];
        }
    }
}

static void sage_layer(struct reference *ref, int l, const double *h, double *z)
{
    static double y[VERTICES * MOST_WIDTH];
    const int64_t in = ref->net->width[l], out = ref->net->width[l + 1];
    memset(y, 0, sizeof y);
    for (int64_t v = 0; v < VERTICES; v++)
        for (int64_t u = 0; u < VERTICES; u++)
            for (int64_t j = 0; j < in; j++)
                y[v * in + j] += ref->w[v][u] * h[u * in + j];
    multiply(h, ref->theta[l], in, out, z);
    multiply(y, ref->theta[l] + in * out, in, out, z);
}

static void norm_layer(const struct reference *ref, int l, const double *h, double *z)
{
    const int64_t width = ref->net->width[l];
    const double *w = ref->theta[l], *b = w + width;
    for (int64_t v = 0; v < VERTICES; v++) {
        double mean = 0.0, variance = 0.0;
        for (int64_t j = 0; j < width; j++)
            mean += h[v * width + j] / (double)width;
        for (int64_t j = 0; j < width; j++)
            variance += pow(h[v * width + j] - mean, 2.0) / (double)width;
        for (int64_t j = 0; j < width; j++)
            z[v * width + j] = (h[v * width + j] - mean) / sqrt(variance + 1e-5) * w[j] + b[j];
    }
}

static double activation(struct reference *ref, int l, double z)
{
    if (l + 1 == ref->net->layers || is_norm(ref->net, l + 1))
        return z;
    if (is_gat(ref->net, l) || is_norm(ref->net, l))
        return z > 0.0 ? z : expm1(z);
    if (z != 0.0)
        ref->kink = fmin(ref->kink, fabs(z));
    return fmax(z, 0.0);
}

static double loss_of(struct reference *ref)
{
    static double h[VERTICES * MOST_WIDTH], z[VERTICES * MOST_WIDTH];
    static double earlier[LAYERS][VERTICES * MOST_WIDTH]; /* inputs of layers, after dropout */
    const struct network *net = ref->net;
    memcpy(h, ref->x, sizeof h);
    ref->kink = INFINITY;
    for (int l = 0; l < net->layers; l++) {
        const int64_t out = net->width[l + 1];
        const double *bias = ref->theta[l] + (rows_of(net, l) - 1) * cols_of(net, l);
        for (int64_t k = 0; k < VERTICES * out; k++)
            z[k] = net->bias ? bias[k % out] : 0.0;
        drop_input(ref, l, h);
        memcpy(earlier[l], h, sizeof h);
        if (is_norm(net, l))
            norm_layer(ref, l, h, z);
        else if (is_gat(net, l))
            gat_layer(ref, l, h, z);
        else if (is_linear(net, l))
            multiply(h, ref->theta[l], net->width[l], out, z);
        else if (is_jump(net, l))
            for (int k = 1; k <= l; k++)
                multiply(earlier[k], ref->theta[l] + (k - 1) * net->width[l] * out, net->width[l],
                         out, z);
        else
            sage_layer(ref, l, h, z);
        for (int64_t k = 0; k < VERTICES * out; k++)
            h[k] = activation(ref, l, z[k]);
    }
    const int64_t classes = net->width[net->layers];
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

static void open_reference(struct reference *ref, const struct network *net,
                           const struct sl_dataset *data)
{
    memset(ref, 0, sizeof *ref);
    ref->net = net;
    struct sl_reference *plain =
        sl_fixture_reference(data, 1, NULL, SL_REFERENCE_SYM); /* its arrays alone */
    for (int64_t v = 0; v < VERTICES; v++) {
        for (int64_t u = 0; u < VERTICES; u++)
            ref->w[v][u] = plain->a[v * VERTICES + u] + (u == v);
        ref->label[v] = plain->labels[v];
        ref->train[v] = plain->train[v];
    }
    memcpy(ref->x, plain->x, (size_t)(VERTICES * net->width[0]) * sizeof *ref->x);
    sl_reference_destroy(plain);
}

/* ---- The program ---- */

static void set_layer(struct reference *ref, struct sl_model *model, int l, uint64_t seed)
{
    struct sl_tile *tile = &model->layer[l].parameters;
    float *w = sl_tile_acquire(&sl_running, tile, true);
    assert_int_equal(tile->rows, rows_of(ref->net, l));
    assert_int_equal(tile->cols, cols_of(ref->net, l));
    for (int64_t i = 0; i < tile->rows * tile->cols; i++) {
        w[i] = (float)(1.2 * sl_rng_uniform(seed, (uint32_t)l, (uint32_t)i) - 0.6);
        ref->theta[l][i] = (double)w[i];
    }
    sl_tile_release(tile);
}

static bool is_mixed(const struct network *net)
{
    for (int l = 0; l < net->layers; l++)
        if (strcmp(net->kind[l], "gat") != 0)
            return true;
    return false;
}

static const struct sl_layer_kind *kind_of(const struct network *net, int l)
{
    return is_norm(net, l)       ? &sl_layer_row_norm
           : is_residual(net, l) ? &sl_layer_gat_residual
           : is_gat(net, l)      ? &sl_layer_gat
           : is_linear(net, l)   ? &sl_layer_linear
           : is_jump(net, l)     ? &sl_layer_jump_plain
                                 : &sl_layer_sage;
}

static struct sl_layer_shape shape_of(const struct network *net, int l)
{
    const bool gat = is_gat(net, l), norm = is_norm(net, l);
    return (struct sl_layer_shape){
        .kind = kind_of(net, l),
        .reducer = gat ? &sl_reduce_attention : &sl_reduce_sum,
        .in = net->width[l],
        .out = net->width[l + 1],
        .bias = net->bias && !norm,
        .identity = is_identity(net, l),
        .inputs = is_jump(net, l) ? l : 0,
        .dropout = norm ? 0.0 : net->dropout,
        .activation = l == net->layers - 1 || is_norm(net, l + 1) ? SL_ACTIVATION_NONE
                      : gat || norm                               ? SL_ACTIVATION_ELU
                                                                  : SL_ACTIVATION_RELU,
        .heads = net->heads[l],
        .mean = is_mean(net, l),
        .attention_dropout = net->attention_dropout,
        .slope = 0.2f,
    };
}

static int create_model(struct sl_model *model, const struct network *net, uint64_t seed)
{
    int code =
        sl_model_open(model, &sl_running,
                      &(struct sl_model_options){.layers = net->layers, .states = 1, .seed = seed});
    for (int l = 0; !code && l < net->layers; l++) {
        const struct sl_layer_shape shape = shape_of(net, l);
        code = sl_model_add(model, &shape);
    }
    return code;
}

static void check_layer(struct reference *ref, const char *data, struct sl_network *net, int l)
{
    struct sl_tile *tile = net->layer[l].back.summed;
    const float *got = sl_tile_acquire(&sl_running, tile, false);
    double largest = 0.0, off = 0.0;
    int64_t worst = 0;
    assert_int_equal(tile->rows, rows_of(ref->net, l));
    assert_int_equal(tile->cols, cols_of(ref->net, l));
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
        const double far = fabs(expected - (double)got[r * tile->ld + j]);
        largest = fmax(largest, fabs(expected));
        worst = far > off || far != far ? i : worst;
        off = far > off || far != far ? far : off;
    }
    sl_tile_release(tile);
    if (!(off <= TOLERANCE * largest && largest > 1e-4))
        fail_msg("%s, %d layers, %s: gradient of layer %d (%s) is off by %.3g of %.3g, at (%d, %d)",
                 data, ref->net->layers, ref->net->words, l, ref->net->kind[l], off, largest,
                 (int)(worst / cols_of(ref->net, l)), (int)(worst % cols_of(ref->net, l)));
}

/* Pure ones as options say, mixed ones by hand. */
static struct sl_config configure(const struct network *net)
{
    char line[SL_MOST_LINE];
    const bool pure = !is_mixed(net);
    snprintf(line, sizeof line,
             "--model gat --layers %d --heads %d --hidden %d --out-heads %d --dropout %g "
             "--attention-dropout %g --normalize-features none %s %s",
             net->layers, pure ? net->heads[0] : 1,
             pure ? (int)(cols_of(net, 0) / net->heads[0]) : 4,
             pure ? net->heads[net->layers - 1] : 1, net->dropout, net->attention_dropout,
             net->bias ? "--bias" : "--no-bias", net->words);
    return sl_run_parse(line);
}

static void train_and_check(struct reference *ref, const char *data, struct sl_network *net)
{
    static const struct sl_optimizer_step still = {.method = SL_SGD};
    double loss = 0.0;
    ref->seed = net->model->options.seed;
    for (uint64_t seed = 1; seed < 100 && !(ref->kink > KINK); seed++) {
        for (int l = 0; l < net->layers; l++)
            set_layer(ref, (struct sl_model *)net->model, l, seed);
        loss = loss_of(ref);
    }
    assert_true(ref->kink > KINK);
    sl_model_spread((struct sl_model *)net->model);
    net->step.epoch = net->step.update = EPOCH;
    sl_network_train(net, &still);
    const double got = sl_network_train_loss(net);
    if (!(fabs(got - loss) <= 2e-6 * fmax(loss, 1.0)))
        fail_msg("%s, %d layers, %s: the loss is %.9g, expected %.9g", data, net->layers,
                 ref->net->words, got, loss);
    for (int l = 0; l < net->layers; l++)
        check_layer(ref, data, net, l);
}

static void check(const struct network *n, const char *name, const struct sl_dataset *data)
{
    static struct reference ref;
    struct sl_opened run;
    open_reference(&ref, n, data);
    sl_opened_open(&run, data, configure(n));
    if (!is_mixed(n)) {
        train_and_check(&ref, name, &run.trainer.whole.network);
    } else {
        struct sl_model model;
        assert_int_equal(create_model(&model, n, 9), 0);
        struct sl_network net = {
            .rt = &sl_running, .graph = &run.trainer.whole.graph, .model = &model};
        assert_int_equal(sl_network_create(&net, sl_config_product_order(&run.config), NULL), 0);
        train_and_check(&ref, name, &net);
        sl_network_destroy(&net);
        sl_model_destroy(&model);
    }
    sl_opened_close(&run);
}

SL_TEST(test_gradients)
{
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        for (size_t n = 0; n < sizeof networks / sizeof *networks; n++)
            check(&networks[n], fixtures[f].name, &data);
        sl_fixture_close(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
