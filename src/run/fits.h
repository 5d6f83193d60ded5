/* Whether a run fits into memory, before it takes any. */
#ifndef SL_RUN_FITS_H
#define SL_RUN_FITS_H

#include "batches/needed.h"
#include "predict/plan.h"
#include "recipe/config.h"

struct sl_trainer;

/* Return what the tiles of the run take on this rank, whether they have memory or not. */
struct sl_plan sl_trainer_plan(const struct sl_trainer *trainer);

/* The plan of a run, without memory for its tiles: each rank reads its part once. Collective. */
int sl_plan_make(struct sl_runtime *rt, const struct sl_source *source,
                 const struct sl_config *config, struct sl_plan *plan);

/* Take --rows all instead of needed rows that auto chose and that do not fit into memory; the
 * choice's reason then says so. Set *fits where a plan of needed rows was made and fits: then
 * sl_plan_check is not needed. Collective. */
int sl_plan_rows(struct sl_runtime *rt, const struct sl_source *source, struct sl_config *config,
                 struct sl_needed_choice *choice, bool *fits);

/* SL_ERR_SYSTEM with what would help if a run takes more than this machine has free; looks closely
 * only where it may. Collective. */
int sl_plan_check(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config);

/* Settle --recompute auto: none where a run fits into memory, else the least number that fits, or
 * else the number that takes the least. Tell the choice, unless it is none, in `chosen` (SL_CHOSEN;
 * NULL: do not). Collective. */
int sl_plan_recompute(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *chosen);

/* Tell what a run with `batches` batches takes, in *bytes. *space may become less. Return 0 or a
 * code of sl_plan_make. */
typedef int sl_plan_batches_function(void *context, int64_t batches, int64_t *space,
                                     int64_t *bytes);

/* Set *best to the least number of batches, 1 … most, that takes at most `space` bytes; where none
 * does, to the number that takes the least of those tried. The number doubles while that takes less
 * and does not fit; a smaller one that fits is then looked for. Two batches may take more than one
 * and than four: features of batches have two places. Return the first code of `take` but 0. */
int sl_plan_find_batches(sl_plan_batches_function *take, void *context, int64_t most, int64_t space,
                         int64_t *best);

/* Settle --batches co:auto: the least number of batches that fits into memory, with --recompute
 * auto at its most; where none fits, the number that takes the least. Tell the choice in `chosen`
 * as sl_plan_recompute does, which comes next. Collective. */
int sl_plan_batches(struct sl_runtime *rt, const struct sl_source *source, struct sl_config *config,
                    char *chosen);

/* Make features CSR again that --feature-form auto has made dense, if the run does not fit into the
 * memory otherwise; else tell the form (`chosen`). Collective. SL_ERR_SYSTEM. */
int sl_plan_form(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                 char *chosen);

#endif
