/* Covers (graphs/cover.h): a halo's walk, with results for rows of other ranks. W(r, q) are the
 * rows of rank r for which rank q makes results. Rank r
 *
 *     computes   P(W(p, r)) = S(W(p, r), own)·H(own)    for every rank p with such rows
 *     sends      P(W(p, r)) to rank p, and H(N(p, r), :) as in a halo
 *     computes   Z(i) as in a halo, of the entries that are left
 *                Z(W(r, q)) += P of rank q              for every rank q, round from the next rank
 *
 * Results come first, so that they travel while own rows are worked on. */
#include "graphs/cover.h"

#include <stdlib.h>

#include "core/error.h"
#include "graphs/halo.h"

/* Return whether a layer needs the rows of result message `number` for `rank`, which are of one
 * hop. */
static bool is_needed(const struct sl_cover_walk *w, int rank, int number)
{
    const int tile = sl_halo_run(w->d, w->cover->results.numbers, rank, number).from;
    return !sl_matrix_tile(w->reduction->out[0], tile, 0)->idle;
}

/* ---- Results for other ranks ---- */

static const struct sl_matrix *state_of(const struct sl_cover_walk *w, int output)
{
    return sl_reduction_state(w->reduction, output);
}

/* Return the stage of all received row operands. */
static struct sl_stage stage_of_operands(const struct sl_cover_walk *w, struct sl_tile **tiles)
{
    struct sl_stage stage = {.tiles = tiles};
    for (int m = 0; m < w->reduction->reducer->row_operands; m++)
        stage.count += sl_exchange_stage(w->rt, &w->cover->operands, w->reduction->row[m], 0, m, 0,
                                         w->cover->operands.receives, tiles + stage.count)
                           .count;
    return stage;
}

/* Find the row operands of result message p. Both exchanges list the same rows, in different
 * orders. */
static void find_operands(const struct sl_cover_walk *w, int p, struct sl_tile *const *tiles,
                          struct sl_state *state)
{
    const struct sl_exchange *operands = &w->cover->operands;
    const struct sl_exchange_part *part = &w->cover->results.send[p];
    int at = 0;
    while (
        operands->receive && at < operands->receives &&
        (operands->receive[at].peer != part->peer || operands->receive[at].number != part->number))
        at++;
    for (int m = 0; m < w->reduction->reducer->row_operands; m++)
        state->row[m] = tiles[m * operands->receives + at];
}

static void compute_result(const struct sl_cover_walk *w, struct sl_state *state, int p)
{
    const struct sl_reducer *reducer = w->reduction->reducer;
    const struct sl_tile_run own = sl_grid_group(w->d, w->rt->rank);
    for (int k = own.from; k < own.to; k++) {
        struct sl_sparse_tile *tile = sl_sparse_matrix_tile(&w->cover->matrix, p, k - own.from);
        struct sl_meeting meeting = {.a = tile, .count = tile->span, .first = w->d->row_cut[k]};
        for (int m = 0; m < reducer->moved; m++)
            meeting.moved[m] = w->own[m] + (k - own.from);
        if (tile->shape.nnz)
            reducer->meet(state, &meeting);
    }
    reducer->submit(state);
    reducer->complete(state);
}

static void send_result(const struct sl_cover_walk *w, const struct sl_state *state, int p)
{
    for (int o = 0; o < w->reduction->reducer->outputs; o++)
        sl_exchange_send_buffer(w->rt, &w->cover->results, p, state->out[o]);
}

static void add_result(const struct sl_cover_walk *w, struct sl_states *states, int p)
{
    const struct sl_sparse_matrix *a = &w->cover->matrix;
    struct sl_state state = {.i = p, .part = true, .apart = true};
    for (int k = 0; k < a->tile_cols; k++)
        state.terms += sl_sparse_matrix_tile(a, p, k)->shape.nnz > 0;
    for (int o = 0; o < w->reduction->reducer->outputs; o++)
        state.out[o] = &sl_exchange_outgoing(w->rt, &w->cover->results, state_of(w, o), 0, o)[p];
    if (w->cover->listed)
        state.vertices = &w->cover->listed[p];
    sl_states_add(states, &state);
}

void sl_cover_send(const struct sl_cover_walk *w)
{
    const struct sl_reducer *reducer = w->reduction->reducer;
    const int count = w->cover->results.sends;
    struct sl_tile **operands =
        calloc((size_t)(reducer->row_operands * count) + 1, sizeof(struct sl_tile *));
    struct sl_states states;
    if (!operands)
        sl_fatal("no memory for the lists of %d tiles", count);
    for (int m = 0; m < reducer->row_operands; m++)
        sl_exchange_send(w->rt, &w->cover->operands, w->reduction->row[m], 0, m);
    const struct sl_stage stage = stage_of_operands(w, operands);
    sl_stage_ask(w->rt, &stage, 0, NULL);
    sl_states_open(&states, w->rt, w->reduction, w->d->temporaries, count);
    for (int o = 0; o < reducer->outputs; o++) /* all ranks make the same buffers in this order */
        sl_exchange_outgoing(w->rt, &w->cover->results, state_of(w, o), 0, o);
    for (int p = 0; p < count; p++) {
        if (!is_needed(w, w->cover->results.send[p].peer, w->cover->results.send[p].number))
            continue;
        struct sl_state *state = &states.state[states.count];
        add_result(w, &states, p);
        find_operands(w, p, operands, state);
        compute_result(w, state, p);
        send_result(w, state, p);
    }
    sl_states_free(&states);
    sl_stage_drop(w->rt, &stage);
    free(operands);
}

/* ---- Results of other ranks ---- */

bool sl_cover_merges(const struct sl_cover *cover, int i)
{
    bool merges = false;
    for (int p = 0; p < cover->results.receives; p++) {
        const struct sl_exchange_part *part = &cover->results.receive[p];
        merges = merges || (part->from <= i && i < part->to &&
                            part->first[i - part->from + 1] > part->first[i - part->from]);
    }
    return merges;
}

/* Count `entries` entries, which rank `from` has, of `messages` messages with `rows` results for
 * rank `to`. */
static void count_results(struct sl_walk_counts *from, struct sl_walk_counts *to, int64_t rows,
                          int64_t messages, int64_t entries)
{
    to->merged.rows += (double)rows;
    to->merged.messages += (double)messages;
    to->packed += (double)rows;
    from->others.early += entries;
}

/* `made` counts all results: row operands travel even for results that a layer does not need. */
void sl_cover_count(const struct sl_cover *cover, const struct sl_distribution *d,
                    const struct sl_counted_walk *walk, int numbers, struct sl_walk_counts *rank)
{
    const int messages = d->ranks * numbers;
    const bool apart = d->hop && cover->rows;
    for (int r = 0; r < d->ranks; r++) {
        for (int m = 0; apart && m < messages; m++) {
            const int64_t at = (int64_t)r * messages + m, rows = cover->rows[at];
            if (d->hop[sl_halo_run(d, numbers, m / numbers, m % numbers).from] <= walk->to)
                count_results(&rank[r], &rank[m / numbers], rows, rows > 0, cover->entries[at]);
        }
        if (!apart)
            count_results(&rank[r], &rank[r], cover->received[r], cover->messages[r],
                          cover->nnz[r]);
        rank[r].made.rows += (double)cover->sent[r];
        rank[r].made.messages += (double)cover->made[r];
        rank[r].tiles += cover->tiles[r];
        rank[r].bytes += cover->bytes[r];
        rank[r].own_bytes += cover->bytes[r];
        rank[r].own_tiles += cover->tiles[r];
    }
}

int sl_cover_stages(const struct sl_runtime *rt, const struct sl_cover *cover)
{
    return rt->stages > 1 && cover->results.receives > SL_HALO_STAGES ? SL_HALO_STAGES
                                                                      : cover->results.receives;
}

static bool comes(const struct sl_cover_walk *w, int p)
{
    return is_needed(w, w->rt->rank, w->cover->results.receive[p].number);
}

/* Return the messages [from, to) of a stage; unneeded messages do not come. */
static struct sl_tile_run messages_of(const struct sl_cover_walk *w, int s)
{
    const int64_t count = w->cover->results.receives, stages = sl_cover_stages(w->rt, w->cover);
    return (struct sl_tile_run){(int)(count * s / stages), (int)(count * (s + 1) / stages)};
}

struct sl_stage sl_cover_stage(const struct sl_cover_walk *w, int s, struct sl_tile **tiles)
{
    const struct sl_tile_run run = messages_of(w, s);
    struct sl_stage stage = {.tiles = tiles, .sums = true};
    for (int o = 0; o < w->reduction->reducer->outputs; o++)
        for (int p = run.from; p < run.to; p++)
            if (comes(w, p))
                stage.count += sl_exchange_stage(w->rt, &w->cover->results, state_of(w, o), 0, o, p,
                                                 p + 1, tiles + stage.count)
                                   .count;
    return stage;
}

void sl_cover_merge(const struct sl_cover_walk *w, int s, struct sl_states *states,
                    struct sl_tile **tiles)
{
    const struct sl_tile_run run = messages_of(w, s);
    struct sl_tile *other[SL_OUTPUTS];
    int count = 0, at = 0;
    for (int p = run.from; p < run.to; p++)
        count += comes(w, p);
    for (int p = run.from; p < run.to; p++) {
        if (!comes(w, p))
            continue;
        for (int o = 0; o < w->reduction->reducer->outputs; o++)
            other[o] = tiles[o * count + at];
        at++;
        sl_states_merge(states, &w->cover->results.receive[p], other);
    }
}
