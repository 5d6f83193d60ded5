/* Sums of sparse products: aggregation. */
#ifndef SL_CODELETS_SPMM_H
#define SL_CODELETS_SPMM_H

#include "codelets/epilogue.h"

/* Z = Σ_p A(p)·H(p) (accumulate: Z + …), then the epilogue, unless `epilogue` is NULL. Each A(p)
 * (m, k_p) is sparse, H(p) (k_p, width), Z (m, width). Terms are added to Z one after the other, so
 * parts and blocks do not change a bit. Where Z is bfloat16, all blocks but the last one are summed
 * in SUM (m, width), float32. SUM is overwritten; with `accumulate`, SUM takes the place of the old
 * Z. SUM may be NULL for one part of one block, without `accumulate`. */
void sl_kernel_spmm(int64_t parts, const struct sl_sparse *a, const struct sl_rows *h,
                    int64_t width, bool accumulate, const struct sl_epilogue *epilogue,
                    const struct sl_rows *sum, const struct sl_rows *z);

enum {
    SL_SPMM_PARTS = 16,
    SL_SPMM_TILES = 128, /* most dense tiles that a GPU takes at once */
};

/* Submit Z = Σ_p A(p)·H(p) (accumulate: Z + …) for at most SL_SPMM_PARTS tiles, then the epilogue,
 * unless `epilogue` is NULL. */
struct sl_spmm_tiles {
    int parts;
    struct sl_sparse_tile *const *a; // (parts)
    struct sl_tile *const *h; /* a[p]->span tiles for each p; tiles of one p are neighbours in one
                                 matrix, in this rank's memory */
    bool accumulate;
    const struct sl_epilogue_tiles *epilogue;
    struct sl_tile *sum; /* float32, where Z is bfloat16, for the sums (sl_kernel_spmm); may be NULL
                            for one part of one block that meets at most SL_SPMM_TILES tiles */
    struct sl_tile *z;
};
void sl_submit_spmm(struct sl_runtime *rt, const struct sl_spmm_tiles *tiles);

/* Argument of the tasks spmm_set and spmm_add. The argument ends after the first `parts` parts. */
struct spmm_argument {
    int parts;
    bool accumulate;
    bool has_sum;
    bool cusparse;     /* use cuSPARSE on a GPU */
    int64_t most_ones; /* entries of the largest tile without values */
    struct epilogue_argument epilogue;
    struct spmm_part {
        struct sl_sparse_shape shape;
        int64_t tag; /* tag of the sparse tile */
        int span;
    } part[SL_SPMM_PARTS];
};

/* Dense rows on the device, some of the rows that a sparse tile meets. Tiles that are neighbours in
 * the host's memory lie anywhere on a device. */
struct sl_cuda_rows {
    struct sl_rows at; // (rows, ld)
    int64_t rows;
};

/* A term A(p)·H(p) of a sum. The columns of `a` ascend within a row of a block. */
struct sl_cuda_part {
    struct sl_sparse a;
    int64_t nnz; /* number of entries of `a`, which the host cannot read from device memory */
    int tiles;   /* tiles that, one behind the other, have the rows of H(p) */
    const struct sl_cuda_rows *h; // (tiles)
};

/* Do the work of sl_kernel_spmm on a GPU. The epilogue's arrays are on the device, the struct
 * itself is not. There is at least one part; all H(p) have one type. Where Z is bfloat16, SUM is
 * read with `accumulate`, and written if there are more than SL_SPMM_PARTS parts or SL_SPMM_TILES
 * tiles; otherwise SUM may be NULL. */
void sl_cuda_spmm(int64_t parts, const struct sl_cuda_part *part, int64_t width, bool accumulate,
                  const struct sl_epilogue *epilogue, const struct sl_rows *sum,
                  const struct sl_rows *z, struct sl_cuda_queue queue);

#endif
