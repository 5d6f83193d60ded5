/* Functions of struct sl_reducer for the maximum and minimum, which take one neighbour's value for
 * each element, and that neighbour's row of the graph. */
#ifndef SL_GRAPHS_REDUCE_EXTREMUM_H
#define SL_GRAPHS_REDUCE_EXTREMUM_H

#include "graphs/reducer.h"

void sl_extremum_meet(struct sl_state *state, const struct sl_meeting *meeting, bool minimum);
void sl_extremum_complete(struct sl_state *state);
void sl_extremum_merge(struct sl_state *state, struct sl_tile *const *other,
                       const struct sl_listed_rows *rows, bool minimum);

/* Define the reducer of that name. `meet_it` and `merge_it` call sl_extremum_meet and
 * sl_extremum_merge. */
#define SL_EXTREMUM(called, meet_it, merge_it)                                                     \
    {                                                                                              \
        .name = called, .back = &sl_reduce_extremum_back, .numbered = true, .alone = true,         \
        .narrow = true, .moved = 1, .outputs = 2, .open = sl_reducer_hold_output, .meet = meet_it, \
        .submit = sl_reducer_nothing, .complete = sl_extremum_complete, .merge = merge_it,         \
        .close = sl_reducer_nothing                                                                \
    }

/* The gradient of maximum and minimum, with the transpose of A. It makes out[0], the gradient of H,
 * from moved[0], the gradient of the result, and moved[1], the argmax (int32). All but moved[1] are
 * float32. */
extern const struct sl_reducer sl_reduce_extremum_back;

#endif
