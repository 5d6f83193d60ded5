#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/progress.h"

static bool notes_enabled = true;

void sl_log_enable(bool enabled)
{
    notes_enabled = enabled;
}

void sl_talk(bool speaks, bool verbose)
{
    sl_log_enable(speaks);
    sl_progress_tell(speaks, speaks && verbose);
}

void sl_note(const char *format, ...)
{
    if (!notes_enabled)
        return;
    va_list args;
    flockfile(stderr); /* no bar between the words of a note */
    sl_progress_clear();
    va_start(args, format);
    fputs("starling: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(args);
}
