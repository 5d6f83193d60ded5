#include "train/submodels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/init.h"
#include "core/error.h"
#include "core/view.h"
#include "graphs/collective.h"
#include "predict/plan.h"

bool sl_submodels_there(const struct sl_config *config)
{
    return config->submodels > 0;
}

int64_t sl_submodels_work(const struct sl_config *config)
{
    return config->submodels > 0 ? config->submodels : 1;
}

/* Parts of rounds and counts of steps follow from these. */
int sl_submodels_check(const struct sl_config *config, const struct sl_checkpoint *checkpoint)
{
    static const char *const names[] = {"submodels",       "local-steps",  "share",
                                        "partition-units", "split-layers", "reset-optimizer",
                                        "unit-sums",       "batches",      "seed"};
    const json_t *saved = json_object_get(checkpoint->description, "configuration");
    json_t *now = sl_options_to_json(sl_config_options, config);
    int code = 0;
    const int64_t before = json_integer_value(json_object_get(saved, "submodels"));
    for (size_t n = 0; !code && (before || config->submodels) && n < sizeof names / sizeof *names;
         n++)
        if (!json_equal(json_object_get(saved, names[n]), json_object_get(now, names[n])))
            code = sl_error(SL_ERR_USAGE,
                            "--resume %s: --%s is another one than in the checkpoint, whose rounds "
                            "of %lld sub-models go on (expected the same)",
                            config->resume, names[n], (long long)before);
    json_decref(now);
    return code;
}

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

/* The rank that owns a sub-model's parameters. */
static int root_of(const struct sl_submodels *s, int part)
{
    return s->groups ? s->groups->first[group_of(s, part)] : 0;
}

/* ---- Shapes ---- */

/* Each entry of such a layer meets its moments in some rounds only. One sub-model has all entries
 * in all rounds, and the bits of plain training. */
static bool is_counted(const struct sl_submodels *s, int layer)
{
    return s->count > 1 && s->rounds.split[s->axes.in[layer]] &&
           s->rounds.split[s->axes.out[layer]] && s->whole->options.states == SL_STATES &&
           !s->config->reset_optimizer;
}

static struct sl_layer_shape shape_of(const struct sl_submodels *s, int layer, int part)
{
    struct sl_layer_shape shape = s->list.layer[layer];
    shape.in = sl_rounds_size(&s->rounds, s->axes.in[layer], part);
    shape.out = sl_rounds_size(&s->rounds, s->axes.out[layer], part);
    shape.counted = is_counted(s, layer);
    return shape;
}

static bool have_one_shape(const struct sl_submodels *s, int a, int b)
{
    bool same = true;
    for (int axis = 0; axis < s->axes.count; axis++)
        same = same && sl_rounds_size(&s->rounds, axis, a) == sl_rounds_size(&s->rounds, axis, b);
    return same;
}

/* Sub-models drop other units; the first one drops as the global model would. */
static uint64_t seed_of(const struct sl_submodels *s, int part)
{
    return part ? sl_rng_key(s->whole->options.seed, SL_RNG_UNITS, UINT32_MAX, (uint32_t)part)
                : s->whole->options.seed;
}

static int tiles_of(const struct sl_submodels *s)
{
    return 1 + s->whole->options.states;
}

static struct sl_tile *tile_of(struct sl_model *model, int layer, int k)
{
    struct sl_model_layer *of = &model->layer[layer];
    return k ? &of->state[k - 1] : &of->parameters;
}

static struct sl_unit_block block_of(const struct sl_submodels *s, int64_t round, int part,
                                     int layer)
{
    return sl_rounds_block(&s->rounds, round, part, layer, s->list.layer[layer].kind->weights);
}

/* Weights whose rows are units of a part, so that sums over units are as large as those of the
 * whole network on average. A power of two keeps all bits of a weight that goes back. */
static int shift_of(const struct sl_submodels *s, int layer, int k)
{
    const bool scaled = strcmp(s->config->unit_sums, "scaled") == 0;
    return scaled && k == 0 && s->rounds.split[s->axes.in[layer]]
               ? (int)lround(log2((double)s->count))
               : 0;
}

/* For all tiles of parameters and state. */
#define SL_FOR_TILES(s, l, k)                 \
    for (int l = 0; l < (s)->list.count; l++) \
        for (int k = 0; sl_model_learns(&(s)->whole->layer[l]) && k < tiles_of(s); k++)

/* ---- Slots ---- */

static bool has_slot_here(const struct sl_submodels *s, int slot)
{
    return slot >= s->first_slot && slot < s->first_slot + s->own_slots;
}

static int create_model(struct sl_submodels *s, int slot, int part)
{
    struct sl_model *model = &s->slot[slot].model;
    struct sl_model_options options = s->whole->options;
    options.keep_best = false;
    options.store = NULL;
    int code = sl_model_open(model, s->own, &options);
    for (int l = 0; !code && l < s->list.count; l++) {
        const struct sl_layer_shape shape = shape_of(s, l, part);
        code = sl_model_add(model, &shape);
    }
    if (!code && !s->own->plans)
        sl_view_lend(s->rt, &s->whole->end[s->rt->rank], &model->end[s->own->rank]);
    return code;
}

static struct sl_carried *carried_of(struct sl_submodels *s, int slot, int layer, int k)
{
    return &s->slot[slot].carried[layer * tiles_of(s) + k];
}

static int describe_carried(struct sl_submodels *s, int slot, int part, int layer, int k)
{
    struct sl_carried *c = carried_of(s, slot, layer, k);
    const struct sl_layer_shape shape = shape_of(s, layer, part);
    const int root = s->slot[slot].root;
    const int64_t rows = sl_layer_shape_rows(&shape), cols = sl_layer_shape_columns(&shape);
    c->own = has_slot_here(s, slot) ? tile_of(&s->slot[slot].model, layer, k) : NULL;
    if (!s->groups)
        return 0;
    sl_tile_describe(s->rt, &c->there, rows, cols, cols, sizeof(float), root, NULL);
    if (root == s->rt->rank && !s->rt->plans)
        sl_view_lend(s->own, c->own, &c->there);
    return root ? sl_tile_create(s->rt, &c->sent, rows, cols, sizeof(float), 0) : 0;
}

/* The slot of the sub-models of a shape, or of one sub-model. */
static int create_slot(struct sl_submodels *s, int slot, int part)
{
    const int tiles = s->list.count * tiles_of(s);
    struct sl_model_slot *of = &s->slot[slot];
    *of = (struct sl_model_slot){.part = -1,
                                 .root = root_of(s, part),
                                 .carried = calloc((size_t)tiles, sizeof *of->carried)};
    int code =
        of->carried ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d tiles of a sub-model", tiles);
    if (!code && has_slot_here(s, slot))
        code = create_model(s, slot, part);
    code = sl_runtime_agree(s->rt, code);
    SL_FOR_TILES (s, l, k)
        code = code ? code : describe_carried(s, slot, part, l, k);
    return sl_runtime_agree(s->rt, code);
}

static void destroy_slot(struct sl_submodels *s, struct sl_model_slot *of)
{
    for (int t = 0; of->carried && t < s->list.count * tiles_of(s); t++) {
        if (of->root == s->rt->rank)
            of->carried[t].there.handle = NULL; /* lent */
        sl_tile_destroy(&of->carried[t].there);
        sl_tile_destroy(&of->carried[t].sent);
    }
    free(of->carried);
    if (of->model.end)
        of->model.end[s->own->rank].handle = NULL; /* lent */
    if (of->model.rt)
        sl_model_destroy(&of->model);
}

/* The first sub-model of each shape, where one group has all; else each has a slot. */
static int choose_slot(const struct sl_submodels *s, int part)
{
    int first = 0;
    while (s->groups ? first < part : !have_one_shape(s, first, part))
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

static struct sl_tile *kept_of(const struct sl_submodels *s, int part, int layer, int k)
{
    return &s->of[part].kept[layer * tiles_of(s) + k];
}

static int create_kept(struct sl_submodels *s, int part)
{
    int code = 0;
    s->of[part].kept = calloc((size_t)(s->list.count * tiles_of(s)), sizeof *s->of[part].kept);
    if (!s->of[part].kept)
        return sl_error(SL_ERR_SYSTEM, "no memory for the tiles of a sub-model");
    SL_FOR_TILES (s, l, k) {
        const struct sl_unit_block block = block_of(s, 0, part, l);
        const struct sl_tile *whole = tile_of(s->whole, l, k);
        const int64_t rows = sl_unit_block_shared(&block, whole->rows);
        if (!code && rows > 0)
            code =
                sl_tile_create(s->rt, kept_of(s, part, l, k), rows, whole->cols, sizeof(float), 0);
    }
    return code;
}

/* Metrics of a group's sub-models are tiles of their networks, which are lent, or copies. */
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
        s->total[part].handle = NULL; /* lent */
    sl_tile_destroy(&s->total[part]);
    for (int t = 0; of->kept && t < s->list.count * tiles_of(s); t++)
        sl_tile_destroy(&of->kept[t]);
    free(of->kept);
}

/* ---- Create ---- */

static int find_splits(const struct sl_submodels *s, bool *splits)
{
    const char *text = s->config->split_layers;
    const bool all = strcmp(text, "all") == 0, shares = strcmp(s->config->share, "blocks") == 0;
    for (int a = 0; a < s->axes.count; a++)
        splits[a] = all && shares;
    while (!all && *text) {
        char *end;
        const long axis = strtol(text, &end, 10);
        if (end == text || (*end && *end != ',') || axis < 1 || axis > s->axes.count - 2)
            return sl_error(
                SL_ERR_USAGE,
                "--split-layers %s: expected all, or numbers of hidden layers, 1 to %d, "
                "with commas between them",
                s->config->split_layers, s->axes.count - 2);
        splits[axis] = shares;
        text = *end ? end + 1 : end;
    }
    return 0;
}

static int create_rounds(struct sl_submodels *s, const struct sl_model_shape *shape, int64_t steps)
{
    shape->model->list(shape, &s->list);
    if (s->list.failed)
        return sl_error(SL_ERR_SYSTEM, "no memory for a list of layers");
    int code = sl_axes_find(&s->list, &s->axes);
    bool *splits = calloc((size_t)s->axes.count + 1, sizeof *splits);
    if (!code && !splits)
        code = sl_error(SL_ERR_SYSTEM, "no memory for %d axes", s->axes.count);
    if (!code)
        code = find_splits(s, splits);
    const enum sl_rounds_kind kind =
        strcmp(s->config->partition_units, "latin") == 0   ? SL_ROUNDS_LATIN
        : strcmp(s->config->partition_units, "fixed") == 0 ? SL_ROUNDS_FIXED
                                                           : SL_ROUNDS_RANDOM;
    if (!code)
        code = sl_rounds_create(&s->rounds, &s->axes, kind, s->count, steps / s->steps + 1,
                                (uint64_t)s->config->seed, splits);
    free(splits);
    return code;
}

int sl_submodels_create(struct sl_submodels *s, struct sl_runtime *rt, struct sl_runtime *own,
                        const struct sl_groups *groups, struct sl_model *whole,
                        const struct sl_model_shape *shape, const struct sl_config *config,
                        int64_t steps)
{
    *s = (struct sl_submodels){.config = config,
                               .rt = rt,
                               .own = own,
                               .whole = whole,
                               .groups = groups,
                               .count = (int)config->submodels,
                               .steps = config->local_steps,
                               .spreads = true,
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

/* ---- Rounds ---- */

/* The tile of rank 0 between the whole and a slot; there are several groups where it is sent. */
static struct sl_tile *between(struct sl_submodels *s, int slot, int layer, int k)
{
    struct sl_carried *c = carried_of(s, slot, layer, k);
    return c->sent.rows ? &c->sent : s->groups ? &c->there : c->own;
}

static void send(struct sl_submodels *s, int slot, bool back)
{
    SL_FOR_TILES (s, l, k) {
        struct sl_carried *c = carried_of(s, slot, l, k);
        if (c->sent.rows)
            sl_tile_send_into(s->rt, back ? &c->there : &c->sent, back ? &c->sent : &c->there);
    }
}

static struct sl_units_moment moment_of(const struct sl_submodels *s, int64_t epoch)
{
    return (struct sl_units_moment){(int)epoch, &s->whole->end[0]};
}

static void count_steps(struct sl_submodels *s, int part)
{
    struct sl_model *model = &s->slot[s->of[part].slot].model;
    const struct sl_rounds_past past = {s->round, s->steps, s->rounds.first[s->axes.count]};
    for (int l = 0; l < s->list.count; l++) {
        const struct sl_unit_block block = block_of(s, 0, part, l);
        if (model->layer[l].counts.rows)
            sl_submit_count_steps(s->own, &block, &past, &model->layer[l].counts);
    }
}

static void take(struct sl_submodels *s, int part, int64_t epoch)
{
    struct sl_submodel *of = &s->of[part];
    struct sl_model_slot *slot = &s->slot[of->slot];
    const struct sl_units_moment moment = moment_of(s, epoch);
    SL_FOR_TILES (s, l, k) {
        struct sl_unit_block block = block_of(s, s->round, part, l);
        block.shift = shift_of(s, l, k);
        sl_submit_take(s->rt, &block, &moment, k > 0 && of->fresh, tile_of(s->whole, l, k),
                       kept_of(s, part, l, k), between(s, of->slot, l, k));
    }
    send(s, of->slot, false);
    if (has_slot_here(s, of->slot)) {
        slot->model.options.seed = seed_of(s, part);
        count_steps(s, part);
        sl_model_spread(&slot->model);
    }
    of->fresh = false;
    slot->part = part;
    slot->epoch = epoch;
    slot->changed = false;
}

static void put(struct sl_submodels *s, struct sl_model_slot *slot)
{
    const int number = (int)(slot - s->slot);
    const struct sl_units_moment moment = moment_of(s, slot->epoch);
    send(s, number, true);
    SL_FOR_TILES (s, l, k) {
        struct sl_unit_block block = block_of(s, s->round, slot->part, l);
        block.shift = shift_of(s, l, k);
        sl_submit_put(s->rt, &block, &moment, between(s, number, l, k),
                      kept_of(s, slot->part, l, k), tile_of(s->whole, l, k));
    }
    slot->changed = false;
}

/* What is shared becomes the mean. */
static void put_all(struct sl_submodels *s, int64_t epoch)
{
    const struct sl_units_moment moment = moment_of(s, epoch);
    for (int t = 0; t < s->slots; t++)
        if (s->slot[t].changed)
            put(s, &s->slot[t]);
    for (int p = 0; p < s->count; p++)
        SL_FOR_TILES (s, l, k)
            sl_submit_merge(s->rt, &moment, p, kept_of(s, p, l, k), tile_of(s->whole, l, k));
}

void sl_submodels_put(struct sl_submodels *s, int64_t epoch)
{
    if (s->round < 0)
        return;
    put_all(s, epoch);
    if (s->spreads)
        sl_model_spread(s->whole);
}

void sl_submodels_share_end(struct sl_submodels *s)
{
    for (int g = 1; s->groups && g < s->groups->count; g++)
        sl_tile_send_into(s->rt, &s->whole->end[0], &s->whole->end[s->groups->first[g]]);
}

static void set_round(struct sl_submodels *s, int64_t round)
{
    s->round = round;
    sl_rounds_draw(&s->rounds, round);
    for (int t = 0; t < s->slots; t++)
        s->slot[t].part = -1;
}

/* Where each sub-model has a slot, all are taken at once. */
static void take_all(struct sl_submodels *s, int64_t epoch)
{
    for (int p = 0; s->groups && p < s->count; p++)
        take(s, p, epoch);
}

static void begin_round(struct sl_submodels *s, int64_t round, int64_t epoch)
{
    const struct sl_units_moment moment = moment_of(s, epoch);
    if (s->round >= 0)
        put_all(s, s->epoch);
    set_round(s, round);
    for (int p = 0; p < s->count; p++) {
        s->of[p].fresh = s->config->reset_optimizer;
        SL_FOR_TILES (s, l, k)
            sl_submit_share(s->rt, &moment, k > 0 && s->of[p].fresh, tile_of(s->whole, l, k),
                            kept_of(s, p, l, k));
    }
    take_all(s, epoch);
}

int64_t sl_submodels_step(struct sl_submodels *s, int64_t step, int64_t epoch)
{
    if (step / s->steps != s->round)
        begin_round(s, step / s->steps, epoch);
    s->epoch = epoch;
    for (int t = 0; s->groups && t < s->slots; t++)
        s->slot[t].changed = true;
    return step % s->steps + 1;
}

int sl_submodels_enter(struct sl_submodels *s, int part)
{
    struct sl_model_slot *slot = &s->slot[s->of[part].slot];
    if (slot->part != part && slot->part >= 0 && slot->changed)
        put(s, slot);
    if (slot->part != part)
        take(s, part, s->epoch);
    slot->changed = true;
    return s->of[part].slot - s->first_slot;
}

/* Tasks of later epochs did nothing: a slot that took a sub-model then has what was put back
 * before.
 */
void sl_submodels_end(struct sl_submodels *s, int64_t epoch, int64_t steps)
{
    if (steps == 0 || s->round < 0)
        return;
    for (int t = 0; t < s->slots; t++)
        s->slot[t].changed = s->slot[t].changed && s->slot[t].epoch <= epoch;
    s->round = (steps - 1) / s->steps;
    sl_submodels_put(s, 0);
}

/* ---- Checkpoints ---- */

static const char *const kinds[] = {"", ".moment1", ".moment2"};

static void name_of(int part, int layer, int k, char name[64])
{
    snprintf(name, 64, "submodel.%d.layer.%d.shared%s", part, layer, kinds[k]);
}

static int save_kept(struct sl_submodels *s, const char *name, struct sl_tile *tile,
                     struct sl_checkpoint *checkpoint)
{
    float *to = sl_checkpoint_add(checkpoint, name, tile->rows, tile->cols);
    if (!to)
        return SL_ERR_SYSTEM;
    const float *from = sl_tile_acquire(s->rt, tile, false);
    for (int64_t r = 0; r < tile->rows; r++)
        memcpy(to + r * tile->cols, from + r * tile->ld, (size_t)tile->cols * sizeof *to);
    sl_tile_release(tile);
    return 0;
}

static int load_kept(struct sl_submodels *s, const char *name, struct sl_tile *tile,
                     const struct sl_checkpoint *checkpoint)
{
    const struct sl_tensor *tensor = sl_checkpoint_find(checkpoint, name);
    if (!tensor || tensor->rows != tile->rows || tensor->cols != tile->cols)
        return sl_error(SL_ERR_DATA,
                        "the checkpoint is of the middle of a round, and has no tensor %s of "
                        "%lld x %lld",
                        name, (long long)tile->rows, (long long)tile->cols);
    float *to = sl_tile_acquire(s->rt, tile, true);
    for (int64_t r = 0; r < tile->rows; r++)
        memcpy(to + r * tile->ld, tensor->data + r * tile->cols, (size_t)tile->cols * sizeof *to);
    sl_tile_release(tile);
    return 0;
}

int sl_submodels_save(struct sl_submodels *s, int64_t steps, struct sl_checkpoint *checkpoint)
{
    char name[64];
    int code = 0;
    for (int p = 0; steps % s->steps && p < s->count; p++)
        SL_FOR_TILES (s, l, k) {
            name_of(p, l, k, name);
            if (!code && kept_of(s, p, l, k)->rows)
                code = save_kept(s, name, kept_of(s, p, l, k), checkpoint);
        }
    return code;
}

int sl_submodels_load(struct sl_submodels *s, int64_t steps, const struct sl_checkpoint *checkpoint)
{
    char name[64];
    int code = 0;
    if (steps / s->steps >= s->rounds.count)
        return sl_error(SL_ERR_DATA,
                        "the checkpoint has %lld steps of sub-models already; ask for more with "
                        "--epochs",
                        (long long)steps);
    if (steps % s->steps == 0)
        return 0;
    for (int p = 0; s->rt->rank == 0 && p < s->count; p++)
        SL_FOR_TILES (s, l, k) {
            name_of(p, l, k, name);
            if (!code && kept_of(s, p, l, k)->rows)
                code = load_kept(s, name, kept_of(s, p, l, k), checkpoint);
        }
    code = sl_runtime_agree(s->rt, code);
    if (!code) {
        set_round(s, steps / s->steps);
        take_all(s, 0);
    }
    return code;
}

/* ---- Metrics ---- */

void sl_submodels_leave(struct sl_submodels *s, int part, struct sl_network *net)
{
    struct sl_tile *total = &s->total[part];
    if (!s->groups)
        sl_submit_metrics_copy(s->rt, sl_network_total(net), total);
    else if (total->owner == s->rt->rank)
        sl_view_lend(s->own, sl_network_total(net), total);
}

/* The tree over sub-models has one order, however many groups there are. */
void sl_submodels_record(struct sl_submodels *s, int64_t epoch, sl_record_function *record,
                         void *context)
{
    struct sl_tile *total = &s->total[0];
    const int rank = s->rt->rank;
    sl_reduce(s->rt, s->total, s->count, 1, sl_submit_metrics_join);
    sl_submit_record(s->rt, record, context, (int)epoch, total, NULL, &s->whole->end[0]);
    if (s->groups)
        sl_groups_broadcast(s->groups, total);
    else
        sl_broadcast(s->rt, total, 0, s->rt->ranks);
    if (rank > 0)
        sl_submit_record(s->rt, record, context, (int)epoch, total, NULL, &s->whole->end[rank]);
}

int64_t sl_submodels_words(const struct sl_submodels *s)
{
    int64_t words = 0;
    for (int t = 0; t < s->slots; t++)
        SL_FOR_TILES (s, l, k) {
            const struct sl_tile *sent = &s->slot[t].carried[l * tiles_of(s) + k].sent;
            words += 2 * sent->rows * sent->cols;
        }
    return words;
}

void sl_submodels_plan(const struct sl_submodels *s, struct sl_plan *plan)
{
    int64_t bytes = s->rounds.count * s->rounds.first[s->axes.count];
    for (int t = s->first_slot; t < s->first_slot + s->own_slots; t++)
        sl_plan_add_model(&s->slot[t].model, plan);
    for (int t = 0; s->rt->rank == 0 && t < s->slots; t++)
        SL_FOR_TILES (s, l, k)
            bytes += sl_tile_bytes(&s->slot[t].carried[l * tiles_of(s) + k].sent);
    for (int p = 0; s->rt->rank == 0 && p < s->count; p++)
        SL_FOR_TILES (s, l, k)
            bytes += sl_tile_bytes(kept_of(s, p, l, k));
    plan->bytes[SL_PLAN_PARAMETERS] += bytes;
}
