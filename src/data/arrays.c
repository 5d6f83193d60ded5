#include "data/arrays.h"

#include <inttypes.h>

#include "core/error.h"
#include "data/csr.h"

static int64_t largest(const int32_t *items, int64_t count)
{
    int64_t max = -1;
    for (int64_t k = 0; k < count; k++)
        max = items[k] > max ? items[k] : max;
    return max;
}

static int check_shapes(const struct sl_npy *indptr, const struct sl_npy *indices,
                        const struct sl_npy *data)
{
    int rc = sl_npy_expect(indptr, 1);
    if (!rc)
        rc = sl_npy_expect(indices, 1);
    if (!rc && data)
        rc = sl_npy_expect(data, 1);
    if (rc)
        return rc;
    if (indptr->count < 1 || indptr->count > INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " items, expected 1 to 2^31 - 1",
                        indptr->name, indptr->count);
    if (data && data->count != indices->count)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " items, expected %" PRId64 " as in %s",
                        data->name, data->count, indices->count, indices->name);
    return SL_OK;
}

int sl_arrays_csr(const struct sl_npy *indptr, const struct sl_npy *indices,
                  const struct sl_npy *data, int64_t cols, struct sl_block **blocks,
                  struct sl_csr *out, int64_t *merged)
{
    int rc = check_shapes(indptr, indices, data);
    if (rc)
        return rc;
    struct sl_csr csr = {.rows = indptr->count - 1};
    rc = sl_npy_int64(indptr, blocks, &csr.indptr);
    if (!rc)
        rc = sl_npy_int32(indices, blocks, &csr.indices);
    if (!rc && data)
        rc = sl_npy_float32(data, blocks, &csr.values);
    if (rc)
        return rc;
    csr.cols = cols >= 0 ? cols : largest(csr.indices, indices->count) + 1;
    rc = sl_csr_check(&csr, indices->count, indptr->name, indices->name);
    if (!rc)
        rc = sl_csr_normalize(&csr, blocks, merged);
    if (!rc)
        *out = csr;
    return rc;
}

int sl_arrays_features(const struct sl_npy *features, struct sl_dataset *out)
{
    const int rc = sl_npy_expect(features, 2);
    if (rc)
        return rc;
    if (features->shape[0] != out->vertices)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected %" PRId64 " (vertices)",
                        features->name, features->shape[0], out->vertices);
    out->feature_form = SL_FEATURES_DENSE;
    out->features = features->shape[1];
    return sl_npy_float32(features, &out->blocks, &out->features_dense);
}

int sl_arrays_labels(const struct sl_npy *labels, struct sl_dataset *out)
{
    const int rc = sl_npy_expect(labels, labels->dims == 2 ? 2 : 1);
    if (rc)
        return rc;
    if (labels->shape[0] != out->vertices)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected %" PRId64 " (vertices)",
                        labels->name, labels->shape[0], out->vertices);
    if (labels->dims == 1)
        return sl_npy_int32(labels, &out->blocks, &out->labels);
    if (out->classes > 0 && out->classes != labels->shape[1])
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns, expected %" PRId64 " (classes)",
                        labels->name, labels->shape[1], out->classes);
    out->classes = labels->shape[1];
    return sl_npy_float32(labels, &out->blocks, &out->multilabels);
}

int sl_arrays_split(const struct sl_npy *ids, struct sl_dataset *out, struct sl_index_set *split)
{
    const int rc = sl_npy_expect(ids, 1);
    if (rc)
        return rc;
    split->count = ids->count;
    return sl_npy_int64(ids, &out->blocks, &split->ids);
}
