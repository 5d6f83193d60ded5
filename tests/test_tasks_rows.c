/* Submissions of codelets/ as tasks on tiles: element by element and row by row. What comes
 * out is, bit by bit, what the kernel makes of copies of the same buffers (tests/operands.h). The
 * kernels have tests of their own (test_kernels_*.c). */
#include "codelets/accumulate.h"
#include "codelets/bias.h"
#include "codelets/dropout.h"
#include "codelets/init.h"
#include "codelets/jump_max.h"
#include "codelets/pack_rows.h"
#include "codelets/paste.h"
#include "codelets/record.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

/* ---- Element by element ---- */

static void check_bias_gradient(int64_t rows, int64_t cols)
{
    for (int scale = SL_ROW_NONE; scale < SL_ROW_SCALES; scale++) {
        if (scale == SL_ROW_VERTEX)
            continue;
        struct sl_operand scales = sl_operand_scales(rows),
                          g = sl_operand_reals_of_type(rows, cols, sl_some_type()),
                          gradient = sl_operand_reals(4, cols + 3); /* of attention: wider than G */
        gradient.gpu_error = 1e-7 * (double)(rows + 100);           /* sums of as many terms */
        const struct sl_rows from = sl_copied_rows(&g);
        const bool zero = scale == SL_ROW_RIGHT;
        sl_submit_bias_gradient(&sl_running, &scales.tile, (enum sl_row_scale)scale, &g.tile, zero,
                                2, &gradient.tile);
        sl_kernel_bias_gradient(zero ? 0 : rows, cols,
                                sl_copied_scale(&scales, (enum sl_row_scale)scale), &from,
                                sl_copied_row(&gradient, 2));
        sl_settle("bias gradient", &scales, &g, &gradient, NULL);
    }
}

/* Numbers of columns have 32 bits. */
static void check_dropout(int64_t rows, int64_t cols)
{
    const struct sl_dropout drop = sl_some_dropout(0.4);
    static const int64_t columns[] = {0, 4099, 3999999999};
    for (size_t c = 0; c < SL_COUNT(columns); c++) {
        const enum sl_type type = sl_some_type();
        struct sl_operand scales = sl_operand_scales(rows),
                          x = sl_operand_reals_of_type(rows, cols, type),
                          y = sl_operand_blank_of_type(rows, cols, type);
        const struct sl_rows from = sl_copied_rows(&x), to = sl_copied_rows(&y);
        sl_submit_dropout(&sl_running, &drop, &scales.tile, columns[c], &x.tile, &y.tile);
        sl_kernel_dropout(rows, cols, &drop, sl_copied_vertices(&scales), (uint32_t)columns[c],
                          &from, &to);
        sl_settle("dropout", &scales, &x, &y, NULL);
    }
}

static void check_accumulate(int64_t rows, int64_t cols)
{
    struct sl_operand x = sl_operand_reals(rows, cols), y = sl_operand_reals(rows, cols);
    sl_submit_accumulate(&sl_running, &x.tile, &y.tile);
    sl_kernel_accumulate(rows, cols, x.copy, x.tile.ld, y.copy, y.tile.ld);
    sl_settle("accumulate", &x, &y, NULL);
}

static void check_add_scaled(int64_t rows, int64_t cols)
{
    for (int scale = SL_ROW_NONE; scale < SL_ROW_SCALES; scale++) {
        const enum sl_row_scale factor = (enum sl_row_scale)scale;
        if (factor == SL_ROW_VERTEX)
            continue;
        struct sl_operand scales = sl_operand_scales(rows),
                          x = sl_operand_reals_of_type(rows, cols, sl_some_type()),
                          y = sl_operand_reals_of_type(rows, cols, sl_some_type());
        const struct sl_rows from = sl_copied_rows(&x), to = sl_copied_rows(&y);
        sl_submit_add_scaled(&sl_running,
                             &(struct sl_add_scaled){&x.tile, &y.tile, 0.3f, &scales.tile, factor});
        sl_kernel_add_scaled(rows, cols, 0.3f, sl_copied_scale(&scales, factor), &from, &to);
        sl_settle("add scaled", &scales, &x, &y, NULL);
    }
}

static void check_jump_max(int64_t rows, int64_t cols)
{
    enum sl_type type = sl_some_type();
    struct sl_operand scales = sl_operand_scales(rows), x[3],
                      m = sl_operand_blank_of_type(rows, cols, type),
                      argmax = sl_operand_blank(rows, cols), d = sl_operand_reals(rows, cols);
    const struct sl_rows to = sl_copied_rows(&m);
    for (int number = 0; number < 3; number++) {
        const enum sl_row_scale factor = number % 2 ? SL_ROW_INVERSE_RIGHT : SL_ROW_NONE;
        x[number] = sl_operand_reals_of_type(rows, cols, type);
        const struct sl_rows from = sl_copied_rows(&x[number]);
        sl_submit_jump_max(&sl_running, &(struct sl_jump_max_tiles){.number = number,
                                                                    .scales = &scales.tile,
                                                                    .factor = factor,
                                                                    .x = &x[number].tile,
                                                                    .m = &m.tile,
                                                                    .argmax = &argmax.tile});
        sl_kernel_jump_max(rows, cols, number, sl_copied_scale(&scales, factor), &from, &to,
                           (int32_t *)(void *)argmax.copy, argmax.tile.ld);
    }
    for (int number = 0; number < 3; number++) {
        sl_submit_jump_max_back(&sl_running, number, &m.tile, &argmax.tile, number > 0, &d.tile);
        sl_kernel_jump_max_back(rows, cols, number, &to, (int32_t *)(void *)argmax.copy,
                                argmax.tile.ld, number > 0, d.copy, d.tile.ld);
    }
    sl_settle("largest of several", &scales, &x[0], &x[1], &x[2], &m, &argmax, &d, NULL);
}

static void check_fill(int64_t rows, int64_t cols)
{
    struct sl_operand w = sl_operand_blank(rows, cols);
    sl_submit_fill(&sl_running, 2.5f, &w.tile);
    sl_kernel_fill(rows, cols, 2.5f, w.copy, w.tile.ld);
    sl_settle("fill", &w, NULL);
}

static void check_glorot(int64_t rows, int64_t cols)
{
    const uint64_t key = sl_rng_key(11, SL_RNG_INIT, 0, 2);
    for (int64_t further = 0; further < 3; further++) {
        struct sl_operand w = sl_operand_blank(rows + further, cols);
        sl_submit_glorot(
            &sl_running,
            &(struct sl_glorot){
                .key = key,
                .part = {{rows - rows / 3, 0.37f}, {0, 0.0f}, {0, 0.5f}, {rows / 3, 0.37f}}},
            &w.tile);
        sl_kernel_glorot(rows, cols, 0.37f, key, 0, 0, w.copy, w.tile.ld);
        sl_kernel_fill(further, cols, 0.0f, sl_copied_row(&w, rows), w.tile.ld);
        sl_settle("glorot", &w, NULL);
    }
}

static void check_copy(int64_t rows, int64_t cols)
{
    struct sl_operand x = sl_operand_reals(rows, cols), y = sl_operand_blank(rows, cols);
    sl_submit_copy(&sl_running, &x.tile, &y.tile);
    sl_operand_copy(&x, &y);
    sl_settle("copy", &x, &y, NULL);
}

/* All of Y, or part of it; of X, all or part. */
static void check_paste(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 8; option++) {
        const enum sl_type type = sl_some_type();
        const int64_t x_row = option & 1, x_col = option & 1 ? 3 : 0;
        const int64_t y_row = option & 2 ? 2 : 0, y_col = option & 2 ? 1 : 0;
        struct sl_operand x = sl_operand_reals_of_type(rows + x_row, cols + x_col, type);
        struct sl_operand y = option & 2
                                  ? sl_operand_reals_of_type(rows + y_row, cols + y_col + 1, type)
                                  : sl_operand_blank_of_type(rows, cols, type);
        const struct sl_rows from = sl_copied_rows(&x), to = sl_copied_rows(&y),
                             part = sl_rows_at(&from, x_row, x_col),
                             where = sl_rows_at(&to, y_row, y_col);
        sl_submit_paste(&sl_running, &(struct sl_paste_tiles){
                                         .x = &x.tile,
                                         .x_row = x_row,
                                         .x_col = x_col,
                                         .y = &y.tile,
                                         .y_row = y_row,
                                         .y_col = y_col,
                                     });
        sl_kernel_paste(rows, cols, &part, &where);
        sl_settle("paste", &x, &y, NULL);
    }
}

/* Matrices of different types have the same rows, columns and bytes, one after the other. On a GPU,
 * each matrix can get the memory of the matrix before it. */
static void check_types(int64_t rows, int64_t cols)
{
    for (int i = 0; i < 3; i++) {
        const enum sl_type type = i % 2 ? SL_BFLOAT16 : SL_FLOAT32;
        const int64_t ld = i % 2 ? 2 * cols : cols;
        struct sl_operand x = sl_operand_apart(rows, cols, ld, type),
                          y = sl_operand_apart(rows, cols, ld, type);
        const struct sl_rows from = sl_copied_rows(&x), to = sl_copied_rows(&y);
        sl_submit_paste(&sl_running, &(struct sl_paste_tiles){.x = &x.tile, .y = &y.tile});
        sl_kernel_paste(rows, cols, &from, &to);
        sl_settle("paste of another type", &x, &y, NULL);
    }
}

/* ---- Row by row ---- */

/* Some rows of each of three tiles, of one of them none. */
static void check_pack_rows(int64_t rows, int64_t cols)
{
    enum { TILES = 3 };
    const enum sl_type type = sl_some_type();
    const int64_t first[] = {0, rows / 3, rows / 3, rows};
    uint32_t *numbers = sl_row_numbers(rows, 3, false); /* no tile has fewer rows */
    struct sl_operand index = sl_operand_over(numbers, 1, rows, rows, sizeof *numbers), x[TILES];
    for (int t = 0; t < TILES; t++)
        x[t] = sl_operand_reals_of_type(3 + t, cols, type);
    struct sl_operand y = sl_operand_blank_of_type(rows, cols, type);
    sl_submit_pack_rows(&sl_running,
                        &(struct sl_pack_tiles){
                            .index = &index.tile,
                            .count = TILES,
                            .x = (struct sl_tile *[]){&x[0].tile, &x[1].tile, &x[2].tile},
                            .first = first,
                            .y = &y.tile,
                        });
    const struct sl_rows all = sl_copied_rows(&y);
    for (int t = 0; t < TILES; t++) {
        const struct sl_rows from = sl_copied_rows(&x[t]), to = sl_rows_at(&all, first[t], 0);
        sl_kernel_pack_rows(first[t + 1] - first[t], cols, (const uint32_t *)index.copy + first[t],
                            &from, &to);
    }
    sl_settle("pack rows", &index, &x[0], &x[1], &x[2], &y, NULL);
}

static void check_unpack_rows(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 4; option++) {
        const enum sl_type type = sl_some_type();
        const int64_t before = option & 1 ? 2 : 0; /* rows of the list, and after */
        uint32_t *numbers = sl_row_numbers(rows + 2 * before, rows + 5, true);
        struct sl_operand index =
            sl_operand_over(numbers, 1, rows + 2 * before, rows + 2 * before, sizeof *numbers);
        struct sl_operand x = sl_operand_reals_of_type(rows + 2 * before, cols, type),
                          y = sl_operand_reals_of_type(rows + 5, cols, type);
        const struct sl_rows all = sl_copied_rows(&x), from = sl_rows_at(&all, before, 0),
                             to = sl_copied_rows(&y);
        sl_submit_unpack_rows(&sl_running, &(struct sl_unpack_tiles){
                                               .index = &index.tile,
                                               .x = &x.tile,
                                               .first = before,
                                               .rows = rows,
                                               .accumulate = option & 2,
                                               .y = &y.tile,
                                           });
        sl_kernel_unpack_rows(rows, cols, (const uint32_t *)index.copy + before, option & 2, &from,
                              &to);
        sl_settle("unpack rows", &index, &x, &y, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_bias_gradient),

        SL_OPERATION(check_dropout),       SL_OPERATION(check_accumulate),
        SL_OPERATION(check_fill),          SL_OPERATION(check_glorot),
        SL_OPERATION(check_copy),          SL_OPERATION(check_paste),
        SL_OPERATION(check_pack_rows),     SL_OPERATION(check_unpack_rows),
        SL_OPERATION(check_types),         SL_OPERATION(check_add_scaled),
        SL_OPERATION(check_jump_max),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
