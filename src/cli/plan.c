/* starling plan: the predicted costs of training on every distribution of ranks. No rank runs. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/operands.h"
#include "batches/needed.h"
#include "bench/train.h"
#include "cli/commands.h"
#include "cli/machine_file.h"
#include "cli/planning.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/machine.h"
#include "core/progress.h"
#include "core/words.h"
#include "data/generate/generate_like.h"
#include "data/partition/parts.h"
#include "groups/group_plan.h"
#include "predict/scenario.h"
#include "recipe/defaults.h"
#include "recipe/edges.h"
#include "recipe/link_options.h"
#include "run/open.h"
#include "train/trainer.h"

enum { MOST_RANKS = 16384 };

#define FIELD(name) offsetof(struct sl_plan_options, name)

static const struct sl_option options[] = {
    {"ranks", SL_OPTION_INT, FIELD(ranks), NULL, 1, MOST_RANKS, NULL, "P", "ranks to plan for",
     "Ranks"},
    {"machine", SL_OPTION_STRING, FIELD(machine), NULL, 0, 0, NULL, "NAME",
     "machine whose ranks and messages to plan for: dgx-a100, perlmutter, summit, cluster-1gbe, or "
     "a file; default: this machine, as measured",
     "Ranks"},
    {"ranks-per-machine", SL_OPTION_INT, FIELD(machine_ranks), "1", 1, 65536, NULL, "N",
     "without --machine: ranks that share a machine like this one, and its cores; 1: each rank has "
     "such a machine",
     "Ranks"},
    {"partition", SL_OPTION_STRING, FIELD(partition), NULL, 0, 0, NULL, "NAME",
     "partition of the vertex-cut, and of the halo and the cover if it is a file of parts of "
     "vertices: as "
     "for train",
     "Distributions"},
    {"delay", SL_OPTION_VALUE, FIELD(delay), "cd-0", 0, 0, NULL, "KIND",
     "a vertex-cut with this delay, too: as for train; its results are others, and it wins only "
     "with --allow-inexact",
     "Distributions", NULL, &sl_value_delay},
    {"partial-sums", SL_OPTION_CHOICE, FIELD(partial_sums), "scaled", 0, 0,
     SL_CHOICES(SL_PARTIAL_SUMS), "KIND", "of that delay: as for train", "Distributions"},
    {"distribution", SL_OPTION_KIND, FIELD(distribution), NULL, 0, 0, SL_DISTRIBUTION_NAMES, "NAME",
     "with --groups or --batches: inside a group; default: what is predicted to be fastest",
     "Distributions", sl_config_find_distribution},
    {"like", SL_OPTION_NAME, FIELD(like), NULL, 0, 0, SL_LIKE_NAMES, "NAME",
     "instead of a DATASET, the published sizes of that one, its vertices in random order",
     "Graph"},
    {"rows", SL_OPTION_INT, FIELD(rows), "16", 1, 1000000, NULL, "N",
     "grids in the table, the fastest ones", "Output"},
    {"json", SL_OPTION_STRING, FIELD(json), NULL, 0, 0, NULL, "FILE",
     "write all figures of all grids to FILE", "Output"},
    {"quiet", SL_OPTION_FLAG, FIELD(quiet), "no", 0, 0, NULL, NULL, "print nothing", "Output"},
    {0},
};

static const struct sl_bench_reserved reserved[] = {
    {"grid", "the table"}, {"replication", "the table"}, {0}};

static const struct sl_bench_part part = {.command = &sl_command_plan, .reserved = reserved};

/* ---- What is planned ---- */

/* Let the edges of --like be those that --split-edges leaves to train on. */
static void expect_links(struct sl_planning *p)
{
    const struct sl_link_rule *rule = &p->options.links.split;
    int64_t *entries = &p->source.adjacency.indices.count;
    p->source.classes = sl_links_width(&p->options);
    if (rule->given)
        *entries = (int64_t)((double)*entries * rule->shares[0] / 100.0);
}

static int open_graph(struct sl_planning *p, const char *path, int positionals)
{
    const bool named = positionals > 0;
    if (named == (p->config.like != NULL))
        return sl_error(SL_ERR_USAGE, "expected a DATASET or --like NAME, one of both");
    if (!named) {
        const int like = sl_like_source(p->config.like, &p->source);
        if (sl_config_links(&p->options))
            expect_links(p);
        if (p->options.features.project_features > 0)
            p->source.features = p->options.features.project_features;
        return like ? like : sl_edges_settle(&p->options, &p->source);
    }
    const struct sl_run_inputs inputs = {.path = path, .trains = true};
    int code = sl_run_open(&p->rt, &inputs, &p->options, &p->source);
    if (!code)
        code = sl_run_settle(&p->rt, &p->source, &p->core, p->given, &p->options, NULL);
    if (!code && p->options.ranks.order)
        code = sl_source_order(&p->rt, &p->source, p->options.ranks.order->name,
                               (uint64_t)p->options.training.seed);
    return code;
}

/* Return the graph that a training step takes. */
static struct sl_source *trained(struct sl_planning *p)
{
    return p->needed.row ? &p->needed.source : &p->source;
}

/* Choose and select the rows of a training step, as training does. Groups and batches select for
 * themselves. */
static int select_rows(struct sl_planning *p)
{
    if (p->config.like)
        return 0;
    int code = sl_needed_choose(&p->rt, &p->source, &p->options,
                                sl_defaults_may_cache(&p->options, p->given), &p->rows);
    if (code || p->options.steps.rows != SL_ROWS_NEEDED)
        return code;
    code = sl_source_settle_splits(&p->source);
    if (!code && sl_config_evaluates(&p->options))
        code = sl_needed_validation(&p->rt, &p->source, &p->options, &p->validation);
    return code ? code : sl_needed_select(&p->source, &p->options, &p->needed);
}

static int find_rates(struct sl_planning *p)
{
    struct sl_machine machine;
    if (p->config.machine) {
        const int code = sl_machine_file_read(p->config.machine, &p->rates);
        p->space = p->rates.memory_bytes;
        p->core = p->rates;
        return code;
    }
    const int code = sl_machine_probe(&machine);
    const int64_t cores = machine.cores_allowed / p->config.machine_ranks;
    p->process.ranks_here = (int)p->config.machine_ranks;
    p->space = sl_space_find(&p->rt).bytes;
    const int64_t cache = machine.cache_count ? machine.caches[machine.cache_count - 1].bytes : 0;
    sl_rates_of_machine((int)cores, p->process.ranks_here, cache, &p->rates);
    sl_rates_of_core(cache, &p->core);
    return code;
}

static int cut(struct sl_planning *p)
{
    const struct sl_source *graph = trained(p);
    p->training = sl_config_training(&p->options, graph);
    struct sl_partition_options cuts = sl_operands_cut(&p->rt, &p->training.assembly);
    cuts.ranks = (int)p->config.ranks;
    cuts.cores = p->rates.cores * cuts.ranks;
    cuts.link = (int64_t)fmin(sl_rates_link(&p->rates, cuts.ranks).bytes_per_second, 1e18);
    p->cuts = cuts;
    if (p->config.like) /* random rows have equal work, but for noise */
        cuts.balance = SL_BALANCE_ROWS;
    if (graph->vertices < cuts.ranks)
        return sl_error(SL_ERR_USAGE,
                        "--ranks %d: the graph has %" PRId64
                        " %s (expected no more ranks than vertices)",
                        cuts.ranks, graph->vertices, sl_vertices(graph->vertices));
    p->rt.stages = p->training.stages;
    return sl_scenario_counts_create(&p->rt, graph, &p->training, &cuts, &p->counts);
}

static int compare_seconds(const void *a, const void *b)
{
    const struct sl_prediction *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Add the graphs that evaluations read to the memory of a step with needed rows: the whole graph,
 * and the graph of validation vertices. Tiles are in proportion to the vertices and the entries.
 * Activations have the memory of the largest graph, since the graphs take turns. */
static void add_evaluations(const struct sl_planning *p, struct sl_plan *memory)
{
    const struct sl_source *step = &p->needed.source, *whole = &p->source;
    const struct sl_needed_size *validation = &p->validation;
    /* Entries of the step's adjacency, with loops. */
    const double entries = (double)(step->adjacency.indices.count + step->vertices);
    const double vertices = (double)step->vertices,
                 more = (double)(whole->vertices + validation->vertices) / vertices,
                 most = sl_config_evaluates(&p->options) ? (double)whole->vertices / vertices : 1.0;
    double times[SL_PLAN_KINDS];
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        times[k] = 1.0;
    times[SL_PLAN_ADJACENCY] += (double)(whole->adjacency.indices.count + validation->entries +
                                         whole->vertices + validation->vertices) /
                                entries;
    times[SL_PLAN_FEATURES] += more;
    times[SL_PLAN_ROWS] += more;
    times[SL_PLAN_ACTIVATIONS] = times[SL_PLAN_WORK] = times[SL_PLAN_RECEIVED] = most;
    for (int k = 0; k < SL_PLAN_KINDS; k++) {
        const int64_t added = (int64_t)((times[k] - 1.0) * (double)memory->bytes[k]);
        memory->bytes[k] += added;
        memory->total += added;
    }
}

static int predict(struct sl_planning *p)
{
    const struct sl_scenario scenario = sl_scenario_of(
        trained(p), &p->training, &p->counts.partition, &p->counts.counts, &p->rates, &p->core);
    const int code =
        sl_scenario_predict_all(&scenario, &p->counts, &p->choice.list, &p->choice.count);
    if (code)
        return code;
    for (int g = 0; p->needed.row && g < p->choice.count; g++)
        add_evaluations(p, &p->choice.list[g].memory);
    const struct sl_prediction winner = *sl_scenario_choose(
        p->choice.list, p->choice.count, p->space, p->training.inexact, p->choice.reason);
    qsort(p->choice.list, (size_t)p->choice.count, sizeof *p->choice.list, compare_seconds);
    for (p->choice.winner = p->choice.list; p->choice.winner->rank != winner.rank;)
        p->choice.winner++;
    return 0;
}

/* Set the groups and the ranks of each. */
static int parse_groups(const struct sl_planning *p, struct sl_group_plan_options *groups)
{
    const struct sl_group_shape *shape = &p->options.steps.groups;
    if (!shape->given)
        return 0;
    groups->groups = shape->groups;
    groups->each = shape->each;
    if (p->config.like || (int64_t)groups->groups * groups->each != p->config.ranks)
        return sl_error(SL_ERR_USAGE,
                        "--groups %s: expected a DATASET, and GxP with G groups of P ranks, %d in "
                        "all",
                        sl_config_text(&p->options, "groups").text, (int)p->config.ranks);
    return 0;
}

/* Predict groups and batches: each number of preloaded hops, samples, and batches. */
static int plan_groups(struct sl_planning *p)
{
    struct sl_group_plan_options groups = {
        .groups = 1,
        .each = (int)p->config.ranks,
        .inside = {.distribution = p->config.distribution,
                   .training = &p->training,
                   .cuts = p->cuts,
                   .rates = &p->rates,
                   .core = &p->core,
                   .parted = p->options.steps.groups.given},
    };
    const bool differs = p->options.steps.groups.given || p->options.steps.batches.sets > 1;
    int code = parse_groups(p, &groups);
    if (code)
        return code;
    if (p->config.like && differs)
        return sl_error(SL_ERR_USAGE, "--batches %s: expected a DATASET, not --like",
                        sl_config_text(&p->options, "batches").text);
    if (!differs && p->config.distribution)
        return sl_error(SL_ERR_USAGE,
                        "--distribution %s: expected --groups, too; the table has all "
                        "distributions",
                        p->config.distribution->name);
    if (!differs)
        return 0;
    groups.inside.cuts.ranks = groups.each;
    groups.inside.cuts.cores = p->rates.cores * groups.each;
    code = sl_source_settle_splits(&p->source);
    return code ? code
                : sl_group_plan_predict(&p->rt, &p->source, &p->options, &groups, &p->group,
                                        &p->groups);
}

/* ---- The command ---- */

/* Set train's options that plan has, too, except --distribution, which has another meaning there.
 */
static int take_cut_options(struct sl_planning *p, const bool *given)
{
    for (int o = 0; options[o].name; o++) {
        const char *name = options[o].name;
        if (!given[o] && sl_config_is_given(p->given, name))
            continue;
        if (strcmp(name, "partial-sums") == 0)
            p->options.ranks.partial_sums = p->config.partial_sums;
        if (strcmp(name, "delay") == 0)
            p->options.ranks.delay = p->config.delay;
        if (strcmp(name, "partition") == 0 &&
            sl_config_set_text(&p->options.ranks.partition, p->config.partition))
            return SL_ERR_SYSTEM;
    }
    const char *partition = p->options.ranks.partition;
    int code = sl_config_check_delay(&p->options);
    if (!code)
        code = sl_config_check_steps(&p->options);
    if (!code)
        code = sl_config_check_rows(&p->options);
    if (!code && partition)
        code = sl_parts_check_name(partition, SL_PARTS_METHODS "|ptscotch");
    return code ? code : sl_config_check_attention(&p->options);
}

static int parse(struct sl_planning *p, struct sl_bench_words *words, int *positionals)
{
    bool given[SL_MOST_OPTIONS] = {false};
    int unused, code = sl_command_parse(&sl_command_plan, &p->config, words->own_count, words->own,
                                        0, 1, positionals, given);
    if (!code && !given[0])
        code = sl_error(SL_ERR_USAGE, "--ranks is missing: expected the number of ranks to plan "
                                      "for");
    if (!code)
        code = sl_config_defaults(&p->options);
    if (!code)
        code = sl_options_parse(sl_config_options, &p->options, words->train_count, words->train,
                                &unused, p->given);
    if (!code)
        code = sl_config_read_file(&p->options, p->given);
    if (!code)
        code = sl_defaults_preset(&p->options, p->given);
    if (!code)
        code = sl_config_check_given(&p->options, p->given);
    if (!code)
        code = take_cut_options(p, given);
    return code ? code : sl_file_probe(p->config.json);
}

static int foresee(struct sl_planning *p)
{
    sl_progress_begin("cutting the graph");
    int code = sl_progress_end_with(cut(p));
    sl_progress_begin("predicting epochs");
    if (!code)
        code = predict(p);
    if (!code)
        code = plan_groups(p);
    return sl_progress_end_with(code);
}

static int run_plan(int argc, char **argv)
{
    struct sl_planning p = {.process = {.ranks_here = 1},
                            .rt = {.ranks = 1, .process = &p.process}};
    struct sl_bench_words words;
    int positionals = 0;
    int code = sl_bench_split(&part, argc, argv, &words);
    if (!code)
        code = parse(&p, &words, &positionals);
    sl_talk(!p.config.quiet, p.options.files.verbose);
    if (!code)
        code = find_rates(&p);
    if (!code)
        code = open_graph(&p, words.own[0], positionals);
    if (!code)
        code = select_rows(&p);
    if (!code)
        code = foresee(&p);
    if (!code)
        code = sl_planning_report(&p);
    free(p.group);
    sl_scenario_free_all(p.choice.list, p.choice.count);
    sl_scenario_counts_destroy(&p.counts);
    sl_selection_free(&p.needed);
    sl_source_close(&p.source);
    sl_options_free(sl_config_options, &p.options);
    sl_options_free(options, &p.config);
    free(words.own);
    free(words.train);
    return code;
}

const struct sl_command sl_command_plan = {
    .name = "plan",
    .synopsis = "DATASET | --like NAME --ranks P [--OPTION ...] [--OPTION of train ...]",
    .summary =
        "Predict words, messages, memory and time of an epoch on every distribution of P ranks",
    .options = options,
    .run = run_plan,
};
