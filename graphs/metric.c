#include "graphs/metric.h"

#include <string.h>

#define ADDRESS(id, name) &sl_metric_##id,
static const struct sl_metric *const metrics[] = {SL_METRIC_KINDS(ADDRESS)};
#undef ADDRESS

const struct sl_metric *sl_metric_find(const char *name)
{
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++)
        if (strcmp(metrics[m]->name, name) == 0)
            return metrics[m];
    return NULL;
}

const struct sl_metric *sl_metric_of_loss(const struct sl_loss *loss)
{
    return loss->links                     ? &sl_metric_roc_auc
           : loss->form == SL_TARGET_CLASS ? &sl_metric_accuracy
                                           : &sl_metric_loss;
}

const struct sl_metric *sl_metric_shown(const struct sl_loss *loss, const struct sl_metric *metric)
{
    if (loss->form != SL_TARGET_VALUES || metric->source != SL_METRIC_OF_SUMS)
        return NULL;
    return loss->classes ? &sl_metric_micro_f1 : &sl_metric_r2;
}
