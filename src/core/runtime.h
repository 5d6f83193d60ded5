/* Start and stop of StarPU and MPI, binding of workers, and what a process knows of its place.
 *
 * A struct sl_runtime is a view: some ranks, numbered from 0, with collectives, tags, a window of
 * stages and traffic of their own, over the workers and the memory of this process (struct
 * sl_process). The view of sl_runtime_start has all ranks; sl_view_split makes others
 * (core/view.h). */
#ifndef SL_CORE_RUNTIME_H
#define SL_CORE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/names.h"
#include "core/spmm_choice.h"

struct sl_alike;

/* The workers that run tasks. cpu: cores. cuda: GPUs, and one core for tasks of the host. both:
 * all cores and GPUs. auto: cuda where each rank has a GPU and no number of workers is asked for,
 * else both. */
#define SL_DEVICES(ENTRY)         \
    ENTRY(SL_DEVICE_AUTO, "auto") \
    ENTRY(SL_DEVICE_CPU, "cpu")   \
    ENTRY(SL_DEVICE_CUDA, "cuda") \
    ENTRY(SL_DEVICE_BOTH, "both")
enum sl_device { SL_DEVICES(SL_CHOICE_CONSTANT) };

struct sl_runtime_options {
    const char *scheduler; /* StarPU policy; NULL: STARPU_SCHED, else the one remembered of this
                              machine (remembered.h), else the default */
    int workers;           /* CPU workers on this rank; 0: all cores of its share, but for one that
                              serves each GPU */
    bool quiet;            /* no notes */
    enum sl_device device;
    bool own_first;               /* rows of own tiles are summed while others travel */
    const struct sl_alike *alike; /* what all ranks must have alike; NULL: nothing */
};

enum { SL_MOST_STAGES = 8, SL_WAYS = 2 };

/* Payload of messages. */
struct sl_traffic {
    int64_t bytes_sent, bytes_received;
    int64_t rows_received; /* bytes of those that came in stages (core/message.h) */
    int64_t sums_received, adjacency_received; /* likewise, parts of sums, and sparse tiles */
    int64_t messages;                          /* sent */
    int64_t bytes_between, messages_between;   /* likewise, sent to other groups */
};

/* The workers, cores and caches that StarPU has in this process. All views of a process share one
 * such struct. */
struct sl_process {
    int workers;     /* CPU workers */
    int gpus;        /* GPU workers */
    bool gpus_only;  /* what a GPU can do is not for the CPU workers (--device cuda, auto) */
    int gpu_sharers; /* processes of this node that use the same GPU */
    bool gpus_send;  /* messages leave and reach GPUs' memory; else they go through the host's */
    int cores;       /* in its share; more than `workers` if StarPU cannot use them */
    int own_cores;   /* its part of the sum over processes, each core counted once */
    int64_t cache_bytes;     /* last-level cache of a core */
    int64_t own_cache_bytes; /* largest cache that a core has for itself */
    int ranks_here;          /* processes of this node, this one among them */
    int64_t link_bytes;      /* per second of messages, as remembered here; 0: not measured */
    char scheduler[32];      /* the policy in force */
};

struct sl_runtime {
    int rank, ranks;
    const struct sl_process *process; /* NULL: without StarPU: a rank that reads alone, exchanges
                                         alone, planned views */
    int all_cores;                    /* of all ranks: the same number on each */
    int all_gpus;                     /* likewise, GPU workers */
    int64_t cache_bytes;     /* the smallest of all ranks' caches: the same number on each */
    int64_t own_cache_bytes; /* likewise, of caches that a core has for itself; 0: unknown */
    int64_t link_bytes;      /* per second: the slowest link that a rank remembers; 0: none does */
    int64_t gpu_bytes;       /* that tiles may take of the ranks' smallest GPU; 0: there is none */
    int64_t next_tag;
    int64_t tasks;             /* submitted on this rank so far */
    struct sl_traffic traffic; /* of this rank so far */
    bool plans;        /* tiles are described, and get no memory: to see what they would take */
    bool shapes_alone; /* matrices that are described never have memory: tiles may have any size */
    int stages;        /* core/message.h: of received tiles in memory at a time */
    struct sl_spmm_choice spmm; /* on GPUs (--spmm) */
    bool tf32; /* dense products of float32 may use GPUs' tensor cores (--precision tf32) */
    int64_t stages_asked, stages_dropped;
    void *stage_token[SL_MOST_STAGES];
    int64_t messages_asked; /* of stages, large ones */
    void *way[SL_WAYS];     /* on which they travel, one after the other */
    int *world;             // (ranks): the process that each rank is; NULL: the one of its number
    void *comm;             /* of MPI, for what ranks tell one another; NULL: all processes */
    int64_t stops_heard;    /* sl_runtime_stop_asked */
};

/* The process that a rank is. */
/* Return the cores of this rank that predictions count: its workers. Where GPUs train alone: all
 * cores of its share, since nothing predicts GPUs. */
static inline int sl_runtime_computing_cores(const struct sl_runtime *rt)
{
    return rt->process->gpus_only ? rt->process->cores : rt->process->workers;
}

static inline int sl_runtime_process(const struct sl_runtime *rt, int rank)
{
    return rt->world ? rt->world[rank] : rank;
}

/* Starts StarPU, and MPI when an MPI launcher started the process. Binds workers for one rank per
 * node, for ranks <= cores and for more ranks than cores; sets one BLAS thread. Variables that the
 * user set (STARPU_*) win, but for STARPU_USE_NUMA: tiles of one rank must stay neighbours in one
 * memory. Returns 0, or SL_ERR_SYSTEM / SL_ERR_USAGE (unknown scheduler, no GPU or a tiny one,
 * other options on another rank, a launcher that MPI does not know). An MPI that is up stays up at
 * sl_runtime_stop: it is the caller's. */
int sl_runtime_start(struct sl_runtime *rt, const struct sl_runtime_options *options);

/* Tell ranks that may be in sl_runtime_start that this rank has failed before it. Return the code
 * of all ranks; one of them keeps its sentence. MPI stays up if it is held. */
int sl_runtime_refuse(int code);

/* End a program that holds MPI. Where MPI is up, all ranks agree on the worst code. One rank with a
 * code calls `speak`, and no rank returns before: a launcher ends all ranks once one has failed.
 * Release MPI and return the code. */
int sl_runtime_end(int code, void (*speak)(void));

/* Hold MPI, which can start only once in a process. Until it is released, MPI stays up from one
 * sl_runtime_stop to the next sl_runtime_start. Set only the rank and ranks of *rt: the exchanges
 * below need no more. Without an MPI launcher, ranks is 1. Return 0 or SL_ERR_SYSTEM. */
int sl_runtime_hold_mpi(struct sl_runtime *rt);

/* The same, but MPI starts with the next sl_runtime_start. */
void sl_runtime_keep_mpi(void);
void sl_runtime_release_mpi(void);

/* Whether this is a build with CUDA. */
bool sl_runtime_knows_gpus(void);

/* Whether it is one and there is no GPU. */
bool sl_runtime_lacks_gpus(void);

/* Whether an MPI launcher started this process. */
bool sl_runtime_launched(void);

/* The policy where nothing was measured on this machine; `alone`: of a rank of one worker among
 * others, which may begin sums with its own tiles. */
const char *sl_runtime_usual_scheduler(bool gpus, bool alone, bool own_first);

/* Device memory of its own for every GPU worker, for what a task needs on the way:
 * SL_RUNTIME_WORKSPACE bytes, there from start to stop. Inside tasks, in a program built with CUDA.
 */
enum { SL_RUNTIME_WORKSPACE = 32 << 20 };
void *sl_runtime_workspace(void);

/* Return where the calling GPU worker keeps an object for its tasks, NULL at first. At stop,
 * `destroy` runs on the same worker. A worker keeps one object: all calls have the same
 * `destroy`. */
void **sl_runtime_kept(void (*destroy)(void *kept));

/* Destroy these objects now, when all tasks are done. */
void sl_runtime_drop_kept(void);

/* Lets the CPU workers, in their order, touch equal shares of new zeroed memory first, so that each
 * share lies on its worker's NUMA node. Does nothing before sl_runtime_start, or with few bytes. */
void sl_runtime_touch(void *memory, size_t bytes);

/* Waits for everything submitted, then shuts down. */
void sl_runtime_stop(struct sl_runtime *rt);

/* Waits for all tasks of this rank, and the messages that they need. For start and end: nothing
 * calls it inside an epoch. */
void sl_runtime_wait(struct sl_runtime *rt);

/* Wait until at most `most` tasks of this process are pending. Ranks that submit the same steps may
 * wait in different steps: tasks wait only for tasks of the same and of earlier steps. */
void sl_runtime_wait_for_room(struct sl_runtime *rt, unsigned most);

/* Return the number of this rank's node among the nodes of a view, in the order of their first
 * ranks. Collective. */
int sl_runtime_node(struct sl_runtime *rt);

/* What ranks tell one another between runs (ranks_mpi.c): all of them call it. A struct with no
 * more than `ranks` = 1 is a rank that works alone, whatever runs beside it. */

/* All ranks' values: values[r] from rank r. */
void sl_runtime_gather(struct sl_runtime *rt, int64_t value, int64_t *values);

/* Element-wise sum over ranks, in place, on all ranks. */
void sl_runtime_sum(struct sl_runtime *rt, int64_t *values, int64_t count);

/* Give all ranks the numbers that one rank has each, as they are; the others have 0.0 there. */
void sl_runtime_share(struct sl_runtime *rt, double *values, int64_t count);

/* `bytes` of memory from rank `root` to all others. */
void sl_runtime_broadcast(struct sl_runtime *rt, int root, void *memory, int64_t bytes);

/* Send every rank a list: items first[r] … first[r + 1] - 1, of `size` bytes each, go to rank r.
 * Set *received to the *count items from ranks 0, 1, …, one list after the other; the caller frees
 * them. SL_ERR_SYSTEM, on all ranks: some rank has no memory for its items. */
int sl_runtime_exchange(struct sl_runtime *rt, const void *items, const int64_t *first, size_t size,
                        void **received, int64_t *count);

/* Orderly stops (stop.h). A rank other than 0 tells rank 0 once that it was asked to stop; rank 0
 * looks, without waiting, whether a rank did so. At the end all ranks call the third one with
 * whether they told it, and rank 0 takes the messages that it has not seen. */
void sl_runtime_ask_stop(struct sl_runtime *rt);
bool sl_runtime_stop_asked(struct sl_runtime *rt);
void sl_runtime_settle_stops(struct sl_runtime *rt, bool asked);

/* The smallest of all ranks' values, on all ranks. */
int64_t sl_runtime_least(struct sl_runtime *rt, int64_t value);

/* The worst (smallest) of all ranks' error codes, so that all stop together. Only the first rank
 * that had it, with a sentence, keeps that, also where they have agreed on it before. */
int sl_runtime_agree(struct sl_runtime *rt, int code);

/* Let sl_runtime_agree ask nobody, until this is taken back: a rank that fails stops the run there,
 * with its sentence. For work that repeats in every step, where a failure ends the run anyway. */
void sl_runtime_fail_alone(bool alone);

/* Run `work` between sl_runtime_start and sl_runtime_stop. On one rank, memory that runs out while
 * tasks are submitted, or in a task, ends the work alone: return SL_ERR_SYSTEM then (sl_guard). The
 * tasks that were submitted run on, and sl_runtime_stop waits for them. With several ranks, others
 * wait for this one: the process ends. */
int sl_runtime_guard(const struct sl_runtime *rt, int (*work)(void *argument), void *argument);

/* Seconds on a steady clock. */
double sl_runtime_seconds(void);

/* Version text of the StarPU in use and the most CPU workers that its build allows. */
const char *sl_runtime_starpu_version(void);
int sl_runtime_starpu_max_workers(void);

#endif
