/* The search of --batches co:auto, on bytes that the test gives. */
#include "core/error.h"
#include "run/fits.h"
#include "tests/unit.h"

/* The bytes of a number of batches: all / batches + each · batches, and `two` more with two or
 * more. Each look takes `lost` of the space. */
struct run {
    int64_t all, each, two, lost;
    int64_t fails; /* the number that fails; 0: none does */
    int looks;
};

static int64_t bytes_of(const struct run *run, int64_t batches)
{
    return run->all / batches + run->each * batches + (batches > 1 ? run->two : 0);
}

static int take(void *context, int64_t batches, int64_t *space, int64_t *bytes)
{
    struct run *run = context;
    run->looks++;
    *space -= run->lost;
    *bytes = bytes_of(run, batches);
    return batches == run->fails ? SL_ERR_SYSTEM : 0;
}

static int64_t find(struct run run, int64_t most, int64_t space)
{
    int64_t best = -1;
    assert_int_equal(sl_plan_find_batches(take, &run, most, space, &best), 0);
    assert_true(run.looks <= 24); /* 11 to double up to 1024, 10 to halve */
    return best;
}

/* The first number that fits. */
static int64_t first(struct run run, int64_t most, int64_t space)
{
    for (int64_t batches = 1; batches <= most; batches++)
        if (bytes_of(&run, batches) <= space)
            return batches;
    return -1;
}

/* The search finds the least number that fits each space, if more batches take less. */
SL_TEST(test_least_number)
{
    const struct run run = {.all = 100000};
    for (int64_t space = 98; space < 120000; space = space * 103 / 100 + 1)
        assert_int_equal(find(run, 1024, space), first(run, 1024, space));
    assert_int_equal(find(run, 1024, 100000), 1);
    assert_int_equal(find(run, 1024, 99999), 2);
    assert_int_equal(find(run, 1024, 33333), 3);
    assert_int_equal(find(run, 1024, 14300), 7);
}

/* Two batches take more than one, and four take less. */
SL_TEST(test_past_two_batches)
{
    const struct run run = {.all = 100000, .two = 60000};
    assert_true(bytes_of(&run, 2) > bytes_of(&run, 1));
    for (int64_t space = 62000; space < 99999; space += 1000)
        assert_int_equal(find(run, 1024, space), first(run, 1024, space));
    assert_int_equal(find(run, 1024, 94000), 3);
}

/* Without a number that fits, the search takes the smallest of 1, 2, 4, … within the limit. */
SL_TEST(test_none_fits)
{
    assert_int_equal(find((struct run){.all = 100000, .each = 1000}, 1024, 10), 8);
    assert_int_equal(find((struct run){.all = 100000}, 1024, 10), 1024);
    assert_int_equal(find((struct run){.all = 100000}, 100, 10), 64);
    assert_int_equal(find((struct run){.all = 100000}, 1, 10), 1);
    assert_int_equal(find((struct run){.all = 100000, .two = 200000}, 1024, 10), 1);
}

/* The space shrinks while the search looks: what fitted at first fits no more. */
SL_TEST(test_shrinking_space)
{
    assert_int_equal(find((struct run){.all = 100000, .lost = 1000}, 1024, 35000), 4);
    assert_int_equal(find((struct run){.all = 100000}, 1024, 35000), 3);
}

SL_TEST(test_codes)
{
    for (int64_t fails = 1; fails <= 8; fails *= 2) {
        struct run run = {.all = 100000, .fails = fails};
        int64_t best;
        assert_int_equal(sl_plan_find_batches(take, &run, 1024, 13000, &best), SL_ERR_SYSTEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_number), cmocka_unit_test(test_past_two_batches),
        cmocka_unit_test(test_none_fits),    cmocka_unit_test(test_shrinking_space),
        cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
