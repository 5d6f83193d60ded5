/* Z(i) = epilogue(Σₖ A(i, k)·H(k)). Tiles that meet are put together until they are a task. The
 * last task of a row does the epilogue, too. A hub's row is cut into pieces. Each piece has a sum
 * of its own, and the sums are added in the order of the pieces. Pieces depend on the tiles and
 * their entries alone. */
#include "core/temporary.h"
#include "graphs/reducer.h"

static void sum_open(struct sl_state *s)
{
    const struct sl_reduction *r = s->states->reduction;
    const bool own = s->out[0] == sl_matrix_tile(r->out[0], s->i, s->j);
    s->held = own && r->sum ? sl_matrix_tile(r->sum, s->i, s->j) : s->out[0];
    if (r->epilogue)
        s->epilogue = sl_row_epilogue_at(r->epilogue, s->i, r->out[0], s->j);
}

/* The sum of this rank is the whole sum. */
static bool is_whole(const struct sl_state *s)
{
    return s->terms == 0 && !s->pieces && !s->apart;
}

static void sum_submit(struct sl_state *s)
{
    struct sl_states *states = s->states;
    const struct sl_reduction *r = states->reduction;
    struct sl_tile *const to = s->piece.rows ? &s->piece : s->held;
    const bool whole = is_whole(s);
    if (states->parts == 0)
        return;
    sl_submit_spmm(states->rt, &(struct sl_spmm_tiles){
                                   .parts = states->parts,
                                   .a = states->a,
                                   .h = states->h,
                                   .accumulate = s->piece_started,
                                   .epilogue = whole && r->epilogue ? &s->epilogue : NULL,
                                   .sum = whole && s->held != s->out[0] ? s->held : NULL,
                                   .z = whole ? s->out[0] : to,
                               });
    s->piece_started = s->started = true;
    states->parts = states->met = 0;
    states->bytes = 0;
}

static void close_piece(struct sl_state *s)
{
    if (!s->piece.rows)
        return;
    sl_submit_accumulate(s->states->rt, &s->piece, s->held);
    sl_temporary_close(&s->piece);
}

/* What follows is another piece. */
static void end_piece(struct sl_state *s)
{
    sum_submit(s);
    close_piece(s);
    sl_temporary_open(s->states->rt, &s->piece, s->held->rows, s->held->cols);
    s->piece_started = false;
    s->entries = 0;
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
    struct sl_states *states = s->states;
    const int64_t bytes = bytes_of(m);
    if (states->open != s && states->parts)
        sum_submit(states->open);
    states->open = s;
    if (s->pieces && s->entries >= states->reduction->a->piece)
        end_piece(s);
    else if (states->parts == SL_SPMM_PARTS || !sl_task_holds(states->rt, states->bytes + bytes))
        sum_submit(s);
    states->bytes += bytes;
    states->a[states->parts++] = m->a;
    for (int t = 0; t < m->count; t++)
        states->h[states->met++] = m->moved[0][t];
    s->entries += m->a->shape.nnz;
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
    if (rows)
        sl_submit_unpack_rows(s->states->rt, &(struct sl_unpack_tiles){.index = rows->index,
                                                                       .x = other[0],
                                                                       .first = rows->first,
                                                                       .rows = rows->rows,
                                                                       .accumulate = true,
                                                                       .y = s->held});
    else
        sl_submit_accumulate(s->states->rt, other[0], s->held);
}

static void sum_close(struct sl_state *s)
{
    const struct sl_reduction *r = s->states->reduction;
    const bool finished = s->started && !s->pieces && !s->apart; /* by the last task */
    if (!finished && (r->epilogue || s->held != s->out[0]))
        sl_submit_epilogue(s->states->rt, r->epilogue ? &s->epilogue : NULL, s->held, s->out[0]);
}

const struct sl_reducer sl_reduce_sum = {
    .name = "sum",
    .moved = 1,
    .outputs = 1,
    .open = sum_open,
    .meet = sum_meet,
    .submit = sum_submit,
    .complete = sum_complete,
    .merge = sum_merge,
    .close = sum_close,
};
