/* Reading the directory layout of docs/DATASETS.md. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "core/error.h"
#include "data/arrays.h"
#include "data/formats.h"

/* What meta.json says; -1: nothing. */
struct meta {
    int64_t nodes, nnz, classes, features;
    int directed, bag_of_words; /* yes, no or nothing */
};

struct directory {
    const char *path;
    struct meta meta;
    struct sl_dataset *out;
};

static int get_count(const char *path, const json_t *object, const char *key, int64_t *count)
{
    const json_t *value = json_object_get(object, key);
    *count = -1;
    if (!value || json_is_null(value))
        return SL_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return sl_error(SL_ERR_DATA, "%s/meta.json: \"%s\" is no count, expected an integer", path,
                        key);
    *count = json_integer_value(value);
    return SL_OK;
}

static int get_flag(const char *path, const json_t *object, const char *key, int *flag)
{
    const json_t *value = json_object_get(object, key);
    *flag = -1;
    if (!value || json_is_null(value))
        return SL_OK;
    if (!json_is_boolean(value))
        return sl_error(SL_ERR_DATA, "%s/meta.json: \"%s\" is no flag, expected true or false",
                        path, key);
    *flag = json_is_true(value);
    return SL_OK;
}

static int get_meta(const char *path, const json_t *root, struct meta *meta)
{
    const json_t *features = json_object_get(root, "features");
    int rc = get_count(path, root, "nodes", &meta->nodes);
    if (!rc)
        rc = get_count(path, root, "nnz", &meta->nnz);
    if (!rc)
        rc = get_count(path, root, "classes", &meta->classes);
    if (!rc)
        rc = get_flag(path, root, "directed", &meta->directed);
    if (!rc)
        rc = get_count(path, features, "count", &meta->features);
    if (!rc)
        rc = get_flag(path, features, "bag_of_words", &meta->bag_of_words);
    return rc;
}

static int read_meta(struct directory *dir)
{
    char *file = sl_block_print(&dir->out->blocks, "%s/meta.json", dir->path);
    if (!file)
        return SL_ERR_SYSTEM;
    if (access(file, R_OK) != 0)
        return sl_error(SL_ERR_DATA, "%s: cannot open: %s; expected a dataset directory", file,
                        strerror(errno));
    json_error_t error;
    json_t *root = json_load_file(file, 0, &error);
    if (!root)
        return sl_error(SL_ERR_DATA, "%s: line %d, column %d is not JSON: %s", file, error.line,
                        error.column, error.text);
    int rc = SL_OK;
    if (!json_is_object(root))
        rc = sl_error(SL_ERR_DATA, "%s: expected a JSON object", file);
    if (!rc)
        rc = get_meta(dir->path, root, &dir->meta);
    const char *name = json_string_value(json_object_get(root, "name"));
    if (!rc && name) {
        free(dir->out->name);
        dir->out->name = strdup(name);
        if (!dir->out->name)
            rc = sl_error(SL_ERR_SYSTEM, "%s: out of memory", file);
    }
    json_decref(root);
    return rc;
}

static int map(const struct directory *dir, const char *array, struct sl_npy *npy)
{
    char *file = sl_block_print(&dir->out->blocks, "%s/%s.npy", dir->path, array);
    return file ? sl_npy_map(file, &dir->out->blocks, npy) : SL_ERR_SYSTEM;
}

/* Whether an optional array is there. A dangling link counts: mapping it tells what is wrong. */
static bool has(const struct directory *dir, const char *array)
{
    char *file = NULL;
    if (asprintf(&file, "%s/%s.npy", dir->path, array) < 0)
        return false;
    const bool found = faccessat(AT_FDCWD, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    free(file);
    return found;
}

static int check_count(const struct directory *dir, const char *key, int64_t said, int64_t found,
                       const char *array)
{
    if (said < 0 || said == found)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s/%s.npy: gives %" PRId64 " as \"%s\", expected %" PRId64 " as in meta.json",
                    dir->path, array, found, key, said);
}

static int read_adjacency(const struct directory *dir)
{
    struct sl_dataset *out = dir->out;
    struct sl_npy indptr = {0}, indices = {0}, weights;
    const bool weighted = has(dir, "weights");
    int rc = map(dir, "indptr", &indptr);
    if (!rc)
        rc = map(dir, "indices", &indices);
    if (!rc && weighted)
        rc = map(dir, "weights", &weights);
    if (!rc)
        rc = check_count(dir, "nodes", dir->meta.nodes, indptr.count - 1, "indptr");
    if (!rc)
        rc = check_count(dir, "nnz", dir->meta.nnz, indices.count, "indices");
    if (!rc)
        rc = sl_arrays_csr(&indptr, &indices, weighted ? &weights : NULL, indptr.count - 1,
                           &out->blocks, &out->adjacency, &out->merged_edges);
    if (!rc) {
        out->vertices = out->adjacency.rows;
        out->symmetric = dir->meta.directed == 0; /* a claim that validation checks */
    }
    return rc;
}

static int read_sparse_features(const struct directory *dir)
{
    struct sl_dataset *out = dir->out;
    struct sl_npy indptr, indices, data;
    int64_t merged = 0;
    int rc = map(dir, "features_indptr", &indptr);
    if (!rc)
        rc = map(dir, "features_indices", &indices);
    if (!rc)
        rc = map(dir, "features_data", &data);
    if (!rc)
        rc = sl_arrays_csr(&indptr, &indices, &data, dir->meta.features, &out->blocks,
                           &out->features_csr, &merged);
    out->feature_form = SL_FEATURES_CSR;
    out->features = out->features_csr.cols;
    return rc;
}

static int read_features(const struct directory *dir)
{
    int rc = SL_OK;
    if (has(dir, "features_indptr")) {
        rc = read_sparse_features(dir);
    } else if (has(dir, "features")) {
        struct sl_npy features;
        rc = map(dir, "features", &features);
        if (!rc)
            rc = sl_arrays_features(&features, dir->out);
        if (!rc)
            rc = check_count(dir, "features", dir->meta.features, dir->out->features, "features");
    }
    dir->out->bag_of_words = dir->meta.bag_of_words < 0 ? dir->out->feature_form == SL_FEATURES_CSR
                                                        : dir->meta.bag_of_words == 1;
    return rc;
}

static int read_labels(const struct directory *dir)
{
    dir->out->classes = dir->meta.classes < 0 ? 0 : dir->meta.classes;
    if (!has(dir, "labels"))
        return SL_OK;
    struct sl_npy labels;
    const int rc = map(dir, "labels", &labels);
    return rc ? rc : sl_arrays_labels(&labels, dir->out);
}

static int read_split(const struct directory *dir, const char *array, struct sl_index_set *split)
{
    if (!has(dir, array))
        return SL_OK;
    struct sl_npy ids;
    const int rc = map(dir, array, &ids);
    return rc ? rc : sl_arrays_split(&ids, dir->out, split);
}

/* Whether it is a permutation, validation checks. */
static int read_original(const struct directory *dir)
{
    if (!has(dir, "original_ids"))
        return SL_OK;
    struct sl_npy ids;
    int rc = map(dir, "original_ids", &ids);
    if (!rc)
        rc = sl_npy_expect(&ids, 1);
    if (!rc && ids.count != dir->out->vertices)
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " items, expected %" PRId64 " (vertices)",
                      ids.name, ids.count, dir->out->vertices);
    return rc ? rc : sl_npy_int64(&ids, &dir->out->blocks, &dir->out->original);
}

int sl_read_directory(const char *path, struct sl_dataset *out)
{
    struct directory dir = {.path = path, .out = out};
    int rc = read_meta(&dir);
    if (!rc)
        rc = read_adjacency(&dir);
    if (!rc)
        rc = read_features(&dir);
    if (!rc)
        rc = read_labels(&dir);
    if (!rc)
        rc = read_split(&dir, "train_idx", &out->train);
    if (!rc)
        rc = read_split(&dir, "val_idx", &out->val);
    if (!rc)
        rc = read_split(&dir, "test_idx", &out->test);
    if (!rc)
        rc = read_original(&dir);
    return rc;
}
