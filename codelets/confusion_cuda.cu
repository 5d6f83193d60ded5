/* Counts of true and predicted classes: a block for each class, without atomic operations. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/confusion.h"
}

namespace
{

enum { THREADS = 128 };

/* Return the column of the first largest logit, as the CPU's kernel finds it. */
__device__ int64_t first_largest(const float *z, int64_t count)
{
    int64_t best = 0;
    for (int64_t j = 1; j < count; j++)
        if (z[j] > z[best])
            best = j;
    return best;
}

/* Count the rows of a class, THREADS at a time. Each thread reads one row; then each adds the rows
 * that predict its columns. */
__global__ void __launch_bounds__(THREADS)
    count_confusion(sl_confusion c, int64_t width, double *counts)
{
    auto &column = sl_cuda_shared<int64_t[THREADS]>();
    const int64_t columns = SL_SPLITS * c.classes;
    for (int64_t label = blockIdx.x; label < c.classes; label += gridDim.x)
        for (int64_t first = 0; first < c.rows; first += THREADS) {
            const int64_t r = first + threadIdx.x;
            const int32_t *const target = c.target + r * width;
            const bool counts_here = r < c.rows && target[SL_TARGET_LABEL] == label;
            column[threadIdx.x] = counts_here ? target[SL_TARGET_SPLIT] * c.classes +
                                                    first_largest(c.z + r * c.ldz, c.classes)
                                              : -1;
            __syncthreads();
            for (int64_t j = threadIdx.x; j < columns; j += THREADS) {
                int seen = 0;
                for (int t = 0; t < THREADS; t++)
                    seen += column[t] == j;
                if (seen > 0)
                    counts[label * columns + j] += (double)seen;
            }
            __syncthreads(); /* all threads have read the columns */
        }
}

} // namespace

extern "C" void sl_cuda_confusion(const struct sl_confusion *c, double *counts,
                                  struct sl_cuda_queue queue)
{
    if (c->classes == 0)
        return;
    const unsigned blocks = (unsigned)(c->classes < 65535 ? c->classes : 65535);
    sl_cuda_launch("confusion", count_confusion, blocks, THREADS, 0, queue.stream, *c,
                   sl_target_width(SL_TARGET_CLASS, c->classes), counts);
}

extern "C" void confusion_cuda(void *buffers[], void *argument)
{
    const sl_dense z = sl_dense_buffer(buffers[1]);
    const struct sl_confusion c = {z.rows, z.cols, (const int32_t *)sl_raw_buffer(buffers[0]),
                                   z.data, z.ld};
    (void)argument;
    sl_cuda_confusion(&c, (double *)sl_raw_buffer(buffers[2]), sl_cuda_task_queue());
}
