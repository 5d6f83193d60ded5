/* A model: parameters and the optimizer's state. Several networks may share a model. */
#ifndef SL_GRAPHS_MODEL_H
#define SL_GRAPHS_MODEL_H

#include "codelets/units.h"
#include "core/names.h"
#include "core/runtime.h"
#include "core/tile.h"
#include "graphs/reducer.h"

struct sl_layer_kind;

/* Activation of a layer's output. */
enum sl_activation { SL_ACTIVATION_NONE, SL_ACTIVATION_RELU, SL_ACTIVATION_ELU };

enum {
    SL_WEIGHTS = 4, /* most matrices of a layer's parameters, besides biases */
    SL_VECTORS = 4, /* most rows of a layer's parameters, besides weights and biases */
    SL_PARAMETERS = SL_WEIGHTS + 2 + SL_VECTORS + 1,
    SL_STATES = 2, /* most numbers of state that an optimizer keeps for each parameter */
};

/* The description from which a layer is made. */
struct sl_layer_shape {
    const struct sl_layer_kind *kind;
    const struct sl_reducer *reducer; /* combines neighbours */
    int64_t in, out;
    bool bias;
    bool bias_cancels; /* later layers take a constant of each column out again: the gradient of the
                          bias is 0, and its rounding errors are no gradient */
    double dropout;    /* dropout of its input */
    float decay;       /* weight decay of its parameters */
    enum sl_activation activation;
    int back;      /* the output of the layer so many before is added to its sums; 0: none */
    float weight;  /* factor of the added output */
    bool identity; /* its input is added to its sums */
    int inputs;    /* number of earlier layers whose outputs it reads, each `in` wide; 0: one */
    int stride;    /* they are so many layers apart; 0: one */
    bool shared;   /* all its inputs have one weight */
    bool passing;  /* with --recompute, its output is made again going back */
    bool block;    /* its output may be made again (--recompute) */
    int heads;     /* heads of attention; 0: the kind has none */
    bool mean;     /* the output is the mean of the heads; else the heads are side by side */
    double attention_dropout;
    float slope;           /* slope of LeakyReLU for negative logits of attention */
    bool counted;          /* each parameter has a number of optimizer steps of its own */
    int64_t edge_features; /* features of edges that the layer reads; 0: none */
    int64_t relations;     /* relations of edges, each with a weight of its own; 0: none */
    int64_t
        bases; /* these weights are sums of so many (codelets/bases.h); 0: they are parameters */
};

/* Return the columns of a layer's parameters. */
static inline int64_t sl_layer_shape_columns(const struct sl_layer_shape *shape)
{
    return shape->mean ? shape->heads * shape->out : shape->out;
}

/* Return how many inputs of a layer have a weight of their own. */
static inline int sl_layer_shape_stacked(const struct sl_layer_shape *shape)
{
    return shape->inputs > 1 && !shape->shared ? shape->inputs : 1;
}

/* Return how many layers apart the inputs of a layer are. */
static inline int sl_layer_shape_stride(const struct sl_layer_shape *shape)
{
    return shape->stride > 1 ? shape->stride : 1;
}

/* Return how many layers before a layer its earliest input is. */
int sl_layer_shape_reach(const struct sl_layer_shape *shape);

/* Return how many weight matrices a layer's parameters hold. */
int sl_layer_shape_weights(const struct sl_layer_shape *shape);

/* Return how many matrices of a layer's parameters have a row for each unit of its input: those
 * that sl_layer_shape_weights counts, and a relation's or bases. They come first. */
int sl_layer_shape_unit_weights(const struct sl_layer_shape *shape);

/* Return whether each row tile's part of the parameters' gradient is one tile: the layer has no
 * products, or a program made it. */
bool sl_layer_shape_whole(const struct sl_layer_shape *shape);

/* Return how many rows of a layer's parameters are weights of edges: of their features, or a matrix
 * for each relation, or bases with a row of coefficients for each relation. They lie before the
 * vectors. */
int64_t sl_layer_shape_edge_rows(const struct sl_layer_shape *shape);

/* Return how many rows of a layer's parameters are vectors: they lie before the bias. */
int sl_layer_shape_vectors(const struct sl_layer_shape *shape);

/* Return the rows of a layer's parameters. */
int64_t sl_layer_shape_rows(const struct sl_layer_shape *shape);

/* A layer of a model. */
struct sl_model_layer {
    int index;
    struct sl_layer_shape shape;
    struct sl_tile parameters; // (weights · in + edge rows + vectors + bias, columns): weights,
                               // one after the other, the weights of edges, vectors, then
                               // the bias as a last row; owned by rank 0
    struct sl_tile state[SL_STATES]; // (states): the optimizer's state, shaped as `parameters`
    struct sl_tile best;   // shaped as `parameters`: parameters of the best epoch, on rank 0
    struct sl_tile counts; // shaped as `parameters`, for a counted layer: steps before this round,
                           // on rank 0; no rows: the layer is not counted
    struct sl_unit_block block; /* the block of a sub-model in this round; rows that are zero in the
                                   block keep gradients of zero */
};

/* The part of a model that ranks hold: all, with the state on rank 0; or, where a store has the
 * state (submodels/store.h), a copy of the parameters on each rank, or shapes alone. */
enum sl_model_holds { SL_MODEL_HOLDS_ALL, SL_MODEL_HOLDS_COPIES, SL_MODEL_HOLDS_NOTHING };

/* Options that all layers of a model share. */
/* First values of linear layers: encoders, residuals, jumps, classifiers, products of SAGE and of
 * transformers, the second of GIN. */
#define SL_LINEAR_INITS(ENTRY)                                                              \
    ENTRY(SL_LINEAR_GLOROT, "glorot")   /* uniform(±sqrt(6 / (in + out))); biases are 0 */ \
    ENTRY(SL_LINEAR_PYTORCH, "pytorch") /* uniform(±1 / sqrt(in)), biases as well */
enum sl_linear_init { SL_LINEAR_INITS(SL_CHOICE_CONSTANT) };

struct sl_model_options {
    int layers;    /* most layers of the model */
    int recompute; /* 0: all outputs stay in memory; N: going back, normalised rows are made again,
                      and outputs of blocks but that of each N-th; -1, in a plan: as 1 */
    int states;    /* numbers of optimizer state for each parameter */
    uint64_t seed;
    enum sl_linear_init linear_init;
    bool keep_best;
    enum sl_model_holds holds;
    double clip_norm; /* largest norm of all parameters' gradient together; 0: no limit */
};

struct sl_model {
    struct sl_runtime *rt;
    int layers; /* layers that were added so far */
    struct sl_model_layer *layer;
    struct sl_model_options options;
    struct sl_tile *end; /* one per rank (1, 1) of double: the epoch after which parameters stay as
                            they are, 0 for none; the tile of rank 0 decides */
    struct sl_tile best; // (1, 2) of double {value, epoch}, on rank 0
    struct sl_tile norm; // (1, 1) of double, on rank 0: the squared norm of the gradient
};

/* Open a model without layers on the ranks of `rt`. Return 0 or SL_ERR_SYSTEM; sl_model_destroy
 * frees the model in either case. */
int sl_model_open(struct sl_model *model, struct sl_runtime *rt,
                  const struct sl_model_options *options);

/* Append a layer, whose parameters, optimizer state and step counts are zero. Return 0 or
 * SL_ERR_SYSTEM. */
int sl_model_add(struct sl_model *model, const struct sl_layer_shape *shape);

struct sl_model_kind;

/* How a linear layer reads the outputs of all layers before it (--jump). */
#define SL_JUMPS(ENTRY)                                \
    ENTRY(SL_JUMP_NONE, "none")                        \
    ENTRY(SL_JUMP_CONCAT, "concat") /* side by side */ \
    ENTRY(SL_JUMP_SUM, "sum")                          \
    ENTRY(SL_JUMP_MAX, "max") /* the largest of all outputs, value by value */
enum sl_jump { SL_JUMPS(SL_CHOICE_CONSTANT) };

/* Heads of attention, and how they score an edge. */
struct sl_head_shape {
    int heads, last; /* heads of hidden layers, and of the last layer, whose mean is its output */
    double dropout;
    float slope;
};

/* Features and relations of edges that layers read; 0: none. */
struct sl_edge_shape {
    int64_t features, relations;
    int64_t bases; /* weights of relations are sums of so many matrices; 0: each is its own */
};

/* The shape from which sl_model_kind.list makes layers. */
struct sl_model_shape {
    struct sl_model_options options;
    const struct sl_model_kind *model;
    const struct sl_layer_kind *kind; /* kind of the layers that aggregate */
    const struct sl_reducer *reducer;
    int layers, hops;                  /* --layers, --hops */
    const struct sl_layer_kind *block; /* the first layer of a residual block */
    const struct sl_layer_kind *norm;  /* normalises sums before activations; NULL: none does */
    float teleport; /* the share of its own values that a vertex keeps in a hop */
    int64_t features, hidden, classes;
    bool bias;
    bool identity; /* layers add their inputs of equal width */
    enum sl_jump jump;
    bool encoder;                  /* a linear layer without activation precedes all layers */
    enum sl_activation activation; /* of hidden layers */
    bool classifier;               /* all layers are hidden ones, and a linear layer follows */
    const struct sl_layer_kind *decoder; /* parameters of a decoder of links, after all layers;
                                            NULL: there are none */
    double input_dropout, dropout;
    float decay_first, decay_rest;
    struct sl_head_shape attention;
    struct sl_edge_shape edges;
};

/* Return the columns of hidden layers: those of all heads. */
static inline int64_t sl_model_hidden(const struct sl_model_shape *shape)
{
    return shape->attention.heads ? shape->attention.heads * shape->hidden : shape->hidden;
}

/* A list of layers that grows. */
struct sl_layer_list {
    int count, room;
    struct sl_layer_shape *layer; // (count)
    bool failed;                  /* memory ran out */
};

/* Append a copy of the layer. Without memory, set list->failed. */
void sl_layer_list_add(struct sl_layer_list *list, const struct sl_layer_shape *layer);

/* A model's use of edge features, or of relations alone. */
enum sl_edge_use { SL_EDGES_UNREAD, SL_EDGES_READ, SL_EDGES_NEEDED, SL_EDGES_RELATIONS };

/* A model that --model names: one file model_<name>.c and one entry in SL_MODELS. */
struct sl_model_kind {
    const char *name;
    const struct sl_layer_kind *neighbours; /* kind of the layers that aggregate */
    const struct sl_layer_kind *residual;   /* kind with --residual linear; NULL: there is none */
    const struct sl_reducer *attention;     /* combines neighbours with heads; NULL: has no heads */
    const struct sl_reducer *reducer;       /* combines neighbours; NULL: sums, or --aggregator */
    bool alone_first;                       /* the first layer does not aggregate */
    bool unscaled;                          /* aggregates A + I as it is, whatever --norm */
    enum sl_edge_use edges;                 /* its layers' use of edge features */
    bool one_order;  /* rows of layers that are far apart meet: vertices have one order */
    bool inner;      /* a single layer has hidden columns, too */
    bool recomputes; /* has blocks, which --recompute makes again */
    void (*list)(const struct sl_model_shape *shape, struct sl_layer_list *list);
};

/* List the layers of the model. With shape->encoder, a linear layer comes first. With
 * shape->identity, hidden layers that aggregate add their input, but for a first layer. With
 * shape->norm, a layer of normalisation follows each layer that has an activation, and takes its
 * activation over. Without memory, set list->failed; the caller frees list->layer in either case.
 */
void sl_model_list(const struct sl_model_shape *shape, struct sl_layer_list *list);

#define SL_MODELS(ENTRY) \
    ENTRY(gcn)           \
    ENTRY(sage)          \
    ENTRY(gat)           \
    ENTRY(gatv2)         \
    ENTRY(transformer)   \
    ENTRY(resgcn) ENTRY(gin) ENTRY(gine) ENTRY(rgcn) ENTRY(sgc) ENTRY(appnp) ENTRY(jknet)

#define SL_MODEL_DECLARED(name) extern const struct sl_model_kind sl_model_##name;
SL_MODELS(SL_MODEL_DECLARED)
#undef SL_MODEL_DECLARED

/* Names that --model takes: "|gcn|sage|…". */
#define SL_MODEL_NAMED(name) "|" #name
#define SL_MODEL_NAMES       SL_MODELS(SL_MODEL_NAMED)

/* Return the model of that name, or NULL. */
const struct sl_model_kind *sl_model_find(const char *name);

/* Open a model and append all layers of that shape. Return 0 or SL_ERR_SYSTEM; sl_model_destroy
 * frees the model in either case. */
int sl_model_create(struct sl_model *model, struct sl_runtime *rt,
                    const struct sl_model_shape *shape);
void sl_model_destroy(struct sl_model *model);

/* A named part of a layer's parameters: rows, whose optimizer state has the same rows. Columns are
 * units of the layer's output, for all heads. */
struct sl_parameter {
    const char *name;
    int64_t row, rows, cols;
    bool by_input; /* rows are units of the input; else of features of edges, or one row */
};

/* List the named parts of a layer's parameters from the first row on. Return how many. */
int sl_model_parameters(const struct sl_model_layer *layer,
                        struct sl_parameter list[SL_PARAMETERS]);

/* Return whether a layer has parameters. */
static inline bool sl_model_learns(const struct sl_model_layer *layer)
{
    return layer->parameters.rows > 0;
}

/* Return the row of a layer's parameters that is the bias. */
int64_t sl_model_bias_row(const struct sl_model_layer *layer);

/* Submit Glorot initialisation of rows of a layer's parameters, from row `first` on; biases are 0.
 * A layer without weights has all rows in one tile. */
void sl_model_init_rows(struct sl_model *model, int layer, int64_t first, struct sl_tile *tile);

/* Submit the broadcast of the parameters from rank 0 to all ranks. */
void sl_model_spread(struct sl_model *model);

#endif
