/* A run's state in a checkpoint: parameters, optimizer, counters, product orders. */
#ifndef SL_TRAIN_STATE_H
#define SL_TRAIN_STATE_H

#include "train/trainer.h"

/* Load tiles and counters from a checkpoint, before any task has touched the tiles. Return 0, or
 * SL_ERR_DATA if the checkpoint has other shapes or is wrong. */
int sl_state_load(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint);

/* Return how a run cuts its graphs: by --tiles, or as the checkpoint's run did if the program
 * chose. If ranks outnumber the checkpoint's shares of hops, shares are cut anew. `checkpoint`
 * NULL: no run came before. */
struct sl_batches_tiles sl_state_tiles(const struct sl_config *config,
                                       const struct sl_checkpoint *checkpoint, int ranks);

/* Return the product orders (layers) that the checkpoint's run chose, for the caller to free.
 * Return NULL if there are none, or --product-order sets one. `checkpoint` may be NULL. */
int *sl_state_orders(const struct sl_config *config, const struct sl_checkpoint *checkpoint,
                     int layers);

/* Return a hash of the parameters, after all tasks on them; equal on all ranks. Collective. */
uint64_t sl_state_hash(struct sl_trainer *trainer);

/* Write the state after the last epoch to a file, on rank 0, with sl_checkpoint_write or
 * (`somewhere`) sl_checkpoint_write_somewhere. Set *epoch on rank 0. Collective. Return the
 * writer's code on rank 0 and 0 on other ranks, or SL_ERR_SYSTEM on all. */
int sl_state_write(struct sl_trainer *trainer, const char *path, bool somewhere, int64_t *epoch);

/* Make the best weights the current ones, and write them alone. A run that resumes starts the
 * optimizer's state from 0. Collective. Return as sl_state_write. */
int sl_state_write_best(struct sl_trainer *trainer, const char *path);

/* Move the state after the last epoch to *out, on all ranks. Collective. Return 0, or SL_ERR_SYSTEM
 * on all. */
int sl_state_take(struct sl_trainer *trainer, struct sl_checkpoint *out);

#endif
