/* The common part of the tests of formats: a small valid folder, one file of it replaced, and the
 * sentence that refuses it. */
#ifndef SL_TESTS_FORMAT_FILES_H
#define SL_TESTS_FORMAT_FILES_H

#include "data_files.h"

#include <zlib.h>

#include "core/log.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A file of a folder, gzipped where its name ends so. `text` NULL: the file is missing. `phrase`
 * NULL: the folder stays valid. */
struct bad_file {
    const char *file, *text, *phrase;
};

/* Make a valid folder of that name; return its path. */
typedef const char *format_make_function(const struct files *files, const char *name);

struct good_file {
    const char *file, *text;
};

static inline void format_write(const char *path, const char *text)
{
    const size_t length = strlen(path);
    const bool zipped = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    gzFile file = gzopen(path, zipped ? "wb" : "wbT");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

/* FOLDER/FILE with its parents. */
static inline void format_file(const char *folder, const char *file, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    for (char *slash = path + strlen(folder); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    if (text)
        format_write(path, text);
    else
        assert_int_equal(unlink(path), 0);
}

static inline const char *format_folder(const struct files *files, const char *name,
                                        const struct good_file *good, size_t count)
{
    const char *folder = files_path(files, name);
    for (size_t k = 0; k < count; k++)
        format_file(folder, good[k].file, good[k].text);
    return folder;
}

/* One sentence, with the file and the phrase in it. */
static inline void format_refused(const char *path, const char *file, const char *phrase)
{
    struct sl_dataset data;
    const int code = sl_dataset_open(path, &data);
    if (code != SL_ERR_DATA)
        fail_msg("%s: code %d (%s), expected a refusal with \"%s\"", path, code,
                 code ? sl_error_message() : "read", phrase);
    const char *message = sl_error_message();
    if (!strstr(message, file) || !strstr(message, phrase) || strchr(message, '\n'))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", message, file, phrase);
    assert_null(data.blocks);
}

/* A valid folder with each bad file in turn: at least 20 are refused. */
static inline void format_malformed(const struct files *files, const char *label,
                                    format_make_function *make, const struct bad_file *bad,
                                    size_t bads)
{
    int refused = 0;
    for (size_t k = 0; k < bads; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s%zu", label, k);
        const char *folder = make(files, name);
        format_file(folder, bad[k].file, bad[k].text);
        struct sl_dataset data;
        if (bad[k].phrase) {
            format_refused(folder, bad[k].file, bad[k].phrase);
            refused++;
        } else {
            open_ok(folder, &data);
            sl_dataset_close(&data);
        }
    }
    printf("%s: %d malformed files refused\n", label, refused);
    assert_true(refused >= 20);
}

/* Every shorter version of a file is refused, whatever was cut off. */
static inline void format_truncated(const char *folder, const char *file, const char *phrase)
{
    char path[1024];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    assert_int_equal(stat(path, &info), 0);
    for (off_t size = info.st_size - 1; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        format_refused(folder, file, phrase);
    }
    printf("%s: %d truncations refused\n", file, (int)info.st_size);
}

/* The folder of real data, or skip. Valid until the fourth call after. */
static inline const char *format_shared(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    const char *data = getenv("SL_SHARED_DATA");
    snprintf(path, sizeof paths[0], "%s/%s", data ? data : "../shared/data", name);
    if (access(path, R_OK) != 0) {
        print_message("%s is not there\n", path);
        skip();
    }
    return path;
}

/* All but the form of the features, which are equal as dense rows, and the names. */
static inline void format_same_graph(const struct sl_dataset *a, const struct sl_dataset *b)
{
    assert_int_equal(a->vertices, b->vertices);
    assert_int_equal(a->classes, b->classes);
    assert_int_equal(a->symmetric, b->symmetric);
    assert_same_csr(&a->adjacency, &b->adjacency);
}

static inline float format_feature(const struct sl_dataset *data, int64_t v, int64_t f)
{
    const struct sl_csr *x = &data->features_csr;
    if (data->feature_form == SL_FEATURES_DENSE)
        return data->features_dense[v * data->features + f];
    for (int64_t k = x->indptr[v]; k < x->indptr[v + 1]; k++)
        if (x->indices[k] == f)
            return value_at(x, (size_t)k);
    return 0.0f;
}

static inline void format_same_features(const struct sl_dataset *a, const struct sl_dataset *b)
{
    assert_int_equal(a->features, b->features);
    for (int64_t v = 0; v < a->vertices; v++)
        for (int64_t f = 0; f < a->features; f++)
            if (format_feature(a, v, f) != format_feature(b, v, f))
                fail_msg("feature %d of vertex %d: %g, expected %g", (int)f, (int)v,
                         (double)format_feature(a, v, f), (double)format_feature(b, v, f));
}

static inline void format_same_labels(const struct sl_dataset *a, const struct sl_dataset *b)
{
    const size_t n = (size_t)a->vertices;
    assert_int_equal(a->labels == NULL, b->labels == NULL);
    assert_int_equal(a->multilabels == NULL, b->multilabels == NULL);
    if (a->labels)
        assert_memory_equal(a->labels, b->labels, n * sizeof *a->labels);
    if (a->multilabels)
        assert_memory_equal(a->multilabels, b->multilabels,
                            n * (size_t)a->classes * sizeof *a->multilabels);
}

static inline void format_same_splits(const struct sl_dataset *a, const struct sl_dataset *b)
{
    assert_same_set(&a->train, &b->train);
    assert_same_set(&a->val, &b->val);
    assert_same_set(&a->test, &b->test);
}

#endif
