#include "data/formats/formats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "core/error.h"
#include "core/progress.h"
#include "data/formats/foreign.h"
#include "data/formats/text.h"

#define ADDRESS(id) &sl_format_##id,
static const struct sl_format *const formats[] = {SL_FORMATS(ADDRESS)};
#undef ADDRESS
enum { FORMATS = sizeof formats / sizeof *formats };

static bool ends_with(const char *text, size_t length, const char *end, size_t end_length)
{
    return length > end_length && strncasecmp(text + length - end_length, end, end_length) == 0;
}

static bool has_extension(const char *path, const struct sl_format *format)
{
    const size_t length = format->text ? sl_text_plain_length(path) : strlen(path);
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

/* Name the first extension of each format of files. */
static int refuse(const char *path)
{
    char list[256] = "";
    int last = FORMATS - 1;
    while (formats[last]->is_folder)
        last--;
    for (int f = 0; f <= last; f++) {
        const char *const all = formats[f]->extensions;
        const size_t used = strlen(list);
        if (!formats[f]->is_folder)
            snprintf(list + used, sizeof list - used, "%s%.*s",
                     f == 0      ? ""
                     : f == last ? " or "
                                 : ", ",
                     (int)strcspn(all, " "), all);
    }
    return sl_error(SL_ERR_DATA, "%s: unknown format; expected a dataset directory or a %s file",
                    path, list);
}

static const struct sl_format *find_by_name(const char *path)
{
    for (int f = 0; f < FORMATS; f++)
        if (has_extension(path, formats[f]))
            return formats[f];
    return NULL;
}

/* What a file is says why it is not read, and what reads it. */
static int refuse_foreign(const char *path, const struct sl_format *named, const char *head,
                          size_t bytes)
{
    const bool open = !named || named == &sl_format_edge_list; /* to anything that is text */
    const char *sentence = sl_text_objection(head, bytes);
    if (!sentence && !named)
        sentence = sl_foreign_by_name(path);
    if (!sentence && open)
        sentence = sl_foreign_by_head(head, bytes);
    return sentence ? sl_error(SL_ERR_DATA, "%s: %s", path, sentence) : SL_OK;
}

static int find(const char *path, const struct sl_format **format)
{
    char head[1024];
    size_t bytes = 0;
    int rc = read_head(path, head, sizeof head - 1, &bytes);
    if (rc)
        return rc;
    head[bytes] = '\0';
    *format = find_by_name(path);
    rc = refuse_foreign(path, *format, head, bytes);
    for (int f = 0; f < FORMATS && !rc && !*format; f++)
        if (formats[f]->sniff && formats[f]->sniff(head, bytes))
            *format = formats[f];
    return rc || *format ? rc : refuse(path);
}

/* SL_ERR_USAGE where options were given that the format has not; NULL: the directory layout. */
static int check_options(const char *path, const struct sl_format *format,
                         const struct sl_read_options *options)
{
    const bool edges = format && format->edges;
    if (!edges && (options->weights != SL_WEIGHTS_AUTO || options->first_vertex != 0))
        return sl_error(SL_ERR_USAGE, "%s: is no edge list (expected no %s)", path,
                        options->first_vertex ? "--first-vertex" : "--weights");
    return SL_OK;
}

int sl_format_find(const char *path, const struct sl_read_options *options,
                   const struct sl_format **format)
{
    const int rc = find(path, format);
    return rc ? rc : check_options(path, *format, options);
}

static bool has_file(const char *path, const char *name)
{
    char file[4096];
    const int length = snprintf(file, sizeof file, "%s/%s", path, name);
    return length < (int)sizeof file && access(file, F_OK) == 0;
}

bool sl_is_directory_layout(const char *path)
{
    return has_file(path, "meta.json");
}

int sl_format_find_folder(const char *path, const struct sl_read_options *options,
                          const struct sl_format **format)
{
    *format = NULL;
    for (int f = 0; f < FORMATS && !*format && !sl_is_directory_layout(path); f++)
        if (formats[f]->is_folder && formats[f]->is_folder(path))
            *format = formats[f];
    return check_options(path, *format, options);
}

static int write_as(const struct sl_dataset *data, const char *path)
{
    struct stat info;
    const bool directory = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    for (int f = 0; f < FORMATS && !directory; f++)
        if (formats[f]->write && has_extension(path, formats[f]))
            return ends_with(path, strlen(path), ".gz", 3)
                       ? sl_error(SL_ERR_USAGE, "%s: compressed files are not written", path)
                       : formats[f]->write(data, path);
    return sl_dataset_write(data, path);
}

int sl_dataset_write_as(const struct sl_dataset *data, const char *path)
{
    sl_progress_begin("writing %s", path);
    return sl_progress_end_with(write_as(data, path));
}
