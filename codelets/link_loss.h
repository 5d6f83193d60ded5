/* Losses of links. s is the score of a link, n the score of a negative, K the number of negatives
 * of a link:
 *
 *     cross-entropy   mean over links of softplus(-s), plus mean over negatives of softplus(n)
 *     pairwise        mean over links and their negatives of softplus(n - s)
 *                     (Bayesian personalised ranking; Rendle et al., UAI 2009)
 *
 * with softplus(x) = log(1 + e^x). */
#ifndef SL_CODELETS_LINK_LOSS_H
#define SL_CODELETS_LINK_LOSS_H

#include "codelets/links.h"
#include "codelets/metrics.h"

enum sl_link_loss { SL_LINK_CROSS_ENTROPY, SL_LINK_PAIRWISE };

/* The segments of one tile's links. */
struct sl_link_losses {
    enum sl_link_loss loss;
    double links, negatives; /* links of all tiles; negatives for each */
    int blocks;
    struct sl_scored_link *const *block; // (blocks): the segments
    float *score, *slope;                // (links of the tile): scratch of the pairwise loss
    int64_t count;                       /* links of the tile */
};

/* Turn scores into the gradients of the mean loss by them. Return the tile's sum over links. */
double sl_link_losses_differentiate(const struct sl_link_losses *losses);

/* Submit the gradients in blocks (count) of one tile, with `segments` segments together, and
 * metrics = the tile's sum of losses; all else in `metrics` is 0. scratch (2, links of the tile):
 * pairwise alone, else NULL. */
void sl_submit_link_loss(struct sl_runtime *rt, enum sl_link_loss loss, int64_t links,
                         int64_t negatives, struct sl_tile *scratch, struct sl_tile *metrics,
                         int segments, int count, struct sl_tile *blocks);

#endif
