/* The BLAS, called by several threads with one task each. The BLAS itself is chosen at configure
 * time. */
#ifndef SL_CORE_BLAS_H
#define SL_CORE_BLAS_H

/* Restart the program with the same arguments and OPENBLAS_NUM_THREADS=1, where ulimit bounds its
 * memory: OpenBLAS reads the variable when it is loaded. Call it first in main. */
void sl_blas_load_alone(char *const *argv);

/* Let OpenBLAS choose its kernels again where it does not know the processor. No product may be on
 * its way. */
void sl_blas_choose_kernels(void);

/* Return the name of the processor whose kernels OpenBLAS takes; NULL: it is another BLAS. */
const char *sl_blas_core(void);

/* Prepare the BLAS, its kernels too, for calls from `threads` threads; the BLAS itself starts none.
 * Return 0, or SL_ERR_SYSTEM where ulimit leaves no room for its buffers. */
int sl_blas_start(int threads);

#endif
