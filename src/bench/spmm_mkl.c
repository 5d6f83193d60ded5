/* Intel MKL's inspector-executor sparse BLAS, without MKL's threads: each of our threads multiplies
 * its own rows. MKL is loaded and not linked, because its CBLAS would replace the CBLAS of the
 * build. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <mkl_spblas.h>

#include "bench/spmm.h"
#include "config.h"
#include "core/error.h"

struct share {
    sparse_matrix_t matrix;
    MKL_INT *row_ptr; // (rows + 1)
    bool failed;
};

struct state {
    const struct sl_spmm_problem *problem;
    struct share *shares; // (threads)
    int64_t times;
};

static struct {
    __typeof__(mkl_sparse_s_create_csr) *create_csr;
    __typeof__(mkl_sparse_set_mm_hint) *set_mm_hint;
    __typeof__(mkl_sparse_optimize) *optimize;
    __typeof__(mkl_sparse_s_mm) *s_mm;
    __typeof__(mkl_sparse_destroy) *destroy;
    int (*set_threading_layer)(int layer);
} mkl;

static void *load(void)
{
    static const char *const names[] = {SL_MKL_FOLDER "/libmkl_rt.so.3",
                                        SL_MKL_FOLDER "/libmkl_rt.so.2",
                                        SL_MKL_FOLDER "/libmkl_rt.so",
                                        "libmkl_rt.so.3",
                                        "libmkl_rt.so.2",
                                        "libmkl_rt.so"};
    void *library = NULL;
    for (size_t n = 0; n < sizeof names / sizeof *names && !library; n++)
        library = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool is_there(void)
{
    enum { SEQUENTIAL = 1 };
    void *library = load();
    if (!library)
        return false;
    *(void **)&mkl.create_csr = dlsym(library, "mkl_sparse_s_create_csr");
    *(void **)&mkl.set_mm_hint = dlsym(library, "mkl_sparse_set_mm_hint");
    *(void **)&mkl.optimize = dlsym(library, "mkl_sparse_optimize");
    *(void **)&mkl.s_mm = dlsym(library, "mkl_sparse_s_mm");
    *(void **)&mkl.destroy = dlsym(library, "mkl_sparse_destroy");
    *(void **)&mkl.set_threading_layer = dlsym(library, "MKL_Set_Threading_Layer");
    if (!mkl.create_csr || !mkl.set_mm_hint || !mkl.optimize || !mkl.s_mm || !mkl.destroy ||
        !mkl.set_threading_layer)
        return false;
    mkl.set_threading_layer(SEQUENTIAL);
    return true;
}

static const struct matrix_descr general = {.type = SPARSE_MATRIX_TYPE_GENERAL};

static void work(void *context, int index, int threads)
{
    const struct state *state = context;
    const struct sl_spmm_problem *p = state->problem;
    struct share *share = &state->shares[index];
    (void)threads;
    for (int64_t t = 0; t < state->times; t++)
        if (mkl.s_mm(SPARSE_OPERATION_NON_TRANSPOSE, 1.0f, share->matrix, general,
                     SPARSE_LAYOUT_ROW_MAJOR, p->h, (MKL_INT)p->width, (MKL_INT)p->ld, 0.0f,
                     p->z + p->cut[index] * p->ld, (MKL_INT)p->ld) != SPARSE_STATUS_SUCCESS)
            share->failed = true;
}

static double run_spmm_mkl(void *context, int64_t times)
{
    struct state *state = context;
    state->times = times;
    const double seconds = sl_team_run(state->problem->team, state->problem->threads, work, state);
    for (int t = 0; t < state->problem->threads; t++)
        if (state->shares[t].failed)
            sl_fatal("mkl_sparse_s_mm fails");
    return seconds;
}

static void inspect(void *context, int index, int threads)
{
    const struct state *state = context;
    const struct sl_spmm_problem *p = state->problem;
    struct share *share = &state->shares[index];
    (void)threads;
    const int64_t first = p->cut[index], rows = p->cut[index + 1] - first;
    const int64_t entry = p->row_ptr[first];
    share->row_ptr = malloc((size_t)(rows + 1) * sizeof *share->row_ptr);
    share->failed = !share->row_ptr;
    for (int64_t r = 0; share->row_ptr && r <= rows; r++)
        share->row_ptr[r] = (MKL_INT)(p->row_ptr[first + r] - entry);
    if (share->failed ||
        mkl.create_csr(&share->matrix, SPARSE_INDEX_BASE_ZERO, (MKL_INT)rows, (MKL_INT)p->vertices,
                       share->row_ptr, share->row_ptr + 1, (MKL_INT *)(p->col + entry),
                       (float *)(p->value + entry)) != SPARSE_STATUS_SUCCESS) {
        share->failed = true;
        return;
    }
    enum { MANY = 1000 }; /* calls that an optimisation may pay for */
    mkl.set_mm_hint(share->matrix, SPARSE_OPERATION_NON_TRANSPOSE, general, SPARSE_LAYOUT_ROW_MAJOR,
                    (MKL_INT)p->width, MANY);
    mkl.optimize(share->matrix);
}

static int create_spmm_mkl(void **out, const struct sl_spmm_problem *problem)
{
    struct state *state = calloc(1, sizeof *state);
    *out = state;
    if (!state)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    state->problem = problem;
    state->shares = calloc((size_t)problem->threads, sizeof *state->shares);
    if (!state->shares)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    sl_team_run(problem->team, problem->threads, inspect, state);
    for (int t = 0; t < problem->threads; t++)
        if (state->shares[t].failed)
            return sl_error(SL_ERR_SYSTEM, "MKL takes no matrix of %lld entries",
                            (long long)problem->nnz);
    return 0;
}

static const float *row(void *context, int64_t r)
{
    const struct state *state = context;
    return state->problem->z + r * state->problem->ld;
}

static void destroy(void *context)
{
    struct state *state = context;
    for (int t = 0; state->shares && t < state->problem->threads; t++) {
        if (state->shares[t].matrix)
            mkl.destroy(state->shares[t].matrix);
        free(state->shares[t].row_ptr);
    }
    free(state->shares);
    free(state);
}

const struct sl_spmm_rival sl_spmm_mkl = {
    .name = "mkl",
    .what = "MKL, mkl_sparse_s_mm after mkl_sparse_optimize, rows of each thread",
    .is_there = is_there,
    .create = create_spmm_mkl,
    .run = run_spmm_mkl,
    .row = row,
    .destroy = destroy,
};
