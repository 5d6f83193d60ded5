/* Files that are written: read back they are the graph that they were, and numbers stand where the
 * format's description has them. */
#include "format_files.h"

#include "data/formats/formats.h"

static void read_text(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void expect_text(const struct files *files, const struct sl_dataset *data, const char *name,
                        const char *wanted)
{
    char text[1024];
    const char *path = files_path(files, name);
    if (sl_dataset_write_as(data, path) != SL_OK)
        fail_msg("%s", sl_error_message());
    read_text(path, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void test_text(void **state)
{
    struct sl_dataset data, directed;
    open_ok(files_dataset(*state, "path"), &data);
    expect_text(*state, &data, "path.mtx",
                "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 2\n4 3\n");
    expect_text(*state, &data, "path.graph", "4 3\n2\n1 3\n2 4\n3\n");
    expect_text(*state, &data, "path.txt", "0 1\n1 0\n1 2\n2 1\n2 3\n3 2\n");
    expect_text(*state, &data, "path.CSV", "0,1\n1,0\n1,2\n2,1\n2,3\n3,2\n");
    sl_dataset_close(&data);
    open_ok(files_text(*state, "arrows.txt", "0 1 2\n1 0 2\n2 2 0.1\n2 0 -1e-20\n"), &directed);
    expect_text(*state, &directed, "arrows.mtx",
                "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 2\n2 1 2\n"
                "3 1 -9.99999968e-21\n3 3 0.100000001\n");
    expect_text(*state, &directed, "arrows.tsv",
                "0\t1\t2\n1\t0\t2\n2\t0\t-9.99999968e-21\n2\t2\t0.100000001\n");
    const char *path = files_path(*state, "arrows.graph");
    assert_int_equal(sl_dataset_write_as(&directed, path), SL_ERR_DATA);
    assert_non_null(strstr(sl_error_message(), "undirected"));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(sl_dataset_write_as(&directed, files_path(*state, "arrows.mtx.gz")),
                     SL_ERR_USAGE);
    sl_dataset_close(&directed);
    open_ok(files_text(*state, "loop.txt", "0 1 3\n1 0 3\n1 1 2\n"), &data);
    expect_text(*state, &data, "loop.graph", "2 1 001\n2 3\n1 3\n");
    expect_text(*state, &data, "loop.mtx",
                "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 3\n2 2 2\n");
    sl_dataset_close(&data);
    static const char *const weights[] = {"0 1 0.5\n1 0 0.5\n", "0 1 1e19\n1 0 1e19\n"};
    for (size_t w = 0; w < COUNT(weights); w++) {
        open_ok(files_text(*state, "weights.txt", weights[w]), &data);
        assert_int_equal(sl_dataset_write_as(&data, files_path(*state, "weights.graph")),
                         SL_ERR_DATA);
        assert_non_null(strstr(sl_error_message(), "whole numbers from 1 to 2^31 - 1"));
        sl_dataset_close(&data);
    }
}

/* Real graphs, and what each format keeps of them. */
static void test_round_trips(void **state)
{
    static const char *const graphs[] = {"cora", "blogcatalog_multilabel", "minesweeper"};
    static const char *const ends[] = {"npz", "mtx", "graph", "txt", "csv"};
    for (size_t g = 0; g < COUNT(graphs); g++) {
        struct sl_dataset data, copy;
        open_ok(format_shared(graphs[g]), &data);
        for (size_t e = 0; e < COUNT(ends); e++) {
            char name[64];
            snprintf(name, sizeof name, "%s.%s", graphs[g], ends[e]);
            const char *path = files_path(*state, name);
            if (sl_dataset_write_as(&data, path) != SL_OK)
                fail_msg("%s", sl_error_message());
            open_ok(path, &copy);
            assert_same_csr(&data.adjacency, &copy.adjacency);
            assert_int_equal(data.symmetric, copy.symmetric);
            if (e == 0)
                assert_same_dataset(&data, &copy);
            sl_dataset_close(&copy);
        }
        sl_dataset_close(&data);
    }
}

/* Weights that are no whole numbers come back to the bit. */
static void test_weights(void **state)
{
    static char text[20000];
    size_t used = 0;
    for (unsigned k = 0; k < 400; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%u %u %.9g\n", k % 20, k / 20,
                                 sin(k) * pow(10, k % 60 - 30.0));
    struct sl_dataset data, copy;
    open_ok(files_text(*state, "weights.txt", text), &data);
    static const char *const names[] = {"again.txt", "again.mtx", "again.npz"};
    for (size_t k = 0; k < COUNT(names); k++) {
        const char *path = files_path(*state, names[k]);
        assert_int_equal(sl_dataset_write_as(&data, path), SL_OK);
        open_ok(path, &copy);
        assert_same_csr(&data.adjacency, &copy.adjacency);
        sl_dataset_close(&copy);
    }
    sl_dataset_close(&data);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_weights, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_round_trips, files_setup, files_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
