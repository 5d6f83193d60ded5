#include "data/formats/formats.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "data/block.h"
#include "data/csr.h"
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
    gzFile file;
    const int rc = sl_text_open_file(path, &file);
    if (rc)
        return rc;
    const int got = gzread(file, head, (unsigned)size);
    gzclose(file);
    if (got < 0)
        return sl_error(SL_ERR_DATA, "%s: cannot read its first bytes", path);
    *bytes = (size_t)got;
    return SL_OK;
}

/* Refuse a file of unknown format; name the first extension of each known format. */
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

/* Refuse a file of another program's format; say what reads it. */
static int refuse_foreign(const char *path, const struct sl_format *named, const char *head,
                          size_t bytes)
{
    const bool open = !named || named == &sl_format_edge_list; /* the file may be any text */
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

/* Return SL_ERR_USAGE where options were given that the format lacks; `format` NULL: the directory
 * layout. */
static int check_options(const char *path, const struct sl_format *format,
                         const struct sl_read_options *options)
{
    const bool edges = format && format->edges, labels = format && format->labels;
    const char *listed = options->first_vertex                 ? "first-vertex"
                         : options->weights != SL_WEIGHTS_AUTO ? "weights"
                         : options->edge_features              ? "edge-features"
                         : options->edge_types                 ? "edge-types"
                                                               : NULL;
    if (!edges && listed)
        return sl_error(SL_ERR_USAGE, "%s: is no edge list (expected no --%s)", path, listed);
    const char *tables = options->label_separator ? "label-separator"
                         : options->label         ? "label"
                         : options->categorical   ? "categorical"
                         : options->empty_means   ? "empty-cells"
                                                  : NULL;
    if (!labels && tables)
        return sl_error(SL_ERR_USAGE, "%s: is no folder of tables (expected no --%s)", path,
                        tables);
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

/* ---- Folders that are none ---- */

/* Return whether a file of that name may be a dataset, or part of another program's. */
static bool may_be_dataset(const char *name)
{
    const bool about = strncasecmp(name, "readme", 6) == 0 || strncasecmp(name, "license", 7) == 0;
    return *name != '.' && !about &&
           (find_by_name(name) || sl_foreign_by_name(name) ||
            strncmp(name, "out.", 4) == 0); /* KONECT's files */
}

static bool is_folder_format(const char *path)
{
    for (int f = 0; f < FORMATS; f++)
        if (formats[f]->is_folder && formats[f]->is_folder(path))
            return true;
    return has_file(path, "meta.json") || has_file(path, "indptr.npy");
}

int sl_format_find_only_file(const char *path, struct sl_block **blocks, const char **file)
{
    *file = NULL;
    DIR *dir = is_folder_format(path) ? NULL : opendir(path);
    int rc = SL_OK, count = 0;
    for (const struct dirent *entry; dir && !rc && (entry = readdir(dir));)
        if (may_be_dataset(entry->d_name) && count++ == 0) {
            *file = sl_block_print(blocks, "%s/%s", path, entry->d_name);
            rc = *file ? SL_OK : (int)SL_ERR_SYSTEM;
        }
    if (dir)
        closedir(dir);
    *file = count == 1 ? *file : NULL;
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

int sl_format_refuse_folder(const char *path)
{
    enum { MOST = 5, NAME = 40 };
    char names[64][NAME], list[MOST * (NAME + 4) + 16] = "";
    int count = 0;
    if (has_file(path, "indptr.npy"))
        return sl_error(SL_ERR_DATA,
                        "%s: has indptr.npy but no meta.json, expected one (\"{}\" is enough; "
                        "docs/DATASETS.md)",
                        path);
    DIR *dir = opendir(path);
    if (!dir)
        return sl_error(SL_ERR_DATA, "%s: cannot open: %s", path, strerror(errno));
    for (const struct dirent *entry; count < 64 && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            snprintf(names[count++], NAME, "%.39s", entry->d_name);
    closedir(dir);
    qsort(names, (size_t)count, NAME, compare_names);
    for (int k = 0; k < count && k < MOST; k++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%.39s", k ? ", " : "",
                 names[k]);
    return sl_error(SL_ERR_DATA,
                    "%s: is no dataset: it has %s%s; expected meta.json with indptr.npy and "
                    "indices.npy, edges.csv with nodes.csv, relations/ of edges, raw/ of OGB, "
                    "adj_full.npz of GraphSAINT, or one file of a graph",
                    path, count ? list : "no files", count > MOST ? ", …" : "");
}

/* Write a file from the transpose: files have a row for the source of an edge, datasets for its
 * target. */
static int write_file(const struct sl_format *format, const struct sl_dataset *data,
                      const char *path)
{
    struct sl_block *scratch = NULL;
    struct sl_dataset turned = *data;
    int rc = SL_OK;
    if (data->edge)
        sl_note("%s: edge features are left out, expected a folder as target, which keeps them",
                path);
    if (sl_links_given(&data->links))
        sl_note("%s: links of validation and test are left out, expected a folder as target, which "
                "keeps them",
                path);
    if (!data->symmetric)
        rc = sl_csr_transpose(&data->adjacency, &scratch, &turned.adjacency);
    if (!rc)
        rc = format->write(&turned, path);
    sl_block_free_all(&scratch);
    return rc;
}

/* Return the format of a file to be written; NULL: a folder is written. */
static const struct sl_format *find_target(const char *path)
{
    struct stat info;
    const bool directory = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    for (int f = 0; f < FORMATS && !directory; f++)
        if (formats[f]->write && has_extension(path, formats[f]))
            return formats[f];
    return NULL;
}

bool sl_is_folder_target(const char *path)
{
    return !find_target(path);
}

static int write_as(const struct sl_dataset *data, const char *path)
{
    const struct sl_format *format = find_target(path);
    if (!format)
        return sl_dataset_write(data, path);
    return ends_with(path, strlen(path), ".gz", 3)
               ? sl_error(SL_ERR_USAGE, "%s: compressed files are not written", path)
               : write_file(format, data, path);
}

int sl_dataset_write_as(const struct sl_dataset *data, const char *path)
{
    sl_progress_begin("writing %s", path);
    return sl_progress_end_with(write_as(data, path));
}
