/* Options whose text stands for numbers (recipe/values.h): text to value and back, what is refused,
 * and null in files. */
#include "core/error.h"
#include "recipe/config.h"
#include "tests/unit.h"

/* `back`: the text of the value; NULL: the text is refused. */
static const struct {
    const char *option, *text, *back;
} cases[] = {
    {"delay", "cd-0", "cd-0"},
    {"delay", "cd-0012", "cd-12"},
    {"delay", "cd-1000", "cd-1000"},
    {"delay", "0c", "0c"},
    {"delay", "cd-1001", NULL},
    {"delay", "cd-", NULL},
    {"delay", "cd--1", NULL},
    {"delay", "5", NULL},
    {"recompute", "auto", "auto"},
    {"recompute", "none", "none"},
    {"recompute", "1", "1"},
    {"recompute", "2", "2"},
    {"recompute", "1000", "1000"},
    {"recompute", "0", NULL},
    {"recompute", "1001", NULL},
    {"preload-hops", "all", "all"},
    {"preload-hops", "auto", "auto"},
    {"preload-hops", "1000", "1000"},
    {"preload-hops", "0", NULL},
    {"preload-hops", "1001", NULL},
    {"max-hop", "all", "all"},
    {"max-hop", "0", "0"},
    {"max-hop", "1000", "1000"},
    {"max-hop", "1001", NULL},
    {"max-hop", "-1", NULL},
    {"groups", "servers", "servers"},
    {"groups", "2x03", "2x3"},
    {"groups", "0x3", NULL},
    {"groups", "2x", NULL},
    {"groups", "2x3x", NULL},
    {"groups", "2 x3", NULL},
    {"groups", "2147483648x1", NULL},
    {"grid", "2x1x3", "2x1x3"},
    {"grid", "99999x1x1", "99999x1x1"},
    {"grid", "100000x1x1", NULL},
    {"grid", "2x1", NULL},
    {"grid", "2x1x0", NULL},
    {"grid", "", NULL},
    {"batches", "full", "full"},
    {"batches", "co:auto", "co:auto"},
    {"batches", "co:1", "co:1"},
    {"batches", "co:2147483647", "co:2147483647"},
    {"batches", "clusters:50,5", "clusters:50,5"},
    {"batches", "co:0", NULL},
    {"batches", "co:2147483648", NULL},
    {"batches", "co:", NULL},
    {"batches", "co:1,1", NULL},
    {"batches", "clusters:50", NULL},
    {"batches", "fullest", NULL},
    {"trace-epochs", "7", "7"},
    {"trace-epochs", "10-12", "10-12"},
    {"trace-epochs", "7-7", "7"},
    {"trace-epochs", "0", NULL},
    {"trace-epochs", "12-10", NULL},
    {"trace-epochs", "10-", NULL},
    {"milestones", "5", "5"},
    {"milestones", "5,6,10000000", "5,6,10000000"},
    {"milestones", "0", NULL},
    {"milestones", "6,5", NULL},
    {"milestones", "5,5", NULL},
    {"milestones", "5,", NULL},
    {"milestones", "5,10000001", NULL},
    {"split-layers", "all", "all"},
    {"split-layers", "0,1,1000", "0,1,1000"},
    {"split-layers", "1001", NULL},
    {"split-layers", "", NULL},
    {"submodel-share", "equal", "equal"},
    {"submodel-share", "auto", "auto"},
    {"submodel-share", "3,1,1000000", "3,1,1000000"},
    {"submodel-share", "0", NULL},
    {"submodel-share", "1000001", NULL},
    {"submodel-share", "1, 2", NULL},
    {"split", "20/30/rest", "20/30/rest"},
    {"split", "60/20/20", "60/20/20"},
    {"split", "0.1/33.333333333333336/20.5", "0.1/33.333333333333336/20.5"},
    {"split", "0/20/20", NULL},
    {"split", "60/20", NULL},
    {"split", "60/20/21", NULL},
};

SL_TEST(test_texts)
{
    struct sl_config config;
    assert_int_equal(sl_config_defaults(&config), 0);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int code = sl_options_set(sl_config_options, &config, cases[c].option, cases[c].text);
        if ((code == 0) != (cases[c].back != NULL))
            fail_msg("--%s %s: code %d", cases[c].option, cases[c].text, code);
        if (code && !strstr(sl_error_message(), "expected "))
            fail_msg("--%s %s: %s", cases[c].option, cases[c].text, sl_error_message());
        if (!code)
            assert_string_equal(sl_config_text(&config, cases[c].option).text, cases[c].back);
    }
    sl_options_free(sl_config_options, &config);
}

/* A text has room for the longest list of the longest numbers. */
SL_TEST(test_long_lists)
{
    static const char *const options[] = {"milestones", "submodel-share"};
    for (size_t o = 0; o < sizeof options / sizeof *options; o++)
        for (int more = 0; more < 2; more++) {
            struct sl_config config;
            char text[4096] = "";
            size_t used = 0;
            for (int k = 0; k < SL_MOST_NUMBERS + more; k++)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", k ? "," : "",
                                         (o == 0 ? 10000000 : 1000000) - SL_MOST_NUMBERS - 1 + k);
            assert_int_equal(sl_config_defaults(&config), 0);
            const int code = sl_options_set(sl_config_options, &config, options[o], text);
            assert_int_equal(code, more ? SL_ERR_USAGE : 0);
            if (!code)
                assert_string_equal(sl_config_text(&config, options[o]).text, text);
            sl_options_free(sl_config_options, &config);
        }
}

/* Null stands for an option that is not given. Options with a default refuse it. */
SL_TEST(test_null)
{
    static const char *const absent[] = {"max-hop",    "groups",       "grid",
                                         "milestones", "trace-epochs", "split"};
    static const char *const present[] = {"delay",   "recompute",    "preload-hops",
                                          "batches", "split-layers", "submodel-share"};
    struct sl_config config;
    assert_int_equal(sl_config_defaults(&config), 0);
    json_t *all = sl_options_to_json(sl_config_options, &config);
    for (size_t k = 0; k < sizeof absent / sizeof *absent; k++) {
        json_t *null = json_pack("{s:n}", absent[k]);
        assert_true(json_is_null(json_object_get(all, absent[k])));
        assert_int_equal(sl_options_from_json(sl_config_options, &config, null, NULL, "f"), 0);
        assert_string_equal(sl_config_text(&config, absent[k]).text, "");
        json_decref(null);
    }
    for (size_t k = 0; k < sizeof present / sizeof *present; k++) {
        json_t *null = json_pack("{s:n}", present[k]);
        assert_true(json_is_string(json_object_get(all, present[k])));
        assert_int_equal(sl_options_from_json(sl_config_options, &config, null, NULL, "f"),
                         SL_ERR_DATA);
        json_decref(null);
    }
    json_decref(all);
    sl_options_free(sl_config_options, &config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
