#include "graphs/metric.h"

static void ratio(enum sl_target_form form, const double *n, double *top, double *bottom)
{
    (void)form;
    *top = n[SL_TRUE_POSITIVE] + n[SL_TRUE_NEGATIVE];
    *bottom = *top + n[SL_FALSE_POSITIVE] + n[SL_FALSE_NEGATIVE];
}

const struct sl_metric sl_metric_label_accuracy = {
    .name = "label-accuracy",
    .source = SL_METRIC_OF_COUNTS,
    .index = SL_METRIC_VALUE,
    .of_several = true,
    .labels = {ratio, false, SL_LABEL_COUNTS},
};
