/* starling bench kernels: each kernel of cores at each level of instructions, against its plain
 * loop and what the machine allows. */
#include "bench/kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/loops.h"
#include "bench/team.h"
#include "codelets/bfloat16.h"
#include "codelets/instructions.h"
#include "core/error.h"
#include "core/memory.h"
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

enum { MOST_WIDTHS = 16, MOST_BLOCKS = 64 };

struct bench {
    struct config config;
    struct sl_team *team;
    int widths, levels;
    int64_t width[MOST_WIDTHS];
    enum sl_instructions level[SL_INSTRUCTIONS];
    int errors;
    /* Of the width at hand: */
    struct sl_kernel_work work;
    struct sl_kernel_work start; /* what results are before a kernel runs */
    int blocks;
    struct {
        void *memory;
        size_t bytes;
    } block[MOST_BLOCKS];
    double *found[3]; /* results: of the plain loop, of the kernel, of the kernel at the first level
                       */
};

/* ---- Options ---- */

/* Whether NAME is one of the comma-separated LIST, or begins with it and "_". */
static bool is_listed(const char *name, const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t length = strcspn(at, ",");
        if (length && strncmp(name, at, length) == 0 && (name[length] == 0 || name[length] == '_'))
            return true;
    }
    return strcmp(list, "all") == 0;
}

/* Each word of --kernel selects a kernel. */
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
        const int code = sl_instructions_parse(word, &level);
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

static int create(struct bench *bench)
{
    const struct config *config = &bench->config;
    int code = sl_bench_parse_list("width", config->width, 1, SL_KERNEL_WIDTH, MOST_WIDTHS,
                                   bench->width, &bench->widths);
    if (!code)
        code = parse_levels(bench);
    if (!code)
        code = check_kernels(config->kernel);
    if (!code && config->degree > config->vertices)
        code = sl_error(SL_ERR_USAGE, "--degree: at most the number of vertices, %" PRId64,
                        config->vertices);
    return code ? code : sl_team_create(&bench->team);
}

static void release(struct bench *bench)
{
    while (bench->blocks > 0) {
        bench->blocks--;
        sl_memory_free(bench->block[bench->blocks].memory, bench->block[bench->blocks].bytes);
    }
}

static void destroy(struct bench *bench)
{
    release(bench);
    sl_team_destroy(bench->team);
}

/* ---- Operands ---- */

/* Return zeros that `release` frees, and count in `errors` what there is no memory for. */
static void *take(struct bench *bench, size_t bytes)
{
    void *memory = sl_memory_alloc(bytes);
    bench->block[bench->blocks].memory = memory;
    bench->block[bench->blocks++].bytes = bytes;
    bench->errors += !memory;
    return memory;
}

static float *take_floats(struct bench *bench, int64_t rows, int64_t ld)
{
    return take(bench, (size_t)(rows * ld) * sizeof(float));
}

/* Return numbers from `least` to `most`. */
static float *draw(struct bench *bench, int64_t rows, int64_t ld, double least, double most)
{
    float *x = take_floats(bench, rows, ld);
    const uint64_t key = sl_rng_key((uint64_t)bench->blocks, SL_RNG_GENERATE, 0, 0);
    for (int64_t r = 0; x && r < rows; r++)
        for (int64_t j = 0; j < ld; j++)
            x[r * ld + j] =
                (float)(least + (most - least) * sl_rng_uniform(key, (uint32_t)r, (uint32_t)j));
    return x;
}

static struct sl_floats_at draw_at(struct bench *bench, int64_t cols)
{
    const int64_t ld = sl_padded(cols);
    return (struct sl_floats_at){draw(bench, bench->work.rows, ld, -1.0, 1.0), ld};
}

static uint16_t *take_halves(struct bench *bench, const float *from)
{
    const int64_t count = bench->work.rows * bench->work.ld;
    uint16_t *x = take(bench, (size_t)count * sizeof *x);
    for (int64_t i = 0; x && from && i < count; i++)
        x[i] = sl_narrow(from[i]);
    return x;
}

/* Neighbour d of a row is a random vertex of the d-th of `degree` equal parts of all vertices. So
 * columns ascend, and each vertex is equally likely. */
static struct sl_sparse draw_graph(struct bench *bench)
{
    const int64_t n = bench->work.rows, degree = bench->config.degree;
    const uint64_t key = sl_rng_key(1, SL_RNG_GENERATE, 0, 1);
    uint32_t *row_ptr = take(bench, (size_t)(n + 1) * sizeof *row_ptr),
             *col = take(bench, (size_t)(n * degree) * sizeof *col);
    for (int64_t e = 0; row_ptr && col && e < n * degree; e++) {
        const int64_t r = e / degree, first = n * (e % degree) / degree,
                      last = n * (e % degree + 1) / degree;
        const double u = sl_rng_uniform(key, (uint32_t)r, (uint32_t)(e % degree));
        row_ptr[r + 1] = (uint32_t)((r + 1) * degree);
        col[e] = (uint32_t)(first + (int64_t)(u * (double)(last - first)));
    }
    return (struct sl_sparse){
        .rows = n, .cols = n, .block_cols = n, .blocks = 1, .row_ptr = row_ptr, .col = col};
}

static struct sl_sparse transpose(struct bench *bench, const struct sl_sparse *a)
{
    const int64_t n = a->rows;
    uint32_t *row_ptr = take(bench, (size_t)(n + 2) * sizeof *row_ptr),
             *col = take(bench, (size_t)bench->work.entries * sizeof *col);
    struct sl_sparse at = *a;
    at.row_ptr = row_ptr;
    at.col = col;
    if (bench->errors)
        return at;
    for (int64_t e = 0; e < bench->work.entries; e++)
        row_ptr[sl_sparse_col(a, (uint32_t)e) + 2]++;
    for (int64_t r = 0; r < n; r++)
        row_ptr[r + 2] += row_ptr[r + 1];
    for (int64_t r = 0; r < n; r++)
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++)
            col[row_ptr[sl_sparse_col(a, e) + 1]++] = (uint32_t)r;
    return at;
}

/* Facts of the rows. */
static void draw_facts(struct bench *bench)
{
    struct sl_kernel_work *k = &bench->work;
    const int64_t n = k->rows, w = k->width;
    uint32_t *vertex = take(bench, (size_t)n * sizeof *vertex),
             *index = take(bench, (size_t)n * sizeof *index);
    int32_t *target = take(bench, (size_t)(2 * n) * sizeof *target),
            *values = take(bench, (size_t)(n * (2 + w)) * sizeof *values);
    const uint64_t key = sl_rng_key(1, SL_RNG_GENERATE, 0, 2);
    k->vertex = vertex;
    k->index = index;
    k->target = target;
    k->values = values;
    for (int64_t r = 0; !bench->errors && r < n; r++) {
        vertex[r] = (uint32_t)sl_rng_bits(key, (uint32_t)r, 0);
        index[r] = sl_rng_permute(key, (uint32_t)n, (uint32_t)r);
        target[2 * r] = (int32_t)(vertex[r] % (uint64_t)w);
        target[2 * r + 1] = values[r * (2 + w) + 1] = 1; /* training */
        for (int64_t j = 0; j < w; j++) {
            const float value = (float)(sl_rng_bits(key, (uint32_t)r, 1 + (uint32_t)j) & 1);
            memcpy(values + r * (2 + w) + 2 + j, &value, sizeof value);
        }
    }
}

/* What kernels read. */
static void draw_operands(struct bench *bench)
{
    struct sl_kernel_work *k = &bench->work;
    const int64_t n = k->rows, ld = k->ld, heads = k->width % 8 ? 1 : 8;
    k->a = draw_graph(bench);
    k->at = transpose(bench, &k->a);
    k->weighted = k->a;
    k->weighted.value = draw(bench, 1, k->entries, 0.5, 1.5);
    k->h = draw(bench, n, ld, -1.0, 1.0);
    k->g = draw(bench, n, ld, -1.0, 1.0);
    k->half_h = take_halves(bench, k->h);
    float *mask = draw(bench, n, ld, -1.0, 1.0);
    for (int64_t i = 0; mask && i < n * ld; i++)
        mask[i] = fmaxf(mask[i], 0.0f);
    k->mask = mask;
    k->factor = draw(bench, 1, n, 0.5, 1.5);
    k->weight = draw(bench, 3, ld, 0.5, 1.5);
    k->bias = k->weight + ld;
    k->variance = k->weight + 2 * ld;
    draw_facts(bench);
    k->half = sl_dropout_make(0.5, 1);
    k->some = sl_dropout_make(0.3, 1);
    k->attention = (struct sl_attention){
        .heads = (int32_t)heads, .width = k->width / heads, .slope = 0.2f, .training = true};
    k->projected = draw_at(bench, sl_attention_projected(&k->attention));
    k->scores = draw_at(bench, sl_attention_scores(&k->attention));
    k->gradient = draw_at(bench, sl_attention_gradient(&k->attention));
}

/* Results, and what they are in the beginning. */
static void draw_results(struct bench *bench, struct sl_kernel_work *k)
{
    const int64_t n = k->rows, ld = k->ld;
    k->z = draw(bench, n, ld, 0.5, 1.5);
    k->y = draw(bench, n, ld, 0.5, 1.5);
    k->v = draw(bench, n, ld, 0.5, 1.5);
    k->half_z = take_halves(bench, k->z);
    k->argmax = take(bench, (size_t)(n * ld) * sizeof *k->argmax);
    k->sums = take(bench, (size_t)(2 * ld) * sizeof *k->sums);
    k->state = draw_at(bench, sl_attention_state(&k->attention));
    k->back = draw_at(bench, sl_attention_projected(&k->attention));
}

static void copy_floats(struct sl_floats_at to, struct sl_floats_at from, int64_t rows)
{
    memcpy(to.data, from.data, (size_t)(rows * from.ld) * sizeof *to.data);
}

/* Set all results to what they are in the beginning. */
static void reset(struct bench *bench)
{
    const struct sl_kernel_work *to = &bench->work, *from = &bench->start;
    const size_t count = (size_t)(to->rows * to->ld);
    memcpy(to->z, from->z, count * sizeof *to->z);
    memcpy(to->y, from->y, count * sizeof *to->y);
    memcpy(to->v, from->v, count * sizeof *to->v);
    memcpy(to->half_z, from->half_z, count * sizeof *to->half_z);
    memcpy(to->argmax, from->argmax, count * sizeof *to->argmax);
    memcpy(to->sums, from->sums, (size_t)(2 * to->ld) * sizeof *to->sums);
    copy_floats(to->state, from->state, to->rows);
    copy_floats(to->back, from->back, to->rows);
}

/* Operands that are results of other kernels come from plain loops: the argmax, and a state with
 * its logarithms. */
static void close_operands(struct bench *bench)
{
    struct sl_kernel_work *k = &bench->work;
    const int64_t all = k->width, heads = k->attention.heads;
    int32_t *chosen = take(bench, (size_t)(k->rows * k->ld) * sizeof *chosen);
    k->closed = draw_at(bench, sl_attention_state(&k->attention));
    k->chosen = chosen;
    if (bench->errors)
        return;
    reset(bench);
    sl_loop_find("max")(k);
    memcpy(chosen, k->argmax, (size_t)(k->rows * k->ld) * sizeof *chosen);
    sl_loop_find("attention")(k);
    copy_floats(k->closed, k->state, k->rows);
    for (int64_t r = 0; r < k->rows; r++)
        for (int64_t h = 0; h < heads; h++) {
            const float *m = k->state.data + r * k->state.ld + all + h;
            k->scores.data[r * k->scores.ld + heads + h] = m[0] + logf(m[heads]);
        }
}

static int64_t most_results(const struct sl_kernel_work *k)
{
    return k->rows * (4 * k->ld + k->state.ld + k->back.ld) + 2 * k->ld;
}

static int make_work(struct bench *bench, int64_t width)
{
    const int64_t n = bench->config.vertices;
    bench->work = (struct sl_kernel_work){.rows = n, .width = width, .ld = sl_padded(width)};
    bench->work.entries = n * bench->config.degree;
    draw_operands(bench);
    draw_results(bench, &bench->work);
    bench->start = bench->work;
    draw_results(bench, &bench->start);
    close_operands(bench);
    for (int f = 0; f < 3; f++)
        bench->found[f] = take(bench, (size_t)most_results(&bench->work) * sizeof(double));
    return bench->errors ? SL_ERR_SYSTEM : 0;
}

/* ---- Comparisons ---- */

static double *add_floats(double *to, struct sl_floats_at from, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            *to++ = (double)from.data[r * from.ld + j];
    return to;
}

/* Write the results of a kernel to TO; return how many there are. */
static int64_t read_results(const struct sl_kernel_work *k, unsigned results, double *to)
{
    double *const begin = to;
    const int64_t n = k->rows, w = k->width;
    float *const matrices[] = {k->z, k->y, k->v};
    for (int m = 0; m < 3; m++)
        if (results & (SL_RESULT_Z << m))
            to = add_floats(to, (struct sl_floats_at){matrices[m], k->ld}, n, w);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = r * k->ld; i < r * k->ld + w; i++) {
            if (results & SL_RESULT_HALF)
                *to++ = (double)sl_widen(k->half_z[i]);
            if (results & SL_RESULT_ARGMAX)
                *to++ = k->argmax[i];
        }
    for (int64_t i = 0; (results & SL_RESULT_SUMS) && i < 2 * k->ld; i++)
        *to++ = k->sums[i];
    if (results & SL_RESULT_STATE)
        to = add_floats(to, k->state, n, sl_attention_state(&k->attention));
    if (results & SL_RESULT_BACK)
        to = add_floats(to, k->back, n, sl_attention_projected(&k->attention));
    return to - begin;
}

static int64_t find(struct bench *bench, const struct sl_kernel_row *row, sl_kernel_call *call,
                    double *to)
{
    reset(bench);
    call(&bench->work);
    return read_results(&bench->work, row->results, to);
}

/* An element may differ by `tolerance` of itself and of the root mean square of all. */
static int compare(const struct bench *bench, const struct sl_kernel_row *row, int64_t count,
                   const double *got, const double *want, const char *other)
{
    double squares = 0.0;
    for (int64_t i = 0; i < count; i++)
        squares += want[i] * want[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= row->tolerance * (fabs(want[i]) + sqrt(squares))))
            return sl_error(SL_ERR_SYSTEM,
                            "%s at %s, width %" PRId64 ": number %" PRId64
                            " of the result is %.9g, and %.9g %s",
                            row->name, sl_instructions_names[sl_instructions_get()],
                            bench->work.width, i, got[i], want[i], other);
    return 0;
}

/* At each level a kernel gives what its plain loop gives, and what it gives at the first level. */
static int verify(struct bench *bench, const struct sl_kernel_row *row)
{
    double *const plain = bench->found[0], *const first = bench->found[1];
    int code = 0;
    for (int l = 0; !code && l < bench->levels; l++) {
        double *const got = bench->found[l ? 2 : 1];
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

static const double TRIAD_BYTES = 12.0; /* for an element */
enum { PEAK_ELEMENTS = 96 * 1024 };     /* a multiple of each level's chains */

static void triad(const struct sl_kernel_work *k)
{
    sl_loop_triad(k->rows * k->ld, 0.5f, k->h, k->g, k->y);
}

static void peak(const struct sl_kernel_work *k)
{
    float sums[SL_ROW_UNIT];
    sl_loop_peak(PEAK_ELEMENTS, sums);
    k->sums[0] += (double)sums[0];
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
    const double entries = (double)k->entries, width = (double)k->width;
    return each->element * (double)k->rows * width + each->entry * entries +
           each->met * entries * width + each->head * entries * (double)k->attention.heads;
}

static struct sl_spread scaled(struct sl_spread spread, double by)
{
    return (struct sl_spread){spread.median * by, spread.low * by, spread.high * by};
}

/* What a level's contestants took. */
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
        release(bench);
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

static int run(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_kernels,
        .create = create,
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
    .run = run,
};
