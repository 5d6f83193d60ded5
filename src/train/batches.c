#include "train/batches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/rng.h"
#include "core/temporary.h"
#include "core/view.h"
#include "data/feature_form.h"
#include "data/labels.h"
#include "data/part.h"
#include "train/batch.h"
#include "train/needed.h"

/* ---- Groups ---- */

/* The group of this rank: with "servers", ranks that share a node. */
static int find_group(const struct sl_batches *b, int64_t *group)
{
    const char *text = b->config->groups;
    struct sl_runtime *rt = b->rt;
    int groups, each, length = -1;
    *group = 0;
    if (!text)
        return 0;
    if (strcmp(text, "servers") == 0) {
        *group = sl_runtime_node(rt);
        return 0;
    }
    if (sscanf(text, "%dx%d%n", &groups, &each, &length) != 2 || text[length] || groups < 1 ||
        each < 1 || (int64_t)groups * each != rt->ranks)
        return sl_error(SL_ERR_USAGE,
                        "--groups %s: this run has %d rank%s (expected servers, or GxP with G "
                        "groups of P ranks)",
                        text, rt->ranks, rt->ranks > 1 ? "s" : "");
    *group = rt->rank / each;
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

/* Keep the vertices of one part. */
static int keep_part(struct sl_batches *b, const int32_t *part, int wanted)
{
    const int64_t n = b->source->vertices;
    int64_t count = 0;
    for (int64_t v = 0; v < n; v++)
        count += !part || part[v] == wanted;
    b->vertex = malloc((size_t)(count + 1) * sizeof *b->vertex);
    b->set_cut = calloc((size_t)(b->how.sets + 1), sizeof *b->set_cut);
    if (!b->vertex || !b->set_cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for the %lld vertices of a group",
                        (long long)count);
    count = 0;
    for (int64_t v = 0; v < n; v++)
        if (!part || part[v] == wanted)
            b->vertex[count++] = v;
    for (int64_t s = 1; s <= b->how.sets; s++)
        b->set_cut[s] = count;
    return 0;
}

int sl_batches_cut(struct sl_batches *b)
{
    const int groups = b->groups.count;
    const bool named = b->config->groups && b->config->partition; /* also the part of one group */
    if ((groups == 1 && !named) || b->independent)
        return sl_runtime_agree(b->rt, keep_part(b, NULL, 0));
    int32_t *part = malloc((size_t)(b->source->vertices + 1) * sizeof *part);
    int code = part ? 0
                    : sl_error(SL_ERR_SYSTEM, "no memory for the parts of %lld vertices",
                               (long long)b->source->vertices);
    code = sl_runtime_agree(b->rt, code);
    if (!code)
        code = sl_source_find_parts(b->rt, b->source, groups, (uint64_t)b->config->seed,
                                    b->config->partition, part);
    if (!code)
        code = sl_runtime_agree(b->rt, keep_part(b, part, b->groups.index));
    free(part);
    return code;
}

/* Sort the group's vertices by set, stably. */
static int sort_sets(struct sl_batches *b, const int32_t *part)
{
    const int64_t count = b->set_cut[b->how.sets], sets = b->how.sets;
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

/* Whether each epoch joins other sets in a batch. Then two batches are in memory: the batch under
 * training, and the next batch. */
static bool rotates(const struct sl_batches *b)
{
    return b->how.each > 1;
}

/* METIS cuts the graph of the group's vertices alone, as the files number them. So the sets are the
 * same in every order of the source. */
static int cut_sets(struct sl_batches *b)
{
    struct sl_runtime *rt = sl_batches_own(b);
    const struct sl_source stored = sl_source_as_stored(b->source);
    const int64_t count = b->set_cut[b->how.sets];
    struct sl_selection graph = {0};
    if (b->how.sets == 1)
        return 0;
    int32_t *part = malloc((size_t)(count + 1) * sizeof *part);
    int code =
        part ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %lld sets", (long long)b->how.sets);
    if (!code)
        code = sl_select(&stored, b->vertex, count,
                         &(struct sl_selection_options){.keeps_last_rows = true}, &graph);
    code = sl_runtime_agree(b->rt, code);
    if (!code)
        code = sl_source_find_parts(rt, &graph.source, (int)b->how.sets, (uint64_t)b->config->seed,
                                    NULL, part);
    for (int64_t k = 0; !code && k < count; k++)
        b->vertex[k] = graph.row[k]; /* part[k] is of this vertex */
    if (!code && rotates(b))
        code = sl_largest_count(b, &graph.source, part);
    if (!code)
        code = sort_sets(b, part);
    sl_selection_free(&graph);
    free(part);
    return sl_runtime_agree(b->rt, code);
}

/* ---- Their sizes ---- */

/* Count each set's vertices, and training vertices with labels, in this group. */
static int count_own(struct sl_batches *b)
{
    const int64_t *vertex = b->vertex;
    int64_t *train = NULL, left = 0, next = 0;
    struct sl_part part = {0};
    int code = sl_part_read_labels(b->source, &part);
    if (!code)
        code = sl_needed_keep(b->source, SL_SPLIT_TRAIN, vertex, b->set_cut[b->how.sets], &train,
                              &left);
    for (int64_t s = 0; !code && s < b->how.sets; s++)
        for (int64_t k = b->set_cut[s]; k < b->set_cut[s + 1]; k++) {
            const bool trains = next < left && train[next] == vertex[k];
            b->size[s].inner += trains || !b->how.needed;
            b->size[s].train += trains && sl_labels_find(&part.data, vertex[k]) >= 0;
            next += trains;
        }
    free(train);
    sl_part_close(&part);
    return code;
}

/* Sizes of all batches that are drawn later follow from the sizes of sets. Groups of one model have
 * the sets of one number in the same step. */
static int count_sets(struct sl_batches *b)
{
    struct sl_runtime *own = sl_batches_own(b);
    b->size = calloc((size_t)b->how.sets, sizeof *b->size);
    int code = b->size ? count_own(b)
                       : sl_error(SL_ERR_SYSTEM, "no memory for the sizes of %lld sets",
                                  (long long)b->how.sets);
    code = sl_runtime_agree(b->rt, code);
    if (code || b->independent)
        return code;
    if (own->rank > 0) /* once for each group */
        memset(b->size, 0, (size_t)b->how.sets * sizeof *b->size);
    sl_runtime_sum(b->rt, &b->size->inner, 2 * b->how.sets);
    return 0;
}

int sl_batches_cut_part(struct sl_batches *b, const int32_t *part, int group)
{
    int code = sl_runtime_agree(b->rt, keep_part(b, part, group));
    return code ? code : cut_sets(b);
}

/* ---- All batches ---- */

/* Those of the whole graph; the first layer may have aggregated features there. */
static int copy_orders(struct sl_batches *b)
{
    const struct sl_network *net = &b->whole->network;
    b->orders = malloc((size_t)net->layers * sizeof *b->orders);
    if (!b->orders)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d layers", net->layers);
    for (int l = 0; l < net->layers; l++)
        b->orders[l] = net->layer[l].order == SL_AGGREGATED ? -1 : (int)net->layer[l].order;
    return 0;
}

int sl_batches_options_steps(const struct sl_batches_options *o)
{
    return (int)((o->sets + o->each - 1) / o->each);
}

static int create_lists(struct sl_batches *b)
{
    b->steps = sl_batches_options_steps(&b->how);
    b->count = rotates(b) ? 2 : b->steps;
    b->batch = calloc((size_t)b->count, sizeof *b->batch);
    if (!b->batch)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d batches", b->count);
    for (int k = 0; k < b->count; k++)
        b->batch[k].version = -1;
    return copy_orders(b);
}

bool sl_batches_are_drawn(const struct sl_batches *b)
{
    return rotates(b) || (b->how.sampled && b->config->resample > 0);
}

/* Whether features can be read for each step, on distributions that have whole rows of vertices. A
 * matrix that is stored column by column has no rows to read at a time. */
static bool reads_rows(const struct sl_batches *b)
{
    return b->how.sets > 1 && !sl_config_aggregates(b->config) &&
           sl_features_part_form(b->source) == SL_FEATURES_DENSE &&
           !b->source->features_dense.fortran_order;
}

/* Whether even and odd sets take turns, on all distributions alike. */
static bool takes_turns(const struct sl_batches *b)
{
    return reads_rows(b) && !rotates(b);
}

bool sl_batches_read_features(const struct sl_batches *b)
{
    return reads_rows(b) && !sl_config_kind(b->config)->clones;
}

/* Samples and clusters have sums with their own degrees; clones that never meet, of their own
 * edges. */
bool sl_batches_read_aggregated(const struct sl_config *config,
                                const struct sl_batches_options *options)
{
    const bool meets = !sl_config_kind(config)->clones || sl_config_delay(config) == SL_DELAY_EXACT;
    return sl_config_aggregates(config) && meets && !options->kind->alone && !options->sampled;
}

bool sl_batches_read_source(const struct sl_batches *b)
{
    bool reads = sl_batches_are_drawn(b);
    for (int k = 0; k < b->count; k++)
        reads = reads || b->batch[k].pass.operands.stored.row;
    return reads;
}

/* ---- Tags ---- */

/* StarPU never forgets a tag, so batches that are drawn anew take turns in sets of tags. Draws come
 * in blocks: an epoch, or fewer steps. When a block begins, all ranks agree: they have drawn all
 * blocks before, and have destroyed all batches of the block before the last one. Blocks
 * of even number share one set of tags, and blocks of odd number another. The batches in memory at
 * first have tags of their own. */
enum { MOST_DRAWS = 32 }; /* of a block, where two batches are in memory */

static int64_t draws_of_block(const struct sl_batches *b)
{
    return !rotates(b) ? b->count : b->steps < MOST_DRAWS ? b->steps : MOST_DRAWS;
}

static int64_t tags_of_batch(const struct sl_batches *b)
{
    return SL_VIEW_TAGS / 4 / (2 * draws_of_block(b) + b->count);
}

static void reserve_tags(struct sl_batches *b)
{
    const int64_t count = tags_of_batch(b) * (2 * draws_of_block(b) + b->count);
    if (!sl_batches_are_drawn(b))
        return;
    b->first_tag[0] = sl_temporary_tags(b->rt, count);
    if (b->groups.count > 1)
        b->first_tag[1] = sl_temporary_tags(&b->own, count);
}

/* The batch's tags begin anew. */
static void take_tags(const struct sl_batches *b, struct sl_batch *batch)
{
    const int64_t draws = draws_of_block(b), k = batch - b->batch,
                  set = !b->draws    ? 2 * draws + k
                        : rotates(b) ? batch->version % (2 * draws)
                                     : batch->version % 2 * draws + k;
    for (int v = 0; v < 2; v++)
        batch->next_tag[v] = b->first_tag[v] + set * tags_of_batch(b);
}

/* All ranks agree where a block of draws begins. */
static void begin_block(struct sl_batches *b, int64_t epoch, int64_t version)
{
    const int64_t block = rotates(b) ? version / draws_of_block(b) : epoch;
    if (b->agreed != block)
        sl_runtime_agree(b->rt, 0);
    b->agreed = block;
}

/* The views go on with the tags of a batch, or the batch gets them back. */
static void swap_tags(struct sl_batches *b, struct sl_batch *batch)
{
    struct sl_runtime *view[] = {b->rt, &b->own};
    for (int v = 0; v < 2; v++) {
        const int64_t next = view[v]->next_tag;
        if (b->first_tag[v] == 0)
            continue;
        view[v]->next_tag = batch->next_tag[v];
        batch->next_tag[v] = next;
    }
}

static void enter(struct sl_batches *b, struct sl_batch *batch)
{
    sl_batches_leave(b);
    swap_tags(b, batch);
    b->in_use = batch;
}

void sl_batches_leave(struct sl_batches *b)
{
    if (b->in_use)
        swap_tags(b, b->in_use);
    b->in_use = NULL;
}

/* ---- Draws ---- */

/* The set at a place of the epoch's random order. Where features of sets have two places in turns,
 * even and odd sets do. The first set is now even, now odd, where they are equally many. */
int64_t sl_batches_set_at(const struct sl_batches *b, int64_t epoch, int64_t place)
{
    const int64_t sets = b->how.sets, halves = takes_turns(b) ? 2 : 1;
    const int64_t half = (place + (sets % 2 ? 0 : epoch)) % halves;
    const int64_t count = (sets + halves - 1 - half) / halves;
    const uint64_t key =
        sl_rng_key((uint64_t)b->config->seed, SL_RNG_BATCHES, (uint32_t)epoch, (uint32_t)half);
    return half +
           halves * (int64_t)sl_rng_permute(key, (uint32_t)count, (uint32_t)(place / halves));
}

/* How often samples were drawn anew before an epoch. */
static int64_t draw_of(const struct sl_batches *b, int64_t epoch)
{
    return b->how.sampled && b->config->resample > 0 ? (epoch - 1) / b->config->resample : 0;
}

int64_t sl_batches_take(const struct sl_batches *b, int64_t epoch, int step, int64_t *inner)
{
    const int64_t first = step * b->how.each, sets = b->how.sets,
                  end = first + b->how.each < sets ? first + b->how.each : sets;
    int64_t count = 0;
    for (int64_t p = first; p < end; p++) {
        const int64_t s = sl_batches_set_at(b, epoch, p), size = b->set_cut[s + 1] - b->set_cut[s];
        memcpy(inner + count, b->vertex + b->set_cut[s], (size_t)size * sizeof *inner);
        count += size;
    }
    return count;
}

/* Count the batch's inner and training vertices, in all groups. */
static void add_sizes(const struct sl_batches *b, int64_t epoch, int step, struct sl_batch *batch)
{
    const int64_t first = step * b->how.each, sets = b->how.sets,
                  end = first + b->how.each < sets ? first + b->how.each : sets;
    batch->size = (struct sl_set_size){0};
    for (int64_t p = first; p < end; p++) {
        const struct sl_set_size *size = &b->size[sl_batches_set_at(b, epoch, p)];
        batch->size.inner += size->inner;
        batch->size.train += size->train;
    }
}

static int draw_batch(struct sl_batches *b, int64_t epoch, int step, struct sl_batch *batch)
{
    int64_t *inner = malloc((size_t)(b->set_cut[b->how.sets] + 1) * sizeof *inner), count = 0;
    int code = inner ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the vertices of a batch");
    sl_runtime_fail_alone(b->draws);
    code = sl_runtime_agree(b->rt, code);
    add_sizes(b, epoch, step, batch);
    if (!code)
        count = sl_batches_take(b, epoch, step, inner);
    if (!code)
        code = sl_batch_make(b, inner, count, (uint32_t)draw_of(b, epoch), batch);
    free(inner);
    return code;
}

static int64_t version_of(const struct sl_batches *b, int64_t epoch, int step)
{
    return rotates(b) ? (epoch - 1) * b->steps + step : draw_of(b, epoch);
}

/* Batches that are drawn anew are in turns in two places: the batch before is trained on. */
static struct sl_batch *batch_of(struct sl_batches *b, int64_t epoch, int step)
{
    return &b->batch[rotates(b) ? version_of(b, epoch, step) % b->count
                                : sl_batches_set_at(b, epoch, step)];
}

/* Make the batch of a step in place of another one, unless it is there. */
static int renew(struct sl_batches *b, int64_t epoch, int step, struct sl_batch *batch)
{
    const int64_t version = version_of(b, epoch, step);
    if (batch->version == version)
        return 0;
    if (batch->version >= 0)
        sl_batch_destroy(batch);
    batch->version = version;
    if (b->draws)
        begin_block(b, epoch, version);
    take_tags(b, batch);
    enter(b, batch);
    const int code = draw_batch(b, epoch, step, batch);
    sl_batches_leave(b);
    return code;
}

/* Make the batch of a step, unless it is there. */
static int find_batch(struct sl_batches *b, int64_t epoch, int step, struct sl_batch **batch)
{
    *batch = batch_of(b, epoch, step);
    return renew(b, epoch, step, *batch);
}

/* Make the batch of that number through all epochs in place `k`. */
static int make_version(struct sl_batches *b, int64_t version, int64_t k)
{
    const int code =
        renew(b, version / b->steps + 1, (int)(version % b->steps), &b->batch[k % b->count]);
    return code ? code : sl_batches_allocate(b);
}

/* Make the largest batches first: places, handles and the plan are then as large as the run needs.
 * Features have a place in each of the two. */
static int make_largest(struct sl_batches *b)
{
    int64_t widest, pair;
    int code = sl_largest_find(b, &widest, &pair);
    for (int k = 0; !code && k < (sl_batches_read_features(b) ? b->count : 1); k++)
        code = make_version(b, widest, widest + k);
    for (int k = 0; !code && k < b->count; k++)
        code = make_version(b, pair + k, pair + k);
    return code;
}

static int make_sets(struct sl_batches *b)
{
    struct sl_batch *batch;
    int code = 0;
    for (int s = 0; !code && s < b->count; s++)
        code = find_batch(b, 1, s, &batch);
    return code ? code : sl_batches_allocate(b);
}

static bool validates_apart(const struct sl_batches *b)
{
    return b->how.needed && b->groups.count == 1 && !b->independent &&
           sl_config_evaluates(b->config);
}

/* The workers of each rank of this rank's group. */
static int share_workers(struct sl_batches *b)
{
    struct sl_runtime *rt = sl_batches_own(b);
    const int workers = rt->process->workers;
    b->workers = malloc((size_t)rt->ranks * sizeof *b->workers);
    const int code = sl_runtime_agree(
        b->rt,
        b->workers ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a list of %d ranks", rt->ranks));
    if (!code)
        sl_runtime_gather(rt, workers > 0 ? workers : 1, b->workers);
    return code;
}

static int create_all(struct sl_batches *b)
{
    int code = sl_runtime_agree(b->rt, create_lists(b));
    if (!code)
        code = share_workers(b);
    if (!code)
        code = sl_batches_cut(b);
    if (!code)
        code = cut_sets(b);
    if (!code)
        code = count_sets(b);
    if (!code)
        reserve_tags(b);
    if (!code && validates_apart(b))
        code = sl_batch_make_validation(b, &b->validation);
    return code ? code : rotates(b) ? make_largest(b) : make_sets(b);
}

int sl_batches_open(struct sl_batches *b, struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_config *config, struct sl_pass *whole,
                    const struct sl_rates *core)
{
    *b = (struct sl_batches){.config = config,
                             .source = source,
                             .rt = rt,
                             .whole = whole,
                             .core = core,
                             .steps = 1,
                             .tiles = sl_batches_tiles(config),
                             .agreed = -1,
                             .places = {.shared = true}};
    const int code = sl_batches_parse(config, &b->how);
    return code ? code : sl_batches_group(b);
}

/* Of several models that train on the whole graph, where it is. */
static int create_whole(struct sl_batches *b)
{
    int code = sl_runtime_agree(b->rt, create_lists(b));
    if (!code)
        code = sl_batch_make_whole(b, &b->batch[0]);
    return code ? code : sl_batches_allocate(b);
}

int sl_batches_create(struct sl_batches *b, struct sl_model **model, int models, bool independent)
{
    b->model = model;
    b->models = models;
    b->independent = independent;
    if (sl_batches_differ(b->config))
        return create_all(b);
    return independent ? create_whole(b) : 0;
}

void sl_batches_clear(struct sl_batches *b)
{
    sl_batches_leave(b);
    for (int k = 0; k < b->count; k++)
        sl_batch_destroy(&b->batch[k]);
    sl_batch_destroy(&b->validation);
    b->count = 0;
}

void sl_batches_destroy(struct sl_batches *b)
{
    sl_batches_clear(b);
    sl_places_free(&b->places);
    if (b->groups.count > 1) {
        sl_groups_destroy(&b->groups);
        sl_view_free(&b->own);
    }
    free(b->batch);
    free(b->model);
    free(b->orders);
    free(b->vertex);
    free(b->set_cut);
    free(b->edges);
    free(b->size);
    free(b->workers);
    *b = (struct sl_batches){0};
}

/* Tiles of the whole graph are planned already. */
static void plan_batch(const struct sl_batches *b, const struct sl_batch *batch,
                       struct sl_plan *plan)
{
    if (sl_batches_differ(b->config))
        sl_plan_add_turn(&batch->pass.operands, &batch->pass.network, plan);
    else
        sl_plan_add_other(&batch->pass.network, plan);
    for (int m = 1; m < b->models; m++)
        sl_plan_add_other(&batch->more[m - 1], plan);
}

void sl_batches_plan(const struct sl_batches *b, struct sl_plan *plan)
{
    for (int k = 0; k < b->count; k++)
        if (b->batch[k].version >= 0)
            plan_batch(b, &b->batch[k], plan);
    if (b->validation.pass.network.rt)
        plan_batch(b, &b->validation, plan);
    sl_plan_add_places(&b->places, plan);
    sl_plan_add_up(plan);
}

struct sl_network *sl_batches_network(struct sl_batches *b, int64_t epoch, int step, int model)
{
    struct sl_batch *batch;
    sl_batches_leave(b);
    if (b->count == 0)
        return &b->whole->network;
    const bool there = batch_of(b, epoch, step)->version == version_of(b, epoch, step);
    b->draws = !there;
    const int code = find_batch(b, epoch, step, &batch);
    if (code || (!there && sl_batches_allocate(b)))
        sl_fatal("batch %d of epoch %lld: %s", step + 1, (long long)epoch, sl_error_message());
    sl_runtime_fail_alone(false);
    b->draws = false;
    enter(b, batch);
    if (batch->pass.graph.train_count == 0)
        return NULL;
    sl_batch_load(b, batch);
    return model > 0 ? &batch->more[model - 1] : &batch->pass.network;
}
