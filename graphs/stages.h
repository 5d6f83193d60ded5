/* In which stages the tiles of the other ranks of a grid's ring come to a rank: those of the rank
 * after it first. */
#ifndef SL_GRAPHS_STAGES_H
#define SL_GRAPHS_STAGES_H

#include "core/runtime.h"
#include "graphs/distribution.h"

/* Row tiles [from, to) of one rank. */
struct sl_stage_run {
    int rank, from, to;
};

/* How many stages the tiles of a rank are: at least two, so that those there is memory for are no
 * more than the tiles of two ranks; but a tree hands on to ranks that come two and three later. */
int sl_stages_of_rank(const struct sl_runtime *rt, const struct sl_distribution *d);

/* All stages, and what travels in stage s. */
int sl_stages_count(const struct sl_runtime *rt, const struct sl_distribution *d);
struct sl_stage_run sl_stages_run(const struct sl_runtime *rt, const struct sl_distribution *d,
                                  int s);

#endif
