/* Our kernel: each thread has its rows as a tile, the form in which training has them. */
#include <stdlib.h>

#include "cli/bench_spmm.h"
#include "codelets/kernels.h"
#include "core/error.h"
#include "core/memory.h"

struct share {
    struct sl_sparse tile;
    uint32_t *row_ptr; // (rows + 1)
    size_t bytes;      /* of row_ptr */
};

struct state {
    const struct sl_spmm_problem *problem;
    struct share *shares; // (threads)
    int64_t times;
};

/* The one place that knows the kernel's signature. */
static void multiply(const struct sl_spmm_problem *p, const struct share *share, int64_t first)
{
    sl_kernel_spmm(&share->tile, NULL, p->width, p->h, p->ld, false, p->z + first * p->ld, p->ld);
}

static void work(void *context, int index, int threads)
{
    const struct state *state = context;
    (void)threads;
    for (int64_t t = 0; t < state->times; t++)
        multiply(state->problem, &state->shares[index], state->problem->cut[index]);
}

static double run(void *context, int64_t times)
{
    struct state *state = context;
    state->times = times;
    return sl_team_run(state->problem->team, state->problem->threads, work, state);
}

/* By the thread that will read it. */
static void pack(void *context, int index, int threads)
{
    const struct state *state = context;
    const struct sl_spmm_problem *p = state->problem;
    struct share *share = &state->shares[index];
    (void)threads;
    const int64_t first = p->cut[index], rows = p->cut[index + 1] - first;
    const int64_t entry = p->row_ptr[first];
    share->bytes = (size_t)(rows + 1) * sizeof *share->row_ptr;
    share->row_ptr = sl_memory_alloc(share->bytes);
    for (int64_t r = 0; share->row_ptr && r <= rows; r++)
        share->row_ptr[r] = (uint32_t)(p->row_ptr[first + r] - entry);
    share->tile =
        (struct sl_sparse){rows, p->vertices, share->row_ptr, p->col + entry, p->value + entry};
}

static int create(void **out, const struct sl_spmm_problem *problem)
{
    struct state *state = calloc(1, sizeof *state);
    *out = state;
    if (!state)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    state->problem = problem;
    state->shares = calloc((size_t)problem->threads, sizeof *state->shares);
    if (!state->shares)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    sl_team_run(problem->team, problem->threads, pack, state);
    for (int t = 0; t < problem->threads; t++)
        if (!state->shares[t].row_ptr)
            return sl_error(SL_ERR_SYSTEM, "no memory for the tile of a thread");
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
    for (int t = 0; state->shares && t < state->problem->threads; t++)
        sl_memory_free(state->shares[t].row_ptr, state->shares[t].bytes);
    free(state->shares);
    free(state);
}

const struct sl_spmm_rival sl_spmm_kernel = {
    .name = "starling",
    .what = "the kernel of training, one tile per thread",
    .create = create,
    .run = run,
    .row = row,
    .destroy = destroy,
};
