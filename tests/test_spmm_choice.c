/* The choice of the kernel of a sparse tile on a GPU, and remembered measurements. */
#include "core/error.h"
#include "core/spmm_choice.h"
#include "tests/running.h"
#include "tests/unit.h"

static struct sl_spmm_choice choice;

static bool wants(int64_t degree, int64_t width)
{
    enum { ROWS = 1000 };
    return sl_spmm_choice_wants(&choice, ROWS, degree * ROWS, width);
}

SL_TEST(test_always_and_never)
{
    choice =
        (struct sl_spmm_choice){.kernel = SL_SPMM_OWN, .count = 1, .measured = {{16, 50.0, 0.5}}};
    assert_false(wants(50, 16));
    choice.kernel = SL_SPMM_CUSPARSE;
    choice.measured[0].times = 2.0;
    assert_true(wants(50, 16));
    assert_true(wants(7, 300));
}

SL_TEST(test_nearest)
{
    choice = (struct sl_spmm_choice){
        .kernel = SL_SPMM_FASTEST,
        .count = 3,
        .measured = {{16, 50.0, 0.8}, {64, 50.0, 1.25}, {64, 500.0, 0.9}},
    };
    assert_true(wants(50, 16));
    assert_true(wants(40, 24)); /* 64 is farther */
    assert_false(wants(40, 48));
    assert_false(wants(99, 64));
    assert_true(wants(300, 64));
    assert_false(wants(50, 7)); /* far from all of them */
    assert_false(wants(50, 200));
    assert_false(wants(20, 16));
    assert_false(wants(0, 16));
    choice.count = 0;
    assert_false(wants(50, 16));
}

static const struct sl_spmm_measured *find(int64_t width, double degree)
{
    for (int i = 0; i < choice.count; i++)
        if (choice.measured[i].width == width && choice.measured[i].degree == degree)
            return &choice.measured[i];
    return NULL;
}

SL_TEST(test_remembered)
{
    const struct sl_spmm_measured first[] = {{16, 50.0, 0.8}, {64, 50.0, 1.25}},
                                  second[] = {{64, 50.1, 0.7}, {64, 500.0, 2.0}, {16, 50.0, 0.0}},
                                  nothing[] = {{16, 50.0, 0.0}};
    assert_int_equal(setenv("XDG_CACHE_HOME", sl_running_path("cache"), 1), 0);
    sl_spmm_choice_read(&choice);
    assert_int_equal(choice.count, 0);
    assert_int_equal(sl_spmm_choice_remember(first, 2), 0);
    assert_int_equal(sl_spmm_choice_remember(second, 3), 0);
    assert_int_equal(sl_spmm_choice_remember(nothing, 1), SL_ERR_USAGE);
    sl_spmm_choice_read(&choice);
    assert_int_equal(choice.count, 3); /* the later one of the same shape */
    assert_non_null(find(16, 50.0));
    assert_null(find(64, 50.0));
    assert_true(find(64, 50.1)->times == 0.7 && find(64, 500.0)->times == 2.0);
    for (int i = 0; i < 2 * SL_SPMM_MEASURED; i++)
        assert_int_equal(sl_spmm_choice_remember(&(struct sl_spmm_measured){100 + i, 8.0, 1.5}, 1),
                         0);
    sl_spmm_choice_read(&choice);
    assert_int_equal(choice.count, SL_SPMM_MEASURED);
    assert_non_null(find(99 + 2 * SL_SPMM_MEASURED, 8.0));
    assert_null(find(16, 50.0));
}

static bool reserve(int sharers, int64_t tag, int64_t width, int64_t form, int64_t workspace)
{
    const struct sl_spmm_need need[] = {{tag, 0, form}, {tag, width, workspace}};
    return sl_spmm_choice_reserve(&choice, sharers, 2, need);
}

SL_TEST(test_room)
{
    choice = (struct sl_spmm_choice){.room = 0};
    assert_false(reserve(1, 7, 16, 100, 10));
    sl_spmm_choice_reset(&choice);
    choice.room = 110; /* for one tile */
    for (int again = 0; again < 2; again++) {
        assert_true(reserve(1, 7, 16, 100, 10));
        assert_false(reserve(1, 8, 16, 100, 10));
        assert_false(reserve(1, 7, 32, 100, 1)); /* another workspace */
        assert_int_equal(choice.taken, 110);
    }
    sl_spmm_choice_reset(&choice);
    assert_int_equal(choice.taken, 0);
    assert_true(reserve(1, 8, 16, 100, 10)); /* as the first one of another run */
    sl_spmm_choice_reset(&choice);
    assert_false(reserve(2, 8, 16, 100, 10));
    sl_spmm_choice_reset(&choice);
    choice.room = 220;
    assert_true(reserve(2, 8, 16, 100, 10));
    sl_spmm_choice_reset(&choice);
}

/* A product takes room for all of its parts, or none: what is refused stays so. */
SL_TEST(test_room_of_several)
{
    const struct sl_spmm_need both[] = {{1, 0, 60}, {2, 0, 60}}, small = {3, 0, 100};
    choice = (struct sl_spmm_choice){.room = 100};
    assert_false(sl_spmm_choice_reserve(&choice, 1, 2, both));
    assert_int_equal(choice.taken, 0);
    assert_true(sl_spmm_choice_reserve(&choice, 1, 1, &small));
    assert_false(sl_spmm_choice_reserve(&choice, 1, 1, both));
    const struct sl_spmm_need twice[] = {{4, 0, 60}, {4, 0, 60}};
    sl_spmm_choice_reset(&choice);
    assert_true(sl_spmm_choice_reserve(&choice, 1, 2, twice));
    assert_int_equal(choice.taken, 60);
    sl_spmm_choice_reset(&choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_always_and_never), cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_remembered),       cmocka_unit_test(test_room),
        cmocka_unit_test(test_room_of_several),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
