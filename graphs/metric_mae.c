#include "graphs/metric.h"

static void ratio(enum sl_target_form form, const double *n, double *top, double *bottom)
{
    (void)form;
    *top = n[SL_ABSOLUTE_ERRORS];
    *bottom = n[SL_KNOWN_VALUES];
}

const struct sl_metric sl_metric_mae = {
    .name = "mae",
    .source = SL_METRIC_OF_ERRORS,
    .index = SL_METRIC_VALUE,
    .falls = true,
    .of_numbers = true,
    .labels = {ratio, false, SL_VALUE_ERRORS},
};
