/* starling predict: a trained model and a dataset in, predictions and embeddings of every vertex
 * out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "codelets/epilogue.h"
#include "core/error.h"
#include "core/log.h"
#include "core/message.h"
#include "data/formats/npy.h"
#include "data/identities.h"
#include "train/objective.h"
#include "train/trainer.h"

struct config {
    char *output, *table, *embeddings, *logits, *device, *scheduler, *distribution, *grid;
    int64_t tiles, workers, replication;
    bool quiet;
};

#define FIELD(name) offsetof(struct config, name)

static const struct sl_option options[] = {
    {"output", SL_OPTION_STRING, FIELD(output), NULL, 0, 0, NULL, "FILE",
     "write the prediction of every vertex to FILE (.npy): its class (int32); of several labels, 1 "
     "for each with a probability over 1/2, else 0 (int32); or its numbers (float32). Where the "
     "dataset has vertex_ids, write these to FILE.ids.npy",
     "Files"},
    {"table", SL_OPTION_STRING, FIELD(table), NULL, 0, 0, NULL, "FILE",
     "write a line per vertex to FILE: what the dataset calls it, its predicted class or labels "
     "and, where they have names, these, with tabs between them; or its numbers",
     "Files"},
    {"embeddings", SL_OPTION_STRING, FIELD(embeddings), NULL, 0, 0, NULL, "FILE",
     "write the output of the last hidden layer to FILE (.npy, float32)", "Files"},
    {"logits", SL_OPTION_STRING, FIELD(logits), NULL, 0, 0, NULL, "FILE",
     "write the output of the last layer to FILE (.npy, float32)", "Files"},
    {"quiet", SL_OPTION_FLAG, FIELD(quiet), "no", 0, 0, NULL, NULL, "print nothing but errors",
     "Files"},
    {"distribution", SL_OPTION_CHOICE, FIELD(distribution), "1d", 0, 0, "1d|1.5d|2d|3d|halo|cover",
     "KIND", "how ranks share the graph, as in starling train", "Execution"},
    {"replication", SL_OPTION_INT, FIELD(replication), "0", 0, 65536, NULL, "C",
     "layers of --distribution 1.5d; 0: 2", "Execution"},
    {"grid", SL_OPTION_STRING, FIELD(grid), NULL, 0, 0, NULL, "RxCxD",
     "any grid of ranks instead of --distribution", "Execution"},
    {"tiles", SL_OPTION_INT, FIELD(tiles), "0", 0, 65536, NULL, "T",
     "row tiles of the graph; 0: from the work", "Execution"},
    {"workers", SL_OPTION_INT, FIELD(workers), "0", 0, 65536, NULL, "N",
     "CPU workers per rank; 0: every core", "Execution"},
    {"device", SL_OPTION_CHOICE, FIELD(device), "auto", 0, 0, "auto|cpu|cuda|both", "NAME",
     "what computes, as in starling train", "Execution"},
    {"scheduler", SL_OPTION_STRING, FIELD(scheduler), NULL, 0, 0, NULL, "NAME",
     "StarPU scheduling policy", "Execution"},
    {0},
};

/* Tile (i, j) on rank 0, into `all`. */
static void collect_tile(struct sl_network *net, struct sl_matrix *matrix, int i, int j, float *all)
{
    struct sl_runtime *rt = net->rt;
    struct sl_tile *tile = sl_matrix_tile(matrix, i, j),
                   *facts = &net->graph->facts[matrix->row_order][i];
    sl_tile_send(rt, tile, tile->owner, 0);
    if (all) {
        const float *from = sl_tile_acquire(rt, tile, false);
        const uint32_t *vertex =
            (const uint32_t *)sl_tile_acquire(rt, facts, false) + SL_ROW_VERTEX * tile->rows;
        for (int64_t r = 0; r < tile->rows; r++)
            memcpy(all + vertex[r] * matrix->cols + matrix->col_cut[j], from + r * tile->ld,
                   (size_t)tile->cols * sizeof *all);
        sl_tile_release(facts);
        sl_tile_release(tile);
    }
    sl_tile_drop(rt, tile);
}

/* The whole matrix (rows, cols) on rank 0, the row of each vertex in its place; NULL on others and
 * without memory. */
static float *collect(struct sl_network *net, struct sl_matrix *matrix)
{
    struct sl_runtime *rt = net->rt;
    float *all =
        rt->rank == 0 ? malloc((size_t)(matrix->rows * matrix->cols) * sizeof *all + 1) : NULL;
    for (int i = 0; i < matrix->tile_rows; i++) {
        struct sl_tile *facts = &net->graph->facts[matrix->row_order][i];
        sl_tile_send(rt, facts, facts->owner, 0);
        for (int j = 0; j < matrix->tile_cols; j++)
            collect_tile(net, matrix, i, j, all);
        sl_tile_drop(rt, facts);
    }
    return all;
}

static int write_matrix(struct sl_network *net, struct sl_matrix *matrix, const char *path)
{
    struct sl_runtime *rt = net->rt;
    if (!path)
        return 0;
    float *all = collect(net, matrix);
    int code = 0;
    if (rt->rank == 0)
        code = all ? sl_npy_write(path, "<f4", sizeof(float), 2,
                                  (int64_t[]){matrix->rows, matrix->cols}, all)
                   : sl_error(SL_ERR_SYSTEM, "no memory for the %" PRId64 " rows of %s",
                              matrix->rows, path);
    free(all);
    return sl_runtime_agree(rt, code);
}

/* ---- Predictions ---- */

/* Of several labels: 0 or 1 of each. Of numbers: these. */
struct rows {
    int64_t columns;
    const int32_t *label; // (vertices, columns), or NULL
    const float *number;  // (vertices, columns), or NULL
};

/* The labels (columns) that are 1, with commas; by their numbers, or by the names of `named`. */
static bool print_list(FILE *file, int64_t columns, const int32_t *label,
                       const struct sl_identities *named)
{
    const char *before = "";
    bool good = true;
    for (int64_t j = 0; good && j < columns; j++) {
        if (!label[j])
            continue;
        good = named && j < named->classes
                   ? fprintf(file, "%s%s", before, named->class_name[j]) >= 0
                   : fprintf(file, "%s%" PRId64, before, j) > 0;
        before = ",";
    }
    return good;
}

/* "3,17": the labels of the vertex; and, after a tab, their names, where they have names. */
static bool print_labels(FILE *file, const struct sl_identities *identities, int64_t vertex,
                         const void *predictions)
{
    const struct rows *rows = predictions;
    const int32_t *label = rows->label + vertex * rows->columns;
    const bool good = print_list(file, rows->columns, label, NULL);
    if (identities->classes == 0)
        return good;
    return good && fputc('\t', file) != EOF && print_list(file, rows->columns, label, identities);
}

static bool print_numbers(FILE *file, const struct sl_identities *identities, int64_t vertex,
                          const void *predictions)
{
    const struct rows *rows = predictions;
    bool good = true;
    (void)identities;
    for (int64_t j = 0; good && j < rows->columns; j++)
        good = fprintf(file, "%s%.9g", j ? "\t" : "",
                       (double)rows->number[vertex * rows->columns + j]) > 0;
    return good;
}

/* An array of all vertices, and the table of it. */
struct output {
    const char *descr; /* of int32 or float32 */
    int dims;
    const void *data, *predictions;
    sl_print_prediction *print;
};

static int write_output(const struct config *config, const struct sl_identities *identities,
                        const struct sl_matrix *logits, const struct output *o)
{
    const int64_t shape[] = {logits->rows, logits->cols};
    int code = 0;
    if (config->output)
        code = sl_npy_write(config->output, o->descr, sizeof(int32_t), o->dims, shape, o->data);
    if (!code && config->output)
        code = sl_identities_write(identities, config->output);
    if (!code && config->table)
        code = sl_identities_tabulate(identities, o->print, o->predictions, config->table);
    return code;
}

/* The first largest logit of each row. */
static void find_classes(const struct sl_matrix *logits, const float *all, int32_t *classes)
{
    for (int64_t r = 0; r < logits->rows; r++) {
        const float *row = all + r * logits->cols;
        classes[r] = 0;
        for (int32_t j = 1; j < logits->cols; j++)
            if (row[j] > row[classes[r]])
                classes[r] = j;
    }
}

/* What the loss says that logits are. `work` (rows, cols). */
static int write_all(const struct config *config, const struct sl_identities *identities,
                     const struct sl_matrix *logits, const struct sl_loss *loss, const float *all,
                     int32_t *work)
{
    if (loss->form == SL_TARGET_CLASS) {
        find_classes(logits, all, work);
        return write_output(config, identities, logits,
                            &(struct output){"<i4", 1, work, work, sl_identities_print_class});
    }
    if (!loss->classes) {
        const struct rows numbers = {.columns = logits->cols, .number = all};
        return write_output(config, identities, logits,
                            &(struct output){"<f4", 2, all, &numbers, print_numbers});
    }
    for (int64_t k = 0; k < logits->rows * logits->cols; k++)
        work[k] = all[k] > 0.0f;
    const struct rows labels = {.columns = logits->cols, .label = work};
    return write_output(config, identities, logits,
                        &(struct output){"<i4", 2, work, &labels, print_labels});
}

static int write_predictions(struct sl_network *net, struct sl_matrix *logits,
                             const struct config *config, const struct sl_identities *identities)
{
    struct sl_runtime *rt = net->rt;
    if (!config->output && !config->table)
        return 0;
    float *all = collect(net, logits);
    int32_t *work =
        rt->rank == 0 ? malloc((size_t)(logits->rows * logits->cols) * sizeof *work + 1) : NULL;
    int code = 0;
    if (rt->rank == 0)
        code = all && work
                   ? write_all(config, identities, logits, net->graph->objective.loss, all, work)
                   : sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " predictions", logits->rows);
    free(all);
    free(work);
    return sl_runtime_agree(rt, code);
}

static void print_score(const char *name, double value)
{
    printf("%s ", name);
    if (isnan(value))
        printf("-");
    else
        printf("%.4f", value);
}

/* The hidden layer as the model has it: it is kept as the last layer needs it. Facts of rows, which
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
        sl_network_finish(net, &undo, kept, plain);
    return code;
}

static int predict(const struct config *config, struct sl_trainer *trainer,
                   const struct sl_identities *identities)
{
    struct sl_network *net = &trainer->whole.network;
    struct sl_outcome outcome;
    sl_trainer_use_best(trainer);
    sl_trainer_evaluate(trainer, &outcome);
    struct sl_matrix *logits = &net->layer[net->layers - 1].output;
    struct sl_matrix *hidden = net->layers > 1 ? &net->layer[net->layers - 2].output : NULL;
    if (config->embeddings && !hidden)
        return sl_error(SL_ERR_USAGE, "--embeddings: the model has one layer and so no hidden one; "
                                      "--logits writes its output");
    struct sl_matrix plain = {0};
    int code = config->embeddings ? create_plain(net, hidden, &plain) : 0;
    if (!code)
        code = write_predictions(net, logits, config, identities);
    if (!code)
        code = write_matrix(net, &plain, config->embeddings);
    sl_matrix_destroy(&plain);
    if (!code)
        code = write_matrix(net, logits, config->logits);
    if (!code && net->rt->rank == 0 && !config->quiet) {
        printf("%s: ", outcome.metric->name);
        print_score("training", outcome.score.of[SL_SPLIT_TRAIN]);
        print_score(", validation", outcome.score.of[SL_SPLIT_VAL]);
        print_score(", test", outcome.score.of[SL_SPLIT_TEST]);
        printf("\n");
    }
    return code;
}

/* The model's configuration out of the checkpoint, how to run out of this command's options. */
static int model_configuration(const struct config *config, const struct sl_checkpoint *checkpoint,
                               const char *path, struct sl_config *model)
{
    bool skip[SL_MOST_OPTIONS];
    for (int o = 0; sl_config_options[o].name; o++)
        skip[o] = sl_config_is_execution(&sl_config_options[o]);
    int code =
        sl_options_from_json(sl_config_options, model,
                             json_object_get(checkpoint->description, "configuration"), skip, path);
    if (code)
        return code;
    const bool ensemble = sl_submodels_ensemble(model);
    const int64_t updates = json_integer_value(json_object_get(checkpoint->description, "updates"));
    if (ensemble && config->embeddings)
        return sl_error(SL_ERR_USAGE,
                        "--embeddings: %s has an ensemble (--share none), whose members have "
                        "hidden layers of their own (expected one model)",
                        path);
    model->tiles = config->tiles;
    model->replication = config->replication;
    /* Nothing is trained. The round of an ensemble goes on after its steps. */
    model->epochs = ensemble ? (updates + 1) * model->submodels : 1;
    model->submodels = ensemble ? model->submodels : 0;
    model->eval_every = 0;
    code = sl_config_set_text(&model->batches, "full");
    if (!code)
        code = sl_config_set_text(&model->distribution, config->distribution);
    return code ? code : sl_config_set_text(&model->grid, config->grid);
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
    const int heads = sl_config_shape(model, 1, 1).out_heads;
    return heads > 0 ? heads : 1;
}

/* Labels that the model's loss cannot be measured with, and no option of this command changes. */
static int check_kind(const struct sl_source *source, const struct sl_config *model,
                      const char *path)
{
    const struct sl_loss *loss = sl_config_objective(model).loss;
    const bool numbers = source->label_kind == SL_LABELS_NUMBERS;
    const bool class_alone = loss->form == SL_TARGET_CLASS && source->label_kind != SL_LABELS_CLASS;
    if (!source->labels.data || !(class_alone || (loss->classes && numbers)))
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
    if (source->labels.data && source->labels.dims == 2 && source->classes != classes)
        return sl_error(SL_ERR_DATA,
                        "%s: the model has %lld columns of labels, and %s has %" PRId64
                        " (expected as many)",
                        path, (long long)classes, source->path, source->classes);
    if (source->labels.data && sl_npy_is_text(&source->labels) && source->classes != classes)
        return sl_error(SL_ERR_DATA,
                        "%s: the model knows %lld classes, and the labels of %s name %" PRId64
                        " (expected the same names)",
                        path, (long long)classes, source->path, source->classes);
    source->classes = classes;
    return 0;
}

static int order_vertices(struct sl_runtime *rt, const struct sl_config *model,
                          struct sl_source *source)
{
    const struct sl_assembly how = sl_config_assembly(model);
    return sl_operands_order(rt, source, &how);
}

static int run_model(const struct config *config, struct sl_runtime *rt,
                     const char *checkpoint_path, const char *data_path)
{
    struct sl_checkpoint checkpoint = {0};
    struct sl_source source = {0};
    struct sl_config model = {0};
    struct sl_trainer trainer = {0};
    struct sl_identities identities = {0};
    int code = sl_options_defaults(sl_config_options, &model);
    if (!code)
        code = sl_checkpoint_read(checkpoint_path, &checkpoint);
    if (!code)
        code = model_configuration(config, &checkpoint, checkpoint_path, &model);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = sl_source_open(rt, data_path, &source);
    if (!code)
        code = sl_runtime_agree(rt, sl_config_split(&model, &source.split_rule));
    if (!code)
        code = sl_runtime_agree(rt, check_kind(&source, &model, checkpoint_path));
    if (!code)
        code = sl_runtime_agree(rt, adopt_classes(&source, &checkpoint, &model, checkpoint_path));
    if (!code)
        code = sl_runtime_agree(rt, sl_objective_check(&model, &source));
    if (!code)
        code = order_vertices(rt, &model, &source);
    if (!code && (config->output || config->table))
        code = sl_runtime_agree(rt, rt->rank == 0 ? sl_identities_take(&source, &identities) : 0);
    if (!code) {
        code = sl_trainer_create(&trainer, rt, &source, &model, &checkpoint);
        sl_source_release(&source);
        if (!code)
            code = predict(config, &trainer, &identities);
        sl_trainer_destroy(&trainer);
    }
    sl_identities_free(&identities);
    sl_options_free(sl_config_options, &model);
    sl_source_close(&source);
    sl_checkpoint_free(&checkpoint);
    return code;
}

static int run_predict(int argc, char **argv)
{
    struct config config = {0};
    int positionals;
    int code = sl_command_parse(&sl_command_predict, &config, argc, argv, 2, 2, &positionals, NULL);
    struct sl_runtime rt;
    if (!code)
        code = sl_runtime_start(&rt, &(struct sl_runtime_options){.scheduler = config.scheduler,
                                                                  .workers = (int)config.workers,
                                                                  .quiet = config.quiet,
                                                                  .device = config.device});
    if (!code) {
        sl_log_enable(rt.rank == 0 && !config.quiet);
        code = run_model(&config, &rt, argv[0], argv[1]);
        sl_runtime_stop(&rt);
    }
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_predict = {
    .name = "predict",
    .synopsis = "CHECKPOINT DATASET [--OPTION ...]",
    .summary = "Apply a trained model to every vertex of DATASET",
    .options = options,
    .run = run_predict,
};
