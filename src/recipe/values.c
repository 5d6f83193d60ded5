#include "recipe/values.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "graphs/vertex_cut.h"

/* ---- Text ---- */

/* Read a whole number of at most `most` at *text, which moves past it. */
static bool take_number(const char **text, int64_t least, int64_t most, int64_t *number)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *number = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0 && *number >= least && *number <= most;
}

static bool take_character(const char **text, char wanted)
{
    const bool found = **text == wanted;
    *text += found;
    return found;
}

/* Read a whole number that is all of the text. */
static bool read_number(const char *text, int64_t least, int64_t most, int *number)
{
    int64_t wide;
    const bool reads = take_number(&text, least, most, &wide) && !*text;
    if (reads)
        *number = (int)wide;
    return reads;
}

static bool is_word(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

__attribute__((format(printf, 2, 3))) static void append(struct sl_text *text, const char *format,
                                                         ...)
{
    va_list arguments;
    const size_t used = strlen(text->text);
    va_start(arguments, format);
    vsnprintf(text->text + used, sizeof text->text - used, format, arguments);
    va_end(arguments);
}

/* ---- Numbers with words ---- */

static bool read_delay(const char *text, void *value)
{
    int *delay = value;
    *delay = is_word(text, "0c") ? SL_DELAY_NEVER : SL_DELAY_EXACT;
    return *delay == SL_DELAY_NEVER ||
           (strncmp(text, "cd-", 3) == 0 && read_number(text + 3, 0, SL_MOST_DELAY, delay));
}

static void write_delay(const void *value, struct sl_text *text)
{
    const int delay = *(const int *)value;
    if (delay == SL_DELAY_NEVER)
        append(text, "0c");
    else
        append(text, "cd-%d", delay);
}

const struct sl_option_value sl_value_delay = {sizeof(int), "cd-0, cd-1 … cd-1000, or 0c",
                                               read_delay, write_delay};

static bool read_recompute(const char *text, void *value)
{
    int *blocks = value;
    *blocks = is_word(text, "auto") ? SL_RECOMPUTE_AUTO : 0;
    return *blocks || is_word(text, "none") || read_number(text, 1, 1000, blocks);
}

static void write_recompute(const void *value, struct sl_text *text)
{
    const int blocks = *(const int *)value;
    if (blocks > 0)
        append(text, "%d", blocks);
    else
        append(text, blocks == SL_RECOMPUTE_AUTO ? "auto" : "none");
}

const struct sl_option_value sl_value_recompute = {sizeof(int), "auto, none, or 1 to 1000 blocks",
                                                   read_recompute, write_recompute};

static bool read_preload(const char *text, void *value)
{
    int *hops = value;
    *hops = is_word(text, "auto") ? SL_PRELOAD_AUTO : SL_PRELOAD_ALL;
    return *hops == SL_PRELOAD_AUTO || is_word(text, "all") || read_number(text, 1, 1000, hops);
}

static void write_preload(const void *value, struct sl_text *text)
{
    const int hops = *(const int *)value;
    if (hops > 0)
        append(text, "%d", hops);
    else
        append(text, hops == SL_PRELOAD_AUTO ? "auto" : "all");
}

const struct sl_option_value sl_value_preload = {sizeof(int), "all, auto, or 1 to 1000 hops",
                                                 read_preload, write_preload};

static bool read_max_hop(const char *text, void *value)
{
    int *hops = value;
    *hops = text ? SL_ALL_HOPS : SL_NO_HOPS;
    return !text || is_word(text, "all") || read_number(text, 0, 1000, hops);
}

static void write_max_hop(const void *value, struct sl_text *text)
{
    const int hops = *(const int *)value;
    if (hops == SL_ALL_HOPS)
        append(text, "all");
    else if (hops >= 0)
        append(text, "%d", hops);
}

const struct sl_option_value sl_value_max_hop = {sizeof(int), "all, or 0 to 1000 hops",
                                                 read_max_hop, write_max_hop};

/* ---- Shapes ---- */

static bool read_groups(const char *text, void *value)
{
    struct sl_group_shape *shape = value;
    int64_t groups = 0, each = 0;
    *shape = (struct sl_group_shape){.given = text != NULL};
    if (!text)
        return true;
    shape->servers = is_word(text, "servers");
    const bool numbers = take_number(&text, 1, INT32_MAX, &groups) && take_character(&text, 'x') &&
                         take_number(&text, 1, INT32_MAX, &each) && !*text;
    shape->groups = (int)groups;
    shape->each = (int)each;
    return shape->servers || numbers;
}

static void write_groups(const void *value, struct sl_text *text)
{
    const struct sl_group_shape *shape = value;
    if (shape->servers)
        append(text, "servers");
    else if (shape->given)
        append(text, "%dx%d", shape->groups, shape->each);
}

const struct sl_option_value sl_value_groups = {sizeof(struct sl_group_shape),
                                                "servers, or GxP with G groups of P ranks",
                                                read_groups, write_groups};

static bool read_grid(const char *text, void *value)
{
    enum { MOST = 99999 };
    struct sl_grid *grid = value;
    int64_t rows = 0, columns = 0, depth = 0;
    const bool reads =
        !text || (take_number(&text, 1, MOST, &rows) && take_character(&text, 'x') &&
                  take_number(&text, 1, MOST, &columns) && take_character(&text, 'x') &&
                  take_number(&text, 1, MOST, &depth) && !*text);
    *grid = (struct sl_grid){(int)rows, (int)columns, (int)depth};
    return reads;
}

static void write_grid(const void *value, struct sl_text *text)
{
    const struct sl_grid *grid = value;
    if (grid->rows > 0)
        append(text, "%dx%dx%d", grid->rows, grid->columns, grid->depth);
}

const struct sl_option_value sl_value_grid = {sizeof(struct sl_grid), "RxCxD, as 2x2x1", read_grid,
                                              write_grid};

/* ---- Batches ---- */

static const struct sl_batches_kind kinds[] = {
    {"full", 0, false},
    {"co", 1, false},
    {"clusters", 2, true},
};

static const char automatic[] = "co:auto";

/* "NAME:N,M" with so many numbers as the kind has. */
static bool read_kind(const struct sl_batches_kind *kind, const char *text, int64_t number[2])
{
    const size_t length = strlen(kind->name);
    bool reads = strncmp(text, kind->name, length) == 0;
    text += reads ? length : 0;
    for (int n = 0; reads && n < kind->numbers; n++)
        reads =
            take_character(&text, n ? ',' : ':') && take_number(&text, 1, INT32_MAX, &number[n]);
    return reads && !*text;
}

static bool read_batches(const char *text, void *value)
{
    struct sl_batches_choice *choice = value;
    int64_t number[2] = {1, 1};
    *choice = (struct sl_batches_choice){.automatic = is_word(text, automatic)};
    for (size_t k = 0; !choice->kind && k < sizeof kinds / sizeof *kinds; k++)
        if (read_kind(&kinds[k], choice->automatic ? "co:1" : text, number))
            choice->kind = &kinds[k];
    choice->sets = number[0];
    choice->each = number[1];
    return choice->kind;
}

static void write_batches(const void *value, struct sl_text *text)
{
    const struct sl_batches_choice *choice = value;
    append(text, "%s", choice->automatic ? automatic : choice->kind->name);
    if (!choice->automatic && choice->kind->numbers > 0)
        append(text, ":%lld", (long long)choice->sets);
    if (choice->kind->numbers > 1)
        append(text, ",%lld", (long long)choice->each);
}

const struct sl_option_value sl_value_batches = {
    sizeof(struct sl_batches_choice),
    "full, co:R with R batches, co:auto, or clusters:K,B with K clusters, B of them in a batch",
    read_batches, write_batches};

/* ---- Epochs ---- */

static bool read_epoch_range(const char *text, void *value)
{
    struct sl_epoch_range *range = value;
    *range = (struct sl_epoch_range){0, 0};
    if (!text)
        return true;
    bool reads = take_number(&text, 1, INT64_MAX, &range->first);
    range->last = range->first;
    if (reads && *text == '-')
        reads =
            take_character(&text, '-') && take_number(&text, range->first, INT64_MAX, &range->last);
    return reads && !*text;
}

static void write_epoch_range(const void *value, struct sl_text *text)
{
    const struct sl_epoch_range *range = value;
    if (range->first > 0)
        append(text, "%lld", (long long)range->first);
    if (range->last > range->first)
        append(text, "-%lld", (long long)range->last);
}

const struct sl_option_value sl_value_epoch_range = {
    sizeof(struct sl_epoch_range), "an epoch, or the first and the last one: 10-12",
    read_epoch_range, write_epoch_range};

/* ---- Lists ---- */

/* Numbers of at most 8 digits: struct sl_text has room for all. */
enum { MOST_EPOCHS = 10000000, MOST_LAYERS = 1000 };
_Static_assert(SL_MOST_NUMBERS * 9 < sizeof(struct sl_text), "a list has no room in a text");

static bool read_numbers(const char *text, int64_t least, int64_t most, bool rise,
                         struct sl_numbers *list)
{
    bool reads = true;
    for (list->count = 0; reads && (list->count == 0 || *text); list->count++) {
        reads = list->count < SL_MOST_NUMBERS && (list->count == 0 || take_character(&text, ',')) &&
                take_number(&text, least, most, &list->number[list->count]);
        least = reads && rise ? list->number[list->count] + 1 : least;
    }
    return reads;
}

static void write_numbers(const struct sl_numbers *list, struct sl_text *text)
{
    for (int k = 0; k < list->count; k++)
        append(text, "%s%lld", k ? "," : "", (long long)list->number[k]);
}

static bool read_milestones(const char *text, void *value)
{
    struct sl_numbers *list = value;
    list->count = 0;
    return !text || read_numbers(text, 1, MOST_EPOCHS, true, list);
}

static void write_milestones(const void *value, struct sl_text *text)
{
    write_numbers(value, text);
}

const struct sl_option_value sl_value_milestones = {
    sizeof(struct sl_numbers), "epochs that rise, at most 255, with commas between them",
    read_milestones, write_milestones};

static bool read_split_layers(const char *text, void *value)
{
    struct sl_split_layers *split = value;
    split->all = is_word(text, "all");
    split->layers.count = 0;
    return split->all || read_numbers(text, 0, MOST_LAYERS, true, &split->layers);
}

static void write_split_layers(const void *value, struct sl_text *text)
{
    const struct sl_split_layers *split = value;
    if (split->all)
        append(text, "all");
    write_numbers(&split->layers, text);
}

const struct sl_option_value sl_value_split_layers = {
    sizeof(struct sl_split_layers),
    "all, or numbers of hidden layers that rise (0: features), with commas between them",
    read_split_layers, write_split_layers};

static bool read_unit_shares(const char *text, void *value)
{
    enum { MOST = 1000000 };
    struct sl_unit_shares *shares = value;
    shares->kind = is_word(text, "equal")  ? SL_UNITS_EQUAL
                   : is_word(text, "auto") ? SL_UNITS_AUTO
                                           : SL_UNITS_GIVEN;
    shares->given.count = 0;
    return shares->kind != SL_UNITS_GIVEN || read_numbers(text, 1, MOST, false, &shares->given);
}

static void write_unit_shares(const void *value, struct sl_text *text)
{
    const struct sl_unit_shares *shares = value;
    if (shares->kind != SL_UNITS_GIVEN)
        append(text, shares->kind == SL_UNITS_AUTO ? "auto" : "equal");
    write_numbers(&shares->given, text);
}

const struct sl_option_value sl_value_unit_shares = {
    sizeof(struct sl_unit_shares),
    "equal, auto, or a number from 1 to 1000000 for each sub-model, with commas between them",
    read_unit_shares, write_unit_shares};

/* ---- Splits ---- */

static bool read_split(const char *text, void *value)
{
    return sl_split_rule_read(text, value);
}

/* Append the shortest text that reads as the same number. */
static void append_real(struct sl_text *text, const char *before, double number)
{
    char digits[40];
    const locale_t own = uselocale(sl_number_locale());
    for (int d = 15; d <= 17; d++) {
        snprintf(digits, sizeof digits, "%.*g", d, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    uselocale(own);
    append(text, "%s%s", before, digits);
}

static void write_split(const void *value, struct sl_text *text)
{
    const struct sl_split_rule *rule = value;
    if (rule->given && rule->per_class)
        append(text, "%lld/%lld/rest", (long long)rule->counts[0], (long long)rule->counts[1]);
    for (int s = 0; rule->given && !rule->per_class && s < 3; s++)
        append_real(text, s > 0 ? "/" : "", rule->shares[s]);
}

const struct sl_option_value sl_value_split = {sizeof(struct sl_split_rule), SL_SPLIT_RULE_FORM,
                                               read_split, write_split};

static bool read_split_edges(const char *text, void *value)
{
    return sl_link_rule_read(text, value);
}

static void write_split_edges(const void *value, struct sl_text *text)
{
    const struct sl_link_rule *rule = value;
    for (int s = 0; rule->given && s < 3; s++)
        append_real(text, s > 0 ? "/" : "", rule->shares[s]);
}

const struct sl_option_value sl_value_split_edges = {sizeof(struct sl_link_rule), SL_LINK_RULE_FORM,
                                                     read_split_edges, write_split_edges};
