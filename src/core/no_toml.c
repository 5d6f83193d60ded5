/* Refuse every TOML file, in a build without toml++ (toml.cc). */
#include "core/toml.h"

#include "core/error.h"

json_t *sl_toml_read(const char *text, size_t length, const char *source, json_t **lines)
{
    (void)text, (void)length, (void)lines;
    sl_error(SL_ERR_SYSTEM,
             "%s: built without TOML (expected JSON, or a build with toml++, libtomlplusplus-dev)",
             source);
    return NULL;
}
