/* starling bench spmm: the sparse product of training, against a plain loop, other libraries and
 * the rate that the machine's memory allows. */
#include "bench/spmm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/partition.h"
#include "bench/bench.h"
#include "bench/input.h"
#include "bench/measure.h"
#include "bench/reference.h"
#include "codelets/instructions.h"
#include "config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/machine.h"
#include "core/memory.h"
#include "core/remembered.h"
#include "core/rng.h"
#include "core/spmm_choice.h"
#include "core/table.h"
#include "core/tile.h"
#include "core/words.h"
#include "data/dataset.h"
#include "data/order/order.h"

struct config {
    struct sl_bench_common common;
    struct sl_bench_input input;
    int64_t vertices, degree, seed, megabytes;
    char *width, *dataset;
    const struct sl_order *order;
    enum sl_bench_device device;
    enum sl_instructions instructions;
    bool remember;
};

static const void *find_order(const char *name)
{
    return sl_order_find(name);
}

static const struct sl_option options[] = {
    {"vertices", SL_OPTION_INT, offsetof(struct config, vertices), "400000", 1, INT32_MAX, NULL,
     "N", "vertices of a random graph", "Graph"},
    {"degree", SL_OPTION_INT, offsetof(struct config, degree), "50", 1, 1 << 20, NULL, "D",
     "neighbours of each of its vertices", "Graph"},
    {"seed", SL_OPTION_INT, offsetof(struct config, seed), "1", 0, 9e15, NULL, "N",
     "seed of the random graph", "Graph"},
    {"dataset", SL_OPTION_STRING, offsetof(struct config, dataset), NULL, 0, 0, NULL, "DATASET",
     "the adjacency of DATASET instead, in its own order of vertices", "Graph"},
    {"order", SL_OPTION_KIND, offsetof(struct config, order), "none", 0, 0, SL_ORDER_CHOICES,
     "NAME", "order of the vertices of --dataset or --like", "Graph", find_order},
    SL_BENCH_INPUT_OPTIONS(config),
    {"width", SL_OPTION_STRING, offsetof(struct config, width), "16,64,128,256", 0, 0, NULL, "LIST",
     "columns of the dense operand", "Sizes"},
    {"device", SL_OPTION_CHOICE, offsetof(struct config, device), "cpu", 0, 0,
     SL_CHOICES(SL_BENCH_DEVICES), "NAME",
     "what multiplies: the cores, or a GPU, in a build with CUDA", "Sizes"},
    {"instructions", SL_OPTION_CHOICE, offsetof(struct config, instructions), "auto", 0, 0,
     SL_CHOICES(SL_INSTRUCTION_CHOICES), "LEVEL",
     "instructions of our kernel and of the plain loop; auto: the best of this processor", "Sizes"},
    {"remember", SL_OPTION_FLAG, offsetof(struct config, remember), "no", 0, 0, NULL, NULL,
     "with --device cuda: let train --spmm fastest go by this", "Output"},
    {"megabytes", SL_OPTION_INT, offsetof(struct config, megabytes), "0", 0, 1 << 24, NULL, "M",
     "size of each of three arrays for the memory bandwidth; 0: as for bench machine", "Sizes"},
    SL_BENCH_OPTIONS(config, "7"),
    {0},
};

/* The rivals on cores. The first one is the base of comparisons. */
static const struct sl_spmm_rival *const cpu_rivals[] = {
    &sl_spmm_kernel,
    &sl_spmm_finished,
    &sl_spmm_bf16,
    &sl_spmm_plain,
    &sl_spmm_plain_malloc,
#ifdef SL_HAVE_MKL_SPARSE
    &sl_spmm_mkl,
#endif
#ifdef SL_HAVE_GRAPHBLAS
    &sl_spmm_graphblas,
    &sl_spmm_graphblas_add,
#endif
    NULL,
};

#ifdef SL_HAVE_CUDA
static const struct sl_spmm_rival *const gpu_rivals[] = {
    &sl_spmm_cuda,
    &sl_spmm_cuda_bf16,
    &sl_spmm_cusparse,
    &sl_spmm_cusparse_rows,
    &sl_spmm_cusparse_repeatable,
    &sl_spmm_cuda_finished,
    &sl_spmm_cusparse_finished,
    NULL,
};
#endif

/* The devices, their rivals and their bandwidth. */
static const struct device {
    enum sl_bench_device device;
    const struct sl_spmm_rival *const *rivals; /* NULL ends the list */
    const struct sl_spmm_bandwidth *bandwidth; /* NULL: sl_reference's */
} devices[] = {
    {SL_BENCH_CPU, cpu_rivals, NULL},
#ifdef SL_HAVE_CUDA
    {SL_BENCH_CUDA, gpu_rivals, &sl_spmm_gpu_bandwidth},
#endif
};

enum { MOST_RIVALS = 8, MOST_WIDTHS = 32 };

/* The graph, in arrays of sl_memory_alloc. */
struct graph {
    int64_t vertices, nnz;
    int64_t *row_ptr; // (vertices + 1)
    uint32_t *col;    // (nnz)
    float *value;     // (nnz)
};

struct bench {
    const struct config *config;
    struct sl_team *team;
    struct sl_reference reference;
    struct graph graph;
    int64_t *cut;                         // (threads + 1)
    int64_t cache_bytes, own_cache_bytes; /* bytes of the last-level cache; of a core's own cache */
    int64_t width[MOST_WIDTHS];
    int widths;
    const struct sl_spmm_rival *rival[MOST_RIVALS];
    int rivals;
    const struct sl_spmm_bandwidth *bandwidth; /* the device's; NULL: sl_reference's */
    void *bandwidth_state;
};

/* ---- The graph ---- */

static int allocate(struct graph *graph, int64_t vertices, int64_t nnz)
{
    graph->vertices = vertices;
    graph->nnz = nnz;
    if (nnz > UINT32_MAX)
        return sl_error(SL_ERR_USAGE, "%" PRId64 " entries, and at most 2^32 - 1 are measured",
                        nnz);
    graph->row_ptr = sl_memory_alloc((size_t)(vertices + 1) * sizeof *graph->row_ptr);
    graph->col = sl_memory_alloc((size_t)nnz * sizeof *graph->col);
    graph->value = sl_memory_alloc((size_t)nnz * sizeof *graph->value);
    return graph->row_ptr && graph->col && graph->value ? 0 : SL_ERR_SYSTEM;
}

static void free_graph(struct graph *graph)
{
    sl_memory_free(graph->row_ptr, (size_t)(graph->vertices + 1) * sizeof *graph->row_ptr);
    sl_memory_free(graph->col, (size_t)graph->nnz * sizeof *graph->col);
    sl_memory_free(graph->value, (size_t)graph->nnz * sizeof *graph->value);
}

/* Draw a thread's rows. Neighbour k of a row is a random vertex of the k-th of `degree` equal parts
 * of all vertices. So columns ascend, and every vertex is equally likely. */
static void draw(void *context, int index, int threads)
{
    struct bench *bench = context;
    struct graph *graph = &bench->graph;
    const int64_t n = graph->vertices, degree = bench->config->degree;
    const uint64_t key = sl_rng_key((uint64_t)bench->config->seed, SL_RNG_GENERATE, 0, 0);
    for (int64_t r = n * index / threads; r < n * (index + 1) / threads; r++) {
        graph->row_ptr[r + 1] = (r + 1) * degree;
        for (int64_t k = 0; k < degree; k++) {
            const int64_t first = n * k / degree, last = n * (k + 1) / degree;
            const double u = sl_rng_uniform(key, (uint32_t)r, (uint32_t)k);
            graph->col[r * degree + k] = (uint32_t)(first + (int64_t)(u * (double)(last - first)));
            graph->value[r * degree + k] = 1.0f / (float)degree;
        }
    }
}

static int draw_graph(struct bench *bench)
{
    const struct config *config = bench->config;
    if (config->degree > config->vertices)
        return sl_error(SL_ERR_USAGE, "--degree: at most the number of vertices, %" PRId64,
                        config->vertices);
    const int code = allocate(&bench->graph, config->vertices, config->vertices * config->degree);
    if (!code)
        sl_team_run(bench->team, bench->reference.threads, draw, bench);
    return code;
}

static int take_graph(struct bench *bench, const struct sl_csr *adjacency)
{
    struct graph *graph = &bench->graph;
    const int64_t n = adjacency->rows;
    const int code = allocate(graph, n, adjacency->indptr[n]);
    for (int64_t r = 0; !code && r < n; r++) {
        const int64_t first = adjacency->indptr[r], last = adjacency->indptr[r + 1];
        graph->row_ptr[r + 1] = last;
        for (int64_t e = first; e < last; e++) {
            graph->col[e] = (uint32_t)adjacency->indices[e];
            graph->value[e] = 1.0f / (float)(last - first);
        }
    }
    return code;
}

/* Make the graph: draw it, generate the like of a dataset, or read a dataset. */
static int get_graph(struct bench *bench)
{
    struct sl_dataset data = {0};
    const struct config *config = bench->config;
    if (!config->dataset && !config->input.like)
        return draw_graph(bench);
    int code = sl_bench_input_open(&config->input, config->dataset, &data);
    if (!code && data.adjacency.indptr[data.vertices] == 0)
        code = sl_error(SL_ERR_DATA, "%s: a graph without edges", data.path ? data.path : "--like");
    if (!code)
        code = sl_dataset_reorder(&data, config->order->name, 1);
    if (!code)
        code = take_graph(bench, &data.adjacency);
    sl_dataset_close(&data);
    return code;
}

/* Cut the rows among threads, with about equally many entries each. */
static int cut_rows(struct bench *bench)
{
    const struct graph *graph = &bench->graph;
    const int threads = bench->reference.threads;
    bench->cut = calloc((size_t)threads + 1, sizeof *bench->cut);
    if (!bench->cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for the cuts of %d threads", threads);
    int64_t r = 0;
    for (int t = 1; t < threads; t++) {
        while (r < graph->vertices && (double)graph->row_ptr[r] < (double)graph->nnz * t / threads)
            r++;
        bench->cut[t] = r;
    }
    bench->cut[threads] = graph->vertices;
    return 0;
}

static bool takes_part(const struct sl_spmm_rival *rival)
{
    return !rival->is_there || rival->is_there();
}

static int choose_device(struct bench *bench)
{
    const struct device *device = NULL;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        if (devices[d].device == bench->config->device)
            device = &devices[d];
    for (int v = 0; device && device->rivals[v]; v++)
        if (takes_part(device->rivals[v]))
            bench->rival[bench->rivals++] = device->rivals[v];
    if (bench->config->remember && bench->config->device != SL_BENCH_CUDA)
        return sl_error(SL_ERR_USAGE, "--remember: expected --device cuda");
    if (bench->rivals == 0)
        return sl_error(SL_ERR_USAGE, "--device cuda: expected a GPU, and a build --with-cuda");
    if (bench->config->remember && sl_remembered_probe("spmm"))
        return SL_ERR_SYSTEM;
    bench->bandwidth = device->bandwidth;
    return bench->bandwidth ? bench->bandwidth->create(&bench->bandwidth_state) : 0;
}

static int create_spmm(struct bench *bench)
{
    const struct config *config = bench->config;
    enum sl_instructions level;
    int code = sl_instructions_choose(config->instructions, &level);
    if (!code)
        sl_instructions_set(level);
    if (!code)
        code = choose_device(bench);
    if (!code)
        code = sl_bench_parse_list("width", config->width, 1, 1 << 16, MOST_WIDTHS, bench->width,
                                   &bench->widths);
    if (!code)
        code = sl_team_create(&bench->team);
    if (!code)
        code = sl_reference_create(
            &bench->reference, bench->team,
            config->megabytes ? (size_t)config->megabytes << 20 : sl_reference_default_bytes(), 16);
    if (!code)
        code = get_graph(bench);
    if (!code)
        code = cut_rows(bench);
    struct sl_machine machine;
    if (!code)
        code = sl_machine_probe(&machine);
    for (int c = 0; !code && c < machine.cache_count; c++)
        if (machine.caches[c].kind != 'i') { /* the last level is seen last */
            bench->cache_bytes = machine.caches[c].bytes;
            if (machine.caches[c].count >= machine.cores)
                bench->own_cache_bytes = machine.caches[c].bytes;
        }
    return code;
}

static void destroy(struct bench *bench)
{
    if (bench->bandwidth_state)
        bench->bandwidth->destroy(bench->bandwidth_state);
    free(bench->cut);
    free_graph(&bench->graph);
    sl_reference_destroy(&bench->reference);
    sl_team_destroy(bench->team);
}

/* ---- One width ---- */

static size_t dense_bytes(const struct sl_spmm_problem *problem)
{
    return (size_t)(problem->vertices * problem->ld) * sizeof(float);
}

static void touch(void *context, int index, int threads)
{
    const struct sl_spmm_problem *p = context;
    (void)threads;
    const int64_t first = p->cut[index] * p->ld, count = p->cut[index + 1] * p->ld - first;
    sl_reference_fill((float *)p->h + first, count, first);
    sl_reference_fill(p->z + first, count, first);
}

static int create_problem(const struct bench *bench, int64_t width, struct sl_spmm_problem *p)
{
    *p = (struct sl_spmm_problem){
        .vertices = bench->graph.vertices,
        .nnz = bench->graph.nnz,
        .row_ptr = bench->graph.row_ptr,
        .col = bench->graph.col,
        .value = bench->graph.value,
        .width = width,
        .ld = sl_leading(width, SL_FLOAT32),
        .team = bench->team,
        .threads = bench->reference.threads,
        .cut = bench->cut,
    };
    const struct sl_csr adjacency = {.rows = p->vertices,
                                     .cols = p->vertices,
                                     .indptr = p->row_ptr,
                                     .indices = (const int32_t *)p->col};
    struct sl_runtime alone = {.ranks = 1};
    struct sl_caches caches = {.last_bytes = bench->cache_bytes,
                               .own_bytes = bench->own_cache_bytes,
                               .sharers = p->threads,
                               .cores = p->threads,
                               .tiles = p->threads};
    p->block_cols = sl_partition_block_cols(&alone, &adjacency, width, &caches);
    caches.own_bytes = 0; /* sums are not in the rows' type: blocks cost more */
    p->narrow_block_cols = sl_partition_block_cols(&alone, &adjacency, (width + 1) / 2, &caches);
    p->h = sl_memory_alloc(dense_bytes(p));
    p->z = sl_memory_alloc(dense_bytes(p));
    if (!p->h || !p->z)
        return SL_ERR_SYSTEM;
    sl_team_run(p->team, p->threads, touch, p);
    return 0;
}

static void destroy_problem(struct sl_spmm_problem *p)
{
    sl_memory_free((float *)p->h, dense_bytes(p));
    sl_memory_free(p->z, dense_bytes(p));
}

/* Compare some rows of a product with sums in double, since the figures of a wrong product mean
 * nothing. */
static int verify(const struct sl_spmm_problem *p, const struct sl_spmm_rival *rival, void *state)
{
    enum { ROWS = 61 };
    rival->run(state, 1);
    for (int64_t i = 0; i < ROWS && !rival->other_result; i++) {
        const int64_t r = (int64_t)((double)p->vertices * (double)i / ROWS);
        const float *row = rival->row(state, r);
        for (int64_t j = 0; j < p->width; j++) {
            double sum = 0.0, size = 0.0;
            for (int64_t e = p->row_ptr[r]; e < p->row_ptr[r + 1]; e++) {
                const double term = (double)p->value[e] * p->h[p->col[e] * p->ld + j];
                sum += term;
                size += fabs(term);
            }
            const double terms = (double)(p->row_ptr[r + 1] - p->row_ptr[r]),
                         error = rival->error > 0.0 ? rival->error : 1e-5;
            if (!(fabs(row[j] - sum) <= fmax(error, sqrt(terms) * 0x1p-22) * size))
                return sl_error(SL_ERR_SYSTEM,
                                "%s computes %g instead of %g in row %" PRId64 ", column %" PRId64,
                                rival->name, row[j], sum, r, j);
        }
    }
    return 0;
}

/* The contestants of one width: the rivals, then the bandwidth. */
struct race {
    const struct bench *bench;
    int count; /* rivals; the bandwidth's contestant follows them */
    struct sl_spmm_problem problem;
    void *state[MOST_RIVALS];
    struct sl_reference_measure triad;
    struct sl_contestant contestant[MOST_RIVALS + 1];
};

static int line_up(const struct bench *bench, int64_t width, struct race *race)
{
    *race = (struct race){.bench = bench, .count = bench->rivals};
    int code = create_problem(bench, width, &race->problem);
    for (int v = 0; !code && v < race->count; v++) {
        code = race->bench->rival[v]->create(&race->state[v], &race->problem);
        if (!code)
            code = verify(&race->problem, race->bench->rival[v], race->state[v]);
        race->contestant[v] =
            (struct sl_contestant){.run = race->bench->rival[v]->run, .context = race->state[v]};
    }
    race->triad = (struct sl_reference_measure){&bench->reference, SL_REFERENCE_TRIAD,
                                                bench->reference.threads, 0};
    race->contestant[race->count] =
        bench->bandwidth ? (struct sl_contestant){.run = bench->bandwidth->run,
                                                  .context = bench->bandwidth_state}
                         : (struct sl_contestant){.run = sl_reference_run, .context = &race->triad};
    return code;
}

static void disperse(struct race *race)
{
    for (int v = 0; v < race->count; v++)
        if (race->state[v])
            race->bench->rival[v]->destroy(race->state[v]);
    destroy_problem(&race->problem);
    sl_bench_free(race->contestant, race->count + 1);
}

/* ---- What comes out ---- */

/* Return the bytes that a product moves if no row of H is found in a cache (Q_max). least_bytes
 * (Q_min): each row is fetched once. Columns and values count 4 bytes, whatever a library uses. */
static double most_bytes(const struct sl_spmm_problem *p)
{
    const double entries = (double)p->nnz, row = (double)p->width * sizeof(float);
    return entries * (4 + 4 + row) + (double)p->vertices * row;
}

static double least_bytes(const struct sl_spmm_problem *p)
{
    return (double)p->nnz * (4 + 4) + 2.0 * (double)p->vertices * (double)p->width * sizeof(float);
}

static double triad_bytes(const struct race *race)
{
    const struct sl_reference_measure *triad = &race->triad;
    return race->bench->bandwidth
               ? race->bench->bandwidth->bytes
               : sl_reference_amount(triad->reference, triad->kind, triad->threads);
}

static json_t *row_of(const struct race *race, int v, int repetitions)
{
    const struct sl_spmm_problem *p = &race->problem;
    const double *seconds = race->contestant[v].seconds;
    const double *ours = race->contestant[0].seconds;
    const double *triad = race->contestant[race->count].seconds;
    const double flops = 2.0 * (double)p->nnz * (double)p->width;
    json_t *row = json_pack("{s:I, s:s, s:i}", "width", (json_int_t)p->width, "contestant",
                            race->bench->rival[v]->name, "threads", p->threads);
    sl_bench_set_spread(row, "seconds", sl_spread_of(seconds, repetitions));
    sl_bench_set_spread(row, "flops_per_second", sl_spread_of_rate(flops, seconds, repetitions));
    sl_bench_set_spread(row, "bytes_per_second",
                        sl_spread_of_rate(most_bytes(p), seconds, repetitions));
    /* ratio of each round: (Q / seconds) / (triad bytes / triad seconds) */
    struct sl_spread ratio = sl_spread_of_ratio(triad, seconds, repetitions);
    const double most = most_bytes(p) / triad_bytes(race),
                 least = least_bytes(p) / triad_bytes(race);
    sl_bench_set_spread(
        row, "roofline_no_reuse",
        (struct sl_spread){ratio.median * most, ratio.low * most, ratio.high * most});
    sl_bench_set_spread(
        row, "roofline_full_reuse",
        (struct sl_spread){ratio.median * least, ratio.low * least, ratio.high * least});
    sl_bench_set_spread(row, "times_starling", sl_spread_of_ratio(seconds, ours, repetitions));
    return row;
}

static json_t *bandwidth_row(const struct race *race, int repetitions)
{
    json_t *row = json_pack("{s:I}", "width", (json_int_t)race->problem.width);
    sl_bench_set_spread(
        row, "bytes_per_second",
        sl_spread_of_rate(triad_bytes(race), race->contestant[race->count].seconds, repetitions));
    return row;
}

static void print(const struct bench *bench, const json_t *bandwidths, const json_t *rows)
{
    static const struct sl_column columns[] = {
        {"width", "width", 0, 0},
        {"contestant", "contestant", 0, 0},
        {"seconds", "ms", 1e-3, 2},
        {"bytes_per_second", "GB/s", 1e9, 1},
        {"flops_per_second", "Gflop/s", 1e9, 1},
        {"roofline_no_reuse", "no reuse", 0, 2},
        {"roofline_full_reuse", "full reuse", 0, 2},
        {"times_starling", "x starling", 0, 2},
        {"times_starling_low", "quartiles", 0, 2},
        {"times_starling_high", "", 0, 2},
        {0},
    };
    static const struct sl_column measured[] = {
        {"width", "width", 0, 0},
        {"bytes_per_second", "triad GB/s", 1e9, 2},
        {"bytes_per_second_low", "quartiles", 1e9, 2},
        {"bytes_per_second_high", "", 1e9, 2},
        {0},
    };
    printf("%" PRId64 " %s, %" PRId64 " %s, %d thread%s\n", bench->graph.vertices,
           sl_vertices(bench->graph.vertices), bench->graph.nnz, sl_entries(bench->graph.nnz),
           bench->reference.threads, sl_s(bench->reference.threads));
    for (int v = 0; v < bench->rivals; v++)
        printf("  %-14s %s\n", bench->rival[v]->name, bench->rival[v]->what);
    putchar('\n');
    sl_table_print(bandwidths, measured);
    printf(
        "\nGB/s without reuse of gathered rows; no reuse, full reuse: the bandwidth above is 1\n");
    sl_table_print(rows, columns);
}

static int measure_width(const struct bench *bench, int64_t width, json_t *bandwidths, json_t *rows)
{
    const struct sl_bench_common *common = &bench->config->common;
    struct race race;
    int code = line_up(bench, width, &race);
    if (!code)
        code = sl_bench_alternate(race.contestant, race.count + 1, (int)common->repetitions,
                                  !common->quiet);
    for (int v = 0; !code && v < race.count; v++)
        json_array_append_new(rows, row_of(&race, v, (int)common->repetitions));
    if (!code)
        json_array_append_new(bandwidths, bandwidth_row(&race, (int)common->repetitions));
    disperse(&race);
    return code;
}

/* Return the seconds of a contestant with rows of one width; 0: not measured. */
static double seconds_of(const json_t *rows, const char *contestant, int64_t width)
{
    size_t index;
    const json_t *row;
    json_array_foreach((json_t *)rows, index, row)
    {
        if (json_integer_value(json_object_get(row, "width")) == width &&
            strcmp(json_string_value(json_object_get(row, "contestant")), contestant) == 0)
            return json_number_value(json_object_get(row, "seconds"));
    }
    return 0.0;
}

/* Keep the measured products as training has them, for its choice of a kernel. */
static int remember(const struct bench *bench, const json_t *rows)
{
    struct sl_spmm_measured measured[MOST_WIDTHS];
    int count = 0;
    for (int w = 0; w < bench->widths; w++) {
        const double own = seconds_of(rows, "finished", bench->width[w]),
                     cusparse = seconds_of(rows, "finished-alg3", bench->width[w]);
        if (own > 0.0 && cusparse > 0.0)
            measured[count++] = (struct sl_spmm_measured){
                .width = bench->width[w],
                .degree = (double)bench->graph.nnz / (double)bench->graph.vertices,
                .times = cusparse / own,
            };
    }
    return sl_spmm_choice_remember(measured, count);
}

static int measure(const struct bench *bench)
{
    const struct config *config = bench->config;
    json_t *rows = json_array(), *bandwidths = json_array();
    int code = 0;
    for (int w = 0; !code && w < bench->widths; w++)
        code = measure_width(bench, bench->width[w], bandwidths, rows);
    if (!code && !config->common.quiet)
        print(bench, bandwidths, rows);
    json_t *document = sl_bench_document("spmm", options, config, rows);
    json_object_set_new(document, "bandwidths", bandwidths);
    json_object_set_new(document, "vertices", json_integer(bench->graph.vertices));
    json_object_set_new(document, "entries", json_integer(bench->graph.nnz));
    json_object_set_new(document, "threads", json_integer(bench->reference.threads));
    if (!code && config->remember)
        code = remember(bench, rows);
    const int written = sl_bench_write(document, code ? NULL : config->common.json);
    return code ? code : written;
}

static int run_spmm(int argc, char **argv)
{
    struct config config = {0};
    struct bench bench = {.config = &config};
    int positionals;
    int code = sl_command_parse(&sl_bench_spmm, &config, argc, argv, 0, 0, &positionals, NULL);
    if (!code)
        code = sl_file_probe(config.common.json);
    if (!code)
        code = create_spmm(&bench);
    if (!code)
        code = measure(&bench);
    destroy(&bench);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_bench_spmm = {
    .name = "bench spmm",
    .synopsis = "[--dataset DATASET] [--OPTION ...]",
    .summary = "Measure the sparse product against a plain loop, other libraries and bandwidth",
    .options = options,
    .run = run_spmm,
};
