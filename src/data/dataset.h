/* A graph with features, labels and splits in host memory. Readers of all formats make a dataset,
 * and training reads it. */
#ifndef SL_DATA_DATASET_H
#define SL_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "core/names.h"
#include "core/split.h"
#include "data/formats/npy.h"
#include "data/labels.h"
#include "data/links.h"
#include "data/split_rule.h"

/* A CSR matrix; row r has entries indptr[r] … indptr[r+1]-1, columns ascending, each
 * once, or once for each relation of edges (data/relations.h). */
struct sl_csr {
    int64_t rows, cols;
    const int64_t *indptr;  // (rows + 1)
    const int32_t *indices; // (indptr[rows])
    const float *values;    // (indptr[rows]), or NULL: all 1
    const int32_t *edges;   // (indptr[rows]): rows of the edge features; NULL: they are not read
};

struct sl_index_set {
    const int64_t *ids; // (count), ascending, unique
    int64_t count;
};

enum sl_feature_form {
    SL_FEATURES_IDENTITY, /* no stored features: the input is the n x n identity */
    SL_FEATURES_DENSE,
    SL_FEATURES_CSR,
};

/* The columns of features. */
struct sl_feature_columns {
    const char *const *names; // (f), then NULL; or NULL: columns have numbers
    bool bag_of_words;        /* raw word counts: rows are L1-normalised by default */
    bool said;                /* the files say whether features are a bag of words */
    bool table;               /* features are columns of a table: dense, and no words */
};

/* The meaning of labels. */
struct sl_label_meaning {
    const char *const *class_names;        // (c), then NULL; or NULL: classes have numbers
    struct sl_whole_numbers whole_numbers; /* counts of whole numbers in `multilabels` */
    bool regression;                       /* `multilabels` are numbers to predict, NaN: unknown */
};

struct sl_dataset {
    char *name;
    char *path;       /* path that the dataset was read from */
    int64_t vertices; /* n */
    int64_t features; /* f: columns of the input (n for identity) */
    int64_t classes;  /* c; 0: no labels */
    struct sl_csr
        adjacency;         /* n x n; row v lists the vertices that v aggregates from; no +I added */
    bool symmetric;        /* adjacency equals its transpose, values and edge features included */
    int64_t edge_features; /* features of each entry of the adjacency; 0: none */
    int64_t relations;     /* relations of edges: the last feature is the number of the entry's
                              relation, and a row may list a column once for each relation
                              (data/relations.h); 0: edges are of one kind */
    const float *edge;     // (entries, edge_features); NULL: none
    enum sl_feature_form feature_form;
    const float *features_dense; // (n, f), when DENSE
    struct sl_csr features_csr;  // (n, f), when CSR
    struct sl_feature_columns columns;
    const int32_t *labels;    // (n), -1: no label; NULL without labels or with several per vertex
    const float *multilabels; // (n, c) of 0/1, NaN: unknown; or NULL
    struct sl_label_meaning meaning;
    struct sl_index_set train, val, test; /* disjoint */
    struct sl_source_links links;         /* links of validation and test, in rows of this dataset,
                                             which the adjacency does not have */
    const int64_t *original;              // (n): number of row r before any reordering; NULL: r
    struct sl_npy vertex_ids;             // (n), integers or text: the vertices' names outside;
                                          // data NULL: their numbers
    int64_t merged_edges;                 /* duplicate edges that were merged when reading */
    struct sl_block *blocks;              /* owns the arrays above: heap or mapped files */
};

/* The column of weights in an edge list. */
#define SL_WEIGHT_COLUMNS(ENTRY)                                                              \
    ENTRY(SL_WEIGHTS_AUTO, "auto") /* the header's weight, else the third of three columns */ \
    ENTRY(SL_WEIGHTS_NONE, "none") /* columns after the second are ignored */                 \
    ENTRY(SL_WEIGHTS_THIRD, "3")
enum sl_weight_column { SL_WEIGHT_COLUMNS(SL_CHOICE_CONSTANT) };

/* How to make edges undirected: the weight of an edge that goes both ways. */
#define SL_SYMMETRIES(ENTRY)        \
    ENTRY(SL_SYMMETRIZE_MAX, "max") \
    ENTRY(SL_SYMMETRIZE_SUM, "sum") ENTRY(SL_SYMMETRIZE_MEAN, "mean")
enum sl_symmetrize {
    SL_DIRECTED, /* edges stay as they are */
    SL_SYMMETRIES(SL_CHOICE_CONSTANT)
};

/* Options of reading; all zero is the default. */
struct sl_read_options {
    enum sl_symmetrize symmetrize; /* give every edge its reverse, unless the graph is undirected */
    bool reverse;                  /* turn all edges round */
    bool tell; /* say in notes how much memory reading needs, where it is much, and which columns
                  became features */
    struct sl_split_rule split; /* rule that draws splits in place of stored splits */
    bool count_duplicates;      /* give an edge without weights that appears k times the weight k */
    /* Options of edge lists; other formats refuse them with SL_ERR_USAGE. */
    enum sl_weight_column weights;
    int64_t first_vertex;      /* number of the first vertex in the file: 0 or 1 */
    const char *edge_features; /* names of columns, between commas, that become features of edges;
                                  NULL: none */
    const char *edge_types;    /* name of the column of edges' relations; NULL: none */
    /* Options of folders of tables. */
    char label_separator; /* separator of several labels of a vertex; 0: a vertex has one label */
    const char *label;    /* name of the column of labels; NULL: found by usual names */
    const char *categorical; /* names of columns, between commas; each of their values becomes a
                                feature of 0 and 1; NULL: none */
    bool empty_means;   /* an empty number becomes the mean of its column; else it is an error */
    int64_t large_file; /* bytes from which on a file's edges are not held in memory; 0: 64 MiB */
};

/* Read a dataset in any known format: a directory in the layout of docs/DATASETS.md, or a file.
 * Files are known by their names (.npz, .mtx, .graph/.mgraph/.metis,
 * .txt/.csv/.tsv/.edgelist/.edges and their .gz), or else by their first bytes. Every array is
 * validated. Duplicate edges are merged (their weights summed; an unweighted edge stays 1, unless
 * duplicates are to be counted) and their number is kept. On error return SL_ERR_DATA with file,
 * position and expectation; *out is then empty. */
int sl_dataset_open(const char *path, struct sl_dataset *out);

/* Open a dataset as sl_dataset_open does, with options; NULL: the defaults. */
int sl_dataset_open_with(const char *path, const struct sl_read_options *options,
                         struct sl_dataset *out);

/* Read a whole source, whose arrays stay its own and must outlive *out. SL_ERR_DATA, SL_ERR_SYSTEM;
 * *out is then empty. */
struct sl_source;
int sl_dataset_of(const struct sl_source *source, struct sl_dataset *out);

/* Give the vertices another order (a name of data/order/order.h), equal for equal graph and seed.
 * Replace all arrays; `original` keeps the old number of each row. SL_ERR_USAGE: no such order. On
 * any error *data stays as it was. */
int sl_dataset_reorder(struct sl_dataset *data, const char *order, uint64_t seed);

/* Move edges out of the adjacency that become links of validation and test (sl_links_split). On any
 * error *data stays as it was. */
int sl_dataset_split_links(struct sl_dataset *data, const struct sl_link_rule *rule);

/* Set the `name` and `path` of a dataset that is made, not read. */
int sl_dataset_name(struct sl_dataset *data, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Free or unmap everything; safe on an empty struct. */
void sl_dataset_close(struct sl_dataset *data);

/* Write the directory layout into a temporary sibling directory, sync it, and rename it to `dir`
 * when it is complete. `dir` must not exist or must be empty (SL_ERR_USAGE else). */
int sl_dataset_write(const struct sl_dataset *data, const char *dir);

/* Write the format that the end of `path` names (.npz, .mtx, .graph, .txt, …), else the directory
 * layout. */
int sl_dataset_write_as(const struct sl_dataset *data, const char *path);

#endif
