/* Reducers: what happens when tiles meet. An aggregation is
 *
 *     OUT(i) = close( ⊕ₖ A(i, k) ∘ MOVED(k) )
 *
 * The distribution walks: it decides which tiles meet on this rank, when those of other ranks come
 * and when they may go (graphs/distribution.h). The reducer combines: ∘, ⊕ and close are its own,
 * and so is every task on the tiles. One file reduce_<name>.c each. */
#ifndef SL_GRAPHS_REDUCER_H
#define SL_GRAPHS_REDUCER_H

#include "codelets/submit.h"

enum { SL_MOVED = 2, SL_OUTPUTS = 2, SL_ROW_OPERANDS = 2 }; /* most of a reducer */

struct sl_reducer;

/* The epilogue of a whole matrix: that of its tile (i, j) has the facts of i and the mask of (i,
 * j), and begins with the first column of j. */
struct sl_row_epilogue {
    struct sl_epilogue_tiles common;
    struct sl_tile *facts;        // T tiles
    const struct sl_matrix *mask; /* NULL: none */
};

/* The epilogue of tile (i, j) of Z. */
struct sl_epilogue_tiles sl_row_epilogue_at(const struct sl_row_epilogue *epilogue, int i,
                                            const struct sl_matrix *z, int j);

/* An aggregation. */
struct sl_reduction {
    const struct sl_reducer *reducer;
    const struct sl_sparse_matrix *a;
    const struct sl_matrix *moved[SL_MOVED]; /* with a row for each column of A, cut alike */
    const struct sl_matrix *row[SL_ROW_OPERANDS], *out[SL_OUTPUTS]; /* with one for each row */
    const struct sl_matrix *state[SL_OUTPUTS]; /* of the states until they are closed, where they
                                                  are of another type than out; NULL: out */
    const struct sl_row_epilogue *epilogue;    /* that closing does; NULL: none */
    struct sl_tile *vertices; /* for each row tile, which rows of the graph it has (int32, in its
                                 first row); NULL: those of the cut */
};

/* Rows of a tile that another rank has, too, in the order of a list: those numbered index[first] …
 * index[first + rows - 1]. */
struct sl_listed_rows {
    struct sl_tile *index; // (1, any) of uint32
    int64_t first, rows;
};

struct sl_states;

/* The state of a row tile on this rank, while tiles meet. */
struct sl_state {
    struct sl_states *states;
    int i, j;                             /* row tile, and column tile of all matrices */
    struct sl_tile *row[SL_ROW_OPERANDS]; /* tiles of the row operands, which are here */
    struct sl_tile *out[SL_OUTPUTS];      /* tiles of the outputs, or of parts for another rank */
    bool part;                            /* for another rank, which merges and closes it */
    bool apart;               /* other states are merged into this one, or it into another */
    bool pieces;              /* a hub's row, whose sum is cut into pieces */
    struct sl_tile *vertices; /* which rows of the graph its rows are, as above; NULL: */
    int64_t first;            /* that of its first row, and so on from there */
    int terms;                /* tiles that it has not met yet */
    struct sl_tile *held;     /* where it is: tasks on what is met write here */
    bool started;             /* something was met */
    void *own;                /* the reducer's (row_size) */
};

/* Tiles that meet: a sparse one, and `count` of each moved matrix, which are neighbours in it where
 * they are more than one. */
struct sl_meeting {
    struct sl_sparse_tile *a;
    int count;
    struct sl_tile *const *moved[SL_MOVED]; // (count) each
    struct sl_tile *vertices; /* of the columns of A, int32, in its first row; NULL: */
    int64_t first;            /* that of column 0, and so on from there */
};

/* All row tiles of a walk, in its order. */
struct sl_states {
    struct sl_runtime *rt;
    const struct sl_reduction *reduction;
    int count;
    struct sl_state *state; // (count)
    struct sl_tile **held;  // (count): where they are
    void *own, *rows;       /* the reducer's: walk_size bytes, row_size for each row */
};

struct sl_reducer {
    const char *name;
    const struct sl_reducer *back; /* combines gradients, with the transpose of A; NULL: none */
    bool linear;   /* a weight may be multiplied before: A ∘ (H·W) = (A ∘ H)·W */
    bool numbered; /* a meeting says which rows of the graph meet */
    bool alone;  /* a meeting has one tile of each moved matrix: sparse tiles of a row stay apart */
    bool narrow; /* states of out[0] have the type of moved[0]; else float32, as all other states */
    int moved, row_operands, outputs; /* matrices; every rank that combines a row has the row's
                                         operands before anything meets */
    size_t walk_size, row_size;       /* bytes of its own, zero before `open` */
    /* Says where the state is. */
    void (*open)(struct sl_state *state);
    /* May put tasks off until `submit`, or until another row tile is met. */
    void (*meet)(struct sl_state *state, const struct sl_meeting *meeting);
    void (*submit)(struct sl_state *state);
    /* All terms of this rank have been met. */
    void (*complete)(struct sl_state *state);
    /* Takes in the state that another rank has of the same rows, in `other` (outputs), or, unless
     * it is NULL, of those listed. The own one is complete. */
    void (*merge)(struct sl_state *state, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows);
    /* All states are merged. Not for parts. */
    void (*close)(struct sl_state *state);
    /* The walk is over. */
    void (*end)(struct sl_states *states);
};

/* The reducers: an entry each, and a file reduce_<name>.c with sl_reduce_<name>. --aggregator
 * offers them by name.
 *
 *   sum   Z = A·H, then the epilogue
 *   max   out[0] (v, j) = max over u of a(v, u)·moved[0] (u, j), or 0 if v has no neighbour. out[1]
 *         (v, j), int32, is the row u of the graph, or -1. The least of equal rows wins.
 *   min   the same with the minimum */
#define SL_REDUCERS(ENTRY) ENTRY(sum) ENTRY(max) ENTRY(min)

#define SL_REDUCER_DECLARED(name) extern const struct sl_reducer sl_reduce_##name;
SL_REDUCERS(SL_REDUCER_DECLARED)
#undef SL_REDUCER_DECLARED

/* "|sum|max|min". */
#define SL_REDUCER_NAMED(name) "|" #name
#define SL_REDUCER_NAMES       SL_REDUCERS(SL_REDUCER_NAMED)

/* The reducer of that name, or NULL. */
const struct sl_reducer *sl_reducer_find(const char *name);

/* The type of an output's states where matrices of type `moved` are moved; the bytes of one element
 * of all outputs' states. */
enum sl_type sl_reducer_type(const struct sl_reducer *reducer, int output, enum sl_type moved);
int64_t sl_reducer_bytes(const struct sl_reducer *reducer, enum sl_type moved);

/* The matrix of an output's states. */
const struct sl_matrix *sl_reduction_state(const struct sl_reduction *reduction, int output);

/* With room for `most` rows; sl_states_free frees what this and sl_states_add took. */
void sl_states_open(struct sl_states *states, struct sl_runtime *rt,
                    const struct sl_reduction *reduction, int most);
void sl_states_free(struct sl_states *states);

/* Opens a state such as that, whose `states` need not be set. */
struct sl_state *sl_states_add(struct sl_states *states, const struct sl_state *state);

#endif
