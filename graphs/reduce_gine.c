/* clang-format off */
/* The sum of GINE (Hu et al., ICLR 2020), without a row per edge. With features f_ij of an edge,
 *
 *     Z_i = Σ_j relu(H_j + f_ij·W + b)
 *
 * Going back, G_i is moved along the transpose, and H_j is an operand of the row. With m_ij = 1 where H_j + f_ij·W + b > 0, else 0, column by column,
 *
 *     D_j = Σ_i m_ij G_i     dW = Σ_ij f_ij ⊗ (m_ij G_i)     db = Σ_ij m_ij G_i
 *
 * Both walks compute f_ij·W + b anew. dW and db are sums over edges (graphs/edge_sums.h). */
/* clang-format on */
#include "codelets/gine.h"
#include "graphs/layer_gine.h"
#include "graphs/reducer.h"

static const struct sl_gine_pass *pass_of(const struct sl_state *s)
{
    return s->states->reduction->parameters;
}

static void met(struct sl_state *s)
{
    s->started = true;
    s->terms--;
}

static void meet(struct sl_state *s, const struct sl_meeting *m)
{
    sl_submit_gine(s->states->rt, &(struct sl_gine_tiles){
                                      .a = m->a,
                                      .x = m->moved[0][0],
                                      .edge = pass_of(s)->edge,
                                      .out = s->out[0],
                                      .accumulate = s->started,
                                  });
    met(s);
}

static void meet_back(struct sl_state *s, const struct sl_meeting *m)
{
    struct sl_gine_back_tiles tiles = {
        .a = m->a,
        .g = m->moved[0][0],
        .x = s->row[0],
        .edge = pass_of(s)->edge,
        .back = pass_of(s)->first ? NULL : s->out[0],
        .accumulate = s->started,
    };
    tiles.edge_back = sl_edge_sums_at(pass_of(s)->sums, s->i, s->part, &tiles.edge_accumulate);
    sl_submit_gine_back(s->states->rt, &tiles);
    s->terms--;
    s->started = !pass_of(s)->first;
}

#define STEPS                                                                \
    .alone = true, .moved = 1, .outputs = 1, .open = sl_reducer_hold_output, \
    .submit = sl_reducer_nothing, .complete = sl_reducer_zero_unmet,         \
    .merge = sl_reducer_add_output, .close = sl_reducer_nothing

static const struct sl_reducer back = {
    .name = "gine-back", .row_operands = 1, .meet = meet_back, STEPS};

const struct sl_reducer sl_reduce_gine = {.name = "gine", .back = &back, .meet = meet, STEPS};
