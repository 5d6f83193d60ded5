/* clang-format off */
/* Copies of other groups' vertices, with each of which its group began h hops away from its own
 * vertices. Layers spoil them: after l layers that aggregate, only copies at most h - l hops away
 * have right values. So every h such layers
 *
 *     forward     H(copy) = H(owner)
 *     backward    G(owner) += Σ G(copy);  G(copy) = 0
 *
 * With a delay of r, owners send H(owner) in every r-th training step. Copies read it from the next
 * r-th step on, for r steps. So it is r to 2r - 1 steps old, and has r steps to travel. Gradients
 * are not returned then. The first r steps are exact.
 *
 * Where columns are cut among ranks, each rank has copies of its column alone, which a rank with the
 * same column of another group owns. On a vertex-cut, H(owner) is the root's, and the root and the
 * leaves of a copy are copies each. Gradients of clones are parts; the owner adds all parts to its
 * own.
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
    int hops;                                /* hops h that copies reach */
    int delay;                               /* delay r; 0: none */
    int column;                              /* this rank's column of matrices that are cut */
    struct sl_exchange to_copies, to_owners; /* exchanges between ranks of all groups */
    struct sl_tile *zero;                    // (zeros): tiles of zeros, one for each width
    int zeros;
};

/* A row of this rank is a copy, or owns its vertex, or is a leaf of the clone that owns it. */
enum sl_copies_role { SL_COPIES_COPY, SL_COPIES_OWNER, SL_COPIES_LEAF };

/* The rows of this rank: the number of each row's vertex in the whole graph, and the row's role.
 * Rows are numbered as in `row_cut`, from the first row of tile `from` on. Owners and copies of a
 * vertex have the same column of as many columns. */
struct sl_copies_rows {
    int from, to;           /* row tiles from … to - 1 are this rank's */
    int column, columns;    /* this rank's column, and the columns, of the grid of ranks */
    const int64_t *row_cut; // (tiles + 1)
    uint32_t *vertex;       // (rows)
    uint8_t *role;          // (rows): enum sl_copies_role
};

/* Make the exchanges. Collective in all groups. Return 0, SL_ERR_SYSTEM, or SL_ERR_USAGE where
 * groups have unlike columns, the same on all ranks; sl_copies_destroy in either case. */
int sl_copies_create(struct sl_copies *copies, const struct sl_groups *groups, int hops, int delay,
                     const struct sl_copies_rows *rows);
void sl_copies_destroy(struct sl_copies *copies);

/* Return the bytes of a matrix's messages and zeros on this rank, and the bytes of the lists of
 * rows. Received messages stay; sent messages are freed. `again`: another matrix of this width
 * shares the messages of exact exchanges. */
int64_t sl_copies_bytes(const struct sl_copies *copies, const struct sl_matrix *matrix, bool again);
int64_t sl_copies_list_bytes(const struct sl_copies *copies);

/* The place of an exchange in a training run. */
struct sl_copies_step {
    int number;     /* number of the layer among refreshed layers */
    int64_t before; /* training steps before this step */
    bool exact;     /* the exchange is exact, whatever the delay */
};

/* Submit H(copy) = H(owner), and G(owner) += Σ G(copy), G(copy) = 0, for a matrix of the group's
 * view. All ranks call both functions in the same order. */
void sl_copies_refresh(struct sl_copies *copies, const struct sl_copies_step *step,
                       const struct sl_matrix *h);
void sl_copies_return(struct sl_copies *copies, const struct sl_copies_step *step,
                      const struct sl_matrix *g);

#endif
