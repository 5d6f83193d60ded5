#include "tests/kernels.h"

#include <float.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codelets/bfloat16.h"
#include "codelets/instructions.h"
#include "codelets/target.h"
#include "tests/sample.h"
#include "tests/unit.h"

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

int32_t *sl_random_values(int64_t rows, int64_t columns)
{
    const int64_t width = SL_TARGET_FIRST + columns;
    int32_t *target = calloc((size_t)(rows * width) + 1, sizeof *target);
    assert_non_null(target);
    for (int64_t r = 0; r < rows; r++) {
        target[width * r + SL_TARGET_LABEL] = sl_random_below(8) ? 0 : -1;
        target[width * r + SL_TARGET_SPLIT] = (int32_t)sl_random_below(4);
        for (int64_t j = 0; j < columns; j++) {
            const int64_t kind = sl_random_below(8);
            const float value = kind == 0 ? NAN : (float)(kind % 2);
            memcpy(target + width * r + SL_TARGET_FIRST + j, &value, sizeof value);
        }
    }
    return target;
}

float *sl_positive(int64_t count)
{
    float *array = calloc((size_t)count + 1, sizeof *array);
    assert_non_null(array);
    for (int64_t k = 0; k < count; k++)
        array[k] = fabsf(sl_random_value(SL_REALS)) + 0.1f;
    return array;
}

struct sl_dropout sl_some_dropout(double p)
{
    return sl_dropout_make(p, sl_rng_key(7, SL_RNG_DROPOUT, 3, 1));
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

struct sl_guarded sl_guarded_vertices(int64_t rows)
{
    struct sl_guarded m = sl_guarded_empty(1, rows, SL_EDGE, NAN);
    for (int64_t r = 0; r < rows; r++)
        ((uint32_t *)(void *)m.at)[r] = (uint32_t)sl_random_bits();
    return m;
}

/* ---- Dense operands in bfloat16 ---- */

struct sl_narrowed sl_narrowed_empty(int64_t rows, int64_t cols, int64_t spare)
{
    const int64_t ld = cols + spare, floats = (rows * ld + 1) / 2;
    struct sl_narrowed n = {.words = sl_guarded_empty(1, floats, SL_EDGE, SL_CANARY)};
    char *end = (char *)(n.words.at + floats);
    n.rows = sl_rows_of_type(end - rows * ld * 2, ld, SL_BFLOAT16);
    n.count = rows;
    n.cols = cols;
    for (int64_t i = 0; i < rows * ld; i++)
        ((uint16_t *)n.rows.data)[i] = 0x7FFF; /* NaN */
    return n;
}

struct sl_narrowed sl_narrowed_of(struct sl_guarded *from, int64_t spare)
{
    struct sl_narrowed n = sl_narrowed_empty(from->rows, from->cols, spare);
    for (int64_t r = 0; r < from->rows; r++)
        for (int64_t j = 0; j < from->cols; j++) {
            *sl_narrowed_at(&n, r, j) = sl_narrow(*sl_element(from, r, j));
            *sl_element(from, r, j) = sl_widen(*sl_narrowed_at(&n, r, j));
        }
    return n;
}

int64_t sl_some_spare(void)
{
    static const int64_t spares[] = {0, 3, 16, 33};
    return spares[sl_random_below(SL_COUNT(spares))];
}

/* ---- Sparse operands ---- */

static void *at_end(const struct sl_guard *g, size_t bytes)
{
    return g->map + g->bytes - bytes;
}

static struct sl_guarded_sparse sparse_empty(int64_t rows, int64_t cols, int64_t block_cols,
                                             bool wide, int64_t nnz, bool has_values)
{
    block_cols = block_cols ? block_cols : cols;
    const struct sl_sparse view = {
        .rows = rows,
        .cols = cols,
        .block_cols = block_cols,
        .blocks = cols ? (cols + block_cols - 1) / block_cols : 0,
        .narrow = !wide && block_cols <= 65536,
    };
    const size_t row_bytes = (size_t)(view.blocks * rows + 1) * sizeof(uint32_t),
                 col_bytes = (size_t)nnz * (view.narrow ? sizeof(uint16_t) : sizeof(uint32_t)),
                 value_bytes = (size_t)nnz * sizeof(float);
    struct sl_guarded_sparse s = {
        .view = view,
        .row_ptr = guard_make(row_bytes),
        .col = guard_make(col_bytes),
        .value = guard_make(value_bytes),
    };
    s.view.row_ptr = at_end(&s.row_ptr, row_bytes);
    s.view.col = at_end(&s.col, col_bytes);
    s.view.value = has_values ? at_end(&s.value, value_bytes) : NULL;
    return s;
}

/* Entries that are sorted by row and, within a row, by column. */
static struct sl_guarded_sparse sparse_of(const struct sl_entry *entries, int64_t count,
                                          int64_t rows, int64_t cols, int64_t block_cols, bool wide,
                                          bool has_values)
{
    struct sl_guarded_sparse s = sparse_empty(rows, cols, block_cols, wide, count, has_values);
    uint32_t *row_ptr = (uint32_t *)s.view.row_ptr, nnz = 0;
    for (int64_t b = 0; b < s.view.blocks; b++) {
        const int64_t first = b * s.view.block_cols, last = first + s.view.block_cols;
        const struct sl_entry *entry = entries;
        for (int64_t r = 0; r < rows; r++) {
            for (; entry < entries + count && entry->row == r; entry++) {
                if (entry->col < first || entry->col >= last)
                    continue;
                if (s.view.narrow)
                    ((uint16_t *)s.view.col)[nnz] = (uint16_t)(entry->col - first);
                else
                    ((uint32_t *)s.view.col)[nnz] = (uint32_t)(entry->col - first);
                if (has_values)
                    ((float *)s.view.value)[nnz] = entry->value;
                nnz++;
            }
            row_ptr[b * rows + r + 1] = nnz;
        }
    }
    assert_int_equal(nnz, count);
    return s;
}

struct sl_guarded_sparse sl_guarded_sparse_random(int64_t rows, int64_t cols, int64_t degree,
                                                  int64_t hub, bool has_values, enum sl_kind kind)
{
    struct sl_entry *entries = calloc((size_t)(rows * cols) + 1, sizeof *entries);
    assert_non_null(entries);
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            if (r == hub || (r % 5 != 3 && sl_random_below(cols) < degree))
                entries[count++] = (struct sl_entry){r, c, sl_random_value(kind)};
    const struct sl_guarded_sparse s = sparse_of(entries, count, rows, cols, 0, false, has_values);
    free(entries);
    return s;
}

struct sl_entry *sl_sparse_entries(const struct sl_sparse *a, int64_t *count)
{
    *count = a->blocks ? a->row_ptr[a->blocks * a->rows] : 0;
    struct sl_entry *entries = calloc((size_t)*count + 1, sizeof *entries);
    assert_non_null(entries);
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++)
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < a->row_ptr[b * a->rows + r + 1]; e++)
                entries[e] = (struct sl_entry){r, b * a->block_cols + sl_sparse_col(a, e),
                                               a->value ? a->value[e] : 1.0f};
    return entries;
}

struct sl_guarded_sparse sl_guarded_sparse_cut(const struct sl_sparse *from, int64_t first,
                                               int64_t last, int64_t block_cols, bool wide)
{
    int64_t count, kept = 0;
    struct sl_entry *entries = sl_sparse_entries(from, &count);
    assert_true(from->blocks <= 1); /* so that entries are sorted by row */
    for (int64_t e = 0; e < count; e++)
        if (entries[e].col >= first && entries[e].col < last) {
            entries[kept] = entries[e];
            entries[kept++].col -= first;
        }
    const struct sl_guarded_sparse s =
        sparse_of(entries, kept, from->rows, last - first, block_cols, wide, from->value);
    free(entries);
    return s;
}

struct sl_guarded_sparse sl_guarded_sparse_transpose(const struct sl_sparse *from,
                                                     int64_t block_cols)
{
    int64_t count, kept = 0;
    struct sl_entry *entries = sl_sparse_entries(from, &count);
    struct sl_entry *turned = calloc((size_t)count + 1, sizeof *turned);
    assert_non_null(turned);
    assert_true(from->blocks <= 1);
    for (int64_t c = 0; c < from->cols; c++)
        for (int64_t e = 0; e < count; e++)
            if (entries[e].col == c)
                turned[kept++] = (struct sl_entry){c, entries[e].row, entries[e].value};
    const struct sl_guarded_sparse s =
        sparse_of(turned, count, from->cols, from->rows, block_cols, false, from->value);
    free(entries);
    free(turned);
    return s;
}

void sl_guarded_sparse_free(struct sl_guarded_sparse *s)
{
    guard_free(&s->row_ptr);
    guard_free(&s->col);
    guard_free(&s->value);
}

/* ---- Epilogues ---- */

int sl_some_steps(void)
{
    const int steps = (int)sl_random_below(SL_STEPS_ALL + 1), elu = (int)sl_random_below(4);
    return steps | elu * SL_STEP_ELU;
}

/* Outputs of elu times `scale`: dropped, saturated, of 0, and any. */
static void set_elu_mask(struct sl_guarded *mask, float scale)
{
    for (int64_t i = 0; i < mask->rows * mask->cols; i++) {
        float *y = sl_element(mask, i / mask->cols, i % mask->cols);
        const double x = (double)sl_random_value(SL_REALS);
        const float some[] = {0.0f, -1.0f, FLT_MIN, (float)(x > 0.0 ? x : expm1(x))};
        const int64_t kind = sl_random_below(6);
        *y = scale * some[kind < 3 ? kind : 3];
    }
}

struct sl_guarded_epilogue sl_guarded_epilogue_random(int steps, int64_t rows, int64_t cols,
                                                      enum sl_layout layout)
{
    struct sl_guarded_epilogue e = {
        .view = {.scale = steps & SL_STEP_SCALE ? 1.375f : 1.0f,
                 .relu = (steps & SL_STEP_RELU) && !(steps & SL_STEP_ELU),
                 .elu = steps & SL_STEP_ELU},
        .before = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS),
        .factor = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS),
        .bias = sl_guarded_random(1, cols, SL_EDGE, NAN, SL_REALS),
        .mask = sl_guarded_random(rows, cols, layout, NAN, SL_INTEGERS),
        .vertex = sl_guarded_vertices(rows),
        .after = sl_guarded_random(1, rows, SL_EDGE, NAN, SL_REALS),
    };
    if (steps & SL_STEP_BEFORE)
        e.view.before = e.before.at;
    if (steps & SL_STEP_FACTOR)
        e.view.factor = e.factor.at;
    if (steps & SL_STEP_BIAS)
        e.view.bias = e.bias.at;
    if (steps & SL_STEP_ELU_BACK) {
        const float scale = 1.25f;
        set_elu_mask(&e.mask, scale);
        e.view.elu_back = 1.0f / scale;
        for (int64_t r = 0; r < rows; r++)
            e.after.at[r] = fabsf(e.after.at[r]);
        e.view.mask_scale = steps & SL_STEP_AFTER ? e.after.at : NULL;
    }
    if (steps & (SL_STEP_MASK | SL_STEP_ELU_BACK))
        e.view.mask = sl_rows_of(&e.mask);
    if (steps & SL_STEP_DROPOUT) {
        e.view.drop = sl_some_dropout(0.3);
        e.view.vertex = sl_vertices_of(&e.vertex);
    }
    if (steps & SL_STEP_AFTER)
        e.view.after = e.after.at;
    return e;
}

void sl_guarded_epilogue_free(struct sl_guarded_epilogue *e)
{
    sl_guarded_free(&e->before);
    sl_guarded_free(&e->factor);
    sl_guarded_free(&e->bias);
    sl_guarded_free(&e->mask);
    sl_guarded_free(&e->vertex);
    sl_guarded_free(&e->after);
}

/* A product by a factor that is itself rounded. */
static void naive_times(double factor, double *want, double *bound)
{
    *want *= factor;
    *bound = *bound * fabs(factor) + 2.0 * SL_UNIT * fabs(*want);
}

static bool is_masked(const struct sl_rows *mask, int64_t r, int64_t j)
{
    return mask->data && !(((const float *)mask->data)[r * mask->ld + j] > 0.0f);
}

/* The least normal number stands for 0. */
static void naive_elu(double *want, double *bound)
{
    *want = *want > 0.0 ? *want : expm1(*want);
    *want = *want == 0.0 ? (double)FLT_MIN : *want;
    *bound += 3.0 * SL_UNIT;
}

/* elu's slope is 1 where y > 0, and 1 + y below; 0 was dropped. */
static void naive_elu_back(const struct sl_epilogue *e, int64_t r, int64_t j, double *want,
                           double *bound)
{
    const double y = (double)((const float *)e->mask.data)[r * e->mask.ld + j];
    const double back = (double)e->elu_back * (e->mask_scale ? (double)e->mask_scale[r] : 1.0);
    const double slope = y > 0.0 ? 1.0 : y < 0.0 ? 1.0 + back * y : 0.0;
    *bound = *bound * fabs(slope) + (3.0 + 2.0 * fabs(back * y)) * SL_UNIT * fabs(*want);
    *want *= slope;
}

static void naive_element(const struct sl_epilogue *e, int64_t r, int64_t j, double *want,
                          double *bound)
{
    if (e->before || e->scale != 1.0f)
        naive_times((double)e->scale * (e->before ? (double)e->before[r] : 1.0), want, bound);
    if (e->factor)
        naive_times((double)e->factor[r], want, bound);
    if (e->bias) {
        *want += (double)e->bias[j];
        *bound += SL_UNIT * fabs(*want);
    }
    if (e->relu)
        *want = fmax(*want, 0.0);
    if (e->elu)
        naive_elu(want, bound);
    if (e->mask.data && e->elu_back > 0.0f)
        naive_elu_back(e, r, j, want, bound);
    else if (is_masked(&e->mask, r, j))
        *want = *bound = 0.0;
    if (e->drop.threshold)
        naive_times((double)sl_dropout_factor(&e->drop, e->vertex[r], (uint32_t)j), want, bound);
    if (e->after)
        naive_times((double)e->after[r], want, bound);
    *bound *= 1.0 + 8.0 * SL_UNIT; /* rounding of what was off by `bound` */
}

void sl_naive_epilogue(const struct sl_epilogue *e, int64_t rows, int64_t cols, double *want,
                       double *bound)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            naive_element(e, r, j, &want[r * cols + j], &bound[r * cols + j]);
}

/* ---- Shapes ---- */

const int64_t sl_row_counts[] = {0, 1, 5, 64, 129};
const int64_t sl_widths[] = {1, 7, 8, 15, 16, 17, 31, 32, 41, 48, 64, 100, 128, 256, 602};

void sl_each_shape(void (*check)(int64_t rows, int64_t cols, enum sl_layout layout))
{
    int64_t place = 1000 * (int64_t)sl_instructions_get();
    sl_random_seed(1);
    for (size_t i = 0; i < SL_COUNT(sl_row_counts); i++)
        for (size_t j = 0; j < SL_COUNT(sl_widths); j++)
            for (int layout = 0; layout < SL_LAYOUTS; layout++)
                if (sl_in_sample(place++))
                    check(sl_row_counts[i], sl_widths[j], (enum sl_layout)layout);
}

/* ---- Instruction sets ---- */

bool sl_next_level(int *level)
{
    const int best = (int)sl_instructions_best();
    if (*level > best)
        return false;
    if (*level && getenv("SL_TEST_LEVELS"))
        *level = best;
    sl_instructions_set((enum sl_instructions)(*level)++);
    return true;
}

bool sl_takes(int64_t terms)
{
    const char *most = getenv("SL_TEST_TERMS");
    return !most || terms <= atoll(most);
}

const char *sl_level_name(void)
{
    return sl_instructions_names[sl_instructions_get()];
}

void sl_each_shape_and_level(void (*check)(int64_t rows, int64_t cols, enum sl_layout layout))
{
    for (int level = 0; sl_next_level(&level);)
        sl_each_shape(check);
}

/* ---- Comparisons ---- */

bool sl_same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void expect_elements(const char *operation, const struct sl_guarded *got, const double *want,
                            const double *bound)
{
    for (int64_t r = 0; r < got->rows; r++)
        for (int64_t j = 0; j < got->cols; j++) {
            const double g = (double)*sl_element(got, r, j), w = want[r * got->cols + j];
            const double allowed = bound ? bound[r * got->cols + j] : 0.0;
            if (!(fabs(g - w) <= allowed))
                fail_msg("%s (%s): element (%lld, %lld) of a %lld x %lld %s matrix is %.9g, not "
                         "%.9g (within %.2g)",
                         operation, sl_level_name(), (long long)r, (long long)j,
                         (long long)got->rows, (long long)got->cols, layout_names[got->layout], g,
                         w, allowed);
        }
}

/* Nothing but the first `written` elements of each row. */
static void expect_kept(const char *operation, const struct sl_guarded *m, int64_t written)
{
    const float *all = (const float *)(const void *)m->memory.map;
    const int64_t count = (int64_t)(m->memory.bytes / sizeof(float)), first = m->at - all;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i - first;
        const bool inside = at >= 0 && at < m->rows * m->ld;
        if (inside && at % m->ld == 0 && written > 0)
            i += written - 1;
        else if (!sl_same_bits(all[i], m->pad))
            fail_msg("%s (%s): wrote outside a %lld x %lld %s matrix, at element %lld", operation,
                     sl_level_name(), (long long)m->rows, (long long)m->cols,
                     layout_names[m->layout], (long long)at);
    }
}

void sl_expect_padding_kept(const char *operation, const struct sl_guarded *m)
{
    expect_kept(operation, m, m->cols);
}

void sl_expect_vectors_only(const char *operation, const struct sl_guarded *m)
{
    const int64_t vectors = (m->cols + 15) / 16 * 16;
    expect_kept(operation, m, vectors <= m->ld ? vectors : m->cols);
}

void sl_expect(const char *operation, const struct sl_guarded *got, const double *want,
               const double *bound)
{
    expect_elements(operation, got, want, bound);
    sl_expect_padding_kept(operation, got);
}

void sl_expect_vectors(const char *operation, const struct sl_guarded *got, const double *want,
                       const double *bound)
{
    expect_elements(operation, got, want, bound);
    sl_expect_vectors_only(operation, got);
}

void sl_expect_same_bits(const char *operation, const struct sl_guarded *a,
                         const struct sl_guarded *b)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t j = 0; j < a->cols; j++)
            if (!sl_same_bits(*sl_element(a, r, j), *sl_element(b, r, j)))
                fail_msg("%s (%s): element (%lld, %lld) of %lld x %lld is %.9g %s, but %.9g %s",
                         operation, sl_level_name(), (long long)r, (long long)j, (long long)a->rows,
                         (long long)a->cols, (double)*sl_element(a, r, j), layout_names[a->layout],
                         (double)*sl_element(b, r, j), layout_names[b->layout]);
}
