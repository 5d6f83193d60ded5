/* A slice of the output row stays in registers while the entries of the row are walked. Coming rows
 * are prefetched (DistGNN, section IV-A: register loop). Each number of vectors in a slice has its
 * own functions. They differ in four ways: with or without prefetching, with or without values, 16-
 * or 32-bit columns, and the type of H. */
#include "codelets/gather.h"

#include "codelets/bfloat16.h"

enum { MOST = 8 }; /* vectors of a slice: 8 of the 16 registers that a processor may have */

/* The form of the entries and rows of a product, known when its function is compiled. */
struct form {
    bool prefetches, has_value, narrow, half;
};

SL_INLINE uint32_t column(const void *col, uint32_t e, bool narrow)
{
    return narrow ? ((const uint16_t *)col)[e] : ((const uint32_t *)col)[e];
}

/* Return row c of H, from column `first` on. */
SL_INLINE const char *row_of(const struct sl_gather *g, uint32_t c, int64_t first, bool half)
{
    return (const char *)g->h.data + (c * g->h.ld + first) * (half ? 2 : 4);
}

/* Prefetch the first `lines` cache lines of the row that entry e + ahead meets. */
SL_INLINE void prefetch(const struct sl_gather *g, uint32_t e, int lines, struct form f)
{
    const uint32_t coming = e + g->ahead < g->last ? e + g->ahead : g->last;
    const char *row = row_of(g, column(g->col, coming, f.narrow), 0, f.half);
    for (int line = 0; line < lines; line++)
        __builtin_prefetch(row + 64 * line);
}

/* Turn pairs of vectors of sums into sums of even and sums of odd elements. One load of bfloat16
 * has both kinds, in the upper and in the lower halves of words. */
SL_INLINE void split_pairs(int vectors, sl_floats *sum)
{
    SL_UNROLL for (int s = 0; s + 1 < vectors; s += 2)
    {
        const sl_floats a = sum[s], b = sum[s + 1];
        sum[s] = SL_EVEN(a, b);
        sum[s + 1] = SL_ODD(a, b);
    }
}

SL_INLINE void join_pairs(int vectors, sl_floats *sum)
{
    SL_UNROLL for (int s = 0; s + 1 < vectors; s += 2)
    {
        const sl_floats even = sum[s], odd = sum[s + 1];
        sum[s] = SL_LOWER(even, odd);
        sum[s + 1] = SL_UPPER(even, odd);
    }
}

/* Return vector s of the `vectors` vectors that start at `row`. */
SL_INLINE sl_floats load_vector(const char *row, int s, int vectors, bool half)
{
    if (half && (s | 1) < vectors)
        return sl_load_pairs(row + s / 2 * SL_VECTOR_BYTES, s & 1);
    return sl_load(row, (int64_t)s * SL_LANES, half);
}

/* Make `vectors` vectors of row r of Z, from column `first` on. `lanes` columns of the last vector
 * may be written. Prefetch `lines` cache lines of coming rows. */
SL_INLINE void slice(const struct sl_gather *g, int64_t r, int64_t first, int vectors, int lanes,
                     int lines, struct form f)
{
    const uint32_t end = g->row_ptr[r + 1];
    const void *const col = g->col;
    const float *const value = g->value;
    const char *const h = row_of(g, 0, first, f.half);
    const int64_t row_bytes = g->h.ld * (f.half ? 2 : 4);
    float *const z = g->z + r * g->ldz + first, *const last = z + (vectors - 1) * SL_LANES;
    sl_floats sum[MOST];
    SL_UNROLL for (int s = 0; s < vectors; s++) sum[s] = (sl_floats){0};
    if (g->accumulate) {
        SL_UNROLL for (int s = 0; s < vectors - 1; s++) sum[s] =
            *(const sl_floats *)(z + s * SL_LANES);
        sum[vectors - 1] = lanes < SL_LANES ? sl_load_lanes(last, lanes) : *(const sl_floats *)last;
        if (f.half)
            split_pairs(vectors, sum);
    }
    for (uint32_t e = g->row_ptr[r]; e < end; e++) {
        const char *row = h + column(col, e, f.narrow) * row_bytes;
        const float v = f.has_value ? value[e] : 1.0f;
        if (f.prefetches)
            prefetch(g, e, lines, f);
        SL_UNROLL for (int s = 0; s < vectors; s++)
        {
            const sl_floats x = load_vector(row, s, vectors, f.half);
            if (f.has_value)
                sum[s] += v * x;
            else
                sum[s] += x;
        }
    }
    if (f.half)
        join_pairs(vectors, sum);
    SL_UNROLL for (int s = 0; s < vectors - 1; s++) * (sl_floats *)(z + s * SL_LANES) = sum[s];
    if (lanes < SL_LANES)
        sl_store_lanes(sum[vectors - 1], lanes, last);
    else
        *(sl_floats *)last = sum[vectors - 1];
}

/* Rows [from, to). lanes: writable columns of a row's last vector. slices: number of slices of wide
 * rows, MOST vectors each, all written whole. */
struct rows {
    int64_t from, to;
    int lanes, slices;
};

typedef void rows_function(const struct sl_gather *g, const struct rows *rows);

SL_INLINE void rows_of(const struct sl_gather *g, const struct rows *rows, int vectors,
                       struct form f)
{
    const int bytes = vectors * SL_VECTOR_BYTES / (f.half ? 2 : 1), lanes = rows->lanes;
    for (int64_t r = rows->from; r < rows->to; r++)
        if (!g->accumulate || g->row_ptr[r] < g->row_ptr[r + 1])
            slice(g, r, 0, vectors, lanes, (bytes + 63) / 64, f);
}

/* Make rows of several slices. The first slice prefetches the lines of all slices. */
SL_INLINE void wide_rows_of(const struct sl_gather *g, const struct rows *rows, struct form f)
{
    const int slices = rows->slices, bytes = slices * MOST * SL_VECTOR_BYTES / (f.half ? 2 : 1);
    struct form later = f;
    later.prefetches = false;
    for (int64_t r = rows->from; r < rows->to; r++) {
        if (g->accumulate && g->row_ptr[r] == g->row_ptr[r + 1])
            continue;
        slice(g, r, 0, MOST, SL_LANES, bytes / 64, f);
        for (int s = 1; s < slices; s++)
            slice(g, r, (int64_t)s * MOST * SL_LANES, MOST, SL_LANES, 0, later);
    }
}

/* Define a function for each form and each number of vectors; 0: rows of several slices. */
#define FORM(vectors, number)                                                              \
    static void rows_##vectors##_##number(const struct sl_gather *g, const struct rows *r) \
    {                                                                                      \
        const struct form f = {(number)&8, (number)&4, (number)&2, (number)&1};            \
        if (vectors)                                                                       \
            rows_of(g, r, vectors, f);                                                     \
        else                                                                               \
            wide_rows_of(g, r, f);                                                         \
    }
#define FORMS(vectors) \
    FORM(vectors, 0)   \
    FORM(vectors, 1)   \
    FORM(vectors, 2)   \
    FORM(vectors, 3)   \
    FORM(vectors, 4)   \
    FORM(vectors, 5)   \
    FORM(vectors, 6)   \
    FORM(vectors, 7)   \
    FORM(vectors, 8)   \
    FORM(vectors, 9)   \
    FORM(vectors, 10)  \
    FORM(vectors, 11) FORM(vectors, 12) FORM(vectors, 13) FORM(vectors, 14) FORM(vectors, 15)
#define NAMES(vectors)                                                                         \
    {                                                                                          \
        rows_##vectors##_0, rows_##vectors##_1, rows_##vectors##_2, rows_##vectors##_3,        \
            rows_##vectors##_4, rows_##vectors##_5, rows_##vectors##_6, rows_##vectors##_7,    \
            rows_##vectors##_8, rows_##vectors##_9, rows_##vectors##_10, rows_##vectors##_11,  \
            rows_##vectors##_12, rows_##vectors##_13, rows_##vectors##_14, rows_##vectors##_15 \
    }

FORMS(0)
FORMS(1)
FORMS(2)
FORMS(3)
FORMS(4)
FORMS(5)
FORMS(6)
FORMS(7)
FORMS(8)

static rows_function *const functions[MOST + 1][16] = {
    NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6), NAMES(7), NAMES(8)};

/* Make the last columns, fewer than a vector, where a whole vector would read past the row of H. */
static void last_columns(const struct sl_gather *g, int64_t r)
{
    const bool half = g->h.type == SL_BFLOAT16;
    float *z = g->z + r * g->ldz, sum[SL_LANES] = {0};
    for (int64_t j = 0; g->accumulate && j < g->width; j++)
        sum[j] = z[j];
    for (uint32_t e = g->row_ptr[r]; e < g->row_ptr[r + 1]; e++) {
        const char *row = row_of(g, column(g->col, e, g->narrow), 0, half);
        const float v = g->value ? g->value[e] : 1.0f;
        for (int64_t j = 0; j < g->width; j++)
            sum[j] += v * (half ? sl_widen(((const uint16_t *)row)[j]) : ((const float *)row)[j]);
    }
    for (int64_t j = 0; j < g->width; j++)
        z[j] = sum[j];
}

/* A row of H has `room` elements to read: the last vector is read whole where `room` suffices. The
 * last vector of Z is then written whole where its room suffices, too. Slices of MOST vectors come
 * first, then the vectors that are left, then the columns. */
SL_KERNEL(sl_gather_rows, (const struct sl_gather *g, int64_t from, int64_t to), (g, from, to))
{
    const int64_t whole = g->width / SL_LANES, rest = g->width % SL_LANES;
    const bool padded = rest && sl_padded(g->width) <= g->h.room;
    const int64_t vectors = whole + padded, slices = whole / MOST, left = vectors - slices * MOST;
    const int form = (g->ahead ? 8 : 0) | (g->value ? 4 : 0) | (g->narrow ? 2 : 0) |
                     (g->h.type == SL_BFLOAT16 ? 1 : 0);
    struct rows rows = {from, to, SL_LANES, (int)slices};
    if (slices > 1)
        functions[0][form](g, &rows);
    else if (slices)
        functions[MOST][form](g, &rows);
    if (left) {
        const struct sl_gather part =
            sl_gather_columns(g, slices * MOST * SL_LANES, g->width - slices * MOST * SL_LANES);
        if (padded && sl_padded(g->width) > g->room)
            rows.lanes = (int)rest;
        functions[left][form](&part, &rows);
    }
    if (rest && !padded) {
        const struct sl_gather part =
            sl_gather_columns(g, whole * SL_LANES, g->width - whole * SL_LANES);
        for (int64_t r = from; r < to; r++)
            last_columns(&part, r);
    }
}
