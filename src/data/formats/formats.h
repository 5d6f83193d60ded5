/* The seam of file formats. */
#ifndef SL_DATA_FORMATS_H
#define SL_DATA_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "data/dataset.h"

/* A reader finds *out empty but for `name` and `path`. It fills in the graph, with sorted rows in
 * every CSR matrix: the edge u -> v of a file, or the entry (u, v), is in row v. It fills in the
 * file's other arrays, and `symmetric` where the file claims so; `classes` 0 means unknown.
 * Afterwards sl_source_read checks what needs no knowledge of the file: finite features, labels in
 * range, disjoint splits, symmetry. A reader that fails leaves its work so far in *out; the caller
 * closes *out. */
struct sl_format {
    const char *name;
    const char *extensions; /* separated by blanks; ".gz" may follow where `text`; "": folders */
    bool text;
    bool edges;  /* takes --weights and --first-vertex */
    bool labels; /* takes --label-separator, --label, --categorical and --empty-cells */
    bool (*sniff)(const char *head, size_t bytes); /* recognizes first bytes; NULL: names tell */
    bool (*is_folder)(const char *path); /* recognizes a folder by its files; NULL: a file */
    int (*read)(const char *path, const struct sl_read_options *options, struct sl_dataset *out);
    int (*write)(const struct sl_dataset *data, const char *path); /* NULL: there is no writer */
};

/* Write a file of a format, whole or not at all. Row u of the adjacency has the targets of the
 * edges u -> v here. A note names what the format cannot hold and leaves out. SL_ERR_SYSTEM;
 * SL_ERR_DATA: the format cannot hold the graph. */
int sl_npz_write(const struct sl_dataset *data, const char *path);
int sl_matrix_market_write(const struct sl_dataset *data, const char *path);
int sl_metis_graph_write(const struct sl_dataset *data, const char *path);
int sl_edge_list_write(const struct sl_dataset *data, const char *path);

/* The formats of files and folders: one entry and one file <id>.c with sl_format_<id> each. Names
 * decide before first bytes, and earlier entries before later ones. */
#define SL_FORMATS(ENTRY) \
    ENTRY(npz)            \
    ENTRY(matlab)         \
    ENTRY(matrix_market)  \
    ENTRY(metis_graph)    \
    ENTRY(edge_list) ENTRY(ogb) ENTRY(ogb_typed) ENTRY(ogb_binary) ENTRY(graphsaint) ENTRY(tables)

#define SL_FORMAT_DECLARED(id) extern const struct sl_format sl_format_##id;
SL_FORMATS(SL_FORMAT_DECLARED)
#undef SL_FORMAT_DECLARED

/* Find the format of a file by its name, else by its first bytes (which gzip may hide).
 * SL_ERR_DATA: unreadable, or no known format; SL_ERR_USAGE: the format has no such options. */
int sl_format_find(const char *path, const struct sl_read_options *options,
                   const struct sl_format **format);

/* Find the format of a folder by its files. Set *format to NULL for the directory layout and for
 * unknown folders. SL_ERR_USAGE: the format has no such options. */
int sl_format_find_folder(const char *path, const struct sl_read_options *options,
                          const struct sl_format **format);

/* Return whether a folder has the directory layout: its meta.json. */
bool sl_is_directory_layout(const char *path);

/* Return whether sl_dataset_write_as writes a folder of that name, and not a file. */
bool sl_is_folder_target(const char *path);

/* Set *file to the path of the folder's only file whose name marks a dataset; the path is on the
 * list of blocks. Set *file to NULL where the folder itself is a dataset, or has no such file, or
 * several. SL_ERR_SYSTEM. */
int sl_format_find_only_file(const char *path, struct sl_block **blocks, const char **file);

/* Return SL_ERR_DATA: the folder is no dataset. The error lists the folder's files, and the files
 * that a dataset has. */
int sl_format_refuse_folder(const char *path);

/* Open the directory layout: map its files, and check their shapes and meta.json. Options are for
 * files of relations. The caller has set `name` and `path` of *out. */
struct sl_source;
int sl_open_directory(const char *path, const struct sl_read_options *options,
                      struct sl_source *out);

/* Check the rules for every dataset, and settle what readers leave open: number of classes,
 * symmetry, the order of splits, weights that are all 1. */
int sl_dataset_validate(struct sl_dataset *data);

#endif
