/* Aligned host memory with accounting. */
#ifndef SL_CORE_MEMORY_H
#define SL_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return `bytes` of zeroed memory, 64-byte aligned; NULL without memory (sl_error set). From 2 MiB
 * on the memory is a separate mapping with huge pages: random row gathers are several times faster.
 */
void *sl_memory_alloc(size_t bytes);

/* Free memory that sl_memory_alloc returned for the same `bytes`; NULL is allowed. */
void sl_memory_free(void *memory, size_t bytes);

/* Call `made` after every new mapping of sl_memory_alloc, and `going` before a mapping is removed;
 * NULL: call nothing. */
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

/* Give kept pages back to the system, and begin to measure the peak anew. */
void sl_memory_return_all(void);

/* Give freed memory that malloc keeps back to the system, where the C library can. */
void sl_memory_trim(void);

/* Return memory of the calling thread, aligned to a cache line, for a kernel until the thread's
 * next call. The memory is kept until the thread ends. Kernels take arrays of more than some pages
 * from here: a thread's stack may have only 256 KiB. Without memory, call sl_fatal. */
void *sl_memory_of_thread(size_t bytes);

/* Return the bytes handed out now, and the peak since the last sl_memory_return_all. */
size_t sl_memory_in_use(void);
size_t sl_memory_peak(void);

/* Return the process's largest resident set so far, in bytes. */
size_t sl_memory_resident_peak(void);

#endif
