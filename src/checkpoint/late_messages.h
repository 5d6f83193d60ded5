/* A checkpoint's messages on their way between training steps (graphs/late_rows.h). A tensor
 * "late.rank<r>.aggregation<a>" has the rows of rank r in aggregation a of a step, if there are
 * any. The description has
 *
 *   "late": {"ranks": …, "delay": …, "steps": training steps done, "cut": who has which clones} */
#ifndef SL_CHECKPOINT_LATE_MESSAGES_H
#define SL_CHECKPOINT_LATE_MESSAGES_H

#include "checkpoint/checkpoint.h"
#include "graphs/network.h"

/* Whether the network has messages on their way between training steps. */
bool sl_late_messages(const struct sl_network *net);

/* Add the late messages of all ranks to rank 0's checkpoint, which has a description. Collective,
 * after all ranks have submitted the same steps. Return 0 or SL_ERR_SYSTEM, the same on all ranks.
 */
int sl_late_messages_save(struct sl_network *net, struct sl_checkpoint *checkpoint);

/* Load the late messages of a checkpoint that every rank has read, before the first step. Drop
 * messages of another number of ranks, delay or partition, with a note that names `file`, unless it
 * is NULL. Collective. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM. */
int sl_late_messages_load(struct sl_network *net, const struct sl_checkpoint *checkpoint,
                          const char *file);

#endif
