#include "core/names.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"

int sl_choice_find(const char *choices, const char *word)
{
    const size_t length = strlen(word);
    for (int place = 0; *choices; place++) {
        const size_t size = strcspn(choices, "|");
        if (size == length && strncmp(choices, word, size) == 0)
            return place;
        choices += size + (choices[size] == '|');
    }
    return SL_NO_CHOICE;
}

struct sl_word sl_choice_word(const char *choices, int place)
{
    struct sl_word word = {""};
    for (; place > 0; place--) {
        choices += strcspn(choices, "|");
        choices += *choices == '|';
    }
    if (place == 0)
        snprintf(word.text, sizeof word.text, "%.*s", (int)strcspn(choices, "|"), choices);
    return word;
}

int sl_names_add(char *names, int *added, const char *what, const char *name)
{
    const size_t length = name ? strlen(name) : 0, used = strlen(names);
    if (length == 0 || length >= SL_NAME_ROOM ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != length || name[0] == '-')
        return sl_error(SL_ERR_USAGE,
                        "the name of %s, \"%s\": expected 1 to %d characters of a-z, 0-9 and -, "
                        "the first one no -",
                        what, name ? name : "", SL_NAME_ROOM - 1);
    if (sl_choice_find(names, name) >= 0)
        return sl_error(SL_ERR_USAGE, "the name of %s, \"%s\": is taken (expected another one)",
                        what, name);
    if (*added == SL_NAMES_ADDED || used + length + 2 > SL_NAMES_ROOM)
        return sl_error(SL_ERR_USAGE, "the name of %s, \"%s\": too many (expected at most %d)",
                        what, name, SL_NAMES_ADDED);
    names[used] = '|';
    memcpy(names + used + 1, name, length + 1);
    ++*added;
    return 0;
}
