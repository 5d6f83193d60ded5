#include "graphs/reducer.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
#include "codelets/init.h"
#include "codelets/pack_rows.h"
#include "core/error.h"
#include "graphs/exchange.h"

const struct sl_aggregator sl_aggregator_gcn = {"gcn", NULL};
static const struct sl_aggregator mean = {"mean", NULL};

#define ROW(name) {#name, &sl_reduce_##name},
static const struct sl_aggregator reducers[] = {SL_REDUCERS(ROW)};
#undef ROW

const struct sl_aggregator *sl_aggregator_find(const char *name)
{
    if (strcmp(name, sl_aggregator_gcn.name) == 0)
        return &sl_aggregator_gcn;
    if (strcmp(name, mean.name) == 0)
        return &mean;
    for (size_t r = 0; r < sizeof reducers / sizeof *reducers; r++)
        if (strcmp(reducers[r].name, name) == 0)
            return &reducers[r];
    return sl_aggregator_own_find(name);
}

struct sl_epilogue_tiles sl_row_epilogue_at(const struct sl_row_epilogue *epilogue, int i,
                                            const struct sl_matrix *z, int j)
{
    struct sl_epilogue_tiles tiles = epilogue->common;
    tiles.scales = &epilogue->scales[i];
    tiles.mask = epilogue->mask ? sl_matrix_tile(epilogue->mask, i, j) : NULL;
    tiles.bias_col = z->col_cut[j];
    tiles.drop.column0 = (uint32_t)z->col_cut[j];
    return tiles;
}

enum sl_type sl_reducer_type(const struct sl_reducer *reducer, int output, enum sl_type moved)
{
    return output == 0 && reducer->narrow ? moved : SL_FLOAT32;
}

const struct sl_matrix *sl_reduction_state(const struct sl_reduction *reduction, int output)
{
    return reduction->state[output] ? reduction->state[output] : reduction->out[output];
}

int64_t sl_reducer_bytes(const struct sl_reducer *reducer, enum sl_type moved)
{
    int64_t bytes = 0;
    for (int o = 0; o < reducer->outputs; o++)
        bytes += (int64_t)sl_type_size(sl_reducer_type(reducer, o, moved));
    return bytes;
}

void sl_reducer_add(struct sl_runtime *rt, struct sl_tile *other, const struct sl_listed_rows *rows,
                    struct sl_tile *sum)
{
    if (rows)
        sl_submit_unpack_rows(rt, &(struct sl_unpack_tiles){.index = rows->index,
                                                            .x = other,
                                                            .first = rows->first,
                                                            .rows = rows->rows,
                                                            .accumulate = true,
                                                            .y = sum});
    else
        sl_submit_accumulate(rt, other, sum);
}

void sl_reducer_hold_output(struct sl_state *state)
{
    state->held = state->out[0];
}

void sl_reducer_nothing(struct sl_state *state)
{
    (void)state;
}

void sl_reducer_zero_unmet(struct sl_state *state)
{
    if (!state->started)
        sl_submit_fill(state->states->rt, 0.0f, state->out[0]);
}

void sl_reducer_add_output(struct sl_state *state, struct sl_tile *const *other,
                           const struct sl_listed_rows *rows)
{
    sl_reducer_add(state->states->rt, other[0], rows, state->out[0]);
}

void sl_states_open(struct sl_states *states, struct sl_runtime *rt,
                    const struct sl_reduction *reduction, struct sl_temporaries *temporaries,
                    int most)
{
    const size_t rows = (size_t)most + 1;
    *states = (struct sl_states){
        .rt = rt,
        .reduction = reduction,
        .temporaries = temporaries,
        .state = malloc(rows * sizeof *states->state),
        .held = malloc(rows * sizeof *states->held),
        .own = calloc(1, reduction->reducer->walk_size + 1),
        .rows = calloc(rows, reduction->reducer->row_size + 1),
    };
    if (!states->state || !states->held || !states->own || !states->rows)
        sl_fatal("no memory for the lists of %d tiles", most);
    sl_temporaries_turn(temporaries);
}

void sl_states_free(struct sl_states *states)
{
    if (states->reduction->reducer->end)
        states->reduction->reducer->end(states);
    free(states->state);
    free(states->held);
    free(states->own);
    free(states->rows);
}

struct sl_state *sl_states_add(struct sl_states *states, const struct sl_state *state)
{
    struct sl_state *added = &states->state[states->count];
    *added = *state;
    added->states = states;
    added->own =
        (char *)states->rows + (size_t)states->count * states->reduction->reducer->row_size;
    states->reduction->reducer->open(added);
    states->held[states->count++] = added->held;
    return added;
}

void sl_states_merge(struct sl_states *states, struct sl_exchange_part *part,
                     struct sl_tile *const *other)
{
    for (int t = part->from; t < part->to; t++) {
        const int64_t first = part->first[t - part->from],
                      rows = part->first[t - part->from + 1] - first;
        if (rows > 0)
            states->reduction->reducer->merge(&states->state[t - states->state->i], other,
                                              &(struct sl_listed_rows){&part->index, first, rows});
    }
}
