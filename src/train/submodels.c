#include "train/submodels.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
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

static bool is_here(const struct sl_submodels *s, int part)
{
    return part >= s->first && part < s->first + s->here;
}

/* ---- Shapes ---- */

/* Each entry of such a layer meets its moments in some rounds only. */
static bool is_counted(const struct sl_submodels *s, int layer)
{
    return s->rounds.split[s->axes.in[layer]] && s->rounds.split[s->axes.out[layer]] &&
           s->whole->options.states == SL_STATES && !s->config->reset_optimizer;
}

static struct sl_layer_shape shape_of(const struct sl_submodels *s, int layer, int part)
{
    struct sl_layer_shape shape = s->list.layer[layer];
    shape.in = sl_rounds_size(&s->rounds, s->axes.in[layer], part);
    shape.out = sl_rounds_size(&s->rounds, s->axes.out[layer], part);
    shape.counted = is_counted(s, layer);
    return shape;
}

/* Sub-models drop other units; the first one drops as the global model would. */
static uint64_t seed_of(const struct sl_submodels *s, int part)
{
    return part ? sl_rng_key(s->whole->options.seed, SL_RNG_UNITS, UINT32_MAX, (uint32_t)part)
                : s->whole->options.seed;
}

static int create_model(struct sl_submodels *s, int part)
{
    struct sl_model *model = &s->of[part].model;
    struct sl_model_options options = s->whole->options;
    options.keep_best = false;
    options.seed = seed_of(s, part);
    int code = sl_model_open(model, s->own, &options);
    for (int l = 0; !code && l < s->list.count; l++) {
        const struct sl_layer_shape shape = shape_of(s, l, part);
        code = sl_model_add(model, &shape);
    }
    if (!code && !s->own->plans)
        sl_view_lend(s->rt, &s->whole->end[s->rt->rank], &model->end[s->own->rank]);
    return code;
}

/* ---- Tiles that are carried ---- */

static int tiles_of(const struct sl_submodels *s)
{
    return 1 + s->whole->options.states;
}

static struct sl_tile *tile_of(struct sl_model *model, int layer, int k)
{
    struct sl_model_layer *of = &model->layer[layer];
    return k ? &of->state[k - 1] : &of->parameters;
}

static struct sl_carried *carried_of(struct sl_submodels *s, int part, int layer, int k)
{
    return &s->of[part].carried[layer * tiles_of(s) + k];
}

static int describe_carried(struct sl_submodels *s, int part, int layer, int k)
{
    struct sl_carried *c = carried_of(s, part, layer, k);
    const struct sl_layer_shape shape = shape_of(s, layer, part);
    const int root = root_of(s, part);
    const int64_t rows = sl_layer_shape_rows(&shape), cols = sl_layer_shape_columns(&shape);
    c->own = is_here(s, part) ? tile_of(&s->of[part].model, layer, k) : NULL;
    if (!s->groups || rows == 0)
        return 0;
    sl_tile_describe(s->rt, &c->there, rows, cols, cols, sizeof(float), root, NULL);
    if (root == s->rt->rank && !s->rt->plans)
        sl_view_lend(s->own, c->own, &c->there);
    return root ? sl_tile_create(s->rt, &c->sent, rows, cols, sizeof(float), 0) : 0;
}

/* The tile of the view on all ranks where there are several groups. */
static struct sl_tile *there(struct sl_submodels *s, struct sl_carried *c)
{
    return s->groups ? &c->there : c->own;
}

static int create_part(struct sl_submodels *s, int part)
{
    const int tiles = s->list.count * tiles_of(s);
    s->of[part].carried = calloc((size_t)tiles, sizeof *s->of[part].carried);
    int code = s->of[part].carried
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for %d tiles of a sub-model", tiles);
    if (!code && is_here(s, part))
        code = create_model(s, part);
    code = sl_runtime_agree(s->rt, code);
    for (int l = 0; !code && l < s->list.count; l++)
        for (int k = 0; !code && k < tiles_of(s); k++)
            code = describe_carried(s, part, l, k);
    return sl_runtime_agree(s->rt, code);
}

static void destroy_part(struct sl_submodels *s, int part)
{
    struct sl_submodel *sub = &s->of[part];
    for (int t = 0; sub->carried && t < s->list.count * tiles_of(s); t++) {
        struct sl_carried *c = &sub->carried[t];
        if (c->there.owner == s->rt->rank)
            c->there.handle = NULL; /* lent */
        sl_tile_destroy(&c->there);
        sl_tile_destroy(&c->sent);
    }
    free(sub->carried);
    if (sub->model.end)
        sub->model.end[s->own->rank].handle = NULL; /* lent */
    if (sub->model.rt)
        sl_model_destroy(&sub->model);
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
            return sl_error(SL_ERR_USAGE,
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
    const enum sl_rounds_kind kind = strcmp(s->config->partition_units, "latin") == 0
                                         ? SL_ROUNDS_LATIN
                                     : strcmp(s->config->partition_units, "fixed") == 0
                                         ? SL_ROUNDS_FIXED
                                         : SL_ROUNDS_RANDOM;
    if (!code)
        code = sl_rounds_create(&s->rounds, &s->axes, kind, s->count, steps / s->steps + 1,
                                (uint64_t)s->config->seed, splits);
    free(splits);
    return code;
}

/* Metrics of sub-models of one group are tiles of their networks, which are lent. */
static int create_totals(struct sl_submodels *s)
{
    s->of = calloc((size_t)s->count, sizeof *s->of);
    s->total = calloc((size_t)s->count, sizeof *s->total);
    if (!s->of || !s->total)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d sub-models", s->count);
    for (int p = 0; p < s->count; p++)
        sl_tile_describe(s->rt, &s->total[p], 1, SL_METRICS, SL_METRICS, sizeof(double),
                         root_of(s, p), NULL);
    return 0;
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
    if (!code)
        code = create_totals(s);
    code = sl_runtime_agree(rt, code);
    for (int p = 0; !code && p < s->count; p++)
        code = create_part(s, p);
    return code;
}

void sl_submodels_destroy(struct sl_submodels *s)
{
    for (int p = 0; s->total && p < s->count; p++) {
        if (s->total[p].owner == s->rt->rank)
            s->total[p].handle = NULL; /* lent */
        sl_tile_destroy(&s->total[p]);
    }
    for (int p = 0; s->of && p < s->count; p++)
        destroy_part(s, p);
    free(s->of);
    free(s->total);
    sl_rounds_free(&s->rounds);
    sl_axes_free(&s->axes);
    free(s->list.layer);
    *s = (struct sl_submodels){0};
}

/* ---- Rounds ---- */

static struct sl_unit_block block_of(const struct sl_submodels *s, int64_t round, int part,
                                     int layer)
{
    return sl_rounds_block(&s->rounds, round, part, layer, s->list.layer[layer].kind->weights);
}

static bool learns(const struct sl_submodels *s, int layer)
{
    return sl_model_learns(&s->whole->layer[layer]);
}

/* The tile of rank 0 between the whole and a sub-model. */
static struct sl_tile *between(struct sl_submodels *s, struct sl_carried *c)
{
    return c->sent.rows ? &c->sent : there(s, c);
}

static struct sl_units_moment moment_of(struct sl_submodels *s, int64_t epoch)
{
    return (struct sl_units_moment){(int)epoch, &s->whole->end[0]};
}

/* Moments begin at zero where they are not carried from round to round. */
static void take_tile(struct sl_submodels *s, int64_t epoch, bool inside, int part, int layer, int k)
{
    const struct sl_unit_block block = block_of(s, s->round, part, layer);
    const struct sl_units_moment moment = moment_of(s, epoch);
    sl_submit_take(s->rt, &block, &moment, k > 0 && s->config->reset_optimizer && !inside,
                   tile_of(s->whole, layer, k), between(s, carried_of(s, part, layer, k)));
}

static void send_tile(struct sl_submodels *s, int part, int layer, int k)
{
    struct sl_carried *c = carried_of(s, part, layer, k);
    if (c->sent.rows)
        sl_tile_send_into(s->rt, &c->sent, &c->there);
}

static void put_tile(struct sl_submodels *s, int64_t epoch, int part, int layer, int k)
{
    struct sl_carried *c = carried_of(s, part, layer, k);
    const struct sl_unit_block block = block_of(s, s->round, part, layer);
    const struct sl_units_moment moment = moment_of(s, epoch);
    if (c->sent.rows)
        sl_tile_send_into(s->rt, &c->there, &c->sent);
    sl_submit_put(s->rt, &block, &moment, part, between(s, c), tile_of(s->whole, layer, k));
}

static void prepare(struct sl_submodels *s, int part)
{
    struct sl_model *model = &s->of[part].model;
    const struct sl_rounds_past past = {s->round, s->steps, s->rounds.first[s->axes.count]};
    for (int l = 0; l < s->list.count; l++) {
        const struct sl_unit_block block = block_of(s, 0, part, l);
        if (learns(s, l) && model->layer[l].shape.counted)
            sl_submit_count_steps(s->own, &block, &past, &model->layer[l].counts);
    }
    sl_model_spread(model);
}

/* For all tiles that travel. */
#define SL_FOR_TILES(s, p, l, k)                 \
    for (int p = 0; p < (s)->count; p++)         \
        for (int l = 0; l < (s)->list.count; l++) \
            for (int k = 0; learns(s, l) && k < tiles_of(s); k++)

/* All blocks are taken before any is put back. */
static void take_all(struct sl_submodels *s, int64_t round, int64_t epoch, bool inside)
{
    s->round = round;
    sl_rounds_draw(&s->rounds, round);
    SL_FOR_TILES(s, p, l, k)
        take_tile(s, epoch, inside, p, l, k);
}

static void hand_out(struct sl_submodels *s)
{
    SL_FOR_TILES(s, p, l, k)
        send_tile(s, p, l, k);
    for (int p = s->first; p < s->first + s->here; p++)
        prepare(s, p);
}

static void put_all(struct sl_submodels *s, int64_t epoch)
{
    SL_FOR_TILES(s, p, l, k)
        put_tile(s, epoch, p, l, k);
    sl_model_spread(s->whole);
    s->changed = false;
}

void sl_submodels_put(struct sl_submodels *s, int64_t epoch)
{
    if (s->changed)
        put_all(s, epoch);
}

int64_t sl_submodels_step(struct sl_submodels *s, int64_t step, int64_t epoch)
{
    const int64_t round = step / s->steps;
    if (round != s->round) {
        sl_submodels_put(s, s->epoch);
        take_all(s, round, epoch, false);
        hand_out(s);
    }
    s->epoch = epoch;
    s->changed = true;
    return step % s->steps + 1;
}

void sl_submodels_end(struct sl_submodels *s, int64_t steps)
{
    if (steps == 0 || s->round < 0)
        return;
    s->round = (steps - 1) / s->steps;
    put_all(s, 0);
}

/* ---- Checkpoints ---- */

static const char *const kinds[] = {"", ".moment1", ".moment2"};

/* The entries of a layer that all sub-models have: rows `from` and on. */
static int64_t shared_from(const struct sl_submodels *s, int layer)
{
    const struct sl_layer_shape shape = shape_of(s, layer, 0);
    if (s->rounds.split[s->axes.out[layer]])
        return sl_layer_shape_rows(&shape);
    return s->rounds.split[s->axes.in[layer]] ? shape.kind->weights * shape.in : 0;
}

static void name_of(int part, int layer, int k, char name[64])
{
    snprintf(name, 64, "submodel.%d.layer.%d.shared%s", part, layer, kinds[k]);
}

static bool is_inside(const struct sl_submodels *s, int64_t steps)
{
    return steps % s->steps > 0;
}

static int save_shared(struct sl_submodels *s, int part, int layer, int k,
                       struct sl_checkpoint *checkpoint)
{
    char name[64];
    struct sl_tile *tile = between(s, carried_of(s, part, layer, k));
    const int64_t from = shared_from(s, layer), rows = tile->rows - from;
    if (rows <= 0)
        return 0;
    name_of(part, layer, k, name);
    float *to = sl_checkpoint_add(checkpoint, name, rows, tile->cols);
    if (!to)
        return SL_ERR_SYSTEM;
    const float *memory = sl_tile_acquire(s->rt, tile, false);
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * tile->cols, memory + (from + r) * tile->ld,
               (size_t)tile->cols * sizeof *to);
    sl_tile_release(tile);
    return 0;
}

int sl_submodels_save(struct sl_submodels *s, int64_t steps, struct sl_checkpoint *checkpoint)
{
    int code = 0;
    if (!is_inside(s, steps))
        return 0;
    SL_FOR_TILES(s, p, l, k)
        code = code ? code : save_shared(s, p, l, k, checkpoint);
    return code;
}

static int load_shared(struct sl_submodels *s, int part, int layer, int k,
                       const struct sl_checkpoint *checkpoint)
{
    char name[64];
    struct sl_tile *tile = between(s, carried_of(s, part, layer, k));
    const int64_t from = shared_from(s, layer), rows = tile->rows - from;
    if (rows <= 0)
        return 0;
    name_of(part, layer, k, name);
    const struct sl_tensor *tensor = sl_checkpoint_find(checkpoint, name);
    if (!tensor || tensor->rows != rows || tensor->cols != tile->cols)
        return sl_error(SL_ERR_DATA,
                        "the checkpoint is of the middle of a round, and has no tensor %s of "
                        "%lld x %lld",
                        name, (long long)rows, (long long)tile->cols);
    float *memory = sl_tile_acquire(s->rt, tile, true);
    for (int64_t r = 0; r < rows; r++)
        memcpy(memory + (from + r) * tile->ld, tensor->data + r * tile->cols,
               (size_t)tile->cols * sizeof *memory);
    sl_tile_release(tile);
    return 0;
}

int sl_submodels_load(struct sl_submodels *s, int64_t steps,
                      const struct sl_checkpoint *checkpoint)
{
    int code = 0;
    if (!is_inside(s, steps))
        return 0;
    take_all(s, steps / s->steps, 0, true);
    SL_FOR_TILES(s, p, l, k)
        if (!code && s->rt->rank == 0)
            code = load_shared(s, p, l, k, checkpoint);
    code = sl_runtime_agree(s->rt, code);
    if (!code)
        hand_out(s);
    return code;
}

/* ---- Metrics ---- */

/* The tree over sub-models has one order, however many groups there are. */
void sl_submodels_record(struct sl_submodels *s, struct sl_network **net, int64_t epoch,
                         sl_record_function *record, void *context)
{
    struct sl_tile *total = &s->total[0];
    const int rank = s->rt->rank;
    for (int p = s->first; p < s->first + s->here; p++)
        if (s->total[p].owner == rank)
            sl_view_lend(s->own, sl_network_total(net[p - s->first]), &s->total[p]);
    sl_reduce(s->rt, s->total, s->count, 1, sl_submit_metrics_add);
    sl_submit_record(s->rt, record, context, (int)epoch, total, NULL, &s->whole->end[0]);
    if (s->groups)
        sl_groups_broadcast(s->groups, total);
    else
        sl_broadcast(s->rt, total, 0, s->rt->ranks);
    if (rank > 0)
        sl_submit_record(s->rt, record, context, (int)epoch, total, NULL, &s->whole->end[rank]);
}

void sl_submodels_plan(const struct sl_submodels *s, struct sl_plan *plan)
{
    for (int p = s->first; p < s->first + s->here; p++)
        sl_plan_add_model(&s->of[p].model, plan);
    for (int p = 0; p < s->count; p++)
        for (int t = 0; t < s->list.count * tiles_of(s); t++)
            if (s->rt->rank == 0)
                plan->bytes[SL_PLAN_PARAMETERS] += sl_tile_bytes(&s->of[p].carried[t].sent);
    plan->bytes[SL_PLAN_PARAMETERS] += s->rounds.count * s->rounds.first[s->axes.count];
}
