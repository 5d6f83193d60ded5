/* Find the known name that a person probably meant. */
#ifndef SL_CORE_NEAREST_H
#define SL_CORE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* Return the distance of `typed` from `name`: insertions, deletions, replacements and swaps of
 * neighbours; 1 if `typed` is a prefix. Names are cut at 63 characters. */
size_t sl_nearest_distance(const char *typed, const char *name);

/* Return whether a name at this distance from `typed` may have been meant. A third of the
 * characters may be wrong, and at least one. */
bool sl_nearest_is_close(const char *typed, size_t distance);

/* The best guess so far at what somebody meant by `typed`. */
struct sl_guess {
    const char *typed;
    size_t distance;
    char name[256]; /* "" where there is none */
};

struct sl_guess sl_guess_begin(const char *typed);

/* Compare `theirs` with `typed`; if it is nearer than the guess so far, make `ours`, the name to
 * show, the guess. */
void sl_guess_consider(struct sl_guess *guess, const char *theirs, const char *ours);

/* Consider each name of `list`, whose names are separated by the characters of `between`. */
void sl_guess_consider_list(struct sl_guess *guess, const char *list, const char *between);

/* Return whether the guess is close enough to have been meant. */
bool sl_guess_is_close(const struct sl_guess *guess);

/* "; the nearest is NAME" for an error, or "" where nothing is close. */
struct sl_hint {
    char text[300];
};
struct sl_hint sl_guess_hint(const struct sl_guess *guess);

/* A name that other programs have for an option, and the option's name here. */
struct sl_alias {
    const char *theirs, *ours;
};

/* Names that other programs give to options with equal meaning; a row whose names are NULL ends the
 * table. */
extern const struct sl_alias sl_aliases[];

/* Names that other programs give to values of options. A value may belong to several options; a row
 * whose names are NULL ends the table. */
extern const struct sl_alias sl_value_aliases[];

#endif
