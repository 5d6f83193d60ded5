/* Whatever the package was configured with: comparisons are with optimised loops. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include "bench/loops.h"

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

/* A linear congruential generator: cheaper than the gather, the same in every run. */
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

/* Without restrict: told that H and Z are apart, GCC 12 unrolls over entries and then does not
 * vectorise, which makes the loop four times slower. */
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
