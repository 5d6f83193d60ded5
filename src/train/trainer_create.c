/* Makes a training run. */
#include <math.h>
#include <stdlib.h>

#include "checkpoint/late_messages.h"
#include "checkpoint/meaning.h"
#include "codelets/instructions.h"
#include "core/error.h"
#include "core/log.h"
#include "train/state.h"
#include "train/trainer.h"

int sl_trainer_check(const struct sl_source *source)
{
    const struct sl_npy *labels = &source->targets.labels;
    if (!source->splits.split_rule.given && (!source->splits.split[SL_SPLIT_TRAIN].data ||
                                             source->splits.split[SL_SPLIT_TRAIN].count == 0))
        return sl_error(SL_ERR_DATA,
                        "%s: there is no training vertex (expected a train_idx with at least one, "
                        "or --split 60/20/20, or --split 20/30/rest for 20 of each class, or "
                        "--task links, which needs none)",
                        source->path);
    if (!labels->data || source->classes < 1)
        return sl_error(
            SL_ERR_DATA,
            "%s: the dataset has no labels to train on (expected labels, or --task links)",
            source->path);
    return 0;
}

int sl_trainer_check_labels(const struct sl_trainer *trainer)
{
    const int64_t *count = trainer->whole.operands.split_count;
    const char *path = trainer->source->path;
    const bool links = sl_config_links(trainer->config);
    if (count[SL_SPLIT_TRAIN] == 0)
        return sl_error(SL_ERR_DATA,
                        "%s: no training vertex has a label (--split 60/20/20 draws "
                        "the splits of labelled ones)",
                        path);
    if (trainer->config->training.patience > 0 && count[SL_SPLIT_VAL] == 0)
        return sl_error(SL_ERR_USAGE,
                        "--patience needs %s, and %s has none (expected --patience 0)",
                        links ? "links of validation" : "labelled validation vertices", path);
    if ((links || sl_config_keeps_best(trainer->config)) && count[SL_SPLIT_VAL] == 0 &&
        trainer->rt->rank == 0)
        sl_note("%s: %s: the last weights are kept", path,
                links ? "there are no links of validation (--split-edges 85/5/10 draws them)"
                      : "no validation vertex has a label");
    return 0;
}

/* Whether the global model of sub-models is evaluated by blocks. */
static bool is_wide(const struct sl_trainer *trainer, const struct sl_model_shape *shape)
{
    const struct sl_config *config = trainer->config;
    return sl_config_has_submodels(config) && !sl_config_is_ensemble(config) &&
           sl_blocked_fits(shape, trainer->source->vertices, sl_config_type(config),
                           trainer->whole.graph.distribution->grid.columns);
}

/* Make the model and its store. With sub-models, ranks own shards of the parameters; a whole
 * network needs copies, too. */
static int create_model(struct sl_trainer *trainer, struct sl_model_shape *shape)
{
    const struct sl_config *config = trainer->config;
    if (sl_config_has_submodels(config))
        shape->options.holds =
            trainer->whole.network.logits_only ? SL_MODEL_HOLDS_NOTHING : SL_MODEL_HOLDS_COPIES;
    const int code =
        sl_runtime_agree(trainer->rt, sl_model_create(&trainer->model, trainer->rt, shape));
    if (code)
        return code;
    return sl_config_has_submodels(config)
               ? sl_store_create(&trainer->store, &trainer->model, config->units.store,
                                 config->units.shard_bytes)
               : sl_store_of_model(&trainer->store, &trainer->model);
}

/* Whether evaluations of the whole graph use the memory of training steps. With needed rows and one
 * group, both graphs are on all ranks. */
static bool shares_places(const struct sl_trainer *trainer)
{
    const struct sl_batches *b = &trainer->batches;
    return b->options.needed && b->groups.count == 1 && !trainer->whole.network.logits_only;
}

static int create_network(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint,
                          bool trains)
{
    struct sl_model_shape shape = sl_config_shape(
        trainer->config, trainer->whole.operands.input.width, trainer->source->classes);
    const bool trains_others =
        sl_batches_differ(trainer->config) || sl_config_has_submodels(trainer->config);
    trainer->whole.network.evaluates = trains_others || !trains;
    trainer->whole.network.logits_only =
        trains_others && (!sl_config_evaluates(trainer->config) ||
                          sl_config_is_ensemble(trainer->config) || is_wide(trainer, &shape));
    int code = create_model(trainer, &shape);
    if (shares_places(trainer))
        trainer->whole.network.memory.places = &trainer->batches.places;
    int *orders = code ? NULL : sl_state_orders(trainer->config, checkpoint, trainer->model.layers);
    if (!code)
        code = sl_pass_add_network(&trainer->whole, &trainer->model, NULL, &trainer->core,
                                   trainer->config, orders);
    free(orders);
    if (!code && checkpoint && trainer->config->files.resume)
        code = sl_submodels_check(trainer->config, checkpoint);
    if (!code && checkpoint)
        code = sl_state_load(trainer, checkpoint);
    return code;
}

/* Give all ranks the kernel timings that rank 0 remembers, so that they cut tiles alike. */
static void start_spmm(struct sl_runtime *rt, const struct sl_config *config)
{
    sl_spmm_choice_reset(&rt->spmm);
    rt->spmm.kernel = config->machine.spmm;
    sl_spmm_choice_read(&rt->spmm);
    sl_runtime_broadcast(rt, 0, &rt->spmm.count, sizeof rt->spmm.count);
    sl_runtime_broadcast(rt, 0, rt->spmm.measured, sizeof rt->spmm.measured);
}

static void end_spmm(const struct sl_trainer *trainer)
{
    struct sl_runtime *rt = trainer->rt;
    if (rt->process->gpus > 0 && rt->spmm.kernel == SL_SPMM_CUSPARSE && rt->spmm.products == 0 &&
        trainer->epoch >= trainer->start.first_epoch)
        sl_note("--spmm cusparse: no sparse product of rank %d was cuSPARSE's, which takes float32 "
                "and what a GPU has room for",
                rt->rank);
    if (rt->process->gpus > 0)
        sl_runtime_drop_kept();
    sl_spmm_choice_reset(&rt->spmm);
}

/* Submit the first parameters, or spread the checkpoint's and load its late messages. Collective.
 */
static int fill_model(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    if (!checkpoint) {
        sl_store_init(&trainer->store);
        return 0;
    }
    sl_store_spread(&trainer->store);
    return sl_runtime_agree(trainer->rt, sl_late_messages_load(&trainer->whole.network, checkpoint,
                                                               trainer->config->files.resume));
}

/* Make the evaluation of sub-models: an ensemble or a wide network. */
static int create_evaluation(struct sl_trainer *trainer, const struct sl_model_shape *shape,
                             struct sl_places *places)
{
    if (sl_config_is_ensemble(trainer->config))
        return sl_ensemble_create(&trainer->ensemble, &trainer->whole, places, &trainer->submodels,
                                  trainer->config);
    return is_wide(trainer, shape)
               ? sl_blocked_create(&trainer->blocked, &trainer->whole, &trainer->store, places,
                                   shape, trainer->config)
               : 0;
}

/* Make the sub-models and their evaluation. `steps`: the most steps that the optimizer takes;
 * `places`: memory of the evaluation, or NULL: it has its own. */
static int create_submodels(struct sl_trainer *trainer, int64_t steps, struct sl_places *places)
{
    struct sl_batches *b = &trainer->batches;
    const struct sl_model_shape shape = sl_config_shape(
        trainer->config, trainer->whole.operands.input.width, trainer->source->classes);
    int code = sl_submodels_create(&trainer->submodels, trainer->rt, sl_batches_own(b),
                                   b->groups.count > 1 ? &b->groups : NULL, &trainer->store, &shape,
                                   trainer->config, steps);
    if (!code && sl_config_is_ensemble(trainer->config))
        code = sl_runtime_agree(trainer->rt, sl_ensemble_check(&trainer->whole.network));
    if (!code && sl_config_evaluates(trainer->config))
        code = create_evaluation(trainer, &shape, places);
    return sl_runtime_agree(trainer->rt, code);
}

/* Forget the checkpoint's steps of an unfinished epoch, if the epoch has other batches now. */
static void settle_unfinished(struct sl_trainer *trainer)
{
    struct sl_unfinished *u = &trainer->start.unfinished;
    const int steps = trainer->batches.steps;
    if (u->steps == 0 || (u->of == steps && !sl_config_has_submodels(trainer->config)))
        return;
    if (trainer->config->files.resume && trainer->rt->rank == 0)
        sl_note(
            "--resume %s ends after step %d of epoch %lld, which has other batches now and begins "
            "anew",
            trainer->config->files.resume, u->steps, (long long)trainer->start.first_epoch);
    *u = (struct sl_unfinished){0};
}

/* Make the batches of the model, or of the sub-models of this rank's group. */
static int create_batches(struct sl_trainer *trainer)
{
    const struct sl_submodels *s = &trainer->submodels;
    const bool parts = sl_config_has_submodels(trainer->config);
    const int count = parts ? s->own_slots : 1;
    struct sl_model **model = calloc((size_t)count, sizeof *model);
    int code = model ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a list of %d models", count);
    code = sl_runtime_agree(trainer->rt, code);
    if (code) {
        free(model);
        return code;
    }
    for (int k = 0; k < count; k++)
        model[k] = parts ? &s->slot[s->first_slot + k].model : &trainer->model;
    return sl_batches_create(&trainer->batches, model, count, parts);
}

/* Make the model, with its first parameters or the checkpoint's, and its network on the whole
 * graph. */
static int open_model(struct sl_trainer *trainer, struct sl_runtime *rt,
                      const struct sl_source *source, const struct sl_config *config,
                      const struct sl_checkpoint *checkpoint, bool trains)
{
    *trainer = (struct sl_trainer){.rt = rt,
                                   .config = config,
                                   .source = source,
                                   .start.first_epoch = 1,
                                   .kept.best_value = -1.0,
                                   .kept.best_loss = NAN};
    struct sl_assembly assembly = sl_batches_whole(config);
    const struct sl_batches_tiles tiles = sl_state_tiles(config, checkpoint, rt->ranks);
    assembly.tiles = tiles.whole;
    assembly.forward_only = !trains;
    int code = sl_records_create(&trainer->records, rt);
    enum sl_instructions level;
    if (!code)
        code = sl_instructions_choose(config->machine.instructions, &level);
    code = sl_runtime_agree(rt, code);
    if (code)
        return code;
    start_spmm(rt, config);
    sl_rates_of_core(rt->cache_bytes, &trainer->core);
    sl_runtime_broadcast(rt, 0, &trainer->core, sizeof trainer->core);
    rt->tf32 = config->machine.precision == SL_PRECISION_TF32;
    /* All ranks use one instruction level, since fused multiply-add rounds sums differently. */
    sl_instructions_set((enum sl_instructions)sl_runtime_least(rt, level));
    if (!code)
        code = sl_pass_open(&trainer->whole, rt, source, &assembly);
    if (!code && sl_config_links(config))
        code = sl_pass_add_links(&trainer->whole, source, config);
    if (!code)
        code =
            sl_batches_open(&trainer->batches, rt, source, config, &trainer->whole, &trainer->core);
    trainer->batches.tiles = tiles;
    if (!code)
        code = create_network(trainer, checkpoint, trains);
    code = sl_runtime_agree(rt, code);
    if (code)
        return code;
    trainer->epoch = trainer->start.first_epoch - 1;
    if (!rt->plans) {
        trainer->dataset = sl_meaning_describe(source);
        if (!trainer->dataset)
            code = sl_error(SL_ERR_SYSTEM, "no memory to describe the dataset");
        code = sl_runtime_agree(rt, code); /* all ranks fill the model together */
        if (!code)
            code = fill_model(trainer, checkpoint);
    }
    return code;
}

int sl_trainer_open(struct sl_trainer *trainer, struct sl_runtime *rt,
                    const struct sl_source *source, const struct sl_config *config,
                    const struct sl_checkpoint *checkpoint)
{
    const int code = open_model(trainer, rt, source, config, checkpoint, false);
    const int64_t steps = trainer->start.first_updates;
    if (code || !sl_config_has_submodels(config))
        return code;
    const int made = create_submodels(trainer, steps, NULL);
    return made ? made : sl_submodels_load(&trainer->submodels, steps, checkpoint);
}

/* With one group, evaluations of sub-models use the memory of training steps. */
int sl_trainer_create(struct sl_trainer *trainer, struct sl_runtime *rt,
                      const struct sl_source *source, const struct sl_config *config,
                      const struct sl_checkpoint *checkpoint)
{
    const bool parts = sl_config_has_submodels(config);
    struct sl_batches *b = &trainer->batches;
    int code = open_model(trainer, rt, source, config, checkpoint, true);
    if (!code && parts)
        code = create_submodels(trainer,
                                sl_config_epochs(config) * sl_batches_options_steps(&b->options),
                                b->groups.count > 1 ? NULL : &b->places);
    if (!code)
        code = create_batches(trainer);
    if (!code && parts && checkpoint)
        code = sl_submodels_load(&trainer->submodels, trainer->start.first_updates, checkpoint);
    if (!code)
        settle_unfinished(trainer);
    return code;
}

void sl_trainer_destroy(struct sl_trainer *trainer)
{
    sl_blocked_destroy(&trainer->blocked);
    sl_ensemble_destroy(&trainer->ensemble);
    sl_batches_clear(&trainer->batches);
    if (trainer->submodels.rt)
        sl_submodels_destroy(&trainer->submodels);
    sl_pass_destroy(&trainer->whole); /* the whole network may use the places of batches */
    sl_batches_destroy(&trainer->batches);
    sl_store_destroy(&trainer->store);
    sl_model_destroy(&trainer->model);
    json_decref(trainer->dataset);
    if (trainer->rt)
        end_spmm(trainer);
    if (trainer->rt)
        sl_records_destroy(&trainer->records);
    *trainer = (struct sl_trainer){0};
}
