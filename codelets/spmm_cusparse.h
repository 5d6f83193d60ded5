/* Sparse products by cuSPARSE. cuSPARSE takes a tile as one block with 32-bit columns and values.
 * The first product of a tile makes this form, descriptors and a workspace, prepares the product,
 * and keeps all of them. */
#ifndef SL_CODELETS_SPMM_CUSPARSE_H
#define SL_CODELETS_SPMM_CUSPARSE_H

#ifdef __cplusplus
extern "C" {
#endif

#include "codelets/spmm.h"

struct sl_cusparse;

/* CUSPARSE_SPMM_CSR_ALG2 is for rows of dense operands; ALG3 gives the same bits in every run, but
 * for long rows (cuSPARSE 12.6, H100: 1200 entries). */
enum sl_cusparse_algorithm { SL_CUSPARSE_DEFAULT, SL_CUSPARSE_ALG2, SL_CUSPARSE_ALG3 };

/* Serve products on one queue of the current device, whose BLAS and workspace are not needed, one
 * after the other. Parts without values have at most `most_ones` entries. All functions here stop
 * the run on an error, also on a lack of memory. */
struct sl_cusparse *sl_cusparse_create(struct sl_cuda_queue queue,
                                       enum sl_cusparse_algorithm algorithm, int64_t most_ones);
void sl_cusparse_destroy(struct sl_cusparse *cusparse);

/* Do the work of sl_cuda_spmm, where H and Z are float32 and each part meets one tile and has 1 …
 * INT32_MAX entries. Parts have equal keys if, and only if, they have equal entries: the key finds
 * kept data. The first product of a key and a width allocates. A product whose part has moved since
 * the last product prepares anew. Any other enqueues the product alone. */
void sl_cusparse_spmm(struct sl_cusparse *cusparse, int64_t parts, const struct sl_cuda_part *part,
                      const int64_t *key, int64_t width, bool accumulate,
                      const struct sl_epilogue *epilogue, const struct sl_rows *z);

/* Numbers of allocations and preparations so far. Tests check that they stop growing. */
struct sl_cusparse_counts {
    int64_t allocations, preparations;
};
struct sl_cusparse_counts sl_cusparse_count(const struct sl_cusparse *cusparse);

#ifdef __cplusplus
}
#endif

#endif
