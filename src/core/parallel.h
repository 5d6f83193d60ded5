/* Loops on all cores, for work outside the runtime: reading, generating and cutting data. */
#ifndef SL_CORE_PARALLEL_H
#define SL_CORE_PARALLEL_H

#include <stdint.h>

/* Calls body(context, i) once for each i of 0 … count - 1, in any order, on up to `threads` threads
 * of which the caller is one. Returns when all calls have. The calls must not depend on each other;
 * where the machine refuses a thread, the others do its share. The threads stay for later loops; a
 * loop that begins while another one is under way has its caller alone. The calls are the parts of
 * the innermost step that is told (core/progress.h). */
void sl_parallel_for(int threads, int64_t count, void (*body)(void *context, int64_t i),
                     void *context);

/* The same for bodies too short for a call each: body(context, begin, end) does begin … end - 1. */
void sl_parallel_for_ranges(int threads, int64_t count,
                            void (*body)(void *context, int64_t begin, int64_t end), void *context);

/* How many threads to take: `wanted`, or for 0 as many as this process may run at a time. */
int sl_parallel_threads(int64_t wanted);

#endif
