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

/* The same for memory that comes and goes: from 2 MiB on, pages of what was given back are kept, in
 * use, and handed out again, as they are, for as many bytes or down to a quarter; those that are
 * too small go when more is wanted. */
void *sl_memory_take(size_t bytes);
void sl_memory_return(void *memory, size_t bytes);

/* How many bytes that takes if none are kept. */
size_t sl_memory_taken(size_t bytes);

/* Whether so many of them, if they are kept, are handed out for `bytes`. */
bool sl_memory_serves(size_t kept, size_t bytes);

/* Gives what is kept back to the system; the peak is counted anew. */
void sl_memory_return_all(void);

/* Gives back to the system what malloc keeps of freed memory, where the C library can. */
void sl_memory_trim(void);

/* Bytes handed out now, and the most there were since the last sl_memory_return_all. */
size_t sl_memory_in_use(void);
size_t sl_memory_peak(void);

/* The process's largest resident set so far, in bytes. */
size_t sl_memory_resident_peak(void);

#endif
