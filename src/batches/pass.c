#include "batches/pass.h"

#include "recipe/link_options.h"

int sl_pass_open(struct sl_pass *pass, struct sl_runtime *rt, const struct sl_source *source,
                 const struct sl_assembly *assembly)
{
    struct sl_operands *operands = &pass->operands;
    pass->network.rt = rt;
    pass->network.graph = &pass->graph;
    pass->graph.distribution = operands->distribution;
    const int code = sl_operands_create(operands, rt, source, assembly);
    if (code)
        return code;
    pass->graph = (struct sl_graph){
        .row_orders = operands->row_orders,
        .distribution = operands->distribution,
        .adjacency = operands->adjacency,
        .adjacency_transposed =
            operands->transposed->tiles ? operands->transposed : operands->adjacency,
        .scales = operands->scales,
        .input = operands->input,
        .scaled = assembly->norm == SL_NORM_SYM && !assembly->alone_first,
        .own = operands->own,
        .target = operands->target,
        .type = operands->type,
        .objective = operands->objective,
        .weights = operands->weights.rows ? &operands->weights : NULL,
        .vertices = source->vertices,
        .train_count = operands->split_count[SL_SPLIT_TRAIN],
    };
    return 0;
}

int sl_pass_add_network(struct sl_pass *pass, struct sl_model *model,
                        const struct sl_groups *groups, const struct sl_rates *core,
                        const struct sl_config *config, const int *orders)
{
    pass->network.model = model;
    pass->network.groups = groups;
    pass->network.rates = core;
    return sl_network_create(&pass->network, sl_config_product_order(config), orders);
}

int sl_pass_create_network(struct sl_pass *pass, struct sl_network *network, struct sl_model *model,
                           const struct sl_config *config, const int *orders)
{
    *network = (struct sl_network){.rt = pass->network.rt,
                                   .graph = &pass->graph,
                                   .model = model,
                                   .memory.places = pass->network.memory.places,
                                   .rates = pass->network.rates};
    return sl_network_create(network, sl_config_product_order(config), orders);
}

int sl_pass_add_links(struct sl_pass *pass, const struct sl_source *source,
                      const struct sl_config *config)
{
    const struct sl_link_choice choice = sl_links_choice(config, source);
    const int code =
        sl_links_make(&pass->links, pass->network.rt, source, &pass->operands, &choice);
    pass->graph.links = &pass->links;
    pass->graph.train_count = pass->links.count;
    for (int s = 0; s < SL_SPLITS; s++)
        pass->operands.split_count[s] = pass->links.lists.links[s];
    pass->operands.split_count[SL_SPLIT_TRAIN] = pass->links.count;
    return code;
}

void sl_pass_destroy(struct sl_pass *pass)
{
    if (pass->network.rt)
        sl_network_destroy(&pass->network);
    sl_links_destroy(&pass->links);
    sl_operands_destroy(&pass->operands);
    *pass = (struct sl_pass){0};
}
