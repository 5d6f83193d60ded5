#include "assembly/cloning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/outbox.h"

int sl_cloning_no_memory(int64_t items)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %lld items of a vertex-cut", (long long)items);
}

static int64_t original_of(const struct sl_cloning *m, int64_t k)
{
    const struct sl_part *part = m->home->part;
    return part->data.original ? part->data.original[k] : part->first + k;
}

/* ---- Edges go to their parts, loops to roots ---- */

/* Send the edges, or the loops alone, to ranks. *received (count) are sorted by row. */
static int share_entries(struct sl_cloning *m, bool loops, struct sl_edge_record **received,
                         int64_t *count)
{
    const struct sl_csr *a = &m->home->part->data.adjacency;
    const int64_t first = m->home->part->first;
    struct sl_outbox box;
    int code = sl_outbox_open(&box, m->rt->ranks, sizeof(struct sl_edge_record));
    for (int pass = 0; !code && pass < 2; pass++) {
        for (int64_t k = 0; k < a->rows; k++)
            for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++) {
                const int32_t row = (int32_t)(first + k),
                              to = loops ? m->root[k] : m->home->edge_part[e];
                if ((a->indices[e] == row) != loops)
                    continue;
                if (pass == 0)
                    sl_outbox_count(&box, to, 1);
                else
                    *(struct sl_edge_record *)sl_outbox_put(&box, to) =
                        (struct sl_edge_record){row, a->indices[e], sl_cloning_weight(a, e)};
            }
        if (pass == 0)
            code = sl_outbox_seal(&box);
    }
    void *sent;
    code = sl_outbox_send(m->rt, &box, code, &sent, count);
    *received = sent;
    return code;
}

/* ---- Which ranks have a vertex, and which of them is the root ---- */

static int mark_ends(struct sl_cloning *m)
{
    const int64_t n = m->home->bounds[m->rt->ranks];
    m->number = malloc((size_t)(n + 1) * sizeof *m->number);
    if (!m->number)
        return sl_cloning_no_memory(n);
    memset(m->number, -1, (size_t)n * sizeof *m->number);
    for (int64_t e = 0; e < m->edges; e++)
        m->number[m->edge[e].row] = m->number[m->edge[e].col] = 0;
    return 0;
}

/* Tell the rank that has read a vertex that this rank has a clone of it. *told lists the clones'
 * ranks in order, and each rank's vertices in order. */
static int tell_homes(struct sl_cloning *m, struct sl_holding **told, int64_t *count)
{
    const int64_t n = m->home->bounds[m->rt->ranks];
    struct sl_outbox box;
    int code = sl_outbox_open(&box, m->rt->ranks, sizeof(struct sl_holding));
    if (!code)
        code = mark_ends(m);
    for (int pass = 0; !code && pass < 2; pass++) {
        for (int64_t v = 0; v < n; v++) {
            if (m->number[v] < 0)
                continue;
            const int to = sl_cut_find(m->rt->ranks, m->home->bounds, v);
            if (pass == 0)
                sl_outbox_count(&box, to, 1);
            else
                *(struct sl_holding *)sl_outbox_put(&box, to) =
                    (struct sl_holding){(int32_t)v, m->rt->rank};
        }
        if (pass == 0)
            code = sl_outbox_seal(&box);
    }
    void *received;
    code = sl_outbox_send(m->rt, &box, code, &received, count);
    *told = received;
    return code;
}

static int list_holders(struct sl_cloning *m, const struct sl_holding *told, int64_t count)
{
    const int64_t rows = m->home->part->data.adjacency.rows, first = m->home->part->first;
    m->holders = calloc((size_t)rows + 2, sizeof *m->holders);
    m->holder = malloc((size_t)(count + rows + 1) * sizeof *m->holder);
    m->root = malloc((size_t)(rows + 1) * sizeof *m->root);
    if (!m->holders || !m->holder || !m->root)
        return sl_cloning_no_memory(count);
    for (int64_t t = 0; t < count; t++)
        m->holders[told[t].vertex - first + 2]++;
    for (int64_t k = 0; k < rows; k++) { /* a vertex without edges still gets a root */
        m->root[k] = m->holders[k + 2] ? -1 : 0;
        m->holders[k + 2] += m->holders[k + 1] + !m->holders[k + 2];
    }
    for (int64_t t = 0; t < count; t++)
        m->holder[m->holders[told[t].vertex - first + 1]++] = told[t].rank;
    for (int64_t k = 0; k < rows; k++) {
        const uint64_t drawn = sl_cloning_draw(m->home->seed, original_of(m, k));
        if (m->root[k] == 0)
            m->holder[m->holders[k + 1]++] = (int32_t)(drawn % (uint64_t)m->rt->ranks);
        const int64_t begin = k ? m->holders[k] : 0, clones = m->holders[k + 1] - begin;
        m->root[k] = m->holder[begin + (int64_t)(drawn % (uint64_t)clones)];
    }
    return 0;
}

/* ---- What is known of a vertex goes where it has clones ---- */

static int mark_splits(const struct sl_cloning *m, int32_t **split)
{
    const struct sl_dataset *data = &m->home->part->data;
    const struct sl_index_set *sets[SL_SPLITS] = {NULL};
    sets[SL_SPLIT_TRAIN] = &data->train;
    sets[SL_SPLIT_VAL] = &data->val;
    sets[SL_SPLIT_TEST] = &data->test;
    *split = calloc((size_t)data->adjacency.rows + 1, sizeof **split);
    if (!*split)
        return sl_cloning_no_memory(data->adjacency.rows);
    for (int s = 0; s < SL_SPLITS; s++)
        for (int64_t k = 0; sets[s] && k < sets[s]->count; k++)
            (*split)[sets[s]->ids[k] - m->home->part->first] = s;
    return 0;
}

static struct sl_vertex_record record_of(const struct sl_cloning *m, int64_t k, int32_t split)
{
    const struct sl_dataset *data = &m->home->part->data;
    const struct sl_csr *a = &data->adjacency;
    struct sl_vertex_record record = {
        .left = m->home->left[k],
        .right = m->home->right[k],
        .original = original_of(m, k),
        .vertex = (int32_t)(m->home->part->first + k),
        .root = m->root[k],
        .label = data->labels ? data->labels[k] : -1, /* share_rows sends several labels */
        .split = split,
        .hop = sl_source_hop(m->home->source, m->home->part->first + k),
    };
    for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
        record.weight += fabs(a->values ? (double)a->values[e] : 1.0);
    return record;
}

static int share_records(struct sl_cloning *m)
{
    const int64_t rows = m->home->part->data.adjacency.rows;
    int32_t *split = NULL;
    struct sl_outbox box;
    int code = sl_outbox_open(&box, m->rt->ranks, sizeof(struct sl_vertex_record));
    if (!code)
        code = mark_splits(m, &split);
    for (int64_t h = 0; !code && h < m->holders[rows]; h++)
        sl_outbox_count(&box, m->holder[h], 1);
    if (!code)
        code = sl_outbox_seal(&box);
    for (int64_t k = 0; !code && k < rows; k++) {
        const struct sl_vertex_record record = record_of(m, k, split[k]);
        for (int64_t h = m->holders[k]; h < m->holders[k + 1]; h++)
            *(struct sl_vertex_record *)sl_outbox_put(&box, m->holder[h]) = record;
    }
    free(split);
    void *received;
    code = sl_outbox_send(m->rt, &box, code, &received, &m->records);
    m->record = received;
    return code;
}

/* Send rows (width) of this rank's vertices to all ranks with a clone of them. */
static int share_rows(struct sl_cloning *m, const float *rows_of_part, int64_t width, float **out)
{
    const int64_t rows = m->home->part->data.adjacency.rows;
    const size_t bytes = (size_t)width * sizeof *rows_of_part;
    struct sl_outbox box;
    int64_t count;
    void *received;
    int code = sl_outbox_open(&box, m->rt->ranks, bytes);
    for (int64_t h = 0; !code && h < m->holders[rows]; h++)
        sl_outbox_count(&box, m->holder[h], 1);
    if (!code)
        code = sl_outbox_seal(&box);
    for (int64_t k = 0; !code && k < rows; k++)
        for (int64_t h = m->holders[k]; h < m->holders[k + 1]; h++)
            memcpy(sl_outbox_put(&box, m->holder[h]), rows_of_part + k * width, bytes);
    code = sl_outbox_send(m->rt, &box, code, &received, &count);
    *out = received;
    return code;
}

static int share_sparse_features(struct sl_cloning *m)
{
    const struct sl_csr *x = &m->home->part->data.features_csr;
    struct sl_outbox box;
    void *received;
    int code = sl_outbox_open(&box, m->rt->ranks, sizeof(struct sl_feature_record));
    for (int pass = 0; !code && pass < 2; pass++) {
        for (int64_t k = 0; k < x->rows; k++)
            for (int64_t h = m->holders[k]; h < m->holders[k + 1]; h++) {
                if (pass == 0)
                    sl_outbox_count(&box, m->holder[h], x->indptr[k + 1] - x->indptr[k]);
                for (int64_t e = x->indptr[k]; pass == 1 && e < x->indptr[k + 1]; e++)
                    *(struct sl_feature_record *)sl_outbox_put(&box, m->holder[h]) =
                        (struct sl_feature_record){(int32_t)(m->home->part->first + k),
                                                   x->indices[e], x->values ? x->values[e] : 1.0f};
            }
        if (pass == 0)
            code = sl_outbox_seal(&box);
    }
    code = sl_outbox_send(m->rt, &box, code, &received, &m->features);
    m->feature = received;
    return code;
}

static int share_features(struct sl_cloning *m)
{
    const struct sl_dataset *data = &m->home->part->data;
    switch (data->feature_form) {
    case SL_FEATURES_DENSE:
        return share_rows(m, data->features_dense, data->features, &m->dense);
    case SL_FEATURES_CSR:
        return share_sparse_features(m);
    default:
        return 0;
    }
}

/* ---- All of it ---- */

static int make(struct sl_cloning *m)
{
    struct sl_holding *told = NULL;
    int64_t count = 0;
    int code = share_entries(m, false, &m->edge, &m->edges);
    if (!code)
        code = tell_homes(m, &told, &count);
    if (!code)
        code = sl_runtime_agree(m->rt, list_holders(m, told, count));
    free(told);
    if (!code)
        code = share_entries(m, true, &m->loop, &m->loops);
    if (!code)
        code = share_records(m);
    if (!code)
        code = share_features(m);
    if (!code && m->home->several)
        code = share_rows(m, m->home->part->data.multilabels, m->home->part->data.classes,
                          &m->several);
    return code ? code : sl_cloning_build(m);
}

int sl_clones_create(struct sl_runtime *rt, const struct sl_home *home, struct sl_clones *out)
{
    struct sl_cloning m = {.rt = rt, .home = home, .out = out};
    *out = (struct sl_clones){0};
    const int code = make(&m);
    free(m.edge);
    free(m.loop);
    free(m.record);
    free(m.feature);
    free(m.dense);
    free(m.several);
    free(m.number);
    free(m.holders);
    free(m.holder);
    free(m.root);
    return code;
}

void sl_clones_destroy(struct sl_clones *clones)
{
    sl_part_close(&clones->part);
    free(clones->bounds);
    free(clones->left);
    free(clones->right);
    free(clones->weight);
    free(clones->diagonal);
    free(clones->hop);
    free(clones->row);
    free(clones->leaf);
    free(clones->root);
    *clones = (struct sl_clones){0};
}
