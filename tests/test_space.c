/* The memory that a run may take: the least that machine, control group and ulimit leave. */
#include "core/error.h"
#include "core/free_memory.h"
#include "run/fits.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

/* The functions below take the place of core/free_memory.c. */
static int64_t left[SL_MEMORY_BOUNDS];

void sl_free_memory(const char *root, int64_t free_bytes[SL_MEMORY_BOUNDS])
{
    (void)root;
    memcpy(free_bytes, left, sizeof left);
}

bool sl_free_memory_is_limited(void)
{
    return false;
}

bool sl_free_memory_probe(size_t bytes)
{
    return bytes > 0;
}

static void leave(int64_t machine, int64_t cgroup, int64_t process)
{
    left[SL_MEMORY_OF_MACHINE] = machine;
    left[SL_MEMORY_OF_CGROUP] = cgroup;
    left[SL_MEMORY_OF_PROCESS] = process;
}

/* Ranks of a machine share all but what ulimit leaves. Of that, 48 MiB are not for tiles. */
SL_TEST(test_space)
{
    enum { MIB = 1 << 20, NONE = 0 };
    static const struct {
        int64_t machine, cgroup, process, space; /* MiB */
    } cases[] = {
        {800, NONE, NONE, 200}, {8000, 400, NONE, 100}, {8000, 4000, 300, 252},
        {800, 4000, 300, 200},  {8000, 4000, 40, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct sl_process process = {.ranks_here = 4};
        struct sl_runtime rt = {.ranks = 1, .process = &process};
        leave(cases[c].machine * MIB, cases[c].cgroup ? cases[c].cgroup * MIB : INT64_MAX,
              cases[c].process ? cases[c].process * MIB : INT64_MAX);
        assert_int_equal(sl_space_find(&rt).bytes, cases[c].space * MIB);
    }
}

SL_TEST(test_refused)
{
    static const char *const who[] = {"this machine has", "the control group (cgroup) has",
                                      "ulimit -v or -d leaves"};
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    struct sl_config config = sl_run_parse("--epochs 1");
    struct sl_source source;
    assert_int_equal(sl_source_of(&data, &source), 0);
    leave(INT64_MAX, INT64_MAX, INT64_MAX);
    assert_int_equal(sl_plan_check(&sl_running, &source, &config), 0);
    for (int b = 0; b < SL_MEMORY_BOUNDS; b++) {
        leave(INT64_MAX, INT64_MAX, INT64_MAX);
        left[b] = 1000;
        assert_int_equal(sl_plan_check(&sl_running, &source, &config), SL_ERR_SYSTEM);
        assert_non_null(strstr(sl_error_message(), who[b]));
    }
    sl_source_close(&source);
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_space),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
