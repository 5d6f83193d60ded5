/* Draw the splits: every labelled vertex gets a random number. In each group (a class, or all
 * vertices) the smallest numbers train, the next ones validate, and so on. No two vertices have the
 * same number. A number depends only on the seed and on the user's number of the vertex. So splits
 * are the same in any vertex order and on any number of ranks.
 *
 * Ranks find the numbers that bound the splits of all groups together, bit by bit from above:
 *
 *     bound = 0
 *     for bit = 63 … 0:
 *         sum over the ranks how many numbers of the group are below bound + 2^bit
 *         if there are no more than the splits before the bound have: bound = bound + 2^bit */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/rng.h"
#include "data/labels.h"
#include "data/part.h"

enum { STREAM = 16, CUTS = 3 };

struct ticket {
    int32_t group;
    uint64_t number;
};

struct drawing {
    const struct sl_part *part;
    bool per_class;
    uint64_t key;
    int64_t groups, count;
    struct ticket *tickets; // (count): this rank's labelled vertices, by group and number
    int64_t *start;         // (groups + 1): first ticket of each group
    int64_t *wanted;        // (groups, CUTS): vertices before each cut, on all ranks
    int64_t *below;         // (groups, CUTS): scratch
    uint64_t *bound;        // (groups, CUTS): vertices with smaller numbers are before the cut
};

/* Return the group of row k of the part; -1: the row has no label. */
static int32_t group_of(const struct drawing *d, int64_t k)
{
    const struct sl_dataset *data = &d->part->data;
    const int32_t *labels = data->labels;
    if (labels && labels[k] < 0)
        return -1;
    if (data->multilabels && !sl_labels_known(data->multilabels + k * data->classes, data->classes))
        return -1;
    return d->per_class ? labels[k] : 0;
}

static uint64_t number_of(const struct drawing *d, int64_t k)
{
    const int64_t *original = d->part->data.original;
    const int64_t vertex = original ? original[k] : d->part->first + k;
    return sl_rng_bits(d->key, (uint32_t)vertex, 0);
}

static int compare_tickets(const void *a, const void *b)
{
    const struct ticket *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void draw_tickets(struct drawing *d)
{
    for (int64_t k = 0; k < d->part->data.adjacency.rows; k++)
        if (group_of(d, k) >= 0)
            d->tickets[d->count++] = (struct ticket){group_of(d, k), number_of(d, k)};
    qsort(d->tickets, (size_t)d->count, sizeof *d->tickets, compare_tickets);
    memset(d->start, 0, (size_t)(d->groups + 1) * sizeof *d->start);
    for (int64_t t = 0; t < d->count; t++)
        d->start[d->tickets[t].group + 1]++;
    for (int64_t g = 0; g < d->groups; g++)
        d->start[g + 1] += d->start[g];
}

/* Count this rank's numbers of a group that are below `bound`. */
static int64_t count_below(const struct drawing *d, int64_t group, uint64_t bound)
{
    int64_t low = d->start[group], high = d->start[group + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (d->tickets[middle].number < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low - d->start[group];
}

static void find_bounds(struct sl_runtime *rt, const struct sl_split_rule *rule, struct drawing *d)
{
    for (int64_t g = 0; g < d->groups; g++)
        d->below[g] = d->start[g + 1] - d->start[g];
    sl_runtime_sum(rt, d->below, d->groups);
    for (int64_t g = 0; g < d->groups; g++)
        sl_split_rule_cut(rule, d->below[g], d->wanted + CUTS * g);
    memset(d->bound, 0, (size_t)(CUTS * d->groups) * sizeof *d->bound);
    for (int bit = 63; bit >= 0; bit--) {
        for (int64_t i = 0; i < CUTS * d->groups; i++)
            d->below[i] = count_below(d, i / CUTS, d->bound[i] | (uint64_t)1 << bit);
        sl_runtime_sum(rt, d->below, CUTS * d->groups);
        for (int64_t i = 0; i < CUTS * d->groups; i++)
            if (d->below[i] <= d->wanted[i])
                d->bound[i] |= (uint64_t)1 << bit;
    }
}

static enum sl_split split_of(const struct drawing *d, int64_t k)
{
    const int32_t group = group_of(d, k);
    const uint64_t number = group < 0 ? 0 : number_of(d, k);
    for (int s = 0; group >= 0 && s < CUTS; s++)
        if (number < d->bound[CUTS * group + s])
            return (enum sl_split)(SL_SPLIT_TRAIN + s);
    return SL_SPLIT_NONE;
}

static int take_splits(const struct drawing *d, struct sl_part *part)
{
    struct sl_index_set *sets[] = {[SL_SPLIT_TRAIN] = &part->data.train,
                                   [SL_SPLIT_VAL] = &part->data.val,
                                   [SL_SPLIT_TEST] = &part->data.test};
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++) {
        int64_t *ids = sl_block_array(&part->data.blocks, d->count, sizeof *ids);
        if (!ids)
            return SL_ERR_SYSTEM;
        *sets[s] = (struct sl_index_set){.ids = ids};
        for (int64_t k = 0; k < part->data.adjacency.rows; k++)
            if (split_of(d, k) == (enum sl_split)s)
                ids[sets[s]->count++] = part->first + k;
    }
    return SL_OK;
}

static int refuse_labels(const struct sl_source *source)
{
    return sl_error(SL_ERR_DATA, "%s: --split needs labels%s", source->path,
                    source->classes < 1
                        ? ", and there are none"
                        : " of one class per vertex (expected shares, as 60/20/20)");
}

int sl_part_draw_splits(struct sl_runtime *rt, const struct sl_source *source, struct sl_part *part)
{
    const struct sl_split_rule *rule = &source->splits.split_rule;
    struct sl_block *scratch = NULL;
    const int64_t groups = rule->per_class ? source->classes : 1, rows = part->data.adjacency.rows;
    struct drawing d = {.part = part,
                        .per_class = rule->per_class,
                        .key = sl_rng_key(rule->seed, SL_RNG_PARTS, 0, STREAM),
                        .groups = groups};
    if (source->classes > 0 && !source->targets.labels.data)
        return SL_OK; /* whoever predicts knows the classes without labels */
    if (source->classes < 1 || (rule->per_class && source->targets.labels.dims != 1))
        return sl_runtime_agree(rt, refuse_labels(source));
    d.tickets = sl_block_array(&scratch, rows, sizeof *d.tickets);
    d.start = sl_block_array(&scratch, groups + 1, sizeof *d.start);
    d.wanted = sl_block_array(&scratch, CUTS * groups, sizeof *d.wanted);
    d.below = sl_block_array(&scratch, CUTS * groups, sizeof *d.below);
    d.bound = sl_block_array(&scratch, CUTS * groups, sizeof *d.bound);
    const bool room = d.tickets && d.start && d.wanted && d.below && d.bound;
    int rc = sl_runtime_agree(rt, room ? SL_OK : SL_ERR_SYSTEM);
    if (!rc) {
        draw_tickets(&d);
        find_bounds(rt, rule, &d);
        rc = sl_runtime_agree(rt, take_splits(&d, part));
    }
    sl_block_free_all(&scratch);
    return rc;
}

/* ---- Once and for all ---- */

static int keep_split(struct sl_source *source, const struct sl_index_set *set, struct sl_npy *out)
{
    int64_t *ids = sl_block_array(&source->blocks, set->count, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    if (set->count)
        memcpy(ids, set->ids, (size_t)set->count * sizeof *ids);
    *out = sl_npy_view("--split", SL_NPY_INT64, 1, set->count, 0, ids);
    return SL_OK;
}

int sl_source_settle_splits(struct sl_source *source)
{
    struct sl_runtime alone = {.ranks = 1};
    struct sl_part part = {0};
    if (!source->splits.split_rule.given)
        return SL_OK;
    int rc = sl_part_read_labels(source, &part);
    if (!rc)
        rc = sl_part_draw_splits(&alone, source, &part);
    const struct sl_index_set *sets[] = {[SL_SPLIT_TRAIN] = &part.data.train,
                                         [SL_SPLIT_VAL] = &part.data.val,
                                         [SL_SPLIT_TEST] = &part.data.test};
    for (int s = SL_SPLIT_TRAIN; !rc && s < SL_SPLITS; s++) {
        rc = keep_split(source, sets[s], &source->splits.split[s]);
        source->splits.mask[s] = false;
    }
    source->splits.split_rule.given = rc != SL_OK;
    sl_part_close(&part);
    return rc;
}
