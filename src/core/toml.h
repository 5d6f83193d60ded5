/* Read TOML by toml++. toml.cc is the program's only source in C++; no_toml.c replaces it in a
 * build without toml++. */
#ifndef SL_CORE_TOML_H
#define SL_CORE_TOML_H

#include <stddef.h>

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return the keys of `text` (length bytes) with their values as a JSON object (a new reference).
 * Set *lines to a new object with their line numbers. Values are strings, integers, floats,
 * booleans and arrays of these. On an error return NULL; the sentence of sl_error begins with
 * `source` and names the line. Errors are wrong TOML, a table, a date, or another value that JSON
 * lacks. */
json_t *sl_toml_read(const char *text, size_t length, const char *source, json_t **lines);

#ifdef __cplusplus
}
#endif

#endif
