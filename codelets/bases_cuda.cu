/* Weights of relations as sums of bases, on a GPU: the products of codelets/bases.c. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/bases.h"
#include "codelets/gemm.h"
#include "codelets/init.h"
}

namespace
{

void on_gpu(const struct sl_gemm *gemm, const void *context)
{
    sl_cuda_gemm(gemm, *(const struct sl_cuda_queue *)context);
}

sl_floats_at from_row(void *buffer, int64_t row)
{
    sl_floats_at of = sl_floats_buffer(buffer);
    of.data += row * of.ld;
    return of;
}

} // namespace

extern "C" void sl_cuda_bases(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                              const struct sl_floats_at *weight, struct sl_cuda_queue queue)
{
    sl_bases_products(bases, parameters, weight, on_gpu, &queue);
}

extern "C" void sl_cuda_bases_back(const struct sl_bases *bases,
                                   const struct sl_floats_at *parameters,
                                   const struct sl_floats_at *gradient,
                                   const struct sl_floats_at *back, struct sl_cuda_queue queue)
{
    const sl_rows coefficients =
        sl_float_rows(back->data + bases->bases * bases->in * back->ld, back->ld);
    sl_cuda_fill(bases->relations, bases->out, 0.0f, &coefficients, queue);
    sl_bases_products_back(bases, parameters, gradient, back, on_gpu, &queue);
}

/* ---- Tasks ---- */

extern "C" void bases_cuda(void *buffers[], void *argument)
{
    const bases_argument *arg = (const bases_argument *)argument;
    const sl_floats_at parameters = from_row(buffers[0], arg->row),
                       weight = sl_floats_buffer(buffers[1]);
    sl_cuda_bases(&arg->bases, &parameters, &weight, sl_cuda_task_queue());
}

extern "C" void bases_back_cuda(void *buffers[], void *argument)
{
    const bases_argument *arg = (const bases_argument *)argument;
    const sl_floats_at parameters = from_row(buffers[0], arg->row),
                       gradient_at = sl_floats_buffer(buffers[1]),
                       back = from_row(buffers[2], arg->back_row);
    sl_cuda_bases_back(&arg->bases, &parameters, &gradient_at, &back, sl_cuda_task_queue());
}
