/* starling bench epoch: on one process (epoch.c), and on ranks (tiles.c). */
#ifndef SL_BENCH_EPOCH_H
#define SL_BENCH_EPOCH_H

#include "bench/bench.h"
#include "bench/input.h"

struct sl_bench_epoch {
    struct sl_bench_common common; /* first (bench.h) */
    struct sl_bench_input input;
    char *tiles_list;  /* NULL: train chooses */
    char *device_list; /* NULL: train chooses */
    double limit;
};

/* Run the part under an MPI launcher: one training with several numbers of tiles. */
int sl_bench_tiles_run(int argc, char **argv);

#endif
