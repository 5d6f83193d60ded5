#include "data/dataset.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/formats.h"

/* "data/cora.csv.gz" and "data/cora/" are called "cora". */
static char *name_of(const char *path, bool directory)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    char *name = strndup(path + start, end - start);
    if (!name || directory)
        return name;
    const size_t length = strlen(name);
    if (length > 3 && strcasecmp(name + length - 3, ".gz") == 0)
        name[length - 3] = '\0';
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    return name;
}

static int read_any(const char *path, struct sl_dataset *out)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return sl_error(SL_ERR_DATA, "%s: cannot open: %s", path, strerror(errno));
    const bool directory = S_ISDIR(info.st_mode);
    out->path = strdup(path);
    out->name = name_of(path, directory);
    if (!out->path || !out->name)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory", path);
    if (directory)
        return sl_read_directory(path, out);
    if (!S_ISREG(info.st_mode))
        return sl_error(SL_ERR_DATA, "%s: is neither a file nor a directory", path);
    const struct sl_format *format;
    const int rc = sl_format_find(path, &format);
    return rc ? rc : format->read(path, out);
}

int sl_dataset_open_with(const char *path, const struct sl_read_options *options,
                         struct sl_dataset *out)
{
    *out = (struct sl_dataset){0};
    int rc = read_any(path, out);
    if (!rc && options && options->symmetrize)
        rc = sl_csr_symmetrize(&out->adjacency, &out->blocks);
    if (!rc)
        rc = sl_dataset_validate(out);
    if (rc) {
        sl_dataset_close(out);
        return sl_error_about(rc, path); /* memory runs out in places that know no file */
    }
    return SL_OK;
}

int sl_dataset_open(const char *path, struct sl_dataset *out)
{
    return sl_dataset_open_with(path, NULL, out);
}

int sl_dataset_name(struct sl_dataset *data, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vasprintf(&data->name, format, args) < 0)
        data->name = NULL; /* undefined then */
    va_end(args);
    data->path = data->name ? strdup(data->name) : NULL;
    return data->path ? SL_OK : sl_error(SL_ERR_SYSTEM, "out of memory for the name of a dataset");
}

void sl_dataset_close(struct sl_dataset *data)
{
    free(data->name);
    free(data->path);
    sl_block_free_all(&data->blocks);
    *data = (struct sl_dataset){0};
}
