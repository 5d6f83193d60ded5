/* A synthetic graph with communities: edges prefer their class, and features say a little about it.
 */
#ifndef SL_DATA_GENERATE_COMMUNITY_H
#define SL_DATA_GENERATE_COMMUNITY_H

#include <stdint.h>

#include "data/dataset.h"

struct sl_community_options {
    int64_t vertices; /* 1 … 2^31 - 1 */
    int64_t classes;  /* 1 … vertices */
    double
        degree; /* average number of neighbours, before duplicates are merged: 0 … vertices - 1 */
    int64_t features; /* columns, at least 1 */
    uint64_t seed;
    double homophily; /* probability that an edge stays within its class */
    double
        feature_noise; /* standard deviation of every column; class centres are 1 long on average */
};

#define SL_COMMUNITY_DEFAULTS                                                                      \
    {                                                                                              \
        .vertices = 1000, .classes = 8, .degree = 10, .features = 64, .seed = 1, .homophily = 0.8, \
        .feature_noise = 1.0                                                                       \
    }

/* Make an undirected simple graph with dense features, labels of all vertices and a random 60/20/20
 * split: a pure function of the options. A vertex alone is hard to classify; its neighbours'
 * average is easy. SL_ERR_USAGE names the option that is out of range. */
int sl_generate_community(const struct sl_community_options *options, struct sl_dataset *out);

#endif
