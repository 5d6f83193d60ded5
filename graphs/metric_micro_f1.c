#include "graphs/metric.h"

static void ratio(enum sl_target_form form, const double *n, double *top, double *bottom)
{
    (void)form;
    *top = 2.0 * n[SL_TRUE_POSITIVE];
    *bottom = *top + n[SL_FALSE_POSITIVE] + n[SL_FALSE_NEGATIVE];
}

const struct sl_metric sl_metric_micro_f1 = {
    .name = "micro-f1",
    .source = SL_METRIC_OF_COUNTS,
    .index = SL_METRIC_VALUE,
    .of_classes = true,
    .of_several = true,
    .labels = {ratio, true, SL_LABEL_COUNTS},
};
