/* The maximum or minimum of the neighbours, its argmax, and its gradient. A neighbour sends its
 * row, times the weight of the edge where there are weights. The argmax is the vertex whose row is
 * the largest.
 *
 * A row is worked on in pieces that stay in registers or in the first-level cache. */
#include "codelets/max.h"

#include <string.h>

#include "codelets/bfloat16.h"

enum { PIECE = 64 }; /* columns */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

SL_INLINE int32_t vertex_of(const struct sl_numbering *vertices, int64_t k)
{
    return vertices->number ? vertices->number[k] : vertices->first + (int32_t)k;
}

/* Whether M, of vertex c, takes the place of OLD, of vertex `had`. NaN wins over any number;
 * of equal ones the least vertex wins, in whatever order they come. */
SL_INLINE bool takes(float m, int32_t c, float old, int32_t had)
{
    const bool nan = m != m, was_nan = old != old, same = (m == old) | (nan & was_nan);
    return (had < 0) | (((m > old) | nan) & !was_nan) | (same & (c < had));
}

/* ---- Forward ---- */

/* Z = the larger of Z and what vertex c sends. */
SL_INLINE void take_piece(int64_t count, const float *restrict x, int32_t c, float sign,
                          float *restrict z, int32_t *restrict argmax)
{
    for (int64_t j = 0; j < count; j++) {
        const bool wins = takes(sign * x[j], c, sign * z[j], argmax[j]);
        z[j] = wins ? x[j] : z[j];
        argmax[j] = wins ? c : argmax[j];
    }
}

/* The same of bfloat16, as which `sent` is compared. */
SL_INLINE void take_halves(int64_t count, float *restrict sent, int32_t c, float sign,
                           uint16_t *restrict z, int32_t *restrict argmax)
{
    float chosen[PIECE];
    for (int64_t j = 0; j < count; j++) {
        sent[j] = sl_widen(sl_narrow(sent[j]));
        chosen[j] = sl_widen(z[j]);
    }
    take_piece(count, sent, c, sign, chosen, argmax);
    for (int64_t j = 0; j < count; j++)
        z[j] = sl_narrow(chosen[j]);
}

/* What entry e sends of row r of X, from column j on. */
SL_INLINE void send_piece(const struct sl_sparse *a, uint32_t e, const struct sl_rows *x, int64_t r,
                          int64_t j, int64_t count, float *restrict out)
{
    const float weight = a->value ? a->value[e] : 1.0f;
    if (x->type == SL_FLOAT32) {
        const float *restrict row = (const float *)x->data + r * x->ld + j;
        for (int64_t i = 0; i < count; i++)
            out[i] = a->value ? row[i] * weight : row[i];
    } else {
        const uint16_t *restrict row = (const uint16_t *)x->data + r * x->ld + j;
        for (int64_t i = 0; i < count; i++)
            out[i] = a->value ? sl_widen(row[i]) * weight : sl_widen(row[i]);
    }
}

SL_INLINE void clear(const struct sl_rows *z, int64_t rows, int64_t width,
                     const struct sl_argmax *argmax)
{
    for (int64_t r = 0; r < rows; r++) {
        memset(sl_rows_at(z, r, 0).data, 0, (size_t)width * sl_type_size(z->type));
        for (int64_t j = 0; j < width; j++)
            argmax->vertex[r * argmax->ld + j] = -1;
    }
}

SL_KERNEL(sl_kernel_max,
          (const struct sl_sparse *a, int64_t width, const struct sl_rows *h, bool accumulate,
           const struct sl_rows *z, const struct sl_numbering *columns,
           const struct sl_argmax *argmax),
          (a, width, h, accumulate, z, columns, argmax))
{
    float sent[PIECE];
    if (!accumulate)
        clear(z, a->rows, width, argmax);
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++)
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < a->row_ptr[b * a->rows + r + 1];
                 e++) {
                const int64_t c = b * a->block_cols + sl_sparse_col(a, e);
                for (int64_t j = 0, count; j < width; j += count) {
                    const struct sl_rows to = sl_rows_at(z, r, j);
                    int32_t *from = argmax->vertex + r * argmax->ld + j;
                    count = least(width - j, PIECE);
                    send_piece(a, e, h, c, j, count, sent);
                    if (z->type == SL_BFLOAT16)
                        take_halves(count, sent, vertex_of(columns, c), argmax->sign, to.data,
                                    from);
                    else
                        take_piece(count, sent, vertex_of(columns, c), argmax->sign, to.data, from);
                }
            }
}

/* ---- Merged ---- */

SL_INLINE void merge_piece(int64_t count, const float *restrict x, const int32_t *restrict from,
                           float sign, float *restrict z, int32_t *restrict argmax)
{
    for (int64_t j = 0; j < count; j++) {
        const bool wins = (from[j] >= 0) & takes(sign * x[j], from[j], sign * z[j], argmax[j]);
        z[j] = wins ? x[j] : z[j];
        argmax[j] = wins ? from[j] : argmax[j];
    }
}

SL_INLINE void merge_halves(int64_t count, const uint16_t *restrict x, const int32_t *restrict from,
                            float sign, uint16_t *restrict z, int32_t *restrict argmax)
{
    float sent[PIECE], chosen[PIECE];
    for (int64_t j = 0; j < count; j++) {
        sent[j] = sl_widen(x[j]);
        chosen[j] = sl_widen(z[j]);
    }
    merge_piece(count, sent, from, sign, chosen, argmax);
    for (int64_t j = 0; j < count; j++)
        z[j] = sl_narrow(chosen[j]);
}

SL_KERNEL(sl_kernel_max_merge,
          (int64_t rows, int64_t width, const uint32_t *index, const struct sl_rows *x,
           const struct sl_argmax *from, const struct sl_rows *z, const struct sl_argmax *argmax),
          (rows, width, index, x, from, z, argmax))
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j += PIECE) {
            const int64_t to = index ? index[r] : r, count = least(width - j, PIECE);
            const struct sl_rows sent = sl_rows_at(x, r, j), state = sl_rows_at(z, to, j);
            const int32_t *other = from->vertex + r * from->ld + j;
            int32_t *own = argmax->vertex + to * argmax->ld + j;
            if (z->type == SL_BFLOAT16)
                merge_halves(count, sent.data, other, argmax->sign, state.data, own);
            else
                merge_piece(count, sent.data, other, argmax->sign, state.data, own);
        }
}

/* ---- Backward ---- */

SL_KERNEL(sl_kernel_max_back,
          (const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
           const struct sl_numbering *rows, const struct sl_argmax *argmax, bool accumulate,
           const struct sl_rows *dh),
          (at, width, g, rows, argmax, accumulate, dh))
{
    float sent[PIECE];
    for (int64_t r = 0; r < at->rows && !accumulate; r++)
        memset(sl_rows_at(dh, r, 0).data, 0, (size_t)width * sizeof(float));
    for (int64_t b = 0; b < at->blocks; b++)
        for (int64_t r = 0; r < at->rows; r++)
            for (uint32_t e = at->row_ptr[b * at->rows + r]; e < at->row_ptr[b * at->rows + r + 1];
                 e++) {
                const int64_t v = b * at->block_cols + sl_sparse_col(at, e);
                const int32_t u = vertex_of(rows, r);
                for (int64_t j = 0, count; j < width; j += count) {
                    const int32_t *restrict chosen = argmax->vertex + v * argmax->ld + j;
                    float *restrict to = sl_rows_at(dh, r, j).data;
                    count = least(width - j, PIECE);
                    send_piece(at, e, g, v, j, count, sent);
                    for (int64_t i = 0; i < count; i++)
                        to[i] += chosen[i] == u ? sent[i] : 0.0f;
                }
            }
}
