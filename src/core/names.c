#include "core/names.h"

#include <stdbool.h>
#include <string.h>

#include "core/error.h"

static bool has(const char *names, const char *name)
{
    const size_t length = strlen(name);
    for (const char *one = names; *one;) {
        const size_t size = strcspn(one, "|");
        if (size == length && strncmp(one, name, size) == 0)
            return true;
        one += size + (one[size] == '|');
    }
    return false;
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
    if (has(names, name))
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
