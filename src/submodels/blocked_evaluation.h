/* Evaluation of a network that is too wide for its activations to be in memory: hidden layers by
 * blocks of columns. The first layer makes a block of its output at a time. A block of a layer's
 * input adds a term to each block of its output:
 *
 *     for each block i of hidden layer 1
 *         H1[:, i] = act(A·X·W1[:, i] + b1[i])
 *         for each block j of hidden layer 2:   S2[:, j] += A·H1[:, i]·W2[i, j]
 *     for each block j of hidden layer 2
 *         H2[:, j] = act(S2[:, j] + b2[j])
 *         logits += A·H2[:, j]·W3[j, :]
 *
 * So two layers keep no hidden matrix, three layers keep the sums of one, and more layers the sums
 * of two, in memory or in the files of --store. Each block is aggregated once, and once more for
 * the last block of the output. Blocks of parameters are taken from the global ones as they are
 * needed. The logits are those of the wide network, but for rounding.
 *
 * Attention: a block is some heads. The sums are projections of its heads. A block of the output is
 * the attention of its heads, which takes the parameters once more:
 *
 *     S2[:, j] += H1[:, i]·[W2 | W2·a_src | W2·a_dst][i, j]      H2[:, j] = act(attention(S2[:,
 * j]))
 *
 * A residual block adds the sums of an earlier layer. A norm of rows reads the moments of all sums
 * first; a norm of columns reads its own:
 *
 *     S2[:, j] = S1[:, j] + Σ_i A·act(norm(S1)[:, i])·W2[i, j]
 *
 * Hops along the edges after the last layer are a network of their own, whose first weight is the
 * identity:
 *
 *     H = H2·W3 + b3      Z0 = H·I      Zk = (1 - a)·A·Zk-1 + a·Z0
 *
 * A last layer that reads the outputs of several layers adds a term to the logits for each block of
 * each output. In these networks the sums of the first layer are kept, too. */
#ifndef SL_SUBMODELS_BLOCKED_EVALUATION_H
#define SL_SUBMODELS_BLOCKED_EVALUATION_H

#include "batches/pass.h"
#include "graphs/layer_norm.h"
#include "submodels/store.h"

struct sl_plan;

/* The most bytes of a block of activations, all ranks together. Tests set a smaller limit. */
extern size_t sl_blocked_block_bytes;

/* A step is a network of one layer, from a block of its input to a block of its output. */
struct sl_blocked_step {
    struct sl_model model;
    struct sl_network net; /* graph NULL: no network; a norm has a model only */
};

struct sl_blocked_layer {
    struct sl_graph graph;             /* its features are a block of the layer's input */
    struct sl_matrix input[2];         // (n, width): a block; the last block. No rows: X
    struct sl_blocked_step step[2][2]; /* [input's last block][output's last block] */
};

/* The network of the hops that follow the last layer with parameters. */
struct sl_blocked_hops {
    int count; /* number of hops; 0: the other members are empty */
    struct sl_graph graph;
    struct sl_matrix input; // (n, classes)
    struct sl_model model;
    struct sl_network net;
};

/* Slots of sums: two layers in each vertex order. */
enum { SL_WIDE_SUMS = 2 * SL_ROW_ORDERS };

struct sl_blocked {
    struct sl_pass *pass;      /* the wide network's pass, with logits alone; NULL: nothing to do */
    struct sl_store *store;    /* the wide network's parameters */
    struct sl_layer_list list; /* layers; hops lie behind its end */
    struct sl_blocked_hops hops;
    int blocks;          /* blocks of a hidden layer */
    int64_t width;       /* columns of a block; the last block may have fewer */
    uint8_t *part;       // (3 · blocks · width): block of each unit; padding before and behind
    uint8_t *input_part; // (hidden): block of each input unit, behind `part`; a layer that reads
                         // several outputs reads padding, too
    struct sl_blocked_layer *layer;       // (list.count)
    struct sl_matrix *sums[SL_WIDE_SUMS]; // (blocks), (n, width): sums in turn
    struct sl_matrix projected;           // (n, …): sums of a last layer with attention or hops
    struct sl_norm_blocks moments;        /* moments of sums whose rows are normalised */
    bool stored;                          /* `mapped` holds the memory of the sums, with --store */
    struct sl_mapped mapped;
    int64_t travelling;       /* bytes asked of other ranks since the last wait */
    struct sl_places *places; /* memory of everything but the sums */
    struct sl_places own_places;
};

/* Whether a model can be evaluated by blocks on a grid of so many columns, and has more than one
 * block. */
bool sl_blocked_fits(const struct sl_model_shape *shape, int64_t vertices, enum sl_type type,
                     int columns);

/* Make the steps on the graph of `pass`. The network of `pass` is on the store's model and has
 * logits alone. The steps take memory from `places`, which networks on the same ranks use before or
 * after; NULL: they have places of their own. Collective. Return 0 or SL_ERR_SYSTEM, the same on
 * all ranks; call sl_blocked_destroy in either case. */
int sl_blocked_create(struct sl_blocked *blocked, struct sl_pass *pass, struct sl_store *store,
                      struct sl_places *places, const struct sl_model_shape *shape,
                      const struct sl_config *config);
void sl_blocked_destroy(struct sl_blocked *blocked);

/* Add the memory of the steps on this rank to a plan, without shared places and files. */
void sl_blocked_plan(const struct sl_blocked *blocked, struct sl_plan *plan);

/* Return the most bytes of parameters on the way at a time: all of an evaluation, or the limit and
 * two blocks if these are fewer. One block passes the limit; another is not freed yet. */
int64_t sl_blocked_travelling(const struct sl_blocked *blocked);

/* Submit the evaluation of the wide network. */
void sl_blocked_evaluate(struct sl_blocked *blocked);

#endif
