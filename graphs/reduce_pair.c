/* clang-format off */
/* Attention whose scores need the rows of both ends of an edge, without a tensor per edge. GATv2: Brody, Alon & Yahav, ICLR 2022. Graph transformers: Shi, Huang, Feng, Zhong, Wang & Sun, IJCAI 2021. For each head, with rows K_j, V_j of the source j and T_i of the target i, entries w_ij of A, and μ_ij = 0 or 1 / (1 - p), dropout:
 *
 *     GATv2         K_j = V_j = W_l·h_j + b_l     T_i = W_r·h_i + b_r              e_ij = a·LeakyReLU(K_j + T_i)
 *     transformer   K_j, V_j, T_i likewise        T_i is multiplied by 1 / √F      e_ij = K_j·T_i
 *
 *     α_ij = w_ij e^e_ij / Σ_k w_ik e^e_ik        Z_i = Σ_j α_ij μ_ij V_j
 *
 * Forward, [K | V] is moved, and T is an operand of the row. A state has, for the maximum m of the e_ij that were met,
 *
 *     l = Σ w e^(e - m)      Z = Σ w e^(e - m) μ V_j
 *
 * States merge, and close, as those of graphs/reduce_attention.c: α_ij = w_ij e^(e_ij - L_i).
 *
 * With G_i the gradient of Z_i, r_i = G_i·Z_i, and σ_ij the slopes of LeakyReLU at K_j + T_i, column by column,
 *
 *     de_ij = α_ij (μ_ij G_i·V_j - r_i)
 *     E_j = Σ_i α_ij μ_ij G_i                     the gradient of V_j, or its share in that of K_j = V_j
 *
 *     GATv2         D_j = Σ_i de_ij σ_ij          C_i = Σ_j de_ij σ_ij
 *                   dK_j = a D_j + E_j            dT_i = a C_i          da = Σ_j K_j D_j + Σ_i T_i C_i
 *     transformer   dK_j = D_j = Σ_i de_ij T_i    dT_i = C_i = Σ_j de_ij K_j
 *
 * Products of vectors without a dot are column by column. da uses x σ(x) = LeakyReLU(x).
 *
 * Back, [G | r] and [T | L] are moved along the transpose, K and V are operands of the row, and the state is [D | E]. Then [K | V] is moved once more, T and [G | r] are operands of the row, and the state is C. Both states add up. Every walk computes e_ij anew, because rows of edges would take more memory than all other matrices.
 *
 * Entries may have features f_ij, which weights W_e without a bias turn into a row e of the edge (PyG's edge_dim):
 *
 *     GATv2         a·LeakyReLU(K_j + T_i + f_ij·W_e)                      values stay V_j = K_j
 *     transformer   (K_j + f_ij·W_e)·T_i                                   values are V_j + f_ij·W_e
 *
 * No row of an edge outlives a walk. GATv2 adds it to the row that is met, a few entries at a time, and σ_ij are the slopes there. The second walk, which meets A, sums over its entries
 *
 *     M = Σ_ij f_ij ⊗ (de_ij σ_ij)        dW_e = a M        da = Σ_j K_j D_j + Σ_i T_i C_i + Σ_f W_e[f] M[f]
 *
 * A transformer has numbers of each feature and head instead, at the ends of rows:
 *
 *     [T | L]   U_i = W_e·T_i             scores are K_j·T_i + f_ij·U_i
 *     Z         B_i = Σ_j w e^(e - m) μ f_ij        closed, Z_i = Σ_j α_ij μ_ij V_j + B_i·W_e
 *     [G | r]   Y_i = W_e·G_i             G_i·V_j becomes G_i·V_j + f_ij·Y_i
 *     C         A_i = Σ_j de_ij f_ij      dT_i = C_i + A_i·W_e
 *
 *     dW_e = Σ_i A_i ⊗ T_i + B_i ⊗ G_i
 *
 * A row of [K | V] and a row of [T | L] have the vertex's number, as in graphs/reduce_attention.c. */
/* clang-format on */
#include "codelets/pair.h"
#include "graphs/layer_pair.h"
#include "graphs/reducer.h"

enum { TARGET, GRADIENT };                                 /* row operands of targets */
enum { SOURCE = 0, MOVED_GRADIENT = 0, MOVED_TARGET = 1 }; /* moved matrices; SOURCE also a row's */

static const struct sl_pair_pass *pass_of(const struct sl_state *s)
{
    return s->states->reduction->parameters;
}

static const struct sl_pair *pair_of(const struct sl_state *s)
{
    return &pass_of(s)->pair;
}

static struct sl_tile *vectors_of(const struct sl_state *s)
{
    return pass_of(s)->vectors;
}

static void met(struct sl_state *s)
{
    s->started = true;
    s->terms--;
}

static void meet(struct sl_state *s, const struct sl_meeting *m)
{
    sl_submit_pair(s->states->rt, pair_of(s),
                   &(struct sl_pair_tiles){
                       .a = m->a,
                       .vectors = vectors_of(s),
                       .source = m->moved[SOURCE][0],
                       .target = s->row[TARGET],
                       .out = s->out[0],
                       .accumulate = s->started,
                   });
    met(s);
}

static void meet_again(struct sl_state *s, const struct sl_meeting *m)
{
    struct sl_edge_sums *const sums = pass_of(s)->sums;
    struct sl_pair_tiles tiles = {
        .a = m->a,
        .vectors = vectors_of(s),
        .source = m->moved[SOURCE][0],
        .target = s->row[TARGET],
        .gradient = s->row[GRADIENT],
        .out = s->out[0],
        .accumulate = s->started,
    };
    if (sums)
        tiles.edge_back = sl_edge_sums_at(sums, s->i, s->part, &tiles.edge_accumulate);
    sl_submit_pair_again(s->states->rt, pair_of(s), &tiles);
    met(s);
}

static void meet_back(struct sl_state *s, const struct sl_meeting *m)
{
    sl_submit_pair_back(s->states->rt, pair_of(s),
                        &(struct sl_pair_tiles){
                            .a = m->a,
                            .vectors = vectors_of(s),
                            .gradient = m->moved[MOVED_GRADIENT][0],
                            .target = m->moved[MOVED_TARGET][0],
                            .source = s->row[SOURCE],
                            .out = s->out[0],
                            .accumulate = s->started,
                        });
    met(s);
}

static void merge(struct sl_state *s, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows)
{
    sl_submit_pair_merge(s->states->rt, pair_of(s),
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
    sl_submit_pair_close(s->states->rt, pair_of(s), vectors_of(s), s->row[TARGET], s->out[0]);
}

#define STEPS                                                                                  \
    .alone = true, .outputs = 1, .open = sl_reducer_hold_output, .submit = sl_reducer_nothing, \
    .complete = sl_reducer_zero_unmet

static const struct sl_reducer back = {
    .name = "pair-back",
    .moved = 2,
    .row_operands = 1,
    .meet = meet_back,
    .merge = sl_reducer_add_output,
    .close = sl_reducer_nothing,
    STEPS,
};

static const struct sl_reducer again = {
    .name = "pair-again",
    .moved = 1,
    .row_operands = 2,
    .meet = meet_again,
    .merge = sl_reducer_add_output,
    .close = sl_reducer_nothing,
    STEPS,
};

#define FORWARD                                                                                  \
    .back = &back, .again = &again, .moved = 1, .row_operands = 1, .meet = meet, .merge = merge, \
    .close = close_state, STEPS

const struct sl_reducer sl_reduce_gatv2 = {.name = "gatv2", FORWARD};
const struct sl_reducer sl_reduce_transformer = {.name = "transformer", FORWARD};
