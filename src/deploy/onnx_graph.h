/* The nodes of an ONNX graph. A tensor is a number; its name in the file is "t<number>". */
#ifndef SL_DEPLOY_ONNX_GRAPH_H
#define SL_DEPLOY_ONNX_GRAPH_H

#include "deploy/bound.h"
#include "deploy/protobuf.h"

/* The inputs of a graph, in this order; their names are in onnx_graph.c. */
enum sl_onnx_input {
    SL_ONNX_FEATURES,
    SL_ONNX_SOURCE,
    SL_ONNX_TARGET,
    SL_ONNX_WEIGHT,
    SL_ONNX_EDGE_FEATURES,
    SL_ONNX_EDGE_TYPE,
    SL_ONNX_INPUTS,
};

/* Tensors of the edges, made once for all steps; 0 (the features, which they never are): not yet.
 */
struct sl_onnx_edges {
    int source, target, weight; /* (E) each, with the loops where the set has loops */
    int features;               /* (E, edge features) */
    int column;                 /* (E, 1): the weights */
    int sum, count;             /* (V, 1): of the weights, and how many there are */
    int factors[SL_STEP_NORMS]; /* (E, 1): of a sum */
};

struct sl_onnx {
    const struct sl_bound *bound;
    struct sl_message nodes, initializers; /* fields of a GraphProto */
    struct sl_message attributes;          /* fields of the next node */
    int tensors;                           /* numbers that are given away */
    int vertices;                          /* (1) of int64: how many vertices; 0: not yet */
    struct sl_onnx_edges edges[2];         /* without loops, and with them */
    int *value;                            // (steps + 1): the tensor of each value
};

/* Set an attribute of the next node. */
void sl_onnx_set_integer(struct sl_onnx *o, const char *name, int64_t value);
void sl_onnx_set_float(struct sl_onnx *o, const char *name, double value);
void sl_onnx_set_text(struct sl_onnx *o, const char *name, const char *text);

/* Append a node of `count` inputs, which are numbers of tensors. Return the number of its output.
 */
int sl_onnx_node(struct sl_onnx *o, const char *operator, int count, ...);

/* Append the node that gives a tensor the name "logits". */
void sl_onnx_name_logits(struct sl_onnx *o, int tensor);

/* Append a constant: whole numbers (count), numbers in `dims` dimensions, or one number (1). Return
 * its number. */
int sl_onnx_integers(struct sl_onnx *o, int count, const int64_t *numbers);
int sl_onnx_floats(struct sl_onnx *o, int dims, const int64_t *dim, const float *numbers);
int sl_onnx_number(struct sl_onnx *o, double number);

/* Append the description of the inputs that steps read, and of the output, to a GraphProto. */
void sl_onnx_describe(const struct sl_onnx *o, struct sl_message *graph);

/* Whether the graph has an input: of the edges, those that the program reads. */
bool sl_onnx_has_input(const struct sl_onnx *o, enum sl_onnx_input input);

#endif
