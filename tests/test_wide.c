/* The logits of an evaluation by blocks of the hidden layers are the logits of the whole network,
 * on one rank. Networks have several numbers of layers. Blocks do not divide the units. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fixtures.h"
#include "tests/kernels.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "train/trainer.h"

static void make(struct sl_opened *made, const struct sl_dataset *data, const char *line)
{
    enum { PANEL_BYTES = 300 }; /* panels of few rows, where sub-models have a store */
    struct sl_config config = sl_run_parse(line);
    config.panel_bytes = PANEL_BYTES;
    sl_opened_open(made, data, config);
}

/* The same numbers in all stores of a shape, however they are cut, biases too. */
static void fill_parameters(struct sl_store *store)
{
    uint32_t state = 7;
    for (int n = 0; n < store->panels; n++) {
        struct sl_tile *tile = store->panel[n].tile[SL_STORE_PARAMETERS];
        float *w = sl_tile_acquire(&sl_running, tile, true);
        for (int64_t r = 0; r < tile->rows; r++)
            for (int64_t c = 0; c < tile->cols; c++) {
                state = state * 1664525u + 1013904223u;
                w[r * tile->ld + c] = (float)(state >> 8) / (float)(1 << 23) - 1.0f;
            }
        sl_tile_release(tile);
    }
    sl_store_spread(store);
}

/* The logits, row after row. */
static float *read_logits(const struct sl_opened *made)
{
    const struct sl_network *net = &made->trainer.whole.network;
    const struct sl_matrix *logits = &net->layer[net->layers - 1].output;
    float *all = calloc((size_t)(logits->rows * logits->cols), sizeof *all), *to = all;
    assert_non_null(all);
    assert_int_equal(logits->tile_cols, 1);
    for (int i = 0; i < logits->tile_rows; i++) {
        struct sl_tile *tile = &logits->tiles[i];
        const float *from = sl_tile_acquire(&sl_running, tile, false);
        for (int64_t r = 0; r < tile->rows; r++, to += tile->cols)
            memcpy(to, from + r * tile->ld, (size_t)tile->cols * sizeof *to);
        sl_tile_release(tile);
    }
    return all;
}

static void evaluate(struct sl_opened *made)
{
    struct sl_outcome outcome;
    fill_parameters(&made->trainer.store);
    sl_trainer_evaluate(&made->trainer, &outcome);
    sl_trainer_evaluate(&made->trainer, &outcome); /* what the first one left is not added to */
}

/* `store`: the directory of a file for the sums, or NULL. The tolerance is of the largest logit. */
static void check_with(const char *fixture, const char *line, const char *store, size_t columns,
                       int blocks, double tolerance)
{
    char parts[SL_MOST_LINE];
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    struct sl_opened wide, plain;
    snprintf(parts, sizeof parts, "%s --submodels 2%s%s", line, store ? " --store " : "",
             store ? store : "");
    sl_wide_block_bytes = columns * (size_t)data.vertices * (strstr(line, "bf16") ? 2 : 4);
    make(&wide, &data, parts);
    make(&plain, &data, line);
    assert_non_null(wide.trainer.wide.pass);
    assert_true(wide.trainer.store.panels > wide.trainer.model.layers);
    assert_int_equal(wide.trainer.wide.blocks, blocks);
    evaluate(&wide);
    evaluate(&plain);
    float *got = read_logits(&wide), *wanted = read_logits(&plain);
    double most = 0.0, apart = 0.0;
    for (int64_t i = 0; i < data.vertices * data.classes; i++) {
        most = fmax(most, fabs((double)wanted[i]));
        apart = fmax(apart, fabs((double)got[i] - (double)wanted[i]));
        if (isnan(got[i]))
            fail_msg("%s on %s: no number", line, fixture);
    }
    if (!(most > 0.0 && apart <= tolerance * most))
        fail_msg("%s on %s: off by %g of %g", line, fixture, apart, most);
    free(got);
    free(wanted);
    sl_opened_close(&wide);
    sl_opened_close(&plain);
    sl_fixture_close(&data);
    sl_wide_block_bytes = 64 << 20;
}

static void check(const char *fixture, const char *line, size_t columns, int blocks,
                  double tolerance)
{
    check_with(fixture, line, NULL, columns, blocks, tolerance);
}

static void test_layers(void **state)
{
    (void)state;
    static const char *const models[] = {
        "--model gcn",
        "--model gcn --product-order gemm --norm row",
        "--model gcn --product-order spmm --no-bias",
        "--model sage",
        "--model sage --aggregator max",
        "--model sage --product-order gemm",
        "--model gin",
    };
    char line[SL_MOST_LINE];
    for (size_t k = 0; k < SL_COUNT(models); k++)
        for (int layers = 2; layers <= 5; layers++) {
            snprintf(line, sizeof line, "%s --layers %d --hidden 19 --tiles 3", models[k], layers);
            check("directed-weighted", line, 4, 5, 1e-5);
            check("undirected", line, 7, 3, 1e-5);
        }
}

static void test_blocks(void **state)
{
    (void)state;
    check("directed-weighted", "--model gcn --layers 4 --hidden 13", 1, 13, 1e-5);
    check("directed-weighted", "--model gcn --layers 4 --hidden 13", 12, 2, 1e-5);
    check("directed-weighted", "--model sage --layers 3 --hidden 12", 4, 3, 1e-5);
    check("directed-weighted", "--model gcn --layers 3 --hidden 300", 1, 150,
          1e-5); /* 255 at most */
    check("directed-weighted", "--model gcn --layers 4 --hidden 13 --precision bf16", 4, 4, 3e-2);
    check("directed-weighted", "--model sage --layers 4 --hidden 13 --precision bf16", 4, 4, 3e-2);
}

/* The sums in a file. */
static void test_store(void **state)
{
    (void)state;
    check_with("directed-weighted", "--layers 4 --hidden 19", sl_running_dir, 4, 5, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_store)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
