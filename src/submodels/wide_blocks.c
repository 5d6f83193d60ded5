#include "submodels/wide_blocks.h"

#include <stdlib.h>

#include "graphs/network.h"
#include "submodels/rounds.h"

size_t sl_wide_block_bytes = 64 << 20;

/* ---- Layers ---- */

bool sl_wide_attends(const struct sl_layer_shape *shape)
{
    return shape->heads > 0;
}

bool sl_wide_is_norm(const struct sl_layer_shape *shape)
{
    return shape->kind == &sl_layer_row_norm || shape->kind == &sl_layer_batch_norm;
}

int sl_wide_cut_hops(struct sl_layer_list *list)
{
    const int all = list->count;
    while (list->count > 0 && list->layer[list->count - 1].kind == &sl_layer_propagate)
        list->count--;
    return all - list->count;
}

int sl_wide_inputs(const struct sl_layer_shape *shape)
{
    return shape->inputs > 1 ? shape->inputs : 1;
}

int sl_wide_layer_before(const struct sl_layer_list *list, int l)
{
    return l - (sl_wide_is_norm(&list->layer[l - 1]) ? 2 : 1);
}

bool sl_wide_reads(const struct sl_layer_list *list, int reader, int l)
{
    const struct sl_layer_shape *shape = &list->layer[reader];
    return !sl_wide_is_norm(shape) && l < reader &&
           (sl_wide_layer_before(list, reader) == l || reader - l <= shape->inputs);
}

/* Whether a norm can work by blocks: it lies between two layers that multiply, and no activation
 * comes before it. */
static bool is_separable_norm(const struct sl_layer_list *list, int l)
{
    return l > 0 && l < list->count - 1 && !sl_wide_is_norm(&list->layer[l - 1]) &&
           list->layer[l - 1].activation == SL_ACTIVATION_NONE;
}

/* Whether a layer can work by blocks: blocks of its input add terms, and each unit or head of its
 * output needs its own sum alone. A residual block may add the sums of the layer before. */
static bool is_separable_layer(const struct sl_layer_list *list, int l)
{
    const struct sl_layer_shape *shape = &list->layer[l];
    const bool last = l == list->count - 1;
    if (sl_wide_is_norm(shape))
        return is_separable_norm(list, l);
    return shape->kind->weights > 0 && !shape->kind->own &&
           (l == 0 || shape->in == list->layer[0].out) &&
           (last || (shape->out == list->layer[0].out && sl_wide_inputs(shape) == 1)) &&
           (shape->back == 0 || (!last && l - shape->back == sl_wide_layer_before(list, l)));
}

static bool is_separable(const struct sl_layer_list *list)
{
    bool all = list->count > 1;
    for (int l = 0; all && l < list->count; l++)
        all = is_separable_layer(list, l);
    return all;
}

/* ---- Blocks ---- */

/* Return how many units stay together: a head's, or 1. */
static int64_t unit_of(const struct sl_layer_shape *shape)
{
    return sl_wide_attends(shape) ? shape->out / shape->heads : 1;
}

/* Whether each column of ranks gets some of so many units or heads. Cuts of a block of heads must
 * fall between heads. */
static bool can_share(const struct sl_layer_shape *shape, int64_t units, int columns)
{
    const int64_t each = units / columns * unit_of(shape);
    if (!sl_wide_attends(shape))
        return units >= columns;
    return units % columns == 0 &&
           (columns == 1 || each < SL_GRID_UNIT || each % SL_GRID_UNIT == 0);
}

int64_t sl_wide_width(const struct sl_layer_list *list, int64_t vertices, enum sl_type type,
                      int columns)
{
    const struct sl_layer_shape *first = &list->layer[0];
    const int64_t unit = unit_of(first), units = first->out / unit;
    const int64_t least = (units + SL_MOST_PARTS - 1) / SL_MOST_PARTS;
    const int64_t bytes = unit * vertices * (int64_t)sl_type_size(type);
    int64_t width = (int64_t)sl_wide_block_bytes / (bytes > 0 ? bytes : 1);
    for (width = width > least ? width : least; width < units && width >= least; width--)
        if (can_share(first, width, columns) &&
            can_share(first, units - (units - 1) / width * width, columns))
            return width * unit;
    return first->out;
}

bool sl_wide_fits(const struct sl_model_shape *shape, int64_t vertices, enum sl_type type,
                  int columns)
{
    struct sl_layer_list list = {0};
    shape->model->list(shape, &list);
    sl_wide_cut_hops(&list);
    const bool fits = !list.failed && is_separable(&list) &&
                      sl_wide_width(&list, vertices, type, columns) < list.layer[0].out;
    free(list.layer);
    return fits;
}

bool sl_wide_is_last_layer(const struct sl_wide *wide, int l)
{
    return l == wide->list.count - 1;
}

int64_t sl_wide_columns(const struct sl_wide *wide, bool last)
{
    return last ? wide->list.layer[0].out - (wide->blocks - 1) * wide->width : wide->width;
}

bool sl_wide_is_last_block(const struct sl_wide *wide, int block)
{
    return block % wide->blocks == wide->blocks - 1;
}

int sl_wide_blocks_before(const struct sl_wide *wide, int l)
{
    const struct sl_layer_shape *shape = &wide->list.layer[l];
    return l == 0 || sl_wide_is_norm(shape) ? 1 : wide->blocks * sl_wide_inputs(shape);
}

int sl_wide_blocks_after(const struct sl_wide *wide, int l)
{
    return sl_wide_is_last_layer(wide, l) ? 1 : wide->blocks;
}

int sl_wide_block_before(const struct sl_wide *wide, int reader, int l, int j)
{
    const int inputs = sl_wide_inputs(&wide->list.layer[reader]);
    return inputs == 1 ? j : (inputs - (reader - l)) * wide->blocks + j;
}

struct sl_wide_step *sl_wide_step_of(const struct sl_wide *wide, int l, int i, int j)
{
    return &wide->layer[l].step[l > 0 && sl_wide_is_last_block(wide, i)]
                               [!sl_wide_is_last_layer(wide, l) && sl_wide_is_last_block(wide, j)];
}

bool sl_wide_is_kept(const struct sl_wide *wide, int l)
{
    const int last = wide->list.count - 1;
    return l > 0 || sl_wide_is_norm(&wide->list.layer[1]) ||
           (last > 1 && sl_wide_reads(&wide->list, last, 0));
}

/* Input and output blocks must have one part number. So the parts of output units are shifted to
 * give block j the number of the input's block. */
struct sl_unit_block sl_wide_block_of(const struct sl_wide *wide, int l, int i, int j)
{
    const struct sl_layer_shape *shape = &wide->list.layer[l];
    const uint8_t *part = wide->part + wide->blocks * wide->width;
    const int block = l > 0 ? i % wide->blocks : j;
    return (struct sl_unit_block){
        .weights = shape->kind->weights,
        .in = {sl_wide_inputs(shape) * shape->in,
               l > 0 ? wide->input_part - i / wide->blocks * shape->in : NULL},
        .out = {shape->out,
                sl_wide_is_last_layer(wide, l) ? NULL : part + (block - j) * wide->width},
        .part = block,
    };
}

/* Return the shape of a step's layer: the term of one block, before activation. */
struct sl_layer_shape sl_wide_shape(const struct sl_wide *wide, int l, int i, int j)
{
    struct sl_layer_shape shape = wide->list.layer[l];
    if (l > 0)
        shape.in = sl_wide_columns(wide, sl_wide_is_last_block(wide, i));
    if (!sl_wide_is_last_layer(wide, l))
        shape.out = sl_wide_columns(wide, sl_wide_is_last_block(wide, j));
    if (sl_wide_attends(&shape) && !sl_wide_is_last_layer(wide, l))
        shape.heads = (int)(shape.out / unit_of(&wide->list.layer[l]));
    if (shape.kind == &sl_layer_jump)
        shape.kind = &sl_layer_linear;
    shape.inputs = shape.back = 0;
    shape.activation = SL_ACTIVATION_NONE;
    shape.dropout = 0.0;
    shape.passing = shape.block = false;
    return shape;
}
