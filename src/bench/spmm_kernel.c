/* Our kernel. Each thread has its rows as a tile in training's form. */
#include <stdlib.h>

#include "bench/spmm.h"
#include "codelets/epilogue.h"
#include "codelets/spmm.h"
#include "core/error.h"
#include "core/memory.h"

struct share {
    struct sl_sparse_shape shape;
    void *memory; /* the packed tile */
};

struct state {
    const struct sl_spmm_problem *problem;
    struct share *shares; // (threads)
    int64_t times;
    bool finishes;        /* a hidden layer's epilogue follows the sums */
    bool narrow;          /* dense operands are in bfloat16 */
    float *factor, *bias; // (vertices), (width)
    uint32_t *vertex;     // (vertices)
    struct sl_rows h, z;  // (vertices, ld): the problem's, or copies in bfloat16
    float *sum, *row;     // (vertices, ld), (ld): for bfloat16
};

static size_t narrow_bytes(const struct sl_spmm_problem *problem)
{
    return (size_t)(problem->vertices * sl_leading(problem->width, SL_BFLOAT16)) *
           sl_type_size(SL_BFLOAT16);
}

static struct sl_rows narrow_rows(const struct sl_spmm_problem *problem)
{
    return sl_rows_of_type(sl_memory_alloc(narrow_bytes(problem)),
                           sl_leading(problem->width, SL_BFLOAT16), SL_BFLOAT16);
}

static void multiply(const struct state *state, const struct share *share, int64_t first)
{
    const struct sl_spmm_problem *p = state->problem;
    const struct sl_sparse tile = sl_sparse_view(share->memory, &share->shape);
    const struct sl_rows z = sl_rows_at(&state->z, first, 0);
    const struct sl_epilogue epilogue = {
        .scale = 1.0f,
        .before = state->factor + first,
        .bias = state->bias,
        .relu = true,
        .drop = sl_dropout_make(0.5, sl_rng_key(1, SL_RNG_DROPOUT, 1, 1)),
        .vertex = state->vertex + first,
        .after = state->factor + first,
    };
    const struct sl_rows sums = sl_float_rows(state->sum, p->ld), sum = sl_rows_at(&sums, first, 0);
    sl_kernel_spmm(1, &tile, &state->h, p->width, false, state->finishes ? &epilogue : NULL, &sum,
                   &z);
}

static void work(void *context, int index, int threads)
{
    const struct state *state = context;
    (void)threads;
    for (int64_t t = 0; t < state->times; t++)
        multiply(state, &state->shares[index], state->problem->cut[index]);
}

static double run_spmm_kernel(void *context, int64_t times)
{
    struct state *state = context;
    state->times = times;
    return sl_team_run(state->problem->team, state->problem->threads, work, state);
}

void sl_spmm_pack(const struct sl_spmm_problem *p, int64_t first,
                  const struct sl_sparse_shape *shape, void *memory)
{
    const struct sl_sparse tile = sl_sparse_view(memory, shape);
    uint32_t *row_ptr = (uint32_t *)tile.row_ptr, next = 0;
    for (int64_t b = 0; b < tile.blocks; b++) {
        const int64_t from = b * tile.block_cols, to = from + tile.block_cols;
        for (int64_t r = 0; r < tile.rows; r++) {
            for (int64_t e = p->row_ptr[first + r]; e < p->row_ptr[first + r + 1]; e++) {
                const int64_t col = p->col[e];
                if (col < from || col >= to)
                    continue;
                if (tile.narrow)
                    ((uint16_t *)tile.col)[next] = (uint16_t)(col - from);
                else
                    ((uint32_t *)tile.col)[next] = (uint32_t)(col - from);
                if (tile.value)
                    ((float *)tile.value)[next] = p->value[e];
                next++;
            }
            row_ptr[b * tile.rows + r + 1] = next;
        }
    }
}

/* Pack a thread's tile, by the thread that will read it. */
static void pack(void *context, int index, int threads)
{
    const struct state *state = context;
    const struct sl_spmm_problem *p = state->problem;
    struct share *share = &state->shares[index];
    (void)threads;
    const int64_t first = p->cut[index], last = p->cut[index + 1];
    share->shape =
        (struct sl_sparse_shape){.rows = last - first,
                                 .cols = p->vertices,
                                 .nnz = p->row_ptr[last] - p->row_ptr[first],
                                 .block_cols = state->narrow ? p->narrow_block_cols : p->block_cols,
                                 .has_values = true};
    share->memory = sl_memory_alloc(sl_sparse_bytes(&share->shape));
    if (share->memory)
        sl_spmm_pack(p, first, &share->shape, share->memory);
}

static int create_epilogue(struct state *state)
{
    const struct sl_spmm_problem *p = state->problem;
    state->factor = calloc((size_t)p->vertices, sizeof *state->factor);
    state->vertex = calloc((size_t)p->vertices, sizeof *state->vertex);
    state->bias = calloc((size_t)p->width, sizeof *state->bias);
    if (!state->factor || !state->vertex || !state->bias)
        return sl_error(SL_ERR_SYSTEM, "no memory for the scales of %lld rows",
                        (long long)p->vertices);
    for (int64_t v = 0; v < p->vertices; v++) {
        state->factor[v] = 0.5f;
        state->vertex[v] = (uint32_t)v;
    }
    return 0;
}

static int create_form(void **out, const struct sl_spmm_problem *problem, bool narrow)
{
    struct state *state = calloc(1, sizeof *state);
    *out = state;
    if (!state)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    state->problem = problem;
    state->narrow = narrow;
    state->h = sl_float_rows(problem->h, problem->ld);
    state->z = sl_float_rows(problem->z, problem->ld);
    state->shares = calloc((size_t)problem->threads, sizeof *state->shares);
    if (!state->shares)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product");
    sl_team_run(problem->team, problem->threads, pack, state);
    for (int t = 0; t < problem->threads; t++)
        if (!state->shares[t].memory)
            return sl_error(SL_ERR_SYSTEM, "no memory for the tile of a thread");
    return create_epilogue(state);
}

static int create_spmm_kernel(void **out, const struct sl_spmm_problem *problem)
{
    return create_form(out, problem, false);
}

static int create_finished(void **out, const struct sl_spmm_problem *problem)
{
    const int code = create_spmm_kernel(out, problem);
    if (!code)
        ((struct state *)*out)->finishes = true;
    return code;
}

/* Copy a thread's rows of H to bfloat16. */
static void narrow(void *context, int index, int threads)
{
    const struct state *state = context;
    const struct sl_spmm_problem *p = state->problem;
    const struct sl_epilogue identity = SL_EPILOGUE_IDENTITY;
    const int64_t first = p->cut[index];
    (void)threads;
    const struct sl_rows from = sl_float_rows(p->h + first * p->ld, p->ld),
                         to = sl_rows_at(&state->h, first, 0);
    sl_kernel_epilogue(p->cut[index + 1] - first, p->width, &identity, &from, &to);
}

static int create_bf16(void **out, const struct sl_spmm_problem *problem)
{
    const int code = create_form(out, problem, true);
    struct state *state = *out;
    if (code)
        return code;
    state->row = calloc((size_t)problem->ld, sizeof *state->row);
    state->sum = problem->z;
    state->h = narrow_rows(problem);
    state->z = narrow_rows(problem);
    if (!state->row || !state->h.data || !state->z.data)
        return sl_error(SL_ERR_SYSTEM, "no memory for a product in bfloat16");
    sl_team_run(problem->team, problem->threads, narrow, state);
    return 0;
}

static const float *row(void *context, int64_t r)
{
    const struct state *state = context;
    const struct sl_epilogue identity = SL_EPILOGUE_IDENTITY;
    const struct sl_rows from = sl_rows_at(&state->z, r, 0);
    if (state->z.type == SL_FLOAT32)
        return from.data;
    const struct sl_rows to = sl_float_rows(state->row, state->problem->ld);
    sl_kernel_epilogue(1, state->problem->width, &identity, &from, &to);
    return state->row;
}

static void destroy(void *context)
{
    struct state *state = context;
    for (int t = 0; state->shares && t < state->problem->threads; t++)
        sl_memory_free(state->shares[t].memory, sl_sparse_bytes(&state->shares[t].shape));
    if (state->narrow) {
        sl_memory_free(state->h.data, narrow_bytes(state->problem));
        sl_memory_free(state->z.data, narrow_bytes(state->problem));
    }
    free(state->row);
    free(state->shares);
    free(state->factor);
    free(state->vertex);
    free(state->bias);
    free(state);
}

const struct sl_spmm_rival sl_spmm_kernel = {
    .name = "starling",
    .what = "the kernel of training, one tile per thread",
    .create = create_spmm_kernel,
    .run = run_spmm_kernel,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_finished = {
    .name = "finished",
    .what = "the same, then scale, bias, relu, dropout, scale: a hidden layer",
    .other_result = true,
    .create = create_finished,
    .run = run_spmm_kernel,
    .row = row,
    .destroy = destroy,
};

const struct sl_spmm_rival sl_spmm_bf16 = {
    .name = "bf16",
    .what = "the kernel with both dense operands in bfloat16, sums in float32",
    .error = 0x1p-7, /* two roundings to 8 bits */
    .create = create_bf16,
    .run = run_spmm_kernel,
    .row = row,
    .destroy = destroy,
};
