/* The BLAS as threads with one task each use it; which BLAS is linked was chosen at configure time.
 */
#ifndef SL_CORE_BLAS_H
#define SL_CORE_BLAS_H

/* Restart the program with the same arguments and OPENBLAS_NUM_THREADS=1, where ulimit bounds its
 * memory: OpenBLAS reads the variable when it is loaded. To be called first in main. */
void sl_blas_load_alone(char *const *argv);

/* Prepare the BLAS for calls from `threads` threads; the BLAS itself starts none. An OpenBLAS that
 * does not know this processor gets kernels for the processor's vectors. Return 0, or SL_ERR_SYSTEM
 * where ulimit leaves no room for its buffers. */
int sl_blas_start(int threads);

#endif
