#include "bench/machine_work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/loops.h"
#include "codelets/features.h"
#include "codelets/gather.h"
#include "codelets/gemm.h"
#include "codelets/kept.h"
#include "core/error.h"
#include "core/memory.h"

enum {
    FEATURE_ROWS = 4096,
    FEATURES = 1024,
    PER_ROW = SL_FEATURE_ENTRIES / FEATURE_ROWS, /* entries of a row */
};

/* Operands of a thread: its tall product, and its sparse features. */
struct sl_machine_operands {
    _Alignas(64) float *a, *b, *c; // (rows, 256), (256, 64), (rows, 64)
    float *h, *z;                  // (FEATURES, 64), (FEATURE_ROWS, 64)
    uint32_t *row_ptr;             // (FEATURE_ROWS + 1)
    uint16_t *col;                 // (FEATURE_ROWS, PER_ROW)
    bool has_features;
    float sink; /* receives sums, so that loops are not optimised away */
};

/* ---- Streams and dense products ---- */

void sl_work_reference(const struct sl_machine_task *task, int index)
{
    sl_reference_work(&task->on->reference, task->kind, index);
}

void sl_work_tall(const struct sl_machine_task *task, int index)
{
    const struct sl_machine_operands *o = &task->on->operands[index];
    const struct sl_rows a = sl_float_rows(o->a, SL_TALL_K), b = sl_float_rows(o->b, SL_TALL_N),
                         c = sl_float_rows(o->c, SL_TALL_N);
    sl_kernel_gemm(&(struct sl_gemm){
        .m = task->on->tall_rows, .n = SL_TALL_N, .k = SL_TALL_K, .a = a, .b = b, .c = c});
}

/* ---- Sparse features ---- */

static struct sl_sparse features_of(const struct sl_machine_operands *o)
{
    return (struct sl_sparse){
        .rows = FEATURE_ROWS,
        .cols = FEATURES,
        .block_cols = FEATURES,
        .blocks = 1,
        .narrow = true,
        .row_ptr = o->row_ptr,
        .col = o->col,
    };
}

/* Multiply sparse features, and their transpose. */
void sl_work_features(const struct sl_machine_task *task, int index)
{
    const struct sl_machine_operands *o = &task->on->operands[index];
    const struct sl_sparse x = features_of(o);
    struct sl_features features = {
        .x = &x,
        .width = SL_TALL_N,
        .h = sl_float_rows(o->h, SL_TALL_N),
        .z = sl_float_rows(o->z, SL_TALL_N),
    };
    sl_kernel_features(&features);
    features.transposed = true;
    features.h = sl_float_rows(o->z, SL_TALL_N);
    features.z = sl_float_rows(o->h, SL_TALL_N);
    sl_kernel_features(&features);
}

void sl_work_draws(const struct sl_machine_task *task, int index)
{
    struct sl_machine_operands *o = &task->on->operands[index];
    const struct sl_sparse x = features_of(o);
    const struct sl_dropout half = sl_dropout_make(0.5, 1);
    struct sl_kept_walk walk = sl_kept_walk(&x, 0, &half, o->row_ptr, 0, x.rows);
    struct sl_kept batch;
    while (sl_kept_next(&walk, &batch))
        o->sink += batch.value[0];
}

static bool make_features(struct sl_machine_operands *o)
{
    o->h = sl_memory_alloc(FEATURES * SL_TALL_N * sizeof *o->h);
    o->z = sl_memory_alloc(FEATURE_ROWS * SL_TALL_N * sizeof *o->z);
    o->row_ptr = malloc((FEATURE_ROWS + 1) * sizeof *o->row_ptr);
    o->col = malloc(SL_FEATURE_ENTRIES * sizeof *o->col);
    if (!o->h || !o->z || !o->row_ptr || !o->col)
        return false;
    memset(o->h, 0, FEATURES * SL_TALL_N * sizeof *o->h);
    for (uint32_t r = 0; r <= FEATURE_ROWS; r++)
        o->row_ptr[r] = r * PER_ROW;
    for (uint32_t e = 0; e < SL_FEATURE_ENTRIES;
         e++) /* one of 16 columns, other ones in other rows */
        o->col[e] = (uint16_t)(e % PER_ROW * (FEATURES / PER_ROW) + e / PER_ROW * 7 % 16);
    return true;
}

static void free_features(struct sl_machine_operands *o)
{
    sl_memory_free(o->h, FEATURES * SL_TALL_N * sizeof *o->h);
    sl_memory_free(o->z, FEATURE_ROWS * SL_TALL_N * sizeof *o->z);
    free(o->row_ptr);
    free(o->col);
}

/* ---- Random rows ---- */

int64_t sl_machine_gathered_rows(const struct sl_machine_work *work, int64_t width)
{
    return 1 + (int64_t)(work->reference.bytes / 4 / sizeof(float)) / width / work->threads;
}

void sl_work_gather(const struct sl_machine_task *task, int index)
{
    struct sl_machine_work *on = task->on;
    const float *table = task->pages == SL_HUGE_PAGES ? on->reference.array[0] : on->table;
    const size_t bytes =
        task->table && task->table < on->reference.bytes ? task->table : on->reference.bytes;
    const int64_t rows = (int64_t)(bytes / sizeof(float)) / task->width;
    float total;
    sl_loop_gather(table, rows, task->width, sl_machine_gathered_rows(on, task->width),
                   task->prefetch, (uint64_t)(index + 1) * 1000003u + (uint64_t)task->times,
                   &total);
    on->operands[index].sink += total;
}

/* ---- Memory ---- */

/* Return anonymous memory without huge pages, whatever the system's default. */
static float *map_small(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static float *new_matrix(int64_t rows, int64_t cols)
{
    float *matrix = sl_memory_alloc((size_t)(rows * cols) * sizeof(float));
    if (matrix)
        sl_reference_fill(matrix, rows * cols, 0);
    return matrix;
}

/* Allocate a thread's matrices, and touch its part of the table. */
static void touch(void *context, int index, int threads)
{
    struct sl_machine_work *work = context;
    const int64_t rows = work->tall_rows;
    const int64_t count = (int64_t)(work->reference.bytes / sizeof(float));
    const int64_t first = count * index / threads, last = count * (index + 1) / threads;
    sl_reference_fill(work->table + first, last - first, index);
    work->operands[index] = (struct sl_machine_operands){
        .a = new_matrix(rows, SL_TALL_K),
        .b = new_matrix(SL_TALL_K, SL_TALL_N),
        .c = new_matrix(rows, SL_TALL_N),
    };
    work->operands[index].has_features = make_features(&work->operands[index]);
}

int sl_machine_work_create(struct sl_machine_work *work, size_t bytes, int64_t gemm_size,
                           int64_t rows)
{
    int code = sl_team_create(&work->team);
    if (code)
        return code;
    work->threads = sl_team_size(work->team);
    work->tall_rows = (rows + work->threads - 1) / work->threads;
    work->operands = aligned_alloc(64, (size_t)work->threads * sizeof *work->operands);
    if (work->operands)
        memset(work->operands, 0, (size_t)work->threads * sizeof *work->operands);
    code = sl_reference_create(&work->reference, work->team, bytes, gemm_size);
    work->table = code ? NULL : map_small(bytes);
    if (!code && (!work->table || !work->operands))
        code = sl_error(SL_ERR_SYSTEM, "no memory for a fourth array of %zu MiB", bytes >> 20);
    if (code)
        return code;
    sl_team_run(work->team, work->threads, touch, work);
    for (int t = 0; t < work->threads; t++)
        if (!work->operands[t].a || !work->operands[t].b || !work->operands[t].c ||
            !work->operands[t].has_features)
            return sl_error(SL_ERR_SYSTEM, "no memory for the products of %d threads",
                            work->threads);
    return 0;
}

static void free_matrix(float *matrix, int64_t rows, int64_t cols)
{
    sl_memory_free(matrix, (size_t)(rows * cols) * sizeof(float));
}

void sl_machine_work_destroy(struct sl_machine_work *work)
{
    const int64_t rows = work->tall_rows;
    for (int t = 0; work->operands && t < work->threads; t++) {
        free_matrix(work->operands[t].a, rows, SL_TALL_K);
        free_matrix(work->operands[t].b, SL_TALL_K, SL_TALL_N);
        free_matrix(work->operands[t].c, rows, SL_TALL_N);
        free_features(&work->operands[t]);
    }
    free(work->operands);
    if (work->table)
        munmap(work->table, work->reference.bytes);
    sl_reference_destroy(&work->reference);
    sl_team_destroy(work->team);
}
