/* Measures how long an epoch takes and what the workers do in it. Of several choices of cores and
 * GPUs, it finds the fastest. */
#include "bench/epoch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/train.h"
#include "core/error.h"
#include "core/profile_view.h"
#include "core/table.h"
#include "core/words.h"

static const struct sl_option options[] = {
    {"tiles-list", SL_OPTION_STRING, offsetof(struct sl_bench_epoch, tiles_list), NULL, 0, 0, NULL,
     "LIST",
     "under mpirun: numbers of tiles, 0 for what train chooses; default: 0 and 1, 2, 4, 8 tiles "
     "for "
     "each rank",
     "Contestants"},
    {"device-list", SL_OPTION_STRING, offsetof(struct sl_bench_epoch, device_list), NULL, 0, 0,
     NULL, "LIST", "not under mpirun: values of --device, e.g. cuda,cpu,both, beside one another",
     "Contestants"},
    {"limit", SL_OPTION_REAL, offsetof(struct sl_bench_epoch, limit), "3600", 0.1, 1e6, NULL,
     "SECONDS", "after which a training counts as hanging and is killed; not under mpirun",
     "Measuring"},
    SL_BENCH_INPUT_OPTIONS(sl_bench_epoch),
    SL_BENCH_OPTIONS(sl_bench_epoch, "3"),
    {0},
};

static const struct sl_bench_reserved reserved[] = {SL_BENCH_RESERVED, {0}};

enum { MOST_DEVICES = 4 };

struct contestant {
    const char *device;            /* NULL: as the words of train say */
    struct sl_bench_run *plain;    // (repetitions)
    struct sl_bench_run *profiled; // (repetitions)
    double *seconds[2];            // (repetitions): median epoch, plain and profiled
};

struct bench {
    struct sl_bench_epoch config;
    const char *dataset;
    struct contestant contestant[MOST_DEVICES];
    int count;
};

/* Train a contestant without (even turn) or with (odd turn) a profile. The turns show what
 * profiling itself costs. */
static int train(struct bench *bench, int turn, int repetition)
{
    struct contestant *c = &bench->contestant[turn / 2];
    const int profile = turn % 2;
    struct sl_bench_run *run = &(profile ? c->profiled : c->plain)[repetition];
    int code = sl_bench_train(&(struct sl_bench_training){.dataset = bench->dataset,
                                                          .common = &bench->config.common,
                                                          .device = c->device,
                                                          .profile = profile,
                                                          .limit = bench->config.limit},
                              run);
    if (!code)
        code = sl_bench_check_ending(run);
    if (!code)
        c->seconds[profile][repetition] = sl_number(run->end, "epoch_seconds_median");
    return code;
}

/* Return the mean seconds of an epoch in a profile. */
static double mean_epoch(const json_t *profile)
{
    return sl_number(profile, "seconds") / sl_number(profile, "epochs");
}

/* Return the profile with the median epoch. Parts of several profiles would not add up. */
static const json_t *middle_profile(const struct contestant *c, int repetitions)
{
    const json_t *best = NULL;
    double *means = calloc((size_t)repetitions, sizeof *means);
    for (int r = 0; means && r < repetitions; r++)
        means[r] = mean_epoch(json_object_get(c->profiled[r].end, "profile"));
    const double median = sl_spread_of(means, means ? repetitions : 0).median;
    for (int r = 0; r < repetitions; r++) {
        const json_t *profile = json_object_get(c->profiled[r].end, "profile");
        if (!best || fabs(mean_epoch(profile) - median) < fabs(mean_epoch(best) - median))
            best = profile;
    }
    free(means);
    return best;
}

/* Add the contestant's breakdown to the rows, and set its figures in `object`. */
static int describe(const struct contestant *c, int repetitions, json_t *object, json_t *rows)
{
    const json_t *profile = middle_profile(c, repetitions);
    if (!json_object_get(profile, "operations"))
        return sl_error(SL_ERR_SYSTEM, "the training left no profile");
    json_t *breakdown = sl_profile_breakdown(profile), *row;
    size_t index;
    json_array_foreach(breakdown, index, row)
    {
        if (c->device)
            json_object_set_new(row, "device", json_string(c->device));
        json_array_append(rows, row);
    }
    json_decref(breakdown);
    sl_bench_set_spread(object, "epoch_seconds", sl_spread_of(c->seconds[0], repetitions));
    sl_bench_set_spread(object, "profiled_epoch_seconds", sl_spread_of(c->seconds[1], repetitions));
    json_object_set_new(
        object, "workers",
        json_integer((json_int_t)json_array_size(json_object_get(profile, "workers"))));
    json_object_set_new(object, "mean_epoch_seconds", json_real(mean_epoch(profile)));
    sl_profile_set_shares(object, profile);
    sl_profile_set_gpus(object, profile);
    return 0;
}

/* Measure all contestants. Without --device-list, the one contestant's figures are members of the
 * document. */
static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const int repetitions = (int)bench->config.common.repetitions;
    json_t *devices = json_array();
    int code =
        sl_bench_take_turns(bench, &bench->config.common, 2 * bench->count, repetitions, train);
    for (int d = 0; !code && d < bench->count; d++) {
        const struct contestant *c = &bench->contestant[d];
        json_t *object = c->device ? json_pack("{s:s}", "device", c->device) : document;
        code = describe(c, repetitions, object, rows);
        if (!c->device)
            continue;
        sl_bench_set_spread(
            object, "times_first",
            sl_spread_of_ratio(c->seconds[0], bench->contestant[0].seconds[0], repetitions));
        json_object_set(object, "loss", json_object_get(c->plain[0].end, "loss"));
        json_array_append_new(devices, object);
    }
    if (bench->config.device_list)
        json_object_set(document, "devices", devices);
    json_decref(devices);
    if (!code)
        sl_bench_describe(document, bench->dataset, &bench->contestant[0].plain[0]);
    return code;
}

static void print_contestant(const struct bench *bench, const json_t *object)
{
    const char *device = json_string_value(json_object_get(object, "device"));
    printf("%s%s%s: median epoch of %d run%s %.3f ms (quartiles %.3f to %.3f)\n", bench->dataset,
           device ? ", --device " : "", device ? device : "", (int)bench->config.common.repetitions,
           sl_s(bench->config.common.repetitions), 1e3 * sl_number(object, "epoch_seconds"),
           1e3 * sl_number(object, "epoch_seconds_low"),
           1e3 * sl_number(object, "epoch_seconds_high"));
    printf("with a profile %.3f ms (%.3f to %.3f); mean over the epochs of the one below %.3f ms\n",
           1e3 * sl_number(object, "profiled_epoch_seconds"),
           1e3 * sl_number(object, "profiled_epoch_seconds_low"),
           1e3 * sl_number(object, "profiled_epoch_seconds_high"),
           1e3 * sl_number(object, "mean_epoch_seconds"));
    printf("%.0f workers' time in one epoch; overhead is %.1f %% of it, %.2f us per task\n",
           sl_number(object, "workers"), 1e2 * sl_number(object, "overhead_share"),
           1e6 * sl_number(object, "task_overhead_seconds"));
    sl_profile_print_gpus(object);
    putchar('\n');
}

/* Return the rows of one device. */
static json_t *rows_of(const json_t *rows, const json_t *device)
{
    json_t *some = json_array(), *row;
    size_t index;
    json_array_foreach((json_t *)rows, index, row)
    {
        if (json_equal(json_object_get(row, "device"), device))
            json_array_append(some, row);
    }
    return some;
}

static void print_devices(const struct bench *bench, const json_t *document)
{
    static const struct sl_column columns[] = {
        {"device", "--device", 0, 0},
        {"workers", "workers", 0, 0},
        {"epoch_seconds", "ms/epoch", 1e-3, 3},
        {"epoch_seconds_low", "quartiles", 1e-3, 3},
        {"epoch_seconds_high", "", 1e-3, 3},
        {"times_first", "x the first", 0, 3},
        {"times_first_low", "quartiles", 0, 3},
        {"times_first_high", "", 0, 3},
        {"loss", "loss", 0, 4},
        {0},
    };
    const json_t *devices = json_object_get(document, "devices"), *object;
    size_t index;
    json_array_foreach((json_t *)devices, index, object)
    {
        json_t *rows =
            rows_of(json_object_get(document, "rows"), json_object_get(object, "device"));
        print_contestant(bench, object);
        sl_profile_print(rows);
        putchar('\n');
        json_decref(rows);
    }
    sl_table_print(devices, columns);
}

static void print(const struct bench *bench, const json_t *document)
{
    if (bench->config.device_list) {
        print_devices(bench, document);
        return;
    }
    print_contestant(bench, document);
    sl_profile_print(json_object_get(document, "rows"));
}

/* ---- Who takes part ---- */

/* Make a contestant for each name in --device-list. Names are --device's values. */
static int choose_devices(struct bench *bench)
{
    static const char *const names[] = {"cuda", "cpu", "both", "auto"};
    if (!bench->config.device_list) {
        bench->count = 1;
        return 0;
    }
    for (const char *at = bench->config.device_list;; at++) {
        const size_t length = strcspn(at, ",");
        const char *name = NULL;
        for (int n = 0; n < MOST_DEVICES; n++)
            if (strlen(names[n]) == length && strncmp(names[n], at, length) == 0)
                name = names[n];
        for (int d = 0; d < bench->count; d++)
            if (bench->contestant[d].device == name)
                name = NULL;
        if (!name)
            return sl_error(SL_ERR_USAGE,
                            "--device-list: expected some of cuda, cpu, both, auto, each once, "
                            "with commas between, not \"%s\"",
                            bench->config.device_list);
        bench->contestant[bench->count++].device = name;
        at += length;
        if (!*at)
            return 0;
    }
}

static int create_contestant(struct contestant *c, size_t repetitions)
{
    c->plain = calloc(repetitions, sizeof *c->plain);
    c->profiled = calloc(repetitions, sizeof *c->profiled);
    for (int s = 0; s < 2; s++)
        c->seconds[s] = calloc(repetitions, sizeof(double));
    if (!c->plain || !c->profiled || !c->seconds[0] || !c->seconds[1])
        return sl_error(SL_ERR_SYSTEM, "no memory for the figures of %zu runs", repetitions);
    return 0;
}

static int create_epoch(struct bench *bench)
{
    if (bench->config.tiles_list)
        return sl_error(SL_ERR_USAGE, "--tiles-list: is for ranks; start it with mpirun");
    int code = choose_devices(bench);
    for (int d = 0; !code && d < bench->count; d++)
        code = create_contestant(&bench->contestant[d], (size_t)bench->config.common.repetitions);
    return code ? code
                : sl_bench_input_path(&bench->config.input, &bench->config.common, &bench->dataset);
}

static void destroy(struct bench *bench)
{
    for (int d = 0; d < bench->count; d++) {
        struct contestant *c = &bench->contestant[d];
        for (int r = 0; c->plain && c->profiled && r < bench->config.common.repetitions; r++) {
            sl_bench_run_free(&c->plain[r]);
            sl_bench_run_free(&c->profiled[r]);
        }
        free(c->plain);
        free(c->profiled);
        free(c->seconds[0]);
        free(c->seconds[1]);
    }
    sl_bench_input_remove(&bench->config.input);
}

static int run_epoch(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_epoch,
        .reserved = reserved,
        .create = create_epoch,
        .measure = measure,
        .print = print,
        .destroy = destroy,
        .datasets = 1,
    };
    struct bench bench = {0};
    if (sl_runtime_launched())
        return sl_bench_tiles_run(argc, argv);
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}

const struct sl_command sl_bench_epoch = {
    .name = "bench epoch",
    .synopsis = "DATASET | --like NAME [--OPTION ...] [--OPTION of train ...]",
    .summary = "Train on DATASET and break the workers' time in an epoch down by operation; under "
               "mpirun, compare numbers of tiles",
    .options = options,
    .run = run_epoch,
};
