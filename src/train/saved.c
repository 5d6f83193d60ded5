#include "train/saved.h"

#include <stdlib.h>

#include "codelets/units.h"
#include "core/error.h"
#include "core/message.h"
#include "core/temporary.h"

/* ---- List ---- */

int sl_saved_add(struct sl_saved *saved, const char *name, int64_t rows, int64_t cols)
{
    return sl_checkpoint_add_later(&saved->checkpoint, name, rows, cols);
}

int sl_saved_add_rows(struct sl_saved *saved, struct sl_tile *tile, int64_t first, int64_t rows)
{
    if (saved->count == saved->room) {
        const int room = 2 * saved->room + 16;
        struct sl_saved_rows *longer = realloc(saved->rows, (size_t)room * sizeof *longer);
        if (!longer)
            return sl_error(SL_ERR_SYSTEM, "no memory for a list of %d tiles", room);
        saved->rows = longer;
        saved->room = room;
    }
    saved->rows[saved->count++] = (struct sl_saved_rows){
        .tensor = saved->checkpoint.count - 1, .tile = tile, .first = first, .rows = rows};
    return 0;
}

void sl_saved_free(struct sl_saved *saved)
{
    sl_checkpoint_free(&saved->checkpoint);
    free(saved->rows);
    *saved = (struct sl_saved){0};
}

/* ---- Rows ---- */

static int64_t run_of(int64_t rows, int64_t cols)
{
    enum { RUN_BYTES = 16 << 20 };
    const int64_t most = RUN_BYTES / (cols * (int64_t)sizeof(float));
    return most < 1 ? 1 : most < rows ? most : rows;
}

int64_t sl_saved_run_bytes(int64_t rows, int64_t cols)
{
    return run_of(rows, cols) * cols * (int64_t)sizeof(float);
}

/* Rows that lie `ld` numbers apart. */
static void use_rows(const float *numbers, int64_t ld, int64_t rows, int64_t cols,
                     sl_saved_use *use, void *context)
{
    const bool gaps = ld != cols;
    for (int64_t r = 0; r < (gaps ? rows : 1); r++)
        use(context, numbers + r * ld, gaps ? cols : rows * cols);
}

/* The owner sends a run when rank 0 asks for it, and waits before it copies the next one. */
static void take_run(struct sl_runtime *rt, struct sl_tile *tile, int64_t first, int64_t cols,
                     struct sl_tile *run, sl_saved_use *use, void *context)
{
    sl_submit_rows_out(rt, first, tile, run);
    if (rt->rank == tile->owner) {
        sl_stage_send(rt, run, 0);
        sl_tile_acquire(rt, run, true);
        sl_tile_release(run);
    } else if (rt->rank == 0) {
        sl_tile_send(rt, run, tile->owner, 0);
        use_rows(sl_tile_acquire(rt, run, false), run->ld, run->rows, cols, use, context);
        sl_tile_release(run);
    }
    sl_temporary_close(run);
}

void sl_saved_take_rows(struct sl_runtime *rt, struct sl_tile *tile, int64_t first, int64_t rows,
                        int64_t cols, sl_saved_use *use, void *context)
{
    const int64_t most = run_of(rows, tile->cols);
    if (tile->owner == 0 && rt->rank == 0) {
        const float *numbers = sl_tile_acquire(rt, tile, false);
        use_rows(numbers + first * tile->ld, tile->ld, rows, cols, use, context);
        sl_tile_release(tile);
    }
    for (int64_t at = 0; tile->owner > 0 && at < rows; at += most) {
        struct sl_tile run;
        sl_temporary_open_shared(&run, rows - at < most ? rows - at : most, tile->cols,
                                 sizeof(float), tile->owner, sl_temporary_tags(rt, 1));
        take_run(rt, tile, first + at, cols, &run, use, context);
    }
}

/* ---- Write ---- */

/* Rank 0 says whether it takes all rows, maybe again. */
static bool agree_to_go_on(struct sl_saved *saved, bool goes_on)
{
    int64_t heard = goes_on;
    sl_runtime_broadcast(saved->rt, 0, &heard, sizeof heard);
    return heard;
}

static void write_rows(void *sink, const float *numbers, int64_t count)
{
    sl_checkpoint_write_numbers(sink, numbers, count);
}

/* A tensor may have the first columns of a tile alone: a bias beside wider weights. */
static int64_t cols_of(const struct sl_saved *saved, const struct sl_saved_rows *rows)
{
    return saved->checkpoint.tensors[rows->tensor].cols;
}

static void write_tensor(void *context, int tensor, struct sl_checkpoint_sink *sink)
{
    struct sl_saved *saved = context;
    for (int r = 0; r < saved->count; r++) {
        const struct sl_saved_rows *of = &saved->rows[r];
        if (of->tensor != tensor)
            continue;
        if (r == 0)
            agree_to_go_on(saved, true);
        sl_saved_take_rows(saved->rt, of->tile, of->first, of->rows, cols_of(saved, of), write_rows,
                           sink);
    }
}

static void send_all(struct sl_saved *saved)
{
    for (int r = 0; r < saved->count; r++) {
        const struct sl_saved_rows *of = &saved->rows[r];
        sl_saved_take_rows(saved->rt, of->tile, of->first, of->rows, cols_of(saved, of), NULL,
                           NULL);
    }
}

int sl_saved_write(struct sl_saved *saved, const char *path, bool somewhere)
{
    int code = 0;
    saved->checkpoint.source = write_tensor;
    saved->checkpoint.context = saved;
    if (saved->rt->rank > 0) {
        while (agree_to_go_on(saved, false))
            send_all(saved);
        return 0;
    }
    code = somewhere ? sl_checkpoint_write_somewhere(&saved->checkpoint, path)
                     : sl_checkpoint_write(&saved->checkpoint, path);
    agree_to_go_on(saved, false);
    return code;
}
