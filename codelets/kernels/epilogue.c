/* The epilogue in one pass over a sum; dropout alone is an epilogue, too. Random numbers are made a
 * run of columns at a time, or, where rows are shorter, for several rows together. */
#include "codelets/epilogue.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "codelets/exponential.h"

enum {
    DRAWN_BLOCKS = 256, /* blocks of 64 bits that are drawn together */
    RUN = 4096,         /* most columns of a run */
    CHAINS = 4,         /* vectors of blocks at a time, so that none waits for the one before it */
};

static const float zeros[RUN + SL_LANES];

/* ---- Random words ---- */

/* How dropout draws: not at all, by one bit, or by sixteen bits of each element. */
enum draw { DRAW_NOTHING, DRAW_BITS, DRAW_HALVES };

/* The place of the random bits for some columns of a row. */
struct place {
    uint32_t first; /* block of the first column */
    int64_t blocks; /* blocks that the columns need */
    int64_t word;   /* 16-bit word of the first column in its block, and the bits before it there */
    int shift;
};

static struct place place_of(const struct sl_epilogue *e, int64_t first, int64_t cols)
{
    const int64_t bits = sl_dropout_bits(&e->drop), columns = sl_dropout_columns(&e->drop);
    const int64_t column0 = e->column0 + e->drop.column0 + first, skip = column0 % columns;
    return (struct place){
        .first = (uint32_t)(column0 / columns),
        .blocks = (skip + cols + columns - 1) / columns,
        .word = skip * bits / 16,
        .shift = (int)(skip * bits % 16),
    };
}

static enum draw draw_of(const struct sl_dropout *drop)
{
    if (!drop->threshold)
        return DRAW_NOTHING;
    return sl_dropout_bits(drop) == 1 ? DRAW_BITS : DRAW_HALVES;
}

/* Make the words of CHAINS · SL_LANES blocks, whose vertices are U and whose numbers are V. */
SL_INLINE void draw_chains(uint64_t key, sl_words u[CHAINS], sl_words v[CHAINS], uint16_t *word)
{
    SL_RNG_KEYS(key);
#define ROUND(r)                                                                    \
    SL_UNROLL for (int c = 0; c < CHAINS; c++) u[c] += v[c];                        \
    SL_UNROLL for (int c = 0; c < CHAINS; c++) v[c] = v[c] << r | v[c] >> (32 - r); \
    SL_UNROLL for (int c = 0; c < CHAINS; c++) v[c] ^= u[c];
#define ADD(p, q) SL_UNROLL for (int c = 0; c < CHAINS; c++) u[c] += (p), v[c] += (q);
    SL_RNG_ROUNDS(ROUND, ADD)
#undef ROUND
#undef ADD
    SL_UNROLL for (int c = 0; c < CHAINS; c++)
    {
        if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) /* the lower half of a word comes first */
            u[c] = u[c] << 16 | u[c] >> 16, v[c] = v[c] << 16 | v[c] >> 16;
        *(sl_words_at *)(word + 4 * c * SL_LANES) = SL_LOWER(u[c], v[c]);
        *(sl_words_at *)(word + (4 * c + 2) * SL_LANES) = SL_UPPER(u[c], v[c]);
    }
}

/* Set U to the vertices and V to the numbers of the SL_LANES blocks from block `at` on. Each row
 * has 2^log blocks, numbered from `first` on: a lane of U is repeated 2^log times. */
SL_INLINE void count_blocks(const uint32_t *vertex, uint32_t first, int log, int64_t at,
                            sl_words *u, sl_words *v)
{
    *u = *(const sl_words_at *)(vertex + (at >> log));
    for (int i = 0; i < log && 1 << i < SL_LANES; i++)
        *u = SL_LOWER(*u, *u);
    *v = (((uint32_t)at + SL_LANE_NUMBERS) & ((1u << log) - 1)) + first;
}

/* Draw blocks first … first + count - 1 of each of `rows` rows. VERTEX has room behind the rows. */
SL_INLINE void draw(uint64_t key, const uint32_t *vertex, int64_t rows, uint32_t first,
                    int64_t count, uint16_t *word)
{
    const bool power = (count & (count - 1)) == 0;
    const int log = __builtin_ctzll((unsigned long long)count);
    sl_words u[CHAINS], v[CHAINS];
    uint32_t vertices[CHAINS * SL_LANES], blocks[CHAINS * SL_LANES];
    for (int64_t at = 0, row = 0, block = 0; at < rows * count; at += CHAINS * SL_LANES) {
        if (power) {
            SL_UNROLL for (int c = 0; c < CHAINS; c++)
                count_blocks(vertex, first, log, at + c * SL_LANES, &u[c], &v[c]);
        } else {
            for (int i = 0; i < CHAINS * SL_LANES; i++) {
                vertices[i] = row < rows ? vertex[row] : 0;
                blocks[i] = first + (uint32_t)block++;
                if (block == count)
                    block = 0, row++;
            }
            SL_UNROLL for (int c = 0; c < CHAINS; c++)
            {
                u[c] = *(const sl_words_at *)(vertices + c * SL_LANES);
                v[c] = *(const sl_words_at *)(blocks + c * SL_LANES);
            }
        }
        draw_chains(key, u, v, word + 4 * at);
    }
}

/* ---- A run of a row ---- */

enum form { FLOATS, HALVES, NOTHING };

/* A run: elements of a row, and the operands that they share. */
struct run {
    int64_t count;
    float factor, lowest, kept;    /* kept: factor of elements that are not dropped */
    const float *bias, *last_bias; /* last_bias: bias of the last elements, fewer than a vector */
    bool padded;                   /* the last elements have room for a vector in all operands */
    const void *mask, *sum;
    void *z;
    const uint16_t *word; /* random word of the first element, whose bits follow the word's first
                             `shift` bits */
    int shift;
    uint32_t threshold;
};

/* Return the lanes of X where `mask` is 0, and 0 in the others. */
SL_INLINE sl_floats clear(sl_ints mask, sl_floats x)
{
    return (sl_floats)((sl_ints)x & ~mask);
}

/* Return the mask of dropped elements among SL_LANES elements from element j on. */
SL_INLINE sl_ints find_dropped(const struct run *run, int64_t j, enum draw draw)
{
    if (draw == DRAW_BITS) {
        const int64_t bit = run->shift + j;
        const uint16_t *word = run->word + bit / 16;
        const uint32_t bits = (word[0] | (uint32_t)word[1] << 16) >> bit % 16;
        const sl_words lane = ((sl_words){0} + 1) << SL_LANE_NUMBERS;
        return (sl_ints)((lane & bits) == 0);
    }
    return (sl_ints)(sl_extend((const sl_halves *)(run->word + j)) < run->threshold);
}

/* Run the epilogue on SL_LANES elements from element j on. */
SL_INLINE void vector_of_form(const struct run *run, int64_t j, const float *bias, enum form sum,
                              enum form mask, enum form z, enum draw draw, bool scaled)
{
    sl_floats x = sl_load(run->sum, j, sum == HALVES);
    x = x * run->factor + *(const sl_floats *)bias;
    x = clear((sl_ints)(x < run->lowest), x); /* NaN stays */
    if (mask != NOTHING)
        x = clear((sl_ints) ~(sl_load(run->mask, j, mask == HALVES) > 0.0f), x);
    sl_floats factor = (sl_floats){0} + run->kept;
    if (draw != DRAW_NOTHING)
        factor = clear(find_dropped(run, j, draw), factor);
    if (scaled)
        x *= factor;
    if (z == HALVES)
        sl_store_halves(x, (uint16_t *)run->z + j);
    else
        *(sl_floats *)((float *)run->z + j) = x;
}

SL_INLINE size_t size_of(enum form form)
{
    return form == FLOATS ? 4 : 2;
}

/* Run the epilogue on the last elements, from j on and fewer than a vector, in a vector of their
 * own. */
SL_INLINE void rest_of_form(const struct run *run, int64_t j, enum form sum, enum form mask,
                            enum form z, enum draw draw)
{
    float sums[SL_LANES] = {0}, masks[SL_LANES] = {0}, out[SL_LANES];
    const size_t count = (size_t)(run->count - j), from = (size_t)j;
    struct run rest = *run;
    memcpy(sums, (const char *)run->sum + from * size_of(sum), count * size_of(sum));
    if (mask != NOTHING)
        memcpy(masks, (const char *)run->mask + from * size_of(mask), count * size_of(mask));
    if (draw == DRAW_HALVES)
        rest.word += j;
    else if (draw == DRAW_BITS)
        rest.word += (run->shift + j) / 16, rest.shift = (int)((run->shift + j) % 16);
    rest.sum = sums;
    rest.mask = masks;
    rest.z = out;
    vector_of_form(&rest, 0, run->last_bias, sum, mask, z, draw, true);
    memcpy((char *)run->z + from * size_of(z), out, count * size_of(z));
}

SL_INLINE void run_of_form(const struct run *run, enum form sum, enum form mask, enum form z,
                           enum draw draw)
{
    const int64_t whole = run->count / SL_LANES * SL_LANES, end = run->padded ? run->count : whole;
    const bool plain = mask == NOTHING && draw == DRAW_NOTHING && run->kept == 1.0f;
    int64_t j = 0;
    for (; plain && j < whole; j += SL_LANES)
        vector_of_form(run, j, run->bias + j, sum, mask, z, draw, false);
    for (; j < end; j += SL_LANES)
        vector_of_form(run, j, j < whole ? run->bias + j : run->last_bias, sum, mask, z, draw,
                       true);
    if (end < run->count)
        rest_of_form(run, end, sum, mask, z, draw);
}

/* ---- Rows ---- */

/* The operands that all rows of a call share. */
struct call {
    const struct sl_epilogue *e;
    const struct sl_rows *sum, *z;
    int64_t cols;
    bool padded;
    float last_bias[SL_LANES];
};

/* Columns [first, last) of rows [from, to), and `words` random words for each row. The bits of a
 * row's first element follow `shift` bits of its first word. */
struct block {
    int64_t from, to, first, last;
    const uint16_t *word;
    int64_t words;
    int shift;
};

/* Return the factor of sums of row r. */
SL_INLINE float row_factor(const struct sl_epilogue *e, int64_t r)
{
    const float before = e->before ? e->scale * e->before[r] : e->scale;
    return e->factor ? before * e->factor[r] : before;
}

SL_INLINE void block_of_form(const struct call *call, const struct block *b, enum form sum,
                             enum form mask, enum form z, enum draw draw)
{
    const struct sl_epilogue *e = call->e;
    struct run run = {
        .count = b->last - b->first,
        .lowest = e->relu ? 0.0f : -INFINITY,
        .bias = e->bias ? e->bias + b->first : zeros,
        .last_bias = call->last_bias,
        .padded = call->padded,
        .shift = b->shift,
        .threshold = e->drop.threshold,
    };
    for (int64_t r = b->from; r < b->to; r++) {
        run.factor = row_factor(e, r);
        run.kept = (draw != DRAW_NOTHING ? e->drop.scale : 1.0f) * (e->after ? e->after[r] : 1.0f);
        run.mask = sl_rows_at(&e->mask, r, b->first).data;
        run.sum = sl_rows_at(call->sum, r, b->first).data;
        run.z = sl_rows_at(call->z, r, b->first).data;
        if (draw != DRAW_NOTHING)
            run.word = b->word + (r - b->from) * b->words;
        run_of_form(&run, sum, mask, z, draw);
    }
}

typedef void block_function(const struct call *call, const struct block *block);

/* Define a function for each form of the operands: SUM and mask, Z, and draws. */
#define BLOCK(sum, mask, z, draw)                                                                \
    static void block_##sum##_##mask##_##z##_##draw(const struct call *c, const struct block *b) \
    {                                                                                            \
        block_of_form(c, b, sum, mask, z, draw);                                                 \
    }
#define BLOCKS_TO(sum, mask, z)       \
    BLOCK(sum, mask, z, DRAW_NOTHING) \
    BLOCK(sum, mask, z, DRAW_BITS)    \
    BLOCK(sum, mask, z, DRAW_HALVES)
#define BLOCKS(sum, mask)        \
    BLOCKS_TO(sum, mask, FLOATS) \
    BLOCKS_TO(sum, mask, HALVES)
#define NAMES_TO(sum, mask, z)                                      \
    {                                                               \
        [DRAW_NOTHING] = block_##sum##_##mask##_##z##_DRAW_NOTHING, \
        [DRAW_BITS] = block_##sum##_##mask##_##z##_DRAW_BITS,       \
        [DRAW_HALVES] = block_##sum##_##mask##_##z##_DRAW_HALVES,   \
    }
#define NAMES(sum, mask)                                                                \
    {                                                                                   \
        [FLOATS] = NAMES_TO(sum, mask, FLOATS), [HALVES] = NAMES_TO(sum, mask, HALVES), \
    }

BLOCKS(FLOATS, FLOATS)
BLOCKS(FLOATS, HALVES)
BLOCKS(FLOATS, NOTHING)
BLOCKS(HALVES, NOTHING)

/* A bfloat16 SUM has no mask. */
static block_function *const of_floats[][2][3] = {
    [FLOATS] = NAMES(FLOATS, FLOATS),
    [HALVES] = NAMES(FLOATS, HALVES),
    [NOTHING] = NAMES(FLOATS, NOTHING),
};
static block_function *const of_halves[2][3] = NAMES(HALVES, NOTHING);

static enum form form_of(const struct sl_rows *rows)
{
    return rows->type == SL_BFLOAT16 ? HALVES : FLOATS;
}

static block_function *function_of(const struct call *call)
{
    const enum form z = form_of(call->z), mask = form_of(&call->e->mask);
    const enum draw draw = draw_of(&call->e->drop);
    if (form_of(call->sum) == HALVES)
        return of_halves[z][draw];
    return of_floats[call->e->mask.data ? mask : NOTHING][z][draw];
}

/* Finish rows with dropout. The words of several rows, or of a run of one row, are made together.
 * All runs but the last of a row have whole vectors. */
static void drop_rows(const struct call *call, block_function *finish, int64_t from, int64_t to)
{
    enum { ROOM = CHAINS * SL_LANES };
    const int64_t columns = sl_dropout_columns(&call->e->drop);
    const int64_t drawn = columns * DRAWN_BLOCKS < RUN ? columns * DRAWN_BLOCKS : RUN;
    const int64_t most = drawn - (columns > SL_SIXTEEN ? columns : SL_SIXTEEN);
    const int64_t blocks = place_of(call->e, 0, call->cols).blocks,
                  at_once = call->cols <= most ? DRAWN_BLOCKS / blocks : 1;
    uint16_t words[4 * DRAWN_BLOCKS + SL_SIXTEEN] = {
        0}; /* a last vector may read behind the words */
    uint32_t last_vertices[DRAWN_BLOCKS + ROOM] = {0};
    for (int64_t r = from; r < to; r += at_once) {
        const int64_t rows = to - r < at_once ? to - r : at_once;
        const uint32_t *vertex = call->e->vertex + r;
        if (to - r < at_once + ROOM)
            vertex = memcpy(last_vertices, vertex, (size_t)rows * sizeof *vertex);
        for (int64_t j = 0; j < call->cols; j += most) {
            const int64_t left = call->cols - j, count = left < most ? left : most;
            const struct place at = place_of(call->e, j, count);
            draw(call->e->drop.key, vertex, rows, at.first, at.blocks, words);
            finish(call, &(struct block){.from = r,
                                         .to = r + rows,
                                         .first = j,
                                         .last = j + count,
                                         .word = words + at.word,
                                         .words = 4 * at.blocks,
                                         .shift = at.shift});
        }
    }
}

/* Convert elements of a row from one type to the other. */
SL_INLINE void convert(int64_t count, const void *x, bool half_x, void *z)
{
    int64_t j = 0;
    for (; j + SL_LANES <= count; j += SL_LANES)
        if (half_x)
            *(sl_floats *)((float *)z + j) = sl_load(x, j, true);
        else
            sl_store_halves(sl_load(x, j, false), (uint16_t *)z + j);
    for (; j < count; j++)
        if (half_x)
            ((float *)z)[j] = sl_widen(((const uint16_t *)x)[j]);
        else
            ((uint16_t *)z)[j] = sl_narrow(((const float *)x)[j]);
}

/* Copy SUM to Z. */
static void copy_rows(int64_t from, int64_t to, int64_t cols, const struct sl_rows *sum,
                      const struct sl_rows *z)
{
    const bool joined = sum->ld == cols && z->ld == cols; /* all rows are one long row */
    const int64_t count = joined ? (to - from) * cols : cols, step = joined ? to - from : 1;
    for (int64_t r = from; r < to; r += step) {
        const void *x = sl_rows_at(sum, r, 0).data;
        void *out = sl_rows_at(z, r, 0).data;
        if (sum->type == z->type)
            memmove(out, x, (size_t)count * sl_type_size(z->type));
        else if (z->type == SL_BFLOAT16)
            convert(count, x, false, out);
        else
            convert(count, x, true, out);
    }
}

static void finish_linear(const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
                          const struct sl_rows *sum, const struct sl_rows *z)
{
    if (!sl_epilogue_has_steps(e)) {
        copy_rows(from, to, cols, sum, z);
        return;
    }
    const int64_t rest = cols % SL_LANES, padded = sl_padded(cols);
    struct call call = {.e = e, .sum = sum, .z = z, .cols = cols};
    call.padded =
        sum->room >= padded && z->room >= padded && (!e->mask.data || e->mask.room >= padded);
    for (int64_t j = 0; e->bias && j < rest; j++)
        call.last_bias[j] = e->bias[cols - rest + j];
    block_function *const finish = function_of(&call);
    if (e->drop.threshold && cols > 0)
        drop_rows(&call, finish, from, to);
    else
        for (int64_t j = 0; j < cols; j += RUN)
            finish(&call, &(struct block){.from = from,
                                          .to = to,
                                          .first = j,
                                          .last = j + RUN < cols ? j + RUN : cols});
}

/* ---- ELU ---- */

/* Set x = e^x - 1 where x <= 0, but never to 0, which would mean dropped. X has room for a last
 * vector. */
static void elu(int64_t count, float *restrict x)
{
    for (int64_t i = 0; i < count; i += SL_LANES) {
        sl_floats *const at = (sl_floats *)(x + i);
        const sl_ints negative = SL_SIGN(sl_ints, *at);
        const sl_floats power = sl_exponential((sl_floats)(negative & (sl_ints)*at)) - 1.0f;
        *at = (sl_floats)SL_SELECT(sl_ints, negative, power, *at);
    }
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] == 0.0f ? FLT_MIN : x[i];
}

static void elu_back(int64_t count, float by, const struct sl_rows *mask, float *restrict x)
{
    for (int64_t j = 0; j < count; j++) {
        const float y = mask->type == SL_BFLOAT16 ? sl_widen(((const uint16_t *)mask->data)[j])
                                                  : ((const float *)mask->data)[j];
        const float below = y < 0.0f && by > 0.0f ? x[j] * (1.0f + by * y) : 0.0f;
        x[j] = y > 0.0f ? x[j] : below;
    }
}

/* Finish rows with elu, in passes over some rows at a time: the steps before elu, elu or its mask,
 * the steps after it. */
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
                const float by = here.mask_scale ? e->elu_back * here.mask_scale[i] : e->elu_back;
                elu_back(width, by, &mask, x + i * width);
            }
            finish_linear(&after, 0, rows, width, &between, &out);
        }
}

SL_KERNEL_BF16(sl_epilogue_rows,
               (const struct sl_epilogue *e, int64_t from, int64_t to, int64_t cols,
                const struct sl_rows *sum, const struct sl_rows *z),
               (e, from, to, cols, sum, z))
{
    if (e->elu || (e->mask.data && e->elu_back > 0.0f))
        finish_elu(e, from, to, cols, sum, z);
    else
        finish_linear(e, from, to, cols, sum, z);
}
