#include "tests/runs.h"

#include "core/error.h"
#include "data/feature_form.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/unit.h"

enum { MOST_WORDS = 64 };

/* With --feature-form auto, the form stays. */
static int set_form(struct sl_source *source, const struct sl_config *config)
{
    if (config->features.feature_form == SL_FORM_AUTO)
        return 0;
    return sl_features_set_form(&sl_running, source,
                                config->features.feature_form == SL_FORM_DENSE ? SL_FEATURES_DENSE
                                                                               : SL_FEATURES_CSR);
}

void sl_opened_open(struct sl_opened *opened, const struct sl_dataset *data,
                    struct sl_config config)
{
    opened->config = config;
    if (sl_source_of(data, &opened->source) || set_form(&opened->source, &config) ||
        sl_trainer_create(&opened->trainer, &sl_running, &opened->source, &opened->config, NULL))
        fail_msg("%s: %s", config.network.model->name, sl_error_message());
}

void sl_opened_close(struct sl_opened *opened)
{
    sl_trainer_destroy(&opened->trainer);
    sl_source_close(&opened->source);
    sl_options_free(sl_config_options, &opened->config);
}

double sl_network_train_loss(struct sl_network *net)
{
    struct sl_tile *total = sl_network_total(net);
    const double *metrics = sl_tile_acquire(&sl_running, total, false);
    const double loss = metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN] / (double)net->graph->train_count;
    sl_tile_release(total);
    return loss;
}

void sl_run_free(struct sl_run *run)
{
    sl_outcome_free(&run->outcome);
    free(run->losses);
    free(run->val_correct);
    free(run->parameters);
    free(run->logits);
    *run = (struct sl_run){0};
}

struct sl_config sl_run_parse(const char *line)
{
    char copy[SL_MOST_LINE], *words[MOST_WORDS], *rest = copy;
    int count = 0, positionals = 0;
    struct sl_config config = {0};
    assert_true(snprintf(copy, sizeof copy, "%s", line) < SL_MOST_LINE);
    for (char *word; count < MOST_WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    if (sl_config_defaults(&config) || sl_options_set(sl_config_options, &config, "hidden", "16") ||
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

static void keep_parameters(struct sl_run *run, struct sl_network *net)
{
    for (int l = 0; l < net->layers; l++)
        run->count += net->layer[l].model->parameters.rows * net->layer[l].out;
    float *to = run->parameters = calloc((size_t)run->count, sizeof *to);
    for (int l = 0; l < net->layers; l++) {
        copy_rows(&net->layer[l].model->parameters, to);
        to += net->layer[l].model->parameters.rows * net->layer[l].out;
    }
}

static void keep_logits(struct sl_run *run, struct sl_network *net)
{
    struct sl_matrix *output = &net->layer[net->layers - 1].output;
    run->rows = output->rows;
    run->classes = output->cols;
    run->logits = calloc((size_t)(run->rows * run->classes), sizeof *run->logits);
    for (int i = 0; i < output->tile_rows; i++)
        copy_rows(sl_matrix_tile(output, i, 0), run->logits + output->row_cut[i] * run->classes);
}

static void keep_records(struct sl_run *run, const struct sl_trainer *trainer)
{
    run->first = trainer->start.first_epoch;
    run->epochs = run->outcome.epochs;
    run->losses = calloc((size_t)run->epochs + 1, sizeof *run->losses);
    run->val_correct = calloc((size_t)run->epochs + 1, sizeof *run->val_correct);
    for (int64_t e = run->first; e <= run->epochs; e++) {
        const struct sl_record *record = &trainer->records.record[e];
        assert_true(record->trained);
        run->losses[e] = record->train_loss / (double)trainer->whole.network.graph->train_count;
        run->val_correct[e] = record->values[SL_METRIC_CORRECT + SL_SPLIT_VAL];
    }
}

struct sl_run sl_run_train(const struct sl_dataset *data, const char *line,
                           const struct sl_around *around)
{
    struct sl_config config = sl_run_parse(line);
    struct sl_checkpoint checkpoint = {0};
    struct sl_source source;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_run run = {0};
    assert_int_equal(sl_source_of(data, &source), 0);
    assert_int_equal(set_form(&source, &config), 0);
    if (config.ranks.order == &sl_order_double)
        assert_int_equal(sl_source_order_double(&sl_running, &source, 1), 0);
    assert_int_equal(sl_config_set_text(&config.files.resume, around->resume), 0);
    if (around->resume && sl_checkpoint_read(around->resume, &checkpoint))
        fail_msg("%s", sl_error_message());
    if (sl_trainer_create(&trainer, &sl_running, &source, &config,
                          around->resume ? &checkpoint : NULL))
        fail_msg("%s: %s", line, sl_error_message());
    trainer.records.stop_requested = around->stop;
    assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
    const int code = sl_trainer_run(&trainer, &report, &run.outcome);
    assert_int_equal(code != 0, around->fails);
    if (around->save && sl_trainer_save(&trainer, around->save))
        fail_msg("%s", sl_error_message());
    keep_records(&run, &trainer);
    keep_parameters(&run, &trainer.whole.network);
    keep_logits(&run, &trainer.whole.network);
    sl_trainer_destroy(&trainer);
    assert_int_equal(sl_report_close(&report), 0);
    sl_source_close(&source);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    return run;
}

struct sl_run sl_run_train_fixture(const char *fixture, const char *line)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    struct sl_run run = sl_run_train(&data, line, &(struct sl_around){0});
    sl_fixture_close(&data);
    return run;
}

/* ---- Comparisons ---- */

void sl_run_same_parameters(const struct sl_run *a, const struct sl_run *b, const char *what)
{
    assert_int_equal(a->count, b->count);
    if (memcmp(a->parameters, b->parameters, (size_t)a->count * sizeof *a->parameters) != 0)
        fail_msg("%s: the parameters are not the same bits", what);
}

void sl_run_same(const struct sl_run *a, const struct sl_run *b, int64_t first, const char *what)
{
    assert_int_equal(a->epochs, b->epochs);
    for (int64_t e = first; e <= a->epochs; e++)
        if (memcmp(&a->losses[e], &b->losses[e], sizeof *a->losses) != 0)
            fail_msg("%s: the loss of epoch %d is %.17g, and %.17g", what, (int)e, a->losses[e],
                     b->losses[e]);
    sl_run_same_parameters(a, b, what);
    assert_int_equal(a->outcome.best_epoch, b->outcome.best_epoch);
}

double sl_run_difference(const double *a, const double *b, int64_t epochs)
{
    double largest = 0.0;
    for (int64_t e = 1; e <= epochs; e++)
        largest = fmax(largest, fabs(a[e] - b[e]) / fabs(b[e]));
    return largest;
}

void sl_run_close(const struct sl_run *a, const struct sl_run *b, double tolerance,
                  const char *what)
{
    assert_int_equal(a->epochs, b->epochs);
    const double difference = sl_run_difference(a->losses, b->losses, a->epochs);
    if (!(difference <= tolerance))
        fail_msg("%s: the losses differ by %.2e", what, difference);
}
