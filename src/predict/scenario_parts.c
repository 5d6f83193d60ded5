/* A halo, covers and a vertex-cut that may be chosen: their parts and their counts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/edge_shares.h"
#include "assembly/operands.h"
#include "core/error.h"
#include "data/order/order.h"
#include "data/partition/vertex_parts.h"
#include "predict/scenario.h"

/* METIS cuts a few million entries per second, and Libra as many, fewer into many parts. Where they
 * would take over some seconds, or more memory than rank 0 has, something else is assumed, which
 * sends more. `why` (NULL: nobody asks) says what was decided. */
static bool is_cut_soon(const struct sl_source *source, int ranks, int64_t space, char why[256])
{
    enum { MOST_ENTRIES = 30000000, FEW = 512 };
    static const double MIB = 1 << 20;
    const int64_t entries = source->adjacency.indices.count;
    const int64_t bytes =
        sl_vertex_parts_bytes(source->vertices, source->undirected ? entries : 2 * entries);
    const int64_t most = MOST_ENTRIES / (1 + ranks / FEW);
    const bool there = source->adjacency.indptr.data != NULL;
    char text[256] = "";
    if (there && entries > most)
        snprintf(text, sizeof text,
                 "METIS would take long for %lld adjacency entries (over %lld): runs of the order "
                 "that there is",
                 (long long)entries, (long long)most);
    else if (there && bytes > space)
        snprintf(
            text, sizeof text,
            "METIS would take about %.0f MiB on rank 0, which has %.0f: runs of the order that "
            "there is",
            (double)bytes / MIB, (double)space / MIB);
    else if (there)
        snprintf(text, sizeof text,
                 "METIS', for which rank 0 read the whole adjacency (%lld entries, about %.0f MiB)",
                 (long long)entries, (double)bytes / MIB);
    if (why)
        memcpy(why, text, sizeof text);
    return there && entries <= most && bytes <= space;
}

/* ---- --partition ---- */

enum partition { NONE, METHOD, OF_VERTICES, OF_EDGES, OTHER_FILE };

/* A file that says nothing of itself may have parts of vertices: a halo takes it, or says why not.
 */
static enum partition kind_of(const char *partition)
{
    struct sl_parts parts = {0};
    if (!partition)
        return NONE;
    if (sl_parts_find_method(partition))
        return METHOD;
    const bool opens = sl_parts_open(partition, &parts) == 0, of_edges = parts.of_edges;
    sl_parts_close(&parts);
    return opens ? of_edges ? OF_EDGES : OF_VERTICES : OTHER_FILE;
}

/* ---- A halo ---- */

/* Find parts for the ranks of `cut`: in a file of --partition, or else by METIS. Where METIS would
 * take long, or more memory than rank 0 has, parts are runs of the order of the dataset.
 * Collective. SL_ERR_SYSTEM, SL_ERR_DATA. */
static int create_halo(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_training *training, const struct sl_partition_options *cut,
                       struct sl_scenario_halo *out)
{
    const int ranks = cut->ranks ? cut->ranks : rt->ranks;
    const enum partition given = kind_of(training->assembly.owners.partition);
    const bool file = given == OF_VERTICES || given == OTHER_FILE;
    char why[256];
    const bool soon = is_cut_soon(source, ranks, sl_space_find(rt).bytes, why);
    struct sl_assembly own = training->assembly;
    int code = 0;
    if (!file)
        own.owners.partition = NULL;
    *out = (struct sl_scenario_halo){.ordered = *source,
                                     .parts = file   ? "those of --partition"
                                              : soon ? "METIS'"
                                                     : "runs of the order that there is"};
    struct sl_source *ordered = &out->ordered;
    if (!file)
        memcpy(out->why, why, sizeof why);
    ordered->blocks = NULL;
    if (file || soon)
        code = sl_operands_order_by_parts(rt, source, &own, ranks, ordered);
    if (!code)
        code = sl_partition_create(rt, &out->partition, ordered, cut);
    if (!code)
        code = sl_runtime_agree(
            rt, sl_halo_counts_create(&out->halo, rt, &out->partition,
                                      sl_operands_row_bytes(source, &training->assembly)));
    out->has_cover = soon;
    if (!code && soon)
        code = sl_runtime_agree(
            rt, sl_cover_counts_create(&out->cover, rt, &out->partition,
                                       sl_operands_row_bytes(source, &training->assembly),
                                       &training->assembly));
    if (!code)
        code = sl_tile_counts_read(rt, ordered, &out->partition, training->assembly.loops,
                                   &out->halo, soon ? &out->cover : NULL, &out->counts);
    if (!code && out->counts.symmetric)
        sl_halo_destroy(&out->halo.halo[1]);
    return code;
}

bool sl_scenario_reads_whole(struct sl_runtime *rt, const struct sl_source *source,
                             const struct sl_training *training)
{
    const struct sl_assembly *assembly = &training->assembly;
    const bool chooses = !assembly->owners.distribution && assembly->owners.grid.rows == 0 &&
                         !assembly->owners.replication;
    const int64_t space = sl_space_find(rt).bytes;
    const enum partition given = kind_of(assembly->owners.partition);
    return (assembly->owners.kind->parts || chooses) && (given == NONE || given == METHOD) &&
           is_cut_soon(source, rt->ranks, space, NULL);
}

static void destroy_halo(struct sl_scenario_halo *halo)
{
    sl_halo_counts_destroy(&halo->halo);
    sl_cover_counts_destroy(&halo->cover);
    sl_tile_counts_destroy(&halo->counts);
    sl_partition_destroy(&halo->partition);
    sl_block_free_all(&halo->ordered.blocks);
}

void sl_scenario_halo_hand_over(struct sl_scenario_halo *halo, struct sl_source *source)
{
    const struct sl_source *ordered = &halo->ordered;
    if (!ordered->order.part_cut)
        return;
    source->order.vertex = ordered->order.vertex;
    source->order.place = ordered->order.place;
    source->order.part_cut = ordered->order.part_cut;
    source->order.parts = ordered->order.parts;
    sl_block_move(&source->blocks, &halo->ordered.blocks);
}

/* ---- A vertex-cut ---- */

/* Whether training could be a vertex-cut, and --partition is one. */
static bool cut_fits(const struct sl_training *training)
{
    const bool ordered = training->order && !sl_order_is_none(training->order);
    return !training->no_cut && !ordered &&
           kind_of(training->assembly.owners.partition) != OTHER_FILE;
}

/* Parts of vertices, in the order of the files, as the halo has them. */
static int follow(const struct sl_source *ordered, const struct sl_dataset *graph, uint64_t seed,
                  struct sl_parts *out)
{
    int32_t *part = malloc((size_t)(graph->vertices + 1) * sizeof *part);
    if (!part)
        return sl_error(SL_ERR_SYSTEM, "no memory for the parts of %lld vertices",
                        (long long)graph->vertices);
    for (int32_t p = 0; p < ordered->order.parts; p++)
        for (int64_t r = ordered->order.part_cut[p]; r < ordered->order.part_cut[p + 1]; r++)
            part[ordered->order.vertex[r]] = p;
    const int code = sl_edge_shares_follow(graph, ordered->order.parts, seed, part, out);
    free(part);
    return code;
}

static int count(const struct sl_source *source, const struct sl_training *training, int ranks,
                 const struct sl_scenario_halo *halo, struct sl_scenario_cut *out)
{
    const enum partition given = kind_of(training->assembly.owners.partition);
    const bool same =
        given == NONE || given == OF_VERTICES ||
        (given == METHOD &&
         sl_parts_find_method(training->assembly.owners.partition) == &sl_parts_metis);
    const uint64_t seed = training->assembly.seed;
    struct sl_runtime alone = {.ranks = 1};
    struct sl_part whole = {0};
    int code = sl_source_read_adjacency(&alone, source, 0, source->vertices, &whole);
    whole.data.vertices = source->vertices;
    if (!code && same && halo && halo->ordered.order.part_cut)
        code = follow(&halo->ordered, &whole.data, seed, &out->edges);
    else if (!code)
        code = sl_edge_shares_cut(source, &whole.data, training->assembly.owners.partition, ranks,
                                  seed, &out->edges);
    if (!code)
        code = sl_cut_counts_create(&out->clones, source, &whole.data, ranks, out->edges.part,
                                    &training->assembly);
    sl_part_close(&whole);
    return code;
}

int sl_scenario_cut_create(const struct sl_source *source, const struct sl_training *training,
                           const struct sl_partition *vertices, const struct sl_scenario_halo *halo,
                           int64_t space, struct sl_scenario_cut *out)
{
    const int ranks = vertices->ranks;
    const bool counts = is_cut_soon(source, ranks, space, NULL),
               hops = counts && source->selection.hop_cut;
    const struct sl_cut_counts *clones = &out->clones;
    *out = (struct sl_scenario_cut){
        .has_late = training->assembly.owners.delay != SL_DELAY_EXACT,
        .parts = !counts                               ? "at random"
                 : training->assembly.owners.partition ? "those of --partition"
                                                       : "METIS'",
    };
    int code = counts ? count(source, training, ranks, halo, out)
                      : sl_cut_counts_expect(&out->clones, source, ranks, &training->assembly);
    if (!code)
        code = sl_partition_recut_evenly(vertices, clones->bounds, hops ? &clones->hops : NULL,
                                         &out->partition);
    if (!code)
        code = sl_cut_counts_flow(clones, source, &out->partition, &training->assembly,
                                  SL_DELAY_EXACT, &out->exact);
    if (!code && out->has_late)
        code = sl_cut_counts_flow(clones, source, &out->partition, &training->assembly,
                                  training->assembly.owners.delay, &out->late);
    sl_cut_counts_forget_leaves(&out->clones);
    return code ? code
                : sl_tile_counts_spread(&out->partition, clones->hops.count, clones->entries,
                                        clones->symmetric, clones->numbers, &out->counts);
}

void sl_scenario_cut_destroy(struct sl_scenario_cut *cut)
{
    sl_vertex_cut_destroy(&cut->exact);
    sl_vertex_cut_destroy(&cut->late);
    sl_cut_counts_destroy(&cut->clones);
    sl_tile_counts_destroy(&cut->counts);
    sl_partition_destroy(&cut->partition);
    sl_parts_close(&cut->edges);
}

void sl_scenario_cut_hand_over(struct sl_runtime *rt, struct sl_scenario_cut *cut,
                               struct sl_source *source)
{
    int32_t there = cut->edges.part != NULL;
    sl_runtime_broadcast(rt, 0, &there, sizeof there);
    if (!there)
        return;
    source->order.edge_parts = rt->ranks;
    source->order.edge_part = cut->edges.part;
    sl_block_move(&source->blocks, &cut->edges.blocks);
}

/* ---- All distributions ---- */

/* Expect the counts of a graph of which only the sizes are known. Its order and parts are random.
 */
static int expect(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_training *training, const struct sl_partition_options *cuts,
                  struct sl_scenario_counts *out)
{
    const int64_t entries = source->adjacency.indices.count;
    const bool loops = training->assembly.loops;
    struct sl_scenario_halo *halo = &out->halo;
    halo->parts = "at random";
    int code = sl_tile_counts_expect(&out->partition, entries, loops, &out->counts);
    if (!code)
        code = sl_partition_create(rt, &halo->partition, source, cuts);
    if (!code)
        code = sl_tile_counts_expect(&halo->partition, entries, loops, &halo->counts);
    if (!code)
        code = sl_halo_counts_create(&halo->halo, rt, &halo->partition,
                                     sl_operands_row_bytes(source, &training->assembly));
    if (!code)
        sl_halo_counts_expect(&halo->halo, halo->counts.nnz);
    return code;
}

static int count_tiles(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_training *training, const struct sl_partition_options *cuts,
                       struct sl_scenario_counts *out)
{
    const int code = sl_tile_counts_read(rt, &out->shares, &out->partition,
                                         training->assembly.loops, NULL, NULL, &out->counts);
    return code || !out->has_halo ? code : create_halo(rt, source, training, cuts, &out->halo);
}

int sl_scenario_counts_create(struct sl_runtime *rt, const struct sl_source *source,
                              const struct sl_training *training,
                              const struct sl_partition_options *cuts,
                              struct sl_scenario_counts *out)
{
    const bool hops = source->selection.hop_cut;
    struct sl_source flat = *source; /* tiles of clones follow from rows, not hops */
    flat.selection.hop_cut = NULL;
    *out = (struct sl_scenario_counts){.has_halo = !source->order.second_vertex,
                                       .has_cut = rt->rank == 0 && cut_fits(training),
                                       .space = sl_space_find(rt).bytes};
    int code = sl_source_borrow(source, &out->shares);
    if (!code && hops)
        code = sl_source_order_by_hop_shares(&out->shares, cuts->ranks ? cuts->ranks : rt->ranks);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = sl_partition_create(rt, &out->partition, &out->shares, cuts);
    if (!code)
        code = source->adjacency.indptr.data ? count_tiles(rt, source, training, cuts, out)
                                             : expect(rt, source, training, cuts, out);
    if (!code && hops)
        code = sl_partition_create(rt, &out->vertices, &flat, cuts);
    if (!code && out->has_cut)
        code = sl_scenario_cut_create(source, training, hops ? &out->vertices : &out->partition,
                                      out->has_halo ? &out->halo : NULL, out->space, &out->cut);
    return sl_runtime_agree(rt, code);
}

void sl_scenario_counts_destroy(struct sl_scenario_counts *counts)
{
    sl_scenario_cut_destroy(&counts->cut);
    destroy_halo(&counts->halo);
    sl_tile_counts_destroy(&counts->counts);
    sl_partition_destroy(&counts->partition);
    sl_partition_destroy(&counts->vertices);
    sl_source_close(&counts->shares);
}
