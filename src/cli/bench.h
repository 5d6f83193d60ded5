/* The parts of `starling bench`. A new one is a file that exports its command, its name below, and
 * its row in bench.c. */
#ifndef SL_CLI_BENCH_H
#define SL_CLI_BENCH_H

#include "cli/command.h"

extern const struct sl_command sl_bench_machine, sl_bench_gemm, sl_bench_spmm, sl_bench_epoch,
    sl_bench_schedulers;

#endif
