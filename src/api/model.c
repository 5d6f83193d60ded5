/* Models: a checkpoint in memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/error.h"
#include "core/json_file.h"
#include "run/checkpoint_program.h"

static int64_t number_of(const struct starling_model *model, const char *name)
{
    return json_integer_value(json_object_get(model->checkpoint.description, name));
}

/* Return the epoch of the weights to use. Older programs do not tell it: if a checkpoint has
 * tensors of best weights, these are to be used. */
static int64_t kept_epoch(const struct starling_model *model)
{
    static const char best[] = ".best";
    const int64_t epoch = number_of(model, "best_epoch");
    bool kept = false;
    if (json_object_get(model->checkpoint.description, "kept_epoch"))
        return number_of(model, "kept_epoch");
    for (int t = 0; t < model->checkpoint.count; t++) {
        const char *end = strrchr(model->checkpoint.tensors[t].name, '.');
        kept = kept || (end && strcmp(end, best) == 0);
    }
    return kept && epoch > 0 ? epoch : number_of(model, "epoch");
}

int starling_model_load(const char *path, starling_model **model)
{
    static const char shown[] = "shown_best_epoch"; /* absent if equal to best_epoch */
    *model = NULL;
    if (!path)
        return sl_error(SL_ERR_USAGE, "a model: the path is NULL (expected a checkpoint)");
    struct starling_model *new = calloc(1, sizeof *new);
    if (!new)
        return sl_error(SL_ERR_SYSTEM, "no memory for a model");
    const int code = sl_checkpoint_read(path, &new->checkpoint);
    if (code) {
        starling_model_free(new);
        return code;
    }
    new->result = (struct starling_result){.epochs = number_of(new, "epoch"),
                                           .best_epoch = number_of(new, "best_epoch"),
                                           .loss = NAN,
                                           .train_accuracy = NAN,
                                           .val_accuracy = NAN,
                                           .test_accuracy = NAN,
                                           .train_score = NAN,
                                           .val_score = NAN,
                                           .test_score = NAN,
                                           .metric = "",
                                           .epoch_seconds = NAN,
                                           .seconds = NAN};
    new->result.kept_epoch = kept_epoch(new);
    if (json_object_get(new->checkpoint.description, shown))
        new->result.best_epoch = number_of(new, shown);
    *model = new;
    return 0;
}

int starling_model_save(const starling_model *model, const char *path)
{
    if (!path)
        return sl_error(SL_ERR_USAGE, "a model: the path is NULL (expected a file to write)");
    if (starling_rank() > 0)
        return 0;
    struct sl_checkpoint checkpoint = model->checkpoint; /* borrows the tensors */
    checkpoint.description = sl_checkpoint_describe_program(&model->checkpoint, "the model");
    const int code =
        checkpoint.description ? sl_checkpoint_write(&checkpoint, path) : SL_ERR_SYSTEM;
    json_decref(checkpoint.description);
    return code;
}

void starling_model_free(starling_model *model)
{
    if (!model)
        return;
    sl_checkpoint_free(&model->checkpoint);
    free(model->description);
    free(model);
}

const struct starling_result *starling_model_result(const starling_model *model)
{
    return &model->result;
}

const char *starling_model_description(const starling_model *model)
{
    struct starling_model *own = (struct starling_model *)model; /* the text is made once */
    if (!own->description)
        own->description = sl_json_print(model->checkpoint.description, JSON_COMPACT);
    return own->description ? own->description : "{}";
}

/* ---- Weights ---- */

/* Whether a tensor is a weight. Other tensors are the optimizer's state, best weights and late
 * messages. */
static bool is_weight(const struct sl_tensor *tensor)
{
    static const char *const others[] = {".best", ".moment1", ".moment2"};
    const size_t length = strlen(tensor->name);
    for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
        const size_t own = strlen(others[o]);
        if (length > own && strcmp(tensor->name + length - own, others[o]) == 0)
            return false;
    }
    return strncmp(tensor->name, "layer.", 6) == 0;
}

/* Return the tensor that predictions use instead of a weight: its best epoch's, if the run kept
 * one. */
static struct sl_tensor *best_of(struct starling_model *model, struct sl_tensor *tensor)
{
    char name[256];
    snprintf(name, sizeof name, "%s.best", tensor->name);
    const struct sl_tensor *best = sl_checkpoint_find(&model->checkpoint, name);
    return best && kept_epoch(model) == number_of(model, "best_epoch")
               ? &model->checkpoint.tensors[best - model->checkpoint.tensors]
               : tensor;
}

static float *describe(struct starling_model *model, struct sl_tensor *tensor, const char **name,
                       int64_t *rows, int64_t *columns)
{
    if (name)
        *name = tensor ? tensor->name : NULL;
    if (rows)
        *rows = tensor ? tensor->rows : 0;
    if (columns)
        *columns = tensor ? tensor->cols : 0;
    return tensor ? best_of(model, tensor)->data : NULL;
}

int64_t starling_model_weights(const starling_model *model)
{
    int64_t count = 0;
    for (int t = 0; t < model->checkpoint.count; t++)
        count += is_weight(&model->checkpoint.tensors[t]);
    return count;
}

float *starling_model_weight(starling_model *model, int64_t index, const char **name, int64_t *rows,
                             int64_t *columns)
{
    struct sl_tensor *found = NULL;
    for (int t = 0; !found && t < model->checkpoint.count; t++)
        if (is_weight(&model->checkpoint.tensors[t]) && index-- == 0)
            found = &model->checkpoint.tensors[t];
    return describe(model, found, name, rows, columns);
}

float *starling_model_find(starling_model *model, const char *name, int64_t *rows, int64_t *columns)
{
    struct sl_tensor *found = NULL;
    for (int t = 0; name && !found && t < model->checkpoint.count; t++)
        if (is_weight(&model->checkpoint.tensors[t]) &&
            strcmp(model->checkpoint.tensors[t].name, name) == 0)
            found = &model->checkpoint.tensors[t];
    return describe(model, found, NULL, rows, columns);
}
