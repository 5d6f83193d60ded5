/* Every submission of codelets/submit.h as a task on tiles: what comes out is, bit by bit, what the
 * kernel makes of copies of the same buffers. The kernels have tests of their own
 * (test_kernels_*.c).
 *
 * All bytes of all tiles of a task are compared: inputs, padding and rows that are not the task's
 * must stay as they were. Each tile has another row length. Of the tiles that a task overwrites
 * about half have no memory at first, and StarPU stops the program if they are read. With the last
 * shape one tile at a time is held for reading while the task is submitted: if it changes
 * meanwhile, the codelet does not say that it is written.
 *
 * To test a new submission: make its operands with reals and blank, submit, call the kernel on the
 * copies, and give all operands to `settle`; add a line to `operations`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <cmocka.h>

#include "codelets/bfloat16.h"
#include "codelets/submit.h"
#include "core/memory.h"
#include "core/split.h"
#include "tests/kernels.h"
#include "tests/running.h"

/* ---- Operands ---- */

struct operand {
    union {
        struct sl_tile tile;
        struct sl_sparse_tile sparse; /* starts with its tile */
    };
    void *copy;   // (tile.rows, tile.ld): for the kernel
    void *before; // (tile.rows, tile.ld): as it was
    bool held;    /* for reading, since before the task */
    bool part;    /* of a matrix; the first tile's memory is that of all */
};

/* The operand of each task that is held; the number of those made for the next task. */
enum { NONE = -1 };
static int to_hold = NONE, made;

static size_t bytes_of(const struct operand *o)
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
static void describe(struct operand *o, int64_t rows, int64_t cols, int64_t ld, size_t size,
                     void *memory)
{
    sl_tile_describe(&sl_running, &o->tile, rows, cols, ld, size, 0, memory);
    o->held = made++ == to_hold;
    if (o->held)
        sl_tile_acquire(&sl_running, &o->tile, false);
}

/* A tile that starts with `contents` (rows, ld), which it takes. */
static struct operand over(void *contents, int64_t rows, int64_t cols, int64_t ld, size_t size)
{
    const size_t bytes = (size_t)(rows * ld) * size;
    struct operand o = {.copy = contents, .before = duplicate(contents, bytes)};
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

static enum sl_type some_type(void)
{
    return sl_random_below(2) ? SL_BFLOAT16 : SL_FLOAT32;
}

/* `count` tiles of one matrix, the t-th with rows[t] rows; their copies are one matrix, too. */
static void matrix_of_type(struct operand *all, int count, const int64_t *rows, int64_t cols,
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
        all[t] = (struct operand){.copy = copy, .before = before, .part = t > 0};
        const size_t step = (size_t)(rows[t] * ld) * size;
        describe(&all[t], rows[t], cols, ld, size, memory);
        copy += step;
        before += step;
        memory += step;
    }
}

static struct operand reals_of_type(int64_t rows, int64_t cols, enum sl_type type)
{
    const int64_t ld = cols + 3 * ((made + 1) % 4);
    return over(random_of_type(rows, ld, type), rows, cols, ld, sl_type_size(type));
}

static struct operand reals(int64_t rows, int64_t cols)
{
    return reals_of_type(rows, cols, SL_FLOAT32);
}

/* The copy of an operand of either type. */
static struct sl_rows copied_rows(const struct operand *o)
{
    return sl_rows_of_type(o->copy, o->tile.ld,
                           o->tile.element_size == 2 ? SL_BFLOAT16 : SL_FLOAT32);
}

/* What is known of the rows of a tile. */
static struct operand some_facts(int64_t rows)
{
    const int64_t ld = rows + 5;
    float *contents = random_contents(SL_ROW_FACTS, ld);
    for (int64_t r = 0; r < rows; r++)
        ((uint32_t *)(void *)contents)[SL_ROW_VERTEX * ld + r] = (uint32_t)sl_random_bits();
    return over(contents, SL_ROW_FACTS, rows, ld, sizeof *contents);
}

/* One row. */
static struct operand doubles(int64_t count, const double *values)
{
    return over(duplicate(values, (size_t)count * sizeof *values), 1, count, count, sizeof *values);
}

static struct operand random_metrics(void)
{
    double values[SL_METRICS];
    for (int i = 0; i < SL_METRICS; i++)
        values[i] = (double)sl_random_value(SL_REALS);
    return doubles(SL_METRICS, values);
}

/* A tile that a task overwrites. */
static struct operand blank_of_type(int64_t rows, int64_t cols, enum sl_type type)
{
    struct operand o = reals_of_type(rows, cols, type);
    if (o.held || sl_random_below(2))
        return o;
    free(o.tile.memory);
    o.tile.memory = NULL;
    o.tile.ld = cols; /* as the runtime will allocate it */
    return o;
}

static struct operand blank(int64_t rows, int64_t cols)
{
    return blank_of_type(rows, cols, SL_FLOAT32);
}

static struct operand blank_metrics(void)
{
    struct operand o = random_metrics();
    if (!o.held) {
        free(o.tile.memory);
        o.tile.memory = NULL;
    }
    memset(o.copy, 0, bytes_of(&o)); /* the metrics that no kernel writes */
    return o;
}

/* A as a sparse tile that meets `span` dense ones; its copy is not used, since kernels can read A
 * itself. */
static struct operand packed(const struct sl_sparse *a, int span)
{
    const struct sl_sparse_shape shape = {
        .rows = a->rows,
        .cols = a->cols,
        .nnz = a->row_ptr[a->blocks * a->rows],
        .block_cols = a->block_cols,
        .has_values = a->value,
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
    struct operand o = over(contents, 1, (int64_t)bytes, (int64_t)bytes, 1);
    o.sparse.shape = shape;
    o.sparse.span = span;
    return o;
}

/* A fact of the rows, for a kernel; NULL for SL_ROW_NONE. */
static const float *copied_fact(const struct operand *facts, enum sl_row_fact fact)
{
    return fact == SL_ROW_NONE ? NULL : (const float *)facts->copy + fact * facts->tile.ld;
}

static const uint32_t *copied_vertices(const struct operand *facts)
{
    return (const uint32_t *)(const void *)copied_fact(facts, SL_ROW_VERTEX);
}

static float *copied_row(const struct operand *o, int64_t r)
{
    return (float *)o->copy + r * o->tile.ld;
}

/* ---- Comparison ---- */

enum {
    MOST_OPERANDS = 2 * SL_SPMM_PARTS + 5,
    PAUSE = 2000 /* microseconds in which a worker starts a task */
};

/* Lets go of the operand; true if a task has changed it by then. */
static bool release(struct operand *o)
{
    usleep(PAUSE);
    const bool changed = memcmp(o->tile.memory, o->before, bytes_of(o)) != 0;
    sl_tile_release(&o->tile);
    return changed;
}

static void compare(const char *operation, struct operand *o, int i, int count)
{
    const void *got = sl_tile_acquire(&sl_running, &o->tile, false);
    const bool same = memcmp(got, o->copy, bytes_of(o)) == 0;
    sl_tile_release(&o->tile);
    if (!same)
        fail_msg("%s: operand %d of %d, %lld x %lld, is not as the kernel leaves it", operation,
                 i + 1, count, (long long)o->tile.rows, (long long)o->tile.cols);
}

/* After the task every tile is as its copy. Frees the operands. */
static void settle_all(const char *operation, int count, struct operand *const *all)
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

/* All that follow, up to NULL. */
static void settle(const char *operation, ...)
{
    struct operand *all[MOST_OPERANDS + 1];
    int count = 0;
    va_list arguments;
    va_start(arguments, operation);
    while ((all[count] = va_arg(arguments, struct operand *)))
        count++;
    va_end(arguments);
    settle_all(operation, count, all);
}

/* ---- Epilogues ---- */

/* On tiles, and for the kernel on their copies. */
struct epilogue {
    struct operand facts, parameters, mask;
    struct sl_epilogue_tiles tiles;
    struct sl_epilogue kernel;
};

/* `steps` of tests/kernels.h. Made in place: its tiles have addresses. */
static void make_epilogue(struct epilogue *e, int steps, int64_t rows, int64_t cols)
{
    *e = (struct epilogue){
        .facts = some_facts(rows),
        .parameters = reals(4, cols + (steps & 3)),
        .mask = reals_of_type(rows, cols, some_type()),
        .tiles = SL_EPILOGUE_NONE,
        .kernel = {.scale = steps & SL_STEP_SCALE ? 1.375f : 1.0f, .relu = steps & SL_STEP_RELU},
    };
    e->tiles.scale = e->kernel.scale;
    e->tiles.relu = e->kernel.relu;
    if (steps & SL_STEP_BEFORE)
        e->tiles.before = SL_ROW_LEFT + (steps % 3);
    if (steps & SL_STEP_AFTER)
        e->tiles.after = SL_ROW_INVERSE_RIGHT - (steps % 3);
    if (steps & SL_STEP_DROPOUT) {
        e->kernel.drop = sl_some_dropout(0.4);
        e->kernel.drop.column0 = (uint32_t)sl_random_below(9);
        e->tiles.drop = e->kernel.drop;
    }
    if (steps & (SL_STEP_BEFORE | SL_STEP_AFTER | SL_STEP_DROPOUT | SL_STEP_RELU))
        e->tiles.facts = &e->facts.tile;
    if (steps & SL_STEP_BIAS) {
        e->tiles.parameters = &e->parameters.tile;
        e->tiles.bias_row = 2;
        e->tiles.bias_col = steps & 3;
        e->kernel.bias = copied_row(&e->parameters, 2) + (steps & 3);
    }
    if (steps & SL_STEP_MASK) {
        e->tiles.mask = &e->mask.tile;
        e->kernel.mask = copied_rows(&e->mask);
    }
    e->kernel.before = copied_fact(&e->facts, e->tiles.before);
    e->kernel.after = copied_fact(&e->facts, e->tiles.after);
    e->kernel.vertex = copied_vertices(&e->facts);
}

/* None, each alone, all, and any. */
static int some_steps(int trial)
{
    return trial == 0   ? 0
           : trial <= 7 ? 1 << (trial - 1)
           : trial == 8 ? SL_STEPS_ALL
                        : (int)sl_random_below(SL_STEPS_ALL + 1);
}

static void check_epilogue(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < 12; trial++) {
        struct epilogue e;
        make_epilogue(&e, some_steps(trial), rows, cols);
        const bool apart = sl_random_below(2);
        struct operand sum = reals(rows, cols);
        struct operand z = apart ? blank_of_type(rows, cols, some_type()) : reals(rows, cols);
        const struct sl_rows from = copied_rows(&sum), to = apart ? copied_rows(&z) : from;
        sl_submit_epilogue(&sl_running, &e.tiles, &sum.tile, apart ? &z.tile : &sum.tile);
        sl_kernel_epilogue(rows, cols, &e.kernel, &from, &to);
        settle("epilogue", &e.facts, &e.parameters, &e.mask, &sum, &z, NULL);
    }
    for (int trial = 0; trial < 12; trial++) { /* Z is its own mask */
        struct epilogue e;
        make_epilogue(&e, some_steps(trial) & ~SL_STEP_MASK, rows, cols);
        struct operand sum = reals(rows, cols), z = reals_of_type(rows, cols, some_type());
        const struct sl_rows from = copied_rows(&sum), to = copied_rows(&z);
        e.tiles.mask = &z.tile;
        e.kernel.mask = to;
        sl_submit_epilogue(&sl_running, &e.tiles, &sum.tile, &z.tile);
        sl_kernel_epilogue(rows, cols, &e.kernel, &from, &to);
        settle("epilogue", &e.facts, &e.parameters, &e.mask, &sum, &z, NULL);
    }
}

/* ---- Products ---- */

/* With entries and empty rows, or without entries. */
static struct sl_guarded_sparse some_sparse(int64_t rows, int64_t cols, bool entries, bool values)
{
    static const int64_t block_sizes[] = {0, 1, 7, 16};
    struct sl_guarded_sparse all = sl_guarded_sparse_random(
        rows, cols, entries ? 6 : 0, entries ? rows / 2 : -1, values, SL_REALS);
    const struct sl_guarded_sparse cut =
        sl_guarded_sparse_cut(&all.view, 0, cols, block_sizes[sl_random_below(4)], false);
    sl_guarded_sparse_free(&all);
    return cut;
}

/* The sparse tiles of a product, and the dense ones that each of them meets: those of one part are
 * neighbours in one matrix. */
enum { MOST_PARTS = SL_SPMM_PARTS, MOST_SPAN = 4 };

static const struct cut {
    int parts, span[MOST_PARTS];
} cuts[] = {{1, {1}},
            {1, {3}},
            {2, {2, 1}},
            {4, {1, 4, 3, 2}},
            {MOST_PARTS, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}};

struct product {
    const struct cut *cut;
    struct sl_guarded_sparse sparse[MOST_PARTS];
    struct operand a[MOST_PARTS], h[MOST_PARTS][MOST_SPAN];
    struct sl_sparse views[MOST_PARTS]; /* for the kernel, as is the next one */
    struct sl_rows rows[MOST_PARTS];
    struct sl_sparse_tile *a_tiles[MOST_PARTS];
    struct sl_tile *h_tiles[MOST_PARTS * MOST_SPAN];
};

static void make_product(struct product *p, const struct cut *cut, int64_t rows, int64_t width,
                         enum sl_type type, int option)
{
    static const int64_t heights[MOST_SPAN] = {5, 1, 13, 8};
    int tiles = 0;
    p->cut = cut;
    for (int i = 0; i < cut->parts; i++) {
        int64_t cols = 0;
        for (int t = 0; t < cut->span[i]; t++)
            cols += heights[t];
        p->sparse[i] = some_sparse(rows, cols, (option + i) & 1, option & 2);
        p->views[i] = p->sparse[i].view;
        p->a[i] = packed(&p->views[i], cut->span[i]);
        p->a_tiles[i] = &p->a[i].sparse;
        matrix_of_type(p->h[i], cut->span[i], heights, width, type);
        p->rows[i] = copied_rows(&p->h[i][0]);
        for (int t = 0; t < cut->span[i]; t++)
            p->h_tiles[tiles++] = &p->h[i][t].tile;
    }
}

static void settle_product(struct product *p, struct epilogue *e, struct operand *sum,
                           struct operand *z)
{
    struct operand *all[MOST_OPERANDS];
    int count = 0;
    for (int i = 0; i < p->cut->parts; i++) {
        all[count++] = &p->a[i];
        for (int t = 0; t < p->cut->span[i]; t++)
            all[count++] = &p->h[i][t];
    }
    all[count++] = &e->facts;
    all[count++] = &e->parameters;
    all[count++] = &e->mask;
    all[count++] = sum;
    all[count++] = z;
    settle_all("spmm", count, all);
    for (int i = 0; i < p->cut->parts; i++)
        sl_guarded_sparse_free(&p->sparse[i]);
}

/* Without an epilogue, and with each step of one; of both types, and sums apart where Z is narrow.
 */
static void check_spmm(int64_t rows, int64_t width)
{
    for (size_t c = 0; c < SL_COUNT(cuts); c++)
        for (int trial = -1; trial < 10; trial++) {
            const bool accumulate = sl_random_below(2);
            struct product p;
            struct epilogue e;
            const enum sl_type type = some_type();
            make_product(&p, &cuts[c], rows, width, some_type(), (int)sl_random_below(4));
            make_epilogue(&e, trial < 0 ? 0 : some_steps(trial), rows, width);
            struct operand sum = reals(rows, width), z = type == SL_FLOAT32 && accumulate
                                                             ? reals(rows, width)
                                                             : blank_of_type(rows, width, type);
            const struct sl_rows out = copied_rows(&z);
            sl_submit_spmm(&sl_running, &(struct sl_spmm_tiles){
                                            .parts = cuts[c].parts,
                                            .a = p.a_tiles,
                                            .h = p.h_tiles,
                                            .accumulate = accumulate,
                                            .epilogue = trial < 0 ? NULL : &e.tiles,
                                            .sum = type == SL_FLOAT32 ? NULL : &sum.tile,
                                            .z = &z.tile,
                                        });
            sl_kernel_spmm(cuts[c].parts, p.views, p.rows, width, accumulate,
                           trial < 0 ? NULL : &e.kernel, sum.copy, sum.tile.ld, &out);
            settle_product(&p, &e, &sum, &z);
        }
}

/* Weights and their gradient have the bias as a further row. */
static void check_features(int64_t rows, int64_t width)
{
    const struct sl_dropout some = sl_some_dropout(0.4);
    enum { INNER = 37 };
    for (int option = 0; option < 16; option++) {
        const bool transposed = option & 1;
        const struct sl_dropout *drop = option & 2 ? &some : NULL;
        struct sl_guarded_sparse s = some_sparse(transposed ? INNER : rows,
                                                 transposed ? rows : INNER, option & 4, option & 8);
        const int64_t row = sl_random_below(3), col = sl_random_below(3);
        struct operand x = packed(&s.view, 1), facts = some_facts(s.view.rows),
                       h = reals(INNER + 1 + row, width + col);
        struct operand z =
            sl_random_below(2) ? reals(rows + transposed, width) : blank(rows, width);
        sl_submit_features(&sl_running, &(struct sl_features_tiles){
                                            .transposed = transposed,
                                            .x = &x.sparse,
                                            .drop = drop,
                                            .facts = &facts.tile,
                                            .h = &h.tile,
                                            .h_row = row,
                                            .h_col = col,
                                            .z = &z.tile,
                                        });
        sl_kernel_features(transposed, &s.view, drop, copied_vertices(&facts), width,
                           copied_row(&h, row) + col, h.tile.ld, false, z.copy, z.tile.ld);
        settle("features", &x, &facts, &h, &z, NULL);
        sl_guarded_sparse_free(&s);
    }
}

static void check_expand(int64_t rows, int64_t cols)
{
    const struct sl_dropout some = sl_some_dropout(0.4);
    for (int option = 0; option < 8; option++) {
        const struct sl_dropout *drop = option & 1 ? &some : NULL;
        struct sl_guarded_sparse s = some_sparse(rows, cols, option & 2, option & 4);
        struct operand x = packed(&s.view, 1), facts = some_facts(rows),
                       z = blank_of_type(rows, cols, some_type());
        const struct sl_rows out = copied_rows(&z);
        sl_submit_expand(&sl_running, &x.sparse, drop, &facts.tile, &z.tile);
        sl_kernel_expand(&s.view, drop, copied_vertices(&facts), &out);
        settle("expand", &x, &facts, &z, NULL);
        sl_guarded_sparse_free(&s);
    }
}

/* Without an epilogue, and, where there can be one, with each step; the mask apart, or C itself. */
static void check_gemm(int64_t m, int64_t n)
{
    static const int64_t inner[] = {1, 7, 41, 129};
    for (int option = 0; option < 64; option++) {
        const bool ta = option & 1, tb = option & 2, accumulate = option & 4, further = option & 8;
        const int64_t k = inner[sl_random_below(SL_COUNT(inner))];
        const int64_t row = sl_random_below(3), col = sl_random_below(3);
        const bool plain = ta || accumulate, finishes = !plain && option >= 16,
                   own_mask = finishes && option >= 48;
        const enum sl_type type = plain ? SL_FLOAT32 : some_type();
        struct epilogue e;
        make_epilogue(&e, finishes ? some_steps(option % 12) & ~(own_mask ? SL_STEP_MASK : 0) : 0,
                      m, n);
        struct operand a = reals_of_type((ta ? k : m) + further, ta ? m : k, some_type()),
                       b = reals((tb ? n : k) + further + row, (tb ? k : n) + col),
                       c = accumulate || further || own_mask ? reals_of_type(m + further, n, type)
                                                             : blank_of_type(m, n, type);
        const struct sl_rows from = copied_rows(&a), to = copied_rows(&c);
        if (own_mask) {
            e.tiles.mask = &c.tile;
            e.kernel.mask = to;
        }
        sl_submit_gemm(&sl_running, &(struct sl_gemm_tiles){
                                        .transpose_a = ta,
                                        .transpose_b = tb,
                                        .m = m,
                                        .n = n,
                                        .k = k,
                                        .a = &a.tile,
                                        .b = &b.tile,
                                        .b_row = row,
                                        .b_col = col,
                                        .accumulate = accumulate,
                                        .epilogue = finishes ? &e.tiles : NULL,
                                        .c = &c.tile,
                                    });
        sl_kernel_gemm(ta, tb, m, n, k, &from, copied_row(&b, row) + col, b.tile.ld, accumulate,
                       finishes ? &e.kernel : NULL, &to);
        settle("gemm", &a, &b, &e.facts, &e.parameters, &e.mask, &c, NULL);
    }
}

/* ---- Element by element ---- */

static void check_bias(int64_t rows, int64_t cols)
{
    struct operand parameters = reals(4, cols), z = reals(rows, cols);
    sl_submit_bias(&sl_running, &parameters.tile, 2, &z.tile);
    sl_kernel_bias(rows, cols, copied_row(&parameters, 2), z.copy, z.tile.ld);
    settle("bias", &parameters, &z, NULL);
}

static void check_bias_gradient(int64_t rows, int64_t cols)
{
    for (int fact = SL_ROW_NONE; fact < SL_ROW_FACTS; fact++) {
        if (fact == SL_ROW_VERTEX)
            continue;
        struct operand facts = some_facts(rows), g = reals(rows, cols), gradient = reals(4, cols);
        sl_submit_bias_gradient(&sl_running, &facts.tile, (enum sl_row_fact)fact, &g.tile, 2,
                                &gradient.tile);
        sl_kernel_bias_gradient(rows, cols, copied_fact(&facts, (enum sl_row_fact)fact), g.copy,
                                g.tile.ld, copied_row(&gradient, 2));
        settle("bias gradient", &facts, &g, &gradient, NULL);
    }
}

static void check_relu(int64_t rows, int64_t cols)
{
    struct operand z = reals(rows, cols);
    sl_submit_relu(&sl_running, &z.tile);
    sl_kernel_relu(rows, cols, z.copy, z.tile.ld);
    settle("relu", &z, NULL);
}

static void check_relu_backward(int64_t rows, int64_t cols)
{
    struct operand h = reals(rows, cols), g = reals(rows, cols);
    sl_submit_relu_backward(&sl_running, 1.25f, &h.tile, &g.tile);
    sl_kernel_relu_backward(rows, cols, 1.25f, h.copy, h.tile.ld, g.copy, g.tile.ld);
    settle("relu backward", &h, &g, NULL);
}

/* Numbers of columns have 32 bits. */
static void check_dropout(int64_t rows, int64_t cols)
{
    const struct sl_dropout drop = sl_some_dropout(0.4);
    static const int64_t columns[] = {0, 4099, 3999999999};
    for (size_t c = 0; c < SL_COUNT(columns); c++) {
        const enum sl_type type = some_type();
        struct operand facts = some_facts(rows), x = reals_of_type(rows, cols, type),
                       y = blank_of_type(rows, cols, type);
        const struct sl_rows from = copied_rows(&x), to = copied_rows(&y);
        sl_submit_dropout(&sl_running, &drop, &facts.tile, columns[c], &x.tile, &y.tile);
        sl_kernel_dropout(rows, cols, &drop, copied_vertices(&facts), (uint32_t)columns[c], &from,
                          &to);
        settle("dropout", &facts, &x, &y, NULL);
    }
}

static void check_accumulate(int64_t rows, int64_t cols)
{
    struct operand x = reals(rows, cols), y = reals(rows, cols);
    sl_submit_accumulate(&sl_running, &x.tile, &y.tile);
    sl_kernel_accumulate(rows, cols, x.copy, x.tile.ld, y.copy, y.tile.ld);
    settle("accumulate", &x, &y, NULL);
}

static void check_fill(int64_t rows, int64_t cols)
{
    struct operand w = blank(rows, cols);
    sl_submit_fill(&sl_running, 2.5f, &w.tile);
    sl_kernel_fill(rows, cols, 2.5f, w.copy, w.tile.ld);
    settle("fill", &w, NULL);
}

static void check_glorot(int64_t rows, int64_t cols)
{
    const uint64_t key = sl_rng_key(11, SL_RNG_INIT, 0, 2);
    for (int64_t further = 0; further < 3; further++) {
        struct operand w = blank(rows + further, cols);
        sl_submit_glorot(&sl_running, rows, 0.37f, key, &w.tile);
        sl_kernel_glorot(rows, cols, 0.37f, key, 0, 0, w.copy, w.tile.ld);
        sl_kernel_fill(further, cols, 0.0f, copied_row(&w, rows), w.tile.ld);
        settle("glorot", &w, NULL);
    }
}

static void copy_rows(const struct operand *x, struct operand *y)
{
    for (int64_t r = 0; r < x->tile.rows; r++)
        memcpy(copied_row(y, r), copied_row(x, r), (size_t)x->tile.cols * sizeof(float));
}

static void check_copy(int64_t rows, int64_t cols)
{
    struct operand x = reals(rows, cols), y = blank(rows, cols);
    sl_submit_copy(&sl_running, &x.tile, &y.tile);
    copy_rows(&x, &y);
    settle("copy", &x, &y, NULL);
}

/* All of Y, or part of it; of X, all or part. */
static void check_paste(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 8; option++) {
        const enum sl_type type = some_type();
        const int64_t x_row = option & 1, x_col = option & 1 ? 3 : 0;
        const int64_t y_row = option & 2 ? 2 : 0, y_col = option & 2 ? 1 : 0;
        struct operand x = reals_of_type(rows + x_row, cols + x_col, type);
        struct operand y = option & 2 ? reals_of_type(rows + y_row, cols + y_col + 1, type)
                                      : blank_of_type(rows, cols, type);
        const struct sl_rows from = copied_rows(&x), to = copied_rows(&y),
                             part = sl_rows_at(&from, x_row, x_col),
                             where = sl_rows_at(&to, y_row, y_col);
        sl_submit_paste(&sl_running, &(struct sl_paste_tiles){
                                         .x = &x.tile,
                                         .x_row = x_row,
                                         .x_col = x_col,
                                         .y = &y.tile,
                                         .y_row = y_row,
                                         .y_col = y_col,
                                     });
        sl_kernel_paste(rows, cols, &part, &where);
        settle("paste", &x, &y, NULL);
    }
}

/* ---- Row by row ---- */

static void check_scale_rows(int64_t rows, int64_t cols)
{
    struct operand s = reals(1, rows), x = reals(rows, cols), y = blank(rows, cols);
    sl_submit_scale_rows(&sl_running, &s.tile, &x.tile, &y.tile);
    sl_kernel_scale_rows(rows, cols, s.copy, x.copy, x.tile.ld, y.copy, y.tile.ld);
    settle("scale rows", &s, &x, &y, NULL);
}

/* Some rows of each of three tiles, of one of them none. */
static void check_pack_rows(int64_t rows, int64_t cols)
{
    enum { TILES = 3 };
    const enum sl_type type = some_type();
    const int64_t first[] = {0, rows / 3, rows / 3, rows};
    uint32_t *numbers = sl_row_numbers(rows, 3, false); /* no tile has fewer rows */
    struct operand index = over(numbers, 1, rows, rows, sizeof *numbers), x[TILES];
    for (int t = 0; t < TILES; t++)
        x[t] = reals_of_type(3 + t, cols, type);
    struct operand y = blank_of_type(rows, cols, type);
    sl_submit_pack_rows(&sl_running,
                        &(struct sl_pack_tiles){
                            .index = &index.tile,
                            .count = TILES,
                            .x = (struct sl_tile *[]){&x[0].tile, &x[1].tile, &x[2].tile},
                            .first = first,
                            .y = &y.tile,
                        });
    const struct sl_rows all = copied_rows(&y);
    for (int t = 0; t < TILES; t++) {
        const struct sl_rows from = copied_rows(&x[t]), to = sl_rows_at(&all, first[t], 0);
        sl_kernel_pack_rows(first[t + 1] - first[t], cols, (const uint32_t *)index.copy + first[t],
                            &from, &to);
    }
    settle("pack rows", &index, &x[0], &x[1], &x[2], &y, NULL);
}

static void check_unpack_rows(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 4; option++) {
        const enum sl_type type = some_type();
        const int64_t before = option & 1 ? 2 : 0; /* rows of the list, and after */
        uint32_t *numbers = sl_row_numbers(rows + 2 * before, rows + 5, true);
        struct operand index =
            over(numbers, 1, rows + 2 * before, rows + 2 * before, sizeof *numbers);
        struct operand x = reals_of_type(rows + 2 * before, cols, type),
                       y = reals_of_type(rows + 5, cols, type);
        const struct sl_rows all = copied_rows(&x), from = sl_rows_at(&all, before, 0),
                             to = copied_rows(&y);
        sl_submit_unpack_rows(&sl_running, &(struct sl_unpack_tiles){
                                               .index = &index.tile,
                                               .x = &x.tile,
                                               .first = before,
                                               .rows = rows,
                                               .accumulate = option & 2,
                                               .y = &y.tile,
                                           });
        sl_kernel_unpack_rows(rows, cols, (const uint32_t *)index.copy + before, option & 2, &from,
                              &to);
        settle("unpack rows", &index, &x, &y, NULL);
    }
}

/* ---- Loss ---- */

static struct operand targets(int64_t rows, int64_t classes)
{
    return over(sl_random_targets(rows, classes), rows, 2, 2, sizeof(int32_t));
}

static void check_softmax_loss_by(int64_t rows, int64_t classes, enum sl_row_fact factor)
{
    enum { TRAIN_COUNT = 140 };
    struct operand facts = some_facts(rows), target = targets(rows, classes),
                   metrics = blank_metrics(), z = reals(rows, classes);
    double *sums = metrics.copy;
    sl_submit_softmax_loss(&sl_running, TRAIN_COUNT, &facts.tile, factor, &target.tile,
                           &metrics.tile, &z.tile);
    sl_kernel_softmax_loss(rows, classes, 1.0f / (float)TRAIN_COUNT, copied_fact(&facts, factor),
                           target.copy, z.copy, z.tile.ld, &sums[SL_METRIC_LOSS + SL_SPLIT_TRAIN],
                           &sums[SL_METRIC_CORRECT + SL_SPLIT_TRAIN], z.copy, z.tile.ld);
    settle("softmax loss", &facts, &target, &metrics, &z, NULL);
}

static void check_softmax_loss(int64_t rows, int64_t classes)
{
    check_softmax_loss_by(rows, classes, SL_ROW_NONE);
    check_softmax_loss_by(rows, classes, SL_ROW_LEFT);
    check_softmax_loss_by(rows, classes, SL_ROW_INVERSE_RIGHT);
}

static void check_accuracy(int64_t rows, int64_t classes)
{
    struct operand target = targets(rows, classes), z = reals(rows, classes),
                   metrics = blank_metrics();
    double *sums = metrics.copy;
    sl_submit_accuracy(&sl_running, &target.tile, &z.tile, &metrics.tile);
    sl_kernel_accuracy(rows, classes, target.copy, z.copy, z.tile.ld, sums + SL_METRIC_CORRECT,
                       sums + SL_METRIC_LOSS);
    settle("accuracy", &target, &z, &metrics, NULL);
}

static void check_metrics_add(int64_t rows, int64_t cols)
{
    (void)rows, (void)cols;
    struct operand x = random_metrics(), y = random_metrics();
    sl_submit_metrics_add(&sl_running, &x.tile, &y.tile);
    for (int i = 0; i < SL_METRICS; i++)
        ((double *)y.copy)[i] += ((double *)x.copy)[i];
    settle("metrics add", &x, &y, NULL);
}

/* ---- Optimizer ---- */

/* Epoch 5 of a run that does not end, ends later, with this epoch, or has ended. */
static void check_optimizer(int64_t rows, int64_t cols)
{
    static const double ends[] = {0.0, 6.0, 5.0, 4.0};
    static const enum sl_optimizer methods[] = {SL_ADAM, SL_ADAMW, SL_SGD};
    struct sl_optimizer_step step = {.rate = 0.01f,
                                     .decay = 0.1f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .correction1 = 0.4f,
                                     .correction2 = 0.005f};
    for (size_t i = 0; i < SL_COUNT(methods) * SL_COUNT(ends); i++) {
        const double last = ends[i / SL_COUNT(methods)];
        step.method = methods[i % SL_COUNT(methods)];
        struct operand end = doubles(1, &last), g = reals(rows, cols), m = reals(rows, cols),
                       v = reals(rows, cols), w = reals(rows, cols);
        sl_submit_optimizer(&sl_running, &step, 5, &end.tile, &g.tile, &m.tile, &v.tile, &w.tile);
        for (int64_t r = 0; r < rows && last != 4.0; r++)
            sl_kernel_optimizer(&step, cols, copied_row(&g, r), copied_row(&w, r),
                                copied_row(&m, r), copied_row(&v, r));
        settle("optimizer", &end, &g, &m, &v, &w, NULL);
    }
}

/* ---- What leaves the task graph ---- */

enum { EPOCHS = 6, VALUE = 3, WRITTEN = 7 /* metrics that the callback reads and writes */ };

struct journal {
    atomic_int calls;
    int epochs[EPOCHS];
    double values[EPOCHS];
    float afters[EPOCHS];
    const struct operand *after; // (EPOCHS)
};

/* Asks to stop in epochs 3 and 5. */
static bool note(void *context, int epoch, double *values)
{
    struct journal *journal = context;
    const int call = journal->calls;
    journal->epochs[call] = epoch;
    journal->values[call] = values[VALUE];
    journal->afters[call] = *(const float *)journal->after[epoch - 1].tile.memory;
    values[WRITTEN] = -epoch;
    journal->calls++;
    return epoch == 3 || epoch == 5;
}

/* The first epoch's metrics and the last one's `after` come late. Each epoch has tiles of its own,
 * so that nothing but `end` orders the calls. */
static void check_record(double end_before, double end_after)
{
    struct operand one = random_metrics(), metrics[EPOCHS], after[EPOCHS],
                   end = doubles(1, &end_before);
    struct journal journal = {.after = after};
    for (int e = 0; e < EPOCHS; e++) {
        metrics[e] = random_metrics();
        after[e] = reals(1, 1);
    }
    sl_tile_acquire(&sl_running, &metrics[0].tile, true);
    sl_tile_acquire(&sl_running, &after[EPOCHS - 1].tile, true);
    for (int e = 0; e < EPOCHS; e++) {
        sl_submit_metrics_add(&sl_running, &one.tile, &metrics[e].tile);
        sl_submit_fill(&sl_running, (float)e, &after[e].tile);
        sl_submit_record(&sl_running, note, &journal, e + 1, &metrics[e].tile, &after[e].tile,
                         &end.tile);
    }
    usleep(PAUSE);
    const int too_early = journal.calls;
    sl_tile_release(&metrics[0].tile);
    usleep(PAUSE);
    sl_tile_release(&after[EPOCHS - 1].tile);
    sl_runtime_wait(&sl_running);
    assert_int_equal(too_early, 0);
    assert_int_equal(journal.calls, EPOCHS);
    for (int e = 0; e < EPOCHS; e++) {
        double *values = metrics[e].copy;
        for (int i = 0; i < SL_METRICS; i++)
            values[i] += ((double *)one.copy)[i];
        values[WRITTEN] = -(e + 1);
        *(float *)after[e].copy = (float)e;
        assert_int_equal(journal.epochs[e], e + 1);
        assert_true(journal.values[e] == values[VALUE]);
        assert_true(journal.afters[e] == (float)e);
        settle("record", &metrics[e], &after[e], NULL);
    }
    *(double *)end.copy = end_after;
    settle("record", &one, &end, NULL);
}

static void test_record(void **state)
{
    (void)state;
    check_record(0.0, 3.0);
    check_record(2.0, 2.0); /* has ended before */
}

/* Patience 2, on validation's correct count; all other metrics are larger. */
static void check_keep_best(int64_t rows, int64_t cols)
{
    (void)rows, (void)cols;
    static const struct {
        int epoch;
        double value;
        double best[2], end, best_after[2], end_after;
    } cases[] = {
        {4, 0.6, {0.5, 3.0}, 0.0, {0.6, 4.0}, 0.0},  /* better */
        {5, 0.7, {0.5, 3.0}, 0.0, {0.7, 5.0}, 0.0},  /* at the last moment */
        {4, 0.5, {0.5, 3.0}, 0.0, {0.5, 3.0}, 0.0},  /* only as good */
        {5, 0.5, {0.5, 3.0}, 0.0, {0.5, 3.0}, 5.0},  /* for two epochs */
        {9, 0.4, {0.5, 3.0}, 0.0, {0.5, 3.0}, 9.0},  /* for more */
        {6, 0.9, {0.5, 3.0}, 5.0, {0.5, 3.0}, 5.0},  /* better, after the end */
        {9, 0.1, {0.5, 3.0}, 5.0, {0.5, 3.0}, 5.0},  /* worse, after the end */
        {1, 0.0, {-1.0, 0.0}, 0.0, {0.0, 1.0}, 0.0}, /* the first epoch */
    };
    const int index = SL_METRIC_CORRECT + SL_SPLIT_VAL;
    for (size_t i = 0; i < SL_COUNT(cases); i++) {
        double values[SL_METRICS];
        for (int j = 0; j < SL_METRICS; j++)
            values[j] = j == index ? cases[i].value : 9.0;
        struct operand metrics = doubles(SL_METRICS, values), best = doubles(2, cases[i].best),
                       end = doubles(1, &cases[i].end);
        sl_submit_keep_best(&sl_running, index, cases[i].epoch, 2, &metrics.tile, &best.tile,
                            &end.tile);
        memcpy(best.copy, cases[i].best_after, sizeof cases[i].best_after);
        *(double *)end.copy = cases[i].end_after;
        settle("keep best", &metrics, &best, &end, NULL);
    }
}

static void check_copy_if_best(int64_t rows, int64_t cols)
{
    for (int epoch = 3; epoch < 6; epoch++) {
        struct operand best = doubles(2, (const double[]){0.7, 4.0}), w = reals(rows, cols),
                       copy = reals(rows, cols);
        sl_submit_copy_if_best(&sl_running, epoch, &best.tile, &w.tile, &copy.tile);
        if (epoch == 4)
            copy_rows(&w, &copy);
        settle("copy if best", &best, &w, &copy, NULL);
    }
}

/* ---- All of them ---- */

static struct operation {
    const char *name;
    void (*check)(int64_t rows, int64_t cols);
} operations[] = {
    {"spmm", check_spmm},
    {"features", check_features},
    {"epilogue", check_epilogue},
    {"expand", check_expand},
    {"gemm", check_gemm},
    {"bias", check_bias},
    {"bias gradient", check_bias_gradient},
    {"relu", check_relu},
    {"relu backward", check_relu_backward},
    {"dropout", check_dropout},
    {"accumulate", check_accumulate},
    {"fill", check_fill},
    {"glorot", check_glorot},
    {"copy", check_copy},
    {"paste", check_paste},
    {"scale rows", check_scale_rows},
    {"pack rows", check_pack_rows},
    {"unpack rows", check_unpack_rows},
    {"softmax loss", check_softmax_loss},
    {"accuracy", check_accuracy},
    {"metrics add", check_metrics_add},
    {"optimizer", check_optimizer},
    {"keep best", check_keep_best},
    {"copy if best", check_copy_if_best},
};

static void each_shape(void **state)
{
    static const int64_t rows[] = {1, 5, 64, 129}, cols[] = {1, 7, 16, 41, 100, 602};
    const struct operation *operation = *state;
    sl_random_seed(1);
    to_hold = NONE, made = 0;
    for (size_t i = 0; i < SL_COUNT(rows); i++)
        for (size_t j = 0; j < SL_COUNT(cols); j++)
            operation->check(rows[i], cols[j]);
    for (to_hold = 0; to_hold < MOST_OPERANDS; to_hold++)
        operation->check(5, 7);
}

/* Every page of what was asked for is there afterwards, still zero, and none beyond the huge page
 * in which it ends. */
static void test_touch(void **state)
{
    enum { PAGE = 4096, PAGES = 5000, ALL = 8192 };
    const size_t bytes = PAGES * (size_t)PAGE - 100, all = ALL * (size_t)PAGE;
    unsigned char resident[ALL];
    unsigned char *memory = sl_memory_alloc(all);
    (void)state;
    assert_non_null(memory);
    assert_int_equal(mincore(memory, all, resident), 0);
    assert_int_equal(resident[0] & 1, 0);
    sl_runtime_touch(&sl_running, memory, bytes);
    assert_int_equal(mincore(memory, all, resident), 0);
    for (int page = 0; page < PAGES; page++)
        assert_int_equal(resident[page] & 1, 1);
    for (int page = (PAGES / 512 + 1) * 512; page < ALL; page++)
        assert_int_equal(resident[page] & 1, 0);
    for (size_t at = 0; at < bytes; at++)
        if (memory[at])
            fail_msg("byte %zu is %d", at, memory[at]);
    sl_memory_free(memory, all);
}

/* On CPU workers only: those of a GPU need not give the same bits. */
static int start(void **state)
{
    setenv("STARPU_NCUDA", "0", 1);
    return sl_running_start(state);
}

int main(void)
{
    enum { OTHERS = 2 };
    struct CMUnitTest tests[SL_COUNT(operations) + OTHERS] = {cmocka_unit_test(test_record),
                                                              cmocka_unit_test(test_touch)};
    for (size_t i = 0; i < SL_COUNT(operations); i++)
        tests[i + OTHERS] = (struct CMUnitTest){
            .name = operations[i].name, .test_func = each_shape, .initial_state = &operations[i]};
    return cmocka_run_group_tests(tests, start, sl_running_stop);
}
