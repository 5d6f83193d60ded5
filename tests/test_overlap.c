/* core/overlap.h: spans in which workers compute and messages travel, laid out by hand, and drawn
 * at random against counting nanosecond by nanosecond; then real workers. */
#include <time.h>

#include <starpu.h>

#include "core/overlap.h"
#include "core/rng.h"
#include "tests/running.h"
#include "tests/unit.h"

struct span {
    int64_t from, to;
    bool travels; /* a message; else a task */
};

struct event {
    int64_t clock;
    int computing, travelling;
};

static int compare_clock(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return (x->clock > y->clock) - (x->clock < y->clock);
}

enum { MOST_SPANS = 64, END = 1000 };

static struct sl_overlap_times add_up(const struct span *spans, int count)
{
    struct event events[2 * MOST_SPANS];
    for (int s = 0; s < count; s++)
        for (int end = 0; end < 2; end++) {
            const int by = end ? -1 : 1;
            events[2 * s + end] = (struct event){
                .clock = end ? spans[s].to : spans[s].from,
                .computing = spans[s].travels ? 0 : by,
                .travelling = spans[s].travels ? by : 0,
            };
        }
    qsort(events, 2 * (size_t)count, sizeof *events, compare_clock);
    struct sl_overlap overlap = {0};
    for (int e = 0; e < 2 * count; e++)
        sl_overlap_change(&overlap, events[e].clock, events[e].computing, events[e].travelling);
    sl_overlap_change(&overlap, END, 0, 0);
    assert_int_equal(overlap.computing, 0);
    assert_int_equal(overlap.travelling, 0);
    return overlap.times;
}

static void expect(const struct span *spans, int count, int64_t compute, int64_t communication,
                   int64_t hidden)
{
    const struct sl_overlap_times times = add_up(spans, count);
    assert_int_equal(times.clock, END);
    assert_int_equal(times.compute, compute);
    assert_int_equal(times.communication, communication);
    assert_int_equal(times.hidden, hidden);
}

SL_TEST(by_hand)
{
    expect(NULL, 0, 0, 0, 0);
    expect((struct span[]){{10, 30, false}, {20, 50, false}}, 2, 50, 0, 0);
    expect((struct span[]){{10, 30, true}, {20, 50, true}}, 2, 0, 40, 0);
    /* before, across both ends, within, and after a task */
    expect((struct span[]){{100, 200, false}, {50, 80, true}}, 2, 100, 30, 0);
    expect((struct span[]){{100, 200, false}, {50, 150, true}}, 2, 100, 100, 50);
    expect((struct span[]){{100, 200, false}, {120, 150, true}}, 2, 100, 30, 30);
    expect((struct span[]){{100, 200, false}, {150, 250, true}}, 2, 100, 100, 50);
    expect((struct span[]){{100, 200, false}, {50, 250, true}}, 2, 100, 200, 100);
    expect((struct span[]){{100, 200, false}, {200, 250, true}}, 2, 100, 50, 0);
    /* two workers hide a message once; one of two messages is enough */
    expect((struct span[]){{100, 200, false}, {150, 300, false}, {120, 180, true}}, 3, 250, 60, 60);
    expect((struct span[]){{100, 200, false}, {50, 120, true}, {110, 300, true}}, 3, 100, 250, 100);
}

/* The workers that compute and the messages that travel, in every nanosecond. */
static void count_each(const struct span *spans, int count, int computing[END], int travelling[END])
{
    for (int s = 0; s < count; s++)
        for (int64_t t = spans[s].from; t < spans[s].to; t++)
            (spans[s].travels ? travelling : computing)[t]++;
}

SL_TEST(at_random)
{
    for (uint32_t round = 0; round < 300; round++) {
        const uint64_t key = sl_rng_key(1, SL_RNG_ORDER, round, 0);
        const int count = (int)(round % MOST_SPANS);
        struct span spans[MOST_SPANS];
        for (uint32_t s = 0; s < (uint32_t)count; s++) {
            const int64_t from = (int64_t)((double)END * sl_rng_uniform(key, s, 0));
            const int64_t length =
                (int64_t)((double)(END - from) * sl_rng_uniform(key, s, 1) / (s + 1));
            spans[s] = (struct span){from, from + length, sl_rng_uniform(key, s, 2) < 0.5};
        }
        int computing[END] = {0}, travelling[END] = {0};
        count_each(spans, count, computing, travelling);
        int64_t compute = 0, communication = 0, hidden = 0;
        for (int t = 0; t < END; t++) {
            compute += computing[t];
            communication += travelling[t] > 0;
            hidden += travelling[t] > 0 && computing[t] > 0;
        }
        expect(spans, count, compute, communication, hidden);
    }
}

/* Whoever is late gets no time that was added up already. */
SL_TEST(late)
{
    struct sl_overlap overlap = {0};
    sl_overlap_change(&overlap, 100, 1, 0);
    sl_overlap_change(&overlap, 90, 0, 1);
    sl_overlap_change(&overlap, 120, -1, 0);
    sl_overlap_change(&overlap, 110, 0, -1);
    sl_overlap_change(&overlap, 130, 0, 0);
    assert_int_equal(overlap.times.clock, 130);
    assert_int_equal(overlap.times.compute, 20);
    assert_int_equal(overlap.times.communication, 20);
    assert_int_equal(overlap.times.hidden, 20);
}

/* While a message of another group travels, others may travel too. */
SL_TEST(between_groups)
{
    struct sl_overlap overlap = {0};
    sl_overlap_change(&overlap, 100, 0, 1);
    sl_overlap_change(&overlap, 110, 0, 1);
    overlap.between = 1;
    sl_overlap_change(&overlap, 130, 0, -1);
    overlap.between = 0;
    sl_overlap_change(&overlap, 170, 0, -1);
    sl_overlap_change(&overlap, 200, 0, 0);
    assert_int_equal(overlap.times.communication, 70);
    assert_int_equal(overlap.times.between, 20);
    const struct sl_overlap_times before = {.between = 5};
    assert_int_equal(sl_overlap_since(&overlap.times, &before).between, 15);
}

/* ---- Workers ---- */

static const int64_t NAP = 20000000; /* nanoseconds */

static void nap(void *buffers[], void *argument)
{
    (void)buffers, (void)argument;
    nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
}

/* Tasks compute for as long as they last; without other ranks, nothing travels. */
SL_TEST(tasks)
{
    enum { TASKS = 5 };
    static struct starpu_perfmodel model = {.type = STARPU_HISTORY_BASED, .symbol = "starling_nap"};
    static struct starpu_codelet codelet = {.name = "nap", .cpu_funcs = {nap}, .model = &model};
    const struct sl_overlap_times before = sl_overlap_now();
    for (int t = 0; t < TASKS; t++) {
        struct starpu_task *task = starpu_task_create();
        task->cl = &codelet;
        assert_int_equal(starpu_task_submit(task), 0);
    }
    starpu_task_wait_for_all();
    const struct sl_overlap_times now = sl_overlap_now(), span = sl_overlap_since(&now, &before);
    assert_true(span.compute >= TASKS * NAP);
    assert_true(span.compute <= sl_running.process->workers * span.clock);
    assert_int_equal(span.communication, 0);
    assert_int_equal(span.hidden, 0);
    nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
    assert_int_equal(sl_overlap_now().compute, now.compute); /* all have ended */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),        cmocka_unit_test(at_random), cmocka_unit_test(late),
        cmocka_unit_test(between_groups), cmocka_unit_test(tasks),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
