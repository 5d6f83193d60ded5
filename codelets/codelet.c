#include "codelets/codelet.h"

#include <string.h>

uint32_t sl_codelet_footprint(struct starpu_task *task)
{
    uint32_t footprint;
    memcpy(&footprint, (const char *)task->cl_arg + task->cl_arg_size - sizeof footprint,
           sizeof footprint);
    return footprint;
}
