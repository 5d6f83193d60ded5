/* Each kernel of `starling bench kernels` on odd shapes: the levels of instructions give the same
 * bits, or, where products are added and one of the levels does not fuse both, almost. Each level
 * gives what a plain loop gives. */
#include "bench/kernels.h"
#include "codelets/instructions.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* Whether the kernels of a level multiply and add in one step. */
static bool fuses(enum sl_instructions level)
{
#ifdef __FMA__
    (void)level;
    return true;
#else
    return level != SL_INSTRUCTIONS_BASE;
#endif
}

/* Results of a kernel or a loop. */
struct found {
    int64_t count;
    double *number;
};

static double *room; /* for the numbers of any result of a shape */

static struct found find(const struct sl_kernel_work *k, const struct sl_kernel_row *row,
                         sl_kernel_call *call)
{
    sl_kernel_work_reset(k);
    call(k);
    const int64_t count = sl_kernel_work_results(k, row->results, room);
    struct found found = {count, sl_doubles(count)};
    memcpy(found.number, room, (size_t)count * sizeof *room);
    return found;
}

static void expect(const struct sl_kernel_work *k, const struct sl_kernel_row *row,
                   double tolerance, const struct found *got, const struct found *want,
                   const char *other)
{
    const int64_t i = sl_kernel_difference(want->count, got->number, want->number, tolerance);
    if (i >= 0)
        fail_msg("%s at %s of %d x %d, ld %d: number %d is %.17g, but %.17g %s", row->name,
                 sl_level_name(), (int)k->rows, (int)k->width, (int)k->ld, (int)i, got->number[i],
                 want->number[i], other);
}

/* At each level: the plain loop's numbers; the bits of the first level, almost where one of both
 * does not fuse what the kernel adds; the bits of the first level that fuses. */
static void check_kernel(const struct sl_kernel_work *k, const struct sl_kernel_row *row)
{
    struct found first = {0}, first_fused = {0};
    for (int level = 0; sl_next_level(&level);) {
        const bool fused = row->fuses && fuses(sl_instructions_get()),
                   alike = !row->fuses || fused == fuses(SL_INSTRUCTIONS_BASE);
        struct found plain = find(k, row, sl_loop_find(row->name)), got = find(k, row, row->run);
        expect(k, row, row->tolerance, &got, &plain, "of the plain loop");
        free(plain.number);
        if (first.number)
            expect(k, row, alike ? 0.0 : row->tolerance, &got, &first, "at the level base");
        if (fused && first_fused.number)
            expect(k, row, 0.0, &got, &first_fused, "at another level with FMA");
        struct found *const to = !first.number                  ? &first
                                 : fused && !first_fused.number ? &first_fused
                                                                : NULL;
        if (to)
            *to = got;
        else
            free(got.number);
    }
    free(first.number);
    free(first_fused.number);
}

static void check_shape(int64_t rows, int64_t width, int64_t ld)
{
    struct sl_kernel_work k;
    assert_int_equal(sl_kernel_work_create(&k, rows, rows < 5 ? rows : 5, width, ld), 0);
    room = sl_doubles(k.results.most);
    for (const struct sl_kernel_row *row = sl_kernel_rows; row->name; row++)
        check_kernel(&k, row);
    free(room);
    sl_kernel_work_destroy(&k);
}

/* Rows as far apart as in training, and rows without padding, whose last columns go other ways. */
SL_TEST(test_levels)
{
    static const int64_t counts[] = {1, 5, 37};
    for (size_t i = 0; i < SL_COUNT(counts); i++)
        for (size_t j = 0; j < SL_COUNT(sl_widths); j++) {
            check_shape(counts[i], sl_widths[j], sl_leading(sl_widths[j], SL_FLOAT32));
            check_shape(counts[i], sl_widths[j], sl_widths[j]);
        }
}

/* Each kernel of the table has a plain loop. */
SL_TEST(test_loops)
{
    for (const struct sl_kernel_row *row = sl_kernel_rows; row->name; row++)
        assert_non_null(sl_loop_find(row->name));
    assert_null(sl_loop_find("none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
