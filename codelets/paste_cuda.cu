/* Copies of parts of tiles, on a GPU. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/paste.h"
}

extern "C" void sl_cuda_paste(int64_t rows, int64_t cols, const struct sl_rows *x,
                              const struct sl_rows *y, struct sl_cuda_queue queue)
{
    const size_t size = sl_type_size(y->type);
    if (rows == 0 || cols == 0)
        return;
    const cudaError_t status = cudaMemcpy2DAsync(
        y->data, (size_t)y->ld * size, x->data, (size_t)x->ld * size, (size_t)cols * size,
        (size_t)rows, cudaMemcpyDeviceToDevice, queue.stream);
    if (status != cudaSuccess)
        sl_fatal("paste: %s", cudaGetErrorString(status));
}

extern "C" void paste_cuda(void *buffers[], void *argument)
{
    const paste_argument *arg = (const paste_argument *)argument;
    const sl_rows x = sl_rows_buffer(buffers[0]), y = sl_rows_buffer(buffers[1]);
    const sl_rows from = sl_rows_at(&x, arg->x_row, arg->x_col),
                  to = sl_rows_at(&y, arg->y_row, arg->y_col);
    sl_cuda_paste(arg->rows, arg->cols, &from, &to, sl_cuda_task_queue());
}
