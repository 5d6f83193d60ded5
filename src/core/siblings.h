/* The other processes of this process's launcher on this node, while MPI starts. MPI waits for
 * every process of the launcher: for ever for a process that runs another program and ends. */
#ifndef SL_CORE_SIBLINGS_H
#define SL_CORE_SIBLINGS_H

/* Call the first before MPI starts, and the second once MPI is up. In between, end the process by
 * sl_fatal once a process of this node has ended; one process of the node speaks. After half a
 * minute, rank 0 notes that it waits: processes of other nodes are not seen. Launchers that do not
 * tell their processes of each other, and containers that hide them, are not watched. */
void sl_siblings_watch(void);
void sl_siblings_release(void);

#endif
