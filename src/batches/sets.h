/* The groups of ranks, the vertices of each, and the sets that these are cut into. Steps train on
 * sets. */
#ifndef SL_BATCHES_SETS_H
#define SL_BATCHES_SETS_H

#include "batches/batches.h"

/* Whether each epoch joins other sets in a batch. Then two batches are in memory: the batch under
 * training, and the next batch. */
bool sl_batches_rotate(const struct sl_batches *b);

/* Whether batches are drawn anew while the run goes on. */
bool sl_batches_are_drawn(const struct sl_batches *b);

/* Whether features of batches stay in the source, and are read for each step. */
bool sl_batches_read_features(const struct sl_batches *b);

/* Make the groups, and cut the vertices among them: set_cut[how.sets] vertices are this group's.
 * Collective. Return a code of sl_batches_create, the same on all ranks. */
int sl_batches_group(struct sl_batches *b);
int sl_batches_cut(struct sl_batches *b);

/* Cut the vertices of this rank's group into sets. Collective; returns as sl_batches_cut. */
int sl_batches_cut_sets(struct sl_batches *b);

/* Keep the vertices of one of the parts (vertices of the source), and cut them into sets.
 * Collective and as the above. */
int sl_batches_cut_part(struct sl_batches *b, const int32_t *part, int group);

/* Count inner vertices and training vertices of each set. Collective; returns as sl_batches_cut. */
int sl_batches_count_sets(struct sl_batches *b);

/* The set at a place, 0 … sets - 1, of the random order of an epoch, 1, 2, … */
int64_t sl_batches_set_at(const struct sl_batches *b, int64_t epoch, int64_t place);

/* Set `inner` (of set_cut[how.sets] places) to the vertices of a step, rows of the files. Return
 * how many they are. */
int64_t sl_batches_take(const struct sl_batches *b, int64_t epoch, int step, int64_t *inner);

#endif
