/* The picture of tasks (core/dag.h): nodes, and arrows from the last one that wrote a tile. */
#include <unistd.h>

#include "core/dag.h"
#include "core/error.h"
#include "tests/unit.h"

static char path[] = "/tmp/test_dag_XXXXXX";

/* All that was written. */
static char *written(void)
{
    char *text = calloc(1, 1 << 20);
    sl_dag_end();
    assert_int_equal(sl_dag_write(path), 0);
    assert_int_equal(sl_dag_size(), 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static int count(const char *text, const char *what)
{
    int found = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        found++;
    return found;
}

static void add(const char *name, const void *tile, unsigned access)
{
    sl_dag_task(name, 0x2E8B57);
    sl_dag_touch(tile, access);
}

SL_TEST(test_arrows)
{
    const char x = 0, y = 0;
    add("starling_before", &x, SL_DAG_WRITES); /* nothing is drawn yet */
    sl_dag_begin();
    add("starling_reads", &x, SL_DAG_READS);                /* 0: written before the picture */
    add("starling_writes", &x, SL_DAG_WRITES);              /* 1 */
    add("starling_adds", &x, SL_DAG_READS | SL_DAG_WRITES); /* 2, from 1 */
    add("both", &x, SL_DAG_READS);                          /* 3, from 2, once */
    sl_dag_touch(&x, SL_DAG_READS);
    sl_dag_touch(&y, SL_DAG_WRITES);
    sl_dag_message(&y, 5, SL_DAG_READS);    /* 4, from 3 */
    sl_dag_message(&x, 6, SL_DAG_WRITES);   /* 5 */
    add("starling_last", &x, SL_DAG_READS); /* 6, from 5 */
    assert_int_equal(sl_dag_size(), 7 + 4);
    char *text = written();
    assert_int_equal(count(text, " -> "), 4);
    assert_int_equal(count(text, "[label="), 7);
    assert_non_null(strstr(text, "t1 -> t2;"));
    assert_non_null(strstr(text, "t2 -> t3;"));
    assert_non_null(strstr(text, "t3 -> t4;"));
    assert_non_null(strstr(text, "t5 -> t6;"));
    assert_non_null(strstr(text, "t4 [label=\"to rank 5\""));
    assert_non_null(strstr(text, "t5 [label=\"from rank 6\""));
    assert_non_null(strstr(text, "t2 [label=\"adds\" fillcolor=\"#2E8B57\""));
    free(text);
}

/* The next picture knows nothing of the one before it, however many tasks and tiles. */
SL_TEST(test_again)
{
    static const char tiles[1000];
    sl_dag_begin();
    add("reads", &tiles[0], SL_DAG_READS);
    for (int t = 0; t < 999; t++) {
        add("sum", &tiles[t], SL_DAG_READS | SL_DAG_WRITES);
        sl_dag_touch(&tiles[t + 1], SL_DAG_WRITES);
    }
    char *text = written();
    assert_int_equal(count(text, "[label="), 1000);
    assert_int_equal(count(text, " -> "), 998);
    free(text);
}

SL_TEST(test_refused)
{
    sl_dag_begin();
    sl_dag_end();
    assert_int_equal(sl_dag_write("/nowhere/at/all"), SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), "/nowhere/at/all: "));
    sl_dag_begin();
    char *text = written();
    assert_int_equal(count(text, "[label="), 0);
    free(text);
}

int main(void)
{
    const int file = mkstemp(path);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrows),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_refused),
    };
    if (file < 0)
        return 1;
    close(file);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
