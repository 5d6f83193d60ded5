/* Options --quiet and --verbose of a command. */
#ifndef SL_CLI_TALK_H
#define SL_CLI_TALK_H

#include <stdbool.h>

#include "core/log.h"

struct sl_talk {
    bool quiet, verbose;
};

#define SL_TALK_VERBOSE "note the seconds of each step on stderr"

/* Rows of options for a configuration struct with a member `talk`. `quiet_help`: help of --quiet.
 */
#define SL_TALK_OPTIONS(config, quiet_help, group)                                                \
    {"quiet",    SL_OPTION_FLAG, offsetof(struct config, talk.quiet), "no", 0, 0, NULL, NULL,     \
     quiet_help, group},                                                                          \
    {                                                                                             \
        "verbose", SL_OPTION_FLAG, offsetof(struct config, talk.verbose), "no", 0, 0, NULL, NULL, \
            SL_TALK_VERBOSE, group                                                                \
    }

/* Print from now on as the options say, if this process `speaks` (rank 0). --quiet wins. */
static inline void sl_talk_begin(const struct sl_talk *talk, bool speaks)
{
    sl_talk(speaks && !talk->quiet, talk->verbose);
}

#endif
