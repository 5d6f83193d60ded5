#include "deploy/onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/error.h"
#include "core/file.h"

enum { IR_VERSION = 8, OPSET = 18 };

/* Append an entry of the model's metadata. */
static void add_property(struct sl_message *model, const char *key, const char *value)
{
    struct sl_message entry = {0};
    sl_message_text(&entry, 1, key);
    sl_message_text(&entry, 2, value);
    sl_message_inner(model, 14, &entry);
}

/* Append the number that edge_weight has by default, where nobody knows whether the edges of the
 * training had weights. */
static void add_default_weight(struct sl_onnx *o)
{
    const float one = 1.0f;
    struct sl_message tensor = {0};
    sl_message_integer(&tensor, 1, 1);
    sl_message_integer(&tensor, 2, 1);
    sl_message_text(&tensor, 8, "edge_weight");
    sl_message_bytes(&tensor, 9, &one, sizeof one);
    sl_message_inner(&o->initializers, 5, &tensor);
}

static void add_graph(struct sl_onnx *o, struct sl_message *model)
{
    struct sl_message graph = {0};
    sl_message_join(&graph, &o->nodes);
    sl_message_text(&graph, 2, o->bound->program.model);
    sl_message_join(&graph, &o->initializers);
    sl_onnx_describe(o, &graph);
    sl_message_inner(model, 7, &graph);
}

/* Make the bytes of the model. */
static struct sl_message make_model(struct sl_onnx *o)
{
    const struct sl_program *program = &o->bound->program;
    struct sl_message model = {0}, opset = {0};
    for (int s = 0; s < program->count; s++)
        sl_onnx_step(o, s);
    sl_onnx_name_logits(o, o->value[program->count]);
    if (sl_onnx_has_input(o, SL_ONNX_WEIGHT) && o->bound->weights == SL_WEIGHTS_UNKNOWN)
        add_default_weight(o);
    sl_message_integer(&model, 1, IR_VERSION);
    sl_message_text(&model, 2, "Starling");
    sl_message_text(&model, 3, SL_VERSION);
    add_graph(o, &model);
    sl_message_text(&opset, 1, "");
    sl_message_integer(&opset, 2, OPSET);
    sl_message_inner(&model, 8, &opset);
    add_property(&model, "model", program->model);
    add_property(&model, "output", sl_program_output_name(program->output));
    return model;
}

static int write_bytes(const struct sl_message *model, const char *path)
{
    struct sl_new_file out;
    const int code = sl_file_create(&out, path);
    if (code)
        return code;
    errno = ENOSPC; /* where fwrite does not say */
    return sl_file_commit(&out, fwrite(model->bytes, 1, model->size, out.file) == model->size);
}

int sl_onnx_write(const struct sl_bound *bound, const char *path)
{
    struct sl_onnx o = {.bound = bound,
                        .tensors = SL_ONNX_INPUTS,
                        .value = calloc((size_t)bound->program.count + 1, sizeof *o.value)};
    if (!o.value)
        return sl_error(SL_ERR_SYSTEM, "%s: no memory for %d steps", path, bound->program.count);
    struct sl_message model = make_model(&o);
    const int code =
        model.failed
            ? sl_error(SL_ERR_USAGE,
                       "--onnx %s: no memory for the model, or it takes 2 GiB, the most of the "
                       "format",
                       path)
            : write_bytes(&model, path);
    sl_message_free(&model);
    free(o.value);
    return code;
}
