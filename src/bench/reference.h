/* References that other figures are compared with: the machine's memory bandwidth and its rate of
 * dense products. Threads are bound as workers are, and work on memory that they were the first to
 * touch. */
#ifndef SL_BENCH_REFERENCE_H
#define SL_BENCH_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/team.h"

struct sl_reference_operands;

struct sl_reference {
    struct sl_team *team; /* borrowed */
    int threads;          /* threads of the team; each has an equal share of the arrays */
    size_t bytes;         /* bytes of each array */
    float *array[3];
    int64_t gemm_size;
    struct sl_reference_operands *operands; // (threads)
};

/* Return the default bytes of an array: sixteen times the last cache, at least 256 MiB, and at most
 * a sixteenth of the memory. */
size_t sl_reference_default_bytes(void);

/* Make the arrays of `bytes` bytes, and matrices of `gemm_size` rows and columns. Return 0 or
 * SL_ERR_SYSTEM; call sl_reference_destroy in either case. */
int sl_reference_create(struct sl_reference *reference, struct sl_team *team, size_t bytes,
                        int64_t gemm_size);
void sl_reference_destroy(struct sl_reference *reference);

enum sl_reference_kind {
    SL_REFERENCE_READ,  /* sum an array */
    SL_REFERENCE_COPY,  /* memcpy */
    SL_REFERENCE_TRIAD, /* a = b + s·c */
    SL_REFERENCE_GEMM,  /* each thread multiplies its own square matrices with sl_kernel_gemm */
};

/* Do the share of thread `index` in one run. */
void sl_reference_work(const struct sl_reference *reference, enum sl_reference_kind kind,
                       int index);

/* Return the bytes, as STREAM counts them (no write-allocation), or flops of one run by `threads`
 * threads. */
double sl_reference_amount(const struct sl_reference *reference, enum sl_reference_kind kind,
                           int threads);

/* A measurement of a reference. sl_reference_run runs it as a contestant (measure.h). */
struct sl_reference_measure {
    const struct sl_reference *reference;
    enum sl_reference_kind kind;
    int threads;
    int64_t times; /* runs in the current sample */
};
double sl_reference_run(void *measure, int64_t times);

/* Fill a matrix, or a part of it, with small numbers. `seed` tells parts of one matrix apart. */
void sl_reference_fill(float *a, int64_t count, int64_t seed);

#endif
