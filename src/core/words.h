/* Singular and plural words for numbers of things. */
#ifndef SL_CORE_WORDS_H
#define SL_CORE_WORDS_H

#include <stdint.h>

/* Return `one` for 1 ("tile"), else `many` ("tiles"). */
static inline const char *sl_plural(int64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static inline const char *sl_vertices(int64_t count)
{
    return sl_plural(count, "vertex", "vertices");
}

static inline const char *sl_entries(int64_t count)
{
    return sl_plural(count, "entry", "entries");
}

/* Return "" for 1, else "s": the plural of a regular word. */
static inline const char *sl_s(int64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
