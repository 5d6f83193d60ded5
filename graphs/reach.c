#include "graphs/reach.h"

#include <limits.h>

#include "codelets/init.h"

int sl_reach_of_input(const struct sl_layer *layer)
{
    const bool aggregates = !layer->kind->alone && layer->order != SL_AGGREGATED;
    return layer->rows.hops + aggregates;
}

/* Return how many hops away the furthest rows are that a walk moves. A first layer's input has all
 * rows, unless the layer drops it out. */
static int reach_of_moved(const struct sl_layer *layer)
{
    const bool input = layer->order == SL_SPMM_FIRST && !layer->dropped.tiles;
    if (!input)
        return sl_reach_of_input(layer);
    return layer->index > 0 ? (layer - 1)->rows.read : INT_MAX;
}

struct sl_counted_walk sl_reach_of_walk(const struct sl_layer *layer,
                                        const struct sl_distribution *d, bool transposed)
{
    struct sl_counted_walk walk = {transposed, INT_MAX, INT_MAX};
    if (d->hop && transposed) {
        walk.from = layer->rows.hops;
        walk.to = sl_reach_of_input(layer);
    } else if (d->hop) {
        walk.from = reach_of_moved(layer);
        walk.to = layer->rows.hops;
    }
    return walk;
}

/* Plan backward from the logits, which only inner vertices need. Refreshed copies come from their
 * owners, and are not computed. A jump reads only inner vertices of its inputs. */
static void plan_layers(struct sl_network *net)
{
    for (int l = 0; l < net->layers; l++)
        net->layer[l].rows.read = 0;
    for (int l = net->layers - 1; l >= 0; l--) {
        struct sl_layer *layer = &net->layer[l];
        layer->rows.hops = layer->rows.refreshed ? 0 : layer->rows.read;
        if (layer->residual.earlier &&
            net->layer[layer->residual.earlier->index].rows.read < layer->rows.hops)
            net->layer[layer->residual.earlier->index].rows.read = layer->rows.hops;
        if (l > 0 && (layer - 1)->rows.read < sl_reach_of_input(layer))
            (layer - 1)->rows.read = sl_reach_of_input(layer);
    }
}

static bool is_beyond(const struct sl_distribution *d, int i, int hops)
{
    return d->hop && d->hop[i] > hops;
}

int sl_reach_of_gradient(const struct sl_layer *layer, int block, int columns)
{
    const bool edges = layer->edge_rows > 0;
    const int least = sl_layer_weight_count(layer) - 1,
              most = least + (layer->kind->sums || layer->kind->vectors.biases || edges);
    if (edges && sl_layer_shape_whole(&layer->model->shape))
        return sl_reach_of_input(layer);
    return (layer->order == SL_GEMM_FIRST || edges) && block / columns >= least &&
                   block / columns <= most
               ? sl_reach_of_input(layer)
               : layer->rows.hops;
}

void sl_reach_gradients(const struct sl_network *net, const struct sl_layer *layer)
{
    const struct sl_distribution *d = net->graph->distribution;
    const struct sl_matrix *gradients = &layer->back.gradients;
    const int blocks = gradients->tile_rows / d->tiles;
    for (int r = 0; r < gradients->tile_rows; r++)
        for (int j = 0; j < gradients->tile_cols; j++)
            sl_matrix_tile(gradients, r, j)->idle =
                is_beyond(d, r / blocks, sl_reach_of_gradient(layer, r % blocks, d->grid.columns));
}

void sl_reach_plan(struct sl_network *net)
{
    const struct sl_distribution *d = net->graph->distribution;
    plan_layers(net);
    for (int l = 0; l < net->layers; l++)
        for (struct sl_layer *of = &net->layer[l]; of; of = of->beside) {
            of->rows = net->layer[l].rows;
            sl_reach_gradients(net, of);
        }
    for (int i = 0; i < d->tiles; i++)
        net->metrics[i].idle = is_beyond(d, i, net->layer[net->layers - 1].rows.hops);
}

static void set_tile(struct sl_runtime *rt, struct sl_tile *tile, bool idle)
{
    if (idle && !tile->idle)
        sl_submit_fill(rt, 0.0f, tile);
    tile->idle = idle;
}

void sl_reach_set(struct sl_network *net, const struct sl_matrix *matrix, int hops)
{
    const struct sl_distribution *d = &net->graph->distribution[matrix->row_order];
    for (int i = 0; d->hop && i < matrix->tile_rows; i++)
        for (int j = 0; j < matrix->tile_cols; j++)
            set_tile(net->rt, sl_matrix_tile(matrix, i, j), is_beyond(d, i, hops));
}

void sl_reach_copy(struct sl_network *net, const struct sl_matrix *from,
                   const struct sl_matrix *matrix)
{
    const struct sl_distribution *d = &net->graph->distribution[matrix->row_order];
    for (int i = 0; d->hop && i < matrix->tile_rows; i++)
        for (int j = 0; j < matrix->tile_cols; j++)
            set_tile(net->rt, sl_matrix_tile(matrix, i, j), sl_matrix_tile(from, i, 0)->idle);
}
