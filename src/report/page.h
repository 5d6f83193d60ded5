/* A report: one page of HTML with everything that logs of starling train say. The page needs no
 * network. */
#ifndef SL_REPORT_PAGE_H
#define SL_REPORT_PAGE_H

#include "report/runs.h"

/* Write the page of the runs (count) to `path`. Return 0, or SL_ERR_SYSTEM if the file or gnuplot
 * fails. */
int sl_page_write(const struct sl_logged_run *runs, int count, const char *path);

/* Write the page of one log. Return as sl_page_write, or a code of sl_logged_run_read. */
int sl_page_write_log(const char *log, const char *path);

#endif
