/* The seam of file formats. */
#ifndef SL_DATA_FORMATS_H
#define SL_DATA_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "data/dataset.h"

/* A reader finds *out empty but for `name` and `path`. It fills in the graph (every CSR matrix in
 * order; the edge u -> v of a file, or its entry (u, v), in row v), what else the file has, and
 * `symmetric` where the file claims so; `classes` 0 means unknown. Afterwards sl_source_read checks
 * what needs no knowledge of the file: finite features, labels in range, disjoint splits, symmetry.
 * A reader that fails leaves its work so far in *out; the caller closes *out. */
struct sl_format {
    const char *name;
    const char *extensions; /* separated by blanks; ".gz" may follow where `text`; "": folders */
    bool text;
    bool edges;  /* takes --weights and --first-vertex */
    bool labels; /* takes --label-separator, --label, --categorical and --empty-cells */
    bool (*sniff)(const char *head, size_t bytes); /* by the first bytes; NULL: only by name */
    bool (*is_folder)(const char *path);           /* by the files in a folder; NULL: a file */
    int (*read)(const char *path, const struct sl_read_options *options, struct sl_dataset *out);
    int (*write)(const struct sl_dataset *data, const char *path); /* NULL: none */
};

/* The writers of formats: a file whole or not at all. Row u of the adjacency has the targets of the
 * edges u -> v here. A format with no place for something says in
 * a note that it is left out. SL_ERR_SYSTEM; SL_ERR_DATA: the format cannot have such a graph. */
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
    ENTRY(metis_graph) ENTRY(edge_list) ENTRY(ogb) ENTRY(ogb_binary) ENTRY(graphsaint) ENTRY(tables)

#define SL_FORMAT_DECLARED(id) extern const struct sl_format sl_format_##id;
SL_FORMATS(SL_FORMAT_DECLARED)
#undef SL_FORMAT_DECLARED

/* The format of a file by its name, else by its first bytes (which gzip may hide). SL_ERR_DATA:
 * unreadable, or no known format; SL_ERR_USAGE: the format has no such options. */
int sl_format_find(const char *path, const struct sl_read_options *options,
                   const struct sl_format **format);

/* The same for a folder; *format NULL: none of these, so the directory layout. */
int sl_format_find_folder(const char *path, const struct sl_read_options *options,
                          const struct sl_format **format);

/* Whether a folder has the directory layout: its meta.json. */
bool sl_is_directory_layout(const char *path);

/* Set *file to the path of the only file of a folder that its name makes a dataset; the path is on
 * the list of blocks. NULL: the folder itself is a dataset, or has no such file, or several.
 * SL_ERR_SYSTEM. */
int sl_format_find_only_file(const char *path, struct sl_block **blocks, const char **file);

/* Return SL_ERR_DATA: the folder is no dataset. The error lists the folder's files, and the files
 * that a dataset has. */
int sl_format_refuse_folder(const char *path);

/* Opens the directory layout: maps its files and checks their shapes and what meta.json says.
 * `name` and `path` of *out are set. */
struct sl_source;
int sl_open_directory(const char *path, struct sl_source *out);

/* Checks what every dataset must satisfy, and settles what readers leave open: number of classes,
 * symmetry, the order of splits, weights that are all 1. */
int sl_dataset_validate(struct sl_dataset *data);

#endif
