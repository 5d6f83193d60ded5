#include "train/outcome.h"

#include <math.h>

#include "train/scores.h"

void sl_trainer_evaluate_whole(struct sl_trainer *trainer)
{
    if (trainer->blocked.pass)
        sl_blocked_evaluate(&trainer->blocked);
    else if (trainer->ensemble.pass)
        sl_ensemble_evaluate(&trainer->ensemble);
    else
        sl_network_evaluate(&trainer->whole.network);
}

enum { ALL_MEMBERS = -1, OF_MODEL = -2 };

/* Evaluate outside an epoch: the model (OF_MODEL), a member of an ensemble at its best, or all of
 * them (ALL_MEMBERS). Return the record. */
static const struct sl_record *evaluate_apart(struct sl_trainer *trainer, int member)
{
    sl_records_of(&trainer->records, 0)->evaluated = false;
    sl_records_of(&trainer->records, 0)->broken = SL_SOUND;
    trainer->whole.network.step.epoch = 0;
    if (member == OF_MODEL)
        sl_trainer_evaluate_whole(trainer);
    else
        sl_ensemble_evaluate_best(&trainer->ensemble, member);
    sl_network_record(&trainer->whole.network, sl_records_evaluate, &trainer->records);
    return sl_records_wait(&trainer->records, 0, false, true);
}

static json_t *describe_best(struct sl_trainer *trainer, int member, int64_t epoch)
{
    const struct sl_record *record = evaluate_apart(trainer, member);
    static const char *const names[] = {[SL_SPLIT_TRAIN] = "train_accuracy",
                                        [SL_SPLIT_VAL] = "val_accuracy",
                                        [SL_SPLIT_TEST] = "test_accuracy"};
    json_t *object = json_object();
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++) /* a split without labels has NaN */
        json_object_set_new(object, names[s],
                            json_real(sl_accuracy_of(trainer, record, (enum sl_split)s)));
    if (member >= 0)
        json_object_set_new(object, "best_epoch", json_integer(epoch));
    return object;
}

json_t *sl_members_describe(struct sl_trainer *trainer)
{
    int64_t epoch[SL_MOST_PARTS];
    bool kept = true;
    if (!trainer->ensemble.pass)
        return NULL;
    sl_ensemble_best_epochs(&trainer->ensemble, epoch);
    for (int m = 0; m < trainer->submodels.count; m++)
        kept = kept && epoch[m] > 0;
    if (!kept)
        return NULL;
    json_t *members = json_array();
    for (int m = 0; m < trainer->submodels.count; m++)
        json_array_append_new(members, describe_best(trainer, m, epoch[m]));
    return json_pack("{s:o, s:o}", "ensemble", describe_best(trainer, ALL_MEMBERS, 0), "members",
                     members);
}

void sl_trainer_evaluate(struct sl_trainer *trainer, struct sl_outcome *outcome)
{
    if (!sl_config_evaluates(trainer->config))
        return;
    const struct sl_record *record = evaluate_apart(trainer, OF_MODEL);
    outcome->train_accuracy = sl_accuracy_of(trainer, record, SL_SPLIT_TRAIN);
    outcome->val_accuracy = sl_accuracy_of(trainer, record, SL_SPLIT_VAL);
    outcome->test_accuracy = sl_accuracy_of(trainer, record, SL_SPLIT_TEST);
    outcome->metric = trainer->whole.graph.objective.metric;
    outcome->score = sl_scores_of(trainer, record, outcome->metric);
    sl_more_scores_find(&trainer->whole.network, &outcome->more);
    const bool classes = trainer->whole.graph.objective.loss->form == SL_TARGET_CLASS;
    outcome->largest_class =
        classes
            ? sl_accuracy(trainer, (double)trainer->whole.operands.largest_class, SL_SPLIT_TRAIN)
            : NAN;
}

void sl_outcome_free(struct sl_outcome *outcome)
{
    json_decref(outcome->confusion);
    json_decref(outcome->members);
    json_decref(outcome->profile);
}

bool sl_outcome_underfits(const struct sl_outcome *outcome)
{
    static const double LEARNT = 0.1; /* share of the vertices outside the largest class */
    const double rest = 1.0 - outcome->largest_class;
    return outcome->metric == &sl_metric_accuracy &&
           outcome->train_accuracy < outcome->largest_class + LEARNT * rest;
}

struct sl_scores sl_outcome_accuracies(const struct sl_outcome *outcome)
{
    return (struct sl_scores){{[SL_SPLIT_NONE] = NAN,
                               [SL_SPLIT_TRAIN] = outcome->train_accuracy,
                               [SL_SPLIT_VAL] = outcome->val_accuracy,
                               [SL_SPLIT_TEST] = outcome->test_accuracy}};
}
