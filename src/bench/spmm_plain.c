/* The plain loop of a sparse product. */
#include <stdlib.h>
#include <string.h>

#include "bench/loops.h"
#include "bench/spmm.h"
#include "core/error.h"

struct state {
    const struct sl_spmm_problem *problem;
    const int64_t *row_ptr;
    const uint32_t *col;
    const float *value, *h;
    float *z;
    int64_t ld;
    bool own; /* the arrays are from malloc */
    int64_t times;
};

static void work(void *context, int index, int threads)
{
    const struct state *s = context;
    const struct sl_spmm_problem *p = s->problem;
    (void)threads;
    const struct sl_loop_product product = {s->row_ptr, s->col, s->value, s->h,
                                            s->z,       s->ld,  p->width};
    for (int64_t t = 0; t < s->times; t++)
        sl_loop_multiply(&product, p->cut[index], p->cut[index + 1]);
}

static double run_spmm_plain(void *context, int64_t times)
{
    struct state *state = context;
    state->times = times;
    return sl_team_run(state->problem->team, state->problem->threads, work, state);
}

static int create_spmm_plain(void **out, const struct sl_spmm_problem *p)
{
    struct state *state = calloc(1, sizeof *state);
    *out = state;
    if (!state)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    *state = (struct state){
        .problem = p,
        .row_ptr = p->row_ptr,
        .col = p->col,
        .value = p->value,
        .h = p->h,
        .z = p->z,
        .ld = p->ld,
    };
    return 0;
}

/* Copy a thread's rows, so that the thread touches their pages first. */
static void copy(void *context, int index, int threads)
{
    struct state *s = context;
    const struct sl_spmm_problem *p = s->problem;
    const int64_t first = p->cut[index], last = p->cut[index + 1];
    const int64_t entry = p->row_ptr[first], entries = p->row_ptr[last] - entry;
    memcpy((int64_t *)s->row_ptr + first, p->row_ptr + first,
           (size_t)(last - first + (index == threads - 1)) * sizeof *p->row_ptr);
    memcpy((uint32_t *)s->col + entry, p->col + entry, (size_t)entries * sizeof *p->col);
    memcpy((float *)s->value + entry, p->value + entry, (size_t)entries * sizeof *p->value);
    for (int64_t r = first; r < last; r++) {
        memcpy((float *)s->h + r * s->ld, p->h + r * p->ld, (size_t)p->width * sizeof *p->h);
        memset(s->z + r * s->ld, 0, (size_t)p->width * sizeof *s->z);
    }
}

static int create_malloc(void **out, const struct sl_spmm_problem *p)
{
    const int code = create_spmm_plain(out, p);
    struct state *s = *out;
    if (code)
        return code;
    s->own = true;
    s->ld = p->width;
    s->row_ptr = malloc((size_t)(p->vertices + 1) * sizeof *s->row_ptr);
    s->col = malloc((size_t)p->nnz * sizeof *s->col);
    s->value = malloc((size_t)p->nnz * sizeof *s->value);
    s->h = malloc((size_t)(p->vertices * s->ld) * sizeof *s->h);
    s->z = malloc((size_t)(p->vertices * s->ld) * sizeof *s->z);
    if (!s->row_ptr || !s->col || !s->value || !s->h || !s->z)
        return sl_error(SL_ERR_SYSTEM, "no memory for a second copy of the operands");
    sl_team_run(p->team, p->threads, copy, s);
    return 0;
}

static const float *row(void *context, int64_t r)
{
    const struct state *state = context;
    return state->z + r * state->ld;
}

static void destroy(void *context)
{
    struct state *state = context;
    if (state->own) {
        free((void *)state->row_ptr);
        free((void *)state->col);
        free((void *)state->value);
        free((void *)state->h);
        free(state->z);
    }
    free(state);
}

const struct sl_spmm_rival sl_spmm_plain = {
    .name = "plain",
    .what = "a plain loop, -O3, on huge pages",
    .create = create_spmm_plain,
    .run = run_spmm_plain,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_plain_malloc = {
    .name = "plain-malloc",
    .what = "a plain loop, -O3, on memory from malloc",
    .create = create_malloc,
    .run = run_spmm_plain,
    .row = row,
    .destroy = destroy,
};
