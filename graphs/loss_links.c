#include "graphs/loss.h"

const struct sl_loss sl_loss_bce = {
    .name = "bce", .form = SL_TARGET_NONE, .links = true, .link_loss = SL_LINK_CROSS_ENTROPY};

const struct sl_loss sl_loss_bpr = {
    .name = "bpr", .form = SL_TARGET_NONE, .links = true, .link_loss = SL_LINK_PAIRWISE};
