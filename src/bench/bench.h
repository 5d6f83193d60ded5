/* The parts of `starling bench`. A new one is a file that exports its command, its name below, and
 * its row in bench.c. */
#ifndef SL_BENCH_BENCH_H
#define SL_BENCH_BENCH_H

#include "bench/measure.h"
#include "core/command.h"

extern const struct sl_command sl_command_bench;

extern const struct sl_command sl_bench_machine, sl_bench_gemm, sl_bench_spmm, sl_bench_kernels,
    sl_bench_epoch, sl_bench_schedulers, sl_bench_distributions, sl_bench_choices;

/* The state of a part. Each part's file defines its own. */
struct bench;

/* An option of train that a part sets itself, and the option to use instead (NULL: none). */
struct sl_bench_reserved {
    const char *name, *instead;
};

/* Options of train that every training part sets itself. */
#define SL_BENCH_RESERVED                                                                        \
    {"config", NULL}, {"log", "--json"}, {"dag", NULL}, {"trace", NULL}, {"trace-epochs", NULL}, \
        {"profile", NULL},                                                                       \
    {                                                                                            \
        "checkpoint", NULL                                                                       \
    }

struct sl_bench_part {
    const struct sl_command *command;
    /* Options of train that a part with a DATASET refuses, up to a NULL name. The part takes all
     * other options of train. NULL: the part takes its own options only. */
    const struct sl_bench_reserved *reserved;
    int (*create)(struct bench *bench);
    /* Add the rows, and other results to the document. */
    int (*measure)(struct bench *bench, json_t *document, json_t *rows);
    void (*print)(const struct bench *bench, const json_t *document);
    int (*remember)(const struct bench *bench, const json_t *rows); /* NULL: cannot */
    void (*destroy)(struct bench *bench); /* also frees a part whose `create` failed */
    bool on_ranks;                        /* can run under an MPI launcher on several ranks */
    int datasets;                         /* the most DATASET arguments */
};

/* Run a part: read its words, measure, print, and write the file of --json. The part's options
 * begin with `common`. */
int sl_bench_run(const struct sl_bench_part *part, struct sl_bench_common *common,
                 struct bench *bench, int argc, char **argv);

#endif
