/* Formats of other programs that Starling does not read, with the programs that convert them. */
#ifndef SL_DATA_FORMATS_FOREIGN_H
#define SL_DATA_FORMATS_FOREIGN_H

#include <stddef.h>

/* Return a sentence about a file in such a format, known by its name or by its first bytes: "is
 * GEXF, which …"; NULL: the format is not among them. `head` ends with a NUL after `bytes`. */
const char *sl_foreign_by_name(const char *path);
const char *sl_foreign_by_head(const char *head, size_t bytes);

#endif
