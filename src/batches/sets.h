/* The groups of ranks, the vertices of each group, and the sets that these vertices are cut into.
 * Steps train on sets. */
#ifndef SL_BATCHES_SETS_H
#define SL_BATCHES_SETS_H

#include "batches/batches.h"

/* Whether each epoch joins other sets in a batch. Two batches are in memory then: the batch under
 * training, and the next batch. */
bool sl_batches_rotate(const struct sl_batches *b);

/* Whether batches are drawn anew while the run goes on. */
bool sl_batches_are_drawn(const struct sl_batches *b);

/* Whether features of batches stay in the source and are read for each step. */
bool sl_batches_read_features(const struct sl_batches *b);

/* Make the groups, and cut the vertices among them. This rank's group gets set_cut[how.sets]
 * vertices. Collective. Return a code of sl_batches_create, the same on all ranks. */
int sl_batches_group(struct sl_batches *b);
int sl_batches_cut(struct sl_batches *b);

/* Cut the vertices of this rank's group into sets. Collective; returns as sl_batches_cut. */
int sl_batches_cut_sets(struct sl_batches *b);

/* Keep the vertices of part `group`, and cut them into sets. part (vertices of the source): the
 * part of each vertex. Collective; returns as sl_batches_cut. */
int sl_batches_cut_part(struct sl_batches *b, const int32_t *part, int group);

/* Count inner vertices and training vertices of each set. Collective; returns as sl_batches_cut. */
int sl_batches_count_sets(struct sl_batches *b);

/* Return the set at place 0 … sets - 1 of the random order of epoch 1, 2, … */
int64_t sl_batches_set_at(const struct sl_batches *b, int64_t epoch, int64_t place);

/* Set `inner` (room for set_cut[how.sets]) to the vertices of a step, as rows of the files. Return
 * how many vertices the step has. */
int64_t sl_batches_take(const struct sl_batches *b, int64_t epoch, int step, int64_t *inner);

#endif
