/* Distributions: how one group of ranks cuts the vertices and who owns which tile. One file each.
 */
#ifndef SL_GRAPHS_DISTRIBUTION_H
#define SL_GRAPHS_DISTRIBUTION_H

#include "codelets/submit.h"
#include "core/sparse.h"
#include "graphs/counts.h"
#include "graphs/grid.h"
#include "graphs/partials.h"
#include "graphs/reducer.h"
#include "graphs/relay.h"

/* When an aggregation is. */
struct sl_moment {
    bool back;    /* of gradients */
    int number;   /* among those of a training step; -1: outside of one */
    int64_t step; /* training steps before this one */
};

/* Rows of an aggregation on their way to other ranks. */
struct sl_passage {
    bool transposed;
    int64_t row;   /* bytes of what travels of a row of a matrix; 0: there is no such aggregation */
    int matrices;  /* with as many rows, at a time */
    int64_t state; /* bytes of a row of what is merged: of all outputs' states */
    double aggregations; /* of a training step, the widest counting 1; 0: before training */
};

/* What the tiles of the adjacency, or of its transpose, are made from: sl_sparse_matrix_create
 * explains it. */
struct sl_adjacency_source {
    int tile_rows, tile_cols;
    const int64_t *row_cut, *col_cut;
    int64_t block_cols, row_bytes; /* row_bytes: the most that a row takes that is moved */
    bool transposed, has_values;
    bool numbered; /* walks say which rows of the graph meet (struct sl_reducer) */
    sl_row_function *row;
    const void *context;
};

struct sl_distribution_kind {
    const char *name; /* of --distribution */
    bool parts;  /* vertices come in the parts of a partition (METIS), a rank after the other */
    bool clones; /* edges are shared among the ranks, and rows are clones of vertices: those of
                    one vertex have one value, and their gradients add up */
    /* The name with its grid, or its delay. */
    void (*describe)(const struct sl_distribution *d, char text[32]);
    /* Whether results are those of one rank, but for rounding. */
    bool (*exact)(const struct sl_distribution *d);
    /* The share of the rows that travel in a training step, on average; 0: clones never meet. */
    double (*share)(const struct sl_distribution *d);
    /* The rank of row tile i where rows are whole: labels, logits. */
    int (*whole_owner)(const struct sl_distribution *d, int i);
    /* η: the rank of dense tile (i, j) of any matrix with a row per vertex that is cut along its
     * columns. */
    int (*dense_owner)(const struct sl_distribution *d, int i, int j);
    /* α: the rank of sparse tile (i, k) of the adjacency. */
    int (*sparse_owner)(const struct sl_distribution *d, int i, int k);
    /* The first of the sparse tiles of row i that are one with (i, k): they meet dense tiles that
     * are neighbours in the memory of the rank. */
    int (*span)(const struct sl_distribution *d, int i, int k);
    /* Submits an aggregation: the outputs in the distribution's order, what is moved in that of
     * the columns of A. For reducers that are `alone`, tiles of A are (no span). */
    void (*walk)(struct sl_runtime *rt, const struct sl_distribution *d,
                 const struct sl_moment *moment, const struct sl_reduction *reduction);
    /* The most bytes that rows of other ranks, and rows packed for them, take in the memory of this
     * one while it does, where those packed for the aggregation before may not be gone. */
    int64_t (*received_bytes)(const struct sl_runtime *rt, const struct sl_distribution *d,
                              const struct sl_passage *now, const struct sl_passage *before);
    /* Whether rank `rank` keeps a copy of the tiles of the adjacency and of the facts of rows that
     * are `owner`'s; of the adjacency, if it is dropped, in so many turns. */
    bool (*keeps)(const struct sl_distribution *d, int rank, int owner);
    int (*visits)(const struct sl_runtime *rt, const struct sl_distribution *d);
    /* What a walk with S, or its transpose, moves and meets: rank (ranks), which it overwrites.
     * SL_ERR_SYSTEM. */
    int (*count)(const struct sl_distribution *d, const struct sl_tile_counts *counts,
                 bool transposed, struct sl_walk_counts *rank);
    /* Makes the adjacency, or its transpose, and what its walks need. All ranks call it.
     * SL_ERR_SYSTEM; `destroy` and sl_sparse_matrix_destroy in either case. */
    int (*create_adjacency)(struct sl_runtime *rt, struct sl_distribution *d,
                            const struct sl_adjacency_source *source,
                            struct sl_sparse_matrix *matrix);
    /* Makes d->own, and frees it. SL_ERR_SYSTEM. */
    int (*create)(struct sl_distribution *d);
    void (*destroy)(struct sl_distribution *d);
};

/* With the double permutation there are two orders of vertices, and an aggregation turns rows in
 * the one into rows in the other (graphs/network.h). Each has a distribution of its own: they are
 * alike but for row cuts and partial sums. */
enum { SL_ROW_ORDERS = 2 };

/* The order, of `orders`, of the rows of A·H where those of H are in that one. */
static inline int sl_row_order_after(int orders, int row_order)
{
    return orders - 1 - row_order;
}

struct sl_distribution {
    const struct sl_distribution_kind *kind;
    int row_order; /* of the rows that it cuts */
    int ranks;
    struct sl_grid grid;
    enum sl_relay_form relay;     /* how tiles of dense matrices get to other ranks */
    bool tiles_alone;             /* sparse ones of one row are not one tile */
    bool drops_adjacency;         /* tiles of it travel in every product, and are not kept */
    struct sl_partials *partials; /* the caller's; not needed with one layer */
    void *own;                    /* the kind's */
    int tiles;                    /* row tiles T */
    const int *rank_cut; // (ranks + 1): rank r has the row tiles rank_cut[r] … rank_cut[r + 1] - 1
                         // of matrices with whole rows; borrowed
    const int64_t *row_cut; // (T + 1), borrowed
};

/* Owner functions with the signature that sl_matrix_create and sl_sparse_matrix_create take; the
 * context is the distribution. */
int sl_distribution_whole_owner(const void *distribution, int i, int j);
int sl_distribution_dense_owner(const void *distribution, int i, int j);
int sl_distribution_sparse_owner(const void *distribution, int i, int k);
int sl_distribution_span(const void *distribution, int i, int k);

/* The distributions besides those on grids: an entry each, and a file with sl_distribution_<id>;
 * --distribution offers them by the name in quotes. */
#define SL_DISTRIBUTIONS(ENTRY) ENTRY(halo, "halo") ENTRY(vertex_cut, "vertex-cut")

#define SL_DISTRIBUTION_DECLARED(id, name) \
    extern const struct sl_distribution_kind sl_distribution_##id;
SL_DISTRIBUTIONS(SL_DISTRIBUTION_DECLARED)
#undef SL_DISTRIBUTION_DECLARED

/* "|halo|vertex-cut", and so on. */
#define SL_DISTRIBUTION_NAMED(id, name) "|" name
#define SL_DISTRIBUTION_NAMES           SL_DISTRIBUTIONS(SL_DISTRIBUTION_NAMED)

/* Those on a grid of ranks (graphs/grid.h). */
extern const struct sl_distribution_kind sl_distribution_block;

/* The kind of that name; `block` if there is none. */
const struct sl_distribution_kind *sl_distribution_find(const char *name);

/* Kinds without state of their own. */
int sl_distribution_create_nothing(struct sl_distribution *d);
void sl_distribution_destroy_nothing(struct sl_distribution *d);
bool sl_distribution_is_exact(const struct sl_distribution *d);
double sl_distribution_share_all(const struct sl_distribution *d);

/* The states that walks with a reducer merge: matrices, and the bytes of an element of all of them
 * together. Going back, gradients of clones add up, whatever the reducer. */
struct sl_states_size {
    int matrices;
    int64_t element;
};
struct sl_states_size sl_distribution_states(const struct sl_distribution *d,
                                             const struct sl_reducer *reducer, enum sl_type moved,
                                             bool back);

/* The walk of sl_distribution_block; with `merge_copies`, which is called when the rows of this
 * rank are complete, before they are closed; `states` has them in the order of their row tiles. */
typedef void sl_copies_function(const void *context, struct sl_states *states);
void sl_block_walk(struct sl_runtime *rt, const struct sl_distribution *d,
                   const struct sl_reduction *reduction, sl_copies_function *merge_copies,
                   const void *context);
int sl_block_count(const struct sl_distribution *d, const struct sl_tile_counts *counts,
                   bool transposed, struct sl_walk_counts *rank);
int sl_block_create_adjacency(struct sl_runtime *rt, struct sl_distribution *d,
                              const struct sl_adjacency_source *source,
                              struct sl_sparse_matrix *matrix);

/* What the row tiles of a run take where the runtime allocates them, a row of `row` bytes. */
int64_t sl_distribution_taken(const struct sl_distribution *d, struct sl_tile_run run, int64_t row);

/* A matrix with a row per vertex, in the distribution's order, cut along its columns, or with whole
 * rows. SL_ERR_SYSTEM. */
int sl_distribution_create_rows(struct sl_runtime *rt, const struct sl_distribution *d,
                                struct sl_matrix *matrix, enum sl_type type, int64_t width);
int sl_distribution_create_whole(struct sl_runtime *rt, const struct sl_distribution *d,
                                 struct sl_matrix *matrix, enum sl_type type, int64_t width);

#endif
