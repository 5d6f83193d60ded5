/* The aggregation primitive of DistGNN (section 2.1): what neighbours send, reduced. Sums of copies
 * and of products with a number per edge have a faster kernel, spmm.c.
 *
 * A row is worked on in pieces that stay in registers or in the first-level cache: what an entry
 * sends of the piece, and what becomes of it. */
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

/* The feature of edge e from column j on, where it has a row, or its number. */
SL_INLINE const float *feature_of(const struct sl_messages *m, uint32_t e, int64_t j)
{
    return m->ld ? m->edge + e * m->ld + j : m->edge + e;
}

/* ---- What neighbours send ---- */

SL_INLINE void send_piece(const struct sl_messages *m, uint32_t e, int64_t first, int64_t count,
                          const float *restrict x, float *restrict out)
{
    const bool rows = m->ld > 0;
    if (m->operation == SL_MESSAGE_COPY) {
        memcpy(out, x, (size_t)count * sizeof *out);
        return;
    }
    const float *restrict edge = feature_of(m, e, first);
    switch (m->operation) {
    case SL_MESSAGE_ADD:
        for (int64_t j = 0; j < count; j++)
            out[j] = x[j] + (rows ? edge[j] : *edge);
        break;
    case SL_MESSAGE_SUB:
        for (int64_t j = 0; j < count; j++)
            out[j] = x[j] - (rows ? edge[j] : *edge);
        break;
    case SL_MESSAGE_MUL:
        for (int64_t j = 0; j < count; j++)
            out[j] = x[j] * (rows ? edge[j] : *edge);
        break;
    default:
        for (int64_t j = 0; j < count; j++)
            out[j] = x[j] / (rows ? edge[j] : *edge);
    }
}

/* Z = the better of Z, of the vertices `arg` (negative: of none), and what vertex c sends. NaN is
 * best; of equal ones, that of the least vertex, in whatever order they come. */
SL_INLINE void choose_piece(bool largest, int64_t count, const float *restrict x, int32_t c,
                            float *restrict z, int32_t *restrict arg)
{
    for (int64_t j = 0; j < count; j++) {
        const float m = x[j], old = z[j];
        const bool better = largest ? m > old : m < old, nan = m != m, was_nan = old != old;
        const bool same = (m == old) | (nan & was_nan);
        const bool takes = (arg[j] < 0) | ((better | nan) & !was_nan) | (same & (c < arg[j]));
        z[j] = takes ? m : old;
        arg[j] = takes ? c : arg[j];
    }
}

SL_INLINE int32_t vertex_of(const struct sl_numbering *vertices, int64_t k)
{
    return vertices->number ? vertices->number[k] : vertices->first + (int32_t)k;
}

/* Z(0 … count - 1) = the better of that and what vertex c sends. */
SL_INLINE void choose_halves(bool largest, int64_t count, float *restrict sent, int32_t c,
                             uint16_t *restrict z, int32_t *restrict arg)
{
    float chosen[PIECE];
    for (int64_t j = 0; j < count; j++) {
        sent[j] = sl_widen(sl_narrow(sent[j]));
        chosen[j] = sl_widen(z[j]);
    }
    choose_piece(largest, count, sent, c, chosen, arg);
    for (int64_t j = 0; j < count; j++)
        z[j] = sl_narrow(chosen[j]);
}

/* Elements j … j + count - 1 of row r, as floats: there, or in `room`. */
SL_INLINE const float *piece_of(const struct sl_rows *x, int64_t r, int64_t j, int64_t count,
                                float *restrict room)
{
    if (x->type == SL_FLOAT32)
        return (const float *)x->data + r * x->ld + j;
    const uint16_t *restrict halves = (const uint16_t *)x->data + r * x->ld + j;
    for (int64_t i = 0; i < count; i++)
        room[i] = sl_widen(halves[i]);
    return room;
}

SL_INLINE void clear(const struct sl_rows *z, int64_t rows, int64_t width, int32_t *arg,
                     int64_t ldarg)
{
    for (int64_t r = 0; r < rows; r++) {
        memset(sl_rows_at(z, r, 0).data, 0, (size_t)width * sl_type_size(z->type));
        for (int64_t j = 0; arg && j < width; j++)
            arg[r * ldarg + j] = -1;
    }
}

SL_INLINE void sl_kernel_aggregate_body(enum sl_reduce reducer, const struct sl_messages *messages,
                                        const struct sl_sparse *a, int64_t width,
                                        const struct sl_rows *h, bool accumulate,
                                        const struct sl_rows *z, const struct sl_numbering *columns,
                                        int32_t *arg, int64_t ldarg)
{
    float sent[PIECE], room[PIECE];
    if (!accumulate)
        clear(z, a->rows, width, reducer == SL_REDUCE_SUM ? NULL : arg, ldarg);
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++)
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < a->row_ptr[b * a->rows + r + 1];
                 e++) {
                const int64_t c = b * a->block_cols + sl_sparse_col(a, e);
                for (int64_t j = 0, count; j < width; j += count) {
                    const struct sl_rows to = sl_rows_at(z, r, j);
                    count = least(width - j, PIECE);
                    send_piece(messages, e, j, count, piece_of(h, c, j, count, room), sent);
                    if (reducer == SL_REDUCE_SUM)
                        for (int64_t i = 0; i < count; i++)
                            ((float *)to.data)[i] += sent[i];
                    else if (z->type == SL_BFLOAT16)
                        choose_halves(reducer == SL_REDUCE_MAX, count, sent, vertex_of(columns, c),
                                      to.data, arg + r * ldarg + j);
                    else
                        choose_piece(reducer == SL_REDUCE_MAX, count, sent, vertex_of(columns, c),
                                     to.data, arg + r * ldarg + j);
                }
            }
}

SL_DISPATCH(, sl_kernel_aggregate,
            (enum sl_reduce reducer, const struct sl_messages *messages, const struct sl_sparse *a,
             int64_t width, const struct sl_rows *h, bool accumulate, const struct sl_rows *z,
             const struct sl_numbering *columns, int32_t *arg, int64_t ldarg),
            (reducer, messages, a, width, h, accumulate, z, columns, arg, ldarg))

/* ---- The gradient of the neighbours ---- */

/* DH += what comes back of G to vertex u: where `arg` is it, or everywhere. */
SL_INLINE void return_piece(int64_t count, const float *restrict back, int32_t u,
                            const int32_t *restrict arg, float *restrict dh)
{
    if (!arg)
        for (int64_t j = 0; j < count; j++)
            dh[j] += back[j];
    else
        for (int64_t j = 0; j < count; j++)
            dh[j] += arg[j] == u ? back[j] : 0.0f;
}

SL_INLINE void sl_kernel_aggregate_back_body(const struct sl_messages *messages,
                                             const struct sl_sparse *at, int64_t width,
                                             const float *g, int64_t ldg,
                                             const struct sl_numbering *rows, const int32_t *arg,
                                             int64_t ldarg, bool accumulate, float *dh,
                                             int64_t lddh)
{
    /* Of h + edge and h - edge, G itself; of products and quotients, those of G. */
    struct sl_messages back = *messages;
    float returned[PIECE];
    if (back.operation == SL_MESSAGE_ADD || back.operation == SL_MESSAGE_SUB)
        back.operation = SL_MESSAGE_COPY;
    for (int64_t r = 0; r < at->rows && !accumulate; r++)
        for (int64_t j = 0; j < width; j++)
            dh[r * lddh + j] = 0.0f;
    for (int64_t b = 0; b < at->blocks; b++)
        for (int64_t r = 0; r < at->rows; r++)
            for (uint32_t e = at->row_ptr[b * at->rows + r]; e < at->row_ptr[b * at->rows + r + 1];
                 e++) {
                const int64_t v = b * at->block_cols + sl_sparse_col(at, e);
                for (int64_t j = 0, count; j < width; j += count) {
                    count = least(width - j, PIECE);
                    send_piece(&back, e, j, count, g + v * ldg + j, returned);
                    return_piece(count, returned, vertex_of(rows, r),
                                 arg ? arg + v * ldarg + j : NULL, dh + r * lddh + j);
                }
            }
}

SL_DISPATCH(, sl_kernel_aggregate_back,
            (const struct sl_messages *messages, const struct sl_sparse *at, int64_t width,
             const float *g, int64_t ldg, const struct sl_numbering *rows, const int32_t *arg,
             int64_t ldarg, bool accumulate, float *dh, int64_t lddh),
            (messages, at, width, g, ldg, rows, arg, ldarg, accumulate, dh, lddh))

/* ---- The gradient of the edges ---- */

/* Of what vertex c sent, by the derivative with respect to the edge's feature. */
SL_INLINE void differentiate_piece(const struct sl_messages *m, uint32_t e, int64_t first,
                                   int64_t count, const float *restrict x, const float *restrict g,
                                   int32_t c, const int32_t *restrict arg, float *restrict out)
{
    const bool rows = m->ld > 0;
    const float *restrict edge = feature_of(m, e, first);
    switch (m->operation) {
    case SL_MESSAGE_ADD:
        memcpy(out, g, (size_t)count * sizeof *out);
        break;
    case SL_MESSAGE_SUB:
        for (int64_t j = 0; j < count; j++)
            out[j] = -g[j];
        break;
    case SL_MESSAGE_MUL:
        for (int64_t j = 0; j < count; j++)
            out[j] = g[j] * x[j];
        break;
    default:
        for (int64_t j = 0; j < count; j++) {
            const float divisor = rows ? edge[j] : *edge;
            out[j] = -g[j] * x[j] / (divisor * divisor);
        }
    }
    for (int64_t j = 0; arg && j < count; j++)
        out[j] = arg[j] == c ? out[j] : 0.0f;
}

SL_INLINE void sl_kernel_aggregate_edges_body(const struct sl_messages *messages,
                                              const struct sl_sparse *a, int64_t width,
                                              const float *h, int64_t ldh, const float *g,
                                              int64_t ldg, const struct sl_numbering *columns,
                                              const int32_t *arg, int64_t ldarg, float *de,
                                              int64_t ldde)
{
    float piece[PIECE] = {0};
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++)
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < a->row_ptr[b * a->rows + r + 1];
                 e++) {
                const int64_t c = b * a->block_cols + sl_sparse_col(a, e);
                float sum = 0.0f;
                for (int64_t j = 0, count; j < width; j += count) {
                    count = least(width - j, PIECE);
                    differentiate_piece(messages, e, j, count, h + c * ldh + j, g + r * ldg + j,
                                        vertex_of(columns, c), arg ? arg + r * ldarg + j : NULL,
                                        messages->ld ? de + e * ldde + j : piece);
                    for (int64_t i = 0; !messages->ld && i < count; i++)
                        sum += piece[i];
                }
                if (!messages->ld)
                    de[e] = sum;
            }
}

SL_DISPATCH(, sl_kernel_aggregate_edges,
            (const struct sl_messages *messages, const struct sl_sparse *a, int64_t width,
             const float *h, int64_t ldh, const float *g, int64_t ldg,
             const struct sl_numbering *columns, const int32_t *arg, int64_t ldarg, float *de,
             int64_t ldde),
            (messages, a, width, h, ldh, g, ldg, columns, arg, ldarg, de, ldde))

/* ---- Tasks: the largest of neighbours ---- */

/* What an entry of the adjacency sends: its row, or that times its weight. */
static struct sl_messages weighted(const struct sl_sparse *a)
{
    return (struct sl_messages){
        .operation = a->value ? SL_MESSAGE_MUL : SL_MESSAGE_COPY,
        .edge = a->value,
    };
}

static struct sl_numbering vertices_of(const struct largest_argument *arg, void *buffer)
{
    return (struct sl_numbering){arg->first, arg->listed ? sl_raw_buffer(buffer) : NULL};
}

/* largest_set, largest_add
 *   argument  struct largest_argument
 *   buffers   0    R      A, sparse tile (rows, cols)
 *             1    R      H (cols, width)
 *             2    R      listed: VERTICES (any, cols) of int32, row 0: those of the columns
 *             -2   W/RW   ARG (rows, width) of int32
 *             -1   W/RW   Z (rows, width) */
static void largest_cpu(void *buffers[], void *argument)
{
    const struct largest_argument *arg = argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_rows h = sl_rows_buffer(buffers[1]), z = sl_rows_buffer(out[1]);
    const struct sl_dense from = sl_dense_buffer(out[0]);
    const struct sl_messages messages = weighted(&a);
    const struct sl_numbering columns = vertices_of(arg, buffers[2]);
    sl_kernel_aggregate(SL_REDUCE_MAX, &messages, &a, from.cols, &h, arg->accumulate, &z, &columns,
                        sl_raw_buffer(out[0]), from.ld);
}

/* largest_back
 *   argument  struct largest_argument
 *   buffers   0    R      Aᵀ, sparse tile (rows, cols)
 *             1    R      G (cols, width)
 *             2    R      ARG (cols, width) of int32
 *             3    R      listed: VERTICES (any, rows) of int32, row 0: those of the rows
 *             -1   W/RW   DH (rows, width) */
static void largest_back_cpu(void *buffers[], void *argument)
{
    const struct largest_argument *arg = argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_dense g = sl_dense_buffer(buffers[1]), from = sl_dense_buffer(buffers[2]),
                          dh = sl_dense_buffer(buffers[3 + arg->listed]);
    const struct sl_messages messages = weighted(&at);
    const struct sl_numbering rows = vertices_of(arg, buffers[3]);
    sl_kernel_aggregate_back(&messages, &at, dh.cols, g.data, g.ld, &rows,
                             sl_raw_buffer(buffers[2]), from.ld, arg->accumulate, dh.data, dh.ld);
}

SL_CODELET_ANY(largest, 0xDAA520);
SL_CODELET_ANY(largest_back, 0xCD853F);

static void submit(struct sl_runtime *rt, const struct sl_largest_tiles *tiles, struct sl_task task)
{
    const struct largest_argument arg = {
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

void sl_submit_largest(struct sl_runtime *rt, const struct sl_largest_tiles *t)
{
    struct sl_task task = {.codelet = &largest_codelet, .count = 2, .tiles = {&t->a->tile, t->h}};
    if (t->vertices)
        task.tiles[task.count++] = t->vertices;
    task.tiles[task.count++] = t->arg;
    task.before_output = t->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    submit(rt, t, task);
}

void sl_submit_largest_back(struct sl_runtime *rt, const struct sl_largest_tiles *t)
{
    struct sl_task task = {
        .codelet = &largest_back_codelet, .count = 3, .tiles = {&t->a->tile, t->h, t->arg}};
    if (t->vertices)
        task.tiles[task.count++] = t->vertices;
    submit(rt, t, task);
}
