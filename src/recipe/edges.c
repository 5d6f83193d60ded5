#include "recipe/edges.h"

#include <inttypes.h>

#include "core/error.h"

/* Whether some weight is not 1. */
static bool weighs(const struct sl_npy *weights)
{
    int64_t e = 0;
    while (weights->data && e < weights->count && sl_npy_get(weights, e) == 1.0)
        e++;
    return weights->data && e < weights->count;
}

int sl_edges_settle(struct sl_config *config, struct sl_source *source)
{
    const struct sl_model_kind *model = config->network.model;
    const bool has = source->edge_features.data != NULL,
               reads =
                   has && model->edges != SL_EDGES_UNREAD && config->network.edges != SL_EDGES_NONE;
    config->edge_features = reads ? source->edge_features.shape[1] : 0;
    source->reads_edges = reads;
    if (!reads && model->edges == SL_EDGES_NEEDED)
        return sl_error(SL_ERR_USAGE,
                        "--model %s: %s (expected edge_features.npy, docs/DATASETS.md, or --model "
                        "gin)",
                        model->name,
                        has ? "--edge-features none leaves it without edge features"
                            : "the dataset has no edge features");
    if (reads && weighs(&source->adjacency.values))
        return sl_error(SL_ERR_USAGE,
                        "--model %s: the edges of %s have weights and features (expected one of "
                        "both: --edge-features none, or weights that are all 1)",
                        model->name, source->path);
    if (reads)
        source->adjacency.values = (struct sl_npy){0};
    return 0;
}

int sl_edges_follow(struct sl_config *config, struct sl_source *source, int64_t trained,
                    const char *model)
{
    if (trained == 0)
        config->network.edges = SL_EDGES_NONE;
    const int code = sl_edges_settle(config, source);
    if (code || config->edge_features == trained)
        return code;
    return sl_error(SL_ERR_DATA,
                    "%s: the model reads %" PRId64 " edge features, and %s has %" PRId64
                    " (expected as many)",
                    model, trained, source->path, config->edge_features);
}
