/* A run's state in a checkpoint: parameters, optimizer, counters, the orders of products. */
#ifndef SL_TRAIN_STATE_H
#define SL_TRAIN_STATE_H

#include "train/trainer.h"

/* Takes tiles and counters, before any task has touched the tiles. SL_ERR_DATA: the checkpoint is
 * of other shapes, or wrong. */
int sl_state_load(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint);

/* Return how a run cuts its graphs: as --tiles says, or as the run before it did, which left the
 * tiles to the program. More ranks need shares of hops of their own. checkpoint NULL: there was no
 * run before. */
struct sl_batches_tiles sl_state_tiles(const struct sl_config *config,
                                       const struct sl_checkpoint *checkpoint, int ranks);

/* Orders of products (layers) that the run before has chosen, the caller's; NULL where there are
 * none, or --product-order says one. `checkpoint` may be NULL. */
int *sl_state_orders(const struct sl_config *config, const struct sl_checkpoint *checkpoint,
                     int layers);

/* Write the state after the last epoch to a file, on rank 0: sl_checkpoint_write, or `somewhere`.
 * Collective. Return what that returns, 0 on other ranks; or SL_ERR_SYSTEM on all. *epoch: the
 * epoch, on rank 0. */
int sl_state_write(struct sl_trainer *trainer, const char *path, bool somewhere, int64_t *epoch);

/* Make the best weights the current ones and write them alone: a run goes on with them, and the
 * optimizer's state from 0. Collective. Return what sl_state_write does. */
int sl_state_write_best(struct sl_trainer *trainer, const char *path);

/* Move the state after the last epoch to *out, on all ranks. Collective. Return 0, or SL_ERR_SYSTEM
 * on all. */
int sl_state_take(struct sl_trainer *trainer, struct sl_checkpoint *out);

#endif
