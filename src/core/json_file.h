/* JSON in files, whole or not at all: an object that lacks a member for want of memory is no error
 * to jansson. */
#ifndef SL_CORE_JSON_FILE_H
#define SL_CORE_JSON_FILE_H

#include <jansson.h>

/* Return how often jansson got no memory since the first call. Whoever makes an object compares the
 * numbers before and after: where they differ, the object may lack members. */
long sl_json_failures(void);

/* Write `document` to `path`, indented, as core/file.h does. SL_ERR_SYSTEM names `path`, also where
 * the program had no memory for some member of a document. */
int sl_json_write(const json_t *document, const char *path);

#endif
