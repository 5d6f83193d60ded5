/* Which known name a person probably meant. */
#ifndef SL_CORE_NEAREST_H
#define SL_CORE_NEAREST_H

#include <stddef.h>

/* How far `typed` is from `name`: insertions, deletions, replacements and swaps of neighbours; 1 if
 * it is a prefix. Names are cut at 63 characters. */
size_t sl_nearest_distance(const char *typed, const char *name);

#endif
