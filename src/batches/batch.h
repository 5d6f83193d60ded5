/* The graph of a step: chosen vertices, in tiles on the ranks of a group, with a network. */
#ifndef SL_BATCHES_BATCH_H
#define SL_BATCHES_BATCH_H

#include "batches/batches.h"

/* Select what a batch trains on: the vertices inner (count) and what they depend on, as the options
 * say, and without a sample `hops` hops. Return a code of sl_select; sl_selection_free in either
 * case. */
int sl_batch_select(const struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                    int hops, struct sl_selection *selection);

/* Make the batch that is the whole graph, whose tiles are there already. */
int sl_batch_make_whole(struct sl_batches *b, struct sl_batch *batch);

/* Make the graph that evaluations between epochs take, unless they take the whole one: of the
 * validation vertices, and what these depend on. Collective; returns as sl_batch_make. */
int sl_batch_make_validation(struct sl_batches *b, struct sl_batch *batch);

/* Make the batch of the vertices inner (count; rows of the files) in this rank's group. `draw`: how
 * often samples were drawn before. Its places have no memory yet. Collective in all groups. Return
 * 0, or a code of sl_batches_create, the same on all ranks; sl_batch_destroy in either case. */
int sl_batch_make(struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                  struct sl_batch *batch);

/* Batches of clusters follow from the seed. Find the batch of the run with the most vertices, and
 * the first of the two batches, one after the other, that take the most memory. Batches count from
 * 0 through all epochs. Collective. SL_ERR_SYSTEM, the same on all ranks. */
int sl_largest_find(struct sl_batches *b, int64_t *widest, int64_t *pair);

/* Submit the reading of the batch's features, unless they are there or always are. */
void sl_batch_load(struct sl_batches *b, struct sl_batch *batch);

/* Wait for the tasks on the batch, and free it. */
void sl_batch_destroy(struct sl_batch *batch);

/* Give the places of new batches memory. Where they need more than there is, wait for the batches
 * that have the places. Return 0 or SL_ERR_SYSTEM, the same on all ranks. */
int sl_batches_allocate(struct sl_batches *b);

#endif
