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

/* The best guess so far at what somebody meant by `typed`. */
struct sl_guess {
    const char *typed;
    size_t distance;
    char name[256]; /* "" where there is none */
};

struct sl_guess sl_guess_begin(const char *typed);

/* `theirs` is what `typed` is compared with, `ours` what the user is told. The first of equals is
 * kept. */
void sl_guess_consider(struct sl_guess *guess, const char *theirs, const char *ours);

/* Consider each name of a list; `between`: characters between names. */
void sl_guess_consider_list(struct sl_guess *guess, const char *list, const char *between);

/* Whether the guess may have been meant. */
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

/* All of them; a row whose names are NULL ends the table. Only options that mean the same are in
 * it. */
extern const struct sl_alias sl_aliases[];

/* Likewise of values. A value may be of several options. */
extern const struct sl_alias sl_value_aliases[];

#endif
