/* Edge lists: a line per edge, "source target" or "source target weight", as a table of fields
 * (csv.h); edge_layout.h finds the columns.
 *
 * The edge u -> v lets v aggregate from u, as in all other formats. Vertices are numbers; where any
 * line has a name, all are names. Numbers stay as they are where they leave few gaps, else they are
 * renumbered in ascending order. Names are numbered as they appear. The dataset keeps the file's
 * names and numbers where they differ from its own. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/log.h"
#include "data/formats/edge_lines.h"
#include "data/formats/formats.h"

/* Say in a note how a third column was read. */
static void note_columns(const char *path, const struct sl_edge_lines *r, float least, float most)
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

void sl_edge_lines_note_columns(const char *path, const struct sl_edge_lines *r, int64_t first,
                                int64_t end)
{
    const float *weight = r->edges.weights;
    float least = 1.0f, most = 1.0f;
    for (int64_t k = first; weight && k < end; k++) {
        least = k == first || weight[k] < least ? weight[k] : least;
        most = k == first || weight[k] > most ? weight[k] : most;
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

/* A line with the size of the graph looks like an edge. Take a line for it if its second number
 * counts the lines after it, and its first number exceeds every vertex in them. An edge passes only
 * by a strange chance. */
int64_t sl_edge_lines_drop_size(const char *path, const struct sl_edge_layout *layout,
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
static int number_vertices(const char *path, struct sl_edge_lines *r, struct sl_dataset *out)
{
    struct sl_edges *const edges = &r->edges;
    const int64_t base = r->layout.first_vertex, stated = r->stated;
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
static bool can_stream(const struct sl_edge_lines *r)
{
    const struct sl_edge_survey *s = &r->survey;
    const bool labels = s->source >= s->count - 1 && s->target[0] <= 1 &&
                        s->target[1] < s->count / 4 + s->target[0];
    return s->count > 2 && s->most - r->layout.first_vertex < dense_limit(s->count) &&
           s->first_target[0] != s->count - 1 && s->first_target[1] != s->count - 2 && !labels;
}

/* Count edges and put them into their rows, each in a pass over the file. */
static int stream(struct sl_csv *csv, struct sl_edge_lines *r, struct sl_dataset *out)
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
        rc = sl_edge_lines_parse_again(csv, r, SL_EDGES_COUNT);
    if (!rc)
        rc = sl_edge_rows_allocate(rows, &out->blocks);
    if (!rc)
        rc = sl_edge_lines_parse_again(csv, r, SL_EDGES_PUT);
    if (!rc)
        rc = sl_edge_rows_close(rows, 0, NULL, out);
    if (rc || base == 0)
        return rc;
    struct sl_edges none = {.count = 0};
    return sl_edges_shift(&none, base, out); /* vertex_ids */
}

/* Survey a large file. Stream it and set *done, or say how much memory its edges need. */
static int try_streaming(struct sl_csv *csv, struct sl_edge_lines *r, struct sl_dataset *out,
                         bool *done)
{
    const char *path = csv->text.path;
    if (r->layout.names || r->map || r->layout.features > 0 || !is_large(&csv->text, r->options))
        return SL_OK;
    const int rc = sl_edge_lines_parse_again(csv, r, SL_EDGES_SURVEY);
    r->layout.names = rc == SL_EDGES_AGAIN;
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

static int hold(struct sl_csv *csv, struct sl_edge_lines *r)
{
    for (;;) {
        const int rc = sl_edge_lines_parse_again(csv, r, SL_EDGES_HOLD);
        if (rc < 0 || (rc == SL_OK && !sl_edge_lines_is_edge(&r->layout, &r->names)))
            return rc;
        if (rc == SL_OK)
            sl_edge_lines_take_header(csv->text.path, &r->layout);
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

/* Settle the number of vertices that no array has: the one that is said, or -1: the edges tell. A
 * wrong number would use up the memory. */
static int settle_count(const char *path, const struct sl_edges *edges, struct sl_dataset *out)
{
    enum { FEW = 1 << 20, MOST_PER_EDGE = 1000 };
    const bool said = out->vertices >= 0;
    if (!said)
        out->vertices = largest_vertex(edges) + 1;
    if (!said && out->vertices > dense_limit(edges->count))
        return sl_error(SL_ERR_DATA,
                        "%s: %" PRId64 " edges have vertices up to %" PRId64
                        ", expected \"nodes\" in meta.json: how many vertices there are",
                        path, edges->count, out->vertices - 1);
    if (out->vertices > FEW && out->vertices / MOST_PER_EDGE > edges->count)
        return sl_error(SL_ERR_DATA,
                        "%s: has %" PRId64 " vertices and %" PRId64
                        " edges, expected at least one for every %d vertices, or labels.npy",
                        path, out->vertices, edges->count, MOST_PER_EDGE);
    return SL_OK;
}

int sl_edge_lines_build(const char *path, struct sl_edge_lines *r, struct sl_dataset *out)
{
    if (r->map) {
        const int rc = r->map->no_rows ? settle_count(path, &r->edges, out) : SL_OK;
        return rc ? rc : build(path, r->options, &r->edges, out);
    }
    if (r->layout.names)
        note_names(path, &r->names);
    const int rc =
        r->layout.names ? sl_edges_keep_names(path, &r->names, out) : number_vertices(path, r, out);
    return rc ? rc : build(path, r->options, &r->edges, out);
}

static int read_edges(struct sl_csv *csv, struct sl_edge_lines *r, struct sl_dataset *out)
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
    sl_edge_lines_note_columns(path, r, 0, r->edges.count);
    if (!r->map && !r->layout.names)
        r->stated = sl_edge_lines_drop_size(path, &r->layout, &r->edges);
    return sl_edge_lines_build(path, r, out);
}

int sl_edge_list_read(const char *path, const struct sl_read_options *options,
                      const struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct sl_csv csv;
    struct sl_edge_lines reading = {.options = options, .map = map};
    int rc = sl_csv_open(&csv, path);
    csv.comments = "#%";
    if (!rc)
        rc = read_edges(&csv, &reading, out);
    sl_csv_close(&csv);
    sl_edge_lines_free(&reading);
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
