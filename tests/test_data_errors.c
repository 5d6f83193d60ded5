/* Datasets that are wrong, in every way the readers look for: the code, the file's name and the
 * reason are checked. A new check gets a row in one of the tables. */
#include "data_files.h"

#include <math.h>

#include <zip.h>
#include <zlib.h>

#include "core/log.h"

static void expect_refusal(const char *path, const char *file, const char *phrase)
{
    struct sl_dataset data;
    if (sl_dataset_open(path, &data) != SL_ERR_DATA)
        fail_msg("%s: expected a refusal with \"%s\"", path, phrase);
    const char *message = sl_error_message();
    if (!strstr(message, file) || !strstr(message, phrase))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", message, file, phrase);
    assert_null(data.blocks);
    assert_null(data.name);
}

/* --- text formats
 * ------------------------------------------------------------------------------------------- */

#define MTX "%%MatrixMarket matrix coordinate "

static const struct {
    const char *file, *text, *phrase;
} bad_texts[] = {
    {"nothing.txt", "", "no vertices"},
    {"only_comments.txt", "# a\n% b\n", "no vertices"},
    {"float_id.txt", "0 1\n1 2.5\n", "line 2: '2.5'"},
    {"negative.txt", "0 1\n\n-3 1\n", "line 3: vertex -3 is negative"},
    {"huge_id.txt", "0 1\n99999999999999999999 1\n", "line 2"},
    {"one_column.txt", "0\n1\n", "line 1 has too few columns"},
    {"many_columns.txt", "0 1 2 3\n", "line 1 has too many columns"},
    {"columns_change.txt", "0 1\n1 2 0.5\n", "line 2 has 3 columns, expected 2"},
    {"many_later.txt", "0 1\n1 2 3 4 5\n", "line 2 has 5 columns"},
    {"empty_field.csv", "0,1,1\n0,,1\n", "line 2: '' is no vertex"},
    {"empty_name.csv", "a,b\na,\n", "line 2: '' is no vertex, expected a name"},
    {"trailing_comma.csv", "0,1\n1,2,\n", "line 2 has 3 columns"},
    {"bad_weight.txt", "0 1 1\n1 2 heavy\n", "line 2: weight 'heavy'"},
    {"nan_weight.txt", "0 1 1\n1 2 nan\n", "line 2: weight 'nan'"},
    {"overflow_weight.txt", "0 1 1\n1 2 1e39\n", "line 2: weight '1e39'"},
    {"comma_weight.txt", "0\t1\t0,5\n",
     "weight '0,5' is no finite number, expected a decimal point"},
    {"comma.txt", "0 1 0,5\n", "line 1: '0 1 0' has two numbers, expected one separator"},
    {"two_separators.txt", "0,1\n1 2,3\n", "line 2: '1 2' has two numbers"},
    {"tuples.txt", "(0, 1)\n(1, 2)\n", "line 1: '(0' is no vertex"},
    {"arrows.txt", "a -> b\n", "line 1: '->' is no vertex"},
    {"arrow.txt", "a ->\n", "line 1: '->' is no vertex"},
    {"dictionaries.txt", "a {}\n", "line 1: '{}' is no vertex"},
    {"open_quote.txt", "\"a b\n", "line 1: a quote has no end"},
    {"lines.jsonl", "{\"source\":0}\n", "is JSON"},
    {"hidden.txt", " [[0, 1]]\n", "is JSON or Python"},
    {"graph.gexf", "<gexf>\n", "networkx.read_gexf"},
    {"graph.xml.txt", "<?xml version='1.0'?>\n<graphml>\n", "networkx.read_graphml"},
    {"graph.gml", "graph [\n", "networkx.read_gml"},
    {"gml.txt", "graph\n[\n", "networkx.read_gml"},
    {"pajek.txt", "*Vertices 2\n", "networkx.read_pajek"},
    {"coloured.col", "p edge 3 2\ne 1 2\n", "is DIMACS"},
    {"dimacs.txt", "c a graph\np sp 3 2\na 1 2 5\n", "is DIMACS"},
    {"table.parquet", "PAR1", "pandas.read_parquet"},
    {"data.pt", "PK", "starling.from_pyg(torch.load(FILE))"},
    {"data.pkl", "\x80\x04", "from_dgl"},
    {"edges.csv.bz2", "BZh91AY&SY", "is compressed by bzip2, expected text or gzip (bzcat"},
    {"edges.xz",
     "\xFD"
     "7zXZ",
     "is compressed by xz"},
    {"utf16.txt",
     "\xFF\xFE"
     "0",
     "is UTF-16, expected UTF-8"},
    {"bipartite.txt", "% bip unweighted\n1 1\n",
     "left and right vertices have numbers of their own"},
    {"sum_overflows.txt", "0 1 3e38\n0 1 3e38\n", "inf (the edge 0 -> 1)"},

    {"empty.mtx", "", "no Matrix Market banner"},
    {"banner.mtx", "%%MatrixMarkt matrix coordinate real general\n", "no Matrix Market banner"},
    {"array.mtx", "%%MatrixMarket matrix array real general\n2 2\n", "format 'array'"},
    {"complex.mtx", MTX "complex general\n1 1 1\n1 1 1 0\n", "field 'complex'"},
    {"skew.mtx", MTX "real skew-symmetric\n2 2 1\n2 1 1\n", "symmetry 'skew-symmetric'"},
    {"no_size.mtx", MTX "real general\n% c\n", "expected \"rows columns entries\""},
    {"oblong.mtx", MTX "real general\n2 3 0\n", "2 x 3"},
    {"too_large.mtx", MTX "real general\n4294967296 4294967296 0\n", "4294967296"},
    {"few.mtx", MTX "real general\n2 2 3\n1 1 1\n2 2 1\n", "ends after 2 entries, announced 3"},
    {"many.mtx", MTX "real general\n2 2 1\n1 1 1\n2 2 1\n", "line 4: more entries than the 1"},
    {"range.mtx", MTX "real general\n2 2 1\n1 3 1\n", "line 3: entry (1, 3) is out of range"},
    {"zero.mtx", MTX "real general\n2 2 1\n0 1 1\n", "line 3: entry (0, 1) is out of range"},
    {"no_value.mtx", MTX "real general\n2 2 1\n1 1\n", "line 3 is no entry"},
    {"extra_value.mtx", MTX "pattern general\n2 2 1\n1 1 5\n", "line 3 is no entry"},
    {"empty_vertices.mtx", MTX "pattern general\n2147483647 2147483647 1\n1 1\n",
     "2147483647 with 1 entries, expected at least one for every 1000 vertices"},
    {"nan.mtx", MTX "real general\n2 2 1\n1 1 nan\n", "line 3 is no entry"},
    {"inf.mtx", MTX "real general\n2 2 1\n1 1 1e39\n", "line 3 is no entry"},
    {"word.mtx", MTX "pattern general\n2 2 1\none 1\n", "line 3 is no entry"},
    {"fraction.mtx", MTX "pattern general\n2 2 1\n1 1.5\n", "line 3 is no entry"},
    {"huge_entry.mtx", MTX "pattern general\n2 2 1\n1 99999999999999999999\n", "line 3 is no"},
    {"negative.mtx", MTX "real general\n-2 -2 1\n1 1 1\n", "-2 x -2"},
    {"size.mtx", MTX "real general\n2 2 one\n1 1 1\n", "line 2 expected \"rows columns entries\""},
    {"twice.mtx", MTX "real general\n2 2 1\n2 2 1\n1 1 1\n", "line 4: more entries than the 1"},

    {"empty.graph", "", "no METIS header"},
    {"header.graph", "3\n", "no METIS header"},
    {"zero.graph", "0 0\n", "0 vertices"},
    {"format.graph", "2 1 002\n2\n1\n", "format '002'"},
    {"short.graph", "3 2\n2\n1 3\n", "ends after 2 of 3 vertices"},
    {"long.graph", "2 1\n2\n1\n1\n", "line 4: more lines"},
    {"range.graph", "2 1\n3\n1\n", "line 2: '3' is no neighbour"},
    {"zero_based.graph", "2 1\n1\n0\n", "line 3: '0' is no neighbour"},
    {"word.graph", "2 1\n2\nx\n", "line 3: 'x'"},
    {"count.graph", "3 3\n2\n1 3\n2\n", "announces 3 edges"},
    {"reverse.graph", "3 2\n2 3\n1\n2\n", "vertex 0 has the neighbour 2 (counted from 0)"},
    {"negative.graph", "2 1\n-2\n1\n", "line 2: '-2' is no neighbour"},
    {"fraction.graph", "2 1\n1.5\n1\n", "line 2: '1.5' is no neighbour"},
    {"huge.graph", "2 1\n99999999999999999999\n1\n", "line 2: '99999999999999999999' is no"},
    {"nan.graph", "2 1 1\n2 nan\n1 nan\n", "line 2: neighbour 2 has no weight"},
    {"large.graph", "2147483648 1\n2\n1\n", "2147483648 vertices"},
    {"edges.graph", "2 -1\n2\n1\n", "-1 edges"},
    {"words.graph", "two one\n2\n1\n", "no METIS header"},
    {"constraints.graph", "2 1 011 x\n1 2 1\n1 1 1\n", "'x' is no number of vertex weights"},
    {"no_weight.graph", "2 1 1\n2 5\n1\n", "line 3: neighbour 1 has no weight"},
    {"unlike.graph", "2 1 1\n2 5\n1 6\n", "vertex 0 has the neighbour 1 (counted from 0)"},
    {"no_size.graph", "2 1 110 3\n1 1 1 1 2\n1 1 1\n", "line 3 has too few numbers"},
};

static void test_bad_texts(void **state)
{
    for (size_t k = 0; k < sizeof bad_texts / sizeof *bad_texts; k++)
        expect_refusal(files_text(*state, bad_texts[k].file, bad_texts[k].text), bad_texts[k].file,
                       bad_texts[k].phrase);
}

static void test_bad_files(void **state)
{
    const struct files *files = *state;
    expect_refusal(files_path(files, "missing.txt"), "missing.txt", "No such file");
    expect_refusal(files_write(files, "binary.txt", "0 1\n0\0 1\n", 9), "binary.txt",
                   "line 2 has a NUL byte");
    expect_refusal(
        files_write(files, "binary.zzz", "\1\2\0\3", 4), "binary.zzz",
        "unknown format; expected a dataset directory or a .npz, .mat, .mtx, .graph or .txt file");
    expect_refusal(files_text(files, "text.npz", "0 1\n"), "text.npz", "no .npz archive");
    expect_refusal("/dev/null", "/dev/null", "neither a file nor a directory");
}

static void test_truncated_gzip(void **state)
{
    const struct files *files = *state;
    const char *path = files_path(files, "cut.txt.gz");
    gzFile file = gzopen(path, "wb");
    for (unsigned k = 0; k < 20000; k++)
        gzprintf(file, "%u %u\n", k * 7919u % 10007u, k * 104729u % 9973u);
    gzclose(file);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size / 2), 0);
    expect_refusal(path, "cut.txt.gz", "truncated");
}

/* --- directories: one array of a valid dataset replaced
 * ------------------------------------------------------ */

#define ITEMS(type, ...) ((const type[]){__VA_ARGS__})

static const struct {
    const char *array, *descr;
    size_t item_bytes;
    int64_t rows, columns; /* columns 0: one dimension */
    const void *items;
    const char *phrase;
} bad_arrays[] = {
    {"indptr", "<i8", 8, 5, 0, ITEMS(int64_t, 1, 1, 3, 5, 6), "starts at 1, expected 0"},
    {"indptr", "<i8", 8, 5, 0, ITEMS(int64_t, 0, 3, 1, 5, 6), "falls from 3 to 1 at row 1"},
    {"indptr", "<i8", 8, 5, 0, ITEMS(int64_t, 0, 1, 3, 5, 5), "ends at 5, expected 6"},
    {"indptr", "<i8", 8, 5, 0, ITEMS(int64_t, 0, 1, 3, INT64_MAX, 6), "row 2 is 3 to 9"},
    {"indptr", "<i8", 8, 4, 0, ITEMS(int64_t, 0, 1, 3, 6), "expected 4 as in meta.json"},
    {"indptr", "<i8", 8, 0, 0, ITEMS(int64_t, 0), "has 0 items, expected 1 to"},
    {"indptr", "<i8", 8, 5, 1, ITEMS(int64_t, 0, 1, 3, 5, 6), "has 2 dimensions, expected 1"},
    {"indptr", "<f4", 4, 5, 0, ITEMS(float, 0, 1, 2.5f, 5, 6), "element 2 is 2.5"},
    {"indptr", "<u8", 8, 5, 0, ITEMS(uint64_t, 0, UINT64_MAX, 3, 5, 6), "expected a 64-bit"},
    {"indices", "<i4", 4, 6, 0, ITEMS(int32_t, 1, 0, 4, 1, 3, 2), "row 1 has column 4"},
    {"indices", "<i4", 4, 6, 0, ITEMS(int32_t, 1, 0, -1, 1, 3, 2), "row 1 has column -1"},
    {"indices", "<i4", 4, 5, 0, ITEMS(int32_t, 1, 0, 2, 1, 3), "expected 6 as in meta.json"},
    {"indices", "<i8", 8, 6, 0, ITEMS(int64_t, 1, 0, 1L << 32, 1, 3, 2), "expected a 32-bit"},
    {"indices", "<U1", 4, 6, 0, ITEMS(int32_t, 49, 48, 50, 49, 51, 50), "holds text"},
    {"indices", "<c8", 8, 6, 0, ITEMS(int64_t, 0, 0, 0, 0, 0, 0), "type '<c8' is not read"},
    {"indices", ">i4", 4, 6, 0, ITEMS(int32_t, 0, 0, 0, 0, 0, 0), "big endian"},
    {"indices", "<i4", 4, 6, 0, ITEMS(int32_t, 1, 0, 3, 1, 3, 2), "vertex 2 has the neighbour 1"},
    {"weights", "<f4", 4, 5, 0, ITEMS(float, 1, 1, 1, 1, 1), "has 5 items, expected 6"},
    {"weights", "<f4", 4, 6, 0, ITEMS(float, 1, 1, 1, INFINITY, 1, 1), "row 2, column 1 is inf"},
    {"weights", "<f8", 8, 6, 0, ITEMS(double, 1, 1, 1e300, 1, 1, 1), "row 1, column 2 is inf"},
    {"weights", "<f4", 4, 6, 0, ITEMS(float, 1, 1, 2, 3, 1, 1), "vertex 1 has the neighbour 2"},
    {"features", "<f4", 4, 4, 2, ITEMS(float, 1, 2, 3, NAN, 5, 6, 7, 8), "row 1, column 1 is"},
    {"features", "<f4", 4, 3, 2, ITEMS(float, 1, 2, 3, 4, 5, 6), "has 3 rows, expected 4"},
    {"features", "<f4", 4, 4, 1, ITEMS(float, 1, 2, 3, 4), "expected 2 as in meta.json"},
    {"features", "<f4", 4, 8, 0, ITEMS(float, 1, 2, 3, 4, 5, 6, 7, 8), "1 dimension, expected 2"},
    {"features_indptr", "<i8", 8, 5, 0, ITEMS(int64_t, 0, 0, 0, 0, 0), "features_indices.npy"},
    {"labels", "<i4", 4, 4, 0, ITEMS(int32_t, 0, 2, 0, 1), "label 2 of vertex 1"},
    {"labels", "<i4", 4, 4, 0, ITEMS(int32_t, 0, 1, -2, 1), "label -2 of vertex 2"},
    {"labels", "<i4", 4, 3, 0, ITEMS(int32_t, 0, 1, 0), "has 3 rows, expected 4"},
    {"labels", "<f4", 4, 4, 3, ITEMS(float, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1), "has 3 columns"},
    {"labels", "<f4", 4, 4, 2, ITEMS(float, 0, 1, 0, 1, 0, INFINITY, 0, 1), "column 1 is inf"},
    {"labels", "<f4", 4, 4, 2, ITEMS(float, 0, 1, 0, 1, 0, .5f, 0, 1), "row 2, column 1 is 0.5"},
    {"labels", "<f4", 4, 4, 0, ITEMS(float, 0, 1, .5f, 1), "element 2 is 0.5"},
    {"labels", "<i4", 4, 4, 2, ITEMS(int32_t, 0, 1, 0, 1, 0, 2, 0, 1), "row 2, column 1 is 2"},
    {"train_idx", "<i8", 8, 1, 0, ITEMS(int64_t, 4), "item 0 is vertex 4, expected 0 to 3"},
    {"train_idx", "<i8", 8, 1, 0, ITEMS(int64_t, -1), "item 0 is vertex -1"},
    {"train_idx", "<i8", 8, 3, 0, ITEMS(int64_t, 3, 0, 3), "vertex 3 is there twice"},
    {"val_idx", "<i8", 8, 2, 0, ITEMS(int64_t, 0, 3), "vertex 0 is in both train_idx and val_idx"},
    {"test_idx", "<i8", 8, 1, 0, ITEMS(int64_t, 1), "vertex 1 is in both val_idx and test_idx"},
    {"test_idx", "<i8", 8, 1, 0, ITEMS(int64_t, 0), "vertex 0 is in both test_idx and train_idx"},
    {"original_ids", "<i8", 8, 3, 0, ITEMS(int64_t, 2, 0, 1), "has 3 rows, expected 4"},
    {"original_ids", "<i8", 8, 4, 1, ITEMS(int64_t, 3, 2, 0, 1), "has 2 dimensions, expected 1"},
    {"original_ids", "<i8", 8, 4, 0, ITEMS(int64_t, 3, 2, 4, 1), "item 2 is vertex 4, expected"},
    {"original_ids", "<i8", 8, 4, 0, ITEMS(int64_t, 3, -1, 0, 1), "item 1 is vertex -1, expected"},
    {"original_ids", "<i8", 8, 4, 0, ITEMS(int64_t, 3, 2, 0, 2), "vertex 1 is there 0 times"},
    {"original_ids", "<f4", 4, 4, 0, ITEMS(float, 3, 2, 0.5f, 1), "element 2 is 0.5"},
};

static void test_bad_arrays(void **state)
{
    for (size_t k = 0; k < sizeof bad_arrays / sizeof *bad_arrays; k++) {
        char name[32], file[64];
        snprintf(name, sizeof name, "array%zu", k);
        const char *dir = files_dataset(*state, name);
        snprintf(file, sizeof file, "%s/%s.npy", name, bad_arrays[k].array);
        const int64_t shape[] = {bad_arrays[k].rows, bad_arrays[k].columns};
        assert_int_equal(sl_npy_write(files_path(*state, file), bad_arrays[k].descr,
                                      bad_arrays[k].item_bytes, bad_arrays[k].columns ? 2 : 1,
                                      shape, bad_arrays[k].items),
                         SL_OK);
        expect_refusal(dir, name, bad_arrays[k].phrase);
    }
}

/* Headers of features.npy, followed by 32 bytes of data. */
static const struct {
    const char *header, *phrase;
} bad_headers[] = {
    {"{'descr': '|O', 'fortran_order': False, 'shape': (4, 2), }", "pickled"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }", "truncated"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), }", "announces only 16"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
     "its .npy header is not"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (3037000499, 3037000499), }", "truncated"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }",
     "its .npy header is not"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -2), }", "its .npy header is not"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,8), }",
     "its .npy header is not"},
    {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4, 2), }", "its .npy header is not"},
    {"{'descr': '<f4', 'shape': (4, 2), }", "its .npy header is not"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2)", "its .npy header is not"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (8,), }",
     "its .npy header is not"},
    {"{'descr': '<f3', 'fortran_order': False, 'shape': (4, 2), }", "type '<f3' is not read"},
    {"{'descr': '', 'fortran_order': False, 'shape': (4, 2), }", "type '' is not read"},
    {"", "its .npy header is not"},
};

static void test_bad_headers(void **state)
{
    static const char zeros[32];
    for (size_t k = 0; k < sizeof bad_headers / sizeof *bad_headers; k++) {
        char name[32], file[64], bytes[256];
        snprintf(name, sizeof name, "npy%zu", k);
        const char *dir = files_dataset(*state, name);
        snprintf(file, sizeof file, "%s/features.npy", name);
        files_write(*state, file, bytes,
                    npy_bytes(bytes, sizeof bytes, bad_headers[k].header, zeros, sizeof zeros));
        expect_refusal(dir, file, bad_headers[k].phrase);
    }
}

/* Whole files of a valid dataset replaced. */
static const struct {
    const char *file, *bytes, *phrase;
} bad_members[] = {
    {"labels.npy", "NUMPY", "bad magic"},
    {"labels.npy", "", "is empty"},
    {"labels.npy", "\x93NUMPY\x01", "bad magic"},
    {"labels.npy", "\x93NUMPY\x09...........", "version 9"},
    {"labels.npy", "\x93NUMPY\x01.\xff\xff{}", "truncated in its header"},
    {"labels.npy", "\x93NUMPY\x02.\xff", "bad magic"},
    {"labels.npy", "\x93NUMPY\x02.\xff\xff\xff", "truncated in its header"},
    {"labels.npy", "\x93NUMPY\x02.\xff\xff\xff\xff{}", "truncated in its header"},
    {"meta.json", "{\"nodes\": 4,\n", "line 2"},
    {"meta.json", "[1]", "expected a JSON object"},
    {"meta.json", "{\"nodes\": 5}", "expected 5 as in meta.json"},
    {"meta.json", "{\"nodes\": -4}", "\"nodes\" is no count"},
    {"meta.json", "{\"nodes\": \"4\"}", "\"nodes\" is no count"},
    {"meta.json", "{\"directed\": 0}", "\"directed\" is no flag"},
    {"meta.json", "{\"features\": {\"count\": 3}}", "expected 3 as in meta.json"},
};

static void test_bad_members(void **state)
{
    for (size_t k = 0; k < sizeof bad_members / sizeof *bad_members; k++) {
        char name[32], file[64];
        snprintf(name, sizeof name, "member%zu", k);
        const char *dir = files_dataset(*state, name);
        snprintf(file, sizeof file, "%s/%s", name, bad_members[k].file);
        files_text(*state, file, bad_members[k].bytes);
        expect_refusal(dir, name, bad_members[k].phrase);
    }
}

static void test_missing_members(void **state)
{
    static const char *const required[] = {"indptr.npy", "indices.npy"};
    const char *bare = files_dataset(*state, "bare");
    assert_int_equal(unlink(files_path(*state, "bare/meta.json")), 0);
    expect_refusal(bare, "bare", "has indptr.npy but no meta.json, expected one (\"{}\" is enough");
    for (size_t k = 0; k < 2; k++) {
        char name[32], file[64];
        snprintf(name, sizeof name, "missing%zu", k);
        const char *dir = files_dataset(*state, name);
        snprintf(file, sizeof file, "%s/%s", name, required[k]);
        assert_int_equal(unlink(files_path(*state, file)), 0);
        expect_refusal(dir, file, "No such file");
    }
}

/* Every shorter version of a file is refused, whatever was cut off. */
static void test_truncated_array(void **state)
{
    const char *dir = files_dataset(*state, "cut");
    const char *path = files_path(*state, "cut/features.npy");
    for (off_t size = 127; size >= 0; size--) { /* 128 bytes of header, 32 of data */
        assert_int_equal(truncate(path, size), 0);
        expect_refusal(dir, "cut/features.npy", "");
    }
}

/* --- archives
 * -----------------------------------------------------------------------------------------------
 */

struct member {
    const char *name, *header, *bytes;
    size_t size;
};

static const char *write_archive(const struct files *files, const char *name,
                                 const struct member *members)
{
    const char *path = files_path(files, name);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(zip);
    for (; members->name; members++) {
        char *bytes = malloc(512);
        const size_t size = npy_bytes(bytes, 512, members->header, members->bytes, members->size);
        zip_source_t *source = zip_source_buffer(zip, bytes, size, 1);
        const zip_int64_t index = zip_file_add(zip, members->name, source, 0);
        assert_true(index >= 0);
        zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0);
    }
    assert_int_equal(zip_close(zip), 0);
    return path;
}

#define INTS(n)    "{'descr': '<i4', 'fortran_order': False, 'shape': (" #n ",), }"
#define PAIRS(n)   "{'descr': '<i4', 'fortran_order': False, 'shape': (" #n ", 2), }"
#define EMPTY_ROWS "{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 0), }"
#define MASKS      "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 3), }"
#define OBJECT     "{'descr': '|O', 'fortran_order': False, 'shape': (), }"
#define WORD       "{'descr': '|S3', 'fortran_order': False, 'shape': (), }"
#define MEMBER(name, header, type, ...)                              \
    {                                                                \
        name ".npy", header, (const char *)ITEMS(type, __VA_ARGS__), \
            sizeof ITEMS(type, __VA_ARGS__)                          \
    }
#define EDGES MEMBER("edges", PAIRS(2), int32_t, 0, 1, 1, 2)
#define NODES MEMBER("node_features", PAIRS(3), int32_t, 1, 2, 3, 4, 5, 6)

#define SPARSE(prefix, rows, items, ...)                            \
    MEMBER(prefix "data", INTS(2), int32_t, 1, 1),                  \
        MEMBER(prefix "indices", INTS(2), int32_t, 0, 1),           \
        MEMBER(prefix "indptr", INTS(items), int32_t, __VA_ARGS__), \
        MEMBER(prefix "shape", INTS(2), int32_t, rows, 3)

static const struct {
    const char *phrase; /* NULL: legal, with three vertices */
    struct member members[9];
} archives[] = {
    {NULL, {EDGES, NODES}},
    {NULL,
     {MEMBER("indptr", INTS(4), int32_t, 0, 1, 2, 2), MEMBER("indices", INTS(2), int32_t, 1, 2),
      MEMBER("data", INTS(2), int32_t, 1, 1), MEMBER("shape", INTS(2), int32_t, 3, 3),
      MEMBER("format", WORD, char, 'c', 's', 'c')}},
    {"has no graph in a known form", {NODES}},
    {"pickled", {MEMBER("adj_matrix", OBJECT, char, '.', 2)}},
    {"pickled", {EDGES, MEMBER("node_features", OBJECT, char, '.', 2)}},
    {"node_features is missing", {EDGES}},
    {"row 1 is the edge 1 -> 3", {MEMBER("edges", PAIRS(2), int32_t, 0, 1, 1, 3), NODES}},
    {"row 0 is the edge -1 -> 1", {MEMBER("edges", PAIRS(1), int32_t, -1, 1), NODES}},
    {"is no mask", {EDGES, NODES, MEMBER("train_masks", INTS(2), int32_t, 1, 0)}},
    {NULL, {EDGES, NODES, MEMBER("train_masks", INTS(3), int32_t, 1, 0, 0)}},
    {"vertex 0 is in both",
     {EDGES, NODES, MEMBER("train_masks", MASKS, char, 1, 0, 0, 0, 0, 0),
      MEMBER("val_masks", MASKS, char, 1, 0, 1, 0, 0, 0)}},
    {"expected a square matrix",
     {MEMBER("indptr", INTS(2), int32_t, 0, 1), MEMBER("indices", INTS(1), int32_t, 1),
      MEMBER("data", INTS(1), int32_t, 1), MEMBER("shape", INTS(2), int32_t, 1, 2)}},
    {"2147483647 x 1, expected a square matrix",
     {MEMBER("indptr", INTS(2), int32_t, 0, 1), MEMBER("indices", INTS(1), int32_t, 0),
      MEMBER("data", INTS(1), int32_t, 1), MEMBER("shape", INTS(2), int32_t, INT32_MAX, 1),
      MEMBER("format", WORD, char, 'c', 's', 'c')}},
    {"node_features: is 2147483647 x 0", {EDGES, {"node_features.npy", EMPTY_ROWS, "", 0}}},
    {"expected 9 + 1",
     {MEMBER("indptr", INTS(2), int32_t, 0, 1), MEMBER("indices", INTS(1), int32_t, 0),
      MEMBER("data", INTS(1), int32_t, 1), MEMBER("shape", INTS(2), int32_t, 9, 9)}},
    {"no matrix shape",
     {MEMBER("indptr", INTS(2), int32_t, 0, 1), MEMBER("indices", INTS(1), int32_t, 0),
      MEMBER("data", INTS(1), int32_t, 1), MEMBER("shape", INTS(1), int32_t, 1)}},
    {"sparse format 'dia'", {MEMBER("format", WORD, char, 'd', 'i', 'a')}},
    {NULL,
     {MEMBER("row", INTS(3), int32_t, 0, 1, 0), MEMBER("col", INTS(3), int32_t, 1, 2, 1),
      MEMBER("data", INTS(3), int32_t, 1, 1, 1), MEMBER("shape", INTS(2), int32_t, 3, 3),
      MEMBER("format", WORD, char, 'c', 'o', 'o')}},
    {"col: has 1 rows, expected 2",
     {MEMBER("row", INTS(2), int32_t, 0, 1), MEMBER("col", INTS(1), int32_t, 1),
      MEMBER("shape", INTS(2), int32_t, 3, 3), MEMBER("format", WORD, char, 'c', 'o', 'o')}},
    {"item 1 is entry (1, 3), expected 0 to 2",
     {MEMBER("row", INTS(2), int32_t, 0, 1), MEMBER("col", INTS(2), int32_t, 1, 3),
      MEMBER("data", INTS(2), int32_t, 1, 1), MEMBER("shape", INTS(2), int32_t, 3, 3),
      MEMBER("format", WORD, char, 'c', 'o', 'o')}},
    {"adjacency is 3 x 2, expected a square matrix",
     {MEMBER("shape", INTS(2), int32_t, 3, 2), MEMBER("format", WORD, char, 'c', 'o', 'o')}},
    {NULL, {SPARSE("adj_", 3, 4, 0, 1, 2, 2), SPARSE("attr_", 3, 4, 0, 1, 2, 2)}},
    {"attr_indptr: has 2 rows of features, expected 3 (vertices)",
     {SPARSE("adj_", 3, 4, 0, 1, 2, 2), SPARSE("attr_", 2, 3, 0, 1, 2)}},
    {"attr_indptr: has 5 rows of features, expected 3 (vertices)",
     {SPARSE("adj_", 3, 4, 0, 1, 2, 2), SPARSE("attr_", 5, 6, 0, 1, 2, 2, 2, 2)}},
    {"adj_indptr is missing", {MEMBER("adj_data", INTS(1), int32_t, 1)}},
};

static void test_archives(void **state)
{
    for (size_t k = 0; k < sizeof archives / sizeof *archives; k++) {
        char name[32];
        snprintf(name, sizeof name, "archive%zu.npz", k);
        const char *path = write_archive(*state, name, archives[k].members);
        if (archives[k].phrase) {
            expect_refusal(path, name, archives[k].phrase);
            continue;
        }
        struct sl_dataset data;
        if (sl_dataset_open(path, &data) != SL_OK)
            fail_msg("%s", sl_error_message());
        assert_int_equal(data.vertices, 3);
        sl_dataset_close(&data);
    }
}

/* One byte of the data flipped: the archive's own checksum tells. */
static void test_damaged_archive(void **state)
{
    const struct member members[] = {
        MEMBER("edges", PAIRS(2), int32_t, 0x5A5A5A5A, 0, 1, 2), NODES, {0}};
    const char *path = write_archive(*state, "damaged.npz", members);
    FILE *file = fopen(path, "r+b");
    char bytes[4096];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    char *found = memmem(bytes, size, "\x5A\x5A\x5A\x5A", 4);
    assert_non_null(found);
    fseek(file, found - bytes, SEEK_SET);
    fputs("\x01", file);
    fclose(file);
    expect_refusal(path, "damaged.npz", "damaged");
    assert_int_equal(truncate(path, (off_t)size / 2), 0);
    expect_refusal(path, "damaged.npz", "no .npz archive");
}

/* Change the sizes of each member in the directory at the end of an archive: a stream of 4 MiB, and
 * 4 GiB in it, which deflate could do. */
static void test_lying_archive(void **state)
{
    const struct member members[] = {EDGES, NODES, {0}};
    const char *path = write_archive(*state, "lying.npz", members);
    FILE *file = fopen(path, "r+b");
    char bytes[4096], *end = bytes + fread(bytes, 1, sizeof bytes, file);
    for (char *at = bytes; (at = memmem(at, (size_t)(end - at), "PK\1\2", 4)); at++) {
        fseek(file, at - bytes + 20, SEEK_SET);
        fwrite("\0\0\x40\0\0\0\xFF\xFF", 1, 8, file);
    }
    fclose(file);
    expect_refusal(path, "lying.npz", "its size is unknown or impossible");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_texts),       cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_truncated_gzip),  cmocka_unit_test(test_bad_arrays),
        cmocka_unit_test(test_bad_headers),     cmocka_unit_test(test_bad_members),
        cmocka_unit_test(test_missing_members), cmocka_unit_test(test_truncated_array),
        cmocka_unit_test(test_archives),        cmocka_unit_test(test_damaged_archive),
        cmocka_unit_test(test_lying_archive),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
