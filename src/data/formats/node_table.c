#include "data/formats/node_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
#include "core/words.h"
#include "data/block.h"
#include "data/formats/csv.h"
#include "data/formats/edges.h"
#include "data/formats/feature_cells.h"
#include "data/formats/label_column.h"

/* The kinds of columns. CATEGORY: a feature that has words. */
enum kind { FEATURE, CATEGORY, ID, LABEL, SPLIT, TRAIN_MASK, VAL_MASK, TEST_MASK, INDEX, IGNORED };

struct column {
    enum kind kind;
    char *name;
    bool decided; /* a value was found that is not missing */
    int64_t cell; /* FEATURE, CATEGORY: number among the features */
};

struct table {
    struct sl_csv csv;
    const struct sl_read_options *options;
    struct sl_vertex_map *map;
    struct sl_dataset *out;
    struct column *column; // (columns)
    int64_t columns, id, rows, capacity;
    bool splits; /* some column has splits */
    struct sl_feature_cells features;
    unsigned char *split; // (capacity): 1 to 3: train, val, test; 0: none
    struct sl_label_column labels;
};

static int refuse(const struct table *t, int64_t c, const char *expected)
{
    return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ", column '%s': '%.40s' is no %s",
                    t->csv.text.path, t->csv.line, t->column[c].name, t->csv.field[c], expected);
}

/* ---- The header ---- */

static bool is_one_of(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(name, *words) == 0)
            return true;
    return false;
}

bool sl_node_table_is_id_word(const char *name)
{
    static const char *const ids[] = {"id",     "node",      "node_id",  "nodeid",
                                      "vertex", "vertex_id", "vertexid", NULL};
    return is_one_of(name, ids);
}

/* Return whether a column has the row numbers that pandas writes first. */
static bool is_index(const char *name, int64_t c)
{
    return (c == 0 && *name == '\0') || strcasecmp(name, "index") == 0 ||
           strncasecmp(name, "unnamed:", 8) == 0;
}

/* Return whether a list has the name between commas. */
static bool lists(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    }
    return false;
}

static enum kind kind_of(const struct table *t, const char *name, int64_t c)
{
    static const char *const splits[] = {"split", "set", "subset", NULL};
    static const char *const masks[3][4] = {{"train", "train_mask", NULL},
                                            {"val", "val_mask", "valid_mask", NULL},
                                            {"test", "test_mask", NULL}};
    const size_t length = strlen(name);
    const char *label = t->options->label;
    if (label && strcmp(name, label) == 0)
        return LABEL;
    if (lists(t->options->categorical, name))
        return CATEGORY;
    for (int k = 0; k < 3; k++)
        if (is_one_of(name, masks[k]))
            return TRAIN_MASK + (enum kind)k;
    if (is_index(name, c))
        return INDEX;
    if (sl_node_table_is_id_word(name))
        return ID;
    if (is_one_of(name, splits))
        return SPLIT;
    if (!label && sl_edges_is_label_word(name))
        return LABEL;
    return length > 3 && strcasecmp(name + length - 3, "_id") == 0 ? IGNORED : FEATURE;
}

static int add_column(struct table *t, int64_t c)
{
    const char *name = t->csv.field[c];
    const enum kind kind = kind_of(t, name, c);
    if (*name == '\0' && kind != INDEX)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": column %" PRId64 " has no name",
                        t->csv.text.path, t->csv.line, c + 1);
    for (int64_t k = 0; k < c; k++)
        if (strcmp(t->column[k].name, name) == 0 ||
            (kind == t->column[k].kind && kind > CATEGORY && kind < INDEX))
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": columns '%.40s' and '%.40s', expected one",
                            t->csv.text.path, t->csv.line, t->column[k].name, name);
    t->column[c] =
        (struct column){.kind = kind, .name = sl_block_print(&t->out->blocks, "%s", name)};
    t->splits = t->splits || (kind >= SPLIT && kind <= TEST_MASK);
    if (kind == ID)
        t->id = c;
    return t->column[c].name ? SL_OK : SL_ERR_SYSTEM;
}

/* Check that the table has the columns that an option names. */
static int check_names(const struct table *t, const char *option, const char *list, bool several)
{
    for (const char *at = list; at; at = several ? strchr(at, ',') : NULL) {
        at += several && *at == ',';
        const size_t length = several ? strcspn(at, ",") : strlen(at);
        bool found = false;
        for (int64_t c = 0; c < t->columns; c++)
            found = found || (strlen(t->column[c].name) == length &&
                              strncmp(t->column[c].name, at, length) == 0);
        if (!found)
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": --%s: no column is called '%.*s' (expected "
                            "names of the header)",
                            t->csv.text.path, t->csv.line, option, (int)length, at);
    }
    return SL_OK;
}

static int read_header(struct table *t)
{
    const int got = sl_csv_next(&t->csv);
    if (got < 0)
        return got;
    if (got == 0)
        return sl_error(SL_ERR_DATA, "%s: is empty, expected a header with a column id",
                        t->csv.text.path);
    t->columns = t->csv.fields;
    t->id = -1;
    t->column = sl_block_array(&t->out->blocks, t->columns, sizeof *t->column);
    int rc = t->column ? SL_OK : (int)SL_ERR_SYSTEM;
    if (t->column)
        memset(t->column, 0, (size_t)t->columns * sizeof *t->column);
    for (int64_t c = 0; c < t->columns && !rc; c++)
        rc = add_column(t, c);
    if (!rc)
        rc = check_names(t, "label", t->options->label, false);
    if (!rc)
        rc = check_names(t, "categorical", t->options->categorical, true);
    if (!rc && t->options->label && lists(t->options->categorical, t->options->label))
        rc = sl_error(SL_ERR_USAGE,
                      "%s: --label and --categorical both name '%s' (expected one of them)",
                      t->csv.text.path, t->options->label);
    if (!rc && t->id < 0)
        rc = sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": no column is called id, node or vertex",
                      t->csv.text.path, t->csv.line);
    return rc;
}

/* Say in a note which columns of numbers may not be meant as features. */
static void note_feature(const struct table *t, const char *name)
{
    static const char *const targets[] = {"target", "targets", "y_true", NULL};
    static const char *const folds[] = {"fold", "folds", "split_id", NULL};
    if (is_one_of(name, targets))
        sl_note("%s: column '%s' is a feature; expected the name label where it is to be predicted",
                t->csv.text.path, name);
    if (sl_edges_is_label_word(name))
        sl_note("%s: column '%s' is a feature, for --label names another one; expected no such "
                "column where it tells the label",
                t->csv.text.path, name);
    if (is_one_of(name, folds))
        sl_note("%s: column '%s' is a feature; expected the name split, with train, val and test, "
                "where it says how vertices are used",
                t->csv.text.path, name);
}

/* Decide the kind of a column by the first value in it. */
static int decide(struct table *t, int64_t c)
{
    struct column *column = &t->column[c];
    const char *field = t->csv.field[c];
    float unused;
    if (column->decided || column->kind != FEATURE || sl_text_is_missing(field))
        return SL_OK;
    column->decided = true;
    if (sl_text_to_float(field, &unused))
        return SL_OK;
    if (sl_text_has_decimal_comma(field))
        return refuse(t, c, "number, expected a decimal point");
    sl_note("%s: column '%.40s' is ignored: '%.40s' is no number (starling convert: --categorical "
            "makes features of words, --label classes)",
            t->csv.text.path, column->name, field);
    column->kind = IGNORED;
    return SL_OK;
}

static bool all_decided(const struct table *t)
{
    bool all = true;
    for (int64_t c = 0; c < t->columns; c++)
        all = all && (t->column[c].kind != FEATURE || t->column[c].decided);
    return all;
}

static void note_ignored(const struct table *t, const struct column *column)
{
    if (column->kind == IGNORED && !column->decided)
        sl_note("%s: column '%.40s' is ignored: the id of something else", t->csv.text.path,
                column->name);
    if (column->kind == INDEX)
        sl_note("%s: column '%.40s' is ignored: it numbers rows", t->csv.text.path, column->name);
}

/* Decide the kinds of all columns: the first value tells numbers, which are features, from text.
 * Leave the file below the header. Wrong lines are reported later. */
static int find_features(struct table *t)
{
    int got;
    int rc = SL_OK;
    for (int64_t c = 0; c < t->columns; c++)
        note_ignored(t, &t->column[c]);
    while (!rc && (got = sl_csv_next(&t->csv)) > 0 && t->csv.fields == t->columns) {
        for (int64_t c = 0; c < t->columns && !rc; c++)
            rc = decide(t, c);
        if (all_decided(t))
            break;
    }
    for (int64_t c = 0; c < t->columns && !rc; c++) {
        struct column *column = &t->column[c];
        if (column->kind == FEATURE && !column->decided && got == 0) {
            sl_note("%s: column '%.40s' is ignored: it has no value", t->csv.text.path,
                    column->name);
            column->kind = IGNORED;
        }
        if (column->kind <= CATEGORY)
            note_feature(t, column->name);
        column->cell = t->features.columns;
        if (column->kind <= CATEGORY)
            rc = sl_feature_cells_add_column(&t->features, column->name, column->kind == CATEGORY);
    }
    if (!rc)
        rc = sl_csv_rewind(&t->csv);
    got = rc ? rc : sl_csv_next(&t->csv);
    return got < 0 ? got : rc;
}

/* ---- What became of the columns ---- */

struct list {
    char text[264];
    int64_t count;
    bool full;
};

/* Append a name as far as the line has room; `values` 0: do not print it. */
static void add_to_list(struct list *list, const char *name, int64_t values)
{
    enum { ROOM = 150 };
    const size_t used = strlen(list->text), room = sizeof list->text - used;
    const char *comma = list->count++ ? ", " : "";
    if (list->full)
        return;
    list->full = used > ROOM;
    if (list->full)
        snprintf(list->text + used, room, ", …");
    else if (values > 0)
        snprintf(list->text + used, room, "%s%.40s (%" PRId64 ")", comma, name, values);
    else
        snprintf(list->text + used, room, "%s%.40s", comma, name);
}

static void note_columns(const struct table *t)
{
    struct list ids = {.count = 0}, labels = ids, splits = ids, features = ids, categories = ids;
    for (int64_t c = 0; c < t->columns; c++) {
        const struct column *column = &t->column[c];
        struct list *list = column->kind == ID         ? &ids
                            : column->kind == LABEL    ? &labels
                            : column->kind == FEATURE  ? &features
                            : column->kind == CATEGORY ? &categories
                            : column->kind < INDEX     ? &splits
                                                       : NULL;
        if (list)
            add_to_list(list, column->name,
                        list == &categories ? t->features.column[column->cell].words.count : 0);
    }
    char numbers[400] = "", words[400] = "";
    if (features.count > 0)
        snprintf(numbers, sizeof numbers, "; %" PRId64 " %s: %s", features.count,
                 features.count == 1 ? "column is a feature" : "columns are features",
                 features.text);
    if (categories.count > 0)
        snprintf(words, sizeof words, "; each value of %" PRId64 " %s is a feature: %s",
                 categories.count, sl_plural(categories.count, "column", "columns"),
                 categories.text);
    sl_note("%s: id: %s; label: %s; split: %s%s%s", t->csv.text.path, ids.text,
            labels.count ? labels.text : "none", splits.count ? splits.text : "none", numbers,
            words);
}

/* ---- Rows ---- */

static int make_room(struct table *t)
{
    if (t->rows < t->capacity)
        return SL_OK;
    const int64_t capacity = t->capacity ? 2 * t->capacity : 1024;
    unsigned char *split = realloc(t->split, (size_t)capacity);
    if (!split)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory for %" PRId64 " rows", t->csv.text.path,
                        capacity);
    t->split = split;
    t->capacity = capacity;
    return SL_OK;
}

/* Return the number of a split, 1 to 3; 0: no split; -1: another word. */
static int split_of(const char *word)
{
    static const char *const words[4][6] = {{"", "none", "unlabeled", "unlabelled", "0", NULL},
                                            {"train", "training", "tr", NULL},
                                            {"val", "valid", "validation", "va", NULL},
                                            {"test", "testing", "te", NULL}};
    for (int k = 0; k < 4; k++)
        if (is_one_of(word, words[k]))
            return k;
    return -1;
}

static int read_mask(const struct table *t, int64_t c)
{
    static const char *const yes[] = {"1", "true", "t", "yes", "1.0", NULL};
    static const char *const no[] = {"0", "false", "f", "no", "", "0.0", NULL};
    const char *word = t->csv.field[c];
    return is_one_of(word, yes)  ? (int)(t->column[c].kind - TRAIN_MASK) + 1
           : is_one_of(word, no) ? 0
                                 : refuse(t, c, "mask, expected 0 or 1");
}

static int read_split(struct table *t, int64_t c)
{
    int split = t->column[c].kind == SPLIT ? split_of(t->csv.field[c]) : read_mask(t, c);
    if (t->column[c].kind != SPLIT && split < 0)
        return split;
    if (split < 0)
        return refuse(t, c, "split, expected train, val, test or nothing");
    unsigned char *const own = &t->split[t->rows];
    if (split > 0 && *own != 0 && *own != split)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": vertex '%.40s' is in two splits",
                        t->csv.text.path, t->csv.line, t->csv.field[t->id]);
    *own = split > 0 ? (unsigned char)split : *own;
    return SL_OK;
}

static int read_number(struct table *t, int64_t c)
{
    const char *field = t->csv.field[c];
    const bool missing = sl_text_is_missing(field);
    float number;
    if (missing && t->options->empty_means)
        return SL_OK;
    if (!sl_text_to_float(field, &number))
        return refuse(t, c,
                      missing ? "finite number (starling convert --empty-cells mean takes the "
                                "mean of the column)"
                              : "finite number");
    sl_feature_cells_set_number(&t->features, t->column[c].cell, number);
    return SL_OK;
}

/* Read a cell of a category. None and NA are values here: the option says that the column has
 * words. */
static int read_word(struct table *t, int64_t c)
{
    const char *field = t->csv.field[c];
    const int rc =
        *field == '\0' ? SL_OK : sl_feature_cells_set_word(&t->features, t->column[c].cell, field);
    return rc <= 0 ? rc
                   : sl_error(SL_ERR_DATA,
                              "%s: line %" PRId64 ", column '%s': '%.40s' is one of more than %d "
                              "values, expected fewer with --categorical",
                              t->csv.text.path, t->csv.line, t->column[c].name, field,
                              SL_FEATURE_CELLS_WORDS);
}

static int read_field(struct table *t, int64_t c)
{
    const char *field = t->csv.field[c];
    switch (t->column[c].kind) {
    case ID:
        return sl_vertex_map_add(t->map, field, t->csv.line);
    case LABEL:
        return sl_label_column_set(&t->labels, t->rows, field);
    case SPLIT:
    case TRAIN_MASK:
    case VAL_MASK:
    case TEST_MASK:
        return read_split(t, c);
    case FEATURE:
        return read_number(t, c);
    case CATEGORY:
        return read_word(t, c);
    default:
        return SL_OK;
    }
}

static int read_row(struct table *t)
{
    if (t->csv.fields != t->columns)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " has %" PRId64 " columns, expected %" PRId64
                        " as in the header",
                        t->csv.text.path, t->csv.line, t->csv.fields, t->columns);
    int rc = make_room(t);
    if (!rc)
        rc = sl_feature_cells_add_row(&t->features);
    if (!rc)
        t->split[t->rows] = 0;
    for (int64_t c = 0; c < t->columns && !rc; c++)
        rc = read_field(t, c);
    t->rows++;
    return rc;
}

static int read_rows(struct table *t)
{
    int got;
    while ((got = sl_csv_next(&t->csv)) > 0) {
        const int rc = read_row(t);
        if (rc)
            return rc;
    }
    if (got == 0 && t->rows == 0)
        return sl_error(SL_ERR_DATA, "%s: has a header alone, expected a row per vertex",
                        t->csv.text.path);
    return got;
}

/* ---- The dataset ---- */

static int take_splits(const struct table *t)
{
    struct sl_index_set *const sets[] = {&t->out->train, &t->out->val, &t->out->test};
    for (int k = 0; t->splits && k < 3; k++) {
        int64_t count = 0;
        for (int64_t v = 0; v < t->rows; v++)
            count += t->split[v] == k + 1;
        int64_t *ids = sl_block_array(&t->out->blocks, count, sizeof *ids), at = 0;
        if (!ids)
            return SL_ERR_SYSTEM;
        for (int64_t v = 0; v < t->rows; v++)
            if (t->split[v] == k + 1)
                ids[at++] = v;
        *sets[k] = (struct sl_index_set){ids, count};
    }
    return SL_OK;
}

int sl_node_table_read(const char *path, const struct sl_read_options *options,
                       struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct table t = {.options = options,
                      .map = map,
                      .out = out,
                      .labels = {.separator = options->label_separator}};
    map->path = path;
    int rc = sl_csv_open(&t.csv, path);
    t.csv.text.cost = SL_TEXT_COST_CELLS;
    if (!rc)
        rc = read_header(&t);
    if (!rc)
        rc = find_features(&t);
    if (!rc)
        rc = read_rows(&t);
    if (!rc)
        rc = sl_vertex_map_keep(map, out);
    if (!rc)
        rc = sl_label_column_take(&t.labels, path, out);
    if (!rc)
        rc = take_splits(&t);
    if (!rc && options->tell)
        note_columns(&t);
    if (!rc)
        rc = sl_feature_cells_take(&t.features, path, out);
    sl_feature_cells_free(&t.features);
    sl_label_column_free(&t.labels);
    sl_csv_close(&t.csv);
    free(t.split);
    return rc;
}
