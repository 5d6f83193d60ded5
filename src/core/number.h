/* Read numbers with a decimal point in any locale. A program that calls the library may have a
 * locale with a comma. */
#ifndef SL_CORE_NUMBER_H
#define SL_CORE_NUMBER_H

#include <locale.h>

/* Return the locale "C", for uselocale or strtod_l. */
locale_t sl_number_locale(void);

/* Read a number as strtod does, with a point in any locale. */
double sl_number_read(const char *text, char **end);

#endif
