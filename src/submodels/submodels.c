#include "submodels/submodels.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/view.h"
#include "graphs/collective.h"
#include "submodels/submodel_tiles.h"

/* An ensemble has one round, which is longer than the run. */
int64_t sl_submodels_round_steps(const struct sl_submodels *s)
{
    return s->steps - sl_config_is_ensemble(s->config);
}

/* Whether a value is the option's default. A checkpoint that lacks an option was written with its
 * default. */
static bool is_default(const char *name, const json_t *value)
{
    for (const struct sl_option *option = sl_config_options; option->name; option++)
        if (strcmp(option->name, name) == 0)
            return json_is_string(value) && option->default_value &&
                   strcmp(option->default_value, json_string_value(value)) == 0;
    return false;
}

static bool is_same(const char *name, const json_t *before, const json_t *now)
{
    return before ? json_equal(before, now) : is_default(name, now);
}

/* The listed options decide the parts of rounds and the counts of steps. */
int sl_submodels_check(const struct sl_config *config, const struct sl_checkpoint *checkpoint)
{
    static const char *const names[] = {
        "submodels", "local-steps", "share", "partition-units", "split-layers", "reset-optimizer",
        "unit-sums", "batches",     "seed",  "submodel-share"};
    const json_t *saved = json_object_get(checkpoint->description, "configuration");
    json_t *now = sl_options_to_json(sl_config_options, config);
    int code = 0;
    const int64_t before = json_integer_value(json_object_get(saved, "submodels"));
    for (size_t n = 0;
         !code && (before || config->units.submodels) && n < sizeof names / sizeof *names; n++)
        if (!is_same(names[n], json_object_get(saved, names[n]), json_object_get(now, names[n])))
            code = sl_error(SL_ERR_USAGE,
                            "--resume %s: --%s is another one than in the checkpoint, whose rounds "
                            "of %lld sub-models go on (expected the same)",
                            config->files.resume, names[n], (long long)before);
    json_decref(now);
    return code;
}

/* ---- Rounds ---- */

/* Return the seed of a sub-model's dropout. The first sub-model has the global model's seed. */
static uint64_t seed_of(const struct sl_submodels *s, int part)
{
    return part ? sl_rng_key(s->whole->options.seed, SL_RNG_UNITS, UINT32_MAX, (uint32_t)part)
                : s->whole->options.seed;
}

/* Return log2 of the factor on weights whose input units are split. With the factor, sums over a
 * part's units are on average as large as sums in the whole network. A power of two keeps all bits
 * of a weight that goes back. */
static int shift_of(const struct sl_submodels *s, int layer, int k)
{
    const bool scaled = s->config->units.unit_sums == SL_UNIT_SUMS_SCALED;
    return scaled && k == 0 && s->rounds.split[s->axes.in[layer]]
               ? (int)lround(log2((double)s->count))
               : 0;
}

static struct sl_units_step step_of(const struct sl_submodels *s, int64_t epoch, int rank)
{
    return (struct sl_units_step){(int)epoch, &s->whole->end[rank]};
}

/* Return the block that the store and the slot of a sub-model exchange. */
static struct sl_store_block block_of(struct sl_submodels *s, int part, int l, int k, int64_t epoch)
{
    struct sl_carried *c = sl_submodel_carried(s, s->of[part].slot, l, k);
    struct sl_store_block block = {.layer = l,
                                   .kind = k,
                                   .epoch = (int)epoch,
                                   .units = sl_submodel_block(s, s->round, part, l),
                                   .tile = s->groups ? &c->there : c->own,
                                   .kept = sl_submodel_kept(s, part, k)};
    block.units.shift = shift_of(s, l, k);
    return block;
}

static void count_steps(struct sl_submodels *s, int part)
{
    struct sl_model *model = &s->slot[s->of[part].slot].model;
    for (int l = 0; l < s->list.count; l++) {
        const struct sl_unit_block block = sl_submodel_block(s, s->round, part, l);
        const struct sl_rounds_past past = sl_rounds_past(&s->rounds, s->round, s->steps, l);
        if (model->layer[l].counts.rows)
            sl_submit_count_steps(s->own, &block, &past, &model->layer[l].counts);
    }
}

static void describe_blocks(struct sl_submodels *s, int part)
{
    for (int l = 0; l < s->list.count; l++)
        s->slot[s->of[part].slot].model.layer[l].block = sl_submodel_block(s, s->round, part, l);
}

static void take(struct sl_submodels *s, int part, int64_t epoch)
{
    struct sl_submodel *of = &s->of[part];
    struct sl_model_slot *slot = &s->slot[of->slot];
    SL_FOR_TILES (s, l, k) {
        struct sl_store_block block = block_of(s, part, l, k, epoch);
        block.zero = k > 0 && of->fresh;
        sl_store_load(s->store, &block);
    }
    if (sl_submodel_slot_here(s, of->slot)) {
        slot->model.options.seed = seed_of(s, part);
        describe_blocks(s, part);
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
    SL_FOR_TILES (s, l, k) {
        const struct sl_store_block block = block_of(s, slot->part, l, k, slot->epoch);
        sl_store_save(s->store, &block);
    }
    slot->changed = false;
}

/* Put all changed sub-models back into the store. Entries that all sub-models share become the mean
 * of their values. */
static void put_all(struct sl_submodels *s, int64_t epoch)
{
    for (int t = 0; t < s->slots; t++)
        if (s->slot[t].changed)
            put(s, &s->slot[t]);
    for (int p = 0; p < s->count; p++)
        SL_FOR_PANELS (s, n, k) {
            const struct sl_shard *shard = &s->store->shard[n];
            const struct sl_units_step step = step_of(s, epoch, shard->owner);
            sl_submit_merge(s->rt, &step, p, &sl_submodel_kept(s, p, k)[n], shard->tile[k]);
        }
}

void sl_submodels_put(struct sl_submodels *s, int64_t epoch)
{
    if (s->round < 0)
        return;
    put_all(s, epoch);
    sl_store_spread(s->store);
}

static void set_round(struct sl_submodels *s, int64_t round)
{
    s->round = round;
    sl_rounds_draw(&s->rounds, round);
    for (int t = 0; t < s->slots; t++)
        s->slot[t].part = -1;
}

int64_t sl_submodels_round_of(const struct sl_submodels *s, int64_t step)
{
    return step / s->steps;
}

int64_t sl_submodels_local_step(const struct sl_submodels *s, int64_t step)
{
    return step % s->steps + 1;
}

void sl_submodels_aggregate(struct sl_submodels *s)
{
    if (s->round >= 0)
        put_all(s, s->epoch);
}

void sl_submodels_cut(struct sl_submodels *s, int64_t round, int64_t epoch)
{
    set_round(s, round);
    for (int p = 0; p < s->count; p++) {
        s->of[p].fresh = s->config->units.reset_optimizer;
        SL_FOR_PANELS (s, n, k) {
            const struct sl_shard *shard = &s->store->shard[n];
            const struct sl_units_step step = step_of(s, epoch, shard->owner);
            sl_submit_share(s->rt, &step, k > 0 && s->of[p].fresh, shard->tile[k],
                            &sl_submodel_kept(s, p, k)[n]);
        }
    }
}

void sl_submodels_distribute(struct sl_submodels *s, int64_t epoch)
{
    for (int p = 0; s->groups && p < s->count; p++)
        take(s, p, epoch);
}

void sl_submodels_begin_step(struct sl_submodels *s, int64_t epoch)
{
    s->epoch = epoch;
    for (int t = 0; s->groups && t < s->slots; t++)
        s->slot[t].changed = true;
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

/* Tasks of epochs after `epoch` did nothing. A slot that took a sub-model in such an epoch still
 * holds the sub-model before, which was already put back. */
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

/* Return how many shared rows of a layer its shards hold together. */
static int64_t shared_rows(const struct sl_submodels *s, int part, int layer, int k)
{
    int64_t rows = 0;
    for (int n = s->store->first[layer]; n < s->store->first[layer + 1]; n++)
        rows += sl_submodel_kept(s, part, k)[n].rows;
    return rows;
}

static int save_kept(struct sl_submodels *s, int part, int l, int k, struct sl_saved *saved)
{
    const int64_t rows = shared_rows(s, part, l, k);
    char name[64];
    name_of(part, l, k, name);
    int code = rows > 0 ? sl_saved_add(saved, name, rows, s->whole->layer[l].parameters.cols) : 0;
    for (int n = s->store->first[l]; !code && n < s->store->first[l + 1]; n++) {
        struct sl_tile *tile = &sl_submodel_kept(s, part, k)[n];
        if (tile->rows > 0)
            code = sl_saved_add_rows(saved, tile, 0, tile->rows);
    }
    return code;
}

static int load_kept(struct sl_submodels *s, int part, int l, int k,
                     const struct sl_checkpoint *checkpoint)
{
    const int64_t rows = shared_rows(s, part, l, k), cols = s->whole->layer[l].parameters.cols;
    char name[64];
    name_of(part, l, k, name);
    const struct sl_tensor *tensor = rows > 0 ? sl_checkpoint_find(checkpoint, name) : NULL;
    if (rows > 0 && (!tensor || tensor->rows != rows || tensor->cols != cols))
        return sl_error(SL_ERR_DATA,
                        "the checkpoint is of the middle of a round, and has no tensor %s of "
                        "%lld x %lld",
                        name, (long long)rows, (long long)cols);
    const float *from = tensor ? tensor->data : NULL;
    for (int n = s->store->first[l]; rows > 0 && n < s->store->first[l + 1]; n++) {
        struct sl_tile *tile = &sl_submodel_kept(s, part, k)[n];
        sl_store_load_rows(tile, 0, tile->rows, cols, from);
        from += tile->rows * cols;
    }
    return 0;
}

int sl_submodels_save(struct sl_submodels *s, int64_t steps, struct sl_saved *saved)
{
    int code = 0;
    for (int p = 0; steps % s->steps && p < s->count; p++)
        SL_FOR_TILES (s, l, k)
            code = code ? code : save_kept(s, p, l, k, saved);
    return code;
}

int sl_submodels_load(struct sl_submodels *s, int64_t steps, const struct sl_checkpoint *checkpoint)
{
    int code = 0;
    if (steps / s->steps >= s->rounds.count)
        return sl_error(SL_ERR_USAGE,
                        "the checkpoint has %lld steps of sub-models already; ask for more with "
                        "--epochs",
                        (long long)steps);
    if (steps % s->steps == 0)
        return 0;
    for (int p = 0; p < s->count; p++)
        SL_FOR_TILES (s, l, k)
            code = code ? code : load_kept(s, p, l, k, checkpoint);
    code = sl_runtime_agree(s->rt, code);
    if (!code) {
        set_round(s, steps / s->steps);
        sl_submodels_distribute(s, 0);
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

/* The order of the sums over sub-models does not depend on the number of groups. */
void sl_submodels_record(struct sl_submodels *s, int64_t epoch, sl_record_function *record,
                         void *context)
{
    struct sl_tile *total = &s->total[0];
    const int rank = s->rt->rank;
    sl_reduce(s->rt, s->total, s->count, 1, sl_submit_metrics_join);
    sl_submit_record(s->rt, record, context, (double)epoch, total, NULL, &s->whole->end[0]);
    if (s->groups)
        sl_groups_broadcast(s->groups, total);
    else
        sl_broadcast(s->rt, total, 0, s->rt->ranks);
    if (rank > 0)
        sl_submit_record(s->rt, record, context, (double)epoch, total, NULL, &s->whole->end[rank]);
}
