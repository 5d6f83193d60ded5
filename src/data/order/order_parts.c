/* Order vertices part after part, each part in the present order. */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/free_memory.h"
#include "core/words.h"
#include "data/csr.h"
#include "data/partition/parallel_parts.h"
#include "data/partition/parts.h"
#include "data/partition/scotch.h"
#include "data/partition/vertex_parts.h"
#include "data/source.h"

/* ---- Which part a vertex is in ---- */

enum { MOST_CLASSES = 3 };

/* List the classes for METIS: hop 0, hop 1 and all other vertices. More classes cut more edges, and
 * balance no better. */
static int list_classes(const struct sl_source *source, int64_t class_cut[MOST_CLASSES + 1])
{
    int classes = 0;
    class_cut[0] = 0;
    for (int h = 0; h < source->selection.hops && classes < MOST_CLASSES - 1; h++)
        class_cut[++classes] = source->selection.hop_cut[h + 1];
    if (class_cut[classes] < source->vertices)
        class_cut[++classes] = source->vertices;
    return classes;
}

/* Partition so that each part has about its share of every hop: a layer computes the rows of some
 * hops. */
static int cut(const struct sl_source *source, const struct sl_csr *graph, int parts, uint64_t seed,
               int32_t *part)
{
    int64_t class_cut[MOST_CLASSES + 1];
    if (!source->selection.hop_cut)
        return sl_vertex_parts_metis(graph, SL_VERTICES_BY_WORK, parts, seed, part);
    return sl_vertex_parts_metis_classes(graph, list_classes(source, class_cut), class_cut, parts,
                                         seed, part);
}

/* Partition the rows of the files, whatever their present order, so that the parts do not depend on
 * it. This rank's memory has the whole adjacency meanwhile. */
static int compute(const struct sl_source *source, int parts, uint64_t seed, int32_t *part)
{
    struct sl_runtime alone = {.ranks = 1};
    const struct sl_source stored = sl_source_as_stored(source);
    struct sl_part whole = {0};
    int rc = sl_source_read_adjacency(&alone, &stored, 0, source->vertices, &whole);
    struct sl_csr graph;
    if (!rc)
        rc =
            sl_csr_pattern(&whole.data.adjacency, whole.data.symmetric, &whole.data.blocks, &graph);
    if (!rc)
        rc = cut(source, &graph, parts, seed, part);
    sl_part_close(&whole);
    sl_block_unload(source->blocks);
    return rc;
}

static int check_part(const char *file, int parts, int64_t v, int32_t part)
{
    return part >= 0 && part < parts
               ? SL_OK
               : sl_error(SL_ERR_DATA,
                          "--partition %s: vertex %" PRId64 " is in part %" PRId32
                          ", expected 0 to %d: %d part%s for as many ranks or groups",
                          file, v, part, parts - 1, parts, sl_s(parts));
}

static int read_parts(const struct sl_source *source, int parts, const char *file, int32_t *part)
{
    struct sl_block *blocks = NULL;
    struct sl_npy npy;
    int rc = sl_npy_map(file, &blocks, &npy);
    if (!rc)
        rc = sl_npy_expect(&npy, 1);
    if (!rc && npy.count != source->vertices)
        rc = sl_error(SL_ERR_DATA,
                      "--partition %s: has %" PRId64
                      " elements, expected the part of each of the %" PRId64 " vertices of %s",
                      file, npy.count, source->vertices, source->path);
    if (!rc)
        rc = sl_npy_copy(&npy, SL_NPY_INT32, 0, npy.count, part);
    for (int64_t v = 0; !rc && v < source->vertices; v++)
        rc = check_part(file, parts, v, part[v]);
    sl_block_free_all(&blocks);
    return rc;
}

/* Return whether rank 0 has no room for METIS. */
static bool is_too_large(struct sl_runtime *rt, const struct sl_source *source)
{
    const int64_t entries = source->adjacency.indices.count * (source->undirected ? 1 : 2);
    int64_t left[SL_MEMORY_BOUNDS], room = INT64_MAX;
    sl_free_memory("", left);
    for (int b = 0; b < SL_MEMORY_BOUNDS; b++)
        room = left[b] < room ? left[b] : room;
    if (rt->process)
        room /= rt->process->ranks_here;
    return sl_runtime_least(rt, room) < sl_vertex_parts_bytes(source->vertices, entries);
}

int sl_source_find_parts(struct sl_runtime *rt, const struct sl_source *source, int parts,
                         uint64_t seed, const char *file, int32_t *part)
{
    int rc = SL_OK;
    const bool named = file && strcmp(file, "ptscotch") == 0;
    if (rt->ranks > 1 && (named || (!file && sl_scotch_exists() && is_too_large(rt, source))))
        return sl_parallel_parts(rt, source, parts, seed, part);
    if (named || (file && sl_parts_find_method(file) == &sl_parts_metis))
        file = NULL; /* rank 0 has the whole graph for METIS */
    if (parts == 1 && !file)
        memset(part, 0, (size_t)source->vertices * sizeof *part);
    else if (rt->rank == 0)
        rc = file ? read_parts(source, parts, file, part) : compute(source, parts, seed, part);
    rc = sl_runtime_agree(rt, rc);
    if (!rc)
        sl_runtime_broadcast(rt, 0, part, source->vertices * (int64_t)sizeof *part);
    return rc;
}

/* ---- The order ---- */

int sl_source_order_by_parts(struct sl_source *source, int parts, const int32_t *part)
{
    const int64_t n = source->vertices;
    int32_t *vertex = sl_block_array(&source->blocks, n, sizeof *vertex);
    int32_t *place = sl_block_array(&source->blocks, n, sizeof *place);
    int64_t *cut = sl_block_array(&source->blocks, (int64_t)parts + 2, sizeof *cut);
    if (!vertex || !place || !cut)
        return SL_ERR_SYSTEM;
    memset(cut, 0, ((size_t)parts + 2) * sizeof *cut);
    for (int64_t v = 0; v < n; v++)
        cut[part[v] + 2]++;
    for (int p = 2; p < parts + 2; p++)
        cut[p] += cut[p - 1];
    for (int64_t r = 0; r < n; r++) { /* cut[p + 1]: place of the next vertex of part p */
        const int32_t v = (int32_t)sl_source_vertex(source, r);
        const int64_t to = cut[part[v] + 1]++;
        vertex[to] = v;
        place[v] = (int32_t)to;
    }
    source->order.vertex = vertex;
    source->order.place = place;
    source->order.part_cut = cut;
    source->order.parts = parts;
    return SL_OK;
}

/* Return the rows of the files before v, plus their entries. */
static int64_t weight_before(const struct sl_source *source, int64_t v)
{
    return v + sl_source_entries_before(source, v);
}

int sl_source_order_by_hop_shares(struct sl_source *source, int parts)
{
    struct sl_block *scratch = NULL;
    int32_t *part = sl_block_array(&scratch, source->vertices, sizeof *part);
    if (!part)
        return SL_ERR_SYSTEM;
    for (int h = 0; h <= source->selection.hops; h++) {
        const int64_t from = source->selection.hop_cut[h], to = source->selection.hop_cut[h + 1];
        const double first = (double)weight_before(source, from),
                     all = (double)weight_before(source, to) - first;
        for (int64_t v = from; v < to; v++)
            part[v] = (int32_t)(parts * ((double)weight_before(source, v) - first) / all);
    }
    const int rc = sl_source_order_by_parts(source, parts, part);
    sl_block_free_all(&scratch);
    return rc;
}
