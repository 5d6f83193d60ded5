/* Find the files of relations/, in the order of their names:
 *
 *     relations/NAME.csv .tsv .txt .edges .edgelist   an edge list, plain or .gz
 *     relations/NAME.npy                              integers (edges, 2): source and target
 */
#include "data/formats/relation_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/log.h"
#include "core/sparse.h"
#include "data/block.h"
#include "data/formats/edge_lines.h"
#include "data/formats/text.h"

struct files {
    struct sl_relation_file *file; // (count)
    int64_t count, capacity;
    struct sl_block *blocks;
};

bool sl_relation_files_exist(const char *path)
{
    char folder[4096];
    struct stat info;
    const int length = snprintf(folder, sizeof folder, "%s/relations", path);
    return length < (int)sizeof folder && stat(folder, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Return the length of a file's name before its extension; 0: no file of edges has such a name. */
static size_t find_end(const char *name, bool *is_array)
{
    static const char *const extensions[] = {".csv", ".tsv", ".txt", ".edges", ".edgelist", ".npy"};
    enum { COUNT = sizeof extensions / sizeof *extensions };
    for (int e = 0; e < COUNT; e++) {
        const size_t end = strlen(extensions[e]);
        *is_array = e == COUNT - 1;
        const size_t length = *is_array ? strlen(name) : sl_text_plain_length(name);
        if (length > end && strncasecmp(name + length - end, extensions[e], end) == 0)
            return length - end;
    }
    return 0;
}

static int add(struct files *files, const char *path, const char *name)
{
    bool is_array;
    const size_t length = find_end(name, &is_array);
    if (length == 0)
        return sl_error(SL_ERR_DATA,
                        "%s/relations/%s: is no file of a relation, expected NAME.csv, .tsv, .txt, "
                        ".edges or .edgelist, or NAME.npy",
                        path, name);
    if (files->count == SL_RELATIONS)
        return sl_error(SL_ERR_DATA,
                        "%s/relations: has more than %d files, expected one for each "
                        "relation",
                        path, SL_RELATIONS);
    if (files->count == files->capacity) {
        const int64_t capacity = files->capacity ? 2 * files->capacity : 16;
        struct sl_relation_file *grown = reallocarray(files->file, (size_t)capacity, sizeof *grown);
        if (!grown)
            return sl_error(SL_ERR_SYSTEM, "out of memory for the relations of %s", path);
        files->file = grown;
        files->capacity = capacity;
    }
    struct sl_relation_file *const file = &files->file[files->count++];
    *file = (struct sl_relation_file){
        .name = sl_block_print(&files->blocks, "%.*s", (int)length, name),
        .path = sl_block_print(&files->blocks, "%s/relations/%s", path, name),
        .is_array = is_array};
    return file->name && file->path ? SL_OK : SL_ERR_SYSTEM;
}

static int compare_names(const void *a, const void *b)
{
    const struct sl_relation_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int find_files(const char *path, struct files *files)
{
    const char *folder = sl_block_print(&files->blocks, "%s/relations", path);
    DIR *dir = folder ? opendir(folder) : NULL;
    int rc = SL_OK;
    if (!dir)
        return sl_error(SL_ERR_DATA, "%s/relations: cannot open: %s", path, strerror(errno));
    for (const struct dirent *entry; !rc && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            rc = add(files, path, entry->d_name);
    closedir(dir);
    if (!rc && files->count == 0)
        rc = sl_error(SL_ERR_DATA,
                      "%s/relations: has no file, expected NAME.csv or NAME.npy for each relation",
                      path);
    if (!rc)
        qsort(files->file, (size_t)files->count, sizeof *files->file, compare_names);
    for (int64_t k = 0; !rc && k < files->count; k++) {
        files->file[k].relation = k;
        if (k > 0 && strcmp(files->file[k].name, files->file[k - 1].name) == 0)
            rc = sl_error(SL_ERR_DATA, "%s and %s: are both relation '%s', expected one file",
                          files->file[k - 1].path, files->file[k].path, files->file[k].name);
    }
    return rc;
}

/* ---- Their edges ---- */

/* Hold the edges of an array of numbers of vertices. */
static int hold_array(struct sl_edge_lines *r)
{
    struct sl_block *blocks = NULL;
    struct sl_npy npy;
    static const float one = 1.0f;
    const char *path = r->file->path;
    const int64_t least = r->map ? 0 : r->options->first_vertex,
                  most = r->map ? r->map->ids.count - 1 : INT64_MAX;
    int rc = r->options->edge_features
                 ? sl_error(SL_ERR_USAGE, "%s: is an array, expected no --edge-features", path)
                 : sl_npy_map(path, &blocks, &npy);
    if (!rc && (npy.dims != 2 || npy.shape[1] != 2 || (npy.kind != 'i' && npy.kind != 'u')))
        rc = sl_error(SL_ERR_DATA,
                      "%s: expected whole numbers of vertices, of shape (edges, 2): source and "
                      "target",
                      path);
    if (!rc && (r->layout.names || (r->map && r->map->renamed)))
        rc = sl_error(SL_ERR_DATA, "%s: has numbers, expected text: vertices are called by names",
                      path);
    for (int64_t k = 0; !rc && k < npy.shape[0]; k++) {
        const int64_t end[] = {sl_npy_integer(&npy, 2 * k), sl_npy_integer(&npy, 2 * k + 1)};
        for (int e = 0; !rc && e < 2; e++)
            if (end[e] < least || end[e] > most)
                rc = sl_error(SL_ERR_DATA, "%s: row %" PRId64 ": vertex %" PRId64 ", expected %s%s",
                              path, k, end[e], r->map ? "one of " : "",
                              r->map  ? r->map->path
                              : least ? "1 or more (--first-vertex)"
                                      : "0 or more");
        rc = rc ? rc : sl_edges_add(&r->edges, end[0], end[1], &one);
        if (!rc)
            sl_edge_lines_relate(r, r->file->relation);
    }
    sl_block_free_all(&blocks);
    return rc;
}

/* Hold the edges of a text file of one relation, behind the edges of the relations before. */
static int hold_text(struct sl_edge_lines *r, bool names)
{
    struct sl_csv csv;
    const int64_t first = r->edges.count;
    int rc = sl_csv_open(&csv, r->file->path);
    csv.comments = "#%";
    if (!rc)
        rc = sl_edge_layout_find(&csv, r->options, r->map, &r->layout);
    r->layout.names = (r->layout.names || names) && !r->map;
    r->layout.konect = false;
    r->layout.first_vertex = r->options->first_vertex;
    if (r->edges.columns < r->layout.features + 1)
        r->edges.columns = r->layout.features + 1;
    r->weighted = r->weighted || r->layout.weight >= 0;
    if (!rc)
        rc = r->layout.names && !names && first > 0 ? (int)SL_EDGES_AGAIN
                                                    : sl_edge_lines_parse(&csv, r);
    if (!rc && sl_edge_lines_is_edge(r)) {
        r->edges.count = first;
        r->layout.header = false;
        r->layout.source = 0;
        r->layout.target = 1;
        rc = sl_edge_lines_parse_again(&csv, r, SL_EDGES_HOLD);
    }
    if (!rc) {
        sl_edge_layout_note(r->file->path, &r->layout, r->map != NULL);
        sl_edge_lines_note_columns(r->file->path, r, first);
    }
    sl_csv_close(&csv);
    return rc;
}

/* Hold the edges of all files; begin anew where a file turns out to have names of vertices. */
static int hold_files(const struct sl_relation_file *file, int64_t count, struct sl_edge_lines *r)
{
    bool names = false;
    for (int64_t f = 0; f < count;) {
        sl_edge_layout_free(&r->layout);
        r->file = &file[f++];
        r->layout.names = names;
        const int rc = r->file->is_array ? hold_array(r) : hold_text(r, names);
        names = names || r->layout.names || rc == SL_EDGES_AGAIN;
        if (rc < 0)
            return rc;
        if (rc == SL_EDGES_AGAIN) {
            f = r->edges.count = 0;
            sl_string_ids_free(&r->names);
        }
    }
    r->layout.names = names;
    return SL_OK;
}

static int read_files(const char *path, const struct sl_relation_file *file, int64_t count,
                      const struct sl_read_options *options, const struct sl_vertex_map *map,
                      struct sl_dataset *out)
{
    struct sl_edge_lines r = {.options = options, .map = map, .edges = {.columns = 1}};
    int rc = hold_files(file, count, &r);
    if (!r.weighted) {
        free(r.edges.weights);
        r.edges.weights = NULL;
    }
    r.edges.relations = count;
    r.layout.first_vertex = options->first_vertex;
    if (!rc)
        rc = sl_edge_lines_build(path, &r, out);
    sl_edge_lines_free(&r);
    return rc;
}

/* ---- The relations ---- */

static void note_names(const char *path, const struct files *files)
{
    char text[512] = "";
    for (int64_t k = 0; k < files->count && strlen(text) < sizeof text - 100; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.40s", k ? ", " : "",
                 files->file[k].name);
    sl_note("%s: relations are %s, in this order", path, text);
}

int sl_relation_files_read(const char *path, const struct sl_read_options *options,
                           const struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct files files = {.count = 0};
    int rc =
        options->edge_types
            ? sl_error(SL_ERR_USAGE,
                       "%s: each file of relations/ is a relation, expected no --edge-types", path)
            : find_files(path, &files);
    if (!rc)
        rc = read_files(path, files.file, files.count, options, map, out);
    if (!rc)
        note_names(path, &files);
    free(files.file);
    sl_block_free_all(&files.blocks);
    return rc;
}
