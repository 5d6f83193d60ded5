/* Write the directory layout of docs/DATASETS.md, all or nothing. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/options.h"
#include "core/progress.h"
#include "data/block.h"
#include "data/formats/npy.h"
#include "data/statistics.h"

struct writer {
    const struct sl_dataset *data;
    const char *dir;          /* the temporary directory */
    struct sl_block *scratch; /* owns path names, and arrays that the dataset lacks */
};

static int write_array(struct writer *w, const char *array, const char *descr, size_t item_bytes,
                       int dims, const int64_t *shape, const void *items)
{
    const char *file = sl_block_print(&w->scratch, "%s/%s.npy", w->dir, array);
    sl_progress_phase(array);
    return file ? sl_npy_write(file, descr, item_bytes, dims, shape, items) : SL_ERR_SYSTEM;
}

static int write_int64(struct writer *w, const char *array, const int64_t *items, int64_t count)
{
    return write_array(w, array, "<i8", sizeof *items, 1, &count, items);
}

static int write_int32(struct writer *w, const char *array, const int32_t *items, int64_t count)
{
    return write_array(w, array, "<i4", sizeof *items, 1, &count, items);
}

/* Write the features of edges, and, apart from them, their relations. */
static int write_relations(struct writer *w, int64_t nnz)
{
    const int64_t all = w->data->edge_features, width = all - 1, shape[] = {nnz, width};
    const float *const edge = w->data->edge;
    float *features = sl_block_array(&w->scratch, nnz, (size_t)width * sizeof *features);
    int32_t *types = sl_block_array(&w->scratch, nnz, sizeof *types);
    if (!features || !types)
        return SL_ERR_SYSTEM;
    for (int64_t e = 0; e < nnz; e++) {
        memcpy(features + e * width, edge + e * all, (size_t)width * sizeof *features);
        types[e] = (int32_t)edge[e * all + width];
    }
    const int rc =
        width > 0 ? write_array(w, "edge_features", "<f4", sizeof(float), 2, shape, features) : 0;
    return rc ? rc : write_int32(w, "edge_types", types, nnz);
}

static int write_adjacency(struct writer *w)
{
    const struct sl_csr *a = &w->data->adjacency;
    const int64_t nnz = a->indptr[a->rows];
    int rc = write_int64(w, "indptr", a->indptr, a->rows + 1);
    if (!rc)
        rc = write_int32(w, "indices", a->indices, nnz);
    if (!rc && a->values)
        rc = write_array(w, "weights", "<f4", sizeof(float), 1, &nnz, a->values);
    if (!rc && w->data->relations > 0)
        return write_relations(w, nnz);
    const int64_t shape[] = {nnz, w->data->edge_features};
    if (!rc && w->data->edge)
        rc = write_array(w, "edge_features", "<f4", sizeof(float), 2, shape, w->data->edge);
    return rc;
}

static int write_sparse_features(struct writer *w)
{
    const struct sl_csr *x = &w->data->features_csr;
    const int64_t nnz = x->indptr[x->rows];
    const float *values = x->values;
    if (!values) { /* values that are all 1 are stored, too */
        float *ones = sl_block_array(&w->scratch, nnz, sizeof *ones);
        if (!ones)
            return SL_ERR_SYSTEM;
        for (int64_t k = 0; k < nnz; k++)
            ones[k] = 1.0f;
        values = ones;
    }
    int rc = write_int64(w, "features_indptr", x->indptr, x->rows + 1);
    if (!rc)
        rc = write_int32(w, "features_indices", x->indices, nnz);
    if (!rc)
        rc = write_array(w, "features_data", "<f4", sizeof(float), 1, &nnz, values);
    return rc;
}

static int write_features(struct writer *w)
{
    const struct sl_dataset *data = w->data;
    const int64_t shape[] = {data->vertices, data->features};
    if (data->feature_form == SL_FEATURES_CSR)
        return write_sparse_features(w);
    if (data->feature_form == SL_FEATURES_DENSE)
        return write_array(w, "features", "<f4", sizeof(float), 2, shape, data->features_dense);
    return SL_OK;
}

static int write_labels(struct writer *w)
{
    const struct sl_dataset *data = w->data;
    const int64_t shape[] = {data->vertices, data->classes};
    if (data->multilabels)
        return write_array(w, "labels", "<f4", sizeof(float), 2, shape, data->multilabels);
    const int32_t *labels = data->labels;
    if (!labels) { /* a dataset without labels gets -1 for each vertex */
        int32_t *none = sl_block_array(&w->scratch, data->vertices, sizeof *none);
        if (!none)
            return SL_ERR_SYSTEM;
        memset(none, -1, (size_t)data->vertices * sizeof *none);
        labels = none;
    }
    return write_int32(w, "labels", labels, data->vertices);
}

static int write_vertex_ids(struct writer *w)
{
    const struct sl_npy *ids = &w->data->vertex_ids;
    char descr[24];
    sl_npy_descr(ids, descr);
    return write_array(w, "vertex_ids", descr, ids->item_bytes, 1, &ids->count, ids->data);
}

/* Write pairs of vertices as int64, in whatever way they are stored. */
static int write_pairs(struct writer *w, const char *split, const char *what,
                       const struct sl_npy *pairs)
{
    const int64_t *items;
    if (!pairs->data)
        return SL_OK;
    const char *array = sl_block_print(&w->scratch, "%s_%s", split, what);
    const int rc = array ? sl_npy_take(pairs, SL_NPY_INT64, 0, pairs->count, &w->scratch, &items)
                         : (int)SL_ERR_SYSTEM;
    return rc ? rc : write_array(w, array, "<i8", sizeof *items, 2, pairs->shape, items);
}

static int write_links(struct writer *w)
{
    const struct sl_source_links *links = &w->data->links;
    int rc = SL_OK;
    for (int s = SL_SPLIT_VAL; !rc && s < SL_SPLITS; s++) {
        const char *split = sl_links_split_name((enum sl_split)s);
        rc = write_pairs(w, split, "links", &links->pairs[s]);
        if (!rc)
            rc = write_pairs(w, split, "negatives", &links->negatives[s]);
    }
    return rc;
}

static json_t *describe_features(const struct sl_dataset *data)
{
    if (data->feature_form == SL_FEATURES_IDENTITY)
        return json_null();
    const bool csr = data->feature_form == SL_FEATURES_CSR;
    json_t *features = json_pack("{s:I, s:s, s:b}", "count", (json_int_t)data->features, "form",
                                 csr ? "csr" : "dense", "bag_of_words", data->columns.bag_of_words);
    if (features && csr)
        json_object_set_new(features, "nnz",
                            json_integer(data->features_csr.indptr[data->features_csr.rows]));
    return features;
}

static json_t *describe(const struct sl_dataset *data)
{
    const json_int_t nnz = data->adjacency.indptr[data->vertices];
    json_t *name = json_string(data->name ? data->name : "");
    if (!name)
        name = json_string("dataset"); /* the name is a file name that is not UTF-8 */
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:b, s:o, s:I, s:b, s:b, s:{s:I, s:I, s:I}}", "name", name, "nodes",
        (json_int_t)data->vertices, "edges", (json_int_t)sl_dataset_edge_count(data), "nnz", nnz,
        "directed", !data->symmetric, "features", describe_features(data), "classes",
        (json_int_t)data->classes, "multilabel", data->multilabels && !data->meaning.regression,
        "regression", data->multilabels && data->meaning.regression, "split", "train",
        (json_int_t)data->train.count, "val", (json_int_t)data->val.count, "test",
        (json_int_t)data->test.count);
}

/* Describe the sizes, and the names of classes and of columns. */
static json_t *describe_all(const struct sl_dataset *data)
{
    const long failures = sl_json_failures();
    json_t *meta = describe(data), *features = json_object_get(meta, "features");
    bool good = meta != NULL;
    if (good && data->meaning.class_names && data->classes > 0)
        good =
            json_object_set_new(meta, "class_names", sl_json_list(data->meaning.class_names)) == 0;
    if (good && data->relations > 0)
        good = json_object_set_new(meta, "relations", json_integer(data->relations)) == 0;
    if (good && data->columns.names && json_is_object(features))
        good = json_object_set_new(features, "names", sl_json_list(data->columns.names)) == 0;
    if (good && sl_json_failures() == failures)
        return meta;
    json_decref(meta);
    return NULL;
}

static int write_meta(struct writer *w)
{
    const char *path = sl_block_print(&w->scratch, "%s/meta.json", w->dir);
    if (!path)
        return SL_ERR_SYSTEM;
    json_t *meta = describe_all(w->data);
    FILE *file = fopen(path, "we");
    bool ok = meta && file && sl_json_put(meta, JSON_INDENT(2), file) && fflush(file) == 0 &&
              fsync(fileno(file)) == 0;
    const int cause = errno;
    if (file)
        ok = fclose(file) == 0 && ok;
    json_decref(meta);
    return ok ? SL_OK : sl_error(SL_ERR_SYSTEM, "%s: cannot write: %s", path, strerror(cause));
}

static int write_all(struct writer *w)
{
    const struct sl_dataset *data = w->data;
    int rc = write_adjacency(w);
    if (!rc)
        rc = write_features(w);
    if (!rc)
        rc = write_labels(w);
    if (!rc)
        rc = write_int64(w, "train_idx", data->train.ids, data->train.count);
    if (!rc)
        rc = write_int64(w, "val_idx", data->val.ids, data->val.count);
    if (!rc)
        rc = write_int64(w, "test_idx", data->test.ids, data->test.count);
    if (!rc)
        rc = write_links(w);
    if (!rc && data->original)
        rc = write_int64(w, "original_ids", data->original, data->vertices);
    if (!rc && data->vertex_ids.data)
        rc = write_vertex_ids(w);
    return rc ? rc : write_meta(w);
}

/* Return SL_ERR_USAGE if writing would replace anything at `dir`, SL_ERR_SYSTEM if `dir` cannot be
 * read. */
static int check_vacant(const char *dir)
{
    DIR *open_dir = opendir(dir);
    if (!open_dir)
        return errno == ENOENT ? SL_OK
                               : sl_error(SL_ERR_SYSTEM, "%s: cannot write a dataset here: %s", dir,
                                          strerror(errno));
    int entries = 0;
    while (readdir(open_dir))
        entries++;
    closedir(open_dir);
    if (entries > 2) /* "." and ".." */
        return sl_error(SL_ERR_USAGE,
                        "%s: exists and is not empty; expected a new or an empty directory", dir);
    return SL_OK;
}

static int write_beside(struct writer *w, const char *dir)
{
    struct sl_new_folder out;
    int rc = sl_folder_create(&out, dir);
    if (rc)
        return rc;
    w->dir = out.temporary;
    rc = write_all(w);
    if (!rc)
        return sl_folder_commit(&out);
    sl_folder_discard(&out);
    return rc;
}

int sl_dataset_write(const struct sl_dataset *data, const char *dir)
{
    struct writer w = {.data = data};
    char *target = sl_block_print(&w.scratch, "%s", dir);
    if (!target)
        return SL_ERR_SYSTEM;
    for (size_t end = strlen(target); end > 1 && target[end - 1] == '/'; end--)
        target[end - 1] = '\0';
    int rc = check_vacant(target);
    if (!rc)
        rc = write_beside(&w, target);
    sl_block_free_all(&w.scratch);
    return rc;
}
