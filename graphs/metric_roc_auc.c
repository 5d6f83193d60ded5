#include <math.h>

#include "graphs/metric.h"

/* Set the ratio of a label. As in OGB's evaluators, a label that all or no vertices have is left
 * out. */
static void ratio(enum sl_target_form form, const double *n, double *top, double *bottom)
{
    (void)form;
    *top = n[SL_AREA];
    *bottom = isnan(*top) ? 0.0 : 1.0;
}

const struct sl_metric sl_metric_roc_auc = {
    .name = "roc-auc",
    .source = SL_METRIC_OF_RANKINGS,
    .index = SL_METRIC_VALUE,
    .of_classes = true,
    .of_several = true,
    .labels = {ratio, false, SL_RANKINGS},
    .links = {SL_LINKS_AREA, 0},
};
