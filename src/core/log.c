#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/progress.h"

static bool notes_enabled = true;

void sl_log_enable(bool enabled)
{
    notes_enabled = enabled;
}

void sl_note(const char *format, ...)
{
    if (!notes_enabled)
        return;
    va_list args;
    sl_progress_clear();
    va_start(args, format);
    fputs("starling: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}
