/* Training runs that should be alike: whatever the scheduler, the workers, the tiles, the blocks
 * and the instructions are, and in whatever form the features come. */
#include "codelets/instructions.h"
#include "core/error.h"
#include "data/generate/generate_community.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

static const double TILES = 1e-4, FORMS = 1e-5;

/* ---- Equal runs ---- */

static void restart(const char *scheduler, int workers)
{
    sl_runtime_stop(&sl_running);
    if (sl_runtime_start(&sl_running, &(struct sl_runtime_options){.scheduler = scheduler,
                                                                   .workers = workers,
                                                                   .quiet = true}))
        fail_msg("%s", sl_error_message());
    assert_string_equal(sl_running.process->scheduler, scheduler);
}

/* A graph with enough work for tasks to overtake each other. */
static struct sl_dataset community(void)
{
    const struct sl_community_options options = {
        .vertices = 1500,
        .classes = 5,
        .degree = 12,
        .features = 24,
        .seed = 4,
        .homophily = 0.6,
        .feature_noise = 2,
    };
    struct sl_dataset data;
    if (sl_generate_community(&options, &data))
        fail_msg("%s", sl_error_message());
    return data;
}

/* Who computes what, and when, must not change a bit. The second configuration chooses its own
 * tiles, which must not follow from the workers. */
static const char *const lines[] = {
    "--epochs 20 --tiles 6 --layers 3 --hidden 9 --patience 15",
    "--epochs 4 --hidden 64",
};
enum { LINES = 2 };

static void check_again(const struct sl_dataset *data, const struct sl_run *first, const char *what)
{
    for (int l = 0; l < LINES; l++) {
        struct sl_run again = sl_run_train(data, lines[l], &(struct sl_around){0});
        sl_run_same(&first[l], &again, 1, what);
        sl_run_free(&again);
    }
}

SL_TEST(test_schedulers)
{
    static const char *const schedulers[] = {"eager", "lws", "prio", "dmda"};
    struct sl_dataset data = community();
    struct sl_run first[LINES];
    for (int l = 0; l < LINES; l++)
        first[l] = sl_run_train(&data, lines[l], &(struct sl_around){0});
    for (int s = 0; s < 4; s++)
        for (int workers = 1; workers <= 2; workers++) {
            char what[64];
            snprintf(what, sizeof what, "%s, %d workers", schedulers[s], workers);
            restart(schedulers[s], workers);
            check_again(&data, first, what);
        }
    restart("lws", 2);
    for (int r = 0; r < 3; r++)
        check_again(&data, first, "the same run again");
    for (int l = 0; l < LINES; l++)
        sl_run_free(&first[l]);
    sl_dataset_close(&data);
}

/* Another cut adds up in another order. */
SL_TEST(test_tiles)
{
    struct sl_dataset data = community();
    struct sl_run first = sl_run_train(&data, "--epochs 30 --tiles 1", &(struct sl_around){0});
    static const int tiles[] = {0, 2, 5, 13};
    for (int t = 0; t < 4; t++) {
        char line[64];
        snprintf(line, sizeof line, "--epochs 30 --tiles %d", tiles[t]);
        struct sl_run other = sl_run_train(&data, line, &(struct sl_around){0});
        sl_run_close(&other, &first, TILES, line);
        sl_run_free(&other);
    }
    sl_run_free(&first);
    sl_dataset_close(&data);
}

SL_TEST(test_tile_per_vertex)
{
    struct sl_run one = sl_run_train_fixture("directed-weighted", "--epochs 30 --tiles 1");
    struct sl_run all = sl_run_train_fixture("directed-weighted", "--epochs 30 --tiles 53");
    struct sl_run more = sl_run_train_fixture("directed-weighted", "--epochs 30 --tiles 1000");
    sl_run_close(&all, &one, TILES, "a tile per vertex");
    sl_run_same(&all, &more, 1, "more tiles than vertices");
    sl_run_free(&one);
    sl_run_free(&all);
    sl_run_free(&more);
}

/* Train with one more option on the line. */
static struct sl_run train_with(const struct sl_dataset *data, const char *line, const char *option)
{
    char whole[SL_MOST_LINE];
    assert_true(snprintf(whole, sizeof whole, "%s %s", line, option) < SL_MOST_LINE);
    return sl_run_train(data, whole, &(struct sl_around){0});
}

/* Blocks of columns are summed in the order of the columns: not a bit changes. */
static void check_blocks(const struct sl_dataset *data, const char *line)
{
    static const char *const blocks[] = {"--block-columns 1", "--block-columns 3",
                                         "--block-columns 100", "--block-columns 1000000"};
    struct sl_run usual = train_with(data, line, "");
    for (int b = 0; b < 4; b++) {
        struct sl_run other = train_with(data, line, blocks[b]);
        sl_run_same(&usual, &other, 1, blocks[b]);
        sl_run_free(&other);
    }
    sl_run_free(&usual);
}

SL_TEST(test_blocks)
{
    static const char *const fixtures[] = {"directed-weighted", "undirected", "isolated"};
    for (int f = 0; f < 3; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixtures[f]));
        check_blocks(&data, "--epochs 20 --tiles 1");
        check_blocks(&data, "--epochs 20 --tiles 5 --layers 3 --hidden 7");
        check_blocks(&data, "--epochs 10 --tiles 3 --no-cache-aggregate --product-order spmm");
        sl_fixture_close(&data);
    }
    struct sl_dataset data = community();
    check_blocks(&data, "--epochs 5 --tiles 7");
    check_blocks(&data, "--epochs 5 --hidden 100");
    check_blocks(&data, "--epochs 5 --tiles 40"); /* more than one task per row tile */
    sl_dataset_close(&data);
}

/* Sums in pieces end as the same bfloat16 numbers as sums at once. */
SL_TEST(test_blocks_bfloat16)
{
    static const char *const fixtures[] = {"directed-weighted", "identity"};
    for (int f = 0; f < 2; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixtures[f]));
        check_blocks(&data, "--precision bf16 --epochs 20 --tiles 1");
        check_blocks(&data, "--precision bf16 --epochs 20 --tiles 19 --layers 3 --hidden 7");
        check_blocks(&data, "--precision bf16 --epochs 10 --tiles 3 --product-order spmm "
                            "--no-cache-aggregate");
        sl_fixture_close(&data);
    }
    struct sl_dataset data = community();
    check_blocks(&data, "--precision bf16 --epochs 5 --tiles 7");
    check_blocks(&data, "--precision bf16 --epochs 5 --input-dropout 0 --layers 3");
    sl_dataset_close(&data);
}

/* Each layer rounds an element to 8 bits: the error is up to 2^-9 of the element. Losses differ, by
 * a few times 2^-9 at most. */
static void check_bfloat16(const struct sl_dataset *data, const char *line)
{
    struct sl_run single = train_with(data, line, ""),
                  half = train_with(data, line, "--precision bf16");
    sl_run_close(&half, &single, 0.02, line);
    assert_true(half.losses[half.epochs] != single.losses[single.epochs]);
    sl_run_free(&single);
    sl_run_free(&half);
}

SL_TEST(test_bfloat16)
{
    static const char *const fixtures[] = {"directed-weighted", "undirected", "isolated",
                                           "identity"};
    for (int f = 0; f < 4; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixtures[f]));
        check_bfloat16(&data, "--epochs 20 --tiles 3");
        check_bfloat16(&data, "--epochs 20 --layers 1 --product-order gemm");
        check_bfloat16(&data, "--epochs 20 --layers 1 --product-order spmm --no-cache-aggregate");
        check_bfloat16(&data, "--epochs 20 --layers 4 --hidden 21 --norm row");
        check_bfloat16(&data, "--epochs 20 --no-cache-aggregate --product-order spmm --layers 3");
        check_bfloat16(&data, "--epochs 20 --product-order gemm --layers 3 --input-dropout 0");
        sl_fixture_close(&data);
    }
    struct sl_dataset data = community();
    check_bfloat16(&data, "--epochs 20");
    check_bfloat16(&data, "--epochs 20 --input-dropout 0 --hidden 40");
    check_bfloat16(&data, "--epochs 20 --layers 1");
    sl_dataset_close(&data);
}

/* Each instruction set rounds in its own way, and the best one is what is used without asking. */
static void check_instructions(const struct sl_dataset *data, const char *line)
{
    struct sl_run best = train_with(data, line, "");
    for (int level = SL_INSTRUCTIONS_BASE; level <= (int)sl_instructions_best(); level++) {
        char option[32];
        snprintf(option, sizeof option, "--instructions %s", sl_instructions_names[level]);
        struct sl_run other = train_with(data, line, option);
        assert_int_equal(sl_instructions_get(), level);
        sl_run_close(&other, &best, FORMS, option);
        if (level == (int)sl_instructions_best())
            sl_run_same(&best, &other, 1, option);
        sl_run_free(&other);
    }
    sl_run_free(&best);
}

SL_TEST(test_instructions)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    check_instructions(&data, "--epochs 20 --tiles 3 --layers 3 --hidden 21");
    sl_fixture_close(&data);
    data = sl_fixture_open(sl_fixture_find("undirected-weighted"));
    check_instructions(&data, "--epochs 20 --norm row --input-dropout 0 --block-columns 9");
    sl_fixture_close(&data);
    data = community();
    check_instructions(&data, "--epochs 10 --hidden 64");
    sl_dataset_close(&data);
}

/* Features that lie in one way, read in either form: the same masks, sums in another order. */
struct forms {
    struct sl_run csr, dense;
};

static struct forms check_both(const struct sl_dataset *data, const char *line)
{
    const struct forms runs = {train_with(data, line, "--feature-form csr"),
                               train_with(data, line, "--feature-form dense")};
    sl_run_close(&runs.csr, &runs.dense, FORMS, data->name);
    return runs;
}

static void free_both(struct forms *runs)
{
    sl_run_free(&runs->csr);
    sl_run_free(&runs->dense);
}

/* CSR features, stored in either form: the form in memory alone has an effect. Few are not 0: their
 * form is CSR. */
static void check_few(const char *fixture, const char *line)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture)), lying = data;
    const int64_t count = data.vertices * data.features;
    double *wide = calloc((size_t)count, sizeof *wide);
    float *features = calloc((size_t)count, sizeof *features);
    sl_fixture_dense_features(&data, wide);
    for (int64_t i = 0; i < count; i++)
        features[i] = (float)wide[i];
    lying.feature_form = SL_FEATURES_DENSE;
    lying.features_dense = features;
    struct forms one = check_both(&data, line), other = check_both(&lying, line);
    struct sl_run unasked = train_with(&lying, line, "");
    sl_run_same(&one.csr, &other.csr, 1, fixture);
    sl_run_same(&one.dense, &other.dense, 1, fixture);
    sl_run_same(&one.csr, &unasked, 1, fixture);
    sl_run_free(&unasked);
    free_both(&one);
    free_both(&other);
    free(wide);
    free(features);
    sl_fixture_close(&data);
}

static void check_full(const char *fixture, const char *line)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    struct forms runs = check_both(&data, line);
    struct sl_run unasked = train_with(&data, line, "");
    sl_run_same(&runs.dense, &unasked, 1, fixture);
    sl_run_free(&unasked);
    free_both(&runs);
    sl_fixture_close(&data);
}

SL_TEST(test_feature_forms)
{
    static const char *const few[] = {"undirected-weighted", "directed",
                                      "directed-weighted-self-loops"},
                             *const full[] = {"undirected", "directed-weighted", "self-loops"},
                             *const options[] = {
                                 "--epochs 20 --tiles 3",
                                 "--epochs 20 --input-dropout 0 --normalize-features l1",
                                 "--epochs 20 --dropout 0 --no-cache-aggregate --tiles 2",
                                 "--epochs 20 --product-order spmm --tiles 2 --dropout 0.3",
                                 "--epochs 20 --model sage --input-dropout 0 --tiles 3"};
    for (int f = 0; f < 3; f++)
        for (int l = 0; l < 5; l++) {
            check_few(few[f], options[l]);
            check_full(full[f], options[l]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedulers),      cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_tile_per_vertex), cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_blocks_bfloat16), cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_instructions),    cmocka_unit_test(test_feature_forms),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
