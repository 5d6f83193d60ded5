/* Z(i) = epilogue(Σₖ A(i, k)·H(k)). Tiles that meet are collected for one task. The last task of a
 * row also runs the epilogue. A hub's row is cut into pieces. Each piece has a sum of its own, and
 * the sums are added in the order of the pieces. Pieces depend on the tiles and their entries
 * alone. */
#include <stdlib.h>

#include "codelets/accumulate.h"
#include "codelets/epilogue.h"
#include "codelets/init.h"
#include "codelets/spmm.h"
#include "core/error.h"
#include "core/task.h"
#include "core/temporary.h"
#include "graphs/reducer.h"

/* The tiles collected for the next task, all of one row. */
struct pending {
    struct sl_state *row;
    struct sl_sparse_tile *a[SL_SPMM_PARTS];
    int parts, met;
    struct sl_tile **h; // (met)
    int64_t bytes;
};

/* A row's sum. */
struct sum {
    bool piece_started;
    int64_t entries;      /* entries of the piece so far */
    struct sl_tile piece; /* sum of a piece, from the second piece on; open if it has rows */
    struct sl_tile own;   /* sum of a narrow row without a matrix of sums; open if it has rows */
    struct sl_epilogue_tiles epilogue;
};

static void sum_open(struct sl_state *s)
{
    const struct sl_reduction *r = s->states->reduction;
    struct pending *pending = s->states->own;
    struct sum *sum = s->own;
    s->held = s->part ? s->out[0] : sl_matrix_tile(sl_reduction_state(r, 0), s->i, s->j);
    if (!s->part && sl_reduction_state(r, 0)->type != SL_FLOAT32) {
        sl_temporary_open(s->states->rt, &sum->own, s->held->rows, s->held->cols);
        sum->own.ld = s->held->ld; /* kernels read whole vectors */
        sl_temporaries_serve(s->states->temporaries, &sum->own);
        s->held = &sum->own;
    }
    sum->epilogue = r->epilogue && !s->part ? sl_row_epilogue_at(r->epilogue, s->i, r->out[0], s->j)
                                            : SL_EPILOGUE_NONE;
    if (!pending->h)
        pending->h = malloc(((size_t)r->a->tile_cols + SL_SPMM_PARTS) * sizeof *pending->h);
    if (!pending->h)
        sl_fatal("no memory for the lists of %d tiles", r->a->tile_cols);
}

static void sum_end(struct sl_states *states)
{
    free(((struct pending *)states->own)->h);
}

/* Return whether the sum of this rank is the whole sum. */
static bool is_whole(const struct sl_state *s)
{
    return s->terms == 0 && !s->pieces && !s->apart;
}

static void sum_submit(struct sl_state *s)
{
    const struct sl_reduction *r = s->states->reduction;
    struct pending *pending = s->states->own;
    struct sum *sum = s->own;
    struct sl_tile *const to = sum->piece.rows ? &sum->piece : s->held;
    const bool whole = is_whole(s);
    if (pending->parts == 0)
        return;
    sl_submit_spmm(s->states->rt, &(struct sl_spmm_tiles){
                                      .parts = pending->parts,
                                      .a = pending->a,
                                      .h = pending->h,
                                      .accumulate = sum->piece_started,
                                      .epilogue = whole && r->epilogue ? &sum->epilogue : NULL,
                                      .sum = whole && s->held != s->out[0] ? s->held : NULL,
                                      .z = whole ? s->out[0] : to,
                                  });
    sum->piece_started = s->started = true;
    pending->parts = pending->met = 0;
    pending->bytes = 0;
}

static void close_piece(struct sl_state *s)
{
    struct sum *sum = s->own;
    if (!sum->piece.rows)
        return;
    sl_submit_accumulate(s->states->rt, &sum->piece, s->held);
    sl_temporaries_close(s->states->temporaries, &sum->piece);
}

/* End a piece of a row's sum, and begin another one. */
static void end_piece(struct sl_state *s)
{
    struct sum *sum = s->own;
    sum_submit(s);
    close_piece(s);
    sl_temporary_open(s->states->rt, &sum->piece, s->held->rows, s->held->cols);
    sl_temporaries_serve(s->states->temporaries, &sum->piece);
    sum->piece_started = false;
    sum->entries = 0;
}

static int64_t bytes_of(const struct sl_meeting *m)
{
    int64_t bytes = sl_tile_bytes(&m->a->tile);
    for (int t = 0; t < m->count; t++)
        bytes += sl_tile_bytes(m->moved[0][t]);
    return bytes;
}

static void sum_meet(struct sl_state *s, const struct sl_meeting *m)
{
    struct pending *pending = s->states->own;
    struct sum *sum = s->own;
    const int64_t bytes = bytes_of(m);
    if (pending->row != s && pending->parts)
        sum_submit(pending->row);
    pending->row = s;
    if (s->pieces && sum->entries >= s->states->reduction->a->piece)
        end_piece(s);
    else if (pending->parts == SL_SPMM_PARTS ||
             !sl_task_holds(s->states->rt, pending->bytes + bytes))
        sum_submit(s);
    pending->bytes += bytes;
    pending->a[pending->parts++] = m->a;
    for (int t = 0; t < m->count; t++)
        pending->h[pending->met++] = m->moved[0][t];
    sum->entries += m->a->shape.nnz;
    s->terms--;
}

static void sum_complete(struct sl_state *s)
{
    close_piece(s);
    if (!s->started)
        sl_submit_fill(s->states->rt, 0.0f, s->held);
}

static void sum_merge(struct sl_state *s, struct sl_tile *const *other,
                      const struct sl_listed_rows *rows)
{
    sl_reducer_add(s->states->rt, other[0], rows, s->held);
}

static void sum_close(struct sl_state *s)
{
    const struct sl_reduction *r = s->states->reduction;
    const bool finished =
        s->started && !s->pieces && !s->apart; /* the last task has written out[0] */
    struct sl_epilogue_tiles *epilogue = &((struct sum *)s->own)->epilogue;
    epilogue->factor = s->factor;
    if (!finished && (r->epilogue || s->factor || s->held != s->out[0]))
        sl_submit_epilogue(s->states->rt, r->epilogue || s->factor ? epilogue : NULL, s->held,
                           s->out[0]);
    if (((struct sum *)s->own)->own.rows)
        sl_temporaries_close(s->states->temporaries, &((struct sum *)s->own)->own);
}

const struct sl_reducer sl_reduce_sum = {
    .name = "sum",
    .back = &sl_reduce_sum,
    .linear = true,
    .moved = 1,
    .outputs = 1,
    .walk_size = sizeof(struct pending),
    .row_size = sizeof(struct sum),
    .open = sum_open,
    .meet = sum_meet,
    .submit = sum_submit,
    .complete = sum_complete,
    .merge = sum_merge,
    .close = sum_close,
    .end = sum_end,
};
