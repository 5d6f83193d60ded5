/* Sums of squares in a fixed order, and the clipping of gradients by their norm. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/clip.h"
}

namespace
{

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    MOST_BLOCKS = 1024,
    ENTRIES = 4096 /* threads and warps of a block; most blocks */
};
static_assert(MOST_BLOCKS * sizeof(double) <= SL_RUNTIME_WORKSPACE, "all sums have room");

/* Return the block's sum in thread (0, 0): add lanes by a tree, then warps in order. */
__device__ __forceinline__ double sum_block(double sum)
{
    auto &part = sl_cuda_shared<double[WARPS]>();
    const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
    if (own % 32 == 0)
        part[own / 32] = sum;
    __syncthreads();
    double total = 0.0;
    if (own == 0)
        for (int w = 0; w < WARPS; w++)
            total += part[w];
    return total;
}

/* Sum the squares of a block's elements. Block (x, y) has the rows x·d + …, d at a time, and the
 * columns y·a + … */
__global__ void __launch_bounds__(THREADS)
    square_part(int64_t rows, int64_t cols, const float *x, int64_t ldx, double *sums)
{
    double sum = 0.0;
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < rows;
         r += (int64_t)gridDim.x * blockDim.y)
        for (int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; j < cols;
             j += (int64_t)gridDim.y * blockDim.x) {
            const double value = x[r * ldx + j];
            sum = fma(value, value, sum);
        }
    sum = sum_block(sum);
    if (threadIdx.x == 0 && threadIdx.y == 0)
        sums[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS)
    add_parts(int count, const double *sums, bool accumulate, double *out)
{
    double sum = 0.0;
    for (int b = (int)threadIdx.x; b < count; b += THREADS)
        sum += sums[b];
    sum = sum_block(sum);
    if (threadIdx.x == 0)
        *out = accumulate ? *out + sum : sum;
}

struct clipped {
    double limit;
    const double *squares;
    const float *x;
    int64_t ldx;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const double factor = limit / sqrt(*squares);
        const float times = factor < 1.0 ? (float)factor : 1.0f;
        sl_cuda_vector<V> v = sl_cuda_load<V>(x + r * ldx + j, count);
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] *= times;
        return v;
    }
};

} // namespace

extern "C" void sl_cuda_square_sum(int64_t rows, int64_t cols, const float *x, int64_t ldx,
                                   bool accumulate, double *sum, struct sl_cuda_queue queue)
{
    double *const sums = (double *)queue.workspace;
    sl_cuda_flatten(&rows, &cols, ldx == cols);
    unsigned across = 1;
    while (across < THREADS && across < cols)
        across *= 2;
    const unsigned down = THREADS / across;
    const int64_t wanted = sl_cuda_divide_up(rows * cols, ENTRIES), most = MOST_BLOCKS;
    const int64_t blocks = wanted < 1 ? 1 : wanted < most ? wanted : most;
    const int64_t panels = sl_cuda_divide_up(rows, down);
    const unsigned grid_x = (unsigned)(panels < 1 ? 1 : panels < blocks ? panels : blocks);
    const dim3 grid(grid_x, (unsigned)(blocks / grid_x));
    sl_cuda_launch("square_sum", square_part, grid, dim3(across, down), 0, queue.stream, rows, cols,
                   x, ldx, sums);
    sl_cuda_launch("square_sum, blocks", add_parts, 1, THREADS, 0, queue.stream,
                   (int)(grid.x * grid.y), sums, accumulate, sum);
}

extern "C" void sl_cuda_clip(int64_t rows, int64_t cols, double limit, const double *squares,
                             float *x, int64_t ldx, struct sl_cuda_queue queue)
{
    sl_cuda_flatten(&rows, &cols, ldx == cols);
    sl_cuda_launch_each("clip", rows, cols, sl_cuda_aligned(rows, x, ldx),
                        clipped{limit, squares, x, ldx}, x, ldx, queue.stream);
}

extern "C" void square_sum_cuda(void *buffers[], void *argument)
{
    const square_sum_argument *arg = (const square_sum_argument *)argument;
    const sl_dense x = sl_dense_buffer(buffers[0]);
    sl_cuda_square_sum(x.rows - arg->averages, x.cols, x.data, x.ld, arg->accumulate,
                       (double *)sl_raw_buffer(buffers[1]), sl_cuda_task_queue());
}

extern "C" void clip_cuda(void *buffers[], void *argument)
{
    const clip_argument *arg = (const clip_argument *)argument;
    const sl_dense x = sl_dense_buffer(buffers[1]);
    sl_cuda_clip(x.rows - arg->averages, x.cols, arg->limit,
                 (const double *)sl_raw_buffer(buffers[0]), x.data, x.ld, sl_cuda_task_queue());
}
