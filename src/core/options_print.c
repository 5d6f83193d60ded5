#include "core/options_print.h"

#include <stdio.h>
#include <string.h>

static bool is_on(const struct sl_option *option)
{
    return option->type == SL_OPTION_FLAG && option->default_value &&
           strcmp(option->default_value, "yes") == 0;
}

/* Describe the option as a user types it: "--layers N", "--[no-]bias". */
static void describe_usage(const struct sl_option *option, char *text, size_t size)
{
    if (option->type == SL_OPTION_FLAG)
        snprintf(text, size, is_on(option) ? "--[no-]%s" : "--%s", option->name);
    else
        snprintf(text, size, "--%s %s", option->name,
                 option->argument ? option->argument : "VALUE");
}

/* Return the length of the first sentence, or of the text before a semicolon. */
static int first_sentence(const char *help)
{
    size_t length = strcspn(help, ";");
    const char *stop = strstr(help, ". ");
    if (stop && (size_t)(stop - help) < length)
        length = (size_t)(stop - help);
    return (int)length;
}

/* Describe the default in words. For a number with a meaning, such as -1, take the meaning from the
 * help ("-1: as --dropout"). */
static void describe_default(const struct sl_option *option, char *text, size_t size)
{
    char number[16];
    const char *value = option->default_value;
    const bool stands = strcmp(value, "0") == 0 || strcmp(value, "-1") == 0;
    snprintf(number, sizeof number, " %s: ", value);
    const char *words = stands ? strstr(option->help, number) : NULL;
    if (!words) {
        snprintf(text, size, "default %s", value);
        return;
    }
    words += strlen(number);
    snprintf(text, size, "default: %.*s", first_sentence(words), words);
}

/* Describe the choices or the range, and the default, to follow the help sentence. */
static void describe_notes(const struct sl_option *option, bool whole, char *text, size_t size)
{
    char range[64] = "", choices[256] = "", value[192] = "";
    if (whole && (option->type == SL_OPTION_INT || option->type == SL_OPTION_REAL))
        sl_option_describe_range(option, range, sizeof range);
    if (option->choices) {
        size_t used = 0;
        for (const char *c = option->choices; *c && used + 3 < sizeof choices; c++) {
            choices[used++] = *c == '|' ? ',' : *c;
            if (*c == '|')
                choices[used++] = ' ';
        }
        choices[used] = '\0';
    }
    if (option->type == SL_OPTION_FLAG)
        snprintf(value, sizeof value, "%s",
                 option->default_value && option->default_value[0] == 'y' ? "default yes" : "");
    else if (option->default_value && option->default_value[0])
        describe_default(option, value, sizeof value);
    const char *limits = choices[0] ? choices : range;
    if (limits[0] || value[0])
        snprintf(text, size, " (%s%s%s)", limits, limits[0] && value[0] ? "; " : "", value);
    else
        text[0] = '\0';
}

static bool same_group(const struct sl_option *a, const struct sl_option *b)
{
    return strcmp(a->group ? a->group : "", b->group ? b->group : "") == 0;
}

/* Return whether `option` is the first row of its group. */
static bool opens_group(const struct sl_option *table, const struct sl_option *option)
{
    for (const struct sl_option *other = table; other < option; other++)
        if (same_group(other, option))
            return false;
    return true;
}

/* Return the columns that `length` bytes of UTF-8 take. */
static int columns(const char *text, size_t length)
{
    int count = 0;
    for (size_t c = 0; c < length; c++)
        count += ((unsigned char)text[c] & 0xC0) != 0x80;
    return count;
}

enum { HELP_LEFT = 26, HELP_WIDTH = 100 };

/* Print words from column HELP_LEFT on, wrapped before HELP_WIDTH; the cursor is at HELP_LEFT. */
static void print_wrapped(const char *text)
{
    int column = HELP_LEFT;
    while (*text) {
        const size_t length = strcspn(text, " ");
        const int width = columns(text, length);
        if (column > HELP_LEFT && column + 1 + width > HELP_WIDTH) {
            printf("\n%*s", HELP_LEFT, "");
            column = HELP_LEFT;
        }
        column += printf("%s", column > HELP_LEFT ? " " : "") + width;
        printf("%.*s", (int)length, text);
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

static void print_help_row(const struct sl_option *option, bool whole)
{
    char usage[128], notes[512], text[1024];
    describe_usage(option, usage, sizeof usage);
    describe_notes(option, whole, notes, sizeof notes);
    snprintf(text, sizeof text, "%.*s%s",
             whole ? (int)strlen(option->help) : first_sentence(option->help), option->help, notes);
    if (printf("  %s", usage) > HELP_LEFT - 2)
        printf("\n%*s", HELP_LEFT, "");
    else
        printf("%*s", HELP_LEFT - 2 - (int)strlen(usage), "");
    print_wrapped(text);
}

static bool is_wanted(const struct sl_option *option, const char *const *often)
{
    for (const char *const *name = often; name && *name; name++)
        if (strcmp(*name, option->name) == 0)
            return true;
    return !often;
}

static void print_help_group(const struct sl_option *first, const char *const *often)
{
    bool opened = false;
    for (const struct sl_option *option = first; option->name; option++) {
        if (!same_group(first, option) || !is_wanted(option, often))
            continue;
        if (!opened)
            printf("\n%s:\n", first->group ? first->group : "Options");
        opened = true;
        print_help_row(option, !often);
    }
}

void sl_options_print_help(const struct sl_option *table, const char *const *often)
{
    for (const struct sl_option *first = table; first->name; first++)
        if (opens_group(table, first))
            print_help_group(first, often);
}

void sl_print_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_man_row(const struct sl_option *option)
{
    char notes[512];
    describe_notes(option, true, notes, sizeof notes);
    fputs(".TP\n\\fB", stdout);
    if (option->type == SL_OPTION_FLAG) {
        char usage[128];
        describe_usage(option, usage, sizeof usage);
        sl_print_roff(usage);
        fputs("\\fR\n", stdout);
    } else {
        sl_print_roff("--");
        sl_print_roff(option->name);
        fputs("\\fR \\fI", stdout);
        sl_print_roff(option->argument ? option->argument : "VALUE");
        fputs("\\fR\n", stdout);
    }
    sl_print_roff(option->help);
    sl_print_roff(notes);
    fputs(".\n", stdout);
}

void sl_options_print_man(const struct sl_option *table)
{
    for (const struct sl_option *first = table; first->name; first++) {
        if (!opens_group(table, first))
            continue;
        fputs(".PP\n", stdout);
        sl_print_roff(first->group ? first->group : "Options");
        fputs(":\n", stdout);
        for (const struct sl_option *option = first; option->name; option++)
            if (same_group(first, option))
                print_man_row(option);
    }
}

/* ---- Completion ---- */

/* Print "a|b|c" as "a b c". */
static void print_choices(const char *choices)
{
    for (const char *c = choices; *c; c++)
        putchar(*c == '|' ? ' ' : *c);
}

void sl_options_print_bash(const struct sl_option *table, const char *indent)
{
    printf("%soptions='--help", indent);
    for (const struct sl_option *option = table; option->name; option++)
        printf(" --%s%s", is_on(option) ? "no-" : "", option->name);
    printf("'\n%scase $before in\n", indent);
    for (const struct sl_option *option = table; option->name; option++) {
        if (option->type == SL_OPTION_FLAG)
            continue;
        printf("%s--%s) ", indent, option->name);
        if (option->choices) {
            fputs("values='", stdout);
            print_choices(option->choices);
            puts("' ;;");
        } else {
            puts("return ;;"); /* without words, the shell completes file names */
        }
    }
    printf("%sesac\n", indent);
}

/* Print text between the brackets of _arguments, inside single quotes. */
static void print_zsh_text(const char *text, int length)
{
    for (int c = 0; c < length; c++) {
        if (strchr("[]:\\", text[c]))
            putchar('\\');
        fputs(text[c] == '\'' ? "'\\''" : (char[]){text[c], '\0'}, stdout);
    }
}

void sl_options_print_zsh(const struct sl_option *table, const char *indent)
{
    for (const struct sl_option *option = table; option->name; option++) {
        printf(" \\\n%s'--%s%s[", indent, is_on(option) ? "no-" : "", option->name);
        print_zsh_text(option->help, first_sentence(option->help));
        putchar(']');
        if (option->choices) {
            fputs(option->type == SL_OPTION_WAY ? "::value:(" : ":value:(", stdout);
            print_choices(option->choices);
            putchar(')');
        } else if (option->type != SL_OPTION_FLAG) {
            printf(":%s:%s", option->argument ? option->argument : "value",
                   option->type == SL_OPTION_STRING ? "_files" : "");
        }
        putchar('\'');
    }
}
