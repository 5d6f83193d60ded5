/* The cost decides which product of a GCN layer comes first: the widths, the sparsity of the
 * features and that of the graph each tip the choice, all else equal. Expected orders are counted
 * by hand in the comments, by the rates of a usual core (sl_rates_usual): all fits its cache. */
#include "core/error.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

enum { VERTICES = 40, CLASSES = 3 };

/* `entries` in each row: the last columns, or the nearest ones on a circle without the own one. */
static struct sl_csr regular(int64_t cols, int64_t entries, bool circular)
{
    int64_t *indptr = calloc(VERTICES + 1, sizeof *indptr);
    int32_t *indices = calloc((size_t)(VERTICES * entries + 1), sizeof *indices);
    for (int64_t r = 0; r < VERTICES; r++) {
        indptr[r + 1] = (r + 1) * entries;
        int64_t count = 0;
        for (int64_t c = 0; c < cols && count < entries; c++) {
            const int64_t ahead = (c - r + cols) % cols, behind = cols - ahead;
            /* On a circle, the nearest on both sides: symmetric, no self-loop. */
            if (circular ? ahead && (ahead <= entries / 2 || behind <= entries / 2)
                         : cols - c <= entries)
                indices[r * entries + count++] = (int32_t)c;
        }
        assert_int_equal(count, entries);
    }
    return (struct sl_csr){.rows = VERTICES, .cols = cols, .indptr = indptr, .indices = indices};
}

static void csr_free(struct sl_csr *csr)
{
    free((void *)csr->indptr);
    free((void *)csr->indices);
}

/* The order of `layer` in a network from `features` over `hidden` to CLASSES. per_row: stored
 * features of a vertex, 0: dense. */
static enum sl_product_order order_of(int layer, int64_t features, int64_t per_row, int64_t hidden,
                                      int64_t neighbours)
{
    static int32_t labels[VERTICES];
    static const int64_t vertices[] = {0, 1, 2};
    struct sl_dataset data = {
        .path = (char *)"regular",
        .vertices = VERTICES,
        .features = features,
        .classes = CLASSES,
        .adjacency = regular(VERTICES, neighbours, true),
        .symmetric = true,
        .feature_form = per_row ? SL_FEATURES_CSR : SL_FEATURES_DENSE,
        .labels = labels,
        .train = {vertices, 3},
    };
    float *dense = per_row ? NULL : calloc((size_t)(VERTICES * features), sizeof *dense);
    data.features_dense = dense;
    if (per_row)
        data.features_csr = regular(features, per_row, false);
    struct sl_config config = {0};
    assert_int_equal(sl_config_defaults(&config), 0);
    config.network.hidden = hidden;
    config.network.layers = 3;
    struct sl_opened run;
    sl_opened_open(&run, &data, config);
    const enum sl_product_order order = run.trainer.whole.network.layer[layer].order;
    sl_runtime_wait(&sl_running);
    sl_opened_close(&run);
    csr_free(&data.adjacency);
    csr_free(&data.features_csr);
    free(dense);
    return order;
}

/* Layer 1 has one aggregation with the SpMM first, two with the GEMM first; wide rows come faster
 * from a cache, so that over twice the output's width goes first. In layer 2 both have two. */
SL_TEST(test_widths)
{
    assert_int_equal(order_of(0, 16, 0, 64, 10), SL_SPMM_FIRST);
    assert_int_equal(order_of(0, 100, 0, 64, 10), SL_SPMM_FIRST);
    assert_int_equal(order_of(0, 400, 0, 64, 10), SL_GEMM_FIRST);
    assert_int_equal(order_of(2, 16, 0, 2, 10), SL_SPMM_FIRST); /* 2 to 3 */
    assert_int_equal(order_of(2, 16, 0, 4, 10), SL_GEMM_FIRST); /* 4 to 3 */
}

/* From 100 features, x of them stored, to 64, with 31 entries in a row of the adjacency; in µs, the
 * sparse products of the adjacency apart:
 *   GEMM first   0.24 x, and 2 products of 7.5
 *   SpMM first   0.12 x + 2.1 to densify, 10 for dense products, and a product of 8.6 */
SL_TEST(test_sparsity_of_the_features)
{
    assert_int_equal(order_of(0, 100, 1, 64, 30), SL_GEMM_FIRST);
    assert_int_equal(order_of(0, 100, 20, 64, 30), SL_GEMM_FIRST);
    assert_int_equal(order_of(0, 100, 100, 64, 30), SL_SPMM_FIRST);
}

/* From 32 features, 4 of them stored, to 128, with a entries in a row of the adjacency, in µs:
 *   GEMM first   0.70 a + 4.2
 *   SpMM first   0.19 a + 7.9 */
SL_TEST(test_sparsity_of_the_graph)
{
    assert_int_equal(order_of(0, 32, 4, 128, 2), SL_GEMM_FIRST);
    assert_int_equal(order_of(0, 32, 4, 128, 16), SL_SPMM_FIRST);
}

int main(void)
{
    setenv("XDG_CACHE_HOME", "/nonexistent", 1); /* usual rates, not those that were remembered */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_sparsity_of_the_features),
        cmocka_unit_test(test_sparsity_of_the_graph),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
