/* starling bench distributions: one training on every distribution of the ranks. Compares the
 * words, messages and seconds of each with its plan. */
#include <stdio.h>

#include "bench/contest.h"
#include "core/error.h"
#include "core/profile_view.h"
#include "core/table.h"
#include "core/words.h"
#include "graphs/distribution.h"

enum { MOST_GRIDS = 256, OTHERS = 16 }; /* OTHERS: the most distributions that are no grid */

struct config {
    struct sl_bench_common common; /* first (bench.h) */
};

static const struct sl_option options[] = {
    SL_BENCH_OPTIONS(config, "3"),
    {0},
};

/* A contestant: a grid, another distribution, or train's choice. */
struct contestant {
    const char *option; /* NULL: train's choice */
    char text[40], name[32];
};

struct bench {
    struct config config;
    struct sl_bench_contest contest;
    struct contestant contestant[MOST_GRIDS]; // (contest.count)
    int count;
};

static const struct sl_bench_reserved reserved[] = {SL_BENCH_RESERVED,       {"grid", NULL},
                                                    {"distribution", NULL},  {"replication", NULL},
                                                    {"allow-inexact", NULL}, {"partition", NULL},
                                                    {"delay", NULL},         {"partial-sums", NULL},
                                                    {"exact-epochs", NULL},  {0}};

/* ---- What comes out ---- */

static double sum(const json_t *list)
{
    double total = 0.0;
    size_t index;
    const json_t *value;
    json_array_foreach((json_t *)list, index, value) total += json_number_value(value);
    return total;
}

/* Set the planned and the measured number, over all ranks, and their quotient. */
static void set_pair(json_t *row, const char *key, double planned, double measured)
{
    char name[64];
    snprintf(name, sizeof name, "%s_planned", key);
    json_object_set_new(row, name, json_real(planned));
    snprintf(name, sizeof name, "%s_measured", key);
    json_object_set_new(row, name, json_real(measured));
    snprintf(name, sizeof name, "%s_ratio", key);
    json_object_set_new(row, name, measured > 0.0 ? json_real(planned / measured) : json_null());
}

static void set_figures(const struct sl_bench_contest *contest, const struct sl_bench_entry *e,
                        json_t *row)
{
    static const char *const kinds[] = {"bytes_received", "rows_received", "sums_received",
                                        "adjacency_received", "messages"};
    const struct sl_bench_run *run = sl_bench_entry_last(e);
    const json_t *prediction = json_object_get(run->start, "prediction"),
                 *planned = json_object_get(prediction, "traffic_per_epoch"),
                 *measured = json_object_get(run->end, "traffic_per_epoch");
    const struct sl_spread seconds = sl_spread_of(e->seconds, contest->rounds);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        set_pair(row, kinds[k], sum(json_object_get(planned, kinds[k])),
                 sum(json_object_get(measured, kinds[k])));
    set_pair(row, "memory", sl_number(json_object_get(run->start, "planned_bytes"), "total"),
             sl_number(run->end, "tile_bytes"));
    set_pair(row, "seconds", sl_number(prediction, "epoch_seconds"), seconds.median);
    sl_bench_set_spread(row, "epoch_seconds", seconds);
    json_object_set(row, "loss", json_object_get(run->end, "loss"));
    json_object_set(row, "tiles", json_object_get(run->start, "tiles"));
}

static json_t *row_of(const struct bench *bench, int c)
{
    const struct sl_bench_entry *e = &bench->contest.entries[c];
    const struct sl_bench_run *run = sl_bench_entry_last(e);
    const bool done = run->ending == SL_BENCH_DONE;
    json_t *row = json_pack("{s:s, s:s, s:s}", "distribution", bench->contestant[c].name, "grid",
                            bench->contestant[c].text, "ending", done ? "done" : "refused");
    if (done)
        set_figures(&bench->contest, e, row);
    else
        json_object_set_new(row, "reason", json_string(run->reason));
    return row;
}

/* Train on all distributions. A distribution that is refused has the reason in its row. If all are
 * refused, the first reason is the error. */
static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const struct sl_bench_contest *contest = &bench->contest;
    int code = sl_bench_contest_run(&bench->contest), done = 0;
    for (int e = 0; !code && e < contest->count; e++)
        done += sl_bench_entry_last(&contest->entries[e])->ending == SL_BENCH_DONE;
    if (!code && !done)
        code = sl_bench_check_ending(sl_bench_entry_last(&contest->entries[0]));
    if (code || contest->common->rt.rank > 0)
        return code;
    for (int c = 0; c < contest->count; c++)
        json_array_append_new(rows, row_of(bench, c));
    const struct sl_bench_run *chosen = sl_bench_entry_last(&contest->entries[contest->count - 1]);
    sl_bench_describe(document, contest, chosen);
    json_object_set(document, "grid_reason", json_object_get(chosen->start, "grid_reason"));
    return 0;
}

static void print(const struct bench *bench, const json_t *document)
{
    static const double MIB = 1 << 20;
    const struct sl_column columns[] = {
        {"distribution", "grid", 0, 0},
        {"bytes_received_planned", "MiB planned", MIB, 3},
        {"bytes_received_measured", "measured", MIB, 3},
        {"messages_planned", "messages", 1, 0},
        {"messages_measured", "measured", 1, 0},
        {"memory_planned", "MiB taken", MIB, 1},
        {"memory_measured", "measured", MIB, 1},
        {"seconds_planned", "ms/epoch", 1e-3, 3},
        {"epoch_seconds", "measured", 1e-3, 3},
        {"epoch_seconds_low", "quartiles", 1e-3, 3},
        {"epoch_seconds_high", "", 1e-3, 3},
        {"ending", "", 0, 0},
        {0},
    };
    const char *reason = json_string_value(json_object_get(document, "grid_reason"));
    printf("%s on %d rank%s: received by all ranks in a training step, memory of the rank with "
           "most; median epoch of %d run%s\n\n",
           bench->contest.dataset, bench->config.common.rt.ranks,
           sl_s(bench->config.common.rt.ranks), (int)bench->config.common.repetitions,
           sl_s(bench->config.common.repetitions));
    sl_table_print(json_object_get(document, "rows"), columns);
    if (reason)
        printf("\nauto is %s\n", reason);
}

/* ---- Who takes part ---- */

static void add(struct bench *bench, const char *option, const char *text, const char *name)
{
    struct contestant *c = &bench->contestant[bench->count++];
    c->option = option;
    snprintf(c->text, sizeof c->text, "%s", text);
    snprintf(c->name, sizeof c->name, "%s", name);
}

static void add_grid(struct bench *bench, const struct sl_grid *grid)
{
    char text[40], name[32];
    snprintf(text, sizeof text, "%dx%dx%d", grid->rows, grid->columns, grid->depth);
    add(bench, "--grid", text, sl_grid_name(grid, name));
}

static int choose_grids(struct bench *bench)
{
    const int ranks = bench->config.common.rt.ranks;
    for (int layers = 1; layers <= ranks; layers++)
        for (int columns = 1; ranks % layers == 0 && columns <= ranks / layers; columns++)
            if (ranks / layers % columns == 0) {
                if (bench->count == MOST_GRIDS - OTHERS)
                    return sl_error(SL_ERR_USAGE, "%d ranks have over %d grids (expected fewer)",
                                    ranks, MOST_GRIDS - OTHERS);
                add_grid(bench, &(struct sl_grid){ranks / layers / columns, columns, layers});
            }
    for (const struct sl_distribution_name *row = sl_distribution_names; row->name; row++)
        if (row->kind != &sl_distribution_block)
            add(bench, "--distribution", row->name, row->name);
    add(bench, NULL, "auto", "auto");
    return 0;
}

static int create_distributions(struct bench *bench)
{
    struct sl_bench_common *common = &bench->config.common;
    if (common->rt.ranks < 2)
        return sl_error(SL_ERR_USAGE, "bench distributions: expected several ranks: mpirun -n 4 "
                                      "starling bench distributions DATASET");
    if (common->positionals < 1)
        return sl_error(SL_ERR_USAGE, "bench distributions: expected a DATASET");
    int code = choose_grids(bench);
    if (!code)
        code = sl_bench_contest_create(&bench->contest, common, bench->count, common->repetitions);
    for (int c = 0; !code && c < bench->count; c++) {
        bench->contest.entries[c].words[0] = bench->contestant[c].option;
        bench->contest.entries[c].words[1] = bench->contestant[c].text;
    }
    bench->contest.tolerant = true;
    bench->contest.dataset = common->words.own[0];
    return code;
}

static void destroy(struct bench *bench)
{
    sl_bench_contest_destroy(&bench->contest);
}

static int run_distributions(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_distributions,
        .reserved = reserved,
        .create = create_distributions,
        .measure = measure,
        .print = print,
        .destroy = destroy,
        .on_ranks = true,
        .datasets = 1,
    };
    struct bench bench = {0};
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}

const struct sl_command sl_bench_distributions = {
    .name = "bench distributions",
    .synopsis = "DATASET [--OPTION ...] [--OPTION of train ...]",
    .summary =
        "Under mpirun: train on every distribution of the ranks, and compare words, memory and "
        "time with what starling plan says",
    .options = options,
    .run = run_distributions,
};
