/* Aggregation: one row of sparse tiles times dense tiles. A task has all the tiles of its row that
 * one rank has, so that the output is written once where they have one block of columns each; the
 * steps that follow the sum are done while its rows are in the cache. */
#include <stdlib.h>

#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/epilogue.h"
#include "codelets/gather.h"
#include "core/error.h"

enum { CHUNK_BYTES = 16 * 1024 }; /* of output rows between sum and epilogue: they stay in L1 */

static void last_block(const struct sl_gather *g, int64_t rows, const struct sl_epilogue *epilogue)
{
    int64_t chunk = CHUNK_BYTES / (g->ldz * (int64_t)sizeof(float));
    chunk = chunk < 1 ? 1 : chunk;
    for (int64_t r = 0; r < rows; r += chunk) {
        const int64_t end = r + chunk < rows ? r + chunk : rows;
        sl_gather_rows(g, r, end);
        sl_epilogue_rows(epilogue, r, end, g->width, g->z, g->ldz);
    }
}

void sl_kernel_spmm(int64_t parts, const struct sl_sparse *a, const struct sl_rows *h,
                    int64_t width, bool accumulate, const struct sl_epilogue *epilogue, float *z,
                    int64_t ldz)
{
    for (int64_t p = 0; p < parts; p++)
        for (int64_t b = 0; b < a[p].blocks; b++) {
            const bool add = accumulate || p > 0 || b > 0;
            const struct sl_gather g =
                sl_gather_make(&a[p], b, width, h[p].data, h[p].ld, add, z, ldz);
            if (epilogue && p == parts - 1 && b == a[p].blocks - 1)
                last_block(&g, a[p].rows, epilogue);
            else
                sl_gather_rows(&g, 0, a[p].rows);
        }
}

/* The rows that part p meets: those of its tiles, which lie one behind the other. */
static struct sl_rows rows_of(const struct spmm_part *part, void **buffers)
{
    const struct sl_dense first = sl_dense_buffer(buffers[0]);
    int64_t rows = first.rows;
    for (int t = 1; t < part->span; t++) {
        const struct sl_dense next = sl_dense_buffer(buffers[t]);
        if (next.data != first.data + rows * first.ld || next.ld != first.ld)
            sl_fatal("the tiles of a sparse product are not neighbours in memory");
        rows += next.rows;
    }
    return (struct sl_rows){first.data, first.ld};
}

/* spmm_set, spmm_add
 *   argument  struct spmm_argument
 *   buffers   parts             R      A(p), sparse tiles (rows, cols(p))
 *             span, each part   R      H(p) (cols(p), width), cut into row tiles
 *             …                 R      what the epilogue needs (codelet.h)
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
    const struct sl_dense z = sl_dense_buffer(*rest);
    sl_kernel_spmm(arg->parts, a, h, z.cols, arg->accumulate,
                   arg->epilogue.present ? &epilogue : NULL, z.data, z.ld);
}

#define spmm_add_cpu spmm_set_cpu

SL_CODELET_ANY(spmm_set, 0x2E8B57);
SL_CODELET_ANY(spmm_add, 0x3CB371);

/* The tiles of the task, in the order of its buffers, into a list that the caller frees. */
static struct sl_tile **list_tiles(struct spmm_argument *arg, struct sl_sparse_tile *const *a,
                                   struct sl_tile *const *h,
                                   const struct sl_epilogue_tiles *epilogue, struct sl_tile *z,
                                   int *count)
{
    int rows = 0;
    for (int p = 0; p < arg->parts; p++)
        rows += a[p]->span;
    *count = arg->parts + rows;
    struct sl_tile **tiles = malloc((size_t)(*count + SL_EPILOGUE_TILES + 1) * sizeof *tiles);
    if (!tiles)
        sl_fatal("no memory for the %d tiles of a sparse product", *count);
    for (int p = 0; p < arg->parts; p++)
        tiles[p] = &a[p]->tile;
    for (int t = 0; t < rows; t++)
        tiles[arg->parts + t] = h[t];
    *count += sl_epilogue_pack(epilogue, &arg->epilogue, tiles + *count);
    tiles[(*count)++] = z;
    return tiles;
}

void sl_submit_spmm(struct sl_runtime *rt, int parts, struct sl_sparse_tile *const *a,
                    struct sl_tile *const *h, bool accumulate,
                    const struct sl_epilogue_tiles *epilogue, struct sl_tile *z)
{
    struct spmm_argument arg = {.parts = parts, .accumulate = accumulate};
    struct sl_task task = {
        .codelet = accumulate ? &spmm_add_codelet : &spmm_set_codelet,
        .output = accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES,
        .argument = &arg,
        .argument_size = offsetof(struct spmm_argument, part) + (size_t)parts * sizeof *arg.part,
    };
    if (z->owner != rt->rank)
        return;
    if (parts < 1 || parts > SL_SPMM_PARTS)
        sl_fatal("a sparse product of %d tiles, of at most %d", parts, SL_SPMM_PARTS);
    for (int p = 0; p < parts; p++) {
        arg.part[p] = (struct spmm_part){a[p]->shape, a[p]->span};
        task.work += 2.0 * (double)a[p]->shape.nnz * (double)z->cols;
    }
    struct sl_tile **tiles = list_tiles(&arg, a, h, epilogue, z, &task.count);
    task.list = tiles;
    sl_task_submit(rt, &task);
    free(tiles);
}
