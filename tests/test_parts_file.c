/* Partitions as files: a partition that is written and read is the same, and an error says how a
 * file is wrong. */
#include "data_files.h"

#include "data/partition/parts.h"
#include "tests/fixtures.h"

static struct sl_parts make(const struct sl_dataset *data, const char *method, int parts)
{
    struct sl_parts out;
    const struct sl_parts_options options = {sl_parts_find_method(method), parts, 5, 1.0};
    assert_int_equal(sl_parts_make(data, &options, &out), SL_OK);
    return out;
}

static void test_round_trip(void **state)
{
    static const char *const methods[] = {"libra", "hdrf", "metis", "random"};
    for (int f = 0; f < sl_fixture_count; f++)
        for (int m = 0; m < 4; m++) {
            struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
            struct sl_parts parts = make(&data, methods[m], 3), copy;
            const char *path = files_path(*state, "any.npy");
            json_t *report = sl_parts_report(&data, &parts);
            const int64_t count = m < 2 ? entries(&data) : data.vertices;
            assert_non_null(report);
            assert_int_equal(sl_parts_write(&parts, report, path), SL_OK);
            assert_int_equal(sl_parts_open(path, &copy), SL_OK);
            assert_string_equal(copy.method, methods[m]);
            assert_int_equal(copy.of_edges, m < 2);
            assert_int_equal(copy.parts, 3);
            assert_true(copy.seed == 5 && copy.fingerprint == parts.fingerprint);
            assert_int_equal(copy.vertices, data.vertices);
            assert_int_equal(copy.entries, entries(&data));
            assert_memory_equal(copy.part, parts.part, (size_t)count * sizeof *copy.part);
            assert_int_equal(sl_parts_check(&copy, path), SL_OK);
            json_decref(report);
            sl_parts_close(&copy);
            sl_parts_close(&parts);
            sl_fixture_close(&data);
        }
}

/* Directed or not, weighted or not, the fingerprint is that of the pattern. */
SL_TEST(test_fingerprint)
{
    struct sl_dataset one = sl_fixture_open(sl_fixture_find("undirected"));
    struct sl_dataset other = sl_fixture_open(sl_fixture_find("directed"));
    struct sl_parts a = make(&one, "libra", 2), b = make(&one, "random", 4);
    struct sl_parts c = make(&other, "libra", 2);
    float *weights = calloc((size_t)entries(&one) + 1, sizeof *weights);
    struct sl_dataset weighted = one;
    weighted.adjacency.values = weights;
    struct sl_parts d = make(&weighted, "libra", 2);
    assert_true(a.fingerprint == b.fingerprint && a.fingerprint != c.fingerprint);
    assert_true(a.fingerprint == d.fingerprint && a.checksum == d.checksum);
    free(weights);
    sl_parts_close(&a);
    sl_parts_close(&b);
    sl_parts_close(&c);
    sl_parts_close(&d);
    sl_fixture_close(&one);
    sl_fixture_close(&other);
}

static void test_paths(void **state)
{
    struct sl_block *scratch = NULL;
    struct sl_parts parts = {.method = "libra", .parts = 16};
    char link[300];
    const struct files *files = *state;
    const char *file = files_text(files, "graph.mtx", "");
    assert_string_equal(sl_parts_path(file, &parts, &scratch), "graph.mtx-libra-16.npy");
    snprintf(link, sizeof link, "%s/./", files->dir);
    assert_null(strchr(sl_parts_path(link, &parts, &scratch), '/')); /* in no other directory */
    assert_string_equal(sl_parts_path("/", &parts, &scratch), "graph-libra-16.npy");
    assert_int_equal(sl_parts_write(&parts, NULL, files_path(files, "x.bin")), SL_ERR_USAGE);
    sl_block_free_all(&scratch);
}

/* ---- What is wrong with files ---- */

static const char good[] =
    "{\"method\": \"libra\", \"kind\": \"edges\", \"parts\": 2, \"seed\": 0, "
    "\"vertices\": 4, \"entries\": 6, \"fingerprint\": "
    "\"0123456789abcdef\", \"checksum\": \"%016llx\"}";

static void assert_refused(const struct files *files, const char *json, const void *npy,
                           size_t size, const char *reason)
{
    struct sl_parts parts;
    files_text(files, "p.json", json);
    const char *path = files_write(files, "p.npy", npy, size);
    int rc = sl_parts_open(path, &parts);
    if (!rc)
        rc = sl_parts_check(&parts, path);
    assert_int_equal(rc, SL_ERR_DATA);
    if (!strstr(sl_error_message(), reason))
        fail_msg("\"%s\" does not say \"%s\"", sl_error_message(), reason);
    sl_parts_close(&parts);
}

/* `json` with its first `from` replaced by `to`. */
static const char *replace(const char *json, const char *from, const char *to)
{
    static char out[512];
    const char *at = strstr(json, from);
    assert_non_null(at);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
    return out;
}

static void test_wrong_files(void **state)
{
    static const int32_t part[] = {0, 1, 1, 0, 1, 1}, high[] = {0, 1, 2, 0, 1, 1},
                         low[] = {0, 1, 1, -1, 1, 1}, other[] = {1, 1, 1, 0, 1, 1};
    static const char six[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }\n",
                      five[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (5,), }\n",
                      table[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n",
                      real[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n";
    static const struct {
        const char *from, *to, *header;
        const int32_t *part;
        const char *reason;
    } cases[] = {
        {"", "", five, part, "p.npy: has 5 parts, expected 6"},
        {"", "", table, part, "p.npy: has 2 dimensions, expected 1"},
        {"", "", real, other, "expected a 32-bit integer"},
        {"", "", six, high, "p.npy: element 2 is 2, expected 0 to 1"},
        {"", "", six, low, "p.npy: element 3 is -1"},
        {"", "", six, other, "describes another partition"},
        {"edges", "vertices", six, part, "p.npy: has 6 parts, expected 4"},
        {"edges", "tiles", six, part, "p.json: \"kind\""},
        {"\"parts\": 2", "\"parts\": 0", six, part, "p.json: \"parts\""},
        {"\"parts\": 2", "\"parts\": 1.5", six, part, "p.json: \"parts\""},
        {"\"parts\": 2", "\"parts\": 99999999999", six, part, "p.json: \"parts\""},
        {"\"seed\": 0, ", "", six, part, "p.json: \"seed\""},
        {"\"vertices\": 4", "\"vertices\": -4", six, part, "p.json: \"vertices\""},
        {"0123456789abcdef", "0123", six, part, "p.json: \"fingerprint\""},
        {"0123456789abcdef", "0123456789abcdeg", six, part, "p.json: \"fingerprint\""},
        {"{", "[", six, part, "p.json: line 1"},
    };
    char npy[256], json[512];
    snprintf(json, sizeof json, good, (unsigned long long)sl_parts_checksum(part, 0, 6));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const size_t bytes = cases[c].header == five ? 20 : 24;
        const size_t size = npy_bytes(npy, sizeof npy, cases[c].header, cases[c].part, bytes);
        assert_refused(*state, replace(json, cases[c].from, cases[c].to), npy, size,
                       cases[c].reason);
    }
    const size_t size = npy_bytes(npy, sizeof npy, six, part, 24);
    assert_refused(*state, json, npy, size - 4, "p.npy");
    struct sl_parts parts;
    files_text(*state, "p.json", json);
    assert_int_equal(sl_parts_open(files_write(*state, "p.npy", npy, size), &parts), SL_OK);
    assert_int_equal(sl_parts_check(&parts, "p.npy"), SL_OK);
    sl_parts_close(&parts);
    assert_int_equal(sl_parts_open(files_path(*state, "none.npy"), &parts), SL_ERR_DATA);
    assert_non_null(strstr(sl_error_message(), "none.json"));
    sl_parts_close(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_wrong_files),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
