/* The maximum of the neighbours, its argmax, and its gradient. A neighbour sends its row, times the
 * weight of the edge where there are weights. The argmax is the vertex whose row is the largest.
 *
 * A row is worked on in pieces that stay in registers or in the first-level cache. */
#include <string.h>

#include "codelets/arguments.h"
#include "codelets/bfloat16.h"
#include "codelets/codelet.h"
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

/* Whether M, of vertex c, takes the place of OLD, of vertex `had`. NaN is larger than any number;
 * of equal ones the least vertex wins, in whatever order they come. */
SL_INLINE bool takes(float m, int32_t c, float old, int32_t had)
{
    const bool nan = m != m, was_nan = old != old, same = (m == old) | (nan & was_nan);
    return (had < 0) | (((m > old) | nan) & !was_nan) | (same & (c < had));
}

/* ---- Forward ---- */

/* Z = the larger of Z and what vertex c sends. */
SL_INLINE void take_piece(int64_t count, const float *restrict x, int32_t c, float *restrict z,
                          int32_t *restrict argmax)
{
    for (int64_t j = 0; j < count; j++) {
        const bool wins = takes(x[j], c, z[j], argmax[j]);
        z[j] = wins ? x[j] : z[j];
        argmax[j] = wins ? c : argmax[j];
    }
}

/* The same of bfloat16, as which `sent` is compared. */
SL_INLINE void take_halves(int64_t count, float *restrict sent, int32_t c, uint16_t *restrict z,
                           int32_t *restrict argmax)
{
    float chosen[PIECE];
    for (int64_t j = 0; j < count; j++) {
        sent[j] = sl_widen(sl_narrow(sent[j]));
        chosen[j] = sl_widen(z[j]);
    }
    take_piece(count, sent, c, chosen, argmax);
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

SL_INLINE void clear(const struct sl_rows *z, int64_t rows, int64_t width, int32_t *argmax,
                     int64_t ldarg)
{
    for (int64_t r = 0; r < rows; r++) {
        memset(sl_rows_at(z, r, 0).data, 0, (size_t)width * sl_type_size(z->type));
        for (int64_t j = 0; j < width; j++)
            argmax[r * ldarg + j] = -1;
    }
}

SL_INLINE void sl_kernel_max_body(const struct sl_sparse *a, int64_t width, const struct sl_rows *h,
                                  bool accumulate, const struct sl_rows *z,
                                  const struct sl_numbering *columns, int32_t *argmax,
                                  int64_t ldarg)
{
    float sent[PIECE];
    if (!accumulate)
        clear(z, a->rows, width, argmax, ldarg);
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++)
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < a->row_ptr[b * a->rows + r + 1];
                 e++) {
                const int64_t c = b * a->block_cols + sl_sparse_col(a, e);
                for (int64_t j = 0, count; j < width; j += count) {
                    const struct sl_rows to = sl_rows_at(z, r, j);
                    count = least(width - j, PIECE);
                    send_piece(a, e, h, c, j, count, sent);
                    if (z->type == SL_BFLOAT16)
                        take_halves(count, sent, vertex_of(columns, c), to.data,
                                    argmax + r * ldarg + j);
                    else
                        take_piece(count, sent, vertex_of(columns, c), to.data,
                                   argmax + r * ldarg + j);
                }
            }
}

SL_DISPATCH(, sl_kernel_max,
            (const struct sl_sparse *a, int64_t width, const struct sl_rows *h, bool accumulate,
             const struct sl_rows *z, const struct sl_numbering *columns, int32_t *argmax,
             int64_t ldarg),
            (a, width, h, accumulate, z, columns, argmax, ldarg))

/* ---- Merged ---- */

SL_INLINE void merge_piece(int64_t count, const float *restrict x, const int32_t *restrict from,
                           float *restrict z, int32_t *restrict argmax)
{
    for (int64_t j = 0; j < count; j++) {
        const bool wins = (from[j] >= 0) & takes(x[j], from[j], z[j], argmax[j]);
        z[j] = wins ? x[j] : z[j];
        argmax[j] = wins ? from[j] : argmax[j];
    }
}

SL_INLINE void merge_halves(int64_t count, const uint16_t *restrict x, const int32_t *restrict from,
                            uint16_t *restrict z, int32_t *restrict argmax)
{
    float sent[PIECE], chosen[PIECE];
    for (int64_t j = 0; j < count; j++) {
        sent[j] = sl_widen(x[j]);
        chosen[j] = sl_widen(z[j]);
    }
    merge_piece(count, sent, from, chosen, argmax);
    for (int64_t j = 0; j < count; j++)
        z[j] = sl_narrow(chosen[j]);
}

SL_INLINE void sl_kernel_max_merge_body(int64_t rows, int64_t width, const uint32_t *index,
                                        const struct sl_rows *x, const int32_t *from,
                                        int64_t ldfrom, const struct sl_rows *z, int32_t *argmax,
                                        int64_t ldarg)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j += PIECE) {
            const int64_t to = index ? index[r] : r, count = least(width - j, PIECE);
            const struct sl_rows sent = sl_rows_at(x, r, j), state = sl_rows_at(z, to, j);
            if (z->type == SL_BFLOAT16)
                merge_halves(count, sent.data, from + r * ldfrom + j, state.data,
                             argmax + to * ldarg + j);
            else
                merge_piece(count, sent.data, from + r * ldfrom + j, state.data,
                            argmax + to * ldarg + j);
        }
}

SL_DISPATCH(, sl_kernel_max_merge,
            (int64_t rows, int64_t width, const uint32_t *index, const struct sl_rows *x,
             const int32_t *from, int64_t ldfrom, const struct sl_rows *z, int32_t *argmax,
             int64_t ldarg),
            (rows, width, index, x, from, ldfrom, z, argmax, ldarg))

/* ---- Backward ---- */

SL_INLINE void sl_kernel_max_back_body(const struct sl_sparse *at, int64_t width, const float *g,
                                       int64_t ldg, const struct sl_numbering *rows,
                                       const int32_t *argmax, int64_t ldarg, bool accumulate,
                                       float *dh, int64_t lddh)
{
    const struct sl_rows from = sl_float_rows((float *)g, ldg);
    float sent[PIECE];
    for (int64_t r = 0; r < at->rows && !accumulate; r++)
        for (int64_t j = 0; j < width; j++)
            dh[r * lddh + j] = 0.0f;
    for (int64_t b = 0; b < at->blocks; b++)
        for (int64_t r = 0; r < at->rows; r++)
            for (uint32_t e = at->row_ptr[b * at->rows + r]; e < at->row_ptr[b * at->rows + r + 1];
                 e++) {
                const int64_t v = b * at->block_cols + sl_sparse_col(at, e);
                const int32_t u = vertex_of(rows, r);
                for (int64_t j = 0, count; j < width; j += count) {
                    const int32_t *restrict chosen = argmax + v * ldarg + j;
                    float *restrict to = dh + r * lddh + j;
                    count = least(width - j, PIECE);
                    send_piece(at, e, &from, v, j, count, sent);
                    for (int64_t i = 0; i < count; i++)
                        to[i] += chosen[i] == u ? sent[i] : 0.0f;
                }
            }
}

SL_DISPATCH(, sl_kernel_max_back,
            (const struct sl_sparse *at, int64_t width, const float *g, int64_t ldg,
             const struct sl_numbering *rows, const int32_t *argmax, int64_t ldarg, bool accumulate,
             float *dh, int64_t lddh),
            (at, width, g, ldg, rows, argmax, ldarg, accumulate, dh, lddh))

/* ---- Tasks ---- */

static struct sl_numbering vertices_of(const struct max_argument *arg, void *buffer)
{
    return (struct sl_numbering){arg->first, arg->listed ? sl_raw_buffer(buffer) : NULL};
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
    const struct sl_dense argmax = sl_dense_buffer(out[0]);
    const struct sl_numbering columns = vertices_of(arg, buffers[2]);
    sl_kernel_max(&a, argmax.cols, &h, arg->accumulate, &z, &columns, sl_raw_buffer(out[0]),
                  argmax.ld);
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
    const struct sl_dense from = sl_dense_buffer(buffers[1]), argmax = sl_dense_buffer(out[0]);
    const uint32_t *index = arg->listed ? sl_raw_buffer(buffers[2]) : NULL;
    sl_kernel_max_merge(arg->rows, argmax.cols, index ? index + arg->first : NULL, &sent,
                        (const int32_t *)sl_raw_buffer(buffers[1]) + arg->first * from.ld, from.ld,
                        &z, sl_raw_buffer(out[0]), argmax.ld);
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
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_dense g = sl_dense_buffer(buffers[1]), argmax = sl_dense_buffer(buffers[2]),
                          dh = sl_dense_buffer(buffers[3 + arg->listed]);
    const struct sl_numbering rows = vertices_of(arg, buffers[3]);
    sl_kernel_max_back(&at, dh.cols, g.data, g.ld, &rows, sl_raw_buffer(buffers[2]), argmax.ld,
                       arg->accumulate, dh.data, dh.ld);
}

SL_CODELET_ANY(max, 0xDAA520);
SL_CODELET_ANY(max_merge, 0xB8860B);
SL_CODELET_ANY(max_back, 0xCD853F);

static void submit(struct sl_runtime *rt, const struct sl_max_tiles *tiles, struct sl_task task)
{
    const struct max_argument arg = {
        .shape = tiles->a->shape,
        .accumulate = tiles->accumulate,
        .listed = tiles->vertices != NULL,
        .first = (int32_t)tiles->first,
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
        .first = t->first, .rows = t->rows, .listed = t->index != NULL};
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
