/* Predictions: a model applied to a graph. */
#include <stdlib.h>

#include "api/api.h"
#include "core/alike.h"
#include "core/error.h"
#include "core/log.h"

/* ---- Outputs ---- */

static void fill_classes(const struct sl_loss *loss, struct starling_prediction *p)
{
    const float *logits = p->output[STARLING_LOGITS];
    if (loss->form == SL_TARGET_CLASS)
        sl_apply_find_classes(logits, p->rows, p->columns, p->classes);
    else
        for (int64_t k = 0; k < p->rows * p->columns; k++)
            p->classes[k] = logits[k] > 0.0f;
}

/* Derive probabilities and classes from the logits. Numbers have neither. */
static int derive(const struct sl_loss *loss, struct starling_prediction *p)
{
    if (!loss->classes)
        return 0;
    p->label_columns = loss->form == SL_TARGET_CLASS ? 1 : p->columns;
    p->output[STARLING_PROBABILITIES] = malloc((size_t)(p->rows * p->columns) * sizeof(float) + 1);
    p->classes = malloc((size_t)(p->rows * p->label_columns) * sizeof *p->classes + 1);
    if (!p->output[STARLING_PROBABILITIES] || !p->classes)
        return sl_error(SL_ERR_SYSTEM, "no memory for %lld predictions", (long long)p->rows);
    sl_apply_find_probabilities(loss, p->output[STARLING_LOGITS], p->rows, p->columns,
                                p->output[STARLING_PROBABILITIES]);
    fill_classes(loss, p);
    return 0;
}

/* ---- Predict ---- */

static int collect(struct sl_apply *apply, bool embeddings, struct starling_prediction *p)
{
    struct sl_runtime *rt = apply->trainer.rt;
    struct sl_matrix *hidden = apply->trainer.whole.graph.links ? apply->logits : &apply->hidden;
    p->rows = apply->source.vertices;
    p->columns = apply->logits->cols;
    p->hidden = hidden->cols;
    if (embeddings)
        p->output[STARLING_EMBEDDINGS] = sl_apply_collect(apply, hidden);
    p->output[STARLING_LOGITS] = sl_apply_collect(apply, apply->logits);
    int code = 0;
    if (rt->rank == 0 &&
        (!p->output[STARLING_LOGITS] || (embeddings && !p->output[STARLING_EMBEDDINGS])))
        code = sl_error(SL_ERR_SYSTEM, "no memory for %lld predictions", (long long)p->rows);
    if (!code && rt->rank == 0)
        code = derive(apply->trainer.whole.graph.objective.loss, p);
    p->result = sl_api_result(&apply->outcome);
    return sl_runtime_agree(rt, code);
}

struct work {
    struct sl_runtime *rt;
    const starling_model *model;
    const starling_graph *graph;
    const struct sl_apply_options *options;
    struct sl_apply apply;
    struct starling_prediction *prediction;
};

static int run_model(void *argument)
{
    struct work *w = argument;
    const int code = sl_apply_create(&w->apply, w->rt, w->graph->source.path, &w->graph->source,
                                     &w->model->checkpoint, "the model", w->options);
    return code ? code : collect(&w->apply, w->options->embeddings, w->prediction);
}

static int start_and_run(const starling_model *model, starling_graph *graph,
                         const struct sl_config *config, const bool *given, bool embeddings,
                         struct starling_prediction *p)
{
    const struct sl_apply_options options = {.distribution = config->ranks.distribution,
                                             .grid = config->ranks.grid,
                                             .tiles = config->machine.tiles,
                                             .replication = config->ranks.replication,
                                             .embeddings = embeddings};
    struct sl_runtime rt;
    struct sl_alike alike = {.count = 0};
    sl_alike_add_options(&alike, "predict", sl_config_options, config, given);
    sl_alike_add(&alike, "embeddings", 0, embeddings ? "embeddings" : "no embeddings");
    int code =
        sl_runtime_start(&rt, &(struct sl_runtime_options){.scheduler = config->machine.scheduler,
                                                           .workers = (int)config->machine.workers,
                                                           .quiet = sl_api_silent(config, given),
                                                           .device = config->machine.device,
                                                           .alike = &alike});
    if (code)
        return code;
    sl_talk(rt.rank == 0 && !config->files.quiet, config->files.verbose);
    struct work work = {
        .rt = &rt, .model = model, .graph = graph, .options = &options, .prediction = p};
    code = sl_runtime_guard(&rt, run_model, &work);
    sl_apply_destroy(&work.apply);
    sl_runtime_stop(&rt);
    return code;
}

static int predict(const starling_model *model, starling_graph *graph,
                   const starling_options *options, bool embeddings, struct starling_prediction *p)
{
    struct sl_config config = {0};
    bool given[SL_MOST_OPTIONS];
    int code = sl_api_configure(options, &config, given);
    if (!code)
        code = sl_api_settle(graph);
    code = sl_api_agree(code);
    if (!code)
        code = start_and_run(model, graph, &config, given, embeddings, p);
    sl_options_free(sl_config_options, &config);
    return code;
}

int starling_predict(const starling_model *model, starling_graph *graph,
                     const starling_options *options, int embeddings,
                     starling_prediction **prediction)
{
    *prediction = NULL;
    if (!model || !graph)
        return sl_error(SL_ERR_USAGE, "a prediction: the model or the graph is NULL");
    int code = sl_api_enter();
    if (code)
        return code;
    struct starling_prediction *new = calloc(1, sizeof *new);
    code = sl_api_agree(new ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a prediction"));
    if (!code)
        code = predict(model, graph, options, embeddings != 0, new);
    if (code)
        starling_prediction_free(new);
    else
        *prediction = new;
    sl_api_leave();
    return code;
}

/* ---- Look ---- */

const float *starling_prediction_output(const starling_prediction *prediction,
                                        enum starling_output output, int64_t *rows,
                                        int64_t *columns)
{
    const bool known = output == STARLING_LOGITS || output == STARLING_PROBABILITIES ||
                       output == STARLING_EMBEDDINGS;
    const float *array = known ? prediction->output[output] : NULL;
    *rows = array ? prediction->rows : 0;
    *columns = !array                          ? 0
               : output == STARLING_EMBEDDINGS ? prediction->hidden
                                               : prediction->columns;
    return array;
}

const int32_t *starling_prediction_classes(const starling_prediction *prediction, int64_t *rows,
                                           int64_t *columns)
{
    *rows = prediction->classes ? prediction->rows : 0;
    *columns = prediction->classes ? prediction->label_columns : 0;
    return prediction->classes;
}

const struct starling_result *starling_prediction_result(const starling_prediction *prediction)
{
    return &prediction->result;
}

void starling_prediction_free(starling_prediction *prediction)
{
    if (!prediction)
        return;
    for (int o = 0; o <= STARLING_EMBEDDINGS; o++)
        free(prediction->output[o]);
    free(prediction->classes);
    free(prediction);
}
