/* Rounds of sub-models (GIST): each cuts the units of all hidden axes anew into as many parts as
 * there are sub-models, disjoint and together all. Sizes of parts are the same in every round:
 * equal, or by given shares. */
#ifndef SL_SUBMODELS_ROUNDS_H
#define SL_SUBMODELS_ROUNDS_H

#include "codelets/units.h"
#include "graphs/axes.h"
#include "recipe/config.h"

struct sl_rounds {
    const struct sl_axes *axes;
    enum sl_rounds_kind kind;
    int parts;
    int64_t *before; // (parts + 1): sums of the shares of the parts before; NULL: all are equal
    uint64_t seed;
    int64_t count, drawn; /* rounds at most; those that were drawn */
    bool *split;          // (axes)
    int64_t *first;       // (axes + 1): places in a round; nothing where the axis is not split
    uint8_t *part;        // (count, first[axes]): of each unit
    uint8_t *history;     // (first[axes], count): the same, rounds of a unit side by side
};

/* Make room for `count` rounds. `splits` (axes), or NULL for all hidden ones: which axes are split;
 * never the classes.
 * SL_ERR_USAGE: an axis has fewer units (of a head) than there are parts, or, with SL_ROUNDS_LATIN,
 * not a multiple. SL_ERR_SYSTEM; sl_rounds_free in any case. */
int sl_rounds_create(struct sl_rounds *rounds, const struct sl_axes *axes, enum sl_rounds_kind kind,
                     int parts, int64_t count, uint64_t seed, const bool *splits);
void sl_rounds_free(struct sl_rounds *rounds);

/* Let parts have units in proportion to `share` (parts), at least 1 each, before anything is drawn.
 * SL_ERR_USAGE: a part has no unit of an axis (of a head). SL_ERR_SYSTEM. */
int sl_rounds_share(struct sl_rounds *rounds, const int64_t *share);

/* Draw the parts up to round `round` (0, 1, …) at least. */
void sl_rounds_draw(struct sl_rounds *rounds, int64_t round);

/* Return how many units of an axis a part has. */
int64_t sl_rounds_size(const struct sl_rounds *rounds, int axis, int part);

/* Return the columns that a part's network has of an axis: those units, but all features. */
int64_t sl_rounds_width(const struct sl_rounds *rounds, int axis, int part);

/* Whether the networks of two parts have the same columns. */
bool sl_rounds_alike(const struct sl_rounds *rounds, int a, int b);

/* Return the block of a layer's parameters that a part has in a round that was drawn. It has all
 * rows of features that are cut. */
struct sl_unit_block sl_rounds_block(const struct sl_rounds *rounds, int64_t round, int part,
                                     int layer, int weights);

/* Return the parts of units of a layer in the rounds before a round that was drawn. */
struct sl_rounds_past sl_rounds_past(const struct sl_rounds *rounds, int64_t round, int64_t steps,
                                     int layer);

/* Return the bytes of parts of all rounds. */
int64_t sl_rounds_bytes(const struct sl_rounds *rounds);

#endif
