/* Trainings in fresh processes, for the parts of `starling bench` that measure whole runs. A run
 * leaves nothing (memory, models, threads) to the next run, and a hanging run can be ended. Under
 * an MPI launcher, which knows one process for each rank, trainings are in this process. All ranks
 * then call for the same trainings, rank 0 has the figures, and no training is ended. */
#ifndef SL_BENCH_TRAIN_H
#define SL_BENCH_TRAIN_H

#include <stdbool.h>

#include "bench/bench.h"

/* Split the words between the part's options and train's, and try train's, so that a wrong one is
 * refused before anything runs. Return 0 or SL_ERR_USAGE. The caller frees the lists in either
 * case. */
int sl_bench_split(const struct sl_bench_part *part, int argc, char **argv,
                   struct sl_bench_words *words);

/* Options of one training. */
struct sl_bench_training {
    const char *dataset;
    struct sl_bench_common *common;
    const char *const *words; /* options of the part, after the user's; NULL at the end */
    bool profile;
    double limit; /* seconds before the process and all that it started are killed */
};

enum sl_bench_ending { SL_BENCH_DONE, SL_BENCH_FAILED, SL_BENCH_TIMED_OUT };

/* The outcome of a training. */
struct sl_bench_run {
    enum sl_bench_ending ending;
    char reason[256];    /* last words of a training that failed */
    json_t *start, *end; /* first and last line of the log; NULL on other ranks than 0 */
    int epochs;          /* lines of epochs in the log */
};

/* Run a training and wait. Return 0 whatever its ending. Return SL_ERR_SYSTEM if no process can be
 * started, its log makes no sense, or the user interrupts. The caller frees `run` in either case.
 */
int sl_bench_train(const struct sl_bench_training *training, struct sl_bench_run *run);
/* Return 0 if the training was done, or SL_ERR_SYSTEM with the reason. */
int sl_bench_check_ending(const struct sl_bench_run *run);

void sl_bench_run_free(struct sl_bench_run *run);

#endif
