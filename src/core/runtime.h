/* Start and stop StarPU and MPI, bind workers, and tell a process its place among the others.
 *
 * A struct sl_runtime is a view: some ranks, numbered from 0. A view has its own collectives, tags,
 * window of stages and traffic. All views use the workers and the memory of this process (struct
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
    const char *scheduler; /* StarPU policy; NULL: STARPU_SCHED, else the remembered policy of this
                              machine (remembered.h), else the default */
    int workers; /* CPU workers on this rank; 0: all cores of its share, less a core for each GPU */
    bool quiet;  /* print no notes */
    enum sl_device device;
    bool own_first;               /* sum rows of own tiles while other rows travel */
    const struct sl_alike *alike; /* settings that all ranks must have alike; NULL: none */
};

enum { SL_MOST_STAGES = 8, SL_WAYS = 2 };

/* Payload of messages, in bytes or messages. */
struct sl_traffic {
    int64_t bytes_sent, bytes_received;
    int64_t rows_received; /* bytes of dense rows received in stages (core/message.h) */
    int64_t sums_received, adjacency_received; /* bytes of partial sums and of sparse tiles */
    int64_t messages;                          /* messages sent */
    int64_t bytes_between, messages_between;   /* bytes and messages sent to other groups */
};

/* The workers, cores and caches that StarPU has in this process. All views of a process share one
 * such struct. */
struct sl_process {
    int workers;         /* CPU workers */
    int gpus;            /* GPU workers */
    bool gpus_only;      /* CPU workers get no tasks that a GPU can run (--device cuda, auto) */
    int gpu_sharers;     /* processes of this node that use the same GPU */
    bool gpus_send;      /* MPI sends from and to GPU memory; else messages go through the host */
    int cores;           /* cores of its share; more than `workers` if StarPU cannot use them all */
    int own_cores;       /* cores that this process adds to sums: shared cores count once */
    int64_t cache_bytes; /* bytes of a core's last-level cache */
    int64_t own_cache_bytes; /* bytes of a core's largest private cache */
    int scarce_cores;        /* cores that more processes share, in turns; 0: there are enough */
    int ranks_here;          /* processes of this node, this process among them */
    int64_t link_bytes;      /* remembered bytes per second of messages; 0: not measured */
    char scheduler[32];      /* name of the policy in force */
};

struct sl_runtime {
    int rank, ranks;
    const struct sl_process *process; /* NULL: a rank without StarPU, which reads alone, exchanges
                                         alone or is a planned view */
    int all_cores;                    /* cores of all ranks; equal on all ranks */
    int all_gpus;                     /* GPU workers of all ranks; equal on all ranks */
    int64_t cache_bytes;     /* smallest last-level cache of all ranks; equal on all ranks */
    int64_t own_cache_bytes; /* smallest private cache of all ranks; 0: unknown */
    int64_t link_bytes;      /* bytes per second of the slowest remembered link; 0: none */
    int64_t gpu_bytes;       /* bytes that tiles may take of the ranks' smallest GPU; 0: no GPU */
    int64_t next_tag;
    int64_t tasks;             /* tasks submitted on this rank so far */
    struct sl_traffic traffic; /* traffic of this rank so far */
    bool plans; /* tiles are described and get no memory, to learn the bytes they would take */
    bool shapes_alone;          /* described matrices never get memory: tiles may have any size */
    int stages;                 /* stages of received tiles in memory at a time (core/message.h) */
    struct sl_spmm_choice spmm; /* choice of the kernel of sparse products on GPUs (--spmm) */
    bool tf32; /* dense products of float32 may use GPUs' tensor cores (--precision tf32) */
    int64_t stages_asked, stages_dropped;
    void *stage_token[SL_MOST_STAGES];
    int64_t messages_asked; /* large messages of stages asked for so far */
    void *way[SL_WAYS]; /* handles that order large messages: on each way, messages travel one after
                           the other */
    int *world;         // (ranks): process of each rank; NULL: process r for rank r
    void *comm;         /* MPI communicator for collectives; NULL: all processes */
    int64_t stops_heard; /* messages of sl_runtime_ask_stop that rank 0 has received */
};

/* Return the cores of this rank that predictions count: its workers. Where GPUs train alone: all
 * cores of its share, since nothing predicts GPUs. */
static inline int sl_runtime_computing_cores(const struct sl_runtime *rt)
{
    return rt->process->gpus_only ? rt->process->cores : rt->process->workers;
}

/* Return the number of the process that a rank of the view is. */
static inline int sl_runtime_process(const struct sl_runtime *rt, int rank)
{
    return rt->world ? rt->world[rank] : rank;
}

/* Start StarPU, and MPI where an MPI launcher started the process. Bind workers whether a node has
 * one rank, several, or more ranks than cores; set one BLAS thread. Variables that the user set
 * (STARPU_*) win, except STARPU_USE_NUMA: a rank's tiles must stay neighbours in one memory. Return
 * 0, SL_ERR_SYSTEM or SL_ERR_USAGE. The usage is wrong where the scheduler is unknown, a GPU is
 * missing or tiny, ranks have other options, or MPI does not know the launcher. sl_runtime_stop
 * leaves MPI up if MPI was up before: the caller stops it. */
int sl_runtime_start(struct sl_runtime *rt, const struct sl_runtime_options *options);

/* Tell ranks that may be in sl_runtime_start that this rank has failed before it. Return the worst
 * code of all ranks; one rank keeps its sentence. MPI stays up if it is held. */
int sl_runtime_refuse(int code);

/* Begin a command that ranks run together while MPI is held (sl_runtime_hold_mpi). Return the worst
 * code of all ranks, or SL_ERR_USAGE where a rank runs another command. Collective. */
int sl_runtime_meet_held(struct sl_runtime *rt, const char *command, int code);

/* End a command that ranks run one by one, without MPI, with `code`. Where the launcher started
 * more than one command line, another rank may be in sl_runtime_start and wait for this one: return
 * SL_ERR_USAGE on all ranks then, or the worst code. MPI stays up if it is held. */
int sl_runtime_meet(const char *command, int code);

/* End a program that holds MPI. Where MPI is up, all ranks agree on the worst code. One rank with
 * this code calls `speak`, and all ranks wait for it: a launcher ends all ranks once one has
 * failed. Release MPI and return the code. */
int sl_runtime_end(int code, void (*speak)(void));

/* Start and hold MPI, which can start only once in a process. Until it is released, MPI stays up
 * from one sl_runtime_stop to the next sl_runtime_start. Set only the rank and ranks of *rt, enough
 * for the exchanges below. Without an MPI launcher, ranks is 1. Return 0 or SL_ERR_SYSTEM. */
int sl_runtime_hold_mpi(struct sl_runtime *rt);

/* Hold MPI from the next sl_runtime_start on, which starts it; release MPI. */
void sl_runtime_keep_mpi(void);
void sl_runtime_release_mpi(void);

/* Return whether this is a build with CUDA. */
bool sl_runtime_knows_gpus(void);

/* Return whether this is a build with CUDA, but the process has no GPU. */
bool sl_runtime_lacks_gpus(void);

/* Return whether an MPI launcher started this process. */
bool sl_runtime_launched(void);

/* Return the policy for a machine where none was measured. `alone`: each rank has one worker, and
 * there are several ranks; `own_first`: sums may begin with own tiles. */
const char *sl_runtime_usual_scheduler(bool gpus, bool alone, bool own_first);

/* Return the calling GPU worker's own workspace in device memory: SL_RUNTIME_WORKSPACE bytes,
 * allocated from start to stop. Call it inside tasks, in a build with CUDA. */
enum { SL_RUNTIME_WORKSPACE = 32 << 20 };
void *sl_runtime_workspace(void);

/* Return the address where the calling GPU worker keeps one object for its tasks, NULL at first. At
 * stop, `destroy` runs on the same worker. All calls must pass the same `destroy`. */
void **sl_runtime_kept(void (*destroy)(void *kept));

/* Destroy the objects of sl_runtime_kept now. All tasks must be done. */
void sl_runtime_drop_kept(void);

/* Let the CPU workers, in their order, touch equal shares of new zeroed memory first, so that each
 * share lies on its worker's NUMA node. Do nothing before sl_runtime_start, or for few bytes. */
void sl_runtime_touch(void *memory, size_t bytes);

/* Wait for everything submitted, then shut down. */
void sl_runtime_stop(struct sl_runtime *rt);

/* Wait for all tasks of this rank and the messages that they need, at the start and end of runs.
 * Never call it inside an epoch. */
void sl_runtime_wait(struct sl_runtime *rt);

/* Wait until at most `most` tasks of this process are pending. Ranks that submit the same steps may
 * wait in different steps: tasks wait only for tasks of the same and of earlier steps. */
void sl_runtime_wait_for_room(struct sl_runtime *rt, unsigned most);

/* Return the number of this rank's node among the nodes of a view, in the order of their first
 * ranks. Collective. */
int sl_runtime_node(struct sl_runtime *rt);

/* ---- Collectives between runs (ranks_mpi.c): all ranks call them. A struct with `ranks` = 1 is a
 * rank that works alone, whatever runs beside it. ---- */

/* Gather a value of each rank on all ranks: values[r] is from rank r. */
void sl_runtime_gather(struct sl_runtime *rt, int64_t value, int64_t *values);

/* Sum values element by element over ranks, in place, on all ranks. */
void sl_runtime_sum(struct sl_runtime *rt, int64_t *values, int64_t count);

/* Give all ranks numbers that one rank has each, bit by bit; the other ranks pass 0.0. */
void sl_runtime_share(struct sl_runtime *rt, double *values, int64_t count);

/* Copy `bytes` of memory from rank `root` to all others. */
void sl_runtime_broadcast(struct sl_runtime *rt, int root, void *memory, int64_t bytes);

/* Send every rank a list: items first[r] … first[r + 1] - 1, of `size` bytes each, go to rank r.
 * Set *received to the *count items from ranks 0, 1, …, one list after the other; the caller frees
 * them. SL_ERR_SYSTEM, on all ranks: some rank has no memory for its items. */
int sl_runtime_exchange(struct sl_runtime *rt, const void *items, const int64_t *first, size_t size,
                        void **received, int64_t *count);

/* Orderly stops (stop.h). sl_runtime_ask_stop tells rank 0, once, that another rank was asked to
 * stop. sl_runtime_stop_asked returns on rank 0, without waiting, whether a rank did so. At the
 * end, all ranks call sl_runtime_settle_stops with whether they told rank 0, and rank 0 receives
 * the remaining messages. */
void sl_runtime_ask_stop(struct sl_runtime *rt);
bool sl_runtime_stop_asked(struct sl_runtime *rt);
void sl_runtime_settle_stops(struct sl_runtime *rt, bool asked);

/* Return the smallest of all ranks' values, on all ranks. */
int64_t sl_runtime_least(struct sl_runtime *rt, int64_t value);

/* Return the worst (smallest) of all ranks' codes, so that all ranks stop together. Only the first
 * rank with this code and a sentence keeps its sentence, also if they have agreed before. */
int sl_runtime_agree(struct sl_runtime *rt, int code);

/* Let sl_runtime_agree return the rank's own code, until called with false. A rank that fails stops
 * the run with its sentence. Use it for work of every step, where a failure ends the run anyway. */
void sl_runtime_fail_alone(bool alone);

/* Run `work` between sl_runtime_start and sl_runtime_stop. On one rank, memory that runs out while
 * tasks are submitted, or in a task, ends the work alone: return SL_ERR_SYSTEM then (sl_guard). The
 * tasks that were submitted run on, and sl_runtime_stop waits for them. With several ranks, others
 * wait for this one: the process ends. */
int sl_runtime_guard(const struct sl_runtime *rt, int (*work)(void *argument), void *argument);

/* Return seconds on a steady clock. */
double sl_runtime_seconds(void);

/* Return the version text of the StarPU in use, and the most CPU workers that its build allows. */
const char *sl_runtime_starpu_version(void);
int sl_runtime_starpu_max_workers(void);

#endif
