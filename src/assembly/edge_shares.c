#include "assembly/edge_shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/block.h"
#include "data/fingerprint.h"
#include "data/partition/edge_parts.h"
#include "data/partition/parts.h"

/* ---- Cut here ---- */

/* Return the method that --partition names: by default METIS; NULL: it names a file. */
static const struct sl_parts_method *method_of(const char *partition)
{
    return partition ? sl_parts_find_method(partition) : &sl_parts_metis;
}

int sl_edge_shares_follow(const struct sl_dataset *graph, int parts, uint64_t seed,
                          const int32_t *vertex_part, struct sl_parts *out)
{
    int32_t *part =
        sl_block_array(&out->blocks, graph->adjacency.indptr[graph->vertices], sizeof *part);
    const int rc = part ? sl_edge_parts_follow(&graph->adjacency, graph->symmetric, parts, seed,
                                               vertex_part, part)
                        : SL_ERR_SYSTEM;
    out->parts = parts;
    out->part = part;
    out->of_edges = true;
    return rc;
}

static int check_sizes(const struct sl_source *source, const struct sl_parts *parts, int ranks,
                       int64_t entries, const char *file)
{
    if (parts->parts != ranks)
        return sl_error(SL_ERR_DATA, "--partition %s: has %d parts, expected %d, one for each rank",
                        file, parts->parts, ranks);
    if (parts->vertices != source->vertices || parts->entries != entries)
        return sl_error(SL_ERR_DATA,
                        "--partition %s: is of %" PRId64 " vertices and %" PRId64
                        " adjacency entries, expected %" PRId64 " and %" PRId64 " as %s has",
                        file, parts->vertices, parts->entries, source->vertices, entries,
                        source->path);
    return 0;
}

static uint64_t fingerprint_of(const struct sl_csr *a, int64_t first)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < a->rows; k++)
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
            sum += sl_fingerprint((int32_t)(first + k), a->indices[e], 1.0f);
    return sum;
}

static int other_graph(const struct sl_source *source, const char *file)
{
    return sl_error(SL_ERR_DATA, "--partition %s: is of another graph than %s", file, source->path);
}

static int open_parts(const struct sl_source *source, const struct sl_dataset *graph,
                      const char *file, int ranks, struct sl_parts *parts)
{
    int rc = sl_parts_open(file, parts);
    if (!rc)
        rc = check_sizes(source, parts, ranks, graph->adjacency.indptr[graph->vertices], file);
    if (!rc && fingerprint_of(&graph->adjacency, 0) != parts->fingerprint)
        rc = other_graph(source, file);
    return rc ? rc : sl_parts_check(parts, file);
}

int sl_edge_shares_cut(const struct sl_source *source, const struct sl_dataset *graph,
                       const char *partition, int parts, uint64_t seed, struct sl_parts *out)
{
    const struct sl_parts_options options = {method_of(partition), parts, seed, 1.0};
    const int rc = options.method ? sl_parts_make(graph, &options, out)
                                  : open_parts(source, graph, partition, parts, out);
    return rc || out->of_edges ? rc
                               : sl_edge_shares_follow(graph, out->parts, seed, out->part, out);
}

/* Cut the edges of a selection after its vertices, so that each part has its share of every hop. */
static int cut_hops(const struct sl_source *source, const struct sl_dataset *graph, int ranks,
                    uint64_t seed, struct sl_parts *parts)
{
    struct sl_runtime alone = {.ranks = 1};
    int32_t *part = malloc((size_t)(source->vertices + 1) * sizeof *part);
    int rc = part ? sl_source_find_parts(&alone, source, ranks, seed, NULL, part)
                  : sl_error(SL_ERR_SYSTEM, "no memory for the parts of %" PRId64 " vertices",
                             source->vertices);
    if (!rc)
        rc = sl_edge_shares_follow(graph, ranks, seed, part, parts);
    free(part);
    return rc;
}

/* Cut all edges on rank 0, which reads the whole adjacency. */
static int cut(const struct sl_source *source, const char *partition, int ranks, uint64_t seed,
               struct sl_parts *parts)
{
    struct sl_runtime alone = {.ranks = 1};
    struct sl_part whole = {0};
    int rc = sl_source_read_adjacency(&alone, source, 0, source->vertices, &whole);
    whole.data.vertices = source->vertices;
    if (!rc)
        rc = source->selection.hop_cut && method_of(partition) == &sl_parts_metis
                 ? cut_hops(source, &whole.data, ranks, seed, parts)
                 : sl_edge_shares_cut(source, &whole.data, partition, ranks, seed, parts);
    sl_part_close(&whole);
    return rc;
}

/* Send the shares of each rank's rows from rank 0 to the rank. */
static int hand_out(struct sl_runtime *rt, const struct sl_parts *parts, const int64_t *count,
                    int32_t *share)
{
    int64_t *first = calloc((size_t)rt->ranks + 1, sizeof *first), received;
    int code = sl_runtime_agree(
        rt, first ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the shares of %d ranks", rt->ranks));
    void *items = NULL;
    for (int r = 0; !code && rt->rank == 0 && r < rt->ranks; r++)
        first[r + 1] = first[r] + count[r];
    if (!code)
        code = sl_runtime_exchange(rt, parts->part, first, sizeof *share, &items, &received);
    if (!code)
        memcpy(share, items, (size_t)received * sizeof *share);
    free(items);
    free(first);
    return code;
}

static int cut_and_hand_out(struct sl_runtime *rt, const struct sl_source *source,
                            const char *partition, uint64_t seed, const int64_t *count,
                            int32_t *share)
{
    struct sl_parts parts = {0};
    int code =
        sl_runtime_agree(rt, rt->rank == 0 ? cut(source, partition, rt->ranks, seed, &parts) : 0);
    if (!code)
        code = hand_out(rt, &parts, count, share);
    sl_parts_close(&parts);
    return code;
}

/* ---- Cut before ---- */

/* Copy this rank's shares out of a file, and set *checksum to their part of the file's checksum. */
static int take(const struct sl_runtime *rt, const struct sl_parts *parts, int64_t first,
                int64_t count, const char *file, int32_t *share, int64_t *checksum)
{
    for (int64_t e = 0; e < count; e++) {
        share[e] = parts->part[first + e];
        if (share[e] < 0 || share[e] >= rt->ranks)
            return sl_error(SL_ERR_DATA,
                            "--partition %s: element %" PRId64 " is %d, expected 0 to %d", file,
                            first + e, share[e], rt->ranks - 1);
    }
    *checksum = (int64_t)sl_parts_checksum(share, first, count);
    return 0;
}

/* Read each rank's shares from a file, and compare the checksum of all. */
static int take_own(struct sl_runtime *rt, const struct sl_parts *parts, const int64_t *count,
                    const char *file, int32_t *share)
{
    int64_t first = 0, checksum = 0;
    for (int r = 0; r < rt->rank; r++)
        first += count[r];
    int code =
        sl_runtime_agree(rt, take(rt, parts, first, count[rt->rank], file, share, &checksum));
    if (code)
        return code;
    sl_runtime_sum(rt, &checksum, 1);
    if ((uint64_t)checksum != parts->checksum)
        code = sl_error(SL_ERR_DATA,
                        "--partition %s: its .json file describes another partition; expected both "
                        "as starling partition wrote them",
                        file);
    return sl_runtime_agree(rt, code);
}

static int read_shares(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_part *home, const char *file, uint64_t seed,
                       const int64_t *count, int32_t *share)
{
    struct sl_parts parts = {0};
    int64_t entries = 0;
    int64_t pattern = (int64_t)fingerprint_of(&home->data.adjacency, home->first);
    for (int r = 0; r < rt->ranks; r++)
        entries += count[r];
    sl_runtime_sum(rt, &pattern, 1);
    int code = sl_parts_open(file, &parts);
    if (!code)
        code = check_sizes(source, &parts, rt->ranks, entries, file);
    if (!code && (uint64_t)pattern != parts.fingerprint)
        code = other_graph(source, file);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = parts.of_edges ? take_own(rt, &parts, count, file, share)
                              : cut_and_hand_out(rt, source, file, seed, count, share);
    sl_parts_close(&parts);
    return code;
}

int sl_edge_shares_find(struct sl_runtime *rt, const struct sl_source *source,
                        const struct sl_part *home, const char *partition, uint64_t seed,
                        int32_t *share)
{
    const struct sl_csr *a = &home->data.adjacency;
    int64_t *count = malloc((size_t)rt->ranks * sizeof *count);
    int code = sl_runtime_agree(
        rt, count ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the shares of %d ranks", rt->ranks));
    if (!code) {
        sl_runtime_gather(rt, a->indptr[a->rows], count);
        const struct sl_parts known = {.part = source->order.edge_part};
        code = source->order.edge_parts == rt->ranks ? hand_out(rt, &known, count, share)
               : method_of(partition)
                   ? cut_and_hand_out(rt, source, partition, seed, count, share)
                   : read_shares(rt, source, home, partition, seed, count, share);
    }
    free(count);
    return code;
}
