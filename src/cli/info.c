/* starling info: the contents of a dataset, or this machine. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "config.h"
#include "core/blas.h"
#include "core/error.h"
#include "core/log.h"
#include "core/machine.h"
#include "core/progress.h"
#include "core/remembered.h"
#include "core/runtime.h"
#include "core/words.h"
#include "data/dataset.h"
#include "data/statistics.h"
#include "predict/plan.h"
#include "recipe/defaults.h"
#include "run/fits.h"
#include "run/open.h"
#include "train/trainer.h"

struct config {
    int64_t layers, hidden;
};

static const struct sl_option options[] = {
    {"layers", SL_OPTION_INT, offsetof(struct config, layers), "2", 1, 1000, NULL, "N",
     "layers of the network whose memory is planned", "Memory"},
    {"hidden", SL_OPTION_INT, offsetof(struct config, hidden), "64", 1, INT32_MAX, NULL, "N",
     "width of its hidden layers", "Memory"},
    {0},
};

/* Return a size as text: "12 B", "3.4 MiB". */
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

/* Print the number of relations, and the numbers of their entries where they are few. */
static void print_relations(const struct sl_dataset *data)
{
    enum { MOST = 16 };
    int64_t count[MOST] = {0};
    printf("relations      %" PRId64 "\n", data->relations);
    for (int64_t e = 0; e < data->adjacency.indptr[data->vertices]; e++) {
        const int64_t r = (int64_t)data->edge[(e + 1) * data->edge_features - 1];
        count[r < MOST ? r : 0]++;
    }
    for (int64_t r = 0; data->relations <= MOST && r < data->relations; r++)
        printf("%s%" PRId64 "%s", r ? ", " : "               ", count[r],
               r + 1 == data->relations ? " entries\n" : "");
}

static void print_graph(const struct sl_dataset *data, const struct sl_graph_statistics *s)
{
    printf("vertices       %" PRId64 "\n", s->vertices);
    printf("edges          %" PRId64 " %s, %" PRId64 " self-loop%s%s\n", s->edges,
           data->symmetric ? "undirected" : "directed", s->self_loops, sl_s(s->self_loops),
           data->adjacency.values ? ", weighted" : "");
    if (data->edge_features > (data->relations > 0))
        printf("edge features  %" PRId64 "\n", data->edge_features - (data->relations > 0));
    if (data->relations > 0)
        print_relations(data);
    if (data->merged_edges > 0)
        printf("               %" PRId64 " duplicate%s merged\n", data->merged_edges,
               sl_plural(data->merged_edges, " was", "s were"));
    printf("density        %.3g (%" PRId64 " %s)\n", s->density, s->entries,
           sl_entries(s->entries));
    printf("degree         mean %.1f, min %" PRId64 ", median %" PRId64 ", 90 %% %" PRId64
           ", 99 %% %" PRId64 ", max %" PRId64 "; %" PRId64 " isolated\n",
           s->degree_mean, s->degree_min, s->degree_median, s->degree_p90, s->degree_p99,
           s->degree_max, s->isolated);
    if (!isnan(s->clustering))
        printf("clustering     %.3f of the pairs of a vertex's neighbours are joined, on average\n",
               s->clustering);
    printf("components     %" PRId64 ", the largest has %" PRId64 " %s (%.1f %%)\n", s->components,
           s->largest_component, sl_vertices(s->largest_component),
           percent(s->largest_component, s->vertices));
}

/* Print a vertex's name, or its number if it has none. SL_ERR_SYSTEM: no memory for the name. */
static int print_vertex(const struct sl_dataset *data, int64_t v)
{
    const struct sl_npy *ids = &data->vertex_ids;
    const bool is_text = ids->data && sl_npy_is_text(ids);
    char *text = is_text ? malloc(ids->item_bytes + 1) : NULL;
    if (is_text && !text)
        return sl_error(SL_ERR_SYSTEM, "no memory for the name of vertex %" PRId64, v);
    if (text && sl_npy_text(ids, v, text) > 0)
        printf("%s", text);
    else
        printf("%" PRId64, ids->data && !text ? sl_npy_integer(ids, v) : v);
    free(text);
    return SL_OK;
}

/* Print the direction of edges of a directed graph. The first vertex with neighbours is the
 * example. */
static int print_direction(const struct sl_dataset *data)
{
    const struct sl_csr *a = &data->adjacency;
    int64_t v = 0;
    while (v < data->vertices && a->indptr[v] == a->indptr[v + 1])
        v++;
    if (data->symmetric || v == data->vertices)
        return SL_OK;
    enum { SHOWN = 3 };
    const int64_t degree = a->indptr[v + 1] - a->indptr[v];
    printf("direction      a vertex aggregates from the sources of the edges that end at it: ");
    int code = print_vertex(data, v);
    printf(" from ");
    for (int64_t k = 0; k < degree && k < SHOWN && !code; k++) {
        printf("%s", k ? ", " : "");
        code = print_vertex(data, a->indices[a->indptr[v] + k]);
    }
    printf("%s\n", degree > SHOWN ? ", ..." : "");
    return code;
}

/* Print how many vertices have a degree of 0, 1, 2 to 3, 4 to 7, … */
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
               data->columns.bag_of_words ? ", bag of words" : "");
        break;
    case SL_FEATURES_CSR: {
        const int64_t entries = data->features_csr.indptr[data->vertices];
        printf("features       %" PRId64 ", CSR, %" PRId64 " %s (%.2f %%)%s\n", data->features,
               entries, sl_entries(entries), cells > 0 ? 100.0 * (double)entries / cells : 0,
               data->columns.bag_of_words ? ", bag of words" : "");
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
    if (data->meaning.regression) {
        printf("numbers        %" PRId64 " of a vertex, %" PRId64 " %s labelled\n", s->classes,
               s->labelled, sl_vertices(s->labelled));
        return;
    }
    printf("classes        %" PRId64 "%s, %" PRId64 " %s labelled", s->classes,
           data->multilabels ? " (several per vertex)" : "", s->labelled, sl_vertices(s->labelled));
    if (!isnan(s->edge_homophily))
        printf(", edge homophily %.3f", s->edge_homophily);
    enum { SHOWN = 50, PER_LINE = 8 };
    for (int64_t c = 0; c < s->classes && c < SHOWN; c++) {
        printf("%s", c % PER_LINE == 0 ? "\n             " : "");
        if (data->meaning.class_names)
            printf("  %s: %" PRId64, data->meaning.class_names[c], s->class_sizes[c]);
        else
            printf("  %" PRId64 ": %" PRId64, c, s->class_sizes[c]);
    }
    printf("%s\n", s->classes > SHOWN ? "\n               ..." : "");
}

/* Print how many links and negatives validation and test have. */
static void print_links(const struct sl_source_links *links)
{
    static const char *const names[] = {[SL_SPLIT_VAL] = "validation", [SL_SPLIT_TEST] = "test"};
    if (!sl_links_given(links))
        return;
    printf("links         ");
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        const int64_t count = links->pairs[s].data ? links->pairs[s].shape[0] : 0,
                      negatives = links->negatives[s].data ? links->negatives[s].shape[0] : 0;
        printf("%s %s %" PRId64 " with %" PRId64 " negative%s", s > SL_SPLIT_VAL ? "," : "",
               names[s], count, negatives, sl_s(negatives));
    }
    putchar('\n');
}

/* Make the memory plan of `train` with default options, on one rank with all cores of this machine.
 */
static int plan_training(const struct sl_dataset *data, const struct config *config,
                         struct sl_plan *plan)
{
    struct sl_machine machine;
    struct sl_config training;
    struct sl_source source = {0};
    struct sl_runtime alone = {.ranks = 1};
    int code = sl_config_defaults(&training);
    training.network.layers = config->layers;
    training.network.hidden = config->hidden;
    if (!code)
        code = sl_machine_probe(&machine);
    if (!code)
        code = sl_source_of(data, &source);
    if (!code)
        code = sl_run_open(&alone, &(struct sl_run_inputs){.trains = true}, &training, &source);
    if (!code)
        code = sl_run_settle(&alone, &source, NULL, NULL, &training, NULL);
    if (!code) {
        const struct sl_process process = {
            .workers = machine.cores_allowed, .ranks_here = 1, .gpu_sharers = 1};
        struct sl_runtime rt = {
            .ranks = 1, .process = &process, .all_cores = machine.cores_allowed};
        rt.stages = sl_config_stages(&training);
        if (machine.cache_count > 0)
            rt.cache_bytes = machine.caches[machine.cache_count - 1].bytes;
        code = sl_plan_make(&rt, &source, &training, plan);
    }
    sl_source_close(&source);
    sl_options_free(sl_config_options, &training);
    return code;
}

/* Print the memory plan, or why there is none. SL_ERR_SYSTEM: no memory to make it. */
static int print_memory(const struct sl_dataset *data, const struct config *config)
{
    struct sl_plan plan;
    char text[32];
    const int code = plan_training(data, config, &plan);
    if (code == SL_ERR_SYSTEM)
        return code;
    if (code)
        printf("memory         not planned: %s\n", sl_error_message());
    else
        printf("memory         %s for matrices to train %" PRId64 " layers, hidden %" PRId64
               ", on one rank (train --plan tells more)\n",
               size_text((double)plan.total, text), config->layers, config->hidden);
    return SL_OK;
}

static int print_dataset(const struct sl_dataset *data, const struct sl_graph_statistics *s,
                         const struct config *config)
{
    printf("%s (%s)\n", data->name ? data->name : "dataset", data->path ? data->path : "");
    print_graph(data, s);
    print_degrees(data);
    const int code = print_direction(data);
    print_features(data);
    print_classes(data, s);
    printf("splits         train %" PRId64 ", validation %" PRId64 ", test %" PRId64 "\n",
           data->train.count, data->val.count, data->test.count);
    print_links(&data->links);
    if (data->original)
        printf(
            "order          not the original one (original_ids.npy); predictions come in that\n");
    return code ? code : print_memory(data, config);
}

static int info_dataset(const char *path, const struct config *config)
{
    struct sl_dataset data = {0};
    struct sl_graph_statistics statistics;
    sl_talk(true, false);
    int code = sl_dataset_open(path, &data);
    if (code)
        return code;
    sl_progress_begin("measuring the graph");
    code = sl_progress_end_with(sl_graph_statistics_compute(&data, &statistics));
    if (!code) {
        code = print_dataset(&data, &statistics, config);
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

/* Print the figures that `starling bench … --remember` kept. */
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
    printf("cores          %d (%d hardware thread%s, %d package%s), %d for this process\n",
           machine.cores, machine.threads, sl_s(machine.threads), machine.packages,
           sl_s(machine.packages), machine.cores_allowed);
    printf("memory         %s on %d NUMA node%s\n", size_text((double)machine.memory_bytes, text),
           machine.numa_nodes, sl_s(machine.numa_nodes));
    print_caches(&machine);
    print_devices("GPUs", machine.gpus, machine.gpu_count);
    print_devices("links", machine.links, machine.link_count);
    if (sl_blas_core())
        printf("dense products OpenBLAS, its kernels for %s\n", sl_blas_core());
    printf("built with     MPI %s, CBLAS %s, oneDNN %s, hwloc %s, CUDA %s\n", SL_BUILT_WITH_MPI,
           SL_BUILT_WITH_CBLAS, SL_BUILT_WITH_ONEDNN, SL_BUILT_WITH_HWLOC, SL_BUILT_WITH_CUDA);
    printf("StarPU         %s, built for at most %d CPU workers\n", sl_runtime_starpu_version(),
           sl_runtime_starpu_max_workers());
    if (machine.cores_allowed > sl_runtime_starpu_max_workers())
        printf("               fewer than the cores here: ./bootstrap --own-starpu builds one for "
               "this machine\n");
    print_remembered();
    return 0;
}

static int run_info(int argc, char **argv)
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
    .run = run_info,
};
