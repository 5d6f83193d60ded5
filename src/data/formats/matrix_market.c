/* Matrix Market coordinate files (Boisvert, Pozo, Remington, "The Matrix Market exchange formats",
 * NISTIR 5935): real, integer or pattern; general or symmetric. The matrix is the adjacency as it
 * stands. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "data/csr.h"
#include "data/formats/formats.h"
#include "data/formats/text.h"

struct header {
    bool pattern, symmetric;
    int64_t rows, cols, entries;
};

static bool is(const char *word, const char *expected)
{
    return word && strcasecmp(word, expected) == 0;
}

static int parse_banner(const struct sl_text *text, char *line, struct header *header)
{
    const char *banner = sl_text_word(&line), *object = sl_text_word(&line);
    const char *format = sl_text_word(&line), *field = sl_text_word(&line);
    const char *symmetry = sl_text_word(&line);
    if (!is(banner, "%%MatrixMarket") || !is(object, "matrix") || !symmetry)
        return sl_error(SL_ERR_DATA,
                        "%s: line 1 is no Matrix Market banner, expected \"%%%%MatrixMarket "
                        "matrix coordinate …\"",
                        text->path);
    if (!is(format, "coordinate"))
        return sl_error(SL_ERR_DATA, "%s: format '%s' is not read, expected coordinate", text->path,
                        format);
    header->pattern = is(field, "pattern");
    if (!header->pattern && !is(field, "real") && !is(field, "integer"))
        return sl_error(SL_ERR_DATA,
                        "%s: field '%s' is not read, expected real, integer or pattern", text->path,
                        field);
    header->symmetric = is(symmetry, "symmetric");
    if (!header->symmetric && !is(symmetry, "general"))
        return sl_error(SL_ERR_DATA, "%s: symmetry '%s' is not read, expected general or symmetric",
                        text->path, symmetry);
    return SL_OK;
}

static bool next_int(char **line, int64_t *value)
{
    const char *word = sl_text_word(line);
    return word && sl_text_to_int64(word, value);
}

static int read_header(struct sl_text *text, struct header *header)
{
    char *line;
    int got = sl_text_next(text, &line);
    if (got < 0)
        return got;
    const int rc = parse_banner(text, got ? line : (char[]){""}, header);
    if (rc)
        return rc;
    got = sl_text_next_data(text, "%", &line);
    if (got < 0)
        return got;
    if (got == 0 || !next_int(&line, &header->rows) || !next_int(&line, &header->cols) ||
        !next_int(&line, &header->entries) || sl_text_word(&line))
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " expected \"rows columns entries\"",
                        text->path, text->line_number);
    if (header->rows != header->cols || header->rows < 1 || header->rows > INT32_MAX)
        return sl_error(SL_ERR_DATA,
                        "%s: matrix is %" PRId64 " x %" PRId64
                        ", expected a square adjacency of at most 2^31 - 1 vertices",
                        text->path, header->rows, header->cols);
    return SL_OK;
}

static int read_entry(const struct sl_text *text, const struct header *header, char *line,
                      struct sl_triples *triples)
{
    int64_t row, col;
    float weight = 1.0f;
    bool ok = next_int(&line, &row) && next_int(&line, &col);
    if (ok && !header->pattern) {
        const char *word = sl_text_word(&line);
        ok = word && sl_text_to_float(word, &weight);
    }
    if (!ok || sl_text_word(&line))
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " is no entry, expected \"row column%s\"",
                        text->path, text->line_number, header->pattern ? "" : " value");
    if (row < 1 || row > header->rows || col < 1 || col > header->cols)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": entry (%" PRId64 ", %" PRId64
                        ") is out of range, expected 1 to %" PRId64,
                        text->path, text->line_number, row, col, header->rows);
    int rc = sl_triples_add(triples, col - 1, row - 1, weight); /* edge row -> column */
    if (!rc && header->symmetric && row != col)
        rc = sl_triples_add(triples, row - 1, col - 1, weight);
    return rc;
}

static int read_entries(struct sl_text *text, const struct header *header,
                        struct sl_triples *triples)
{
    char *line;
    int64_t found = 0;
    int got;
    while ((got = sl_text_next_data(text, "%", &line)) > 0) {
        if (found++ == header->entries)
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": more entries than the %" PRId64 " announced",
                            text->path, text->line_number, header->entries);
        const int rc = read_entry(text, header, line, triples);
        if (rc)
            return rc;
    }
    if (got < 0)
        return got;
    if (found != header->entries)
        return sl_error(SL_ERR_DATA, "%s: ends after %" PRId64 " entries, announced %" PRId64,
                        text->path, found, header->entries);
    return SL_OK;
}

/* Refuse a size far above the entries: a wrong size would use up the memory. The file has no line
 * for a vertex without edges. */
static int check_size(const struct sl_text *text, const struct header *header,
                      const struct sl_triples *triples)
{
    enum { FEW = 1 << 20, MOST_PER_ENTRY = 1000 };
    return header->rows <= FEW || header->rows / MOST_PER_ENTRY <= triples->count
               ? SL_OK
               : sl_error(SL_ERR_DATA,
                          "%s: matrix is %" PRId64 " x %" PRId64 " with %" PRId64
                          " entries, expected at least one for every %d vertices",
                          text->path, header->rows, header->cols, triples->count, MOST_PER_ENTRY);
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
    triples.weighted = !header.pattern || options->count_duplicates;
    if (!rc)
        rc = read_entries(&text, &header, &triples);
    if (!rc)
        rc = check_size(&text, &header, &triples);
    if (!rc)
        rc = sl_csr_build(&triples, header.rows, header.cols, &out->blocks, &out->adjacency,
                          &out->merged_edges);
    sl_triples_free(&triples);
    sl_text_close(&text);
    out->vertices = header.rows;
    out->symmetric = header.symmetric;
    return rc;
}

static bool is_matrix_market(const char *head, size_t bytes)
{
    static const char banner[] = "%%MatrixMarket";
    return bytes >= sizeof banner - 1 && strncasecmp(head, banner, sizeof banner - 1) == 0;
}

const struct sl_format sl_format_matrix_market = {
    .name = "Matrix Market",
    .extensions = ".mtx",
    .text = true,
    .sniff = is_matrix_market,
    .read = read_file,
    .write = sl_matrix_market_write,
};
