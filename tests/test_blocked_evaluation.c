/* The logits of an evaluation by blocks of the hidden layers are the logits of the whole network.
 * Networks have several numbers of layers. Blocks do not divide the units. On several ranks, which
 * tests/submodels.sh starts, parameters that travel take the memory that is planned. */
#include "core/memory.h"
#include "tests/every.h"
#include "tests/fixtures.h"
#include "tests/kernels.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"
#include "train/trainer.h"

static void make(struct sl_opened *made, const struct sl_dataset *data, const char *line)
{
    enum { PANEL_BYTES = 300 }; /* shards of few rows, where sub-models have a store */
    struct sl_config config = sl_run_parse(line);
    config.units.shard_bytes = PANEL_BYTES;
    sl_opened_open(made, data, config);
}

/* The same numbers in all stores of a shape, however they are cut, biases too. Variances are not
 * negative. */
static void fill_parameters(struct sl_store *store)
{
    uint32_t state = 7;
    for (int n = 0; n < store->shards; n++) {
        struct sl_tile *tile = store->shard[n].tile[SL_STORE_PARAMETERS];
        const bool averages =
            store->model->layer[store->shard[n].layer].shape.kind->vectors.averages;
        const bool own = store->shard[n].owner == sl_running.rank;
        float *w = own ? sl_tile_acquire(&sl_running, tile, true) : NULL;
        for (int64_t r = 0; r < tile->rows; r++)
            for (int64_t c = 0; c < tile->cols; c++) {
                state = state * 1664525u + 1013904223u;
                if (own)
                    w[r * tile->ld + c] =
                        (float)(state >> 8) / (float)(1 << 23) - (averages ? 0.0f : 1.0f);
            }
        if (own)
            sl_tile_release(tile);
    }
    sl_store_spread(store);
}

/* The logits of this rank, row after row. */
static float *read_logits(const struct sl_opened *made)
{
    const struct sl_network *net = &made->trainer.whole.network;
    const struct sl_matrix *logits = &net->layer[net->layers - 1].output;
    float *all = calloc((size_t)(logits->rows * logits->cols), sizeof *all), *to = all;
    assert_non_null(all);
    for (int i = 0; i < logits->tile_rows * logits->tile_cols; i++) {
        struct sl_tile *tile = &logits->tiles[i];
        if (tile->owner != sl_running.rank)
            continue;
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
    struct sl_opened blocked, plain;
    snprintf(parts, sizeof parts, "%s --submodels 2%s%s", line, store ? " --store " : "",
             store ? store : "");
    sl_blocked_block_bytes = columns * (size_t)data.vertices * (strstr(line, "bf16") ? 2 : 4);
    make(&blocked, &data, parts);
    make(&plain, &data, line);
    assert_non_null(blocked.trainer.blocked.pass);
    assert_true(blocked.trainer.store.shards > blocked.trainer.blocked.list.count);
    assert_int_equal(blocked.trainer.blocked.blocks, blocks);
    evaluate(&blocked);
    evaluate(&plain);
    float *got = read_logits(&blocked), *wanted = read_logits(&plain);
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
    sl_opened_close(&blocked);
    sl_opened_close(&plain);
    sl_fixture_close(&data);
    sl_blocked_block_bytes = 64 << 20;
}

static void check(const char *fixture, const char *line, size_t columns, int blocks,
                  double tolerance)
{
    check_with(fixture, line, NULL, columns, blocks, tolerance);
}

SL_TEST(test_layers)
{
    static const char *const models[] = {
        "--model gcn",
        "--model gcn --product-order gemm --norm row",
        "--model gcn --product-order spmm --no-bias",
        "--model sage",
        "--model sage --aggregator max",
        "--model sage --product-order gemm",
        "--model gin",
        "--model appnp --hops 1",
        "--model appnp --hops 4 --teleport 0.3 --norm row --no-bias",
    };
    char line[SL_MOST_LINE];
    for (size_t k = 0; k < SL_COUNT(models); k++)
        for (int layers = 2; layers <= 5; layers++) {
            snprintf(line, sizeof line, "%s --layers %d --hidden 19 --tiles 3", models[k], layers);
            check("directed-weighted", line, 4, 5, 1e-5);
            check("undirected", line, 7, 3, 1e-5);
        }
}

/* Heads stay together: blocks of 4 columns are those of two heads. */
SL_TEST(test_attention)
{
    char line[SL_MOST_LINE];
    for (int layers = 2; layers <= 5; layers++) {
        snprintf(line, sizeof line, "--model gat --layers %d --tiles 3 --heads 5 --hidden 2",
                 layers);
        check("directed-weighted", line, 5, 3, 1e-5);
        check("undirected", line, 1, 5, 1e-5);
        snprintf(line, sizeof line, "--model gat --layers %d --heads 3 --hidden 3 --out-heads 4",
                 layers);
        check("directed-weighted", line, 8, 2, 1e-5);
    }
    check("directed-weighted", "--model gat --layers 3 --heads 256 --hidden 2 --no-bias", 1, 128,
          1e-4);
}

SL_TEST(test_residual)
{
    static const char *const models[] = {
        "--model resgcn",
        "--model resgcn --block-norm batch --no-bias",
        "--model resgcn --product-order gemm --recompute 2",
        "--model jknet",
        "--model jknet --norm row --no-bias",
        "--model gin --norm-layers row",
    };
    char line[SL_MOST_LINE];
    for (size_t k = 0; k < SL_COUNT(models); k++)
        for (int layers = 1; layers <= 3; layers++) {
            snprintf(line, sizeof line, "%s --layers %d --hidden 19 --tiles 3", models[k], layers);
            check("directed-weighted", line, 4, 5, 1e-5);
            check("undirected", line, 7, 3, 1e-5);
        }
    check("directed-weighted", "--model resgcn --layers 2 --hidden 300", 1, 150, 1e-5);
    check("directed-weighted", "--model jknet --layers 3 --hidden 300", 1, 150, 1e-5);
    check("directed-weighted", "--model resgcn --layers 2 --hidden 13 --precision bf16", 4, 4,
          3e-2);
    check("directed-weighted", "--model jknet --layers 3 --hidden 13 --precision bf16", 4, 4, 3e-2);
}

SL_TEST(test_norms)
{
    static const char *const models[] = {
        "--model gcn --norm-layers row",
        "--model gcn --norm-layers batch",
        "--model sage --norm-layers batch --no-bias",
        "--model sage --aggregator max --norm-layers row",
        "--model gin --norm-layers batch",
        "--model gcn --residual linear --norm-layers row",
        "--model gcn --residual linear --classifier linear --no-bias",
        "--model gcn --encoder linear",
        "--model sage --encoder linear --activation elu --classifier linear",
    };
    char line[SL_MOST_LINE];
    for (size_t k = 0; k < SL_COUNT(models); k++)
        for (int layers = 2; layers <= 3; layers++) {
            snprintf(line, sizeof line, "%s --layers %d --hidden 19 --tiles 3", models[k], layers);
            check("directed-weighted", line, 4, 5, 1e-5);
            check("undirected", line, 7, 3, 1e-5);
        }
    check("directed-weighted", "--norm-layers row --layers 3 --hidden 13 --precision bf16", 4, 4,
          3e-2);
}

SL_TEST(test_blocks)
{
    check("directed-weighted", "--model gcn --layers 4 --hidden 13", 1, 13, 1e-5);
    check("directed-weighted", "--model gcn --layers 4 --hidden 13", 12, 2, 1e-5);
    check("directed-weighted", "--model sage --layers 3 --hidden 12", 4, 3, 1e-5);
    check("directed-weighted", "--model gcn --layers 3 --hidden 300", 1, 150,
          1e-5); /* 255 at most */
    check("directed-weighted", "--model gcn --layers 4 --hidden 13 --precision bf16", 4, 4, 3e-2);
    check("directed-weighted", "--model sage --layers 4 --hidden 13 --precision bf16", 4, 4, 3e-2);
    check("directed-weighted", "--model appnp --hidden 13 --precision bf16", 4, 4, 3e-2);
}

/* The sums in a file. */
SL_TEST(test_store)
{
    check_with("directed-weighted", "--layers 4 --hidden 19", sl_running_dir, 4, 5, 1e-5);
}

/* Grids have columns of ranks, and blocks fewer units than these divide. Each model takes every
 * second distribution; with SL_EVERY=all (make check-every), all. */
SL_TEST(test_ranks)
{
    static const char *const distributions[] = {
        "1d", "halo", "vertex-cut", "2d --grid 1x2x1", "2d --grid 2x2x1", "3d --grid 1x2x2"};
    static const char *const models[] = {
        "--model gcn",
        "--model sage --aggregator max",
        "--model gin",
        "--model appnp --hops 3",
        "--model resgcn",
        "--model jknet",
        "--model resgcn --block-norm batch",
        "--model resgcn --block-aggregator sum",
        "--model gcn --norm-layers row",
        "--model gcn --residual linear --classifier linear",
        "--model gcn --encoder linear --activation elu",
        "--model sage --jump concat",
        "--model gat --heads 6 --hidden 4 --out-heads 2",
    };
    char line[SL_MOST_LINE];
    for (size_t d = 0; d < SL_COUNT(distributions); d++)
        for (size_t m = 0; m < SL_COUNT(models); m++) {
            const int ranks =
                strstr(distributions[d], "1x2x2") || strstr(distributions[d], "2x2x1") ? 4 : 2;
            const bool gat = strstr(models[m], "gat");
            snprintf(line, sizeof line, "--layers 3 --hidden 19 --tiles 5 %s --distribution %s",
                     models[m], distributions[d]);
            if (sl_running.ranks == ranks && ((d + m) % 2 == 0 || sl_every_all()))
                check("undirected", line, gat ? 16 : 6, gat ? 2 : 4, 1e-5);
        }
}

/* On two ranks alone. Shards are large, and blocks small: without a limit, 25 times as much and
 * more travels. Messages are freed a little after they have arrived: on a loaded machine, up to 5.5
 * times as much. */
SL_TEST(test_travelling)
{
    enum { COLUMNS = 250 };
    if (sl_running.ranks > 2)
        return;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_opened blocked;
    struct sl_outcome outcome;
    sl_blocked_block_bytes = COLUMNS * (size_t)data.vertices * 4;
    sl_opened_open(&blocked, &data,
                   sl_run_parse("--layers 4 --hidden 3000 --submodels 8 --distribution 1d"));
    evaluate(&blocked); /* parameters of steps get memory on other ranks than the first */
    sl_runtime_wait(&sl_running);
    sl_memory_return_all();
    const size_t before = sl_memory_in_use();
    sl_trainer_evaluate(&blocked.trainer, &outcome);
    sl_runtime_wait(&sl_running);
    const double grown = (double)(sl_memory_peak() - before),
                 planned = (double)sl_blocked_travelling(&blocked.trainer.blocked);
    const double least = sl_running.rank == 0 ? planned / 4.0 : 0.0;
    if (grown < least || grown > 10.0 * planned)
        fail_msg("%.0f bytes of parameters travel at a time, planned %.0f", grown, planned);
    sl_opened_close(&blocked);
    sl_fixture_close(&data);
    sl_blocked_block_bytes = 64 << 20;
}

static int test_on_ranks(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks),
                                       cmocka_unit_test(test_travelling)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}

int main(int count, char **words)
{
    (void)words;
    if (count > 1)
        return test_on_ranks();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),   cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_store),    cmocka_unit_test(test_attention),
        cmocka_unit_test(test_residual), cmocka_unit_test(test_norms)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
