/* The nodes of each kind of step. Rows of edges are gathered by source, and added to rows of
 * targets by ScatterElements, which takes an index for each element. */
#include <math.h>
#include <stdlib.h>

#include "deploy/onnx.h"

/* ---- Nodes that steps share ---- */

static int one(struct sl_onnx *o, const char *operator, int x)
{
    return sl_onnx_node(o, operator, 1, x);
}

static int two(struct sl_onnx *o, const char *operator, int x, int y)
{
    return sl_onnx_node(o, operator, 2, x, y);
}

static int integer(struct sl_onnx *o, int64_t number)
{
    return sl_onnx_integers(o, 1, &number);
}

static int row(struct sl_onnx *o, const struct sl_tensor *tensor)
{
    return sl_onnx_floats(o, 2, (int64_t[]){1, tensor->cols}, tensor->data);
}

static int vector(struct sl_onnx *o, const struct sl_tensor *tensor)
{
    return sl_onnx_floats(o, 1, &tensor->cols, tensor->data);
}

static int matrix(struct sl_onnx *o, const struct sl_tensor *tensor)
{
    return sl_onnx_floats(o, 2, (int64_t[]){tensor->rows, tensor->cols}, tensor->data);
}

/* Return x (rows, width) cut into heads: (rows, heads, width / heads). */
static int cut(struct sl_onnx *o, int x, int64_t heads, int64_t width)
{
    return two(o, "Reshape", x, sl_onnx_integers(o, 3, (int64_t[]){0, heads, width / heads}));
}

/* Return x, cut into heads, as (rows, width). */
static int join(struct sl_onnx *o, int x, int64_t width)
{
    return two(o, "Reshape", x, sl_onnx_integers(o, 2, (int64_t[]){0, width}));
}

static int reduce(struct sl_onnx *o, const char *operator, int x, int64_t axis, bool keep)
{
    sl_onnx_set_integer(o, "keepdims", keep);
    return two(o, operator, x, integer(o, axis));
}

/* Return rows of x, (entries of index, …). */
static int gather(struct sl_onnx *o, int x, int index)
{
    sl_onnx_set_integer(o, "axis", 0);
    return two(o, "Gather", x, index);
}

static int concat(struct sl_onnx *o, int x, int y)
{
    sl_onnx_set_integer(o, "axis", 0);
    return two(o, "Concat", x, y);
}

/* Return the truth values x as float32. */
static int as_numbers(struct sl_onnx *o, int x)
{
    enum { FLOAT = 1 };
    sl_onnx_set_integer(o, "to", FLOAT);
    return one(o, "Cast", x);
}

/* Return how many vertices there are, (1) of int64. */
static int vertices(struct sl_onnx *o)
{
    if (!o->vertices) {
        sl_onnx_set_integer(o, "start", 0);
        sl_onnx_set_integer(o, "end", 1);
        o->vertices = one(o, "Shape", SL_ONNX_FEATURES);
    }
    return o->vertices;
}

/* Return a tensor of that number; `shape`: (dimensions) of int64. */
static int filled(struct sl_onnx *o, double number, int shape)
{
    return two(o, "Expand", sl_onnx_number(o, number), shape);
}

/* Return x where the condition holds, else a number. */
static int where(struct sl_onnx *o, int condition, int x, double other)
{
    return sl_onnx_node(o, "Where", 3, condition, x, sl_onnx_number(o, other));
}

/* Return x, or 1 where x is not above 0: a divisor. */
static int divisor(struct sl_onnx *o, int x)
{
    return where(o, two(o, "Greater", x, sl_onnx_number(o, 0.0)), x, 1.0);
}

/* Return what rows of edges (E, width) come to in the rows `index` names, of `rows` (1) rows: their
 * sum ("add") or maximum or minimum, from `start` on. */
static int scatter(struct sl_onnx *o, const char *how, double start, int index, int x, int rows,
                   int64_t width)
{
    const int begun = filled(o, start, concat(o, rows, integer(o, width))),
              all = two(o, "Expand", two(o, "Unsqueeze", index, integer(o, 1)), one(o, "Shape", x));
    sl_onnx_set_integer(o, "axis", 0);
    sl_onnx_set_text(o, "reduction", how);
    return sl_onnx_node(o, "ScatterElements", 3, begun, all, x);
}

/* Return the sums of rows of edges at their targets, (V, width). */
static int sum_at(struct sl_onnx *o, const struct sl_onnx_edges *edges, int x, int64_t width)
{
    return scatter(o, "add", 0.0, edges->target, x, vertices(o), width);
}

/* ---- Edges ---- */

/* Return the features of the loops: the mean of the features of a vertex's other edges. */
static int loop_features(struct sl_onnx *o, int64_t width)
{
    const struct sl_onnx_edges *edges = &o->edges[0];
    const int others = as_numbers(o, one(o, "Not", two(o, "Equal", edges->source, edges->target))),
              factor = two(o, "Unsqueeze", others, integer(o, 1)),
              sum = sum_at(o, edges, two(o, "Mul", edges->features, factor), width),
              count = sum_at(o, edges, factor, 1);
    return two(o, "Div", sum, divisor(o, count));
}

/* Return the edges as the inputs have them. */
static struct sl_onnx_edges *plain_edges(struct sl_onnx *o)
{
    struct sl_onnx_edges *edges = &o->edges[0];
    if (edges->source)
        return edges;
    edges->source = SL_ONNX_SOURCE;
    edges->target = SL_ONNX_TARGET;
    edges->weight = sl_onnx_has_input(o, SL_ONNX_WEIGHT)
                        ? two(o, "Expand", SL_ONNX_WEIGHT, one(o, "Shape", SL_ONNX_TARGET))
                        : filled(o, 1.0, one(o, "Shape", SL_ONNX_TARGET));
    edges->features = SL_ONNX_EDGE_FEATURES;
    return edges;
}

/* Return the edges, with a loop at each vertex behind them where the step has loops. */
static struct sl_onnx_edges *edges_of(struct sl_onnx *o, const struct sl_step *step)
{
    struct sl_onnx_edges *plain = plain_edges(o);
    struct sl_onnx_edges *edges = &o->edges[1];
    const int64_t width = o->bound->program.edge_features;
    if (!step->loops)
        return plain;
    if (edges->source)
        return edges;
    const int zero = sl_onnx_node(o, "Squeeze", 1, integer(o, 0)),
              step_by = sl_onnx_node(o, "Squeeze", 1, integer(o, 1)),
              count = sl_onnx_node(o, "Squeeze", 1, vertices(o)),
              loops = sl_onnx_node(o, "Range", 3, zero, count, step_by);
    edges->source = concat(o, plain->source, loops);
    edges->target = concat(o, plain->target, loops);
    edges->weight = concat(o, plain->weight, filled(o, 1.0, vertices(o)));
    if (width > 0)
        edges->features = concat(o, plain->features, loop_features(o, width));
    return edges;
}

/* Return the weights of edges as (E, 1). */
static int weights_of(struct sl_onnx *o, struct sl_onnx_edges *edges)
{
    if (!edges->column)
        edges->column = two(o, "Unsqueeze", edges->weight, integer(o, 1));
    return edges->column;
}

/* ---- Features ---- */

static int unit_rows(struct sl_onnx *o, int s, const int *x)
{
    const char *norm = o->bound->program.step[s].unit == 1 ? "ReduceL1" : "ReduceL2";
    return two(o, "Div", x[0], divisor(o, reduce(o, norm, x[0], 1, true)));
}

/* The mean is a float32 and the rest of it: columns may be far from 0. */
static int standardize(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_bound *bound = o->bound;
    const int64_t width = bound->program.features;
    float *numbers = malloc(3 * (size_t)width * sizeof *numbers);
    (void)s;
    o->nodes.failed = o->nodes.failed || !numbers;
    if (!numbers)
        return x[0];
    for (int64_t j = 0; j < width; j++) {
        numbers[j] = (float)bound->mean[j];
        numbers[width + j] = (float)(bound->mean[j] - (double)numbers[j]);
        numbers[2 * width + j] = (float)bound->deviation[j];
    }
    const int mean = sl_onnx_floats(o, 1, &width, numbers),
              rest = sl_onnx_floats(o, 1, &width, numbers + width),
              deviation = sl_onnx_floats(o, 1, &width, numbers + 2 * width);
    free(numbers);
    return two(o, "Div", two(o, "Sub", two(o, "Sub", x[0], mean), rest), deviation);
}

/* ---- Products, sums ---- */

static int product(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_step *step = &o->bound->program.step[s];
    const struct sl_tensor *w = sl_bound_tensor(o->bound, s, 0);
    const int64_t dim[] = {step->rows ? step->rows : w->rows, w->cols};
    return two(o, "MatMul", x[0], sl_onnx_floats(o, 2, dim, w->data + step->row * w->cols));
}

/* Return the sum of weights at each vertex, (V, 1). */
static int weight_sums(struct sl_onnx *o, struct sl_onnx_edges *edges)
{
    if (!edges->sum)
        edges->sum = sum_at(o, edges, weights_of(o, edges), 1);
    return edges->sum;
}

/* Return how many edges each vertex has, (V, 1). */
static int edge_counts(struct sl_onnx *o, struct sl_onnx_edges *edges)
{
    if (!edges->count)
        edges->count = sum_at(o, edges, filled(o, 1.0, one(o, "Shape", weights_of(o, edges))), 1);
    return edges->count;
}

static int make_factors(struct sl_onnx *o, enum sl_step_norm norm, struct sl_onnx_edges *edges)
{
    const int weights = weights_of(o, edges);
    if (norm == SL_STEP_NORM_NONE)
        return weights;
    if (norm == SL_STEP_NORM_COUNT)
        return two(o, "Div", weights, gather(o, edge_counts(o, edges), edges->target));
    if (norm == SL_STEP_NORM_ROW)
        return two(o, "Div", weights, gather(o, weight_sums(o, edges), edges->target));
    const int root = one(o, "Sqrt", weight_sums(o, edges));
    return two(o, "Div", two(o, "Div", weights, gather(o, root, edges->target)),
               gather(o, root, edges->source));
}

/* Return the factors of edges of a sum, (E, 1). */
static int factors(struct sl_onnx *o, enum sl_step_norm norm, struct sl_onnx_edges *edges)
{
    if (!edges->factors[norm])
        edges->factors[norm] = make_factors(o, norm, edges);
    return edges->factors[norm];
}

static int aggregate(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_step *step = &o->bound->program.step[s];
    struct sl_onnx_edges *edges = edges_of(o, step);
    const int64_t width = o->bound->width[s + 1];
    const int rows = gather(o, x[0], edges->source);
    if (step->reduce == SL_REDUCE_SUM)
        return sum_at(o, edges, two(o, "Mul", rows, factors(o, step->norm, edges)), width);
    const bool max = step->reduce == SL_REDUCE_MAX;
    const int met = scatter(o, max ? "max" : "min", max ? -INFINITY : INFINITY, edges->target,
                            two(o, "Mul", rows, weights_of(o, edges)), vertices(o), width),
              some = two(o, "Greater", edge_counts(o, edges), sl_onnx_number(o, 0.0));
    return where(o, some, met, 0.0);
}

static int scaled(struct sl_onnx *o, double by, int x)
{
    return by == 1.0 ? x : two(o, "Mul", x, sl_onnx_number(o, by));
}

static int add(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_step *step = &o->bound->program.step[s];
    return two(o, "Add", scaled(o, step->x, x[0]), scaled(o, step->y, x[1]));
}

static int larger(struct sl_onnx *o, int s, const int *x)
{
    (void)s;
    return two(o, "Max", x[0], x[1]);
}

static int bias(struct sl_onnx *o, int s, const int *x)
{
    return two(o, "Add", x[0], row(o, sl_bound_tensor(o->bound, s, 0)));
}

static int relu(struct sl_onnx *o, int s, const int *x)
{
    (void)s;
    return one(o, "Relu", x[0]);
}

static int elu(struct sl_onnx *o, int s, const int *x)
{
    (void)s;
    return one(o, "Elu", x[0]);
}

/* ---- Norms ---- */

static int row_norm(struct sl_onnx *o, int s, const int *x)
{
    const int weight = vector(o, sl_bound_tensor(o->bound, s, 0)),
              shift = vector(o, sl_bound_tensor(o->bound, s, 1));
    sl_onnx_set_integer(o, "axis", -1);
    sl_onnx_set_float(o, "epsilon", o->bound->program.step[s].epsilon);
    return sl_onnx_node(o, "LayerNormalization", 3, x[0], weight, shift);
}

static int batch_norm(struct sl_onnx *o, int s, const int *x)
{
    int tensor[4];
    for (int t = 0; t < 4; t++)
        tensor[t] = vector(o, sl_bound_tensor(o->bound, s, t));
    sl_onnx_set_float(o, "epsilon", o->bound->program.step[s].epsilon);
    return sl_onnx_node(o, "BatchNormalization", 5, x[0], tensor[0], tensor[1], tensor[2],
                        tensor[3]);
}

static int mean_heads(struct sl_onnx *o, int s, const int *x)
{
    const int64_t heads = o->bound->program.step[s].heads;
    return reduce(o, "ReduceMean", cut(o, x[0], heads, heads * o->bound->width[s + 1]), 1, false);
}

/* ---- Attention ---- */

/* Return f·W_e of each edge, (E, width), where the step reads features; else -1. */
static int edge_rows(struct sl_onnx *o, int s, const struct sl_onnx_edges *edges, int place)
{
    const struct sl_tensor *w = sl_bound_tensor(o->bound, s, place);
    return w ? two(o, "MatMul", edges->features, matrix(o, w)) : -1;
}

/* Return the sums over the columns of each head of step s, (rows, heads), of x times y. */
static int dots(struct sl_onnx *o, int s, int x, int y)
{
    const int product_of = two(o, "Mul", x, y);
    return reduce(o, "ReduceSum",
                  cut(o, product_of, o->bound->program.step[s].heads, o->bound->width[s + 1]), 2,
                  false);
}

static int leaky(struct sl_onnx *o, int x, double slope)
{
    sl_onnx_set_float(o, "alpha", slope);
    return one(o, "LeakyRelu", x);
}

/* Return the sums of values (E, width) at their targets, with factors from scores (E, heads). */
static int attend(struct sl_onnx *o, int s, struct sl_onnx_edges *edges, int scores, int values)
{
    const int64_t heads = o->bound->program.step[s].heads, width = o->bound->width[s + 1];
    const int most = scatter(o, "max", -INFINITY, edges->target, scores, vertices(o), heads),
              shifted = two(o, "Sub", scores, gather(o, most, edges->target)),
              share = two(o, "Mul", one(o, "Exp", shifted), weights_of(o, edges)),
              sum = divisor(o, sum_at(o, edges, share, heads)),
              factor = two(o, "Div", share, gather(o, sum, edges->target)),
              met = two(o, "Mul", cut(o, values, heads, width),
                        two(o, "Unsqueeze", factor, integer(o, 2)));
    return sum_at(o, edges, join(o, met, width), width);
}

static int gat(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_step *step = &o->bound->program.step[s];
    struct sl_onnx_edges *edges = edges_of(o, step);
    const int source = dots(o, s, x[0], row(o, sl_bound_tensor(o->bound, s, 0))),
              target = dots(o, s, x[0], row(o, sl_bound_tensor(o->bound, s, 1))),
              edge = edge_rows(o, s, edges, 2);
    int sum = two(o, "Add", gather(o, source, edges->source), gather(o, target, edges->target));
    if (edge >= 0)
        sum = two(o, "Add", sum, dots(o, s, edge, row(o, sl_bound_tensor(o->bound, s, 3))));
    return attend(o, s, edges, leaky(o, sum, step->slope), gather(o, x[0], edges->source));
}

static int gatv2(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_step *step = &o->bound->program.step[s];
    struct sl_onnx_edges *edges = edges_of(o, step);
    const int source = gather(o, x[0], edges->source), edge = edge_rows(o, s, edges, 1);
    int sum = two(o, "Add", source, gather(o, x[1], edges->target));
    if (edge >= 0)
        sum = two(o, "Add", sum, edge);
    const int scores =
        dots(o, s, leaky(o, sum, step->slope), row(o, sl_bound_tensor(o->bound, s, 0)));
    return attend(o, s, edges, scores, source);
}

static int dot_attention(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_step *step = &o->bound->program.step[s];
    struct sl_onnx_edges *edges = edges_of(o, step);
    const double width = (double)(o->bound->width[s + 1] / step->heads);
    const int edge = edge_rows(o, s, edges, 0);
    int key = gather(o, x[0], edges->source), value = gather(o, x[2], edges->source);
    if (edge >= 0) {
        key = two(o, "Add", key, edge);
        value = two(o, "Add", value, edge);
    }
    const int scores = dots(o, s, key, gather(o, x[1], edges->target));
    return attend(o, s, edges, scaled(o, 1.0 / sqrt(width), scores), value);
}

/* ---- Edge features and relations ---- */

static int gine(struct sl_onnx *o, int s, const int *x)
{
    struct sl_onnx_edges *edges = plain_edges(o);
    const struct sl_tensor *shift = sl_bound_tensor(o->bound, s, 1);
    int met = two(o, "Add", gather(o, x[0], edges->source), edge_rows(o, s, edges, 0));
    if (shift)
        met = two(o, "Add", met, row(o, shift));
    return sum_at(o, edges, one(o, "Relu", met), o->bound->width[s + 1]);
}

/* Return the weights of relations (relations · in, out): the tensor, or sums of bases. */
static int relation_weights(struct sl_onnx *o, int s, int64_t in)
{
    const struct sl_step *step = &o->bound->program.step[s];
    const struct sl_tensor *w = sl_bound_tensor(o->bound, s, 0);
    if (!step->bases)
        return matrix(o, w);
    const int flat = sl_onnx_floats(o, 2, (int64_t[]){step->bases, in * w->cols}, w->data),
              sums = two(o, "MatMul", matrix(o, sl_bound_tensor(o->bound, s, 1)), flat);
    return two(o, "Reshape", sums,
               sl_onnx_integers(o, 2, (int64_t[]){step->relations * in, w->cols}));
}

/* Means over the neighbours of each relation, side by side, are multiplied by all weights. */
static int relations(struct sl_onnx *o, int s, const int *x)
{
    const struct sl_step *step = &o->bound->program.step[s];
    struct sl_onnx_edges *edges = plain_edges(o);
    const int64_t in = o->bound->width[step->of[0]], all = step->relations * in;
    const int many = integer(o, step->relations), rows = two(o, "Mul", vertices(o), many),
              place = two(o, "Add", two(o, "Mul", edges->target, many), SL_ONNX_EDGE_TYPE),
              sum = scatter(o, "add", 0.0, place, gather(o, x[0], edges->source), rows, in),
              count = scatter(o, "add", 0.0, place, weights_of(o, edges), rows, 1),
              mean = two(o, "Div", sum, divisor(o, count)),
              wide = two(o, "Reshape", mean, sl_onnx_integers(o, 2, (int64_t[]){-1, all}));
    return two(o, "MatMul", wide, relation_weights(o, s, in));
}

/* ---- All kinds ---- */

static int (*const steps[SL_STEP_KINDS])(struct sl_onnx *, int, const int *) = {
    [SL_STEP_UNIT_ROWS] = unit_rows,
    [SL_STEP_STANDARDIZE] = standardize,
    [SL_STEP_PRODUCT] = product,
    [SL_STEP_AGGREGATE] = aggregate,
    [SL_STEP_ADD] = add,
    [SL_STEP_LARGER] = larger,
    [SL_STEP_BIAS] = bias,
    [SL_STEP_RELU] = relu,
    [SL_STEP_ELU] = elu,
    [SL_STEP_ROW_NORM] = row_norm,
    [SL_STEP_BATCH_NORM] = batch_norm,
    [SL_STEP_GAT] = gat,
    [SL_STEP_GATV2] = gatv2,
    [SL_STEP_DOT_ATTENTION] = dot_attention,
    [SL_STEP_MEAN_HEADS] = mean_heads,
    [SL_STEP_GINE] = gine,
    [SL_STEP_RELATIONS] = relations,
};

void sl_onnx_step(struct sl_onnx *o, int s)
{
    const struct sl_step *step = &o->bound->program.step[s];
    int x[SL_STEP_VALUES] = {0};
    for (int v = 0; v < sl_step_values(step->kind); v++)
        x[v] = o->value[step->of[v]];
    o->value[s + 1] = steps[step->kind](o, s, x);
}
