#include "train/breakdown.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "core/error.h"
#include "core/log.h"
#include "core/message.h"
#include "train/state.h"
#include "train/trainer.h"

const char *sl_breakdown_name(enum sl_breakdown broken)
{
    return broken == SL_BROKEN_GRADIENT ? "gradient"
           : broken == SL_BROKEN_UPDATE ? "parameters"
                                        : "output";
}

/* Whether all numbers of a float32 or bfloat16 tile are finite. The tile's owner calls it. */
static bool is_finite(struct sl_trainer *trainer, struct sl_tile *tile)
{
    const bool half = tile->element_size == sizeof(uint16_t);
    const void *data = sl_tile_acquire(trainer->rt, tile, false);
    bool finite = true;
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t j = 0; j < tile->cols; j++) {
            const int64_t at = r * tile->ld + j;
            finite = finite && (half ? (((const uint16_t *)data)[at] & 0x7F80) != 0x7F80
                                     : isfinite(((const float *)data)[at]) != 0);
        }
    sl_tile_release(tile);
    return finite;
}

/* Return the first layer, from 1, whose output is not finite in a repetition of the last epoch's
 * pass. That epoch changed no parameter. If all outputs are finite, return the last layer. All
 * ranks return the same. */
static int find_layer(struct sl_trainer *trainer, int64_t epoch, bool training)
{
    struct sl_network *net = &trainer->whole.network;
    int first = net->layers;
    if (net->evaluates) /* outputs of the pass are gone */
        return first;
    net->step.epoch = net->step.update = (uint32_t)epoch;
    sl_network_forward(net, training);
    for (int l = net->layers - 1; l >= 0; l--) {
        const struct sl_matrix *output = &net->layer[l].output;
        bool finite = true;
        for (int i = 0; i < output->tile_rows; i++)
            for (int j = 0; j < output->tile_cols; j++) {
                struct sl_tile *tile = sl_matrix_tile(output, i, j);
                finite = finite && (tile->owner != trainer->rt->rank || is_finite(trainer, tile));
            }
        if (!finite)
            first = l + 1;
    }
    return (int)sl_runtime_least(trainer->rt, first);
}

/* Save the best weights, unless a checkpoint already has them or they are the broken epoch's.
 * Return, on rank 0, whether they were saved. */
static bool save_best(struct sl_trainer *trainer, int64_t epoch)
{
    const struct sl_config *config = trainer->config;
    int64_t saved = trainer->saved_epoch; /* 0 on other ranks */
    sl_runtime_broadcast(trainer->rt, 0, &saved, sizeof saved);
    if (!config->files.checkpoint || !sl_config_keeps_best(config) ||
        trainer->kept.best_epoch < trainer->start.first_epoch ||
        trainer->kept.best_epoch >= epoch || trainer->kept.best_epoch <= saved)
        return false;
    const int code = sl_state_write_best(trainer, config->files.checkpoint);
    if (code && sl_error_message()[0])
        sl_warn("%s", sl_error_message());
    return code == 0;
}

int sl_breakdown_refuse(struct sl_trainer *trainer, int64_t epoch, struct sl_outcome *outcome)
{
    const struct sl_config *config = trainer->config;
    const struct sl_record *record = sl_records_of(&trainer->records, epoch);
    const struct sl_loss *loss = trainer->whole.graph.objective.loss;
    char help[128], model[PATH_MAX + 64] = "";
    outcome->broken = record->broken;
    outcome->kept_epoch = 0;
    outcome->broken_layer = record->broken_layer;
    if (!outcome->broken_layer)
        outcome->broken_layer = find_layer(trainer, epoch, record->broken == SL_BROKEN_OUTPUT);
    const bool best = save_best(trainer, epoch);
    if (trainer->rt->rank != 0)
        return 0;
    if (loss->own && record->broken != SL_BROKEN_UPDATE)
        snprintf(help, sizeof help, "finite numbers of --loss %s, or a smaller --lr than %g",
                 loss->name, config->training.lr);
    else if (epoch == 1 && record->broken == SL_BROKEN_OUTPUT)
        snprintf(help, sizeof help, "smaller features, or --normalize-features l2");
    else
        snprintf(help, sizeof help, "a smaller --lr than %g, or --clip-norm", config->training.lr);
    if (best)
        snprintf(model, sizeof model, "; %s has the weights of epoch %lld, the best one",
                 config->files.checkpoint, (long long)trainer->kept.best_epoch);
    else if (config->files.checkpoint && trainer->saved_epoch)
        snprintf(model, sizeof model, "; %s holds epoch %lld", config->files.checkpoint,
                 (long long)trainer->saved_epoch);
    else if (config->files.checkpoint)
        snprintf(model, sizeof model, "; %s was not written", config->files.checkpoint);
    return sl_error(SL_ERR_DATA, "epoch %lld: layer %d: the %s %s not finite (expected %s)%s",
                    (long long)epoch, outcome->broken_layer, sl_breakdown_name(record->broken),
                    record->broken == SL_BROKEN_UPDATE ? "are" : "is", help, model);
}
