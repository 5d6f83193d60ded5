/* Other programs (core/program.h), and the figures that they draw in a page (report/svg.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/error.h"
#include "core/program.h"
#include "report/svg.h"

static void test_words(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(
        sl_program_run((char *[]){"sh", "-c", "echo one; echo two >&2", NULL}, 0, &text), 0);
    assert_string_equal(text, "one\ntwo\n");
    free(text);
    assert_int_equal(sl_program_run((char *[]){"cat", NULL}, 60, &text), 0); /* without input */
    assert_string_equal(text, "");
    free(text);
}

static void test_failures(void **state)
{
    (void)state;
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
static void test_too_long(void **state)
{
    (void)state;
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

static void test_svg(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_svg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
