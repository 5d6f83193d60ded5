#include "submodels/blocked_layers.h"

#include <stdlib.h>

#include "graphs/network.h"
#include "submodels/rounds.h"

size_t sl_blocked_block_bytes = 64 << 20;

/* ---- Layers ---- */

bool sl_blocked_attends(const struct sl_layer_shape *shape)
{
    return shape->heads > 0;
}

bool sl_blocked_is_norm(const struct sl_layer_shape *shape)
{
    return shape->kind == &sl_layer_row_norm || shape->kind == &sl_layer_batch_norm;
}

int sl_blocked_cut_hops(struct sl_layer_list *list)
{
    const int all = list->count;
    while (list->count > 0 && list->layer[list->count - 1].kind == &sl_layer_propagate)
        list->count--;
    return all - list->count;
}

int sl_blocked_inputs(const struct sl_layer_shape *shape)
{
    return shape->inputs > 1 ? shape->inputs : 1;
}

int sl_blocked_layer_before(const struct sl_layer_list *list, int l)
{
    return l - (sl_blocked_is_norm(&list->layer[l - 1]) ? 2 : 1);
}

bool sl_blocked_reads(const struct sl_layer_list *list, int reader, int l)
{
    const struct sl_layer_shape *shape = &list->layer[reader];
    return !sl_blocked_is_norm(shape) && l < reader &&
           (sl_blocked_layer_before(list, reader) == l || reader - l <= shape->inputs);
}

/* Whether a norm can work by blocks: it lies between two layers that multiply, and neither
 * attention nor an activation comes before it. */
static bool is_separable_norm(const struct sl_layer_list *list, int l)
{
    return l > 0 && l < list->count - 1 && !sl_blocked_is_norm(&list->layer[l - 1]) &&
           !sl_blocked_attends(&list->layer[l - 1]) &&
           list->layer[l - 1].activation == SL_ACTIVATION_NONE;
}

/* Return how many units stay together: a head's, or 1. */
static int64_t unit_of(const struct sl_layer_shape *shape)
{
    return sl_blocked_attends(shape) ? shape->out / shape->heads : 1;
}

/* Whether a layer can work by blocks: blocks of its input add terms, and each unit or head of its
 * output needs its own sum alone. A residual block may add the sums of the layer before. */
static bool is_separable_layer(const struct sl_layer_list *list, int l)
{
    const struct sl_layer_shape *shape = &list->layer[l];
    const bool last = l == list->count - 1;
    if (sl_blocked_is_norm(shape))
        return is_separable_norm(list, l);
    return shape->kind->weights.count > 0 && !shape->kind->own && !shape->kind->weights.splits &&
           sl_layer_shape_edge_rows(shape) == 0 && !shape->kind->weights.joined &&
           !shape->identity &&
           (shape->inputs < 2 ||
            (!shape->shared && sl_layer_shape_reach(shape) == shape->inputs)) &&
           (l == 0 || shape->in == list->layer[0].out) &&
           (last || (shape->out == list->layer[0].out && unit_of(shape) == unit_of(list->layer) &&
                     sl_blocked_inputs(shape) == 1)) &&
           (shape->back == 0 || (!last && l - shape->back == sl_blocked_layer_before(list, l)));
}

/* Attention writes into its projection, so one layer alone may read a block of its output. */
static bool is_separable(const struct sl_layer_list *list)
{
    bool all = list->count > 1;
    for (int l = 0; all && l < list->count; l++)
        all =
            is_separable_layer(list, l) && !(sl_blocked_attends(&list->layer[l]) &&
                                             sl_blocked_inputs(&list->layer[list->count - 1]) > 1);
    return all;
}

/* ---- Blocks ---- */

/* Whether each column of ranks gets some of so many units or heads. Cuts of a block of heads must
 * fall between heads. */
static bool can_share(const struct sl_layer_shape *shape, int64_t units, int columns)
{
    const int64_t each = units / columns * unit_of(shape);
    if (!sl_blocked_attends(shape))
        return units >= columns;
    return units % columns == 0 &&
           (columns == 1 || each < SL_GRID_UNIT || each % SL_GRID_UNIT == 0);
}

int64_t sl_blocked_width(const struct sl_layer_list *list, int64_t vertices, enum sl_type type,
                         int columns)
{
    const struct sl_layer_shape *first = &list->layer[0];
    const int64_t unit = unit_of(first), units = first->out / unit;
    const int64_t least = (units + SL_MOST_PARTS - 1) / SL_MOST_PARTS;
    const int64_t bytes = unit * vertices * (int64_t)sl_type_size(type);
    int64_t width = (int64_t)sl_blocked_block_bytes / (bytes > 0 ? bytes : 1);
    for (width = width > least ? width : least; width < units && width >= least; width--)
        if (can_share(first, width, columns) &&
            can_share(first, units - (units - 1) / width * width, columns))
            return width * unit;
    return first->out;
}

bool sl_blocked_fits(const struct sl_model_shape *shape, int64_t vertices, enum sl_type type,
                     int columns)
{
    struct sl_layer_list list = {0};
    sl_model_list(shape, &list);
    sl_blocked_cut_hops(&list);
    const bool fits = !list.failed && is_separable(&list) &&
                      sl_blocked_width(&list, vertices, type, columns) < list.layer[0].out;
    free(list.layer);
    return fits;
}

bool sl_blocked_is_last_layer(const struct sl_blocked *blocked, int l)
{
    return l == blocked->list.count - 1;
}

int64_t sl_blocked_columns(const struct sl_blocked *blocked, bool last)
{
    return last ? blocked->list.layer[0].out - (blocked->blocks - 1) * blocked->width
                : blocked->width;
}

bool sl_blocked_is_last_block(const struct sl_blocked *blocked, int block)
{
    return block % blocked->blocks == blocked->blocks - 1;
}

int sl_blocked_blocks_before(const struct sl_blocked *blocked, int l)
{
    const struct sl_layer_shape *shape = &blocked->list.layer[l];
    return l == 0 || sl_blocked_is_norm(shape) ? 1 : blocked->blocks * sl_blocked_inputs(shape);
}

int sl_blocked_blocks_after(const struct sl_blocked *blocked, int l)
{
    return sl_blocked_is_last_layer(blocked, l) ? 1 : blocked->blocks;
}

int sl_blocked_block_before(const struct sl_blocked *blocked, int reader, int l, int j)
{
    const int inputs = sl_blocked_inputs(&blocked->list.layer[reader]);
    return inputs == 1 ? j : (inputs - (reader - l)) * blocked->blocks + j;
}

struct sl_blocked_step *sl_blocked_step_of(const struct sl_blocked *blocked, int l, int i, int j)
{
    return &blocked->layer[l].step[l > 0 && sl_blocked_is_last_block(blocked, i)]
                                  [!sl_blocked_is_last_layer(blocked, l) &&
                                   sl_blocked_is_last_block(blocked, j)];
}

bool sl_blocked_is_kept(const struct sl_blocked *blocked, int l)
{
    const int last = blocked->list.count - 1;
    return l > 0 || sl_blocked_is_norm(&blocked->list.layer[1]) ||
           (last > 1 && sl_blocked_reads(&blocked->list, last, 0));
}

/* Input and output blocks must have one part number. So the parts of output units are shifted to
 * give block j the number of the input's block. */
struct sl_unit_block sl_blocked_block_of(const struct sl_blocked *blocked, int l, int i, int j)
{
    const struct sl_layer_shape *shape = &blocked->list.layer[l];
    const uint8_t *part = blocked->part + blocked->blocks * blocked->width;
    const int block = l > 0 ? i % blocked->blocks : j;
    return (struct sl_unit_block){
        .weights = shape->kind->weights.count,
        .in = {sl_blocked_inputs(shape) * shape->in,
               l > 0 ? blocked->input_part - i / blocked->blocks * shape->in : NULL},
        .out = {shape->out,
                sl_blocked_is_last_layer(blocked, l) ? NULL : part + (block - j) * blocked->width},
        .part = block,
    };
}

/* Return the shape of a step's layer: the term of one block, before activation. */
struct sl_layer_shape sl_blocked_shape(const struct sl_blocked *blocked, int l, int i, int j)
{
    struct sl_layer_shape shape = blocked->list.layer[l];
    if (l > 0)
        shape.in = sl_blocked_columns(blocked, sl_blocked_is_last_block(blocked, i));
    if (!sl_blocked_is_last_layer(blocked, l))
        shape.out = sl_blocked_columns(blocked, sl_blocked_is_last_block(blocked, j));
    if (sl_blocked_attends(&shape) && !sl_blocked_is_last_layer(blocked, l))
        shape.heads = (int)(shape.out / unit_of(&blocked->list.layer[l]));
    if (shape.kind == &sl_layer_jump || shape.kind == &sl_layer_jump_plain)
        shape.kind = &sl_layer_linear;
    shape.inputs = shape.back = 0;
    shape.activation = SL_ACTIVATION_NONE;
    shape.dropout = 0.0;
    shape.passing = shape.block = false;
    return shape;
}
