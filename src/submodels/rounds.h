/* Rounds of sub-models (GIST). Each round cuts the units of every hidden axis anew into as many
 * disjoint parts as there are sub-models. Sizes of parts are alike in every round: equal, or by
 * given shares. */
#ifndef SL_SUBMODELS_ROUNDS_H
#define SL_SUBMODELS_ROUNDS_H

#include "codelets/units.h"
#include "graphs/axes.h"
#include "recipe/config.h"

struct sl_rounds {
    const struct sl_axes *axes;
    enum sl_rounds_kind kind;
    int parts;
    int64_t *before; // (parts + 1): sums of the shares of earlier parts; NULL: all shares are equal
    uint64_t seed;
    int64_t count, drawn; /* the most rounds; rounds drawn so far */
    bool *split;          // (axes)
    int64_t *first;   // (axes + 1): first unit of an axis in a round; an axis that is not split has
                      // no units
    uint8_t *part;    // (first[axes], count): `part`, transposed
    uint8_t *history; // (first[axes], count): `part`, transposed
};

/* Make room for `count` rounds. `splits` (axes): which axes are split, never the classes; NULL: all
 * hidden axes. Return SL_ERR_USAGE if an axis has fewer units (in a head) than parts, or, with
 * SL_ROUNDS_LATIN, not a multiple of parts. Return SL_ERR_SYSTEM without memory. Call
 * sl_rounds_free in any case. */
int sl_rounds_create(struct sl_rounds *rounds, const struct sl_axes *axes, enum sl_rounds_kind kind,
                     int parts, int64_t count, uint64_t seed, const bool *splits);
void sl_rounds_free(struct sl_rounds *rounds);

/* Give parts units in proportion to `share` (parts), at least 1 each, before anything is drawn.
 * Return SL_ERR_USAGE if a part gets no unit of an axis (of a head), or SL_ERR_SYSTEM. */
int sl_rounds_share(struct sl_rounds *rounds, const int64_t *share);

/* Draw the parts up to round `round` (0, 1, …) at least. */
void sl_rounds_draw(struct sl_rounds *rounds, int64_t round);

/* Return how many units of an axis a part has. */
int64_t sl_rounds_size(const struct sl_rounds *rounds, int axis, int part);

/* Return how many columns of an axis a part's network has: the part's units of a hidden axis, all
 * features of the input. */
int64_t sl_rounds_width(const struct sl_rounds *rounds, int axis, int part);

/* Whether the networks of two parts have the same columns. */
bool sl_rounds_alike(const struct sl_rounds *rounds, int a, int b);

/* Return the block of a layer's parameters that a part has in a drawn round. Where features are
 * cut, the block has all their rows. */
struct sl_unit_block sl_rounds_block(const struct sl_rounds *rounds, int64_t round, int part,
                                     int layer, int weights);

/* Return the parts of a layer's units in the rounds before a drawn round. */
struct sl_rounds_past sl_rounds_past(const struct sl_rounds *rounds, int64_t round, int64_t steps,
                                     int layer);

/* Return the bytes of the parts of all rounds, on one rank. */
int64_t sl_rounds_bytes(const struct sl_rounds *rounds);

#endif
