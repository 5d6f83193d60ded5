/* Logs of starling train, read for a report. */
#ifndef SL_REPORT_RUNS_H
#define SL_REPORT_RUNS_H

#include <stdint.h>

#include <jansson.h>

struct sl_logged_run {
    const char *path;
    json_t *start, *end; /* end: NULL where the run was killed */
    json_t *epochs;      /* list of the epoch events, ascending */
    json_t *trace;       /* the document of the run's --trace; NULL: none */
};

/* Read a log. --resume appends runs to it: the last `start` counts, and the `end` after it. Epochs
 * of all runs count, but those that were done again count once. The file of --trace is read if it
 * is there, `trace` instead if it is not NULL. SL_ERR_DATA names file
 * and line. sl_logged_run_free in either case. */
int sl_logged_run_read(const char *path, const char *trace, struct sl_logged_run *run);
void sl_logged_run_free(struct sl_logged_run *run);

/* The number at the end of the keys ("machine", "ranks", NULL), or NaN where it is none. */
double sl_logged_number(const json_t *object, const char *const *keys);

/* The epoch whose weights a run has kept, and the training loss of that epoch. NaN: not known. Logs
 * of older programs say the last epoch's loss beside accuracies of the kept epoch. */
double sl_logged_run_kept(const struct sl_logged_run *run);
double sl_logged_run_loss(const struct sl_logged_run *run);

/* The mean, or the sum, of a list of numbers at the end of the keys; NaN where there is none. */
double sl_logged_mean(const json_t *object, const char *const *keys);
double sl_logged_sum(const json_t *object, const char *const *keys);

#endif
