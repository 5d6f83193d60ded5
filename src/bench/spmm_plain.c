/* The loop that one writes first. */
#include <stdlib.h>
#include <string.h>

#include "bench/spmm.h"
#include "codelets/vector.h"
#include "core/error.h"

/* Whatever the package was configured with: the comparison is with an optimised loop. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

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

/* Without restrict: told that H and Z are apart, GCC 12 unrolls over entries and then does not
 * vectorise, which makes the loop four times slower. */
SL_INLINE void multiply_body(const struct state *s, int64_t first, int64_t last, int64_t width)
{
    const int64_t *const row_ptr = s->row_ptr, ld = s->ld;
    const uint32_t *const col = s->col;
    const float *const value = s->value, *const h = s->h;
    float *const z = s->z;
    for (int64_t r = first; r < last; r++) {
        float *out = z + r * ld;
        for (int64_t j = 0; j < width; j++)
            out[j] = 0.0f;
        for (int64_t e = row_ptr[r]; e < row_ptr[r + 1]; e++) {
            const float v = value[e], *x = h + col[e] * ld;
            for (int64_t j = 0; j < width; j++)
                out[j] += v * x[j];
        }
    }
}

SL_DISPATCH(static, multiply, (const struct state *s, int64_t first, int64_t last, int64_t width),
            (s, first, last, width))

static void work(void *context, int index, int threads)
{
    const struct state *s = context;
    const struct sl_spmm_problem *p = s->problem;
    (void)threads;
    for (int64_t t = 0; t < s->times; t++)
        multiply(s, p->cut[index], p->cut[index + 1], p->width);
}

static double run(void *context, int64_t times)
{
    struct state *state = context;
    state->times = times;
    return sl_team_run(state->problem->team, state->problem->threads, work, state);
}

static int create(void **out, const struct sl_spmm_problem *p)
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

/* Copies a thread's rows: whoever touches a page first has it near. */
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
    const int code = create(out, p);
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
    .create = create,
    .run = run,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_plain_malloc = {
    .name = "plain-malloc",
    .what = "a plain loop, -O3, on memory from malloc",
    .create = create_malloc,
    .run = run,
    .row = row,
    .destroy = destroy,
};
