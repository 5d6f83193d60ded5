/* Runs that differ in seeds alone: means and deviations of their scores. */
#ifndef SL_REPORT_SEEDS_H
#define SL_REPORT_SEEDS_H

#include <stdbool.h>

#include "report/sweep.h"

/* The scores of several runs. */
struct sl_seeds {
    int runs;               /* runs that have both scores */
    double mean[2], dev[2]; /* of validation and test: mean, and deviation of a sample */
};

/* Whether an option is a seed: of the run, or of its splits. */
bool sl_seeds_is(const char *option);

/* Whether two runs differ in seeds alone. */
bool sl_seeds_alike(const struct sl_sweep *sweep, const struct sl_logged_run *a,
                    const struct sl_logged_run *b);

/* Return the scores of all runs that differ from runs[r] in seeds alone, itself among them. `runs`
 * is 0 where an earlier run is one of them. */
struct sl_seeds sl_seeds_of(const struct sl_sweep *sweep, const struct sl_logged_run *runs,
                            int count, int r);

#endif
