#include "cli/apply_run.h"

#include "core/alike.h"

static int start(const struct sl_apply_run *run, const struct sl_command *command,
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

int sl_apply_run(const struct sl_apply_run *run, const struct sl_command *command,
                 const void *config, const bool *given, char **words,
                 struct sl_apply_options options,
                 int (*use)(const void *config, struct sl_apply *apply))
{
    struct sl_runtime rt;
    struct sl_checkpoint checkpoint = {0};
    struct sl_apply apply = {0};
    options.distribution = run->distribution;
    options.grid = run->grid;
    options.tiles = run->tiles;
    options.replication = run->replication;
    int code = start(run, command, config, given, &rt);
    if (code)
        return code;
    code = sl_runtime_agree(&rt, sl_checkpoint_read(words[0], &checkpoint));
    if (!code)
        code = sl_apply_create(&apply, &rt, words[1], NULL, &checkpoint, words[0], &options);
    if (!code)
        code = use(config, &apply);
    sl_apply_destroy(&apply);
    sl_checkpoint_free(&checkpoint);
    sl_runtime_stop(&rt);
    return code;
}
