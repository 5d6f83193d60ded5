/* Counts of true and predicted classes. */
#include "codelets/confusion.h"

#include "codelets/codelet.h"

static int64_t first_largest(const float *z, int64_t count)
{
    int64_t best = 0;
    for (int64_t j = 1; j < count; j++)
        if (z[j] > z[best])
            best = j;
    return best;
}

void sl_kernel_confusion(const struct sl_confusion *c, double *counts)
{
    const int64_t width = sl_target_width(SL_TARGET_CLASS, c->classes);
    for (int64_t r = 0; r < c->rows; r++) {
        const int32_t *target = c->target + r * width;
        if (target[SL_TARGET_LABEL] < 0)
            continue;
        double *row = counts + target[SL_TARGET_LABEL] * SL_SPLITS * c->classes;
        row[target[SL_TARGET_SPLIT] * c->classes + first_largest(c->z + r * c->ldz, c->classes)] +=
            1.0;
    }
}

/* confusion
 *   buffers   0 R    target (rows, sl_target_width) of int32
 *             1 R    Z (rows, classes)
 *             2 RW   counts (classes, SL_SPLITS · classes) of double */
static void confusion_cpu(void *buffers[], void *argument)
{
    const struct sl_dense z = sl_dense_buffer(buffers[1]);
    (void)argument;
    sl_kernel_confusion(&(struct sl_confusion){.rows = z.rows,
                                               .classes = z.cols,
                                               .target = sl_raw_buffer(buffers[0]),
                                               .z = z.data,
                                               .ldz = z.ld},
                        sl_raw_buffer(buffers[2]));
}

SL_CODELET(confusion, 0xE9967A, 3, STARPU_R, STARPU_R, STARPU_RW);

void sl_submit_confusion(struct sl_runtime *rt, struct sl_tile *target, struct sl_tile *z,
                         struct sl_tile *counts)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &confusion_codelet,
                           .count = 3,
                           .tiles = {target, z, counts},
                           .work = (double)z->rows * (double)z->cols,
                       });
}
