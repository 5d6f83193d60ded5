/* Compares runs: the options that differ, and the best run. */
#ifndef SL_REPORT_SWEEP_H
#define SL_REPORT_SWEEP_H

#include "report/runs.h"

/* The comparison of several runs. */
struct sl_sweep {
    json_t *options;    /* list of names of options with different values */
    const char *metric; /* metric of all runs; "accuracy" if they have none in common */
    int *order;         // (count): runs, the best first; runs without a validation score last
    int best;           /* runs with the best score; 0: runs are not comparable */
};

/* Compare runs. Runs on different graphs, with different splits or metrics are not comparable.
 * Return 0 or SL_ERR_SYSTEM; call sl_sweep_free in either case. */
int sl_sweep_make(struct sl_sweep *sweep, const struct sl_logged_run *runs, int count);
void sl_sweep_free(struct sl_sweep *sweep);

#endif
