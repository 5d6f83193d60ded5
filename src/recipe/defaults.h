/* Values of options that the command line does not give: from a preset, and from the data. */
#ifndef SL_RECIPE_DEFAULTS_H
#define SL_RECIPE_DEFAULTS_H

#include "data/source.h"
#include "recipe/config.h"

/* Sets the options of --preset; those that `given` (one bool per row of the table, or NULL) marks
 * stay. Returns 0, or SL_ERR_USAGE: --resume has values of its own. */
int sl_defaults_preset(struct sl_config *config, const bool *given);

/* Whether a preset sets an option. */
bool sl_defaults_sets(const struct sl_config *config, const char *option);

/* Settle --feature-form: CSR or dense, whichever has the faster first layer by the rates `core`,
 * those of one core of rank 0. Give the source the form. Dense features stay dense, unless CSR is
 * asked for: columns that are standardised are dense. Before sl_defaults_settle. Collective.
 * SL_ERR_USAGE: --feature-form csr of such columns. SL_ERR_SYSTEM. */
int sl_defaults_form(struct sl_runtime *rt, struct sl_source *source, const struct sl_rates *core,
                     struct sl_config *config);

enum { SL_CHOSEN = 128 };

/* Whether Â·X is made in each step by the program's choice, which the rows of a step may change. */
bool sl_defaults_may_cache(const struct sl_config *config, const bool *given);

/* Sets what is left to the dataset, and was neither given nor is of a run that is resumed:
 * loss, patience, epochs, biases and the norm of feature rows (docs/DEFAULTS.md). `chosen`
 * (SL_CHOSEN characters, or NULL) tells them as a command line would. Returns 0 or SL_ERR_SYSTEM.
 */
int sl_defaults_settle(struct sl_config *config, const struct sl_source *source, const bool *given,
                       char *chosen);

/* Append an option and its value to `chosen` (SL_CHOSEN); NULL: do not. */
void sl_defaults_say(char *chosen, const char *option, const char *value);

#endif
