/* A dataset and its options become a run's: links, splits, labels and classes, what training
 * refuses, and options that depend on the data. For training, predictions, plans and `starling
 * info`, of the programs and the library. */
#ifndef SL_RUN_OPEN_H
#define SL_RUN_OPEN_H

#include <jansson.h>

#include "core/rates.h"
#include "core/runtime.h"
#include "data/source.h"
#include "recipe/config.h"

/* The inputs of a run: a dataset, and a trained model. */
struct sl_run_inputs {
    const char *path;              /* the dataset's; NULL: the source is open */
    const struct sl_source *graph; /* an open dataset, which is borrowed; NULL: `path` is opened */
    const json_t *trained; /* the description of a model that goes on (sl_meaning_describe) */
    const char *model;     /* the model's name in errors; NULL: there is none */
    bool trains;           /* refuse what training refuses */
    json_t **hashes;       /* set to the hashes of the dataset; NULL: not wanted */
};

/* Open a dataset. Give it the options' links, rule of splits, kind of labels and projection, and
 * the classes, columns and edges of a trained model. A run that trains also decides whether it
 * reads edge features, and refuses a dataset without labels or training vertices, and more batches
 * than vertices. All ranks return the same code: 0, SL_ERR_DATA, SL_ERR_USAGE, SL_ERR_SYSTEM. Call
 * sl_source_close in either case. */
int sl_run_open(struct sl_runtime *rt, const struct sl_run_inputs *inputs, struct sl_config *config,
                struct sl_source *source);

/* Settle the options that were not given and depend on the data. First comes the form of the
 * features, by the rates `core` of one core of rank 0; NULL: a core of this machine. Then check the
 * objective. `given` as of sl_options_parse; NULL: none. chosen (SL_CHOSEN) gets the settled
 * options; NULL: not told. All ranks return the same code, as sl_run_open does. */
int sl_run_settle(struct sl_runtime *rt, struct sl_source *source, const struct sl_rates *core,
                  const bool *given, struct sl_config *config, char *chosen);

#endif
