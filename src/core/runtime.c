#include "core/runtime.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starpu.h>

#include "config.h"
#include "core/error.h"
#include "core/log.h"
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

/* Each worker runs one task on one core, so the BLAS must not start threads of its own. Called
 * through dlsym, because which BLAS is linked was chosen at configure time. */
static void one_blas_thread(void)
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
static bool started_by_launcher(void)
{
    static const char *const marks[] = {
        "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",          "PMI_RANK", "PMI_SIZE",
        "MPI_LOCALRANKID",      "MV2_COMM_WORLD_RANK"};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        if (getenv(marks[m]))
            return true;
    return false;
}

static int start_mpi(struct sl_runtime *rt)
{
    if (!started_by_launcher())
        return 0;
    int provided;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return sl_error(SL_ERR_SYSTEM, "MPI does not start");
    if (provided < MPI_THREAD_MULTIPLE)
        return sl_error(SL_ERR_SYSTEM,
                        "this MPI was built without MPI_THREAD_MULTIPLE, which StarPU needs");
    MPI_Comm_rank(MPI_COMM_WORLD, &rt->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rt->ranks);
    return 0;
}

static bool uses_mpi(void)
{
    int initialized;
    MPI_Initialized(&initialized);
    return initialized;
}

/* How many ranks of this node may run on exactly the cores of `mine`, and which of them this one
 * is. */
static void count_sharers(const cpu_set_t *mine, int *sharers, int *index)
{
    *sharers = 1;
    *index = 0;
    if (!uses_mpi())
        return;
    MPI_Comm node;
    int size, rank;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_rank(node, &rank);
    cpu_set_t *all = malloc((size_t)size * sizeof *all);
    if (!all)
        sl_fatal("no memory for the core sets of %d ranks", size);
    MPI_Allgather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, node);
    *sharers = 0;
    for (int r = 0; r < size; r++)
        if (CPU_EQUAL(&all[r], mine)) {
            *index += r < rank;
            ++*sharers;
        }
    free(all);
    MPI_Comm_free(&node);
}

static int start_starpu(struct starpu_conf *conf)
{
    return uses_mpi() ? starpu_mpi_init_conf(NULL, NULL, 0, MPI_COMM_WORLD, conf)
                      : starpu_init(conf);
}

#else

static int start_mpi(struct sl_runtime *rt)
{
    (void)rt;
    return 0;
}

static void count_sharers(const cpu_set_t *mine, int *sharers, int *index)
{
    (void)mine;
    *sharers = 1;
    *index = 0;
}

static int start_starpu(struct starpu_conf *conf)
{
    return starpu_init(conf);
}

#endif

/* Keeps the `index`-th of `parts` equal shares of the cores in `set`. */
static void keep_share(cpu_set_t *set, int parts, int index)
{
    const int cores = CPU_COUNT(set), first = cores * index / parts,
              last = cores * (index + 1) / parts;
    int seen = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set)) {
            if (seen < first || seen >= last)
                CPU_CLR(cpu, set);
            seen++;
        }
}

/* Where ranks of a node share cores, gives each its own part, or lets the system place them when
 * there are more ranks than cores: bound to one core each, all would sit on core 0. Returns the
 * cores of this rank. */
static int bind_rank(void)
{
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores))
        return 1;
    int sharers, index;
    count_sharers(&cores, &sharers, &index);
    suggest("STARPU_MPI_NOBIND", "1");
    if (sharers > CPU_COUNT(&cores)) {
        suggest("STARPU_WORKERS_NOBIND", "1");
        return 1;
    }
    if (sharers > 1) {
        keep_share(&cores, sharers, index);
        sched_setaffinity(0, sizeof cores, &cores);
    }
    suggest("STARPU_WORKERS_GETBIND", "1");
    return CPU_COUNT(&cores);
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

/* lws is the best measured with CPU workers alone; with GPUs a policy must know how long a task
 * takes on each kind of worker. */
static const char *scheduler_name(const struct sl_runtime_options *options)
{
    if (options->scheduler)
        return options->scheduler;
    if (getenv("STARPU_SCHED"))
        return getenv("STARPU_SCHED");
#ifdef SL_HAVE_CUDA
    int devices;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
        return "dmdas";
#endif
    return "lws";
}

/* cuBLAS handles of the GPU workers; nothing without GPUs. */
static void start_cublas(void)
{
#ifdef SL_HAVE_CUDA
    starpu_cublas_init();
#endif
}

static void stop_cublas(void)
{
#ifdef SL_HAVE_CUDA
    starpu_cublas_shutdown();
#endif
}

int sl_runtime_start(struct sl_runtime *rt, const struct sl_runtime_options *options)
{
    *rt = (struct sl_runtime){.ranks = 1};
    suggest("STARPU_SILENT", "1");
    suggest("STARPU_CATCH_SIGNALS", "0");         /* Ctrl-C is ours */
    suggest("OMPI_MCA_mpi_yield_when_idle", "1"); /* see scheduler.c */
    int code = start_mpi(rt);
    if (code)
        return code;
    sl_log_enable(rt->rank == 0);
    one_blas_thread();
    rt->cores = bind_rank();

    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = count_workers(rt, options);
    code = sl_scheduler_find(scheduler_name(options), &conf.sched_policy);
    if (code)
        return code;
    if (start_starpu(&conf))
        return sl_error(SL_ERR_SYSTEM, "StarPU does not start (no usable worker?)");
    start_cublas();
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
    stop_cublas();
#ifdef SL_HAVE_MPI
    if (uses_mpi()) {
        MPI_Barrier(MPI_COMM_WORLD);
        starpu_mpi_shutdown();
        MPI_Finalize();
        return;
    }
#endif
    starpu_shutdown();
}

void sl_runtime_gather(struct sl_runtime *rt, int64_t value, int64_t *values)
{
    values[rt->rank] = value;
#ifdef SL_HAVE_MPI
    if (uses_mpi())
        MPI_Allgather(&value, 1, MPI_INT64_T, values, 1, MPI_INT64_T, MPI_COMM_WORLD);
#endif
}

void sl_runtime_sum(struct sl_runtime *rt, int64_t *values, int64_t count)
{
    (void)rt, (void)values, (void)count;
#ifdef SL_HAVE_MPI
    enum { PIECE = 1 << 24 }; /* MPI counts are int */
    if (uses_mpi())
        for (int64_t first = 0; first < count; first += PIECE)
            MPI_Allreduce(MPI_IN_PLACE, values + first,
                          (int)(count - first < PIECE ? count - first : PIECE), MPI_INT64_T,
                          MPI_SUM, MPI_COMM_WORLD);
#endif
}

int sl_runtime_agree(struct sl_runtime *rt, int code)
{
    (void)rt;
#ifdef SL_HAVE_MPI
    if (uses_mpi()) {
        const struct {
            int code, rank;
        } mine = {code, rt->rank};
        struct {
            int code, rank;
        } worst;
        MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
        if (worst.code && worst.rank != rt->rank)
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
