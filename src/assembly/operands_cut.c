/* Cuts rows and edges among ranks, and reads the part of the dataset that this rank needs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/clones.h"
#include "assembly/edge_shares.h"
#include "assembly/making.h"
#include "core/error.h"
#include "core/task.h"
#include "data/fingerprint.h"
#include "graphs/vertex_cut.h"

int sl_operands_order_by_parts(struct sl_runtime *rt, const struct sl_source *source,
                               const struct sl_assembly *assembly, int ranks,
                               struct sl_source *ordered)
{
    int32_t *part = malloc((size_t)(source->vertices + 1) * sizeof *part);
    int code = sl_runtime_agree(rt, part ? 0
                                         : sl_error(SL_ERR_SYSTEM,
                                                    "no memory for the parts of %lld vertices",
                                                    (long long)source->vertices));
    if (!code)
        code = sl_source_find_parts(rt, source, ranks, assembly->seed, assembly->owners.partition,
                                    part);
    if (!code)
        code = sl_runtime_agree(rt, sl_source_order_by_parts(ordered, ranks, part));
    free(part);
    return code;
}

int sl_operands_order(struct sl_runtime *rt, struct sl_source *source,
                      const struct sl_assembly *assembly)
{
    const bool known =
        source->order.part_cut && source->order.parts == rt->ranks; /* see sl_scenario_decide */
    const int shares = assembly->hop_shares > 0 ? assembly->hop_shares : rt->ranks;
    if (!assembly->owners.kind->parts && !assembly->owners.kind->clones &&
        source->selection.hop_cut && shares > 1)
        return sl_runtime_agree(rt, sl_source_order_by_hop_shares(source, shares));
    return assembly->owners.kind->parts && (rt->ranks > 1 || assembly->owners.partition) && !known
               ? sl_operands_order_by_parts(rt, source, assembly, rt->ranks, source)
               : 0;
}

struct sl_partition_options sl_operands_cut(const struct sl_runtime *rt,
                                            const struct sl_assembly *assembly)
{
    return (struct sl_partition_options){
        .balance = assembly->balance,
        .tiles = assembly->tiles,
        .cores = rt->all_cores,
        .gpus = rt->all_gpus,
        .shared = !rt->process->gpus_only,
        .gpu_bytes = rt->gpu_bytes,
        .workers = rt->process->workers > 0 ? rt->process->workers : 1,
        .ranks = assembly->workers ? rt->ranks : 0,
        .rank_workers = assembly->workers,
        .width = assembly->model.hidden,
        .link = rt->link_bytes,
    };
}

/* Check that every matrix has a column for each column of the grid. */
static int check_widths(const struct sl_grid *grid, const struct sl_source *source,
                        const struct sl_assembly *assembly)
{
    const struct {
        const char *what;
        int64_t width;
    } widths[] = {{"the features", source->features},
                  {"the classes", source->classes},
                  {"--hidden", assembly->model.inner ? assembly->model.hidden : INT64_MAX},
                  {"the hidden units of a sub-model",
                   assembly->model.least_units > 0 ? assembly->model.least_units : INT64_MAX},
                  {"--heads", assembly->model.inner && assembly->model.heads > 0
                                  ? assembly->model.heads
                                  : INT64_MAX}};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        if (widths[w].width < grid->columns)
            return sl_error(SL_ERR_USAGE,
                            "%s: the grid of ranks is %dx%dx%d, and %s are %lld (expected no fewer "
                            "than the grid's %d columns: --grid RxCxD with a smaller C)",
                            assembly->owners.grid.rows > 0 ? "--grid" : "--distribution",
                            grid->rows, grid->columns, grid->depth, widths[w].what,
                            (long long)widths[w].width, grid->columns);
    return 0;
}

/* Return roughly the bytes of a task on all sparse tiles of one row tile from one rank: the sparse
 * tiles, and the dense rows of the largest rank. */
static int64_t met_bytes(const struct sl_making *m, const struct sl_partition *p)
{
    const struct sl_assembly *assembly = m->assembly;
    int64_t widest =
        m->source.classes > assembly->model.hidden ? m->source.classes : assembly->model.hidden;
    int64_t rows = 0;
    const bool features =
        assembly->aggregates || m->source.features < assembly->model.hidden || assembly->spmm_first;
    if (features && m->source.features > widest)
        widest = m->source.features;
    for (int r = 0; r < p->ranks; r++) {
        const int64_t count = p->row_cut[p->rank_cut[r + 1]] - p->row_cut[p->rank_cut[r]];
        rows = count > rows ? count : rows;
    }
    const int64_t entries = (m->source.adjacency.indices.count + m->source.vertices) / p->tiles;
    return rows * sl_leading(widest, SL_FLOAT32) * (int64_t)sizeof(float) +
           entries * (int64_t)(sizeof(uint32_t) + sizeof(float));
}

/* Whether cuSPARSE is wanted for the sparse tiles. It takes one dense tile for each sparse tile. */
static bool wants_cusparse(const struct sl_making *m, const struct sl_partition *p)
{
    const int64_t n = m->source.vertices, nnz = m->source.adjacency.indices.count + n;
    const int64_t widths[] = {m->assembly->model.hidden, m->source.classes, m->source.features};
    bool wants = false;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        wants = wants || sl_spmm_choice_wants(&m->rt->spmm, n * p->tiles, nnz, widths[w]);
    return wants && m->rt->all_gpus > 0 && m->assembly->type == SL_FLOAT32;
}

/* Return whether sparse tiles stand alone, the same on all ranks. Otherwise the tiles of a row tile
 * from one rank are one tile. Tiles stand alone if the reducer or cuSPARSE needs it, or a single
 * tile is too large for a task on a GPU. */
static bool tiles_stand_alone(const struct sl_making *m, const struct sl_partition *p)
{
    return m->assembly->reducer->alone || !sl_task_holds(m->rt, met_bytes(m, p)) ||
           wants_cusparse(m, p);
}

static int create_distribution(struct sl_making *m)
{
    struct sl_operands *o = m->o;
    const struct sl_assembly *assembly = m->assembly;
    const struct sl_partition *p = sl_making_partition(m);
    struct sl_distribution *d = &o->distribution[m->row_order];
    *d = (struct sl_distribution){
        .kind = assembly->owners.kind,
        .own = d->own, /* kept if rows are cut again */
        .row_order = m->row_order,
        .partials = &o->partials[m->row_order],
        .temporaries = &o->temporaries,
        .broadcast = assembly->owners.broadcast,
        .own_first = assembly->owners.own_first,
        .tiles_alone = tiles_stand_alone(m, p),
        .drops_adjacency = assembly->drops_adjacency,
        .ranks = m->rt->ranks,
        .tiles = p->tiles,
        .rank_cut = p->rank_cut,
        .row_cut = p->row_cut,
        .hop = p->hop,
    };
    int code = sl_grid_choose(assembly->owners.distribution, assembly->owners.replication,
                              assembly->owners.grid, m->rt->ranks, &d->grid);
    if (!code)
        code = check_widths(&d->grid, &m->source, assembly);
    return code || d->own ? code : d->kind->create(d);
}

int sl_making_cut(struct sl_making *m)
{
    struct sl_partition_options options = sl_operands_cut(m->rt, m->assembly);
    if (m->row_order > 0)
        options.tiles = m->o->partition->tiles;
    struct sl_source source = m->source;
    if (m->assembly->owners.kind->clones) /* clones are cut again later, by their hops */
        source.selection.hop_cut = NULL;
    int code = sl_partition_create(m->readers, &m->o->partition[m->row_order], &source, &options);
    if (!code)
        code = create_distribution(m);
    return sl_runtime_agree(m->rt, code);
}

void sl_making_close(struct sl_making *m)
{
    sl_part_close(&m->part);
    free(m->left);
    free(m->right);
    free(m->diagonal);
    free(m->row);
    m->left = m->right = NULL;
    m->diagonal = m->row = NULL;
}

/* Return a checksum of the vertices, ranks and bins of all leaves, on all ranks. Collective. */
static uint64_t fingerprint_of(struct sl_runtime *rt, const struct sl_clones *clones)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < clones->leaves; k++) {
        const struct sl_clone *leaf = &clones->leaf[k];
        const int64_t vertex = clones->part.data.original[leaf->row - clones->bounds[rt->rank]];
        sum += sl_fingerprint_mix(
            sl_fingerprint_mix((uint64_t)vertex) ^
            ((uint64_t)rt->rank << 40 | (uint64_t)leaf->peer << 16 | (uint64_t)leaf->bin));
    }
    int64_t all = (int64_t)sum;
    sl_runtime_sum(rt, &all, 1);
    return (uint64_t)all;
}

/* Return the weight of the vertex's row of S over the weight of the clone's own entries. Return 1
 * for a clone without entries, which has no sum to scale. */
static float partial_factor(const struct sl_clones *clones, int64_t k, bool loops)
{
    const struct sl_csr *a = &clones->part.data.adjacency;
    double own = loops && clones->diagonal[k] >= 0;
    for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
        own += a->values ? fabs((double)a->values[e]) : 1.0;
    return own > 0.0 ? (float)((clones->weight[k] + loops) / own) : 1.0f;
}

/* Set *factors (rows) to the factors of this rank's partial sums; NULL if clones meet, or partial
 * sums are not scaled. */
static int find_factors(const struct sl_assembly *assembly, const struct sl_clones *clones,
                        int ranks, float **factors)
{
    const int64_t rows = clones->part.data.adjacency.rows;
    *factors = NULL;
    if (ranks == 1 || assembly->owners.delay == SL_DELAY_EXACT ||
        !assembly->owners.scales_partials || !assembly->reducer->linear)
        return 0;
    *factors = malloc((size_t)(rows + 1) * sizeof **factors);
    if (!*factors)
        return sl_error(SL_ERR_SYSTEM, "no memory for the factors of %lld clones", (long long)rows);
    for (int64_t k = 0; k < rows; k++)
        (*factors)[k] = partial_factor(clones, k, assembly->loops);
    return 0;
}

/* Replace the rows that this rank has read by its clones. */
static int take_clones(struct sl_making *m, struct sl_clones *clones)
{
    struct sl_operands *o = m->o;
    const uint64_t fingerprint = fingerprint_of(m->rt, clones);
    float *factors = NULL;
    int code = sl_partition_recut(m->rt, o->partition, clones->bounds, &clones->part,
                                  m->source.selection.hop_cut ? clones->hop : NULL);
    if (!code)
        code = sl_runtime_agree(m->rt, find_factors(m->assembly, clones, m->rt->ranks, &factors));
    if (!code)
        code = create_distribution(m);
    if (!code)
        code = sl_vertex_cut_create(sl_vertex_cut_of(o->distribution), m->rt,
                                    &(struct sl_clone_lists){
                                        .delay = m->assembly->owners.delay,
                                        .row_bytes = sl_operands_row_bytes(&m->source, m->assembly),
                                        .fingerprint = fingerprint,
                                        .row_cut = o->partition->row_cut,
                                        .rank_cut = o->partition->rank_cut,
                                        .hop = o->partition->hop,
                                        .tiles = o->partition->tiles,
                                        .leaves = clones->leaves,
                                        .roots = clones->roots,
                                        .leaf = clones->leaf,
                                        .root = clones->root,
                                        .factor = factors,
                                    });
    free(factors);
    sl_making_close(m);
    memcpy(m->bounds, clones->bounds, (size_t)(m->rt->ranks + 1) * sizeof *m->bounds);
    m->part = clones->part;
    m->left = clones->left;
    m->right = clones->right;
    m->diagonal = clones->diagonal;
    m->row = clones->row;
    clones->part = (struct sl_part){0};
    clones->left = clones->right = NULL;
    clones->diagonal = clones->row = NULL;
    return code;
}

static int cut_vertices(struct sl_making *m)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const uint64_t seed = m->assembly->seed;
    int32_t *share = malloc((size_t)(a->indptr[a->rows] + 1) * sizeof *share);
    struct sl_clones clones = {0};
    int code = share ? sl_making_diagonals(m)
                     : sl_error(SL_ERR_SYSTEM, "no memory for the parts of edges");
    code = sl_runtime_agree(m->rt, code);
    if (!code)
        code = sl_edge_shares_find(m->rt, &m->source, &m->part, m->assembly->owners.partition, seed,
                                   share);
    if (!code)
        code = sl_clones_create(
            m->rt,
            &(struct sl_home){
                .part = &m->part,
                .bounds = m->bounds,
                .left = m->left,
                .right = m->right,
                .edge_part = share,
                .seed = seed,
                .source = &m->source,
                .delay = m->assembly->owners.delay,
                .several = m->source.targets.labels.data && m->source.targets.labels.dims == 2,
            },
            &clones);
    free(share);
    if (!code)
        code = sl_runtime_agree(m->rt, take_clones(m, &clones));
    sl_clones_destroy(&clones);
    return code;
}

/* Read this rank's part. Leave features in the files if they can stay, unless their norms are
 * needed. Reading the whole graph has checked them already. */
static int read_part(struct sl_making *m)
{
    const int64_t first = m->bounds[m->rt->rank], rows = m->bounds[m->rt->rank + 1] - first;
    struct sl_source source = m->source;
    const bool stay = sl_making_can_store(m) && !m->assembly->aggregates &&
                      m->assembly->row_norm == SL_ROW_NORM_NONE;
    if (stay)
        source.feature_form = SL_FEATURES_IDENTITY;
    const int code =
        m->assembly->workers
            ? sl_runtime_agree(m->rt, sl_source_read_all(&source, first, rows, &m->part))
            : sl_source_read(m->rt, &source, first, rows, &m->part);
    if (stay)
        m->part.data.feature_form = SL_FEATURES_DENSE;
    return code;
}

int sl_making_read(struct sl_making *m)
{
    struct sl_operands *o = m->o;
    struct sl_runtime *rt = m->rt;
    struct sl_partition *p = &o->partition[m->row_order];
    for (int r = 0; r <= rt->ranks; r++)
        m->bounds[r] = p->row_cut[p->rank_cut[r]];
    int code = read_part(m);
    if (code)
        return code;
    o->entries = m->part.entries;
    o->symmetric = m->part.data.symmetric;
    o->merged_edges = m->part.data.merged_edges;
    o->bytes_read += m->part.bytes_read;
    code = m->assembly->owners.kind->clones ? cut_vertices(m) : 0;
    if (code)
        return code;
    if (!m->assembly->workers)
        sl_partition_measure(rt, p, &m->part);
    const bool adds = m->assembly->reducer->linear && o->type == SL_FLOAT32;
    const struct sl_caches caches = {
        .last_bytes = rt->cache_bytes,
        .own_bytes = adds ? rt->own_cache_bytes : 0, /* other sums cost more in blocks */
        .sharers = (rt->all_cores + rt->ranks - 1) / rt->ranks,
        .cores = rt->all_cores,
        .tiles = p->tiles,
        .ranks = m->assembly->workers ? rt->ranks : 0,
        .rank_cut = m->bounds,
    };
    p->block_cols = m->assembly->block_cols ? m->assembly->block_cols
                    : rt->all_gpus > 0 /* GPUs have no such cache */
                        ? m->part.data.adjacency.cols
                        : sl_partition_block_cols(m->readers, &m->part.data.adjacency,
                                                  m->assembly->model.hidden, &caches);
    return 0;
}
