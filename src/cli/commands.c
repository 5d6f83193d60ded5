#include "cli/commands.h"

#include <string.h>

#include "core/error.h"
#include "core/nearest.h"

const struct sl_command *const sl_commands[] = {
    &sl_command_train,
    &sl_command_predict,
    &sl_command_evaluate,
    &sl_command_generate,
    &sl_command_convert,
    &sl_command_partition,
    &sl_command_info,
    &sl_command_plan,
    &sl_command_report,
    &sl_command_bench,
    NULL,
};

const struct sl_command *sl_command_find(const char *name)
{
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

int sl_command_refuse(const char *name)
{
    static const char *const others[] = {"help", "version", "man", "completion", NULL};
    const char *nearest = others[0];
    size_t best = sl_nearest_distance(name, nearest);
    for (const char *const *other = others; *other; other++)
        if (sl_nearest_distance(name, *other) < best)
            best = sl_nearest_distance(name, nearest = *other);
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        if (sl_nearest_distance(name, (*c)->name) <= best)
            best = sl_nearest_distance(name, nearest = (*c)->name);
    if (!sl_nearest_is_close(name, best))
        return sl_error(SL_ERR_USAGE, "unknown command \"%s\": see starling help", name);
    return sl_error(SL_ERR_USAGE,
                    "unknown command \"%s\": the nearest is \"%s\"; see starling help", name,
                    nearest);
}
