#include "train/batches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/rng.h"
#include "core/view.h"

static const struct sl_batches_kind kinds[] = {
    {"full", "full", 0, false},
    {"co", "co:R", 1, false},
    {"clusters", "clusters:K,B", 2, true},
};

/* ---- Options ---- */

/* "NAME:N,M" with so many numbers as the kind has. */
static bool parse_kind(const struct sl_batches_kind *kind, const char *text, int64_t number[2])
{
    const size_t length = strlen(kind->name);
    if (strncmp(text, kind->name, length) != 0)
        return false;
    text += length;
    for (int n = 0; n < kind->numbers; n++) {
        char *end;
        if (*text != (n ? ',' : ':') || text[1] < '1' || text[1] > '9')
            return false;
        number[n] = strtoll(text + 1, &end, 10);
        if (number[n] > INT32_MAX)
            return false;
        text = end;
    }
    return *text == '\0';
}

static int parse_hops(const struct sl_config *config, struct sl_batches_options *o)
{
    char *end;
    const char *text = config->max_hop;
    if (strcmp(text, "all") == 0)
        return 0;
    const long hops = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || hops > 1000)
        return sl_error(SL_ERR_USAGE, "--max-hop %s: expected all, or 0 to 1000 hops", text);
    o->sampled = true;
    o->hops = (int)hops;
    o->fanout = config->fanout;
    return 0;
}

static int parse_preload(const struct sl_config *config, struct sl_batches_options *o)
{
    char *end;
    const char *text = config->preload_hops;
    if (strcmp(text, "all") == 0)
        return 0;
    const long hops = strtol(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || *end || hops > 1000)
        return sl_error(SL_ERR_USAGE, "--preload-hops %s: expected all, or 1 to 1000 hops", text);
    if (!config->groups || o->sampled || o->kind->numbers > 0)
        return sl_error(SL_ERR_USAGE,
                        "--preload-hops %s: expected --groups GxP with it, --max-hop all and "
                        "--batches full",
                        text);
    o->preload = (int)hops;
    return 0;
}

int sl_batches_parse(const struct sl_config *config, struct sl_batches_options *o)
{
    *o = (struct sl_batches_options){.sets = 1, .each = 1, .hops = SL_ALL_HOPS};
    int64_t number[2] = {1, 1};
    for (size_t k = 0; !o->kind && k < sizeof kinds / sizeof *kinds; k++)
        if (parse_kind(&kinds[k], config->batches, number))
            o->kind = &kinds[k];
    if (!o->kind)
        return sl_error(SL_ERR_USAGE,
                        "--batches %s: expected full, co:R with R batches, or clusters:K,B with K "
                        "clusters, B of them in a batch",
                        config->batches);
    o->sets = number[0];
    o->each = number[1];
    if (o->each > o->sets)
        return sl_error(SL_ERR_USAGE, "--batches %s: expected at most as many clusters in a batch",
                        config->batches);
    const int code = parse_hops(config, o);
    return code ? code : parse_preload(config, o);
}

bool sl_batches_differ(const struct sl_config *config)
{
    return config->groups || strcmp(config->batches, "full") != 0;
}

struct sl_assembly sl_batches_whole(const struct sl_config *config)
{
    struct sl_assembly how = sl_config_assembly(config);
    if (!config->groups)
        return how;
    how.kind = &sl_distribution_block;
    how.distribution = "1d";
    how.grid = how.partition = NULL;
    how.replication = 0;
    return how;
}

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

static int create_groups(struct sl_batches *b)
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

/* The ranks that share a step's graph. */
static struct sl_runtime *own_of(struct sl_batches *b)
{
    return b->groups.count > 1 ? &b->own : b->rt;
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

static int cut_groups(struct sl_batches *b)
{
    const int groups = b->groups.count;
    if (groups == 1)
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

/* METIS cuts the graph of the group's vertices alone. */
static int cut_sets(struct sl_batches *b)
{
    struct sl_runtime *rt = own_of(b);
    const int64_t count = b->set_cut[b->how.sets];
    struct sl_selection graph = {0};
    if (b->how.sets == 1)
        return 0;
    int32_t *part = malloc((size_t)(count + 1) * sizeof *part);
    int code =
        part ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %lld sets", (long long)b->how.sets);
    if (!code)
        code = sl_select(b->source, b->vertex, count,
                         &(struct sl_selection_options){.keeps_last_rows = true}, &graph);
    code = sl_runtime_agree(b->rt, code);
    if (!code)
        code = sl_source_find_parts(rt, &graph.source, (int)b->how.sets, (uint64_t)b->config->seed,
                                    NULL, part);
    for (int64_t k = 0; !code && k < count; k++)
        b->vertex[k] = graph.row[k]; /* part[k] is of this vertex */
    if (!code)
        code = sort_sets(b, part);
    sl_selection_free(&graph);
    free(part);
    return sl_runtime_agree(b->rt, code);
}

/* ---- A batch ---- */

/* How many layers of the model aggregate. */
static int hops_of(const struct sl_model *model)
{
    int hops = 0;
    for (int l = 0; l < model->layers; l++)
        hops += !model->layer[l].shape.kind->alone;
    return hops;
}

/* Layers that aggregate between two refreshings of copies, or in all. */
static int hops_between(const struct sl_batches *b)
{
    const int all = hops_of(b->whole->network.model);
    return b->how.preload > 0 && b->how.preload < all ? b->how.preload : all;
}

/* A graph that is sampled, or cut out alone, is normalised by the edges that it has: each sum is
 * then a mean of the neighbours that are there. Else by the edges of the whole graph. */
static int select_batch(struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                        struct sl_selection *selection)
{
    const bool alone = b->how.kind->alone, own_degrees = alone || b->how.sampled;
    const struct sl_selection_options options = {
        .hops = alone            ? 0
                : b->how.sampled ? b->how.hops
                                 : hops_of(b->whole->network.model),
        .fanout = b->how.fanout,
        .seed = (uint64_t)b->config->seed,
        .draw = draw,
        .keeps_last_rows = own_degrees,
    };
    const int code = sl_select(b->source, inner, count, &options, selection);
    if (!code && own_degrees) {
        selection->source.row_entries = NULL;
        selection->source.row_weight = NULL;
    }
    return code;
}

/* ---- Copies of other groups' vertices ---- */

static int check_copies(const struct sl_distribution *d)
{
    return d->grid.columns == 1 && !d->kind->clones
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "--preload-hops: rows of vertices are cut or cloned (expected "
                          "--distribution 1d, 1.5d, halo or cover, or --preload-hops all)");
}

/* Numbers of vertices and who owns them, of the rows of this rank. */
static void read_rows(struct sl_batches *b, const struct sl_operands *o, uint32_t *vertex,
                      bool *owned)
{
    const struct sl_partition *p = o->partition;
    int64_t k = 0;
    for (int t = p->rank_cut[b->own.rank]; t < p->rank_cut[b->own.rank + 1]; t++) {
        struct sl_tile *facts = &o->facts[0][t];
        const int64_t rows = p->row_cut[t + 1] - p->row_cut[t];
        const float *fact = sl_tile_acquire(&b->own, facts, false);
        for (int64_t r = 0; r < rows; r++, k++) {
            vertex[k] = ((const uint32_t *)fact)[SL_ROW_VERTEX * rows + r];
            owned[k] = fact[SL_ROW_ROOT * rows + r] > 0.0f;
        }
        sl_tile_release(facts);
    }
}

static int create_copies(struct sl_batches *b, struct sl_batch *batch)
{
    const struct sl_operands *o = &batch->pass.operands;
    const struct sl_partition *p = o->partition;
    const int from = p->rank_cut[b->own.rank], to = p->rank_cut[b->own.rank + 1];
    const int64_t rows = p->row_cut[to] - p->row_cut[from];
    uint32_t *vertex = malloc((size_t)(rows + 1) * sizeof *vertex);
    bool *owned = malloc((size_t)(rows + 1) * sizeof *owned);
    int code = vertex && owned ? check_copies(o->distribution)
                               : sl_error(SL_ERR_SYSTEM, "no memory for the numbers of %lld rows",
                                          (long long)rows);
    code = sl_runtime_agree(b->rt, code);
    if (!code) {
        read_rows(b, o, vertex, owned);
        code = sl_copies_create(
            &batch->copies, &b->groups, hops_between(b),
            &(struct sl_copies_rows){
                .from = from, .to = to, .row_cut = p->row_cut, .vertex = vertex, .owned = owned});
        batch->pass.network.copies = &batch->copies;
    }
    free(vertex);
    free(owned);
    return code;
}

/* ---- The graph and the network of a batch ---- */

/* Class weights are those of the whole graph. */
static void lend_weights(struct sl_batches *b, struct sl_batch *batch)
{
    struct sl_tile *weights = b->whole->graph.weights;
    struct sl_pass *pass = &batch->pass;
    pass->graph.weights = weights;
    if (!weights || b->groups.count == 1)
        return;
    batch->weights = *weights;
    batch->weights.memory = NULL;
    batch->weights.owner = b->own.rank;
    sl_view_lend(b->rt, weights, &batch->weights);
    pass->graph.weights = &batch->weights;
}

static int open_pass(struct sl_batches *b, struct sl_selection *selection, struct sl_batch *batch)
{
    struct sl_runtime *rt = own_of(b);
    struct sl_pass *pass = &batch->pass;
    struct sl_assembly how = sl_config_assembly(b->config);
    if (b->config->groups)
        how.partition = NULL; /* the parts of the groups */
    how.objective.balanced = false;
    int code = sl_operands_order(rt, &selection->source, &how);
    if (!code)
        code = sl_pass_open(pass, rt, &selection->source, b->config, &how);
    code = sl_runtime_agree(b->rt, code);
    if (code)
        return code;
    pass->graph.objective = b->whole->graph.objective;
    lend_weights(b, batch);
    int64_t counts[] = {pass->operands.split_count[SL_SPLIT_TRAIN], batch->inner};
    for (int c = 0; c < 2; c++)
        counts[c] = rt->rank == 0 ? counts[c] : 0; /* once for each group */
    sl_runtime_sum(b->rt, counts, 2);
    pass->graph.train_count = counts[0];
    pass->graph.vertices = counts[1];
    pass->network.places = &b->places;
    if (b->groups.count > 1 && hops_between(b) < hops_of(b->whole->network.model))
        code = create_copies(b, batch);
    if (code)
        return code;
    code =
        sl_pass_add_network(pass, b->whole->network.model, b->groups.count > 1 ? &b->groups : NULL,
                            b->core, b->config, b->orders);
    return sl_runtime_agree(b->rt, code);
}

/* Wait for the tasks on the batch. */
static void destroy_batch(struct sl_batch *batch)
{
    sl_copies_destroy(&batch->copies);
    sl_pass_destroy(&batch->pass);
    batch->weights.handle = NULL; /* lent */
    *batch = (struct sl_batch){.version = -1};
}

/* Other batches have the places meanwhile. */
static int allocate(struct sl_batches *b)
{
    struct sl_runtime *rt = own_of(b);
    if (sl_places_lack(rt, &b->places))
        sl_runtime_wait(rt);
    return sl_runtime_agree(b->rt, sl_places_allocate(rt, &b->places));
}

static int make_batch(struct sl_batches *b, const int64_t *inner, int64_t count, uint32_t draw,
                      struct sl_batch *batch)
{
    struct sl_selection selection = {0};
    int code = sl_runtime_agree(b->rt, select_batch(b, inner, count, draw, &selection));
    if (!code) {
        batch->inner = count;
        batch->outer = selection.source.vertices - count;
        code = open_pass(b, &selection, batch);
        batch->entries = batch->pass.operands.entries;
    }
    sl_selection_free(&selection);
    return code;
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

/* Several sets of a batch are other ones in each epoch: two batches are in memory then, one that is
 * trained on and one made ahead. */
static bool rotates(const struct sl_batches *b)
{
    return b->how.each > 1;
}

static int create_lists(struct sl_batches *b)
{
    b->steps = (int)((b->how.sets + b->how.each - 1) / b->how.each);
    b->count = rotates(b) ? 2 : b->steps;
    b->batch = calloc((size_t)b->count, sizeof *b->batch);
    if (!b->batch)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d batches", b->count);
    for (int k = 0; k < b->count; k++)
        b->batch[k].version = -1;
    return copy_orders(b);
}

bool sl_batches_drawn(const struct sl_batches *b)
{
    return rotates(b) || (b->how.sampled && b->config->resample > 0);
}

/* The set at a place of the epoch's random order. */
static int64_t set_at(const struct sl_batches *b, int64_t epoch, int64_t place)
{
    const uint64_t key = sl_rng_key((uint64_t)b->config->seed, SL_RNG_BATCHES, (uint32_t)epoch, 0);
    return (int64_t)sl_rng_permute(key, (uint32_t)b->how.sets, (uint32_t)place);
}

/* How often samples were drawn anew before an epoch. */
static int64_t draw_of(const struct sl_batches *b, int64_t epoch)
{
    return b->how.sampled && b->config->resample > 0 ? (epoch - 1) / b->config->resample : 0;
}

static int draw_batch(struct sl_batches *b, int64_t epoch, int step, struct sl_batch *batch)
{
    const int64_t first = step * b->how.each, sets = b->how.sets,
                  end = first + b->how.each < sets ? first + b->how.each : sets;
    int64_t *inner = malloc((size_t)(b->set_cut[sets] + 1) * sizeof *inner), count = 0;
    int code = inner ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the vertices of a batch");
    code = sl_runtime_agree(b->rt, code);
    for (int64_t p = first; !code && p < end; p++) {
        const int64_t s = set_at(b, epoch, p), size = b->set_cut[s + 1] - b->set_cut[s];
        memcpy(inner + count, b->vertex + b->set_cut[s], (size_t)size * sizeof *inner);
        count += size;
    }
    if (!code)
        code = make_batch(b, inner, count, (uint32_t)draw_of(b, epoch), batch);
    free(inner);
    return code;
}

static struct sl_batch *batch_of(struct sl_batches *b, int64_t epoch, int step)
{
    return &b->batch[rotates(b) ? step % b->count : set_at(b, epoch, step)];
}

static int64_t version_of(const struct sl_batches *b, int64_t epoch, int step)
{
    return rotates(b) ? (epoch - 1) * b->steps + step : draw_of(b, epoch);
}

/* Make the batch of a step, unless it is there. */
static int find_batch(struct sl_batches *b, int64_t epoch, int step, struct sl_batch **batch)
{
    *batch = batch_of(b, epoch, step);
    const int64_t version = version_of(b, epoch, step);
    if ((*batch)->version == version)
        return 0;
    if ((*batch)->version >= 0)
        destroy_batch(*batch);
    (*batch)->version = version;
    return draw_batch(b, epoch, step, *batch);
}

static int create_all(struct sl_batches *b)
{
    struct sl_batch *batch;
    int code = sl_runtime_agree(b->rt, create_lists(b));
    if (!code)
        code = cut_groups(b);
    if (!code)
        code = cut_sets(b);
    for (int s = 0; !code && s < b->count && !rotates(b); s++)
        code = find_batch(b, 1, s, &batch);
    return code ? code : allocate(b);
}

int sl_batches_create(struct sl_batches *b, struct sl_runtime *rt, const struct sl_source *source,
                      const struct sl_config *config, struct sl_pass *whole,
                      const struct sl_rates *core)
{
    *b = (struct sl_batches){.config = config,
                             .source = source,
                             .rt = rt,
                             .whole = whole,
                             .core = core,
                             .steps = 1,
                             .places = {.shared = true}};
    int code = sl_batches_parse(config, &b->how);
    if (!code)
        code = create_groups(b);
    return code || !sl_batches_differ(config) ? code : create_all(b);
}

void sl_batches_destroy(struct sl_batches *b)
{
    for (int k = 0; k < b->count; k++)
        destroy_batch(&b->batch[k]);
    sl_places_free(&b->places);
    if (b->groups.count > 1) {
        sl_groups_destroy(&b->groups);
        sl_view_free(&b->own);
    }
    free(b->batch);
    free(b->orders);
    free(b->vertex);
    free(b->set_cut);
    *b = (struct sl_batches){0};
}

struct sl_network *sl_batches_network(struct sl_batches *b, int64_t epoch, int step)
{
    struct sl_batch *batch;
    if (b->count == 0)
        return &b->whole->network;
    const bool there = batch_of(b, epoch, step)->version == version_of(b, epoch, step);
    if (find_batch(b, epoch, step, &batch) || (!there && allocate(b)))
        sl_fatal("batch %d of epoch %lld: %s", step + 1, (long long)epoch, sl_error_message());
    return batch->pass.graph.train_count > 0 ? &batch->pass.network : NULL;
}
