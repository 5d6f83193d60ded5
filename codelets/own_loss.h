/* A loss that a program brings (include/starling.h): a function on plain arrays. It has no CUDA
 * twin: its tasks run on cores. */
#ifndef SL_CODELETS_OWN_LOSS_H
#define SL_CODELETS_OWN_LOSS_H

#include "codelets/metrics.h"
#include "codelets/operation.h"
#include "codelets/target.h"
#include "core/split.h"
#include <starling.h>

struct sl_own_loss {
    starling_loss *function;
    void *context;
    enum sl_target_form form;
    uint32_t number; /* number among the losses of the program */
};

/* Rows of a tile. */
struct sl_own_loss_rows {
    int64_t rows, cols;
    const uint32_t *vertex; // (rows)
    const int32_t *target;  // (rows, sl_target_width)
    const float *z;         // (rows, cols), logits
    int64_t ldz;
    float scale;         /* factor of the gradient of a row's loss */
    const float *factor; // (rows); NULL: 1
    float *g;            // (rows, cols); may be Z; NULL: no gradient
    int64_t ldg;
};

/* Arrays for some rows at a time, which the program's function receives. */
struct sl_own_loss_arrays {
    int64_t room;                      /* rows */
    int64_t *row;                      // (room): numbers of the rows in the tile
    int64_t *vertex;                   // (room)
    double *loss;                      // (room)
    float *logits, *labels, *gradient; // (room, cols)
    int32_t *classes;                  // (room)
};

/* Allocate the arrays for rows of `cols` columns. Return 0, or -1 without memory; sl_own_loss_free
 * in either case. */
int sl_own_loss_open(struct sl_own_loss_arrays *arrays, int64_t cols);
void sl_own_loss_free(struct sl_own_loss_arrays *arrays);

/* loss[s] = the summed loss of the rows of split s that have a label. Where G is given: only the
 * loss of training rows; G = factor · scale · d loss / dZ on training rows, 0 on others. */
void sl_kernel_own_loss(const struct sl_own_loss *own, const struct sl_own_loss_rows *rows,
                        const struct sl_own_loss_arrays *arrays, double loss[SL_SPLITS]);

/* Argument of the tasks own_loss and own_count. */
struct own_loss_argument {
    const struct sl_own_loss *own;
    float scale;
    enum sl_row_scale factor;
};

/* Submit Z = the gradient of the mean loss over `train_count` training vertices, from logits Z. The
 * scale `factor` multiplies the rows. metrics = this tile's training loss sum and correct count,
 * all else 0. A row is correct as in sl_kernel_accuracy, or as in sl_kernel_value_count. */
void sl_submit_own_loss(struct sl_runtime *rt, const struct sl_own_loss *own, int64_t train_count,
                        enum sl_row_scale factor, struct sl_tile *scales, struct sl_tile *target,
                        struct sl_tile *metrics, struct sl_tile *z);

/* Submit metrics = this tile's loss sums and correct counts of every split. */
void sl_submit_own_count(struct sl_runtime *rt, const struct sl_own_loss *own,
                         struct sl_tile *scales, struct sl_tile *target, struct sl_tile *z,
                         struct sl_tile *metrics);

#endif
