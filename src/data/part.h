/* Steps of sl_source_read, which reads a part of a dataset. */
#ifndef SL_DATA_PART_H
#define SL_DATA_PART_H

#include "data/source.h"

/* Set extent to the first entry of row v of the file and the end of the row, by its row pointers.
 * SL_ERR_DATA: they are not within the file. */
int sl_part_find_row(const struct sl_stored_csr *csr, int64_t v, int64_t extent[2]);

/* Read and check the splits of the part's own vertices. Collective. */
int sl_part_read_splits(struct sl_runtime *rt, const struct sl_source *source,
                        struct sl_part *part);

/* Draw the splits of the part by the source's rule, from the part's labels and original numbers.
 * Collective. */
int sl_part_draw_splits(struct sl_runtime *rt, const struct sl_source *source,
                        struct sl_part *part);

/* Read only labels and original numbers of all rows, in the order of the files. Call sl_part_close
 * in either case. */
int sl_part_read_labels(const struct sl_source *source, struct sl_part *out);

/* Return the row of the edge features that entry e of the files has. */
static inline int64_t sl_part_edge(const struct sl_stored_csr *csr, int64_t e)
{
    return csr->edges.data ? ((const int32_t *)csr->edges.data)[e] : e;
}

/* Check values in this rank's own rows: finite weights; finite edge features; finite features; the
 * latter, and labels in range. */
int sl_part_check_weights(const struct sl_source *source, const struct sl_part *part);
int sl_part_check_edges(const struct sl_source *source, const struct sl_part *part);
int sl_part_check_features(const struct sl_source *source, const struct sl_part *part);
int sl_part_check_vertices(const struct sl_source *source, const struct sl_part *part);

/* Settle and check the adjacency of all ranks' rows: weights that are all 1, symmetry, totals.
 * Collective. */
int sl_part_settle_adjacency(struct sl_runtime *rt, const struct sl_source *source,
                             struct sl_part *part);

/* Return 0 if the original numbers of all ranks are a permutation, else SL_ERR_DATA. Collective. */
int sl_part_check_original(struct sl_runtime *rt, const struct sl_source *source,
                           const struct sl_part *part);

#endif
