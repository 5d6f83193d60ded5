#include "graphs/metric.h"

/* Set the ratio of a label. As in scikit-learn, a label that no vertex has or is predicted to have
 * counts 0; such a class is left out. */
static void ratio(enum sl_target_form form, const double *n, double *top, double *bottom)
{
    *top = 2.0 * n[SL_TRUE_POSITIVE];
    *bottom = *top + n[SL_FALSE_POSITIVE] + n[SL_FALSE_NEGATIVE];
    if (form == SL_TARGET_VALUES && *bottom == 0.0)
        *bottom = 1.0;
}

const struct sl_metric sl_metric_macro_f1 = {
    .name = "macro-f1",
    .source = SL_METRIC_OF_COUNTS,
    .index = SL_METRIC_VALUE,
    .of_classes = true,
    .of_several = true,
    .labels = {ratio, false, SL_LABEL_COUNTS},
};
