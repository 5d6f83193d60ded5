#include "core/options.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json_file.h"
#include "core/nearest.h"
#include "core/number.h"

/* Return the address of `option`'s value in the configuration, as its type. */
static bool *flag_of(const struct sl_option *option, const void *config)
{
    return (bool *)((char *)config + option->offset);
}

static int64_t *int_of(const struct sl_option *option, const void *config)
{
    return (int64_t *)((char *)config + option->offset);
}

static double *real_of(const struct sl_option *option, const void *config)
{
    return (double *)((char *)config + option->offset);
}

static char **text_of(const struct sl_option *option, const void *config)
{
    return (char **)((char *)config + option->offset);
}

static int *choice_of(const struct sl_option *option, const void *config)
{
    return (int *)((char *)config + option->offset);
}

static const void **kind_of(const struct sl_option *option, const void *config)
{
    return (const void **)((char *)config + option->offset);
}

static void *value_of(const struct sl_option *option, const void *config)
{
    return (char *)config + option->offset;
}

static bool is_text(const struct sl_option *option)
{
    return option->type == SL_OPTION_STRING || option->type == SL_OPTION_NAME;
}

static bool is_choice(const struct sl_option *option)
{
    return option->type == SL_OPTION_CHOICE || option->type == SL_OPTION_WAY;
}

/* Return the word of a choice or a kind. */
static struct sl_word word_of(const struct sl_option *option, const void *config)
{
    if (option->type != SL_OPTION_KIND)
        return sl_choice_word(option->choices, *choice_of(option, config));
    const void *kind = *kind_of(option, config);
    const char *name = kind ? *(const char *const *)kind : "";
    return sl_choice_word(option->choices, kind ? sl_choice_find(option->choices, name) : 0);
}

/* ---- Values: text to value, with the sentence that says what was expected ---- */

static bool has_range(const struct sl_option *option)
{
    return option->min != 0 || option->max != 0;
}

void sl_option_describe_range(const struct sl_option *option, char *text, size_t size)
{
    const double unbounded = 9e15; /* a larger limit only keeps the value within its type */
    const bool low = option->min > -unbounded, high = option->max < unbounded;
    text[0] = '\0';
    if (!has_range(option))
        return;
    if (low && high && option->max == INT32_MAX)
        snprintf(text, size, "%.15g to 2^31 - 1", option->min);
    else if (low && high)
        snprintf(text, size, "%.15g to %.15g", option->min, option->max);
    else if (low)
        snprintf(text, size, "at least %.15g", option->min);
    else if (high)
        snprintf(text, size, "at most %.15g", option->max);
}

/* Describe the expected value: "a whole number, 1 to 64" and the like. */
static void describe_expected(const struct sl_option *option, char *text, size_t size)
{
    char range[64];
    sl_option_describe_range(option, range, sizeof range);
    const char *kind = option->type == SL_OPTION_INT ? "a whole number" : "a number";
    snprintf(text, size, "%s%s%s", kind, range[0] ? ", " : "", range);
}

static int refuse(const struct sl_option *option, const char *value)
{
    char expected[128];
    describe_expected(option, expected, sizeof expected);
    return sl_error(SL_ERR_USAGE, "--%s: expected %s, not \"%s\"", option->name, expected, value);
}

static bool in_range(const struct sl_option *option, double value)
{
    return !has_range(option) || (value >= option->min && value <= option->max);
}

static int parse_int(const struct sl_option *option, const char *value, int64_t *out)
{
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end || isspace((unsigned char)value[0]) || errno == ERANGE ||
        !in_range(option, (double)number))
        return refuse(option, value);
    *out = number;
    return 0;
}

static int parse_real(const struct sl_option *option, const char *value, double *out)
{
    char *end;
    /* Decimal only: strtod would also take inf, nan and hexadecimal. */
    if (strspn(value, "+-.0123456789eE") != strlen(value))
        return refuse(option, value);
    const double number = sl_number_read(value, &end);
    if (end == value || *end || !isfinite(number) || !in_range(option, number))
        return refuse(option, value);
    *out = number;
    return 0;
}

static int parse_flag(const struct sl_option *option, const char *value, bool *out)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return sl_error(SL_ERR_USAGE, "--%s: expected yes or no, not \"%s\"", option->name, value);
    *out = value[0] == 'y';
    return 0;
}

/* Describe the choices: "one of: gcn sage". */
static void describe_choices(const struct sl_option *option, char *text, size_t size)
{
    snprintf(text, size, "one of: %s", option->choices);
    for (char *c = text; *c; c++)
        if (*c == '|')
            *c = ' ';
}

static int parse_choice(const struct sl_option *option, const char *value, int *out)
{
    const int place = sl_choice_find(option->choices, value);
    char expected[256];
    if (place >= 0) {
        *out = place;
        return 0;
    }
    struct sl_guess guess = sl_guess_begin(value);
    describe_choices(option, expected, sizeof expected);
    sl_guess_consider_list(&guess, option->choices, "|");
    for (const struct sl_alias *alias = sl_value_aliases; alias->ours; alias++)
        if (sl_choice_find(option->choices, alias->ours) >= 0)
            sl_guess_consider(&guess, alias->theirs, alias->ours);
    return sl_error(SL_ERR_USAGE, "--%s: expected %s, not \"%s\"%s", option->name, expected, value,
                    sl_guess_hint(&guess).text);
}

/* Replace the text of an option; `value` may be NULL. */
static int store_text(const struct sl_option *option, void *config, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        return sl_error(SL_ERR_SYSTEM, "no memory for the value of --%s", option->name);
    free(*text_of(option, config));
    *text_of(option, config) = copy;
    return 0;
}

static int set_row(const struct sl_option *option, void *config, const char *value)
{
    int code, place;
    switch (option->type) {
    case SL_OPTION_FLAG:
        return parse_flag(option, value, flag_of(option, config));
    case SL_OPTION_INT:
        return parse_int(option, value, int_of(option, config));
    case SL_OPTION_REAL:
        return parse_real(option, value, real_of(option, config));
    case SL_OPTION_CHOICE:
    case SL_OPTION_WAY:
        return parse_choice(option, value, choice_of(option, config));
    case SL_OPTION_KIND:
        code = parse_choice(option, value, &place);
        if (!code)
            *kind_of(option, config) = option->find(value);
        return code;
    case SL_OPTION_VALUE:
        return option->value->read(value, value_of(option, config))
                   ? 0
                   : sl_error(SL_ERR_USAGE, "--%s %s: expected %s", option->name, value,
                              option->value->expected);
    case SL_OPTION_NAME:
        code = parse_choice(option, value, &place);
        return code ? code : store_text(option, config, value);
    case SL_OPTION_STRING:
        return store_text(option, config, value);
    }
    return 0;
}

static void clear_row(const struct sl_option *option, void *config)
{
    switch (option->type) {
    case SL_OPTION_FLAG:
        *flag_of(option, config) = false;
        break;
    case SL_OPTION_INT:
        *int_of(option, config) = 0;
        break;
    case SL_OPTION_REAL:
        *real_of(option, config) = 0;
        break;
    case SL_OPTION_CHOICE:
    case SL_OPTION_WAY:
        *choice_of(option, config) = SL_NO_CHOICE;
        break;
    case SL_OPTION_KIND:
        *kind_of(option, config) = NULL;
        break;
    case SL_OPTION_VALUE:
        memset(value_of(option, config), 0, option->value->size);
        if (!option->default_value)
            option->value->read(NULL, value_of(option, config));
        break;
    case SL_OPTION_NAME:
    case SL_OPTION_STRING:
        *text_of(option, config) = NULL;
        break;
    }
}

int sl_options_defaults(const struct sl_option *table, void *config)
{
    for (const struct sl_option *option = table; option->name; option++)
        clear_row(option, config);
    for (const struct sl_option *option = table; option->name; option++) {
        const int code = option->default_value ? set_row(option, config, option->default_value) : 0;
        if (code)
            return code;
    }
    return 0;
}

void sl_options_free(const struct sl_option *table, void *config)
{
    for (const struct sl_option *option = table; option->name; option++)
        if (is_text(option)) {
            free(*text_of(option, config));
            *text_of(option, config) = NULL;
        }
}

/* ---- The command line ---- */

/* Return the row called `name` (length characters), or NULL. */
static const struct sl_option *find(const struct sl_option *table, const char *name, size_t length)
{
    for (const struct sl_option *option = table; option->name; option++)
        if (strlen(option->name) == length && strncmp(option->name, name, length) == 0)
            return option;
    return NULL;
}

/* Return the flag that "no-" and the flag's name clears, or NULL. */
static const struct sl_option *find_negated(const struct sl_option *table, const char *name,
                                            size_t length)
{
    if (length <= 3 || strncmp(name, "no-", 3) != 0)
        return NULL;
    const struct sl_option *option = find(table, name + 3, length - 3);
    return option && option->type == SL_OPTION_FLAG ? option : NULL;
}

size_t sl_options_nearest(const struct sl_option *table, const char *typed, char *nearest,
                          size_t size)
{
    struct sl_guess guess = sl_guess_begin(typed);
    char negated[80];
    for (const struct sl_option *option = table; option->name; option++) {
        sl_guess_consider(&guess, option->name, option->name);
        snprintf(negated, sizeof negated, "no-%s", option->name);
        if (option->type == SL_OPTION_FLAG)
            sl_guess_consider(&guess, negated, negated);
    }
    for (const struct sl_alias *alias = sl_aliases; alias->ours; alias++)
        if (find(table, alias->ours, strlen(alias->ours)))
            sl_guess_consider(&guess, alias->theirs, alias->ours);
    snprintf(nearest, size, "%s", guess.name);
    return guess.distance;
}

static int refuse_unknown(const struct sl_option *table, const char *name, size_t length)
{
    char typed[64], nearest[80];
    snprintf(typed, sizeof typed, "%.*s", (int)(length < 63 ? length : 63), name);
    if (!table->name)
        return sl_error(SL_ERR_USAGE, "unknown option --%s: there are no options here", typed);
    if (!sl_nearest_is_close(typed, sl_options_nearest(table, typed, nearest, sizeof nearest)))
        return sl_error(SL_ERR_USAGE, "unknown option --%s: no option is near it; see --help",
                        typed);
    return sl_error(SL_ERR_USAGE, "unknown option --%s: the nearest is --%s", typed, nearest);
}

int sl_options_set(const struct sl_option *table, void *config, const char *name, const char *value)
{
    const struct sl_option *option = find(table, name, strlen(name));
    return option ? set_row(option, config, value) : refuse_unknown(table, name, strlen(name));
}

/* Set an option whose value may be missing: NULL means the first choice. */
static int set_way(const struct sl_option *option, void *config, const char *value)
{
    return set_row(option, config, value ? value : sl_choice_word(option->choices, 0).text);
}

/* Parse the option at argv[*at], move *at past it and its value, and set *row to its row. */
static int parse_one(const struct sl_option *table, void *config, int argc, char **argv, int *at,
                     const struct sl_option **row)
{
    const char *name = argv[*at] + 2, *value = NULL;
    const size_t length = strcspn(name, "=");
    if (name[length] == '=')
        value = name + length + 1;
    ++*at;
    *row = find(table, name, length);
    if (!*row) {
        *row = find_negated(table, name, length);
        if (!*row)
            return refuse_unknown(table, name, length);
        if (value)
            return sl_error(SL_ERR_USAGE, "--no-%s takes no value", (*row)->name);
        return set_row(*row, config, "no");
    }
    if ((*row)->type == SL_OPTION_FLAG)
        return set_row(*row, config, value ? value : "yes");
    if ((*row)->type == SL_OPTION_WAY) {
        if (!value && *at < argc && sl_choice_find((*row)->choices, argv[*at]) >= 0)
            value = argv[(*at)++];
        return set_way(*row, config, value);
    }
    if (!value) {
        if (*at == argc || strncmp(argv[*at], "--", 2) == 0)
            return sl_error(SL_ERR_USAGE, "--%s needs a value (%s)", (*row)->name,
                            (*row)->argument ? (*row)->argument : "VALUE");
        value = argv[(*at)++];
    }
    return set_row(*row, config, value);
}

int sl_options_parse(const struct sl_option *table, void *config, int argc, char **argv,
                     int *positionals, bool *given)
{
    *positionals = 0;
    for (int r = 0; given && table[r].name; r++)
        given[r] = false;
    for (int at = 0; at < argc;) {
        const char *word = argv[at];
        if (strcmp(word, "--") == 0) {
            for (at++; at < argc; at++)
                argv[(*positionals)++] = argv[at];
        } else if (word[0] != '-' || !word[1]) {
            argv[(*positionals)++] = argv[at++];
        } else if (word[1] != '-') {
            return sl_error(SL_ERR_USAGE, "unknown option %s: options start with two dashes", word);
        } else {
            const struct sl_option *row;
            const int code = parse_one(table, config, argc, argv, &at, &row);
            if (code)
                return code;
            if (given)
                given[row - table] = true;
        }
    }
    return 0;
}

/* ---- JSON ---- */

json_t *sl_json_text(const char *text)
{
    json_t *value = text ? json_string(text) : NULL;
    return value ? value : json_string("?");
}

json_t *sl_json_list(const char *const *texts)
{
    json_t *list = json_array();
    for (size_t k = 0; texts[k]; k++)
        if (json_array_append_new(list, sl_json_text(texts[k]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static struct sl_text text_of_value(const struct sl_option *option, const void *config)
{
    struct sl_text text = {""};
    option->value->write(value_of(option, config), &text);
    return text;
}

static json_t *value_to_json(const struct sl_option *option, const void *config)
{
    const struct sl_text text = text_of_value(option, config);
    return text.text[0] ? sl_json_text(text.text) : json_null();
}

static json_t *row_to_json(const struct sl_option *option, const void *config)
{
    switch (option->type) {
    case SL_OPTION_FLAG:
        return json_boolean(*flag_of(option, config));
    case SL_OPTION_INT:
        return json_integer(*int_of(option, config));
    case SL_OPTION_REAL:
        return json_real(*real_of(option, config));
    case SL_OPTION_CHOICE:
    case SL_OPTION_WAY:
        if (*choice_of(option, config) == SL_NO_CHOICE)
            return json_null();
        return sl_json_text(word_of(option, config).text);
    case SL_OPTION_KIND:
        return sl_json_text(word_of(option, config).text);
    case SL_OPTION_VALUE:
        return value_to_json(option, config);
    case SL_OPTION_NAME:
    case SL_OPTION_STRING:
        break;
    }
    const char *text = *text_of(option, config);
    return text ? sl_json_text(text) : json_null();
}

struct sl_word sl_options_word(const struct sl_option *table, const void *config, const char *name)
{
    return word_of(find(table, name, strlen(name)), config);
}

struct sl_text sl_options_text(const struct sl_option *table, const void *config, const char *name)
{
    return text_of_value(find(table, name, strlen(name)), config);
}

json_t *sl_options_to_json(const struct sl_option *table, const void *config)
{
    json_t *object = json_object();
    for (const struct sl_option *option = table; option->name; option++)
        json_object_set_new(object, option->name, row_to_json(option, config));
    return object;
}

/* Values of files of older programs, with their present names. */
static const struct {
    const char *option, *before, *now;
} renamed[] = {{"partial-sums", "published", "unscaled"}};

static const char *value_now(const struct sl_option *option, const char *value)
{
    for (size_t k = 0; k < sizeof renamed / sizeof *renamed; k++)
        if (strcmp(option->name, renamed[k].option) == 0 && strcmp(value, renamed[k].before) == 0)
            return renamed[k].now;
    return value;
}

/* Set one row from JSON. On a wrong type or value return a code and leave the sentence without the
 * source. */
static int row_from_json(const struct sl_option *option, void *config, const json_t *value)
{
    if (option->type == SL_OPTION_FLAG && json_is_boolean(value)) {
        *flag_of(option, config) = json_is_true(value);
        return 0;
    }
    if (option->type == SL_OPTION_INT && json_is_integer(value) &&
        in_range(option, (double)json_integer_value(value))) {
        *int_of(option, config) = json_integer_value(value);
        return 0;
    }
    if (option->type == SL_OPTION_REAL && json_is_number(value) &&
        in_range(option, json_number_value(value))) {
        *real_of(option, config) = json_number_value(value);
        return 0;
    }
    if (option->type == SL_OPTION_STRING && !option->default_value && json_is_null(value))
        return store_text(option, config, NULL);
    if (is_choice(option) && !option->default_value && json_is_null(value)) {
        *choice_of(option, config) = SL_NO_CHOICE;
        return 0;
    }
    if (option->type == SL_OPTION_VALUE && !option->default_value && json_is_null(value)) {
        clear_row(option, config);
        return 0;
    }
    if ((is_text(option) || option->value || option->choices) && json_is_string(value))
        return set_row(option, config, value_now(option, json_string_value(value)));

    char expected[256] = "a string";
    if (option->choices)
        describe_choices(option, expected, sizeof expected);
    else if (option->type == SL_OPTION_FLAG)
        snprintf(expected, sizeof expected, "true or false");
    else if (!is_text(option) && !option->value)
        describe_expected(option, expected, sizeof expected);
    char *found = sl_json_print(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const int code = sl_error(SL_ERR_USAGE, "--%s: expected %s, not %.80s", option->name, expected,
                              found ? found : "?");
    free(found);
    return code;
}

int sl_options_from_json(const struct sl_option *table, void *config, const json_t *object,
                         const bool *skip, const char *source)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return sl_error(SL_ERR_DATA, "%s: the configuration is not a JSON object", source);
    json_object_foreach((json_t *)object, name, value)
    {
        const struct sl_option *option = find(table, name, strlen(name));
        if (!option) {
            char nearest[80];
            const bool close =
                sl_nearest_is_close(name, sl_options_nearest(table, name, nearest, sizeof nearest));
            return sl_error(SL_ERR_DATA, "%s: unknown option \"%s\" in the configuration%s%s",
                            source, name, close ? ": the nearest is " : "", close ? nearest : "");
        }
        if (skip && skip[option - table])
            continue;
        if (row_from_json(option, config, value)) {
            char reason[512];
            snprintf(reason, sizeof reason, "%s", sl_error_message());
            return sl_error(SL_ERR_DATA, "%s: %s", source, reason);
        }
    }
    return 0;
}
