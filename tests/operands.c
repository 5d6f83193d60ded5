#include "tests/operands.h"

#include <unistd.h>

#include "codelets/bfloat16.h"
#include "codelets/metrics.h"
#include "tests/running.h"
#include "tests/sample.h"
#include "tests/unit.h"

/* The operand of each task that is held; the number of those made for the next task. */
enum { NONE = -1 };
static int to_hold = NONE, made;

static size_t bytes_of(const struct sl_operand *o)
{
    return (size_t)(o->tile.rows * o->tile.ld) * o->tile.element_size;
}

static void *duplicate(const void *from, size_t bytes)
{
    void *to = malloc(bytes);
    assert_non_null(to);
    return memcpy(to, from, bytes);
}

/* A tile on `memory`, of which there are two copies. */
static void describe(struct sl_operand *o, int64_t rows, int64_t cols, int64_t ld, size_t size,
                     void *memory)
{
    sl_tile_describe(&sl_running, &o->tile, rows, cols, ld, size, 0, memory);
    o->held = made++ == to_hold;
    if (o->held)
        sl_tile_acquire(&sl_running, &o->tile, false);
}

struct sl_operand sl_operand_over(void *contents, int64_t rows, int64_t cols, int64_t ld,
                                  size_t size)
{
    const size_t bytes = (size_t)(rows * ld) * size;
    struct sl_operand o = {.copy = contents, .before = duplicate(contents, bytes)};
    describe(&o, rows, cols, ld, size, duplicate(contents, bytes));
    return o;
}

/* Finite numbers of either type. */
static void *random_of_type(int64_t rows, int64_t ld, enum sl_type type)
{
    uint16_t *contents = calloc((size_t)(rows * ld) + 1, sl_type_size(type));
    assert_non_null(contents);
    for (int64_t i = 0; i < rows * ld; i++)
        if (type == SL_FLOAT32)
            ((float *)(void *)contents)[i] = sl_random_value(SL_REALS);
        else
            contents[i] = sl_narrow(sl_random_value(SL_REALS));
    return contents;
}

static float *random_contents(int64_t rows, int64_t ld)
{
    float *contents = calloc((size_t)(rows * ld), sizeof *contents);
    assert_non_null(contents);
    for (int64_t i = 0; i < rows * ld; i++)
        contents[i] = sl_random_value(SL_REALS);
    return contents;
}

enum sl_type sl_some_type(void)
{
    return sl_random_below(2) ? SL_BFLOAT16 : SL_FLOAT32;
}

void sl_operand_matrix(struct sl_operand *all, int count, const int64_t *rows, int64_t cols,
                       enum sl_type type)
{
    const int64_t ld = cols + 3 * ((made + 1) % 4);
    int64_t total = 0;
    for (int t = 0; t < count; t++)
        total += rows[t];
    const size_t size = sl_type_size(type), bytes = (size_t)(total * ld) * size;
    char *copy = random_of_type(total, ld, type), *before = duplicate(copy, bytes),
         *memory = duplicate(copy, bytes);
    for (int t = 0; t < count; t++) {
        all[t] = (struct sl_operand){.copy = copy, .before = before, .part = t > 0};
        const size_t step = (size_t)(rows[t] * ld) * size;
        describe(&all[t], rows[t], cols, ld, size, memory);
        copy += step;
        before += step;
        memory += step;
    }
}

struct sl_operand sl_operand_reals_of_type(int64_t rows, int64_t cols, enum sl_type type)
{
    return sl_operand_apart(rows, cols, cols + 3 * ((made + 1) % 4), type);
}

struct sl_operand sl_operand_apart(int64_t rows, int64_t cols, int64_t ld, enum sl_type type)
{
    return sl_operand_over(random_of_type(rows, ld, type), rows, cols, ld, sl_type_size(type));
}

struct sl_operand sl_operand_reals(int64_t rows, int64_t cols)
{
    return sl_operand_reals_of_type(rows, cols, SL_FLOAT32);
}

struct sl_rows sl_copied_rows(const struct sl_operand *o)
{
    return sl_rows_of_type(o->copy, o->tile.ld,
                           o->tile.element_size == 2 ? SL_BFLOAT16 : SL_FLOAT32);
}

struct sl_operand sl_operand_scales(int64_t rows)
{
    const int64_t ld = rows + 5;
    float *contents = random_contents(SL_ROW_SCALES, ld);
    for (int64_t r = 0; r < rows; r++)
        ((uint32_t *)(void *)contents)[SL_ROW_VERTEX * ld + r] = (uint32_t)sl_random_bits();
    return sl_operand_over(contents, SL_ROW_SCALES, rows, ld, sizeof *contents);
}

struct sl_operand sl_operand_doubles(int64_t count, const double *values)
{
    return sl_operand_over(duplicate(values, (size_t)count * sizeof *values), 1, count, count,
                           sizeof *values);
}

struct sl_operand sl_operand_metrics(void)
{
    double values[SL_METRICS];
    for (int i = 0; i < SL_METRICS; i++)
        values[i] = (double)sl_random_value(SL_REALS);
    return sl_operand_doubles(SL_METRICS, values);
}

struct sl_operand sl_operand_blank_of_type(int64_t rows, int64_t cols, enum sl_type type)
{
    struct sl_operand o = sl_operand_reals_of_type(rows, cols, type);
    if (o.held || sl_random_below(2))
        return o;
    free(o.tile.memory);
    o.tile.memory = NULL;
    return o;
}

struct sl_operand sl_operand_blank(int64_t rows, int64_t cols)
{
    return sl_operand_blank_of_type(rows, cols, SL_FLOAT32);
}

struct sl_operand sl_operand_blank_metrics(void)
{
    struct sl_operand o = sl_operand_metrics();
    if (!o.held) {
        free(o.tile.memory);
        o.tile.memory = NULL;
    }
    memset(o.copy, 0, bytes_of(&o)); /* the metrics that no kernel writes */
    return o;
}

struct sl_operand sl_operand_packed(const struct sl_sparse *a, int span)
{
    const struct sl_sparse_shape shape = {
        .rows = a->rows,
        .cols = a->cols,
        .nnz = a->row_ptr[a->blocks * a->rows],
        .block_cols = a->block_cols,
        .has_values = a->value,
        .edge_features = a->edge_features,
    };
    const size_t bytes = sl_sparse_bytes(&shape), nnz = (size_t)shape.nnz;
    void *contents = calloc(1, bytes);
    assert_non_null(contents);
    const struct sl_sparse view = sl_sparse_view(contents, &shape);
    assert_int_equal(view.blocks, a->blocks);
    assert_int_equal(view.narrow, a->narrow);
    memcpy((void *)view.row_ptr, a->row_ptr,
           (size_t)(a->blocks * a->rows + 1) * sizeof *a->row_ptr);
    memcpy((void *)view.col, a->col, nnz * (a->narrow ? sizeof(uint16_t) : sizeof(uint32_t)));
    if (a->value)
        memcpy((void *)view.value, a->value, nnz * sizeof *a->value);
    if (a->edge)
        memcpy((void *)view.edge, a->edge, nnz * (size_t)a->edge_features * sizeof *a->edge);
    struct sl_operand o = sl_operand_over(contents, 1, (int64_t)bytes, (int64_t)bytes, 1);
    o.sparse.shape = shape;
    o.sparse.span = span;
    return o;
}

const float *sl_copied_scale(const struct sl_operand *scales, enum sl_row_scale scale)
{
    return scale == SL_ROW_NONE ? NULL : (const float *)scales->copy + scale * scales->tile.ld;
}

const uint32_t *sl_copied_vertices(const struct sl_operand *scales)
{
    return (const uint32_t *)(const void *)sl_copied_scale(scales, SL_ROW_VERTEX);
}

float *sl_copied_row(const struct sl_operand *o, int64_t r)
{
    return (float *)o->copy + r * o->tile.ld;
}

void sl_operand_copy(const struct sl_operand *x, struct sl_operand *y)
{
    for (int64_t r = 0; r < x->tile.rows; r++)
        memcpy(sl_copied_row(y, r), sl_copied_row(x, r), (size_t)x->tile.cols * sizeof(float));
}

/* ---- Comparison ---- */

/* Lets go of the operand; true if a task has changed it by then. */
static bool release(struct sl_operand *o)
{
    usleep(SL_TASK_PAUSE);
    const bool changed = memcmp(o->tile.memory, o->before, bytes_of(o)) != 0;
    sl_tile_release(&o->tile);
    return changed;
}

enum { ELEMENT_TEXT = 128 };

static bool is_number(size_t element_size)
{
    return element_size == sizeof(uint16_t) || element_size == sizeof(float) ||
           element_size == sizeof(double);
}

/* Element k, if it is a number. */
static double number(const void *memory, size_t element_size, size_t k)
{
    switch (element_size) {
    case sizeof(uint16_t):
        return (double)sl_widen(((const uint16_t *)memory)[k]);
    case sizeof(float):
        return (double)((const float *)memory)[k];
    case sizeof(double):
        return ((const double *)memory)[k];
    default:
        return NAN;
    }
}

/* A GPU makes other bits of the same buffers: sums in another order, and neighbours in bfloat16. A
 * NaN has other bits there. What pads rows stays where it is. The first element that is not alike
 * is named in `text`. */
static bool alike(const struct sl_operand *o, const void *got, char text[ELEMENT_TEXT])
{
    const size_t size = o->tile.element_size;
    const bool rounds = is_number(size) && !o->exact;
    const double unit = fmax(size == sizeof(uint16_t) ? 0x1p-7 : 1e-5, o->gpu_error);
    for (int64_t r = o->free_first; r < o->tile.rows - o->free_rows; r++)
        for (int64_t c = 0; c < o->tile.cols; c++) {
            const size_t k = (size_t)(r * o->tile.ld + c);
            const double x = number(got, size, k), y = number(o->copy, size, k);
            if (memcmp((const char *)got + k * size, (const char *)o->copy + k * size, size) == 0 ||
                (rounds && (fabs(x - y) <= unit * fmax(1.0, fabs(y)) || (isnan(x) && isnan(y)))))
                continue;
            snprintf(text, ELEMENT_TEXT, ": (%lld, %lld) is %.9g instead of %.9g, within %.2g",
                     (long long)r, (long long)c, x, y, unit);
            return false;
        }
    return true;
}

/* Matrices that the runtime allocated have anything between their rows. */
static bool same(const struct sl_operand *o, const void *got)
{
    if (o->tile.memory)
        return memcmp(got, o->copy, bytes_of(o)) == 0;
    const size_t size = o->tile.element_size, step = (size_t)o->tile.ld * size;
    for (int64_t r = 0; r < o->tile.rows; r++)
        if (memcmp((const char *)got + (size_t)r * step, (const char *)o->copy + (size_t)r * step,
                   (size_t)o->tile.cols * size) != 0)
            return false;
    return true;
}

static void compare(const char *operation, struct sl_operand *o, int i, int count)
{
    const void *got = sl_tile_acquire(&sl_running, &o->tile, false);
    char text[ELEMENT_TEXT] = "";
    const bool right = sl_running.process->gpus_only ? alike(o, got, text) : same(o, got);
    sl_tile_release(&o->tile);
    if (!right)
        fail_msg("%s: operand %d of %d, %lld x %lld, is not as the kernel leaves it%s", operation,
                 i + 1, count, (long long)o->tile.rows, (long long)o->tile.cols, text);
}

void sl_settle_all(const char *operation, int count, struct sl_operand *const *all)
{
    made = 0;
    for (int i = 0; i < count; i++)
        if (all[i]->held && release(all[i]))
            fail_msg("%s: operand %d of %d was written while it was held for reading", operation,
                     i + 1, count);
    for (int i = 0; i < count; i++)
        compare(operation, all[i], i, count);
    for (int i = 0; i < count; i++)
        sl_tile_forget(&all[i]->tile);
    for (int i = 0; i < count; i++) {
        if (all[i]->part)
            continue;
        free(all[i]->tile.memory);
        free(all[i]->copy);
        free(all[i]->before);
    }
}

void sl_settle(const char *operation, ...)
{
    struct sl_operand *all[SL_MOST_OPERANDS + 1];
    int count = 0;
    va_list arguments;
    va_start(arguments, operation);
    while ((all[count] = va_arg(arguments, struct sl_operand *)))
        count++;
    va_end(arguments);
    sl_settle_all(operation, count, all);
}

/* ---- Operations ---- */

void sl_operation_run(void **state)
{
    static const int64_t rows[] = {1, 5, 64, 129}, cols[] = {1, 7, 16, 41, 100, 602};
    const struct sl_operation *operation = *state;
    sl_random_seed(1);
    to_hold = NONE, made = 0;
    for (size_t i = 0; i < SL_COUNT(rows); i++)
        for (size_t j = 0; j < SL_COUNT(cols); j++)
            if (sl_in_sample((int64_t)(i * SL_COUNT(cols) + j)))
                operation->check(rows[i], cols[j]);
    for (to_hold = 0; to_hold < SL_MOST_OPERANDS; to_hold++)
        operation->check(5, 7);
}

int sl_operations_start(void **state)
{
    if (sl_running_device() == SL_DEVICE_AUTO)
        setenv("STARPU_NCUDA", "0", 1);
    return sl_running_start(state);
}
