/* One source for every instruction set. A kernel's body is compiled for several x86-64 levels. At
 * run time the processor's best level is taken, or the level that was asked for. */
#ifndef SL_CODELETS_VECTOR_H
#define SL_CODELETS_VECTOR_H

#define SL_INLINE static inline __attribute__((always_inline))

enum sl_instructions {
    SL_INSTRUCTIONS_BASE, /* what every processor of this architecture has */
    SL_INSTRUCTIONS_V3,   /* x86-64-v3: AVX2 and FMA */
    SL_INSTRUCTIONS_V4,   /* x86-64-v4: AVX-512 */
    SL_INSTRUCTIONS_BF16, /* and AVX512_BF16, which rounds to bfloat16 and multiplies it */
    SL_INSTRUCTIONS,
};

/* The level in force: the best of this processor unless another one was set. */
enum sl_instructions sl_instructions_get(void);

/* Sets the level; the processor must have it. Not while kernels run. */
void sl_instructions_set(enum sl_instructions level);

/* The best level of this processor. */
enum sl_instructions sl_instructions_best(void);

/* "base", "v3", "v4", "v4-bf16"; and back, SL_INSTRUCTIONS for another name. */
extern const char *const sl_instructions_names[SL_INSTRUCTIONS];
enum sl_instructions sl_instructions_find(const char *name);

#if defined(__clang__)
#define SL_COMPILER_KNOWS_LEVELS (__clang_major__ >= 12)
#elif defined(__GNUC__)
#define SL_COMPILER_KNOWS_LEVELS (__GNUC__ >= 11)
#else
#define SL_COMPILER_KNOWS_LEVELS 0
#endif

#if defined(__x86_64__) && SL_COMPILER_KNOWS_LEVELS
#define SL_X86_LEVELS
#define SL_TARGET_V3 __attribute__((target("arch=x86-64-v3")))
#define SL_TARGET_V4 __attribute__((target("arch=x86-64-v4")))
#endif

/* Whether code can be compiled that rounds with AVX512_BF16: such code is taken out of functions
 * for other levels by the optimizer. Clang looks at it before. */
#if defined(SL_X86_LEVELS) && defined(__OPTIMIZE__) && !defined(__clang__)
#define SL_X86_BF16
#endif

/* Defines the function `name` of the given parameters, which runs `name`_body(arguments), an
 * SL_INLINE function, compiled for the level in force. `storage`: static or nothing. */
#ifdef SL_X86_LEVELS
#define SL_DISPATCH(storage, name, parameters, arguments) \
    SL_TARGET_V4 static void name##_v4 parameters         \
    {                                                     \
        name##_body arguments;                            \
    }                                                     \
    SL_TARGET_V3 static void name##_v3 parameters         \
    {                                                     \
        name##_body arguments;                            \
    }                                                     \
    storage void name parameters                          \
    {                                                     \
        switch (sl_instructions_get()) {                  \
        case SL_INSTRUCTIONS_BASE:                        \
            name##_body arguments;                        \
            break;                                        \
        case SL_INSTRUCTIONS_V3:                          \
            name##_v3 arguments;                          \
            break;                                        \
        default:                                          \
            name##_v4 arguments;                          \
        }                                                 \
    }
#else
#define SL_DISPATCH(storage, name, parameters, arguments) \
    storage void name parameters                          \
    {                                                     \
        name##_body arguments;                            \
    }
#endif

/* Sixteen floats, loaded from and stored to any address. */
enum { SL_LANES = 16 };
typedef float sl_floats __attribute__((vector_size(64), aligned(4), may_alias));

#endif
