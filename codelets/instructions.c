#include "codelets/instructions.h"

#include <stdbool.h>

#include "config.h"
#include "core/error.h"

#ifdef SL_X86_LEVELS
#include <cpuid.h>
#endif

const char *const sl_instructions_names[SL_INSTRUCTIONS] = {"base", "v3", "v4", "v4-bf16"};

static enum sl_instructions level = SL_INSTRUCTIONS; /* SL_INSTRUCTIONS: not chosen yet */

#ifdef SL_X86_LEVELS
/* Ask the processor for F16C and LZCNT. Clang's __builtin_cpu_supports knows neither. */
static bool has_f16c_and_lzcnt(void)
{
    unsigned a, b, c, d;
    const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    return f16c && __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
}
#endif

enum sl_instructions sl_instructions_best(void)
{
#ifdef SL_X86_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        if (__builtin_cpu_supports("avx512bf16"))
            return SL_INSTRUCTIONS_BF16;
        return SL_INSTRUCTIONS_V4;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c_and_lzcnt())
        return SL_INSTRUCTIONS_V3;
#endif
    return SL_INSTRUCTIONS_BASE;
}

enum sl_instructions sl_instructions_get(void)
{
    /* Workers that ask first at the same time all write one value. */
    if (__atomic_load_n(&level, __ATOMIC_RELAXED) == SL_INSTRUCTIONS)
        __atomic_store_n(&level, sl_instructions_best(), __ATOMIC_RELAXED);
    return __atomic_load_n(&level, __ATOMIC_RELAXED);
}

void sl_instructions_set(enum sl_instructions wanted)
{
    if (wanted > sl_instructions_best())
        sl_fatal("instructions of level %d, where this processor has level %d", (int)wanted,
                 (int)sl_instructions_best());
    __atomic_store_n(&level, wanted, __ATOMIC_RELAXED);
}

int sl_instructions_choose(enum sl_instructions choice, enum sl_instructions *wanted)
{
    const enum sl_instructions best = sl_instructions_best();
    *wanted = choice == SL_INSTRUCTIONS_AUTO ? best : choice;
    if (*wanted > best)
        return sl_error(SL_ERR_USAGE, "--instructions %s: this processor has %s at most",
                        sl_instructions_names[choice], sl_instructions_names[best]);
    return 0;
}
