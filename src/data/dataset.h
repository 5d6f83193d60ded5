/* A graph with features, labels and splits in host memory: what every format is read into and what
 * training reads. */
#ifndef SL_DATA_DATASET_H
#define SL_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "core/names.h"
#include "core/split.h"
#include "data/formats/npy.h"
#include "data/labels.h"
#include "data/split_rule.h"

/* A CSR matrix; row r has entries indptr[r] … indptr[r+1]-1, columns ascending, no duplicates. */
struct sl_csr {
    int64_t rows, cols;
    const int64_t *indptr;  // (rows + 1)
    const int32_t *indices; // (indptr[rows])
    const float *values;    // (indptr[rows]), or NULL: all 1
};

struct sl_index_set {
    const int64_t *ids; // (count), ascending, unique
    int64_t count;
};

enum sl_feature_form {
    SL_FEATURES_IDENTITY, /* none stored: the input is the n x n identity */
    SL_FEATURES_DENSE,
    SL_FEATURES_CSR,
};

struct sl_dataset {
    char *name;
    char *path;       /* what it was read from */
    int64_t vertices; /* n */
    int64_t features; /* f: columns of the input (n for identity) */
    int64_t classes;  /* c; 0: no labels */
    struct sl_csr
        adjacency;  /* n x n; row v lists the vertices that v aggregates from; no +I added */
    bool symmetric; /* adjacency equals its transpose, values included */
    enum sl_feature_form feature_form;
    const float *features_dense; // (n, f), when DENSE
    struct sl_csr features_csr;  // (n, f), when CSR
    const int32_t *labels;       // (n), -1: none; NULL when there are none or several per vertex
    const float *multilabels;    // (n, c) of 0/1, NaN: not known; or NULL
    struct sl_whole_numbers whole_numbers; /* among `multilabels` */
    bool regression;                      /* `multilabels` are numbers to predict, NaN: not known */
    const char *const *class_names;       // (c), then NULL; or NULL: classes have numbers
    const char *const *feature_names;     // (f), then NULL; or NULL: columns have numbers
    struct sl_index_set train, val, test; /* disjoint */
    const int64_t *original;              // (n): the vertex that row r was before it was given
                                          // another order; NULL: r
    struct sl_npy vertex_ids;             // (n), integers or text: what a vertex is called where
                                          // the graph comes from; data NULL: its number
    bool bag_of_words;                    /* raw word counts: rows are L1-normalised by default */
    bool table;                           /* features are columns of a table: dense, and no words */
    int64_t merged_edges;                 /* duplicate edges that were merged when reading */
    struct sl_block *blocks;              /* what the arrays above live in: heap or mapped files */
};

/* Which column of an edge list has weights. */
#define SL_WEIGHT_COLUMNS(ENTRY)                                                                  \
    ENTRY(SL_WEIGHTS_AUTO, "auto") /* the header's weight, or the third, where there are three */ \
    ENTRY(SL_WEIGHTS_NONE, "none") /* columns after the second are ignored */                     \
    ENTRY(SL_WEIGHTS_THIRD, "3")
enum sl_weight_column { SL_WEIGHT_COLUMNS(SL_CHOICE_CONSTANT) };

/* Whether every edge gets its reverse, and the weight of an edge that goes both ways. */
#define SL_SYMMETRIES(ENTRY)        \
    ENTRY(SL_SYMMETRIZE_MAX, "max") \
    ENTRY(SL_SYMMETRIZE_SUM, "sum") ENTRY(SL_SYMMETRIZE_MEAN, "mean")
enum sl_symmetrize {
    SL_DIRECTED, /* edges stay as they are */
    SL_SYMMETRIES(SL_CHOICE_CONSTANT)
};

/* How to read; all zero is the default. */
struct sl_read_options {
    enum sl_symmetrize symmetrize; /* a graph that is undirected already stays as it is */
    bool reverse;                  /* turn all edges round */
    bool tell; /* say in notes what reading takes, before it does, where that is much, and which
                  columns became features */
    struct sl_split_rule split; /* what splits are drawn by, instead of those that are stored */
    bool count_duplicates;      /* an edge without weights that is there k times has the weight k */
    /* Of edge lists alone: SL_ERR_USAGE elsewhere. */
    enum sl_weight_column weights;
    int64_t first_vertex; /* the number of the first vertex in the file: 0 or 1 */
    /* Of folders of tables alone. */
    char label_separator;    /* between several labels of a vertex; 0: it has one */
    const char *label;       /* the column of labels; NULL: by its name */
    const char *categorical; /* columns, between commas, each of whose values becomes a feature of 0
                                and 1; NULL: none */
    bool empty_means;        /* an empty number is the mean of its column; else an error */
    int64_t large_file;      /* bytes of a file from which on its edges are not held; 0: 64 MiB */
};

/* Read a dataset in any known format: a directory in the layout of docs/DATASETS.md, or a file.
 * Files are known by their names (.npz, .mtx, .graph/.mgraph/.metis,
 * .txt/.csv/.tsv/.edgelist/.edges and their .gz), or else by their first bytes. Every array is
 * validated. Duplicate edges are merged (their weights summed; an unweighted edge stays 1, unless
 * duplicates are to be counted) and their number is kept. On error return SL_ERR_DATA with file,
 * position and expectation; *out is then empty. */
int sl_dataset_open(const char *path, struct sl_dataset *out);

/* The same with options; NULL: the defaults. */
int sl_dataset_open_with(const char *path, const struct sl_read_options *options,
                         struct sl_dataset *out);

/* Read a whole source, whose arrays stay its own and must outlive *out. SL_ERR_DATA, SL_ERR_SYSTEM;
 * *out is then empty. */
struct sl_source;
int sl_dataset_of(const struct sl_source *source, struct sl_dataset *out);

/* Gives the vertices another order (a name of data/order/order.h), the same one for the same graph
 * and seed: all arrays are replaced, and `original` keeps what each row was. SL_ERR_USAGE: no such
 * order. On any error *data stays as it was. */
int sl_dataset_reorder(struct sl_dataset *data, const char *order, uint64_t seed);

/* Names a dataset that is made, not read: its `name` and `path`. */
int sl_dataset_name(struct sl_dataset *data, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Frees or unmaps everything; safe on an empty struct. */
void sl_dataset_close(struct sl_dataset *data);

/* Writes the directory layout: into a temporary sibling directory that is fsynced and renamed to
 * `dir` only when complete. `dir` must not exist or must be empty (SL_ERR_USAGE else). */
int sl_dataset_write(const struct sl_dataset *data, const char *dir);

/* Writes the format that the end of `path` names (.npz, .mtx, .graph, .txt, …), else the directory
 * layout. */
int sl_dataset_write_as(const struct sl_dataset *data, const char *path);

#endif
