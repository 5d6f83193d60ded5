/* Loops that measure the machine, and plain loops that kernels are compared with, written in the
 * simplest way. They are compiled with -O3 for the instruction level in force. */
#ifndef SL_BENCH_LOOPS_H
#define SL_BENCH_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

/* Set TOTAL to the sum of A (count). */
void sl_loop_sum(int64_t count, const float *a, float *total);

/* Set A = B + scale · C (count). */
void sl_loop_triad(int64_t count, float scale, const float *b, const float *c, float *a);

/* Set TOTAL to a sum of elements of `count` random rows of TABLE (rows, width), prefetched as in a
 * sparse product or not. */
void sl_loop_gather(const float *table, int64_t rows, int64_t width, int64_t count, bool prefetch,
                    uint64_t seed, float *total);

/* Operands of Z = A·H: CSR with values times a dense matrix. */
struct sl_loop_product {
    const int64_t *row_ptr;
    const uint32_t *col;
    const float *value, *h; // h: (any, ld)
    float *z;               // (any, ld)
    int64_t ld, width;
};

/* Compute rows [first, last) of a product. */
void sl_loop_multiply(const struct sl_loop_product *product, int64_t first, int64_t last);

/* Multiply and add `count` numbers in registers, several times: the peak of operations. */
void sl_loop_peak(int64_t count, float *x);

/* Set X = e^X (count, a multiple of 16), with the vectors of codelets/exponential.h. */
void sl_loop_exponentials(int64_t count, float *x);

#endif
