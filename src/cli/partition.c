/* starling partition: cuts a graph into parts of edges or vertices, and writes the part of each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/measure.h"
#include "cli/commands.h"
#include "cli/talk.h"
#include "core/error.h"
#include "core/file.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/runtime.h"
#include "core/table.h"
#include "core/words.h"
#include "data/block.h"
#include "data/partition/edge_parts.h"
#include "data/partition/parts.h"

struct config {
    char *method, *out, *json;
    int64_t parts, seed;
    double lambda;
    struct sl_talk talk;
};

#define FIELD(name) offsetof(struct config, name)

enum { METHOD, PARTS }; /* options that must be given */

static const struct sl_option options[] = {
    {"method", SL_OPTION_NAME, FIELD(method), NULL, 0, 0, SL_PARTS_METHODS, "NAME",
     "libra and hdrf give every edge to a part and clone vertices; metis and random give every "
     "vertex to a part",
     "Partition"},
    {"parts", SL_OPTION_INT, FIELD(parts), NULL, 1, SL_EDGE_PARTS_MOST, NULL, "K",
     "number of parts", "Partition"},
    {"seed", SL_OPTION_INT, FIELD(seed), "0", 0, 9e15, NULL, "N",
     "seed of the order of the edges, of METIS, of random parts", "Partition"},
    {"lambda", SL_OPTION_REAL, FIELD(lambda), "1", 0, 1e6, NULL, "X",
     "with hdrf: what even parts are worth against few clones", "Partition"},
    {"out", SL_OPTION_STRING, FIELD(out), NULL, 0, 0, NULL, "FILE",
     "write FILE, a .npy file, and the .json file beside it; default: NAME-METHOD-K.npy in the "
     "current directory, after the last name of DATASET",
     "Output"},
    {"json", SL_OPTION_STRING, FIELD(json), NULL, 0, 0, NULL, "FILE",
     "write the figures to FILE, too", "Output"},
    SL_TALK_OPTIONS(config, "print nothing", "Output"),
    {0},
};

static json_t *row_of(const struct sl_parts *parts, const json_t *report, double seconds)
{
    json_t *row = json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:f}", "method", parts->method, "kind",
                            parts->of_edges ? "edges" : "vertices", "parts", parts->parts, "seed",
                            (json_int_t)parts->seed, "vertices", (json_int_t)parts->vertices,
                            "entries", (json_int_t)parts->entries, "seconds", seconds);
    json_object_update(row, (json_t *)report);
    return row;
}

static void print(const struct sl_dataset *data, const struct sl_parts *parts, const json_t *row,
                  const char *path)
{
    static const struct sl_column edges[] = {
        {"method", "method", 0, 0},
        {"parts", "parts", 0, 0},
        {"replication_factor", "replication", 0, 3},
        {"random_replication_factor", "at random", 0, 3},
        {"split_vertices", "% split", 0.01, 1},
        {"edge_balance", "edges max/mean", 0, 3},
        {"vertex_balance", "vertices max/mean", 0, 3},
        {"seconds", "seconds", 0, 3},
        {0},
    };
    static const struct sl_column vertices[] = {
        {"method", "method", 0, 0},
        {"parts", "parts", 0, 0},
        {"cut_edges", "% edges cut", 0.01, 1},
        {"halo_vertices", "halo/vertices", 0, 3},
        {"edge_balance", "edges max/mean", 0, 3},
        {"vertex_balance", "vertices max/mean", 0, 3},
        {"seconds", "seconds", 0, 3},
        {0},
    };
    json_t *rows = json_pack("[O]", row);
    printf("%s: %" PRId64 " %s, %" PRId64 " adjacency %s\n\n", data->name, data->vertices,
           sl_vertices(data->vertices), parts->entries, sl_entries(parts->entries));
    sl_table_print(rows, parts->of_edges ? edges : vertices);
    printf("\nwritten to %s and the .json file beside it\n", path);
    json_decref(rows);
}

static int write_parts(const struct config *config, const struct sl_dataset *data,
                       const struct sl_parts *parts, const char *path, double seconds)
{
    json_t *report = sl_parts_report(data, parts);
    if (!report)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory", data->name);
    json_t *row = row_of(parts, report, seconds);
    int code = sl_parts_write(parts, report, path);
    if (!code && !config->talk.quiet)
        print(data, parts, row, path);
    if (!code)
        code = sl_bench_write(json_incref(row), config->json);
    json_decref(row);
    json_decref(report);
    return code;
}

/* Refuse more parts than there are vertices, or edges, to cut. */
static int check_parts(const struct config *config, const struct sl_dataset *data,
                       const char *dataset)
{
    const bool of_edges = sl_parts_find_method(config->method)->of_edges;
    const int64_t most = of_edges ? data->adjacency.indptr[data->vertices] : data->vertices;
    return config->parts <= most || config->parts == 1
               ? 0
               : sl_error(SL_ERR_USAGE, "--parts %lld: %s has %lld %s (expected no more parts)",
                          (long long)config->parts, dataset, (long long)most,
                          of_edges ? "adjacency entries" : "vertices");
}

/* Cut the dataset and write its parts to `path`. */
static int partition(const struct config *config, const char *dataset, const char *path)
{
    const struct sl_parts_options cut = {.method = sl_parts_find_method(config->method),
                                         .parts = (int)config->parts,
                                         .seed = (uint64_t)config->seed,
                                         .lambda = config->lambda};
    struct sl_dataset data = {0};
    struct sl_parts parts = {0};
    int code = sl_dataset_open(dataset, &data);
    if (code)
        return code;
    if (data.merged_edges > 0)
        sl_note("%s: %" PRId64 " duplicate edge%s merged: each has one part", dataset,
                data.merged_edges, sl_plural(data.merged_edges, " was", "s were"));
    const double start = sl_runtime_seconds();
    code = check_parts(config, &data, dataset);
    if (!code)
        code = sl_parts_make(&data, &cut, &parts);
    if (!code)
        code = write_parts(config, &data, &parts, path, sl_runtime_seconds() - start);
    sl_parts_close(&parts);
    sl_dataset_close(&data);
    return code;
}

/* Partition while no other run writes the same files. Ranks of a launcher all write the same, one
 * by one: the lock is rank 0's. */
static int partition_alone(const struct config *config, const char *dataset)
{
    struct sl_parts named = {.parts = (int)config->parts};
    struct sl_file_lock lock = {.held = false};
    snprintf(named.method, sizeof named.method, "%s", config->method);
    const char *path = config->out ? config->out : sl_parts_path(dataset, &named, &named.blocks);
    int code = path ? 0 : sl_error(SL_ERR_SYSTEM, "%s: out of memory", dataset);
    if (!code && sl_launcher_rank() == 0)
        code = sl_file_lock(&lock, path);
    if (!code)
        code = partition(config, dataset, path);
    sl_file_unlock(&lock);
    sl_block_free_all(&named.blocks);
    return code;
}

/* Refuse to write into the current directory if it is a dataset and --out was not given. */
static int check_place(const struct config *config)
{
    if (config->out || access("meta.json", F_OK) != 0)
        return 0;
    return sl_error(SL_ERR_USAGE, "--out is missing: the current directory is a dataset (expected "
                                  "--out FILE, or another directory)");
}

static int check_given(const bool *given)
{
    if (!given[METHOD])
        return sl_error(SL_ERR_USAGE, "--method is missing: expected one of: libra, hdrf, metis, "
                                      "random");
    if (!given[PARTS])
        return sl_error(SL_ERR_USAGE, "--parts is missing: expected the number of parts");
    return 0;
}

static int run_partition(int argc, char **argv)
{
    struct config config;
    int positionals;
    bool given[sizeof options / sizeof *options] = {false};
    int code =
        sl_command_parse(&sl_command_partition, &config, argc, argv, 1, 1, &positionals, given);
    if (!code)
        sl_talk_begin(&config.talk, true);
    if (!code)
        code = check_given(given);
    if (!code)
        code = check_place(&config);
    if (!code)
        code = sl_file_probe(config.json);
    if (!code)
        code = partition_alone(&config, argv[0]);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_partition = {
    .name = "partition",
    .synopsis = "DATASET --method NAME --parts K [--OPTION ...]",
    .summary =
        "Cut a graph into parts of edges (vertex-cut) or of vertices (edge-cut), and say how "
        "good they are",
    .options = options,
    .run = run_partition,
};
