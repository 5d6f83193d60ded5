/* A dataset and its options become a run's: what training refuses, and options that depend on the
 * data. For training, plans and `starling info`. */
#ifndef SL_RUN_OPEN_H
#define SL_RUN_OPEN_H

#include "core/rates.h"
#include "core/runtime.h"
#include "data/source.h"
#include "recipe/config.h"

/* Project the source's features where the options ask for it. Every rank calls it by itself.
 * SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_run_project(const struct sl_config *config, struct sl_source *source);

/* Give the source the options' rule of splits, decide whether edge features are read, project
 * its features, and refuse what training refuses: a dataset without labels or training vertices,
 * more batches than vertices.
 * All ranks return the same code: 0, SL_ERR_DATA, SL_ERR_USAGE. */
int sl_run_check(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config);

/* Settle the options that were not given and depend on the data. First comes the form of the
 * features, by the rates `core` of one core of rank 0. Then check the objective. `given` as of
 * sl_options_parse; NULL: none. chosen (SL_CHOSEN) gets the settled options; NULL: not told. All
 * ranks return the same code: 0, SL_ERR_USAGE, SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_run_settle(struct sl_runtime *rt, struct sl_source *source, const struct sl_rates *core,
                  const bool *given, struct sl_config *config, char *chosen);

#endif
