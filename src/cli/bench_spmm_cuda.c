/* The sparse product on a GPU: our kernel (codelets/spmm_cuda.cu), cuSPARSE's default and its
 * deterministic algorithm, and the bandwidth to hold them against. */
#include <stdlib.h>
#include <string.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "cli/bench_spmm.h"
#include "codelets/bfloat16.h"
#include "codelets/kernels_cuda.h"
#include "codelets/spmm_cusparse.h"
#include "core/error.h"
#include "core/memory.h"

struct state {
    const struct sl_spmm_problem *problem;
    void *tile, *h, *z, *sum; /* on the device */
    float *row;               // (ld), on the host: the one asked for last
    bool narrow;
    struct sl_sparse_shape shape;
    cudaEvent_t begin, end;
    struct sl_cusparse *cusparse; /* NULL: our kernel */
};

static bool is_there(void)
{
    int devices = 0;
    return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

/* ---- Device memory ---- */

static int check(cudaError_t code)
{
    return code == cudaSuccess ? 0 : sl_error(SL_ERR_SYSTEM, "CUDA: %s", cudaGetErrorString(code));
}

static int allocate(void **device, size_t bytes)
{
    return check(cudaMalloc(device, bytes ? bytes : 1));
}

static int upload(void **device, const void *host, size_t bytes)
{
    const int code = allocate(device, bytes);
    return code ? code : check(cudaMemcpy(*device, host, bytes, cudaMemcpyHostToDevice));
}

static size_t dense_bytes(const struct state *s)
{
    return (size_t)(s->problem->vertices * s->problem->ld) *
           sl_type_size(s->narrow ? SL_BFLOAT16 : SL_FLOAT32);
}

/* Seconds from `begin` to what was put on the stream before this. */
static double seconds_since_begin(const struct state *s)
{
    float milliseconds = 0.0f;
    if (cudaEventRecord(s->end, NULL) != cudaSuccess ||
        cudaEventSynchronize(s->end) != cudaSuccess ||
        cudaEventElapsedTime(&milliseconds, s->begin, s->end) != cudaSuccess)
        sl_fatal("CUDA: %s", cudaGetErrorString(cudaGetLastError()));
    return 1e-3 * milliseconds;
}

static int upload_dense(struct state *s)
{
    const struct sl_spmm_problem *p = s->problem;
    const int64_t count = p->vertices * p->ld;
    uint16_t *narrow = s->narrow ? malloc((size_t)count * sizeof *narrow) : NULL;
    int code =
        s->narrow && !narrow ? sl_error(SL_ERR_SYSTEM, "no memory for the dense operand") : 0;
    for (int64_t i = 0; !code && narrow && i < count; i++)
        narrow[i] = sl_narrow(p->h[i]);
    if (!code)
        code = upload(&s->h, narrow ? (const void *)narrow : p->h, dense_bytes(s));
    free(narrow);
    if (!code)
        code = allocate(&s->z, dense_bytes(s));
    if (!code && s->narrow)
        code = allocate(&s->sum, (size_t)count * sizeof(float));
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
        code = check(cudaEventCreate(&s->begin));
    if (!code)
        code = check(cudaEventCreate(&s->end));
    return code ? code : upload_dense(s);
}

static const float *row(void *context, int64_t r)
{
    struct state *s = context;
    const size_t size = sl_type_size(s->narrow ? SL_BFLOAT16 : SL_FLOAT32);
    const int64_t ld = s->problem->ld;
    if (cudaMemcpy(s->row, (const char *)s->z + (size_t)(r * ld) * size, (size_t)ld * size,
                   cudaMemcpyDeviceToHost) != cudaSuccess)
        sl_fatal("CUDA: %s", cudaGetErrorString(cudaGetLastError()));
    for (int64_t j = ld - 1; s->narrow && j >= 0; j--) { /* in place, from the end */
        uint16_t half;
        memcpy(&half, (const char *)s->row + (size_t)j * sizeof half, sizeof half);
        s->row[j] = sl_widen(half);
    }
    return s->row;
}

static void destroy(void *context)
{
    struct state *s = context;
    void *const memory[] = {s->tile, s->h, s->z, s->sum};
    if (s->cusparse)
        sl_cusparse_destroy(s->cusparse);
    for (size_t m = 0; m < sizeof memory / sizeof *memory; m++)
        cudaFree(memory[m]);
    if (s->begin)
        cudaEventDestroy(s->begin);
    if (s->end)
        cudaEventDestroy(s->end);
    free(s->row);
    free(s);
}

/* ---- The packed tile, as training has it ---- */

static int create_kernel(void **out, const struct sl_spmm_problem *p, bool narrow)
{
    int code = create_state(out, p, narrow);
    struct state *s = *out;
    if (code)
        return code;
    s->shape = (struct sl_sparse_shape){.rows = p->vertices,
                                        .cols = p->vertices,
                                        .nnz = p->nnz,
                                        .block_cols = p->vertices,
                                        .has_values = true};
    const size_t bytes = sl_sparse_bytes(&s->shape);
    void *packed = sl_memory_alloc(bytes);
    if (!packed)
        return SL_ERR_SYSTEM;
    sl_spmm_pack(p, 0, &s->shape, packed);
    code = upload(&s->tile, packed, bytes);
    sl_memory_free(packed, bytes);
    return code;
}

static int create_float(void **out, const struct sl_spmm_problem *problem)
{
    return create_kernel(out, problem, false);
}

static int create_narrow(void **out, const struct sl_spmm_problem *problem)
{
    return create_kernel(out, problem, true);
}

static double run(void *context, int64_t times)
{
    struct state *s = context;
    const struct sl_spmm_problem *p = s->problem;
    const enum sl_type type = s->narrow ? SL_BFLOAT16 : SL_FLOAT32;
    const struct sl_cuda_rows h = {sl_rows_of_type(s->h, p->ld, type), p->vertices};
    const struct sl_cuda_part part = {
        .a = sl_sparse_view(s->tile, &s->shape), .nnz = p->nnz, .tiles = 1, .h = &h};
    const struct sl_rows z = sl_rows_of_type(s->z, p->ld, type);
    const int64_t key = 0;
    cudaEventRecord(s->begin, NULL);
    for (int64_t t = 0; t < times; t++)
        if (s->cusparse)
            sl_cusparse_spmm(s->cusparse, 1, &part, &key, p->width, false, NULL, &z);
        else
            sl_cuda_spmm(1, &part, p->width, false, NULL, s->sum, p->ld, &z, NULL);
    return seconds_since_begin(s);
}

/* ---- cuSPARSE ---- */

static int create_cusparse(void **out, const struct sl_spmm_problem *problem, bool repeatable)
{
    const int code = create_kernel(out, problem, false);
    if (!code)
        ((struct state *)*out)->cusparse = sl_cusparse_create(NULL, repeatable);
    return code;
}

static int create_default(void **out, const struct sl_spmm_problem *problem)
{
    return create_cusparse(out, problem, false);
}

static int create_repeatable(void **out, const struct sl_spmm_problem *problem)
{
    return create_cusparse(out, problem, true);
}

const struct sl_spmm_rival sl_spmm_cuda = {
    .name = "starling",
    .what = "the kernel of training on the GPU",
    .is_there = is_there,
    .create = create_float,
    .run = run,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cuda_bf16 = {
    .name = "bf16",
    .what = "the same, dense operands in bfloat16",
    .error = 0x1p-7,
    .is_there = is_there,
    .create = create_narrow,
    .run = run,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cusparse = {
    .name = "cusparse",
    .what =
        "cusparseSpMM of CSR with 32-bit indices, rows of dense operands, its default algorithm",
    .is_there = is_there,
    .create = create_default,
    .run = run,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_cusparse_repeatable = {
    .name = "cusparse-alg3",
    .what = "the same, CUSPARSE_SPMM_CSR_ALG3, whose results are the same in every run",
    .is_there = is_there,
    .create = create_repeatable,
    .run = run,
    .row = row,
    .destroy = destroy,
};

/* ---- Bandwidth ---- */

enum { TRIAD_FLOATS = 1 << 28 }; /* 1 GiB each of two */

struct triad {
    struct state events;
    cublasHandle_t handle;
    void *x, *y;
};

static int create_triad(void **out)
{
    struct triad *t = calloc(1, sizeof *t);
    *out = t;
    if (!t)
        return sl_error(SL_ERR_SYSTEM, "no memory for the bandwidth");
    int code = check(cudaEventCreate(&t->events.begin));
    if (!code)
        code = check(cudaEventCreate(&t->events.end));
    if (!code)
        code = allocate(&t->x, TRIAD_FLOATS * sizeof(float));
    if (!code)
        code = allocate(&t->y, TRIAD_FLOATS * sizeof(float));
    if (!code)
        code = check(cudaMemset(t->x, 0, TRIAD_FLOATS * sizeof(float)));
    if (!code)
        code = check(cudaMemset(t->y, 0, TRIAD_FLOATS * sizeof(float)));
    if (!code && cublasCreate(&t->handle) != CUBLAS_STATUS_SUCCESS)
        code = sl_error(SL_ERR_SYSTEM, "cublasCreate fails");
    return code;
}

/* y = a·x + y: two streams in, one out. */
static double run_triad(void *context, int64_t times)
{
    struct triad *t = context;
    const float a = 0.5f;
    cudaEventRecord(t->events.begin, NULL);
    for (int64_t i = 0; i < times; i++)
        if (cublasSaxpy(t->handle, TRIAD_FLOATS, &a, t->x, 1, t->y, 1) != CUBLAS_STATUS_SUCCESS)
            sl_fatal("cublasSaxpy fails");
    return seconds_since_begin(&t->events);
}

static void destroy_triad(void *context)
{
    struct triad *t = context;
    if (t->handle)
        cublasDestroy(t->handle);
    if (t->events.begin)
        cudaEventDestroy(t->events.begin);
    if (t->events.end)
        cudaEventDestroy(t->events.end);
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
