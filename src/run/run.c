/* A run of training, from options to a trainer that is ready, for the program and the library. */
#include "run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint/meaning.h"
#include "checkpoint/resume.h"
#include "core/alike.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/profile.h"
#include "core/progress.h"
#include "core/stop.h"
#include "core/trace.h"
#include "core/words.h"
#include "data/columns.h"
#include "groups/preload.h"
#include "run/fits.h"
#include "run/open.h"
#include "run/share_choice.h"

int sl_train_start(struct sl_train_run *run, const bool *given, bool silent)
{
    struct sl_alike alike = {.count = 0};
    sl_alike_add_options(&alike, "train", sl_config_options, &run->config, given);
    const struct sl_runtime_options options = {.scheduler = run->config.machine.scheduler,
                                               .workers = (int)run->config.machine.workers,
                                               .quiet = silent,
                                               .device = run->config.machine.device,
                                               .own_first = run->config.ranks.sum_order ==
                                                            SL_SUM_ORDER_OWN_FIRST,
                                               .alike = &alike};
    const int code = sl_runtime_start(&run->rt, &options);
    if (code)
        return code;
    run->rt.stages = sl_config_stages(&run->config);
    sl_talk(run->rt.rank == 0 && !run->config.files.quiet, run->config.files.verbose);
    if (run->config.files.profile)
        sl_profile_enable();
    if (run->config.files.trace)
        sl_trace_enable();
    return 0;
}

static int configure(struct sl_train_run *run, const bool *given)
{
    int code = sl_defaults_preset(&run->config, given);
    if (!code && run->config.files.resume)
        code = sl_resume_read(&run->config, given, run->rt.ranks, &run->resumed);
    if (!code)
        code = sl_config_check_given(&run->config, given);
    return code ? code : sl_config_check(&run->config);
}

/* A log or a picture in the place of a model would be the end of the model. */
static int check_names(const struct sl_config *config)
{
    const struct {
        const char *option, *path;
    } files[] = {{"log", config->files.log},
                 {"dag", config->files.dag},
                 {"trace", config->files.trace},
                 {"report", config->files.report},
                 {"checkpoint", config->files.checkpoint},
                 {"resume", config->files.resume},
                 {"config", config->files.config}};
    const size_t count = sizeof files / sizeof *files, outputs = 5; /* and files that are read */
    for (size_t f = 0; f < outputs; f++)
        for (size_t g = f + 1; g < count; g++)
            if (!(f == outputs - 1 && g == outputs) && /* a run that goes on */
                sl_file_same(files[f].path, files[g].path))
                return sl_error(SL_ERR_USAGE, "--%s %s is the file of --%s (expected another file)",
                                files[f].option, files[f].path, files[g].option);
    return 0;
}

/* Before a checkpoint is read, which the run may then write. */
static int lock_outputs(struct sl_train_run *run)
{
    int code = check_names(&run->config);
    code = code ? code : sl_file_lock(&run->locks[0], run->config.files.log);
    return code ? code : sl_file_lock(&run->locks[1], run->config.files.checkpoint);
}

static int open_outputs(struct sl_train_run *run)
{
    const struct sl_config *config = &run->config;
    int code = sl_file_probe(config->files.dag);
    code = code ? code : sl_file_probe(config->files.trace);
    code = code ? code : sl_file_probe(config->files.report);
    code = code ? code : sl_file_probe(config->files.checkpoint);
    return code ? code
                : sl_report_open(&run->report, config->files.log, config->files.resume != NULL,
                                 config->files.quiet);
}

/* All ranks return the same code. */
static int choose_order(struct sl_train_run *run)
{
    sl_progress_begin("choosing an order of the vertices");
    return sl_progress_end_with(sl_runtime_agree(
        &run->rt, sl_train_choose_order(&run->rt, &run->source, &run->config, &run->choice)));
}

static int choose_rows(struct sl_train_run *run, const bool *given)
{
    const bool may_cache = sl_defaults_may_cache(&run->config, given);
    sl_progress_begin("choosing rows of a step");
    const int code = sl_progress_end_with(
        sl_needed_choose(&run->rt, &run->source, &run->config, may_cache, &run->choice.rows));
    if (!code && may_cache && !run->config.features.cache_aggregate)
        sl_defaults_say(run->chosen, "no-cache-aggregate", "");
    return code;
}

static int choose_distribution(struct sl_train_run *run)
{
    struct sl_runtime *rt = &run->rt;
    sl_progress_begin("choosing a distribution");
    int code = sl_train_choose_distribution(rt, &run->source, &run->config, &run->choice);
    if (!code)
        code = sl_preload_choose(rt, &run->source, &run->config, run->choice.preload);
    return sl_progress_end_with(code);
}

static int plan_memory(struct sl_train_run *run, const bool *given)
{
    struct sl_runtime *rt = &run->rt;
    sl_progress_begin("planning the memory");
    int code = sl_plan_rows(rt, &run->source, &run->config, &run->choice.rows, &run->fits);
    if (!code)
        code = sl_plan_batches(rt, &run->source, &run->config, run->chosen);
    if (!code)
        code = sl_plan_recompute(rt, &run->source, &run->config, run->chosen);
    if (!code && !run->config.files.resume && !sl_config_is_given(given, "feature-form"))
        code = sl_plan_form(rt, &run->source, &run->config, run->chosen);
    return sl_progress_end_with(code);
}

/* Order the rows by the parts of a partition, or by hops. */
static int cut_vertices(struct sl_train_run *run)
{
    const struct sl_assembly assembly = sl_batches_whole(&run->config);
    sl_progress_begin("cutting the graph");
    return sl_progress_end_with(sl_operands_order(&run->rt, &run->source, &assembly));
}

static int order_vertices(struct sl_train_run *run)
{
    const uint64_t seed = (uint64_t)run->config.training.seed;
    if (run->config.ranks.order == &sl_order_double)
        return sl_source_order_double(&run->rt, &run->source, seed);
    return sl_source_order(&run->rt, &run->source, run->config.ranks.order->name, seed);
}

/* The source is gone when the log tells them. */
static void take_class_names(struct sl_train_run *run)
{
    const char *const *names = run->source.targets.class_names;
    if (!names || run->source.classes > SL_NAMED_CLASSES)
        return;
    run->class_names = json_array();
    for (int64_t c = 0; c < run->source.classes && names[c]; c++)
        json_array_append_new(run->class_names, sl_json_text(names[c]));
}

/* Return the name of a column of the features, or its number. */
static const char *name_column(const struct sl_source *source, int64_t c, char text[48])
{
    if (source->columns.names)
        snprintf(text, 48, "'%.40s'", source->columns.names[c]);
    else
        snprintf(text, 48, "%" PRId64, c);
    return text;
}

/* Columns, where the options or the dataset ask for it, and no checkpoint says how. */
static int standardize(struct sl_train_run *run, const bool *given)
{
    struct sl_source *source = &run->source;
    const struct sl_column_scales *scales = &source->change.scales;
    char least[48], most[48];
    if (!sl_config_standardizes(&run->config) || source->change.moments.mean)
        return 0;
    const int code = sl_columns_standardize(&run->rt, source);
    if (!code && !sl_config_is_given(given, "normalize-features"))
        sl_note("%s: numbers of column %s of the features are about %.2g, of column %s about %.2g: "
                "all columns are standardised (--normalize-features none leaves them)",
                run->path, name_column(source, scales->most, most), scales->scale[1],
                name_column(source, scales->least, least), scales->scale[0]);
    return code;
}

int sl_train_open(struct sl_train_run *run, const bool *given)
{
    struct sl_runtime *rt = &run->rt;
    run->opened_at = sl_runtime_seconds();
    int code = sl_runtime_agree(rt, rt->rank == 0 ? lock_outputs(run) : 0);
    if (!code)
        code = sl_runtime_agree(rt, configure(run, given));
    if (!code && run->config.files.resume)
        code = sl_checkpoint_check_alike(rt, &run->resumed, run->config.files.resume);
    const bool hashes = rt->rank == 0 && (run->config.files.log || run->config.files.verify);
    const struct sl_run_inputs inputs = {
        .path = run->path,
        .graph = run->graph,
        .trained = json_object_get(run->resumed.description, "dataset"),
        .model = run->config.files.resume,
        .trains = true,
        .hashes = hashes ? &run->hashes : NULL,
    };
    if (!code)
        code = sl_run_open(rt, &inputs, &run->config, &run->source);
    if (!code)
        code = sl_runtime_agree(rt, rt->rank == 0 ? open_outputs(run) : 0);
    if (!code)
        code = choose_order(run);
    if (!code)
        code = order_vertices(run);
    if (!code)
        code = sl_stop_check(rt);
    if (!code)
        code = sl_run_settle(rt, &run->source, NULL, given, &run->config, run->chosen);
    if (!code)
        code = standardize(run, given);
    if (!code)
        code = choose_rows(run, given);
    if (!code && sl_batches_differ(&run->config))
        code = sl_runtime_agree(rt, sl_source_settle_splits(&run->source));
    if (!code)
        take_class_names(run);
    if (!code)
        code = choose_distribution(run);
    if (!code)
        code = cut_vertices(run);
    if (!code)
        code = sl_stop_check(rt);
    return code ? code : plan_memory(run, given);
}

/* Check the options against the data. */
static int check_inputs(const struct sl_train_run *run)
{
    const struct sl_trainer *trainer = &run->trainer;
    if (trainer->start.first_epoch > sl_config_epochs(&run->config))
        return sl_error(SL_ERR_USAGE,
                        "--resume %s: epoch %" PRId64
                        " is done already; ask for more with --epochs",
                        run->config.files.resume, trainer->start.first_epoch - 1);
    if (run->config.files.resume && trainer->start.trained_vertices != run->source.vertices)
        return sl_error(SL_ERR_DATA,
                        "--resume %s: the checkpoint is of a graph of %" PRId64
                        " vertices, and %s has %" PRId64,
                        run->config.files.resume, trainer->start.trained_vertices, run->path,
                        run->source.vertices);
    return sl_trainer_check_labels(trainer);
}

static int make_trainer(struct sl_train_run *run)
{
    sl_progress_begin("reading rows, making tiles");
    return sl_progress_end_with(sl_trainer_create(&run->trainer, &run->rt, &run->source,
                                                  &run->config,
                                                  run->config.files.resume ? &run->resumed : NULL));
}

int sl_train_load(struct sl_train_run *run)
{
    const bool measures = run->config.units.submodel_share.kind == SL_UNITS_AUTO;
    int code = run->fits ? 0 : sl_plan_check(&run->rt, &run->source, &run->config);
    if (!code)
        code = sl_shares_measure(&run->rt, &run->source, &run->config, run->chosen);
    if (!code && measures) /* a sub-model may be larger now */
        code = sl_plan_check(&run->rt, &run->source, &run->config);
    if (!code)
        code = make_trainer(run);
    if (!code && run->config.files.resume)
        code = sl_meaning_check_direction(&run->source, run->trainer.whole.operands.symmetric,
                                          json_object_get(run->resumed.description, "dataset"),
                                          run->config.files.resume);
    sl_checkpoint_free(&run->resumed); /* the trainer has its own copy */
    if (!code)
        code = sl_runtime_agree(&run->rt, check_inputs(run));
    if (!code && run->config.files.resume)
        code = sl_runtime_agree(&run->rt,
                                sl_report_go_on(&run->report, run->trainer.start.first_epoch - 1));
    if (sl_batches_read_source(&run->trainer.batches))
        sl_memory_trim();
    else
        sl_source_release(&run->source);
    if (!code && run->trainer.whole.operands.merged_edges > 0)
        sl_note("%s: %" PRId64 " duplicate edge%s merged", run->path,
                run->trainer.whole.operands.merged_edges,
                sl_plural(run->trainer.whole.operands.merged_edges, " was", "s were"));
    run->load_seconds = sl_runtime_seconds() - run->opened_at;
    return code;
}

/* Clones of a vertex, on average; 0 where there are none. */
static double replication(const struct sl_train_run *run)
{
    if (!sl_config_kind(&run->config)->clones)
        return 0.0;
    const struct sl_partition *partition = run->trainer.whole.operands.partition;
    return (double)partition->row_cut[partition->tiles] / (double)run->source.vertices;
}

/* Return how even the stages of 1D are; with two orders of vertices, those of the less even one. */
static struct sl_stage_balance measure_stages(const struct sl_train_run *run)
{
    const struct sl_operands *operands = &run->trainer.whole.operands;
    const struct sl_distribution *d = operands->distribution;
    struct sl_stage_balance all = {0.0, 0.0};
    if (run->rt.ranks == 1 || d->kind != &sl_distribution_block || d->grid.rows < run->rt.ranks)
        return all;
    for (int order = 0; order < operands->row_orders; order++) {
        struct sl_tile_counts counts;
        if (!sl_tile_counts_of(&operands->adjacency[order], &operands->transposed[order],
                               &counts)) {
            const struct sl_stage_balance one =
                sl_tile_counts_stages(&counts, d->rank_cut, d->ranks, 1);
            all.worst = fmax(all.worst, one.worst);
            all.all = fmax(all.all, one.all);
        }
        sl_tile_counts_destroy(&counts);
    }
    return all;
}

void sl_train_measure(struct sl_train_run *run)
{
    const struct sl_plan own = sl_trainer_plan(&run->trainer);
    run->plan = sl_plan_largest(&run->rt, &own);
    run->stages = measure_stages(run);
    run->replication = replication(run);
    sl_train_find_groups(run);
}

void sl_train_stop(struct sl_train_run *run)
{
    sl_trainer_destroy(&run->trainer);
    sl_runtime_stop(&run->rt);
}

int sl_train_free(struct sl_train_run *run)
{
    const int code = sl_report_close(&run->report);
    sl_file_unlock(&run->locks[0]);
    sl_file_unlock(&run->locks[1]);
    json_decref(run->start);
    json_decref(run->end);
    json_decref(run->class_names);
    json_decref(run->hashes);
    sl_outcome_free(&run->outcome);
    free(run->groups.group);
    sl_checkpoint_free(&run->resumed);
    sl_source_close(&run->source);
    sl_options_free(sl_config_options, &run->config);
    return code;
}
