/* Bounds of a process's memory: control groups of both versions, out of files, and ulimit. */
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/free_memory.h"
#include "tests/unit.h"

enum { KIB = 1024, MIB = 1 << 20 };

static char root[64];

/* Writes `text` to root + path, whose directories are made. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(full, 0700);
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/test_free_memory-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    put("/proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1000 kB\nMemAvailable:    5000 kB\n");
    return 0;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static int64_t of_cgroup(void)
{
    int64_t left[SL_MEMORY_BOUNDS];
    sl_free_memory(root, left);
    assert_int_equal(left[SL_MEMORY_OF_MACHINE], 5000 * KIB);
    return left[SL_MEMORY_OF_CGROUP];
}

SL_TEST(test_no_group)
{
    assert_true(of_cgroup() == INT64_MAX);
    put("/proc/self/cgroup", "4:memory:/job\n0::/job\n"); /* mounted nowhere */
    assert_true(of_cgroup() == INT64_MAX);
}

/* The group above has less left, and its files' pages go when memory is wanted. */
SL_TEST(test_version_2)
{
    put("/proc/self/cgroup", "0::/job/step\n");
    put("/proc/self/mountinfo",
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
        "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    put("/sys/fs/cgroup/job/step/memory.max", "max\n");
    assert_true(of_cgroup() == INT64_MAX);
    put("/sys/fs/cgroup/job/step/memory.max", "900000\n");
    put("/sys/fs/cgroup/job/step/memory.current", "100000\n");
    assert_int_equal(of_cgroup(), 800000);
    put("/sys/fs/cgroup/job/step/memory.high", "700000\n");
    assert_int_equal(of_cgroup(), 600000);
    put("/sys/fs/cgroup/job/memory.max", "1000000\n");
    put("/sys/fs/cgroup/job/memory.current", "800000\n");
    assert_int_equal(of_cgroup(), 200000);
    put("/sys/fs/cgroup/job/memory.stat",
        "anon 500000\nfile 300000\ninactive_file 200000\nactive_file 50000\n");
    assert_int_equal(of_cgroup(), 450000);
    put("/sys/fs/cgroup/job/memory.current", "2000000\n");
    assert_int_equal(of_cgroup(), 0);
}

/* A machine with both versions, where memory is the first's; "memory" is also part of a name. */
SL_TEST(test_version_1)
{
    put("/proc/self/cgroup", "9:name=memory-like:/x\n4:cpu,memory:/docker/abc/job\n0::/\n");
    put("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
        "34 31 0:31 /x /sys/fs/cgroup/like rw - cgroup cgroup rw,name=memory-like\n"
        "35 31 0:32 /docker/abc /sys/fs/cgroup/mem rw,relatime - cgroup cgroup rw,cpu,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/like/memory.limit_in_bytes", "1\n");
    put("/sys/fs/cgroup/mem/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/mem/job/memory.limit_in_bytes", "209715200\n");
    put("/sys/fs/cgroup/mem/job/memory.usage_in_bytes", "109715200\n");
    assert_int_equal(of_cgroup(), 100000000);
    put("/sys/fs/cgroup/mem/job/memory.stat",
        "inactive_file 7\ntotal_inactive_file 3000\ntotal_active_file 2000\n");
    assert_int_equal(of_cgroup(), 100005000);
    put("/sys/fs/cgroup/mem/memory.limit_in_bytes", "50000\n");
    put("/sys/fs/cgroup/mem/memory.usage_in_bytes", "20000\n");
    assert_int_equal(of_cgroup(), 30000);
}

/* In a name space of its own, a process sees the mounted group alone. */
SL_TEST(test_name_space)
{
    put("/proc/self/cgroup", "0::/../../elsewhere\n");
    put("/proc/self/mountinfo", "30 22 0:26 /../.. /sys/fs/cgroup/two rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/two/memory.max", "70000\n");
    put("/sys/fs/cgroup/two/memory.current", "10000\n");
    assert_int_equal(of_cgroup(), 60000);
}

/* Bytes of this process, the `field`-th of its statm. */
static int64_t used(int field)
{
    long long pages[6] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    for (int f = 0; f < 6; f++)
        assert_int_equal(fscanf(file, "%lld", &pages[f]), 1);
    fclose(file);
    return pages[field] * 4096;
}

static void limit_to(int resource, int field)
{
    enum { ROOM = 64 * MIB };
    struct rlimit before, limit;
    int64_t left[SL_MEMORY_BOUNDS];
    assert_int_equal(getrlimit(resource, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)(used(field) + ROOM);
    assert_int_equal(setrlimit(resource, &limit), 0);
    sl_free_memory("", left);
    const bool limited = sl_free_memory_is_limited(), small = sl_free_memory_probe(ROOM / 2),
               large = sl_free_memory_probe(2 * ROOM);
    assert_int_equal(setrlimit(resource, &before), 0);
    assert_true(limited && small && !large);
    assert_in_range(left[SL_MEMORY_OF_PROCESS], ROOM / 2, ROOM);
}

SL_TEST(test_ulimit)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur != RLIM_INFINITY)
        skip();
    limit_to(RLIMIT_AS, 0);
    limit_to(RLIMIT_DATA, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_group),  cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_version_1), cmocka_unit_test(test_name_space),
        cmocka_unit_test(test_ulimit),
    };
    return cmocka_run_group_tests_name("free memory", tests, make_root, remove_root);
}
