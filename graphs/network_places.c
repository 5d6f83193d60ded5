/* Assign places to a network's matrices. Matrices that are never in use at the same time share a
 * place. */
#include "graphs/network_places.h"

#include <stdlib.h>

#include "core/error.h"

int sl_network_share(struct sl_network *net, enum sl_place_use use, int number,
                     struct sl_matrix *matrix)
{
    struct sl_place *place = sl_places_find(net->memory.places, use, number);
    return place ? sl_place_add(place, matrix) : SL_ERR_SYSTEM;
}

int sl_network_keep(struct sl_network *net, const struct sl_layer *layer, int last,
                    struct sl_matrix *matrix)
{
    if (net->memory.kept_count == net->memory.kept_room) {
        const int room = 2 * net->memory.kept_room + 16;
        struct sl_kept *longer = realloc(net->memory.kept, (size_t)room * sizeof *longer);
        if (!longer)
            return sl_error(SL_ERR_SYSTEM, "no memory for a list of %d matrices", room);
        net->memory.kept = longer;
        net->memory.kept_room = room;
    }
    net->memory.kept[net->memory.kept_count++] = (struct sl_kept){matrix, layer->index, last};
    return 0;
}

/* Return the last layer that reads an output, forward: the next layer, a layer that adds it, or a
 * jump. The loss reads the last output. */
static int last_reader(const struct sl_network *net, const struct sl_layer *layer)
{
    int last = layer->index + 1;
    for (int l = last; l < net->layers; l++)
        if (net->layer[l].residual.earlier == layer ||
            l - sl_layer_shape_reach(&net->layer[l].model->shape) <= layer->index)
            last = l;
    return last;
}

/* Return the layer with whose output `dropped` shares a place: the widest but the first. Forward,
 * its output follows the products with `dropped`; back, its gradient is done before. */
static struct sl_layer *find_shared(struct sl_network *net)
{
    struct sl_layer *widest = NULL;
    for (int l = 1; l < net->layers && net->layer->dropped.tiles; l++)
        if (!net->layer[l].output.place && (!widest || net->layer[l].out > widest->out))
            widest = &net->layer[l];
    return widest;
}

/* Give places to outputs that are made again going back. All normalised rows share one place. Each
 * block of a segment has one, shared with other segments; the last block's output stays. All ranks
 * make the same outputs again, so they share these places however small. */
static int share_again(struct sl_network *net)
{
    const int segment = net->model->options.recompute;
    int blocks = 0, number = 0, code = 0;
    for (int l = 0; l < net->layers; l++)
        blocks += net->layer[l].model->shape.block;
    for (int l = 0; !code && l < net->layers; l++) {
        struct sl_layer *layer = &net->layer[l];
        const bool block = layer->model->shape.block;
        number += block;
        if (segment != 0 && layer->model->shape.passing)
            code = sl_network_share(net, SL_PLACE_PASSING, 0, &layer->output);
        if (!block || segment < 2 || number % segment == 0)
            continue;
        code = sl_network_share(net, SL_PLACE_SEGMENT, number % segment - 1, &layer->output);
        if (!code)
            layer->output.place->shared = true;
        layer->rows.twice =
            number + segment <= blocks; /* the place's last output needs no second pass */
    }
    return code;
}

static int share_dropped(struct sl_network *net)
{
    struct sl_layer *shared = find_shared(net);
    if (!net->layer->dropped.tiles)
        return 0;
    if (!shared)
        return sl_network_keep(net, net->layer, 0, &net->layer->dropped);
    const int code = sl_network_share(net, SL_PLACE_OUTPUTS, 0, &shared->output);
    return code ? code : sl_network_share(net, SL_PLACE_OUTPUTS, 0, &net->layer->dropped);
}

/* Give each matrix the first free place. A place holds one matrix at a time: from the layer that
 * writes the matrix to the last layer that reads the matrix. */
static int share_forward(struct sl_network *net)
{
    int *busy = calloc((size_t)net->memory.kept_count + 1,
                       sizeof *busy); /* (places): layer from which the place is free */
    int code =
        busy ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d matrices", net->memory.kept_count);
    for (int l = 0; !code && l < net->layers; l++)
        for (int k = 0; !code && k < net->memory.kept_count; k++) {
            int p = 0;
            if (net->memory.kept[k].first != l)
                continue;
            while (busy[p] > l)
                p++;
            busy[p] = net->memory.kept[k].last + 1;
            code = sl_network_share(net, SL_PLACE_KEPT, p, net->memory.kept[k].matrix);
        }
    free(busy);
    return code;
}

static int keep_outputs(struct sl_network *net)
{
    int code = net->evaluates ? 0 : share_again(net);
    if (!code && net->evaluates && net->layer->dropped.tiles)
        code = sl_network_keep(net, net->layer, 0, &net->layer->dropped);
    else if (!code)
        code = share_dropped(net);
    for (int l = 0; !code && l < net->layers; l++)
        if (!net->layer[l].output.place)
            code = sl_network_keep(net, &net->layer[l], last_reader(net, &net->layer[l]),
                                   &net->layer[l].output);
    return code;
}

static int allocate_gradients(struct sl_network *net)
{
    int code = 0, number = 0;
    for (int l = 0; !code && l < net->layers; l++)
        for (struct sl_layer *of = &net->layer[l]; !code && of; of = of->beside, number++) {
            struct sl_matrix *parts = &of->back.gradients;
            if (parts->tiles)
                code = net->memory.places->shared
                           ? sl_network_share(net, SL_PLACE_GRADIENTS, number, parts)
                           : sl_matrix_allocate(net->rt, parts);
        }
    return code;
}

int sl_network_allocate(struct sl_network *net)
{
    if (net->logits_only)
        return sl_matrix_allocate(net->rt, &net->layer[net->layers - 1].output);
    int code = keep_outputs(net);
    if (!code)
        code = allocate_gradients(net);
    if (!code && net->evaluates)
        code = share_forward(net);
    for (int k = 0; !code && !net->evaluates && k < net->memory.kept_count; k++)
        code = net->memory.places->shared
                   ? sl_network_share(net, SL_PLACE_KEPT, k, net->memory.kept[k].matrix)
                   : sl_matrix_allocate(net->rt, net->memory.kept[k].matrix);
    return code || net->memory.places->shared ? code
                                              : sl_places_allocate(net->rt, net->memory.places);
}

static void leave(struct sl_matrix *matrix)
{
    if (matrix->place)
        sl_place_remove(matrix->place, matrix);
}

void sl_network_leave_places(struct sl_network *net)
{
    for (int s = 0; s < net->memory.scratch_count; s++)
        leave(&net->memory.scratch[s]->matrix);
    for (int k = 0; k < net->memory.kept_count; k++)
        leave(net->memory.kept[k].matrix);
    for (int l = 0; net->layer && l < net->layers; l++) {
        leave(&net->layer[l].output);
        for (struct sl_layer *of = &net->layer[l]; of; of = of->beside)
            leave(&of->back.gradients);
    }
    if (net->layer)
        leave(&net->layer->dropped);
}
