/* Batches of clusters: the largest ones of the run are made first, so that places and the plan are
 * as large as any batch needs. */
#include "run/fits.h"
#include "tests/batch_run.h"

static size_t bytes_of_places(const struct sl_batches *b)
{
    size_t bytes = 0;
    for (int use = 0; use < SL_PLACE_USES; use++)
        bytes += sl_places_bytes(&b->places, (enum sl_place_use)use);
    return bytes;
}

/* Return the bytes of the two batches in memory, as the plan counts them. */
static int64_t bytes_of_graphs(const struct sl_trainer *trainer)
{
    const struct sl_plan plan = sl_trainer_plan(trainer);
    return plan.bytes[SL_PLAN_ADJACENCY] + plan.bytes[SL_PLAN_FEATURES];
}

/* Two batches, one after the other, are in two places, whatever the steps of an epoch. */
SL_TEST(test_first_is_largest)
{
    static const char *const batches[] = {"clusters:7,3", "clusters:9,2", "clusters:12,5",
                                          "clusters:5,5"};
    for (int f = 0; f < FIXTURES; f++) {
        struct sl_dataset data = sl_fixture_open(&fixtures[f]);
        for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
            struct sl_opened run;
            char line[SL_MOST_LINE];
            int64_t most = 0, largest = 0, smallest = INT64_MAX;
            snprintf(line, sizeof line, "--hidden 8 --tiles 1 --epochs 30 --batches %s",
                     batches[k]);
            sl_opened_open(&run, &data, sl_run_parse(line));
            struct sl_batches *b = &run.trainer.batches;
            const size_t places = bytes_of_places(b);
            const int64_t first = bytes_of_graphs(&run.trainer);
            const struct sl_batch *before = NULL;
            for (int64_t epoch = 1; epoch <= 30; epoch++)
                for (int s = 0; s < b->steps; s++) {
                    sl_batches_network(b, epoch, s, 0);
                    assert_ptr_not_equal(b->in_use, before);
                    before = b->in_use;
                    largest = b->in_use->inner > largest ? b->in_use->inner : largest;
                    smallest = b->in_use->inner < smallest ? b->in_use->inner : smallest;
                    const int64_t bytes = bytes_of_graphs(&run.trainer);
                    most = bytes > most ? bytes : most;
                }
            sl_batches_leave(b);
            assert_true(b->steps == 1 || largest > smallest);
            assert_int_equal(bytes_of_places(b), places);
            if (most > first + first / 20 || first > most + most / 10)
                fail_msg("%s, %s: %lld bytes at first, then up to %lld", fixtures[f].name, line,
                         (long long)first, (long long)most);
            sl_opened_close(&run);
        }
        sl_fixture_close(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_is_largest)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
