#include "codelets/value_loss.h"
#include "graphs/loss.h"

static void differentiate(struct sl_runtime *rt, const struct sl_loss_options *options,
                          enum sl_row_scale factor, const struct sl_loss_tiles *tiles)
{
    sl_submit_value_loss(rt, SL_VALUE_SIGMOID, options->train_count, (float)options->smoothing,
                         factor, tiles->scales, tiles->target, tiles->weights, tiles->metrics,
                         tiles->z);
}

static void count(struct sl_runtime *rt, const struct sl_loss_tiles *tiles)
{
    sl_submit_value_count(rt, SL_VALUE_SIGMOID, tiles->target, tiles->z, tiles->metrics);
}

const struct sl_loss sl_loss_sigmoid = {
    .name = "sigmoid",
    .form = SL_TARGET_VALUES,
    .classes = true,
    .weighted = true,
    .differentiate = differentiate,
    .count = count,
};
