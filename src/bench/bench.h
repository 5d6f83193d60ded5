/* The parts of `starling bench`. A new one is a file that exports its command, its name below, and
 * its row in bench.c. */
#ifndef SL_BENCH_BENCH_H
#define SL_BENCH_BENCH_H

#include "bench/measure.h"
#include "core/command.h"

extern const struct sl_command sl_command_bench;

extern const struct sl_command sl_bench_machine, sl_bench_gemm, sl_bench_spmm, sl_bench_kernels,
    sl_bench_epoch, sl_bench_schedulers, sl_bench_distributions, sl_bench_choices;

/* What a part works on: every part's file has its own. */
struct bench;

/* An option of train that the part sets itself, and the option to see instead (NULL: none). */
struct sl_bench_reserved {
    const char *name, *instead;
};

/* What every part that trains sets itself. */
#define SL_BENCH_RESERVED                                                                        \
    {"config", NULL}, {"log", "--json"}, {"dag", NULL}, {"trace", NULL}, {"trace-epochs", NULL}, \
        {"profile", NULL},                                                                       \
    {                                                                                            \
        "checkpoint", NULL                                                                       \
    }

struct sl_bench_part {
    const struct sl_command *command;
    /* A part that trains on a DATASET takes options of train, but these, up to a NULL name; NULL:
     * no other words than its own options. */
    const struct sl_bench_reserved *reserved;
    int (*create)(struct bench *bench);
    /* Adds rows, and to the document what else there is to say. */
    int (*measure)(struct bench *bench, json_t *document, json_t *rows);
    void (*print)(const struct bench *bench, const json_t *document);
    int (*remember)(const struct bench *bench, const json_t *rows); /* NULL: cannot */
    void (*destroy)(struct bench *bench); /* also what was not made to the end */
    bool on_ranks;                        /* can run under an MPI launcher on several ranks */
    int datasets;                         /* arguments at most */
};

/* Runs a part from its words to the file of --json. `common` comes first in the part's options. */
int sl_bench_run(const struct sl_bench_part *part, struct sl_bench_common *common,
                 struct bench *bench, int argc, char **argv);

#endif
