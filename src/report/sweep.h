/* Runs side by side: in which options they differ, and which is the best one. */
#ifndef SL_REPORT_SWEEP_H
#define SL_REPORT_SWEEP_H

#include "report/runs.h"

/* What runs (count) are compared by. */
struct sl_sweep {
    json_t *options;    /* a list of names of options whose values are not the same in all runs */
    const char *metric; /* of all runs, "accuracy" where they have none in common */
    int *order;         // (count): runs, the best first; runs without a validation score last
    int best;           /* so many of them have the best score; 0: runs are not comparable */
};

/* Return 0 or SL_ERR_SYSTEM; sl_sweep_free in either case. Runs on different graphs,
 * with different splits or metrics are not comparable. */
int sl_sweep_make(struct sl_sweep *sweep, const struct sl_logged_run *runs, int count);
void sl_sweep_free(struct sl_sweep *sweep);

#endif
