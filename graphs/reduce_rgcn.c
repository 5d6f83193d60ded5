/* clang-format off */
/* The sum of R-GCN (Schlichtkrull et al., ESWC 2018), without a row per relation. With r = r(ij), the relation of an edge, and f_ij, 1 / the number of edges of vertex i that have this relation,
 *
 *     Z_i = Σ_j f_ij · H_j·W_r
 *
 * A tile sums over the neighbours of each relation first, and multiplies then. Rows of H travel once, whatever the number of relations. Going back, G_i is moved along the transpose, and H_j is an operand of the row:
 *
 *     D_j = Σ_r (Σ_i f_ij G_i)·W_rᵀ     dW_r = Σ_j H_jᵀ·(Σ_i f_ij G_i)
 *
 * dW is a sum over edges (graphs/edge_sums.h). */
/* clang-format on */
#include "codelets/relations.h"
#include "graphs/layer_rgcn.h"
#include "graphs/reducer.h"

static const struct sl_rgcn_pass *pass_of(const struct sl_state *s)
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
    const struct sl_rgcn_pass *const pass = pass_of(s);
    sl_submit_relations(s->states->rt, &(struct sl_relations_tiles){
                                           .a = m->a,
                                           .relations = pass->relations,
                                           .weight_row = pass->weight_row,
                                           .x = m->moved[0][0],
                                           .weight = pass->weight,
                                           .out = s->out[0],
                                           .accumulate = s->started,
                                       });
    met(s);
}

static void meet_back(struct sl_state *s, const struct sl_meeting *m)
{
    const struct sl_rgcn_pass *const pass = pass_of(s);
    struct sl_relations_back_tiles tiles = {
        .a = m->a,
        .relations = pass->relations,
        .weight_row = pass->weight_row,
        .g = m->moved[0][0],
        .x = s->row[0],
        .weight = pass->weight,
        .back = pass->first ? NULL : s->out[0],
        .accumulate = s->started,
    };
    tiles.weight_back = sl_edge_sums_at(pass->sums, s->i, s->part, &tiles.weight_accumulate);
    sl_submit_relations_back(s->states->rt, &tiles);
    s->terms--;
    s->started = !pass->first;
}

#define STEPS                                                                               \
    .alone = true, .whole = true, .moved = 1, .outputs = 1, .open = sl_reducer_hold_output, \
    .submit = sl_reducer_nothing, .complete = sl_reducer_zero_unmet,                        \
    .merge = sl_reducer_add_output, .close = sl_reducer_nothing

static const struct sl_reducer back = {
    .name = "rgcn-back", .row_operands = 1, .meet = meet_back, STEPS};

const struct sl_reducer sl_reduce_rgcn = {.name = "rgcn", .back = &back, .meet = meet, STEPS};
