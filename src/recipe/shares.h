/* Shares of the units that sub-models have (--submodel-share). */
#ifndef SL_RECIPE_SHARES_H
#define SL_RECIPE_SHARES_H

#include "recipe/config.h"

/* Whether shares are given, or measured already: else all are equal. */
bool sl_shares_given(const struct sl_config *config);

/* Read them: share (config->submodels). SL_ERR_USAGE: they are none, or not as many. Part of
 * sl_config_check. */
int sl_shares_parse(const struct sl_config *config, int64_t *share);

#endif
