/* The parts of pair attention in which rows do not meet: each task reads its operands once. */
#include "codelets/kernels/pair_edges.h"

#include <string.h>

#include "codelets/bfloat16.h"

SL_INLINE float *row_at(const struct sl_floats_at *of, int64_t r)
{
    return of->data + r * of->ld;
}

/* Set TO (H·R) to FROM (H·F): each head has its room, with 0 behind its columns. */
SL_INLINE void make_room(const struct sl_pair *pair, const float *restrict from, float *restrict to)
{
    const int64_t room = pair->attention.width, width = pair->width;
    if (room == width) {
        memcpy(to, from, (size_t)(pair->attention.heads * width) * sizeof *to);
        return;
    }
    for (int64_t h = 0; h < pair->attention.heads; h++) {
        memcpy(to + h * room, from + h * width, (size_t)width * sizeof *to);
        memset(to + h * room + width, 0, (size_t)(room - width) * sizeof *to);
    }
}

/* ---- Parameters ---- */

/* Return the first row of parameters of W_e. */
SL_INLINE int64_t edges_row(const struct sl_pair *pair, const struct sl_pair_shape *shape)
{
    return shape->skipped + sl_pair_weights(pair) * shape->in;
}

/* Return the row of parameters of vector `vector`: a of GATv2, then the biases of K, V, T. */
SL_INLINE int64_t vector_row(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                             int vector)
{
    return edges_row(pair, shape) + pair->edges + vector;
}

SL_KERNEL(sl_kernel_pair_weights,
          (const struct sl_pair *pair, const struct sl_pair_shape *shape,
           const struct sl_floats_at *parameters, const struct sl_floats_at *weights,
           const struct sl_floats_at *vectors),
          (pair, shape, parameters, weights, vectors))
{
    const int64_t columns = sl_pair_columns(pair), all = sl_pair_all(pair);
    for (int64_t r = 0; r < shape->in; r++)
        for (int k = 0; k < sl_pair_weights(pair); k++)
            memcpy(row_at(weights, r) + shape->at + k * columns,
                   row_at(parameters, shape->skipped + k * shape->in + r) + shape->first,
                   (size_t)columns * sizeof *weights->data);
    float *const even = row_at(vectors, SL_PAIR_EVEN), *const odd = row_at(vectors, SL_PAIR_ODD),
                 *const plain = row_at(vectors, SL_PAIR_PLAIN);
    if (pair->products)
        memset(plain, 0, (size_t)all * sizeof *plain);
    else
        make_room(pair, row_at(parameters, vector_row(pair, shape, 0)) + shape->first, plain);
    for (int64_t j = 0; j < all; j++) {
        even[j] = 0.5f * (1.0f + pair->attention.slope) * plain[j];
        odd[j] = 0.5f * (1.0f - pair->attention.slope) * plain[j];
    }
    for (int64_t f = 0; f < pair->edges; f++)
        make_room(pair, row_at(parameters, edges_row(pair, shape) + f) + shape->first,
                  row_at(vectors, SL_PAIR_VECTORS + f));
}

/* Make the rows of W_e and a of BACK, for GATv2 from M and a's row behind it. */
SL_INLINE void edges_back_of(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                             const struct sl_floats_at *parameters,
                             const struct sl_floats_at *gradient, const struct sl_floats_at *back)
{
    const int64_t columns = sl_pair_columns(pair), row = edges_row(pair, shape),
                  vector = vector_row(pair, shape, 0);
    const float *const plain = row_at(parameters, vector) + shape->first;
    float *const a = row_at(back, vector) + shape->first;
    for (int64_t f = 0; f < pair->edges; f++) {
        const float *const m = row_at(gradient, shape->in + f) + shape->at, *const w =
                                                                                row_at(parameters,
                                                                                       row + f) +
                                                                                shape->first;
        float *const to = row_at(back, row + f) + shape->first;
        for (int64_t j = 0; j < columns; j++)
            to[j] = pair->products ? m[j] : plain[j] * m[j];
        for (int64_t j = 0; !pair->products && j < columns; j++)
            a[j] = sl_add_product(a[j], w[j], m[j]);
    }
}

SL_KERNEL(sl_kernel_pair_weights_back,
          (const struct sl_pair *pair, const struct sl_pair_shape *shape,
           const struct sl_floats_at *parameters, const struct sl_floats_at *gradient,
           bool accumulate, const struct sl_floats_at *back),
          (pair, shape, parameters, gradient, accumulate, back))
{
    const int64_t columns = sl_pair_columns(pair), biases = sl_pair_weights(pair),
                  rows = vector_row(pair, shape, !pair->products) + (shape->bias ? biases + 1 : 0);
    const size_t bytes = (size_t)columns * sizeof *back->data;
    for (int64_t r = shape->skipped; !accumulate && r < rows; r++)
        memset(row_at(back, r), 0, (size_t)shape->columns * sizeof *back->data);
    for (int64_t r = 0; r < shape->in; r++)
        for (int64_t k = 0; k < biases; k++)
            memcpy(row_at(back, shape->skipped + k * shape->in + r) + shape->first,
                   row_at(gradient, r) + shape->at + k * columns, bytes);
    const float *from = row_at(gradient, shape->in + pair->edges) + shape->at;
    if (!pair->products) {
        memcpy(row_at(back, vector_row(pair, shape, 0)) + shape->first, from, bytes);
        from += gradient->ld;
    }
    if (pair->edges)
        edges_back_of(pair, shape, parameters, gradient, back);
    if (!shape->bias)
        return;
    for (int64_t k = pair->products; k < biases; k++)
        memcpy(row_at(back, vector_row(pair, shape, !pair->products + (int)k)) + shape->first,
               from + k * columns, bytes);
    memcpy(row_at(back, rows - 1) + shape->out_column, from + gradient->ld,
           (size_t)shape->out * sizeof *from);
}

/* ---- Rows ---- */

/* Set TO (H·R) to scale · (X + BIAS); BIAS NULL: 0. */
SL_INLINE void add_bias(const struct sl_pair *pair, float scale, const float *restrict x,
                        const float *restrict bias, float *restrict to)
{
    const int64_t room = pair->attention.width, width = pair->width,
                  heads = room == width ? 1 : pair->attention.heads,
                  columns = room == width ? pair->attention.heads * width : width;
    for (int64_t h = 0; h < heads; h++) {
        const float *const from = x + h * columns, *const of = bias ? bias + h * columns : NULL;
        float *const head = to + h * room;
        for (int64_t j = 0; of && j < columns; j++)
            head[j] = scale * (from[j] + of[j]);
        for (int64_t j = 0; !of && j < columns; j++)
            head[j] = scale * from[j];
        for (int64_t j = columns; j < room; j++)
            head[j] = 0.0f;
    }
}

SL_KERNEL(sl_kernel_pair_ends,
          (const struct sl_pair *pair, const struct sl_pair_shape *shape, int64_t rows,
           const uint32_t *vertex, const struct sl_floats_at *parameters,
           const struct sl_floats_at *projected, const struct sl_floats_at *vectors,
           const struct sl_floats_at *source, const struct sl_floats_at *target),
          (pair, shape, rows, vertex, parameters, projected, vectors, source, target))
{
    const int64_t columns = sl_pair_columns(pair), all = sl_pair_all(pair),
                  heads = pair->attention.heads;
    const int sources = sl_pair_weights(pair) - 1;
    for (int64_t r = 0; r < rows; r++) {
        const float *const x = row_at(projected, r);
        float *const from = row_at(source, r), *const to = row_at(target, r);
        const uint32_t bits = vertex[r] ^ SL_ATTENTION_VERTEX;
        for (int k = 0; k <= sources; k++)
            add_bias(pair, k < sources ? 1.0f : pair->scale, x + k * columns,
                     shape->bias
                         ? row_at(parameters, vector_row(pair, shape, !pair->products + k)) +
                               shape->first
                         : NULL,
                     k < sources ? from + k * all : to);
        memset(to + all, 0, (size_t)heads * sizeof *to);
        memcpy(from + sources * all, &bits, sizeof bits);
        memcpy(to + all + heads, &bits, sizeof bits);
        if (pair->products)
            multiply_edges(pair, vectors, to, to + all + heads + 1);
    }
}

/* Set X (H·F, or F for the mean) to the heads of Z (H·R). */
SL_INLINE void join_heads(const struct sl_pair *pair, bool mean, const float *restrict z,
                          float *restrict x)
{
    const int64_t heads = pair->attention.heads, room = pair->attention.width, width = pair->width;
    const float share = 1.0f / (float)heads;
    for (int64_t h = 0; !mean && h < heads; h++)
        memcpy(x + h * width, z + h * room, (size_t)width * sizeof *x);
    for (int64_t j = 0; mean && j < width; j++) {
        float sum = 0.0f;
        for (int64_t h = 0; h < heads; h++)
            sum += z[h * room + j];
        x[j] = share * sum;
    }
}

SL_KERNEL(sl_kernel_pair_gradient,
          (const struct sl_pair *pair, int64_t rows, bool mean, const struct sl_rows *g,
           const struct sl_floats_at *state, const struct sl_floats_at *vectors,
           const struct sl_floats_at *gradient),
          (pair, rows, mean, g, state, vectors, gradient))
{
    const int64_t heads = pair->attention.heads, room = pair->attention.width, width = pair->width;
    const float share = mean ? 1.0f / (float)heads : 1.0f;
    for (int64_t r = 0; r < rows; r++) {
        const struct sl_rows from = sl_rows_at(g, r, 0);
        float *const to = row_at(gradient, r), *const products = to + heads * room;
        const float *const z = row_at(state, r);
        for (int64_t h = 0; h < heads; h++) {
            const int64_t first = mean ? 0 : h * width;
            float sum = 0.0f;
            for (int64_t j = 0; j < width; j++)
                to[h * room + j] = share * (g->type == SL_BFLOAT16
                                                ? sl_widen(((const uint16_t *)from.data)[first + j])
                                                : ((const float *)from.data)[first + j]);
            for (int64_t j = width; j < room; j++)
                to[h * room + j] = 0.0f;
            for (int64_t j = 0; j < width; j++)
                sum = sl_add_product(sum, to[h * room + j], z[h * room + j]);
            products[h] = sum;
        }
        if (pair->products)
            multiply_edges(pair, vectors, to, products + heads);
    }
}

/* Set TO (H·F), the gradient of T, to scale · (C + A·W_e). */
SL_INLINE void join_edges(const struct sl_pair *pair, const struct sl_floats_at *vectors,
                          const float *restrict c, float *restrict to)
{
    const int64_t room = pair->attention.width, width = pair->width;
    for (int64_t h = 0; h < pair->attention.heads; h++) {
        add_head_edges(pair, vectors, h, width, c + sl_pair_all(pair), c + h * room,
                       to + h * width);
        for (int64_t j = 0; j < width; j++)
            to[h * width + j] *= pair->scale;
    }
}

SL_KERNEL(sl_kernel_pair_join,
          (const struct sl_pair *pair, int64_t rows, const struct sl_floats_at *vectors,
           const struct sl_floats_at *target_back, const struct sl_floats_at *source_back,
           const struct sl_floats_at *projected),
          (pair, rows, vectors, target_back, source_back, projected))
{
    const int64_t heads = pair->attention.heads, room = pair->attention.width, width = pair->width,
                  columns = heads * width;
    const float *const a = row_at(vectors, SL_PAIR_PLAIN);
    for (int64_t r = 0; r < rows; r++) {
        const float *const c = row_at(target_back, r), *const d = row_at(source_back, r),
                           *const e = d + heads * room;
        float *const to = row_at(projected, r);
        for (int64_t h = 0; h < heads; h++)
            for (int64_t j = 0; j < width; j++) {
                const int64_t i = h * room + j, k = h * width + j;
                to[k] = pair->products ? d[i] : sl_add_product(e[i], a[i], d[i]);
                if (pair->products)
                    to[columns + k] = e[i];
                to[(pair->products ? 2 : 1) * columns + k] =
                    pair->products ? pair->scale * c[i] : a[i] * c[i];
            }
        if (pair->products && pair->edges)
            join_edges(pair, vectors, c, to + 2 * columns);
    }
}

SL_KERNEL(sl_kernel_pair_vector_back,
          (const struct sl_pair *pair, int64_t rows, const struct sl_floats_at *source,
           const struct sl_floats_at *target, const struct sl_floats_at *target_back,
           const struct sl_floats_at *source_back, float *gradient),
          (pair, rows, source, target, target_back, source_back, gradient))
{
    const int64_t room = pair->attention.width, width = pair->width;
    memset(gradient, 0, (size_t)sl_pair_columns(pair) * sizeof *gradient);
    for (int64_t r = 0; r < rows; r++) {
        const float *const k = row_at(source, r), *const t = row_at(target, r),
                           *const c = row_at(target_back, r), *const d = row_at(source_back, r);
        for (int64_t h = 0; h < pair->attention.heads; h++)
            for (int64_t j = 0; j < width; j++) {
                const int64_t i = h * room + j;
                gradient[h * width + j] =
                    sl_add_product(sl_add_product(gradient[h * width + j], k[i], d[i]), t[i], c[i]);
            }
    }
}

SL_KERNEL(sl_kernel_pair_heads,
          (const struct sl_pair *pair, int64_t rows, bool mean, const struct sl_floats_at *state,
           int64_t ld, float *x),
          (pair, rows, mean, state, ld, x))
{
    for (int64_t r = 0; r < rows; r++)
        join_heads(pair, mean, row_at(state, r), x + r * ld);
}
