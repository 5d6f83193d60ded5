/* Every kernel of codelets/kernels.h, called alone, against plain loops in double precision.
 *
 * How it is judged. Where every partial sum is a small integer, float arithmetic is exact in any
 * order, so results must be equal. Elsewhere a sum of n products may be off by about n u Σ|terms|
 * whatever its order (Higham, "Accuracy and stability of numerical algorithms", section 3.1; u =
 * 2^-24, with or without fused multiply-add); terms are kept away from zero, so that a missing one
 * is far outside this bound. Operations of one rounding per element (copies, products, sums of two)
 * must be equal to the rounded double result.
 *
 * How stray accesses are seen. Every operand ends at, or within 64 bytes of, a page that cannot be
 * touched; everything in its mapping that is not an element is NaN where it is only read and a
 * canary where it is written. Outputs that are not accumulated into start as NaN. The layouts are:
 * rows without padding; padded rows, 64-byte aligned; padded by three and starting one float after
 * an aligned address; and without padding, ending exactly at the forbidden page.
 *
 * To test a new kernel: build its operands with matrix_random and matrix_empty, call it, fill a
 * double array by the obvious loop, and give both to `expect`; run it over all shapes with
 * each_shape. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "codelets/kernels.h"
#include "data/dataset.h"

/* ---- Numbers ---- */

static const double UNIT = 0x1p-24; /* relative error of one float rounding */
static const float CANARY = -77.75f;

static uint64_t random_state = 1;

static uint64_t random_bits(void)
{
    random_state += 0x9E3779B97F4A7C15u;
    uint64_t x = random_state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static int64_t random_below(int64_t bound)
{
    return (int64_t)(random_bits() % (uint64_t)bound);
}

enum kind { INTEGERS, REALS }; /* -4 … 4, and ±[0.5, 1.5) */

static float random_value(enum kind kind)
{
    if (kind == INTEGERS)
        return (float)(random_below(9) - 4);
    const double magnitude = 0.5 + (double)(random_bits() >> 11) * 0x1p-53;
    return (float)(random_bits() & 1 ? magnitude : -magnitude);
}

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* ---- Operands ---- */

struct guarded {
    char *map;
    size_t bytes; /* that can be used; one forbidden page follows */
};

static struct guarded guarded_make(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t usable = (bytes + 128 + page - 1) / page * page; /* room to shift the start */
    void *map =
        mmap(NULL, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect((char *)map + usable, page, PROT_NONE), 0);
    return (struct guarded){map, usable};
}

static void guarded_free(struct guarded *g)
{
    munmap(g->map, g->bytes + (size_t)sysconf(_SC_PAGESIZE));
}

enum layout { TIGHT, PADDED, LOOSE, EDGE, LAYOUTS };
static const char *const layout_names[] = {"tight", "padded", "loose", "edge"};

struct matrix {
    int64_t rows, cols, ld;
    enum layout layout;
    float pad;
    float *at; // (rows, ld)
    struct guarded memory;
};

static float *element(const struct matrix *m, int64_t r, int64_t j)
{
    return m->at + r * m->ld + j;
}

/* All elements NaN. */
static struct matrix matrix_empty(int64_t rows, int64_t cols, enum layout layout, float pad)
{
    struct matrix m = {.rows = rows, .cols = cols, .ld = cols, .layout = layout, .pad = pad};
    if (layout == PADDED)
        m.ld = (cols / 16 + 1) * 16;
    else if (layout == LOOSE)
        m.ld = cols + 3;
    const size_t bytes = (size_t)(rows * m.ld) * sizeof(float);
    m.memory = guarded_make(bytes);
    float *all = (float *)(void *)m.memory.map;
    for (size_t i = 0; i < m.memory.bytes / sizeof(float); i++)
        all[i] = pad;
    size_t start = m.memory.bytes - bytes;
    if (layout == TIGHT || layout == PADDED)
        start = start / 64 * 64;
    else if (layout == LOOSE)
        start = (start - sizeof(float)) / 64 * 64 + sizeof(float);
    m.at = (float *)(void *)(m.memory.map + start);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            *element(&m, r, j) = NAN;
    return m;
}

static struct matrix matrix_random(int64_t rows, int64_t cols, enum layout layout, float pad,
                                   enum kind kind)
{
    struct matrix m = matrix_empty(rows, cols, layout, pad);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            *element(&m, r, j) = random_value(kind);
    return m;
}

static struct matrix matrix_copy(const struct matrix *from, enum layout layout, float pad)
{
    struct matrix m = matrix_empty(from->rows, from->cols, layout, pad);
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < m.cols; j++)
            *element(&m, r, j) = *element(from, r, j);
    return m;
}

static void matrix_free(struct matrix *m)
{
    guarded_free(&m->memory);
}

/* Nothing of the mapping but the elements was written. */
static void expect_padding_kept(const char *operation, const struct matrix *m)
{
    const float *all = (const float *)(const void *)m->memory.map;
    const int64_t count = (int64_t)(m->memory.bytes / sizeof(float)), first = m->at - all;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i - first;
        const bool inside = at >= 0 && at < m->rows * m->ld;
        if (inside && at % m->ld == 0 && m->cols > 0)
            i += m->cols - 1;
        else if (!same_bits(all[i], m->pad))
            fail_msg("%s: wrote outside a %lld x %lld %s matrix, at element %lld", operation,
                     (long long)m->rows, (long long)m->cols, layout_names[m->layout],
                     (long long)at);
    }
}

/* Every element is `want` within `bound`, or exactly where there is no bound; the padding is
 * untouched. */
static void expect(const char *operation, const struct matrix *got, const double *want,
                   const double *bound)
{
    for (int64_t r = 0; r < got->rows; r++)
        for (int64_t j = 0; j < got->cols; j++) {
            const double g = (double)*element(got, r, j), w = want[r * got->cols + j];
            const double allowed = bound ? bound[r * got->cols + j] : 0.0;
            if (!(fabs(g - w) <= allowed))
                fail_msg("%s: element (%lld, %lld) of a %lld x %lld %s matrix is %.9g, not %.9g "
                         "(within %.2g)",
                         operation, (long long)r, (long long)j, (long long)got->rows,
                         (long long)got->cols, layout_names[got->layout], g, w, allowed);
        }
    expect_padding_kept(operation, got);
}

static void expect_same_bits(const char *operation, const struct matrix *a, const struct matrix *b)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t j = 0; j < a->cols; j++)
            if (!same_bits(*element(a, r, j), *element(b, r, j)))
                fail_msg("%s: element (%lld, %lld) of %lld x %lld depends on the layout: %.9g %s, "
                         "%.9g %s",
                         operation, (long long)r, (long long)j, (long long)a->rows,
                         (long long)a->cols, (double)*element(a, r, j), layout_names[a->layout],
                         (double)*element(b, r, j), layout_names[b->layout]);
}

static double *doubles(int64_t count)
{
    double *array = calloc((size_t)count + 1, sizeof *array);
    assert_non_null(array);
    return array;
}

/* ---- Shapes ---- */

static const int64_t row_counts[] = {0, 1, 5, 64, 129};
static const int64_t widths[] = {1, 7, 8, 15, 16, 17, 31, 32, 41, 48, 64, 100, 128, 256, 602};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The layout of a second operand: with other row lengths, so that a mixed-up ld shows. */
static enum layout other(enum layout layout)
{
    return (enum layout)((layout + 1) % LAYOUTS);
}

static void each_shape(void (*check)(int64_t rows, int64_t cols, enum layout layout))
{
    random_state = 1;
    for (size_t i = 0; i < COUNT(row_counts); i++)
        for (size_t j = 0; j < COUNT(widths); j++)
            for (int layout = 0; layout < LAYOUTS; layout++)
                check(row_counts[i], widths[j], (enum layout)layout);
}

/* ---- Sparse operands ---- */

struct sparse {
    struct sl_sparse view;
    struct guarded row_ptr, col, value;
};

static void *at_end(const struct guarded *g, size_t bytes)
{
    return g->map + g->bytes - bytes;
}

/* `degree` entries per row on average; every fifth row is empty; row `hub`, if there is one, is
 * full. */
static struct sparse sparse_random(int64_t rows, int64_t cols, int64_t degree, int64_t hub,
                                   bool has_values, enum kind kind)
{
    const size_t most = (size_t)(rows * cols);
    uint32_t *row_ptr = calloc((size_t)rows + 1, sizeof *row_ptr),
             *col = calloc(most + 1, sizeof *col);
    assert_true(row_ptr && col);
    uint32_t nnz = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++)
            if (r == hub || (r % 5 != 3 && random_below(cols) < degree))
                col[nnz++] = (uint32_t)c;
        row_ptr[r + 1] = nnz;
    }
    const size_t entry_bytes = nnz * sizeof(uint32_t),
                 row_bytes = ((size_t)rows + 1) * sizeof(uint32_t);
    struct sparse s = {
        .view = {.rows = rows, .cols = cols},
        .row_ptr = guarded_make(row_bytes),
        .col = guarded_make(entry_bytes),
        .value = guarded_make(entry_bytes),
    };
    s.view.row_ptr = memcpy(at_end(&s.row_ptr, row_bytes), row_ptr, row_bytes);
    s.view.col = memcpy(at_end(&s.col, entry_bytes), col, entry_bytes);
    float *value = at_end(&s.value, entry_bytes);
    for (uint32_t e = 0; e < nnz; e++)
        value[e] = random_value(kind);
    s.view.value = has_values ? value : NULL;
    free(row_ptr);
    free(col);
    return s;
}

static void sparse_free(struct sparse *s)
{
    guarded_free(&s->row_ptr);
    guarded_free(&s->col);
    guarded_free(&s->value);
}

/* Entry e of row r as the kernels must see it. */
static double sparse_entry(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                           int64_t r, uint32_t e)
{
    double value = a->value ? (double)a->value[e] : 1.0;
    if (drop)
        value *= (double)sl_dropout_factor(&drop->drop, drop->row0 + (uint32_t)r,
                                           drop->col0 + a->col[e]);
    return value;
}

/* want = [Z +] op(A)·H; bound = n u Σ|terms| with n the number of terms and the roundings of value
 * and sum. */
static void naive_spmm(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                       bool transposed, const struct matrix *h, bool accumulate,
                       const struct matrix *z, double *want, double *bound)
{
    const int64_t width = z->cols;
    double *terms = doubles(z->rows);
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t j = 0; j < width; j++) {
            want[r * width + j] = accumulate ? (double)*element(z, r, j) : 0.0;
            bound[r * width + j] = fabs(want[r * width + j]);
        }
    for (int64_t r = 0; r < a->rows; r++)
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++) {
            const int64_t to = transposed ? a->col[e] : r, from = transposed ? r : a->col[e];
            const double value = sparse_entry(a, drop, r, e);
            for (int64_t j = 0; j < width; j++) {
                const double term = value * (double)*element(h, from, j);
                want[to * width + j] += term;
                bound[to * width + j] += fabs(term);
            }
            terms[to]++;
        }
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t j = 0; j < width; j++)
            bound[r * width + j] *= (terms[r] + 4.0) * UNIT;
    free(terms);
}

static void run_spmm(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                     bool transposed, const struct matrix *h, bool accumulate, struct matrix *z)
{
    (transposed ? sl_kernel_spmm_transposed : sl_kernel_spmm)(a, drop, z->cols, h->at, h->ld,
                                                              accumulate, z->at, z->ld);
}

static void check_product(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                          bool transposed, int64_t width, bool accumulate, enum layout layout,
                          enum kind kind)
{
    char name[64];
    snprintf(name, sizeof name, "spmm%s%s%s%s", transposed ? ", transposed" : "",
             accumulate ? ", accumulate" : "", a->value ? ", values" : "", drop ? ", dropout" : "");
    const int64_t rows = transposed ? a->cols : a->rows, inner = transposed ? a->rows : a->cols;
    struct matrix h = matrix_random(inner, width, layout, NAN, kind);
    struct matrix z = accumulate ? matrix_random(rows, width, other(layout), CANARY, kind)
                                 : matrix_empty(rows, width, other(layout), CANARY);
    double *want = doubles(rows * width), *bound = doubles(rows * width);
    naive_spmm(a, drop, transposed, &h, accumulate, &z, want, bound);
    run_spmm(a, drop, transposed, &h, accumulate, &z);
    expect(name, &z, want, kind == INTEGERS ? NULL : bound);
    free(want);
    free(bound);
    matrix_free(&h);
    matrix_free(&z);
}

/* Offsets that are not multiples of anything and differ, so that a swap or a forgotten one shows; p
 * = 1/2 has the exact scale 2. */
static struct sl_sparse_dropout some_dropout(double p)
{
    return (struct sl_sparse_dropout){sl_dropout_make(p, sl_rng_key(7, SL_RNG_DROPOUT, 3, 1)),
                                      1000003, 4099};
}

static void check_spmm_options(const struct sl_sparse *a, bool transposed, int64_t width,
                               enum layout layout, enum kind kind)
{
    const struct sl_sparse_dropout half = some_dropout(0.5), none = some_dropout(0.0);
    const struct sl_sparse_dropout *drops[] = {NULL, &half, &none};
    for (size_t d = 0; d < COUNT(drops); d++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            check_product(a, drops[d], transposed, width, accumulate, layout, kind);
}

static void check_spmm(int64_t rows, int64_t width, enum layout layout)
{
    const enum kind kind = layout == TIGHT ? REALS : INTEGERS;
    for (int64_t cols = 1; cols <= 90; cols += 89)
        for (int has_values = 0; has_values < 2; has_values++) {
            struct sparse a = sparse_random(rows, cols, 6, rows / 2, has_values, kind);
            check_spmm_options(&a.view, false, width, layout, kind);
            sparse_free(&a);
        }
}

static void check_spmm_transposed(int64_t rows, int64_t width, enum layout layout)
{
    const enum kind kind = layout == TIGHT ? REALS : INTEGERS;
    for (int64_t inner = 0; inner <= 77; inner += 77)
        for (int has_values = 0; has_values < 2; has_values++) {
            struct sparse a = sparse_random(inner, rows, 4, inner / 2, has_values, kind);
            check_spmm_options(&a.view, true, width, layout, kind);
            sparse_free(&a);
        }
}

static void test_spmm(void **state)
{
    (void)state;
    each_shape(check_spmm);
}

static void test_spmm_transposed(void **state)
{
    (void)state;
    each_shape(check_spmm_transposed);
}

/* Rows of more entries than any batch a kernel works in, first, between and last, and hundreds of
 * short rows, on operands larger than a cache. */
static void test_spmm_hub(void **state)
{
    (void)state;
    static const int64_t hubs[] = {0, 350, 699};
    static const int64_t some_widths[] = {1, 41, 128};
    for (size_t i = 0; i < COUNT(hubs); i++)
        for (size_t j = 0; j < COUNT(some_widths); j++)
            for (int transposed = 0; transposed < 2; transposed++) {
                const enum kind kind = j == 0 ? REALS : INTEGERS;
                struct sparse a = sparse_random(700, 1700, 2, hubs[i], true, kind);
                check_spmm_options(&a.view, transposed, some_widths[j], LOOSE, kind);
                sparse_free(&a);
            }
}

/* Hub lengths around powers of two: off-by-one errors where a long row is cut into pieces. */
static void test_spmm_row_lengths(void **state)
{
    (void)state;
    for (int64_t batch = 64; batch <= 1024; batch *= 2)
        for (int64_t length = batch - 1; length <= batch + 1; length++)
            for (int transposed = 0; transposed < 2; transposed++) {
                struct sparse a = sparse_random(3, length, 0, 1, true, INTEGERS);
                check_spmm_options(&a.view, transposed, 9, EDGE, INTEGERS);
                sparse_free(&a);
            }
}

static void test_spmm_one_row_full_batches(void **state)
{
    (void)state;
    for (int64_t rows = 255; rows <= 1025; rows += 1 + 255 * (rows % 2 == 0)) {
        struct sparse one = sparse_random(rows, 1, 1, -1, false, INTEGERS);
        check_spmm_options(&one.view, false, 8, PADDED, INTEGERS);
        check_spmm_options(&one.view, true, 8, PADDED, INTEGERS);
        sparse_free(&one);
    }
}

static void test_spmm_no_entries(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {700, 9}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct sparse a = sparse_random(sizes[i][0], sizes[i][1], 0, -1, true, INTEGERS);
        check_spmm_options(&a.view, false, 17, TIGHT, INTEGERS);
        check_spmm_options(&a.view, true, 17, TIGHT, INTEGERS);
        sparse_free(&a);
    }
}

/* NaN reaches exactly the results that it is a term of, even times zero. */
static void test_spmm_nan(void **state)
{
    (void)state;
    enum { ROWS = 23, COLS = 19, WIDTH = 21, BAD_ROW = 4, BAD_COLUMN = 20 };
    struct sparse a = sparse_random(ROWS, COLS, 5, 2, true, INTEGERS);
    for (int transposed = 0; transposed < 2; transposed++) {
        struct matrix h = matrix_random(transposed ? ROWS : COLS, WIDTH, LOOSE, NAN, INTEGERS);
        struct matrix z = matrix_empty(transposed ? COLS : ROWS, WIDTH, PADDED, CANARY);
        bool reached[ROWS + COLS] = {false};
        *element(&h, BAD_ROW, BAD_COLUMN) = NAN;
        for (int64_t r = 0; r < ROWS; r++)
            for (uint32_t e = a.view.row_ptr[r]; e < a.view.row_ptr[r + 1]; e++)
                if ((transposed ? r : a.view.col[e]) == BAD_ROW)
                    reached[transposed ? a.view.col[e] : r] = true;
        run_spmm(&a.view, NULL, transposed, &h, false, &z);
        for (int64_t r = 0; r < z.rows; r++)
            for (int64_t j = 0; j < WIDTH; j++)
                assert_int_equal(isnan(*element(&z, r, j)) != 0, reached[r] && j == BAD_COLUMN);
        expect_padding_kept("spmm of NaN", &z);
        matrix_free(&h);
        matrix_free(&z);
    }
    sparse_free(&a);
}

/* Ranks and devices may keep a tile with another ld: that must not change a bit of the result. */
static void test_spmm_same_in_all_layouts(void **state)
{
    (void)state;
    const struct sl_sparse_dropout drop = some_dropout(0.3);
    for (size_t i = 0; i < COUNT(widths); i++)
        for (int transposed = 0; transposed < 2; transposed++)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                struct sparse a = sparse_random(61, 67, 9, 5, true, REALS);
                struct matrix h = matrix_random(transposed ? 61 : 67, widths[i], TIGHT, NAN, REALS);
                struct matrix z =
                    matrix_random(transposed ? 67 : 61, widths[i], TIGHT, CANARY, REALS);
                struct matrix zs[LAYOUTS];
                for (int l = 0; l < LAYOUTS; l++)
                    zs[l] = matrix_copy(&z, (enum layout)l, CANARY);
                for (int l = 0; l < LAYOUTS; l++) {
                    struct matrix moved = matrix_copy(&h, (enum layout)l, NAN);
                    run_spmm(&a.view, &drop, transposed, &moved, accumulate, &zs[l]);
                    expect_same_bits(transposed ? "spmm transposed" : "spmm", &zs[0], &zs[l]);
                    matrix_free(&moved);
                }
                for (int l = 0; l < LAYOUTS; l++)
                    matrix_free(&zs[l]);
                matrix_free(&h);
                matrix_free(&z);
                sparse_free(&a);
            }
}

/* ---- Dense products ---- */

struct gemm_shape {
    bool transpose_a, transpose_b, accumulate;
    int64_t m, n, k;
};

static void naive_gemm(const struct gemm_shape *s, const struct matrix *a, const struct matrix *b,
                       const struct matrix *c, double *want, double *bound)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double sum = s->accumulate ? (double)*element(c, i, j) : 0.0, size = fabs(sum);
            for (int64_t l = 0; l < s->k; l++) {
                const double x = (double)*(s->transpose_a ? element(a, l, i) : element(a, i, l));
                const double y = (double)*(s->transpose_b ? element(b, j, l) : element(b, l, j));
                sum += x * y;
                size += fabs(x * y);
            }
            want[i * s->n + j] = sum;
            bound[i * s->n + j] = ((double)s->k + 4.0) * UNIT * size;
        }
}

static void run_gemm(const struct gemm_shape *s, const struct matrix *a, const struct matrix *b,
                     struct matrix *c)
{
    sl_kernel_gemm(s->transpose_a, s->transpose_b, s->m, s->n, s->k, a->at, a->ld, b->at, b->ld,
                   s->accumulate, c->at, c->ld);
}

static void check_gemm(const struct gemm_shape *s)
{
    /* Drawn rather than looped over: shapes x transposes x three layouts are too many. */
    const enum kind kind = random_below(2) ? REALS : INTEGERS;
    const enum layout la = (enum layout)random_below(LAYOUTS),
                      lb = (enum layout)random_below(LAYOUTS),
                      lc = (enum layout)random_below(LAYOUTS);
    struct matrix a =
        matrix_random(s->transpose_a ? s->k : s->m, s->transpose_a ? s->m : s->k, la, NAN, kind);
    struct matrix b =
        matrix_random(s->transpose_b ? s->n : s->k, s->transpose_b ? s->k : s->n, lb, NAN, kind);
    struct matrix c = s->accumulate ? matrix_random(s->m, s->n, lc, CANARY, kind)
                                    : matrix_empty(s->m, s->n, lc, CANARY);
    double *want = doubles(s->m * s->n), *bound = doubles(s->m * s->n);
    char name[64];
    snprintf(name, sizeof name, "gemm%s%s%s, k = %lld", s->transpose_a ? ", A'" : "",
             s->transpose_b ? ", B'" : "", s->accumulate ? ", accumulate" : "", (long long)s->k);
    naive_gemm(s, &a, &b, &c, want, bound);
    run_gemm(s, &a, &b, &c);
    expect(name, &c, want, kind == INTEGERS ? NULL : bound);
    free(want);
    free(bound);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);
}

static void test_gemm(void **state)
{
    (void)state;
    static const int64_t inner[] = {0, 1, 7, 16, 41, 129, 602};
    random_state = 2;
    for (size_t i = 0; i < COUNT(row_counts); i++)
        for (size_t j = 0; j < COUNT(widths); j++)
            for (size_t l = 0; l < COUNT(inner); l++)
                for (int option = 0; option < 8; option++) {
                    const struct gemm_shape s = {option & 1,    option & 2, option & 4,
                                                 row_counts[i], widths[j],  inner[l]};
                    if (s.m * s.n * s.k <= 1000000)
                        check_gemm(&s);
                }
}

static void test_gemm_same_in_all_layouts(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {129, 41, 602}, {64, 64, 64}, {5, 7, 100}, {602, 16, 129}, {1, 31, 17}};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int option = 0; option < 8; option++) {
            const struct gemm_shape s = {option & 1,  option & 2,  option & 4,
                                         sizes[i][0], sizes[i][1], sizes[i][2]};
            struct matrix a = matrix_random(s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k,
                                            TIGHT, NAN, REALS);
            struct matrix b = matrix_random(s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n,
                                            TIGHT, NAN, REALS);
            struct matrix c = matrix_random(s.m, s.n, TIGHT, CANARY, REALS),
                          first = matrix_copy(&c, TIGHT, CANARY);
            run_gemm(&s, &a, &b, &first);
            for (int l = 1; l < LAYOUTS; l++) {
                struct matrix a2 = matrix_copy(&a, (enum layout)l, NAN),
                              b2 = matrix_copy(&b, (enum layout)l, NAN);
                struct matrix c2 = matrix_copy(&c, (enum layout)l, CANARY);
                run_gemm(&s, &a2, &b2, &c2);
                expect_same_bits("gemm", &first, &c2);
                matrix_free(&a2);
                matrix_free(&b2);
                matrix_free(&c2);
            }
            matrix_free(&a);
            matrix_free(&b);
            matrix_free(&c);
            matrix_free(&first);
        }
}

/* ---- Elementwise and row operations ---- */

static void check_bias(int64_t rows, int64_t cols, enum layout layout)
{
    struct matrix z = matrix_random(rows, cols, layout, CANARY, REALS),
                  b = matrix_random(1, cols, EDGE, NAN, REALS);
    double *want = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] = (double)(float)((double)*element(&z, r, j) + (double)b.at[j]);
    sl_kernel_bias(rows, cols, b.at, z.at, z.ld);
    expect("bias", &z, want, NULL);
    free(want);
    matrix_free(&z);
    matrix_free(&b);
}

static void check_bias_gradient(int64_t rows, int64_t cols, enum layout layout)
{
    struct matrix g = matrix_random(rows, cols, layout, NAN, REALS),
                  db = matrix_empty(1, cols, other(layout), CANARY);
    double *want = doubles(cols);
    for (int64_t j = 0; j < cols; j++) {
        float in_order = 0.0f; /* the order is part of the contract: equal, not close */
        for (int64_t r = 0; r < rows; r++)
            in_order += *element(&g, r, j);
        want[j] = (double)in_order;
    }
    sl_kernel_bias_gradient(rows, cols, g.at, g.ld, db.at);
    expect("bias gradient", &db, want, NULL);
    free(want);
    matrix_free(&g);
    matrix_free(&db);
}

static void check_relu(int64_t rows, int64_t cols, enum layout layout)
{
    struct matrix z = matrix_random(rows, cols, layout, CANARY, INTEGERS);
    double *want = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] = fmax((double)*element(&z, r, j), 0.0);
    sl_kernel_relu(rows, cols, z.at, z.ld);
    expect("relu", &z, want, NULL);
    free(want);
    matrix_free(&z);
}

static void check_relu_backward(int64_t rows, int64_t cols, enum layout layout)
{
    const float scale = 1.25f;
    struct matrix h = matrix_random(rows, cols, layout, NAN, INTEGERS);
    struct matrix g = matrix_random(rows, cols, other(layout), CANARY, REALS);
    double *want = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] = *element(&h, r, j) > 0.0f
                                     ? (double)(float)((double)scale * (double)*element(&g, r, j))
                                     : 0.0;
    sl_kernel_relu_backward(rows, cols, scale, h.at, h.ld, g.at, g.ld);
    expect("relu backward", &g, want, NULL);
    free(want);
    matrix_free(&h);
    matrix_free(&g);
}

static void check_accumulate(int64_t rows, int64_t cols, enum layout layout)
{
    struct matrix x = matrix_random(rows, cols, layout, NAN, REALS);
    struct matrix y = matrix_random(rows, cols, other(layout), CANARY, REALS);
    double *want = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] =
                (double)(float)((double)*element(&x, r, j) + (double)*element(&y, r, j));
    sl_kernel_accumulate(rows, cols, x.at, x.ld, y.at, y.ld);
    expect("accumulate", &y, want, NULL);
    free(want);
    matrix_free(&x);
    matrix_free(&y);
}

static void check_fill(int64_t rows, int64_t cols, enum layout layout)
{
    struct matrix w = matrix_empty(rows, cols, layout, CANARY);
    double *want = doubles(rows * cols);
    for (int64_t i = 0; i < rows * cols; i++)
        want[i] = 2.5;
    sl_kernel_fill(rows, cols, 2.5f, w.at, w.ld);
    expect("fill", &w, want, NULL);
    free(want);
    matrix_free(&w);
}

static void check_scale_rows(int64_t rows, int64_t cols, enum layout layout)
{
    struct matrix s = matrix_random(1, rows, EDGE, NAN, REALS);
    struct matrix x = matrix_random(rows, cols, layout, CANARY, REALS);
    struct matrix y = matrix_empty(rows, cols, other(layout), CANARY);
    double *want = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] = (double)(float)((double)s.at[r] * (double)*element(&x, r, j));
    sl_kernel_scale_rows(rows, cols, s.at, x.at, x.ld, y.at, y.ld);
    expect("scale rows", &y, want, NULL);
    sl_kernel_scale_rows(rows, cols, s.at, x.at, x.ld, x.at, x.ld);
    expect("scale rows in place", &x, want, NULL);
    free(want);
    matrix_free(&s);
    matrix_free(&x);
    matrix_free(&y);
}

/* `count` row numbers below `bound`; unique: a random choice without repetition. */
static uint32_t *row_numbers(int64_t count, int64_t bound, bool unique)
{
    uint32_t *index = calloc((size_t)(count > bound ? count : bound) + 1, sizeof *index);
    assert_non_null(index);
    for (int64_t r = 0; r < (unique ? bound : count); r++)
        index[r] = (uint32_t)(unique ? r : random_below(bound));
    for (int64_t r = 0; unique && r < count; r++) {
        const int64_t with = r + random_below(bound - r);
        const uint32_t swap = index[r];
        index[r] = index[with];
        index[with] = swap;
    }
    return index;
}

static void check_gather_rows(int64_t rows, int64_t cols, enum layout layout)
{
    const int64_t source_rows = 33;
    uint32_t *index = row_numbers(rows, source_rows, false);
    struct matrix x = matrix_random(source_rows, cols, layout, NAN, REALS);
    struct matrix y = matrix_empty(rows, cols, other(layout), CANARY);
    double *want = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            want[r * cols + j] = (double)*element(&x, index[r], j);
    sl_kernel_gather_rows(rows, cols, index, x.at, x.ld, y.at, y.ld);
    expect("gather rows", &y, want, NULL);
    free(want);
    free(index);
    matrix_free(&x);
    matrix_free(&y);
}

/* Copying: each row at most once. Adding: rows repeat, and are added in order. The other rows stay
 * as they are. */
static void check_scatter_rows(int64_t rows, int64_t cols, enum layout layout)
{
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        const int64_t target_rows = accumulate ? 33 : rows + 4;
        uint32_t *index = row_numbers(rows, target_rows, !accumulate);
        struct matrix x = matrix_random(rows, cols, layout, NAN, REALS);
        struct matrix y = matrix_random(target_rows, cols, other(layout), CANARY, REALS);
        struct matrix in_order = matrix_copy(&y, TIGHT, CANARY);
        double *want = doubles(target_rows * cols);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < cols; j++) {
                float *to = element(&in_order, index[r], j);
                *to = accumulate ? *to + *element(&x, r, j) : *element(&x, r, j);
            }
        for (int64_t r = 0; r < target_rows; r++)
            for (int64_t j = 0; j < cols; j++)
                want[r * cols + j] = (double)*element(&in_order, r, j);
        sl_kernel_scatter_rows(rows, cols, index, x.at, x.ld, accumulate, y.at, y.ld);
        expect(accumulate ? "scatter rows, accumulate" : "scatter rows", &y, want, NULL);
        free(want);
        free(index);
        matrix_free(&x);
        matrix_free(&y);
        matrix_free(&in_order);
    }
}

static void test_bias(void **state)
{
    (void)state;
    each_shape(check_bias);
}

static void test_bias_gradient(void **state)
{
    (void)state;
    each_shape(check_bias_gradient);
}

static void test_relu(void **state)
{
    (void)state;
    each_shape(check_relu);
}

static void test_relu_nan(void **state)
{
    (void)state;
    for (int64_t at = 0; at < 41; at++) { /* in the vector part and in the rest */
        struct matrix z = matrix_random(1, 41, LOOSE, CANARY, INTEGERS);
        *element(&z, 0, at) = NAN;
        *element(&z, 0, (at + 1) % 41) = INFINITY;
        *element(&z, 0, (at + 2) % 41) = -INFINITY;
        sl_kernel_relu(1, 41, z.at, z.ld);
        for (int64_t j = 0; j < 41; j++)
            assert_int_equal(isnan(*element(&z, 0, j)) != 0, j == at);
        assert_true(*element(&z, 0, (at + 1) % 41) == INFINITY);
        assert_true(*element(&z, 0, (at + 2) % 41) == 0.0f);
        matrix_free(&z);
    }
}

static void test_relu_backward(void **state)
{
    (void)state;
    each_shape(check_relu_backward);
}

/* A NaN gradient passes where the unit was on and stops where it was off. */
static void test_relu_backward_nan(void **state)
{
    (void)state;
    for (int64_t at = 0; at < 41; at++) {
        struct matrix h = matrix_random(1, 41, EDGE, NAN, INTEGERS),
                      g = matrix_random(1, 41, LOOSE, CANARY, INTEGERS);
        *element(&g, 0, at) = NAN;
        sl_kernel_relu_backward(1, 41, 2.0f, h.at, h.ld, g.at, g.ld);
        assert_int_equal(isnan(*element(&g, 0, at)) != 0, *element(&h, 0, at) > 0.0f);
        matrix_free(&h);
        matrix_free(&g);
    }
}

static void test_accumulate(void **state)
{
    (void)state;
    each_shape(check_accumulate);
}

static void test_fill(void **state)
{
    (void)state;
    each_shape(check_fill);
}

static void test_scale_rows(void **state)
{
    (void)state;
    each_shape(check_scale_rows);
}

static void test_gather_rows(void **state)
{
    (void)state;
    each_shape(check_gather_rows);
}

static void test_scatter_rows(void **state)
{
    (void)state;
    each_shape(check_scatter_rows);
}

/* ---- Initialisation ---- */

static void check_glorot(int64_t rows, int64_t cols, enum layout layout)
{
    const float limit = 0.37f;
    const uint64_t key = sl_rng_key(11, SL_RNG_INIT, 0, 2);
    const uint32_t row0 = 17, column0 = 5;
    struct matrix w = matrix_empty(rows, cols, layout, CANARY);
    double *want = doubles(rows * cols), *bound = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) {
            const double u = sl_rng_uniform(key, row0 + (uint32_t)r, column0 + (uint32_t)j);
            want[r * cols + j] = (double)limit * (2.0 * u - 1.0);
            bound[r * cols + j] =
                4.0 * UNIT * (double)limit; /* u, 2u - 1 and the product, each rounded */
        }
    sl_kernel_glorot(rows, cols, limit, key, row0, column0, w.at, w.ld);
    expect("glorot", &w, want, bound);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            assert_true(fabsf(*element(&w, r, j)) <= limit);
    free(want);
    free(bound);
    matrix_free(&w);
}

static void test_glorot(void **state)
{
    (void)state;
    each_shape(check_glorot);
}

/* A tile holds the same numbers as its part of the whole. */
static void test_glorot_tiles(void **state)
{
    (void)state;
    struct matrix whole = matrix_empty(40, 50, TIGHT, CANARY),
                  tile = matrix_empty(13, 21, LOOSE, CANARY);
    sl_kernel_glorot(40, 50, 0.5f, 99, 0, 0, whole.at, whole.ld);
    sl_kernel_glorot(13, 21, 0.5f, 99, 9, 23, tile.at, tile.ld);
    for (int64_t r = 0; r < 13; r++)
        for (int64_t j = 0; j < 21; j++)
            assert_true(same_bits(*element(&tile, r, j), *element(&whole, 9 + r, 23 + j)));
    matrix_free(&whole);
    matrix_free(&tile);
}

/* ---- Random numbers and dropout ---- */

/* The known answers of Random123 (file kat_vectors, threefry2x32, 13 rounds). */
static void test_rng_known_answers(void **state)
{
    (void)state;
    static const uint32_t known[][6] = {
        /* counter, counter, key, key, result, result */
        {0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x9d1c5ec6, 0x8bd50731},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xfd36d048, 0x2d17272c},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xba3e4725, 0xf27d669e},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        const uint64_t key = (uint64_t)known[i][3] << 32 | known[i][2];
        uint32_t x, y;
        sl_rng_block(key, known[i][0], known[i][1], &x, &y);
        assert_int_equal(x, known[i][4]);
        assert_int_equal(y, known[i][5]);
        assert_true(sl_rng_bits(key, known[i][0], known[i][1]) == ((uint64_t)y << 32 | x));
    }
}

/* The words of a key all matter, in their own place. */
static void test_rng_keys_differ(void **state)
{
    (void)state;
    uint64_t keys[3 * 3 * 3 * 3];
    size_t count = 0;
    for (uint64_t seed = 0; seed < 3; seed++)
        for (uint32_t purpose = 1; purpose < 4; purpose++)
            for (uint32_t epoch = 0; epoch < 3; epoch++)
                for (uint32_t layer = 0; layer < 3; layer++) {
                    keys[count] = sl_rng_key(seed, purpose, epoch, layer);
                    for (size_t i = 0; i < count; i++)
                        assert_true(keys[i] != keys[count]);
                    count++;
                }
}

static void test_rng_uniform(void **state)
{
    (void)state;
    enum { COUNT_U = 1000000 };
    double sum = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < COUNT_U; i++) {
        const double u = sl_rng_uniform(5, i / 1000, i % 1000);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        squares += u * u;
    }
    /* u has variance 1/12, u² has 4/45. */
    assert_true(fabs(sum / COUNT_U - 0.5) < 4.0 * sqrt(1.0 / 12.0 / COUNT_U));
    assert_true(fabs(squares / COUNT_U - 1.0 / 3.0) < 4.0 * sqrt(4.0 / 45.0 / COUNT_U));
}

static void test_dropout_make(void **state)
{
    (void)state;
    const struct sl_dropout none = sl_dropout_make(0.0, 1), half = sl_dropout_make(0.5, 1);
    const struct sl_dropout all = sl_dropout_make(1.0, 1);
    assert_int_equal(none.threshold, 0);
    assert_true(none.scale == 1.0f && half.scale == 2.0f);
    assert_int_equal(half.threshold, 32768);
    for (uint32_t v = 0; v < 100; v++)
        for (uint32_t c = 0; c < 9; c++) {
            assert_true(sl_dropout_factor(&none, v, c) == 1.0f);
            assert_true(sl_dropout_factor(&all, v, c) == 0.0f);
        }
}

/* Over a million elements the share of kept ones is within 4 standard deviations of 1 - p, the mean
 * factor of 1, and neighbours along a row, along a column and between epochs are kept together as
 * often as independent ones. */
static void check_dropout_statistics(double p)
{
    enum { ROWS = 1000, COLS = 1000 };
    const struct sl_dropout drop = sl_dropout_make(p, sl_rng_key(1, SL_RNG_DROPOUT, 0, 0));
    const struct sl_dropout next = sl_dropout_make(p, sl_rng_key(1, SL_RNG_DROPOUT, 1, 0));
    const double keep = 1.0 - drop.threshold / 65536.0;
    double kept = 0.0, mean = 0.0, right = 0.0, below = 0.0, later = 0.0;
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t j = 0; j < COLS; j++) {
            const double factor = (double)sl_dropout_factor(&drop, r, j);
            kept += factor > 0.0;
            mean += factor;
            right += factor > 0.0 && sl_dropout_factor(&drop, r, j + 1) > 0.0f;
            below += factor > 0.0 && sl_dropout_factor(&drop, r + 1, j) > 0.0f;
            later += factor > 0.0 && sl_dropout_factor(&next, r, j) > 0.0f;
        }
    const double n = (double)ROWS * COLS, sigma = sqrt(keep * (1.0 - keep) / n);
    /* Pairs overlap: up to three times the variance of as many independent ones. */
    const double pair = 4.0 * sqrt(3.0 * keep * keep * (1.0 - keep * keep) / n);
    assert_true(fabs(kept / n - keep) <= 4.0 * sigma);
    assert_true(fabs(keep - (1.0 - p)) <= 0x1p-17);
    assert_true(fabs(mean / n - 1.0) <= 4.0 * sigma / keep);
    assert_true(fabs((double)drop.scale * keep - 1.0) <= 2.0 * UNIT);
    assert_true(fabs(right / n - keep * keep) <= pair);
    assert_true(fabs(below / n - keep * keep) <= pair);
    assert_true(fabs(later / n - keep * keep) <= pair);
}

static void test_dropout_statistics(void **state)
{
    (void)state;
    check_dropout_statistics(0.1);
    check_dropout_statistics(0.5);
    check_dropout_statistics(0.9);
}

static void check_dropout_at(int64_t rows, int64_t cols, enum layout layout, double p,
                             uint32_t vertex0, uint32_t column0)
{
    const struct sl_dropout drop = sl_dropout_make(p, sl_rng_key(3, SL_RNG_DROPOUT, 8, 1));
    struct matrix x = matrix_random(rows, cols, layout, CANARY, REALS);
    struct matrix y = matrix_empty(rows, cols, other(layout), CANARY);
    double *want = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) {
            const float factor =
                sl_dropout_factor(&drop, vertex0 + (uint32_t)r, column0 + (uint32_t)j);
            want[r * cols + j] = (double)(float)((double)*element(&x, r, j) * (double)factor);
        }
    sl_kernel_dropout(rows, cols, &drop, vertex0, column0, x.at, x.ld, y.at, y.ld);
    expect("dropout", &y, want, NULL);
    sl_kernel_dropout(rows, cols, &drop, vertex0, column0, x.at, x.ld, x.at, x.ld);
    expect("dropout in place", &x, want, NULL);
    free(want);
    matrix_free(&x);
    matrix_free(&y);
}

static void check_dropout(int64_t rows, int64_t cols, enum layout layout)
{
    static const uint32_t columns[] = {0, 1, 2, 3, 4, 1021};
    for (size_t c = 0; c < COUNT(columns); c++)
        check_dropout_at(rows, cols, layout, 0.3, (uint32_t)(c * 1000003), columns[c]);
    check_dropout_at(rows, cols, layout, 0.0, 12, 34);
    check_dropout_at(rows, cols, layout, 1.0, 12, 34);
    check_dropout_at(rows, cols, layout, 0.5, 4000000000u,
                     3999999998u); /* vertex and column numbers are 32 bits */
}

static void test_dropout(void **state)
{
    (void)state;
    each_shape(check_dropout);
}

/* The same mask whether the features are dense or sparse: the product with the identity is the
 * matrix itself. */
static void test_dropout_same_dense_and_sparse(void **state)
{
    (void)state;
    enum { ROWS = 37, COLS = 53 };
    struct sl_sparse_dropout drop = some_dropout(0.4);
    struct sparse a = sparse_random(ROWS, COLS, COLS, 3, true, REALS); /* full but for empty rows */
    struct matrix dense = matrix_empty(ROWS, COLS, TIGHT, CANARY),
                  identity = matrix_empty(COLS, COLS, TIGHT, NAN);
    struct matrix product = matrix_empty(ROWS, COLS, TIGHT, CANARY);
    sl_kernel_fill(ROWS, COLS, 0.0f, dense.at, dense.ld);
    sl_kernel_fill(COLS, COLS, 0.0f, identity.at, identity.ld);
    for (int64_t r = 0; r < ROWS; r++)
        for (uint32_t e = a.view.row_ptr[r]; e < a.view.row_ptr[r + 1]; e++)
            *element(&dense, r, a.view.col[e]) = a.view.value[e];
    for (int64_t j = 0; j < COLS; j++)
        *element(&identity, j, j) = 1.0f;
    sl_kernel_dropout(ROWS, COLS, &drop.drop, drop.row0, drop.col0, dense.at, dense.ld, dense.at,
                      dense.ld);
    sl_kernel_spmm(&a.view, &drop, COLS, identity.at, identity.ld, false, product.at, product.ld);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t j = 0; j < COLS; j++)
            assert_true(*element(&dense, r, j) == *element(&product, r, j));
    drop.drop = sl_dropout_make(1.0, 1);
    sl_kernel_spmm(&a.view, &drop, COLS, identity.at, identity.ld, false, product.at, product.ld);
    for (int64_t i = 0; i < ROWS * COLS; i++)
        assert_true(product.at[i] == 0.0f);
    sparse_free(&a);
    matrix_free(&dense);
    matrix_free(&identity);
    matrix_free(&product);
}

/* ---- Loss and accuracy ---- */

static int32_t *random_targets(int64_t rows, int64_t classes)
{
    int32_t *target = calloc((size_t)rows * 2 + 1, sizeof *target);
    assert_non_null(target);
    for (int64_t r = 0; r < rows; r++) {
        target[2 * r] = (int32_t)(random_below(classes + 1) - 1);
        target[2 * r + 1] = (int32_t)random_below(4);
    }
    return target;
}

struct row_loss {
    double loss, bound, largest, sum;
    int64_t best;
};

/* The bound of one row's loss, where exp and its argument are float and the sum may be: each term
 * of the sum has a relative error of a few u (|x| e^-|x| < 1/2 keeps the argument's rounding
 * harmless) and the sum `classes` u more; adding the largest logit back costs u of the logits'
 * size. */
static struct row_loss naive_row_loss(const struct matrix *z, int64_t r, int32_t label)
{
    struct row_loss row = {.largest = (double)*element(z, r, 0)};
    double size = 0.0;
    for (int64_t j = 0; j < z->cols; j++) {
        const double value = (double)*element(z, r, j);
        if (value > row.largest) {
            row.largest = value;
            row.best = j;
        }
        size = fmax(size, fabs(value));
    }
    for (int64_t j = 0; j < z->cols; j++)
        row.sum += exp((double)*element(z, r, j) - row.largest);
    row.loss = label < 0 ? 0.0 : log(row.sum) + row.largest - (double)*element(z, r, label);
    row.bound = ((double)z->cols + 8.0 + 4.0 * size) * UNIT;
    return row;
}

static bool counts_for_training(const int32_t *target, int64_t r)
{
    return target[2 * r] >= 0 && target[2 * r + 1] == SL_SPLIT_TRAIN;
}

static void check_losses(const struct matrix *z, const int32_t *target)
{
    double want_loss[4] = {0}, bound[4] = {0}, want_correct[4] = {0};
    for (int64_t r = 0; r < z->rows; r++) {
        const int32_t label = target[2 * r], split = target[2 * r + 1];
        if (label < 0)
            continue;
        const struct row_loss row = naive_row_loss(z, r, label);
        want_loss[split] += row.loss;
        bound[split] += row.bound;
        want_correct[split] += row.best == label;
    }
    double loss = NAN, correct = NAN, losses[4] = {NAN, NAN, NAN, NAN},
           corrects[4] = {NAN, NAN, NAN, NAN};
    sl_kernel_softmax_loss(z->rows, z->cols, target, z->at, z->ld, &loss, &correct);
    sl_kernel_accuracy(z->rows, z->cols, target, z->at, z->ld, corrects, losses);
    assert_true(fabs(loss - want_loss[SL_SPLIT_TRAIN]) <= bound[SL_SPLIT_TRAIN]);
    assert_true(correct == want_correct[SL_SPLIT_TRAIN]);
    for (int s = 0; s < 4; s++) {
        assert_true(fabs(losses[s] - want_loss[s]) <= bound[s]);
        assert_true(corrects[s] == want_correct[s]);
    }
}

/* A probability has the relative error of one term and of the sum, and at most 1 in size; the
 * label's is then subtracted from 1. */
static void check_loss_gradient(const struct matrix *z, const int32_t *target, enum layout layout)
{
    const float scale = 1.0f / 140.0f;
    struct matrix g = matrix_empty(z->rows, z->cols, layout, CANARY);
    double *want = doubles(z->rows * z->cols), *bound = doubles(z->rows * z->cols);
    for (int64_t r = 0; r < z->rows; r++) {
        if (!counts_for_training(target, r))
            continue;
        const struct row_loss row = naive_row_loss(z, r, target[2 * r]);
        for (int64_t j = 0; j < z->cols; j++) {
            const double p = exp((double)*element(z, r, j) - row.largest) / row.sum,
                         one = j == target[2 * r];
            want[r * z->cols + j] = (p - one) * (double)scale;
            bound[r * z->cols + j] =
                (double)scale * UNIT * (p * ((double)z->cols + 8.0) + 2.0 + 4.0 * one);
        }
    }
    sl_kernel_softmax_backward(z->rows, z->cols, scale, target, z->at, z->ld, g.at, g.ld);
    expect("softmax backward", &g, want, bound);
    free(want);
    free(bound);
    matrix_free(&g);
}

static void check_softmax(int64_t rows, int64_t classes, enum layout layout)
{
    for (int kind = 0; kind < 2; kind++) { /* integer logits: many ties for the largest */
        struct matrix z = matrix_random(rows, classes, layout, NAN, (enum kind)kind);
        int32_t *target = random_targets(rows, classes);
        check_losses(&z, target);
        check_loss_gradient(&z, target, other(layout));
        free(target);
        matrix_free(&z);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    each_shape(check_softmax);
}

static void test_softmax_large_logits(void **state)
{
    (void)state;
    random_state = 9;
    for (int trial = 0; trial < 20; trial++) {
        struct matrix z = matrix_empty(40, 41, LOOSE, NAN);
        int32_t *target = random_targets(40, 41);
        for (int64_t r = 0; r < 40; r++)
            for (int64_t j = 0; j < 41; j++)
                *element(&z, r, j) =
                    random_below(3) ? random_value(REALS) : (random_bits() & 1 ? 1e4f : -1e4f);
        for (int64_t j = 0; j < 41; j++) {
            *element(&z, 0, j) = 1e4f;
            *element(&z, 1, j) = -1e4f;
        }
        target[0] = target[2] = 40;
        target[1] = target[3] = SL_SPLIT_TRAIN;
        check_losses(&z, target);
        check_loss_gradient(&z, target, EDGE);
        free(target);
        matrix_free(&z);
    }
}

static void test_first_largest_wins(void **state)
{
    (void)state;
    static const float logits[][4] = {
        {1, 3, 3, 3}, {5, 5, 5, 5}, {-2, -3, -2, -9}, {0, 1, 2, 2}, {-1, -1, -1, 0}};
    static const int32_t first[] = {1, 0, 0, 2, 3};
    for (size_t i = 0; i < COUNT(first); i++)
        for (int32_t label = 0; label < 4; label++) {
            const int32_t target[2] = {label, SL_SPLIT_TRAIN};
            double loss, correct, corrects[4], losses[4];
            sl_kernel_softmax_loss(1, 4, target, logits[i], 4, &loss, &correct);
            sl_kernel_accuracy(1, 4, target, logits[i], 4, corrects, losses);
            assert_true(correct == (label == first[i]));
            assert_true(corrects[SL_SPLIT_TRAIN] == correct);
        }
}

/* A vertex without a label adds nothing, whatever its split and its logits. */
static void test_no_label_is_ignored(void **state)
{
    (void)state;
    const float z[] = {NAN, 1, 2, 1e4f, -1e4f, 0, 3, 1, 2};
    const int32_t target[] = {-1, SL_SPLIT_TRAIN, -1, SL_SPLIT_TEST, 0, SL_SPLIT_TRAIN};
    double loss, correct, corrects[4], losses[4];
    float g[9];
    const double want = log(exp(3.0) + exp(1.0) + exp(2.0)) - 3.0;
    sl_kernel_softmax_loss(3, 3, target, z, 3, &loss, &correct);
    sl_kernel_accuracy(3, 3, target, z, 3, corrects, losses);
    sl_kernel_softmax_backward(3, 3, 1.0f, target, z, 3, g, 3);
    assert_true(fabs(loss - want) < 32.0 * UNIT &&
                fabs(losses[SL_SPLIT_TRAIN] - want) < 32.0 * UNIT);
    assert_true(correct == 1.0 && corrects[SL_SPLIT_TRAIN] == 1.0);
    assert_true(losses[SL_SPLIT_TEST] == 0.0 && corrects[SL_SPLIT_TEST] == 0.0);
    for (int j = 0; j < 6; j++)
        assert_true(g[j] == 0.0f);
}

/* A diverged run must look diverged. */
static void test_softmax_nan(void **state)
{
    (void)state;
    for (int at = 0; at < 3; at++) {
        float z[] = {1, 2, 3}, g[3];
        const int32_t target[] = {1, SL_SPLIT_TRAIN};
        double loss, correct, corrects[4], losses[4];
        z[at] = NAN;
        sl_kernel_softmax_loss(1, 3, target, z, 3, &loss, &correct);
        sl_kernel_accuracy(1, 3, target, z, 3, corrects, losses);
        sl_kernel_softmax_backward(1, 3, 1.0f, target, z, 3, g, 3);
        assert_true(isnan(loss) && isnan(losses[SL_SPLIT_TRAIN]));
        for (int j = 0; j < 3; j++)
            assert_true(isnan(g[j]));
    }
}

/* ---- Optimizers ---- */

struct state_of_one {
    double w, m, v;
};

/* One step in double from the state before it, and by how much float may be off: a few roundings of
 * each term. */
static void naive_optimizer(const struct sl_optimizer_step *s, double g, struct state_of_one *x,
                            struct state_of_one *bound)
{
    const double rate = (double)s->rate, decay = (double)s->decay;
    const double beta1 = (double)s->beta1, beta2 = (double)s->beta2;
    struct state_of_one old = *x;
    if (s->method == SL_SGD) {
        x->m = beta1 * old.m + g + decay * old.w;
        x->w = old.w - rate * x->m;
        bound->m = 4.0 * UNIT * (fabs(beta1 * old.m) + fabs(g) + fabs(decay * old.w));
        bound->v = 0.0;
        bound->w = 4.0 * UNIT * (fabs(old.w) + fabs(rate * x->m)) + rate * bound->m;
        return;
    }
    if (s->method == SL_ADAM)
        g += decay * old.w;
    else
        old.w -= rate * decay * old.w;
    const double g_bound =
        s->method == SL_ADAM ? 4.0 * UNIT * (fabs(g) + 2.0 * fabs(decay * old.w)) : 0.0;
    x->m = beta1 * old.m + (1.0 - beta1) * g;
    x->v = beta2 * old.v + (1.0 - beta2) * g * g;
    const double root = sqrt(x->v / (double)s->correction2) + (double)s->epsilon;
    const double move = rate * x->m / (double)s->correction1 / root;
    x->w = old.w - move;
    bound->m =
        4.0 * UNIT * (fabs(beta1 * old.m) + fabs((1.0 - beta1) * g)) + (1.0 - beta1) * g_bound;
    bound->v = 6.0 * UNIT * x->v + 2.0 * (1.0 - beta2) * fabs(g) * g_bound;
    /* root follows v with half its relative error; where v is tiny epsilon dominates it. */
    const double relative = 12.0 * UNIT + (x->v > 0.0 ? bound->v / x->v : 0.0);
    bound->w = 4.0 * UNIT * fabs(old.w) + fabs(move) * relative +
               rate * bound->m / (double)s->correction1 / root;
}

enum { STEPS = 12 };

/* Each step is judged from the float state before it. */
static void check_optimizer(struct sl_optimizer_step step, int64_t count, enum layout layout)
{
    struct matrix w = matrix_random(1, count, layout, CANARY, REALS),
                  g = matrix_empty(1, count, other(layout), NAN);
    struct matrix m = matrix_empty(1, count, LOOSE, CANARY),
                  v = matrix_empty(1, count, EDGE, CANARY);
    double *want = doubles(3 * count), *bound = doubles(3 * count);
    const double beta1 = (double)step.beta1, beta2 = (double)step.beta2;
    sl_kernel_fill(1, count, 0.0f, m.at, m.ld);
    sl_kernel_fill(1, count, 0.0f, v.at, v.ld);
    for (int t = 1; t <= STEPS; t++) {
        step.correction1 = (float)(1.0 - pow(beta1, t));
        step.correction2 = (float)(1.0 - pow(beta2, t));
        for (int64_t i = 0; i < count; i++) {
            g.at[i] = random_below(5) ? 0.01f * random_value(REALS)
                                      : 0.0f; /* features that never occur: 0 */
            struct state_of_one x = {(double)w.at[i], (double)m.at[i], (double)v.at[i]}, b;
            naive_optimizer(&step, (double)g.at[i], &x, &b);
            want[i] = x.w, want[count + i] = x.m, want[2 * count + i] = x.v;
            bound[i] = b.w, bound[count + i] = b.m, bound[2 * count + i] = b.v;
        }
        const bool adam = step.method != SL_SGD;
        sl_kernel_optimizer(&step, count, g.at, w.at, m.at, adam ? v.at : NULL);
        expect("optimizer, w", &w, want, bound);
        expect("optimizer, m", &m, want + count, bound + count);
        if (adam)
            expect("optimizer, v", &v, want + 2 * count, bound + 2 * count);
    }
    free(want);
    free(bound);
    matrix_free(&w);
    matrix_free(&g);
    matrix_free(&m);
    matrix_free(&v);
}

static void check_optimizer_everywhere(const struct sl_optimizer_step *step)
{
    static const int64_t counts[] = {0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 602};
    random_state = 4;
    for (size_t i = 0; i < COUNT(counts); i++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            check_optimizer(*step, counts[i], (enum layout)layout);
}

static void test_adam(void **state)
{
    (void)state;
    const struct sl_optimizer_step plain = {
        .method = SL_ADAM, .rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    struct sl_optimizer_step decayed = plain;
    decayed.decay = 5e-4f;
    check_optimizer_everywhere(&plain);
    check_optimizer_everywhere(&decayed);
}

static void test_adamw(void **state)
{
    (void)state;
    const struct sl_optimizer_step step = {.method = SL_ADAMW,
                                           .rate = 0.01f,
                                           .decay = 0.1f,
                                           .beta1 = 0.9f,
                                           .beta2 = 0.999f,
                                           .epsilon = 1e-8f};
    check_optimizer_everywhere(&step);
}

static void test_sgd(void **state)
{
    (void)state;
    struct sl_optimizer_step step = {.method = SL_SGD, .rate = 0.1f, .decay = 5e-3f, .beta1 = 0.9f};
    check_optimizer_everywhere(&step);
    step.beta1 = step.decay = 0.0f;
    check_optimizer_everywhere(&step);
}

/* A weight whose gradient is always 0 stays, not even NaN for epsilon 0/0: v = 0 divides by
 * epsilon. */
static void test_adam_without_gradient(void **state)
{
    (void)state;
    struct sl_optimizer_step step = {.method = SL_ADAM,
                                     .rate = 0.1f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .correction1 = 0.1f,
                                     .correction2 = 0.001f};
    float g[9] = {0}, w[9], m[9] = {0}, v[9] = {0};
    for (int i = 0; i < 9; i++)
        w[i] = (float)i - 4.0f;
    sl_kernel_optimizer(&step, 9, g, w, m, v);
    for (int i = 0; i < 9; i++)
        assert_true(w[i] == (float)i - 4.0f && m[i] == 0.0f && v[i] == 0.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rng_known_answers),
        cmocka_unit_test(test_rng_keys_differ),
        cmocka_unit_test(test_rng_uniform),
        cmocka_unit_test(test_dropout_make),
        cmocka_unit_test(test_dropout_statistics),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_dropout_same_dense_and_sparse),
        cmocka_unit_test(test_spmm),
        cmocka_unit_test(test_spmm_transposed),
        cmocka_unit_test(test_spmm_hub),
        cmocka_unit_test(test_spmm_row_lengths),
        cmocka_unit_test(test_spmm_one_row_full_batches),
        cmocka_unit_test(test_spmm_no_entries),
        cmocka_unit_test(test_spmm_nan),
        cmocka_unit_test(test_spmm_same_in_all_layouts),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_same_in_all_layouts),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_bias_gradient),
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_relu_nan),
        cmocka_unit_test(test_relu_backward),
        cmocka_unit_test(test_relu_backward_nan),
        cmocka_unit_test(test_accumulate),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_scale_rows),
        cmocka_unit_test(test_gather_rows),
        cmocka_unit_test(test_scatter_rows),
        cmocka_unit_test(test_glorot),
        cmocka_unit_test(test_glorot_tiles),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_large_logits),
        cmocka_unit_test(test_first_largest_wins),
        cmocka_unit_test(test_no_label_is_ignored),
        cmocka_unit_test(test_softmax_nan),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adam_without_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
