/* A stored dataset, of which each rank reads some rows. Only rank 0 needs memory for the whole
 * graph, while it finds an order or parts. The files of a directory (docs/DATASETS.md) are mapped,
 * so that a rank touches its own rows alone. A file of another format is read whole by every rank
 * first. */
#ifndef SL_DATA_SOURCE_H
#define SL_DATA_SOURCE_H

#include "core/runtime.h"
#include "core/sparse.h"
#include "core/split.h"
#include "data/dataset.h"
#include "data/formats/npy.h"
#include "data/labels.h"
#include "data/links.h"
#include "data/split_rule.h"

/* A CSR matrix as stored arrays. An absent array has `data` NULL. */
struct sl_stored_csr {
    struct sl_npy indptr, indices, values; /* values absent: all 1 */
    struct sl_npy edges; // (entries): rows of the edge features; absent: entry e has row e
    /* (rows): first entry of each row in `indices` and `values`; NULL: indptr. In both cases their
     * `count` is the number of entries in the rows. */
    const int64_t *start;
    int64_t cols;
};

/* The least and the largest scale of the columns of dense features. A column's scale is the root of
 * the mean square of its numbers that are not 0. */
struct sl_column_scales {
    int64_t least, most; /* numbers of the columns with the least and the largest scale */
    double scale[2];     /* scales of these columns; 0: no number differs from 0 */
    bool half_full;      /* in some column, at least half of the numbers are not 0 */
};

/* Labels, and the classes or numbers behind them. */
struct sl_targets {
    struct sl_npy labels;           // (n), or (n, c)
    enum sl_label_kind label_kind;  /* kind as far as the files tell, until sizes are settled */
    const char *const *class_names; // see struct sl_dataset
    struct sl_label_classes label_classes; /* classes behind the labels */
    struct sl_whole_numbers whole_numbers; /* see struct sl_dataset */
};

/* The splits of the vertices, in the files or by a rule. */
struct sl_source_splits {
    struct sl_npy split[SL_SPLITS]; /* SL_SPLIT_TRAIN to SL_SPLIT_TEST */
    bool mask[SL_SPLITS]; /* the split is a mask: an item for each vertex, not zero for vertices of
                             the split. A mask of two dimensions counts by its first column */
    struct sl_split_rule split_rule; /* the caller's rule; if given, `split` is not read */
};

/* The order of the vertices, and the parts of the graph. */
struct sl_source_order {
    struct sl_npy original; // (n)
    const int32_t *vertex;  // (n): row r of the order is row vertex[r] of the files; NULL: r
    const int32_t *place;   // (n): inverse of `vertex`
    const int32_t *second_vertex, *second_place; // (n): a second order and its inverse; NULL: none
    const int64_t *part_cut; // (parts + 1): rows part_cut[p] … are part p; NULL: there are no parts
    int parts;
    int edge_parts;           /* number of parts of edges; 0: edges have no parts */
    const int32_t *edge_part; // (entries): part of each entry, on rank 0 alone
};

/* A selection (data/select.h), by row of the files. */
struct sl_source_selection {
    int64_t whole; /* vertices of the whole graph (`order.original`); 0: the source is whole */
    int64_t inner; /* chosen vertices, the first rows of the files; other vertices are inputs */
    const int32_t *row_entries; // (n): entries of the row in the whole graph; NULL: as here
    const double *row_weight;   // (n): sum of the row's weights in the whole graph; NULL: all are 1
    const int32_t *feature_row; // (n): the row of features_dense; NULL: the same
    int hops;                   /* last hop of hop_cut */
    const int64_t *hop_cut; // (hops + 2): rows hop_cut[h] … hop_cut[h + 1] - 1 are h hops away from
                            // the chosen vertices; NULL: all layers need all rows
    const struct sl_source *aggregated_from; /* graph whose rows make Â·X; NULL: this source */
    const int32_t *aggregated_row;           // (n): row of the files of aggregated_from
};

/* Mean and deviation that standardise dense features (data/columns.h). */
struct sl_moments {
    const double *mean, *deviation; // (f), not 0; NULL: features stay as they are
};

/* The divisor of each row of features. */
enum sl_row_norm {
    SL_ROW_NORM_NONE,
    SL_ROW_NORM_L1,
    SL_ROW_NORM_L2,
};

/* A random matrix that rows of features are multiplied by, after their norm (data/projection.h). */
struct sl_projection {
    int64_t columns;     /* columns of the stored features; 0: features stay as they are */
    const float *matrix; // (columns, f)
    enum sl_row_norm norm;
};

/* The columns of edge_features that are read with an adjacency's entries. */
enum sl_edge_reading {
    SL_READS_NO_EDGES,
    SL_READS_EDGE_ROWS,     /* all columns of edge_features */
    SL_READS_EDGE_FEATURES, /* without the relation */
    SL_READS_RELATIONS,     /* the relation alone, as codelets/relations.h wants it */
};

/* Relations of edges (data/relations.h): the last column of edge_features. */
struct sl_source_relations {
    int64_t count;        /* 0: edges have no relations */
    struct sl_npy indptr; /* row pointers of the files whose entries edge_features has */
    /* Rows with more than `long_row` entries, ascending, and their entries of each relation. */
    int64_t long_row, long_rows;
    const int64_t *row;    // (long_rows)
    const int32_t *counts; // (long_rows, count)
};

/* Features change as they are read: rows are standardised, or projected. */
struct sl_source_change {
    struct sl_column_scales scales; /* scales of a sample of features that are stored dense */
    struct sl_moments moments;      /* moments of dense features */
    struct sl_projection projection;
};

/* A dataset whose files are open. */
struct sl_source {
    char *name, *path;                   /* see struct sl_dataset */
    int64_t vertices, features, classes; /* see struct sl_dataset; equal on every rank */
    enum sl_feature_form feature_form;
    bool undirected;      /* the files claim an undirected graph; reading checks it */
    bool symmetric;       /* the adjacency is known to be symmetric; reading does not check it */
    bool of_edges;        /* the reader made rows of edges; the rows of a directory are stored */
    int64_t merged_edges; /* duplicate edges merged when the file was read, before sl_source_read */
    struct sl_stored_csr adjacency, features_csr;
    struct sl_npy edge_features; // (entries of the files, k); absent: entries have no features
    struct sl_source_relations relations;
    enum sl_edge_reading reads_edges;
    struct sl_npy features_dense; // (n, f); also for the form CSR (data/feature_form.h)
    struct sl_feature_columns columns;
    struct sl_source_change change;
    struct sl_targets targets;
    struct sl_source_splits splits;
    struct sl_source_links links; /* links of validation and test (data/links.h) */
    struct sl_source_order order;
    struct sl_source_selection selection;
    struct sl_npy vertex_ids; // (n)
    struct sl_block *blocks;
};

/* Rows first … first + data.adjacency.rows - 1 of a dataset. */
struct sl_part {
    /* Arrays have only the part's rows; columns, vertices in splits and all sizes are the whole
     * dataset's. Arrays may lie in the source; `name` and `path` do. */
    struct sl_dataset data;
    int64_t first;
    int64_t dense_first, dense_rows; /* rows whose dense features are in the part */
    int64_t entries;                 /* entries of the adjacency, in all parts */
    int64_t bytes_read;              /* bytes of the source's arrays that this rank has read */
};

/* Return the dense features of a row of the dataset; NULL: the part has none. */
static inline const float *sl_part_dense(const struct sl_part *part, int64_t row)
{
    const struct sl_dataset *data = &part->data;
    return data->features_dense ? data->features_dense + (row - part->dense_first) * data->features
                                : NULL;
}

/* Return how many features edges have, without their relation. */
static inline int64_t sl_source_edge_features(const struct sl_source *source)
{
    return source->edge_features.data
               ? source->edge_features.shape[1] - (source->relations.count > 0)
               : 0;
}

/* Return how many float32 numbers a tile has for an entry, instead of a value. */
static inline int64_t sl_source_edge_numbers(const struct sl_source *source)
{
    switch (source->reads_edges) {
    case SL_READS_EDGE_ROWS:
        return source->edge_features.shape[1];
    case SL_READS_EDGE_FEATURES:
        return sl_source_edge_features(source);
    case SL_READS_RELATIONS:
        return SL_RELATION_FEATURES;
    default:
        return 0;
    }
}

/* Return how many float32 numbers an entry of the adjacency has: its features, or a value unless
 * all are 1. */
static inline int64_t sl_part_numbers(const struct sl_part *part)
{
    const struct sl_csr *a = &part->data.adjacency;
    return a->edges ? part->data.edge_features : a->values != NULL;
}

/* Open a dataset in any known format. Call sl_source_close in either case. Collective, like all
 * functions with a runtime. They return the same code on all ranks; the first rank that found an
 * error has its sentence. */
int sl_source_open(struct sl_runtime *rt, const char *path, struct sl_source *out);
int sl_source_open_with(struct sl_runtime *rt, const char *path,
                        const struct sl_read_options *options, struct sl_source *out);

/* Give an edge that appears k times the weight k, where the adjacency has no weights and no
 * relations: read, check and copy the adjacency then. Each rank calls it by itself. SL_ERR_DATA,
 * SL_ERR_SYSTEM. */
int sl_source_count_duplicates(struct sl_source *source);

/* Return the entries of sparse features. Identity features have one entry for each vertex, dense
 * features 0. */
int64_t sl_source_feature_entries(const struct sl_source *source);

/* Take the vertices and the adjacency of a dataset in memory, which must outlive the source.
 * SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_source_take_graph(struct sl_source *source, const struct sl_dataset *data);

/* Make a source of a dataset in memory, which stays the caller's and must outlive the source. */
int sl_source_of(const struct sl_dataset *data, struct sl_source *out);

/* Find sizes that only the arrays tell, and the kind of labels; check them. sl_source_open and
 * sl_source_of call this. Collective. SL_ERR_DATA names the array. */
int sl_source_settle(struct sl_runtime *rt, struct sl_source *source);

/* Turn labels that are whole numbers into classes; leave other labels. Collective. SL_ERR_DATA. */
int sl_source_take_classes(struct sl_runtime *rt, struct sl_source *source);

/* Turn classes that are numbers, one for each vertex, into numbers to predict; leave other labels.
 * Collective. SL_ERR_SYSTEM. */
int sl_source_take_numbers(struct sl_runtime *rt, struct sl_source *source);

/* Make a source of the arrays of `whole`, which stays as it is and must outlive *out.
 * SL_ERR_SYSTEM. Call sl_source_close in either case. */
int sl_source_borrow(const struct sl_source *whole, struct sl_source *out);

/* Borrow a source that each rank has; sl_source_check_alike compares the ranks' sources.
 * Collective. */
int sl_source_borrow_alike(struct sl_runtime *rt, const struct sl_source *whole,
                           struct sl_source *out);

/* Return 0 where all ranks have the same dataset, else SL_ERR_DATA on all ranks, with a sentence
 * that names rank, host and array. Ranks that map the same files read no array. Other ranks read
 * arrays in memory and copies of files, but only pieces of large ones (sl_alike_hash). Collective.
 */
int sl_source_check_alike(struct sl_runtime *rt, const struct sl_source *source);

/* Return the hashes of the dataset's arrays and facts, {"labels": "0123456789abcdef", …}, equal for
 * equal datasets. Large arrays are sampled (sl_alike_hash). NULL without memory. */
struct json_t *sl_source_hashes(const struct sl_source *source);

/* Give the rows another order (a name of data/order/order.h). Rank 0 computes it, for most orders
 * from the whole adjacency, and the others get the permutation. Hops are forgotten. Collective.
 * SL_ERR_USAGE: no such order. */
int sl_source_order(struct sl_runtime *rt, struct sl_source *source, const char *order,
                    uint64_t seed);

/* Give the rows of the adjacency one random order and its columns another, so that its tiles are
 * equally full (Plexus, SC'25: double permutation). */
int sl_source_order_double(struct sl_runtime *rt, struct sl_source *source, uint64_t seed);

/* Set part[v] (n) on all ranks: the part, 0 … parts - 1, of row v of the files. Take the parts from
 * `file`, a .npy of integers. Where `file` is NULL, rank 0 partitions the whole adjacency (METIS,
 * k-way) into parts of equally many entries. Where rank 0 has no room for METIS, or `file` is
 * "ptscotch", all ranks do so together (partition/parallel_parts.h). Parts may be empty.
 * SL_ERR_DATA names file and position. */
int sl_source_find_parts(struct sl_runtime *rt, const struct sl_source *source, int parts,
                         uint64_t seed, const char *file, int32_t *part);

/* Group the rows by part, and keep their present order within each part. SL_ERR_SYSTEM. */
int sl_source_order_by_parts(struct sl_source *source, int parts, const int32_t *part);

/* Return how many hops row r of the order is away from the chosen vertices; 0 where no hops are
 * known. */
int sl_source_hop(const struct sl_source *source, int64_t r);

/* Deal rows, in the present order, to parts of about equally many entries, hop by hop: each part
 * has its share of every hop. SL_ERR_SYSTEM. */
int sl_source_order_by_hop_shares(struct sl_source *source, int parts);

/* Return the source with its rows in the first order (0) or the second (1). It borrows from
 * `source`; do not close it. */
struct sl_source sl_source_in_order(const struct sl_source *source, int order);

/* Return the source with its rows as the files have them. It borrows from `source`; do not close
 * it. */
struct sl_source sl_source_as_stored(const struct sl_source *source);

/* Return the number of vertices in a split. Before splits are drawn, return the number that the
 * rule asks for, as if all vertices had labels. */
int64_t sl_source_split_size(const struct sl_source *source, enum sl_split split);

/* Return the row of the files that row r of the order is. */
int64_t sl_source_vertex(const struct sl_source *source, int64_t r);

/* Return the place of row v of the files in the order. */
static inline int64_t sl_source_place(const struct sl_source *source, int64_t v)
{
    return source->order.place ? source->order.place[v] : v;
}

/* Return the number of row v of the files in the original order of the whole graph. */
int64_t sl_source_number(const struct sl_source *source, int64_t v);

/* Return the row of features_dense that row r of the order has. */
int64_t sl_source_feature_row(const struct sl_source *source, int64_t r);

/* Return the entries of the adjacency and of sparse features in the rows of the files before v. */
int64_t sl_source_entries_before(const struct sl_source *source, int64_t v);

/* Draw the splits once, where the source has a rule for them, and store them in `split`. Every rank
 * calls it by itself; all draw the same. SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_source_settle_splits(struct sl_source *source);

/* Read `rows` rows from `first` on and check all that docs/DATASETS.md demands. The rows of all
 * ranks together must be those of the dataset, in the order of the ranks. Collective. SL_ERR_DATA
 * names file and position. Call sl_part_close in either case. */
int sl_source_read(struct sl_runtime *rt, const struct sl_source *source, int64_t first,
                   int64_t rows, struct sl_part *out);

/* Read and check the adjacency alone, as sl_source_read does. Collective. */
int sl_source_read_adjacency(struct sl_runtime *rt, const struct sl_source *source, int64_t first,
                             int64_t rows, struct sl_part *out);

/* Read all rows by this rank alone, as sl_source_read does, but only `dense_rows` rows of dense
 * features from `dense_first` on. */
int sl_source_read_all(const struct sl_source *source, int64_t dense_first, int64_t dense_rows,
                       struct sl_part *out);

void sl_part_close(struct sl_part *part);

/* Unmap and free the arrays, and give free memory to the system; sizes, name and path stay. */
void sl_source_release(struct sl_source *source);
void sl_source_close(struct sl_source *source);

#endif
