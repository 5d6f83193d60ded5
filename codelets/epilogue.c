/* The steps after a sum in one pass over it; dropout alone is one of them. Random numbers are made
 * a run of columns at a time, or, where rows are shorter, for several rows together. */
#include "codelets/epilogue.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "codelets/codelet.h"
#include "codelets/exponential.h"

enum {
    DRAWN_BLOCKS = 256, /* of 64 bits, which are made together */
    RUN = 4096,         /* most columns of a run */
    CHAINS = 4,         /* vectors of blocks at a time, so that none waits for the one before it */
};

static const float zeros[RUN + SL_LANES];

/* ROUNDED: HALVES that the processor rounds to. */
enum form { FLOATS, HALVES, ROUNDED, NOTHING };

/* ---- Random words ---- */

/* How many bits decide on an element. */
enum draw { DRAW_NOTHING, DRAW_BITS, DRAW_HALVES };

/* Where the bits of the columns of a row are. */
struct place {
    enum draw draw;
    uint32_t first;  /* block of column 0 */
    int64_t blocks;  /* of a row */
    int64_t columns; /* of a block */
    int64_t skip;    /* columns of the first block before column 0 */
    int64_t word;    /* 16-bit word of column 0 in its block, and the bits before it there */
    int shift;
};

static struct place place_of(const struct sl_epilogue *e, int64_t cols)
{
    const int64_t bits = sl_dropout_bits(&e->drop), columns = sl_dropout_columns(&e->drop);
    const int64_t column0 = e->column0 + e->drop.column0, skip = column0 % columns;
    const enum draw draw = bits == 1 ? DRAW_BITS : DRAW_HALVES;
    return (struct place){
        .draw = e->drop.threshold ? draw : DRAW_NOTHING,
        .first = (uint32_t)(column0 / columns),
        .blocks = (skip + cols + columns - 1) / columns,
        .columns = columns,
        .skip = skip,
        .word = skip * bits / 16,
        .shift = (int)(skip * bits % 16),
    };
}

/* What the words of blocks at … at + CHAINS · SL_LANES - 1 are made from goes into u and v. */
SL_INLINE void draw_chains(uint64_t key, sl_words u[CHAINS], sl_words v[CHAINS], uint16_t *word)
{
    SL_RNG_KEYS(key);
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
        memcpy(word + 4 * c * SL_LANES, pairs, sizeof pairs);
    }
}

/* Each of the first lanes 2^log times, in turn: lane i of Y is lane i >> log of X. */
SL_INLINE void repeat_lanes(const sl_words *x, int log, sl_words *y)
{
    switch (log) {
    case 0:
        *y = *x;
        break;
    case 1:
        *y = __builtin_shufflevector(*x, *x, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        break;
    case 2:
        *y = __builtin_shufflevector(*x, *x, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        break;
    case 3:
        *y = __builtin_shufflevector(*x, *x, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
        break;
    default:
        *y = __builtin_shufflevector(*x, *x, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
}

/* Set U to the vertices and V to the numbers of the SL_LANES blocks from block `at` on. Each of
 * `rows` rows has 2^log blocks, numbered from `first` on. Everything stays in registers: a vector
 * load of words that were stored one by one would wait for all earlier stores. */
SL_INLINE void count_blocks(const uint32_t *vertex, int64_t rows, uint32_t first, int log,
                            int64_t at, sl_words *u, sl_words *v)
{
    const sl_words lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int64_t row = at >> log, left = rows - row;
    sl_words vertices = {0};
    if (left >= SL_LANES)
        memcpy(&vertices, vertex + row, sizeof vertices);
    else if (left > 0)
        memcpy(&vertices, vertex + row, (size_t)left * sizeof *vertex);
    repeat_lanes(&vertices, log, u);
    *v = (((uint32_t)at + lane) & ((1u << log) - 1)) + first;
}

/* The blocks first … first + count - 1 of each of `rows` rows. */
SL_INLINE void draw(uint64_t key, const uint32_t *vertex, int64_t rows, uint32_t first,
                    int64_t count, uint16_t *word)
{
    const bool power = (count & (count - 1)) == 0;
    const int log = __builtin_ctzll((unsigned long long)count);
    sl_words u[CHAINS], v[CHAINS];
    uint32_t vertices[CHAINS * SL_LANES], blocks[CHAINS * SL_LANES];
    for (int64_t at = 0, row = 0, block = 0; at < rows * count; at += CHAINS * SL_LANES) {
        if (power) {
            for (int c = 0; c < CHAINS; c++)
                count_blocks(vertex, rows, first, log, at + c * SL_LANES, &u[c], &v[c]);
        } else {
            for (int i = 0; i < CHAINS * SL_LANES; i++) {
                vertices[i] = row < rows ? vertex[row] : 0;
                blocks[i] = first + (uint32_t)block++;
                if (block == count)
                    block = 0, row++;
            }
            memcpy(u, vertices, sizeof u);
            memcpy(v, blocks, sizeof v);
        }
        draw_chains(key, u, v, word + 4 * at);
    }
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
    const uint16_t *word; /* of its first element, which is behind `shift` bits of it */
    int shift;
    uint32_t threshold;
};

/* Lanes of X where `mask` is not set, 0 in the others. */
SL_INLINE void clear(const sl_ints *mask, sl_floats *x)
{
    *x = (sl_floats)((sl_ints)*x & ~*mask);
}

/* Which of SL_LANES elements, from element j on, are dropped. */
SL_INLINE void find_dropped(const struct run *run, int64_t j, enum draw draw, sl_ints *dropped)
{
    const sl_words lane = {1,      1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                           1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
    const uint16_t *word = run->word + (draw == DRAW_BITS ? j / SL_LANES : j);
    if (draw == DRAW_BITS)
        *dropped = (lane & (word[0] | (uint32_t)word[1] << 16) >> run->shift) == 0;
    else
        *dropped =
            (sl_ints)(__builtin_convertvector(*(const sl_halves *)word, sl_words) < run->threshold);
}

/* SL_LANES elements from element j on. */
SL_INLINE void vector_of_form(const struct run *run, int64_t j, const float *bias, enum form sum,
                              enum form mask, enum form z, enum draw draw)
{
    sl_floats x;
    sl_load(run->sum, j, sum == HALVES, &x);
    x = x * run->factor + *(const sl_floats *)bias;
    const sl_ints low = x < run->lowest; /* not NaN: it stays */
    clear(&low, &x);
    if (mask != NOTHING) {
        sl_floats m;
        sl_load(run->mask, j, mask == HALVES, &m);
        const sl_ints masked = ~(m > 0.0f);
        clear(&masked, &x);
    }
    sl_floats factor = (sl_floats){0} + run->kept;
    if (draw != DRAW_NOTHING) {
        sl_ints dropped;
        find_dropped(run, j, draw, &dropped);
        clear(&dropped, &factor);
    }
    x *= factor;
    if (z == HALVES)
        sl_store_halves(&x, (uint16_t *)run->z + j);
    else if (z == ROUNDED)
        sl_store_rounded(&x, (uint16_t *)run->z + j);
    else
        *(sl_floats *)((float *)run->z + j) = x;
}

SL_INLINE size_t size_of(enum form form)
{
    return form == FLOATS ? 4 : 2;
}

/* The last elements, from j on and fewer than a vector, in a vector of their own. */
SL_INLINE void rest_of_form(const struct run *run, int64_t j, enum form sum, enum form mask,
                            enum form z, enum draw draw)
{
    float sums[SL_LANES] = {0}, masks[SL_LANES] = {0}, bias[SL_LANES] = {0}, out[SL_LANES];
    const size_t count = (size_t)(run->count - j), from = (size_t)j;
    struct run rest = *run;
    memcpy(sums, (const char *)run->sum + from * size_of(sum), count * size_of(sum));
    memcpy(bias, run->bias + from, count * sizeof *bias);
    if (mask != NOTHING)
        memcpy(masks, (const char *)run->mask + from * size_of(mask), count * size_of(mask));
    if (draw != DRAW_NOTHING)
        rest.word += draw == DRAW_BITS ? j / SL_LANES : j;
    rest.sum = sums;
    rest.mask = masks;
    rest.z = out;
    vector_of_form(&rest, 0, bias, sum, mask, z, draw);
    memcpy((char *)run->z + from * size_of(z), out, count * size_of(z));
}

SL_INLINE void run_of_form(const struct run *run, enum form sum, enum form mask, enum form z,
                           enum draw draw)
{
    const int64_t whole = run->count / SL_LANES * SL_LANES;
    for (int64_t j = 0; j < whole; j += SL_LANES)
        vector_of_form(run, j, run->bias + j, sum, mask, z, draw);
    if (whole < run->count && run->padded)
        vector_of_form(run, whole, run->last_bias, sum, mask, z, draw);
    else if (whole < run->count)
        rest_of_form(run, whole, sum, mask, z, draw);
}

SL_INLINE void run_of_sum(const struct run *run, enum form sum, enum form mask, enum form z,
                          enum draw draw)
{
    if (draw == DRAW_BITS)
        run_of_form(run, sum, mask, z, DRAW_BITS);
    else if (draw == DRAW_HALVES)
        run_of_form(run, sum, mask, z, DRAW_HALVES);
    else
        run_of_form(run, sum, mask, z, DRAW_NOTHING);
}

SL_INLINE void run_to(const struct run *run, enum form sum, enum form mask, enum form z,
                      enum draw draw)
{
    if (sum == HALVES)
        run_of_sum(run, HALVES, mask, z, draw);
    else if (mask == HALVES)
        run_of_sum(run, FLOATS, HALVES, z, draw);
    else if (mask == FLOATS)
        run_of_sum(run, FLOATS, FLOATS, z, draw);
    else
        run_of_sum(run, FLOATS, NOTHING, z, draw);
}

/* What the rows of a call have in common. */
struct call {
    const struct sl_epilogue *e;
    const struct sl_rows *sum, *z;
    struct place place;
    int64_t cols;
    bool padded;
    float last_bias[SL_LANES];
};

/* By what a sum of row r is multiplied. */
SL_INLINE float row_factor(const struct sl_epilogue *e, int64_t r)
{
    const float before = e->before ? e->scale * e->before[r] : e->scale;
    return e->factor ? before * e->factor[r] : before;
}

/* Columns [from, to) of row r; word: that of the first of them. */
SL_INLINE void finish_run(const struct call *call, int64_t r, int64_t from, int64_t to,
                          const uint16_t *word, bool rounds)
{
    const struct sl_epilogue *e = call->e;
    const struct run run = {
        .count = to - from,
        .factor = row_factor(e, r),
        .lowest = e->relu ? 0.0f : -INFINITY,
        .kept = (word ? e->drop.scale : 1.0f) * (e->after ? e->after[r] : 1.0f),
        .bias = e->bias ? e->bias + from : zeros,
        .last_bias = call->last_bias,
        .padded = call->padded,
        .mask = sl_rows_at(&e->mask, r, from).data,
        .sum = sl_rows_at(call->sum, r, from).data,
        .z = sl_rows_at(call->z, r, from).data,
        .word = word,
        .shift = from ? 0 : call->place.shift,
        .threshold = e->drop.threshold,
    };
    const enum form sum = call->sum->type == SL_BFLOAT16 ? HALVES : FLOATS,
                    any_mask = e->mask.type == SL_BFLOAT16 ? HALVES : FLOATS,
                    mask = e->mask.data ? any_mask : NOTHING;
    if (rounds)
        run_to(&run, sum, mask, ROUNDED, call->place.draw);
    else if (call->z->type == SL_BFLOAT16)
        run_to(&run, sum, mask, HALVES, call->place.draw);
    else
        run_to(&run, sum, mask, FLOATS, call->place.draw);
}

/* ---- Rows ---- */

/* With the words of several rows, or of a run of one, made together. */
SL_INLINE void drop_rows(const struct call *call, int64_t from, int64_t to, bool rounds)
{
    const struct place *at = &call->place;
    const int64_t most = RUN / at->columns < DRAWN_BLOCKS ? RUN / at->columns : DRAWN_BLOCKS;
    const int64_t at_once = at->blocks <= most ? DRAWN_BLOCKS / at->blocks : 1;
    uint16_t words[4 * DRAWN_BLOCKS + SL_LANES] = {0}; /* a last vector may read on */
    for (int64_t r = from; r < to; r += at_once)
        for (int64_t start = 0; start < at->blocks; start += most) {
            const int64_t rows = to - r < at_once ? to - r : at_once, left = at->blocks - start;
            const int64_t count = left < most ? left : most;
            const int64_t begin = start ? at->columns * start - at->skip : 0;
            const int64_t end = at->columns * (start + count) - at->skip;
            draw(call->e->drop.key, call->e->vertex + r, rows, at->first + (uint32_t)start, count,
                 words);
            for (int64_t i = 0; i < rows; i++)
                finish_run(call, r + i, begin, end < call->cols ? end : call->cols,
                           words + 4 * i * count + (start ? 0 : at->word), rounds);
        }
}

/* rounds: Z is bfloat16, and the processor has AVX512_BF16. */
SL_INLINE void finish_rows(const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
                           const struct sl_rows *sum, const struct sl_rows *z, bool rounds)
{
    const int64_t rest = cols % SL_LANES, padded = cols - rest + SL_LANES;
    struct call call = {.e = e, .sum = sum, .z = z, .cols = cols, .place = place_of(e, cols)};
    call.padded =
        sum->room >= padded && z->room >= padded && (!e->mask.data || e->mask.room >= padded);
    for (int64_t j = 0; e->bias && j < rest; j++)
        call.last_bias[j] = e->bias[cols - rest + j];
    if (e->drop.threshold && cols > 0)
        drop_rows(&call, from, to, rounds);
    for (int64_t r = from; !e->drop.threshold && r < to; r++)
        for (int64_t j = 0; j < cols; j += RUN)
            finish_run(&call, r, j, j + RUN < cols ? j + RUN : cols, NULL, rounds);
}

SL_INLINE void finish_any_body(const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
                               const struct sl_rows *sum, const struct sl_rows *z)
{
    finish_rows(e, from, to, cols, sum, z, false);
}

SL_DISPATCH(static, finish_any,
            (const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
             const struct sl_rows *sum, const struct sl_rows *z),
            (e, from, to, cols, sum, z))

#ifdef SL_X86_BF16
SL_TARGET_V4 static void finish_rounded(const struct sl_epilogue *e, int64_t from, int64_t to,
                                        int64_t cols, const struct sl_rows *sum,
                                        const struct sl_rows *z)
{
    finish_rows(e, from, to, cols, sum, z, true);
}
#else
#define finish_rounded finish_any
#endif

static void finish_linear(const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
                          const struct sl_rows *sum, const struct sl_rows *z)
{
    if (z->type == SL_BFLOAT16 && sl_instructions_get() == SL_INSTRUCTIONS_BF16)
        finish_rounded(e, from, to, cols, sum, z);
    else
        finish_any(e, from, to, cols, sum, z);
}

/* ---- ELU ---- */

/* x = e^x - 1 where x <= 0. A 0 would mean dropped. X has room for a last vector. */
SL_INLINE void elu_body(int64_t count, float *restrict x)
{
    for (int64_t i = 0; i < count; i += SL_EIGHT) {
        sl_eight *const at = (sl_eight *)(x + i), zero = {0};
        sl_eight power = SL_SELECT(SL_SIGN(*at), *at, zero);
        sl_exponential(&power);
        power -= 1.0f;
        *at = SL_SELECT(SL_SIGN(*at), power, *at);
    }
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] == 0.0f ? FLT_MIN : x[i];
}

SL_DISPATCH(static, elu, (int64_t count, float *restrict x), (count, x))

static void elu_back(int64_t count, float by, const struct sl_rows *mask, float *restrict x)
{
    for (int64_t j = 0; j < count; j++) {
        const float y = mask->type == SL_BFLOAT16 ? sl_widen(((const uint16_t *)mask->data)[j])
                                                  : ((const float *)mask->data)[j];
        const float below = y < 0.0f && by > 0.0f ? x[j] * (1.0f + by * y) : 0.0f;
        x[j] = y > 0.0f ? x[j] : below;
    }
}

/* In passes over some rows at a time: the sum, elu or its mask, and what comes after. */
static void finish_elu(const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
                       const struct sl_rows *sum, const struct sl_rows *z)
{
    float x[RUN + SL_LANES];
    const int64_t at_once = 0 < cols && cols < RUN ? RUN / cols : 1;
    for (int64_t r = from; r < to; r += at_once)
        for (int64_t j = 0; j < cols; j += RUN) {
            const int64_t rows = to - r < at_once ? to - r : at_once,
                          width = cols - j < RUN ? cols - j : RUN;
            const struct sl_epilogue here = sl_epilogue_at(e, r, j);
            const struct sl_rows sums = sl_rows_at(sum, r, j), out = sl_rows_at(z, r, j),
                                 between = sl_float_rows(x, width);
            struct sl_epilogue before = here, after = SL_EPILOGUE_IDENTITY;
            before.elu = false;
            before.mask.data = NULL;
            before.drop.threshold = 0;
            before.after = NULL;
            after.drop = here.drop;
            after.vertex = here.vertex;
            after.column0 = here.column0;
            after.after = here.after;
            finish_linear(&before, 0, rows, width, &sums, &between);
            if (e->elu)
                elu(rows * width, x);
            for (int64_t i = 0; here.mask.data && i < rows; i++) {
                const struct sl_rows mask = sl_rows_at(&here.mask, i, 0);
                elu_back(width, e->elu_back, &mask, x + i * width);
            }
            finish_linear(&after, 0, rows, width, &between, &out);
        }
}

void sl_epilogue_rows(const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
                      const struct sl_rows *sum, const struct sl_rows *z)
{
    if (e->elu || (e->mask.data && e->elu_back > 0.0f))
        finish_elu(e, from, to, cols, sum, z);
    else
        finish_linear(e, from, to, cols, sum, z);
}

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
    e.factor = e.factor ? e.factor + r : NULL;
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
    to->elu = from->elu;
    to->elu_back = from->elu_back;
    to->present = true;
    if (from->facts && (from->before >= 0 || from->after >= 0 || from->drop.threshold)) {
        to->has_facts = true;
        tiles[count++] = from->facts;
    }
    if (from->factor) {
        to->has_factor = true;
        tiles[count++] = from->factor;
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
    *e = (struct sl_epilogue){.scale = arg->scale,
                              .relu = arg->relu,
                              .elu = arg->elu,
                              .elu_back = arg->elu_back,
                              .drop = arg->drop};
    if (arg->has_facts) {
        e->before = sl_row_fact(buffers[used], arg->before);
        e->after = sl_row_fact(buffers[used], arg->after);
        e->vertex = sl_vertices(buffers[used]);
        used++;
    }
    if (arg->has_factor)
        e->factor = sl_dense_buffer(buffers[used++]).data;
    if (arg->has_bias) {
        const struct sl_dense parameters = sl_dense_buffer(buffers[used++]);
        e->bias = parameters.data + arg->bias_row * parameters.ld + arg->bias_col;
    }
    if (arg->has_mask)
        e->mask = sl_rows_buffer(buffers[used++]);
    return used;
}

/* A pass, a matrix that is read besides, random numbers. */
uint32_t sl_epilogue_kind(const struct epilogue_argument *arg)
{
    return (uint32_t)arg->present | (uint32_t)(arg->has_mask || arg->masked_by_z) << 1 |
           (uint32_t)(arg->present && arg->drop.threshold > 0) << 2;
}

/* epilogue
 *   argument  struct epilogue_argument
 *   buffers   …       R    what it needs of: rows' facts, factors, parameters with the bias, mask
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
    task.kind = sl_epilogue_kind(&arg);
    task.output = arg.apart && !arg.masked_by_z ? SL_TASK_WRITES : SL_TASK_UPDATES;
    sl_task_submit(rt, &task);
}
