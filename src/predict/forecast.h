/* What a training step will cost on a distribution, before there is a task of it. Walks are counted
 * beside the code that walks (graphs/counts.h), products and gradients here. Times follow an
 * alpha-beta model of messages (CAGNET, section 4) and rates of kernels. Words and messages are
 * exact, but for the padding and heavy rows of adjacency tiles. Those of delayed vertex-cuts are
 * the mean over a round of bins. */
#ifndef SL_PREDICT_FORECAST_H
#define SL_PREDICT_FORECAST_H

#include "core/rates.h"
#include "predict/plan.h"
#include "predict/tile_counts.h"

/* Payload that a rank receives in a training step, as struct sl_traffic counts it, and its time. */
struct sl_rank_forecast {
    int64_t rows, sums, adjacency; /* bytes, in stages */
    int64_t received;              /* bytes in all */
    int64_t messages;
    double compute, communication; /* seconds */
};

struct sl_forecast {
    const struct sl_distribution_kind *kind;
    struct sl_grid grid;
    char name[32];                 /* that of the distribution, of its grid, of its delay */
    bool exact;                    /* results are those of one rank, but for rounding */
    struct sl_rank_forecast *rank; // (ranks)
    struct sl_rank_forecast most;  /* every figure's largest over the ranks */
    struct sl_rank_forecast mean;
    int64_t adjacency_bytes; /* of the tiles that the rank with most keeps */
    struct sl_plan memory;   /* of the rank with most; that of a grid alone */
    double seconds;
};

/* Of a network that was planned, for the distribution `d`, which may be another one than the
 * network's own with the same columns. SL_ERR_SYSTEM; sl_forecast_free in either case. */
int sl_forecast_network(const struct sl_network *net, const struct sl_distribution *d,
                        const struct sl_tile_counts *counts, const struct sl_rates *rates,
                        struct sl_forecast *out);

void sl_forecast_free(struct sl_forecast *forecast);

#endif
