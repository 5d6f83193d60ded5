/* The largest of what neighbours send: a thread has an element of the result and walks over the
 * row's entries, in their order. */
#include "codelets/cuda.h"

namespace
{

enum { LANES = 32, ROWS = 8 }; /* of a block */

struct walk {
    sl_sparse a;
    int64_t width;
    sl_numbering vertices;
};

/* Rows go along the dimension of a grid that has most room. */
dim3 grid_of(int64_t rows, int64_t columns)
{
    return dim3((unsigned)sl_cuda_divide_up(rows, ROWS), (unsigned)columns);
}

__device__ int32_t vertex_of(const sl_numbering &vertices, int64_t k)
{
    return vertices.number ? vertices.number[k] : vertices.first + (int32_t)k;
}

__device__ float load(const sl_rows &x, int64_t r, int64_t j)
{
    return sl_cuda_load<1>(x, r, j, 1, false).at[0];
}

__device__ float send(const sl_sparse &a, uint32_t e, float x)
{
    return a.value ? x * a.value[e] : x;
}

/* As in max.c. */
__device__ bool takes(float m, int32_t c, float old, int32_t had)
{
    const bool nan = m != m, was_nan = old != old, same = m == old || (nan && was_nan);
    return had < 0 || ((m > old || nan) && !was_nan) || (same && c < had);
}

__global__ void forward(walk w, sl_rows h, bool accumulate, sl_rows z, int32_t *argmax,
                        int64_t ldarg)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y,
                  j = (int64_t)blockIdx.y * LANES + threadIdx.x;
    if (r >= w.a.rows || j >= w.width)
        return;
    const bool half = z.type == SL_BFLOAT16;
    float result = accumulate ? load(z, r, j) : 0.0f;
    int32_t from = accumulate ? argmax[r * ldarg + j] : -1;
    for (int64_t b = 0; b < w.a.blocks; b++)
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < w.a.row_ptr[b * w.a.rows + r + 1];
             e++) {
            const int64_t c = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
            const float sent = send(w.a, e, load(h, c, j)),
                        m = half ? __bfloat162float(__float2bfloat16_rn(sent)) : sent;
            if (takes(m, vertex_of(w.vertices, c), result, from)) {
                result = m;
                from = vertex_of(w.vertices, c);
            }
        }
    sl_cuda_store<1>(z, r, j, {{result}}, 1, false);
    argmax[r * ldarg + j] = from;
}

__global__ void merge(int64_t rows, int64_t width, const uint32_t *index, sl_rows x,
                      const int32_t *__restrict__ from, int64_t ldfrom, sl_rows z, int32_t *argmax,
                      int64_t ldarg)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y,
                  j = (int64_t)blockIdx.y * LANES + threadIdx.x;
    if (r >= rows || j >= width)
        return;
    const int64_t to = index ? index[r] : r;
    const int32_t vertex = from[r * ldfrom + j];
    const float m = load(x, r, j);
    if (vertex >= 0 && takes(m, vertex, load(z, to, j), argmax[to * ldarg + j])) {
        sl_cuda_store<1>(z, to, j, {{m}}, 1, false);
        argmax[to * ldarg + j] = vertex;
    }
}

__global__ void backward(walk w, const float *__restrict__ g, int64_t ldg,
                         const int32_t *__restrict__ argmax, int64_t ldarg, bool accumulate,
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
            if (argmax[v * ldarg + j] == vertex)
                sum += send(w.a, e, g[v * ldg + j]);
        }
    dh[r * lddh + j] = sum;
}

} // namespace

extern "C" void sl_cuda_max(const struct sl_sparse *a, int64_t width, const struct sl_rows *h,
                            bool accumulate, const struct sl_rows *z,
                            const struct sl_numbering *columns, int32_t *argmax, int64_t ldarg,
                            cudaStream_t stream)
{
    const walk w = {*a, width, *columns};
    if (a->rows == 0 || width == 0)
        return;
    sl_cuda_launch("max", forward, grid_of(a->rows, sl_cuda_divide_up(width, LANES)),
                   dim3(LANES, ROWS), 0, stream, w, *h, accumulate, *z, argmax, ldarg);
}

extern "C" void sl_cuda_max_merge(int64_t rows, int64_t width, const uint32_t *index,
                                  const struct sl_rows *x, const int32_t *from, int64_t ldfrom,
                                  const struct sl_rows *z, int32_t *argmax, int64_t ldarg,
                                  cudaStream_t stream)
{
    if (rows == 0 || width == 0)
        return;
    sl_cuda_launch("max_merge", merge, grid_of(rows, sl_cuda_divide_up(width, LANES)),
                   dim3(LANES, ROWS), 0, stream, rows, width, index, *x, from, ldfrom, *z, argmax,
                   ldarg);
}

extern "C" void sl_cuda_max_back(const struct sl_sparse *at, int64_t width, const float *g,
                                 int64_t ldg, const struct sl_numbering *rows,
                                 const int32_t *argmax, int64_t ldarg, bool accumulate, float *dh,
                                 int64_t lddh, cudaStream_t stream)
{
    const walk w = {*at, width, *rows};
    if (at->rows == 0 || width == 0)
        return;
    sl_cuda_launch("max_back", backward, grid_of(at->rows, sl_cuda_divide_up(width, LANES)),
                   dim3(LANES, ROWS), 0, stream, w, g, ldg, argmax, ldarg, accumulate, dh, lddh);
}

/* ---- Tasks ---- */

static sl_numbering vertices_of(const max_argument *arg, void *buffer)
{
    return {arg->first, arg->listed ? (const int32_t *)sl_raw_buffer(buffer) : nullptr};
}

extern "C" void max_cuda(void *buffers[], void *argument)
{
    const max_argument *arg = (const max_argument *)argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_rows h = sl_rows_buffer(buffers[1]), z = sl_rows_buffer(out[1]);
    const sl_dense argmax = sl_dense_buffer(out[0]);
    const sl_numbering columns = vertices_of(arg, buffers[2]);
    sl_cuda_max(&a, argmax.cols, &h, arg->accumulate, &z, &columns,
                (int32_t *)sl_raw_buffer(out[0]), argmax.ld, sl_cuda_task_stream());
}

extern "C" void max_merge_cuda(void *buffers[], void *argument)
{
    const max_merge_argument *arg = (const max_merge_argument *)argument;
    void **out = buffers + 2 + arg->listed;
    const sl_rows x = sl_rows_buffer(buffers[0]), z = sl_rows_buffer(out[1]),
                  sent = sl_rows_at(&x, arg->first, 0);
    const sl_dense from = sl_dense_buffer(buffers[1]), argmax = sl_dense_buffer(out[0]);
    const uint32_t *index = arg->listed ? (const uint32_t *)sl_raw_buffer(buffers[2]) : nullptr;
    sl_cuda_max_merge(arg->rows, argmax.cols, index ? index + arg->first : nullptr, &sent,
                      (const int32_t *)sl_raw_buffer(buffers[1]) + arg->first * from.ld, from.ld,
                      &z, (int32_t *)sl_raw_buffer(out[0]), argmax.ld, sl_cuda_task_stream());
}

extern "C" void max_back_cuda(void *buffers[], void *argument)
{
    const max_argument *arg = (const max_argument *)argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_dense g = sl_dense_buffer(buffers[1]), argmax = sl_dense_buffer(buffers[2]),
                   dh = sl_dense_buffer(buffers[3 + arg->listed]);
    const sl_numbering rows = vertices_of(arg, buffers[3]);
    sl_cuda_max_back(&at, dh.cols, g.data, g.ld, &rows, (const int32_t *)sl_raw_buffer(buffers[2]),
                     argmax.ld, arg->accumulate, dh.data, dh.ld, sl_cuda_task_stream());
}
