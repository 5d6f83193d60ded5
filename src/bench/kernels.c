/* starling bench kernels: each kernel of cores at each level of instructions, against its plain
 * loop and the machine's limits. */
#include "bench/kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/loops.h"
#include "bench/team.h"
#include "codelets/instructions.h"
#include "core/error.h"
#include "core/table.h"
#include "core/words.h"

struct config {
    struct sl_bench_common common;
    int64_t vertices, degree;
    char *width, *instructions, *kernel;
};

static const struct sl_option options[] = {
    {"vertices", SL_OPTION_INT, offsetof(struct config, vertices), "20000", 1, 1 << 24, NULL, "N",
     "rows of all matrices, and vertices of a random graph", "Sizes"},
    {"degree", SL_OPTION_INT, offsetof(struct config, degree), "16", 1, 1 << 16, NULL, "D",
     "neighbours of each vertex, at most as many as there are vertices", "Sizes"},
    {"width", SL_OPTION_STRING, offsetof(struct config, width), "64", 0, 0, NULL, "LIST",
     "columns of the matrices, at most 1024", "Sizes"},
    {"instructions", SL_OPTION_STRING, offsetof(struct config, instructions), "all", 0, 0, NULL,
     "LIST", "levels of instructions, as base,v3; all: those of this processor", "Kernels"},
    {"kernel", SL_OPTION_STRING, offsetof(struct config, kernel), "all", 0, 0, NULL, "LIST",
     "kernels, or first words of their names, as gather,norm", "Kernels"},
    SL_BENCH_OPTIONS(config, "7"),
    {0},
};

enum { MOST_WIDTHS = 16 };

struct bench {
    struct config config;
    struct sl_team *team;
    int widths, levels;
    int64_t width[MOST_WIDTHS];
    enum sl_instructions level[SL_INSTRUCTIONS];
    /* Members for the current width. */
    struct sl_kernel_work work;
    double *found; // (3, most): results of the loop, the kernel, the kernel at level 0
    int64_t most;
};

/* ---- Options ---- */

/* Whether NAME, or its part before a "_", is in the comma-separated LIST. */
static bool is_listed(const char *name, const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t length = strcspn(at, ",");
        if (length && strncmp(name, at, length) == 0 && (name[length] == 0 || name[length] == '_'))
            return true;
    }
    return strcmp(list, "all") == 0;
}

/* Refuse a word of --kernel that selects no kernel. */
static int check_kernels(const char *list)
{
    char word[64];
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        bool found = false;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        for (const struct sl_kernel_row *row = sl_kernel_rows; row->name; row++)
            found |= is_listed(row->name, word);
        if (!found)
            return sl_error(SL_ERR_USAGE, "--kernel: no kernel is \"%s\" or begins with it", word);
    }
    return *list ? 0 : sl_error(SL_ERR_USAGE, "--kernel: expected names of kernels");
}

static int parse_levels(struct bench *bench)
{
    const char *list = bench->config.instructions;
    bool chosen[SL_INSTRUCTIONS] = {false};
    char word[16];
    for (const char *at = list; strcmp(list, "all") != 0; at++) {
        enum sl_instructions level;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        const int choice = sl_choice_find(SL_CHOICES(SL_INSTRUCTION_CHOICES), word);
        if (choice == SL_NO_CHOICE)
            return sl_error(SL_ERR_USAGE, "--instructions: expected all, or some of %s, not \"%s\"",
                            SL_CHOICES(SL_INSTRUCTION_CHOICES), word);
        const int code = sl_instructions_choose((enum sl_instructions)choice, &level);
        if (code)
            return code;
        chosen[level] = true;
        at += strcspn(at, ",");
        if (!*at)
            break;
    }
    for (int l = 0; l <= (int)sl_instructions_best(); l++)
        if (chosen[l] || strcmp(list, "all") == 0)
            bench->level[bench->levels++] = (enum sl_instructions)l;
    return 0;
}

static int create_kernels(struct bench *bench)
{
    const struct config *config = &bench->config;
    int code = sl_bench_parse_list("width", config->width, 1, SL_KERNEL_WIDTH, MOST_WIDTHS,
                                   bench->width, &bench->widths);
    if (!code)
        code = parse_levels(bench);
    if (!code)
        code = check_kernels(config->kernel);
    if (!code && config->degree * config->vertices > UINT32_MAX)
        code = sl_error(SL_ERR_USAGE,
                        "--degree times --vertices: at most %" PRIu32 " adjacency entries",
                        UINT32_MAX);
    if (!code && config->degree > config->vertices)
        code = sl_error(SL_ERR_USAGE, "--degree: at most the number of vertices, %" PRId64,
                        config->vertices);
    return code ? code : sl_team_create(&bench->team);
}

static void destroy(struct bench *bench)
{
    free(bench->found);
    sl_kernel_work_destroy(&bench->work);
    sl_team_destroy(bench->team);
}

/* ---- Comparisons ---- */

static int64_t find(const struct bench *bench, const struct sl_kernel_row *row,
                    sl_kernel_call *call, double *to)
{
    sl_kernel_work_reset(&bench->work);
    call(&bench->work);
    return sl_kernel_work_results(&bench->work, row->results, to);
}

static int compare(const struct bench *bench, const struct sl_kernel_row *row, int64_t count,
                   const double *got, const double *want, const char *other)
{
    const int64_t i = sl_kernel_difference(count, got, want, row->tolerance);
    if (i < 0)
        return 0;
    return sl_error(SL_ERR_SYSTEM,
                    "%s at %s, width %" PRId64 ": number %" PRId64
                    " of the result is %.9g, and %.9g %s",
                    row->name, sl_instructions_names[sl_instructions_get()], bench->work.width, i,
                    got[i], want[i], other);
}

/* Compare the kernel's results at each level with the plain loop's, and with the first level's. */
static int verify(const struct bench *bench, const struct sl_kernel_row *row)
{
    double *const plain = bench->found, *const first = plain + bench->most;
    int code = 0;
    for (int l = 0; !code && l < bench->levels; l++) {
        double *const got = l ? first + bench->most : first;
        sl_instructions_set(bench->level[l]);
        const int64_t count = find(bench, row, row->run, got);
        find(bench, row, sl_loop_find(row->name), plain);
        code = compare(bench, row, count, got, plain, "of the plain loop");
        if (!code && l)
            code = compare(bench, row, count, got, first, sl_instructions_names[bench->level[0]]);
    }
    return code;
}

/* ---- Measurements ---- */

/* The contestants of a level: the kernel, its loop, and the two limits of the machine. */
enum { KERNEL, PLAIN, TRIAD, PEAK, CONTESTANTS };

static const double TRIAD_BYTES = 12.0; /* bytes of an element */
enum { PEAK_ELEMENTS = 96 * 1024 };     /* a multiple of each level's chains */

static void triad(const struct sl_kernel_work *k)
{
    sl_loop_triad(k->rows * k->ld, 0.5f, k->h, k->g, k->results.y);
}

static void peak(const struct sl_kernel_work *k)
{
    float sums[SL_ROW_UNIT];
    sl_loop_peak(PEAK_ELEMENTS, sums);
    k->results.sums[0] += (double)sums[0];
}

struct turn {
    const struct bench *bench;
    enum sl_instructions level;
    sl_kernel_call *call;
    int64_t times;
};

static void work(void *context, int index, int threads)
{
    const struct turn *turn = context;
    (void)index, (void)threads;
    for (int64_t t = 0; t < turn->times; t++)
        turn->call(&turn->bench->work);
}

static double run_turn(void *context, int64_t times)
{
    struct turn *turn = context;
    turn->times = times;
    sl_instructions_set(turn->level);
    return sl_team_run(turn->bench->team, 1, work, turn);
}

static double amount(const struct sl_kernel_work *k, const struct sl_kernel_amount *each)
{
    const double entries = (double)k->entries, width = (double)k->width,
                 related = fmin((double)k->rows * SL_KERNEL_RELATIONS, entries);
    return each->element * (double)k->rows * width + each->entry * entries +
           each->met * entries * width + each->head * entries * (double)k->gat.attention.heads +
           each->product * related * width * width;
}

static struct sl_spread scaled(struct sl_spread spread, double by)
{
    return (struct sl_spread){spread.median * by, spread.low * by, spread.high * by};
}

/* Return the row of a kernel at a level: seconds, rates, and the share of the machine's limit. */
static json_t *row_of(const struct bench *bench, const struct sl_kernel_row *row, int level,
                      const struct sl_contestant *of)
{
    const struct sl_kernel_work *k = &bench->work;
    const int count = (int)bench->config.common.repetitions;
    const double bytes = amount(k, &row->bytes), flops = amount(k, &row->flops),
                 triad_bytes = TRIAD_BYTES * (double)(k->rows * k->ld);
    const struct sl_spread memory = scaled(
                               sl_spread_of_ratio(of[TRIAD].seconds, of[KERNEL].seconds, count),
                               bytes / triad_bytes),
                           arithmetic = scaled(
                               sl_spread_of_ratio(of[PEAK].seconds, of[KERNEL].seconds, count),
                               flops / (2.0 * PEAK_ELEMENTS));
    const bool by_memory = memory.median >= arithmetic.median;
    json_t *json = json_pack("{s:s, s:s, s:I, s:s, s:f, s:f, s:s}", "kernel", row->name, "what",
                             row->what, "width", (json_int_t)k->width, "instructions",
                             sl_instructions_names[bench->level[level]], "bytes", bytes, "flops",
                             flops, "limit", by_memory ? "triad" : "multiply-add");
    sl_bench_set_spread(json, "seconds", sl_spread_of(of[KERNEL].seconds, count));
    sl_bench_set_spread(json, "plain_seconds", sl_spread_of(of[PLAIN].seconds, count));
    sl_bench_set_spread(json, "bytes_per_second",
                        sl_spread_of_rate(bytes, of[KERNEL].seconds, count));
    if (flops > 0.0)
        sl_bench_set_spread(json, "flops_per_second",
                            sl_spread_of_rate(flops, of[KERNEL].seconds, count));
    sl_bench_set_spread(json, "times_plain",
                        sl_spread_of_ratio(of[PLAIN].seconds, of[KERNEL].seconds, count));
    sl_bench_set_spread(json, "share", by_memory ? memory : arithmetic);
    sl_bench_set_spread(json, "triad_bytes_per_second",
                        sl_spread_of_rate(triad_bytes, of[TRIAD].seconds, count));
    sl_bench_set_spread(json, "peak_flops_per_second",
                        sl_spread_of_rate(2.0 * PEAK_ELEMENTS, of[PEAK].seconds, count));
    return json;
}

static int measure_kernel(const struct bench *bench, const struct sl_kernel_row *row, json_t *rows)
{
    struct turn turns[SL_INSTRUCTIONS * CONTESTANTS];
    struct sl_contestant contestants[SL_INSTRUCTIONS * CONTESTANTS];
    const int count = bench->levels * CONTESTANTS;
    for (int c = 0; c < count; c++) {
        turns[c] = (struct turn){.bench = bench, .level = bench->level[c / CONTESTANTS]};
        sl_instructions_set(turns[c].level);
        sl_kernel_call *const calls[CONTESTANTS] = {row->run, sl_loop_find(row->name), triad, peak};
        turns[c].call = calls[c % CONTESTANTS];
        contestants[c] = (struct sl_contestant){.run = run_turn, .context = &turns[c]};
    }
    const int code = sl_bench_alternate(contestants, count, (int)bench->config.common.repetitions,
                                        !bench->config.common.quiet);
    for (int l = 0; !code && l < bench->levels; l++)
        json_array_append_new(rows, row_of(bench, row, l, contestants + l * CONTESTANTS));
    sl_bench_free(contestants, count);
    return code;
}

static int make_work(struct bench *bench, int64_t width)
{
    const struct config *config = &bench->config;
    const int code = sl_kernel_work_create(&bench->work, config->vertices, config->degree, width,
                                           sl_leading(width, SL_FLOAT32));
    bench->most = bench->work.results.most;
    bench->found = code ? NULL : malloc((size_t)(3 * bench->most) * sizeof *bench->found);
    return code || bench->found ? code : sl_error(SL_ERR_SYSTEM, "no memory for results");
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    int code = 0;
    json_object_set_new(document, "threads", json_integer(1));
    for (int w = 0; !code && w < bench->widths; w++) {
        code = make_work(bench, bench->width[w]);
        for (const struct sl_kernel_row *row = sl_kernel_rows; !code && row->name; row++) {
            if (!is_listed(row->name, bench->config.kernel))
                continue;
            code = verify(bench, row);
            if (!code)
                code = measure_kernel(bench, row, rows);
        }
        free(bench->found);
        bench->found = NULL;
        sl_kernel_work_destroy(&bench->work);
    }
    return code;
}

static void print(const struct bench *bench, const json_t *document)
{
    static const struct sl_column columns[] = {
        {"kernel", "kernel", 0, 0},
        {"what", "", 0, 0},
        {"width", "width", 0, 0},
        {"instructions", "level", 0, 0},
        {"seconds", "ms", 1e-3, 3},
        {"bytes_per_second", "GB/s", 1e9, 2},
        {"flops_per_second", "Gflop/s", 1e9, 2},
        {"share", "share", 0, 2},
        {"limit", "of", 0, 0},
        {"times_plain", "x plain", 0, 2},
        {"times_plain_low", "quartiles", 0, 2},
        {"times_plain_high", "", 0, 2},
        {0},
    };
    const json_t *rows = json_object_get(document, "rows");
    size_t index;
    const json_t *row;
    int slower = 0;
    json_array_foreach((json_t *)rows, index, row)
    {
        slower += json_real_value(json_object_get(row, "times_plain")) < 1.0;
    }
    printf("One thread, %" PRId64 " vertices with %" PRId64 " neighbour%s each\n\n",
           bench->config.vertices, bench->config.degree, sl_s(bench->config.degree));
    sl_table_print(rows, columns);
    printf("\nx plain: how many times as fast as a plain loop; slower than it: %d of %zu\n", slower,
           json_array_size(rows));
}

static int run_kernels(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_kernels,
        .create = create_kernels,
        .measure = measure,
        .print = print,
        .destroy = destroy,
    };
    struct bench bench = {0};
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}

const struct sl_command sl_bench_kernels = {
    .name = "bench kernels",
    .synopsis = "[--OPTION ...]",
    .summary = "Measure each kernel at each level of instructions against its plain loop",
    .options = options,
    .run = run_kernels,
};
