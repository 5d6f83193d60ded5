/* Layers that a program brings: they work on each vertex alone, with rows as wide as their input.
 *
 *   forward    output = drop(activation(own(H)))
 *   backward   from G: gradients of the parameters, and G of the layer before
 *
 * Parameters are matrices, then vectors. A row tile's part of their gradient is one tile. Rows must
 * not be cut among the columns of a grid. */
#include <stdio.h>
#include <string.h>

#include "codelets/own_layer.h"
#include "core/error.h"
#include "core/names.h"
#include "graphs/layer.h"

char sl_block_names[SL_NAMES_ROOM] = "row|batch";

static struct entry {
    char name[SL_NAME_ROOM], parameter[SL_OWN_MATRICES + SL_OWN_VECTORS][SL_NAME_ROOM];
    float start[SL_OWN_VECTORS];
    struct sl_own_layer own;
    struct sl_layer_kind kind;
    struct sl_block_norm norm;
} entries[SL_NAMES_ADDED];
static int count;

static const struct entry *entry_of(const struct sl_layer_kind *kind)
{
    return (const struct entry *)((const char *)kind - offsetof(struct entry, kind));
}

/* ---- The kind ---- */

/* Set the first parameters: a vector has one number everywhere, a matrix Glorot's numbers. */
static void start(struct sl_runtime *rt, const struct sl_layer_kind *kind, struct sl_tile *tile)
{
    const struct entry *entry = entry_of(kind);
    if (tile->owner != rt->rank)
        return;
    float *w =
        (float *)sl_tile_acquire(rt, tile, true) + kind->weights.count * tile->cols * tile->ld;
    for (int v = 0; v < kind->vectors.count; v++)
        for (int64_t j = 0; j < tile->cols; j++)
            w[v * tile->ld + j] = entry->start[v];
    sl_tile_release(tile);
}

static int cut(const struct sl_layer_shape *shape, const struct sl_grid *grid, int64_t *output,
               int64_t *product)
{
    (void)output;
    (void)product;
    return grid->columns == 1
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "--block-norm %s: reads whole rows, and %d columns of ranks cut them "
                          "(expected --grid RxCxD with C = 1, or another --distribution)",
                          shape->kind->name, grid->columns);
}

static int plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)net;
    (void)wanted;
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    if (layer->index == 0 || layer->in != layer->out ||
        (layer - 1)->activation != SL_ACTIVATION_NONE)
        return sl_error(SL_ERR_SYSTEM,
                        "layer %d is a program's (expected a layer of its width without "
                        "activation before it)",
                        layer->index + 1);
    return 0;
}

static void forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_row_epilogue finish = {sl_layer_activation(net, layer, training),
                                           net->graph->scales[0], NULL};
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    for (int i = own.from; i < own.to; i++) {
        const struct sl_epilogue_tiles tiles = sl_row_epilogue_at(&finish, i, &layer->output, 0);
        sl_submit_own_layer(net->rt, layer->kind->own, &layer->model->parameters,
                            sl_matrix_tile(&(layer - 1)->output, i, 0), &tiles,
                            sl_matrix_tile(&layer->output, i, 0));
    }
}

static struct sl_matrix *backward(struct sl_network *net, struct sl_layer *layer,
                                  struct sl_matrix *g)
{
    struct sl_matrix *h = &(layer - 1)->output;
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    for (int i = own.from; i < own.to; i++)
        sl_submit_own_layer_back(
            net->rt, layer->kind->own, &net->graph->scales[0][i], (layer - 1)->back.gradient_factor,
            &layer->model->parameters, sl_matrix_tile(g, i, 0),
            sl_matrix_tile(&layer->back.gradients, i, 0), sl_matrix_tile(h, i, 0));
    return h;
}

/* ---- The list ---- */

static struct entry *find(const char *name)
{
    for (int e = 0; name && e < count; e++)
        if (strcmp(entries[e].name, name) == 0)
            return &entries[e];
    return NULL;
}

const struct sl_block_norm *sl_block_norm_find(const char *name)
{
    static const struct sl_block_norm norms[] = {{"row", &sl_layer_row_norm},
                                                 {"batch", &sl_layer_batch_norm}};
    const struct entry *entry = find(name);
    for (size_t n = 0; n < sizeof norms / sizeof *norms; n++)
        if (strcmp(norms[n].name, name) == 0)
            return &norms[n];
    return entry ? &entry->norm : NULL;
}

/* Copy names of parameters into the entry. `names` holds at most `most` names and a NULL. Return
 * how many; -1 for an impossible name. */
static int take_names(const char *layer, const char *const *names, int most,
                      char (*to)[SL_NAME_ROOM])
{
    int taken = 0;
    while (taken < most && names[taken]) {
        const char *name = names[taken];
        const size_t length = strlen(name);
        if (length == 0 || length >= SL_NAME_ROOM ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length) {
            sl_error(
                SL_ERR_USAGE,
                "layer %s: the parameter \"%s\": expected 1 to %d characters of a-z, 0-9 and _",
                layer, name, SL_NAME_ROOM - 1);
            return -1;
        }
        snprintf(to[taken++], SL_NAME_ROOM, "%s", name);
    }
    if (names[taken])
        sl_error(SL_ERR_USAGE, "layer %s: too many parameters (expected %d matrices, %d vectors)",
                 layer, SL_OWN_MATRICES, SL_OWN_VECTORS);
    return names[taken] ? -1 : taken;
}

static int check_twins(const struct entry *entry, const char *name, int parameters)
{
    for (int p = 0; p < parameters; p++)
        for (int q = 0; q < p; q++)
            if (strcmp(entry->parameter[p], entry->parameter[q]) == 0)
                return sl_error(SL_ERR_USAGE, "layer %s: two parameters are \"%s\"", name,
                                entry->parameter[p]);
    return 0;
}

int sl_layer_add(const char *name, const struct starling_layer *layer)
{
    struct entry new = {.name = ""}, *entry = find(name);
    const char *shown = name ? name : "";
    const int matrices = take_names(shown, layer->matrices, SL_OWN_MATRICES, new.parameter);
    const int vectors =
        matrices < 0 ? -1
                     : take_names(shown, layer->vectors, SL_OWN_VECTORS, new.parameter + matrices);
    if (vectors < 0 || check_twins(&new, shown, matrices + vectors))
        return SL_ERR_USAGE;
    if (matrices + vectors == 0)
        return sl_error(SL_ERR_USAGE, "layer %s has no parameters (expected one at least)", shown);
    if (!entry && sl_names_add(sl_block_names, &count, "a layer", name))
        return SL_ERR_USAGE;
    if (!entry)
        entry = &entries[count - 1];
    memcpy(entry->parameter, new.parameter, sizeof new.parameter);
    memcpy(entry->start, layer->start, sizeof entry->start);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->own = (struct sl_own_layer){.forward = layer->forward,
                                       .backward = layer->backward,
                                       .context = layer->context,
                                       .matrices = matrices,
                                       .vectors = vectors,
                                       .number = (uint32_t)(entry - entries)};
    entry->kind = (struct sl_layer_kind){
        .name = entry->name,
        .weights = {.count = matrices},
        .vectors = {.count = vectors},
        .alone = true,
        .own = &entry->own,
        .start = start,
        .cut = cut,
        .plan = plan,
        .forward = forward,
        .backward = backward,
        .aggregations = sl_layer_no_aggregations,
    };
    entry->norm = (struct sl_block_norm){entry->name, &entry->kind};
    for (int p = 0; p < matrices + vectors; p++)
        *(p < matrices ? &entry->kind.weights.name[p] : &entry->kind.vectors.name[p - matrices]) =
            entry->parameter[p];
    return 0;
}
