/* JSON that is read and written whole, or not at all. Without memory, jansson's parser fails on an
 * assertion, its printer leaves out a key, and an object lacks a member: all without an error. */
#ifndef SL_CORE_JSON_FILE_H
#define SL_CORE_JSON_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* Return how often jansson got no memory since the first call. Compare the numbers before and after
 * making an object: where they differ, the object may lack members. */
long sl_json_failures(void);

/* Do the work of json_loadb, json_loadf, json_load_file and json_dumps, whose text the caller frees
 * with free. Without memory, return NULL; *error (NULL: not wanted) then has the code
 * json_error_out_of_memory. */
json_t *sl_json_parse(const char *text, size_t bytes, size_t flags, json_error_t *error);
json_t *sl_json_read(FILE *file, size_t flags, json_error_t *error);
json_t *sl_json_read_file(const char *path, json_error_t *error);
char *sl_json_print(const json_t *value, size_t flags);

/* Put a value and a newline into `file`. Return whether the stream took all; errno says why not. */
bool sl_json_put(const json_t *value, size_t flags, FILE *file);

/* Write `document` to `path`, indented, as core/file.h does. SL_ERR_SYSTEM names `path`, also where
 * memory was too short for some member of the document. */
int sl_json_write(const json_t *document, const char *path);

#endif
