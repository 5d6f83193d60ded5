/* Dropout on a GPU: a step of the epilogue, as on the CPU. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/dropout.h"
#include "codelets/epilogue.h"
}

extern "C" void sl_cuda_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                                const uint32_t *vertex, uint32_t column0, const struct sl_rows *x,
                                const struct sl_rows *y, struct sl_cuda_queue queue)
{
    struct sl_epilogue e = SL_EPILOGUE_IDENTITY;
    e.drop = *drop;
    e.vertex = vertex;
    e.column0 = column0;
    sl_cuda_epilogue(rows, cols, &e, x, y, queue);
}

extern "C" void dropout_cuda(void *buffers[], void *argument)
{
    const dropout_argument *arg = (const dropout_argument *)argument;
    const sl_rows x = sl_rows_buffer(buffers[1]), y = sl_rows_buffer(buffers[2]);
    sl_cuda_dropout(STARPU_MATRIX_GET_NY(buffers[2]), STARPU_MATRIX_GET_NX(buffers[2]), &arg->drop,
                    sl_vertices(buffers[0]), arg->column0, &x, &y, sl_cuda_task_queue());
}
