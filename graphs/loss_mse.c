#include "codelets/value_loss.h"
#include "graphs/loss.h"

static void differentiate(struct sl_runtime *rt, const struct sl_loss_options *options,
                          enum sl_row_scale factor, const struct sl_loss_tiles *tiles)
{
    sl_submit_value_loss(rt, SL_VALUE_SQUARE, options->train_count, (float)options->smoothing,
                         factor, tiles->scales, tiles->target, tiles->weights, tiles->metrics,
                         tiles->z);
}

static void count(struct sl_runtime *rt, const struct sl_loss_tiles *tiles)
{
    sl_submit_value_count(rt, SL_VALUE_SQUARE, tiles->target, tiles->z, tiles->metrics);
}

const struct sl_loss sl_loss_mse = {
    .name = "mse",
    .form = SL_TARGET_VALUES,
    .classes = false,
    .differentiate = differentiate,
    .count = count,
};
