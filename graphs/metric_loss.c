#include "graphs/metric.h"

const struct sl_metric sl_metric_loss = {
    .name = "loss",
    .source = SL_METRIC_OF_SUMS,
    .index = SL_METRIC_LOSS,
    .falls = true,
    .of_numbers = true,
    .of_classes = true,
    .of_several = true,
};
