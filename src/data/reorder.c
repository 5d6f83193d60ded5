/* Another order for the vertices of a dataset, in all its arrays at once. */
#include <string.h>

#include "core/error.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/order.h"

struct permutation {
    int64_t n;
    const int32_t *vertex; // (n): row r is the vertex that was in row vertex[r]
    const int32_t *place;  // (n): the inverse
};

/* Row r of *out is row p->vertex[r] of `csr`; columns stay what they are. */
static int permute_rows(const struct permutation *p, const struct sl_csr *csr,
                        struct sl_block **blocks, struct sl_csr *out)
{
    const int64_t nnz = csr->indptr[p->n];
    int64_t *indptr = sl_block_array(blocks, p->n + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, nnz, sizeof *indices);
    float *values = csr->values ? sl_block_array(blocks, nnz, sizeof *values) : NULL;
    if (!indptr || !indices || (csr->values && !values))
        return SL_ERR_SYSTEM;
    indptr[0] = 0;
    for (int64_t r = 0; r < p->n; r++) {
        const int64_t from = csr->indptr[p->vertex[r]], to = indptr[r];
        const size_t count = (size_t)(csr->indptr[p->vertex[r] + 1] - from);
        memcpy(indices + to, csr->indices + from, count * sizeof *indices);
        if (values)
            memcpy(values + to, csr->values + from, count * sizeof *values);
        indptr[r + 1] = to + (int64_t)count;
    }
    *out = (struct sl_csr){csr->rows, csr->cols, indptr, indices, values};
    return SL_OK;
}

/* Rows and columns. Transposing sorts: once is enough where the matrix equals its transpose. */
static int permute_adjacency(const struct permutation *p, const struct sl_dataset *data,
                             struct sl_block **blocks, struct sl_csr *out)
{
    struct sl_block *scratch = NULL, *turned_blocks = NULL;
    struct sl_csr moved, turned;
    int rc = permute_rows(p, &data->adjacency, &scratch, &moved);
    if (!rc) {
        int32_t *columns = (int32_t *)moved.indices; /* new, and nobody else's yet */
        for (int64_t k = 0; k < moved.indptr[p->n]; k++)
            columns[k] = p->place[columns[k]];
        rc = sl_csr_transpose(&moved, data->symmetric ? blocks : &turned_blocks, &turned);
    }
    sl_block_free_all(&scratch);
    if (!rc && data->symmetric)
        *out = turned;
    else if (!rc)
        rc = sl_csr_transpose(&turned, blocks, out);
    sl_block_free_all(&turned_blocks);
    return rc;
}

/* Rows of `size` bytes each; NULL stays NULL. */
static int permute_array(const struct permutation *p, const void *from, size_t size,
                         struct sl_block **blocks, const void **out)
{
    *out = NULL;
    if (!from)
        return SL_OK;
    char *to = sl_block_array(blocks, p->n, size);
    if (!to)
        return SL_ERR_SYSTEM;
    for (int64_t r = 0; r < p->n; r++)
        memcpy(to + (size_t)r * size, (const char *)from + (size_t)p->vertex[r] * size, size);
    *out = to;
    return SL_OK;
}

static int permute_features(const struct permutation *p, struct sl_dataset *data,
                            struct sl_block **blocks)
{
    if (data->feature_form == SL_FEATURES_CSR)
        return permute_rows(p, &data->features_csr, blocks, &data->features_csr);
    if (data->feature_form == SL_FEATURES_DENSE)
        return permute_array(p, data->features_dense, (size_t)data->features * sizeof(float),
                             blocks, (const void **)&data->features_dense);
    return SL_OK;
}

static int permute_labels(const struct permutation *p, struct sl_dataset *data,
                          struct sl_block **blocks)
{
    const int rc =
        permute_array(p, data->labels, sizeof *data->labels, blocks, (const void **)&data->labels);
    return rc ? rc
              : permute_array(p, data->multilabels, (size_t)data->classes * sizeof(float), blocks,
                              (const void **)&data->multilabels);
}

static int permute_split(const struct permutation *p, struct sl_index_set *split,
                         struct sl_block **blocks)
{
    struct sl_block *scratch = NULL;
    bool *in = sl_block_array(&scratch, p->n, sizeof *in);
    int64_t *ids = sl_block_array(blocks, split->count, sizeof *ids), count = 0;
    const bool ready = in && ids;
    if (ready) {
        memset(in, 0, (size_t)p->n * sizeof *in);
        for (int64_t k = 0; k < split->count; k++)
            in[p->place[split->ids[k]]] = true;
        for (int64_t r = 0; r < p->n; r++)
            if (in[r])
                ids[count++] = r;
        split->ids = ids;
    }
    sl_block_free_all(&scratch);
    return ready ? SL_OK : SL_ERR_SYSTEM;
}

static int permute_original(const struct permutation *p, struct sl_dataset *data,
                            struct sl_block **blocks)
{
    int64_t *original = sl_block_array(blocks, p->n, sizeof *original);
    if (!original)
        return SL_ERR_SYSTEM;
    for (int64_t r = 0; r < p->n; r++)
        original[r] = data->original ? data->original[p->vertex[r]] : p->vertex[r];
    data->original = original;
    return SL_OK;
}

/* All arrays of *data, in new blocks; its old ones stay as they are. */
static int permute_all(const struct permutation *p, struct sl_dataset *data,
                       struct sl_block **blocks)
{
    int rc = permute_adjacency(p, data, blocks, &data->adjacency);
    if (!rc)
        rc = permute_features(p, data, blocks);
    if (!rc)
        rc = permute_labels(p, data, blocks);
    if (!rc)
        rc = permute_split(p, &data->train, blocks);
    if (!rc)
        rc = permute_split(p, &data->val, blocks);
    if (!rc)
        rc = permute_split(p, &data->test, blocks);
    return rc ? rc : permute_original(p, data, blocks);
}

int sl_dataset_reorder(struct sl_dataset *data, const char *order, uint64_t seed)
{
    const struct sl_order *found = sl_order_find(order);
    if (!found || !found->compute)
        return found ? SL_OK : SL_ERR_USAGE;
    struct sl_block *scratch = NULL, *blocks = NULL;
    struct sl_dataset permuted = *data;
    const int64_t n = data->vertices;
    int32_t *vertex = sl_block_array(&scratch, n, sizeof *vertex);
    int32_t *place = sl_block_array(&scratch, n, sizeof *place);
    int rc = vertex && place ? sl_order_compute(found, data, seed, vertex) : SL_ERR_SYSTEM;
    for (int64_t r = 0; !rc && r < n; r++)
        place[vertex[r]] = (int32_t)r;
    if (!rc)
        rc = permute_all(&(struct permutation){n, vertex, place}, &permuted, &blocks);
    sl_block_free_all(&scratch);
    if (rc) {
        sl_block_free_all(&blocks);
        return sl_error_about(rc, data->path);
    }
    sl_block_free_all(&data->blocks);
    permuted.blocks = blocks;
    *data = permuted;
    return SL_OK;
}
