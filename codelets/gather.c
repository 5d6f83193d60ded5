/* A slice of the output row stays in registers while the entries of the row are walked. Coming rows
 * are asked for ahead (DistGNN, section IV-A: register loop). Each usual number of vectors in a row
 * has its own functions, on each instruction set. They differ in four ways: with or without asking,
 * with or without values, 16- or 32-bit columns, and the type of H. */
#include "codelets/gather.h"

#include "codelets/bfloat16.h"

enum { CACHED_BYTES = 512 * 1024 }; /* dense rows below this are in the L2 cache anyway */

SL_INLINE uint32_t column(const void *col, uint32_t e, bool narrow)
{
    return narrow ? ((const uint16_t *)col)[e] : ((const uint32_t *)col)[e];
}

/* Row c of H, from column `first` on. */
SL_INLINE const char *row_of(const struct sl_gather *g, uint32_t c, int64_t first, bool half)
{
    return (const char *)g->h.data + (c * g->h.ld + first) * (half ? 2 : 4);
}

/* Asks for the lines with `vectors` vectors of the row that entry e + ahead meets. */
SL_INLINE void ask(const struct sl_gather *g, uint32_t e, int vectors, bool narrow, bool half)
{
    const uint32_t coming = e + g->ahead < g->last ? e + g->ahead : g->last;
    const char *row = row_of(g, column(g->col, coming, narrow), 0, half);
    for (int line = 0; line < (half ? (vectors + 1) / 2 : vectors); line++)
        __builtin_prefetch(row + 64 * line);
}

/* `lanes` columns of the last vector, where Z's rows are not padded. */
SL_INLINE void load_lanes(const float *z, int lanes, sl_floats *sum)
{
    float part[SL_LANES] = {0};
    for (int j = 0; j < lanes; j++)
        part[j] = z[j];
    *sum = *(const sl_floats *)part;
}

SL_INLINE void store_lanes(float *z, const sl_floats *sum, int lanes)
{
    float part[SL_LANES];
    *(sl_floats *)part = *sum;
    for (int j = 0; j < lanes; j++)
        z[j] = part[j];
}

/* Turn pairs of vectors of sums into sums of even and sums of odd elements. One load of bfloat16
 * has both kinds: in the upper and in the lower halves of words. */
SL_INLINE void split_pairs(int vectors, sl_floats *sum)
{
    for (int s = 0; s + 1 < vectors; s += 2) {
        const sl_floats a = sum[s], b = sum[s + 1];
        sum[s] = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                         28, 30);
        sum[s + 1] = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25,
                                             27, 29, 31);
    }
}

SL_INLINE void join_pairs(int vectors, sl_floats *sum)
{
    for (int s = 0; s + 1 < vectors; s += 2) {
        const sl_floats even = sum[s], odd = sum[s + 1];
        sum[s] = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                                         7, 23);
        sum[s + 1] = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                             29, 14, 30, 15, 31);
    }
}

/* Vector s of `vectors`, of a row that starts at `row`. */
SL_INLINE void load_vector(const char *row, int s, int vectors, bool half, sl_floats *x)
{
    if (half && (s | 1) < vectors)
        sl_load_pairs(row + s / 2 * 64, s & 1, x);
    else
        sl_load(row, s * SL_LANES, half, x);
}

/* What the entries and rows of a product are; known when its function is compiled. */
struct form {
    bool has_value, narrow, half;
};

/* The first …, `vectors` of them, of row r; only `lanes` columns of the last vector may be written.
 * `asked` vectors of coming rows are asked for on the way. */
SL_INLINE void slice(const struct sl_gather *g, int64_t r, int64_t first, int vectors, int lanes,
                     int asked, struct form f)
{
    const uint32_t end = g->row_ptr[r + 1];
    const void *const col = g->col;
    const float *const value = g->value;
    const char *const h = row_of(g, 0, first, f.half);
    const int64_t row_bytes = g->h.ld * (f.half ? 2 : 4);
    float *const z = g->z + r * g->ldz + first;
    sl_floats sum[8];
    for (int s = 0; s < vectors; s++)
        sum[s] = (sl_floats){0};
    if (g->accumulate) {
        for (int s = 0; s < vectors - 1; s++)
            sum[s] = *(const sl_floats *)(z + s * SL_LANES);
        const float *last = z + (vectors - 1) * SL_LANES;
        if (lanes < SL_LANES)
            load_lanes(last, lanes, &sum[vectors - 1]);
        else
            sum[vectors - 1] = *(const sl_floats *)last;
        if (f.half)
            split_pairs(vectors, sum);
    }
    for (uint32_t e = g->row_ptr[r]; e < end; e++) {
        const char *row = h + column(col, e, f.narrow) * row_bytes;
        const float v = f.has_value ? value[e] : 1.0f;
        if (asked)
            ask(g, e, asked, f.narrow, f.half);
        for (int s = 0; s < vectors; s++) {
            sl_floats x;
            load_vector(row, s, vectors, f.half, &x);
            if (f.has_value)
                sum[s] += v * x;
            else
                sum[s] += x;
        }
    }
    if (f.half)
        join_pairs(vectors, sum);
    for (int s = 0; s < vectors - 1; s++)
        *(sl_floats *)(z + s * SL_LANES) = sum[s];
    if (lanes < SL_LANES)
        store_lanes(z + (vectors - 1) * SL_LANES, &sum[vectors - 1], lanes);
    else
        *(sl_floats *)(z + (vectors - 1) * SL_LANES) = sum[vectors - 1];
}

/* Any number of vectors, `most` at a time; the first slice asks for the coming rows in full. */
SL_INLINE void any_row(const struct sl_gather *g, int64_t r, int vectors, int lanes, int most,
                       bool asks, struct form f)
{
    for (int v = 0, take; v < vectors; v += take) {
        const int left = vectors - v, asked = asks && v == 0 ? vectors : 0;
        const int64_t first = (int64_t)v * SL_LANES;
        take = left >= most ? most : left > 4 ? 4 : left;
        const int tail = take == left ? lanes : SL_LANES;
        switch (take) {
        case 1:
            slice(g, r, first, 1, tail, asked, f);
            break;
        case 2:
            slice(g, r, first, 2, tail, asked, f);
            break;
        case 3:
            slice(g, r, first, 3, tail, asked, f);
            break;
        case 4:
            slice(g, r, first, 4, tail, asked, f);
            break;
        default:
            slice(g, r, first, 8, tail, asked, f);
        }
    }
}

/* The last `count` columns where a whole vector would read past the row of H. */
SL_INLINE void last_columns(const struct sl_gather *g, int64_t r, int64_t first, int64_t count,
                            bool half)
{
    float *z = g->z + r * g->ldz + first, sum[SL_LANES] = {0};
    for (int64_t j = 0; g->accumulate && j < count; j++)
        sum[j] = z[j];
    for (uint32_t e = g->row_ptr[r]; e < g->row_ptr[r + 1]; e++) {
        const char *row = row_of(g, column(g->col, e, g->narrow), first, half);
        const float v = g->value ? g->value[e] : 1.0f;
        for (int64_t j = 0; j < count; j++)
            sum[j] += v * (half ? sl_widen(((const uint16_t *)row)[j]) : ((const float *)row)[j]);
    }
    for (int64_t j = 0; j < count; j++)
        z[j] = sum[j];
}

/* `fixed`: vectors of a row; 0: any number. A row of H has `room` elements to read: the last vector
 * is read whole where `room` suffices. The last vector of Z is then written whole where ldz
 * suffices, too. */
SL_INLINE void rows_body(const struct sl_gather *g, int64_t from, int64_t to, int fixed, int most,
                         bool asks, struct form f)
{
    const int64_t whole = g->width / SL_LANES, rest = g->width % SL_LANES;
    const bool padded = rest && (whole + 1) * SL_LANES <= g->h.room;
    const int vectors = fixed ? fixed : (int)(whole + padded);
    const int lanes = padded && vectors * SL_LANES > g->ldz ? (int)rest : SL_LANES;
    const int64_t columns = padded ? 0 : rest;
    for (int64_t r = from; r < to; r++) {
        if (g->accumulate && g->row_ptr[r] == g->row_ptr[r + 1])
            continue;
        if (fixed)
            slice(g, r, 0, fixed, lanes, asks ? fixed : 0, f);
        else
            any_row(g, r, vectors, lanes, most, asks, f);
        if (columns)
            last_columns(g, r, (int64_t)vectors * SL_LANES, columns, f.half);
    }
}

typedef void rows_function(const struct sl_gather *g, int64_t from, int64_t to);

#define FORM(level, attribute, vectors, most, number)                                    \
    attribute static void rows_##level##_##vectors##_##number(const struct sl_gather *g, \
                                                              int64_t from, int64_t to)  \
    {                                                                                    \
        const struct form f = {(number)&4, (number)&2, (number)&1};                      \
        rows_body(g, from, to, vectors, most, (number)&8, f);                            \
    }
#define FORMS(level, attribute, vectors, most) \
    FORM(level, attribute, vectors, most, 0)   \
    FORM(level, attribute, vectors, most, 1)   \
    FORM(level, attribute, vectors, most, 2)   \
    FORM(level, attribute, vectors, most, 3)   \
    FORM(level, attribute, vectors, most, 4)   \
    FORM(level, attribute, vectors, most, 5)   \
    FORM(level, attribute, vectors, most, 6)   \
    FORM(level, attribute, vectors, most, 7)   \
    FORM(level, attribute, vectors, most, 8)   \
    FORM(level, attribute, vectors, most, 9)   \
    FORM(level, attribute, vectors, most, 10)  \
    FORM(level, attribute, vectors, most, 11)  \
    FORM(level, attribute, vectors, most, 12)  \
    FORM(level, attribute, vectors, most, 13)  \
    FORM(level, attribute, vectors, most, 14)  \
    FORM(level, attribute, vectors, most, 15)
/* 8 vectors are 8 registers of AVX-512, and 16, too many, of AVX2. */
#define LEVEL(level, attribute, most) \
    FORMS(level, attribute, 0, most)  \
    FORMS(level, attribute, 1, most)  \
    FORMS(level, attribute, 2, most)  \
    FORMS(level, attribute, 3, most)  \
    FORMS(level, attribute, 4, most)
#define NAME(level, vectors, number) rows_##level##_##vectors##_##number
#define ROW(level, vectors)                                                               \
    {                                                                                     \
        NAME(level, vectors, 0), NAME(level, vectors, 1), NAME(level, vectors, 2),        \
            NAME(level, vectors, 3), NAME(level, vectors, 4), NAME(level, vectors, 5),    \
            NAME(level, vectors, 6), NAME(level, vectors, 7), NAME(level, vectors, 8),    \
            NAME(level, vectors, 9), NAME(level, vectors, 10), NAME(level, vectors, 11),  \
            NAME(level, vectors, 12), NAME(level, vectors, 13), NAME(level, vectors, 14), \
            NAME(level, vectors, 15)                                                      \
    }
#define TABLE(level)                                                              \
    {                                                                             \
        ROW(level, 0), ROW(level, 1), ROW(level, 2), ROW(level, 3), ROW(level, 4) \
    }

LEVEL(base, , 4)
#ifdef SL_X86_LEVELS
LEVEL(v3, SL_TARGET_V3, 4)
LEVEL(v4, SL_TARGET_V4, 8)
FORMS(v4, SL_TARGET_V4, 8, 8)
#endif

enum { FIXED = 5, FORMS_COUNT = 16 };

static rows_function *const functions[SL_INSTRUCTIONS][FIXED][FORMS_COUNT] = {
    [SL_INSTRUCTIONS_BASE] = TABLE(base),
#ifdef SL_X86_LEVELS
    [SL_INSTRUCTIONS_V3] = TABLE(v3),
    [SL_INSTRUCTIONS_V4] = TABLE(v4),
    [SL_INSTRUCTIONS_BF16] = TABLE(v4),
#endif
};

#ifdef SL_X86_LEVELS
static rows_function *const eight[FORMS_COUNT] = ROW(v4, 8);
#endif

void sl_gather_rows(const struct sl_gather *g, int64_t from, int64_t to)
{
    const enum sl_instructions level = sl_instructions_get();
    const int64_t whole = g->width / SL_LANES, rest = g->width % SL_LANES;
    const int64_t vectors = whole + (rest && (whole + 1) * SL_LANES <= g->h.room);
    const int form = (g->ahead ? 8 : 0) | (g->value ? 4 : 0) | (g->narrow ? 2 : 0) |
                     (g->h.type == SL_BFLOAT16 ? 1 : 0);
#ifdef SL_X86_LEVELS
    if (level >= SL_INSTRUCTIONS_V4 && vectors == 8) {
        eight[form](g, from, to);
        return;
    }
#endif
    functions[level][vectors < FIXED ? vectors : 0][form](g, from, to);
}

struct sl_gather sl_gather_make(const struct sl_sparse *a, int64_t b, int64_t width,
                                const struct sl_rows *h, bool accumulate, float *z, int64_t ldz)
{
    const uint32_t *row_ptr = a->row_ptr + b * a->rows;
    const int64_t size = (int64_t)sl_type_size(h->type);
    const bool cached = a->block_cols * h->ld * size <= CACHED_BYTES;
    return (struct sl_gather){
        .row_ptr = row_ptr,
        .col = a->col,
        .value = a->value,
        .narrow = a->narrow,
        .h = sl_rows_at(h, b * a->block_cols, 0),
        .z = z,
        .ldz = ldz,
        .width = width,
        .accumulate = accumulate,
        .last = row_ptr[a->rows] ? row_ptr[a->rows] - 1 : 0,
        .ahead = cached ? 0 : (uint32_t)sl_gather_ahead(width * size),
    };
}
