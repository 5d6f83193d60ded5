#include "graphs/metric.h"

const struct sl_metric sl_metric_accuracy = {
    .name = "accuracy",
    .source = SL_METRIC_OF_SUMS,
    .index = SL_METRIC_CORRECT,
    .of_classes = true,
    .of_several = true,
};
