#include "graphs/forward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/network.h"

int sl_forward_input(const struct sl_forward *forward)
{
    return forward->outputs[forward->index];
}

/* Return the name of a layer's tensor in a checkpoint (malloc). NULL: no memory. */
static char *tensor_name(const struct sl_forward *forward, const char *parameter)
{
    char name[64];
    snprintf(name, sizeof name, "layer.%d.%s", forward->index, parameter);
    return strdup(name);
}

int sl_forward_step(const struct sl_forward *forward, int value, struct sl_step step,
                    const char *const names[SL_STEP_TENSORS])
{
    step.of[0] = value;
    for (int v = sl_step_values(step.kind); v < SL_STEP_VALUES; v++)
        step.of[v] = -1;
    for (int t = 0; names && t < SL_STEP_TENSORS && names[t]; t++) {
        step.tensor[t] = tensor_name(forward, names[t]);
        forward->program->failed = forward->program->failed || !step.tensor[t];
    }
    return sl_program_add(forward->program, &step);
}

int sl_forward_product(const struct sl_forward *forward, int value, int weight, int part)
{
    const struct sl_layer_shape *shape = forward->shape;
    const bool stacked = sl_layer_shape_stacked(shape) > 1;
    const char *const names[SL_STEP_TENSORS] = {shape->kind->weights.name[weight]};
    return sl_forward_step(forward, value,
                           (struct sl_step){.kind = SL_STEP_PRODUCT,
                                            .row = stacked ? part * shape->in : 0,
                                            .rows = stacked ? shape->in : 0},
                           names);
}

int sl_forward_aggregate(const struct sl_forward *forward, int value, enum sl_step_reduce reduce)
{
    return sl_forward_step(forward, value,
                           (struct sl_step){.kind = SL_STEP_AGGREGATE,
                                            .reduce = reduce,
                                            .norm = forward->norm,
                                            .loops = forward->shape->kind->loops},
                           NULL);
}

int sl_forward_add(const struct sl_forward *forward, double x, int first, double y, int second)
{
    return sl_forward_step(
        forward, first,
        (struct sl_step){.kind = SL_STEP_ADD, .of = {first, second}, .x = x, .y = y}, NULL);
}

int sl_forward_bias(const struct sl_forward *forward, int value, const char *name)
{
    const char *const names[SL_STEP_TENSORS] = {name};
    return sl_forward_step(forward, value, (struct sl_step){.kind = SL_STEP_BIAS}, names);
}

int sl_forward_finish(const struct sl_forward *forward, int value)
{
    const struct sl_layer_shape *shape = forward->shape;
    if (shape->identity)
        value = sl_forward_add(forward, 1.0, value, 1.0, sl_forward_input(forward));
    if (shape->bias)
        value = sl_forward_bias(forward, value, shape->kind->bias);
    if (shape->back)
        value = sl_forward_add(forward, 1.0, value, (double)shape->weight,
                               forward->outputs[forward->index + 1 - shape->back]);
    if (shape->activation == SL_ACTIVATION_RELU)
        value = sl_forward_step(forward, value, (struct sl_step){.kind = SL_STEP_RELU}, NULL);
    if (shape->activation == SL_ACTIVATION_ELU)
        value = sl_forward_step(forward, value, (struct sl_step){.kind = SL_STEP_ELU}, NULL);
    return value;
}

/* Refuse layer l, which has no steps. */
static int refuse(const struct sl_layer_shape *shape, int l)
{
    if (shape->kind->own || (shape->reducer && shape->reducer->own))
        return sl_error(SL_ERR_USAGE,
                        "layer %d of the model, %s, has a function of the program that trained it "
                        "(expected a model whose layers and reducers are Starling's own)",
                        l, shape->kind->name);
    return sl_error(SL_ERR_USAGE,
                    "layer %d of the model, %s, has no forward program yet (expected a model of "
                    "other layers)",
                    l, shape->kind->name);
}

int sl_forward_layers(struct sl_program *program, enum sl_step_norm norm, int value,
                      const struct sl_layer_list *list)
{
    int *outputs = malloc(((size_t)list->count + 1) * sizeof *outputs);
    int code = outputs ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a list of layers");
    if (outputs)
        outputs[0] = value;
    for (int l = 0; !code && l < list->count; l++) {
        const struct sl_layer_shape *shape = &list->layer[l];
        const struct sl_forward forward = {program, norm, shape, l, outputs};
        outputs[l + 1] = shape->kind->describe ? shape->kind->describe(&forward) : -1;
        if (outputs[l + 1] < 0)
            code = refuse(shape, l);
    }
    free(outputs);
    return code || !program->failed ? code
                                    : sl_error(SL_ERR_SYSTEM, "no memory for a forward program");
}
