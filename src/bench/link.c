/* starling bench machine on two ranks: latency and bandwidth of training's messages, with the task
 * that waits for each. */
#include <stdio.h>

#include "bench/machine.h"
#include "codelets/paste.h"
#include "core/error.h"
#include "core/message.h"
#include "core/remembered.h"
#include "core/table.h"

enum { WARM_UP = 20 };

/* A size of message and its rounds. */
struct size {
    int64_t floats, rounds;
};

static const struct size sizes[] = {{16, 500}, {1 << 20, 40}}; /* latency's, bandwidth's */

enum { SIZES = sizeof sizes / sizeof *sizes };

struct bench {
    struct sl_bench_machine config;
    struct sl_runtime rt;
    double seconds[SIZES][1000]; /* seconds of a message in each repetition */
};

/* Submit a message each way. One received number goes into the next message, so that no message
 * leaves early. */
static void submit_round(struct sl_runtime *rt, struct sl_tile *large, struct sl_tile *small)
{
    for (int from = 0; from < 2; from++) {
        const int to = 1 - from;
        sl_tile_send(rt, &large[from], from, to);
        sl_submit_paste(rt, &(struct sl_paste_tiles){.x = &large[from], .y = &small[to]});
        sl_tile_drop(rt, &large[from]);
        sl_submit_paste(rt, &(struct sl_paste_tiles){.x = &small[to], .y = &large[to]});
    }
}

/* Return the mean seconds of a message. */
static double exchange(struct sl_runtime *rt, struct sl_tile *large, struct sl_tile *small,
                       int64_t rounds)
{
    for (int64_t r = 0; r < WARM_UP; r++)
        submit_round(rt, large, small);
    sl_runtime_wait(rt);
    sl_runtime_least(rt, 0);
    const double start = sl_runtime_seconds();
    for (int64_t r = 0; r < rounds; r++)
        submit_round(rt, large, small);
    sl_runtime_wait(rt);
    return (sl_runtime_seconds() - start) / (2.0 * (double)rounds);
}

static int measure_size(struct bench *bench, int s)
{
    struct sl_runtime *rt = &bench->rt;
    struct sl_tile large[2] = {{0}}, small[2] = {{0}};
    int code = 0;
    for (int r = 0; r < 2; r++) {
        if (sl_tile_create(rt, &large[r], 1, sizes[s].floats, sizeof(float), r) ||
            sl_tile_create(rt, &small[r], 1, 1, sizeof(float), r))
            code = SL_ERR_SYSTEM;
    }
    code = sl_runtime_agree(rt, code);
    for (int64_t i = 0; !code && i < bench->config.common.repetitions; i++)
        bench->seconds[s][i] = exchange(rt, large, small, sizes[s].rounds);
    for (int r = 0; r < 2; r++) {
        sl_tile_destroy(&large[r]);
        sl_tile_destroy(&small[r]);
    }
    return code;
}

static json_t *row_of(const struct bench *bench, int s)
{
    json_t *row = json_pack("{s:s, s:i, s:I}", "measure", "message", "ranks", 2, "bytes",
                            (json_int_t)(sizes[s].floats * (int64_t)sizeof(float)));
    sl_bench_set_spread(row, "seconds",
                        sl_spread_of(bench->seconds[s], (int)bench->config.common.repetitions));
    return row;
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    (void)document;
    int code = sl_runtime_start(&bench->rt, &(struct sl_runtime_options){.workers = 1});
    if (code)
        return code;
    for (int s = 0; !code && s < SIZES; s++)
        code = measure_size(bench, s);
    sl_runtime_stop(&bench->rt);
    for (int s = 0; !code && s < SIZES; s++)
        json_array_append_new(rows, row_of(bench, s));
    return code;
}

/* Return the latency, and the bandwidth: additional bytes over additional seconds of the larger
 * message. */
static json_t *link_of(const json_t *rows)
{
    const double small = json_number_value(json_object_get(json_array_get(rows, 0), "seconds"));
    const double large = json_number_value(json_object_get(json_array_get(rows, 1), "seconds"));
    const double bytes = 4.0 * (double)(sizes[1].floats - sizes[0].floats);
    return json_pack("{s:f, s:f}", "latency_seconds", small, "bytes_per_second",
                     large > small ? bytes / (large - small) : 0.0);
}

static void print(const struct bench *bench, const json_t *document)
{
    static const struct sl_column columns[] = {
        {"bytes", "bytes", 0, 0},
        {"seconds", "us/message", 1e-6, 2},
        {"seconds_low", "quartiles", 1e-6, 2},
        {"seconds_high", "", 1e-6, 2},
        {0},
    };
    const json_t *rows = json_object_get(document, "rows");
    json_t *link = link_of(rows);
    (void)bench;
    printf("messages between 2 ranks, each with the task that waits for it\n\n");
    sl_table_print(rows, columns);
    printf("\nlatency %.1f us, bandwidth %.2f GB/s\n",
           1e6 * json_number_value(json_object_get(link, "latency_seconds")),
           1e-9 * json_number_value(json_object_get(link, "bytes_per_second")));
    json_decref(link);
}

static int remember(const struct bench *bench, const json_t *rows)
{
    return bench->config.remember ? sl_remembered_set("link", link_of(rows)) : 0;
}

static int create_link(struct bench *bench)
{
    const struct sl_runtime *rt = &bench->config.common.rt;
    if (rt->ranks != 2)
        return sl_error(SL_ERR_USAGE,
                        "bench machine: %d ranks (expected 2, between which messages are "
                        "measured; start it without mpirun for the machine's rates)",
                        rt->ranks);
    return bench->config.remember && rt->rank == 0 ? sl_remembered_probe("link") : 0;
}

static void destroy(struct bench *bench)
{
    (void)bench;
}

int sl_bench_link_run(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_machine,
        .create = create_link,
        .measure = measure,
        .print = print,
        .remember = remember,
        .destroy = destroy,
        .on_ranks = true,
    };
    static struct bench bench;
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}
