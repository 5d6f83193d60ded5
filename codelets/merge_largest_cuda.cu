/* The larger of two states: a thread has an element. */
#include "codelets/cuda.h"

namespace
{

__global__ void merge(int64_t rows, int64_t width, const uint32_t *index, sl_rows x,
                      const int32_t *__restrict__ from, int64_t ldfrom, sl_rows z, int32_t *arg,
                      int64_t ldarg)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t u = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; u < rows * width; u += step) {
        const int64_t r = u / width, j = u % width, to = index ? index[r] : r;
        const float m = sl_cuda_load<1>(x, r, j, 1, false).at[0],
                    old = sl_cuda_load<1>(z, to, j, 1, false).at[0];
        const int32_t vertex = from[r * ldfrom + j], had = arg[to * ldarg + j];
        const bool nan = m != m, was_nan = old != old, same = m == old || (nan && was_nan);
        if (vertex >= 0 && (had < 0 || ((m > old || nan) && !was_nan) || (same && vertex < had))) {
            sl_cuda_store<1>(z, to, j, {{m}}, 1, false);
            arg[to * ldarg + j] = vertex;
        }
    }
}

} // namespace

extern "C" void sl_cuda_merge_largest(int64_t rows, int64_t width, const uint32_t *index,
                                      const struct sl_rows *x, const int32_t *from, int64_t ldfrom,
                                      const struct sl_rows *z, int32_t *arg, int64_t ldarg,
                                      cudaStream_t stream)
{
    enum { THREADS = 256, MOST_BLOCKS = 65536 };
    const int64_t blocks = sl_cuda_divide_up(rows * width, THREADS);
    if (blocks == 0)
        return;
    sl_cuda_launch("merge_largest", merge, (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                   THREADS, 0, stream, rows, width, index, *x, from, ldfrom, *z, arg, ldarg);
}

extern "C" void merge_largest_cuda(void *buffers[], void *argument)
{
    const merge_argument *arg = (const merge_argument *)argument;
    void **out = buffers + 2 + arg->listed;
    const sl_rows x = sl_rows_buffer(buffers[0]), z = sl_rows_buffer(out[1]),
                  sent = sl_rows_at(&x, arg->first, 0);
    const sl_dense from = sl_dense_buffer(buffers[1]), to = sl_dense_buffer(out[0]);
    const uint32_t *index = arg->listed ? (const uint32_t *)sl_raw_buffer(buffers[2]) : NULL;
    sl_cuda_merge_largest(arg->rows, to.cols, index ? index + arg->first : NULL, &sent,
                          (const int32_t *)from.data + arg->first * from.ld, from.ld, &z,
                          (int32_t *)to.data, to.ld, sl_cuda_task_stream());
}
