/* The ranks that MPI starts, for src/core/runtime.c. A build with MPI links ranks_mpi.c, any other
 * ranks_alone.c. Both files also define the rank functions of runtime.h. */
#ifndef SL_CORE_RANKS_H
#define SL_CORE_RANKS_H

#include "core/runtime.h"

/* Start MPI, unless MPI is up or no launcher started the process. Set rank and ranks of rt. Return
 * 0; SL_ERR_SYSTEM; SL_ERR_USAGE: a program around this library has started MPI without threads. */
int sl_ranks_start(struct sl_runtime *rt);

/* Stop MPI, unless MPI is held (sl_runtime_hold_mpi), or was up before sl_ranks_start. */
void sl_ranks_stop(void);

/* Return whether MPI is up. */
bool sl_ranks_use_mpi(void);

/* Start StarPU's messages after StarPU has started, and stop them before StarPU stops. Return 0, or
 * StarPU's error. */
int sl_ranks_start_messages(void);
void sl_ranks_stop_messages(void);

/* Return how many ranks this node has. */
int sl_ranks_here(void);

/* Set *sharers to the number of this node's ranks that give the same text (under SL_RANKS_TEXT
 * characters), and *index to this rank's place among them. */
enum { SL_RANKS_TEXT = 512 };
void sl_ranks_count_sharers(const char *text, int *sharers, int *index);

/* Make and free the communicator of a view for sl_view_split and sl_view_free; set its rank, ranks
 * and processes. */
int sl_ranks_split(struct sl_runtime *parent, int colour, struct sl_runtime *view);
void sl_ranks_unite(struct sl_runtime *view);

/* Set *comm, an MPI_Comm that the caller frees, to a copy of the view's communicator, for a library
 * that uses MPI. Collective, in a build with MPI, on ranks that a launcher started. */
void sl_ranks_copy_comm(const struct sl_runtime *rt, void *comm);

/* Sum the workers of all ranks, and find the smallest cache and GPU of any rank. Collective. */
void sl_runtime_share_facts(struct sl_runtime *rt);

/* Return whether StarPU sends messages from and to GPU memory, and MPI accepts such addresses. */
bool sl_ranks_reach_gpus(void);

#endif
