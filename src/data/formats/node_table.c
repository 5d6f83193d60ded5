#include "data/formats/node_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
#include "data/block.h"
#include "data/formats/csv.h"
#include "data/formats/edges.h"
#include "data/formats/label_column.h"

enum kind { FEATURE, ID, LABEL, SPLIT, TRAIN_MASK, VAL_MASK, TEST_MASK, INDEX, IGNORED };

struct column {
    enum kind kind;
    char *name;
};

struct table {
    struct sl_csv csv;
    struct sl_vertex_map *map;
    struct sl_dataset *out;
    struct column *column; // (columns)
    int64_t columns, features, id, rows, capacity;
    bool splits;          /* some column has splits */
    float *feature;       // (capacity, features)
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

/* The numbers of rows, which pandas writes before the columns. */
static bool is_index(const char *name, int64_t c)
{
    return (c == 0 && *name == '\0') || strcasecmp(name, "index") == 0 ||
           strncasecmp(name, "unnamed:", 8) == 0;
}

static enum kind kind_of(const char *name, int64_t c)
{
    static const char *const splits[] = {"split", "set", "subset", NULL};
    static const char *const masks[3][4] = {{"train", "train_mask", NULL},
                                            {"val", "val_mask", "valid_mask", NULL},
                                            {"test", "test_mask", NULL}};
    const size_t length = strlen(name);
    for (int k = 0; k < 3; k++)
        if (is_one_of(name, masks[k]))
            return TRAIN_MASK + (enum kind)k;
    if (is_index(name, c))
        return INDEX;
    if (sl_node_table_is_id_word(name))
        return ID;
    if (is_one_of(name, splits))
        return SPLIT;
    if (sl_edges_is_label_word(name))
        return LABEL;
    return length > 3 && strcasecmp(name + length - 3, "_id") == 0 ? IGNORED : FEATURE;
}

static int add_column(struct table *t, int64_t c)
{
    const char *name = t->csv.field[c];
    const enum kind kind = kind_of(name, c);
    if (*name == '\0' && kind != INDEX)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": column %" PRId64 " has no name",
                        t->csv.text.path, t->csv.line, c + 1);
    for (int64_t k = 0; k < c; k++)
        if (strcmp(t->column[k].name, name) == 0 ||
            (kind == t->column[k].kind && kind != FEATURE && kind < INDEX))
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": columns '%.40s' and '%.40s', expected one",
                            t->csv.text.path, t->csv.line, t->column[k].name, name);
    t->column[c] = (struct column){kind, sl_block_print(&t->out->blocks, "%s", name)};
    t->splits = t->splits || (kind >= SPLIT && kind <= TEST_MASK);
    if (kind == ID)
        t->id = c;
    return t->column[c].name ? SL_OK : SL_ERR_SYSTEM;
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
    for (int64_t c = 0; c < t->columns && !rc; c++)
        rc = add_column(t, c);
    if (!rc && t->id < 0)
        rc = sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": no column is called id, node or vertex",
                      t->csv.text.path, t->csv.line);
    return rc;
}

/* Columns that are numbers, and may be meant for something else. */
static void note_feature(const struct table *t, const char *name)
{
    static const char *const targets[] = {"target", "targets", "y_true", NULL};
    static const char *const folds[] = {"fold", "folds", "split_id", NULL};
    if (is_one_of(name, targets))
        sl_note("%s: column '%s' is a feature; expected the name label where it is to be predicted",
                t->csv.text.path, name);
    if (is_one_of(name, folds))
        sl_note("%s: column '%s' is a feature; expected the name split, with train, val and test, "
                "where it says how vertices are used",
                t->csv.text.path, name);
}

/* The first row tells numbers, which are features, from text. */
static int find_features(struct table *t)
{
    float unused;
    for (int64_t c = 0; c < t->columns; c++) {
        struct column *column = &t->column[c];
        const char *field = t->csv.field[c];
        const bool text = column->kind == FEATURE && !sl_text_to_float(field, &unused);
        if (text && sl_text_has_decimal_comma(field))
            return refuse(t, c, "number, expected a decimal point");
        if (text)
            sl_note("%s: column '%.40s' is ignored: '%.40s' is no number", t->csv.text.path,
                    column->name, field);
        if (column->kind == IGNORED)
            sl_note("%s: column '%.40s' is ignored: the id of something else", t->csv.text.path,
                    column->name);
        if (column->kind == INDEX)
            sl_note("%s: column '%.40s' is ignored: it numbers rows", t->csv.text.path,
                    column->name);
        column->kind = text ? IGNORED : column->kind;
        t->features += column->kind == FEATURE;
        if (column->kind == FEATURE)
            note_feature(t, column->name);
    }
    return SL_OK;
}

/* Which columns became features, as far as a line has room for them. */
static void note_features(const struct table *t)
{
    enum { ROOM = 200 };
    char list[ROOM + 64] = "";
    int64_t listed = 0;
    for (int64_t c = 0; c < t->columns; c++) {
        const size_t used = strlen(list);
        if (t->column[c].kind != FEATURE || used > ROOM - 48)
            continue;
        snprintf(list + used, sizeof list - used, "%s%.40s", listed ? ", " : "", t->column[c].name);
        listed++;
    }
    if (t->features > 0)
        sl_note("%s: %" PRId64 " %s: %s%s", t->csv.text.path, t->features,
                t->features == 1 ? "column is a feature" : "columns are features", list,
                listed < t->features ? ", …" : "");
}

/* ---- Rows ---- */

static int make_room(struct table *t)
{
    if (t->rows < t->capacity)
        return SL_OK;
    const int64_t capacity = t->capacity ? 2 * t->capacity : 1024;
    unsigned char *split = realloc(t->split, (size_t)capacity);
    if (split)
        t->split = split;
    float *feature =
        reallocarray(t->feature, (size_t)capacity, (size_t)(t->features + 1) * sizeof *feature);
    if (feature)
        t->feature = feature;
    if (!split || !feature)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory for %" PRId64 " rows", t->csv.text.path,
                        capacity);
    t->capacity = capacity;
    return SL_OK;
}

/* Its number, 1 to 3; 0: no split; -1: something else. */
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

static int read_field(struct table *t, int64_t c, float **feature)
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
        return sl_text_to_float(field, (*feature)++) ? SL_OK : refuse(t, c, "finite number");
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
    int rc = t->rows == 0 ? find_features(t) : SL_OK;
    if (!rc)
        rc = make_room(t);
    float *feature = rc ? NULL : t->feature + t->rows * t->features;
    if (!rc)
        t->split[t->rows] = 0;
    for (int64_t c = 0; c < t->columns && !rc; c++)
        rc = read_field(t, c, &feature);
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

static int name_features(struct table *t)
{
    struct sl_block **blocks = &t->out->blocks;
    const char **names = sl_block_array(blocks, t->features + 1, sizeof *names);
    int64_t count = 0;
    for (int64_t c = 0; names && c < t->columns; c++)
        if (t->column[c].kind == FEATURE) {
            names[count] = sl_block_print(blocks, "%s", t->column[c].name);
            if (!names[count++])
                return SL_ERR_SYSTEM;
        }
    if (names)
        names[count] = NULL;
    t->out->feature_names = names;
    return names ? SL_OK : SL_ERR_SYSTEM;
}

static int take_features(struct table *t)
{
    if (t->features == 0)
        return SL_OK;
    const size_t bytes = (size_t)t->capacity * (size_t)(t->features + 1) * sizeof *t->feature;
    float *feature = t->feature;
    t->feature = NULL; /* the list has it, or has freed it */
    if (sl_block_adopt(&t->out->blocks, feature, bytes, false) != 0)
        return SL_ERR_SYSTEM;
    t->out->feature_form = SL_FEATURES_DENSE;
    t->out->features = t->features;
    t->out->features_dense = feature;
    return name_features(t);
}

int sl_node_table_read(const char *path, const struct sl_read_options *options,
                       struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct table t = {.map = map, .out = out, .labels = {.separator = options->label_separator}};
    map->path = path;
    int rc = sl_csv_open(&t.csv, path);
    if (!rc)
        rc = read_header(&t);
    if (!rc)
        rc = read_rows(&t);
    if (!rc)
        rc = sl_vertex_map_keep(map, out);
    if (!rc)
        rc = sl_label_column_take(&t.labels, path, out);
    if (!rc)
        rc = take_splits(&t);
    if (!rc)
        rc = take_features(&t);
    if (!rc && options->tell)
        note_features(&t);
    sl_label_column_free(&t.labels);
    sl_csv_close(&t.csv);
    free(t.split);
    free(t.feature);
    return rc;
}
