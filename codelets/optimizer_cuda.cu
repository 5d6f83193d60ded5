/* A step of an optimizer, one pass over memory. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/optimizer.h"
}
#include "core/split.h"

namespace
{

/* Define a struct for each method, with the functions that cores use, too. */
#define METHOD(constant, name, states_, state)                                  \
    struct name {                                                               \
        static constexpr int states = states_;                                  \
        sl_##name common;                                                       \
        __device__ void operator()(float g, float *w, float *m, float *v) const \
        {                                                                       \
            sl_##name##_step(&common, g, w, m, v);                              \
        }                                                                       \
        __device__ name counted(float count) const                              \
        {                                                                       \
            return {sl_##name##_counted(&common, count)};                       \
        }                                                                       \
    };
SL_OPTIMIZERS(METHOD)

/* Return whether x is infinite or NaN. */
template <class T> __device__ __forceinline__ bool is_odd(T x)
{
    return isnan(x - x);
}

/* Return whether the step does nothing. A number of this layer that another block has found not
 * finite does not count. */
__device__ __forceinline__ bool is_left_alone(const sl_cuda_step &step)
{
    const double *metrics = step.metrics;
    const double gradient = metrics[SL_METRIC_BAD_GRADIENT], update = metrics[SL_METRIC_BAD_UPDATE];
    return (step.end && *step.end > 0.0 && step.now > *step.end) ||
           is_odd(metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN]) ||
           (gradient != 0.0 && gradient != step.layer) || (update != 0.0 && update != step.layer);
}

enum { THREADS = 256 };

/* Make a step. A block has the columns [256·x, 256·x + 256) of the rows y, y + gridDim.y, … */
template <class Method>
__global__ void __launch_bounds__(THREADS) step_kernel(sl_cuda_parameters p, Method method)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= p.cols || is_left_alone(p.step))
        return;
    for (int64_t r = blockIdx.y; r < p.rows; r += gridDim.y) {
        float w = p.w[r * p.ldw + j], m = p.m[r * p.ldm + j], v = p.v ? p.v[r * p.ldv + j] : 0.0f;
        const float g = p.g[r * p.ldg + j];
        const Method own = p.counts ? method.counted(p.counts[r * p.ldc + j]) : method;
        own(g, &w, &m, &v);
        if (is_odd(g)) /* all writers write one value */
            p.step.metrics[SL_METRIC_BAD_GRADIENT] = p.step.layer;
        if (is_odd(w) || is_odd(m) || is_odd(v))
            p.step.metrics[SL_METRIC_BAD_UPDATE] = p.step.layer;
        p.w[r * p.ldw + j] = w;
        p.m[r * p.ldm + j] = m;
        if (p.v)
            p.v[r * p.ldv + j] = v;
    }
}

/* Move running averages, rows [0, rows). A block has the columns and rows of step_kernel. */
__global__ void __launch_bounds__(THREADS) average_kernel(sl_cuda_parameters p, float rate)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= p.cols || is_left_alone(p.step))
        return;
    for (int64_t r = blockIdx.y; r < p.rows; r += gridDim.y) {
        const float g = p.g[r * p.ldg + j], w = sl_average_step(rate, g, p.w[r * p.ldw + j]);
        if (is_odd(g))
            p.step.metrics[SL_METRIC_BAD_GRADIENT] = p.step.layer;
        if (is_odd(w))
            p.step.metrics[SL_METRIC_BAD_UPDATE] = p.step.layer;
        p.w[r * p.ldw + j] = w;
    }
}

dim3 grid_of(const sl_cuda_parameters &p)
{
    return dim3((unsigned)sl_cuda_divide_up(p.cols, THREADS),
                (unsigned)(p.rows < 65535 ? p.rows : 65535));
}

template <class Method> void launch(sl_cuda_parameters p, const Method &method, cudaStream_t stream)
{
    const bool two = Method::states > 1;
    p.v = two ? p.v : nullptr;
    sl_cuda_flatten(&p.rows, &p.cols,
                    p.ldg == p.cols && p.ldw == p.cols && p.ldm == p.cols &&
                        (!two || p.ldv == p.cols) && (!p.counts || p.ldc == p.cols));
    if (p.rows == 0 || p.cols == 0)
        return;
    sl_cuda_launch("optimizer", step_kernel<Method>, grid_of(p), THREADS, 0, stream, p, method);
}

} // namespace

extern "C" void sl_cuda_optimizer(const struct sl_optimizer_step *s,
                                  const struct sl_cuda_parameters *p, struct sl_cuda_queue queue)
{
    sl_cuda_parameters learned = *p, averages = *p;
    learned.rows = p->rows - p->averages;
    switch (s->method) {
#define LAUNCH(constant, name, states, state)                     \
    case SL_##constant:                                           \
        launch(learned, name{sl_##name##_open(s)}, queue.stream); \
        break;
        SL_OPTIMIZERS(LAUNCH)
#undef LAUNCH
    }
    averages.rows = p->averages;
    averages.g += learned.rows * p->ldg;
    averages.w += learned.rows * p->ldw;
    if (averages.rows > 0 && p->cols > 0)
        sl_cuda_launch("averages", average_kernel, grid_of(averages), THREADS, 0, queue.stream,
                       averages, s->average_rate);
}

static void step_on(void *buffers[], const optimizer_argument *arg, const sl_dense &counts,
                    const sl_dense &v)
{
    const sl_dense g = sl_dense_buffer(buffers[2]), m = sl_dense_buffer(buffers[3]),
                   w = sl_dense_buffer(buffers[4]);
    const sl_cuda_parameters parameters = {w.rows,
                                           w.cols,
                                           arg->averages,
                                           counts.data,
                                           g.data,
                                           w.data,
                                           m.data,
                                           v.data,
                                           counts.ld,
                                           g.ld,
                                           w.ld,
                                           m.ld,
                                           v.ld,
                                           {(const double *)sl_raw_buffer(buffers[0]),
                                            (double *)sl_raw_buffer(buffers[1]), arg->now,
                                            arg->layer}};
    sl_cuda_optimizer(&arg->step, &parameters, sl_cuda_task_queue());
}

extern "C" void optimizer_cuda(void *buffers[], void *argument)
{
    step_on(buffers, (const optimizer_argument *)argument, sl_dense{}, sl_dense{});
}

extern "C" void optimizer_two_cuda(void *buffers[], void *argument)
{
    step_on(buffers, (const optimizer_argument *)argument, sl_dense{}, sl_dense_buffer(buffers[5]));
}

extern "C" void optimizer_counted_cuda(void *buffers[], void *argument)
{
    step_on(buffers, (const optimizer_argument *)argument, sl_dense_buffer(buffers[5]),
            sl_dense_buffer(buffers[6]));
}
