/* Attention whose scores need the rows of both ends of an edge. In a walk, a team of lanes has a
 * head of a row. A lane has some columns of the head: every LANES-th one. The team works on a few
 * entries of the row at a time: it multiplies rows, adds the products over its lanes, makes the
 * entries' weights, which then all lanes know, and adds the entries' rows to its columns. Maximum
 * and sums stay in registers. The columns of a wide head take several walks over the row, each of
 * which computes the weights anew.
 *
 * The division into teams depends on the width of a head alone. So results do not depend on how
 * rows are read. */
#include <math.h>

#include "codelets/cuda_epilogue.h"

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

/* ---- Parameters ----
 *
 * Operations on each element. */

/* Return the row of a, or, for a transformer, of the bias of K, behind `skipped` rows. */
__device__ __forceinline__ int64_t row_behind_weights(const sl_pair &pair,
                                                      const sl_pair_shape &shape)
{
    return (pair.products ? 3 : 2) * shape.in;
}

struct weights {
    sl_pair pair;
    sl_pair_shape shape;
    sl_floats_at parameters;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t columns = pair.attention.heads * pair.width;
        return {{row_at(parameters,
                        shape.skipped + j / columns * shape.in + r)[shape.first + j % columns]}};
    }
};

struct vectors {
    sl_pair pair;
    sl_pair_shape shape;
    sl_floats_at parameters;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t h = j / pair.attention.width, own = j % pair.attention.width;
        if (pair.products || own >= pair.width)
            return {{0.0f}};
        const float a = row_at(
                        parameters,
                        shape.skipped +
                            row_behind_weights(pair, shape))[shape.first + h * pair.width + own],
                    slope = pair.attention.slope;
        const float factor = r == SL_PAIR_EVEN  ? 0.5f * (1.0f + slope)
                             : r == SL_PAIR_ODD ? 0.5f * (1.0f - slope)
                                                : 1.0f;
        return {{a * factor}};
    }
};

/* The gradient of the parameters behind `skipped` rows. */
struct weights_back {
    sl_pair pair;
    sl_pair_shape shape;
    sl_floats_at gradient;
    bool accumulate;
    sl_floats_at back;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t columns = pair.attention.heads * pair.width, own = j - shape.first,
                      weights = row_behind_weights(pair, shape), biases = weights + !pair.products,
                      bias = biases + (pair.products ? 3 : 2), in_bias = j - shape.out_column;
        const float before = accumulate ? row_at(back, r)[j] : 0.0f;
        const float *const behind = row_at(gradient, shape.in) + shape.at;
        if (r >= bias)
            return {{in_bias >= 0 && in_bias < shape.out
                         ? behind[(!pair.products + 1) * gradient.ld + in_bias]
                         : before}};
        if (own < 0 || own >= columns)
            return {{before}};
        if (r < weights)
            return {{row_at(gradient, r % shape.in)[shape.at + r / shape.in * columns + own]}};
        if (r < biases)
            return {{behind[own]}};
        if (r < biases + pair.products + shape.cancels)
            return {{0.0f}};
        return {{behind[!pair.products * gradient.ld + (r - biases) * columns + own]}};
    }
};

/* ---- Rows ---- */

/* Rows of SOURCE, or of TARGET: matrices from number `first` on, whose columns have room and a
 * factor, then zeros, then the vertex's number. */
struct ends {
    sl_pair pair;
    sl_pair_shape shape;
    const uint32_t *vertex;
    sl_floats_at parameters, projected;
    int first, matrices;
    float scale;
    int64_t last; /* column of the vertex */

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t all = all_of(pair), within = j % all, h = within / pair.attention.width,
                      own = within % pair.attention.width, matrix = first + j / all;
        if (j == last)
            return {{__uint_as_float(vertex[r] ^ SL_ATTENTION_VERTEX)}};
        if (j >= matrices * all || own >= pair.width)
            return {{0.0f}};
        const int64_t column = h * pair.width + own;
        float x = row_at(projected, r)[matrix * pair.attention.heads * pair.width + column];
        if (shape.bias)
            x += row_at(parameters, shape.skipped + row_behind_weights(pair, shape) +
                                        !pair.products + matrix)[shape.first + column];
        return {{scale * x}};
    }
};

/* Z of a closed state, or the mean of its heads, with the epilogue. */
struct output {
    sl_pair pair;
    bool mean;
    sl_floats_at state;
    sl_epilogue epilogue;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const float share = 1.0f / (float)pair.attention.heads, *const z = row_at(state, r);
        const int64_t room = pair.attention.width;
        sl_cuda_vector<V> sum = {};
        if (!mean)
            sum = sl_cuda_load<V>(z + j / pair.width * room + j % pair.width, count);
        for (int64_t h = 0; mean && h < pair.attention.heads; h++) {
            const sl_cuda_vector<V> own = sl_cuda_load<V>(z + h * room + j, count);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum.at[i] += own.at[i];
        }
#pragma unroll
        for (int i = 0; mean && i < V; i++)
            sum.at[i] *= share;
        sl_cuda_finish<V>(epilogue, true, r, j, count, &sum);
        return sum;
    }
};

template <class T>
void launch_output(int64_t rows, const output &operation, const sl_rows &z, cudaStream_t stream)
{
    const int64_t out = operation.mean ? operation.pair.width : sl_pair_columns(&operation.pair);
    const bool aligned = operation.pair.width % 4 == 0 &&
                         sl_cuda_aligned(rows, operation.state.data, operation.state.ld) &&
                         sl_cuda_aligned(rows, z) &&
                         sl_cuda_epilogue_aligned(operation.epilogue, rows, out);
    sl_cuda_launch_each("pair_output", rows, out, aligned, operation, (T *)z.data, z.ld, stream);
}

/* Make [G | r]: a group of lanes has a head of a row. Each lane adds every LANES-th term of r, then
 * a tree adds the lanes. */
enum { GRADIENT_THREADS = 256, WIDE = 16 }; /* a head wider than WIDE has 32 lanes, another 8 */

template <int LANES>
__global__ void __launch_bounds__(GRADIENT_THREADS)
    gradient(sl_pair pair, int64_t rows, bool mean, sl_rows g, sl_floats_at state, sl_floats_at out)
{
    const int64_t item = ((int64_t)blockIdx.x * GRADIENT_THREADS + threadIdx.x) / LANES,
                  r = item / pair.attention.heads, h = item % pair.attention.heads;
    const int lane = (int)threadIdx.x % LANES;
    const unsigned mask = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - (unsigned)lane);
    if (r >= rows)
        return;
    const float share = mean ? 1.0f / (float)pair.attention.heads : 1.0f,
                *const z = row_at(state, r) + h * pair.attention.width;
    float *const to = row_at(out, r) + h * pair.attention.width, sum = 0.0f;
    for (int64_t j = lane; j < pair.attention.width; j += LANES) {
        float x = 0.0f;
        if (j < pair.width) {
            x = share * sl_cuda_element(g, r, mean ? j : h * pair.width + j);
            sum = fmaf(x, z[j], sum);
        }
        to[j] = x;
    }
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(mask, sum, distance);
    if (lane == 0)
        row_at(out, r)[all_of(pair) + h] = sum;
}

struct join {
    sl_pair pair;
    sl_floats_at vectors, target_back, source_back;
    int64_t first; /* first column */

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t columns = pair.attention.heads * pair.width, within = j % columns,
                      padded = within / pair.width * pair.attention.width + within % pair.width,
                      matrix = (first + j) / columns;
        const float *const d = row_at(source_back, r) + padded, *const e = d + all_of(pair),
                           *const c = row_at(target_back, r) + padded;
        if (pair.products)
            return {{matrix == 0 ? *d : matrix == 1 ? *e : pair.scale * *c}};
        const float a = row_at(vectors, SL_PAIR_PLAIN)[padded];
        return {{matrix == 0 ? fmaf(a, *d, *e) : a * *c}};
    }
};

/* ---- The gradient of a ----
 *
 * Column sums in a fixed order. The shape alone cuts the rows into chunks. A block sums some
 * columns of one chunk into the workspace: first each thread row, then the thread rows in order. A
 * second launch adds the chunks. */

enum { SUM_LANES = 32, SUM_ROWS = 8, MOST_CHUNKS = 256, LEAST_ROWS = 64 /* of a chunk */ };
static_assert(MOST_CHUNKS * SL_ATTENTION_COLUMNS * sizeof(float) <= SL_RUNTIME_WORKSPACE,
              "the chunks' sums have room");

struct vector_back {
    sl_pair pair;
    int64_t rows, chunk;
    sl_floats_at source, target, target_back, source_back;
};

__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS) sum_chunk(vector_back v, float *sums)
{
    auto &part = sl_cuda_shared<float[SUM_ROWS][SUM_LANES]>();
    const int64_t columns = v.pair.attention.heads * v.pair.width,
                  j = (int64_t)blockIdx.x * SUM_LANES + threadIdx.x,
                  padded = j / v.pair.width * v.pair.attention.width + j % v.pair.width,
                  begin = (int64_t)blockIdx.y * v.chunk,
                  end = begin + v.chunk < v.rows ? begin + v.chunk : v.rows;
    float sum = 0.0f;
    if (j < columns) {
#pragma unroll 4
        for (int64_t r = begin + threadIdx.y; r < end; r += SUM_ROWS) {
            sum = fmaf(row_at(v.source, r)[padded], row_at(v.source_back, r)[padded], sum);
            sum = fmaf(row_at(v.target, r)[padded], row_at(v.target_back, r)[padded], sum);
        }
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= columns)
        return;
    for (int i = 1; i < SUM_ROWS; i++)
        sum += part[i][threadIdx.x];
    sums[blockIdx.y * columns + j] = sum;
}

/* The sum over the chunks, as an operation on each element. */
struct chunk_sums {
    int64_t chunks, columns;
    const float *sums; // (chunks, columns)

    template <int V> __device__ sl_cuda_vector<V> at(int64_t, int64_t j, int64_t) const
    {
        float sum = 0.0f;
        for (int64_t i = 0; i < chunks; i++)
            sum += sums[i * columns + j];
        return {{sum}};
    }
};

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

extern "C" void sl_cuda_pair_weights(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                                     const struct sl_floats_at *parameters,
                                     const struct sl_floats_at *weights_at,
                                     const struct sl_floats_at *vectors_at,
                                     struct sl_cuda_queue queue)
{
    sl_cuda_launch_each("pair_weights", shape->in, sl_pair_projected(pair), false,
                        weights{*pair, *shape, *parameters}, weights_at->data + shape->at,
                        weights_at->ld, queue.stream);
    sl_cuda_launch_each("pair_vectors", SL_PAIR_VECTORS, sl_pair_all(pair), false,
                        vectors{*pair, *shape, *parameters}, vectors_at->data, vectors_at->ld,
                        queue.stream);
}

extern "C" void sl_cuda_pair_weights_back(const struct sl_pair *pair,
                                          const struct sl_pair_shape *shape,
                                          const struct sl_floats_at *gradient_at, bool accumulate,
                                          const struct sl_floats_at *back,
                                          struct sl_cuda_queue queue)
{
    const sl_floats_at behind = {back->data + shape->skipped * back->ld, back->ld};
    const int count = sl_pair_weights(pair);
    const int64_t rows = count * shape->in + !pair->products + (shape->bias ? count + 1 : 0);
    sl_cuda_launch_each("pair_weights_back", rows, shape->columns, false,
                        weights_back{*pair, *shape, *gradient_at, accumulate, behind}, behind.data,
                        behind.ld, queue.stream);
}

extern "C" void sl_cuda_pair_ends(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                                  int64_t rows, const uint32_t *vertex,
                                  const struct sl_floats_at *parameters,
                                  const struct sl_floats_at *projected,
                                  const struct sl_floats_at *source,
                                  const struct sl_floats_at *target, struct sl_cuda_queue queue)
{
    const int matrices = sl_pair_weights(pair) - 1;
    const int64_t source_columns = sl_pair_source(pair), target_columns = sl_pair_target(pair);
    sl_cuda_launch_each(
        "pair_ends, source", rows, source_columns, false,
        ends{*pair, *shape, vertex, *parameters, *projected, 0, matrices, 1.0f, source_columns - 1},
        source->data, source->ld, queue.stream);
    sl_cuda_launch_each("pair_ends, target", rows, target_columns, false,
                        ends{*pair, *shape, vertex, *parameters, *projected, matrices, 1,
                             pair->scale, target_columns - 1},
                        target->data, target->ld, queue.stream);
}

extern "C" void sl_cuda_pair_output(const struct sl_pair *pair, int64_t rows, bool mean,
                                    const struct sl_floats_at *state,
                                    const struct sl_epilogue *epilogue, const struct sl_rows *z,
                                    struct sl_cuda_queue queue)
{
    const output operation = {*pair, mean, *state, *epilogue};
    if (z->type == SL_BFLOAT16)
        launch_output<__nv_bfloat16>(rows, operation, *z, queue.stream);
    else
        launch_output<float>(rows, operation, *z, queue.stream);
}

extern "C" void sl_cuda_pair_gradient(const struct sl_pair *pair, int64_t rows, bool mean,
                                      const struct sl_rows *g, const struct sl_floats_at *state,
                                      const struct sl_floats_at *gradient_at,
                                      struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    const int lanes = pair->width > WIDE ? 32 : 8;
    const dim3 grid(
        (unsigned)sl_cuda_divide_up(rows * pair->attention.heads, GRADIENT_THREADS / lanes));
    sl_cuda_launch("pair_gradient", lanes == 32 ? gradient<32> : gradient<8>, grid,
                   GRADIENT_THREADS, 0, queue.stream, *pair, rows, mean, *g, *state, *gradient_at);
}

extern "C" void sl_cuda_pair_join(const struct sl_pair *pair, int64_t rows,
                                  const struct sl_floats_at *vectors_at,
                                  const struct sl_floats_at *target_back,
                                  const struct sl_floats_at *source_back,
                                  const struct sl_floats_at *projected, struct sl_cuda_queue queue)
{
    /* T's gradient comes last, because PROJECTED may be SOURCE_BACK */
    const int64_t columns = sl_pair_columns(pair), sources = sl_pair_projected(pair) - columns;
    const join operation = {*pair, *vectors_at, *target_back, *source_back, 0};
    sl_cuda_launch_each("pair_join", rows, sources, false, operation, projected->data,
                        projected->ld, queue.stream);
    sl_cuda_launch_each("pair_join", rows, columns, false,
                        join{*pair, *vectors_at, *target_back, *source_back, sources},
                        projected->data + sources, projected->ld, queue.stream);
}

extern "C" void sl_cuda_pair_vector_back(const struct sl_pair *pair, int64_t rows,
                                         const struct sl_floats_at *source,
                                         const struct sl_floats_at *target,
                                         const struct sl_floats_at *target_back,
                                         const struct sl_floats_at *source_back, float *to,
                                         struct sl_cuda_queue queue)
{
    const int64_t columns = sl_pair_columns(pair), share = sl_cuda_divide_up(rows, MOST_CHUNKS),
                  least = columns <= SL_ATTENTION_COLUMNS ? (int64_t)LEAST_ROWS : rows;
    vector_back v = {*pair,        rows,        share < least ? least : share, *source, *target,
                     *target_back, *source_back};
    const int64_t chunks = rows <= v.chunk ? 1 : sl_cuda_divide_up(rows, v.chunk);
    float *const sums = chunks == 1 ? to : (float *)queue.workspace;
    const dim3 grid((unsigned)sl_cuda_divide_up(columns, SUM_LANES), (unsigned)chunks);
    sl_cuda_launch("pair_vector_back", sum_chunk, grid, dim3(SUM_LANES, SUM_ROWS), 0, queue.stream,
                   v, sums);
    if (chunks > 1)
        sl_cuda_launch_each("pair_vector_back, sum", 1, columns, false,
                            chunk_sums{chunks, columns, sums}, to, columns, queue.stream);
}

/* ---- Tasks ---- */

static sl_floats_at floats_of(void *buffer)
{
    const sl_dense tile = sl_dense_buffer(buffer);
    return {tile.data, tile.ld};
}

extern "C" void pair_weights_cuda(void *buffers[], void *argument)
{
    const pair_weights_argument *arg = (const pair_weights_argument *)argument;
    const sl_floats_at parameters = floats_of(buffers[0]), weights_at = floats_of(buffers[1]),
                       vectors_at = floats_of(buffers[2]);
    sl_cuda_pair_weights(&arg->pair, &arg->shape, &parameters, &weights_at, &vectors_at,
                         sl_cuda_task_queue());
}

extern "C" void pair_weights_back_cuda(void *buffers[], void *argument)
{
    const pair_weights_argument *arg = (const pair_weights_argument *)argument;
    const sl_floats_at gradient_at = floats_of(buffers[0]), back = floats_of(buffers[1]);
    sl_cuda_pair_weights_back(&arg->pair, &arg->shape, &gradient_at, arg->further, &back,
                              sl_cuda_task_queue());
}

extern "C" void pair_ends_cuda(void *buffers[], void *argument)
{
    const pair_weights_argument *arg = (const pair_weights_argument *)argument;
    const sl_floats_at parameters = floats_of(buffers[1]), projected = floats_of(buffers[2]),
                       source = floats_of(buffers[3]), target = floats_of(buffers[4]);
    sl_cuda_pair_ends(&arg->pair, &arg->shape, sl_dense_buffer(buffers[2]).rows,
                      sl_vertices(buffers[0]), &parameters, &projected, &source, &target,
                      sl_cuda_task_queue());
}

extern "C" void pair_output_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    struct sl_epilogue epilogue;
    const int used = sl_epilogue_buffers(&arg->epilogue, buffers + 1, &epilogue);
    const sl_floats_at state = floats_of(buffers[0]);
    const sl_rows z = sl_rows_buffer(buffers[1 + used]);
    sl_cuda_pair_output(&arg->pair, sl_dense_buffer(buffers[0]).rows, arg->mean, &state, &epilogue,
                        &z, sl_cuda_task_queue());
}

extern "C" void pair_gradient_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    const sl_rows g = sl_rows_buffer(buffers[0]);
    const sl_floats_at state = floats_of(buffers[1]), gradient_at = floats_of(buffers[2]);
    sl_cuda_pair_gradient(&arg->pair, sl_dense_buffer(buffers[1]).rows, arg->mean, &g, &state,
                          &gradient_at, sl_cuda_task_queue());
}

extern "C" void pair_join_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    void *const last = buffers[2 + !arg->in_place];
    const sl_floats_at vectors_at = floats_of(buffers[0]), target_back = floats_of(buffers[1]),
                       source_back = floats_of(buffers[2]), projected = floats_of(last);
    sl_cuda_pair_join(&arg->pair, sl_dense_buffer(last).rows, &vectors_at, &target_back,
                      &source_back, &projected, sl_cuda_task_queue());
}

extern "C" void pair_vector_back_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    const sl_floats_at source = floats_of(buffers[0]), target = floats_of(buffers[1]),
                       target_back = floats_of(buffers[2]), source_back = floats_of(buffers[3]),
                       to = floats_of(buffers[4]);
    sl_cuda_pair_vector_back(&arg->pair, sl_dense_buffer(buffers[0]).rows, &source, &target,
                             &target_back, &source_back, to.data + arg->row * to.ld,
                             sl_cuda_task_queue());
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
