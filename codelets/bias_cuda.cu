#include "codelets/cuda.h"

extern "C" {
#include "codelets/bias.h"
}

namespace
{

/* Column sums in a fixed order. The shape alone cuts the rows into chunks. A block sums some
 * columns of one chunk into the workspace: first each thread row, then a tree over the thread rows.
 * A second launch sums the chunks in the same way. */
enum {
    THREADS = 256,
    MOST_CHUNKS = 512,
    LEAST_ROWS = 64,      /* least rows of a chunk */
    CHUNK_SUMS = 1 << 16, /* most sums of all chunks together */
};
static_assert(CHUNK_SUMS * sizeof(float) <= SL_RUNTIME_WORKSPACE, "the chunks' sums have room");

/* Set out(j) = Σ factor(r)·G(r, j) over r in [begin, end), for the block's columns. */
__device__ void sum_columns(int64_t begin, int64_t end, int64_t cols, const float *factor,
                            const sl_rows &g, float *out)
{
    auto &part = sl_cuda_shared<float[THREADS]>();
    const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int own = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    float sum = 0.0f;
    if (j < cols) {
#pragma unroll 8
        for (int64_t r = begin + threadIdx.y; r < end; r += blockDim.y)
            sum = fmaf(factor ? factor[r] : 1.0f, sl_cuda_element(g, r, j), sum);
    }
    part[own] = sum;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            part[own] += part[own + (int)(half * blockDim.x)];
    }
    if (threadIdx.y == 0 && j < cols)
        out[j] = part[own];
}

__global__ void __launch_bounds__(THREADS) sum_chunk(int64_t rows, int64_t chunk, int64_t cols,
                                                     const float *factor, sl_rows g, float *sums)
{
    const int64_t begin = (int64_t)blockIdx.y * chunk,
                  end = begin + chunk < rows ? begin + chunk : rows;
    sum_columns(begin, end, cols, factor, g, sums + (int64_t)blockIdx.y * cols);
}

__global__ void __launch_bounds__(THREADS)
    sum_chunks(int64_t chunks, int64_t cols, sl_rows sums, float *out)
{
    sum_columns(0, chunks, cols, NULL, sums, out);
}

__global__ void __launch_bounds__(THREADS)
    sum_rows(int64_t rows, int64_t cols, const float *factor, sl_rows g, float *out)
{
    sum_columns(0, rows, cols, factor, g, out);
}

} // namespace

extern "C" void sl_cuda_bias_gradient(int64_t rows, int64_t cols, const float *factor,
                                      const struct sl_rows *g, float *db,
                                      struct sl_cuda_queue queue)
{
    float *const sums = (float *)queue.workspace; // (chunks, cols)
    if (cols == 0)
        return;
    unsigned across = 4;
    while (across < 32 && across < cols)
        across *= 2;
    const dim3 block(across, THREADS / across);
    const unsigned panels = (unsigned)sl_cuda_divide_up(cols, across);
    int64_t chunk = sl_cuda_divide_up(rows, MOST_CHUNKS);
    if (chunk < LEAST_ROWS)
        chunk = LEAST_ROWS;
    if (cols <= CHUNK_SUMS && chunk < sl_cuda_divide_up(rows, CHUNK_SUMS / cols))
        chunk = sl_cuda_divide_up(rows, CHUNK_SUMS / cols);
    const int64_t chunks = sl_cuda_divide_up(rows, chunk);
    if (chunks <= 1 || cols > CHUNK_SUMS) {
        sl_cuda_launch("bias_gradient", sum_rows, panels, block, 0, queue.stream, rows, cols,
                       factor, *g, db);
    } else {
        sl_cuda_launch("bias_gradient, chunks", sum_chunk, dim3(panels, (unsigned)chunks), block, 0,
                       queue.stream, rows, chunk, cols, factor, *g, sums);
        sl_cuda_launch("bias_gradient, sum", sum_chunks, panels, block, 0, queue.stream, chunks,
                       cols, sl_float_rows(sums, cols), db);
    }
}

extern "C" void bias_gradient_cuda(void *buffers[], void *argument)
{
    const bias_gradient_argument *arg = (const bias_gradient_argument *)argument;
    const sl_dense gradient = sl_dense_buffer(buffers[2]);
    const sl_rows g = sl_rows_buffer(buffers[1]);
    sl_cuda_bias_gradient(arg->zero ? 0 : STARPU_MATRIX_GET_NY(buffers[1]),
                          STARPU_MATRIX_GET_NX(buffers[1]), sl_row_scale(buffers[0], arg->factor),
                          &g, gradient.data + arg->bias_row * gradient.ld, sl_cuda_task_queue());
}
