/* Open the directory layout of docs/DATASETS.md: map its files without reading their numbers. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/log.h"
#include "data/arrays.h"
#include "data/edge_features.h"
#include "data/formats/formats.h"
#include "data/formats/relation_files.h"
#include "data/relations.h"
#include "data/source.h"

/* The members of meta.json; -1: missing. */
struct meta {
    int64_t nodes, nnz, classes, features, relations;
    int directed, bag_of_words; /* 1 yes, 0 no, -1 missing */
    int multilabel, regression;
};

struct directory {
    const char *path;
    const struct sl_read_options *options;
    struct meta meta;
    struct sl_source *out;
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
        rc = get_count(path, root, "relations", &meta->relations);
    if (!rc)
        rc = get_flag(path, root, "directed", &meta->directed);
    if (!rc)
        rc = get_flag(path, root, "multilabel", &meta->multilabel);
    if (!rc)
        rc = get_flag(path, root, "regression", &meta->regression);
    if (!rc && meta->multilabel == 1 && meta->regression == 1)
        rc = sl_error(SL_ERR_DATA,
                      "%s/meta.json: \"multilabel\" and \"regression\" are both true, expected "
                      "one of them",
                      path);
    if (!rc)
        rc = get_count(path, features, "count", &meta->features);
    if (!rc)
        rc = get_flag(path, features, "bag_of_words", &meta->bag_of_words);
    return rc;
}

/* Read a list of names for `count` things, called `what` in errors; `count` -1: take any number of
 * names. Leave *names as it is where the member is missing. */
static int get_names(struct directory *dir, const json_t *root, const char *key, const char *what,
                     int64_t count, const char *const **names)
{
    const json_t *list = json_object_get(root, key);
    if (!list || json_is_null(list))
        return SL_OK;
    const size_t length = json_array_size(list); /* 0 where it is no list */
    const char **copy = sl_block_array(&dir->out->blocks, (int64_t)length + 1, sizeof *copy);
    for (size_t c = 0; copy && c < length; c++) {
        const char *name = json_string_value(json_array_get(list, c));
        if (!name)
            return sl_error(SL_ERR_DATA,
                            "%s/meta.json: \"%s\" has an item that is no string, expected the "
                            "name of %s %zu",
                            dir->path, key, what, c);
        copy[c] = sl_block_print(&dir->out->blocks, "%s", name);
        if (!copy[c])
            return SL_ERR_SYSTEM;
    }
    if (!json_is_array(list) || (count >= 0 && (int64_t)length != count))
        return sl_error(SL_ERR_DATA,
                        "%s/meta.json: \"%s\" has %zu items, expected a list of a name for each "
                        "%s",
                        dir->path, key, length, what);
    if (copy)
        copy[length] = NULL;
    *names = copy;
    return copy ? SL_OK : SL_ERR_SYSTEM;
}

/* Read the names of classes and of columns. */
static int get_all_names(struct directory *dir, const json_t *root)
{
    struct meta *meta = &dir->meta;
    int rc = get_names(dir, root, "class_names", "class", meta->classes > 0 ? meta->classes : -1,
                       &dir->out->targets.class_names);
    if (!rc && dir->out->targets.class_names &&
        meta->classes < 0) /* -1: unknown; 0 would mean no labels */
        for (meta->classes = 0; dir->out->targets.class_names[meta->classes];)
            meta->classes++;
    return rc ? rc
              : get_names(dir, json_object_get(root, "features"), "names", "column", meta->features,
                          &dir->out->columns.names);
}

/* Read a JSON file past its byte order mark. */
static json_t *load_json(const char *file, json_error_t *error)
{
    char head[3] = "";
    const char *why;
    FILE *stream = sl_file_stream(file, &why);
    if (!stream)
        return sl_json_read_file(file, error); /* fails, and says why */
    if (fread(head, 1, 3, stream) != 3 || memcmp(head, "\xEF\xBB\xBF", 3) != 0)
        rewind(stream);
    json_t *root = sl_json_read(stream, 0, error);
    fclose(stream);
    return root;
}

static int read_meta(struct directory *dir)
{
    char *file = sl_block_print(&dir->out->blocks, "%s/meta.json", dir->path);
    if (!file)
        return SL_ERR_SYSTEM;
    if (access(file, R_OK) != 0)
        return sl_error(SL_ERR_DATA, "%s: cannot open: %s; expected a dataset directory", file,
                        strerror(errno));
    struct stat status;
    if (stat(file, &status) == 0 && !S_ISREG(status.st_mode))
        return sl_error(SL_ERR_DATA, "%s: is no regular file (expected a JSON object)", file);
    json_error_t error;
    json_t *root = load_json(file, &error);
    if (!root && error.line < 1)
        return sl_error(SL_ERR_SYSTEM, "%s: cannot be read: %s", file,
                        error.text[0] ? error.text : "no memory");
    if (!root)
        return sl_error(SL_ERR_DATA, "%s: line %d, column %d is not JSON: %s", file, error.line,
                        error.column, error.text);
    int rc = SL_OK;
    if (!json_is_object(root))
        rc = sl_error(SL_ERR_DATA, "%s: expected a JSON object", file);
    if (!rc)
        rc = get_meta(dir->path, root, &dir->meta);
    if (!rc)
        rc = get_all_names(dir, root);
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

/* Return whether an optional array exists. A dangling link counts: mapping it reports the error. */
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
                    "%s/%s: gives %" PRId64 " as \"%s\", expected %" PRId64 " as in meta.json",
                    dir->path, array, found, key, said);
}

/* Map the arrays of a CSR matrix; `values` NULL: it has none. */
static int open_csr(const struct directory *dir, const char *indptr, const char *indices,
                    const char *values, struct sl_stored_csr *out)
{
    int rc = map(dir, indptr, &out->indptr);
    if (!rc)
        rc = map(dir, indices, &out->indices);
    if (!rc && values)
        rc = map(dir, values, &out->values);
    return rc ? rc : sl_arrays_check_csr(&out->indptr, &out->indices, values ? &out->values : NULL);
}

/* Tell how many vertices there are: by the rows of an array with a row for each vertex, else by
 * meta.json; count -1: by their edges. Vertices are called by numbers in each case. */
static int number_vertices(const struct directory *dir, struct sl_vertex_map *vertices,
                           int64_t *count)
{
    static const char *const arrays[] = {"features_indptr", "labels",     "features", "vertex_ids",
                                         "original_ids",    "train_mask", "val_mask", "test_mask",
                                         "train_idx",       "val_idx",    "test_idx"};
    enum { ARRAYS = sizeof arrays / sizeof *arrays, LISTS = 3 };
    struct sl_block **const blocks = &dir->out->blocks;
    *count = -1;
    for (int k = 0; k < ARRAYS && *count < 0; k++) {
        struct sl_npy npy;
        if (!has(dir, arrays[k]))
            continue;
        const int rc = map(dir, arrays[k], &npy);
        if (rc)
            return rc;
        if (k >= ARRAYS - LISTS && npy.kind != 'b')
            continue;
        *count = npy.count > 0 && npy.dims > 0 ? npy.shape[0] - (k == 0) : 0;
        vertices->path =
            sl_block_print(blocks, "0 to %" PRId64 ", the rows of %s", *count - 1, npy.name);
    }
    vertices->no_rows = *count < 0;
    if (*count < 0 && dir->meta.nodes >= 0) {
        *count = dir->meta.nodes;
        vertices->path = sl_block_print(blocks, "0 to %" PRId64 ", the \"nodes\" of %s/meta.json",
                                        *count - 1, dir->path);
    } else if (*count < 0)
        vertices->path = "the numbers of vertices, from 0 on";
    vertices->ids.count = *count < 0 ? INT32_MAX : *count;
    return vertices->path ? SL_OK : SL_ERR_SYSTEM;
}

/* Read a file of edges for each relation. */
static int open_relations(const struct directory *dir)
{
    static const char *const others[] = {"edge_types", "indptr", "indices", "weights",
                                         "edge_features"};
    struct sl_source *out = dir->out;
    struct sl_vertex_map vertices = {.path = NULL};
    struct sl_dataset graph = {.path = out->path};
    for (int k = 0; k < 5; k++)
        if (has(dir, others[k]))
            return sl_error(SL_ERR_DATA,
                            "%s/%s.npy: comes beside the folder relations, expected one of them",
                            dir->path, others[k]);
    int rc = number_vertices(dir, &vertices, &graph.vertices);
    if (!rc)
        rc = sl_relation_files_read(dir->path, dir->options, &vertices, &graph);
    sl_block_move(&out->blocks, &graph.blocks);
    out->of_edges = true;
    if (!rc)
        rc = sl_source_take_graph(out, &graph);
    out->undirected = dir->meta.directed == 0;
    if (!rc)
        rc = check_count(dir, "nodes", dir->meta.nodes, out->vertices, "relations");
    if (!rc)
        rc = check_count(dir, "nnz", dir->meta.nnz, out->adjacency.indices.count, "relations");
    return rc ? rc
              : check_count(dir, "relations", dir->meta.relations, graph.relations, "relations");
}

static int open_adjacency(const struct directory *dir)
{
    struct sl_source *out = dir->out;
    if (sl_relation_files_exist(dir->path))
        return open_relations(dir);
    int rc =
        open_csr(dir, "indptr", "indices", has(dir, "weights") ? "weights" : NULL, &out->adjacency);
    if (rc)
        return rc;
    out->vertices = out->adjacency.cols = out->adjacency.indptr.count - 1;
    out->undirected = dir->meta.directed == 0;
    rc = check_count(dir, "nodes", dir->meta.nodes, out->vertices, "indptr.npy");
    if (!rc)
        rc = check_count(dir, "nnz", dir->meta.nnz, out->adjacency.indices.count, "indices.npy");
    if (!rc && has(dir, "edge_features"))
        rc = map(dir, "edge_features", &out->edge_features);
    if (!rc && out->edge_features.data)
        rc = sl_edge_features_check(&out->edge_features, out->adjacency.indices.count);
    if (rc || !has(dir, "edge_types"))
        return rc;
    struct sl_npy types;
    rc = map(dir, "edge_types", &types);
    return rc ? rc : sl_relations_attach(out, &types, dir->meta.relations);
}

static int open_sparse_features(const struct directory *dir)
{
    struct sl_source *out = dir->out;
    struct sl_stored_csr *csr = &out->features_csr;
    const int rc = open_csr(dir, "features_indptr", "features_indices", "features_data", csr);
    if (!rc && csr->indptr.count - 1 != out->vertices)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected %" PRId64 " (vertices)",
                        csr->indptr.name, csr->indptr.count - 1, out->vertices);
    out->feature_form = SL_FEATURES_CSR;
    out->features = csr->cols = dir->meta.features; /* -1: find it from the columns */
    return rc;
}

static int open_dense_features(const struct directory *dir)
{
    struct sl_npy *features = &dir->out->features_dense;
    int rc = map(dir, "features", features);
    if (!rc)
        rc = sl_arrays_check_rows(features, 2, dir->out->vertices);
    dir->out->feature_form = SL_FEATURES_DENSE;
    dir->out->features = features->shape[1];
    return rc ? rc
              : check_count(dir, "features", dir->meta.features, dir->out->features,
                            "features.npy");
}

static int open_features(const struct directory *dir)
{
    int rc = SL_OK;
    if (has(dir, "features_indptr"))
        rc = open_sparse_features(dir);
    else if (has(dir, "features"))
        rc = open_dense_features(dir);
    dir->out->columns.said = dir->meta.bag_of_words >= 0;
    dir->out->columns.bag_of_words = dir->meta.bag_of_words < 0
                                         ? dir->out->feature_form == SL_FEATURES_CSR
                                         : dir->meta.bag_of_words == 1;
    return rc;
}

/* Return the kind of labels (n) or (n, c) that meta.json tells. With several classes, a list holds
 * no numbers to predict: a fraction in it is damage. */
static enum sl_label_kind said_kind(const struct meta *meta, const struct sl_npy *labels)
{
    const bool matrix = labels->dims == 2, classes = !matrix && meta->classes > 1;
    if (meta->multilabel == 1)
        return SL_LABELS_SEVERAL;
    if (meta->regression == 1)
        return SL_LABELS_NUMBERS;
    return meta->regression != 0 && !classes ? SL_LABELS_UNKNOWN
           : matrix                          ? SL_LABELS_SEVERAL
                                             : SL_LABELS_CLASS;
}

static int open_labels(const struct directory *dir)
{
    struct sl_source *out = dir->out;
    out->classes = dir->meta.classes < 0 ? 0 : dir->meta.classes;
    if (!has(dir, "labels"))
        return SL_OK;
    int rc = map(dir, "labels", &out->targets.labels);
    if (!rc)
        rc = sl_arrays_check_labels(&out->targets.labels, out->vertices, &out->classes);
    out->targets.label_kind = said_kind(&dir->meta, &out->targets.labels);
    return rc;
}

/* Check the shape of a mask: (n), or (n, several splits) as PyTorch Geometric stores it. */
static int check_mask(const struct sl_npy *mask, int64_t vertices)
{
    const bool fits = (mask->dims == 1 || (mask->dims == 2 && mask->shape[1] > 0)) &&
                      mask->shape[0] == vertices && !sl_npy_is_text(mask);
    if (!fits)
        return sl_error(SL_ERR_DATA,
                        "%s: is no mask, expected an item for each of the %" PRId64 " vertices",
                        mask->name, vertices);
    if (mask->dims == 2 && mask->shape[1] > 1)
        sl_note("%s: has %" PRId64 " splits, of which the first is used", mask->name,
                mask->shape[1]);
    return SL_OK;
}

/* Map a split. SPLIT_idx.npy is a list of vertices or a mask of booleans, SPLIT_mask.npy a mask of
 * any type. */
static int open_split(const struct directory *dir, const char *name, enum sl_split split)
{
    struct sl_npy *out = &dir->out->splits.split[split];
    char array[16];
    snprintf(array, sizeof array, "%s_idx", name);
    const bool listed = has(dir, array);
    if (!listed)
        snprintf(array, sizeof array, "%s_mask", name);
    if (!has(dir, array))
        return SL_OK;
    const int rc = map(dir, array, out);
    if (rc)
        return rc;
    dir->out->splits.mask[split] = !listed || out->kind == 'b';
    return dir->out->splits.mask[split] ? check_mask(out, dir->out->vertices)
                                        : sl_npy_expect(out, 1);
}

static int open_original(const struct directory *dir)
{
    if (!has(dir, "original_ids"))
        return SL_OK;
    const int rc = map(dir, "original_ids", &dir->out->order.original);
    return rc ? rc : sl_arrays_check_rows(&dir->out->order.original, 1, dir->out->vertices);
}

static int open_vertex_ids(const struct directory *dir)
{
    struct sl_npy *ids = &dir->out->vertex_ids;
    if (!has(dir, "vertex_ids"))
        return SL_OK;
    int rc = map(dir, "vertex_ids", ids);
    if (!rc)
        rc = sl_arrays_check_rows(ids, 1, dir->out->vertices);
    if (!rc && ids->kind != 'i' && ids->kind != 'u' && !sl_npy_is_text(ids))
        rc = sl_error(SL_ERR_DATA, "%s: expected integers or text", ids->name);
    return rc;
}

/* Map the links of a split, or its negatives: SPLIT_links.npy, SPLIT_negatives.npy. */
static int open_pairs(const struct directory *dir, const char *split, const char *what,
                      struct sl_npy *out)
{
    char array[24];
    snprintf(array, sizeof array, "%s_%s", split, what);
    return has(dir, array) ? map(dir, array, out) : SL_OK;
}

static int open_links(const struct directory *dir)
{
    struct sl_source_links *links = &dir->out->links;
    int rc = SL_OK;
    for (int s = SL_SPLIT_VAL; !rc && s < SL_SPLITS; s++) {
        const char *split = sl_links_split_name((enum sl_split)s);
        rc = open_pairs(dir, split, "links", &links->pairs[s]);
        if (!rc)
            rc = open_pairs(dir, split, "negatives", &links->negatives[s]);
    }
    return rc ? rc : sl_links_check(links, dir->path, dir->out->vertices);
}

int sl_open_directory(const char *path, const struct sl_read_options *options,
                      struct sl_source *out)
{
    struct directory dir = {.path = path, .options = options, .out = out};
    int rc = read_meta(&dir);
    if (!rc)
        rc = open_adjacency(&dir);
    if (!rc)
        rc = open_features(&dir);
    if (!rc)
        rc = open_labels(&dir);
    if (!rc)
        rc = open_split(&dir, "train", SL_SPLIT_TRAIN);
    if (!rc)
        rc = open_split(&dir, "val", SL_SPLIT_VAL);
    if (!rc)
        rc = open_split(&dir, "test", SL_SPLIT_TEST);
    if (!rc)
        rc = open_links(&dir);
    if (!rc)
        rc = open_original(&dir);
    if (!rc)
        rc = open_vertex_ids(&dir);
    return rc;
}
