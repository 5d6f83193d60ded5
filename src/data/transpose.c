/* The transpose of an adjacency whose rows are spread over ranks: each sends every entry to the
 * rank that has the row of its column. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/csr.h"
#include "data/source.h"

struct entry {
    int32_t row, col; /* of the transpose */
    float value;
};

/* Puts every entry at the next place of its rank, next (ranks); with `entries` NULL it only counts
 * the places. In a row, columns ascend and so do their owners. */
static void pack_entries(const struct sl_part *part, const int64_t *bounds, int64_t *next,
                         struct entry *entries)
{
    const struct sl_csr *a = &part->data.adjacency;
    for (int64_t k = 0; k < a->rows; k++) {
        int owner = 0;
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++) {
            while (a->indices[e] >= bounds[owner + 1])
                owner++;
            if (entries)
                entries[next[owner]] = (struct entry){a->indices[e], (int32_t)(part->first + k),
                                                      a->values ? a->values[e] : 1.0f};
            next[owner]++;
        }
    }
}

static int exchange(struct sl_runtime *rt, const struct sl_part *part, const int64_t *bounds,
                    struct entry **received, int64_t *count)
{
    const size_t ranks = (size_t)rt->ranks;
    const int64_t nnz = part->data.adjacency.indptr[part->data.adjacency.rows];
    int64_t *first = calloc(ranks + 1, sizeof *first), *next = calloc(ranks, sizeof *next);
    struct entry *entries = malloc((size_t)nnz * sizeof *entries + 1);
    int rc = sl_runtime_agree(rt, first && next && entries
                                      ? 0
                                      : sl_error(SL_ERR_SYSTEM,
                                                 "no memory to transpose %lld adjacency entries",
                                                 (long long)nnz));
    if (!rc) {
        pack_entries(part, bounds, first + 1, NULL);
        for (size_t r = 0; r < ranks; r++)
            first[r + 1] += first[r];
        memcpy(next, first, ranks * sizeof *next);
        pack_entries(part, bounds, next, entries);
        rc = sl_runtime_exchange(rt, entries, first, sizeof *entries, (void **)received, count);
    }
    free(first);
    free(next);
    free(entries);
    return rc;
}

/* Entries come by ascending column, as ranks have their rows: each goes behind those that its row
 * has already. */
static int build(const struct entry *entries, int64_t count, const struct sl_part *part,
                 struct sl_block **blocks, struct sl_csr *out)
{
    const struct sl_csr *a = &part->data.adjacency;
    int64_t *indptr = sl_block_array(blocks, a->rows + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, count, sizeof *indices);
    float *values = a->values ? sl_block_array(blocks, count, sizeof *values) : NULL;
    if (!indptr || !indices || (a->values && !values))
        return SL_ERR_SYSTEM;
    int64_t *end = indptr + 1; /* of each row, so far: at first of the row before it */
    memset(indptr, 0, (size_t)(a->rows + 1) * sizeof *indptr);
    for (int64_t e = 0; e < count; e++)
        if (entries[e].row - part->first + 1 < a->rows)
            end[entries[e].row - part->first + 1]++;
    for (int64_t k = 1; k < a->rows; k++)
        end[k] += end[k - 1];
    for (int64_t e = 0; e < count; e++) {
        const int64_t at = end[entries[e].row - part->first]++;
        indices[at] = entries[e].col;
        if (values)
            values[at] = entries[e].value;
    }
    *out = (struct sl_csr){a->rows, part->data.vertices, indptr, indices, values};
    return SL_OK;
}

int sl_part_transpose(struct sl_runtime *rt, const struct sl_part *part, const int64_t *bounds,
                      struct sl_block **blocks, struct sl_csr *out)
{
    struct entry *entries = NULL;
    int64_t count = 0;
    int rc = exchange(rt, part, bounds, &entries, &count);
    if (rc)
        return rc;
    rc = build(entries, count, part, blocks, out);
    free(entries);
    return sl_runtime_agree(rt, rc);
}
