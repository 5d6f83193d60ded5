/* Vertex-cuts (DistGNN, SC'21): the edges are shared among the ranks, and each rank has a copy of
 * every vertex that its edges meet. Rows of matrices are copies, rank by rank. One copy of a vertex
 * is its root, the others are leaves.
 *
 *   forward    P = S·H on the own edges;  Z = epilogue(E(P))
 *   backward   Z = epilogue(Sᵀ·E(G))
 *
 *   E(P):      leaf → root   P(root) += Σ P(leaf), rank by rank
 *              root → leaf   P(leaf) = P(root)
 *
 * So H and all that goes forward is the same in all copies, and weights meet it in each of them. E
 * is its own transpose: gradients of copies add up to the vertex's, whatever part of it each has.
 * The loss, and the loop of the vertex in S = A + I, are at the root alone. So sums over rows, like
 * those for the gradients of weights, count everything once.
 *
 * With a delay of r (cd-r, algorithm 4), vertices are in r bins, and training step s = 0, 1, … is
 * the turn of bin s % r. For its vertices alone,
 *
 *              P(root) += Σ P(leaf) as they were in step s - r;            if s >= r
 *              P(leaf) = P(root) as it was, with that sum, in step s - r;  if s >= 2r
 *
 * and all others keep P, as all do with 0c. Outside of training steps E is exact. */
#ifndef SL_GRAPHS_VERTEX_CUT_H
#define SL_GRAPHS_VERTEX_CUT_H

#include "graphs/exchange.h"

enum { SL_DELAY_EXACT = 0, SL_DELAY_NEVER = -1 }; /* cd-0 and 0c; else r */

/* A row of this rank and the rank that has the other copy. */
struct sl_copy {
    int64_t row; /* as in row_cut */
    int32_t peer, bin;
};

/* Rows one way and back. */
struct sl_cut_exchange {
    struct sl_exchange up, down; /* leaf → root, root → leaf */
};

struct sl_vertex_cut {
    int delay;
    int64_t row_bytes;    /* of the widest row that travels */
    uint64_t fingerprint; /* of who has which copies, where one trains */
    int64_t *up, *down;   // (ranks): rows that come to each rank as a root, and as a leaf
    int64_t *up_messages, *down_messages; // (ranks): that they come in; of the bins, all together
    /* where one trains, this rank's: */
    struct sl_cut_exchange all;  /* all bins */
    struct sl_cut_exchange *bin; // (delay), where there is one
};

/* How many messages rows from one rank to another are, where all copies meet, or a bin of them:
 * a bin is one message unless that were over 1 GiB. */
int sl_vertex_cut_messages(const struct sl_vertex_cut *cut, int ranks, int64_t rows, bool bin);

/* Zeroed counts alone. SL_ERR_SYSTEM; sl_vertex_cut_destroy in either case. */
int sl_vertex_cut_allocate(struct sl_vertex_cut *cut, int delay, int ranks, int64_t row_bytes);

/* That of a distribution, or NULL: it is none. */
struct sl_distribution;
struct sl_vertex_cut *sl_vertex_cut_of(const struct sl_distribution *d);

/* What a vertex-cut is made from. Copies are sorted by peer, then by row. */
struct sl_copies_cut {
    int delay;              /* bins are 0 … delay - 1 */
    int64_t row_bytes;      /* of the widest row that travels */
    uint64_t fingerprint;   /* of who has which copies, the same on all ranks */
    const int64_t *row_cut; // (tiles + 1)
    const int *rank_cut;    // (ranks + 1)
    int64_t leaves, roots;
    const struct sl_copy *leaf; // (leaves): the rows here whose root is elsewhere
    const struct sl_copy *root; // (roots): the rows whose root is here, for each copy elsewhere
};

/* All ranks call it. SL_ERR_SYSTEM; sl_vertex_cut_destroy in either case. */
int sl_vertex_cut_create(struct sl_vertex_cut *cut, struct sl_runtime *rt,
                         const struct sl_copies_cut *made);
void sl_vertex_cut_destroy(struct sl_vertex_cut *cut);

#endif
