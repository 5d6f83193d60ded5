/* Print tables of figures on stdout from a list of JSON objects. Each column shows one member. */
#ifndef SL_CORE_TABLE_H
#define SL_CORE_TABLE_H

#include <jansson.h>

struct sl_column {
    const char *key;   /* name of the member; NULL ends the list */
    const char *title; /* heading of the column */
    double unit;       /* divisor of the numbers; 0: none */
    int digits;        /* digits after the point */
};

/* Print a title line and a line for each row: text to the left, numbers to the right, "-" where a
 * row lacks the member. */
void sl_table_print(const json_t *rows, const struct sl_column *columns);

#endif
