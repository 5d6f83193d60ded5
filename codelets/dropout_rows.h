/* Inverted dropout on rows; for the bodies of SL_DISPATCH functions. The mask is a function of
 * (key, vertex, column) and is never stored. */
#ifndef SL_CODELETS_DROPOUT_ROWS_H
#define SL_CODELETS_DROPOUT_ROWS_H

#include "codelets/kernels.h"
#include "codelets/vector.h"

enum { DROPOUT_BATCH = 256 }; /* blocks of four columns whose numbers are made together */

union dropout_words {
    uint64_t block[DROPOUT_BATCH];
    uint16_t word[4 * DROPOUT_BATCH];
};

/* The words of the block (vertex, block): word w of it is word[4·b + w]. */
SL_INLINE void draw_block(uint64_t key, uint32_t vertex, uint32_t block, int64_t b,
                          union dropout_words *words)
{
    uint32_t x, y;
    sl_rng_block(key, vertex, block, &x, &y);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ /* the four words as they lie in memory, at once */
    words->block[b] = (uint64_t)y << 32 | x;
#else
    words->word[4 * b] = (uint16_t)x;
    words->word[4 * b + 1] = (uint16_t)(x >> 16);
    words->word[4 * b + 2] = (uint16_t)y;
    words->word[4 * b + 3] = (uint16_t)(y >> 16);
#endif
}

/* The blocks first … first + count - 1 of rows with `blocks` each. */
SL_INLINE void draw_words(uint64_t key, const uint32_t *vertex, uint32_t block0, uint32_t blocks,
                          int64_t first, int64_t count, union dropout_words *words)
{
    uint32_t row_of[DROPOUT_BATCH], block_of[DROPOUT_BATCH];
    uint32_t row = (uint32_t)(first / blocks), block = (uint32_t)(first % blocks);
    for (int64_t b = 0; b < count; b++) {
        row_of[b] = vertex[row];
        block_of[b] = block0 + block;
        if (++block == blocks) {
            block = 0;
            row++;
        }
    }
    for (int64_t b = 0; b < count; b++)
        draw_block(key, row_of[b], block_of[b], b, words);
}

/* The elements that blocks [start, start + run) of a row cover, the first of them word[offset]. */
SL_INLINE void apply_words(const struct sl_dropout *drop, int64_t cols, uint32_t skip,
                           int64_t start, int64_t run, const uint16_t *word, float after,
                           const float *x, float *y)
{
    const uint32_t threshold = drop->threshold;
    const float scale = drop->scale;
    const int64_t from = start == 0 ? 0 : 4 * start - skip;
    const int64_t to = 4 * (start + run) - skip < cols ? 4 * (start + run) - skip : cols;
    word += start == 0 ? skip : 0;
    for (int64_t j = 0; j < to - from; j++)
        y[from + j] = x[from + j] * (word[j] >= threshold ? scale : 0.0f) * after;
}

/* Y(r, j) = after(r) · (X(r, j) · sl_dropout_factor(drop, vertex[r], column0 + j)); after NULL: 1.
 * Y may be X. */
SL_INLINE void dropout_rows(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                            const uint32_t *vertex, uint32_t column0, const float *after,
                            const float *x, int64_t ldx, float *y, int64_t ldy)
{
    enum { LONG_ROW = 16 }; /* blocks that make whole vectors of their own */
    if (rows == 0 || cols == 0)
        return;
    const uint32_t block0 = column0 / 4, skip = column0 % 4;
    const uint32_t blocks = (uint32_t)((column0 + cols + 3) / 4 - block0);
    union dropout_words words;
    for (int64_t r = 0; blocks >= LONG_ROW && r < rows; r++)
        for (int64_t start = 0; start < blocks; start += DROPOUT_BATCH) {
            const int64_t run = blocks - start < DROPOUT_BATCH ? blocks - start : DROPOUT_BATCH;
            for (int64_t b = 0; b < run; b++)
                draw_block(drop->key, vertex[r], block0 + (uint32_t)(start + b), b, &words);
            apply_words(drop, cols, skip, start, run, words.word, after ? after[r] : 1.0f,
                        x + r * ldx, y + r * ldy);
        }
    const int64_t total = blocks >= LONG_ROW ? 0 : rows * blocks;
    for (int64_t first = 0; first < total; first += DROPOUT_BATCH) {
        const int64_t count = total - first < DROPOUT_BATCH ? total - first : DROPOUT_BATCH;
        draw_words(drop->key, vertex, block0, blocks, first, count, &words);
        for (int64_t b = 0, run; b < count; b += run) {
            const int64_t r = (first + b) / blocks, start = (first + b) % blocks;
            run = blocks - start < count - b ? blocks - start : count - b;
            apply_words(drop, cols, skip, start, run, words.word + 4 * b, after ? after[r] : 1.0f,
                        x + r * ldx, y + r * ldy);
        }
    }
}

#endif
