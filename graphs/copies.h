/* clang-format off */
/* Copies of other groups' vertices, with each of which its group began h hops away from its own
 * vertices. Layers spoil them: after l layers that aggregate, only copies at most h - l hops away
 * have right values. So every h such layers
 *
 *     forward     H(copy) = H(owner)
 *     backward    G(owner) += Σ G(copy);  G(copy) = 0
 *
 * With a delay of r, H(owner) is sent in every r-th training step and read from the next r-th step
 * on, for r steps: it is r to 2r - 1 steps old, and has r steps to travel. Gradients are not
 * returned then. The first r steps are exact.
 *
 * With h = 1 this is a halo between groups. With as many hops as the model has layers that
 * aggregate, copies are never refreshed (GraNNDis' shared preloading). */
/* clang-format on */
#ifndef SL_GRAPHS_COPIES_H
#define SL_GRAPHS_COPIES_H

#include "graphs/exchange.h"
#include "graphs/groups.h"

struct sl_copies {
    const struct sl_groups *groups;
    int hops;                                /* h */
    int delay;                               /* r; 0: none */
    struct sl_exchange to_copies, to_owners; /* between ranks of all groups */
    struct sl_tile *zero;                    // (zeros): of one width each
    int zeros;
};

/* The rows of this rank: the number of each row's vertex in the whole graph, and whether its group
 * owns the vertex. Rows are numbered as in `row_cut`, from the first row of tile `from` on. */
struct sl_copies_rows {
    int from, to;           /* row tiles from … to - 1 are this rank's */
    const int64_t *row_cut; // (tiles + 1)
    const uint32_t *vertex; // (rows)
    const bool *owned;      // (rows)
};

/* Make the exchanges. Collective in all groups. Return 0, or SL_ERR_SYSTEM, the same on all ranks;
 * sl_copies_destroy in either case. */
int sl_copies_create(struct sl_copies *copies, const struct sl_groups *groups, int hops, int delay,
                     const struct sl_copies_rows *rows);
void sl_copies_destroy(struct sl_copies *copies);

/* Return the bytes of the messages and zeros of a matrix of that width on this rank, and those of
 * the lists of rows. Received messages stay; sent ones go. `again`: there is another matrix of this
 * width already. Their exact exchanges have the same messages. */
int64_t sl_copies_bytes(const struct sl_copies *copies, int64_t width, size_t element_size,
                        bool again);
int64_t sl_copies_list_bytes(const struct sl_copies *copies);

/* The place of an exchange in a training. */
struct sl_copies_moment {
    int number;   /* of the layer among those that are refreshed */
    int64_t step; /* training steps before this one */
    bool exact;   /* whatever the delay */
};

/* Submit H(copy) = H(owner), and G(owner) += Σ G(copy), G(copy) = 0, for a matrix of whole rows in
 * the group's view. All ranks call them in the same order. */
void sl_copies_refresh(struct sl_copies *copies, const struct sl_copies_moment *moment,
                       const struct sl_matrix *h);
void sl_copies_return(struct sl_copies *copies, const struct sl_copies_moment *moment,
                      const struct sl_matrix *g);

#endif
