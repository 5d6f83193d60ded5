/* Loops on all cores, for work outside the runtime: reading, generating and cutting data. */
#ifndef SL_CORE_PARALLEL_H
#define SL_CORE_PARALLEL_H

#include <stdint.h>

/* Call body(context, i) once for each i of 0 … count - 1, in any order, on up to `threads` threads,
 * the caller among them. Return when all calls have returned. The calls must not depend on one
 * another: if the machine refuses a thread, the others do its share. Threads stay for later loops;
 * a loop that begins during another loop runs on its caller alone. The calls advance the innermost
 * step of core/progress.h. */
void sl_parallel_for(int threads, int64_t count, void (*body)(void *context, int64_t i),
                     void *context);

/* Call body(context, begin, end) for ranges that cover 0 … count - 1. For bodies too short for a
 * call for each i. */
void sl_parallel_for_ranges(int threads, int64_t count,
                            void (*body)(void *context, int64_t begin, int64_t end), void *context);

/* Return the number of threads to use: `wanted`, or for 0 as many as this process may run at a
 * time. */
int sl_parallel_threads(int64_t wanted);

#endif
