#include "batches/sets.h"

#include <stdlib.h>
#include <string.h>

#include "batches/needed.h"
#include "core/error.h"
#include "core/rng.h"
#include "core/view.h"
#include "data/feature_form.h"
#include "data/labels.h"
#include "data/part.h"

/* ---- What follows from the options ---- */

bool sl_batches_rotate(const struct sl_batches *b)
{
    return b->options.each > 1;
}

bool sl_batches_are_drawn(const struct sl_batches *b)
{
    return sl_batches_rotate(b) || (b->options.sampled && b->config->steps.resample > 0);
}

/* Whether features can be read for each step: the distribution keeps whole rows of vertices, and
 * the files have these rows, not column by column. */
static bool reads_rows(const struct sl_batches *b)
{
    return b->options.sets > 1 && !sl_config_aggregates(b->config) &&
           sl_features_part_form(b->source) == SL_FEATURES_DENSE &&
           b->source->change.projection.columns == 0 && !b->source->features_dense.fortran_order;
}

bool sl_batches_read_features(const struct sl_batches *b)
{
    return reads_rows(b) && !sl_config_kind(b->config)->clones;
}

/* Whether even and odd sets take turns. The answer is the same on all distributions. */
static bool takes_turns(const struct sl_batches *b)
{
    return reads_rows(b) && !sl_batches_rotate(b);
}

/* ---- Groups ---- */

/* Set *group to the group of this rank. With "servers", ranks that share a node are a group. */
static int find_group(const struct sl_batches *b, int64_t *group)
{
    const struct sl_group_shape *shape = &b->config->steps.groups;
    struct sl_runtime *rt = b->rt;
    *group = 0;
    if (!shape->given)
        return 0;
    if (shape->servers) {
        *group = sl_runtime_node(rt);
        return 0;
    }
    if ((int64_t)shape->groups * shape->each != rt->ranks)
        return sl_error(SL_ERR_USAGE,
                        "--groups %dx%d: this run has %d rank%s (expected servers, or GxP with G "
                        "groups of P ranks)",
                        shape->groups, shape->each, rt->ranks, rt->ranks > 1 ? "s" : "");
    *group = rt->rank / shape->each;
    return 0;
}

int sl_batches_group(struct sl_batches *b)
{
    int64_t group;
    int code = sl_runtime_agree(b->rt, find_group(b, &group));
    if (code)
        return code;
    if (-sl_runtime_least(b->rt, -group) == 0) {
        b->groups = (struct sl_groups){.count = 1};
        return 0;
    }
    code = sl_view_split(b->rt, (int)group, &b->own);
    return code ? code : sl_groups_create(&b->groups, b->rt, &b->own, (int)group);
}

/* ---- Sets ---- */

/* Keep the vertices of part `wanted` as this group's. */
static int keep_part(struct sl_batches *b, const int32_t *part, int wanted)
{
    const int64_t n = b->source->vertices;
    int64_t count = 0;
    for (int64_t v = 0; v < n; v++)
        count += !part || part[v] == wanted;
    b->vertex = malloc((size_t)(count + 1) * sizeof *b->vertex);
    b->set_cut = calloc((size_t)(b->options.sets + 1), sizeof *b->set_cut);
    if (!b->vertex || !b->set_cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for the %lld vertices of a group",
                        (long long)count);
    count = 0;
    for (int64_t v = 0; v < n; v++)
        if (!part || part[v] == wanted)
            b->vertex[count++] = v;
    for (int64_t s = 1; s <= b->options.sets; s++)
        b->set_cut[s] = count;
    return 0;
}

int sl_batches_cut(struct sl_batches *b)
{
    const int groups = b->groups.count;
    const bool named =
        b->config->steps.groups.given && b->config->ranks.partition; /* one group: its part */
    if ((groups == 1 && !named) || b->independent)
        return sl_runtime_agree(b->rt, keep_part(b, NULL, 0));
    int32_t *part = malloc((size_t)(b->source->vertices + 1) * sizeof *part);
    int code = part ? 0
                    : sl_error(SL_ERR_SYSTEM, "no memory for the parts of %lld vertices",
                               (long long)b->source->vertices);
    code = sl_runtime_agree(b->rt, code);
    if (!code)
        code = sl_source_find_parts(b->rt, b->source, groups, (uint64_t)b->config->training.seed,
                                    b->config->ranks.partition, part);
    if (!code)
        code = sl_runtime_agree(b->rt, keep_part(b, part, b->groups.index));
    free(part);
    return code;
}

/* Sort the group's vertices by set, stably. */
static int sort_sets(struct sl_batches *b, const int32_t *part)
{
    const int64_t count = b->set_cut[b->options.sets], sets = b->options.sets;
    int64_t *sorted = malloc((size_t)(count + 1) * sizeof *sorted);
    int64_t *next = calloc((size_t)(sets + 1), sizeof *next);
    if (!sorted || !next) {
        free(sorted);
        free(next);
        return sl_error(SL_ERR_SYSTEM, "no memory for %lld vertices in sets", (long long)count);
    }
    for (int64_t k = 0; k < count; k++)
        next[part[k] + 1]++;
    for (int64_t s = 0; s < sets; s++)
        next[s + 1] += next[s];
    memcpy(b->set_cut, next, (size_t)(sets + 1) * sizeof *next);
    for (int64_t k = 0; k < count; k++)
        sorted[next[part[k]]++] = b->vertex[k];
    free(next);
    free(b->vertex);
    b->vertex = sorted;
    return 0;
}

/* Count the edges between sets in b->edges, unless there are too many sets. `graph`: the group's
 * vertices; part (vertices): the set of each vertex. */
static int count_edges(struct sl_batches *b, const struct sl_source *graph, const int32_t *part)
{
    enum { MOST_SETS = 1024 };
    const int64_t sets = b->options.sets;
    if (sets > MOST_SETS)
        return 0;
    b->edges = calloc((size_t)(sets * sets), sizeof *b->edges);
    if (!b->edges)
        return sl_error(SL_ERR_SYSTEM, "no memory for the edges of %lld clusters", (long long)sets);
    const struct sl_npy *indptr = &graph->adjacency.indptr, *indices = &graph->adjacency.indices;
    for (int64_t k = 0; k < graph->vertices; k++)
        for (int64_t e = sl_npy_integer(indptr, k); e < sl_npy_integer(indptr, k + 1); e++)
            b->edges[part[k] * sets + part[sl_npy_integer(indices, e)]]++;
    return 0;
}

/* METIS cuts the graph of the group's vertices alone, as the files number them. So the sets do not
 * depend on the vertex order of the source. */
int sl_batches_cut_sets(struct sl_batches *b)
{
    struct sl_runtime *rt = sl_batches_own(b);
    const struct sl_source stored = sl_source_as_stored(b->source);
    const int64_t count = b->set_cut[b->options.sets];
    struct sl_selection graph = {0};
    if (b->options.sets == 1)
        return 0;
    int32_t *part = malloc((size_t)(count + 1) * sizeof *part);
    int code =
        part ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %lld sets", (long long)b->options.sets);
    if (!code)
        code = sl_select(&stored, b->vertex, count,
                         &(struct sl_selection_options){.keeps_last_rows = true}, &graph);
    code = sl_runtime_agree(b->rt, code);
    if (!code)
        code = sl_source_find_parts(rt, &graph.source, (int)b->options.sets,
                                    (uint64_t)b->config->training.seed, NULL, part);
    for (int64_t k = 0; !code && k < count; k++)
        b->vertex[k] = graph.row[k]; /* part[k] is the set of this vertex */
    if (!code && sl_batches_rotate(b))
        code = count_edges(b, &graph.source, part);
    if (!code)
        code = sort_sets(b, part);
    sl_selection_free(&graph);
    free(part);
    return sl_runtime_agree(b->rt, code);
}

/* ---- Their sizes ---- */

/* Count each set's vertices, and its training vertices with labels, in this group. */
static int count_own(struct sl_batches *b)
{
    const int64_t *vertex = b->vertex;
    int64_t *train = NULL, left = 0, next = 0;
    struct sl_part part = {0};
    int code = sl_part_read_labels(b->source, &part);
    if (!code)
        code = sl_needed_keep(b->source, SL_SPLIT_TRAIN, vertex, b->set_cut[b->options.sets],
                              &train, &left);
    for (int64_t s = 0; !code && s < b->options.sets; s++)
        for (int64_t k = b->set_cut[s]; k < b->set_cut[s + 1]; k++) {
            const bool trains = next < left && train[next] == vertex[k];
            b->size[s].inner += trains || !b->options.needed;
            b->size[s].train += trains && sl_labels_find(&part.data, vertex[k]) >= 0;
            next += trains;
        }
    free(train);
    sl_part_close(&part);
    return code;
}

/* Sizes of all batches that are drawn later follow from the sizes of sets. All groups take set k in
 * the same step. */
int sl_batches_count_sets(struct sl_batches *b)
{
    struct sl_runtime *own = sl_batches_own(b);
    b->size = calloc((size_t)b->options.sets, sizeof *b->size);
    int code = b->size ? count_own(b)
                       : sl_error(SL_ERR_SYSTEM, "no memory for the sizes of %lld sets",
                                  (long long)b->options.sets);
    code = sl_runtime_agree(b->rt, code);
    if (code || b->independent)
        return code;
    if (own->rank > 0) /* count once for each group */
        memset(b->size, 0, (size_t)b->options.sets * sizeof *b->size);
    sl_runtime_sum(b->rt, &b->size->inner, 2 * b->options.sets);
    return 0;
}

int sl_batches_cut_part(struct sl_batches *b, const int32_t *part, int group)
{
    int code = sl_runtime_agree(b->rt, keep_part(b, part, group));
    return code ? code : sl_batches_cut_sets(b);
}

/* ---- The sets of a step ---- */

/* Return the set at a place of the epoch's random order. Where features have two places in turn,
 * even and odd sets alternate. If there are as many even as odd sets, an epoch may begin with
 * either. */
int64_t sl_batches_set_at(const struct sl_batches *b, int64_t epoch, int64_t place)
{
    const int64_t sets = b->options.sets, halves = takes_turns(b) ? 2 : 1;
    const int64_t half = (place + (sets % 2 ? 0 : epoch)) % halves;
    const int64_t count = (sets + halves - 1 - half) / halves;
    const uint64_t key = sl_rng_key((uint64_t)b->config->training.seed, SL_RNG_BATCHES,
                                    (uint32_t)epoch, (uint32_t)half);
    return half +
           halves * (int64_t)sl_rng_permute(key, (uint32_t)count, (uint32_t)(place / halves));
}

int64_t sl_batches_take(const struct sl_batches *b, int64_t epoch, int step, int64_t *inner)
{
    const int64_t first = step * b->options.each, sets = b->options.sets,
                  end = first + b->options.each < sets ? first + b->options.each : sets;
    int64_t count = 0;
    for (int64_t p = first; p < end; p++) {
        const int64_t s = sl_batches_set_at(b, epoch, p), size = b->set_cut[s + 1] - b->set_cut[s];
        memcpy(inner + count, b->vertex + b->set_cut[s], (size_t)size * sizeof *inner);
        count += size;
    }
    return count;
}
