#include "cli/apply_run.h"

#include "core/alike.h"

struct sl_apply_options sl_apply_run_options(const struct sl_apply_run *run)
{
    return (struct sl_apply_options){.distribution = run->distribution,
                                     .grid = run->grid,
                                     .tiles = run->tiles,
                                     .replication = run->replication};
}

int sl_apply_run_start(const struct sl_apply_run *run, const struct sl_command *command,
                       const void *config, const bool *given, struct sl_runtime *rt)
{
    struct sl_alike alike = {.count = 0};
    sl_alike_add_options(&alike, command->name, command->options, config, given);
    const int code = sl_runtime_start(rt, &(struct sl_runtime_options){.scheduler = run->scheduler,
                                                                       .workers = (int)run->workers,
                                                                       .quiet = run->talk.quiet,
                                                                       .device = run->device,
                                                                       .alike = &alike});
    if (!code)
        sl_talk_begin(&run->talk, rt->rank == 0);
    return code;
}
