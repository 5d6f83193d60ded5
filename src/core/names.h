/* Names that a program adds to those of an option (include/starling.h). */
#ifndef SL_CORE_NAMES_H
#define SL_CORE_NAMES_H

#include <stddef.h>

enum {
    SL_NAMES_ADDED = 16, /* at most, of an option */
    SL_NAME_ROOM = 32,   /* bytes of a name, with its end */
    SL_NAMES_ROOM = 256 + SL_NAMES_ADDED * SL_NAME_ROOM,
};

/* Append `name` to `names`, "a|b|c", of SL_NAMES_ROOM bytes, and count it in *added.
 * `what`: "a loss". Return 0, or SL_ERR_USAGE: the name is no word of a-z, 0-9 and -, or is there
 * already, or SL_NAMES_ADDED are. */
int sl_names_add(char *names, int *added, const char *what, const char *name);

#endif
