/* The epochs of a run as a table of comma-separated values: --log FILE.csv. */
#ifndef SL_LOG_EPOCH_TABLE_H
#define SL_LOG_EPOCH_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct sl_epoch_report;

/* Whether --log asks for a table: `path` ends in .csv. */
bool sl_epoch_table_is(const char *path);

/* Return 0 if the file has no line, or begins with the names of the columns; SL_ERR_DATA otherwise.
 */
int sl_epoch_table_check(const char *path);

/* Keep the rows of the first `epochs` epochs. A run that goes on writes later rows again, and a
 * kill may have left a row without its end. `file` is open for appending. Return 0, or -1 with
 * errno. */
int sl_epoch_table_cut(FILE *file, const char *path, long long epochs);

/* Write the names of the columns. */
void sl_epoch_table_begin(FILE *file);

/* Write the row of an epoch. A field is empty if nothing was measured; "nan" and "inf" are numbers.
 * Return 0, or -1 with errno if the row is lost. */
int sl_epoch_table_row(FILE *file, const struct sl_epoch_report *epoch);

#endif
