/* Makes the tiles that training reads of a dataset: adjacency, its transpose, normalisation,
 * features, targets. */
#ifndef SL_ASSEMBLY_OPERANDS_H
#define SL_ASSEMBLY_OPERANDS_H

#include "assembly/partition.h"
#include "assembly/stored_rows.h"
#include "data/source.h"
#include "graphs/copies.h"
#include "graphs/network.h"

/* The divisor of sums over neighbours. */
#define SL_NORMS(ENTRY) ENTRY(SL_NORM_SYM, "sym") ENTRY(SL_NORM_ROW, "row")
enum sl_norm {
    SL_NORMS(SL_CHOICE_CONSTANT) /* sym: square roots of both degrees; row: the row's degree */
    SL_NORM_COUNT,               /* the number of neighbours, whatever their weights */
    SL_NORM_NONE,
};

/* The layers of the model, as far as a dataset's tiles depend on them. */
struct sl_assembly_model {
    bool whole_rows;     /* a layer needs rows whole, not cut among columns of ranks */
    bool inner;          /* some layer has hidden columns */
    int64_t least_units; /* hidden columns of the smallest sub-model; 0: no sub-models */
    int64_t layers, hidden, heads, out_heads; /* heads: of attention, or 0 */
    int64_t edge_features;                    /* features of edges that layers read; 0: none */
};

/* The owners of tiles, and how rows travel between them. */
struct sl_owners {
    const struct sl_distribution_kind *kind;
    const struct sl_distribution_name *distribution; /* see sl_grid_choose; NULL: auto */
    struct sl_grid grid;
    int64_t replication;
    const char *partition; /* a method's name, or a file; NULL: METIS */
    int delay;             /* delay of clones (graphs/vertex_cut.h) */
    bool scales_partials;  /* scale partial sums of clones (graphs/vertex_cut.h) */
    enum sl_broadcast_form broadcast;
    bool own_first; /* sums begin with this rank's own tiles */
};

/* Decisions on how a dataset becomes tiles, made once before the dataset is read. Strings are
 * borrowed. */
struct sl_assembly {
    /* The matrices: Â = diag(left)·S·diag(right) and X. */
    enum sl_norm norm;
    bool loops;      /* S = A + I, else A */
    bool own_weight; /* layers multiply a vertex's own values, too: X stays beside Â·X */
    enum sl_row_norm row_norm;
    enum sl_type type; /* type of dense features */
    /* The uses that a run makes of Â and X. */
    bool positive;       /* refuse edge weights below 0 */
    bool keeps_features; /* no feature is dropped out */
    bool alone_first;    /* the first layer does not aggregate: features get no factor */
    const struct sl_reducer *reducer;
    struct sl_objective objective;
    bool aggregates, spmm_first; /* make Â·X once if possible; --product-order spmm */
    struct sl_assembly_model model;
    /* The owners of tiles. */
    struct sl_owners owners;
    uint64_t seed;
    bool drops_adjacency;
    /* The cut of the rows. */
    enum sl_balance balance;
    int64_t tiles, block_cols; /* 0: the program chooses */
    int hop_shares; /* shares of every hop that rows are cut into, so sums do not depend on the
                       ranks; 0: one for each rank */
    /* Leave dense features in the files if possible: sl_stored_rows_load reads them. */
    bool loads;
    bool lists_copies; /* fill sl_operands.rows */
    /* The workers of each rank, if each rank has the whole source in memory and reads all rows:
     * ranks then exchange nothing. There are no clones then, and nothing is aggregated. NULL: each
     * rank reads its own rows. */
    const int64_t *workers; // (ranks)
    bool forward_only;      /* no gradients: sl_operands.transposed is empty */
};

/* Return about how many aggregations a training step has: forward and back, and once more where
 * gradients need it. The input of a first layer that aggregates needs no gradient. */
static inline double sl_assembly_aggregations(const struct sl_assembly *assembly)
{
    const double layers = (double)assembly->model.layers;
    return assembly->reducer->again ? 3.0 * layers
           : assembly->alone_first  ? 2.0 * layers
                                    : 2.0 * layers - 1.0;
}

struct sl_operands {
    int row_orders; /* 1, or 2 with the double permutation; arrays have a member for each order */
    struct sl_partition partition[SL_ROW_ORDERS];
    struct sl_distribution distribution[SL_ROW_ORDERS];
    struct sl_partials partials[SL_ROW_ORDERS];
    struct sl_temporaries temporaries; /* temporary tiles of all orders */
    struct sl_sparse_matrix adjacency[SL_ROW_ORDERS],
        transposed[SL_ROW_ORDERS]; /* S = A + I or A, and Sᵀ, which is empty if S is symmetric or
                                      there are no gradients. Â = diag(left)·S·diag(right). Rows are
                                      in the array's order, columns in the other one */
    struct sl_tile *scales[SL_ROW_ORDERS]; // T tiles (SL_ROW_SCALES, rows)
    enum sl_type type;                     /* type of dense features */
    struct sl_input input, own; /* `own`: X, if the input is Â·X and a layer multiplies both */
    bool read_aggregated; /* Â·X was made from the graph source->selection.aggregated_from */
    struct sl_stored_rows stored; /* rows of `input.dense`, which then has no memory */
    struct sl_objective objective;
    struct sl_tile *target[SL_ROW_ORDERS]; // T tiles (rows, sl_target_width) of int32
    struct sl_tile weights; // (2, classes) on this rank: weights of 0 and of 1; no rows: all 1
    int64_t split_count[SL_SPLITS]; /* labelled vertices of each split */
    int64_t largest_class;          /* training vertices of the largest class */
    int64_t entries, merged_edges;  /* entries, merged edges of the adjacency */
    bool symmetric;                 /* the adjacency is symmetric, values included */
    int64_t bytes_read;             /* bytes of the dataset that this rank has read */
    struct sl_copies_rows rows;     /* rows of a selection, with lists_copies */
};

/* Give the vertices the order of the distribution, unless they have it already. A halo takes one
 * part after another, a part for each rank. A selection with hops takes assembly->hop_shares
 * shares, one after another (sl_source_order_by_hop_shares). Clones keep the order of a selection,
 * hop by hop. Collective. Return 0, SL_ERR_SYSTEM, or SL_ERR_DATA if --partition is wrong. */
int sl_operands_order(struct sl_runtime *rt, struct sl_source *source,
                      const struct sl_assembly *assembly);

/* Give `ordered`, which may be the source, the order of a halo of `ranks` ranks. Collective;
 * returns as sl_operands_order. */
int sl_operands_order_by_parts(struct sl_runtime *rt, const struct sl_source *source,
                               const struct sl_assembly *assembly, int ranks,
                               struct sl_source *ordered);

/* Whether Â·X can be made once on a distribution. Clones must meet, and need `whole` rows: dense
 * features, or a graph with all neighbours. */
bool sl_operands_can_aggregate(bool whole, const struct sl_distribution *d);

/* Return the expected entries of Â·X, for `nnz` entries of Â and `entries` of sparse X (n, width)
 * in random places. */
double sl_operands_aggregated_entries(double n, double nnz, double width, double entries);

/* Whether Â·X of sparse X, with `entries` entries, takes less memory as a sparse matrix. */
bool sl_operands_stay_sparse(int64_t entries, int64_t rows, int64_t width);

/* Return the bytes of the widest row that an aggregation may send. */
int64_t sl_operands_row_bytes(const struct sl_source *source, const struct sl_assembly *assembly);

/* Return the weights of covers of S, or (`transposed`) of its transpose. A symmetric S serves both
 * directions. */
struct sl_cover_weights sl_operands_weights(const struct sl_assembly *assembly, bool symmetric,
                                            bool transposed);

/* Return the options of a run's cuts. */
struct sl_partition_options sl_operands_cut(const struct sl_runtime *rt,
                                            const struct sl_assembly *assembly);

/* Free the lists of operands->rows, once copies are made of them. */
void sl_operands_forget_rows(struct sl_operands *operands);

/* Cut the dataset, read this rank's part and make all its tiles. Return 0, SL_ERR_DATA (the part is
 * wrong, or has no degree to normalise by) or SL_ERR_SYSTEM, the same on all ranks; call
 * sl_operands_destroy in either case. */
int sl_operands_create(struct sl_operands *operands, struct sl_runtime *rt,
                       const struct sl_source *source, const struct sl_assembly *assembly);
void sl_operands_destroy(struct sl_operands *operands);

#endif
