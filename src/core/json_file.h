/* Write JSON to files, whole or not at all. jansson reports no error where memory was too short for
 * a member of an object. */
#ifndef SL_CORE_JSON_FILE_H
#define SL_CORE_JSON_FILE_H

#include <jansson.h>

/* Return how often jansson got no memory since the first call. Compare the numbers before and after
 * making an object: where they differ, the object may lack members. */
long sl_json_failures(void);

/* Write `document` to `path`, indented, as core/file.h does. SL_ERR_SYSTEM names `path`, also where
 * memory was too short for some member of the document. */
int sl_json_write(const json_t *document, const char *path);

#endif
