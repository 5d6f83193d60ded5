/* Copies of tiles, and the best epoch. The record task itself runs on the host. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/record.h"
}

namespace
{

struct same {
    const float *x;
    int64_t ldx;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        return sl_cuda_load<V>(x + r * ldx + j, count);
    }
};

struct chosen {
    const double *best;
    int epoch;
    same if_best, else_;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const same &from = (int)best[1] == epoch ? if_best : else_;
        return from.at<V>(r, j, count);
    }
};

__global__ void keep_best_kernel(keep_argument keep, const double *metrics, double *best,
                                 double *end)
{
    sl_keep_best(&keep, metrics, best, end);
}

} // namespace

extern "C" void sl_cuda_keep_best(const struct keep_argument *keep, const double *metrics,
                                  double *best, double *end, struct sl_cuda_queue queue)
{
    sl_cuda_launch("keep_best", keep_best_kernel, 1, 1, 0, queue.stream, *keep, metrics, best, end);
}

extern "C" void keep_best_cuda(void *buffers[], void *argument)
{
    sl_cuda_keep_best((const keep_argument *)argument, (const double *)sl_raw_buffer(buffers[0]),
                      (double *)sl_raw_buffer(buffers[1]), (double *)sl_raw_buffer(buffers[2]),
                      sl_cuda_task_queue());
}

extern "C" void sl_cuda_copy(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                             int64_t ldy, struct sl_cuda_queue queue)
{
    sl_cuda_flatten(&rows, &cols, ldx == cols && ldy == cols);
    const bool aligned = sl_cuda_aligned(rows, x, ldx) && sl_cuda_aligned(rows, y, ldy);
    sl_cuda_launch_each("copy", rows, cols, aligned, same{x, ldx}, y, ldy, queue.stream);
}

extern "C" void sl_cuda_copy_if_best(int64_t rows, int64_t cols, const double *best, int epoch,
                                     const struct sl_rows *x, const struct sl_rows *y,
                                     struct sl_cuda_queue queue)
{
    sl_cuda_flatten(&rows, &cols, x->ld == cols && y->ld == cols);
    const bool aligned = sl_cuda_aligned(rows, *x) && sl_cuda_aligned(rows, *y);
    float *const copy = (float *)y->data;
    sl_cuda_launch_each("copy_if_best", rows, cols, aligned,
                        chosen{best, epoch, {(const float *)x->data, x->ld}, {copy, y->ld}}, copy,
                        y->ld, queue.stream);
}

extern "C" void copy_if_best_cuda(void *buffers[], void *argument)
{
    const double *best = (const double *)sl_raw_buffer(buffers[0]);
    const sl_dense w = sl_dense_buffer(buffers[1]);
    const sl_rows from = sl_rows_buffer(buffers[1]), copy = sl_rows_buffer(buffers[2]);
    sl_cuda_copy_if_best(w.rows, w.cols, best, *(const int *)argument, &from, &copy,
                         sl_cuda_task_queue());
}

extern "C" void copy_cuda(void *buffers[], void *)
{
    const sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_cuda_copy(x.rows, x.cols, x.data, x.ld, y.data, y.ld, sl_cuda_task_queue());
}
