/* The BLAS as threads with one task each use it; which BLAS is linked was chosen at configure time.
 */
#ifndef SL_CORE_BLAS_H
#define SL_CORE_BLAS_H

/* Start the program anew, with the same arguments, where ulimit bounds its memory and OpenBLAS
 * would start threads of its own: once it is loaded, only a variable prevents that. To be called
 * first. */
void sl_blas_load_alone(char *const *argv);

/* Prepare the BLAS for `threads` threads that call it, each for itself: it starts no thread of its
 * own. Return 0, or SL_ERR_SYSTEM where ulimit leaves no room for the buffers it will want. */
int sl_blas_start(int threads);

#endif
