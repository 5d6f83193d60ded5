/* Optimise these loops, however the package was configured, so that comparisons are fair. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include "bench/loops.h"

#include <math.h>
#include <string.h>

#include "bench/kernels.h"
#include "codelets/bfloat16.h"
#include "codelets/exponential.h"
#include "codelets/gather.h"

SL_KERNEL(sl_loop_sum, (int64_t count, const float *a, float *total), (count, a, total))
{
    enum { VECTORS = 8 };
    sl_floats sum[VECTORS];
    SL_UNROLL for (int v = 0; v < VECTORS; v++) sum[v] = (sl_floats){0};
    for (int64_t i = 0; i + VECTORS * SL_LANES <= count; i += VECTORS * SL_LANES)
        SL_UNROLL for (int v = 0; v < VECTORS; v++) sum[v] +=
            *(const sl_floats *)(a + i + v * SL_LANES);
    *total = 0.0f;
    for (int v = 0; v < VECTORS; v++)
        for (int l = 0; l < SL_LANES; l++)
            *total += sum[v][l];
}

SL_KERNEL(sl_loop_triad, (int64_t count, float scale, const float *b, const float *c, float *a),
          (count, scale, b, c, a))
{
    const float *restrict const x = b, *restrict const y = c;
    float *restrict const to = a;
    for (int64_t i = 0; i < count; i++)
        to[i] = x[i] + scale * y[i];
}

/* Return the next number of a linear congruential generator: cheaper than the gather, the same in
 * every run. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 32;
}

/* Rows are drawn and prefetched as far ahead of their use as in a sparse product. */
SL_KERNEL(sl_loop_gather,
          (const float *table, int64_t rows, int64_t width, int64_t count, bool prefetch,
           uint64_t seed, float *total),
          (table, rows, width, count, prefetch, seed, total))
{
    enum { BLOCK = 8 };
    sl_floats sum[BLOCK];
    uint64_t state = seed;
    int64_t coming[SL_GATHER_MOST_AHEAD];
    const int64_t ahead = sl_gather_ahead(width * (int64_t)sizeof(float));
    SL_UNROLL for (int v = 0; v < BLOCK; v++) sum[v] = (sl_floats){0};
    for (int64_t i = 0; i < ahead; i++)
        coming[i] = (int64_t)(next_random(&state) * (uint64_t)rows >> 32);
    for (int64_t i = 0, slot = 0; i < count; i++, slot = slot + 1 < ahead ? slot + 1 : 0) {
        const float *row = table + coming[slot] * width;
        coming[slot] = (int64_t)(next_random(&state) * (uint64_t)rows >> 32);
        if (prefetch)
            for (int64_t j = 0; j < width; j += 16)
                __builtin_prefetch(table + coming[slot] * width + j);
        int64_t j = 0;
        for (; j + BLOCK * SL_LANES <= width; j += BLOCK * SL_LANES)
            SL_UNROLL for (int v = 0; v < BLOCK; v++) sum[v] +=
                *(const sl_floats *)(row + j + v * SL_LANES);
        for (; j + 2 * SL_LANES <= width; j += 2 * SL_LANES)
            SL_UNROLL for (int v = 0; v < 2; v++) sum[v] +=
                *(const sl_floats *)(row + j + v * SL_LANES);
        if (j < width)
            sum[2] += *(const sl_floats *)(row + j);
    }
    *total = 0.0f;
    SL_UNROLL for (int v = 0; v < BLOCK; v++) *total += sum[v][0];
}

/* No restrict: if told that H and Z are apart, GCC 12 unrolls over entries and does not vectorise,
 * which makes the loop four times slower. */
SL_KERNEL(sl_loop_multiply, (const struct sl_loop_product *product, int64_t first, int64_t last),
          (product, first, last))
{
    const struct sl_loop_product p = *product;
    for (int64_t r = first; r < last; r++) {
        float *out = p.z + r * p.ld;
        for (int64_t j = 0; j < p.width; j++)
            out[j] = 0.0f;
        for (int64_t e = p.row_ptr[r]; e < p.row_ptr[r + 1]; e++) {
            const float v = p.value[e], *x = p.h + p.col[e] * p.ld;
            for (int64_t j = 0; j < p.width; j++)
                out[j] += v * x[j];
        }
    }
}

SL_KERNEL(sl_loop_exponentials, (int64_t count, float *x), (count, x))
{
    for (int64_t i = 0; i < count; i += SL_LANES)
        *(sl_floats *)(x + i) = sl_exponential(*(const sl_floats *)(x + i));
}

/* Two operations on each of `count` numbers, in enough chains to hide an operation's latency. */
SL_KERNEL(sl_loop_peak, (int64_t count, float *x), (count, x))
{
    enum { CHAINS = 12 };
    sl_floats chain[CHAINS];
    const sl_floats by = (sl_floats){0} + 0.999f, plus = (sl_floats){0} + 0.001f;
    SL_UNROLL for (int c = 0; c < CHAINS; c++) chain[c] = (sl_floats){0} + (float)c;
    for (int64_t i = 0; i < count; i += CHAINS * SL_LANES)
        SL_UNROLL for (int c = 0; c < CHAINS; c++) chain[c] = chain[c] * by + plus;
    SL_UNROLL for (int c = 0; c < CHAINS; c++) x[c] = chain[c][0];
}

/* ---- The loops of kernels, each as one writes it first ---- */

/* Define the plain loop of a kernel with operands k: rows r and columns j of matrices, element i;
 * entries e of row r of A, and their columns c. */
#define LOOP(name, ...)                                     \
    static void name(const struct sl_kernel_work *operands) \
    {                                                       \
        const struct sl_kernel_work k = *operands;          \
        __VA_ARGS__                                         \
    }
#define ROWS    for (int64_t r = 0; r < k.rows; r++)
#define COLUMNS for (int64_t j = 0, i = r * k.ld; j < k.width; j++, i++)
#define ENTRIES(a)                                                 \
    for (uint32_t e = (a).row_ptr[r]; e < (a).row_ptr[r + 1]; e++) \
        for (int64_t c = ((const uint32_t *)(a).col)[e]; c >= 0; c = -1)

/* clang-format off */

/* Elements */
LOOP(accumulate, ROWS COLUMNS k.results.z[i] += k.h[i];)
LOOP(add_scaled, ROWS COLUMNS k.results.z[i] += 0.5f * k.row.factor[r] * sl_widen(k.half_h[i]);)
LOOP(pack, ROWS COLUMNS k.results.z[i] = k.h[k.row.index[r] * k.ld + j];)
LOOP(unpack, ROWS COLUMNS k.results.z[k.row.index[r] * k.ld + j] = k.h[i];)
LOOP(unpack_add, ROWS COLUMNS k.results.z[k.row.index[r] * k.ld + j] += k.h[i];)
LOOP(bf16_narrow, ROWS COLUMNS k.results.half_z[i] = sl_narrow(k.h[i]);)
LOOP(bf16_widen, ROWS COLUMNS k.results.z[i] = sl_widen(k.half_h[i]);)
LOOP(square_sum,
    double sum = 0.0;
    ROWS COLUMNS sum += (double)k.h[i] * (double)k.h[i];
    k.results.sums[0] = sum;)
LOOP(bias_gradient,
    memset(k.results.z, 0, (size_t)k.width * sizeof *k.results.z);
    ROWS COLUMNS k.results.z[j] += k.row.factor[r] * k.g[i];)

/* Epilogues */
SL_INLINE float rectify(float x) { return x < 0.0f ? 0.0f : x; }
LOOP(epilogue, ROWS COLUMNS k.results.z[i] = rectify(k.row.factor[r] * k.h[i] + k.bias[j]);)
LOOP(epilogue_dropout, ROWS COLUMNS
    k.results.z[i] = rectify(k.h[i] + k.bias[j]) * sl_dropout_factor(&k.half, k.row.vertex[r], (uint32_t)j);)
LOOP(epilogue_dropout16, ROWS COLUMNS
    k.results.z[i] = rectify(k.h[i] + k.bias[j]) * sl_dropout_factor(&k.some, k.row.vertex[r], (uint32_t)j);)
LOOP(epilogue_mask, ROWS COLUMNS k.results.z[i] = k.mask[i] > 0.0f ? k.row.factor[r] * k.g[i] : 0.0f;)
LOOP(epilogue_elu, ROWS COLUMNS {
    const float x = k.h[i] + k.bias[j];
    k.results.z[i] = x > 0.0f ? x : expf(x) - 1.0f;
})

/* Optimizers */
LOOP(adam, for (int64_t i = 0; i < k.rows * k.ld; i++) {
    const float g = k.g[i] + 5e-4f * k.results.z[i];
    k.results.y[i] = 0.9f * k.results.y[i] + 0.1f * g;
    k.results.v[i] = 0.999f * k.results.v[i] + 0.001f * g * g;
    k.results.z[i] -= 0.02f * k.results.y[i] / (sqrtf(4.0f * k.results.v[i]) + 1e-8f);
})
LOOP(sgd, for (int64_t i = 0; i < k.rows * k.ld; i++) {
    k.results.y[i] = 0.9f * k.results.y[i] + k.g[i] + 5e-4f * k.results.z[i];
    k.results.z[i] -= 0.01f * k.results.y[i];
})

/* Sparse products */
#define ZERO(x) memset(x, 0, (size_t)(k.rows * k.ld) * sizeof *(x));
#define DROPPED (k.weighted.value[e] * sl_dropout_factor(&k.half, k.row.vertex[r], (uint32_t)c))
LOOP(gather, ZERO(k.results.z) ROWS ENTRIES(k.a) COLUMNS k.results.z[i] += k.h[c * k.ld + j];)
LOOP(gather_values, ZERO(k.results.z) ROWS ENTRIES(k.weighted) {
    const float v = k.weighted.value[e];
    COLUMNS k.results.z[i] += v * k.h[c * k.ld + j];
})
LOOP(gather_bf16, float sum[SL_KERNEL_WIDTH]; ROWS {
    COLUMNS sum[i - r * k.ld] = 0.0f;
    ENTRIES(k.a) COLUMNS sum[i - r * k.ld] += sl_widen(k.half_h[c * k.ld + j]);
    COLUMNS k.results.half_z[i] = sl_narrow(sum[j]);
})
LOOP(features, ZERO(k.results.z) ROWS ENTRIES(k.weighted) {
    const float v = DROPPED;
    COLUMNS k.results.z[i] += v * k.h[c * k.ld + j];
})
LOOP(features_back, ZERO(k.results.z) ROWS ENTRIES(k.weighted) {
    const float v = DROPPED;
    COLUMNS k.results.z[c * k.ld + j] += v * k.h[i];
})
LOOP(scatter, ZERO(k.results.z) ROWS ENTRIES(k.weighted) {
    const float v = k.weighted.value[e];
    COLUMNS k.results.z[c * k.ld + j] += v * k.h[i];
})
LOOP(own_reduce, ZERO(k.results.y) gather(operands);)

/* Maxima */
#define LARGEST(sign, z, h, number)                                                                  \
    ROWS COLUMNS k.results.argmax[i] = -1;                                                           \
    ROWS ENTRIES(k.a) COLUMNS {                                                                      \
        const bool wins = k.results.argmax[i] < 0 || sign number((h)[c * k.ld + j]) > sign number((z)[i]); \
        (z)[i] = wins ? (h)[c * k.ld + j] : (z)[i];                                                  \
        k.results.argmax[i] = wins ? (int32_t)c : k.results.argmax[i];                               \
    }
LOOP(max, LARGEST(+, k.results.z, k.h, ))
LOOP(min, LARGEST(-, k.results.z, k.h, ))
LOOP(max_bf16, LARGEST(+, k.results.half_z, k.half_h, sl_widen))
LOOP(max_back, ZERO(k.results.z) ROWS ENTRIES(k.at) COLUMNS
    k.results.z[i] += k.row.chosen[c * k.ld + j] == r ? k.g[c * k.ld + j] : 0.0f;)
LOOP(max_merge, ROWS COLUMNS {
    const int64_t to = k.row.index[r] * k.ld + j;
    const bool wins = k.h[i] > k.results.z[to] || (k.h[i] == k.results.z[to] && k.row.chosen[i] < k.results.argmax[to]);
    k.results.z[to] = wins ? k.h[i] : k.results.z[to];
    k.results.argmax[to] = wins ? k.row.chosen[i] : k.results.argmax[to];
})

LOOP(jump_max, ROWS COLUMNS {
    const float value = k.row.factor[r] * k.h[i];
    const bool wins = value > k.results.z[i];
    k.results.z[i] = wins ? value : k.results.z[i];
    k.results.argmax[i] = wins ? 1 : k.results.argmax[i];
})
LOOP(jump_max_back, ROWS COLUMNS k.results.z[i] += k.row.chosen[i] == 1 ? k.g[i] : 0.0f;)

/* Attention: heads h, whose columns begin at j0 */
#define HEADS for (int64_t h = 0, j0 = 0; h < k.gat.attention.heads; h++, j0 += k.gat.attention.width)
#define HEAD  for (int64_t j = 0; j < k.gat.attention.width; j++)
#define AT(of, row) (k.of.data + (row) * k.of.ld)
#define EACH_FEATURE for (int64_t f = 0; f < SL_KERNEL_FEATURES; f++)
#define ATTENTION(EDGES) const int64_t all = k.width, heads = k.gat.attention.heads; ROWS HEADS {       \
    float *z = AT(results.state, r) + j0, *sloped = z + all + 2 * heads, top = -INFINITY, l = 0, q = 0; \
    const float s = AT(gat.scores, r)[h];                                                               \
    HEAD z[j] = sloped[j] = 0.0f;                                                                       \
    ENTRIES(k.a) {                                                                                      \
        float x = s + AT(gat.projected, c)[all + h];                                                    \
        EDGES(k.a)                                                                                      \
        top = fmaxf(top, x > 0.0f ? x : 0.2f * x);                                                      \
    }                                                                                                   \
    ENTRIES(k.a) {                                                                                      \
        const float *p = AT(gat.projected, c) + j0;                                                     \
        float x = s + AT(gat.projected, c)[all + h];                                                    \
        EDGES(k.a)                                                                                      \
        const float slope = x > 0.0f ? 1.0f : 0.2f, alpha = expf(slope * x - top);                      \
        l += alpha;                                                                                     \
        q += slope * alpha;                                                                             \
        HEAD z[j] += alpha * p[j], sloped[j] += slope * alpha * p[j];                                   \
    }                                                                                                   \
    AT(results.state, r)[all + h] = top;                                                                \
    AT(results.state, r)[all + heads + h] = l;                                                          \
    AT(results.state, r)[2 * all + 2 * heads + h] = q;                                                  \
}
#define ATTENTION_BACK(EDGES, EDGES_BACK) const int64_t all = k.width, heads = k.gat.attention.heads; ROWS HEADS { \
    const float *p = AT(gat.projected, r) + j0, t = AT(gat.projected, r)[all + h];                      \
    float *d = AT(results.back, r) + j0, dt = 0.0f;                                                     \
    HEAD d[j] = 0.0f;                                                                                   \
    ENTRIES(k.at) {                                                                                     \
        const float *scores = AT(gat.scores, c), *g = AT(gat.gradient, c) + j0;                         \
        float x = scores[h] + t;                                                                        \
        EDGES(k.at)                                                                                     \
        const float slope = x > 0.0f ? 1.0f : 0.2f;                                                     \
        const float alpha = fminf(expf(slope * x - scores[heads + h]), 1.0f);                           \
        float product = -AT(gat.gradient, c)[all + h];                                                  \
        HEAD d[j] += alpha * g[j], product += p[j] * g[j];                                              \
        const float dx = slope * alpha * product;                                                       \
        dt += dx;                                                                                       \
        EDGES_BACK(k.at)                                                                                \
    }                                                                                                   \
    AT(results.back, r)[all + h] = dt;                                                                  \
    AT(results.back, r)[all + heads + h] = 0.0f;                                                        \
}
#define NO_EDGES(a)
#define ADD_EDGES(a)  EACH_FEATURE x += (a).edge[e * SL_KERNEL_FEATURES + f] * AT(gat.edge, f)[h];
#define EDGES_BACK(a) EACH_FEATURE AT(results.edge_back, f)[h] += dx * (a).edge[e * SL_KERNEL_FEATURES + f];
LOOP(attention, ATTENTION(NO_EDGES))
LOOP(attention_back, ATTENTION_BACK(NO_EDGES, NO_EDGES))
LOOP(attention_edges, ATTENTION(ADD_EDGES))
LOOP(attention_edges_back,
    EACH_FEATURE for (int64_t h = 0; h < k.gat.attention.heads; h++) AT(results.edge_back, f)[h] = 0.0f;
    ATTENTION_BACK(ADD_EDGES, EDGES_BACK))
LOOP(attention_gradient, ROWS HEADS {
    const float *g = k.g + r * k.ld + j0, *z = AT(gat.closed, r) + j0;
    float *back = AT(results.back, r) + j0, product = 0.0f;
    HEAD back[j] = g[j], product += g[j] * z[j];
    AT(results.back, r)[k.width + h] = product;
})
LOOP(attention_own, const int64_t all = k.width, heads = k.gat.attention.heads; ROWS HEADS {
    const float *g = AT(gat.gradient, r) + j0, *sloped = AT(gat.closed, r) + all + 2 * heads + j0;
    float own = -AT(gat.gradient, r)[all + h] * AT(gat.closed, r)[2 * all + 2 * heads + h];
    HEAD own += g[j] * sloped[j];
    AT(results.back, r)[all + heads + h] += own;
})

/* Attention whose scores need both ends' rows */
#define PAIRS      for (int64_t h = 0, j0 = 0; h < k.pair.sums.attention.heads; h++, j0 += k.pair.sums.attention.width)
#define PAIR_HEAD  for (int64_t j = j0; j < j0 + k.pair.sums.width; j++)
#define PAIR_ALL   const int64_t all = k.pair.sums.attention.heads * k.pair.sums.attention.width
#define VALUES     (products ? all : 0)
#define SLOPE(s, t) ((s)[j] + (t)[j] > 0.0f ? 1.0f : 0.2f)
#define SCORE(s, t)                                                                                    \
    float x = 0.0f;                                                                                    \
    PAIR_HEAD x += products ? (s)[j] * (t)[j]                                                          \
                            : k.pair.vectors.data[j] * ((s)[j] + (t)[j]) +                             \
                                  k.pair.vectors.data[k.pair.vectors.ld + j] * fabsf((s)[j] + (t)[j]);
#define FACTORS(s, t, gradient)                                                    \
    SCORE(s, t)                                                                    \
    const float alpha = fminf(expf(x - (t)[all + h]), 1.0f);                       \
    float de = 0.0f;                                                               \
    PAIR_HEAD de += (gradient)[j] * (s)[VALUES + j];                               \
    de = alpha * de - alpha * (gradient)[all + h];
#define PAIR_FORWARD PAIR_ALL; ROWS PAIRS {                                        \
    float *z = AT(results.state, r), top = -INFINITY, l = 0.0f;                    \
    const float *t = AT(pair.target, r);                                           \
    for (int64_t j = 0; j < k.pair.sums.attention.width; j++) z[j0 + j] = 0.0f;    \
    ENTRIES(k.a) { SCORE(AT(pair.source, c), t) top = fmaxf(top, x); }             \
    ENTRIES(k.a) {                                                                 \
        const float *s = AT(pair.source, c);                                       \
        SCORE(s, t)                                                                \
        const float alpha = expf(x - top);                                         \
        l += alpha;                                                                \
        PAIR_HEAD z[j] += alpha * s[VALUES + j];                                   \
    }                                                                              \
    z[all + h] = top;                                                              \
    z[all + k.pair.sums.attention.heads + h] = l;                                  \
}
#define PAIR_AGAIN PAIR_ALL; ROWS PAIRS {                                          \
    float *back = AT(results.back, r);                                             \
    const float *t = AT(pair.target, r), *g = AT(pair.gradient, r);                \
    for (int64_t j = 0; j < k.pair.sums.attention.width; j++) back[j0 + j] = 0.0f; \
    ENTRIES(k.a) {                                                                 \
        const float *s = AT(pair.source, c);                                       \
        FACTORS(s, t, g)                                                           \
        PAIR_HEAD back[j] += de * (products ? s[j] : SLOPE(s, t));                 \
    }                                                                              \
}
#define PAIR_BACK PAIR_ALL; ROWS PAIRS {                                                           \
    float *back = AT(results.back, r);                                                             \
    const float *s = AT(pair.source, r);                                                           \
    for (int64_t j = 0; j < k.pair.sums.attention.width; j++) back[j0 + j] = back[all + j0 + j] = 0.0f; \
    ENTRIES(k.at) {                                                                                \
        const float *t = AT(pair.target, c), *g = AT(pair.gradient, c);                            \
        FACTORS(s, t, g)                                                                           \
        PAIR_HEAD back[j] += de * (products ? t[j] : SLOPE(s, t)), back[all + j] += alpha * g[j];  \
    }                                                                                              \
}

/* The same with features of entries. The row of an edge is that of weights behind the vectors. */
enum { FEATURES = SL_KERNEL_FEATURES };
#define EDGES      k.edges.vectors.data + SL_PAIR_VECTORS * k.edges.vectors.ld
#define EDGE_PAIR(of)                                                                              \
    const float *w = EDGES, *even = k.edges.vectors.data, *odd = even + k.edges.vectors.ld;        \
    const int64_t wide = k.edges.vectors.ld, heads = k.edges.of.attention.heads;                   \
    float edge[SL_KERNEL_WIDTH * 4];                                                               \
    (void)w, (void)even, (void)odd, (void)wide, (void)heads, (void)edge;                           \
    PAIR_ALL;
#define FEATURE(a, f) ((a).edge[(int64_t)e * FEATURES + (f)])
#define EDGE_ROW(a) PAIR_HEAD {                                                                    \
    edge[j] = 0.0f;                                                                                \
    for (int f = 0; f < FEATURES; f++) edge[j] += FEATURE(a, f) * w[f * wide + j];                 \
}
#define EDGE_SCORE(s, t)                                                                           \
    float x = 0.0f;                                                                                \
    PAIR_HEAD x += even[j] * ((s)[j] + edge[j] + (t)[j]) + odd[j] * fabsf((s)[j] + edge[j] + (t)[j]);
#define NUMBERS(a, sum, n) for (int f = 0; f < FEATURES; f++) sum += FEATURE(a, f) * (n)[f * heads + h];
#define EDGE_PRODUCT(a, s, t)                                                                      \
    float x = 0.0f;                                                                                \
    PAIR_HEAD x += (s)[j] * (t)[j];                                                                \
    NUMBERS(a, x, (t) + all + heads + 1)
#define EDGE_CHANGE(s, t, gradient)                                                                \
    const float alpha = fminf(expf(x - (t)[all + h]), 1.0f);                                       \
    float de = 0.0f;                                                                               \
    PAIR_HEAD de += (gradient)[j] * (s)[VALUES + j];
LOOP(pair_edges_sums, EDGE_PAIR(sums) ROWS PAIRS {
    float *z = AT(results.edge_rows, r), top = -INFINITY, l = 0.0f;
    const float *t = AT(edges.target, r);
    for (int64_t j = 0; j < k.edges.sums.attention.width; j++) z[j0 + j] = 0.0f;
    ENTRIES(k.edges.a) { EDGE_ROW(k.edges.a) EDGE_SCORE(AT(pair.source, c), t) top = fmaxf(top, x); }
    ENTRIES(k.edges.a) {
        const float *s = AT(pair.source, c);
        EDGE_ROW(k.edges.a)
        EDGE_SCORE(s, t)
        const float alpha = expf(x - top);
        l += alpha;
        PAIR_HEAD z[j] += alpha * s[j];
    }
    z[all + h] = top;
    z[all + heads + h] = l;
})
LOOP(pair_edges_sums_again, const bool products = false; EDGE_PAIR(sums)
    memset(k.results.pair_edge_back.data, 0, (size_t)(FEATURES * all) * sizeof(float));
    ROWS PAIRS {
        float *back = AT(results.edge_rows, r);
        const float *t = AT(edges.target, r), *g = AT(edges.gradient, r);
        for (int64_t j = 0; j < k.edges.sums.attention.width; j++) back[j0 + j] = 0.0f;
        ENTRIES(k.edges.a) {
            const float *s = AT(pair.source, c);
            EDGE_ROW(k.edges.a)
            EDGE_SCORE(s, t)
            EDGE_CHANGE(s, t, g)
            de = alpha * de - alpha * g[all + h];
            PAIR_HEAD {
                const float change = de * (s[j] + edge[j] + t[j] > 0.0f ? 1.0f : 0.2f);
                back[j] += change;
                for (int f = 0; f < FEATURES; f++)
                    k.results.pair_edge_back.data[f * all + j] += FEATURE(k.edges.a, f) * change;
            }
        }
    })
LOOP(pair_edges_sums_back, const bool products = false; EDGE_PAIR(sums) ROWS PAIRS {
    float *back = AT(results.back, r);
    const float *s = AT(pair.source, r);
    for (int64_t j = 0; j < k.edges.sums.attention.width; j++) back[j0 + j] = back[all + j0 + j] = 0.0f;
    ENTRIES(k.edges.at) {
        const float *t = AT(edges.target, c), *g = AT(edges.gradient, c);
        EDGE_ROW(k.edges.at)
        EDGE_SCORE(s, t)
        EDGE_CHANGE(s, t, g)
        de = alpha * de - alpha * g[all + h];
        PAIR_HEAD back[j] += de * (s[j] + edge[j] + t[j] > 0.0f ? 1.0f : 0.2f), back[all + j] += alpha * g[j];
    }
})
LOOP(pair_edges_products, EDGE_PAIR(products) ROWS PAIRS {
    float *z = AT(results.edge_rows, r), *b = z + all + 2 * heads + h, top = -INFINITY, l = 0.0f;
    const float *t = AT(edges.target, r);
    for (int64_t j = 0; j < k.edges.products.attention.width; j++) z[j0 + j] = 0.0f;
    for (int f = 0; f < FEATURES; f++) b[f * heads] = 0.0f;
    ENTRIES(k.edges.a) { EDGE_PRODUCT(k.edges.a, AT(pair.source, c), t) top = fmaxf(top, x); }
    ENTRIES(k.edges.a) {
        const float *s = AT(pair.source, c);
        EDGE_PRODUCT(k.edges.a, s, t)
        const float alpha = expf(x - top);
        l += alpha;
        PAIR_HEAD z[j] += alpha * s[all + j];
        for (int f = 0; f < FEATURES; f++) b[f * heads] += alpha * FEATURE(k.edges.a, f);
    }
    z[all + h] = top;
    z[all + heads + h] = l;
})
LOOP(pair_edges_products_again, const bool products = true; EDGE_PAIR(products) ROWS PAIRS {
    float *back = AT(results.edge_rows, r), *a = back + all + h;
    const float *t = AT(edges.target, r), *g = AT(edges.gradient, r);
    for (int64_t j = 0; j < k.edges.products.attention.width; j++) back[j0 + j] = 0.0f;
    for (int f = 0; f < FEATURES; f++) a[f * heads] = 0.0f;
    ENTRIES(k.edges.a) {
        const float *s = AT(pair.source, c);
        EDGE_PRODUCT(k.edges.a, s, t)
        EDGE_CHANGE(s, t, g)
        NUMBERS(k.edges.a, de, g + all + heads)
        de = alpha * de - alpha * g[all + h];
        PAIR_HEAD back[j] += de * s[j];
        for (int f = 0; f < FEATURES; f++) a[f * heads] += de * FEATURE(k.edges.a, f);
    }
})
LOOP(pair_edges_products_back, const bool products = true; EDGE_PAIR(products) ROWS PAIRS {
    float *back = AT(results.back, r);
    const float *s = AT(pair.source, r);
    for (int64_t j = 0; j < k.edges.products.attention.width; j++) back[j0 + j] = back[all + j0 + j] = 0.0f;
    ENTRIES(k.edges.at) {
        const float *t = AT(edges.target, c), *g = AT(edges.gradient, c);
        EDGE_PRODUCT(k.edges.at, s, t)
        EDGE_CHANGE(s, t, g)
        NUMBERS(k.edges.at, de, g + all + heads)
        de = alpha * de - alpha * g[all + h];
        PAIR_HEAD back[j] += de * t[j], back[all + j] += alpha * g[j];
    }
})
LOOP(pair_sums, const bool products = false; PAIR_FORWARD)
LOOP(pair_sums_again, const bool products = false; PAIR_AGAIN)
LOOP(pair_sums_back, const bool products = false; PAIR_BACK)
LOOP(pair_products, const bool products = true; PAIR_FORWARD)
LOOP(pair_products_again, const bool products = true; PAIR_AGAIN)
LOOP(pair_products_back, const bool products = true; PAIR_BACK)

/* GINE */
#define MESSAGE(a, row)                                                                                  \
    COLUMNS x[j] = AT(gine.x, row)[j] + AT(gine.edge, SL_KERNEL_FEATURES)[j];                            \
    EACH_FEATURE COLUMNS x[j] += (a).edge[e * SL_KERNEL_FEATURES + f] * AT(gine.edge, f)[j];
LOOP(gine, float x[SL_KERNEL_WIDTH]; ZERO(k.results.z) ROWS ENTRIES(k.gine.a) {
    MESSAGE(k.gine.a, c)
    COLUMNS k.results.z[i] += rectify(x[j]);
})
LOOP(gine_back, float x[SL_KERNEL_WIDTH]; ZERO(k.results.z)
    memset(k.results.edge.data, 0, (size_t)((SL_KERNEL_FEATURES + 1) * k.ld) * sizeof(float));
    ROWS ENTRIES(k.gine.at) {
        MESSAGE(k.gine.at, r)
        COLUMNS x[j] = x[j] > 0.0f ? k.g[c * k.ld + j] : 0.0f;
        COLUMNS k.results.z[i] += x[j];
        EACH_FEATURE COLUMNS AT(results.edge, f)[j] += k.gine.at.edge[e * SL_KERNEL_FEATURES + f] * x[j];
        COLUMNS AT(results.edge, SL_KERNEL_FEATURES)[j] += x[j];
    })

/* Relations */
#define EACH_INPUT       for (int64_t n = 0; n < k.width; n++)
#define RELATED(a, what) (a).edge[(int64_t)e * SL_RELATION_FEATURES + (what)]
#define WEIGHT_ROW(a)    ((int64_t)RELATED(a, SL_RELATION) * k.width + n)
LOOP(relations, ZERO(k.results.z) ROWS ENTRIES(k.relations.a) EACH_INPUT {
    const float x = RELATED(k.relations.a, SL_RELATION_FACTOR) * k.h[c * k.ld + n],
                *w = AT(relations.of.weight, WEIGHT_ROW(k.relations.a));
    COLUMNS k.results.z[i] += x * w[j];
})
LOOP(relations_back, ZERO(k.results.z)
    memset(k.results.weight_back.data, 0, (size_t)(SL_KERNEL_RELATIONS * k.width * k.ld) * sizeof(float));
    ROWS ENTRIES(k.relations.at) EACH_INPUT {
        const float factor = RELATED(k.relations.at, SL_RELATION_FACTOR), x = k.h[r * k.ld + n],
                    *w = AT(relations.of.weight, WEIGHT_ROW(k.relations.at));
        float *back = AT(results.weight_back, WEIGHT_ROW(k.relations.at)), sum = 0.0f;
        COLUMNS {
            const float z = factor * k.g[c * k.ld + j];
            sum += z * w[j];
            back[j] += x * z;
        }
        k.results.z[r * k.ld + n] += sum;
    })

/* Links l: element j of the source's row X, of the target's row Y */
#define EACH_LINK for (int64_t l = 1; l <= k.entries; l++)
#define LINK      k.links.block[l]
#define HALF      (k.width / 2)
#define X         k.h[LINK.source * k.ld + j]
#define Y         k.g[LINK.target * k.ld + j]
#define SUM       (X + k.g[LINK.target * k.ld + HALF + j])
#define TO_SOURCE k.results.z[LINK.source * k.ld + j]
#define TO_TARGET k.results.z[LINK.target * k.ld + j]
#define FIRST(count) for (int64_t j = 0; j < (count); j++)
#define SCORES(count, more, term) EACH_LINK {   \
    float sum = more;                           \
    FIRST(count) sum += (term);                 \
    k.results.links[l].value = sum;             \
}
LOOP(link_scores, SCORES(k.width, 0.0f, X * Y))
LOOP(link_scores_distmult, SCORES(k.width, 0.0f, k.weight[j] * X * Y))
LOOP(link_scores_mlp, SCORES(HALF, k.weight[HALF], k.weight[j] * rectify(SUM)))
LOOP(link_back, EACH_LINK FIRST(k.width) TO_SOURCE += LINK.value * Y;)
LOOP(link_back_targets, EACH_LINK FIRST(k.width) TO_TARGET += LINK.value * X;)
LOOP(link_back_distmult, EACH_LINK FIRST(k.width) TO_SOURCE += LINK.value * k.weight[j] * Y;)
LOOP(link_back_mlp, EACH_LINK FIRST(HALF) k.results.z[LINK.target * k.ld + HALF + j] += SUM > 0.0f ? LINK.value * k.weight[j] : 0.0f;)
LOOP(link_parameters, EACH_LINK FIRST(k.width) k.results.z[j] += LINK.value * X * Y;)
LOOP(link_parameters_mlp, EACH_LINK {
    FIRST(HALF) k.results.z[j] += LINK.value * rectify(SUM);
    k.results.z[HALF] += LINK.value;
})

/* Norms */
SL_INLINE float inverse_of(float variance) { return 1.0f / sqrtf(variance + 1e-5f); }
#define MOMENTS                                                              \
    float mean = 0.0f, variance = 0.0f;                                      \
    COLUMNS mean += k.h[i];                                                  \
    mean /= (float)k.width;                                                  \
    COLUMNS variance += (k.h[i] - mean) * (k.h[i] - mean);                   \
    const float inverse = inverse_of(variance / (float)k.width);
LOOP(norm_row, ROWS {
    MOMENTS
    COLUMNS k.results.z[i] = (k.h[i] - mean) * inverse * k.weight[j] + k.bias[j];
})
LOOP(norm_row_back, ROWS {
    MOMENTS
    float first = 0.0f, second = 0.0f;
    COLUMNS first += k.weight[j] * k.g[i];
    COLUMNS second += k.weight[j] * k.g[i] * (k.h[i] - mean) * inverse;
    COLUMNS k.results.z[i] = inverse * (k.weight[j] * k.g[i] - (first + (k.h[i] - mean) * inverse * second) / (float)k.width);
})
#define INVERSE float inverse[SL_KERNEL_WIDTH]; \
    for (int64_t j = 0; j < k.width; j++) inverse[j] = inverse_of(k.variance[j]);
LOOP(norm_batch, INVERSE ROWS COLUMNS k.results.z[i] = (k.h[i] - k.bias[j]) * inverse[j] * k.weight[j] + k.bias[j];)
LOOP(norm_batch_back, INVERSE const float share = 1.0f / (float)k.rows; ROWS COLUMNS {
    const float x = (k.h[i] - k.bias[j]) * inverse[j];
    k.results.z[i] = k.weight[j] * inverse[j] * (k.g[i] - share * (k.bias[j] + x * k.weight[j]));
})
LOOP(norm_sums,
    memset(k.results.sums, 0, (size_t)k.width * sizeof *k.results.sums);
    memset(k.results.sums + k.ld, 0, (size_t)k.width * sizeof *k.results.sums);
    ROWS COLUMNS k.results.sums[j] += (double)k.row.factor[r] * (double)k.h[i];
    ROWS COLUMNS k.results.sums[k.ld + j] += (double)k.row.factor[r] * (double)k.h[i] * (double)k.h[i];)
LOOP(norm_gradient, INVERSE
    memset(k.results.z, 0, (size_t)k.width * sizeof *k.results.z);
    memset(k.results.z + k.ld, 0, (size_t)k.width * sizeof *k.results.z);
    ROWS COLUMNS {
        k.results.z[j] += k.g[i] * (k.h[i] - k.bias[j]) * inverse[j];
        k.results.z[k.ld + j] += k.g[i];
    })

/* Losses */
#define LOGITS                                                       \
    const float *h = k.h + r * k.ld;                                 \
    int64_t top = 0;                                                 \
    const int64_t label = k.row.target[2 * r];                           \
    COLUMNS top = h[j] > h[top] ? j : top;                           \
    float sum = 0.0f;                                                \
    COLUMNS sum += expf(h[j] - h[top]);                              \
    const float logarithm = logf(sum) + h[top];
LOOP(softmax, k.results.sums[0] = k.results.sums[1] = 0.0; ROWS {
    LOGITS
    COLUMNS k.results.z[i] = 0.5f * k.row.factor[r] * (expf(h[j] - logarithm) - (j == label ? 1.0f : 0.0f));
    k.results.sums[0] += (double)(logarithm - h[label]);
    k.results.sums[1] += top == label;
})
LOOP(accuracy, memset(k.results.sums, 0, 8 * sizeof *k.results.sums); ROWS {
    LOGITS
    k.results.sums[4 + k.row.target[2 * r + 1]] += (double)(logarithm - h[label]);
    k.results.sums[k.row.target[2 * r + 1]] += top == label;
})
#define SHARE (k.weight[j] * (0.1f / (float)k.width + (j == label ? 0.9f : 0.0f)))
LOOP(softmax_weighted, k.results.sums[0] = k.results.sums[1] = 0.0; ROWS {
    LOGITS
    float all = 0.0f, loss = 0.0f;
    COLUMNS all += SHARE, loss += SHARE * (logarithm - h[j]);
    COLUMNS k.results.z[i] = 0.5f * k.row.factor[r] * (all * expf(h[j] - logarithm) - SHARE);
    k.results.sums[0] += (double)loss;
    k.results.sums[1] += top == label;
})
LOOP(loss_sigmoid, k.results.sums[0] = k.results.sums[1] = 0.0; ROWS {
    const float *y = (const float *)(k.row.values + r * (2 + k.width) + 2), scale = 0.5f / (float)k.width;
    float loss = 0.0f;
    bool right = true;
    COLUMNS {
        const float x = k.h[i], power = expf(-fabsf(x)), share = 1.0f / (1.0f + power);
        loss += fmaxf(x, 0.0f) - x * y[j] + log1pf(power);
        right &= (x > 0.0f) == (y[j] > 0.5f);
        k.results.z[i] = scale * k.row.factor[r] * ((x < 0.0f ? power * share : share) - y[j]);
    }
    k.results.sums[0] += (double)(loss / (float)k.width);
    k.results.sums[1] += right;
})
LOOP(loss_square, k.results.sums[0] = k.results.sums[1] = 0.0; ROWS {
    const float *y = (const float *)(k.row.values + r * (2 + k.width) + 2), scale = 0.5f / (float)k.width;
    float loss = 0.0f;
    COLUMNS {
        loss += (k.h[i] - y[j]) * (k.h[i] - y[j]);
        k.results.z[i] = 2.0f * scale * k.row.factor[r] * (k.h[i] - y[j]);
    }
    k.results.sums[0] += (double)(loss / (float)k.width);
})

#define NAME(loop) {#loop, loop}
static const struct {
    const char *name;
    sl_kernel_call *loop;
} loops[] = {
    NAME(accumulate), NAME(add_scaled), NAME(pack), NAME(unpack),
    NAME(unpack_add), NAME(bf16_narrow), NAME(bf16_widen), NAME(square_sum), NAME(bias_gradient), NAME(epilogue),
    NAME(epilogue_dropout), NAME(epilogue_dropout16), NAME(epilogue_mask), NAME(epilogue_elu), NAME(adam), NAME(sgd),
    NAME(gather), NAME(gather_values), NAME(gather_bf16), NAME(features), NAME(features_back), NAME(scatter),
    NAME(own_reduce), NAME(max), NAME(min), NAME(max_bf16), NAME(max_back), NAME(max_merge), NAME(jump_max), NAME(jump_max_back), NAME(attention),
    NAME(attention_back), NAME(attention_edges), NAME(attention_edges_back), NAME(attention_gradient), NAME(attention_own), NAME(pair_sums), NAME(pair_sums_again),
    NAME(pair_sums_back), NAME(pair_products), NAME(pair_products_again), NAME(pair_products_back),
    NAME(pair_edges_sums), NAME(pair_edges_sums_again), NAME(pair_edges_sums_back),
    NAME(pair_edges_products), NAME(pair_edges_products_again), NAME(pair_edges_products_back),
    NAME(link_scores), NAME(link_scores_distmult), NAME(link_scores_mlp), NAME(link_back), NAME(link_back_targets),
    NAME(link_back_distmult), NAME(link_back_mlp), NAME(link_parameters), NAME(link_parameters_mlp),
    NAME(gine), NAME(gine_back), NAME(relations), NAME(relations_back), NAME(norm_row), NAME(norm_row_back),
    NAME(norm_batch), NAME(norm_batch_back), NAME(norm_sums), NAME(norm_gradient), NAME(softmax), NAME(accuracy),
    NAME(softmax_weighted), NAME(loss_sigmoid), NAME(loss_square),
};
/* clang-format on */

SL_KERNEL_RETURNS(sl_kernel_call *, sl_loop_find, (const char *name), (name))
{
    for (size_t l = 0; l < sizeof loops / sizeof *loops; l++)
        if (strcmp(loops[l].name, name) == 0)
            return loops[l].loop;
    return NULL;
}
