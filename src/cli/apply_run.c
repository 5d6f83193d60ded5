#include "cli/apply_run.h"

#include "core/log.h"

struct sl_apply_options sl_apply_run_options(const struct sl_apply_run *run)
{
    return (struct sl_apply_options){.distribution = run->distribution,
                                     .grid = run->grid,
                                     .tiles = run->tiles,
                                     .replication = run->replication};
}

int sl_apply_run_start(const struct sl_apply_run *run, struct sl_runtime *rt)
{
    const int code = sl_runtime_start(rt, &(struct sl_runtime_options){.scheduler = run->scheduler,
                                                                       .workers = (int)run->workers,
                                                                       .quiet = run->quiet,
                                                                       .device = run->device});
    if (!code)
        sl_log_enable(rt->rank == 0 && !run->quiet);
    return code;
}
