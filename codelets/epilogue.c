/* The steps after a sum in one pass over it; dropout alone is one of them. Random numbers are made
 * a run of columns at a time, or, where rows are shorter, for several rows together. */
#include "codelets/epilogue.h"

#include <math.h>
#include <string.h>

#include "codelets/arguments.h"
#include "codelets/bfloat16.h"
#include "codelets/codelet.h"

enum {
    DRAWN_BLOCKS = 256, /* of four columns, whose numbers are made together */
    RUN = 4 * DRAWN_BLOCKS,
    CHAINS = 4, /* vectors of blocks at a time, so that none waits for the one before it */
};

static const float zeros[RUN + SL_LANES];

/* ---- Random words: element (vertex, column) has word column % 4 of its block ---- */

struct draws {
    uint32_t vertex[DRAWN_BLOCKS], block[DRAWN_BLOCKS];
    uint16_t word[RUN + SL_LANES]; /* a last vector may read on */
};

/* The words of blocks first … first + CHAINS · SL_LANES - 1. */
SL_INLINE void draw_chains(uint64_t key, struct draws *draws, int64_t first)
{
    SL_RNG_KEYS(key);
    sl_words u[CHAINS], v[CHAINS];
    memcpy(u, draws->vertex + first, sizeof u);
    memcpy(v, draws->block + first, sizeof v);
#define ROUND(r)                             \
    for (int c = 0; c < CHAINS; c++)         \
        u[c] += v[c];                        \
    for (int c = 0; c < CHAINS; c++)         \
        v[c] = v[c] << r | v[c] >> (32 - r); \
    for (int c = 0; c < CHAINS; c++)         \
        v[c] ^= u[c];
#define ADD(p, q)                    \
    for (int c = 0; c < CHAINS; c++) \
        u[c] += (p), v[c] += (q);
    SL_RNG_ROUNDS(ROUND, ADD)
#undef ROUND
#undef ADD
    for (int c = 0; c < CHAINS; c++) {
        sl_words pairs[2];
        if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) /* the lower half of a word is the first */
            u[c] = u[c] << 16 | u[c] >> 16, v[c] = v[c] << 16 | v[c] >> 16;
        pairs[0] = __builtin_shufflevector(u[c], v[c], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                           22, 7, 23);
        pairs[1] = __builtin_shufflevector(u[c], v[c], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                           14, 30, 15, 31);
        memcpy(draws->word + 4 * (first + c * SL_LANES), pairs, sizeof pairs);
    }
}

/* The blocks first … first + count - 1 of each of `rows` rows. */
SL_INLINE void draw_rows(uint64_t key, const uint32_t *vertex, int64_t rows, uint32_t first,
                         int64_t count, struct draws *draws)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t b = 0; b < count; b++) {
            draws->vertex[r * count + b] = vertex[r];
            draws->block[r * count + b] = first + (uint32_t)b;
        }
    for (int64_t i = 0; i < rows * count; i += CHAINS * SL_LANES)
        draw_chains(key, draws, i);
}

/* ---- A run of a row ---- */

/* What the elements of a run have in common. */
struct run {
    int64_t count;
    float factor, lowest, kept;    /* kept: by what an element is multiplied that is not dropped */
    const float *bias, *last_bias; /* last_bias: of the last elements, fewer than a vector */
    bool padded;                   /* these, too, have room for a vector in all operands */
    const void *mask, *sum;
    void *z;
    const uint16_t *word; /* of its first element; NULL: no dropout */
    uint32_t threshold;
};

enum form { FLOATS, HALVES, NOTHING };

/* Lanes of X where `mask` is not set, 0 in the others. */
SL_INLINE void clear(const sl_ints *mask, sl_floats *x)
{
    *x = (sl_floats)((sl_ints)*x & ~*mask);
}

/* SL_LANES elements. */
SL_INLINE void vector_of_form(const struct run *run, enum form sum, enum form mask, enum form z,
                              bool drops)
{
    sl_floats x;
    sl_load(run->sum, 0, sum == HALVES, &x);
    x = x * run->factor + *(const sl_floats *)run->bias;
    const sl_ints low = x < run->lowest; /* not NaN: it stays */
    clear(&low, &x);
    if (mask != NOTHING) {
        sl_floats m;
        sl_load(run->mask, 0, mask == HALVES, &m);
        const sl_ints masked = ~(m > 0.0f);
        clear(&masked, &x);
    }
    sl_floats factor = (sl_floats){0} + run->kept;
    if (drops) {
        const sl_words word = __builtin_convertvector(*(const sl_halves *)run->word, sl_words);
        const sl_ints dropped = (sl_ints)(word < run->threshold);
        clear(&dropped, &factor);
    }
    x *= factor;
    if (z == HALVES)
        sl_store_halves(&x, run->z);
    else
        *(sl_floats *)run->z = x;
}

SL_INLINE size_t size_of(enum form form)
{
    return form == HALVES ? 2 : form == FLOATS ? 4 : 0;
}

/* Moves the run on by `count` elements. */
SL_INLINE void advance(struct run *run, int64_t count, enum form sum, enum form mask, enum form z,
                       bool drops)
{
    run->sum = (const char *)run->sum + (size_t)count * size_of(sum);
    run->mask = mask == NOTHING ? NULL : (const char *)run->mask + (size_t)count * size_of(mask);
    run->z = (char *)run->z + (size_t)count * size_of(z);
    run->bias += count;
    run->word += drops ? count : 0;
    run->count -= count;
}

/* The last elements, fewer than a vector, in a vector of their own. */
SL_INLINE void rest_of_form(const struct run *run, enum form sum, enum form mask, enum form z,
                            bool drops)
{
    float sums[SL_LANES] = {0}, masks[SL_LANES] = {0}, bias[SL_LANES] = {0}, out[SL_LANES];
    uint16_t word[SL_LANES] = {0};
    struct run rest = *run;
    memcpy(sums, run->sum, (size_t)run->count * size_of(sum));
    memcpy(bias, run->bias, (size_t)run->count * sizeof *bias);
    if (mask != NOTHING)
        memcpy(masks, run->mask, (size_t)run->count * size_of(mask));
    if (drops)
        memcpy(word, run->word, (size_t)run->count * sizeof *word);
    rest.sum = sums;
    rest.mask = masks;
    rest.z = out;
    rest.bias = bias;
    rest.word = word;
    vector_of_form(&rest, sum, mask, z, drops);
    memcpy(run->z, out, (size_t)run->count * size_of(z));
}

SL_INLINE void run_of_form(const struct run *whole, enum form sum, enum form mask, enum form z,
                           bool drops)
{
    struct run run = *whole;
    while (run.count >= SL_LANES) {
        vector_of_form(&run, sum, mask, z, drops);
        advance(&run, SL_LANES, sum, mask, z, drops);
    }
    run.bias = run.padded ? run.last_bias : run.bias;
    if (run.count && run.padded)
        vector_of_form(&run, sum, mask, z, drops);
    else if (run.count)
        rest_of_form(&run, sum, mask, z, drops);
}

SL_INLINE void run_of_sum(const struct run *run, enum form sum, enum form mask, enum form z)
{
    if (run->word)
        run_of_form(run, sum, mask, z, true);
    else
        run_of_form(run, sum, mask, z, false);
}

SL_INLINE void run_to(const struct run *run, enum form sum, enum form mask, enum form z)
{
    if (sum == HALVES)
        run_of_sum(run, HALVES, mask, z);
    else if (mask == HALVES)
        run_of_sum(run, FLOATS, HALVES, z);
    else if (mask == FLOATS)
        run_of_sum(run, FLOATS, FLOATS, z);
    else
        run_of_sum(run, FLOATS, NOTHING, z);
}

/* What the rows of a call have in common. */
struct call {
    const struct sl_epilogue *e;
    const struct sl_rows *sum, *z;
    int64_t cols;
    bool padded;
    float last_bias[SL_LANES];
};

/* Columns [from, to) of row r; word: those of the first of them. */
SL_INLINE void finish_run(const struct call *call, int64_t r, int64_t from, int64_t to,
                          const uint16_t *word)
{
    const struct sl_epilogue *e = call->e;
    const struct run run = {
        .count = to - from,
        .factor = e->before ? e->scale * e->before[r] : e->scale,
        .lowest = e->relu ? 0.0f : -INFINITY,
        .kept = (word ? e->drop.scale : 1.0f) * (e->after ? e->after[r] : 1.0f),
        .bias = e->bias ? e->bias + from : zeros,
        .last_bias = call->last_bias,
        .padded = call->padded,
        .mask = sl_rows_at(&e->mask, r, from).data,
        .sum = sl_rows_at(call->sum, r, from).data,
        .z = sl_rows_at(call->z, r, from).data,
        .word = word,
        .threshold = e->drop.threshold,
    };
    const enum form sum = call->sum->type == SL_BFLOAT16 ? HALVES : FLOATS,
                    any_mask = e->mask.type == SL_BFLOAT16 ? HALVES : FLOATS,
                    mask = e->mask.data ? any_mask : NOTHING;
    if (call->z->type == SL_BFLOAT16)
        run_to(&run, sum, mask, HALVES);
    else
        run_to(&run, sum, mask, FLOATS);
}

/* ---- Rows ---- */

/* With the words of several rows, or of a run of one, made together. */
SL_INLINE void drop_rows(const struct call *call, int64_t from, int64_t to)
{
    const struct sl_epilogue *e = call->e;
    const uint32_t column0 = e->column0 + e->drop.column0, first = column0 / 4;
    const int64_t skip = column0 % 4; /* columns of the first block before the row */
    const int64_t blocks = (skip + call->cols + 3) / 4;
    const int64_t at_once = blocks < DRAWN_BLOCKS ? DRAWN_BLOCKS / blocks : 1;
    struct draws draws = {.vertex = {0}};
    for (int64_t r = from; r < to; r += at_once)
        for (int64_t start = 0; start < blocks; start += DRAWN_BLOCKS) {
            const int64_t rows = to - r < at_once ? to - r : at_once;
            const int64_t left = blocks - start, count = left < DRAWN_BLOCKS ? left : DRAWN_BLOCKS;
            const int64_t begin = start ? 4 * start - skip : 0, end = 4 * (start + count) - skip;
            if (count == 4) /* of which the compiler knows the number */
                draw_rows(e->drop.key, e->vertex + r, rows, first + (uint32_t)start, 4, &draws);
            else
                draw_rows(e->drop.key, e->vertex + r, rows, first + (uint32_t)start, count, &draws);
            for (int64_t i = 0; i < rows; i++)
                finish_run(call, r + i, begin, end < call->cols ? end : call->cols,
                           draws.word + 4 * i * count + (start ? 0 : skip));
        }
}

SL_INLINE void sl_epilogue_rows_body(const struct sl_epilogue *e, int64_t from, int64_t to,
                                     int64_t cols, const struct sl_rows *sum,
                                     const struct sl_rows *z)
{
    const int64_t rest = cols % SL_LANES, padded = cols - rest + SL_LANES;
    struct call call = {.e = e, .sum = sum, .z = z, .cols = cols};
    call.padded = sum->room >= padded && z->room >= padded &&
                  (e->column0 + e->drop.column0) % 4 == 0 &&
                  (!e->mask.data || e->mask.room >= padded);
    for (int64_t j = 0; e->bias && j < rest; j++)
        call.last_bias[j] = e->bias[cols - rest + j];
    if (e->drop.threshold && cols > 0)
        drop_rows(&call, from, to);
    for (int64_t r = from; !e->drop.threshold && r < to; r++)
        for (int64_t j = 0; j < cols; j += RUN)
            finish_run(&call, r, j, j + RUN < cols ? j + RUN : cols, NULL);
}

SL_DISPATCH(, sl_epilogue_rows,
            (const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
             const struct sl_rows *sum, const struct sl_rows *z),
            (e, from, to, cols, sum, z))

void sl_kernel_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *e,
                        const struct sl_rows *sum, const struct sl_rows *z)
{
    sl_epilogue_rows(e, 0, rows, cols, sum, z);
}

struct sl_epilogue sl_epilogue_at(const struct sl_epilogue *epilogue, int64_t r, int64_t j)
{
    if (!epilogue)
        return SL_EPILOGUE_IDENTITY;
    struct sl_epilogue e = *epilogue;
    e.before = e.before ? e.before + r : NULL;
    e.bias = e.bias ? e.bias + j : NULL;
    e.mask = sl_rows_at(&e.mask, r, j);
    e.vertex = e.vertex ? e.vertex + r : NULL;
    e.column0 += (uint32_t)j;
    e.after = e.after ? e.after + r : NULL;
    return e;
}

int sl_epilogue_pack(const struct sl_epilogue_tiles *from, const struct sl_tile *z,
                     struct epilogue_argument *to, struct sl_tile **tiles)
{
    int count = 0;
    *to = (struct epilogue_argument){.before = SL_ROW_NONE, .after = SL_ROW_NONE, .scale = 1.0f};
    if (!from)
        return 0;
    to->before = from->before;
    to->after = from->after;
    to->scale = from->scale;
    to->drop = from->drop;
    to->bias_row = from->bias_row;
    to->bias_col = from->bias_col;
    to->relu = from->relu;
    to->present = true;
    if (from->facts && (from->before >= 0 || from->after >= 0 || from->drop.threshold)) {
        to->has_facts = true;
        tiles[count++] = from->facts;
    }
    if (from->parameters) {
        to->has_bias = true;
        tiles[count++] = from->parameters;
    }
    to->masked_by_z = from->mask && from->mask == z;
    if (from->mask && !to->masked_by_z) {
        to->has_mask = true;
        tiles[count++] = from->mask;
    }
    return count;
}

int sl_epilogue_buffers(const struct epilogue_argument *arg, void **buffers, struct sl_epilogue *e)
{
    int used = 0;
    *e = (struct sl_epilogue){.scale = arg->scale, .relu = arg->relu, .drop = arg->drop};
    if (arg->has_facts) {
        e->before = sl_row_fact(buffers[used], arg->before);
        e->after = sl_row_fact(buffers[used], arg->after);
        e->vertex = sl_vertices(buffers[used]);
        used++;
    }
    if (arg->has_bias) {
        const struct sl_dense parameters = sl_dense_buffer(buffers[used++]);
        e->bias = parameters.data + arg->bias_row * parameters.ld + arg->bias_col;
    }
    if (arg->has_mask)
        e->mask = sl_rows_buffer(buffers[used++]);
    return used;
}

/* epilogue
 *   argument  struct epilogue_argument
 *   buffers   …       R    what it needs of: rows' facts, parameters with the bias, mask
 *             before  R    SUM (rows, cols), unless it is Z
 *             last    W    Z (rows, cols), or RW */
static void epilogue_cpu(void *buffers[], void *argument)
{
    const struct epilogue_argument *arg = argument;
    struct sl_epilogue e;
    const int used = sl_epilogue_buffers(arg, buffers, &e);
    const struct sl_rows sum = sl_rows_buffer(buffers[used]),
                         z = sl_rows_buffer(buffers[used + arg->apart]);
    if (arg->masked_by_z)
        e.mask = z;
    sl_kernel_epilogue(STARPU_MATRIX_GET_NY(buffers[used]), STARPU_MATRIX_GET_NX(buffers[used]), &e,
                       &sum, &z);
}

SL_CODELET_ANY(epilogue, 0x9ACD32);

void sl_submit_epilogue(struct sl_runtime *rt, const struct sl_epilogue_tiles *epilogue,
                        struct sl_tile *sum, struct sl_tile *z)
{
    struct epilogue_argument arg;
    struct sl_task task = {
        .codelet = &epilogue_codelet,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)z->rows * (double)z->cols,
    };
    task.count = sl_epilogue_pack(epilogue, z, &arg, task.tiles);
    arg.apart = sum != z;
    if (arg.apart)
        task.tiles[task.count++] = sum;
    task.tiles[task.count++] = z;
    task.output = arg.apart && !arg.masked_by_z ? SL_TASK_WRITES : SL_TASK_UPDATES;
    sl_task_submit(rt, &task);
}
