/* Counter-based random numbers: Threefry-2x32, 13 rounds (Salmon et al., "Parallel random numbers:
 * as easy as 1, 2, 3", SC'11). A number is a pure function of (seed, purpose, epoch, layer) through
 * the key and of (global vertex, column) through the counter: it does not depend on ranks, tiles,
 * order or device. */
#ifndef SL_CORE_RNG_H
#define SL_CORE_RNG_H

#include <math.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define SL_RNG_INLINE static __host__ __device__ inline
#else
#define SL_RNG_INLINE static inline
#endif

/* Purpose of a stream of numbers. The values are part of reproducibility: append, never renumber.
 */
enum sl_rng_purpose {
    SL_RNG_INIT = 1,      /* parameter initialisation; layer = layer index */
    SL_RNG_DROPOUT = 2,   /* dropout on the input of layer `layer` in epoch `epoch` */
    SL_RNG_GENERATE = 3,  /* synthetic datasets; layer = a sub-stream of the generator */
    SL_RNG_ORDER = 4,     /* random permutations */
    SL_RNG_PARTS = 5,     /* partitions; layer = sub-stream of the partitioner */
    SL_RNG_ATTENTION = 6, /* dropout of attention in layer `layer` and epoch `epoch` */
    SL_RNG_SELECT = 7,    /* neighbours of a selection; epoch = the resampling */
    SL_RNG_BATCHES = 8,   /* the order of an epoch's sets */
    SL_RNG_UNITS = 9,     /* units of sub-models; epoch = the round, layer = the axis and head */
    SL_RNG_LINKS =
        10, /* links; layer = a stream below; epoch = the step, of those drawn in training */
    SL_RNG_PROJECTION = 11, /* the random matrix that features are multiplied by */
};

/* Streams of SL_RNG_LINKS: which links validate and test, directions of undirected links, negatives
 * of validation and test, negatives of training. */
enum sl_link_stream { SL_LINKS_SPLIT, SL_LINKS_DIRECTION, SL_LINKS_NEGATIVES, SL_LINKS_DRAWN };

/* Return the 64-bit key of a stream: SplitMix64's finaliser folded over the words. The seed is a
 * word of its own, so that no two small seeds share a stream. */
SL_RNG_INLINE uint64_t sl_rng_key(uint64_t seed, uint32_t purpose, uint32_t epoch, uint32_t layer)
{
    const uint64_t words[3] = {seed, ((uint64_t)purpose << 32) | layer, epoch};
    uint64_t key = 0;
    for (int i = 0; i < 3; i++) {
        key += 0x9E3779B97F4A7C15u + words[i];
        key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
        key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
        key ^= key >> 31;
    }
    return key;
}

SL_RNG_INLINE uint32_t sl_rng_rotate(uint32_t x, int bits)
{
    return (x << bits) | (x >> (32 - bits));
}

/* The rounds on a pair of words (u, v). ROUND(r) stands for u += v, v = rotate(v, r), v ^= u;
 * ADD(x, y) for u += x, v += y; k0, k1, k2 are the key's words. */
/* clang-format off */
#define SL_RNG_ROUNDS(ROUND, ADD)                                         \
    ADD(k0, k1)     ROUND(13) ROUND(15) ROUND(26) ROUND(6)                \
    ADD(k1, k2 + 1) ROUND(17) ROUND(29) ROUND(16) ROUND(24)               \
    ADD(k2, k0 + 2) ROUND(13) ROUND(15) ROUND(26) ROUND(6)                \
    ADD(k0, k1 + 3) ROUND(17)
/* clang-format on */

#define SL_RNG_KEYS(key) \
    const uint32_t k0 = (uint32_t)(key), k1 = (uint32_t)((key) >> 32), k2 = 0x1BD11BDAu ^ k0 ^ k1

/* Make two random 32-bit words, *x (first) and *y (second), from the counter (a, b). The code is
 * straight-line 32-bit adds, rotates and xors, so that a loop over counters becomes vector code. */
SL_RNG_INLINE void sl_rng_block(uint64_t key, uint32_t a, uint32_t b, uint32_t *x, uint32_t *y)
{
    SL_RNG_KEYS(key);
    uint32_t u = a, v = b;
#define SL_RNG_ROUND(r)  u += v, v = sl_rng_rotate(v, r), v ^= u;
#define SL_RNG_ADD(p, q) u += (p), v += (q);
    SL_RNG_ROUNDS(SL_RNG_ROUND, SL_RNG_ADD)
#undef SL_RNG_ROUND
#undef SL_RNG_ADD
    *x = u;
    *y = v;
}

/* Return 64 random bits for the counter (a, b). */
SL_RNG_INLINE uint64_t sl_rng_bits(uint64_t key, uint32_t a, uint32_t b)
{
    uint32_t x, y;
    sl_rng_block(key, a, b, &x, &y);
    return ((uint64_t)y << 32) | x;
}

/* Return a number for the counter (a, b), uniform in [0, 1), with 53 bits. */
SL_RNG_INLINE double sl_rng_uniform(uint64_t key, uint32_t a, uint32_t b)
{
    return (double)(sl_rng_bits(key, a, b) >> 11) * 0x1p-53;
}

/* Return a standard normal number for the counter (a, b), by Box and Muller. */
static inline double sl_rng_normal(uint64_t key, uint32_t a, uint32_t b)
{
    static const double TURN = 6.283185307179586;
    uint32_t x, y;
    sl_rng_block(key, a, b, &x, &y);
    const double radius = sqrt(-2.0 * log(((double)x + 1.0) * 0x1p-32));
    return radius * cos(TURN * ((double)y * 0x1p-32));
}

/* Mix `x` and `key` into 32 bits by the finaliser of MurmurHash3. */
static inline uint32_t sl_rng_mix(uint32_t key, uint32_t x)
{
    x += key * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

/* Return the place of 0 <= i < count < 2^31 in a random permutation of 0 … count - 1. A Feistel
 * network permutes the smallest power of two that holds `count` numbers. Walk until the result is
 * below `count` (Black, Rogaway 2002): at most two steps on average. */
static inline uint32_t sl_rng_permute(uint64_t key, uint32_t count, uint32_t i)
{
    const int bits = 32 - __builtin_clz((count - 1) | 1), low = bits / 2;
    const uint32_t low_mask = (1u << low) - 1, high_mask = (1u << (bits - low)) - 1;
    uint32_t left = i >> low, right = i & low_mask;
    do
        for (uint32_t round = 0; round < 3; round++) {
            left ^= sl_rng_mix((uint32_t)key + 2 * round, right) & high_mask;
            right ^= sl_rng_mix((uint32_t)(key >> 32) + 2 * round, left) & low_mask;
        }
    while (((left << low) | right) >= count);
    return (left << low) | right;
}

/* Dropout looks at 16 bits per element, or at one bit where p = 1/2. Element (vertex, column) takes
 * field number `column % sl_dropout_columns` of sl_rng_bits(key, vertex, column /
 * sl_dropout_columns). The element is kept where its bits are >= the upper bits of the
 * threshold. */
struct sl_dropout {
    uint64_t key;
    uint32_t threshold; /* p * 65536 rounded; 0: nothing is dropped */
    float scale;        /* 65536 / (65536 - threshold): exactly unbiased for the rounded p */
    uint32_t column0;   /* column of the matrix that a kernel counts as column 0 */
};

/* Return the bits that one element looks at; return the elements for which 64 bits suffice. */
SL_RNG_INLINE uint32_t sl_dropout_bits(const struct sl_dropout *drop)
{
    return drop->threshold == 0x8000 ? 1 : 16;
}

SL_RNG_INLINE uint32_t sl_dropout_columns(const struct sl_dropout *drop)
{
    return 64 / sl_dropout_bits(drop);
}

SL_RNG_INLINE struct sl_dropout sl_dropout_make(double p, uint64_t key)
{
    struct sl_dropout drop = {key, (uint32_t)(p * 65536.0 + 0.5), 1.0f, 0};
    drop.scale = 65536.0f / (float)(65536 - drop.threshold);
    return drop;
}

/* Return the factor of one element: 0 or drop->scale. */
SL_RNG_INLINE float sl_dropout_factor(const struct sl_dropout *drop, uint32_t vertex,
                                      uint32_t column)
{
    const uint32_t bits = sl_dropout_bits(drop), columns = sl_dropout_columns(drop);
    column += drop->column0;
    const uint64_t all = sl_rng_bits(drop->key, vertex, column / columns);
    const uint32_t own = (uint32_t)(all >> bits * (column % columns)) & 0xFFFF >> (16 - bits);
    return own >= drop->threshold >> (16 - bits) ? drop->scale : 0.0f;
}

#endif
