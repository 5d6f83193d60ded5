/* The epilogue, as a pass of its own. */
#include "codelets/cuda_epilogue.h"

extern "C" {
#include "codelets/epilogue.h"
}

namespace
{

template <class T> struct finished {
    sl_epilogue epilogue;
    const T *sum;
    int64_t lds;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        sl_cuda_vector<V> v = sl_cuda_load<V>(sum + r * lds + j, count);
        sl_cuda_finish<V>(epilogue, true, r, j, count, &v);
        return v;
    }
};

template <class From, class To>
void launch(int64_t rows, int64_t cols, const sl_epilogue &epilogue, const sl_rows &sum,
            const sl_rows &z, cudaStream_t stream)
{
    const bool aligned = sl_cuda_aligned(rows, sum) && sl_cuda_aligned(rows, z) &&
                         sl_cuda_epilogue_aligned(epilogue, rows, cols);
    sl_cuda_launch_each("epilogue", rows, cols, aligned,
                        finished<From>{epilogue, (const From *)sum.data, sum.ld}, (To *)z.data,
                        z.ld, stream);
}

} // namespace

extern "C" void sl_cuda_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *epilogue,
                                 const struct sl_rows *sum, const struct sl_rows *z,
                                 struct sl_cuda_queue queue)
{
    if (sum->type == SL_FLOAT32 && z->type == SL_FLOAT32)
        launch<float, float>(rows, cols, *epilogue, *sum, *z, queue.stream);
    else if (sum->type == SL_FLOAT32)
        launch<float, __nv_bfloat16>(rows, cols, *epilogue, *sum, *z, queue.stream);
    else if (z->type == SL_FLOAT32)
        launch<__nv_bfloat16, float>(rows, cols, *epilogue, *sum, *z, queue.stream);
    else
        launch<__nv_bfloat16, __nv_bfloat16>(rows, cols, *epilogue, *sum, *z, queue.stream);
}

extern "C" void epilogue_cuda(void *buffers[], void *argument)
{
    const epilogue_argument *arg = (const epilogue_argument *)argument;
    struct sl_epilogue epilogue;
    const int used = sl_epilogue_buffers(arg, buffers, &epilogue);
    const sl_rows sum = sl_rows_buffer(buffers[used]),
                  z = sl_rows_buffer(buffers[used + arg->apart]);
    if (arg->masked_by_z)
        epilogue.mask = z;
    sl_cuda_epilogue(STARPU_MATRIX_GET_NY(buffers[used]), STARPU_MATRIX_GET_NX(buffers[used]),
                     &epilogue, &sum, &z, sl_cuda_task_queue());
}
