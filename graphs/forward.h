/* The forward program of a list of layers (forward/program.h). A kind of layer describes its own
 * steps: sl_layer_kind.describe calls the functions below. Dropout does not count. */
#ifndef SL_GRAPHS_FORWARD_H
#define SL_GRAPHS_FORWARD_H

#include "forward/program.h"
#include "graphs/model.h"

/* A layer whose steps are appended. */
struct sl_forward {
    struct sl_program *program;
    enum sl_step_norm norm; /* of sums over neighbours */
    const struct sl_layer_shape *shape;
    int index;    /* number of the layer, from 0 */
    int *outputs; // (index + 1): the value of the features, then the outputs of the layers before
};

/* Return the value that the layer reads. */
int sl_forward_input(const struct sl_forward *forward);

/* Append a step on the value, whose tensors are parameters of the layer by name; NULL: none.
 * Return the value that the step writes. */
int sl_forward_step(const struct sl_forward *forward, int value, struct sl_step step,
                    const char *const names[SL_STEP_TENSORS]);

/* Append the product of a value with rows of the weight matrix of that number: those of input
 * `part`, where the weights of several inputs are stacked. Return the value of the product. */
int sl_forward_product(const struct sl_forward *forward, int value, int weight, int part);

/* Append an aggregation with the model's norm; loops as the kind of layer says. */
int sl_forward_aggregate(const struct sl_forward *forward, int value, enum sl_step_reduce reduce);

/* Append x·first + y·second. */
int sl_forward_add(const struct sl_forward *forward, double x, int first, double y, int second);

/* Append the addition of a vector of the layer, by name. */
int sl_forward_bias(const struct sl_forward *forward, int value, const char *name);

/* Append what makes a layer's output of its sums: its own input, the output of an earlier layer,
 * bias, activation. Return the value of the output. */
int sl_forward_finish(const struct sl_forward *forward, int value);

/* Append the steps of all layers after `value`, which has the features. Return 0, SL_ERR_USAGE
 * where a layer has no steps, or SL_ERR_SYSTEM. */
int sl_forward_layers(struct sl_program *program, enum sl_step_norm norm, int value,
                      const struct sl_layer_list *list);

#endif
