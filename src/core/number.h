/* Numbers as text, with a decimal point: a program that calls the library may have a locale with a
 * comma. */
#ifndef SL_CORE_NUMBER_H
#define SL_CORE_NUMBER_H

#include <locale.h>

/* The locale "C", for uselocale, or for strtod_l. */
locale_t sl_number_locale(void);

/* As strtod, with a point in any locale. */
double sl_number_read(const char *text, char **end);

#endif
