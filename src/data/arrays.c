#include "data/arrays.h"

#include <inttypes.h>

#include "core/error.h"
#include "data/csr.h"
#include "data/labels.h"

int sl_arrays_check_csr(const struct sl_npy *indptr, const struct sl_npy *indices,
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

int sl_arrays_check_rows(const struct sl_npy *npy, int dims, int64_t vertices)
{
    const int rc = sl_npy_expect(npy, dims);
    if (!rc && npy->shape[0] != vertices)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected %" PRId64 " (vertices)",
                        npy->name, npy->shape[0], vertices);
    return rc;
}

int sl_arrays_check_labels(struct sl_npy *labels, int64_t vertices, int64_t *classes)
{
    if (labels->dims == 2 && labels->shape[1] == 1) { /* OGB stores labels as (n, 1) */
        labels->dims = 1;
        labels->fortran_order = false;
    }
    if (labels->dims == 2 && sl_npy_is_text(labels))
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns of text, expected one",
                        labels->name, labels->shape[1]);
    const int rc = sl_arrays_check_rows(labels, labels->dims == 2 ? 2 : 1, vertices);
    if (rc || labels->dims == 1)
        return rc;
    if (*classes > 0 && *classes != labels->shape[1])
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns, expected %" PRId64 " (classes)",
                        labels->name, labels->shape[1], *classes);
    *classes = labels->shape[1];
    return SL_OK;
}

int sl_arrays_csr(const struct sl_npy *indptr, const struct sl_npy *indices,
                  const struct sl_npy *data, int64_t cols, struct sl_block **blocks,
                  struct sl_csr *out, int64_t *merged)
{
    int rc = sl_arrays_check_csr(indptr, indices, data);
    if (rc)
        return rc;
    struct sl_csr csr = {.rows = indptr->count - 1, .cols = cols};
    rc = sl_npy_take(indptr, SL_NPY_INT64, 0, indptr->count, blocks, &csr.indptr);
    if (!rc)
        rc = sl_npy_take(indices, SL_NPY_INT32, 0, indices->count, blocks, &csr.indices);
    if (!rc)
        rc = sl_npy_take(data, SL_NPY_FLOAT32, 0, data->count, blocks, &csr.values);
    if (!rc)
        rc = sl_csr_check(&csr, indices->count, indptr->name, indices->name);
    if (!rc)
        rc = sl_csr_normalize(&csr, blocks, merged);
    if (!rc)
        *out = csr;
    return rc;
}

int sl_arrays_features(const struct sl_npy *features, struct sl_dataset *out)
{
    const int rc = sl_arrays_check_rows(features, 2, out->vertices);
    if (rc)
        return rc;
    out->feature_form = SL_FEATURES_DENSE;
    out->features = features->shape[1];
    return sl_npy_take(features, SL_NPY_FLOAT32, 0, features->count, &out->blocks,
                       &out->features_dense);
}

/* Copy labels that are names, or that have NaN for no label. */
static int copy_labels(const struct sl_npy *labels, struct sl_dataset *out)
{
    struct sl_runtime alone = {.ranks = 1};
    int32_t *numbers = sl_block_array(&out->blocks, labels->count, sizeof *numbers);
    int rc = numbers ? SL_OK : SL_ERR_SYSTEM;
    if (!rc && sl_npy_is_text(labels))
        rc = sl_labels_find_names(&alone, labels, &out->blocks, &out->meaning.class_names,
                                  &out->classes);
    out->labels = numbers;
    const struct sl_label_classes classes = {.name = out->meaning.class_names,
                                             .count = out->classes};
    const struct sl_label_rows all = {.count = labels->count};
    return rc ? rc : sl_labels_copy(labels, &classes, &all, numbers);
}

int sl_arrays_labels(struct sl_npy *labels, struct sl_dataset *out)
{
    struct sl_runtime alone = {.ranks = 1};
    int rc = sl_arrays_check_labels(labels, out->vertices, &out->classes);
    if (!rc)
        rc = sl_labels_mend(&alone, labels, out->classes, &out->blocks);
    if (rc)
        return rc;
    enum sl_label_kind kind = SL_LABELS_UNKNOWN;
    rc = sl_labels_settle(&alone, labels, &kind, &out->meaning.whole_numbers, &out->blocks);
    if (rc)
        return rc;
    out->meaning.regression = kind == SL_LABELS_NUMBERS;
    if (labels->dims == 1 && sl_labels_need_copy(labels, &(struct sl_label_classes){.count = 0}))
        return copy_labels(labels, out);
    if (labels->dims == 1)
        return sl_npy_take(labels, SL_NPY_INT32, 0, labels->count, &out->blocks, &out->labels);
    out->classes = labels->shape[1];
    return sl_npy_take(labels, SL_NPY_FLOAT32, 0, labels->count, &out->blocks, &out->multilabels);
}
