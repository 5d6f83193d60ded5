/* The common part of the kernel tests of attention. */
#ifndef SL_TESTS_KERNELS_ATTENTION_H
#define SL_TESTS_KERNELS_ATTENTION_H

#include "codelets/pair.h"
#include "tests/kernels.h"
#include "tests/unit.h"

static const struct {
    int32_t heads;
    int64_t width;
} pair_shapes[] = {{1, 1},   {1, 2},   {1, 3},  {1, 4},  {1, 7},  {3, 5},  {4, 1},
                   {2, 4},   {8, 8},   {9, 3},  {5, 2},  {2, 64}, {1, 40}, {16, 16},
                   {256, 1}, {1, 150}, {3, 33}, {70, 3}, {17, 16}};

static inline struct sl_floats_at floats(const struct sl_guarded *m, int64_t r)
{
    return (struct sl_floats_at){sl_element(m, r, 0), m->ld};
}

/* Return where column k of all heads is in rows that have room. */
static inline int64_t place(const struct sl_pair *pair, int64_t k)
{
    return k / pair->width * pair->attention.width + k % pair->width;
}

static inline void put_vertex(float *at, uint32_t vertex)
{
    const uint32_t bits = vertex ^ SL_ATTENTION_VERTEX;
    memcpy(at, &bits, sizeof bits);
}

/* Some weights are 0: of all entries of row 0, and of one in seven. Others are far from 1. */
static inline void vary_weights(const struct sl_guarded_sparse *a, int64_t rows,
                                struct sl_entry *entry, int64_t entries)
{
    static const float sizes[] = {1.0f, 1e-6f, 1.0f, 1e5f, 1.0f};
    float *value = (float *)a->view.value;
    for (int64_t e = 0; value && e < entries; e++) {
        const bool none = e % 7 == 2 || (entry[e].row == 0 && rows > 2);
        value[e] = none ? 0.0f : fabsf(value[e]) * sizes[(size_t)e % SL_COUNT(sizes)];
        entry[e].value = value[e];
    }
}

/* Return what dropout multiplies a head's coefficient by. Four heads share 64 bits, which belong to
 * the two vertices. */
static inline double mask_between(const struct sl_dropout *drop, uint32_t to, uint32_t from,
                                  int64_t head)
{
    const uint64_t key = drop->key + (uint64_t)(head / 4) * UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t bits = sl_rng_bits(key, to, from) >> 16 * (head % 4) & 0xFFFF;
    return !drop->threshold ? 1.0 : bits >= drop->threshold ? (double)drop->scale : 0.0;
}

#endif
