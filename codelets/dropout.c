/* Inverted dropout. The mask is a function of (key, vertex, column) and is never stored. */
#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

enum { BATCH = 256 }; /* blocks of four columns whose numbers are made together */

/* word[4·b + w]: the 16-bit words of the blocks first … first + count - 1; a row has `blocks`
 * blocks. */
SL_VECTOR static void draw_words(uint64_t key, uint32_t vertex0, uint32_t block0, uint32_t blocks,
                                 int64_t first, int64_t count, uint16_t *word)
{
    uint32_t vertex[BATCH], block[BATCH];
    uint32_t row = (uint32_t)(first / blocks), column = (uint32_t)(first % blocks);
    for (int64_t b = 0; b < count; b++) {
        vertex[b] = vertex0 + row;
        block[b] = block0 + column;
        if (++column == blocks) {
            column = 0;
            row++;
        }
    }
    for (int64_t b = 0; b < count; b++) {
        uint32_t x, y;
        sl_rng_block(key, vertex[b], block[b], &x, &y);
        word[4 * b] = (uint16_t)x;
        word[4 * b + 1] = (uint16_t)(x >> 16);
        word[4 * b + 2] = (uint16_t)y;
        word[4 * b + 3] = (uint16_t)(y >> 16);
    }
}

SL_VECTOR static void apply_words(int64_t cols, const uint16_t *word, uint32_t threshold,
                                  float scale, const float *x, float *y)
{
    for (int64_t j = 0; j < cols; j++)
        y[j] = x[j] * (word[j] >= threshold ? scale : 0.0f);
}

void sl_kernel_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop, uint32_t vertex0,
                       uint32_t column0, const float *x, int64_t ldx, float *y, int64_t ldy)
{
    if (rows == 0 || cols == 0)
        return;
    const uint32_t block0 = column0 / 4, skip = column0 % 4;
    const uint32_t blocks = (uint32_t)((column0 + cols + 3) / 4 - block0);
    const int64_t total = rows * blocks;
    uint16_t word[4 * BATCH];
    for (int64_t first = 0; first < total; first += BATCH) {
        const int64_t count = total - first < BATCH ? total - first : BATCH;
        draw_words(drop->key, vertex0, block0, blocks, first, count, word);
        for (int64_t b = 0; b < count;) {
            const int64_t r = (first + b) / blocks, start = (first + b) % blocks;
            const int64_t run = blocks - start < count - b ? blocks - start : count - b;
            /* Columns of this row that these blocks cover. */
            const int64_t from = start == 0 ? 0 : 4 * start - skip;
            const int64_t to = 4 * (start + run) - skip < cols ? 4 * (start + run) - skip : cols;
            const int64_t offset = 4 * b + (start == 0 ? skip : 0);
            apply_words(to - from, word + offset, drop->threshold, drop->scale, x + r * ldx + from,
                        y + r * ldy + from);
            b += run;
        }
    }
}

/* dropout
 *   argument  struct dropout_argument
 *   buffers   0 R    X (rows, cols)
 *             1 W    Y (rows, cols) */
static void dropout_cpu(void *buffers[], void *argument)
{
    const struct dropout_argument *arg = argument;
    const struct sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_kernel_dropout(y.rows, y.cols, &arg->drop, arg->vertex0, arg->column0, x.data, x.ld, y.data,
                      y.ld);
}

/* dropout_inplace
 *   argument  struct dropout_argument
 *   buffers   0 RW   Z (rows, cols) */
static void dropout_inplace_cpu(void *buffers[], void *argument)
{
    const struct dropout_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[0]);
    sl_kernel_dropout(z.rows, z.cols, &arg->drop, arg->vertex0, arg->column0, z.data, z.ld, z.data,
                      z.ld);
}

SL_CODELET(dropout, 0x9370DB, 2, STARPU_R, STARPU_W);
SL_CODELET(dropout_inplace, 0x8A2BE2, 1, STARPU_RW);

void sl_submit_dropout(struct sl_runtime *rt, const struct sl_dropout *drop, int64_t vertex0,
                       int64_t column0, struct sl_tile *x, struct sl_tile *y)
{
    const struct dropout_argument arg = {*drop, (uint32_t)vertex0, (uint32_t)column0};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &dropout_codelet,
                           .count = 2,
                           .tiles = {x, y},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)y->rows * (double)y->cols,
                       });
}

void sl_submit_dropout_inplace(struct sl_runtime *rt, const struct sl_dropout *drop,
                               int64_t vertex0, int64_t column0, struct sl_tile *z)
{
    const struct dropout_argument arg = {*drop, (uint32_t)vertex0, (uint32_t)column0};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &dropout_inplace_codelet,
                           .count = 1,
                           .tiles = {z},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)z->rows * (double)z->cols,
                       });
}
