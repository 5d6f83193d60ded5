/* Promises of src/core/runtime.h, tile.h, task.h and binding.h. They are about a process's
 * environment, cores and caches, memory that workers touch first, the distance between rows of
 * tiles, and the order of tasks that are ready. */
#include <sched.h>
#include <stdatomic.h>

#include <sys/mman.h>

#include <starpu.h>

#include "core/alike.h"
#include "core/binding.h"
#include "core/error.h"
#include "core/gpus.h"
#include "core/home.h"
#include "core/memory.h"
#include "core/task.h"
#include "tests/running.h"
#include "tests/unit.h"

static int start(void **state)
{
    setenv("STARPU_CATCH_SIGNALS", "1", 1); /* what a user says */
    setenv("STARPU_USE_NUMA", "1", 1);
    unsetenv("STARPU_SILENT");
    return sl_running_start(state);
}

/* The user's settings win, but for STARPU_USE_NUMA. */
SL_TEST(test_environment)
{
    assert_string_equal(getenv("STARPU_CATCH_SIGNALS"), "1");
    assert_string_equal(getenv("STARPU_USE_NUMA"), "0");
    assert_string_equal(getenv("STARPU_SILENT"), "1");
}

/* Ranks that see the same devices take all of them, each one as often as any other, and every rank
 * has one. */
SL_TEST(test_shares_of_gpus)
{
    enum { MOST = 9 };
    for (int devices = 0; devices <= MOST; devices++)
        for (int ranks = 1; ranks <= MOST; ranks++) {
            int users[MOST] = {0}, most = 0, least = ranks;
            for (int r = 0; r < ranks; r++) {
                int first, count;
                sl_gpus_share(devices, ranks, r, &first, &count);
                assert_int_equal(count > 0, devices > 0);
                assert_true(first >= 0 && first + count <= devices);
                for (int d = first; d < first + count; d++)
                    users[d]++;
            }
            for (int d = 0; d < devices; d++) {
                most = users[d] > most ? users[d] : most;
                least = users[d] < least ? users[d] : least;
            }
            assert_true(devices == 0 || (least >= 1 && most - least <= 1));
            assert_true(ranks > devices || most <= 1);
        }
}

/* With less than two of StarPU's pieces of 32 MiB, a task would wait for ever. */
SL_TEST(test_bytes_of_gpus)
{
    enum { MIB = 1 << 20 };
    static const int64_t good[] = {0, 64 * MIB, 64 * MIB + 1, INT64_MAX},
                         bad[] = {1, 20 * MIB, 63 * MIB, 64 * MIB - 1};
    for (size_t g = 0; g < sizeof good / sizeof *good; g++)
        assert_int_equal(sl_gpus_check_bytes(good[g]), 0);
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        char words[64];
        snprintf(words, sizeof words, "a GPU has %d MiB for tiles of a rank (expected at least 64",
                 (int)(bad[b] / MIB));
        assert_int_equal(sl_gpus_check_bytes(bad[b]), SL_ERR_USAGE);
        assert_non_null(strstr(sl_error_message(), words));
    }
}

/* A watcher is told of mappings that are made and removed, and of nothing else. */
static size_t watched_bytes;

static void made(void *memory, size_t bytes)
{
    assert_non_null(memory);
    watched_bytes += bytes;
}

static void going(void *memory, size_t bytes)
{
    ((volatile char *)memory)[bytes - 1] = 1; /* still there */
    watched_bytes -= bytes;
}

SL_TEST(test_watched_memory)
{
    enum { PAGE = 2 << 20 };
    sl_memory_watch(made, going);
    void *large = sl_memory_alloc(PAGE + 1), *small = sl_memory_alloc(100);
    assert_int_equal(watched_bytes, 2 * PAGE);
    sl_memory_free(small, 100);
    assert_int_equal(watched_bytes, 2 * PAGE);
    sl_memory_free(large, PAGE + 1);
    assert_int_equal(watched_bytes, 0);
    sl_memory_watch(NULL, NULL);
    large = sl_memory_alloc(PAGE);
    sl_memory_free(large, PAGE);
    assert_int_equal(watched_bytes, 0);
}

/* After sl_runtime_touch, every page of the range is resident and still zero. No page after the
 * last huge page of the range is resident. */
SL_TEST(test_touch)
{
    enum { PAGE = 4096, PAGES = 5000, ALL = 8192 };
    const size_t bytes = PAGES * (size_t)PAGE - 100, all = ALL * (size_t)PAGE;
    unsigned char resident[ALL];
    unsigned char *memory = sl_memory_alloc(all);
    assert_non_null(memory);
    assert_int_equal(mincore(memory, all, resident), 0);
    assert_int_equal(resident[0] & 1, 0);
    sl_runtime_touch(memory, bytes);
    assert_int_equal(mincore(memory, all, resident), 0);
    for (int page = 0; page < PAGES; page++)
        assert_int_equal(resident[page] & 1, 1);
    for (int page = (PAGES / 512 + 1) * 512; page < ALL; page++)
        assert_int_equal(resident[page] & 1, 0);
    for (size_t at = 0; at < bytes; at++)
        if (memory[at])
            fail_msg("byte %zu is %d", at, memory[at]);
    sl_memory_free(memory, all);
}

/* ---- Urgency ---- */

enum { TASKS = 12 };

static atomic_bool goes_on;
static atomic_int done;
static int order[TASKS]; /* of the tasks, by number */

static void wait_cpu(void *buffers[], void *argument)
{
    (void)buffers, (void)argument;
    while (!goes_on)
        ;
}

static void note_cpu(void *buffers[], void *argument)
{
    (void)buffers;
    order[done++] = *(const int *)argument;
}

static struct starpu_codelet
    wait_codelet = {.name = "wait", .cpu_funcs = {wait_cpu}, .nbuffers = 1, .modes = {STARPU_W}},
    note_codelet = {.name = "note", .cpu_funcs = {note_cpu}, .nbuffers = 1, .modes = {STARPU_W}};

static enum sl_task_urgency urgency_of(int task)
{
    static const enum sl_task_urgency all[] = {SL_TASK_LATER, SL_TASK_SOON, SL_TASK_USUAL};
    return all[task % 3];
}

static void submit(struct sl_runtime *rt, struct starpu_codelet *codelet, struct sl_tile *tile,
                   int task)
{
    sl_task_submit(rt, &(struct sl_task){.codelet = codelet,
                                         .count = 1,
                                         .tiles = {tile},
                                         .argument = &task,
                                         .argument_size = sizeof task,
                                         .urgency = urgency_of(task)});
}

/* All are ready before the only worker has time for the first of them. */
static void run_tasks(int ranks)
{
    struct sl_runtime rt;
    struct sl_tile tiles[TASKS + 1];
    float memory[TASKS + 1];
    goes_on = false;
    done = 0;
    assert_int_equal(
        sl_runtime_start(&rt, &(struct sl_runtime_options){.scheduler = "prio", .workers = 1}), 0);
    rt.ranks = ranks; /* the others have no tasks, and send nothing */
    for (int t = 0; t <= TASKS; t++)
        sl_tile_describe(&rt, &tiles[t], 1, 1, 1, sizeof *memory, 0, &memory[t]);
    submit(&rt, &wait_codelet, &tiles[TASKS], 1);
    for (int t = 0; t < TASKS; t++)
        submit(&rt, &note_codelet, &tiles[t], t);
    goes_on = true;
    sl_runtime_wait(&rt);
    assert_int_equal(done, TASKS);
    for (int t = 0; t <= TASKS; t++)
        sl_tile_forget(&tiles[t]);
    rt.ranks = 1;
    sl_runtime_stop(&rt);
}

static atomic_int held; /* workers */

/* Held until the others may go on, or until they are all done. */
static void hold_cpu(void *buffers[], void *argument)
{
    (void)buffers;
    held++;
    while (!goes_on || (*(const int *)argument == 1 && done < TASKS))
        sched_yield();
}

static atomic_int worker; /* that runs them */

static void note_home_cpu(void *buffers[], void *argument)
{
    worker = starpu_worker_get_devid(starpu_worker_get_id());
    note_cpu(buffers, argument);
}

/* Two workers are on two nodes, and one worker is free. First it runs the tasks that are at home on
 * its node, then the tasks of the other node. Tasks of a node run in the order of submission. */
SL_TEST(test_home)
{
    static struct starpu_codelet
        hold = {.name = "hold", .cpu_funcs = {hold_cpu}, .nbuffers = 1, .modes = {STARPU_W}},
        note = {.name = "note", .cpu_funcs = {note_home_cpu}, .nbuffers = 1, .modes = {STARPU_W}};
    struct sl_runtime rt;
    struct sl_tile tiles[TASKS + 2];
    float memory[TASKS + 2];
    goes_on = false;
    done = 0;
    held = 0;
    assert_int_equal(
        sl_runtime_start(&rt, &(struct sl_runtime_options){.scheduler = "home", .workers = 2}), 0);
    assert_int_equal(rt.process->workers, 2);
    sl_home_set_node(0, 0);
    sl_home_set_node(1, 1);
    for (int t = 0; t < TASKS + 2; t++) {
        sl_tile_describe(&rt, &tiles[t], 1, 1, 1, sizeof *memory, 0, &memory[t]);
        assert_true(tiles[t].place < 0.0f);
        tiles[t].place = t % 2 ? 0.99f : 0.49f;
    }
    submit(&rt, &hold, &tiles[TASKS], 0);
    submit(&rt, &hold, &tiles[TASKS + 1], 1);
    while (held < 2)
        sched_yield();
    for (int t = 0; t < TASKS; t++)
        submit(&rt, &note, &tiles[t], t);
    goes_on = true;
    sl_runtime_wait(&rt);
    assert_int_equal(done, TASKS);
    for (int t = 0; t < TASKS; t++)
        assert_int_equal(order[t],
                         t < TASKS / 2 ? 2 * t + worker : 2 * (t - TASKS / 2) + 1 - worker);
    for (int t = 0; t < TASKS + 2; t++)
        sl_tile_forget(&tiles[t]);
    sl_home_set_node(1, 0);
    sl_runtime_stop(&rt);
}

static int only_owner(const void *context, int i, int j)
{
    (void)context, (void)i, (void)j;
    return 0;
}

/* Tiles of a matrix have places in the order of their memory. A tile that is the whole matrix has
 * no place. */
SL_TEST(test_places)
{
    static const int64_t cut[] = {0, 5, 7, 12, 20}, one[] = {0, 3};
    struct sl_matrix matrix;
    assert_int_equal(sl_matrix_create(&sl_running, &matrix, SL_FLOAT32,
                                      &(struct sl_cuts){4, 1, cut, one, only_owner, NULL}),
                     0);
    for (int i = 0; i < 4; i++)
        assert_true(sl_matrix_tile(&matrix, i, 0)->place == (float)i / 4.0f);
    sl_matrix_destroy(&matrix);
    assert_int_equal(sl_matrix_create(&sl_running, &matrix, SL_FLOAT32,
                                      &(struct sl_cuts){1, 1, one, one, only_owner, NULL}),
                     0);
    assert_true(sl_matrix_tile(&matrix, 0, 0)->place < 0.0f);
    sl_matrix_destroy(&matrix);
}

/* A row begins at a multiple of SL_ROW_UNIT elements and has room for its last vector. Its bytes
 * are no multiple of 512, and at most a cache line more than its vectors take. */
SL_TEST(test_distance_between_rows)
{
    enum { LINE = 64, SHARED = 512, MOST = 3000 };
    static const enum sl_type types[] = {SL_FLOAT32, SL_BFLOAT16};
    for (int t = 0; t < 2; t++) {
        const int64_t size = (int64_t)sl_type_size(types[t]);
        assert_int_equal(sl_leading(0, types[t]), 0);
        for (int64_t cols = 1; cols <= MOST; cols++) {
            const int64_t ld = sl_leading(cols, types[t]),
                          vectors = (cols + SL_ROW_UNIT - 1) / SL_ROW_UNIT * SL_ROW_UNIT;
            if (ld < vectors || ld % SL_ROW_UNIT || ld * size % SHARED == 0)
                fail_msg("%d columns of %d bytes: rows are %d elements apart", (int)cols, (int)size,
                         (int)ld);
            assert_int_equal((ld - vectors) * size, vectors * size % SHARED == 0 ? LINE : 0);
        }
    }
}

/* Rows of a matrix's tiles are as far apart as sl_leading says, also where columns are cut. Each
 * tile has memory of its own. */
SL_TEST(test_rows_of_tiles)
{
    static const int64_t rows[] = {0, 3, 4, 11}, cols[] = {0, 128, 384, 385, 641};
    static const enum sl_type types[] = {SL_FLOAT32, SL_BFLOAT16};
    for (int t = 0; t < 2; t++) {
        struct sl_matrix matrix;
        assert_int_equal(sl_matrix_create(&sl_running, &matrix, types[t],
                                          &(struct sl_cuts){3, 4, rows, cols, only_owner, NULL}),
                         0);
        const char *end = matrix.slab;
        for (int k = 0; k < 3 * 4; k++) {
            const struct sl_tile *tile = &matrix.tiles[k];
            assert_int_equal(tile->ld, sl_leading(tile->cols, types[t]));
            assert_int_equal(tile->element_size, sl_type_size(types[t]));
            assert_ptr_equal(tile->memory, end);
            end += tile->rows * tile->ld * (int64_t)tile->element_size;
        }
        assert_int_equal(end - (const char *)matrix.slab, matrix.slab_bytes);
        sl_matrix_destroy(&matrix);
    }
}

/* On several ranks the urgent ones come first, and those of equal urgency as they were submitted.
 */
SL_TEST(test_urgency)
{
    run_tasks(2);
    for (int t = 1; t < TASKS; t++) {
        const enum sl_task_urgency before = urgency_of(order[t - 1]), now = urgency_of(order[t]);
        if (before < now || (before == now && order[t - 1] > order[t]))
            fail_msg("task %d came before task %d", order[t - 1], order[t]);
    }
}

SL_TEST(test_urgency_alone)
{
    run_tasks(1);
    for (int t = 0; t < TASKS; t++)
        assert_int_equal(order[t], t);
}

static void sleep_cpu(void *buffers[], void *argument)
{
    (void)buffers, (void)argument;
    usleep(2000);
}

/* The runtime waits for all but a few of many pending tasks. */
SL_TEST(test_room)
{
    enum { MOST = 3 };
    static struct starpu_codelet codelet = {
        .name = "sleep", .cpu_funcs = {sleep_cpu}, .nbuffers = 1, .modes = {STARPU_W}};
    struct sl_runtime rt;
    struct sl_tile tile;
    float memory;
    assert_int_equal(sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1}), 0);
    sl_tile_describe(&rt, &tile, 1, 1, 1, sizeof memory, 0, &memory);
    for (int t = 0; t < TASKS; t++)
        submit(&rt, &codelet, &tile, t);
    sl_runtime_wait_for_room(&rt, MOST);
    assert_true(starpu_task_nsubmitted() <= MOST);
    sl_tile_forget(&tile);
    sl_runtime_stop(&rt);
}

/* ---- Cores and caches ---- */

static void open_machine(struct sl_binding *binding, const char *machine)
{
    setenv("HWLOC_COMPONENTS", "synthetic", 1);
    setenv("HWLOC_SYNTHETIC", machine, 1);
    assert_int_equal(sl_binding_open(binding), 0);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_COMPONENTS");
}

/* Find the last-level cache of the first core, and the core's largest cache that no other core
 * shares. */
SL_TEST(test_caches)
{
    static const struct {
        const char *machine;
        int cores;
        int64_t last_kib, own_kib;
    } cases[] = {
        /* two threads of each core */
        {"l3:1(size=8388608) l2:4(size=1048576) l1d:1(size=32768) core:1 pu:2", 4, 8192, 1024},
        /* two cores share the second level */
        {"l3:1(size=8388608) l2:2(size=1048576) l1d:2(size=32768) core:1 pu:1", 4, 8192, 32},
        /* four last-level caches in two packages */
        {"pack:2 l3:2(size=4194304) l2:2(size=524288) core:1 pu:2", 8, 4096, 512},
        /* all caches are shared */
        {"l3:1(size=8388608) l2:1(size=2097152) core:2 pu:2", 2, 8192, 0},
        {"core:3 pu:2", 3, 0, 0},
        {"pu:4", 4, 0, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct sl_binding binding;
        open_machine(&binding, cases[c].machine);
        if (binding.cores != cases[c].cores || binding.cache_bytes != 1024 * cases[c].last_kib ||
            binding.own_bytes != 1024 * cases[c].own_kib)
            fail_msg("%s: %d cores, a last-level cache of %lld bytes, %lld of a core",
                     cases[c].machine, binding.cores, (long long)binding.cache_bytes,
                     (long long)binding.own_bytes);
        sl_binding_close(&binding);
    }
}

/* Each of three ranks has other cores of five, with both threads of each, and their caches. */
SL_TEST(test_shares_of_cores)
{
    static const char *const threads[] = {"0-1", "2-5", "6-9"};
    for (int r = 0; r < 3; r++) {
        struct sl_binding binding;
        open_machine(&binding, "l3:1(size=8388608) l2:5(size=1048576) core:1 pu:2");
        sl_binding_keep_share(&binding, 3, r);
        assert_int_equal(binding.cores, r == 0 ? 1 : 2);
        assert_string_equal(binding.text, threads[r]);
        assert_int_equal(binding.cache_bytes, 8 << 20);
        assert_int_equal(binding.own_bytes, 1 << 20);
        sl_binding_close(&binding);
    }
}

/* Ranks compare each byte of short arrays, and ends and pieces of long ones.
 */
SL_TEST(test_hash)
{
    enum { SHORT = 77, MIB = 1 << 20, LONG = 300 * MIB };
    char *bytes = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(bytes != MAP_FAILED);
    for (size_t size = 1; size <= SHORT; size++) {
        const uint64_t before = sl_alike_hash(1, bytes, size);
        assert_true(before != sl_alike_hash(2, bytes, size));
        assert_true(before != sl_alike_hash(1, bytes, size - 1));
        for (size_t at = 0; at < size; at++) {
            bytes[at] = 1;
            assert_true(before != sl_alike_hash(1, bytes, size));
            bytes[at] = 0;
        }
        assert_true(before == sl_alike_hash(1, bytes, size));
    }
    static const size_t places[] = {0, MIB - 1, LONG - MIB, LONG - 1};
    const uint64_t before = sl_alike_hash(1, bytes, LONG);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        bytes[places[p]] = 1;
        assert_true(before != sl_alike_hash(1, bytes, LONG));
        bytes[places[p]] = 0;
    }
    munmap(bytes, LONG);
}

int main(void)
{
    const struct CMUnitTest running[] = {cmocka_unit_test(test_environment),
                                         cmocka_unit_test(test_shares_of_gpus),
                                         cmocka_unit_test(test_bytes_of_gpus),
                                         cmocka_unit_test(test_watched_memory),
                                         cmocka_unit_test(test_places),
                                         cmocka_unit_test(test_distance_between_rows),
                                         cmocka_unit_test(test_rows_of_tiles),
                                         cmocka_unit_test(test_touch),
                                         cmocka_unit_test(test_hash)},
                            tasks[] = {cmocka_unit_test(test_urgency),
                                       cmocka_unit_test(test_urgency_alone),
                                       cmocka_unit_test(test_home), cmocka_unit_test(test_room)};
    const struct CMUnitTest cores[] = {cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_shares_of_cores)};
    int failed = cmocka_run_group_tests(running, start, sl_running_stop);
    failed += cmocka_run_group_tests(tasks, NULL, NULL);
    return failed + cmocka_run_group_tests(cores, NULL, NULL);
}
