/* Read folders of an edge list and tables of its vertices. The names of files tell their roles:
 *
 *   edges, net, … .csv .tsv .txt   an edge list; or relations/ (relation_files.h)
 *   nodes, target .csv .tsv        a table with a header (node_table.h)
 *   labels .csv .tsv .txt          a vertex and its class in a line
 *   features .txt .svm             "VERTEX INDEX:VALUE …" in a line (feature_lines.h)
 *   train, val, test .csv .txt     a vertex in a line
 *
 * A longer name may end in such a word: facebook_edges.csv. The first of nodes, features and labels
 * in the folder has the vertices, in its order. Without nodes and labels, lines of features begin
 * with a label, not a vertex. */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
#include "data/block.h"
#include "data/formats/csv.h"
#include "data/formats/edge_layout.h"
#include "data/formats/edges.h"
#include "data/formats/feature_lines.h"
#include "data/formats/formats.h"
#include "data/formats/label_column.h"
#include "data/formats/node_table.h"
#include "data/formats/number_rows.h"
#include "data/formats/relation_files.h"

enum role { EDGES, NODES, LABELS, FEATURES, TRAIN, VAL, TEST, ROLES };

struct folder {
    char *file[ROLES]; /* paths, or NULL */
    enum role twice;   /* role of two files; ROLES: none */
    struct sl_block *blocks;
};

/* ---- Which file is what ---- */

static bool ends_in(const char *name, size_t length, const char *word)
{
    const size_t end = strlen(word);
    return length >= end && strncasecmp(name + length - end, word, end) == 0 &&
           (length == end || name[length - end - 1] == '_' || name[length - end - 1] == '-');
}

static enum role role_of(const char *name)
{
    static const char *const extensions[] = {".csv",   ".tsv", ".txt",    ".edgelist",
                                             ".edges", ".svm", ".libsvm", NULL};
    static const char *const words[ROLES][6] = {
        {"edges", "edge", "edgelist", "net", NULL},
        {"nodes", "node", "vertices", "vertex", "target", NULL},
        {"labels", "label", NULL},
        {"features", "feature", "feats", NULL},
        {"train", NULL},
        {"val", "valid", "validation", NULL},
        {"test", NULL}};
    size_t length = sl_text_plain_length(name);
    const char *const *extension = extensions;
    while (*extension &&
           (length <= strlen(*extension) ||
            strncasecmp(name + length - strlen(*extension), *extension, strlen(*extension)) != 0))
        extension++;
    if (!*extension || *name == '.')
        return ROLES;
    length -= strlen(*extension);
    for (int role = 0; role < ROLES; role++)
        for (const char *const *word = words[role]; *word; word++)
            if (ends_in(name, length, *word))
                return (enum role)role;
    return ROLES;
}

/* Find the role of each file. SL_ERR_SYSTEM: out of memory. */
static int scan(const char *path, struct folder *folder)
{
    DIR *dir = opendir(path);
    int rc = SL_OK;
    folder->twice = ROLES;
    for (struct dirent *entry; dir && !rc && (entry = readdir(dir));) {
        const enum role role = role_of(entry->d_name);
        if (role == ROLES)
            continue;
        folder->twice = folder->file[role] ? role : folder->twice;
        folder->file[role] = sl_block_print(&folder->blocks, "%s/%s", path, entry->d_name);
        rc = folder->file[role] ? SL_OK : SL_ERR_SYSTEM;
    }
    if (dir)
        closedir(dir);
    return rc;
}

/* ---- Labels ---- */

static int read_label(const struct sl_csv *csv, bool own, struct sl_vertex_map *map,
                      struct sl_label_column *labels)
{
    if (csv->fields != 2)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " has %" PRId64 " columns, expected 2: a vertex and "
                        "its class",
                        csv->text.path, csv->line, csv->fields);
    int64_t vertex = map->ids.count;
    int rc = own ? sl_vertex_map_add(map, csv->field[0], csv->line) : SL_OK;
    if (!own) {
        vertex = sl_vertex_map_get(map, csv->field[0], csv->text.path, csv->line);
        rc = vertex < 0 ? (int)vertex : SL_OK;
    }
    if (!rc)
        rc = sl_label_column_set(labels, vertex, csv->field[1]);
    return rc <= 0 ? rc
                   : sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": vertex '%.40s' is there twice",
                              csv->text.path, csv->line, csv->field[0]);
}

/* Set *header to whether the first line names columns, not a known vertex. Such a line has a word
 * for labels or vertices, or a number below its first word. Leave `csv` at its start. */
static int find_header(struct sl_csv *csv, bool own, const struct sl_vertex_map *map, bool *header)
{
    *header = false;
    int got = sl_csv_next(csv);
    if (got <= 0 || csv->fields != 2 || (!own && sl_vertex_map_find(map, csv->field[0]) >= 0))
        return got < 0 ? got : sl_csv_rewind(csv);
    const int64_t line = csv->line;
    const bool word = sl_edge_layout_is_name(csv->field[0]);
    *header =
        sl_node_table_is_id_word(csv->field[0]) || (word && sl_edges_is_label_word(csv->field[1]));
    got = sl_csv_next(csv);
    int64_t unused;
    if (got > 0 && !*header && word && csv->fields == 2 &&
        sl_text_to_int64(csv->field[0], &unused)) {
        *header = true;
        sl_note("%s: line %" PRId64 " is taken for a header", csv->text.path, line);
    }
    return got < 0 ? got : sl_csv_rewind(csv);
}

static int read_label_lines(struct sl_csv *csv, bool own, struct sl_vertex_map *map,
                            struct sl_label_column *labels)
{
    bool header, first = true;
    int got = find_header(csv, own, map, &header);
    if (got < 0)
        return got;
    for (; (got = sl_csv_next(csv)) > 0; first = false) {
        const int rc = first && header ? SL_OK : read_label(csv, own, map, labels);
        if (rc)
            return rc;
    }
    if (got == 0 && first)
        return sl_error(SL_ERR_DATA, "%s: is empty, expected a vertex and its class in each line",
                        csv->text.path);
    return got;
}

static int read_labels(const char *path, const struct sl_read_options *options, bool own,
                       struct sl_vertex_map *map, struct sl_dataset *out)
{
    struct sl_csv csv;
    struct sl_label_column labels = {.separator = options->label_separator};
    if (own)
        map->path = path;
    int rc = sl_csv_open(&csv, path);
    if (!rc)
        rc = read_label_lines(&csv, own, map, &labels);
    if (!rc && own)
        rc = sl_vertex_map_keep(map, out);
    if (!rc)
        rc = sl_label_column_take(&labels, path, out);
    sl_csv_close(&csv);
    sl_label_column_free(&labels);
    return rc;
}

/* ---- Splits ---- */

static int read_split_lines(struct sl_csv *csv, const struct sl_vertex_map *map,
                            struct sl_split_lists *lists)
{
    int got;
    for (bool first = true; (got = sl_csv_next(csv)) > 0; first = false) {
        const char *path = csv->text.path, *word = csv->field[0];
        if (csv->fields > 1)
            return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " has more than a vertex", path,
                            csv->line);
        if (first && sl_vertex_map_find(map, word) < 0 && sl_edge_layout_is_name(word)) {
            sl_note("%s: line %" PRId64 " is taken for a header: '%.40s' is no vertex", path,
                    csv->line, word);
            continue;
        }
        const int64_t vertex = sl_vertex_map_get(map, word, path, csv->line);
        int rc = vertex < 0 ? (int)vertex : SL_OK;
        if (!rc)
            rc = sl_split_lists_add(lists, path, "line", csv->line, vertex);
        if (rc)
            return rc;
    }
    return got;
}

static int read_splits(const struct folder *folder, const struct sl_vertex_map *map,
                       struct sl_dataset *out)
{
    struct sl_index_set *const sets[] = {&out->train, &out->val, &out->test};
    struct sl_split_lists lists = {.vertices = out->vertices};
    int rc = sl_split_lists_open(&lists, &out->blocks);
    for (int k = 0; k < 3 && !rc; k++) {
        const char *stored = folder->file[TRAIN + k];
        struct sl_csv csv;
        const char *path = stored ? sl_block_print(&out->blocks, "%s", stored) : NULL;
        if (!stored)
            continue;
        if (path && sets[k]->ids)
            return sl_error(SL_ERR_DATA, "%s: the table of vertices has splits, too, expected one",
                            path);
        if (!path)
            return SL_ERR_SYSTEM;
        rc = sl_csv_open(&csv, path);
        csv.comments = "#";
        csv.delimiter = ','; /* names may contain blanks */
        if (!rc)
            rc = read_split_lines(&csv, map, &lists);
        sl_csv_close(&csv);
        if (!rc)
            rc = sl_split_lists_end(&lists, path, &out->blocks, sets[k]);
    }
    return rc;
}

/* ---- The folder ---- */

static int read_tables(const char *path, const struct folder *folder,
                       const struct sl_read_options *options, struct sl_vertex_map *map,
                       struct sl_dataset *out)
{
    char *const *file = folder->file;
    static const char *const names[ROLES] = {"edges", "vertices", "labels", "features",
                                             "train", "val",      "test"};
    if (folder->twice < ROLES)
        return sl_error(SL_ERR_DATA, "%s: has two files of %s (%s is one), expected one", path,
                        names[folder->twice], file[folder->twice]);
    const bool related = sl_relation_files_exist(path),
               named = file[NODES] || file[LABELS] || file[FEATURES];
    if (!file[EDGES] && !related)
        return sl_error(SL_ERR_DATA, "%s: has no edge list, expected a file edges.csv", path);
    if (file[EDGES] && related)
        return sl_error(SL_ERR_DATA, "%s: comes beside the folder relations, expected one of them",
                        file[EDGES]);
    for (int split = TRAIN; split < ROLES && !named; split++)
        if (file[split])
            return sl_error(SL_ERR_DATA,
                            "%s: comes without a list of the vertices, expected a file nodes.csv, "
                            "labels.csv or features.txt",
                            file[split]);
    if (!file[NODES] && (options->label || options->categorical || options->empty_means))
        return sl_error(SL_ERR_USAGE,
                        "%s: has no table of vertices, expected no --label, --categorical and "
                        "--empty-cells",
                        path);
    int rc = file[NODES] ? sl_node_table_read(file[NODES], options, map, out) : SL_OK;
    if (!rc && file[LABELS] && (out->labels || out->multilabels))
        rc = sl_error(SL_ERR_DATA, "%s: %s has labels, too, expected one", file[LABELS],
                      file[NODES]);
    if (!rc && file[FEATURES] && out->features_dense)
        rc = sl_error(SL_ERR_DATA, "%s: %s has features, too, expected one", file[FEATURES],
                      file[NODES]);
    if (!rc && file[FEATURES])
        rc = sl_feature_lines_read(file[FEATURES],
                                   file[NODES]    ? SL_LINE_VERTEX
                                   : file[LABELS] ? SL_LINE_NEW
                                                  : SL_LINE_LABEL,
                                   map, out);
    if (!rc && file[LABELS])
        rc = read_labels(file[LABELS], options, !file[NODES] && !file[FEATURES], map, out);
    if (!rc)
        rc = read_splits(folder, map, out);
    if (!rc && related)
        return sl_relation_files_read(path, options, named ? map : NULL, out);
    return rc ? rc : sl_edge_list_read(file[EDGES], options, map, out);
}

static int read_folder(const char *path, const struct sl_read_options *options,
                       struct sl_dataset *out)
{
    struct folder folder = {.blocks = NULL};
    struct sl_vertex_map map = {.renamed = false};
    int rc = scan(path, &folder);
    if (!rc)
        rc = read_tables(path, &folder, options, &map, out);
    sl_string_ids_free(&map.ids);
    sl_block_move(&out->blocks, &folder.blocks); /* messages use these paths */
    return rc;
}

static bool is_tables(const char *path)
{
    struct folder folder = {.blocks = NULL};
    const bool read = scan(path, &folder) == SL_OK;
    const bool found =
        read && (sl_relation_files_exist(path) || folder.file[NODES] || folder.file[LABELS] ||
                 (folder.file[FEATURES] && folder.file[EDGES]));
    sl_block_free_all(&folder.blocks);
    return found;
}

const struct sl_format sl_format_tables = {
    .name = "folder of tables",
    .extensions = "",
    .edges = true,
    .labels = true,
    .is_folder = is_tables,
    .read = read_folder,
};
