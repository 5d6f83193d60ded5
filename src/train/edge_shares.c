#include "train/edge_shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/block.h"
#include "data/edge_parts.h"
#include "data/fingerprint.h"
#include "data/parts.h"

static const char DEFAULT_METHOD[] = "metis";

/* ---- Cut here ---- */

static bool is_method(const char *partition)
{
    static const char *const methods[] = {"libra", "hdrf", "metis", "random"};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        if (strcmp(methods[m], partition) == 0)
            return true;
    return false;
}

/* The parts of vertices become those of the edges that follow them. */
static int follow(const struct sl_dataset *data, uint64_t seed, struct sl_parts *parts)
{
    int32_t *part =
        sl_block_array(&parts->blocks, data->adjacency.indptr[data->vertices], sizeof *part);
    const int rc = part ? sl_edge_parts_follow(&data->adjacency, data->symmetric, parts->parts,
                                               seed, parts->part, part)
                        : SL_ERR_SYSTEM;
    parts->part = part;
    parts->of_edges = true;
    return rc;
}

/* All shares, on rank 0. */
static int cut(const struct sl_source *source, const char *partition, int ranks, uint64_t seed,
               struct sl_parts *parts)
{
    struct sl_runtime alone = {.ranks = 1};
    struct sl_part whole = {0};
    const struct sl_parts_options options = {partition, ranks, seed, 1.0};
    int rc = sl_source_read_adjacency(&alone, source, 0, source->vertices, &whole);
    whole.data.vertices = source->vertices;
    if (!rc && is_method(partition))
        rc = sl_parts_make(&whole.data, &options, parts);
    else if (!rc)
        rc = sl_parts_open(partition, parts);
    if (!rc && !is_method(partition))
        rc = sl_parts_check(parts, partition);
    if (!rc && !parts->of_edges)
        rc = follow(&whole.data, seed, parts);
    sl_part_close(&whole);
    return rc;
}

/* Those of each rank's rows, from rank 0. */
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

static int check_sizes(const struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_parts *parts, int64_t entries, const char *file)
{
    if (parts->parts != rt->ranks)
        return sl_error(SL_ERR_DATA, "--partition %s: has %d parts, expected %d, one for each rank",
                        file, parts->parts, rt->ranks);
    if (parts->vertices != source->vertices || parts->entries != entries)
        return sl_error(SL_ERR_DATA,
                        "--partition %s: is of %" PRId64 " vertices and %" PRId64
                        " adjacency entries, expected %" PRId64 " and %" PRId64 " as %s has",
                        file, parts->vertices, parts->entries, source->vertices, entries,
                        source->path);
    return 0;
}

/* This rank's share, and what it adds to the checksum. */
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

static int64_t fingerprint_of(const struct sl_part *home)
{
    const struct sl_csr *a = &home->data.adjacency;
    uint64_t sum = 0;
    for (int64_t k = 0; k < a->rows; k++)
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
            sum += sl_fingerprint((int32_t)(home->first + k), a->indices[e], 1.0f);
    return (int64_t)sum;
}

/* Each rank takes its shares out of the file. */
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
    int64_t entries = 0, pattern = fingerprint_of(home);
    for (int r = 0; r < rt->ranks; r++)
        entries += count[r];
    sl_runtime_sum(rt, &pattern, 1);
    int code = sl_parts_open(file, &parts);
    if (!code)
        code = check_sizes(rt, source, &parts, entries, file);
    if (!code && (uint64_t)pattern != parts.fingerprint)
        code = sl_error(SL_ERR_DATA, "--partition %s: is of another graph than %s", file,
                        source->path);
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
    const char *wanted = partition ? partition : DEFAULT_METHOD;
    const struct sl_csr *a = &home->data.adjacency;
    int64_t *count = malloc((size_t)rt->ranks * sizeof *count);
    int code = sl_runtime_agree(
        rt, count ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the shares of %d ranks", rt->ranks));
    if (!code) {
        sl_runtime_gather(rt, a->indptr[a->rows], count);
        code = is_method(wanted) ? cut_and_hand_out(rt, source, wanted, seed, count, share)
                                 : read_shares(rt, source, home, wanted, seed, count, share);
    }
    free(count);
    return code;
}
