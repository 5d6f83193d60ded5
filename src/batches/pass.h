/* A graph in tiles on some ranks, and a network on it. */
#ifndef SL_BATCHES_PASS_H
#define SL_BATCHES_PASS_H

#include "assembly/operands.h"
#include "core/rates.h"
#include "graphs/links.h"
#include "recipe/config.h"

struct sl_pass {
    struct sl_operands operands;
    struct sl_graph graph;
    struct sl_links links; /* sl_pass_add_links makes them; zeroed: there are none */
    struct sl_network network;
};

/* Make tiles of a dataset on the ranks of `rt`, and a graph of these tiles. The graph's `vertices`
 * and `train_count` are the dataset's. Collective in `rt`. Return a code of sl_operands_create;
 * call sl_pass_destroy in either case, before `rt` ends. */
int sl_pass_open(struct sl_pass *pass, struct sl_runtime *rt, const struct sl_source *source,
                 const struct sl_assembly *assembly);

/* Make the network of a model on an opened pass. `groups` NULL: the model is on the ranks of the
 * pass. `orders`: see sl_network_create. Return 0, SL_ERR_SYSTEM or SL_ERR_USAGE. */
int sl_pass_add_network(struct sl_pass *pass, struct sl_model *model,
                        const struct sl_groups *groups, const struct sl_rates *core,
                        const struct sl_config *config, const int *orders);

/* Make another network on the graph of the pass. The pass must have a network. The caller destroys
 * `network`. */
int sl_pass_create_network(struct sl_pass *pass, struct sl_network *network, struct sl_model *model,
                           const struct sl_config *config, const int *orders);

/* Make the links of the graph of an opened pass, before its network. `source` as of sl_pass_open.
 * Counts of splits become counts of links. Collective. Return a code of sl_links_make. */
int sl_pass_add_links(struct sl_pass *pass, const struct sl_source *source,
                      const struct sl_config *config);

void sl_pass_destroy(struct sl_pass *pass);

#endif
