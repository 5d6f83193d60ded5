#include "tests/select_reference.h"

#include <limits.h>

#include "core/rng.h"
#include "tests/unit.h"

struct candidate {
    uint64_t number;
    int32_t vertex;
};

static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int64_t number_of(const struct sl_dataset *data, int64_t v)
{
    return data->original ? data->original[v] : v;
}

/* Sort all outer neighbours of v by their numbers. Returns their count. */
static int64_t list_outer(const struct sl_dataset *data, const bool *inner, int64_t v, uint64_t key,
                          struct candidate *list)
{
    const struct sl_csr *a = &data->adjacency;
    int64_t count = 0;
    for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++) {
        const int32_t u = a->indices[e];
        if (u != v && !inner[u])
            list[count++] = (struct candidate){
                sl_rng_bits(key, (uint32_t)number_of(data, v), (uint32_t)number_of(data, u)), u};
    }
    qsort(list, (size_t)count, sizeof *list, compare);
    return count;
}

/* The distances of selected vertices by the edges among them. */
static void measure(const struct sl_dataset *data, const bool *inner, int *hop)
{
    const struct sl_csr *a = &data->adjacency;
    const int far = INT_MAX - 1;
    for (int64_t v = 0; v < data->vertices; v++)
        hop[v] = hop[v] < 0 ? -1 : inner[v] ? 0 : far;
    for (bool shorter = true; shorter;) {
        shorter = false;
        for (int64_t v = 0; v < data->vertices; v++)
            for (int64_t e = a->indptr[v]; hop[v] >= 0 && e < a->indptr[v + 1]; e++)
                if (hop[a->indices[e]] > hop[v] + 1) {
                    hop[a->indices[e]] = hop[v] + 1;
                    shorter = true;
                }
    }
}

void sl_reference_select(const struct sl_dataset *data, const bool *inner,
                         const struct sl_selection_options *options, int *hop)
{
    const int64_t n = data->vertices;
    const uint64_t key = sl_rng_key(options->seed, SL_RNG_SELECT, options->draw, 0);
    struct candidate *list = malloc((size_t)(n + 1) * sizeof *list);
    if (!list)
        abort();
    for (int64_t v = 0; v < n; v++)
        hop[v] = inner[v] ? 0 : -1;
    bool grows = true;
    for (int h = 0; grows && h != options->hops; h++) {
        grows = false;
        for (int64_t v = 0; v < n; v++) {
            int64_t count = hop[v] == h ? list_outer(data, inner, v, key, list) : 0;
            if (options->fanout > 0 && count > options->fanout)
                count = options->fanout;
            for (int64_t c = 0; c < count; c++)
                if (hop[list[c].vertex] < 0) {
                    hop[list[c].vertex] = h + 1;
                    grows = true;
                }
        }
    }
    free(list);
    if (options->keeps_last_rows)
        measure(data, inner, hop);
}

void sl_assert_equal_selections(const struct sl_selection *a, const struct sl_selection *b)
{
    const struct sl_source *x = &a->source, *y = &b->source;
    assert_int_equal(x->vertices, y->vertices);
    assert_int_equal(a->hops, b->hops);
    assert_memory_equal(a->hop_cut, b->hop_cut, ((size_t)a->hops + 2) * sizeof *a->hop_cut);
    const size_t n = (size_t)x->vertices, nnz = (size_t)x->adjacency.indices.count;
    assert_int_equal(nnz, y->adjacency.indices.count);
    assert_memory_equal(x->order.original.data, y->order.original.data, n * sizeof(int64_t));
    assert_memory_equal(x->adjacency.indptr.data, y->adjacency.indptr.data,
                        (n + 1) * sizeof(int64_t));
    assert_memory_equal(x->adjacency.indices.data, y->adjacency.indices.data,
                        nnz * sizeof(int32_t));
    assert_memory_equal(x->selection.row_entries, y->selection.row_entries,
                        n * sizeof *x->selection.row_entries);
    assert_int_equal(x->selection.row_weight == NULL, y->selection.row_weight == NULL);
    if (x->selection.row_weight)
        assert_memory_equal(x->selection.row_weight, y->selection.row_weight,
                            n * sizeof *x->selection.row_weight);
    if (x->adjacency.values.data)
        assert_memory_equal(x->adjacency.values.data, y->adjacency.values.data,
                            nnz * sizeof(float));
}
