/* The stages in which a rank receives the tiles of the other ranks of a ring, beginning with the
 * next rank. */
#ifndef SL_GRAPHS_STAGES_H
#define SL_GRAPHS_STAGES_H

#include "core/runtime.h"
#include "graphs/distribution.h"

/* Row tiles [from, to) of one rank. */
struct sl_stage_run {
    int rank, from, to;
};

/* Return the number of stages for the tiles of one rank. At least two, so that the window of four
 * stages holds at most two ranks' tiles. A tree takes one stage, because a rank hands tiles on to
 * ranks two and three positions later. Few ranks have more, so that there are four stages in all.
 */
int sl_stages_of_rank(const struct sl_runtime *rt, const struct sl_distribution *d);

/* Return the number of all stages. */
int sl_stages_count(const struct sl_runtime *rt, const struct sl_distribution *d);

/* Return the row tiles that travel in stage s. */
struct sl_stage_run sl_stages_run(const struct sl_runtime *rt, const struct sl_distribution *d,
                                  int s);

#endif
