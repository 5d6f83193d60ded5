#include "cli/commands.h"

#include <string.h>

#include "core/error.h"
#include "core/nearest.h"

const struct sl_command *const sl_commands[] = {
    &sl_command_train,    &sl_command_predict, &sl_command_evaluate,  &sl_command_export,
    &sl_command_generate, &sl_command_convert, &sl_command_partition, &sl_command_info,
    &sl_command_plan,     &sl_command_report,  &sl_command_bench,     NULL,
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
    struct sl_guess guess = sl_guess_begin(name);
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        sl_guess_consider(&guess, (*c)->name, (*c)->name);
    for (const char *const *other = others; *other; other++)
        sl_guess_consider(&guess, *other, *other);
    if (!sl_guess_is_close(&guess))
        return sl_error(SL_ERR_USAGE, "unknown command \"%s\": see starling help", name);
    return sl_error(SL_ERR_USAGE,
                    "unknown command \"%s\": the nearest is \"%s\"; see starling help", name,
                    guess.name);
}
