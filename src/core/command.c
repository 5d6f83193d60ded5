#include "core/command.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"

const struct sl_command *sl_command_part(const struct sl_command *command, const char *name)
{
    const size_t skip = strlen(command->name) + 1;
    for (const struct sl_command *const *part = command->parts; part && *part; part++)
        if (strcmp((*part)->name + skip, name) == 0)
            return *part;
    return NULL;
}

int sl_command_choose_part(const struct sl_command *command, int argc, char **argv,
                           const struct sl_command **part)
{
    char list[128] = "";
    const size_t skip = strlen(command->name) + 1;
    *part = argc > 0 ? sl_command_part(command, argv[0]) : NULL;
    if (*part)
        return 0;
    for (const struct sl_command *const *p = command->parts; *p; p++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? ", " : "",
                 (*p)->name + skip);
    if (argc < 1)
        return sl_error(SL_ERR_USAGE, "%s what? Expected one of: %s", command->name, list);
    struct sl_guess guess = sl_guess_begin(argv[0]);
    sl_guess_consider_list(&guess, list, ", ");
    return sl_error(SL_ERR_USAGE, "%s: there is no \"%s\", expected one of: %s%s", command->name,
                    argv[0], list, sl_guess_hint(&guess).text);
}

int sl_command_missing(const struct sl_command *command)
{
    return sl_error(SL_ERR_USAGE, "an argument is missing: usage is starling %s %s", command->name,
                    command->synopsis);
}

int sl_command_parse(const struct sl_command *command, void *config, int argc, char **argv,
                     int least, int most, int *positionals, bool *given)
{
    int code = sl_options_defaults(command->options, config);
    if (!code)
        code = sl_options_parse(command->options, config, argc, argv, positionals, given);
    if (!code && *positionals > most)
        code = sl_error(SL_ERR_USAGE, "one argument too many, \"%s\": usage is starling %s %s",
                        argv[most], command->name, command->synopsis);
    if (!code && *positionals < least)
        code = sl_command_missing(command);
    return code;
}
