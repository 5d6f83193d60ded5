#include "tests/trained.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/message.h"
#include "graphs/place.h"
#include "recipe/edges.h"
#include "train/trainer.h"

/* Up to 6 ranks: no such number divides it. On more ranks, one rank has two tiles. */
enum { TILES = 7 };

static void *array(int64_t count)
{
    void *memory = calloc((size_t)count + 1, sizeof(float));
    if (!memory)
        sl_fatal("no memory for %lld numbers", (long long)count);
    return memory;
}

void sl_trained_free(struct sl_trained *trained)
{
    free(trained->gradient);
    free(trained->parameter);
    free(trained->logit);
    *trained = (struct sl_trained){.parameters = 0};
}

/* ---- One run ---- */

void sl_test_configure(struct sl_config *config, const char *line)
{
    enum { MOST_WORDS = 64 };
    char copy[512], *words[MOST_WORDS], *rest = copy;
    int count = 0, positionals;
    sl_place_small = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word; count < MOST_WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    if (sl_config_defaults(config) || sl_options_set(sl_config_options, config, "hidden", "16") ||
        sl_options_parse(sl_config_options, config, count, words, &positionals, NULL) ||
        sl_config_check(config))
        sl_fatal("%s: %s", line, sl_error_message());
}

/* A tile that is here, into a matrix with rows of `ld` numbers. */
static void copy_tile(struct sl_runtime *rt, struct sl_tile *tile, float *to, int64_t ld)
{
    const float *from = sl_tile_acquire(rt, tile, false);
    for (int64_t r = 0; r < tile->rows; r++)
        memcpy(to + r * ld, from + r * tile->ld, (size_t)tile->cols * sizeof *to);
    sl_tile_release(tile);
}

/* Keep the parameters and summed gradients, which rank 0 has. */
static void keep_layers(struct sl_trained *out, struct sl_network *net)
{
    int64_t at = 0;
    for (int l = 0; l < net->layers; l++) {
        const struct sl_tile *tile = &net->layer[l].model->parameters;
        out->parameters += tile->rows * tile->cols;
    }
    out->gradient = array(out->parameters);
    out->parameter = array(out->parameters);
    for (int l = 0; l < net->layers; l++) {
        struct sl_layer *layer = &net->layer[l];
        struct sl_tile *tile = &layer->model->parameters;
        if (tile->rows == 0) /* a hop */
            continue;
        copy_tile(net->rt, layer->back.summed, out->gradient + at, tile->cols);
        copy_tile(net->rt, tile, out->parameter + at, tile->cols);
        at += tile->rows * tile->cols;
    }
}

/* A tile of logits that is here, rows where their vertices are. */
static void keep_rows(struct sl_trained *out, struct sl_network *net, struct sl_tile *scales,
                      struct sl_tile *tile, int64_t col, int64_t classes, bool *seen)
{
    float *rows = array(tile->rows * tile->cols);
    copy_tile(net->rt, tile, rows, tile->cols);
    const uint32_t *vertex =
        (const uint32_t *)sl_tile_acquire(net->rt, scales, false) + SL_ROW_VERTEX * tile->rows;
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t c = 0; c < tile->cols; c++) {
            const int64_t to = (int64_t)vertex[r] * classes + col + c;
            const float got = rows[r * tile->cols + c];
            if (seen[to])
                out->apart = fmax(out->apart, fabs((double)got - (double)out->logit[to]));
            seen[to] = true;
            out->logit[to] = got;
        }
    sl_tile_release(scales);
    free(rows);
}

/* From all ranks. A vertex that has no row leaves its logits NaN. */
static void keep_logits(struct sl_trained *out, struct sl_network *net, int64_t vertices)
{
    struct sl_matrix *logits = &net->layer[net->layers - 1].output;
    const int64_t classes = logits->cols;
    bool *seen = array(vertices * classes);
    out->logits = vertices * classes;
    out->logit = array(out->logits);
    for (int64_t k = 0; k < out->logits; k++)
        out->logit[k] = NAN;
    for (int i = 0; i < logits->tile_rows; i++)
        for (int j = 0; j < logits->tile_cols; j++) {
            struct sl_tile *tile = sl_matrix_tile(logits, i, j),
                           *scales = &net->graph->scales[logits->row_order][i];
            sl_tile_send(net->rt, tile, tile->owner, 0);
            if (j == 0)
                sl_tile_send(net->rt, scales, scales->owner, 0);
            if (net->rt->rank == 0)
                keep_rows(out, net, scales, tile, logits->col_cut[j], classes, seen);
            sl_tile_drop(net->rt, tile);
        }
    free(seen);
}

int sl_train(struct sl_runtime *rt, const struct sl_source *source, const char *options,
             bool small_apart, struct sl_trained *out)
{
    struct sl_config config = {0};
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome = {0};
    *out = (struct sl_trained){.parameters = 0};
    char line[512];
    snprintf(line, sizeof line,
             "--epochs %d --tiles %d --optimizer sgd --lr 0.3 --weight-decay-all %s",
             SL_TRAINED_EPOCHS, rt->ranks < TILES ? TILES : rt->ranks + 1, options);
    sl_test_configure(&config, line);
    if (small_apart)
        sl_place_small = SL_PLACE_SMALL;
    rt->stages = sl_config_stages(&config);
    struct sl_source own = *source;
    own.blocks = NULL;
    int code = sl_edges_settle(&config, &own);
    if (!code)
        code = sl_trainer_create(&trainer, rt, &own, &config, NULL);
    if (!code)
        code = sl_report_open(&report, NULL, false, true);
    if (!code) {
        code = sl_trainer_run(&trainer, &report, &outcome);
        sl_report_close(&report);
    }
    for (int e = 0; !code && e < SL_TRAINED_EPOCHS; e++)
        out->loss[e] = trainer.records.record[e + 1].train_loss /
                       (double)trainer.whole.network.graph->train_count;
    if (!code && rt->rank == 0)
        keep_layers(out, &trainer.whole.network);
    if (!code)
        keep_logits(out, &trainer.whole.network,
                    source->selection.whole ? source->selection.whole : source->vertices);
    out->score = outcome.score;
    out->traffic = trainer.traffic.sum[0];
    sl_outcome_free(&outcome);
    sl_trainer_destroy(&trainer);
    sl_block_free_all(&own.blocks);
    sl_options_free(sl_config_options, &config);
    return code;
}

/* ---- Comparison ---- */

static double size_of(const float *a, int64_t count)
{
    double size = 0.0;
    for (int64_t k = 0; k < count; k++)
        size = fabs((double)a[k]) > size ? fabs((double)a[k]) : size;
    return size;
}

/* The largest difference, relative to the largest number. */
static double difference(const float *a, const float *b, int64_t count)
{
    const double size = size_of(b, count);
    double most = 0.0;
    for (int64_t k = 0; k < count; k++) {
        const double d = fabs((double)a[k] - (double)b[k]);
        most = d <= most ? most : isfinite(d) ? d : INFINITY;
    }
    return size > 0.0 ? most / size : INFINITY;
}

double sl_trained_difference(const struct sl_trained *a, const struct sl_trained *b)
{
    if (a->parameters != b->parameters || a->logits != b->logits)
        return INFINITY;
    double most = fmax(difference(a->gradient, b->gradient, b->parameters),
                       difference(a->parameter, b->parameter, b->parameters));
    most = fmax(most, difference(a->logit, b->logit, b->logits));
    most = fmax(most, a->apart / size_of(b->logit, b->logits));
    for (int e = 0; e < SL_TRAINED_EPOCHS; e++) {
        const double d = fabs(a->loss[e] - b->loss[e]) / fabs(b->loss[e]);
        most = d <= most ? most : isfinite(d) ? d : INFINITY;
    }
    return most;
}
