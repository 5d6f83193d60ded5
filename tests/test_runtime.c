/* What src/core/runtime.h and task.h promise of a process: its environment, memory that workers
 * touch first, which of the tasks that are ready comes first. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include <cmocka.h>
#include <starpu.h>

#include "core/gpus.h"
#include "core/home.h"
#include "core/memory.h"
#include "core/task.h"
#include "tests/running.h"

static int start(void **state)
{
    setenv("STARPU_CATCH_SIGNALS", "1", 1); /* what a user says */
    setenv("STARPU_USE_NUMA", "1", 1);
    unsetenv("STARPU_SILENT");
    return sl_running_start(state);
}

/* What the user set wins, but for STARPU_USE_NUMA. */
static void test_environment(void **state)
{
    (void)state;
    assert_string_equal(getenv("STARPU_CATCH_SIGNALS"), "1");
    assert_string_equal(getenv("STARPU_USE_NUMA"), "0");
    assert_string_equal(getenv("STARPU_SILENT"), "1");
}

/* Ranks that see the same devices take all of them, each one as often as any other, and every rank
 * has one. */
static void test_shares_of_gpus(void **state)
{
    enum { MOST = 9 };
    (void)state;
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

/* What is made and goes while somebody watches is told to them, mappings alone. */
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

static void test_watched_memory(void **state)
{
    enum { PAGE = 2 << 20 };
    (void)state;
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
static void test_touch(void **state)
{
    enum { PAGE = 4096, PAGES = 5000, ALL = 8192 };
    const size_t bytes = PAGES * (size_t)PAGE - 100, all = ALL * (size_t)PAGE;
    unsigned char resident[ALL];
    unsigned char *memory = sl_memory_alloc(all);
    (void)state;
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
static void test_home(void **state)
{
    static struct starpu_codelet
        hold = {.name = "hold", .cpu_funcs = {hold_cpu}, .nbuffers = 1, .modes = {STARPU_W}},
        note = {.name = "note", .cpu_funcs = {note_home_cpu}, .nbuffers = 1, .modes = {STARPU_W}};
    struct sl_runtime rt;
    struct sl_tile tiles[TASKS + 2];
    float memory[TASKS + 2];
    (void)state;
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
static void test_places(void **state)
{
    static const int64_t cut[] = {0, 5, 7, 12, 20}, one[] = {0, 3};
    struct sl_matrix matrix;
    (void)state;
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

/* On several ranks the urgent ones come first, and those of equal urgency as they were submitted.
 */
static void test_urgency(void **state)
{
    (void)state;
    run_tasks(2);
    for (int t = 1; t < TASKS; t++) {
        const enum sl_task_urgency before = urgency_of(order[t - 1]), now = urgency_of(order[t]);
        if (before < now || (before == now && order[t - 1] > order[t]))
            fail_msg("task %d came before task %d", order[t - 1], order[t]);
    }
}

static void test_urgency_alone(void **state)
{
    (void)state;
    run_tasks(1);
    for (int t = 0; t < TASKS; t++)
        assert_int_equal(order[t], t);
}

static void sleep_cpu(void *buffers[], void *argument)
{
    (void)buffers, (void)argument;
    usleep(2000);
}

/* Of many pending tasks, all but a few are waited for. */
static void test_room(void **state)
{
    enum { MOST = 3 };
    static struct starpu_codelet codelet = {
        .name = "sleep", .cpu_funcs = {sleep_cpu}, .nbuffers = 1, .modes = {STARPU_W}};
    struct sl_runtime rt;
    struct sl_tile tile;
    float memory;
    (void)state;
    assert_int_equal(sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1}), 0);
    sl_tile_describe(&rt, &tile, 1, 1, 1, sizeof memory, 0, &memory);
    for (int t = 0; t < TASKS; t++)
        submit(&rt, &codelet, &tile, t);
    sl_runtime_wait_for_room(&rt, MOST);
    assert_true(starpu_task_nsubmitted() <= MOST);
    sl_tile_forget(&tile);
    sl_runtime_stop(&rt);
}

int main(void)
{
    const struct CMUnitTest running[] = {cmocka_unit_test(test_environment),
                                         cmocka_unit_test(test_shares_of_gpus),
                                         cmocka_unit_test(test_watched_memory),
                                         cmocka_unit_test(test_places),
                                         cmocka_unit_test(test_touch)},
                            tasks[] = {cmocka_unit_test(test_urgency),
                                       cmocka_unit_test(test_urgency_alone),
                                       cmocka_unit_test(test_home), cmocka_unit_test(test_room)};
    const int failed = cmocka_run_group_tests(running, start, sl_running_stop);
    return failed + cmocka_run_group_tests(tasks, NULL, NULL);
}
