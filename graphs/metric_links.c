/* Metrics that links alone have. */
#include "graphs/metric.h"

#define HITS(k)                                   \
    const struct sl_metric sl_metric_hits_##k = { \
        .name = "hits@" #k,                       \
        .source = SL_METRIC_OF_LINKS,             \
        .index = SL_METRIC_VALUE,                 \
        .links = {SL_LINKS_HITS, k},              \
    }

HITS(10);
HITS(20);
HITS(50);
HITS(100);

const struct sl_metric sl_metric_mrr = {
    .name = "mrr",
    .source = SL_METRIC_OF_LINKS,
    .index = SL_METRIC_VALUE,
    .links = {SL_LINKS_MRR, 0},
};
