#include "recipe/edges.h"

#include <inttypes.h>

#include "core/error.h"
#include "data/relations.h"

/* Whether some weight is not 1. */
static bool weighs(const struct sl_npy *weights)
{
    int64_t e = 0;
    while (weights->data && e < weights->count && sl_npy_get(weights, e) == 1.0)
        e++;
    return weights->data && e < weights->count;
}

static int settle_relations(struct sl_config *config, struct sl_source *source)
{
    config->relations = source->relations.count;
    if (config->relations == 0)
        return sl_error(SL_ERR_USAGE,
                        "--model %s: the edges of %s have no relations (expected edge_types.npy, "
                        "docs/DATASETS.md)",
                        config->network.model->name, source->path);
    if (weighs(&source->adjacency.values))
        return sl_error(SL_ERR_USAGE,
                        "--model %s: the edges of %s have weights and relations (expected weights "
                        "that are all 1)",
                        config->network.model->name, source->path);
    source->reads_edges = SL_READS_RELATIONS;
    source->adjacency.values = (struct sl_npy){0};
    return sl_relations_count(source);
}

int sl_edges_settle(struct sl_config *config, struct sl_source *source)
{
    const struct sl_model_kind *model = config->network.model;
    const int64_t features = sl_source_edge_features(source);
    const bool reads =
        features > 0 && model->edges != SL_EDGES_UNREAD && config->network.edges != SL_EDGES_NONE;
    config->edge_features = config->relations = 0;
    source->reads_edges = SL_READS_NO_EDGES;
    if (model->edges == SL_EDGES_RELATIONS)
        return settle_relations(config, source);
    if (!reads && model->edges == SL_EDGES_NEEDED)
        return sl_error(SL_ERR_USAGE,
                        "--model %s: %s (expected edge_features.npy, docs/DATASETS.md, or --model "
                        "gin)",
                        model->name,
                        features > 0 ? "--edge-features none leaves it without edge features"
                                     : "the dataset has no edge features");
    if (reads && weighs(&source->adjacency.values))
        return sl_error(SL_ERR_USAGE,
                        "--model %s: the edges of %s have weights and features (expected one of "
                        "both: --edge-features none, or weights that are all 1)",
                        model->name, source->path);
    if (!reads)
        return 0;
    config->edge_features = features;
    source->reads_edges = SL_READS_EDGE_FEATURES;
    source->adjacency.values = (struct sl_npy){0};
    return 0;
}

int sl_edges_follow(struct sl_config *config, struct sl_source *source, int64_t features,
                    int64_t relations, const char *model)
{
    if (features == 0)
        config->network.edges = SL_EDGES_NONE;
    if (relations < 0 || relations > SL_RELATIONS)
        return sl_error(SL_ERR_DATA, "%s: %" PRId64 " relations (expected 0 to %d)", model,
                        relations, SL_RELATIONS);
    if (source->relations.count > 0 && source->relations.count < relations)
        source->relations.count = relations;
    const int code = sl_edges_settle(config, source);
    if (code)
        return code;
    if (config->edge_features != features)
        return sl_error(SL_ERR_DATA,
                        "%s: the model reads %" PRId64 " edge features, and %s has %" PRId64
                        " (expected as many)",
                        model, features, source->path, config->edge_features);
    if (config->relations > relations)
        return sl_error(SL_ERR_DATA,
                        "%s: the model has %" PRId64 " relations, and %s has %" PRId64
                        " (expected as many or fewer)",
                        model, relations, source->path, config->relations);
    return 0;
}
