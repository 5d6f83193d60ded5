/* Which known name a person probably meant. */
#ifndef SL_CORE_NEAREST_H
#define SL_CORE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* How far `typed` is from `name`: insertions, deletions, replacements and swaps of neighbours; 1 if
 * it is a prefix. Names are cut at 63 characters. */
size_t sl_nearest_distance(const char *typed, const char *name);

/* Whether a name at this distance may have been meant: a third of the characters may be wrong, and
 * one always. */
bool sl_nearest_is_close(const char *typed, size_t distance);

/* A name that other programs have for an option, and the option's name here. */
struct sl_alias {
    const char *theirs, *ours;
};

/* All of them; a row whose names are NULL ends the table. Only options that mean the same are in
 * it. */
extern const struct sl_alias sl_aliases[];

#endif
