/* Counts of right and wrong labels: a block for each label, so that the order of additions is
 * fixed. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/label_counts.h"
}

namespace
{

enum { THREADS = 128 };

struct row {
    const float *z;
    const int32_t *value; /* values as bits of floats; NULL: the target is a class */
    int64_t labels;
    int32_t label;

    __device__ bool known(int64_t j) const
    {
        return !value || !isnan(__uint_as_float((uint32_t)value[j]));
    }

    __device__ bool is_true(int64_t j) const
    {
        return value ? __uint_as_float((uint32_t)value[j]) > 0.5f : j == label;
    }

    /* Return whether label j is the first largest logit, as on the CPU: a NaN at the start is the
     * largest. */
    __device__ bool is_first_largest(int64_t j) const
    {
        int64_t best = 0;
        for (int64_t k = 1; k < labels; k++)
            if (z[k] > z[best])
                best = k;
        return best == j;
    }

    __device__ bool predicted(enum sl_label_decision decision, int64_t j) const
    {
        if (!value)
            return is_first_largest(j);
        if (decision == SL_DECIDE_HALF)
            return z[j] > 0.0f;
        int64_t wanted = 0, before = 0;
        for (int64_t k = 0; k < labels; k++) {
            if (!known(k))
                continue;
            wanted += is_true(k);
            before += z[k] > z[j] || (z[k] == z[j] && k < j);
        }
        return before < wanted;
    }
};

/* Write the block's sums to counts (SL_TABLE_COUNTS): add lanes by a tree, then warps in order. */
__device__ __forceinline__ void sum_counts(uint32_t (&seen)[SL_TABLE_COUNTS], double *counts)
{
    auto &part = sl_cuda_shared<uint32_t[THREADS / 32][SL_TABLE_COUNTS]>();
    __syncthreads(); /* all threads have read the previous label */
#pragma unroll
    for (int i = 0; i < SL_TABLE_COUNTS; i++)
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            seen[i] += __shfl_xor_sync(0xFFFFFFFFu, seen[i], distance);
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < SL_TABLE_COUNTS; i++)
            part[threadIdx.x / 32][i] = seen[i];
    }
    __syncthreads();
    if (threadIdx.x < SL_TABLE_COUNTS) {
        uint32_t total = 0;
        for (int w = 0; w < THREADS / 32; w++)
            total += part[w][threadIdx.x];
        counts[threadIdx.x] = (double)total;
    }
}

__global__ void __launch_bounds__(THREADS)
    count_labels(sl_label_counts c, int64_t width, double *counts)
{
    for (int64_t j = blockIdx.x; j < c.labels; j += gridDim.x) {
        uint32_t seen[SL_TABLE_COUNTS] = {};
        for (int64_t r = threadIdx.x; r < c.rows; r += THREADS) {
            const int32_t *const target = c.target + r * width;
            const row row = {c.z + r * c.ldz,
                             c.form == SL_TARGET_VALUES ? target + SL_TARGET_FIRST : nullptr,
                             c.labels, target[SL_TARGET_LABEL]};
            if (row.label < 0 || !row.known(j))
                continue;
            const bool yes = row.predicted(c.decision, j);
            const int what = row.is_true(j) ? (yes ? SL_TRUE_POSITIVE : SL_FALSE_NEGATIVE)
                                            : (yes ? SL_FALSE_POSITIVE : SL_TRUE_NEGATIVE);
            const int at = target[SL_TARGET_SPLIT] * SL_LABEL_COUNTS + what;
#pragma unroll
            for (int i = 0; i < SL_TABLE_COUNTS; i++)
                seen[i] += i == at;
        }
        sum_counts(seen, counts + j * SL_TABLE_COUNTS);
    }
}

} // namespace

extern "C" void sl_cuda_label_counts(const struct sl_label_counts *c, double *counts,
                                     struct sl_cuda_queue queue)
{
    if (c->labels == 0)
        return;
    const unsigned blocks = (unsigned)(c->labels < 65535 ? c->labels : 65535);
    sl_cuda_launch("label_counts", count_labels, blocks, THREADS, 0, queue.stream, *c,
                   sl_target_width(c->form, c->labels), counts);
}

extern "C" void label_counts_cuda(void *buffers[], void *argument)
{
    const label_counts_argument *arg = (const label_counts_argument *)argument;
    const sl_dense z = sl_dense_buffer(buffers[1]);
    const struct sl_label_counts c = {
        arg->form, arg->decision, z.rows, z.cols, (const int32_t *)sl_raw_buffer(buffers[0]),
        z.data,    z.ld};
    sl_cuda_label_counts(&c, (double *)sl_raw_buffer(buffers[2]), sl_cuda_task_queue());
}
