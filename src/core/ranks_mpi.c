#include "config.h"
#include "core/ranks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starpu_mpi.h>

#if defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

#include "core/error.h"
#include "core/handle.h"
#include "core/launcher.h"
#include "core/log.h"

/* ---- Start and stop ---- */

/* Return whether a launcher started this process. Without one, MPI is not started: initialising it
 * costs a quarter of a second. */
bool sl_runtime_launched(void)
{
    static const char *const marks[] = {
        "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",          "PMI_RANK", "PMI_SIZE",
        "MPI_LOCALRANKID",      "MV2_COMM_WORLD_RANK"};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        if (getenv(marks[m]))
            return !sl_launcher_is_off();
    return false;
}

/* Communicator of our messages from rank to rank, which StarPU must not take for its own. */
static MPI_Comm own = MPI_COMM_NULL;

static MPI_Comm comm_of(const struct sl_runtime *rt)
{
    return rt->comm ? *(const MPI_Comm *)rt->comm : own;
}

static bool held, ours; /* MPI is held; MPI was started here, and so is finalized here */

static bool is_finalized(void)
{
    int finalized;
    MPI_Finalized(&finalized);
    return finalized;
}

bool sl_ranks_use_mpi(void)
{
    int initialized;
    MPI_Initialized(&initialized);
    return initialized && !is_finalized();
}

/* Settings that Open MPI reads at its start, unless the user sets others. On TCP, a short message,
 * such as an announcement, must not wait behind megabytes of other messages. So messages travel in
 * pieces of 64 KiB, from a small send buffer. Otherwise two ranks send in turns
 * (docs/DISTRIBUTIONS.md). */
static const char *const settings[][2] = {
    {"OMPI_MCA_mpi_yield_when_idle", "1"}, /* see scheduler.c */
    {"OMPI_MCA_btl_tcp_flags", "1"},       /* send, without put */
    {"OMPI_MCA_btl_tcp_max_send_size", "65536"},
    {"OMPI_MCA_btl_tcp_sndbuf", "262144"},
};

/* A note after half a minute in MPI_Init, which waits for all processes of the launcher: for ever
 * for one that runs another program. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t started;
    bool over;
} start = {.lock = PTHREAD_MUTEX_INITIALIZER, .started = PTHREAD_COND_INITIALIZER};

static void *note_long_start(void *unused)
{
    enum { SECONDS = 30 };
    struct timespec until;
    int code = 0;
    (void)unused;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    pthread_mutex_lock(&start.lock);
    while (!start.over && code == 0)
        code = pthread_cond_timedwait(&start.started, &start.lock, &until);
    if (!start.over)
        sl_note("MPI has been starting for %d seconds: does each rank run this command?", SECONDS);
    pthread_mutex_unlock(&start.lock);
    return NULL;
}

/* MPI_Init_thread, with the note on the launcher's rank 0. */
static int start_mpi(int *provided)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all); /* signals are for other threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    start.over = false;
    const bool notes =
        sl_launcher_rank() == 0 && pthread_create(&thread, NULL, note_long_start, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, provided);
    pthread_mutex_lock(&start.lock);
    start.over = true;
    pthread_cond_signal(&start.started);
    pthread_mutex_unlock(&start.lock);
    if (notes)
        pthread_join(thread, NULL);
    return code;
}

static int initialize_mpi(void)
{
    int provided;
    if (is_finalized())
        return sl_error(SL_ERR_SYSTEM, "MPI was finalized in this process and cannot start again");
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        setenv(settings[s][0], settings[s][1], 0);
    if (start_mpi(&provided) != MPI_SUCCESS)
        return sl_error(SL_ERR_SYSTEM, "MPI does not start");
    if (provided < MPI_THREAD_MULTIPLE)
        return sl_error(SL_ERR_SYSTEM,
                        "this MPI was built without MPI_THREAD_MULTIPLE, which StarPU needs");
    ours = true;
    return 0;
}

/* Refuse an MPI without threads, which the program around this library may have started. */
static int check_threads(void)
{
    int provided;
    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE
               ? 0
               : sl_error(SL_ERR_USAGE, "MPI was started without threads: expected "
                                        "MPI_Init_thread(…, MPI_THREAD_MULTIPLE, …)");
}

int sl_ranks_start(struct sl_runtime *rt)
{
    int code = sl_runtime_launched() && !sl_ranks_use_mpi() ? initialize_mpi() : 0;
    if (!code && sl_ranks_use_mpi())
        code = check_threads();
    if (code || !sl_ranks_use_mpi())
        return code;
    if (own == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_rank(MPI_COMM_WORLD, &rt->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rt->ranks);
    return 0;
}

static void finalize_mpi(void)
{
    if (own != MPI_COMM_NULL)
        MPI_Comm_free(&own); /* sets `own` to MPI_COMM_NULL */
    if (ours)
        MPI_Finalize();
}

void sl_runtime_keep_mpi(void)
{
    held = true;
}

/* End all ranks, because the others wait for this one. */
static void end_all_ranks(void)
{
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int sl_runtime_hold_mpi(struct sl_runtime *rt)
{
    *rt = (struct sl_runtime){.ranks = 1};
    sl_runtime_keep_mpi();
    const int code = sl_ranks_start(rt);
    if (rt->ranks > 1)
        sl_fatal_ends(end_all_ranks);
    return code;
}

void sl_runtime_release_mpi(void)
{
    if (held && sl_ranks_use_mpi())
        finalize_mpi();
    held = false;
}

void sl_ranks_count_sharers(const char *text, int *sharers, int *index)
{
    char mine[SL_RANKS_TEXT];
    *sharers = 1;
    *index = 0;
    if (!sl_ranks_use_mpi())
        return;
    MPI_Comm node;
    int size, rank;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_rank(node, &rank);
    char *all = malloc((size_t)size * sizeof mine);
    if (!all && size == 1) {
        MPI_Comm_free(&node);
        return;
    }
    if (!all)
        sl_fatal("no memory for what %d ranks may run on", size); /* other ranks wait */
    snprintf(mine, sizeof mine, "%s", text);
    MPI_Allgather(mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, node);
    *sharers = 0;
    for (int r = 0; r < size; r++)
        if (strcmp(all + (size_t)r * sizeof mine, mine) == 0) {
            *index += r < rank;
            ++*sharers;
        }
    free(all);
    MPI_Comm_free(&node);
}

/* Make MPI's type of a tile's message. Both ranks know the tile alike, so the type is the same.
 * Rows with little between them travel in one piece, with what is between. Open MPI copies each row
 * of a message of several pieces, on both ranks. */
static int describe_tile(starpu_data_handle_t handle, MPI_Datatype *type)
{
    enum { MOST_BYTES = INT32_MAX, LITTLE = 8 /* an eighth of a row */ };
    const struct sl_handle_rows tile = sl_handle_rows(handle);
    const int64_t between = tile.apart - tile.bytes, bytes = tile.rows * tile.apart - between;
    const bool whole = tile.rows > 0 && between * LITTLE <= tile.bytes && bytes <= MOST_BYTES;
    const int code =
        whole ? MPI_Type_contiguous((int)bytes, MPI_BYTE, type)
              : MPI_Type_vector((int)tile.rows, (int)tile.bytes, (int)tile.apart, MPI_BYTE, type);
    return code == MPI_SUCCESS ? MPI_Type_commit(type) : code;
}

static void free_type(MPI_Datatype *type)
{
    MPI_Type_free(type);
}

/* Return whether StarPU has one memory on each rank: no GPU, and no NUMA nodes of their own. */
static bool have_one_memory(void)
{
    int several = starpu_memory_nodes_get_count() > 1;
    MPI_Allreduce(MPI_IN_PLACE, &several, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !several;
}

/* Messages have describe_tile's type where ranks have one memory. A message may come before its
 * tile is free. StarPU 1.3 unpacks early messages of such types in the thread that frees the tile,
 * into this thread's memory (starpu_data_get_local_ptr in _starpu_mpi_early_data_cb). A GPU's
 * thread would unpack into the GPU's copy. */
int sl_ranks_start_messages(void)
{
    if (!sl_ranks_use_mpi())
        return 0;
    const bool one_memory = have_one_memory();
    const int interface = sl_handles_set_interface(one_memory);
    const int code = starpu_mpi_init_comm(NULL, NULL, 0, MPI_COMM_WORLD);
    if (!code && one_memory)
        starpu_mpi_interface_datatype_register((enum starpu_data_interface_id)interface,
                                               describe_tile, free_type);
    return code;
}

/* Ask StarPU's question whether MPI takes GPU addresses. StarPU does so since 1.4. */
bool sl_ranks_reach_gpus(void)
{
#if STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4
#ifdef MPIX_CUDA_AWARE_SUPPORT
    const char *wanted = getenv("STARPU_MPI_GPUDIRECT");
    return sl_ranks_use_mpi() && MPIX_Query_cuda_support() == 1 &&
           !(wanted && strcmp(wanted, "0") == 0);
#endif
#endif
    return false;
}

int sl_ranks_here(void)
{
    MPI_Comm node;
    int size = 1;
    if (!sl_ranks_use_mpi())
        return 1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    return size;
}

void sl_ranks_copy_comm(const struct sl_runtime *rt, void *comm)
{
    MPI_Comm_dup(comm_of(rt), comm);
}

int sl_runtime_node(struct sl_runtime *rt)
{
    MPI_Comm node;
    int first = rt->rank, number = 0;
    if (!sl_ranks_use_mpi())
        return 0;
    MPI_Comm_split_type(comm_of(rt), MPI_COMM_TYPE_SHARED, rt->rank, MPI_INFO_NULL, &node);
    MPI_Bcast(&first, 1, MPI_INT, 0, node);
    const int is_first = first == rt->rank;
    MPI_Exscan(&is_first, &number, 1, MPI_INT, MPI_SUM, comm_of(rt));
    MPI_Bcast(&number, 1, MPI_INT, 0, node); /* nodes before this one */
    MPI_Comm_free(&node);
    return number;
}

void sl_ranks_stop_messages(void)
{
    if (!sl_ranks_use_mpi())
        return;
    MPI_Barrier(MPI_COMM_WORLD);
    starpu_mpi_shutdown();
}

void sl_ranks_stop(void)
{
    if (sl_ranks_use_mpi() && !held)
        finalize_mpi();
}

/* ---- Collectives ---- */

/* MPI counts are int: longer lists go in pieces. */
static int piece(int64_t left)
{
    enum { MOST = 1 << 24 };
    return (int)(left < MOST ? left : MOST);
}

/* ---- Views ---- */

int sl_ranks_split(struct sl_runtime *parent, int colour, struct sl_runtime *view)
{
    if (!sl_ranks_use_mpi())
        return 0;
    MPI_Comm *comm = malloc(sizeof *comm);
    int *world = malloc((size_t)parent->ranks * sizeof *world);
    if (!comm || !world)
        sl_fatal("no memory for a view of %d ranks", parent->ranks); /* other ranks wait */
    const int process = sl_runtime_process(parent, parent->rank);
    MPI_Comm_split(comm_of(parent), colour, parent->rank, comm);
    MPI_Comm_rank(*comm, &view->rank);
    MPI_Comm_size(*comm, &view->ranks);
    MPI_Allgather(&process, 1, MPI_INT, world, 1, MPI_INT, *comm);
    view->comm = comm;
    view->world = world;
    return 0;
}

void sl_ranks_unite(struct sl_runtime *view)
{
    if (view->comm)
        MPI_Comm_free(view->comm);
    free(view->comm);
    free(view->world);
}

void sl_runtime_gather(struct sl_runtime *rt, int64_t value, int64_t *values)
{
    values[rt->rank] = value;
    if (rt->ranks > 1)
        MPI_Allgather(&value, 1, MPI_INT64_T, values, 1, MPI_INT64_T, comm_of(rt));
}

void sl_runtime_sum(struct sl_runtime *rt, int64_t *values, int64_t count)
{
    for (int64_t at = 0; rt->ranks > 1 && at < count; at += piece(count - at))
        MPI_Allreduce(MPI_IN_PLACE, values + at, piece(count - at), MPI_INT64_T, MPI_SUM,
                      comm_of(rt));
}

void sl_runtime_broadcast(struct sl_runtime *rt, int root, void *memory, int64_t bytes)
{
    for (int64_t at = 0; rt->ranks > 1 && at < bytes; at += piece(bytes - at))
        MPI_Bcast((char *)memory + at, piece(bytes - at), MPI_BYTE, root, comm_of(rt));
}

/* Tell all ranks how many items come. first (ranks + 1): where the items for each rank begin in the
 * sent list. Set place (ranks + 1): where the items from each rank begin in the received list. */
static void exchange_counts(struct sl_runtime *rt, const int64_t *first, int64_t *place)
{
    int64_t count = 0;
    for (int r = 0; r < rt->ranks; r++)
        place[r] = first[r + 1] - first[r];
    if (rt->ranks > 1)
        MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT64_T, place, 1, MPI_INT64_T, comm_of(rt));
    for (int r = 0; r <= rt->ranks; r++) {
        const int64_t here = r < rt->ranks ? place[r] : 0;
        place[r] = count;
        count += here;
    }
}

/* Send to one rank and receive from another at the same time, piece by piece. All ranks are at the
 * same piece, so that no rank waits for a waiting rank. */
static void send_and_receive(MPI_Comm comm, const char *out, int64_t out_bytes, int to, char *in,
                             int64_t in_bytes, int from)
{
    while (out_bytes > 0 || in_bytes > 0) {
        const int send = piece(out_bytes), receive = piece(in_bytes);
        MPI_Sendrecv(out, send, MPI_BYTE, send ? to : MPI_PROC_NULL, 0, in, receive, MPI_BYTE,
                     receive ? from : MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
        out += send, out_bytes -= send;
        in += receive, in_bytes -= receive;
    }
}

/* Exchange the items in bytes. An empty list need not have an address. */
static void exchange_items(const struct sl_runtime *rt, const char *items, const int64_t *first,
                           int64_t size, char *received, const int64_t *place)
{
    const int rank = rt->rank;
    items = items ? items : "";
    memcpy(received + place[rank] * size, items + first[rank] * size,
           (size_t)((first[rank + 1] - first[rank]) * size));
    for (int step = 1; step < rt->ranks; step++) {
        const int to = (rank + step) % rt->ranks, from = (rank + rt->ranks - step) % rt->ranks;
        send_and_receive(comm_of(rt), items + first[to] * size, (first[to + 1] - first[to]) * size,
                         to, received + place[from] * size, (place[from + 1] - place[from]) * size,
                         from);
    }
}

int sl_runtime_exchange(struct sl_runtime *rt, const void *items, const int64_t *first, size_t size,
                        void **received, int64_t *count)
{
    int64_t *place = calloc((size_t)rt->ranks + 1, sizeof *place);
    int code = place ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for lists of %d ranks", rt->ranks);
    code = sl_runtime_agree(rt, code);
    *received = NULL;
    if (code) {
        free(place);
        return code;
    }
    exchange_counts(rt, first, place);
    *count = place[rt->ranks];
    *received = malloc((size_t)*count * size + 1);
    code = *received ? 0
                     : sl_error(SL_ERR_SYSTEM, "no memory for %lld items from other ranks",
                                (long long)*count);
    code = sl_runtime_agree(rt, code);
    if (!code) {
        exchange_items(rt, items, first, (int64_t)size, *received, place);
    } else {
        free(*received);
        *received = NULL;
    }
    free(place);
    return code;
}

/* ---- Stops ---- */

enum { TAG_STOP = 1 }; /* other messages of `own` have tag 0 */

void sl_runtime_ask_stop(struct sl_runtime *rt)
{
    if (rt->ranks > 1)
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_STOP, comm_of(rt));
}

static void hear_stop(struct sl_runtime *rt)
{
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_STOP, comm_of(rt), MPI_STATUS_IGNORE);
    rt->stops_heard++;
}

bool sl_runtime_stop_asked(struct sl_runtime *rt)
{
    int there = 0;
    if (rt->ranks > 1)
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_STOP, comm_of(rt), &there, MPI_STATUS_IGNORE);
    if (there)
        hear_stop(rt);
    return there;
}

void sl_runtime_settle_stops(struct sl_runtime *rt, bool asked)
{
    int64_t count = asked;
    sl_runtime_sum(rt, &count, 1);
    while (rt->rank == 0 && rt->stops_heard < count)
        hear_stop(rt);
    rt->stops_heard = 0;
}

int64_t sl_runtime_least(struct sl_runtime *rt, int64_t value)
{
    if (rt->ranks > 1)
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MIN, comm_of(rt));
    return value;
}

/* Wait for a request with ever longer sleeps. One rank may have minutes of work before this point,
 * on a core that the others share. */
static void wait_asleep(MPI_Request *request)
{
    enum { LOOKS = 1000 };
    static const long SHORTEST = 1000, LONGEST = 10000000; /* nanoseconds */
    struct timespec pause = {.tv_nsec = SHORTEST};
    int done = 0;
    for (int looks = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE), !done; looks++)
        if (looks >= LOOKS) {
            nanosleep(&pause, NULL);
            pause.tv_nsec = pause.tv_nsec < LONGEST ? pause.tv_nsec * 2 : LONGEST;
        }
}

static bool fails_alone;

void sl_runtime_fail_alone(bool alone)
{
    fails_alone = alone;
}

int sl_runtime_agree(struct sl_runtime *rt, int code)
{
    if (fails_alone && code && rt->ranks > 1)
        sl_fatal("%s", sl_error_message());
    if (fails_alone)
        return code;
    if (rt->ranks > 1) {
        /* A rank without a sentence has agreed before: the rank with the sentence must speak. */
        const bool silent = code && sl_error_message()[0] == '\0';
        const struct {
            int code, rank;
        } mine = {code, silent ? rt->ranks + rt->rank : rt->rank};
        struct {
            int code, rank;
        } worst;
        MPI_Request request;
        MPI_Iallreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, comm_of(rt), &request);
        wait_asleep(&request);
        if (worst.code && worst.rank != mine.rank)
            sl_error(worst.code, "%s", ""); /* one sentence is enough */
        return worst.code;
    }
    return code;
}
