#include "submodels/store.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/saved.h"
#include "codelets/record.h"
#include "core/error.h"
#include "core/message.h"
#include "core/task.h"
#include "core/temporary.h"
#include "graphs/collective.h"
#include "graphs/network.h"

/* ---- Shards ---- */

static int add_shard(struct sl_store *store, const struct sl_shard *shard)
{
    if (store->shards == store->room) {
        const int room = 2 * store->room + 8;
        struct sl_shard *longer = realloc(store->shard, (size_t)room * sizeof *longer);
        if (!longer)
            return sl_error(SL_ERR_SYSTEM, "no memory for %d shards of parameters", room);
        store->shard = longer;
        store->room = room;
    }
    store->shard[store->shards++] = *shard;
    return 0;
}

static int open_store(struct sl_store *store, struct sl_model *model)
{
    *store = (struct sl_store){.rt = model->rt,
                               .model = model,
                               .kinds = 1 + model->options.states,
                               .first = calloc((size_t)model->layers + 1, sizeof *store->first)};
    return store->first
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the shards of %d layers", model->layers);
}

int sl_store_of_model(struct sl_store *store, struct sl_model *model)
{
    int code = open_store(store, model);
    for (int l = 0; !code && l < model->layers; l++) {
        struct sl_model_layer *layer = &model->layer[l];
        struct sl_shard shard = {.layer = l, .rows = layer->parameters.rows};
        shard.tile[SL_STORE_PARAMETERS] = &layer->parameters;
        for (int s = 0; s < model->options.states; s++)
            shard.tile[SL_STORE_STATE + s] = &layer->state[s];
        shard.tile[SL_STORE_BEST] = layer->best.rows > 0 ? &layer->best : NULL;
        if (sl_model_learns(layer))
            code = add_shard(store, &shard);
        store->first[l + 1] = store->shards;
    }
    return code;
}

static int64_t numbers_of(const struct sl_model *model)
{
    int64_t numbers = 0;
    for (int l = 0; l < model->layers; l++)
        numbers += model->layer[l].parameters.rows * model->layer[l].parameters.cols;
    return numbers;
}

/* Return the next shard, which begins at row `row` of a layer. Earlier shards have `before`
 * numbers. The shard ends where its owner has `share` numbers, rounded up to a row. A layer without
 * weights has one shard. */
static struct sl_shard next_shard(const struct sl_model_layer *layer, int64_t row, int64_t before,
                                  int64_t share, int64_t most_bytes)
{
    const int64_t cols = layer->parameters.cols, left = layer->parameters.rows - row;
    const int64_t most = most_bytes / (cols * (int64_t)sizeof(float));
    int64_t rows = (share - before % share + cols - 1) / cols;
    rows = rows < most ? rows : most > 0 ? most : 1;
    return (struct sl_shard){.layer = layer->index,
                             .owner = (int)(before / share),
                             .first = row,
                             .rows = layer->shape.kind->weights.count == 0 || left < rows ? left
                                                                                          : rows};
}

static int cut_shards(struct sl_store *store, int64_t most_bytes)
{
    const struct sl_model *model = store->model;
    const int64_t ranks = store->rt->ranks, share = (numbers_of(model) + ranks - 1) / ranks;
    int64_t before = 0;
    int code = 0;
    for (int l = 0; !code && l < model->layers; l++) {
        const struct sl_tile *whole = &model->layer[l].parameters;
        for (int64_t row = 0; !code && row < whole->rows;) {
            const struct sl_shard shard =
                next_shard(&model->layer[l], row, before, share, most_bytes);
            code = add_shard(store, &shard);
            row += shard.rows;
            before += shard.rows * whole->cols;
        }
        store->first[l + 1] = store->shards;
    }
    return code;
}

/* ---- Memory ---- */

static int64_t columns_of(const struct sl_store *store, const struct sl_shard *shard)
{
    return store->model->layer[shard->layer].parameters.cols;
}

static bool has_kind(const struct sl_store *store, int kind)
{
    return kind == SL_STORE_BEST ? store->model->options.keep_best : kind < store->kinds;
}

static int64_t own_bytes(const struct sl_store *store)
{
    enum { MORE = 64 }; /* bytes that a file pads a tile with, at most */
    int64_t bytes = 0;
    for (int n = 0; n < store->shards; n++) {
        const struct sl_shard *shard = &store->shard[n];
        for (int k = 0; k < SL_STORE_KINDS; k++)
            if (shard->owner == store->rt->rank && has_kind(store, k))
                bytes += shard->rows * columns_of(store, shard) * (int64_t)sizeof(float) + MORE;
    }
    return bytes;
}

/* Whether shards stay in the memory of the cores. They move to a GPU if all of them fit beside the
 * tiles of a sub-model. Shards in a file stay. */
static bool is_on_cores(const struct sl_store *store)
{
    return store->mapped.memory || !sl_task_holds(store->rt, own_bytes(store) / 2);
}

static int create_tile(struct sl_store *store, const struct sl_shard *shard, struct sl_tile *tile)
{
    const int64_t rows = shard->rows, cols = columns_of(store, shard);
    const size_t bytes = (size_t)(rows * cols) * sizeof(float);
    if (shard->owner != store->rt->rank || !store->mapped.memory)
        return sl_tile_create(store->rt, tile, rows, cols, sizeof(float), shard->owner);
    void *memory = sl_mapped_take(&store->mapped, bytes);
    if (!memory)
        return sl_error(SL_ERR_SYSTEM, "a store of %zu bytes is too small", store->mapped.bytes);
    sl_tile_describe(store->rt, tile, rows, cols, cols, sizeof(float), shard->owner, memory);
    return 0;
}

static int create_tiles(struct sl_store *store)
{
    const bool on_cores = is_on_cores(store);
    int code = 0;
    store->tiles = calloc((size_t)(store->shards * SL_STORE_KINDS + 1), sizeof *store->tiles);
    if (!store->tiles)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d shards of parameters", store->shards);
    for (int n = 0; !code && n < store->shards; n++)
        for (int k = 0; !code && k < SL_STORE_KINDS; k++) {
            struct sl_tile *tile = &store->tiles[n * SL_STORE_KINDS + k];
            if (!has_kind(store, k))
                continue;
            store->shard[n].tile[k] = tile;
            code = create_tile(store, &store->shard[n], tile);
            tile->on_cores = on_cores;
        }
    return code;
}

int sl_store_create(struct sl_store *store, struct sl_model *model, const char *directory,
                    int64_t most_bytes)
{
    int code = open_store(store, model);
    store->directory = directory;
    if (!code)
        code = cut_shards(store, most_bytes > 0 ? most_bytes : SL_SHARD_BYTES);
    if (!code && directory && !store->rt->plans)
        code = sl_mapped_open(&store->mapped, directory, (size_t)own_bytes(store));
    if (!code)
        code = create_tiles(store);
    return sl_runtime_agree(store->rt, code);
}

/* Tiles in the mapped file do not own their memory, so sl_tile_destroy must not free it. */
void sl_store_destroy(struct sl_store *store)
{
    for (int t = 0; store->tiles && t < store->shards * SL_STORE_KINDS; t++) {
        if (store->mapped.memory) {
            sl_tile_forget(&store->tiles[t]);
            store->tiles[t].memory = NULL;
        }
        sl_tile_destroy(&store->tiles[t]);
    }
    free(store->tiles);
    free(store->shard);
    free(store->first);
    sl_mapped_close(&store->mapped);
    *store = (struct sl_store){0};
}

/* A checkpoint on rank 0 receives rows of other ranks' shards, one run of rows after another. */
void sl_store_plan(const struct sl_store *store, struct sl_plan *plan)
{
    int64_t copies = 0, run = 0;
    for (int n = 0; n < store->shards; n++) {
        const struct sl_shard *shard = &store->shard[n];
        const int64_t bytes = shard->rows * columns_of(store, shard) * (int64_t)sizeof(float);
        const bool here = shard->owner == store->rt->rank;
        for (int k = 0; here && k < SL_STORE_KINDS; k++)
            if (has_kind(store, k))
                plan->bytes[SL_PLAN_PARAMETERS] += store->directory ? 0 : bytes;
        const int64_t saved = sl_saved_run_bytes(shard->rows, columns_of(store, shard));
        copies += here ? 0 : bytes;
        run = shard->owner > 0 && saved > run ? saved : run;
    }
    plan->bytes[SL_PLAN_RECEIVED] += run;
    if (store->model->options.holds == SL_MODEL_HOLDS_COPIES)
        plan->bytes[SL_PLAN_RECEIVED] += copies;
}

/* ---- Parameters of all ranks ---- */

static struct sl_units_step step_of(const struct sl_store *store, int epoch, int rank)
{
    return (struct sl_units_step){epoch, &store->model->end[rank]};
}

void sl_store_spread(struct sl_store *store)
{
    struct sl_runtime *rt = store->rt;
    const struct sl_units_step always = step_of(store, 0, rt->rank);
    for (int n = 0; n < store->shards; n++) {
        struct sl_shard *shard = &store->shard[n];
        struct sl_tile *tile = shard->tile[SL_STORE_PARAMETERS];
        if (store->model->options.holds == SL_MODEL_HOLDS_NOTHING)
            continue;
        sl_broadcast(rt, tile, 0, rt->ranks);
        if (!store->tiles)
            continue;
        sl_submit_rows_in(rt, &always, shard->first, tile,
                          &store->model->layer[shard->layer].parameters);
        sl_tile_drop(rt, tile);
    }
}

void sl_store_init(struct sl_store *store)
{
    for (int n = 0; n < store->shards; n++)
        sl_model_init_rows(store->model, store->shard[n].layer, store->shard[n].first,
                           store->shard[n].tile[SL_STORE_PARAMETERS]);
    sl_store_spread(store);
}

/* Send the best epoch and the end of the run, which rank 0 has noted, to ranks with shards. */
static void share_best(struct sl_store *store)
{
    struct sl_tile *end = store->model->end;
    sl_broadcast(store->rt, &store->model->best, 0, store->rt->ranks);
    for (int r = 1; r < store->rt->ranks; r++)
        sl_tile_send_into(store->rt, &end[0], &end[r]);
}

void sl_store_keep_best(struct sl_store *store, int epoch)
{
    if (store->tiles)
        share_best(store);
    for (int n = 0; n < store->shards; n++)
        if (store->shard[n].tile[SL_STORE_BEST])
            sl_submit_copy_if_best(store->rt, epoch, &store->model->best,
                                   store->shard[n].tile[SL_STORE_PARAMETERS],
                                   store->shard[n].tile[SL_STORE_BEST]);
}

void sl_store_restore_best(struct sl_store *store)
{
    for (int n = 0; n < store->shards; n++)
        if (store->shard[n].tile[SL_STORE_BEST])
            sl_submit_copy(store->rt, store->shard[n].tile[SL_STORE_BEST],
                           store->shard[n].tile[SL_STORE_PARAMETERS]);
    sl_store_spread(store);
}

/* ---- Blocks ---- */

/* Call `move` for each shard that holds rows of the block. */
typedef void move_function(struct sl_store *store, const struct sl_store_block *block,
                           const struct sl_shard *shard, struct sl_unit_take *take);

static void for_shards(struct sl_store *store, const struct sl_store_block *block,
                       move_function *move)
{
    struct sl_unit_take take = {
        .block = block->units, .zero = block->zero, .shared = block->shared};
    for (int n = store->first[block->layer]; n < store->first[block->layer + 1]; n++) {
        const struct sl_shard *shard = &store->shard[n];
        take.block.first = shard->first;
        take.rows = sl_unit_block_rows(&take.block, shard->rows);
        take.kept = block->kept ? &block->kept[n] : NULL;
        take.step = step_of(store, block->epoch, shard->owner);
        if (take.rows > 0)
            move(store, block, shard, &take);
        take.at += take.rows;
    }
}

/* Return a temporary tile for rows that travel. All ranks describe it alike. */
static struct sl_tile open_rows(struct sl_store *store, int64_t rows, int64_t cols, int owner)
{
    struct sl_tile tile;
    sl_temporary_open_shared(&tile, rows, cols, sizeof(float), owner,
                             sl_temporary_tags(store->rt, 1));
    return tile;
}

/* Submit the copy of a shard's rows into the block. Rows that an epoch after the run's end takes
 * still travel, but do not reach the block. */
static void load_shard(struct sl_store *store, const struct sl_store_block *block,
                       const struct sl_shard *shard, struct sl_unit_take *take)
{
    struct sl_runtime *rt = store->rt;
    struct sl_tile *from = shard->tile[block->kind], *to = block->tile;
    if (shard->owner == to->owner) {
        sl_submit_take(rt, take, from, to);
        return;
    }
    const struct sl_units_step step = step_of(store, block->epoch, to->owner);
    struct sl_tile rows = open_rows(store, take->rows, to->cols, shard->owner);
    struct sl_unit_take all = *take;
    all.at = 0;
    all.step.epoch = 0;
    sl_submit_take(rt, &all, from, &rows);
    sl_tile_send(rt, &rows, shard->owner, to->owner);
    sl_submit_rows_in(rt, &step, take->at, &rows, to);
    sl_temporary_close(&rows);
}

static void store_shard(struct sl_store *store, const struct sl_store_block *block,
                        const struct sl_shard *shard, struct sl_unit_take *take)
{
    struct sl_runtime *rt = store->rt;
    struct sl_tile *from = block->tile, *to = shard->tile[block->kind];
    if (shard->owner == from->owner) {
        sl_submit_put(rt, take, from, to);
        return;
    }
    struct sl_tile rows = open_rows(store, take->rows, from->cols, from->owner);
    struct sl_unit_take all = *take;
    all.at = 0;
    sl_submit_rows_out(rt, take->at, from, &rows);
    sl_tile_send(rt, &rows, from->owner, shard->owner);
    sl_submit_put(rt, &all, &rows, to);
    sl_temporary_close(&rows);
}

void sl_store_load(struct sl_store *store, const struct sl_store_block *block)
{
    for_shards(store, block, load_shard);
}

void sl_store_save(struct sl_store *store, const struct sl_store_block *block)
{
    for_shards(store, block, store_shard);
}

int64_t sl_store_words(const struct sl_store *store, int layer, const struct sl_unit_block *units,
                       int64_t cols, int root)
{
    struct sl_unit_block block = *units;
    int64_t words = 0;
    for (int n = store->first[layer]; n < store->first[layer + 1]; n++) {
        const struct sl_shard *shard = &store->shard[n];
        block.first = shard->first;
        if (shard->owner != root)
            words += sl_unit_block_rows(&block, shard->rows) * cols;
    }
    return words;
}

/* ---- Checkpoints ---- */

void sl_store_load_rows(struct sl_tile *tile, int64_t row, int64_t rows, int64_t cols,
                        const float *from)
{
    float *to = tile->memory;
    for (int64_t r = 0; to && r < rows; r++)
        memcpy(to + (row + r) * tile->ld, from + r * cols, (size_t)cols * sizeof *to);
}
