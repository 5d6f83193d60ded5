/* CUDA kernels: host functions that enqueue the kernels of codelets/kernels.h on a stream and
 * return at once. They take the same operands, in device memory; nothing here allocates,
 * synchronizes or knows the runtime. A launch that fails stops the run. Further parameters:
 *
 *   workspace   SL_RUNTIME_WORKSPACE bytes of device memory, whatever is in them. Calls that may
 *               run at the same time on one device need different ones: one per stream.
 *   metrics     SL_METRICS doubles, laid out as in codelets/submit.h, all overwritten.
 *
 * Results depend on the operands, their types and their shapes only, to the bit: not on ld,
 * alignment or other work on the device. */
#ifndef SL_CODELETS_KERNELS_CUDA_H
#define SL_CODELETS_KERNELS_CUDA_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "codelets/kernels.h"
#include "core/runtime.h"

/* Dense rows on the device, a part of those that a sparse tile meets: tiles that are neighbours in
 * the host's memory are anywhere on a device. */
struct sl_cuda_rows {
    struct sl_rows at; // (rows, ld)
    int64_t rows;
};

/* One A(p)·H(p) of a sum. The columns of `a` ascend within a row of a block. */
struct sl_cuda_part {
    struct sl_sparse a;
    int64_t nnz;                  /* the entries of `a`, whose number only the device can read */
    int tiles;                    /* one behind the other, they have the rows of H(p) */
    const struct sl_cuda_rows *h; // (tiles)
};

/* The epilogue's arrays are on the device, the struct itself is not. At least one part; all H(p) of
 * one type. Where Z is bfloat16, SUM is read if it is accumulated to, and written if there are more
 * than SL_SPMM_PARTS parts or SL_SPMM_TILES tiles; otherwise NULL will do. */
void sl_cuda_spmm(int64_t parts, const struct sl_cuda_part *part, int64_t width, bool accumulate,
                  const struct sl_epilogue *epilogue, float *sum, int64_t lds,
                  const struct sl_rows *z, cudaStream_t stream);
void sl_cuda_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *epilogue,
                      const struct sl_rows *sum, const struct sl_rows *z, cudaStream_t stream);

void sl_cuda_max(const struct sl_sparse *a, int64_t width, const struct sl_rows *h, bool accumulate,
                 const struct sl_rows *z, const struct sl_numbering *columns,
                 const struct sl_argmax *argmax, cudaStream_t stream);
void sl_cuda_max_merge(int64_t rows, int64_t width, const uint32_t *index, const struct sl_rows *x,
                       const struct sl_argmax *from, const struct sl_rows *z,
                       const struct sl_argmax *argmax, cudaStream_t stream);
void sl_cuda_max_back(const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
                      const struct sl_numbering *rows, const struct sl_argmax *argmax,
                      bool accumulate, const struct sl_rows *dh, cudaStream_t stream);

/* `nnz` is the number of entries of `x`. */
void sl_cuda_features(bool transposed, const struct sl_sparse *x, int64_t nnz,
                      const struct sl_dropout *drop, const uint32_t *vertex, int64_t width,
                      const float *h, int64_t ldh, bool accumulate, float *z, int64_t ldz,
                      cudaStream_t stream);

void sl_cuda_expand(const struct sl_sparse *x, const struct sl_dropout *drop,
                    const uint32_t *vertex, const struct sl_rows *z, cudaStream_t stream);

/* `handle` must be bound to `stream`. `tf32`: float32 operands may lose 13 of their 23 bits on the
 * way into the tensor cores. Where A is bfloat16, B is rounded to bfloat16, too, for the tensor
 * cores: a term's relative error is up to 2^-8, that of the sums float32's. */
void sl_cuda_gemm(cublasHandle_t handle, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                  int64_t k, const struct sl_rows *a, const float *b, int64_t ldb, bool accumulate,
                  bool tf32, const struct sl_epilogue *epilogue, const struct sl_rows *c,
                  void *workspace, cudaStream_t stream);

void sl_cuda_bias(int64_t rows, int64_t cols, const float *b, float *z, int64_t ldz,
                  cudaStream_t stream);
void sl_cuda_bias_gradient(int64_t rows, int64_t cols, const float *factor, const float *g,
                           int64_t ldg, float *db, void *workspace, cudaStream_t stream);

void sl_cuda_relu(int64_t rows, int64_t cols, float *z, int64_t ldz, cudaStream_t stream);
void sl_cuda_relu_backward(int64_t rows, int64_t cols, float scale, const float *h, int64_t ldh,
                           float *g, int64_t ldg, cudaStream_t stream);

/* The mask is the CPU's, bit for bit. */
void sl_cuda_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                     const uint32_t *vertex, uint32_t column0, const struct sl_rows *x,
                     const struct sl_rows *y, cudaStream_t stream);

/* Loss, correct count of the training rows (into the training split's metrics) and gradient in one
 * pass. */
void sl_cuda_softmax_loss(int64_t rows, int64_t classes, float scale, const float *factor,
                          const int32_t *target, const float *z, int64_t ldz, double *metrics,
                          float *g, int64_t ldg, void *workspace, cudaStream_t stream);
void sl_cuda_accuracy(int64_t rows, int64_t classes, const int32_t *target, const float *z,
                      int64_t ldz, double *metrics, void *workspace, cudaStream_t stream);

void sl_cuda_accumulate(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                        int64_t ldy, cudaStream_t stream);

/* Y(i) += X(i), i < count, of doubles. */
void sl_cuda_metrics_add(int count, const double *x, double *y, cudaStream_t stream);

/* What a step depends on beside its matrices, in device memory: one double, or NULL, and
 * (SL_METRICS), as in sl_submit_optimizer. */
struct sl_cuda_moment {
    const double *end;
    double *metrics;
    int epoch, layer;
};

/* All four matrices are (rows, cols); v is not touched by SGD. */
void sl_cuda_optimizer(const struct sl_optimizer_step *step, int64_t rows, int64_t cols,
                       const float *g, int64_t ldg, float *w, int64_t ldw, float *m, int64_t ldm,
                       float *v, int64_t ldv, const struct sl_cuda_moment *moment,
                       cudaStream_t stream);

/* One double, SUM = [SUM +] Σ X², added up in an order that the shape alone says. */
void sl_cuda_square_sum(int64_t rows, int64_t cols, const float *x, int64_t ldx, bool accumulate,
                        double *sum, void *workspace, cudaStream_t stream);
void sl_cuda_clip(int64_t rows, int64_t cols, double limit, const double *squares, float *x,
                  int64_t ldx, cudaStream_t stream);

/* The CPU's numbers, bit for bit. */
void sl_cuda_glorot(int64_t rows, int64_t cols, float limit, uint64_t key, uint32_t row0,
                    uint32_t column0, float *w, int64_t ldw, cudaStream_t stream);
void sl_cuda_fill(int64_t rows, int64_t cols, float value, const struct sl_rows *w,
                  cudaStream_t stream);

/* Y = X. */
void sl_cuda_copy(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y, int64_t ldy,
                  cudaStream_t stream);

/* Y = X if best (2), on the device, is of that epoch. */
void sl_cuda_copy_if_best(int64_t rows, int64_t cols, const double *best, int epoch, const float *x,
                          int64_t ldx, float *y, int64_t ldy, cudaStream_t stream);

void sl_cuda_paste(int64_t rows, int64_t cols, const struct sl_rows *x, const struct sl_rows *y,
                   cudaStream_t stream);

void sl_cuda_scale_rows(int64_t rows, int64_t cols, const float *s, const float *x, int64_t ldx,
                        float *y, int64_t ldy, cudaStream_t stream);
void sl_cuda_pack_rows(int64_t count, int64_t cols, const uint32_t *index, const struct sl_rows *x,
                       const struct sl_rows *y, cudaStream_t stream);
void sl_cuda_unpack_rows(int64_t count, int64_t cols, const uint32_t *index, bool accumulate,
                         const struct sl_rows *x, const struct sl_rows *y, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
