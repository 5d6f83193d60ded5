/* A network is a pass of a model (graphs/model.h) on a graph (graphs/graph.h): activations, work
 * matrices, and the task graphs of a training step and of an evaluation.
 *
 * Matrices with a row per vertex are cut as the distribution cuts them. A layer submits products
 * with weights (graphs/product.h) and aggregations (sl_network_aggregate), forward and backward.
 * sl_network_train submits forward, loss, backward, the sums of gradients, and the update on rank
 * 0. Every call submits tasks and returns: the next step may follow while one runs. */
#ifndef SL_GRAPHS_NETWORK_H
#define SL_GRAPHS_NETWORK_H

#include "codelets/epilogue.h"
#include "codelets/optimizer.h"
#include "codelets/own_layer.h"
#include "codelets/record.h"
#include "core/names.h"
#include "graphs/copies.h"
#include "graphs/distribution.h"
#include "graphs/evaluation.h"
#include "graphs/graph.h"
#include "graphs/groups.h"
#include "graphs/model.h"
#include "graphs/place.h"

struct sl_network;
struct sl_layer;
struct sl_forward;

/* Order of a layer's products. */
enum sl_product_order {
    SL_GEMM_FIRST, /* Z = Â·(H·W): two aggregations at the width of the output */
    SL_SPMM_FIRST, /* Z = (Â·H)·W: aggregations at the width of the input; ÂH is kept for the
                      gradient */
    SL_AGGREGATED, /* Z = (ÂX)·W with ÂX made once: no aggregation at all; first layer only */
};

/* Â·H or Âᵀ·G in a training step. */
struct sl_aggregation {
    bool transposed;
    bool again; /* the second walk back, by the reducer's `again` */
    int64_t width;
    const int64_t *cut; /* cuts of `width` among the columns of the grid (columns + 1) */
    enum sl_type type;  /* type of H's elements */
    const struct sl_reducer *reducer;
    /* Cuts (columns + 1) of further matrices. NULL: there is no such matrix; a state is then cut as
     * H is. */
    const int64_t *others;        /* the other moved matrices together, float32 */
    const int64_t *state;         /* the state */
    const int64_t *operands;      /* the row operands together, float32 */
    const struct sl_layer *layer; /* the layer, set by sl_network_aggregations */
};

/* Return the cut of the rows that ranks merge: states. Clones merge gradients, before the
 * aggregation, so the cut is then the gradients'. NULL: clones have merged them before. */
static inline const int64_t *sl_aggregation_merged(const struct sl_aggregation *aggregation,
                                                   bool clones)
{
    if (clones && aggregation->again)
        return NULL;
    return aggregation->state && !(clones && aggregation->transposed) ? aggregation->state
                                                                      : aggregation->cut;
}

/* Return the columns of a tile in column `column` of the grid; 0 if `cut` is NULL. */
static inline int64_t sl_cut_width(const int64_t *cut, int column)
{
    return cut ? cut[column + 1] - cut[column] : 0;
}

enum { SL_AGGREGATIONS = 3 }; /* most aggregations of a layer in a training step */

/* A walk whose seconds are predicted: its entries and rows on a rank. */
struct sl_walk_size {
    const struct sl_rates *rates;
    enum sl_walk_way way;
    bool first;  /* whether the layer is the first, whose input may need no gradient */
    int columns; /* columns of the grid, which share the columns of rows */
    double entries, rows;
};

/* Matrices and tiles that only layers of this kind have in memory; NULL: none. */
struct sl_layer_memory {
    const struct sl_matrix *matrix[3];
    const struct sl_tile *tile[3];
    int tiles;
    const struct sl_tile *of_rows; // (tiles): one for each row tile
    int64_t received;              /* bytes of other ranks' tiles */
};

/* Weight matrices (in, out) of a kind of layer. */
struct sl_kind_weights {
    int count; /* 1: for neighbours and, in a GCN, for the vertex. 2: first for the vertex, then for
                  neighbours */
    int linear; /* how many of the first matrices PyTorch Geometric has as linear layers of their
                   own; --linear-init says their first values */
    const char *name[SL_WEIGHTS];
    bool splits; /* the first matrix belongs to a layer beside it (struct sl_layer.beside) */
    bool joined; /* the other matrices are one, side by side, for the kind's products */
};

/* Rows of parameters of a kind of layer, between weights and bias. */
struct sl_kind_vectors {
    int count;
    const char *name[SL_VECTORS];
    int of_edges; /* how many of the last rows belong to edge features, and are left out without
                     these */
    bool biases;  /* the last rows are biases of the weights: they begin at 0, and a layer without
                     bias has none of them */
    int averages; /* how many of the last rows are running averages, which are not learned */
};

/* A kind of layer: one file layer_<kind>.c and one entry in SL_LAYERS. */
struct sl_layer_kind {
    const char *name;
    struct sl_kind_weights weights;
    struct sl_kind_vectors vectors;
    const char *bias;  /* name of the bias row */
    const char *edge;  /* name of the weight of edge features; NULL: the kind reads none */
    bool loops;        /* a vertex is its own neighbour: S = A + I */
    bool normalized;   /* aggregates Â as --norm says, not S alone */
    bool scaled_input; /* rows of its input are stored multiplied by diag(right) */
    bool alone;        /* works on each vertex alone: does not aggregate */
    bool leaves_sums;  /* going back, can leave the gradient of its input as sums
                          (sl_layer_leaves_sums) */
    int sums; /* rows of the kind's own in the gradient of its products, behind the weights and the
                 rows of edge features. With a bias, a row for the biases of weights and a row for
                 the bias follow */
    const struct sl_own_layer *own; /* a program's layer (layer_own.c); NULL: built in */
    /* Set the first parameters, all rows, on their owner. NULL: Glorot's. */
    void (*start)(struct sl_runtime *rt, const struct sl_layer_kind *kind, struct sl_tile *tile);
    /* Cut the output and the products with weights among the columns of a grid (columns + 1 each).
     * Return 0, or SL_ERR_USAGE where the grid cannot cut them. NULL: cut both evenly; both have
     * `out` columns. */
    int (*cut)(const struct sl_layer_shape *shape, const struct sl_grid *grid, int64_t *output,
               int64_t *product);
    /* Choose the order of products. `wanted` is a sl_product_order, or -1: by cost. Make the work
     * matrices for this order. `output` and the gradient of the pre-activation exist without this
     * call. Return 0 or SL_ERR_SYSTEM. */
    int (*plan)(struct sl_network *net, struct sl_layer *layer, int wanted);
    /* Submit output = layer(input); `training`: with dropout. */
    void (*forward)(struct sl_network *net, struct sl_layer *layer, bool training);
    /* Submit the gradients of the layer's parameters from G, the gradient of its pre-activation.
     * Return the gradient of the previous layer's pre-activation, or NULL for the first layer. The
     * previous layer's output is not needed any more: its memory may hold that gradient. */
    struct sl_matrix *(*backward)(struct sl_network *net, struct sl_layer *layer,
                                  struct sl_matrix *g);
    /* List the aggregations of a step, forward first; return how many. NULL: Â·H or Â·(H·W)
     * forward, and the gradient's aggregation. */
    int (*aggregations)(const struct sl_network *net, const struct sl_layer *layer,
                        struct sl_aggregation list[SL_AGGREGATIONS]);
    /* Return the seconds of a walk beside the sums of the rows that entries meet: of scores, of
     * features and relations of edges. NULL: none. */
    double (*seconds)(const struct sl_layer_shape *shape, const struct sl_walk_size *walk);
    /* Submit the sum of the gradients over the row tiles, on rank 0, and return its tile. NULL:
     * sl_product_sum_gradients. */
    struct sl_tile *(*sum)(struct sl_network *net, struct sl_layer *layer);
    /* Turn `summed`, the gradient of the weights that products see, into the gradient of the
     * parameters, on rank 0. NULL: the two gradients are equal. */
    struct sl_tile *(*differentiate)(struct sl_network *net, struct sl_layer *layer,
                                     struct sl_tile *summed);
    /* Return the matrices and tiles that only this kind has in memory; may be NULL. */
    struct sl_layer_memory (*memory)(const struct sl_layer *layer);
    /* Free layer->own. NULL: the kind has no layer->own. */
    void (*destroy)(struct sl_layer *layer);
    /* Append the steps from the layer's input to its output, without dropout (graphs/forward.h).
     * Return the value of the output; -1: a reducer has no steps. NULL: the layer has no steps. */
    int (*describe)(const struct sl_forward *forward);
};

/* The walks and the exchanged rows of a layer. */
struct sl_layer_rows {
    int aggregation; /* the number of its first aggregation in a step */
    bool twice;      /* a training step makes its output twice */
    bool refreshed;  /* copies of other groups' vertices receive its output */
    int refreshing;  /* its number among refreshed layers */
    int hops, read;  /* how many hops away the furthest rows of its output are that it computes, and
                        that are read, where copies have come (graphs/reach.h) */
    int64_t exchanged; /* bytes of a row of the widest matrix that it aggregates */
};

/* The cuts of a layer's matrices among the grid's columns. */
struct sl_layer_columns {
    int64_t *in_cut, *out_cut; // (columns + 1): cuts of its input and of its output
    int64_t product;           /* columns of the products with weights */
    int64_t *product_cut;      // (columns + 1): cuts of `product`
    struct sl_tile *weights;   // (weights · in, product); NULL: products read the parameters
};

/* The gradients of a layer. */
struct sl_layer_back {
    const struct sl_matrix *g;         /* the gradient of its pre-activation in this step */
    enum sl_row_scale gradient_factor; /* the gradient of its pre-activation is stored with this row
                                         scale, which the aggregation of the gradient needs */
    struct sl_matrix gradients;        /* a part for each row tile (graphs/product.h) */
    struct sl_tile gradient; // shaped as the parameters, on rank 0: the sum of `gradients`, where
                             // the sum is in blocks or rank 0 has no part of the first row tile
    struct sl_group_sums group_sums; /* sums of `gradients` over the groups */
    struct sl_tile *summed; /* the sum of `gradients` in the step that is being submitted */
};

/* A layer adds its own input, or the output of an earlier layer, to its sums. */
struct sl_layer_residual {
    bool identity;                  /* the layer adds its input */
    const struct sl_layer *earlier; /* the layer whose output is added; NULL: none */
    float weight;                   /* factor of this output */
};

struct sl_layer {
    const struct sl_layer_kind *kind;
    const struct sl_reducer *reducer; /* combines neighbours */
    int index;
    int input_order; /* vertex order of its input; output.row_order is the vertex order of its
                        output */
    int64_t in, out;
    bool bias;
    bool last;
    double dropout; /* dropout of its input */
    enum sl_activation activation;
    struct sl_layer_residual residual;
    int inputs; /* number of earlier layers whose outputs it reads (graphs/layer_jump.c) */
    int64_t edge_features; /* features of edges that it reads; 0: none, as of a layer beside */
    int64_t edge_rows;     /* rows of the weights of edges; 0: none, as of a layer beside */
    struct sl_layer_rows rows;
    struct sl_layer_columns columns;
    struct sl_layer_back back;
    struct sl_model_layer *model; /* shared by networks: its shape and its parameters */
    enum sl_product_order order;
    struct sl_matrix
        output; // (n, out) of the graph's type, logits float32: after activation, the next layer's
                // dropout and, where its input is scaled, the row scale diag(right)
    struct sl_matrix aggregated; // (n, in): Â·input, when SL_SPMM_FIRST
    struct sl_matrix argmax;  // (n, in): int32 rows, or inputs of a jump, that a maximum or minimum
                              // comes from; or float32 values that the gradient of a program's
                              // reducer needs
    struct sl_matrix dropped; // (n, in): dense input after dropout, where a first layer needs one
    void *own;                /* data of the layer's kind */
    struct sl_layer
        *beside; /* a layer without output, whose products join the sums of this layer;
                    it has some of the parameters, and gradients of its own; NULL: none */
};

/* Return how many matrices of weights the products of a kind of layer read. */
static inline int sl_layer_kind_products(const struct sl_layer_kind *kind)
{
    return kind->weights.joined ? 1 : kind->weights.count - kind->weights.splits;
}

/* Return how many weight matrices the layer's products read. */
static inline int sl_layer_weight_count(const struct sl_layer *layer)
{
    return sl_layer_kind_products(layer->kind) * sl_layer_shape_stacked(&layer->model->shape);
}

/* Return how many rows the gradient of the layer's products has behind the weights. */
static inline int sl_layer_further_rows(const struct sl_layer *layer)
{
    return (int)layer->edge_rows + layer->kind->sums +
           layer->bias * (1 + layer->kind->vectors.biases);
}

/* Return how many products with weights the layer has, forward. */
static inline int sl_layer_product_count(const struct sl_layer *layer)
{
    return sl_layer_kind_products(layer->kind) * layer->inputs;
}

/* Return the tile of weights that products read. */
static inline struct sl_tile *sl_layer_weights(const struct sl_layer *layer)
{
    return layer->columns.weights ? layer->columns.weights : &layer->model->parameters;
}

enum { SL_SCRATCH = 8 }; /* most work matrices of a layer */

/* Places in memory of work matrices, by use. */
enum sl_slot {
    SL_SLOT_WORK,     /* products on their way to an aggregation or from one */
    SL_SLOT_GRADIENT, /* a gradient that cannot take the place of the output */
    SL_SLOT_SUM,      /* a gradient that is the sum of two terms, float32 */
    SL_SLOT_NARROW,   /* sums in float32 of a bfloat16 matrix */
    SL_SLOTS
};

struct sl_scratch {
    struct sl_matrix matrix;
    enum sl_slot slot;
};

/* The memory of a network's matrices. */
struct sl_network_memory {
    int scratch_count;
    struct sl_scratch **scratch;
    int64_t widest_sum;       /* columns of the widest bfloat16 result of an aggregation */
    struct sl_places *places; /* memory of matrices; set by the caller where networks share it, else
                                 &own_places */
    struct sl_places own_places; /* places where the network shares none */
    int kept_count, kept_room;
    struct sl_kept {
        struct sl_matrix *matrix;
        int first, last; /* layers whose forward passes write the matrix, and read it last */
    } * kept; // (kept_count): matrices with memory of their own, unless places are shared
};

/* The step that is being submitted, and the steps before it. */
struct sl_network_step {
    bool again;         /* outputs are being made again */
    int64_t steps;      /* training steps that were submitted */
    int64_t late_steps; /* submitted training steps in which clones do not meet exactly */
    int aggregations;   /* aggregations so far in the step that is being submitted; -1: no step */
    int64_t tags, tags_taken; /* sl_network_tags: the first tag; calls so far */
    uint32_t epoch; /* number of the epoch; after the last epoch parameters stay as they are (struct
                       sl_model) */
    double left;    /* share of the epoch that is left after the step, from 0 to below 1 */
    uint32_t update; /* the number of the optimizer's step, from 1: keys dropout */
    bool exact;      /* clones meet in the steps that are submitted next, whatever the delay */
};

struct sl_network {
    struct sl_runtime *rt; /* the ranks of the graph: all ranks of the model, or one group */
    const struct sl_groups *groups; /* NULL: there is one group */
    struct sl_copies *copies; /* copies of other groups' vertices; NULL: no copy needs refreshing */
    const struct sl_graph *graph;
    struct sl_model *model;
    struct sl_tile *metrics; // T tiles (1, SL_METRICS) of double
    struct sl_tile total;    // (1, SL_METRICS) of double: the sum of `metrics` on rank 0, where the
                             // first tile is on another rank
    struct sl_group_sums group_metrics; /* sums of the metrics over the groups */
    struct sl_evaluation evaluation;
    const struct sl_rates *rates; /* to choose the first product of a layer: rates of one core, so
                                     that bits do not depend on workers and ranks; NULL:
                                     sl_rates_usual */
    int layers;
    struct sl_layer *layer;
    struct sl_matrix logits; // (n, classes) with whole rows, where the last output has none
    bool unmeasured;  /* set by the caller: a part of a network, whose output nobody measures */
    bool evaluates;   /* never trains: a matrix is kept as long as later layers need it */
    bool logits_only; /* set by the caller: no forward pass, whose matrices have no memory; somebody
                         else makes the last output */
    bool aggregated;  /* set by the caller: a layer whose SpMM comes first finds its input
                         aggregated, by the previous forward pass */
    struct sl_network_memory memory;
    struct sl_network_step step;
};

/* Make layers and work matrices for a pass of the model on the graph. The caller sets net->rt (the
 * model's ranks; with net->groups, the group's ranks), graph, model and rates, and keeps them.
 * `order`: an enum sl_product_order for all layers where possible, or -1: by cost. `orders`
 * (layers): instead, an order for each layer; NULL: none. With late messages (cd-R), only one
 * network may train on a graph. Return 0 or SL_ERR_SYSTEM; sl_network_destroy in either case. */
int sl_network_create(struct sl_network *net, int order, const int *orders);
void sl_network_destroy(struct sl_network *net);

/* The kinds of layer. Each has an entry, and sl_layer_<name> in a file layer_<name>.c. Some share a
 * file: gcn_residual with sage, gat_residual with gat, all jumps in layer_jump.c, gatv2 and
 * transformer in layer_pair.c. Models are lists of layers (graphs/model.h). */
#define SL_LAYERS(ENTRY)        \
    ENTRY(gcn)                  \
    ENTRY(gcn_residual)         \
    ENTRY(gat_residual)         \
    ENTRY(sage)                 \
    ENTRY(gat)                  \
    ENTRY(gatv2)                \
    ENTRY(gatv2_residual)       \
    ENTRY(transformer)          \
    ENTRY(transformer_residual) \
    ENTRY(gine)                 \
    ENTRY(rgcn)                 \
    ENTRY(linear)               \
    ENTRY(propagate)            \
    ENTRY(row_norm)             \
    ENTRY(batch_norm)           \
    ENTRY(jump)                 \
    ENTRY(jump_plain) ENTRY(jump_max) ENTRY(jump_max_plain) ENTRY(distmult) ENTRY(link_mlp)

#define SL_LAYER_DECLARED(name) extern const struct sl_layer_kind sl_layer_##name;
SL_LAYERS(SL_LAYER_DECLARED)
#undef SL_LAYER_DECLARED

/* ---- layer_own.c ---- */

/* Names that --block-norm takes: "row|batch", with the names that a program adds. */
extern char sl_block_names[SL_NAMES_ROOM];

/* A norm that --block-norm names, and its layer. */
struct sl_block_norm {
    const char *name;
    const struct sl_layer_kind *layer;
};

/* Return the norm of that name, or NULL. */
const struct sl_block_norm *sl_block_norm_find(const char *name);

/* Add a program's layer, or replace its layer of this name. No training may be running. Return 0,
 * or SL_ERR_USAGE for an impossible name. */
int sl_layer_add(const char *name, const struct starling_layer *layer);

/* Submit one training step: forward, loss, backward, reductions, update. sl_network_total then
 * holds the loss and correct counts of the training vertices, and the first layer with a number
 * that is not finite. Counted layers (struct sl_layer_shape) need step->local. */
void sl_network_train(struct sl_network *net, const struct sl_optimizer_step *step);

/* Submit a forward pass without dropout, and the loss, the correct counts and the graph's metric of
 * all splits into sl_network_total. */
void sl_network_evaluate(struct sl_network *net);

/* Submit the measurement of the logits in the last layer's output, the second half of
 * sl_network_evaluate. */
void sl_network_measure(struct sl_network *net);

/* Return the logits that were measured last, in whole rows. */
const struct sl_matrix *sl_network_logits(struct sl_network *net);

/* Return the sum of all metrics (1, SL_METRICS), on rank 0 of the model. */
struct sl_tile *sl_network_total(struct sl_network *net);

/* Return how often a layer's forward pass runs in a training step. */
int sl_network_passes(const struct sl_network *net, const struct sl_layer *layer);

/* Submit a forward pass alone; `training`: with dropout. */
void sl_network_forward(struct sl_network *net, bool training);

/* Submit `record` on sl_network_total: on rank 0, then on every other rank (sl_submit_record). */
void sl_network_record(struct sl_network *net, sl_record_function *record, void *context);

/* Note the epoch if the graph's metric of the validation vertices is the best so far. End the run
 * after `patience` epochs without a better value (sl_submit_keep_best). */
void sl_network_keep_best(struct sl_network *net, int patience);

/* List the aggregations of a training step in the order of their numbers, at most SL_AGGREGATIONS
 * for each layer. Return how many. */
int sl_network_aggregations(const struct sl_network *net, struct sl_aggregation *list);

/* Return the bytes of temporary sums on one rank. */
int64_t sl_network_temporary_bytes(const struct sl_network *net);

/* Functions for the files of layers. */

/* Broadcast a tile of the model's ranks, whose owner is in the first group, to all of them. */
void sl_network_broadcast(const struct sl_network *net, struct sl_tile *tile);

/* Plan a work matrix (n, width), unless one of the same vertex order, type, width and slot is
 * planned. Return 0 or SL_ERR_SYSTEM. */
int sl_network_plan_scratch(struct sl_network *net, int row_order, enum sl_type type, int64_t width,
                            enum sl_slot slot);

/* Plan a float32 work matrix cut at `cut` (columns of the grid + 1), as sl_network_plan_scratch
 * does. Return 0 or SL_ERR_SYSTEM. */
int sl_network_plan_scratch_cut(struct sl_network *net, int row_order, const int64_t *cut,
                                enum sl_slot slot);
struct sl_matrix *sl_network_scratch_cut(struct sl_network *net, int row_order, const int64_t *cut,
                                         enum sl_slot slot, int hops);

/* Plan memory for a matrix that was described and that the forward pass of `layer` writes. Training
 * keeps it for the backward pass; an evaluation needs it until the forward pass of layer `last`.
 * Return 0 or SL_ERR_SYSTEM. */
int sl_network_keep(struct sl_network *net, const struct sl_layer *layer, int last,
                    struct sl_matrix *matrix);

/* Prepare a matrix that is written next: give it its place, if it shares one. Rows over `hops` hops
 * away are not needed, and become 0 (graphs/reach.h). */
void sl_network_take(struct sl_network *net, const struct sl_matrix *matrix, int hops);

/* Return a planned work matrix, to write its rows up to `hops` hops away. The matrix that had its
 * slot is lost. Stop the run if there is none. */
struct sl_matrix *sl_network_scratch(struct sl_network *net, int row_order, enum sl_type type,
                                     int64_t width, enum sl_slot slot, int hops);

/* Return the matrix of the sums of Z until they are complete: Z, if float32. Otherwise a work
 * matrix with Z's width. NULL on one rank, where sums are temporary. */
struct sl_matrix *sl_network_sums(struct sl_network *net, struct sl_matrix *z);

/* Plan a matrix of sums for bfloat16 results of an aggregation of that width, on several ranks.
 * Return 0 or SL_ERR_SYSTEM. */
int sl_network_plan_sums(struct sl_network *net, int row_order, int64_t width);

/* Return the first of T x ranks message tags for the temporary tiles of a product or of the loss.
 * All ranks take tags in the same order. StarPU never forgets a tag. So tags come round again after
 * SL_EPOCHS_IN_FLIGHT epochs, when all messages with these tags have arrived. */
enum { SL_EPOCHS_IN_FLIGHT = 16 };
int64_t sl_network_tags(struct sl_network *net);

/* Submit Z = epilogue(S·H), or epilogue(Sᵀ·H), by the layer's reducer. `epilogue` NULL: none; this
 * function sets its scales from the rows of Z. `mask` NULL: none. */
void sl_network_aggregate(struct sl_network *net, const struct sl_layer *layer, bool transposed,
                          const struct sl_matrix *h, const struct sl_epilogue_tiles *epilogue,
                          const struct sl_matrix *mask, struct sl_matrix *z);

/* Submit an aggregation. The caller sets the matrices of `reduction`, this function sets all else.
 */
void sl_network_walk(struct sl_network *net, const struct sl_layer *layer, enum sl_walk_way way,
                     struct sl_reduction *reduction);

/* Submit Z = epilogue(SUM). `mask` NULL: none; it may be Z. */
void sl_network_finish(struct sl_network *net, const struct sl_epilogue_tiles *epilogue,
                       const struct sl_matrix *mask, const struct sl_matrix *sum,
                       const struct sl_matrix *z);

/* Return the input that the first layer multiplies with `weight`, or aggregates first. */
const struct sl_input *sl_network_input(const struct sl_network *net, const struct sl_layer *layer,
                                        int weight);

/* Return the row of a layer's parameters that is the bias. */
static inline int64_t sl_layer_bias_row(const struct sl_layer *layer)
{
    return sl_model_bias_row(layer->model);
}

/* Return the dropout of this epoch on the input of `layer`. */
struct sl_dropout sl_network_dropout(const struct sl_network *net, const struct sl_layer *layer);

#endif
