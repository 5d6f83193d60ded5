/* Other programs (core/program.h), and the figures that they draw in a page (report/svg.h). */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/program.h"
#include "report/svg.h"
#include "tests/unit.h"

SL_TEST(test_words)
{
    char *text;
    assert_int_equal(
        sl_program_run((char *[]){"sh", "-c", "echo one; echo two >&2", NULL}, 0, &text), 0);
    assert_string_equal(text, "one\ntwo\n");
    free(text);
    assert_int_equal(sl_program_run((char *[]){"cat", NULL}, 60, &text), 0); /* without input */
    assert_string_equal(text, "");
    free(text);
}

SL_TEST(test_failures)
{
    char *text;
    assert_int_equal(sl_program_run((char *[]){"sh", "-c", "echo why; exit 3", NULL}, 60, &text),
                     SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), "sh failed: why"));
    free(text);
    assert_int_equal(sl_program_run((char *[]){"no-such-program", NULL}, 0, &text), SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), "no-such-program cannot be started: "));
    assert_null(text);
    assert_int_equal(sl_program_probe("no-such-program", "is a test", "none"), SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), "is a test (expected it in PATH; Debian: none)"));
    assert_int_equal(sl_program_probe("sh", "is a test", "none"), 0);
}

/* A program that does not end is killed, also one that goes on to print. */
SL_TEST(test_too_long)
{
    static char *const scripts[] = {"exec sleep 100", "while :; do echo x; sleep 0.05; done"};
    for (size_t s = 0; s < sizeof scripts / sizeof *scripts; s++) {
        char *text;
        const time_t start = time(NULL);
        assert_int_equal(sl_program_run((char *[]){"sh", "-c", scripts[s], NULL}, 1, &text),
                         SL_ERR_SYSTEM);
        assert_string_equal(sl_error_message(), "sh took over 1 s and was stopped");
        assert_true(time(NULL) - start < 50);
        free(text);
    }
}

/* Scripts run with `ends`, a pipe that their processes can write to: it is at its end when none is
 * there any more. This one says that it has started. */
static int ends[2];

static char *make_waiting(char script[64])
{
    snprintf(script, 64, "sleep 1000 & printf x >&%d; sleep 1000", ends[1]);
    return script;
}

/* Read a byte, or the end: 1 or 0; -1: neither comes. */
static long read_end(void)
{
    struct pollfd in = {.fd = ends[0], .events = POLLIN};
    char byte;
    return poll(&in, 1, 20000) == 1 ? read(ends[0], &byte, 1) : -1;
}

static void expect_no_process(void)
{
    close(ends[1]);
    assert_int_equal(read_end(), 0);
    close(ends[0]);
}

SL_TEST(test_no_process_is_left)
{
    char *text, script[64];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(sl_program_run((char *[]){"sh", "-c", make_waiting(script), NULL}, 1, &text),
                     SL_ERR_SYSTEM);
    assert_int_equal(read_end(), 1);
    expect_no_process();
    free(text);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(
        sl_program_run((char *[]){"sh", "-c", "sleep 1000 >/dev/null 2>&1 &", NULL}, 60, &text), 0);
    expect_no_process();
    free(text);
}

/* ---- In processes of their own ---- */

static volatile sig_atomic_t caught;

static void catch_signal(int signal_number)
{
    caught = signal_number;
}

/* The shell that runs this may ignore signals. */
static int run_waiting(int signal_number, int catches)
{
    char *text, script[64];
    signal(signal_number, catches ? catch_signal : SIG_DFL);
    const int code = sl_program_run((char *[]){"sh", "-c", make_waiting(script), NULL}, 60, &text);
    return code == SL_ERR_SYSTEM && caught == catches ? 0 : 1;
}

/* Return the status of a process that runs the script and gets the signal. */
static int interrupt(int signal_number, int catches)
{
    int status;
    const pid_t process = fork();
    if (process == 0)
        _exit(run_waiting(signal_number, catches));
    assert_int_equal(read_end(), 1);
    kill(process, signal_number);
    assert_int_equal(waitpid(process, &status, 0), process);
    return status;
}

/* A signal ends the program, then does what it did before. */
SL_TEST(test_signals)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int s = 0; s < 6; s++) {
        const int sent = signals[s / 2], catches = s % 2 ? sent : 0;
        assert_int_equal(pipe(ends), 0);
        const int status = interrupt(sent, catches);
        if (catches)
            assert_int_equal(status, 0);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == sent);
        expect_no_process();
    }
}

static int run_bare(int closed)
{
    struct sigaction after;
    char *text;
    for (int d = 0; d < 3; d++)
        if (closed & 1 << d)
            close(d);
    signal(SIGCHLD, SIG_IGN);
    const int failed = sl_program_run((char *[]){"sh", "-c", "exit 3", NULL}, 60, &text);
    free(text);
    const int code =
        sl_program_run((char *[]){"sh", "-c", "cat; echo x; echo y >&2", NULL}, 60, &text);
    sigaction(SIGCHLD, NULL, &after);
    return failed != SL_ERR_SYSTEM || code || strcmp(text, "x\ny\n") != 0 ||
           after.sa_handler != SIG_IGN;
}

/* A process that ignores the end of its children, without some of the first three files. */
SL_TEST(test_bare_process)
{
    for (int closed = 0; closed < 8; closed++) {
        int status;
        const pid_t process = fork();
        if (process == 0)
            _exit(run_bare(closed));
        assert_int_equal(waitpid(process, &status, 0), process);
        assert_int_equal(status, 0);
    }
}

SL_TEST(test_svg)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    sl_svg_print(out,
                 "<svg id='a' width='2'><title>Gnuplot</title><desc>by whom</desc><title>x</title>"
                 "<g id=\"b\" fill='url(#a)'/><use xlink:href='#b'/><use href=\"#b\"/></svg>",
                 7);
    fclose(out);
    assert_string_equal(text, "<svg id='f7-a' width='2'><title>x</title><g id=\"f7-b\" "
                              "fill='url(#f7-a)'/><use xlink:href='#f7-b'/><use href=\"#f7-b\"/>"
                              "</svg>");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),    cmocka_unit_test(test_failures),
        cmocka_unit_test(test_too_long), cmocka_unit_test(test_no_process_is_left),
        cmocka_unit_test(test_signals),  cmocka_unit_test(test_bare_process),
        cmocka_unit_test(test_svg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
