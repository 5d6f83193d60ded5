/* Threads for measurements without the runtime: one for each core of this process, bound as the
 * runtime's workers. */
#ifndef SL_BENCH_TEAM_H
#define SL_BENCH_TEAM_H

struct sl_team;

/* The work of thread `index` out of `threads`. */
typedef void sl_team_work(void *context, int index, int threads);

/* Start a team. Return 0 or SL_ERR_SYSTEM. */
int sl_team_create(struct sl_team **team);
void sl_team_destroy(struct sl_team *team);

/* Return the number of threads. */
int sl_team_size(const struct sl_team *team);

/* Run `work` on the first `threads` threads, which start together. Return the seconds from the
 * first start to the last end. */
double sl_team_run(struct sl_team *team, int threads, sl_team_work *work, void *context);

#endif
