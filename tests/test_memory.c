/* Memory that comes and goes: which pages are kept and handed out again, and how they are counted.
 */
#include "core/memory.h"
#include "tests/unit.h"

enum { MIB = 1 << 20, LARGE = 5 * MIB, SMALL = 3 * MIB / 2, TINY = 300000 };

/* Writes all of it. */
static unsigned char *take(size_t bytes)
{
    unsigned char *memory = sl_memory_take(bytes);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    memset(memory, 0x5A, bytes);
    return memory;
}

SL_TEST(test_kept_pages_serve_again)
{
    const size_t before = sl_memory_in_use(), block = sl_memory_taken(LARGE);
    assert_true(block >= LARGE && block <= LARGE + LARGE / 4);

    unsigned char *first = take(LARGE);
    assert_int_equal(sl_memory_in_use(), before + block);
    sl_memory_return(first, LARGE);
    assert_int_equal(sl_memory_in_use(), before + block);

    assert_ptr_equal(take(LARGE - 1000), first);
    unsigned char *second = take(LARGE); /* the other one is out */
    assert_ptr_not_equal(second, first);
    assert_int_equal(sl_memory_in_use(), before + 2 * block);
    sl_memory_return(first, LARGE - 1000);
    sl_memory_return(second, LARGE);
    sl_memory_return_all();
    assert_int_equal(sl_memory_in_use(), before);
}

/* Rows of two widths never take more than the wider ones do. */
SL_TEST(test_smaller_requests_use_them)
{
    const size_t before = sl_memory_in_use(), block = sl_memory_taken(LARGE);
    unsigned char *large = take(LARGE);
    sl_memory_return(large, LARGE);
    assert_true(sl_memory_serves(block, LARGE) && sl_memory_serves(block, SMALL));
    assert_false(sl_memory_serves(block, TINY) || sl_memory_serves(block, block + 1));
    assert_false(sl_memory_serves(SMALL, SMALL)); /* no pages are kept of so few bytes */

    assert_ptr_equal(take(SMALL), large);
    assert_int_equal(sl_memory_in_use(), before + block);
    sl_memory_return(large, SMALL);

    unsigned char *tiny = take(TINY); /* too much would lie idle */
    assert_int_equal(sl_memory_in_use(), before + block + TINY);
    assert_ptr_equal(take(LARGE), large);
    sl_memory_return(tiny, TINY);
    assert_int_equal(sl_memory_in_use(), before + block);
    sl_memory_return(large, LARGE);
    sl_memory_return_all();
    assert_int_equal(sl_memory_in_use(), before);
}

/* Little more than a huge page takes little more than one. */
SL_TEST(test_ends_are_small)
{
    enum { COUNT = 64, BYTES = 2 * MIB + TINY };
    void *memory[COUNT];
    const size_t before = sl_memory_resident_peak();
    for (int k = 0; k < COUNT; k++) {
        memory[k] = sl_memory_alloc(BYTES);
        assert_non_null(memory[k]);
        memset(memory[k], 0x5A, BYTES);
    }
    assert_true(sl_memory_resident_peak() - before <= (size_t)COUNT * BYTES * 5 / 4);
    for (int k = 0; k < COUNT; k++)
        sl_memory_free(memory[k], BYTES);
}

/* Without a block that does, memory of less than 2 MiB goes at once. */
SL_TEST(test_small_ones_are_not_kept)
{
    const size_t before = sl_memory_in_use();
    unsigned char *small = take(SMALL);
    assert_int_equal(sl_memory_in_use(), before + SMALL);
    sl_memory_return(small, SMALL);
    assert_int_equal(sl_memory_in_use(), before);
    assert_true(sl_memory_peak() >= before + SMALL);
    sl_memory_return_all();
    assert_int_equal(sl_memory_peak(), before);
    sl_memory_return(NULL, LARGE);
}

/* Free memory that is too small is given back when more is wanted: the larger one will do for both.
 */
SL_TEST(test_larger_ones_take_their_place)
{
    const size_t before = sl_memory_in_use(), block = sl_memory_taken(2 * LARGE);
    unsigned char *first = take(LARGE), *second = take(LARGE);
    sl_memory_return(first, LARGE);
    unsigned char *large = take(2 * LARGE);
    assert_int_equal(sl_memory_in_use(), before + sl_memory_taken(LARGE) + block);
    assert_int_equal(second[LARGE - 1], 0x5A);
    sl_memory_return(second, LARGE);
    sl_memory_return(large, 2 * LARGE);
    assert_ptr_equal(take(2 * LARGE), large);
    sl_memory_return(large, 2 * LARGE);
    sl_memory_return_all();
    assert_int_equal(sl_memory_in_use(), before);
}

/* The least of those that do. */
SL_TEST(test_best_fit)
{
    unsigned char *wide = take(4 * LARGE), *narrow = take(LARGE);
    sl_memory_return(narrow, LARGE);
    sl_memory_return(wide, 4 * LARGE); /* given back last */
    assert_ptr_equal(take(LARGE), narrow);
    sl_memory_return_all();
    assert_int_equal(narrow[LARGE - 1], 0x5A); /* what is out stays */
    sl_memory_return(narrow, LARGE);
    sl_memory_return_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_pages_serve_again),
        cmocka_unit_test(test_smaller_requests_use_them),
        cmocka_unit_test(test_ends_are_small),
        cmocka_unit_test(test_small_ones_are_not_kept),
        cmocka_unit_test(test_larger_ones_take_their_place),
        cmocka_unit_test(test_best_fit),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
