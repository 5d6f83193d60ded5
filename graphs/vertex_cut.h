/* Vertex-cuts (DistGNN, SC'21): each edge is on one rank, and each rank has a clone of every vertex
 * that its edges touch. Rows of matrices are clones, rank by rank. One clone of a vertex is its
 * root, the other clones are leaves. E exchanges clones:
 *
 *     forward    P = S·H on the own edges;  Z = epilogue(E(P))
 *     backward   Z = epilogue(Sᵀ·E(G))
 *
 *     E(P)       to root     P(root) += Σ P(leaf), rank by rank
 *                to leaves   P(leaf) = P(root)
 *
 * A reducer other than the sum merges its states instead of += (graphs/reducer.h). After E, all
 * clones of a vertex have the same row. So forward, all clones have the same H, and each rank
 * multiplies the rows of its clones with the weights. E is its own transpose: backward, each clone
 * has some part of a vertex's gradient, and E gives all clones the total. The loss, and the loop of
 * a vertex in S = A + I, are at the root alone. So sums over rows, such as the gradients of
 * weights, count everything once.
 *
 * With a delay of r (cd-r, algorithm 4), each vertex is in one of r bins. Training step s = 0, 1, …
 * exchanges the clones of bin s % r alone, with messages that were sent in step s - r:
 *
 *     P(root) += Σ P(leaf)    P(leaf) of step s - r                   if s >= r
 *     P(leaf) = P(root)       P(root) of step s - r, after its sum    if s >= 2r
 *
 * All other vertices keep P. With 0c, all vertices keep P in every training step. Outside of
 * training steps, and in steps that ask for it (sl_walk_step.exact), E is exact for every delay,
 * and F and F' are 1.
 *
 * A clone that keeps P has summed some of its vertex's entries. Algorithm 4 as printed uses P as if
 * it were the whole sum. Training then sees smaller sums than evaluation does, and loses accuracy.
 * DistGNN's code divides a mean by the number of entries behind the sum, and hands gradients
 * through without any exchange. Scaled sums follow this rule, for all norms:
 *
 *     forward    Z = epilogue(F·E(P))         backward    Z = epilogue(Sᵀ·F'·G)
 *
 * where F' is diagonal: (weight of the vertex's row of S) / (weight of the clone's own entries of
 * the row). The weight of an entry is its absolute value. F is F', but 1 for clones that have met
 * in this step. 0c has the exact gradient of a network: every rank's own, with weights that all
 * ranks share.
 *
 * With a delay, too, scaled gradients never meet. A clone takes its own part of the vertex's
 * gradient, times F', for the whole. DistGNN's code has F there: where clones have met, it takes
 * the part alone. F and late gradients, as algorithm 4 has them, cost accuracy
 * (docs/DISTRIBUTIONS.md); late gradients also take as many messages as forward. */
#ifndef SL_GRAPHS_VERTEX_CUT_H
#define SL_GRAPHS_VERTEX_CUT_H

#include "graphs/exchange.h"

enum { SL_DELAY_EXACT = 0, SL_DELAY_NEVER = -1 }; /* delays cd-0 and 0c; else r */

/* A clone on this rank, and the rank of its partner: the root of a leaf, or a leaf of a root. */
struct sl_clone {
    int64_t row; /* number of the row, as in row_cut */
    int32_t peer, bin;
    int32_t hop; /* hop of its vertex, equal in all clones; 0: not known */
};

/* Rows of hop `hop`, and of hops up to the next one that is told apart. A layer that does not need
 * row tile `tile`, of any rank, needs none of these rows (graphs/reach.h). */
struct sl_cut_hop {
    int hop, tile;
};

/* Rows of one hop that a rank receives in one direction, and their messages. */
struct sl_cut_flow {
    int64_t rows, messages;
};

/* The exchange of clones in both directions. */
struct sl_cut_exchange {
    struct sl_exchange to_root, to_leaves;
};

struct sl_vertex_cut {
    int delay;
    int hops;               /* hops that are told apart: a message has rows of one hop */
    struct sl_cut_hop *hop; // (hops), ascending
    bool scaled;            /* partial sums have factors; false where clones always meet */
    int64_t row_bytes;      /* bytes of the widest row that travels */
    uint64_t fingerprint;   /* hash of the clones of all ranks; for training */
    struct sl_cut_flow *to_root, *to_leaves; // (ranks, hops): received rows of all bins
    /* Exchanges of this rank, for training. */
    struct sl_cut_exchange all;  /* all bins */
    struct sl_cut_exchange *bin; // (delay): one bin each; NULL without delay
    /* Factors of this rank's row tiles, (rows, 1) each; NULL: all are 1 */
    int own_tiles;
    struct sl_tile *factor;      // (own_tiles): factors where no clone meets
    struct sl_tile *step_factor; // (own_tiles): factors of the current step; with a delay
    struct sl_tile ones;         // (rows of the longest message of a bin, 1)
};

/* Return the number of messages for `rows` rows from one rank to another. `bin`: the rows are one
 * bin, in one message unless over 1 GiB; else the rows of all clones. */
int sl_vertex_cut_messages(const struct sl_vertex_cut *cut, int ranks, int64_t rows, bool bin);

/* Make zeroed counts alone, of row tiles with these hops (tiles; NULL: not known). Return 0 or
 * SL_ERR_SYSTEM; sl_vertex_cut_destroy in either case. */
int sl_vertex_cut_allocate(struct sl_vertex_cut *cut, int delay, bool scaled, int ranks,
                           int64_t row_bytes, int tiles, const int *hop);

/* Return which of the hops that are told apart a clone of hop `hop` has. */
int sl_vertex_cut_find_hop(const struct sl_vertex_cut *cut, int hop);

/* Return the vertex-cut of a distribution; NULL if it is of another kind. */
struct sl_distribution;
struct sl_vertex_cut *sl_vertex_cut_of(const struct sl_distribution *d);

/* The lists from which a vertex-cut is made. Clones are sorted by peer, then by row; rows of a
 * rank, by hop. */
struct sl_clone_lists {
    int delay;              /* bins are 0 … delay - 1 */
    int64_t row_bytes;      /* bytes of the widest row that travels */
    uint64_t fingerprint;   /* hash of the clones of all ranks, equal on all ranks */
    const int64_t *row_cut; // (tiles + 1)
    const int *rank_cut;    // (ranks + 1)
    const int *hop;         // (tiles): hops, as in struct sl_distribution; NULL: not known
    int tiles;
    int64_t leaves, roots;
    const struct sl_clone *leaf; // (leaves): rows here whose root is elsewhere
    const struct sl_clone *root; // (roots): rows here that are roots, once for each leaf elsewhere
    const float *factor;         // (rows of this rank): F'; NULL: sums are not scaled
};

/* Make the exchanges of clones. All ranks call this. Return 0 or SL_ERR_SYSTEM;
 * sl_vertex_cut_destroy in either case. */
int sl_vertex_cut_create(struct sl_vertex_cut *cut, struct sl_runtime *rt,
                         const struct sl_clone_lists *made);
void sl_vertex_cut_destroy(struct sl_vertex_cut *cut);

#endif
