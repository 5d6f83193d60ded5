#include <math.h>

#include "graphs/metric.h"

/* As OGB's evaluators: labels without a vertex that has them, or one that has not, are left out. */
static void ratio(enum sl_target_form form, const double *n, double *top, double *bottom)
{
    (void)form;
    *top = n[SL_PRECISION];
    *bottom = isnan(*top) ? 0.0 : 1.0;
}

const struct sl_metric sl_metric_average_precision = {
    .name = "average-precision",
    .source = SL_METRIC_OF_RANKINGS,
    .index = SL_METRIC_VALUE,
    .of_classes = true,
    .of_several = true,
    .labels = {ratio, false, SL_RANKINGS},
};
