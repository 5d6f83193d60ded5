#include "core/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <starpu.h>

#include "config.h"
#include "core/binding.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/message.h"
#include "core/remembered.h"
#include "core/scheduler.h"

#ifdef SL_HAVE_MPI
#include <starpu_mpi.h>
#endif
#ifdef SL_HAVE_CUDA
#include <cuda_runtime_api.h>
#include <starpu_cublas.h>
#endif

/* Sets a variable unless the user did. */
static void suggest(const char *name, const char *value)
{
    setenv(name, value, 0);
}

/* Called through dlsym, because which BLAS is linked was chosen at configure time. */
void sl_runtime_one_blas_thread(void)
{
    static const char *const setters[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads"};
    for (size_t s = 0; s < sizeof setters / sizeof *setters; s++) {
        void (*set)(int);
        *(void **)&set = dlsym(RTLD_DEFAULT, setters[s]);
        if (set)
            set(1);
    }
    void (*set_blis)(int64_t);
    *(void **)&set_blis = dlsym(RTLD_DEFAULT, "bli_thread_set_num_threads");
    if (set_blis)
        set_blis(1);
}

#ifdef SL_HAVE_MPI

/* Initialising MPI costs a quarter of a second: not done for a process that no launcher started. */
bool sl_runtime_launched(void)
{
    static const char *const marks[] = {
        "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",          "PMI_RANK", "PMI_SIZE",
        "MPI_LOCALRANKID",      "MV2_COMM_WORLD_RANK"};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        if (getenv(marks[m]))
            return true;
    return false;
}

static MPI_Comm
    own; /* for our messages from rank to rank, which StarPU must not take for its own */
static bool held;

static bool uses_mpi(void)
{
    int initialized;
    MPI_Initialized(&initialized);
    return initialized;
}

static int initialize_mpi(void)
{
    int provided;
    suggest("OMPI_MCA_mpi_yield_when_idle", "1"); /* see scheduler.c */
    /* On TCP, what one rank tells another, such as that a message may come, must not wait behind
     * megabytes of the messages that go there: pieces of 64 KiB, and a small buffer to send from.
     * Else two ranks send in turns (docs/PERFORMANCE.md). */
    suggest("OMPI_MCA_btl_tcp_flags", "1"); /* send, without put */
    suggest("OMPI_MCA_btl_tcp_max_send_size", "65536");
    suggest("OMPI_MCA_btl_tcp_sndbuf", "262144");
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return sl_error(SL_ERR_SYSTEM, "MPI does not start");
    if (provided < MPI_THREAD_MULTIPLE)
        return sl_error(SL_ERR_SYSTEM,
                        "this MPI was built without MPI_THREAD_MULTIPLE, which StarPU needs");
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    return 0;
}

static int start_mpi(struct sl_runtime *rt)
{
    const int code = sl_runtime_launched() && !uses_mpi() ? initialize_mpi() : 0;
    if (code || !uses_mpi())
        return code;
    MPI_Comm_rank(MPI_COMM_WORLD, &rt->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rt->ranks);
    return 0;
}

static void finalize_mpi(void)
{
    MPI_Comm_free(&own);
    MPI_Finalize();
}

int sl_runtime_hold_mpi(struct sl_runtime *rt)
{
    *rt = (struct sl_runtime){.ranks = 1};
    held = true;
    return start_mpi(rt);
}

void sl_runtime_release_mpi(void)
{
    if (held && uses_mpi())
        finalize_mpi();
    held = false;
}

/* How many ranks of this node may run on exactly the cores of `mine`, and which of them this one
 * is. */
static void count_sharers(const struct sl_binding *mine, int *sharers, int *index)
{
    enum { TEXT = sizeof mine->text };
    *sharers = 1;
    *index = 0;
    if (!uses_mpi())
        return;
    MPI_Comm node;
    int size, rank;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_rank(node, &rank);
    char *all = malloc((size_t)size * TEXT);
    if (!all)
        sl_fatal("no memory for the core sets of %d ranks", size);
    MPI_Allgather(mine->text, TEXT, MPI_BYTE, all, TEXT, MPI_BYTE, node);
    *sharers = 0;
    for (int r = 0; r < size; r++)
        if (strcmp(all + (size_t)r * TEXT, mine->text) == 0) {
            *index += r < rank;
            ++*sharers;
        }
    free(all);
    MPI_Comm_free(&node);
}

static int start_messages(void)
{
    return uses_mpi() ? starpu_mpi_init_comm(NULL, NULL, 0, MPI_COMM_WORLD) : 0;
}

static int count_ranks_here(void)
{
    MPI_Comm node;
    int size = 1;
    if (!uses_mpi())
        return 1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    return size;
}

#else

static int start_mpi(struct sl_runtime *rt)
{
    (void)rt;
    return 0;
}

static void count_sharers(const struct sl_binding *mine, int *sharers, int *index)
{
    (void)mine;
    *sharers = 1;
    *index = 0;
}

static bool uses_mpi(void)
{
    return false;
}

bool sl_runtime_launched(void)
{
    return false;
}

int sl_runtime_hold_mpi(struct sl_runtime *rt)
{
    *rt = (struct sl_runtime){.ranks = 1};
    return 0;
}

void sl_runtime_release_mpi(void)
{
}

static int start_messages(void)
{
    return 0;
}

static int count_ranks_here(void)
{
    return 1;
}

#endif

#ifndef SL_HAVE_CUDA /* StarPU's own memory is pinned there */

/* Received and temporary tiles are ours to count, and their pages to keep. */
static int take_memory(unsigned node, void **memory, size_t bytes, int flags)
{
    (void)node, (void)flags;
    *memory = sl_memory_take(bytes);
    return *memory ? 0 : -ENOMEM;
}

static int return_memory(unsigned node, void *memory, size_t bytes, int flags)
{
    (void)node, (void)flags;
    sl_memory_return(memory, bytes);
    return 0;
}

static void count_memory(void)
{
    starpu_malloc_set_hooks(take_memory, return_memory);
}

#else

static void count_memory(void)
{
}

#endif

/* StarPU measures the machine at its first start, and when it sees other cores than at the last
 * one, and leaves files that a process which starts at the same moment would read half-written. So
 * one process at a time; messages start outside the lock, because there ranks wait for one another.
 */
static int start_starpu(struct starpu_conf *conf)
{
    char path[PATH_MAX];
    const char *home = getenv("STARPU_HOME") ? getenv("STARPU_HOME") : getenv("HOME");
    snprintf(path, sizeof path, "%s/.starpu-start.lock", home ? home : "/tmp");
    const int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock >= 0)
        flock(lock, LOCK_EX);
    conf->will_use_mpi = uses_mpi();
    count_memory();
    const int code = starpu_init(conf);
    if (lock >= 0)
        close(lock);
    return code ? code : start_messages();
}

static const int64_t USUAL_CACHE_BYTES = 16 << 20; /* where hwloc does not know */

/* Where ranks of a node share cores, gives each its own part, or lets the system place them when
 * there are more ranks than cores: bound to one core each, all would sit on core 0. */
static int bind_rank(struct sl_runtime *rt)
{
    struct sl_binding binding;
    const int code = sl_binding_open(&binding);
    if (code)
        return code;
    int sharers, index;
    count_sharers(&binding, &sharers, &index);
    suggest("STARPU_MPI_NOBIND", "1");
    rt->all_cores = binding.cores * (index + 1) / sharers - binding.cores * index / sharers;
    if (sharers > binding.cores) {
        suggest("STARPU_WORKERS_NOBIND", "1");
        rt->cores = 1;
    } else {
        if (sharers > 1)
            sl_binding_keep_share(&binding, sharers, index);
        suggest("STARPU_WORKERS_GETBIND", "1");
        rt->cores = binding.cores;
    }
    rt->cache_bytes = binding.cache_bytes ? binding.cache_bytes : USUAL_CACHE_BYTES;
    sl_binding_close(&binding);
    return 0;
}

/* StarPU keeps what it measured of the machine in its home and gives up when it cannot. */
static void find_home(void)
{
    char path[PATH_MAX];
    const char *home = getenv("STARPU_HOME") ? getenv("STARPU_HOME") : getenv("HOME");
    if (home && (mkdir(home, 0777) == 0 || errno == EEXIST) && access(home, W_OK | X_OK) == 0)
        return;
    snprintf(path, sizeof path, "/tmp/starling-%ld", (long)getuid());
    mkdir(path, 0700);
    setenv("STARPU_HOME", path, 1);
}

static int count_workers(struct sl_runtime *rt, const struct sl_runtime_options *options)
{
    int workers = rt->cores;
    if (options->workers)
        workers = options->workers;
    else if (getenv("STARPU_NCPU"))
        workers = atoi(getenv("STARPU_NCPU"));
    if (workers > STARPU_MAXCPUS) {
        if (rt->rank == 0)
            sl_note("%d cores, but this StarPU was built for at most %d CPU workers: "
                    "./bootstrap --own-starpu builds one for this machine",
                    workers, STARPU_MAXCPUS);
        workers = STARPU_MAXCPUS;
    }
    return workers;
}

static bool has_gpus(void)
{
#ifdef SL_HAVE_CUDA
    int devices;
    return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
#else
    return false;
#endif
}

/* lws is the best measured with CPU workers alone; with GPUs a policy must know how long a task
 * takes on each kind of worker. */
const char *sl_runtime_usual_scheduler(bool gpus)
{
    return gpus ? "dmdas" : "lws";
}

static const char *scheduler_name(const struct sl_runtime_options *options)
{
    static char remembered[32];
    struct starpu_sched_policy *policy;
    if (options->scheduler)
        return options->scheduler;
    if (getenv("STARPU_SCHED"))
        return getenv("STARPU_SCHED");
    const bool gpus = has_gpus();
    if (sl_remembered_scheduler(gpus, remembered) && sl_scheduler_find(remembered, &policy) == 0)
        return remembered;
    return sl_runtime_usual_scheduler(gpus);
}

#ifdef SL_HAVE_CUDA

static void *workspaces[STARPU_NMAXWORKERS];

void *sl_runtime_workspace(void)
{
    return workspaces[starpu_worker_get_id()];
}

static void create_workspace(void *unused)
{
    (void)unused;
    if (cudaMalloc(&workspaces[starpu_worker_get_id()], SL_RUNTIME_WORKSPACE) != cudaSuccess)
        sl_fatal("a GPU has no %d MiB of memory for its tasks to work in",
                 SL_RUNTIME_WORKSPACE >> 20);
}

static void destroy_workspace(void *unused)
{
    (void)unused;
    cudaFree(workspaces[starpu_worker_get_id()]);
}

/* A cuBLAS handle and a workspace for every GPU worker. */
static void start_gpu_workers(void)
{
    starpu_cublas_init();
    starpu_execute_on_each_worker(create_workspace, NULL, STARPU_CUDA);
}

static void stop_gpu_workers(void)
{
    starpu_execute_on_each_worker(destroy_workspace, NULL, STARPU_CUDA);
    starpu_cublas_shutdown();
}

#else

static void start_gpu_workers(void)
{
}

static void stop_gpu_workers(void)
{
}

#endif

static bool started;

struct touched {
    char *memory;
    size_t bytes, workers;
};

static void touch_share(void *argument)
{
    enum { PAGE = 4096 };
    const struct touched *t = argument;
    const size_t worker = (size_t)starpu_worker_get_devid(starpu_worker_get_id());
    const size_t end = t->bytes * (worker + 1) / t->workers;
    for (size_t at = t->bytes * worker / t->workers; at < end; at += PAGE)
        *(volatile char *)(t->memory + at) = 0;
}

void sl_runtime_touch(const struct sl_runtime *rt, void *memory, size_t bytes)
{
    enum { LEAST = 8 << 20 };
    if (started && rt->workers > 1 && bytes >= LEAST)
        starpu_execute_on_each_worker(
            touch_share, &(struct touched){memory, bytes, (size_t)rt->workers}, STARPU_CPU);
}

/* Sums the cores and finds the smallest cache: all ranks cut the graph by the same numbers. Of
 * cores that ranks share, some ranks have none. */
static void share_facts(struct sl_runtime *rt)
{
    int64_t cores = rt->all_cores;
    sl_runtime_sum(rt, &cores, 1);
    rt->all_cores = (int)cores;
    rt->cache_bytes = sl_runtime_least(rt, rt->cache_bytes);
}

bool sl_runtime_started(void)
{
    return started;
}

int sl_runtime_start(struct sl_runtime *rt, const struct sl_runtime_options *options)
{
    *rt = (struct sl_runtime){.ranks = 1, .ranks_here = 1, .stages = 2};
    suggest("STARPU_SILENT", "1");
    suggest("STARPU_CATCH_SIGNALS", "0"); /* Ctrl-C is ours */
    suggest("HWLOC_COMPONENTS", "-gl");   /* see machine.c */
    setenv("STARPU_USE_NUMA", "0", 1); /* tiles of a rank that are neighbours in memory stay so */
    find_home();
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    int code = sl_scheduler_find(scheduler_name(options), &conf.sched_policy);
    if (!code)
        code = start_mpi(rt);
    if (code)
        return code;
    started = true;
    sl_log_enable(rt->rank == 0 && !options->quiet);
    sl_runtime_one_blas_thread();
    code = sl_runtime_agree(rt, bind_rank(rt));
    if (code)
        return code;
    share_facts(rt);
    rt->ranks_here = count_ranks_here();
    conf.ncpus = count_workers(rt, options);
    if (start_starpu(&conf)) /* ends all ranks, some of which may wait in there */
        sl_fatal("StarPU does not start on rank %d (no usable worker?)", rt->rank);
    start_gpu_workers();
    rt->workers = (int)starpu_cpu_worker_get_count();
    snprintf(rt->scheduler, sizeof rt->scheduler, "%s", conf.sched_policy->policy_name);
    return 0;
}

void sl_runtime_wait(struct sl_runtime *rt)
{
    (void)rt;
    /* Not starpu_mpi_wait_for_all: its barrier blocks the thread that serves messages, and another
     * rank may still be waiting for one of ours. Messages are tasks' dependences, or waited for
     * when their tile is unregistered. */
    starpu_task_wait_for_all();
}

void sl_runtime_stop(struct sl_runtime *rt)
{
    sl_runtime_wait(rt);
    sl_stage_stop(rt);
    stop_gpu_workers();
#ifdef SL_HAVE_MPI
    if (uses_mpi()) {
        MPI_Barrier(MPI_COMM_WORLD);
        starpu_mpi_shutdown();
    }
#endif
    starpu_shutdown();
    sl_memory_return_all();
#ifdef SL_HAVE_MPI
    if (uses_mpi() && !held)
        finalize_mpi();
#endif
}

#ifdef SL_HAVE_MPI
/* MPI counts are int: longer lists go in pieces. */
static int piece(int64_t left)
{
    enum { MOST = 1 << 24 };
    return (int)(left < MOST ? left : MOST);
}
#endif

void sl_runtime_gather(struct sl_runtime *rt, int64_t value, int64_t *values)
{
    values[rt->rank] = value;
#ifdef SL_HAVE_MPI
    if (rt->ranks > 1)
        MPI_Allgather(&value, 1, MPI_INT64_T, values, 1, MPI_INT64_T, MPI_COMM_WORLD);
#endif
}

void sl_runtime_sum(struct sl_runtime *rt, int64_t *values, int64_t count)
{
    (void)rt, (void)values, (void)count;
#ifdef SL_HAVE_MPI
    for (int64_t at = 0; rt->ranks > 1 && at < count; at += piece(count - at))
        MPI_Allreduce(MPI_IN_PLACE, values + at, piece(count - at), MPI_INT64_T, MPI_SUM,
                      MPI_COMM_WORLD);
#endif
}

void sl_runtime_broadcast(struct sl_runtime *rt, int root, void *memory, int64_t bytes)
{
    (void)rt, (void)root, (void)memory, (void)bytes;
#ifdef SL_HAVE_MPI
    for (int64_t at = 0; rt->ranks > 1 && at < bytes; at += piece(bytes - at))
        MPI_Bcast((char *)memory + at, piece(bytes - at), MPI_BYTE, root, MPI_COMM_WORLD);
#endif
}

/* place (ranks + 1): where in the received list that of each rank begins. first (ranks + 1): the
 * same in the list that is sent. */
static void exchange_counts(struct sl_runtime *rt, const int64_t *first, int64_t *place)
{
    int64_t count = 0;
    for (int r = 0; r < rt->ranks; r++)
        place[r] = first[r + 1] - first[r];
#ifdef SL_HAVE_MPI
    if (rt->ranks > 1)
        MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT64_T, place, 1, MPI_INT64_T, MPI_COMM_WORLD);
#endif
    for (int r = 0; r <= rt->ranks; r++) {
        const int64_t here = r < rt->ranks ? place[r] : 0;
        place[r] = count;
        count += here;
    }
}

#ifdef SL_HAVE_MPI
/* Sends to one rank and receives from another at the same time, a piece of each by turns: all ranks
 * are at the same piece, so that none waits for one that waits. */
static void send_and_receive(const char *out, int64_t out_bytes, int to, char *in, int64_t in_bytes,
                             int from)
{
    while (out_bytes > 0 || in_bytes > 0) {
        const int send = piece(out_bytes), receive = piece(in_bytes);
        MPI_Sendrecv(out, send, MPI_BYTE, send ? to : MPI_PROC_NULL, 0, in, receive, MPI_BYTE,
                     receive ? from : MPI_PROC_NULL, 0, own, MPI_STATUS_IGNORE);
        out += send, out_bytes -= send;
        in += receive, in_bytes -= receive;
    }
}
#endif

/* The lists themselves, in bytes. */
static void exchange_items(const struct sl_runtime *rt, const char *items, const int64_t *first,
                           int64_t size, char *received, const int64_t *place)
{
    const int rank = rt->rank;
    memcpy(received + place[rank] * size, items + first[rank] * size,
           (size_t)((first[rank + 1] - first[rank]) * size));
#ifdef SL_HAVE_MPI
    for (int step = 1; step < rt->ranks; step++) {
        const int to = (rank + step) % rt->ranks, from = (rank + rt->ranks - step) % rt->ranks;
        send_and_receive(items + first[to] * size, (first[to + 1] - first[to]) * size, to,
                         received + place[from] * size, (place[from + 1] - place[from]) * size,
                         from);
    }
#endif
}

int sl_runtime_exchange(struct sl_runtime *rt, const void *items, const int64_t *first, size_t size,
                        void **received, int64_t *count)
{
    int64_t *place = calloc((size_t)rt->ranks + 1, sizeof *place);
    if (!place)
        sl_fatal("no memory for the lists of %d ranks", rt->ranks); /* the others wait for them */
    exchange_counts(rt, first, place);
    *count = place[rt->ranks];
    *received = malloc((size_t)*count * size + 1);
    int code = *received ? 0
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

int64_t sl_runtime_least(struct sl_runtime *rt, int64_t value)
{
    (void)rt;
#ifdef SL_HAVE_MPI
    if (rt->ranks > 1)
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
#endif
    return value;
}

#ifdef SL_HAVE_MPI
/* One rank may have work of minutes before it gets here, on a core that the others share: they look
 * less and less often. */
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
#endif

int sl_runtime_agree(struct sl_runtime *rt, int code)
{
    (void)rt;
#ifdef SL_HAVE_MPI
    if (rt->ranks > 1) {
        /* A rank without a sentence has agreed before: the one that has it must speak. */
        const bool silent = code && sl_error_message()[0] == '\0';
        const struct {
            int code, rank;
        } mine = {code, silent ? rt->ranks + rt->rank : rt->rank};
        struct {
            int code, rank;
        } worst;
        MPI_Request request;
        MPI_Iallreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD, &request);
        wait_asleep(&request);
        if (worst.code && worst.rank != mine.rank)
            sl_error(worst.code, "%s", ""); /* one sentence is enough */
        return worst.code;
    }
#endif
    return code;
}

double sl_runtime_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *sl_runtime_starpu_version(void)
{
    static char text[32];
    int major, minor, release;
    starpu_get_version(&major, &minor, &release);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, release);
    return text;
}

int sl_runtime_starpu_max_workers(void)
{
    return STARPU_MAXCPUS;
}
