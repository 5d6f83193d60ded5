/* Groups and batches of starling train: their sizes, and what travels between groups and inside
 * them, in the log and in the tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/words.h"
#include "run/run.h"

static json_t *gather(struct sl_runtime *rt, int64_t value, bool is_time)
{
    int64_t *values = calloc((size_t)rt->ranks, sizeof *values);
    if (!values)
        sl_fatal("no memory for the figures of %d ranks", rt->ranks); /* the others wait for them */
    sl_runtime_gather(rt, value, values);
    json_t *list = json_array();
    for (int r = 0; r < rt->ranks; r++)
        json_array_append_new(list, is_time ? json_real(sl_overlap_seconds(values[r]))
                                            : json_integer(values[r]));
    free(values);
    return list;
}

json_t *sl_train_gather(struct sl_runtime *rt, int64_t value)
{
    return gather(rt, value, false);
}

json_t *sl_train_gather_seconds(struct sl_runtime *rt, int64_t time)
{
    return gather(rt, time, true);
}

/* ---- Gather ---- */

/* The sizes of this rank's group, whose batches are in memory. */
static struct sl_train_group sizes_of(const struct sl_batches *b)
{
    struct sl_train_group group = {.ranks = b->groups.count > 1 ? b->own.ranks : b->rt->ranks};
    for (int k = 0; k < b->count; k++) {
        const struct sl_batch *batch = &b->batch[k];
        group.batches += batch->version >= 0;
        group.inner += batch->inner;
        group.outer += batch->outer;
        group.entries += batch->entries;
        group.redundant += batch->redundant;
    }
    return group;
}

void sl_train_find_groups(struct sl_train_run *run)
{
    enum { FIGURES = sizeof(struct sl_train_group) / sizeof(int64_t) };
    const struct sl_batches *b = &run->trainer.batches;
    struct sl_train_groups *g = &run->groups;
    const struct sl_train_group own = sizes_of(b);
    int64_t *all = calloc((size_t)run->rt.ranks, sizeof *all);
    if (!sl_batches_differ(&run->config)) {
        free(all);
        return;
    }
    g->count = b->groups.count;
    g->group = calloc((size_t)g->count, sizeof *g->group);
    if (!all || !g->group)
        sl_fatal("no memory for the sizes of %d groups", g->count); /* the others wait for them */
    for (int f = 0; f < FIGURES; f++) {
        sl_runtime_gather(&run->rt, ((const int64_t *)&own)[f], all);
        for (int k = 0; k < g->count; k++)
            ((int64_t *)&g->group[k])[f] = all[b->groups.first ? b->groups.first[k] : 0];
    }
    free(all);
}

/* Set what this rank sends in an epoch: between groups, and inside its group. */
static void split_traffic(const struct sl_epoch_traffic *epochs, int64_t figures[4])
{
    const struct sl_traffic all = sl_traffic_mean(&epochs->sum[0], epochs->sum_epochs),
                            own = sl_traffic_mean(&epochs->sum[1], epochs->sum_epochs);
    figures[0] = all.bytes_between;
    figures[1] = all.messages_between;
    figures[2] = all.bytes_sent + own.bytes_sent - figures[0];
    figures[3] = all.messages + own.messages - figures[1];
}

/* ---- The log ---- */

static json_t *list_of(const struct sl_train_groups *g, size_t offset)
{
    json_t *list = json_array();
    for (int k = 0; k < g->count; k++)
        json_array_append_new(
            list, json_integer(*(const int64_t *)((const char *)&g->group[k] + offset)));
    return list;
}

static json_t *shares_of(const struct sl_train_groups *g, size_t part, size_t whole)
{
    json_t *list = json_array();
    for (int k = 0; k < g->count; k++) {
        const char *group = (const char *)&g->group[k];
        const double of = (double)*(const int64_t *)(group + whole);
        const double some = (double)*(const int64_t *)(group + part);
        json_array_append_new(list, json_real(of > 0.0 ? some / of : 0.0));
    }
    return list;
}

#define AT(field) offsetof(struct sl_train_group, field)

void sl_train_log_groups(const struct sl_train_run *run, json_t *event)
{
    const struct sl_train_groups *g = &run->groups;
    if (g->count == 0)
        return;
    json_object_set_new(
        event, "groups",
        json_pack("{s:i, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "count", g->count, "ranks",
                  list_of(g, AT(ranks)), "steps_per_epoch", run->trainer.batches.steps, "batches",
                  list_of(g, AT(batches)), "inner_vertices", list_of(g, AT(inner)),
                  "outer_vertices", list_of(g, AT(outer)), "adjacency_entries",
                  list_of(g, AT(entries)), "preloaded_share", shares_of(g, AT(outer), AT(inner)),
                  "redundant_share", shares_of(g, AT(redundant), AT(entries))));
}

static json_t *describe_part(struct sl_train_run *run, const int64_t *figures, const int64_t *sum,
                             bool between)
{
    const int at = between ? 0 : 2, steps = run->trainer.batches.steps;
    const int64_t bytes = sum[at], messages = sum[at + 1];
    json_t *object = json_object();
    json_object_set_new(object, "bytes", sl_train_gather(&run->rt, figures[at]));
    json_object_set_new(object, "messages", sl_train_gather(&run->rt, figures[at + 1]));
    json_object_set_new(object, "bytes_per_step", json_real((double)bytes / steps));
    json_object_set_new(object, "messages_per_step", json_real((double)messages / steps));
    return object;
}

static json_t *describe(struct sl_train_run *run, const struct sl_epoch_traffic *epochs,
                        const int64_t *sum)
{
    int64_t figures[4];
    split_traffic(epochs, figures);
    json_t *between = describe_part(run, figures, sum, true),
           *inside = describe_part(run, figures, sum, false);
    return json_pack("{s:o, s:o}", "between", between, "inside", inside);
}

void sl_train_log_traffic(struct sl_train_run *run, json_t *event)
{
    const struct sl_trainer *trainer = &run->trainer;
    if (run->groups.count < 2)
        return;
    json_object_set_new(event, "traffic_of_groups",
                        describe(run, &trainer->traffic, run->groups.sum[0]));
    if (trainer->exact_traffic.sum_epochs > 0)
        json_object_set_new(event, "exact_traffic_of_groups",
                            describe(run, &trainer->exact_traffic, run->groups.sum[1]));
}

/* ---- The tables ---- */

void sl_train_print_groups(const struct sl_train_run *run)
{
    const struct sl_train_groups *g = &run->groups;
    struct sl_train_group all = {.ranks = 0};
    for (int k = 0; k < g->count; k++) {
        all.inner += g->group[k].inner;
        all.outer += g->group[k].outer;
        all.entries += g->group[k].entries;
        all.redundant += g->group[k].redundant;
    }
    if (g->count == 0)
        return;
    const int steps = run->trainer.batches.steps;
    printf("%d group%s, %d step%s per epoch; outer vertices / inner ones: %.3f, redundant share of "
           "the adjacency: %.3f\n",
           g->count, sl_s(g->count), steps, sl_s(steps),
           all.inner ? (double)all.outer / (double)all.inner : 0.0,
           all.entries ? (double)all.redundant / (double)all.entries : 0.0);
}

void sl_train_sum_traffic(struct sl_train_run *run)
{
    split_traffic(&run->trainer.traffic, run->groups.sum[0]);
    split_traffic(&run->trainer.exact_traffic, run->groups.sum[1]);
    sl_runtime_sum(&run->rt, run->groups.sum[0], 2 * 4);
}

void sl_train_print_traffic(const struct sl_train_run *run)
{
    static const double MB = 1e6;
    const int steps = run->trainer.batches.steps;
    if (run->groups.count < 2)
        return;
    for (int exact = 0; exact < (run->trainer.exact_traffic.sum_epochs > 0 ? 2 : 1); exact++)
        for (int k = 0; k < 2; k++) {
            const int64_t *sum = run->groups.sum[exact] + 2 * k;
            printf("  %-22s %.6f MB in %" PRId64 " message%s per %sepoch, %.6f MB per step\n",
                   k ? "inside groups" : "between groups", (double)sum[0] / MB, sum[1],
                   sl_s(sum[1]), exact ? "exact " : "", (double)sum[0] / MB / steps);
        }
}
