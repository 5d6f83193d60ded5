/* Edge features and relations of a run. */
#ifndef SL_RECIPE_EDGES_H
#define SL_RECIPE_EDGES_H

#include "data/source.h"
#include "recipe/config.h"

/* Decide what the model reads of the dataset's edges: set config->edge_features or
 * config->relations to how many, and source->reads_edges. SL_ERR_USAGE: the dataset has none, and
 * the model needs them; or it has weights, too. SL_ERR_SYSTEM. */
int sl_edges_settle(struct sl_config *config, struct sl_source *source);

/* Settle as for a model that was trained with so many edge features and relations. `model` names
 * the model in errors. SL_ERR_DATA: the dataset has another number of features, or more relations.
 */
int sl_edges_follow(struct sl_config *config, struct sl_source *source, int64_t features,
                    int64_t relations, const char *model);

#endif
