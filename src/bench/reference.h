/* What other figures are measured against: the machine's memory bandwidth and its rate of dense
 * products, by threads bound as workers are, on memory that each thread was the first to touch. */
#ifndef SL_BENCH_REFERENCE_H
#define SL_BENCH_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/team.h"

struct sl_reference_operands;

struct sl_reference {
    struct sl_team *team; /* borrowed */
    int threads;          /* of the team; each has an equal share of the arrays */
    size_t bytes;         /* of each array */
    float *array[3];
    int64_t gemm_size;
    struct sl_reference_operands *operands; // (threads)
};

/* Sixteen times the last cache, but at least 256 MiB, and at most a sixteenth of the memory. */
size_t sl_reference_default_bytes(void);

/* Makes the arrays and, of `gemm_size` rows and columns, the matrices. Returns 0 or SL_ERR_SYSTEM;
 * the caller destroys in either case. */
int sl_reference_create(struct sl_reference *reference, struct sl_team *team, size_t bytes,
                        int64_t gemm_size);
void sl_reference_destroy(struct sl_reference *reference);

enum sl_reference_kind {
    SL_REFERENCE_READ,  /* the sum of an array */
    SL_REFERENCE_COPY,  /* memcpy */
    SL_REFERENCE_TRIAD, /* a = b + s·c */
    SL_REFERENCE_GEMM,  /* each thread its own square product, through sl_kernel_gemm */
};

/* Part `index` of one run. */
void sl_reference_work(const struct sl_reference *reference, enum sl_reference_kind kind,
                       int index);

/* Bytes, as STREAM counts them (no write-allocation), or flops of one run by `threads` threads. */
double sl_reference_amount(const struct sl_reference *reference, enum sl_reference_kind kind,
                           int threads);

/* One such measurement, and the function that runs it as a contestant (bench_measure.h). */
struct sl_reference_measure {
    const struct sl_reference *reference;
    enum sl_reference_kind kind;
    int threads;
    int64_t times; /* of the run at hand */
};
double sl_reference_run(void *measure, int64_t times);

/* Fills a matrix with small numbers; `seed` tells parts of one matrix apart. */
void sl_reference_fill(float *a, int64_t count, int64_t seed);

#endif
