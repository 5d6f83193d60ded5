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

static int find(const char *path, const struct sl_format **format)
{
    char head[256];
    size_t bytes = 0;
    const int rc = read_head(path, head, sizeof head, &bytes);
    if (rc)
        return rc;
    for (int f = 0; f < FORMATS; f++)
        if (has_extension(path, *format = formats[f]))
            return SL_OK;
    for (int f = 0; f < FORMATS; f++)
        if ((*format = formats[f])->sniff && (*format)->sniff(head, bytes))
            return SL_OK;
    return refuse(path);
}

int sl_read_options_check(const char *path, const struct sl_read_options *options)
{
    if (options->weights == SL_WEIGHTS_AUTO && options->first_vertex == 0)
        return SL_OK;
    return sl_error(SL_ERR_USAGE, "%s: is no edge list (expected no %s)", path,
                    options->first_vertex ? "--first-vertex" : "--weights");
}

int sl_format_find(const char *path, const struct sl_read_options *options,
                   const struct sl_format **format)
{
    const int rc = find(path, format);
    return rc || (*format)->edges ? rc : sl_read_options_check(path, options);
}

bool sl_is_directory_layout(const char *path)
{
    char file[4096];
    const int length = snprintf(file, sizeof file, "%s/meta.json", path);
    return length < (int)sizeof file && access(file, F_OK) == 0;
}

int sl_format_find_folder(const char *path, const struct sl_read_options *options,
                          const struct sl_format **format)
{
    *format = NULL;
    for (int f = 0; f < FORMATS && !*format && !sl_is_directory_layout(path); f++)
        if (formats[f]->is_folder && formats[f]->is_folder(path))
            *format = formats[f];
    return *format && (*format)->edges ? SL_OK : sl_read_options_check(path, options);
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
