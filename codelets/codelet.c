#include "codelets/codelet.h"

#include <math.h>

uint32_t sl_codelet_footprint(struct starpu_task *task)
{
    return task->flops > 1 ? (uint32_t)(2.0 * log2(task->flops)) : 0;
}
