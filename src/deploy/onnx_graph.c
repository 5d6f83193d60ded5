#include "deploy/onnx_graph.h"

#include <stdarg.h>
#include <stdio.h>

/* Numbers of fields and of types: onnx.proto3, IR version 8. */
enum { FLOAT = 1, INT64 = 7, ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3 };

static const char *const inputs[] = {
    [SL_ONNX_FEATURES] = "features",           [SL_ONNX_SOURCE] = "edge_source",
    [SL_ONNX_TARGET] = "edge_target",          [SL_ONNX_WEIGHT] = "edge_weight",
    [SL_ONNX_EDGE_FEATURES] = "edge_features", [SL_ONNX_EDGE_TYPE] = "edge_type",
};

static const char *name_of(int tensor, char name[32])
{
    if (tensor < SL_ONNX_INPUTS)
        return inputs[tensor];
    snprintf(name, 32, "t%d", tensor);
    return name;
}

/* ---- Nodes ---- */

static struct sl_message attribute(const char *name, int type)
{
    struct sl_message message = {0};
    sl_message_text(&message, 1, name);
    sl_message_integer(&message, 20, type);
    return message;
}

void sl_onnx_set_integer(struct sl_onnx *o, const char *name, int64_t value)
{
    struct sl_message message = attribute(name, ATTRIBUTE_INT);
    sl_message_integer(&message, 3, value);
    sl_message_inner(&o->attributes, 5, &message);
}

void sl_onnx_set_float(struct sl_onnx *o, const char *name, double value)
{
    struct sl_message message = attribute(name, ATTRIBUTE_FLOAT);
    sl_message_float(&message, 2, (float)value);
    sl_message_inner(&o->attributes, 5, &message);
}

void sl_onnx_set_text(struct sl_onnx *o, const char *name, const char *text)
{
    struct sl_message message = attribute(name, ATTRIBUTE_STRING);
    sl_message_text(&message, 4, text);
    sl_message_inner(&o->attributes, 5, &message);
}

/* Append a node. Its attributes are those set since the last node. */
static void add_node(struct sl_onnx *o, struct sl_message *node, const char *output,
                     const char *operator)
{
    sl_message_text(node, 2, output);
    sl_message_text(node, 3, output);
    sl_message_text(node, 4, operator);
    sl_message_join(node, &o->attributes);
    sl_message_inner(&o->nodes, 1, node);
}

int sl_onnx_node(struct sl_onnx *o, const char *operator, int count, ...)
{
    const int output = o->tensors++;
    struct sl_message node = {0};
    char name[32];
    va_list tensors;
    va_start(tensors, count);
    for (int k = 0; k < count; k++)
        sl_message_text(&node, 1, name_of(va_arg(tensors, int), name));
    va_end(tensors);
    add_node(o, &node, name_of(output, name), operator);
    return output;
}

void sl_onnx_name_logits(struct sl_onnx *o, int tensor)
{
    struct sl_message node = {0};
    char name[32];
    sl_message_text(&node, 1, name_of(tensor, name));
    add_node(o, &node, "logits", "Identity");
}

/* ---- Constants ---- */

/* Append a tensor of little-endian numbers, as memory has them on the machines that Starling runs
 * on. */
static void add_constant(struct sl_onnx *o, const char *name, int type, int dims,
                         const int64_t *dim, const void *numbers, size_t bytes)
{
    struct sl_message tensor = {0};
    for (int d = 0; d < dims; d++)
        sl_message_integer(&tensor, 1, dim[d]);
    sl_message_integer(&tensor, 2, type);
    sl_message_text(&tensor, 8, name);
    sl_message_bytes(&tensor, 9, numbers, bytes);
    sl_message_inner(&o->initializers, 5, &tensor);
}

int sl_onnx_integers(struct sl_onnx *o, int count, const int64_t *numbers)
{
    const int64_t dim = count;
    char name[32];
    add_constant(o, name_of(o->tensors, name), INT64, 1, &dim, numbers,
                 (size_t)count * sizeof *numbers);
    return o->tensors++;
}

int sl_onnx_floats(struct sl_onnx *o, int dims, const int64_t *dim, const float *numbers)
{
    size_t bytes = sizeof *numbers;
    char name[32];
    for (int d = 0; d < dims; d++)
        bytes *= (size_t)dim[d];
    add_constant(o, name_of(o->tensors, name), FLOAT, dims, dim, numbers, bytes);
    return o->tensors++;
}

int sl_onnx_number(struct sl_onnx *o, double number)
{
    const float value = (float)number;
    return sl_onnx_floats(o, 1, (int64_t[]){1}, &value);
}

/* ---- Inputs and outputs ---- */

bool sl_onnx_has_input(const struct sl_onnx *o, enum sl_onnx_input input)
{
    const struct sl_program *program = &o->bound->program;
    bool edges = false;
    for (int s = 0; s < program->count; s++)
        edges = edges || sl_step_reads_edges(program->step[s].kind);
    switch (input) {
    case SL_ONNX_FEATURES:
        return true;
    case SL_ONNX_WEIGHT:
        return edges && !program->edge_features && !program->relations &&
               o->bound->weights != SL_WEIGHTS_ABSENT;
    case SL_ONNX_EDGE_FEATURES:
        return program->edge_features > 0;
    case SL_ONNX_EDGE_TYPE:
        return program->relations > 0;
    default:
        return edges;
    }
}

static void add_dimension(struct sl_message *shape, const char *name, int64_t size)
{
    struct sl_message dimension = {0};
    if (name)
        sl_message_text(&dimension, 2, name);
    else
        sl_message_integer(&dimension, 1, size);
    sl_message_inner(shape, 1, &dimension);
}

/* Append a field that describes a matrix (rows, columns); `columns` 0: a vector. */
static void describe(struct sl_message *graph, int field, const char *name, int type,
                     const char *rows, int64_t columns)
{
    struct sl_message shape = {0}, tensor = {0}, of = {0}, value = {0};
    add_dimension(&shape, rows, 0);
    if (columns)
        add_dimension(&shape, NULL, columns);
    sl_message_integer(&tensor, 1, type);
    sl_message_inner(&tensor, 2, &shape);
    sl_message_inner(&of, 1, &tensor);
    sl_message_text(&value, 1, name);
    sl_message_inner(&value, 2, &of);
    sl_message_inner(graph, field, &value);
}

void sl_onnx_describe(const struct sl_onnx *o, struct sl_message *graph)
{
    const struct sl_program *program = &o->bound->program;
    const struct {
        int type;
        const char *rows;
        int64_t columns;
    } of[SL_ONNX_INPUTS] = {
        [SL_ONNX_FEATURES] = {FLOAT, "vertices", program->features},
        [SL_ONNX_SOURCE] = {INT64, "edges", 0},
        [SL_ONNX_TARGET] = {INT64, "edges", 0},
        [SL_ONNX_WEIGHT] = {FLOAT, o->bound->weights == SL_WEIGHTS_UNKNOWN ? "weights" : "edges",
                            0},
        [SL_ONNX_EDGE_FEATURES] = {FLOAT, "edges", program->edge_features},
        [SL_ONNX_EDGE_TYPE] = {INT64, "edges", 0},
    };
    for (int i = 0; i < SL_ONNX_INPUTS; i++)
        if (sl_onnx_has_input(o, (enum sl_onnx_input)i))
            describe(graph, 11, inputs[i], of[i].type, of[i].rows, of[i].columns);
    describe(graph, 12, "logits", FLOAT, "vertices", program->outputs);
}
