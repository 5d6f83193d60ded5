/* Aggregation: one row of sparse tiles times dense tiles. A task has several tiles of one row. If
 * each tile has one block of columns, the task writes the output once. The epilogue of some rows
 * follows their sum, while the rows are in the cache. */
#include <stdlib.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/epilogue.h"
#include "codelets/gather.h"
#include "codelets/spmm.h"
#include "core/error.h"
#include "core/memory.h"

/* Sums between product and epilogue: as many as stay in the second-level cache. Each change from
 * product to epilogue loses the prefetched rows. */
enum { CHUNK = 32768 };

/* Multiply and finish the last block of a sum in Z, as many rows at a time as stay in the cache. */
static void finish_here(const struct sl_gather *g, int64_t rows, const struct sl_epilogue *epilogue,
                        const struct sl_rows *z)
{
    const int64_t chunk = g->width < CHUNK ? CHUNK / sl_padded(g->width) : 1;
    for (int64_t r = 0; r < rows; r += chunk) {
        const int64_t end = r + chunk < rows ? r + chunk : rows;
        sl_gather_rows(g, r, end);
        sl_epilogue_rows(epilogue, r, end, g->width, z, z);
    }
}

/* Multiply and finish columns [first, first + cols) of the last block of a sum that is not in Z. */
static void finish_columns(const struct sl_gather *g, int64_t rows, int64_t first, int64_t cols,
                           const struct sl_epilogue *epilogue, const struct sl_rows *z)
{
    float *sums = sl_memory_of_thread(CHUNK * sizeof *sums);
    const int64_t ld = sl_padded(cols), chunk = CHUNK / ld;
    memset(sums, 0,
           (size_t)((rows < chunk ? rows : chunk) * ld) * sizeof *sums); /* clears the padding */
    const struct sl_rows from = sl_float_rows(sums, ld);
    struct sl_gather part = *g;
    part.h = sl_rows_at(&g->h, 0, first);
    part.width = cols;
    part.z = sums;
    part.ldz = part.room = ld;
    for (int64_t r = 0; r < rows; r += chunk) {
        const int64_t count = rows - r < chunk ? rows - r : chunk;
        const struct sl_epilogue e = sl_epilogue_at(epilogue, r, first);
        const struct sl_rows to = sl_rows_at(z, r, first);
        for (int64_t i = 0; g->accumulate && i < count; i++)
            memcpy(sums + i * ld, g->z + (r + i) * g->ldz + first, (size_t)cols * sizeof *sums);
        part.row_ptr = g->row_ptr + r;
        sl_gather_rows(&part, 0, count);
        sl_epilogue_rows(&e, 0, count, cols, &from, &to);
    }
}

static void finish_there(const struct sl_gather *g, int64_t rows,
                         const struct sl_epilogue *epilogue, const struct sl_rows *z)
{
    for (int64_t first = 0; first < g->width; first += CHUNK)
        finish_columns(g, rows, first, g->width - first < CHUNK ? g->width - first : CHUNK,
                       epilogue, z);
}

/* Columns [first, first + width) of a sum of products, with its epilogue. */
struct columns {
    int64_t parts;
    const struct sl_sparse *a;
    const struct sl_rows *h;
    bool accumulate;
    const struct sl_epilogue *epilogue;
    int64_t first, width;
    struct sl_rows sums, z;
};

static void multiply_columns(const struct columns *c)
{
    const bool here = c->z.type == SL_FLOAT32; /* sums are made in Z */
    const struct sl_epilogue e = sl_epilogue_at(c->epilogue, 0, c->first);
    for (int64_t p = 0; p < c->parts; p++)
        for (int64_t b = 0; b < c->a[p].blocks; b++) {
            const bool last = p == c->parts - 1 && b == c->a[p].blocks - 1;
            const struct sl_rows h = sl_rows_at(&c->h[p], 0, c->first);
            const struct sl_gather g = sl_gather_make(&c->a[p], b, c->width, &h,
                                                      c->accumulate || p > 0 || b > 0, &c->sums);
            if (last && !here)
                finish_there(&g, c->a[p].rows, &e, &c->z);
            else if (last && c->epilogue)
                finish_here(&g, c->a[p].rows, &e, &c->z);
            else
                sl_gather_rows(&g, 0, c->a[p].rows);
        }
}

/* Return how many columns to multiply and finish at a time. Slices make the epilogue slower, so
 * they pay only where rows have enough entries. */
static int64_t slice_columns(int64_t parts, const struct sl_sparse *a, enum sl_type type,
                             int64_t width)
{
    enum { LEAST_ENTRIES = 8 };
    int64_t entries = 0;
    for (int64_t p = 0; p < parts; p++)
        entries += a[p].row_ptr[a[p].blocks * a[p].rows];
    return entries >= LEAST_ENTRIES * a[0].rows ? sl_gather_slice(type, width) : width;
}

void sl_kernel_spmm(int64_t parts, const struct sl_sparse *a, const struct sl_rows *h,
                    int64_t width, bool accumulate, const struct sl_epilogue *epilogue,
                    const struct sl_rows *sum, const struct sl_rows *z)
{
    const struct sl_rows *const sums = z->type == SL_FLOAT32 ? z : sum;
    const int64_t slice = slice_columns(parts, a, h->type, width);
    for (int64_t first = 0; first < width; first += slice)
        multiply_columns(&(struct columns){
            .parts = parts,
            .a = a,
            .h = h,
            .accumulate = accumulate,
            .epilogue = epilogue,
            .first = first,
            .width = width - first < slice ? width - first : slice,
            .sums = sums ? sl_rows_at(sums, 0, first) : (struct sl_rows){0},
            .z = sl_rows_at(z, 0, first),
        });
}

/* Return the rows that a part meets. Stop the run unless its tiles are neighbours in memory. */
static struct sl_rows rows_of(const struct spmm_part *part, void **buffers)
{
    const struct sl_rows first = sl_rows_buffer(buffers[0]);
    int64_t rows = STARPU_MATRIX_GET_NY(buffers[0]);
    for (int t = 1; t < part->span; t++) {
        const struct sl_rows next = sl_rows_buffer(buffers[t]);
        if (next.data != sl_rows_at(&first, rows, 0).data || next.ld != first.ld)
            sl_fatal("the tiles of a sparse product are not neighbours in memory");
        rows += STARPU_MATRIX_GET_NY(buffers[t]);
    }
    return first;
}

/* spmm_set, spmm_add
 *   argument  struct spmm_argument
 *   buffers   parts             R      A(p), sparse tiles (rows, cols(p))
 *             span, each part   R      H(p) (cols(p), width), cut into row tiles
 *             …                 R      what the epilogue needs (codelet.h)
 *             …                 W/RW   SUM (rows, width), if Z is bfloat16 and it takes one
 *             last              W/RW   Z (rows, width) */
static void spmm_set_cpu(void *buffers[], void *argument)
{
    const struct spmm_argument *arg = argument;
    struct sl_sparse a[SL_SPMM_PARTS];
    struct sl_rows h[SL_SPMM_PARTS];
    struct sl_epilogue epilogue;
    void **rest = buffers + arg->parts;
    for (int p = 0; p < arg->parts; p++) {
        a[p] = sl_sparse_view(sl_raw_buffer(buffers[p]), &arg->part[p].shape);
        h[p] = rows_of(&arg->part[p], rest);
        rest += arg->part[p].span;
    }
    rest += sl_epilogue_buffers(&arg->epilogue, rest, &epilogue);
    const struct sl_rows z = sl_rows_buffer(rest[arg->has_sum]);
    const struct sl_rows sum = arg->has_sum ? sl_rows_buffer(*rest) : (struct sl_rows){0};
    sl_kernel_spmm(arg->parts, a, h, STARPU_MATRIX_GET_NX(*rest), arg->accumulate,
                   arg->epilogue.present ? &epilogue : NULL, &sum, &z);
}

#define spmm_add_cpu spmm_set_cpu

SL_CODELET_ANY(spmm_set, 0x2E8B57);
SL_CODELET_ANY(spmm_add, 0x3CB371);

/* Return the tiles of the task, in the order of its buffers, in a list that the caller frees. */
static struct sl_tile **list_tiles(const struct sl_spmm_tiles *tiles, struct sl_tile *sum,
                                   struct spmm_argument *arg, struct sl_task *task)
{
    int rows = 0, count = tiles->parts;
    for (int p = 0; p < tiles->parts; p++)
        rows += tiles->a[p]->span;
    struct sl_tile **list =
        malloc((size_t)(tiles->parts + rows + SL_EPILOGUE_TILES + 2) * sizeof *list);
    if (!list)
        sl_fatal("no memory for the %d tiles of a sparse product", tiles->parts + rows);
    for (int p = 0; p < tiles->parts; p++)
        list[p] = &tiles->a[p]->tile;
    for (int t = 0; t < rows; t++)
        list[count++] = tiles->h[t];
    count += sl_epilogue_pack(tiles->epilogue, NULL, &arg->epilogue, list + count);
    if (sum)
        list[count++] = sum;
    list[count++] = tiles->z;
    task->list = list;
    task->count = count;
    return list;
}

/* Memory that cuSPARSE keeps on a GPU (codelets/spmm_cusparse.cu). All tiles without values share
 * one array of ones. A tile has a copy, unless cuSPARSE takes the tile as it is. A product has a
 * workspace. No manual gives its size: count as much as the columns and the row pointers take. */
enum { ONES = -1, ALLOCATION = 512 };

static struct sl_spmm_need need_of(int64_t tag, int64_t width, int64_t words)
{
    return (struct sl_spmm_need){tag, width, 4 * words + ALLOCATION};
}

static bool has_room(struct sl_runtime *rt, const struct sl_spmm_tiles *tiles)
{
    struct sl_spmm_need need[2 * SL_SPMM_PARTS];
    int count = 0;
    bool ones = false;
    for (int p = 0; p < tiles->parts; p++) {
        const struct sl_sparse_shape *shape = &tiles->a[p]->shape;
        const int64_t tag = tiles->a[p]->tile.tag, entries = shape->nnz + shape->rows + 1;
        const int64_t values = shape->has_values ? shape->nnz : 0;
        ones = ones || !shape->has_values;
        if (shape->block_cols < shape->cols || shape->block_cols <= SL_NARROW_COLS)
            need[count++] = need_of(tag, 0, entries + values);
        need[count++] = need_of(tag, tiles->z->cols, entries);
    }
    const struct sl_spmm_need shared = need_of(ONES, 0, rt->spmm.most_ones);
    return (!ones || sl_spmm_choice_reserve(&rt->spmm, rt->process->gpu_sharers, 1, &shared)) &&
           sl_spmm_choice_reserve(&rt->spmm, rt->process->gpu_sharers, count, need);
}

/* Return whether cuSPARSE can multiply these tiles, and is chosen for their mean shape. It needs
 * float32, and a single tile of H for each sparse tile: only a single tile is contiguous on a GPU.
 */
static bool is_for_cusparse(struct sl_runtime *rt, const struct sl_spmm_tiles *tiles)
{
    if (rt->process->gpus == 0 || rt->spmm.kernel == SL_SPMM_OWN)
        return false;
    bool is = tiles->z->element_size == sizeof(float) && tiles->z->cols > 0;
    int64_t rows = 0, nnz = 0;
    for (int p = 0; is && p < tiles->parts; p++) {
        const struct sl_sparse_tile *a = tiles->a[p];
        is = a->span == 1 && a->shape.nnz > 0 && a->shape.nnz <= INT32_MAX &&
             (a->shape.has_values || a->shape.nnz <= rt->spmm.most_ones) &&
             tiles->h[p]->element_size == sizeof(float);
        rows += a->shape.rows;
        nnz += a->shape.nnz;
    }
    is = is && sl_spmm_choice_wants(&rt->spmm, rows, nnz, tiles->z->cols) && has_room(rt, tiles);
    rt->spmm.products += is;
    return is;
}

void sl_submit_spmm(struct sl_runtime *rt, const struct sl_spmm_tiles *tiles)
{
    const int parts = tiles->parts;
    const bool at_once = !tiles->accumulate && parts == 1 && tiles->a[0]->span <= SL_SPMM_TILES &&
                         tiles->a[0]->shape.block_cols >= tiles->a[0]->shape.cols;
    struct sl_tile *const sum = at_once ? NULL : tiles->sum;
    struct spmm_argument arg = {
        .parts = parts, .accumulate = tiles->accumulate, .has_sum = sum != NULL};
    const enum sl_task_output output = tiles->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    struct sl_task task = {
        .codelet = tiles->accumulate ? &spmm_add_codelet : &spmm_set_codelet,
        .output = sum ? SL_TASK_WRITES : output,
        .before_output = sum ? output : SL_TASK_READS,
        .argument = &arg,
        .argument_size = offsetof(struct spmm_argument, part) + (size_t)parts * sizeof *arg.part,
    };
    if (tiles->z->owner != rt->rank)
        return;
    if (parts < 1 || parts > SL_SPMM_PARTS)
        sl_fatal("a sparse product of %d tiles, of at most %d", parts, SL_SPMM_PARTS);
    for (int p = 0; p < parts; p++) {
        arg.part[p] =
            (struct spmm_part){tiles->a[p]->shape, tiles->a[p]->tile.tag, tiles->a[p]->span};
        task.work += 2.0 * (double)tiles->a[p]->shape.nnz * (double)tiles->z->cols;
    }
    arg.cusparse = is_for_cusparse(rt, tiles);
    arg.most_ones = rt->spmm.most_ones;
    struct sl_tile **list = list_tiles(tiles, sum, &arg, &task);
    task.kind = sl_epilogue_kind(&arg.epilogue) |
                (uint32_t)(arg.part[0].shape.has_values | arg.cusparse << 1) << SL_EPILOGUE_KINDS;
    sl_task_submit(rt, &task);
    free(list);
}
