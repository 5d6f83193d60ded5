/* Edge lists: a line per edge, "source target" or "source target weight", separated by blanks, tabs
 * or commas.
 *
 * The edge u -> v becomes the entry (u, v) of the adjacency matrix, as in all other formats.
 * Vertices are numbers or names; the first two lines decide which, and whether the first is a
 * header. Numbers are kept as they are where they leave few gaps, else they are renumbered in
 * ascending order; names are numbered as they appear. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
#include "data/csr.h"
#include "data/formats.h"
#include "data/string_ids.h"
#include "data/text.h"

enum { MAX_FIELDS = 4 }; /* one more than an edge has; all further ones count as it */

static const char COMMENTS[] = "#%";

struct fields {
    int count;
    char *field[MAX_FIELDS];
};

struct shape {
    bool header, names;
    int columns; /* 2, or 3 with weights */
};

/* Vertices as the file has them: 64 bits, since sparse numbers may be large. */
struct edges {
    int64_t *ends;  // (count, 2)
    float *weights; // (count), or NULL
    int64_t count, capacity;
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

static bool has_edge_columns(const struct fields *fields)
{
    return fields->count == 2 || fields->count == 3;
}

/* How many of the two ends are numbers. */
static int count_numbers(const struct fields *fields)
{
    int64_t unused;
    return sl_text_to_int64(fields->field[0], &unused) +
           sl_text_to_int64(fields->field[1], &unused);
}

/* Between names, only words that are usual there make a header. */
static bool has_column_names(const struct fields *fields)
{
    static const char *const words[] = {"source", "src",    "from",  "u",      "head", "id_1",
                                        "id1",    "node_1", "node1", "node_a", "start"};
    float unused;
    if (fields->count == 3 && !sl_text_to_float(fields->field[2], &unused))
        return true;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcasecmp(fields->field[0], words[k]) == 0)
            return true;
    return false;
}

/* The first two lines tell the shape of the file. A line of an odd length before edges is a header:
 * SNAP files in circulation start with "vertices edges 0 0 1". */
static int find_shape(struct sl_text *text, struct shape *shape)
{
    char *line, *copy = NULL;
    struct fields first = {0}, second = {0};
    *shape = (struct shape){.columns = 2};
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
    const bool edge_follows = has_edge_columns(&second);
    if (!has_edge_columns(&first)) {
        shape->header = edge_follows;
        shape->names = edge_follows && count_numbers(&second) < 2;
    } else if (count_numbers(&first) == 0) {
        const bool numbers_follow = edge_follows && count_numbers(&second) == 2;
        shape->header = numbers_follow || has_column_names(&first);
        shape->names = !numbers_follow;
    } else if (count_numbers(&first) == 1) {
        shape->names = !edge_follows || count_numbers(&second) < 2;
    }
    shape->columns = shape->header && edge_follows ? second.count : first.count;
    free(copy);
    if (got < 0)
        return got;
    if (shape->columns != 2 && shape->columns != 3)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " has %s columns, expected 2, or 3 with weights",
                        text->path, number, first.count < 2 ? "too few" : "too many");
    return SL_OK;
}

static int add_edge(struct edges *edges, int64_t u, int64_t v, const float *weight)
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

static int parse_vertex(const struct sl_text *text, char *field, struct sl_string_ids *names,
                        int64_t *vertex)
{
    if (names && *field != '\0') {
        *vertex = sl_string_ids_get(names, field);
        return *vertex < 0 ? SL_ERR_SYSTEM : SL_OK;
    }
    if (!sl_text_to_int64(field, vertex))
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": '%.40s' is no vertex, expected %s",
                        text->path, text->line_number, field, names ? "a name" : "a number");
    if (*vertex < 0)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": vertex %" PRId64 " is negative, expected 0 or more",
                        text->path, text->line_number, *vertex);
    return SL_OK;
}

static int parse_edge(const struct sl_text *text, char *line, int columns,
                      struct sl_string_ids *names, struct edges *edges)
{
    const struct fields fields = split_line(line);
    if (fields.count != columns)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " has %s%d columns, expected %d",
                        text->path, text->line_number,
                        fields.count == MAX_FIELDS ? "at least " : "", fields.count, columns);
    int64_t u = 0, v = 0;
    float weight = 1.0f;
    int rc = parse_vertex(text, fields.field[0], names, &u);
    if (!rc)
        rc = parse_vertex(text, fields.field[1], names, &v);
    if (!rc && columns == 3 && !sl_text_to_float(fields.field[2], &weight))
        rc = sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": weight '%.40s' is no finite number",
                      text->path, text->line_number, fields.field[2]);
    return rc ? rc : add_edge(edges, u, v, columns == 3 ? &weight : NULL);
}

static int parse_edges(struct sl_text *text, const struct shape *shape, struct sl_string_ids *names,
                       struct edges *edges)
{
    char *line;
    bool skip = shape->header;
    int got;
    while ((got = sl_text_next_data(text, COMMENTS, &line)) > 0) {
        if (skip) {
            skip = false;
            if (line[strspn(line, "0123456789 \t,")] == '\0') /* numbers: not what a header is */
                sl_note("%s: line %" PRId64 " is taken for a header: %.60s", text->path,
                        text->line_number, line);
            continue;
        }
        const int rc = parse_edge(text, line, shape->columns, names, edges);
        if (rc)
            return rc;
    }
    return got;
}

static int64_t largest_vertex(const struct edges *edges)
{
    int64_t max = -1;
    for (int64_t k = 0; k < 2 * edges->count; k++)
        max = edges->ends[k] > max ? edges->ends[k] : max;
    return max;
}

/* Some files start with a line "vertices edges", which looks like an edge. It is one only by a
 * strange chance if its second number counts the lines after it and its first is above every vertex
 * in them. Drops such a line among the first two and returns its number of vertices, or 0. */
static int64_t drop_size_line(const char *path, struct edges *edges)
{
    for (int64_t lines = 1; lines <= 2 && lines < edges->count && !edges->weights; lines++) {
        const struct edges rest = {.ends = edges->ends + 2 * lines, .count = edges->count - lines};
        const int64_t vertices = rest.ends[-2];
        if (rest.ends[-1] != rest.count || vertices <= largest_vertex(&rest))
            continue;
        sl_note("%s: the line \"%" PRId64 " %" PRId64 "\" is taken for the size of the graph", path,
                vertices, rest.count);
        edges->count = rest.count;
        memmove(edges->ends, rest.ends, (size_t)rest.count * 2 * sizeof *rest.ends);
        return vertices;
    }
    return 0;
}

static int compare_vertices(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Renumbers the ends to 0, 1, … in ascending order. Sets *vertices to how many there are. */
static int compact(struct edges *edges, int64_t *vertices)
{
    struct sl_block *scratch = NULL;
    const int64_t ends = 2 * edges->count;
    int64_t *sorted = sl_block_array(&scratch, ends, sizeof *sorted);
    if (!sorted)
        return SL_ERR_SYSTEM;
    memcpy(sorted, edges->ends, (size_t)ends * sizeof *sorted);
    qsort(sorted, (size_t)ends, sizeof *sorted, compare_vertices);
    int64_t unique = 0;
    for (int64_t k = 0; k < ends; k++)
        if (unique == 0 || sorted[unique - 1] != sorted[k])
            sorted[unique++] = sorted[k];
    for (int64_t k = 0; k < ends; k++) {
        const int64_t *found =
            bsearch(&edges->ends[k], sorted, (size_t)unique, sizeof *sorted, compare_vertices);
        edges->ends[k] = found - sorted;
    }
    *vertices = unique;
    sl_block_free_all(&scratch);
    return SL_OK;
}

/* Settles vertex numbers 0 … *vertices - 1. */
static int number_vertices(const char *path, struct edges *edges, int64_t *vertices)
{
    const int64_t stated = drop_size_line(path, edges);
    const int64_t max = largest_vertex(edges), dense = 4 * edges->count + 1000;
    if (max < dense) {
        *vertices = stated > max && stated <= dense ? stated : max + 1;
        return SL_OK;
    }
    const int rc = compact(edges, vertices);
    if (!rc)
        sl_note("%s: vertex numbers up to %" PRId64 " are renumbered to 0 … %" PRId64, path, max,
                *vertices - 1);
    return rc;
}

static int build(const char *path, const struct edges *edges, int64_t vertices,
                 struct sl_dataset *out)
{
    if (vertices > INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " vertices, expected fewer than 2^31", path,
                        vertices);
    struct sl_triples triples = {.weighted = edges->weights != NULL};
    int rc = SL_OK;
    for (int64_t k = 0; k < edges->count && !rc; k++)
        rc = sl_triples_add(&triples, edges->ends[2 * k], edges->ends[2 * k + 1],
                            edges->weights ? edges->weights[k] : 1.0f);
    if (!rc)
        rc = sl_csr_build(&triples, vertices, vertices, &out->blocks, &out->adjacency,
                          &out->merged_edges);
    sl_triples_free(&triples);
    out->vertices = vertices;
    return rc;
}

static int read_edges(struct sl_text *text, struct sl_string_ids *names, struct edges *edges,
                      struct sl_dataset *out)
{
    struct shape shape;
    int64_t vertices;
    int rc = find_shape(text, &shape);
    if (!rc)
        rc = sl_text_rewind(text);
    if (!rc)
        rc = parse_edges(text, &shape, shape.names ? names : NULL, edges);
    if (rc)
        return rc;
    if (shape.names)
        vertices = names->count;
    else
        rc = number_vertices(text->path, edges, &vertices);
    return rc ? rc : build(text->path, edges, vertices, out);
}

int sl_read_edge_list(const char *path, struct sl_dataset *out)
{
    struct sl_text text;
    struct sl_string_ids names = {0};
    struct edges edges = {0};
    int rc = sl_text_open(&text, path);
    if (!rc)
        rc = read_edges(&text, &names, &edges, out);
    sl_text_close(&text);
    sl_string_ids_free(&names);
    free(edges.ends);
    free(edges.weights);
    return rc;
}
