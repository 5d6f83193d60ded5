/* Helpers that submodels.c and submodels_create.c share. Tile k of a layer holds its parameters (k
 * = 0) or state k of the optimizer (k = 1, 2). */
#ifndef SL_SUBMODELS_SUBMODEL_TILES_H
#define SL_SUBMODELS_SUBMODEL_TILES_H

#include "submodels/submodels.h"

static inline int sl_submodel_tiles(const struct sl_submodels *s)
{
    return s->store->kinds;
}

static inline struct sl_tile *sl_submodel_tile(struct sl_model *model, int layer, int k)
{
    struct sl_model_layer *of = &model->layer[layer];
    return k ? &of->state[k - 1] : &of->parameters;
}

static inline struct sl_unit_block sl_submodel_block(const struct sl_submodels *s, int64_t round,
                                                     int part, int layer)
{
    return sl_rounds_block(&s->rounds, round, part, layer,
                           sl_layer_shape_unit_weights(&s->list.layer[layer]));
}

static inline struct sl_carried *sl_submodel_carried(struct sl_submodels *s, int slot, int layer,
                                                     int k)
{
    return &s->slot[slot].carried[layer * sl_submodel_tiles(s) + k];
}

/* Return kind k of a sub-model's shared entries: an array with a tile for each shard. */
static inline struct sl_tile *sl_submodel_kept(const struct sl_submodels *s, int part, int k)
{
    return &s->of[part].kept[k * s->store->shards];
}

static inline bool sl_submodel_slot_here(const struct sl_submodels *s, int slot)
{
    return slot >= s->first_slot && slot < s->first_slot + s->own_slots;
}

/* Loop over all shards n and kinds k of parameters and state. */
#define SL_FOR_PANELS(s, n, k)                   \
    for (int n = 0; n < (s)->store->shards; n++) \
        for (int k = 0; k < sl_submodel_tiles(s); k++)

/* Loop over all layers l that learn and kinds k of parameters and state. */
#define SL_FOR_TILES(s, l, k)                 \
    for (int l = 0; l < (s)->list.count; l++) \
        for (int k = 0; sl_model_learns(&(s)->whole->layer[l]) && k < sl_submodel_tiles(s); k++)

#endif
