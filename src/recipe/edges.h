/* Edge features of a run. */
#ifndef SL_RECIPE_EDGES_H
#define SL_RECIPE_EDGES_H

#include "data/source.h"
#include "recipe/config.h"

/* Decide whether the model reads the dataset's edge features: set config->edge_features to how
 * many, and source->reads_edges. SL_ERR_USAGE: the dataset has none, and the model needs them; or
 * it has weights, too. */
int sl_edges_settle(struct sl_config *config, struct sl_source *source);

/* Settle the edge features of a trained model, which reads so many; `model` is its name.
 * SL_ERR_DATA: the dataset has another number of them. */
int sl_edges_follow(struct sl_config *config, struct sl_source *source, int64_t trained,
                    const char *model);

#endif
