/* TOML, by toml++. toml.cc is the one source of the program in C++; no_toml.c is in its place where
 * there is no toml++. */
#ifndef SL_CORE_TOML_H
#define SL_CORE_TOML_H

#include <stddef.h>

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return the keys of `text` (length bytes) with their values as a JSON object (a new reference),
 * and with their line numbers in *lines (another). Values are strings, integers, floats, booleans
 * and arrays of these. On an error return NULL; the sentence of sl_error begins with `source` and
 * names the line: wrong TOML, a table, a date, or another value that JSON lacks. */
json_t *sl_toml_read(const char *text, size_t length, const char *source, json_t **lines);

#ifdef __cplusplus
}
#endif

#endif
