/* Models of parts (resgcn, gin, sgc, appnp, jknet; gcn and sage with norms): loss, gradients and
 * whole trainings against a reference in double that is written from the papers
 * (tests/parts_reference.h). Expected gradients are central differences of the reference, in which
 * no relu opens or closes. */
#include "codelets/optimizer.h"
#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/parts_reference.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/sample.h"
#include "tests/unit.h"

enum { EPOCH = 4, HUB = 10001, HUB_STRIDE = 13 };

static const double TOLERANCE = 4e-5;

static const struct sl_fixture fixtures[] = {
    {SL_FIXTURE("directed, weighted", 37, 11, 5, 4), .directed = true, .weighted = true,
     .self_loops = true, .isolated = 3, .form = SL_FEATURES_DENSE, .seed = 171},
    {SL_FIXTURE("undirected, sparse features", 41, 9, 3, 5), .isolated = 2, .form = SL_FEATURES_CSR,
     .seed = 172},
};

struct test_case {
    struct sl_parts_model model;
    const char *words;
};

#define RESGCN(...)                                        \
    {                                                      \
        .kind = SL_PARTS_RESGCN, .hidden = 13, __VA_ARGS__ \
    }
#define GIN(...)                                        \
    {                                                   \
        .kind = SL_PARTS_GIN, .hidden = 13, __VA_ARGS__ \
    }
#define SGC(...)                                        \
    {                                                   \
        .kind = SL_PARTS_SGC, .hidden = 13, __VA_ARGS__ \
    }
#define APPNP(...)                                        \
    {                                                     \
        .kind = SL_PARTS_APPNP, .hidden = 13, __VA_ARGS__ \
    }

#define GCN(...)                                        \
    {                                                   \
        .kind = SL_PARTS_GCN, .hidden = 13, __VA_ARGS__ \
    }

#define SAGE(...)                                        \
    {                                                    \
        .kind = SL_PARTS_SAGE, .hidden = 13, __VA_ARGS__ \
    }

#define JKNET(...)                                        \
    {                                                     \
        .kind = SL_PARTS_JKNET, .hidden = 13, __VA_ARGS__ \
    }

static const struct test_case cases[] = {
    {RESGCN(.layers = 1, .bias = true), "--tiles 3"},
    {RESGCN(.layers = 2, .bias = true, .dropout = 0.5), "--tiles 3 --product-order gemm"},
    {RESGCN(.layers = 3, .dropout = 0.5), "--tiles 5 --product-order spmm --no-overlap"},
    {RESGCN(.layers = 3, .bias = true, .row = true), "--tiles 1 --recompute 2"},
    {RESGCN(.layers = 1, .bias = true, .batch = true), "--tiles 1"},
    {RESGCN(.layers = 2, .batch = true, .dropout = 0.5), "--tiles 3 --product-order spmm"},
    {RESGCN(.layers = 3, .bias = true, .batch = true, .dropout = 0.5),
     "--tiles 3 --product-order gemm --recompute 2"},
    {RESGCN(.layers = 5, .bias = true, .batch = true, .row = true), "--tiles 4 --recompute 3"},
    {RESGCN(.layers = 2, .bias = true, .means = true, .dropout = 0.5), "--tiles 3"},
    {RESGCN(.layers = 3, .means = true, .batch = true, .dropout = 0.3),
     "--tiles 2 --product-order gemm --recompute 2"},
    {GIN(.layers = 1, .bias = true), "--tiles 3"},
    {GIN(.layers = 2, .bias = true, .dropout = 0.5), "--tiles 3 --product-order gemm"},
    {GIN(.layers = 3), "--tiles 2 --product-order spmm --no-cache-aggregate"},
    {GIN(.layers = 2, .dropout = 0.5), "--tiles 3 --product-order spmm"},
    {SGC(.layers = 1, .hops = 1, .bias = true), "--tiles 3"},
    {SGC(.layers = 1, .hops = 3, .dropout = 0.5), "--tiles 3"},
    {SGC(.layers = 1, .hops = 2, .bias = true, .row = true), "--tiles 1 --no-overlap"},
    {APPNP(.layers = 1, .hops = 1, .bias = true, .teleport = 0.15), "--tiles 3"},
    {APPNP(.layers = 2, .hops = 3, .bias = true, .teleport = 0.15, .dropout = 0.5), "--tiles 3"},
    {APPNP(.layers = 3, .hops = 3, .teleport = 0.4, .row = true), "--tiles 4 --no-overlap"},
    {APPNP(.layers = 2, .hops = 2, .bias = true, .teleport = 1.0), "--tiles 3"},
    {APPNP(.layers = 2, .hops = 2, .bias = true, .teleport = 0.0), "--tiles 3"},
    {JKNET(.layers = 1, .bias = true), "--tiles 3"},
    {JKNET(.layers = 1, .dropout = 0.5), "--tiles 2 --product-order spmm"},
    {JKNET(.layers = 2, .bias = true, .dropout = 0.5), "--tiles 3 --product-order gemm"},
    {JKNET(.layers = 2, .bias = true), "--tiles 3 --product-order spmm --no-overlap"},
    {JKNET(.layers = 3, .bias = true, .dropout = 0.5), "--tiles 4 --product-order spmm"},
    {JKNET(.layers = 3, .row = true, .dropout = 0.5), "--tiles 3 --product-order gemm"},
    {JKNET(.layers = 5, .bias = true, .dropout = 0.5), "--tiles 1"},
    {GCN(.layers = 2, .bias = true, .normed = true), "--tiles 3"},
    {GCN(.layers = 3, .bias = true, .normed = true, .dropout = 0.5),
     "--tiles 3 --product-order gemm"},
    {GCN(.layers = 3, .normed = true, .row = true), "--tiles 5 --product-order spmm"},
    {GCN(.layers = 2, .bias = true, .normed = true, .batch = true), "--tiles 1"},
    {GCN(.layers = 3, .bias = true, .normed = true, .batch = true, .dropout = 0.5),
     "--tiles 3 --product-order spmm --no-overlap"},
    {GCN(.layers = 4, .normed = true, .batch = true), "--tiles 4 --product-order gemm"},
    {GCN(.layers = 1, .bias = true, .normed = true), "--tiles 3"},
    {GCN(.layers = 1, .bias = true, .residual = true), "--tiles 3"},
    {GCN(.layers = 2, .residual = true, .dropout = 0.5), "--tiles 3 --product-order gemm"},
    {GCN(.layers = 3, .bias = true, .residual = true), "--tiles 2 --product-order spmm"},
    {GCN(.layers = 2, .bias = true, .residual = true), "--tiles 3 --no-cache-aggregate"},
    {GCN(.layers = 3, .bias = true, .residual = true, .row = true, .dropout = 0.5),
     "--tiles 5 --product-order spmm --no-overlap"},
    {GCN(.layers = 3, .bias = true, .residual = true, .normed = true, .batch = true,
         .classifier = true, .dropout = 0.5),
     "--tiles 3"},
    {GCN(.layers = 2, .bias = true, .residual = true, .normed = true, .classifier = true),
     "--tiles 3 --product-order gemm"},
    {GCN(.layers = 3, .bias = true, .residual = true, .normed = true, .batch = true,
         .classifier = true),
     "--tiles 2 --product-order spmm"},
    {GCN(.layers = 1, .classifier = true), "--tiles 3"},
    {SAGE(.layers = 2, .bias = true, .classifier = true, .dropout = 0.5), "--tiles 3"},
    {SAGE(.layers = 2, .bias = true, .normed = true), "--tiles 3"},
    {SAGE(.layers = 3, .normed = true, .batch = true, .dropout = 0.5),
     "--tiles 3 --product-order gemm"},
    {SAGE(.layers = 3, .bias = true, .normed = true, .dropout = 0.5),
     "--tiles 2 --product-order spmm"},
    {GIN(.layers = 2, .bias = true, .normed = true), "--tiles 3"},
    {GIN(.layers = 3, .normed = true, .batch = true, .dropout = 0.5),
     "--tiles 3 --product-order spmm"},
    {GIN(.layers = 2, .bias = true, .normed = true, .batch = true),
     "--tiles 2 --product-order gemm"},
    {GCN(.layers = 1, .bias = true, .encoder = true, .dropout = 0.5), "--tiles 3"},
    {GCN(.layers = 2, .encoder = true, .dropout = 0.5), "--tiles 3 --product-order gemm"},
    {GCN(.layers = 3, .bias = true, .encoder = true, .residual = true, .dropout = 0.3),
     "--tiles 2 --product-order spmm"},
    {GCN(.layers = 2, .bias = true, .elu = true, .dropout = 0.5), "--tiles 3"},
    {GCN(.layers = 3, .elu = true, .row = true), "--tiles 4 --product-order spmm"},
    {GCN(.layers = 3, .bias = true, .elu = true, .encoder = true, .residual = true, .normed = true,
         .batch = true, .classifier = true, .dropout = 0.5),
     "--tiles 3 --product-order gemm"},
    {SAGE(.layers = 2, .bias = true, .elu = true, .encoder = true, .dropout = 0.5), "--tiles 3"},
    {SAGE(.layers = 3, .encoder = true, .normed = true, .dropout = 0.5),
     "--tiles 3 --product-order spmm"},
    {GIN(.layers = 2, .bias = true, .elu = true, .encoder = true, .dropout = 0.5),
     "--tiles 3 --product-order spmm"},
    {GIN(.layers = 2, .elu = true, .normed = true), "--tiles 2 --product-order gemm"},
    {JKNET(.layers = 3, .bias = true, .encoder = true, .dropout = 0.5), "--tiles 3"},
    {JKNET(.layers = 2, .bias = true, .normed = true, .residual = true, .elu = true,
           .dropout = 0.3),
     "--tiles 3"},
    {GCN(.layers = 3, .bias = true, .identity = true, .dropout = 0.5),
     "--tiles 3 --product-order gemm"},
    {GCN(.layers = 4, .identity = true, .row = true), "--tiles 2 --product-order spmm"},
    {GCN(.layers = 3, .bias = true, .identity = true, .encoder = true, .normed = true,
         .batch = true, .classifier = true, .dropout = 0.3),
     "--tiles 3 --product-order spmm"},
    {GCN(.layers = 2, .bias = true, .identity = true, .elu = true, .encoder = true, .jump = true,
         .dropout = 0.5),
     "--tiles 3"},
    {GCN(.layers = 3, .bias = true, .jump = true, .normed = true, .dropout = 0.5),
     "--tiles 3 --product-order gemm"},
    {GCN(.layers = 3, .jump = true, .residual = true, .normed = true, .batch = true),
     "--tiles 4 --product-order spmm"},
    {SAGE(.layers = 3, .bias = true, .identity = true, .normed = true, .dropout = 0.5),
     "--tiles 3 --product-order gemm"},
    {SAGE(.layers = 3, .bias = true, .jump = true, .dropout = 0.5), "--tiles 3"},
    {GCN(.layers = 3, .bias = true, .jump = true, .sums = true, .dropout = 0.5), "--tiles 3"},
    {SAGE(.layers = 3, .jump = true, .sums = true, .normed = true, .encoder = true, .dropout = 0.3),
     "--tiles 2 --product-order spmm"},
    {SAGE(.layers = 2, .jump = true, .identity = true, .normed = true),
     "--tiles 2 --product-order spmm"},
    {GCN(.layers = 3, .bias = true, .jump = true, .largest = true, .dropout = 0.5), "--tiles 3"},
    {GCN(.layers = 3, .jump = true, .largest = true, .normed = true, .encoder = true,
         .identity = true, .elu = true),
     "--tiles 2 --product-order spmm"},
    {SAGE(.layers = 2, .bias = true, .jump = true, .largest = true, .normed = true, .batch = true,
          .dropout = 0.3),
     "--tiles 3 --product-order gemm"},
};

/* ---- The program ---- */

static struct sl_config configure(const struct sl_parts_model *m, const char *words)
{
    static const char *const names[] = {"resgcn", "gin", "sgc", "appnp", "jknet", "gcn", "sage"};
    const char *options[] = {
        m->normed ? "--norm-layers" : "--block-norm",
        m->batch ? "batch" : "row",
        m->row ? "--norm row" : "--norm sym",
        m->bias ? "--bias" : "--no-bias",
        m->residual ? "--residual linear" : "",
        m->identity ? "--residual identity" : "",
        m->classifier ? "--classifier linear" : "",
        !m->jump     ? ""
        : m->sums    ? "--jump sum"
        : m->largest ? "--jump max"
                     : "--jump concat",
        m->encoder ? "--encoder linear" : "",
        m->elu ? "--activation elu" : "",
        m->means ? "--block-aggregator mean" : "",
        words,
    };
    char line[SL_MOST_LINE];
    int length = snprintf(line, sizeof line,
                          "--model %s --layers %d --hidden %d --hops %d --teleport %g --dropout %g "
                          "--normalize-features none",
                          names[m->kind], m->layers, (int)m->hidden, m->hops > 0 ? m->hops : 2,
                          m->teleport, m->dropout);
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %s", options[k]);
    return sl_run_parse(line);
}

/* A training of the program beside the reference. */
struct pair {
    char name[80];
    const char *words;
    struct sl_parts_reference *ref;
    struct sl_opened run;
};

static void open_pair(struct pair *pair, const struct sl_parts_model *model, const char *words,
                      const char *name, const struct sl_dataset *data)
{
    *pair = (struct pair){.words = words, .ref = sl_parts_reference_open(model, data)};
    sl_opened_open(&pair->run, data, configure(model, words));
    snprintf(pair->name, sizeof pair->name, "%s, %s of %d", name,
             pair->run.config.network.model->name, model->layers);
    pair->ref->seed = pair->run.trainer.model.options.seed;
    pair->ref->epoch = EPOCH;
    assert_int_equal(pair->run.trainer.whole.network.layers, pair->ref->parts);
}

static void close_pair(struct pair *pair)
{
    sl_opened_close(&pair->run);
    sl_parts_reference_close(pair->ref);
}

/* Random parameters, of the reference and of the program: weights of norms are near 1, and running
 * averages stay as they are. */
static void set_parameters(struct pair *pair, uint64_t seed)
{
    for (int l = 0; l < pair->ref->parts; l++) {
        struct sl_parts_part *part = &pair->ref->part[l];
        struct sl_tile *tile = &pair->run.trainer.model.layer[l].parameters;
        assert_int_equal(tile->rows, part->rows);
        if (part->rows == 0)
            continue;
        assert_int_equal(tile->cols, part->cols);
        float *w = sl_tile_acquire(&sl_running, tile, true);
        for (int64_t i = 0; i < part->learned * part->cols; i++) {
            const double u = 1.2 * sl_rng_uniform(seed, (uint32_t)l, (uint32_t)i) - 0.6;
            w[i] = (float)(part->norm && i < part->cols ? 1.0 + u : u);
            part->theta[i] = (double)w[i];
        }
        sl_tile_release(tile);
    }
    sl_model_spread(&pair->run.trainer.model);
}

/* The program's parameters, into the reference. */
static void take_parameters(struct pair *pair)
{
    for (int l = 0; l < pair->ref->parts; l++) {
        struct sl_parts_part *part = &pair->ref->part[l];
        struct sl_tile *tile = &pair->run.trainer.model.layer[l].parameters;
        if (part->rows == 0)
            continue;
        const float *w = sl_tile_acquire(&sl_running, tile, false);
        for (int64_t i = 0; i < part->rows * part->cols; i++)
            part->theta[i] = (double)w[i];
        sl_tile_release(tile);
    }
}

/* ---- Gradients ---- */

struct distance {
    double off, largest;
    int64_t worst, skipped, compared;
};

static void compare_number(struct distance *d, int64_t i, double got, double expected)
{
    const double far = fabs(expected - got);
    d->compared++;
    d->largest = fmax(d->largest, fabs(expected));
    if (!(far <= d->off)) {
        d->off = far;
        d->worst = i;
    }
}

/* Running averages move towards the mean and the unbiased variance. */
static void compare_averages(const struct pair *pair, const struct sl_parts_part *part,
                             const struct sl_tile *tile, const float *got, int l)
{
    const double n = (double)pair->ref->n;
    struct distance d = {0};
    for (int64_t j = 0; j < part->cols; j++) {
        compare_number(&d, j, (double)got[2 * tile->ld + j], part->mean[j]);
        compare_number(&d, j, (double)got[3 * tile->ld + j], part->variance[j] * n / (n - 1.0));
    }
    if (!(d.off <= 1e-5 * d.largest))
        fail_msg("%s, %s: statistics of layer %d are off by %.3g of %.3g", pair->name, pair->words,
                 l, d.off, d.largest);
}

static void check_layer(struct pair *pair, int l, int64_t stride, double tolerance)
{
    struct sl_parts_part *part = &pair->ref->part[l];
    struct sl_tile *tile = pair->run.trainer.whole.network.layer[l].back.summed;
    struct distance d = {0};
    if (part->rows == 0) {
        assert_null(tile);
        return;
    }
    const float *got = sl_tile_acquire(&sl_running, tile, false);
    assert_int_equal(tile->rows, part->rows);
    assert_int_equal(tile->cols, part->cols);
    if (part->rows > part->learned)
        compare_averages(pair, part, tile, got, l);
    for (int64_t i = 0; i < part->learned * part->cols; i += stride) {
        double expected;
        if (sl_parts_reference_difference(pair->ref, &part->theta[i], &expected))
            compare_number(&d, i, (double)got[i / part->cols * tile->ld + i % part->cols],
                           expected);
        else
            d.skipped++;
    }
    sl_tile_release(tile);
    if (!(d.off <= tolerance * d.largest && d.largest > 1e-4))
        fail_msg("%s, %s: gradient of layer %d is off by %.3g of %.3g, at (%d, %d)", pair->name,
                 pair->words, l, d.off, d.largest, (int)(d.worst / part->cols),
                 (int)(d.worst % part->cols));
    if (20 * d.skipped > d.compared)
        fail_msg("%s, %s: %d of %d gradients of layer %d are near a kink", pair->name, pair->words,
                 (int)d.skipped, (int)(d.skipped + d.compared), l);
}

static void check_gradients(struct pair *pair, double kink, int64_t stride, double tolerance)
{
    static const struct sl_optimizer_step still = {.method = SL_SGD};
    struct sl_network *net = &pair->run.trainer.whole.network;
    double loss = 0.0;
    pair->ref->kink = 0.0;
    for (uint64_t seed = 1; seed < 100 && !(pair->ref->kink > kink); seed++) {
        set_parameters(pair, seed);
        loss = sl_parts_reference_loss(pair->ref, true);
    }
    assert_true(pair->ref->kink > kink);
    net->step.epoch = net->step.update = EPOCH;
    sl_network_train(net, &still);
    const double got = sl_network_train_loss(net);
    if (!(fabs(got - loss) <= 4e-6 * fmax(loss, 1.0)))
        fail_msg("%s, %s: the loss is %.9g, expected %.9g", pair->name, pair->words, got, loss);
    for (int l = 0; l < pair->ref->parts; l++)
        check_layer(pair, l, stride, tolerance);
}

SL_TEST(test_gradients)
{
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            if (!sl_in_sample((int64_t)(100 * f + c)))
                continue;
            struct pair pair;
            open_pair(&pair, &cases[c].model, cases[c].words, fixtures[f].name, &data);
            check_gradients(&pair, 2e-5, 1, TOLERANCE);
            close_pair(&pair);
        }
        sl_fixture_close(&data);
    }
}

/* ---- A hub ---- */

static void *array(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);
    assert_non_null(memory);
    return memory;
}

/* Vertex 0 has all others as neighbours, which have it alone. */
static struct sl_csr star(int64_t n)
{
    int64_t *indptr = array(n + 1, sizeof *indptr);
    int32_t *indices = array(2 * n, sizeof *indices);
    for (int64_t v = 1; v < n; v++) {
        indices[v - 1] = (int32_t)v;
        indices[n - 1 + v - 1] = 0;
        indptr[v] = n - 1 + v - 1;
    }
    indptr[n] = 2 * (n - 1);
    return (struct sl_csr){n, n, indptr, indices, NULL};
}

static struct sl_dataset hub(int64_t n)
{
    static const struct sl_fixture small = {SL_FIXTURE("hub", 2, 5, 3, 1),
                                            .form = SL_FEATURES_DENSE, .seed = 1};
    struct sl_dataset data = sl_fixture_open(&small);
    float *x = array(5 * n, sizeof *x);
    int32_t *labels = array(n, sizeof *labels);
    int64_t *ids = array(n, sizeof *ids);
    for (int64_t v = 0; v < n; v++) {
        for (int j = 0; j < 5; j++)
            x[5 * v + j] = (float)sl_rng_uniform(7, (uint32_t)v, (uint32_t)j) - 0.5f;
        labels[v] = (int32_t)(x[5 * v] > 0.0f) + (int32_t)(x[5 * v + 1] > 0.2f);
        ids[v] = v;
    }
    free((void *)data.adjacency.indptr);
    free((void *)data.adjacency.indices);
    free((void *)data.features_dense);
    free((void *)data.labels);
    free((void *)data.train.ids);
    data.val.count = data.test.count = 0;
    data.vertices = n;
    data.adjacency = star(n);
    data.features_dense = x;
    data.labels = labels;
    data.train = (struct sl_index_set){ids, n};
    data.symmetric = true;
    return data;
}

/* Few relus of so many vertices are far from their kinks: a step of the differences is short, and
 * some parameters stand for all. */
SL_TEST(test_hub)
{
    static const struct test_case large[] = {
        {{.kind = SL_PARTS_RESGCN, .layers = 2, .hidden = 7, .bias = true}, "--tiles 3"},
        {{.kind = SL_PARTS_RESGCN, .layers = 2, .hidden = 7, .bias = true, .batch = true},
         "--tiles 5 --recompute 2"},
        {{.kind = SL_PARTS_GIN, .layers = 1, .hidden = 5, .bias = true}, "--tiles 3"},
        {{.kind = SL_PARTS_SGC, .layers = 1, .hops = 3, .hidden = 5, .bias = true}, "--tiles 3"},
        {{.kind = SL_PARTS_APPNP,
          .layers = 2,
          .hops = 3,
          .hidden = 7,
          .bias = true,
          .teleport = 0.2},
         "--tiles 3"},
        {{.kind = SL_PARTS_JKNET, .layers = 2, .hidden = 5, .bias = true}, "--tiles 3"},
    };
    struct sl_dataset data = hub(HUB);
    for (size_t c = 0; c < sizeof large / sizeof *large; c++) {
        struct pair pair;
        open_pair(&pair, &large[c].model, large[c].words, "a hub", &data);
        check_gradients(&pair, 2e-7, HUB_STRIDE, 5.0 * TOLERANCE);
        close_pair(&pair);
    }
    sl_fixture_close(&data);
}

/* ---- Whole trainings ---- */

static const double RATE = 0.2, MOMENTUM = 0.5, DECAY = 0.05, AVERAGE_RATE = 0.1;

/* All gradients, of learned rows; averages: what they move to. */
static double **gradients_of(struct sl_parts_reference *ref, double *squares)
{
    double **gradient = array(ref->parts, sizeof *gradient);
    const double n = (double)ref->n;
    *squares = 0.0;
    sl_parts_reference_loss(ref, true);
    for (int l = 0; l < ref->parts; l++) {
        const struct sl_parts_part *p = &ref->part[l];
        gradient[l] = array(p->rows * p->cols + 1, sizeof **gradient);
        for (int64_t j = 0; p->rows > p->learned && j < p->cols; j++) {
            gradient[l][2 * p->cols + j] = p->mean[j];
            gradient[l][3 * p->cols + j] = p->variance[j] * n / (n - 1.0);
        }
    }
    for (int l = 0; l < ref->parts; l++)
        for (int64_t i = 0; i < ref->part[l].learned * ref->part[l].cols; i++) {
            sl_parts_reference_difference(ref, &ref->part[l].theta[i], &gradient[l][i]);
            *squares += gradient[l][i] * gradient[l][i];
        }
    return gradient;
}

/* Return whether parameters decay: all do, or the first layer's, two matrices in a GIN. */
static bool decays(const struct sl_parts_reference *ref, int part, bool all)
{
    return all || part == 0 || (ref->model.kind == SL_PARTS_GIN && part == 1 + ref->model.normed);
}

/* A step of the reference: SGD with momentum, L2 decay in the gradient, which is clipped before. */
static void step_reference(struct sl_parts_reference *ref, double clip, bool all, double **momentum)
{
    double squares, **gradient = gradients_of(ref, &squares);
    const double scale = clip > 0.0 && sqrt(squares) > clip ? clip / sqrt(squares) : 1.0;
    for (int l = 0; l < ref->parts; l++) {
        const struct sl_parts_part *p = &ref->part[l];
        const double decay = decays(ref, l, all) ? DECAY : 0.0;
        for (int64_t i = 0; i < p->rows * p->cols; i++) {
            double *w = &p->theta[i];
            if (i >= p->learned * p->cols) {
                *w += AVERAGE_RATE * (gradient[l][i] - *w);
                continue;
            }
            momentum[l][i] = MOMENTUM * momentum[l][i] + scale * gradient[l][i] + decay * *w;
            *w -= RATE * momentum[l][i];
        }
        free(gradient[l]);
    }
    free(gradient);
}

static void train_reference(struct sl_parts_reference *ref, int epochs, double clip, bool all)
{
    double **momentum = array(ref->parts, sizeof *momentum);
    for (int l = 0; l < ref->parts; l++)
        momentum[l] = array(ref->part[l].rows * ref->part[l].cols + 1, sizeof **momentum);
    for (int e = 1; e <= epochs; e++) {
        ref->epoch = (uint32_t)e;
        step_reference(ref, clip, all, momentum);
    }
    for (int l = 0; l < ref->parts; l++)
        free(momentum[l]);
    free(momentum);
}

static void check_start(const struct pair *pair)
{
    for (int l = 0; l < pair->ref->parts; l++) {
        const struct sl_parts_part *p = &pair->ref->part[l];
        for (int64_t i = 0; p->norm && i < p->rows * p->cols; i++)
            assert_true(p->theta[i] == (i / p->cols % 3 == 0 ? 1.0 : 0.0));
    }
}

static void check_parameters(const struct pair *pair)
{
    for (int l = 0; l < pair->ref->parts; l++) {
        const struct sl_parts_part *p = &pair->ref->part[l];
        struct sl_tile *tile = &pair->run.trainer.model.layer[l].parameters;
        if (p->rows == 0)
            continue;
        const float *got = sl_tile_acquire(&sl_running, tile, false);
        for (int64_t r = 0; r < p->rows; r++) {
            struct distance d = {.largest = 0.01};
            for (int64_t j = 0; j < p->cols; j++)
                compare_number(&d, j, (double)got[r * tile->ld + j], p->theta[r * p->cols + j]);
            if (!(d.off <= 1e-4 * d.largest))
                fail_msg("%s, %s: row %d of layer %d is off by %.3g of %.3g", pair->name,
                         pair->words, (int)r, l, d.off, d.largest);
        }
        sl_tile_release(tile);
    }
}

/* Compare the logits of the evaluation after the last epoch. */
static void check_logits(const struct pair *pair)
{
    struct sl_network *net = (struct sl_network *)&pair->run.trainer.whole.network;
    const struct sl_matrix *output = &net->layer[net->layers - 1].output;
    const int64_t classes = pair->ref->classes;
    double *logits = array(pair->ref->n * classes, sizeof *logits);
    struct distance d = {0};
    sl_parts_reference_forward(pair->ref, false, logits);
    for (int i = 0; i < output->tile_rows; i++) {
        struct sl_tile *tile = sl_matrix_tile(output, i, 0),
                       *scales = &net->graph->scales[output->row_order][i];
        const float *got = sl_tile_acquire(&sl_running, tile, false);
        const uint32_t *vertex = (const uint32_t *)sl_tile_acquire(&sl_running, scales, false) +
                                 SL_ROW_VERTEX * scales->ld;
        for (int64_t r = 0; r < tile->rows; r++)
            for (int64_t c = 0; c < classes; c++)
                compare_number(&d, vertex[r], (double)got[r * tile->ld + c],
                               logits[(int64_t)vertex[r] * classes + c]);
        sl_tile_release(scales);
        sl_tile_release(tile);
    }
    free(logits);
    assert_int_equal(d.compared, pair->ref->n * classes);
    if (!(d.off <= 1e-4 * d.largest))
        fail_msg("%s, %s: logits of an evaluation are off by %.3g of %.3g, at vertex %d",
                 pair->name, pair->words, d.off, d.largest, (int)d.worst);
}

static void check_training(const struct sl_parts_model *model, const struct sl_dataset *data,
                           const char *name, const char *more, double clip, bool all)
{
    enum { EPOCHS = 3 };
    char words[300];
    struct pair pair;
    struct sl_report report;
    struct sl_outcome outcome;
    snprintf(words, sizeof words,
             "--tiles 3 --epochs %d --patience 0 --optimizer sgd --lr %g --momentum %g "
             "--weight-decay %g %s --clip-norm %g %s",
             EPOCHS, RATE, MOMENTUM, DECAY, all ? "--weight-decay-all" : "", clip, more);
    open_pair(&pair, model, words, name, data);
    for (int l = 0; all && l < pair.run.trainer.model.layers; l++) /* of norms, too */
        pair.run.trainer.model.layer[l].shape.decay = (float)DECAY;
    take_parameters(&pair);
    check_start(&pair);
    set_parameters(&pair, 3); /* at the start, rows without features are at kinks */
    train_reference(pair.ref, EPOCHS, clip, all);
    assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
    assert_int_equal(sl_trainer_run(&pair.run.trainer, &report, &outcome), 0);
    check_parameters(&pair);
    check_logits(&pair);
    assert_int_equal(sl_report_close(&report), 0);
    sl_outcome_free(&outcome);
    close_pair(&pair);
}

SL_TEST(test_trainings)
{
    static const struct test_case trained[] = {
        {RESGCN(.layers = 2, .bias = true, .batch = true, .dropout = 0.5), ""},
        {RESGCN(.layers = 3, .batch = true), "--recompute 2"},
        {RESGCN(.layers = 2, .bias = true, .dropout = 0.5), ""},
        {GIN(.layers = 2, .bias = true), ""},
        {SGC(.layers = 1, .hops = 3, .bias = true), ""},
        {APPNP(.layers = 2, .hops = 3, .bias = true, .teleport = 0.1, .dropout = 0.5), ""},
        {JKNET(.layers = 3, .bias = true, .dropout = 0.5), ""},
        {GCN(.layers = 3, .bias = true, .normed = true, .batch = true, .dropout = 0.5), ""},
        {GCN(.layers = 2, .bias = true, .normed = true), ""},
        {GCN(.layers = 2, .bias = true, .residual = true, .classifier = true, .dropout = 0.5), ""},
        {SAGE(.layers = 2, .bias = true, .normed = true, .dropout = 0.5), ""},
        {GIN(.layers = 2, .bias = true, .normed = true, .batch = true), ""},
    };
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        for (size_t c = 0; c < sizeof trained / sizeof *trained; c++)
            for (int way = 0; way < 3 && sl_in_sample((int64_t)(100 * f + c)); way++)
                check_training(&trained[c].model, &data, fixtures[f].name, trained[c].words,
                               way == 1 ? 0.3 : 0.0, way < 2);
        sl_fixture_close(&data);
    }
}

/* A norm of columns takes the biases of the stream out again. Their gradients are 0, and no
 * rounding errors, which Adam would make as large as any gradient. */
static void check_biases(const struct sl_dataset *data, const char *words, bool batch)
{
    struct pair pair;
    struct sl_report report;
    struct sl_outcome outcome;
    const struct sl_parts_model model = RESGCN(.layers = 2, .bias = true, .batch = batch);
    open_pair(&pair, &model, words, "biases", data);
    assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
    assert_int_equal(sl_trainer_run(&pair.run.trainer, &report, &outcome), 0);
    for (int l = 0; l < pair.run.trainer.model.layers; l++) {
        struct sl_model_layer *layer = &pair.run.trainer.model.layer[l];
        if (!layer->shape.bias)
            continue;
        const float *w = sl_tile_acquire(&sl_running, &layer->parameters, false);
        w += sl_model_bias_row(layer) * layer->parameters.ld;
        bool learned = false;
        for (int64_t j = 0; j < layer->shape.out; j++)
            learned = learned || w[j] != 0.0f;
        sl_tile_release(&layer->parameters);
        if (learned != (!batch || l == pair.run.trainer.model.layers - 1))
            fail_msg("%s: layer %d has %s bias", words, l + 1, learned ? "a" : "no");
    }
    assert_int_equal(sl_report_close(&report), 0);
    sl_outcome_free(&outcome);
    close_pair(&pair);
}

SL_TEST(test_biases)
{
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    check_biases(&data, "--tiles 3 --epochs 3 --patience 0 --optimizer adam", true);
    check_biases(&data, "--tiles 3 --epochs 3 --patience 0 --optimizer adam", false);
    check_biases(&data, "--tiles 2 --epochs 3 --patience 0 --product-order spmm --recompute 2",
                 true);
    sl_fixture_close(&data);
}

/* ---- Outputs that are made again ---- */

static void check_again(const struct sl_dataset *data, const char *words)
{
    char line[SL_MOST_LINE];
    struct sl_run runs[4];
    static const char *const again[] = {"none", "2", "3", "5"};
    for (int k = 0; k < 4; k++) {
        snprintf(line, sizeof line,
                 "--model resgcn --layers 5 --hidden 13 --epochs 6 --patience 0 --dropout 0.4 "
                 "--normalize-features none --tiles 3 %s --recompute %s",
                 words, again[k]);
        runs[k] = sl_run_train(data, line, &(struct sl_around){0});
        sl_run_same(&runs[0], &runs[k], 1, line);
        assert_memory_equal(runs[0].logits, runs[k].logits,
                            (size_t)(runs[0].rows * runs[0].classes) * sizeof(float));
    }
    for (int k = 0; k < 4; k++)
        sl_run_free(&runs[k]);
}

SL_TEST(test_again)
{
    static const char *const words[] = {
        "--block-norm row",
        "--block-norm batch",
        "--block-norm batch --product-order spmm --no-overlap",
        "--block-norm row --product-order spmm --precision bf16",
        "--block-norm batch --precision bf16 --clip-norm 0.5",
        "--block-norm row --block-aggregator sum --lr 1e-3",
        "--block-norm batch --block-aggregator mean --precision bf16",
    };
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (sl_in_sample((int64_t)(100 * f + w)))
                check_again(&data, words[w]);
        sl_fixture_close(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_hub),
        cmocka_unit_test(test_trainings), cmocka_unit_test(test_biases),
        cmocka_unit_test(test_again),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
