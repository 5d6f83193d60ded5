/* The walks of graph attention: a team of lanes has a row, and some of its heads. A chunk of the
 * row's entries is worked on in two steps. First a lane has a head and a few entries, and computes
 * their weights, which go to shared memory. Then a lane has four columns, and adds the entries'
 * rows to them, in the entries' order. Maximum and sums of a head stay in registers.
 *
 * The division into teams and chunks depends on heads and width alone. So results do not depend on
 * how rows are read. */
#include <math.h>

#include "codelets/cuda.h"

extern "C" {
#include "codelets/attention.h"
}

namespace
{

enum {
    THREADS = 128,   /* threads of a block */
    MOST_LANES = 32, /* lanes of a team */
    COLUMNS = 4,     /* columns of a lane at a time */
    STEPS = 4,       /* entries of a lane in a chunk; equals PER_DRAW */
    PER_DRAW = 4,    /* heads that share a draw, as in attention.c */
    DROPOUT_BITS = 16,
    LARGEST_POWER = 88, /* e to this power is finite */
};

/* Return the columns of all heads: sl_attention_all on the device. */
__device__ __forceinline__ int64_t all_of(const sl_attention &attention)
{
    return attention.heads * attention.width;
}

/* ---- Teams ---- */

/* Heads, and lanes, of a team. A team with more columns than COLUMNS of each lane has one head. */
struct division {
    int heads, lanes;
    int slots; /* lanes with an entry: a power of two >= heads */
};

division divide(const sl_attention &attention)
{
    const int64_t most = MOST_LANES * COLUMNS / attention.width;
    int64_t heads = most < 1 ? 1 : most < PER_DRAW ? most : most / PER_DRAW * PER_DRAW;
    heads = heads < MOST_LANES ? heads : (int64_t)MOST_LANES;
    heads = heads < attention.heads ? heads : attention.heads;
    division d = {(int)heads, 8, 1};
    while (d.slots < d.heads)
        d.slots *= 2;
    while (d.lanes < MOST_LANES &&
           (d.lanes < d.slots || d.lanes * COLUMNS < heads * attention.width))
        d.lanes *= 2;
    return d;
}

struct pair {
    float alpha, sloped; /* sloped: alpha · the slope of LeakyReLU */
};

struct block_memory {
    pair weight[THREADS * STEPS];     // (teams, entries, slots)
    uint32_t col[THREADS * STEPS];    // (teams, entries)
    float scale[THREADS];             // (teams, slots): factors of the sums before a chunk
    float product[THREADS * COLUMNS]; // (teams, columns)
};

/* A lane's view of its team. */
struct team {
    unsigned mask;
    int lane, slots, heads;
    int slot, entry, entries; /* slot and entry of this lane; entries of the team at a time */
    int first, head; /* the team's first head; this lane's head, the last one for slots behind it */
    pair *weight;
    uint32_t *col;
    float *scale, *product;
};

template <int LANES>
__device__ __forceinline__ team own_team(const sl_attention &attention, const division &d)
{
    block_memory &all = sl_cuda_shared<block_memory>();
    const int number = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES,
              first = (int)blockIdx.y * d.heads;
    team t;
    t.mask = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - (unsigned)lane);
    t.lane = lane;
    t.slots = d.slots;
    t.heads = attention.heads - first < d.heads ? attention.heads - first : d.heads;
    t.slot = lane % d.slots;
    t.entry = lane / d.slots;
    t.entries = LANES / d.slots;
    t.first = first;
    t.head = first + (t.slot < t.heads ? t.slot : t.heads - 1);
    t.weight = all.weight + number * LANES * STEPS;
    t.col = all.col + number * LANES * STEPS;
    t.scale = all.scale + number * LANES;
    t.product = all.product + number * LANES * COLUMNS;
    return t;
}

template <int LANES> __device__ __forceinline__ float largest(const team &t, float x)
{
    for (int distance = t.slots; distance < LANES; distance *= 2) {
        const float other = __shfl_xor_sync(t.mask, x, distance);
        x = other > x ? other : x;
    }
    return x;
}

template <int LANES> __device__ __forceinline__ float total(const team &t, float x)
{
    for (int distance = t.slots; distance < LANES; distance *= 2)
        x += __shfl_xor_sync(t.mask, x, distance);
    return x;
}

/* ---- The weights of a chunk ---- */

/* Entries of a lane. Entries behind the row's last one have weight 0. */
struct entries {
    float x[STEPS], slope[STEPS], weight[STEPS];
    uint32_t to[STEPS], from[STEPS]; /* vertices: row and column of A */
};

struct chunk {
    int64_t column; /* first column of the block of columns */
    uint32_t e;
    int count;
};

/* Read the lane's entry number `step` of A. Return the row that the entry meets, or -1. */
__device__ __forceinline__ int64_t read_entry(const sl_sparse &a, const team &t, const chunk &c,
                                              int step, entries *of)
{
    const int k = step * t.entries + t.entry;
    of->x[step] = of->slope[step] = of->weight[step] = 0.0f;
    of->to[step] = of->from[step] = 0;
    if (k >= c.count)
        return -1;
    const uint32_t e = c.e + (uint32_t)k;
    const int64_t col = c.column + sl_cuda_sparse_col(a.col, a.narrow, e);
    of->weight[step] = a.value ? a.value[e] : 1.0f;
    if (t.slot == 0)
        t.col[k] = (uint32_t)col;
    return col;
}

__device__ __forceinline__ void leak(float x, float negative, int step, entries *of)
{
    of->slope[step] = x > 0.0f ? 1.0f : negative;
    of->x[step] = x > 0.0f ? x : x * negative;
}

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

/* Apply the factors of dropout. Where the lanes of four heads need equal draws, each lane draws for
 * one of its entries. */
__device__ __forceinline__ void drop(const sl_attention &attention, const team &t,
                                     const entries &of, pair (&p)[STEPS])
{
    const int head = attention.first_head + t.head, field = head % PER_DRAW,
              shift = field % 2 * DROPOUT_BITS;
    const uint64_t key =
        attention.drop.key + (uint64_t)(head / PER_DRAW) * UINT64_C(0x9E3779B97F4A7C15);
    const bool together = t.slots >= PER_DRAW && (attention.first_head + t.first) % PER_DRAW == 0;
    uint32_t low = 0, high = 0;
    static_assert((int)STEPS == (int)PER_DRAW, "a lane draws for one of its entries");
    if (together) {
        uint32_t to = 0, from = 0; /* vertices of one entry, while all entries stay in registers */
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const uint32_t own = t.lane % PER_DRAW == i ? 0xFFFFFFFFu : 0;
            to |= of.to[i] & own;
            from |= of.from[i] & own;
        }
        sl_rng_block(key, to, from, &low, &high);
    }
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        uint32_t own_low, own_high;
        if (together) {
            own_low = __shfl_sync(t.mask, low, i, PER_DRAW);
            own_high = __shfl_sync(t.mask, high, i, PER_DRAW);
        } else {
            sl_rng_block(key, of.to[i], of.from[i], &own_low, &own_high);
        }
        const uint32_t word = field < 2 ? own_low : own_high;
        const float factor =
            (word >> shift & 0xFFFF) >= attention.drop.threshold ? attention.drop.scale : 0.0f;
        p[i].alpha *= factor;
        p[i].sloped = p[i].alpha == 0.0f ? 0.0f : p[i].sloped * attention.drop.scale;
    }
}

__device__ __forceinline__ void publish(const team &t, int count, const pair (&p)[STEPS])
{
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int k = i * t.entries + t.entry;
        if (k < count)
            t.weight[k * t.slots + t.slot] = p[i];
    }
}

/* ---- Columns ---- */

/* Columns of a lane: four neighbours, or four that lie a team apart. */
template <int LANES, bool VECTOR> struct columns {
    int64_t column[COLUMNS]; /* columns in the row */
    int within[COLUMNS];     /* columns among the team's columns */
    int slot[COLUMNS];       /* slot of the column's head */
    bool any, is[COLUMNS];

    /* Find this lane's columns among the team's columns from `piece` on. */
    __device__ __forceinline__ columns(const sl_attention &attention, const team &t, int64_t piece)
    {
        any = false;
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            within[i] = VECTOR ? COLUMNS * t.lane + i : LANES * i + t.lane;
            const int64_t j = piece + within[i];
            is[i] = j < t.heads * attention.width;
            slot[i] = is[i] ? (int)(j / attention.width) : 0;
            column[i] = t.first * attention.width + j;
            any = any || is[i];
        }
    }
    __device__ __forceinline__ sl_cuda_vector<COLUMNS> load(const float *row, bool aligned) const
    {
        sl_cuda_vector<COLUMNS> v = {};
        if constexpr (VECTOR) {
            if (any)
                v = sl_cuda_load<COLUMNS>(row + column[0], COLUMNS, aligned);
        } else {
#pragma unroll
            for (int i = 0; i < COLUMNS; i++)
                if (is[i])
                    v.at[i] = row[column[i]];
        }
        return v;
    }
    __device__ __forceinline__ void store(const sl_cuda_vector<COLUMNS> &v, float *row,
                                          bool aligned) const
    {
        if constexpr (VECTOR) {
            if (any)
                sl_cuda_store<COLUMNS>(row + column[0], v, COLUMNS, aligned);
        } else {
#pragma unroll
            for (int i = 0; i < COLUMNS; i++)
                if (is[i])
                    row[column[i]] = v.at[i];
        }
    }
};

struct sums {
    sl_cuda_vector<COLUMNS> plain, sloped;
};

/* Add the chunk's rows of DENSE to the lane's columns. */
template <int LANES, bool VECTOR, bool BOTH>
__device__ __forceinline__ void add_rows(const team &t, int count, const sl_floats_at &dense,
                                         const columns<LANES, VECTOR> &at, sums *s)
{
    if (!at.any)
        return;
#pragma unroll 4
    for (int k = 0; k < count; k++) {
        const sl_cuda_vector<COLUMNS> v = at.load(dense.data + t.col[k] * dense.ld, true);
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            const pair w = t.weight[k * t.slots + at.slot[VECTOR ? 0 : i]];
            s->plain.at[i] = fmaf(w.alpha, v.at[i], s->plain.at[i]);
            if (BOTH)
                s->sloped.at[i] = fmaf(w.sloped, v.at[i], s->sloped.at[i]);
        }
    }
}

/* ---- Forward ---- */

struct meeting {
    sl_attention attention;
    division d;
    sl_sparse a;
    sl_floats_at dense, scores; /* dense: rows that entries meet and add up */
    sl_floats_at own, out;
    bool accumulate;
    bool own_aligned, out_aligned, sloped_aligned; /* whether rows are aligned, for VECTOR */
    sl_floats_at edge;
};

/* Return x, and with EDGES F·EDGE more, for entry e and a head. */
template <bool EDGES>
__device__ __forceinline__ float with_edges(const meeting &w, uint32_t e, int head, float x)
{
    if constexpr (EDGES) {
        const float *const feature = w.a.edge + e * w.a.edge_features;
        for (int64_t f = 0; f < w.a.edge_features; f++)
            x = fmaf(feature[f], w.edge.data[f * w.edge.ld + head], x);
    }
    return x;
}

/* This lane's view of a head's state: the maximum of the team's entries, the sums of the lane's
 * entries. */
struct head_state {
    float m, l, q;
};

/* Compute the chunk's weights, and the factor by which a larger maximum scales the sums. */
template <int LANES, bool TRAINING, bool EDGES>
__device__ __forceinline__ void weigh(const meeting &w, const team &t, const chunk &c, float score,
                                      uint32_t vertex, head_state *s)
{
    const int64_t all = all_of(w.attention);
    entries of;
    pair p[STEPS];
    float top = s->m;
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int64_t col = read_entry(w.a, t, c, i, &of);
        if (col < 0)
            continue;
        const float *const from = w.dense.data + col * w.dense.ld + all;
        leak(with_edges<EDGES>(w, c.e + (uint32_t)(i * t.entries + t.entry), t.head,
                               score + from[t.head]),
             w.attention.slope, i, &of);
        if (TRAINING && w.attention.drop.threshold) {
            of.to[i] = vertex;
            of.from[i] = vertex_at(from + w.attention.heads);
        }
        if (of.weight[i] > 0.0f && of.x[i] > top)
            top = of.x[i];
    }
    top = largest<LANES>(t, top);
    const float scale = top == s->m ? 1.0f : expf(s->m - top);
    const float reference = top == -INFINITY ? 0.0f : top; /* no weight yet */
    s->m = top;
    s->l *= scale;
    s->q *= scale;
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const float e = power(of.x[i] - reference);
        p[i].alpha = of.weight[i] * e;
        p[i].sloped = p[i].alpha * of.slope[i];
        s->l = fmaf(of.weight[i], e, s->l);
        s->q = fmaf(p[i].alpha, of.slope[i], s->q);
    }
    if (TRAINING && w.attention.drop.threshold)
        drop(w.attention, t, of, p);
    publish(t, c.count, p);
    if (t.entry == 0)
        t.scale[t.slot] = scale;
}

template <int LANES, bool VECTOR, bool TRAINING, bool EDGES>
__device__ __forceinline__ void meet_row(const meeting &w, const team &t, int64_t r,
                                         const columns<LANES, VECTOR> &at, head_state *s, sums *sum)
{
    const float *const scores = w.scores.data + r * w.scores.ld;
    const float score = scores[t.head];
    const uint32_t vertex = vertex_at(scores + 2 * w.attention.heads);
    const uint32_t most = (uint32_t)(t.entries * STEPS);
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t end = w.a.row_ptr[b * w.a.rows + r + 1];
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < end;) {
            const chunk c = {b * w.a.block_cols, e, (int)(end - e < most ? end - e : most)};
            __syncwarp(t.mask); /* all lanes have added the previous chunk */
            weigh<LANES, TRAINING, EDGES>(w, t, c, score, vertex, s);
            __syncwarp(t.mask);
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                const float scale = t.scale[at.slot[i]];
                sum->plain.at[i] *= scale;
                if (TRAINING)
                    sum->sloped.at[i] *= scale;
            }
            add_rows<LANES, VECTOR, TRAINING>(t, c.count, w.dense, at, sum);
            e += (uint32_t)c.count;
        }
    }
}

template <int LANES, bool VECTOR, bool TRAINING, bool EDGES>
__global__ void __launch_bounds__(THREADS) forward(meeting w)
{
    const int64_t r = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    if (r >= w.a.rows)
        return;
    const team t = own_team<LANES>(w.attention, w.d);
    const int64_t all = all_of(w.attention), heads = w.attention.heads;
    float *const z = w.out.data + r * w.out.ld, *const m = z + all, *const l = m + heads,
                 *const sloped = l + heads, *const q = sloped + all;
    head_state begin = {-INFINITY, 0.0f, 0.0f}, now = begin;
    if (w.accumulate && l[t.head] != 0.0f) {
        begin.m = m[t.head];
        begin.l = t.entry == 0 ? l[t.head] : 0.0f;
        begin.q = TRAINING && t.entry == 0 ? q[t.head] : 0.0f;
    }
    for (int64_t piece = 0; piece < t.heads * w.attention.width; piece += COLUMNS * LANES) {
        const columns<LANES, VECTOR> at(w.attention, t, piece);
        sums sum = {};
        if (w.accumulate) {
            sum.plain = at.load(z, w.out_aligned);
            if (TRAINING)
                sum.sloped = at.load(sloped, w.sloped_aligned);
        }
        now = begin;
        meet_row<LANES, VECTOR, TRAINING, EDGES>(w, t, r, at, &now, &sum);
        at.store(sum.plain, z, w.out_aligned);
        if (TRAINING || !w.accumulate)
            at.store(sum.sloped, sloped, w.sloped_aligned);
    }
    now.l = total<LANES>(t, now.l);
    now.q = total<LANES>(t, now.q);
    if (t.entry != 0 || t.slot >= t.heads)
        return;
    m[t.head] = now.m == -INFINITY ? 0.0f : now.m;
    l[t.head] = now.l;
    if (TRAINING || !w.accumulate)
        q[t.head] = TRAINING ? now.q : 0.0f;
}

/* ---- Backward ---- */

/* Compute the chunk's weights, and add Σ alpha · slope · r to v. */
template <bool EDGES>
__device__ __forceinline__ void weigh_back(const meeting &w, const team &t, const chunk &c,
                                           float score, uint32_t vertex, float *v)
{
    const int64_t all = all_of(w.attention);
    entries of;
    pair p[STEPS];
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        float log_sum = 0.0f, product = 0.0f;
        const int64_t col = read_entry(w.a, t, c, i, &of);
        if (col >= 0) {
            const float *const to = w.scores.data + col * w.scores.ld;
            leak(with_edges<EDGES>(w, c.e + (uint32_t)(i * t.entries + t.entry), t.head,
                                   to[t.head] + score),
                 w.attention.slope, i, &of);
            log_sum = to[w.attention.heads + t.head];
            product = w.dense.data[col * w.dense.ld + all + t.head];
            if (w.attention.drop.threshold) {
                of.to[i] = vertex_at(to + 2 * w.attention.heads);
                of.from[i] = vertex;
            }
        }
        const float alpha = of.weight[i] * power(of.x[i] - log_sum);
        p[i].alpha =
            alpha > 1.0f ? 1.0f : alpha; /* above 1 by rounding, or with the L of an old epoch */
        p[i].sloped = p[i].alpha * of.slope[i];
        *v = fmaf(p[i].sloped, product, *v);
    }
    if (w.attention.drop.threshold)
        drop(w.attention, t, of, p);
    publish(t, c.count, p);
}

template <int LANES, bool VECTOR, bool EDGES>
__device__ __forceinline__ void meet_row_back(const meeting &w, const team &t, int64_t r,
                                              const columns<LANES, VECTOR> &at, float *v, sums *sum)
{
    const float *const own = w.own.data + r * w.own.ld + all_of(w.attention);
    const float score = own[t.head];
    const uint32_t vertex = vertex_at(own + w.attention.heads);
    const uint32_t most = (uint32_t)(t.entries * STEPS);
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t end = w.a.row_ptr[b * w.a.rows + r + 1];
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < end;) {
            const chunk c = {b * w.a.block_cols, e, (int)(end - e < most ? end - e : most)};
            __syncwarp(t.mask); /* all lanes have added the previous chunk */
            weigh_back<EDGES>(w, t, c, score, vertex, v);
            __syncwarp(t.mask);
            add_rows<LANES, VECTOR, true>(t, c.count, w.dense, at, sum);
            e += (uint32_t)c.count;
        }
    }
}

/* Return this lane's part of P·U, for the columns of the team from `piece` on. */
template <int LANES, bool VECTOR>
__device__ __forceinline__ float product_of(const meeting &w, const team &t, int64_t r,
                                            int64_t piece, const columns<LANES, VECTOR> &at,
                                            const sums &sum)
{
    const sl_cuda_vector<COLUMNS> own = at.load(w.own.data + r * w.own.ld, w.own_aligned);
    __syncwarp(t.mask); /* all lanes have added the previous piece */
#pragma unroll
    for (int i = 0; i < COLUMNS; i++)
        t.product[at.within[i]] = own.at[i] * sum.sloped.at[i];
    __syncwarp(t.mask);
    const int64_t rest = w.attention.width - piece;
    const int count = (int)(rest < COLUMNS * LANES ? rest : (int64_t)COLUMNS * LANES);
    float result = 0.0f;
    if (t.slot < t.heads)
        for (int j = t.entry; j < count; j += t.entries)
            result += t.product[t.slot * w.attention.width + j];
    return result;
}

template <int LANES, bool VECTOR, bool EDGES>
__global__ void __launch_bounds__(THREADS) backward(meeting w)
{
    const int64_t r = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    if (r >= w.a.rows)
        return;
    const team t = own_team<LANES>(w.attention, w.d);
    const int64_t all = all_of(w.attention), heads = w.attention.heads;
    float *const d = w.out.data + r * w.out.ld, *const dt = d + all, *const ds = dt + heads;
    float product = 0.0f, v = 0.0f;
    for (int64_t piece = 0; piece < t.heads * w.attention.width; piece += COLUMNS * LANES) {
        const columns<LANES, VECTOR> at(w.attention, t, piece);
        sums sum = {};
        if (w.accumulate)
            sum.plain = at.load(d, w.out_aligned);
        v = 0.0f; /* every piece sums v anew, with equal results */
        meet_row_back<LANES, VECTOR, EDGES>(w, t, r, at, &v, &sum);
        at.store(sum.plain, d, w.out_aligned);
        product += product_of<LANES, VECTOR>(w, t, r, piece, at, sum);
    }
    product = total<LANES>(t, product - v);
    if (t.entry != 0 || t.slot >= t.heads)
        return;
    dt[t.head] = w.accumulate ? dt[t.head] + product : product;
    if (!w.accumulate)
        ds[t.head] = 0.0f;
}

/* ---- The gradient of EDGE ----
 *
 * A warp has some rows of Aᵀ. LANES neighbours of it have one head of an entry at a time: they
 * multiply G and P together, and then each lane adds dx times some of the entry's features. Lanes,
 * warps and blocks meet in a fixed order. */

enum {
    WARPS = 8,         /* of a block */
    FEATURES = 8,      /* of a lane */
    WIDE = 64,         /* least columns that a whole warp shares */
    MOST_BLOCKS = 1024 /* that share the rows */
};
enum { SUM_LANES = 32, SUM_ROWS = 16 }; /* of a block that adds blocks */

/* Return the factor of dropout of an entry between two vertices, for a head of the part. */
__device__ __forceinline__ float factor_of(const sl_attention &attention, int h, uint32_t to,
                                           uint32_t from)
{
    const int head = attention.first_head + h, field = head % PER_DRAW;
    uint32_t low, high;
    sl_rng_block(attention.drop.key + (uint64_t)(head / PER_DRAW) * UINT64_C(0x9E3779B97F4A7C15),
                 to, from, &low, &high);
    const uint32_t word = field < 2 ? low : high;
    return (word >> field % 2 * DROPOUT_BITS & 0xFFFF) >= attention.drop.threshold
               ? attention.drop.scale
               : 0.0f;
}

/* Return dx of entry e of row r, which meets row `col`. All lanes of a group get it. */
template <int LANES>
__device__ __forceinline__ float gradient_of(const meeting &w, unsigned mask, int64_t r,
                                             int64_t col, uint32_t e, int head, int lane)
{
    const int64_t all = all_of(w.attention), heads = w.attention.heads, width = w.attention.width;
    const float *const g = w.dense.data + col * w.dense.ld, *const own = w.own.data + r * w.own.ld,
                       *const to = w.scores.data + col * w.scores.ld;
    float product = 0.0f;
    for (int64_t j = head * width + lane; j < (head + 1) * width; j += LANES)
        product = fmaf(g[j], own[j], product);
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        product += __shfl_xor_sync(mask, product, distance);
    const float x = with_edges<true>(w, e, head, to[head] + own[all + head]),
                slope = x > 0.0f ? 1.0f : w.attention.slope,
                most = (w.a.value ? w.a.value[e] : 1.0f) * power(slope * x - to[heads + head]),
                sloped = slope * (most > 1.0f ? 1.0f : most);
    if (w.attention.drop.threshold)
        product *=
            factor_of(w.attention, head, vertex_at(to + 2 * heads), vertex_at(own + all + heads));
    return fmaf(sloped, product, -sloped * g[all + head]);
}

struct edge_sums {
    float at[WARPS][FEATURES][32];
};

/* Set the block's part of PARTS (blocks, features, heads). */
template <int LANES>
__global__ void __launch_bounds__(32 * WARPS) edge_gradient(meeting w, int slots, float *parts)
{
    edge_sums &shared = sl_cuda_shared<edge_sums>();
    const int lane = (int)threadIdx.x, warp = (int)threadIdx.y, group = lane / LANES,
              entries = 32 / LANES / slots, slot = group % slots,
              own_head = (int)blockIdx.y * slots + slot;
    const bool is_head = own_head < w.attention.heads;
    const int head = is_head ? own_head : w.attention.heads - 1;
    const int64_t first = (int64_t)blockIdx.z * FEATURES * LANES + lane % LANES,
                  features = w.a.edge_features;
    const unsigned mask = (unsigned)((1ull << LANES) - 1) << group * LANES;
    float sum[FEATURES] = {};
    for (int64_t r = (int64_t)blockIdx.x * WARPS + warp; r < w.a.rows;
         r += (int64_t)gridDim.x * WARPS)
        for (int64_t b = 0; b < w.a.blocks; b++) {
            const uint32_t end = w.a.row_ptr[b * w.a.rows + r + 1];
            for (uint32_t e = w.a.row_ptr[b * w.a.rows + r] + (uint32_t)(group / slots); e < end;
                 e += (uint32_t)entries) {
                const int64_t col = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
                const float dx = gradient_of<LANES>(w, mask, r, col, e, head, lane % LANES);
                const float *const feature = w.a.edge + e * features;
#pragma unroll
                for (int i = 0; i < FEATURES; i++)
                    if (first + i * LANES < features)
                        sum[i] = fmaf(feature[first + i * LANES], dx, sum[i]);
            }
        }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < FEATURES; i++) {
        for (int distance = LANES * slots; distance < 32; distance *= 2)
            sum[i] += __shfl_xor_sync(0xFFFFFFFFu, sum[i], distance);
        shared.at[warp][i][lane] = sum[i];
    }
    __syncthreads();
    if (warp != 0 || group >= slots || !is_head)
        return;
    for (int i = 0; i < FEATURES; i++) {
        for (int other = 1; other < WARPS; other++)
            sum[i] += shared.at[other][i][lane];
        if (first + i * LANES < features)
            parts[(blockIdx.x * features + first + i * LANES) * w.attention.heads + head] = sum[i];
    }
}

struct part_sums {
    float at[SUM_ROWS][SUM_LANES];
};

/* EDGE_BACK = [EDGE_BACK +] the sum over the blocks of PARTS (blocks, features, heads). */
__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS)
    add_parts(int64_t blocks, int64_t count, int64_t heads, const float *parts, bool accumulate,
              sl_floats_at back)
{
    part_sums &shared = sl_cuda_shared<part_sums>();
    const int64_t j = (int64_t)blockIdx.x * SUM_LANES + threadIdx.x;
    float sum = 0.0f;
    for (int64_t b = threadIdx.y; j < count && b < blocks; b += SUM_ROWS)
        sum += parts[b * count + j];
    shared.at[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= count)
        return;
    for (int i = 1; i < SUM_ROWS; i++)
        sum += shared.at[i][threadIdx.x];
    float *const to = back.data + j / heads * back.ld + j % heads;
    *to = accumulate ? *to + sum : sum;
}

template <int LANES>
void launch_edge_gradient(const meeting &w, int64_t blocks, const sl_cuda_queue &queue)
{
    int slots = 1;
    while (slots < w.attention.heads && slots < 32 / LANES)
        slots *= 2;
    const dim3 grid((unsigned)blocks, (unsigned)sl_cuda_divide_up(w.attention.heads, slots),
                    (unsigned)sl_cuda_divide_up(w.a.edge_features, FEATURES * LANES));
    sl_cuda_launch("attention_edge_back", edge_gradient<LANES>, grid, dim3(32, WARPS), 0,
                   queue.stream, w, slots, (float *)queue.workspace);
}

/* EDGE_BACK = [EDGE_BACK +] the sum over the entries. */
void differentiate(const meeting &w, bool accumulate, const sl_floats_at &back,
                   const sl_cuda_queue &queue)
{
    static_assert(SL_EDGE_FEATURES * SL_ATTENTION_HEADS * sizeof(float) <= SL_RUNTIME_WORKSPACE,
                  "a block's sums have room");
    const int64_t count = w.a.edge_features * w.attention.heads,
                  room = SL_RUNTIME_WORKSPACE / (int64_t)sizeof(float) / count,
                  most = room < MOST_BLOCKS ? room : (int64_t)MOST_BLOCKS,
                  wanted = sl_cuda_divide_up(w.a.rows, WARPS), some = wanted < most ? wanted : most,
                  blocks = some < 1 ? 1 : some;
    if (w.attention.width >= WIDE)
        launch_edge_gradient<32>(w, blocks, queue);
    else
        launch_edge_gradient<8>(w, blocks, queue);
    sl_cuda_launch("attention_edge_sums", add_parts,
                   dim3((unsigned)sl_cuda_divide_up(count, SUM_LANES)), dim3(SUM_LANES, SUM_ROWS),
                   0, queue.stream, blocks, count, (int64_t)w.attention.heads,
                   (const float *)queue.workspace, accumulate, back);
}

/* ---- Launches of the walks ---- */

template <int LANES>
void launch_walk(const char *name, void (*kernel)(meeting), const meeting &w, cudaStream_t stream)
{
    const dim3 grid((unsigned)sl_cuda_divide_up(w.a.rows, THREADS / LANES),
                    (unsigned)sl_cuda_divide_up(w.attention.heads, w.d.heads));
    sl_cuda_launch(name, kernel, grid, THREADS, 0, stream, w);
}

template <int LANES, bool VECTOR, bool EDGES>
void launch_forward(const meeting &w, cudaStream_t stream)
{
    launch_walk<LANES>("attention",
                       w.attention.training ? forward<LANES, VECTOR, true, EDGES>
                                            : forward<LANES, VECTOR, false, EDGES>,
                       w, stream);
}

template <int LANES, bool VECTOR, bool EDGES>
void launch_backward(const meeting &w, cudaStream_t stream)
{
    launch_walk<LANES>("attention_back", backward<LANES, VECTOR, EDGES>, w, stream);
}

template <int LANES, bool EDGES>
void launch_vectors(const meeting &w, bool vector, bool back, cudaStream_t stream)
{
    if (back)
        (vector ? launch_backward<LANES, true, EDGES>
                : launch_backward<LANES, false, EDGES>)(w, stream);
    else
        (vector ? launch_forward<LANES, true, EDGES> : launch_forward<LANES, false, EDGES>)(w,
                                                                                            stream);
}

template <bool EDGES> void launch(const meeting &w, bool vector, bool back, cudaStream_t stream)
{
    if (w.d.lanes == 8)
        launch_vectors<8, EDGES>(w, vector, back, stream);
    else if (w.d.lanes == 16)
        launch_vectors<16, EDGES>(w, vector, back, stream);
    else
        launch_vectors<32, EDGES>(w, vector, back, stream);
}

bool rows_aligned(const sl_attention &attention, int64_t rows, const sl_floats_at &at)
{
    return attention.width % COLUMNS == 0 && sl_cuda_aligned(rows, at.data, at.ld);
}

/* ---- Merged and closed ----
 *
 * A warp has a row: first a lane has a head, then a column. */

enum { ROWS = 4 }; /* rows of a block */

struct factors {
    float own[ROWS][SL_ATTENTION_HEADS], other[ROWS][SL_ATTENTION_HEADS];
};

/* Pointers to the parts of a row's state. */
struct parts {
    float *z, *m, *l, *sloped, *q;
};

__device__ __forceinline__ parts parts_of(const sl_attention &attention, float *state)
{
    const int64_t all = all_of(attention), heads = attention.heads;
    return {state, state + all, state + all + heads, state + all + 2 * heads,
            state + 2 * all + 2 * heads};
}

/* Merge the head's m, l, q, and set the factors of both states. An empty other state has factor 0.
 */
__device__ __forceinline__ void merge_head(const sl_attention &attention, const parts &from,
                                           const parts &to, int h, float *own, float *other)
{
    const float l = to.l[h], sent = from.l[h], sent_m = from.m[h];
    *own = 1.0f;
    *other = 0.0f;
    if (sent == 0.0f)
        return;
    const float m = l == 0.0f ? sent_m : to.m[h], top = sent_m > m ? sent_m : m;
    *own = top > m ? expf(m - top) : 1.0f;
    *other = expf(sent_m - top);
    to.m[h] = top;
    to.l[h] = fmaf(*other, sent, *own * l);
    if (attention.training)
        to.q[h] = fmaf(*other, from.q[h], *own * to.q[h]);
}

__global__ void __launch_bounds__(32 * ROWS)
    merge_rows(sl_attention attention, int64_t rows, const uint32_t *index, sl_floats_at other,
               sl_floats_at state)
{
    factors &shared = sl_cuda_shared<factors>();
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= rows)
        return;
    const int64_t into = index ? index[r] : r;
    const parts from = parts_of(attention, other.data + r * other.ld),
                to = parts_of(attention, state.data + into * state.ld);
    float *const own_factor = shared.own[threadIdx.y], *const factor = shared.other[threadIdx.y];
    for (int h = (int)threadIdx.x; h < attention.heads; h += 32)
        merge_head(attention, from, to, h, &own_factor[h], &factor[h]);
    __syncwarp();
    for (int64_t j = threadIdx.x; j < all_of(attention); j += 32) {
        const int64_t h = j / attention.width;
        if (factor[h] == 0.0f && own_factor[h] == 1.0f)
            continue;
        to.z[j] = fmaf(factor[h], from.z[j], own_factor[h] * to.z[j]);
        if (attention.training)
            to.sloped[j] = fmaf(factor[h], from.sloped[j], own_factor[h] * to.sloped[j]);
    }
}

__global__ void __launch_bounds__(32 * ROWS)
    close_rows(sl_attention attention, int64_t rows, sl_floats_at scores, sl_floats_at state)
{
    factors &shared = sl_cuda_shared<factors>();
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= rows)
        return;
    const parts to = parts_of(attention, state.data + r * state.ld);
    float *const l = scores.data + r * scores.ld + attention.heads, *const by =
                                                                        shared.own[threadIdx.y];
    for (int h = (int)threadIdx.x; h < attention.heads; h += 32) {
        const float sum = to.l[h];
        by[h] = sum > 0.0f ? 1.0f / sum : 1.0f;
        to.l[h] = sum * by[h];
        if (attention.training)
            to.q[h] *= by[h];
        l[h] = to.m[h] = sum > 0.0f ? to.m[h] + logf(sum) : 0.0f;
    }
    __syncwarp();
    for (int64_t j = threadIdx.x; j < all_of(attention); j += 32) {
        const int64_t h = j / attention.width;
        to.z[j] *= by[h];
        if (attention.training)
            to.sloped[j] *= by[h];
    }
}

} // namespace

extern "C" void sl_cuda_attention(const struct sl_attention *attention, const struct sl_sparse *a,
                                  const struct sl_floats_at *projected,
                                  const struct sl_floats_at *scores,
                                  const struct sl_floats_at *edge, bool accumulate,
                                  const struct sl_floats_at *state, struct sl_cuda_queue queue)
{
    if (a->rows == 0)
        return;
    meeting w = {*attention, divide(*attention), *a,    *projected, *scores, {},
                 *state,     accumulate,         false, false,      false,   {}};
    const bool vector = rows_aligned(*attention, a->cols, *projected);
    w.out_aligned = rows_aligned(*attention, a->rows, *state);
    w.sloped_aligned =
        w.out_aligned && (sl_attention_all(attention) + 2 * attention->heads) % COLUMNS == 0;
    if (edge) {
        w.edge = *edge;
        launch<true>(w, vector, false, queue.stream);
    } else {
        launch<false>(w, vector, false, queue.stream);
    }
}

extern "C" void
sl_cuda_attention_back(const struct sl_attention *attention, const struct sl_sparse *at,
                       const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
                       const struct sl_floats_at *projected, const struct sl_floats_at *edge,
                       bool accumulate, const struct sl_floats_at *back, bool edge_accumulate,
                       const struct sl_floats_at *edge_back, struct sl_cuda_queue queue)
{
    meeting w = {*attention, divide(*attention), *at,   *gradient, *scores, *projected,
                 *back,      accumulate,         false, false,     false,   {}};
    const bool vector = rows_aligned(*attention, at->cols, *gradient);
    w.own_aligned = rows_aligned(*attention, at->rows, *projected);
    w.out_aligned = rows_aligned(*attention, at->rows, *back);
    if (edge) {
        w.edge = *edge;
        if (at->rows)
            launch<true>(w, vector, true, queue.stream);
        differentiate(w, edge_accumulate, *edge_back, queue);
    } else if (at->rows) {
        launch<false>(w, vector, true, queue.stream);
    }
}

extern "C" void sl_cuda_attention_merge(const struct sl_attention *attention, int64_t rows,
                                        const uint32_t *index, const struct sl_floats_at *other,
                                        const struct sl_floats_at *state,
                                        struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    sl_cuda_launch("attention_merge", merge_rows, dim3((unsigned)sl_cuda_divide_up(rows, ROWS)),
                   dim3(32, ROWS), 0, queue.stream, *attention, rows, index, *other, *state);
}

extern "C" void sl_cuda_attention_close(const struct sl_attention *attention, int64_t rows,
                                        const struct sl_floats_at *scores,
                                        const struct sl_floats_at *state,
                                        struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    sl_cuda_launch("attention_close", close_rows, dim3((unsigned)sl_cuda_divide_up(rows, ROWS)),
                   dim3(32, ROWS), 0, queue.stream, *attention, rows, *scores, *state);
}

/* ---- Tasks ---- */

extern "C" void attention_cuda(void *buffers[], void *argument)
{
    const attention_argument *arg = (const attention_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at projected = sl_floats_buffer(buffers[1]),
                       scores = sl_floats_buffer(buffers[2]), edge = sl_floats_buffer(buffers[3]),
                       state = sl_floats_buffer(buffers[3 + arg->has_edges]);
    sl_cuda_attention(&arg->attention, &a, &projected, &scores, arg->has_edges ? &edge : nullptr,
                      arg->accumulate, &state, sl_cuda_task_queue());
}

extern "C" void attention_merge_cuda(void *buffers[], void *argument)
{
    const attention_merge_argument *arg = (const attention_merge_argument *)argument;
    const sl_floats_at tile = sl_floats_buffer(buffers[0]),
                       state = sl_floats_buffer(buffers[1 + arg->listed]),
                       other = {tile.data + arg->first * tile.ld, tile.ld};
    const uint32_t *index = arg->listed ? (const uint32_t *)sl_raw_buffer(buffers[1]) : nullptr;
    sl_cuda_attention_merge(&arg->attention, arg->rows, index ? index + arg->first : nullptr,
                            &other, &state, sl_cuda_task_queue());
}

extern "C" void attention_close_cuda(void *buffers[], void *argument)
{
    const sl_floats_at scores = sl_floats_buffer(buffers[0]), state = sl_floats_buffer(buffers[1]);
    sl_cuda_attention_close((const sl_attention *)argument, sl_dense_buffer(buffers[1]).rows,
                            &scores, &state, sl_cuda_task_queue());
}

extern "C" void attention_back_cuda(void *buffers[], void *argument)
{
    const attention_argument *arg = (const attention_argument *)argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at gradient = sl_floats_buffer(buffers[1]),
                       scores = sl_floats_buffer(buffers[2]),
                       projected = sl_floats_buffer(buffers[3]),
                       edge = sl_floats_buffer(buffers[4]),
                       back = sl_floats_buffer(buffers[arg->has_edges ? 6 : 4]);
    sl_floats_at edge_back = {};
    if (arg->has_edges)
        edge_back = sl_floats_buffer(buffers[5]);
    sl_cuda_attention_back(&arg->attention, &at, &gradient, &scores, &projected,
                           arg->has_edges ? &edge : nullptr, arg->accumulate, &back,
                           arg->edge_accumulate, arg->has_edges ? &edge_back : nullptr,
                           sl_cuda_task_queue());
}
