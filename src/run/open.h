/* A dataset and its options become a run's: what training refuses, and options that depend on the
 * data. For training, plans and `starling info`. */
#ifndef SL_RUN_OPEN_H
#define SL_RUN_OPEN_H

#include <jansson.h>

#include "core/rates.h"
#include "core/runtime.h"
#include "data/source.h"
#include "recipe/config.h"

/* Project the source's features where the options ask for it. Every rank calls it by itself.
 * SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_run_project(const struct sl_config *config, struct sl_source *source);

/* Give the source the options' links, rule of splits and kind of labels, and the classes, columns
 * and edges of a trained model. `trained`: as of sl_meaning_describe; `model` names the model in
 * errors; NULL: no model goes on. All ranks return the same code: 0, SL_ERR_DATA, SL_ERR_USAGE,
 * SL_ERR_SYSTEM. */
int sl_run_follow(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                  const json_t *trained, const char *model);

/* Call sl_run_follow, decide whether edge features are read, project features, and refuse what
 * training refuses: a dataset without labels or training vertices, more batches than vertices. All
 * ranks return the same code, as sl_run_follow does. */
int sl_run_check(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                 const json_t *trained, const char *model);

/* Settle the options that were not given and depend on the data. First comes the form of the
 * features, by the rates `core` of one core of rank 0. Then check the objective. `given` as of
 * sl_options_parse; NULL: none. chosen (SL_CHOSEN) gets the settled options; NULL: not told. All
 * ranks return the same code: 0, SL_ERR_USAGE, SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_run_settle(struct sl_runtime *rt, struct sl_source *source, const struct sl_rates *core,
                  const bool *given, struct sl_config *config, char *chosen);

#endif
