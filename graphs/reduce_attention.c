/* clang-format off */
/* Graph attention (Velickovic et al.) without a tensor per edge. For each head, with P = H·W, s_i = a_dst·P_i, t_j = a_src·P_j, entries w_ij of A, and μ_ij = 0 or 1 / (1 - p), dropout:
 *
 *     x_ij = s_i + t_j       e_ij = LeakyReLU(x_ij), its slope at x_ij: σ_ij
 *     α_ij = w_ij e^e_ij / Σ_k w_ik e^e_ik                 Z_i = Σ_j α_ij μ_ij P_j
 *
 * Two numbers of a vertex make e_ij, so that forward and back compute α_ij from them. Where an entry has features f_ij (K), x_ij = s_i + t_j + f_ij·EDGE, with EDGE (K) = W_e·a_edge of the head.
 *
 * Forward, [P | t] is moved, and s is an operand of the row. A state has, for the maximum m of the e_ij that were met,
 *
 *     l = Σ w e^(e - m)      Z = Σ w e^(e - m) μ P_j
 *     q = Σ w e^(e - m) σ    Z' = Σ w e^(e - m) σ μ P_j     for the gradient
 *
 * States merge at the larger maximum: the other state is multiplied by e^(m - max). A state without entries has l = 0, and its m does not count. Closing divides by l, and keeps L = m + log l. So α_ij = w_ij e^(e_ij - L_i).
 *
 * With G_i the gradient of Z_i, and r_i = G_i·Z_i = Σ_k α_ik μ_ik G_i·P_k,
 *
 *     de_ij = α_ij (μ_ij G_i·P_j - r_i)                    dx_ij = σ_ij de_ij
 *     ds_i = Σ_j dx_ij = G_i·Z'_i - r_i q_i
 *     dt_j = Σ_i dx_ij = P_j·U_j - v_j     U_j = Σ_i α_ij σ_ij μ_ij G_i     v_j = Σ_i α_ij σ_ij r_i
 *     dP_j = D_j + dt_j a_src + ds_j a_dst                 D_j = Σ_i α_ij μ_ij G_i
 *     dEDGE = Σ_ij f_ij dx_ij
 *
 * Back, [G | r] and [s | L] are moved along the transpose. P and t are operands of the row, so the state is [D | dt]: U and v end in dt within a task. Where entries have features, the walk back makes dx_ij itself from G_i·P_j, for dt and dEDGE. States add up. ds comes from rows alone (codelets/attention_rows.h). Clones of a vertex add up their parts of G and r before the walk; s and L are the same in all.
 *
 * t = H·(W·a_src) and s = H·(W·a_dst) are columns of one product with [W | W·a_src | W·a_dst]. Its gradient, [D | dt | ds], is all that products back need; the gradients of a_src and a_dst follow from the gradient of these weights. So the moved matrix has s, too, one word more for each head.
 *
 * A row of [P | t | s] and a row of [s | L] have the vertex's number. It keys the dropout of attention, which is then the same for all distributions and vertex orders. */
/* clang-format on */
#include "codelets/attention.h"
#include "graphs/layer_gat.h"
#include "graphs/reducer.h"

enum { SCORES, PROJECTED = 0, GRADIENT = 0, BACK_SCORES };

/* ---- Forward ---- */

static const struct sl_gat_pass *pass_of(const struct sl_state *s)
{
    return s->states->reduction->parameters;
}

static void meet(struct sl_state *s, const struct sl_meeting *m)
{
    sl_submit_attention(s->states->rt, &pass_of(s)->attention,
                        &(struct sl_attention_tiles){
                            .a = m->a,
                            .projected = m->moved[PROJECTED][0],
                            .scores = s->row[SCORES],
                            .edge = pass_of(s)->edge,
                            .state = s->out[0],
                            .accumulate = s->started,
                        });
    s->started = true;
    s->terms--;
}

static void merge(struct sl_state *s, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows)
{
    sl_submit_attention_merge(s->states->rt, &pass_of(s)->attention,
                              &(struct sl_attention_merge_tiles){
                                  .other = other[0],
                                  .index = rows ? rows->index : NULL,
                                  .first = rows ? rows->first : 0,
                                  .rows = rows ? rows->rows : s->out[0]->rows,
                                  .state = s->out[0],
                              });
}

static void close_state(struct sl_state *s)
{
    sl_submit_attention_close(s->states->rt, &pass_of(s)->attention, s->row[SCORES], s->out[0]);
}

/* ---- Backward ---- */

static void back_meet(struct sl_state *s, const struct sl_meeting *m)
{
    struct sl_attention_back_tiles tiles = {
        .a = m->a,
        .gradient = m->moved[GRADIENT][0],
        .scores = m->moved[BACK_SCORES][0],
        .projected = s->row[PROJECTED],
        .edge = pass_of(s)->edge,
        .back = s->out[0],
        .accumulate = s->started,
    };
    if (tiles.edge)
        tiles.edge_back = sl_edge_sums_at(pass_of(s)->sums, s->i, s->part, &tiles.edge_accumulate);
    sl_submit_attention_back(s->states->rt, &pass_of(s)->attention, &tiles);
    s->started = true;
    s->terms--;
}

static const struct sl_reducer back = {
    .name = "attention-back",
    .alone = true,
    .moved = 2,
    .row_operands = 1,
    .outputs = 1,
    .open = sl_reducer_hold_output,
    .meet = back_meet,
    .submit = sl_reducer_nothing,
    .complete = sl_reducer_zero_unmet,
    .merge = sl_reducer_add_output,
    .close = sl_reducer_nothing,
};

const struct sl_reducer sl_reduce_attention = {
    .name = "attention",
    .back = &back,
    .alone = true,
    .moved = 1,
    .row_operands = 1,
    .outputs = 1,
    .open = sl_reducer_hold_output,
    .meet = meet,
    .submit = sl_reducer_nothing,
    .complete = sl_reducer_zero_unmet,
    .merge = merge,
    .close = close_state,
};
