/* A report: one page of HTML with all that logs of starling train say, without network. */
#ifndef SL_REPORT_PAGE_H
#define SL_REPORT_PAGE_H

#include "report/runs.h"

/* Write the page of the runs (count) to `path`. SL_ERR_SYSTEM: the file, or gnuplot. */
int sl_page_write(const struct sl_logged_run *runs, int count, const char *path);

/* The same of one log. Errors of sl_logged_run_read, too. */
int sl_page_write_log(const char *log, const char *path);

#endif
