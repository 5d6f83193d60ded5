#include "core/number.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/error.h"

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) /* glibc and musl need no memory for the locale "C" */
        sl_fatal("no memory for the locale \"C\"");
}

locale_t sl_number_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain;
}

double sl_number_read(const char *text, char **end)
{
    return strtod_l(text, end, sl_number_locale());
}
