#include "train/confusion.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/json_file.h"
#include "graphs/confusion.h"

static json_t *describe_split(const double *counts, int64_t classes, int split)
{
    json_t *rows = json_array();
    for (int64_t c = 0; c < classes; c++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < classes; j++)
            json_array_append_new(
                row, json_integer((json_int_t)counts[(c * SL_SPLITS + split) * classes + j]));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* Return {"train": rows, "val": rows, "test": rows}; NULL without memory. */
static json_t *describe_splits(const double *counts, int64_t classes)
{
    static const char *const names[] = {
        [SL_SPLIT_TRAIN] = "train", [SL_SPLIT_VAL] = "val", [SL_SPLIT_TEST] = "test"};
    const long failures = sl_json_failures();
    json_t *object = json_object();
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
        json_object_set_new(object, names[s], describe_split(counts, classes, s));
    if (object && sl_json_failures() == failures)
        return object;
    json_decref(object);
    return NULL;
}

int sl_confusion_describe(struct sl_trainer *trainer, int64_t most, json_t **out)
{
    struct sl_network *net = &trainer->whole.network;
    const int64_t classes = net->model->layer[net->model->layers - 1].shape.out;
    *out = NULL;
    if (!sl_config_evaluates(trainer->config) || classes > most ||
        net->graph->objective.loss->form != SL_TARGET_CLASS)
        return 0;
    double *counts = calloc((size_t)(classes * SL_SPLITS * classes), sizeof *counts);
    if (!counts)
        sl_fatal("no memory to count %lld classes", (long long)classes); /* others wait */
    int code = sl_network_count_confusion(net, counts);
    if (!code)
        *out = describe_splits(counts, classes);
    if (!code && !*out)
        code =
            sl_error(SL_ERR_SYSTEM, "no memory for the counts of %lld classes", (long long)classes);
    free(counts);
    return sl_runtime_agree(net->rt, code);
}
