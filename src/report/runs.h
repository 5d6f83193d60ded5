/* Reads logs of starling train for a report. */
#ifndef SL_REPORT_RUNS_H
#define SL_REPORT_RUNS_H

#include <stdint.h>

#include <jansson.h>

struct sl_logged_run {
    const char *path;
    json_t *start, *end; /* end: NULL if the run was killed */
    json_t *epochs;      /* list of epoch events, ascending */
    json_t *trace;       /* the document of the run's --trace; NULL: none */
};

/* Read a log. --resume appends runs to it: the last `start` counts, and the `end` after it. Epochs
 * of all runs count; repeated epochs count once. Read the file of --trace if it exists, or `trace`
 * if that is not NULL. The sentence of SL_ERR_DATA names file and line. Call sl_logged_run_free in
 * either case. */
int sl_logged_run_read(const char *path, const char *trace, struct sl_logged_run *run);
void sl_logged_run_free(struct sl_logged_run *run);

/* Return the number at the end of the keys ("machine", "ranks", NULL), or NaN if there is none. */
double sl_logged_number(const json_t *object, const char *const *keys);

/* Return the epoch whose weights a run has kept (sl_logged_run_kept), or the training loss of that
 * epoch. NaN: unknown. Logs of older programs have the last epoch's loss beside accuracies of the
 * kept epoch. */
double sl_logged_run_kept(const struct sl_logged_run *run);
double sl_logged_run_loss(const struct sl_logged_run *run);

/* Return the mean, or the sum, of the list of numbers at the end of the keys; NaN if there is none.
 */
double sl_logged_mean(const json_t *object, const char *const *keys);
double sl_logged_sum(const json_t *object, const char *const *keys);

#endif
