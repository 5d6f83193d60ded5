/* Files that appear whole or not at all, whatever their names lead to. */
#include <dirent.h>
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "tests/unit.h"

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
SL_TEST(test_links)
{
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
SL_TEST(test_other_kinds)
{
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

SL_TEST(test_same)
{
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

static void leave_file(const char *name)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fclose(file);
}

static bool is_there(const char *name)
{
    return access(name, F_OK) == 0;
}

/* Temporary files and folders without a writer go; all else stays. */
SL_TEST(test_stale)
{
    static const char *const kept[] = {
        "y.01234567.tmp", "x.01234567.tmp.npy", "x.0123456g.tmp", "x..tmp",
        "x.tmp",          "x.4711.tmp",         "x.0123abcde.tmp"};
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        leave_file(kept[k]);
    leave_file("x.0123abcd.tmp");
    assert_int_equal(mkdir("x.00ffff00.tmp", 0777), 0);
    leave_file("x.00ffff00.tmp/indptr.npy");
    assert_int_equal(mkdir("x.00ffff01.tmp", 0777), 0);
    leave_file("x.00ffff01.tmp/notes"); /* it is the user's */
    assert_int_equal(symlink("x", "link"), 0);
    assert_int_equal(write_text("link", "1"), 0);
    assert_false(is_there("x.0123abcd.tmp"));
    assert_false(is_there("x.00ffff00.tmp"));
    assert_true(is_there("x.00ffff01.tmp/notes"));
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        assert_true(is_there(kept[k]));

    /* Locked, it is somebody's who writes. */
    leave_file("x.0123abcd.tmp");
    FILE *held = fopen("x.0123abcd.tmp", "r");
    assert_non_null(held);
    assert_int_equal(flock(fileno(held), LOCK_EX), 0);
    assert_int_equal(write_text("x", "2"), 0);
    assert_true(is_there("x.0123abcd.tmp"));
    fclose(held);
    assert_int_equal(write_text("x", "3"), 0);
    assert_false(is_there("x.0123abcd.tmp"));
    assert_holds("x", "3");
}

/* Two writers of one file have a temporary file each, and the last one to end wins. */
SL_TEST(test_two_writers)
{
    struct sl_new_file first, second;
    assert_int_equal(sl_file_create(&first, "x"), 0);
    assert_int_equal(sl_file_create(&second, "x"), 0);
    assert_string_not_equal(first.temporary, second.temporary);
    assert_true(is_there(first.temporary));
    fputs("first", first.file);
    fputs("second", second.file);
    assert_int_equal(sl_file_commit(&second, true), 0);
    assert_holds("x", "second");
    assert_int_equal(sl_file_commit(&first, true), 0);
    assert_holds("x", "first");
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777;
}

static int write_both(const char *text, bool blocked)
{
    struct sl_new_file first, second;
    assert_int_equal(sl_file_create(&first, "a"), 0);
    assert_int_equal(sl_file_create(&second, "b"), 0);
    assert_true(fputs(text, first.file) >= 0 && fputs(text, second.file) >= 0);
    if (blocked) { /* no file is renamed over a folder */
        unlink("b");
        assert_int_equal(mkdir("b", 0777), 0);
    }
    return sl_file_commit_both(&first, true, &second, true);
}

/* Begin both files and fail the second for a reason. */
static int fail_second(int reason)
{
    struct sl_new_file first, second;
    assert_int_equal(sl_file_create_both(&first, "a", &second, "b"), 0);
    assert_true(fputs("x", first.file) >= 0);
    errno = reason;
    return sl_file_commit_both(&first, true, &second, false);
}

static int count_names(void)
{
    int names = 0;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    while (readdir(folder))
        names++;
    closedir(folder);
    return names - 2; /* "." and ".." */
}

/* Both files of a pair are new, or neither is. */
SL_TEST(test_both)
{
    assert_int_equal(write_both("1", true), SL_ERR_SYSTEM);
    assert_int_not_equal(access("a", F_OK), 0);
    assert_int_equal(rmdir("b"), 0);
    assert_int_equal(write_both("2", false), 0);
    assert_holds("a", "2");
    assert_holds("b", "2");
    assert_int_equal(write_both("3", false), 0);
    assert_holds("b", "3");
    assert_int_equal(write_both("4", true), SL_ERR_SYSTEM);
    assert_holds("a", "3");
    assert_int_equal(rmdir("b"), 0);
    assert_int_equal(write_both("5", false), 0);
    assert_int_equal(fail_second(EIO), SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), strerror(EIO)));
    assert_holds("a", "5");
    assert_holds("b", "5");
    struct sl_new_file first, second;
    assert_int_equal(sl_file_create_both(&first, "a", &second, "none/b"), SL_ERR_SYSTEM);
    assert_int_equal(count_names(), 2); /* no temporary file is left */
}

/* A file keeps its mode; a new one has the usual mode. */
SL_TEST(test_mode)
{
    const mode_t mask = umask(027);
    assert_int_equal(write_text("x", "1"), 0);
    assert_int_equal(mode_of("x"), 0640);
    static const mode_t modes[] = {0600, 0666, 0444};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct sl_new_file out;
        assert_int_equal(chmod("x", modes[m]), 0);
        assert_int_equal(sl_file_create(&out, "x"), 0);
        assert_int_equal(mode_of(out.temporary), modes[m]); /* before there is anything to read */
        assert_int_equal(sl_file_commit(&out, true), 0);
        assert_int_equal(mode_of("x"), modes[m]);
    }
    umask(mask);
}

SL_TEST(test_folder)
{
    struct sl_new_folder out, other;
    char name[PATH_MAX + 16];
    assert_int_equal(sl_folder_create(&out, "new"), 0);
    snprintf(name, sizeof name, "%s/file.npy", out.temporary);
    leave_file(name);
    assert_int_equal(sl_folder_create(&other, "new"), 0); /* leaves the one that is written alone */
    assert_true(is_there(name));
    sl_folder_discard(&other);
    assert_false(is_there(other.temporary));
    assert_int_equal(sl_folder_commit(&out), 0);
    assert_true(is_there("new/file.npy"));
    assert_int_equal(sl_folder_create(&out, "new"), 0);
    assert_int_equal(sl_folder_commit(&out), SL_ERR_SYSTEM); /* it is not empty */
    assert_non_null(strstr(sl_error_message(), "new: "));
    assert_false(is_there(out.temporary));
    assert_true(is_there("new/file.npy"));
    assert_int_equal(sl_folder_create(&out, "none/new"), SL_ERR_SYSTEM);
}

SL_TEST(test_lock)
{
    struct sl_file_lock first, second;
    char who[64];
    assert_int_equal(sl_file_lock(&first, "x"), 0);
    assert_int_equal(symlink("x", "to-x"), 0);
    assert_int_equal(sl_file_lock(&second, "to-x"), SL_ERR_USAGE);
    snprintf(who, sizeof who, "to-x: process %ld on host ", (long)getpid());
    assert_non_null(strstr(sl_error_message(), who));
    sl_file_unlock(&second);
    assert_true(is_there(".x.starling-lock"));
    sl_file_unlock(&first);
    assert_false(is_there(".x.starling-lock"));

    leave_file(".x.starling-lock"); /* of a killed process */
    assert_int_equal(sl_file_lock(&second, "x"), 0);
    sl_file_unlock(&second);
    assert_false(is_there(".x.starling-lock"));

    FILE *other = fopen(".x.starling-lock", "w"); /* of whoever, who says what he likes */
    assert_non_null(other);
    fputs("\033[31mprocess 1 on host \033[31m", other);
    fflush(other);
    assert_int_equal(flock(fileno(other), LOCK_EX), 0);
    assert_int_equal(sl_file_lock(&first, "x"), SL_ERR_USAGE);
    assert_null(strchr(sl_error_message(), '\033'));
    assert_non_null(strstr(sl_error_message(), "x: another process writes it"));
    fclose(other);

    static const char *const free_ones[] = {NULL, "/dev/null", "none/x"};
    for (size_t f = 0; f < sizeof free_ones / sizeof *free_ones; f++) {
        assert_int_equal(sl_file_lock(&first, free_ones[f]), 0);
        assert_int_equal(sl_file_lock(&second, free_ones[f]), 0);
        sl_file_unlock(&first);
        sl_file_unlock(&second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links, enter, leave),
        cmocka_unit_test_setup_teardown(test_other_kinds, enter, leave),
        cmocka_unit_test_setup_teardown(test_same, enter, leave),
        cmocka_unit_test_setup_teardown(test_stale, enter, leave),
        cmocka_unit_test_setup_teardown(test_two_writers, enter, leave),
        cmocka_unit_test_setup_teardown(test_both, enter, leave),
        cmocka_unit_test_setup_teardown(test_mode, enter, leave),
        cmocka_unit_test_setup_teardown(test_folder, enter, leave),
        cmocka_unit_test_setup_teardown(test_lock, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
