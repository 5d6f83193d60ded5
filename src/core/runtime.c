#include "core/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <starpu.h>

#include "config.h"
#include "core/alike.h"
#include "core/binding.h"
#include "core/blas.h"
#include "core/error.h"
#include "core/file.h"
#include "core/free_memory.h"
#include "core/gpus.h"
#include "core/handle.h"
#include "core/home.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/message.h"
#include "core/progress.h"
#include "core/ranks.h"
#include "core/rates.h"
#include "core/remembered.h"
#include "core/scheduler.h"
#include "core/starpu_files.h"
#include "core/words.h"

/* Set a variable unless the user set it. */
static void suggest(const char *name, const char *value)
{
    setenv(name, value, 0);
}

/* End the run where StarPU lacks memory for too long. StarPU asks for it again and again, in case
 * tiles go, and would do so for ever. A pause between requests in vain means that tiles went. */
static void watch_shortage(size_t bytes, bool got)
{
    enum { PATIENCE = 60, PAUSE = 1 }; /* seconds */
    static atomic_size_t lacking;      /* the smallest request in vain; 0: none is open */
    static _Atomic double since, last; /* the first and the last request in vain */
    const size_t least = atomic_load(&lacking);
    if (got && least > 0 && bytes >= least)
        atomic_store(&lacking, 0);
    if (got)
        return;
    const double now = sl_runtime_seconds();
    if (least == 0 || now - atomic_load(&last) > PAUSE)
        atomic_store(&since, now);
    else if (now - atomic_load(&since) > PATIENCE)
        sl_fatal("no memory for a tile of %zu bytes in %d seconds (%zu bytes are in use)", bytes,
                 PATIENCE, sl_memory_in_use());
    atomic_store(&last, now);
    if (least == 0 || bytes < least)
        atomic_store(&lacking, bytes > 0 ? bytes : 1);
}

/* Allocate StarPU's memory by sl_memory_take, so that received and temporary tiles are counted and
 * their pages are kept. */
static int take_memory(unsigned node, void **memory, size_t bytes, int flags)
{
    (void)node, (void)flags;
    *memory = sl_memory_take(bytes);
    watch_shortage(bytes, *memory != NULL);
    return *memory ? 0 : -ENOMEM;
}

static int return_memory(unsigned node, void *memory, size_t bytes, int flags)
{
    (void)node, (void)flags;
    sl_memory_return(memory, bytes);
    return 0;
}

/* Set a variable, or unset it (NULL). Return a copy of its old value for the caller to free. */
static char *replace_variable(const char *name, const char *value)
{
    char *before = getenv(name) ? strdup(getenv(name)) : NULL;
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    return before;
}

/* Return the process that a lock's file names, or 0. */
static long holder_of(int lock)
{
    char text[32] = "";
    return pread(lock, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

/* Wait for other processes that start StarPU, up to TURNS times for the same process, which may be
 * stopped. Return whether the lock is held. */
static bool wait_for_turn(int lock)
{
    enum { TURNS = 100 };
    static const struct timespec pause = {.tv_nsec = 100000000};
    long holder = 0;
    for (int turn = 0; flock(lock, LOCK_EX | LOCK_NB); turn++) {
        if (errno != EWOULDBLOCK)
            return false;
        const long now = holder_of(lock);
        if (now != holder)
            turn = 0;
        holder = now;
        if (turn == TURNS) {
            sl_warn("process %ld has been starting StarPU for %d seconds (is it stopped?): going "
                    "on beside it",
                    holder, TURNS / 10);
            return false;
        }
        nanosleep(&pause, NULL);
    }
    if (ftruncate(lock, 0) == 0)
        dprintf(lock, "%ld\n", (long)getpid());
    return true;
}

/* Start StarPU. Where a variable and `conf` differ, StarPU believes the variable. So two variables
 * are replaced during the start: `conf` already has the choice between both. StarPU measures the
 * machine at its first start and whenever it sees other cores. Another process that starts at the
 * same moment would read half-written files. So one process starts at a time. */
static int start_starpu(struct starpu_conf *conf, int gpus)
{
    char path[PATH_MAX];
    const char *home = sl_starpu_files_home();
    snprintf(path, sizeof path, "%s/.starpu-start.lock", home ? home : "/tmp");
    const int lock = sl_file_open_lock(path, 0600);
    if (lock >= 0 && wait_for_turn(lock))
        sl_starpu_files_remove_empty(); /* a full disk leaves empty files; without the lock, a file
                                           may be another process's, not yet written */
    conf->will_use_mpi = sl_ranks_use_mpi();
    if (gpus == 0) /* with GPUs, StarPU pins the memory that it allocates */
        starpu_malloc_set_hooks(take_memory, return_memory);
    char count[16];
    snprintf(count, sizeof count, "%d", gpus);
    char *sched = replace_variable("STARPU_SCHED", NULL);
    char *ncuda = replace_variable("STARPU_NCUDA", count);
    const int code = starpu_init(conf);
    free(replace_variable("STARPU_NCUDA", ncuda));
    free(replace_variable("STARPU_SCHED", sched));
    free(ncuda);
    free(sched);
    if (lock >= 0)
        close(lock);
    return code ? sl_error(SL_ERR_SYSTEM, "StarPU does not start (no usable worker?)") : 0;
}

/* StarPU aborts where it gets no memory for its start. With a limit, all threads share one arena of
 * malloc: an arena takes 64 MiB of address space, whatever is in it. */
static int check_space(int workers)
{
    enum { MIB = 1 << 20, START = 64 * MIB, SERVERS = 2 }; /* threads beside the workers */
    struct rlimit stack;
    if (!sl_free_memory_is_limited())
        return 0;
    mallopt(M_ARENA_MAX, 1);
    const bool known = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY;
    const size_t thread = known ? stack.rlim_cur : 8 * MIB;
    const size_t bytes = START + thread * (size_t)(workers + SERVERS);
    if (sl_free_memory_probe(bytes))
        return 0;
    return sl_error(SL_ERR_SYSTEM,
                    "ulimit -v or -d leaves no room for StarPU, which takes %zu MiB to start with "
                    "--workers %d: expected a higher limit or fewer --workers",
                    bytes / MIB, workers);
}

static struct sl_process process; /* filled in by sl_runtime_start */

static const int64_t USUAL_CACHE_BYTES = 16 << 20; /* used if hwloc finds no cache */

/* Bind the process. Processes of a node that share cores get equal shares. With more ranks than
 * cores, the system places them: bound to one core each, all would sit on core 0. */
static int bind_process(void)
{
    struct sl_binding binding;
    const int code = sl_binding_open(&binding);
    if (code)
        return code;
    int sharers, index;
    sl_ranks_count_sharers(binding.text, &sharers, &index);
    suggest("STARPU_MPI_NOBIND", "1");
    process.own_cores = binding.cores * (index + 1) / sharers - binding.cores * index / sharers;
    process.scarce_cores = sharers > binding.cores ? binding.cores : 0;
    if (process.scarce_cores) {
        suggest("STARPU_WORKERS_NOBIND", "1");
        process.cores = 1;
    } else {
        if (sharers > 1)
            sl_binding_keep_share(&binding, sharers, index);
        suggest("STARPU_WORKERS_GETBIND", "1");
        process.cores = binding.cores;
    }
    process.cache_bytes = binding.cache_bytes ? binding.cache_bytes : USUAL_CACHE_BYTES;
    process.own_cache_bytes = binding.own_bytes;
    sl_binding_close(&binding);
    return 0;
}

/* Note, once in a process, that StarPU has fewer workers than it should. */
static void note_limit(bool quiet, int workers)
{
    static bool noted;
    if (quiet || noted)
        return;
    noted = true;
    sl_note("%d of %d CPU workers: this StarPU was built for no more; "
            "./bootstrap --own-starpu builds one for all cores",
            STARPU_MAXCPUS, workers);
}

/* Note, once in a process, that the machine has fewer processors than workers were asked for. */
static void note_processors(bool quiet, int asked, int workers, int processors)
{
    static bool noted;
    if (quiet || noted)
        return;
    noted = true;
    sl_note("--workers %d: this machine has %d processor%s, which %d workers share (expected at "
            "most %d)",
            asked, processors, sl_s(processors), workers, processors);
}

/* Return the number of CPU workers: each GPU keeps a core busy. */
static int count_workers(const struct sl_runtime_options *options, int gpus)
{
    int workers = process.cores > gpus ? process.cores - gpus : 1;
    if (process.gpus_only)
        workers = 1;
    else if (options->workers)
        workers = options->workers;
    else if (getenv("STARPU_NCPU"))
        workers = atoi(getenv("STARPU_NCPU"));
    const int most = workers < STARPU_MAXCPUS ? workers : STARPU_MAXCPUS;
    const int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (options->workers > processors)
        note_processors(options->quiet, options->workers, most, processors);
    else if (workers > most)
        note_limit(options->quiet, workers);
    return most;
}

/* Choose the policy by measurements: lws is the best with CPU workers alone. With ranks of one
 * worker, a single queue sends first what was submitted first. Where own tiles are summed first,
 * they may wait: messages go before them. With GPUs, a policy must know how long a task takes on
 * each kind of worker. */
const char *sl_runtime_usual_scheduler(bool gpus, bool alone, bool own_first)
{
    if (gpus)
        return "dmdas";
    return !alone ? "lws" : own_first ? "prio" : "eager";
}

/* Return SL_ERR_USAGE where the user asks for GPUs and there are none. */
static int check_device(const struct sl_runtime_options *options)
{
    const char *limit = getenv("STARPU_NCUDA");
    if (sl_gpus_count() > 0 ||
        (options->device != SL_DEVICE_CUDA && options->device != SL_DEVICE_BOTH))
        return 0;
    return sl_error(SL_ERR_USAGE, "--device %s: %s",
                    sl_choice_word(SL_CHOICES(SL_DEVICES), (int)options->device).text,
                    !sl_runtime_knows_gpus() ? "this program was built without --with-cuda"
                    : limit && strcmp(limit, "0") == 0 ? "STARPU_NCUDA is 0"
                                                       : "CUDA sees no GPU here");
}

/* Return whether GPUs work alone: each rank has a GPU, and the user asks for no cores. With 16
 * cores beside it, an H100 took 1.5 and 1.8 times as long. All ranks choose alike, so that they cut
 * the graph alike. */
static bool chooses_gpus_only(struct sl_runtime *rt, const struct sl_runtime_options *options)
{
    const bool all = sl_runtime_least(rt, process.gpus) > 0;
    return all && (options->device == SL_DEVICE_CUDA ||
                   (options->device != SL_DEVICE_BOTH && !options->workers));
}

/* Return the policy that the user wants, or that was measured here; NULL: neither. */
static const char *wanted_scheduler(const struct sl_runtime_options *options)
{
    static char remembered[32];
    struct starpu_sched_policy *policy;
    if (options->scheduler)
        return options->scheduler;
    if (getenv("STARPU_SCHED"))
        return getenv("STARPU_SCHED");
    const bool gpus = sl_gpus_count() > 0 && options->device != SL_DEVICE_CPU;
    if (sl_remembered_scheduler(gpus, remembered) && sl_scheduler_find(remembered, &policy) == 0)
        return remembered;
    return NULL;
}

/* Refuse heteroprio with GPUs: in StarPU 1.3 it stops at a task that not every kind of worker can
 * run. */
static int check_policy(const char *name)
{
    if (process.gpus == 0 || strcmp(name, "heteroprio") != 0)
        return 0;
    return sl_error(SL_ERR_USAGE, "--scheduler heteroprio: it has no place for what belongs to the "
                                  "cores alone, so it does not go with GPUs: expected dmdas, say");
}

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

void sl_runtime_touch(void *memory, size_t bytes)
{
    enum { LEAST = 8 << 20 };
    const size_t workers = started ? starpu_cpu_worker_get_count() : 0;
    if (workers > 1 && bytes >= LEAST)
        starpu_execute_on_each_worker(touch_share, &(struct touched){memory, bytes, workers},
                                      STARPU_CPU);
}

/* Sum the workers and find the smallest cache and GPU: all ranks cut the graph by the same numbers.
 * Where ranks share cores, some ranks count no core. */
void sl_runtime_share_facts(struct sl_runtime *rt)
{
    int64_t workers[] = {rt->process->own_cores, rt->process->gpus};
    sl_runtime_sum(rt, workers, 2);
    rt->all_cores = workers[0] > 0 ? (int)workers[0] : 1; /* other views may count the cores */
    rt->all_gpus = (int)workers[1];
    rt->cache_bytes = sl_runtime_least(rt, rt->process->cache_bytes);
    rt->own_cache_bytes = sl_runtime_least(rt, rt->process->own_cache_bytes);
    rt->gpu_bytes = sl_runtime_least(rt, sl_gpus_bytes() / rt->process->gpu_sharers);
    if (rt->all_gpus == 0)
        rt->gpu_bytes = 0;
    const int64_t link = rt->process->link_bytes,
                  slowest = sl_runtime_least(rt, link > 0 ? link : INT64_MAX);
    rt->link_bytes = slowest < INT64_MAX ? slowest : 0;
}

/* Let ranks tell errors and compare options before anything else; a rank that has failed takes
 * part, too. */
static int meet(struct sl_runtime *rt, const struct sl_runtime_options *options, int own_code)
{
    const int listed = options->alike ? options->alike->code : 0;
    int code = sl_runtime_agree(rt, own_code ? own_code : listed);
    if (!code)
        code = sl_launcher_check(rt);
    if (!code && options->alike)
        code = sl_alike_check(rt, options->alike, SL_ERR_USAGE, "the same on all ranks");
    return code;
}

static int start(struct sl_runtime *rt, const struct sl_runtime_options *options)
{
    if (starpu_is_initialized())
        return sl_error(SL_ERR_SYSTEM, "StarPU is in use in this process (expected one user)");
    process = (struct sl_process){.ranks_here = 1, .gpu_sharers = 1};
    *rt = (struct sl_runtime){.ranks = 1, .process = &process, .stages = 2};
    suggest("STARPU_SILENT", "1");
    suggest("STARPU_CATCH_SIGNALS", "0");           /* Ctrl-C is for stop.c */
    suggest("HWLOC_COMPONENTS", "-gl");             /* see machine.c */
    suggest("CUBLAS_WORKSPACE_CONFIG", ":32768:2"); /* gives equal results in all streams */
    setenv("STARPU_USE_NUMA", "0", 1); /* tiles of a rank that are neighbours in memory stay so */
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.sched_policy_name = NULL;
    const char *wanted = wanted_scheduler(options);
    const int found = wanted ? sl_scheduler_find(wanted, &conf.sched_policy) : 0;
    int code = sl_ranks_start(rt);
    started = true; /* nobody starts MPI again, even after an error */
    if (code)
        return code;
    code = meet(rt, options, found);
    if (code)
        return code;
    sl_log_enable(rt->rank == 0 && !options->quiet);
    sl_starpu_files_find_room();
    code = check_device(options);
    if (!code)
        code = bind_process();
    code = sl_runtime_agree(rt, code);
    if (code)
        return code;
    process.ranks_here = sl_ranks_here();
    process.link_bytes = sl_rates_remembered_link();
    process.gpus = options->device == SL_DEVICE_CPU ? 0 : sl_gpus_choose(&process, &conf);
    process.gpus_only = chooses_gpus_only(rt, options);
    conf.ncpus = count_workers(options, process.gpus);
    if (!wanted)
        code = sl_scheduler_find(sl_runtime_usual_scheduler(process.gpus > 0,
                                                            rt->ranks > 1 && conf.ncpus == 1,
                                                            options->own_first),
                                 &conf.sched_policy);
    if (!code)
        code = check_policy(conf.sched_policy->policy_name);
    code = sl_runtime_agree(rt, code);
    if (code)
        return code;
    code = sl_blas_start(conf.ncpus);
    code = sl_runtime_agree(rt, code ? code : check_space(conf.ncpus + process.gpus));
    if (code)
        return code;
    const int own_code = start_starpu(&conf, process.gpus);
    code = sl_runtime_agree(rt, own_code);
    if (code && !own_code)
        starpu_shutdown();
    if (code)
        return code;
    if (sl_ranks_start_messages()) /* an error ends all ranks, since some may wait inside */
        sl_fatal("StarPU's messages do not start on rank %d", rt->rank);
    sl_home_start();
    process.workers = (int)starpu_cpu_worker_get_count();
    process.gpus = (int)starpu_cuda_worker_get_count();
    process.gpus_send = process.gpus > 0 && sl_ranks_reach_gpus();
    rt->spmm.room = sl_gpus_spare_bytes();
    sl_runtime_share_facts(rt);
    snprintf(process.scheduler, sizeof process.scheduler, "%s", conf.sched_policy->policy_name);
    return 0;
}

static void stop_starpu(struct sl_runtime *rt)
{
    sl_stage_stop(rt);
    sl_handles_free();
    sl_gpus_stop();
    sl_ranks_stop_messages();
    starpu_shutdown();
    sl_memory_return_all();
}

static int start_gpus(struct sl_runtime *rt)
{
    const int code = sl_runtime_agree(rt, sl_gpus_start());
    return code ? code : sl_gpus_check_bytes(rt->gpu_bytes);
}

int sl_runtime_start(struct sl_runtime *rt, const struct sl_runtime_options *options)
{
    int code = start(rt, options);
    if (!code && (code = start_gpus(rt)))
        stop_starpu(rt);
    if (code)
        sl_ranks_stop();
    return code;
}

int sl_runtime_refuse(int code)
{
    struct sl_runtime rt = {.ranks = 1};
    if (started || sl_ranks_use_mpi() || !sl_runtime_launched() || sl_ranks_start(&rt))
        return code;
    return sl_runtime_agree(&rt, code);
}

int sl_runtime_meet_held(struct sl_runtime *rt, const char *command, int code)
{
    struct sl_alike alike = {.count = 0};
    sl_alike_add_command(&alike, command);
    return meet(rt, &(struct sl_runtime_options){.alike = &alike}, code);
}

int sl_runtime_meet(const char *command, int code)
{
    struct sl_runtime rt = {.ranks = 1};
    struct sl_alike alike = {.count = 0};
    const char *commands = getenv("OMPI_NUM_APP_CTX"); /* mpirun ... : ... */
    if (!commands || atoi(commands) < 2 || started || sl_ranks_use_mpi() ||
        !sl_runtime_launched() || sl_ranks_start(&rt))
        return code;
    sl_alike_add_alone(&alike, command);
    return meet(&rt, &(struct sl_runtime_options){.alike = &alike}, code);
}

int sl_runtime_end(int code, void (*speak)(void))
{
    struct sl_runtime rt = {.ranks = 1};
    if (sl_ranks_use_mpi())
        sl_ranks_start(&rt); /* MPI is up: this sets the rank and the ranks */
    code = sl_runtime_agree(&rt, code);
    int64_t speakers = code && sl_error_message()[0] != '\0';
    const bool speaks = speakers > 0;
    sl_runtime_sum(&rt, &speakers, 1);
    if (code && (speaks || (speakers == 0 && rt.rank == 0)))
        speak();
    sl_runtime_sum(&rt, &speakers, 1); /* ranks wait here until the sentence is out */
    sl_runtime_release_mpi();
    return code;
}

void sl_runtime_wait(struct sl_runtime *rt)
{
    (void)rt;
    /* Not starpu_mpi_wait_for_all: its barrier blocks the thread that serves messages, and another
     * rank may still be waiting for one of ours. Messages are tasks' dependences, or waited for
     * when their tile is unregistered. */
    starpu_task_wait_for_all();
    sl_guard_check();
}

void sl_runtime_wait_for_room(struct sl_runtime *rt, unsigned most)
{
    (void)rt;
    starpu_task_wait_for_n_submitted(most);
    sl_guard_check();
}

int sl_runtime_guard(const struct sl_runtime *rt, int (*work)(void *argument), void *argument)
{
    if (rt->ranks > 1)
        return work(argument);
    const int code = sl_guard(work, argument);
    if (sl_guard_failed())
        sl_progress_end_all();
    return code;
}

void sl_runtime_stop(struct sl_runtime *rt)
{
    sl_runtime_wait(rt);
    stop_starpu(rt);
    sl_ranks_stop();
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

void sl_runtime_share(struct sl_runtime *rt, double *values, int64_t count)
{
    _Static_assert(sizeof *values == sizeof(int64_t), "a double is no int64_t");
    int64_t bits[512]; /* 0 on all ranks but one */
    for (int64_t at = 0, piece; rt->ranks > 1 && at < count; at += piece) {
        piece = count - at < 512 ? count - at : 512;
        memcpy(bits, values + at, (size_t)piece * sizeof *bits);
        sl_runtime_sum(rt, bits, piece);
        memcpy(values + at, bits, (size_t)piece * sizeof *bits);
    }
}
