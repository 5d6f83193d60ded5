/* MATLAB files. Real graphs equal their directories of arrays. Small files give the numbers that
 * they were written with. Malformed files are refused with a sentence. */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "format_files.h"

#include "data/formats/matlab.h"

/* ---- Writing, by hand: files of level 5 as the format's description has them ---- */

enum {
    INT8 = 1,
    UINT8 = 2,
    UINT16 = 4,
    INT32 = 5,
    UINT32 = 6,
    SINGLE = 7,
    DOUBLE = 9,
    MATRIX = 14
};
enum {
    CELL_CLASS = 1,
    STRUCTURE_CLASS = 2,
    CHAR_CLASS = 4,
    SPARSE_CLASS = 5,
    DOUBLE_CLASS = 6,
    SINGLE_CLASS = 7,
    UINT8_CLASS = 9,
    FUNCTION_CLASS = 16,
    OPAQUE_CLASS = 17
};

struct bytes {
    unsigned char byte[8192];
    size_t count;
};

static void put(struct bytes *out, const void *bytes, size_t count)
{
    assert_true(out->count + count <= sizeof out->byte);
    memcpy(out->byte + out->count, bytes, count);
    out->count += count;
}

static void put_words(struct bytes *out, uint32_t first, uint32_t second)
{
    put(out, &first, 4);
    put(out, &second, 4);
}

static void put_element(struct bytes *out, uint32_t type, const void *bytes, size_t count)
{
    static const char zeros[8];
    put_words(out, type, (uint32_t)count);
    if (count > 0)
        put(out, bytes, count);
    put(out, zeros, (8 - count % 8) % 8);
}

static void put_header(struct bytes *out)
{
    char text[124];
    memset(text, ' ', sizeof text);
    memcpy(text, "MATLAB 5.0 MAT-file", 19);
    put(out, text, sizeof text);
    put(out, "\x00\x01IM", 4);
}

/* A matrix; `ir` and `jc` of a sparse one. */
struct matrix {
    const char *name;
    uint32_t class, flags;
    int32_t rows, columns;
    uint32_t type;
    const void *items;
    size_t bytes;
    const int32_t *ir, *jc;
    uint32_t entries;
};

static void put_matrix(struct bytes *out, const struct matrix *m)
{
    const size_t tag = out->count;
    const uint32_t flags[] = {m->class | m->flags << 8, m->entries};
    const int32_t dims[] = {m->rows, m->columns};
    put_words(out, MATRIX, 0);
    put_element(out, UINT32, flags, sizeof flags);
    put_element(out, INT32, dims, sizeof dims);
    put_element(out, INT8, m->name, strlen(m->name));
    if (m->class == SPARSE_CLASS) {
        put_element(out, INT32, m->ir, m->entries * sizeof *m->ir);
        put_element(out, INT32, m->jc, ((size_t)m->columns + 1) * sizeof *m->jc);
    }
    put_element(out, m->type, m->items, m->bytes);
    const uint32_t size = (uint32_t)(out->count - tag - 8);
    memcpy(out->byte + tag + 4, &size, 4);
}

/* ---- The path 0 -> 1 -> 2 -> 3 with a back edge 3 -> 0 ---- */

static const int32_t ir[] = {3, 0, 1, 2}, jc[] = {0, 1, 2, 3, 4};
static const double ones[] = {1, 1, 1, 1};
static const uint8_t small_ones[] = {1, 1, 1, 1};

#define NETWORK                                                                \
    {                                                                          \
        "network", SPARSE_CLASS, 0, 4, 4, DOUBLE, ones, sizeof ones, ir, jc, 4 \
    }
#define DENSE(name, class, type, rows, columns, items)                          \
    {                                                                           \
        name, class, 0, rows, columns, type, items, sizeof items, NULL, NULL, 0 \
    }

static const char *make(const struct files *files, const char *name, const struct matrix *matrices,
                        size_t count)
{
    struct bytes out = {.count = 0};
    put_header(&out);
    for (size_t k = 0; k < count; k++)
        put_matrix(&out, &matrices[k]);
    return files_write(files, name, out.byte, out.count);
}

static void check_network(const struct sl_dataset *data)
{
    static const int32_t columns[] = {3, 0, 1, 2}; /* row v: where the edge to v begins */
    assert_int_equal(data->vertices, 4);
    assert_int_equal(entries(data), 4);
    assert_memory_equal(data->adjacency.indices, columns, sizeof columns);
    assert_null(data->adjacency.values);
    assert_false(data->symmetric);
}

static void test_types(void **state)
{
    static const double features[] = {1, 3, 5, 7, 2, 4, 6, 8.5};
    static const float singles[] = {1, 3, 5, 7, 2, 4, 6, 8.5f};
    static const uint8_t classes[] = {3, 1, 2, 1};
    static const double dense[] = {0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    static const float rows[] = {1, 2, 3, 4, 5, 6, 7, 8.5f};
    static const int32_t labels[] = {2, 0, 1, 0};
    static const struct matrix files_of[][3] = {
        {NETWORK, DENSE("X", DOUBLE_CLASS, DOUBLE, 4, 2, features),
         DENSE("label", UINT8_CLASS, UINT8, 4, 1, classes)},
        {{"A", SPARSE_CLASS, 2, 4, 4, UINT8, small_ones, 4, ir, jc, 4},
         DENSE("feat", SINGLE_CLASS, SINGLE, 4, 2, singles),
         DENSE("gnd", DOUBLE_CLASS, UINT8, 1, 4, classes)},
        {DENSE("adj", DOUBLE_CLASS, DOUBLE, 4, 4, dense),
         DENSE("Attributes", DOUBLE_CLASS, DOUBLE, 4, 2, features),
         DENSE("Labels", DOUBLE_CLASS, UINT8, 4, 1, classes)},
        {DENSE("Y", DOUBLE_CLASS, UINT8, 4, 1, classes),
         {"friends", SPARSE_CLASS, 2, 4, 4, DOUBLE, small_ones, 4, ir, jc, 4},
         DENSE("features", DOUBLE_CLASS, DOUBLE, 4, 2, features)},
    };
    for (size_t k = 0; k < COUNT(files_of); k++) {
        struct sl_dataset data;
        char name[32];
        snprintf(name, sizeof name, "types%zu.mat", k);
        open_ok(make(*state, name, files_of[k], 3), &data);
        check_network(&data);
        assert_memory_equal(data.features_dense, rows, sizeof rows);
        assert_int_equal(data.classes, 3);
        assert_memory_equal(data.labels, labels, sizeof labels);
        sl_dataset_close(&data);
    }
}

/* Sparse features, several labels, and a weight. */
static void test_sparse(void **state)
{
    static const double weights[] = {1, 2.5, 1, 1};
    static const int32_t rows[] = {0, 2, 3}, starts[] = {0, 2, 2, 3};
    static const double words[] = {4, 5, 6}, group[] = {1, 1, 1};
    const struct matrix matrices[] = {
        {"network", SPARSE_CLASS, 0, 4, 4, DOUBLE, weights, sizeof weights, ir, jc, 4},
        {"attrb", SPARSE_CLASS, 0, 4, 3, DOUBLE, words, sizeof words, rows, starts, 3},
        {"group", SPARSE_CLASS, 0, 4, 3, DOUBLE, group, sizeof group, rows, starts, 3},
    };
    struct sl_dataset data;
    open_ok(make(*state, "sparse.mat", matrices, 3), &data);
    assert_true(data.adjacency.values[1] == 2.5f);
    assert_int_equal(data.feature_form, SL_FEATURES_CSR);
    assert_true(format_feature(&data, 2, 0) == 5.0f);
    assert_true(format_feature(&data, 3, 2) == 6.0f);
    assert_true(format_feature(&data, 1, 1) == 0.0f);
    assert_int_equal(data.classes, 3);
    assert_true(data.multilabels[0] == 1.0f && data.multilabels[8] == 0.0f);
    assert_true(data.multilabels[11] == 1.0f);
    sl_dataset_close(&data);
}

/* ---- Malformed files ---- */

static const int32_t far_row[] = {3, 0, 4, 2}, falling[] = {0, 2, 1, 3, 4},
                     late[] = {1, 1, 2, 3, 4}, many[] = {0, 1, 2, 3, 9},
                     negative_row[] = {3, 0, -1, 2};
static const double with_nan[] = {1, NAN, 1, 1}, with_inf[] = {1, INFINITY, 1, 1};
static const double bad_label[] = {0, 1, -3, 1}, half[] = {0, 0.5, NAN, INFINITY};
static const double info[14] = {1, 1, 2, 2, 3, 3, 0, 0, 5, 5, 2004, 2005, -1, 7};
static const double big_info[28] = {0, 0, 1.5};

#define SPARSE(name, rows, columns, values, ir, jc)                                    \
    {                                                                                  \
        name, SPARSE_CLASS, 0, rows, columns, DOUBLE, values, sizeof values, ir, jc, 4 \
    }
#define NOT_THERE                                                                \
    {                                                                            \
        "other", DOUBLE_CLASS, 0, 2, 2, DOUBLE, ones, sizeof ones, NULL, NULL, 0 \
    }

static const struct {
    struct matrix matrices[2];
    size_t count;
    const char *phrase;
} bad[] = {
    {{NETWORK}, 0, "has no adjacency"},
    {{NOT_THERE}, 1, "has no adjacency"},
    {{SPARSE("one", 4, 4, ones, ir, jc), SPARSE("two", 4, 4, ones, ir, jc)}, 2, "no adjacency"},
    {{NETWORK, SPARSE("adj", 4, 4, ones, ir, jc)}, 2, "'network' and 'adj' are both adjacencies"},
    {{NETWORK, NETWORK}, 2, "'network' and 'network' are both adjacencies"},
    {{SPARSE("A", 5, 4, ones, ir, jc)}, 1, "'A' is 5 x 4, expected a square"},
    {{SPARSE("A", 4, 4, ones, far_row, jc)}, 1, "row 2 has column 4, expected 0 to 3"},
    {{SPARSE("A", 4, 4, ones, negative_row, jc)}, 1, "row 2 has column -1, expected 0 to 3"},
    {{SPARSE("A", 4, 4, ones, ir, falling)}, 1, "falls from 2 to 1 at row 1"},
    {{SPARSE("A", 4, 4, ones, ir, late)}, 1, "starts at 1, expected 0"},
    {{SPARSE("A", 4, 4, ones, ir, many)}, 1, "variable 'A' is damaged"},
    {{SPARSE("A", 4, 4, with_nan, ir, jc)}, 1, "nan (the edge 0 -> 1)"},
    {{SPARSE("A", 4, 4, with_inf, ir, jc)}, 1, "inf (the edge 0 -> 1)"},
    {{{"A", CHAR_CLASS, 0, 2, 2, UINT16, "a\0b\0c\0d", 8, NULL, NULL, 0}}, 1, "no real numbers"},
    {{DENSE("A", DOUBLE_CLASS, DOUBLE, 2, 2, with_nan)}, 1, "nan (the edge 1 -> 0)"},
    {{NETWORK, DENSE("X", DOUBLE_CLASS, DOUBLE, 2, 2, ones)}, 2, "'X' has 2 rows, expected 4"},
    {{NETWORK, DENSE("X", DOUBLE_CLASS, DOUBLE, 4, 1, with_nan)}, 2, "row 1, column 0 is nan"},
    {{NETWORK, DENSE("label", DOUBLE_CLASS, DOUBLE, 2, 2, ones)}, 2, "'label' has 2 rows"},
    {{NETWORK, DENSE("label", DOUBLE_CLASS, DOUBLE, 4, 1, bad_label)}, 2, "label -3 of vertex 2"},
    {{NETWORK, DENSE("label", DOUBLE_CLASS, DOUBLE, 4, 1, half)}, 2, "is inf"},
    {{NETWORK, DENSE("local_info", DOUBLE_CLASS, DOUBLE, 4, 1, ones)}, 2, "1 columns, expected 7"},
    {{NETWORK, DENSE("local_info", DOUBLE_CLASS, DOUBLE, 2, 7, info)}, 2, "2 rows, expected 4"},
    {{NETWORK, DENSE("local_info", DOUBLE_CLASS, DOUBLE, 4, 7, big_info)}, 2, "0 is 1.5"},
    {{NETWORK, {"X", DOUBLE_CLASS, 0, 0, 4, DOUBLE, ones, 0, NULL, NULL, 0}},
     2,
     "is 0 x 4, expected 1"},
    {{{"A", SPARSE_CLASS, 8, 4, 4, DOUBLE, ones, sizeof ones, ir, jc, 4}}, 1, "no real numbers"},
};

static void test_malformed(void **state)
{
    for (size_t k = 0; k < COUNT(bad); k++) {
        char name[32];
        snprintf(name, sizeof name, "bad%zu.mat", k);
        format_refused(make(*state, name, bad[k].matrices, bad[k].count), name, bad[k].phrase);
    }
    const struct files *files = *state;
    struct bytes out = {.count = 0};
    put_header(&out);
    format_refused(files_write(files, "empty.mat", "", 0), "empty.mat", "has 0 bytes, expected");
    format_refused(files_text(files, "text.mat", "0 1\n"), "text.mat", "has 4 bytes");
    format_refused(files_write(files, "hdf.mat", "\x89HDF\r\n\x1a\n....", 12), "hdf.mat",
                   "is HDF5");
    out.byte[126] = 'X';
    format_refused(files_write(files, "order.mat", out.byte, 128), "order.mat", "no MATLAB file");
    memcpy(out.byte + 124, "\x00\x02IM", 4);
    format_refused(files_write(files, "level.mat", out.byte, 128), "level.mat", "of version 2");
    format_refused(files_path(files, "missing.mat"), "missing.mat", "No such file");
    printf("matlab: %zu malformed files refused\n", COUNT(bad) + 6);
}

/* Every shorter file is refused, and none of 500 with a byte changed brings the reader down. */
static void test_damaged(void **state)
{
    static const double features[] = {1, 3, 5, 7, 2, 4, 6, 8.5};
    const struct matrix matrices[] = {NETWORK, DENSE("X", DOUBLE_CLASS, DOUBLE, 4, 2, features)};
    const struct files *files = *state;
    struct bytes out = {.count = 0};
    put_header(&out);
    put_matrix(&out, &matrices[0]);
    const size_t first = out.count;
    put_matrix(&out, &matrices[1]);
    for (size_t size = 0; size < out.count; size++) {
        const char *path = files_write(files, "cut.mat", out.byte, size);
        if (size != first) /* where it is a whole file without features */
            format_refused(path, "cut.mat", "");
    }
    int refused = 0;
    for (unsigned k = 0; k < 500; k++) {
        struct bytes other = out;
        struct sl_dataset data;
        other.byte[128 + k * 7919u % (out.count - 128)] ^= (unsigned char)(1 + k * 104729u % 255);
        refused +=
            sl_dataset_open(files_write(files, "bits.mat", other.byte, out.count), &data) != SL_OK;
        sl_dataset_close(&data);
    }
    printf("matlab: %zu truncations and %d of 500 changed bytes refused\n", out.count - 1, refused);
}

/* Elements that claim gigabytes, in plain and compressed variables, are refused before anybody
 * takes memory for them. */
static void test_claims(void **state)
{
    struct rlimit usual, least;
    assert_int_equal(getrlimit(RLIMIT_AS, &usual), 0);
    least = usual;
    least.rlim_cur = (rlim_t)1 << 30;
    if (!getenv("SL_SANITIZED")) /* a call for 2^30 bytes would fail, with another sentence */
        assert_int_equal(setrlimit(RLIMIT_AS, &least), 0);
    const struct matrix network = NETWORK;
    const uint32_t much = 0x40000000;
    struct bytes plain = {.count = 0};
    put_header(&plain);
    put_matrix(&plain, &network);
    for (int compressed = 0; compressed < 2; compressed++)
        for (size_t at = 128 + 8; at < plain.count; at += 8) {
            struct bytes inner = plain, out = plain;
            uint32_t count;
            memcpy(&count, plain.byte + at + 4, 4);
            memcpy(inner.byte + at + 4, &much, 4);
            if (compressed) {
                uLongf room = sizeof out.byte - 128 - 8;
                const uint32_t packed = 15;
                assert_int_equal(
                    compress(out.byte + 128 + 8, &room, inner.byte + 128, inner.count - 128), Z_OK);
                const uint32_t bytes = (uint32_t)room;
                memcpy(out.byte + 128, &packed, 4);
                memcpy(out.byte + 128 + 4, &bytes, 4);
                out.count = 128 + 8 + room;
            } else {
                out = inner;
            }
            format_refused(files_write(*state, "claims.mat", out.byte, out.count), "claims.mat",
                           "its elements do not have the types and sizes");
            at += (count + 7) / 8 * 8; /* the next tag */
        }
    assert_int_equal(setrlimit(RLIMIT_AS, &usual), 0);
}

static void expect_network(const struct files *files, const struct bytes *out)
{
    struct sl_dataset data;
    open_ok(files_write(files, "other.mat", out->byte, out->count), &data);
    check_network(&data);
    sl_dataset_close(&data);
}

/* Variables that are no matrices of numbers are passed by, whatever sizes they claim. */
static void test_other_classes(void **state)
{
    static const uint32_t classes[] = {CELL_CLASS, STRUCTURE_CLASS, CHAR_CLASS, FUNCTION_CLASS,
                                       OPAQUE_CLASS};
    static const int32_t dims[] = {1 << 24, 256, 3};
    const struct matrix network = NETWORK;
    for (size_t k = 0; k < COUNT(classes); k++) {
        struct bytes out = {.count = 0};
        const uint32_t flags[] = {classes[k], 0};
        put_header(&out);
        put_words(&out, MATRIX, 16 + 24 + 16 + 16);
        put_element(&out, UINT32, flags, sizeof flags);
        put_element(&out, INT32, dims, sizeof dims);
        put_element(&out, INT8, "names", 5);
        put_element(&out, INT8, "no sense", 8);
        put_matrix(&out, &network);
        expect_network(*state, &out);
    }
}

/* A small element has four bytes. Numbers are as many as the sizes say, and a number has all its
 * bytes. */
static void test_elements(void **state)
{
    static const double five[] = {1, 2, 3, 4, 5};
    static const struct matrix wrong[] = {
        DENSE("X", DOUBLE_CLASS, DOUBLE, 4, 1, five),
        DENSE("X", DOUBLE_CLASS, DOUBLE, 4, 2, five),
        {"X", DOUBLE_CLASS, 0, 4, 1, DOUBLE, five, 31, NULL, NULL, 0},
        {"X", DOUBLE_CLASS, 0, 4, 2, 8, five, 8, NULL, NULL, 0},
    };
    const struct matrix network = NETWORK;
    struct bytes out = {.count = 0};
    put_header(&out);
    put_matrix(&out, &network);
    const size_t end = out.count;
    for (size_t k = 0; k < COUNT(wrong); k++) {
        out.count = end;
        put_matrix(&out, &wrong[k]);
        format_refused(files_write(*state, "count.mat", out.byte, out.count), "count.mat",
                       "variable 'X' is damaged: its elements do not have the types and sizes");
    }
    const uint32_t small = INT8 | 5 << 16;
    memcpy(out.byte + 128 + 8 + 32, &small, 4); /* the name's */
    format_refused(files_write(*state, "small.mat", out.byte, end), "small.mat", "is damaged");
}

/* Row numbers of other programs have no sign, and numbers of other machines end with their first
 * byte. */
static void test_words(void **state)
{
    const struct matrix network = NETWORK;
    struct bytes out = {.count = 0}, turned;
    put_header(&out);
    put_matrix(&out, &network);
    const uint32_t type = UINT32;
    memcpy(out.byte + 128 + 8 + 48, &type, 4); /* the row numbers' */
    expect_network(*state, &out);
    turned = out;
    for (size_t at = 128; at < out.count; at += 4)
        for (size_t k = 0; k < 4; k++)
            turned.byte[at + k] = out.byte[at + 3 - k];
    memcpy(turned.byte + 124, "\x01\x00MI", 4);
    memcpy(turned.byte + 128 + 8 + 40, "network", 8);
    for (size_t at = out.count - sizeof ones; at < out.count; at += 8)
        for (size_t k = 0; k < 8; k++)
            turned.byte[at + k] = out.byte[at + 7 - k];
    expect_network(*state, &turned);
}

/* Turn the numbers of `size` bytes from byte `at` on. */
static void turn(struct bytes *out, size_t at, size_t bytes, size_t size)
{
    for (size_t end = at + bytes; at < end; at += size)
        for (size_t k = 0; k < size / 2; k++) {
            const unsigned char byte = out->byte[at + k];
            out->byte[at + k] = out->byte[at + size - 1 - k];
            out->byte[at + size - 1 - k] = byte;
        }
}

/* Numbers of each type, as small elements too, in both orders of bytes. */
static void test_numbers(void **state)
{
    static const int8_t i8[] = {-2, 0, 0, 1};
    static const uint8_t u8[] = {200, 0, 0, 1};
    static const int16_t i16[] = {-300, 0, 0, 1};
    static const uint16_t u16[] = {60000, 0, 0, 1};
    static const int32_t i32[] = {-70000, 0, 0, 1};
    static const uint32_t u32[] = {4000000000u, 0, 0, 1};
    static const float single[] = {-0.5f, 0, 0, 1};
    static const double real[] = {-0.25, 0, 0, 1};
    static const int64_t i64[] = {-5000000000, 0, 0, 1};
    static const uint64_t u64[] = {UINT64_C(1) << 63, 0, 0, 1};
    static const struct {
        uint32_t type;
        const void *items;
        size_t size;
        float first;
    } kinds[] = {{1, i8, 1, -2},        {2, u8, 1, 200},      {3, i16, 2, -300},
                 {4, u16, 2, 60000},    {5, i32, 4, -70000},  {6, u32, 4, 4e9f},
                 {7, single, 4, -0.5f}, {9, real, 8, -0.25f}, {12, i64, 8, -5e9f},
                 {13, u64, 8, 0x1p63f}};
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int turned = 0; turned < 2; turned++) {
            const size_t size = kinds[k].size, bytes = 4 * size;
            const uint32_t flags[] = {DOUBLE_CLASS, 0};
            const int32_t dims[] = {2, 2};
            struct bytes out = {.count = 0};
            struct sl_dataset data;
            put_header(&out);
            put_words(&out, MATRIX, (uint32_t)(16 + 16 + 8 + (bytes == 4 ? 8 : 8 + bytes)));
            put_element(&out, UINT32, flags, sizeof flags);
            put_element(&out, INT32, dims, sizeof dims);
            put_words(&out, INT8 | 1 << 16, 'A');
            if (bytes == 4) {
                put_words(&out, kinds[k].type | 4 << 16, 0);
                memcpy(out.byte + out.count - 4, kinds[k].items, 4);
            } else {
                put_element(&out, kinds[k].type, kinds[k].items, bytes);
            }
            if (turned) {
                const size_t from = out.count - bytes;
                turn(&out, from, bytes, size);
                turn(&out, 128, from - 128, 4);
                turn(&out, 128 + 8 + 32 + 4, 4, 4); /* the name */
                memcpy(out.byte + 124, "\x01\x00MI", 4);
            }
            open_ok(files_write(*state, "numbers.mat", out.byte, out.count), &data);
            assert_int_equal(data.vertices, 2);
            assert_int_equal(entries(&data), 2);
            assert_true(data.adjacency.values[0] == kinds[k].first);
            assert_true(data.adjacency.values[1] == 1.0f);
            sl_dataset_close(&data);
        }
}

/* A file that changes after its variables are listed. */
static void test_changed(void **state)
{
    const struct matrix network = NETWORK;
    struct bytes out = {.count = 0};
    struct sl_matlab file;
    put_header(&out);
    put_matrix(&out, &network);
    const char *path = files_write(*state, "changed.mat", out.byte, out.count);
    assert_int_equal(sl_matlab_open(&file, path), SL_OK);
    assert_int_equal(truncate(path, 128 + 8), 0);
    setvbuf(file.file, NULL, _IONBF, 0);
    assert_int_equal(sl_matlab_load(&file, &file.variable[0]), SL_ERR_DATA);
    assert_non_null(strstr(sl_error_message(), "'network' is damaged"));
    sl_matlab_close(&file);
}

/* A sparse matrix without entries, compressed to a thousandth, has a start for each of 20 million
 * columns. */
static void test_inflated(void **state)
{
    enum { COLUMNS = 20000000 };
    const size_t starts = ((size_t)COLUMNS + 1) * 4, padded = (starts + 7) / 8 * 8;
    const uint32_t flags[] = {SPARSE_CLASS, 1};
    const int32_t dims[] = {4, COLUMNS};
    const struct matrix network = NETWORK;
    struct bytes head = {.count = 0}, out = {.count = 0};
    put_words(&head, MATRIX, (uint32_t)(16 + 16 + 16 + 8 + 8 + padded + 8));
    put_element(&head, UINT32, flags, sizeof flags);
    put_element(&head, INT32, dims, sizeof dims);
    put_element(&head, INT8, "X", 1);
    put_element(&head, INT32, NULL, 0);
    put_words(&head, INT32, (uint32_t)starts);
    const size_t all = head.count + padded + 8;
    uLongf room = compressBound(all);
    unsigned char *plain = calloc(1, all), *packed = malloc(room + 1024);
    assert_true(plain && packed);
    memcpy(plain, head.byte, head.count);
    plain[all - 8] = DOUBLE;
    put_header(&out);
    put_matrix(&out, &network);
    memcpy(packed, out.byte, out.count);
    assert_int_equal(compress(packed + out.count + 8, &room, plain, all), Z_OK);
    const uint32_t tag[] = {15, (uint32_t)room};
    memcpy(packed + out.count, tag, sizeof tag);
    format_refused(files_write(*state, "inflated.mat", packed, out.count + 8 + room),
                   "inflated.mat", "takes too much memory for the size of its file");
    free(plain);
    free(packed);
}

/* A bit of a compressed variable is wrong, or its checksum is. */
static void test_checksum(void **state)
{
    const struct matrix network = NETWORK;
    struct bytes plain = {.count = 0}, out = {.count = 0};
    put_header(&plain);
    put_matrix(&plain, &network);
    put_header(&out);
    uLongf room = sizeof out.byte - 128 - 8;
    assert_int_equal(compress(out.byte + 128 + 8, &room, plain.byte + 128, plain.count - 128),
                     Z_OK);
    put_words(&out, 15, (uint32_t)room);
    out.count += room;
    expect_network(*state, &out);
    for (size_t at = 128 + 8; at < out.count; at += 3) {
        out.byte[at] ^= 16;
        format_refused(files_write(*state, "bit.mat", out.byte, out.count), "bit.mat", "damaged");
        out.byte[at] ^= 16;
    }
}

/* ---- Real files ---- */

SL_TEST(test_facebook)
{
    struct sl_dataset data, wanted;
    open_ok(format_shared("original/fb100_mat/Cornell5.mat"), &data);
    open_ok(format_shared("fb100_cornell5_gender"), &wanted);
    format_same_graph(&data, &wanted);
    assert_same_csr(&data.features_csr, &wanted.features_csr);
    format_same_labels(&data, &wanted);
    sl_dataset_close(&data);
    sl_dataset_close(&wanted);
}

SL_TEST(test_blogcatalog)
{
    struct sl_dataset data, wanted;
    open_ok(format_shared("original/blogcatalog_mat/blogcatalog.mat"), &data);
    open_ok(format_shared("blogcatalog_multilabel"), &wanted);
    format_same_graph(&data, &wanted);
    format_same_labels(&data, &wanted);
    sl_dataset_close(&data);
    sl_dataset_close(&wanted);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_types, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_sparse, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_malformed, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_damaged, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_claims, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_other_classes, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_elements, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_words, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_numbers, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_changed, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_inflated, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_checksum, files_setup, files_teardown),
        cmocka_unit_test(test_facebook),
        cmocka_unit_test(test_blogcatalog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
