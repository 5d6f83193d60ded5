#include "codelets/softmax.h"
#include "graphs/loss.h"

static void set(int32_t *target, int32_t label, int32_t split)
{
    target[0] = label;
    target[1] = split;
}

static void differentiate(struct sl_runtime *rt, int64_t train_count, enum sl_row_fact factor,
                          const struct sl_loss_tiles *tiles)
{
    sl_submit_softmax_loss(rt, train_count, tiles->facts, factor, tiles->target, tiles->metrics,
                           tiles->z);
}

static void count(struct sl_runtime *rt, const struct sl_loss_tiles *tiles)
{
    sl_submit_accuracy(rt, tiles->target, tiles->z, tiles->metrics);
}

const struct sl_loss sl_loss_softmax = {
    .name = "cross-entropy",
    .targets = 2,
    .set = set,
    .differentiate = differentiate,
    .count = count,
};
