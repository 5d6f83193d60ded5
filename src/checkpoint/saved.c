#include "checkpoint/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/units.h"
#include "core/error.h"
#include "core/json_file.h"
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

/* Call `use` with rows that lie `ld` numbers apart. */
static void use_rows(const float *numbers, int64_t ld, int64_t rows, int64_t cols,
                     sl_saved_use *use, void *context)
{
    const bool gaps = ld != cols;
    for (int64_t r = 0; r < (gaps ? rows : 1); r++)
        use(context, numbers + r * ld, gaps ? cols : rows * cols);
}

/* Move a run of rows from its owner to rank 0. The owner sends it when rank 0 asks, and waits
 * before it copies the next run. */
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

/* ---- Take ---- */

/* Return the columns of the rows' tensor. A bias beside wider weights has only the first columns of
 * the tile. */
static int64_t cols_of(const struct sl_saved *saved, const struct sl_saved_rows *rows)
{
    return saved->checkpoint.tensors[rows->tensor].cols;
}

static void append_rows(void *to, const float *numbers, int64_t count)
{
    float **at = to;
    memcpy(*at, numbers, (size_t)count * sizeof **at);
    *at += count;
}

/* Allocate the numbers of tensors that tiles hold. */
static int make_room(struct sl_checkpoint *checkpoint)
{
    for (int t = 0; t < checkpoint->count; t++) {
        struct sl_tensor *tensor = &checkpoint->tensors[t];
        if (tensor->data)
            continue;
        tensor->data = malloc((size_t)(tensor->rows * tensor->cols) * sizeof *tensor->data + 1);
        if (!tensor->data)
            return sl_error(SL_ERR_SYSTEM, "no memory for tensor %s of the model", tensor->name);
    }
    return 0;
}

/* Broadcast rank 0's description, and the tensors that only rank 0 has added. */
static int share(struct sl_runtime *rt, struct sl_checkpoint *checkpoint, int64_t shared)
{
    char *text = rt->rank == 0 ? sl_json_print(checkpoint->description, JSON_COMPACT) : NULL;
    int64_t sizes[] = {checkpoint->count, text ? (int64_t)strlen(text) + 1 : 0};
    sl_runtime_broadcast(rt, 0, sizes, sizeof sizes);
    if (rt->rank > 0)
        text = malloc((size_t)sizes[1] + 1);
    int code = text && sizes[1] > 0 ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the model");
    code = sl_runtime_agree(rt, code);
    if (!code)
        sl_runtime_broadcast(rt, 0, text, sizes[1]);
    if (!code && rt->rank > 0)
        checkpoint->description = sl_json_parse(text, strlen(text), 0, NULL);
    if (!code && !checkpoint->description)
        code = sl_error(SL_ERR_SYSTEM, "no memory for the model");
    code = sl_runtime_agree(rt, code);
    free(text);
    for (int64_t t = shared; !code && t < sizes[0]; t++) {
        const bool has = t < checkpoint->count;
        int64_t shape[] = {has ? checkpoint->tensors[t].rows : 0,
                           has ? checkpoint->tensors[t].cols : 0};
        char name[256] = "";
        if (has)
            snprintf(name, sizeof name, "%s", checkpoint->tensors[t].name);
        sl_runtime_broadcast(rt, 0, shape, sizeof shape);
        sl_runtime_broadcast(rt, 0, name, sizeof name);
        if (!has && !sl_checkpoint_add(checkpoint, name, shape[0], shape[1]))
            code = SL_ERR_SYSTEM;
        code = sl_runtime_agree(rt, code);
    }
    return code;
}

int sl_saved_take(struct sl_saved *saved, struct sl_checkpoint *out)
{
    struct sl_checkpoint *checkpoint = &saved->checkpoint;
    const int64_t shared = sl_runtime_least(saved->rt, checkpoint->count);
    *out = (struct sl_checkpoint){0};
    int code = sl_runtime_agree(saved->rt, make_room(checkpoint));
    if (!code)
        code = share(saved->rt, checkpoint, shared);
    if (code)
        return code;
    float *at = NULL;
    for (int r = 0, before = -1; r < saved->count; r++) {
        const struct sl_saved_rows *of = &saved->rows[r];
        if (of->tensor != before)
            at = checkpoint->tensors[of->tensor].data;
        before = of->tensor;
        sl_saved_take_rows(saved->rt, of->tile, of->first, of->rows, cols_of(saved, of),
                           append_rows, &at);
    }
    for (int t = 0; t < checkpoint->count; t++)
        sl_runtime_broadcast(saved->rt, 0, checkpoint->tensors[t].data,
                             checkpoint->tensors[t].rows * checkpoint->tensors[t].cols *
                                 (int64_t)sizeof(float));
    *out = *checkpoint;
    *checkpoint = (struct sl_checkpoint){0};
    return 0;
}

/* ---- Write ---- */

/* Return whether rank 0 takes all rows, perhaps once more. Collective. */
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
