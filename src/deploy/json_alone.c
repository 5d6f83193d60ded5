/* JSON of libstarling-predict. core/json_file.h counts what jansson cannot allocate, by a function
 * that it gives to jansson for the whole process; a library without globals does not. Weak: a
 * program may be linked with libstarling.a, too. */
#include "core/json_file.h"

__attribute__((weak)) json_t *sl_json_parse(const char *text, size_t bytes, size_t flags,
                                            json_error_t *error)
{
    return json_loadb(text, bytes, flags, error);
}
