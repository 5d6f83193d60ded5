/* The aggregation primitive: a thread has an element of the result and walks over the row's
 * entries, in their order. */
#include "codelets/cuda.h"

namespace
{

enum { LANES = 32, ROWS = 8 }; /* of a block */

struct walk {
    sl_messages messages;
    sl_sparse a;
    int64_t width;
    sl_numbering vertices;
};

/* Rows go along the dimension of a grid that has most room. */
dim3 grid_of(int64_t rows, int64_t columns)
{
    return dim3((unsigned)sl_cuda_divide_up(rows, ROWS), (unsigned)columns);
}

__device__ float edge_of(const sl_messages &m, uint32_t e, int64_t j)
{
    return m.ld ? m.edge[e * m.ld + j] : m.edge[e];
}

__device__ float send(const sl_messages &m, uint32_t e, int64_t j, float x)
{
    switch (m.operation) {
    case SL_MESSAGE_ADD:
        return x + edge_of(m, e, j);
    case SL_MESSAGE_SUB:
        return x - edge_of(m, e, j);
    case SL_MESSAGE_MUL:
        return x * edge_of(m, e, j);
    case SL_MESSAGE_DIV:
        return x / edge_of(m, e, j);
    default:
        return x;
    }
}

__device__ int32_t vertex_of(const sl_numbering &vertices, int64_t k)
{
    return vertices.number ? vertices.number[k] : vertices.first + (int32_t)k;
}

__device__ float load(const sl_rows &x, int64_t r, int64_t j)
{
    return sl_cuda_load<1>(x, r, j, 1, false).at[0];
}

/* As in aggregate.c. */
__device__ bool takes(bool largest, float m, int32_t c, float old, int32_t from)
{
    const bool better = largest ? m > old : m < old, nan = m != m, was_nan = old != old;
    const bool same = m == old || (nan && was_nan);
    return from < 0 || ((better || nan) && !was_nan) || (same && c < from);
}

__global__ void aggregate(sl_reduce reducer, walk w, sl_rows h, bool accumulate, sl_rows z,
                          int32_t *arg, int64_t ldarg)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y,
                  j = (int64_t)blockIdx.y * LANES + threadIdx.x;
    if (r >= w.a.rows || j >= w.width)
        return;
    const bool chooses = reducer != SL_REDUCE_SUM, half = z.type == SL_BFLOAT16;
    float result = accumulate ? load(z, r, j) : 0.0f;
    int32_t from = accumulate && chooses ? arg[r * ldarg + j] : -1;
    for (int64_t b = 0; b < w.a.blocks; b++)
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < w.a.row_ptr[b * w.a.rows + r + 1];
             e++) {
            const int64_t c = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
            const float sent = send(w.messages, e, j, load(h, c, j)),
                        m = half ? __bfloat162float(__float2bfloat16_rn(sent)) : sent;
            if (!chooses) {
                result += m;
            } else if (takes(reducer == SL_REDUCE_MAX, m, vertex_of(w.vertices, c), result, from)) {
                result = m;
                from = vertex_of(w.vertices, c);
            }
        }
    sl_cuda_store<1>(z, r, j, {{result}}, 1, false);
    if (chooses)
        arg[r * ldarg + j] = from;
}

__global__ void aggregate_back(walk w, const float *__restrict__ g, int64_t ldg,
                               const int32_t *__restrict__ arg, int64_t ldarg, bool accumulate,
                               float *dh, int64_t lddh)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y,
                  j = (int64_t)blockIdx.y * LANES + threadIdx.x;
    if (r >= w.a.rows || j >= w.width)
        return;
    const int32_t vertex = vertex_of(w.vertices, r);
    float sum = accumulate ? dh[r * lddh + j] : 0.0f;
    for (int64_t b = 0; b < w.a.blocks; b++)
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < w.a.row_ptr[b * w.a.rows + r + 1];
             e++) {
            const int64_t v = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
            if (!arg || arg[v * ldarg + j] == vertex)
                sum += send(w.messages, e, j, g[v * ldg + j]);
        }
    dh[r * lddh + j] = sum;
}

__device__ float differentiate(const sl_messages &m, uint32_t e, int64_t j, float x, float g)
{
    switch (m.operation) {
    case SL_MESSAGE_ADD:
        return g;
    case SL_MESSAGE_SUB:
        return -g;
    case SL_MESSAGE_MUL:
        return g * x;
    default: {
        const float edge = edge_of(m, e, j);
        return -g * x / (edge * edge);
    }
    }
}

/* A warp has a row of A; where an edge has one number, its lanes add up theirs. */
__global__ void aggregate_edges(walk w, const float *__restrict__ h, int64_t ldh,
                                const float *__restrict__ g, int64_t ldg,
                                const int32_t *__restrict__ arg, int64_t ldarg, float *de,
                                int64_t ldde)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= w.a.rows)
        return;
    for (int64_t b = 0; b < w.a.blocks; b++)
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < w.a.row_ptr[b * w.a.rows + r + 1];
             e++) {
            const int64_t c = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
            float sum = 0.0f;
            for (int64_t j = threadIdx.x; j < w.width; j += LANES) {
                const bool chosen = !arg || arg[r * ldarg + j] == vertex_of(w.vertices, c);
                const float d =
                    chosen ? differentiate(w.messages, e, j, h[c * ldh + j], g[r * ldg + j]) : 0.0f;
                if (w.messages.ld)
                    de[e * ldde + j] = d;
                else
                    sum += d;
            }
            for (int step = LANES / 2; step > 0; step /= 2)
                sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
            if (!w.messages.ld && threadIdx.x == 0)
                de[e] = sum;
        }
}

} // namespace

extern "C" void sl_cuda_aggregate(enum sl_reduce reducer, const struct sl_messages *messages,
                                  const struct sl_sparse *a, int64_t width, const struct sl_rows *h,
                                  bool accumulate, const struct sl_rows *z,
                                  const struct sl_numbering *columns, int32_t *arg, int64_t ldarg,
                                  cudaStream_t stream)
{
    const walk w = {*messages, *a, width, *columns};
    if (a->rows == 0 || width == 0)
        return;
    sl_cuda_launch("aggregate", aggregate, grid_of(a->rows, sl_cuda_divide_up(width, LANES)),
                   dim3(LANES, ROWS), 0, stream, reducer, w, *h, accumulate, *z, arg, ldarg);
}

extern "C" void sl_cuda_aggregate_back(const struct sl_messages *messages,
                                       const struct sl_sparse *at, int64_t width, const float *g,
                                       int64_t ldg, const struct sl_numbering *rows,
                                       const int32_t *arg, int64_t ldarg, bool accumulate,
                                       float *dh, int64_t lddh, cudaStream_t stream)
{
    walk w = {*messages, *at, width, *rows};
    if (at->rows == 0 || width == 0)
        return;
    if (w.messages.operation == SL_MESSAGE_ADD || w.messages.operation == SL_MESSAGE_SUB)
        w.messages.operation = SL_MESSAGE_COPY;
    sl_cuda_launch("aggregate_back", aggregate_back,
                   grid_of(at->rows, sl_cuda_divide_up(width, LANES)), dim3(LANES, ROWS), 0, stream,
                   w, g, ldg, arg, ldarg, accumulate, dh, lddh);
}

extern "C" void sl_cuda_aggregate_edges(const struct sl_messages *messages,
                                        const struct sl_sparse *a, int64_t width, const float *h,
                                        int64_t ldh, const float *g, int64_t ldg,
                                        const struct sl_numbering *columns, const int32_t *arg,
                                        int64_t ldarg, float *de, int64_t ldde, cudaStream_t stream)
{
    const walk w = {*messages, *a, width, *columns};
    if (a->rows == 0)
        return;
    sl_cuda_launch("aggregate_edges", aggregate_edges, grid_of(a->rows, 1), dim3(LANES, ROWS), 0,
                   stream, w, h, ldh, g, ldg, arg, ldarg, de, ldde);
}

/* ---- Tasks ---- */

static sl_messages weighted(const struct sl_sparse &a)
{
    return {a.value ? SL_MESSAGE_MUL : SL_MESSAGE_COPY, a.value, 0};
}

static sl_numbering vertices_of(const largest_argument *arg, void *buffer)
{
    return {arg->first, arg->listed ? (const int32_t *)sl_raw_buffer(buffer) : nullptr};
}

extern "C" void largest_cuda(void *buffers[], void *argument)
{
    const largest_argument *arg = (const largest_argument *)argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_rows h = sl_rows_buffer(buffers[1]), z = sl_rows_buffer(out[1]);
    const sl_dense from = sl_dense_buffer(out[0]);
    const sl_messages messages = weighted(a);
    const sl_numbering columns = vertices_of(arg, buffers[2]);
    sl_cuda_aggregate(SL_REDUCE_MAX, &messages, &a, from.cols, &h, arg->accumulate, &z, &columns,
                      (int32_t *)sl_raw_buffer(out[0]), from.ld, sl_cuda_task_stream());
}

extern "C" void largest_back_cuda(void *buffers[], void *argument)
{
    const largest_argument *arg = (const largest_argument *)argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_dense g = sl_dense_buffer(buffers[1]), from = sl_dense_buffer(buffers[2]),
                   dh = sl_dense_buffer(buffers[3 + arg->listed]);
    const sl_messages messages = weighted(at);
    const sl_numbering rows = vertices_of(arg, buffers[3]);
    sl_cuda_aggregate_back(&messages, &at, dh.cols, g.data, g.ld, &rows,
                           (const int32_t *)sl_raw_buffer(buffers[2]), from.ld, arg->accumulate,
                           dh.data, dh.ld, sl_cuda_task_stream());
}
