/* Take numbers, features, labels and splits of selected vertices. */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "data/feature_form.h"
#include "data/labels.h"
#include "data/part.h"
#include "data/selecting.h"

static int take_numbers(struct sl_selecting *s)
{
    struct sl_source *out = &s->out->source;
    int64_t *original = sl_block_array(&out->blocks, s->count, sizeof *original);
    for (int64_t k = 0; original && k < s->count; k++)
        original[k] = sl_source_number(s->source, s->out->row[k]);
    return sl_selecting_view(s, &s->source->order.original, SL_NPY_INT64, s->count, 0, original,
                             &out->order.original);
}

/* ---- Features: where they are ---- */

static int find_dense(struct sl_selecting *s)
{
    struct sl_source *out = &s->out->source;
    const int32_t *own = s->source->selection.feature_row;
    out->features_dense = s->source->features_dense;
    out->selection.feature_row = s->out->row;
    if (!own)
        return SL_OK;
    int32_t *row = sl_block_array(&out->blocks, s->count, sizeof *row);
    for (int64_t k = 0; row && k < s->count; k++)
        row[k] = own[s->out->row[k]];
    out->selection.feature_row = row;
    return row ? SL_OK : SL_ERR_SYSTEM;
}

/* Return an array of entries with its count cut to the selected rows' entries. */
static struct sl_npy shorten(struct sl_npy npy, int64_t count)
{
    npy.count = npy.shape[0] = count;
    return npy;
}

static int find_sparse(struct sl_selecting *s)
{
    const struct sl_stored_csr *from = &s->source->features_csr;
    struct sl_source *out = &s->out->source;
    struct sl_stored_csr *x = &out->features_csr;
    int64_t *indptr = sl_block_array(&out->blocks, s->count + 1, sizeof *indptr);
    int64_t *start = sl_block_array(&out->blocks, s->count, sizeof *start);
    if (!indptr || !start)
        return SL_ERR_SYSTEM;
    indptr[0] = 0;
    for (int64_t k = 0; k < s->count; k++) {
        int64_t extent[2];
        const int rc = sl_part_find_row(from, s->out->row[k], extent);
        if (rc)
            return rc;
        start[k] = extent[0];
        indptr[k + 1] = indptr[k] + extent[1] - extent[0];
    }
    *x = (struct sl_stored_csr){.start = start, .cols = from->cols};
    x->indices = shorten(from->indices, indptr[s->count]);
    if (from->values.data)
        x->values = shorten(from->values, indptr[s->count]);
    return sl_selecting_view(s, &from->indptr, SL_NPY_INT64, s->count + 1, 0, indptr, &x->indptr);
}

static int find_features(struct sl_selecting *s)
{
    const struct sl_source *source = s->source;
    int rc = SL_OK; /* identity features need no array: `original` numbers their columns */
    if (sl_features_part_form(source) == SL_FEATURES_CSR)
        rc = find_sparse(s);
    return rc || !source->features_dense.data ? rc : find_dense(s);
}

/* ---- Labels and splits of inner vertices ---- */

static int take_classes(struct sl_selecting *s)
{
    const struct sl_npy *from = &s->source->targets.labels;
    struct sl_source *out = &s->out->source;
    const struct sl_label_rows rows = {.row = s->out->row, .count = s->out->hop_cut[1]};
    int32_t *labels = sl_block_array(&out->blocks, s->count, sizeof *labels);
    if (!labels)
        return SL_ERR_SYSTEM;
    const struct sl_label_classes *classes = &s->source->targets.label_classes;
    const int rc = sl_labels_need_copy(from, classes)
                       ? sl_labels_copy(from, classes, &rows, labels)
                       : sl_npy_copy_rows(from, SL_NPY_INT32, rows.row, rows.count, labels);
    for (int64_t k = rows.count; k < s->count; k++)
        labels[k] = -1;
    return rc ? rc
              : sl_selecting_view(s, from, SL_NPY_INT32, s->count, 0, labels, &out->targets.labels);
}

/* Take several labels, or numbers to predict. */
static int take_values(struct sl_selecting *s)
{
    const struct sl_npy *from = &s->source->targets.labels;
    struct sl_source *out = &s->out->source;
    const int64_t classes = from->shape[1], inner = s->out->hop_cut[1];
    float *labels = sl_block_array(&out->blocks, s->count, (size_t)classes * sizeof *labels);
    if (!labels)
        return SL_ERR_SYSTEM;
    const int rc = sl_npy_copy_rows(from, SL_NPY_FLOAT32, s->out->row, inner, labels);
    for (int64_t i = inner * classes; i < s->count * classes; i++)
        labels[i] = NAN;
    return rc ? rc
              : sl_selecting_view(s, from, SL_NPY_FLOAT32, s->count, classes, labels,
                                  &out->targets.labels);
}

/* Mark the inner vertices of a list of rows of the files. */
static int mark_listed(const struct sl_selecting *s, const struct sl_npy *ids, bool *marked)
{
    const int64_t *stored = sl_npy_find(ids, SL_NPY_INT64, 0);
    for (int64_t i = 0; i < ids->count; i++) {
        const int64_t v = stored ? stored[i] : sl_npy_integer(ids, i);
        if (v < 0 || v >= s->source->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: item %" PRId64 " is vertex %" PRId64 ", expected 0 to %" PRId64,
                            ids->name, i, v, s->source->vertices - 1);
        const int32_t number = sl_selecting_number(s, v);
        if (number >= 0 && number < s->out->hop_cut[1])
            marked[number] = true;
    }
    return SL_OK;
}

static void mark_masked(const struct sl_selecting *s, const struct sl_npy *mask, bool *marked)
{
    const int64_t width = mask->dims == 2 ? mask->shape[1] : 1;
    for (int64_t k = 0; k < s->out->hop_cut[1]; k++)
        marked[k] = sl_npy_get(mask, s->out->row[k] * width) != 0.0;
}

static int take_split(struct sl_selecting *s, int split)
{
    const struct sl_npy *from = &s->source->splits.split[split];
    struct sl_source *out = &s->out->source;
    const int64_t inner = s->out->hop_cut[1];
    struct sl_block *scratch = NULL;
    bool *marked = sl_block_array(&scratch, inner, sizeof *marked);
    int64_t *ids = sl_block_array(&out->blocks, inner, sizeof *ids), count = 0;
    int rc = marked && ids ? SL_OK : SL_ERR_SYSTEM;
    for (int64_t k = 0; !rc && k < inner; k++)
        marked[k] = false;
    if (!rc && s->source->splits.mask[split])
        mark_masked(s, from, marked);
    else if (!rc)
        rc = mark_listed(s, from, marked);
    for (int64_t k = 0; !rc && k < inner; k++)
        if (marked[k])
            ids[count++] = k;
    sl_block_free_all(&scratch);
    return rc ? rc
              : sl_selecting_view(s, from, SL_NPY_INT64, count, 0, ids, &out->splits.split[split]);
}

int sl_selecting_vertices(struct sl_selecting *s)
{
    const struct sl_source *source = s->source;
    int rc = take_numbers(s);
    if (!rc)
        rc = find_features(s);
    if (!rc && source->targets.labels.data && source->classes > 0)
        rc = source->targets.labels.dims == 2 ? take_values(s) : take_classes(s);
    for (int split = SL_SPLIT_TRAIN; !rc && split < SL_SPLITS; split++)
        if (source->splits.split[split].data)
            rc = take_split(s, split);
    return rc;
}
