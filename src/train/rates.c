#include "train/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/error.h"
#include "core/remembered.h"

/* ---- This machine ---- */

/* Where nothing was measured: one core of a recent processor, a message of StarPU between two
 * processes of a machine, a task as in partition.c. */
static const double USUAL_GEMM = 80e9, USUAL_STREAM = 15e9, USUAL_GATHER[2] = {3e9, 9e9},
                    USUAL_TASK = 9e-6;
static const struct sl_link USUAL_LINK = {50e-6, 2e9};

/* A rate of `cores` cores, of one and of all measured: more than all give no more. */
static double rate_of(const double pair[2], int threads, double usual, int cores)
{
    if (!(pair[0] > 0.0))
        return usual * cores;
    if (threads < 2 || cores < 2)
        return pair[0];
    const double share = (double)(cores < threads ? cores - 1 : threads - 1) / (threads - 1);
    return pair[0] + share * (pair[1] - pair[0]);
}

/* All ranks of the machine draw on one memory. */
static double shared(double rate, const double pair[2], int ranks_here)
{
    const double most = fmax(pair[0], pair[1]) / ranks_here;
    return pair[0] > 0.0 && most < rate ? most : rate;
}

static double gather_rate(const struct sl_remembered_machine *m, bool wide, int cores,
                          int ranks_here)
{
    static const double NONE[2] = {0.0, 0.0};
    static const int64_t WIDTHS[2] = {16, 256};
    const double *pair = NONE;
    for (int g = 0; g < m->gathers; g++)
        if (m->gather[g].width == WIDTHS[wide])
            pair = m->gather[g].rate;
    return shared(rate_of(pair, m->threads, USUAL_GATHER[wide], cores), pair, ranks_here);
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
    return *measured ? link : USUAL_LINK;
}

void sl_rates_of_machine(int cores, int ranks_here, int64_t cache_bytes, struct sl_rates *out)
{
    struct sl_remembered_machine m;
    const bool known = sl_remembered_machine(&m);
    *out = (struct sl_rates){
        .cores = cores, .cache_bytes = cache_bytes, .task = USUAL_TASK, .node_ranks = 1};
    out->gemm = shared(rate_of(m.gemm_tall, m.threads, USUAL_GEMM, cores), m.gemm_tall, ranks_here);
    out->stream = shared(rate_of(m.triad, m.threads, USUAL_STREAM, cores), m.triad, ranks_here);
    for (int w = 0; w < 2; w++)
        out->gather[w] = gather_rate(&m, w, cores, ranks_here);
    out->network = out->node = remembered_link(&out->link_measured);
    snprintf(out->name, sizeof out->name, "this machine, %s%s", known ? "measured" : "not measured",
             out->link_measured ? "" : ", its messages not");
}

/* ---- Machine files ---- */

struct reader {
    const char *path;
    int code;
};

/* What a figure may be: larger ones are no machine's. */
struct range {
    double least, most;
    bool whole; /* a count */
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
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
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

static void read_rank(struct reader *r, const json_t *rank, struct sl_rates *out)
{
    out->cores = (int)read_number(r, rank, "rank", "cores", &COUNT);
    out->memory_bytes = (int64_t)read_number(r, rank, "rank", "memory_bytes", &MEMORY);
    out->cache_bytes = (int64_t)read_number(r, rank, "rank", "cache_bytes", &CACHE);
    out->gemm = read_number(r, rank, "rank", "gemm_flops_per_second", &RATE);
    out->stream = read_number(r, rank, "rank", "stream_bytes_per_second", &RATE);
    out->gather[0] = read_number(r, rank, "rank", "gather_64_bytes_per_second", &RATE);
    out->gather[1] = read_number(r, rank, "rank", "gather_1024_bytes_per_second", &RATE);
    out->task = read_number(r, rank, "rank", "task_seconds", &SECONDS);
}

int sl_rates_read(const char *path, struct sl_rates *out)
{
    json_error_t why;
    struct reader r = {.path = path};
    json_t *file = json_load_file(path, 0, &why);
    *out = (struct sl_rates){.link_measured = true};
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
