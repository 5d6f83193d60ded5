/* Attention whose scores need the rows of both ends of an edge. In a walk, a team of lanes has a
 * head of a row. A lane has some columns of the head: every LANES-th one. The team works on a few
 * entries of the row at a time. It multiplies rows, and adds the products over its lanes: all lanes
 * then know the entries' weights. It adds the entries' rows to its columns. Maximum
 * and sums stay in registers. The columns of a wide head take several walks over the row, each of
 * which computes the weights anew.
 *
 * The division into teams depends on the width of a head alone. So results do not depend on how
 * rows are read. */
#include <math.h>

#include "codelets/cuda.h"

extern "C" {
#include "codelets/pair.h"
}

namespace
{

enum {
    THREADS = 128, /* threads of a block in a walk */
    STEPS = 4,     /* entries at a time */
    PER_DRAW = 4,  /* heads that share a draw, as in attention.c */
    DROPOUT_BITS = 16,
    LARGEST_POWER = 88, /* e to this power is finite */
};

enum way { FORWARD, AGAIN, BACK };

__device__ __forceinline__ float *row_at(const sl_floats_at &of, int64_t r)
{
    return of.data + r * of.ld;
}

/* Return the columns of all heads, with their room: sl_pair_all on the device. */
__device__ __forceinline__ int64_t all_of(const sl_pair &pair)
{
    return pair.attention.heads * pair.attention.width;
}

/* ---- Teams ---- */

/* Rows that meet: an entry's first and second row are rows of
 *
 *               own first   own second   met first   met second
 *     FORWARD   T                        K           V
 *     AGAIN     T           G            K           V
 *     BACK      K           V            T           G
 */
struct walk {
    sl_pair pair;
    sl_sparse a;
    sl_floats_at vectors, own_first, own_second, met_first, met_second;
    int64_t own_vertex, met_vertex; /* columns of the vertices, in first rows */
    bool accumulate;
    sl_floats_at out;
};

template <int LANES> struct team {
    unsigned mask;
    int lane, head;
    int64_t r, column; /* row; the head's first column */

    __device__ __forceinline__ explicit team(const walk &w)
    {
        const int64_t item = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
        lane = (int)threadIdx.x % LANES;
        mask = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - (unsigned)lane);
        r = item / w.pair.attention.heads;
        head = (int)(item % w.pair.attention.heads);
        column = head * w.pair.attention.width;
    }
};

/* Entries that a team works on. Those behind `count` have weight 0, and column 0. */
struct chunk {
    int count;
    uint32_t col[STEPS];
    float weight[STEPS];
};

__device__ __forceinline__ chunk read_chunk(const sl_sparse &a, int64_t block, uint32_t e,
                                            uint32_t end)
{
    chunk c;
    c.count = end - e < STEPS ? (int)(end - e) : (int)STEPS;
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const bool is = i < c.count;
        const uint32_t at = e + (uint32_t)i;
        c.col[i] =
            is ? (uint32_t)(block * a.block_cols) + sl_cuda_sparse_col(a.col, a.narrow, at) : 0;
        c.weight[i] = !is ? 0.0f : a.value ? a.value[at] : 1.0f;
    }
    return c;
}

template <int LANES> __device__ __forceinline__ void total(unsigned mask, float (&x)[STEPS])
{
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
#pragma unroll
        for (int i = 0; i < STEPS; i++)
            x[i] += __shfl_xor_sync(mask, x[i], distance);
}

/* ---- Products of rows ---- */

/* A lane's columns of the row, and of the rows that it meets. Columns behind the width are 0. */
template <int PER> struct own_row {
    float first[PER], second[PER], even[PER], odd[PER];
};

template <int PER> struct met_rows {
    float first[STEPS][PER], second[STEPS][PER];
};

template <way WAY, bool PRODUCTS, int LANES, int PER>
__device__ __forceinline__ void load_own(const walk &w, const team<LANES> &t, int64_t piece,
                                         own_row<PER> *own)
{
#pragma unroll
    for (int k = 0; k < PER; k++) {
        const int64_t j = piece + k * LANES + t.lane;
        const bool is = j < w.pair.width;
        own->first[k] = is ? row_at(w.own_first, t.r)[t.column + j] : 0.0f;
        own->second[k] = own->even[k] = own->odd[k] = 0.0f;
        if (WAY != FORWARD)
            own->second[k] = is ? row_at(w.own_second, t.r)[t.column + j] : 0.0f;
        if (!PRODUCTS && is) {
            own->even[k] = row_at(w.vectors, SL_PAIR_EVEN)[t.column + j];
            own->odd[k] = row_at(w.vectors, SL_PAIR_ODD)[t.column + j];
        }
    }
}

template <way WAY, bool PRODUCTS, int LANES, int PER>
__device__ __forceinline__ void load_met(const walk &w, const team<LANES> &t, const chunk &c,
                                         int64_t piece, met_rows<PER> *met)
{
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const float *const first = row_at(w.met_first, c.col[i]) + t.column, *const second =
                                                                                 row_at(
                                                                                     w.met_second,
                                                                                     c.col[i]) +
                                                                                 t.column;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const int64_t j = piece + k * LANES + t.lane;
            const bool is = i < c.count && j < w.pair.width;
            met->first[i][k] = is ? first[j] : 0.0f;
            if (PRODUCTS || WAY == BACK)
                met->second[i][k] = is ? second[j] : 0.0f;
            else
                met->second[i][k] = met->first[i][k];
        }
    }
}

/* Compute e of each entry, and, but for FORWARD, G·V. Leave the columns from `piece` on in OWN and
 * MET. A head that is not wide has its columns in OWN before. */
template <way WAY, bool PRODUCTS, int LANES, int PER>
__device__ __forceinline__ void multiply(const walk &w, const team<LANES> &t, const chunk &c,
                                         int64_t piece, own_row<PER> *own, met_rows<PER> *met,
                                         float (&score)[STEPS], float (&product)[STEPS])
{
    const bool wide = w.pair.width > LANES * PER;
    for (int64_t at = 0; at < w.pair.width; at += LANES * PER) {
        if (wide)
            load_own<WAY, PRODUCTS>(w, t, at, own);
        load_met<WAY, PRODUCTS>(w, t, c, at, met);
#pragma unroll
        for (int i = 0; i < STEPS; i++)
#pragma unroll
            for (int k = 0; k < PER; k++) {
                const float x = own->first[k] + met->first[i][k];
                score[i] = PRODUCTS ? fmaf(own->first[k], met->first[i][k], score[i])
                                    : fmaf(own->even[k], x, fmaf(own->odd[k], fabsf(x), score[i]));
                if (WAY != FORWARD)
                    product[i] = fmaf(own->second[k], met->second[i][k], product[i]);
            }
    }
    if (wide) {
        load_own<WAY, PRODUCTS>(w, t, piece, own);
        load_met<WAY, PRODUCTS>(w, t, c, piece, met);
    }
    total<LANES>(t.mask, score);
    if (WAY != FORWARD)
        total<LANES>(t.mask, product);
}

/* ---- Weights ---- */

/* Return e^x, bounded to a finite value, because an entry of weight 0 may have any x. NaN stays. */
__device__ __forceinline__ float power(float x)
{
    const float most = LARGEST_POWER;
    return expf(x > most ? most : x);
}

__device__ __forceinline__ uint32_t vertex_at(const float *at)
{
    return __float_as_uint(*at) ^ SL_ATTENTION_VERTEX;
}

/* Set the entries' factors of dropout. Each lane draws for one entry. */
template <way WAY, int LANES>
__device__ __forceinline__ void draw(const walk &w, const team<LANES> &t, const chunk &c,
                                     float (&factor)[STEPS])
{
    const sl_dropout &drop = w.pair.attention.drop;
    static_assert((int)LANES >= (int)STEPS, "there is a lane for each entry");
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        factor[i] = 1.0f;
    if (!drop.threshold)
        return;
    const int head = w.pair.attention.first_head + t.head, field = head % PER_DRAW;
    const uint64_t key = drop.key + (uint64_t)(head / PER_DRAW) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t col = 0, low, high; /* column of one entry, while all entries stay in registers */
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        col |= c.col[i] & (t.lane % STEPS == i ? 0xFFFFFFFFu : 0);
    const uint32_t own = vertex_at(row_at(w.own_first, t.r) + w.own_vertex),
                   met = vertex_at(row_at(w.met_first, col) + w.met_vertex);
    sl_rng_block(key, WAY == BACK ? met : own, WAY == BACK ? own : met, &low, &high);
    const uint32_t bits = (field < 2 ? low : high) >> field % 2 * DROPOUT_BITS & 0xFFFF;
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        factor[i] = __shfl_sync(t.mask, bits, i, LANES) >= drop.threshold ? drop.scale : 0.0f;
}

/* ---- Forward ---- */

struct head_state {
    float m, l;
};

/* Turn scores into weights w e^(e - m). Return the factor by which a larger maximum scales sums. */
__device__ __forceinline__ float weigh(const chunk &c, float (&score)[STEPS], head_state *s)
{
    float top = s->m;
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        if (c.weight[i] > 0.0f && score[i] > top)
            top = score[i];
    const float scale = top == s->m ? 1.0f : expf(s->m - top);
    const float reference = top == -INFINITY ? 0.0f : top; /* no weight yet */
    s->m = top;
    s->l *= scale;
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        score[i] = c.weight[i] * power(score[i] - reference);
        s->l += score[i];
    }
    return scale;
}

template <bool PRODUCTS, int LANES, int PER>
__device__ __forceinline__ void meet_row(const walk &w, const team<LANES> &t, int64_t piece,
                                         own_row<PER> *own, head_state *s, float (&z)[PER])
{
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t end = w.a.row_ptr[b * w.a.rows + t.r + 1];
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + t.r]; e < end;) {
            const chunk c = read_chunk(w.a, b, e, end);
            met_rows<PER> met;
            float alpha[STEPS] = {}, unused[STEPS], factor[STEPS];
            multiply<FORWARD, PRODUCTS>(w, t, c, piece, own, &met, alpha, unused);
            const float scale = weigh(c, alpha, s);
            draw<FORWARD>(w, t, c, factor);
#pragma unroll
            for (int k = 0; k < PER; k++)
                z[k] *= scale;
#pragma unroll
            for (int i = 0; i < STEPS; i++)
#pragma unroll
                for (int k = 0; k < PER; k++)
                    z[k] = fmaf(alpha[i] * factor[i], met.second[i][k], z[k]);
            e += (uint32_t)c.count;
        }
    }
}

/* Read the lane's columns of sums from `piece` on, 0 where there are none. */
template <int LANES, int PER>
__device__ __forceinline__ void load_sums(const walk &w, const team<LANES> &t, int64_t piece,
                                          const float *from, float (&sum)[PER])
{
#pragma unroll
    for (int k = 0; k < PER; k++) {
        const int64_t j = piece + k * LANES + t.lane;
        sum[k] = w.accumulate && j < w.pair.width ? from[j] : 0.0f;
    }
}

/* Write them, and 0 to the columns of the room behind the width. */
template <int LANES, int PER>
__device__ __forceinline__ void store_sums(const walk &w, const team<LANES> &t, int64_t piece,
                                           const float (&sum)[PER], float *to)
{
#pragma unroll
    for (int k = 0; k < PER; k++) {
        const int64_t j = piece + k * LANES + t.lane;
        if (j < w.pair.attention.width)
            to[j] = j < w.pair.width ? sum[k] : 0.0f;
    }
}

template <bool PRODUCTS, int LANES, int PER>
__global__ void __launch_bounds__(THREADS) forward(walk w)
{
    const team<LANES> t(w);
    if (t.r >= w.a.rows)
        return;
    float *const row = row_at(w.out, t.r), *const z = row + t.column,
                 *const m = row + all_of(w.pair) + t.head, *const l = m + w.pair.attention.heads;
    head_state begin = {-INFINITY, 0.0f}, now = begin;
    if (w.accumulate && *l != 0.0f)
        begin = {*m, *l};
    own_row<PER> own;
    load_own<FORWARD, PRODUCTS>(w, t, 0, &own);
    for (int64_t piece = 0; piece < w.pair.width; piece += LANES * PER) {
        float sum[PER];
        load_sums(w, t, piece, z, sum);
        now = begin;
        meet_row<PRODUCTS>(w, t, piece, &own, &now, sum);
        store_sums(w, t, piece, sum, z);
    }
    __syncwarp(t.mask); /* all lanes have read m and l */
    if (t.lane == 0) {
        *m = now.m == -INFINITY ? 0.0f : now.m;
        *l = now.l;
    }
}

/* ---- Backward ---- */

/* Turn scores and products into the entries' α μ and de. */
template <way WAY, int LANES>
__device__ __forceinline__ void weigh_back(const walk &w, const team<LANES> &t, const chunk &c,
                                           float (&score)[STEPS], float (&product)[STEPS])
{
    const int64_t at = all_of(w.pair) + t.head; /* of L, and of r */
    float factor[STEPS];
    draw<WAY>(w, t, c, factor);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        float log_sum = 0.0f, r = 0.0f;
        if (i < c.count) {
            log_sum =
                WAY == BACK ? row_at(w.met_first, c.col[i])[at] : row_at(w.own_first, t.r)[at];
            r = WAY == BACK ? row_at(w.met_second, c.col[i])[at] : row_at(w.own_second, t.r)[at];
        }
        float alpha = c.weight[i] * power(score[i] - log_sum);
        alpha = alpha > 1.0f ? 1.0f : alpha; /* by rounding, or with the L of an old epoch */
        score[i] = alpha * factor[i];
        product[i] = alpha * fmaf(factor[i], product[i], -r);
    }
}

/* Add to the lane's columns of C (AGAIN), or of D and E (BACK). */
template <way WAY, bool PRODUCTS, int LANES, int PER>
__device__ __forceinline__ void meet_row_back(const walk &w, const team<LANES> &t, int64_t piece,
                                              own_row<PER> *own, float (&first)[PER],
                                              float (&second)[PER])
{
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t end = w.a.row_ptr[b * w.a.rows + t.r + 1];
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + t.r]; e < end;) {
            const chunk c = read_chunk(w.a, b, e, end);
            met_rows<PER> met;
            float share[STEPS] = {}, change[STEPS] = {};
            multiply<WAY, PRODUCTS>(w, t, c, piece, own, &met, share, change);
            weigh_back<WAY>(w, t, c, share, change);
#pragma unroll
            for (int i = 0; i < STEPS; i++)
#pragma unroll
                for (int k = 0; k < PER; k++) {
                    const float x = own->first[k] + met.first[i][k],
                                slope = x > 0.0f ? 1.0f : w.pair.attention.slope;
                    first[k] = fmaf(change[i], PRODUCTS ? met.first[i][k] : slope, first[k]);
                    if (WAY == BACK)
                        second[k] = fmaf(share[i], met.second[i][k], second[k]);
                }
            e += (uint32_t)c.count;
        }
    }
}

template <way WAY, bool PRODUCTS, int LANES, int PER>
__global__ void __launch_bounds__(THREADS) backward(walk w)
{
    const team<LANES> t(w);
    if (t.r >= w.a.rows)
        return;
    float *const row = row_at(w.out, t.r) + t.column, *const behind = row + all_of(w.pair);
    own_row<PER> own;
    load_own<WAY, PRODUCTS>(w, t, 0, &own);
    for (int64_t piece = 0; piece < w.pair.width; piece += LANES * PER) {
        float first[PER], second[PER] = {};
        load_sums(w, t, piece, row, first);
        if (WAY == BACK)
            load_sums(w, t, piece, behind, second);
        meet_row_back<WAY, PRODUCTS>(w, t, piece, &own, first, second);
        store_sums(w, t, piece, first, row);
        if (WAY == BACK)
            store_sums(w, t, piece, second, behind);
    }
}

/* ---- Launches of the walks ---- */

template <way WAY, bool PRODUCTS, int LANES, int PER>
void launch_lanes(const char *name, const walk &w, cudaStream_t stream)
{
    const dim3 grid(
        (unsigned)sl_cuda_divide_up(w.a.rows * w.pair.attention.heads, THREADS / LANES));
    void (*kernel)(walk);
    if constexpr (WAY == FORWARD)
        kernel = forward<PRODUCTS, LANES, PER>;
    else
        kernel = backward<WAY, PRODUCTS, LANES, PER>;
    sl_cuda_launch(name, kernel, grid, THREADS, 0, stream, w);
}

template <way WAY, bool PRODUCTS>
void launch_products(const char *name, const walk &w, cudaStream_t stream)
{
    const int64_t width = w.pair.width;
    if (width <= 8)
        launch_lanes<WAY, PRODUCTS, 8, 1>(name, w, stream);
    else if (width <= 16)
        launch_lanes<WAY, PRODUCTS, 8, 2>(name, w, stream);
    else if (width <= 32)
        launch_lanes<WAY, PRODUCTS, 16, 2>(name, w, stream);
    else if (width <= 64)
        launch_lanes<WAY, PRODUCTS, 32, 2>(name, w, stream);
    else
        launch_lanes<WAY, PRODUCTS, 32, 4>(name, w, stream);
}

template <way WAY> void launch_walk(const char *name, const walk &w, cudaStream_t stream)
{
    if (w.a.rows == 0)
        return;
    if (w.pair.products)
        launch_products<WAY, true>(name, w, stream);
    else
        launch_products<WAY, false>(name, w, stream);
}

/* Return V in a row of SOURCE, which is K for GATv2. */
sl_floats_at values_of(const sl_pair *pair, const sl_floats_at *source)
{
    return {source->data + (pair->products ? sl_pair_all(pair) : 0), source->ld};
}

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
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y, all = all_of(pair);
    const int heads = pair.attention.heads;
    if (r >= rows)
        return;
    const float *const from = row_at(other, r);
    float *const to = row_at(state, index ? index[r] : r), *const own = shared.own[threadIdx.y],
                 *const factor = shared.other[threadIdx.y];
    for (int h = (int)threadIdx.x; h < heads; h += 32)
        merge_head(from + all + h, to + all + h, heads, &own[h], &factor[h]);
    __syncwarp();
    for (int64_t j = threadIdx.x; j < all; j += 32) {
        const int64_t h = j / pair.attention.width;
        if (factor[h] != 0.0f || own[h] != 1.0f)
            to[j] = fmaf(factor[h], from[j], own[h] * to[j]);
    }
}

__global__ void __launch_bounds__(32 * ROWS)
    close_rows(sl_pair pair, int64_t rows, sl_floats_at target, sl_floats_at state)
{
    factors &shared = sl_cuda_shared<factors>();
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y, all = all_of(pair);
    const int heads = pair.attention.heads;
    if (r >= rows)
        return;
    float *const to = row_at(state, r), *const m = to + all, *const l = m + heads,
                 *const closed = row_at(target, r) + all, *const by = shared.own[threadIdx.y];
    for (int h = (int)threadIdx.x; h < heads; h += 32) {
        const float sum = l[h];
        by[h] = sum > 0.0f ? 1.0f / sum : 1.0f;
        l[h] = sum * by[h];
        closed[h] = m[h] = sum > 0.0f ? m[h] + logf(sum) : 0.0f;
    }
    __syncwarp();
    for (int64_t j = threadIdx.x; j < all; j += 32)
        to[j] *= by[j / pair.attention.width];
}

} // namespace

extern "C" void sl_cuda_pair(const struct sl_pair *pair, const struct sl_sparse *a,
                             const struct sl_floats_at *vectors_at,
                             const struct sl_floats_at *source, const struct sl_floats_at *target,
                             bool accumulate, const struct sl_floats_at *state,
                             struct sl_cuda_queue queue)
{
    const walk w = {*pair,
                    *a,
                    *vectors_at,
                    *target,
                    {},
                    *source,
                    values_of(pair, source),
                    sl_pair_target(pair) - 1,
                    sl_pair_source(pair) - 1,
                    accumulate,
                    *state};
    launch_walk<FORWARD>("pair", w, queue.stream);
}

extern "C" void sl_cuda_pair_again(const struct sl_pair *pair, const struct sl_sparse *a,
                                   const struct sl_floats_at *vectors_at,
                                   const struct sl_floats_at *source,
                                   const struct sl_floats_at *target,
                                   const struct sl_floats_at *gradient_at, bool accumulate,
                                   const struct sl_floats_at *target_back,
                                   struct sl_cuda_queue queue)
{
    const walk w = {*pair,
                    *a,
                    *vectors_at,
                    *target,
                    *gradient_at,
                    *source,
                    values_of(pair, source),
                    sl_pair_target(pair) - 1,
                    sl_pair_source(pair) - 1,
                    accumulate,
                    *target_back};
    launch_walk<AGAIN>("pair_again", w, queue.stream);
}

extern "C" void sl_cuda_pair_back(const struct sl_pair *pair, const struct sl_sparse *at,
                                  const struct sl_floats_at *vectors_at,
                                  const struct sl_floats_at *gradient_at,
                                  const struct sl_floats_at *target,
                                  const struct sl_floats_at *source, bool accumulate,
                                  const struct sl_floats_at *source_back,
                                  struct sl_cuda_queue queue)
{
    const walk w = {*pair,
                    *at,
                    *vectors_at,
                    *source,
                    values_of(pair, source),
                    *target,
                    *gradient_at,
                    sl_pair_source(pair) - 1,
                    sl_pair_target(pair) - 1,
                    accumulate,
                    *source_back};
    launch_walk<BACK>("pair_back", w, queue.stream);
}

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
                                   const struct sl_floats_at *target,
                                   const struct sl_floats_at *state, struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    sl_cuda_launch("pair_close", close_rows, dim3((unsigned)sl_cuda_divide_up(rows, ROWS)),
                   dim3(32, ROWS), 0, queue.stream, *pair, rows, *target, *state);
}

/* ---- Tasks ---- */

static sl_floats_at floats_of(void *buffer)
{
    const sl_dense tile = sl_dense_buffer(buffer);
    return {tile.data, tile.ld};
}

extern "C" void pair_cuda(void *buffers[], void *argument)
{
    const pair_argument *arg = (const pair_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at vectors_at = floats_of(buffers[1]), source = floats_of(buffers[2]),
                       target = floats_of(buffers[3]), state = floats_of(buffers[4]);
    sl_cuda_pair(&arg->pair, &a, &vectors_at, &source, &target, arg->accumulate, &state,
                 sl_cuda_task_queue());
}

extern "C" void pair_again_cuda(void *buffers[], void *argument)
{
    const pair_argument *arg = (const pair_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at vectors_at = floats_of(buffers[1]), source = floats_of(buffers[2]),
                       target = floats_of(buffers[3]), gradient_at = floats_of(buffers[4]),
                       target_back = floats_of(buffers[5]);
    sl_cuda_pair_again(&arg->pair, &a, &vectors_at, &source, &target, &gradient_at, arg->accumulate,
                       &target_back, sl_cuda_task_queue());
}

extern "C" void pair_back_cuda(void *buffers[], void *argument)
{
    const pair_argument *arg = (const pair_argument *)argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at vectors_at = floats_of(buffers[1]), gradient_at = floats_of(buffers[2]),
                       target = floats_of(buffers[3]), source = floats_of(buffers[4]),
                       source_back = floats_of(buffers[5]);
    sl_cuda_pair_back(&arg->pair, &at, &vectors_at, &gradient_at, &target, &source, arg->accumulate,
                      &source_back, sl_cuda_task_queue());
}

extern "C" void pair_merge_cuda(void *buffers[], void *argument)
{
    const pair_merge_argument *arg = (const pair_merge_argument *)argument;
    const sl_floats_at tile = floats_of(buffers[0]), state = floats_of(buffers[1 + arg->listed]),
                       other = {tile.data + arg->first * tile.ld, tile.ld};
    const uint32_t *index = arg->listed ? (const uint32_t *)sl_raw_buffer(buffers[1]) : nullptr;
    sl_cuda_pair_merge(&arg->pair, arg->rows, index ? index + arg->first : nullptr, &other, &state,
                       sl_cuda_task_queue());
}

extern "C" void pair_close_cuda(void *buffers[], void *argument)
{
    const sl_floats_at target = floats_of(buffers[0]), state = floats_of(buffers[1]);
    sl_cuda_pair_close((const sl_pair *)argument, sl_dense_buffer(buffers[1]).rows, &target, &state,
                       sl_cuda_task_queue());
}
