#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char message[1024];

int sl_error(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return code;
}

const char *sl_error_message(void)
{
    return message;
}

void sl_fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("starling: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}
