/* starling bench machine: what one process finds (machine.c), and what two ranks do (link.c). */
#ifndef SL_BENCH_MACHINE_H
#define SL_BENCH_MACHINE_H

#include "bench/bench.h"

struct sl_bench_machine {
    struct sl_bench_common common; /* first (bench.h) */
    int64_t megabytes, gemm_size, rows;
    char *width;
    bool remember;
};

/* Under an MPI launcher: messages between two ranks. */
int sl_bench_link_run(int argc, char **argv);

#endif
