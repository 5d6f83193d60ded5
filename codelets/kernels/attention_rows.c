/* The parts of graph attention in which rows do not meet: each task reads its operands once. */
#include "codelets/attention_rows.h"

#include <string.h>

#include "codelets/bfloat16.h"
#include "codelets/kernels/row_product.h"

SL_INLINE float *row_at(const struct sl_floats_at *of, int64_t r)
{
    return of->data + r * of->ld;
}

/* ---- Parameters ---- */

/* Return the row of a_src; a_dst follows, and then a_edge where entries have features. */
SL_INLINE int64_t vectors_of(const struct sl_attention_shape *shape)
{
    return shape->in + shape->edge_features;
}

/* Return the row of the bias. */
SL_INLINE int64_t bias_of(const struct sl_attention_shape *shape)
{
    return vectors_of(shape) + 2 + (shape->edge_features > 0);
}

SL_KERNEL(sl_kernel_attention_weights,
          (const struct sl_attention *attention, const struct sl_attention_shape *shape,
           const struct sl_floats_at *parameters, const struct sl_floats_at *weights),
          (attention, shape, parameters, weights))
{
    const int64_t all = sl_attention_all(attention), heads = attention->heads,
                  width = attention->width, full = shape->head_width;
    const float *const source = row_at(parameters, vectors_of(shape)), *const target = row_at(
                                                                           parameters,
                                                                           vectors_of(shape) + 1);
    for (int64_t r = 0; r < shape->in; r++) {
        const float *const from = row_at(parameters, r);
        float *const to = row_at(weights, r) + shape->at;
        for (int64_t h = 0; h < heads; h++) {
            const int64_t j = (attention->first_head + h) * full;
            memcpy(to + h * width, from + j + shape->first_column, (size_t)width * sizeof *to);
            to[all + h] = product_of(full, from + j, source + j);
            to[all + heads + h] = product_of(full, from + j, target + j);
        }
    }
}

SL_KERNEL(sl_kernel_attention_edge,
          (const struct sl_attention *attention, const struct sl_attention_shape *shape,
           const struct sl_floats_at *parameters, const struct sl_floats_at *edge),
          (attention, shape, parameters, edge))
{
    const int64_t full = shape->head_width;
    const float *const vector = row_at(parameters, vectors_of(shape) + 2);
    for (int64_t f = 0; f < shape->edge_features; f++)
        for (int64_t h = 0; h < attention->heads; h++) {
            const int64_t j = (attention->first_head + h) * full;
            row_at(edge, f)[h] =
                product_of(full, row_at(parameters, shape->in + f) + j, vector + j);
        }
}

/* Set TO += by · FROM. */
SL_INLINE void add(int64_t count, float by, const float *restrict from, float *restrict to)
{
    for (int64_t j = 0; j < count; j++)
        to[j] += by * from[j];
}

/* Add the gradient of row r of W, and its share of the gradients of a_src and a_dst, to BACK. */
SL_INLINE void give_back(const struct sl_attention *attention,
                         const struct sl_attention_shape *shape,
                         const struct sl_floats_at *parameters, const struct sl_floats_at *gradient,
                         int64_t r, const struct sl_floats_at *back)
{
    const int64_t all = sl_attention_all(attention), heads = attention->heads,
                  width = attention->width, full = shape->head_width;
    const int64_t vectors = vectors_of(shape);
    const float *const w = row_at(parameters, r), *const source = row_at(parameters, vectors),
                       *const target = row_at(parameters, vectors + 1),
                       *const g = row_at(gradient, r) + shape->at;
    float *const to = row_at(back, r), *const source_back = row_at(back, vectors),
                 *const target_back = row_at(back, vectors + 1);
    for (int64_t h = 0; h < heads; h++) {
        const int64_t j = (attention->first_head + h) * full;
        add(width, 1.0f, g + h * width, to + j + shape->first_column);
        add(full, g[all + h], source + j, to + j);
        add(full, g[all + heads + h], target + j, to + j);
        add(full, g[all + h], w + j, source_back + j);
        add(full, g[all + heads + h], w + j, target_back + j);
    }
}

/* Add the gradient of row r of W_e, and its share of the gradient of a_edge, to BACK. */
SL_INLINE void give_edges_back(const struct sl_attention *attention,
                               const struct sl_attention_shape *shape,
                               const struct sl_floats_at *parameters,
                               const struct sl_floats_at *gradient, int64_t r,
                               const struct sl_floats_at *back)
{
    const int64_t full = shape->head_width, vector = vectors_of(shape) + 2;
    const float *const g = row_at(gradient, r) + shape->at;
    for (int64_t h = 0; h < attention->heads; h++) {
        const int64_t j = (attention->first_head + h) * full;
        add(full, g[h], row_at(parameters, vector) + j, row_at(back, r) + j);
        add(full, g[h], row_at(parameters, r) + j, row_at(back, vector) + j);
    }
}

SL_KERNEL(sl_kernel_attention_weights_back,
          (const struct sl_attention *attention, const struct sl_attention_shape *shape,
           const struct sl_floats_at *parameters, const struct sl_floats_at *gradient,
           bool accumulate, const struct sl_floats_at *back),
          (attention, shape, parameters, gradient, accumulate, back))
{
    for (int64_t r = 0; !accumulate && r < bias_of(shape) + shape->bias; r++)
        memset(row_at(back, r), 0, (size_t)shape->columns * sizeof(float));
    for (int64_t r = 0; r < shape->in; r++)
        give_back(attention, shape, parameters, gradient, r, back);
    for (int64_t f = 0; f < shape->edge_features; f++)
        give_edges_back(attention, shape, parameters, gradient, shape->in + f, back);
    if (shape->bias)
        add(shape->out, 1.0f, row_at(gradient, vectors_of(shape)) + shape->at,
            row_at(back, bias_of(shape)) + shape->out_column);
}

/* ---- Rows ---- */

/* Set TO = share · FROM. FROM is float32 or bfloat16. */
SL_INLINE void multiply(int64_t count, float share, const void *from, bool half, float *restrict to)
{
    int64_t j = 0;
    for (; !half && j + SL_SHORT_LANES <= count; j += SL_SHORT_LANES)
        *(sl_short *)(to + j) = share * *(const sl_short *)((const float *)from + j);
    for (; j < count; j++)
        to[j] = share * (half ? sl_widen(((const uint16_t *)from)[j]) : ((const float *)from)[j]);
}

SL_KERNEL(sl_kernel_attention_gradient,
          (const struct sl_attention *attention, int64_t rows, int64_t out, const struct sl_rows *g,
           const struct sl_floats_at *state, const struct sl_floats_at *gradient),
          (attention, rows, out, g, state, gradient))
{
    const int64_t all = sl_attention_all(attention), width = attention->width;
    const bool mean = out != all;
    const float share = mean ? 1.0f / (float)attention->heads : 1.0f;
    for (int64_t r = 0; r < rows; r++) {
        float *const to = row_at(gradient, r);
        const float *const z = row_at(state, r);
        const void *const from = sl_rows_at(g, r, 0).data;
        for (int64_t j = 0; j < all; j += out)
            if (g->type == SL_BFLOAT16)
                multiply(out, share, from, true, to + j);
            else
                multiply(out, share, from, false, to + j);
        for (int64_t h = 0; h < attention->heads; h++)
            to[all + h] = product_of(width, to + h * width, z + h * width);
    }
}

SL_KERNEL(sl_kernel_attention_own,
          (const struct sl_attention *attention, int64_t rows, const struct sl_floats_at *gradient,
           const struct sl_floats_at *state, const struct sl_floats_at *back),
          (attention, rows, gradient, state, back))
{
    const int64_t all = sl_attention_all(attention), heads = attention->heads,
                  width = attention->width;
    for (int64_t r = 0; r < rows; r++) {
        const float *const g = row_at(gradient, r),
                           *const sloped = row_at(state, r) + all + 2 * heads,
                           *const q = sloped + all;
        float *const ds = row_at(back, r) + all + heads, product[SL_ATTENTION_HEADS];
        /* All loads come before the stores, whose addresses may have the same last 12 bits. */
        for (int64_t h = 0; h < heads; h++)
            product[h] = product_of(width, g + h * width, sloped + h * width) - g[all + h] * q[h];
        for (int64_t h = 0; h < heads; h++)
            ds[h] += product[h];
    }
}
