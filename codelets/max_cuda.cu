/* The largest value of the neighbours: a thread has an element of the result and walks over the
 * row's entries, in their order. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/max.h"
}

namespace
{

enum { LANES = 32, ROWS = 8 }; /* threads of a block: columns, rows */

struct walk {
    sl_sparse a;
    int64_t width;
    sl_numbering vertices;
};

/* Return the grid. Rows go along its first dimension, which has most room. */
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

/* Return whether value m of vertex c replaces value `old` of vertex `had`, as in max.c. */
__device__ bool takes(float m, int32_t c, float old, int32_t had)
{
    const bool nan = m != m, was_nan = old != old, same = m == old || (nan && was_nan);
    return had < 0 || ((m > old || nan) && !was_nan) || (same && c < had);
}

__global__ void forward(walk w, sl_rows h, bool accumulate, sl_rows z, sl_argmax argmax)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y,
                  j = (int64_t)blockIdx.y * LANES + threadIdx.x;
    if (r >= w.a.rows || j >= w.width)
        return;
    const bool half = z.type == SL_BFLOAT16;
    float result = accumulate ? load(z, r, j) : 0.0f;
    int32_t from = accumulate ? argmax.vertex[r * argmax.ld + j] : -1;
    for (int64_t b = 0; b < w.a.blocks; b++)
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < w.a.row_ptr[b * w.a.rows + r + 1];
             e++) {
            const int64_t c = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
            const float sent = send(w.a, e, load(h, c, j)),
                        m = half ? __bfloat162float(__float2bfloat16_rn(sent)) : sent;
            if (takes(argmax.sign * m, vertex_of(w.vertices, c), argmax.sign * result, from)) {
                result = m;
                from = vertex_of(w.vertices, c);
            }
        }
    sl_cuda_store<1>(z, r, j, {{result}}, 1, false);
    argmax.vertex[r * argmax.ld + j] = from;
}

__global__ void merge(int64_t rows, int64_t width, const uint32_t *index, sl_rows x, sl_argmax from,
                      sl_rows z, sl_argmax argmax)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y,
                  j = (int64_t)blockIdx.y * LANES + threadIdx.x;
    if (r >= rows || j >= width)
        return;
    const int64_t to = index ? index[r] : r;
    const int32_t vertex = from.vertex[r * from.ld + j];
    int32_t *const own = argmax.vertex + to * argmax.ld + j;
    const float m = load(x, r, j);
    if (vertex >= 0 && takes(argmax.sign * m, vertex, argmax.sign * load(z, to, j), *own)) {
        sl_cuda_store<1>(z, to, j, {{m}}, 1, false);
        *own = vertex;
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
                            const struct sl_numbering *columns, const struct sl_argmax *argmax,
                            struct sl_cuda_queue queue)
{
    const walk w = {*a, width, *columns};
    if (a->rows == 0 || width == 0)
        return;
    sl_cuda_launch("max", forward, grid_of(a->rows, sl_cuda_divide_up(width, LANES)),
                   dim3(LANES, ROWS), 0, queue.stream, w, *h, accumulate, *z, *argmax);
}

extern "C" void sl_cuda_max_merge(int64_t rows, int64_t width, const uint32_t *index,
                                  const struct sl_rows *x, const struct sl_argmax *from,
                                  const struct sl_rows *z, const struct sl_argmax *argmax,
                                  struct sl_cuda_queue queue)
{
    if (rows == 0 || width == 0)
        return;
    sl_cuda_launch("max_merge", merge, grid_of(rows, sl_cuda_divide_up(width, LANES)),
                   dim3(LANES, ROWS), 0, queue.stream, rows, width, index, *x, *from, *z, *argmax);
}

extern "C" void sl_cuda_max_back(const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
                                 const struct sl_numbering *rows, const struct sl_argmax *argmax,
                                 bool accumulate, const struct sl_rows *dh,
                                 struct sl_cuda_queue queue)
{
    const walk w = {*at, width, *rows};
    if (at->rows == 0 || width == 0)
        return;
    sl_cuda_launch("max_back", backward, grid_of(at->rows, sl_cuda_divide_up(width, LANES)),
                   dim3(LANES, ROWS), 0, queue.stream, w, (const float *)g->data, g->ld,
                   argmax->vertex, argmax->ld, accumulate, (float *)dh->data, dh->ld);
}

/* ---- Tasks ---- */

static sl_numbering vertices_of(const max_argument *arg, void *buffer)
{
    return {arg->first, arg->listed ? (const int32_t *)sl_raw_buffer(buffer) : nullptr};
}

static sl_argmax argmax_of(void *buffer, int64_t first, float sign)
{
    const sl_dense tile = sl_dense_buffer(buffer);
    return {(int32_t *)sl_raw_buffer(buffer) + first * tile.ld, tile.ld, sign};
}

extern "C" void max_cuda(void *buffers[], void *argument)
{
    const max_argument *arg = (const max_argument *)argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_rows h = sl_rows_buffer(buffers[1]), z = sl_rows_buffer(out[1]);
    const sl_argmax argmax = argmax_of(out[0], 0, arg->sign);
    const sl_numbering columns = vertices_of(arg, buffers[2]);
    sl_cuda_max(&a, sl_dense_buffer(out[0]).cols, &h, arg->accumulate, &z, &columns, &argmax,
                sl_cuda_task_queue());
}

extern "C" void max_merge_cuda(void *buffers[], void *argument)
{
    const max_merge_argument *arg = (const max_merge_argument *)argument;
    void **out = buffers + 2 + arg->listed;
    const sl_rows x = sl_rows_buffer(buffers[0]), z = sl_rows_buffer(out[1]),
                  sent = sl_rows_at(&x, arg->first, 0);
    const sl_argmax from = argmax_of(buffers[1], arg->first, arg->sign),
                    argmax = argmax_of(out[0], 0, arg->sign);
    const uint32_t *index = arg->listed ? (const uint32_t *)sl_raw_buffer(buffers[2]) : nullptr;
    sl_cuda_max_merge(arg->rows, sl_dense_buffer(out[0]).cols, index ? index + arg->first : nullptr,
                      &sent, &from, &z, &argmax, sl_cuda_task_queue());
}

extern "C" void max_back_cuda(void *buffers[], void *argument)
{
    const max_argument *arg = (const max_argument *)argument;
    void *out = buffers[3 + arg->listed];
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_rows g = sl_rows_buffer(buffers[1]), dh = sl_rows_buffer(out);
    const sl_argmax argmax = argmax_of(buffers[2], 0, arg->sign);
    const sl_numbering rows = vertices_of(arg, buffers[3]);
    sl_cuda_max_back(&at, sl_dense_buffer(out).cols, &g, &rows, &argmax, arg->accumulate, &dh,
                     sl_cuda_task_queue());
}
