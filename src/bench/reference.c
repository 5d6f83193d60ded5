#include "bench/reference.h"

#include <stdlib.h>
#include <string.h>

#include "bench/loops.h"
#include "codelets/gemm.h"
#include "core/blas.h"
#include "core/error.h"
#include "core/machine.h"
#include "core/memory.h"
#include "core/runtime.h"

struct sl_reference_operands {
    _Alignas(64) float *a, *b, *c; // (gemm_size, gemm_size)
    float sink;                    /* receives sums, so that loops are not optimised away */
};

size_t sl_reference_default_bytes(void)
{
    enum { TIMES_CACHE = 16, PART_OF_MEMORY = 16 };
    struct sl_machine machine;
    int64_t cache = 0, bytes = INT64_C(256) << 20;
    if (sl_machine_probe(&machine))
        return (size_t)bytes;
    for (int c = 0; c < machine.cache_count; c++) {
        const int64_t all = machine.caches[c].bytes * machine.caches[c].count;
        cache = all > cache ? all : cache;
    }
    bytes = TIMES_CACHE * cache > bytes ? TIMES_CACHE * cache : bytes;
    return (size_t)(bytes < machine.memory_bytes / PART_OF_MEMORY
                        ? bytes
                        : machine.memory_bytes / PART_OF_MEMORY);
}

void sl_reference_fill(float *a, int64_t count, int64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        a[i] = 1.0f + (float)((i + seed) % 7) * 0.125f;
}

static int64_t share_of(const struct sl_reference *reference)
{
    return (int64_t)(reference->bytes / sizeof(float)) / reference->threads / 64 * 64;
}

static size_t matrix_bytes(const struct sl_reference *reference)
{
    return (size_t)(reference->gemm_size * reference->gemm_size) * sizeof(float);
}

static float *new_matrix(const struct sl_reference *reference)
{
    float *matrix = sl_memory_alloc(matrix_bytes(reference));
    if (matrix)
        sl_reference_fill(matrix, reference->gemm_size * reference->gemm_size, 0);
    return matrix;
}

/* Fill a thread's share. The first touch of a page decides on which NUMA node the page lies. */
static void touch(void *context, int index, int threads)
{
    struct sl_reference *reference = context;
    (void)threads;
    const int64_t share = share_of(reference);
    for (int a = 0; a < 3; a++)
        sl_reference_fill(reference->array[a] + index * share, share, index);
    struct sl_reference_operands *operands = &reference->operands[index];
    operands->a = new_matrix(reference);
    operands->b = new_matrix(reference);
    operands->c = new_matrix(reference);
}

int sl_reference_create(struct sl_reference *reference, struct sl_team *team, size_t bytes,
                        int64_t gemm_size)
{
    const int threads = sl_team_size(team);
    *reference = (struct sl_reference){
        .team = team, .threads = threads, .bytes = bytes, .gemm_size = gemm_size};
    reference->operands = aligned_alloc(64, (size_t)threads * sizeof *reference->operands);
    if (reference->operands)
        memset(reference->operands, 0, (size_t)threads * sizeof *reference->operands);
    for (int a = 0; a < 3; a++)
        reference->array[a] = sl_memory_alloc(bytes);
    if (!reference->operands || !reference->array[0] || !reference->array[1] ||
        !reference->array[2])
        return sl_error(SL_ERR_SYSTEM, "no memory for arrays of %zu MiB", bytes >> 20);
    const int code = sl_blas_start(threads);
    if (code)
        return code;
    sl_team_run(team, threads, touch, reference);
    for (int t = 0; t < threads; t++)
        if (!reference->operands[t].a || !reference->operands[t].b || !reference->operands[t].c)
            return sl_error(SL_ERR_SYSTEM, "no memory for the products of %d threads", threads);
    return 0;
}

void sl_reference_destroy(struct sl_reference *reference)
{
    for (int t = 0; reference->operands && t < reference->threads; t++) {
        sl_memory_free(reference->operands[t].a, matrix_bytes(reference));
        sl_memory_free(reference->operands[t].b, matrix_bytes(reference));
        sl_memory_free(reference->operands[t].c, matrix_bytes(reference));
    }
    free(reference->operands);
    for (int a = 0; a < 3; a++)
        sl_memory_free(reference->array[a], reference->bytes);
    *reference = (struct sl_reference){0};
}

/* ---- The work ---- */

void sl_reference_work(const struct sl_reference *reference, enum sl_reference_kind kind, int index)
{
    struct sl_reference_operands *o = &reference->operands[index];
    const int64_t share = share_of(reference), first = index * share, n = reference->gemm_size;
    float *const *array = reference->array;
    const struct sl_rows a = sl_float_rows(o->a, n), b = sl_float_rows(o->b, n),
                         c = sl_float_rows(o->c, n);
    switch (kind) {
    case SL_REFERENCE_READ:
        sl_loop_sum(share, array[0] + first, &o->sink);
        break;
    case SL_REFERENCE_COPY:
        memcpy(array[1] + first, array[0] + first, (size_t)share * sizeof(float));
        break;
    case SL_REFERENCE_TRIAD:
        sl_loop_triad(share, 0.5f, array[0] + first, array[1] + first, array[2] + first);
        break;
    case SL_REFERENCE_GEMM:
        sl_kernel_gemm(&(struct sl_gemm){.m = n, .n = n, .k = n, .a = a, .b = b, .c = c});
        break;
    }
}

double sl_reference_amount(const struct sl_reference *reference, enum sl_reference_kind kind,
                           int threads)
{
    const double bytes = (double)share_of(reference) * sizeof(float) * threads;
    const double n = (double)reference->gemm_size;
    switch (kind) {
    case SL_REFERENCE_READ:
        return bytes;
    case SL_REFERENCE_COPY:
        return 2.0 * bytes;
    case SL_REFERENCE_TRIAD:
        return 3.0 * bytes;
    case SL_REFERENCE_GEMM:
        break;
    }
    return 2.0 * n * n * n * threads;
}

static void work(void *context, int index, int threads)
{
    const struct sl_reference_measure *measure = context;
    (void)threads;
    for (int64_t t = 0; t < measure->times; t++)
        sl_reference_work(measure->reference, measure->kind, index);
}

double sl_reference_run(void *context, int64_t times)
{
    struct sl_reference_measure *measure = context;
    measure->times = times;
    return sl_team_run(measure->reference->team, measure->threads, work, measure);
}
