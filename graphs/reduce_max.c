/* The maximum of neighbours: graphs/reduce_extremum.c. */
#include "graphs/reduce_extremum.h"

static void meet(struct sl_state *state, const struct sl_meeting *meeting)
{
    sl_extremum_meet(state, meeting, false);
}

static void merge(struct sl_state *state, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows)
{
    sl_extremum_merge(state, other, rows, false);
}

const struct sl_reducer sl_reduce_max = SL_EXTREMUM("max", meet, merge);
