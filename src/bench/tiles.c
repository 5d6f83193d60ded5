/* starling bench epoch on ranks: one training with several numbers of tiles. It measures how even
 * the tiles are, how much of the messages' time is hidden, and the memory of the tiles. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/epoch.h"
#include "bench/train.h"
#include "core/error.h"
#include "core/profile_view.h"
#include "core/table.h"
#include "core/words.h"

enum { MOST_TILES = 16 };

/* Figures of every run: means over the ranks. */
enum figure { EPOCH, COMPUTE, COMMUNICATION, HIDDEN, FIGURES };

static const char *const names[] = {"epoch_seconds", "compute_seconds", "communication_seconds",
                                    "hidden_seconds"};

struct contestant {
    int tiles;                /* 0: train chooses */
    double *figures[FIGURES]; // (repetitions)
    struct sl_bench_run run;  /* the last one */
};

struct bench {
    struct sl_bench_epoch config;
    const char *dataset;
    struct contestant contestant[MOST_TILES];
    int count;
};

static const struct sl_bench_reserved reserved[] = {
    SL_BENCH_RESERVED, {"tiles", "--tiles-list"}, {0}};

/* ---- Runs ---- */

/* Return the mean of a list with one number for each rank. */
static double mean(const json_t *list)
{
    double sum = 0.0;
    size_t index;
    const json_t *value;
    json_array_foreach((json_t *)list, index, value) sum += json_number_value(value);
    return sum / (double)json_array_size(list);
}

static void take(struct contestant *contestant, int repetition, const struct sl_bench_run *run)
{
    const json_t *times = json_object_get(run->end, "time_per_epoch");
    contestant->figures[EPOCH][repetition] = sl_number(run->end, "epoch_seconds_median");
    for (int f = COMPUTE; f < FIGURES; f++)
        contestant->figures[f][repetition] = mean(json_object_get(times, names[f]));
    sl_bench_run_free(&contestant->run);
    contestant->run = *run;
}

static int train(struct bench *bench, int c, int repetition)
{
    struct contestant *contestant = &bench->contestant[c];
    struct sl_bench_run run;
    int code = sl_bench_train(&(struct sl_bench_training){.dataset = bench->dataset,
                                                          .common = &bench->config.common,
                                                          .tiles = contestant->tiles,
                                                          .limit = bench->config.limit},
                              &run);
    if (!code)
        code = sl_bench_check_ending(&run);
    if (code)
        sl_bench_run_free(&run);
    else
        take(contestant, repetition, &run);
    return code;
}

/* ---- What comes out ---- */

static json_t *row_of(const struct bench *bench, const struct contestant *c)
{
    const int repetitions = (int)bench->config.common.repetitions;
    const json_t *imbalance = json_object_get(c->run.start, "imbalance");
    json_t *row = json_pack(
        "{s:i, s:O, s:s, s:O, s:O, s:O, s:O, s:O, s:O}", "ranks", bench->config.common.rt.ranks,
        "tiles", json_object_get(c->run.start, "tiles"), "chosen_by", c->tiles ? "list" : "train",
        "tile_imbalance", json_object_get(imbalance, "tiles"), "rank_imbalance",
        json_object_get(imbalance, "ranks"), "time_per_epoch",
        json_object_get(c->run.end, "time_per_epoch"), "traffic_per_epoch",
        json_object_get(c->run.end, "traffic_per_epoch"), "planned_bytes",
        json_object_get(json_object_get(c->run.start, "planned_bytes"), "total"), "tile_bytes",
        json_object_get(c->run.end, "tile_bytes"));
    for (int f = 0; f < FIGURES; f++)
        sl_bench_set_spread(row, names[f], sl_spread_of(c->figures[f], repetitions));
    sl_bench_set_spread(
        row, "hidden_share",
        sl_spread_of_ratio(c->figures[HIDDEN], c->figures[COMMUNICATION], repetitions));
    return row;
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const struct sl_bench_common *common = &bench->config.common;
    const int code =
        sl_bench_take_turns(bench, common, bench->count, (int)common->repetitions, train);
    if (code || common->rt.rank > 0)
        return code;
    for (int c = 0; c < bench->count; c++)
        json_array_append_new(rows, row_of(bench, &bench->contestant[c]));
    sl_bench_describe(document, bench->dataset, &bench->contestant[0].run);
    return 0;
}

static void print(const struct bench *bench, const json_t *document)
{
    static const double MIB = 1 << 20;
    const struct sl_column columns[] = {
        {"ranks", "ranks", 0, 0},
        {"tiles", "tiles", 0, 0},
        {"chosen_by", "chosen by", 0, 0},
        {"epoch_seconds", "ms/epoch", 1e-3, 3},
        {"epoch_seconds_low", "quartiles", 1e-3, 3},
        {"epoch_seconds_high", "", 1e-3, 3},
        {"tile_imbalance", "tiles'", 0, 3},
        {"rank_imbalance", "ranks'", 0, 3},
        {"compute_seconds", "compute", 1e-3, 3},
        {"communication_seconds", "communicate", 1e-3, 3},
        {"hidden_share", "hidden %", 1e-2, 1},
        {"planned_bytes", "MiB planned", MIB, 1},
        {"tile_bytes", "taken", MIB, 1},
        {0},
    };
    printf("%s: median epoch of %d run%s; tiles', ranks': nonzeros, largest / mean; compute, "
           "communicate: ms of an epoch,\nmean over ranks; memory: of the rank with most\n\n",
           bench->dataset, (int)bench->config.common.repetitions,
           sl_s(bench->config.common.repetitions));
    sl_table_print(json_object_get(document, "rows"), columns);
}

/* ---- Who takes part ---- */

static int choose_tiles(struct bench *bench)
{
    const int64_t ranks = bench->config.common.rt.ranks;
    int64_t tiles[MOST_TILES] = {0, ranks, 2 * ranks, 4 * ranks, 8 * ranks};
    bench->count = 5;
    if (bench->config.tiles_list) {
        const int code = sl_bench_parse_list("tiles-list", bench->config.tiles_list, 0, 65536,
                                             MOST_TILES, tiles, &bench->count);
        if (code)
            return code;
    }
    for (int c = 0; c < bench->count; c++)
        bench->contestant[c].tiles = (int)tiles[c];
    return 0;
}

static int create_tiles(struct bench *bench)
{
    const size_t repetitions = (size_t)bench->config.common.repetitions;
    if (bench->config.device_list)
        return sl_error(SL_ERR_USAGE, "--device-list: is not for ranks; --device is");
    const int code = choose_tiles(bench);
    if (code)
        return code;
    for (int c = 0; c < bench->count; c++)
        for (int f = 0; f < FIGURES; f++) {
            bench->contestant[c].figures[f] = calloc(repetitions, sizeof(double));
            if (!bench->contestant[c].figures[f])
                return sl_error(SL_ERR_SYSTEM, "no memory for the figures of %zu runs",
                                repetitions);
        }
    return sl_bench_input_path(&bench->config.input, &bench->config.common, &bench->dataset);
}

static void destroy(struct bench *bench)
{
    for (int c = 0; c < bench->count; c++) {
        sl_bench_run_free(&bench->contestant[c].run);
        for (int f = 0; f < FIGURES; f++)
            free(bench->contestant[c].figures[f]);
    }
    sl_bench_input_remove(&bench->config.input);
}

int sl_bench_tiles_run(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_epoch,
        .reserved = reserved,
        .create = create_tiles,
        .measure = measure,
        .print = print,
        .destroy = destroy,
        .on_ranks = true,
        .datasets = 1,
    };
    struct bench bench = {0};
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}
