/* Submission of tasks. Every rank runs the same submission loops; a task is inserted only on the
 * rank that owns its output tile. */
#ifndef SL_CORE_TASK_H
#define SL_CORE_TASK_H

#include <stdint.h>

#include "core/runtime.h"
#include "core/tile.h"

enum { SL_TASK_TILES = 8 };

/* Most tasks that may be pending: they take some tens of megabytes. */
enum { SL_PENDING_TASKS = 20000 };

struct starpu_codelet;

/* How a codelet that takes any number of tiles accesses its last tiles; it reads the others. */
enum sl_task_output { SL_TASK_READS, SL_TASK_WRITES, SL_TASK_UPDATES };

/* Urgency of ready tasks on several ranks, for policies that look at it. SOON: a message waits for
 * the task, and the network must not idle. LATER: gradients of parameters, which nobody needs
 * before the next epoch. */
enum sl_task_urgency { SL_TASK_LATER = -1, SL_TASK_USUAL, SL_TASK_SOON };

/* A task. The codelet says how each tile is accessed; the task runs where its last tile, the
 * output, lives. There is no task where the output is idle. */
struct sl_task {
    struct starpu_codelet *codelet;
    int count;                                 /* number of tiles */
    enum sl_task_output output, before_output; /* access of the last tile and of the tile before;
 output 0: the codelet names all accesses */
    int outputs; /* how many of the last tiles have the access `output`; 0: one */
    struct sl_tile *tiles[SL_TASK_TILES];
    struct sl_tile *const *list; /* replaces `tiles` if there are more; sl_task_submit reads it */
    const void *argument;        /* copied into the task */
    size_t argument_size;
    enum sl_task_urgency urgency;
    bool on_cores; /* GPUs must not run the task; set, too, by a tile with on_cores */
    double work;   /* flops, or edges x width: the task's duration grows with it */
    uint32_t kind; /* variant of the codelet, 0 … 65535, for variants that differ in time */
};

/* Return the key of the performance models; in a submitted task the key stands behind the argument.
 * Tasks with the same key take about equally long on the same worker. Work counts in powers of
 * sqrt(2) and rows in powers of 2: irregular tiles all differ in size, and exact sizes would never
 * come twice. The output's columns, the types of the tiles and `kind` count as they are. */
uint32_t sl_task_footprint(const struct sl_task *task);

/* Return whether one task may have tiles of `bytes` in all. A GPU must have room for them beside
 * the tiles of the tasks around it. A task with over twice the limit runs on cores; a note says so
 * once. */
bool sl_task_holds(const struct sl_runtime *rt, int64_t bytes);

void sl_task_submit(struct sl_runtime *rt, const struct sl_task *task);

/* Let matrix `to` take over memory that it shares with matrix `from` on this rank. Submit a task
 * without work: later tasks on `to` wait for all earlier tasks and messages on `from`. The values
 * of `from` are lost. */
void sl_task_hand_over(struct sl_runtime *rt, const struct sl_matrix *from,
                       const struct sl_matrix *to);

#endif
