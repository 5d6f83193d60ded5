/* A run's state in a checkpoint: parameters, optimizer, counters, the orders of products. */
#ifndef SL_TRAIN_STATE_H
#define SL_TRAIN_STATE_H

#include "train/trainer.h"

/* Takes tiles and counters, before any task has touched the tiles. SL_ERR_DATA: the checkpoint is
 * of other shapes, or wrong. */
int sl_state_load(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint);

/* Orders of products (layers) that the run before has chosen, the caller's; NULL where there are
 * none, or --product-order says one. `checkpoint` may be NULL. */
int *sl_state_orders(const struct sl_config *config, const struct sl_checkpoint *checkpoint,
                     int layers);

/* Collects the state after the last epoch on rank 0; others have an empty checkpoint, and free it,
 * too. Collective. SL_ERR_SYSTEM. */
int sl_state_collect(struct sl_trainer *trainer, struct sl_checkpoint *checkpoint);

#endif
