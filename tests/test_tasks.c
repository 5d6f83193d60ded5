/* Operations that no layer submits yet, as tasks: the tile that comes out is what the kernel gives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codelets/submit.h"
#include "core/error.h"

enum { ROWS = 7, COLS = 5, MORE = 11 };

static struct sl_runtime rt;

static float value(int64_t r, int64_t j)
{
    return (float)(r * 10 + j + 1);
}

static struct sl_tile make(int64_t rows, int64_t cols)
{
    struct sl_tile tile;
    assert_int_equal(sl_tile_create(&rt, &tile, rows, cols, sizeof(float), 0), 0);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            ((float *)tile.memory)[r * cols + j] = value(r, j);
    return tile;
}

static const uint32_t rows_of[ROWS] = {10, 0, 3, 3, 7, 1, 10};

static struct sl_tile make_index(void)
{
    struct sl_tile tile;
    assert_int_equal(sl_tile_create(&rt, &tile, 1, ROWS, sizeof(uint32_t), 0), 0);
    for (int r = 0; r < ROWS; r++)
        ((uint32_t *)tile.memory)[r] = rows_of[r];
    return tile;
}

static void test_scale_rows(void **state)
{
    (void)state;
    struct sl_tile s = make(1, ROWS), x = make(ROWS, COLS), y = make(ROWS, COLS);
    sl_submit_scale_rows(&rt, &s, &x, &y);
    const float *out = sl_tile_acquire(&rt, &y, false);
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < COLS; j++)
            assert_true(out[r * COLS + j] == value(0, r) * value(r, j));
    sl_tile_release(&y);
    sl_tile_destroy(&s);
    sl_tile_destroy(&x);
    sl_tile_destroy(&y);
}

static void test_gather_rows(void **state)
{
    (void)state;
    struct sl_tile index = make_index(), x = make(MORE, COLS), y = make(ROWS, COLS);
    sl_submit_gather_rows(&rt, &index, &x, &y);
    const float *out = sl_tile_acquire(&rt, &y, false);
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < COLS; j++)
            assert_true(out[r * COLS + j] == value(rows_of[r], j));
    sl_tile_release(&y);
    sl_tile_destroy(&index);
    sl_tile_destroy(&x);
    sl_tile_destroy(&y);
}

static void test_scatter_rows(void **state)
{
    (void)state;
    struct sl_tile index = make_index(), x = make(ROWS, COLS), y = make(MORE, COLS);
    sl_submit_scatter_rows(&rt, &index, &x, &y);
    float wanted[MORE][COLS];
    for (int r = 0; r < MORE; r++)
        for (int j = 0; j < COLS; j++)
            wanted[r][j] = value(r, j);
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < COLS; j++)
            wanted[rows_of[r]][j] += value(r, j);
    const float *out = sl_tile_acquire(&rt, &y, false);
    for (int r = 0; r < MORE; r++)
        for (int j = 0; j < COLS; j++)
            assert_true(out[r * COLS + j] == wanted[r][j]);
    sl_tile_release(&y);
    sl_tile_destroy(&index);
    sl_tile_destroy(&x);
    sl_tile_destroy(&y);
}

static int start(void **state)
{
    (void)state;
    return sl_runtime_start(&rt, &(struct sl_runtime_options){.scheduler = "lws", .workers = 2});
}

static int stop(void **state)
{
    (void)state;
    sl_runtime_stop(&rt);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_rows),
        cmocka_unit_test(test_gather_rows),
        cmocka_unit_test(test_scatter_rows),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
