/* The sample of cases that .ci/run takes. */
#ifndef SL_TESTS_SAMPLE_H
#define SL_TESTS_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Return whether a test takes the case at this place of a list. SL_SAMPLE=K/N in the environment
 * takes one case in N, drawn by a hash of its place; without it, all cases are taken. The hash
 * keeps the sample apart from the list's order. */
static inline bool sl_in_sample(int64_t place)
{
    const char *text = getenv("SL_SAMPLE");
    long own, parts;
    if (!text || sscanf(text, "%ld/%ld", &own, &parts) != 2 || parts < 2)
        return true;
    uint64_t drawn = (uint64_t)(place + 1) * 0x9E3779B97F4A7C15u; /* splitmix64 */
    drawn = (drawn ^ drawn >> 30) * 0xBF58476D1CE4E5B9u;
    drawn = (drawn ^ drawn >> 27) * 0x94D049BB133111EBu;
    return (drawn ^ drawn >> 31) % (uint64_t)parts == (uint64_t)own;
}

#endif
