/* Read the splits of a rank's vertices: training, validation and test. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/part.h"

/* ---- Is a split in order? ---- */

/* Refuse a vertex that appears twice. Numbers 0 and 1 for all vertices are probably a mask of
 * another type. */
static int refuse_repetition(const struct sl_npy *ids, int64_t vertices, int64_t v)
{
    const bool mask = ids->count == vertices && v <= 1;
    return sl_error(SL_ERR_DATA, "%s: vertex %" PRId64 " is there twice%s", ids->name, v,
                    mask ? " (expected vertices; a mask is of type bool, or is in SPLIT_mask.npy)"
                         : "");
}

/* Check this rank's equal share of the items, each against the item before it. */
static int check_items(const struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_npy *ids, bool *ascending)
{
    const int64_t end = ids->count * (rt->rank + 1) / rt->ranks;
    const int64_t start = ids->count * rt->rank / rt->ranks;
    int64_t before = start > 0 ? sl_npy_integer(ids, start - 1) : -1;
    for (int64_t k = start; k < end; k++) {
        int64_t v;
        const int rc = sl_npy_copy(ids, SL_NPY_INT64, k, 1, &v);
        if (rc)
            return rc;
        if (v < 0 || v >= source->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: item %" PRId64 " is vertex %" PRId64 ", expected 0 to %" PRId64,
                            ids->name, k, v, source->vertices - 1);
        if (v == before)
            return refuse_repetition(ids, source->vertices, v);
        *ascending = *ascending && v > before;
        before = v;
    }
    return SL_OK;
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Make a sorted copy of the whole split. */
static int sort(const struct sl_npy *ids, int64_t vertices, struct sl_block **blocks,
                struct sl_npy *sorted)
{
    int64_t *items = sl_block_array(blocks, ids->count, sizeof *items);
    const int rc =
        items ? sl_npy_copy(ids, SL_NPY_INT64, 0, ids->count, items) : (int)SL_ERR_SYSTEM;
    if (rc)
        return rc;
    qsort(items, (size_t)ids->count, sizeof *items, compare_ids);
    for (int64_t k = 1; k < ids->count; k++)
        if (items[k - 1] == items[k])
            return refuse_repetition(ids, vertices, items[k]);
    *sorted = sl_npy_view(ids->name, SL_NPY_INT64, 1, ids->count, 0, items);
    return SL_OK;
}

/* ---- A rank's own vertices ---- */

/* Return the place of the first item that is not below v. */
static int64_t find(const struct sl_npy *ids, int64_t v)
{
    int64_t low = 0, high = ids->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (sl_npy_integer(ids, middle) < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Take the items of this rank's rows from a sorted list: neighbouring rows have neighbouring items;
 * with an order, look up each item's place. */
static int take_own(const struct sl_source *source, struct sl_part *part, const struct sl_npy *ids,
                    struct sl_index_set *out)
{
    const int64_t rows = part->data.adjacency.rows;
    if (!source->order.vertex) {
        const int64_t start = find(ids, part->first);
        out->count = find(ids, part->first + rows) - start;
        part->bytes_read += out->count * (int64_t)ids->item_bytes;
        return sl_npy_take(ids, SL_NPY_INT64, start, out->count, &part->data.blocks, &out->ids);
    }
    bool *mine = calloc((size_t)rows + 1, sizeof *mine);
    int64_t *own =
        sl_block_array(&part->data.blocks, rows < ids->count ? rows : ids->count, sizeof *own);
    for (int64_t k = 0; mine && own && k < ids->count; k++) {
        const int64_t r = source->order.place[sl_npy_integer(ids, k)] - part->first;
        if (r >= 0 && r < rows)
            mine[r] = true;
    }
    for (int64_t r = 0; mine && own && r < rows; r++)
        if (mine[r])
            own[out->count++] = part->first + r;
    const bool room = mine && own;
    free(mine);
    out->ids = own;
    part->bytes_read += out->count * (int64_t)ids->item_bytes;
    return room ? (int)SL_OK
                : sl_error(SL_ERR_SYSTEM, "no memory for the splits of %" PRId64 " vertices", rows);
}

/* Take the items of this rank's rows from a mask. */
static int take_masked(const struct sl_source *source, struct sl_part *part,
                       const struct sl_npy *mask, struct sl_index_set *out)
{
    const int64_t rows = part->data.adjacency.rows, width = mask->dims == 2 ? mask->shape[1] : 1;
    int64_t *own = sl_block_array(&part->data.blocks, rows, sizeof *own);
    if (!own)
        return SL_ERR_SYSTEM;
    out->ids = own;
    for (int64_t r = part->first; r < part->first + rows; r++)
        if (sl_npy_get(mask, sl_source_vertex(source, r) * width) != 0.0)
            own[out->count++] = r;
    part->bytes_read += rows * (int64_t)mask->item_bytes;
    return SL_OK;
}

/* Check that two ascending splits are disjoint. */
static int check_disjoint(const struct sl_source *source, const struct sl_index_set *a,
                          const char *a_name, const struct sl_index_set *b, const char *b_name)
{
    for (int64_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (a->ids[i] == b->ids[j])
            return sl_error(SL_ERR_DATA,
                            "%s: vertex %" PRId64 " is in both %s and %s, expected disjoint splits",
                            source->path, sl_source_vertex(source, a->ids[i]), a_name, b_name);
        if (a->ids[i] < b->ids[j])
            i++;
        else
            j++;
    }
    return SL_OK;
}

/* ---- All splits ---- */

int sl_part_read_splits(struct sl_runtime *rt, const struct sl_source *source, struct sl_part *part)
{
    struct {
        struct sl_index_set *set;
        const char *name;
        struct sl_npy ids;
        bool mask, ascending;
    } splits[] = {{&part->data.train, "train_idx", source->splits.split[SL_SPLIT_TRAIN],
                   source->splits.mask[SL_SPLIT_TRAIN], true},
                  {&part->data.val, "val_idx", source->splits.split[SL_SPLIT_VAL],
                   source->splits.mask[SL_SPLIT_VAL], true},
                  {&part->data.test, "test_idx", source->splits.split[SL_SPLIT_TEST],
                   source->splits.mask[SL_SPLIT_TEST], true}};
    enum { COUNT = sizeof splits / sizeof *splits };
    int rc = SL_OK;
    for (int s = 0; s < COUNT && !rc; s++)
        if (splits[s].ids.data && !splits[s].mask)
            rc = check_items(rt, source, &splits[s].ids, &splits[s].ascending);
    rc = sl_runtime_agree(rt, rc);
    if (rc)
        return rc;
    for (int s = 0; s < COUNT; s++) {
        if (!splits[s].ids.data)
            continue;
        if (!sl_runtime_least(rt, splits[s].ascending) && !rc)
            rc = sort(&splits[s].ids, source->vertices, &part->data.blocks, &splits[s].ids);
        if (!rc)
            rc = (splits[s].mask ? take_masked : take_own)(source, part, &splits[s].ids,
                                                           splits[s].set);
    }
    for (int s = 0; s < COUNT && !rc; s++) {
        const int t = (s + 1) % COUNT;
        rc = check_disjoint(source, splits[s].set, splits[s].name, splits[t].set, splits[t].name);
    }
    return sl_runtime_agree(rt, rc);
}
