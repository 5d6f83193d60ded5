/* starling bench machine: on one process (machine.c), and on two ranks (link.c). */
#ifndef SL_BENCH_MACHINE_H
#define SL_BENCH_MACHINE_H

#include "bench/bench.h"

struct sl_bench_machine {
    struct sl_bench_common common; /* first (bench.h) */
    int64_t megabytes, gemm_size, rows;
    char *width;
    bool remember;
};

/* Run the part under an MPI launcher: messages between two ranks. */
int sl_bench_link_run(int argc, char **argv);

#endif
