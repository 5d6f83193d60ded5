/* Rows that travel, on a GPU. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/pack_rows.h"
}

namespace
{

/* Set Y(r) = X(index[r]) if PACKS, else Y(index[r]) = [Y(index[r]) +] X(r), where no row is listed
 * twice. A thread has V elements of a row. */
template <int V, bool PACKS>
__global__ void move(int64_t count, int64_t cols, const uint32_t *index, bool accumulate, sl_rows x,
                     sl_rows y)
{
    const int64_t units = (cols + V - 1) / V, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t u = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; u < count * units; u += step) {
        const int64_t r = u / units, j = u % units * V, left = cols - j;
        const int64_t from = PACKS ? index[r] : r, to = PACKS ? r : index[r];
        sl_cuda_vector<V> v = sl_cuda_load<V>(x, from, j, left, true);
        if (accumulate) {
            const sl_cuda_vector<V> sum = sl_cuda_load<V>(y, to, j, left, true);
#pragma unroll
            for (int i = 0; i < V; i++)
                v.at[i] += sum.at[i];
        }
        sl_cuda_store<V>(y, to, j, v, left, true);
    }
}

template <bool PACKS>
void launch(const char *name, int64_t count, int64_t cols, const uint32_t *index, bool accumulate,
            const sl_rows &x, const sl_rows &y, cudaStream_t stream)
{
    enum { THREADS = 256, MOST_BLOCKS = 65536 };
    const bool aligned = sl_cuda_aligned(2, x) && sl_cuda_aligned(2, y);
    const int64_t units = count * sl_cuda_divide_up(cols, aligned ? 4 : 1);
    const int64_t blocks = sl_cuda_divide_up(units, THREADS);
    const unsigned grid = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
    if (units == 0)
        return;
    sl_cuda_launch(name, aligned ? move<4, PACKS> : move<1, PACKS>, grid, THREADS, 0, stream, count,
                   cols, index, accumulate, x, y);
}

} // namespace

extern "C" void sl_cuda_pack_rows(int64_t count, int64_t cols, const uint32_t *index,
                                  const struct sl_rows *x, const struct sl_rows *y,
                                  struct sl_cuda_queue queue)
{
    launch<true>("pack_rows", count, cols, index, false, *x, *y, queue.stream);
}

extern "C" void sl_cuda_unpack_rows(int64_t count, int64_t cols, const uint32_t *index,
                                    bool accumulate, const struct sl_rows *x,
                                    const struct sl_rows *y, struct sl_cuda_queue queue)
{
    launch<false>("unpack_rows", count, cols, index, accumulate, *x, *y, queue.stream);
}

extern "C" void pack_rows_cuda(void *buffers[], void *argument)
{
    const pack_argument *arg = (const pack_argument *)argument;
    const uint32_t *index = (const uint32_t *)sl_raw_buffer(buffers[0]);
    const sl_rows y = sl_rows_buffer(buffers[1 + arg->tiles]);
    const int64_t cols = STARPU_MATRIX_GET_NX(buffers[1 + arg->tiles]);
    const struct sl_cuda_queue queue = sl_cuda_task_queue();
    for (int t = 0; t < arg->tiles; t++) {
        const sl_rows x = sl_rows_buffer(buffers[1 + t]), to = sl_rows_at(&y, arg->first[t], 0);
        sl_cuda_pack_rows(arg->first[t + 1] - arg->first[t], cols, index + arg->first[t], &x, &to,
                          queue);
    }
}

extern "C" void unpack_rows_cuda(void *buffers[], void *argument)
{
    const unpack_argument *arg = (const unpack_argument *)argument;
    const uint32_t *index = (const uint32_t *)sl_raw_buffer(buffers[0]);
    const sl_rows x = sl_rows_buffer(buffers[1]), y = sl_rows_buffer(buffers[2]),
                  from = sl_rows_at(&x, arg->first, 0);
    sl_cuda_unpack_rows(arg->count, STARPU_MATRIX_GET_NX(buffers[2]), index + arg->first,
                        arg->accumulate, &from, &y, sl_cuda_task_queue());
}
