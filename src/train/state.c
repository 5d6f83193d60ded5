#include "train/state.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/late_messages.h"
#include "checkpoint/meaning.h"
#include "codelets/optimizer.h"
#include "core/alike.h"
#include "core/error.h"
#include "core/json_file.h"
#include "core/log.h"

/* Endings of tensor names, for each kind of numbers in a store. */
static const char *const kinds[SL_STORE_KINDS] = {"", "moment1", "moment2", "best"};

/* ---- Load ---- */

/* Write a tensor's name: "layer.0.weight", or "layer.0.weight.moment1" for a kind of optimizer
 * state. */
static void name_of(const struct sl_model_layer *layer, const struct sl_parameter *parameter,
                    const char *kind, char name[64])
{
    snprintf(name, 64, "layer.%d.%s%s%s", layer->index, parameter->name, *kind ? "." : "", kind);
}

/* Return how many rows a shard and a parameter share, and set *first to the first of them. Rows
 * count from the layer's first row. */
static int64_t common_rows(const struct sl_shard *shard, const struct sl_parameter *part,
                           int64_t *first)
{
    const int64_t end = shard->first + shard->rows, last = part->row + part->rows;
    *first = shard->first > part->row ? shard->first : part->row;
    return (end < last ? end : last) - *first;
}

static int load_rows(struct sl_store *store, const struct sl_checkpoint *checkpoint,
                     const char *name, int layer, int kind, const struct sl_parameter *part)
{
    const struct sl_tensor *tensor = sl_checkpoint_find(checkpoint, name);
    if (!tensor)
        return sl_error(SL_ERR_DATA, "the checkpoint has no tensor %s", name);
    if (tensor->rows != part->rows || tensor->cols != part->cols)
        return sl_error(
            SL_ERR_DATA,
            "the checkpoint's tensor %s is %lld x %lld where this dataset and configuration "
            "need %lld x %lld",
            name, (long long)tensor->rows, (long long)tensor->cols, (long long)part->rows,
            (long long)part->cols);
    for (int n = store->first[layer]; n < store->first[layer + 1]; n++) {
        const struct sl_shard *shard = &store->shard[n];
        int64_t first;
        const int64_t rows = common_rows(shard, part, &first);
        if (rows > 0)
            sl_store_load_rows(shard->tile[kind], first - shard->first, rows, part->cols,
                               tensor->data + (first - part->row) * part->cols);
    }
    return 0;
}

/* Checkpoints of Starling 0.1 had one tensor for all parameters of a layer: "layer0.parameters". */
static void old_name_of(const struct sl_model_layer *layer, const char *kind, char name[64])
{
    snprintf(name, 64, "layer%d.%s", layer->index, *kind ? kind : "parameters");
}

static int load_kind(struct sl_store *store, const struct sl_checkpoint *checkpoint, int kind,
                     const struct sl_model_layer *layer)
{
    const int l = layer->index;
    char name[64];
    old_name_of(layer, kinds[kind], name);
    if (sl_checkpoint_find(checkpoint, name))
        return load_rows(
            store, checkpoint, name, l, kind,
            &(struct sl_parameter){.rows = layer->parameters.rows, .cols = layer->parameters.cols});
    struct sl_parameter list[SL_PARAMETERS];
    const int count = sl_model_parameters(layer, list);
    int code = 0;
    for (int p = 0; !code && p < count; p++) {
        name_of(layer, &list[p], kinds[kind], name);
        code = load_rows(store, checkpoint, name, l, kind, &list[p]);
    }
    if (code || layer->shape.bias || !layer->shape.kind->bias)
        return code;
    name_of(layer, &(struct sl_parameter){.name = layer->shape.kind->bias}, kinds[kind], name);
    if (sl_checkpoint_find(checkpoint, name))
        code = sl_error(SL_ERR_DATA,
                        "the checkpoint has a tensor %s, and this configuration no biases", name);
    return code;
}

/* Whether the checkpoint has parameters of a best epoch. */
static bool has_best(const struct sl_checkpoint *checkpoint, const struct sl_model_layer *layer)
{
    struct sl_parameter list[SL_PARAMETERS];
    char name[64], old[64];
    sl_model_parameters(layer, list);
    name_of(layer, &list[0], "best", name);
    old_name_of(layer, "best", old);
    return sl_checkpoint_find(checkpoint, name) || sl_checkpoint_find(checkpoint, old);
}

/* Set *value to a number of the description, if there is one. SL_ERR_DATA: it is no number, or not
 * `least` to `most`. */
static int load_number(const struct sl_checkpoint *checkpoint, const char *name, double least,
                       double most, bool whole, double *value)
{
    const json_t *number = json_object_get(checkpoint->description, name);
    if (!number)
        return 0;
    const double given = json_number_value(number);
    if (!json_is_number(number) || !(given >= least && given <= most) ||
        (whole && floor(given) != given))
        return sl_error(SL_ERR_DATA,
                        "the checkpoint's %s is wrong (expected a %snumber, %.15g to %.15g)", name,
                        whole ? "whole " : "", least, most);
    *value = given;
    return 0;
}

/* Return the metric that chose the best epoch. Checkpoints without --metric had accuracy. */
static const struct sl_metric *metric_of(const struct sl_checkpoint *checkpoint)
{
    const char *name = NULL;
    json_unpack(checkpoint->description, "{s:{s:s}}", "configuration", "metric", &name);
    const struct sl_metric *metric = name ? sl_metric_find(name) : NULL;
    return metric ? metric : &sl_metric_accuracy;
}

/* Whether the run compares epochs as the checkpoint did: with the same metric, loss, and, for a
 * metric of counts, decision. */
static bool keeps_measure(const struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    const struct sl_objective *objective = &trainer->whole.graph.objective;
    const struct sl_word mine = sl_config_word(trainer->config, "decision");
    const char *decision = mine.text, *loss = objective->loss->name;
    json_unpack(checkpoint->description, "{s:{s?s, s?s}}", "configuration", "decision", &decision,
                "loss", &loss);
    return metric_of(checkpoint) == objective->metric && strcmp(loss, objective->loss->name) == 0 &&
           (objective->metric->source != SL_METRIC_OF_COUNTS || strcmp(decision, mine.text) == 0);
}

/* Whether the checkpoint's options cut other batches. */
static bool had_other_batches(const struct sl_trainer *trainer,
                              const struct sl_checkpoint *checkpoint)
{
    static const char *const names[] = {"groups",  "batches", "seed",
                                        "max-hop", "fanout",  "partition"};
    const json_t *saved = json_object_get(checkpoint->description, "configuration");
    json_t *own = sl_options_to_json(sl_config_options, trainer->config);
    bool other = false;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        other =
            other || !json_equal(json_object_get(own, names[n]), json_object_get(saved, names[n]));
    json_decref(own);
    return other;
}

/* Load how far an epoch was trained when the run was stopped. */
static int load_unfinished(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    struct sl_unfinished *u = &trainer->start.unfinished;
    const json_t *object = json_object_get(checkpoint->description, "unfinished");
    *u = (struct sl_unfinished){0};
    if (object && (json_unpack((json_t *)object, "{s:i, s:i, s:F, s:F}", "steps", &u->steps, "of",
                               &u->of, "loss", &u->loss, "correct", &u->correct) ||
                   u->steps < 1 || u->steps >= u->of))
        return sl_error(SL_ERR_DATA, "the checkpoint's unfinished epoch is wrong (expected at "
                                     "least one step, fewer than all)");
    if (object && had_other_batches(trainer, checkpoint))
        u->of = -1; /* no epoch has -1 steps: the epoch begins anew */
    return 0;
}

/* Load the epoch, updates and best epoch, which later epochs are compared with. */
static int load_counters(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    struct sl_network *net = &trainer->whole.network;
    const bool counted = metric_of(checkpoint) == &sl_metric_accuracy;
    json_int_t vertices = 0;
    double epoch = -1.0, best_value = -1.0, best_epoch = 0.0, best_loss = NAN, kept = 0.0, updates;
    int code = load_number(checkpoint, "epoch", 0.0, INT32_MAX - 1.0, true, &epoch);
    if (!code && epoch < 0.0)
        code = sl_error(SL_ERR_DATA, "the checkpoint does not say its epoch");
    updates = epoch; /* older programs had one step an epoch */
    if (!code)
        code = load_number(checkpoint, "updates", 0.0, UINT32_MAX - 1.0, true, &updates);
    if (!code)
        code = load_number(checkpoint, "best_epoch", 0.0, epoch, true, &best_epoch);
    if (!code)
        code = load_number(checkpoint, "best_value", counted ? -1.0 : -DBL_MAX,
                           counted ? 0x1p53 : DBL_MAX, counted, &best_value);
    if (!code)
        code = load_number(checkpoint, "kept_epoch", 0.0, epoch, true, &kept);
    if (!code)
        code = load_number(checkpoint, "best_loss", -DBL_MAX, DBL_MAX, false, &best_loss);
    if (code)
        return code;
    json_unpack(checkpoint->description, "{s:{s:I}}", "dataset", "vertices", &vertices);
    trainer->start.trained_vertices = vertices;
    if ((net->model->options.keep_best && !has_best(checkpoint, &net->model->layer[0])) ||
        (trainer->config->files.resume && !keeps_measure(trainer, checkpoint))) {
        best_value = -1.0; /* the best weights are missing, or their value cannot be compared */
        best_epoch = 0.0;
        best_loss = NAN;
    }
    if (net->model->best.memory) {
        ((double *)net->model->best.memory)[0] = best_value;
        ((double *)net->model->best.memory)[1] = best_epoch;
    }
    trainer->kept.best_value = best_value;
    trainer->kept.best_epoch = (int64_t)best_epoch;
    trainer->kept.best_loss = best_loss;
    trainer->kept.kept_epoch =
        best_epoch > 0.0 && kept < epoch ? (int64_t)best_epoch : (int64_t)epoch;
    trainer->start.first_epoch = (int64_t)epoch + 1;
    trainer->updates = trainer->start.first_updates = (int64_t)updates;
    return load_unfinished(trainer, checkpoint);
}

/* Whether the checkpoint has a tensor of an optimizer's state. Weights of other programs have none.
 */
static bool has_states(const struct sl_checkpoint *checkpoint)
{
    for (int t = 0; t < checkpoint->count; t++) {
        const char *kind = strrchr(checkpoint->tensors[t].name, '.');
        for (int s = 0; kind && s < SL_STATES; s++)
            if (strcmp(kind + 1, kinds[SL_STORE_STATE + s]) == 0)
                return true;
    }
    return false;
}

/* Return how many states of the optimizer to load: 0 if the checkpoint has none, or has another
 * kind's. The state then starts from 0. */
static int states_to_load(const struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    const int count = trainer->model.options.states;
    const char *saved = NULL;
    if (!has_states(checkpoint)) {
        if (trainer->config->files.resume && trainer->rt->rank == 0)
            sl_note("--resume %s has no state of an optimizer: the state of %s starts from 0",
                    trainer->config->files.resume,
                    sl_config_word(trainer->config, "optimizer").text);
        return 0;
    }
    json_unpack(checkpoint->description, "{s:{s:s}}", "configuration", "optimizer", &saved);
    if (!saved || sl_optimizer_same_state(trainer->config->training.optimizer, saved))
        return count;
    if (trainer->rt->rank == 0)
        sl_note("the checkpoint has the state of %s: that of %s starts from 0", saved,
                sl_config_word(trainer->config, "optimizer").text);
    return 0;
}

int sl_state_load(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    struct sl_network *net = &trainer->whole.network;
    struct sl_store *store = &trainer->store;
    const int count = states_to_load(trainer, checkpoint);
    for (int l = 0; l < net->layers; l++) {
        struct sl_model_layer *layer = &net->model->layer[l];
        if (!sl_model_learns(layer))
            continue;
        int code = load_kind(store, checkpoint, SL_STORE_PARAMETERS, layer);
        for (int s = 0; !code && s < count; s++)
            code = load_kind(store, checkpoint, SL_STORE_STATE + s, layer);
        if (!code && net->model->options.keep_best && has_best(checkpoint, &net->model->layer[0]))
            code = load_kind(store, checkpoint, SL_STORE_BEST, layer);
        if (code)
            return code;
    }
    return load_counters(trainer, checkpoint);
}

/* ---- Orders of products ---- */

static const char *const product_orders[] = {
    [SL_GEMM_FIRST] = "gemm", [SL_SPMM_FIRST] = "spmm", [SL_AGGREGATED] = "aggregated"};

static json_t *describe_orders(const struct sl_network *net)
{
    json_t *list = json_array();
    for (int l = 0; l < net->layers; l++)
        json_array_append_new(list, json_string(product_orders[net->layer[l].order]));
    return list;
}

int *sl_state_orders(const struct sl_config *config, const struct sl_checkpoint *checkpoint,
                     int layers)
{
    const json_t *list =
        checkpoint ? json_object_get(checkpoint->description, "product_orders") : NULL;
    int *orders =
        config->features.product_order == SL_FIRST_AUTO && json_array_size(list) == (size_t)layers
            ? calloc((size_t)layers, sizeof *orders)
            : NULL;
    for (int l = 0; orders && l < layers; l++) {
        const char *name = json_string_value(json_array_get(list, (size_t)l));
        orders[l] = -1;
        for (int o = SL_GEMM_FIRST; name && o <= SL_SPMM_FIRST; o++)
            orders[l] = strcmp(product_orders[o], name) == 0 ? o : orders[l];
    }
    return orders;
}

/* ---- Tiles ---- */

/* Return the tiles of each graph, or NULL if the configuration says them or each batch has its own.
 */
static json_t *describe_tiles(const struct sl_trainer *trainer)
{
    const struct sl_batches *b = &trainer->batches;
    if (!b->options.needed || b->count != 1 || b->groups.count > 1 ||
        trainer->config->machine.tiles > 0)
        return NULL;
    const struct sl_partition *whole = trainer->whole.operands.partition,
                              *step = b->batch[0].pass.operands.partition,
                              *validation = b->validation.pass.operands.partition;
    return json_pack("{s:i, s:i, s:i, s:i}", "whole", whole->asked, "step", step->asked,
                     "validation", validation ? validation->asked : 0, "shares",
                     b->tiles.shares > 0 ? b->tiles.shares : b->rt->ranks);
}

/* Return a number of tiles; 0, the program's choice, if the checkpoint's number is wrong or
 * missing. */
static int tiles_of(const json_t *saved, const char *key)
{
    enum { MOST = 65536 };
    const json_int_t tiles = json_integer_value(json_object_get(saved, key));
    return tiles < 0 || tiles > MOST ? 0 : (int)tiles;
}

struct sl_batches_tiles sl_state_tiles(const struct sl_config *config,
                                       const struct sl_checkpoint *checkpoint, int ranks)
{
    const json_t *saved = checkpoint && config->files.resume && config->machine.tiles == 0 &&
                                  config->steps.rows == SL_ROWS_NEEDED
                              ? json_object_get(checkpoint->description, "tiles")
                              : NULL;
    const int shares = tiles_of(saved, "shares");
    const struct sl_batches_tiles as_before = {tiles_of(saved, "whole"), tiles_of(saved, "step"),
                                               tiles_of(saved, "validation"),
                                               shares >= ranks ? shares : 0};
    return saved ? as_before : sl_batches_tiles(config);
}

/* ---- Save ---- */

/* Return the hash of a tile's numbers. */
static uint64_t hash_tile(struct sl_runtime *rt, struct sl_tile *tile, uint64_t hash)
{
    const float *numbers = sl_tile_acquire(rt, tile, false);
    for (int64_t r = 0; r < tile->rows; r++)
        hash = sl_alike_hash(hash, numbers + r * tile->ld, (size_t)tile->cols * sizeof *numbers);
    sl_tile_release(tile);
    return hash;
}

uint64_t sl_state_hash(struct sl_trainer *trainer)
{
    const struct sl_store *store = &trainer->store;
    int64_t sum = 0;
    for (int n = 0; n < store->shards; n++)
        if (store->shard[n].owner == trainer->rt->rank)
            sum = (int64_t)((uint64_t)sum + hash_tile(trainer->rt,
                                                      store->shard[n].tile[SL_STORE_PARAMETERS],
                                                      (uint64_t)n));
    sl_runtime_sum(trainer->rt, &sum, 1);
    return (uint64_t)sum;
}

/* Append a parameter's tensor, with the rows of all shards that hold it. */
static int save_parameter(const struct sl_store *store, struct sl_saved *saved, int kind,
                          const struct sl_model_layer *layer, const struct sl_parameter *part)
{
    char name[64];
    name_of(layer, part, kinds[kind], name);
    int code = sl_saved_add(saved, name, part->rows, part->cols);
    for (int n = store->first[layer->index]; !code && n < store->first[layer->index + 1]; n++) {
        const struct sl_shard *shard = &store->shard[n];
        int64_t first;
        const int64_t rows = common_rows(shard, part, &first);
        if (rows > 0)
            code = sl_saved_add_rows(saved, shard->tile[kind], first - shard->first, rows);
    }
    return code;
}

/* Whether a checkpoint has a kind of numbers. With `best`, only the best weights are saved, without
 * state. */
static bool is_saved_kind(const struct sl_trainer *trainer, int kind, bool best)
{
    return kind == SL_STORE_BEST ? trainer->kept.best_epoch > 0
                                 : !best || kind == SL_STORE_PARAMETERS;
}

static int save_layer(const struct sl_trainer *trainer, struct sl_saved *saved,
                      const struct sl_model_layer *layer, bool best)
{
    const struct sl_store *store = &trainer->store;
    struct sl_parameter list[SL_PARAMETERS];
    const int count = sl_model_parameters(layer, list);
    int code = 0;
    for (int k = 0; sl_model_learns(layer) && k < SL_STORE_KINDS; k++)
        for (int p = 0; is_saved_kind(trainer, k, best) &&
                        store->shard[store->first[layer->index]].tile[k] && p < count;
             p++)
            code = code ? code : save_parameter(store, saved, k, layer, &list[p]);
    return code;
}

/* Describe the options. Results depend on the tiles, so write their number instead of auto, unless
 * batches have tiles of their own. Write the loss and metric that auto chose, too. */
static json_t *describe_configuration(const struct sl_trainer *trainer)
{
    json_t *configuration = sl_options_to_json(sl_config_options, trainer->config);
    if (!sl_batches_differ(trainer->config))
        json_object_set_new(configuration, "tiles",
                            json_integer(trainer->whole.operands.partition->asked));
    json_object_set_new(configuration, "loss",
                        json_string(trainer->whole.graph.objective.loss->name));
    json_object_set_new(configuration, "metric",
                        json_string(trainer->whole.graph.objective.metric->name));
    return configuration;
}

/* Describe the steps done of an epoch that was stopped before its last step. */
static json_t *describe_unfinished(const struct sl_trainer *trainer, double end)
{
    const struct sl_record *record = sl_records_of(&trainer->records, (int64_t)ceil(end));
    const int steps = trainer->batches.steps;
    return json_pack("{s:i, s:i, s:f, s:f}", "steps", (int)lround((end - floor(end)) * steps), "of",
                     steps, "loss", record->train_loss, "correct", record->train_correct);
}

/* Return the last epoch, plus the fraction of a next epoch that was trained. */
static double end_of(struct sl_trainer *trainer)
{
    const double *tile = sl_tile_acquire(trainer->rt, &trainer->whole.network.model->end[0], false);
    const double end = *tile > 0.0 ? *tile : (double)trainer->epoch;
    sl_tile_release(&trainer->whole.network.model->end[0]);
    return end;
}

/* Return the description, or NULL without memory for some part of it. */
static json_t *describe(struct sl_trainer *trainer, bool best)
{
    const long failures = sl_json_failures();
    const double end = best ? (double)trainer->kept.best_epoch : end_of(trainer);
    const int64_t updates = best ? trainer->kept.best_updates
                            : end <= (double)(trainer->start.first_epoch - 1)
                                ? trainer->start.first_updates
                                : sl_records_of(&trainer->records, (int64_t)ceil(end))->updates;
    json_t *tiles = describe_tiles(trainer);
    json_t *description = json_pack(
        "{s:o, s:I, s:I, s:f, s:I, s:I, s:o, s:O}", "configuration",
        describe_configuration(trainer), "epoch", (json_int_t)end, "updates", (json_int_t)updates,
        "best_value", trainer->kept.best_value, "best_epoch", (json_int_t)trainer->kept.best_epoch,
        "kept_epoch", (json_int_t)(best ? trainer->kept.best_epoch : trainer->kept.kept_epoch),
        "product_orders", describe_orders(&trainer->whole.network), "dataset", trainer->dataset);
    const struct sl_forward_data data = sl_meaning_forward(trainer->dataset);
    const bool whole = json_object_set_new(description, "forward",
                                           sl_config_describe_forward(trainer->config, &data)) == 0;
    if (tiles)
        json_object_set_new(description, "tiles", tiles);
    if (isfinite(trainer->kept.best_loss))
        json_object_set_new(description, "best_loss", json_real(trainer->kept.best_loss));
    if (!best && trainer->kept.shown_best_epoch != trainer->kept.best_epoch) /* for reports only */
        json_object_set_new(description, "shown_best_epoch",
                            json_integer(trainer->kept.shown_best_epoch));
    if (end != floor(end))
        json_object_set_new(description, "unfinished", describe_unfinished(trainer, end));
    if (whole && sl_json_failures() == failures)
        return description;
    json_decref(description);
    return NULL;
}

/* Collect the tensors and the description. All ranks take rank 0's number of steps. `best`: save
 * the best weights alone, which must be the current ones. */
static int collect(struct sl_trainer *trainer, struct sl_saved *saved, bool best)
{
    struct sl_checkpoint *checkpoint = &saved->checkpoint;
    int64_t updates = 0;
    int code = 0;
    if (trainer->rt->rank == 0) {
        checkpoint->description = describe(trainer, best);
        updates = json_integer_value(json_object_get(checkpoint->description, "updates"));
        if (!checkpoint->description)
            code = sl_error(SL_ERR_SYSTEM, "no memory for the checkpoint's description");
    }
    sl_runtime_broadcast(trainer->rt, 0, &updates, sizeof updates);
    for (int l = 0; !code && l < trainer->model.layers; l++)
        code = save_layer(trainer, saved, &trainer->model.layer[l], best);
    if (!code && !best && sl_config_has_submodels(trainer->config))
        code = sl_submodels_save(&trainer->submodels, updates, saved);
    code = sl_runtime_agree(trainer->rt, code);
    return code || best || !sl_late_messages(&trainer->whole.network)
               ? code
               : sl_late_messages_save(&trainer->whole.network, checkpoint);
}

int sl_state_write(struct sl_trainer *trainer, const char *path, bool somewhere, int64_t *epoch)
{
    struct sl_saved saved = {.rt = trainer->rt};
    int code = collect(trainer, &saved, false);
    if (!code && sl_guard_failed()) /* tasks that made the parameters may have failed */
        code = SL_ERR_SYSTEM;
    if (!code)
        code = sl_saved_write(&saved, path, somewhere);
    *epoch = json_integer_value(json_object_get(saved.checkpoint.description, "epoch"));
    sl_saved_free(&saved);
    return code;
}

int sl_state_write_best(struct sl_trainer *trainer, const char *path)
{
    struct sl_saved saved = {.rt = trainer->rt};
    sl_store_restore_best(&trainer->store);
    int code = collect(trainer, &saved, true);
    if (!code)
        code = sl_saved_write(&saved, path, false);
    sl_saved_free(&saved);
    return code;
}

int sl_state_take(struct sl_trainer *trainer, struct sl_checkpoint *out)
{
    struct sl_saved saved = {.rt = trainer->rt};
    int code = collect(trainer, &saved, false);
    if (!code)
        code = sl_saved_take(&saved, out);
    sl_saved_free(&saved);
    return code;
}
