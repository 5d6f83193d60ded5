/* From a dataset to the tiles that training reads: the adjacency, its transpose, what normalises
 * it, the features, the targets. */
#ifndef SL_ASSEMBLY_OPERANDS_H
#define SL_ASSEMBLY_OPERANDS_H

#include "assembly/partition.h"
#include "assembly/stored_rows.h"
#include "data/source.h"
#include "graphs/copies.h"
#include "graphs/network.h"

/* The number that sums over neighbours are divided by. */
#define SL_NORMS(ENTRY) ENTRY(SL_NORM_SYM, "sym") ENTRY(SL_NORM_ROW, "row")
enum sl_norm {
    SL_NORMS(SL_CHOICE_CONSTANT) /* sym: the roots of both vertices' degrees; row: the vertex's */
    SL_NORM_COUNT,               /* the number of its neighbours, whatever their weights */
    SL_NORM_NONE,
};

/* The number that each row of features is divided by. */
enum sl_row_norm {
    SL_ROW_NORM_NONE,
    SL_ROW_NORM_L1,
    SL_ROW_NORM_L2,
};

/* How a dataset becomes tiles. All of this is decided once, before the dataset is read. Strings are
 * borrowed. */
struct sl_assembly {
    /* Â = diag(left)·S·diag(right) and X */
    enum sl_norm norm;
    bool loops; /* S = A + I, else A */
    enum sl_row_norm row_norm;
    enum sl_type type; /* of dense features */
    /* the uses that a run makes of Â and X */
    bool positive;       /* weights of edges are refused where they are below 0 */
    bool keeps_features; /* no feature is dropped out */
    bool alone_first;    /* the first layer does not aggregate: features have no factor */
    const struct sl_reducer *reducer;
    struct sl_objective objective;
    bool aggregates, spmm_first; /* features may be aggregated, or are */
    bool whole_rows;             /* a layer needs rows that are not cut among columns of ranks */
    bool inner;                  /* some layer has hidden columns */
    int64_t least_units;         /* hidden columns of the smallest sub-model; 0: none is cut */
    int64_t layers, hidden, heads, out_heads; /* heads of attention; 0: none */
    /* the owners of tiles */
    const struct sl_distribution_kind *kind;
    const struct sl_distribution_name *distribution; /* NULL: auto. Of sl_grid_choose, with: */
    struct sl_grid grid;
    int64_t replication;
    const char *partition; /* a method's name, or a file; NULL: METIS */
    int delay;             /* of clones (graphs/vertex_cut.h) */
    bool scales_partials;  /* sums of clones that have not met are scaled (the same) */
    uint64_t seed;
    enum sl_relay_form relay;
    bool own_first; /* sums begin with the tiles of the own rank */
    bool drops_adjacency;
    /* the cut of the rows */
    enum sl_balance balance;
    int64_t tiles, block_cols; /* 0: chosen */
    int hop_shares;            /* runs of rows have so many shares of every hop: sums do not depend
                                  on the ranks. 0: a share for each rank */
    /* dense features stay in the files where they can: sl_stored_rows_load reads them */
    bool loads;
    bool lists_copies; /* sl_operands.rows */
    /* The workers of each rank, if every rank has all of the source in memory and reads all rows:
     * ranks then tell one another nothing. NULL: each rank reads its own rows. No clones, and
     * nothing is aggregated. */
    const int64_t *workers; // (ranks)
    bool forward_only;      /* nothing goes back: sl_operands.transposed is empty */
};

struct sl_operands {
    int row_orders; /* 1, or 2 with the double permutation: the rest is there for each of them */
    struct sl_partition partition[SL_ROW_ORDERS];
    struct sl_distribution distribution[SL_ROW_ORDERS];
    struct sl_partials partials[SL_ROW_ORDERS];
    struct sl_temporaries temporaries; /* of all orders */
    struct sl_sparse_matrix adjacency[SL_ROW_ORDERS],
        transposed[SL_ROW_ORDERS]; /* S = A + I, or A, and Sᵀ, which is empty where S is symmetric
                                      or nothing goes back:
                                      Â = diag(left)·S·diag(right). Rows are in this order, columns
                                      in the other one */
    struct sl_tile *facts[SL_ROW_ORDERS]; // T tiles (SL_ROW_FACTS, rows)
    enum sl_type type;                    /* of dense features */
    struct sl_input input, own; /* `own`: X, where the input is Â·X and a layer multiplies both */
    bool read_aggregated;       /* Â·X came from the graph of source->aggregated_from */
    struct sl_stored_rows stored; /* of `input.dense`, which then has no memory */
    struct sl_objective objective;
    struct sl_tile *target[SL_ROW_ORDERS]; // T tiles (rows, sl_target_width) of int32
    struct sl_tile weights; // (2, classes), of this rank: of the values 0 and 1; or no rows: all 1
    int64_t split_count[SL_SPLITS]; /* labelled vertices of each split */
    int64_t largest_class;          /* training vertices of the largest class */
    int64_t entries, merged_edges;  /* of the adjacency */
    bool symmetric;                 /* so is the adjacency, values included */
    int64_t bytes_read;             /* of the dataset, by this rank */
    struct sl_copies_rows rows;     /* of a selection, where the assembly asks for them */
};

/* Give the vertices the order that the distribution takes, unless they have this order already. For
 * a halo, the order is part by part, one part for each rank; of a selection with hops, share by
 * share (sl_source_order_by_hop_shares), of how->hop_shares. Clones keep the order of a
 * selection, hop by hop. Collective. SL_ERR_DATA: --partition is wrong. */
int sl_operands_order(struct sl_runtime *rt, struct sl_source *source,
                      const struct sl_assembly *how);

/* Gives `ordered`, which may be the source, the order of a halo of that many ranks. Collective;
 * the same codes. */
int sl_operands_order_by_parts(struct sl_runtime *rt, const struct sl_source *source,
                               const struct sl_assembly *how, int ranks, struct sl_source *ordered);

/* Whether Â·X can be made once on a distribution. Of clones that meet: `whole` rows, of dense
 * features or from a graph that has all neighbours. */
bool sl_operands_can_aggregate(bool whole, const struct sl_distribution *d);

/* Entries of Â·X, `nnz` of Â and `entries` of sparse X (n, width), which may lie anywhere. */
double sl_operands_aggregated_entries(double n, double nnz, double width, double entries);

/* Whether Â·X of sparse X, with that many entries, stays sparse, which takes less memory then. */
bool sl_operands_stay_sparse(int64_t entries, int64_t rows, int64_t width);

/* Bytes of the widest row that an aggregation may send. */
int64_t sl_operands_row_bytes(const struct sl_source *source, const struct sl_assembly *how);

/* The weights of covers of S, or of its transpose. A symmetric S serves both directions. */
struct sl_cover_weights sl_operands_weights(const struct sl_assembly *how, bool symmetric,
                                            bool transposed);

/* What the cuts of a run follow from. */
struct sl_partition_options sl_operands_cut(const struct sl_runtime *rt,
                                            const struct sl_assembly *how);

/* Free the lists of operands->rows, once the copies have been made. */
void sl_operands_forget_rows(struct sl_operands *operands);

/* Cuts the dataset, reads this rank's part and makes all its tiles. Returns 0, SL_ERR_DATA (the
 * part is wrong, or has no degree to normalise by) or SL_ERR_SYSTEM, the same on all ranks;
 * sl_operands_destroy frees what was made in either case. */
int sl_operands_create(struct sl_operands *operands, struct sl_runtime *rt,
                       const struct sl_source *source, const struct sl_assembly *how);
void sl_operands_destroy(struct sl_operands *operands);

#endif
