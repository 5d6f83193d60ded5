/* The words and figures of starling plan. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/train.h"
#include "cli/planning.h"
#include "core/json_file.h"
#include "core/table.h"
#include "core/words.h"
#include "predict/prediction_view.h"

/* Return the name of a plan's graphs: "2 hops", "sample", "co:4", "co:4, sample". */
static json_t *name_group(const struct sl_planning *p, const struct sl_group_plan *of)
{
    const struct sl_batches_options batches = sl_config_batches(&p->options);
    if (of->hops > 0)
        return json_sprintf("%d hop%s", of->hops, sl_s(of->hops));
    if (batches.sets == 1)
        return json_string("sample");
    return json_sprintf("%s%s", sl_config_text(&p->options, "batches").text,
                        batches.sampled ? ", sample" : "");
}

static json_t *describe_groups(const struct sl_planning *p)
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
static const struct sl_group_plan *find_fastest_groups(const struct sl_planning *p)
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
static void print_fastest(const struct sl_planning *p, const struct sl_group_plan *best)
{
    const double seconds = sl_group_plan_seconds(best);
    const struct sl_text groups = sl_config_text(&p->options, "groups");
    if (seconds < p->choice.winner->seconds)
        printf(
            "\n--groups %s --preload-hops %d is predicted to be fastest: %.3g ms per epoch, where "
            "%s takes %.3g\n",
            groups.text, best->hops, 1e3 * seconds, p->choice.winner->name,
            1e3 * p->choice.winner->seconds);
    else
        printf("\n%s is predicted to be fastest: %.3g ms per epoch, where --groups %s "
               "--preload-hops %d takes %.3g\n",
               p->choice.winner->name, 1e3 * p->choice.winner->seconds, groups.text, best->hops,
               1e3 * seconds);
}

static void print_groups(const struct sl_planning *p, const json_t *rows)
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

static json_t *document_of(const struct sl_planning *p)
{
    json_t *grids = json_array();
    for (int g = 0; g < p->choice.count; g++) {
        json_t *row = sl_prediction_to_json(&p->choice.list[g]);
        json_object_set_new(row, "fits",
                            json_string(p->choice.list[g].memory.total <= p->space ? "yes" : "no"));
        json_array_append_new(grids, row);
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:o, s:o, s:s, s:s, s:s, s:o}", "graph",
                     p->source.name, "machine", p->rates.name, "ranks", p->counts.partition.ranks,
                     "tiles", p->counts.partition.tiles, "vertices", (json_int_t)p->source.vertices,
                     "entries", (json_int_t)p->counts.counts.entries, "configuration",
                     sl_options_to_json(sl_config_options, &p->options), "winner",
                     sl_prediction_to_json(p->choice.winner), "reason", p->choice.reason,
                     "halo_parts", p->counts.halo.parts, "cut_parts",
                     p->counts.has_cut ? p->counts.cut.parts : "none", "grids", grids);
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
static const struct sl_prediction *find_own_last(const struct sl_planning *p)
{
    const struct sl_prediction *found =
        p->choice.winner->most.own_last > 0.0 ? p->choice.winner : NULL;
    for (int g = 0; !found && g < p->choice.count; g++)
        if (strcmp(p->choice.list[g].name, "1d") == 0 && p->choice.list[g].most.own_last > 0.0)
            found = &p->choice.list[g];
    return found;
}

/* Print what --sum-order own-first saves, or would save: at most the time of the own tiles, and at
 * most the time of the messages. */
static void print_sum_order(const struct sl_planning *p)
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

static void print_rows(const struct sl_planning *p)
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

static void print(const struct sl_planning *p, const json_t *document)
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
    for (size_t g = 0; g < (size_t)p->config.rows && g < (size_t)p->choice.count; g++)
        json_array_append(shown, json_array_get(json_object_get(document, "grids"), g));
    char cores[48] = ""; /* ranks share this machine, or each has one like it */
    if (!p->config.machine)
        snprintf(cores, sizeof cores, " of %d core%s each", p->rates.cores, sl_s(p->rates.cores));
    printf("%s on %d rank%s%s, %d tile%s; %s\nfigures of a training step, of the rank with most; "
           "words are those it receives; parts of the halo%s: %s, of the vertex-cut: %s\n\n",
           p->source.name, p->counts.partition.ranks, sl_s(p->counts.partition.ranks), cores,
           p->counts.partition.tiles, sl_s(p->counts.partition.tiles), p->rates.name,
           p->counts.halo.has_cover ? " and the cover" : "", p->counts.halo.parts,
           p->counts.has_cut ? p->counts.cut.parts : "none");
    sl_table_print(shown, columns);
    if (p->choice.count > p->config.rows)
        printf("and %d slower one%s (--rows, --json)\n", p->choice.count - (int)p->config.rows,
               sl_s(p->choice.count - p->config.rows));
    printf("\n%s\n", p->choice.reason);
    print_rows(p);
    print_sum_order(p);
    print_memory(&p->choice.winner->memory);
    print_groups(p, json_object_get(document, "groups"));
    json_decref(shown);
}

int sl_planning_report(const struct sl_planning *p)
{
    json_t *document = document_of(p);
    if (p->groups > 0)
        json_object_set_new(document, "groups", describe_groups(p));
    if (!p->config.quiet && !sl_json_failures())
        print(p, document);
    return sl_bench_write(document, p->config.json);
}
