/* Scores of labels, as integers that sort as the scores do: a thread per row. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/label_scores.h"
}

namespace
{

enum { THREADS = 128, MOST_BLOCKS = 65535 };

__device__ __forceinline__ uint32_t sortable(float score)
{
    const uint32_t bits = __float_as_uint(score + 0.0f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ double level_of(const sl_label_scores &s, const float *z)
{
    double largest = (double)z[0], sum = 0.0;
    if (s.form == SL_TARGET_VALUES)
        return 0.0;
    if (s.labels == 2)
        return largest;
    for (int64_t j = 1; j < s.labels; j++)
        largest = fmax(largest, (double)z[j]);
    for (int64_t j = 0; j < s.labels; j++)
        sum += exp((double)z[j] - largest);
    return largest + log(sum);
}

__global__ void __launch_bounds__(THREADS)
    score_labels(sl_label_scores s, int64_t width, uint64_t *scores)
{
    const bool several = s.form == SL_TARGET_VALUES, pair = !several && s.labels == 2;
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x; r < s.rows; r += step) {
        const int32_t *const target = s.target + r * width;
        const int32_t label = target[SL_TARGET_LABEL];
        const float *const z = s.z + r * s.ldz;
        const double level = level_of(s, z);
        for (int64_t k = 0; k < s.count; k++) {
            const int64_t j = s.first + k + pair;
            const float value =
                several ? __uint_as_float((uint32_t)target[SL_TARGET_FIRST + j]) : 0.0f;
            const bool known = label >= 0 && !isnan(value);
            const bool has = known && (several ? value > 0.5f : label == j);
            const uint32_t what =
                known ? 2u * (uint32_t)target[SL_TARGET_SPLIT] + (uint32_t)has : UINT32_MAX;
            scores[r * s.count + k] =
                (uint64_t)sortable((float)((double)z[j] - level)) << 32 | what;
        }
    }
}

} // namespace

extern "C" void sl_cuda_label_scores(const struct sl_label_scores *s, uint64_t *scores,
                                     struct sl_cuda_queue queue)
{
    const int64_t blocks = sl_cuda_divide_up(s->rows, THREADS);
    if (s->rows == 0)
        return;
    sl_cuda_launch("label_scores", score_labels,
                   (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0,
                   queue.stream, *s, sl_target_width(s->form, s->labels), scores);
}

extern "C" void label_scores_cuda(void *buffers[], void *argument)
{
    const label_scores_argument *arg = (const label_scores_argument *)argument;
    const sl_dense z = sl_dense_buffer(buffers[1]);
    const struct sl_label_scores s = {arg->form,  z.rows,
                                      z.cols,     arg->first,
                                      arg->count, (const int32_t *)sl_raw_buffer(buffers[0]),
                                      z.data,     z.ld};
    sl_cuda_label_scores(&s, (uint64_t *)sl_raw_buffer(buffers[2]), sl_cuda_task_queue());
}
