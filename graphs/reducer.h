/* Reducers combine tiles that meet. An aggregation is
 *
 *     OUT(i) = close( ⊕ₖ A(i, k) ∘ MOVED(k) )
 *
 * The distribution walks: it decides which tiles meet on this rank, and when tiles of other ranks
 * come and go (graphs/distribution.h). The reducer combines: it defines ∘, ⊕ and close, and submits
 * every task on the tiles. Each reducer has a file reduce_<name>.c. */
#ifndef SL_GRAPHS_REDUCER_H
#define SL_GRAPHS_REDUCER_H

#include "codelets/epilogue.h"
#include "codelets/own_reduce.h"
#include "core/names.h"
#include "core/temporary.h"

enum { SL_MOVED = 2, SL_OUTPUTS = 2, SL_ROW_OPERANDS = 2 }; /* most matrices of a reducer */

struct sl_reducer;

/* The epilogue of a whole matrix. The epilogue of tile (i, j) has the scales of row tile i and mask
 * tile (i, j), and begins with the first column of j. */
struct sl_row_epilogue {
    struct sl_epilogue_tiles common;
    struct sl_tile *scales;       // T tiles
    const struct sl_matrix *mask; /* NULL: none */
};

/* Return the epilogue of tile (i, j) of Z. */
struct sl_epilogue_tiles sl_row_epilogue_at(const struct sl_row_epilogue *epilogue, int i,
                                            const struct sl_matrix *z, int j);

/* An aggregation. */
struct sl_reduction {
    const struct sl_reducer *reducer;
    const struct sl_sparse_matrix *a;
    const struct sl_matrix *moved[SL_MOVED]; /* a row for each column of A, cut alike */
    const struct sl_matrix *row[SL_ROW_OPERANDS], *out[SL_OUTPUTS]; /* a row for each row of A */
    const struct sl_matrix *state[SL_OUTPUTS]; /* states until they are closed, where out has
                                                  another type; NULL: states are in out */
    const struct sl_row_epilogue *epilogue;    /* epilogue that close applies; NULL: none */
    struct sl_tile *vertices; /* for each row tile, the rows of the graph (int32, in its first
                                 row); NULL: consecutive rows, as cut */
    const void *parameters;   /* parameters of the reducer, such as struct sl_attention */
};

/* Rows of a tile that another rank has, too, in the order of a list: rows index[first] …
 * index[first + rows - 1]. */
struct sl_listed_rows {
    struct sl_tile *index; // (1, any) of uint32
    int64_t first, rows;
};

struct sl_states;
struct sl_exchange_part;

/* The state of a row tile on this rank, while tiles meet. */
struct sl_state {
    struct sl_states *states;
    int i, j;                             /* row tile, and column tile of all matrices */
    struct sl_tile *row[SL_ROW_OPERANDS]; /* tiles of the row operands, on this rank */
    struct sl_tile *out[SL_OUTPUTS];      /* tiles of outputs, or partial sums for another rank */
    bool part;                /* the state is for another rank, which merges and closes it */
    bool apart;               /* this state and states of other ranks are merged */
    bool pieces;              /* a hub's row, whose sum is cut into pieces */
    struct sl_tile *vertices; /* rows of the graph (int32, in its first row); NULL: consecutive,
                                 from `first` on */
    int64_t first;            /* row of the graph of the tile's first row */
    int terms;                /* tiles still to be met */
    struct sl_tile *held;     /* the tile of the state: tasks on met tiles write here */
    struct sl_tile *factor;   // (rows, 1): factor of rows that close applies, if the reducer is
                              // linear; NULL: none
    bool started;             /* some tile was met */
    void *own;                /* data of the reducer (row_size bytes) */
};

/* Tiles that meet: a sparse tile, and `count` tiles of each moved matrix. Several tiles are
 * neighbours in their matrix. */
struct sl_meeting {
    struct sl_sparse_tile *a;
    int count;
    struct sl_tile *const *moved[SL_MOVED]; // (count) each
    struct sl_tile *vertices; /* rows of the graph for the columns of A, int32, in its first row;
                                 NULL: consecutive, from `first` on */
    int64_t first;            /* the row of the graph for column 0 */
};

/* All row tiles of a walk, in its order. */
struct sl_states {
    struct sl_runtime *rt;
    const struct sl_reduction *reduction;
    struct sl_temporaries *temporaries; /* shared temporary tiles; NULL: each state makes its own */
    int count;
    struct sl_state *state; // (count)
    struct sl_tile **held;  // (count): the tiles of the states
    void *own, *rows;       /* data of the reducer: walk_size bytes, and row_size for each row */
};

struct sl_reducer {
    const char *name;
    const struct sl_own_reducer *own; /* a program's reducer; NULL: built in */
    const struct sl_reducer *back;    /* combines gradients, with the transpose of A; NULL: none */
    const struct sl_reducer *again;   /* combines gradients after `back`, with A; NULL: none */
    bool linear;   /* weights may be multiplied before: A ∘ (H·W) = (A ∘ H)·W */
    bool numbered; /* a meeting says which rows of the graph meet */
    bool alone;  /* a meeting has one tile of each moved matrix: sparse tiles of a row stay apart */
    bool whole;  /* a meeting multiplies whole rows: the columns of the grid cut none */
    bool narrow; /* states of out[0] have the type of moved[0]; else float32, as all other states */
    int moved, row_operands, outputs; /* numbers of matrices; each rank that combines a row has the
                                         row's operands before tiles meet */
    size_t walk_size, row_size;       /* bytes of the reducer's data, zero before `open` */
    /* Set `held` of the state. */
    void (*open)(struct sl_state *state);
    /* Meet tiles. Tasks may wait until `submit`, or until another row tile is met. */
    void (*meet)(struct sl_state *state, const struct sl_meeting *meeting);
    void (*submit)(struct sl_state *state);
    /* Complete the state: all terms of this rank have been met. */
    void (*complete)(struct sl_state *state);
    /* Merge another rank's state of the same rows, in `other` (outputs), into the complete own
     * state. `rows`: the other state has the listed rows alone; NULL: all rows. */
    void (*merge)(struct sl_state *state, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows);
    /* Close a state: all states are merged. Not for parts. */
    void (*close)(struct sl_state *state);
    /* End the walk. */
    void (*end)(struct sl_states *states);
};

/* The reducers. Each has an entry and a file reduce_<name>.c with sl_reduce_<name>. --aggregator
 * takes the name.
 *
 *   sum   Z = A·H, then the epilogue
 *   max   out[0] (v, j) = max over u of a(v, u)·moved[0] (u, j), or 0 if v has no neighbour. out[1]
 *         (v, j), int32, is the row u of the graph, or -1. The least of equal rows wins.
 *   min   as max, with the minimum */
#define SL_REDUCERS(ENTRY) ENTRY(sum) ENTRY(max) ENTRY(min)

/* The attention of --model gat (graphs/reduce_attention.c). `parameters` is a struct sl_attention.
 */
extern const struct sl_reducer sl_reduce_attention;

/* The attention of --model gatv2 and transformer (graphs/reduce_pair.c). `parameters` is a struct
 * sl_pair_pass. */
extern const struct sl_reducer sl_reduce_gatv2, sl_reduce_transformer;

/* The sum of --model gine (graphs/reduce_gine.c). `parameters` is a struct sl_gine_pass. */
extern const struct sl_reducer sl_reduce_gine;

/* The sum of --model rgcn (graphs/reduce_rgcn.c). `parameters` is a struct sl_rgcn_pass. */
extern const struct sl_reducer sl_reduce_rgcn;

#define SL_REDUCER_DECLARED(name) extern const struct sl_reducer sl_reduce_##name;
SL_REDUCERS(SL_REDUCER_DECLARED)
#undef SL_REDUCER_DECLARED

/* Names of built-in reducers: "|sum|max|min". */
#define SL_REDUCER_NAMED(name) "|" #name
#define SL_REDUCER_NAMES       SL_REDUCERS(SL_REDUCER_NAMED)

/* A name of --aggregator, and its reducer. gcn and mean have no reducer of their own: a norm
 * divides sums. */
struct sl_aggregator {
    const char *name;
    const struct sl_reducer *reducer;
};

extern const struct sl_aggregator sl_aggregator_gcn;

/* Return the aggregator of that name, or NULL. */
const struct sl_aggregator *sl_aggregator_find(const char *name);

/* ---- reduce_own.c ---- */

/* Names that --aggregator takes: "gcn|mean|sum|max|min", with the names that a program adds. */
extern char sl_aggregator_names[SL_NAMES_ROOM];

/* Add a program's reducer, or replace its reducer of this name. No training may be running. Return
 * 0, or SL_ERR_USAGE for an impossible name. */
int sl_reducer_own_add(const char *name, const struct starling_reducer *reducer);
const struct sl_aggregator *sl_aggregator_own_find(const char *name);

/* Return the type of an output's states where matrices of type `moved` are moved; return the bytes
 * of one element of all outputs' states. */
enum sl_type sl_reducer_type(const struct sl_reducer *reducer, int output, enum sl_type moved);
int64_t sl_reducer_bytes(const struct sl_reducer *reducer, enum sl_type moved);

/* Return the matrix of an output's states. */
const struct sl_matrix *sl_reduction_state(const struct sl_reduction *reduction, int output);

/* Add another state's rows to SUM: merge of a reducer whose states add up. */
void sl_reducer_add(struct sl_runtime *rt, struct sl_tile *other, const struct sl_listed_rows *rows,
                    struct sl_tile *sum);

/* Functions of reducers whose only state is out[0]: hold out[0], do nothing, set out[0] to 0 if no
 * tile was met, add another state to out[0]. */
void sl_reducer_hold_output(struct sl_state *state);
void sl_reducer_nothing(struct sl_state *state);
void sl_reducer_zero_unmet(struct sl_state *state);
void sl_reducer_add_output(struct sl_state *state, struct sl_tile *const *other,
                           const struct sl_listed_rows *rows);

/* Open the states of a walk, with room for `most` row tiles. sl_states_free frees their memory.
 * `temporaries` (or NULL) serves the states. */
void sl_states_open(struct sl_states *states, struct sl_runtime *rt,
                    const struct sl_reduction *reduction, struct sl_temporaries *temporaries,
                    int most);
void sl_states_free(struct sl_states *states);

/* Append a copy of `state`, whose `states` need not be set, and open it. Return the copy. */
struct sl_state *sl_states_add(struct sl_states *states, const struct sl_state *state);

/* Merge the rows of a message, in `other` (outputs), into complete states of successive row tiles.
 */
void sl_states_merge(struct sl_states *states, struct sl_exchange_part *part,
                     struct sl_tile *const *other);

#endif
