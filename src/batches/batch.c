#include "batches/batch.h"

#include <stdlib.h>

#include "batches/needed.h"
#include "batches/sets.h"
#include "core/error.h"
#include "core/view.h"
#include "data/relations.h"

/* Return how many layers of the model aggregate in an epoch, sums made before the first epoch not
 * counted. */
static int hops_of(const struct sl_batches *b)
{
    const struct sl_model *model = b->whole->network.model;
    int hops = 0;
    for (int l = sl_batches_read_aggregated(b->config, &b->options); l < model->layers; l++)
        hops += !model->layer[l].shape.kind->alone;
    return hops;
}

/* Return how many layers aggregate between two refreshings of copies, or in all. One group has no
 * copies. */
static int hops_between(const struct sl_batches *b)
{
    const int all = hops_of(b);
    const bool refreshes = b->groups.count > 1 && b->options.preload > 0;
    return refreshes && b->options.preload < all ? b->options.preload : all;
}

/* Select one vertex for a group without vertices, since a graph needs a row. The vertex counts
 * nowhere: it is no inner vertex and in no split. */
static int select_stand_in(const struct sl_batches *b, struct sl_selection *selection)
{
    const int64_t first = 0;
    const int code = sl_select(b->source, &first, 1, &(struct sl_selection_options){0}, selection);
    struct sl_source *source = &selection->source;
    source->selection.inner = 0;
    for (int s = 0; s < SL_SPLITS; s++)
        source->splits.split[s].count = source->splits.split[s].shape[0] = 0;
    return code;
}

/* Select a batch's graph. Edges of the selected graph normalise a sample or a graph of clusters
 * alone, so each sum is a mean of the neighbours in it. Edges of the whole graph normalise all
 * other graphs. */
static int select_from(const struct sl_batches *b, const int64_t *inner, int64_t count,
                       uint32_t draw, int hops, struct sl_selection *selection)
{
    const bool alone = b->options.kind->alone, own_degrees = alone || b->options.sampled;
    const struct sl_selection_options options = {
        .hops = alone                ? 0
                : b->options.sampled ? b->options.hops
                                     : hops,
        .fanout = b->options.fanout,
        .seed = (uint64_t)b->config->training.seed,
        .draw = draw,
        .keeps_last_rows = own_degrees,
    };
    struct sl_source source = *b->source;
    source.symmetric = b->whole && b->whole->operands.symmetric;
    int code = count ? sl_select(&source, inner, count, &options, selection)
                     : select_stand_in(b, selection);
    if (!code && own_degrees) {
        sl_selection_join_hops(selection, hops);
        selection->source.selection.row_entries = NULL;
        selection->source.selection.row_weight = NULL;
    }
    if (!code && own_degrees && source.reads_edges == SL_READS_RELATIONS)
        code = sl_relations_own(&selection->source);
    if (!code && sl_batches_read_aggregated(b->config, &b->options)) {
        selection->source.selection.aggregated_from = b->source;
        selection->source.selection.aggregated_row = selection->row;
    }
    return code;
}

int sl_batch_select(const struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                    int hops, struct sl_selection *selection)
{
    int64_t *kept = NULL, left = 0;
    if (!b->options.needed)
        return select_from(b, inner, count, draw, hops, selection);
    int code = sl_needed_keep(b->source, SL_SPLIT_TRAIN, inner, count, &kept, &left);
    if (!code)
        code = select_from(b, kept, left, draw, hops, selection);
    free(kept);
    return code;
}

/* ---- Copies of other groups' vertices ---- */

/* Whether rows of other groups' vertices are refreshed between layers. */
static bool has_copies(const struct sl_batches *b)
{
    return !b->independent && b->groups.count > 1 && hops_between(b) < hops_of(b);
}

/* With --delay 0c, clones of a vertex have unlike sums, so no sum can be sent to other groups. */
static int check_copies(const struct sl_batches *b)
{
    return !has_copies(b) || b->config->ranks.delay != SL_DELAY_NEVER
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "--delay 0c: with --preload-hops %s, rows of other groups have exact "
                          "sums (expected cd-0 or --preload-hops all)",
                          sl_config_text(b->config, "preload-hops").text);
}

static int create_copies(struct sl_batches *b, struct sl_batch *batch)
{
    struct sl_operands *o = &batch->pass.operands;
    const int code = sl_copies_create(&batch->copies, &b->groups, hops_between(b),
                                      b->config->ranks.delay, &o->rows);
    sl_operands_forget_rows(o);
    batch->pass.network.copies = &batch->copies;
    return code;
}

/* ---- The graph and the network of a batch ---- */

/* Give the batch's graph the class weights of the whole graph. */
static void lend_weights(struct sl_batches *b, struct sl_batch *batch)
{
    struct sl_tile *weights = b->whole->graph.weights;
    struct sl_pass *pass = &batch->pass;
    pass->graph.weights = weights;
    if (!weights || b->groups.count == 1 || b->rt->plans)
        return;
    batch->weights = *weights;
    batch->weights.memory = NULL;
    batch->weights.owner = b->own.rank;
    sl_view_lend(b->rt, weights, &batch->weights);
    pass->graph.weights = &batch->weights;
}

/* Make a network for each model. batch->more ends with an empty network. */
static int create_networks(struct sl_batches *b, struct sl_batch *batch)
{
    const bool one = b->independent || b->groups.count == 1;
    batch->more = calloc((size_t)b->models, sizeof *batch->more);
    int code = batch->more ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d networks", b->models);
    code = sl_runtime_agree(b->rt, code);
    if (!code)
        code = sl_pass_add_network(&batch->pass, b->model[0], one ? NULL : &b->groups, b->core,
                                   b->config, b->orders);
    for (int k = 1; !code && k < b->models; k++)
        code = sl_pass_create_network(&batch->pass, &batch->more[k - 1], b->model[k], b->config,
                                      b->orders);
    return sl_runtime_agree(b->rt, code);
}

/* Give features that are read for each step one of two places, in turn. The next batch's features
 * are read while the batch before trains. */
static int share_features(struct sl_batches *b, struct sl_batch *batch)
{
    const int turn = (int)((batch - b->batch) % 2);
    struct sl_place *place = sl_places_find(&b->places, SL_PLACE_FEATURES, turn);
    return place ? sl_place_add(place, &batch->pass.operands.input.dense) : SL_ERR_SYSTEM;
}

void sl_batch_load(struct sl_batches *b, struct sl_batch *batch)
{
    const struct sl_matrix *x = &batch->pass.operands.input.dense;
    if (!batch->pass.operands.stored.row || x->place->current == x)
        return;
    sl_place_take(sl_batches_own(b), x->place, x);
    sl_stored_rows_load(sl_batches_own(b), &batch->pass.operands.stored, x);
}

/* Whether each rank cuts the batch's graph by itself, from the whole selection. With clones, and
 * with aggregated features, a rank needs data of other ranks. */
static bool reads_all(const struct sl_batches *b)
{
    return !sl_config_kind(b->config)->clones && !sl_config_aggregates(b->config);
}

static int open_pass(struct sl_batches *b, struct sl_selection *selection, int64_t tiles,
                     struct sl_batch *batch)
{
    struct sl_runtime *rt = sl_batches_own(b);
    struct sl_pass *pass = &batch->pass;
    struct sl_assembly assembly = sl_config_assembly(b->config);
    if (b->config->steps.groups.given)
        assembly.owners.partition = NULL; /* --partition has cut the vertices among groups */
    assembly.objective.balanced = false;
    assembly.loads = sl_batches_read_features(b);
    assembly.lists_copies = has_copies(b);
    assembly.tiles = tiles;
    assembly.workers = sl_batches_are_drawn(b) && reads_all(b) ? b->workers : NULL;
    assembly.hop_shares = b->options.needed ? b->tiles.shares : 0;
    assembly.forward_only = pass->network.evaluates;
    int code = check_copies(b);
    if (!code)
        code = sl_operands_order(rt, &selection->source, &assembly);
    if (!code)
        code = sl_pass_open(pass, rt, &selection->source, &assembly);
    code = sl_runtime_agree(b->rt, code);
    if (code)
        return code;
    if (pass->operands.stored.row)
        code = share_features(b, batch);
    code = sl_runtime_agree(b->rt, code);
    if (code)
        return code;
    pass->graph.objective = b->whole->graph.objective;
    lend_weights(b, batch);
    pass->graph.train_count = batch->size.train;
    pass->graph.vertices = batch->size.inner;
    pass->network.memory.places = &b->places;
    if (has_copies(b))
        code = create_copies(b, batch);
    return code ? code : create_networks(b, batch);
}

int sl_batch_make_whole(struct sl_batches *b, struct sl_batch *batch)
{
    batch->version = 0;
    batch->pass.graph = b->whole->graph;
    batch->pass.network =
        (struct sl_network){.rt = b->rt, .graph = &batch->pass.graph, .memory.places = &b->places};
    return create_networks(b, batch);
}

void sl_batch_destroy(struct sl_batch *batch)
{
    for (int k = 0; batch->more && batch->more[k].rt; k++)
        sl_network_destroy(&batch->more[k]);
    free(batch->more);
    sl_copies_destroy(&batch->copies);
    if (batch->pass.operands.input.dense.place)
        sl_place_remove(batch->pass.operands.input.dense.place, &batch->pass.operands.input.dense);
    sl_pass_destroy(&batch->pass);
    batch->weights.handle = NULL; /* the whole graph's tile owns the handle */
    *batch = (struct sl_batch){.version = -1};
}

int sl_batches_allocate(struct sl_batches *b)
{
    struct sl_runtime *rt = sl_batches_own(b);
    if (sl_places_lack(rt, &b->places))
        sl_runtime_wait(rt);
    return sl_runtime_agree(b->rt, sl_places_allocate(rt, &b->places));
}

int sl_batch_make_validation(struct sl_batches *b, struct sl_batch *batch)
{
    struct sl_selection selection = {0};
    int64_t *kept = NULL, left = 0;
    struct sl_needed_size size;
    int code = sl_needed_validation(b->rt, b->source, b->config, &size);
    const bool takes = !code && size.vertices > 0;
    if (takes)
        code = sl_needed_keep(b->source, SL_SPLIT_VAL, NULL, 0, &kept, &left);
    if (!code && takes)
        code = select_from(b, kept, left, 0, hops_between(b), &selection);
    code = sl_runtime_agree(b->rt, code);
    batch->pass.network.evaluates = true;
    if (!code && takes)
        batch->outer = selection.source.vertices;
    if (!code && takes)
        code = open_pass(b, &selection, b->tiles.validation, batch);
    sl_selection_free(&selection);
    free(kept);
    return code;
}

int sl_batch_make(struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                  struct sl_batch *batch)
{
    struct sl_selection selection = {0};
    int code = sl_runtime_agree(
        b->rt, sl_batch_select(b, inner, count, draw, hops_between(b), &selection));
    if (!code) {
        batch->inner = selection.source.selection.inner;
        batch->outer = selection.source.vertices - batch->inner;
        batch->entries = selection.source.adjacency.indices.count;
        batch->redundant = batch->entries -
                           sl_npy_integer(&selection.source.adjacency.indptr, selection.hop_cut[1]);
        code = open_pass(b, &selection, b->tiles.step, batch);
    }
    sl_selection_free(&selection);
    return code;
}
