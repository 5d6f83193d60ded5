/* The ranks that MPI starts, for src/core/runtime.c: ranks_mpi.c, or ranks_alone.c in a program
 * without MPI. Both have what runtime.h says of ranks, too. */
#ifndef SL_CORE_RANKS_H
#define SL_CORE_RANKS_H

#include "core/runtime.h"

/* Starts MPI, unless it is up or no launcher started the process; rt gets rank and ranks.
 * SL_ERR_SYSTEM; SL_ERR_USAGE: a program around this library has started MPI without threads. */
int sl_ranks_start(struct sl_runtime *rt);

/* Stops it, unless it is held, or was up before sl_ranks_start. */
void sl_ranks_stop(void);

/* Whether it is up. */
bool sl_ranks_use_mpi(void);

/* StarPU's messages: after it has started (not 0: they do not start), before it stops. */
int sl_ranks_start_messages(void);
void sl_ranks_stop_messages(void);

/* How many ranks this node has. */
int sl_ranks_here(void);

/* How many of them give the same text, of fewer than SL_RANKS_TEXT characters, and which of those
 * this one is. */
enum { SL_RANKS_TEXT = 512 };
void sl_ranks_count_sharers(const char *text, int *sharers, int *index);

/* Part of sl_view_split and sl_view_free: the communicator, rank, ranks and processes of a view. */
int sl_ranks_split(struct sl_runtime *parent, int colour, struct sl_runtime *view);
void sl_ranks_unite(struct sl_runtime *view);

/* Set *comm, an MPI_Comm that the caller frees, to a copy of the view's communicator, for a library
 * of MPI's. Collective; in a program with MPI, on ranks that a launcher started. */
void sl_ranks_copy_comm(const struct sl_runtime *rt, void *comm);

/* Sums the workers and finds the smallest cache and GPU of the ranks. */
void sl_runtime_share_facts(struct sl_runtime *rt);

/* Whether MPI takes messages from GPUs' memory, and StarPU hands them over there. */
bool sl_ranks_reach_gpus(void);

#endif
