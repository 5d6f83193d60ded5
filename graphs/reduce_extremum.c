/* clang-format off */
/* The maximum or minimum of neighbours, and its gradient, with one task for each meeting:
 *
 *     forward    (Z, ARGMAX)(i) = max((Z, ARGMAX)(i), A(i, k) ∘ H(k))
 *     backward   DH(i) += Aᵀ(i, k) ∘ G(k), where ARGMAX(k) names the row of DH
 *     merge      the larger state of two; gradients are added
 *
 * ARGMAX holds rows of the graph, and the least of equal rows wins. So the cut does not change a bit. */
/* clang-format on */
#include "graphs/reduce_extremum.h"
#include "codelets/init.h"
#include "codelets/max.h"

#include <string.h>

void sl_extremum_meet(struct sl_state *s, const struct sl_meeting *m, bool minimum)
{
    sl_submit_max(s->states->rt, &(struct sl_max_tiles){
                                     .a = m->a,
                                     .h = m->moved[0][0],
                                     .argmax = s->out[1],
                                     .z = s->out[0],
                                     .accumulate = s->started,
                                     .minimum = minimum,
                                     .vertices = m->vertices,
                                     .first = m->first,
                                 });
    s->started = true;
    s->terms--;
}

/* Complete rows without neighbours: Z = 0, ARGMAX = -1. ARGMAX is int32, so the fill's float has
 * the bits of -1. */
void sl_extremum_complete(struct sl_state *s)
{
    const int32_t none = -1;
    float bits;
    memcpy(&bits, &none, sizeof bits);
    if (s->started)
        return;
    sl_submit_fill(s->states->rt, 0.0f, s->out[0]);
    sl_submit_fill(s->states->rt, bits, s->out[1]);
}

void sl_extremum_merge(struct sl_state *s, struct sl_tile *const *other,
                       const struct sl_listed_rows *rows, bool minimum)
{
    sl_submit_max_merge(s->states->rt,
                        &(struct sl_max_merge_tiles){.x = other[0],
                                                     .from = other[1],
                                                     .index = rows ? rows->index : NULL,
                                                     .first = rows ? rows->first : 0,
                                                     .rows = rows ? rows->rows : s->out[0]->rows,
                                                     .minimum = minimum,
                                                     .argmax = s->out[1],
                                                     .z = s->out[0]});
}

/* ---- The gradient ---- */

static void back_meet(struct sl_state *s, const struct sl_meeting *m)
{
    sl_submit_max_back(s->states->rt, &(struct sl_max_tiles){
                                          .a = m->a,
                                          .h = m->moved[0][0],
                                          .argmax = m->moved[1][0],
                                          .z = s->out[0],
                                          .accumulate = s->started,
                                          .vertices = s->vertices,
                                          .first = s->first,
                                      });
    s->started = true;
    s->terms--;
}

const struct sl_reducer sl_reduce_extremum_back = {
    .name = "extremum-back",
    .numbered = true,
    .alone = true,
    .moved = 2,
    .outputs = 1,
    .open = sl_reducer_hold_output,
    .meet = back_meet,
    .submit = sl_reducer_nothing,
    .complete = sl_reducer_zero_unmet,
    .merge = sl_reducer_add_output,
    .close = sl_reducer_nothing,
};
