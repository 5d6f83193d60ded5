/* Chooses how many hops a group preloads. */
#ifndef SL_GROUPS_PRELOAD_H
#define SL_GROUPS_PRELOAD_H

#include "batches/batches.h"

enum { SL_PRELOAD_REASON = 256 };

/* Settle --preload-hops auto: the number of hops with the least predicted seconds of an epoch. Rows
 * of other groups take messages; more hops take more computing instead (GraNNDis, condition 7).
 * Write the cause to `reason` (SL_PRELOAD_REASON); leave `reason` alone where the user chose. The
 * vertices of `source` must be in order. Collective. Return 0, or a code of sl_batches_create. */
int sl_preload_choose(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *reason);

#endif
