/* One source for every instruction set: kernels marked SL_VECTOR are compiled for several x86-64
 * levels and the best is picked when the program starts. */
#ifndef SL_CODELETS_VECTOR_H
#define SL_CODELETS_VECTOR_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SL_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SL_VECTOR
#endif

#define SL_INLINE static inline __attribute__((always_inline))

/* Eight floats, loaded from and stored to any address. */
enum { SL_LANES = 8 };
typedef float sl_float8 __attribute__((vector_size(32), aligned(4), may_alias));

#endif
