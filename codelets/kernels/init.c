#include "codelets/init.h"
#include "codelets/vector.h"

SL_KERNEL(sl_kernel_fill, (int64_t rows, int64_t cols, float value, float *w, int64_t ldw),
          (rows, cols, value, w, ldw))
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            w[r * ldw + j] = value;
}
