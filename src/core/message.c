#include "core/message.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <starpu.h>

#include "config.h"
#include "core/dag.h"
#include "core/error.h"
#include "core/handle.h"
#include "core/overlap.h"
#include "core/trace.h"

#ifdef SL_HAVE_MPI
#include <starpu_mpi.h>
#endif

#ifdef SL_HAVE_MPI

/* ---- Groups ---- */

static int64_t *group_of; // (processes): group of each process; NULL: no groups
static int processes, own_process;

/* The lock of the groups, which StarPU's thread reads. */
static pthread_mutex_t groups_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_groups(int64_t *groups, int count, int own)
{
    pthread_mutex_lock(&groups_lock);
    free(group_of);
    group_of = groups;
    processes = count;
    own_process = own;
    pthread_mutex_unlock(&groups_lock);
}

void sl_message_groups(const struct sl_runtime *rt, const int64_t *group)
{
    int count = 0;
    for (int r = 0; group && r < rt->ranks; r++) {
        const int process = sl_runtime_process(rt, r);
        count = process >= count ? process + 1 : count;
    }
    int64_t *groups = count ? calloc((size_t)count, sizeof *groups) : NULL;
    if (count && !groups)
        sl_fatal("no memory for the groups of %d ranks", rt->ranks);
    for (int r = 0; group && r < rt->ranks; r++)
        groups[sl_runtime_process(rt, r)] = group[r];
    set_groups(groups, count, sl_runtime_process(rt, rt->rank));
}

static bool is_elsewhere(int process)
{
    pthread_mutex_lock(&groups_lock);
    const bool elsewhere = group_of && process >= 0 && process < processes &&
                           group_of[process] != group_of[own_process];
    pthread_mutex_unlock(&groups_lock);
    return elsewhere;
}

/* ---- Tiles ---- */

static int64_t payload(const struct sl_tile *tile)
{
    return tile->rows * tile->cols * (int64_t)tile->element_size;
}

static void count_message(struct sl_runtime *rt, const struct sl_tile *tile, int to)
{
    sl_dag_message(tile->handle, to, SL_DAG_READS);
    rt->traffic.bytes_sent += payload(tile);
    rt->traffic.messages++;
    if (is_elsewhere(sl_runtime_process(rt, to))) {
        rt->traffic.bytes_between += payload(tile);
        rt->traffic.messages_between++;
    }
}

static void send(struct sl_runtime *rt, struct sl_tile *tile, int to, int64_t tag)
{
    starpu_mpi_isend_detached(sl_tile_handle(rt, tile), sl_runtime_process(rt, to), tag,
                              MPI_COMM_WORLD, NULL, NULL);
    count_message(rt, tile, to);
}

static void receive(struct sl_runtime *rt, struct sl_tile *tile, int from)
{
    starpu_mpi_irecv_detached(sl_tile_handle(rt, tile), sl_runtime_process(rt, from), tile->tag,
                              MPI_COMM_WORLD, NULL, NULL);
    sl_dag_message(tile->handle, from, SL_DAG_WRITES);
    rt->traffic.bytes_received += payload(tile);
    tile->received = true;
}

void sl_tile_send(struct sl_runtime *rt, struct sl_tile *tile, int from, int to)
{
    if (from == to)
        return;
    if (rt->rank == from)
        send(rt, tile, to, tile->tag);
    else if (rt->rank == to)
        receive(rt, tile, from);
}

void sl_tile_send_into(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    if (rt->rank == x->owner)
        send(rt, x, y->owner, y->tag);
    else if (rt->rank == y->owner)
        receive(rt, y, x->owner);
}

/* Send synchronously. Otherwise StarPU could receive the tile into its own memory before the
 * receiver asks for the tile. */
void sl_stage_send(struct sl_runtime *rt, struct sl_tile *tile, int to)
{
    starpu_mpi_issend_detached(sl_tile_handle(rt, tile), sl_runtime_process(rt, to), tile->tag,
                               MPI_COMM_WORLD, NULL, NULL);
    count_message(rt, tile, to);
}

#else

void sl_message_groups(const struct sl_runtime *rt, const int64_t *group)
{
    (void)rt, (void)group;
}

static void receive(struct sl_runtime *rt, struct sl_tile *tile, int from)
{
    (void)tile;
    sl_fatal("a message from rank %d to rank %d in a program built without MPI", from, rt->rank);
}

void sl_tile_send(struct sl_runtime *rt, struct sl_tile *tile, int from, int to)
{
    if (from != to)
        receive(rt, tile, from);
}

void sl_tile_send_into(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    receive(rt, y, x->owner);
}

void sl_stage_send(struct sl_runtime *rt, struct sl_tile *tile, int to)
{
    (void)to;
    receive(rt, tile, rt->rank);
}

#endif

void sl_tile_restore(struct sl_runtime *rt, struct sl_tile *tile, const void *rows)
{
    starpu_data_handle_t handle = sl_tile_handle(rt, tile);
    starpu_data_acquire(handle, STARPU_W);
    memcpy(starpu_data_get_local_ptr(handle), rows, (size_t)sl_tile_bytes(tile));
    starpu_data_release(handle);
    tile->received = true;
}

void sl_tile_drop(struct sl_runtime *rt, struct sl_tile *tile)
{
    if (tile->owner == rt->rank || !tile->received)
        return;
    starpu_data_invalidate_submit(tile->handle);
    tile->received = false;
}

struct sl_traffic sl_traffic_since(const struct sl_runtime *rt, const struct sl_traffic *before)
{
    const struct sl_traffic *now = &rt->traffic;
    return (struct sl_traffic){
        .bytes_sent = now->bytes_sent - before->bytes_sent,
        .bytes_received = now->bytes_received - before->bytes_received,
        .rows_received = now->rows_received - before->rows_received,
        .sums_received = now->sums_received - before->sums_received,
        .adjacency_received = now->adjacency_received - before->adjacency_received,
        .messages = now->messages - before->messages,
        .bytes_between = now->bytes_between - before->bytes_between,
        .messages_between = now->messages_between - before->messages_between,
    };
}

enum { TRAFFIC_FIGURES = sizeof(struct sl_traffic) / sizeof(int64_t) };

struct sl_traffic sl_traffic_add(const struct sl_traffic *sum, const struct sl_traffic *more)
{
    struct sl_traffic all = *sum;
    for (int f = 0; f < TRAFFIC_FIGURES; f++)
        ((int64_t *)&all)[f] += ((const int64_t *)more)[f];
    return all;
}

struct sl_traffic sl_traffic_mean(const struct sl_traffic *sum, int64_t count)
{
    struct sl_traffic mean = *sum;
    for (int f = 0; count > 0 && f < TRAFFIC_FIGURES; f++)
        ((int64_t *)&mean)[f] = (((const int64_t *)sum)[f] + count / 2) / count;
    return mean;
}

/* ---- Stages ---- */

/* A task without work: it only orders the tasks before it and after it. */
static struct starpu_codelet order_codelet = {
    .name = "starling_order",
    .where = STARPU_NOWHERE,
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
};

static void submit(struct starpu_task *task)
{
    const int code = starpu_task_submit(task);
    if (code)
        sl_fatal("StarPU refuses a task without work (error %d)", code);
}

/* Return the handle at `place`, which has no data; make it at first use. */
static starpu_data_handle_t handle_at(void **place)
{
    if (!*place) {
        starpu_data_handle_t handle;
        starpu_void_data_register(&handle);
        *place = handle;
    }
    return *place;
}

/* Return the token of stage number `count`. There are rt->stages tokens: one for each stage that
 * has memory. To ask for a stage takes its token, to drop the stage frees it. */
static starpu_data_handle_t token(struct sl_runtime *rt, int64_t count)
{
    return handle_at(&rt->stage_token[count % rt->stages]);
}

/* Order tasks: earlier tasks on the tiles and on the token come before later ones. */
static void submit_order(struct sl_runtime *rt, int64_t number, const struct sl_stage *stage,
                         enum starpu_data_access_mode mode, int count_after,
                         struct sl_tile *const *after)
{
    const int count = 1 + stage->count + count_after;
    struct starpu_task *task = starpu_task_create();
    starpu_data_handle_t *handles = malloc((size_t)count * sizeof *handles);
    enum starpu_data_access_mode *modes = malloc((size_t)count * sizeof *modes);
    if (!handles || !modes)
        sl_fatal("no memory for the %d tiles of a stage", count);
    handles[0] = token(rt, number);
    modes[0] = STARPU_RW;
    for (int t = 0; t < stage->count; t++) {
        handles[1 + t] = sl_tile_handle(rt, stage->tiles[t]);
        modes[1 + t] = mode;
    }
    for (int t = 0; t < count_after; t++) {
        handles[1 + stage->count + t] = sl_tile_handle(rt, after[t]);
        modes[1 + stage->count + t] = STARPU_RW;
    }
    task->cl = &order_codelet;
    task->dyn_handles = handles;
    task->dyn_modes = modes;
    task->nbuffers = count;
    submit(task);
}

/* Large messages travel on SL_WAYS ways, on each way one after the other. If all tiles of the
 * window travelled at a time, they would share the link and arrive together, at the end. Tasks on
 * the first ones would wait for the last ones. With two ways, one message travels while the other
 * way asks. With one stage, tiles are asked for when tasks are done. */
static bool takes_way(const struct sl_runtime *rt, const struct sl_tile *tile)
{
    enum { LARGE = 1 << 20 };
    return rt->stages > 1 && sl_tile_bytes(tile) >= LARGE;
}

/* Take the way before the message of the tile (W), or leave it after the message (R). */
static void submit_way(struct sl_runtime *rt, struct sl_tile *tile,
                       enum starpu_data_access_mode mode)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = &order_codelet;
    task->nbuffers = 2;
    task->handles[0] = handle_at(&rt->way[rt->messages_asked % SL_WAYS]);
    task->modes[0] = STARPU_RW;
    task->handles[1] = sl_tile_handle(rt, tile);
    task->modes[1] = mode;
    submit(task);
}

static void ask(struct sl_runtime *rt, struct sl_tile *tile, int from)
{
    const bool way = takes_way(rt, tile);
    if (way)
        submit_way(rt, tile, STARPU_W);
    receive(rt, tile, from);
    if (way)
        submit_way(rt, tile, STARPU_R);
    rt->messages_asked += way;
}

void sl_stage_ask(struct sl_runtime *rt, const struct sl_stage *stage, int count_after,
                  struct sl_tile *const *after)
{
    const int64_t number = rt->stages_asked++;
    if (stage->count == 0)
        return;
    submit_order(rt, number, stage, STARPU_W, rt->stages > 1 ? 0 : count_after, after);
    for (int t = 0; t < stage->count; t++) {
        const int64_t before = rt->traffic.bytes_received;
        int64_t *counted = stage->sums                            ? &rt->traffic.sums_received
                           : t >= stage->count - stage->adjacency ? &rt->traffic.adjacency_received
                                                                  : &rt->traffic.rows_received;
        ask(rt, stage->tiles[t], stage->from ? stage->from[t] : stage->tiles[t]->owner);
        *counted += rt->traffic.bytes_received - before;
    }
}

void sl_stage_drop(struct sl_runtime *rt, const struct sl_stage *stage)
{
    const int64_t number = rt->stages_dropped++;
    if (stage->count == 0)
        return;
    submit_order(rt, number, stage, STARPU_RW, 0, NULL);
    for (int t = 0; t < stage->count; t++)
        sl_tile_drop(rt, stage->tiles[t]);
}

void sl_stage_stop(struct sl_runtime *rt)
{
    for (int s = 0; s < SL_MOST_STAGES; s++)
        if (rt->stage_token[s])
            starpu_data_unregister((starpu_data_handle_t)rt->stage_token[s]);
    for (int w = 0; w < SL_WAYS; w++)
        if (rt->way[w])
            starpu_data_unregister((starpu_data_handle_t)rt->way[w]);
}

#ifdef SL_HAVE_MPI

/* ---- Payloads that travel ---- */

/* Wrap MPI's functions by its profiling interface: StarPU calls ours, and ours call MPI's. StarPU
 * receives a payload once it has the sender's announcement and somebody has asked for it. A message
 * that is not synchronous needs the announcement alone. StarPU's detached requests exist long
 * before anything can travel, so they cannot tell. */

struct payload {
    MPI_Request request;
    bool received, between; /* the sender is of another group */
    int64_t traced;         /* number from sl_trace_message */
};

static atomic_int announcement_tag = -1; /* tag of announcements, which come from any rank */
static struct payload *payloads;         // (payload_count): payloads that travel
static int payload_count, payload_room;
static pthread_mutex_t payload_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_payload(struct payload travelling)
{
    pthread_mutex_lock(&payload_lock);
    if (payload_count == payload_room) {
        payload_room = payload_room ? 2 * payload_room : 64;
        payloads = realloc(payloads, (size_t)payload_room * sizeof *payloads);
        if (!payloads)
            sl_fatal("no memory for a list of %d messages", payload_room);
    }
    payloads[payload_count++] = travelling;
    pthread_mutex_unlock(&payload_lock);
}

static bool remove_payload(MPI_Request request, struct payload *removed)
{
    pthread_mutex_lock(&payload_lock);
    int p = 0;
    while (p < payload_count && payloads[p].request != request)
        p++;
    const bool found = p < payload_count;
    if (found) {
        *removed = payloads[p];
        payloads[p] = payloads[--payload_count];
    }
    pthread_mutex_unlock(&payload_lock);
    return found;
}

/* Ask Linux for short time slices (6.12 and later; ignored before). The thread for messages often
 * shares its core with a worker, and gets the core sooner with short slices. */
static void shorten_slices(void)
{
#ifdef SYS_sched_setattr
    static const uint64_t SLICE = 200000; /* nanoseconds */
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof attributes, .runtime = SLICE}; /* runtime: the time slice */
    syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

static int64_t size_of(MPI_Datatype type, int count)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    return (int64_t)size * count;
}

/* Receive an announcement from any rank, or a payload from the rank that announced it. */
int MPI_Irecv(void *memory, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    static _Thread_local bool short_slices;
    const bool is_payload = source != MPI_ANY_SOURCE, between = is_elsewhere(source);
    if (!short_slices)
        shorten_slices();
    short_slices = true;
    if (is_payload)
        sl_overlap_message(true, between);
    else
        atomic_store(&announcement_tag, tag);
    const int64_t traced =
        is_payload ? sl_trace_message(SL_TRACE_RECEIVED, source, tag, size_of(type, count)) : -1;
    const int code = PMPI_Irecv(memory, count, type, source, tag, comm, request);
    if (is_payload && code == MPI_SUCCESS)
        add_payload((struct payload){*request, true, between, traced});
    return code;
}

typedef int send_function(const void *memory, int count, MPI_Datatype type, int to, int tag,
                          MPI_Comm comm, MPI_Request *request);

static int send_payload(send_function *start, const void *memory, int count, MPI_Datatype type,
                        int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    const bool is_payload = tag != atomic_load(&announcement_tag);
    const int64_t traced =
        is_payload ? sl_trace_message(SL_TRACE_SENT, to, tag, size_of(type, count)) : -1;
    const int code = start(memory, count, type, to, tag, comm, request);
    if (traced >= 0 && code == MPI_SUCCESS)
        add_payload((struct payload){*request, false, false, traced});
    return code;
}

/* MPI_Isend is weak: a program may have its own, as tests/count_payloads.c has. */
__attribute__((weak)) int MPI_Isend(const void *memory, int count, MPI_Datatype type, int to,
                                    int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_payload(PMPI_Isend, memory, count, type, to, tag, comm, request);
}

__attribute__((weak)) int MPI_Issend(const void *memory, int count, MPI_Datatype type, int to,
                                     int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_payload(PMPI_Issend, memory, count, type, to, tag, comm, request);
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    const MPI_Request tested = *request;
    struct payload payload;
    const int code = PMPI_Test(request, done, status);
    if (code != MPI_SUCCESS || !*done || !remove_payload(tested, &payload))
        return code;
    sl_trace_message_ends(payload.traced);
    if (payload.received)
        sl_overlap_message(false, payload.between);
    return code;
}

#endif
