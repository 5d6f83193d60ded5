#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/plain.h"
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

/* Print a line under the lock of stderr, so that no bar is drawn between its words. */
static void say(const char *format, va_list arguments)
{
    flockfile(stderr);
    sl_progress_clear();
    sl_plain_say(format, arguments);
    funlockfile(stderr);
}

void sl_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (notes_enabled)
        say(format, arguments);
    va_end(arguments);
}

void sl_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}
