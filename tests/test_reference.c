/* The reference network and the fixtures, tested by themselves: what the gradient and training
 * tests lean on. */
#include "core/rng.h"
#include "tests/fixtures.h"
#include "tests/reference.h"
#include "tests/unit.h"

/* ---- Fixtures ---- */

static void check_csr(const struct sl_csr *csr)
{
    assert_int_equal(csr->indptr[0], 0);
    for (int64_t r = 0; r < csr->rows; r++) {
        assert_true(csr->indptr[r] <= csr->indptr[r + 1]);
        for (int64_t e = csr->indptr[r]; e < csr->indptr[r + 1]; e++) {
            assert_in_range(csr->indices[e], 0, csr->cols - 1);
            assert_true(e == csr->indptr[r] || csr->indices[e - 1] < csr->indices[e]);
            assert_true(!csr->values || csr->values[e] != 0.0f);
        }
    }
}

/* Ascending, in range, and no vertex in two sets: `seen` (n) counts. */
static void check_index_set(const struct sl_index_set *set, int64_t n, int *seen)
{
    for (int64_t i = 0; i < set->count; i++) {
        assert_true(set->ids[i] >= 0 && set->ids[i] < n);
        assert_true(i == 0 || set->ids[i - 1] < set->ids[i]);
        assert_int_equal(seen[set->ids[i]]++, 0);
    }
}

static void check_graph(const struct sl_fixture *f, const struct sl_dataset *data)
{
    const int64_t n = data->vertices;
    double *a = calloc((size_t)(n * n) + 1, sizeof *a);
    int64_t loops = 0, alone = 0;
    bool symmetric = true;
    sl_fixture_dense_adjacency(data, a);
    for (int64_t v = 0; v < n; v++) {
        bool any = false;
        loops += a[v * n + v] != 0.0;
        for (int64_t u = 0; u < n; u++) {
            symmetric = symmetric && a[v * n + u] == a[u * n + v];
            any = any || a[v * n + u] != 0.0 || a[u * n + v] != 0.0;
        }
        alone += !any;
    }
    assert_int_equal(symmetric, data->symmetric);
    assert_true(f->directed || symmetric);
    assert_true(!f->directed || !symmetric);
    assert_int_equal(loops > 0, f->self_loops);
    assert_true(alone >= f->isolated);
    assert_int_equal(data->adjacency.values != NULL, f->weighted);
    free(a);
}

SL_TEST(test_fixtures)
{
    for (int i = 0; i < sl_fixture_count; i++) {
        const struct sl_fixture *f = &sl_fixtures[i];
        struct sl_dataset data = sl_fixture_open(f);
        int *seen = calloc((size_t)data.vertices + 1, sizeof *seen);
        assert_ptr_equal(sl_fixture_find(f->name), f);
        assert_int_equal(data.adjacency.rows, data.vertices);
        assert_int_equal(data.adjacency.cols, data.vertices);
        check_csr(&data.adjacency);
        check_graph(f, &data);
        if (f->form == SL_FEATURES_CSR) {
            check_csr(&data.features_csr);
            assert_int_equal(data.features_csr.cols, data.features);
        }
        check_index_set(&data.train, data.vertices, seen);
        check_index_set(&data.val, data.vertices, seen);
        check_index_set(&data.test, data.vertices, seen);
        int64_t unlabelled_train = 0;
        for (int64_t v = 0; v < data.vertices; v++)
            assert_true(data.labels[v] >= -1 && data.labels[v] < data.classes);
        for (int64_t t = 0; t < data.train.count; t++)
            unlabelled_train += data.labels[data.train.ids[t]] < 0;
        assert_int_equal(unlabelled_train > 0, f->unlabelled_train);
        assert_true(data.train.count > unlabelled_train || data.vertices == 0);
        free(seen);
        sl_fixture_close(&data);
    }
}

/* ---- The network ---- */

/* Two vertices, one edge, by hand: A + I is all 1, all normalisations of it give 1/2 everywhere;
 * with X = (2, 4), W = (3, -1), b = (1, 0) both logits rows are (10, -3). */
SL_TEST(test_by_hand)
{
    for (int norm = 0; norm <= SL_REFERENCE_GCN; norm++) {
        struct sl_reference *net =
            sl_reference_create(2, 1, (const int64_t[]){1, 2}, (enum sl_reference_norm)norm);
        double logits[4];
        net->a[1] = net->a[2] = 1.0;
        net->x[0] = 2.0, net->x[1] = 4.0;
        sl_reference_weight(net, net->theta, 0)[0] = 3.0;
        sl_reference_weight(net, net->theta, 0)[1] = -1.0;
        sl_reference_bias(net, net->theta, 0)[0] = 1.0;
        net->train[0] = net->train[1] = true;
        net->labels[0] = 1;
        net->labels[1] = -1; /* not counted */
        sl_reference_forward(net, logits);
        for (int v = 0; v < 2; v++) {
            assert_true(fabs(logits[2 * v] - 10.0) < 1e-14);
            assert_true(fabs(logits[2 * v + 1] + 3.0) < 1e-14);
        }
        assert_true(fabs(sl_reference_loss(net) - (13.0 + log1p(exp(-13.0)))) < 1e-13);
        assert_true(sl_reference_accuracy(net, logits, net->train) == 0.0);
        assert_true(isinf(sl_reference_kink_distance(net)));
        sl_reference_destroy(net);
    }
}

/* A directed, weighted graph of two: row sums of A + I are 4 and 1; only vertex 0 aggregates from
 * 1, with weight 3; its row of A has one entry. */
SL_TEST(test_normalize_by_hand)
{
    static const double expected[SL_REFERENCE_NORMS][4] = {
        [SL_REFERENCE_SYM] = {0.25, 1.5, 0.0, 1.0}, [SL_REFERENCE_ROW] = {0.25, 0.75, 0.0, 1.0},
        [SL_REFERENCE_GCN] = {0.5, 1.5, 0.0, 1.0},  [SL_REFERENCE_MEAN] = {0.0, 3.0, 0.0, 0.0},
        [SL_REFERENCE_SUM] = {0.0, 3.0, 0.0, 0.0},  [SL_REFERENCE_MAX] = {0.0, 3.0, 0.0, 0.0},
        [SL_REFERENCE_MIN] = {0.0, 3.0, 0.0, 0.0},
    };
    for (int norm = 0; norm < SL_REFERENCE_NORMS; norm++) {
        struct sl_reference *net =
            sl_reference_create(2, 1, (const int64_t[]){1, 1}, (enum sl_reference_norm)norm);
        double got[4];
        net->a[1] = 3.0;
        sl_reference_normalize(net, got);
        for (int i = 0; i < 4; i++)
            assert_true(fabs(got[i] - expected[norm][i]) < 1e-15);
        sl_reference_destroy(net);
    }
}

static void randomize_biases(struct sl_reference *net, uint64_t seed)
{
    for (int l = 0; l < net->layers; l++)
        for (int64_t j = 0; j < net->widths[l + 1]; j++)
            sl_reference_bias(net, net->theta, l)[j] =
                0.4 * (sl_rng_uniform(seed, (uint32_t)l, (uint32_t)j) - 0.5);
}

/* Weights, biases and masks without a pre-activation near the kink. */
static void choose_smooth(struct sl_reference *net, double margin)
{
    uint64_t seed = 1;
    do {
        sl_reference_initialize(net, seed);
        randomize_biases(net, seed);
        sl_reference_set_epoch(net, seed, 0);
        seed++;
    } while (fmin(sl_reference_kink_distance(net), sl_reference_lead(net)) < margin &&
             seed < 10000);
    assert_true(fmin(sl_reference_kink_distance(net), sl_reference_lead(net)) >= margin);
}

static void check_gradient(const struct sl_dataset *data, int layers, double dropout,
                           enum sl_reference_norm norm)
{
    static const int64_t hidden[] = {6, 5};
    /* A parameter moves a pre-activation by at most h times an activation, which stays below 5. */
    const double h = norm == SL_REFERENCE_SUM ? 3e-6 : 1e-5; /* sums bend the loss more */
    const double margin = 5e-5;
    struct sl_reference *net = sl_fixture_reference(data, layers, hidden, norm);
    double *gradient = calloc((size_t)net->parameters, sizeof *gradient);
    for (int l = 0; l < layers; l++)
        net->dropout[l] = dropout;
    choose_smooth(net, margin);
    const double loss = sl_reference_gradient(net, gradient);
    assert_true(fabs(loss - sl_reference_loss(net)) < 1e-14);
    const int64_t stride = net->parameters / 60 + 1; /* some of every layer */
    for (int64_t p = 0; p < net->parameters; p += stride) {
        const double difference = sl_reference_difference(net, p, h);
        if (!(fabs(difference - gradient[p]) <= 1e-9 + 1e-8 * fabs(gradient[p])))
            fail_msg("%s: parameter %lld of %d layers: gradient %.12g, difference %.12g",
                     data->name, (long long)p, layers, gradient[p], difference);
    }
    free(gradient);
    sl_reference_destroy(net);
}

SL_TEST(test_gradients)
{
    for (int i = 0; i < sl_fixture_count; i++) {
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[i]);
        for (int layers = 1; layers <= 3; layers++)
            for (int norm = 0; data.vertices > 0 && norm < SL_REFERENCE_NORMS; norm++) {
                check_gradient(&data, layers, 0.0, (enum sl_reference_norm)norm);
                check_gradient(&data, layers, 0.3, (enum sl_reference_norm)norm);
            }
        sl_fixture_close(&data);
    }
}

/* The masks are those of the program's random numbers: a vertex alone, with W = I, shows its own.
 */
SL_TEST(test_dropout_masks)
{
    enum { N = 13, WIDTH = 9 };
    struct sl_reference *net =
        sl_reference_create(N, 1, (const int64_t[]){WIDTH, WIDTH}, SL_REFERENCE_SYM);
    double logits[N * WIDTH];
    net->dropout[0] = 0.4;
    for (int i = 0; i < N * WIDTH; i++)
        net->x[i] = 1.0;
    for (int j = 0; j < WIDTH; j++)
        sl_reference_weight(net, net->theta, 0)[j * (WIDTH + 1)] = 1.0;
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        const struct sl_dropout drop =
            sl_dropout_make(0.4, sl_rng_key(6, SL_RNG_DROPOUT, epoch, 0));
        sl_reference_set_epoch(net, 6, epoch);
        sl_reference_forward(net, logits);
        for (uint32_t v = 0; v < N; v++)
            for (uint32_t j = 0; j < WIDTH; j++)
                assert_true(logits[v * WIDTH + j] == (double)sl_dropout_factor(&drop, v, j));
    }
    sl_reference_destroy(net);
}

/* ---- Training ---- */

static const struct sl_reference_optimizer optimizers[] = {
    {.method = SL_REFERENCE_ADAM,
     .rate = 0.02,
     .decay = 5e-4,
     .decay_layers = 1,
     .beta1 = 0.9,
     .beta2 = 0.999,
     .epsilon = 1e-8},
    {.method = SL_REFERENCE_ADAMW,
     .rate = 0.02,
     .decay = 1e-2,
     .decay_layers = 2,
     .decay_bias = true,
     .beta1 = 0.9,
     .beta2 = 0.999,
     .epsilon = 1e-8},
    {.method = SL_REFERENCE_SGD, .rate = 0.2, .decay = 1e-4, .decay_layers = 2, .beta1 = 0.9},
};

/* The first step of each method has a closed form: Adam moves by rate · sign(g), SGD by rate · g.
 */
SL_TEST(test_first_step)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        struct sl_reference *net =
            sl_fixture_reference(&data, 2, (const int64_t[]){6}, SL_REFERENCE_ROW);
        struct sl_reference_optimizer o = optimizers[i];
        double *g = calloc((size_t)net->parameters, sizeof *g),
               *old = calloc((size_t)net->parameters, sizeof *old);
        o.decay_layers = 2;
        o.decay_bias = true;
        sl_reference_initialize(net, 3);
        randomize_biases(net, 3);
        memcpy(old, net->theta, (size_t)net->parameters * sizeof *old);
        const double loss = sl_reference_gradient(net, g);
        assert_true(sl_reference_step(net, &o) == loss);
        for (int64_t p = 0; p < net->parameters; p++) {
            const double decayed = g[p] + (o.method == SL_REFERENCE_ADAMW ? 0.0 : o.decay * old[p]);
            const double shrunk =
                old[p] * (o.method == SL_REFERENCE_ADAMW ? 1.0 - o.rate * o.decay : 1.0);
            const double move =
                o.method == SL_REFERENCE_SGD ? decayed : decayed / (fabs(decayed) + o.epsilon);
            assert_true(fabs(net->theta[p] - (shrunk - o.rate * move)) < 1e-12);
        }
        free(g);
        free(old);
        sl_reference_optimizer_clear(&o);
        sl_reference_destroy(net);
    }
    sl_fixture_close(&data);
}

SL_TEST(test_training_lowers_the_loss)
{
    enum { EPOCHS = 150 };
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        double first[EPOCHS], again[EPOCHS];
        for (int run = 0; run < 2; run++) {
            struct sl_reference *net =
                sl_fixture_reference(&data, 2, (const int64_t[]){16}, SL_REFERENCE_SYM);
            struct sl_reference_optimizer o = optimizers[i];
            net->dropout[0] = net->dropout[1] = 0.1;
            sl_reference_initialize(net, 1);
            sl_reference_train(net, &o, 1, EPOCHS, run ? again : first);
            sl_reference_optimizer_clear(&o);
            sl_reference_destroy(net);
        }
        assert_true(first[EPOCHS - 1] < 0.8 * first[0]);
        assert_memory_equal(first, again, sizeof first);
    }
    sl_fixture_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixtures),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_normalize_by_hand),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_dropout_masks),
        cmocka_unit_test(test_first_step),
        cmocka_unit_test(test_training_lowers_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
