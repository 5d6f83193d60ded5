#include "core/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starpu.h>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"

/* A task's time, in nanoseconds of the steady clock. */
struct span {
    const char *name;
    int64_t epoch, start, end;
};

/* Records of a worker, which it alone writes while tasks run. */
struct worker {
    _Alignas(64) struct span *spans; // (count)
    int64_t count, room;
    bool running; /* the last span is a task that still runs */
};

struct message {
    enum sl_trace_way way;
    int process, tag;
    int64_t number; /* number of the message among those of its way, process and tag */
    int64_t bytes, start, end;
    int lane; /* messages of a link that travel together are in separate lanes */
};

/* Number of messages of one way, process and tag since sl_trace_enable. */
struct counter {
    enum sl_trace_way way;
    int process, tag;
    int64_t count;
};

enum { LANES = 64 };

static struct {
    atomic_bool counts;  /* messages are counted, from the start of a run that has a trace */
    int64_t first, last; /* epochs to record; 0: nothing is recorded */
    int64_t epoch;       /* epoch of the tasks submitted now */
    struct worker workers[STARPU_NMAXWORKERS];
    atomic_bool listens;  /* messages are recorded */
    pthread_mutex_t lock; /* guards the members below */
    struct message *messages;
    struct counter *counters;
    int64_t message_count, message_room, counter_count, counter_room;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t read_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Return the list with room for one element more than `count`. */
static void *grown(void *list, int64_t count, int64_t *room, size_t size)
{
    if (count < *room)
        return list;
    const int64_t more = *room ? 2 * *room : 1024;
    list = realloc(list, (size_t)more * size);
    if (!list)
        sl_fatal("no memory for a trace of %" PRId64 " entries", more);
    *room = more;
    return list;
}

/* ---- Recording ---- */

void sl_trace_enable(void)
{
    atomic_store(&trace.counts, true);
}

void sl_trace_open(int64_t first, int64_t last)
{
    trace.first = first;
    trace.last = last;
}

void sl_trace_epoch(int64_t epoch)
{
    trace.epoch = epoch;
    if (trace.first > 0 && epoch >= trace.first && epoch - 1 <= trace.last)
        atomic_store(&trace.listens, true);
}

/* Store the epoch in the task's tag: StarPU reads the tag only where use_tag is set. */
void sl_trace_mark(struct starpu_task *task)
{
    task->tag_id = (starpu_tag_t)trace.epoch;
}

/* Return whether a task is of the recorded epochs. Messages of the last epoch have come before the
 * next epoch ends. */
static bool is_wanted(const struct starpu_task *task)
{
    const int64_t epoch = (int64_t)task->tag_id;
    if (epoch - 1 > trace.last)
        atomic_store_explicit(&trace.listens, false, memory_order_relaxed);
    return epoch >= trace.first && epoch <= trace.last;
}

void sl_trace_task(const struct starpu_task *task, bool starts)
{
    const int id = starpu_worker_get_id();
    if (trace.first == 0 || id < 0 || (starts && !is_wanted(task)))
        return;
    struct worker *worker = &trace.workers[id];
    if (starts) {
        worker->spans = grown(worker->spans, worker->count, &worker->room, sizeof *worker->spans);
        worker->spans[worker->count++] =
            (struct span){task->cl->name, (int64_t)task->tag_id, read_clock(), 0};
    } else if (worker->running) {
        worker->spans[worker->count - 1].end = read_clock();
    }
    worker->running = starts;
}

static int64_t count_message(enum sl_trace_way way, int process, int tag)
{
    int64_t c = 0;
    while (c < trace.counter_count &&
           (trace.counters[c].way != way || trace.counters[c].process != process ||
            trace.counters[c].tag != tag))
        c++;
    if (c == trace.counter_count) {
        trace.counters = grown(trace.counters, c, &trace.counter_room, sizeof *trace.counters);
        trace.counters[trace.counter_count++] = (struct counter){way, process, tag, 0};
    }
    return trace.counters[c].count++;
}

int64_t sl_trace_message(enum sl_trace_way way, int process, int tag, int64_t bytes)
{
    int64_t index = -1;
    if (!atomic_load(&trace.counts))
        return index;
    pthread_mutex_lock(&trace.lock);
    const int64_t number = count_message(way, process, tag);
    if (atomic_load(&trace.listens)) {
        index = trace.message_count++;
        trace.messages = grown(trace.messages, index, &trace.message_room, sizeof *trace.messages);
        trace.messages[index] =
            (struct message){way, process, tag, number, bytes, read_clock(), 0, 0};
    }
    pthread_mutex_unlock(&trace.lock);
    return index;
}

void sl_trace_message_ends(int64_t number)
{
    if (number < 0)
        return;
    pthread_mutex_lock(&trace.lock);
    if (number < trace.message_count) /* the trace may have ended */
        trace.messages[number].end = read_clock();
    pthread_mutex_unlock(&trace.lock);
}

/* ---- Writing ---- */

/* A copy of the messages, which late messages no longer change. */
struct list {
    struct message *messages; // (count)
    int64_t count;
};

static struct list detach_messages(void)
{
    pthread_mutex_lock(&trace.lock);
    const struct list list = {trace.messages, trace.message_count};
    atomic_store(&trace.listens, false);
    trace.messages = NULL;
    trace.message_count = trace.message_room = 0;
    pthread_mutex_unlock(&trace.lock);
    return list;
}

enum { LINKS = 1000 /* number of the first track of a link, above the tracks of workers */ };

static int compare_messages(const void *a, const void *b)
{
    const struct message *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Find the first start and the last end of all spans recorded on this rank. */
static void find_window(int64_t *start, int64_t *end)
{
    *start = INT64_MAX;
    *end = 0;
    for (int w = 0; w < STARPU_NMAXWORKERS; w++)
        for (int64_t s = 0; s < trace.workers[w].count; s++) {
            const struct span *span = &trace.workers[w].spans[s];
            *start = span->start < *start ? span->start : *start;
            *end = span->end > *end ? span->end : *end;
        }
}

/* Give messages of a track that travel together separate lanes, or they would look like one. The
 * last lane takes the rest. */
static void choose_lanes(const struct list *list)
{
    if (list->count > 0)
        qsort(list->messages, (size_t)list->count, sizeof *list->messages, compare_messages);
    for (int64_t m = 0; m < list->count; m++) {
        struct message *message = &list->messages[m];
        bool taken[LANES] = {false};
        for (int64_t o = m - 1; o >= 0 && o > m - 4 * LANES; o--) {
            const struct message *other = &list->messages[o];
            if (other->way == message->way && other->process == message->process &&
                other->end >= message->start)
                taken[other->lane] = true;
        }
        while (message->lane < LANES - 1 && taken[message->lane])
            message->lane++;
    }
}

static int track_of(const struct message *message)
{
    return LINKS + ((message->process * 2 + (message->way == SL_TRACE_RECEIVED)) * LANES) +
           message->lane;
}

/* Return the name without "starling_", which keeps performance models of programs apart. */
static const char *short_name(const char *name)
{
    static const char prefix[] = "starling_";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

static double microseconds(int64_t clock)
{
    return 1e-3 * (double)clock;
}

static void print_name(FILE *out, int rank, int track, const char *name)
{
    fprintf(out,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%"
            "s\"}}"
            ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%d,\"args\":"
            "{\"sort_index\":%d}}",
            rank, track, name, rank, track, track);
}

static void print_workers(FILE *out, int rank, int64_t origin)
{
    for (int w = 0; w < (int)starpu_worker_get_count(); w++) {
        char name[64];
        starpu_worker_get_name(w, name, sizeof name);
        print_name(out, rank, w, name);
        for (int64_t s = 0; s < trace.workers[w].count; s++) {
            const struct span *span = &trace.workers[w].spans[s];
            if (span->end > 0)
                fprintf(out,
                        ",\n{\"ph\":\"X\",\"cat\":\"task\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
                        "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"epoch\":%" PRId64 "}}",
                        short_name(span->name), rank, w, microseconds(span->start - origin),
                        microseconds(span->end - span->start), span->epoch);
        }
    }
}

/* Return a message's number that both ranks find and no other message has. Perfetto takes arrows
 * whose ids are numbers or hexadecimal digits alone. SplitMix64 mixes the bits. */
static uint64_t arrow_id(int from, int to, const struct message *m)
{
    const uint64_t parts[] = {(uint64_t)from, (uint64_t)to, (uint64_t)m->tag, (uint64_t)m->number};
    uint64_t id = 0;
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        id += parts[p] + UINT64_C(0x9E3779B97F4A7C15);
        id = (id ^ id >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        id = (id ^ id >> 27) * UINT64_C(0x94D049BB133111EB);
        id ^= id >> 31;
    }
    return id;
}

/* Return the time at which an arrow ends. It must be inside the message's span: to Perfetto, a span
 * does not contain its end. */
static int64_t arrow_end(const struct message *m)
{
    return m->end > m->start ? m->end - 1 : m->start;
}

/* Print a message as a span on its rank, and its end of the arrow between both ranks. */
static void print_message(FILE *out, int rank, const struct message *m, int64_t origin)
{
    const bool sent = m->way == SL_TRACE_SENT;
    const int from = sent ? rank : m->process, to = sent ? m->process : rank;
    const int64_t end = m->end > 0 ? m->end : m->start;
    fprintf(
        out,
        ",\n{\"ph\":\"X\",\"cat\":\"message\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
        "\"dur\":%.3f,\"args\":{\"bytes\":%" PRId64 ",\"from\":%d,\"to\":%d}}",
        sent ? "sent" : "received", rank, track_of(m), microseconds(m->start - origin),
        microseconds(end - m->start), m->bytes, from, to);
    fprintf(out,
            ",\n{\"ph\":\"%s\",\"cat\":\"message\",\"name\":\"message\",\"id\":\"%" PRIx64
            "\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f%s}",
            sent ? "s" : "f", arrow_id(from, to, m), rank, track_of(m),
            microseconds((sent ? m->start : arrow_end(m)) - origin), sent ? "" : ",\"bp\":\"e\"");
}

static void print_link(FILE *out, int rank, const struct message *m)
{
    char name[64];
    snprintf(name, sizeof name, m->lane ? "%s rank %d (%d)" : "%s rank %d",
             m->way == SL_TRACE_SENT ? "to" : "from", m->process, m->lane + 1);
    print_name(out, rank, track_of(m), name);
}

/* Print the messages that travelled between `start` and `end`. */
static int print_messages(FILE *out, const struct sl_runtime *rt, const struct list *list,
                          int64_t origin, int64_t start, int64_t end)
{
    bool *named = calloc((size_t)rt->ranks * 2 * LANES, sizeof *named);
    if (!named)
        return sl_error(SL_ERR_SYSTEM, "no memory for the links of a trace");
    choose_lanes(list);
    for (int64_t m = 0; m < list->count; m++) {
        const struct message *message = &list->messages[m];
        if (message->start > end || message->start < start)
            continue;
        if (!named[track_of(message) - LINKS])
            print_link(out, rt->rank, message);
        named[track_of(message) - LINKS] = true;
        print_message(out, rt->rank, message, origin);
    }
    free(named);
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Return the nanoseconds by which this rank's clock is ahead of rank 0's. */
static int64_t compare_clocks(struct sl_runtime *rt)
{
    enum { MEETINGS = 9 };
    int64_t difference[MEETINGS], *clocks;
    if (rt->ranks == rt->process->ranks_here)
        return 0;
    clocks = calloc((size_t)rt->ranks, sizeof *clocks);
    if (!clocks)
        sl_fatal("no memory for the clocks of %d ranks", rt->ranks);
    for (int m = 0; m < MEETINGS; m++) {
        sl_runtime_gather(rt, 0, clocks); /* ranks leave this together */
        sl_runtime_gather(rt, read_clock(), clocks);
        difference[m] = clocks[rt->rank] - clocks[0];
    }
    free(clocks);
    qsort(difference, MEETINGS, sizeof *difference, compare_numbers);
    return difference[MEETINGS / 2];
}

/* Print this rank's part of the file into memory. */
static int print_rank(struct sl_runtime *rt, const struct list *list, char **text, size_t *size)
{
    int64_t start, end;
    const int64_t ahead = compare_clocks(rt);
    find_window(&start, &end);
    const int64_t least = sl_runtime_least(rt, start == INT64_MAX ? start : start - ahead);
    const int64_t origin = least == INT64_MAX ? 0 : least + ahead;
    if (least == INT64_MAX)
        sl_note("--trace-epochs: no task in these epochs; the trace is empty");
    FILE *out = open_memstream(text, size);
    if (!out)
        return sl_error(SL_ERR_SYSTEM, "no memory for a trace");
    fprintf(out,
            "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}",
            rt->rank == 0 ? "" : ",\n", rt->rank, rt->rank);
    print_workers(out, rt->rank, origin);
    const int code = print_messages(out, rt, list, origin, start, end);
    return fclose(out) ? sl_error(SL_ERR_SYSTEM, "no memory for a trace") : code;
}

static int write_all(const char *path, const char *text, size_t size)
{
    struct sl_new_file out;
    const int code = sl_file_create(&out, path);
    if (code)
        return code;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", out.file);
    fwrite(text, 1, size, out.file);
    fputs("\n]}\n", out.file);
    return sl_file_commit(&out, true);
}

static void forget(void)
{
    for (int w = 0; w < STARPU_NMAXWORKERS; w++) {
        free(trace.workers[w].spans);
        trace.workers[w] = (struct worker){0};
    }
    trace.first = 0;
    pthread_mutex_lock(&trace.lock);
    atomic_store(&trace.counts, false);
    free(trace.counters);
    trace.counters = NULL;
    trace.counter_count = trace.counter_room = 0;
    pthread_mutex_unlock(&trace.lock);
}

int sl_trace_close(struct sl_runtime *rt, const char *path)
{
    const struct list list = detach_messages();
    char *text = NULL;
    size_t size = 0;
    void *all = NULL;
    int64_t count = 0, *first = calloc((size_t)rt->ranks + 1, sizeof *first);
    int code = first ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a trace");
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = sl_runtime_agree(rt, print_rank(rt, &list, &text, &size));
    for (int r = 1; !code && r <= rt->ranks; r++)
        first[r] = (int64_t)size;
    if (!code)
        code = sl_runtime_exchange(rt, text, first, 1, &all, &count);
    if (!code && rt->rank == 0)
        code = write_all(path, all, (size_t)count);
    free(all);
    free(text);
    free(first);
    free(list.messages);
    forget();
    return sl_runtime_agree(rt, code);
}
