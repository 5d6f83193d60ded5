/* starling bench epoch on ranks: one training with several numbers of tiles. It measures how even
 * the tiles are, how much of the messages' time is hidden, and the memory of the tiles. */
#include <stdio.h>

#include "bench/contest.h"
#include "bench/epoch.h"
#include "core/error.h"
#include "core/profile_view.h"
#include "core/table.h"
#include "core/words.h"

enum { MOST_TILES = 16 };

/* Figures of every run beside the median epoch: means over the ranks. */
enum figure { COMPUTE, COMMUNICATION, HIDDEN, FIGURES };

static const char *const names[] = {"compute_seconds", "communication_seconds", "hidden_seconds"};

struct bench {
    struct sl_bench_epoch config;
    struct sl_bench_contest contest; /* entries without words: train chooses the tiles */
};

static const struct sl_bench_reserved reserved[] = {
    SL_BENCH_RESERVED, {"tiles", "--tiles-list"}, {0}};

/* ---- What comes out ---- */

/* Return the mean of a list with one number for each rank. */
static double mean(const json_t *list)
{
    double sum = 0.0;
    size_t index;
    const json_t *value;
    json_array_foreach((json_t *)list, index, value) sum += json_number_value(value);
    return sum / (double)json_array_size(list);
}

static json_t *row_of(const struct sl_bench_contest *contest, const struct sl_bench_entry *e)
{
    const struct sl_bench_run *run = sl_bench_entry_last(e);
    const json_t *imbalance = json_object_get(run->start, "imbalance");
    double figures[FIGURES][SL_BENCH_MOST_REPETITIONS];
    json_t *row = json_pack(
        "{s:i, s:O, s:s, s:O, s:O, s:O, s:O, s:O, s:O}", "ranks", contest->common->rt.ranks,
        "tiles", json_object_get(run->start, "tiles"), "chosen_by", e->words[0] ? "list" : "train",
        "tile_imbalance", json_object_get(imbalance, "tiles"), "rank_imbalance",
        json_object_get(imbalance, "ranks"), "time_per_epoch",
        json_object_get(run->end, "time_per_epoch"), "traffic_per_epoch",
        json_object_get(run->end, "traffic_per_epoch"), "planned_bytes",
        json_object_get(json_object_get(run->start, "planned_bytes"), "total"), "tile_bytes",
        json_object_get(run->end, "tile_bytes"));
    sl_bench_set_spread(row, "epoch_seconds", sl_spread_of(e->seconds, contest->rounds));
    for (int f = 0; f < FIGURES; f++) {
        for (int r = 0; r < contest->rounds; r++)
            figures[f][r] =
                mean(json_object_get(json_object_get(e->runs[r].end, "time_per_epoch"), names[f]));
        sl_bench_set_spread(row, names[f], sl_spread_of(figures[f], contest->rounds));
    }
    sl_bench_set_spread(
        row, "hidden_share",
        sl_spread_of_ratio(figures[HIDDEN], figures[COMMUNICATION], contest->rounds));
    return row;
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const struct sl_bench_contest *contest = &bench->contest;
    const int code = sl_bench_contest_run(&bench->contest);
    if (code || contest->common->rt.rank > 0)
        return code;
    for (int e = 0; e < contest->count; e++)
        json_array_append_new(rows, row_of(contest, &contest->entries[e]));
    sl_bench_describe(document, contest, sl_bench_entry_last(&contest->entries[0]));
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
           bench->contest.dataset, (int)bench->config.common.repetitions,
           sl_s(bench->config.common.repetitions));
    sl_table_print(json_object_get(document, "rows"), columns);
}

/* ---- Who takes part ---- */

static int create_tiles(struct bench *bench)
{
    struct sl_bench_common *common = &bench->config.common;
    const int64_t ranks = common->rt.ranks;
    int64_t tiles[MOST_TILES] = {0, ranks, 2 * ranks, 4 * ranks, 8 * ranks};
    int count = 5;
    if (bench->config.device_list)
        return sl_error(SL_ERR_USAGE, "--device-list: is not for ranks; --device is");
    int code = bench->config.tiles_list
                   ? sl_bench_parse_list("tiles-list", bench->config.tiles_list, 0, 65536,
                                         MOST_TILES, tiles, &count)
                   : 0;
    if (!code)
        code = sl_bench_contest_create(&bench->contest, common, count, common->repetitions);
    for (int e = 0; !code && e < count; e++)
        if (tiles[e] > 0)
            sl_bench_entry_number(&bench->contest.entries[e], "--tiles", tiles[e]);
    bench->contest.limit = bench->config.limit;
    return code ? code : sl_bench_input_path(&bench->config.input, common, &bench->contest.dataset);
}

static void destroy(struct bench *bench)
{
    sl_bench_contest_destroy(&bench->contest);
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
