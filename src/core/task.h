/* Submission of tasks. Every rank runs the same submission loops; a task is inserted only on the
 * rank that owns its output tile. */
#ifndef SL_CORE_TASK_H
#define SL_CORE_TASK_H

#include <stdint.h>

#include "core/runtime.h"
#include "core/tile.h"

enum { SL_TASK_TILES = 8 };

struct starpu_codelet;

/* How a codelet of any number of tiles accesses the last ones; it reads the others. */
enum sl_task_output { SL_TASK_READS, SL_TASK_WRITES, SL_TASK_UPDATES };

/* Which of the tasks that are ready comes first on several ranks, where the policy looks at it:
 * those on the way to what travels, so that the network has something to do; last, gradients of
 * parameters, which nobody needs before the next epoch. */
enum sl_task_urgency { SL_TASK_LATER = -1, SL_TASK_USUAL, SL_TASK_SOON };

/* One task. The codelet says how each tile is accessed; the task runs where its last tile, the
 * output, lives. */
struct sl_task {
    struct starpu_codelet *codelet;
    int count;                                 /* of tiles */
    enum sl_task_output output, before_output; /* of the last tile and the one before it; `output`
                                                  is left 0 where the codelet says all */
    struct sl_tile *tiles[SL_TASK_TILES];
    struct sl_tile *const *list; /* instead of `tiles`, if there are more; only read by the call */
    const void *argument;        /* copied */
    size_t argument_size;
    enum sl_task_urgency urgency;
    double work;   /* flops, or edges x width: what its duration follows */
    uint32_t kind; /* bits of the codelet's own, 0 … 65535: which of its ways, as far as they differ
                      in time */
};

/* The key of its performance models, which stands behind the argument once it is submitted: tasks
 * that share it last about as long as one another on the same worker. Work counts in powers of
 * sqrt(2) and rows in powers of 2, for irregular tiles all differ in size and a model that is keyed
 * by exact size would never see the same one twice; the output's columns, the types of the tiles
 * and `kind` count as they are. */
uint32_t sl_task_footprint(const struct sl_task *task);

/* Whether tiles of so many bytes in all are for one task: a GPU must have room for them, and for
 * those of the tasks around it. One that has more than twice as many runs on cores (which a note
 * says once). */
bool sl_task_holds(const struct sl_runtime *rt, int64_t bytes);

void sl_task_submit(struct sl_runtime *rt, const struct sl_task *task);

#endif
