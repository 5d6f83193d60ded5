/* starling plan: the predicted costs of training on every distribution of ranks. No rank runs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/operands.h"
#include "batches/needed.h"
#include "bench/train.h"
#include "cli/commands.h"
#include "cli/machine_file.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/log.h"
#include "core/machine.h"
#include "core/progress.h"
#include "core/table.h"
#include "core/words.h"
#include "data/generate/generate_like.h"
#include "data/partition/parts.h"
#include "groups/group_plan.h"
#include "predict/prediction_view.h"
#include "predict/scenario.h"
#include "recipe/defaults.h"
#include "recipe/edges.h"
#include "recipe/link_options.h"
#include "run/open.h"
#include "train/trainer.h"

enum { MOST_RANKS = 16384 };

struct config {
    int64_t ranks, machine_ranks, rows;
    int delay;                                       /* see recipe/values.h */
    const struct sl_distribution_name *distribution; /* NULL: any */
    char *machine, *partition, *like, *json;
    enum sl_partial_sums partial_sums;
    bool quiet;
};

#define FIELD(name) offsetof(struct config, name)

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

struct planning {
    struct config config;
    struct sl_config options;    /* options of train */
    bool given[SL_MOST_OPTIONS]; /* options of train that were given */
    struct sl_training training;
    struct sl_process process; /* with --ranks-per-machine ranks */
    struct sl_runtime rt;
    struct sl_source source;
    struct sl_selection needed;       /* a step's graph of needed rows; no rows: the whole graph */
    struct sl_needed_size validation; /* graph of evaluations between epochs; zero: none */
    struct sl_source shares;          /* a step's graph, cut into shares of every hop */
    struct sl_rates rates, core;
    struct sl_partition partition, vertices; /* cuts of `shares`; of the graph without hops */
    struct sl_tile_counts counts;
    struct sl_scenario_halo halo;
    struct sl_scenario_cut cut;
    bool has_cut;
    struct sl_prediction *list;
    int count;
    int64_t space;
    const struct sl_prediction *winner;
    struct sl_partition_options cuts;
    struct sl_group_plan *group; // (groups): plans of --groups and --batches
    int groups;
    char reason[256]; /* why the winner won */
    struct sl_needed_choice rows;
};

/* ---- What is planned ---- */

/* Let the edges of --like be those that --split-edges leaves to train on. */
static void expect_links(struct planning *p)
{
    const struct sl_link_rule *rule = &p->options.links.split;
    int64_t *entries = &p->source.adjacency.indices.count;
    p->source.classes = sl_links_width(&p->options);
    if (rule->given)
        *entries = (int64_t)((double)*entries * rule->shares[0] / 100.0);
}

static int open_graph(struct planning *p, const char *path, int positionals)
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
    int code = sl_source_open(&p->rt, path, &p->source);
    if (!code)
        code = sl_links_prepare(&p->rt, &p->options, &p->source);
    if (!code)
        code = sl_run_check(&p->rt, &p->source, &p->options);
    if (!code)
        code = sl_run_settle(&p->rt, &p->source, &p->core, p->given, &p->options, NULL);
    if (!code && p->options.ranks.order)
        code = sl_source_order(&p->rt, &p->source, p->options.ranks.order->name,
                               (uint64_t)p->options.training.seed);
    return code;
}

/* Return the graph that a training step takes. */
static struct sl_source *trained(struct planning *p)
{
    return p->needed.row ? &p->needed.source : &p->source;
}

/* Choose and select the rows of a training step, as training does. Groups and batches select for
 * themselves. */
static int select_rows(struct planning *p)
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

static int find_rates(struct planning *p)
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

/* Expect the counts of --like, whose vertices and parts are in random order. */
static int expect_counts(struct planning *p, const struct sl_partition_options *cuts)
{
    const int64_t entries = p->source.adjacency.indices.count;
    const bool loops = p->training.assembly.loops;
    p->halo.parts = "at random";
    int code = sl_tile_counts_expect(&p->partition, entries, loops, &p->counts);
    if (!code)
        code = sl_partition_create(&p->rt, &p->halo.partition, &p->source, cuts);
    if (!code)
        code = sl_tile_counts_expect(&p->halo.partition, entries, loops, &p->halo.counts);
    if (!code)
        code = sl_halo_counts_create(&p->halo.halo, &p->rt, &p->halo.partition,
                                     sl_operands_row_bytes(&p->source, &p->training.assembly));
    if (!code)
        sl_halo_counts_expect(&p->halo.halo, p->halo.counts.nnz);
    return code;
}

static int count(struct planning *p, const struct sl_partition_options *cuts)
{
    int code = sl_tile_counts_read(&p->rt, &p->shares, &p->partition, p->training.assembly.loops,
                                   NULL, NULL, &p->counts);
    return code ? code : sl_scenario_halo_create(&p->rt, trained(p), &p->training, cuts, &p->halo);
}

static int cut(struct planning *p)
{
    const struct sl_source *graph = trained(p);
    struct sl_source flat = *graph; /* tiles of clones follow from rows, not hops */
    flat.selection.hop_cut = NULL;
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
    int code = sl_source_borrow(graph, &p->shares);
    if (!code && graph->selection.hop_cut)
        code = sl_source_order_by_hop_shares(&p->shares, cuts.ranks);
    if (!code)
        code = sl_partition_create(&p->rt, &p->partition, &p->shares, &cuts);
    if (!code && graph->selection.hop_cut)
        code = sl_partition_create(&p->rt, &p->vertices, &flat, &cuts);
    if (!code)
        code = p->config.like ? expect_counts(p, &cuts) : count(p, &cuts);
    p->has_cut = sl_scenario_cut_fits(&p->training);
    return code || !p->has_cut
               ? code
               : sl_scenario_cut_create(graph, &p->training,
                                        graph->selection.hop_cut ? &p->vertices : &p->partition,
                                        &p->halo, sl_space_find(&p->rt).bytes, &p->cut);
}

static int compare_seconds(const void *a, const void *b)
{
    const struct sl_prediction *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Add the graphs that evaluations read to the memory of a step with needed rows: the whole graph,
 * and the graph of validation vertices. Tiles are in proportion to the vertices and the entries.
 * Activations have the memory of the largest graph, since the graphs take turns. */
static void add_evaluations(const struct planning *p, struct sl_plan *memory)
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

static int predict(struct planning *p)
{
    const struct sl_scenario scenario =
        sl_scenario_of(trained(p), &p->training, &p->partition, &p->counts, &p->rates, &p->core);
    const int code = sl_scenario_predict_all(&scenario, &p->halo, p->has_cut ? &p->cut : NULL,
                                             &p->list, &p->count);
    if (code)
        return code;
    for (int g = 0; p->needed.row && g < p->count; g++)
        add_evaluations(p, &p->list[g].memory);
    const struct sl_prediction winner =
        *sl_scenario_choose(p->list, p->count, p->space, p->training.inexact, p->reason);
    qsort(p->list, (size_t)p->count, sizeof *p->list, compare_seconds);
    for (p->winner = p->list; p->winner->rank != winner.rank;)
        p->winner++;
    return 0;
}

/* Set the groups and the ranks of each. */
static int parse_groups(const struct planning *p, struct sl_group_plan_options *groups)
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
static int plan_groups(struct planning *p)
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
    struct sl_batches_options batches;
    int code = sl_batches_parse(&p->options, &batches);
    if (!code)
        code = parse_groups(p, &groups);
    if (code)
        return code;
    const bool differs = p->options.steps.groups.given || batches.sets > 1;
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

/* ---- What comes out ---- */

/* Return the name of a plan's graphs: "2 hops", "sample", "co:4", "co:4, sample". */
static json_t *name_group(const struct planning *p, const struct sl_group_plan *of)
{
    struct sl_batches_options batches;
    if (of->hops > 0)
        return json_sprintf("%d hop%s", of->hops, sl_s(of->hops));
    if (sl_batches_parse(&p->options, &batches) || batches.sets == 1)
        return json_string("sample");
    return json_sprintf("%s%s", sl_config_text(&p->options, "batches").text,
                        batches.sampled ? ", sample" : "");
}

static json_t *describe_groups(const struct planning *p)
{
    json_t *rows = json_array();
    for (int k = 0; k < p->groups; k++) {
        const struct sl_group_plan *of = &p->group[k];
        json_array_append_new(
            rows,
            json_pack("{s:o, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:s, s:f, s:f, s:f, s:f, s:f, s:f, "
                      "s:f}",
                      "graphs", name_group(p, of), "preload_hops", of->hops, "steps", of->steps,
                      "preloaded_share", of->share, "redundant_share", of->redundant,
                      "rows_between", of->rows, "between_bytes", of->between_bytes,
                      "between_messages", of->between_messages, "inside_distribution",
                      of->inside.name[0] ? of->inside.name : "-", "inside_bytes", of->inside.bytes,
                      "inside_messages", of->inside.messages, "compute_seconds", of->computing,
                      "inside_seconds", of->inside.seconds, "between_seconds", of->messages,
                      "waiting_seconds", of->waiting, "epoch_seconds", sl_group_plan_seconds(of)));
    }
    return rows;
}

/* Return the fastest plan of exact groups, or NULL if there is none. */
static const struct sl_group_plan *find_fastest_groups(const struct planning *p)
{
    const struct sl_group_plan *best = NULL;
    for (int g = 0; g < p->groups; g++) {
        const struct sl_group_plan *of = &p->group[g];
        if (of->hops > 0 && (!best || sl_group_plan_seconds(of) < sl_group_plan_seconds(best)))
            best = of;
    }
    return best;
}

/* Print the fastest of the distributions and the groups, all of which are exact. */
static void print_fastest(const struct planning *p, const struct sl_group_plan *best)
{
    const double seconds = sl_group_plan_seconds(best);
    const struct sl_text groups = sl_config_text(&p->options, "groups");
    if (seconds < p->winner->seconds)
        printf(
            "\n--groups %s --preload-hops %d is predicted to be fastest: %.3g ms per epoch, where "
            "%s takes %.3g\n",
            groups.text, best->hops, 1e3 * seconds, p->winner->name, 1e3 * p->winner->seconds);
    else
        printf("\n%s is predicted to be fastest: %.3g ms per epoch, where --groups %s "
               "--preload-hops %d takes %.3g\n",
               p->winner->name, 1e3 * p->winner->seconds, groups.text, best->hops, 1e3 * seconds);
}

static void print_groups(const struct planning *p, const json_t *rows)
{
    const double MB = 1e6;
    const struct sl_column columns[] = {
        {"graphs", "graphs", 0, 0},
        {"steps", "steps", 1, 0},
        {"preloaded_share", "outer / inner", 1, 3},
        {"redundant_share", "redundant", 1, 3},
        {"rows_between", "rows", 1, 0},
        {"between_bytes", "MB", MB, 3},
        {"between_messages", "messages", 1, 0},
        {"inside_distribution", "inside", 0, 0},
        {"inside_bytes", "MB", MB, 3},
        {"inside_messages", "messages", 1, 0},
        {"compute_seconds", "compute", 1e-3, 3},
        {"inside_seconds", "inside", 1e-3, 3},
        {"between_seconds", "between", 1e-3, 3},
        {"epoch_seconds", "ms/epoch", 1e-3, 3},
        {"waiting_seconds", "waiting", 1e-3, 3},
        {0},
    };
    const struct sl_group_plan *best = find_fastest_groups(p);
    if (p->options.steps.batches.automatic)
        printf("\n--batches co:auto: training counts the batches; co:R has a line of its own\n");
    if (p->groups == 0)
        return;
    printf("\n%s%s: shares and ms of the slowest group, and what groups wait for it, in the mean; "
           "rows, MB and messages of an epoch between all groups, and inside all groups\n\n",
           p->options.steps.groups.given ? "--groups " : "one group",
           sl_config_text(&p->options, "groups").text);
    sl_table_print(rows, columns);
    if (best)
        print_fastest(p, best);
}

static json_t *document_of(const struct planning *p)
{
    json_t *grids = json_array();
    for (int g = 0; g < p->count; g++) {
        json_t *row = sl_prediction_to_json(&p->list[g]);
        json_object_set_new(row, "fits",
                            json_string(p->list[g].memory.total <= p->space ? "yes" : "no"));
        json_array_append_new(grids, row);
    }
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:I, s:I, s:o, s:o, s:s, s:s, s:s, s:o}", "graph", p->source.name,
        "machine", p->rates.name, "ranks", p->partition.ranks, "tiles", p->partition.tiles,
        "vertices", (json_int_t)p->source.vertices, "entries", (json_int_t)p->counts.entries,
        "configuration", sl_options_to_json(sl_config_options, &p->options), "winner",
        sl_prediction_to_json(p->winner), "reason", p->reason, "halo_parts", p->halo.parts,
        "cut_parts", p->has_cut ? p->cut.parts : "none", "grids", grids);
}

static void print_memory(const struct sl_plan *plan)
{
    static const double MIB = 1 << 20;
    printf("\nits memory, MiB on a rank:");
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        printf("%s %s %.1f", k ? "," : "", sl_plan_names[k], (double)plan->bytes[k] / MIB);
    putchar('\n');
}

/* Return the prediction whose order of sums is reported: the winner if its sums meet own tiles
 * last, else 1D. Return NULL if neither has such tiles. */
static const struct sl_prediction *find_own_last(const struct planning *p)
{
    const struct sl_prediction *found = p->winner->most.own_last > 0.0 ? p->winner : NULL;
    for (int g = 0; !found && g < p->count; g++)
        if (strcmp(p->list[g].name, "1d") == 0 && p->list[g].most.own_last > 0.0)
            found = &p->list[g];
    return found;
}

/* Print what --sum-order own-first saves, or would save: at most the time of the own tiles, and at
 * most the time of the messages. */
static void print_sum_order(const struct planning *p)
{
    const struct sl_prediction *with = find_own_last(p);
    const bool taken = p->training.assembly.owners.own_first;
    if (!with || p->training.stages == 1)
        return;
    const double own = with->most.own_last, travel = with->most.communication;
    printf("\nwith %s, --sum-order own-first %s on %.3g ms of own tiles while messages travel, not "
           "after them; it saves at most %.3g ms of an epoch\n",
           with->name, taken ? "works" : "would work", 1e3 * own,
           1e3 * (own < travel ? own : travel));
}

static void print_rows(const struct planning *p)
{
    if (p->rows.reason[0])
        printf("\nrows %s\n", p->rows.reason);
    else if (p->options.steps.rows == SL_ROWS_NEEDED)
        printf("\nrows needed: %.2g of the rows and %.2g of the adjacency entries, in the mean of "
               "the layers\n",
               p->rows.rows, p->rows.entries);
    if (!p->needed.row)
        return;
    printf("figures are of the %" PRId64
           " vertices of a step; memory, about, is of the whole graph",
           p->needed.source.vertices);
    if (p->validation.vertices > 0)
        printf(", too, and of the %" PRId64 " vertices of evaluations between epochs\n",
               p->validation.vertices);
    else
        printf(", too\n");
}

static void print(const struct planning *p, const json_t *document)
{
    static const double MIB = 1 << 20;
    const struct sl_column columns[] = {
        {"distribution", "grid", 0, 0},
        {"words", "Mwords", 1e6, 3},
        {"rows_received", "MiB of rows", MIB, 2},
        {"sums_received", "of sums", MIB, 2},
        {"messages", "messages", 1, 0},
        {"compute_seconds", "compute", 1e-3, 3},
        {"communication_seconds", "messages", 1e-3, 3},
        {"hidden_seconds", "hidden", 1e-3, 3},
        {"epoch_seconds", "ms/epoch", 1e-3, 3},
        {"memory_bytes", "MiB", MIB, 1},
        {"fits", "fits", 0, 0},
        {0},
    };
    json_t *shown = json_array();
    for (size_t g = 0; g < (size_t)p->config.rows && g < (size_t)p->count; g++)
        json_array_append(shown, json_array_get(json_object_get(document, "grids"), g));
    char cores[48] = ""; /* ranks share this machine, or each has one like it */
    if (!p->config.machine)
        snprintf(cores, sizeof cores, " of %d core%s each", p->rates.cores, sl_s(p->rates.cores));
    printf("%s on %d rank%s%s, %d tile%s; %s\nfigures of a training step, of the rank with most; "
           "words are those it receives; parts of the halo%s: %s, of the vertex-cut: %s\n\n",
           p->source.name, p->partition.ranks, sl_s(p->partition.ranks), cores, p->partition.tiles,
           sl_s(p->partition.tiles), p->rates.name, p->halo.has_cover ? " and the cover" : "",
           p->halo.parts, p->has_cut ? p->cut.parts : "none");
    sl_table_print(shown, columns);
    if (p->count > p->config.rows)
        printf("and %d slower one%s (--rows, --json)\n", p->count - (int)p->config.rows,
               sl_s(p->count - p->config.rows));
    printf("\n%s\n", p->reason);
    print_rows(p);
    print_sum_order(p);
    print_memory(&p->winner->memory);
    print_groups(p, json_object_get(document, "groups"));
    json_decref(shown);
}

static int report(const struct planning *p)
{
    json_t *document = document_of(p);
    if (p->groups > 0)
        json_object_set_new(document, "groups", describe_groups(p));
    if (!p->config.quiet && !sl_json_failures())
        print(p, document);
    return sl_bench_write(document, p->config.json);
}

/* ---- The command ---- */

/* Set train's options that plan has, too, except --distribution, which has another meaning there.
 */
static int take_cut_options(struct planning *p, const bool *given)
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
        code = sl_config_check_rows(&p->options);
    if (!code && partition)
        code = sl_parts_check_name(partition, SL_PARTS_METHODS "|ptscotch");
    return code ? code : sl_config_check_attention(&p->options);
}

static int parse(struct planning *p, struct sl_bench_words *words, int *positionals)
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

static int foresee(struct planning *p)
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
    struct planning p = {.process = {.ranks_here = 1}, .rt = {.ranks = 1, .process = &p.process}};
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
        code = report(&p);
    free(p.group);
    sl_scenario_free_all(p.list, p.count);
    sl_scenario_cut_destroy(&p.cut);
    sl_scenario_halo_destroy(&p.halo);
    sl_tile_counts_destroy(&p.counts);
    sl_partition_destroy(&p.partition);
    sl_partition_destroy(&p.vertices);
    sl_source_close(&p.shares);
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
