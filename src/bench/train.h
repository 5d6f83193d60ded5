/* Trainings in fresh processes, for the parts of `starling bench` that measure whole runs. A run
 * leaves nothing (memory, models, threads) to the next run, and a hanging run can be ended. Under
 * an MPI launcher, which knows one process for each rank, trainings are in this process. All ranks
 * then call for the same trainings, rank 0 has the figures, and no training is ended. */
#ifndef SL_BENCH_TRAIN_H
#define SL_BENCH_TRAIN_H

#include <stdbool.h>

#include "bench/bench.h"

/* Tells the words apart by the part's options, and tries those for train, so that a wrong one is
 * refused before anything runs. SL_ERR_USAGE; the caller frees the lists in either case. */
int sl_bench_split(const struct sl_bench_part *part, int argc, char **argv,
                   struct sl_bench_words *words);

/* How a training is to be run. */
struct sl_bench_training {
    const char *dataset;
    struct sl_bench_common *common;
    const char *device, *scheduler;  /* NULL: as the words or the machine say */
    int workers, tiles;              /* 0: likewise */
    const char *grid, *distribution; /* NULL: likewise */
    const char *const *more;         /* words after all others, up to a NULL; NULL: none */
    bool profile;
    double limit; /* seconds, after which the process and all that it started are killed */
};

enum sl_bench_ending { SL_BENCH_DONE, SL_BENCH_FAILED, SL_BENCH_TIMED_OUT };

/* What came of it. */
struct sl_bench_run {
    enum sl_bench_ending ending;
    char reason[256];    /* unless done: what it said last */
    json_t *start, *end; /* the first and the last line of its log; NULL on other ranks than 0 */
    int epochs;
    double *seconds; // (epochs), without evaluations
};

/* Runs it and waits. Returns 0 whatever its ending, and SL_ERR_SYSTEM if no process can be started,
 * if its log makes no sense or if the user interrupts; the caller frees in either case. */
int sl_bench_train(const struct sl_bench_training *training, struct sl_bench_run *run);
/* 0 if it was done, else SL_ERR_SYSTEM with the reason. */
int sl_bench_check_ending(const struct sl_bench_run *run);

/* Gives every contestant its turn in each round, every other round backwards, until one returns
 * other than 0; that is returned. */
typedef int sl_bench_turn(struct bench *bench, int contestant, int round);
int sl_bench_take_turns(struct bench *bench, const struct sl_bench_common *common, int contestants,
                        int rounds, sl_bench_turn *turn);

/* Says in the document what was trained, and on what. */
void sl_bench_describe(json_t *document, const char *dataset, const struct sl_bench_run *run);

void sl_bench_run_free(struct sl_bench_run *run);

#endif
