/* Compare two lists, spread over ranks in any way: do they hold the same items? Equal lists have
 * equal sums of fingerprints. Other lists have equal sums with a probability of 2^-64 (Clarke et
 * al., "Incremental multiset hash functions and their application to memory integrity checking",
 * ASIACRYPT 2003). */
#ifndef SL_DATA_FINGERPRINT_H
#define SL_DATA_FINGERPRINT_H

#include <stdint.h>
#include <string.h>

#include "core/runtime.h"

/* Return x mixed by the finaliser of SplitMix64. */
static inline uint64_t sl_fingerprint_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Return the fingerprint of the entry (row, col) of a matrix. */
static inline uint64_t sl_fingerprint(int32_t row, int32_t col, float value)
{
    uint32_t bits;
    value += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof bits);
    return sl_fingerprint_mix(sl_fingerprint_mix((uint64_t)(uint32_t)row << 32 | (uint32_t)col) ^
                              bits);
}

/* Return whether the ranks' differences add up to 0. Collective. */
bool sl_fingerprint_agree(struct sl_runtime *rt, uint64_t difference);

/* Narrow range[0] … range[1] - 1 down to one number whose items differ. `difference` returns this
 * rank's difference for the items in the range, which `context` can reach. The differences of all
 * ranks do not add up to 0 for the first range, nor for the last. Collective. */
void sl_fingerprint_narrow(struct sl_runtime *rt, int64_t range[2],
                           uint64_t (*difference)(const void *context), const void *context);

#endif
