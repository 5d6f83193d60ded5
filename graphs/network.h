/* A network is a pass of a model (graphs/model.h) on a graph (graphs/graph.h): activations, work
 * matrices, and the task graphs of a training step and of an evaluation.
 *
 * Matrices with a row per vertex are cut as the distribution cuts them. A layer submits products
 * with weights (graphs/product.h) and aggregations (sl_network_aggregate), forward and backward.
 * sl_network_train submits forward, loss, backward, the sums of gradients, and the update on rank
 * 0. Every call submits tasks and returns: the next step may follow while one runs. */
#ifndef SL_GRAPHS_NETWORK_H
#define SL_GRAPHS_NETWORK_H

#include "codelets/submit.h"
#include "graphs/distribution.h"
#include "graphs/graph.h"
#include "graphs/model.h"

struct sl_network;
struct sl_layer;

/* Which product of a layer comes first. */
enum sl_product_order {
    SL_GEMM_FIRST, /* Z = Â·(H·W): two aggregations at the width of the output */
    SL_SPMM_FIRST, /* Z = (Â·H)·W: aggregations at the width of the input; ÂH is kept for the
                      gradient */
    SL_AGGREGATED, /* Z = (ÂX)·W with ÂX made once: no aggregation at all; first layer only */
};

/* Â·H or Âᵀ·G in a training step. */
struct sl_aggregation {
    bool transposed;
    int64_t width;
    const int64_t *cut; /* of the width, among the columns of the grid */
    enum sl_type type;  /* of H */
    const struct sl_reducer *reducer;
    const struct sl_layer *layer; /* in sl_network_aggregations */
};

enum { SL_AGGREGATIONS = 2 }; /* most of a layer */

/* What a kind of layer does. One file layer_<kind>.c and one row in the table of network.c each. */
struct sl_layer_kind {
    const char *name;
    int weights; /* matrices (in, out) of its parameters: 1, the neighbours' (a GCN's own one, too),
                    or 2, the vertex's own and the neighbours' */
    const char *weight[SL_WEIGHTS], *bias; /* names of these, and of the row of biases */
    /* Chooses the order of products (`wanted`: a sl_product_order, or -1: by cost) and makes the
     * work matrices that it takes, beside `output` and the gradient of the pre-activation, which
     * every layer has. Returns 0 or SL_ERR_SYSTEM. */
    int (*plan)(struct sl_network *net, struct sl_layer *layer, int wanted);
    /* Submits output = layer(input); `training`: with dropout. */
    void (*forward)(struct sl_network *net, struct sl_layer *layer, bool training);
    /* Submits the layer's parameter gradients from G, the gradient of its pre-activation, and
     * returns that of the layer before (NULL for the first layer); its output is not needed any
     * more and may become it. */
    struct sl_matrix *(*backward)(struct sl_network *net, struct sl_layer *layer,
                                  struct sl_matrix *g);
};

struct sl_layer {
    const struct sl_layer_kind *kind;
    const struct sl_reducer *reducer; /* of neighbours */
    int index;
    int input_order; /* of its input's rows; those of its output are in output.row_order */
    int64_t in, out;
    bool bias;
    bool last;
    double dropout;               /* on its input */
    struct sl_model_layer *model; /* what networks share: all of the above, and the parameters */
    enum sl_product_order order;
    enum sl_row_fact gradient_factor; /* by which the rows of its pre-activation's gradient are kept
                                         multiplied: what the aggregation of the gradient needs */
    int64_t exchanged;                /* bytes of a row of the widest matrix that it aggregates */
    struct sl_matrix gradients; /* of the parameters, each row tile's part (graphs/product.h) */
    struct sl_tile gradient; // like the parameters, on rank 0, where their sum is in blocks or on
                             // another rank, which then has the first row tile
    struct sl_tile *summed;  /* where their sum is, of the step that is being submitted */
    struct sl_matrix
        output; // (n, out) of the graph's type, logits float32: after activation, the next layer's
                // dropout and, unless it is the last, diag(right): as the next aggregation needs it
    struct sl_matrix aggregated; // (n, in): Â·input, when SL_SPMM_FIRST
    struct sl_matrix argmax;     // (n, in) of int32: the rows that a maximum or minimum comes from
    struct sl_matrix dropped;  // (n, in): dense input after dropout, where a first layer needs one
    int64_t *in_cut, *out_cut; /* among the columns of the grid */
};

enum { SL_SCRATCH = 6 }; /* most work matrices of a layer */

struct sl_scratch {
    struct sl_matrix matrix;
    int slot;
};

struct sl_network {
    struct sl_runtime *rt;
    const struct sl_graph *graph;
    struct sl_model *model;
    struct sl_tile *metrics;      // T tiles (1, SL_METRICS) of double
    struct sl_tile total;         // likewise: their sum, on rank 0, where the first of
                                  // them is on another rank
    const struct sl_rates *rates; /* by which the first product of a layer is chosen: those of one
                                     core, so that bits do not depend on workers and ranks; NULL:
                                     sl_rates_usual */
    int layers;
    struct sl_layer *layer;
    struct sl_matrix logits; // (n, classes) with whole rows, where the last output has none
    int scratch_count;
    struct sl_scratch **scratch;
    int64_t steps;            /* training steps that were submitted */
    int aggregations;         /* in the one that is being submitted; -1: none is */
    int64_t tags, tags_taken; /* sl_network_tags: the first one, and how often some were taken */
    uint32_t epoch;
};

/* Makes layers and work matrices for a pass of the model on the graph. `net` has rt (that of the
 * model), graph, model and rates, which stay the caller's. `order`: enum sl_product_order for all
 * layers where it is possible, or -1: by cost; `orders` (layers), unless it is NULL: instead, one
 * for each. With late messages (cd-R), one network may train on a graph. Returns 0 or
 * SL_ERR_SYSTEM; sl_network_destroy frees what was made in either case. */
int sl_network_create(struct sl_network *net, int order, const int *orders);
void sl_network_destroy(struct sl_network *net);

/* The kind of that name, or NULL. */
const struct sl_layer_kind *sl_layer_find(const char *name);
extern const struct sl_layer_kind sl_layer_gcn, sl_layer_sage;

/* Submits one training step: forward, loss, backward, reductions, update. sl_network_total then
 * holds the loss and correct counts of the training vertices, and what was not finite. */
void sl_network_train(struct sl_network *net, const struct sl_optimizer_step *step);

/* Submits a forward pass without dropout and the counts of all splits into
 * sl_network_total. */
void sl_network_evaluate(struct sl_network *net);

/* The sum of all metrics (1, SL_METRICS), on rank 0. */
struct sl_tile *sl_network_total(struct sl_network *net);

/* Submits a forward pass without dropout alone. */
void sl_network_forward(struct sl_network *net, bool training);

/* Hands sl_network_total to `record` on rank 0, then on every other rank (sl_submit_record). */
void sl_network_record(struct sl_network *net, sl_record_function *record, void *context);

/* Keeps the parameters if sl_network_total[index] of this epoch is the largest so far; ends the run
 * if it was not for `patience` epochs (sl_submit_keep_best). */
void sl_network_keep_best(struct sl_network *net, int index, int patience);

/* Lists the aggregations of a training step in the order of their numbers, at most SL_AGGREGATIONS
 * for each layer; returns how many. */
int sl_network_aggregations(const struct sl_network *net, struct sl_aggregation *list);

/* For layer files: */

/* A work matrix (n, width), the same one for the same order of rows, type, width and slot: planned,
 * then used. */
int sl_network_plan_scratch(struct sl_network *net, int row_order, enum sl_type type, int64_t width,
                            int slot);
struct sl_matrix *sl_network_scratch(struct sl_network *net, int row_order, enum sl_type type,
                                     int64_t width, int slot);

/* Where the gradient of a layer's pre-activation is: its output becomes it, or, where that is
 * bfloat16, a work matrix (slot 1), which the next layer plans for its input. */
struct sl_matrix *sl_network_gradient(struct sl_network *net, struct sl_layer *layer);

/* Where the sums of Z are until they are complete: in Z, or, where that is bfloat16, in a work
 * matrix of gradients of its width (slot 1), which are not there while layers go forward; NULL
 * where none was planned, as of the width of the features where no sum is in pieces. */
struct sl_matrix *sl_network_sums(struct sl_network *net, struct sl_matrix *z);

/* Plans one for bfloat16 results of that width: `always`, or where sparse products are in pieces.
 */
int sl_network_plan_sums(struct sl_network *net, int row_order, int64_t width, bool always);

/* The first of T x ranks tags for temporaries that travel, of a product or of the loss: the ranks
 * take them in the same order. StarPU never forgets a tag, so they come round again after
 * SL_EPOCHS_IN_FLIGHT epochs, when all messages that had them have arrived. */
enum { SL_EPOCHS_IN_FLIGHT = 16 };
int64_t sl_network_tags(struct sl_network *net);

/* Submit Z = S·H, or Sᵀ·H, by the layer's reducer, then the epilogue, unless it is NULL: its facts
 * are those of the rows. `mask`: NULL for none. */
void sl_network_aggregate(struct sl_network *net, const struct sl_layer *layer, bool transposed,
                          const struct sl_matrix *h, const struct sl_epilogue_tiles *epilogue,
                          const struct sl_matrix *mask, struct sl_matrix *z);

/* Submit an aggregation with S, or Sᵀ, by the layer's reducer, or by the reducer of its gradients:
 * `reduction` has the matrices, all else is set here. */
void sl_network_walk(struct sl_network *net, const struct sl_layer *layer, bool back,
                     struct sl_reduction *reduction);

/* Z = epilogue(SUM), which has no mask. */
void sl_network_finish(struct sl_network *net, const struct sl_epilogue_tiles *epilogue,
                       const struct sl_matrix *sum, const struct sl_matrix *z);

/* What the first layer multiplies with one of its weights, or aggregates first. */
const struct sl_input *sl_network_input(const struct sl_network *net, const struct sl_layer *layer,
                                        int weight);

/* The row of a layer's parameters that is the bias. */
static inline int64_t sl_layer_bias_row(const struct sl_layer *layer)
{
    return sl_model_bias_row(layer->model);
}

/* The dropout of this epoch on the input of `layer`. */
struct sl_dropout sl_network_dropout(const struct sl_network *net, const struct sl_layer *layer);

#endif
