#include "core/launcher.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

bool sl_launcher_is_off(void)
{
    const char *alone = getenv("STARLING_ALONE");
    return alone && alone[0] != '\0' && strcmp(alone, "0") != 0;
}

int sl_launcher_rank(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "MPI_LOCALRANKID"};
    for (size_t m = 0; sl_runtime_launched() && m < sizeof marks / sizeof *marks; m++)
        if (getenv(marks[m]))
            return atoi(getenv(marks[m]));
    return 0;
}

/* Variables with the number of processes of the innermost launcher: mpirun may itself be a task of
 * srun. SLURM_NTASKS is not among them: a job has it before it starts any process. */
static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE",
                                     "SLURM_STEP_NUM_TASKS"};

int sl_launcher_check(const struct sl_runtime *rt)
{
    const char *count = NULL, *name = NULL;
    for (size_t c = 0; !count && c < sizeof counts / sizeof *counts; c++)
        count = getenv(name = counts[c]);
    if (rt->ranks > 1 || !count || atoi(count) < 2 || sl_launcher_is_off())
        return 0;
    return sl_error(SL_ERR_USAGE,
                    "%s is %s, but this process is the only rank: MPI does not know its launcher "
                    "(expected mpirun of the same MPI, or srun --mpi=pmix; STARLING_ALONE=1 lets "
                    "every process run by itself)",
                    name, count);
}
