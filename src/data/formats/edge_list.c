/* Edge lists: a line per edge, "source target" or "source target weight", as a table of fields
 * (csv.h); edge_layout.h finds the columns.
 *
 * The edge u -> v lets v aggregate from u, as in all other formats. Vertices are numbers; where any
 * line has a name, all are names. Numbers stay as they are where they leave few gaps, else they are
 * renumbered in ascending order. Names are numbered as they appear. The dataset keeps the file's
 * names and numbers where they differ from its own. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/log.h"
#include "data/formats/csv.h"
#include "data/formats/edge_layout.h"
#include "data/formats/edge_rows.h"
#include "data/formats/edges.h"
#include "data/formats/formats.h"
#include "data/formats/string_ids.h"
#include "data/formats/vertex_map.h"

/* A pass has found that vertices are names, or that the header is an edge: read the file again. */
enum { AGAIN = 1 };

/* How a pass over the file treats edges. */
enum pass { HOLD, SURVEY, COUNT, PUT };

/* Findings of a first pass over a large file. */
struct survey {
    int64_t count, most, least; /* number of edges; largest and smallest vertex */
    int64_t source, target[2];  /* largest source; smallest and largest target */
    int64_t first_target[2];    /* targets of the first two edges */
    float weight[2];            /* smallest and largest weight */
};

/* Data of the steps of reading. */
struct reading {
    const struct sl_read_options *options;
    const struct sl_vertex_map *map; /* names of vertices; NULL: the file itself names them */
    struct sl_edge_layout layout;
    struct sl_string_ids names;
    struct sl_edges edges;
    enum pass pass;
    struct survey survey;
    struct sl_edge_rows rows;
};

/* Append an edge, with room for its features. */
static int add_edge(struct sl_edges *edges, int64_t u, int64_t v, const float *weight)
{
    if (edges->count == edges->capacity) {
        const int64_t capacity = edges->capacity ? 2 * edges->capacity : 1024;
        int64_t *ends = reallocarray(edges->ends, (size_t)capacity, 2 * sizeof *ends);
        if (ends)
            edges->ends = ends;
        float *weights =
            weight ? reallocarray(edges->weights, (size_t)capacity, sizeof *weights) : NULL;
        if (weights)
            edges->weights = weights;
        float *features = edges->columns > 0
                              ? reallocarray(edges->features, (size_t)capacity,
                                             (size_t)edges->columns * sizeof *features)
                              : NULL;
        if (features)
            edges->features = features;
        if (!ends || (weight && !weights) || (edges->columns > 0 && !features))
            return sl_error(SL_ERR_SYSTEM, "out of memory for %" PRId64 " edges", capacity);
        edges->capacity = capacity;
    }
    edges->ends[2 * edges->count] = u;
    edges->ends[2 * edges->count + 1] = v;
    if (weight)
        edges->weights[edges->count] = *weight;
    edges->count++;
    return SL_OK;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void survey_edge(struct survey *s, int64_t u, int64_t v, const float *weight)
{
    const float w = weight ? *weight : 1.0f;
    if (s->count == 0)
        *s =
            (struct survey){.most = u, .least = u, .source = u, .target = {v, v}, .weight = {w, w}};
    if (s->count < 2)
        s->first_target[s->count] = v;
    s->count++;
    s->most = larger(s->most, larger(u, v));
    s->least = -larger(-s->least, larger(-u, -v));
    s->source = larger(s->source, u);
    s->target[0] = -larger(-s->target[0], -v);
    s->target[1] = larger(s->target[1], v);
    s->weight[0] = w < s->weight[0] ? w : s->weight[0];
    s->weight[1] = w > s->weight[1] ? w : s->weight[1];
}

static int take_edge(const struct sl_csv *csv, struct reading *r, int64_t u, int64_t v,
                     const float *weight)
{
    const int64_t base = r->layout.first_vertex, n = r->rows.vertices;
    if (r->pass == HOLD)
        return add_edge(&r->edges, u, v, weight);
    if (r->pass == SURVEY) {
        survey_edge(&r->survey, u, v, weight);
        return SL_OK;
    }
    if (u - base < n && v - base < n && r->pass == COUNT) {
        sl_edge_rows_count(&r->rows, u - base, v - base);
        return SL_OK;
    }
    return u - base < n && v - base < n &&
                   sl_edge_rows_put(&r->rows, u - base, v - base, weight ? *weight : 1.0f)
               ? SL_OK
               : sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": changed while it was read",
                          csv->text.path, csv->line);
}

/* Refuse a name without quotes that is a piece of another format, or contains another separator. */
static int check_name(const struct sl_csv *csv, const char *field)
{
    const char *mark = strchr("{[(<;|", field[0]) ? field : NULL;
    if (!mark && csv->delimiter == ' ')
        mark = strpbrk(field, "{}[]<>;|");
    bool says = false;
    for (const char *at = field; *at; at++)
        says = says || isalnum((unsigned char)*at) || (unsigned char)*at >= 0x80;
    if (sl_text_is_numbers(field) || sl_text_has_decimal_comma(field))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": '%.40s' has two numbers, expected one separator in "
                        "the whole file and points in numbers",
                        csv->text.path, csv->line, field);
    if (!mark && says)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: line %" PRId64 ": '%.40s' is no vertex, expected a number or a name "
                    "(a name with %s in quotes)",
                    csv->text.path, csv->line, field,
                    mark ? (char[]){'\'', *mark, '\'', '\0'} : "such characters alone");
}

static int parse_vertex(const struct sl_csv *csv, struct reading *r, int64_t column,
                        int64_t *vertex)
{
    const char *field = csv->field[column];
    const struct sl_edge_layout *layout = &r->layout;
    if (r->map) {
        *vertex = sl_vertex_map_get(r->map, field, csv->text.path, csv->line);
        return *vertex < 0 ? (int)*vertex : SL_OK;
    }
    if (layout->names && *field != '\0') {
        const int rc = csv->quoted[column] ? SL_OK : check_name(csv, field);
        *vertex = rc ? rc : sl_string_ids_get(&r->names, field);
        return *vertex < 0 ? (int)*vertex : SL_OK;
    }
    if (!sl_text_to_int64(field, vertex)) {
        if (sl_edge_layout_is_name(field))
            return AGAIN;
        const int rc = *field != '\0' ? check_name(csv, field) : SL_OK;
        return rc ? rc
                  : sl_error(SL_ERR_DATA,
                             "%s: line %" PRId64 ": '%.40s' is no vertex, expected a %snumber",
                             csv->text.path, csv->line, field, *field ? "whole " : "name or a ");
    }
    if (*vertex < 0)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": vertex %" PRId64 " is negative, expected 0 or more",
                        csv->text.path, csv->line, *vertex);
    if (*vertex < layout->first_vertex)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": vertex %" PRId64 ", expected none before %s%" PRId64,
                        csv->text.path, csv->line, *vertex,
                        layout->konect ? "KONECT's " : "--first-vertex ", layout->first_vertex);
    return SL_OK;
}

/* Read the features of the edge that was held last. */
static int parse_features(const struct sl_csv *csv, struct reading *r)
{
    const struct sl_edge_layout *l = &r->layout;
    float *to = r->edges.features + (r->edges.count - 1) * r->edges.columns;
    for (int64_t f = 0; f < l->features - l->related; f++)
        if (!sl_text_to_float(csv->field[l->feature[f]], &to[f]))
            return sl_error(
                SL_ERR_DATA, "%s: line %" PRId64 ": feature '%.40s' is no finite number%s",
                csv->text.path, csv->line, csv->field[l->feature[f]],
                sl_text_has_decimal_comma(csv->field[l->feature[f]]) ? ", expected a decimal point"
                                                                     : " (--edge-features)");
    return SL_OK;
}

/* Read the relation of the edge that was held last, as its last feature. */
static int parse_relation(const struct sl_csv *csv, struct reading *r)
{
    const char *const field = csv->field[r->layout.feature[r->edges.columns - 1]];
    float number = -1.0f;
    if (!sl_text_to_float(field, &number) ||
        !(number >= 0.0f && number < (float)SL_RELATIONS && number == floorf(number)))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": relation '%.40s', expected a whole number from 0 to "
                        "%d (--edge-types)",
                        csv->text.path, csv->line, field, SL_RELATIONS - 1);
    r->edges.features[r->edges.count * r->edges.columns - 1] = number;
    if ((int64_t)number >= r->edges.relations)
        r->edges.relations = (int64_t)number + 1;
    return SL_OK;
}

static int parse_edge(const struct sl_csv *csv, struct reading *r)
{
    const struct sl_edge_layout *l = &r->layout;
    int64_t least = larger(larger(l->source, l->target), l->weight) + 1;
    for (int64_t f = 0; f < l->features; f++)
        least = larger(least, l->feature[f] + 1);
    if (csv->fields == 1 && sl_text_is_numbers(csv->field[0]))
        return check_name(csv, csv->field[0]);
    if (l->more ? csv->fields < least : csv->fields != l->columns)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " has %" PRId64 " columns, expected %s%" PRId64,
                        csv->text.path, csv->line, csv->fields, l->more ? "at least " : "",
                        l->more ? least : l->columns);
    int64_t u = 0, v = 0;
    float weight = 1.0f;
    int rc = parse_vertex(csv, r, l->source, &u);
    if (!rc)
        rc = parse_vertex(csv, r, l->target, &v);
    if (!rc && l->weight >= 0 && !sl_text_to_float(csv->field[l->weight], &weight))
        rc = sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": weight '%.40s' is no finite number%s",
                      csv->text.path, csv->line, csv->field[l->weight],
                      sl_text_has_decimal_comma(csv->field[l->weight])
                          ? ", expected a decimal point"
                          : " (--weights none ignores this column)");
    if (!rc)
        rc = take_edge(csv, r, u, v, l->weight >= 0 ? &weight : NULL);
    if (!rc && l->features > 0)
        rc = parse_features(csv, r);
    return rc || !l->related ? rc : parse_relation(csv, r);
}

static int parse_edges(struct sl_csv *csv, struct reading *r)
{
    bool skip = r->layout.header;
    int got;
    for (; (got = sl_edge_layout_next(csv)) > 0; skip = false) {
        const int rc = skip ? SL_OK : parse_edge(csv, r);
        if (rc)
            return rc;
    }
    return got;
}

/* Say in a note how a third column was read. */
static void note_columns(const char *path, const struct reading *r, float least, float most)
{
    const struct sl_edge_layout *l = &r->layout;
    if (l->more && l->features == 0 && l->columns > 2 + (l->weight >= 0))
        sl_note("%s: columns after the %s are ignored", path, l->weight >= 0 ? "third" : "second");
    if (l->konect)
        sl_note("%s: is KONECT's: vertices count from 1%s", path,
                l->columns > 3 ? ", and columns after the third are ignored" : "");
    const bool said = l->header && l->columns == l->first.count; /* the header's note has said it */
    if (r->options->weights == SL_WEIGHTS_AUTO && !said && (least != 1.0f || most != 1.0f))
        sl_note("%s: the third column, %g to %g, is taken for weights (starling convert --weights "
                "none ignores it)",
                path, (double)least, (double)most);
}

static void note_held_columns(const char *path, const struct reading *r)
{
    const float *weight = r->edges.weights;
    float least = 1.0f, most = 1.0f;
    for (int64_t k = 0; weight && k < r->edges.count; k++) {
        least = k == 0 || weight[k] < least ? weight[k] : least;
        most = k == 0 || weight[k] > most ? weight[k] : most;
    }
    note_columns(path, r, least, most);
}

static int64_t largest_vertex(const struct sl_edges *edges)
{
    int64_t max = -1;
    for (int64_t k = 0; k < 2 * edges->count; k++)
        max = edges->ends[k] > max ? edges->ends[k] : max;
    return max;
}

static int64_t smallest_vertex(const struct sl_edges *edges)
{
    int64_t min = INT64_MAX;
    for (int64_t k = 0; k < 2 * edges->count; k++)
        min = edges->ends[k] < min ? edges->ends[k] : min;
    return min;
}

/* Drop a line "vertices edges" among the first two lines, which looks like an edge. Take a line for
 * the size if its second number counts the lines after it, and its first number exceeds every
 * vertex in them. An edge passes only by a strange chance. Vertices count from `base`. Return the
 * line's number of vertices, or 0. */
static int64_t drop_size_line(const char *path, const struct sl_edge_layout *layout,
                              struct sl_edges *edges)
{
    const int64_t base = layout->first_vertex;
    const bool plain = layout->weight < 0 && layout->features == 0;
    for (int64_t lines = 1; lines <= 2 && lines < edges->count && plain; lines++) {
        const struct sl_edges rest = {.ends = edges->ends + 2 * lines,
                                      .count = edges->count - lines};
        const int64_t vertices = rest.ends[-2];
        if (rest.ends[-1] != rest.count || vertices <= largest_vertex(&rest) - base)
            continue;
        sl_note("%s: the line \"%" PRId64 " %" PRId64 "\" is taken for the size of the graph", path,
                vertices, rest.count);
        edges->count = rest.count;
        memmove(edges->ends, rest.ends, (size_t)rest.count * 2 * sizeof *rest.ends);
        return vertices;
    }
    return 0;
}

static void note_first_vertex(const char *path)
{
    sl_note("%s: no edge has vertex 0, which is added without neighbours (starling convert "
            "--first-vertex 1 counts from 1)",
            path);
}

/* Return the most vertices that leave few gaps between the numbers of `edges` edges. */
static int64_t dense_limit(int64_t edges)
{
    return 4 * edges + 1000;
}

/* Settle vertex numbers 0 … out->vertices - 1. */
static int number_vertices(const char *path, const struct sl_edge_layout *layout,
                           struct sl_edges *edges, struct sl_dataset *out)
{
    const int64_t base = layout->first_vertex, stated = drop_size_line(path, layout, edges);
    const int64_t max = largest_vertex(edges) - base, dense = dense_limit(edges->count);
    if (max >= dense) {
        const int rc = sl_edges_compact(edges, out);
        if (!rc)
            sl_note("%s: vertex numbers up to %" PRId64 " are renumbered to 0 … %" PRId64
                    "; vertex_ids has them",
                    path, max + base, out->vertices - 1);
        return rc;
    }
    out->vertices = stated > max && stated <= dense ? stated : max + 1;
    if (base > 0)
        return sl_edges_shift(edges, base, out);
    if (edges->count > 0 && smallest_vertex(edges) == 1)
        note_first_vertex(path);
    return SL_OK;
}

static int check_count(const char *path, int64_t vertices)
{
    return vertices <= INT32_MAX
               ? SL_OK
               : sl_error(SL_ERR_DATA, "%s: has %" PRId64 " vertices, expected fewer than 2^31",
                          path, vertices);
}

/* Make the adjacency of edges that are held. */
static int build(const char *path, const struct sl_read_options *options,
                 const struct sl_edges *edges, struct sl_dataset *out)
{
    struct sl_edge_rows rows = {.vertices = out->vertices,
                                .weighted = edges->weights || options->count_duplicates,
                                .numbered = edges->columns > 0};
    int rc = check_count(path, out->vertices);
    if (!rc)
        rc = sl_edge_rows_open(&rows, &out->blocks);
    for (int64_t k = 0; k < edges->count && !rc; k++)
        sl_edge_rows_count(&rows, edges->ends[2 * k], edges->ends[2 * k + 1]);
    if (!rc)
        rc = sl_edge_rows_allocate(&rows, &out->blocks);
    for (int64_t k = 0; k < edges->count && !rc; k++)
        sl_edge_rows_put(&rows, edges->ends[2 * k], edges->ends[2 * k + 1],
                         edges->weights ? edges->weights[k] : 1.0f);
    out->relations = edges->relations;
    return rc ? rc : sl_edge_rows_close(&rows, edges->columns, edges->features, out);
}

/* ---- Large files ---- */

static int parse_again(struct sl_csv *csv, struct reading *r, enum pass pass)
{
    r->pass = pass;
    const int rc = sl_csv_rewind(csv);
    return rc ? rc : parse_edges(csv, r);
}

/* Return whether the edges of a file may need too much memory to be held. The bytes on disk decide:
 * deflate can make a thousand bytes of one. */
static bool is_large(const struct sl_text *text, const struct sl_read_options *options)
{
    enum { LARGE = 64 << 20, DEFLATE = 1032 };
    struct stat info;
    const int64_t large = options->large_file ? options->large_file : LARGE;
    return stat(text->path, &info) == 0 &&
           info.st_size * (gzdirect(text->file) ? 1 : DEFLATE) >= large;
}

/* Return whether the edges can be streamed: numbers can stay as they are, and no line may be a size
 * or a label. Other files need a second look at held edges. */
static bool can_stream(const struct reading *r)
{
    const struct survey *s = &r->survey;
    const bool labels = s->source >= s->count - 1 && s->target[0] <= 1 &&
                        s->target[1] < s->count / 4 + s->target[0];
    return s->count > 2 && s->most - r->layout.first_vertex < dense_limit(s->count) &&
           s->first_target[0] != s->count - 1 && s->first_target[1] != s->count - 2 && !labels;
}

/* Count edges and put them into their rows, each in a pass over the file. */
static int stream(struct sl_csv *csv, struct reading *r, struct sl_dataset *out)
{
    const int64_t base = r->layout.first_vertex;
    const char *path = csv->text.path;
    struct sl_edge_rows *rows = &r->rows;
    rows->weighted = r->layout.weight >= 0 || r->options->count_duplicates;
    rows->both = r->options->symmetrize && !rows->weighted;
    rows->vertices = out->vertices = r->survey.most - base + 1;
    sl_edge_rows_say(path, r->options, r->survey.count, rows->vertices,
                     8 * rows->vertices + (rows->both || rows->weighted ? 8 : 4) * r->survey.count);
    sl_edge_layout_note(path, &r->layout, false);
    note_columns(path, r, r->survey.weight[0], r->survey.weight[1]);
    if (base == 0 && r->survey.least == 1)
        note_first_vertex(path);
    int rc = check_count(path, rows->vertices);
    if (!rc)
        rc = sl_edge_rows_open(rows, &out->blocks);
    if (!rc)
        rc = parse_again(csv, r, COUNT);
    if (!rc)
        rc = sl_edge_rows_allocate(rows, &out->blocks);
    if (!rc)
        rc = parse_again(csv, r, PUT);
    if (!rc)
        rc = sl_edge_rows_close(rows, 0, NULL, out);
    if (rc || base == 0)
        return rc;
    struct sl_edges none = {.count = 0};
    return sl_edges_shift(&none, base, out); /* vertex_ids */
}

/* Survey a large file. Stream it and set *done, or say how much memory its edges need. */
static int try_streaming(struct sl_csv *csv, struct reading *r, struct sl_dataset *out, bool *done)
{
    const char *path = csv->text.path;
    if (r->layout.names || r->map || r->layout.features > 0 || !is_large(&csv->text, r->options))
        return SL_OK;
    const int rc = parse_again(csv, r, SURVEY);
    r->layout.names = rc == AGAIN;
    if (rc)
        return rc < 0 ? rc : SL_OK;
    *done = can_stream(r);
    if (*done)
        return stream(csv, r, out);
    const int64_t edges = r->survey.count, most = r->survey.most;
    sl_edge_rows_say(path, r->options, edges, most < 2 * edges ? most + 1 : 2 * edges, 48 * edges);
    return SL_OK;
}

/* ---- Edges that are held ---- */

/* Return whether the record taken for a header is an edge: other edges have its vertices. */
static bool is_edge(const struct reading *r)
{
    const struct sl_edge_layout *l = &r->layout;
    return l->header && l->names && l->columns == 2 && l->first.count == 2 &&
           (sl_string_ids_find(&r->names, l->first.field[0]) >= 0 ||
            sl_string_ids_find(&r->names, l->first.field[1]) >= 0);
}

static int hold(struct sl_csv *csv, struct reading *r)
{
    for (;;) {
        const int rc = parse_again(csv, r, HOLD);
        if (rc < 0 || (rc == SL_OK && !is_edge(r)))
            return rc;
        if (rc == SL_OK) {
            sl_note("%s: line %" PRId64 " is no header but an edge: others have its vertices",
                    csv->text.path, r->layout.first_line);
            r->layout.header = false;
            r->layout.source = 0;
            r->layout.target = 1;
        }
        r->layout.names = true;
        r->edges.count = 0;
        sl_string_ids_free(&r->names);
    }
}

/* Say in a note which names are numbers among words, and which names may mean no vertex. */
static void note_names(const char *path, const struct sl_string_ids *names)
{
    int64_t numbers = 0, number;
    const char *word = NULL, *name = names->text;
    for (int64_t k = 0; k < names->count; k++, name += strlen(name) + 1) {
        const bool is_number = sl_text_to_int64(name, &number);
        numbers += is_number;
        word = word || is_number ? word : name;
        if (sl_text_is_missing(name))
            sl_note("%s: a vertex is called '%s': such edges may lack an end", path, name);
    }
    if (numbers > 0 && word)
        sl_note("%s: %" PRId64 " of %" PRId64 " vertices are called by numbers, the others by "
                "names such as '%.40s'; vertex_ids has them",
                path, numbers, names->count, word);
}

static int read_edges(struct sl_csv *csv, struct reading *r, struct sl_dataset *out)
{
    const char *path = csv->text.path;
    bool done = false;
    int rc = sl_edge_layout_find(csv, r->options, r->map, &r->layout);
    r->edges.columns = r->layout.features;
    if (!rc)
        rc = try_streaming(csv, r, out, &done);
    if (rc || done)
        return rc;
    rc = hold(csv, r);
    if (!rc && !r->map)
        rc = sl_edges_check(path, &r->edges, r->layout.names ? r->names.count : 0);
    if (rc)
        return rc;
    sl_edge_layout_note(path, &r->layout, r->map != NULL);
    note_held_columns(path, r);
    if (r->map)
        return build(path, r->options, &r->edges, out);
    if (r->layout.names)
        note_names(path, &r->names);
    rc = r->layout.names ? sl_edges_keep_names(path, &r->names, out)
                         : number_vertices(path, &r->layout, &r->edges, out);
    return rc ? rc : build(path, r->options, &r->edges, out);
}

int sl_edge_list_read(const char *path, const struct sl_read_options *options,
                      const struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct sl_csv csv;
    struct reading reading = {.options = options, .map = map};
    int rc = sl_csv_open(&csv, path);
    csv.comments = "#%";
    if (!rc)
        rc = read_edges(&csv, &reading, out);
    sl_csv_close(&csv);
    sl_edge_layout_free(&reading.layout);
    sl_string_ids_free(&reading.names);
    free(reading.edges.ends);
    free(reading.edges.weights);
    free(reading.edges.features);
    return rc;
}

static int read_file(const char *path, const struct sl_read_options *options,
                     struct sl_dataset *out)
{
    return sl_edge_list_read(path, options, NULL, out);
}

/* Return whether the file is any other text. An empty file is none. */
static bool is_text(const char *head, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        if ((unsigned char)head[k] < ' ' && !strchr("\t\n\r\f", head[k]))
            return false;
    return bytes > 0 && !memchr(head, '\0', bytes);
}

const struct sl_format sl_format_edge_list = {
    .name = "edge list",
    .extensions = ".txt .csv .tsv .edgelist .edges",
    .text = true,
    .edges = true,
    .sniff = is_text,
    .read = read_file,
    .write = sl_edge_list_write,
};
