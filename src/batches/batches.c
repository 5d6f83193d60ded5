#include "batches/batches.h"

#include <stdlib.h>

#include "batches/batch.h"
#include "batches/sets.h"
#include "core/error.h"
#include "core/temporary.h"
#include "core/view.h"

/* ---- All batches ---- */

/* Copy the product orders of the whole graph's network; -1 for a layer whose sums are made before
 * training, since a batch may lack such sums. */
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

struct sl_batches_tiles sl_batches_tiles(const struct sl_config *config)
{
    return (struct sl_batches_tiles){config->machine.tiles, config->machine.tiles,
                                     config->machine.tiles, (int)config->machine.tiles};
}

static int create_lists(struct sl_batches *b)
{
    b->steps = sl_batches_options_steps(&b->options);
    const int count = sl_batches_rotate(b) ? 2 : b->steps;
    b->batch = calloc((size_t)count, sizeof *b->batch);
    if (!b->batch)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d batches", count);
    b->count = count;
    for (int k = 0; k < b->count; k++)
        b->batch[k].version = -1;
    return copy_orders(b);
}

bool sl_batches_read_source(const struct sl_batches *b)
{
    bool reads = sl_batches_are_drawn(b);
    for (int k = 0; k < b->count; k++)
        reads = reads || b->batch[k].pass.operands.stored.row;
    return reads;
}

/* ---- Tags ---- */

/* StarPU never forgets a tag, so batches that are drawn anew share two sets of tags. Draws come in
 * blocks: an epoch, or fewer steps. When a block begins, all ranks agree: they have drawn all
 * blocks before, and have destroyed all batches of the block before the last one. Blocks of even
 * number share one set of tags, and blocks of odd number another. The first batches in memory have
 * tags of their own. */
enum { MOST_DRAWS = 32 }; /* draws of a block, where two batches are in memory */

static int64_t draws_of_block(const struct sl_batches *b)
{
    return !sl_batches_rotate(b) ? b->count : b->steps < MOST_DRAWS ? b->steps : MOST_DRAWS;
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
    b->drawn.first_tag[0] = sl_temporary_tags(b->rt, count);
    if (b->groups.count > 1)
        b->drawn.first_tag[1] = sl_temporary_tags(&b->own, count);
}

/* Reset the batch's tags to the first of its set. */
static void take_tags(const struct sl_batches *b, struct sl_batch *batch)
{
    const int64_t draws = draws_of_block(b), k = batch - b->batch,
                  set = !b->drawn.draws        ? 2 * draws + k
                        : sl_batches_rotate(b) ? batch->version % (2 * draws)
                                               : batch->version % 2 * draws + k;
    for (int v = 0; v < 2; v++)
        batch->next_tag[v] = b->drawn.first_tag[v] + set * tags_of_batch(b);
}

/* Let all ranks agree before the first draw of a block. */
static void begin_block(struct sl_batches *b, int64_t epoch, int64_t version)
{
    const int64_t block = sl_batches_rotate(b) ? version / draws_of_block(b) : epoch;
    if (b->drawn.agreed != block)
        sl_runtime_agree(b->rt, 0);
    b->drawn.agreed = block;
}

/* Exchange the next tags of the views and of the batch. */
static void swap_tags(struct sl_batches *b, struct sl_batch *batch)
{
    struct sl_runtime *view[] = {b->rt, &b->own};
    for (int v = 0; v < 2; v++) {
        const int64_t next = view[v]->next_tag;
        if (b->drawn.first_tag[v] == 0)
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

/* Return how many times samples were drawn anew before an epoch. */
static int64_t draw_of(const struct sl_batches *b, int64_t epoch)
{
    return b->options.sampled && b->config->steps.resample > 0
               ? (epoch - 1) / b->config->steps.resample
               : 0;
}

/* Count the batch's inner and training vertices, in all groups. */
static void add_sizes(const struct sl_batches *b, int64_t epoch, int step, struct sl_batch *batch)
{
    const int64_t first = step * b->options.each, sets = b->options.sets,
                  end = first + b->options.each < sets ? first + b->options.each : sets;
    batch->size = (struct sl_set_size){0};
    for (int64_t p = first; p < end; p++) {
        const struct sl_set_size *size = &b->size[sl_batches_set_at(b, epoch, p)];
        batch->size.inner += size->inner;
        batch->size.train += size->train;
    }
}

static int draw_batch(struct sl_batches *b, int64_t epoch, int step, struct sl_batch *batch)
{
    int64_t *inner = malloc((size_t)(b->set_cut[b->options.sets] + 1) * sizeof *inner), count = 0;
    int code = inner ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the vertices of a batch");
    sl_runtime_fail_alone(b->drawn.draws);
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
    return sl_batches_rotate(b) ? (epoch - 1) * b->steps + step : draw_of(b, epoch);
}

/* Return the place of a step's batch. Batches that are drawn anew use two places in turn, because
 * the batch before still trains. */
static struct sl_batch *batch_of(struct sl_batches *b, int64_t epoch, int step)
{
    return &b->batch[sl_batches_rotate(b) ? version_of(b, epoch, step) % b->count
                                          : sl_batches_set_at(b, epoch, step)];
}

/* Make the batch of a step in place of another one, unless it is already there. */
static int renew(struct sl_batches *b, int64_t epoch, int step, struct sl_batch *batch)
{
    const int64_t version = version_of(b, epoch, step);
    if (batch->version == version)
        return 0;
    if (batch->version >= 0)
        sl_batch_destroy(batch);
    batch->version = version;
    if (b->drawn.draws)
        begin_block(b, epoch, version);
    take_tags(b, batch);
    enter(b, batch);
    const int code = draw_batch(b, epoch, step, batch);
    sl_batches_leave(b);
    return code;
}

/* Set *batch to the batch of a step. Make it unless it exists. */
static int find_batch(struct sl_batches *b, int64_t epoch, int step, struct sl_batch **batch)
{
    *batch = batch_of(b, epoch, step);
    return renew(b, epoch, step, *batch);
}

/* Make batch number `version`, of all epochs, in place `k`. */
static int make_version(struct sl_batches *b, int64_t version, int64_t k)
{
    const int code =
        renew(b, version / b->steps + 1, (int)(version % b->steps), &b->batch[k % b->count]);
    return code ? code : sl_batches_allocate(b);
}

/* Make the largest batches first: places, handles and the plan are then as large as the run needs.
 * With features that are read, the widest batch is made in both places of features. */
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
    return b->options.needed && b->groups.count == 1 && !b->independent &&
           sl_config_evaluates(b->config);
}

/* Set b->workers to the number of workers on each rank of this rank's group. */
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
        code = sl_batches_cut_sets(b);
    if (!code)
        code = sl_batches_count_sets(b);
    if (!code)
        reserve_tags(b);
    if (!code && validates_apart(b))
        code = sl_batch_make_validation(b, &b->validation);
    return code ? code : sl_batches_rotate(b) ? make_largest(b) : make_sets(b);
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
                             .options = sl_config_batches(config),
                             .steps = 1,
                             .tiles = sl_batches_tiles(config),
                             .drawn.agreed = -1,
                             .places = {.shared = true}};
    return sl_batches_group(b);
}

/* Make the networks of the models that train on the whole graph. */
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

/* Add a batch to the plan. The plan already has the tiles of the whole graph. */
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
    b->drawn.draws = !there;
    const int code = find_batch(b, epoch, step, &batch);
    if (code || (!there && sl_batches_allocate(b)))
        sl_fatal("batch %d of epoch %lld: %s", step + 1, (long long)epoch, sl_error_message());
    sl_runtime_fail_alone(false);
    b->drawn.draws = false;
    enter(b, batch);
    if (batch->pass.graph.train_count == 0)
        return NULL;
    sl_batch_load(b, batch);
    return model > 0 ? &batch->more[model - 1] : &batch->pass.network;
}
