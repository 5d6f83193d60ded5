/* Whole rounds of sub-models against narrow models that are trained as plain ones: parameters and
 * the optimizer's state. */
#include <jansson.h>

#include "codelets/instructions.h"
#include "codelets/units.h"
#include "tests/fixtures.h"
#include "tests/kernels.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"
#include "train/trainer.h"

enum { FEATURES = 11, CLASSES = 4 };

static bool block_has(const struct sl_units *units, int part, int64_t unit)
{
    return !units->part || units->part[unit] == part;
}

enum { MODELS = 3, STEPS = 2, UPDATES = 5, MOST_LAYERS = 32, KEPT = 1 + SL_STATES };

static const struct sl_fixture fixture = {SL_FIXTURE("submodels", 59, FEATURES, CLASSES, 5),
                                          .form = SL_FEATURES_DENSE, .seed = 12};

/* Parameters and state of a layer, as plain arrays. */
struct store {
    int64_t rows, cols;
    float *now[KEPT], *next[KEPT]; // (rows, cols): before and after a round
    double *sum[KEPT];             // (rows, cols): over the sub-models that have an entry
    int *have;                     // (rows, cols): how many have it
};

/* Members of some ensemble were best before the end. */
static bool some_earlier;

struct case_of_rounds {
    struct sl_config config, plain;
    struct sl_dataset data;
    struct sl_source source;
    struct sl_trainer trainer, graph; /* with sub-models, and without, for its graph */
    int states;
    int64_t steps; /* of a round */
    struct store store[MOST_LAYERS];
    double *probability; // (vertices, classes): summed over the sub-models of the last round
    double *best;        // likewise, each at its best validation
    int64_t best_epochs[MODELS];
    json_t *members; /* what the run says of it */
};

static struct sl_tile *tile_of(struct sl_model *model, int l, int k)
{
    return k ? &model->layer[l].state[k - 1] : &model->layer[l].parameters;
}

static void create_store(struct case_of_rounds *of, int l)
{
    struct store *s = &of->store[l];
    struct sl_tile *w = &of->graph.model.layer[l].parameters;
    const size_t count = (size_t)(w->rows * w->cols);
    *s = (struct store){w->rows, w->cols, {0}, {0}, {0}, calloc(count + 1, sizeof(int))};
    for (int k = 0; k < 1 + of->states; k++) {
        s->now[k] = calloc(count + 1, sizeof(float));
        s->next[k] = calloc(count + 1, sizeof(float));
        s->sum[k] = calloc(count + 1, sizeof(double));
        assert_true(s->now[k] && s->next[k] && s->sum[k] && s->have);
        if (count == 0)
            continue;
        assert_int_equal(w->ld, w->cols);
        memcpy(s->now[k], sl_tile_acquire(&sl_running, tile_of(&of->graph.model, l, k), false),
               count * sizeof(float));
        sl_tile_release(tile_of(&of->graph.model, l, k));
    }
}

static void free_store(struct store *s)
{
    for (int k = 0; k < KEPT; k++) {
        free(s->now[k]);
        free(s->next[k]);
        free(s->sum[k]);
    }
    free(s->have);
}

/* Steps that an entry of the block has had, if both axes of the layer are cut. */
static float steps_before(const struct case_of_rounds *of, int64_t round, int l, int weights,
                          int64_t row, int64_t column)
{
    const struct sl_rounds *rounds = &of->trainer.submodels.rounds;
    int64_t count = 0;
    for (int64_t t = 0; t < round; t++) {
        const struct sl_unit_block b = sl_rounds_block(rounds, t, 0, l, weights);
        const bool unit = row < weights * b.in.width;
        count += !unit || b.in.part[row % b.in.width] == b.out.part[column];
    }
    return (float)(count * of->steps);
}

/* Between the whole and the tiles of a narrow model, entry by entry. */
static void carry(struct case_of_rounds *of, struct sl_model *model, int64_t round, int part, int l,
                  bool back)
{
    struct store *s = &of->store[l];
    struct sl_model_layer *layer = &model->layer[l];
    const int weights = sl_layer_shape_weights(&layer->shape);
    const struct sl_rounds *rounds = &of->trainer.submodels.rounds;
    const struct sl_unit_block b = sl_rounds_block(rounds, round, part, l, weights);
    const bool counted = layer->counts.rows > 0;
    const int last = 1 + of->states + (counted && !back);
    for (int k = 0; s->rows > 0 && k < last; k++) {
        struct sl_tile *tile = k > of->states ? &layer->counts : tile_of(model, l, k);
        float *at_tile = sl_tile_acquire(&sl_running, tile, !back);
        int64_t place = 0;
        for (int64_t i = 0; i < s->rows * s->cols; i++) {
            const int64_t r = i / s->cols, c = i % s->cols;
            if ((r < weights * b.in.width && !block_has(&b.in, part, r % b.in.width)) ||
                !block_has(&b.out, part, c))
                continue;
            if (k > of->states)
                at_tile[place++] = steps_before(of, round, l, weights, r, c);
            else if (back) {
                s->have[i] += k == 0;
                s->sum[k][i] += at_tile[place];
                s->next[k][i] = at_tile[place++];
            } else
                at_tile[place++] = s->now[k][i];
        }
        assert_int_equal(place, tile->rows * tile->cols);
        sl_tile_release(tile);
    }
}

static int64_t units_of(const struct sl_units *units, int part)
{
    int64_t count = 0;
    for (int64_t u = 0; u < units->width; u++)
        count += block_has(units, part, u);
    return count;
}

/* A dataset with the features of a part alone. Return them, to free; all else is shared. */
static float *cut_features(const struct case_of_rounds *of, const struct sl_units *units, int part,
                           struct sl_dataset *cut)
{
    *cut = of->data;
    cut->features = units_of(units, part);
    float *to = calloc((size_t)(cut->vertices * cut->features), sizeof *to), *next = to;
    assert_non_null(to);
    for (int64_t i = 0; i < cut->vertices * FEATURES; i++)
        if (block_has(units, part, i % FEATURES))
            *next++ = of->data.features_dense[i];
    cut->features_dense = to;
    return to;
}

/* A plain model of the widths that a sub-model has. */
static void create_narrow(struct case_of_rounds *of, struct sl_model *model, int64_t round,
                          int part)
{
    const struct sl_model_shape shape = sl_config_shape(&of->plain, FEATURES, CLASSES);
    struct sl_layer_list list = {0};
    sl_model_list(&shape, &list);
    struct sl_model_options options = shape.options;
    options.layers = list.count;
    assert_true(list.count <= MOST_LAYERS);
    assert_int_equal(sl_model_open(model, &sl_running, &options), 0);
    for (int l = 0; l < list.count; l++) {
        struct sl_layer_shape *layer = &list.layer[l];
        const struct sl_unit_block b = sl_rounds_block(&of->trainer.submodels.rounds, round, part,
                                                       l, layer->kind->weights.count);
        layer->in = b.in.part ? units_of(&b.in, part) : layer->in;
        layer->out = b.out.part ? units_of(&b.out, part) : layer->out;
        layer->counted = b.in.part && b.out.part && of->states > 1;
        assert_int_equal(sl_model_add(model, layer), 0);
        carry(of, model, round, part, l, false);
    }
    sl_model_spread(model);
    free(list.layer);
}

static struct sl_optimizer_step step_of(const struct case_of_rounds *of, int64_t update)
{
    return (struct sl_optimizer_step){
        .method = of->config.training.optimizer,
        .rate = (float)of->config.training.lr,
        .momentum = (float)of->config.training.momentum,
        .beta1 = 0.9f,
        .beta2 = 0.999f,
        .epsilon = 1e-8f,
        .average_rate = 0.1f,
        .correction1 = (float)(1.0 - pow((double)0.9f, (double)update)),
        .correction2 = (float)(1.0 - pow((double)0.999f, (double)update)),
        .local = (update - 1) % of->steps + 1,
    };
}

/* The logits of a network, (vertices, classes), in the order of its tiles. */
static void read_logits(struct sl_network *net, float *to)
{
    const struct sl_matrix *logits = &net->layer[net->layers - 1].output;
    assert_int_equal(logits->tile_cols, 1);
    for (int i = 0; i < logits->tile_rows; i++) {
        struct sl_tile *tile = &logits->tiles[i];
        const float *from = sl_tile_acquire(&sl_running, tile, false);
        for (int64_t r = 0; r < tile->rows; r++, to += CLASSES)
            memcpy(to, from + r * tile->ld, CLASSES * sizeof *to);
        sl_tile_release(tile);
    }
}

/* Add, or set, softmax of the logits of a network. */
static void add_probabilities(struct sl_network *net, bool add, double *to)
{
    float *logits = calloc((size_t)fixture.vertices * CLASSES, sizeof *logits);
    assert_non_null(logits);
    sl_network_forward(net, false);
    read_logits(net, logits);
    for (int64_t v = 0; v < fixture.vertices; v++) {
        double sum = 0.0;
        for (int c = 0; c < CLASSES; c++)
            sum += exp((double)logits[v * CLASSES + c]);
        for (int c = 0; c < CLASSES; c++)
            to[v * CLASSES + c] =
                (add ? to[v * CLASSES + c] : 0.0) + exp((double)logits[v * CLASSES + c]) / sum;
    }
    free(logits);
}

/* The probabilities of the last evaluation are the means of those of the sub-models. */
static void expect_probabilities(struct case_of_rounds *of, const double *sum, const char *line)
{
    float *logits = calloc((size_t)fixture.vertices * CLASSES, sizeof *logits);
    assert_non_null(logits);
    read_logits(&of->trainer.whole.network, logits);
    for (int64_t i = 0; i < fixture.vertices * CLASSES; i++) {
        const double got = exp((double)logits[i]), wanted = sum[i] / MODELS;
        if (!(fabs(got - wanted) <= 1e-5))
            fail_msg("%s: probability %g of class %lld, not %g", line, got, (long long)i % CLASSES,
                     wanted);
    }
    free(logits);
}

static double right_in_validation(struct sl_network *net)
{
    sl_network_evaluate(net);
    struct sl_tile *total = sl_network_total(net);
    const double *metrics = sl_tile_acquire(&sl_running, total, false);
    const double right = metrics[SL_METRIC_CORRECT + SL_SPLIT_VAL];
    sl_tile_release(total);
    return right;
}

/* Train one sub-model in a round on a graph, from the parameters before it. */
static void train_on(struct case_of_rounds *of, const struct sl_graph *graph, int64_t round,
                     int part)
{
    struct sl_model model;
    create_narrow(of, &model, round, part);
    struct sl_network net = {.rt = &sl_running, .graph = graph, .model = &model};
    double *best = calloc((size_t)fixture.vertices * CLASSES, sizeof *best), most = -1.0;
    assert_non_null(best);
    assert_int_equal(sl_network_create(&net, sl_config_product_order(&of->plain), NULL), 0);
    for (int64_t u = round * of->steps + 1; u <= (round + 1) * of->steps && u <= UPDATES; u++) {
        const struct sl_optimizer_step step = step_of(of, u);
        net.step.epoch = net.step.update = (uint32_t)u;
        sl_network_train(&net, &step);
        const double right = right_in_validation(&net);
        if (right > most) {
            most = right;
            of->best_epochs[part] = u;
            add_probabilities(&net, false, best);
        }
    }
    for (int64_t i = 0; i < fixture.vertices * CLASSES; i++)
        of->best[i] += best[i];
    free(best);
    for (int l = 0; l < model.layers; l++)
        carry(of, &model, round, part, l, true);
    add_probabilities(&net, true, of->probability);
    sl_network_destroy(&net);
    sl_model_destroy(&model);
}

/* Train a sub-model. If features are cut, its graph has its own features alone. */
static void train_narrow(struct case_of_rounds *of, int64_t round, int part)
{
    const struct sl_unit_block b =
        sl_rounds_block(&of->trainer.submodels.rounds, round, part, 0, 1);
    if (!b.in.part) {
        train_on(of, &of->graph.whole.graph, round, part);
        return;
    }
    struct sl_dataset data;
    struct sl_source source;
    struct sl_trainer graph;
    float *features = cut_features(of, &b.in, part, &data);
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(sl_trainer_create(&graph, &sl_running, &source, &of->plain, NULL), 0);
    train_on(of, &graph.whole.graph, round, part);
    sl_trainer_destroy(&graph);
    sl_source_close(&source);
    free(features);
}

/* End a round. An entry of one sub-model is copied, entries of all become their mean, others stay.
 */
static void end_round(struct case_of_rounds *of, struct store *s)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
        assert_true(s->have[i] == 0 || s->have[i] == 1 || s->have[i] == MODELS);
        for (int k = 0; k < 1 + of->states; k++) {
            if (s->have[i] > 0)
                s->now[k][i] = s->have[i] == 1 ? s->next[k][i] : (float)(s->sum[k][i] / MODELS);
            s->sum[k][i] = 0.0;
        }
        s->have[i] = 0;
    }
}

static void expect_store(struct case_of_rounds *of, int l, const char *line)
{
    const struct store *s = &of->store[l];
    for (int k = 0; s->rows > 0 && k < 1 + of->states; k++) {
        const struct sl_store *store = &of->trainer.store;
        const struct sl_shard *shard = &store->shard[store->first[l]];
        float most = 0.0f, apart = 0.0f;
        assert_int_equal(shard->rows, s->rows);
        const float *got = sl_tile_acquire(&sl_running, shard->tile[k], false);
        for (int64_t i = 0; i < s->rows * s->cols; i++) {
            most = fmaxf(most, fabsf(s->now[k][i]));
            apart = fmaxf(apart, fabsf(got[i] - s->now[k][i]));
        }
        sl_tile_release(shard->tile[k]);
        /* A norm multiplies roundings of attention, most of all without fused products. */
        const bool fused = sl_instructions_get() > SL_INSTRUCTIONS_BASE;
        const float tolerance = !strstr(line, "gat") || !strstr(line, "norm") ? 1e-6f
                                : fused                                       ? 4e-6f
                                                                              : 1e-4f;
        if (!(apart <= tolerance * most))
            fail_msg("%s: layer %d, %s %d: off by %g of %g", line, l, k ? "state" : "parameters", k,
                     (double)apart, (double)most);
    }
}

/* Return what the run says of the members of an ensemble. */
static json_t *run_trainer(struct sl_trainer *trainer)
{
    struct sl_report report;
    struct sl_outcome outcome;
    assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
    assert_int_equal(sl_trainer_run(trainer, &report, &outcome), 0);
    assert_int_equal(outcome.epochs, UPDATES);
    assert_int_equal(sl_report_close(&report), 0);
    json_t *members = json_incref(outcome.members);
    sl_outcome_free(&outcome);
    return members;
}

/* The last evaluation of a run is of members at their best. */
static void expect_ensemble(struct case_of_rounds *of, const char *line)
{
    struct sl_outcome outcome;
    bool earlier = false;
    expect_probabilities(of, of->best, line);
    for (int p = 0; p < MODELS; p++) {
        json_t *member = json_array_get(json_object_get(of->members, "members"), (size_t)p);
        assert_int_equal(json_integer_value(json_object_get(member, "best_epoch")),
                         of->best_epochs[p]);
        earlier = earlier || of->best_epochs[p] < UPDATES;
    }
    some_earlier = some_earlier || earlier;
    sl_trainer_evaluate(&of->trainer, &outcome);
    expect_probabilities(of, of->probability, line);
}

/* An ensemble has one round. */
static void check_training(const char *model, const char *optimizer, const char *split,
                           bool ensemble)
{
    struct case_of_rounds of = {.data = sl_fixture_open(&fixture)};
    char line[SL_MOST_LINE - 64], all[SL_MOST_LINE];
    snprintf(line, sizeof line,
             "%s --optimizer %s --dropout 0 --product-order gemm --recompute none "
             "--weight-decay 0.01 --lr 0.02 --epochs %d",
             model, optimizer, MODELS * UPDATES);
    snprintf(all, sizeof all, "%s --submodels %d --split-layers %s%s", line, MODELS, split,
             ensemble ? " --share none --eval-every 1" : " --local-steps 2");
    of.steps = ensemble ? UPDATES : STEPS;
    of.probability = calloc((size_t)fixture.vertices * CLASSES, sizeof *of.probability);
    of.best = calloc((size_t)fixture.vertices * CLASSES, sizeof *of.best);
    assert_true(of.probability && of.best);
    of.config = sl_run_parse(all);
    of.plain = sl_run_parse(line);
    of.states = sl_optimizer_states(of.plain.training.optimizer);
    assert_int_equal(sl_source_of(&of.data, &of.source), 0);
    assert_int_equal(sl_trainer_create(&of.trainer, &sl_running, &of.source, &of.config, NULL), 0);
    assert_int_equal(sl_trainer_create(&of.graph, &sl_running, &of.source, &of.plain, NULL), 0);
    if (strstr(split, "--submodel-share"))
        assert_false(sl_rounds_alike(&of.trainer.submodels.rounds, 0, 1));
    const int layers = of.graph.model.layers;
    for (int l = 0; l < layers; l++)
        create_store(&of, l);
    of.members = run_trainer(&of.trainer);
    for (int64_t t = 0; t * of.steps < UPDATES; t++) {
        for (int p = 0; p < MODELS; p++)
            train_narrow(&of, t, p);
        for (int l = 0; l < layers; l++)
            end_round(&of, &of.store[l]);
    }
    if (ensemble)
        expect_ensemble(&of, all);
    json_decref(of.members);
    free(of.probability);
    free(of.best);
    for (int l = 0; l < layers; l++) {
        expect_store(&of, l, all);
        free_store(&of.store[l]);
    }
    sl_trainer_destroy(&of.trainer);
    sl_trainer_destroy(&of.graph);
    sl_source_close(&of.source);
    sl_options_free(sl_config_options, &of.config);
    sl_options_free(sl_config_options, &of.plain);
    sl_fixture_close(&of.data);
}

SL_TEST(test_training)
{
    static const char *const models[] = {
        "--model gcn --layers 3 --hidden 10",
        "--model sage --layers 3 --hidden 11",
        "--model gat --layers 3 --heads 2 --hidden 4",
        "--model gatv2 --layers 3 --heads 2 --hidden 4",
        "--model transformer --layers 2 --heads 3 --hidden 4",
        "--model resgcn --layers 3 --hidden 10 --block-norm row",
        /* A bias before this norm has gradients of rounding alone, which Adam divides by their
           size. */
        "--model resgcn --layers 3 --hidden 10 --block-norm batch --no-bias",
        "--model gcn --layers 3 --hidden 10 --norm-layers row",
        "--model resgcn --layers 2 --hidden 10 --block-aggregator mean --no-bias",
        "--model gcn --layers 2 --hidden 10 --residual linear --classifier linear",
        "--model sage --layers 3 --hidden 11 --norm-layers batch --no-bias",
        "--model gat --layers 3 --heads 2 --hidden 4 --norm-layers row",
        "--model gat --layers 2 --heads 2 --hidden 4 --residual linear --classifier linear",
        "--model gcn --layers 2 --hidden 10 --encoder linear --activation elu",
        "--model gcn --layers 3 --hidden 10 --residual identity --jump sum",
        "--model sage --layers 2 --hidden 10 --jump concat --norm-layers row",
        "--model gcn --layers 3 --hidden 10 --jump max --norm-layers row",
        "--model gat --layers 2 --heads 2 --hidden 4 --encoder linear --residual identity",
        "--model gin --layers 2 --hidden 7",
        "--model jknet --layers 3 --hidden 9",
    };
    for (size_t k = 0; k < SL_COUNT(models); k++) {
        check_training(models[k], "adam", "all", false);
        check_training(models[k], "sgd", "all", false);
    }
}

/* A sub-model reads all features, and its network is that of its own. */
SL_TEST(test_features)
{
    static const char *const lines[][2] = {
        {"--model gcn --layers 3 --hidden 10", "0,1,2"},
        {"--model gcn --layers 3 --hidden 10", "0"},
        {"--model gcn --layers 2 --hidden 10 --clip-norm 0.05", "0,1"},
        {"--model sage --layers 3 --hidden 11", "0,2"},
        {"--model gat --layers 3 --heads 2 --hidden 4", "0,1,2"},
        {"--model gatv2 --layers 3 --heads 2 --hidden 4 --no-bias", "0,1"},
        {"--model resgcn --layers 3 --hidden 10 --block-norm row", "0,1"},
        {"--model gcn --layers 3 --hidden 10 --norm-layers row", "0,1,2"},
        {"--model gcn --layers 2 --hidden 10 --residual linear --classifier linear", "0,1,2"},
        {"--model gat --layers 2 --heads 2 --hidden 4 --residual linear --classifier linear",
         "0,1"},
        {"--model gcn --layers 2 --hidden 10 --encoder linear", "0,1,2"},
        {"--model gin --layers 2 --hidden 7", "0,1"},
        {"--model sgc", "0"},
    };
    for (size_t k = 0; k < SL_COUNT(lines); k++) {
        check_training(lines[k][0], "adam", lines[k][1], false);
        check_training(lines[k][0], "sgd", lines[k][1], false);
    }
}

/* Sub-models of other sizes. */
SL_TEST(test_shares)
{
    static const char *const lines[][2] = {
        {"--model gcn --layers 3 --hidden 10", "--submodel-share 3,1,2"},
        {"--model sage --layers 3 --hidden 11", "--submodel-share 1,5,2"},
        {"--model gat --layers 3 --heads 2 --hidden 5", "--submodel-share 3,1,1"},
        {"--model transformer --layers 2 --heads 2 --hidden 5", "--submodel-share 3,1,1"},
        {"--model resgcn --layers 3 --hidden 10 --block-norm row", "--submodel-share 2,5,3"},
        {"--model gcn --layers 3 --hidden 10 --norm-layers row", "--submodel-share 3,1,2"},
    };
    char split[SL_MOST_LINE / 4];
    for (size_t k = 0; k < SL_COUNT(lines); k++)
        for (int features = 0; features < 2; features++) {
            snprintf(split, sizeof split, "%s %s", features ? "0,1" : "all", lines[k][1]);
            check_training(lines[k][0], "adam", split, false);
            check_training(lines[k][0], "sgd", split, true);
        }
}

SL_TEST(test_ensembles)
{
    static const char *const lines[][2] = {
        {"--model gcn --layers 2 --hidden 10", "all"},
        {"--model gcn --layers 3 --hidden 11", "0,1"},
        {"--model sage --layers 3 --hidden 11", "all"},
        {"--model gat --layers 3 --heads 2 --hidden 4", "all"},
        {"--model resgcn --layers 3 --hidden 10 --block-norm row", "all"},
        {"--model gcn --layers 3 --hidden 10 --norm-layers row", "all"},
        {"--model gin --layers 2 --hidden 7", "all"},
    };
    for (size_t k = 0; k < SL_COUNT(lines); k++) {
        check_training(lines[k][0], "adam", lines[k][1], true);
        check_training(lines[k][0], "sgd", lines[k][1], true);
    }
    assert_true(some_earlier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training), cmocka_unit_test(test_features),
        cmocka_unit_test(test_shares), cmocka_unit_test(test_ensembles)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
