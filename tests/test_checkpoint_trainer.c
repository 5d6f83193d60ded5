/* Checkpoints of trainers: what a trainer takes, and refuses, from a checkpoint. */
#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/unit.h"
#include "train/trainer.h"

static struct sl_config configuration(const char *hidden, const char *layers, const char *bias)
{
    struct sl_config config = {0};
    assert_int_equal(sl_config_defaults(&config), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "epochs", "3"), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "patience", "3"), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "hidden", hidden), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "layers", layers), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "bias", bias), 0);
    return config;
}

/* Makes a trainer; with `path` trains and saves it there. */
static int make_trainer(const struct sl_dataset *data, const struct sl_config *config,
                        const struct sl_checkpoint *checkpoint, const char *path)
{
    struct sl_source source;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    assert_int_equal(sl_source_of(data, &source), 0);
    int code = sl_trainer_create(&trainer, &sl_running, &source, config, checkpoint);
    if (!code && path) {
        assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
        assert_int_equal(sl_trainer_run(&trainer, &report, &outcome), 0);
        code = sl_trainer_save(&trainer, path);
        assert_int_equal(sl_report_close(&report), 0);
        sl_outcome_free(&outcome);
    }
    sl_trainer_destroy(&trainer);
    sl_source_close(&source);
    return code;
}

static void save_model(const struct sl_dataset *data, const char *path)
{
    struct sl_config config = configuration("5", "2", "yes");
    assert_int_equal(make_trainer(data, &config, NULL, path), 0);
    sl_options_free(sl_config_options, &config);
}

SL_TEST(test_configuration_kept)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_checkpoint checkpoint;
    struct sl_config config = configuration("1", "1", "no");
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    json_t *stored = json_object_get(checkpoint.description, "configuration");
    assert_int_equal(
        sl_options_from_json(sl_config_options, &config, stored, NULL, sl_running_path("model")),
        0);
    assert_int_equal(config.network.hidden, 5);
    assert_int_equal(config.network.layers, 2);
    assert_true(config.network.bias);
    assert_int_equal(json_integer_value(json_object_get(checkpoint.description, "epoch")), 3);
    const struct sl_tensor *first = sl_checkpoint_find(&checkpoint, "layer.0.weight");
    assert_int_equal(first->rows, data.features);
    assert_int_equal(first->cols, 5);
    /* Weight and bias, their two moments and the best of them, of two layers. */
    assert_int_equal(checkpoint.count, 16);
    assert_int_equal(sl_checkpoint_find(&checkpoint, "layer.1.bias.moment2")->rows, 1);
    assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), 0);
    sl_options_free(sl_config_options, &config);
    sl_checkpoint_free(&checkpoint);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* A checkpoint of another network than this dataset and configuration ask for. */
SL_TEST(test_other_shapes)
{
    static const struct {
        const char *fixture, *hidden, *layers, *bias, *names;
    } others[] = {
        {"undirected", "5", "2", "yes", "layer.0"},            /* other features */
        {"directed-weighted", "8", "2", "yes", "layer.0"},     /* another width */
        {"directed-weighted", "5", "3", "yes", "layer.1"},     /* more layers */
        {"directed-weighted", "5", "2", "no", "layer.0.bias"}, /* no biases */
    };
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_checkpoint checkpoint;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
        struct sl_dataset other = sl_fixture_open(sl_fixture_find(others[o].fixture));
        struct sl_config config = configuration(others[o].hidden, others[o].layers, others[o].bias);
        assert_int_equal(make_trainer(&other, &config, &checkpoint, NULL), SL_ERR_DATA);
        assert_non_null(strstr(sl_error_message(), others[o].names));
        sl_options_free(sl_config_options, &config);
        sl_fixture_close(&other);
    }
    sl_checkpoint_free(&checkpoint);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* The state of another optimizer starts from 0; all else is loaded. */
SL_TEST(test_other_optimizer)
{
    static const char *const pairs[][2] = {{"sgd", "adam"}, {"adam", "sgd"}, {"adam", "adamw"}};
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        struct sl_config config = configuration("5", "2", "yes");
        struct sl_checkpoint checkpoint;
        struct sl_source source;
        struct sl_trainer trainer;
        assert_int_equal(sl_options_set(sl_config_options, &config, "optimizer", pairs[p][0]), 0);
        assert_int_equal(make_trainer(&data, &config, NULL, sl_running_path("model")), 0);
        assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
        assert_int_equal(sl_options_set(sl_config_options, &config, "optimizer", pairs[p][1]), 0);
        assert_int_equal(sl_source_of(&data, &source), 0);
        assert_int_equal(sl_trainer_create(&trainer, &sl_running, &source, &config, &checkpoint),
                         0);
        const struct sl_model_layer *layer = &trainer.model.layer[0];
        const struct sl_tensor *saved = sl_checkpoint_find(&checkpoint, "layer.0.weight");
        const int64_t count = saved->rows * saved->cols;
        assert_memory_equal(layer->parameters.memory, saved->data, (size_t)count * sizeof(float));
        const float *moment = layer->state[0].memory;
        int64_t zeros = 0;
        for (int64_t i = 0; i < count; i++)
            zeros += moment[i] == 0.0f;
        assert_true(strcmp(pairs[p][1], "adamw") == 0 ? zeros < count : zeros == count);
        sl_trainer_destroy(&trainer);
        sl_source_close(&source);
        sl_checkpoint_free(&checkpoint);
        sl_options_free(sl_config_options, &config);
    }
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* Weights alone, as of another program: they are taken, and the optimizer's state starts from 0. */
SL_TEST(test_weights_alone)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint, weights, again;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    weights = (struct sl_checkpoint){.description = json_pack("{s:i}", "epoch", 0)};
    for (int t = 0; t < checkpoint.count; t++) {
        const struct sl_tensor *tensor = &checkpoint.tensors[t];
        if (!strstr(tensor->name, ".moment") && !strstr(tensor->name, ".best"))
            memcpy(sl_checkpoint_add(&weights, tensor->name, tensor->rows, tensor->cols),
                   tensor->data, (size_t)(tensor->rows * tensor->cols) * sizeof(float));
    }
    assert_int_equal(weights.count, 4);
    assert_int_equal(make_trainer(&data, &config, &weights, sl_running_path("again")), 0);
    assert_int_equal(sl_checkpoint_read(sl_running_path("again"), &again), 0);
    assert_int_equal(json_integer_value(json_object_get(again.description, "epoch")), 3);
    assert_int_equal(again.count, checkpoint.count);
    sl_checkpoint_free(&again);
    sl_checkpoint_free(&weights);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
    unlink(sl_running_path("again"));
}

/* Every tensor is needed, and the epoch. */
SL_TEST(test_incomplete)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    for (int t = 0; t < checkpoint.count; t++) {
        char *name = checkpoint.tensors[t].name;
        if (strcmp(name, "layer.0.weight.best") == 0)
            continue; /* a run without --patience has none */
        checkpoint.tensors[t].name = (char[]){"another"};
        assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), SL_ERR_DATA);
        assert_non_null(strstr(sl_error_message(), name));
        checkpoint.tensors[t].name = name;
    }
    assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), 0);
    json_object_del(checkpoint.description, "epoch");
    assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), SL_ERR_DATA);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* ---- Names ---- */

/* A checkpoint of the first Starling 0.1: all parameters of a layer in one tensor. */
static struct sl_checkpoint with_old_names(const struct sl_checkpoint *checkpoint)
{
    static const char *const kinds[][2] = {
        {"", "parameters"}, {".moment1", "moment1"}, {".moment2", "moment2"}, {".best", "best"}};
    struct sl_checkpoint old = {.description = json_incref(checkpoint->description)};
    for (int layer = 0; layer < 2; layer++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            char name[64];
            snprintf(name, sizeof name, "layer.%d.weight%s", layer, kinds[k][0]);
            const struct sl_tensor *weight = sl_checkpoint_find(checkpoint, name);
            snprintf(name, sizeof name, "layer.%d.bias%s", layer, kinds[k][0]);
            const struct sl_tensor *bias = sl_checkpoint_find(checkpoint, name);
            snprintf(name, sizeof name, "layer%d.%s", layer, kinds[k][1]);
            assert_true(weight && bias);
            const int64_t count = weight->rows * weight->cols;
            float *to = sl_checkpoint_add(&old, name, weight->rows + 1, weight->cols);
            memcpy(to, weight->data, (size_t)count * sizeof *to);
            memcpy(to + count, bias->data, (size_t)bias->cols * sizeof *to);
        }
    return old;
}

/* A checkpoint with old names loads, and is saved again under new names. */
SL_TEST(test_old_names)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint, again;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    struct sl_checkpoint old = with_old_names(&checkpoint);
    assert_int_equal(make_trainer(&data, &config, &old, sl_running_path("again")), 0);
    assert_int_equal(sl_checkpoint_read(sl_running_path("again"), &again), 0);
    assert_int_equal(again.count, checkpoint.count);
    for (int t = 0; t < checkpoint.count; t++) {
        const struct sl_tensor *one = &checkpoint.tensors[t],
                               *other = sl_checkpoint_find(&again, one->name);
        assert_non_null(other);
        assert_int_equal(other->rows, one->rows);
        assert_memory_equal(other->data, one->data,
                            (size_t)(one->rows * one->cols) * sizeof(float));
    }
    sl_checkpoint_free(&again);
    sl_checkpoint_free(&old);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
    unlink(sl_running_path("again"));
}

/* No option whose default is a value is null afterwards, though null is what the checkpoint says.
 */
SL_TEST(test_null_options)
{
    struct sl_config config = configuration("5", "2", "yes");
    int refused = 0;
    for (const struct sl_option *option = sl_config_options; option->name; option++) {
        json_t *stored = json_pack("{s:n}", option->name);
        const int code = sl_options_from_json(sl_config_options, &config, stored, NULL, "it");
        assert_int_equal(code, option->default_value ? SL_ERR_DATA : 0);
        if (code) {
            assert_non_null(strstr(sl_error_message(), option->name));
            refused++;
        }
        json_decref(stored);
    }
    assert_true(refused > 30);
    sl_options_free(sl_config_options, &config);
}

/* Counters of the description that no run has written. */
SL_TEST(test_wild_counters)
{
    static const struct {
        const char *name, *value; /* JSON */
        int code;
    } cases[] = {
        {"best_epoch", "1099511627776", SL_ERR_DATA},
        {"best_epoch", "1e300", SL_ERR_DATA},
        {"best_epoch", "-1", SL_ERR_DATA},
        {"best_epoch", "1.5", SL_ERR_DATA},
        {"best_epoch", "4", SL_ERR_DATA}, /* after the last epoch */
        {"best_epoch", "null", SL_ERR_DATA},
        {"best_epoch", "3.0", 0},
        {"best_epoch", "3", 0},
        {"best_value", "\"7\"", SL_ERR_DATA},
        {"best_value", "-2", SL_ERR_DATA},
        {"epoch", "9223372036854775807", SL_ERR_DATA},
        {"epoch", "-1", SL_ERR_DATA},
        {"epoch", "[]", SL_ERR_DATA},
    };
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    json_t *description = checkpoint.description;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        checkpoint.description = json_copy(description);
        json_object_set_new(checkpoint.description, cases[c].name,
                            json_loads(cases[c].value, JSON_DECODE_ANY, NULL));
        const int code = make_trainer(&data, &config, &checkpoint, NULL);
        if (code != cases[c].code || (code && !strstr(sl_error_message(), cases[c].name)))
            fail_msg("%s %s gave %d: %s", cases[c].name, cases[c].value, code, sl_error_message());
        json_decref(checkpoint.description);
    }
    checkpoint.description = description;
    sl_options_free(sl_config_options, &config);
    sl_checkpoint_free(&checkpoint);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configuration_kept), cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_incomplete),         cmocka_unit_test(test_weights_alone),
        cmocka_unit_test(test_other_optimizer),    cmocka_unit_test(test_old_names),
        cmocka_unit_test(test_null_options),       cmocka_unit_test(test_wild_counters),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
