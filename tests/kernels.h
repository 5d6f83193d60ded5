/* What the kernel tests (test_kernels_*.c) share: operands, shapes and comparisons.
 *
 * How a kernel is judged. It is called alone, and compared with plain loops in double precision.
 * Where every partial sum is a small integer, float arithmetic is exact in any order, so results
 * must be equal. Elsewhere a sum of n products may be off by about n u Σ|terms| whatever its order
 * (Higham, "Accuracy and stability of numerical algorithms", section 3.1; u = 2^-24, with or
 * without fused multiply-add); terms are kept away from zero, so that a missing one is far outside
 * this bound. Operations of one rounding per element (copies, products, sums of two) must be equal
 * to the rounded double result.
 *
 * How stray accesses are seen. Every operand ends at, or within 64 bytes of, a page that cannot be
 * touched; everything in its mapping that is not an element is NaN where it is only read and a
 * canary where it is written. Outputs that are not accumulated into start as NaN.
 *
 * To test a new kernel: build its operands with sl_guarded_random and sl_guarded_empty, call it,
 * fill a double array by the obvious loop, and give both to sl_expect; run it over all shapes with
 * sl_each_shape. What fails, fails the cmocka test that called. */
#ifndef SL_TESTS_KERNELS_H
#define SL_TESTS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codelets/kernels.h"

#define SL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Numbers ---- */

#define SL_UNIT   0x1p-24 /* relative error of one float rounding */
#define SL_CANARY (-77.75f)

enum sl_kind { SL_INTEGERS, SL_REALS }; /* -4 … 4, and ±[0.5, 1.5) */

/* One sequence of numbers per program, the same in every run. */
void sl_random_seed(uint64_t seed);
uint64_t sl_random_bits(void);
int64_t sl_random_below(int64_t bound);
float sl_random_value(enum sl_kind kind);

/* `count` row numbers below `bound` (free); unique: a random choice without repetition. */
uint32_t *sl_row_numbers(int64_t count, int64_t bound, bool unique);

/* Targets of a loss, (rows, 2) (free): some without a label, all splits. */
int32_t *sl_random_targets(int64_t rows, int64_t classes);

/* Offsets that are not multiples of anything and differ, so that a swap or a forgotten one shows;
 * p = 1/2 has the exact scale 2. */
struct sl_sparse_dropout sl_some_dropout(double p);

/* `count` zeros (free). */
double *sl_doubles(int64_t count);

/* ---- Dense operands ---- */

/* Memory that ends at a forbidden page. */
struct sl_guard {
    char *map;
    size_t bytes; /* that can be used */
};

enum sl_layout {
    SL_TIGHT,  /* rows without padding */
    SL_PADDED, /* padded rows, 64-byte aligned */
    SL_LOOSE,  /* padded by three, starting one float after an aligned address */
    SL_EDGE,   /* without padding, ending exactly at the forbidden page */
    SL_LAYOUTS
};

/* The layout of a second operand: with other row lengths, so that a mixed-up ld shows. */
enum sl_layout sl_other_layout(enum sl_layout layout);

struct sl_guarded {
    int64_t rows, cols, ld;
    enum sl_layout layout;
    float pad; /* all that is not an element */
    float *at; // (rows, ld)
    struct sl_guard memory;
};

/* All elements NaN; random; another matrix's. */
struct sl_guarded sl_guarded_empty(int64_t rows, int64_t cols, enum sl_layout layout, float pad);
struct sl_guarded sl_guarded_random(int64_t rows, int64_t cols, enum sl_layout layout, float pad,
                                    enum sl_kind kind);
struct sl_guarded sl_guarded_copy(const struct sl_guarded *from, enum sl_layout layout, float pad);
void sl_guarded_free(struct sl_guarded *m);

static inline float *sl_element(const struct sl_guarded *m, int64_t r, int64_t j)
{
    return m->at + r * m->ld + j;
}

/* ---- Sparse operands ---- */

struct sl_guarded_sparse {
    struct sl_sparse view;
    struct sl_guard row_ptr, col, value;
};

/* `degree` entries per row on average; every fifth row is empty; row `hub`, if there is one, is
 * full. */
struct sl_guarded_sparse sl_guarded_sparse_random(int64_t rows, int64_t cols, int64_t degree,
                                                  int64_t hub, bool has_values, enum sl_kind kind);
void sl_guarded_sparse_free(struct sl_guarded_sparse *s);

/* ---- Shapes ---- */

extern const int64_t sl_row_counts[5];
extern const int64_t sl_widths[15];

/* Every number of rows with every width in every layout. */
void sl_each_shape(void (*check)(int64_t rows, int64_t cols, enum sl_layout layout));

/* ---- Comparisons ---- */

bool sl_same_bits(float a, float b);

/* Every element is `want` within `bound`, or exactly where there is no bound; the padding is
 * untouched. */
void sl_expect(const char *operation, const struct sl_guarded *got, const double *want,
               const double *bound);

/* Nothing of the mapping but the elements was written. */
void sl_expect_padding_kept(const char *operation, const struct sl_guarded *m);

/* Two layouts of a result. */
void sl_expect_same_bits(const char *operation, const struct sl_guarded *a,
                         const struct sl_guarded *b);

#endif
