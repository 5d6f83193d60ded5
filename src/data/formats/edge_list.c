/* Edge lists: a line per edge, "source target" or "source target weight", separated by blanks, tabs
 * or commas; further columns only where they are to be ignored.
 *
 * The edge u -> v becomes the entry (u, v) of the adjacency matrix, as in all other formats.
 * Vertices are numbers or names; the first two lines decide which, and whether the first is a
 * header. Numbers are kept as they are where they leave few gaps, else they are renumbered in
 * ascending order; names are numbered as they appear. The dataset keeps what vertices are called in
 * the file where this is not their number. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/log.h"
#include "data/formats/edge_rows.h"
#include "data/formats/edges.h"
#include "data/formats/formats.h"
#include "data/formats/string_ids.h"
#include "data/formats/text.h"
#include "data/formats/vertex_map.h"

enum { MAX_FIELDS = 4 }; /* one more than an edge has; all further ones count as it */

static const char COMMENTS[] = "#%";

struct fields {
    int count;
    char *field[MAX_FIELDS];
};

struct shape {
    bool header, names;
    int columns; /* 2, or 3 with weights */
    bool ignores_rest;
};

/* What becomes of the edges of a pass over the file. */
enum pass { HOLD, SURVEY, COUNT, PUT };

/* What a first pass over a large file finds out. */
struct survey {
    int64_t count, most, least; /* edges; the largest and the smallest vertex */
    int64_t source, target[2];  /* the largest source, the smallest and the largest target */
    int64_t first_target[2];    /* of the first two edges */
    float weight[2];            /* the smallest and the largest */
};

/* What the steps of reading share. */
struct reading {
    const struct sl_read_options *options;
    const struct sl_vertex_map
        *map; /* what vertices are called; NULL: they are called here alone */
    struct shape shape;
    struct sl_string_ids names;
    struct sl_edges edges;
    enum pass pass;
    struct survey survey;
    struct sl_edge_rows rows;
};

/* Cuts the line in place. Blanks around a comma belong to it; two commas have an empty field
 * between them. */
static struct fields split_line(char *line)
{
    static const char blanks[] = " \t", separators[] = " \t,";
    struct fields fields = {0};
    char *at = line + strspn(line, blanks);
    while (*at) {
        char *end = at + strcspn(at, separators);
        char *next = end + strspn(end, blanks);
        const bool comma = *next == ',';
        if (comma)
            next += 1 + strspn(next + 1, blanks);
        *end = '\0';
        if (fields.count < MAX_FIELDS)
            fields.field[fields.count++] = at;
        at = next;
        if (comma && *at == '\0' && fields.count < MAX_FIELDS)
            fields.field[fields.count++] = at; /* after a comma at the end of the line */
    }
    return fields;
}

static bool has_edge_columns(const struct fields *fields, const struct shape *shape)
{
    return shape->ignores_rest ? fields->count >= 2 : fields->count == 2 || fields->count == 3;
}

/* How many of the two ends are numbers. */
static int count_numbers(const struct fields *fields)
{
    int64_t unused;
    return sl_text_to_int64(fields->field[0], &unused) +
           sl_text_to_int64(fields->field[1], &unused);
}

/* Between names, only words that are usual there make a header. */
static bool has_column_names(const struct fields *fields, const struct shape *shape)
{
    static const char *const words[] = {"source", "src",    "from",  "u",      "head", "id_1",
                                        "id1",    "node_1", "node1", "node_a", "start"};
    float unused;
    if (!shape->ignores_rest && fields->count == 3 && !sl_text_to_float(fields->field[2], &unused))
        return true;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcasecmp(fields->field[0], words[k]) == 0)
            return true;
    return false;
}

/* The first two lines tell the shape of the file. A line of an odd length before edges is a header:
 * SNAP files in circulation start with "vertices edges 0 0 1". */
static void judge_shape(const struct fields *first, const struct fields *second,
                        struct shape *shape)
{
    const bool edge_follows = has_edge_columns(second, shape);
    const bool numbers_follow = edge_follows && count_numbers(second) == 2;
    if (!has_edge_columns(first, shape) ||
        (shape->ignores_rest && edge_follows && first->count != second->count)) {
        shape->header = edge_follows;
        shape->names = edge_follows && !numbers_follow;
    } else if (count_numbers(first) == 0) {
        shape->header = numbers_follow || has_column_names(first, shape);
        shape->names = !numbers_follow;
    } else if (count_numbers(first) == 1) {
        shape->names = !numbers_follow;
    }
    shape->columns = shape->header && edge_follows ? second->count : first->count;
}

/* Where vertices are known, a header is two words that are none. */
static void judge_names(const struct fields *first, const struct fields *second,
                        const struct sl_vertex_map *map, struct shape *shape)
{
    shape->header = first->count >= 2 && count_numbers(first) < 2 &&
                    sl_vertex_map_find(map, first->field[0]) < 0 &&
                    sl_vertex_map_find(map, first->field[1]) < 0;
    shape->names = true;
    shape->columns = shape->header && second->count > 0 ? second->count : first->count;
}

static int check_shape(const struct sl_text *text, const struct reading *r, int64_t number,
                       const struct fields *first)
{
    const struct shape *shape = &r->shape;
    const bool third = r->options->weights == SL_WEIGHTS_THIRD;
    const char *last = first->count > 0 ? first->field[first->count - 1] : "";
    if (shape->header && first->count == 2 && sl_edges_is_label_word(last))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": column \"%.40s\" says that these are labels, not "
                        "edges (expected edges; labels go into labels.npy)",
                        text->path, number, last);
    if (shape->columns < 2 || (shape->columns > 3 && !shape->ignores_rest))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " has %s columns, expected 2, or 3 with weights%s",
                        text->path, number, first->count < 2 ? "too few" : "too many",
                        first->count < 2 ? "" : " (--weights none ignores further ones)");
    if (third && shape->columns != 3)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " has 2 columns, expected 3 (--weights 3)",
                        text->path, number);
    return SL_OK;
}

static int find_shape(struct sl_text *text, struct reading *r)
{
    char *line, *copy = NULL;
    struct fields first = {0}, second = {0};
    r->shape = (struct shape){.columns = 2, .ignores_rest = r->options->weights == SL_WEIGHTS_NONE};
    int got = sl_text_next_data(text, COMMENTS, &line);
    if (got <= 0)
        return got;
    const int64_t number = text->line_number;
    copy = strdup(line);
    if (!copy)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory", text->path);
    first = split_line(copy);
    got = sl_text_next_data(text, COMMENTS, &line);
    if (got > 0)
        second = split_line(line);
    if (r->map)
        judge_names(&first, &second, r->map, &r->shape);
    else
        judge_shape(&first, &second, &r->shape);
    const int rc = got < 0 ? got : check_shape(text, r, number, &first);
    free(copy);
    return rc;
}

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
        if (!ends || (weight && !weights))
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

static int take_edge(const struct sl_text *text, struct reading *r, int64_t u, int64_t v,
                     const float *weight)
{
    const int64_t base = r->options->first_vertex, n = r->rows.vertices;
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
                          text->path, text->line_number);
}

static int parse_vertex(const struct sl_text *text, struct reading *r, char *field, int64_t *vertex)
{
    if (r->map) {
        *vertex = sl_vertex_map_get(r->map, field, text->path, text->line_number);
        return *vertex < 0 ? (int)*vertex : SL_OK;
    }
    if (r->shape.names && *field != '\0') {
        *vertex = sl_string_ids_get(&r->names, field);
        return *vertex < 0 ? SL_ERR_SYSTEM : SL_OK;
    }
    if (!sl_text_to_int64(field, vertex))
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": '%.40s' is no vertex, expected %s",
                        text->path, text->line_number, field,
                        r->shape.names ? "a name" : "a number");
    if (*vertex < 0)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": vertex %" PRId64 " is negative, expected 0 or more",
                        text->path, text->line_number, *vertex);
    if (*vertex < r->options->first_vertex)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": vertex %" PRId64
                        ", expected none before --first-vertex %" PRId64,
                        text->path, text->line_number, *vertex, r->options->first_vertex);
    return SL_OK;
}

static int parse_edge(const struct sl_text *text, struct reading *r, char *line)
{
    const struct fields fields = split_line(line);
    const int columns = r->shape.columns;
    const bool weighted = columns == 3 && !r->shape.ignores_rest;
    if (r->shape.ignores_rest ? fields.count < 2 : fields.count != columns)
        return sl_error(
            SL_ERR_DATA, "%s: line %" PRId64 " has %s%d columns, expected %s%d", text->path,
            text->line_number, fields.count == MAX_FIELDS ? "at least " : "", fields.count,
            r->shape.ignores_rest ? "at least " : "", r->shape.ignores_rest ? 2 : columns);
    int64_t u = 0, v = 0;
    float weight = 1.0f;
    int rc = parse_vertex(text, r, fields.field[0], &u);
    if (!rc)
        rc = parse_vertex(text, r, fields.field[1], &v);
    if (!rc && weighted && !sl_text_to_float(fields.field[2], &weight))
        rc = sl_error(SL_ERR_DATA,
                      "%s: line %" PRId64 ": weight '%.40s' is no finite number (--weights none "
                      "ignores this column)",
                      text->path, text->line_number, fields.field[2]);
    return rc ? rc : take_edge(text, r, u, v, weighted ? &weight : NULL);
}

static int parse_edges(struct sl_text *text, struct reading *r)
{
    char *line;
    bool skip = r->shape.header;
    int got;
    while ((got = sl_text_next_data(text, COMMENTS, &line)) > 0) {
        if (skip) {
            skip = false;
            if (line[strspn(line, "0123456789 \t,")] == '\0') /* numbers: not what a header is */
                sl_note("%s: line %" PRId64 " is taken for a header: %.60s", text->path,
                        text->line_number, line);
            continue;
        }
        const int rc = parse_edge(text, r, line);
        if (rc)
            return rc;
    }
    return got;
}

/* What the user cannot see: what became of a third column. */
static void note_columns(const char *path, const struct reading *r, float least, float most)
{
    if (r->shape.ignores_rest && r->shape.columns > 2)
        sl_note("%s: columns after the second are ignored", path);
    if (r->options->weights != SL_WEIGHTS_THIRD && (least != 1.0f || most != 1.0f))
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

/* Some files start with a line "vertices edges", which looks like an edge. Take a line for the size
 * if its second number counts the lines after it, and its first number exceeds every vertex in
 * them. An edge passes only by a strange chance. Vertices count from `base`. Drop such a line among
 * the first two lines, and return its number of vertices, or 0. */
static int64_t drop_size_line(const char *path, int64_t base, struct sl_edges *edges)
{
    for (int64_t lines = 1; lines <= 2 && lines < edges->count && !edges->weights; lines++) {
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

/* As many vertices as leave few gaps between `edges` edges' numbers. */
static int64_t dense_limit(int64_t edges)
{
    return 4 * edges + 1000;
}

/* Settles vertex numbers 0 … out->vertices - 1. */
static int number_vertices(const char *path, const struct sl_read_options *options,
                           struct sl_edges *edges, struct sl_dataset *out)
{
    const int64_t base = options->first_vertex, stated = drop_size_line(path, base, edges);
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

/* Edges that are held. */
static int build(const char *path, const struct sl_read_options *options,
                 const struct sl_edges *edges, struct sl_dataset *out)
{
    struct sl_edge_rows rows = {.vertices = out->vertices,
                                .weighted = edges->weights || options->count_duplicates};
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
    return rc ? rc : sl_edge_rows_close(&rows, &out->adjacency, &out->merged_edges);
}

/* ---- Large files ---- */

static int parse_again(struct sl_text *text, struct reading *r, enum pass pass)
{
    r->pass = pass;
    const int rc = sl_text_rewind(text);
    return rc ? rc : parse_edges(text, r);
}

/* Whether a file is so large that its edges are not held: by its bytes on disk. */
static bool is_large(const char *path, const struct sl_read_options *options)
{
    enum { LARGE = 64 << 20 };
    struct stat info;
    const int64_t large = options->large_file ? options->large_file : LARGE;
    return stat(path, &info) == 0 && info.st_size >= large;
}

/* Whether numbers can stay as they are, and no line may be a size or a label: what needs a second
 * look has to be held. */
static bool can_stream(const struct reading *r)
{
    const struct survey *s = &r->survey;
    const bool labels = s->source >= s->count - 1 && s->target[0] <= 1 &&
                        s->target[1] < s->count / 4 + s->target[0];
    return s->count > 2 && s->most - r->options->first_vertex < dense_limit(s->count) &&
           s->first_target[0] != s->count - 1 && s->first_target[1] != s->count - 2 && !labels;
}

/* Counts edges and puts them into their rows, each in a pass over the file. */
static int stream(struct sl_text *text, struct reading *r, struct sl_dataset *out)
{
    const int64_t base = r->options->first_vertex;
    struct sl_edge_rows *rows = &r->rows;
    rows->weighted =
        (r->shape.columns == 3 && !r->shape.ignores_rest) || r->options->count_duplicates;
    rows->both = r->options->symmetrize && !rows->weighted;
    rows->vertices = out->vertices = r->survey.most + 1 - base;
    sl_edge_rows_say(text->path, r->options, r->survey.count, rows->vertices,
                     8 * rows->vertices + (rows->both || rows->weighted ? 8 : 4) * r->survey.count);
    note_columns(text->path, r, r->survey.weight[0], r->survey.weight[1]);
    if (base == 0 && r->survey.least == 1)
        note_first_vertex(text->path);
    int rc = check_count(text->path, rows->vertices);
    if (!rc)
        rc = sl_edge_rows_open(rows, &out->blocks);
    if (!rc)
        rc = parse_again(text, r, COUNT);
    if (!rc)
        rc = sl_edge_rows_allocate(rows, &out->blocks);
    if (!rc)
        rc = parse_again(text, r, PUT);
    if (!rc)
        rc = sl_edge_rows_close(rows, &out->adjacency, &out->merged_edges);
    if (rc || base == 0)
        return rc;
    struct sl_edges none = {.count = 0};
    return sl_edges_shift(&none, base, out); /* what vertices are called */
}

/* Looks through a large file. Streams it, with *done set, or says what holding its edges takes. */
static int try_streaming(struct sl_text *text, struct reading *r, struct sl_dataset *out,
                         bool *done)
{
    if (r->shape.names || r->map || !is_large(text->path, r->options))
        return SL_OK;
    const int rc = parse_again(text, r, SURVEY);
    if (rc)
        return rc;
    *done = can_stream(r);
    if (*done)
        return stream(text, r, out);
    const int64_t edges = r->survey.count;
    sl_edge_rows_say(text->path, r->options, edges, larger(r->survey.most, 0) + 1, 48 * edges);
    return SL_OK;
}

static int read_edges(struct sl_text *text, struct reading *r, struct sl_dataset *out)
{
    bool done = false;
    int rc = find_shape(text, r);
    if (!rc)
        rc = try_streaming(text, r, out, &done);
    if (rc || done)
        return rc;
    rc = parse_again(text, r, HOLD);
    if (!rc && !r->map)
        rc = sl_edges_check(text->path, &r->edges, r->shape.names ? r->names.count : 0);
    if (rc)
        return rc;
    note_held_columns(text->path, r);
    if (r->map)
        return build(text->path, r->options, &r->edges, out);
    rc = r->shape.names ? sl_edges_keep_names(text->path, &r->names, out)
                        : number_vertices(text->path, r->options, &r->edges, out);
    return rc ? rc : build(text->path, r->options, &r->edges, out);
}

int sl_edge_list_read(const char *path, const struct sl_read_options *options,
                      const struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct sl_text text;
    struct reading reading = {.options = options, .map = map};
    int rc = sl_text_open(&text, path);
    if (rc)
        return rc;
    rc = read_edges(&text, &reading, out);
    sl_text_close(&text);
    sl_string_ids_free(&reading.names);
    free(reading.edges.ends);
    free(reading.edges.weights);
    return rc;
}

static int read_file(const char *path, const struct sl_read_options *options,
                     struct sl_dataset *out)
{
    return sl_edge_list_read(path, options, NULL, out);
}

/* Any other text. Not empty, because an empty file says nothing. */
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
