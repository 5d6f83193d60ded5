/* The options table: command line, JSON, help. */
#include <unistd.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/options.h"
#include "core/options_print.h"
#include "tests/unit.h"

#define NORMS(ENTRY) ENTRY(SYM, "sym") ENTRY(ROW, "row") ENTRY(NONE, "none")
#define BOTHS(ENTRY) ENTRY(MAX, "max") ENTRY(SUM, "sum")
enum norm { NORMS(SL_CHOICE_CONSTANT) };
enum both { BOTHS(SL_CHOICE_CONSTANT) };

struct config {
    int64_t layers, offset, any;
    double lr, dropout, raw;
    bool bias, quiet;
    char *log;
    enum norm norm;
    enum both both;
};

static const struct sl_option table[] = {
    {"layers", SL_OPTION_INT, offsetof(struct config, layers), "2", 1, 64, NULL, "N",
     "Layers of the network", "Model"},
    {"offset", SL_OPTION_INT, offsetof(struct config, offset), "-3", -5, 1e18, NULL, "N",
     "An offset", "Model"},
    {"any", SL_OPTION_INT, offsetof(struct config, any), NULL, 0, 0, NULL, NULL, "Any whole number",
     "Model"},
    {"lr", SL_OPTION_REAL, offsetof(struct config, lr), "0.01", 0, 1e300, NULL, "RATE",
     "Learning rate", "Training"},
    {"dropout", SL_OPTION_REAL, offsetof(struct config, dropout), "0.5", 0, 0.99, NULL, "P",
     "Dropout", "Training"},
    {"raw", SL_OPTION_REAL, offsetof(struct config, raw), NULL, 0, 0, NULL, "X", "Any number",
     "Training"},
    {"bias", SL_OPTION_FLAG, offsetof(struct config, bias), "yes", 0, 0, NULL, NULL, "Add a bias",
     "Model"},
    {"quiet", SL_OPTION_FLAG, offsetof(struct config, quiet), "no", 0, 0, NULL, NULL,
     "Print nothing", "Output"},
    {"log", SL_OPTION_STRING, offsetof(struct config, log), NULL, 0, 0, NULL, "FILE", "Log to FILE",
     "Output"},
    {"norm", SL_OPTION_CHOICE, offsetof(struct config, norm), "sym", 0, 0, SL_CHOICES(NORMS),
     "KIND", "Norm", "Model"},
    {"both", SL_OPTION_WAY, offsetof(struct config, both), NULL, 0, 0, SL_CHOICES(BOTHS), "[WAY]",
     "Both directions", "Model"},
    {0},
};
enum { ROWS = sizeof table / sizeof *table - 1, WORDS = 16 };

static int setup(void **state)
{
    struct config *config = malloc(sizeof *config);
    memset(config, 0x5A, sizeof *config); /* defaults must not look at what was there */
    assert_int_equal(sl_options_defaults(table, config), 0);
    *state = config;
    return 0;
}

static int teardown(void **state)
{
    sl_options_free(table, *state);
    free(*state);
    return 0;
}

/* Parses blank-separated words; the positionals end up in `words`. */
struct line {
    char text[512];
    char *words[WORDS];
    int positionals;
    bool given[ROWS];
};

static int parse(struct config *config, struct line *line, const char *text)
{
    int count = 0;
    snprintf(line->text, sizeof line->text, "%s", text);
    for (char *word = strtok(line->text, " "); word; word = strtok(NULL, " "))
        line->words[count++] = word;
    memset(line->given, 1, sizeof line->given);
    return sl_options_parse(table, config, count, line->words, &line->positionals, line->given);
}

static void assert_refused(struct config *config, const char *text, const char *part)
{
    struct line line;
    sl_error(SL_OK, "nothing");
    const int code = parse(config, &line, text);
    if (code != SL_ERR_USAGE)
        fail_msg("\"%s\" gave %d", text, code);
    if (!strstr(sl_error_message(), part))
        fail_msg("\"%s\" gave \"%s\", which lacks \"%s\"", text, sl_error_message(), part);
}

static void test_defaults(void **state)
{
    const struct config *config = *state;
    assert_int_equal(config->layers, 2);
    assert_int_equal(config->offset, -3);
    assert_int_equal(config->any, 0);
    assert_true(config->lr == 0.01 && config->dropout == 0.5 && config->raw == 0);
    assert_true(config->bias && !config->quiet);
    assert_null(config->log);
    assert_int_equal(config->norm, SYM);
}

static void test_parse(void **state)
{
    struct config *config = *state;
    struct line line;
    assert_int_equal(parse(config, &line,
                           "data --layers 3 --lr=1e-3 --quiet more --no-bias --log a=b --norm row"),
                     0);
    assert_int_equal(line.positionals, 2);
    assert_string_equal(line.words[0], "data");
    assert_string_equal(line.words[1], "more");
    assert_int_equal(config->layers, 3);
    assert_true(config->lr == 1e-3);
    assert_true(config->quiet && !config->bias);
    assert_string_equal(config->log, "a=b");
    assert_int_equal(config->norm, ROW);
    const bool expected[ROWS] = {
        [0] = true, [3] = true, [6] = true, [7] = true, [8] = true, [9] = true};
    assert_memory_equal(line.given, expected, sizeof expected);
}

static void test_last_wins(void **state)
{
    struct config *config = *state;
    struct line line;
    assert_int_equal(
        parse(config, &line, "--log a --log b --norm row --norm none --quiet --no-quiet"), 0);
    assert_string_equal(config->log, "b");
    assert_int_equal(config->norm, NONE);
    assert_false(config->quiet);
}

static void test_nothing(void **state)
{
    struct line line;
    assert_int_equal(parse(*state, &line, ""), 0);
    assert_int_equal(line.positionals, 0);
    assert_int_equal(sl_options_parse(table, *state, 0, line.words, &line.positionals, NULL), 0);
}

static void test_value_forms(void **state)
{
    struct config *config = *state;
    struct line line;
    assert_int_equal(
        parse(config, &line, "--log= --offset -5 --any=-9223372036854775808 --raw -1.5 --bias=no"),
        0);
    assert_string_equal(config->log, "");
    assert_int_equal(config->offset, -5);
    assert_true(config->any == INT64_MIN);
    assert_true(config->raw == -1.5);
    assert_false(config->bias);
    assert_int_equal(
        parse(config, &line,
              "--any 9223372036854775807 --raw .5 --log=--layers --bias=yes --log=a=b=c"),
        0);
    assert_true(config->any == INT64_MAX);
    assert_true(config->raw == 0.5);
    assert_true(config->bias);
    assert_string_equal(config->log, "a=b=c");
    assert_int_equal(parse(config, &line, "--log -"), 0);
    assert_string_equal(config->log, "-");
}

static void test_double_dash(void **state)
{
    struct config *config = *state;
    struct line line;
    assert_int_equal(parse(config, &line, "a - --layers 5 -- --layers -x --"), 0);
    assert_int_equal(config->layers, 5);
    assert_int_equal(line.positionals, 5);
    assert_string_equal(line.words[0], "a");
    assert_string_equal(line.words[1], "-");
    assert_string_equal(line.words[2], "--layers");
    assert_string_equal(line.words[3], "-x");
    assert_string_equal(line.words[4], "--");
}

static void test_malformed_numbers(void **state)
{
    static const char *const bad_int[] = {
        "x", "3x", "3.0", "1e3", "0x10", "+", "--", "", "99999999999999999999", "nan"};
    static const char *const bad_real[] = {
        "x",   "1x", "nan", "inf", "-inf",  "infinity", "0x1p3", "1e999",    "1e", "-1e999",
        "1,5", "",   ".",   "NAN", "1.2.3", "--1",      "1e+-",  "INFINITY", "e5"};
    char text[64];
    for (size_t b = 0; b < sizeof bad_int / sizeof *bad_int; b++) {
        snprintf(text, sizeof text, "--any=%s", bad_int[b]);
        assert_refused(*state, text, "--any: expected a whole number");
    }
    for (size_t b = 0; b < sizeof bad_real / sizeof *bad_real; b++) {
        snprintf(text, sizeof text, "--raw=%s", bad_real[b]);
        assert_refused(*state, text, "--raw: expected a number");
    }
    assert_int_equal(sl_options_set(table, *state, "any", " 3"), SL_ERR_USAGE);
    assert_int_equal(sl_options_set(table, *state, "any", "3 "), SL_ERR_USAGE);
    assert_int_equal(sl_options_set(table, *state, "raw", " 3"), SL_ERR_USAGE);
}

static void test_ranges(void **state)
{
    struct line line;
    assert_refused(*state, "--layers 0", "--layers: expected a whole number, 1 to 64, not \"0\"");
    assert_refused(*state, "--layers 65", "1 to 64");
    assert_refused(*state, "--offset -6", "at least -5");
    assert_refused(*state, "--dropout 1", "--dropout: expected a number, 0 to 0.99, not \"1\"");
    assert_refused(*state, "--lr -0.1", "at least 0");
    assert_int_equal(
        parse(*state, &line, "--layers 1 --layers 64 --dropout 0 --dropout 0.99 --offset -5"), 0);
}

static void test_refused_value_changes_nothing(void **state)
{
    const struct config *config = *state;
    assert_refused(*state, "--layers 0", "");
    assert_refused(*state, "--norm rows", "");
    assert_refused(*state, "--raw nan", "");
    assert_int_equal(config->layers, 2);
    assert_int_equal(config->norm, SYM);
    assert_true(config->raw == 0);
}

static void test_choices(void **state)
{
    assert_refused(*state, "--norm rows",
                   "--norm: expected one of: sym row none, not \"rows\"; the nearest is row");
    assert_refused(*state, "--norm batch", "--norm: expected one of: sym row none, not \"batch\"");
    assert_refused(*state, "--norm ro", "one of");
    assert_refused(*state, "--norm=", "one of");
    assert_refused(*state, "--norm sym|row", "one of");
}

static void test_words(void **state)
{
    struct config *config = *state;
    const char *choices = SL_CHOICES(NORMS);
    assert_string_equal(choices, "sym|row|none");
    assert_string_equal(sl_choice_word(choices, SYM).text, "sym");
    assert_string_equal(sl_choice_word(choices, NONE).text, "none");
    assert_string_equal(sl_choice_word(choices, NONE + 1).text, "");
    assert_string_equal(sl_choice_word(choices, SL_NO_CHOICE).text, "");
    assert_int_equal(sl_choice_find(choices, "row"), ROW);
    assert_int_equal(sl_choice_find(choices, "ro"), SL_NO_CHOICE);
    assert_int_equal(sl_choice_find(choices, ""), SL_NO_CHOICE);
    config->norm = ROW;
    assert_string_equal(sl_options_word(table, config, "norm").text, "row");
    assert_string_equal(sl_options_word(table, config, "both").text, "");
}

struct kind {
    const char *name;
    int number;
};

static const struct kind one = {"one", 1}, two = {"two", 2};

static const void *find_kind(const char *name)
{
    return strcmp(name, "one") == 0 ? &one : strcmp(name, "two") == 0 ? &two : NULL;
}

/* A kind is a pointer to its row; the first choice has none. */
SL_TEST(test_kinds)
{
    struct kinded {
        const struct kind *kind;
    } config;
    static const struct sl_option rows[] = {
        {"kind", SL_OPTION_KIND, offsetof(struct kinded, kind), "auto", 0, 0, "auto|one|two",
         "NAME", "Kind", "Model", find_kind},
        {0},
    };
    assert_int_equal(sl_options_defaults(rows, &config), 0);
    assert_null(config.kind);
    assert_string_equal(sl_options_word(rows, &config, "kind").text, "auto");
    assert_int_equal(sl_options_set(rows, &config, "kind", "two"), 0);
    assert_ptr_equal(config.kind, &two);
    json_t *object = sl_options_to_json(rows, &config);
    assert_string_equal(json_string_value(json_object_get(object, "kind")), "two");
    assert_int_equal(sl_options_set(rows, &config, "kind", "three"), SL_ERR_USAGE);
    assert_ptr_equal(config.kind, &two);
    config.kind = &one;
    assert_int_equal(sl_options_from_json(rows, &config, object, NULL, "log"), 0);
    assert_ptr_equal(config.kind, &two);
    json_object_set_new(object, "kind", json_string("auto"));
    assert_int_equal(sl_options_from_json(rows, &config, object, NULL, "log"), 0);
    assert_null(config.kind);
    json_object_set_new(object, "kind", json_string("three"));
    assert_int_equal(sl_options_from_json(rows, &config, object, NULL, "log"), SL_ERR_DATA);
    json_decref(object);
    sl_options_free(rows, &config);
}

/* The value of a way may be missing; a word that is none of its choices is not taken. */
static void test_ways(void **state)
{
    struct config *config = *state;
    struct line line;
    assert_true((int)config->both == SL_NO_CHOICE);
    assert_int_equal(parse(config, &line, "--both data"), 0);
    assert_int_equal(config->both, MAX);
    assert_int_equal(line.positionals, 1);
    assert_int_equal(parse(config, &line, "data --both sum"), 0);
    assert_int_equal(config->both, SUM);
    assert_int_equal(line.positionals, 1);
    assert_int_equal(parse(config, &line, "--both=sum --both --quiet"), 0);
    assert_int_equal(config->both, MAX);
    assert_refused(config, "--both=mean", "--both: expected one of: max sum, not \"mean\"");
}

static void test_unknown(void **state)
{
    assert_refused(*state, "--layer 3", "unknown option --layer: the nearest is --layers");
    assert_refused(*state, "--lyaers=3", "--layers");
    assert_refused(*state, "--droput 0.1", "--dropout");
    assert_refused(*state, "--no-bais", "--no-bias");
    assert_refused(*state, "--no-layers", "unknown option --no-layers");
    assert_refused(*state, "-q", "two dashes");
    assert_refused(*state, "-5", "two dashes");
    assert_refused(*state, "--=3", "unknown option");
    assert_int_equal(sl_options_set(table, *state, "laers", "3"), SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "layers"));
}

/* Names of other programs, and words that are near no name. */
SL_TEST(test_unknown_elsewhere_known)
{
    const struct sl_option rows[] = {
        {"aggregator", SL_OPTION_STRING, 0, NULL, 0, 0, NULL, NULL, "x", NULL},
        {"lr", SL_OPTION_REAL, 8, NULL, 0, 0, NULL, NULL, "x", NULL},
        {0},
    };
    static const char *const cases[][2] = {
        {"learning-rate", "unknown option --learning-rate: the nearest is --lr"},
        {"lerning-rate", "unknown option --lerning-rate: the nearest is --lr"},
        {"agregater", "unknown option --agregater: the nearest is --aggregator"},
        {"hidden-dim", "unknown option --hidden-dim: no option is near it; see --help"},
        {"batch-size", "unknown option --batch-size: no option is near it; see --help"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(sl_options_set(rows, NULL, cases[k][0], "1"), SL_ERR_USAGE);
        assert_string_equal(sl_error_message(), cases[k][1]);
    }
}

SL_TEST(test_unknown_without_options)
{
    const struct sl_option none[] = {{0}};
    char word[] = "--verbose", *words[] = {word};
    int positionals;
    assert_int_equal(sl_options_parse(none, NULL, 1, words, &positionals, NULL), SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "--verbose"));
}

static void test_long_unknown(void **state)
{
    char word[4096] = "--";
    memset(word + 2, 'x', sizeof word - 3);
    word[sizeof word - 1] = '\0';
    char *words[] = {word};
    int positionals;
    assert_int_equal(sl_options_parse(table, *state, 1, words, &positionals, NULL), SL_ERR_USAGE);
}

static void test_flags(void **state)
{
    assert_refused(*state, "--no-bias=yes", "--no-bias takes no value");
    assert_refused(*state, "--bias=maybe", "--bias: expected yes or no, not \"maybe\"");
    assert_refused(*state, "--quiet=", "yes or no");
}

static void test_missing_value(void **state)
{
    assert_refused(*state, "--layers", "--layers needs a value (N)");
    assert_refused(*state, "--log --layers 3", "--log needs a value (FILE)");
    assert_refused(*state, "--any", "--any needs a value (VALUE)");
    assert_refused(*state, "--log --", "needs a value");
}

SL_TEST(test_bad_default)
{
    const struct sl_option bad[] = {{"n", SL_OPTION_INT, 0, "x", 0, 0, NULL, NULL, "N", NULL}, {0}};
    int64_t value;
    assert_int_equal(sl_options_defaults(bad, &value), SL_ERR_USAGE);
}

static void test_json_round_trip(void **state)
{
    struct config *config = *state, other;
    struct line line;
    assert_int_equal(parse(config, &line,
                           "--layers 7 --lr 0.1 --raw -1e-300 --no-bias --quiet --log \xC3\xA9.txt "
                           "--norm none --any -9223372036854775808"),
                     0);
    json_t *object = sl_options_to_json(table, config);
    assert_int_equal(json_object_size(object), ROWS);
    char *text = json_dumps(object, JSON_REAL_PRECISION(17));
    json_decref(object);
    object = json_loads(text, 0, NULL);
    free(text);
    assert_int_equal(sl_options_defaults(table, &other), 0);
    assert_int_equal(sl_options_from_json(table, &other, object, NULL, "test"), 0);
    assert_true(other.layers == 7 && other.offset == -3 && other.any == INT64_MIN);
    assert_true(other.lr == 0.1 && other.dropout == 0.5 && other.raw == -1e-300);
    assert_true(!other.bias && other.quiet);
    assert_string_equal(other.log, "\xC3\xA9.txt");
    assert_int_equal(other.norm, NONE);
    assert_true((int)other.both == SL_NO_CHOICE);
    other.both = SUM;
    json_object_set_new(object, "log", json_null());
    assert_int_equal(sl_options_from_json(table, &other, object, NULL, "test"), 0);
    assert_null(other.log);
    assert_true((int)other.both == SL_NO_CHOICE);
    json_decref(object);
    sl_options_free(table, &other);
}

static void test_json_bytes(void **state)
{
    struct line line;
    assert_int_equal(parse(*state, &line, "--log \xFF\xFE"), 0);
    json_t *object = sl_options_to_json(table, *state);
    assert_int_equal(json_object_size(object), ROWS);
    assert_true(json_is_string(json_object_get(object, "log")));
    json_decref(object);
}

static void test_json_skip(void **state)
{
    struct config *config = *state;
    bool skip[ROWS] = {[0] = true};
    json_t *object = json_pack("{s:i, s:f}", "layers", 9, "lr", 0.5);
    assert_int_equal(sl_options_from_json(table, config, object, skip, "test"), 0);
    assert_int_equal(config->layers, 2);
    assert_true(config->lr == 0.5);
    json_decref(object);
}

static void test_json_bad(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"{\"layer\": 3}", "ckpt: unknown option \"layer\""},
        {"{\"layers\": \"3\"}", "ckpt: --layers: expected a whole number, 1 to 64, not \"3\""},
        {"{\"layers\": 3.0}", "a whole number"},
        {"{\"layers\": 65}", "not 65"},
        {"{\"layers\": null}", "a whole number"},
        {"{\"lr\": \"1\"}", "a number"},
        {"{\"lr\": -1}", "at least 0"},
        {"{\"bias\": 1}", "true or false"},
        {"{\"log\": 1}", "a string"},
        {"{\"log\": {\"a\": []}}", "a string"},
        {"{\"norm\": \"rows\"}", "one of"},
        {"{\"norm\": null}", "ckpt: --norm: expected one of: "},
        {"{\"norm\": null}", "not null"},
        {"[1]", "not a JSON object"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        json_t *object = json_loads(cases[c].text, 0, NULL);
        assert_non_null(object);
        const int code = sl_options_from_json(table, *state, object, NULL, "ckpt");
        json_decref(object);
        if (code != SL_ERR_DATA || !strstr(sl_error_message(), cases[c].part))
            fail_msg("%s gave %d \"%s\"", cases[c].text, code, sl_error_message());
    }
    json_t *whole = json_pack("{s:i}", "lr", 1); /* a JSON integer is a number too */
    assert_int_equal(sl_options_from_json(table, *state, whole, NULL, "ckpt"), 0);
    json_decref(whole);
}

/* Return the text that a printing function writes to stdout. */
/* The text that a function prints. */
static char *capture(void (*print)(const struct sl_option *), const struct sl_option *rows)
{
    fflush(stdout);
    FILE *file = tmpfile();
    const int saved = dup(1);
    dup2(fileno(file), 1);
    print(rows);
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    char *text = calloc(1, 65536);
    rewind(file);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static void print_all(const struct sl_option *rows)
{
    sl_options_print_help(rows, NULL);
}

static void print_often(const struct sl_option *rows)
{
    static const char *const often[] = {"bias", "layers", NULL};
    sl_options_print_help(rows, often);
}

SL_TEST(test_help)
{
    static const struct sl_option rows[] = {
        {"layers", SL_OPTION_INT, 0, "2", 1, 64, NULL, "N", "Layers of the network", "Model"},
        {"log", SL_OPTION_STRING, 8, NULL, 0, 0, NULL, "FILE",
         "Write one JSON object per line with all that happens "
         "in a run of the program to FILE, which is truncated first and flushed after each of the "
         "epochs",
         "Output"},
        {"bias", SL_OPTION_FLAG, 16, "yes", 0, 0, NULL, NULL, "Add a bias", "Model"},
        {"a-name-that-is-rather-long", SL_OPTION_REAL, 24, "0.5", 0, 1e300, NULL, "P", "Dropout",
         "Model"},
        {0},
    };
    char *text = capture(print_all, rows);
    assert_non_null(strstr(
        text, "\nModel:\n  --layers N              Layers of the network (1 to 64; default 2)\n"
              "  --[no-]bias             Add a bias (default yes)\n"
              "  --a-name-that-is-rather-long P\n"
              "                          Dropout (at least 0; default 0.5)\n"
              "\nOutput:\n  --log FILE "));
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        assert_true(strcspn(line, "\n") <= 100);
    }
    free(text);
}

SL_TEST(test_short_help)
{
    static const struct sl_option rows[] = {
        {"layers", SL_OPTION_INT, 0, "2", 1, 64, NULL, "N", "Layers; 1.5 too. More", "Model"},
        {"log", SL_OPTION_STRING, 8, NULL, 0, 0, NULL, "FILE", "Write", "Output"},
        {"bias", SL_OPTION_FLAG, 16, "yes", 0, 0, NULL, NULL, "Add a bias. Else not", "Model"},
        {0},
    };
    char *text = capture(print_often, rows);
    assert_string_equal(text, "\nModel:\n  --layers N              Layers (default 2)\n"
                              "  --[no-]bias             Add a bias (default yes)\n");
    free(text);
}

static void print_bash(const struct sl_option *rows)
{
    sl_options_print_bash(rows, "  ");
}

static void print_zsh(const struct sl_option *rows)
{
    sl_options_print_zsh(rows, "  ");
}

SL_TEST(test_completion)
{
    static const struct sl_option rows[] = {
        {"layers", SL_OPTION_INT, 0, "2", 1, 64, NULL, "N", "It's [one]: 1", "Model"},
        {"log", SL_OPTION_STRING, 8, NULL, 0, 0, NULL, "FILE", "Write; more", "Output"},
        {"bias", SL_OPTION_FLAG, 16, "yes", 0, 0, NULL, NULL, "Add", "Model"},
        {"plan", SL_OPTION_FLAG, 17, "no", 0, 0, NULL, NULL, "Plan", "Model"},
        {"norm", SL_OPTION_CHOICE, 24, "row", 0, 0, "row|sym", "KIND", "Norm", "Model"},
        {0},
    };
    char *text = capture(print_bash, rows);
    assert_string_equal(text, "  options='--help --layers --log --no-bias --plan --norm'\n"
                              "  case $before in\n  --layers) return ;;\n  --log) return ;;\n"
                              "  --norm) values='row sym' ;;\n  esac\n");
    free(text);
    text = capture(print_zsh, rows);
    assert_string_equal(text, " \\\n  '--layers[It'\\''s \\[one\\]\\: 1]:N:'"
                              " \\\n  '--log[Write]:FILE:_files' \\\n  '--no-bias[Add]'"
                              " \\\n  '--plan[Plan]' \\\n  '--norm[Norm]:value:(row sym)'");
    free(text);
}

SL_TEST(test_man)
{
    static const struct sl_option rows[] = {
        {"a-b", SL_OPTION_INT, 0, "2", 1, 64, NULL, "N", ".x\\y", "Model"},
        {"bias", SL_OPTION_FLAG, 8, "yes", 0, 0, NULL, NULL, "Add", "Model"},
        {0},
    };
    char *text = capture(sl_options_print_man, rows);
    assert_string_equal(
        text, ".PP\nModel:\n.TP\n\\fB\\-\\-a\\-b\\fR \\fIN\\fR\n\\&.x\\ey (1 to 64; default 2).\n"
              ".TP\n\\fB\\-\\-[no\\-]bias\\fR\nAdd (default yes).\n");
    free(text);
}

SL_TEST(test_nearest)
{
    assert_int_equal(sl_nearest_distance("train", "train"), 0);
    assert_int_equal(sl_nearest_distance("", "abc"), 3);
    assert_int_equal(sl_nearest_distance("abc", ""), 3);
    assert_int_equal(sl_nearest_distance("weight", "weight-decay"), 1);
    assert_int_equal(sl_nearest_distance("trian", "train"), 1);
    assert_int_equal(sl_nearest_distance("kitten", "sitting"), 3);
    struct sl_guess guess = sl_guess_begin("gnc");
    assert_string_equal(sl_guess_hint(&guess).text, "");
    sl_guess_consider_list(&guess, " sage|gcn |gnn", "| ");
    assert_string_equal(sl_guess_hint(&guess).text, "; the nearest is gcn");
    assert_true(sl_nearest_is_close("lr", 1));
    assert_false(sl_nearest_is_close("lr", 2));
    assert_true(sl_nearest_is_close("hidden", 2));
    assert_false(sl_nearest_is_close("hidden", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parse, setup, teardown),
        cmocka_unit_test_setup_teardown(test_last_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_value_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_double_dash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_value_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_choices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words, setup, teardown),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test_setup_teardown(test_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
        cmocka_unit_test(test_unknown_elsewhere_known),
        cmocka_unit_test(test_unknown_without_options),
        cmocka_unit_test_setup_teardown(test_long_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flags, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_value, setup, teardown),
        cmocka_unit_test(test_bad_default),
        cmocka_unit_test_setup_teardown(test_json_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_skip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_bad, setup, teardown),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_short_help),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_man),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
