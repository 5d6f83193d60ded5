/* Distributions: each cuts the vertices among one group of ranks, and chooses the owner of each
 * tile. Each has a file. */
#ifndef SL_GRAPHS_DISTRIBUTION_H
#define SL_GRAPHS_DISTRIBUTION_H

#include "core/sparse.h"
#include "core/temporary.h"
#include "graphs/counts.h"
#include "graphs/crossing.h"
#include "graphs/grid.h"
#include "graphs/partials.h"
#include "graphs/reducer.h"
#include "graphs/ring.h"

/* Ways of a walk. */
enum sl_walk_way {
    SL_WALK_FORWARD,
    SL_WALK_BACK,  /* aggregates gradients, with the transpose of A */
    SL_WALK_AGAIN, /* follows a walk back, whose first moved matrix is now the last operand of rows,
                      and goes along A once more */
};

/* The place of an aggregation in a training run. */
struct sl_walk_step {
    enum sl_walk_way way;
    int number; /* the aggregation's number in its training step, from 0; -1: outside of a training
                   step */
    int64_t before; /* training steps before this step, without exact ones */
    bool exact;     /* clones meet in this step, whatever the delay */
};

/* The size of the rows that travel in an aggregation. */
struct sl_passage {
    bool transposed;
    int64_t row;         /* bytes of a moved row; 0: no aggregation */
    int matrices;        /* moved matrices with such rows */
    int64_t state;       /* bytes of a row of all outputs' states, which are merged */
    int64_t operands;    /* bytes of a row's operands */
    double aggregations; /* aggregations of a training step whose rows travel, weighted by width,
                            the widest counting 1; 0: before training */
};

/* The source of the tiles of the adjacency, or of its transpose (sl_sparse_matrix_create). */
struct sl_adjacency_source {
    int tile_rows, tile_cols;
    const int64_t *row_cut, *col_cut;
    int64_t block_cols, row_bytes; /* row_bytes: bytes of the widest row that is moved */
    bool transposed, has_values;
    bool numbered; /* walks say which rows of the graph meet (struct sl_reducer) */
    struct sl_cover_weights weights;
    sl_row_function *row;
    const void *context;
    bool all; /* each rank has all rows (struct sl_sparse_rows) */
    struct sl_edge_source edges;
};

struct sl_distribution_kind {
    const char *name; /* name for --distribution */
    bool parts;  /* vertices come in the parts of a partition (METIS), a rank after the other */
    bool clones; /* edges are cut among the ranks, and rows are clones of vertices: clones of one
                    vertex have one value, and their gradients add up */
    /* Write the name with the grid, or with the delay, to `text`. */
    void (*describe)(const struct sl_distribution *d, char text[32]);
    /* Return whether results equal the results of one rank, but for rounding. */
    bool (*exact)(const struct sl_distribution *d);
    /* Return the share of a walk's rows that travel in a training step, on average. 0: clones never
     * meet in walks of this direction. */
    double (*share)(const struct sl_distribution *d, bool transposed);
    /* Return the rank of row tile i of matrices with whole rows: labels, logits. */
    int (*whole_owner)(const struct sl_distribution *d, int i);
    /* η: return the rank of dense tile (i, j) of a matrix with a row per vertex, cut along its
     * columns. */
    int (*dense_owner)(const struct sl_distribution *d, int i, int j);
    /* α: return the rank of sparse tile (i, k) of the adjacency. */
    int (*sparse_owner)(const struct sl_distribution *d, int i, int k);
    /* Return the first sparse tile of row i that is joined with (i, k) into one tile. Joined tiles
     * meet dense tiles that are neighbours in the memory of the rank. Tiles of several hops are not
     * joined (sl_distribution_span). */
    int (*span)(const struct sl_distribution *d, int i, int k);
    /* Submit an aggregation. Outputs have the distribution's row order, moved matrices the order of
     * the columns of A. For a reducer that is `alone`, tiles of A are not joined (no span). */
    void (*walk)(struct sl_runtime *rt, const struct sl_distribution *d,
                 const struct sl_walk_step *step, const struct sl_reduction *reduction);
    /* Return the peak bytes of received and packed rows on this rank during aggregation `now`. Rows
     * packed for aggregation `before` may still be in use. */
    int64_t (*received_bytes)(const struct sl_runtime *rt, const struct sl_distribution *d,
                              const struct sl_passage *now, const struct sl_passage *before);
    /* Return whether rank `rank` keeps a copy of `owner`'s tiles of the adjacency and row scales of
     * rows. */
    bool (*keeps)(const struct sl_distribution *d, int rank, int owner);
    /* Return in how many rounds copies of a dropped adjacency arrive; NULL: in one. */
    int (*visits)(const struct sl_runtime *rt, const struct sl_distribution *d);
    /* Set rank (ranks) to the counts of a walk on each rank. Return 0 or SL_ERR_SYSTEM. A
     * vertex-cut counts all rows, whatever their hops. */
    int (*count)(const struct sl_distribution *d, const struct sl_tile_counts *counts,
                 const struct sl_counted_walk *walk, struct sl_walk_counts *rank);
    /* Make the adjacency, or its transpose, and the lists and messages of its walks. All ranks call
     * this. Return 0 or SL_ERR_SYSTEM; `destroy` and sl_sparse_matrix_destroy in either case. */
    int (*create_adjacency)(struct sl_runtime *rt, struct sl_distribution *d,
                            const struct sl_adjacency_source *source,
                            struct sl_sparse_matrix *matrix);
    /* Make d->own, and free it. Return 0 or SL_ERR_SYSTEM. */
    int (*create)(struct sl_distribution *d);
    void (*destroy)(struct sl_distribution *d);
};

/* With the double permutation there are two vertex orders. An aggregation turns rows of one order
 * into rows of the other (graphs/network.h). Each order has its own distribution. The two differ
 * only in row cuts and partial sums. */
enum { SL_ROW_ORDERS = 2 };

/* Return the vertex order, of `orders`, of the rows of A·H, where H has vertex order `row_order`.
 */
static inline int sl_row_order_after(int orders, int row_order)
{
    return orders - 1 - row_order;
}

struct sl_distribution {
    const struct sl_distribution_kind *kind;
    int row_order; /* vertex order of the rows that it cuts */
    int ranks;
    struct sl_grid grid;
    enum sl_broadcast_form broadcast; /* form of the broadcasts of dense tiles */
    bool own_first;                   /* --sum-order: sums begin with all tiles of the own rank */
    bool tiles_alone;                 /* sparse tiles of one row are not joined into one tile */
    bool drops_adjacency; /* tiles of the adjacency travel in every product, and are not kept */
    struct sl_partials *partials;       /* the caller's; not needed with one layer */
    struct sl_temporaries *temporaries; /* the caller's, shared by all walks and products; NULL:
                                           each walk makes its own */
    void *own;                          /* data of the kind */
    int tiles;                          /* row tiles T */
    const int *rank_cut; // (ranks + 1): rank r has the row tiles rank_cut[r] … rank_cut[r + 1] - 1
                         // of matrices with whole rows; borrowed
    const int64_t *row_cut; // (T + 1), borrowed
    const int *hop; // (T): hops from the inner vertices to the tile's nearest row (graphs/reach.h),
                    // 0 for the first tile; borrowed; NULL: all rows are needed
};

/* Owner functions with the signature that sl_matrix_create and sl_sparse_matrix_create take; the
 * context is the distribution. */
int sl_distribution_whole_owner(const void *distribution, int i, int j);
int sl_distribution_dense_owner(const void *distribution, int i, int j);
int sl_distribution_sparse_owner(const void *distribution, int i, int k);
int sl_distribution_span(const void *distribution, int i, int k);

/* The distributions that are not on a grid. Each has an entry and a file with sl_distribution_<id>.
 * --distribution takes the name in quotes. */
#define SL_DISTRIBUTIONS(ENTRY) \
    ENTRY(halo, "halo") ENTRY(cover, "cover") ENTRY(vertex_cut, "vertex-cut")

#define SL_DISTRIBUTION_DECLARED(id, name) \
    extern const struct sl_distribution_kind sl_distribution_##id;
SL_DISTRIBUTIONS(SL_DISTRIBUTION_DECLARED)
#undef SL_DISTRIBUTION_DECLARED

/* All distributions on a grid of ranks (graphs/grid.h). */
extern const struct sl_distribution_kind sl_distribution_block;

/* A name of --distribution: a grid of some shape, or a kind that is not on a grid. */
struct sl_distribution_name {
    const char *name;
    const struct sl_distribution_kind *kind;
    bool replicates; /* --replication is the depth of its grid */
    bool cuts;       /* its grid has several columns */
    int (*shape)(int ranks, int64_t replication, struct sl_grid *grid);
};

/* All names; a row whose name is NULL ends the table (graphs/grid.c). */
extern const struct sl_distribution_name sl_distribution_names[];

#define SL_DISTRIBUTION_NAMED(id, name) "|" name
#define SL_DISTRIBUTION_NAMES           "1d|1.5d|2d|3d" SL_DISTRIBUTIONS(SL_DISTRIBUTION_NAMED)

/* Return the row of a kind on a grid. */
const struct sl_distribution_name *sl_distribution_name_of(const struct sl_distribution_kind *kind,
                                                           const struct sl_grid *grid);

/* Return the row of a name, or NULL. */
const struct sl_distribution_name *sl_distribution_find(const char *name);

/* Functions for kinds without state of their own. */
int sl_distribution_create_nothing(struct sl_distribution *d);
void sl_distribution_destroy_nothing(struct sl_distribution *d);
bool sl_distribution_is_exact(const struct sl_distribution *d);
double sl_distribution_share_all(const struct sl_distribution *d, bool transposed);

/* Return the states that walks with a reducer merge: the number of matrices, and the bytes of an
 * element of all matrices together. Going back, gradients of clones add up, whatever the reducer.
 */
struct sl_states_size {
    int matrices;
    int64_t element;
};
struct sl_states_size sl_distribution_states(const struct sl_distribution *d,
                                             const struct sl_reducer *reducer, enum sl_type moved,
                                             bool back);

/* Submit the walk of sl_distribution_block. `merge_clones` (NULL: none) is called when the rows of
 * this rank are complete, before they are closed. `states` has the rows in the order of their row
 * tiles. */
typedef void sl_merge_function(const void *context, struct sl_states *states);
void sl_block_walk(struct sl_runtime *rt, const struct sl_distribution *d,
                   const struct sl_reduction *reduction, sl_merge_function *merge_clones,
                   const void *context);
int sl_block_count(const struct sl_distribution *d, const struct sl_tile_counts *counts,
                   const struct sl_counted_walk *walk, struct sl_walk_counts *rank);
int sl_block_create_adjacency(struct sl_runtime *rt, struct sl_distribution *d,
                              const struct sl_adjacency_source *source,
                              struct sl_sparse_matrix *matrix);

/* Return in how many rounds copies of the adjacency arrive; 1 where they are kept. */
static inline int sl_distribution_visits(const struct sl_runtime *rt,
                                         const struct sl_distribution *d)
{
    return d->drops_adjacency && d->kind->visits ? d->kind->visits(rt, d) : 1;
}

/* Return the bytes of the row tiles of a run where the runtime allocates them. A row has `row`
 * bytes. */
int64_t sl_distribution_taken(const struct sl_distribution *d, struct sl_tile_run run, int64_t row);

/* List the row tiles that are at most `hops` hops away, where hops are known, else all. Return how
 * many are in the list, which the caller frees; stop the run without memory. */
int sl_distribution_tiles(const struct sl_distribution *d, int hops, int **tile);

/* Make a matrix with a row per vertex, in the distribution's vertex order: cut along its columns,
 * without memory (sl_matrix_describe), or with whole rows. Return 0 or SL_ERR_SYSTEM. */
int sl_distribution_create_rows(struct sl_runtime *rt, const struct sl_distribution *d,
                                struct sl_matrix *matrix, enum sl_type type, int64_t width);
int sl_distribution_describe_rows(struct sl_runtime *rt, const struct sl_distribution *d,
                                  struct sl_matrix *matrix, enum sl_type type, int64_t width);
/* Make a matrix with a row per vertex, cut along its columns at `cut` (columns of the grid + 1),
 * which is copied; or describe it, without memory. Return 0 or SL_ERR_SYSTEM. */
int sl_distribution_create_cut(struct sl_runtime *rt, const struct sl_distribution *d,
                               struct sl_matrix *matrix, enum sl_type type, const int64_t *cut);
int sl_distribution_describe_cut(struct sl_runtime *rt, const struct sl_distribution *d,
                                 struct sl_matrix *matrix, enum sl_type type, const int64_t *cut);
int sl_distribution_create_whole(struct sl_runtime *rt, const struct sl_distribution *d,
                                 struct sl_matrix *matrix, enum sl_type type, int64_t width);

#endif
