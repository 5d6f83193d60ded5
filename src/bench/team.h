/* Threads for measurements without the runtime: one for each core of this process, bound as the
 * runtime binds its workers. */
#ifndef SL_BENCH_TEAM_H
#define SL_BENCH_TEAM_H

struct sl_team;

/* Work of one thread out of `threads`. */
typedef void sl_team_work(void *context, int index, int threads);

/* Starts a team. Returns 0 or SL_ERR_SYSTEM. */
int sl_team_create(struct sl_team **team);
void sl_team_destroy(struct sl_team *team);

/* How many threads there are. */
int sl_team_size(const struct sl_team *team);

/* Runs `work` on the first `threads` threads, which start together. Returns the seconds from the
 * start of the first to the end of the last. */
double sl_team_run(struct sl_team *team, int threads, sl_team_work *work, void *context);

#endif
