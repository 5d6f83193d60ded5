#include "run/apply.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/meaning.h"
#include "codelets/epilogue.h"
#include "core/error.h"
#include "core/message.h"
#include "core/progress.h"
#include "data/feature_form.h"
#include "recipe/objective.h"
#include "run/checkpoint_program.h"
#include "run/open.h"

/* ---- Results ---- */

/* Tile (i, j) on rank 0, into `all`. */
static void collect_tile(struct sl_network *net, struct sl_matrix *matrix, int i, int j, float *all)
{
    struct sl_runtime *rt = net->rt;
    struct sl_tile *tile = sl_matrix_tile(matrix, i, j),
                   *scales = &net->graph->scales[matrix->row_order][i];
    sl_tile_send(rt, tile, tile->owner, 0);
    if (all) {
        const float *from = sl_tile_acquire(rt, tile, false);
        const uint32_t *vertex =
            (const uint32_t *)sl_tile_acquire(rt, scales, false) + SL_ROW_VERTEX * tile->rows;
        for (int64_t r = 0; r < tile->rows; r++)
            memcpy(all + vertex[r] * matrix->cols + matrix->col_cut[j], from + r * tile->ld,
                   (size_t)tile->cols * sizeof *all);
        sl_tile_release(scales);
        sl_tile_release(tile);
    }
    sl_tile_drop(rt, tile);
}

float *sl_apply_collect(struct sl_apply *apply, struct sl_matrix *matrix)
{
    const int64_t vertices = apply->source.vertices;
    struct sl_network *net = &apply->trainer.whole.network;
    struct sl_runtime *rt = net->rt;
    float *all = rt->rank == 0 ? malloc((size_t)(vertices * matrix->cols) * sizeof *all + 1) : NULL;
    for (int i = 0; i < matrix->tile_rows; i++) {
        struct sl_tile *scales = &net->graph->scales[matrix->row_order][i];
        sl_tile_send(rt, scales, scales->owner, 0);
        for (int j = 0; j < matrix->tile_cols; j++)
            collect_tile(net, matrix, i, j, all);
        sl_tile_drop(rt, scales);
    }
    return all;
}

void sl_apply_find_classes(const float *all, int64_t rows, int64_t cols, int32_t *classes)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = all + r * cols;
        classes[r] = 0;
        for (int32_t j = 1; j < cols; j++)
            if (row[j] > row[classes[r]])
                classes[r] = j;
    }
}

static void softmax(const float *logits, int64_t columns, float *out)
{
    float most = logits[0];
    double sum = 0.0;
    for (int64_t j = 1; j < columns; j++)
        most = logits[j] > most ? logits[j] : most;
    for (int64_t j = 0; j < columns; j++)
        sum += out[j] = expf(logits[j] - most);
    for (int64_t j = 0; j < columns; j++)
        out[j] = (float)(out[j] / sum);
}

void sl_apply_find_probabilities(const struct sl_loss *loss, const float *all, int64_t rows,
                                 int64_t cols, float *out)
{
    if (loss->form == SL_TARGET_CLASS)
        for (int64_t r = 0; r < rows; r++)
            softmax(all + r * cols, cols, out + r * cols);
    else
        for (int64_t k = 0; k < rows * cols; k++)
            out[k] = 1.0f / (1.0f + expf(-all[k]));
}

/* The hidden layer as the model has it: it is kept as the last layer needs it. Row scales, which
 * this takes, go with the first matrix that is collected. */
static int create_plain(struct sl_network *net, struct sl_matrix *kept, struct sl_matrix *plain)
{
    struct sl_epilogue_tiles undo = SL_EPILOGUE_NONE;
    if (net->layer[net->layers - 1].kind->scaled_input)
        undo.before = SL_ROW_INVERSE_RIGHT;
    const int code = sl_runtime_agree(
        net->rt, sl_distribution_create_cut(net->rt, &net->graph->distribution[kept->row_order],
                                            plain, SL_FLOAT32, kept->col_cut));
    if (!code)
        sl_network_finish(net, &undo, NULL, kept, plain);
    return code;
}

/* ---- The model ---- */

/* Set *model to the checkpoint's configuration, with this command's options of execution. */
static int model_configuration(const struct sl_apply_options *options,
                               const struct sl_checkpoint *checkpoint, const char *path,
                               struct sl_config *model)
{
    int code = sl_checkpoint_configuration(checkpoint, path, model);
    if (code)
        return code;
    const bool ensemble = sl_config_is_ensemble(model);
    if (ensemble && options->embeddings)
        return sl_error(SL_ERR_USAGE,
                        "--embeddings: %s has an ensemble (--share none), whose members have "
                        "hidden layers of their own (expected one model)",
                        path);
    model->machine.tiles = options->tiles;
    model->ranks.replication = options->replication;
    model->units.submodels = ensemble ? model->units.submodels : 0;
    model->training.eval_every = 0;
    model->predicts = true;
    code = sl_options_set(sl_config_options, model, "batches", "full");
    model->ranks.grid = options->grid;
    model->ranks.distribution = options->distribution;
    if (options->metric)
        model->training.metric = options->metric;
    return code;
}

/* Columns of the last layer's parameters; 0 where there are none. */
static int64_t last_width(const struct sl_checkpoint *checkpoint)
{
    int last = -1;
    int64_t width = 0;
    for (int t = 0; t < checkpoint->count; t++) {
        const char *name = checkpoint->tensors[t].name;
        int layer = -1;
        if ((sscanf(name, "layer.%d.", &layer) == 1 || sscanf(name, "layer%d.", &layer) == 1) &&
            layer > last) {
            last = layer;
            width = checkpoint->tensors[t].cols;
        }
    }
    return width;
}

static int64_t last_heads(const struct sl_config *model)
{
    const struct sl_model_shape shape = sl_config_shape(model, 1, 1);
    return shape.attention.last > 0 && !shape.decoder ? shape.attention.last : 1;
}

/* Labels that the model's loss cannot be measured with, and no option of this command changes. */
static int check_kind(const struct sl_source *source, const struct sl_config *model,
                      const char *path)
{
    const struct sl_loss *loss = sl_config_objective(model).loss;
    const bool numbers = source->targets.label_kind == SL_LABELS_NUMBERS;
    const bool class_alone =
        loss->form == SL_TARGET_CLASS && source->targets.label_kind != SL_LABELS_CLASS;
    if (!source->targets.labels.data || !(class_alone || (loss->classes && numbers)))
        return 0;
    return sl_error(SL_ERR_DATA,
                    "%s: the model was trained with --loss %s, and %s has %s (expected %s, or no "
                    "labels.npy)",
                    path, loss->name, source->path,
                    numbers ? "numbers to predict" : "several labels per vertex",
                    loss->form == SL_TARGET_CLASS ? "a class per vertex" : "labels of 0 and 1");
}

/* Predicting does not need labels in the dataset: the number of classes is the model's. */
static int adopt_classes(struct sl_source *source, const struct sl_checkpoint *checkpoint,
                         const struct sl_config *model, const char *path)
{
    const int64_t heads = last_heads(model), width = last_width(checkpoint);
    json_int_t classes = 0;
    if (json_unpack(checkpoint->description, "{s:{s:I}}", "dataset", "classes", &classes) ||
        classes < 1)
        return sl_error(SL_ERR_DATA, "%s: the checkpoint does not say its number of classes", path);
    if (classes * heads != width)
        return sl_error(SL_ERR_DATA,
                        "%s: the checkpoint says %lld classes, and its last layer has %" PRId64,
                        path, (long long)classes, width / heads);
    if (source->classes > classes)
        return sl_error(SL_ERR_DATA,
                        "%s: the model knows %lld classes, and %s has labels of %" PRId64, path,
                        (long long)classes, source->path, source->classes);
    if (source->targets.labels.data && source->targets.labels.dims == 2 &&
        source->classes != classes)
        return sl_error(SL_ERR_DATA,
                        "%s: the model has %lld columns of labels, and %s has %" PRId64
                        " (expected as many)",
                        path, (long long)classes, source->path, source->classes);
    if (source->targets.labels.data && sl_npy_is_text(&source->targets.labels) &&
        source->classes != classes)
        return sl_error(SL_ERR_DATA,
                        "%s: the model knows %lld classes, and the labels of %s name %" PRId64
                        " (expected the same names)",
                        path, (long long)classes, source->path, source->classes);
    source->classes = classes;
    return 0;
}

/* Refuse a dataset without labels or links to compare with. */
static int check_scores(const struct sl_source *source, const struct sl_config *model)
{
    const bool links = sl_config_links(model);
    if (links ? sl_links_given(&source->links) : source->targets.labels.data != NULL)
        return 0;
    return sl_error(SL_ERR_DATA,
                    "%s: there are no %s to compare with (%sstarling predict needs none)",
                    source->path, links ? "links" : "labels",
                    links ? "expected val_links.npy or test_links.npy; " : "");
}

/* Check everything that can be wrong before the network is made. */
static int settle(struct sl_apply *apply, struct sl_runtime *rt,
                  const struct sl_checkpoint *checkpoint, const char *name,
                  const struct sl_apply_options *options)
{
    struct sl_source *source = &apply->source;
    const struct sl_config *model = &apply->config;
    const bool alone = sl_config_links(model) || !source->vertex_ids.data;
    int code = options->scores ? check_scores(source, model) : 0;
    if (!code && options->output && alone && rt->rank == 0)
        code = sl_identities_check(options->output);
    if (!code)
        code = check_kind(source, model, name);
    if (!code)
        code = adopt_classes(source, checkpoint, model, name);
    if (!code)
        code = sl_objective_check(model, source);
    if (!code && options->names && rt->rank == 0)
        code = sl_identities_take(source, &apply->named);
    return sl_runtime_agree(rt, code);
}

/* Evaluates the best parameters, which leaves logits and hidden layers where they are. */
static int evaluate(struct sl_apply *apply, bool embeddings)
{
    struct sl_network *net = &apply->trainer.whole.network;
    sl_trainer_use_best(&apply->trainer);
    sl_trainer_evaluate(&apply->trainer, &apply->outcome);
    apply->logits = &net->layer[net->layers - 1].output;
    if (!embeddings || net->graph->links)
        return 0;
    if (net->layers < 2)
        return sl_error(SL_ERR_USAGE, "--embeddings: the model has one layer and so no hidden one; "
                                      "--logits writes its output");
    return create_plain(net, &net->layer[net->layers - 2].output, &apply->hidden);
}

int sl_apply_create(struct sl_apply *apply, struct sl_runtime *rt, const char *path,
                    const struct sl_source *graph, const struct sl_checkpoint *checkpoint,
                    const char *name, const struct sl_apply_options *options)
{
    struct sl_source *source = &apply->source;
    const json_t *trained = json_object_get(checkpoint->description, "dataset");
    *apply = (struct sl_apply){0};
    int code = sl_checkpoint_check_alike(rt, checkpoint, name);
    if (!code)
        code = sl_runtime_agree(rt, model_configuration(options, checkpoint, name, &apply->config));
    if (!code)
        code = sl_run_open(rt,
                           &(struct sl_run_inputs){
                               .path = path, .graph = graph, .trained = trained, .model = name},
                           &apply->config, source);
    if (!code)
        code = settle(apply, rt, checkpoint, name, options);
    if (code)
        return code;
    sl_progress_begin("reading rows, making tiles");
    const struct sl_assembly assembly = sl_config_assembly(&apply->config);
    if (apply->config.features.feature_form == SL_FORM_DENSE)
        code = sl_features_set_form(rt, source, SL_FEATURES_DENSE);
    if (!code)
        code = sl_operands_order(rt, source, &assembly);
    if (!code)
        code = sl_trainer_open(&apply->trainer, rt, source, &apply->config, checkpoint);
    if (!code)
        code = sl_meaning_check_direction(source, apply->trainer.whole.operands.symmetric, trained,
                                          name);
    sl_source_release(source);
    sl_progress_end();
    if (code)
        return code;
    sl_progress_begin("predicting");
    return sl_progress_end_with(evaluate(apply, options->embeddings));
}

void sl_apply_destroy(struct sl_apply *apply)
{
    sl_matrix_destroy(&apply->hidden);
    sl_trainer_destroy(&apply->trainer);
    sl_identities_free(&apply->named);
    sl_source_close(&apply->source);
    sl_options_free(sl_config_options, &apply->config);
    *apply = (struct sl_apply){0};
}
