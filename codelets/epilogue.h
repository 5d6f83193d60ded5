/* The epilogue: bias, activation, dropout and scaling of the rows of a result once their sums are
 * complete. */
#ifndef SL_CODELETS_EPILOGUE_H
#define SL_CODELETS_EPILOGUE_H

#include "codelets/operation.h"

/* Steps on a result whose sums are complete, in this order. A step whose operand is NULL or 0 is
 * left out.
 *
 *     z = scale · before(r) · factor(r) · z
 *     z += bias(j)
 *     z = max(z, 0)                relu; NaN stays
 *     z = e^z - 1 where z <= 0     elu; the least normal number stands for 0
 *     z = 0                        unless mask(r, j) > 0
 *     z *= 1 + elu_back·mask_scale(r)·mask(r, j) instead, where mask < 0 and elu_back > 0
 *     dropout
 *     z = after(r) · z */
struct sl_epilogue {
    float scale;         /* 1: none */
    const float *before; // (rows)
    const float *factor; // (rows)
    const float *bias;   // (cols)
    bool relu, elu;
    struct sl_rows mask; // (rows, cols), relu's or elu's output, possibly after dropout: 0 where
                         // it was dropped
    float elu_back;      /* 1 / scale of the mask's dropout, if the mask is elu's; else 0 */
    const float *mask_scale; // (rows), positive: elu's output, after dropout, is mask_scale · mask
                             // where the mask's rows have another factor; NULL: 1
    struct sl_dropout drop;
    const uint32_t *vertex; // (rows), for `drop`
    uint32_t column0;       /* number of column 0 in the matrix that `drop` counts */
    const float *after;     // (rows)
};

/* An epilogue that leaves a result as it is. */
#define SL_EPILOGUE_IDENTITY \
    (struct sl_epilogue)     \
    {                        \
        .scale = 1.0f        \
    }

static inline bool sl_epilogue_has_steps(const struct sl_epilogue *e)
{
    return e->scale != 1.0f || e->before || e->factor || e->bias || e->relu || e->elu ||
           e->mask.data || e->drop.threshold || e->after;
}

/* Z = SUM (rows, cols) through the epilogue; Z may be SUM. */
void sl_kernel_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *epilogue,
                        const struct sl_rows *sum, const struct sl_rows *z);

/* Apply the epilogue to rows [from, to) of SUM, and write them to Z. Where SUM is bfloat16, there
 * is no mask. */
void sl_epilogue_rows(const struct sl_epilogue *epilogue, int64_t from, int64_t to, int64_t cols,
                      const struct sl_rows *sum, const struct sl_rows *z);

/* Return the epilogue for the submatrix that begins at element (r, j). NULL gives an epilogue that
 * does nothing. */
struct sl_epilogue sl_epilogue_at(const struct sl_epilogue *epilogue, int64_t r, int64_t j);

void sl_cuda_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *epilogue,
                      const struct sl_rows *sum, const struct sl_rows *z,
                      struct sl_cuda_queue queue);

/* struct sl_epilogue on tiles. */
struct sl_epilogue_tiles {
    struct sl_tile *scales; /* row scales; NULL: no before, after, mask_scale, dropout */
    enum sl_row_scale before, after, mask_scale;
    struct sl_tile *factor; // (rows, 1); NULL: none
    float scale;
    struct sl_tile *parameters; /* a tile whose row `bias_row` is the bias; NULL: none */
    int64_t bias_row, bias_col; /* where the bias begins in `parameters` */
    bool relu, elu;
    struct sl_tile *mask; /* NULL: none */
    float elu_back;
    struct sl_dropout drop;
};

/* An epilogue that leaves a result as it is. */
#define SL_EPILOGUE_NONE                                                                      \
    (struct sl_epilogue_tiles)                                                                \
    {                                                                                         \
        .before = SL_ROW_NONE, .after = SL_ROW_NONE, .mask_scale = SL_ROW_NONE, .scale = 1.0f \
    }

/* Submit Z = epilogue(SUM). Z and SUM may be one tile. The mask may be Z before the task. */
void sl_submit_epilogue(struct sl_runtime *rt, const struct sl_epilogue_tiles *epilogue,
                        struct sl_tile *sum, struct sl_tile *z);

/* Argument of the task epilogue, and a part of gemm_argument and spmm_argument. */
struct epilogue_argument {
    bool present;
    bool has_scales, has_factor, has_bias, has_mask; /* buffers that come along, in this order */
    bool relu, elu;
    bool apart;       /* SUM and Z are two tiles */
    bool masked_by_z; /* the mask is Z before the task */
    enum sl_row_scale before, after, mask_scale;
    float scale, elu_back;
    int64_t bias_row, bias_col;
    struct sl_dropout drop;
};

enum { SL_EPILOGUE_TILES = 4 }; /* most tiles of an epilogue */

/* sl_epilogue_pack: put the values of `from` (NULL: no epilogue) into `to`, and its tiles into
 * `tiles`. Return the number of tiles. A mask that is the output Z is not among the tiles; the
 * caller sets such a mask inside the task. sl_epilogue_buffers: make the epilogue again from a
 * task's buffers. Return the number of buffers. */
int sl_epilogue_pack(const struct sl_epilogue_tiles *from, const struct sl_tile *z,
                     struct epilogue_argument *to, struct sl_tile **tiles);
int sl_epilogue_buffers(const struct epilogue_argument *argument, void **buffers,
                        struct sl_epilogue *epilogue);

/* Return the bits of sl_task.kind for the steps of an epilogue that take time. The other bits are
 * the codelet's. */
enum { SL_EPILOGUE_KINDS = 3 }; /* bits */
uint32_t sl_epilogue_kind(const struct epilogue_argument *argument);

#endif
