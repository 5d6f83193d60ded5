/* Dense products on a GPU: codelets/gemm_cuda.cu as training calls it without an epilogue, in the
 * three precisions of `train --precision`. */
#include "bench/gemm.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bench/gpu.h"
#include "codelets/gemm.h"
#include "core/error.h"
#include "core/rng.h"

/* The precisions. The first one is the base of comparisons. */
static const struct precision {
    const char *name;
    enum sl_type type; /* type of A, and of C, unless C is a gradient of weights */
    bool tf32;
    double error; /* largest allowed error, over the sum of the terms' absolute values: rounding of
                     operands and C, doubled for long sums */
} precisions[] = {
    {"starling", SL_FLOAT32, false, 1e-4},
    {"tf32", SL_FLOAT32, true, 0x1p-8},
    {"bf16", SL_BFLOAT16, false, 0x1p-6},
};

enum { PRECISIONS = sizeof precisions / sizeof *precisions };

struct product {
    const struct sl_gemm_shape *shape;
    cublasHandle_t handle;
    struct sl_bench_gpu_clock clock;
    void *a, *half_a, *b, *c, *workspace; /* on the device */
};

struct task {
    const struct product *product;
    const struct precision *precision;
};

/* Fill with fractions of all bits and of one sign. Every precision then has something to round, and
 * no sum is small beside its terms' errors. */
static void fill(float *matrix, size_t bytes, uint32_t stream)
{
    const uint64_t key = sl_rng_key(1, SL_RNG_GENERATE, 0, stream);
    const int64_t count = (int64_t)(bytes / sizeof *matrix);
    for (int64_t i = 0; i < count; i++)
        matrix[i] = 0.5f + (float)sl_rng_uniform(key, (uint32_t)i, 0);
}

static int create_gemm_cuda(const struct sl_gemm_shape *s, struct product *p)
{
    const int64_t a_count = (int64_t)(s->a_bytes / sizeof(float));
    fill(s->a, s->a_bytes, 0);
    fill(s->b, s->b_bytes, 1);
    *p = (struct product){.shape = s};
    int code = sl_bench_gpu_create_blas(&p->handle);
    if (!code)
        code = sl_bench_gpu_create_clock(&p->clock);
    if (!code)
        code = sl_bench_gpu_upload_floats(&p->a, s->a, a_count, SL_FLOAT32);
    if (!code)
        code = sl_bench_gpu_upload_floats(&p->half_a, s->a, a_count, SL_BFLOAT16);
    if (!code)
        code = sl_bench_gpu_upload(&p->b, s->b, s->b_bytes);
    if (!code)
        code = sl_bench_gpu_allocate(&p->c, s->c_bytes);
    return code ? code : sl_bench_gpu_allocate(&p->workspace, SL_RUNTIME_WORKSPACE);
}

static void destroy(struct product *p)
{
    void *const memory[] = {p->a, p->half_a, p->b, p->c, p->workspace};
    for (size_t m = 0; m < sizeof memory / sizeof *memory; m++)
        cudaFree(memory[m]);
    sl_bench_gpu_destroy_clock(&p->clock);
    if (p->handle)
        cublasDestroy(p->handle);
}

static enum sl_type type_of_c(const struct task *task)
{
    return task->product->shape->cut_sum ? SL_FLOAT32 : task->precision->type;
}

static double run_gemm_cuda(void *context, int64_t times)
{
    const struct task *task = context;
    const struct product *p = task->product;
    const struct sl_gemm_shape *s = p->shape;
    const enum sl_type type = task->precision->type;
    const struct sl_gemm gemm = {
        .transpose_a = s->transpose_a,
        .transpose_b = s->transpose_b,
        .tf32 = task->precision->tf32,
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .a = sl_rows_of_type(type == SL_BFLOAT16 ? p->half_a : p->a, s->lda, type),
        .b = sl_float_rows(p->b, s->ldb),
        .c = sl_rows_of_type(p->c, s->ldc, type_of_c(task)),
    };
    sl_bench_gpu_start(&p->clock);
    for (int64_t t = 0; t < times; t++)
        sl_cuda_gemm(&gemm, (struct sl_cuda_queue){NULL, p->handle, p->workspace});
    return sl_bench_gpu_seconds(&p->clock);
}

/* ---- Whether it is right ---- */

/* Compute row r (n) of the product in double. All terms are positive. */
static void multiply_row(const struct sl_gemm_shape *s, int64_t r, double *sum)
{
    for (int64_t j = 0; j < s->n; j++)
        sum[j] = 0.0;
    for (int64_t i = 0; i < s->k; i++) {
        const double a = s->a[s->transpose_a ? i * s->lda + r : r * s->lda + i];
        for (int64_t j = 0; j < s->n; j++)
            sum[j] += a * s->b[s->transpose_b ? j * s->ldb + i : i * s->ldb + j];
    }
}

static int compare_row(const struct task *task, int64_t r, double *sum)
{
    const struct sl_gemm_shape *s = task->product->shape;
    multiply_row(s, r, sum);
    sl_bench_gpu_download_floats(s->c, task->product->c, r * s->ldc, s->n, type_of_c(task));
    for (int64_t j = 0; j < s->n; j++)
        if (!(fabs(s->c[j] - sum[j]) <= task->precision->error * sum[j]))
            return sl_error(SL_ERR_SYSTEM,
                            "%s, %s computes %g instead of %g in row %" PRId64 ", column %" PRId64,
                            s->name, task->precision->name, s->c[j], sum[j], r, j);
    return 0;
}

/* Check the first, the last and some rows between, since the figures of a wrong product mean
 * nothing. */
static int verify(struct task *task)
{
    const struct sl_gemm_shape *s = task->product->shape;
    const int64_t rows = s->m < 7 ? s->m : 7;
    double *sum = malloc((size_t)s->n * sizeof *sum);
    int code = sum ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a row of %s", s->name);
    if (!code)
        code = sl_bench_gpu_check(cudaMemset(task->product->c, 0xFF, s->c_bytes)); /* NaN */
    if (!code)
        run_gemm_cuda(task, 1);
    for (int64_t i = 0; !code && i < rows; i++)
        code = compare_row(task, rows > 1 ? (s->m - 1) * i / (rows - 1) : 0, sum);
    free(sum);
    return code;
}

/* ---- What comes out ---- */

static int measure(const struct sl_gemm_shape *shape, const struct sl_bench_common *common,
                   json_t *rows)
{
    const int repetitions = (int)common->repetitions;
    struct product product;
    struct task tasks[PRECISIONS];
    struct sl_contestant contestants[PRECISIONS] = {0};
    int code = create_gemm_cuda(shape, &product);
    for (int t = 0; !code && t < PRECISIONS; t++) {
        tasks[t] = (struct task){&product, &precisions[t]};
        contestants[t] = (struct sl_contestant){.run = run_gemm_cuda, .context = &tasks[t]};
        code = verify(&tasks[t]);
    }
    if (!code)
        code = sl_bench_alternate(contestants, PRECISIONS, repetitions, !common->quiet);
    for (int t = 0; !code && t < PRECISIONS; t++) {
        const double *seconds = contestants[t].seconds;
        json_t *row = sl_gemm_row(shape, seconds, repetitions);
        json_object_set_new(row, "contestant", json_string(precisions[t].name));
        sl_bench_set_spread(row, "times_starling",
                            sl_spread_of_ratio(seconds, contestants[0].seconds, repetitions));
        json_array_append_new(rows, row);
    }
    sl_bench_free(contestants, PRECISIONS);
    destroy(&product);
    return code;
}

const struct sl_gemm_gpu sl_gemm_cuda = {
    .is_there = sl_bench_gpu_is_there,
    .measure = measure,
};
