/* The common part of the kernel tests (test_kernels_*.c): operands, shapes and comparisons.
 *
 * How a kernel is judged. It is called alone, and compared with plain loops in double precision.
 * Where every partial sum is a small integer, float arithmetic is exact in any order, so results
 * must be equal. Elsewhere a sum of n products may be off by about n u Σ|terms| in any order, u =
 * 2^-24. The bound holds with and without fused multiply-add (Higham, "Accuracy and stability of
 * numerical algorithms", section 3.1). Terms are kept away from zero, so a missing term is far
 * outside this bound. Operations of one rounding per element (copies, products, sums of two) must
 * be equal to the rounded double result.
 *
 * How stray accesses are seen. Every operand ends at a forbidden page, or within 64 bytes of it.
 * The rest of its mapping is NaN in operands that are only read, and a canary in operands that are
 * written. Outputs that are not accumulated into start as NaN.
 *
 * To test a new kernel, build its operands with sl_guarded_random and sl_guarded_empty, and call
 * the kernel. Fill a double array by the obvious loop, and give both results to sl_expect. Run the
 * test over all shapes and instruction sets with sl_each_shape_and_level. A failure here fails the
 * calling cmocka test. */
#ifndef SL_TESTS_KERNELS_H
#define SL_TESTS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codelets/epilogue.h"

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

/* The same of values 0, 1 and NaN, (rows, 2 + columns) (free). */
int32_t *sl_random_values(int64_t rows, int64_t columns);

/* `count` numbers over 0 (free). */
float *sl_positive(int64_t count);

/* p = 1/2 has the exact scale 2. */
struct sl_dropout sl_some_dropout(double p);

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
    return m->at ? m->at + r * m->ld + j : NULL;
}

static inline struct sl_rows sl_rows_of(const struct sl_guarded *m)
{
    return sl_float_rows(m->at, m->ld);
}

/* One row of `rows` vertices, numbers of up to 32 bits in no order. */
struct sl_guarded sl_guarded_vertices(int64_t rows);

static inline const uint32_t *sl_vertices_of(const struct sl_guarded *m)
{
    return (const uint32_t *)(const void *)m->at;
}

/* ---- Dense operands in bfloat16 ---- */

/* Rows that end at a forbidden page. */
struct sl_narrowed {
    struct sl_guarded words; /* as many floats as hold them */
    struct sl_rows rows;
    int64_t count, cols;
};

/* All elements NaN, `spare` elements more than columns in a row. */
struct sl_narrowed sl_narrowed_empty(int64_t rows, int64_t cols, int64_t spare);

/* The elements of `from`, rounded; they are rounded in `from`, too. */
struct sl_narrowed sl_narrowed_of(struct sl_guarded *from, int64_t spare);

/* 0, 3, 16 or 33. */
int64_t sl_some_spare(void);

static inline uint16_t *sl_narrowed_at(const struct sl_narrowed *n, int64_t r, int64_t j)
{
    return (uint16_t *)n->rows.data + r * n->rows.ld + j;
}

/* ---- Sparse operands ---- */

struct sl_guarded_sparse {
    struct sl_sparse view;
    struct sl_guard row_ptr, col, value;
};

/* One block, narrow if it can be; `degree` entries per row on average; every fifth row is empty;
 * row `hub`, if there is one, is full. */
struct sl_guarded_sparse sl_guarded_sparse_random(int64_t rows, int64_t cols, int64_t degree,
                                                  int64_t hub, bool has_values, enum sl_kind kind);

/* Columns [first, last) of `from`, with blocks of `block_cols` columns, 0: one block; wide: columns
 * of 32 bits where 16 would do. */
struct sl_guarded_sparse sl_guarded_sparse_cut(const struct sl_sparse *from, int64_t first,
                                               int64_t last, int64_t block_cols, bool wide);

/* The transpose of a matrix of one block. */
struct sl_guarded_sparse sl_guarded_sparse_transpose(const struct sl_sparse *from,
                                                     int64_t block_cols);
void sl_guarded_sparse_free(struct sl_guarded_sparse *s);

/* All entries, block after block and row after row (free). */
struct sl_entry {
    int64_t row, col;
    float value;
};
struct sl_entry *sl_sparse_entries(const struct sl_sparse *a, int64_t *count);

/* ---- Epilogues ---- */

/* The steps of an epilogue that are present. */
enum {
    SL_STEP_SCALE = 1,
    SL_STEP_BEFORE = 2,
    SL_STEP_BIAS = 4,
    SL_STEP_RELU = 8,
    SL_STEP_MASK = 16,
    SL_STEP_DROPOUT = 32,
    SL_STEP_AFTER = 64,
    SL_STEP_FACTOR = 128,
    SL_STEPS_ALL = 255,
    SL_STEP_ELU = 256,      /* in place of relu */
    SL_STEP_ELU_BACK = 512, /* the mask is elu's output, with dropout */
};

/* Any of them, with elu, elu's gradient, both or none. */
int sl_some_steps(void);

struct sl_guarded_epilogue {
    struct sl_epilogue view;
    struct sl_guarded before, factor, bias, mask, vertex, after;
};

struct sl_guarded_epilogue sl_guarded_epilogue_random(int steps, int64_t rows, int64_t cols,
                                                      enum sl_layout layout);
void sl_guarded_epilogue_free(struct sl_guarded_epilogue *e);

/* The epilogue on exact results and on how far those of the kernel may be off. */
void sl_naive_epilogue(const struct sl_epilogue *e, int64_t rows, int64_t cols, double *want,
                       double *bound);

/* ---- Shapes ---- */

extern const int64_t sl_row_counts[5];
extern const int64_t sl_widths[15];

/* Every number of rows with every width in every layout. */
void sl_each_shape(void (*check)(int64_t rows, int64_t cols, enum sl_layout layout));

/* The same on every instruction set. */
void sl_each_shape_and_level(void (*check)(int64_t rows, int64_t cols, enum sl_layout layout));

/* ---- Instruction sets ---- */

/* Goes on to the next one; false if this processor has no other, and the best one is in force. To
 * be called as `for (int level = 0; sl_next_level(&level);)`. With SL_TEST_LEVELS=2 in the
 * environment, base and the best one alone. */
bool sl_next_level(int *level);

/* Whether this run takes a case of `terms` terms. A processor in software is slow
 * (tests/check-arm.sh): SL_TEST_TERMS in the environment is the most terms of a case there. */
bool sl_takes(int64_t terms);

/* The name of the one in force. */
const char *sl_level_name(void);

/* ---- Comparisons ---- */

bool sl_same_bits(float a, float b);

/* Every element is `want` within `bound`, or exactly where there is no bound; the padding is
 * untouched. */
void sl_expect(const char *operation, const struct sl_guarded *got, const double *want,
               const double *bound);

/* Nothing of the mapping but the elements was written. */
void sl_expect_padding_kept(const char *operation, const struct sl_guarded *m);

/* The same for a kernel that writes whole vectors of 16 elements. The kernel may write a row up to
 * the next multiple of 16, if ld has room. */
void sl_expect_vectors(const char *operation, const struct sl_guarded *got, const double *want,
                       const double *bound);
void sl_expect_vectors_only(const char *operation, const struct sl_guarded *m);

/* Two layouts of a result, or two ways to it. */
void sl_expect_same_bits(const char *operation, const struct sl_guarded *a,
                         const struct sl_guarded *b);

#endif
