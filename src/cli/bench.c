/* starling bench: measurements that anyone can repeat, one part each. */
#include "cli/bench.h"

#include <stdlib.h>

#include "core/error.h"

static const struct sl_command *const parts[] = {
    &sl_bench_machine, &sl_bench_gemm, &sl_bench_spmm, &sl_bench_epoch, &sl_bench_schedulers, NULL,
};

/* Ranks would measure one another. */
static bool is_one_of_many(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        if (getenv(sizes[s]) && atoi(getenv(sizes[s])) > 1)
            return true;
    return false;
}

static int run(int argc, char **argv)
{
    const struct sl_command *part;
    const int code = sl_command_choose_part(&sl_command_bench, argc, argv, &part);
    if (code)
        return code;
    if (is_one_of_many())
        return sl_error(SL_ERR_USAGE, "bench: measures one process; start it without mpirun");
    return part->run(argc - 1, argv + 1);
}

const struct sl_command sl_command_bench = {
    .name = "bench",
    .synopsis = "WHAT [ARGUMENT ...] [--OPTION ...]",
    .summary = "Measure this machine, kernels, epochs or schedulers",
    .parts = parts,
    .run = run,
};
