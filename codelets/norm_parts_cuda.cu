/* Normalisation of rows that are cut, on a GPU. */
#include "codelets/cuda.h"
#include "codelets/cuda_norm.h"

extern "C" {
#include "codelets/norm_parts.h"
}

namespace
{

enum { THREADS = 256 };

template <int LANES>
__global__ void __launch_bounds__(THREADS)
    find_moments(int64_t rows, int64_t cols, sl_rows h, bool aligned, float *to, int64_t ld)
{
    const int64_t r = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    const int lane = (int)threadIdx.x % LANES;
    if (r >= rows)
        return;
    moments of = {};
    const float variance = spread_of_row<LANES>(h, r, cols, lane, aligned, &of);
    if (lane == 0) {
        to[r] = of.mean;
        to[ld + r] = of.rest;
        to[2 * ld + r] = variance;
    }
}

__global__ void __launch_bounds__(THREADS)
    merge_moments(int64_t rows, double part, const float *x, int64_t ldx, float *y, int64_t ldy)
{
    const int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (r >= rows)
        return;
    const double own = (double)y[r] + (double)y[ldy + r],
                 off = (double)x[r] + (double)x[ldx + r] - own, mean = fma(part, off, own);
    const double variance = fma(1.0 - part, (double)y[2 * ldy + r],
                                fma(part, (double)x[2 * ldx + r], part * (1.0 - part) * off * off));
    y[r] = (float)mean;
    y[ldy + r] = (float)(mean - (double)(float)mean);
    y[2 * ldy + r] = (float)variance;
}

template <int LANES>
__global__ void __launch_bounds__(THREADS)
    find_products(sl_norm n, sl_rows g, bool aligned, float *to, int64_t ld)
{
    const int64_t r = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    const int lane = (int)threadIdx.x % LANES;
    if (r >= n.rows)
        return;
    float first, second;
    const moments of = moments_of_row<LANES>(n, r, lane, aligned);
    products_of_row<LANES>(n, g, of, r, lane, aligned, &first, &second);
    if (lane == 0) {
        to[r] = first;
        to[ld + r] = second;
    }
}

} // namespace

extern "C" void sl_cuda_norm_moments(int64_t rows, int64_t cols, const struct sl_rows *h,
                                     float *moments, int64_t ld, struct sl_cuda_queue queue)
{
    if (rows > 0 && cols > 0)
        sl_cuda_launch("norm_moments", cols > NARROW ? find_moments<32> : find_moments<8>,
                       grid_of_rows(rows, cols, THREADS), THREADS, 0, queue.stream, rows, cols, *h,
                       sl_cuda_aligned(rows, *h), moments, ld);
}

extern "C" void sl_cuda_norm_merge(int64_t rows, double cols, double more, const float *x,
                                   int64_t ldx, float *y, int64_t ldy, struct sl_cuda_queue queue)
{
    if (rows > 0)
        sl_cuda_launch("norm_merge", merge_moments, (unsigned)sl_cuda_divide_up(rows, THREADS),
                       THREADS, 0, queue.stream, rows, more / (cols + more), x, ldx, y, ldy);
}

extern "C" void sl_cuda_norm_products(const struct sl_norm *n, const struct sl_rows *g,
                                      float *products, int64_t ld, struct sl_cuda_queue queue)
{
    const bool aligned = sl_cuda_aligned(n->rows, n->h) && sl_cuda_aligned(n->rows, *g) &&
                         sl_cuda_aligned(1, n->weight, n->cols);
    if (n->rows > 0 && n->cols > 0)
        sl_cuda_launch("norm_products", n->cols > NARROW ? find_products<32> : find_products<8>,
                       grid_of_rows(n->rows, n->cols, THREADS), THREADS, 0, queue.stream, *n, *g,
                       aligned, products, ld);
}

/* ---- Tasks ---- */

extern "C" void norm_moments_cuda(void *buffers[], void *)
{
    const sl_rows h = sl_rows_buffer(buffers[0]);
    const sl_dense moments = sl_dense_buffer(buffers[1]);
    sl_cuda_norm_moments(moments.cols, STARPU_MATRIX_GET_NX(buffers[0]), &h, moments.data,
                         moments.ld, sl_cuda_task_queue());
}

extern "C" void norm_merge_cuda(void *buffers[], void *argument)
{
    const norm_merge_argument *arg = (const norm_merge_argument *)argument;
    const sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_cuda_norm_merge(y.cols, arg->cols, arg->more, x.data, x.ld, y.data, y.ld,
                       sl_cuda_task_queue());
}

extern "C" void norm_products_cuda(void *buffers[], void *argument)
{
    struct norm_operands o;
    sl_norm_buffers((const norm_argument *)argument, buffers, &o);
    sl_cuda_norm_products(&o.norm, &o.g, (float *)o.z.data, o.z.ld, sl_cuda_task_queue());
}
