/* JSON of libstarling-predict. core/json_file.h counts what jansson cannot allocate, by a function
 * that it gives to jansson for the whole process; a library without globals does not. Weak: a
 * program may be linked with libstarling.a, too.
 *
 * Without memory, most failures of jansson's parser have no sentence. Where it loses a token, it
 * has the sentence of a wrong text. */
#include "core/json_file.h"

__attribute__((weak)) json_t *sl_json_parse(const char *text, size_t bytes, size_t flags,
                                            json_error_t *error)
{
    json_t *value = json_loadb(text, bytes, flags, error);
    if (!value && error && !error->text[0])
        error->text[sizeof error->text - 1] = json_error_out_of_memory;
    return value;
}
