/* The kernels that `starling bench kernels` measures: their calls, and the bytes they move. */
#include "bench/kernels.h"

#include "codelets/accumulate.h"
#include "codelets/attention_rows.h"
#include "codelets/bias.h"
#include "codelets/clip.h"
#include "codelets/features.h"
#include "codelets/gine.h"
#include "codelets/jump_max.h"
#include "codelets/links.h"
#include "codelets/max.h"
#include "codelets/norm.h"
#include "codelets/optimizer.h"
#include "codelets/own_reduce.h"
#include "codelets/pack_rows.h"
#include "codelets/spmm.h"
#include "codelets/value_loss.h"
#include "codelets/weighted_softmax.h"

#define FLOATS(x) sl_float_rows(x, k->ld)
#define HALVES(x) sl_rows_of_type((void *)(x), k->ld, SL_BFLOAT16)
#define SHAPE     k->rows, k->width

/* ---- What several kernels have in common ---- */

static void multiply(const struct sl_kernel_work *k, const struct sl_sparse *a, struct sl_rows h,
                     struct sl_rows z)
{
    sl_kernel_spmm(1, a, &h, k->width, false, NULL, NULL, &z);
}

static void multiply_features(const struct sl_kernel_work *k, bool transposed,
                              const struct sl_dropout *drop)
{
    sl_kernel_features(&(struct sl_features){.transposed = transposed,
                                             .x = &k->weighted,
                                             .nnz = k->entries,
                                             .drop = drop,
                                             .vertex = k->row.vertex,
                                             .width = k->width,
                                             .h = FLOATS(k->h),
                                             .z = FLOATS(k->results.z)});
}

static void add_neighbour(void *context, int64_t n, float weight, const float *neighbour,
                          float *first, float *second)
{
    (void)context, (void)second;
    for (int64_t j = 0; j < n; j++)
        first[j] += weight * neighbour[j];
}

static void maximum(const struct sl_kernel_work *k, float sign, struct sl_rows h, struct sl_rows z)
{
    const struct sl_numbering columns = {0};
    const struct sl_argmax argmax = {k->results.argmax, k->ld, sign};
    sl_kernel_max(&k->a, k->width, &h, false, &z, &columns, &argmax);
}

static void meet_pairs(const struct sl_kernel_work *k, const struct sl_pair *pair)
{
    sl_kernel_pair(pair, &k->a, &k->pair.vectors, &k->pair.source, &k->pair.target, false,
                   &k->results.state);
}

static void meet_pairs_again(const struct sl_kernel_work *k, const struct sl_pair *pair)
{
    sl_kernel_pair_again(pair, &k->a, &k->pair.vectors, &k->pair.source, &k->pair.target,
                         &k->pair.gradient, false, &k->results.back, false, NULL);
}

static void meet_pairs_back(const struct sl_kernel_work *k, const struct sl_pair *pair)
{
    sl_kernel_pair_back(pair, &k->at, &k->pair.vectors, &k->pair.gradient, &k->pair.target,
                        &k->pair.source, false, &k->results.back);
}

static void meet_edges(const struct sl_kernel_work *k, const struct sl_pair *pair)
{
    sl_kernel_pair(pair, &k->edges.a, &k->edges.vectors, &k->pair.source, &k->edges.target, false,
                   &k->results.edge_rows);
}

static void meet_edges_again(const struct sl_kernel_work *k, const struct sl_pair *pair)
{
    sl_kernel_pair_again(pair, &k->edges.a, &k->edges.vectors, &k->pair.source, &k->edges.target,
                         &k->edges.gradient, false, &k->results.edge_rows, false,
                         pair->products ? NULL : &k->results.pair_edge_back);
}

static void meet_edges_back(const struct sl_kernel_work *k, const struct sl_pair *pair)
{
    sl_kernel_pair_back(pair, &k->edges.at, &k->edges.vectors, &k->edges.gradient, &k->edges.target,
                        &k->pair.source, false, &k->results.back);
}

static void go_back(const struct sl_kernel_work *k, const struct sl_link_rows *rows,
                    enum sl_link_end end)
{
    sl_kernel_link_back(rows, end, k->rows, k->links.block,
                        (struct sl_floats_at){k->results.z, k->ld});
}

static struct sl_argmax chosen_of(const struct sl_kernel_work *k)
{
    return (struct sl_argmax){(int32_t *)k->row.chosen, k->ld, 1.0f};
}

static void finish(const struct sl_kernel_work *k, struct sl_epilogue epilogue, struct sl_rows sum,
                   struct sl_rows z)
{
    epilogue.scale = 1.0f;
    epilogue.vertex = k->row.vertex;
    sl_kernel_epilogue(SHAPE, &epilogue, &sum, &z);
}

/* Return a norm of rows, or of columns. The means of columns are the biases. */
static struct sl_norm norm_of(const struct sl_kernel_work *k, bool columns)
{
    return (struct sl_norm){.rows = k->rows,
                            .cols = k->width,
                            .epsilon = 1e-5f,
                            .h = FLOATS(k->h),
                            .mean = columns ? k->bias : NULL,
                            .variance = columns ? k->variance : NULL,
                            .weight = k->weight,
                            .bias = k->bias};
}

static void normalise(const struct sl_kernel_work *k, bool columns)
{
    const struct sl_norm norm = norm_of(k, columns);
    const struct sl_rows z = FLOATS(k->results.z);
    sl_kernel_norm(&norm, NULL, &z);
}

/* Run the gradient of a norm. The weight and the bias of columns are their own gradients here. */
static void normalise_back(const struct sl_kernel_work *k, bool columns)
{
    const struct sl_norm norm = norm_of(k, columns);
    sl_kernel_norm_back(&(struct sl_norm_back){.norm = &norm,
                                               .g = FLOATS(k->g),
                                               .d = columns ? k->weight : NULL,
                                               .ld = k->ld,
                                               .count = (double)k->rows,
                                               .y = FLOATS(k->results.z)});
}

static struct sl_softmax softmax_of(const struct sl_kernel_work *k)
{
    return (struct sl_softmax){SHAPE, 0.5f,  k->row.factor, k->row.target,
                               k->h,  k->ld, k->results.z,  k->ld};
}

static void lose(const struct sl_kernel_work *k, enum sl_value_loss_kind kind)
{
    const struct sl_value_loss loss = {.kind = kind,
                                       .rows = k->rows,
                                       .cols = k->width,
                                       .scale = 0.5f,
                                       .factor = k->row.factor,
                                       .target = k->row.values,
                                       .z = k->h,
                                       .ldz = k->ld,
                                       .g = k->results.z,
                                       .ldg = k->ld};
    sl_kernel_value_loss(&loss, k->results.sums, k->results.sums + 1);
}

static void step(const struct sl_kernel_work *k, enum sl_optimizer method)
{
    const struct sl_optimizer_step step = {.method = method,
                                           .rate = 0.01f,
                                           .decay = 5e-4f,
                                           .momentum = 0.9f,
                                           .beta1 = 0.9f,
                                           .beta2 = 0.999f,
                                           .epsilon = 1e-8f,
                                           .correction1 = 0.5f,
                                           .correction2 = 0.25f};
    sl_kernel_optimizer(&step, k->rows * k->ld, NULL, k->g, k->results.z, k->results.y,
                        k->results.v);
}

/* ---- The kernels ---- */

/* Define the call of a kernel, whose operands in k have names as rows. */
#define KERNEL(name, ...)                                                                  \
    static void name(const struct sl_kernel_work *k)                                       \
    {                                                                                      \
        const struct sl_rows h = FLOATS(k->h), g = FLOATS(k->g), z = FLOATS(k->results.z), \
                             half = HALVES(k->half_h), half_z = HALVES(k->results.half_z); \
        (void)h, (void)g, (void)z, (void)half, (void)half_z;                               \
        __VA_ARGS__;                                                                       \
    }
#define EPILOGUE(...) ((struct sl_epilogue){__VA_ARGS__})

/* clang-format off */
KERNEL(gather, multiply(k, &k->a, h, z))
KERNEL(gather_values, multiply(k, &k->weighted, h, z))
KERNEL(gather_bf16, multiply(k, &k->a, half, half_z))
KERNEL(features, multiply_features(k, false, &k->half))
KERNEL(features_back, multiply_features(k, true, &k->half))
KERNEL(scatter, multiply_features(k, true, NULL))
KERNEL(own_reduce,
    const struct sl_own_reducer own = {.of = {.combine = add_neighbour}};
    const struct sl_own_states states = {k->results.z, k->results.y, k->ld, k->ld};
    sl_kernel_own_combine(&own, &k->a, k->width, k->h, k->ld, false, &states))
KERNEL(max, maximum(k, 1.0f, h, z))
KERNEL(min, maximum(k, -1.0f, h, z))
KERNEL(max_bf16, maximum(k, 1.0f, half, half_z))
KERNEL(max_back,
    const struct sl_numbering rows = {0};
    const struct sl_argmax chosen = chosen_of(k);
    sl_kernel_max_back(&k->at, k->width, &g, &rows, &chosen, false, &z))
KERNEL(max_merge,
    const struct sl_argmax from = chosen_of(k), to = {k->results.argmax, k->ld, 1.0f};
    sl_kernel_max_merge(SHAPE, k->row.index, &h, &from, &z, &to))
KERNEL(jump_max, sl_kernel_jump_max(SHAPE, 1, k->row.factor, &h, &z, k->results.argmax, k->ld))
KERNEL(jump_max_back, sl_kernel_jump_max_back(SHAPE, 1, &g, (const int32_t *)k->row.chosen, k->ld, true, k->results.z, k->ld))
KERNEL(attention, sl_kernel_attention(&k->gat.attention, &k->a, &k->gat.projected, &k->gat.scores, NULL, false, &k->results.state))
KERNEL(attention_back,
    sl_kernel_attention_back(&k->gat.attention, &k->at, &k->gat.gradient, &k->gat.scores, &k->gat.projected, NULL, false, &k->results.back, false, NULL))
KERNEL(attention_edges, sl_kernel_attention(&k->gat.attention, &k->a, &k->gat.projected, &k->gat.scores, &k->gat.edge, false, &k->results.state))
KERNEL(attention_edges_back,
    sl_kernel_attention_back(&k->gat.attention, &k->at, &k->gat.gradient, &k->gat.scores, &k->gat.projected, &k->gat.edge, false, &k->results.back, false, &k->results.edge_back))
KERNEL(attention_gradient, sl_kernel_attention_gradient(&k->gat.attention, SHAPE, &g, &k->gat.closed, &k->results.back))
KERNEL(attention_own, sl_kernel_attention_own(&k->gat.attention, k->rows, &k->gat.gradient, &k->gat.closed, &k->results.back))
KERNEL(pair_sums, meet_pairs(k, &k->pair.sums))
KERNEL(pair_sums_again, meet_pairs_again(k, &k->pair.sums))
KERNEL(pair_sums_back, meet_pairs_back(k, &k->pair.sums))
KERNEL(pair_products, meet_pairs(k, &k->pair.products))
KERNEL(pair_products_again, meet_pairs_again(k, &k->pair.products))
KERNEL(pair_products_back, meet_pairs_back(k, &k->pair.products))
KERNEL(gine, sl_kernel_gine(&k->gine.a, k->width, &k->gine.x, &k->gine.edge, false, &(struct sl_floats_at){k->results.z, k->ld}))
KERNEL(gine_back,
    const struct sl_floats_at of = {(float *)k->g, k->ld}, back = {k->results.z, k->ld};
    sl_kernel_gine_back(&k->gine.at, k->width, &of, &k->gine.x, &k->gine.edge, false, &back, false, &k->results.edge))
KERNEL(relations,
    const struct sl_floats_at x = {(float *)k->h, k->ld}, out = {k->results.z, k->ld};
    sl_kernel_relations(&k->relations.a, &k->relations.of, &x, false, &out))
KERNEL(relations_back,
    const struct sl_floats_at back = {k->results.z, k->ld};
    const struct sl_relations_back of = {.g = {(float *)k->g, k->ld}, .x = {(float *)k->h, k->ld}, .back = &back, .weight_back = k->results.weight_back};
    sl_kernel_relations_back(&k->relations.at, &k->relations.of, &of))
KERNEL(link_scores, sl_kernel_link_scores(&k->links.dot, k->results.links))
KERNEL(link_scores_distmult, sl_kernel_link_scores(&k->links.distmult, k->results.links))
KERNEL(link_scores_mlp, sl_kernel_link_scores(&k->links.mlp, k->results.links))
KERNEL(link_back, go_back(k, &k->links.dot, SL_LINK_SOURCE))
KERNEL(link_back_targets, go_back(k, &k->links.dot, SL_LINK_TARGET))
KERNEL(link_back_distmult, go_back(k, &k->links.distmult, SL_LINK_SOURCE))
KERNEL(link_back_mlp, go_back(k, &k->links.mlp, SL_LINK_TARGET))
KERNEL(link_parameters, sl_kernel_link_parameters(&k->links.distmult, k->links.block, k->results.z))
KERNEL(link_parameters_mlp, sl_kernel_link_parameters(&k->links.mlp, k->links.block, k->results.z))
KERNEL(pair_edges_sums, meet_edges(k, &k->edges.sums))
KERNEL(pair_edges_sums_again, meet_edges_again(k, &k->edges.sums))
KERNEL(pair_edges_sums_back, meet_edges_back(k, &k->edges.sums))
KERNEL(pair_edges_products, meet_edges(k, &k->edges.products))
KERNEL(pair_edges_products_again, meet_edges_again(k, &k->edges.products))
KERNEL(pair_edges_products_back, meet_edges_back(k, &k->edges.products))
KERNEL(epilogue, finish(k, EPILOGUE(.before = k->row.factor, .bias = k->bias, .relu = true), h, z))
KERNEL(epilogue_dropout, finish(k, EPILOGUE(.bias = k->bias, .relu = true, .drop = k->half), h, z))
KERNEL(epilogue_dropout16, finish(k, EPILOGUE(.bias = k->bias, .relu = true, .drop = k->some), h, z))
KERNEL(epilogue_mask, finish(k, EPILOGUE(.mask = FLOATS(k->mask), .after = k->row.factor), g, z))
KERNEL(epilogue_elu, finish(k, EPILOGUE(.bias = k->bias, .elu = true), h, z))
KERNEL(bf16_narrow, finish(k, EPILOGUE(0), h, half_z))
KERNEL(bf16_widen, finish(k, EPILOGUE(0), half, z))
KERNEL(norm_row, normalise(k, false))
KERNEL(norm_batch, normalise(k, true))
KERNEL(norm_row_back, normalise_back(k, false))
KERNEL(norm_batch_back, normalise_back(k, true))
KERNEL(norm_sums, sl_kernel_norm_sums(SHAPE, k->row.factor, &h, k->results.sums, k->ld))
KERNEL(norm_gradient, const struct sl_norm norm = norm_of(k, true); sl_kernel_norm_gradient(&norm, &g, k->results.z, k->ld))
KERNEL(softmax, const struct sl_softmax s = softmax_of(k); sl_kernel_softmax_loss(&s, k->results.sums, k->results.sums + 1))
KERNEL(softmax_weighted,
    const struct sl_weighted_softmax weighted = {softmax_of(k), 0.1f, k->weight};
    sl_kernel_weighted_softmax(&weighted, k->results.sums, k->results.sums + 1))
KERNEL(accuracy, sl_kernel_accuracy(SHAPE, k->row.target, k->h, k->ld, k->results.sums, k->results.sums + 4))
KERNEL(loss_sigmoid, lose(k, SL_VALUE_SIGMOID))
KERNEL(loss_square, lose(k, SL_VALUE_SQUARE))
KERNEL(adam, step(k, SL_ADAM))
KERNEL(sgd, step(k, SL_SGD))
KERNEL(square_sum, k->results.sums[0] = sl_kernel_square_sum(SHAPE, k->h, k->ld))
KERNEL(pack, sl_kernel_pack_rows(SHAPE, k->row.index, &h, &z))
KERNEL(unpack, sl_kernel_unpack_rows(SHAPE, k->row.index, false, &h, &z))
KERNEL(unpack_add, sl_kernel_unpack_rows(SHAPE, k->row.index, true, &h, &z))
KERNEL(accumulate, sl_kernel_accumulate(SHAPE, k->h, k->ld, k->results.z, k->ld))
KERNEL(add_scaled, sl_kernel_add_scaled(SHAPE, 0.5f, k->row.factor, &half, &z))
KERNEL(bias_gradient, sl_kernel_bias_gradient(SHAPE, k->row.factor, &g, k->results.z))

/* ---- The table ---- */

#define Z       SL_RESULT_Z
#define HALF    SL_RESULT_HALF
#define ARGMAX  SL_RESULT_ARGMAX
#define A       SL_RESULT_A
#define B       SL_RESULT_B
#define LOSS    (SL_RESULT_Z | SL_RESULT_SUMS)
#define STATES  (SL_RESULT_Z | SL_RESULT_Y | SL_RESULT_V)
const struct sl_kernel_row sl_kernel_rows[] = {
    /* name, what                              kernel              bytes: element, entry, met, head, product; operations    results, tolerance, fuses */
    {"gather", "sums of neighbours",           gather,             {4, 4, 4, 0},   {0, 0, 1, 0},    Z, 1e-5, false},
    {"gather_values", "weighted neighbours",   gather_values,      {4, 8, 4, 0},   {0, 0, 2, 0},    Z, 1e-5, true},
    {"gather_bf16", "sums in bfloat16",        gather_bf16,        {2, 4, 2, 0},   {0, 0, 1, 0},    HALF, 0x1p-7, false},
    {"features", "sparse features, dropout",   features,           {4, 8, 2, 0},   {0, 0, 1, 0},    Z, 1e-5, true},
    {"features_back", "their transpose",       features_back,      {4, 8, 4, 0},   {0, 0, 1, 0},    Z, 1e-5, true},
    {"scatter", "the same without dropout",    scatter,            {8, 8, 8, 0},   {0, 0, 2, 0},    Z, 1e-5, true},
    {"own_reduce", "a program's sum",          own_reduce,         {8, 4, 4, 0},   {0, 0, 2, 0},    Z, 1e-5, false},
    {"max", "largest of neighbours",           max,                {8, 4, 4, 0},   {0, 0, 1, 0},    Z | ARGMAX, 0, false},
    {"min", "least of neighbours",             min,                {8, 4, 4, 0},   {0, 0, 1, 0},    Z | ARGMAX, 0, false},
    {"max_bf16", "largest, in bfloat16",       max_bf16,           {6, 4, 2, 0},   {0, 0, 1, 0},    HALF | ARGMAX, 0, false},
    {"max_back", "gradient of max",            max_back,           {4, 4, 8, 0},   {0, 0, 1, 0},    Z, 1e-5, false},
    {"max_merge", "two results of max",        max_merge,          {24, 0, 0, 0},  {1, 0, 0, 0},    Z | ARGMAX, 0, false},
    {"attention", "softmax of neighbours",     attention,          {8, 4, 4, 4},   {0, 0, 4, 8},    SL_RESULT_STATE, 1e-4, true},
    {"attention_back", "its gradient",         attention_back,     {8, 4, 4, 12},  {2, 0, 4, 8},    SL_RESULT_BACK, 1e-4, true},
    {"attention_edges", "with features of edges", attention_edges, {8, 36, 4, 4},  {0, 0, 4, 24},   SL_RESULT_STATE, 1e-4, true},
    {"attention_edges_back", "its gradient",   attention_edges_back, {8, 36, 4, 12}, {0, 0, 4, 42}, SL_RESULT_BACK | SL_RESULT_EDGE, 1e-4, true},
    {"attention_gradient", "gradient of rows", attention_gradient, {12, 0, 0, 0},  {2, 0, 0, 0},    SL_RESULT_BACK, 1e-5, true},
    {"attention_own", "of a row's own score",  attention_own,      {8, 0, 0, 0},   {2, 0, 0, 0},    SL_RESULT_BACK, 1e-5, true},
    {"pair_sums", "attention of GATv2",        pair_sums,          {8, 4, 4, 0},   {0, 0, 7, 8},    SL_RESULT_STATE, 1e-4, true},
    {"pair_sums_again", "gradient of targets", pair_sums_again,    {12, 4, 4, 8},  {0, 0, 9, 8},    SL_RESULT_PAIR, 1e-4, true},
    {"pair_sums_back", "gradient of sources",  pair_sums_back,     {12, 4, 8, 8},  {0, 0, 11, 8},   SL_RESULT_PAIR, 1e-4, true},
    {"pair_products", "of transformers",       pair_products,      {8, 4, 8, 0},   {0, 0, 4, 8},    SL_RESULT_STATE, 1e-4, true},
    {"pair_products_again", "of targets",      pair_products_again, {12, 4, 8, 8}, {0, 0, 6, 8},    SL_RESULT_PAIR, 1e-4, true},
    {"pair_products_back", "of sources",       pair_products_back, {16, 4, 8, 8},  {0, 0, 8, 8},    SL_RESULT_PAIR, 1e-4, true},
    {"gine", "messages of GINE",               gine,               {4, 36, 4, 0},  {0, 0, 18, 0},   Z, 1e-5, true},
    {"gine_back", "its gradients",             gine_back,          {8, 36, 4, 0},  {0, 0, 34, 0},   Z | SL_RESULT_GINE_EDGE, 1e-3, true},
    {"relations", "rows by 4 relations",       relations,          {4, 12, 4, 0},  {0, 0, 2, 0, 2}, Z, 1e-4, true},
    {"relations_back", "their gradients",      relations_back,     {8, 12, 4, 0},  {0, 0, 2, 0, 4}, Z | SL_RESULT_WEIGHT, 1e-3, true},
    {"link_scores", "products of ends",        link_scores,        {4, 24, 4, 0},  {0, 0, 2, 0},    SL_RESULT_LINKS, 1e-4, true},
    {"link_scores_distmult", "with weights",   link_scores_distmult, {4, 24, 4, 0}, {0, 0, 3, 0},   SL_RESULT_LINKS, 1e-4, true},
    {"link_scores_mlp", "relu of sums",        link_scores_mlp,    {2, 24, 2, 0},  {0, 0, 2, 0},    SL_RESULT_LINKS, 1e-4, true},
    {"link_back", "gradient of sources",       link_back,          {8, 20, 4, 0},  {0, 0, 2, 0},    Z, 1e-5, true},
    {"link_back_targets", "of targets",        link_back_targets,  {8, 24, 4, 0},  {0, 0, 2, 0},    Z, 1e-5, true},
    {"link_back_distmult", "with weights",     link_back_distmult, {8, 20, 4, 0},  {0, 0, 3, 0},    Z, 1e-5, true},
    {"link_back_mlp", "relu of sums, targets", link_back_mlp,      {6, 24, 2, 0},  {0, 0, 2, 0},    Z, 1e-5, true},
    {"link_parameters", "gradient of weights", link_parameters,    {4, 20, 4, 0},  {0, 0, 3, 0},    Z, 1e-3, true},
    {"link_parameters_mlp", "relu of sums",    link_parameters_mlp, {2, 20, 2, 0}, {0, 0, 2, 0},    Z, 1e-3, true},
    {"pair_edges_sums", "GATv2, 8 features",   pair_edges_sums,    {8, 36, 4, 0},  {0, 0, 23, 8},   B, 1e-4, true},
    {"pair_edges_sums_again", "of targets, edges", pair_edges_sums_again, {12, 36, 4, 8}, {0, 0, 41, 8}, A | SL_RESULT_EDGES, 1e-4, true},
    {"pair_edges_sums_back", "of sources",     pair_edges_sums_back, {12, 36, 8, 8}, {0, 0, 27, 8},  SL_RESULT_PAIR, 1e-4, true},
    {"pair_edges_products", "transformers",    pair_edges_products, {8, 36, 8, 0}, {0, 0, 4, 40},    B, 1e-4, true},
    {"pair_edges_products_again", "of targets", pair_edges_products_again, {12, 36, 8, 8}, {0, 0, 6, 56}, A, 1e-4, true},
    {"pair_edges_products_back", "of sources", pair_edges_products_back, {16, 36, 8, 72}, {0, 0, 8, 40}, SL_RESULT_PAIR, 1e-4, true},
    {"epilogue", "scale, bias, relu",          epilogue,           {8, 0, 0, 0},   {3, 0, 0, 0},    Z, 1e-6, true},
    {"epilogue_dropout", "bias, relu, 1/2",    epilogue_dropout,   {8, 0, 0, 0},   {3, 0, 0, 0},    Z, 1e-6, false},
    {"epilogue_dropout16", "bias, relu, 0.3",  epilogue_dropout16, {8, 0, 0, 0},   {3, 0, 0, 0},    Z, 1e-6, false},
    {"epilogue_mask", "mask, scale",           epilogue_mask,      {12, 0, 0, 0},  {1, 0, 0, 0},    Z, 1e-6, false},
    {"epilogue_elu", "bias, elu",              epilogue_elu,       {8, 0, 0, 0},   {3, 0, 0, 0},    Z, 1e-5, true},
    {"bf16_narrow", "to bfloat16",             bf16_narrow,        {6, 0, 0, 0},   {0, 0, 0, 0},    HALF, 0, false},
    {"bf16_widen", "from bfloat16",            bf16_widen,         {6, 0, 0, 0},   {0, 0, 0, 0},    Z, 0, false},
    {"norm_row", "norm of rows",               norm_row,           {8, 0, 0, 0},   {9, 0, 0, 0},    Z, 1e-5, true},
    {"norm_batch", "norm of columns",          norm_batch,         {8, 0, 0, 0},   {4, 0, 0, 0},    Z, 1e-5, true},
    {"norm_row_back", "gradient of norm_row",  norm_row_back,      {12, 0, 0, 0},  {16, 0, 0, 0},   Z, 1e-5, true},
    {"norm_batch_back", "of norm_batch",       norm_batch_back,    {12, 0, 0, 0},  {8, 0, 0, 0},    Z, 1e-5, true},
    {"norm_sums", "statistics of columns",     norm_sums,          {4, 0, 0, 0},   {5, 0, 0, 0},    SL_RESULT_SUMS, 1e-6, true},
    {"norm_gradient", "of weight and bias",    norm_gradient,      {8, 0, 0, 0},   {5, 0, 0, 0},    Z, 1e-4, true},
    {"softmax", "cross-entropy, gradient",     softmax,            {8, 0, 0, 0},   {6, 0, 0, 0},    LOSS, 1e-5, true},
    {"softmax_weighted", "class weights",      softmax_weighted,   {8, 0, 0, 0},   {9, 0, 0, 0},    LOSS, 1e-5, true},
    {"accuracy", "cross-entropy, right rows",  accuracy,           {4, 0, 0, 0},   {5, 0, 0, 0},    SL_RESULT_SUMS, 1e-5, true},
    {"loss_sigmoid", "sigmoid, gradient",      loss_sigmoid,       {12, 0, 0, 0},  {10, 0, 0, 0},   LOSS, 1e-5, true},
    {"loss_square", "squares, gradient",       loss_square,        {12, 0, 0, 0},  {5, 0, 0, 0},    LOSS, 1e-5, true},
    {"adam", "step of Adam",                   adam,               {28, 0, 0, 0},  {13, 0, 0, 0},   STATES, 1e-5, true},
    {"sgd", "step of SGD, momentum",           sgd,                {20, 0, 0, 0},  {6, 0, 0, 0},    Z | SL_RESULT_Y, 1e-5, true},
    {"square_sum", "norm of a gradient",       square_sum,         {4, 0, 0, 0},   {2, 0, 0, 0},    SL_RESULT_SUMS, 1e-9, false},
    {"pack", "rows of a list",                 pack,               {8, 0, 0, 0},   {0, 0, 0, 0},    Z, 0, false},
    {"unpack", "rows into places of a list",   unpack,             {8, 0, 0, 0},   {0, 0, 0, 0},    Z, 0, false},
    {"unpack_add", "rows added to them",       unpack_add,         {12, 0, 0, 0},  {1, 0, 0, 0},    Z, 0, false},
    {"jump_max", "largest of several layers",  jump_max,           {20, 0, 0, 0},  {1, 0, 0, 0},    Z | ARGMAX, 0, false},
    {"jump_max_back", "gradient of one layer", jump_max_back,      {16, 0, 0, 0},  {1, 0, 0, 0},    Z, 0, false},
    {"accumulate", "sum of two matrices",      accumulate,         {12, 0, 0, 0},  {1, 0, 0, 0},    Z, 0, false},
    {"add_scaled", "plus scaled bfloat16",     add_scaled,         {10, 0, 0, 0},  {2, 0, 0, 0},    Z, 1e-6, true},
    {"bias_gradient", "sums of columns",       bias_gradient,      {4, 0, 0, 0},   {2, 0, 0, 0},    Z, 1e-4, true},
    {0},
};
/* clang-format on */
