/* The task of links: its options, and the dataset as the task has it. */
#ifndef SL_RECIPE_LINK_OPTIONS_H
#define SL_RECIPE_LINK_OPTIONS_H

#include "assembly/link_tiles.h"
#include "data/source.h"
#include "recipe/config.h"

/* Check the options of links with all others. Part of sl_config_check. Return 0 or SL_ERR_USAGE. */
int sl_links_check_options(const struct sl_config *config);

/* Check loss and metric with the links of a dataset. Part of
 * sl_objective_check. Return 0 or SL_ERR_USAGE with the sentence. */
int sl_links_check_objective(const struct sl_config *config, const struct sl_source *source);

/* Give an opened source the form of the task: split its edges as the options say; its classes
 * become the columns of embeddings; all vertices are for training, and labels are forgotten. Do
 * nothing for another task. Collective. SL_ERR_DATA, SL_ERR_USAGE, SL_ERR_SYSTEM. */
int sl_links_prepare(struct sl_runtime *rt, const struct sl_config *config,
                     struct sl_source *source);

/* Return the columns of the last layer of a model of links. */
int64_t sl_links_width(const struct sl_config *config);

/* Return how many vertices, or links, of a split an evaluation measures. */
int64_t sl_links_split_size(const struct sl_config *config, const struct sl_source *source,
                            enum sl_split split);

/* Return the decisions on links. */
struct sl_link_choice sl_links_choice(const struct sl_config *config,
                                      const struct sl_source *source);

#endif
