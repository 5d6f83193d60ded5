/* Random numbers come in vectors, however short the rows are. Usually each entry of a batch has its
 * own draw. Where the entries of a row share draws, all draws of the row come at a time. */
#include "codelets/kept.h"

#include "codelets/vector.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { MOST_DRAWS = 64 }; /* draws of a row made together */
enum {
    GROUP = SL_SIXTEEN,
    GROUPS = SL_KEPT_ENTRIES / GROUP
}; /* a word has a bit for each entry of a group */
_Static_assert(SL_KEPT_ENTRIES % GROUP == 0, "a batch has whole groups");

/* Entries of a batch before dropout. */
struct entries {
    uint32_t count;
    uint32_t column[SL_KEPT_ENTRIES]; /* columns in the matrix that dropout counts */
    uint32_t vertex[SL_KEPT_ENTRIES];
    uint32_t keep[SL_KEPT_ENTRIES]; /* 0 or 1; 0 beyond `count` */
    const float *value;             // (count), or NULL: all 1
    uint16_t kept[GROUPS];          /* `keep` as bits, a word for each group */
    uint32_t before[GROUPS];        /* kept entries before the group */
};

/* Parameters of draws. One draw serves columns with equal upper bits. */
struct draws {
    uint64_t key;
    uint32_t bits, shift; /* bits of an element; log2 of the columns of a draw */
    uint32_t mask;        /* mask of an element's bits */
    uint32_t least;       /* an element is kept if its bits are at least this */
};

static struct draws draws_of(const struct sl_dropout *drop)
{
    const uint32_t bits = sl_dropout_bits(drop);
    return (struct draws){
        .key = drop->key,
        .bits = bits,
        .shift = (uint32_t)__builtin_ctz(sl_dropout_columns(drop)),
        .mask = 0xFFFFu >> (16 - bits),
        .least = drop->threshold >> (16 - bits),
    };
}

/* Set keep[e] to whether the entry (vertex[e], column[e]) is kept, for at most SL_KEPT_ENTRIES
 * entries. Draws have a loop of their own: it also becomes vectors on processors whose vectors
 * shift all lanes alike. */
static void draw_entries(const struct draws *d, uint32_t count, const uint32_t *vertex,
                         const uint32_t *column, uint32_t *restrict keep)
{
    const uint64_t key = d->key;
    const uint32_t bits = d->bits, shift = d->shift, mask = d->mask, least = d->least;
    const uint32_t last = (1u << shift) - 1;
    uint32_t x[SL_KEPT_ENTRIES], y[SL_KEPT_ENTRIES];
    for (uint32_t e = 0; e < count; e++)
        sl_rng_block(key, vertex[e], column[e] >> shift, &x[e], &y[e]);
    for (uint32_t e = 0; e < count; e++) {
        const uint32_t position = bits * (column[e] & last), upper = 0 - (position >> 5);
        const uint32_t word = (y[e] & upper) | (x[e] & ~upper);
        keep[e] = (word >> (position & 31) & mask) >= least;
    }
}

/* Set keep[e] for entries of one vertex, whose columns need the draws [first, first + draws). */
static void draw_row(const struct draws *d, uint32_t first, uint32_t draws, uint32_t count,
                     uint32_t vertex, const uint32_t *column, uint32_t *restrict keep)
{
    uint32_t word[2 * MOST_DRAWS];
    const uint64_t key = d->key;
    const uint32_t mask = d->mask, least = d->least;
    const uint32_t per_word = (uint32_t)__builtin_ctz(d->bits), start = first << d->shift;
    for (uint32_t i = 0; i < draws; i++)
        sl_rng_block(key, vertex, first + i, &word[2 * i], &word[2 * i + 1]);
    for (uint32_t e = 0; e < count; e++) {
        const uint32_t position = (column[e] - start) << per_word;
        keep[e] = (word[position >> 5] >> (position & 31) & mask) >= least;
    }
}

/* ---- Batches ---- */

/* Choose the rows of a batch: whole rows, or a piece of one row. Return how many entries they have.
 */
static uint32_t take_rows(struct sl_kept_walk *walk, const uint32_t *row_ptr, struct sl_kept *batch)
{
    const int64_t rows = walk->end, first = walk->row;
    const uint32_t begin = walk->entry, left = row_ptr[first + 1] - begin;
    batch->row = first;
    batch->rows = 1;
    batch->continued = begin > row_ptr[first];
    if (left > SL_KEPT_ENTRIES) {
        walk->entry = begin + SL_KEPT_ENTRIES;
        return SL_KEPT_ENTRIES;
    }
    while (!batch->continued && first + batch->rows < rows && batch->rows < SL_KEPT_ENTRIES &&
           row_ptr[first + batch->rows + 1] - begin <= SL_KEPT_ENTRIES)
        batch->rows++;
    walk->row = first + batch->rows;
    walk->entry = row_ptr[walk->row];
    return walk->entry - begin;
}

/* Set column[e] = column0 + the column of entry begin + e. */
static void read_columns(const struct sl_sparse *x, uint32_t begin, uint32_t count,
                         uint32_t column0, uint32_t *restrict column)
{
    if (count == 0) /* X may have no entries, and no array of columns */
        return;
    const uint16_t *narrow = (const uint16_t *)x->col + begin;
    const uint32_t *wide = (const uint32_t *)x->col + begin;
    if (x->narrow)
        for (uint32_t e = 0; e < count; e++)
            column[e] = column0 + narrow[e];
    else
        for (uint32_t e = 0; e < count; e++)
            column[e] = column0 + wide[e];
}

/* Return the number of a block's entry in the batch that begins with entry `begin`, at most
 * `count`. */
static uint32_t clip(uint32_t entry, uint32_t begin, uint32_t count)
{
    const uint32_t from = entry > begin ? entry - begin : 0;
    return from < count ? from : count;
}

/* Draw for all entries of the batch, whose rows begin at row_ptr. */
static void draw(const struct sl_kept_walk *walk, const struct sl_kept *batch,
                 const uint32_t *row_ptr, uint32_t begin, uint32_t column0, struct entries *all)
{
    const struct draws draws = draws_of(walk->drop);
    const uint32_t first = column0 >> draws.shift,
                   last = (column0 + (uint32_t)walk->x->block_cols - 1) >> draws.shift;
    const uint32_t across = last - first + 1;
    const bool by_rows = across <= MOST_DRAWS && all->count > 2 * across * batch->rows;
    for (int64_t i = 0; i < batch->rows; i++) {
        const uint32_t from = clip(row_ptr[i], begin, all->count),
                       to = clip(row_ptr[i + 1], begin, all->count),
                       v = walk->vertex[batch->row + i];
        if (by_rows)
            draw_row(&draws, first, across, to - from, v, all->column + from, all->keep + from);
        else
            for (uint32_t e = from; e < to; e++)
                all->vertex[e] = v;
    }
    if (!by_rows)
        draw_entries(&draws, all->count, all->vertex, all->column, all->keep);
    for (uint32_t e = all->count; e % GROUP; e++)
        all->keep[e] = 0;
}

/* ---- What is kept ---- */

#ifdef __AVX512F__
/* Copy kept entries into the batch, 16 entries at a time. */
static void keep(struct entries *all, uint32_t column0, float scale, struct sl_kept *batch)
{
    uint32_t kept = 0;
    for (uint32_t e = 0; e < all->count; e += GROUP) {
        const __m512i keep = _mm512_loadu_si512(all->keep + e);
        const __m512i column =
            _mm512_sub_epi32(_mm512_loadu_si512(all->column + e), _mm512_set1_epi32((int)column0));
        const uint32_t left = all->count - e;
        const __mmask16 there = (__mmask16)(left < GROUP ? (1u << left) - 1 : 0xFFFF);
        const __m512 value =
            all->value ? _mm512_maskz_loadu_ps(there, all->value + e) : _mm512_set1_ps(1.0f);
        const __mmask16 mask = _mm512_test_epi32_mask(keep, keep);
        _mm512_storeu_si512(batch->col + kept, _mm512_maskz_compress_epi32(mask, column));
        _mm512_storeu_ps(
            batch->value + kept,
            _mm512_maskz_compress_ps(mask, _mm512_mul_ps(value, _mm512_set1_ps(scale))));
        all->kept[e / GROUP] = mask;
        all->before[e / GROUP] = kept;
        kept += (uint32_t)__builtin_popcount(mask);
    }
    batch->count = kept;
}
#else
enum { FOUR = 4 };

/* Copy the kept ones of the entries from entry e on, four at most, into the batch behind `kept`
 * others. Return a bit for each entry. */
static uint32_t keep_one_by_one(const struct entries *all, uint32_t e, uint32_t column0,
                                float scale, uint32_t kept, struct sl_kept *batch)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < FOUR && e + i < all->count; i++) {
        batch->col[kept] = all->column[e + i] - column0;
        batch->value[kept] = scale * (all->value ? all->value[e + i] : 1.0f);
        kept += all->keep[e + i];
        bits |= all->keep[e + i] << i;
    }
    return bits;
}

#ifdef __AVX2__
/* Do the work of keep_one_by_one for four entries that exist: the kept ones become the first lanes
 * of a vector. */
static uint32_t keep_four(const struct entries *all, uint32_t e, uint32_t column0, float scale,
                          uint32_t kept, struct sl_kept *batch)
{
    static const int32_t order[1 << FOUR][FOUR] = {
        {0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
        {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};
    const __m128i keep = _mm_loadu_si128((const __m128i *)(all->keep + e));
    const int bits = _mm_movemask_ps(_mm_castsi128_ps(_mm_slli_epi32(keep, 31)));
    const __m128i lanes = _mm_loadu_si128((const __m128i *)order[bits]);
    const __m128i column = _mm_sub_epi32(_mm_loadu_si128((const __m128i *)(all->column + e)),
                                         _mm_set1_epi32((int)column0));
    const __m128 value = all->value ? _mm_loadu_ps(all->value + e) : _mm_set1_ps(1.0f);
    _mm_storeu_si128((__m128i *)(batch->col + kept),
                     _mm_castps_si128(_mm_permutevar_ps(_mm_castsi128_ps(column), lanes)));
    _mm_storeu_ps(batch->value + kept,
                  _mm_permutevar_ps(_mm_mul_ps(_mm_set1_ps(scale), value), lanes));
    return (uint32_t)bits;
}
#else
#define keep_four keep_one_by_one
#endif

static void keep(struct entries *all, uint32_t column0, float scale, struct sl_kept *batch)
{
    uint32_t kept = 0;
    for (uint32_t e = 0; e < all->count; e += FOUR) {
        if (e % GROUP == 0) {
            all->before[e / GROUP] = kept;
            all->kept[e / GROUP] = 0;
        }
        const uint32_t bits = all->count - e < FOUR
                                  ? keep_one_by_one(all, e, column0, scale, kept, batch)
                                  : keep_four(all, e, column0, scale, kept, batch);
        all->kept[e / GROUP] |= (uint16_t)(bits << e % GROUP);
        kept += (uint32_t)__builtin_popcount(bits);
    }
    batch->count = kept;
}
#endif

/* Return how many kept entries precede entry e of the batch. */
static uint32_t kept_before(const struct entries *all, const struct sl_kept *batch, uint32_t e)
{
    if (e == all->count)
        return batch->count;
    const uint32_t below = all->kept[e / GROUP] & ((1u << e % GROUP) - 1);
    return all->before[e / GROUP] + (uint32_t)__builtin_popcount(below);
}

SL_KERNEL_RETURNS(bool, sl_kept_next, (struct sl_kept_walk * walk, struct sl_kept *batch),
                  (walk, batch))
{
    const struct sl_sparse *x = walk->x;
    const uint32_t *row_ptr = x->row_ptr + walk->block * x->rows;
    const uint32_t column0 = walk->drop->column0 + (uint32_t)(walk->block * x->block_cols);
    const uint32_t begin = walk->entry;
    struct entries all;
    if (walk->row == walk->end)
        return false;
    all.count = take_rows(walk, row_ptr, batch);
    all.value = x->value ? x->value + begin : NULL;
    row_ptr += batch->row;
    read_columns(x, begin, all.count, column0, all.column);
    draw(walk, batch, row_ptr, begin, column0, &all);
    keep(&all, column0, walk->drop->scale, batch);
    for (int64_t i = 0; i <= batch->rows; i++)
        batch->row_ptr[i] = kept_before(&all, batch, clip(row_ptr[i], begin, all.count));
    return true;
}
