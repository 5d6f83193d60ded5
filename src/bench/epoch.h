/* starling bench epoch: what one process does (bench_epoch.c), and what ranks do (bench_tiles.c).
 */
#ifndef SL_BENCH_EPOCH_H
#define SL_BENCH_EPOCH_H

#include "bench/bench.h"
#include "bench/input.h"

struct sl_bench_epoch {
    struct sl_bench_common common; /* first (bench.h) */
    struct sl_bench_input input;
    char *tiles_list;  /* NULL: a choice */
    char *device_list; /* NULL: as train chooses */
    double limit;
};

/* Under an MPI launcher: one training with several numbers of tiles. */
int sl_bench_tiles_run(int argc, char **argv);

#endif
