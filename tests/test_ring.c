/* Who sends whom (graphs/ring.h). Every position has one parent before it. A parent still has the
 * tiles that it sends. */
#include "graphs/ring.h"
#include "tests/unit.h"

enum { MOST_RANKS = 17, MOST_REACH = 8 };

static struct sl_ring make_ring(const char *form, int count, int reach)
{
    return (struct sl_ring){
        (enum sl_broadcast_form)sl_choice_find(SL_CHOICES(SL_BROADCAST_FORMS), form), 2, 3, count,
        reach};
}

static int parent(const struct sl_ring *ring, int position)
{
    return sl_ring_parent(ring, ring->first, position, NULL, NULL);
}

static int children(const struct sl_ring *ring, int position)
{
    int count = 0;
    for (int p = position + 1; p < ring->count; p++)
        count += parent(ring, p) == position;
    return count;
}

SL_TEST(positions_are_ranks)
{
    const struct sl_ring ring = make_ring("chain", 5, 1); /* ranks 2, 5, 8, 11, 14 */
    for (int owner = 2; owner < 17; owner += 3)
        for (int p = 0; p < 5; p++)
            assert_int_equal(sl_ring_position(&ring, owner, sl_ring_rank(&ring, owner, p)), p);
    assert_int_equal(sl_ring_rank(&ring, 8, 0), 8);
    assert_int_equal(sl_ring_rank(&ring, 8, 1), 5);
    assert_int_equal(sl_ring_rank(&ring, 8, 3), 14);
}

SL_TEST(parents_still_have_it)
{
    static const char *const forms[] = {"chain", "tree", "direct"};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int count = 1; count <= MOST_RANKS; count++)
            for (int reach = 0; reach <= MOST_REACH; reach++) {
                const struct sl_ring ring = make_ring(forms[f], count, reach);
                for (int p = 1; p < count; p++) {
                    const int from = parent(&ring, p);
                    assert_in_range(from, 0, p - 1);
                    assert_true(from == 0 || p - from <= reach);
                    assert_in_range(p, from + 1, sl_ring_last(&ring, from));
                }
            }
}

SL_TEST(forms_are_what_they_are_called)
{
    const struct sl_ring chain = make_ring("chain", 16, 1), tree = make_ring("tree", 16, 16),
                         direct = make_ring("direct", 16, 16);
    for (int p = 1; p < 16; p++) {
        assert_int_equal(parent(&chain, p), p - 1);
        assert_int_equal(parent(&tree, p), p & (p - 1));
        assert_int_equal(parent(&direct, p), 0);
    }
    assert_int_equal(children(&tree, 0), 4);
    assert_int_equal(children(&tree, 8), 3);
    const struct sl_ring short_tree = make_ring("tree", 16, 3); /* 12 is too far from 8 */
    assert_int_equal(parent(&short_tree, 7), 6);
    assert_int_equal(parent(&short_tree, 12), 0);
    assert_int_equal(children(&short_tree, 0), 5);
}

static bool is_even(const void *context, int rank)
{
    (void)context;
    return rank % 2 == 0;
}

/* Ranks that do not need a tile hand nothing on: those after them get it from one before them. */
SL_TEST(only_those_that_need_it)
{
    struct sl_ring chain = {SL_BROADCAST_RING, 0, 1, 9, 1};
    assert_int_equal(sl_ring_parent(&chain, 8, 4, is_even, NULL), 0); /* rank 4; 5 has none */
    assert_int_equal(sl_ring_parent(&chain, 8, 3, is_even, NULL), 2);
    chain.reach = 2;
    assert_int_equal(sl_ring_parent(&chain, 8, 4, is_even, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_ranks),
        cmocka_unit_test(parents_still_have_it),
        cmocka_unit_test(forms_are_what_they_are_called),
        cmocka_unit_test(only_those_that_need_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
