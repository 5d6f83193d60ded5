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
    if (!folder)
        return SL_ERR_SYSTEM;
    DIR *dir = opendir(folder);
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

/* Refuse edges of KONECT's that count from 1 where vertices count from 0. */
static int check_konect(const struct sl_edge_lines *r)
{
    if (!r->layout.konect || (r->map ? r->map->renamed : r->options->first_vertex == 1))
        return SL_OK;
    return sl_error(SL_ERR_DATA, "%s: line 1 says that vertices count from 1 (KONECT), expected %s",
                    r->file->path,
                    r->map ? "numbers from 0, and no such line" : "--first-vertex 1");
}

/* Hold the edges of the text file whose layout is found. Lines with sizes and labels are those of
 * an edge list by itself. */
static int hold_lines(struct sl_csv *csv, struct sl_edge_lines *r)
{
    const int64_t first = r->edges.count;
    const bool numbers = !r->map && !r->layout.names;
    const int rc = sl_edge_lines_parse(csv, r);
    struct sl_edges own = {.count = r->edges.count - first};
    if (rc || !numbers || own.count == 0)
        return rc;
    own.ends = r->edges.ends + 2 * first;
    own.weights = r->layout.weight >= 0 ? r->edges.weights + first : NULL;
    const int64_t stated = sl_edge_lines_drop_size(r->file->path, &r->layout, &own);
    r->stated = stated > r->stated ? stated : r->stated;
    r->edges.count = first + own.count;
    return sl_edges_check(r->file->path, &own, 0);
}

/* Hold the edges of a text file of one relation, behind the edges of the relations before. */
static int hold_text(struct sl_edge_lines *r, bool names)
{
    struct sl_csv csv;
    int rc = sl_csv_open(&csv, r->file->path);
    csv.comments = "#%";
    if (!rc)
        rc = sl_edge_layout_find(&csv, r->options, r->map, &r->layout);
    if (!rc)
        rc = check_konect(r);
    if (r->file->no_header) {
        r->layout.header = false;
        r->layout.source = 0;
        r->layout.target = 1;
    }
    const bool header_alone = r->layout.words_alone && !names && !r->map;
    const bool named = r->layout.names && !header_alone;
    r->layout.names = (named || names) && !r->map;
    r->layout.first_vertex = r->options->first_vertex;
    if (r->edges.columns < r->layout.features + 1)
        r->edges.columns = r->layout.features + 1;
    if (!rc && !header_alone) {
        r->weighted = r->weighted || r->layout.weight >= 0;
        rc = r->layout.names && !names ? (int)SL_EDGES_AGAIN : hold_lines(&csv, r);
    }
    sl_csv_close(&csv);
    return rc;
}

/* Hold the edges of all files. Return SL_EDGES_AGAIN where one has names of vertices, unless they
 * are expected. */
static int hold_files(struct files *files, bool names, struct sl_edge_lines *r)
{
    int rc = SL_OK;
    r->edges.count = r->stated = 0;
    r->weighted = false;
    sl_string_ids_free(&r->names);
    for (int64_t f = 0; !rc && f < files->count; f++) {
        struct sl_relation_file *const file = &files->file[f];
        sl_edge_layout_free(&file->layout);
        r->file = file;
        r->layout = (struct sl_edge_layout){.names = names};
        file->first = r->edges.count;
        rc = file->is_array ? hold_array(r) : hold_text(r, names);
        file->end = r->edges.count;
        file->layout = r->layout;
    }
    r->layout = (struct sl_edge_layout){.names = names, .first_vertex = r->options->first_vertex};
    return rc;
}

/* Find headers that are edges, by the names in all files. Return whether there is another one. */
static bool find_edges(struct files *files, const struct sl_string_ids *names)
{
    bool found = false;
    for (int64_t f = 0; f < files->count; f++)
        if (sl_edge_lines_is_edge(&files->file[f].layout, names))
            found = files->file[f].no_header = true;
    return found;
}

/* Hold the edges of all files; begin anew where vertices turn out to be names. */
static int hold_again(struct files *files, struct sl_edge_lines *r)
{
    bool alone = false;
    int rc = hold_files(files, false, r);
    for (int64_t f = 0; f < files->count; f++)
        alone = alone || files->file[f].layout.words_alone;
    if (rc == SL_EDGES_AGAIN || (rc == SL_OK && !r->map && alone && r->edges.count == 0))
        do
            rc = hold_files(files, true, r);
        while (rc == SL_OK && find_edges(files, &r->names));
    return rc;
}

static void note_layouts(struct files *files, struct sl_edge_lines *r)
{
    const struct sl_edge_layout all = r->layout;
    for (int64_t f = 0; f < files->count; f++) {
        struct sl_relation_file *const file = &files->file[f];
        if (file->no_header)
            sl_edge_lines_take_header(file->path, &file->layout);
        r->layout = file->layout;
        r->layout.header = r->layout.header || (r->layout.words_alone && !all.names && !r->map);
        sl_edge_layout_note(file->path, &r->layout, r->map != NULL);
        sl_edge_lines_note_columns(file->path, r, file->first, file->end);
    }
    r->layout = all;
}

static int read_files(const char *path, struct files *files, const struct sl_read_options *options,
                      const struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct sl_edge_lines r = {.options = options, .map = map, .edges = {.columns = 1}};
    int rc = hold_again(files, &r);
    if (!r.weighted) {
        free(r.edges.weights);
        r.edges.weights = NULL;
    }
    r.edges.relations = files->count;
    if (!rc) {
        note_layouts(files, &r);
        rc = sl_edge_lines_build(path, &r, out);
    }
    for (int64_t f = 0; f < files->count; f++)
        sl_edge_layout_free(&files->file[f].layout);
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
        rc = read_files(path, &files, options, map, out);
    if (!rc)
        note_names(path, &files);
    free(files.file);
    sl_block_free_all(&files.blocks);
    return rc;
}
