/* Files that appear whole or not at all, whatever their names lead to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/error.h"
#include "core/file.h"

/* A fresh directory is the current one during a test. */
static int enter(void **state)
{
    static char directory[32];
    strcpy(directory, "/tmp/starling-file-XXXXXX");
    *state = directory;
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", (const char *)*state);
    return chdir("/") == 0 ? system(command) : -1;
}

static int write_text(const char *path, const char *text)
{
    struct sl_new_file file;
    const int code = sl_file_create(&file, path);
    return code ? code : sl_file_commit(&file, fputs(text, file.file) >= 0);
}

static void assert_holds(const char *path, const char *text)
{
    char read[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(read, sizeof read, file));
    fclose(file);
    assert_string_equal(read, text);
}

static bool is_link(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

/* Links stay, whether they point to a file, to another link or to nothing yet. */
static void test_links(void **state)
{
    (void)state;
    char absolute[64];
    assert_int_equal(mkdir("far", 0777), 0);
    snprintf(absolute, sizeof absolute, "%s/far/b", (const char *)*state);
    assert_int_equal(symlink("far/a", "a"), 0);
    assert_int_equal(symlink(absolute, "b"), 0);
    assert_int_equal(symlink("../b", "far/c"), 0);
    static const char *const names[][2] = {
        {"a", "far/a"}, {"a", "far/a"}, {"b", "far/b"}, {"far/c", "far/b"}};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char text[8];
        snprintf(text, sizeof text, "%zu", n);
        assert_int_equal(write_text(names[n][0], text), 0);
        assert_true(is_link(names[n][0]));
        assert_false(is_link(names[n][1]));
        assert_holds(names[n][1], text);
    }
    assert_int_equal(symlink("circle", "circle"), 0);
    assert_int_equal(write_text("circle", "x"), SL_ERR_SYSTEM);
    assert_int_equal(symlink("none/x", "nowhere"), 0);
    assert_int_equal(write_text("nowhere", "x"), SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), "nowhere: "));
}

/* A write to a FIFO or a folder fails, and changes nothing. */
static void test_other_kinds(void **state)
{
    (void)state;
    static const char *const names[] = {"fifo", "to-fifo", "folder"};
    assert_int_equal(mkfifo("fifo", 0666), 0);
    assert_int_equal(symlink("fifo", "to-fifo"), 0);
    assert_int_equal(mkdir("folder", 0777), 0);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        assert_int_equal(write_text(names[n], "x"), SL_ERR_SYSTEM);
        assert_non_null(strstr(sl_error_message(), names[n]));
    }
    struct stat status;
    assert_int_equal(lstat("fifo", &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}

static void test_same(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"x", "x", true},         {"x", "./x", true},          {"x", "folder/../x", true},
        {"x", "y", false},        {"x", "folder/x", false},    {"folder/x", "to-folder/x", true},
        {"x", "to-x", true},      {"none/x", "none/x", false}, {"x", NULL, false},
        {"there", "hard", true},  {"there", "to-there", true}, {"there", "x", false},
        {"there", "copy", false}, {"hard", "to-there", true},  {NULL, NULL, false},
    };
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_int_equal(symlink("folder", "to-folder"), 0);
    assert_int_equal(symlink("x", "to-x"), 0);
    assert_int_equal(write_text("there", "1"), 0);
    assert_int_equal(write_text("copy", "1"), 0);
    assert_int_equal(link("there", "hard"), 0);
    assert_int_equal(symlink("there", "to-there"), 0);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (sl_file_same(cases[c].a, cases[c].b) != cases[c].same ||
            sl_file_same(cases[c].b, cases[c].a) != cases[c].same)
            fail_msg("%s and %s", cases[c].a, cases[c].b);
}

static void leave_file(const char *format, long process)
{
    char name[64];
    snprintf(name, sizeof name, format, process);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fclose(file);
}

static bool is_there(const char *format, long process)
{
    char name[64];
    snprintf(name, sizeof name, format, process);
    return access(name, F_OK) == 0;
}

/* Of temporary files, those of processes that ended go, and nothing else does. */
static void test_stale(void **state)
{
    (void)state;
    const pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    static const char *const kept[] = {"y.%ld.tmp", "x.%ld.tmp.npy", "x.0%ld.tmp", "x.a%ld.tmp"};
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        leave_file(kept[k], (long)dead);
    leave_file("x.%ld.tmp", (long)dead);
    leave_file("x.%ld.tmp", (long)getppid());
    assert_int_equal(symlink("x", "link"), 0);
    assert_int_equal(write_text("link", "1"), 0);
    assert_false(is_there("x.%ld.tmp", (long)dead));
    assert_true(is_there("x.%ld.tmp", (long)getppid()));
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        assert_true(is_there(kept[k], (long)dead));

    /* Locked, it is that of a process elsewhere with the same number. */
    char name[64];
    leave_file("x.%ld.tmp", (long)dead);
    snprintf(name, sizeof name, "x.%ld.tmp", (long)dead);
    FILE *held = fopen(name, "r");
    assert_non_null(held);
    assert_int_equal(flock(fileno(held), LOCK_EX), 0);
    assert_int_equal(write_text("x", "2"), 0);
    assert_true(is_there("x.%ld.tmp", (long)dead));
    fclose(held);
    assert_int_equal(write_text("x", "3"), 0);
    assert_false(is_there("x.%ld.tmp", (long)dead));
    assert_holds("x", "3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links, enter, leave),
        cmocka_unit_test_setup_teardown(test_other_kinds, enter, leave),
        cmocka_unit_test_setup_teardown(test_same, enter, leave),
        cmocka_unit_test_setup_teardown(test_stale, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
