/* JSON without memory: each allocation of jansson fails once, and from then on. A parser and a
 * printer must fail, or give what they give with memory. */
#include <errno.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/json_file.h"
#include "tests/unit.h"

static long calls, fails_at; /* 0: no call fails */
static int later;            /* all later calls fail, too */

/* Blocks that jansson has. A parser that gets no memory leaves its blocks behind. */
static struct block {
    struct block *before, *after;
} all = {&all, &all};

static void *take(size_t bytes)
{
    calls++;
    const int fails = fails_at > 0 && (later ? calls >= fails_at : calls == fails_at);
    struct block *block = fails ? NULL : malloc(sizeof *block + bytes);
    if (!block)
        return NULL;
    *block = (struct block){&all, all.after};
    block->after->before = all.after = block;
    return block + 1;
}

static void give(void *memory)
{
    struct block *block = (struct block *)memory - 1;
    if (!memory)
        return;
    block->before->after = block->after;
    block->after->before = block->before;
    free(block);
}

static int give_all(void **state)
{
    (void)state;
    while (all.after != &all)
        give(all.after + 1);
    return 0;
}

static void fail_at(long at, int on)
{
    calls = 0;
    fails_at = at;
    later = on;
}

/* A text of many keys and escapes, longer than the buffers that jansson begins with. */
static char *make_text(void)
{
    json_t *object = json_object();
    for (int k = 0; k < 40; k++) {
        char key[40];
        snprintf(key, sizeof key, "key \"%d\" \\ of many", k);
        json_object_set_new(object, key,
                            json_pack("[s, i, f]", "a \"text\"\n\\ of an entry", k, 0.5));
    }
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(object);
    assert_non_null(text);
    return text;
}

SL_TEST(test_parse)
{
    char *text = make_text();
    json_t *wanted = json_loads(text, 0, NULL);
    FILE *file = tmpfile();
    assert_non_null(file);
    fputs(text, file);
    for (int on = 0; on < 2; on++)
        for (int stream = 0; stream < 2; stream++) {
            long at = 0, failed = 0;
            do {
                json_error_t error;
                rewind(file);
                fail_at(++at, on);
                json_t *got = stream ? sl_json_read(file, 0, &error)
                                     : sl_json_parse(text, strlen(text), 0, &error);
                const long made = calls;
                fail_at(0, 0);
                failed += !got;
                if (got)
                    assert_true(json_equal(got, wanted));
                else
                    assert_true(json_error_code(&error) == json_error_out_of_memory &&
                                strcmp(error.text, "no memory") == 0);
                json_decref(got);
                if (made < at)
                    break;
            } while (at < 100000);
            assert_true(failed > 100 && failed == at - 1);
        }
    fclose(file);
    json_decref(wanted);
    give(text);
}

SL_TEST(test_print)
{
    char *wanted = make_text();
    json_t *value = json_loads(wanted, 0, NULL);
    for (int on = 0; on < 2; on++) {
        long at = 0, failed = 0;
        for (int done = 0; !done;) {
            fail_at(++at, on);
            char *got = sl_json_print(value, JSON_COMPACT | JSON_SORT_KEYS);
            done = calls < at;
            fail_at(0, 0);
            failed += !got;
            assert_true(!got || strcmp(got, wanted) == 0);
            free(got);
        }
        assert_true(failed > 3 && failed == at - 1);
    }
    json_decref(value);
    give(wanted);
}

/* A stream that is full: the value is not put, and errno says why. */
SL_TEST(test_put)
{
    json_t *value = json_pack("{s:i}", "a", 1);
    char room[64] = "";
    FILE *file = fmemopen(room, sizeof room, "w");
    assert_true(sl_json_put(value, JSON_COMPACT, file));
    fclose(file);
    assert_string_equal(room, "{\"a\":1}\n");
    file = fopen("/dev/full", "w");
    if (file) {
        setvbuf(file, NULL, _IONBF, 0);
        assert_false(sl_json_put(value, JSON_COMPACT, file));
        assert_int_equal(errno, ENOSPC);
        fclose(file);
    }
    fail_at(1, 0);
    assert_false(sl_json_put(value, JSON_COMPACT, stdout));
    assert_int_equal(errno, ENOMEM);
    fail_at(0, 0);
    json_decref(value);
}

/* A checkpoint that cannot be read without memory is not wrong. */
SL_TEST(test_checkpoint)
{
    struct sl_checkpoint checkpoint = {.description = json_pack("{s:i, s:s}", "a", 1, "b", "c")},
                         got;
    const char *tmp = getenv("TMPDIR");
    char path[256];
    snprintf(path, sizeof path, "%.200s/starling-json-XXXXXX", tmp ? tmp : "/tmp");
    const int file = mkstemp(path);
    assert_true(file >= 0 && close(file) == 0);
    float *weight = sl_checkpoint_add(&checkpoint, "layer.0.weight", 1, 2);
    assert_non_null(weight);
    weight[0] = weight[1] = 0.5f;
    assert_int_equal(sl_checkpoint_write(&checkpoint, path), 0);
    long at = 0, failed = 0;
    for (int done = 0; !done;) {
        fail_at(++at, 0);
        const int code = sl_checkpoint_read(path, &got);
        done = calls < at;
        fail_at(0, 0);
        failed += code == SL_ERR_SYSTEM;
        if (code && code != SL_ERR_SYSTEM)
            fail_msg("allocation %ld: %s", at, sl_error_message());
        sl_checkpoint_free(&got);
    }
    assert_true(failed > 30);
    unlink(path);
    sl_checkpoint_free(&checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_checkpoint),
    };
    json_set_alloc_funcs(take, give);
    return cmocka_run_group_tests(tests, NULL, give_all);
}
