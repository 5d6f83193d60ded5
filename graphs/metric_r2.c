#include "graphs/metric.h"

/* Set the ratio of a column. A column whose values are all the same has no spread to explain. */
static void ratio(enum sl_target_form form, const double *n, double *top, double *bottom)
{
    (void)form;
    *top = n[SL_VALUE_SPREAD] - n[SL_SQUARED_ERRORS];
    *bottom = n[SL_VALUE_SPREAD];
}

const struct sl_metric sl_metric_r2 = {
    .name = "r2",
    .source = SL_METRIC_OF_ERRORS,
    .index = SL_METRIC_VALUE,
    .of_numbers = true,
    .labels = {ratio, false, SL_VALUE_ERRORS},
};
