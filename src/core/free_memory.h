/* Find how many more bytes of memory this process may take. */
#ifndef SL_CORE_FREE_MEMORY_H
#define SL_CORE_FREE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds on a process's memory, by their source. */
enum sl_memory_bound {
    SL_MEMORY_OF_MACHINE, /* MemAvailable, which all processes of the machine share */
    SL_MEMORY_OF_CGROUP,  /* the least of its control group and those above; processes of these
                             groups share it */
    SL_MEMORY_OF_PROCESS, /* address space (ulimit -v) and data segment (ulimit -d) */
    SL_MEMORY_BOUNDS,
};

/* Fill free_bytes with the bytes that each bound leaves; INT64_MAX: the bound does not exist.
 * `root` stands before the paths of /proc and of control groups: "" but in tests. */
void sl_free_memory(const char *root, int64_t free_bytes[SL_MEMORY_BOUNDS]);

/* Return whether ulimit -v or -d bounds this process. */
bool sl_free_memory_is_limited(void);

/* Return whether the process could map `bytes` more of address space now, without keeping them. */
bool sl_free_memory_probe(size_t bytes);

#endif
