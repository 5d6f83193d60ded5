/* What is trained: parameters and the optimizer's state. Several networks may share a model. */
#ifndef SL_GRAPHS_MODEL_H
#define SL_GRAPHS_MODEL_H

#include "core/runtime.h"
#include "core/tile.h"
#include "graphs/reducer.h"

struct sl_layer_kind;

enum { SL_WEIGHTS = 2 }; /* most matrices of a layer's parameters, besides biases */

/* A layer of a model. */
struct sl_model_layer {
    int index;
    const struct sl_layer_kind *kind;
    const struct sl_reducer *reducer; /* of neighbours */
    int64_t in, out;
    bool bias;
    double dropout;            /* on its input */
    float decay;               /* weight decay of its parameters */
    struct sl_tile parameters; // (weights · in + bias, out): weights, one after the other, then
                               // the bias as a last row; owned by rank 0
    struct sl_tile moment1, moment2; // likewise: optimizer state, on rank 0
    struct sl_tile best;             // likewise: parameters of the best epoch, on rank 0
};

struct sl_model {
    struct sl_runtime *rt;
    int layers;
    struct sl_model_layer *layer;
    uint64_t seed;
    double clip_norm;    /* the limit of the gradient's norm; 0: none */
    struct sl_tile *end; /* one per rank (1, 1) of double: the epoch after which parameters stay
                         as they are, 0 for none; that of rank 0 counts */
    struct sl_tile best; // (1, 2) of double {value, epoch}, on rank 0
    struct sl_tile norm; // (1, 1) of double, on rank 0: the squared norm of the gradient
};

/* What a model is made from. */
struct sl_model_shape {
    const char *layer; /* kind of every layer */
    const struct sl_reducer *reducer;
    int layers;
    int64_t features, hidden, classes;
    bool bias;
    double input_dropout, dropout;
    uint64_t seed;
    float decay_first, decay_rest;
    bool keep_best;
    double clip_norm; /* most of the norm of all parameters' gradient; 0: no limit */
};

/* Makes the parameters, and the optimizer's state, zero. SL_ERR_SYSTEM; sl_model_destroy in either
 * case. */
int sl_model_create(struct sl_model *model, struct sl_runtime *rt,
                    const struct sl_model_shape *shape);
void sl_model_destroy(struct sl_model *model);

/* A named part of a layer's parameters: rows of (…, out), whose optimizer state has the same rows.
 * Columns are units of the layer's output. */
struct sl_parameter {
    const char *name;
    int64_t row, rows;
    bool by_input; /* rows are units of the input; else it has one row */
};

/* Lists them from the first row on; returns how many. */
int sl_model_parameters(const struct sl_model_layer *layer,
                        struct sl_parameter list[SL_WEIGHTS + 1]);

/* The row of a layer's parameters that is the bias. */
int64_t sl_model_bias_row(const struct sl_model_layer *layer);

/* Submits Glorot initialisation of all weights (biases 0), and spreads the parameters. */
void sl_model_init(struct sl_model *model);

/* Sends the parameters from rank 0 to all. */
void sl_model_spread(struct sl_model *model);

/* Makes the best parameters the current ones, on all ranks. */
void sl_model_restore_best(struct sl_model *model);

#endif
