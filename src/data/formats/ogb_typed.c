/* Read folders of the Open Graph Benchmark with several types of vertices, such as ogbn-mag (Hu et
 * al., NeurIPS 2020), as they are unpacked. Files are CSV, gzipped or plain:
 *
 *     raw/num-node-dict.csv                     names of the types, then their numbers of vertices
 *     raw/triplet-type-list.csv                 a line for each relation: source,name,target
 *     raw/relations/SOURCE___NAME___TARGET/     edge.csv, num-edge-list.csv
 *     raw/node-feat/TYPE/node-feat.csv          features of the type's vertices; may be absent
 *     raw/node-label/TYPE/node-label.csv        labels, of one type
 *     split/SCHEME/TYPE/                        train.csv, valid.csv, test.csv
 *
 * Vertices have the order of the types. The r-th line of triplet-type-list.csv is relation r. Each
 * type has columns of features of its own: its features and a column of ones, or, for a type
 * without features, a column for each vertex. So a linear layer has weights for each type. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "data/arrays.h"
#include "data/block.h"
#include "data/formats/edge_rows.h"
#include "data/formats/formats.h"
#include "data/formats/number_rows.h"
#include "data/formats/ogb.h"

enum { MOST_TYPES = 1024, MOST_LINKS = 4096 };

struct type {
    const char *name;
    int64_t first, count;           /* its vertices */
    struct sl_number_rows features; /* item NULL: it has none */
};

struct link {
    int source, target; /* types */
    const char *folder; /* raw/relations/… */
    int64_t edges;
};

struct reading {
    struct sl_ogb_folder folder;
    struct type *type; // (types)
    int types;
    struct link *link; // (links)
    int links;
    struct sl_block *scratch;
};

/* ---- Types and relations ---- */

/* Return the next word of a line of CSV, cut off, or NULL. */
static char *next_word(char **line)
{
    char *const word = *line;
    if (!word)
        return NULL;
    const size_t length = strcspn(word, ",\r\n");
    *line = word[length] == ',' ? word + length + 1 : NULL;
    word[length] = '\0';
    return word;
}

static int find_type(const struct reading *r, const char *name)
{
    for (int t = 0; t < r->types; t++)
        if (strcmp(r->type[t].name, name) == 0)
            return t;
    return -1;
}

static int take_names(struct reading *r, const char *path, char *line)
{
    for (char *name; (name = next_word(&line));) {
        if (r->types == MOST_TYPES || !name[0] || strchr(name, '/') || find_type(r, name) >= 0)
            return sl_error(SL_ERR_DATA,
                            "%s: line 1: type '%.40s', expected at most %d types with names of "
                            "their own",
                            path, name, MOST_TYPES);
        r->type[r->types] = (struct type){.name = sl_block_print(&r->scratch, "%s", name)};
        if (!r->type[r->types++].name)
            return SL_ERR_SYSTEM;
    }
    return SL_OK;
}

static int take_counts(struct reading *r, const char *path, char *line)
{
    int64_t all = 0;
    for (int t = 0; t < r->types; t++) {
        const char *word = next_word(&line);
        int64_t count = 0;
        if (!word || !sl_text_to_int64(word, &count) || count < 1 || count > INT32_MAX - all)
            return sl_error(SL_ERR_DATA,
                            "%s: line 2: '%.40s' is no number of vertices, expected 1 to 2^31 - 1 "
                            "in all",
                            path, word ? word : "");
        r->type[t].first = all;
        r->type[t].count = count;
        all += count;
    }
    r->folder.out->vertices = all;
    return line ? sl_error(SL_ERR_DATA, "%s: line 2: has more numbers than the %d types", path,
                           r->types)
                : SL_OK;
}

static int read_types(struct reading *r)
{
    const char *path = sl_ogb_file(&r->folder, "raw/num-node-dict.csv");
    struct sl_text text;
    char *line;
    r->type = sl_block_array(&r->scratch, MOST_TYPES, sizeof *r->type);
    int rc = path && r->type ? sl_text_open(&text, path) : (int)SL_ERR_SYSTEM;
    if (rc)
        return rc;
    int got = sl_text_next_data(&text, "", &line);
    if (got > 0)
        rc = take_names(r, path, line);
    if (got > 0 && !rc)
        got = sl_text_next_data(&text, "", &line);
    if (got > 0 && !rc)
        rc = take_counts(r, path, line);
    if (got == 0 && !rc)
        rc = sl_error(SL_ERR_DATA, "%s: ends early, expected names and numbers of vertices", path);
    if (got > 0 && !rc)
        got = sl_text_next_data(&text, "", &line);
    if (got > 0 && !rc)
        rc = sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": another line, expected two", path,
                      text.line_number);
    sl_text_close(&text);
    return rc ? rc : got < 0 ? got : SL_OK;
}

static int take_link(struct reading *r, const struct sl_text *text, char *line)
{
    const char *source = next_word(&line), *name = next_word(&line), *target = next_word(&line);
    struct link *const link = &r->link[r->links];
    if (r->links == MOST_LINKS || !target || line || strchr(name, '/'))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64
                        ": expected source,name,target without '/', and at most "
                        "%d lines",
                        text->path, text->line_number, MOST_LINKS);
    *link = (struct link){.source = find_type(r, source), .target = find_type(r, target)};
    if (link->source < 0 || link->target < 0)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": '%.40s' is no type, expected one of num-node-dict",
                        text->path, text->line_number, link->source < 0 ? source : target);
    link->folder = sl_block_print(&r->scratch, "raw/relations/%s___%s___%s", source, name, target);
    const char *sizes =
        link->folder ? sl_block_print(&r->scratch, "%s/num-edge-list.csv", link->folder) : NULL;
    r->links++;
    return sizes ? sl_ogb_read_count(&r->folder, sizes, 0, INT32_MAX, &link->edges)
                 : (int)SL_ERR_SYSTEM;
}

static int read_links(struct reading *r)
{
    const char *path = sl_ogb_file(&r->folder, "raw/triplet-type-list.csv");
    struct sl_text text;
    char *line;
    r->link = sl_block_array(&r->scratch, MOST_LINKS, sizeof *r->link);
    int rc = path && r->link ? sl_text_open(&text, path) : (int)SL_ERR_SYSTEM, got = 0;
    if (rc)
        return rc;
    while (!rc && (got = sl_text_next_data(&text, "", &line)) > 0)
        rc = take_link(r, &text, line);
    if (!rc && got == 0 && r->links == 0)
        rc = sl_error(SL_ERR_DATA, "%s: is empty, expected source,name,target", path);
    sl_text_close(&text);
    return rc ? rc : got < 0 ? got : SL_OK;
}

/* ---- Edges ---- */

/* Count the edges of a relation, or put them. */
static int pass_link(struct reading *r, const struct link *link, struct sl_edge_rows *rows,
                     bool put)
{
    const struct type *source = &r->type[link->source], *target = &r->type[link->target];
    const struct sl_ogb_ends ends = {source->first, target->first, source->count, target->count};
    const char *name = sl_block_print(&r->scratch, "%s/edge.csv", link->folder),
               *path = name ? sl_ogb_file(&r->folder, name) : NULL;
    struct sl_text text;
    int64_t edges, upward;
    int rc = path ? sl_text_open(&text, path) : (int)SL_ERR_SYSTEM;
    if (rc)
        return rc;
    rc = sl_ogb_pass_edges(&text, &ends, rows, put, &edges, &upward);
    if (!rc && edges != link->edges)
        rc = sl_error(SL_ERR_DATA,
                      "%s: has %" PRId64 " edges, expected %" PRId64 " as in num-edge-list.csv",
                      path, edges, link->edges);
    sl_text_close(&text);
    return rc;
}

static int read_edges(struct reading *r)
{
    struct sl_dataset *out = r->folder.out;
    struct sl_edge_rows rows = {.vertices = out->vertices, .numbered = true};
    const char *sizes = sl_ogb_file(&r->folder, "raw/num-node-dict.csv");
    int64_t all = 0, e = 0;
    for (int l = 0; l < r->links; l++)
        all += r->link[l].edges;
    int rc = sizes ? sl_ogb_check_size(sizes, out, all) : (int)SL_ERR_SYSTEM;
    float *relation = rc ? NULL : sl_block_array(&r->scratch, all, sizeof *relation);
    if (!rc)
        rc = relation ? sl_edge_rows_open(&rows, &out->blocks) : (int)SL_ERR_SYSTEM;
    for (int l = 0; !rc && l < r->links; l++)
        rc = pass_link(r, &r->link[l], &rows, false);
    if (!rc)
        rc = sl_edge_rows_allocate(&rows, &out->blocks);
    for (int l = 0; !rc && l < r->links; l++) {
        for (int64_t k = 0; k < r->link[l].edges; k++)
            relation[e++] = (float)l;
        rc = pass_link(r, &r->link[l], &rows, true);
    }
    out->relations = r->links;
    return rc ? rc : sl_edge_rows_close(&rows, 1, relation, out);
}

/* ---- Vertices ---- */

/* Read a file of a type's vertices, whose folder is raw/KIND; leave *rows without it. */
static int read_rows(struct reading *r, const char *kind, const struct type *type, bool nan,
                     struct sl_number_rows *rows)
{
    const char *name = sl_block_print(&r->scratch, "raw/%s/%s/%s.csv", kind, type->name, kind);
    if (!name)
        return SL_ERR_SYSTEM;
    if (!sl_ogb_has(r->folder.path, name))
        return SL_OK;
    const char *path = sl_ogb_file(&r->folder, name);
    return path ? sl_number_rows_read(path, type->count, nan, &r->scratch, rows)
                : (int)SL_ERR_SYSTEM;
}

/* Write the entries of vertex k, whose type's columns begin at `column`: the vertex's features that
 * are not 0, then a 1. Without features, the 1 is in column `column` + k. Return how many. */
static int64_t write_vertex(const struct type *type, int64_t k, int64_t column, int32_t *columns,
                            float *values)
{
    const int64_t width = type->features.columns;
    const float *const own = type->features.item ? type->features.item + k * width : NULL;
    int64_t count = 0;
    for (int64_t c = 0; own && c < width; c++)
        if (own[c] != 0.0f) {
            columns[count] = (int32_t)(column + c);
            values[count++] = own[c];
        }
    columns[count] = (int32_t)(column + (own ? width : k));
    values[count++] = 1.0f;
    return count;
}

static int read_features(struct reading *r)
{
    struct sl_dataset *out = r->folder.out;
    int64_t most = 0, column = 0;
    int rc = SL_OK;
    for (int t = 0; !rc && t < r->types; t++) {
        struct type *type = &r->type[t];
        rc = read_rows(r, "node-feat", type, false, &type->features);
        most += type->count * (type->features.columns + 1);
    }
    if (rc)
        return rc;
    int64_t *indptr = sl_block_array(&out->blocks, out->vertices + 1, sizeof *indptr), at = 0;
    int32_t *columns = sl_block_array(&out->blocks, most, sizeof *columns);
    float *values = sl_block_array(&out->blocks, most, sizeof *values);
    if (!indptr || !columns || !values)
        return SL_ERR_SYSTEM;
    for (int t = 0; t < r->types; t++) {
        const struct type *type = &r->type[t];
        for (int64_t k = 0; k < type->count; k++) {
            indptr[type->first + k] = at;
            at += write_vertex(type, k, column, columns + at, values + at);
        }
        column += type->features.item ? type->features.columns + 1 : type->count;
    }
    indptr[out->vertices] = at;
    if (column > INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: %" PRId64 " features, expected fewer than 2^31",
                        r->folder.path, column);
    out->features = column;
    out->feature_form = SL_FEATURES_CSR;
    out->features_csr = (struct sl_csr){out->vertices, column, indptr, columns, values, NULL};
    return SL_OK;
}

/* Read the labels of the only type that has some. */
static int read_labels(struct reading *r, int *labelled)
{
    struct sl_dataset *out = r->folder.out;
    struct sl_number_rows labels = {0};
    *labelled = -1;
    for (int t = 0; t < r->types; t++) {
        struct sl_number_rows own = {0};
        const int rc = read_rows(r, "node-label", &r->type[t], true, &own);
        if (rc)
            return rc;
        if (own.item && *labelled >= 0)
            return sl_error(SL_ERR_DATA, "%s: '%.40s' and '%.40s' have labels, expected one type",
                            r->folder.path, r->type[*labelled].name, r->type[t].name);
        if (own.item) {
            *labelled = t;
            labels = own;
        }
    }
    if (*labelled < 0)
        return SL_OK;
    const struct type *type = &r->type[*labelled];
    const int64_t width = labels.columns;
    float *all = sl_block_array(&out->blocks, out->vertices, (size_t)width * sizeof *all);
    if (!all)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < out->vertices * width; k++)
        all[k] = NAN;
    memcpy(all + type->first * width, labels.item, (size_t)(type->count * width) * sizeof *all);
    struct sl_npy npy = sl_npy_view("labels", SL_NPY_FLOAT32, 2, out->vertices, width, all);
    return sl_arrays_labels(&npy, out);
}

/* Read a list of a type's vertices. */
static int read_list(struct reading *r, const struct type *type, const char *name,
                     struct sl_split_lists *lists, struct sl_index_set *set)
{
    struct sl_block **blocks = &r->folder.out->blocks;
    const char *path = sl_ogb_file(&r->folder, name);
    struct sl_text text;
    char *line;
    int rc = path ? sl_text_open(&text, path) : (int)SL_ERR_SYSTEM, got = 0;
    if (rc)
        return rc;
    while (!rc && (got = sl_text_next_data(&text, "", &line)) > 0) {
        int64_t vertex;
        const char *word = next_word(&line);
        if (!sl_text_to_int64(word, &vertex) || line || vertex < 0 || vertex >= type->count)
            rc = sl_error(SL_ERR_DATA,
                          "%s: line %" PRId64 ": '%.40s' is no vertex, expected 0 to %" PRId64,
                          path, text.line_number, word, type->count - 1);
        else
            rc = sl_split_lists_add(lists, path, "line", text.line_number, type->first + vertex);
    }
    sl_text_close(&text);
    if (!rc && got < 0)
        rc = got;
    return rc ? rc : sl_split_lists_end(lists, path, blocks, set);
}

static int read_splits(struct reading *r, const struct type *type)
{
    static const char *const names[] = {"train", "valid", "test"};
    struct sl_dataset *out = r->folder.out;
    struct sl_index_set *const sets[] = {&out->train, &out->val, &out->test};
    struct sl_split_lists lists = {.vertices = out->vertices};
    const char *scheme = sl_ogb_scheme(&r->folder);
    int rc = sl_split_lists_open(&lists, &r->scratch);
    for (int k = 0; scheme && k < 3 && !rc; k++) {
        const char *name =
            sl_block_print(&r->scratch, "split/%s/%s/%s.csv", scheme, type->name, names[k]);
        rc = name ? read_list(r, type, name, &lists, sets[k]) : (int)SL_ERR_SYSTEM;
    }
    return rc;
}

/* ---- All of it ---- */

static void note_types(const struct reading *r)
{
    char text[512] = "";
    for (int t = 0; t < r->types && strlen(text) < sizeof text - 100; t++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRId64 " %.40s",
                 t ? ", " : "", r->type[t].count, r->type[t].name);
    sl_note("%s: vertices are %s, in this order", r->folder.path, text);
}

/* Edges have relations, which weights do not go with. */
static int check_options(const struct reading *r)
{
    return r->folder.options->count_duplicates
               ? sl_error(SL_ERR_USAGE, "%s: edges have relations (expected --duplicates one)",
                          r->folder.path)
               : SL_OK;
}

static int read_all(struct reading *r)
{
    int labelled = -1;
    int rc = check_options(r);
    if (!rc)
        rc = read_types(r);
    if (!rc)
        rc = read_links(r);
    if (!rc)
        rc = read_edges(r);
    if (!rc)
        rc = read_features(r);
    if (!rc)
        rc = read_labels(r, &labelled);
    if (!rc && labelled >= 0)
        rc = read_splits(r, &r->type[labelled]);
    if (!rc && r->folder.options->tell)
        note_types(r);
    return rc;
}

static int read_folder(const char *path, const struct sl_read_options *options,
                       struct sl_dataset *out)
{
    struct reading reading = {.folder = {.path = path, .options = options, .out = out}};
    const int rc = read_all(&reading);
    sl_block_free_all(&reading.scratch);
    return rc;
}

static bool is_typed(const char *path)
{
    return sl_ogb_has(path, "raw/triplet-type-list.csv");
}

const struct sl_format sl_format_ogb_typed = {
    .name = "OGB folder of types",
    .extensions = "",
    .is_folder = is_typed,
    .read = read_folder,
};
