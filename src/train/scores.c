#include "train/scores.h"

#include <math.h>

static double mean_of(const struct sl_trainer *trainer, double sum, enum sl_split split)
{
    const int64_t count = trainer->whole.operands.split_count[split];
    return count ? sum / (double)count : NAN;
}

double sl_accuracy(const struct sl_trainer *trainer, double correct, enum sl_split split)
{
    return trainer->whole.graph.objective.loss->classes ? mean_of(trainer, correct, split) : NAN;
}

struct sl_scores sl_scores_of(const struct sl_trainer *trainer, const struct sl_record *record,
                              const struct sl_metric *metric)
{
    struct sl_scores scores;
    for (int s = 0; s < SL_SPLITS; s++) {
        const double value = record->values[metric->index + s];
        scores.of[s] =
            metric->source == SL_METRIC_OF_SUMS ? mean_of(trainer, value, (enum sl_split)s) : value;
    }
    if (trainer->whole.graph.links) /* only links of validation and test are measured */
        scores.of[SL_SPLIT_TRAIN] = NAN;
    return scores;
}

const struct sl_scores sl_unmeasured = {{NAN, NAN, NAN, NAN}};

struct sl_scores sl_scores_between(struct sl_trainer *trainer, const struct sl_record *record,
                                   const struct sl_metric *metric)
{
    if (!record || !metric)
        return sl_unmeasured;
    struct sl_scores scores = sl_scores_of(trainer, record, metric);
    for (int s = 0; s < SL_SPLITS; s++)
        if (sl_batches_validation(&trainer->batches) && s != SL_SPLIT_VAL)
            scores.of[s] = NAN;
    return scores;
}

double sl_accuracy_of(const struct sl_trainer *trainer, const struct sl_record *record,
                      enum sl_split split)
{
    return sl_accuracy(trainer, record->values[SL_METRIC_CORRECT + (int)split], split);
}

double sl_loss_of(const struct sl_trainer *trainer, const struct sl_record *record)
{
    return mean_of(trainer, record->train_loss / (double)sl_config_work(trainer->config),
                   SL_SPLIT_TRAIN);
}

double sl_value_of(const struct sl_trainer *trainer, const struct sl_record *record)
{
    const struct sl_metric *metric = trainer->whole.graph.objective.metric;
    const double seen = record->values[metric->index + SL_SPLIT_VAL];
    return metric->falls ? -seen : seen;
}
