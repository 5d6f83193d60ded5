/* clang-format off */
/* Attention whose scores need both ends' rows, of GATv2 and of graph transformers: output = drop(activation(heads side by side + b)), in the last layer the mean of the heads + b. H is the input of the layer after dropout.
 *
 *   forward   X = H·[W_K | W_T] or H·[W_K | W_V | W_T]     SOURCE, TARGET = the ends from X and biases
 *             STATE = pair(SOURCE, TARGET)                  output
 *   backward  [G | r] from the gradient of the output       [D | E] = the walk back
 *             C = the second walk                           da, dW_e from sums over rows and edges
 *             V = the gradient of X from C, D, E            d[W_K | …] = Hᵀ·V
 *             the gradients of K's, V's and T's biases = column sums of V
 *             db = column sums of the gradient              the gradient of H = V·[W_K | …]ᵀ
 *
 * With features of entries, backward has as well
 *
 *             M of GATv2 = sums of the second walk          dW_e, and its share of da, from the sum of M
 *             dW_e of a transformer = sums of A·T + B·G over the rows
 *
 * graphs/reduce_pair.c has the formulas. V of a residual is as in graphs/layer_gat.c. */
/* clang-format on */
#include "graphs/layer_pair.h"

#include <math.h>
#include <stdlib.h>

#include "codelets/bias.h"
#include "core/error.h"
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/layer_heads.h"
#include "graphs/reach.h"

/* A part of a layer: each of the ranks that share rows has one part: some of the heads. */
struct part {
    struct sl_pair pair;
    struct sl_pair_shape shape;
};

/* Cuts (columns of the grid + 1) of matrices of codelets/pair.h; products are cut at
 * layer->columns.product_cut. `rows`: TARGET and GRADIENT together. */
struct cuts {
    int64_t *source, *target, *state, *gradient, *rows, *target_back, *source_back;
};

enum { CUTS = sizeof(struct cuts) / sizeof(int64_t *) };

struct pairs {
    struct sl_heads heads; /* vectors and sums, M, as in codelets/pair.h */
    int parts;
    struct part *part;   // (parts): the columns of the grid
    struct sl_pair pair; /* this rank's part */
    struct sl_pair_shape shape;
    struct cuts cut;
    struct sl_matrix source, target, state; /* rows as in codelets/pair.h */
};

static bool is_transformer(const struct sl_layer_shape *shape)
{
    return shape->kind == &sl_layer_transformer || shape->kind == &sl_layer_transformer_residual;
}

static struct sl_pair part_of(const struct sl_layer_shape *shape, int parts, int c)
{
    const int first = shape->heads * c / parts, end = shape->heads * (c + 1) / parts;
    const int64_t width = sl_layer_shape_columns(shape) / shape->heads;
    const bool products = is_transformer(shape);
    return (struct sl_pair){
        .attention = {.heads = end - first,
                      .first_head = first,
                      .width = sl_pair_room(width),
                      .slope = shape->slope,
                      .drop = {.scale = 1.0f}},
        .width = width,
        .products = products,
        .scale = products ? 1.0f / sqrtf((float)width) : 1.0f,
        .edges = shape->edge_features,
    };
}

static int pair_cut(const struct sl_layer_shape *shape, const struct sl_grid *grid, int64_t *output,
                    int64_t *product)
{
    const int parts = grid->columns;
    if (shape->heads < 1 || shape->heads > SL_ATTENTION_HEADS ||
        sl_layer_shape_columns(shape) > SL_ATTENTION_COLUMNS)
        return sl_error(SL_ERR_SYSTEM,
                        "a layer of %d heads and %lld columns (expected 1 to %d, and %d at most)",
                        shape->heads, (long long)sl_layer_shape_columns(shape), SL_ATTENTION_HEADS,
                        SL_ATTENTION_COLUMNS);
    if (parts > 1 && shape->mean)
        return sl_error(SL_ERR_USAGE,
                        "--model %s: %d columns of ranks cannot share the mean of the last layer's "
                        "heads (expected --classifier linear or --jump, or one column: "
                        "--grid Rx1xD)",
                        is_transformer(shape) ? "transformer" : "gatv2", parts);
    if (shape->heads < parts)
        return sl_error(SL_ERR_USAGE,
                        "--model %s: %d heads cannot be cut for %d columns of ranks (expected as "
                        "many, or fewer columns: --grid RxCxD)",
                        is_transformer(shape) ? "transformer" : "gatv2", shape->heads, parts);
    for (int c = 0; c < parts; c++) {
        const struct sl_pair pair = part_of(shape, parts, c);
        if (!shape->mean)
            output[c + 1] = output[c] + sl_pair_columns(&pair);
        product[c + 1] = product[c] + sl_pair_projected(&pair);
    }
    return 0;
}

/* ---- Plan ---- */

static void cut_parts(struct sl_layer *layer, struct pairs *p)
{
    const struct sl_layer_shape *shape = &layer->model->shape;
    const int64_t head = sl_layer_shape_columns(shape) / shape->heads;
    for (int c = 0; c < p->parts; c++) {
        const struct sl_pair pair = part_of(shape, p->parts, c);
        p->part[c] = (struct part){
            pair,
            {
                .in = layer->in,
                .columns = sl_layer_shape_columns(shape),
                .skipped = layer->kind->weights.splits ? layer->in : 0,
                .first = pair.attention.first_head * head,
                .at = layer->columns.product_cut[c],
                .bias = layer->bias,
                .out = sl_cut_width(layer->columns.out_cut, c),
                .out_column = layer->columns.out_cut[c],
            },
        };
        p->cut.source[c + 1] = p->cut.source[c] + sl_pair_source(&pair);
        p->cut.target[c + 1] = p->cut.target[c] + sl_pair_target(&pair);
        p->cut.state[c + 1] = p->cut.state[c] + sl_pair_state(&pair);
        p->cut.gradient[c + 1] = p->cut.gradient[c] + sl_pair_gradient(&pair);
        p->cut.rows[c + 1] = p->cut.target[c + 1] + p->cut.gradient[c + 1];
        p->cut.target_back[c + 1] = p->cut.target_back[c] + sl_pair_target_back(&pair);
        p->cut.source_back[c + 1] = p->cut.source_back[c] + 2 * sl_pair_all(&pair);
    }
}

static int create_parts(struct sl_layer *layer, struct pairs *p, int parts, int own)
{
    const int64_t count = parts + 1;
    int64_t *at = p->cut.source = calloc((size_t)(CUTS * count), sizeof *at);
    p->part = calloc((size_t)parts, sizeof *p->part);
    p->parts = parts;
    if (!at || !p->part)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    p->cut.target = at += count;
    p->cut.state = at += count;
    p->cut.gradient = at += count;
    p->cut.rows = at += count;
    p->cut.target_back = at += count;
    p->cut.source_back = at + count;
    cut_parts(layer, p);
    p->pair = p->part[own].pair;
    p->shape = p->part[own].shape;
    return 0;
}

/* Return where X and its gradient V are: in the place of [D | E], where the two have one shape, or
 * of [G | r]. */
static enum sl_slot slot_of_projected(const struct pairs *p)
{
    return !p->pair.products && p->pair.width == p->pair.attention.width ? SL_SLOT_SUM
                                                                         : SL_SLOT_WORK;
}

/* Going back, the gradient of the input takes the place of C. */
static int plan_scratch(struct sl_network *net, struct sl_layer *layer, struct pairs *p)
{
    int code =
        sl_network_plan_scratch_cut(net, 0, layer->columns.product_cut, slot_of_projected(p));
    if (!code)
        code = sl_network_plan_scratch_cut(net, 0, p->cut.gradient, SL_SLOT_WORK);
    if (!code)
        code = sl_network_plan_scratch_cut(net, 0, p->cut.source_back, SL_SLOT_SUM);
    return code ? code : sl_network_plan_scratch_cut(net, 0, p->cut.target_back, SL_SLOT_GRADIENT);
}

/* Whether the weight of edge features has a gradient that is a sum over edges. */
static bool has_edge_sums(const struct pairs *p)
{
    return p->pair.edges > 0 && !p->pair.products;
}

static int pair_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const struct sl_grid *grid = &net->graph->distribution->grid;
    struct pairs *p = layer->own = calloc(1, sizeof *p);
    (void)wanted;
    if (!p)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    int code = create_parts(layer, p, grid->columns, sl_grid_column(grid, net->rt->rank));
    if (!code)
        code = sl_heads_create(
            net, layer, (struct sl_matrix *const[]){&p->source, &p->target, &p->state},
            (const int64_t *const[]){p->cut.source, p->cut.target, p->cut.state});
    if (!code)
        code =
            sl_tile_create(net->rt, &p->heads.vectors, sl_pair_vector_rows(&p->pair),
                           sl_pair_all(&p->part[p->parts - 1].pair), sizeof(float), net->rt->rank);
    if (!code && has_edge_sums(p))
        code = sl_edge_sums_create(net, &p->heads.sums, p->pair.edges, sl_pair_all(&p->pair));
    if (!code)
        code = plan_scratch(net, layer, p);
    return code ? code : sl_heads_plan(net, layer);
}

static void pair_destroy(struct sl_layer *layer)
{
    struct pairs *p = layer->own;
    free(p->cut.source);
    free(p->part);
    sl_heads_destroy(layer);
}

static int pair_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                             struct sl_aggregation list[SL_AGGREGATIONS])
{
    const struct pairs *p = layer->own;
    const int columns = net->graph->distribution->grid.columns;
    list[0] = (struct sl_aggregation){
        .width = p->cut.source[columns],
        .cut = p->cut.source,
        .type = SL_FLOAT32,
        .reducer = layer->reducer,
        .state = p->cut.state,
        .operands = p->cut.target,
    };
    list[1] = (struct sl_aggregation){
        .transposed = true,
        .width = p->cut.gradient[columns],
        .cut = p->cut.gradient,
        .type = SL_FLOAT32,
        .reducer = layer->reducer->back,
        .others = p->cut.target,
        .state = p->cut.source_back,
        .operands = p->cut.source,
    };
    list[2] = (struct sl_aggregation){
        .again = true,
        .width = p->cut.source[columns],
        .cut = p->cut.source,
        .type = SL_FLOAT32,
        .reducer = layer->reducer->again,
        .state = p->cut.target_back,
        .operands = p->cut.rows,
    };
    return 3;
}

/* ---- Forward ---- */

/* Return the parameters of this pass's walks: with the layer's dropout where it trains. */
static struct sl_pair_pass pass_of(const struct sl_network *net, const struct sl_layer *layer,
                                   bool training)
{
    struct pairs *p = layer->own;
    struct sl_pair_pass pass = {p->pair, &p->heads.vectors,
                                has_edge_sums(p) ? &p->heads.sums : NULL};
    if (training && layer->model->shape.attention_dropout > 0.0)
        pass.pair.attention.drop =
            sl_dropout_make(layer->model->shape.attention_dropout,
                            sl_rng_key(net->model->options.seed, SL_RNG_ATTENTION, net->step.update,
                                       (uint32_t)layer->index));
    return pass;
}

/* Make the ends from the input. */
static void project(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct pairs *p = layer->own;
    struct sl_tile *const parameters = &layer->model->parameters;
    const struct sl_product_input input = sl_layer_product_input(net, layer, training);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank),
              hops = sl_reach_of_input(layer);
    struct sl_matrix *const x =
        sl_network_scratch_cut(net, 0, layer->columns.product_cut, slot_of_projected(p), hops);
    for (int k = 1; k <= p->parts; k++) { /* the own part comes last, and leaves its vectors */
        const struct part *part = &p->part[(c + k) % p->parts];
        sl_submit_pair_weights(net->rt, &part->pair, &part->shape, parameters, &p->heads.weights,
                               &p->heads.vectors);
    }
    sl_product(net, layer, &input, NULL, NULL, x);
    sl_network_take(net, &p->source, hops);
    sl_network_take(net, &p->target, hops);
    for (int i = own.from; i < own.to; i++)
        sl_submit_pair_ends(net->rt, &p->pair, &p->shape, &net->graph->scales[0][i], parameters,
                            &p->heads.vectors, sl_matrix_tile(x, i, c),
                            sl_matrix_tile(&p->source, i, c), sl_matrix_tile(&p->target, i, c));
}

static void pair_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct pairs *p = layer->own;
    const struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    const struct sl_pair_pass pass = pass_of(net, layer, training);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
    if (sl_layer_dense_input(net, layer, training) == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    project(net, layer, training);
    sl_network_take(net, &p->state, layer->rows.hops);
    sl_network_walk(
        net, layer, SL_WALK_FORWARD,
        &(struct sl_reduction){
            .moved = {&p->source}, .row = {&p->target}, .out = {&p->state}, .parameters = &pass});
    const struct sl_row_epilogue rows = {layer->beside ? SL_EPILOGUE_NONE : finish,
                                         net->graph->scales[0], NULL};
    for (int i = own.from; i < own.to; i++) {
        const struct sl_epilogue_tiles tiles = sl_row_epilogue_at(&rows, i, &layer->output, c);
        sl_submit_pair_output(net->rt, &p->pair, layer->model->shape.mean, &tiles,
                              sl_matrix_tile(&p->state, i, c),
                              sl_matrix_tile(&layer->output, i, c));
    }
    sl_heads_add_residual(net, layer, training, &finish);
}

/* ---- Backward ---- */

/* Matrices that walks back have made. */
struct rows_back {
    struct sl_matrix *source, *target, *gradient;
};

/* Submit row tile i's part of the gradient of a, and of the weight of edge features. */
static void differentiate_vectors(struct sl_network *net, struct sl_layer *layer, int i,
                                  const struct rows_back *back)
{
    struct pairs *p = layer->own;
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
    struct sl_tile *const target = sl_matrix_tile(&p->target, i, c), *const target_back =
                                                                         sl_matrix_tile(
                                                                             back->target, i, c);
    if (layer->kind->sums == 0 && p->pair.edges == 0)
        return;
    struct sl_tile *const further = sl_product_further(net, layer, i);
    const int64_t row = further->rows - sl_layer_further_rows(layer);
    if (layer->kind->sums)
        sl_submit_pair_vector_back(net->rt, &p->pair, sl_matrix_tile(&p->source, i, c), target,
                                   target_back, sl_matrix_tile(back->source, i, c),
                                   row + p->pair.edges, further);
    if (has_edge_sums(p))
        sl_submit_pair_edges_paste(net->rt, &p->pair, sl_edge_sums_of(&p->heads.sums, i), row,
                                   further);
    else if (p->pair.edges > 0)
        sl_submit_pair_edges_back(net->rt, &p->pair, target, sl_matrix_tile(back->gradient, i, c),
                                  target_back, sl_matrix_tile(&p->state, i, c), row, further);
}

/* Return the gradient of X, made from g, the gradient of the output before bias and activation. */
static struct sl_matrix *walk_back(struct sl_network *net, struct sl_layer *layer,
                                   const struct sl_matrix *g)
{
    struct pairs *p = layer->own;
    const struct sl_pair_pass pass = pass_of(net, layer, true);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank),
              hops = sl_reach_of_input(layer);
    struct sl_matrix *gradient = sl_network_scratch_cut(net, 0, p->cut.gradient, SL_SLOT_WORK,
                                                        layer->rows.hops),
                     *source =
                         sl_network_scratch_cut(net, 0, p->cut.source_back, SL_SLOT_SUM, hops),
                     *target = sl_network_scratch_cut(net, 0, p->cut.target_back, SL_SLOT_GRADIENT,
                                                      layer->rows.hops);
    for (int i = own.from; i < own.to; i++)
        sl_submit_pair_gradient(net->rt, &p->pair, layer->model->shape.mean, &p->heads.vectors,
                                sl_matrix_tile(g, i, c), sl_matrix_tile(&p->state, i, c),
                                sl_matrix_tile(gradient, i, c));
    sl_network_walk(net, layer, SL_WALK_BACK,
                    &(struct sl_reduction){.moved = {gradient, &p->target},
                                           .row = {&p->source},
                                           .out = {source},
                                           .parameters = &pass});
    if (pass.sums)
        sl_edge_sums_begin(pass.sums);
    sl_network_walk(net, layer, SL_WALK_AGAIN,
                    &(struct sl_reduction){.moved = {&p->source},
                                           .row = {&p->target, gradient},
                                           .out = {target},
                                           .parameters = &pass});
    if (pass.sums)
        sl_edge_sums_end(net, layer, pass.sums);
    for (int i = own.from; i < own.to; i++)
        differentiate_vectors(net, layer, i, &(struct rows_back){source, target, gradient});
    struct sl_matrix *const v =
        sl_network_scratch_cut(net, 0, layer->columns.product_cut, slot_of_projected(p), hops);
    for (int i = own.from; i < own.to; i++)
        sl_submit_pair_join(net->rt, &pass.pair, &p->heads.vectors, sl_matrix_tile(target, i, c),
                            sl_matrix_tile(source, i, c), sl_matrix_tile(v, i, c));
    return v;
}

static struct sl_matrix *pair_backward(struct sl_network *net, struct sl_layer *layer,
                                       struct sl_matrix *g)
{
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
    sl_layer_drop_again(net, layer);
    struct sl_matrix *const v = walk_back(net, layer, g);
    struct sl_matrix *const back =
        sl_heads_products_back(net, layer, v, g, layer->kind->sums > 0 || layer->edge_features > 0);
    for (int i = own.from; layer->bias && i < own.to; i++) {
        struct sl_tile *const further = sl_product_further(net, layer, i);
        sl_submit_bias_gradient(net->rt, &net->graph->scales[0][i], SL_ROW_NONE,
                                sl_matrix_tile(v, i, c), false, further->rows - 2, further);
    }
    return back;
}

static struct sl_tile *pair_differentiate(struct sl_network *net, struct sl_layer *layer,
                                          struct sl_tile *summed)
{
    struct pairs *p = layer->own;
    for (int c = 0; c < p->parts; c++)
        sl_submit_pair_weights_back(net->rt, &p->part[c].pair, &p->part[c].shape, c > 0,
                                    &layer->model->parameters, summed, &p->heads.gradient);
    return sl_heads_residual_back(net, layer);
}

/* Features of GATv2 make a row of each entry, and the second walk sums products with them. A
 * transformer's features meet a number for each head. */
static double pair_seconds(const struct sl_layer_shape *shape, const struct sl_walk_size *walk)
{
    static const struct sl_heads_work sums[] = {{48.0, 12.0}, {72.0, 12.0}, {64.0, 24.0}},
                                      products[] = {{48.0, 20.0}, {88.0, 20.0}, {80.0, 30.0}};
    struct sl_heads_work work = (is_transformer(shape) ? products : sums)[walk->way];
    if (!is_transformer(shape))
        work.column += (walk->way == SL_WALK_AGAIN ? 4.0 : 2.0) * (double)shape->edge_features;
    return sl_heads_seconds(shape, walk, work);
}

/* Append a row of each vertex: the product with a weight, and this weight's bias. */
static int describe_rows(const struct sl_forward *forward, int weight)
{
    const struct sl_layer_shape *shape = forward->shape;
    const struct sl_layer_kind *kind = shape->kind;
    const int biases =
        kind->vectors.count - (kind->weights.count - kind->weights.splits); /* the first bias */
    const int value =
        sl_forward_product(forward, sl_forward_input(forward), kind->weights.splits + weight, 0);
    return shape->bias ? sl_forward_bias(forward, value, kind->vectors.name[biases + weight])
                       : value;
}

static int pair_describe(const struct sl_forward *forward)
{
    const struct sl_layer_shape *shape = forward->shape;
    const char *const edge = shape->edge_features > 0 ? shape->kind->edge : NULL;
    const char *const gatv2[SL_STEP_TENSORS] = {shape->kind->vectors.name[0], edge},
                      *const transformer[SL_STEP_TENSORS] = {edge};
    const int source = describe_rows(forward, 0), second = describe_rows(forward, 1);
    struct sl_step step = {.kind = SL_STEP_GATV2,
                           .of = {source, second},
                           .heads = shape->heads,
                           .slope = (double)shape->slope,
                           .loops = shape->kind->loops};
    if (is_transformer(shape)) {
        step.kind = SL_STEP_DOT_ATTENTION;
        step.of[1] = describe_rows(forward, 2);
        step.of[2] = second;
    }
    return sl_heads_describe(
        forward,
        sl_forward_step(forward, source, step, step.kind == SL_STEP_GATV2 ? gatv2 : transformer));
}

/* Names of parameters are PyG's. */
#define STEPS                                                                                \
    .edge = "lin_edge.weight", .leaves_sums = true, .cut = pair_cut, .plan = pair_plan,      \
    .forward = pair_forward, .backward = pair_backward, .aggregations = pair_aggregations,   \
    .seconds = pair_seconds, .differentiate = pair_differentiate, .memory = sl_heads_memory, \
    .destroy = pair_destroy, .describe = pair_describe

const struct sl_layer_kind sl_layer_gatv2 = {
    .name = "gatv2",
    .loops = true,
    .weights = {.count = 2, .name = {"lin_l.weight", "lin_r.weight"}, .joined = true},
    .vectors = {.count = 3, .name = {"att", "lin_l.bias", "lin_r.bias"}, .biases = true},
    .bias = "bias",
    .sums = 1,
    STEPS,
};

const struct sl_layer_kind sl_layer_gatv2_residual = {
    .name = "gatv2-residual",
    .loops = true,
    .weights = {.count = 3,
                .linear = 1,
                .name = {"res.weight", "lin_l.weight", "lin_r.weight"},
                .splits = true,
                .joined = true},
    .vectors = {.count = 3, .name = {"att", "lin_l.bias", "lin_r.bias"}, .biases = true},
    .bias = "bias",
    .sums = 1,
    STEPS,
};

const struct sl_layer_kind sl_layer_transformer = {
    .name = "transformer",
    .weights = {.count = 3,
                .linear = 3,
                .name = {"lin_key.weight", "lin_value.weight", "lin_query.weight"},
                .joined = true},
    .vectors = {.count = 3,
                .name = {"lin_key.bias", "lin_value.bias", "lin_query.bias"},
                .biases = true},
    .bias = "lin_skip.bias",
    STEPS,
};

const struct sl_layer_kind sl_layer_transformer_residual = {
    .name = "transformer-residual",
    .weights = {.count = 4,
                .linear = 4,
                .name = {"lin_skip.weight", "lin_key.weight", "lin_value.weight",
                         "lin_query.weight"},
                .splits = true,
                .joined = true},
    .vectors = {.count = 3,
                .name = {"lin_key.bias", "lin_value.bias", "lin_query.bias"},
                .biases = true},
    .bias = "lin_skip.bias",
    STEPS,
};
