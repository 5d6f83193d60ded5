/* Aligned host memory with accounting. */
#ifndef SL_CORE_MEMORY_H
#define SL_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `bytes` of zeroed memory, 64-byte aligned; from 2 MiB on its own mapping for which huge pages are
 * asked (random row gathers are several times faster with them). NULL when there is none (sl_error
 * set). */
void *sl_memory_alloc(size_t bytes);

/* Gives back what sl_memory_alloc returned for the same `bytes`; NULL is allowed. */
void sl_memory_free(void *memory, size_t bytes);

/* From now on `made` is told of every mapping that sl_memory_alloc makes, and `going` before it
 * goes; NULL: nobody. */
void sl_memory_watch(void (*made)(void *memory, size_t bytes),
                     void (*going)(void *memory, size_t bytes));

/* Take memory for a short life, and return it with the same `bytes`. From 2 MiB on, returned pages
 * are kept, still in use, with their old contents. Kept pages serve a request for all their bytes
 * or down to a quarter. A request that needs new pages releases free pages that are smaller. */
void *sl_memory_take(size_t bytes);
void sl_memory_return(void *memory, size_t bytes);

/* Return the bytes that sl_memory_take(bytes) adds to the memory in use if no pages are kept. */
size_t sl_memory_taken(size_t bytes);

/* Return whether `kept` bytes of pages, once returned, serve a request for `bytes`. */
bool sl_memory_serves(size_t kept, size_t bytes);

/* Gives what is kept back to the system; the peak is counted anew. */
void sl_memory_return_all(void);

/* Gives back to the system what malloc keeps of freed memory, where the C library can. */
void sl_memory_trim(void);

/* Return memory of this thread, at a cache line: for a kernel, until the thread's next call. It is
 * kept, and freed when the thread ends. A kernel takes arrays of more than some pages from here,
 * because the stack of a thread may have 256 KiB in all. Without memory: sl_fatal. */
void *sl_memory_of_thread(size_t bytes);

/* Bytes handed out now, and the most there were since the last sl_memory_return_all. */
size_t sl_memory_in_use(void);
size_t sl_memory_peak(void);

/* The process's largest resident set so far, in bytes. */
size_t sl_memory_resident_peak(void);

#endif
