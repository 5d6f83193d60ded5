/* Tables of figures on stdout: a list of JSON objects, of which columns show one member each. */
#ifndef SL_CORE_TABLE_H
#define SL_CORE_TABLE_H

#include <jansson.h>

struct sl_column {
    const char *key;   /* of the member; NULL ends the list */
    const char *title; /* what stands above it */
    double unit;       /* numbers are divided by it; 0: as they are */
    int digits;        /* after the point */
};

/* Prints a title line and a line for each row; text to the left, numbers to the right, "-" where a
 * row lacks the member. */
void sl_table_print(const json_t *rows, const struct sl_column *columns);

#endif
