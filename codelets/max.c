/* The maximum or minimum of the neighbours, its argmax, and its gradient. A neighbour sends its
 * row, times the weight of the edge where there are weights. The argmax is the vertex whose row is
 * the largest.
 *
 * A row is worked on in pieces that stay in registers or in the first-level cache. */
#include <string.h>

#include "codelets/bfloat16.h"
#include "codelets/codelet.h"
#include "codelets/max.h"
#include "codelets/vector.h"

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

SL_INLINE void sl_kernel_max_body(const struct sl_sparse *a, int64_t width, const struct sl_rows *h,
                                  bool accumulate, const struct sl_rows *z,
                                  const struct sl_numbering *columns,
                                  const struct sl_argmax *argmax)
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

SL_DISPATCH(, sl_kernel_max,
            (const struct sl_sparse *a, int64_t width, const struct sl_rows *h, bool accumulate,
             const struct sl_rows *z, const struct sl_numbering *columns,
             const struct sl_argmax *argmax),
            (a, width, h, accumulate, z, columns, argmax))

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

SL_INLINE void sl_kernel_max_merge_body(int64_t rows, int64_t width, const uint32_t *index,
                                        const struct sl_rows *x, const struct sl_argmax *from,
                                        const struct sl_rows *z, const struct sl_argmax *argmax)
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

SL_DISPATCH(, sl_kernel_max_merge,
            (int64_t rows, int64_t width, const uint32_t *index, const struct sl_rows *x,
             const struct sl_argmax *from, const struct sl_rows *z, const struct sl_argmax *argmax),
            (rows, width, index, x, from, z, argmax))

/* ---- Backward ---- */

SL_INLINE void sl_kernel_max_back_body(const struct sl_sparse *at, int64_t width,
                                       const struct sl_rows *g, const struct sl_numbering *rows,
                                       const struct sl_argmax *argmax, bool accumulate,
                                       const struct sl_rows *dh)
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

SL_DISPATCH(, sl_kernel_max_back,
            (const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
             const struct sl_numbering *rows, const struct sl_argmax *argmax, bool accumulate,
             const struct sl_rows *dh),
            (at, width, g, rows, argmax, accumulate, dh))

/* ---- Tasks ---- */

static struct sl_numbering vertices_of(const struct max_argument *arg, void *buffer)
{
    return (struct sl_numbering){arg->first, arg->listed ? sl_raw_buffer(buffer) : NULL};
}

static struct sl_argmax argmax_of(void *buffer, int64_t first, float sign)
{
    const struct sl_dense tile = sl_dense_buffer(buffer);
    return (struct sl_argmax){(int32_t *)sl_raw_buffer(buffer) + first * tile.ld, tile.ld, sign};
}

/* max
 *   argument  struct max_argument
 *   buffers   0    R      A, sparse tile (rows, cols)
 *             1    R      H (cols, width)
 *             2    R      listed: VERTICES (any, cols) of int32, row 0: those of the columns
 *             -2   W/RW   ARGMAX (rows, width) of int32
 *             -1   W/RW   Z (rows, width) */
static void max_cpu(void *buffers[], void *argument)
{
    const struct max_argument *arg = argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_rows h = sl_rows_buffer(buffers[1]), z = sl_rows_buffer(out[1]);
    const struct sl_argmax argmax = argmax_of(out[0], 0, arg->sign);
    const struct sl_numbering columns = vertices_of(arg, buffers[2]);
    sl_kernel_max(&a, sl_dense_buffer(out[0]).cols, &h, arg->accumulate, &z, &columns, &argmax);
}

/* max_merge
 *   argument  struct max_merge_argument
 *   buffers   0    R      X (any, width)
 *             1    R      FROM (any, width) of int32
 *             2    R      listed: index (1, any) of uint32
 *             -2   RW     ARGMAX (any, width) of int32
 *             -1   RW     Z (any, width) */
static void max_merge_cpu(void *buffers[], void *argument)
{
    const struct max_merge_argument *arg = argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_rows x = sl_rows_buffer(buffers[0]), z = sl_rows_buffer(out[1]),
                         sent = sl_rows_at(&x, arg->first, 0);
    const struct sl_argmax from = argmax_of(buffers[1], arg->first, arg->sign),
                           argmax = argmax_of(out[0], 0, arg->sign);
    const uint32_t *index = arg->listed ? sl_raw_buffer(buffers[2]) : NULL;
    sl_kernel_max_merge(arg->rows, sl_dense_buffer(out[0]).cols, index ? index + arg->first : NULL,
                        &sent, &from, &z, &argmax);
}

/* max_back
 *   argument  struct max_argument
 *   buffers   0    R      Aᵀ, sparse tile (rows, cols)
 *             1    R      G (cols, width)
 *             2    R      ARGMAX (cols, width) of int32
 *             3    R      listed: VERTICES (any, rows) of int32, row 0: those of the rows
 *             -1   W/RW   DH (rows, width) */
static void max_back_cpu(void *buffers[], void *argument)
{
    const struct max_argument *arg = argument;
    void *out = buffers[3 + arg->listed];
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_rows g = sl_rows_buffer(buffers[1]), dh = sl_rows_buffer(out);
    const struct sl_argmax argmax = argmax_of(buffers[2], 0, arg->sign);
    const struct sl_numbering rows = vertices_of(arg, buffers[3]);
    sl_kernel_max_back(&at, sl_dense_buffer(out).cols, &g, &rows, &argmax, arg->accumulate, &dh);
}

SL_CODELET_ANY(max, 0xDAA520);
SL_CODELET_ANY(max_merge, 0xB8860B);
SL_CODELET_ANY(max_back, 0xCD853F);

static float sign_of(bool minimum)
{
    return minimum ? -1.0f : 1.0f;
}

static void submit(struct sl_runtime *rt, const struct sl_max_tiles *tiles, struct sl_task task)
{
    const struct max_argument arg = {
        .shape = tiles->a->shape,
        .accumulate = tiles->accumulate,
        .listed = tiles->vertices != NULL,
        .first = (int32_t)tiles->first,
        .sign = sign_of(tiles->minimum),
    };
    task.tiles[task.count++] = tiles->z;
    task.output = tiles->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    task.argument = &arg;
    task.argument_size = sizeof arg;
    task.urgency = SL_TASK_SOON;
    task.work = (double)arg.shape.nnz * (double)tiles->z->cols;
    task.kind = arg.accumulate | arg.shape.has_values << 1;
    sl_task_submit(rt, &task);
}

void sl_submit_max(struct sl_runtime *rt, const struct sl_max_tiles *t)
{
    struct sl_task task = {.codelet = &max_codelet, .count = 2, .tiles = {&t->a->tile, t->h}};
    if (t->vertices)
        task.tiles[task.count++] = t->vertices;
    task.tiles[task.count++] = t->argmax;
    task.before_output = t->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    submit(rt, t, task);
}

void sl_submit_max_back(struct sl_runtime *rt, const struct sl_max_tiles *t)
{
    struct sl_task task = {
        .codelet = &max_back_codelet, .count = 3, .tiles = {&t->a->tile, t->h, t->argmax}};
    if (t->vertices)
        task.tiles[task.count++] = t->vertices;
    submit(rt, t, task);
}

void sl_submit_max_merge(struct sl_runtime *rt, const struct sl_max_merge_tiles *t)
{
    const struct max_merge_argument arg = {
        .first = t->first,
        .rows = t->rows,
        .listed = t->index != NULL,
        .sign = sign_of(t->minimum),
    };
    struct sl_task task = {
        .codelet = &max_merge_codelet,
        .count = 2,
        .tiles = {t->x, t->from},
        .output = SL_TASK_UPDATES,
        .before_output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)t->rows * (double)t->z->cols,
        .kind = t->index != NULL,
    };
    if (t->index)
        task.tiles[task.count++] = t->index;
    task.tiles[task.count++] = t->argmax;
    task.tiles[task.count++] = t->z;
    sl_task_submit(rt, &task);
}
