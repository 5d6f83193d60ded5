#include "data/source.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/nearest.h"
#include "core/progress.h"
#include "data/arrays.h"
#include "data/block.h"
#include "data/feature_form.h"
#include "data/formats/formats.h"

/* A label above this number and above the number of vertices is damaged. */
enum { MANY_CLASSES = 1 << 16 };

/* ---- Sizes that only the arrays tell ---- */

/* Return the largest item, or -1; every rank looks at an equal share. Collective. */
static int64_t find_largest(struct sl_runtime *rt, const struct sl_npy *npy)
{
    int64_t max = -1;
    const int64_t end = npy->count * (rt->rank + 1) / rt->ranks;
    for (int64_t k = npy->count * rt->rank / rt->ranks; k < end; k++) {
        const int64_t item = sl_npy_integer(npy, k);
        max = item > max ? item : max;
    }
    return -sl_runtime_least(rt, -max);
}

static int settle_names(struct sl_runtime *rt, struct sl_source *source)
{
    const int64_t said = source->classes;
    const int rc = sl_labels_find_names(rt, &source->targets.labels, &source->blocks,
                                        &source->targets.class_names, &source->classes);
    source->targets.label_classes =
        (struct sl_label_classes){.name = source->targets.class_names, .count = source->classes};
    if (!rc && said > 0 && said != source->classes)
        return sl_error(SL_ERR_DATA, "%s: has the names of %" PRId64 " classes, expected %" PRId64,
                        source->targets.labels.name, source->classes, said);
    return rc;
}

static int settle_classes(struct sl_runtime *rt, struct sl_source *source)
{
    struct sl_npy *labels = &source->targets.labels;
    if (labels->data && source->targets.label_kind <= SL_LABELS_CLASS) {
        const int rc = sl_labels_mend(rt, labels, source->classes, &source->blocks);
        if (rc)
            return rc;
    }
    if (labels->data) {
        const int rc = sl_labels_settle(rt, labels, &source->targets.label_kind,
                                        &source->targets.whole_numbers, &source->blocks);
        if (rc)
            return rc;
    }
    const bool several = labels->data && labels->dims == 2;
    if (!labels->data)
        source->classes = 0;
    else if (several)
        source->classes = labels->shape[1];
    else if (sl_npy_is_text(labels)) {
        const int rc = settle_names(rt, source);
        if (rc)
            return rc;
    } else if (source->classes == 0)
        source->classes = find_largest(rt, labels) + 1;
    const int64_t names = sl_labels_count_names(source->targets.class_names);
    if (names > 0 && source->classes > 0 && names != source->classes)
        return sl_error(SL_ERR_DATA,
                        "%s: %" PRId64 " classes, expected the %" PRId64 " that have names",
                        labels->name, source->classes, names);
    if (several && (source->classes < 1 || source->classes > INT32_MAX))
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns, expected at least one class",
                        labels->name, source->classes);
    if (!several && source->classes > MANY_CLASSES && source->classes > source->vertices)
        return sl_error(SL_ERR_DATA,
                        "%s: %" PRId64 " classes, expected at most as many as the %" PRId64
                        " vertices",
                        labels->name, source->classes, source->vertices);
    return SL_OK;
}

static int settle_features(struct sl_runtime *rt, struct sl_source *source)
{
    struct sl_stored_csr *csr = &source->features_csr;
    if (source->feature_form == SL_FEATURES_IDENTITY)
        source->features = source->vertices;
    if (source->feature_form == SL_FEATURES_CSR && csr->cols < 0)
        source->features = csr->cols = find_largest(rt, &csr->indices) + 1;
    if (source->features < 1)
        return sl_error(SL_ERR_DATA, "%s: features have no columns", source->path);
    return SL_OK;
}

int sl_source_settle(struct sl_runtime *rt, struct sl_source *source)
{
    if (source->vertices < 1)
        return sl_error(SL_ERR_DATA, "%s: has no vertices", source->path);
    int rc = settle_features(rt, source);
    if (!rc && (source->vertices > INT32_MAX || source->features > INT32_MAX))
        rc = sl_error(SL_ERR_DATA,
                      "%s: has %" PRId64 " vertices and %" PRId64
                      " features, expected fewer than 2^31",
                      source->path, source->vertices, source->features);
    if (!rc)
        rc = settle_classes(rt, source);
    return rc ? rc : sl_features_settle(rt, source);
}

int sl_source_take_classes(struct sl_runtime *rt, struct sl_source *source)
{
    if (!source->targets.labels.data || source->targets.label_kind != SL_LABELS_NUMBERS ||
        !sl_labels_can_be_classes(rt, &source->targets.labels))
        return SL_OK;
    source->targets.labels.dims = 1;
    source->targets.label_kind = SL_LABELS_CLASS;
    source->classes = 0;
    return sl_runtime_agree(rt, settle_classes(rt, source));
}

int sl_source_take_numbers(struct sl_runtime *rt, struct sl_source *source)
{
    if (!source->targets.labels.data || source->targets.label_kind != SL_LABELS_CLASS ||
        sl_npy_is_text(&source->targets.labels) || source->targets.class_names)
        return SL_OK;
    source->targets.label_kind = SL_LABELS_NUMBERS;
    source->classes = 1;
    return sl_runtime_agree(rt,
                            sl_labels_become_numbers(rt, &source->targets.labels, &source->blocks));
}

/* ---- Datasets in memory ---- */

/* Return the name of an array in messages: DIR/labels.npy, or FILE: labels. A directory has edges
 * in relations/ alone. */
static const char *name_array(struct sl_source *source, const char *array)
{
    const bool directory = sl_is_directory_layout(source->path);
    if (directory && source->of_edges)
        return sl_block_print(&source->blocks, "%s/relations", source->path);
    return sl_block_print(&source->blocks, directory ? "%s/%s.npy" : "%s: %s", source->path, array);
}

/* Copy names, which live as long as the source. */
static int copy_names(struct sl_source *source, const char *const *from, const char *const **to)
{
    const int64_t count = sl_labels_count_names(from);
    const char **names = from ? sl_block_array(&source->blocks, count + 1, sizeof *names) : NULL;
    for (int64_t c = 0; names && c < count; c++) {
        names[c] = sl_block_print(&source->blocks, "%s", from[c]);
        if (!names[c])
            return SL_ERR_SYSTEM;
    }
    if (names)
        names[count] = NULL;
    *to = names;
    return names || !from ? SL_OK : SL_ERR_SYSTEM;
}

/* Set *out to an array in memory; `cols` 0: it has one dimension. */
static int view(struct sl_source *source, const char *array, enum sl_npy_type type, int64_t rows,
                int64_t cols, const void *data, struct sl_npy *out)
{
    const char *name = name_array(source, array);
    if (name)
        *out = sl_npy_view(name, type, cols ? 2 : 1, rows, cols, data);
    return name ? SL_OK : SL_ERR_SYSTEM;
}

static int view_csr(struct sl_source *source, const struct sl_csr *csr, const char *indptr,
                    const char *indices, const char *values, struct sl_stored_csr *out)
{
    const int64_t nnz = csr->indptr[csr->rows];
    int rc = view(source, indptr, SL_NPY_INT64, csr->rows + 1, 0, csr->indptr, &out->indptr);
    if (!rc)
        rc = view(source, indices, SL_NPY_INT32, nnz, 0, csr->indices, &out->indices);
    if (!rc && csr->values)
        rc = view(source, values, SL_NPY_FLOAT32, nnz, 0, csr->values, &out->values);
    out->cols = csr->cols;
    return rc;
}

static int view_split(struct sl_source *source, const struct sl_index_set *set, const char *array,
                      struct sl_npy *out)
{
    return set->count ? view(source, array, SL_NPY_INT64, set->count, 0, set->ids, out) : SL_OK;
}

static int view_features(struct sl_source *source, const struct sl_dataset *data)
{
    if (data->feature_form == SL_FEATURES_CSR)
        return view_csr(source, &data->features_csr, "features_indptr", "features_indices",
                        "features_data", &source->features_csr);
    if (data->feature_form == SL_FEATURES_DENSE)
        return view(source, "features", SL_NPY_FLOAT32, data->vertices, data->features,
                    data->features_dense, &source->features_dense);
    return SL_OK;
}

static int view_vertices(struct sl_source *source, const struct sl_dataset *data)
{
    const int64_t n = data->vertices;
    int rc = SL_OK;
    if (data->labels)
        rc = view(source, "labels", SL_NPY_INT32, n, 0, data->labels, &source->targets.labels);
    else if (data->multilabels)
        rc = view(source, "labels", SL_NPY_FLOAT32, n, data->classes, data->multilabels,
                  &source->targets.labels);
    source->targets.whole_numbers = data->meaning.whole_numbers;
    if (data->multilabels)
        source->targets.label_kind =
            data->meaning.regression ? SL_LABELS_NUMBERS : SL_LABELS_SEVERAL;
    if (!rc)
        rc = view_split(source, &data->train, "train_idx", &source->splits.split[SL_SPLIT_TRAIN]);
    if (!rc)
        rc = view_split(source, &data->val, "val_idx", &source->splits.split[SL_SPLIT_VAL]);
    if (!rc)
        rc = view_split(source, &data->test, "test_idx", &source->splits.split[SL_SPLIT_TEST]);
    if (!rc && data->original)
        rc = view(source, "original_ids", SL_NPY_INT64, n, 0, data->original,
                  &source->order.original);
    source->vertex_ids = data->vertex_ids;
    source->links = data->links;
    if (!rc)
        rc = copy_names(source, data->meaning.class_names, &source->targets.class_names);
    return rc ? rc : copy_names(source, data->columns.names, &source->columns.names);
}

int sl_source_take_graph(struct sl_source *source, const struct sl_dataset *data)
{
    const struct sl_csr *a = &data->adjacency;
    if (a->rows != data->vertices || a->cols != data->vertices)
        return sl_error(SL_ERR_DATA,
                        "%s: adjacency is %" PRId64 " x %" PRId64 ", expected %" PRId64
                        " x %" PRId64,
                        source->path, a->rows, a->cols, data->vertices, data->vertices);
    source->vertices = data->vertices;
    source->undirected = data->symmetric;
    source->merged_edges = data->merged_edges;
    source->relations.count = data->relations;
    int rc = view_csr(source, a, "indptr", "indices", "weights", &source->adjacency);
    if (!rc && data->edge)
        rc = view(source, "edge_features", SL_NPY_FLOAT32, a->indptr[a->rows], data->edge_features,
                  data->edge, &source->edge_features);
    return rc;
}

static int view_dataset(struct sl_source *source, const struct sl_dataset *data)
{
    source->features = data->features;
    source->classes = data->classes;
    source->feature_form = data->feature_form;
    source->columns.bag_of_words = data->columns.bag_of_words;
    source->columns.table = data->columns.table;
    int rc = sl_source_take_graph(source, data);
    if (!rc)
        rc = view_features(source, data);
    return rc ? rc : view_vertices(source, data);
}

int sl_source_of(const struct sl_dataset *data, struct sl_source *out)
{
    *out = (struct sl_source){.name = strdup(data->name ? data->name : "dataset"),
                              .path = strdup(data->path ? data->path : "dataset")};
    struct sl_runtime alone = {.ranks = 1};
    if (!out->name || !out->path)
        return sl_error(SL_ERR_SYSTEM, "out of memory");
    const int rc = view_dataset(out, data);
    return rc ? rc : sl_source_settle(&alone, out);
}

int sl_source_borrow(const struct sl_source *whole, struct sl_source *out)
{
    *out = *whole;
    out->blocks = NULL;
    out->name = strdup(whole->name);
    out->path = strdup(whole->path);
    return out->name && out->path
               ? SL_OK
               : sl_error(SL_ERR_SYSTEM, "out of memory for the name of a graph");
}

/* ---- Doubled edges ---- */

/* Return whether the columns of each row ascend, so that no entry is there twice. The matrix is
 * square. */
static bool is_sorted(const struct sl_stored_csr *a, int64_t rows)
{
    bool sorted = a->indptr.count == rows + 1;
    int64_t end = sorted ? sl_npy_integer(&a->indptr, 0) : 0;
    for (int64_t r = 0; sorted && r < rows; r++) {
        const int64_t start = end;
        end = sl_npy_integer(&a->indptr, r + 1);
        sorted = start >= 0 && start <= end && end <= a->indices.count;
        for (int64_t e = start + 1; sorted && e < end; e++)
            sorted = sl_npy_integer(&a->indices, e - 1) < sl_npy_integer(&a->indices, e);
        if (sorted && end > start)
            sorted = sl_npy_integer(&a->indices, start) >= 0 &&
                     sl_npy_integer(&a->indices, end - 1) < rows;
    }
    return sorted;
}

int sl_source_count_duplicates(struct sl_source *source)
{
    struct sl_stored_csr *a = &source->adjacency;
    struct sl_block *blocks = NULL;
    const int64_t entries = a->indices.count;
    if (a->values.data || source->relations.count > 0 || is_sorted(a, source->vertices))
        return SL_OK;
    float *ones = sl_block_array(&blocks, entries, sizeof *ones);
    for (int64_t e = 0; ones && e < entries; e++)
        ones[e] = 1.0f;
    const struct sl_npy data = sl_npy_view(a->indices.name, SL_NPY_FLOAT32, 1, entries, 0, ones);
    struct sl_csr csr;
    int64_t merged = 0;
    int rc = ones ? sl_arrays_csr(&a->indptr, &a->indices, &data, source->vertices, &blocks, &csr,
                                  &merged)
                  : (int)SL_ERR_SYSTEM;
    if (!rc && merged > 0 && source->edge_features.data)
        rc = sl_error(SL_ERR_DATA,
                      "%s: %" PRId64 " edge%s there twice, expected each once, since edges have "
                      "features",
                      a->indices.name, merged, merged == 1 ? " is" : "s are");
    if (!rc && merged > 0) {
        const char *const names[] = {a->indptr.name, a->indices.name};
        const int64_t left = csr.indptr[csr.rows];
        a->indptr = sl_npy_view(names[0], SL_NPY_INT64, 1, csr.rows + 1, 0, csr.indptr);
        a->indices = sl_npy_view(names[1], SL_NPY_INT32, 1, left, 0, csr.indices);
        a->values = sl_npy_view(names[1], SL_NPY_FLOAT32, 1, left, 0, csr.values);
        source->merged_edges += merged;
        sl_block_move(&source->blocks, &blocks);
    }
    sl_block_free_all(&blocks);
    return rc;
}

/* ---- Files ---- */

/* Return the name of a dataset: "data/cora.csv.gz" and "data/cora/" are called "cora". */
static char *name_of(const char *path, bool directory)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    char *name = strndup(path + start, end - start);
    if (!name || directory)
        return name;
    const size_t length = strlen(name);
    if (length > 3 && strcasecmp(name + length - 3, ".gz") == 0)
        name[length - 3] = '\0';
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    return name;
}

/* Read a file into a dataset in memory, checked or not, that lives as long as the source. */
static int read_format(struct sl_source *source, const struct sl_format *format,
                       const struct sl_read_options *options)
{
    struct sl_dataset data = {.path = source->path, .name = source->name};
    const int rc = format->read(source->path, options, &data);
    sl_block_move(&source->blocks, &data.blocks);
    source->of_edges = true;
    return rc ? rc : view_dataset(source, &data);
}

/* Return a hint for a path that does not exist: a near name in its folder. */
static struct sl_hint find_near(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t above = end;
    while (above > 0 && path[above - 1] != '/')
        above--;
    char *typed = strndup(path + above, end - above);
    char *folder = above ? strndup(path, above) : strdup(".");
    struct sl_guess guess = sl_guess_begin(typed ? typed : "");
    DIR *dir = folder ? opendir(folder) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char name[sizeof guess.name];
        const int length = snprintf(name, sizeof name, "%.*s%s", (int)above, path, entry->d_name);
        if (entry->d_name[0] != '.' && length < (int)sizeof name)
            sl_guess_consider(&guess, entry->d_name, name);
    }
    const struct sl_hint hint = sl_guess_hint(&guess);
    if (dir)
        closedir(dir);
    free(folder);
    free(typed);
    return hint;
}

static int open_folder(const char *path, const struct sl_read_options *options,
                       struct sl_source *out)
{
    const struct sl_format *format;
    const int rc = sl_format_find_folder(path, options, &format);
    if (rc)
        return rc;
    if (format)
        return read_format(out, format, options);
    return sl_is_directory_layout(path) ? sl_open_directory(path, options, out)
                                        : sl_format_refuse_folder(path);
}

static int open_file(const struct sl_read_options *options, struct sl_source *out)
{
    const struct sl_format *format;
    const int rc = sl_format_find(out->path, options, &format);
    return rc ? rc : read_format(out, format, options);
}

static int open_stored(const char *path, const struct sl_read_options *options,
                       struct sl_source *out)
{
    struct stat info;
    const char *only = NULL;
    if (stat(path, &info) != 0) {
        const int cause = errno;
        return sl_error(SL_ERR_DATA, "%s: cannot open: %s%s", path, strerror(cause),
                        cause == ENOENT ? find_near(path).text : "");
    }
    const bool directory = S_ISDIR(info.st_mode);
    const int rc = directory ? sl_format_find_only_file(path, &out->blocks, &only) : SL_OK;
    if (rc)
        return rc;
    out->path = strdup(only ? only : path);
    out->name = name_of(path, directory);
    if (!out->path || !out->name)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory", path);
    if (!directory && !S_ISREG(info.st_mode))
        return sl_error(SL_ERR_DATA, "%s: is neither a file nor a directory", path);
    if (only)
        sl_note("%s: is read as the only file in it that may be a graph, %s", path, only);
    return directory && !only ? open_folder(path, options, out) : open_file(options, out);
}

int64_t sl_source_feature_entries(const struct sl_source *source)
{
    return source->feature_form == SL_FEATURES_DENSE ? 0
           : source->feature_form == SL_FEATURES_CSR ? source->features_csr.indices.count
                                                     : source->vertices;
}

int sl_source_open(struct sl_runtime *rt, const char *path, struct sl_source *out)
{
    return sl_source_open_with(rt, path, &(struct sl_read_options){0}, out);
}

int sl_source_open_with(struct sl_runtime *rt, const char *path,
                        const struct sl_read_options *options, struct sl_source *out)
{
    *out = (struct sl_source){0};
    sl_progress_begin("opening %s", path);
    int rc = open_stored(path, options, out);
    if (!rc && options->count_duplicates) /* duplicates in a directory; readers of other formats
                                             have merged theirs */
        rc = sl_source_count_duplicates(out);
    rc = sl_runtime_agree(rt, rc);
    if (!rc)
        rc = sl_source_check_alike(rt, out);
    if (!rc)
        rc = sl_runtime_agree(rt, sl_source_settle(rt, out));
    sl_progress_end();
    if (!rc)
        sl_features_note(out, path);
    if (!rc && out->targets.labels.data && out->targets.label_kind == SL_LABELS_CLASS)
        sl_labels_note(rt, &out->targets.labels, out->classes);
    return rc ? sl_error_about(rc, path) : SL_OK; /* errors of memory may lack the path */
}

/* ---- Rows ---- */

int64_t sl_source_vertex(const struct sl_source *source, int64_t r)
{
    return source->order.vertex ? source->order.vertex[r] : r;
}

int sl_source_hop(const struct sl_source *source, int64_t r)
{
    const int64_t v = sl_source_vertex(source, r);
    int hop = 0;
    while (source->selection.hop_cut && v >= source->selection.hop_cut[hop + 1])
        hop++;
    return hop;
}

int64_t sl_source_number(const struct sl_source *source, int64_t v)
{
    return source->order.original.data ? sl_npy_integer(&source->order.original, v) : v;
}

int64_t sl_source_feature_row(const struct sl_source *source, int64_t r)
{
    const int64_t v = sl_source_vertex(source, r);
    return source->selection.feature_row ? source->selection.feature_row[v] : v;
}

/* Return the number of vertices in a mask: one number a row, or the first of several. */
static int64_t count_masked(const struct sl_npy *mask)
{
    const int64_t width = mask->dims == 2 ? mask->shape[1] : 1;
    int64_t count = 0;
    for (int64_t v = 0; v < mask->shape[0]; v++)
        count += sl_npy_get(mask, v * width) != 0.0;
    return count;
}

static int64_t size_by_rule(const struct sl_source *source, enum sl_split split)
{
    const struct sl_split_rule *rule = &source->splits.split_rule;
    const int64_t groups = rule->per_class ? source->classes : 1;
    int64_t cut[4] = {0};
    if (groups < 1)
        return 0;
    sl_split_rule_cut(rule, source->vertices / groups, cut + 1);
    return groups * (cut[split - SL_SPLIT_TRAIN + 1] - cut[split - SL_SPLIT_TRAIN]);
}

int64_t sl_source_split_size(const struct sl_source *source, enum sl_split split)
{
    const struct sl_npy *ids = &source->splits.split[split];
    if (source->splits.split_rule.given)
        return size_by_rule(source, split);
    return !ids->data ? 0 : source->splits.mask[split] ? count_masked(ids) : ids->count;
}

/* Return indptr[v], limited to the entries: nobody has checked the row pointers yet, and sums of
 * them must not overflow. */
static int64_t entries_before(const struct sl_stored_csr *csr, int64_t v)
{
    const int64_t entries = sl_npy_integer(&csr->indptr, v), most = csr->indices.count;
    return entries < 0 ? 0 : entries > most ? most : entries;
}

int64_t sl_source_entries_before(const struct sl_source *source, int64_t v)
{
    const bool sparse = source->feature_form == SL_FEATURES_CSR;
    return entries_before(&source->adjacency, v) +
           (sparse ? entries_before(&source->features_csr, v) : 0);
}

void sl_source_release(struct sl_source *source)
{
    sl_block_free_all(&source->blocks);
    sl_memory_trim();
}

void sl_source_close(struct sl_source *source)
{
    sl_block_free_all(&source->blocks);
    free(source->name);
    free(source->path);
    *source = (struct sl_source){0};
}
