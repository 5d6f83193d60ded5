#include "core/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/plain.h"

static _Thread_local char message[1024];

int sl_error(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return code;
}

int sl_error_about(int code, const char *subject)
{
    char reason[sizeof message];
    if (message[0] == '\0' || strstr(message, subject))
        return code;
    snprintf(reason, sizeof reason, "%s", message);
    return sl_error(code, "%s: %s", subject, reason);
}

const char *sl_error_message(void)
{
    return message;
}

static bool fatal_exits;

void sl_fatal_exits(void)
{
    fatal_exits = true;
}

void sl_fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sl_plain_say(format, args);
    va_end(args);
    if (fatal_exits)
        _exit(1); /* tasks still run: no destructor may take away what they use */
    abort();
}
