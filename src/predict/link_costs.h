/* Predicted pairs and bytes of links (graphs/links.h) on each rank. */
#ifndef SL_PREDICT_LINK_COSTS_H
#define SL_PREDICT_LINK_COSTS_H

#include "graphs/network.h"
#include "predict/plan.h"

/* Links on a rank. Pairs belong to the rank of their source's row tile. */
struct sl_link_costs {
    int tiles;                 /* row tiles that the rank owns whole */
    double pairs;              /* training links and negatives of a step */
    double own;                /* bytes in memory, received tiles apart */
    double rows;               /* received rows of embeddings */
    double training, measured; /* received bytes of blocks: training pairs with targets here, and
                                  measured pairs */
};

/* Set costs (ranks) to the links of a planned network on the distribution `d`. Return 0 or
 * SL_ERR_SYSTEM. */
int sl_link_costs_count(const struct sl_network *net, const struct sl_distribution *d,
                        const struct sl_tile_counts *counts, struct sl_link_costs *costs);

/* Add the bytes of links on the rank with most. */
void sl_link_costs_plan(const struct sl_network *net, const struct sl_link_costs *costs, int ranks,
                        struct sl_plan *memory);

#endif
