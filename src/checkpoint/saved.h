/* A checkpoint of tiles. The numbers stay where they are until the checkpoint is written. Then rank
 * 0 takes rows of one tile after the other, some MiB at a time. All ranks make the same tensors, in
 * the same order. */
#ifndef SL_CHECKPOINT_SAVED_H
#define SL_CHECKPOINT_SAVED_H

#include "checkpoint/checkpoint.h"
#include "core/runtime.h"
#include "core/tile.h"

/* Some rows of a tile, which are the next rows of a tensor. */
struct sl_saved_rows {
    int tensor;
    struct sl_tile *tile;
    int64_t first, rows;
};

struct sl_saved {
    struct sl_runtime *rt;
    struct sl_checkpoint checkpoint; /* rank 0 may add tensors after the tiles' tensors */
    int count, room;
    struct sl_saved_rows *rows; // (count)
};

/* Append a tensor (rows, cols). sl_saved_add_rows appends rows of a tile, its first `cols` columns,
 * to the last tensor. Return 0 or SL_ERR_SYSTEM. */
int sl_saved_add(struct sl_saved *saved, const char *name, int64_t rows, int64_t cols);
int sl_saved_add_rows(struct sl_saved *saved, struct sl_tile *tile, int64_t first, int64_t rows);
void sl_saved_free(struct sl_saved *saved);

/* Write the checkpoint on rank 0, after all tasks on the tiles: sl_checkpoint_write, or
 * (`somewhere`) sl_checkpoint_write_somewhere. Collective. Return the writer's code on rank 0; 0 on
 * other ranks. */
int sl_saved_write(struct sl_saved *saved, const char *path, bool somewhere);

/* Move the checkpoint, with all numbers, to *out on all ranks, after all tasks on the tiles. *out
 * is empty after an error. Collective. Return 0 or SL_ERR_SYSTEM. */
int sl_saved_take(struct sl_saved *saved, struct sl_checkpoint *out);

/* Call use(context, numbers, count) on rank 0 with the numbers of rows of a tile, its first `cols`
 * columns. A call has one row or several. Collective. */
typedef void sl_saved_use(void *context, const float *numbers, int64_t count);
void sl_saved_take_rows(struct sl_runtime *rt, struct sl_tile *tile, int64_t first, int64_t rows,
                        int64_t cols, sl_saved_use *use, void *context);

/* Return the bytes of a run of rows of a tile, on its way from one rank to another. */
int64_t sl_saved_run_bytes(int64_t rows, int64_t cols);

#endif
