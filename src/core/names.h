/* The words that an option may have, "a|b|c", and names that a program adds to them
 * (include/starling.h). */
#ifndef SL_CORE_NAMES_H
#define SL_CORE_NAMES_H

#include <stddef.h>

enum {
    SL_NAMES_ADDED = 16, /* most names that a program adds to an option */
    SL_NAME_ROOM = 32,   /* bytes of a name, with its end */
    SL_NAMES_ROOM = 256 + SL_NAMES_ADDED * SL_NAME_ROOM,
};

/* Append `name` to `names`, "a|b|c", of SL_NAMES_ROOM bytes, and count it in *added.
 * `what`: "a loss". Return 0, or SL_ERR_USAGE: the name is no word of a-z, 0-9 and -, is in `names`
 * already, or SL_NAMES_ADDED names were added. */
int sl_names_add(char *names, int *added, const char *what, const char *name);

enum { SL_NO_CHOICE = -1 }; /* place of no word */

/* A macro LIST(ENTRY) of entries ENTRY(CONSTANT, "word") makes an enum and the choices of an
 * option, in one order:
 *
 *     enum sl_keep { SL_KEEPS(SL_CHOICE_CONSTANT) };
 *     SL_CHOICES(SL_KEEPS) is "auto|best|last" */
#define SL_CHOICE_CONSTANT(constant, word) constant,
#define SL_CHOICE_WORD(constant, word)     "|" word
#define SL_CHOICES(list)                   (&list(SL_CHOICE_WORD)[1])

/* A word of a choice, or a name, of less than SL_NAME_ROOM bytes. */
struct sl_word {
    char text[SL_NAME_ROOM];
};

/* Return the word at `place` of `choices`, "a|b|c"; "" for SL_NO_CHOICE. */
struct sl_word sl_choice_word(const char *choices, int place);

/* Return the place of a word in `choices`, or SL_NO_CHOICE. */
int sl_choice_find(const char *choices, const char *word);

#endif
