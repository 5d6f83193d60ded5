#include "run/share_choice.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "recipe/defaults.h"
#include "train/steps.h"

enum { MOST_SHARE = 100 /* of the fastest group */ };

/* Every sub-model has a unit: of `units`, each group has `of[g]` sub-models with its share. */
static void raise_least(int groups, const int64_t *of, int64_t units, int64_t *share)
{
    bool raised = true;
    while (raised) {
        int64_t total = 0;
        raised = false;
        for (int g = 0; g < groups; g++)
            total += share[g] * of[g];
        const int64_t least = (total + units - 1) / units;
        for (int g = 0; g < groups; g++)
            if (share[g] < least && share[g] < MOST_SHARE) {
                share[g] = least < MOST_SHARE ? least : MOST_SHARE;
                raised = true;
            }
    }
}

static void set_shares(struct sl_config *config, int groups, int64_t *share)
{
    struct sl_unit_shares *shares = &config->units.submodel_share;
    const int64_t count = config->units.submodels;
    int64_t of[SL_MOST_PARTS];
    for (int g = 0; g < groups; g++)
        of[g] = count * (g + 1) / groups - count * g / groups;
    raise_least(groups, of, config->network.hidden, share);
    shares->kind = groups > 1 ? SL_UNITS_GIVEN : SL_UNITS_EQUAL;
    shares->given.count = groups > 1 ? (int)count : 0;
    for (int g = 0; groups > 1 && g < groups; g++) /* groups have sub-models as in
 sl_submodels_create */
        for (int64_t p = count * g / groups; p < count * (g + 1) / groups; p++)
            shares->given.number[p] = share[g];
}

/* ---- Measuring ---- */

void sl_shares_of_seconds(int groups, const double *seconds, int64_t *share)
{
    double fastest = HUGE_VAL, slowest = 0.0;
    for (int g = 0; g < groups; g++) {
        fastest = fmin(fastest, seconds[g]);
        slowest = fmax(slowest, seconds[g]);
    }
    const bool alike = !(slowest > 1.1 * fastest);
    for (int g = 0; g < groups; g++)
        share[g] = alike ? 1 : (int64_t)fmax(1.0, round(MOST_SHARE * fastest / seconds[g]));
}

/* Return the seconds that this rank's group took. */
static double train_epochs(struct sl_trainer *trainer, int64_t epochs)
{
    sl_runtime_wait(trainer->rt);
    sl_runtime_agree(trainer->rt, 0); /* all ranks begin together */
    const double start = sl_runtime_seconds();
    for (int64_t e = 0; e < epochs; e++) {
        sl_trainer_train_group(trainer, ++trainer->epoch);
        sl_runtime_wait(trainer->rt);
    }
    return sl_runtime_seconds() - start;
}

/* Let all ranks have the seconds of the first rank of each group. Return the most. */
static double share_seconds(struct sl_trainer *trainer, double own, double *seconds)
{
    const struct sl_groups *groups = &trainer->batches.groups;
    double most = 0.0;
    for (int g = 0; g < groups->count; g++) {
        seconds[g] = own;
        sl_runtime_broadcast(trainer->rt, groups->first[g], &seconds[g], sizeof seconds[g]);
        most = fmax(most, seconds[g]);
    }
    return most;
}

/* The first epoch touches memory for the first time. */
static void measure_groups(struct sl_trainer *trainer, double *seconds)
{
    enum { MOST_EPOCHS = 50 };
    static const double WANTED = 1.0, LEAST = 1e-6;
    const double first = share_seconds(trainer, train_epochs(trainer, 1), seconds);
    const double epochs = fmin(MOST_EPOCHS, ceil(WANTED / fmax(first, LEAST)));
    share_seconds(trainer, train_epochs(trainer, (int64_t)epochs), seconds);
}

/* Return the options of a run of one round without end and without evaluations. Blocks stand for an
 * ensemble, whose steps are alike and whose round would end. */
static struct sl_config probe_of(const struct sl_config *config)
{
    struct sl_config probe = *config;
    probe.units.submodel_share.kind = SL_UNITS_EQUAL;
    if (sl_config_is_ensemble(config))
        probe.units.share = SL_SHARE_BLOCKS;
    probe.units.local_steps = INT64_MAX / 2;
    probe.training.eval_every = -1;
    probe.training.patience = 0;
    probe.training.keep = SL_KEEP_LAST;
    return probe;
}

int sl_shares_measure(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *chosen)
{
    if (config->units.submodel_share.kind != SL_UNITS_AUTO)
        return 0;
    struct sl_trainer trainer;
    double seconds[SL_MOST_PARTS];
    int64_t share[SL_MOST_PARTS] = {1};
    int groups = 1;
    if (config->steps.groups.given) {
        const struct sl_config probe = probe_of(config);
        const int code = sl_trainer_create(&trainer, rt, source, &probe, NULL);
        groups = trainer.batches.groups.count;
        if (!code && groups > 1) {
            measure_groups(&trainer, seconds);
            sl_shares_of_seconds(groups, seconds, share);
        }
        sl_trainer_destroy(&trainer);
        if (code)
            return code;
    }
    set_shares(config, groups, share);
    sl_defaults_say(chosen, "submodel-share", sl_config_text(config, "submodel-share").text);
    return 0;
}
