/* Chooses the number of row tiles that makes the modelled epoch shortest. */
#ifndef SL_ASSEMBLY_TILE_CHOICE_H
#define SL_ASSEMBLY_TILE_CHOICE_H

#include "assembly/partition.h"

/* Return a number of tiles, a multiple of `ranks`, for epochs of a two-layer network of
 * `options->width`. More tiles feed more workers, balance them and hide messages, but cost tasks,
 * gradients and visits of rows. With several ranks, read a sample of the adjacency's rows.
 * Collective. */
int64_t sl_tile_choice(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_partition_options *options, int64_t ranks);

#endif
