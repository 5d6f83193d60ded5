/* clang-format off */
/* Graph attention: output = drop(elu(heads side by side + b)), in the last layer the mean of the
 * heads + b. H is the input of the layer after dropout.
 *
 *   forward   [P | t | s] = H·[W | W·a_src | W·a_dst]     STATE = attention(P, t, s)     output
 *   backward  [G | r] from the gradient of the output     [D | dt] = the walk back       ds
 *             d[W | W·a_src | W·a_dst] = Hᵀ·[D | dt | ds]    db = column sums of the gradient
 *             the gradient of H = [D | dt | ds]·[W | W·a_src | W·a_dst]ᵀ
 *             dW, da_src, da_dst on rank 0
 *
 * graphs/reduce_attention.c has the formulas. With a linear residual, H·V joins the output before b. A layer beside this one (struct sl_layer.beside) has V: dV = Hᵀ·G, and G·Vᵀ joins the gradient of H. */
/* clang-format on */
#include "graphs/layer_gat.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/attention_rows.h"
#include "codelets/paste.h"
#include "core/error.h"
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/layer_heads.h"
#include "graphs/reach.h"

/* A part of a layer: each of the ranks that share rows has one part. */
struct part {
    struct sl_attention attention;
    struct sl_attention_shape shape;
};

/* Cuts (columns of the grid + 1) of matrices of codelets/attention.h; products are cut at
 * layer->columns.product_cut. */
struct cuts {
    int64_t *scores, *state, *gradient;
};

struct gat {
    struct sl_heads heads; /* vectors (K, heads): factors of edge features */
    int parts;
    struct part *part;             // (parts): the columns of the grid
    struct sl_attention attention; /* attention of this rank's part */
    struct cuts cut;
    struct sl_matrix projected, scores, state; /* rows as in codelets/attention.h */
};

/* Return the attention of a part. A part has some heads or, where the output is the mean of the
 * heads, some columns of each head. */
static struct sl_attention part_of(const struct sl_layer_shape *shape, int parts,
                                   const int64_t *output, int c)
{
    const int first = shape->heads * c / parts, end = shape->heads * (c + 1) / parts;
    const int64_t width = shape->mean ? output[c + 1] - output[c] : shape->out / shape->heads;
    return (struct sl_attention){.heads = shape->mean ? shape->heads : end - first,
                                 .first_head = shape->mean ? 0 : first,
                                 .width = width,
                                 .slope = shape->slope};
}

static int gat_cut(const struct sl_layer_shape *shape, const struct sl_grid *grid, int64_t *output,
                   int64_t *product)
{
    const int parts = grid->columns;
    if (shape->heads < 1 || shape->heads > SL_ATTENTION_HEADS ||
        sl_layer_shape_columns(shape) > SL_ATTENTION_COLUMNS)
        return sl_error(SL_ERR_SYSTEM,
                        "a layer of %d heads and %lld columns (expected 1 to %d, and %d at most)",
                        shape->heads, (long long)sl_layer_shape_columns(shape), SL_ATTENTION_HEADS,
                        SL_ATTENTION_COLUMNS);
    if ((shape->mean ? shape->out : shape->heads) < parts)
        return sl_error(SL_ERR_USAGE,
                        "--model gat: %lld %s cannot be cut for %d columns of ranks (expected as "
                        "many, or fewer columns: --grid RxCxD)",
                        (long long)(shape->mean ? shape->out : shape->heads),
                        shape->mean ? "classes" : "heads", parts);
    for (int c = 0; c < parts; c++) {
        const struct sl_attention attention = part_of(shape, parts, output, c);
        if (!shape->mean)
            output[c + 1] = output[c] + sl_attention_all(&attention);
        product[c + 1] = product[c] + sl_attention_projected(&attention);
    }
    return 0;
}

/* ---- Plan ---- */

static int create_parts(struct sl_layer *layer, struct gat *gat, int parts, int own)
{
    const struct sl_layer_shape *shape = &layer->model->shape;
    int64_t *const cut = calloc(3 * ((size_t)parts + 1), sizeof *cut);
    gat->part = calloc((size_t)parts, sizeof *gat->part);
    gat->cut = (struct cuts){cut, cut + parts + 1, cut + 2 * (parts + 1)};
    gat->parts = parts;
    if (!cut || !gat->part)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    for (int c = 0; c < parts; c++) {
        const struct sl_attention attention = part_of(shape, parts, layer->columns.out_cut, c);
        gat->part[c] = (struct part){
            attention,
            {
                .in = layer->in,
                .columns = sl_layer_shape_columns(shape),
                .skipped = layer->kind->weights.splits ? layer->in : 0,
                .bias = layer->bias,
                .edge_features = layer->edge_features,
                .head_width = sl_layer_shape_columns(shape) / shape->heads,
                .first_column = shape->mean ? layer->columns.out_cut[c] : 0,
                .at = layer->columns.product_cut[c],
                .out = layer->columns.out_cut[c + 1] - layer->columns.out_cut[c],
                .out_column = layer->columns.out_cut[c],
            },
        };
        gat->cut.scores[c + 1] = gat->cut.scores[c] + sl_attention_scores(&attention);
        gat->cut.state[c + 1] = gat->cut.state[c] + sl_attention_state(&attention);
        gat->cut.gradient[c + 1] = gat->cut.gradient[c] + sl_attention_gradient(&attention);
    }
    gat->attention = gat->part[own].attention;
    return 0;
}

/* Make the factors of edge features and the sums of their gradient, if there are edge features. */
static int create_edges(struct sl_network *net, const struct sl_layer *layer, struct gat *gat)
{
    const int64_t features = layer->edge_features;
    if (features == 0)
        return 0;
    const int code = sl_tile_create(net->rt, &gat->heads.vectors, features, gat->attention.heads,
                                    sizeof(float), net->rt->rank);
    return code ? code : sl_edge_sums_create(net, &gat->heads.sums, features, gat->attention.heads);
}

static int gat_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const struct sl_grid *grid = &net->graph->distribution->grid;
    const int order = layer->output.row_order;
    struct gat *gat = layer->own = calloc(1, sizeof *gat);
    (void)wanted;
    if (!gat)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    int code = create_parts(layer, gat, grid->columns, sl_grid_column(grid, net->rt->rank));
    if (!code)
        code = sl_heads_create(
            net, layer, (struct sl_matrix *const[]){&gat->projected, &gat->scores, &gat->state},
            (const int64_t *const[]){layer->columns.product_cut, gat->cut.scores, gat->cut.state});
    if (!code)
        code = create_edges(net, layer, gat);
    if (!code)
        code = sl_network_plan_scratch_cut(net, order, gat->cut.gradient, SL_SLOT_WORK);
    if (!code)
        code = sl_network_plan_scratch_cut(net, order, layer->columns.product_cut, SL_SLOT_SUM);
    return code ? code : sl_heads_plan(net, layer);
}

static void gat_destroy(struct sl_layer *layer)
{
    struct gat *gat = layer->own;
    free(gat->cut.scores);
    free(gat->part);
    sl_heads_destroy(layer);
}

static int gat_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                            struct sl_aggregation list[SL_AGGREGATIONS])
{
    const struct gat *gat = layer->own;
    const int columns = net->graph->distribution->grid.columns;
    list[0] = (struct sl_aggregation){
        .width = layer->columns.product,
        .cut = layer->columns.product_cut,
        .type = SL_FLOAT32,
        .reducer = layer->reducer,
        .state = gat->cut.state,
        .operands = gat->cut.scores,
    };
    list[1] = (struct sl_aggregation){
        .transposed = true,
        .width = gat->cut.gradient[columns],
        .cut = gat->cut.gradient,
        .type = SL_FLOAT32,
        .reducer = layer->reducer->back,
        .others = gat->cut.scores,
        .state = layer->columns.product_cut,
        .operands = layer->columns.product_cut,
    };
    return 2;
}

/* ---- Forward ---- */

/* Return the pass of a walk: with the layer's dropout where it trains. */
static struct sl_gat_pass pass_of(const struct sl_network *net, const struct sl_layer *layer,
                                  bool training)
{
    struct gat *gat = layer->own;
    struct sl_gat_pass pass = {
        gat->attention, gat->heads.vectors.rows > 0 ? &gat->heads.vectors : NULL, &gat->heads.sums};
    pass.attention.training = training;
    pass.attention.drop = (struct sl_dropout){.scale = 1.0f};
    if (training && layer->model->shape.attention_dropout > 0.0)
        pass.attention.drop = sl_dropout_make(layer->model->shape.attention_dropout,
                                              sl_rng_key(net->model->options.seed, SL_RNG_ATTENTION,
                                                         net->step.update, (uint32_t)layer->index));
    return pass;
}

void sl_gat_project(struct sl_network *net, struct sl_layer *layer, bool training, bool add,
                    struct sl_matrix *projected)
{
    struct gat *gat = layer->own;
    const struct sl_product_input input = sl_layer_product_input(net, layer, training);
    for (int p = 0; p < gat->parts; p++)
        sl_submit_attention_weights(net->rt, &gat->part[p].attention, &gat->part[p].shape, p > 0,
                                    &layer->model->parameters, &gat->heads.weights);
    sl_product(net, layer, &input, add ? projected : NULL, NULL, projected);
}

struct sl_matrix *sl_gat_projected(const struct sl_layer *layer)
{
    return &((struct gat *)layer->own)->projected;
}

void sl_gat_attend(struct sl_network *net, struct sl_layer *layer, bool training,
                   const struct sl_matrix *projected, const struct sl_epilogue_tiles *epilogue,
                   const struct sl_matrix *output)
{
    struct gat *gat = layer->own;
    const struct sl_gat_pass pass = pass_of(net, layer, training);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
    if (pass.edge)
        sl_submit_attention_edge(net->rt, &gat->attention, &gat->part[c].shape,
                                 &layer->model->parameters, &gat->heads.vectors);
    sl_network_take(net, &gat->scores, sl_reach_of_input(layer));
    sl_network_take(net, &gat->state, layer->rows.hops);
    for (int i = own.from; i < own.to; i++)
        sl_submit_attention_scores(net->rt, &pass.attention, &net->graph->scales[0][i],
                                   sl_matrix_tile(projected, i, c),
                                   sl_matrix_tile(&gat->scores, i, c));
    sl_network_walk(net, layer, SL_WALK_FORWARD,
                    &(struct sl_reduction){.moved = {projected},
                                           .row = {&gat->scores},
                                           .out = {&gat->state},
                                           .parameters = &pass});
    const struct sl_row_epilogue finish = {*epilogue, net->graph->scales[0], NULL};
    for (int i = own.from; i < own.to; i++) {
        const struct sl_epilogue_tiles tiles = sl_row_epilogue_at(&finish, i, output, c);
        sl_submit_attention_output(net->rt, &pass.attention, &tiles,
                                   sl_matrix_tile(&gat->state, i, c), sl_matrix_tile(output, i, c));
    }
}

static void gat_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct gat *gat = layer->own;
    const struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    if (sl_layer_dense_input(net, layer, training) == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    sl_network_take(net, &gat->projected, sl_reach_of_input(layer));
    sl_gat_project(net, layer, training, false, &gat->projected);
    const struct sl_epilogue_tiles none = SL_EPILOGUE_NONE;
    sl_gat_attend(net, layer, training, &gat->projected, layer->beside ? &none : &finish,
                  &layer->output);
    sl_heads_add_residual(net, layer, training, &finish);
}

/* ---- Backward ---- */

/* Return [D | dt | ds], made from g, the gradient of the output before bias and activation. */
static struct sl_matrix *walk_back(struct sl_network *net, struct sl_layer *layer,
                                   const struct sl_matrix *g)
{
    struct gat *gat = layer->own;
    const struct sl_gat_pass pass = pass_of(net, layer, true);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
    struct sl_matrix *gradient =
        sl_network_scratch_cut(net, 0, gat->cut.gradient, SL_SLOT_WORK, layer->rows.hops);
    struct sl_matrix *to = sl_network_scratch_cut(net, 0, layer->columns.product_cut, SL_SLOT_SUM,
                                                  sl_reach_of_input(layer));
    for (int i = own.from; i < own.to; i++)
        sl_submit_attention_gradient(net->rt, &pass.attention, sl_matrix_tile(g, i, c),
                                     sl_matrix_tile(&gat->state, i, c),
                                     sl_matrix_tile(gradient, i, c));
    if (pass.edge)
        sl_edge_sums_begin(&gat->heads.sums);
    sl_network_walk(net, layer, SL_WALK_BACK,
                    &(struct sl_reduction){.moved = {gradient, &gat->scores},
                                           .row = {&gat->projected},
                                           .out = {to},
                                           .parameters = &pass});
    if (pass.edge)
        sl_edge_sums_end(net, layer, &gat->heads.sums);
    for (int i = own.from; i < own.to; i++)
        sl_submit_attention_own(net->rt, &pass.attention, sl_matrix_tile(gradient, i, c),
                                sl_matrix_tile(&gat->state, i, c), sl_matrix_tile(to, i, c));
    return to;
}

static struct sl_matrix *gat_backward(struct sl_network *net, struct sl_layer *layer,
                                      struct sl_matrix *g)
{
    const struct gat *gat = layer->own;
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    sl_layer_drop_again(net, layer);
    const struct sl_matrix *const v = walk_back(net, layer, g);
    for (int i = own.from; gat->heads.vectors.rows > 0 && i < own.to; i++) {
        struct sl_tile *const further = sl_product_further(net, layer, i);
        sl_submit_paste(net->rt, &(struct sl_paste_tiles){.x = sl_edge_sums_of(&gat->heads.sums, i),
                                                          .y = further,
                                                          .y_row = further->rows -
                                                                   sl_layer_further_rows(layer)});
    }
    return sl_heads_products_back(net, layer, v, g, gat->heads.vectors.rows > 0);
}

static struct sl_tile *gat_differentiate(struct sl_network *net, struct sl_layer *layer,
                                         struct sl_tile *summed)
{
    struct gat *gat = layer->own;
    for (int p = 0; p < gat->parts; p++)
        sl_submit_attention_weights_back(net->rt, &gat->part[p].attention, &gat->part[p].shape,
                                         p > 0, &layer->model->parameters, summed,
                                         &gat->heads.gradient);
    return sl_heads_residual_back(net, layer);
}

/* Features join scores; going back, their gradients are sums as well. */
static double gat_seconds(const struct sl_layer_shape *shape, const struct sl_walk_size *walk)
{
    static const struct sl_heads_work work[] = {{32.0, 10.0}, {32.0, 20.0}};
    return sl_heads_seconds(shape, walk, work[walk->way == SL_WALK_BACK]);
}

static int gat_describe(const struct sl_forward *forward)
{
    const struct sl_layer_shape *shape = forward->shape;
    const struct sl_layer_kind *kind = shape->kind;
    const bool edges = shape->edge_features > 0;
    const char *const names[SL_STEP_TENSORS] = {kind->vectors.name[0], kind->vectors.name[1],
                                                edges ? kind->edge : NULL, kind->vectors.name[2]};
    const struct sl_step step = {.kind = SL_STEP_GAT,
                                 .heads = shape->heads,
                                 .slope = (double)shape->slope,
                                 .loops = kind->loops};
    const int projected =
        sl_forward_product(forward, sl_forward_input(forward), kind->weights.splits, 0);
    return sl_heads_describe(forward, sl_forward_step(forward, projected, step, names));
}

/* Names of parameters are PyG's. */
#define GAT_STEPS                                                                                  \
    .vectors = {.count = 3, .name = {"att_src", "att_dst", "att_edge"}, .of_edges = 1},            \
    .edge = "lin_edge.weight", .bias = "bias", .loops = true, .leaves_sums = true, .cut = gat_cut, \
    .plan = gat_plan, .forward = gat_forward, .backward = gat_backward,                            \
    .aggregations = gat_aggregations, .seconds = gat_seconds, .differentiate = gat_differentiate,  \
    .memory = sl_heads_memory, .destroy = gat_destroy, .describe = gat_describe

const struct sl_layer_kind sl_layer_gat = {
    .name = "gat",
    .weights = {.count = 1, .name = {"lin.weight"}},
    GAT_STEPS,
};

const struct sl_layer_kind sl_layer_gat_residual = {
    .name = "gat-residual",
    .weights = {.count = 2, .linear = 1, .name = {"res.weight", "lin.weight"}, .splits = true},
    GAT_STEPS,
};
