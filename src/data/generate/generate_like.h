/* Make synthetic datasets of the shape of published ones. */
#ifndef SL_DATA_GENERATE_LIKE_H
#define SL_DATA_GENERATE_LIKE_H

#include <stdint.h>

#include "data/dataset.h"
#include "data/source.h"

/* The datasets that can be imitated. */
#define SL_LIKE_NAMES "reddit|products|proteins|arxiv|papers|mag"

struct sl_like_options {
    const char *name; /* one of SL_LIKE_NAMES */
    double scale;     /* in (0, 1]: share of the vertices; the average degree stays */
    uint64_t seed;
    int64_t threads; /* 0: as many as this process may run */
};

/* Make an undirected simple graph with the published vertices (times the scale), average degree,
 * spread of degrees, features, classes, split sizes and homophily. Labels can be learnt, and
 * features are dense. Vertices are in random order. A pure function of name, scale and seed,
 * whatever the threads. SL_ERR_USAGE names the option that is out of range. It also refuses a scale
 * with too few vertices for the average degree. */
int sl_generate_like(const struct sl_like_options *options, struct sl_dataset *out);

/* Make a source with the published sizes alone, for plans. SL_ERR_USAGE: no such name. Call
 * sl_source_close in either case. */
int sl_like_source(const char *name, struct sl_source *out);

#endif
