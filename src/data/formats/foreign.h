/* Formats of other programs that are not read, and what reads them. */
#ifndef SL_DATA_FORMATS_FOREIGN_H
#define SL_DATA_FORMATS_FOREIGN_H

#include <stddef.h>

/* Return a sentence about a file of such a format, which its name or its first bytes tell: "is
 * GEXF, which …"; NULL: it is none. `head` ends with a NUL after `bytes`. */
const char *sl_foreign_by_name(const char *path);
const char *sl_foreign_by_head(const char *head, size_t bytes);

#endif
