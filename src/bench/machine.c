/* starling bench machine: the memory bandwidth, the rate of dense products and the bandwidth of
 * random rows that this machine gives to threads bound as the workers are. Everything else is
 * measured against these. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/machine.h"
#include "bench/reference.h"
#include "bench/team.h"
#include "codelets/features.h"
#include "codelets/gather.h"
#include "codelets/gemm.h"
#include "codelets/kept.h"
#include "codelets/vector.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/profile_view.h"
#include "core/remembered.h"
#include "core/table.h"
#include "core/words.h"

static const struct sl_option options[] = {
    {"megabytes", SL_OPTION_INT, offsetof(struct sl_bench_machine, megabytes), "0", 0, 1 << 24,
     NULL, "M",
     "size of each array, of which there are four; 0: sixteen times the last cache, at least 256, "
     "at most a sixteenth of the memory",
     "Sizes"},
    {"width", SL_OPTION_STRING, offsetof(struct sl_bench_machine, width), "16,32,64,128,256,512", 0,
     0, NULL, "LIST", "floats in a gathered row, multiples of 16", "Sizes"},
    {"gemm-size", SL_OPTION_INT, offsetof(struct sl_bench_machine, gemm_size), "1024", 16, 16384,
     NULL, "N", "rows and columns of the square products", "Sizes"},
    {"rows", SL_OPTION_INT, offsetof(struct sl_bench_machine, rows), "100000", 16, 100000000, NULL,
     "N", "rows of the tall product with 256 x 64, over all threads", "Sizes"},
    {"remember", SL_OPTION_FLAG, offsetof(struct sl_bench_machine, remember), "no", 0, 0, NULL,
     NULL, "keep the figures in the user's cache directory, for later runs on this machine",
     "Output"},
    SL_BENCH_OPTIONS(sl_bench_machine, "7"),
    {0},
};

enum {
    TALL_K = 256,
    TALL_N = 64,
    FEATURE_ROWS = 4096,
    FEATURES = 1024,
    PER_ROW = 64, /* entries */
    FEATURE_ENTRIES = FEATURE_ROWS * PER_ROW,
    MOST_WIDTHS = SL_REMEMBERED_GATHERS,
    MOST_CONTESTANTS = 256,
};

/* State of all measurements. A thread works on its own share of every array, and was the first to
 * touch this share. Only random rows come from a whole array. */
struct bench {
    struct sl_bench_machine config;
    struct sl_team *team;
    int threads;
    struct sl_reference reference;
    float *table;              /* like an array of the reference, without huge pages */
    struct operands *operands; // (threads)
    int widths;
    int64_t width[MOST_WIDTHS];
};

/* A thread's tall product, and its sparse features. */
struct operands {
    _Alignas(64) float *a, *b, *c; // (rows, 256), (256, 64), (rows, 64)
    float *h, *z;                  // (FEATURES, 64), (FEATURE_ROWS, 64)
    uint32_t *row_ptr;             // (FEATURE_ROWS + 1)
    uint16_t *col;                 // (FEATURE_ROWS, PER_ROW)
    bool has_features;
    float sink; /* where sums go, so that they are computed */
};

enum pages { HUGE_PAGES, SMALL_PAGES };

/* One measurement. */
struct task {
    struct bench *bench;
    void (*work)(const struct task *task, int index);
    const char *measure;
    int threads;
    enum sl_reference_kind kind;
    double amount;    /* bytes or flops of one run over all threads */
    const char *rate; /* "bytes_per_second" or "flops_per_second" */
    int64_t width;    /* gathers: floats in a row */
    size_t table;     /* and bytes of the table, 0: an array */
    enum pages pages;
    bool prefetch;
    int64_t times;
};

/* ---- Streams and dense products ---- */

static void work_reference(const struct task *task, int index)
{
    sl_reference_work(&task->bench->reference, task->kind, index);
}

static int64_t tall_rows(const struct bench *bench)
{
    return (bench->config.rows + bench->threads - 1) / bench->threads;
}

static void work_tall(const struct task *task, int index)
{
    const struct operands *o = &task->bench->operands[index];
    const struct sl_rows a = sl_float_rows(o->a, TALL_K), b = sl_float_rows(o->b, TALL_N),
                         c = sl_float_rows(o->c, TALL_N);
    sl_kernel_gemm(&(struct sl_gemm){
        .m = tall_rows(task->bench), .n = TALL_N, .k = TALL_K, .a = a, .b = b, .c = c});
}

/* ---- Sparse features ---- */

static struct sl_sparse features_of(const struct operands *o)
{
    return (struct sl_sparse){
        .rows = FEATURE_ROWS,
        .cols = FEATURES,
        .block_cols = FEATURES,
        .blocks = 1,
        .narrow = true,
        .row_ptr = o->row_ptr,
        .col = o->col,
    };
}

/* One way and the other. */
static void work_features(const struct task *task, int index)
{
    const struct operands *o = &task->bench->operands[index];
    const struct sl_sparse x = features_of(o);
    struct sl_features features = {
        .x = &x,
        .width = TALL_N,
        .h = sl_float_rows(o->h, TALL_N),
        .z = sl_float_rows(o->z, TALL_N),
    };
    sl_kernel_features(&features);
    features.transposed = true;
    features.h = sl_float_rows(o->z, TALL_N);
    features.z = sl_float_rows(o->h, TALL_N);
    sl_kernel_features(&features);
}

static void work_draws(const struct task *task, int index)
{
    struct operands *o = &task->bench->operands[index];
    const struct sl_sparse x = features_of(o);
    const struct sl_dropout half = sl_dropout_make(0.5, 1);
    struct sl_kept_walk walk = sl_kept_walk(&x, 0, &half, o->row_ptr, 0, x.rows);
    struct sl_kept batch;
    while (sl_kept_next(&walk, &batch))
        o->sink += batch.value[0];
}

static bool make_features(struct operands *o)
{
    o->h = sl_memory_alloc(FEATURES * TALL_N * sizeof *o->h);
    o->z = sl_memory_alloc(FEATURE_ROWS * TALL_N * sizeof *o->z);
    o->row_ptr = malloc((FEATURE_ROWS + 1) * sizeof *o->row_ptr);
    o->col = malloc(FEATURE_ENTRIES * sizeof *o->col);
    if (!o->h || !o->z || !o->row_ptr || !o->col)
        return false;
    memset(o->h, 0, FEATURES * TALL_N * sizeof *o->h);
    for (uint32_t r = 0; r <= FEATURE_ROWS; r++)
        o->row_ptr[r] = r * PER_ROW;
    for (uint32_t e = 0; e < FEATURE_ENTRIES; e++) /* one of each 16 columns, another in each row */
        o->col[e] = (uint16_t)(e % PER_ROW * (FEATURES / PER_ROW) + e / PER_ROW * 7 % 16);
    return true;
}

static void free_features(struct operands *o)
{
    sl_memory_free(o->h, FEATURES * TALL_N * sizeof *o->h);
    sl_memory_free(o->z, FEATURE_ROWS * TALL_N * sizeof *o->z);
    free(o->row_ptr);
    free(o->col);
}

/* ---- Random rows ---- */

/* A linear congruential generator: cheaper than the gather, the same in every run. */
SL_INLINE uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 32;
}

/* Adds up `count` random rows of `width` floats in 8 registers' worth of sums; as far ahead of
 * their use as in a sparse product, rows are drawn and asked for. */
SL_INLINE void gather_body(const float *table, int64_t rows, int64_t width, int64_t count,
                           bool prefetch, uint64_t seed, float *total)
{
    enum { BLOCK = 8 };
    sl_floats sum[BLOCK];
    uint64_t state = seed;
    int64_t coming[SL_GATHER_MOST_AHEAD];
    const int64_t ahead = sl_gather_ahead(width * (int64_t)sizeof(float));
    for (int v = 0; v < BLOCK; v++)
        sum[v] = (sl_floats){0};
    for (int64_t i = 0; i < ahead; i++)
        coming[i] = (int64_t)(next_random(&state) * (uint64_t)rows >> 32);
    for (int64_t i = 0, slot = 0; i < count; i++, slot = slot + 1 < ahead ? slot + 1 : 0) {
        const float *row = table + coming[slot] * width;
        coming[slot] = (int64_t)(next_random(&state) * (uint64_t)rows >> 32);
        if (prefetch)
            for (int64_t j = 0; j < width; j += SL_LANES)
                __builtin_prefetch(table + coming[slot] * width + j);
        int64_t j = 0;
        for (; j + BLOCK * SL_LANES <= width; j += BLOCK * SL_LANES)
            for (int v = 0; v < BLOCK; v++)
                sum[v] += *(const sl_floats *)(row + j + v * SL_LANES);
        for (int v = 0; j < width; j += SL_LANES, v++)
            sum[v & 3] += *(const sl_floats *)(row + j);
    }
    *total = 0.0f;
    for (int v = 0; v < BLOCK; v++)
        *total += sum[v][0];
}

SL_DISPATCH(static, gather,
            (const float *table, int64_t rows, int64_t width, int64_t count, bool prefetch,
             uint64_t seed, float *total),
            (table, rows, width, count, prefetch, seed, total))

/* Rows that a thread gathers in one run: a quarter of an array. */
static int64_t gathered_rows(const struct bench *bench, int64_t width)
{
    return 1 + (int64_t)(bench->reference.bytes / 4 / sizeof(float)) / width / bench->threads;
}

static void work_gather(const struct task *task, int index)
{
    struct bench *bench = task->bench;
    const float *table = task->pages == HUGE_PAGES ? bench->reference.array[0] : bench->table;
    const size_t bytes =
        task->table && task->table < bench->reference.bytes ? task->table : bench->reference.bytes;
    const int64_t rows = (int64_t)(bytes / sizeof(float)) / task->width;
    float total;
    gather(table, rows, task->width, gathered_rows(bench, task->width), task->prefetch,
           (uint64_t)(index + 1) * 1000003u + (uint64_t)task->times, &total);
    bench->operands[index].sink += total;
}

/* ---- Memory ---- */

/* Anonymous memory without huge pages, whatever the system's default. */
static float *map_small(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static float *new_matrix(int64_t rows, int64_t cols)
{
    float *matrix = sl_memory_alloc((size_t)(rows * cols) * sizeof(float));
    if (matrix)
        sl_reference_fill(matrix, rows * cols, 0);
    return matrix;
}

/* A thread's matrices, and its part of the table. */
static void touch(void *context, int index, int threads)
{
    struct bench *bench = context;
    const int64_t rows = tall_rows(bench);
    const int64_t count = (int64_t)(bench->reference.bytes / sizeof(float));
    const int64_t first = count * index / threads, last = count * (index + 1) / threads;
    sl_reference_fill(bench->table + first, last - first, index);
    bench->operands[index] = (struct operands){
        .a = new_matrix(rows, TALL_K),
        .b = new_matrix(TALL_K, TALL_N),
        .c = new_matrix(rows, TALL_N),
    };
    bench->operands[index].has_features = make_features(&bench->operands[index]);
}

static int parse_widths(struct bench *bench)
{
    int code = sl_bench_parse_list("width", bench->config.width, 16, 512, MOST_WIDTHS, bench->width,
                                   &bench->widths);
    for (int w = 0; !code && w < bench->widths; w++)
        if (bench->width[w] % 16)
            code = sl_error(SL_ERR_USAGE, "--width: expected multiples of 16, not %" PRId64,
                            bench->width[w]);
    return code;
}

static int create(struct bench *bench)
{
    const struct sl_bench_machine *config = &bench->config;
    const size_t bytes =
        config->megabytes ? (size_t)config->megabytes << 20 : sl_reference_default_bytes();
    int code = parse_widths(bench);
    if (!code)
        code = sl_team_create(&bench->team);
    if (code)
        return code;
    bench->threads = sl_team_size(bench->team);
    bench->operands = aligned_alloc(64, (size_t)bench->threads * sizeof *bench->operands);
    if (bench->operands)
        memset(bench->operands, 0, (size_t)bench->threads * sizeof *bench->operands);
    code = sl_reference_create(&bench->reference, bench->team, bytes, config->gemm_size);
    bench->table = code ? NULL : map_small(bytes);
    if (!code && (!bench->table || !bench->operands))
        code = sl_error(SL_ERR_SYSTEM, "no memory for a fourth array of %zu MiB", bytes >> 20);
    if (code)
        return code;
    sl_team_run(bench->team, bench->threads, touch, bench);
    for (int t = 0; t < bench->threads; t++)
        if (!bench->operands[t].a || !bench->operands[t].b || !bench->operands[t].c ||
            !bench->operands[t].has_features)
            return sl_error(SL_ERR_SYSTEM, "no memory for the products of %d threads",
                            bench->threads);
    return 0;
}

static void free_matrix(float *matrix, int64_t rows, int64_t cols)
{
    sl_memory_free(matrix, (size_t)(rows * cols) * sizeof(float));
}

static void destroy(struct bench *bench)
{
    const int64_t rows = bench->threads ? tall_rows(bench) : 0;
    for (int t = 0; bench->operands && t < bench->threads; t++) {
        free_matrix(bench->operands[t].a, rows, TALL_K);
        free_matrix(bench->operands[t].b, TALL_K, TALL_N);
        free_matrix(bench->operands[t].c, rows, TALL_N);
        free_features(&bench->operands[t]);
    }
    free(bench->operands);
    if (bench->table)
        munmap(bench->table, bench->reference.bytes);
    sl_reference_destroy(&bench->reference);
    sl_team_destroy(bench->team);
}

/* ---- The measurements ---- */

static void run_thread(void *context, int index, int threads)
{
    struct task *task = context;
    (void)threads;
    for (int64_t t = 0; t < task->times; t++)
        task->work(task, index);
}

static double run_task(void *context, int64_t times)
{
    struct task *task = context;
    task->times = times;
    return sl_team_run(task->bench->team, task->threads, run_thread, task);
}

static const char BYTES[] = "bytes_per_second", FLOPS[] = "flops_per_second",
                  ENTRIES[] = "entries_per_second";

static int add_streams(struct bench *bench, struct task *tasks, int threads)
{
    static const struct {
        const char *measure, *rate;
        enum sl_reference_kind kind;
    } kinds[] = {
        {"read", BYTES, SL_REFERENCE_READ},
        {"copy", BYTES, SL_REFERENCE_COPY},
        {"triad", BYTES, SL_REFERENCE_TRIAD},
        {"gemm", FLOPS, SL_REFERENCE_GEMM},
    };
    int count = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        tasks[count++] = (struct task){
            .bench = bench,
            .work = work_reference,
            .measure = kinds[k].measure,
            .threads = threads,
            .kind = kinds[k].kind,
            .amount = sl_reference_amount(&bench->reference, kinds[k].kind, threads),
            .rate = kinds[k].rate,
        };
    tasks[count++] = (struct task){
        .bench = bench,
        .work = work_tall,
        .measure = "gemm_tall",
        .threads = threads,
        .amount = 2.0 * TALL_N * TALL_K * (double)tall_rows(bench) * threads,
        .rate = FLOPS,
    };
    tasks[count++] = (struct task){
        .bench = bench,
        .work = work_features,
        .measure = "features",
        .threads = threads,
        .amount = 4.0 * TALL_N * FEATURE_ENTRIES * threads,
        .rate = FLOPS,
    };
    tasks[count++] = (struct task){
        .bench = bench,
        .work = work_draws,
        .measure = "draws",
        .threads = threads,
        .amount = (double)FEATURE_ENTRIES * threads,
        .rate = ENTRIES,
    };
    return count;
}

/* Tables in a core's own cache, and in the last-level one. */
static const size_t CORE_TABLE = 1 << 20, LAST_TABLE = 16 << 20;

static int add_gathers(struct bench *bench, struct task *tasks, int threads)
{
    static const struct {
        enum pages pages;
        bool prefetch;
        size_t table;
    } ways[] = {{HUGE_PAGES, true, 0},          {SMALL_PAGES, true, 0},
                {HUGE_PAGES, false, 0},         {SMALL_PAGES, false, 0},
                {HUGE_PAGES, true, CORE_TABLE}, {HUGE_PAGES, true, LAST_TABLE}};
    int count = 0;
    for (int w = 0; w < bench->widths; w++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            const int64_t width = bench->width[w];
            tasks[count++] = (struct task){
                .bench = bench,
                .work = work_gather,
                .measure = "gather",
                .threads = threads,
                .amount =
                    (double)gathered_rows(bench, width) * (double)width * sizeof(float) * threads,
                .rate = BYTES,
                .width = width,
                .pages = ways[k].pages,
                .table = ways[k].table,
                .prefetch = ways[k].prefetch,
            };
        }
    return count;
}

/* Streams and products with 1, 2, 4, … and all threads, random rows with 1 and all. */
static int add_tasks(struct bench *bench, struct task *tasks)
{
    int count = 0;
    for (int threads = 1; threads < 2 * bench->threads; threads *= 2)
        count +=
            add_streams(bench, tasks + count, threads < bench->threads ? threads : bench->threads);
    count += add_gathers(bench, tasks + count, 1);
    if (bench->threads > 1)
        count += add_gathers(bench, tasks + count, bench->threads);
    return count;
}

/* ---- What comes out ---- */

/* Where random rows come from. */
static const char *source_of(const struct task *task)
{
    return task->table == CORE_TABLE ? "core" : task->table == LAST_TABLE ? "last" : "memory";
}

static json_t *row_of(const struct task *task, const double *seconds, int repetitions)
{
    json_t *row = json_pack("{s:s, s:i}", "measure", task->measure, "threads", task->threads);
    if (task->width) {
        json_object_set_new(row, "width", json_integer(task->width));
        json_object_set_new(row, "pages",
                            json_string(task->pages == HUGE_PAGES ? "huge" : "small"));
        json_object_set_new(row, "prefetch", json_boolean(task->prefetch));
        json_object_set_new(row, "ahead", json_string(task->prefetch ? "prefetch" : "none"));
        json_object_set_new(row, "from", json_string(source_of(task)));
    }
    sl_bench_set_spread(row, task->rate, sl_spread_of_rate(task->amount, seconds, repetitions));
    return row;
}

/* Prints the rows whose member `key` is there. */
static void print_rows(const json_t *rows, const char *key, const char *other,
                       const struct sl_column *columns)
{
    json_t *chosen = json_array();
    size_t index;
    json_t *row;
    json_array_foreach((json_t *)rows, index, row)
    {
        if (json_object_get(row, key) && !(other && json_object_get(row, other)))
            json_array_append(chosen, row);
    }
    sl_table_print(chosen, columns);
    putchar('\n');
    json_decref(chosen);
}

static void print(const struct bench *bench, const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows");
    static const struct sl_column streams[] = {
        {"measure", "memory", 0, 0},           {"threads", "threads", 0, 0},
        {"bytes_per_second", "GB/s", 1e9, 2},  {"bytes_per_second_low", "quartiles", 1e9, 2},
        {"bytes_per_second_high", "", 1e9, 2}, {0},
    };
    static const struct sl_column products[] = {
        {"measure", "products", 0, 0},           {"threads", "threads", 0, 0},
        {"flops_per_second", "Gflop/s", 1e9, 1}, {"flops_per_second_low", "quartiles", 1e9, 1},
        {"flops_per_second_high", "", 1e9, 1},   {0},
    };
    static const struct sl_column gathers[] = {
        {"measure", "random rows", 0, 0},
        {"width", "floats", 0, 0},
        {"pages", "pages", 0, 0},
        {"ahead", "ahead", 0, 0},
        {"from", "from", 0, 0},
        {"threads", "threads", 0, 0},
        {"bytes_per_second", "GB/s", 1e9, 2},
        {"bytes_per_second_low", "quartiles", 1e9, 2},
        {"bytes_per_second_high", "", 1e9, 2},
        {0},
    };
    static const struct sl_column draws[] = {
        {"measure", "dropout", 0, 0},
        {"threads", "threads", 0, 0},
        {"entries_per_second", "G/s", 1e9, 2},
        {"entries_per_second_low", "quartiles", 1e9, 2},
        {"entries_per_second_high", "", 1e9, 2},
        {0},
    };
    printf("%d thread%s, arrays of %zu MiB, products of %" PRId64 " squared and %" PRId64
           " x %d x %d\n\n",
           bench->threads, sl_s(bench->threads), bench->reference.bytes >> 20,
           bench->reference.gemm_size, tall_rows(bench) * bench->threads, TALL_K, TALL_N);
    print_rows(rows, BYTES, "width", streams);
    print_rows(rows, FLOPS, NULL, products);
    print_rows(rows, ENTRIES, NULL, draws);
    print_rows(rows, "width", NULL, gathers);
}

/* The medians with one thread and with all of a measurement, {one, all}; gathers: of rows of
 * `width` from `from`. */
static json_t *pair_of(const json_t *rows, const struct bench *bench, const char *measure,
                       int64_t width, const char *from)
{
    double pair[2] = {0};
    size_t index;
    const json_t *row;
    json_array_foreach((json_t *)rows, index, row)
    {
        const json_int_t threads = json_integer_value(json_object_get(row, "threads"));
        const double rate = sl_number(row, BYTES) + sl_number(row, FLOPS) + sl_number(row, ENTRIES);
        if (strcmp(json_string_value(json_object_get(row, "measure")), measure) != 0 ||
            json_integer_value(json_object_get(row, "width")) != width)
            continue;
        if (width && (!json_is_true(json_object_get(row, "prefetch")) ||
                      strcmp(json_string_value(json_object_get(row, "from")), from) != 0 ||
                      strcmp(json_string_value(json_object_get(row, "pages")), "huge") != 0))
            continue;
        if (threads == 1)
            pair[0] = rate;
        if (threads == bench->threads)
            pair[1] = rate;
    }
    return json_pack("[f, f]", pair[0], pair[1]);
}

static int remember(const struct bench *bench, const json_t *rows)
{
    static const char *const measures[] = {"read",      "copy",     "triad", "gemm",
                                           "gemm_tall", "features", "draws"};
    if (!bench->config.remember)
        return 0;
    json_t *object = json_pack("{s:i}", "threads", bench->threads);
    for (size_t m = 0; m < sizeof measures / sizeof *measures; m++)
        json_object_set_new(object, measures[m], pair_of(rows, bench, measures[m], 0, NULL));
    json_t *gathers = json_array();
    for (int w = 0; w < bench->widths; w++)
        json_array_append_new(
            gathers,
            json_pack("{s:I, s:o, s:o, s:o}", "width", (json_int_t)bench->width[w], "rate",
                      pair_of(rows, bench, "gather", bench->width[w], "memory"), "last_rate",
                      pair_of(rows, bench, "gather", bench->width[w], "last"), "core_rate",
                      pair_of(rows, bench, "gather", bench->width[w], "core")));
    json_object_set_new(object, "gather", gathers);
    return sl_remembered_set("machine", object);
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    struct task tasks[MOST_CONTESTANTS];
    struct sl_contestant contestants[MOST_CONTESTANTS];
    const struct sl_bench_common *common = &bench->config.common;
    const int count = add_tasks(bench, tasks), repetitions = (int)common->repetitions;
    for (int c = 0; c < count; c++)
        contestants[c] = (struct sl_contestant){.run = run_task, .context = &tasks[c]};
    const int code = sl_bench_alternate(contestants, count, repetitions, !common->quiet);
    for (int c = 0; !code && c < count; c++)
        json_array_append_new(rows, row_of(&tasks[c], contestants[c].seconds, repetitions));
    sl_bench_free(contestants, count);
    json_object_set_new(document, "threads", json_integer(bench->threads));
    json_object_set_new(document, "array_bytes", json_integer((json_int_t)bench->reference.bytes));
    return code;
}

static int run(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_machine,
        .create = create,
        .measure = measure,
        .print = print,
        .remember = remember,
        .destroy = destroy,
    };
    struct bench bench = {0};
    if (sl_runtime_launched())
        return sl_bench_link_run(argc, argv);
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}

const struct sl_command sl_bench_machine = {
    .name = "bench machine",
    .synopsis = "[--OPTION ...]",
    .summary =
        "Measure memory bandwidth, dense products and random rows, with one thread and more; "
        "under mpirun -n 2, messages",
    .options = options,
    .run = run,
};
