#include "tests/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Numbers ---- */

static uint64_t random_state = 1;

void sl_random_seed(uint64_t seed)
{
    random_state = seed;
}

uint64_t sl_random_bits(void)
{
    random_state += 0x9E3779B97F4A7C15u;
    uint64_t x = random_state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

int64_t sl_random_below(int64_t bound)
{
    return (int64_t)(sl_random_bits() % (uint64_t)bound);
}

float sl_random_value(enum sl_kind kind)
{
    if (kind == SL_INTEGERS)
        return (float)(sl_random_below(9) - 4);
    const double magnitude = 0.5 + (double)(sl_random_bits() >> 11) * 0x1p-53;
    return (float)(sl_random_bits() & 1 ? magnitude : -magnitude);
}

uint32_t *sl_row_numbers(int64_t count, int64_t bound, bool unique)
{
    uint32_t *index = calloc((size_t)(count > bound ? count : bound) + 1, sizeof *index);
    assert_non_null(index);
    for (int64_t r = 0; r < (unique ? bound : count); r++)
        index[r] = (uint32_t)(unique ? r : sl_random_below(bound));
    for (int64_t r = 0; unique && r < count; r++) {
        const int64_t with = r + sl_random_below(bound - r);
        const uint32_t swap = index[r];
        index[r] = index[with];
        index[with] = swap;
    }
    return index;
}

int32_t *sl_random_targets(int64_t rows, int64_t classes)
{
    int32_t *target = calloc((size_t)rows * 2 + 1, sizeof *target);
    assert_non_null(target);
    for (int64_t r = 0; r < rows; r++) {
        target[2 * r] = (int32_t)(sl_random_below(classes + 1) - 1);
        target[2 * r + 1] = (int32_t)sl_random_below(4);
    }
    return target;
}

struct sl_sparse_dropout sl_some_dropout(double p)
{
    return (struct sl_sparse_dropout){sl_dropout_make(p, sl_rng_key(7, SL_RNG_DROPOUT, 3, 1)),
                                      1000003, 4099};
}

double *sl_doubles(int64_t count)
{
    double *array = calloc((size_t)count + 1, sizeof *array);
    assert_non_null(array);
    return array;
}

/* ---- Dense operands ---- */

static struct sl_guard guard_make(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t usable = (bytes + 128 + page - 1) / page * page; /* room to shift the start */
    void *map =
        mmap(NULL, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect((char *)map + usable, page, PROT_NONE), 0);
    return (struct sl_guard){map, usable};
}

static void guard_free(struct sl_guard *g)
{
    munmap(g->map, g->bytes + (size_t)sysconf(_SC_PAGESIZE));
}

static const char *const layout_names[] = {"tight", "padded", "loose", "edge"};

enum sl_layout sl_other_layout(enum sl_layout layout)
{
    return (enum sl_layout)((layout + 1) % SL_LAYOUTS);
}

struct sl_guarded sl_guarded_empty(int64_t rows, int64_t cols, enum sl_layout layout, float pad)
{
    struct sl_guarded m = {.rows = rows, .cols = cols, .ld = cols, .layout = layout, .pad = pad};
    if (layout == SL_PADDED)
        m.ld = (cols / 16 + 1) * 16;
    else if (layout == SL_LOOSE)
        m.ld = cols + 3;
    const size_t bytes = (size_t)(rows * m.ld) * sizeof(float);
    m.memory = guard_make(bytes);
    float *all = (float *)(void *)m.memory.map;
    for (size_t i = 0; i < m.memory.bytes / sizeof(float); i++)
        all[i] = pad;
    size_t start = m.memory.bytes - bytes;
    if (layout == SL_TIGHT || layout == SL_PADDED)
        start = start / 64 * 64;
    else if (layout == SL_LOOSE)
        start = (start - sizeof(float)) / 64 * 64 + sizeof(float);
    m.at = (float *)(void *)(m.memory.map + start);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            *sl_element(&m, r, j) = NAN;
    return m;
}

struct sl_guarded sl_guarded_random(int64_t rows, int64_t cols, enum sl_layout layout, float pad,
                                    enum sl_kind kind)
{
    struct sl_guarded m = sl_guarded_empty(rows, cols, layout, pad);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            *sl_element(&m, r, j) = sl_random_value(kind);
    return m;
}

struct sl_guarded sl_guarded_copy(const struct sl_guarded *from, enum sl_layout layout, float pad)
{
    struct sl_guarded m = sl_guarded_empty(from->rows, from->cols, layout, pad);
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < m.cols; j++)
            *sl_element(&m, r, j) = *sl_element(from, r, j);
    return m;
}

void sl_guarded_free(struct sl_guarded *m)
{
    guard_free(&m->memory);
}

/* ---- Sparse operands ---- */

static void *at_end(const struct sl_guard *g, size_t bytes)
{
    return g->map + g->bytes - bytes;
}

struct sl_guarded_sparse sl_guarded_sparse_random(int64_t rows, int64_t cols, int64_t degree,
                                                  int64_t hub, bool has_values, enum sl_kind kind)
{
    const size_t most = (size_t)(rows * cols);
    uint32_t *row_ptr = calloc((size_t)rows + 1, sizeof *row_ptr),
             *col = calloc(most + 1, sizeof *col);
    assert_true(row_ptr && col);
    uint32_t nnz = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++)
            if (r == hub || (r % 5 != 3 && sl_random_below(cols) < degree))
                col[nnz++] = (uint32_t)c;
        row_ptr[r + 1] = nnz;
    }
    const size_t entry_bytes = nnz * sizeof(uint32_t),
                 row_bytes = ((size_t)rows + 1) * sizeof(uint32_t);
    struct sl_guarded_sparse s = {
        .view = {.rows = rows, .cols = cols},
        .row_ptr = guard_make(row_bytes),
        .col = guard_make(entry_bytes),
        .value = guard_make(entry_bytes),
    };
    s.view.row_ptr = memcpy(at_end(&s.row_ptr, row_bytes), row_ptr, row_bytes);
    s.view.col = memcpy(at_end(&s.col, entry_bytes), col, entry_bytes);
    float *value = at_end(&s.value, entry_bytes);
    for (uint32_t e = 0; e < nnz; e++)
        value[e] = sl_random_value(kind);
    s.view.value = has_values ? value : NULL;
    free(row_ptr);
    free(col);
    return s;
}

void sl_guarded_sparse_free(struct sl_guarded_sparse *s)
{
    guard_free(&s->row_ptr);
    guard_free(&s->col);
    guard_free(&s->value);
}

/* ---- Shapes ---- */

const int64_t sl_row_counts[] = {0, 1, 5, 64, 129};
const int64_t sl_widths[] = {1, 7, 8, 15, 16, 17, 31, 32, 41, 48, 64, 100, 128, 256, 602};

void sl_each_shape(void (*check)(int64_t rows, int64_t cols, enum sl_layout layout))
{
    sl_random_seed(1);
    for (size_t i = 0; i < SL_COUNT(sl_row_counts); i++)
        for (size_t j = 0; j < SL_COUNT(sl_widths); j++)
            for (int layout = 0; layout < SL_LAYOUTS; layout++)
                check(sl_row_counts[i], sl_widths[j], (enum sl_layout)layout);
}

/* ---- Comparisons ---- */

bool sl_same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

void sl_expect(const char *operation, const struct sl_guarded *got, const double *want,
               const double *bound)
{
    for (int64_t r = 0; r < got->rows; r++)
        for (int64_t j = 0; j < got->cols; j++) {
            const double g = (double)*sl_element(got, r, j), w = want[r * got->cols + j];
            const double allowed = bound ? bound[r * got->cols + j] : 0.0;
            if (!(fabs(g - w) <= allowed))
                fail_msg("%s: element (%lld, %lld) of a %lld x %lld %s matrix is %.9g, not %.9g "
                         "(within %.2g)",
                         operation, (long long)r, (long long)j, (long long)got->rows,
                         (long long)got->cols, layout_names[got->layout], g, w, allowed);
        }
    sl_expect_padding_kept(operation, got);
}

void sl_expect_padding_kept(const char *operation, const struct sl_guarded *m)
{
    const float *all = (const float *)(const void *)m->memory.map;
    const int64_t count = (int64_t)(m->memory.bytes / sizeof(float)), first = m->at - all;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i - first;
        const bool inside = at >= 0 && at < m->rows * m->ld;
        if (inside && at % m->ld == 0 && m->cols > 0)
            i += m->cols - 1;
        else if (!sl_same_bits(all[i], m->pad))
            fail_msg("%s: wrote outside a %lld x %lld %s matrix, at element %lld", operation,
                     (long long)m->rows, (long long)m->cols, layout_names[m->layout],
                     (long long)at);
    }
}

void sl_expect_same_bits(const char *operation, const struct sl_guarded *a,
                         const struct sl_guarded *b)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t j = 0; j < a->cols; j++)
            if (!sl_same_bits(*sl_element(a, r, j), *sl_element(b, r, j)))
                fail_msg("%s: element (%lld, %lld) of %lld x %lld depends on the layout: %.9g %s, "
                         "%.9g %s",
                         operation, (long long)r, (long long)j, (long long)a->rows,
                         (long long)a->cols, (double)*sl_element(a, r, j), layout_names[a->layout],
                         (double)*sl_element(b, r, j), layout_names[b->layout]);
}
