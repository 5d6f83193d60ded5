/* The minimum of neighbours: graphs/reduce_extremum.c. */
#include "graphs/reduce_extremum.h"

static void meet(struct sl_state *state, const struct sl_meeting *meeting)
{
    sl_extremum_meet(state, meeting, true);
}

static void merge(struct sl_state *state, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows)
{
    sl_extremum_merge(state, other, rows, true);
}

const struct sl_reducer sl_reduce_min = SL_EXTREMUM("min", meet, merge);
