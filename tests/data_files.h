/* What the dataset tests share: files in a temporary directory that is removed at the end, and
 * comparisons. */
#ifndef SL_TESTS_DATA_FILES_H
#define SL_TESTS_DATA_FILES_H

#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "data/csr.h"
#include "data/dataset.h"
#include "data/formats/formats.h"
#include "data/formats/npy.h"
#include "tests/unit.h"

struct files {
    char dir[64];
};

static inline int files_setup(void **state)
{
    struct files *files = calloc(1, sizeof *files);
    if (!files)
        return -1;
    strcpy(files->dir, "/tmp/starling-data-XXXXXX");
    *state = files;
    return mkdtemp(files->dir) ? 0 : -1;
}

static inline int files_teardown(void **state)
{
    struct files *files = *state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", files->dir);
    const int rc = system(command);
    free(files);
    return rc;
}

/* DIR/NAME, valid until the fourth call after. */
static inline const char *files_path(const struct files *files, const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", files->dir, name);
    return path;
}

static inline const char *files_write(const struct files *files, const char *name,
                                      const void *bytes, size_t size)
{
    const char *path = files_path(files, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *files_text(const struct files *files, const char *name, const char *text)
{
    return files_write(files, name, text, strlen(text));
}

/* A .npy file with any header text. Returns its size. */
static inline size_t npy_bytes(char *out, size_t size, const char *header, const void *data,
                               size_t bytes)
{
    const size_t length = strlen(header);
    assert_true(10 + length + bytes <= size);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(length & 255);
    out[9] = (char)(length >> 8);
    memcpy(out + 10, header, length);
    memcpy(out + 10 + length, data, bytes);
    return 10 + length + bytes;
}

/* A small valid dataset: the path 0 - 1 - 2 - 3, two features, two classes, three splits. */
static inline const char *files_dataset(const struct files *files, const char *name)
{
    static const int64_t indptr[] = {0, 1, 3, 5, 6}, ids[] = {0, 1, 2};
    static const int32_t indices[] = {1, 0, 2, 1, 3, 2}, labels[] = {0, 1, 0, 1};
    static const float features[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct sl_dataset data = {
        .name = (char[]){"path"},
        .vertices = 4,
        .features = 2,
        .classes = 2,
        .adjacency = {4, 4, indptr, indices, NULL},
        .symmetric = true,
        .feature_form = SL_FEATURES_DENSE,
        .features_dense = features,
        .labels = labels,
        .train = {ids, 1},
        .val = {ids + 1, 1},
        .test = {ids + 2, 1},
    };
    const char *path = files_path(files, name);
    assert_int_equal(sl_dataset_write(&data, path), SL_OK);
    return path;
}

static inline void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance))
        fail_msg("%g, expected %g +- %g", value, wanted, tolerance);
}

static inline void open_ok(const char *path, struct sl_dataset *data)
{
    if (sl_dataset_open(path, data) != SL_OK)
        fail_msg("%s", sl_error_message());
}

static inline int64_t entries(const struct sl_dataset *data)
{
    return data->adjacency.indptr[data->vertices];
}

static inline float value_at(const struct sl_csr *csr, size_t k)
{
    return csr->values ? csr->values[k] : 1.0f;
}

/* An undirected graph without weights, loops and duplicates; all else in order, too. */
static inline void assert_simple(struct sl_dataset *data)
{
    const struct sl_csr *a = &data->adjacency;
    assert_null(a->values);
    assert_int_equal(sl_csr_check(a, a->indptr[a->rows], "indptr", "indices"), SL_OK);
    assert_int_equal(sl_csr_diagonal_count(a), 0);
    for (int64_t v = 0; v < a->rows; v++)
        for (int64_t k = a->indptr[v] + 1; k < a->indptr[v + 1]; k++)
            assert_true(a->indices[k - 1] < a->indices[k]);
    /* Symmetry, finite features, labels in range, splits ascending and disjoint. */
    assert_true(data->symmetric);
    if (sl_dataset_validate(data) != SL_OK)
        fail_msg("%s", sl_error_message());
    assert_true(data->symmetric);
}

static inline void assert_same_csr(const struct sl_csr *a, const struct sl_csr *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    const size_t rows = (size_t)a->rows, nnz = (size_t)a->indptr[rows];
    assert_memory_equal(a->indptr, b->indptr, (rows + 1) * sizeof *a->indptr);
    assert_memory_equal(a->indices, b->indices, nnz * sizeof *a->indices);
    for (size_t k = 0; k < nnz; k++)
        assert_float_equal(value_at(a, k), value_at(b, k), 0.0f);
}

static inline void assert_same_set(const struct sl_index_set *a, const struct sl_index_set *b)
{
    assert_int_equal(a->count, b->count);
    if (a->count > 0)
        assert_memory_equal(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
}

static inline void assert_same_dataset(const struct sl_dataset *a, const struct sl_dataset *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->features, b->features);
    assert_int_equal(a->classes, b->classes);
    assert_int_equal(a->symmetric, b->symmetric);
    assert_int_equal(a->columns.bag_of_words, b->columns.bag_of_words);
    assert_int_equal(a->feature_form, b->feature_form);
    assert_same_csr(&a->adjacency, &b->adjacency);
    const size_t n = (size_t)a->vertices;
    if (a->feature_form == SL_FEATURES_CSR)
        assert_same_csr(&a->features_csr, &b->features_csr);
    if (a->feature_form == SL_FEATURES_DENSE)
        assert_memory_equal(a->features_dense, b->features_dense,
                            n * (size_t)a->features * sizeof *a->features_dense);
    assert_int_equal(a->labels == NULL, b->labels == NULL);
    assert_int_equal(a->meaning.regression, b->meaning.regression);
    assert_int_equal(a->multilabels == NULL, b->multilabels == NULL);
    if (a->labels)
        assert_memory_equal(a->labels, b->labels, n * sizeof *a->labels);
    if (a->multilabels)
        assert_memory_equal(a->multilabels, b->multilabels,
                            n * (size_t)a->classes * sizeof *a->multilabels);
    assert_same_set(&a->train, &b->train);
    assert_same_set(&a->val, &b->val);
    assert_same_set(&a->test, &b->test);
    assert_int_equal(a->original == NULL, b->original == NULL);
    if (a->original)
        assert_memory_equal(a->original, b->original, n * sizeof *a->original);
}

static inline void assert_round_trip(const struct files *files, const struct sl_dataset *data)
{
    struct sl_dataset copy;
    char name[32];
    static int number;
    snprintf(name, sizeof name, "copy%d", number++);
    const char *path = files_path(files, name);
    if (sl_dataset_write(data, path) != SL_OK)
        fail_msg("%s", sl_error_message());
    open_ok(path, &copy);
    assert_same_dataset(data, &copy);
    sl_dataset_close(&copy);
}

#endif
