/* METIS graph files (METIS manual, section 4.1.1): a header "vertices edges [format
 * [constraints]]", then a line per vertex: [size] [weights] neighbour [weight] neighbour [weight]
 * …, neighbours counted from 1. */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "data/csr.h"
#include "data/formats/formats.h"
#include "data/formats/text.h"

struct header {
    int64_t vertices, edges;
    bool edge_weights;
    int64_t skip; /* numbers before the neighbours: vertex size and weights */
};

static int parse_format(const struct sl_text *text, const char *format, const char *constraints,
                        struct header *header)
{
    /* The format has three flags, leading zeros optional: vertex sizes, vertex weights, edge
     * weights. */
    const size_t length = strlen(format);
    int64_t weights = 1;
    if (length < 1 || length > 3 || strspn(format, "01") != length)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": format '%.20s' is none of 0, 1, … 111",
                        text->path, text->line_number, format);
    if (constraints && (!sl_text_to_int64(constraints, &weights) || weights < 0))
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": '%.20s' is no number of vertex weights",
                        text->path, text->line_number, constraints);
    const bool vertex_sizes = length == 3 && format[0] == '1';
    const bool vertex_weights = length >= 2 && format[length - 2] == '1';
    header->edge_weights = format[length - 1] == '1';
    header->skip = (vertex_sizes ? 1 : 0) + (vertex_weights ? weights : 0);
    if (header->skip > 0)
        sl_note("%s: vertex sizes and weights are ignored", text->path);
    return SL_OK;
}

static int read_header(struct sl_text *text, struct header *header)
{
    char *line;
    const int got = sl_text_next_data(text, "%", &line);
    if (got < 0)
        return got;
    const char *vertices = got ? sl_text_word(&line) : NULL;
    const char *edges = got ? sl_text_word(&line) : NULL;
    const char *format = got ? sl_text_word(&line) : NULL;
    const char *constraints = got ? sl_text_word(&line) : NULL;
    if (!vertices || !edges || !sl_text_to_int64(vertices, &header->vertices) ||
        !sl_text_to_int64(edges, &header->edges) || sl_text_word(&line))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " is no METIS header, expected \"vertices edges "
                        "[format [constraints]]\"",
                        text->path, text->line_number);
    if (header->vertices < 1 || header->vertices > INT32_MAX || header->edges < 0)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": %" PRId64 " vertices and %" PRId64
                        " edges, expected 1 to 2^31 - 1 vertices",
                        text->path, text->line_number, header->vertices, header->edges);
    return format ? parse_format(text, format, constraints, header) : SL_OK;
}

static int read_vertex(const struct sl_text *text, const struct header *header, int64_t vertex,
                       char *line, struct sl_triples *triples)
{
    for (int64_t k = 0; k < header->skip; k++)
        if (!sl_text_word(&line))
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 " has too few numbers, expected %" PRId64
                            " before the neighbours",
                            text->path, text->line_number, header->skip);
    for (const char *word; (word = sl_text_word(&line));) {
        int64_t neighbour;
        float weight = 1.0f;
        if (!sl_text_to_int64(word, &neighbour) || neighbour < 1 || neighbour > header->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": '%.40s' is no neighbour, expected 1 to %" PRId64,
                            text->path, text->line_number, word, header->vertices);
        word = header->edge_weights ? sl_text_word(&line) : "1";
        if (!word || !sl_text_to_float(word, &weight))
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": neighbour %" PRId64 " has no weight", text->path,
                            text->line_number, neighbour);
        const int rc = sl_triples_add(triples, vertex, neighbour - 1, weight);
        if (rc)
            return rc;
    }
    return SL_OK;
}

/* Read the next vertex line: skip comments, but an empty line is a vertex without neighbours. */
static int next_vertex_line(struct sl_text *text, char **line)
{
    int got;
    do
        got = sl_text_next(text, line);
    while (got > 0 && **line == '%');
    return got;
}

static int read_vertices(struct sl_text *text, const struct header *header,
                         struct sl_triples *triples)
{
    char *line;
    int64_t vertex = 0;
    int got, rc = SL_OK;
    while (!rc && (got = next_vertex_line(text, &line)) > 0) {
        if (vertex < header->vertices)
            rc = read_vertex(text, header, vertex++, line, triples);
        else if (sl_text_word(&line))
            rc = sl_error(SL_ERR_DATA,
                          "%s: line %" PRId64 ": more lines than the %" PRId64 " vertices",
                          text->path, text->line_number, header->vertices);
    }
    if (rc || got < 0)
        return rc ? rc : got;
    if (vertex < header->vertices)
        return sl_error(SL_ERR_DATA, "%s: ends after %" PRId64 " of %" PRId64 " vertices",
                        text->path, vertex, header->vertices);
    return SL_OK;
}

/* Compare the header's edges with the entries: the header counts an edge once, the lines twice. */
static int check_edges(const char *path, const struct header *header,
                       const struct sl_triples *triples)
{
    int64_t loops = 0;
    for (int64_t k = 0; k < triples->count; k++)
        loops += triples->rows[k] == triples->cols[k];
    if ((triples->count + loops) / 2 != header->edges || (triples->count + loops) % 2 != 0)
        return sl_error(SL_ERR_DATA,
                        "%s: has %" PRId64 " neighbours, which are %g edges; header announces "
                        "%" PRId64 " edges",
                        path, triples->count, (double)(triples->count + loops) / 2, header->edges);
    return SL_OK;
}

static int read_file(const char *path, const struct sl_read_options *options,
                     struct sl_dataset *out)
{
    struct sl_text text;
    struct header header = {0};
    struct sl_triples triples = {0};
    int rc = sl_text_open(&text, path);
    if (!rc)
        rc = read_header(&text, &header);
    triples.weighted = header.edge_weights || options->count_duplicates;
    if (!rc)
        rc = read_vertices(&text, &header, &triples);
    if (!rc)
        rc = check_edges(path, &header, &triples);
    if (!rc)
        rc = sl_csr_build(&triples, header.vertices, header.vertices, &out->blocks, &out->adjacency,
                          &out->merged_edges);
    sl_triples_free(&triples);
    sl_text_close(&text);
    out->vertices = header.vertices;
    out->symmetric = true; /* true by the format; sl_source_read checks it */
    return rc;
}

const struct sl_format sl_format_metis_graph = {
    .name = "METIS graph",
    .extensions = ".graph .mgraph .metis",
    .text = true,
    .read = read_file,
    .write = sl_metis_graph_write,
};
