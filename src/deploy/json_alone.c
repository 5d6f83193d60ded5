/* JSON of libstarling-predict. core/json_file.h counts what jansson cannot allocate, by a function
 * that it gives to jansson for the whole process; a library without globals does not. Weak: a
 * program may be linked with libstarling.a, too.
 *
 * Without memory, jansson's parser loses bytes of a token, without an error, or fails without a
 * sentence. errno says what malloc said last. */
#include "core/json_file.h"

#include <errno.h>

__attribute__((weak)) json_t *sl_json_parse(const char *text, size_t bytes, size_t flags,
                                            json_error_t *error)
{
    const int before = errno;
    errno = 0;
    json_t *value = json_loadb(text, bytes, flags, error);
    if (errno == ENOMEM || (!value && error && !error->text[0])) {
        json_decref(value);
        value = NULL;
        if (error)
            error->text[sizeof error->text - 1] = json_error_out_of_memory;
    }
    errno = before;
    return value;
}
