#include "graphs/axes.h"

#include <stdlib.h>

#include "core/error.h"
#include "graphs/network.h"

/* Return the first place that shares the axis of a place. `same` holds, for each place, an earlier
 * or the same place with its axis. */
static int first_of(const int *same, int place)
{
    while (same[place] != place)
        place = same[place];
    return place;
}

static void join(int *same, int a, int b)
{
    a = first_of(same, a);
    b = first_of(same, b);
    same[a > b ? a : b] = a > b ? b : a;
}

/* Join the places that share an axis. Place 0 is the features, place l + 1 the output of layer l.
 */
static void join_places(const struct sl_layer_list *list, int *same)
{
    for (int p = 0; p <= list->count; p++)
        same[p] = p;
    for (int l = 0; l < list->count; l++) {
        const struct sl_layer_shape *layer = &list->layer[l];
        if (sl_layer_shape_whole(layer))
            join(same, l, l + 1);
        if (layer->back > 0)
            join(same, l + 1 - layer->back, l + 1);
        if (layer->identity)
            join(same, l, l + 1);
        for (int i = 1; i < layer->inputs; i++)
            join(same, l - i * sl_layer_shape_stride(layer), l);
    }
}

/* Return the heads of a place; 1: no attention has made it. */
static int heads_of(const struct sl_layer_list *list, int place)
{
    const struct sl_layer_shape *layer = place > 0 ? &list->layer[place - 1] : NULL;
    return layer && layer->heads > 1 && !layer->mean ? layer->heads : 1;
}

static void describe(const struct sl_layer_list *list, const int *same, int *number,
                     struct sl_axes *axes)
{
    const int last = first_of(same, list->count);
    for (int p = 0; p <= list->count; p++) {
        struct sl_axis *axis;
        if (same[p] == p) {
            number[p] = axes->count++;
            axes->axis[number[p]] = (struct sl_axis){
                .width = p > 0 ? list->layer[p - 1].out : list->layer[0].in,
                .heads = 1,
                .hidden = p > 0 && p != last,
            };
        }
        axis = &axes->axis[number[first_of(same, p)]];
        axis->heads = heads_of(list, p) > axis->heads ? heads_of(list, p) : axis->heads;
    }
    for (int l = 0; l < list->count; l++) {
        axes->in[l] = number[first_of(same, l)];
        axes->out[l] = number[first_of(same, l + 1)];
    }
}

int sl_axes_find(const struct sl_layer_list *list, struct sl_axes *axes)
{
    const size_t places = (size_t)list->count + 1;
    int *same = malloc(2 * places * sizeof *same);
    *axes = (struct sl_axes){.axis = calloc(places, sizeof *axes->axis),
                             .in = calloc(places, sizeof *axes->in),
                             .out = calloc(places, sizeof *axes->out)};
    const bool there = same && axes->axis && axes->in && axes->out;
    if (there) {
        join_places(list, same);
        describe(list, same, same + places, axes);
    }
    free(same);
    return there ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the axes of %d layers", list->count);
}

void sl_axes_free(struct sl_axes *axes)
{
    free(axes->axis);
    free(axes->in);
    free(axes->out);
    *axes = (struct sl_axes){0};
}
