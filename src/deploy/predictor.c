/* The functions of include/starling-predict.h. Errors below keep their sentence for the thread;
 * each function copies it to its caller. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/error.h"
#include "core/plain.h"
#include "deploy/steps.h"

struct starling_predictor {
    struct sl_bound bound;
    struct starling_predictor_info info;
};

static int tell(int code, struct starling_predictor_error *error)
{
    if (error)
        sl_plain_copy(error->text, sizeof error->text, code ? sl_error_message() : "");
    return code;
}

const char *starling_predictor_version(void)
{
    return SL_VERSION;
}

/* ---- Open ---- */

static struct starling_predictor_info info_of(const struct sl_bound *bound)
{
    const struct sl_program *program = &bound->program;
    static const enum starling_predictor_output outputs[] = {
        [SL_OUTPUT_CLASSES] = STARLING_PREDICTOR_CLASSES,
        [SL_OUTPUT_LABELS] = STARLING_PREDICTOR_LABELS,
        [SL_OUTPUT_NUMBERS] = STARLING_PREDICTOR_NUMBERS,
        [SL_OUTPUT_EMBEDDINGS] = STARLING_PREDICTOR_EMBEDDINGS,
    };
    return (struct starling_predictor_info){
        .model = program->model,
        .features = program->features,
        .outputs = program->outputs,
        .edge_features = program->edge_features,
        .relations = program->relations,
        .identity = program->identity,
        .output = outputs[program->output],
        .edge_weights =
            bound->weights == SL_WEIGHTS_UNKNOWN ? -1 : bound->weights == SL_WEIGHTS_PRESENT};
}

int starling_predictor_open(const char *path, starling_predictor **predictor,
                            struct starling_predictor_error *error)
{
    if (predictor)
        *predictor = NULL;
    if (!path || !predictor)
        return tell(sl_error(SL_ERR_USAGE, path ? "the predictor is NULL (expected a place for it)"
                                                : "the path is NULL (expected a checkpoint)"),
                    error);
    struct starling_predictor *new = calloc(1, sizeof *new);
    if (!new)
        return tell(sl_error(SL_ERR_SYSTEM, "%s: no memory for a predictor", path), error);
    const int code = sl_bound_read(&new->bound, path);
    new->info = info_of(&new->bound);
    if (code)
        starling_predictor_close(new);
    else
        *predictor = new;
    return tell(code, error);
}

void starling_predictor_close(starling_predictor *predictor)
{
    if (!predictor)
        return;
    sl_bound_free(&predictor->bound);
    free(predictor);
}

const struct starling_predictor_info *starling_predictor_info(const starling_predictor *predictor)
{
    return predictor ? &predictor->info : NULL;
}

const char *starling_predictor_class_name(const starling_predictor *predictor, int64_t output)
{
    const json_t *description = predictor ? predictor->bound.checkpoint.description : NULL,
                 *names = json_object_get(json_object_get(description, "dataset"), "class_names");
    return output < 0 ? NULL : json_string_value(json_array_get(names, (size_t)output));
}

/* ---- Run ---- */

static int check_features(const struct sl_program *program,
                          const struct starling_predictor_graph *graph)
{
    if (program->identity && (graph->features || graph->vertices != program->features))
        return sl_error(SL_ERR_USAGE,
                        "the model was trained without features on a graph of %" PRId64
                        " vertices (expected this graph, and no features)",
                        program->features);
    if (program->identity)
        return 0;
    if (!graph->features || graph->feature_columns != program->features)
        return sl_error(SL_ERR_USAGE,
                        "the graph has %" PRId64 " columns of features (expected %" PRId64
                        ", as the model)",
                        graph->features ? graph->feature_columns : 0, program->features);
    for (int64_t k = 0; k < graph->vertices * graph->feature_columns; k++)
        if (graph->features[k] - graph->features[k] != 0.0f)
            return sl_error(SL_ERR_DATA,
                            "features: row %" PRId64 ", column %" PRId64
                            " is not finite (expected finite numbers)",
                            k / graph->feature_columns, k % graph->feature_columns);
    return 0;
}

/* Make the rows of an identity that a step reads other than in a product. */
static int make_identity(struct sl_value *value)
{
    const int64_t n = value->width;
    value->own = calloc((size_t)n * (size_t)n, sizeof *value->own);
    if (!value->own)
        return sl_error(SL_ERR_SYSTEM, "no memory for an identity of %" PRId64 " rows", n);
    for (int64_t i = 0; i < n; i++)
        value->own[i * n + i] = 1.0f;
    value->data = value->own;
    return 0;
}

static void drop(struct sl_value *value)
{
    free(value->own);
    *value = (struct sl_value){.width = value->width};
}

/* Compute step s; the last one writes `logits`. */
static int run_step(const struct sl_bound *bound, const struct sl_graph_rows *graph, int s,
                    struct sl_value *values, float *logits)
{
    const struct sl_step *step = &bound->program.step[s];
    const size_t width = (size_t)bound->width[s + 1];
    struct sl_value *out = &values[s + 1];
    struct sl_computing c = {.bound = bound,
                             .graph = graph,
                             .step = step,
                             .tensor = &bound->tensor[s * SL_STEP_TENSORS],
                             .width = bound->width[s + 1]};
    int code = 0;
    for (int v = 0; !code && v < sl_step_values(step->kind); v++) {
        c.value[v] = &values[step->of[v]];
        if (!c.value[v]->data && step->kind != SL_STEP_PRODUCT)
            code = make_identity(&values[step->of[v]]);
    }
    *out = (struct sl_value){.width = bound->width[s + 1]};
    const bool last = s == bound->program.count - 1;
    if (!code && !last)
        out->own = malloc((size_t)graph->vertices * width * sizeof *out->own);
    c.z = last ? logits : out->own;
    out->data = c.z;
    if (!code && !c.z)
        code = sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " rows of %zu columns",
                        graph->vertices, width);
    if (!code)
        code = sl_step_compute(&c);
    for (int v = 0; v < sl_step_values(step->kind); v++)
        if (bound->last[step->of[v]] == s)
            drop(&values[step->of[v]]);
    return code;
}

static int run(const struct sl_bound *bound, const struct starling_predictor_graph *graph,
               const struct sl_graph_rows *rows, float *logits)
{
    const int count = bound->program.count;
    struct sl_value *values = calloc((size_t)count + 1, sizeof *values);
    if (!values)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d steps", count);
    values[0] = (struct sl_value){.data = graph->features, .width = bound->width[0]};
    int code = 0;
    for (int s = 0; !code && s < count; s++)
        code = run_step(bound, rows, s, values, logits);
    for (int v = 0; v <= count; v++)
        drop(&values[v]);
    free(values);
    return code;
}

int starling_predictor_run(const starling_predictor *predictor,
                           const struct starling_predictor_graph *graph, float *logits,
                           struct starling_predictor_error *error)
{
    struct sl_graph_rows rows;
    if (!predictor || !graph || !logits)
        return tell(sl_error(SL_ERR_USAGE, "the predictor, the graph or the logits are NULL"),
                    error);
    int code = sl_graph_rows_take(&rows, &predictor->bound.program, graph);
    if (!code)
        code = check_features(&predictor->bound.program, graph);
    if (!code)
        code = run(&predictor->bound, graph, &rows, logits);
    sl_graph_rows_free(&rows);
    return tell(code, error);
}

int starling_predictor_classes(const starling_predictor *predictor, int64_t rows,
                               const float *logits, int32_t *classes,
                               struct starling_predictor_error *error)
{
    if (!predictor || rows < 0 || (rows > 0 && (!logits || !classes)))
        return tell(sl_error(SL_ERR_USAGE, "the predictor, the logits or the classes are NULL, or "
                                           "there are fewer rows than 0"),
                    error);
    const struct sl_program *program = &predictor->bound.program;
    const int64_t columns = program->outputs;
    if (program->output != SL_OUTPUT_CLASSES && program->output != SL_OUTPUT_LABELS)
        return tell(sl_error(SL_ERR_USAGE, "the model predicts numbers or embeddings (expected a "
                                           "model of classes or labels)"),
                    error);
    if (program->output == SL_OUTPUT_LABELS) {
        for (int64_t k = 0; k < rows * columns; k++)
            classes[k] = logits[k] > 0.0f;
        return tell(0, error);
    }
    for (int64_t i = 0; i < rows; i++) {
        classes[i] = 0;
        for (int32_t j = 1; j < columns; j++)
            if (logits[i * columns + j] > logits[i * columns + classes[i]])
                classes[i] = j;
    }
    return tell(0, error);
}
