/* The steps after a sum, as a pass of their own. */
#include "codelets/cuda_epilogue.h"

namespace
{

struct finished {
    sl_epilogue epilogue;
    const float *z;
    int64_t ldz;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        sl_cuda_vector<V> v = sl_cuda_load<V>(z + r * ldz + j, count);
        sl_cuda_finish<V>(epilogue, true, r, j, count, &v);
        return v;
    }
};

} // namespace

extern "C" void sl_cuda_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *epilogue,
                                 float *z, int64_t ldz, cudaStream_t stream)
{
    const bool aligned =
        sl_cuda_aligned(rows, z, ldz) && sl_cuda_epilogue_aligned(*epilogue, rows, cols);
    sl_cuda_launch_each("epilogue", rows, cols, aligned, finished{*epilogue, z, ldz}, z, ldz,
                        stream);
}

extern "C" void epilogue_cuda(void *buffers[], void *argument)
{
    struct sl_epilogue epilogue;
    const int used =
        sl_epilogue_buffers((const struct epilogue_argument *)argument, buffers, &epilogue);
    const sl_dense z = sl_dense_buffer(buffers[used]);
    sl_cuda_epilogue(z.rows, z.cols, &epilogue, z.data, z.ld, sl_cuda_task_stream());
}
