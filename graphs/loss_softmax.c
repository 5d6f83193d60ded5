#include "codelets/softmax.h"
#include "codelets/weighted_softmax.h"
#include "graphs/loss.h"

static void differentiate(struct sl_runtime *rt, const struct sl_loss_options *options,
                          enum sl_row_scale factor, const struct sl_loss_tiles *tiles)
{
    if (tiles->weights || options->smoothing > 0.0)
        sl_submit_weighted_softmax(rt, options->train_count, (float)options->smoothing, factor,
                                   tiles->scales, tiles->target, tiles->weights, tiles->metrics,
                                   tiles->z);
    else
        sl_submit_softmax_loss(rt, options->train_count, tiles->scales, factor, tiles->target,
                               tiles->metrics, tiles->z);
}

static void count(struct sl_runtime *rt, const struct sl_loss_tiles *tiles)
{
    sl_submit_accuracy(rt, tiles->target, tiles->z, tiles->metrics);
}

const struct sl_loss sl_loss_softmax = {
    .name = "cross-entropy",
    .form = SL_TARGET_CLASS,
    .classes = true,
    .weighted = true,
    .differentiate = differentiate,
    .count = count,
};
