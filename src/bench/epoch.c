/* Measures how long an epoch takes and what the workers do in it. Of several choices of cores and
 * GPUs, it finds the fastest. */
#include "bench/epoch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/contest.h"
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

/* Each device has two entries, without and with a profile. The two show what profiling itself
 * costs. */
struct bench {
    struct sl_bench_epoch config;
    const char *device[MOST_DEVICES]; // (count); NULL: as the words of train say
    int count;
    struct sl_bench_contest contest; /* of 2 count entries */
};

/* Return the mean seconds of an epoch in a profile. */
static double mean_epoch(const json_t *profile)
{
    return sl_number(profile, "seconds") / sl_number(profile, "epochs");
}

/* Return the profile with the median epoch. Parts of several profiles would not add up. */
static const json_t *middle_profile(const struct sl_bench_entry *profiled, int rounds)
{
    const json_t *best = NULL;
    double means[SL_BENCH_MOST_REPETITIONS] = {0};
    for (int r = 0; r < rounds; r++)
        means[r] = mean_epoch(json_object_get(profiled->runs[r].end, "profile"));
    const double median = sl_spread_of(means, rounds).median;
    for (int r = 0; r < rounds; r++) {
        const json_t *profile = json_object_get(profiled->runs[r].end, "profile");
        if (!best || fabs(means[r] - median) < fabs(mean_epoch(best) - median))
            best = profile;
    }
    return best;
}

/* Add a device's breakdown to the rows, and set its figures in `object`. `plain` is its first
 * entry.
 */
static int describe(const struct sl_bench_entry *plain, const char *device, int rounds,
                    json_t *object, json_t *rows)
{
    const json_t *profile = middle_profile(plain + 1, rounds);
    if (!json_object_get(profile, "operations"))
        return sl_error(SL_ERR_SYSTEM, "the training left no profile");
    json_t *breakdown = sl_profile_breakdown(profile), *row;
    size_t index;
    json_array_foreach(breakdown, index, row)
    {
        if (device)
            json_object_set_new(row, "device", json_string(device));
        json_array_append(rows, row);
    }
    json_decref(breakdown);
    sl_bench_set_spread(object, "epoch_seconds", sl_spread_of(plain->seconds, rounds));
    sl_bench_set_spread(object, "profiled_epoch_seconds", sl_spread_of(plain[1].seconds, rounds));
    json_object_set_new(
        object, "workers",
        json_integer((json_int_t)json_array_size(json_object_get(profile, "workers"))));
    json_object_set_new(object, "mean_epoch_seconds", json_real(mean_epoch(profile)));
    sl_profile_set_shares(object, profile);
    sl_profile_set_gpus(object, profile);
    return 0;
}

/* Measure all devices. Without --device-list, the figures of the one contestant are members of the
 * document. */
static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const struct sl_bench_contest *contest = &bench->contest;
    json_t *devices = json_array();
    int code = sl_bench_contest_run(&bench->contest);
    for (int d = 0; !code && d < bench->count; d++) {
        const struct sl_bench_entry *plain = &contest->entries[2 * d];
        const char *device = bench->device[d];
        json_t *object = device ? json_pack("{s:s}", "device", device) : document;
        code = describe(plain, device, contest->rounds, object, rows);
        if (!device)
            continue;
        sl_bench_set_spread(
            object, "times_first",
            sl_spread_of_ratio(plain->seconds, contest->entries[0].seconds, contest->rounds));
        json_object_set(object, "loss", json_object_get(plain->runs[0].end, "loss"));
        json_array_append_new(devices, object);
    }
    if (bench->config.device_list)
        json_object_set(document, "devices", devices);
    json_decref(devices);
    if (!code)
        sl_bench_describe(document, contest, &contest->entries[0].runs[0]);
    return code;
}

static void print_contestant(const struct bench *bench, const json_t *object)
{
    const char *device = json_string_value(json_object_get(object, "device"));
    printf("%s%s%s: median epoch of %d run%s %.3f ms (quartiles %.3f to %.3f)\n",
           bench->contest.dataset, device ? ", --device " : "", device ? device : "",
           (int)bench->config.common.repetitions, sl_s(bench->config.common.repetitions),
           1e3 * sl_number(object, "epoch_seconds"), 1e3 * sl_number(object, "epoch_seconds_low"),
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
            if (bench->device[d] == name)
                name = NULL;
        if (!name)
            return sl_error(SL_ERR_USAGE,
                            "--device-list: expected some of cuda, cpu, both, auto, each once, "
                            "with commas between, not \"%s\"",
                            bench->config.device_list);
        bench->device[bench->count++] = name;
        at += length;
        if (!*at)
            return 0;
    }
}

static int create_epoch(struct bench *bench)
{
    struct sl_bench_common *common = &bench->config.common;
    if (bench->config.tiles_list)
        return sl_error(SL_ERR_USAGE, "--tiles-list: is for ranks; start it with mpirun");
    int code = choose_devices(bench);
    if (!code)
        code =
            sl_bench_contest_create(&bench->contest, common, 2 * bench->count, common->repetitions);
    for (int e = 0; !code && e < 2 * bench->count; e++) {
        struct sl_bench_entry *entry = &bench->contest.entries[e];
        entry->words[0] = bench->device[e / 2] ? "--device" : NULL;
        entry->words[1] = bench->device[e / 2];
        entry->profile = e % 2;
    }
    bench->contest.limit = bench->config.limit;
    return code ? code : sl_bench_input_path(&bench->config.input, common, &bench->contest.dataset);
}

static void destroy(struct bench *bench)
{
    sl_bench_contest_destroy(&bench->contest);
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
