/* Sparse products on a GPU: our kernel (codelets/spmm_cuda.cu), and cuSPARSE's default, row and
 * deterministic algorithms. Measures the GPU's bandwidth, too. */
#include <stdlib.h>

#include "bench/gpu.h"
#include "bench/spmm.h"
#include "codelets/epilogue.h"
#include "codelets/spmm.h"
#include "codelets/spmm_cusparse.h"
#include "core/error.h"
#include "core/memory.h"

struct state {
    const struct sl_spmm_problem *problem;
    void *tile, *h, *z, *sum;     /* on the device */
    bool finishes;                /* values are 1, and a hidden layer's epilogue follows the sums */
    void *factor, *vertex, *bias; // (vertices), (vertices), (width), on the device
    float *row;                   // (ld), on the host: the row asked for last
    bool narrow;
    struct sl_sparse_shape shape;
    struct sl_bench_gpu_clock clock;
    struct sl_cusparse *cusparse; /* NULL: our kernel */
};

static enum sl_type type_of(const struct state *s)
{
    return s->narrow ? SL_BFLOAT16 : SL_FLOAT32;
}

static int upload_dense(struct state *s)
{
    const struct sl_spmm_problem *p = s->problem;
    const int64_t count = p->vertices * p->ld;
    int code = sl_bench_gpu_upload_floats(&s->h, p->h, count, type_of(s));
    if (!code)
        code = sl_bench_gpu_allocate(&s->z, (size_t)count * sl_type_size(type_of(s)));
    if (!code && s->narrow)
        code = sl_bench_gpu_allocate(&s->sum, (size_t)count * sizeof(float));
    return code;
}

static int create_state(void **out, const struct sl_spmm_problem *problem, bool narrow)
{
    struct state *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    s->problem = problem;
    s->narrow = narrow;
    s->row = malloc((size_t)problem->ld * sizeof *s->row);
    int code = s->row ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a row");
    if (!code)
        code = sl_bench_gpu_create_clock(&s->clock);
    return code ? code : upload_dense(s);
}

static const float *row(void *context, int64_t r)
{
    struct state *s = context;
    const int64_t ld = s->problem->ld;
    sl_bench_gpu_download_floats(s->row, s->z, r * ld, ld, type_of(s));
    return s->row;
}

static void destroy(void *context)
{
    struct state *s = context;
    void *const memory[] = {s->tile, s->h, s->z, s->sum, s->factor, s->vertex, s->bias};
    if (s->cusparse)
        sl_cusparse_destroy(s->cusparse);
    for (size_t m = 0; m < sizeof memory / sizeof *memory; m++)
        cudaFree(memory[m]);
    sl_bench_gpu_destroy_clock(&s->clock);
    free(s->row);
    free(s);
}

/* ---- The packed tile, as training has it ---- */

/* Upload the same epilogue as spmm_kernel.c has. */
static int upload_epilogue(struct state *s)
{
    const struct sl_spmm_problem *p = s->problem;
    float *factor = malloc((size_t)p->vertices * sizeof *factor);
    uint32_t *vertex = malloc((size_t)p->vertices * sizeof *vertex);
    float *bias = calloc((size_t)p->width, sizeof *bias);
    int code = factor && vertex && bias
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for the scales of %lld rows",
                              (long long)p->vertices);
    for (int64_t v = 0; !code && v < p->vertices; v++) {
        factor[v] = 0.5f;
        vertex[v] = (uint32_t)v;
    }
    if (!code)
        code = sl_bench_gpu_upload(&s->factor, factor, (size_t)p->vertices * sizeof *factor);
    if (!code)
        code = sl_bench_gpu_upload(&s->vertex, vertex, (size_t)p->vertices * sizeof *vertex);
    if (!code)
        code = sl_bench_gpu_upload(&s->bias, bias, (size_t)p->width * sizeof *bias);
    free(factor);
    free(vertex);
    free(bias);
    return code;
}

static int create_kernel(void **out, const struct sl_spmm_problem *p, bool narrow, bool finishes)
{
    int code = create_state(out, p, narrow);
    struct state *s = *out;
    if (code)
        return code;
    s->finishes = finishes;
    if (finishes)
        code = upload_epilogue(s);
    if (code)
        return code;
    s->shape = (struct sl_sparse_shape){.rows = p->vertices,
                                        .cols = p->vertices,
                                        .nnz = p->nnz,
                                        .block_cols = p->vertices,
                                        .has_values = !finishes};
    const size_t bytes = sl_sparse_bytes(&s->shape);
    void *packed = sl_memory_alloc(bytes);
    if (!packed)
        return SL_ERR_SYSTEM;
    sl_spmm_pack(p, 0, &s->shape, packed);
    code = sl_bench_gpu_upload(&s->tile, packed, bytes);
    sl_memory_free(packed, bytes);
    return code;
}

static int create_float(void **out, const struct sl_spmm_problem *problem)
{
    return create_kernel(out, problem, false, false);
}

static int create_finished(void **out, const struct sl_spmm_problem *problem)
{
    return create_kernel(out, problem, false, true);
}

static int create_narrow(void **out, const struct sl_spmm_problem *problem)
{
    return create_kernel(out, problem, true, false);
}

static double run_spmm_cuda(void *context, int64_t times)
{
    struct state *s = context;
    const struct sl_spmm_problem *p = s->problem;
    const enum sl_type type = type_of(s);
    const struct sl_cuda_rows h = {sl_rows_of_type(s->h, p->ld, type), p->vertices};
    const struct sl_cuda_part part = {
        .a = sl_sparse_view(s->tile, &s->shape), .nnz = p->nnz, .tiles = 1, .h = &h};
    const struct sl_rows z = sl_rows_of_type(s->z, p->ld, type);
    const struct sl_epilogue epilogue = {
        .scale = 1.0f,
        .before = s->factor,
        .bias = s->bias,
        .relu = true,
        .drop = sl_dropout_make(0.5, sl_rng_key(1, SL_RNG_DROPOUT, 1, 1)),
        .vertex = s->vertex,
        .after = s->factor,
    };
    const struct sl_epilogue *after = s->finishes ? &epilogue : NULL;
    const struct sl_rows sum = sl_float_rows(s->sum, p->ld);
    const int64_t key = 0;
    sl_bench_gpu_start(&s->clock);
    for (int64_t t = 0; t < times; t++)
        if (s->cusparse)
            sl_cusparse_spmm(s->cusparse, 1, &part, &key, p->width, false, after, &z);
        else
            sl_cuda_spmm(1, &part, p->width, false, after, &sum, &z, (struct sl_cuda_queue){0});
    return sl_bench_gpu_seconds(&s->clock);
}

/* ---- cuSPARSE ---- */

static int create_cusparse(void **out, const struct sl_spmm_problem *problem,
                           enum sl_cusparse_algorithm algorithm, bool finishes)
{
    const int code = create_kernel(out, problem, false, finishes);
    if (!code)
        ((struct state *)*out)->cusparse =
            sl_cusparse_create((struct sl_cuda_queue){0}, algorithm, problem->nnz);
    return code;
}

static int create_default(void **out, const struct sl_spmm_problem *problem)
{
    return create_cusparse(out, problem, SL_CUSPARSE_DEFAULT, false);
}

static int create_for_rows(void **out, const struct sl_spmm_problem *problem)
{
    return create_cusparse(out, problem, SL_CUSPARSE_ALG2, false);
}

static int create_repeatable(void **out, const struct sl_spmm_problem *problem)
{
    return create_cusparse(out, problem, SL_CUSPARSE_ALG3, false);
}

static int create_finished_cusparse(void **out, const struct sl_spmm_problem *problem)
{
    return create_cusparse(out, problem, SL_CUSPARSE_ALG3, true);
}

const struct sl_spmm_rival sl_spmm_cuda = {
    .name = "starling",
    .what = "the kernel of training on the GPU",
    .is_there = sl_bench_gpu_is_there,
    .create = create_float,
    .run = run_spmm_cuda,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cuda_bf16 = {
    .name = "bf16",
    .what = "the same, dense operands in bfloat16",
    .error = 0x1p-7,
    .is_there = sl_bench_gpu_is_there,
    .create = create_narrow,
    .run = run_spmm_cuda,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cusparse = {
    .name = "cusparse",
    .what =
        "cusparseSpMM of CSR with 32-bit indices, rows of dense operands, its default algorithm",
    .is_there = sl_bench_gpu_is_there,
    .create = create_default,
    .run = run_spmm_cuda,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cusparse_rows = {
    .name = "cusparse-alg2",
    .what = "the same, CUSPARSE_SPMM_CSR_ALG2, which is for rows of dense operands",
    .is_there = sl_bench_gpu_is_there,
    .create = create_for_rows,
    .run = run_spmm_cuda,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cusparse_repeatable = {
    .name = "cusparse-alg3",
    .what = "the same, CUSPARSE_SPMM_CSR_ALG3, whose results are the same in every run, but for "
            "long rows",
    .is_there = sl_bench_gpu_is_there,
    .create = create_repeatable,
    .run = run_spmm_cuda,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cuda_finished = {
    .name = "finished",
    .what = "starling without values, then scale, bias, relu, dropout, scale: a hidden layer",
    .other_result = true,
    .is_there = sl_bench_gpu_is_there,
    .create = create_finished,
    .run = run_spmm_cuda,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cusparse_finished = {
    .name = "finished-alg3",
    .what = "the same of cusparse-alg3, whose values are ones",
    .other_result = true,
    .is_there = sl_bench_gpu_is_there,
    .create = create_finished_cusparse,
    .run = run_spmm_cuda,
    .row = row,
    .destroy = destroy,
};

/* ---- Bandwidth ---- */

enum { TRIAD_FLOATS = 1 << 28 }; /* two arrays of 1 GiB */

struct triad {
    struct sl_bench_gpu_clock clock;
    cublasHandle_t handle;
    void *x, *y;
};

static int create_triad(void **out)
{
    struct triad *t = calloc(1, sizeof *t);
    *out = t;
    if (!t)
        return sl_error(SL_ERR_SYSTEM, "no memory for the bandwidth");
    int code = sl_bench_gpu_create_clock(&t->clock);
    if (!code)
        code = sl_bench_gpu_allocate(&t->x, TRIAD_FLOATS * sizeof(float));
    if (!code)
        code = sl_bench_gpu_allocate(&t->y, TRIAD_FLOATS * sizeof(float));
    if (!code)
        code = sl_bench_gpu_check(cudaMemset(t->x, 0, TRIAD_FLOATS * sizeof(float)));
    if (!code)
        code = sl_bench_gpu_check(cudaMemset(t->y, 0, TRIAD_FLOATS * sizeof(float)));
    return code ? code : sl_bench_gpu_create_blas(&t->handle);
}

/* Run y = a·x + y: two streams in, one out. */
static double run_triad(void *context, int64_t times)
{
    struct triad *t = context;
    const float a = 0.5f;
    sl_bench_gpu_start(&t->clock);
    for (int64_t i = 0; i < times; i++)
        if (cublasSaxpy(t->handle, TRIAD_FLOATS, &a, t->x, 1, t->y, 1) != CUBLAS_STATUS_SUCCESS)
            sl_fatal("cublasSaxpy fails");
    return sl_bench_gpu_seconds(&t->clock);
}

static void destroy_triad(void *context)
{
    struct triad *t = context;
    if (t->handle)
        cublasDestroy(t->handle);
    sl_bench_gpu_destroy_clock(&t->clock);
    cudaFree(t->x);
    cudaFree(t->y);
    free(t);
}

const struct sl_spmm_bandwidth sl_spmm_gpu_bandwidth = {
    .bytes = 3.0 * TRIAD_FLOATS * sizeof(float),
    .create = create_triad,
    .run = run_triad,
    .destroy = destroy_triad,
};
