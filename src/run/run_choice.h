/* The choices of starling train where an option is auto. The options then say what was chosen, and
 * nothing after them knows an auto. */
#ifndef SL_RUN_RUN_CHOICE_H
#define SL_RUN_RUN_CHOICE_H

#include "batches/needed.h"
#include "core/runtime.h"
#include "data/source.h"
#include "recipe/config.h"

/* A sentence for each choice; "" where the user chose. */
struct sl_train_choice {
    char order[256], distribution[256], preload[256];
    char parts[256]; /* the work of METIS for the distribution */
    struct sl_needed_choice rows;
};

/* Settle --order. Each rank calls it and returns for itself: 0 or a code. */
int sl_train_choose_order(struct sl_runtime *rt, const struct sl_source *source,
                          struct sl_config *config, struct sl_train_choice *reasons);

/* Settle --distribution, --grid and, with --allow-inexact, --delay and --partial-sums. 1D keeps the
 * name auto. All ranks call it with the vertices in order, and get the same code. */
int sl_train_choose_distribution(struct sl_runtime *rt, struct sl_source *source,
                                 struct sl_config *config, struct sl_train_choice *reasons);

#endif
