/* States of pair attention, merged and closed. */
#include <math.h>

#include "codelets/cuda_pair.h"

namespace
{

/* ---- Merged and closed ----
 *
 * A warp has a row: first a lane has a head, then a column. */

enum { ROWS = 4 }; /* rows of a block */

struct factors {
    float own[ROWS][SL_ATTENTION_HEADS], other[ROWS][SL_ATTENTION_HEADS];
};

/* Merge m and l of a head, and set the factors of both states. An empty other state has factor 0.
 */
__device__ __forceinline__ void merge_head(const float *from, float *to, int heads, float *own,
                                           float *other)
{
    const float l = to[heads], sent = from[heads];
    *own = 1.0f;
    *other = 0.0f;
    if (sent == 0.0f)
        return;
    const float m = l == 0.0f ? *from : *to, top = *from > m ? *from : m;
    *own = top > m ? expf(m - top) : 1.0f;
    *other = expf(*from - top);
    to[0] = top;
    to[heads] = fmaf(*other, sent, *own * l);
}

__global__ void __launch_bounds__(32 * ROWS)
    merge_rows(sl_pair pair, int64_t rows, const uint32_t *index, sl_floats_at other,
               sl_floats_at state)
{
    factors &shared = sl_cuda_shared<factors>();
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y, all = sl_pair_all_of(pair);
    const int heads = pair.attention.heads;
    if (r >= rows)
        return;
    const float *const from = sl_pair_row_at(other, r);
    float *const to = sl_pair_row_at(state, index ? index[r] : r),
                 *const own = shared.own[threadIdx.y], *const factor = shared.other[threadIdx.y];
    for (int h = (int)threadIdx.x; h < heads; h += 32)
        merge_head(from + all + h, to + all + h, heads, &own[h], &factor[h]);
    __syncwarp();
    for (int64_t j = threadIdx.x; j < all; j += 32) {
        const int64_t h = j / pair.attention.width;
        if (factor[h] != 0.0f || own[h] != 1.0f)
            to[j] = fmaf(factor[h], from[j], own[h] * to[j]);
    }
    for (int64_t i = threadIdx.x; pair.products && i < pair.edges * heads; i += 32) {
        const int64_t h = i % heads, j = all + 2 * heads + i;
        if (factor[h] != 0.0f || own[h] != 1.0f)
            to[j] = fmaf(factor[h], from[j], own[h] * to[j]);
    }
}

__global__ void __launch_bounds__(32 * ROWS)
    close_rows(sl_pair pair, int64_t rows, sl_floats_at vectors, sl_floats_at target,
               sl_floats_at state)
{
    factors &shared = sl_cuda_shared<factors>();
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y, all = sl_pair_all_of(pair);
    const int heads = pair.attention.heads;
    if (r >= rows)
        return;
    float *const to = sl_pair_row_at(state, r), *const m = to + all, *const l = m + heads,
                 *const closed = sl_pair_row_at(target, r) + all,
                 *const by = shared.own[threadIdx.y], *const b = l + heads;
    for (int h = (int)threadIdx.x; h < heads; h += 32) {
        const float sum = l[h];
        by[h] = sum > 0.0f ? 1.0f / sum : 1.0f;
        l[h] = sum * by[h];
        closed[h] = m[h] = sum > 0.0f ? m[h] + logf(sum) : 0.0f;
    }
    __syncwarp();
    for (int64_t i = threadIdx.x; pair.products && i < pair.edges * heads; i += 32)
        b[i] *= by[i % heads];
    __syncwarp();
    for (int64_t j = threadIdx.x; j < all; j += 32) {
        const float z = to[j] * by[j / pair.attention.width];
        to[j] = pair.products ? sl_pair_add_edges(pair, vectors, b, j, z) : z;
    }
}

} // namespace

extern "C" void sl_cuda_pair_merge(const struct sl_pair *pair, int64_t rows, const uint32_t *index,
                                   const struct sl_floats_at *other,
                                   const struct sl_floats_at *state, struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    sl_cuda_launch("pair_merge", merge_rows, dim3((unsigned)sl_cuda_divide_up(rows, ROWS)),
                   dim3(32, ROWS), 0, queue.stream, *pair, rows, index, *other, *state);
}

extern "C" void sl_cuda_pair_close(const struct sl_pair *pair, int64_t rows,
                                   const struct sl_floats_at *vectors_at,
                                   const struct sl_floats_at *target,
                                   const struct sl_floats_at *state, struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    sl_cuda_launch("pair_close", close_rows, dim3((unsigned)sl_cuda_divide_up(rows, ROWS)),
                   dim3(32, ROWS), 0, queue.stream, *pair, rows, *vectors_at, *target, *state);
}

/* ---- Tasks ---- */

extern "C" void pair_merge_cuda(void *buffers[], void *argument)
{
    const pair_merge_argument *arg = (const pair_merge_argument *)argument;
    const sl_floats_at tile = sl_pair_floats(buffers[0]),
                       state = sl_pair_floats(buffers[1 + arg->listed]),
                       other = {tile.data + arg->first * tile.ld, tile.ld};
    const uint32_t *index = arg->listed ? (const uint32_t *)sl_raw_buffer(buffers[1]) : nullptr;
    sl_cuda_pair_merge(&arg->pair, arg->rows, index ? index + arg->first : nullptr, &other, &state,
                       sl_cuda_task_queue());
}

extern "C" void pair_close_cuda(void *buffers[], void *argument)
{
    const sl_floats_at vectors_at = sl_pair_floats(buffers[0]), target = sl_pair_floats(buffers[1]),
                       state = sl_pair_floats(buffers[2]);
    sl_cuda_pair_close((const sl_pair *)argument, sl_dense_buffer(buffers[2]).rows, &vectors_at,
                       &target, &state, sl_cuda_task_queue());
}
