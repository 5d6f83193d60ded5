#include "data/links.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "data/fingerprint.h"
#include "data/source.h"
#include "data/split_rule.h"

/* ---- Arrays ---- */

void sl_links_get(const struct sl_npy *pairs, int64_t k, int64_t pair[2])
{
    pair[0] = sl_npy_integer(pairs, 2 * k);
    pair[1] = sl_npy_integer(pairs, 2 * k + 1);
}

const char *sl_links_split_name(enum sl_split split)
{
    return split == SL_SPLIT_VAL ? "val" : "test";
}

static int check_pairs(const struct sl_npy *pairs, int64_t vertices)
{
    if (pairs->dims != 2 || pairs->shape[1] != 2)
        return sl_error(SL_ERR_DATA, "%s: expected a matrix of two columns, source and target",
                        pairs->name);
    if (pairs->kind != 'i' && pairs->kind != 'u')
        return sl_error(SL_ERR_DATA, "%s: expected integers, the numbers of vertices", pairs->name);
    for (int64_t i = 0; i < pairs->count; i++) {
        const int64_t v = sl_npy_integer(pairs, i);
        if (v < 0 || v >= vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: row %" PRId64 ", column %" PRId64 " is vertex %" PRId64
                            ", expected 0 to %" PRId64,
                            pairs->name, i / 2, i % 2, v, vertices - 1);
    }
    return SL_OK;
}

int sl_links_check(const struct sl_source_links *links, const char *path, int64_t vertices)
{
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        const struct sl_npy *pairs = &links->pairs[s], *negatives = &links->negatives[s];
        const char *name = sl_links_split_name((enum sl_split)s);
        int rc = pairs->data ? check_pairs(pairs, vertices) : SL_OK;
        if (!rc && negatives->data)
            rc = check_pairs(negatives, vertices);
        const bool has_links = pairs->data && pairs->count > 0,
                   has_negatives = negatives->data && negatives->count > 0;
        if (!rc && has_links && !has_negatives)
            rc = sl_error(SL_ERR_DATA,
                          "%s/%s_negatives.npy: is %s, expected pairs that are no links, since "
                          "there is %s_links.npy",
                          path, name, negatives->data ? "empty" : "missing", name);
        if (!rc && has_negatives && !has_links)
            rc = sl_error(SL_ERR_DATA,
                          "%s/%s_links.npy: is %s, expected links, since there is "
                          "%s_negatives.npy",
                          path, name, pairs->data ? "empty" : "missing", name);
        if (rc)
            return rc;
    }
    return SL_OK;
}

/* Replace an array by a copy: vertex v becomes place[v] unless `place` is NULL, and pairs are
 * turned round on demand. */
static int copy_pairs(struct sl_npy *pairs, const int32_t *place, bool turned,
                      struct sl_block **blocks)
{
    int64_t pair[2];
    const int64_t count = pairs->data ? pairs->shape[0] : 0;
    if (!pairs->data)
        return SL_OK;
    int64_t *copy = sl_block_array(blocks, count, 2 * sizeof *copy);
    const char *name = sl_block_print(blocks, "%s", pairs->name);
    if (!copy || !name)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < count; k++) {
        sl_links_get(pairs, k, pair);
        for (int end = 0; end < 2; end++)
            copy[2 * k + (turned ? 1 - end : end)] = place ? place[pair[end]] : pair[end];
    }
    *pairs = sl_npy_view(name, SL_NPY_INT64, 2, count, 2, copy);
    return SL_OK;
}

static int copy_all(struct sl_source_links *links, const int32_t *place, bool turned,
                    struct sl_block **blocks)
{
    int rc = SL_OK;
    for (int s = SL_SPLIT_VAL; !rc && s < SL_SPLITS; s++) {
        rc = copy_pairs(&links->pairs[s], place, turned, blocks);
        if (!rc)
            rc = copy_pairs(&links->negatives[s], place, turned, blocks);
    }
    return rc;
}

int sl_links_take(const struct sl_source *source, struct sl_block **blocks,
                  struct sl_source_links *out)
{
    *out = source->links;
    return source->order.place ? copy_all(out, source->order.place, false, blocks) : SL_OK;
}

int sl_links_reverse(struct sl_source_links *links, struct sl_block **blocks)
{
    return copy_all(links, NULL, true, blocks);
}

/* ---- Directions ---- */

bool sl_links_are_undirected(struct sl_runtime *rt, const struct sl_part *part)
{
    const struct sl_csr *a = &part->data.adjacency;
    uint64_t difference = 0;
    for (int64_t k = 0; k < a->rows; k++)
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++) {
            const int32_t row = (int32_t)(part->first + k), column = a->indices[e];
            if (e == a->indptr[k] || a->indices[e - 1] != column) /* once for all relations */
                difference += sl_fingerprint(row, column, 1.0f) - sl_fingerprint(column, row, 1.0f);
        }
    return sl_fingerprint_agree(rt, difference);
}

/* Widen `bounds`, the largest number of a first end and the smallest of a second end, by a link of
 * two rows of the files. */
static void add_ends(const struct sl_source *source, int64_t from, int64_t to, bool undirected,
                     int64_t bounds[2])
{
    int64_t first = sl_source_number(source, from), second = sl_source_number(source, to);
    if (undirected && first > second) {
        const int64_t swapped = first;
        first = second;
        second = swapped;
    }
    bounds[0] = first > bounds[0] ? first : bounds[0];
    bounds[1] = second < bounds[1] ? second : bounds[1];
}

int64_t sl_links_first_target(struct sl_runtime *rt, const struct sl_source *source,
                              const struct sl_part *part, bool undirected)
{
    const struct sl_csr *a = &part->data.adjacency;
    int64_t bounds[2] = {-1, INT64_MAX}, pair[2];
    for (int64_t k = 0; k < a->rows; k++)
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
            if (a->indices[e] != part->first + k)
                add_ends(source, sl_source_vertex(source, a->indices[e]),
                         sl_source_vertex(source, part->first + k), undirected, bounds);
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        const struct sl_npy *pairs = &source->links.pairs[s];
        for (int64_t k = 0; pairs->data && k < pairs->shape[0]; k++) {
            sl_links_get(pairs, k, pair);
            add_ends(source, pair[0], pair[1], undirected, bounds);
        }
    }
    const int64_t last_first = -sl_runtime_least(rt, -bounds[0]),
                  first_second = sl_runtime_least(rt, bounds[1]);
    return last_first >= 0 && last_first < first_second ? first_second : 0;
}

/* ---- Rules ---- */

bool sl_link_rule_read(const char *text, struct sl_link_rule *out)
{
    struct sl_split_rule shares;
    const bool reads = sl_split_rule_read(text, &shares);
    const double sum = shares.shares[0] + shares.shares[1] + shares.shares[2];
    *out = (struct sl_link_rule){.given = shares.given, .negatives = 1};
    memcpy(out->shares, shares.shares, sizeof out->shares);
    return reads && (!shares.given || (!shares.per_class && fabs(sum - 100.0) < 1e-9));
}
