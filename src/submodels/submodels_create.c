/* Makes sub-models, their slots and their memory plan. */
#include <stdlib.h>

#include "core/error.h"
#include "core/view.h"
#include "predict/plan.h"
#include "submodels/blocked_evaluation.h"
#include "submodels/submodel_tiles.h"

/* ---- Who has which ---- */

static int groups_of(const struct sl_submodels *s)
{
    return s->groups ? s->groups->count : 1;
}

static int first_of(const struct sl_submodels *s, int group)
{
    return (int)((int64_t)s->count * group / groups_of(s));
}

static int group_of(const struct sl_submodels *s, int part)
{
    int group = 0;
    while (first_of(s, group + 1) <= part)
        group++;
    return group;
}

/* Return the rank that owns a sub-model's parameters. */
static int root_of(const struct sl_submodels *s, int part)
{
    return s->groups ? s->groups->first[group_of(s, part)] : 0;
}

/* ---- Shapes ---- */

/* Whether the optimizer counts steps for each entry of a layer. An entry whose input and output are
 * both split is updated in some rounds only. A single sub-model counts as plain training does, to
 * the same bits. */
static bool is_counted(const struct sl_submodels *s, int layer)
{
    return s->count > 1 && s->rounds.split[s->axes.in[layer]] &&
           s->rounds.split[s->axes.out[layer]] && s->store->kinds == 1 + SL_STATES &&
           !s->config->units.reset_optimizer;
}

static struct sl_layer_shape shape_of(const struct sl_submodels *s, int layer, int part)
{
    struct sl_layer_shape shape = s->list.layer[layer];
    shape.in = sl_rounds_width(&s->rounds, s->axes.in[layer], part);
    shape.out = sl_rounds_width(&s->rounds, s->axes.out[layer], part);
    shape.counted = is_counted(s, layer);
    return shape;
}

/* ---- Slots ---- */

static int create_model(struct sl_submodels *s, int slot, int part)
{
    struct sl_model *model = &s->slot[slot].model;
    struct sl_model_options options = s->whole->options;
    options.keep_best = false;
    options.holds = SL_MODEL_HOLDS_ALL;
    int code = sl_model_open(model, s->own, &options);
    for (int l = 0; !code && l < s->list.count; l++) {
        const struct sl_layer_shape shape = shape_of(s, l, part);
        code = sl_model_add(model, &shape);
    }
    if (!code && !s->own->plans)
        sl_view_lend(s->rt, &s->whole->end[s->rt->rank], &model->end[s->own->rank]);
    return code;
}

static void describe_carried(struct sl_submodels *s, int slot, int part, int layer, int k)
{
    struct sl_carried *c = sl_submodel_carried(s, slot, layer, k);
    const struct sl_layer_shape shape = shape_of(s, layer, part);
    const int root = s->slot[slot].root;
    const int64_t rows = sl_layer_shape_rows(&shape), cols = sl_layer_shape_columns(&shape);
    c->own =
        sl_submodel_slot_here(s, slot) ? sl_submodel_tile(&s->slot[slot].model, layer, k) : NULL;
    if (!s->groups)
        return;
    sl_tile_describe(s->rt, &c->there, rows, cols, cols, sizeof(float), root, NULL);
    if (root == s->rt->rank && !s->rt->plans)
        sl_view_lend(s->own, c->own, &c->there);
}

/* Make a slot in the shape of sub-model `part`. */
static int create_slot(struct sl_submodels *s, int slot, int part)
{
    const int tiles = s->list.count * sl_submodel_tiles(s);
    struct sl_model_slot *of = &s->slot[slot];
    *of = (struct sl_model_slot){.part = -1,
                                 .root = root_of(s, part),
                                 .carried = calloc((size_t)tiles, sizeof *of->carried)};
    int code =
        of->carried ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d tiles of a sub-model", tiles);
    if (!code && sl_submodel_slot_here(s, slot))
        code = create_model(s, slot, part);
    code = sl_runtime_agree(s->rt, code);
    if (!code)
        SL_FOR_TILES (s, l, k)
            describe_carried(s, slot, part, l, k);
    return code;
}

static void destroy_slot(struct sl_submodels *s, struct sl_model_slot *of)
{
    for (int t = 0; of->carried && t < s->list.count * sl_submodel_tiles(s); t++) {
        if (of->root == s->rt->rank)
            of->carried[t].there.handle = NULL; /* the group's tile owns the handle */
        sl_tile_destroy(&of->carried[t].there);
    }
    free(of->carried);
    if (of->model.end)
        of->model.end[s->own->rank].handle = NULL; /* the global model owns the handle */
    if (of->model.rt)
        sl_model_destroy(&of->model);
}

/* Return the sub-model whose slot a sub-model uses. One group has a slot for each shape, which its
 * first sub-model gets. With several groups, each sub-model has its own slot. */
static int choose_slot(const struct sl_submodels *s, int part)
{
    int first = 0;
    while (s->groups ? first < part : !sl_rounds_alike(&s->rounds, first, part))
        first++;
    return first;
}

static int create_slots(struct sl_submodels *s)
{
    int code = 0;
    s->slot = calloc((size_t)s->count, sizeof *s->slot);
    if (!s->slot)
        return sl_runtime_agree(s->rt,
                                sl_error(SL_ERR_SYSTEM, "no memory for %d sub-models", s->count));
    code = sl_runtime_agree(s->rt, 0);
    s->first_slot = s->groups ? s->first : 0;
    s->own_slots = s->groups ? s->here : s->count;
    for (int p = 0; !code && p < s->count; p++) {
        const int first = choose_slot(s, p);
        s->of[p].slot = first < p ? s->of[first].slot : s->slots;
        if (first == p)
            code = create_slot(s, s->slots++, p);
    }
    s->own_slots = s->groups ? s->here : s->slots;
    return code;
}

/* ---- What sub-models keep ---- */

static int create_kept(struct sl_submodels *s, int part)
{
    int code = 0;
    s->of[part].kept =
        calloc((size_t)(s->store->shards * sl_submodel_tiles(s) + 1), sizeof *s->of[part].kept);
    if (!s->of[part].kept)
        return sl_error(SL_ERR_SYSTEM, "no memory for the tiles of a sub-model");
    SL_FOR_PANELS (s, n, k) {
        const struct sl_shard *shard = &s->store->shard[n];
        struct sl_unit_block block = sl_submodel_block(s, 0, part, shard->layer);
        block.first = shard->first;
        const int64_t rows = sl_unit_block_shared(&block, shard->rows);
        if (!code && rows > 0)
            code = sl_tile_create(s->rt, &sl_submodel_kept(s, part, k)[n], rows,
                                  shard->tile[k]->cols, sizeof(float), shard->owner);
    }
    return code;
}

/* Make the tiles of metrics and of shared entries. With groups, a sub-model's metrics are lent by
 * its network; else they are a copy. */
static int create_parts(struct sl_submodels *s)
{
    int code = 0;
    for (int p = 0; p < s->count; p++)
        if (s->groups)
            sl_tile_describe(s->rt, &s->total[p], 1, SL_METRICS, SL_METRICS, sizeof(double),
                             root_of(s, p), NULL);
        else
            code =
                code ? code : sl_tile_create(s->rt, &s->total[p], 1, SL_METRICS, sizeof(double), 0);
    for (int p = 0; !code && p < s->count; p++)
        code = create_kept(s, p);
    return sl_runtime_agree(s->rt, code);
}

static void destroy_part(struct sl_submodels *s, int part)
{
    const struct sl_submodel *of = &s->of[part];
    if (s->groups && s->total[part].owner == s->rt->rank)
        s->total[part].handle = NULL; /* the network's tile owns the handle */
    sl_tile_destroy(&s->total[part]);
    for (int t = 0; of->kept && t < s->store->shards * sl_submodel_tiles(s); t++)
        sl_tile_destroy(&of->kept[t]);
    free(of->kept);
}

/* ---- Create ---- */

static int find_splits(const struct sl_submodels *s, bool *splits)
{
    const struct sl_split_layers *split = &s->config->units.split_layers;
    const bool shares = s->config->units.share != SL_SHARE_COPIES;
    for (int a = 0; a < s->axes.count; a++)
        splits[a] = split->all && shares && s->axes.axis[a].hidden;
    for (int k = 0; k < split->layers.count; k++) {
        if (split->layers.number[k] > s->axes.count - 2)
            return sl_error(
                SL_ERR_USAGE,
                "--split-layers %s: expected all, or numbers of hidden layers, 1 to %d, and 0 for "
                "features, with commas between them",
                sl_config_text(s->config, "split-layers").text, s->axes.count - 2);
        splits[split->layers.number[k]] = shares;
    }
    for (int l = 0; l < s->list.count; l++)
        if (splits[0] && s->axes.out[l] == 0 && sl_layer_shape_rows(&s->list.layer[l]) > 0)
            return sl_error(SL_ERR_USAGE,
                            "--split-layers %s: parameters of layer %d are units of the features "
                            "(expected no 0)",
                            sl_config_text(s->config, "split-layers").text, l + 1);
    return 0;
}

static int share_units(struct sl_submodels *s)
{
    const struct sl_unit_shares *shares = &s->config->units.submodel_share;
    return shares->kind == SL_UNITS_GIVEN ? sl_rounds_share(&s->rounds, shares->given.number) : 0;
}

static int create_rounds(struct sl_submodels *s, const struct sl_model_shape *shape, int64_t steps)
{
    sl_model_list(shape, &s->list);
    if (s->list.failed)
        return sl_error(SL_ERR_SYSTEM, "no memory for a list of layers");
    int code = sl_axes_find(&s->list, &s->axes);
    bool *splits = calloc((size_t)s->axes.count + 1, sizeof *splits);
    if (!code && !splits)
        code = sl_error(SL_ERR_SYSTEM, "no memory for %d axes", s->axes.count);
    if (!code)
        code = find_splits(s, splits);
    if (!code)
        code = sl_rounds_create(&s->rounds, &s->axes, s->config->units.partition_units, s->count,
                                steps / s->steps + 1, (uint64_t)s->config->training.seed, splits);
    free(splits);
    return code ? code : share_units(s);
}

int sl_submodels_create(struct sl_submodels *s, struct sl_runtime *rt, struct sl_runtime *own,
                        const struct sl_groups *groups, struct sl_store *store,
                        const struct sl_model_shape *shape, const struct sl_config *config,
                        int64_t steps)
{
    *s = (struct sl_submodels){.config = config,
                               .rt = rt,
                               .own = own,
                               .whole = store->model,
                               .store = store,
                               .groups = groups,
                               .count = (int)config->units.submodels,
                               .steps = sl_config_is_ensemble(config) ? steps + 1
                                                                      : config->units.local_steps,
                               .round = -1};
    if (s->count < groups_of(s))
        return sl_error(SL_ERR_USAGE,
                        "--submodels %d: there are %d groups (expected at least a sub-model for "
                        "each)",
                        s->count, groups_of(s));
    const int group = groups ? groups->index : 0;
    s->first = first_of(s, group);
    s->here = first_of(s, group + 1) - s->first;
    int code = create_rounds(s, shape, steps);
    s->of = calloc((size_t)s->count, sizeof *s->of);
    s->total = calloc((size_t)s->count, sizeof *s->total);
    if (!code && (!s->of || !s->total))
        code = sl_error(SL_ERR_SYSTEM, "no memory for %d sub-models", s->count);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = create_slots(s);
    return code ? code : create_parts(s);
}

void sl_submodels_destroy(struct sl_submodels *s)
{
    for (int p = 0; s->of && s->total && p < s->count; p++)
        destroy_part(s, p);
    for (int t = 0; s->slot && t < s->slots; t++)
        destroy_slot(s, &s->slot[t]);
    free(s->of);
    free(s->total);
    free(s->slot);
    sl_rounds_free(&s->rounds);
    sl_axes_free(&s->axes);
    free(s->list.layer);
    *s = (struct sl_submodels){0};
}

/* ---- Sizes ---- */

/* Return how many numbers of a layer's block travel one way, for one kind. */
static int64_t block_words(const struct sl_submodels *s, int64_t round, int part, int layer)
{
    const struct sl_unit_block block = sl_submodel_block(s, round, part, layer);
    const struct sl_layer_shape shape = shape_of(s, layer, part);
    return sl_store_words(s->store, layer, &block, sl_layer_shape_columns(&shape),
                          root_of(s, part));
}

/* Return how many sub-models use a slot. */
static int sharers_of(const struct sl_submodels *s, int slot)
{
    int count = 0;
    for (int p = 0; p < s->count; p++)
        count += s->of[p].slot == slot;
    return count;
}

int64_t sl_submodels_words(struct sl_submodels *s, int64_t round)
{
    int64_t words = 0;
    sl_rounds_draw(&s->rounds, round);
    for (int p = 0; p < s->count; p++) {
        const int64_t times = sharers_of(s, s->of[p].slot) > 1 ? sl_submodels_round_steps(s) : 1;
        SL_FOR_TILES (s, l, k)
            words += 2 * times * block_words(s, round, p, l);
    }
    return words;
}

/* Return the bytes that travel from shards to slots in a round, average rows counted: what this
 * rank's shards send to other ranks, and its own sub-models receive. */
static int64_t one_way_bytes(const struct sl_submodels *s)
{
    int64_t numbers = 0;
    for (int p = 0; p < s->count; p++)
        for (int n = 0; n < s->store->shards; n++) {
            const struct sl_shard *shard = &s->store->shard[n];
            const struct sl_layer_shape shape = shape_of(s, shard->layer, p);
            const int64_t rows = sl_layer_shape_rows(&shape);
            const bool sends = shard->owner == s->rt->rank, takes = root_of(s, p) == s->rt->rank;
            if (sends != takes)
                numbers +=
                    (shard->rows * rows / s->whole->layer[shard->layer].parameters.rows + 1) *
                    sl_layer_shape_columns(&shape) * sl_submodel_tiles(s);
        }
    return numbers * (int64_t)sizeof(float);
}

/* Return the peak bytes of blocks on the way. Blocks of a round may still return while the next
 * round, or an evaluation, asks for blocks. */
static int64_t travelling_bytes(const struct sl_submodels *s, const struct sl_blocked *blocked)
{
    const int64_t round = one_way_bytes(s), evaluation = sl_blocked_travelling(blocked);
    return round + (evaluation > round ? evaluation : round);
}

void sl_submodels_plan(const struct sl_submodels *s, const struct sl_blocked *blocked,
                       struct sl_plan *plan)
{
    int64_t bytes = sl_rounds_bytes(&s->rounds);
    for (int t = s->first_slot; t < s->first_slot + s->own_slots; t++)
        sl_plan_add_model(&s->slot[t].model, plan);
    for (int p = 0; p < s->count; p++)
        SL_FOR_PANELS (s, n, k)
            if (s->store->shard[n].owner == s->rt->rank)
                bytes += sl_tile_bytes(&sl_submodel_kept(s, p, k)[n]);
    plan->bytes[SL_PLAN_PARAMETERS] += bytes;
    plan->bytes[SL_PLAN_RECEIVED] += travelling_bytes(s, blocked);
}
