/* How long an epoch takes and what the workers do in it. */
#include "cli/bench_epoch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/bench_measure.h"
#include "cli/bench_train.h"
#include "cli/profile_view.h"
#include "core/error.h"

static const struct sl_option options[] = {
    {"tiles-list", SL_OPTION_STRING, offsetof(struct sl_bench_epoch, tiles_list), NULL, 0, 0, NULL,
     "LIST",
     "under mpirun: numbers of tiles, 0 for what train chooses; default: 0 and 1, 2, 4, 8 tiles "
     "for "
     "each rank",
     "Contestants"},
    {"limit", SL_OPTION_REAL, offsetof(struct sl_bench_epoch, limit), "3600", 0.1, 1e6, NULL,
     "SECONDS", "after which a training counts as hanging and is killed; not under mpirun",
     "Measuring"},
    SL_BENCH_INPUT_OPTIONS(sl_bench_epoch),
    SL_BENCH_OPTIONS(sl_bench_epoch, "3"),
    {0},
};

static const struct sl_bench_reserved reserved[] = {
    {"log", "--json"}, {"profile", NULL}, {"checkpoint", NULL}, {0}};

struct bench {
    struct sl_bench_epoch config;
    const char *dataset;
    struct sl_bench_run *plain;    // (repetitions)
    struct sl_bench_run *profiled; // (repetitions)
    double *seconds[2];            // (repetitions), median epoch: plain, profiled
};

/* Without or with a profile: as these take turns, what profiling itself costs is in the figures. */
static int train(struct bench *bench, int profile, int repetition)
{
    struct sl_bench_run *run = &(profile ? bench->profiled : bench->plain)[repetition];
    int code = sl_bench_train(&(struct sl_bench_training){.dataset = bench->dataset,
                                                          .common = &bench->config.common,
                                                          .profile = profile,
                                                          .limit = bench->config.limit},
                              run);
    if (!code)
        code = sl_bench_check_ending(run);
    if (!code)
        bench->seconds[profile][repetition] = sl_number(run->end, "epoch_seconds_median");
    return code;
}

/* Mean time of an epoch in a profile. */
static double mean_epoch(const json_t *profile)
{
    return sl_number(profile, "seconds") / sl_number(profile, "epochs");
}

/* The profile whose epochs took a median time: one whole profile, because parts of several would
 * not add up. */
static const json_t *middle_profile(const struct bench *bench)
{
    const int repetitions = (int)bench->config.common.repetitions;
    const json_t *best = NULL;
    double *means = calloc((size_t)repetitions, sizeof *means);
    for (int r = 0; means && r < repetitions; r++)
        means[r] = mean_epoch(json_object_get(bench->profiled[r].end, "profile"));
    const double median = sl_spread_of(means, means ? repetitions : 0).median;
    for (int r = 0; r < repetitions; r++) {
        const json_t *profile = json_object_get(bench->profiled[r].end, "profile");
        if (!best || fabs(mean_epoch(profile) - median) < fabs(mean_epoch(best) - median))
            best = profile;
    }
    free(means);
    return best;
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const int repetitions = (int)bench->config.common.repetitions;
    const int code = sl_bench_take_turns(bench, &bench->config.common, 2, repetitions, train);
    if (code)
        return code;
    const json_t *profile = middle_profile(bench);
    if (!json_object_get(profile, "operations"))
        return sl_error(SL_ERR_SYSTEM, "the training left no profile");
    json_t *breakdown = sl_profile_breakdown(profile);
    json_array_extend(rows, breakdown);
    json_decref(breakdown);
    sl_bench_describe(document, bench->dataset, &bench->plain[0]);
    sl_bench_set_spread(document, "epoch_seconds", sl_spread_of(bench->seconds[0], repetitions));
    sl_bench_set_spread(document, "profiled_epoch_seconds",
                        sl_spread_of(bench->seconds[1], repetitions));
    json_object_set_new(
        document, "workers",
        json_integer((json_int_t)json_array_size(json_object_get(profile, "workers"))));
    json_object_set_new(document, "mean_epoch_seconds", json_real(mean_epoch(profile)));
    sl_profile_set_shares(document, profile);
    return 0;
}

static void print(const struct bench *bench, const json_t *document)
{
    printf("%s: median epoch of %d runs %.3f ms (quartiles %.3f to %.3f)\n", bench->dataset,
           (int)bench->config.common.repetitions, 1e3 * sl_number(document, "epoch_seconds"),
           1e3 * sl_number(document, "epoch_seconds_low"),
           1e3 * sl_number(document, "epoch_seconds_high"));
    printf("with a profile %.3f ms (%.3f to %.3f); mean over the epochs of the one below %.3f ms\n",
           1e3 * sl_number(document, "profiled_epoch_seconds"),
           1e3 * sl_number(document, "profiled_epoch_seconds_low"),
           1e3 * sl_number(document, "profiled_epoch_seconds_high"),
           1e3 * sl_number(document, "mean_epoch_seconds"));
    printf("%.0f workers' time in one epoch; overhead is %.1f %% of it, %.2f us per task\n\n",
           sl_number(document, "workers"), 1e2 * sl_number(document, "overhead_share"),
           1e6 * sl_number(document, "task_overhead_seconds"));
    sl_profile_print(json_object_get(document, "rows"));
}

static int create(struct bench *bench)
{
    if (bench->config.tiles_list)
        return sl_error(SL_ERR_USAGE, "--tiles-list: is for ranks; start it with mpirun");
    const size_t repetitions = (size_t)bench->config.common.repetitions;
    bench->plain = calloc(repetitions, sizeof *bench->plain);
    bench->profiled = calloc(repetitions, sizeof *bench->profiled);
    for (int s = 0; s < 2; s++)
        bench->seconds[s] = calloc(repetitions, sizeof(double));
    if (!bench->plain || !bench->profiled || !bench->seconds[0] || !bench->seconds[1])
        return sl_error(SL_ERR_SYSTEM, "no memory for the figures of %zu runs", repetitions);
    return sl_bench_input_path(&bench->config.input, &bench->config.common, &bench->dataset);
}

static void destroy(struct bench *bench)
{
    for (int r = 0; bench->plain && bench->profiled && r < bench->config.common.repetitions; r++) {
        sl_bench_run_free(&bench->plain[r]);
        sl_bench_run_free(&bench->profiled[r]);
    }
    free(bench->plain);
    free(bench->profiled);
    free(bench->seconds[0]);
    free(bench->seconds[1]);
    sl_bench_input_remove(&bench->config.input);
}

static int run(int argc, char **argv)
{
    static const struct sl_bench_part part = {&sl_bench_epoch, reserved, create,  measure,
                                              print,           NULL,     destroy, false};
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
    .run = run,
};
