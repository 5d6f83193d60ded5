/* Exact products of sparse and dense matrices, for the tests of kernels on sparse tiles
 * (tests/kernels.h). */
#ifndef SL_TESTS_EXACT_H
#define SL_TESTS_EXACT_H

#include "tests/kernels.h"

/* An exact result and how far that of the kernel may be off. */
struct sl_exact {
    int64_t rows, width;
    double *want, *bound; // (rows, width)
    double *terms;        // (rows)
};

/* Start sums: with nothing, or with Z, to which a kernel adds. */
struct sl_exact sl_exact_start(const struct sl_guarded *z, bool accumulate);

/* Entries as the kernels must see them: dropped out, and transposed. */
void sl_exact_add(struct sl_exact *x, const struct sl_sparse *a, const struct sl_dropout *drop,
                  const uint32_t *vertex, bool transposed, const struct sl_guarded *h);

/* After all terms. */
void sl_exact_finish(struct sl_exact *x);
void sl_exact_free(struct sl_exact *x);

/* Return a matrix for a result of a kernel: random if the kernel adds to it, else empty. */
struct sl_guarded sl_exact_result(int64_t rows, int64_t cols, bool accumulate,
                                  enum sl_layout layout, enum sl_kind kind);

/* `got` must be `want`; frees it. */
void sl_take_same_bits(const char *operation, struct sl_guarded *want, struct sl_guarded *got);

/* Columns of a block; 0: one block. */
extern const int64_t sl_block_sizes[4];

#endif
