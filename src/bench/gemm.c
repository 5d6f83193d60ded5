/* starling bench gemm: dense products of training's shapes, against the machine's peak and against
 * the rate that its memory allows. */
#include "bench/gemm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/measure.h"
#include "bench/reference.h"
#include "codelets/bfloat16.h"
#include "codelets/gemm.h"
#include "config.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/table.h"
#include "core/tile.h"

#define PRECISIONS(ENTRY) ENTRY(FP32, "fp32") ENTRY(BF16, "bf16")
enum precision { PRECISIONS(SL_CHOICE_CONSTANT) };

struct config {
    struct sl_bench_common common;
    int64_t megabytes, gemm_size;
    char *shapes;
    enum sl_bench_device device;
    enum precision precision;
};

/* Default shapes, for n vertices, f features, h hidden: X·W, H·W, H·W to few classes, Xᵀ·G, Hᵀ·G,
 * G·Wᵀ. */
static const char default_shapes[] = "100000x64x256,100000x64x64,100000x16x64,256x64x100000:tn,"
                                     "64x64x100000:tn,100000x256x64:nt";

static const struct sl_option options[] = {
    {"shapes", SL_OPTION_STRING, offsetof(struct config, shapes), default_shapes, 0, 0, NULL,
     "LIST",
     "products C = op(A) op(B) as MxNxK: C is M x N, K is summed over; :tn after it transposes A, "
     ":nt B, :tt both",
     "Sizes"},
    {"device", SL_OPTION_CHOICE, offsetof(struct config, device), "cpu", 0, 0,
     SL_CHOICES(SL_BENCH_DEVICES), "NAME",
     "what multiplies: the cores, or a GPU, in a build with CUDA, in each precision of train",
     "Sizes"},
    {"precision", SL_OPTION_CHOICE, offsetof(struct config, precision), "fp32", 0, 0,
     SL_CHOICES(PRECISIONS), "NAME",
     "on the cores, as in training: bf16 stores A and C in bfloat16, or, where the sum is the "
     "longest side, A and B; the others are float32",
     "Sizes"},
    {"megabytes", SL_OPTION_INT, offsetof(struct config, megabytes), "0", 0, 1 << 24, NULL, "M",
     "size of each of three arrays for the memory bandwidth; 0: as for bench machine", "Sizes"},
    {"gemm-size", SL_OPTION_INT, offsetof(struct config, gemm_size), "1024", 16, 16384, NULL, "N",
     "rows and columns of the square products that give the peak", "Sizes"},
    SL_BENCH_OPTIONS(config, "7"),
    {0},
};

#ifdef SL_HAVE_CUDA
static const struct sl_gemm_gpu *const gpu = &sl_gemm_cuda;
#else
static const struct sl_gemm_gpu *const gpu = NULL;
#endif

enum { MOST_SHAPES = 64 };

struct bench {
    struct config config;
    struct sl_team *team;
    struct sl_reference reference;
    int shapes;
    struct sl_gemm_shape shape[MOST_SHAPES];
};

struct task {
    struct bench *bench;
    const struct sl_gemm_shape *shape;
    int threads;
    int64_t times;
};

/* ---- Shapes ---- */

static int parse_shape(struct sl_gemm_shape *shape, const char *text, size_t length)
{
    const double most = 1e9;
    char transposes[3] = "nn";
    int end = -1, with = -1;
    snprintf(shape->name, sizeof shape->name, "%.*s", (int)length, text);
    const int found = sscanf(shape->name, "%9" SCNd64 "x%9" SCNd64 "x%9" SCNd64 "%n:%2[nt]%n",
                             &shape->m, &shape->n, &shape->k, &end, transposes, &with);
    const int used = found == 4 ? with : end;
    if (found < 3 || length >= sizeof shape->name || used != (int)length || shape->m < 1 ||
        shape->n < 1 || shape->k < 1 || (double)shape->m * (double)shape->k > most ||
        (double)shape->k * (double)shape->n > most || (double)shape->m * (double)shape->n > most ||
        strlen(transposes) != 2)
        return sl_error(SL_ERR_USAGE,
                        "--shapes: expected MxNxK, matrices of at most 10^9 elements, and then "
                        ":nn, :tn, :nt or :tt, not \"%.*s\"",
                        (int)length, text);
    shape->transpose_a = transposes[0] == 't';
    shape->transpose_b = transposes[1] == 't';
    shape->cut_sum = shape->k > shape->m;
    return 0;
}

static int parse_shapes(struct bench *bench, const char *text)
{
    int code = 0;
    for (const char *at = text; !code; at++) {
        const size_t length = strcspn(at, ",");
        if (bench->shapes == MOST_SHAPES)
            return sl_error(SL_ERR_USAGE, "--shapes: at most %d", MOST_SHAPES);
        code = parse_shape(&bench->shape[bench->shapes++], at, length);
        at += length;
        if (!*at)
            break;
    }
    return code;
}

/* Set the types of A, B and C as training has them: values of vertices may be bfloat16, weights
 * and gradients of weights are float32. */
static void set_types(struct sl_gemm_shape *s, enum sl_type type)
{
    s->a_type = type;
    s->b_type = s->cut_sum ? type : SL_FLOAT32;
    s->c_type = s->cut_sum || s->transpose_a ? SL_FLOAT32 : type;
}

static int allocate(struct sl_gemm_shape *s, int threads)
{
    const int64_t a_rows = s->transpose_a ? s->k : s->m, b_rows = s->transpose_b ? s->n : s->k;
    const int64_t c_rows = s->cut_sum ? s->m * threads : s->m;
    s->lda = sl_leading(s->transpose_a ? s->m : s->k, s->a_type);
    s->ldb = sl_leading(s->transpose_b ? s->k : s->n, s->b_type);
    s->ldc = sl_leading(s->n, s->c_type);
    s->a_bytes = (size_t)(a_rows * s->lda) * sl_type_size(s->a_type);
    s->b_bytes = (size_t)(b_rows * s->ldb) * sl_type_size(s->b_type);
    s->c_bytes = (size_t)(c_rows * s->ldc) * sl_type_size(s->c_type);
    s->a = sl_memory_alloc(s->a_bytes);
    s->b = sl_memory_alloc(s->b_bytes);
    s->c = sl_memory_alloc(s->c_bytes);
    if (!s->a || !s->b || !s->c)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product of %s", s->name);
    return 0;
}

static void fill_halves(uint16_t *matrix, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        matrix[i] = sl_narrow(1.0f + (float)(i % 7) * 0.125f);
}

static void fill_part(void *matrix, size_t bytes, enum sl_type type, int index, int threads)
{
    const int64_t count = (int64_t)(bytes / sl_type_size(type));
    const int64_t first = count * index / threads, last = count * (index + 1) / threads;
    if (type == SL_BFLOAT16)
        fill_halves((uint16_t *)matrix + first, last - first);
    else
        sl_reference_fill((float *)matrix + first, last - first, index);
}

/* Fill the matrices. Each thread touches roughly the part that it will multiply. */
static void touch(void *context, int index, int threads)
{
    struct bench *bench = context;
    for (int s = 0; s < bench->shapes; s++) {
        struct sl_gemm_shape *shape = &bench->shape[s];
        fill_part(shape->a, shape->a_bytes, shape->a_type, index, threads);
        fill_part(shape->b, shape->b_bytes, shape->b_type, index, threads);
        fill_part(shape->c, shape->c_bytes, shape->c_type, index, threads);
    }
}

static bool on_gpu(const struct bench *bench)
{
    return bench->config.device == SL_BENCH_CUDA;
}

static int create_team(struct bench *bench)
{
    const struct config *config = &bench->config;
    const int code = sl_team_create(&bench->team);
    return code ? code
                : sl_reference_create(&bench->reference, bench->team,
                                      config->megabytes ? (size_t)config->megabytes << 20
                                                        : sl_reference_default_bytes(),
                                      config->gemm_size);
}

static int create_gemm(struct bench *bench)
{
    int code = parse_shapes(bench, bench->config.shapes);
    if (!code && on_gpu(bench) && !(gpu && gpu->is_there()))
        code = sl_error(SL_ERR_USAGE, "--device cuda: expected a GPU, and a build --with-cuda");
    if (!code && !on_gpu(bench))
        code = create_team(bench);
    const bool halves = bench->config.precision == BF16;
    if (!code && halves && on_gpu(bench))
        code = sl_error(SL_ERR_USAGE, "--precision bf16: expected --device cpu; a GPU is measured "
                                      "in every precision");
    for (int s = 0; !code && s < bench->shapes; s++)
        set_types(&bench->shape[s], halves ? SL_BFLOAT16 : SL_FLOAT32);
    for (int s = 0; !code && s < bench->shapes; s++)
        code = allocate(&bench->shape[s], on_gpu(bench) ? 1 : bench->reference.threads);
    if (!code && !on_gpu(bench))
        sl_team_run(bench->team, bench->reference.threads, touch, bench);
    return code;
}

static void destroy(struct bench *bench)
{
    for (int s = 0; s < bench->shapes; s++) {
        sl_memory_free(bench->shape[s].a, bench->shape[s].a_bytes);
        sl_memory_free(bench->shape[s].b, bench->shape[s].b_bytes);
        sl_memory_free(bench->shape[s].c, bench->shape[s].c_bytes);
    }
    sl_reference_destroy(&bench->reference);
    sl_team_destroy(bench->team);
}

/* ---- Measuring ---- */

/* Compute a thread's part of one product. */
static void multiply(const struct sl_gemm_shape *s, int index, int threads)
{
    const int64_t whole = s->cut_sum ? s->k : s->m;
    const int64_t first = whole * index / threads, count = whole * (index + 1) / threads - first;
    const int64_t m = s->cut_sum ? s->m : count, k = s->cut_sum ? count : s->k;
    /* If the cut side is A's stored rows, the part begins at a row of A; otherwise at a column. */
    const bool along_rows = s->cut_sum == s->transpose_a;
    const struct sl_rows a = sl_rows_of_type(s->a, s->lda, s->a_type),
                         b = sl_rows_of_type(s->b, s->ldb, s->b_type),
                         c = sl_rows_of_type(s->c, s->ldc, s->c_type);
    const int64_t first_b = s->cut_sum ? first : 0;
    sl_kernel_gemm(&(struct sl_gemm){
        .transpose_a = s->transpose_a,
        .transpose_b = s->transpose_b,
        .m = m,
        .n = s->n,
        .k = k,
        .a = sl_rows_at(&a, along_rows ? first : 0, along_rows ? 0 : first),
        .b = sl_rows_at(&b, s->transpose_b ? 0 : first_b, s->transpose_b ? first_b : 0),
        .c = sl_rows_at(&c, s->cut_sum ? index * s->m : first, 0)});
}

static void work(void *context, int index, int threads)
{
    const struct task *task = context;
    for (int64_t t = 0; t < task->times; t++)
        multiply(task->shape, index, threads);
}

static double run_task(void *context, int64_t times)
{
    struct task *task = context;
    task->times = times;
    return sl_team_run(task->bench->team, task->threads, work, task);
}

static double flops_of(const struct sl_gemm_shape *s)
{
    return 2.0 * (double)s->m * (double)s->n * (double)s->k;
}

/* Return the bytes that a product moves at least: each matrix once. */
static double bytes_of(const struct sl_gemm_shape *s)
{
    return (double)sl_type_size(s->a_type) * (double)s->m * (double)s->k +
           (double)sl_type_size(s->b_type) * (double)s->k * (double)s->n +
           (double)sl_type_size(s->c_type) * (double)s->m * (double)s->n;
}

/* ---- What comes out ---- */

/* Return the rate over the peak of the same round. With a bandwidth, return the rate over the
 * roofline, the lower of the peak and intensity x bandwidth. */
static struct sl_spread ratio_to(const struct sl_gemm_shape *s, const double *seconds,
                                 const double *peak, const double *bandwidth, int count)
{
    double *ratios = malloc((size_t)count * sizeof *ratios);
    for (int r = 0; ratios && r < count; r++)
        ratios[r] = flops_of(s) / seconds[r] /
                    (bandwidth ? fmin(peak[r], flops_of(s) / bytes_of(s) * bandwidth[r]) : peak[r]);
    const struct sl_spread spread = sl_spread_of(ratios, ratios ? count : 0);
    free(ratios);
    return spread;
}

/* Return a reference's rate in each round. */
static double *rates_of(const struct sl_contestant *contestant, int repetitions)
{
    const struct sl_reference_measure *measure = contestant->context;
    const double amount = sl_reference_amount(measure->reference, measure->kind, measure->threads);
    double *rates = malloc((size_t)repetitions * sizeof *rates);
    for (int r = 0; rates && r < repetitions; r++)
        rates[r] = amount / contestant->seconds[r];
    return rates;
}

json_t *sl_gemm_row(const struct sl_gemm_shape *s, const double *seconds, int repetitions)
{
    json_t *row = json_pack("{s:s, s:I, s:I, s:I, s:b, s:b}", "shape", s->name, "m",
                            (json_int_t)s->m, "n", (json_int_t)s->n, "k", (json_int_t)s->k,
                            "transpose_a", s->transpose_a, "transpose_b", s->transpose_b);
    sl_bench_set_spread(row, "seconds", sl_spread_of(seconds, repetitions));
    sl_bench_set_spread(row, "flops_per_second",
                        sl_spread_of_rate(flops_of(s), seconds, repetitions));
    return row;
}

static json_t *row_of(const struct sl_contestant *contestant, const double *peak,
                      const double *bandwidth, int repetitions)
{
    const struct task *task = contestant->context;
    const struct sl_gemm_shape *s = task->shape;
    const double *seconds = contestant->seconds;
    json_t *row = sl_gemm_row(s, seconds, repetitions);
    json_object_set_new(row, "threads", json_integer(task->threads));
    const double top = sl_spread_of(peak, repetitions).median;
    const double slope = sl_spread_of(bandwidth, repetitions).median;
    json_object_set_new(row, "intensity", json_real(flops_of(s) / bytes_of(s)));
    json_object_set_new(row, "bound",
                        json_string(flops_of(s) / bytes_of(s) * slope < top ? "memory" : "peak"));
    sl_bench_set_spread(row, "peak_ratio", ratio_to(s, seconds, peak, NULL, repetitions));
    sl_bench_set_spread(row, "roofline_ratio", ratio_to(s, seconds, peak, bandwidth, repetitions));
    return row;
}

static json_t *reference_row(const struct sl_contestant *peak,
                             const struct sl_contestant *bandwidth, int threads, int repetitions)
{
    json_t *row = json_pack("{s:i}", "threads", threads);
    const struct sl_contestant *both[] = {peak, bandwidth};
    static const char *const names[] = {"flops_per_second", "bytes_per_second"};
    for (int i = 0; i < 2; i++) {
        const struct sl_reference_measure *measure = both[i]->context;
        sl_bench_set_spread(row, names[i],
                            sl_spread_of_rate(sl_reference_amount(measure->reference, measure->kind,
                                                                  measure->threads),
                                              both[i]->seconds, repetitions));
    }
    return row;
}

static void print_gpu(const json_t *document)
{
    static const struct sl_column columns[] = {
        {"shape", "M x N x K", 0, 0},
        {"contestant", "contestant", 0, 0},
        {"seconds", "ms", 1e-3, 3},
        {"flops_per_second", "Gflop/s", 1e9, 1},
        {"flops_per_second_low", "quartiles", 1e9, 1},
        {"flops_per_second_high", "", 1e9, 1},
        {"times_starling", "x starling", 0, 2},
        {0},
    };
    sl_table_print(json_object_get(document, "rows"), columns);
}

static void print_cores(const json_t *document)
{
    static const struct sl_column columns[] = {
        {"shape", "M x N x K", 0, 0},
        {"threads", "threads", 0, 0},
        {"seconds", "ms", 1e-3, 3},
        {"flops_per_second", "Gflop/s", 1e9, 1},
        {"flops_per_second_low", "quartiles", 1e9, 1},
        {"flops_per_second_high", "", 1e9, 1},
        {"peak_ratio", "% of peak", 1e-2, 0},
        {"roofline_ratio", "% of roofline", 1e-2, 0},
        {"bound", "bound", 0, 0},
        {0},
    };
    static const struct sl_column measured[] = {
        {"threads", "threads", 0, 0},
        {"flops_per_second", "peak Gflop/s", 1e9, 1},
        {"bytes_per_second", "triad GB/s", 1e9, 2},
        {0},
    };
    sl_table_print(json_object_get(document, "references"), measured);
    putchar('\n');
    sl_table_print(json_object_get(document, "rows"), columns);
}

static void print(const struct bench *bench, const json_t *document)
{
    (on_gpu(bench) ? print_gpu : print_cores)(document);
}

/* The contestants for one number of threads: the peak, the bandwidth, then all shapes. */
struct race {
    struct sl_reference_measure measure[4];
    struct task task[2 * MOST_SHAPES];
    struct sl_contestant contestant[4 + 2 * MOST_SHAPES];
    int count;
};

static void line_up(struct bench *bench, struct race *race, int threads)
{
    static const enum sl_reference_kind kinds[] = {SL_REFERENCE_GEMM, SL_REFERENCE_TRIAD};
    const int group = race->count > 0;
    for (int k = 0; k < 2; k++) {
        race->measure[2 * group + k] =
            (struct sl_reference_measure){&bench->reference, kinds[k], threads, 0};
        race->contestant[race->count++] = (struct sl_contestant){
            .run = sl_reference_run, .context = &race->measure[2 * group + k]};
    }
    for (int s = 0; s < bench->shapes; s++) {
        struct task *task = &race->task[group * bench->shapes + s];
        *task = (struct task){bench, &bench->shape[s], threads, 0};
        race->contestant[race->count++] = (struct sl_contestant){.run = run_task, .context = task};
    }
}

static void add_rows(const struct bench *bench, const struct race *race, int group, int repetitions,
                     json_t *references, json_t *rows)
{
    const struct sl_contestant *first = &race->contestant[group * (2 + bench->shapes)];
    double *peak = rates_of(&first[0], repetitions), *bandwidth = rates_of(&first[1], repetitions);
    json_array_append_new(references, reference_row(&first[0], &first[1],
                                                    race->measure[2 * group].threads, repetitions));
    for (int s = 0; peak && bandwidth && s < bench->shapes; s++)
        json_array_append_new(rows, row_of(&first[2 + s], peak, bandwidth, repetitions));
    free(peak);
    free(bandwidth);
}

static int measure_on_cores(struct bench *bench, json_t *document, json_t *rows)
{
    static struct race race;
    const struct sl_bench_common *common = &bench->config.common;
    const int repetitions = (int)common->repetitions, all = bench->reference.threads;
    line_up(bench, &race, 1);
    if (all > 1)
        line_up(bench, &race, all);
    const int code = sl_bench_alternate(race.contestant, race.count, repetitions, !common->quiet);
    json_t *references = json_array();
    for (int group = 0; !code && group < (all > 1 ? 2 : 1); group++)
        add_rows(bench, &race, group, repetitions, references, rows);
    sl_bench_free(race.contestant, race.count);
    json_object_set_new(document, "references", references);
    return code;
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    int code = 0;
    if (!on_gpu(bench))
        return measure_on_cores(bench, document, rows);
    for (int s = 0; !code && s < bench->shapes; s++)
        code = gpu->measure(&bench->shape[s], &bench->config.common, rows);
    return code;
}

static int run_gemm(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_gemm,
        .create = create_gemm,
        .measure = measure,
        .print = print,
        .destroy = destroy,
    };
    static struct bench bench;
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}

const struct sl_command sl_bench_gemm = {
    .name = "bench gemm",
    .synopsis = "[--shapes LIST] [--OPTION ...]",
    .summary = "Measure dense products of the shapes of training against peak and bandwidth",
    .options = options,
    .run = run_gemm,
};
