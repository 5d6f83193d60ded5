/* The cost of a training step on a distribution, before there is a task of it. Walks are counted
 * beside the code that walks (graphs/counts.h), products and gradients here. Times follow an
 * alpha-beta model of messages (CAGNET, section 4) and rates of kernels. Words and messages are
 * exact, but for the padding and heavy rows of adjacency tiles. Words and messages of delayed
 * vertex-cuts are the mean over a round of bins. */
#ifndef SL_PREDICT_PREDICTION_H
#define SL_PREDICT_PREDICTION_H

#include "core/rates.h"
#include "predict/plan.h"
#include "predict/tile_counts.h"

/* Payload that a rank receives in a training step, as struct sl_traffic counts it, and its time. */
struct sl_rank_prediction {
    int64_t rows, sums, adjacency; /* bytes, in stages */
    int64_t received;              /* bytes in all */
    int64_t messages;
    int64_t weights, weight_messages; /* part of the received: gradients and values of parameters */
    double compute, communication;    /* seconds */
    double hidden;   /* seconds of messages while the rank works on sparse products */
    double own_last; /* part of `compute`: seconds of own tiles that sums in the order of tiles meet
                        after other ranks' tiles (--sum-order) */
};

struct sl_prediction {
    const struct sl_distribution_kind *kind;
    struct sl_grid grid;
    char name[32];                   /* the distribution's, with its grid or its delay */
    bool exact;                      /* results are those of one rank, but for rounding */
    struct sl_rank_prediction *rank; // (ranks)
    struct sl_rank_prediction most;  /* every figure's largest over the ranks */
    struct sl_rank_prediction mean;
    int64_t adjacency_bytes; /* tiles that the rank with most keeps */
    struct sl_plan memory;   /* on the rank with most; sl_predict_network counts links alone */
    double seconds;
};

/* Predict a planned network on the distribution `d`, which may be another distribution than the
 * network's, with the same columns. Return 0 or SL_ERR_SYSTEM; sl_prediction_free in either case.
 */
int sl_predict_network(const struct sl_network *net, const struct sl_distribution *d,
                       const struct sl_tile_counts *counts, const struct sl_rates *rates,
                       struct sl_prediction *out);

void sl_prediction_free(struct sl_prediction *prediction);

#endif
