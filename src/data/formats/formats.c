#include "data/formats/formats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

#include "core/error.h"

static bool is_zip(const char *head, size_t bytes)
{
    return bytes >= 4 && memcmp(head, "PK\x03\x04", 4) == 0;
}

static bool is_matrix_market(const char *head, size_t bytes)
{
    static const char banner[] = "%%MatrixMarket";
    return bytes >= sizeof banner - 1 && strncasecmp(head, banner, sizeof banner - 1) == 0;
}

/* Any other text. Not empty, because an empty file says nothing. */
static bool is_text(const char *head, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        if ((unsigned char)head[k] < ' ' && !strchr("\t\n\r\f", head[k]))
            return false;
    return bytes > 0 && !memchr(head, '\0', bytes);
}

int sl_read_options_check(const char *path, const struct sl_read_options *options)
{
    if (options->weights == SL_WEIGHTS_AUTO && options->first_vertex == 0)
        return SL_OK;
    return sl_error(SL_ERR_USAGE, "%s: is no edge list (expected no %s)", path,
                    options->first_vertex ? "--first-vertex" : "--weights");
}

const struct sl_format sl_formats[] = {
    {"NumPy archive", ".npz", false, is_zip, sl_read_npz},
    {"Matrix Market", ".mtx", true, is_matrix_market, sl_read_matrix_market},
    {"METIS graph", ".graph .mgraph .metis", true, NULL, sl_read_metis_graph},
    {"edge list", ".txt .csv .tsv .edgelist .edges", true, is_text, sl_read_edge_list},
    {NULL, NULL, false, NULL, NULL},
};

static bool ends_with(const char *text, size_t length, const char *end, size_t end_length)
{
    return length > end_length && strncasecmp(text + length - end_length, end, end_length) == 0;
}

static bool has_extension(const char *path, const struct sl_format *format)
{
    size_t length = strlen(path);
    if (format->text && ends_with(path, length, ".gz", 3))
        length -= 3;
    for (const char *at = format->extensions; *at;) {
        const size_t extension = strcspn(at, " ");
        if (ends_with(path, length, at, extension))
            return true;
        at += extension + (at[extension] == ' ');
    }
    return false;
}

static int read_head(const char *path, char *head, size_t size, size_t *bytes)
{
    errno = 0;
    gzFile file = gzopen(path, "rbe");
    if (!file)
        return sl_error(SL_ERR_DATA, "%s: cannot open: %s", path, strerror(errno));
    const int got = gzread(file, head, (unsigned)size);
    gzclose(file);
    if (got < 0)
        return sl_error(SL_ERR_DATA, "%s: cannot read its first bytes", path);
    *bytes = (size_t)got;
    return SL_OK;
}

int sl_format_find(const char *path, const struct sl_format **format)
{
    char head[256];
    size_t bytes = 0;
    const int rc = read_head(path, head, sizeof head, &bytes);
    if (rc)
        return rc;
    for (*format = sl_formats; (*format)->name; (*format)++)
        if (has_extension(path, *format))
            return SL_OK;
    for (*format = sl_formats; (*format)->name; (*format)++)
        if ((*format)->sniff && (*format)->sniff(head, bytes))
            return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: unknown format; expected a dataset directory or a .npz, .mtx, .graph, "
                    ".txt or .csv file",
                    path);
}
