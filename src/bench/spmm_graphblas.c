/* SuiteSparse:GraphBLAS with its own OpenMP threads, as many as ours: Z = A·H, and Z += A·H into a
 * full matrix, which it does faster. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <GraphBLAS.h>

#include "bench/spmm.h"
#include "core/error.h"
#include "core/runtime.h"

struct state {
    const struct sl_spmm_problem *problem;
    GrB_Matrix a, h, z;
    bool add;
    float *row; // (width): the row asked for last
};

static int refuse(const char *what)
{
    return sl_error(SL_ERR_SYSTEM, "GraphBLAS: %s fails", what);
}

static int start(int threads)
{
    static bool started;
    if (!started && GrB_init(GrB_BLOCKING) != GrB_SUCCESS)
        return refuse("GrB_init");
    started = true;
    GxB_set(GxB_NTHREADS, threads);
    GxB_set(GxB_FORMAT, GxB_BY_ROW);
    return 0;
}

/* Import A. GraphBLAS wants 64-bit indices, and copies the arrays. */
static int import_sparse(struct state *state)
{
    const struct sl_spmm_problem *p = state->problem;
    GrB_Index *row_ptr = malloc((size_t)(p->vertices + 1) * sizeof *row_ptr);
    GrB_Index *col = malloc((size_t)p->nnz * sizeof *col);
    int code = 0;
    for (int64_t r = 0; row_ptr && r <= p->vertices; r++)
        row_ptr[r] = (GrB_Index)p->row_ptr[r];
    for (int64_t e = 0; col && e < p->nnz; e++)
        col[e] = p->col[e];
    if (!row_ptr || !col ||
        GrB_Matrix_import_FP32(&state->a, GrB_FP32, (GrB_Index)p->vertices, (GrB_Index)p->vertices,
                               row_ptr, col, p->value, (GrB_Index)(p->vertices + 1),
                               (GrB_Index)p->nnz, (GrB_Index)p->nnz, GrB_CSR_FORMAT) != GrB_SUCCESS)
        code = refuse("importing A");
    free(row_ptr);
    free(col);
    return code;
}

/* Make a full matrix from the rows of `from`, or of zeros. */
static int make_full(const struct sl_spmm_problem *p, const float *from, GrB_Matrix *matrix)
{
    const size_t bytes = (size_t)(p->vertices * p->width) * sizeof(float);
    float *values = calloc(1, bytes);
    for (int64_t r = 0; values && from && r < p->vertices; r++)
        for (int64_t j = 0; j < p->width; j++)
            values[r * p->width + j] = from[r * p->ld + j];
    if (!values || GrB_Matrix_new(matrix, GrB_FP32, (GrB_Index)p->vertices, (GrB_Index)p->width) !=
                       GrB_SUCCESS)
        return free(values), refuse("making a matrix");
    /* GraphBLAS takes the array over. */
    if (GxB_Matrix_pack_FullR(*matrix, (void **)&values, bytes, false, NULL) != GrB_SUCCESS)
        return free(values), refuse("filling a matrix");
    return 0;
}

static int create_any(void **out, const struct sl_spmm_problem *problem, bool add)
{
    struct state *state = calloc(1, sizeof *state);
    *out = state;
    if (!state)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    state->problem = problem;
    state->add = add;
    state->row = calloc((size_t)problem->width, sizeof *state->row);
    int code =
        state->row ? start(problem->threads) : sl_error(SL_ERR_SYSTEM, "no memory for a row");
    if (!code)
        code = import_sparse(state);
    if (!code)
        code = make_full(problem, problem->h, &state->h);
    if (!code)
        code = make_full(problem, NULL, &state->z);
    return code;
}

static int create_spmm_graphblas(void **state, const struct sl_spmm_problem *problem)
{
    return create_any(state, problem, false);
}

static int create_add(void **state, const struct sl_spmm_problem *problem)
{
    return create_any(state, problem, true);
}

static double run_spmm_graphblas(void *context, int64_t times)
{
    struct state *state = context;
    const double start_seconds = sl_runtime_seconds();
    for (int64_t t = 0; t < times; t++)
        if (GrB_mxm(state->z, NULL, state->add ? GrB_PLUS_FP32 : NULL, GrB_PLUS_TIMES_SEMIRING_FP32,
                    state->a, state->h, NULL) != GrB_SUCCESS ||
            GrB_Matrix_wait(state->z, GrB_MATERIALIZE) != GrB_SUCCESS)
            sl_fatal("GrB_mxm fails");
    const double seconds = sl_runtime_seconds() - start_seconds;
    /* GraphBLAS's threads spin for some milliseconds before they sleep. Keep that out of the next
     * contestant's time. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return seconds;
}

static const float *row(void *context, int64_t r)
{
    const struct state *state = context;
    for (int64_t j = 0; j < state->problem->width; j++) {
        float value = 0.0f; /* a row without edges has no entry */
        if (GrB_Matrix_extractElement_FP32(&value, state->z, (GrB_Index)r, (GrB_Index)j) < 0)
            value = NAN;
        state->row[j] = value;
    }
    return state->row;
}

static void destroy(void *context)
{
    struct state *state = context;
    GrB_Matrix_free(&state->a);
    GrB_Matrix_free(&state->h);
    GrB_Matrix_free(&state->z);
    free(state->row);
    free(state);
}

const struct sl_spmm_rival sl_spmm_graphblas = {
    .name = "graphblas",
    .what = "SuiteSparse:GraphBLAS, GrB_mxm",
    .create = create_spmm_graphblas,
    .run = run_spmm_graphblas,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_graphblas_add = {
    .name = "graphblas-add",
    .what = "SuiteSparse:GraphBLAS, GrB_mxm that adds to a full matrix",
    .create = create_add,
    .run = run_spmm_graphblas,
    .row = row,
    .destroy = destroy,
};
