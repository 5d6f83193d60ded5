/* starling info: what a dataset holds, or what this machine has. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "config.h"
#include "core/error.h"
#include "core/machine.h"
#include "core/remembered.h"
#include "core/runtime.h"
#include "data/dataset.h"
#include "data/statistics.h"

struct config {
    int64_t layers, hidden;
};

static const struct sl_option options[] = {
    {"layers", SL_OPTION_INT, offsetof(struct config, layers), "2", 1, 1024, NULL, "N",
     "layers of the network whose memory is estimated", "Estimate"},
    {"hidden", SL_OPTION_INT, offsetof(struct config, hidden), "16", 1, INT32_MAX, NULL, "N",
     "width of its hidden layers", "Estimate"},
    {0},
};

/* "12 B", "3.4 MiB". */
static const char *size_text(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;
    while (bytes >= 1024 && u < 5) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, 32, bytes < 10 && u > 0 ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return text;
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- Datasets ---- */

static void print_graph(const struct sl_dataset *data, const struct sl_graph_statistics *s)
{
    printf("vertices       %" PRId64 "\n", s->vertices);
    printf("edges          %" PRId64 " %s, %" PRId64 " self-loops%s\n", s->edges,
           data->symmetric ? "undirected" : "directed", s->self_loops,
           data->adjacency.values ? ", weighted" : "");
    if (data->merged_edges > 0)
        printf("               %" PRId64 " duplicates were merged\n", data->merged_edges);
    printf("density        %.3g (%" PRId64 " entries)\n", s->density, s->entries);
    printf("degree         mean %.1f, min %" PRId64 ", median %" PRId64 ", 90 %% %" PRId64
           ", 99 %% %" PRId64 ", max %" PRId64 "; %" PRId64 " isolated\n",
           s->degree_mean, s->degree_min, s->degree_median, s->degree_p90, s->degree_p99,
           s->degree_max, s->isolated);
    if (!isnan(s->clustering))
        printf("clustering     %.3f of the pairs of a vertex's neighbours are joined, on average\n",
               s->clustering);
    printf("components     %" PRId64 ", the largest has %" PRId64 " vertices (%.1f %%)\n",
           s->components, s->largest_component, percent(s->largest_component, s->vertices));
}

/* How many vertices have a degree of 0, 1, 2 to 3, 4 to 7, … */
static void print_degrees(const struct sl_dataset *data)
{
    int64_t bins[64] = {0}, most = 1;
    int last = 0;
    for (int64_t v = 0; v < data->vertices; v++) {
        int64_t degree = data->adjacency.indptr[v + 1] - data->adjacency.indptr[v];
        int bin = 0;
        for (; degree > 0; degree /= 2)
            bin++;
        bins[bin]++;
        most = bins[bin] > most ? bins[bin] : most;
        last = bin > last ? bin : last;
    }
    for (int bin = 0; bin <= last; bin++) {
        char range[48];
        const int64_t first = bin ? INT64_C(1) << (bin - 1) : 0, end = bin ? 2 * first - 1 : 0;
        if (first == end)
            snprintf(range, sizeof range, "%" PRId64, first);
        else
            snprintf(range, sizeof range, "%" PRId64 " to %" PRId64, first, end);
        printf("               %-20s %10" PRId64 "  ", range, bins[bin]);
        for (int64_t mark = (40 * bins[bin] + most - 1) / most; mark > 0; mark--)
            putchar('#');
        putchar('\n');
    }
}

static void print_features(const struct sl_dataset *data)
{
    const double cells = (double)data->vertices * (double)data->features;
    switch (data->feature_form) {
    case SL_FEATURES_IDENTITY:
        printf("features       none (the input is the identity)\n");
        break;
    case SL_FEATURES_DENSE:
        printf("features       %" PRId64 ", dense%s\n", data->features,
               data->bag_of_words ? ", bag of words" : "");
        break;
    case SL_FEATURES_CSR: {
        const int64_t entries = data->features_csr.indptr[data->vertices];
        printf("features       %" PRId64 ", CSR, %" PRId64 " entries (%.2f %%)%s\n", data->features,
               entries, cells > 0 ? 100.0 * (double)entries / cells : 0,
               data->bag_of_words ? ", bag of words" : "");
        break;
    }
    }
}

static void print_classes(const struct sl_dataset *data, const struct sl_graph_statistics *s)
{
    if (!s->class_sizes) {
        printf("classes        none\n");
        return;
    }
    printf("classes        %" PRId64 "%s, %" PRId64 " vertices labelled", s->classes,
           data->multilabels ? " (several per vertex)" : "", s->labelled);
    if (!isnan(s->edge_homophily))
        printf(", edge homophily %.3f", s->edge_homophily);
    enum { SHOWN = 50, PER_LINE = 8 };
    for (int64_t c = 0; c < s->classes && c < SHOWN; c++) {
        printf("%s", c % PER_LINE == 0 ? "\n             " : "");
        printf("  %" PRId64 ": %" PRId64, c, s->class_sizes[c]);
    }
    printf("%s\n", s->classes > SHOWN ? "\n               ..." : "");
}

/* Bytes of a row of floats, padded to 64 bytes. */
static double row_bytes(int64_t columns)
{
    return (double)((columns + 15) / 16) * 64;
}

static double sparse_bytes(int64_t rows, int64_t entries, bool values)
{
    return 4.0 * (double)rows + (values ? 8.0 : 4.0) * (double)entries;
}

/* Bytes that training one network on one rank takes beyond the program itself: the normalised
 * adjacency and the features as tiles, a hidden matrix per layer and three more (MG-GCN's L + 3),
 * parameters with the optimizer's state. */
/* What a process with StarPU, hwloc and a BLAS takes before it has data; what a vertex takes for
 * its label and split, in the file and in the tile. */
static const double PROCESS_BYTES = 14 << 20, LABEL_BYTES = 12;
enum { TILES = 4 }; /* as on a machine of a few cores */

static double estimate_training(const struct sl_dataset *data, const struct config *config)
{
    const double n = (double)data->vertices;
    const int64_t entries = data->adjacency.indptr[data->vertices] + data->vertices;
    const int64_t outputs = data->classes > 0 ? data->classes : config->hidden;
    double bytes = PROCESS_BYTES;
    bytes += (data->symmetric ? 1 : 2) *
             sparse_bytes(data->vertices, entries, data->adjacency.values != NULL);
    /* The files are mapped, and read once: their pages count until the system wants them back. */
    bytes += sparse_bytes(data->vertices, entries, data->adjacency.values != NULL);
    if (data->feature_form == SL_FEATURES_DENSE)
        bytes += 3 * n * row_bytes(data->features); /* the file, X, X after dropout */
    else
        bytes += 2 * sparse_bytes(data->vertices,
                                  data->feature_form == SL_FEATURES_CSR
                                      ? data->features_csr.indptr[data->vertices]
                                      : data->vertices,
                                  true);
    const int64_t widest =
        config->layers > 1 && config->hidden > outputs ? config->hidden : outputs;
    bytes += n * ((double)(config->layers - 1) * row_bytes(config->hidden) + row_bytes(outputs) +
                  3 * row_bytes(widest) + LABEL_BYTES);
    for (int64_t layer = 0; layer < config->layers; layer++) {
        const int64_t in = layer ? config->hidden : data->features;
        const int64_t out = layer == config->layers - 1 ? outputs : config->hidden;
        enum { COPIES = 3 + TILES }; /* parameters, two moments, a gradient for each tile */
        bytes += COPIES * (double)(in + 1) * row_bytes(out);
    }
    return bytes;
}

static void print_dataset(const struct sl_dataset *data, const struct sl_graph_statistics *s,
                          const struct config *config)
{
    char text[32];
    printf("%s (%s)\n", data->name ? data->name : "dataset", data->path ? data->path : "");
    print_graph(data, s);
    print_degrees(data);
    print_features(data);
    print_classes(data, s);
    printf("splits         train %" PRId64 ", validation %" PRId64 ", test %" PRId64 "\n",
           data->train.count, data->val.count, data->test.count);
    if (data->original)
        printf(
            "order          not the original one (original_ids.npy); predictions come in that\n");
    printf("memory         about %s to train %" PRId64 " layers, hidden %" PRId64 ", on one rank\n",
           size_text(estimate_training(data, config), text), config->layers, config->hidden);
}

static int info_dataset(const char *path, const struct config *config)
{
    struct sl_dataset data = {0};
    struct sl_graph_statistics statistics;
    int code = sl_dataset_open(path, &data);
    if (code)
        return code;
    code = sl_graph_statistics_compute(&data, &statistics);
    if (!code) {
        print_dataset(&data, &statistics, config);
        sl_graph_statistics_free(&statistics);
    }
    sl_dataset_close(&data);
    return code;
}

/* ---- The machine ---- */

static void print_devices(const char *title, const struct sl_machine_device *devices, int count)
{
    if (count == 0)
        printf("%-14s none\n", title);
    for (int d = 0; d < count; d++)
        printf("%-14s %s%s%s\n", d ? "" : title, devices[d].name, devices[d].detail[0] ? ": " : "",
               devices[d].detail);
}

static void print_caches(const struct sl_machine *machine)
{
    char text[32];
    for (int c = 0; c < machine->cache_count; c++) {
        const struct sl_machine_cache *cache = &machine->caches[c];
        const char *kind = cache->kind == 'd' ? " data" : cache->kind == 'i' ? " instructions" : "";
        printf("%-14s %d x L%d%s, %s\n", c ? "" : "caches", cache->count, cache->level, kind,
               size_text((double)cache->bytes, text));
    }
}

/* What `starling bench … --remember` kept. */
static void print_remembered(void)
{
    struct sl_remembered_machine machine;
    json_t *scheduler = sl_remembered_get("scheduler");
    const char *policy = json_string_value(json_object_get(scheduler, "scheduler"));
    const char *dataset = json_string_value(json_object_get(scheduler, "dataset"));
    const char *date = json_string_value(json_object_get(scheduler, "date"));
    if (sl_remembered_machine(&machine)) {
        printf("measured       triad %.1f GB/s with 1 thread, %.1f with %d\n",
               1e-9 * machine.triad[0], 1e-9 * machine.triad[1], machine.threads);
        printf("               products %.0f Gflop/s with 1 thread, %.0f with %d\n",
               1e-9 * machine.gemm[0], 1e-9 * machine.gemm[1], machine.threads);
    } else {
        printf("measured       nothing: starling bench machine --remember\n");
    }
    if (policy)
        printf("scheduler      %s, the fastest on %s (%.10s)\n", policy, dataset ? dataset : "?",
               date ? date : "?");
    json_decref(scheduler);
}

static int info_machine(void)
{
    struct sl_machine machine;
    char text[32];
    const int code = sl_machine_probe(&machine);
    if (code)
        return code;
    printf("host           %s\n", machine.host);
    printf("processor      %s\n", machine.processor[0] ? machine.processor : "unknown");
    printf("cores          %d (%d hardware threads, %d packages), %d for this process\n",
           machine.cores, machine.threads, machine.packages, machine.cores_allowed);
    printf("memory         %s on %d NUMA nodes\n", size_text((double)machine.memory_bytes, text),
           machine.numa_nodes);
    print_caches(&machine);
    print_devices("GPUs", machine.gpus, machine.gpu_count);
    print_devices("links", machine.links, machine.link_count);
    printf("built with     MPI %s, CBLAS %s, hwloc %s, CUDA %s\n", SL_BUILT_WITH_MPI,
           SL_BUILT_WITH_CBLAS, SL_BUILT_WITH_HWLOC, SL_BUILT_WITH_CUDA);
    printf("StarPU         %s, built for at most %d CPU workers\n", sl_runtime_starpu_version(),
           sl_runtime_starpu_max_workers());
    if (machine.cores_allowed > sl_runtime_starpu_max_workers())
        printf("               fewer than the cores here: ./bootstrap --own-starpu builds one for "
               "this machine\n");
    print_remembered();
    return 0;
}

static int run(int argc, char **argv)
{
    struct config config;
    int positionals;
    int code = sl_command_parse(&sl_command_info, &config, argc, argv, 1, 1, &positionals, NULL);
    if (!code)
        code = strcmp(argv[0], "machine") == 0 ? info_machine() : info_dataset(argv[0], &config);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_info = {
    .name = "info",
    .synopsis = "DATASET | machine",
    .summary = "Describe a dataset and the memory that training on it needs, or this machine",
    .options = options,
    .run = run,
};
