/* Reducers that a program brings: entries that are added at run time. A state is out[0] and out[1].
 *
 *     forward    states = combine(states, A(i, k), H(k)); (Z, KEPT)(i) = finish(state(i))
 *     backward   DH(i) += differentiate(Aᵀ(i, k), G(k), KEPT(k), H(i)), H an operand of the row
 *     merge      the program's; gradients are added */
#include <stdio.h>
#include <string.h>

#include "codelets/init.h"
#include "codelets/own_reduce.h"
#include "core/error.h"
#include "core/names.h"
#include "graphs/reducer.h"

char sl_aggregator_names[SL_NAMES_ROOM] = "gcn|mean" SL_REDUCER_NAMES;

static struct entry {
    char name[SL_NAME_ROOM], back_name[SL_NAME_ROOM + 8];
    struct sl_own_reducer own;
    struct sl_reducer forward, back;
    struct sl_aggregator aggregator;
} entries[SL_NAMES_ADDED];
static int count;

static const struct sl_own_reducer *own_of(const struct sl_state *s)
{
    return s->states->reduction->reducer->own;
}

/* ---- Forward ---- */

static void meet(struct sl_state *s, const struct sl_meeting *m)
{
    sl_submit_own_combine(s->states->rt, own_of(s),
                          &(struct sl_own_combine_tiles){.s = m->a,
                                                         .h = m->moved[0][0],
                                                         .b = s->out[1],
                                                         .a = s->out[0],
                                                         .accumulate = s->started});
    s->started = true;
    s->terms--;
}

static void complete(struct sl_state *s)
{
    for (int o = 0; !s->started && o < 2; o++)
        sl_submit_fill(s->states->rt, own_of(s)->of.start[o], s->out[o]);
}

static void merge(struct sl_state *s, struct sl_tile *const *other,
                  const struct sl_listed_rows *rows)
{
    sl_submit_own_merge(s->states->rt, own_of(s),
                        &(struct sl_own_merge_tiles){.other_a = other[0],
                                                     .other_b = other[1],
                                                     .index = rows ? rows->index : NULL,
                                                     .first = rows ? rows->first : 0,
                                                     .rows = rows ? rows->rows : s->out[0]->rows,
                                                     .b = s->out[1],
                                                     .a = s->out[0]});
}

static void close_state(struct sl_state *s)
{
    sl_submit_own_finish(s->states->rt, own_of(s), s->out[1], s->out[0]);
}

/* ---- The gradient ---- */

static void back_meet(struct sl_state *s, const struct sl_meeting *m)
{
    sl_submit_own_differentiate(s->states->rt, own_of(s),
                                &(struct sl_own_differentiate_tiles){.st = m->a,
                                                                     .g = m->moved[0][0],
                                                                     .b = m->moved[1][0],
                                                                     .h = s->row[0],
                                                                     .dh = s->out[0],
                                                                     .accumulate = s->started});
    s->started = true;
    s->terms--;
}

/* ---- The list ---- */

static struct entry *find(const char *name)
{
    for (int e = 0; name && e < count; e++)
        if (strcmp(entries[e].name, name) == 0)
            return &entries[e];
    return NULL;
}

const struct sl_aggregator *sl_aggregator_own_find(const char *name)
{
    const struct entry *entry = find(name);
    return entry ? &entry->aggregator : NULL;
}

int sl_reducer_own_add(const char *name, const struct starling_reducer *reducer)
{
    struct entry *entry = find(name);
    if (!entry && sl_names_add(sl_aggregator_names, &count, "a reducer", name))
        return SL_ERR_USAGE;
    if (!entry)
        entry = &entries[count - 1];
    snprintf(entry->name, sizeof entry->name, "%s", name);
    snprintf(entry->back_name, sizeof entry->back_name, "%s-back", name);
    entry->own = (struct sl_own_reducer){*reducer, (uint32_t)(entry - entries)};
    entry->aggregator = (struct sl_aggregator){entry->name, &entry->forward};
    entry->back = (struct sl_reducer){
        .name = entry->back_name,
        .own = &entry->own,
        .alone = true,
        .moved = 2,
        .row_operands = 1,
        .outputs = 1,
        .open = sl_reducer_hold_output,
        .meet = back_meet,
        .submit = sl_reducer_nothing,
        .complete = sl_reducer_zero_unmet,
        .merge = sl_reducer_add_output,
        .close = sl_reducer_nothing,
    };
    entry->forward = (struct sl_reducer){
        .name = entry->name,
        .back = &entry->back,
        .own = &entry->own,
        .alone = true,
        .moved = 1,
        .outputs = 2,
        .open = sl_reducer_hold_output,
        .meet = meet,
        .submit = sl_reducer_nothing,
        .complete = complete,
        .merge = merge,
        .close = close_state,
    };
    return 0;
}
