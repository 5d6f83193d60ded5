/* A stored dataset, and reading some of its rows. Each of P ranks reads its part. Rank 0 alone
 * needs memory for the whole graph, while it finds an order or parts. The files of a directory
 * (docs/DATASETS.md) are mapped, so that a rank touches its own rows alone. A file of another
 * format is read whole by every rank first. */
#ifndef SL_DATA_SOURCE_H
#define SL_DATA_SOURCE_H

#include "core/runtime.h"
#include "core/split.h"
#include "data/dataset.h"
#include "data/formats/npy.h"
#include "data/labels.h"
#include "data/split_rule.h"

/* Where an array is absent, its `data` is NULL. */
struct sl_stored_csr {
    struct sl_npy indptr, indices, values; /* values absent: all 1 */
    const int64_t *start; // (rows): where each row begins in `indices` and `values`; NULL: at
                          // indptr. Either way, their `count` is the number of entries in the rows
    int64_t cols;
};

/* How far the columns of dense features are apart. A column's scale is the root of the mean square
 * of its numbers that are not 0. */
struct sl_column_scales {
    int64_t least, most; /* columns */
    double scale[2];     /* theirs; 0: there is no number but 0 */
    bool half_full;      /* a column has numbers that are not 0 in half of its rows */
};

/* What dense features are standardised by (data/columns.h). */
struct sl_moments {
    const double *mean, *deviation; // (f), not 0; NULL: features stay as they are
};

struct sl_source {
    char *name, *path;                   /* as of struct sl_dataset, like the next ones */
    int64_t vertices, features, classes; /* the same on every rank */
    enum sl_feature_form feature_form;
    bool bag_of_words, bag_of_words_said; /* said: by the files */
    bool table;                           /* as of struct sl_dataset */
    bool undirected;                      /* so it is said, and so it must be */
    bool symmetric;                       /* so it is known to be: nobody looks again */
    bool of_edges;        /* rows were made of a file's edges, which a directory has made already */
    int64_t merged_edges; /* when the file was read, before sl_source_read */
    struct sl_stored_csr adjacency, features_csr;
    struct sl_npy features_dense;   // (n, f); of the form CSR, too (data/feature_form.h)
    struct sl_column_scales scales; /* of a sample of features that lie dense */
    struct sl_moments moments;      /* of dense features */
    struct sl_npy labels;           // (n), or (n, c)
    enum sl_label_kind label_kind;  /* as far as it is said, until sizes are settled */
    const char *const *class_names, *const *feature_names; // as of struct sl_dataset
    struct sl_label_classes label_classes;                 /* what the labels say */
    struct sl_whole_numbers whole_numbers;                 /* as of struct sl_dataset */
    struct sl_npy split[SL_SPLITS];                        /* SL_SPLIT_TRAIN to SL_SPLIT_TEST */
    bool mask[SL_SPLITS];            /* whether that has an item for each vertex, not zero for those
                                        of the split; of two dimensions the first column counts */
    struct sl_split_rule split_rule; /* the caller's; given: `split` is not read */
    struct sl_npy original;          // (n)
    struct sl_npy vertex_ids;        // (n)
    const int32_t *vertex; // (n): row r of the order is row vertex[r] of the files; NULL: r
    const int32_t *place;  // (n): the inverse
    const int32_t *second_vertex, *second_place; // (n): those of a second order; NULL: there is one
    const int64_t *part_cut; // (parts + 1): rows part_cut[p] … are part p; NULL: there are no parts
    int parts;
    int edge_parts;           /* of edges, that are known, on all ranks; 0: none are */
    const int32_t *edge_part; // (entries) of these, on rank 0 alone
    /* Of a selection (data/select.h), by row of the files: */
    int64_t whole; /* vertices of the whole graph, which `original` numbers; 0: the
                      source is whole */
    int64_t inner; /* vertices that were chosen, the first rows of the files; the others, on which
                      they depend, count elsewhere */
    const int32_t *row_entries; // (n): the length of the row in the whole graph; NULL: as here
    const double *row_weight;   // (n): the sum of that row; NULL: all weights are 1
    const int32_t *feature_row; // (n): the row of features_dense; NULL: the same
    int hops;                   /* with: */
    const int64_t *hop_cut; // (hops + 2): rows hop_cut[h] … hop_cut[h + 1] - 1 are h hops away from
                            // the chosen vertices; NULL: all layers need all rows
    const struct sl_source *aggregated_from; /* the assembly makes rows of Â·X from this graph,
                                                with: NULL: from these rows */
    const int32_t *aggregated_row;           // (n): the row of the files of that graph
    struct sl_block *blocks;
};

/* Rows first … first + data.adjacency.rows - 1 of a dataset. */
struct sl_part {
    struct sl_dataset data; /* arrays of these rows alone; columns, vertices in splits and all sizes
                               are those of the whole. Arrays may lie in the source, and `name` and
                               `path` do */
    int64_t first;
    int64_t dense_first, dense_rows; /* the rows whose dense features are here */
    int64_t entries;                 /* of the adjacency, in all parts */
    int64_t bytes_read;              /* of the source's arrays, by this rank */
};

/* Return the dense features of a row of the dataset; NULL: the part has none. */
static inline const float *sl_part_dense(const struct sl_part *part, int64_t row)
{
    const struct sl_dataset *data = &part->data;
    return data->features_dense ? data->features_dense + (row - part->dense_first) * data->features
                                : NULL;
}

/* Open a dataset in any known format. Collective, like all functions with a runtime. They return
 * the same code on all ranks; the first rank that found an error has its sentence. sl_source_close
 * in either case. */
int sl_source_open(struct sl_runtime *rt, const char *path, struct sl_source *out);
int sl_source_open_with(struct sl_runtime *rt, const char *path,
                        const struct sl_read_options *options, struct sl_source *out);

/* Give an edge that is there k times the weight k, where the adjacency has no weights: it is read,
 * checked and copied then. Each rank calls it by itself. SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_source_count_duplicates(struct sl_source *source);

/* Return the entries of sparse features, an entry for each vertex where the features are the
 * vertex; 0: dense ones. */
int64_t sl_source_feature_entries(const struct sl_source *source);

/* The source that a dataset in memory is; it stays the caller's and must outlive the source. */
int sl_source_of(const struct sl_dataset *data, struct sl_source *out);

/* Find sizes that only the arrays tell, and the kind of labels; check them. sl_source_open and
 * sl_source_of do so. Collective. SL_ERR_DATA names the array. */
int sl_source_settle(struct sl_runtime *rt, struct sl_source *source);

/* Take labels that are whole numbers for classes; others stay. Collective. SL_ERR_DATA. */
int sl_source_take_classes(struct sl_runtime *rt, struct sl_source *source);

/* Take classes that are numbers, one for each vertex, for numbers to predict; other labels stay.
 * Collective. SL_ERR_SYSTEM. */
int sl_source_take_numbers(struct sl_runtime *rt, struct sl_source *source);

/* Make a source of the arrays of `whole`, which stays as it is and must outlive *out.
 * SL_ERR_SYSTEM; sl_source_close in either case. */
int sl_source_borrow(const struct sl_source *whole, struct sl_source *out);

/* The same on all ranks, of a source that each of them has, with sl_source_check_alike. */
int sl_source_borrow_alike(struct sl_runtime *rt, const struct sl_source *whole,
                           struct sl_source *out);

/* Return 0 where all ranks have the same dataset, else SL_ERR_DATA on all ranks, with a sentence
 * that names rank, host and array. Read no array where the ranks map the same files; read arrays in
 * memory and copies of files whole, but of large ones pieces (sl_alike_hash). Collective. */
int sl_source_check_alike(struct sl_runtime *rt, const struct sl_source *source);

/* Gives the rows another order (a name of data/order/order.h). Rank 0 computes it, for most orders
 * from the whole adjacency, and the others get the permutation. Hops are forgotten. SL_ERR_USAGE:
 * no such order. */
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

/* Gives the rows the order that they have now, but part by part. SL_ERR_SYSTEM. */
int sl_source_order_by_parts(struct sl_source *source, int parts, const int32_t *part);

/* How many hops away from the chosen vertices row r of the order is; 0 where no hops are known. */
int sl_source_hop(const struct sl_source *source, int64_t r);

/* Deal rows to parts of about equally many entries, hop by hop, so that each part has its share of
 * every hop, in the order that there is. SL_ERR_SYSTEM. */
int sl_source_order_by_hop_shares(struct sl_source *source, int parts);

/* The source with its rows in order number 0, the first, or 1. It borrows from `source`, and is not
 * to be closed. */
struct sl_source sl_source_in_order(const struct sl_source *source, int order);

/* The source with its rows as the files have them. It borrows from `source`, and is not to be
 * closed. */
struct sl_source sl_source_as_stored(const struct sl_source *source);

/* Return how many vertices a split has. Before splits are drawn, return the number that the rule
 * asks for, as if all vertices had labels. */
int64_t sl_source_split_size(const struct sl_source *source, enum sl_split split);

/* The row of the files that row r is. */
int64_t sl_source_vertex(const struct sl_source *source, int64_t r);

/* The place of row v of the files in the order. */
static inline int64_t sl_source_place(const struct sl_source *source, int64_t v)
{
    return source->place ? source->place[v] : v;
}

/* The number of row v of the files in the original order of the whole graph. */
int64_t sl_source_number(const struct sl_source *source, int64_t v);

/* The row of features_dense that row r is. */
int64_t sl_source_feature_row(const struct sl_source *source, int64_t r);

/* Entries of the adjacency and of sparse features in the rows of the files before v. */
int64_t sl_source_entries_before(const struct sl_source *source, int64_t v);

/* Draw the splits, where the source has a rule for them, once and for all: `split` has them
 * afterwards. Every rank calls it by itself; all draw the same. SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_source_settle_splits(struct sl_source *source);

/* Reads `rows` rows from `first` on and checks them: everything that docs/DATASETS.md demands holds
 * afterwards. The rows of all ranks together must be those of the dataset, in the order of the
 * ranks. SL_ERR_DATA names file and position. sl_part_close in either case. */
int sl_source_read(struct sl_runtime *rt, const struct sl_source *source, int64_t first,
                   int64_t rows, struct sl_part *out);

/* The same for the adjacency alone. */
int sl_source_read_adjacency(struct sl_runtime *rt, const struct sl_source *source, int64_t first,
                             int64_t rows, struct sl_part *out);

/* Read all rows by this rank alone, as sl_source_read does. Of dense features, read only
 * `dense_rows` rows from `dense_first` on. */
int sl_source_read_all(const struct sl_source *source, int64_t dense_first, int64_t dense_rows,
                       struct sl_part *out);

void sl_part_close(struct sl_part *part);

/* Unmaps and frees the arrays, and gives freed memory back to the system; sizes, name and path
 * stay. */
void sl_source_release(struct sl_source *source);
void sl_source_close(struct sl_source *source);

#endif
