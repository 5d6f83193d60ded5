/* Teams of lanes, which walk over rows of pair attention. In a walk, a team of lanes has a
 * head of a row. A lane has some columns of the head: every LANES-th one. The team works on a few
 * entries of the row at a time. It multiplies rows, and adds the products over its lanes: all lanes
 * then know the entries' weights. It adds the entries' rows to its columns. Maximum
 * and sums stay in registers. The columns of a wide head take several walks over the row, each of
 * which computes the weights anew.
 *
 * Features of entries, EDGES: of GATv2, a lane adds its columns of an edge's row to the row that is
 * met. Of a transformer, a lane has some features, every LANES-th one: it adds their part of a
 * product, and their sums.
 *
 * The division into teams depends on the width of a head alone. So results do not depend on how
 * rows are read. */
#ifndef SL_CODELETS_CUDA_PAIR_WALK_H
#define SL_CODELETS_CUDA_PAIR_WALK_H

#include <math.h>

#include "codelets/cuda_pair.h"

namespace
{

enum {
    THREADS = 128, /* threads of a block in a walk */
    STEPS = 4,     /* entries at a time */
    PER_DRAW = 4,  /* heads that share a draw, as in attention.c */
    DROPOUT_BITS = 16,
    LARGEST_POWER = 88, /* e to this power is finite */
    SHARE = 2,          /* a lane's features in one walk over a row */
};

enum way { FORWARD, AGAIN, BACK };

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
    int64_t chunk; /* rows of a team that makes sums M */
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
    uint32_t first; /* number of the first entry */
    uint32_t col[STEPS];
    float weight[STEPS];
};

__device__ __forceinline__ chunk read_chunk(const sl_sparse &a, int64_t block, uint32_t e,
                                            uint32_t end)
{
    chunk c;
    c.count = end - e < STEPS ? (int)(end - e) : (int)STEPS;
    c.first = e;
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

/* Return the features of entry i of a chunk. */
__device__ __forceinline__ const float *features_of(const walk &w, const chunk &c, int i)
{
    return w.a.edge + (c.first + (uint32_t)i) * w.pair.edges;
}

/* Return x plus column j of the row of entry i's edge. */
__device__ __forceinline__ float add_edge(const walk &w, const chunk &c, int i, int64_t j, float x)
{
    const float *const feature = features_of(w, c, i);
    for (int64_t f = 0; f < w.pair.edges; f++)
        x = fmaf(feature[f], sl_pair_row_at(w.vectors, SL_PAIR_VECTORS + f)[j], x);
    return x;
}

/* Add the lane's part of the features' products with numbers: of the own row, or of rows met. */
template <int LANES>
__device__ __forceinline__ void add_numbers(const walk &w, const team<LANES> &t, const chunk &c,
                                            const sl_floats_at &own, const sl_floats_at &met,
                                            bool of_met, int64_t column, float (&x)[STEPS])
{
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        if (i < c.count) {
            const float *const feature = features_of(w, c, i), *const n =
                                                                   (of_met ? sl_pair_row_at(
                                                                                 met, c.col[i])
                                                                           : sl_pair_row_at(own,
                                                                                            t.r)) +
                                                                   column;
            for (int64_t f = t.lane; f < w.pair.edges; f += LANES)
                x[i] = fmaf(feature[f], sl_pair_number(w.pair, n, f, t.head), x[i]);
        }
}

/* Sums of the lane's features from `first` on. */
template <int LANES>
__device__ __forceinline__ void sum_features(const walk &w, const team<LANES> &t, const chunk &c,
                                             int64_t first, const float (&factor)[STEPS],
                                             float (&sum)[SHARE])
{
#pragma unroll
    for (int i = 0; i < STEPS; i++)
#pragma unroll
        for (int q = 0; q < SHARE; q++) {
            const int64_t f = first + q * LANES + t.lane;
            if (i < c.count && f < w.pair.edges)
                sum[q] = fmaf(factor[i], features_of(w, c, i)[f], sum[q]);
        }
}

template <int LANES>
__device__ __forceinline__ void load_features(const walk &w, const team<LANES> &t, int64_t first,
                                              const float *from, float (&sum)[SHARE])
{
#pragma unroll
    for (int q = 0; q < SHARE; q++) {
        const int64_t f = first + q * LANES + t.lane;
        sum[q] =
            w.accumulate && f < w.pair.edges ? from[f * w.pair.attention.heads + t.head] : 0.0f;
    }
}

template <int LANES>
__device__ __forceinline__ void store_features(const walk &w, const team<LANES> &t, int64_t first,
                                               const float (&sum)[SHARE], float *to)
{
#pragma unroll
    for (int q = 0; q < SHARE; q++) {
        const int64_t f = first + q * LANES + t.lane;
        if (f < w.pair.edges)
            to[f * w.pair.attention.heads + t.head] = sum[q];
    }
}

/* Return whether a walk over a row has columns from `piece` on, or features from `first` on. */
template <bool NUMBERS>
__device__ __forceinline__ bool has_piece(const walk &w, int64_t piece, int64_t first)
{
    return piece < w.pair.width || (NUMBERS && first < w.pair.edges);
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
        own->first[k] = is ? sl_pair_row_at(w.own_first, t.r)[t.column + j] : 0.0f;
        own->second[k] = own->even[k] = own->odd[k] = 0.0f;
        if (WAY != FORWARD)
            own->second[k] = is ? sl_pair_row_at(w.own_second, t.r)[t.column + j] : 0.0f;
        if (!PRODUCTS && is) {
            own->even[k] = sl_pair_row_at(w.vectors, SL_PAIR_EVEN)[t.column + j];
            own->odd[k] = sl_pair_row_at(w.vectors, SL_PAIR_ODD)[t.column + j];
        }
    }
}

template <way WAY, bool PRODUCTS, bool EDGES, int LANES, int PER>
__device__ __forceinline__ void load_met(const walk &w, const team<LANES> &t, const chunk &c,
                                         int64_t piece, met_rows<PER> *met)
{
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const float *const first = sl_pair_row_at(w.met_first, c.col[i]) + t.column,
                           *const second = sl_pair_row_at(w.met_second, c.col[i]) + t.column;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            const int64_t j = piece + k * LANES + t.lane;
            const bool is = i < c.count && j < w.pair.width;
            met->first[i][k] = is ? first[j] : 0.0f;
            if (PRODUCTS || WAY == BACK)
                met->second[i][k] = is ? second[j] : 0.0f;
            else
                met->second[i][k] = met->first[i][k];
            if (EDGES && !PRODUCTS && is)
                met->first[i][k] = add_edge(w, c, i, t.column + j, met->first[i][k]);
        }
    }
}

/* Compute e of each entry, and, but for FORWARD, G·V. Leave the columns from `piece` on in OWN and
 * MET. A head that is not wide has its columns in OWN before. */
template <way WAY, bool PRODUCTS, bool EDGES, int LANES, int PER>
__device__ __forceinline__ void multiply(const walk &w, const team<LANES> &t, const chunk &c,
                                         int64_t piece, own_row<PER> *own, met_rows<PER> *met,
                                         float (&score)[STEPS], float (&product)[STEPS])
{
    const bool wide = w.pair.width > LANES * PER;
    for (int64_t at = 0; at < w.pair.width; at += LANES * PER) {
        if (wide)
            load_own<WAY, PRODUCTS>(w, t, at, own);
        load_met<WAY, PRODUCTS, EDGES>(w, t, c, at, met);
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
        load_met<WAY, PRODUCTS, EDGES>(w, t, c, piece, met);
    }
    if (EDGES && PRODUCTS) {
        const int64_t numbers = sl_pair_all_of(w.pair) + w.pair.attention.heads;
        add_numbers(w, t, c, w.own_first, w.met_first, WAY == BACK, numbers + 1, score);
        if (WAY != FORWARD)
            add_numbers(w, t, c, w.own_second, w.met_second, WAY == BACK, numbers, product);
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
    const uint32_t own = vertex_at(sl_pair_row_at(w.own_first, t.r) + w.own_vertex),
                   met = vertex_at(sl_pair_row_at(w.met_first, col) + w.met_vertex);
    sl_rng_block(key, WAY == BACK ? met : own, WAY == BACK ? own : met, &low, &high);
    const uint32_t bits = (field < 2 ? low : high) >> field % 2 * DROPOUT_BITS & 0xFFFF;
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        factor[i] = __shfl_sync(t.mask, bits, i, LANES) >= drop.threshold ? drop.scale : 0.0f;
}

/* ---- Sums ---- */

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

/* ---- Weights going back ---- */

/* Turn scores and products into the entries' α μ and de. */
template <way WAY, int LANES>
__device__ __forceinline__ void weigh_back(const walk &w, const team<LANES> &t, const chunk &c,
                                           float (&score)[STEPS], float (&product)[STEPS])
{
    const int64_t at = sl_pair_all_of(w.pair) + t.head; /* of L, and of r */
    float factor[STEPS];
    draw<WAY>(w, t, c, factor);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        float log_sum = 0.0f, r = 0.0f;
        if (i < c.count) {
            log_sum = WAY == BACK ? sl_pair_row_at(w.met_first, c.col[i])[at]
                                  : sl_pair_row_at(w.own_first, t.r)[at];
            r = WAY == BACK ? sl_pair_row_at(w.met_second, c.col[i])[at]
                            : sl_pair_row_at(w.own_second, t.r)[at];
        }
        float alpha = c.weight[i] * power(score[i] - log_sum);
        alpha = alpha > 1.0f ? 1.0f : alpha; /* by rounding, or with the L of an old epoch */
        score[i] = alpha * factor[i];
        product[i] = alpha * fmaf(factor[i], product[i], -r);
    }
}

/* ---- Launches ---- */

/* Return V in a row of SOURCE, which is K for GATv2. */
inline sl_floats_at values_of(const sl_pair *pair, const sl_floats_at *source)
{
    return {source->data + (pair->products ? sl_pair_all(pair) : 0), source->ld};
}

/* Return a walk over A whose own rows are targets. GRADIENT NULL: the walk forward. */
inline walk walk_of_targets(const sl_pair *pair, const sl_sparse *a, const sl_floats_at *vectors,
                            const sl_floats_at *source, const sl_floats_at *target,
                            const sl_floats_at *gradient)
{
    walk w = {};
    w.pair = *pair;
    w.a = *a;
    w.vectors = *vectors;
    w.own_first = *target;
    if (gradient)
        w.own_second = *gradient;
    w.met_first = *source;
    w.met_second = values_of(pair, source);
    w.own_vertex = sl_pair_all(pair) + pair->attention.heads;
    w.met_vertex = sl_pair_source(pair) - 1;
    return w;
}

template <class Kernels, int LANES, int PER>
void launch_lanes(const char *name, const walk &w, int64_t rows, cudaStream_t stream)
{
    const dim3 grid((unsigned)sl_cuda_divide_up(rows * w.pair.attention.heads, THREADS / LANES));
    void (*const kernel)(walk) = Kernels::template kernel<LANES, PER>();
    sl_cuda_launch(name, kernel, grid, THREADS, 0, stream, w);
}

/* Launch Kernels::kernel<LANES, PER>() with a team for each head of `rows` rows. */
template <class Kernels>
void launch_teams(const char *name, const walk &w, int64_t rows, cudaStream_t stream)
{
    const int64_t width = w.pair.width;
    if (width <= 8)
        launch_lanes<Kernels, 8, 1>(name, w, rows, stream);
    else if (width <= 16)
        launch_lanes<Kernels, 8, 2>(name, w, rows, stream);
    else if (width <= 32)
        launch_lanes<Kernels, 16, 2>(name, w, rows, stream);
    else if (width <= 64)
        launch_lanes<Kernels, 32, 2>(name, w, rows, stream);
    else
        launch_lanes<Kernels, 32, 4>(name, w, rows, stream);
}

} // namespace

#endif
