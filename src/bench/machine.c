/* starling bench machine: the memory bandwidth, the rate of dense products and the bandwidth of
 * random rows, for threads bound as workers are. Other parts compare their figures with these. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/machine.h"
#include "bench/machine_work.h"
#include "core/error.h"
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
    MOST_WIDTHS = SL_REMEMBERED_GATHERS,
    MOST_CONTESTANTS = 256,
};

struct bench {
    struct sl_bench_machine config;
    struct sl_machine_work work;
    int widths;
    int64_t width[MOST_WIDTHS];
};

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

static int create_machine(struct bench *bench)
{
    const struct sl_bench_machine *config = &bench->config;
    const size_t bytes =
        config->megabytes ? (size_t)config->megabytes << 20 : sl_reference_default_bytes();
    int code = parse_widths(bench);
    if (!code && config->remember)
        code = sl_remembered_probe("machine");
    return code ? code
                : sl_machine_work_create(&bench->work, bytes, config->gemm_size, config->rows);
}

static void destroy(struct bench *bench)
{
    sl_machine_work_destroy(&bench->work);
}

/* ---- The measurements ---- */

static void run_thread(void *context, int index, int threads)
{
    struct sl_machine_task *task = context;
    (void)threads;
    for (int64_t t = 0; t < task->times; t++)
        task->work(task, index);
}

static double run_task(void *context, int64_t times)
{
    struct sl_machine_task *task = context;
    task->times = times;
    return sl_team_run(task->on->team, task->threads, run_thread, task);
}

static const char BYTES[] = "bytes_per_second", FLOPS[] = "flops_per_second",
                  ENTRIES[] = "entries_per_second";

static int add_streams(struct bench *bench, struct sl_machine_task *tasks, int threads)
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
        tasks[count++] = (struct sl_machine_task){
            .on = &bench->work,
            .work = sl_work_reference,
            .measure = kinds[k].measure,
            .threads = threads,
            .kind = kinds[k].kind,
            .amount = sl_reference_amount(&bench->work.reference, kinds[k].kind, threads),
            .rate = kinds[k].rate,
        };
    tasks[count++] = (struct sl_machine_task){
        .on = &bench->work,
        .work = sl_work_tall,
        .measure = "gemm_tall",
        .threads = threads,
        .amount = 2.0 * SL_TALL_N * SL_TALL_K * (double)bench->work.tall_rows * threads,
        .rate = FLOPS,
    };
    tasks[count++] = (struct sl_machine_task){
        .on = &bench->work,
        .work = sl_work_features,
        .measure = "features",
        .threads = threads,
        .amount = 4.0 * SL_TALL_N * SL_FEATURE_ENTRIES * threads,
        .rate = FLOPS,
    };
    tasks[count++] = (struct sl_machine_task){
        .on = &bench->work,
        .work = sl_work_draws,
        .measure = "draws",
        .threads = threads,
        .amount = (double)SL_FEATURE_ENTRIES * threads,
        .rate = ENTRIES,
    };
    return count;
}

/* Bytes of tables that fit a core's own cache, and the last-level cache. */
static const size_t CORE_TABLE = 1 << 20, LAST_TABLE = 16 << 20;

static int add_gathers(struct bench *bench, struct sl_machine_task *tasks, int threads)
{
    static const struct {
        enum sl_pages pages;
        bool prefetch;
        size_t table;
    } ways[] = {{SL_HUGE_PAGES, true, 0},          {SL_SMALL_PAGES, true, 0},
                {SL_HUGE_PAGES, false, 0},         {SL_SMALL_PAGES, false, 0},
                {SL_HUGE_PAGES, true, CORE_TABLE}, {SL_HUGE_PAGES, true, LAST_TABLE}};
    int count = 0;
    for (int w = 0; w < bench->widths; w++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            const int64_t width = bench->width[w];
            tasks[count++] = (struct sl_machine_task){
                .on = &bench->work,
                .work = sl_work_gather,
                .measure = "gather",
                .threads = threads,
                .amount = (double)sl_machine_gathered_rows(&bench->work, width) * (double)width *
                          sizeof(float) * threads,
                .rate = BYTES,
                .width = width,
                .pages = ways[k].pages,
                .table = ways[k].table,
                .prefetch = ways[k].prefetch,
            };
        }
    return count;
}

/* Add streams and products with 1, 2, 4, … and all threads, and random rows with 1 and all. */
static int add_tasks(struct bench *bench, struct sl_machine_task *tasks)
{
    int count = 0;
    for (int threads = 1; threads < 2 * bench->work.threads; threads *= 2)
        count += add_streams(bench, tasks + count,
                             threads < bench->work.threads ? threads : bench->work.threads);
    count += add_gathers(bench, tasks + count, 1);
    if (bench->work.threads > 1)
        count += add_gathers(bench, tasks + count, bench->work.threads);
    return count;
}

/* ---- What comes out ---- */

/* Return where the table of random rows lies: "core" or "last" (caches), or "memory". */
static const char *source_of(const struct sl_machine_task *task)
{
    return task->table == CORE_TABLE ? "core" : task->table == LAST_TABLE ? "last" : "memory";
}

static json_t *row_of(const struct sl_machine_task *task, const double *seconds, int repetitions)
{
    json_t *row = json_pack("{s:s, s:i}", "measure", task->measure, "threads", task->threads);
    if (task->width) {
        json_object_set_new(row, "width", json_integer(task->width));
        json_object_set_new(row, "pages",
                            json_string(task->pages == SL_HUGE_PAGES ? "huge" : "small"));
        json_object_set_new(row, "prefetch", json_boolean(task->prefetch));
        json_object_set_new(row, "ahead", json_string(task->prefetch ? "prefetch" : "none"));
        json_object_set_new(row, "from", json_string(source_of(task)));
    }
    sl_bench_set_spread(row, task->rate, sl_spread_of_rate(task->amount, seconds, repetitions));
    return row;
}

/* Print the rows that have member `key`, but not `other` (NULL: none). */
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
           bench->work.threads, sl_s(bench->work.threads), bench->work.reference.bytes >> 20,
           bench->work.reference.gemm_size, bench->work.tall_rows * bench->work.threads, SL_TALL_K,
           SL_TALL_N);
    print_rows(rows, BYTES, "width", streams);
    print_rows(rows, FLOPS, NULL, products);
    print_rows(rows, ENTRIES, NULL, draws);
    print_rows(rows, "width", NULL, gathers);
}

/* Return the median rates [one thread, all threads] of a measurement. Gathers: prefetched rows of
 * `width` from `from`, on huge pages. */
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
        if (threads == bench->work.threads)
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
    json_t *object = json_pack("{s:i}", "threads", bench->work.threads);
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
    struct sl_machine_task tasks[MOST_CONTESTANTS];
    struct sl_contestant contestants[MOST_CONTESTANTS];
    const struct sl_bench_common *common = &bench->config.common;
    const int count = add_tasks(bench, tasks), repetitions = (int)common->repetitions;
    for (int c = 0; c < count; c++)
        contestants[c] = (struct sl_contestant){.run = run_task, .context = &tasks[c]};
    const int code = sl_bench_alternate(contestants, count, repetitions, !common->quiet);
    for (int c = 0; !code && c < count; c++)
        json_array_append_new(rows, row_of(&tasks[c], contestants[c].seconds, repetitions));
    sl_bench_free(contestants, count);
    json_object_set_new(document, "threads", json_integer(bench->work.threads));
    json_object_set_new(document, "array_bytes",
                        json_integer((json_int_t)bench->work.reference.bytes));
    return code;
}

static int run_machine(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_machine,
        .create = create_machine,
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
    .run = run_machine,
};
