#include "train/confusion.h"

#include <stdlib.h>

#include "core/error.h"
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

json_t *sl_confusion_describe(struct sl_trainer *trainer, int64_t most)
{
    struct sl_network *net = &trainer->whole.network;
    const int64_t classes = net->model->layer[net->model->layers - 1].shape.out;
    if (!sl_config_evaluates(trainer->config) || classes > most ||
        net->graph->objective.loss->form != SL_TARGET_CLASS)
        return NULL;
    double *counts = calloc((size_t)(classes * SL_SPLITS * classes), sizeof *counts);
    if (!counts)
        sl_fatal("no memory to count %lld classes", (long long)classes); /* others wait */
    json_t *object = NULL;
    if (!sl_network_count_confusion(net, counts))
        object =
            json_pack("{s:o, s:o, s:o}", "train", describe_split(counts, classes, SL_SPLIT_TRAIN),
                      "val", describe_split(counts, classes, SL_SPLIT_VAL), "test",
                      describe_split(counts, classes, SL_SPLIT_TEST));
    free(counts);
    return object;
}
