/* The graph of a step: chosen vertices, in tiles on the ranks of a group, with a network. */
#ifndef SL_BATCHES_BATCH_H
#define SL_BATCHES_BATCH_H

#include "batches/batches.h"

/* Select the graph of a batch: the vertices inner (count) and the vertices they depend on, by the
 * options. Without a sample, take `hops` hops. Return a code of sl_select; call sl_selection_free
 * in either case. */
int sl_batch_select(const struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                    int hops, struct sl_selection *selection);

/* Make the batch that is the whole graph. Its tiles exist already. */
int sl_batch_make_whole(struct sl_batches *b, struct sl_batch *batch);

/* Make the graph of validation vertices, and of the vertices they depend on, for evaluations
 * between epochs. Make none if these take the whole graph. Collective; returns as sl_batch_make. */
int sl_batch_make_validation(struct sl_batches *b, struct sl_batch *batch);

/* Make the batch of the vertices inner (count; rows of the files) in this rank's group. `draw`: how
 * often samples were drawn before. The batch's places have no memory yet. Collective in all groups.
 * Return 0, or a code of sl_batches_create, the same on all ranks; sl_batch_destroy in either case.
 */
int sl_batch_make(struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                  struct sl_batch *batch);

/* Find the batch of clusters with the most vertices, and the first of two successive batches that
 * take the most memory. Batches of all epochs are numbered from 0. They follow from the seed.
 * Collective. Return 0 or SL_ERR_SYSTEM, the same on all ranks. */
int sl_largest_find(struct sl_batches *b, int64_t *widest, int64_t *pair);

/* Submit the reading of the batch's features, unless they are in memory already. */
void sl_batch_load(struct sl_batches *b, struct sl_batch *batch);

/* Wait for the tasks on the batch, and free it. */
void sl_batch_destroy(struct sl_batch *batch);

/* Give the places of new batches memory. Where a place must grow, wait for the batches that use it.
 * Return 0 or SL_ERR_SYSTEM, the same on all ranks. */
int sl_batches_allocate(struct sl_batches *b);

#endif
