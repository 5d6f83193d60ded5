/* What every dataset must satisfy, whatever it was read from. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "data/csr.h"
#include "data/formats.h"

/* More classes than this, and more than vertices, is a damaged label, not a class. */
enum { MANY_CLASSES = 1 << 16 };

struct array_name {
    char text[PATH_MAX + 32];
};

/* How a message names an array: DIR/labels.npy, or FILE: labels. */
static struct array_name name_array(const struct sl_dataset *data, const char *array)
{
    struct array_name name;
    struct stat info;
    const bool directory = stat(data->path, &info) == 0 && S_ISDIR(info.st_mode);
    snprintf(name.text, sizeof name.text, directory ? "%s/%s.npy" : "%s: %s", data->path, array);
    return name;
}

static int check_size(const struct sl_dataset *data)
{
    if (data->vertices < 1)
        return sl_error(SL_ERR_DATA, "%s: has no vertices", data->path);
    if (data->vertices > INT32_MAX || data->features > INT32_MAX)
        return sl_error(SL_ERR_DATA,
                        "%s: has %" PRId64 " vertices and %" PRId64
                        " features, expected fewer than 2^31",
                        data->path, data->vertices, data->features);
    if (data->adjacency.rows != data->vertices || data->adjacency.cols != data->vertices)
        return sl_error(
            SL_ERR_DATA,
            "%s: adjacency is %" PRId64 " x %" PRId64 ", expected %" PRId64 " x %" PRId64,
            data->path, data->adjacency.rows, data->adjacency.cols, data->vertices, data->vertices);
    return SL_OK;
}

static bool all_one(const float *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (values[k] != 1.0f)
            return false;
    return true;
}

static int check_adjacency(struct sl_dataset *data)
{
    struct sl_csr *a = &data->adjacency;
    const int rc = a->values ? sl_csr_check_values(a, name_array(data, "weights").text) : SL_OK;
    if (rc)
        return rc;
    if (a->values && all_one(a->values, a->indptr[a->rows]))
        a->values = NULL;
    return SL_OK;
}

/* A reader has set `symmetric` where the file promises it; a promise must hold. */
static int check_symmetry(struct sl_dataset *data)
{
    const bool promised = data->symmetric;
    int32_t row, col;
    const int rc = sl_csr_is_symmetric(&data->adjacency, &data->symmetric, &row, &col);
    if (rc || data->symmetric || !promised)
        return rc;
    return sl_error(SL_ERR_DATA,
                    "%s: edge %" PRId32 " -> %" PRId32 " (counted from 0) has no reverse edge of "
                    "equal weight, but the graph is said to be undirected",
                    data->path, row, col);
}

static int check_features(struct sl_dataset *data)
{
    if (data->feature_form == SL_FEATURES_IDENTITY) {
        data->features = data->vertices;
        return SL_OK;
    }
    if (data->features < 1)
        return sl_error(SL_ERR_DATA, "%s: features have no columns", data->path);
    if (data->feature_form == SL_FEATURES_CSR) {
        if (data->features_csr.rows != data->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: features have %" PRId64 " rows, expected %" PRId64 " (vertices)",
                            data->path, data->features_csr.rows, data->vertices);
        return sl_csr_check_values(&data->features_csr, name_array(data, "features_data").text);
    }
    for (int64_t v = 0; v < data->vertices; v++)
        for (int64_t j = 0; j < data->features; j++) {
            const float x = data->features_dense[v * data->features + j];
            if (!isfinite(x))
                return sl_error(SL_ERR_DATA,
                                "%s: row %" PRId64 ", column %" PRId64
                                " is %f, expected a finite number",
                                name_array(data, "features").text, v, j, (double)x);
        }
    return SL_OK;
}

static int check_classes(struct sl_dataset *data)
{
    int64_t max = -1;
    for (int64_t v = 0; v < data->vertices; v++) {
        const int32_t label = data->labels[v];
        if (label < -1 || (data->classes > 0 && label >= data->classes))
            return sl_error(SL_ERR_DATA,
                            "%s: label %" PRId32 " of vertex %" PRId64
                            " is no class; expected -1 (none) or 0 to %" PRId64,
                            name_array(data, "labels").text, label, v,
                            data->classes > 0 ? data->classes - 1 : INT32_MAX);
        max = label > max ? label : max;
    }
    if (data->classes == 0)
        data->classes = max + 1;
    if (data->classes > MANY_CLASSES && data->classes > data->vertices)
        return sl_error(SL_ERR_DATA,
                        "%s: %" PRId64 " classes, expected at most as many as the %" PRId64
                        " vertices",
                        name_array(data, "labels").text, data->classes, data->vertices);
    if (data->classes == 0)
        data->labels = NULL; /* all -1: the layout's way to say that there are none */
    return SL_OK;
}

static int check_multilabels(const struct sl_dataset *data)
{
    if (data->classes < 1 || data->classes > INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns, expected at least one class",
                        name_array(data, "labels").text, data->classes);
    for (int64_t k = 0; k < data->vertices * data->classes; k++)
        if (data->multilabels[k] != 0.0f && data->multilabels[k] != 1.0f)
            return sl_error(SL_ERR_DATA,
                            "%s: row %" PRId64 ", column %" PRId64 " is %g, expected 0 or 1",
                            name_array(data, "labels").text, k / data->classes, k % data->classes,
                            (double)data->multilabels[k]);
    return SL_OK;
}

static int check_labels(struct sl_dataset *data)
{
    if (data->labels)
        return check_classes(data);
    if (data->multilabels)
        return check_multilabels(data);
    data->classes = 0;
    return SL_OK;
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int sort_split(struct sl_dataset *data, struct sl_index_set *split)
{
    bool ascending = true;
    for (int64_t k = 1; k < split->count && ascending; k++)
        ascending = split->ids[k - 1] <= split->ids[k];
    if (ascending)
        return SL_OK;
    int64_t *ids = sl_block_array(&data->blocks, split->count, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    memcpy(ids, split->ids, (size_t)split->count * sizeof *ids);
    qsort(ids, (size_t)split->count, sizeof *ids, compare_ids);
    split->ids = ids;
    return SL_OK;
}

static int check_split(struct sl_dataset *data, struct sl_index_set *split, const char *array)
{
    for (int64_t k = 0; k < split->count; k++)
        if (split->ids[k] < 0 || split->ids[k] >= data->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: item %" PRId64 " is vertex %" PRId64 ", expected 0 to %" PRId64,
                            name_array(data, array).text, k, split->ids[k], data->vertices - 1);
    const int rc = sort_split(data, split);
    if (rc)
        return rc;
    for (int64_t k = 1; k < split->count; k++)
        if (split->ids[k - 1] == split->ids[k])
            return sl_error(SL_ERR_DATA, "%s: vertex %" PRId64 " is there twice",
                            name_array(data, array).text, split->ids[k]);
    return SL_OK;
}

/* Both are ascending. */
static int check_disjoint(const struct sl_dataset *data, const struct sl_index_set *a,
                          const char *a_name, const struct sl_index_set *b, const char *b_name)
{
    for (int64_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (a->ids[i] == b->ids[j])
            return sl_error(SL_ERR_DATA,
                            "%s: vertex %" PRId64 " is in both %s and %s, expected disjoint splits",
                            data->path, a->ids[i], a_name, b_name);
        if (a->ids[i] < b->ids[j])
            i++;
        else
            j++;
    }
    return SL_OK;
}

static int check_splits(struct sl_dataset *data)
{
    struct {
        struct sl_index_set *set;
        const char *name;
    } splits[] = {{&data->train, "train_idx"}, {&data->val, "val_idx"}, {&data->test, "test_idx"}};
    int rc = SL_OK;
    for (int s = 0; s < 3 && !rc; s++)
        rc = check_split(data, splits[s].set, splits[s].name);
    for (int s = 0; s < 3 && !rc; s++) {
        const int t = (s + 1) % 3;
        rc = check_disjoint(data, splits[s].set, splits[s].name, splits[t].set, splits[t].name);
    }
    return rc;
}

static int check_original(struct sl_dataset *data)
{
    if (!data->original)
        return SL_OK;
    struct sl_block *scratch = NULL;
    int64_t *row = sl_block_array(&scratch, data->vertices, sizeof *row);
    int rc = row ? SL_OK : SL_ERR_SYSTEM;
    for (int64_t v = 0; v < data->vertices && !rc; v++)
        row[v] = -1;
    for (int64_t r = 0; r < data->vertices && !rc; r++) {
        const int64_t v = data->original[r];
        const bool is_vertex = v >= 0 && v < data->vertices;
        if (is_vertex && row[v] < 0)
            row[v] = r;
        else if (is_vertex)
            rc = sl_error(SL_ERR_DATA,
                          "%s: items %" PRId64 " and %" PRId64 " are both vertex %" PRId64
                          ", expected every vertex once",
                          name_array(data, "original_ids").text, row[v], r, v);
        else
            rc = sl_error(SL_ERR_DATA,
                          "%s: item %" PRId64 " is vertex %" PRId64 ", expected 0 to %" PRId64,
                          name_array(data, "original_ids").text, r, v, data->vertices - 1);
    }
    sl_block_free_all(&scratch);
    return rc;
}

int sl_dataset_validate(struct sl_dataset *data)
{
    int rc = check_size(data);
    if (!rc)
        rc = check_adjacency(data);
    if (!rc)
        rc = check_symmetry(data);
    if (!rc)
        rc = check_features(data);
    if (!rc)
        rc = check_labels(data);
    if (!rc)
        rc = check_splits(data);
    if (!rc)
        rc = check_original(data);
    return rc;
}
