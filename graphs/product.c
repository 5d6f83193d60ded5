/* clang-format off */
/* Products with weights, which all ranks have. Rank (g, c) has column tile c of the rows of group
 * g.
 *
 *     forward    Y(c) = Σ_k H(k)·W(k, c)       H(k) comes here, or rank k sends the k-th term
 *     backward   dW(k, j) = H(k)ᵀ·V(j)         V(j) comes to rank k, or H(k) to rank j
 *                Y(c) = Σ_j V(j)·W(c, j)ᵀ      V(j) comes here, or the terms do
 *
 * For every row, a rank receives (C - 1) / C of the words of the input or of the output: the fewer
 * bytes. Forward, H travels if in · bytes of an element ≤ 4 · out. Backward, V travels if V has at
 * most as many bytes as H: once for both products. Sparse features do not travel. dW(k, j) is
 * summed over row tiles like the gradients of whole weights, and put together on rank 0.
 *
 * Tiles from each of the other ranks of the group are a stage, round from the own rank. */
/* clang-format on */
#include "graphs/product.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
#include "codelets/bias.h"
#include "codelets/features.h"
#include "codelets/gemm.h"
#include "codelets/init.h"
#include "codelets/paste.h"
#include "core/error.h"
#include "core/message.h"
#include "core/temporary.h"
#include "graphs/collective.h"
#include "graphs/columns.h"

struct product {
    struct sl_runtime *rt;
    struct sl_network *net;
    const struct sl_distribution *d; /* distribution of the rows */
    struct sl_tile *scales;          /* row scales */
    struct sl_layer *layer;
    int weight;
    const struct sl_matrix *h;        /* dense input, or NULL */
    const struct sl_sparse_matrix *x; /* sparse features, where `h` is NULL */
    struct sl_dropout drop;           /* dropout of the sparse features */
    bool keeps;                       /* a gradient tile keeps its further rows */
    bool accumulates;                 /* gradients are added to their tiles */
    int c;
    struct sl_tile_run rows;
    int64_t tags;
    struct sl_tile *sum;   // (rows): temporary sums, float32
    struct sl_tile **sums; // (rows): addresses of the sums
    int summed;            /* number of open sums */
    struct sl_tile *arrived;
    struct sl_tile **asked;
    int *from;
};

static void open_product(struct product *p, struct sl_network *net, struct sl_layer *layer,
                         const struct sl_product_input *h, int row_order)
{
    *p = (struct product){
        .rt = net->rt,
        .net = net,
        .d = &net->graph->distribution[row_order],
        .scales = net->graph->scales[row_order],
        .layer = layer,
        .weight = h->weight,
        .h = h->dense,
        .x = h->sparse,
        .drop = h->drop,
        .c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank),
        .rows = sl_grid_group(net->graph->distribution, net->rt->rank),
        .tags = sl_network_tags(net),
    };
    const size_t count = (size_t)(p->rows.to - p->rows.from) + 1;
    sl_temporaries_turn(p->d->temporaries);
    p->drop.column0 = (uint32_t)layer->columns.in_cut[p->c];
    p->sum = calloc(count, sizeof *p->sum);
    p->sums = calloc(count, sizeof(struct sl_tile *));
    p->arrived = calloc(count, sizeof *p->arrived);
    p->asked = calloc(count, sizeof(struct sl_tile *));
    p->from = calloc(count, sizeof *p->from);
    if (!p->sum || !p->sums || !p->arrived || !p->asked || !p->from)
        sl_fatal("no memory for the lists of %zu tiles", count);
}

static void close_product(struct product *p)
{
    free(p->sum);
    free(p->sums);
    free(p->arrived);
    free(p->asked);
    free(p->from);
}

static int64_t width_of(const int64_t *cut, int j)
{
    return cut[j + 1] - cut[j];
}

static int64_t rows_of(const struct product *p, int i)
{
    return p->d->row_cut[i + 1] - p->d->row_cut[i];
}

static struct sl_sparse_tile *features(const struct product *p, int i)
{
    return sl_sparse_matrix_tile(p->x, i, p->c);
}

/* Return the first row, in the parameters, of the weights for column tile k of H. */
static int64_t weight_row(const struct product *p, int k)
{
    return p->weight * p->layer->in + p->layer->columns.in_cut[k];
}

/* ---- Terms ---- */

/* A product of row tile i with block W(k, j) of the weights, transposed on the way back. */
struct term {
    bool back;
    int i, k, j;
};

/* Submit OUT = [OUT +] A·W(k, j), or, going back, A·W(k, j)ᵀ. */
static void submit_weights(struct product *p, const struct term *t, struct sl_tile *a, bool add,
                           struct sl_tile *out, const struct sl_epilogue_tiles *epilogue)
{
    const int64_t in = width_of(p->layer->columns.in_cut, t->k),
                  out_width = width_of(p->layer->columns.product_cut, t->j);
    sl_submit_gemm(p->rt, &(struct sl_gemm_tiles){
                              .transpose_b = t->back,
                              .m = rows_of(p, t->i),
                              .n = t->back ? in : out_width,
                              .k = t->back ? out_width : in,
                              .a = a,
                              .b = sl_layer_weights(p->layer),
                              .b_row = weight_row(p, t->k),
                              .b_col = p->layer->columns.product_cut[t->j],
                              .accumulate = add,
                              .epilogue = epilogue,
                              .c = out,
                          });
}

/* Submit OUT = [OUT +] H(i, k)·W(k, j), with H dense or sparse. */
static void submit_term(struct product *p, int i, int k, int j, bool add, struct sl_tile *out,
                        const struct sl_epilogue_tiles *epilogue)
{
    if (p->h)
        submit_weights(p, &(struct term){false, i, k, j}, sl_matrix_tile(p->h, i, k), add, out,
                       epilogue);
    else if (features(p, i)->shape.nnz)
        sl_submit_features(p->rt, &(struct sl_features_tiles){
                                      .accumulate = add,
                                      .x = features(p, i),
                                      .drop = &p->drop,
                                      .scales = &p->scales[i],
                                      .h = sl_layer_weights(p->layer),
                                      .h_row = weight_row(p, k),
                                      .h_col = p->layer->columns.product_cut[j],
                                      .z = out,
                                  });
    else if (!add)
        sl_submit_fill(p->rt, 0.0f, out);
}

/* Submit OUT = [OUT +] V(i, j)·W(k, j)ᵀ. */
static void submit_back_term(struct product *p, const struct sl_matrix *v, int i, int k, int j,
                             bool add, struct sl_tile *out,
                             const struct sl_epilogue_tiles *epilogue)
{
    submit_weights(p, &(struct term){true, i, k, j}, sl_matrix_tile(v, i, j), add, out, epilogue);
}

/* ---- Sums over the ranks of a group ---- */

static void open_sums(struct product *p, int64_t width)
{
    for (int i = p->rows.from; i < p->rows.to; i++) {
        p->sums[i - p->rows.from] = &p->sum[i - p->rows.from];
        sl_temporary_open(p->rt, &p->sum[i - p->rows.from], rows_of(p, i), width);
        sl_temporaries_serve(p->d->temporaries, &p->sum[i - p->rows.from]);
    }
    p->summed = p->rows.to - p->rows.from;
}

static struct sl_tile *sum_of(struct product *p, int i)
{
    return &p->sum[i - p->rows.from];
}

static void finish_sums(struct product *p, const struct sl_matrix *added,
                        const struct sl_row_epilogue *epilogue, struct sl_matrix *y)
{
    for (int i = p->rows.from; i < p->rows.to; i++) {
        const struct sl_epilogue_tiles own = sl_row_epilogue_at(epilogue, i, y, p->c);
        if (added)
            sl_submit_accumulate(p->rt, sl_matrix_tile(added, i, p->c), sum_of(p, i));
        sl_submit_epilogue(p->rt, &own, sum_of(p, i), sl_matrix_tile(y, i, p->c));
        sl_temporaries_close(p->d->temporaries, sum_of(p, i));
    }
}

/* Open rank `rank`'s term of column tile `column` of the result. */
static void open_term(struct product *p, int i, const int64_t *cut, int column, int rank,
                      struct sl_tile *tile)
{
    sl_temporary_open_shared(tile, rows_of(p, i), width_of(cut, column), sizeof(float), rank,
                             p->tags + (int64_t)i * p->rt->ranks + rank);
    sl_temporaries_serve(p->d->temporaries, tile);
}

/* Reduce-scatter terms of H·W (`v` NULL) or of V·Wᵀ inside the group. */
static void exchange_terms(struct product *p, const struct sl_matrix *v, const int64_t *cut)
{
    for (int hop = p->d->grid.columns; hop > 0; hop--) {
        const int to = sl_columns_after(p->rt, p->d, hop);
        for (int i = p->rows.from; i < p->rows.to; i++) {
            struct sl_tile sent, *term = to == p->c ? sum_of(p, i) : &sent;
            if (to != p->c)
                open_term(p, i, cut, to, p->rt->rank, &sent);
            if (v)
                submit_back_term(p, v, i, to, p->c, false, term, NULL);
            else
                submit_term(p, i, p->c, to, false, term, NULL);
            if (to == p->c)
                continue;
            sl_stage_send(p->rt, &sent, sl_columns_rank(p->rt, p->d, to));
            sl_temporaries_close(p->d->temporaries, &sent);
        }
    }
    for (int hop = 1; hop < p->d->grid.columns; hop++) {
        const int rank = sl_columns_rank(p->rt, p->d, sl_columns_after(p->rt, p->d, hop));
        struct sl_stage stage = {.tiles = p->asked, .sums = true};
        for (int i = p->rows.from; i < p->rows.to; i++) {
            stage.tiles[stage.count] = &p->arrived[stage.count];
            open_term(p, i, cut, p->c, rank, stage.tiles[stage.count++]);
        }
        sl_add_stage(p->rt, &stage, p->sums);
        for (int t = 0; t < stage.count; t++)
            sl_temporaries_close(p->d->temporaries, stage.tiles[t]);
    }
}

/* Call `work` on each column of a matrix while this rank has it, the own column first. */
static void each_column(struct product *p, const struct sl_matrix *matrix,
                        void (*work)(struct product *p, int column, void *context), void *context)
{
    for (int hop = 0; hop < p->d->grid.columns; hop++) {
        const int column = sl_columns_after(p->rt, p->d, hop);
        const struct sl_stage stage =
            sl_columns_stage(p->rt, p->d, matrix, column, p->asked, p->from);
        if (hop > 0)
            sl_stage_ask(p->rt, &stage, p->summed, p->sums);
        sl_columns_send(p->rt, p->d, &stage);
        work(p, column, context);
        if (hop > 0)
            sl_stage_drop(p->rt, &stage);
    }
}

/* ---- Forward ---- */

static bool is_sparse(const struct sl_network *net, const struct sl_layer *layer, int weight)
{
    return layer->index == 0 && sl_network_input(net, layer, weight)->sparse;
}

bool sl_product_sends_input(const struct sl_network *net, const struct sl_layer *layer, int weight)
{
    return !is_sparse(net, layer, weight) &&
           layer->in * (int64_t)sl_type_size(net->graph->type) <= layer->columns.product * 4;
}

static void add_column(struct product *p, int k, void *context)
{
    (void)context;
    for (int i = p->rows.from; i < p->rows.to; i++)
        submit_term(p, i, k, p->c, k != p->c, sum_of(p, i), NULL);
}

/* Multiply whole rows, without separate sums where possible. */
static void multiply_whole(struct product *p, const struct sl_matrix *added,
                           const struct sl_row_epilogue *epilogue, struct sl_matrix *y)
{
    const bool at_once = p->h && !added;
    const struct sl_matrix *sums = added ? added : y;
    for (int i = p->rows.from; i < p->rows.to; i++) {
        struct sl_tile *out = sl_matrix_tile(y, i, 0), *sum = sl_matrix_tile(sums, i, 0);
        const struct sl_epilogue_tiles own =
            epilogue ? sl_row_epilogue_at(epilogue, i, y, 0) : SL_EPILOGUE_NONE;
        if (added)
            submit_term(p, i, 0, 0, true, sum, NULL);
        else
            submit_term(p, i, 0, 0, false, sum, at_once && epilogue ? &own : NULL);
        if (!at_once && (epilogue || sum != out))
            sl_submit_epilogue(p->rt, epilogue ? &own : NULL, sum, out);
    }
}

void sl_product(struct sl_network *net, struct sl_layer *layer, const struct sl_product_input *h,
                const struct sl_matrix *added, const struct sl_epilogue_tiles *epilogue,
                struct sl_matrix *y)
{
    struct product p;
    open_product(&p, net, layer, h, y->row_order);
    const struct sl_row_epilogue rows = {epilogue ? *epilogue : SL_EPILOGUE_NONE, p.scales, NULL};
    if (p.d->grid.columns == 1) {
        multiply_whole(&p, added, epilogue ? &rows : NULL, y);
    } else {
        open_sums(&p, width_of(layer->columns.product_cut, p.c));
        if (p.h && sl_product_sends_input(net, layer, h->weight))
            each_column(&p, p.h, add_column, NULL);
        else
            exchange_terms(&p, NULL, layer->columns.product_cut);
        finish_sums(&p, added, &rows, y);
    }
    close_product(&p);
}

/* ---- Backward ---- */

/* V is the aggregation of G where the product comes before an aggregation, else G. */
int64_t sl_product_gradient_size(const struct sl_network *net, const struct sl_layer *layer,
                                 int weight)
{
    const bool aggregated = !layer->kind->alone && layer->order == SL_GEMM_FIRST &&
                            weight == sl_layer_weight_count(layer) - 1;
    return (int64_t)sl_type_size(aggregated ? net->graph->type : layer->output.type);
}

bool sl_product_sends_gradient(const struct sl_network *net, const struct sl_layer *layer,
                               int weight)
{
    return is_sparse(net, layer, weight) ||
           layer->columns.product * sl_product_gradient_size(net, layer, weight) <=
               layer->in * (int64_t)sl_type_size(net->graph->type);
}

static struct sl_tile *gradient_block(struct product *p, int i, int block, int column)
{
    const int blocks = sl_product_blocks(p->net, p->layer);
    return sl_matrix_tile(&p->layer->back.gradients, i * blocks + block, column);
}

struct sl_tile *sl_product_further(const struct sl_network *net, const struct sl_layer *layer,
                                   int i)
{
    const int blocks = sl_product_blocks(net, layer);
    return sl_matrix_tile(&layer->back.gradients, i * blocks + blocks - 1,
                          sl_grid_column(&net->graph->distribution->grid, net->rt->rank));
}

/* Submit the part of row tile i of dW(k, j). */
static void submit_gradient(struct product *p, const struct sl_matrix *v, int i, int k, int j)
{
    struct sl_tile *part = sl_matrix_tile(v, i, j);
    struct sl_tile *gradient = gradient_block(p, i, p->weight * p->d->grid.columns + k, j);
    if (p->h)
        sl_submit_gemm(p->rt, &(struct sl_gemm_tiles){
                                  .transpose_a = true,
                                  .m = width_of(p->layer->columns.in_cut, k),
                                  .n = width_of(p->layer->columns.product_cut, j),
                                  .k = part->rows,
                                  .keeps = p->keeps,
                                  .accumulate = p->accumulates,
                                  .a = sl_matrix_tile(p->h, i, k),
                                  .b = part,
                                  .c = gradient,
                              });
    else if (features(p, i)->shape.nnz)
        sl_submit_features(p->rt, &(struct sl_features_tiles){
                                      .transposed = true,
                                      .keeps = p->keeps,
                                      .x = features(p, i),
                                      .drop = &p->drop,
                                      .scales = &p->scales[i],
                                      .h = part,
                                      .z = gradient,
                                  });
    else
        sl_submit_fill_rows(p->rt, 0.0f,
                            gradient->rows - (p->keeps ? sl_layer_further_rows(p->layer) : 0),
                            gradient);
}

struct back {
    const struct sl_matrix *v;
    bool sums; /* terms of Y are summed, too */
};

static void use_v(struct product *p, int j, void *context)
{
    const struct back *back = context;
    for (int i = p->rows.from; i < p->rows.to; i++) {
        submit_gradient(p, back->v, i, p->c, j);
        if (back->sums)
            submit_back_term(p, back->v, i, p->c, j, j != p->c, sum_of(p, i), NULL);
    }
}

static void use_h(struct product *p, int k, void *context)
{
    const struct back *back = context;
    for (int i = p->rows.from; i < p->rows.to; i++)
        submit_gradient(p, back->v, i, k, p->c);
}

/* Add all rows of G to the gradient of the bias. Rows of G may be in another order than rows of H.
 */
static void differentiate_bias(struct product *p, const struct sl_matrix *g)
{
    struct sl_tile *scales = p->net->graph->scales[g->row_order];
    const enum sl_row_scale undo =
        p->layer->back.gradient_factor == SL_ROW_LEFT            ? SL_ROW_INVERSE_LEFT
        : p->layer->back.gradient_factor == SL_ROW_INVERSE_RIGHT ? SL_ROW_RIGHT
                                                                 : SL_ROW_NONE;
    const int last = sl_product_blocks(p->net, p->layer) - 1;
    for (int i = p->rows.from; p->layer->bias && i < p->rows.to; i++) {
        struct sl_tile *gradient = gradient_block(p, i, last, p->c);
        sl_submit_bias_gradient(p->rt, &scales[i], undo, sl_matrix_tile(g, i, p->c),
                                p->layer->model->shape.bias_cancels, gradient->rows - 1, gradient);
    }
}

static void back_whole(struct product *p, const struct sl_matrix *v, const struct sl_matrix *added,
                       const struct sl_row_epilogue *epilogue, struct sl_matrix *y)
{
    for (int i = p->rows.from; y && i < p->rows.to; i++) {
        struct sl_tile *out = sl_matrix_tile(y, i, 0);
        const struct sl_epilogue_tiles own =
            epilogue ? sl_row_epilogue_at(epilogue, i, y, 0) : SL_EPILOGUE_NONE;
        if (!added) {
            submit_back_term(p, v, i, 0, 0, false, out, epilogue ? &own : NULL);
            continue;
        }
        struct sl_tile *sum = sl_matrix_tile(added, i, 0);
        submit_back_term(p, v, i, 0, 0, true, sum, NULL);
        if (epilogue || sum != out)
            sl_submit_epilogue(p->rt, epilogue ? &own : NULL, sum, out);
    }
}

static void back_columns(struct product *p, const struct sl_matrix *v,
                         const struct sl_matrix *added, const struct sl_row_epilogue *epilogue,
                         struct sl_matrix *y)
{
    struct back back = {v, y != NULL};
    const bool h_comes = !sl_product_sends_gradient(p->net, p->layer, p->weight);
    if (h_comes)
        each_column(p, p->h, use_h, &back);
    if (y) /* opened only now: each following stage adds to these sums */
        open_sums(p, width_of(p->layer->columns.in_cut, p->c));
    if (!h_comes)
        each_column(p, v, use_v, &back);
    else if (y)
        exchange_terms(p, v, p->layer->columns.in_cut);
    if (y)
        finish_sums(p, added, epilogue, y);
}

void sl_product_back(struct sl_network *net, struct sl_layer *layer,
                     const struct sl_product_gradient *gradient)
{
    struct product p;
    open_product(&p, net, layer, gradient->h, gradient->v->row_order);
    p.accumulates = gradient->accumulate;
    p.keeps = gradient->after_bias && sl_layer_further_rows(layer) && p.d->grid.columns == 1;
    const struct sl_row_epilogue rows = {
        gradient->epilogue ? *gradient->epilogue : SL_EPILOGUE_NONE, p.scales, gradient->mask};
    const bool whole = p.d->grid.columns == 1;
    for (int i = p.rows.from; whole && i < p.rows.to; i++)
        submit_gradient(&p, gradient->v, i, 0, 0);
    if (gradient->g)
        differentiate_bias(&p, gradient->g);
    if (whole)
        back_whole(&p, gradient->v, gradient->added, gradient->epilogue ? &rows : NULL,
                   gradient->y);
    else
        back_columns(&p, gradient->v, gradient->added, &rows, gradient->y);
    close_product(&p);
}

/* ---- Gradients ---- */

int sl_product_blocks(const struct sl_network *net, const struct sl_layer *layer)
{
    const int columns = net->graph->distribution->grid.columns;
    if (sl_layer_shape_whole(&layer->model->shape))
        return sl_model_learns(layer->model);
    return sl_layer_weight_count(layer) * columns +
           (columns > 1 && sl_layer_further_rows(layer) > 0);
}

struct gradient_owner {
    const struct sl_network *net;
    int blocks, weights;
    const struct sl_layer *layer; /* block (k, j) of a weight is on rank k where V travels, else on
                                     rank j */
};

static int own_gradient(const void *context, int block, int j)
{
    const struct gradient_owner *o = context;
    const int columns = o->net->graph->distribution->grid.columns, b = block % o->blocks;
    const bool by_rows =
        b < o->weights * columns && sl_product_sends_gradient(o->net, o->layer, b / columns);
    return sl_distribution_dense_owner(o->net->graph->distribution, block / o->blocks,
                                       by_rows ? b % columns : j);
}

/* Return the first row, and the number of rows, that block `b` has of the parameters. */
static int64_t block_row(const struct sl_network *net, const struct sl_layer *layer, int b)
{
    const int columns = net->graph->distribution->grid.columns;
    return b / columns * layer->in + layer->columns.in_cut[b % columns];
}

static int64_t block_rows(const struct sl_network *net, const struct sl_layer *layer, int b)
{
    const int columns = net->graph->distribution->grid.columns;
    const bool last = b == sl_product_blocks(net, layer) - 1;
    if (sl_layer_shape_whole(&layer->model->shape))
        return sl_layer_shape_rows(&layer->model->shape);
    const int64_t further = sl_layer_further_rows(layer);
    if (b / columns == sl_layer_weight_count(layer))
        return further;
    return width_of(layer->columns.in_cut, b % columns) + (columns == 1 && last ? further : 0);
}

int sl_product_create_gradients(struct sl_network *net, struct sl_layer *layer)
{
    const int tiles = net->graph->distribution->tiles,
              columns = net->graph->distribution->grid.columns;
    struct gradient_owner owner = {net, sl_product_blocks(net, layer), sl_layer_weight_count(layer),
                                   layer};
    if (!owner.blocks)
        return 0;
    int64_t *cut = calloc((size_t)(tiles * owner.blocks) + 1, sizeof *cut);
    if (!cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for the gradients' cuts");
    for (int b = 0; b < tiles * owner.blocks; b++)
        cut[b + 1] = cut[b] + block_rows(net, layer, b % owner.blocks);
    const struct sl_cuts cuts = {tiles * owner.blocks,       columns,      cut,
                                 layer->columns.product_cut, own_gradient, &owner};
    int code = sl_matrix_describe(net->rt, &layer->back.gradients, SL_FLOAT32, &cuts);
    if (!code && (owner.blocks * columns > 1 || layer->back.gradients.tiles[0].owner != 0))
        code = sl_tile_create(net->rt, &layer->back.gradient,
                              sl_layer_shape_whole(&layer->model->shape)
                                  ? sl_layer_shape_rows(&layer->model->shape)
                                  : owner.weights * layer->in + sl_layer_further_rows(layer),
                              layer->columns.product, sizeof(float), 0);
    free(cut);
    return code;
}

struct sl_tile *sl_product_sum_gradients(struct sl_network *net, struct sl_layer *layer)
{
    const int blocks = sl_product_blocks(net, layer),
              columns = net->graph->distribution->grid.columns;
    for (int b = 0; b < blocks; b++)
        for (int j = 0; j < columns; j++) {
            struct sl_tile *block = sl_matrix_tile(&layer->back.gradients, b, j);
            sl_reduce(net->rt, block, net->graph->distribution->tiles, blocks * columns,
                      sl_submit_accumulate);
            if (!layer->back.gradient.rows)
                return block;
            sl_tile_send(net->rt, block, block->owner, 0);
            sl_submit_paste(net->rt, &(struct sl_paste_tiles){
                                         .x = block,
                                         .y = &layer->back.gradient,
                                         .y_row = block_row(net, layer, b),
                                         .y_col = layer->columns.product_cut[j],
                                     });
            sl_tile_drop(net->rt, block);
        }
    return &layer->back.gradient;
}
