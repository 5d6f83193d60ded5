/* Builds this rank's clones of a vertex-cut from the records that ranks have exchanged. */
#include <math.h>
#include <stdlib.h>

#include "assembly/cloning.h"
#include "core/error.h"
#include "core/outbox.h"
#include "data/block.h"

/* ---- The clones ---- */

static int number_clones(struct sl_cloning *m)
{
    struct sl_clones *out = m->out;
    out->bounds = calloc((size_t)m->rt->ranks + 1, sizeof *out->bounds);
    const int code = sl_runtime_agree(m->rt, out->bounds ? 0 : sl_cloning_no_memory(m->rt->ranks));
    if (code)
        return code;
    sl_runtime_gather(m->rt, m->records, out->bounds + 1);
    for (int r = 0; r < m->rt->ranks; r++)
        out->bounds[r + 1] += out->bounds[r];
    for (int64_t k = 0; k < m->records; k++)
        m->number[m->record[k].vertex] = (int32_t)k;
    if (out->bounds[m->rt->ranks] > INT32_MAX)
        return sl_error(
            SL_ERR_DATA,
            "%s: the vertex-cut has %lld clones of vertices (expected at most 2^31 - 1)",
            m->home->part->data.path, (long long)out->bounds[m->rt->ranks]);
    return 0;
}

/* Build the adjacency of the clones. Stored loops go to roots only. */
static int build_adjacency(struct sl_cloning *m, struct sl_csr *a)
{
    struct sl_block **blocks = &m->out->part.data.blocks;
    const struct sl_csr *const read = &m->home->part->data.adjacency;
    const bool weighted = read->values || read->edges;
    const int64_t first = m->out->bounds[m->rt->rank], most = m->edges + m->loops;
    int64_t *indptr = sl_block_array(blocks, m->records + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, most, sizeof *indices);
    float *values = weighted ? sl_block_array(blocks, most, sizeof *values) : NULL;
    if (!indptr || !indices || (weighted && !values))
        return SL_ERR_SYSTEM;
    int64_t e = 0, l = 0;
    indptr[0] = 0;
    for (int64_t k = 0; k < m->records; k++) {
        const int32_t vertex = m->record[k].vertex;
        for (;;) {
            const bool more = e < m->edges && m->edge[e].row == vertex,
                       loop = l < m->loops && m->loop[l].row == vertex;
            if (!more && !loop)
                break;
            const int64_t count = e + l;
            const struct sl_edge_record *next =
                loop && (!more || m->edge[e].col > vertex) ? &m->loop[l++] : &m->edge[e++];
            indices[count] = (int32_t)(first + m->number[next->col]);
            if (weighted)
                values[count] = next->weight;
        }
        indptr[k + 1] = e + l;
    }
    *a = (struct sl_csr){m->records, m->out->bounds[m->rt->ranks], indptr, indices, values, NULL};
    if (read->edges) {
        a->edges = (const int32_t *)values;
        a->values = NULL;
    }
    return 0;
}

static int build_features(struct sl_cloning *m, struct sl_dataset *data)
{
    if (data->feature_form == SL_FEATURES_DENSE) {
        const int code = sl_block_adopt(&data->blocks, m->dense, 0, false);
        data->features_dense = m->dense;
        m->dense = NULL;
        return code;
    }
    if (data->feature_form != SL_FEATURES_CSR)
        return 0;
    const bool valued = m->home->part->data.features_csr.values != NULL;
    int64_t *indptr = sl_block_array(&data->blocks, m->records + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(&data->blocks, m->features, sizeof *indices);
    float *values = valued ? sl_block_array(&data->blocks, m->features, sizeof *values) : NULL;
    if (!indptr || !indices || (valued && !values))
        return SL_ERR_SYSTEM;
    int64_t f = 0;
    indptr[0] = 0;
    for (int64_t k = 0; k < m->records; k++) {
        for (; f < m->features && m->feature[f].vertex == m->record[k].vertex; f++) {
            indices[f] = m->feature[f].col;
            if (valued)
                values[f] = m->feature[f].value;
        }
        indptr[k + 1] = f;
    }
    data->features_csr = (struct sl_csr){m->records, data->features, indptr, indices, values};
    return 0;
}

static bool is_root(const struct sl_cloning *m, int64_t k)
{
    return m->record[k].root == m->rt->rank;
}

/* Take several labels per vertex. Leaves get NaN, which is no label. */
static int build_several(struct sl_cloning *m, struct sl_dataset *data)
{
    if (!m->home->several)
        return 0;
    for (int64_t k = 0; k < m->records; k++)
        for (int64_t c = 0; !is_root(m, k) && c < data->classes; c++)
            m->several[k * data->classes + c] = NAN;
    const int code = sl_block_adopt(&data->blocks, m->several, 0, false);
    data->multilabels = m->several;
    m->several = NULL;
    return code;
}

static int list_split(struct sl_cloning *m, enum sl_split split, struct sl_index_set *set)
{
    const int64_t first = m->out->bounds[m->rt->rank];
    int64_t *ids = sl_block_array(&m->out->part.data.blocks, m->records, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    *set = (struct sl_index_set){.ids = ids};
    for (int64_t k = 0; k < m->records; k++)
        if (is_root(m, k) && m->record[k].split == (int32_t)split)
            ids[set->count++] = first + k;
    return 0;
}

static int build_rows(struct sl_cloning *m, struct sl_dataset *data)
{
    struct sl_clones *out = m->out;
    const size_t rows = (size_t)m->records + 1;
    const int64_t first = out->bounds[m->rt->rank];
    int64_t *original = sl_block_array(&data->blocks, m->records, sizeof *original);
    int32_t *labels = sl_block_array(&data->blocks, m->records, sizeof *labels);
    out->left = malloc(rows * sizeof *out->left);
    out->right = malloc(rows * sizeof *out->right);
    out->weight = malloc(rows * sizeof *out->weight);
    out->diagonal = malloc(rows * sizeof *out->diagonal);
    out->hop = malloc(rows * sizeof *out->hop);
    out->row = malloc(rows * sizeof *out->row);
    if (!original || !labels || !out->left || !out->right || !out->weight || !out->diagonal ||
        !out->hop || !out->row)
        return sl_cloning_no_memory(m->records);
    for (int64_t k = 0; k < m->records; k++) {
        const struct sl_vertex_record *record = &m->record[k];
        original[k] = record->original;
        labels[k] = is_root(m, k) ? record->label : -1;
        out->left[k] = record->left;
        out->right[k] = record->right;
        out->weight[k] = record->weight;
        out->hop[k] = record->hop;
        out->row[k] = record->vertex;
        out->diagonal[k] = is_root(m, k) ? (int32_t)(first + k) : -1;
    }
    data->original = original;
    data->labels = m->home->part->data.labels ? labels : NULL;
    return 0;
}

static int build_part(struct sl_cloning *m)
{
    const struct sl_part *home = m->home->part;
    struct sl_part *part = &m->out->part;
    struct sl_dataset *data = &part->data;
    *part = (struct sl_part){
        .data =
            {
                .name = home->data.name,
                .path = home->data.path,
                .vertices = m->out->bounds[m->rt->ranks],
                .features = home->data.features,
                .classes = home->data.classes,
                .symmetric = home->data.symmetric,
                .meaning.regression = home->data.meaning.regression,
                .feature_form = home->data.feature_form,
                .columns.bag_of_words = home->data.columns.bag_of_words,
                .merged_edges = home->data.merged_edges,
                .edge_features = home->data.edge_features,
            },
        .first = m->out->bounds[m->rt->rank],
        .dense_first = m->out->bounds[m->rt->rank],
        .dense_rows = m->records,
        .entries = home->entries,
        .bytes_read = home->bytes_read,
    };
    int code = build_adjacency(m, &data->adjacency);
    if (!code)
        code = build_features(m, data);
    if (!code)
        code = build_rows(m, data);
    if (!code)
        code = build_several(m, data);
    if (!code)
        code = list_split(m, SL_SPLIT_TRAIN, &data->train);
    if (!code)
        code = list_split(m, SL_SPLIT_VAL, &data->val);
    if (!code)
        code = list_split(m, SL_SPLIT_TEST, &data->test);
    return code;
}

/* ---- Which clones belong together ---- */

static struct sl_clone clone_of(const struct sl_cloning *m, int64_t k, int peer)
{
    return (struct sl_clone){
        .row = m->out->bounds[m->rt->rank] + k,
        .peer = peer,
        .bin = sl_cloning_bin(m->home->seed, m->record[k].original, m->home->delay),
        .hop = m->record[k].hop,
    };
}

static int compare_clones(const void *a, const void *b)
{
    const struct sl_clone *x = a, *y = b;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int list_leaves(struct sl_cloning *m)
{
    struct sl_clones *out = m->out;
    out->leaf = malloc((size_t)(m->records + 1) * sizeof *out->leaf);
    if (!out->leaf)
        return sl_cloning_no_memory(m->records);
    for (int64_t k = 0; k < m->records; k++)
        if (!is_root(m, k))
            out->leaf[out->leaves++] = clone_of(m, k, m->record[k].root);
    qsort(out->leaf, (size_t)out->leaves, sizeof *out->leaf, compare_clones);
    return 0;
}

/* List the leaves of this rank's roots. The ranks that have read the vertices send them. */
static int list_roots(struct sl_cloning *m)
{
    const int64_t rows = m->home->part->data.adjacency.rows, first = m->home->part->first;
    struct sl_clones *out = m->out;
    struct sl_outbox box;
    int code = sl_outbox_open(&box, m->rt->ranks, sizeof(struct sl_holding));
    for (int pass = 0; !code && pass < 2; pass++) {
        for (int64_t k = 0; k < rows; k++)
            for (int64_t h = m->holders[k]; h < m->holders[k + 1]; h++) {
                if (m->holder[h] == m->root[k])
                    continue;
                if (pass == 0)
                    sl_outbox_count(&box, m->root[k], 1);
                else
                    *(struct sl_holding *)sl_outbox_put(&box, m->root[k]) =
                        (struct sl_holding){(int32_t)(first + k), m->holder[h]};
            }
        if (pass == 0)
            code = sl_outbox_seal(&box);
    }
    void *received;
    code = sl_outbox_send(m->rt, &box, code, &received, &out->roots);
    const struct sl_holding *holding = received;
    if (!code) {
        out->root = malloc((size_t)(out->roots + 1) * sizeof *out->root);
        code = out->root ? 0 : sl_cloning_no_memory(out->roots);
    }
    for (int64_t k = 0; !code && k < out->roots; k++)
        out->root[k] = clone_of(m, m->number[holding[k].vertex], holding[k].rank);
    if (!code)
        qsort(out->root, (size_t)out->roots, sizeof *out->root, compare_clones);
    free(received);
    return code;
}

int sl_cloning_build(struct sl_cloning *m)
{
    int code = number_clones(m);
    if (!code)
        code = sl_runtime_agree(m->rt, build_part(m));
    if (!code)
        code = list_roots(m);
    if (!code)
        code = list_leaves(m);
    return sl_runtime_agree(m->rt, code);
}
