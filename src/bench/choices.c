/* starling bench choices: each automatic choice against its alternatives, on several datasets and
 * widths. Regret is the time of auto over the time of the best alternative. The first rounds pick
 * the best alternative. Later rounds measure it by turns with auto, because the least of noisy
 * times is biased. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/train.h"
#include "core/error.h"
#include "core/profile_view.h"
#include "core/table.h"
#include "graphs/distribution.h"

enum { PICKING = 3, MOST_HIDDEN = 16, MOST_CONTESTANTS = 40, MOST_ROUNDS = 100, WORDS = 8 };

/* Bounds on the epochs of a training. */
enum { LEAST_EPOCHS = 3, MOST_EPOCHS = 400 };

/* Figures of a training: seconds of an epoch; of a run, all epochs with loading. */
enum figure { EPOCH, RUN, FIGURES };

struct config {
    struct sl_bench_common common; /* first (bench.h) */
    char *hidden_list;
    double seconds;
};

static const struct sl_option options[] = {
    {"hidden-list", SL_OPTION_STRING, offsetof(struct config, hidden_list), "16,64,256", 0, 0, NULL,
     "LIST", "widths of the hidden layers", "Contestants"},
    {"seconds", SL_OPTION_REAL, offsetof(struct config, seconds), "0.12", 0, 1e6, NULL, "S",
     "epochs of a training last about so long, at least three of them, after a first look",
     "Measuring"},
    SL_BENCH_OPTIONS(config, "6"),
    {0},
};

static const struct sl_bench_reserved reserved[] = {SL_BENCH_RESERVED,
                                                    {"hidden", "--hidden-list"},
                                                    {"stop-after", "--seconds"},
                                                    {"product-order", NULL},
                                                    {"order", NULL},
                                                    {"tiles", NULL},
                                                    {"block-columns", NULL},
                                                    {"scheduler", NULL},
                                                    {"grid", NULL},
                                                    {"distribution", NULL},
                                                    {"replication", NULL},
                                                    {"allow-inexact", NULL},
                                                    {"partition", NULL},
                                                    {"delay", NULL},
                                                    {"partial-sums", NULL},
                                                    {"exact-epochs", NULL},
                                                    {"cache-aggregate", NULL},
                                                    {"feature-form", NULL},
                                                    {0}};

/* A choice that train makes automatically. */
struct choice {
    const char *name;
    enum figure figure;
    bool whole_features; /* train without dropout on features */
};

enum { ORDER, TILES, BLOCKS, PRODUCTS, SCHEDULER, DISTRIBUTION, CACHED, FORM, CHOICES };

static const struct choice choices[CHOICES] = {
    [ORDER] = {"vertex order", RUN, false},       [TILES] = {"tiles", EPOCH, false},
    [BLOCKS] = {"column blocks", EPOCH, false},   [PRODUCTS] = {"product order", EPOCH, false},
    [SCHEDULER] = {"scheduler", EPOCH, false},    [DISTRIBUTION] = {"distribution", EPOCH, false},
    [CACHED] = {"cached aggregate", EPOCH, true}, [FORM] = {"feature form", EPOCH, false},
};

/* A contestant: an alternative of a choice, or auto. */
struct contestant {
    int choice; /* -1: auto */
    bool whole_features, out;
    char option[48], value[48];
    int rounds;
    double figure[FIGURES][MOST_ROUNDS];
};

/* Values that auto chose in a cell. Alternatives must differ from them. */
struct taken {
    int64_t vertices, tiles, block_cols;
    char order[16], scheduler[16];
    char products[16]; /* product order of all layers; empty if layers differ */
    bool cached;       /* sums of whole features are cached */
    char form[8];      /* form of features; "auto": the identity, which has no other form */
    /* Option and value of the distribution, on several ranks. Contestants of other choices get it
     * as an option, because choosing a distribution may take longer than the epochs. */
    char distribution[16], grid[32];
};

struct bench {
    struct config config;
    int64_t hidden[MOST_HIDDEN];
    int widths;
    /* The current cell: a dataset and a width. */
    const char *dataset;
    int64_t width, epochs;
    double wanted; /* epochs of a training that last `seconds` */
    struct taken taken;
    struct contestant contestant[MOST_CONTESTANTS]; /* auto, auto with whole features, … */
    int count;
};

/* ---- Runs ---- */

static struct sl_runtime *runtime(struct bench *bench)
{
    return &bench->config.common.rt;
}

/* Run one training of a contestant. */
static int train(struct bench *bench, struct contestant *c, struct sl_bench_run *run)
{
    char hidden[24], epochs[24];
    const char *words[2 * WORDS + 1] = {"--hidden", hidden, "--stop-after", epochs};
    int count = 4;
    snprintf(hidden, sizeof hidden, "%" PRId64, bench->width);
    snprintf(epochs, sizeof epochs, "%" PRId64, bench->epochs);
    if (c->whole_features) {
        words[count++] = "--input-dropout";
        words[count++] = "0";
    }
    if (c->option[0])
        words[count++] = c->option;
    if (c->value[0])
        words[count++] = c->value;
    if (bench->taken.distribution[0] && c->choice != DISTRIBUTION) {
        words[count++] = bench->taken.distribution;
        words[count++] = bench->taken.grid;
    }
    return sl_bench_train(&(struct sl_bench_training){.dataset = bench->dataset,
                                                      .common = &bench->config.common,
                                                      .words = words,
                                                      .limit = 600.0},
                          run);
}

static const char *word_of(const json_t *object, const char *key)
{
    const char *word = json_string_value(json_object_get(object, key));
    return word ? word : "";
}

/* Read auto's choices from the log of a training. */
static struct taken read_auto(const struct bench *bench, const struct sl_bench_run *run)
{
    struct taken taken = {.vertices =
                              (int64_t)sl_number(json_object_get(run->start, "graph"), "vertices"),
                          .tiles = (int64_t)sl_number(run->start, "tiles"),
                          .block_cols = (int64_t)sl_number(run->start, "block_columns")};
    const json_t *configuration = json_object_get(run->start, "configuration"),
                 *products = json_object_get(run->start, "product_orders");
    sscanf(word_of(run->start, "order_reason"), "%15[a-z]", taken.order);
    sscanf(word_of(json_object_get(run->start, "machine"), "scheduler"), "%15s", taken.scheduler);
    snprintf(taken.form, sizeof taken.form, "%s", word_of(configuration, "feature-form"));
    const char *first = json_string_value(json_array_get(products, 0));
    size_t same = 0;
    while (first && same < json_array_size(products) &&
           strcmp(json_string_value(json_array_get(products, same)), first) == 0)
        same++;
    if (first && same == json_array_size(products))
        snprintf(taken.products, sizeof taken.products, "%s", first);
    if (bench->config.common.rt.ranks > 1) {
        const char *grid = word_of(configuration, "grid"),
                   *distribution = word_of(configuration, "distribution");
        snprintf(taken.distribution, sizeof taken.distribution, "%s",
                 *grid ? "--grid" : "--distribution");
        snprintf(taken.grid, sizeof taken.grid, "%s",
                 *grid                               ? grid
                 : strcmp(distribution, "auto") == 0 ? "1d"
                                                     : distribution);
    }
    return taken;
}

/* Train once and note the figures. An alternative that is refused is out; a refusal of auto is an
 * error. Call sl_bench_run_free(run) in either case. */
static int take_turn(struct bench *bench, struct contestant *c, struct sl_bench_run *run)
{
    int code = train(bench, c, run);
    double figures[FIGURES] = {0};
    if (!code && run->ending != SL_BENCH_DONE) {
        c->out = true;
        code = c->choice < 0 ? sl_bench_check_ending(run) : 0;
    } else if (!code && run->end) {
        const json_t *configuration = json_object_get(run->start, "configuration");
        figures[EPOCH] = sl_number(run->end, "epoch_seconds_median");
        figures[RUN] = sl_number(run->start, "load_seconds") +
                       sl_number(configuration, "epochs") * figures[EPOCH];
    }
    sl_runtime_broadcast(runtime(bench), 0, figures, sizeof figures);
    if (!code && !c->out && c->rounds < MOST_ROUNDS) {
        for (int f = 0; f < FIGURES; f++)
            c->figure[f][c->rounds] = figures[f];
        c->rounds++;
    }
    return code;
}

/* ---- Who takes part ---- */

static struct contestant *add(struct bench *bench, int choice, const char *option,
                              const char *value)
{
    struct contestant *c = &bench->contestant[bench->count++];
    *c = (struct contestant){.choice = choice,
                             .whole_features = choice >= 0 && choices[choice].whole_features};
    snprintf(c->option, sizeof c->option, "%s", option);
    snprintf(c->value, sizeof c->value, "%s", value);
    return c;
}

static void add_number(struct bench *bench, int choice, const char *option, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    add(bench, choice, option, text);
}

static bool is_taken(const struct bench *bench, const char *option, const char *value)
{
    return strcmp(bench->taken.distribution, option) == 0 && strcmp(bench->taken.grid, value) == 0;
}

static void add_distribution(struct bench *bench, const char *option, const char *value)
{
    if (!is_taken(bench, option, value))
        add(bench, DISTRIBUTION, option, value);
}

static void add_distributions(struct bench *bench)
{
    const int ranks = runtime(bench)->ranks;
    static const char *const grids[] = {"1x%dx1", "1x1x%d"};
    for (int k = 0; sl_distribution_names[k].name; k++)
        if (k == 0 || sl_distribution_names[k].kind != &sl_distribution_block)
            add_distribution(bench, "--distribution", sl_distribution_names[k].name);
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        char text[40];
        snprintf(text, sizeof text, grids[g], ranks);
        add_distribution(bench, "--grid", text);
    }
}

/* Add an alternative for each word but the one that auto took. */
static void add_words(struct bench *bench, int choice, const char *option, const char *taken,
                      const char *const *words)
{
    for (int w = 0; words[w]; w++)
        if (strcmp(words[w], taken) != 0)
            add(bench, choice, option, words[w]);
}

static void add_alternatives(struct bench *bench)
{
    static const char *const policies[] = {"lws", "eager", "dmda", "ws", NULL},
                             *const orders[] = {"none", "rabbit", NULL},
                             *const products[] = {"gemm", "spmm", NULL},
                             *const forms[] = {"csr", "dense", NULL};
    const int ranks = runtime(bench)->ranks;
    const int64_t n = bench->taken.vertices;
    if (ranks == 1)
        add_words(bench, ORDER, "--order", bench->taken.order, orders);
    for (int64_t tiles = ranks > 1 ? ranks : 1; tiles <= 16; tiles *= 2)
        if (tiles != bench->taken.tiles)
            add_number(bench, TILES, "--tiles", tiles);
    for (int64_t blocks = 1; blocks <= 4; blocks *= 2)
        if ((n + blocks - 1) / blocks != bench->taken.block_cols)
            add_number(bench, BLOCKS, "--block-columns", (n + blocks - 1) / blocks);
    add_words(bench, PRODUCTS, "--product-order", bench->taken.products, products);
    add_words(bench, SCHEDULER, "--scheduler", bench->taken.scheduler, policies);
    if (strcmp(bench->taken.form, "auto") != 0)
        add_words(bench, FORM, "--feature-form", bench->taken.form, forms);
    add(bench, CACHED, bench->taken.cached ? "--no-cache-aggregate" : "--cache-aggregate", "");
    if (ranks > 1)
        add_distributions(bench);
}

/* Train each auto once. Set the number of epochs that last as long as wanted, and the alternatives.
 */
static int prepare(struct bench *bench)
{
    struct sl_bench_run run, whole = {0};
    bench->count = 0;
    bench->taken = (struct taken){0};
    bench->epochs = LEAST_EPOCHS + 1;
    struct contestant *standard = add(bench, -1, "", ""), *other = add(bench, -1, "", "");
    other->whole_features = true;
    int code = take_turn(bench, standard, &run);
    if (!code) {
        struct taken taken = {0};
        if (run.end)
            taken = read_auto(bench, &run);
        sl_runtime_broadcast(runtime(bench), 0, &taken, sizeof taken);
        bench->taken = taken;
        bench->wanted = bench->config.seconds / standard->figure[EPOCH][0];
        code = take_turn(bench, other, &whole);
    }
    if (!code) {
        int64_t cached = json_is_true(
            json_object_get(json_object_get(whole.start, "configuration"), "cache-aggregate"));
        sl_runtime_broadcast(runtime(bench), 0, &cached, sizeof cached);
        bench->taken.cached = cached;
        add_alternatives(bench);
    }
    sl_bench_run_free(&run);
    sl_bench_run_free(&whole);
    return code;
}

static struct contestant *auto_of(struct bench *bench, const struct contestant *c)
{
    return &bench->contestant[c->whole_features];
}

static double mean(const double *values, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / count : HUGE_VAL;
}

/* Return the best remaining alternative of a choice in the rounds so far, or NULL if all are out.
 */
static struct contestant *best_of(struct bench *bench, int choice)
{
    struct contestant *best = NULL;
    const enum figure f = choices[choice].figure;
    for (int c = 2; c < bench->count; c++) {
        struct contestant *contestant = &bench->contestant[c];
        if (contestant->choice != choice || contestant->out)
            continue;
        if (!best ||
            mean(contestant->figure[f], contestant->rounds) < mean(best->figure[f], best->rounds))
            best = contestant;
    }
    return best;
}

/* Drop alternatives that take over `behind` times as long as the best one or auto. */
static void drop_hopeless(struct bench *bench, double behind)
{
    const struct contestant *best[CHOICES];
    for (int choice = 0; choice < CHOICES; choice++)
        best[choice] = best_of(bench, choice);
    for (int c = 2; c < bench->count; c++) {
        struct contestant *contestant = &bench->contestant[c];
        if (contestant->out)
            continue;
        const enum figure f = choices[contestant->choice].figure;
        const struct contestant *standard = auto_of(bench, contestant),
                                *other = best[contestant->choice];
        const double least = fmin(mean(standard->figure[f], standard->rounds),
                                  mean(other->figure[f], other->rounds));
        contestant->out = mean(contestant->figure[f], contestant->rounds) > behind * least;
    }
}

static int round_of(struct bench *bench, int round)
{
    int code = 0;
    for (int i = 0; !code && i < bench->count; i++) {
        const int c = round % 2 ? bench->count - 1 - i : i;
        if (bench->contestant[c].out)
            continue;
        struct sl_bench_run run;
        code = take_turn(bench, &bench->contestant[c], &run);
        sl_bench_run_free(&run);
    }
    return code;
}

/* Try all alternatives once, for one to three epochs, and drop the slowest: some take a
 * hundred times as long as auto. */
static int look(struct bench *bench)
{
    const double BEHIND = 3.0;
    bench->epochs = (int64_t)fmin(fmax(bench->wanted, 1.0), LEAST_EPOCHS);
    for (int c = 0; c < 2; c++)
        bench->contestant[c].rounds = 0;
    const int code = round_of(bench, 0);
    if (!code)
        drop_hopeless(bench, BEHIND);
    for (int c = 0; c < bench->count; c++)
        bench->contestant[c].rounds = 0;
    bench->epochs = (int64_t)fmin(fmax(bench->wanted, LEAST_EPOCHS), MOST_EPOCHS);
    return code;
}

/* Measure a cell: pick the best alternative of each choice, then measure it against auto. */
static int measure_cell(struct bench *bench, struct contestant *best[CHOICES])
{
    static const double BEHIND[PICKING] = {1.3, 1.15, 1.0};
    int code = look(bench);
    for (int round = 0; !code && round < PICKING; round++) {
        code = round_of(bench, round);
        if (!code && BEHIND[round] > 1.0)
            drop_hopeless(bench, BEHIND[round]);
    }
    for (int choice = 0; !code && choice < CHOICES; choice++)
        best[choice] = best_of(bench, choice);
    for (int c = 2; !code && c < bench->count; c++)
        bench->contestant[c].out |= best[bench->contestant[c].choice] != &bench->contestant[c];
    const int rounds = (int)bench->config.common.repetitions;
    for (int round = 0; !code && round < rounds; round++)
        code = round_of(bench, round);
    return code;
}

/* ---- What comes out ---- */

/* Return Student's t for a 95 % interval with `freedom` degrees of freedom. */
static double student(int freedom)
{
    static const double T[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    const int known = (int)(sizeof T / sizeof *T);
    return freedom < 1 ? HUGE_VAL : freedom <= known ? T[freedom - 1] : 2.2;
}

/* Set the regret: the geometric mean of auto over the alternative, by rounds, and its 95 %
 * interval. */
static void set_regret(json_t *row, const double *standard, const double *other, int count)
{
    double sum = 0.0, squares = 0.0;
    for (int r = 0; r < count; r++) {
        const double x = log(standard[r] / other[r]);
        sum += x;
        squares += x * x;
    }
    const double middle = sum / count;
    const double spread = count > 1 ? sqrt(fmax(squares - sum * middle, 0.0) / (count - 1)) : 0.0;
    const double half = count > 1 ? student(count - 1) * spread / sqrt(count) : 0.0;
    json_object_set_new(row, "regret", json_real(exp(middle)));
    json_object_set_new(row, "regret_low", json_real(exp(middle - half)));
    json_object_set_new(row, "regret_high", json_real(exp(middle + half)));
}

static json_t *row_of(struct bench *bench, int choice, const struct contestant *best)
{
    const enum figure f = choices[choice].figure;
    const char *name = strrchr(bench->dataset, '/');
    const int rounds = (int)bench->config.common.repetitions;
    json_t *row = json_pack("{s:s, s:I, s:i, s:s, s:s}", "dataset",
                            name && name[1] ? name + 1 : bench->dataset, "hidden",
                            (json_int_t)bench->width, "ranks", runtime(bench)->ranks, "choice",
                            choices[choice].name, "figure", f == RUN ? "run" : "epoch");
    if (!best) {
        json_object_set_new(row, "best", json_string("auto"));
        return row;
    }
    const struct contestant *standard = auto_of(bench, best);
    const double *mine = standard->figure[f] + PICKING, *other = best->figure[f] + PICKING;
    char text[100];
    snprintf(text, sizeof text, "%s%s%s", best->option + 2, best->value[0] ? " " : "", best->value);
    json_object_set_new(row, "best", json_string(text));
    json_object_set_new(row, "seconds", json_real(sl_spread_of(mine, rounds).median));
    json_object_set_new(row, "best_seconds", json_real(sl_spread_of(other, rounds).median));
    set_regret(row, mine, other, rounds);
    return row;
}

static void summarise(json_t *document, const json_t *rows)
{
    const double MOST = 1.10;
    double sum = 0.0;
    int count = 0, above = 0;
    size_t index;
    const json_t *row;
    json_array_foreach((json_t *)rows, index, row)
    {
        const json_t *regret = json_object_get(row, "regret");
        sum += regret ? log(json_number_value(regret)) : 0.0;
        count += regret != NULL;
        above += regret && sl_number(row, "regret_low") > MOST;
    }
    json_object_set_new(document, "geometric_mean", json_real(count ? exp(sum / count) : 1.0));
    json_object_set_new(document, "compared", json_integer(count));
    json_object_set_new(document, "above", json_integer(above));
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const struct sl_bench_common *common = &bench->config.common;
    const int cells = common->positionals * bench->widths;
    int code = 0;
    for (int cell = 0; !code && cell < cells; cell++) {
        struct contestant *best[CHOICES] = {NULL};
        bench->dataset = common->words.own[cell / bench->widths];
        bench->width = bench->hidden[cell % bench->widths];
        code = prepare(bench);
        if (!code)
            code = measure_cell(bench, best);
        for (int choice = 0; !code && common->rt.rank == 0 && choice < CHOICES; choice++)
            if (choice != (common->rt.ranks > 1 ? ORDER : DISTRIBUTION))
                json_array_append_new(rows, row_of(bench, choice, best[choice]));
        if (!code && common->rt.rank == 0) {
            summarise(document, rows);
            code = sl_bench_keep(document, common->json); /* a cell takes half a minute */
        }
        code = sl_runtime_agree(runtime(bench), code);
        if (!common->quiet)
            sl_bench_progress(cell + 1, cells);
    }
    return code;
}

static void print(const struct bench *bench, const json_t *document)
{
    static const struct sl_column columns[] = {
        {"dataset", "dataset", 0, 0},      {"hidden", "hidden", 0, 0},
        {"ranks", "ranks", 0, 0},          {"choice", "choice", 0, 0},
        {"figure", "time of", 0, 0},       {"seconds", "auto, ms", 1e-3, 3},
        {"best_seconds", "best", 1e-3, 3}, {"best", "best alternative", 0, 0},
        {"regret", "regret", 0, 3},        {"regret_low", "95 %", 0, 3},
        {"regret_high", "", 0, 3},         {0},
    };
    printf("regret: time of auto over the best alternative, mean of %d rounds\n\n",
           (int)bench->config.common.repetitions);
    sl_table_print(json_object_get(document, "rows"), columns);
    printf("\ngeometric mean %.3f of %d; above 1.10 beyond the interval: %d\n",
           sl_number(document, "geometric_mean"), (int)sl_number(document, "compared"),
           (int)sl_number(document, "above"));
}

static int create_choices(struct bench *bench)
{
    const struct sl_bench_common *common = &bench->config.common;
    if (common->positionals < 1)
        return sl_error(SL_ERR_USAGE, "bench choices: expected a DATASET, or several");
    if (common->repetitions + PICKING > MOST_ROUNDS)
        return sl_error(SL_ERR_USAGE, "--repetitions %" PRId64 ": expected at most %d",
                        common->repetitions, MOST_ROUNDS - PICKING);
    return sl_bench_parse_list("hidden-list", bench->config.hidden_list, 1, 1 << 20, MOST_HIDDEN,
                               bench->hidden, &bench->widths);
}

static void destroy(struct bench *bench)
{
    (void)bench;
}

static int run_choices(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_choices,
        .reserved = reserved,
        .create = create_choices,
        .measure = measure,
        .print = print,
        .destroy = destroy,
        .on_ranks = true,
        .datasets = INT_MAX,
    };
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return sl_error(SL_ERR_SYSTEM, "no memory for the contestants");
    const int code = sl_bench_run(&part, &bench->config.common, bench, argc, argv);
    free(bench);
    return code;
}

const struct sl_command sl_bench_choices = {
    .name = "bench choices",
    .synopsis = "DATASET... [--OPTION ...] [--OPTION of train ...]",
    .summary =
        "Compare each automatic choice of train with its alternatives on datasets and widths; "
        "under mpirun, the distribution, too",
    .options = options,
    .run = run_choices,
};
