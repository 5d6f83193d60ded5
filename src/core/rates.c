#include "core/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/error.h"
#include "core/json_file.h"
#include "core/remembered.h"

/* ---- This machine ---- */

/* Usual rates: one core of a recent server's processor, a StarPU message between two processes of
 * one machine, and a task as in partition.c. */
const struct sl_rates sl_rates_usual = {
    .name = "a usual core",
    .cores = 1,
    .cache_bytes = 32 << 20,
    .gemm = 100e9,
    .stream = 15e9,
    .gather = {{20e9, 90e9}, {16e9, 36e9}, {6e9, 12e9}},
    .features = 40e9,
    .draws = 0.7e9,
    .task = 9e-6,
    .node_ranks = 1,
    .node = {50e-6, 2e9},
    .network = {50e-6, 2e9},
};

/* Return the rate of `cores` cores from the rates of one core and of all measured cores, which is
 * also the limit. */
static double rate_of(const double pair[2], int threads, double usual, int cores)
{
    if (!(pair[0] > 0.0))
        return usual * cores;
    if (threads < 2 || cores < 2)
        return pair[0];
    const double share = (double)(cores < threads ? cores - 1 : threads - 1) / (threads - 1);
    return pair[0] + share * (pair[1] - pair[0]);
}

/* Return the rate of one rank where all ranks of the machine share one memory. */
static double shared(double rate, const double pair[2], int ranks_here)
{
    const double most = fmax(pair[0], pair[1]) / ranks_here;
    return pair[0] > 0.0 && most < rate ? most : rate;
}

static double gather_rate(const struct sl_remembered_machine *m, int level, bool wide, int cores,
                          int ranks_here)
{
    static const double NONE[2] = {0.0, 0.0};
    static const int64_t WIDTHS[2] = {16, 256};
    const double *pair = NONE;
    for (int g = 0; g < m->gathers; g++)
        if (m->gather[g].width == WIDTHS[wide])
            pair = m->gather[g].rate[level];
    return shared(rate_of(pair, m->threads, sl_rates_usual.gather[level][wide], cores), pair,
                  ranks_here);
}

static struct sl_link remembered_link(bool *measured)
{
    json_t *object = sl_remembered_get("link");
    const struct sl_link link = {
        json_number_value(json_object_get(object, "latency_seconds")),
        json_number_value(json_object_get(object, "bytes_per_second")),
    };
    json_decref(object);
    *measured = link.seconds > 0.0 && link.bytes_per_second > 0.0;
    return *measured ? link : sl_rates_usual.network;
}

int64_t sl_rates_remembered_link(void)
{
    bool measured;
    const struct sl_link link = remembered_link(&measured);
    return measured ? (int64_t)fmin(link.bytes_per_second, 1e18) : 0;
}

void sl_rates_of_machine(int workers, int ranks_here, int64_t cache_bytes, struct sl_rates *out)
{
    const int cores = workers > 0 ? workers : 1;
    struct sl_remembered_machine m;
    const bool known = sl_remembered_machine(&m);
    *out = (struct sl_rates){
        .cores = cores, .cache_bytes = cache_bytes, .task = sl_rates_usual.task, .node_ranks = 1};
    out->gemm = shared(rate_of(m.gemm_tall, m.threads, sl_rates_usual.gemm, cores), m.gemm_tall,
                       ranks_here);
    out->stream =
        shared(rate_of(m.triad, m.threads, sl_rates_usual.stream, cores), m.triad, ranks_here);
    out->features = rate_of(m.features, m.threads, sl_rates_usual.features, cores);
    out->draws = rate_of(m.draws, m.threads, sl_rates_usual.draws, cores);
    for (int level = 0; level < SL_LEVELS; level++)
        for (int w = 0; w < 2; w++)
            out->gather[level][w] = gather_rate(&m, level, w, cores, ranks_here);
    out->network = out->node = remembered_link(&out->link_measured);
    snprintf(out->name, sizeof out->name, "this machine, %s%s", known ? "measured" : "not measured",
             out->link_measured ? "" : ", its messages not");
}

void sl_rates_of_core(int64_t cache_bytes, struct sl_rates *out)
{
    sl_rates_of_machine(1, 1, cache_bytes, out);
}

/* ---- Machine files ---- */

struct reader {
    const char *path;
    int code;
};

/* The range of a plausible figure. */
struct range {
    double least, most;
    bool whole; /* the figure is a count */
};

static const struct range COUNT = {1.0, 1e6, true}, MEMORY = {1.0, 1e18, false},
                          CACHE = {0.0, 1e15, false}, RATE = {1.0, 1e24, false},
                          SECONDS = {0.0, 1e6, false};

static double read_number(struct reader *r, const json_t *object, const char *part, const char *key,
                          const struct range *range)
{
    const json_t *value = json_object_get(object, key);
    const double number = json_number_value(value);
    const bool fits = json_is_number(value) && number >= range->least && number <= range->most &&
                      (!range->whole || number == floor(number));
    if (fits || r->code)
        return r->code ? range->least : number;
    char *text = value ? sl_json_print(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    r->code = sl_error(SL_ERR_DATA, "%s: %s.%s is %.60s (expected a %snumber from %g to %g)",
                       r->path, part, key, text ? text : "missing", range->whole ? "whole " : "",
                       range->least, range->most);
    free(text);
    return range->least;
}

static const json_t *read_object(struct reader *r, const json_t *file, const char *key)
{
    const json_t *object = json_object_get(file, key);
    if (!r->code && !json_is_object(object))
        r->code = sl_error(SL_ERR_DATA, "%s: %s is %s, expected an object (docs/DISTRIBUTIONS.md)",
                           r->path, key, object ? "something else" : "missing");
    return object;
}

static struct sl_link read_link(struct reader *r, const json_t *object, const char *part)
{
    return (struct sl_link){
        read_number(r, object, part, "latency_seconds", &SECONDS),
        read_number(r, object, part, "bytes_per_second", &RATE),
    };
}

/* Return a number of the file, or `usual` where it is missing. */
static double read_other(struct reader *r, const json_t *rank, const char *key, double usual)
{
    return json_object_get(rank, key) ? read_number(r, rank, "rank", key, &RATE) : usual;
}

/* Read the rates of random rows. Where the file lacks a rate of a cache, the cache is FASTER times
 * as fast as memory. */
static void read_gathers(struct reader *r, const json_t *rank, struct sl_rates *out)
{
    static const double FASTER[SL_LEVELS] = {5.0, 3.0, 1.0};
    static const char *const levels[SL_LEVELS] = {"core_", "last_", ""};
    double *memory = out->gather[SL_LEVEL_MEMORY];
    memory[0] = read_number(r, rank, "rank", "gather_64_bytes_per_second", &RATE);
    memory[1] = read_number(r, rank, "rank", "gather_1024_bytes_per_second", &RATE);
    for (int level = 0; level < SL_LEVEL_MEMORY; level++)
        for (int w = 0; w < 2; w++) {
            char key[64];
            snprintf(key, sizeof key, "%sgather_%d_bytes_per_second", levels[level], w ? 1024 : 64);
            out->gather[level][w] = read_other(r, rank, key, FASTER[level] * memory[w]);
        }
}

static void read_rank(struct reader *r, const json_t *rank, struct sl_rates *out)
{
    out->cores = (int)read_number(r, rank, "rank", "cores", &COUNT);
    out->memory_bytes = (int64_t)read_number(r, rank, "rank", "memory_bytes", &MEMORY);
    out->cache_bytes = (int64_t)read_number(r, rank, "rank", "cache_bytes", &CACHE);
    out->gemm = read_number(r, rank, "rank", "gemm_flops_per_second", &RATE);
    out->stream = read_number(r, rank, "rank", "stream_bytes_per_second", &RATE);
    read_gathers(r, rank, out);
    out->features =
        read_other(r, rank, "features_flops_per_second", 3.0 * out->gather[SL_LEVEL_MEMORY][1]);
    out->draws = read_other(r, rank, "draws_per_second", out->stream / 24.0);
    out->task = read_number(r, rank, "rank", "task_seconds", &SECONDS);
}

int sl_rates_read(const char *path, struct sl_rates *out)
{
    json_error_t why;
    struct reader r = {.path = path};
    json_t *file = sl_json_read_file(path, &why);
    *out = (struct sl_rates){.link_measured = true};
    if (!file && json_error_code(&why) == json_error_out_of_memory)
        return sl_error(SL_ERR_SYSTEM, "%s: %s (expected a machine file)", path, why.text);
    if (!file && why.line < 1)
        return sl_error(SL_ERR_DATA, "%s: %s (expected a machine file)", path, why.text);
    if (!file)
        return sl_error(SL_ERR_DATA, "%s: line %d: %s (expected a machine file)", path, why.line,
                        why.text);
    const char *name = json_string_value(json_object_get(file, "name"));
    snprintf(out->name, sizeof out->name, "%s", name ? name : path);
    read_rank(&r, read_object(&r, file, "rank"), out);
    const json_t *node = read_object(&r, file, "node"), *network = read_object(&r, file, "network");
    out->node_ranks = (int)read_number(&r, node, "node", "ranks", &COUNT);
    out->node = read_link(&r, node, "node");
    out->network = read_link(&r, network, "network");
    json_decref(file);
    return r.code;
}

struct sl_link sl_rates_link(const struct sl_rates *rates, int ranks)
{
    return ranks <= rates->node_ranks ? rates->node : rates->network;
}

double sl_link_seconds(const struct sl_link *link, double bytes, double messages)
{
    return messages * link->seconds + bytes / link->bytes_per_second;
}

double sl_link_busy_seconds(const struct sl_link *link, double bytes, double messages)
{
    return fmin(sl_link_seconds(link, bytes, messages),
                sl_link_seconds(&sl_rates_usual.network, bytes, messages));
}

/* ---- Seconds of operations ---- */

/* CACHE_SHARE: the share of a cache that rows of one table have. CORE_BYTES: a core's own cache is
 * rarely smaller. */
static const double CACHE_SHARE = 0.5, CORE_BYTES = 1 << 20;
enum { LINE = 64, ENTRY = 6 }; /* bytes of a cache line, of a sparse entry with its column */

/* Interpolate between the two measured row sizes, over the logarithm of the bytes. */
static double gather_rate_of(const double rate[2], double row_bytes)
{
    const double share = fmin(fmax((log2(row_bytes) - 6.0) / 4.0, 0.0), 1.0);
    return rate[0] * pow(rate[1] / rate[0], share);
}

double sl_rates_gather_seconds(const struct sl_rates *rates, double rows, double row_bytes,
                               double table_bytes)
{
    const double last = CACHE_SHARE * (double)rates->cache_bytes;
    const double size[SL_LEVELS] = {CORE_BYTES, fmax(last, CORE_BYTES), HUGE_VAL};
    const double bytes = fmax(row_bytes, LINE);
    double found = 0.0, seconds = 0.0;
    for (int level = 0; level < SL_LEVELS; level++) {
        const double hit = table_bytes > size[level] ? size[level] / table_bytes : 1.0;
        seconds += (hit - found) * rows * bytes / gather_rate_of(rates->gather[level], bytes);
        found = hit;
    }
    return seconds;
}

double sl_rates_spmm_seconds(const struct sl_rates *rates, double entries, double rows,
                             double row_bytes, double table_rows)
{
    const double table = table_rows * fmax(row_bytes, LINE);
    return sl_rates_gather_seconds(rates, entries, row_bytes, table) +
           (entries * ENTRY + rows * row_bytes) / rates->stream;
}

static double draw_seconds(const struct sl_rates *rates, double entries, double kept)
{
    return kept < 1.0 ? entries / rates->draws : 0.0;
}

double sl_rates_features_seconds(const struct sl_rates *rates, double entries, double width,
                                 double kept)
{
    return draw_seconds(rates, entries, kept) + 2.0 * kept * entries * width / rates->features;
}

/* Count less work for a dense draw: neighbouring elements share random numbers, while sparse
 * entries draw numbers one by one. */
double sl_rates_dropout_seconds(const struct sl_rates *rates, double items, double bytes,
                                double kept)
{
    enum { PASSES = 3, TOGETHER = 4 }; /* written memory is read before */
    return kept < 1.0 ? items / (TOGETHER * rates->draws) + PASSES * items * bytes / rates->stream
                      : 0.0;
}

double sl_rates_densify_seconds(const struct sl_rates *rates, double entries, double bytes,
                                double kept)
{
    enum { WRITE = 2 }; /* written memory is read before */
    return draw_seconds(rates, entries, kept) +
           (WRITE * bytes + entries * (ENTRY + LINE / 4)) / rates->stream;
}
