#include "data/formats/edge_layout.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
#include "data/block.h"
#include "data/formats/edges.h"

/* ---- Records ---- */

int sl_edge_layout_next(struct sl_csv *csv)
{
    const int got = sl_csv_next(csv);
    if (got <= 0)
        return got;
    for (int64_t c = 2; c < csv->fields && csv->delimiter == ' '; c++)
        if (csv->field[c][0] == '#' && !csv->quoted[c])
            csv->fields = c;
    const bool tab = csv->delimiter == '\t' && csv->fields > 2; /* at the line's end */
    csv->fields -= tab && csv->field[csv->fields - 1][0] == '\0';
    return got;
}

static int copy_record(const struct sl_csv *csv, struct sl_edge_record *out)
{
    out->count = csv->fields;
    out->field = sl_block_array(&out->blocks, out->count, sizeof *out->field);
    for (int64_t c = 0; c < out->count; c++) {
        if (out->field)
            out->field[c] = sl_block_print(&out->blocks, "%s", csv->field[c]);
        if (!out->field || !out->field[c])
            return SL_ERR_SYSTEM;
    }
    return SL_OK;
}

/* ---- Words of headers ---- */

/* A field's letters and digits in lower case; "" for long fields. */
struct word {
    char text[24];
};

static struct word simplify(const char *field)
{
    struct word word = {""};
    size_t length = 0;
    for (; *field; field++)
        if (isalnum((unsigned char)*field)) {
            if (length + 1 == sizeof word.text)
                return (struct word){""};
            word.text[length++] = (char)tolower((unsigned char)*field);
        }
    return word;
}

/* Return the column called `name`, or -1. */
static int64_t find_column(const struct sl_edge_record *record, const char *name)
{
    for (int64_t c = 0; c < record->count; c++)
        if (strcmp(simplify(record->field[c]).text, name) == 0)
            return c;
    return -1;
}

static bool find_ends(const struct sl_edge_record *record, int64_t *source, int64_t *target)
{
    static const char *const pairs[][2] = {
        {"source", "target"},
        {"source", "destination"},
        {"source", "dest"},
        {"src", "dst"},
        {"src", "dest"},
        {"from", "to"},
        {"u", "v"},
        {"i", "j"},
        {"start", "end"},
        {"head", "tail"},
        {"tail", "head"},
        {"id1", "id2"},
        {"node1", "node2"},
        {"nodea", "nodeb"},
        {"sourceid", "targetid"},
        {"srcid", "dstid"},
        {"fromid", "toid"},
        {"fromnode", "tonode"},
        {"fromnodeid", "tonodeid"},
        {"sender", "receiver"},
        {"citing", "cited"},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        *source = find_column(record, pairs[k][0]);
        *target = find_column(record, pairs[k][1]);
        if (*source >= 0 && *target >= 0)
            return true;
    }
    return false;
}

static int64_t find_weight(const struct sl_edge_record *record)
{
    static const char *const words[] = {"weight", "weights", "edgeweight", "w",
                                        "value",  "count",   "strength",   "rating"};
    int64_t column = -1;
    for (size_t k = 0; k < sizeof words / sizeof *words && column < 0; k++)
        column = find_column(record, words[k]);
    return column;
}

/* Return whether a first column has row numbers, by the names that pandas gives it. */
static bool is_index(const struct sl_edge_record *record, int64_t c)
{
    const struct word word = simplify(record->field[c]);
    return c == 0 && (record->field[c][0] == '\0' || strcmp(word.text, "unnamed0") == 0 ||
                      strcmp(word.text, "index") == 0);
}

/* ---- Vertices ---- */

bool sl_edge_layout_is_name(const char *field)
{
    float number;
    const char *at = field;
    return *field != '\0' && !(sl_text_read_float(&at, &number) && *at == '\0') &&
           !sl_text_is_numbers(field) && !sl_text_has_decimal_comma(field);
}

static bool is_number(const struct sl_edge_record *record, int64_t c)
{
    int64_t unused;
    return c < record->count && sl_text_to_int64(record->field[c], &unused);
}

static bool is_name(const struct sl_edge_record *record, int64_t c)
{
    return c < record->count && sl_edge_layout_is_name(record->field[c]);
}

static bool is_float(const struct sl_edge_record *record, int64_t c)
{
    float unused;
    return c < record->count && sl_text_to_float(record->field[c], &unused);
}

/* Return whether a record has a number: it is no header then, whatever its words. */
static bool has_float(const struct sl_edge_record *record)
{
    bool found = false;
    for (int64_t c = 0; c < record->count && !found; c++)
        found = is_float(record, c);
    return found;
}

static bool is_known(const struct sl_vertex_map *map, const struct sl_edge_record *record,
                     int64_t c)
{
    return c < record->count && sl_vertex_map_find(map, record->field[c]) >= 0;
}

/* ---- The decision ---- */

static bool has_edge_columns(const struct sl_edge_record *record, const struct sl_edge_layout *l)
{
    return l->more || l->konect ? record->count >= 2 : record->count == 2 || record->count == 3;
}

/* Return whether the first record cannot be an edge: it names both ends, it has another number of
 * columns than edges, or it has words where the second record has numbers. */
static bool is_header(const struct sl_edge_layout *l, const struct sl_edge_record *second)
{
    const struct sl_edge_record *first = &l->first;
    const bool edge_follows = has_edge_columns(second, l);
    if (l->ends_named)
        return true;
    if (first->count >= 2 && first->field[0][0] == '\0' && is_name(first, 1))
        return true;
    if (!has_edge_columns(first, l) || (l->more && edge_follows && first->count != second->count))
        return edge_follows;
    const bool names = !is_number(first, 0) && !is_number(first, 1);
    const bool third = first->count == 3 && !is_float(first, 2) && is_float(second, 2);
    return names && ((is_number(second, 0) && is_number(second, 1)) || (third && !l->more));
}

/* Return whether the first record cannot be an edge between vertices of `map`. */
static bool is_header_of_known(const struct sl_edge_layout *l, const struct sl_vertex_map *map,
                               int64_t source, int64_t target)
{
    const struct sl_edge_record *first = &l->first;
    if (l->ends_named)
        return !is_known(map, first, source) && !is_known(map, first, target);
    return first->count >= 2 && !(is_number(first, 0) && is_number(first, 1)) &&
           !is_known(map, first, 0) && !is_known(map, first, 1);
}

/* Choose columns by the names in the header; unnamed ends are the remaining columns in order. */
static void take_named(struct sl_edge_layout *l)
{
    const int64_t weight = find_weight(&l->first);
    int64_t rest[3] = {0, 1, -1}, count = 0;
    if (l->ends_named) {
        l->weight = weight;
        return;
    }
    for (int64_t c = 0; c < l->first.count; c++)
        if (c != weight && !is_index(&l->first, c)) {
            if (count < 3)
                rest[count] = c;
            count++;
        }
    l->source = rest[0];
    l->target = rest[1];
    l->weight = weight >= 0 ? weight : count == 3 ? rest[2] : -1;
}

static void take_columns(struct sl_edge_layout *l, const struct sl_edge_record *second,
                         enum sl_weight_column weights)
{
    const bool follows = second->count > 0;
    const int64_t shift = /* row numbers have no name in the header */
        l->ends_named && second->count == l->first.count + 1;
    l->shift = shift;
    l->columns = l->header && follows ? second->count : l->first.count;
    if (l->header && (!follows || shift || second->count == l->first.count)) {
        take_named(l);
        l->source += shift;
        l->target += shift;
        l->weight += l->weight < 0 ? 0 : shift;
    } else {
        l->source = 0;
        l->target = 1;
        l->weight = l->columns >= 3 ? 2 : -1;
        l->ends_named = false;
    }
    if (weights != SL_WEIGHTS_AUTO)
        l->weight = weights == SL_WEIGHTS_THIRD ? 2 : -1;
    const struct sl_edge_record *data = l->header ? second : &l->first;
    l->names = is_name(data, l->source) || is_name(data, l->target);
    l->words_alone = !follows && !l->header && is_name(data, l->source) &&
                     is_name(data, l->target) && !has_float(data);
}

static int check(const struct sl_csv *csv, const struct sl_edge_layout *l,
                 enum sl_weight_column weights)
{
    const int64_t count = l->first.count;
    const bool named = l->header && (l->ends_named || l->columns == count);
    const bool many =
        !l->more && !l->konect && l->columns > 3 && (!named || (!l->ends_named && l->weight < 0));
    const char *last = count > 0 ? l->first.field[count - 1] : "";
    if (l->header && count == 2 && !l->ends_named && sl_edges_is_label_word(last))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": column \"%.40s\" says that these are labels, not "
                        "edges (expected edges; labels go into labels.npy)",
                        csv->text.path, l->first_line, last);
    const int64_t ends = l->source > l->target ? l->source : l->target;
    if (l->columns <= ends || many)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " has too %s columns, expected 2, or 3 with weights%s",
                        csv->text.path, l->first_line, l->columns <= ends ? "few" : "many",
                        l->columns <= ends ? "" : " (--weights none ignores further ones)");
    if (weights == SL_WEIGHTS_THIRD && l->columns < 3)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " has 2 columns, expected 3 (--weights 3)",
                        csv->text.path, l->first_line);
    if (weights == SL_WEIGHTS_THIRD && (l->source == 2 || l->target == 2))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": column 3, '%.40s', is an end of edges, expected "
                        "weights (--weights 3)",
                        csv->text.path, l->first_line, l->first.field[2 - l->shift]);
    return SL_OK;
}

/* Return what is wrong with column c as a feature of edges; NULL: nothing. */
static const char *objection(const struct sl_edge_layout *l, int64_t c, int64_t most)
{
    if (c == l->source || c == l->target)
        return "is an end of edges, expected numbers";
    for (int64_t f = 0; f < l->features; f++)
        if (l->feature[f] == c)
            return "is named twice, expected once";
    return l->features == most || c > INT16_MAX ? "is one too many, expected 256 at most" : NULL;
}

/* Return the column of that name in the header; -1: there is none. */
static int64_t named_column(const struct sl_edge_layout *l, const char *name, size_t length)
{
    for (int64_t c = 0; l->header && length > 0 && c < l->first.count; c++)
        if (strncmp(l->first.field[c], name, length) == 0 && l->first.field[c][length] == '\0')
            return c + l->shift;
    return -1;
}

/* Take the columns that become features of edges, or their relation, by their names in the header.
 */
static int take_features(const struct sl_csv *csv, const char *names, const char *option,
                         int64_t most, struct sl_edge_layout *l)
{
    const int64_t columns = l->first.count + l->shift;
    if (names && l->header && l->columns != columns)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " names %" PRId64 " columns, expected the %" PRId64
                        " of the lines below (--%s)",
                        csv->text.path, l->first_line, l->first.count, l->columns, option);
    for (const char *at = names, *next; at; at = next) {
        const size_t length = strcspn(at, ",");
        const int64_t c = named_column(l, at, length);
        const char *wrong =
            c < 0 ? "is not there, expected a header with it" : objection(l, c, most);
        next = at[length] ? at + length + 1 : NULL;
        if (wrong)
            return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": column '%.*s' %s (--%s)",
                            csv->text.path, l->first_line, (int)length, at, wrong, option);
        l->weight = l->weight == c ? -1 : l->weight;
        l->feature[l->features++] = (int16_t)c;
    }
    return SL_OK;
}

/* Recognize KONECT's files by "% sym unweighted", or two such words, at their start. Their vertices
 * count from 1; a bipartite graph counts its two sides apart. */
static int find_konect(struct sl_csv *csv, struct sl_edge_layout *l)
{
    char *line;
    int got = sl_text_next(&csv->text, &line);
    char *const mark = got > 0 && line[0] == '%' ? sl_text_word(&line) : NULL;
    const char *kind = mark && mark[1] == '\0' ? sl_text_word(&line) : NULL;
    const bool two = kind && strcmp(kind, "bip") == 0;
    l->konect = kind && (two || strcmp(kind, "sym") == 0 || strcmp(kind, "asym") == 0) &&
                sl_text_word(&line);
    if (got >= 0 && l->konect && two)
        return sl_error(SL_ERR_DATA,
                        "%s: line 1 says that left and right vertices have numbers of their own, "
                        "expected one numbering (KONECT's sym or asym)",
                        csv->text.path);
    return got < 0 ? got : sl_csv_rewind(csv);
}

static int decide(struct sl_csv *csv, const struct sl_read_options *options,
                  const struct sl_vertex_map *map, struct sl_edge_layout *l)
{
    struct sl_edge_record second = {.count = 0};
    int got = sl_edge_layout_next(csv);
    if (got <= 0)
        return got;
    l->first_line = csv->line;
    int rc = copy_record(csv, &l->first);
    if (!rc)
        got = sl_edge_layout_next(csv);
    if (!rc && got > 0)
        rc = copy_record(csv, &second);
    rc = got < 0 ? got : rc;
    if (!rc) {
        l->ends_named = find_ends(&l->first, &l->source, &l->target) && !has_float(&l->first);
        l->header = map ? is_header_of_known(l, map, l->source, l->target) : is_header(l, &second);
        take_columns(l, &second, options->weights);
        rc = check(csv, l, options->weights);
    }
    if (!rc)
        rc = take_features(csv, options->edge_features, "edge-features", SL_EDGE_FEATURES, l);
    const int64_t features = l->features;
    if (!rc)
        rc = take_features(csv, options->edge_types, "edge-types", SL_EDGE_FEATURES + 1, l);
    if (!rc && l->features > features + 1)
        rc = sl_error(SL_ERR_DATA, "%s: --edge-types %s: expected one column", csv->text.path,
                      options->edge_types);
    l->related = l->features > features;
    sl_block_free_all(&second.blocks);
    return rc ? rc : sl_csv_rewind(csv);
}

int sl_edge_layout_find(struct sl_csv *csv, const struct sl_read_options *options,
                        const struct sl_vertex_map *map, struct sl_edge_layout *out)
{
    *out = (struct sl_edge_layout){
        .columns = 2,
        .target = 1,
        .weight = -1,
        .more =
            options->weights != SL_WEIGHTS_AUTO || options->edge_features || options->edge_types,
    };
    int rc = find_konect(csv, out);
    out->first_vertex = out->konect && !map ? 1 : options->first_vertex;
    return rc ? rc : decide(csv, options, map, out);
}

void sl_edge_layout_free(struct sl_edge_layout *layout)
{
    sl_block_free_all(&layout->first.blocks);
    *layout = (struct sl_edge_layout){.columns = 0};
}

/* ---- Notes ---- */

static void append(char *text, size_t size, const char *format, const char *word)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, format, word);
}

void sl_edge_layout_note(const char *path, const struct sl_edge_layout *l, bool mapped)
{
    const struct sl_edge_record *first = &l->first;
    char text[400] = "";
    if (!l->header)
        return;
    if (l->columns != first->count) {
        for (int64_t c = 0; c < first->count && c < 8; c++)
            append(text, sizeof text, c ? " %.30s" : "%.30s", first->field[c]);
        sl_note("%s: line %" PRId64 " is taken for a header: %.100s", path, l->first_line, text);
        return;
    }
    const bool plain = l->ends_named && l->source == 0 && l->target == 1 &&
                       l->columns == 2 + (l->weight == 2) && (mapped || !l->names);
    if (plain)
        return;
    append(text, sizeof text, "edges go from '%.40s'", first->field[l->source]);
    append(text, sizeof text, " to '%.40s'", first->field[l->target]);
    if (l->weight >= 0)
        append(text, sizeof text, ", weights are '%.40s'", first->field[l->weight]);
    const char *before = ", ignored: '%.40s'";
    for (int64_t c = 0; c < first->count && !l->more; c++)
        if (c != l->source && c != l->target && c != l->weight) {
            append(text, sizeof text, before, first->field[c]);
            before = ", '%.40s'";
        }
    sl_note("%s: line %" PRId64 " is taken for a header: %s", path, l->first_line, text);
}
